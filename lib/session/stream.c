/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c -- what becomes of the streams to each ps: greeted, lost and opened again, and a ps
 * given up. */
#include "deeds.h"

#include <string.h>

#define STOPPING_MS 2000u /* how long the others may answer after a ps was terminated */
#define CHUNK_BYTES_MIN 64u
#define TOLD_BYTES 280u

struct told_address {
    char text[TOLD_BYTES];
};

/* " (at h1:2222 for ps 0)": ps 0 may have another address than this configuration. */
static struct told_address told_address(const struct session *session, uint32_t ps)
{
    const char *told = session->told_addresses == NULL ? "" : session->told_addresses[ps];
    struct told_address address = {""};

    assert(ps < session->link_count);
    if (told[0] != '\0' && strcmp(told, ps_address(session, ps)) != 0)
        (void)text_print_line(address.text, sizeof address.text, " (at %s for ps 0)", told);
    return address;
}

/* What goes out next starts from the first part that is not done. */
static void rewind_pushes(struct session *session, struct link *link)
{
    link->cursor = link->parts.first;
    link->sending = NULL;
    for (struct part *part = link->parts.first; part != NULL && link->cancelled_due > 0;
         part = part->in_link.next) {
        link->cancelled_due -= part->cancel_due;
        part->cancel_due = false;
    }
    room_rewind(session, link);
    link->cut_sequence = 0;
    link->gauge = 0;
    link->small_messages = 0;
}

/* A ps ends its streams with PS_MISSING only as it exits. */
static bool is_reason_to_stop(enum sumac_reason reason)
{
    return reason >= SUMAC_REASON_STATE_LOST || reason == SUMAC_REASON_PS_MISSING;
}

/* A push in flight that is done on every ps that is gone: so it is not done on another. */
static bool is_answered_elsewhere(const struct push *push)
{
    for (uint32_t i = 0; i < push->part_count; i++)
        if (push->parts[i].link->gone && !push->parts[i].done)
            return false;
    return true;
}

/* A ps takes the parts in this order, so one that is never committed holds up those behind it. */
static bool any_is_answered_elsewhere(const struct session *session)
{
    for (uint32_t i = 0; i < session->link_count; i++) {
        const struct part *part = session->links[i].parts.first;
        while (part != NULL && !is_answered_elsewhere(part->push) &&
               part->push->sequence <= session->state.commit_through)
            part = part->in_link.next;
        if (part != NULL && is_answered_elsewhere(part->push))
            return true;
    }
    return false;
}

void stopping_check(struct session *session)
{
    assert(session->stopping_until_us != 0);
    if (session->phase == PHASE_OVER)
        return;
    if (session->now_us < session->stopping_until_us && any_is_answered_elsewhere(session))
        effect_wake(session, session->stopping_until_us);
    else
        session_end(session, &session->stopping, NULL);
}

/* A ps finishes what is in flight before it exits, and the others do: what they answer is still
 * heard. */
static void stop_soon(struct session *session, struct link *link, const struct sumac_error *error)
{
    link->gone = true;
    if (session->stopping_until_us != 0)
        return;
    session->stopping = *error;
    session->stopping_until_us = session->now_us + STOPPING_MS * 1000;
}

/* A ps that ended the stream with a reason to stop is not asked again: the session is over, unless
 * it is leaving anyway: then the answer to the leave says how the run stands. */
static bool is_final(struct session *session, struct link *link, const struct sumac_error *given)
{
    struct sumac_error error;

    if (given == NULL || !is_reason_to_stop(given->reason))
        return false;
    if (session->phase == PHASE_LEAVING) {
        session->leave_heard |= given->reason == SUMAC_REASON_RUN_ENDED;
        return true;
    }
    if (given->reason == SUMAC_REASON_WRONG_CLUSTER && link_is_known(session, link))
        fail_restarted(session, link, &error);
    else if (given->reason == SUMAC_REASON_TERMINATED && ps_is_started(session, link->ps))
        (void)fail(
            &error, given->status, given->reason,
            "the ps at %s has ended, as it does when %s, which started it, ends; start the whole "
            "run again",
            ps_address(session, link->ps), session->config.ps_starter);
    else
        (void)fail(
            &error, given->status, given->reason, "ps %" PRIu32 " at %s: %s", link->ps,
            ps_address(session, link->ps), given->text);
    if (given->reason == SUMAC_REASON_TERMINATED)
        stop_soon(session, link, &error);
    else
        session_end(session, &error, NULL);
    return true;
}

/* It broke, or was not opened: the next one is due after a while. */
static void break_stream(
    struct session *session, struct link *link, enum session_stream_kind kind, const char *why)
{
    struct stream *stream = &link->streams[kind];

    assert(stream->state == STREAM_SHUT);
    trouble_note(session, link, kind, why);
    stream->due_us = session->now_us + 1000 * (uint64_t)backoff_ms(session, stream->failures++);
    if (kind == SESSION_PULL_STREAM) {
        requests_rewind(session, link);
        if (link->requests.first != NULL)
            stream_open(session, link, SESSION_PULL_STREAM);
        return;
    }
    if (link->unreached_us == NEVER || stream->failures == 1) {
        if (link->unreached_us == NEVER)
            link->unreached_us = session->now_us;
        effect_log(
            session, "ps %" PRIu32 " at %s%s: the push stream broke: %s", link->ps,
            ps_address(session, link->ps), told_address(session, link->ps).text, why);
    }
    rewind_pushes(session, link);
    requests_leave_beside(session, link);
    stream_open(session, link, SESSION_PUSH_STREAM);
    links_check(session); /* it asks for the tick at which this ps is given up */
}

/* The same again would end the next stream, too. A reason that is a want of room does not end a
 * push stream for good: acked_through, said first on the next one, makes room. */
static bool is_of_what_was_said(const struct sumac_error *given, enum session_stream_kind kind)
{
    if (given == NULL || given->status == SUMAC_OK || given->reason >= SUMAC_REASON_PS_MISSING)
        return false;
    const bool of_room = given->reason == SUMAC_REASON_TOO_MANY_IN_FLIGHT ||
                         given->reason == SUMAC_REASON_TOO_MANY_REFUSED ||
                         given->reason == SUMAC_REASON_OUT_OF_MEMORY;
    return !(of_room && kind == SESSION_PUSH_STREAM) && !is_worth_retrying(given);
}

/* The ps has no such session. Of a push stream it is asked once more: its answer to the next hello,
 * CLOSED or REJOIN, says which pushes count. */
static bool
is_of_no_session(struct link *link, enum session_stream_kind kind, const struct sumac_error *given)
{
    if (given == NULL || given->reason < SUMAC_REASON_SESSION_UNKNOWN)
        return false;
    assert(!is_reason_to_stop(given->reason));
    const bool again = kind == SESSION_PUSH_STREAM && !link->asked_for_end;
    link->asked_for_end = true;
    return !again;
}

/* Its reason leaves nothing that the next stream could do. While the session leaves, the answer to
 * the leave says how it ended. */
static void end_by_stream(
    struct session *session, const struct link *link, enum session_stream_kind kind,
    const struct sumac_error *given)
{
    assert(session->phase != PHASE_OVER);
    if (session->phase == PHASE_LEAVING)
        return;
    (void)fail(
        &session->end, given->status, given->reason, "ps %" PRIu32 " at %s ended the %s stream: %s",
        link->ps, ps_address(session, link->ps), kind == SESSION_PUSH_STREAM ? "push" : "pull",
        given->text);
    session_end(session, &session->end, NULL);
}

void stream_lost(struct session *session, const struct session_event *event)
{
    if (event->ps >= session->link_count || session->phase == PHASE_OVER)
        return;
    struct link *link = &session->links[event->ps];
    struct stream *stream = &link->streams[event->stream_kind];
    if (stream->generation != event->generation || stream->state < STREAM_OPENING)
        return;
    stream_shut(stream);
    if (is_final(session, link, event->error))
        return;
    const enum session_stream_kind kind = event->stream_kind;
    const bool of_what_was_said = is_of_what_was_said(event->error, kind);
    if (is_of_no_session(link, kind, event->error) ||
        (of_what_was_said && kind == SESSION_PUSH_STREAM)) {
        end_by_stream(session, link, kind, event->error);
        return;
    }
    if (of_what_was_said)
        requests_fail(session, link, event->error);
    break_stream(
        session, link, kind, event->error != NULL ? event->error->text : "no reason given");
}

static void check_stream(struct session *session, struct link *link, enum session_stream_kind kind)
{
    struct stream *stream = &link->streams[kind];

    assert(!stream->undone || stream->state == STREAM_OPENING);
    if (stream->undone) {
        stream->undone = false;
        stream_shut(stream);
        break_stream(session, link, kind, "this process had no memory to open it");
    } else if (stream->state == STREAM_DUE && link->gone) {
        stream->state = STREAM_SHUT;
    } else if (stream->state == STREAM_DUE && session->now_us >= stream->due_us) {
        stream_begin(session, link, kind);
    } else if (stream->state == STREAM_DUE) {
        effect_wake(session, stream->due_us);
    }
}

void streams_check(struct session *session)
{
    for (uint32_t i = 0; i < session->link_count && session->phase != PHASE_OVER; i++)
        for (int kind = SESSION_PUSH_STREAM; kind <= SESSION_PULL_STREAM; kind++)
            check_stream(session, &session->links[i], (enum session_stream_kind)kind);
}

static uint32_t smaller(uint32_t said, uint32_t ours)
{
    return said != 0 && said < ours ? said : ours;
}

/* The smaller counts of what a ps takes and what we would send; a limit that it does not say does
 * not bind us. Any push that is in flight may be refused, and the ps has to remember it then. The
 * headers of a chunk are small beside it, and a part of a chunk has whole elements. */
static void take_limits(struct session *session, struct link *link, const wire_limits *limits)
{
    const wire_limits none = WIRE_LIMITS_INIT;
    const wire_limits *said = limits != NULL ? limits : &none;

    link->parts_max = smaller(said->parts_in_flight_max, UINT32_MAX);
    session->voided_max = smaller(said->voided_max, session->voided_max);
    link->pulls_max = smaller(said->pulls_per_stream_max, UINT32_MAX);
    link->chunk_bytes = smaller(said->message_bytes_max / 2, session->config.chunk_bytes);
    if (link->chunk_bytes < CHUNK_BYTES_MIN)
        link->chunk_bytes = CHUNK_BYTES_MIN;
    assert(link->chunk_bytes >= CHUNK_BYTES_MIN);
}

bool stream_greeted(
    struct session *session, struct link *link, enum session_stream_kind kind,
    const wire_greeting *greeting)
{
    const struct ps_identity it = {
        .cluster_id = greeting->cluster_id,
        .epoch = greeting->epoch,
        .incarnation = greeting->ps_incarnation};

    if (!link_is_same(session, link, &it, &session->end)) {
        session_end(session, &session->end, NULL);
        return false;
    }
    struct stream *stream = &link->streams[kind];
    stream->failures = 0;
    link->incarnation = greeting->ps_incarnation;
    if (session->state.epoch == 0)
        session->state.epoch = greeting->epoch;
    if (session->state.cluster_id == 0)
        session->state.cluster_id = greeting->cluster_id;
    take_limits(session, link, greeting->limits);
    if (kind == SESSION_PULL_STREAM || stream->greeted) {
        stream->greeted = true;
        return true;
    }
    stream->greeted = true;
    if (link->unreached_us != NEVER && stream->generation > 1)
        effect_log(
            session, "ps %" PRIu32 " at %s is reached again after %s", link->ps,
            ps_address(session, link->ps), text_time_us(session->now_us - link->unreached_us).text);
    link->unreached_us = NEVER;
    if (greeting->membership_epoch > session->state.membership_epoch)
        session->state.membership_epoch = greeting->membership_epoch;
    if (link->last_sequence == 0)
        link->last_sequence = greeting->mark;
    link->grant_bytes = greeting->staging_grant_bytes;
    link->part_bytes_max = greeting->part_bytes_max;
    const bool first = !link->knows_grant;
    link->knows_grant = true;
    link->told_commit = link->told_acked = link->told_clock = link->told_collectives = 0;
    link->told_ended = 0;
    link_touch(session, link);
    if (first)
        pushes_admit(session);
    return true;
}

/* Is there something that a ps that lives would answer, or take, by now? */
static bool owes(const struct link *link)
{
    const struct stream *stream = &link->streams[SESSION_PUSH_STREAM];

    if (stream->state == STREAM_OPEN && !stream->writable)
        return true;
    const struct part *part = link->parts.first;
    if (part != NULL && part->staged && part->push->wanted.synchronous)
        part = part->in_link.next; /* it is done when other members' have come, too */
    return part != NULL && part->counted &&
           (!part->staged || part->eager || part->push->sequence <= link->told_commit);
}

static uint64_t silent_since(const struct link *link)
{
    if (link->unreached_us != NEVER)
        return link->unreached_us;
    if (!owes(link))
        return NEVER;
    return link->heard_us > link->sent_us ? link->heard_us : link->sent_us;
}

/* Of several silent ps the one that fell silent first is named: the others may have gone because of
 * it. */
void links_check(struct session *session)
{
    if (session->config.reader || session->phase < PHASE_OPEN || session->phase == PHASE_OVER)
        return;
    uint64_t first_us = NEVER;
    uint32_t ps = 0;
    for (uint32_t i = 0; i < session->link_count; i++) {
        const uint64_t since_us = silent_since(&session->links[i]);
        if (since_us >= first_us)
            continue;
        first_us = since_us;
        ps = i;
    }
    if (first_us == NEVER)
        return;
    if (session->now_us < first_us + patience_us(session)) {
        effect_wake(session, first_us + patience_us(session));
        return;
    }
    const struct text_time silent = text_time_us(session->now_us - first_us);
    if (session->links[ps].knows_grant)
        (void)fail(
            &session->end, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "ps %" PRIu32
            " at %s was not reached for %s and is lost with its state; start the run again (what "
            "it had not answered may or may not have been applied)",
            ps, ps_address(session, ps), silent.text);
    else
        (void)fail(
            &session->end, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "ps %" PRIu32 " at %s%s never answered this session's pushes, for %s: it is lost with "
            "its state, or is not reached from here; start the run again, or "
            "look at its address and at the network between",
            ps, ps_address(session, ps), told_address(session, ps).text, silent.text);
    session_end(session, &session->end, NULL);
}

void links_excuse(struct session *session, uint64_t slept_us)
{
    assert(slept_us > 0);
    effect_log(
        session,
        "this process did not run for %s: it was suspended, or had too little of the processor; "
        "the ps are not blamed for that time",
        text_time_us(slept_us).text);
    for (uint32_t i = 0; i < session->link_count; i++) {
        struct link *link = &session->links[i];
        link->heard_us += slept_us;
        if (link->unreached_us != NEVER)
            link->unreached_us += slept_us;
    }
}
