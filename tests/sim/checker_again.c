/* SPDX-License-Identifier: Apache-2.0 */
/* checker_again.c -- whoever tries again in vain waits longer each time: for streams that break
 * before they are greeted, and for the session's own calls.
 */
#include <assert.h>

#include "checker.h"
#include "process_client.h"

#define FIRST_US 20000u /* doubled with each try, of which a random half is taken off */

static void failed(struct world *world, struct tries *tries)
{
    tries->count++;
    tries->failed_us = world->now_us;
}

/* Is it tried again before its time? */
static bool is_early(const struct world *world, const struct tries *tries)
{
    uint64_t wait_us = FIRST_US;

    for (uint32_t i = 1; i < tries->count && wait_us < SIM_BACKOFF_US_MAX; i++)
        wait_us *= 2;
    if (wait_us > SIM_BACKOFF_US_MAX)
        wait_us = SIM_BACKOFF_US_MAX;
    return tries->count > 0 && world->now_us < tries->failed_us + wait_us / 2;
}

/* ---- streams */

static bool is_pull(const struct stream *stream) { return stream->kind == LANE_STREAM_PULL; }

static struct tries *tries_of(struct world *world, const struct stream *stream)
{
    struct sim_session *life = world->clients[stream->caller - SIM_PS_MAX]->life;

    return &life->streams[stream->ps][is_pull(stream)];
}

void checker_opens(struct world *world, const struct stream *stream)
{
    if (is_early(world, tries_of(world, stream)))
        checker_violation(world, "a stream is opened again too soon");
}

void checker_greeted(struct world *world, const struct stream *stream)
{
    *tries_of(world, stream) = (struct tries){0};
}

void checker_lost(struct world *world, const struct stream *stream)
{
    failed(world, tries_of(world, stream));
}

/* ---- calls */

static bool is_its_own(enum lane_call_kind kind)
{
    return kind == LANE_CALL_JOIN || kind == LANE_CALL_RENEW || kind == LANE_CALL_LEAVE;
}

/* What ends at another time is another call. */
void checker_calls(struct world *world, const struct call *call, uint64_t until_us)
{
    struct sim_session *life = world->clients[call->caller - SIM_PS_MAX]->life;
    struct tries *tries = &life->calls[call->kind];

    assert((uint32_t)call->kind < SIM_CALL_KINDS);
    if (tries->until_us != until_us)
        *tries = (struct tries){.until_us = until_us};
    if (is_its_own(call->kind) && is_early(world, tries))
        checker_violation(world, "a call is made again too soon");
}

void checker_call_over(struct world *world, const struct call *call, bool is_answered)
{
    struct sim_session *life = world->clients[call->caller - SIM_PS_MAX]->life;

    if (is_answered)
        life->calls[call->kind].count = 0;
    else
        failed(world, &life->calls[call->kind]);
}
