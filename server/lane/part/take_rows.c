/* SPDX-License-Identifier: Apache-2.0 */
/* take_rows.c -- rows by index (TensorFlow's IndexedSlices), as a part brings them.
 *
 *   message 1: | indices 7 2 7 | values ··· ··· ··· |    message 2: | indices 9 | values ··· |
 *   list:      row_piece (2 at 1, 7 at 0, 7 at 2)   ─►   row_piece (9 at 0)
 *
 * A list is what one push has for one shard by one function: it begins with indices at offset 0,
 * and goes on as far as pairs follow each other. Each pair is put in order as it comes, so that no
 * step has more to sort than a message brings; the operation takes them together
 * (operation/cut_rows.c).
 */
#include "part_state.h"

#define INDEX_BYTES sizeof(int64_t)

_Static_assert(
    sizeof(struct row_piece) + sizeof(struct row_list) + 2 * 64 + 2 * RUN_ALIGNMENT_BYTES <=
        2 * PIECE_ROOM_BYTES,
    "what is kept of a pair beside its rows fits into what its two pieces take of the grant");
_Static_assert(WIRE_PUSH_ROWS_MAX <= UPDATE_ROWS_TOGETHER_MAX, "a key has their places");
_Static_assert(sizeof(uint64_t) * 9 / 8 <= WIRE_ROW_COST_BYTES, "and a row");

void lane_rows_expect(struct lane *lane, uint64_t indices) { lane->parts->rows_left = indices; }

/* ---- what a list is for ---- */

static struct run *last_run(const struct lane_part *part)
{
    assert(part->run_count > 0);
    return &part->runs[part->run_count - 1];
}

static const struct shard *shard_of(const struct lane_part *part, const struct run *run)
{
    return part->entries[run->entry].shard;
}

static uint64_t rows_of(const struct shard *shard)
{
    return shard->variable->placements[shard->placement].rows;
}

/* Of a row that is summed. */
static uint64_t summed_row_bytes(const struct shard *shard)
{
    const enum sumac_dtype dtype = shard->variable->definition.dtype;

    assert(shard->row_bytes % sumac_dtype_bytes(dtype) == 0);
    return shard->row_bytes / sumac_dtype_bytes(dtype) *
           sumac_dtype_bytes(update_contribution_dtype(dtype));
}

/* True: that much of the grant is the part's. */
static bool take_room(struct lane *lane, struct lane_part *part, uint64_t bytes)
{
    if (lane_part_take_room(lane, part, bytes))
        return true;
    lane_part_refuse_room(lane, part, bytes);
    return false;
}

/* A new list, of no rows yet. NULL: the part is refused. */
static struct row_list *
begin_list(struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece)
{
    const uint64_t carry_bytes = summed_row_bytes(shard);

    assert(piece->offset_bytes == 0);
    struct run *run = lane_piece_add_run(lane, part, shard, piece);
    if (run == NULL || !take_room(lane, part, wire_list_cost(lane_row_bytes(part, shard))))
        return NULL;
    struct row_list *list = sized_pool_take(&lane->bytes, sizeof *list + carry_bytes);
    if (list == NULL) {
        lane_part_refuse_memory(lane, part);
        return NULL;
    }
    *list = (struct row_list){.carry_bytes = carry_bytes};
    run->list = list;
    part->run_count++;
    part->row_list_count++;
    return list;
}

/* The list that the indices go on with, or a new one. NULL: the part is refused. */
static struct row_list *
find_list(struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece)
{
    const struct run *last = part->run_count == 0 ? NULL : last_run(part);
    uint64_t expected = 0;

    if (piece->offset_bytes == 0)
        return begin_list(lane, part, shard, piece);
    if (last != NULL && last->by_rows && shard_of(part, last) == shard &&
        last->function == piece->function)
        expected = last->list->row_count * INDEX_BYTES;
    if (piece->offset_bytes == expected)
        return last->list;
    lane_part_refuse(
        lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
        "variable %s: row indices at %" PRIu64 " of their list, and those before end at %" PRIu64
        ": a list comes from its begin, in order",
        shard->variable->name, piece->offset_bytes, expected);
    lane_part_expected(part, "%" PRIu64, expected);
    lane_part_given(part, "%" PRIu64, piece->offset_bytes);
    return NULL;
}

/* What can be said of indices before they are read. */
static bool check_indices(
    struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece)
{
    const struct variable *variable = shard->variable;
    const uint64_t left = lane->parts->rows_left;

    assert(part->row_open == NULL);
    if (piece->bytes % INDEX_BYTES != 0) {
        lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "variable %s: %" PRIu64 " bytes of row indices: an index is an int64 of 8 bytes",
            variable->name, piece->bytes);
        lane_part_expected(part, "whole int64");
        lane_part_given(part, "%" PRIu64 " bytes", piece->bytes);
    } else if (shard->row_bytes > variable->block_bytes) {
        const uint64_t row_bytes = shard->row_bytes;
        lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "variable %s has rows of %" PRIu64
            " bytes, and those of at most %u are pushed by index: push ranges of rows",
            variable->name, row_bytes, variable->block_bytes);
        lane_part_expected(part, "rows of at most %u bytes", variable->block_bytes);
        lane_part_given(part, "rows of %" PRIu64 " bytes", row_bytes);
    } else if (piece->bytes / INDEX_BYTES > left) {
        lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
            "push %" PRIu64 " has more than %u row indices in one message: send them in several",
            part->sequence, WIRE_PUSH_ROWS_MAX);
        lane_part_expected(part, "%u", WIRE_PUSH_ROWS_MAX);
        lane_part_given(part, "more");
    }
    return part->state == PART_RECEIVING;
}

/* ---- the indices ---- */

static void
refuse_row(struct lane *lane, struct lane_part *part, const struct shard *shard, int64_t row)
{
    const struct placement *placement = &shard->variable->placements[shard->placement];
    const uint64_t rows = placement->rows;

    assert((uint64_t)row >= rows);
    lane_part_refuse(
        lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
        "push %" PRIu64 " of %s: row %" PRId64 " of shard %" PRIu64
        " of variable %s, which has %" PRIu64 " rows, from row %" PRIu64 " of the variable on",
        part->sequence, part->session->task, row, shard->id, shard->variable->name, rows,
        placement->first_row);
    lane_part_expected(part, "0 to %" PRIu64, rows == 0 ? 0 : rows - 1);
    lane_part_given(part, "%" PRId64, row);
}

/* As they lie in the chunks. False: one is not of the shard, and the part is refused. */
static bool read_indices(
    struct lane *lane, struct lane_part *part, const struct shard *shard, struct row_piece *rows)
{
    const uint64_t row_count = rows_of(shard);
    const struct chunk *chunk = rows->indices;
    uint32_t offset = rows->indices_offset;

    assert(row_count <= UPDATE_ROW_MAX);
    for (uint32_t i = 0; i < rows->count; i++, offset += INDEX_BYTES) {
        int64_t row;
        if (offset == chunk->used) {
            chunk = chunk->in_part.next;
            offset = 0;
        }
        assert(offset + INDEX_BYTES <= chunk->used);
        memcpy(&row, chunk->data + offset, INDEX_BYTES);
        if ((uint64_t)row >= row_count) { /* or below 0 */
            refuse_row(lane, part, shard, row);
            return false;
        }
        rows->keys[i] = update_row_key((uint64_t)row, i);
    }
    return true;
}

/* A pair's place at the end of its list. NULL: the part is refused. */
static struct row_piece *
add_piece(struct lane *lane, struct lane_part *part, struct row_list *list, uint32_t count)
{
    const uint64_t row_bytes = lane_row_bytes(part, shard_of(part, last_run(part)));
    struct row_piece *rows = NULL;

    if (!take_room(lane, part, PIECE_ROOM_BYTES + wire_rows_cost(count, row_bytes)))
        return NULL;
    if (count == 0 || lane_staging_align(lane, part, count * INDEX_BYTES, INDEX_BYTES))
        rows = sized_pool_take(&lane->bytes, row_piece_bytes(count));
    if (rows == NULL) {
        lane_part_refuse_memory(lane, part);
        return NULL;
    }
    *rows = (struct row_piece){.count = count};
    if (count > 0) {
        rows->indices = part->chunks.last;
        rows->indices_offset = part->chunks.last->used;
    }
    if (list->last == NULL)
        list->first = rows;
    else
        list->last->next = rows;
    list->last = rows;
    list->row_count += count;
    part->row_count += count;
    part->row_piece_count++;
    return rows;
}

/* Copied to the part, and put in order. */
static void keep_indices(
    struct lane *lane, struct lane_part *part, const struct shard *shard, struct row_piece *rows,
    struct payload *payload)
{
    const uint64_t bytes = rows->count * INDEX_BYTES;
    const struct payload before = *payload;
    const struct staged staged = {.dtype = SUMAC_INT64, .unit = INDEX_BYTES};
    uint64_t *scratch = arena_take(&lane->arena, bytes);
    bool finite = true;

    if (scratch == NULL || !lane_staging_copy(lane, part, payload, bytes, &staged, &finite)) {
        *payload = before;
        lane_staging_skip(payload, bytes);
        lane_part_refuse_memory(lane, part);
        return;
    }
    if (!read_indices(lane, part, shard, rows))
        return;
    update_rows_order(rows->keys, scratch, rows->count);
    part->row_open = rows;
}

void lane_rows_take_indices(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload)
{
    struct shard *shard = NULL;
    struct row_list *list = NULL;
    struct row_piece *rows = NULL;

    assert(part->state == PART_RECEIVING);
    lane_rows_check_message(lane, part); /* values are missing */
    if (part->state == PART_RECEIVING && lane_piece_check(lane, part, piece))
        shard = lane_piece_check_shard(lane, part, piece);
    if (shard != NULL && check_indices(lane, part, shard, piece) &&
        (part->step == 0 || lane_step_contribution_check_variable(lane, part, shard->variable)))
        list = find_list(lane, part, shard, piece);
    if (list != NULL)
        rows = add_piece(lane, part, list, (uint32_t)(piece->bytes / INDEX_BYTES));
    if (rows == NULL) {
        lane_staging_skip(payload, piece->bytes);
        return;
    }
    lane->parts->rows_left -= rows->count;
    if (rows->count > 0)
        keep_indices(lane, part, shard, rows, payload);
    else
        part->row_open = rows;
}

void lane_rows_check_message(struct lane *lane, struct lane_part *part)
{
    if (part->row_open == NULL)
        return;
    const struct shard *shard = shard_of(part, last_run(part));
    const uint32_t count = part->row_open->count;

    lane_part_refuse(
        lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
        "variable %s: %u row indices without their values, which come next, in the same message",
        shard->variable->name, count);
    lane_part_expected(part, "values of %u rows", count);
    lane_part_given(part, "none");
}

/* ---- the values ---- */

/* Are they of the rows that were named? */
static bool check_values(
    struct lane *lane, struct lane_part *part, const struct run *run, const wire_piece *piece)
{
    const struct shard *shard = shard_of(part, run);
    const struct row_piece *rows = part->row_open;
    const uint64_t row_bytes = lane_row_bytes(part, shard);
    const uint64_t bytes = rows->count * row_bytes;
    const uint64_t offset = (run->list->row_count - rows->count) * row_bytes;

    assert(run->list->last == rows);
    if (piece->shard_id == shard->id && piece->function == run->function && piece->bytes == bytes &&
        piece->offset_bytes == offset)
        return true;
    if (piece->shard_id != shard->id || piece->function != run->function)
        lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "variable %s: row indices for shard %" PRIu64 ", function %u, and next to them values "
            "for shard %" PRIu64 ", function %u",
            shard->variable->name, shard->id, run->function, piece->shard_id, piece->function);
    else
        lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "variable %s: %u row indices, and %" PRIu64 " bytes of values at %" PRIu64
            ": they are to be %" PRIu64 " at %" PRIu64 ", rows of %" PRIu64 " bytes",
            shard->variable->name, rows->count, piece->bytes, piece->offset_bytes, bytes, offset,
            row_bytes);
    lane_part_expected(part, "%" PRIu64 " bytes at %" PRIu64, bytes, offset);
    lane_part_given(part, "%" PRIu64 " bytes at %" PRIu64, piece->bytes, piece->offset_bytes);
    return false;
}

struct run *
lane_rows_take_values(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    struct row_piece *rows = part->row_open;

    assert(part->state == PART_RECEIVING);
    assert(rows != NULL);
    if ((int)piece->kind == WIRE_PIECE_HYPERPARAMETERS)
        lane_rows_check_message(lane, part); /* values are missing */
    if (part->state != PART_RECEIVING || !lane_piece_check(lane, part, piece) ||
        !check_values(lane, part, last_run(part), piece))
        return NULL;
    struct run *run = last_run(part);
    part->row_open = NULL;
    if (piece->bytes == 0)
        return NULL;
    const uint64_t row_bytes = lane_row_bytes(part, shard_of(part, run));
    if (!lane_staging_align(lane, part, piece->bytes, row_bytes)) {
        lane_part_refuse_memory(lane, part);
        return NULL;
    }
    rows->values = part->chunks.last;
    rows->values_offset = part->chunks.last->used;
    run->bytes += rows->count * shard_of(part, run)->row_bytes;
    return run;
}
