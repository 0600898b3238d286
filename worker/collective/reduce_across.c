/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_across.c -- what a strategy is asked for across its replicas: reduce, batch_reduce,
 * gather. */
#include "collect.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "variable.h"
#include "error.h"
#include "peers.h"

static enum sumac_status mark_same(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    (void)context;
    (void)path;
    return value_give(sumac_value_mirrored(sumac_value_ref(leaf), 1, 0), mapped, error);
}

/* A leaf that is the same in all replicas, as far as this process knows, becomes mirrored; one that
 * is not distributed is the worker's own where each has one replica. */
static enum sumac_status mark_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
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
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;

    if (value_is_leaf_of_replicas(leaf) &&
        (uint64_t)leaf->first + leaf->count > collect->strategy->in_sync)
        return collect_fail_leaf(collect, path, "has items of more replicas than there are", error);
    (void)mapped;
    return SUMAC_OK;
}

/* What each replica of this process has of it: of one nest, and of types and shapes that may meet.
 * `own` (replicas) is given what could be selected. */
static enum sumac_status take_own(
    const struct collect *collect, const struct call *call, const struct sumac_value *value,
    struct sumac_value **own, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = collect->strategy;
    struct call one = *call, other = *call;
    struct sumac_error why;

    enum sumac_status status =
        value_map(value, check_items, (void *)(uintptr_t)collect, NULL, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++)
        status = sumac_value_select(value, strategy->first + i, &own[i], error);
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
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    struct label *const label = context;

    (void)path, (void)mapped, (void)error;
    label_add(label, label->used == 0 ? "" : ", ");
    label_add(label, leaf->kind == SUMAC_VALUE_MIRRORED ? "mirrored" : "per_replica");
    return SUMAC_OK;
}

/* What is across the replicas is the host's, but in the merge_call of one process, where each has
 * its own. */
static bool is_for_one(const struct sumac_strategy *strategy)
{
    return strategy->on_device != NULL &&
           (context_present()->replica == NULL || strategy->peers != NULL);
}

static enum sumac_status give(
    const struct collect *collect, struct sumac_value *value, struct sumac_value **result,
    struct sumac_error *error)
{
    if (!collect->is_for_one) {
        *result = value;
        return SUMAC_OK;
    }
    const enum sumac_status status = on_device_take_one(value, result, error);
    sumac_value_unref(value);
    return status;
}

/* Leaf by leaf, of what all replicas have; collect->leaf is given one more, which says whether it
 * is the same in all of them. */
static enum sumac_status collect_value(
    struct collect *collect, struct call *call, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_strategy *strategy = collect->strategy;
    struct sumac_value *own[SUMAC_REPLICAS_MAX] = {NULL}, *all[SUMAC_REPLICAS_MAX];
    const struct sumac_value *zipped[SUMAC_REPLICAS_MAX + 1];
    struct sumac_value *marked = NULL, *all_of = NULL;
    struct sumac_error why;
    struct label label;

    collect->count = strategy->in_sync;
    collect->marks = true;
    collect->is_for_one = !collect->stays && is_for_one(strategy);
    label_init(&label);
    if (collect->items > 0)
        label_print(&label, "item %" PRIu32 " of %" PRIu32, collect->item, collect->items);
    enum sumac_status status = take_own(collect, call, value, own, &why);
    if (status == SUMAC_OK)
        status = value_map(value, mark_leaf, strategy, &marked, &why);
    if (status == SUMAC_OK)
        (void)value_map(marked, name_leaf, &label, NULL, &why);
    call->name = label.text;
    call->sum = label.sum;
    call->value = own[0];
    status =
        call_hear_all(strategy, call, value_lend(own), status == SUMAC_OK ? NULL : &why, all, &why);
    if (status == SUMAC_OK) {
        assert(strategy->in_sync <= SUMAC_REPLICAS_MAX);
        memcpy(zipped, all, strategy->in_sync * sizeof *zipped);
        zipped[strategy->in_sync] = marked;
        status = collect_all(collect, zipped, &strategy->options.communication, &all_of, &why);
    }
    if (status == SUMAC_OK)
        status = give(collect, all_of, result, &why);
    call_forget_all(strategy, all);
    value_unref_all(own, strategy->replicas);
    sumac_value_unref(marked);
    return status == SUMAC_OK ? SUMAC_OK : fail_again(error, &why);
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
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_value *leaf = leaves[collect->count];

    if (leaf->kind != SUMAC_VALUE_MIRRORED)
        return collect_reduce_leaf(context, leaves, path, mapped, error);
    if (collect->op == SUMAC_REDUCE_SUM)
        return collect_fail_leaf(
            collect, path,
            "is the same in all replicas, and its SUM is not told from R times it: reduce by MEAN, "
            "or a per_replica value",
            error);
    if (collect->count == 1)
        return collect_reduce_leaf(context, leaves, path, mapped, error);
    const enum sumac_status status = pass_over_sum(collect, leaf->items[0], error);
    if (status == SUMAC_OK)
        *mapped = sumac_value_ref(leaf->items[0]);
    return status;
}

/* May this thread make it, with what is given? The other workers hear what is wrong with that. */
static enum sumac_status check_call(
    const struct collect *collect, const char *call, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    const bool gathers = collect->leaf == collect_gather_leaf;
    struct sumac_error why;

    assert(call != NULL);
    if (collect->strategy == NULL)
        return fail_for_null(error, call, "strategy");
    const enum sumac_status status = context_check_cross(collect->strategy, call, error);
    if (status != SUMAC_OK || (value != NULL && result != NULL))
        return status;
    (void)fail_for_null(&why, call, value == NULL ? "value" : "result");
    return call_refuse_across(collect->strategy, gathers ? CALL_GATHER : CALL_REDUCE, &why, error);
}

static enum sumac_status reduce(
    struct collect *collect, const struct sumac_value *value, struct sumac_value **result,
    struct sumac_error *error)
{
    struct call call = {.kind = CALL_REDUCE, .op = collect->op, .axes = collect->axes};
    struct sumac_error why;

    assert(value != NULL);
    if (reduce_op_check(collect->op, &why) != SUMAC_OK)
        return call_refuse_across(collect->strategy, CALL_REDUCE, &why, error);
    return collect_value(collect, &call, value, result, error);
}

enum sumac_status sumac_strategy_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, const struct sumac_value *value,
    const struct sumac_axes *axes, struct sumac_value **result, struct sumac_error *error)
{
    struct collect collect = {
        .strategy = strategy, .op = op, .axes = axes, .call = "reduce", .leaf = reduce_whole_leaf};
    const enum sumac_status status =
        check_call(&collect, "sumac_strategy_reduce", value, result, error);

    return status == SUMAC_OK ? reduce(&collect, value, result, error) : status;
}

/* Of a list of none: other workers, which may have some, hear of that. */
static enum sumac_status
reduce_none(struct collect *collect, struct sumac_value **results, struct sumac_error *error)
{
    struct sumac_strategy *strategy = collect->strategy;
    struct sumac_value *none = NULL, *all[SUMAC_REPLICAS_MAX];
    const struct sumac_value *own[SUMAC_REPLICAS_MAX];
    struct sumac_error why;

    assert(collect->items == 0);
    if (value_give(sumac_value_none(), &none, &why) != SUMAC_OK)
        return call_refuse_across(strategy, CALL_REDUCE, &why, error);
    const struct call call = {
        .kind = CALL_REDUCE, .op = collect->op, .value = none, .name = "no items"};
    for (uint32_t i = 0; i < strategy->replicas; i++)
        own[i] = none;
    const enum sumac_status status = call_hear_all(strategy, &call, own, NULL, all, error);
    call_forget_all(strategy, all);
    sumac_value_unref(none);
    return status == SUMAC_OK ? value_give(sumac_value_list(NULL, 0), results, error) : status;
}

static enum sumac_status reduce_items(
    struct collect *collect, const struct sumac_value *values, struct sumac_value **results,
    struct sumac_error *error)
{
    struct sumac_value **items = calloc(values->count, sizeof *items);
    struct sumac_error why;

    assert(collect->items == values->count);
    if (items == NULL) {
        (void)value_fail_for_memory(&why);
        return call_refuse_across(collect->strategy, CALL_REDUCE, &why, error);
    }
    enum sumac_status status = SUMAC_OK;
    for (collect->item = 0; status == SUMAC_OK && collect->item < values->count; collect->item++)
        status = reduce(collect, values->items[collect->item], &items[collect->item], error);
    if (status == SUMAC_OK)
        status =
            value_give(sumac_value_list(items, values->count), results, error); /* takes them */
    else
        value_unref_all(items, values->count);
    free(items);
    return status;
}

/* On devices, in one process: they are one nest, so that the leaves of all of them meet together.
 */
static enum sumac_status reduce_together(
    struct collect *collect, const struct sumac_value *values, struct sumac_value **results,
    struct sumac_error *error)
{
    struct sumac_value *list =
        value_hold(SUMAC_VALUE_LIST, value_lend(values->items), values->count, 0);

    assert(collect->strategy->peers == NULL);
    collect->items = 0; /* nobody else counts them */
    const enum sumac_status status =
        list == NULL ? value_fail_for_memory(error) : reduce(collect, list, results, error);
    sumac_value_unref(list);
    return status;
}

enum sumac_status sumac_strategy_batch_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, const struct sumac_value *values,
    struct sumac_value **results, struct sumac_error *error)
{
    static const char name[] = "sumac_strategy_batch_reduce";
    struct collect collect = {
        .strategy = strategy,
        .op = op,
        .call = "reduce",
        .leaf = reduce_whole_leaf,
        .items = sumac_value_count(values)};
    struct sumac_error why;

    const enum sumac_status status = check_call(&collect, name, values, results, error);
    if (status != SUMAC_OK)
        return status;
    if (values->kind != SUMAC_VALUE_LIST && values->kind != SUMAC_VALUE_TUPLE) {
        (void)fail_argument(
            &why, "%s: values is a %s; it is a list of values", name,
            sumac_value_kind_name(values->kind));
        return call_refuse_across(strategy, CALL_REDUCE, &why, error);
    }
    if (collect.items == 0)
        return reduce_none(&collect, results, error);
    return strategy->on_device != NULL && strategy->peers == NULL
               ? reduce_together(&collect, values, results, error)
               : reduce_items(&collect, values, results, error);
}

/* ---- to where a variable lies */

/* The same for all replicas of this process, on the device of each; mirrored if there are others in
 * sync. */
static enum sumac_status spread_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    struct sumac_strategy *strategy = context;
    struct sumac_value *spread = NULL;
    enum sumac_status status = SUMAC_OK;

    (void)path;
    assert(leaf->kind != SUMAC_VALUE_PER_REPLICA);
    if (leaf->kind == SUMAC_VALUE_MIRRORED || strategy->on_device == NULL)
        spread = sumac_value_ref(leaf);
    else
        status = on_device_spread(strategy, leaf, &spread, error);
    if (status != SUMAC_OK)
        return status;
    return value_give(
        spread->kind == SUMAC_VALUE_MIRRORED || strategy->in_sync == 1
            ? spread
            : sumac_value_mirrored(spread, strategy->replicas, strategy->first),
        mapped, error);
}

enum sumac_status sumac_strategy_reduce_to(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, const struct sumac_value *value,
    const struct sumac_variable *destination, struct sumac_value **result,
    struct sumac_error *error)
{
    static const char name[] = "sumac_strategy_reduce_to";
    const bool spreads =
        destination != NULL && destination->remote == NULL && !destination->process_local;
    struct collect collect = {
        .strategy = strategy,
        .op = op,
        .call = "reduce_to",
        .leaf = reduce_whole_leaf,
        .stays = spreads};
    struct sumac_value *reduced = NULL;
    struct sumac_error why;

    enum sumac_status status = check_call(&collect, name, value, result, error);
    if (status != SUMAC_OK)
        return status;
    if (destination != NULL && destination->strategy != strategy) {
        (void)fail(
            &why, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "%s: the destination %.200s is a variable of another strategy; strategies do not mix",
            name, destination->name);
        return call_refuse_across(strategy, CALL_REDUCE, &why, error);
    }
    if (!spreads)
        return reduce(&collect, value, result, error);
    status = reduce(&collect, value, &reduced, error);
    if (status != SUMAC_OK)
        return status;
    status = value_map(reduced, spread_leaf, strategy, result, error);
    sumac_value_unref(reduced);
    return status;
}

enum sumac_status sumac_strategy_gather(
    struct sumac_strategy *strategy, const struct sumac_value *value, int64_t axis,
    struct sumac_value **result, struct sumac_error *error)
{
    struct collect collect = {
        .strategy = strategy, .axis = axis, .call = "gather", .leaf = collect_gather_leaf};
    struct call call = {.kind = CALL_GATHER, .axis = axis};
    const enum sumac_status status =
        check_call(&collect, "sumac_strategy_gather", value, result, error);

    return status == SUMAC_OK ? collect_value(&collect, &call, value, result, error) : status;
}
