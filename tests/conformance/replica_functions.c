/* SPDX-License-Identifier: Apache-2.0 */
/* replica_functions.c -- the functions that cases name, which run in replicas, on any type: their
 * arithmetic is float64's, or that of integers of 64 bits, which wraps as narrower ones do. */
#include "replica_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

#define RAGGED_MAX 16u

static enum sumac_status fail_function(struct sumac_error *error, const char *name, const char *why)
{
    *error = (struct sumac_error){.status = SUMAC_INVALID_ARGUMENT};
    (void)snprintf(error->text, sizeof error->text, "function %.64s %s", name, why);
    return SUMAC_INVALID_ARGUMENT;
}

/* ---- elements */

union number {
    double real;
    uint64_t whole;
};

static union number read_element(enum sumac_dtype dtype, const void *at)
{
    union number number = {.whole = 0};
    const size_t bytes = sumac_dtype_bytes(dtype);
    float single;
    uint16_t half;

    switch (dtype) {
    case SUMAC_FLOAT64:
        memcpy(&number.real, at, bytes);
        return number;
    case SUMAC_FLOAT32:
        memcpy(&single, at, bytes);
        return (union number){.real = (double)single};
    case SUMAC_FLOAT16:
        memcpy(&half, at, bytes);
        return (union number){.real = (double)float32_of_float16(half)};
    case SUMAC_BFLOAT16:
        memcpy(&half, at, bytes);
        return (union number){.real = (double)float32_of_bfloat16(half)};
    default:
        memcpy(&number.whole, at, bytes); /* its high bytes make no difference below */
        return number;
    }
}

static void write_element(enum sumac_dtype dtype, union number number, void *at)
{
    const float single = sumac_dtype_is_float(dtype) ? (float)number.real : 0;
    const size_t bytes = sumac_dtype_bytes(dtype);
    uint16_t half;

    if (dtype == SUMAC_FLOAT32) {
        memcpy(at, &single, bytes);
    } else if (dtype == SUMAC_FLOAT16 || dtype == SUMAC_BFLOAT16) {
        half = dtype == SUMAC_FLOAT16 ? float16_of_float32(single) : bfloat16_of_float32(single);
        memcpy(at, &half, bytes);
    } else {
        memcpy(at, &number, bytes); /* little-endian: the low bytes of an integer */
    }
}

/* value·factor + other·product + summand, of each element, where other is 1 or the element of y. */
struct formula {
    double times;                  /* x is multiplied by it, … */
    const struct sumac_tensor *by; /* … and by this, element by element; NULL: nothing, … */
    double plus;                   /* … and it is added, … */
    const struct sumac_tensor *and_plus; /* … with this */
};

static struct sumac_value *compute(const struct sumac_tensor *x, const struct formula *formula)
{
    const size_t bytes = sumac_dtype_bytes(x->dtype);
    const uint64_t elements = sumac_tensor_bytes(x) / bytes;
    struct sumac_value *value = sumac_value_tensor(x->dtype, x->shape, NULL);
    uint8_t *out = value == NULL ? NULL : (uint8_t *)(uintptr_t)sumac_value_data(value);

    for (uint64_t i = 0; out != NULL && i < elements; i++) {
        union number number =
            read_element(x->dtype, (const uint8_t *)sumac_tensor_data(x) + i * bytes);
        union number by = {.whole = 0}, and_plus = {.whole = 0};
        if (formula->by != NULL)
            by =
                read_element(x->dtype, (const uint8_t *)sumac_tensor_data(formula->by) + i * bytes);
        if (formula->and_plus != NULL)
            and_plus = read_element(
                x->dtype, (const uint8_t *)sumac_tensor_data(formula->and_plus) + i * bytes);
        if (sumac_dtype_is_float(x->dtype)) {
            number.real = number.real * formula->times * (formula->by != NULL ? by.real : 1) +
                          formula->plus + and_plus.real;
        } else {
            number.whole = number.whole * (uint64_t)(int64_t)formula->times *
                               (formula->by != NULL ? by.whole : 1) +
                           (uint64_t)(int64_t)formula->plus + and_plus.whole;
        }
        write_element(x->dtype, number, out + i * bytes);
    }
    return value;
}

static struct sumac_value *times(const struct sumac_tensor *x, double factor)
{
    return compute(x, &(struct formula){.times = factor});
}

static struct sumac_value *plus(const struct sumac_tensor *x, double summand)
{
    return compute(x, &(struct formula){.times = 1, .plus = summand});
}

/* ---- each function */

static struct sumac_value *pick(const struct sumac_tensor *x, uint32_t row)
{
    struct sumac_tensor one;

    if (x->shape.rank == 0 || row >= x->shape.extent[0])
        return NULL;
    const struct sumac_range range = {.first = row, .count = 1};
    if (sumac_tensor_slice_rows(x, range, &one) != SUMAC_OK)
        return NULL;
    for (uint32_t i = 1; i < one.shape.rank; i++)
        one.shape.extent[i - 1] = one.shape.extent[i];
    one.shape.rank--;
    return sumac_value_copy(&one);
}

static struct sumac_value *ragged(const struct sumac_tensor *x, uint32_t id)
{
    struct sumac_value *items[RAGGED_MAX];
    const uint32_t count = 2 + id < RAGGED_MAX ? 2 + id : RAGGED_MAX;

    for (uint32_t i = 0; i < count; i++)
        items[i] = plus(x, i);
    return sumac_value_list(items, count);
}

static struct sumac_value *pair(struct sumac_value *one, struct sumac_value *other)
{
    struct sumac_value *const items[] = {one, other};

    return sumac_value_tuple(items, 2);
}

static struct sumac_value *dict2(const struct sumac_tensor *x)
{
    static const char *const keys[] = {"a", "b"};
    struct sumac_value *const items[] = {
        times(x, 2), compute(x, &(struct formula){.times = 1, .by = x})};

    return sumac_value_dict(keys, items, 2);
}

/* Those of the replica alone. NULL: it is none of them. */
static struct sumac_value *of_replica(const char *name, const struct replica_operands *operands)
{
    const int32_t id = (int32_t)operands->id;

    if (strcmp(name, "replica_id") == 0)
        return sumac_value_int32(id);
    if (strcmp(name, "num_replicas") == 0)
        return sumac_value_int32((int32_t)operands->count);
    if (strcmp(name, "fraction") == 0)
        return sumac_value_float32((float)id / (float)operands->count);
    if (strcmp(name, "id_pair") == 0)
        return pair(sumac_value_int32(id), sumac_value_int32(10 * id));
    return NULL;
}

/* Those of one tensor. */
static struct sumac_value *of_one(const char *name, const struct sumac_tensor *x, uint32_t id)
{
    if (strcmp(name, "negate") == 0)
        return times(x, -1);
    if (strcmp(name, "square") == 0)
        return compute(x, &(struct formula){.times = 1, .by = x});
    if (strcmp(name, "add_replica_id") == 0)
        return plus(x, id);
    if (strcmp(name, "scale_by_replica") == 0)
        return times(x, id + 1);
    if (strcmp(name, "pair") == 0)
        return pair(plus(x, 1), plus(x, -1));
    if (strcmp(name, "dict2") == 0)
        return dict2(x);
    if (strcmp(name, "pick") == 0)
        return pick(x, id);
    return strcmp(name, "ragged") == 0 ? ragged(x, id) : NULL;
}

/* Those of two of one type and shape. */
static struct sumac_value *
of_two(const char *name, const struct sumac_tensor *x, const struct sumac_tensor *y)
{
    if (x->dtype != y->dtype || !sumac_shape_equal(&x->shape, &y->shape))
        return NULL;
    if (strcmp(name, "add") == 0)
        return compute(x, &(struct formula){.times = 1, .and_plus = y});
    if (strcmp(name, "multiply") == 0)
        return compute(x, &(struct formula){.times = 1, .by = y});
    return NULL;
}

enum sumac_status replica_function(
    const char *name, const struct replica_operands *operands, struct sumac_value **result,
    struct sumac_error *error)
{
    const struct sumac_tensor *x = sumac_value_as_tensor(operands->x);
    const struct sumac_tensor *y = sumac_value_as_tensor(operands->y);

    if (strcmp(name, "identity") == 0 && operands->x != NULL) {
        *result = sumac_value_ref(operands->x);
        return SUMAC_OK;
    }
    *result = of_replica(name, operands);
    if (*result == NULL && x != NULL && y == NULL)
        *result = of_one(name, x, operands->id);
    if (*result == NULL && x != NULL && y != NULL)
        *result = of_two(name, x, y);
    return *result != NULL ? SUMAC_OK
                           : fail_function(error, name, "is not known, or not with these operands");
}
