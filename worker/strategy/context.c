/* SPDX-License-Identifier: Apache-2.0 */
/* context.c -- threads are in the contexts of strategies. */
#include "strategy.h"

#include <assert.h>
#include <unistd.h>

#include "error.h"

static _Thread_local struct context present;

struct context *context_present(void) { return &present; }

bool context_is_of(const struct sumac_replica *replica)
{
    return replica != NULL && present.kind == CONTEXT_REPLICA && present.replica == replica;
}

enum sumac_status context_fail(const char *call, const char *why, struct sumac_error *error)
{
    return fail(error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED, "%s: %s", call, why);
}

enum sumac_status context_check_cross(
    const struct sumac_strategy *strategy, const char *call, struct sumac_error *error)
{
    assert(strategy != NULL);
    assert(call != NULL);
    const char *const why =
        strategy->process != getpid()
            ? "called in a child of the process that made the strategy, without its threads; make "
              "one in the child"
        : present.kind == CONTEXT_REPLICA
            ? "called within a replica; it is of the cross-replica context: call it after the run, "
              "or in the function of sumac_replica_merge_call"
        : present.kind == CONTEXT_UPDATE
            ? "called within the function of an update, which does what it does to its component"
        : present.kind == CONTEXT_CROSS_REPLICA && present.strategy != strategy
            ? "called in the scope of another strategy; leave that first, strategies do not mix"
            : NULL;
    return why == NULL ? SUMAC_OK : context_fail(call, why, error);
}

enum sumac_status sumac_strategy_enter(struct sumac_strategy *strategy, struct sumac_error *error)
{
    if (strategy == NULL)
        return fail_for_null(error, "sumac_strategy_enter", "strategy");
    const enum sumac_status status = context_check_cross(strategy, "sumac_strategy_enter", error);
    if (status != SUMAC_OK)
        return status;
    present.kind = CONTEXT_CROSS_REPLICA;
    present.strategy = strategy;
    present.depth++;
    assert(present.depth > 0);
    return SUMAC_OK;
}

enum sumac_status sumac_strategy_leave(struct sumac_strategy *strategy, struct sumac_error *error)
{
    if (strategy == NULL)
        return fail_for_null(error, "sumac_strategy_leave", "strategy");
    if (present.kind != CONTEXT_CROSS_REPLICA || present.strategy != strategy || present.depth == 0)
        return context_fail(
            "sumac_strategy_leave", "this thread is in no scope of that strategy", error);
    if (--present.depth == 0 && !present.set)
        present = (struct context){.kind = CONTEXT_DEFAULT};
    return SUMAC_OK;
}

enum sumac_status sumac_set_strategy(struct sumac_strategy *strategy, struct sumac_error *error)
{
    if (present.kind != CONTEXT_DEFAULT && !(present.set && present.depth == 0))
        return context_fail(
            "sumac_set_strategy",
            "called in a scope, or within a replica or an update; leave it first", error);
    present = (struct context){
        .kind = strategy == NULL ? CONTEXT_DEFAULT : CONTEXT_CROSS_REPLICA,
        .strategy = strategy,
        .set = strategy != NULL};
    return SUMAC_OK;
}

struct sumac_strategy *sumac_present_strategy(void)
{
    return present.kind == CONTEXT_DEFAULT ? NULL : present.strategy;
}

bool sumac_in_cross_replica_context(void)
{
    return present.kind == CONTEXT_CROSS_REPLICA || present.kind == CONTEXT_UPDATE;
}

struct sumac_replica *sumac_present_replica(void)
{
    return present.kind == CONTEXT_REPLICA ? present.replica : NULL;
}
