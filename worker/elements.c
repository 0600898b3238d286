/* SPDX-License-Identifier: Apache-2.0 */
/* elements.c -- plain loops over the elements of each dtype: the truth that kernels are compared
 * with (cuda/kernels.cu). */
#include "elements.h"

#include <assert.h>

#include "dtype.h"
#include "half.h"

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
ADD(bytes1, uint8_t)
ADD(bytes2, uint16_t)
ADD(bytes4, uint32_t)
ADD(bytes8, uint64_t)
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

/* Half types go through float32, a run at a time. */
#define HALF(name)                                                                                 \
    static void widen_##name(const void *from, float *restrict to, size_t count)                   \
    {                                                                                              \
        const uint16_t *half = from;                                                               \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = HALF_WIDEN_##name(half[i]);                                                    \
    }                                                                                              \
    static void narrow_##name(const float *restrict from, void *to, size_t count)                  \
    {                                                                                              \
        uint16_t *half = to;                                                                       \
        for (size_t i = 0; i < count; i++)                                                         \
            half[i] = HALF_NARROW_##name(from[i]);                                                 \
    }
HALF(float16)
HALF(bfloat16)
#undef HALF

#define ROW_BOOL(name, bytes) .add = NULL
#define ROW_INT(name, bytes) .add = add_bytes##bytes
#define ROW_UINT(name, bytes) .add = add_bytes##bytes
#define ROW_HALF(name, bytes) .widen = widen_##name, .narrow = narrow_##name
#define ROW_FLOAT(name, bytes)                                                                     \
    .add = add_##name, .scale = scale_##name, .divide = divide_##name,                             \
    .add_scaled = add_scaled_##name
static const struct arithmetic arithmetics[DTYPES_MAX + 1] = {
#define X(NAME, number, bytes, kind, name, numpy) [number] = {ROW_##kind(name, bytes)},
    SUMAC_DTYPE_LIST(X)
#undef X
};

const struct arithmetic *arithmetic_of(enum sumac_dtype dtype)
{
    assert((uint32_t)dtype <= DTYPES_MAX);
    return &arithmetics[dtype];
}
