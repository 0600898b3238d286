/* SPDX-License-Identifier: Apache-2.0 */
/* call.c -- calls that all replicas make: each waits until all have, they are compared, and whoever
 * came last computes what it comes to, in the order of the replicas.
 *
 *     replica 0   | make ........ wait ........ | take |
 *     replica 1       | make .... wait ........ | take |
 *     replica 2             | make, compare, compute | take |
 *
 * When the time of one is over, or one has returned without it, the call has failed for all, and so
 * has each later one of the run: what a replica would come to then is not what the others did.
 */
#include "distributed.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "text.h"

bool calls_init(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;
    pthread_condattr_t attributes;

    pthread_mutex_init(&calls->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&calls->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    calls->made = calloc(strategy->replicas, sizeof(struct call *));
    calls->returned = calloc(strategy->replicas, sizeof *calls->returned);
    return calls->made != NULL && calls->returned != NULL;
}

void calls_deinit(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    assert(calls->made_count == 0);
    free(calls->made);
    free(calls->returned);
    pthread_cond_destroy(&calls->changed);
    pthread_mutex_destroy(&calls->mutex);
}

void calls_begin(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    assert(calls->made_count == 0);
    memset(calls->returned, 0, strategy->replicas * sizeof *calls->returned);
    calls->returned_count = 0;
    calls->number = 0;
    calls->broken.status = SUMAC_OK;
    pthread_mutex_unlock(&calls->mutex);
}

/* ---- who has not come */

static const char *kind_name(enum call_kind kind)
{
    switch (kind) {
    case CALL_ALL_REDUCE:
        return "all_reduce";
    case CALL_ALL_GATHER:
        return "all_gather";
    case CALL_MERGE:
        return "merge_call";
    case CALL_WRITE:
        return "a variable's write";
    }
    return "";
}

/* "replica 1, replica 3", of those that are not there; with `returned` those alone that never
 * will be. */
static const char *
list_missing(const struct sumac_strategy *strategy, bool returned, char *text, size_t text_bytes)
{
    size_t used = 0;

    assert(text_bytes > 0);
    text[0] = '\0';
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        if (strategy->calls.made[i] != NULL || (returned && !strategy->calls.returned[i]))
            continue;
        used += text_print(
            text + used, text_bytes - used, "%sreplica %" PRIu32, used == 0 ? "" : ", ",
            strategy->first + i);
    }
    return text;
}

static enum call_kind kind_under_way(const struct sumac_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->replicas; i++)
        if (strategy->calls.made[i] != NULL)
            return strategy->calls.made[i]->kind;
    return CALL_MERGE;
}

/* The call is over for all that made it. */
static void end(struct calls *calls, const struct sumac_error *error)
{
    assert(!calls->over);
    assert(calls->made_count > 0);
    calls->over = true;
    calls->error = *error;
    pthread_cond_broadcast(&calls->changed);
}

static void break_off(struct calls *calls, const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    if (calls->broken.status == SUMAC_OK)
        calls->broken = *error;
    if (calls->made_count > 0 && !calls->over)
        end(calls, error);
}

/* One that others wait for will not come. */
static void look_for_returned(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;
    struct sumac_error error;
    char missing[160];

    if (calls->made_count == 0 || calls->over ||
        list_missing(strategy, true, missing, sizeof missing)[0] == '\0')
        return;
    (void)fail(
        &error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_MEMBER_GONE,
        "%s, call %" PRIu64 " of the run: %s returned without it, and the others wait for that",
        kind_name(kind_under_way(strategy)), calls->number, missing);
    break_off(calls, &error);
}

void calls_returned(
    struct sumac_strategy *strategy, uint32_t replica, const struct sumac_error *error)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    assert(!calls->returned[replica]);
    calls->returned[replica] = true;
    calls->returned_count++;
    if (error->status != SUMAC_OK)
        break_off(calls, error);
    look_for_returned(strategy);
    pthread_mutex_unlock(&calls->mutex);
}

/* ---- compared */

struct compare {
    uint32_t one, other; /* replicas */
    const struct call *call;
};

static enum sumac_status fail_leaf(
    const struct compare *compare, const struct value_path *path, const char *one,
    const char *other, struct sumac_error *error)
{
    char where[160];

    assert(compare->one != compare->other);
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
        "%s: replica %" PRIu32 " has %s%s%s, and replica %" PRIu32 " %s",
        kind_name(compare->call->kind), compare->one, one, path == NULL ? "" : " at ",
        value_path_print(path, where, sizeof where), compare->other, other);
}

static const char *describe(const struct sumac_value *leaf, char *text, size_t text_bytes)
{
    char shape[96];
    const struct sumac_value *tensor = leaf->kind == SUMAC_VALUE_SLICES ? leaf->items[0] : leaf;

    if (tensor->kind != SUMAC_VALUE_TENSOR)
        (void)text_print(text, text_bytes, "%s", sumac_value_kind_name(leaf->kind));
    else
        (void)text_print(
            text, text_bytes, "%s%s%s", leaf->kind == SUMAC_VALUE_SLICES ? "slices, rows " : "",
            sumac_dtype_name(tensor->tensor.dtype),
            sumac_shape_print(&tensor->tensor.shape, shape, sizeof shape));
    return text;
}

/* May two tensors meet: but for the first extent of rows, and that along the axis? */
static bool
agree(const struct compare *compare, const struct sumac_value *a, const struct sumac_value *b)
{
    const bool rows = a->kind == SUMAC_VALUE_SLICES;
    const struct sumac_tensor *one = rows ? &a->items[0]->tensor : &a->tensor;
    const struct sumac_tensor *other = rows ? &b->items[0]->tensor : &b->tensor;
    const int64_t free_axis = rows                                     ? 0
                              : compare->call->kind == CALL_ALL_GATHER ? compare->call->axis
                                                                       : -1;

    if (one->dtype != other->dtype || one->shape.rank != other->shape.rank ||
        (rows && !sumac_shape_equal(&a->dense, &b->dense)))
        return false;
    for (uint32_t i = 0; i < one->shape.rank; i++)
        if ((int64_t)i != free_axis && one->shape.extent[i] != other->shape.extent[i])
            return false;
    return true;
}

static enum sumac_status compare_leaf(
    void *context, struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct compare *compare = context;
    char one[160], other[160];

    *mapped = sumac_value_ref(leaves[0]);
    if (leaves[0]->kind == leaves[1]->kind &&
        (leaves[0]->kind == SUMAC_VALUE_NONE || agree(compare, leaves[0], leaves[1])))
        return SUMAC_OK;
    sumac_value_unref(*mapped);
    return fail_leaf(
        compare, path, describe(leaves[0], one, sizeof one),
        describe(leaves[1], other, sizeof other), error);
}

static enum sumac_status compare_values(
    const struct compare *compare, struct sumac_value *one, struct sumac_value *other,
    struct sumac_error *error)
{
    struct sumac_value *const both[] = {one, other};
    struct sumac_value *same = NULL;
    struct sumac_error why;

    assert(one != NULL && other != NULL);
    if (sumac_value_same_nest(one, other, &why) != SUMAC_OK)
        return fail(
            error, why.status, why.reason, "%s: replicas %" PRIu32 " and %" PRIu32 ": %.380s",
            kind_name(compare->call->kind), compare->one, compare->other, why.text);
    const enum sumac_status status =
        value_zip(both, 2, compare_leaf, (void *)(uintptr_t)compare, &same, error);
    if (status == SUMAC_OK)
        sumac_value_unref(same);
    return status;
}

static const char *variable_name(const struct call *call)
{
    return call->variable == NULL ? "no variable" : call->variable->name;
}

static enum sumac_status compare_call(
    const struct call *first, const struct call *other, uint32_t replica, struct sumac_error *error)
{
    const struct compare compare = {.one = 0, .other = replica, .call = first};

    assert(replica > 0);
    assert(first->value != NULL);
    if (first->kind != other->kind)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_STEP_DIFFERS,
            "replica 0 calls %s, and replica %" PRIu32
            " %s: all make the same calls in the same order",
            kind_name(first->kind), replica, kind_name(other->kind));
    if (first->variable != other->variable)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_STEP_DIFFERS,
            "%s: replica 0 comes with %.200s, and replica %" PRIu32 " with %.200s",
            kind_name(first->kind), variable_name(first), replica, variable_name(other));
    if (first->op != other->op || first->axis != other->axis ||
        first->function != other->function || first->write != other->write)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_STEP_DIFFERS,
            "%s: replica 0 and replica %" PRIu32 " come with another %s", kind_name(first->kind),
            replica,
            first->kind == CALL_MERGE        ? "function"
            : first->kind == CALL_ALL_REDUCE ? "reduction"
            : first->kind == CALL_WRITE      ? "way to write"
                                             : "axis");
    return first->kind == CALL_MERGE ? SUMAC_OK
                                     : compare_values(&compare, first->value, other->value, error);
}

/* ---- computed */

/* As the thread that is in the cross-replica context of the strategy for as long. */
static enum sumac_status merge(
    struct sumac_strategy *strategy, struct sumac_value *const *values, struct sumac_value **result,
    struct sumac_error *error)
{
    const struct call *first = strategy->calls.made[0];
    struct context *present = context_present();
    const struct context before = *present;
    struct sumac_value *args = NULL;

    assert(first->kind == CALL_MERGE);
    assert(first->function != NULL);
    enum sumac_status status =
        sumac_value_regroup(values, strategy->replicas, strategy->first, &args, error);
    if (status != SUMAC_OK)
        return status;
    *present = (struct context){
        .kind = CONTEXT_CROSS_REPLICA, .strategy = strategy, .depth = before.depth + 1};
    status = first->function(strategy, args, first->context, result, error);
    *present = before;
    sumac_value_unref(args);
    if (status == SUMAC_OK && *result == NULL) {
        *result = sumac_value_none();
        return *result == NULL ? value_fail_for_memory(error) : SUMAC_OK;
    }
    return status;
}

static enum sumac_status
compute(struct sumac_strategy *strategy, struct sumac_value **result, struct sumac_error *error)
{
    const struct call *first = strategy->calls.made[0];
    struct sumac_value **values = calloc(strategy->replicas, sizeof *values);
    enum sumac_status status = values == NULL ? value_fail_for_memory(error) : SUMAC_OK;
    bool reads = false;

    assert(strategy->calls.made_count == strategy->replicas);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++) {
        values[i] = strategy->calls.made[i]->value;
        reads = reads || strategy->calls.made[i]->reads;
        if (i > 0)
            status = compare_call(first, strategy->calls.made[i], i, error);
    }
    if (status == SUMAC_OK && first->kind == CALL_ALL_REDUCE)
        status = collect_all_reduce(first->op, values, strategy->replicas, result, error);
    else if (status == SUMAC_OK && first->kind == CALL_ALL_GATHER)
        status = collect_all_gather(first->axis, values, strategy->replicas, result, error);
    else if (status == SUMAC_OK && first->kind == CALL_WRITE)
        status = write_together(
            first->variable, (enum sumac_write)first->write, values, strategy->replicas,
            reads ? result : NULL, error);
    else if (status == SUMAC_OK)
        status = merge(strategy, values, result, error);
    free(values);
    return status;
}

/* ---- made, and waited for */

static void time_out(struct sumac_strategy *strategy, uint32_t timeout_ms)
{
    struct calls *calls = &strategy->calls;
    struct sumac_error error;
    char missing[160];

    assert(calls->made_count < strategy->replicas);
    (void)fail(
        &error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
        "%s, call %" PRIu64 " of the run, has waited %s for %s",
        kind_name(kind_under_way(strategy)), calls->number, text_time_ms(timeout_ms).text,
        list_missing(strategy, false, missing, sizeof missing));
    break_off(calls, &error);
}

static struct timespec after_ms(uint32_t ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void wait_for_others(struct sumac_strategy *strategy, uint32_t timeout_ms)
{
    struct calls *calls = &strategy->calls;
    const struct timespec until = after_ms(timeout_ms);

    assert(calls->made_count > 0);
    assert(timeout_ms > 0);
    while (!calls->over) {
        if (calls->made_count == strategy->replicas) /* it is being computed */
            pthread_cond_wait(&calls->changed, &calls->mutex);
        else if (
            pthread_cond_timedwait(&calls->changed, &calls->mutex, &until) == ETIMEDOUT &&
            !calls->over && calls->made_count < strategy->replicas)
            time_out(strategy, timeout_ms);
    }
}

/* The last one to hear of it leaves nothing behind. */
static enum sumac_status
take(struct calls *calls, uint32_t replica, struct sumac_value **result, struct sumac_error *error)
{
    const enum sumac_status status = calls->error.status;

    assert(calls->over);
    calls->made[replica] = NULL;
    if (status == SUMAC_OK)
        *result = sumac_value_ref(calls->result);
    else if (error != NULL)
        *error = calls->error;
    if (++calls->left_count < calls->made_count)
        return status;
    sumac_value_unref(calls->result);
    calls->result = NULL;
    calls->over = false;
    calls->left_count = calls->made_count = 0;
    pthread_cond_broadcast(&calls->changed); /* the next call may begin */
    return status;
}

static void make(struct sumac_strategy *strategy, uint32_t replica, const struct call *call)
{
    struct calls *calls = &strategy->calls;

    assert(calls->made[replica] == NULL);
    if (calls->made_count++ == 0)
        calls->number++;
    calls->made[replica] = call;
    if (calls->made_count < strategy->replicas) {
        look_for_returned(strategy);
        return;
    }
    struct sumac_error error = {.status = SUMAC_OK};
    pthread_mutex_unlock(&calls->mutex); /* the others wait, and nobody else comes */
    (void)compute(strategy, &calls->result, &error);
    pthread_mutex_lock(&calls->mutex);
    end(calls, &error);
}

enum sumac_status call_with_others(
    struct sumac_replica_context *replica, const struct call *call, struct sumac_value **result,
    struct sumac_error *error)
{
    struct sumac_strategy *strategy = replica->strategy;
    struct calls *calls = &strategy->calls;
    enum sumac_status status;
    const uint32_t timeout_ms =
        call->options.timeout_ms != 0 ? call->options.timeout_ms : strategy->options.timeout_ms;

    assert(call->value != NULL);
    assert(replica->index < strategy->replicas);
    pthread_mutex_lock(&calls->mutex);
    while (calls->over) /* others have yet to hear of the one before */
        pthread_cond_wait(&calls->changed, &calls->mutex);
    if (calls->broken.status != SUMAC_OK) {
        status = calls->broken.status;
        if (error != NULL)
            *error = calls->broken;
    } else {
        make(strategy, replica->index, call);
        wait_for_others(strategy, timeout_ms);
        status = take(calls, replica->index, result, error);
    }
    pthread_mutex_unlock(&calls->mutex);
    return status;
}

/* ---- public */

/* Is this a thread of the replica's, in its run? */
static enum sumac_status check_replica(
    const struct sumac_replica_context *replica, const char *call, struct sumac_error *error)
{
    const struct context *present = context_present();

    if (present->kind == CONTEXT_REPLICA && replica != NULL && present->replica == replica)
        return SUMAC_OK;
    if (replica == NULL && present->kind != CONTEXT_CROSS_REPLICA)
        return fail_for_null(error, call, "replica");
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "%s: called outside of the replica; it is of a replica context: call it in the function of "
        "sumac_strategy_run, with the context that it is given",
        call);
}

enum sumac_status
communication_check(const struct sumac_communication_options *options, struct sumac_error *error)
{
    if (options->bytes_per_pack > SUMAC_BYTES_PER_PACK_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "bytes_per_pack is %" PRIu64 "; it is 0, for all together, to 2^40",
            options->bytes_per_pack);
    if ((int)options->implementation < 0 || options->implementation > SUMAC_COMMUNICATION_NCCL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "implementation is %d; there are 0 (AUTO), 1 (RING) and 2 (NCCL)",
            (int)options->implementation);
    return SUMAC_OK;
}

/* What the caller says, or else the strategy's. */
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
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
        "a reduction %d, which is neither SUM (1) nor MEAN (2)", (int)op);
}

enum sumac_status sumac_replica_all_reduce(
    struct sumac_replica_context *replica, enum sumac_reduce_op op, struct sumac_value *value,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    struct call call = {.kind = CALL_ALL_REDUCE, .op = op, .value = value};

    enum sumac_status status = check_replica(replica, "sumac_replica_all_reduce", error);
    if (status == SUMAC_OK && (value == NULL || result == NULL))
        status =
            fail_for_null(error, "sumac_replica_all_reduce", value == NULL ? "value" : "result");
    if (status == SUMAC_OK)
        status = reduce_op_check(op, error);
    if (status == SUMAC_OK)
        status = read_options(replica->strategy, options, &call.options, error);
    return status == SUMAC_OK ? call_with_others(replica, &call, result, error) : status;
}

enum sumac_status sumac_replica_all_gather(
    struct sumac_replica_context *replica, struct sumac_value *value, int64_t axis,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    struct call call = {.kind = CALL_ALL_GATHER, .axis = axis, .value = value};

    enum sumac_status status = check_replica(replica, "sumac_replica_all_gather", error);
    if (status == SUMAC_OK && (value == NULL || result == NULL))
        status =
            fail_for_null(error, "sumac_replica_all_gather", value == NULL ? "value" : "result");
    if (status == SUMAC_OK)
        status = read_options(replica->strategy, options, &call.options, error);
    return status == SUMAC_OK ? call_with_others(replica, &call, result, error) : status;
}

enum sumac_status sumac_replica_merge_call(
    struct sumac_replica_context *replica, sumac_merge_function *function, void *context,
    struct sumac_value *args, struct sumac_value **result, struct sumac_error *error)
{
    struct call call = {.kind = CALL_MERGE, .function = function, .context = context};
    struct sumac_value *merged = NULL;

    enum sumac_status status = check_replica(replica, "sumac_replica_merge_call", error);
    if (status == SUMAC_OK && function == NULL)
        status = fail_for_null(error, "sumac_replica_merge_call", "function");
    if (status != SUMAC_OK)
        return status;
    call.value = args == NULL ? sumac_value_tuple(NULL, 0) : sumac_value_ref(args);
    status = call.value == NULL ? value_fail_for_memory(error)
                                : call_with_others(replica, &call, &merged, error);
    sumac_value_unref(call.value);
    if (status == SUMAC_OK && result != NULL)
        status = sumac_value_select(merged, replica->id, result, error);
    sumac_value_unref(merged);
    return status;
}

enum sumac_status sumac_replica_all_reduce_gradient(
    struct sumac_replica_context *replica, enum sumac_reduce_op op, struct sumac_value *upstream,
    const struct sumac_communication_options *options, struct sumac_value **gradient,
    struct sumac_error *error)
{
    return sumac_replica_all_reduce(replica, op, upstream, options, gradient, error);
}
