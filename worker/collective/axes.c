/* SPDX-License-Identifier: Apache-2.0 */
/* axes.c -- tensors of replicas summed over axes, and over the replicas: in float32, float64 or
 * integers of 64 bits, which wrap as narrower ones do.
 *
 * A tensor is walked row by row, along its last axis; each row is widened, RUN elements at a time,
 * and added to where its sum lies.
 */
#include "axes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "half.h"
#include "value.h"

#define RUN 512u

enum sumac_dtype axes_result_dtype(enum sumac_reduce_op op, enum sumac_dtype dtype)
{
    const enum sumac_dtype_kind kind = sumac_dtype_kind(dtype);

    if (kind == SUMAC_KIND_NONE || kind == SUMAC_KIND_BOOL)
        return SUMAC_DTYPE_UNSPECIFIED;
    if (op == SUMAC_REDUCE_SUM || sumac_dtype_is_float(dtype))
        return dtype;
    return dtype_bytes(dtype) <= 2 ? SUMAC_FLOAT32 : SUMAC_FLOAT64;
}

enum sumac_status
axes_read(const struct sumac_axes *axes, uint32_t rank, uint32_t *summed, struct sumac_error *error)
{
    *summed = 0;
    assert(rank <= SUMAC_RANK_MAX);
    if (axes->count > SUMAC_RANK_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE,
            "%" PRIu32 " axes were given, and a tensor has at most %d", axes->count,
            SUMAC_RANK_MAX);
    for (uint32_t i = axes->count; i < SUMAC_RANK_MAX; i++)
        if (axes->axis[i] != 0)
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE,
                "axis[%" PRIu32 "] is %" PRId64 ", and count is %" PRIu32
                "; count the axes that are given",
                i, axes->axis[i], axes->count);
    for (uint32_t i = 0; i < axes->count; i++) {
        const int64_t given = axes->axis[i], axis = given < 0 ? given + (int64_t)rank : given;
        if (rank == 0)
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE, "axis %" PRId64 " of a scalar, which has none",
                given);
        if (axis < 0 || axis >= (int64_t)rank)
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE,
                "axis %" PRId64 " of a tensor of rank %" PRIu32 ": there are axes -%" PRIu32
                " to %" PRId64,
                given, rank, rank, (int64_t)rank - 1);
        if ((*summed >> axis & 1u) != 0)
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE, "axis %" PRId64 " is named twice", axis);
        *summed |= 1u << axis;
    }
    return SUMAC_OK;
}

/* ---- the arithmetic */

/* What sums are taken in. */
enum sum_kind { SUM_FLOAT32, SUM_FLOAT64, SUM_INTEGER };

static enum sum_kind kind_of(enum sumac_dtype result)
{
    if (result == SUMAC_FLOAT64)
        return SUM_FLOAT64;
    return sumac_dtype_is_float(result) ? SUM_FLOAT32 : SUM_INTEGER; /* halves, too */
}

static size_t bytes_of(enum sum_kind kind)
{
    return kind == SUM_FLOAT32 ? sizeof(float) : sizeof(double);
}

/* (RUN) elements of a tensor, as what sums are taken in. */
#define WIDEN(name, type, sum_name, sum_type)                                                      \
    static void widen_##name##_##sum_name(const void *from, void *to, size_t count)                \
    {                                                                                              \
        const type *restrict elements = from;                                                      \
        sum_type *restrict wide = to;                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            wide[i] = (sum_type)elements[i];                                                       \
    }
#define WIDEN_ALL(name, type)                                                                      \
    WIDEN(name, type, float32, float)                                                              \
    WIDEN(name, type, float64, double)                                                             \
    WIDEN(name, type, integer, uint64_t)
WIDEN_ALL(int8, int8_t)
WIDEN_ALL(int16, int16_t)
WIDEN_ALL(int32, int32_t)
WIDEN_ALL(int64, int64_t)
WIDEN_ALL(uint8, uint8_t)
WIDEN_ALL(uint16, uint16_t)
WIDEN_ALL(uint32, uint32_t)
WIDEN_ALL(uint64, uint64_t)
WIDEN(float32, float, float32, float)
WIDEN(float64, double, float64, double)
#define WIDEN_HALF(name)                                                                           \
    static void widen_##name(const void *from, void *to, size_t count)                             \
    {                                                                                              \
        const uint16_t *restrict elements = from;                                                  \
        float *restrict wide = to;                                                                 \
        for (size_t i = 0; i < count; i++)                                                         \
            wide[i] = HALF_WIDEN_##name(elements[i]);                                              \
    }
WIDEN_HALF(float16)
WIDEN_HALF(bfloat16)

typedef void widen_elements(const void *from, void *to, size_t count);

#define ROW_BOOL(name)                                                                             \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }
#define ROW_INT(name)                                                                              \
    {                                                                                              \
        widen_##name##_float32, widen_##name##_float64, widen_##name##_integer                     \
    }
#define ROW_UINT(name) ROW_INT(name)
#define ROW_HALF(name)                                                                             \
    {                                                                                              \
        widen_##name, NULL, NULL                                                                   \
    }
#define ROW_FLOAT(name)                                                                            \
    {                                                                                              \
        widen_float32_float32, widen_float64_float64, NULL                                         \
    }
#define X(NAME, number, bytes, kind, name, numpy) [number] = ROW_##kind(name),
static widen_elements *const widens[DTYPES_MAX + 1][3] = {SUMAC_DTYPE_LIST(X)};
#undef X

/* A run added to as many sums that lie side by side, or to one. */
#define ADD(name, type)                                                                            \
    static void add_each_##name(void *to, const void *from, size_t count)                          \
    {                                                                                              \
        type *restrict sums = to;                                                                  \
        const type *restrict elements = from;                                                      \
        for (size_t i = 0; i < count; i++)                                                         \
            sums[i] += elements[i];                                                                \
    }                                                                                              \
    static void add_all_##name(void *to, const void *from, size_t count)                           \
    {                                                                                              \
        type sum = *(type *)to;                                                                    \
        const type *restrict elements = from;                                                      \
        for (size_t i = 0; i < count; i++)                                                         \
            sum += elements[i];                                                                    \
        *(type *)to = sum;                                                                         \
    }
ADD(float32, float)
ADD(float64, double)
ADD(integer, uint64_t)

typedef void add_run(void *to, const void *from, size_t count);
static const struct {
    add_run *each, *all;
} adds[3] = {
    [SUM_FLOAT32] = {add_each_float32, add_all_float32},
    [SUM_FLOAT64] = {add_each_float64, add_all_float64},
    [SUM_INTEGER] = {add_each_integer, add_all_integer},
};

/* ---- one tensor, row by row */

struct walk {
    enum sum_kind kind;
    enum sumac_dtype dtype;
    uint32_t rank;
    uint64_t extent[SUMAC_RANK_MAX];
    uint64_t stride[SUMAC_RANK_MAX]; /* among the sums, of elements; 0: along a summed axis */
    uint8_t *sums;
};

static void add_row(const struct walk *walk, const uint8_t *row, uint64_t at)
{
    const uint64_t count = walk->rank == 0 ? 1 : walk->extent[walk->rank - 1];
    const bool into_one = walk->rank > 0 && walk->stride[walk->rank - 1] == 0;
    const size_t element = dtype_bytes(walk->dtype), sum = bytes_of(walk->kind);
    uint64_t wide[RUN];

    assert(widens[walk->dtype][walk->kind] != NULL);
    for (uint64_t first = 0; first < count; first += RUN) {
        const size_t run = count - first < RUN ? (size_t)(count - first) : RUN;
        widens[walk->dtype][walk->kind](row + first * element, wide, run);
        if (into_one)
            adds[walk->kind].all(walk->sums + at * sum, wide, run);
        else
            adds[walk->kind].each(walk->sums + (at + first) * sum, wide, run);
    }
}

static void add_tensor(const struct walk *walk, const struct sumac_tensor *tensor)
{
    const uint32_t outer = walk->rank == 0 ? 0 : walk->rank - 1; /* axes but the last */
    const uint64_t row_bytes =
        dtype_bytes(walk->dtype) * (walk->rank == 0 ? 1 : walk->extent[walk->rank - 1]);
    const uint8_t *row = sumac_tensor_data(tensor);
    uint64_t index[SUMAC_RANK_MAX] = {0}, at = 0;

    assert(walk->rank <= SUMAC_RANK_MAX);
    assert(walk->sums != NULL);
    if (sumac_tensor_bytes(tensor) == 0)
        return;
    for (;;) {
        add_row(walk, row, at);
        row += row_bytes;
        uint32_t axis = outer;
        while (axis > 0) { /* the next row's place */
            axis--;
            at += walk->stride[axis];
            if (++index[axis] < walk->extent[axis])
                break;
            at -= walk->stride[axis] * walk->extent[axis];
            index[axis] = 0;
            if (axis == 0)
                return;
        }
        if (outer == 0)
            return;
    }
}

/* ---- the result */

static struct sumac_shape shape_left(const struct sumac_shape *shape, uint32_t summed)
{
    struct sumac_shape left = {.rank = 0};

    assert(shape->rank <= SUMAC_RANK_MAX);
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        if ((summed >> axis & 1u) == 0)
            left.extent[left.rank++] = shape->extent[axis];
    return left;
}

/* The elements that each sum has, of one tensor. */
static uint64_t summed_of(const struct sumac_shape *shape, uint32_t summed)
{
    uint64_t count = 1;

    for (uint32_t axis = 0; axis < shape->rank; axis++)
        if ((summed >> axis & 1u) != 0)
            count *= shape->extent[axis];
    return count;
}

static void begin(struct walk *walk, const struct sumac_tensor *tensor, uint32_t summed)
{
    uint64_t stride = 1;

    walk->dtype = tensor->dtype;
    walk->rank = tensor->shape.rank;
    memcpy(walk->extent, tensor->shape.extent, sizeof walk->extent);
    for (uint32_t axis = walk->rank; axis-- > 0;) {
        const bool kept = (summed >> axis & 1u) == 0;
        walk->stride[axis] = kept ? stride : 0;
        if (kept)
            stride *= walk->extent[axis];
    }
}

static void divide(enum sum_kind kind, void *sums, uint64_t count, uint64_t elements)
{
    assert(kind != SUM_INTEGER);
    for (uint64_t i = 0; kind == SUM_FLOAT32 && i < count; i++)
        ((float *)sums)[i] /= (float)elements;
    for (uint64_t i = 0; kind == SUM_FLOAT64 && i < count; i++)
        ((double *)sums)[i] /= (double)elements;
}

/* Sums of one element of each tensor: what is not summed over axes keeps the sign of a zero, as
 * −0.0 + x is x for each x. */
static void begin_at_minus_zero(enum sum_kind kind, void *sums, uint64_t count)
{
    for (uint64_t i = 0; kind == SUM_FLOAT32 && i < count; i++)
        ((float *)sums)[i] = -0.0F;
    for (uint64_t i = 0; kind == SUM_FLOAT64 && i < count; i++)
        ((double *)sums)[i] = -0.0;
}

/* The sums in the type of the result: the low bytes of an integer are what it wraps to. */
static void narrow(enum sumac_dtype dtype, const void *sums, void *to, uint64_t count)
{
    const size_t element = dtype_bytes(dtype);

    assert(element > 0 && element <= sizeof(uint64_t));
    if (dtype == SUMAC_FLOAT16 || dtype == SUMAC_BFLOAT16) {
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = dtype == SUMAC_FLOAT16
                                      ? float16_of_float32(((const float *)sums)[i])
                                      : bfloat16_of_float32(((const float *)sums)[i]);
        return;
    }
    if (kind_of(dtype) != SUM_INTEGER) {
        if (count > 0)
            memcpy(to, sums, (size_t)count * element);
        return;
    }
    for (uint64_t i = 0; i < count; i++) /* little-endian, as every machine that this runs on */
        memcpy((uint8_t *)to + i * element, (const uint64_t *)sums + i, element);
}

enum sumac_status axes_reduce(
    const struct axes_reduction *reduction, const struct sumac_tensor *const *tensors,
    uint32_t count, struct sumac_value **result, struct sumac_error *error)
{
    const enum sumac_dtype dtype = axes_result_dtype(reduction->op, tensors[0]->dtype);
    const uint32_t summed = reduction->summed;
    const struct sumac_shape shape = shape_left(&tensors[0]->shape, summed);
    struct walk walk = {.kind = kind_of(dtype)};
    uint64_t sums, elements = 0;
    void *to;

    assert(count > 0);
    assert(dtype != SUMAC_DTYPE_UNSPECIFIED);
    struct sumac_value *value = value_make_tensor(dtype, &shape, &to);
    if (value == NULL || sumac_shape_size(&shape, dtype, &sums, NULL) != SUMAC_OK ||
        (walk.sums = calloc((size_t)sums + 1, bytes_of(walk.kind))) == NULL) {
        sumac_value_unref(value);
        return value_fail_for_memory(error);
    }
    bool one_of_each = true;
    for (uint32_t i = 0; i < count; i++)
        one_of_each = one_of_each && summed_of(&tensors[i]->shape, summed) == 1;
    if (one_of_each)
        begin_at_minus_zero(walk.kind, walk.sums, sums);
    for (uint32_t i = 0; i < count; i++) {
        begin(&walk, tensors[i], summed);
        add_tensor(&walk, tensors[i]);
        elements += summed_of(&tensors[i]->shape, summed);
    }
    if (reduction->op == SUMAC_REDUCE_MEAN)
        divide(walk.kind, walk.sums, sums, reduction->divisor != 0 ? reduction->divisor : elements);
    narrow(dtype, walk.sums, to, sums);
    free(walk.sums);
    *result = value;
    return SUMAC_OK;
}
