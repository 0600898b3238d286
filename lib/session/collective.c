/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- rounds of collectives: the contributions whose result the caller still wants, the
 * commits that say so to the ps, and results that arrive.
 */
#include "deeds.h"

#include <string.h>

#include "sumac/tensor.h"

#define TELL_US 50000u /* what is over is said with the next message, or after so long */

/* ---- contributions */

bool collective_begin(struct session *session, uint64_t token)
{
    struct session_collective *collective = pool_take(&session->collectives);

    assert(token != 0);
    if (collective == NULL)
        return false;
    collective->token = token;
    LIST_APPEND(&session->live_collectives, collective, in_session);
    return true;
}

static struct session_collective *find(const struct session *session, uint64_t token)
{
    struct session_collective *collective =
        session->live_collectives.last; /* most often it is a late one */

    while (collective != NULL && collective->token != token)
        collective = collective->in_session.prev;
    return collective;
}

void collective_admit(struct session *session, const struct push *push)
{
    struct session_collective *collective = find(session, push->wanted.token);

    assert(push->sequence > 0);
    if (collective != NULL) /* else it was given up meanwhile */
        collective->sequence = push->sequence;
}

/* Return the last push before all whose rounds the caller waits for. */
static uint64_t collectives_over(const struct session *session)
{
    const struct session_collective *first = session->live_collectives.first;

    assert(first == NULL || first->sequence <= session->state.last_sequence);
    return first == NULL || first->sequence == 0 ? session->state.last_sequence
                                                 : first->sequence - 1;
}

bool collectives_are_news(const struct session *session, const struct link *link)
{
    return link->last_collective > link->told_collectives &&
           (collectives_over(session) > link->told_collectives ||
            session->collectives_ended > link->told_ended);
}

bool collectives_tell(struct session *session, struct link *link, wire_commit *commit)
{
    uint64_t through = session->state.last_sequence;
    size_t count = 0;

    assert(link->last_collective > 0);
    uint64_t *waiting = step_take(session, WIRE_COMMIT_WAITING_MAX * sizeof *waiting);
    if (waiting == NULL)
        return false;
    for (const struct session_collective *collective = session->live_collectives.first;
         collective != NULL && collective->sequence != 0;
         collective = collective->in_session.next) {
        if (count == WIRE_COMMIT_WAITING_MAX) { /* the rest is for a later commit */
            through = collective->sequence - 1;
            break;
        }
        assert(count == 0 || waiting[count - 1] < collective->sequence);
        waiting[count++] = collective->sequence;
    }
    for (; count > 0 && waiting[count - 1] == through; count--)
        through--;
    commit->collectives_through = through;
    commit->waiting = waiting;
    commit->n_waiting = count;
    link->told_collectives = collectives_over(session);
    link->told_ended = session->collectives_ended;
    return true;
}

void collective_end(struct session *session, uint64_t token)
{
    struct session_collective *collective = find(session, token);

    assert(token != 0);
    if (collective == NULL)
        return;
    LIST_REMOVE(&session->live_collectives, collective, in_session);
    pool_give(&session->collectives, collective);
    session->collectives_ended++;
    for (uint32_t i = 0; i < session->link_count; i++) {
        struct link *link = &session->links[i];
        if (!collectives_are_news(session, link) || link->collective_due_us != NEVER)
            continue;
        link->collective_due_us = session->now_us + TELL_US;
        effect_wake(session, link->collective_due_us);
    }
}

void collectives_check(struct session *session)
{
    assert(session->link_count <= SESSION_PS_MAX);
    for (uint32_t i = 0; i < session->link_count; i++) {
        struct link *link = &session->links[i];
        if (session->now_us >= link->collective_due_us)
            link_touch(session, link);
        else if (link->collective_due_us != NEVER)
            effect_wake(session, link->collective_due_us);
    }
}

/* ---- results */

/* Keep the header of an answer until the pull is over. Returns false without memory. */
static bool
keep_header(struct session *session, struct pull *pull, const wire_collective_result *header)
{
    const size_t shape_bytes = header->n_shape * sizeof *header->shape;
    const size_t extents_bytes = header->n_extents * sizeof *header->extents;
    const size_t bytes = sizeof *header + shape_bytes + extents_bytes;
    wire_collective_result *kept = sized_pool_take(&session->blocks, bytes);

    assert(pull->result == NULL);
    if (kept == NULL)
        return false;
    *kept = *header;
    kept->shape = (uint64_t *)(void *)(kept + 1);
    kept->extents = kept->shape + header->n_shape;
    if (shape_bytes > 0)
        memcpy(kept->shape, header->shape, shape_bytes);
    if (extents_bytes > 0)
        memcpy(kept->extents, header->extents, extents_bytes);
    pull->result = kept;
    pull->result_bytes = bytes;
    return true;
}

/* Of the whole result; UINT64_MAX: it says none that there can be. */
static uint64_t bytes_of(const struct pull *pull)
{
    const wire_collective_result *header = pull->result;
    struct sumac_shape shape = {.rank = (uint32_t)header->n_shape};
    uint64_t elements, bytes;

    if (header->n_shape > SUMAC_RANK_MAX || (pull->wanted.has_rows && header->n_shape == 0))
        return UINT64_MAX;
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.extent[i] = header->shape[i];
    if (sumac_shape_size(&shape, (enum sumac_dtype)header->data_type, &elements, &bytes) !=
        SUMAC_OK)
        return UINT64_MAX;
    const uint64_t rows = pull->wanted.has_rows ? shape.extent[0] : 0;
    if (rows > UINT64_MAX / 2 / sizeof(int64_t)) /* bytes: INT64_MAX at most */
        return UINT64_MAX;
    return bytes + rows * sizeof(int64_t);
}

/* Have the header of the result, and memory for its bytes, whose number may not have been known
 * before. */
static enum sumac_reason prepare(
    struct session *session, struct pull *pull, struct session_piece *piece,
    const wire_collective_result *header)
{
    if (header != NULL && pull->result == NULL && !keep_header(session, pull, header))
        return SUMAC_REASON_OUT_OF_MEMORY;
    if (pull->result == NULL)
        return SUMAC_REASON_MALFORMED;
    if (piece->data != NULL)
        return SUMAC_REASON_UNSPECIFIED;
    const uint64_t bytes = bytes_of(pull);
    if (bytes == UINT64_MAX || bytes > SIZE_MAX / 2)
        return SUMAC_REASON_MALFORMED;
    pull->joined = (struct span){
        .data = sized_pool_take(&session->blocks, (size_t)bytes + 1), .bytes = (size_t)bytes};
    piece->data = (uint8_t *)(uintptr_t)pull->joined.data;
    piece->bytes = bytes;
    return piece->data == NULL ? SUMAC_REASON_OUT_OF_MEMORY : SUMAC_REASON_UNSPECIFIED;
}

enum sumac_reason
result_receive(struct session *session, struct request *request, const struct session_event *event)
{
    const wire_pull_answer *answer = event->pull_answer;
    struct pull *pull = request->pull;
    struct session_piece *piece = &pull->pieces[request->first_piece];

    assert(pull->wanted.collective != NULL && request->piece_count == 1);
    const enum sumac_reason reason = prepare(session, pull, piece, answer->collective);
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

void result_release(struct session *session, struct pull *pull)
{
    assert(pull->wanted.collective != NULL || pull->result == NULL);
    if (pull->joined.data != NULL)
        sized_pool_give(
            &session->blocks, (void *)(uintptr_t)pull->joined.data, pull->joined.bytes + 1);
    if (pull->result != NULL)
        sized_pool_give(&session->blocks, pull->result, pull->result_bytes);
}
