/* SPDX-License-Identifier: Apache-2.0 */
/* run.c -- a function in each replica, at once, and what they return, put together. */
#include "strategy.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"
#include "peers.h"
#include "text.h"
#include "on_device.h"

/* ---- one replica */

static enum sumac_status call_function(struct replica_run *own)
{
    const struct sumac_run_options *options = own->run->options;
    struct sumac_replica *replica = own->replica;
    char whose[64];

    assert(own->result == NULL);
    assert(replica->index < own->run->strategy->replicas);
    enum sumac_status status =
        arguments_select(options->args, options->kwargs, replica->id, &replica->own, &own->error);
    if (status == SUMAC_OK)
        status = options->function(replica, options->context, &own->error);
    status = arguments_end(&replica->own, status, &own->result, &own->error);
    (void)text_print(whose, sizeof whose, "the function of replica %" PRIu32, replica->id);
    if (status == SUMAC_OK)
        own->error.status = SUMAC_OK; /* of what the function has got over */
    else
        (void)function_failed(&own->error, status, whose);
    return status;
}

/* The function has ended its thread (pthread_exit), and the other replicas need not wait for it. */
static void end_early(void *context)
{
    struct replica_run *own = context;

    own->status = fail(
        &own->error, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
        "the function of replica %" PRIu32 " ended its thread (pthread_exit): return instead",
        own->replica->id);
    (void)arguments_end(&own->replica->own, own->status, &own->result, &own->error);
    calls_returned(own->run->strategy, own->replica->index, &own->error);
}

/* On the replica's thread. */
static enum sumac_status run_replica(void *context)
{
    struct replica_run *own = context;
    struct context *present = context_present();
    const struct context before = *present;

    assert(own->run != NULL);
    assert(before.kind != CONTEXT_REPLICA);
    *present = (struct context){
        .kind = CONTEXT_REPLICA, .strategy = own->run->strategy, .replica = own->replica};
    pthread_cleanup_push(end_early, own);
    own->status = call_function(own);
    pthread_cleanup_pop(0);
    *present = before;
    calls_returned(own->run->strategy, own->replica->index, &own->error);
    return SUMAC_OK; /* the run tells it */
}

/* ---- all of them */

/* What a replica's function left behind on its device has failed. */
static void note_failure(struct sumac_strategy *strategy, uint32_t index, enum sumac_status status)
{
    struct replica_run *own = &strategy->runs[index];

    assert(status != SUMAC_OK);
    if (own->status == SUMAC_OK)
        own->status = on_device_check(strategy, &own->error);
    if (own->status == SUMAC_OK)
        own->status =
            on_device_fail(strategy, index, strategy->own.queues[index], status, &own->error);
}

static void run_all(struct strategy_run *run)
{
    struct sumac_strategy *strategy = run->strategy;

    assert(strategy->calls.made_count == 0);
    assert(run->options->function != NULL);
    if (strategy->peers != NULL)
        peers_begin_run(strategy->peers);
    calls_begin(strategy);
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        strategy->runs[i] = (struct replica_run){.run = run, .replica = &strategy->contexts[i]};
        replicas_begin(&strategy->own, i, run_replica, &strategy->runs[i]);
    }
    uint32_t failed = 0, later = 0;
    const enum sumac_status settled = queues_wait(
        strategy->own.queues, strategy->replicas, device_settle, DEVICE_NO_LIMIT, &failed);
    const enum sumac_status completed =
        strategy->on_device == NULL ? SUMAC_OK : on_device_complete(strategy, &later);
    if (settled != SUMAC_OK)
        note_failure(strategy, failed, settled);
    if (completed != SUMAC_OK)
        note_failure(strategy, later, completed);
}

/* The error of the replica that failed first by itself: the others' calls failed with it. */
static const struct sumac_error *find_error(const struct sumac_strategy *strategy)
{
    const struct sumac_error *broken = &strategy->calls.broken;

    for (uint32_t i = 0; i < strategy->replicas; i++)
        if (strategy->runs[i].status != SUMAC_OK)
            return broken->status != SUMAC_OK ? broken : &strategy->runs[i].error;
    return NULL;
}

static enum sumac_status put_together(
    struct sumac_strategy *strategy, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_value *results[SUMAC_REPLICAS_MAX];

    assert(result != NULL);
    for (uint32_t i = 0; i < strategy->replicas; i++)
        results[i] = strategy->runs[i].result;
    return value_regroup_as(
        SUMAC_VALUE_PER_REPLICA, results, strategy->replicas, strategy->first, result, error);
}

static enum sumac_status
finish(struct sumac_strategy *strategy, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_error *failed = find_error(strategy);
    enum sumac_status status = SUMAC_OK;

    assert(strategy->calls.made_count == 0);
    assert(strategy->calls.returned_count == strategy->replicas);
    if (failed != NULL)
        status = fail_again(error, failed);
    else if (result != NULL)
        status = put_together(strategy, result, error);
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        sumac_value_unref(strategy->runs[i].result);
        strategy->runs[i].result = NULL;
    }
    return status;
}

/* Would it wait for itself? */
static enum sumac_status
check_free(const struct sumac_strategy *strategy, struct sumac_error *error)
{
    const struct sumac_replica *replica = context_present()->replica;

    if (replica != NULL && replica->strategy == strategy)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "sumac_strategy_run: called in the function of a merge_call, for which the replicas of "
            "the strategy's run wait; call it after that run");
    return SUMAC_OK;
}

enum sumac_status sumac_strategy_run(
    struct sumac_strategy *strategy, const struct sumac_run_options *options,
    struct sumac_value **result, struct sumac_error *error)
{
    const char *const null = strategy == NULL            ? "strategy"
                             : options == NULL           ? "options"
                             : options->function == NULL ? "options->function"
                                                         : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_strategy_run", null);
    enum sumac_status status = context_check_cross(strategy, "sumac_strategy_run", error);
    if (status == SUMAC_OK)
        status = check_free(strategy, error);
    if (status == SUMAC_OK)
        status = on_device_check(strategy, error);
    if (status == SUMAC_OK)
        status = arguments_check("sumac_strategy_run", options->args, options->kwargs, error);
    if (status != SUMAC_OK)
        return status;
    struct strategy_run run = {.strategy = strategy, .options = options};
    strategy_begins(strategy);
    pthread_mutex_lock(&strategy->running);
    run_all(&run);
    status = finish(strategy, result, error);
    pthread_mutex_unlock(&strategy->running);
    strategy_returned(strategy);
    return status;
}

/* ---- what each replica has */

enum sumac_status sumac_strategy_local_results(
    struct sumac_strategy *strategy, const struct sumac_value *value, struct sumac_value **results,
    struct sumac_error *error)
{
    if (strategy == NULL || value == NULL || results == NULL)
        return fail_for_null(
            error, "sumac_strategy_local_results",
            strategy == NULL ? "strategy"
            : value == NULL  ? "value"
                             : "results");
    /* a value that is neither distributed nor a nest is one result */
    const uint32_t count = value->distributed || value_is_nest(value) ? strategy->replicas : 1;
    struct sumac_value *items[SUMAC_REPLICAS_MAX] = {NULL};

    for (uint32_t i = 0; i < count; i++) {
        const enum sumac_status status =
            sumac_value_select(value, strategy->first + i, &items[i], error);
        if (status != SUMAC_OK) {
            value_unref_all(items, i);
            return status;
        }
    }
    return value_give(sumac_value_tuple(items, count), results, error);
}

/* ---- made for each replica */

static enum sumac_status wrap_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = context;

    (void)path;
    return value_give(
        value_hold(SUMAC_VALUE_PER_REPLICA, leaves, strategy->replicas, strategy->first), mapped,
        error);
}

static enum sumac_status wrap(
    struct sumac_strategy *strategy, const struct sumac_value *const *made,
    struct sumac_value **value, struct sumac_error *error)
{
    struct sumac_error why;

    assert(made[0] != NULL);
    for (uint32_t i = 1; i < strategy->replicas; i++)
        if (sumac_value_same_nest(made[0], made[i], &why) != SUMAC_OK)
            return fail(
                error, why.status, why.reason,
                "values of replicas %" PRIu32 " and %" PRIu32 ": %.400s", strategy->first,
                strategy->first + i, why.text);
    if (strategy->options.kind == SUMAC_STRATEGY_DEFAULT ||
        strategy->options.kind == SUMAC_STRATEGY_ONE_DEVICE) {
        *value = sumac_value_ref(made[0]);
        return SUMAC_OK;
    }
    return value_zip(made, strategy->replicas, wrap_leaf, strategy, value, error);
}

static enum sumac_status make_value(
    const struct sumac_strategy *strategy, sumac_value_function *function, void *context,
    uint32_t replica, struct sumac_value **value, struct sumac_error *error)
{
    const struct sumac_value_context of = {
        .replica_id_in_sync_group = replica, .num_replicas_in_sync = strategy->in_sync};

    assert(replica < strategy->in_sync);
    assert(*value == NULL);
    const enum sumac_status status = function(&of, context, value, error);
    if (status == SUMAC_OK && *value == NULL)
        return fail_argument(error, "the function made no value of replica %" PRIu32, replica);
    return status;
}

enum sumac_status sumac_strategy_values_from_function(
    struct sumac_strategy *strategy, sumac_value_function *function, void *context,
    struct sumac_value **value, struct sumac_error *error)
{
    if (strategy == NULL || function == NULL || value == NULL)
        return fail_for_null(
            error, "sumac_strategy_values_from_function",
            strategy == NULL   ? "strategy"
            : function == NULL ? "function"
                               : "value");
    enum sumac_status status =
        context_check_cross(strategy, "sumac_strategy_values_from_function", error);
    if (status != SUMAC_OK)
        return status;
    struct sumac_value *made[SUMAC_REPLICAS_MAX] = {NULL};
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++)
        status = make_value(strategy, function, context, strategy->first + i, &made[i], error);
    if (status == SUMAC_OK)
        status = wrap(strategy, value_lend(made), value, error);
    value_unref_all(made, strategy->replicas);
    return status;
}
