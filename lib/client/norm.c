/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c -- the norm of what is pushed, in one pass over it.
 *
 * Squares are added up in eight sums at a time, so that additions need not wait for each other, and
 * in the same order wherever it runs.
 */
#include "push.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "dtype.h"
#include "half.h"

#define SUMS 8u

static double float16_of(const void *data, uint64_t i)
{
    uint16_t half;

    memcpy(&half, (const uint8_t *)data + i * sizeof half, sizeof half);
    return (double)float32_of_float16(half);
}

static double bfloat16_of(const void *data, uint64_t i)
{
    uint16_t half;

    memcpy(&half, (const uint8_t *)data + i * sizeof half, sizeof half);
    return (double)float32_of_bfloat16(half);
}

static double float32_of(const void *data, uint64_t i)
{
    float value;

    memcpy(&value, (const uint8_t *)data + i * sizeof value, sizeof value);
    return (double)value;
}

static double float64_of(const void *data, uint64_t i)
{
    double value;

    memcpy(&value, (const uint8_t *)data + i * sizeof value, sizeof value);
    return value;
}

#define SQUARES_BOOL(name)
#define SQUARES_INT(name)
#define SQUARES_UINT(name)
#define SQUARES_HALF(name) SQUARES_FLOAT(name)
#define SQUARES_FLOAT(name)                                                                        \
    static double squares_of_##name(const void *data, uint64_t count)                              \
    {                                                                                              \
        double sum[SUMS] = {0}, all = 0;                                                           \
        uint64_t i = 0;                                                                            \
        assert(data != NULL && count > 0);                                                         \
        for (; i + SUMS <= count; i += SUMS)                                                       \
            for (uint32_t j = 0; j < SUMS; j++)                                                    \
                sum[j] += name##_of(data, i + j) * name##_of(data, i + j);                         \
        for (; i < count; i++)                                                                     \
            sum[0] += name##_of(data, i) * name##_of(data, i);                                     \
        for (uint32_t j = 0; j < SUMS; j++)                                                        \
            all += sum[j];                                                                         \
        return all;                                                                                \
    }
#define X(NAME, number, bytes, kind, name, numpy) SQUARES_##kind(name)
SUMAC_DTYPE_LIST(X)
#undef X

#define ROW_BOOL(name) NULL
#define ROW_INT(name) NULL
#define ROW_UINT(name) NULL
#define ROW_HALF(name) squares_of_##name
#define ROW_FLOAT(name) squares_of_##name

static double (*const squares_of[DTYPES_MAX + 1])(const void *data, uint64_t count) = {
#define X(NAME, number, bytes, kind, name, numpy) [number] = ROW_##kind(name),
    SUMAC_DTYPE_LIST(X)
#undef X
};

double norm_of(const struct sumac_delta *deltas, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        const struct sumac_tensor *const value = &deltas[i].value;
        uint64_t elements = 0, bytes = 0;
        if (deltas[i].sets_hyperparameters)
            continue;
        assert(sumac_dtype_is_float(value->dtype));
        if (sumac_shape_size(&value->shape, value->dtype, &elements, &bytes) == SUMAC_OK &&
            bytes > 0)
            sum += squares_of[value->dtype](sumac_tensor_data(value), elements);
    }
    return sqrt(sum);
}
