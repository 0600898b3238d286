/* SPDX-License-Identifier: Apache-2.0 */
/* records.c -- the journal's records, made (records.h).
 *
 * Without records nothing waits: the last one is 0, and so is what is on disk.
 */

#include "little_endian.h"
#include "contribution.h"

/* It is not written, so none after it may be: the ps ends. */
static uint64_t lose(struct lane *lane)
{
    out_lose(&lane->out);
    return ++lane->last_record;
}

static void fill_head(const struct record *record, size_t message_bytes, uint8_t *head)
{
    assert(record->kind > 0 && record->kind < RECORD_KINDS);
    assert((record->payload_bytes > 0) == (record->payload_spans > 0));
    memset(head, 0, RECORD_HEAD_BYTES);
    head[0] = (uint8_t)record->kind;
    little_endian_put(head + 4, 4, message_bytes);
    little_endian_put(head + 8, 8, record->payload_bytes);
    little_endian_put(head + 16, 8, record->first);
    little_endian_put(head + 24, 8, record->second);
    if (record->session_id != NULL)
        memcpy(head + 32, record->session_id, 16);
    if (record->message != NULL)
        wire_pack(record->message, 0, head + RECORD_HEAD_BYTES);
}

uint64_t lane_record_write(struct lane *lane, const struct record *record)
{
    if (!lane->records)
        return 0;
    if (lane->out.effects.lost)
        return lose(lane);
    const size_t message_bytes =
        record->message == NULL ? 0 : wire_packed_bytes(record->message, 0);
    const size_t spans = 1 + record->payload_spans;
    uint8_t *head = arena_take(&lane->arena, RECORD_HEAD_BYTES + message_bytes);
    struct span *body = arena_take(&lane->arena, spans * sizeof *body);
    if (head == NULL || body == NULL)
        return lose(lane);
    fill_head(record, message_bytes, head);
    body[0] = (struct span){.data = head, .bytes = RECORD_HEAD_BYTES + message_bytes};
    if (record->payload_spans > 0)
        memcpy(body + 1, record->payload, record->payload_spans * sizeof *body);
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_RECORD);
    effect->record = ++lane->last_record;
    effect->body = body;
    effect->body_count = (uint32_t)spans;
    assert(effect->record > lane->recorded);
    return effect->record;
}

uint64_t lane_record_order(
    struct lane *lane, enum record_kind kind, const struct lane_session *session, uint64_t first,
    const wire_message *message)
{
    assert(kind > 0 && kind < RECORD_KINDS);
    return lane_record_write(
        lane, &(struct record){
                  .kind = kind,
                  .session_id = session == NULL ? NULL : session->id,
                  .first = first,
                  .message = message});
}

/* ---- a part, as one message ---- */

/* False, of this and those below: no memory. */
static bool list_functions(struct lane *lane, const struct lane_part *part, wire_part *message)
{
    const uint32_t count = part->function_count;
    wire_function **pointers = arena_take(&lane->arena, count * sizeof *pointers);

    if (pointers == NULL)
        return false;
    assert(part->functions != NULL || count == 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct part_function *named = &part->functions[i];
        pointers[i] = definition_write_function(
            named->function, &named->given, named->given.set, &lane->arena);
        if (pointers[i] == NULL)
            return false;
    }
    message->functions = pointers;
    message->n_functions = count;
    return true;
}

/* run NULL: the part names the shard, and has no bytes for it. */
static wire_piece
piece_of(const struct lane_part *part, const struct entry *entry, const struct run *run)
{
    wire_piece piece = WIRE_PIECE_INIT;

    piece.shard_id = entry->shard->id;
    piece.layout_epoch = entry->shard->layout_epoch;
    piece.based_on = entry->based_on;
    piece.function = entry->function;
    if (run == NULL)
        return piece;
    assert(!run->by_rows);
    piece.function = run->function;
    if (run->sets) {
        piece.kind = SUMAC__V1__PIECE__KIND__KIND_HYPERPARAMETERS;
        return piece;
    }
    assert(run->bytes > 0 && run->bytes <= entry->shard->bytes);
    piece.offset_bytes = run->offset * lane_part_widens(part, entry->shard);
    piece.bytes = run->bytes * lane_part_widens(part, entry->shard);
    return piece;
}

/* The indices of some rows of a run, and their values. Returns the pieces there are then. */
static size_t
rows_of(const struct lane_part *part, const struct run *run, wire_piece *pieces, size_t count)
{
    const struct entry *entry = &part->entries[run->entry];
    const uint64_t row_bytes = lane_row_bytes(part, entry->shard);
    uint64_t row = 0;

    assert(run->by_rows);
    for (const struct row_piece *rows = run->list->first; rows != NULL; rows = rows->next) {
        wire_piece *indices = &pieces[count++], *values = &pieces[count++];
        *indices = piece_of(part, entry, NULL);
        indices->function = run->function;
        *values = *indices;
        indices->kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
        indices->offset_bytes = row * sizeof(int64_t);
        indices->bytes = rows->count * sizeof(int64_t);
        values->offset_bytes = row * row_bytes;
        values->bytes = rows->count * row_bytes;
        row += rows->count;
    }
    assert(row == run->list->row_count);
    return count;
}

/* A run is a piece, or as many pairs of pieces as came by rows. A shard that has no run, or was
 * counted without one, is a piece without bytes. Shards keep their order, which is that of the
 * versions in the answer. */
static bool list_pieces(struct lane *lane, const struct lane_part *part, wire_part *message)
{
    const size_t most =
        (size_t)part->run_count + part->entry_count + 2 * (size_t)part->row_piece_count;
    wire_piece *pieces = arena_take(&lane->arena, most * sizeof *pieces);
    wire_piece **pointers = arena_take(&lane->arena, most * sizeof *pointers);
    size_t count = 0;
    uint32_t named = 0; /* of the shards, those before */

    if (pieces == NULL || pointers == NULL)
        return false;
    for (uint32_t i = 0;; i++) {
        const struct run *run = i < part->run_count ? &part->runs[i] : NULL;
        const uint32_t before = run == NULL ? part->entry_count : run->entry;
        for (; named < before; named++)
            pieces[count++] = piece_of(part, &part->entries[named], NULL);
        if (run == NULL)
            break;
        if (named == run->entry && part->entries[named].counted)
            pieces[count++] = piece_of(part, &part->entries[named], NULL);
        if (run->by_rows)
            count = rows_of(part, run, pieces, count);
        else
            pieces[count++] = piece_of(part, &part->entries[run->entry], run);
        named += named == run->entry;
    }
    assert(count <= most);
    for (size_t i = 0; i < count; i++)
        pointers[i] = &pieces[i];
    message->pieces = pointers;
    message->n_pieces = count;
    return true;
}

/* Staged bytes, chunk by chunk. Returns the spans there are then. */
static uint32_t add_bytes(
    const struct chunk *chunk, uint32_t offset, uint64_t bytes_staged, struct span *spans,
    uint32_t count)
{
    for (uint64_t left = bytes_staged; left > 0; chunk = chunk->in_part.next, offset = 0) {
        assert(chunk != NULL && offset <= chunk->used);
        const uint64_t here = chunk->used - offset;
        const uint64_t bytes = left < here ? left : here;
        if (bytes > 0)
            spans[count++] = (struct span){.data = chunk->data + offset, .bytes = bytes};
        left -= bytes;
    }
    return count;
}

static uint32_t
add_run(const struct lane_part *part, const struct run *run, struct span *spans, uint32_t count)
{
    const struct shard *shard = part->entries[run->entry].shard;
    const uint64_t widens = lane_part_widens(part, shard), row_bytes = lane_row_bytes(part, shard);

    if (!run->by_rows)
        return add_bytes(run->chunk, run->chunk_offset, run->bytes * widens, spans, count);
    for (const struct row_piece *rows = run->list->first; rows != NULL; rows = rows->next) {
        count = add_bytes(
            rows->indices, rows->indices_offset, rows->count * sizeof(int64_t), spans, count);
        count = add_bytes(rows->values, rows->values_offset, rows->count * row_bytes, spans, count);
    }
    return count;
}

/* Those of a contribution to a collective have no runs. */
static bool list_bytes(struct lane *lane, const struct lane_part *part, struct record *record)
{
    uint32_t most = part->run_count + 2 * part->row_piece_count, count = 0;

    LIST_FOREACH(const struct chunk, chunk, &part->chunks, in_part)
        most++;
    struct span *spans = arena_take(&lane->arena, most * sizeof *spans);
    if (spans == NULL)
        return false;
    if (part->contribution != NULL)
        count = add_bytes(part->chunks.first, 0, part->bytes, spans, 0);
    for (uint32_t i = 0; i < part->run_count; i++)
        count = add_run(part, &part->runs[i], spans, count);
    assert(count <= most);
    record->payload = spans;
    record->payload_spans = count;
    record->payload_bytes = part->received;
    return true;
}

/* A contribution to a collective: its round, and its bytes as one piece. */
static bool list_contribution(struct lane *lane, const struct lane_part *part, wire_part *message)
{
    wire_piece *piece = arena_take(&lane->arena, sizeof *piece);

    message->pieces = arena_take(&lane->arena, sizeof *message->pieces);
    message->collective = collective_write(part->contribution->round->collective, &lane->arena);
    if (piece == NULL || message->pieces == NULL || message->collective == NULL)
        return false;
    *piece = (wire_piece)WIRE_PIECE_INIT;
    piece->bytes = part->bytes;
    *message->pieces = piece;
    message->n_pieces = part->bytes > 0;
    return true;
}

uint64_t lane_record_part(struct lane *lane, const struct lane_part *part)
{
    wire_part message = WIRE_PART_INIT;
    struct record record = {
        .kind = RECORD_PART, .session_id = part->session->id, .message = &message.base};

    assert(lane->records);
    assert(part->state == PART_STAGED);
    assert(part->received == part->bytes);
    message.first = message.last = true;
    message.sequence = part->sequence;
    message.previous = part->previous;
    message.eager = part->eager;
    message.bytes = part->bytes;
    message.synchronous = part->step != 0;
    message.step = part->step;
    message.resend = part->claim == NULL ? 0 : part->claim->resend;
    message.room_bytes = part->claim == NULL ? 0 : part->claim->room_bytes;
    message.weight = part->weight;
    message.scale = part->scale == 1 ? 0 : part->scale;
    message.allow_non_finite = part->allow_non_finite;
    const bool listed = part->contribution != NULL ? list_contribution(lane, part, &message)
                                                   : list_functions(lane, part, &message) &&
                                                         list_pieces(lane, part, &message);
    return listed && list_bytes(lane, part, &record) ? lane_record_write(lane, &record)
                                                     : lose(lane);
}

/* ---- what becomes of it ---- */

uint64_t
lane_record_refused(struct lane *lane, const struct lane_part *part, const struct refusal *refusal)
{
    wire_refused message = WIRE_REFUSED_INIT;

    assert(lane->records);
    assert(part->state == PART_VOID || part->state == PART_STAGED);
    assert(refusal->error.status != SUMAC_OK);
    message.sequence = part->sequence;
    message.status = (uint32_t)refusal->error.status;
    message.reason = (Sumac__V1__Reason)refusal->error.reason;
    message.message = (char *)refusal->error.text;
    message.expected = (char *)refusal->expected;
    message.given = (char *)refusal->given;
    return lane_record_write(
        lane, &(struct record){
                  .kind = part->state == PART_VOID ? RECORD_REFUSED : RECORD_VOIDED,
                  .session_id = part->session->id,
                  .first = part->previous,
                  .second = part->step,
                  .message = &message.base});
}

uint64_t
lane_record_step(struct lane *lane, uint64_t step, const struct lane_part *first, uint64_t position)
{
    wire_take_step message = WIRE_TAKE_STEP_INIT;
    size_t count = 0;

    assert(lane->records);
    assert((first != NULL) == (position != 0));
    for (const struct lane_part *part = first; part != NULL; part = part->in_operation.next)
        count++;
    message.session_ids = arena_take(&lane->arena, count * sizeof *message.session_ids);
    if (message.session_ids == NULL)
        return lose(lane);
    message.step = step;
    for (const struct lane_part *part = first; part != NULL; part = part->in_operation.next)
        message.session_ids[message.n_session_ids++] =
            (wire_bytes){.len = sizeof part->session->id, .data = part->session->id};
    return lane_record_write(
        lane,
        &(struct record){
            .kind = RECORD_STEP, .first = step, .second = position, .message = &message.base});
}

uint64_t lane_record_applied(struct lane *lane, const struct lane_part *part, uint64_t position)
{
    assert(lane->records);
    assert(position <= lane->store.position);
    assert((position != 0) == (part->state == PART_APPLYING));
    return lane_record_write(
        lane, &(struct record){
                  .kind = RECORD_APPLIED,
                  .session_id = part->session->id,
                  .first = part->sequence,
                  .second = position});
}
