/* SPDX-License-Identifier: Apache-2.0 */
/* cut_rows.c -- a run by rows, cut into slices.
 *
 *   pieces, each in order:   2 7 7 · ·     the next row is on top:   2
 *                            1 7 9 · ·                              7   1 …
 *                            4 9 · · ·                              ….
 *
 * The heap is a skew heap (Sleator and Tarjan, 1986). Pieces of one part, or of all contributions
 * to a step, are merged in the order of their rows. Occurrences of one row keep the order of the
 * push. So each block is met once, and all occurrences of a row lie side by side in the slice. Each
 * row lies in one block (variables.c), and is written in place.
 */

#include "operation_state.h"

#define SLICES_OF_ROWS_MAX 16u /* of one run in a batch */
#define ROWS_PER_PLACE (sizeof(struct update_slice) / sizeof(struct update_row))
#define ROWS_PER_LOOK 64u /* at whether the step has time */

_Static_assert(2 * SLICES_OF_ROWS_MAX <= SLICES_PER_BLOCK_MAX, "a batch has places for some rows");

/* ---- pieces, by what comes next ---- */

static uint64_t next_row(const struct row_piece *piece)
{
    assert(piece->taken < piece->count);
    return update_row_of(piece->keys[piece->taken]);
}

static bool comes_before(const struct row_piece *a, const struct row_piece *b)
{
    const uint64_t row_a = next_row(a), row_b = next_row(b);

    return row_a < row_b || (row_a == row_b && a->ordinal < b->ordinal);
}

static struct row_piece *meld(struct row_piece *a, struct row_piece *b)
{
    struct row_piece *root = NULL, **place = &root;

    while (a != NULL && b != NULL) {
        struct row_piece *const first = comes_before(a, b) ? a : b;
        struct row_piece *const other = first == a ? b : a;
        *place = first;
        a = first->right;
        first->right = first->left;
        place = &first->left;
        b = other;
    }
    *place = a != NULL ? a : b;
    return root;
}

static void add_pieces(
    const struct lane_part *part, uint32_t run, struct operation *operation, uint64_t *ordinal)
{
    assert(run < part->run_count);
    assert(part->runs[run].by_rows);
    for (struct row_piece *piece = part->runs[run].list->first; piece != NULL;
         piece = piece->next) {
        piece->ordinal = ++*ordinal;
        piece->scale = operation->sum != NULL ? part->scale : 1; /* else the slice has it */
        if (piece->count > 0)
            operation->rows = meld(operation->rows, piece);
    }
}

static bool takes_first_only(const struct operation *operation)
{
    const struct lane_part *part = operation->part;
    const struct shard *shard = part->entries[part->runs[operation->run].entry].shard;

    assert(operation->sum != NULL);
    return shard->variable->definition.aggregation ==
           SUMAC__V1__AGGREGATION__AGGREGATION_ONLY_FIRST_REPLICA;
}

/* All rows of the run, of every contribution that adds something. */
static void take_rows(struct lane *lane, struct operation *operation)
{
    uint64_t ordinal = 0;

    assert(operation->rows == NULL);
    assert(!operation->carries_row);
    if (operation->sum == NULL) {
        add_pieces(operation->part, operation->run, operation, &ordinal);
    } else {
        const bool first = takes_first_only(operation);
        LIST_FOREACH(struct lane_part, part, &operation->parts, in_operation) {
            if (part->weight <= 0 && !first)
                continue;
            add_pieces(part, operation->run, operation, &ordinal);
            if (first)
                break;
        }
    }
    lane->work += ordinal;
    operation->takes_rows = true;
}

/* The occurrence on top has been taken. */
static void take_top(struct operation *operation)
{
    struct row_piece *top = operation->rows;
    struct row_piece *left = top->left, *right = top->right;

    assert(top->taken < top->count);
    top->taken++;
    if (top->taken < top->count && (left == NULL || comes_before(top, left)) &&
        (right == NULL || comes_before(top, right)))
        return;
    top->left = top->right = NULL;
    operation->rows = meld(left, right);
    if (top->taken < top->count)
        operation->rows = meld(operation->rows, top);
}

/* ---- slices ---- */

/* The blocks of a shard at one index, as they are written to. */
struct opened {
    uint32_t index;
    bool any;
    bool keeps_any; /* of these, old rows are kept of some */
    bool keeps[STORE_LISTS_MAX];
    struct block *block[STORE_LISTS_MAX];
};

/* The rows of one run in one batch, as they are put into the places of its last slices. */
struct filling {
    struct batch *batch;
    struct operation *operation;
    const struct prepared *prepared;
    struct shard *shard;
    struct opened opened;
    struct update_row *rows;
    uint32_t row_count, row_max;
    uint32_t sliced; /* rows that have their slice */
    uint32_t slice_count;
    uint32_t rows_per_slice;
    uint64_t row_bytes, staged_row_bytes;
    uint32_t slot_widens; /* bytes of a slot for each of the value's */
    bool sums, last_wins; /* the rules */
};

/* Of the value, or of a slot, what one row takes. */
static uint32_t list_row_bytes(const struct filling *filling, uint32_t list)
{
    const uint64_t bytes =
        filling->row_bytes * (list == STORE_VALUE ? 1 : (uint64_t)filling->slot_widens);

    assert(bytes <= UINT32_MAX);
    return (uint32_t)bytes;
}

/* The row that begins there is written next: what readers need of it is kept. */
static void keep_old_row(struct lane *lane, struct filling *filling, uint64_t within)
{
    const struct opened *opened = &filling->opened;

    assert(opened->any && opened->keeps_any);
    for (uint32_t list = 0; list < filling->prepared->list_count; list++) {
        const uint32_t bytes = list_row_bytes(filling, list);
        const uint64_t at = within * (list == STORE_VALUE ? 1 : (uint64_t)filling->slot_widens);
        if (opened->keeps[list] && store_row_keep(
                                       &lane->store, opened->block[list], (uint32_t)at, bytes,
                                       filling->operation->position))
            filling->batch->copied_bytes += bytes;
    }
}

/* The blocks at that index. False: no memory beside one that a reader needs. */
static bool open_blocks(struct lane *lane, struct filling *filling, uint32_t index)
{
    struct opened *opened = &filling->opened;

    assert(index < filling->shard->block_count);
    opened->any = opened->keeps_any = false;
    for (uint32_t list = 0; list < filling->prepared->list_count; list++) {
        struct block *old = filling->shard->list[list][index];
        opened->keeps[list] = store_block_keeps_rows(
            &lane->store, old, list_row_bytes(filling, list), filling->operation->position);
        opened->keeps_any |= opened->keeps[list];
        struct block *block =
            opened->keeps[list]
                ? old
                : store_block_write(&lane->store, old, filling->operation->position);
        if (block == NULL)
            return false;
        if (block != old) {
            memcpy(block->data, old->data, block->bytes);
            filling->batch->copied_bytes += block->bytes;
        }
        opened->block[list] = block;
    }
    opened->index = index;
    opened->any = true;
    return true;
}

uint64_t rows_places(uint64_t row_count)
{
    return SLICES_OF_ROWS_MAX + row_count / ROWS_PER_PLACE + 1;
}

static uint64_t rows_left(const struct operation *operation)
{
    uint64_t rows = 0;

    LIST_FOREACH(const struct lane_part, part, &operation->parts, in_operation) {
        if (operation->sum != NULL || part == operation->part)
            rows += part->runs[operation->run].list->row_count;
    }
    return rows > operation->byte ? rows - operation->byte : 1;
}

/* Places for rows at the end of the batch, where slices have not come to yet. */
static void take_places(struct filling *filling)
{
    struct batch *batch = filling->batch;
    const uint32_t most = batch->capacity - batch->count - SLICES_OF_ROWS_MAX;
    const uint64_t wanted = rows_left(filling->operation) / ROWS_PER_PLACE + 1;
    const uint32_t places = wanted < most ? (uint32_t)wanted : most;

    assert(batch->capacity - batch->count > SLICES_OF_ROWS_MAX);
    batch->capacity -= places;
    filling->rows = (struct update_row *)(void *)&batch->slices[batch->capacity];
    filling->row_max = places * (uint32_t)ROWS_PER_PLACE;
}

/* What has been put together since the last one is a slice. */
static void add_slice(struct filling *filling, bool carries)
{
    const struct lane_part *part = filling->operation->part;
    const struct run *run = &part->runs[filling->operation->run];
    struct update_slice *slice = &filling->batch->slices[filling->batch->count];

    assert(filling->sliced < filling->row_count);
    assert(filling->batch->count < filling->batch->capacity);
    *slice = *filling->prepared->slice;
    slice->rows = &filling->rows[filling->sliced];
    slice->row_count = filling->row_count - filling->sliced;
    slice->count = filling->row_bytes / sumac_dtype_bytes(slice->dtype);
    slice->carry = run->list->carry;
    slice->carried = filling->operation->carries_row;
    slice->carries = carries;
    slice->wide = part->step != 0;
    slice->divisor = 1;
    if (filling->operation->sum != NULL)
        slice->scale = 1; /* each row has its own */
    if (filling->operation->sum != NULL && filling->shard->variable->definition.aggregation ==
                                               SUMAC__V1__AGGREGATION__AGGREGATION_MEAN)
        slice->divisor = filling->operation->sum->weight;
    filling->batch->count++;
    filling->slice_count++;
    filling->sliced = filling->row_count;
    filling->operation->carries_row = carries;
}

/* The occurrence on top, at the end of the rows, or in place of an earlier one that it wins over.
 */
static void add_row(struct filling *filling, uint64_t within)
{
    const struct row_piece *top = filling->operation->rows;
    const enum update_repeats repeats = filling->prepared->slice->function->repeats;
    struct update_row *row = &filling->rows[filling->row_count];
    const uint64_t place = update_place_of(top->keys[top->taken]);

    assert(filling->row_count < filling->row_max);
    assert(place < top->count);
    assert(within + filling->row_bytes <= filling->shard->variable->block_bytes);
    *row = (struct update_row){.at = {filling->opened.block[STORE_VALUE]->data + within}};
    for (uint32_t list = 1; list < filling->prepared->list_count; list++)
        row->at[list] = filling->opened.block[list]->data + within * filling->slot_widens;
    const struct cursor staged =
        staged_place(top->values, top->values_offset + place * filling->staged_row_bytes);
    row->gradient = staged.chunk->data + staged.offset;
    row->scale = top->scale;
    if (repeats != UPDATE_REPEATS_LAST_WINS || filling->row_count == filling->sliced ||
        row[-1].at[0] != row->at[0])
        filling->row_count++;
    else if (filling->last_wins)
        row[-1] = *row;
    filling->operation->byte++;
}

/* All occurrences of the row on top, as far as there is room. False: no memory for its block. */
static bool add_rows(struct lane *lane, struct filling *filling)
{
    struct operation *operation = filling->operation;
    const uint64_t row = next_row(operation->rows);
    const struct block_byte at =
        store_block_byte(filling->shard, STORE_VALUE, row * filling->row_bytes);

    if ((!filling->opened.any || filling->opened.index != at.index) &&
        !open_blocks(lane, filling, at.index))
        return false;
    if (filling->opened.keeps_any)
        keep_old_row(lane, filling, at.within);
    do {
        add_row(filling, at.within);
        take_top(operation);
        if (!filling->sums && filling->row_count > filling->sliced)
            add_slice(filling, false);
    } while (operation->rows != NULL && filling->row_count < filling->row_max &&
             next_row(operation->rows) == row && filling->slice_count + 1 < SLICES_OF_ROWS_MAX);
    if (!filling->sums)
        return true;
    if (operation->rows != NULL && next_row(operation->rows) == row &&
        filling->prepared->slice->function->repeats == UPDATE_REPEATS_SUM)
        add_slice(filling, true);
    else if (filling->row_count - filling->sliced >= filling->rows_per_slice)
        add_slice(filling, false);
    return true;
}

/* Has the batch, or the step, had enough of it? */
static bool is_full(const struct lane *lane, const struct filling *filling)
{
    if (filling->row_count == filling->row_max || filling->slice_count + 1 >= SLICES_OF_ROWS_MAX ||
        filling->batch->copied_bytes > COPIED_BYTES_PER_STEP_MAX)
        return true;
    return filling->batch->number != 0 && filling->row_count % ROWS_PER_LOOK == 0 &&
           filling->row_count > 0 && !lane_has_time(lane);
}

static uint32_t rows_per_slice(uint64_t row_bytes)
{
    assert(row_bytes > 0);
    return row_bytes >= SLICE_BYTES ? 1 : (uint32_t)(SLICE_BYTES / row_bytes);
}

bool rows_fill(
    struct lane *lane, struct batch *batch, struct operation *operation,
    const struct prepared *prepared)
{
    struct lane_part *part = operation->part;
    const struct run *run = &part->runs[operation->run];
    struct shard *shard = part->entries[run->entry].shard;
    struct filling filling = {
        .batch = batch,
        .operation = operation,
        .prepared = prepared,
        .shard = shard,
        .row_bytes = shard->row_bytes,
        .slot_widens = shard->variable->slot_widens,
        .sums = rule_holds(lane->config.broken, RULE_repeated_rows_are_summed),
        .last_wins = rule_holds(lane->config.broken, RULE_last_of_a_row_wins),
        .staged_row_bytes = lane_row_bytes(part, shard)};

    assert(run->by_rows);
    assert(operation->takes_rows || operation->rows == NULL);
    shard->by_rows = true;
    if (!operation->takes_rows && shard->row_bytes > 0)
        take_rows(lane, operation);
    if (operation->rows == NULL) {
        rows_rewind(operation);
        return true;
    }
    filling.rows_per_slice = rows_per_slice(filling.staged_row_bytes);
    take_places(&filling);
    const uint64_t before = operation->byte;
    while (operation->rows != NULL && !is_full(lane, &filling)) {
        if (!add_rows(lane, &filling)) {
            batch->lacks_memory = true;
            break;
        }
        lane->work += batch->number != 0;
    }
    assert(operation->byte >= before);
    if (filling.row_count > filling.sliced)
        add_slice(&filling, false);
    if (operation->rows != NULL)
        return false;
    rows_rewind(operation);
    return true;
}
