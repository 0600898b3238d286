/* SPDX-License-Identifier: Apache-2.0 */
/* peers_round.c -- one round of the workers of a strategy: its options, its end, its errors. */
#include "peers_state.h"

#include <assert.h>

#include "error.h"
#include "sumac/collective.h"

bool peers_know_attempts(const struct strategy_peers *peers)
{
    uint32_t i = 0;

    assert(peers->attempts[peers->index] != 0);
    while (i < peers->count && peers->attempts[i] != 0)
        i++;
    return i == peers->count;
}

struct sumac_collective_options peers_next_round(struct strategy_peers *peers, uint32_t timeout_ms)
{
    return (struct sumac_collective_options){
        .name = peers->name,
        .round = ++peers->round,
        .tasks = peers->workers,
        .task_count = peers->worker_count,
        .allow_non_finite = true,
        .timeout_ms = timeout_ms};
}

void peers_wait_out(struct sumac_collective *collective)
{
    struct sumac_error error;

    while (collective != NULL &&
           sumac_collective_wait(collective, 0, &error) == SUMAC_DEADLINE_EXCEEDED) {
    }
}

enum sumac_status
peers_fail_round(const struct call *call, const struct sumac_error *why, struct sumac_error *error)
{
    enum sumac_status status = why->status;

    assert(status != SUMAC_OK);
    const bool waited =
        why->reason == SUMAC_REASON_TIMED_OUT || /* the pull, or the round for all */
        why->reason == SUMAC_REASON_ROUND_TIMED_OUT;
    if (status == SUMAC_UNAVAILABLE && waited)
        status = SUMAC_DEADLINE_EXCEEDED;
    else if (status == SUMAC_ABORTED && why->reason == SUMAC_REASON_MEMBER_GONE)
        status = SUMAC_UNAVAILABLE;
    return fail(error, status, why->reason, "%s: %.440s", call_name(call->kind), why->text);
}
