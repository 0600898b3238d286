/* SPDX-License-Identifier: Apache-2.0 */
/* checker_versions.c -- the versions that clients are told: as many as a shard has had updates, and
 * none that is older than one that was told before it was asked for.
 *
 * A part that comes again is answered with the versions of that moment, so those of two answers
 * need not be in the order of their pushes. What was told before a push was made is below what that
 * push is answered with, on however many streams.
 */
#include <string.h>

#include "checker.h"

/* The updates of a row that these pushes are, a bit per column. */
static uint64_t
updates_of(const struct world *world, uint32_t ps, enum sim_row row, uint64_t pushes)
{
    const struct checker *checker = world->checker;
    uint64_t updates = 0;

    for (uint32_t i = 0; i < checker->push_count; i++)
        updates += (pushes >> i & 1) != 0 && checker_touches(checker->pushes[i], ps, row) &&
                   !checker_is_counted(world, ps, row, i, pushes);
    return updates;
}

bool checker_touches(const struct sim_push *push, uint32_t ps, enum sim_row row)
{
    const bool has_part = (push->participants >> ps & 1) != 0;

    switch (row) {
    case ROW_LEDGER_0:
    case ROW_LEDGER_1:
        return has_part && (push->ledger[ps] >> (row - ROW_LEDGER_0) & 1) != 0;
    case ROW_GRAD_0:
    case ROW_GRAD_1:
        return has_part && (push->grad[ps] >> (row - ROW_GRAD_0) & 1) != 0;
    case ROW_LAST:
        return has_part && !push->seed && push->step == 0;
    case ROW_SLOW:
    case ROW_ADAM:
        return has_part && push->slotted;
    case ROW_SEED:
        return has_part && push->seed;
    case ROWS:
        break;
    }
    return false;
}

void checker_versions_pulled(struct world *world, const struct sim_pull *pull, uint32_t ps)
{
    const struct snapshot *snapshot = &pull->snapshots[ps];
    uint64_t *told = world->checker->versions_told[ps];

    for (enum sim_row row = 0; row < ROWS; row++) {
        const uint64_t version = snapshot->versions[row];
        if ((snapshot->has_version >> row & 1) == 0)
            continue;
        if (version < pull->versions_told[ps][row])
            checker_violation(world, "the version of a shard goes back");
        if (told[row] < version)
            told[row] = version;
    }
}

void checker_versions_examine(
    struct world *world, uint32_t ps, const struct snapshot *snapshot, uint64_t applied)
{
    for (enum sim_row row = 0; row < ROW_SEED; row++) { /* which is assigned by whoever must */
        if ((snapshot->has_version >> row & 1) != 0 &&
            snapshot->versions[row] != updates_of(world, ps, row, applied))
            checker_violation(world, "a version is not the number of updates");
    }
}

/* The row that a piece is of; ROWS: of none that counts. */
static enum sim_row row_of(const struct world *world, const struct session_piece *piece)
{
    static const struct {
        enum variable variable;
        uint32_t nth;
    } rows[ROWS] = {
        [ROW_LEDGER_0] = {LEDGER, 0}, [ROW_LEDGER_1] = {LEDGER, 1}, [ROW_GRAD_0] = {GRAD, 0},
        [ROW_GRAD_1] = {GRAD, 1},     [ROW_LAST] = {LAST, 0},       [ROW_SLOW] = {SLOW, 0},
        [ROW_ADAM] = {ADAM, 0},       [ROW_SEED] = {SEED, 0}};
    enum sim_row row = 0;

    while (row < ROWS) {
        const struct sim_shard *shard =
            checker_shard(world, rows[row].variable, piece->ps, rows[row].nth);
        if (shard != NULL && shard->id == piece->shard_id)
            break;
        row++;
    }
    return row;
}

/* Where no connection breaks each part is answered once, with the versions that it made. */
static void check_order(struct world *world, const struct sim_push *push)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *other = checker->pushes[i];
        if (other == push || other->fate != FATE_OK || other->session != push->session)
            continue;
        for (uint32_t a = 0; a < push->piece_count; a++)
            for (uint32_t b = 0; b < other->piece_count; b++) {
                if (push->pieces[a].shard_id != other->pieces[b].shard_id)
                    continue;
                if ((push->versions[a] < other->versions[b]) != (push->number < other->number))
                    checker_violation(world, "a session's order is broken by its versions");
            }
    }
}

/* It is applied, and so is no push that has not been made. Where the end of its session says that
 * it counts, nobody has said its versions. */
void checker_versions_pushed(struct world *world, const struct sim_push *push)
{
    const struct checker *checker = world->checker;

    if (checker->state_lost || push->by_settle)
        return;
    if (!world_has(world, FAULT_DROP))
        check_order(world, push);
    for (uint32_t i = 0; i < push->piece_count; i++) {
        const uint32_t ps = push->pieces[i].ps;
        const enum sim_row row = row_of(world, &push->pieces[i]);
        uint64_t *told = row == ROWS ? NULL : &world->checker->versions_told[ps][row];
        if (told == NULL)
            continue;
        if (push->cancelled && push->versions[i] == 0) /* it was applied before its ps heard */
            continue;
        if (push->versions[i] <= push->versions_told[ps][row])
            checker_violation(world, "a push is answered with a version from before it");
        if (push->versions[i] > updates_of(world, ps, row, UINT64_MAX))
            checker_violation(world, "a push is answered with a version that nobody made");
        if (*told < push->versions[i])
            *told = push->versions[i];
    }
}
