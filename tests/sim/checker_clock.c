/* SPDX-License-Identifier: Apache-2.0 */
/* checker_clock.c -- the clocks of sessions, as each ps counts them: no step counts on a ps before
 * all that it is made of is applied there, and every ps hears of it, whether or not the step pushed
 * to it.
 */
#include <stdio.h>
#include <string.h>

#include "checker.h"
#include "process_client.h"

#define TOLD_US 4000000u /* what one ps counts, every other does, after so long without a cause */

static struct sim_session *find_life(const struct world *world, const wire_session_stats *session)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        struct sim_session *life = checker->lives[i];
        const struct client *client = world->clients[life->client];
        char task[24];
        snprintf(task, sizeof task, "worker %u", client->task);
        if (life->joined && client->member && life->attempt == session->attempt &&
            strcmp(task, session->task) == 0)
            return life;
    }
    return NULL;
}

/* The steps that the session has finished: it counts those that are over when its last push was
 * made. */
static void check_step(
    struct world *world, uint32_t ps, const struct sim_session *life, uint64_t steps,
    uint64_t applied)
{
    const struct checker *checker = world->checker;
    uint64_t begun = 0;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (push->session != life)
            continue;
        const bool due = begun < steps && push->defect == DEFECT_NONE && !push->seed;
        if (due && (push->participants >> ps & 1) != 0 && (applied >> i & 1) == 0)
            checker_violation(world, "a step counts on a ps that has not applied it");
        begun += push->finishes_step;
    }
    if (steps > begun)
        checker_violation(world, "a clock counts a step that was not made");
}

/* Some ps counts more steps of it for a while, and nothing has befallen anybody. */
static void check_told(struct world *world, struct sim_session *life, uint64_t clock)
{
    if (clock > life->clock_seen) {
        life->clock_seen = clock;
        life->clock_seen_us = world->now_us;
    }
    const uint64_t since_us = life->clock_seen_us;
    if (clock < life->clock_seen && world->now_us > since_us + TOLD_US && !life->ended &&
        !life->dead && !life->left && checker_was_calm(world, life, since_us - TOLD_US))
        checker_violation(world, "a ps never hears of a step that another counts");
}

void checker_clocks(struct world *world, uint32_t ps, const wire_stats_reply *stats)
{
    struct snapshot snapshot;

    if (world->checker->state_lost || world_was_short(world) || !values_peek(world, ps, &snapshot))
        return;
    const uint64_t applied = values_examine(world, ps, &snapshot, false);
    for (size_t i = 0; i < stats->n_sessions; i++) {
        const wire_session_stats *session = stats->sessions[i];
        struct sim_session *life = find_life(world, session);
        if (life == NULL || strcmp(session->state, "open") != 0)
            continue;
        const uint64_t first = life->first_clock;
        check_step(world, ps, life, session->clock > first ? session->clock - first : 0, applied);
        check_told(world, life, session->clock);
    }
}
