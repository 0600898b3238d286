/* SPDX-License-Identifier: Apache-2.0 */
/* reports.c -- what ps 0 is told: answers to its orders, sessions that were heard from, variables
 * that were assigned.
 *
 * One report is on its way at a time; the others wait in their order.
 */
#include "peer_state.h"

#define ASSIGNED_MAX 512u  /* variables of one report */
#define COME_MAX 64u       /* sessions of one report */
#define COLLECTIVES_MAX 8u /* rounds of one report */

/* Put a report in line that ps 0 will get. NULL: no stream to ps 0 is open, or there is no memory.
 */
static struct report *
try_add(struct lane *lane, struct lane_stream *stream, enum report_kind kind, uint64_t number)
{
    struct report *report = stream == NULL ? NULL : pool_take(&lane->peers->reports);

    if (report == NULL)
        return NULL;
    assert(stream->state != STREAM_ENDED);
    report->kind = kind;
    report->answers = number;
    report->record = lane->last_record;
    LIST_APPEND(&stream->reports, report, in_stream);
    lane_stream_attend(lane, stream);
    return report;
}

/* The same. What it would have said is lost: ps 0 asks again on the next stream, which is why this
 * one ends. */
static struct report *add(struct lane *lane, enum report_kind kind, uint64_t number)
{
    struct report *report = try_add(lane, lane->controller, kind, number);

    if (report == NULL && lane->controller != NULL)
        (void)lane_stream_fail(
            lane, lane->controller, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps %u has no memory for its reports to ps 0", lane->index);
    return report;
}

static wire_peer_report *new_message(struct lane *lane, uint64_t answers)
{
    wire_peer_report *message = arena_take(&lane->arena, sizeof *message);

    if (message == NULL)
        return NULL;
    *message = (wire_peer_report)WIRE_PEER_REPORT_INIT;
    message->answers = answers;
    message->ps_incarnation = lane->config.incarnation;
    message->epoch = lane->epoch;
    return message;
}

/* The last contribution that it has committed: while it waits here its step may be taken with it,
 * or without. */
static void
say_made(struct lane *lane, const struct lane_session *session, wire_close_report *close)
{
    const struct lane_part *part = session->parts.last;

    assert(close->made_step == 0);
    close->made_step = session->passed_step;
    while (part != NULL && (part->step == 0 || part->sequence > session->commit_through)) {
        part = part->in_session.prev;
        lane->work++;
    }
    if (part == NULL)
        return;
    assert(part->step > session->passed_step);
    close->made_step = part->step;
    close->made_sequence = part->sequence;
}

static bool pack_answer(struct lane *lane, const struct report *report, wire_peer_report *message)
{
    message->assigned = arena_take(&lane->arena, sizeof *message->assigned);
    if (message->assigned == NULL)
        return false;
    *message->assigned = report->assigned;
    message->n_assigned = report->assigned != 0;
    message->status = (uint32_t)report->error.status;
    message->reason = (Sumac__V1__Reason)report->error.reason;
    message->message = out_text(&lane->out, "%s", report->error.text);
    message->clock = report->clock;
    message->seen_step = report->seen_step;
    return true;
}

/* What it voided, its own refusals among them. A session that has been forgotten was decided:
 * nobody waits for it. */
static bool pack_close(struct lane *lane, const struct report *report, wire_peer_report *message)
{
    const struct lane_session *session = lane_session_find(lane, report->session_id);
    const uint32_t count = session == NULL ? 0 : session->voided_count;
    wire_close_report *close = arena_take(&lane->arena, sizeof *close);
    uint64_t *voided = arena_take(&lane->arena, count * sizeof *voided);
    uint8_t *id = arena_take(&lane->arena, sizeof report->session_id);

    if (close == NULL || voided == NULL || id == NULL)
        return false;
    *close = (wire_close_report)WIRE_CLOSE_REPORT_INIT;
    for (uint32_t i = 0; i < count; i++)
        voided[i] = session->voided[i].sequence;
    memcpy(id, report->session_id, sizeof report->session_id);
    close->session_id = (wire_bytes){.len = sizeof report->session_id, .data = id};
    close->commit_through = report->commit_through;
    close->voided = voided;
    close->n_voided = count;
    close->acked_through = session == NULL ? 0 : session->acked_through;
    close->connected = session != NULL && session->push_stream != NULL;
    if (session != NULL)
        say_made(lane, session, close);
    message->close_report = close;
    return true;
}

/* The next variables that are assigned, as many as a report takes and the step has time to find. */
static bool pack_again(struct lane *lane, const struct report *report, wire_peer_report *message)
{
    const struct variable *variable = lane->peers->again;

    assert(report->answers == 0);
    message->assigned = arena_take(&lane->arena, ASSIGNED_MAX * sizeof *message->assigned);
    if (message->assigned == NULL)
        return false;
    for (uint32_t i = 0;
         variable != NULL && message->n_assigned < ASSIGNED_MAX && (i == 0 || lane_has_time(lane));
         i++) {
        if (variable->assigned)
            message->assigned[message->n_assigned++] = variable->id;
        variable = variable->in_store.next;
        lane->work++;
    }
    lane->peers->again = variable;
    return true;
}

/* Who has come to which synchronous step, as many as a report takes. */
static bool pack_come(struct lane *lane, const struct report *report, wire_peer_report *message)
{
    struct peers *peers = lane->peers;
    wire_contributed *contributed = arena_take(&lane->arena, COME_MAX * sizeof *contributed);

    assert(report->answers == 0);
    message->contributed = arena_take(&lane->arena, COME_MAX * sizeof *message->contributed);
    if (contributed == NULL || message->contributed == NULL)
        return false;
    while (peers->come.first != NULL && message->n_contributed < COME_MAX) {
        struct lane_session *session = peers->come.first;
        wire_contributed *one = &contributed[message->n_contributed];
        *one = (wire_contributed)WIRE_CONTRIBUTED_INIT;
        one->session_id = (wire_bytes){.len = sizeof session->id, .data = session->id};
        one->step = session->come_step;
        one->voided = session->come_voided;
        message->contributed[message->n_contributed++] = one;
        lane_come_forget(lane, session);
    }
    message->step_over = peers->says_over ? lane->step_over : 0;
    peers->says_over = false;
    return true;
}

void lane_report_collective_forget(struct lane *lane, struct round *round)
{
    if (!round->is_proposed)
        return;
    round->is_proposed = false;
    LIST_REMOVE(&lane->peers->collectives, round, in_line);
}

/* How rounds are to end, as many as a report takes. */
static bool
pack_collectives(struct lane *lane, const struct report *report, wire_peer_report *message)
{
    wire_collective_end *ends = arena_take(&lane->arena, COLLECTIVES_MAX * sizeof *ends);

    assert(report->answers == 0);
    message->collectives = arena_take(&lane->arena, COLLECTIVES_MAX * sizeof *message->collectives);
    if (ends == NULL || message->collectives == NULL)
        return false;
    LIST_FOREACH_SAFE(struct round, round, &lane->peers->collectives, in_line) {
        wire_collective_end *end = &ends[message->n_collectives];
        if (message->n_collectives == COLLECTIVES_MAX)
            return true;
        assert(round->is_proposed && !round->over);
        *end = (wire_collective_end)WIRE_COLLECTIVE_END_INIT;
        end->collective = collective_write(round->collective, &lane->arena);
        if (end->collective == NULL)
            return false;
        end->status = (uint32_t)round->end.status;
        end->reason = (Sumac__V1__Reason)round->end.reason;
        end->message = out_text(&lane->out, "%s", round->end.text);
        message->collectives[message->n_collectives++] = end;
        lane_report_collective_forget(lane, round);
    }
    return true;
}

/* Outlives the report. NULL: no memory. */
static wire_peer_report *pack(struct lane *lane, const struct report *report)
{
    static bool (*const packs[])(struct lane *, const struct report *, wire_peer_report *) = {
        [REPORT_ANSWER] = pack_answer,
        [REPORT_CLOSE] = pack_close,
        [REPORT_AGAIN] = pack_again,
        [REPORT_COME] = pack_come,
        [REPORT_COLLECTIVES] = pack_collectives};
    wire_peer_report *message = new_message(lane, report->answers);

    return message != NULL && packs[report->kind](lane, report, message) ? message : NULL;
}

void lane_report_answer(struct lane *lane, uint64_t number, const struct sumac_error *error)
{
    struct report *report = add(lane, REPORT_ANSWER, number);

    if (report != NULL && error != NULL)
        report->error = *error;
}

void lane_report_refusal(
    struct lane *lane, struct lane_stream *stream, uint64_t number, const struct sumac_error *error)
{
    struct report *report =
        stream->reports.first != NULL ? NULL : try_add(lane, stream, REPORT_ANSWER, number);

    assert(error->status != SUMAC_OK);
    if (report != NULL)
        report->error = *error;
    else /* a stream gets no other refusal before it takes the last one */
        (void)lane_stream_fail(
            lane, stream, error->status, error->reason, "hello %" PRIu64 " of ps 0 again: %s",
            number, error->text);
}

void lane_report_opened(struct lane *lane, uint64_t number, uint64_t clock, uint64_t seen_step)
{
    struct report *report = add(lane, REPORT_ANSWER, number);

    if (report == NULL)
        return;
    report->clock = clock;
    report->seen_step = seen_step;
}

void lane_report_close(struct lane *lane, struct lane_session *session)
{
    struct report *report = try_add(lane, lane->controller, REPORT_CLOSE, session->close_number);

    if (report == NULL) /* the next tick tries again */
        return;
    memcpy(report->session_id, session->id, sizeof report->session_id);
    report->commit_through = session->commit_through;
    session->close_number = 0;
}

void lane_reports_close_again(struct lane *lane)
{
    LIST_FOREACH_SAFE(struct lane_session, session, &lane->sessions, in_lane) {
        if (session->close_number != 0)
            lane_report_close(lane, session);
    }
    if (lane->controller != NULL && lane->controller->reports.first != NULL)
        lane_stream_attend(lane, lane->controller);
}

void lane_report_assigned(struct lane *lane, const struct variable *variable)
{
    struct report *report = add(lane, REPORT_ANSWER, 0);

    assert(variable->assigned);
    if (report != NULL)
        report->assigned = variable->id;
}

void lane_reports_assigned_again(struct lane *lane)
{
    lane->peers->again = lane->store.variables.first;
    (void)add(lane, REPORT_AGAIN, 0);
}

/* Send all that is due of this kind with the report that is in line, or with a new one, once its
 * record is on disk. Without memory for it, it is due again after the next hello of ps 0. */
static void gather(struct lane *lane, enum report_kind kind)
{
    struct report **report = &lane->peers->gathering[kind];

    assert(*report == NULL || (*report)->kind == kind);
    if (*report == NULL)
        *report = add(lane, kind, 0);
    if (*report != NULL)
        (*report)->record = lane->last_record;
}
static void say_come(struct lane *lane, struct lane_session *session)
{
    assert(session->come_step > 0);
    if (!session->says_come) {
        session->says_come = true;
        LIST_APPEND(&lane->peers->come, session, in_come);
    }
}

void lane_report_come(struct lane *lane, struct lane_session *session, uint64_t step, bool voided)
{
    assert(step > 0);
    if (lane->step_quorum == 0 || session->come_step >= step)
        return;
    session->come_step = step;
    session->come_voided = voided;
    say_come(lane, session);
    gather(lane, REPORT_COME);
}

void lane_report_step_over(struct lane *lane)
{
    if (lane->step_quorum == 0 || lane->step_over == 0)
        return;
    lane->peers->says_over = true;
    gather(lane, REPORT_COME);
}

void lane_reports_come_again(struct lane *lane)
{
    assert(lane->step_quorum != 0);
    for (struct lane_session *session = NULL;
         (session = lane_session_after(lane, session)) != NULL;) {
        if (session->come_step != 0)
            say_come(lane, session);
    }
    if (lane->peers->come.first != NULL)
        gather(lane, REPORT_COME);
}

void lane_report_collective(struct lane *lane, struct round *round)
{
    if (!round->is_proposed) {
        round->is_proposed = true;
        LIST_APPEND(&lane->peers->collectives, round, in_line);
    }
    gather(lane, REPORT_COLLECTIVES);
}

void lane_reports_forget(struct lane *lane, const struct variable *variable)
{
    if (lane->peers->again == variable)
        lane->peers->again = variable->in_store.next;
}

/* The sessions heard from, into the message. */
static bool add_renewed(struct lane *lane, wire_peer_report *message)
{
    size_t count = 0;

    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane)
        count += session->heard;
    if (count == 0)
        return false;
    message->renewed = arena_take(&lane->arena, count * sizeof *message->renewed);
    if (message->renewed == NULL)
        return false;
    LIST_FOREACH(struct lane_session, session, &lane->sessions, in_lane) {
        if (!session->heard)
            continue;
        session->heard = false;
        assert(message->n_renewed < count);
        message->renewed[message->n_renewed++] =
            (wire_bytes){.len = sizeof session->id, .data = session->id};
    }
    return true;
}

/* Add the sessions of claims that are not answered, and of those that wait. */
static bool add_claims(struct lane *lane, wire_peer_report *message)
{
    size_t count = 0;

    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane)
        count++;
    message->stalled = arena_take(&lane->arena, count * sizeof *message->stalled);
    message->waiting = arena_take(&lane->arena, count * sizeof *message->waiting);
    if (count == 0 || message->stalled == NULL || message->waiting == NULL)
        return false;
    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane) {
        const wire_bytes id = {.len = sizeof claim->session->id, .data = claim->session->id};
        if (lane_claim_is_late(lane, claim, CLAIM_LEASES_MAX))
            message->stalled[message->n_stalled++] = id;
        if (claim->state == CLAIM_WAITS)
            message->waiting[message->n_waiting++] = id;
    }
    return message->n_stalled > 0 || message->n_waiting > 0;
}

/* Any report is a sign of life. */
static void send(struct lane *lane, struct lane_stream *stream, const wire_peer_report *message)
{
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_REPORT);

    assert(stream->writable);
    assert(stream->kind == LANE_STREAM_PEER);
    effect->stream = stream->id;
    effect->report = message;
    stream->writable = false;
    stream->due = 0;
}

void lane_reports_renew(struct lane *lane)
{
    struct lane_stream *stream = lane->controller;

    assert(stream == NULL || stream->state == STREAM_GREETED);
    if (stream == NULL || !stream->writable || lane->now_us < lane->peers->renew_due_us)
        return;
    wire_peer_report *message = new_message(lane, 0);
    if (message == NULL)
        return;
    const bool renewed = add_renewed(lane, message), claims = add_claims(lane, message);
    if (!renewed && !claims)
        return;
    lane->peers->renew_due_us = lane->now_us + (uint64_t)lane->config.lease_ms * 1000 / 4;
    send(lane, stream, message);
}

void lane_reports_flush(struct lane *lane, struct lane_stream *stream)
{
    struct report *report = stream->reports.first;
    const struct peers *peers = lane->peers;

    assert(stream->writable);
    if (report == NULL || report->record > lane->recorded) {
        if (stream == lane->controller)
            lane_reports_renew(lane);
        const wire_peer_report *alive = stream->due != 0 ? new_message(lane, 0) : NULL;
        if (alive != NULL)
            send(lane, stream, alive);
        return;
    }
    const enum report_kind kind = report->kind;
    const wire_peer_report *message = pack(lane, report);
    if (message == NULL)
        return;
    if ((kind == REPORT_AGAIN && peers->again != NULL) ||
        (kind == REPORT_COME && peers->come.first != NULL) ||
        (kind == REPORT_COLLECTIVES && peers->collectives.first != NULL)) {
        send(lane, stream, message); /* it goes on */
        return;
    }
    lane_report_remove(lane, stream, report);
    if ((kind == REPORT_AGAIN && message->n_assigned == 0) ||
        (kind == REPORT_COLLECTIVES && message->n_collectives == 0)) /* they have ended meanwhile */
        lane_reports_flush(lane, stream);
    else
        send(lane, stream, message);
}
