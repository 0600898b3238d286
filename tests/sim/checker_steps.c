/* SPDX-License-Identifier: Apache-2.0 */
/* checker_steps.c -- synchronous steps: each is the sum of its contributions in worker order, on
 * every ps of the same ones, and a client commits nothing past one that is not done. */
#include <string.h>

#include "checker.h"
#include "process_client.h"

float steps_value(uint32_t task, uint64_t step, uint32_t column)
{
    static const float values[] = {1e8f, 1, -1e8f, 0.1f, 3e7f, -0.7f, 5};

    return values[(task * 3 + step * 5 + column) % 7] * (float)(column + 1);
}

double steps_weight(uint32_t task) { return task + 1; }

uint32_t steps_participants(const struct world *world, uint64_t step)
{
    const uint32_t sets = (1u << world->ps_count) - 1;

    return 1 + (uint32_t)((step * 0x9e3779b97f4a7c15u >> 40) % sets);
}

bool checker_is_awaited(const struct world *world, const struct client *client)
{
    const struct checker *checker = world->checker;

    if (!world_has(world, FAULT_STEPS) || !client->member || checker->state_lost)
        return false;
    for (uint32_t i = 0; i < checker->life_count; i++)
        if (checker->lives[i]->joined && world->clients[checker->lives[i]->client]->member &&
            world->clients[checker->lives[i]->client]->task == client->task)
            return false;
    return true;
}

/* A member is open, or has left. Steps without contributions wait until one joins. */
static bool some_member_stayed(const struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *life = checker->lives[i];
        if (life->joined && world->clients[life->client]->member && !life->ended && !life->dead)
            return true;
    }
    return false;
}

bool checker_may_take_steps(const struct world *world)
{
    bool awaited = false;

    for (uint32_t i = 0; i < world->client_count; i++)
        awaited = awaited || checker_is_awaited(world, world->clients[i]);
    return !awaited && !world->loss_fails && some_member_stayed(world);
}

bool checker_is_counted(
    const struct world *world, uint32_t ps, enum sim_row row, uint32_t number, uint64_t applied)
{
    const struct checker *checker = world->checker;
    const uint64_t step = checker->pushes[number]->step;

    for (uint32_t i = 0; step != 0 && i < number; i++)
        if (checker->pushes[i]->step == step && (applied >> i & 1) != 0 &&
            checker_touches(checker->pushes[i], ps, row))
            return true;
    return false;
}

bool checker_may_differ(const struct world *world, const struct sim_push *push)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if (checker->pushes[i]->step == push->step && push->step != 0 &&
            checker->pushes[i]->differs != push->differs)
            return true;
    return false;
}

void checker_commits(
    struct world *world, const struct sim_session *life, const wire_push_request *request)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (push->session == life && push->step != 0 && push->fate == FATE_UNDER_WAY &&
            push->sequence != 0 && push->sequence < request->commit->commit_through)
            checker_violation(world, "a client commits past a contribution that is not done");
    }
}

/* ---- K of N */

static uint32_t life_bit(const struct world *world, const uint8_t id[16])
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->life_count; i++)
        if (checker->lives[i]->joined && memcmp(checker->lives[i]->id, id, 16) == 0)
            return 1u << i;
    return 0;
}

void checker_takes(struct world *world, const wire_take_step *taken)
{
    uint32_t sessions = 0;

    if (taken->step == 0 || taken->step >= STEPS_MAX) {
        checker_violation(world, "a step is taken that nobody can have come to");
        return;
    }
    struct step_seen *seen = &world->checker->steps[taken->step];
    for (size_t i = 0; i < taken->n_session_ids; i++)
        sessions |= life_bit(world, taken->session_ids[i].data);
    made_if(world, MADE_step_taken, !seen->taken);
    if (seen->taken && seen->sessions != sessions)
        checker_violation(world, "a step is taken twice, with others");
    *seen = (struct step_seen){.taken = true, .sessions = sessions};
}

static bool is_taken(const struct world *world, const struct sim_push *push)
{
    const struct step_seen *seen = &world->checker->steps[push->step];

    return seen->taken && (seen->sessions >> push->session->number & 1) != 0;
}

void checker_late(struct world *world, struct sim_push *push)
{
    push->defect = DEFECT_LATE;
    made(world, MADE_step_late);
    if (world->quorum == 0 || push->step == 0)
        checker_violation(world, "a push is late for no step with a quorum");
}

/* How many of the step count there. */
static uint32_t count_applied(const struct world *world, uint32_t ps, uint64_t step)
{
    const struct checker *checker = world->checker;
    uint32_t count = 0;

    for (uint32_t i = 0; i < checker->push_count; i++)
        count += checker->pushes[i]->step == step && (checker->applied[ps] >> i & 1) != 0;
    return count;
}

void checker_quorum(struct world *world, uint32_t ps)
{
    const struct checker *checker = world->checker;

    /* What ps 0 tells itself nobody sees. */
    for (uint32_t i = 0; world->ps_count > 1 && i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        const bool applied = (checker->applied[ps] >> i & 1) != 0;
        if (push->step == 0 || (push->participants >> ps & 1) == 0)
            continue;
        if (applied && !is_taken(world, push))
            checker_violation(world, "a step counts a contribution that it is not made of");
        if (push->defect == DEFECT_LATE && is_taken(world, push))
            checker_violation(world, "a contribution is late though its step is made of it");
        made_if(
            world, MADE_step_short,
            applied && count_applied(world, ps, push->step) < world->member_count);
    }
}

/* ---- the sums */

/* The contribution after that one in worker order, of those to the step that are applied there. */
static const struct sim_push *
next_in_order(const struct world *world, uint32_t ps, uint64_t step, const struct sim_push *before)
{
    const struct checker *checker = world->checker;
    const struct sim_push *next = NULL;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        const uint32_t task = world->clients[push->session->client]->task;
        if (push->step != step || (checker->applied[ps] >> i & 1) == 0 ||
            (before != NULL && task <= world->clients[before->session->client]->task))
            continue;
        if (next == NULL || task < world->clients[next->session->client]->task)
            next = push;
    }
    return next;
}

static void
add_step(const struct world *world, uint32_t ps, uint64_t step, float expected[MIX_COLUMNS])
{
    float sum[MIX_COLUMNS] = {0};
    double weight = 0;
    const struct sim_push *push = NULL;

    while ((push = next_in_order(world, ps, step, push)) != NULL) {
        const uint32_t task = world->clients[push->session->client]->task;
        for (uint32_t i = 0; i < MIX_COLUMNS; i++) {
            const float value = steps_value(task, step, i);
            sum[i] = weight > 0 ? sum[i] + value : value;
        }
        weight += steps_weight(task);
    }
    for (uint32_t i = 0; weight > 0 && i < MIX_COLUMNS; i++)
        expected[i] += sum[i] / (float)weight;
}

uint64_t checker_last_step(const struct world *world)
{
    const struct checker *checker = world->checker;
    uint64_t last = 0;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if (checker->pushes[i]->step > last)
            last = checker->pushes[i]->step;
    return last;
}

void checker_sums(struct world *world, uint32_t ps)
{
    float expected[MIX_COLUMNS] = {0}, found[MIX_COLUMNS] = {0};
    const uint64_t last = checker_last_step(world);

    for (uint64_t step = 1; step <= last; step++)
        add_step(world, ps, step, expected);
    if (values_peek_shard(world, ps, MIX, 0, found, sizeof found) &&
        memcmp(found, expected, sizeof found) != 0)
        checker_violation(world, "a step is not the sum of its contributions in worker order");
}

/* ---- pulls */

/* The contributions to that step. */
static uint64_t made_of(const struct world *world, uint64_t step)
{
    const struct checker *checker = world->checker;
    uint64_t pushes = 0;

    for (uint32_t i = 0; i < checker->push_count; i++)
        pushes |= checker->pushes[i]->step == step ? 1ull << i : 0;
    return pushes;
}

void checker_steps_pulled(struct world *world, const struct sim_pull *pull, uint32_t ps)
{
    const struct checker *checker = world->checker;
    const uint64_t last = checker_last_step(world);

    if (!pull->answered || (pull->asked >> ps & 1) == 0 || checker->state_lost)
        return;
    for (uint64_t step = 1; step <= last; step++) {
        const uint64_t whole = made_of(world, step) & checker->applied[ps];
        const uint64_t found = made_of(world, step) & pull->found[ps];
        if (found != 0 && found != whole)
            checker_violation(world, "a pull has part of a step");
        if (pull->at_step != 0 && found != (step <= pull->at_step ? whole : 0))
            checker_violation(
                world, step <= pull->at_step ? "a pull at a step lacks one up to it"
                                             : "a pull at a step has a later one");
    }
}
