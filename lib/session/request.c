/* SPDX-License-Identifier: Apache-2.0 */
/* request.c -- what one pull asks of one ps: sent, sent again on another stream, cancelled.
 *
 * What a round of a collective came to is asked for beside the contribution, on the push stream,
 * where it is short: link->beside. That of a stream that broke is asked for on the pull stream.
 */
#include "deeds.h"

static void list(struct link *link, struct request *request)
{
    assert(!request->beside && !request->sent);
    LIST_APPEND(&link->requests, request, in_link);
    if (link->request_cursor == NULL)
        link->request_cursor = request;
}

static void unlist_beside(struct link *link, struct request *request)
{
    assert(request->beside);
    assert(link->beside_count > 0);
    LIST_REMOVE(&link->beside, request, in_link);
    link->beside_count--;
    request->beside = request->sent = false;
}

void request_leave_beside(struct link *link, struct request *request)
{
    unlist_beside(link, request);
    list(link, request);
}

uint64_t request_last_sequence(const struct session *session, const struct link *link)
{
    return holds(session, RULE_after_sequence_per_ps) ? link->last_sequence
                                                      : session->state.last_sequence;
}

void request_add(
    struct session *session, struct pull *pull, struct link *link, uint32_t first_piece,
    uint32_t piece_count)
{
    assert(piece_count > 0 || pull->wanted.at_step != 0 || pull->asks);
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
    if (pull->wanted.after_own_pushes)
        request->after_sequence = request_last_sequence(session, link);
    LIST_PREPEND(&pull->requests, request, of_pull);
    pull->open_requests++;
    if (pull->wanted.beside && link->streams[SESSION_PUSH_STREAM].greeted &&
        link->beside_count < WIRE_PUSH_PULLS_MAX) {
        request->beside = true;
        LIST_APPEND(&link->beside, request, in_link);
        link->beside_count++;
        link->beside_due = true;
    } else {
        list(link, request);
    }
    link_touch(session, link);
}

void request_unsend(struct request *request)
{
    const uint32_t counted = request->sent && !request->beside;

    assert(request->link->sent_requests >= counted);
    request->link->sent_requests -= counted;
    request->sent = false;
}

void request_remove(struct session *session, struct request *request)
{
    struct link *link = request->link;

    if (request->beside) {
        unlist_beside(link, request);
        pool_give(&session->requests, request);
        return;
    }
    request_unsend(request);
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
            request_remove(session, request);
        }
        link_touch(session, link); /* the next one may go out */
    }
}

void requests_leave_beside(struct session *session, struct link *link)
{
    while (link->beside.first != NULL) {
        struct request *request = link->beside.first;
        if (request->cancelled)
            request_remove(session, request);
        else
            request_leave_beside(link, request);
    }
    link->beside_due = false;
    link_touch(session, link);
}

/* The stream is gone, and all that was asked on it: ask again from the start, and forget what was
 * cancelled. */
void requests_rewind(struct session *session, struct link *link)
{
    assert(link->streams[SESSION_PULL_STREAM].state == STREAM_SHUT);
    LIST_FOREACH_SAFE(struct request, request, &link->requests, in_link) {
        request_unsend(request);
        request->piece = 0;
        request->offset = 0;
        if (request->cancelled)
            request_remove(session, request);
    }
    link->cancels_due = 0;
    link->request_cursor = link->requests.first;
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
        pieces[i].kind = piece->rows != NULL ? SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES
                         : piece->kind == WIRE_PIECE_SLOT_VALUE
                             ? SUMAC__V1__PIECE__KIND__KIND_SLOT_VALUE
                             : SUMAC__V1__PIECE__KIND__KIND_VALUES;
        pieces[i].slot = piece->slot; /* 0 of other kinds */
        pieces[i].offset_bytes = piece->offset_bytes;
        pieces[i].bytes = piece->rows == NULL
                              ? piece->bytes
                              : piece->bytes / piece->row_bytes * sizeof *piece->rows;
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
    wire->bounded = pull->wanted.bounded;
    wire->lag_max = pull->wanted.lag_max;
    wire->clock = pull->wanted.bounded ? pull->clock : 0;
    wire->at_step = pull->wanted.at_step;
    wire->timeout_ms =
        end_us > session->now_us + 1000 ? (uint32_t)((end_us - session->now_us) / 1000) : 1;
    request->sent = true;
    request->link->sent_requests += !request->beside;
    wire->collective = (wire_collective_round *)(uintptr_t)pull->wanted.collective;
    if (pull->wanted.collective != NULL)
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
            .token = request->pull->wanted.token};
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
        request_remove(session, request);
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
        request_remove(session, request);
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
    LIST_FOREACH_SAFE(struct request, at, &link->beside, in_link) {
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
    if (wire == NULL)
        return;
    *wire = (wire_pull_request)WIRE_PULL_REQUEST_INIT;
    const struct request *filled = NULL; /* of a cancellation: none */
    if (!fill_message(session, link, wire, &filled))
        return;
    if (!stream->hello_sent)
        wire->hello = stream_hello(session, link, SESSION_PULL_STREAM);
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
