/* SPDX-License-Identifier: Apache-2.0 */
/* compose.c -- what goes out on a push stream: the part being sent, chunk by chunk, with the commit
 * that is due.
 *
 * A message is made only when the stream takes one, so what has gathered since the last one goes
 * together: several small parts, or one chunk of a large one, then the commit. Parts do not
 * interleave.
 */
#include "deeds.h"

#define PARTS_PER_MESSAGE_MAX 256u
#define FUNCTIONS_PER_MESSAGE_MAX 1024u /* with as many, no other part begins */
#define SMALL_BYTES_MAX 16384u
#define SMALL_MESSAGES_MAX 4u /* under way at a time */

/* A message in the making, in the step's arena. */
struct draft {
    wire_part **parts; /* (PARTS_PER_MESSAGE_MAX) */
    uint32_t part_count;
    uint32_t piece_count;
    uint32_t row_count; /* by index */
    uint32_t function_count;
    struct session_bytes *payload;
    uint32_t payload_count, payload_capacity;
    uint64_t payload_bytes;
    uint64_t ended; /* the last part that ends in this message; 0: none does */
};

static bool reserve_payload(struct session *session, struct draft *draft, uint32_t more)
{
    if (draft->payload_count + more <= draft->payload_capacity)
        return true;
    uint32_t capacity = draft->payload_capacity == 0 ? 4 : draft->payload_capacity;
    while (capacity < draft->payload_count + more)
        capacity *= 2;
    struct session_bytes *payload = step_take(session, capacity * sizeof *payload);
    if (payload == NULL)
        return false;
    for (uint32_t i = 0; i < draft->payload_count; i++)
        payload[i] = draft->payload[i];
    draft->payload = payload;
    draft->payload_capacity = capacity;
    assert(draft->payload_count + more <= draft->payload_capacity);
    return true;
}

/* What still fits into a message. */
struct room {
    uint64_t bytes;
    uint32_t pieces, rows;
    bool empty; /* it has no payload yet: what is larger than a message should be goes all the same
                 */
};

static struct room room_of(const struct draft *draft, const struct link *link)
{
    const uint64_t used = draft->payload_bytes, most = link->chunk_bytes;

    assert(draft->piece_count <= WIRE_PUSH_PIECES_MAX);
    assert(draft->row_count <= WIRE_PUSH_ROWS_MAX);
    return (struct room){
        .bytes = used < most ? most - used : 0,
        .pieces = WIRE_PUSH_PIECES_MAX - draft->piece_count,
        .rows = WIRE_PUSH_ROWS_MAX - draft->row_count,
        .empty = used == 0};
}

/* As they are on the wire: indices and values. */
static uint32_t wire_pieces_of(const struct session_piece *piece)
{
    return piece->rows == NULL ? 1 : 2;
}

/* How many rows of a piece by rows go together, from `offset` of its values on. */
static uint64_t
rows_of(const struct session *session, const struct session_piece *piece, uint64_t offset)
{
    const uint64_t left = (piece->bytes - offset) / piece->row_bytes;
    const uint64_t most = rows_together(session, piece);

    return left < most ? left : most;
}

/* The next of a piece, from `offset` on, if it fits: all that is left or a multiple of 64 bytes, so
 * whole elements; of one by rows a pair, which is not cut. False: it does not. */
static bool take_next(
    const struct session *session, const struct session_piece *piece, uint64_t offset,
    struct room *room, uint64_t *bytes)
{
    const uint64_t rest = piece->bytes - offset;
    uint64_t taken = rest <= room->bytes ? rest : room->bytes / 64 * 64;

    assert(offset <= piece->bytes);
    if (room->pieces < wire_pieces_of(piece))
        return false;
    if (piece->rows != NULL) {
        const uint64_t rows = rows_of(session, piece, offset);
        taken = rows * (sizeof(int64_t) + piece->row_bytes);
        if (rows > room->rows || (taken > room->bytes && !room->empty))
            return false;
        *bytes = rows * piece->row_bytes;
        room->rows -= (uint32_t)rows;
    } else {
        *bytes = taken;
    }
    if (taken == 0 && rest > 0)
        return false;
    room->bytes -= taken < room->bytes ? taken : room->bytes;
    room->pieces -= wire_pieces_of(piece);
    room->empty = room->empty && taken == 0;
    return true;
}

/* How many pieces of the wire the next chunk of the part being sent has in this message. */
static uint32_t
count_pieces(const struct session *session, const struct draft *draft, const struct link *link)
{
    const struct part *part = link->sending;
    struct room room = room_of(draft, link);
    uint64_t offset = link->sending_offset, bytes;
    uint32_t count = 0;

    assert(part != NULL);
    const struct session_piece *pieces = &part->push->pieces[part->first_piece];
    for (uint32_t i = link->sending_piece; i < part->piece_count;) {
        if (!take_next(session, &pieces[i], offset, &room, &bytes))
            break;
        count += wire_pieces_of(&pieces[i]);
        offset += bytes;
        if (offset < pieces[i].bytes)
            break; /* of rows, too: a pair takes what a message has room for */
        i++;
        offset = 0;
    }
    return count;
}

/* A push with one participant may carry its own commit when nothing before it that is not committed
 * concerns another ps, and no synchronous one before it is held. */
static bool may_be_eager(struct session *session, const struct push *push)
{
    assert(push->part_count > 0);
    if (push->part_count > 1 || push->wanted.synchronous)
        return false;
    if (push->synchronous_before != 0 && !is_over(session, push->synchronous_before))
        return false;
    return push->other_before <= session->state.commit_through ||
           !holds(session, RULE_eager_only_when_alone);
}

static void fill_header(struct session *session, struct part *part, wire_part *wire)
{
    const struct push *push = part->push;

    assert(push->sequence > 0);
    wire->first = true;
    wire->previous = part->previous;
    wire->eager = part->eager = may_be_eager(session, push);
    wire->bytes = part->bytes;
    wire->resend = part->resend;
    wire->room_bytes = part->large ? part->room_bytes : 0;
    wire->started_at_us = push->started_at_us;
    wire->synchronous = push->wanted.synchronous;
    wire->step = push->step;
    wire->collective = (wire_collective *)(uintptr_t)push->wanted.collective;
    wire->weight = push->wanted.weight;
    wire->scale = push->wanted.scale;
    wire->membership_epoch = session->state.membership_epoch;
    wire->allow_non_finite = push->wanted.allow_non_finite;
    wire->n_functions = push->wanted.function_count;
    wire->functions = (wire_function **)(uintptr_t)push->wanted.functions;
}

static void
add_payload(struct draft *draft, const struct link *link, const void *data, uint64_t bytes)
{
    draft->payload_bytes += bytes;
    if (bytes == 0)
        return;
    assert(draft->payload_count < draft->payload_capacity);
    draft->payload[draft->payload_count++] = (struct session_bytes){
        .bytes = {.data = data, .bytes = bytes}, .token = link->sending->push->wanted.token};
}

/* Some of the piece being sent, as one piece of the wire, or as two. Returns how many. */
static uint32_t
fill_piece(struct draft *draft, const struct link *link, wire_piece *wire, uint64_t bytes)
{
    const struct session_piece *piece =
        &link->sending->push->pieces[link->sending->first_piece + link->sending_piece];
    const uint64_t offset = link->sending_offset;

    *wire = (wire_piece)WIRE_PIECE_INIT;
    wire->shard_id = piece->shard_id;
    wire->layout_epoch = piece->layout_epoch;
    wire->function = piece->function;
    wire->based_on = piece->based_on;
    wire->kind = piece->kind == WIRE_PIECE_HYPERPARAMETERS
                     ? SUMAC__V1__PIECE__KIND__KIND_HYPERPARAMETERS
                     : SUMAC__V1__PIECE__KIND__KIND_VALUES;
    if (piece->rows != NULL) {
        const uint64_t first = offset / piece->row_bytes, rows = bytes / piece->row_bytes;
        wire[1] = wire[0];
        wire->kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
        wire->offset_bytes = first * sizeof *piece->rows;
        wire->bytes = rows * sizeof *piece->rows;
        add_payload(draft, link, piece->rows + first, wire->bytes);
        draft->row_count += (uint32_t)rows;
        wire++;
    }
    wire->offset_bytes = piece->offset_bytes + offset;
    wire->bytes = bytes;
    if (bytes > 0)
        add_payload(draft, link, piece->data + offset, bytes);
    return wire_pieces_of(piece);
}

/* So many pieces of the wire, of the part being sent, from sending_piece on. */
static void fill_pieces(
    const struct session *session, struct draft *draft, struct link *link, wire_piece *wire,
    uint32_t count)
{
    const struct part *part = link->sending;
    uint64_t bytes;

    for (uint32_t i = 0; i < count;) {
        const struct session_piece *piece =
            &part->push->pieces[part->first_piece + link->sending_piece];
        struct room room = room_of(draft, link);
        const bool fits = take_next(session, piece, link->sending_offset, &room, &bytes);
        assert(fits);
        (void)fits;
        i += fill_piece(draft, link, &wire[i], bytes);
        link->sending_offset += bytes;
        if (link->sending_offset == piece->bytes) {
            link->sending_piece++;
            link->sending_offset = 0;
        }
    }
    draft->piece_count += count;
    assert(draft->payload_count <= draft->payload_capacity);
    assert(link->sending_piece <= part->piece_count);
}

static wire_part *add_part(struct session *session, struct draft *draft, uint64_t sequence)
{
    assert(draft->part_count < PARTS_PER_MESSAGE_MAX);
    wire_part *wire = step_take(session, sizeof *wire);
    if (wire == NULL)
        return NULL;
    *wire = (wire_part)WIRE_PART_INIT;
    wire->sequence = sequence;
    draft->parts[draft->part_count++] = wire;
    return wire;
}

/* The header of a part that asks for room, or is cancelled: that is all of it. False: no memory. */
static bool add_ask(struct session *session, struct draft *draft, struct link *link)
{
    struct part *part = link->sending;
    wire_part *wire = add_part(session, draft, part->push->sequence);

    assert(part->cancelled != part->large);
    link->sending = NULL;
    link->sending_ask = false;
    if (wire == NULL)
        return false;
    fill_header(session, part, wire);
    wire->last = true;
    if (part->cancelled) {
        wire->cancelled = true;
        wire->bytes = wire->n_functions = 0;
        wire->functions = NULL;
        wire->collective = NULL;
    } else {
        room_asked(part);
    }
    draft->function_count += (uint32_t)wire->n_functions;
    return true;
}

/* A chunk of the part being sent. False: nothing of it fits any more. */
static bool add_chunk(struct session *session, struct draft *draft, struct link *link)
{
    struct part *part = link->sending;

    if (link->sending_ask)
        return add_ask(session, draft, link);
    const uint32_t count = count_pieces(session, draft, link);

    if (count == 0 && part->piece_count > 0)
        return false;
    assert(draft->piece_count + count <= WIRE_PUSH_PIECES_MAX);
    const bool first = link->sending_piece == 0 && link->sending_offset == 0;
    wire_piece *pieces = step_take(session, count * sizeof *pieces);
    wire_piece **pointers = step_take(session, count * sizeof *pointers);
    if (pieces == NULL || pointers == NULL || !reserve_payload(session, draft, count))
        return false;
    wire_part *wire = add_part(session, draft, part->push->sequence);
    if (wire == NULL)
        return false;
    if (first)
        fill_header(session, part, wire);
    draft->function_count += (uint32_t)wire->n_functions;
    fill_pieces(session, draft, link, pieces, count);
    for (uint32_t i = 0; i < count; i++)
        pointers[i] = &pieces[i];
    wire->n_pieces = count;
    wire->pieces = pointers;
    wire->last = link->sending_piece == part->piece_count;
    if (wire->last) {
        part->sent = part->large;
        link->sending = NULL;
        draft->ended = part->push->sequence;
    }
    return !wire->last || draft->payload_bytes < link->chunk_bytes;
}

/* Small parts gather while a few messages of them are under way: a message costs both ends more
 * than the parts in it. */
static bool gathers(const struct link *link)
{
    const struct part *next = link->cursor;

    return link->small_messages >= SMALL_MESSAGES_MAX && next != NULL &&
           next->bytes <= SMALL_BYTES_MAX;
}

static void count_small(struct link *link, const struct draft *draft)
{
    assert(draft->ended == 0 || draft->part_count > 0);
    if (draft->ended == 0 || draft->payload_bytes > SMALL_BYTES_MAX)
        return;
    if (link->gauge == 0)
        link->gauge = draft->ended;
    link->small_messages++;
}

/* May it go out beside those that are not done? A part that is alone is never held back. */
static bool has_room(const struct link *link, const struct part *part)
{
    if (part->large)
        return room_may_ask(part) && (part->counted || link->counted_parts < link->parts_max);
    if (part->counted || link->counted_parts == 0)
        return true;
    return link->counted_parts < link->parts_max &&
           link->counted_bytes + part->room_bytes <= link->grant_bytes;
}

static struct part *take_cancelled(struct link *link)
{
    struct part *part = link->parts.first;

    assert(link->cancelled_due > 0);
    while (!part->cancel_due)
        part = part->in_link.next;
    part->cancel_due = false;
    link->cancelled_due--;
    return part;
}

/* The part that goes out next: a cancelled one that the ps may have, or the first unsent one, if
 * the grant has room for it. */
static bool start_next(struct link *link)
{
    assert(link->sending == NULL);
    link->sending_piece = 0;
    link->sending_offset = 0;
    link->sending_ask = link->cancelled_due > 0;
    if (link->sending_ask) {
        link->sending = take_cancelled(link);
        return true;
    }
    if (link->wanted_count > 0) {
        link->sending = room_next_wanted(link);
        room_answered(link->sending);
        return true;
    }
    struct part *part = link->cursor;
    if (part == NULL || !has_room(link, part))
        return false;
    link->cursor = part->in_link.next;
    if (!part->counted) {
        link->counted_bytes += part->large ? 0 : part->room_bytes;
        link->counted_parts++;
    }
    part->counted = true;
    assert(!part->done);
    link->sending = part;
    link->sending_ask = part->large || part->cancelled;
    return true;
}

static void add_parts(struct session *session, struct draft *draft, struct link *link)
{
    if (link->cut_sequence != 0) {
        wire_part *wire = add_part(session, draft, link->cut_sequence);
        if (wire == NULL)
            return;
        wire->last = true;
        link->cut_sequence = 0;
    }
    if (link->sending == NULL && link->cancelled_due == 0 && gathers(link))
        return;
    while (draft->part_count < PARTS_PER_MESSAGE_MAX &&
           draft->function_count < FUNCTIONS_PER_MESSAGE_MAX &&
           (link->sending != NULL || start_next(link)))
        if (!add_chunk(session, draft, link))
            break;
}

/* With the rule acked_through broken, what is committed counts as heard. */
static uint64_t acked_to_say(const struct session *session)
{
    return holds(session, RULE_acked_through) ? session->state.acked_through
                                              : session->state.last_sequence;
}

/* The voided pushes that this ps has a part of and is not done with: it has to know of these. Of
 * the others it knows already, from us or by itself. */
static bool add_voided(struct session *session, const struct link *link, wire_commit *commit)
{
    commit->voided = step_take(session, session->refused_count * sizeof *commit->voided);
    if (commit->voided == NULL)
        return false;
    LIST_FOREACH(const struct part, part, &link->parts, in_link) {
        if (!part->push->refused)
            continue;
        assert(commit->n_voided < session->refused_count); /* there is room for so many */
        commit->voided[commit->n_voided++] = part->push->sequence;
    }
    return true;
}

static uint64_t clock_to_say(const struct session *session)
{
    uint64_t clock = session->state.clock;

    if (holds(session, RULE_clock_with_the_commit))
        return clock;
    for (uint64_t n = session->state.commit_through + 1; n <= session->state.last_sequence; n++)
        clock += session->window[n % WINDOW].steps;
    return clock;
}

static void add_commit(struct session *session, struct link *link, wire_push_request *request)
{
    assert(link->told_commit <= session->state.commit_through);
    wire_commit *commit = step_take(session, sizeof *commit);
    if (commit == NULL)
        return;
    *commit = (wire_commit)WIRE_COMMIT_INIT;
    if ((session->refused_count > 0 && !add_voided(session, link, commit)) ||
        (link->last_collective > 0 && !collectives_tell(session, link, commit)))
        return;
    commit->commit_through = session->state.commit_through;
    commit->acked_through = acked_to_say(session);
    commit->clock = clock_to_say(session);
    request->commit = commit;
    link->commit_due = false;
    link->told_commit = session->state.commit_through;
    link->told_acked = commit->acked_through;
    link->told_clock = session->state.clock;
    link->collective_due_us = NEVER;
}

/* Is there a part that the ps could apply if it knew of the commit? */
static bool waits_for_commit(const struct session *session, const struct link *link)
{
    return link->commit_due && link->parts.first != NULL &&
           link->parts.first->push->sequence <= session->state.commit_through;
}

static bool has_news(const struct session *session, const struct link *link)
{
    return link->told_commit < session->state.commit_through ||
           link->told_acked < acked_to_say(session) || collectives_are_news(session, link);
}

static void send(
    struct session *session, struct link *link, const wire_push_request *request,
    const struct draft *draft)
{
    assert(link->streams[SESSION_PUSH_STREAM].writable);
    struct session_effect *effect = effect_add(session, SESSION_EFFECT_SEND_PUSH);
    effect->ps = link->ps;
    effect->stream_kind = SESSION_PUSH_STREAM;
    effect->generation = link->streams[SESSION_PUSH_STREAM].generation;
    effect->push_request = request;
    effect->payload = draft->payload;
    effect->payload_count = draft->payload_count;
    link->streams[SESSION_PUSH_STREAM].writable = false;
    link->sent_us = session->sent_us = session->now_us;
    effect_wake(session, session->now_us + patience_us(session));
}

static void send_hello(struct session *session, struct link *link)
{
    wire_push_request *request = step_take(session, sizeof *request);

    if (request == NULL)
        return;
    *request = (wire_push_request)WIRE_PUSH_REQUEST_INIT;
    request->hello = stream_hello(session, link, SESSION_PUSH_STREAM);
    if (request->hello != NULL)
        send(session, link, request, &(struct draft){.payload = NULL});
}

static void send_message(struct session *session, struct link *link, struct draft *draft)
{
    assert(draft->part_count <= PARTS_PER_MESSAGE_MAX);
    const bool must_commit = waits_for_commit(session, link) ||
                             link->told_clock != session->state.clock ||
                             session->now_us >= link->collective_due_us;
    if (draft->part_count == 0 && !must_commit && !link->beside_due && link->withdraws_due == 0)
        return;
    wire_push_request *request = step_take(session, sizeof *request);
    wire_part **parts = step_take(session, (draft->part_count + 1) * sizeof *parts);
    if (request == NULL || parts == NULL)
        return;
    *request = (wire_push_request)WIRE_PUSH_REQUEST_INIT;
    for (uint32_t i = 0; i < draft->part_count; i++)
        parts[i] = draft->parts[i];
    request->n_parts = draft->part_count;
    request->parts = parts;
    if (link->withdraws_due > 0 && !room_compose_withdraws(session, link, request))
        return;
    if (must_commit || has_news(session, link))
        add_commit(session, link, request);
    compose_beside(session, link, request);
    count_small(link, draft);
    send(session, link, request, draft);
}

void compose_pushes(struct session *session, struct link *link)
{
    const struct stream *stream = &link->streams[SESSION_PUSH_STREAM];

    if (stream->state != STREAM_OPEN || !stream->writable)
        return;
    if (!stream->hello_sent) {
        send_hello(session, link);
        return;
    }
    if (!stream->greeted || session->phase == PHASE_SETTLING)
        return; /* to the hello of a closed session its ps answers how it ended */
    wire_part *parts[PARTS_PER_MESSAGE_MAX];
    struct draft draft = {.parts = parts};
    add_parts(session, &draft, link);
    send_message(session, link, &draft);
}
