/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c -- what the replicas have becomes one value: reduced, or gathered, leaf by leaf, in the
 * order of the replicas, so that who comes first changes no bit. */
#include "axes.h"
#include "pass.h"
#include "strategy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dtype.h"
#include "error.h"
#include "peers.h"
#include "reduce.h"
#include "text.h"

enum sumac_reduce_op sumac_reduce_op_parse(const char *name)
{
    if (name != NULL && strcasecmp(name, "sum") == 0)
        return SUMAC_REDUCE_SUM;
    return name != NULL && strcasecmp(name, "mean") == 0 ? SUMAC_REDUCE_MEAN
                                                         : (enum sumac_reduce_op)0;
}

#define BYTES_AT_ONCE 65536u /* of a result: what one thread computes before it looks for more */
#define STREAMED_BYTES_MIN (UINT64_C(32) << 20) /* read and written: more than caches hold */

/* What is reduced or gathered, of how many replicas. */
struct collect {
    struct sumac_strategy *strategy; /* whose threads and memory it takes */
    enum sumac_reduce_op op;
    const struct sumac_axes *axes; /* NULL: none are given */
    int64_t axis;
    uint32_t count;
    const char *call;
};

static enum sumac_status fail_leaf(
    const struct collect *collect, const struct value_path *path, const char *why,
    struct sumac_error *error)
{
    char where[160];

    assert(collect->call != NULL);
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE, "%s: the value%s%s %s",
        collect->call, path == NULL ? "" : " at ", value_path_print(path, where, sizeof where),
        why);
}

/* ---- one after the other */

static void join_share(const void *context, uint64_t first, uint64_t count)
{
    pass_join(context, first, count);
}

/* Along `axis`, which all have; other extents are equal. */
static enum sumac_status concatenate(
    const struct collect *collect, const struct sumac_tensor *const *tensors, uint32_t axis,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_shape shape = tensors[0]->shape;
    uint64_t inner = dtype_bytes(tensors[0]->dtype), row_bytes[SUMAC_REPLICAS_MAX];
    const uint8_t *from[SUMAC_REPLICAS_MAX];
    struct pass_join join = {.from = from, .row_bytes = row_bytes, .count = collect->count};
    void *elements;

    assert(axis < shape.rank);
    shape.extent[axis] = 0;
    for (uint32_t i = axis + 1; i < shape.rank; i++)
        inner *= shape.extent[i];
    for (uint32_t i = 0; i < collect->count; i++) {
        const uint64_t extent = tensors[i]->shape.extent[axis];
        if (__builtin_add_overflow(shape.extent[axis], extent, &shape.extent[axis]))
            return value_fail_for_memory(error);
        from[i] = sumac_tensor_data(tensors[i]);
        row_bytes[i] = extent * inner;
        join.all_bytes += row_bytes[i];
    }
    struct sumac_value *value =
        results_make_tensor(collect->strategy->results, tensors[0]->dtype, &shape, &elements);
    if (value == NULL)
        return value_fail_for_memory(error);
    const uint64_t bytes = sumac_tensor_bytes(&value->tensor);
    struct shares shares = {
        .function = join_share,
        .context = &join,
        .bytes = 2 * bytes,
        .units = bytes,
        .units_at_once = BYTES_AT_ONCE};
    join.to = elements;
    join.stream = shares.bytes >= STREAMED_BYTES_MIN;
    shares_run(collect->strategy, &shares);
    *result = value;
    return SUMAC_OK;
}

/* ---- reduced */

static void sum_share(const void *context, uint64_t first, uint64_t count)
{
    pass_sum(context, first, count);
}

/* Element by element, in one pass over all. */
static enum sumac_status reduce_elements(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_tensor *first = tensors[0];
    const uint64_t bytes = sumac_tensor_bytes(first);
    const void *from[SUMAC_REPLICAS_MAX];
    void *to;

    assert(collect->count <= SUMAC_REPLICAS_MAX);
    if (!reduce_has(collect->op, first->dtype)) /* a mean of integers */
        return axes_reduce(
            &(struct axes_reduction){.op = collect->op}, tensors, collect->count, result, error);
    struct sumac_value *value =
        results_make_tensor(collect->strategy->results, first->dtype, &first->shape, &to);
    if (value == NULL)
        return value_fail_for_memory(error);
    for (uint32_t i = 0; i < collect->count; i++)
        from[i] = sumac_tensor_data(tensors[i]);
    struct pass_sum sum = {
        .op = collect->op, .dtype = first->dtype, .from = from, .count = collect->count, .to = to};
    struct shares shares = {
        .function = sum_share,
        .context = &sum,
        .bytes = bytes * (collect->count + 1),
        .units = bytes / dtype_bytes(first->dtype),
        .units_at_once = BYTES_AT_ONCE / dtype_bytes(first->dtype)};
    sum.stream = shares.bytes >= STREAMED_BYTES_MIN;
    shares_run(collect->strategy, &shares);
    *result = value;
    return SUMAC_OK;
}

/* Tensors ÷ so many. */
static enum sumac_status
divide(uint32_t replicas, struct sumac_value **rows, struct sumac_error *error)
{
    const struct sumac_tensor *const tensor = &(*rows)->tensor;
    const struct axes_reduction reduction = {.op = SUMAC_REDUCE_MEAN, .divisor = replicas};
    struct sumac_value *divided;

    assert(replicas > 0);
    const enum sumac_status status = axes_reduce(&reduction, &tensor, 1, &divided, error);
    if (status != SUMAC_OK)
        return status;
    sumac_value_unref(*rows);
    *rows = divided;
    return SUMAC_OK;
}

enum sumac_status collect_own_sum(
    struct sumac_strategy *strategy, struct sumac_value *const *leaves, struct sumac_value **sum,
    struct sumac_error *error)
{
    const struct collect own = {
        .strategy = strategy, .op = SUMAC_REDUCE_SUM, .count = strategy->replicas};
    const struct sumac_tensor *tensors[SUMAC_REPLICAS_MAX];

    assert(strategy->replicas <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < strategy->replicas; i++)
        tensors[i] = &leaves[i]->tensor;
    if (strategy->replicas > 1)
        return reduce_elements(&own, tensors, sum, error);
    *sum = sumac_value_ref(leaves[0]);
    return SUMAC_OK;
}

/* Do types and shapes agree, but for the axes of which each replica has as much as it likes? */
static enum sumac_status check_alike(
    const struct collect *collect, const struct sumac_tensor *const *tensors, uint32_t free_axes,
    const struct value_path *path, struct sumac_error *error)
{
    const struct sumac_tensor *first = tensors[0];

    for (uint32_t i = 1; i < collect->count; i++) {
        const struct sumac_tensor *other = tensors[i];
        if (other->dtype != first->dtype)
            return fail_leaf(collect, path, "is of another type in another replica", error);
        if (other->shape.rank != first->shape.rank)
            return fail_leaf(collect, path, "has another rank in another replica", error);
        for (uint32_t axis = 0; axis < first->shape.rank; axis++)
            if ((free_axes >> axis & 1u) == 0 &&
                other->shape.extent[axis] != first->shape.extent[axis])
                return fail_leaf(
                    collect, path,
                    free_axes == 0
                        ? "has another shape in another replica"
                        : "has another shape in another replica, and not only along the axis",
                    error);
    }
    return SUMAC_OK;
}

/* Of axes that are summed each replica may have more or less than others. */
static enum sumac_status check_shapes(
    const struct collect *collect, const struct sumac_tensor *const *tensors, uint32_t summed,
    const struct value_path *path, struct sumac_error *error)
{
    if (axes_result_dtype(collect->op, tensors[0]->dtype) == SUMAC_DTYPE_UNSPECIFIED)
        return fail_leaf(collect, path, "is of a type that cannot be reduced, bool", error);
    return check_alike(collect, tensors, summed, path, error);
}

static enum sumac_status reduce_tensors(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    const struct value_path *path, struct sumac_value **result, struct sumac_error *error)
{
    uint32_t summed = 0;
    enum sumac_status status = SUMAC_OK;

    assert(collect->count > 0);
    if (collect->axes != NULL)
        status = axes_read(collect->axes, tensors[0]->shape.rank, &summed, error);
    if (status == SUMAC_OK)
        status = check_shapes(collect, tensors, summed, path, error);
    if (status != SUMAC_OK)
        return status;
    if (collect->axes == NULL && peers_sum_apart(collect->strategy, collect->op, tensors[0]))
        return peers_take_sum(collect->strategy, tensors[0], result, error);
    return collect->axes == NULL
               ? reduce_elements(collect, tensors, result, error)
               : axes_reduce(
                     &(struct axes_reduction){.op = collect->op, .summed = summed}, tensors,
                     collect->count, result, error);
}

/* The rows of all, and their indices; MEAN ÷ the replicas. */
static enum sumac_status reduce_slices(
    const struct collect *collect, struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_tensor *rows[SUMAC_REPLICAS_MAX], *indices[SUMAC_REPLICAS_MAX];
    struct sumac_value *all_rows = NULL, *all_indices = NULL;

    assert(leaves[0]->kind == SUMAC_VALUE_SLICES);
    assert(collect->count <= SUMAC_REPLICAS_MAX);
    if (collect->axes != NULL)
        return fail_leaf(collect, path, "are slices, which have no axes to be summed over", error);
    for (uint32_t i = 0; i < collect->count; i++) {
        rows[i] = &leaves[i]->items[0]->tensor;
        indices[i] = &leaves[i]->items[1]->tensor;
        if (!sumac_shape_equal(&leaves[i]->dense, &leaves[0]->dense))
            return fail_leaf(collect, path, "are slices of another dense shape elsewhere", error);
        if (indices[i]->dtype != indices[0]->dtype)
            return fail_leaf(collect, path, "has indices of another type elsewhere", error);
    }
    enum sumac_status status = check_shapes(collect, rows, 1u, path, error);
    if (status == SUMAC_OK)
        status = concatenate(collect, rows, 0, &all_rows, error);
    if (status == SUMAC_OK)
        status = concatenate(collect, indices, 0, &all_indices, error);
    if (status == SUMAC_OK && collect->op == SUMAC_REDUCE_MEAN)
        status = divide(collect->count, &all_rows, error);
    if (status != SUMAC_OK) {
        sumac_value_unref(all_rows);
        sumac_value_unref(all_indices);
        return status;
    }
    *result = sumac_value_slices(all_rows, all_indices, leaves[0]->dense);
    return *result == NULL ? value_fail_for_memory(error) : SUMAC_OK;
}

static enum sumac_status reduce_leaf(
    void *context, struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_tensor *tensors[SUMAC_REPLICAS_MAX];

    assert(collect->count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < collect->count; i++) {
        if (leaves[i]->kind != SUMAC_VALUE_TENSOR && leaves[i]->kind != SUMAC_VALUE_SLICES)
            return fail_leaf(collect, path, "is no tensor", error);
        if (leaves[i]->kind != leaves[0]->kind)
            return fail_leaf(
                collect, path, "is a tensor in some replicas and slices in others", error);
        tensors[i] = &leaves[i]->tensor;
    }
    if (leaves[0]->kind == SUMAC_VALUE_SLICES)
        return reduce_slices(collect, leaves, path, mapped, error);
    return reduce_tensors(collect, tensors, path, mapped, error);
}

enum sumac_status collect_all_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, struct sumac_value *const *values,
    struct sumac_value **result, struct sumac_error *error)
{
    struct collect collect = {
        .strategy = strategy, .op = op, .count = strategy->in_sync, .call = "all_reduce"};

    return value_zip(values, strategy->in_sync, reduce_leaf, &collect, result, error);
}

/* ---- gathered */

static enum sumac_status check_axis(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    const struct value_path *path, struct sumac_error *error)
{
    const struct sumac_tensor *first = tensors[0];
    char why[96];

    if (first->shape.rank == 0)
        return fail_leaf(
            collect, path, "is a scalar, which has no axis to be gathered along", error);
    if (collect->axis < 0 || collect->axis >= (int64_t)first->shape.rank) {
        (void)text_print(
            why, sizeof why, "has the axes 0 to %" PRIu32 ", and %" PRId64 " is none of them",
            first->shape.rank - 1, collect->axis);
        return fail_leaf(collect, path, why, error);
    }
    return check_alike(collect, tensors, UINT32_C(1) << collect->axis, path, error);
}

static enum sumac_status gather_leaf(
    void *context, struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_tensor *tensors[SUMAC_REPLICAS_MAX];

    assert(collect->count > 0);
    assert(collect->count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < collect->count; i++) {
        if (leaves[i]->kind == SUMAC_VALUE_SLICES)
            return fail(
                error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
                "%s: slices are not gathered; gather their values and indices", collect->call);
        if (leaves[i]->kind != SUMAC_VALUE_TENSOR)
            return fail_leaf(collect, path, "is no tensor", error);
        tensors[i] = &leaves[i]->tensor;
    }
    const enum sumac_status status = check_axis(collect, tensors, path, error);
    return status == SUMAC_OK
               ? concatenate(collect, tensors, (uint32_t)collect->axis, mapped, error)
               : status;
}

enum sumac_status collect_all_gather(
    struct sumac_strategy *strategy, int64_t axis, struct sumac_value *const *values,
    struct sumac_value **result, struct sumac_error *error)
{
    struct collect collect = {
        .strategy = strategy, .axis = axis, .count = strategy->in_sync, .call = "all_gather"};

    return value_zip(values, strategy->in_sync, gather_leaf, &collect, result, error);
}

/* ---- a strategy's own */

/* What each replica of this process has of it. */
static enum sumac_status select_own(
    const struct sumac_strategy *strategy, struct sumac_value *value, struct sumac_value **own,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++)
        status = sumac_value_select(value, strategy->first + i, &own[i], error);
    return status;
}

static enum sumac_status mark_same(
    void *context, struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    (void)context;
    (void)path;
    *mapped = sumac_value_mirrored(sumac_value_ref(leaf), 1, 0);
    return *mapped == NULL ? value_fail_for_memory(error) : SUMAC_OK;
}

/* A leaf that is the same in all replicas, as far as this process knows, becomes mirrored; one that
 * is not distributed is the worker's own where each has one replica. */
static enum sumac_status mark_leaf(
    void *context, struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = context;

    if (leaf->kind == SUMAC_VALUE_MIRRORED)
        return value_map(leaf->items[0], mark_same, NULL, mapped, error);
    if (leaf->kind != SUMAC_VALUE_PER_REPLICA && strategy->replicas > 1)
        return mark_same(NULL, leaf, path, mapped, error);
    *mapped = sumac_value_ref(leaf->kind == SUMAC_VALUE_PER_REPLICA ? leaf->items[0] : leaf);
    return SUMAC_OK;
}

/* A leaf that is another replica's, too, than those that there are? */
static enum sumac_status check_items(
    void *context, struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;

    if (value_is_leaf_of_replicas(leaf) &&
        (uint64_t)leaf->first + leaf->count > collect->strategy->in_sync)
        return fail_leaf(collect, path, "has items of more replicas than there are", error);
    *mapped = sumac_value_ref(leaf);
    return SUMAC_OK;
}

/* What each replica of this process has of it: of one nest, and of types and shapes that may meet.
 * `own` (replicas) is given what could be selected. */
static enum sumac_status take_own(
    const struct collect *collect, const struct call *call, struct sumac_value *value,
    struct sumac_value **own, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = collect->strategy;
    struct sumac_value *checked = NULL;
    struct call one = *call, other = *call;
    struct sumac_error why;

    enum sumac_status status =
        value_map(value, check_items, (void *)(uintptr_t)collect, &checked, error);
    if (status == SUMAC_OK) {
        sumac_value_unref(checked);
        status = select_own(strategy, value, own, error);
    }
    one.value = own[0];
    assert(status != SUMAC_OK || one.value != NULL);
    for (uint32_t i = 1; status == SUMAC_OK && i < strategy->replicas; i++) {
        other.value = own[i];
        status = call_compare(&one, strategy->first, &other, strategy->first + i, error);
        if (status == SUMAC_OK && sumac_value_same_nest(own[0], own[i], &why) != SUMAC_OK)
            status = fail(
                error, why.status, why.reason, "%s: replicas %" PRIu32 " and %" PRIu32 ": %.380s",
                collect->call, strategy->first, strategy->first + i, why.text);
    }
    return status;
}

/* What each leaf is said to be, for the workers to compare: "per_replica, mirrored". */
static enum sumac_status name_leaf(
    void *context, struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    char *const text = context;
    const size_t used = strlen(text);

    (void)path;
    (void)error;
    (void)text_print(
        text + used, CALL_NAME_BYTES_MAX - used, "%s%s", used == 0 ? "" : ", ",
        leaf->kind == SUMAC_VALUE_MIRRORED ? "mirrored" : "per_replica");
    *mapped = sumac_value_ref(leaf);
    return SUMAC_OK;
}

/* Leaf by leaf, of what all replicas have; `leaf` is given one more, which says whether it is the
 * same in all of them. */
static enum sumac_status collect_value(
    struct collect *collect, struct call *call, struct sumac_value *value, value_zip_leaf *leaf,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_strategy *strategy = collect->strategy;
    struct sumac_value **own = calloc(strategy->replicas, sizeof *own), **all = NULL;
    struct sumac_value **zipped = calloc((size_t)strategy->in_sync + 1, sizeof *zipped);
    struct sumac_value *marked = NULL, *same = NULL;
    struct sumac_error why;
    char name[CALL_NAME_BYTES_MAX] = "";
    enum sumac_status status = own == NULL || zipped == NULL
                                   ? value_fail_for_memory(&why)
                                   : take_own(collect, call, value, own, &why);

    collect->count = strategy->in_sync;
    if (status == SUMAC_OK)
        status = value_map(value, mark_leaf, strategy, &marked, &why);
    if (status == SUMAC_OK && value_map(marked, name_leaf, name, &same, &why) == SUMAC_OK)
        sumac_value_unref(same);
    call->name = name;
    if (own != NULL && zipped != NULL) {
        call->value = own[0];
        status = call_hear_all(strategy, call, own, status == SUMAC_OK ? NULL : &why, &all, &why);
    }
    if (status == SUMAC_OK) {
        memcpy(zipped, all, strategy->in_sync * sizeof *zipped);
        zipped[strategy->in_sync] = marked;
        status = value_zip(zipped, strategy->in_sync + 1, leaf, collect, result, &why);
    }
    call_forget_all(strategy, all);
    for (uint32_t i = 0; own != NULL && i < strategy->replicas; i++)
        sumac_value_unref(own[i]);
    sumac_value_unref(marked);
    free(own);
    free(zipped);
    if (status != SUMAC_OK && error != NULL)
        *error = why;
    return status;
}

/* The ps have summed it all the same, as other tensors of its size: the next sum is another leaf's.
 */
static enum sumac_status pass_over_sum(
    const struct collect *collect, const struct sumac_value *leaf, struct sumac_error *error)
{
    struct sumac_value *sum = NULL;

    assert(leaf->kind != SUMAC_VALUE_MIRRORED);
    if (collect->axes != NULL || leaf->kind != SUMAC_VALUE_TENSOR ||
        !peers_sum_apart(collect->strategy, collect->op, &leaf->tensor))
        return SUMAC_OK;
    const enum sumac_status status = peers_take_sum(collect->strategy, &leaf->tensor, &sum, error);
    sumac_value_unref(sum);
    return status;
}

static enum sumac_status reduce_whole_leaf(
    void *context, struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_value *leaf = leaves[collect->count];

    if (leaf->kind != SUMAC_VALUE_MIRRORED)
        return reduce_leaf(context, leaves, path, mapped, error);
    if (collect->op == SUMAC_REDUCE_SUM)
        return fail_leaf(
            collect, path,
            "is the same in all replicas, and its SUM is not told from R times it: reduce by MEAN, "
            "or a per_replica value",
            error);
    if (collect->count == 1)
        return reduce_leaf(context, leaves, path, mapped, error);
    const enum sumac_status status = pass_over_sum(collect, leaf->items[0], error);
    if (status == SUMAC_OK)
        *mapped = sumac_value_ref(leaf->items[0]);
    return status;
}

static enum sumac_status check_call(
    struct sumac_strategy *strategy, const char *call, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    if (strategy == NULL || value == NULL || result == NULL)
        return fail_for_null(
            error, call,
            strategy == NULL ? "strategy"
            : value == NULL  ? "value"
                             : "result");
    return context_check_cross(strategy, call, error);
}

enum sumac_status sumac_strategy_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, struct sumac_value *value,
    const struct sumac_axes *axes, struct sumac_value **result, struct sumac_error *error)
{
    static const char name[] = "sumac_strategy_reduce";
    const struct sumac_axes *given = axes != NULL && axes->given ? axes : NULL;
    struct collect collect = {.strategy = strategy, .op = op, .axes = given, .call = "reduce"};
    struct call call = {.kind = CALL_REDUCE, .op = op, .axes = given};

    enum sumac_status status = check_call(strategy, name, value, result, error);
    if (status == SUMAC_OK && axes == NULL)
        status = fail_for_null(error, name, "axes");
    if (status == SUMAC_OK)
        status = reduce_op_check(op, error);
    return status == SUMAC_OK
               ? collect_value(&collect, &call, value, reduce_whole_leaf, result, error)
               : status;
}

enum sumac_status sumac_strategy_batch_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, struct sumac_value *values,
    struct sumac_value **results, struct sumac_error *error)
{
    static const char call[] = "sumac_strategy_batch_reduce";
    const struct sumac_axes none = {.given = false};

    enum sumac_status status = check_call(strategy, call, values, results, error);
    if (status == SUMAC_OK && values->kind != SUMAC_VALUE_LIST && values->kind != SUMAC_VALUE_TUPLE)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "%s: values is a %s; it is a list of values", call,
            sumac_value_kind_name(values->kind));
    struct sumac_value **items =
        status == SUMAC_OK ? calloc((size_t)values->count + 1, sizeof *items) : NULL;
    if (status == SUMAC_OK && items == NULL)
        status = value_fail_for_memory(error);
    for (uint32_t i = 0; status == SUMAC_OK && i < values->count; i++)
        status = sumac_strategy_reduce(strategy, op, values->items[i], &none, &items[i], error);
    if (status == SUMAC_OK) {
        *results = sumac_value_list(items, values->count);
        status = *results == NULL ? value_fail_for_memory(error) : SUMAC_OK;
    } else {
        for (uint32_t i = 0; items != NULL && i < values->count; i++)
            sumac_value_unref(items[i]);
    }
    free(items);
    return status;
}

enum sumac_status sumac_strategy_gather(
    struct sumac_strategy *strategy, struct sumac_value *value, int64_t axis,
    struct sumac_value **result, struct sumac_error *error)
{
    struct collect collect = {.strategy = strategy, .axis = axis, .call = "gather"};
    struct call call = {.kind = CALL_GATHER, .axis = axis};

    const enum sumac_status status =
        check_call(strategy, "sumac_strategy_gather", value, result, error);
    return status == SUMAC_OK ? collect_value(&collect, &call, value, gather_leaf, result, error)
                              : status;
}

/* ---- gradients */

/* Rows first … first + count - 1 along an axis. */
static enum sumac_status
cut(const struct sumac_tensor *whole, uint32_t axis, struct sumac_range range,
    struct sumac_value **part, struct sumac_error *error)
{
    struct sumac_shape shape = whole->shape;
    uint64_t outer = 1, inner = dtype_bytes(whole->dtype);
    void *elements;

    assert(axis < shape.rank);
    assert(range.first + range.count <= shape.extent[axis]);
    for (uint32_t i = 0; i < axis; i++)
        outer *= shape.extent[i];
    for (uint32_t i = axis + 1; i < shape.rank; i++)
        inner *= shape.extent[i];
    const uint64_t stride = shape.extent[axis] * inner, bytes = range.count * inner;
    shape.extent[axis] = range.count;
    struct sumac_value *value = value_make_tensor(whole->dtype, &shape, &elements);
    if (value == NULL)
        return value_fail_for_memory(error);
    for (uint64_t o = 0; o < outer && bytes > 0; o++)
        memcpy(
            (uint8_t *)elements + o * bytes,
            (const uint8_t *)sumac_tensor_data(whole) + o * stride + range.first * inner,
            (size_t)bytes);
    *part = value;
    return SUMAC_OK;
}

static enum sumac_status extent_leaf(
    void *context, struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_tensor *tensor = &leaf->tensor;

    assert(collect->count == 1);
    if (leaf->kind != SUMAC_VALUE_TENSOR)
        return fail_leaf(collect, path, "is no tensor", error);
    const enum sumac_status status = check_axis(collect, &tensor, path, error);
    if (status != SUMAC_OK)
        return status;
    *mapped = sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), &tensor->shape.extent[collect->axis]);
    return *mapped == NULL ? value_fail_for_memory(error) : SUMAC_OK;
}

struct own_part {
    struct collect collect;
    uint32_t replica;
};

/* Of what was gathered, its own: `leaves` are the sum, and each replica's extent. */
static enum sumac_status own_leaf(
    void *context, struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct own_part *own = context;
    const uint64_t *extents = sumac_value_data(leaves[1]);
    const struct sumac_tensor *sum = &leaves[0]->tensor;
    struct sumac_range range = {.first = 0, .count = extents[own->replica]};
    uint64_t all = 0;

    assert(own->replica < leaves[1]->tensor.shape.extent[0]);
    if (leaves[0]->kind != SUMAC_VALUE_TENSOR)
        return fail_leaf(&own->collect, path, "is no tensor", error);
    const enum sumac_status status = check_axis(&own->collect, &sum, path, error);
    if (status != SUMAC_OK)
        return status;
    for (uint32_t i = 0; i < (uint32_t)leaves[1]->tensor.shape.extent[0]; i++) {
        range.first += i < own->replica ? extents[i] : 0;
        all += extents[i];
    }
    if (sum->shape.extent[own->collect.axis] != all)
        return fail_leaf(
            &own->collect, path, "is no gradient of what the replicas have gathered together",
            error);
    return cut(sum, (uint32_t)own->collect.axis, range, mapped, error);
}

enum sumac_status sumac_replica_all_gather_gradient(
    struct sumac_replica_context *replica, struct sumac_value *upstream, struct sumac_value *local,
    int64_t axis, struct sumac_value **gradient, struct sumac_error *error)
{
    struct own_part own = {
        .collect = {.axis = axis, .count = 1, .call = "all_gather_gradient"}, /* of one, here */
        .replica = sumac_replica_id(replica)};
    struct sumac_value *extents = NULL, *all = NULL, *sum = NULL;
    struct sumac_error why;

    if (upstream == NULL || local == NULL || gradient == NULL)
        return fail_for_null(
            error, "sumac_replica_all_gather_gradient",
            upstream == NULL ? "upstream"
            : local == NULL  ? "local"
                             : "gradient");
    enum sumac_status status = sumac_value_same_nest(upstream, local, error);
    if (status == SUMAC_OK)
        status = value_map(local, extent_leaf, &own.collect, &extents, error);
    if (status == SUMAC_OK)
        status = sumac_replica_all_gather(replica, extents, 0, NULL, &all, error);
    if (status == SUMAC_OK)
        status = sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, upstream, NULL, &sum, error);
    if (status == SUMAC_OK) {
        struct sumac_value *const both[] = {sum, all};
        status = value_zip(both, 2, own_leaf, &own, gradient, &why);
        if (status != SUMAC_OK && error != NULL)
            *error = why;
    }
    sumac_value_unref(extents);
    sumac_value_unref(all);
    sumac_value_unref(sum);
    return status;
}
