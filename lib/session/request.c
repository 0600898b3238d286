/* SPDX-License-Identifier: Apache-2.0 */
/* request.c -- what one pull asks of one ps: sent, received into the caller's memory, asked again,
 * cancelled.
 *
 * What a round of a collective came to is asked for beside the contribution, on the push stream,
 * where it is short: link->beside. That of a stream that broke is asked for on the pull stream.
 */
#include "state.h"
#include "transfers.h"
#include "links.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"

static void list(struct link *link, struct request *request)
{
    assert(!request->beside && !request->sent);
    LIST_APPEND(&link->requests, request, in_link);
    if (link->request_cursor == NULL)
        link->request_cursor = request;
}

static void list_beside(struct link *link, struct request *request)
{
    assert(!request->sent);
    request->beside = true;
    LIST_APPEND(&link->beside, request, in_link);
    link->beside_count++;
    link->beside_due = true;
}

static void unlist_beside(struct link *link, struct request *request)
{
    assert(request->beside);
    assert(link->beside_count > 0);
    LIST_REMOVE(&link->beside, request, in_link);
    link->beside_count--;
    request->beside = request->sent = false;
}

static void move_to_pull_stream(struct link *link, struct request *request)
{
    unlist_beside(link, request);
    list(link, request);
}

void request_add(
    struct session *session, struct pull *pull, struct link *link, uint32_t first_piece,
    uint32_t piece_count)
{
    assert(piece_count > 0 || pull->at_step != 0 || pull->asks);
    struct request *request = pool_take(&session->requests);
    if (request == NULL) {
        session->exhausted = true;
        return;
    }
    request->pull = pull;
    request->link = link;
    request->number = ++session->last_request;
    request->first_piece = first_piece;
    request->piece_count = piece_count;
    if (pull->after_own_pushes)
        request->after_sequence = holds(session, RULE_after_sequence_per_ps)
                                      ? link->last_sequence
                                      : session->last_sequence;
    LIST_PREPEND(&pull->requests, request, of_pull);
    pull->open_requests++;
    if (pull->beside && link->streams[SESSION_PUSH_STREAM].greeted &&
        link->beside_count < WIRE_PUSH_PULLS_MAX)
        list_beside(link, request);
    else
        list(link, request);
    link_touch(session, link);
}

/* It is on its way no more. */
static void unsend(struct request *request)
{
    const uint32_t counted = request->sent && !request->beside;

    assert(request->link->sent_requests >= counted);
    request->link->sent_requests -= counted;
    request->sent = false;
}

static void unlink_request(struct session *session, struct request *request)
{
    struct link *link = request->link;

    if (request->beside) {
        unlist_beside(link, request);
        pool_give(&session->requests, request);
        return;
    }
    unsend(request);
    assert(!request->sent);
    if (link->request_cursor == request)
        link->request_cursor = request->in_link.next;
    LIST_REMOVE(&link->requests, request, in_link);
    pool_give(&session->requests, request);
}

/* The pull is over. What a ps is still working on is cancelled there. */
void requests_drop(struct session *session, struct pull *pull)
{
    for (struct request *request; (request = pull->requests.first) != NULL;) {
        struct link *link = request->link;
        LIST_REMOVE(&pull->requests, request, of_pull);
        if (request->sent) {
            request->pull = NULL;
            request->cancelled = true;
            link->beside_due |= request->beside;
            link->cancels_due += !request->beside;
        } else {
            unlink_request(session, request);
        }
        link_touch(session, link); /* the next one may go out */
    }
}

void requests_leave_beside(struct session *session, struct link *link)
{
    while (link->beside.first != NULL) {
        struct request *request = link->beside.first;
        if (request->cancelled)
            unlink_request(session, request);
        else
            move_to_pull_stream(link, request);
    }
    link->beside_due = false;
    link_touch(session, link);
}

/* The stream is gone, and all that was asked on it: ask again from the start, and forget what was
 * cancelled. */
void requests_rewind(struct session *session, struct link *link)
{
    assert(link->streams[SESSION_PULL_STREAM].state == STREAM_SHUT);
    for (struct request *request = link->requests.first, *next; request != NULL; request = next) {
        next = request->in_link.next;
        unsend(request);
        request->piece = 0;
        request->offset = 0;
        if (request->cancelled)
            unlink_request(session, request);
    }
    link->cancels_due = 0;
    link->request_cursor = link->requests.first;
}

void requests_fail(struct session *session, struct link *link, const struct sumac_error *given)
{
    struct sumac_error error;

    assert(given->status != SUMAC_OK);
    assert(link->streams[SESSION_PULL_STREAM].state == STREAM_SHUT);
    (void)fail(
        &error, given->status, given->reason, "ps %" PRIu32 " at %s ended the pull stream: %s",
        link->ps, ps_address(session, link->ps), given->text);
    for (struct request *request = link->requests.first, *next; request != NULL; request = next) {
        next = request->in_link.next; /* a pull has one request of each ps */
        if (request->sent && !request->cancelled)
            pull_over(session, request->pull, &error);
    }
}

static bool
fill_pieces(struct session *session, const struct request *request, wire_pull_request *wire)
{
    assert(request->pull != NULL);
    wire_piece *pieces = step_take(session, request->piece_count * sizeof *pieces);
    wire_piece **pointers = step_take(session, request->piece_count * sizeof *pointers);
    if (pieces == NULL || pointers == NULL)
        return false;
    for (uint32_t i = 0; i < request->piece_count; i++) {
        const struct session_piece *piece = &request->pull->pieces[request->first_piece + i];
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = piece->shard_id;
        pieces[i].layout_epoch = piece->layout_epoch;
        pieces[i].kind = SUMAC__V1__PIECE__KIND__KIND_VALUES;
        if (piece->kind == WIRE_PIECE_SLOT_VALUE) {
            pieces[i].kind = SUMAC__V1__PIECE__KIND__KIND_SLOT_VALUE;
            pieces[i].slot = piece->slot;
        }
        pieces[i].offset_bytes = piece->offset_bytes;
        pieces[i].bytes = piece->bytes;
        if (piece->rows != NULL) {
            pieces[i].kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
            pieces[i].bytes = piece->bytes / piece->row_bytes * sizeof *piece->rows;
        }
        pointers[i] = &pieces[i];
    }
    wire->n_pieces = request->piece_count;
    wire->pieces = pointers;
    return true;
}

static bool fill_request(struct session *session, struct request *request, wire_pull_request *wire)
{
    assert(!request->sent);
    assert(!request->cancelled);
    const struct pull *pull = request->pull;
    const uint64_t end_us = pull->deadline_us - 250000; /* without our own grace */
    wire->request = request->number;
    wire->after_sequence = request->after_sequence;
    wire->bounded = pull->bounded;
    wire->lag_max = pull->lag_max;
    wire->clock = pull->bounded ? pull->clock : 0;
    wire->at_step = pull->at_step;
    wire->timeout_ms =
        end_us > session->now_us + 1000 ? (uint32_t)((end_us - session->now_us) / 1000) : 1;
    request->sent = true;
    request->link->sent_requests += !request->beside;
    wire->collective = (wire_collective_round *)(uintptr_t)pull->collective;
    if (pull->collective != NULL)
        return true;
    return fill_pieces(session, request, wire);
}

/* The indices of the rows that a request names. NULL: it names none, or there is no memory. */
static const struct session_bytes *
list_indices(struct session *session, const struct request *request, uint32_t *count)
{
    struct session_bytes *runs = NULL;

    *count = 0;
    for (uint32_t i = 0; i < request->piece_count; i++) {
        const struct session_piece *piece = &request->pull->pieces[request->first_piece + i];
        if (piece->rows == NULL || piece->bytes == 0)
            continue;
        if (runs == NULL)
            runs = step_take(session, request->piece_count * sizeof *runs);
        if (runs == NULL)
            return NULL;
        runs[(*count)++] = (struct session_bytes){
            .bytes =
                {.data = (const uint8_t *)piece->rows,
                 .bytes = piece->bytes / piece->row_bytes * sizeof *piece->rows},
            .token = request->pull->token};
    }
    return runs;
}

/* The next message: a cancellation before a request. False: there is nothing to say. */
static bool fill_message(
    struct session *session, struct link *link, wire_pull_request *wire,
    const struct request **filled)
{
    if (link->cancels_due > 0) {
        struct request *request = link->requests.first;
        while (request != NULL && !request->cancelled)
            request = request->in_link.next;
        assert(request != NULL);
        link->cancels_due--;
        wire->request = request->number;
        wire->cancel = true;
        unlink_request(session, request);
        return true;
    }
    struct request *request = link->request_cursor;
    if (request == NULL || !request->pull->after_known)
        return false;
    if (link->pulls_max != 0 && link->sent_requests >= link->pulls_max)
        return false;
    link->request_cursor = request->in_link.next;
    *filled = request;
    return fill_request(session, request, wire);
}

static wire_pull_request *fill_beside(struct session *session, struct request *request)
{
    wire_pull_request *wire = step_take(session, sizeof *wire);

    if (wire == NULL)
        return NULL;
    *wire = (wire_pull_request)WIRE_PULL_REQUEST_INIT;
    if (request->cancelled) {
        wire->request = request->number;
        wire->cancel = true;
        unlink_request(session, request);
    } else {
        (void)fill_request(session, request, wire);
    }
    return wire;
}

void compose_beside(struct session *session, struct link *link, wire_push_request *request)
{
    if (!link->beside_due)
        return;
    request->pulls = step_take(session, link->beside_count * sizeof *request->pulls);
    if (request->pulls == NULL)
        return;
    for (struct request *at = link->beside.first, *next; at != NULL; at = next) {
        next = at->in_link.next;
        if (at->sent && !at->cancelled)
            continue;
        wire_pull_request *wire = fill_beside(session, at);
        if (wire == NULL)
            return;
        request->pulls[request->n_pulls++] = wire;
    }
    assert(request->n_pulls <= WIRE_PUSH_PULLS_MAX);
    link->beside_due = false;
}

void compose_pulls(struct session *session, struct link *link)
{
    struct stream *stream = &link->streams[SESSION_PULL_STREAM];

    if (stream->state == STREAM_SHUT && link->requests.first != NULL)
        stream_open(session, link, SESSION_PULL_STREAM);
    if (stream->state != STREAM_OPEN || !stream->writable)
        return;
    if (link->cancels_due == 0 && link->request_cursor == NULL)
        return;
    wire_pull_request *wire = step_take(session, sizeof *wire);
    wire_hello *hello = step_take(session, sizeof *hello);
    if (wire == NULL || hello == NULL)
        return;
    *wire = (wire_pull_request)WIRE_PULL_REQUEST_INIT;
    const struct request *filled = NULL; /* of a cancellation: none */
    if (!fill_message(session, link, wire, &filled))
        return;
    if (!stream->hello_sent) {
        *hello = (wire_hello)WIRE_HELLO_INIT;
        stream_hello(session, link, SESSION_PULL_STREAM, hello);
        wire->hello = hello;
        stream->hello_sent = true;
    }
    struct session_effect *effect = effect_add(session, SESSION_EFFECT_SEND_PULL);
    effect->ps = link->ps;
    effect->stream_kind = SESSION_PULL_STREAM;
    effect->generation = stream->generation;
    effect->pull_request = wire;
    if (filled != NULL)
        effect->payload = list_indices(session, filled, &effect->payload_count);
    stream->writable = false;
    session->sent_us = session->now_us;
}

/* A reader over the spans that a payload came in. */
struct reader {
    const struct span *spans;
    size_t span_count;
    size_t offset; /* in spans[0] */
};

static bool read_bytes(struct reader *reader, uint8_t *to, uint64_t bytes)
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
static bool receive_run(struct request *request, const wire_piece *run, struct reader *reader)
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
    struct reader reader = {.spans = event->payload, .span_count = event->payload_spans};

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

/* Ask again on the same stream, under a new number: what still comes for the old one is nobody's.
 */
static void ask_again(struct session *session, struct request *request)
{
    assert(request->pull != NULL);
    struct link *link = request->link;
    assert(!request->beside);
    unsend(request);
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
    const bool ended = request->pull->collective == NULL && !lost &&
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
        if (request->pull->after_own_pushes)
            trouble_tell(session, request->link, SESSION_PUSH_STREAM, &error);
        name_silent_ps(session, request, &error);
    }
    unsend(request);
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
    unlink_request(session, request);
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
            request->pull->collective != NULL
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
    if (answer->step > session->newest_step)
        session->newest_step = answer->step;
    if (answer->status != 0) {
        fail_request(session, request, answer);
        return;
    }
    if (request->pull->asks) { /* that is over by now */
        pull_over(session, request->pull, NULL);
        return;
    }
    const enum sumac_reason reason = request->pull->collective != NULL
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
        move_to_pull_stream(link, request);
        link_touch(session, link);
        return;
    }
    take_answer(session, request, &event);
}
