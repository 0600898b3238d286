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

/* The first so many steps of the session: a step is over when its last push was made. */
static void check_steps(
    struct world *world, uint32_t ps, const struct sim_session *life, uint64_t steps,
    uint64_t applied, const char *not_applied, const char *not_made)
{
    const struct checker *checker = world->checker;
    uint64_t begun = 0;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (push->session != life)
            continue;
        const bool due = begun < steps && push->defect == DEFECT_NONE && !push->seed &&
                         !checker_may_be_void(world, push);
        if (due && (push->participants >> ps & 1) != 0 && (applied >> i & 1) == 0)
            checker_violation(world, not_applied);
        begun += push->finishes_step;
    }
    if (steps > begun)
        checker_violation(world, not_made);
}

/* A commit that says the clock of before, and one that says it with a contribution which waits for
 * others, may reach one ps as one: what it waits for holds up both there. */
static bool contributes(const struct world *world, const struct sim_session *life)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if (checker->pushes[i]->session == life && checker->pushes[i]->step != 0 &&
            checker->pushes[i]->fate == FATE_UNDER_WAY)
            return true;
    return false;
}

/* Some ps counts more steps of it for a while, and nothing has befallen anybody. */
static void check_told(struct world *world, struct sim_session *life, uint64_t clock)
{
    if (clock > life->clock_seen || contributes(world, life)) {
        life->clock_seen = clock > life->clock_seen ? clock : life->clock_seen;
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

    if (world->checker->state_lost || world->checker->room_refused || world_was_short(world) ||
        !values_peek(world, ps, &snapshot))
        return;
    const uint64_t applied = values_examine(world, ps, &snapshot, false);
    for (size_t i = 0; i < stats->n_sessions; i++) {
        const wire_session_stats *session = stats->sessions[i];
        struct sim_session *life = find_life(world, session);
        if (life == NULL || strcmp(session->state, "open") != 0)
            continue;
        const uint64_t first = life->first_clock;
        check_steps(
            world, ps, life, session->clock > first ? session->clock - first : 0, applied,
            "a step counts on a ps that has not applied it",
            "a clock counts a step that was not made");
        check_told(world, life, session->clock);
    }
}

uint64_t checker_steps_finished(const struct world *world, const struct sim_session *life)
{
    const struct checker *checker = world->checker;
    uint64_t finished = life->first_clock;

    for (uint32_t i = 0; i < checker->push_count; i++)
        finished += checker->pushes[i]->session == life && checker->pushes[i]->finishes_step;
    return finished;
}

/* A member since before the pull, and nothing says that it may have been settled. */
static bool
holds_up(const struct world *world, const struct sim_session *life, const struct sim_pull *pull)
{
    return life->joined && life->joined_us < pull->began_us &&
           world->clients[life->client]->member && !life->ended && !life->left && !life->dead &&
           !life->rivalled && !life->told_closed && !life->leave_heard && life->closing == 0 &&
           !checker_may_be_closed(world, life);
}

void checker_lag(struct world *world, const struct sim_pull *pull, uint32_t ps, uint64_t applied)
{
    const struct checker *checker = world->checker;

    if (checker->state_lost || world_was_short(world))
        return;
    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *life = checker->lives[i];
        if (holds_up(world, life, pull) && pull->clock_awaited > life->first_clock)
            check_steps(
                world, ps, life, pull->clock_awaited - life->first_clock, applied,
                "a pull is staler than its lag may be", "a pull overtakes a slower member");
    }
}
