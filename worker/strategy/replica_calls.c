/* SPDX-License-Identifier: Apache-2.0 */
/* replica_calls.c -- the public calls that all replicas make: collectives and merge_call. */
#include "variable.h"

#include "error.h"
#include "on_device.h"

/* Is this a thread of the replica's, in its run? */
static enum sumac_status
check_replica(const struct sumac_replica *replica, const char *call, struct sumac_error *error)
{
    if (context_is_of(replica))
        return SUMAC_OK;
    if (replica == NULL && context_present()->kind != CONTEXT_CROSS_REPLICA)
        return fail_for_null(error, call, "replica");
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "%s: called outside of the replica; it is of a replica context: call it in the function of "
        "sumac_strategy_run, with the context that it is given",
        call);
}

/* The caller's options, or else the strategy's. */
static enum sumac_status read_options(
    const struct sumac_strategy *strategy, const struct sumac_communication_options *given,
    struct sumac_communication_options *options, struct sumac_error *error)
{
    *options = strategy->options.communication;
    if (given == NULL)
        return SUMAC_OK;
    if (given->bytes_per_pack != 0)
        options->bytes_per_pack = given->bytes_per_pack;
    if (given->timeout_ms != 0)
        options->timeout_ms = given->timeout_ms;
    if (given->implementation != SUMAC_COMMUNICATION_AUTO)
        options->implementation = given->implementation;
    return communication_check(options, error);
}

enum sumac_status reduce_op_check(enum sumac_reduce_op op, struct sumac_error *error)
{
    if (op == SUMAC_REDUCE_SUM || op == SUMAC_REDUCE_MEAN)
        return SUMAC_OK;
    return fail_argument(error, "a reduction %d, which is neither SUM (1) nor MEAN (2)", (int)op);
}

/* Its own of what all have of the call's result, on its device where what it came with was. */
static enum sumac_status take_own(
    const struct sumac_replica *replica, const struct sumac_value *given,
    const struct sumac_value *all, struct sumac_value **own, struct sumac_error *error)
{
    struct sumac_value *selected = NULL, *copy = NULL;

    enum sumac_status status = sumac_value_select(all, replica->id, &selected, error);
    if (status != SUMAC_OK)
        return status;
    status = value_own(selected, &copy, error);
    sumac_value_unref(selected);
    if (status == SUMAC_OK)
        status = on_device_place_like(replica->strategy, replica->index, given, copy, own, error);
    sumac_value_unref(copy);
    return status;
}

/* Make a replica's collective, called `name`, with these options. An error is that of all replicas.
 */
static enum sumac_status collect_with_others(
    struct sumac_replica *replica, const char *name, struct call *call,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    struct sumac_error why;

    enum sumac_status status = check_replica(replica, name, error);
    if (status != SUMAC_OK)
        return status;
    if (call->value == NULL || result == NULL)
        status = fail_for_null(&why, name, call->value == NULL ? "value" : "result");
    if (status == SUMAC_OK && call->kind == CALL_ALL_REDUCE)
        status = reduce_op_check(call->op, &why);
    if (status == SUMAC_OK)
        status = read_options(replica->strategy, options, &call->options, &why);
    if (status != SUMAC_OK)
        return call_fail_with_others(replica, call, &why, error);
    struct sumac_value *all = NULL;
    status = call_with_others(replica, call, &all, error);
    if (status == SUMAC_OK)
        status = take_own(replica, call->value, all, result, error);
    sumac_value_unref(all);
    return status;
}

enum sumac_status sumac_replica_all_reduce(
    struct sumac_replica *replica, enum sumac_reduce_op op, const struct sumac_value *value,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    struct call call = {.kind = CALL_ALL_REDUCE, .op = op, .value = value};

    return collect_with_others(replica, "sumac_replica_all_reduce", &call, options, result, error);
}

enum sumac_status sumac_replica_all_gather(
    struct sumac_replica *replica, const struct sumac_value *value, int64_t axis,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    struct call call = {.kind = CALL_ALL_GATHER, .axis = axis, .value = value};

    return collect_with_others(replica, "sumac_replica_all_gather", &call, options, result, error);
}

enum sumac_status sumac_replica_merge_call(
    struct sumac_replica *replica, sumac_merge_function *function, void *context,
    const struct sumac_value *args, struct sumac_value **result, struct sumac_error *error)
{
    struct call call = {.kind = CALL_MERGE, .function = function, .context = context};
    struct sumac_error why;

    enum sumac_status status = check_replica(replica, "sumac_replica_merge_call", error);
    if (status != SUMAC_OK)
        return status;
    struct sumac_value *own = args == NULL ? sumac_value_tuple(NULL, 0) : NULL;
    call.value = args == NULL ? own : args;
    if (function == NULL)
        status = fail_for_null(&why, "sumac_replica_merge_call", "function");
    else if (call.value == NULL)
        status = value_fail_for_memory(&why);
    status = status == SUMAC_OK ? call_for_own(replica, &call, result, error)
                                : call_refuse(replica, CALL_MERGE, &why, error);
    sumac_value_unref(own);
    return status;
}

enum sumac_status sumac_replica_all_reduce_gradient(
    struct sumac_replica *replica, enum sumac_reduce_op op, const struct sumac_value *upstream,
    const struct sumac_communication_options *options, struct sumac_value **gradient,
    struct sumac_error *error)
{
    return sumac_replica_all_reduce(replica, op, upstream, options, gradient, error);
}
