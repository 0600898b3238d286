/* SPDX-License-Identifier: Apache-2.0 */
/* receive.c -- what a ps answers to a request: received into the caller's memory, asked for again,
 * or the end of its pull. */
#include "deeds.h"

#include <string.h>

/* A reader over the spans that a payload came in. */
struct span_reader {
    const struct span *spans;
    size_t span_count;
    size_t offset; /* in spans[0] */
};

static bool read_bytes(struct span_reader *reader, uint8_t *to, uint64_t bytes)
{
    while (bytes > 0) {
        if (reader->span_count == 0)
            return false;
        assert(reader->offset <= reader->spans->bytes);
        const size_t rest = reader->spans->bytes - reader->offset;
        const size_t now = rest < bytes ? rest : (size_t)bytes;
        memcpy(to, reader->spans->data + reader->offset, now);
        to += now;
        bytes -= now;
        reader->offset += now;
        if (reader->offset == reader->spans->bytes) {
            reader->spans++;
            reader->span_count--;
            reader->offset = 0;
        }
    }
    return true;
}

static void skip_received(struct request *request)
{
    assert(request->piece <= request->piece_count);
    const struct session_piece *pieces = &request->pull->pieces[request->first_piece];
    while (request->piece < request->piece_count &&
           request->offset == pieces[request->piece].bytes) {
        request->piece++;
        request->offset = 0;
    }
}

/* One answered run must be the next bytes of what was asked, in that order; it is copied where the
 * caller wants it. */
static bool receive_run(struct request *request, const wire_piece *run, struct span_reader *reader)
{
    if (run->bytes == 0)
        return true;
    skip_received(request);
    if (request->piece == request->piece_count)
        return false;
    const struct session_piece *piece =
        &request->pull->pieces[request->first_piece + request->piece];
    assert(request->offset <= piece->bytes);
    if (run->shard_id != piece->shard_id ||
        run->offset_bytes != piece->offset_bytes + request->offset ||
        run->bytes > piece->bytes - request->offset)
        return false;
    if (!read_bytes(reader, piece->data + request->offset, run->bytes))
        return false;
    request->offset += run->bytes;
    return true;
}

/* Returns UNSPECIFIED or MALFORMED. */
static enum sumac_reason receive(struct request *request, const struct session_event *event)
{
    const wire_pull_answer *answer = event->pull_answer;
    struct span_reader reader = {.spans = event->payload, .span_count = event->payload_spans};

    for (size_t i = 0; i < answer->n_pieces; i++)
        if (!receive_run(request, answer->pieces[i], &reader))
            return SUMAC_REASON_MALFORMED;
    for (uint32_t i = 0; i < request->piece_count && i < answer->n_versions; i++)
        request->pull->versions[request->pull->places[request->first_piece + i]] =
            answer->versions[i];
    skip_received(request);
    return answer->last && request->piece < request->piece_count ? SUMAC_REASON_MALFORMED
                                                                 : SUMAC_REASON_UNSPECIFIED;
}

/* Ask again on the same stream, under a new number: answers to the old one are dropped. */
static void ask_again(struct session *session, struct request *request)
{
    assert(request->pull != NULL);
    struct link *link = request->link;
    assert(!request->beside);
    request_unsend(request);
    request->number = ++session->last_request;
    request->piece = 0;
    request->offset = 0;
    request->tries++;
    LIST_REMOVE(&link->requests, request, in_link);
    LIST_APPEND(&link->requests, request, in_link);
    if (link->request_cursor == NULL)
        link->request_cursor = request;
    link_touch(session, link);
}

/* A ps that waited in vain for a push of ours can't know why: its part on another ps may be what
 * holds it up. */
static void name_silent_ps(
    const struct session *session, const struct request *request, struct sumac_error *error)
{
    for (uint32_t i = 0; i < session->link_count; i++) {
        const struct link *link = &session->links[i];
        const struct part *part = link->parts.first;
        if (link == request->link || part == NULL || part->staged ||
            part->push->sequence > request->after_sequence)
            continue;
        const size_t said = strlen(error->text);
        (void)text_print(
            error->text + said, sizeof error->text - said,
            "; push %" PRIu64 " waits for ps %" PRIu32 " at %s, last heard from %s ago",
            part->push->sequence, link->ps, ps_address(session, link->ps),
            text_time_us(session->now_us - link->answered_us).text);
        trouble_tell(session, link, SESSION_PUSH_STREAM, error);
        const size_t told = strlen(error->text);
        (void)text_print(
            error->text + told, sizeof error->text - told,
            "; if ps %" PRIu32 " does not come back, start the whole run again, ps and workers",
            link->ps);
        return;
    }
}

static void
fail_request(struct session *session, struct request *request, const wire_pull_answer *answer)
{
    assert(answer->status != 0);
    const bool lost = answer->reason == (Sumac__V1__Reason)SUMAC_REASON_MEMBER_LOST;
    const bool ended = request->pull->wanted.collective == NULL && !lost &&
                       (answer->status == SUMAC_ABORTED ||
                        answer->reason == (Sumac__V1__Reason)SUMAC_REASON_VIEW_ENDED);
    if (ended && request->tries + 1 < SESSION_PULL_TRIES_MAX) {
        ask_again(session, request);
        return;
    }
    struct sumac_error error;
    (void)fail(
        &error, (enum sumac_status)answer->status, (enum sumac_reason)answer->reason,
        "ps %" PRIu32 ": %s%s", request->link->ps, answer->message,
        ended ? "; asked again as often as may be" : "");
    if (error.reason == SUMAC_REASON_TIMED_OUT) {
        if (request->pull->wanted.after_own_pushes)
            trouble_tell(session, request->link, SESSION_PUSH_STREAM, &error);
        name_silent_ps(session, request, &error);
    }
    request_unsend(request);
    link_touch(session, request->link); /* there may be room for the next one */
    pull_over(session, request->pull, &error);
}

static void finish_request(struct session *session, struct request *request)
{
    assert(request->piece == request->piece_count);
    struct pull *pull = request->pull;
    assert(pull->open_requests > 0);
    link_touch(session, request->link); /* there may be room for the next one */
    LIST_REMOVE(&pull->requests, request, of_pull);
    request_remove(session, request);
    if (--pull->open_requests == 0)
        pull_over(session, pull, NULL);
}

static struct request *find_request(struct request *first, uint64_t number)
{
    struct request *request = first;

    while (request != NULL && (request->number != number || request->cancelled))
        request = request->in_link.next;
    return request;
}

/* End a pull whose answer is not what was asked for, or does not fit into memory. */
static void
fail_received(struct session *session, struct request *request, enum sumac_reason reason)
{
    const uint32_t ps = request->link->ps;
    struct sumac_error error;

    if (reason == SUMAC_REASON_OUT_OF_MEMORY)
        (void)fail(
            &error, SUMAC_RESOURCE_EXHAUSTED, reason,
            "no memory for the result of a round of a collective on ps %" PRIu32, ps);
    else
        (void)fail(
            &error, SUMAC_INTERNAL, reason,
            request->pull->wanted.collective != NULL
                ? "ps %" PRIu32
                  " answered for a round of a collective with other bytes than it says"
                : "ps %" PRIu32 " answered a pull with other pieces than were asked for",
            ps);
    pull_over(session, request->pull, &error);
}

/* The next of what the ps says of it. */
static void
take_answer(struct session *session, struct request *request, const struct session_event *event)
{
    const wire_pull_answer *answer = event->pull_answer;

    assert(request->pull != NULL);
    if (answer->step > session->state.newest_step)
        session->state.newest_step = answer->step;
    if (answer->status != 0) {
        fail_request(session, request, answer);
        return;
    }
    if (request->pull->asks) { /* that is over by now */
        pull_over(session, request->pull, NULL);
        return;
    }
    const enum sumac_reason reason = request->pull->wanted.collective != NULL
                                         ? result_receive(session, request, event)
                                         : receive(request, event);
    if (reason == SUMAC_REASON_UNSPECIFIED && answer->last)
        finish_request(session, request);
    else if (reason != SUMAC_REASON_UNSPECIFIED)
        fail_received(session, request, reason);
}

void pull_answer(struct session *session, struct link *link, const struct session_event *event)
{
    const wire_pull_answer *answer = event->pull_answer;

    if (answer->greeting != NULL &&
        !stream_greeted(session, link, SESSION_PULL_STREAM, answer->greeting))
        return;
    struct request *request = find_request(link->requests.first, answer->request);
    if (request == NULL || !request->sent)
        return;
    link->streams[SESSION_PULL_STREAM].troubled = false;
    take_answer(session, request, event);
}

void pulled_beside(struct session *session, struct link *link, const wire_pull_answer *answer)
{
    const struct span payload = {.data = answer->payload.data, .bytes = answer->payload.len};
    const struct session_event event = {
        .kind = SESSION_EVENT_PULL_ANSWER,
        .ps = link->ps,
        .stream_kind = SESSION_PUSH_STREAM,
        .pull_answer = answer,
        .payload = &payload,
        .payload_spans = payload.bytes > 0};
    struct request *request = find_request(link->beside.first, answer->request);

    if (request == NULL || !request->sent)
        return;
    if (answer->reason == (Sumac__V1__Reason)SUMAC_REASON_MESSAGE_TOO_LARGE) {
        request_leave_beside(link, request);
        link_touch(session, link);
        return;
    }
    take_answer(session, request, &event);
}
