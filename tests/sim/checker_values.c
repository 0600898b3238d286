/* SPDX-License-Identifier: Apache-2.0 */
/* checker_values.c -- which pushes the bytes of one ps hold, whole, once, and in their order. */
#include <string.h>

#include "checker.h"
#include "slots.h"

/* How often a push is applied to what it touches: the least and the most. */
struct times {
    int64_t least, most;
};

static void count(struct times *times, int64_t value)
{
    if (value < times->least)
        times->least = value;
    if (value > times->most)
        times->most = value;
}

static bool touches(const struct sim_push *push, uint32_t ps)
{
    return (push->participants >> ps & 1) != 0;
}

static bool examine_push(
    struct world *world, uint32_t ps, const struct snapshot *snapshot, const struct sim_push *push,
    bool final)
{
    struct times times = {.least = INT64_MAX, .most = INT64_MIN};
    const uint32_t column = push->number;

    for (uint32_t row = 0; row < 2; row++) {
        const int64_t whole = snapshot->ledger[row][column];
        const int64_t real = (int64_t)snapshot->grad[row][column];
        if ((push->ledger[ps] >> row & 1) != 0)
            count(&times, whole);
        else if (whole != 0)
            checker_violation(world, "a row has a push that did not touch it");
        if ((push->grad[ps] >> row & 1) != 0)
            count(&times, real);
        else if (real != 0)
            checker_violation(world, "a row has a push that did not touch it");
    }
    if (push->seed || !touches(push, ps))
        return false;
    if (times.most > 1)
        checker_violation(world, "a push is applied twice");
    else if (times.least < 0)
        checker_violation(world, "a value that nobody pushed");
    else if (times.least != times.most)
        checker_violation(
            world, final ? "a ps has applied part of a part" : "a pull has part of a part");
    else if (times.most == 1 && push->defect != DEFECT_NONE)
        checker_violation(world, "a refused part is applied");
    return times.most >= 1;
}

/* A session's element of `last` is the last of its pushes that are there; and none before that one
 * is missing. */
static void
examine_order(struct world *world, uint32_t ps, const struct snapshot *snapshot, uint64_t applied)
{
    const struct checker *checker = world->checker;
    int64_t expected[LIVES_MAX] = {0};
    uint64_t missing[LIVES_MAX] = {0};

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        const uint32_t session = push->session->number;
        if (push->seed || !touches(push, ps))
            continue;
        if ((applied >> i & 1) != 0) {
            if (push->step == 0)
                expected[session] = (int64_t)i + 1;
            if (missing[session] != 0)
                checker_violation(world, "a session's order is broken: one is missing before");
        } else if (
            push->defect == DEFECT_NONE && push->fate <= FATE_OK &&
            !checker_may_be_void(world, push)) {
            missing[session]++;
        }
    }
    for (uint32_t i = 0; i < checker->life_count; i++)
        if (snapshot->last[i] != expected[i])
            checker_violation(world, "a session's order is broken");
}

uint64_t
values_examine(struct world *world, uint32_t ps, const struct snapshot *snapshot, bool final)
{
    const struct checker *checker = world->checker;
    uint64_t applied = 0;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if (examine_push(world, ps, snapshot, checker->pushes[i], final))
            applied |= 1ull << i;
    examine_order(world, ps, snapshot, applied);
    checker_versions_examine(world, ps, snapshot, applied);
    if (snapshot->has_slots)
        slots_examine(world, ps, snapshot, applied);
    for (uint32_t i = 0; snapshot->has_seed && i < SEED_COLUMNS; i++)
        if (snapshot->seed[i] != SEED_VALUE)
            checker_violation(world, "a variable is not as its creator assigned it");
    return applied;
}

bool values_peek_shard(
    struct world *world, uint32_t ps, enum variable variable, uint32_t nth, void *out,
    uint64_t bytes)
{
    const struct sim_shard *shard = checker_shard(world, variable, ps, nth);

    if (shard == NULL)
        return true; /* never created: nothing was pushed to it */
    return lane_peek(ps_core_lane(world->ps[ps]->core), shard->id, out, bytes) == bytes;
}

bool values_peek(struct world *world, uint32_t ps, struct snapshot *snapshot)
{
    memset(snapshot, 0, sizeof *snapshot);
    bool whole = true;
    for (uint32_t row = 0; row < 2; row++) {
        whole &= values_peek_shard(
            world, ps, LEDGER, row, snapshot->ledger[row], sizeof snapshot->ledger[row]);
        whole &= values_peek_shard(
            world, ps, GRAD, row, snapshot->grad[row], sizeof snapshot->grad[row]);
    }
    whole &= values_peek_shard(world, ps, LAST, 0, snapshot->last, sizeof snapshot->last);
    snapshot->has_slots = world->slotted;
    whole &= values_peek_shard(world, ps, SLOW, 0, snapshot->slow, sizeof snapshot->slow);
    whole &= values_peek_shard(world, ps, ADAM, 0, snapshot->adam, sizeof snapshot->adam);
    if (world->checker->seed_assigned) {
        snapshot->has_seed = true;
        whole &= values_peek_shard(world, ps, SEED, 0, snapshot->seed, sizeof snapshot->seed);
    }
    return whole;
}
