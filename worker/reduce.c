/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c -- SUM and MEAN over the local replicas, one pass over memory, in the order of the
 * replicas. */
#include "reduce.h"

#include <assert.h>
#include <stddef.h>

#include "half.h"

/* Elements that are reduced over all replicas before the next ones are: the partial result stays in
 * the first cache. */
#define ELEMENTS_AT_ONCE 2048u

bool reduce_has(enum sumac_reduce_op op, enum sumac_dtype dtype)
{
    if (sumac_dtype_bytes(dtype) == 0 || dtype == SUMAC_BOOL)
        return false;
    return op == SUMAC_REDUCE_SUM || sumac_dtype_is_float(dtype);
}

/* The leaves: `to` is the partial result, (count), `from` a replica's gradient, (count). Integers
 * are added as unsigned numbers, which wrap alike. */
#define ADD(name, type)                                                                            \
    static void add_##name(void *restrict to, const void *restrict from, size_t count)             \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type *restrict g = from;                                                             \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] = (type)(sum[i] + g[i]);                                                        \
    }
ADD(bits8, uint8_t)
ADD(bits16, uint16_t)
ADD(bits32, uint32_t)
ADD(bits64, uint64_t)
ADD(float32, float)
ADD(float64, double)
#undef ADD

#define MEAN(name, type)                                                                           \
    static void scale_##name(void *to, double weight, size_t count)                                \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type w = (type)weight;                                                               \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] *= w;                                                                           \
    }                                                                                              \
    static void divide_##name(void *to, double weights, size_t count)                              \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type w = (type)weights;                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] /= w;                                                                           \
    }                                                                                              \
    static void add_scaled_##name(                                                                 \
        void *restrict to, const void *restrict from, double weight, size_t count)                 \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type *restrict g = from;                                                             \
        const type w = (type)weight;                                                               \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] += w * g[i];                                                                    \
    }
MEAN(float32, float)
MEAN(float64, double)
#undef MEAN

static void widen(enum sumac_dtype dtype, const void *from, float *restrict to, size_t count)
{
    const uint16_t *half = from;
    if (dtype == SUMAC_FLOAT16)
        for (size_t i = 0; i < count; i++)
            to[i] = float32_of_float16(half[i]);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = float32_of_bfloat16(half[i]);
}

static void narrow(enum sumac_dtype dtype, const float *restrict from, void *to, size_t count)
{
    uint16_t *half = to;
    if (dtype == SUMAC_FLOAT16)
        for (size_t i = 0; i < count; i++)
            half[i] = float16_of_float32(from[i]);
    else
        for (size_t i = 0; i < count; i++)
            half[i] = bfloat16_of_float32(from[i]);
}

static void add(enum sumac_dtype dtype, void *to, const void *from, size_t count)
{
    assert(dtype != SUMAC_BOOL);
    if (dtype == SUMAC_FLOAT32)
        add_float32(to, from, count);
    else if (dtype == SUMAC_FLOAT64)
        add_float64(to, from, count);
    else if (sumac_dtype_bytes(dtype) == 1)
        add_bits8(to, from, count);
    else if (sumac_dtype_bytes(dtype) == 2)
        add_bits16(to, from, count);
    else if (sumac_dtype_bytes(dtype) == 4)
        add_bits32(to, from, count);
    else
        add_bits64(to, from, count);
}

/* Reduce elements first … first + count - 1. `weights` is NULL for a sum; `total` is theirs. */
static void reduce_run(
    const struct reduce_input *input, const double *weights, double total, uint64_t first,
    size_t count)
{
    assert(count <= input->elements - first);
    const uint64_t offset = first * sumac_dtype_bytes(input->dtype);
    uint8_t *to = (uint8_t *)input->gradients[0] + offset;
    const bool wide = input->dtype == SUMAC_FLOAT64;
    if (weights != NULL)
        (wide ? scale_float64 : scale_float32)(to, weights[0], count);
    for (uint32_t i = 1; i < input->replicas; i++) {
        const uint8_t *from = (const uint8_t *)input->gradients[i] + offset;
        if (weights == NULL)
            add(input->dtype, to, from, count);
        else
            (wide ? add_scaled_float64 : add_scaled_float32)(to, from, weights[i], count);
    }
    if (weights != NULL)
        (wide ? divide_float64 : divide_float32)(to, total, count);
}

/* The same for float16 and bfloat16: through float32, a run at a time. */
static void reduce_half_run(
    const struct reduce_input *input, const double *weights, double total, uint64_t first,
    size_t count)
{
    assert(count <= ELEMENTS_AT_ONCE);
    float sum[ELEMENTS_AT_ONCE], g[ELEMENTS_AT_ONCE];
    uint16_t *to = (uint16_t *)input->gradients[0] + first;
    widen(input->dtype, to, sum, count);
    if (weights != NULL)
        scale_float32(sum, weights[0], count);
    for (uint32_t i = 1; i < input->replicas; i++) {
        widen(input->dtype, (const uint16_t *)input->gradients[i] + first, g, count);
        add_scaled_float32(sum, g, weights == NULL ? 1.0 : weights[i], count);
    }
    if (weights != NULL)
        divide_float32(sum, total, count);
    narrow(input->dtype, sum, to, count);
}

void reduce_gradients(enum sumac_reduce_op op, const struct reduce_input *input)
{
    assert(reduce_has(op, input->dtype));
    assert(input->replicas > 0);
    if (input->replicas == 1)
        return;
    const double *weights = op == SUMAC_REDUCE_MEAN ? input->weights : NULL;
    double total = 0;
    for (uint32_t i = 0; weights != NULL && i < input->replicas; i++)
        total += weights[i];
    assert(weights == NULL || total > 0);
    const bool half = input->dtype == SUMAC_FLOAT16 || input->dtype == SUMAC_BFLOAT16;
    for (uint64_t first = 0; first < input->elements; first += ELEMENTS_AT_ONCE) {
        const uint64_t left = input->elements - first;
        const size_t run = left < ELEMENTS_AT_ONCE ? (size_t)left : ELEMENTS_AT_ONCE;
        (half ? reduce_half_run : reduce_run)(input, weights, total, first, run);
    }
}
