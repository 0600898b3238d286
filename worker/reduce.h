/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h -- what the local replicas have becomes one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/tensor.h"
#include "sumac/worker.h"

/* SUM has every dtype but bool, MEAN the float dtypes. */
bool reduce_has(enum sumac_reduce_op op, enum sumac_dtype dtype);

/* What the replicas made of one variable, and which of its elements are to be reduced. */
struct reduce_input {
    enum sumac_dtype dtype;
    uint64_t first, elements; /* first … first + elements - 1 of each */
    const void *const *from;  /* (replicas) */
    uint32_t replicas;
    void *const *to; /* (targets), each gets the result: an array of its own, or one of from */
    uint32_t targets;
    const double *weights; /* (replicas), examples that each stands for; MEAN only */
};

/* Reduce, in the order of the replicas.
 *
 * SUM: Σ g. MEAN: Σ weight · g ÷ Σ weight over the replicas whose weight is not 0; one replica's is
 * left as it is. The arithmetic is the
 * dtype's own; half types are summed in float32 and rounded once. Integers wrap. The caller has
 * checked reduce_has, and that the weights are finite, not negative and not all 0. */
void reduce_values(enum sumac_reduce_op op, const struct reduce_input *input);
