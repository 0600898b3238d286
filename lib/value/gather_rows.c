/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows.c -- rows of a tensor by their numbers: tf.gather, and embedding_lookup_sparse. */
#include "value.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "half.h"
#include "plural.h"
#include "text.h"

/* What is asked of which tensor. */
struct embedding_table {
    const char *call;
    const struct sumac_tensor *tensor;
    uint64_t rows, row_bytes, columns;
};

static enum sumac_status open_table(
    const char *call, const struct sumac_value *value, struct embedding_table *table,
    struct sumac_error *error)
{
    if (value == NULL)
        return fail_for_null(error, call, "value");
    if (value->kind != SUMAC_VALUE_TENSOR || value->tensor.shape.rank == 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE, "%s: the value is %s, which has no rows", call,
            value->kind == SUMAC_VALUE_TENSOR ? "a scalar" : sumac_value_kind_name(value->kind));
    *table = (struct embedding_table){
        .call = call,
        .tensor = &value->tensor,
        .rows = value->tensor.shape.extent[0],
        .columns = 1};
    for (uint32_t axis = 1; axis < value->tensor.shape.rank; axis++)
        table->columns *= value->tensor.shape.extent[axis];
    table->row_bytes = table->columns * dtype_bytes(value->tensor.dtype);
    return SUMAC_OK;
}

/* ---- ids */

static uint64_t count_elements(const struct sumac_value *tensor)
{
    return sumac_tensor_bytes(&tensor->tensor) / dtype_bytes(tensor->tensor.dtype);
}

/* "float32[2, 4]", or "a list". */
static const char *describe(const struct sumac_value *given, char *text, size_t text_bytes)
{
    char shape[96];

    if (given != NULL && given->kind == SUMAC_VALUE_TENSOR)
        (void)text_print(
            text, text_bytes, "%s%s", sumac_dtype_name(given->tensor.dtype),
            sumac_shape_print(&given->tensor.shape, shape, sizeof shape));
    else
        (void)text_print(
            text, text_bytes, "%s%s", given == NULL ? "" : "a ",
            given == NULL ? "NULL" : sumac_value_kind_name(given->kind));
    return text;
}

static enum sumac_status check_ids(
    const struct embedding_table *table, const struct sumac_value *ids, struct sumac_error *error)
{
    const struct sumac_tensor *tensor = ids == NULL ? NULL : sumac_value_as_tensor(ids);
    char given[128];

    if (tensor != NULL && (tensor->dtype == SUMAC_INT64 || tensor->dtype == SUMAC_INT32))
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_WRONG_DATA_TYPE, "%s: the ids are %s; give a tensor of int64 or int32",
        table->call, describe(ids, given, sizeof given));
}

static enum sumac_status find_row(
    const struct embedding_table *table, const struct sumac_value *ids, uint64_t at,
    const uint8_t **row, struct sumac_error *error)
{
    const void *const data = sumac_tensor_data(&ids->tensor);
    const int64_t id = ids->tensor.dtype == SUMAC_INT32 ? ((const int32_t *)data)[at]
                                                        : ((const int64_t *)data)[at];

    assert(at < count_elements(ids));
    if (id < 0 || (uint64_t)id >= table->rows)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE,
            "%s: there is no row %" PRId64 "; the value has %" PRIu64 " row%s", table->call, id,
            table->rows, plural(table->rows));
    *row = (const uint8_t *)sumac_tensor_data(table->tensor) + (uint64_t)id * table->row_bytes;
    return SUMAC_OK;
}

/* Shape of the result: that of the ids, then that of a row. */
static enum sumac_status shape_rows(
    const struct embedding_table *table, const struct sumac_shape *ids, struct sumac_shape *shape,
    struct sumac_error *error)
{
    const struct sumac_shape *const whole = &table->tensor->shape;

    *shape = *ids;
    shape->rank = ids->rank + whole->rank - 1;
    if (shape->rank > SUMAC_RANK_MAX)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE,
            "%s: ids of %" PRIu32 " axes and rows of %" PRIu32 " make a tensor of %" PRIu32
            " axes; at most %u are possible: flatten the ids",
            table->call, ids->rank, whole->rank - 1, shape->rank, SUMAC_RANK_MAX);
    for (uint32_t axis = 1; axis < whole->rank; axis++)
        shape->extent[ids->rank + axis - 1] = whole->extent[axis];
    return SUMAC_OK;
}

/* What is on a device is brought here, and asked again: of sumac_value_rows, or of _lookup, which
 * has a combiner. */
static enum sumac_status ask_there(
    const struct sumac_value *value, const struct sumac_value *ids, enum sumac_reduce_op combiner,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *here = NULL, *ids_here = NULL;

    enum sumac_status status = sumac_value_to_host((void *)(uintptr_t)value, &here, error);
    if (status == SUMAC_OK)
        status = sumac_value_to_host((void *)(uintptr_t)ids, &ids_here, error);
    if (status == SUMAC_OK)
        status = combiner == SUMAC_REDUCE_NONE
                     ? sumac_value_rows(here, ids_here, result, error)
                     : sumac_value_lookup(here, ids_here, combiner, result, error);
    sumac_value_unref(here);
    sumac_value_unref(ids_here);
    return status;
}

enum sumac_status sumac_value_rows(
    const struct sumac_value *value, const struct sumac_value *ids, struct sumac_value **result,
    struct sumac_error *error)
{
    static const char call[] = "sumac_value_rows";
    struct embedding_table table;
    struct sumac_shape shape;
    void *elements;

    enum sumac_status status = open_table(call, value, &table, error);
    if (status == SUMAC_OK && result == NULL)
        status = fail_for_null(error, call, "result");
    if (status == SUMAC_OK)
        status = check_ids(&table, ids, error);
    if (status == SUMAC_OK)
        status = shape_rows(&table, &ids->tensor.shape, &shape, error);
    if (status != SUMAC_OK)
        return status;
    if (!value_is_here(value) || !value_is_here(ids))
        return ask_there(value, ids, (enum sumac_reduce_op)0, result, error);
    const uint64_t count = count_elements(ids);
    struct sumac_value *made = value_make_tensor(table.tensor->dtype, &shape, &elements);
    if (made == NULL)
        return value_fail_for_memory(error);
    for (uint64_t i = 0; status == SUMAC_OK && i < count; i++) {
        const uint8_t *row = NULL;
        status = find_row(&table, ids, i, &row, error);
        if (status == SUMAC_OK && table.row_bytes > 0)
            memcpy((uint8_t *)elements + i * table.row_bytes, row, (size_t)table.row_bytes);
    }
    if (status == SUMAC_OK)
        *result = made;
    else
        sumac_value_unref(made);
    return status;
}

/* ---- combined */

/* One entry of `bags`: ids, and a weight for each of them. */
struct bag {
    const struct sumac_value *ids;
    const struct sumac_value *weights; /* NULL: each is 1 */
};

static struct bag bag_of(const struct sumac_value *given)
{
    if (given != NULL && given->kind == SUMAC_VALUE_TUPLE && given->count == 2)
        return (struct bag){.ids = given->items[0], .weights = given->items[1]};
    return (struct bag){.ids = given};
}

/* Elements of a row are added to sums, and these written: in float64 of float64, in float32 of
 * float32 and half types; integers wrap around. */
struct row_sums {
    float *singles;
    double *doubles;
    uint64_t *integers;
};

#define ADD(sum, type, widen, factor)                                                              \
    for (uint64_t i = 0; i < columns; i++)                                                         \
        sums->sum[i] += widen(((const type *)row)[i]) * (factor);
#define ADD_BOOL(name)
#define ADD_INT(name) ADD(integers, ELEMENT_INT(name), (uint64_t), 1u)
#define ADD_UINT ADD_INT
#define ADD_HALF(name) ADD(singles, uint16_t, HALF_WIDEN_##name, single)
#define ADD_FLOAT(name) ADD_##name
#define ADD_float32 ADD(singles, float, , single)
#define ADD_float64 ADD(doubles, double, , weight)

/* `weight` has the precision of the sums. Integers have none. */
static void add_row(
    enum sumac_dtype dtype, const uint8_t *row, double weight, uint64_t columns,
    const struct row_sums *sums)
{
    const float single = (float)weight;

    assert(sumac_dtype_is_float(dtype) || !(weight < 1 || weight > 1));
    switch (dtype) {
#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    case SUMAC_##NAME:                                                                             \
        ADD_##kind(name) break;
        SUMAC_DTYPE_LIST(X)
#undef X
    case SUMAC_DTYPE_UNSPECIFIED:
        break;
    }
}

#define WRITE(type, value)                                                                         \
    for (uint64_t i = 0; i < columns; i++)                                                         \
        ((type *)to)[i] = (type)(value);
#define WRITE_BOOL(name)
#define WRITE_INT(name) WRITE(ELEMENT_INT(name), sums->integers[i])
#define WRITE_UINT WRITE_INT
#define WRITE_HALF(name) WRITE(uint16_t, HALF_NARROW_##name(sums->singles[i] / single))
#define WRITE_FLOAT(name) WRITE_##name
#define WRITE_float32 WRITE(float, sums->singles[i] / single)
#define WRITE_float64 WRITE(double, sums->doubles[i] / divisor)

/* Divided by 0 a row is zeros, as TensorFlow's div_no_nan has it. */
static void write_row(
    enum sumac_dtype dtype, const struct row_sums *sums, double divisor, uint64_t columns,
    uint8_t *to)
{
    const float single = (float)divisor;

    if (divisor == 0) {
        memset(to, 0, (size_t)(columns * dtype_bytes(dtype)));
        return;
    }
    switch (dtype) {
#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    case SUMAC_##NAME:                                                                             \
        WRITE_##kind(name) break;
        SUMAC_DTYPE_LIST(X)
#undef X
    case SUMAC_DTYPE_UNSPECIFIED:
        break;
    }
}

/* The type that rows of `dtype` are computed in: float64, or float32. */
static double narrow(enum sumac_dtype dtype, double number)
{
    return dtype == SUMAC_FLOAT64 ? number : (double)(float)number;
}

/* TensorFlow casts a weight to that type. */
static double weight_at(const struct sumac_value *weights, uint64_t at, enum sumac_dtype rows)
{
    const void *const data = weights == NULL ? NULL : sumac_tensor_data(&weights->tensor);
    const enum sumac_dtype dtype = weights == NULL ? rows : weights->tensor.dtype;

    if (data == NULL)
        return 1;
    assert(sumac_dtype_is_float(dtype));
    if (dtype == SUMAC_FLOAT64)
        return narrow(rows, ((const double *)data)[at]);
    if (dtype == SUMAC_FLOAT32)
        return (double)((const float *)data)[at];
    const uint16_t half = ((const uint16_t *)data)[at];
    return (double)(dtype == SUMAC_FLOAT16 ? float32_of_float16(half) : float32_of_bfloat16(half));
}

/* Zeros; −0.0 where the sign of a zero is kept, as −0.0 + x is x for each x. TensorFlow keeps it of
 * rows without weights, and of one row with a weight. */
static void begin_sums(
    enum sumac_dtype dtype, const struct bag *bag, uint64_t columns, const struct row_sums *sums)
{
    const uint64_t count = count_elements(bag->ids);
    const bool keeps = bag->weights == NULL ? count > 0 : count == 1;

    memset(sums->integers, 0, (size_t)columns * sizeof *sums->integers);
    if (!keeps || !sumac_dtype_is_float(dtype))
        return;
    for (uint64_t i = 0; i < columns; i++)
        if (dtype == SUMAC_FLOAT64)
            sums->doubles[i] = -0.0;
        else
            sums->singles[i] = -0.0F;
}

/* Of weights w the combiners divide by 1, Σ w, √Σ w². */
static double divisor_of(enum sumac_reduce_op combiner, double sum, double sum_of_squares)
{
    if (combiner == SUMAC_REDUCE_SUM)
        return 1;
    return combiner == SUMAC_REDUCE_MEAN ? sum : sqrt(sum_of_squares);
}

static enum sumac_status combine(
    const struct embedding_table *table, const struct sumac_value *given,
    enum sumac_reduce_op combiner, struct row_sums *sums, uint8_t *to, struct sumac_error *error)
{
    const struct bag bag = bag_of(given);
    const uint64_t count = count_elements(bag.ids);
    const enum sumac_dtype dtype = bag.weights == NULL ? SUMAC_FLOAT64 : table->tensor->dtype;
    double sum = 0, sum_of_squares = 0;
    enum sumac_status status = SUMAC_OK;

    begin_sums(table->tensor->dtype, &bag, table->columns, sums);
    for (uint64_t i = 0; status == SUMAC_OK && i < count; i++) {
        const double weight = weight_at(bag.weights, i, table->tensor->dtype);
        const uint8_t *row = NULL;
        status = find_row(table, bag.ids, i, &row, error);
        if (status == SUMAC_OK)
            add_row(table->tensor->dtype, row, weight, table->columns, sums);
        sum = narrow(dtype, sum + weight);
        sum_of_squares = narrow(dtype, sum_of_squares + narrow(dtype, weight * weight));
    }
    if (status == SUMAC_OK)
        write_row(
            table->tensor->dtype, sums, divisor_of(combiner, sum, sum_of_squares), table->columns,
            to);
    return status;
}

static bool are_here(const struct sumac_value *bags)
{
    for (uint32_t i = 0; i < bags->count; i++) {
        const struct bag bag = bag_of(bags->items[i]);
        if (!value_is_here(bag.ids) || (bag.weights != NULL && !value_is_here(bag.weights)))
            return false;
    }
    return true;
}

static enum sumac_status check_bag(
    const struct embedding_table *table, const struct sumac_value *given, struct sumac_error *error)
{
    const struct bag bag = bag_of(given);
    char ids[128], weights[128];

    const enum sumac_status status = check_ids(table, bag.ids, error);
    if (status != SUMAC_OK || bag.weights == NULL)
        return status;
    if (!sumac_dtype_is_float(table->tensor->dtype))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: rows of %s are not weighted; weights are for rows of float types", table->call,
            sumac_dtype_name(table->tensor->dtype));
    if (bag.weights->kind == SUMAC_VALUE_TENSOR &&
        sumac_dtype_is_float(bag.weights->tensor.dtype) &&
        sumac_shape_equal(&bag.weights->tensor.shape, &bag.ids->tensor.shape))
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_WRONG_SHAPE,
        "%s: the ids are %s and their weights %s; give a float weight for each id", table->call,
        describe(bag.ids, ids, sizeof ids), describe(bag.weights, weights, sizeof weights));
}

static enum sumac_status check_lookup(
    const struct embedding_table *table, const struct sumac_value *bags,
    enum sumac_reduce_op combiner, struct sumac_error *error)
{
    const bool is_float = sumac_dtype_is_float(table->tensor->dtype);
    enum sumac_status status = SUMAC_OK;

    if (sumac_value_kind(bags) != SUMAC_VALUE_LIST && sumac_value_kind(bags) != SUMAC_VALUE_TUPLE)
        return fail_argument(
            error, "%s: bags is a %s; give a list of ids, one for each row of the result",
            table->call, sumac_value_kind_name(sumac_value_kind(bags)));
    if (combiner != SUMAC_REDUCE_SUM && combiner != SUMAC_REDUCE_MEAN &&
        combiner != SUMAC_REDUCE_SQRTN)
        return fail_argument(
            error, "%s: a combiner %d; there are SUM (%d), MEAN (%d) and SQRTN (%d)", table->call,
            (int)combiner, SUMAC_REDUCE_SUM, SUMAC_REDUCE_MEAN, SUMAC_REDUCE_SQRTN);
    if (table->tensor->dtype == SUMAC_BOOL || (combiner != SUMAC_REDUCE_SUM && !is_float))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: rows of %s are not combined so; integers are summed, float types divided, too",
            table->call, sumac_dtype_name(table->tensor->dtype));
    for (uint32_t i = 0; status == SUMAC_OK && i < bags->count; i++)
        status = check_bag(table, bags->items[i], error);
    return status;
}

enum sumac_status sumac_value_lookup(
    const struct sumac_value *value, const struct sumac_value *bags, enum sumac_reduce_op combiner,
    struct sumac_value **result, struct sumac_error *error)
{
    static const char call[] = "sumac_value_lookup";
    struct embedding_table table;
    void *elements;

    enum sumac_status status = open_table(call, value, &table, error);
    if (status == SUMAC_OK && result == NULL)
        status = fail_for_null(error, call, "result");
    if (status == SUMAC_OK)
        status = check_lookup(&table, bags, combiner, error);
    if (status != SUMAC_OK)
        return status;
    if (!value_is_here(value) || !are_here(bags))
        return ask_there(value, bags, combiner, result, error);
    /* the widest of them; float32 and float64 have their zeros of the same bits */
    uint64_t *scratch = calloc((size_t)table.columns + 1, sizeof *scratch);
    struct sumac_shape shape = table.tensor->shape;
    shape.extent[0] = bags->count;
    struct sumac_value *made = value_make_tensor(table.tensor->dtype, &shape, &elements);
    struct row_sums sums = {
        .singles = (float *)(void *)scratch,
        .doubles = (double *)(void *)scratch,
        .integers = scratch};
    if (scratch == NULL || made == NULL)
        status = value_fail_for_memory(error);
    for (uint32_t i = 0; status == SUMAC_OK && i < bags->count; i++)
        status = combine(
            &table, bags->items[i], combiner, &sums, (uint8_t *)elements + i * table.row_bytes,
            error);
    free(scratch);
    if (status == SUMAC_OK)
        *result = made;
    else
        sumac_value_unref(made);
    return status;
}
