/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c -- rounds of rendezvous: which of its contributions' rounds the caller still wants
 * something of, what the ps are told of that, and results as they come in.
 */
#include "state.h"

#include <assert.h>
#include <string.h>

#include "sumac/tensor.h"

#define TELL_US 50000u /* what is over is said with the next message, or after so long */

/* ---- contributions */

bool meet_begin(struct session *session, uint64_t token)
{
    struct meet *meet = pool_take(&session->meets);

    assert(token != 0);
    if (meet == NULL)
        return false;
    meet->token = token;
    LIST_APPEND(&session->live_meets, meet, in_session);
    return true;
}

static struct meet *find(const struct session *session, uint64_t token)
{
    struct meet *meet = session->live_meets.last; /* most often it is a late one */

    while (meet != NULL && meet->token != token)
        meet = meet->in_session.prev;
    return meet;
}

void meet_admit(struct session *session, const struct push *push)
{
    struct meet *meet = find(session, push->token);

    assert(push->sequence > 0);
    if (meet != NULL) /* else it was given up meanwhile */
        meet->sequence = push->sequence;
}

/* Return the last push before all whose rounds the caller waits for. */
static uint64_t meets_over(const struct session *session)
{
    const struct meet *first = session->live_meets.first;

    assert(first == NULL || first->sequence <= session->last_sequence);
    return first == NULL || first->sequence == 0 ? session->last_sequence : first->sequence - 1;
}

bool meets_are_news(const struct session *session, const struct link *link)
{
    return link->last_meeting > link->told_met &&
           (meets_over(session) > link->told_met || session->meets_ended > link->told_ended);
}

bool meets_tell(struct session *session, struct link *link, wire_commit *commit)
{
    uint64_t through = session->last_sequence;
    size_t count = 0;

    if (link->last_meeting == 0)
        return true;
    uint64_t *waiting = step_take(session, WIRE_COMMIT_WAITING_MAX * sizeof *waiting);
    if (waiting == NULL)
        return false;
    for (const struct meet *meet = session->live_meets.first; meet != NULL && meet->sequence != 0;
         meet = meet->in_session.next) {
        if (count == WIRE_COMMIT_WAITING_MAX) { /* the rest is for a later commit */
            through = meet->sequence - 1;
            break;
        }
        assert(count == 0 || waiting[count - 1] < meet->sequence);
        waiting[count++] = meet->sequence;
    }
    for (; count > 0 && waiting[count - 1] == through; count--)
        through--;
    commit->met_through = through;
    commit->waiting = waiting;
    commit->n_waiting = count;
    link->told_met = meets_over(session);
    link->told_ended = session->meets_ended;
    return true;
}

void meet_end(struct session *session, uint64_t token)
{
    struct meet *meet = find(session, token);

    assert(token != 0);
    if (meet == NULL)
        return;
    LIST_REMOVE(&session->live_meets, meet, in_session);
    pool_give(&session->meets, meet);
    session->meets_ended++;
    for (uint32_t i = 0; i < session->link_count; i++) {
        struct link *link = &session->links[i];
        if (!meets_are_news(session, link) || link->met_due_us != NEVER)
            continue;
        link->met_due_us = session->now_us + TELL_US;
        effect_wake(session, link->met_due_us);
    }
}

void meets_check(struct session *session)
{
    assert(session->link_count <= SESSION_PS_MAX);
    for (uint32_t i = 0; i < session->link_count; i++) {
        struct link *link = &session->links[i];
        if (session->now_us >= link->met_due_us)
            link_touch(session, link);
        else if (link->met_due_us != NEVER)
            effect_wake(session, link->met_due_us);
    }
}

/* ---- results */

/* Keep the header of an answer until the pull is over. Returns false without memory. */
static bool keep_header(struct session *session, struct pull *pull, const wire_met *header)
{
    const size_t shape_bytes = header->n_shape * sizeof *header->shape;
    const size_t extents_bytes = header->n_extents * sizeof *header->extents;
    const size_t bytes = sizeof *header + shape_bytes + extents_bytes;
    wire_met *kept = sized_pool_take(&session->blocks, bytes);

    assert(pull->met == NULL);
    if (kept == NULL)
        return false;
    *kept = *header;
    kept->shape = (uint64_t *)(void *)(kept + 1);
    kept->extents = kept->shape + header->n_shape;
    if (shape_bytes > 0)
        memcpy(kept->shape, header->shape, shape_bytes);
    if (extents_bytes > 0)
        memcpy(kept->extents, header->extents, extents_bytes);
    pull->met = kept;
    pull->met_bytes = bytes;
    return true;
}

/* Of the whole result; UINT64_MAX: it says none that there can be. */
static uint64_t bytes_of(const struct pull *pull)
{
    const wire_met *header = pull->met;
    struct sumac_shape shape = {.rank = (uint32_t)header->n_shape};
    uint64_t elements, bytes;

    if (header->n_shape > SUMAC_RANK_MAX || (pull->has_rows && header->n_shape == 0))
        return UINT64_MAX;
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.extent[i] = header->shape[i];
    if (sumac_shape_size(&shape, (enum sumac_dtype)header->data_type, &elements, &bytes) !=
        SUMAC_OK)
        return UINT64_MAX;
    const uint64_t rows = pull->has_rows ? shape.extent[0] : 0;
    if (rows > UINT64_MAX / 2 / sizeof(int64_t)) /* bytes: INT64_MAX at most */
        return UINT64_MAX;
    return bytes + rows * sizeof(int64_t);
}

/* Take memory for a result whose size was not known before. */
static enum sumac_reason
make_room(struct session *session, struct pull *pull, struct session_piece *piece)
{
    const uint64_t bytes = bytes_of(pull);

    assert(piece->data == NULL);
    if (bytes == UINT64_MAX || bytes > SIZE_MAX / 2)
        return SUMAC_REASON_MALFORMED;
    pull->joined = (struct span){
        .data = sized_pool_take(&session->blocks, (size_t)bytes + 1), .bytes = (size_t)bytes};
    piece->data = (uint8_t *)(uintptr_t)pull->joined.data;
    piece->bytes = bytes;
    return piece->data == NULL ? SUMAC_REASON_OUT_OF_MEMORY : SUMAC_REASON_UNSPECIFIED;
}

/* Have the header of the result, and memory for its bytes. */
static enum sumac_reason prepare(
    struct session *session, struct pull *pull, struct session_piece *piece, const wire_met *header)
{
    if (header != NULL && pull->met == NULL && !keep_header(session, pull, header))
        return SUMAC_REASON_OUT_OF_MEMORY;
    if (pull->met == NULL)
        return SUMAC_REASON_MALFORMED;
    return piece->data == NULL ? make_room(session, pull, piece) : SUMAC_REASON_UNSPECIFIED;
}

enum sumac_reason
met_receive(struct session *session, struct request *request, const struct session_event *event)
{
    const wire_pull_answer *answer = event->pull_answer;
    struct pull *pull = request->pull;
    struct session_piece *piece = &pull->pieces[request->first_piece];

    assert(pull->meeting != NULL && request->piece_count == 1);
    const enum sumac_reason reason = prepare(session, pull, piece, answer->met);
    if (reason != SUMAC_REASON_UNSPECIFIED)
        return reason;
    for (size_t i = 0; i < event->payload_spans; i++) {
        const struct span *span = &event->payload[i];
        if (span->bytes > piece->bytes - request->offset)
            return SUMAC_REASON_MALFORMED;
        memcpy(piece->data + request->offset, span->data, span->bytes);
        request->offset += span->bytes;
    }
    if (answer->last)
        request->piece = 1;
    return answer->last && request->offset < piece->bytes ? SUMAC_REASON_MALFORMED
                                                          : SUMAC_REASON_UNSPECIFIED;
}

void met_release(struct session *session, struct pull *pull)
{
    assert(pull->meeting != NULL || pull->met == NULL);
    if (pull->joined.data != NULL)
        sized_pool_give(
            &session->blocks, (void *)(uintptr_t)pull->joined.data, pull->joined.bytes + 1);
    if (pull->met != NULL)
        sized_pool_give(&session->blocks, pull->met, pull->met_bytes);
}
