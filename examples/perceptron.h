/* SPDX-License-Identifier: Apache-2.0 */
/* perceptron.h -- 64 pixels, 128 rectified units, 10 classes: loss, gradient and answers of a
 * two-layer perceptron.
 *
 * Plain loops over contiguous rows, for the compiler to vectorise. Half of the pixels are 0, and
 * are passed over.
 */
#pragma once

#include <stdint.h>

#define PIXELS 64
#define UNITS 128
#define CLASSES 10

/* The parameters, or their gradients. */
struct perceptron {
    float *w1; /* (PIXELS, UNITS) */
    float *b1; /* (UNITS) */
    float *w2; /* (UNITS, CLASSES) */
    float *b2; /* (CLASSES) */
};

/* An image and what it shows. */
struct example {
    float pixels[PIXELS]; /* 0 … 1 */
    uint32_t label;
};

/* The mean cross-entropy of `count` examples, and its gradient, written whole. */
double perceptron_gradient(
    const struct perceptron *parameters, const struct example *const *examples, uint32_t count,
    const struct perceptron *gradient);

/* What an example's label is given, 0 … 1. */
float perceptron_probability(const struct perceptron *parameters, const struct example *example);

/* How many of the examples are classified right. */
uint32_t perceptron_count_right(
    const struct perceptron *parameters, const struct example *examples, uint32_t count);
