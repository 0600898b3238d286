/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- how rounds of collectives end: whole, in contributions that differ, without a
 * participant that is gone, or late.
 */
#include "operation_state.h"

#include "error.h"

#define PROPOSED_APART_US 1000000u

/* ---- who is missing */

/* A task of which an attempt is named stands for that attempt alone. */
static bool is_of_task(const struct lane_session *session, const struct collective_task *task)
{
    struct collective_task own;

    return session->index == task->index && lane_session_task(session, &own) &&
           collective_task_equal(&own, task) &&
           (task->attempt == 0 || task->attempt == own.attempt);
}

static const struct lane_session *
find_session(const struct lane *lane, const struct collective_task *task)
{
    const struct lane_session *session = lane->sessions.first;

    while (session != NULL && !is_of_task(session, task))
        session = session->in_lane.next;
    return session;
}

/* Only strategies whose workers train in step have rounds of attempts. A worker that pushes before
 * its first contribution (the others then know its attempt) trains alone, and never comes. */
static bool
is_at_its_own_pace(const struct round *round, uint32_t place, const struct lane_session *session)
{
    assert(place < round->collective->task_count);
    return round->collective->of_attempts && round->collective->tasks[place].attempt == 0 &&
           lane_session_pushes_alone(session);
}

static bool lacks_one_at_its_own_pace(const struct lane *lane, const struct round *round)
{
    for (uint32_t place = round_missing(round, 0); place != UINT32_MAX;
         place = round_missing(round, place + 1)) {
        const struct lane_session *session = find_session(lane, &round->collective->tasks[place]);
        if (session != NULL && is_at_its_own_pace(round, place, session))
            return true;
    }
    return false;
}

void lane_collective_missing(
    const struct lane *lane, const struct round *round, char *text, size_t text_bytes)
{
    struct missing_tasks missing = {.never_joined = false};

    assert(text_bytes > 1);
    for (uint32_t place = round_missing(round, 0); place != UINT32_MAX;
         place = round_missing(round, place + 1)) {
        const struct collective_task *task = &round->collective->tasks[place];
        const struct lane_session *session = find_session(lane, task);
        if (session == NULL)
            lane_missing_add_absent(lane, task->chief ? "chief" : "worker", task->index, &missing);
        else
            lane_missing_add(lane, session, is_at_its_own_pace(round, place, session), &missing);
    }
    (void)text_print(
        text, text_bytes, "%s%s", missing_tasks_end(&missing), missing_tasks_remedy(&missing, ""));
}

/* Is there one of that task that is over, for good as far as is known, and none that is open? The
 * newest says so: behind one that a newer attempt has replaced that one comes. It cannot come in
 * the place of an attempt that is named. */
static const struct lane_session *find_gone(struct lane *lane, const struct collective_task *task)
{
    LIST_FOREACH(const struct lane_session, session, &lane->closed_sessions, in_lane) {
        lane->work++;
        if (!is_of_task(session, task))
            continue;
        const bool another_comes =
            task->attempt == 0 && (int)session->cause.kind == WIRE_CLOSE_NEWER_ATTEMPT;
        const bool is_gone = !another_comes && session->parts.first == NULL;
        return is_gone && find_session(lane, task) == NULL ? session : NULL;
    }
    return NULL;
}

/* Is that task started again, at some time? So it is for a round of attempts, unless it left. */
static bool is_lost(const struct round *round, const struct lane_session *gone)
{
    return round->collective->of_attempts && (int)gone->cause.kind != WIRE_CLOSE_LEFT;
}

/* The session without which the round ends. A round that knows no attempt of a lost task awaits the
 * next one: tasks that are started again one after the other would else never meet. */
static const struct lane_session *
find_missed(struct lane *lane, const struct round *round, uint32_t place)
{
    const struct collective_task *const task = &round->collective->tasks[place];
    const struct lane_session *const gone = find_gone(lane, task);

    return gone != NULL && task->attempt == 0 && is_lost(round, gone) ? NULL : gone;
}

/* ---- its end */

/* Those who wait for it look at it. */
static void tell(struct lane *lane)
{
    lane->readable++;
    lane->turns_taken = true;
}

static void record_end(struct lane *lane, const struct round *round, const struct sumac_error *end)
{
    wire_collective named = WIRE_COLLECTIVE_INIT, *whole = NULL;
    wire_collective_end message = WIRE_COLLECTIVE_END_INIT;

    assert(end->status != SUMAC_OK);
    named.name = (wire_bytes){
        .len = strlen(round->collective->name),
        .data = (uint8_t *)(uintptr_t)round->collective->name};
    named.round = round->collective->round;
    message.collective = &named;
    if (round->collective->of_attempts)
        whole = collective_write(round->collective, &lane->arena);
    if (whole != NULL)
        message.collective = whole;
    message.status = (uint32_t)end->status;
    message.reason = (Sumac__V1__Reason)end->reason;
    message.message = (char *)(uintptr_t)end->text;
    (void)lane_record_order(lane, RECORD_COLLECTIVE, NULL, 0, &message.base);
}

/* For all alike. The round may be gone with that. A round that failed is kept for as long as a
 * participant has an open session. */
static void end_failed(struct lane *lane, struct round *round, const struct sumac_error *end)
{
    assert(!round->over); /* so it stays while this is noted */
    for (uint32_t place = round_missing(round, 0); place != UINT32_MAX;
         place = round_missing(round, place + 1))
        if (find_session(lane, &round->collective->tasks[place]) == NULL)
            round_left(&lane->rounds, round, &round->collective->tasks[place]);
    rounds_end(&lane->rounds, round, end);
    tell(lane);
}

/* As this ps decides it. */
static void fail_round(struct lane *lane, struct round *round, const struct sumac_error *end)
{
    assert(end->status != SUMAC_OK);
    record_end(lane, round, end);
    out_log(&lane->out, "ps %u: %s", lane->index, end->text);
    end_failed(lane, round, end);
}

/* ---- who says so: this ps, or ps 0, which is told */

static bool is_split(const struct lane *lane, const struct round *round)
{
    return round->collective->split && lane->ps_count > 1;
}

/* Of one that is not split it has been proposed how it ends when a contribution was. */
static bool is_decided_here(const struct lane *lane, const struct round *round)
{
    assert(!round->over);
    return !is_split(lane, round) && !round->for_ps_0;
}

static void note_due(struct lane *lane, uint64_t due_us)
{
    if (due_us < lane->turns->collective_due_us)
        lane->turns->collective_due_us = due_us;
}

/* That it passes (SUMAC_OK), or why it fails: the first counts, and is said again until ps 0 has
 * ordered an end. */
static void propose(struct lane *lane, struct round *round, const struct sumac_error *end)
{
    assert(!round->over);
    if (round->passes)
        return;
    if (!round->for_ps_0)
        round->end = *end;
    round->for_ps_0 = true;
    if (lane_reads_records(lane)) { /* ps 0 can hear it after START */
        lane->turns->collective_due_us = 0;
        return;
    }
    if (round->proposed_us != 0 && lane->now_us < round->proposed_us + PROPOSED_APART_US)
        return;
    round->proposed_us = lane->now_us;
    lane_report_collective(lane, round);
    note_due(lane, lane->now_us + PROPOSED_APART_US);
}

/* One that passes, and cannot here, is one whose client has said other things to ps 0. */
static void end_or_propose(struct lane *lane, struct round *round, const struct sumac_error *end)
{
    if (is_decided_here(lane, round) || (round->passes && end->status != SUMAC_OK))
        fail_round(lane, round, end);
    else if (lane->index == 0)
        propose(lane, round, end);
}

/* With that reason, behind "round 3 of collective loss ". */
static void __attribute__((format(printf, 5, 6))) end_for(
    struct lane *lane, struct round *round, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    char why[SUMAC_ERROR_TEXT_BYTES];
    struct sumac_error end;
    va_list values;

    va_start(values, format);
    (void)text_print_line_values(why, sizeof why, format, values);
    va_end(values);
    (void)fail(
        &end, status, reason, "round %" PRIu64 " of collective %.100s %s", round->collective->round,
        round->collective->name, why);
    end_or_propose(lane, round, &end);
}

static void time_out(struct lane *lane, struct round *round)
{
    const bool apart = lacks_one_at_its_own_pace(lane, round);
    char missing[384];

    assert(lane->now_us >= round->until_us);
    lane_collective_missing(lane, round, missing, sizeof missing);
    end_for(
        lane, round, apart ? SUMAC_FAILED_PRECONDITION : SUMAC_DEADLINE_EXCEEDED,
        apart ? SUMAC_REASON_STEP_DIFFERS : SUMAC_REASON_ROUND_TIMED_OUT,
        "has waited %s on ps %u for %s", text_time_ms(round->until_ms).text, lane->index, missing);
}

/* One whose time is over, or that is to be proposed again. When it is looked at again. */
static uint64_t look_at(struct lane *lane, struct round *round)
{
    const bool decided = is_decided_here(lane, round) || lane->index == 0;

    if (round->passes)
        return UINT64_MAX;
    if (round->for_ps_0) {
        propose(lane, round, &round->end);
        return round->proposed_us + PROPOSED_APART_US;
    }
    if (!decided || lane->now_us < round->until_us || !lane_has_time(lane))
        return decided ? round->until_us : UINT64_MAX;
    time_out(lane, round);
    return UINT64_MAX;
}

/* Nobody is there who would ask for the end in its name. */
static void end_without(
    struct lane *lane, struct round *round, uint32_t place, const struct lane_session *session)
{
    char cause[CLOSE_CAUSE_TEXT_BYTES];

    assert(session->closed);
    if (is_at_its_own_pace(round, place, session) && !is_lost(round, session))
        end_for(
            lane, round, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_STEP_DIFFERS,
            "has failed: %s has left without it; its pushes were asynchronous" MISSING_SAME_PACE,
            session->task);
    else
        end_for(
            lane, round, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
            "has failed: %s did not contribute, and its session is over%s%s%s", session->task,
            wire_close_cause_print(&session->cause, cause),
            is_lost(round, session) ? COLLECTIVE_START_ALL_AGAIN : "",
            (int)session->cause.kind == WIRE_CLOSE_LEFT ? "; see its log"
                                                        : wire_close_cause_hint(&session->cause));
}

/* The sessions of all who have contributed are settled: no process waits for its result. */
static void end_deserted(struct lane *lane, struct round *round, const struct lane_session *session)
{
    char cause[CLOSE_CAUSE_TEXT_BYTES];

    assert(session->closed);
    end_for(
        lane, round, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "has failed: no participant that contributed to it is left; the session of %s is over%s%s",
        session->task, wire_close_cause_print(&session->cause, cause),
        wire_close_cause_hint(&session->cause));
}

/* A record of the end comes before that of the contribution which needs the room; so nothing is
 * ended here while records are read. */
void lane_collective_end_unwanted(void *context, struct round *round)
{
    struct lane *const lane = context;
    uint32_t place = 0;
    char name[32];

    assert(!round->over);
    if (lane_reads_records(lane) || round->passes)
        return;
    while (!round->places[place].came)
        place++;
    end_for(
        lane, round, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "has failed: no session that contributed to it, of %s first, waits for its result, and "
        "another contribution needs its room (--collectives-max)",
        collective_task_print(&round->collective->tasks[place], name, sizeof name));
}

/* Two attempts of a task have come to rounds of this name, or are named there. Where one of these
 * is split and another is not, the home alone has both. */
static void end_restarted(struct lane *lane, struct round *round, const struct sumac_error *end)
{
    const bool is_home = collective_home(round->collective->name, lane->ps_count) == lane->index;

    assert(end->status != SUMAC_OK);
    assert(round->collective->of_attempts);
    if (round->over || round->passes)
        return;
    if (is_home && !is_decided_here(lane, round))
        propose(lane, round, end);
    else
        end_or_propose(lane, round, end);
}

/* The next of those that belong to other attempts and are open. An end forgets none that is. */
static struct round *
next_open(const struct lane *lane, const struct collective *given, struct round *after)
{
    struct round *round = rounds_other_attempt(&lane->rounds, given, after);

    while (round != NULL && round->over)
        round = rounds_other_attempt(&lane->rounds, given, round);
    return round;
}

/* Do rounds of its name that are known belong to another attempt of a task? Those that are open end
 * with that, and so is what was given to. *end: how. */
static bool
end_other_attempts(struct lane *lane, const struct collective *given, struct sumac_error *end)
{
    const struct round *const other = rounds_other_attempt(&lane->rounds, given, NULL);
    char name[32];

    if (other == NULL)
        return false;
    assert(given->of_attempts);
    const uint32_t place = collective_other_attempt(other->collective, given);
    const struct collective_task *const task = &given->tasks[place];
    const uint64_t attempt =
        other->collective->tasks[collective_place(other->collective, task)].attempt;
    (void)fail(
        end, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "round %" PRIu64 " of collective %.100s names attempt %" PRIu64 " of %s, and round %" PRIu64
        " belongs to attempt %" PRIu64 COLLECTIVE_START_ALL_AGAIN
        "; if the two attempts are of two runs, " CLOSE_CAUSE_OWN_RUN,
        given->round, given->name, task->attempt, collective_task_print(task, name, sizeof name),
        other->collective->round, attempt);
    for (struct round *open = next_open(lane, given, NULL), *next; open != NULL; open = next) {
        next = next_open(lane, given, open);
        lane->work++;
        end_restarted(lane, open, end);
    }
    return true;
}

/* ---- a contribution */

/* A mean of nothing has no value. */
static bool weighs(const struct round *round)
{
    double weight = 0;

    if (round->collective->operation != COLLECTIVE_MEAN)
        return true;
    for (uint32_t i = 0; i < round->collective->task_count; i++)
        weight += round->places[i].weight;
    return weight > 0;
}

/* All have come. It may be gone with that. */
static void pass(struct lane *lane, struct round *round)
{
    const bool wanted = round_is_wanted(round);
    struct sumac_error end = {.status = SUMAC_OK};

    assert(round_is_whole(round));
    if (round->torn)
        end = round->end;
    else if (!weighs(round))
        (void)fail_invalid(
            &end, SUMAC_REASON_ZERO_WEIGHT,
            "round %" PRIu64
            " of collective %.100s is a mean, and all contributions to it have weight 0",
            round->collective->round, round->collective->name);
    if (end.status != SUMAC_OK || (is_split(lane, round) && !round->passes)) {
        end_or_propose(lane, round, &end);
        return;
    }
    rounds_end(&lane->rounds, round, &end);
    if (wanted)
        combining_add(lane, round);
}

/* Of the participants that it lacks, does one never come? */
static void look_for_gone(struct lane *lane, struct round *round)
{
    assert(!round->over);
    if (lane->closed_sessions.first == NULL)
        return;
    for (uint32_t place = round_missing(round, 0); place != UINT32_MAX;
         place = round_missing(round, place + 1)) {
        const struct lane_session *gone = find_missed(lane, round, place);
        if (gone == NULL)
            continue;
        end_without(lane, round, place, gone);
        return;
    }
}

/* Where one of them is split and another is not, the home alone has both. */
static void
differ(struct lane *lane, struct round *round, bool split, const struct sumac_error *error)
{
    assert(!round->over);
    if (round->passes && !round->torn) /* this one is of a list that it is not in */
        return;
    if (round->passes || round->collective->split == split || lane->ps_count == 1)
        end_or_propose(lane, round, error);
    else if (collective_home(round->collective->name, lane->ps_count) == lane->index)
        propose(lane, round, error);
}

void lane_collective_contribution(struct lane *lane, struct lane_part *part)
{
    const bool split = part->contribution->round->collective->split;
    struct sumac_error error, restarted;
    struct round *round;

    const bool ends = end_other_attempts(lane, part->contribution->round->collective, &restarted);
    const enum rounds_came came = lane_contribution_arrive(lane, part, &round, &error);
    if (came == ROUNDS_DIFFERS)
        differ(lane, round, split, &error);
    if (came == ROUNDS_OVER || came == ROUNDS_BACK)
        tell(lane);
    if (came != ROUNDS_TAKEN)
        return;
    if (ends) {
        end_restarted(lane, round, &restarted);
        return;
    }
    note_due(lane, round->until_us);
    if (round_is_whole(round))
        pass(lane, round);
    else if (
        round->came_count == 1 && !round->passes &&
        rounds_are_over(
            &lane->rounds, round->collective)) /* they were told, and do not come again */
        end_for(
            lane, round, SUMAC_ABORTED, SUMAC_REASON_ROUND_OVER,
            "is over, and how it ended is not known any more: go on with the round that the other "
            "participants are at");
    else
        look_for_gone(lane, round);
}

/* Have all who take part left? */
static bool is_forsaken(struct lane *lane, const struct round *round)
{
    for (uint32_t i = 0; i < round->collective->task_count; i++) {
        const struct round_place *place = &round->places[i];
        if (place->came ? !place->left : find_gone(lane, &round->collective->tasks[i]) == NULL)
            return false;
    }
    return true;
}

/* Of a round that is split ps 0 says how it ends; but one that was over there, and forgotten here,
 * before a later attempt came to it, is nobody's. */
static void end_forsaken(struct lane *lane)
{
    struct sumac_error end;

    LIST_FOREACH_SAFE(struct round, round, &lane->rounds.open, in_list) {
        lane->work++;
        if (round->passes || !is_forsaken(lane, round))
            continue;
        (void)fail(
            &end, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
            "round %" PRIu64 " of collective %.100s is over on ps %u: the sessions of all that "
            "take part are",
            round->collective->round, round->collective->name, lane->index);
        lane_report_collective_forget(lane, round);
        fail_round(lane, round, &end);
    }
}

void lane_collective_settled(struct lane *lane, struct lane_session *session)
{
    struct collective_task task;

    assert(session->closed);
    assert(session->parts.first == NULL || session->parts.last->sequence <= session->final);
    lane_contributions_heard(lane, session, UINT64_MAX);
    if (!lane_session_task(session, &task))
        return;
    rounds_left(&lane->rounds, &task);
    LIST_FOREACH_SAFE(struct round, round, &lane->rounds.open, in_list) {
        lane->work++;
        const uint32_t place = collective_place(round->collective, &task);
        if (place == UINT32_MAX)
            continue;
        const uint64_t attempt = round->collective->tasks[place].attempt;
        if ((attempt != 0 && attempt != task.attempt) || find_missed(lane, round, place) == NULL)
            continue; /* another session comes in its place */
        round_left(&lane->rounds, round, &task);
        if (!round->places[place].came)
            end_without(lane, round, place, session);
        else if (!round->passes && round_is_deserted(round))
            end_deserted(lane, round, session);
    }
    end_forsaken(lane);
}

/* A round is of the epoch that it was opened in (PROTOCOL.md, "Collectives", 7). */
void lane_collective_epoch(struct lane *lane, uint64_t epoch)
{
    struct sumac_error end;

    assert(epoch != lane->epoch);
    LIST_FOREACH_SAFE(struct round, round, &lane->rounds.open, in_list) {
        lane->work++;
        (void)fail(
            &end, SUMAC_ABORTED, SUMAC_REASON_STATE_LOST,
            "round %" PRIu64 " of collective %.100s is of epoch %" PRIu64
            ", and the cluster is in epoch %" PRIu64,
            round->collective->round, round->collective->name, lane->epoch, epoch);
        fail_round(lane, round, &end);
    }
}

/* ---- their time */

void lane_collective_tick(struct lane *lane)
{
    struct turns *turns = lane->turns;

    if (combining_is_put_off(lane))
        combining_go_on(lane);
    if (lane->now_us < turns->collective_due_us)
        return;
    turns->collective_due_us = UINT64_MAX;
    LIST_FOREACH_SAFE(struct round, round, &lane->rounds.open, in_list) {
        lane->work++;
        note_due(lane, look_at(lane, round)); /* it may be gone with that */
    }
}

void lane_collective_excuse(struct lane *lane, uint64_t slept_us)
{
    LIST_FOREACH(struct round, round, &lane->rounds.open, in_list)
        round->until_us += slept_us;
    if (lane->turns->collective_due_us != UINT64_MAX)
        lane->turns->collective_due_us += slept_us;
}

/* ---- as ps 0 orders it, or a record says */

static enum sumac_status read_header(
    struct lane *lane, const wire_collective *said, struct collective *collective,
    struct sumac_error *error)
{
    const struct collective_task first =
        collective_task_of(said->n_tasks == 0 ? 0 : said->tasks[0]);
    struct collective_texts *texts = arena_take(&lane->arena, sizeof *texts);

    if (texts == NULL)
        return fail_for_memory(error, "ps %u has no memory for the end of a round", lane->index);
    return collective_read(said, &first, texts, collective, error);
}

/* End the round of that header, even if this ps has no contribution to it. */
static enum sumac_status obey_whole(
    struct lane *lane, const wire_collective *said, const struct sumac_error *end,
    struct sumac_error *error)
{
    struct collective collective;

    if (read_header(lane, said, &collective, error) != SUMAC_OK)
        return error->status;
    struct round *reserved = rounds_reserve_order(&lane->rounds, &collective);
    if (reserved == NULL)
        return fail_for_memory(error, "ps %u has no memory for the end of a round", lane->index);
    struct round *round = rounds_find(&lane->rounds, &collective);
    if (round != NULL)
        lane_report_collective_forget(lane, round);
    round = rounds_ordered(&lane->rounds, reserved, end);
    if (round != NULL && !round->passes) {
        out_log(&lane->out, "ps %u: %s", lane->index, end->text);
        end_failed(lane, round, end);
    } else if (round != NULL && round_is_whole(round)) {
        pass(lane, round);
    } else if (round != NULL) {
        look_for_gone(lane, round);
    }
    tell(lane); /* even if nothing ended: the order may name the attempt of a task that asks */
    return SUMAC_OK;
}

/* One that this ps has decided, by its name and number, or by its header where it belongs to
 * attempts. It failed, or had before with another record. */
static void obey_own(struct lane *lane, const wire_collective *said, const struct sumac_error *end)
{
    char name[COLLECTIVE_NAME_BYTES_MAX + 1];
    struct collective collective;
    struct sumac_error error;

    assert(!lane->serving);
    (void)text_print(name, sizeof name, "%.*s", (int)said->name.len, (const char *)said->name.data);
    if (said->n_attempts == 0)
        collective = (struct collective){.name = name, .round = said->round};
    else if (read_header(lane, said, &collective, &error) != SUMAC_OK)
        return;
    struct round *round = rounds_find(&lane->rounds, &collective);
    if (round != NULL && !round->over)
        end_failed(lane, round, end);
}

enum sumac_status lane_collective_obey(
    struct lane *lane, uint64_t number, const wire_collective_end *given, struct sumac_error *error)
{
    struct sumac_error end = {.status = (enum sumac_status)given->status};

    if (number != 0 && number <= lane->turns->collective_order) /* it is ordered again */
        return SUMAC_OK;
    if (given->collective == NULL || given->status > SUMAC_UNAUTHENTICATED ||
        (number == 0 &&
         (given->status == 0 || given->collective->name.len > COLLECTIVE_NAME_BYTES_MAX)))
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "the end of a round that is not named, or with status %u", given->status);
    if (given->status != 0)
        (void)fail(&end, end.status, (enum sumac_reason)given->reason, "%s", given->message);
    if (number == 0) {
        obey_own(lane, given->collective, &end);
        return SUMAC_OK;
    }
    const enum sumac_status status = obey_whole(lane, given->collective, &end, error);
    if (status != SUMAC_OK)
        return status;
    lane->turns->collective_order = number;
    (void)lane_record_order(lane, RECORD_COLLECTIVE, NULL, number, &given->base);
    return SUMAC_OK;
}
