/* SPDX-License-Identifier: Apache-2.0 */
/* elements.h -- what is computed of arrays of a dtype, element by element. */
#pragma once

#include <stddef.h>

#include "sumac/tensor.h"

/* A dtype's arithmetic; NULL: it has none, or it is a half's, which has only the last two, to and
 * from float32. Weights are rounded to the dtype; a product and a sum are rounded each. All arrays
 * are (count). */
struct arithmetic {
    void (*add)(void *restrict to, const void *restrict from, size_t count);
    void (*scale)(void *to, double weight, size_t count);
    void (*divide)(void *to, double weights, size_t count);
    void (*add_scaled)(void *restrict to, const void *restrict from, double weight, size_t count);
    void (*widen)(const void *from, float *restrict to, size_t count);
    void (*narrow)(const float *restrict from, void *to, size_t count);
};

/* Lends  the row, for good. */
const struct arithmetic *arithmetic_of(enum sumac_dtype dtype);
