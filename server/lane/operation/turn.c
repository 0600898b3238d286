/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c -- whose turn it is: a session's parts are applied one after the other, each when the one
 * before it is.
 *
 * A part has its turn when its `previous` is the session's mark, and the part is committed or
 * carries its own commit. Each session is in a state (enum lane_turn), and `moves` says which state
 * may follow. An event makes sessions READY:
 *
 *   a push, a commit or a decision      its session, if that rests
 *   an operation is over                the BLOCKED ones, then those of the operation
 *   a tick, or bytes are released       those that are SHORT of memory
 *   a synchronous step is over, fails   those that have CONTRIBUTED in vain
 *
 * Each event ends with run(), which looks at the READY sessions in their order. Nothing that run()
 * calls runs it again. When the step of the lane has no more time, the next one goes on.
 */
#include "operation_state.h"

#include "error.h"
#include "voided.h"

#define TO(state) (1u << (state))

static const uint32_t moves[] = {
    [TURN_IDLE] = TO(TURN_READY),
    [TURN_RUNNING] = TO(TURN_READY),
    [TURN_READY] =
        TO(TURN_IDLE) | TO(TURN_RUNNING) | TO(TURN_BLOCKED) | TO(TURN_SHORT) | TO(TURN_CONTRIBUTED),
    /* The step that it leads is tried again before it is woken: a shard may be free by then, or
     * busy. */
    [TURN_BLOCKED] = TO(TURN_READY) | TO(TURN_RUNNING) | TO(TURN_SHORT),
    [TURN_SHORT] = TO(TURN_READY) | TO(TURN_RUNNING) | TO(TURN_BLOCKED),
    [TURN_CONTRIBUTED] =
        TO(TURN_IDLE) | TO(TURN_RUNNING) | TO(TURN_READY) | TO(TURN_BLOCKED) | TO(TURN_SHORT),
};

bool lane_turn_init(struct lane *lane)
{
    struct turns *turns = memory_take(lane->memory, sizeof *turns);

    assert(lane->turns == NULL);
    if (turns == NULL)
        return false;
    memset(turns, 0, sizeof *turns);
    turns->collective_due_us = UINT64_MAX;
    lane->turns = turns;
    return true;
}

void lane_turn_deinit(struct lane *lane)
{
    if (lane->turns != NULL) {
        assert(lane->turns->operations.first == NULL);
        memory_give(lane->memory, lane->turns, sizeof *lane->turns);
    }
    lane->turns = NULL;
}

/* Without the rule follow_previous: the first one, whatever was before it. */
static struct lane_part *next_part(const struct lane *lane, const struct lane_session *session)
{
    struct lane_part *part = session->parts.first;

    if (!rule_holds(lane->config.broken, RULE_follow_previous))
        return part;
    while (part != NULL && part->previous != session->mark)
        part = part->in_session.next;
    return part;
}

static bool is_committed(const struct lane_session *session, const struct lane_part *part)
{
    return part->sequence <= session->commit_through || (part->eager && !session->closing);
}

/* A session that is in that state keeps its place in line. */
static void move(struct lane *lane, struct lane_session *session, enum lane_turn to)
{
    const enum lane_turn from = session->turn;

    if (from == to)
        return;
    assert((size_t)from < sizeof moves / sizeof *moves);
    assert((moves[from] & TO(to)) != 0);
    if (from >= TURN_READY)
        LIST_REMOVE(&lane->turns->lines[from], session, in_line);
    session->turn = to;
    if (to >= TURN_READY)
        LIST_APPEND(&lane->turns->lines[to], session, in_line);
}

/* The sessions of a state need wait no longer. */
static void wake(struct lane *lane, enum lane_turn from)
{
    assert(from > TURN_READY);
    for (struct lane_session *session; (session = lane->turns->lines[from].first) != NULL;)
        move(lane, session, TURN_READY);
}

static void begin(struct operation *operation, struct lane_part *part)
{
    lane_part_move(part, PART_APPLYING);
    part->session->applying = part;
    lane_operation_add(operation, part);
}

/* The end of a part's turn: it is applied, or it is passed over. */
static void finish(struct lane *lane, struct lane_part *part)
{
    struct lane_session *session = part->session;
    const bool applied = part->state == PART_APPLYING, refused = part->state == PART_VOID;

    assert((session->applying == part) == applied);
    assert(lane->config.broken != 0 || part->sequence > session->mark);
    assert(lane->config.broken != 0 || part->previous == session->mark);
    assert(session->commit_through >= part->sequence);
    lane->work += WORK_OF_A_PART;
    session->mark = part->sequence;
    if (part->step != 0)
        session->passed_step = part->step;
    step_come(lane, part, !applied);
    if (lane->records && !applied) /* else its operation has made the record */
        (void)lane_record_applied(lane, part, 0);
    lane_answer_done(lane, session, part, !applied);
    if (refused && !rule_holds(lane->config.broken, RULE_acked_through))
        lane_voided_forget(lane, session, part->sequence);
    session->applying = NULL;
    lane->turns_taken = true;
    lane_session_remove(lane, session, part);
    lane_part_destroy(lane, part);
    lane_turn_take_clock(lane, session);
}

/* ---- synchronous steps: their contributions wait for each other ---- */

/* It counts for nothing, here as on every ps. False: there is no memory to remember that yet. */
static bool
void_contribution(struct lane *lane, struct lane_part *part, const struct sumac_error *error)
{
    struct lane_session *session = part->session;

    assert(session->applying == NULL);
    if (!lane_step_contribution_void(lane, part, error))
        return false;
    lane_answer_refused(lane, session, part->sequence);
    finish(lane, part);
    return true;
}

/* All of it is applied: its sessions go on. */
static void release(struct lane *lane, struct operation *operation)
{
    for (struct lane_part *part; (part = operation->parts.first) != NULL;) {
        struct lane_session *session = part->session;
        lane_operation_remove(operation, part);
        finish(lane, part);
        if (session->turn == TURN_RUNNING) /* and not taken again from its record */
            move(lane, session, TURN_READY);
    }
}

static void add_contributions(struct lane *lane, uint64_t step)
{
    assert(lane->turns->step.parts.first == NULL);
    for (struct lane_part *part = step_first(lane, step); part != NULL; part = step_next(part)) {
        if (!step_counts(lane, part))
            continue;
        begin(&lane->turns->step, part);
        move(lane, part->session, TURN_RUNNING);
    }
    if (lane->turns->step.parts.first != NULL)
        step_sum(lane);
}

/* All contributions to the step weigh nothing. False: some are left, for want of memory. */
static bool void_all(struct lane *lane, uint64_t step)
{
    struct lane_part *next = step_first(lane, step);

    for (struct lane_part *part; (part = next) != NULL;) {
        struct lane_session *session = part->session;
        struct sumac_error error;
        next = step_next(part);
        if (!step_counts(lane, part))
            continue;
        (void)fail(
            &error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_ZERO_WEIGHT,
            "push %" PRIu64
            " of %s counts for nothing: all contributions to synchronous step %" PRIu64
            " weigh 0; give each the number of examples that it stands for",
            part->sequence, session->task, part->step);
        const bool voided = void_contribution(lane, part, &error);
        move(lane, session, voided ? TURN_READY : TURN_SHORT);
        if (!voided)
            return false;
    }
    return true;
}

/* A contribution that is late, or whose step fails, has its turn again: it is voided. */
static void wake_passed_over(struct lane *lane)
{
    struct lane_session *session = lane->turns->lines[TURN_CONTRIBUTED].first, *next;

    for (; session != NULL; session = next) {
        const struct lane_part *part = next_part(lane, session);
        next = session->in_line.next;
        assert(part->step != 0);
        if (step_is_late(lane, part) || lane_step_fails(lane, part->step))
            move(lane, session, TURN_READY);
    }
}

static void end_step(struct lane *lane, uint64_t step)
{
    step_end(lane, step);
    assert(lane->step_over == step);
    lane->turns->steps_due = true; /* those who have contributed to the next may be all */
    if (lane->step_quorum != 0)
        wake_passed_over(lane);
}

/* The weight of all that count. */
static double weight_of(const struct lane *lane, uint64_t step)
{
    double weight = 0;

    for (const struct lane_part *part = step_first(lane, step); part != NULL;
         part = step_next(part))
        weight += step_counts(lane, part) ? part->weight : 0;
    return weight;
}

/* The next step, which is whole. False: it is not over yet. */
static bool take_step(struct lane *lane)
{
    struct operation *operation = &lane->turns->step;
    const uint64_t step = lane->step_over + 1;
    const struct lane_part *first = step_first(lane, step); /* that it is made of */

    assert(operation->state == OPERATION_OVER);
    while (first != NULL && !step_counts(lane, first))
        first = step_next(first);
    if (first != NULL && lane_operation_blocking(lane, first) != NULL) { /* all touch the same */
        move(lane, first->session, TURN_BLOCKED);
        return false;
    }
    if (weight_of(lane, step) <= 0) {
        if (!void_all(lane, step))
            return false;
        if (lane->records)
            (void)lane_record_step(lane, step, NULL, 0);
        end_step(lane, step);
        return true;
    }
    add_contributions(lane, step);
    if (!lane_operation_begin(lane, operation))
        return false;
    release(lane, operation);
    end_step(lane, step);
    return true;
}

/* Those that are whole, one after the other. False: the step of the lane has no more time. */
static bool take_steps(struct lane *lane)
{
    while (lane->turns->steps_due && step_is_whole(lane)) {
        lane->work += lane->step_members / PIECES_PER_WORK;
        if (!lane_may_write(lane))
            return false;
        lane->work += WORK_OF_A_PART;
        lane->turns->steps_due = take_step(lane);
    }
    lane->turns->steps_due = false;
    return true;
}

/* ---- one session: the parts that have their turn ---- */

static enum lane_turn
take_contribution(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    struct sumac_error error;
    const bool late = step_is_late(lane, part);

    assert(session->applying == NULL);
    if (!late && !lane_step_fails(lane, part->step)) {
        step_come(lane, part, false);
        return TURN_CONTRIBUTED;
    }
    if (late)
        (void)fail(
            &error, SUMAC_ABORTED, SUMAC_REASON_STEP_LATE,
            "push %" PRIu64 " of %s counts for nothing: synchronous step %" PRIu64
            " was taken without it (ps 0 was started with --quorum), and step %" PRIu64
            " is the last that is over; go on with the next one, or start ps 0 with a longer "
            "--step-deadline",
            part->sequence, session->task, part->step, lane->step_over);
    else
        (void)fail(
            &error, SUMAC_ABORTED, SUMAC_REASON_MEMBER_LOST,
            "push %" PRIu64 " of %s counts for nothing: synchronous step %" PRIu64
            " and those after it lack the contribution of %s, which was lost; start the run again, "
            "or start ps 0 with --on-loss continue",
            part->sequence, session->task, part->step, lane->turns->lost_task);
    if (!void_contribution(lane, part, &error))
        return TURN_SHORT;
    session->counts.late += late;
    lane->counts.late += late;
    return TURN_READY;
}

/* A contribution to a collective has its turn, which is over with that. */
static void contribution(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    lane_part_move(part, PART_APPLYING);
    session->applying = part;
    operation_count_part(lane, part);
    (void)lane_record_order(lane, RECORD_CONTRIBUTED, session, part->sequence, NULL);
    lane_collective_contribution(lane, part);
    finish(lane, part);
    lane_contributions_heard(
        lane, session, session->collectives_through); /* it may have given it up before */
}

/* The session's next state. READY: the part's turn is over. */
static enum lane_turn take(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    assert(session->applying == NULL);
    assert(is_committed(session, part));
    const bool voided =
        part->state == PART_VOID || lane_voided_find(session, part->sequence) != NULL;
    if (!voided && part->step != 0)
        return take_contribution(lane, session, part);
    if (!voided && lane_operation_blocking(lane, part) != NULL)
        return TURN_BLOCKED;
    const bool own_commit = session->commit_through < part->sequence;
    if (own_commit) /* from here on: a settle counts it */
        session->commit_through = part->sequence;
    if (!voided && part->contribution != NULL) {
        contribution(lane, session, part);
        return TURN_READY;
    }
    if (!voided) {
        begin(operation_of(session), part);
        if (!lane_operation_begin(lane, operation_of(session))) {
            wire_commit commit = WIRE_COMMIT_INIT;
            commit.commit_through = session->commit_through;
            if (own_commit) /* its session may be settled before it is applied */
                (void)lane_record_order(lane, RECORD_COMMIT, session, 0, &commit.base);
            return TURN_RUNNING;
        }
        lane_operation_remove(operation_of(session), part);
    }
    finish(lane, part);
    return TURN_READY;
}

void lane_turn_take_clock(struct lane *lane, struct lane_session *session)
{
    const struct lane_part *part = session->parts.first;

    assert(session->clock <= session->clock_said);
    if (part != NULL && part->sequence <= session->commit_through)
        return;
    if (session->clock < session->clock_said)
        lane_session_set_clock(lane, session, session->clock_said);
}

/* Parts that do not count are dropped: beyond its final, or after a part that never came. Only a
 * contribution waits for others. False: the step has no time for that. */
static bool answer_decided(struct lane *lane, struct lane_session *session)
{
    const struct lane_part *part = next_part(lane, session);
    const bool contributes = part != NULL && part->step != 0 && is_committed(session, part);
    const uint64_t through = contributes ? session->final : 0;

    assert(session->closed);
    assert(session->final <= session->commit_through);
    const bool any = session->parts.last != NULL && session->parts.last->sequence > through;
    if (!lane_session_drop_some(lane, session, through))
        return false;
    if (session->parts.first == NULL) /* so is its contribution */
        move(lane, session, TURN_IDLE);
    const uint64_t number = session->decide_number;
    session->decide_number = 0;
    if (any || lane_collective_is_any(lane))
        (void)lane_record_order(lane, RECORD_DROPPED, session, through, NULL);
    lane_collective_settled(lane, session);
    if (number != 0)
        lane_report_answer(lane, number, NULL);
    return true;
}

/* One after the other. The session's next state. READY: it is to be looked at again. */
static enum lane_turn take_parts(struct lane *lane, struct lane_session *session)
{
    for (struct lane_part *part;
         (part = next_part(lane, session)) != NULL && is_committed(session, part);) {
        if (!lane_may_write(lane))
            return TURN_READY;
        const bool contributes = part->step != 0; /* the step may be whole with that */
        const enum lane_turn next = take(lane, session, part);
        lane->turns->steps_due |= contributes;
        if (next != TURN_READY || contributes)
            return next;
    }
    return TURN_IDLE;
}

/* All that may be taken now, as far as the step of the lane has time. */
static void run(struct lane *lane)
{
    struct turns *turns = lane->turns;
    bool has_time = take_steps(lane);

    for (struct lane_session *session;
         has_time && (session = turns->lines[TURN_READY].first) != NULL;) {
        move(lane, session, take_parts(lane, session));
        has_time = take_steps(lane);
        if (session->closed && lane_session_rests(session) && !answer_decided(lane, session))
            move(lane, session, TURN_READY);
        has_time = has_time && (session->turn != TURN_READY || lane_may_write(lane));
    }
}

void lane_turn_take(struct lane *lane, struct lane_session *session)
{
    if (!lane_session_rests(session))
        return; /* it goes on by itself */
    move(lane, session, TURN_READY);
    run(lane);
}

void lane_turn_take_steps(struct lane *lane)
{
    lane->turns->steps_due = true;
    if (lane->turns->fails_from != 0)
        wake_passed_over(lane);
    run(lane);
}

/* ---- again, from their records ---- */

void lane_turn_start(struct lane *lane)
{
    assert(lane->serving);
    for (struct lane_session *session = NULL;
         (session = lane_session_after(lane, session)) != NULL;)
        move(lane, session, TURN_READY);
    run(lane);
}

/* It has its turn, and had it before. NULL: it cannot have had it. */
static struct lane_part *part_again(struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = lane_session_part(session, sequence);

    assert(session->applying == NULL);
    if (part == NULL || part->previous != session->mark)
        return NULL;
    if (session->commit_through < sequence)
        session->commit_through = sequence;
    return part;
}

bool lane_turn_replay(
    struct lane *lane, struct lane_session *session, uint64_t sequence, uint64_t position)
{
    struct lane_part *part = part_again(session, sequence);

    if (part == NULL)
        return false;
    if (position != 0) {
        if (part->state != PART_STAGED)
            return false;
        begin(operation_of(session), part);
        if (!lane_operation_replay(lane, operation_of(session), position))
            return false;
        lane_operation_remove(operation_of(session), part);
    }
    finish(lane, part);
    return true;
}

bool lane_turn_replay_contribution(
    struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = part_again(session, sequence);

    if (part == NULL || part->state != PART_STAGED || part->contribution == NULL)
        return false;
    contribution(lane, session, part);
    return true;
}

static struct lane_part *
contribution_of(const struct lane *lane, const wire_bytes *id, uint64_t step)
{
    struct lane_part *part = step_first(lane, step);

    assert(lane->streams.first == NULL);
    while (part != NULL && (id->len != sizeof part->session->id ||
                            memcmp(part->session->id, id->data, id->len) != 0))
        part = step_next(part);
    return part == NULL || part->state != PART_STAGED || part->previous != part->session->mark
               ? NULL
               : part;
}

bool lane_turn_replay_step(struct lane *lane, const wire_take_step *taken, uint64_t position)
{
    struct operation *operation = &lane->turns->step;

    assert(operation->state == OPERATION_OVER);
    if (taken->step != lane->step_over + 1 || (position != 0) != (taken->n_session_ids > 0))
        return false;
    for (size_t i = 0; i < taken->n_session_ids; i++) {
        struct lane_part *part = contribution_of(lane, &taken->session_ids[i], taken->step);
        if (part == NULL)
            return false;
        begin(operation, part);
    }
    if (position != 0) {
        step_sum(lane);
        if (!lane_operation_replay(lane, operation, position))
            return false;
        release(lane, operation);
    }
    step_end(lane, taken->step);
    return true;
}

/* ---- what others wait for is over ---- */

/* Its shards are free: those who waited for them go on, then its sessions. */
static void finish_operation(struct lane *lane, struct operation *operation)
{
    const bool step = operation == &lane->turns->step;

    assert(operation->state == OPERATION_OVER);
    wake(lane, TURN_BLOCKED);
    release(lane, operation);
    if (step)
        end_step(lane, lane->step_over + 1);
}

bool lane_turn_has_more(const struct lane *lane)
{
    const struct turns *turns = lane->turns;

    return turns->ending > 0 || turns->steps_due || turns->lines[TURN_READY].first != NULL;
}

uint64_t lane_turn_due_us(const struct lane *lane)
{
    const struct turns *turns = lane->turns;
    const bool has_more = lane_turn_has_more(lane) ||
                          (turns->combining.line.first != NULL && combining_is_put_off(lane));

    return has_more ? lane->now_us : turns->collective_due_us;
}

void lane_turn_go_on(struct lane *lane)
{
    struct operation *operation = NULL;

    while (lane->turns->ending > 0 && (operation = lane_operation_end_on(lane)) != NULL)
        finish_operation(lane, operation);
    run(lane);
}

void lane_turn_computed(struct lane *lane, const struct lane_event *event)
{
    assert(event->job != 0);
    if (combining_computed(lane, event->job))
        return;
    struct operation *operation = lane_operation_computed(lane, event->job);
    if (operation != NULL)
        finish_operation(lane, operation);
    run(lane);
}

void lane_turn_retry_stalled(struct lane *lane)
{
    wake(lane, TURN_SHORT);
    for (uint32_t tries = lane->shows_blocks ? 0 : lane->turns->stalled;
         tries > 0 && lane->turns->stalled > 0; tries--) {
        struct operation *operation = lane_operation_retry(lane);
        if (operation != NULL)
            finish_operation(lane, operation);
    }
    run(lane);
}

const char *lane_turn_whereabouts(const struct lane_session *session, uint64_t sequence)
{
    const struct lane_part *part = lane_session_part(session, sequence);

    if (part == NULL)
        return "is missing";
    if (part->state == PART_APPLYING)
        return "is being applied";
    if (part->state == PART_VOID && sequence > session->commit_through && !part->eager)
        return "was refused and is not committed";
    if (sequence > session->commit_through && !part->eager)
        return "has arrived and is not committed";
    return "waits for its turn";
}

/* "": it was not, or nobody is there any more to be told. */
static const char *why_refused(const struct lane_part *part)
{
    const struct voided *voided =
        part->state == PART_VOID ? lane_voided_find(part->session, part->sequence) : NULL;

    assert(part->state != PART_REFUSED); /* that one has no place yet */
    return voided == NULL || voided->refusal == NULL ? "" : voided->refusal->error.text;
}

bool lane_turn_waits_for_step(const struct lane *lane, const struct lane_part *part)
{
    const struct lane_session *session = part->session;

    assert(part->state != PART_REFUSED);
    return part->step != 0 && part->previous == session->mark && is_committed(session, part) &&
           lane_operation_blocking(lane, part) == NULL;
}

void lane_turn_describe_wait(
    const struct lane *lane, const struct lane_part *part, char *text, size_t text_bytes)
{
    const struct lane_session *session = part->session;
    const bool is_next = part->previous == session->mark;
    const bool before_is_here = is_next || lane_session_part(session, part->previous) != NULL;

    const uint64_t sequence = part->sequence, previous = part->previous;
    const struct session_silence silence = lane_session_silence(lane, session);
    const struct shard *busy = lane_operation_blocking(lane, part);
    const char *const here = part->state == PART_VOID ? "was refused" : "is staged";
    const char *const why = why_refused(part);

    assert(part->state != PART_APPLYING);
    assert(!lane_turn_waits_for_step(lane, part));
    if (before_is_here && !is_committed(session, part))
        (void)text_print_line(
            text, text_bytes,
            "push %" PRIu64
            " of %s %s on ps %u and waits for its commit: its client has not heard from all "
            "ps that it concerns, or has stopped; %s%s%s",
            sequence, session->task, here, lane->index, silence.text,
            *why == 0 ? "" : "; refused: ", why);
    else if (!is_next)
        (void)text_print_line(
            text, text_bytes,
            "push %" PRIu64 " of %s %s on ps %u and waits for push %" PRIu64
            " before it: push %" PRIu64 " %s, and the last push applied is %" PRIu64 "; %s",
            sequence, session->task, here, lane->index, previous, previous,
            lane_turn_whereabouts(session, part->previous), session->mark, silence.text);
    else
        (void)text_print_line(
            text, text_bytes, "push %" PRIu64 " of %s waits for %s%s on ps %u%s", sequence,
            session->task, busy == NULL ? "its turn" : "variable ",
            busy == NULL ? "" : busy->variable->name, lane->index,
            busy == NULL ? "" : ", whose shard is being updated");
}
