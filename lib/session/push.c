/* SPDX-License-Identifier: Apache-2.0 */
/* push.c -- a push is taken in, split by ps, numbered, and over. */
#include "deeds.h"

#include <string.h>

#include "id_map.h"
#include "room.h"

#define SOURCE_ALIGNMENT_BYTES 64u

uint32_t pushes_in_flight(const struct session *session)
{
    assert(session->state.last_sequence >= session->state.acked_through);
    return (uint32_t)(session->state.last_sequence - session->state.acked_through) +
           session->waiting_count;
}

/* Count the pieces of each ps in its link's scratch, and the ps. False: a piece names a ps that
 * does not exist. */
static bool
count_by_ps(struct session *session, const struct session_push *wanted, uint32_t *participants)
{
    assert(wanted->piece_count == 0 || wanted->pieces != NULL);
    *participants = 0;
    for (uint32_t i = 0; i < session->link_count; i++)
        session->links[i].piece_scratch = 0;
    for (uint32_t i = 0; i < wanted->piece_count; i++) {
        if (wanted->pieces[i].ps >= session->link_count)
            return false;
        *participants += session->links[wanted->pieces[i].ps].piece_scratch++ == 0;
    }
    if (wanted->synchronous)
        *participants = session->link_count;
    return true;
}

static size_t block_bytes(const struct push *push)
{
    assert(push->part_count <= push->wanted.piece_count || push->wanted.synchronous);
    return push->wanted.piece_count * (sizeof *push->pieces + sizeof *push->versions +
                                       sizeof *push->places + sizeof *push->ordinals) +
           push->part_count * sizeof *push->parts;
}

static void give_block(struct session *session, struct push *push)
{
    assert(push->pieces != NULL);
    sized_pool_give(&session->blocks, push->pieces, block_bytes(push));
    push->pieces = NULL;
}

/* One block for all that a push has in numbers of its pieces and parts. */
static bool take_block(struct session *session, struct push *push)
{
    assert(push->pieces == NULL);
    const size_t count = push->wanted.piece_count;
    uint8_t *block = sized_pool_take(&session->blocks, block_bytes(push));
    if (block == NULL)
        return false;
    push->pieces = (struct session_piece *)(void *)block;
    block += count * sizeof *push->pieces;
    push->parts = (struct part *)(void *)block;
    block += push->part_count * sizeof *push->parts;
    push->versions = (uint64_t *)(void *)block;
    block += count * sizeof *push->versions;
    push->places = (uint32_t *)(void *)block;
    block += count * sizeof *push->places;
    push->ordinals = (uint32_t *)(void *)block;
    memset(push->versions, 0, count * sizeof *push->versions);
    return true;
}

/* Group the pieces by ps, in the caller's order within each. The scratch becomes each ps's next
 * place. */
static void split(struct session *session, struct push *push, const struct session_push *wanted)
{
    uint32_t place = 0;
    uint32_t participant = 0;

    for (uint32_t i = 0; i < session->link_count && participant < push->part_count; i++) {
        struct link *link = &session->links[i];
        const uint32_t count = link->piece_scratch;
        if (count == 0 && !push->wanted.synchronous)
            continue;
        push->parts[participant++] =
            (struct part){.push = push, .link = link, .first_piece = place, .piece_count = count};
        link->piece_scratch = place;
        place += count;
    }
    assert(participant == push->part_count);
    assert(place == push->wanted.piece_count);
    for (uint32_t i = 0; i < wanted->piece_count; i++) {
        const uint32_t to = session->links[wanted->pieces[i].ps].piece_scratch++;
        push->pieces[to] = wanted->pieces[i];
        push->places[to] = i;
    }
}

/* The step's memory as a source: what is given back goes with the step. */
static void *take_of_step(void *session, size_t bytes)
{
    uint8_t *data = step_take(session, bytes + SOURCE_ALIGNMENT_BYTES);

    return data == NULL ? NULL : data + (-(uintptr_t)data & (SOURCE_ALIGNMENT_BYTES - 1));
}

static void give_to_step(void *session, void *data, size_t bytes)
{
    (void)session;
    (void)data;
    (void)bytes;
}

/* Which of its part's shards each piece touches: a ps answers one version for each shard. A part of
 * one piece, as most are, needs no look-up. False: no memory. */
static bool number_shards(struct session *session, struct push *push, struct part *part)
{
    const struct memory memory = {.take = take_of_step, .give = give_to_step, .context = session};
    struct id_map ordinals;
    bool whole = true;

    if (part->piece_count == 1) {
        push->ordinals[part->first_piece] = part->shard_count++;
        return true;
    }
    id_map_init(&ordinals, &memory);
    for (uint32_t i = part->first_piece; whole && i < part->first_piece + part->piece_count; i++) {
        const uint32_t *known = id_map_get(&ordinals, push->pieces[i].shard_id);
        push->ordinals[i] = known != NULL ? *known : part->shard_count++;
        if (known == NULL)
            whole = id_map_put(&ordinals, push->pieces[i].shard_id, &push->ordinals[i]);
    }
    assert(part->shard_count <= part->piece_count);
    return whole;
}

/* Its bytes, and, of one by rows, what it takes beside them and its pairs of pieces. */
static void measure_piece(
    const struct session *session, const struct session_piece *piece, struct part *part,
    uint64_t *wire_pieces)
{
    part->bytes += piece->bytes;
    if (piece->rows == NULL)
        return;
    assert(piece->row_bytes > 0 && piece->bytes % piece->row_bytes == 0);
    const uint64_t rows = piece->bytes / piece->row_bytes, most = rows_together(session, piece);
    const uint64_t pairs = rows == 0 ? 1 : rows / most + (rows % most != 0);
    part->bytes += rows * sizeof(int64_t);
    part->room_bytes += wire_rows_cost(rows, piece->row_bytes) + wire_list_cost(piece->row_bytes);
    *wire_pieces += 2 * pairs - 1;
}

static bool measure_parts(struct session *session, struct push *push)
{
    assert(push->part_count <= push->wanted.piece_count || push->wanted.synchronous);
    for (uint32_t p = 0; p < push->part_count; p++) {
        struct part *part = &push->parts[p];
        if (!number_shards(session, push, part))
            return false;
        uint64_t wire_pieces = part->piece_count;
        for (uint32_t i = 0; i < part->piece_count; i++)
            measure_piece(session, &push->pieces[part->first_piece + i], part, &wire_pieces);
        part->room_bytes += wire_part_cost(part->bytes, wire_pieces, push->wanted.function_count);
    }
    return true;
}

/* Returns NULL without memory. */
static struct push *
take_push(struct session *session, const struct session_push *wanted, uint32_t participants)
{
    struct push *push = pool_take(&session->pushes);

    if (push == NULL)
        return NULL;
    push->wanted = *wanted;
    push->wanted.pieces = NULL; /* the block has copies */
    if (session->event->wall_us > session->started_at_us)
        session->started_at_us = session->event->wall_us;
    push->started_at_us = session->started_at_us;
    push->step = wanted->step_least;
    push->part_count = participants;
    if (!take_block(session, push)) {
        pool_give(&session->pushes, push);
        return NULL;
    }
    split(session, push, wanted);
    if (!measure_parts(session, push)) {
        give_block(session, push);
        pool_give(&session->pushes, push);
        return NULL;
    }
    return push;
}

void push_give(struct session *session, struct push *push)
{
    assert(
        push->done_count == push->part_count || session->phase == PHASE_OVER ||
        push->sequence == 0);
    if (push->error != NULL)
        pool_give(&session->errors, push->error);
    give_block(session, push);
    pool_give(&session->pushes, push);
}

void pushes_release(struct session *session)
{
    for (uint32_t i = 0; i < WINDOW; i++) {
        if (session->window[i].push != NULL)
            give_block(session, session->window[i].push);
    }
    LIST_FOREACH(struct push, push, &session->waiting, among_waiting)
        give_block(session, push);
}

void push_over(struct session *session, struct push *push, const struct sumac_error *error)
{
    struct session_effect *effect =
        effect_over(session, SESSION_EFFECT_PUSHED, push->wanted.token, error);

    uint64_t *versions = step_take(session, push->wanted.piece_count * sizeof *versions);
    if (versions != NULL) {
        memcpy(versions, push->versions, push->wanted.piece_count * sizeof *versions);
        effect->versions = versions;
        effect->version_count = push->wanted.piece_count;
    }
    push_give(session, push);
}

/* A step ends with the last push that has a sequence; if that one is committed, the step has ended
 * already. */
static void finish_step(struct session *session)
{
    assert(session->state.commit_through <= session->state.last_sequence);
    if (session->state.last_sequence > session->state.commit_through) {
        place_of(session, session->state.last_sequence)->steps++;
        return;
    }
    session->state.clock++;
    for (uint32_t i = 0; i < session->link_count; i++)
        link_touch(session, &session->links[i]);
}

static void append_part(struct session *session, struct part *part)
{
    struct link *link = part->link;

    assert(link->parts.last == NULL || link->parts.last->push->sequence < part->push->sequence);
    assert(part->in_link.next == NULL);
    if (part->push->wanted.collective != NULL)
        link->last_collective = part->push->sequence;
    part->large = part->room_bytes > link->grant_bytes;
    part->previous = link->last_sequence;
    link->last_sequence = part->push->sequence;
    LIST_APPEND(&link->parts, part, in_link);
    if (link->cursor == NULL)
        link->cursor = part;
    link_touch(session, link);
}

void part_remove(struct part *part)
{
    struct link *link = part->link;

    assert(!part->done);
    assert(!part->counted || part->large || link->counted_bytes >= part->room_bytes);
    assert(!part->counted || link->counted_parts > 0);
    if (part->counted) {
        link->counted_bytes -= part->large ? 0 : part->room_bytes;
        link->counted_parts--;
    }
    if (part->large)
        room_remove(part);
    link->cancelled_due -= part->cancel_due;
    if (link->cursor == part)
        link->cursor = part->in_link.next;
    LIST_REMOVE(&link->parts, part, in_link);
}

/* Give a push its sequence: from here on it will be sent, and waited for, everywhere. */
static void admit(struct session *session, struct push *push)
{
    assert(push->sequence == 0);
    assert(push->part_count > 0);
    const uint32_t only = push->part_count == 1 ? push->parts[0].link->ps : UINT32_MAX;
    const uint64_t before = session->state.last_sequence;
    push->sequence = ++session->state.last_sequence;
    if (only != session->run_ps)
        session->run_other_before = before;
    push->other_before = session->run_other_before;
    session->run_ps = only;
    if (push->wanted.collective != NULL)
        collective_admit(session, push);
    push->synchronous_before = session->last_synchronous;
    if (push->wanted.synchronous) {
        if (push->step <= session->state.last_step)
            push->step = session->state.last_step + 1;
        session->state.last_step = push->step;
        session->last_synchronous = push->sequence;
    }
    assert(place_of(session, push->sequence)->push == NULL);
    *place_of(session, push->sequence) =
        (struct window_place){.push = push, .steps = push->wanted.finishes_step ? 1 : 0};
    for (uint32_t i = 0; i < push->part_count; i++)
        append_part(session, &push->parts[i]);
}

/* The most that a part of the push may take there. */
static uint64_t largest_room(const struct link *link, const struct push *push)
{
    assert(link->knows_grant);
    return push->wanted.collective == NULL && link->part_bytes_max > link->grant_bytes
               ? link->part_bytes_max
               : link->grant_bytes;
}

/* The first ps that takes no part as large as this one, or NULL. */
static const struct part *find_too_large(const struct push *push)
{
    for (uint32_t i = 0; i < push->part_count; i++)
        if (push->parts[i].room_bytes > largest_room(push->parts[i].link, push))
            return &push->parts[i];
    return NULL;
}

static bool knows_grants(const struct push *push)
{
    assert(push->sequence == 0);
    for (uint32_t i = 0; i < push->part_count; i++)
        if (!push->parts[i].link->knows_grant)
            return false;
    return true;
}

static bool has_sequence(const struct session *session)
{
    assert(session->voided_max > 0);
    return session->state.last_sequence - session->state.acked_through < session->voided_max;
}

/* Half of the staging is the pool, of which a part may take all. */
static struct session_room room_of(const struct link *link, uint64_t cost_bytes)
{
    return (struct session_room){
        .known = link->knows_grant,
        .cost_bytes = cost_bytes,
        .part_bytes_max =
            link->part_bytes_max > link->grant_bytes ? link->part_bytes_max : link->grant_bytes,
        .grant_bytes = link->grant_bytes,
        .staging_max_mib = ((cost_bytes >> 20) + 1) * 2};
}

struct session_room
session_room(const struct session *session, uint32_t ps, uint64_t bytes, uint64_t pieces)
{
    static const struct link stranger;
    const struct link *link = ps < session->link_count ? &session->links[ps] : &stranger;

    return room_of(link, wire_part_cost(bytes, pieces, 0));
}

/* A contribution to a collective has no more than the session's floor. */
static void fail_too_large(const struct part *part, struct sumac_error *error)
{
    const struct session_room room = room_of(part->link, part->room_bytes);
    const bool is_collective = part->push->wanted.collective != NULL;
    const uint64_t most = is_collective ? room.grant_bytes : room.part_bytes_max;

    assert(part->room_bytes > most);
    (void)fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_PART_TOO_LARGE,
        "the push has %" PRIu64 " bytes in %" PRIu32 " pieces for ps %" PRIu32 " and takes %" PRIu64
        " bytes of staging there, where %s may take %" PRIu64 " (%" PRIu64 " MiB; " WIRE_COST_TEXT
        "): push less at once, use more ps, or start each ps with %s --staging-max%s%" PRIu64 "M",
        part->bytes, part->piece_count, part->link->ps, room.cost_bytes,
        is_collective ? "a contribution to a collective" : "a part", most, most >> 20,
        is_collective ? "fewer --sessions-max or a larger" : "a",
        is_collective ? ", which is more than " : " of ", room.staging_max_mib);
}

void pushes_admit(struct session *session)
{
    bool any = false;

    for (struct push *push;
         (push = session->waiting.first) != NULL && knows_grants(push) && has_sequence(session);) {
        LIST_REMOVE(&session->waiting, push, among_waiting);
        assert(session->waiting_count > 0);
        session->waiting_count--;
        session->admitted++;
        assert(session->admitted <= session->submitted);
        any = true;
        if (push->cancelled && !push->wanted.synchronous) { /* its caller has been told */
            if (push->wanted.finishes_step)
                finish_step(session);
            push_give(session, push);
            continue;
        }
        const struct part *part = push->cancelled ? NULL : find_too_large(push);
        if (part == NULL && push->part_count > 0) {
            admit(session, push);
            if (push->cancelled) /* its step is made without it */
                push_cancel_parts(session, push);
            continue;
        }
        if (push->wanted.finishes_step)
            finish_step(session);
        struct sumac_error error = {.status = SUMAC_OK};
        if (part != NULL)
            fail_too_large(part, &error);
        push_over(session, push, &error);
    }
    if (any)
        pulls_admit(session);
}

/* May a push be taken in now? */
static bool may_accept(const struct session *session, struct sumac_error *error)
{
    if (session->phase == PHASE_OVER)
        *error = session->end;
    else if (session->stopping_until_us != 0)
        *error = session->stopping;
    else if (session->phase != PHASE_OPEN || session->leave_wanted || session->config.reader)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_CLOSED,
            session->config.reader ? "a reader has no session to push with; join instead"
                                   : "the session is not open, or is leaving; join again");
    else if (pushes_in_flight(session) >= WINDOW)
        (void)fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "%d pushes are in flight, no more may be; wait for one of them first", WINDOW);
    else
        return true;
    return false;
}

/* Returns NULL if it is refused. */
static struct push *
take_in(struct session *session, const struct session_push *wanted, struct sumac_error *error)
{
    uint32_t participants;

    if (!may_accept(session, error))
        return NULL;
    if (!count_by_ps(session, wanted, &participants)) {
        (void)fail_invalid(
            error, SUMAC_REASON_UNKNOWN_SHARD, "a piece names a ps that is none of the %" PRIu32,
            session->link_count);
        return NULL;
    }
    struct push *push = take_push(session, wanted, participants);
    if (push == NULL) {
        (void)fail_for_memory(
            error, "no memory for a push of %" PRIu32 " pieces", wanted->piece_count);
        return NULL;
    }
    if (wanted->collective == NULL)
        return push;
    const struct part *too_large = knows_grants(push) ? find_too_large(push) : NULL;
    if (too_large != NULL) /* nor is there a pull of its result */
        fail_too_large(too_large, error);
    else if (!collective_begin(session, wanted->token))
        (void)fail_for_memory(error, "no memory for a contribution to a collective");
    else
        return push;
    push_give(session, push);
    return NULL;
}

bool push_accept(struct session *session, const struct session_push *wanted)
{
    struct sumac_error error;
    struct push *push = take_in(session, wanted, &error);

    if (push == NULL) {
        (void)effect_over(session, SESSION_EFFECT_PUSHED, wanted->token, &error);
        return false;
    }
    session->submitted++;
    session->steps_finished += wanted->finishes_step;
    session->waiting_count++;
    LIST_APPEND(&session->waiting, push, among_waiting);
    pushes_admit(session);
    return true;
}

static bool is_voided(const wire_closed *closed, uint64_t sequence)
{
    for (size_t i = 0; i < closed->n_voided; i++)
        if (closed->voided[i] == sequence)
            return true;
    return false;
}

/* What the settle came to for one push: up to `final` all counts but what was voided. */
static void end_one(struct session *session, struct push *push, const wire_closed *closed)
{
    if (push->wanted.token == 0) /* cancelled */
        push_give(session, push);
    else if (push->refused && push->error != NULL)
        push_over(session, push, push->error);
    else if (
        closed != NULL && push->sequence != 0 && push->sequence <= closed->final &&
        !push->refused && !is_voided(closed, push->sequence))
        push_over(session, push, NULL);
    else
        push_over(session, push, &session->end);
}

void pushes_end(struct session *session, const wire_closed *closed)
{
    assert(session->phase == PHASE_OVER);
    for (uint64_t n = session->state.acked_through + 1; n <= session->state.last_sequence; n++) {
        struct window_place *place = place_of(session, n);
        if (place->push != NULL)
            end_one(session, place->push, closed);
        *place = (struct window_place){0};
    }
    session->state.acked_through = session->state.last_sequence;
    for (struct push *push; (push = session->waiting.first) != NULL;) {
        LIST_REMOVE(&session->waiting, push, among_waiting);
        end_one(session, push, closed);
    }
    session->waiting_count = 0;
    for (uint32_t i = 0; i < session->link_count; i++)
        session->links[i].parts.first = NULL;
}
