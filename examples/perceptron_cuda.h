/* SPDX-License-Identifier: Apache-2.0 */
/* perceptron_cuda.h -- what perceptron.cu's kernels are given, and the step that launches them. */
#pragma once

#include <stdint.h>

#include "perceptron.h"

#define PERCEPTRON_PARAMETERS (PIXELS * UNITS + UNITS * CLASSES + UNITS + CLASSES)

/* All pointers are into the memory of a GPU. */
struct perceptron_batch {
    struct perceptron parameters, gradient;
    const float *pixels;          /* (count, PIXELS) */
    const uint32_t *labels;       /* (count) */
    float *hidden, *hidden_slope; /* (count, UNITS), between the two kernels */
    float *slope;                 /* (count, CLASSES), likewise */
    float *probability;           /* (count), what the label was given */
    double *steps;                /* becomes 1 */
    uint32_t count;
    float share; /* of each in the mean, 1 / count */
};

#ifndef __CUDACC__
#include "sumac/worker.h"

#define PERCEPTRON_BATCH_MAX 64 /* examples of a replica's step */

/* What a replica has on its GPU, and what is on its way there and back. */
struct perceptron_cuda {
    struct sumac_buffer *there; /* perceptron_batch's arrays, one behind the other */
    struct sumac_buffer *here;  /* pinned: pixels, labels, probability */
    uint32_t count;             /* of the last step */
};

/* Put the step of `count` examples into the replica's stream: parameters and gradients are the
 * tensors w1, b1, w2, b2, and a float64 scalar that becomes 1.
 * Fails    INVALID_ARGUMENT: more than PERCEPTRON_BATCH_MAX. RESOURCE_EXHAUSTED; with what the
 * driver says. */
enum sumac_status perceptron_cuda_step(
    struct perceptron_cuda *cuda, const struct sumac_replica *replica,
    const struct example *const *examples, uint32_t count, struct sumac_error *error);

/* The mean cross-entropy of the last step, which is over. */
double perceptron_cuda_loss(const struct perceptron_cuda *cuda);

/* Before the worker is destroyed; a zeroed one is fine. */
void perceptron_cuda_deinit(struct perceptron_cuda *cuda);
#endif
