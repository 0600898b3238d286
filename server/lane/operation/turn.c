/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c -- whose turn it is: a session's parts are applied one after the other, each when the one
 * before it is.
 *
 * A part's turn has come when its `previous` is the mark and it is committed, or carries its own
 * commit. If a shard that it touches is busy, or the step is long enough, its session waits in a
 * queue, so that nobody waits for ever.
 */
#include "operation_state.h"

#include <assert.h>
#include <inttypes.h>

#include "text.h"

bool lane_turn_init(struct lane *lane)
{
    struct turns *turns = memory_take(lane->memory, sizeof *turns);

    assert(lane->turns == NULL);
    if (turns == NULL)
        return false;
    *turns = (struct turns){.stalled = 0};
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

static void wait_in_line(struct lane *lane, struct lane_session *session)
{
    assert(session->applying == NULL);
    if (session->waits_in_line)
        return;
    session->waits_in_line = true;
    LIST_APPEND(&lane->turns->waiting, session, in_line);
}

/* Until the next step, which comes at once. */
static void put_off(struct lane *lane, struct lane_session *session)
{
    assert(!lane_has_time(lane));
    lane->turns_put_off = true;
    wait_in_line(lane, session);
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
    if (lane->records && !applied) /* else its operation has made the record */
        (void)lane_record_applied(lane, part, 0);
    lane_answer_done(lane, session, part, !applied);
    if (refused && !rule_holds(lane->config.broken, RULE_acked_through))
        lane_voided_forget(lane, session, part->sequence);
    session->applying = NULL;
    lane_session_remove(session, part);
    lane_part_destroy(lane, part);
    lane_turn_take_clock(lane, session);
}

/* A part that carries its own commit: a settle may be told of that before the part is applied. */
static void record_own_commit(struct lane *lane, const struct lane_session *session)
{
    wire_commit commit = WIRE_COMMIT_INIT;

    assert(session->applying != NULL && session->applying->eager);
    commit.commit_through = session->commit_through;
    (void)lane_record_order(lane, RECORD_COMMIT, session, 0, &commit.base);
}

/* Its turn has come. False: it is not over yet. */
static bool take(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    assert(session->applying == NULL);
    assert(is_committed(session, part));
    const bool voided =
        part->state == PART_VOID || lane_voided_find(session, part->sequence) != NULL;
    if (!voided && lane_operation_blocking(lane, part) != NULL) {
        wait_in_line(lane, session);
        return false;
    }
    const bool own_commit = session->commit_through < part->sequence;
    if (own_commit) /* from here on: a settle counts it */
        session->commit_through = part->sequence;
    if (!voided) {
        lane_part_move(part, PART_APPLYING);
        session->applying = part;
        lane_operation_add(operation_of(session), part);
        if (!lane_operation_begin(lane, operation_of(session))) {
            if (own_commit)
                record_own_commit(lane, session);
            return false;
        }
        lane_operation_remove(operation_of(session), part);
    }
    finish(lane, part);
    return true;
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

static void answer_decided(struct lane *lane, struct lane_session *session)
{
    assert(session->closed);
    if (session->decide_number == 0 || session->applying != NULL || session->waits_in_line)
        return;
    const bool any = session->parts.first != NULL;
    if (!lane_session_drop_some(
            lane, session)) { /* beyond its final, or after one that never came */
        put_off(lane, session);
        return;
    }
    const uint64_t number = session->decide_number;
    session->decide_number = 0;
    if (any)
        (void)lane_record_order(lane, RECORD_DROPPED, session, 0, NULL);
    lane_report_answer(lane, number, NULL);
}

void lane_turn_take(struct lane *lane, struct lane_session *session)
{
    bool any = false;

    while (session->applying == NULL && !session->waits_in_line) {
        struct lane_part *part = next_part(lane, session);
        if (part == NULL || !is_committed(session, part))
            break;
        if (!lane_has_time(lane)) {
            put_off(lane, session);
            break;
        }
        if (!take(lane, session, part))
            break;
        any = true;
    }
    if (any)
        lane->turns_taken = true;
    if (session->closed)
        answer_decided(lane, session);
}

bool lane_turn_replay(
    struct lane *lane, struct lane_session *session, uint64_t sequence, uint64_t position)
{
    struct lane_part *part = lane_session_part(session, sequence);

    assert(session->applying == NULL);
    if (part == NULL || part->previous != session->mark)
        return false;
    if (session->commit_through < sequence)
        session->commit_through = sequence;
    if (position != 0) {
        if (part->state != PART_STAGED)
            return false;
        lane_part_move(part, PART_APPLYING);
        session->applying = part;
        lane_operation_add(operation_of(session), part);
        if (!lane_operation_replay(lane, operation_of(session), position))
            return false;
        lane_operation_remove(operation_of(session), part);
    }
    finish(lane, part);
    return true;
}

void lane_turn_retry_waiting(struct lane *lane)
{
    const struct lane_session *last = lane->turns->waiting.last; /* who waits again is behind it */

    lane->turns_put_off = false;
    for (struct lane_session *session = NULL; session != last;) {
        session = lane->turns->waiting.first;
        assert(session->waits_in_line);
        LIST_REMOVE(&lane->turns->waiting, session, in_line);
        session->waits_in_line = false;
        lane_turn_take(lane, session);
    }
}

/* Its shards are free: those who waited for them go on, then its sessions. */
static void finish_operation(struct lane *lane, struct operation *operation)
{
    assert(operation->state == OPERATION_OVER);
    for (struct lane_part *part; (part = operation->parts.first) != NULL;) {
        struct lane_session *session = part->session;
        lane_operation_remove(operation, part);
        finish(lane, part);
        wait_in_line(lane, session);
    }
    lane_turn_retry_waiting(lane);
}

void lane_turn_end_on(struct lane *lane)
{
    while (lane_operation_is_ending(lane)) {
        struct operation *operation = lane_operation_end_on(lane);
        if (operation == NULL)
            return;
        finish_operation(lane, operation);
    }
}

void lane_turn_computed(struct lane *lane, const struct lane_event *event)
{
    struct operation *operation = lane_operation_computed(lane, event->job);

    assert(event->job != 0);
    if (operation != NULL)
        finish_operation(lane, operation);
}

void lane_turn_retry_stalled(struct lane *lane)
{
    for (uint32_t tries = lane->turns->stalled; tries > 0 && lane->turns->stalled > 0; tries--) {
        struct operation *operation = lane_operation_retry(lane);
        if (operation != NULL)
            finish_operation(lane, operation);
    }
}

const char *lane_turn_whereabouts(const struct lane_session *session, uint64_t sequence)
{
    const struct lane_part *part = lane_session_part(session, sequence);

    if (part == NULL)
        return "has not arrived";
    if (part->state == PART_APPLYING)
        return "is being applied";
    if (part->state == PART_VOID && sequence > session->commit_through && !part->eager)
        return "was refused and is not committed";
    if (sequence > session->commit_through && !part->eager)
        return "is staged and not committed";
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

void lane_turn_describe_wait(
    const struct lane *lane, const struct lane_part *part, char *text, size_t text_bytes)
{
    const struct lane_session *session = part->session;
    const bool is_next = part->previous == session->mark;
    const bool before_is_here = is_next || lane_session_part(session, part->previous) != NULL;

    const uint64_t sequence = part->sequence, previous = part->previous;
    const struct text_time silent = text_time_us(lane->now_us - session->heard_us);
    const struct shard *busy = lane_operation_blocking(lane, part);
    const char *const here = part->state == PART_VOID ? "was refused" : "is staged";
    const char *const why = why_refused(part);

    assert(part->state != PART_APPLYING);
    if (before_is_here && !is_committed(session, part))
        (void)text_print_line(
            text, text_bytes,
            "push %" PRIu64
            " of %s %s on ps %u and waits for its commit: its client has not heard from all "
            "ps that it concerns, or has stopped; last heard from %s ago%s%s",
            sequence, session->task, here, lane->index, silent.text,
            *why == 0 ? "" : "; refused: ", why);
    else if (!is_next)
        (void)text_print_line(
            text, text_bytes,
            "push %" PRIu64 " of %s %s on ps %u and waits for push %" PRIu64
            " before it, whose part there %s; its mark is %" PRIu64 ", last heard from %s ago",
            sequence, session->task, here, lane->index, previous,
            lane_turn_whereabouts(session, part->previous), session->mark, silent.text);
    else
        (void)text_print_line(
            text, text_bytes, "push %" PRIu64 " of %s waits for %s%s on ps %u%s", sequence,
            session->task, busy == NULL ? "its turn" : "variable ",
            busy == NULL ? "" : busy->variable->name, lane->index,
            busy == NULL ? "" : ", whose shard is being updated");
}
