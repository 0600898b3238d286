/* SPDX-License-Identifier: Apache-2.0 */
/* checker_rest.c -- what must hold when nothing happens any more: every wait has ended, every push
 * is whole or nowhere. */
#include <string.h>

#include "checker.h"
#include "process_client.h"

#define EXIT_TERMINATED 143 /* as a shell says of SIGTERM */

/* ---- each push */

static bool is_torn(const struct world *world, const struct sim_push *push, bool *everywhere)
{
    bool some = false;

    *everywhere = true;
    for (uint32_t ps = 0; ps < world->ps_count; ps++) {
        if ((push->participants >> ps & 1) == 0)
            continue;
        const bool here = (world->checker->applied[ps] >> push->number & 1) != 0;
        some = some || here;
        *everywhere = *everywhere && here;
    }
    return some && !*everywhere;
}

static void check_push(struct world *world, const struct sim_push *push)
{
    bool everywhere;

    if (push->seed || (push->participants & world->checker->unread) != 0)
        return;
    /* An observer holds up no end of the run: what it had under way then is not settled, and goes
     * with the rest. */
    const bool settled = push->session->decided || world->clients[push->session->client]->member;
    if (is_torn(world, push, &everywhere)) {
        if (push->fate != FATE_OK && (!settled || world->checker->terminated))
            return;
        checker_violation(world, "a push is torn: applied on some ps only");
        return;
    }
    /* its session's end says that it is committed, and not that its step is whole */
    const bool waits = push->step != 0 && push->by_settle && !checker_may_take_steps(world);
    if (push->fate == FATE_OK && !everywhere && !waits)
        checker_violation(world, "an acknowledged push is not applied");
    if ((push->fate == FATE_REFUSED || push->fate == FATE_CLOSED) && everywhere)
        checker_violation(world, "a push that was answered as lost is applied");
    if (push->fate == FATE_UNDER_WAY && !push->session->dead)
        checker_violation(world, "a push is never answered");
}

/* The next attempt of the task was told how far its session had come. */
static void check_final(struct world *world, const struct sim_push *push)
{
    const struct checker *checker = world->checker;

    if (push->seed || (push->participants & world->checker->unread) != 0 || push->sequence == 0 ||
        push->defect != DEFECT_NONE || checker_may_be_void(world, push) ||
        (push->step != 0 && !checker_may_take_steps(world)))
        return;
    const struct client *client = world->clients[push->session->client];
    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *next = checker->lives[i];
        const struct client *other = world->clients[next->client];
        bool everywhere;
        if (!client->member || !other->member || other->task != client->task || !next->joined ||
            !push->session->joined || next->attempt != push->session->attempt + 1)
            continue;
        is_torn(world, push, &everywhere);
        if (everywhere != (push->sequence <= next->previous_final))
            checker_violation(world, "a task is told another final than holds");
    }
}

/* ---- each ps */

static void check_values(struct world *world, uint32_t ps)
{
    struct checker *checker = world->checker;
    struct snapshot snapshot;

    checker->unread |= 1u << ps;
    if (world->ps[ps]->core == NULL || world->ps[ps]->crashed)
        return;
    if (!values_peek(world, ps, &snapshot)) {
        if (world->ps[ps]->ran_out)
            return;
        if (!checker->state_lost) /* who ends for want of another finishes nothing */
            checker_violation(world, "a shard is not there, or busy, at the end");
        return;
    }
    checker->unread &= ~(1u << ps);
    checker->applied[ps] = values_examine(world, ps, &snapshot, true);
    if (world_has(world, FAULT_STEPS))
        checker_sums(world, ps);
    for (uint32_t i = 0; i < world->checker->pull_count; i++)
        checker_steps_pulled(world, world->checker->pulls[i], ps);
    if (world->quorum != 0)
        checker_quorum(world, ps);
    if ((checker->seen[ps] & ~checker->applied[ps]) != 0)
        checker_violation(world, "a pull has seen a push that is not applied");
}

/* A ps that ps 0 had no stream to when it ended, or whose own end it did not hear of, takes the
 * other for lost. */
static void check_terminated(struct world *world, int exit_code)
{
    made(world, exit_code == EXIT_TERMINATED ? MADE_exit_terminated : MADE_exit_else);
    if (exit_code == 0 ? !world->checker->leave_asked
                       : exit_code != EXIT_TERMINATED && exit_code != LANE_EXIT_PS_LOST)
        checker_violation(world, "SIGTERM ends a run with another code");
}

/* Until a member has joined, a ps waits without limit. */
static void check_exits(struct world *world)
{
    const struct checker *checker = world->checker;
    bool done = false;
    bool joined = false;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *life = checker->lives[i];
        const bool member = world->clients[life->client]->member;
        joined = joined || (member && life->joined);
        done = done || (member && life->left_done && life->leave_heard);
    }
    for (uint32_t i = 0; i < world->ps_count; i++) {
        const struct ps *ps = world->ps[i];
        if (!ps->exited && !joined)
            continue;
        if (!ps->exited)
            checker_violation(world, "a ps never exits");
        else if (checker->terminated) /* of all the same, unless the run had come to its end */
            check_terminated(world, ps->exit_code);
        else if (ps->exit_code != 0 && done && checker->leave_asked)
            checker_violation(world, "a ps exits as if the job had failed");
        else if (ps->exit_code < 128 && !done && !checker->leave_asked)
            checker_violation(world, "a ps exits as if the job were done");
    }
}

/* Before the first crash. */
static bool some_joined(const struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->life_count; i++)
        if (checker_of_lost_run(world, checker->lives[i]))
            return true;
    return false;
}

/* A ps has lost its state: those that have met it give up, so that a scheduler starts all again;
 * the one that came back waits to be called. */
static void check_survivors(struct world *world)
{
    for (uint32_t i = 0; i < world->ps_count; i++) {
        const struct ps *ps = world->ps[i];
        if (!ps->crashed && !ps->exited && some_joined(world))
            checker_violation(world, "a ps outlives the state of another");
        if (!ps->crashed && ps->exited && ps->exit_code < 128 && !world->checker->leave_asked)
            checker_violation(world, "a ps exits as if no state were lost");
    }
    if (world->checker->unrested && checker_violations(world) == 0)
        checker_violation(world, "the run never comes to rest");
}

/* A ps has crashed: what was acknowledged is still applied on every other. */
static void check_kept(struct world *world, const struct sim_push *push)
{
    if (push->seed || push->fate != FATE_OK)
        return;
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        if ((push->participants >> ps & 1) != 0 && (world->checker->unread >> ps & 1) == 0 &&
            (world->checker->applied[ps] >> push->number & 1) == 0)
            checker_violation(world, "an acknowledged push is not applied");
}

void checker_at_rest(struct world *world)
{
    struct checker *checker = world->checker;

    for (uint32_t i = 0; i < world->client_count; i++)
        program_check_waits(world, world->clients[i]);
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        check_values(world, ps);
    checker_collectives_rest(world);
    if (checker->state_lost) {
        for (uint32_t i = 0; i < checker->push_count; i++)
            check_kept(world, checker->pushes[i]);
        check_survivors(world);
        return;
    }
    for (uint32_t i = 0; i < checker->push_count; i++) {
        check_push(world, checker->pushes[i]);
        check_final(world, checker->pushes[i]);
    }
    if (!checker->terminated)
        checker_check_done(world);
    check_exits(world);
    if (checker->unrested && checker->violations == 0)
        checker_violation(world, "the run never comes to rest");
}

void checker_memory(struct world *world)
{
    const struct source *source = &world->source;

    if (checker_violations(world) != 0)
        return;
    if (source->taken != source->given)
        checker_violation(world, "a core does not give back all its memory");
    if (source->sizes_wrong != 0)
        checker_violation(world, "a core gives back memory with another size than it took");
}
