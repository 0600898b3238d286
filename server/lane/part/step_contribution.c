/* SPDX-License-Identifier: Apache-2.0 */
/* step_contribution.c -- a part of a synchronous push: which step it may be for, and whether it is
 * like the others of that step.
 *
 * What is wrong with one is found before it is staged: one that is committed cannot be taken back.
 * Those that are held for a step are alike, so it is enough to compare with any.
 */
#include "part_state.h"

#include "voided.h"

void lane_step_contribution_replay_refused(struct lane_part *part, uint64_t step)
{
    assert(part->step == 0);
    part->step = step;
}

/* ---- its step ---- */

/* The last step of its that is over. */
static uint64_t over_step(const struct lane_session *session)
{
    const uint64_t first = session->first_step == 0 ? 0 : session->first_step - 1;

    return session->passed_step > first ? session->passed_step : first;
}

/* The member's contributions around one that arrives. Parts may arrive in another order. */
struct around {
    uint64_t before, after; /* steps of the nearest ones; those that are over, and UINT64_MAX */
    bool joined;            /* nothing is missing between it and the one before */
};

static struct around look_around(struct lane *lane, const struct lane_part *part)
{
    struct lane_session *session = part->session;
    const struct lane_part *before = lane_session_part_before(session, part->sequence);
    const struct lane_part *after = before == NULL ? session->parts.first : before->in_session.next;
    uint64_t previous = part->previous;

    assert(before == NULL || before->sequence < part->sequence);
    struct around around = {.before = over_step(session), .after = UINT64_MAX, .joined = true};

    for (; before != NULL; before = before->in_session.prev) {
        lane->work++;
        around.joined = around.joined && before->sequence == previous;
        previous = before->previous;
        if (before->step != 0)
            break;
    }
    if (before != NULL)
        around.before = before->step;
    else
        around.joined = around.joined && previous == session->mark;
    while (after != NULL && after->step == 0) {
        lane->work++;
        after = after->in_session.next;
    }
    if (after != NULL)
        around.after = after->step;
    return around;
}

/* Its steps have a number each, and no more of them are under way at a time. With a quorum steps
 * end without a member. */
static bool is_far_ahead(const struct lane *lane, const struct lane_session *session, uint64_t step)
{
    const uint64_t of_all = lane->step_quorum != 0 ? lane->step_over + 1 : 0; /* on some ps */
    const uint64_t over = over_step(session) > of_all ? over_step(session) : of_all;

    assert(session->first_step > 0);
    return step > over && step - over > lane->config.parts_per_session_max;
}

/* The step is the member's next one. Else the part is refused, and contributes to none. With a
 * quorum a member goes on with the first step that is not over where it is said so; and another ps
 * may be one step ahead of this one. */
static bool take_step(struct lane *lane, struct lane_part *part, uint64_t step)
{
    const struct lane_session *session = part->session;
    const struct around around = look_around(lane, part);
    const bool far = session->first_step != 0 && is_far_ahead(lane, session, step);
    const uint64_t next = (far ? over_step(session) : around.before) + 1;
    const bool may_leave_out = lane->step_quorum != 0 && step <= lane->step_over + 2;

    assert(part->step == 0);
    if (session->first_step != 0 && !far && step > around.before && step < around.after &&
        (step == next || !around.joined || may_leave_out)) {
        part->step = step;
        return true;
    }
    if (session->first_step == 0)
        return lane_part_refuse(
            lane, part, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_STEP,
            "push %" PRIu64 " of %s is for synchronous step %" PRIu64
            ", and its session takes part in none: join as a member, and begin with the step that "
            "the join's answer says\t%" PRIu64 "\t%" PRIu64,
            part->sequence, session->task, step, next, step);
    return lane_part_refuse(
        lane, part, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_STEP,
        "push %" PRIu64 " of %s is for synchronous step %" PRIu64 "%s; its next one is %" PRIu64
        ": a member's steps are numbered one after the other\t%" PRIu64 "\t%" PRIu64,
        part->sequence, session->task, step,
        step == around.before  ? ", which it has contributed to already"
        : step < around.before ? ", which is an earlier one"
                               : ", which is a later one",
        next, next, step);
}

bool lane_step_contribution_begin(
    struct lane *lane, struct lane_part *part, const wire_part *header)
{
    assert(part->state == PART_RECEIVING);
    assert(!part->eager);
    if (lane->step_members == 0)
        return lane_part_refuse(
            lane, part, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "push %" PRIu64 " is synchronous, and ps %u does not know the number of members "
            "of a step: list them in the cluster configuration of ps 0, or start it with --members",
            part->sequence, lane->index);
    if (!take_step(lane, part, header->step))
        return false;
    if (header->eager)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 " of %s is synchronous and carries its own commit: a contribution "
            "waits for those of the other members, and is committed when each ps has it",
            part->sequence, part->session->task);
    return lane_part_check_weight(lane, part);
}

/* ---- its variables ---- */

bool lane_step_contribution_check_variable(
    struct lane *lane, struct lane_part *part, const struct variable *variable)
{
    const uint32_t aggregation = variable->definition.aggregation;
    const enum sumac_dtype dtype = variable->definition.dtype;

    assert(part->step != 0);
    if (aggregation == SUMAC__V1__AGGREGATION__AGGREGATION_NONE && lane->step_members > 1)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_STEP_DIFFERS,
            "variable %s was created with aggregation NONE, and a synchronous step of %u members "
            "has a contribution of each: create it with SUM, MEAN or ONLY_FIRST_REPLICA",
            variable->name, lane->step_members);
    assert(/* as it was created */
           aggregation != SUMAC__V1__AGGREGATION__AGGREGATION_MEAN || update_can_divide(dtype));
    return aggregation != SUMAC__V1__AGGREGATION__AGGREGATION_SUM || update_can_add(dtype) ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
               "variable %s of type %s was created with aggregation SUM, and contributions of that "
               "type are not added up: create it with ONLY_FIRST_REPLICA",
               variable->name, sumac_dtype_name(dtype));
}

/* ---- is it like the others? ---- */

/* One that is held for the same step, of another member; NULL: this is the first. */
static const struct lane_part *find_held(const struct lane *lane, const struct lane_part *part)
{
    const struct lane_part *held = lane->step_places[part->step % STEP_PLACES].contributions.last;

    while (held != NULL && held->step > part->step)
        held = held->among_contributions.prev;
    return held == NULL || held->step != part->step ? NULL : held;
}

/* Refuse a part that differs from the one that is held; both are said as texts. Returns false. */
static bool differ(
    struct lane *lane, struct lane_part *part, const struct lane_part *held, const char *given,
    const char *expected)
{
    assert(held->step == part->step && held->session != part->session);
    return lane_part_refuse(
        lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_STEP_DIFFERS,
        "push %" PRIu64 " of %s, its contribution to synchronous step %" PRIu64
        ", has %s, where that of %s has %s: all members push the same variables and rows in the "
        "same order, with the same functions and hyperparameters\t%s\t%s",
        part->sequence, part->session->task, part->step, given, held->session->task, expected,
        expected, given);
}

static const char *run_text(struct lane *lane, const struct lane_part *part, uint32_t run)
{
    if (run >= part->run_count)
        return out_text(
            &lane->out, "%u %s for ps %u", part->run_count,
            part->run_count == 1 ? "piece" : "pieces", lane->index);
    const struct run *at = &part->runs[run];
    const struct shard *shard = part->entries[at->entry].shard;
    if (at->sets || at->by_rows)
        return out_text(
            &lane->out, "%s of shard %" PRIu64 " of variable %.200s",
            at->sets ? "hyperparameters" : "rows by index", shard->id, shard->variable->name);
    const uint64_t widens = lane_part_widens(part, shard); /* as they were sent */
    return out_text(
        &lane->out, "%" PRIu64 " bytes at %" PRIu64 " of shard %" PRIu64 " of variable %.200s",
        at->bytes * widens, at->offset * widens, shard->id, shard->variable->name);
}

static const char *
schedule_text(struct lane *lane, const struct update_schedule *schedule, const char *variable)
{
    char text[UPDATE_SCHEDULE_TEXT_BYTES];

    return out_text(
        &lane->out, "schedule %s for variable %.200s",
        update_schedule_print(schedule, text, sizeof text), variable);
}

/* True: they are the same. */
static bool compare_hyperparameters(
    struct lane *lane, struct lane_part *part, const struct lane_part *held, uint32_t run)
{
    const struct run *at = &part->runs[run];
    const struct update_function *function = lane_run_function(part, at);
    struct update_hyperparameters merged, merged_held;
    const struct update_hyperparameters *given_how = lane_run_hyperparameters(part, at, &merged);
    const struct update_hyperparameters *wanted_how =
        lane_run_hyperparameters(held, &held->runs[run], &merged_held);
    const double *given = given_how->value, *wanted = wanted_how->value;
    const char *variable = part->entries[at->entry].shard->variable->name;

    assert(function == lane_run_function(held, &held->runs[run]));
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((function->hyperparameters >> i & 1u) == 0 ||
            memcmp(&given[i], &wanted[i], sizeof given[i]) == 0)
            continue;
        const char *const name = update_hyperparameter_of(function, i)->name;
        return differ(
            lane, part, held,
            out_text(&lane->out, "%s %g for variable %.200s", name, given[i], variable),
            out_text(&lane->out, "%s %g for variable %.200s", name, wanted[i], variable));
    }
    return update_schedule_same(&given_how->schedule, &wanted_how->schedule) ||
           differ(
               lane, part, held, schedule_text(lane, &given_how->schedule, variable),
               schedule_text(lane, &wanted_how->schedule, variable));
}

static bool
compare_run(struct lane *lane, struct lane_part *part, const struct lane_part *held, uint32_t run)
{
    if (run >= part->run_count || run >= held->run_count)
        return differ(lane, part, held, run_text(lane, part, run), run_text(lane, held, run));
    const struct run *given = &part->runs[run], *wanted = &held->runs[run];
    const struct shard *shard = part->entries[given->entry].shard;
    const bool same_rows = /* which rows they name by index is each one's own affair */
        given->by_rows || (given->offset == wanted->offset && given->bytes == wanted->bytes);
    if (shard != held->entries[wanted->entry].shard || given->by_rows != wanted->by_rows ||
        !same_rows) /* one that sets has no bytes, and another has */
        return differ(lane, part, held, run_text(lane, part, run), run_text(lane, held, run));
    const struct update_function *ours = lane_run_function(part, given);
    const struct update_function *theirs = lane_run_function(held, wanted);
    const char *const name = shard->variable->name;
    if (ours != theirs)
        return differ(
            lane, part, held,
            out_text(&lane->out, "function %s for variable %.200s", ours->name, name),
            out_text(&lane->out, "function %s for variable %.200s", theirs->name, name));
    return compare_hyperparameters(lane, part, held, run);
}

/* Shards that are named without bytes get a version, too. */
static bool compare_entries(struct lane *lane, struct lane_part *part, const struct lane_part *held)
{
    uint32_t i = 0;

    assert(part->run_count == held->run_count);
    while (i < part->entry_count && i < held->entry_count &&
           part->entries[i].shard == held->entries[i].shard)
        i++;
    if (i == part->entry_count && i == held->entry_count)
        return true;
    const struct lane_part *const both[] = {part, held};
    const char *texts[2];
    for (uint32_t j = 0; j < 2; j++)
        texts[j] =
            i < both[j]->entry_count
                ? out_text(
                      &lane->out, "shard %" PRIu64 " of variable %.200s",
                      both[j]->entries[i].shard->id, both[j]->entries[i].shard->variable->name)
                : out_text(&lane->out, "%u shards of ps %u", both[j]->entry_count, lane->index);
    return differ(lane, part, held, texts[0], texts[1]);
}

bool lane_step_contribution_compare(struct lane *lane, struct lane_part *part)
{
    const struct lane_part *held = find_held(lane, part);

    assert(part->state == PART_RECEIVING);
    if (held == NULL || !rule_holds(lane->config.broken, RULE_contributions_are_compared))
        return true;
    const uint32_t runs = part->run_count > held->run_count ? part->run_count : held->run_count;
    lane->work += runs / PIECES_PER_WORK;
    for (uint32_t i = 0; i < runs; i++) {
        if (!compare_run(lane, part, held, i))
            return false;
    }
    return compare_entries(lane, part, held);
}

/* ---- it counts for nothing ---- */

bool lane_step_contribution_void(
    struct lane *lane, const struct lane_part *part, const struct sumac_error *error)
{
    struct lane_session *session = part->session;

    assert(part->state == PART_STAGED && part->step != 0);
    assert(lane_voided_find(session, part->sequence) == NULL);
    if (!lane_voided_reserve(lane, session, 1))
        return false;
    struct refusal *refusal = pool_take(&lane->parts->refusals);
    if (refusal == NULL)
        return false;
    refusal->error = *error;
    lane_voided_put(session, part->sequence)->refusal = refusal;
    session->counts.refused++;
    lane->counts.refused++;
    if (lane->records)
        (void)lane_record_refused(lane, part, refusal);
    return true;
}
