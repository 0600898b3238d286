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

/* A new list, of no rows yet. False: the part is refused. */
static bool
begin_list(struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece)
{
    const enum sumac_dtype dtype = shard->variable->definition.dtype;
    const uint64_t carry_bytes = shard->row_bytes / sumac_dtype_bytes(dtype) *
                                 sumac_dtype_bytes(update_contribution_dtype(dtype));

    assert(shard->row_bytes % sumac_dtype_bytes(dtype) == 0);
    assert(piece->offset_bytes == 0);
    struct run *run = lane_piece_add_run(lane, part, shard, piece);
    if (run == NULL ||
        !lane_part_take_room(lane, part, wire_list_cost(lane_row_bytes(part, shard))))
        return false;
    run->list = sized_pool_take(&lane->bytes, sizeof *run->list + carry_bytes);
    if (run->list == NULL)
        return lane_part_refuse_memory(lane, part);
    *run->list = (struct row_list){.carry_bytes = carry_bytes};
    part->run_count++;
    part->row_list_count++;
    return true;
}

/* The last run has the list that the indices go on with, or a new one. False: the part is refused.
 */
static bool
find_list(struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece)
{
    const struct run *last = part->run_count == 0 ? NULL : last_run(part);
    uint64_t expected = 0;

    if (piece->offset_bytes == 0)
        return begin_list(lane, part, shard, piece);
    if (last != NULL && last->by_rows && shard_of(part, last) == shard &&
        last->function == piece->function)
        expected = last->list->row_count * INDEX_BYTES;
    return piece->offset_bytes == expected ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
               "variable %s: row indices at %" PRIu64 " of their list, and those before end at "
               "%" PRIu64 ": a list comes from its begin, in order\t%" PRIu64 "\t%" PRIu64,
               shard->variable->name, piece->offset_bytes, expected, expected, piece->offset_bytes);
}

/* What can be said of indices before they are read. */
static bool check_indices(
    struct lane *lane, struct lane_part *part, const struct shard *shard, const wire_piece *piece)
{
    const struct variable *variable = shard->variable;

    assert(part->row_open == NULL);
    if (piece->bytes % INDEX_BYTES != 0)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "variable %s: %" PRIu64 " bytes of row indices: an index is an int64 of 8 bytes"
            "\twhole int64\t%" PRIu64 " bytes",
            variable->name, piece->bytes, piece->bytes);
    if (shard->row_bytes > variable->block_bytes)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "variable %s has rows of %" PRIu64
            " bytes, and those of at most %u are pushed by index: push ranges of rows"
            "\trows of at most %u bytes\trows of %" PRIu64 " bytes",
            variable->name, shard->row_bytes, variable->block_bytes, variable->block_bytes,
            shard->row_bytes);
    return piece->bytes / INDEX_BYTES <= lane->parts->rows_left ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
               "push %" PRIu64 " has more than %u row indices in one message: send them in several"
               "\t%u\tmore",
               part->sequence, WIRE_PUSH_ROWS_MAX, WIRE_PUSH_ROWS_MAX);
}

/* ---- the indices ---- */

/* As they lie in the chunks. False: one is not of the shard, and the part is refused. */
static bool read_indices(
    struct lane *lane, struct lane_part *part, const struct shard *shard, struct row_piece *rows)
{
    const struct placement *placement = &shard->variable->placements[shard->placement];
    const uint64_t row_count = placement->rows;
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
        if ((uint64_t)row >= row_count) /* or below 0 */
            return lane_part_refuse(
                lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
                "push %" PRIu64 " of %s: row %" PRId64 " of shard %" PRIu64
                " of variable %s, which has %" PRIu64 " rows, from row %" PRIu64
                " of the variable on\t0 to %" PRIu64 "\t%" PRId64,
                part->sequence, part->session->task, row, shard->id, shard->variable->name,
                row_count, placement->first_row, row_count == 0 ? 0 : row_count - 1, row);
        rows->keys[i] = update_row_key((uint64_t)row, i);
    }
    return true;
}

/* A pair's place at the end of the last list. False: the part is refused. */
static bool add_piece(struct lane *lane, struct lane_part *part, uint32_t count)
{
    const struct run *run = last_run(part);
    struct row_list *list = run->list;
    struct row_piece *rows = NULL;
    const uint64_t row_bytes = lane_row_bytes(part, shard_of(part, run));

    if (!lane_part_take_room(lane, part, PIECE_ROOM_BYTES + wire_rows_cost(count, row_bytes)))
        return false;
    if (count == 0 || lane_staging_align(lane, part, count * INDEX_BYTES, INDEX_BYTES))
        rows = sized_pool_take(&lane->bytes, row_piece_bytes(count));
    if (rows == NULL)
        return lane_part_refuse_memory(lane, part);
    *rows = (struct row_piece){.count = count};
    if (count > 0) {
        rows->indices = part->chunks.last;
        rows->indices_offset = part->chunks.last->used;
    }
    *(list->last == NULL ? &list->first : &list->last->next) = rows;
    list->last = rows;
    list->row_count += count;
    part->row_count += count;
    part->row_piece_count++;
    part->row_open = rows;
    return true;
}

/* Copied to the part, and put in order. */
static void keep_indices(
    struct lane *lane, struct lane_part *part, const struct shard *shard, struct payload *payload)
{
    struct row_piece *rows = part->row_open;
    const uint64_t bytes = rows->count * INDEX_BYTES;
    const struct staged staged = {.dtype = SUMAC_INT64, .unit = INDEX_BYTES};
    uint64_t *scratch = arena_take(&lane->arena, bytes);
    bool finite = true;

    if (scratch == NULL) {
        (void)lane_part_refuse_memory(lane, part);
        lane_staging_skip(payload, bytes);
        return;
    }
    if (lane_staging_copy(lane, part, payload, bytes, &staged, &finite) &&
        read_indices(lane, part, shard, rows))
        update_rows_order(rows->keys, scratch, rows->count);
}

void lane_rows_take_indices(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload)
{
    const uint32_t count = (uint32_t)(piece->bytes / INDEX_BYTES);
    struct shard *shard = NULL;

    assert(part->state == PART_RECEIVING);
    if (lane_rows_check_message(lane, part) && lane_piece_check(lane, part, piece))
        shard = lane_piece_check_shard(lane, part, piece);
    if (shard == NULL || !check_indices(lane, part, shard, piece) ||
        (part->step != 0 && !lane_step_contribution_check_variable(lane, part, shard->variable)) ||
        !find_list(lane, part, shard, piece) || !add_piece(lane, part, count)) {
        lane_staging_skip(payload, piece->bytes);
        return;
    }
    lane->parts->rows_left -= count;
    if (count > 0)
        keep_indices(lane, part, shard, payload);
}

bool lane_rows_check_message(struct lane *lane, struct lane_part *part)
{
    return part->row_open == NULL ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
               "variable %s: %u row indices without their values, which come next, in the same "
               "message\tvalues of %u rows\tnone",
               shard_of(part, last_run(part))->variable->name, part->row_open->count,
               part->row_open->count);
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
    if (piece->shard_id != shard->id || piece->function != run->function)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "variable %s: row indices for shard %" PRIu64 ", function %u, and next to them values "
            "for shard %" PRIu64 ", function %u\t%" PRIu64 " bytes at %" PRIu64 "\t%" PRIu64
            " bytes at %" PRIu64,
            shard->variable->name, shard->id, run->function, piece->shard_id, piece->function,
            bytes, offset, piece->bytes, piece->offset_bytes);
    return (piece->bytes == bytes && piece->offset_bytes == offset) ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
               "variable %s: %u row indices, and %" PRIu64 " bytes of values at %" PRIu64
               ": they are to be %" PRIu64 " at %" PRIu64 ", rows of %" PRIu64 " bytes\t%" PRIu64
               " bytes at %" PRIu64 "\t%" PRIu64 " bytes at %" PRIu64,
               shard->variable->name, rows->count, piece->bytes, piece->offset_bytes, bytes, offset,
               row_bytes, bytes, offset, piece->bytes, piece->offset_bytes);
}

struct run *
lane_rows_take_values(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    struct row_piece *rows = part->row_open;

    assert(part->state == PART_RECEIVING);
    assert(rows != NULL);
    if (((int)piece->kind == WIRE_PIECE_HYPERPARAMETERS &&
         !lane_rows_check_message(lane, part)) || /* values are missing */
        !lane_piece_check(lane, part, piece) ||
        !check_values(lane, part, last_run(part), piece))
        return NULL;
    struct run *run = last_run(part);
    part->row_open = NULL;
    if (piece->bytes == 0)
        return NULL;
    if (!lane_staging_align(lane, part, piece->bytes, lane_row_bytes(part, shard_of(part, run)))) {
        (void)lane_part_refuse_memory(lane, part);
        return NULL;
    }
    rows->values = part->chunks.last;
    rows->values_offset = part->chunks.last->used;
    run->bytes += rows->count * shard_of(part, run)->row_bytes;
    return run;
}
