/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c -- what the replicas have becomes one value: reduced, or gathered, leaf by leaf, in the
 * order of the replicas, so that who comes first changes no bit. */
#include "collect.h"

#include <assert.h>
#include <inttypes.h>
#include <strings.h>

#include "axes.h"
#include "dtype.h"
#include "error.h"
#include "array_pass.h"
#include "peers.h"
#include "reduce.h"
#include "text.h"
#include "host_copy.h"

enum sumac_reduce_op sumac_reduce_op_parse(const char *name)
{
    if (name != NULL && strcasecmp(name, "sum") == 0)
        return SUMAC_REDUCE_SUM;
    return name != NULL && strcasecmp(name, "mean") == 0 ? SUMAC_REDUCE_MEAN
                                                         : (enum sumac_reduce_op)0;
}

enum sumac_status collect_fail_leaf(
    const struct collect *collect, const struct value_path *path, const char *why,
    struct sumac_error *error)
{
    char where[160];

    assert(collect->call != NULL);
    return fail_invalid(
        error, SUMAC_REASON_WRONG_DATA_TYPE, "%s: the value%s%s %s", collect->call,
        path == NULL ? "" : " at ", value_path_print(path, where, sizeof where), why);
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
    assert(collect->count <= SUMAC_REPLICAS_MAX);
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
    if (!host_copy_is_here(tensors[0]->buffer))
        return on_device_add(
            collect->on_device, &(struct on_device_call){.kind = GROUP_ALL_GATHER}, tensors, &shape,
            result, error);
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
        .units_at_once = COLLECT_BYTES_AT_ONCE};
    join.to = elements;
    join.stream = shares.bytes >= COLLECT_STREAMED_BYTES_MIN;
    shares_run(collect->strategy, &shares);
    *result = value;
    return SUMAC_OK;
}

/* ---- reduced */

/* Do types and shapes agree, but for the axes of which each replica has as much as it likes? */
static enum sumac_status check_alike(
    const struct collect *collect, const struct sumac_tensor *const *tensors, uint32_t free_axes,
    const struct value_path *path, struct sumac_error *error)
{
    const struct sumac_tensor *first = tensors[0];

    for (uint32_t i = 1; i < collect->count; i++) {
        const struct sumac_tensor *other = tensors[i];
        if (other->dtype != first->dtype)
            return collect_fail_leaf(collect, path, "is of another type in another replica", error);
        if (other->shape.rank != first->shape.rank)
            return collect_fail_leaf(collect, path, "has another rank in another replica", error);
        for (uint32_t axis = 0; axis < first->shape.rank; axis++)
            if ((free_axes >> axis & 1u) == 0 &&
                other->shape.extent[axis] != first->shape.extent[axis])
                return collect_fail_leaf(
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
        return collect_fail_leaf(collect, path, "is of a type that cannot be reduced, bool", error);
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
               ? collect_reduce_elements(collect, tensors, result, error)
               : axes_reduce(
                     &(struct axes_reduction){.op = collect->op, .summed = summed}, tensors,
                     collect->count, result, error);
}

/* The rows of all, and their indices; MEAN ÷ the replicas. */
static enum sumac_status reduce_slices(
    const struct collect *collect, const struct sumac_value *const *leaves,
    const struct value_path *path, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_tensor *rows[SUMAC_REPLICAS_MAX], *indices[SUMAC_REPLICAS_MAX];
    struct sumac_value *all_rows = NULL, *all_indices = NULL;

    assert(leaves[0]->kind == SUMAC_VALUE_INDEXED_SLICES);
    assert(collect->count <= SUMAC_REPLICAS_MAX);
    if (collect->axes != NULL)
        return collect_fail_leaf(
            collect, path, "are slices, which have no axes to be summed over", error);
    for (uint32_t i = 0; i < collect->count; i++) {
        rows[i] = &leaves[i]->items[0]->tensor;
        indices[i] = &leaves[i]->items[1]->tensor;
        if (!sumac_shape_equal(&leaves[i]->dense, &leaves[0]->dense))
            return collect_fail_leaf(
                collect, path, "are slices of another dense shape elsewhere", error);
        if (indices[i]->dtype != indices[0]->dtype)
            return collect_fail_leaf(collect, path, "has indices of another type elsewhere", error);
    }
    enum sumac_status status = check_shapes(collect, rows, 1u, path, error);
    if (status == SUMAC_OK)
        status = concatenate(collect, rows, 0, &all_rows, error);
    if (status == SUMAC_OK)
        status = concatenate(collect, indices, 0, &all_indices, error);
    if (status == SUMAC_OK && collect->op == SUMAC_REDUCE_MEAN) {
        const struct axes_reduction mean = {.op = SUMAC_REDUCE_MEAN, .divisor = collect->count};
        struct sumac_value *const undivided = all_rows;
        const struct sumac_tensor *const sums = &undivided->tensor;
        all_rows = NULL;
        status = axes_reduce(&mean, &sums, 1, &all_rows, error);
        sumac_value_unref(undivided);
    }
    if (status != SUMAC_OK) {
        sumac_value_unref(all_rows);
        sumac_value_unref(all_indices);
        return status;
    }
    if (all_rows->kind == SUMAC_VALUE_MIRRORED)
        return on_device_make_slices(all_rows, all_indices, &leaves[0]->dense, result, error);
    return value_give(
        sumac_value_indexed_slices(all_rows, all_indices, leaves[0]->dense), result, error);
}

enum sumac_status collect_reduce_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_tensor *tensors[SUMAC_REPLICAS_MAX];

    assert(collect->count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < collect->count; i++) {
        if (leaves[i]->kind != SUMAC_VALUE_TENSOR && leaves[i]->kind != SUMAC_VALUE_INDEXED_SLICES)
            return collect_fail_leaf(collect, path, "is no tensor", error);
        if (leaves[i]->kind != leaves[0]->kind)
            return collect_fail_leaf(
                collect, path, "is a tensor in some replicas and slices in others", error);
        tensors[i] = &leaves[i]->tensor;
    }
    if (leaves[0]->kind == SUMAC_VALUE_INDEXED_SLICES)
        return reduce_slices(collect, leaves, path, mapped, error);
    return reduce_tensors(collect, tensors, path, mapped, error);
}

/* ---- on devices */

/* Do the devices do it themselves, all of it? */
static bool is_theirs(const struct collect *collect, const struct sumac_value *const *leaves)
{
    const struct sumac_value *first = leaves[0];
    const bool slices = first->kind == SUMAC_VALUE_INDEXED_SLICES;
    const bool same = collect->marks && leaves[collect->count]->kind == SUMAC_VALUE_MIRRORED;

    if (!on_device_are(collect->strategy, leaves, collect->count) || same)
        return false;
    if ((int)collect->op != 0)
        return collect->axes == NULL && (slices ? collect->op == SUMAC_REDUCE_SUM
                                                : reduce_has(collect->op, first->tensor.dtype));
    for (int64_t i = 0; i < collect->axis && i < (int64_t)first->tensor.shape.rank; i++)
        if (first->tensor.shape.extent[i] != 1)
            return false;
    return true;
}

static bool are_here(const struct sumac_value *const *leaves, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!value_is_here(leaves[i]))
            return false;
    return true;
}

/* What the devices do not do is done here, and what comes of it goes to all of them that want it;
 * where the strategy has no devices of that kind, it stays here. */
static enum sumac_status collect_here(
    const struct collect *collect, const struct sumac_value *const *leaves,
    const struct value_path *path, struct sumac_value **mapped, struct sumac_error *error)
{
    const uint32_t count = collect->count + collect->marks;
    struct sumac_value *here[SUMAC_REPLICAS_MAX + 1] = {NULL}, *made = NULL;
    const bool spreads = collect->strategy->on_device != NULL;
    enum sumac_status status = spreads ? on_device_settle(collect->strategy, error) : SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++)
        status = sumac_value_to_host(leaves[i], &here[i], error);
    if (status == SUMAC_OK)
        status = collect->leaf((void *)(uintptr_t)collect, value_lend(here), path, &made, error);
    if (status == SUMAC_OK && spreads && !collect->is_for_one)
        status = on_device_spread(collect->strategy, made, mapped, error);
    else if (status == SUMAC_OK)
        *mapped = sumac_value_ref(made);
    sumac_value_unref(made);
    value_unref_all(here, count);
    return status;
}

static enum sumac_status collect_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;

    assert(collect->leaf != NULL);
    return are_here(leaves, collect->count) || is_theirs(collect, leaves)
               ? collect->leaf(context, leaves, path, mapped, error)
               : collect_here(collect, leaves, path, mapped, error);
}

/* Run what was added, if `status` is OK. Returns  the first failure. */
static enum sumac_status run_calls(
    struct on_device_calls *calls, enum sumac_status status, struct sumac_value **result,
    struct sumac_error *error)
{
    if (status == SUMAC_OK) {
        status = on_device_run(calls, error);
        if (status != SUMAC_OK) {
            sumac_value_unref(*result);
            *result = NULL;
        }
    }
    on_device_forget(calls);
    return status;
}

enum sumac_status collect_all(
    struct collect *collect, const struct sumac_value *const *values,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    struct on_device_calls calls = {
        .strategy = collect->strategy, .options = *options, .name = collect->call};

    assert(collect->count == collect->strategy->in_sync);
    if (calls.options.timeout_ms == 0)
        calls.options.timeout_ms = collect->strategy->options.timeout_ms;
    collect->on_device = &calls;
    return run_calls(
        &calls,
        value_zip(values, collect->count + collect->marks, collect_leaf, collect, result, error),
        result, error);
}

/* ---- gathered */

enum sumac_status collect_check_axis(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    const struct value_path *path, struct sumac_error *error)
{
    const struct sumac_tensor *first = tensors[0];
    char why[96];

    if (first->shape.rank == 0)
        return collect_fail_leaf(
            collect, path, "is a scalar, which has no axis to be gathered along", error);
    if (collect->axis < 0 || collect->axis >= (int64_t)first->shape.rank) {
        (void)text_print(
            why, sizeof why, "has the axes 0 to %" PRIu32 ", and %" PRId64 " is none of them",
            first->shape.rank - 1, collect->axis);
        return collect_fail_leaf(collect, path, why, error);
    }
    return check_alike(collect, tensors, UINT32_C(1) << collect->axis, path, error);
}

enum sumac_status collect_gather_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_tensor *tensors[SUMAC_REPLICAS_MAX];

    assert(collect->count > 0);
    assert(collect->count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < collect->count; i++) {
        if (leaves[i]->kind == SUMAC_VALUE_INDEXED_SLICES)
            return fail(
                error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
                "%s: slices are not gathered; gather their values and indices", collect->call);
        if (leaves[i]->kind != SUMAC_VALUE_TENSOR)
            return collect_fail_leaf(collect, path, "is no tensor", error);
        tensors[i] = &leaves[i]->tensor;
    }
    const enum sumac_status status = collect_check_axis(collect, tensors, path, error);
    return status == SUMAC_OK
               ? concatenate(collect, tensors, (uint32_t)collect->axis, mapped, error)
               : status;
}

enum sumac_status collect_call(
    struct sumac_strategy *strategy, const struct call *call,
    const struct sumac_value *const *values, struct sumac_value **result, struct sumac_error *error)
{
    const bool gathers = call->kind == CALL_ALL_GATHER;
    struct collect collect = {
        .strategy = strategy,
        .op = call->op,
        .axis = call->axis,
        .count = strategy->in_sync,
        .call = gathers ? "all_gather" : "all_reduce",
        .leaf = gathers ? collect_gather_leaf : collect_reduce_leaf};

    return collect_all(&collect, values, &call->options, result, error);
}

enum sumac_status collect_first(
    struct sumac_strategy *strategy, const struct sumac_value *const *values,
    struct sumac_value **result, struct sumac_error *error)
{
    struct on_device_calls calls = {
        .strategy = strategy,
        .options = {.timeout_ms = strategy->options.timeout_ms},
        .name = "what replica 0 has, to all"};

    if (values[0]->kind != SUMAC_VALUE_TENSOR ||
        !on_device_are(strategy, values, strategy->in_sync)) {
        *result = sumac_value_ref(values[0]);
        return SUMAC_OK;
    }
    const struct sumac_tensor *const first = &values[0]->tensor;
    return run_calls(
        &calls,
        on_device_add(
            &calls, &(struct on_device_call){.kind = GROUP_BROADCAST}, &first, &first->shape,
            result, error),
        result, error);
}
