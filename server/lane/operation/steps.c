/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c -- synchronous steps: who is a member of which, and when one is whole.
 *
 *   session ─ contributions, by step ─┐
 *   session ─ contributions, by step ─┼─► step n, when the contribution of each of its members
 *   session ─ contributions, by step ─┘   has its turn (turn.c), or had it, or will not come
 *
 * A member's first step is 1, where ps 0 counts it among those that the run begins with; until all
 * of these have come, no step is whole. Of one that comes later ps 0 asks every ps for the largest
 * step that it has seen, and none above the answer is whole until it has said where the member
 * begins (docs/protocol/PROTOCOL.md, "Synchronous steps").
 */
#include "operation_state.h"

#include "error.h"
#include "voided.h"

/* ---- members ---- */

bool lane_step_begin_with(struct lane *lane, uint32_t initial)
{
    if (initial <= lane->turns->step_begun)
        return false;
    lane->turns->step_begun = initial;
    return true;
}

uint32_t lane_step_yet_to_join(const struct lane *lane)
{
    const uint32_t begun = lane->turns->step_begun;

    assert(lane->index != 0 || lane->any_hello || begun == 0);
    return lane->step_members > begun ? lane->step_members - begun : 0;
}

/* The largest step that anything here is, or was, for. */
static uint64_t seen_step(const struct lane *lane)
{
    uint64_t seen = lane->step_over;

    for (const struct lane_session *session = NULL;
         (session = lane_session_after(lane, session)) != NULL;) {
        const bool counts = !session->closed || session->parts.first != NULL;
        if (counts && session->contributed_step > seen)
            seen = session->contributed_step;
    }
    return seen;
}

void lane_step_opened(
    struct lane *lane, struct lane_session *session, const wire_open_session *open)
{
    assert(session->first_step == 0);
    if (lane->step_members == 0 || (int)session->role != WIRE_ROLE_MEMBER)
        return;
    if (open->initial != 0) {
        session->initial = true;
        session->first_step = 1;
        (void)lane_step_begin_with(lane, open->initial);
        return;
    }
    session->seen_step = seen_step(lane);
    session->asks_step = rule_holds(lane->config.broken, RULE_steps_wait_for_the_new_member);
}

void lane_step_begins(struct lane *lane, struct lane_session *session, uint64_t step)
{
    assert(step > 0);
    if (session->first_step != 0)
        return;
    session->first_step = rule_holds(lane->config.broken, RULE_first_step_is_the_controllers)
                              ? step
                              : lane->step_over + 1;
    session->asks_step = false;
}

/* The first step that lacks a contribution of the session. */
static uint64_t first_lacking(const struct lane_session *session)
{
    uint64_t last = session->passed_step;

    for (const struct lane_part *part = session->parts.first;
         part != NULL && part->sequence <= session->commit_through; part = part->in_session.next) {
        if (part->step > last)
            last = part->step;
    }
    return last + 1 < session->first_step ? session->first_step : last + 1;
}

static void lose(struct lane *lane, const struct lane_session *session)
{
    struct turns *turns = lane->turns;
    const uint64_t from = first_lacking(session);

    assert(from > session->passed_step);
    if (session->first_step == 0 || (turns->fails_from != 0 && turns->fails_from <= from))
        return;
    turns->fails_from = from;
    memcpy(turns->lost_task, session->task, sizeof turns->lost_task);
    out_log(
        &lane->out,
        "ps %u fails the synchronous steps from %" PRIu64 " on: they lack %s, which was lost",
        lane->index, from, session->task);
}

void lane_step_closing(struct lane *lane, struct lane_session *session, bool lost)
{
    if (lost && !rule_holds(lane->config.broken, RULE_loss_counts_from_final))
        lose(lane, session);
}

void lane_step_decided(
    struct lane *lane, struct lane_session *session, const wire_decide_session *decided)
{
    (void)lane_step_begin_with(lane, decided->initial);
    assert(session->closed);
    session->asks_step = false;
    if (decided->lost)
        lose(lane, session);
}

bool lane_step_fails(const struct lane *lane, uint64_t step)
{
    return lane->turns->fails_from != 0 && step >= lane->turns->fails_from;
}

/* Committed, and all that was before it is over. */
static bool has_turn(const struct lane_part *part)
{
    const struct lane_session *session = part->session;

    return part->previous == session->mark && part->sequence <= session->commit_through;
}

/* ---- K of N: ps 0 says what a step is made of ---- */

enum sumac_status
lane_step_take(struct lane *lane, const wire_take_step *taken, struct sumac_error *error)
{
    struct turns *turns = lane->turns;

    assert(turns->taken_step <= lane->step_over + 1);
    if (taken->step <= lane->step_over || taken->step == turns->taken_step)
        return SUMAC_OK;
    if (lane->step_quorum == 0 || taken->step != lane->step_over + 1)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_STEP,
            "ps 0 takes synchronous step %" PRIu64 " of a quorum of %u, and ps %u has ended step "
            "%" PRIu64,
            taken->step, lane->step_quorum, lane->index, lane->step_over);
    for (size_t i = 0; i < taken->n_session_ids; i++) {
        struct lane_session *session = lane_session_find(lane, taken->session_ids[i].data);
        if (session != NULL)
            session->taken_step = taken->step;
    }
    turns->taken_step = taken->step;
    lane->work += taken->n_session_ids;
    (void)lane_record_order(lane, RECORD_TAKE, NULL, 0, &taken->base);
    return SUMAC_OK;
}

static bool adds_something(const struct lane_part *part) { return part->weight > 0; }

void step_come(struct lane *lane, const struct lane_part *part, bool voided)
{
    if (part->step != 0) /* one without weight makes no quorum: a mean of such has no value */
        lane_report_come(lane, part->session, part->step, voided || !adds_something(part));
}

/* What was made again of records was told to another ps 0, or to none. */
void lane_step_say_again(struct lane *lane)
{
    if (lane->step_quorum == 0 || !rule_holds(lane->config.broken, RULE_quorum_says_again))
        return;
    for (struct lane_session *session = NULL;
         (session = lane_session_after(lane, session)) != NULL;) {
        const struct lane_part *part = session->parts.first;
        if (part != NULL && part->step != 0 && has_turn(part))
            step_come(lane, part, lane_voided_find(session, part->sequence) != NULL);
    }
    lane_report_step_over(lane);
    lane_reports_come_again(lane);
}

/* ---- is it whole? ---- */

/* While one is applied, its shards are let go one after the other. */
bool lane_step_is_newest(const struct lane *lane, uint64_t step)
{
    assert(step > 0);
    return step == lane->step_over && lane->turns->step.state == OPERATION_OVER;
}

struct lane_part *step_first(const struct lane *lane, uint64_t step)
{
    assert(lane->turns != NULL);
    struct lane_part *part = lane->step_places[step % STEP_PLACES].contributions.first;

    while (part != NULL && part->step < step)
        part = part->among_contributions.next;
    return part == NULL || part->step != step ? NULL : part;
}

static bool is_member(const struct lane_session *session, uint64_t step)
{
    return session->first_step != 0 && session->first_step <= step;
}

/* Those who have settled bring theirs if it counts; what of it does not is dropped. */
static bool will_come(const struct lane_part *part)
{
    return !part->session->closed || part->sequence <= part->session->commit_through;
}

/* Has its contribution its turn, or had it? One for a later step says that this one has none. */
static bool has_come(const struct lane_session *session, uint64_t step)
{
    const struct lane_part *part = session->parts.first;

    assert(step > 0);
    return session->passed_step >= step || (part != NULL && part->step >= step && has_turn(part));
}

/* Is ps 0 asking from which step on somebody counts, who may count in this one? */
static bool may_get_a_member(const struct lane *lane, uint64_t step)
{
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane) {
        if (session->asks_step && step > session->seen_step)
            return true;
    }
    return false;
}

static bool takes(const struct lane *lane, const struct lane_session *session, uint64_t step)
{
    assert(step > 0);
    if (lane->step_quorum == 0 || !rule_holds(lane->config.broken, RULE_quorum_is_ordered))
        return true;
    return session->taken_step == step;
}

/* ps 0 has taken it: has all of it come? */
static bool is_taken(const struct lane *lane, uint64_t step)
{
    assert(lane->step_quorum != 0);
    if (lane->turns->taken_step != step)
        return false;
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane) {
        if (session->taken_step == step && !has_come(session, step))
            return false;
    }
    for (const struct lane_part *part = step_first(lane, step); part != NULL;
         part = step_next(part)) {
        if (part->session->taken_step == step && will_come(part) && !has_turn(part))
            return false;
    }
    return true;
}

/* Without the rule quorum_is_ordered: the first that come here are enough. */
static bool are_enough(const struct lane *lane, uint64_t step)
{
    uint32_t come = 0;

    assert(!rule_holds(lane->config.broken, RULE_quorum_is_ordered));
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane)
        come += is_member(session, step) && has_come(session, step);
    return come >= lane->step_quorum;
}

bool step_is_whole(const struct lane *lane)
{
    const uint64_t step = lane->step_over + 1;
    bool any = false, later = false;

    assert(lane->turns->fails_from == 0 || lane->turns->lost_task[0] != '\0');
    if (lane->step_members == 0 || lane->turns->step_begun < lane->step_members ||
        lane->turns->step.state != OPERATION_OVER || lane_step_fails(lane, step) ||
        may_get_a_member(lane, step))
        return false;
    if (lane->step_quorum != 0)
        return rule_holds(lane->config.broken, RULE_quorum_is_ordered) ? is_taken(lane, step)
                                                                       : are_enough(lane, step);
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane) {
        later = later || session->first_step > step;
        if (!is_member(session, step))
            continue;
        if (!has_come(session, step))
            return false;
        any = true;
    }
    for (const struct lane_part *part = step_first(lane, step); part != NULL;
         part = step_next(part)) {
        if (!will_come(part))
            continue;
        if (!has_turn(part))
            return false;
        any = true;
    }
    return any || later; /* or whoever made one may be gone, and what was not committed with it */
}

/* ---- what it is made of ---- */

/* Without the rule late_is_late_everywhere, one that is late adds to the step where it has come by
 * then. */
bool step_counts(const struct lane *lane, const struct lane_part *part)
{
    assert(part->step != 0);
    return part->sequence <= part->session->commit_through &&
           lane_voided_find(part->session, part->sequence) == NULL &&
           (takes(lane, part->session, part->step) ||
            (!rule_holds(lane->config.broken, RULE_late_is_late_everywhere) && has_turn(part)));
}

void step_end(struct lane *lane, uint64_t step)
{
    assert(step == lane->step_over + 1);
    assert(lane->turns->step.parts.first == NULL);
    lane->step_over = step;
    lane->turns_taken = true; /* for pulls at it, though nothing is written */
    lane_report_step_over(lane);
}

/* ---- what is said of it ---- */

enum sumac_status lane_step_check_readable(
    const struct lane *lane, uint64_t request, uint64_t step, struct sumac_error *error)
{
    assert(step > 0);
    if (lane->step_members == 0)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "pull %" PRIu64 " is at synchronous step %" PRIu64
            ", and ps %u does not know how many members a step has: list them in the cluster "
            "configuration of ps 0, or start it with --members",
            request, step, lane->index);
    if (lane_step_fails(lane, step))
        return fail(
            error, SUMAC_ABORTED, SUMAC_REASON_MEMBER_LOST,
            "pull %" PRIu64 " is at synchronous step %" PRIu64
            ", which is never over: it lacks the contribution of %s, which was lost; start the run "
            "again, or start ps 0 with --on-loss continue",
            request, step, lane->turns->lost_task);
    return SUMAC_OK;
}

/* ---- for whom a step, or a round, waits ---- */

void lane_missing_add(
    const struct lane *lane, const struct lane_session *session, bool own_pace,
    struct missing_tasks *missing)
{
    const struct session_silence silence = lane_session_silence(lane, session);

    assert(!session->closed);
    missing_tasks_add(
        missing, &(struct missing_task){
                     .name = session->task, .silence = silence.text, .own_pace = own_pace});
}

/* Where the configuration of this ps expects the task. */
static const char *find_address(const struct lane_config *config, const char *job, uint32_t index)
{
    for (uint32_t i = 0; i < config->member_count; i++)
        if (config->members_indices[i] == index && strcmp(config->members_jobs[i], job) == 0)
            return config->members_addresses[i];
    return NULL;
}

/* The newest session says so. Another session follows one that a newer attempt has replaced. */
static enum missing_state find_state(const struct lane *lane, const char *name)
{
    const struct lane_session *session = lane->closed_sessions.first;

    while (session != NULL && strcmp(session->task, name) != 0)
        session = session->in_lane.next;
    if (session == NULL || session->cause.kind == WIRE_CLOSE_NEWER_ATTEMPT)
        return MISSING_ABSENT;
    return session->cause.kind == WIRE_CLOSE_LEFT ? MISSING_LEFT : MISSING_LOST;
}

void lane_missing_add_absent(
    const struct lane *lane, const char *job, uint32_t index, struct missing_tasks *missing)
{
    const bool has_joined = lane_session_has_joined(lane, job, index);
    char name[32];

    (void)text_print(name, sizeof name, "%s %u", job, index);
    missing_tasks_add(
        missing, &(struct missing_task){
                     .name = name,
                     .state = has_joined ? find_state(lane, name) : MISSING_NEVER_JOINED,
                     .address = has_joined ? NULL : find_address(&lane->config, job, index)});
}

/* The tasks that the step waits for. The first step also waits for tasks yet to join, which
 * are named where the configuration of this ps lists them. */
static void
find_missing(const struct lane *lane, uint64_t step, bool to_take, struct missing_tasks *missing)
{
    const struct lane_config *config = &lane->config;
    const uint32_t absent = lane_step_yet_to_join(lane);
    char some[32];

    assert(step > 0);
    for (uint32_t i = 0; absent > 0 && i < config->member_count && !config->members_partial; i++)
        if (!lane_session_has_joined(lane, config->members_jobs[i], config->members_indices[i]))
            lane_missing_add_absent(
                lane, config->members_jobs[i], config->members_indices[i], missing);
    (void)text_print(some, sizeof some, "%u of %u members", absent, lane->step_members);
    if (absent > 0 && !missing->never_joined)
        missing_tasks_add(
            missing, &(struct missing_task){.name = some, .state = MISSING_NEVER_JOINED});
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane)
        if (is_member(session, step) && (to_take || takes(lane, session, step)) &&
            !has_come(session, step))
            lane_missing_add(lane, session, lane_session_pushes_alone(session), missing);
}

const char *lane_step_missing(const struct lane *lane, char *text, size_t text_bytes)
{
    const uint64_t step = lane->step_over + 1;
    const bool to_take = lane->step_quorum != 0 && lane->turns->taken_step < step;
    struct missing_tasks missing = {.never_joined = false};

    assert(text_bytes > 1);
    find_missing(lane, step, to_take, &missing);
    const size_t used = text_print_line(text, text_bytes, "%s", missing_tasks_end(&missing));
    if (to_take && lane_step_yet_to_join(lane) > 0)
        (void)text_print_line(
            text + used, text_bytes - used,
            "; the first step waits for all %u members, even with --quorum %u", lane->step_members,
            lane->step_quorum);
    else if (to_take)
        (void)text_print_line(
            text + used, text_bytes - used,
            "%sps 0, which takes it with %u when its --step-deadline is over",
            used == 0 ? "" : ", or for ", lane->step_quorum);
    return text;
}

const char *lane_step_remedy(const struct lane *lane)
{
    struct missing_tasks missing = {.never_joined = false};

    find_missing(lane, lane->step_over + 1, true, &missing);
    return missing_tasks_remedy(&missing, "; see the log of each missing task");
}

/* How far the next step is, and since when its first contribution waits. */
struct gathered {
    uint32_t come, members;
    uint64_t since_us;
};

static struct gathered gather(const struct lane *lane)
{
    const uint64_t step = lane->step_over + 1;
    struct gathered gathered = {.members = lane_step_yet_to_join(lane), .since_us = lane->now_us};

    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane) {
        const struct lane_part *part = session->parts.first;
        gathered.members += is_member(session, step);
        if (!is_member(session, step) || !has_come(session, step))
            continue;
        gathered.come++;
        if (part != NULL && part->first_us < gathered.since_us)
            gathered.since_us = part->first_us;
    }
    assert(gathered.come <= gathered.members);
    return gathered;
}

void lane_step_describe_wait(const struct lane *lane, char *text, size_t text_bytes)
{
    const struct gathered gathered = gather(lane);
    char missing[512];

    (void)lane_step_missing(lane, missing, sizeof missing);
    (void)text_print_line(
        text, text_bytes, "synchronous step %" PRIu64 " has waited %s for %s; %u of %u have come",
        lane->step_over + 1, text_time_us(lane->now_us - gathered.since_us).text,
        *missing == 0 ? "what was pushed before it" : missing, gathered.come, gathered.members);
}

/* One of the next step's that has its turn, and whose client waits: that of a closed session has
 * gone. */
static const struct lane_part *find_waiting(const struct lane *lane)
{
    const struct lane_part *part = step_first(lane, lane->step_over + 1);

    assert(part == NULL || part->session != NULL);
    while (part != NULL && (part->state != PART_STAGED || part->session->closed || !has_turn(part)))
        part = step_next(part);
    return part;
}

void lane_step_watch(struct lane *lane)
{
    struct turns *turns = lane->turns;
    const struct lane_part *part = lane->step_members == 0 ? NULL : find_waiting(lane);
    const uint64_t apart_us = (uint64_t)lane->config.report_ms * 1000;
    char wait[SUMAC_ERROR_TEXT_BYTES];

    assert(part == NULL || part->step == lane->step_over + 1);
    if (part == NULL || turns->told_step != part->step) {
        turns->told_step = part == NULL ? 0 : part->step;
        turns->tell_us = lane->now_us + apart_us;
        turns->tell_apart_us = apart_us;
        return;
    }
    if (lane->now_us < turns->tell_us)
        return;
    if (turns->tell_apart_us < apart_us * LANE_REPORTS_APART_MAX)
        turns->tell_apart_us *= 2;
    turns->tell_us = lane->now_us + turns->tell_apart_us;
    lane_step_describe_wait(lane, wait, sizeof wait);
    out_log(&lane->out, "ps %u: %s", lane->index, wait);
}
