/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c -- rows of a variable to pieces of its shards, by range or by index.
 *
 *   indices  7 2 9 7        shard 0, rows 0 to 4:   2          shard 1, rows 5 to 9:   2 4 2
 *   values   a b c d                                b                                 a c d
 *
 * Rows of one shard keep their order. Where all are of one shard, the values are sent from where
 * the caller has them; else they are copied together, into the transfer's own memory.
 */
#include "transfer.h"

#include <string.h>

#include "error.h"
#include "plural.h"
#include "update.h"

/* The longest row that a ps takes by index, because a block of the ps holds whole rows. */
#define ROW_BYTES_MAX 1048576u

/* The variable is there, is of this client, and has these rows. */
static enum sumac_status check_rows(
    const struct selection *selection, const struct sumac_client *client, struct sumac_range *rows,
    struct sumac_error *error)
{
    const struct sumac_client_variable *variable = selection->variable;

    if (variable == NULL)
        return fail_argument(
            error, "%s: item %zu has no variable", selection->verb, selection->index);
    if (variable->client != client)
        return fail_invalid(
            error, SUMAC_REASON_UNKNOWN_VARIABLE,
            "%s of %s: the variable is another client's; find it by its name with this one",
            selection->verb, variable->name);
    *rows = (struct sumac_range){.first = 0, .count = variable->rows};
    if (!selection->has_rows)
        return SUMAC_OK;
    *rows = selection->rows;
    if (variable->shape.rank == 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE, "%s of rows of %s, which is a scalar", selection->verb,
            variable->name);
    if (rows->first > variable->rows || rows->count > variable->rows - rows->first)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_WRONG_SHAPE,
            "%s of %" PRIu64 " row%s from row %" PRIu64 " on of %s, which has %" PRIu64 " row%s",
            selection->verb, rows->count, plural(rows->count), rows->first, variable->name,
            variable->rows, plural(variable->rows));
    return SUMAC_OK;
}

/* The part of `rows` that a shard has. False: none. */
static bool
overlap(const struct variable_shard *shard, struct sumac_range rows, struct sumac_range *common)
{
    assert(shard->rows <= UINT64_MAX - shard->first_row);
    const uint64_t shard_end = shard->first_row + shard->rows;
    const uint64_t rows_end = rows.first + rows.count;
    const uint64_t first = shard->first_row > rows.first ? shard->first_row : rows.first;
    const uint64_t end = shard_end < rows_end ? shard_end : rows_end;
    *common = (struct sumac_range){.first = first, .count = end > first ? end - first : 0};
    return end > first;
}

/* The number of the slot that is asked for by its name. Whether the variable has it, its ps
 * knows. */
static enum sumac_status find_slot(
    struct sumac_client *client, const struct selection *selection, uint32_t *slot,
    struct sumac_error *error)
{
    const char *const name = selection->variable->name;
    struct sumac_error why;

    assert(selection->pulls);
    assert(client_is_locked(client));
    if (selection->indices != NULL)
        return fail_argument(
            error, "pull of a slot of %s by indices; give has_rows and rows, or pull all of it",
            name);
    const struct update_function *row =
        client_know_number(client, selection->variable->function, &why);
    if (row == NULL)
        return fail(error, why.status, why.reason, "pull of a slot of %s: %s", name, why.text);
    for (*slot = 0; *slot < row->slot_count; ++*slot)
        if (strcmp(row->slot_names[*slot], selection->slot) == 0)
            return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_MISSING_SLOTS,
        "pull of slot %.64s of %s: its function %s has no such slot; "
        "sumac_client_variable_describe lists "
        "the slots",
        selection->slot, name, row->name);
}

/* ---- rows by index */

/* The rows of one selection, by shard. */
struct split {
    struct sumac_client_variable *variable;
    const int64_t *indices; /* (count) */
    const uint8_t *values;  /* (count, row_bytes); of a pull NULL */
    uint64_t count, row_bytes;
    uint64_t *ends;   /* (shard_count + 1): of the rows of each shard, where the next one goes */
    int64_t *rows;    /* (count), of their shards */
    uint8_t *copied;  /* (count, row_bytes); NULL: the values are in order as they are */
    uint32_t *places; /* of a pull: (count), where each has gone to */
};

/* Shards have as many rows as the others or one less, so it is near where it would be then. */
static uint32_t find_shard(const struct sumac_client_variable *variable, uint64_t row)
{
    const struct variable_shard *const shards = variable->shards;

    assert(row < variable->rows);
    uint32_t shard =
        (uint32_t)((double)row / (double)variable->rows * (double)variable->shard_count);

    if (shard >= variable->shard_count)
        shard = variable->shard_count - 1;
    while (row < shards[shard].first_row)
        shard--;
    while (row >= shards[shard].first_row + shards[shard].rows)
        shard++;
    assert(shard < variable->shard_count);
    return shard;
}

static enum sumac_status no_memory(const struct selection *selection, struct sumac_error *error)
{
    return fail_for_memory(
        error, "no memory for a %s of %s", selection->verb, selection->variable->name);
}

static enum sumac_status check_indices(const struct selection *selection, struct sumac_error *error)
{
    const struct sumac_client_variable *variable = selection->variable;
    const struct sumac_tensor *indices = selection->indices;
    char given[128];

    if (selection->has_rows || variable->shape.rank == 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE, "%s of %s by index%s", selection->verb, variable->name,
            selection->has_rows ? " and by range: give one of them" : ", which is a scalar");
    if (indices->dtype != SUMAC_INT64 || indices->shape.rank != 1)
        return fail(
            error, SUMAC_INVALID_ARGUMENT,
            indices->dtype != SUMAC_INT64 ? SUMAC_REASON_WRONG_DATA_TYPE : SUMAC_REASON_WRONG_SHAPE,
            "%s of %s: indices are int64 of one axis, given %s of shape %s", selection->verb,
            variable->name, sumac_dtype_name(indices->dtype),
            sumac_shape_print(&indices->shape, given, sizeof given));
    if (variable->row_bytes > ROW_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE,
            "%s of %s by index: its rows have %" PRIu64 " bytes, and %u are the most; give ranges",
            selection->verb, variable->name, variable->row_bytes, ROW_BYTES_MAX);
    const enum sumac_status status = client_check_memory(
        indices, indices->shape.extent[0] * sizeof(int64_t), selection->verb, variable->name,
        error);
    return status != SUMAC_OK ? status
                              : selection_check_tensor(selection, indices->shape.extent[0], error);
}

/* How many rows each shard has of them. Fails  INVALID_ARGUMENT: a row is of none. */
static enum sumac_status
count_rows(const struct selection *selection, struct split *split, struct sumac_error *error)
{
    const struct sumac_client_variable *variable = split->variable;

    assert(split->indices != NULL || split->count == 0);
    memset(split->ends, 0, (variable->shard_count + 1) * sizeof *split->ends);
    for (uint64_t i = 0; i < split->count; i++) {
        if ((uint64_t)split->indices[i] >= variable->rows) /* or below 0 */
            return fail_invalid(
                error, SUMAC_REASON_WRONG_SHAPE,
                "%s of row %" PRId64 " of %s (index %" PRIu64 " of %" PRIu64
                "): its rows are 0 to %" PRIu64,
                selection->verb, split->indices[i], variable->name, i, split->count,
                variable->rows == 0 ? 0 : variable->rows - 1);
        split->ends[1 + find_shard(variable, (uint64_t)split->indices[i])]++;
    }
    return SUMAC_OK;
}

/* Each to its place among those of its shard: ends[s] is then where those of shard s end. */
static void place_rows(struct split *split)
{
    const struct sumac_client_variable *variable = split->variable;

    for (uint32_t i = 0; i < variable->shard_count; i++)
        split->ends[i + 1] += split->ends[i];
    assert(split->ends[variable->shard_count] == split->count);
    for (uint64_t i = 0; i < split->count; i++) {
        const uint64_t row = (uint64_t)split->indices[i];
        const uint32_t shard = find_shard(variable, row);
        const uint64_t place = split->ends[shard]++;
        split->rows[place] = (int64_t)(row - variable->shards[shard].first_row);
        if (split->places != NULL)
            split->places[i] = (uint32_t)place;
        else if (split->copied != NULL)
            memcpy(
                split->copied + place * split->row_bytes, split->values + i * split->row_bytes,
                split->row_bytes);
    }
}

/* Each shard that has rows gets a piece. Every shard gets one of a synchronous push, for members
 * may have rows of different shards, and where t or a schedule counts the push. */
static enum sumac_status
add_pieces(struct transfer *transfer, const struct selection *selection, const struct split *split)
{
    struct sumac_client_variable *variable = split->variable;
    const uint8_t *values = split->copied != NULL ? split->copied : split->values;
    const bool names_rows = split->count > 0; /* else it counts as a push to all of them */
    uint64_t first = 0;

    assert(split->row_bytes > 0);
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        const uint64_t count = split->ends[i] - first;
        if (count == 0 && names_rows && !selection->synchronous && !selection->every_shard)
            continue;
        struct session_piece *piece = transfer_add_piece(transfer, selection, &variable->shards[i]);
        if (piece == NULL)
            return SUMAC_RESOURCE_EXHAUSTED;
        piece->kind = WIRE_PIECE_ROW_INDICES;
        piece->based_on = count == 0 ? 0 : piece->based_on; /* nothing was computed from it */
        piece->rows = split->rows + first;
        piece->row_bytes = split->row_bytes;
        piece->bytes = count * split->row_bytes;
        piece->data = (uint8_t *)(uintptr_t)(values + first * split->row_bytes);
        first += count;
    }
    assert(first == split->count);
    return SUMAC_OK;
}

static bool are_of_one_shard(const struct split *split)
{
    for (uint32_t i = 0; i < split->variable->shard_count; i++) {
        if (split->ends[1 + i] > 0)
            return split->ends[1 + i] == split->count;
    }
    return true;
}

/* Check the selection, and count the rows that each shard has of it. */
static enum sumac_status begin_slices(
    struct transfer *transfer, const struct selection *selection, struct split *split,
    struct sumac_error *error)
{
    struct sumac_client_variable *variable = selection->variable;
    const enum sumac_status status = check_indices(selection, error);

    if (status != SUMAC_OK)
        return status;
    *split = (struct split){
        .variable = variable,
        .indices = sumac_tensor_data(selection->indices),
        .count = selection->indices->shape.extent[0],
        .row_bytes = selection_row_bytes(selection),
        .ends = arena_take(&transfer->arena, (variable->shard_count + 1) * sizeof *split->ends)};
    return split->ends == NULL ? no_memory(selection, error) : count_rows(selection, split, error);
}

static enum sumac_status
slices_add(struct transfer *transfer, const struct selection *selection, struct sumac_error *error)
{
    struct arena *arena = &transfer->arena;
    struct split split;
    const enum sumac_status status = begin_slices(transfer, selection, &split, error);

    if (status != SUMAC_OK || split.row_bytes == 0)
        return status;
    split.values = sumac_tensor_data(selection->tensor);
    split.rows = arena_take(arena, split.count * sizeof *split.rows);
    if (!are_of_one_shard(&split))
        split.copied = arena_take(arena, split.count * split.row_bytes);
    if (split.rows == NULL || (split.copied == NULL && !are_of_one_shard(&split)))
        return no_memory(selection, error);
    place_rows(&split);
    return add_pieces(transfer, selection, &split) == SUMAC_OK ? SUMAC_OK
                                                               : no_memory(selection, error);
}

/* The rows that differ, by an open-addressed hash of their numbers. */
struct distinct {
    uint32_t *slots; /* (slot_count, a power of two): 1 + the number of one that has come */
    uint64_t slot_count;
    int64_t *rows;   /* of those that have come, in their order */
    uint32_t *which; /* (count), of each index: the number of its row */
    uint64_t count;
};

static uint32_t number_of(struct distinct *distinct, int64_t row)
{
    uint64_t slot = ((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

    for (;; slot++) {
        uint32_t *const found = &distinct->slots[slot & (distinct->slot_count - 1)];
        if (*found == 0) {
            distinct->rows[distinct->count++] = row;
            *found = (uint32_t)distinct->count;
        }
        if (distinct->rows[*found - 1] == row)
            return *found - 1;
    }
}

/* False: no memory. */
static bool find_distinct(
    struct arena *arena, const int64_t *indices, uint64_t count, struct distinct *distinct)
{
    distinct->slot_count = 2;
    while (distinct->slot_count < 2 * count)
        distinct->slot_count *= 2;
    distinct->slots = arena_take(arena, distinct->slot_count * sizeof *distinct->slots);
    distinct->rows = arena_take(arena, count * sizeof *distinct->rows);
    distinct->which = arena_take(arena, count * sizeof *distinct->which);
    if (distinct->slots == NULL || distinct->rows == NULL || distinct->which == NULL)
        return false;
    memset(distinct->slots, 0, distinct->slot_count * sizeof *distinct->slots);
    for (uint64_t i = 0; i < count; i++)
        distinct->which[i] = number_of(distinct, indices[i]);
    assert(distinct->count <= count);
    return true;
}

/* No ps is asked for more parts than it takes of one pull. */
static enum sumac_status check_counts(
    const struct transfer *transfer, const struct sumac_client_variable *variable,
    struct sumac_error *error)
{
    for (uint32_t ps = 0; ps < transfer->client->peer_count; ps++) {
        uint64_t rows = 0;
        for (uint32_t i = 0; i < transfer->piece_count; i++) {
            const struct session_piece *piece = &transfer->pieces[i];
            if (piece->rows != NULL && piece->ps == ps)
                rows += piece->bytes / piece->row_bytes;
        }
        if (rows > WIRE_PULL_ROWS_MAX)
            return fail_invalid(
                error, SUMAC_REASON_TOO_MANY_PIECES,
                "pull of %" PRIu64 " different rows of ps %u, the last of them of %s: %u are the "
                "most; pull them in several",
                rows, ps, variable->name, WIRE_PULL_ROWS_MAX);
    }
    return SUMAC_OK;
}

/* Where each index's row will be. False: no memory. */
static bool keep_places(
    struct transfer *transfer, const struct selection *selection, const struct split *split,
    const struct distinct *distinct)
{
    struct gathered_values *gathered = arena_take(&transfer->arena, sizeof *gathered);
    const uint64_t count = selection->indices->shape.extent[0];

    if (gathered == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++)
        distinct->which[i] = split->places[distinct->which[i]];
    *gathered = (struct gathered_values){
        .next = transfer->gathered,
        .into = sumac_tensor_data(selection->tensor),
        .values = split->copied,
        .places = distinct->which,
        .count = count,
        .row_bytes = split->row_bytes};
    transfer->gathered = gathered;
    return true;
}

void slices_give(const struct transfer *transfer)
{
    for (const struct gathered_values *rows = transfer->gathered; rows != NULL; rows = rows->next)
        for (uint64_t i = 0; i < rows->count; i++)
            memcpy(
                rows->into + i * rows->row_bytes, rows->values + rows->places[i] * rows->row_bytes,
                rows->row_bytes);
}

enum sumac_status
slices_ask(struct transfer *transfer, const struct selection *selection, struct sumac_error *error)
{
    struct arena *arena = &transfer->arena;
    struct distinct distinct = {.count = 0};
    struct split split;
    enum sumac_status status = begin_slices(transfer, selection, &split, error);

    assert(selection->pulls);
    if (status != SUMAC_OK || split.row_bytes == 0 || split.count == 0)
        return status;
    if (!find_distinct(arena, split.indices, split.count, &distinct))
        return no_memory(selection, error);
    split.indices = distinct.rows;
    split.count = distinct.count;
    status = count_rows(selection, &split, error);
    assert(status == SUMAC_OK); /* they are some of those before */
    split.rows = arena_take(arena, split.count * sizeof *split.rows);
    split.places = arena_take(arena, split.count * sizeof *split.places);
    split.copied = arena_take(arena, split.count * split.row_bytes);
    if (split.rows == NULL || split.places == NULL || split.copied == NULL)
        return no_memory(selection, error);
    place_rows(&split);
    if (!keep_places(transfer, selection, &split, &distinct) ||
        add_pieces(transfer, selection, &split) != SUMAC_OK)
        return no_memory(selection, error);
    return check_counts(transfer, selection->variable, error);
}

/* ---- a selection */

enum sumac_status selection_add(
    struct transfer *transfer, const struct selection *selection, struct sumac_error *error)
{
    struct sumac_client_variable *variable = selection->variable;
    struct sumac_range rows = {.first = 0}, common;
    enum sumac_status status = check_rows(selection, transfer->client, &rows, error);

    uint32_t slot = 0;
    if (status == SUMAC_OK && selection->slot != NULL)
        status = find_slot(transfer->client, selection, &slot, error);
    if (status == SUMAC_OK && selection->indices != NULL)
        return selection->pulls ? slices_ask(transfer, selection, error)
                                : slices_add(transfer, selection, error);
    if (status == SUMAC_OK)
        status = selection_check_tensor(selection, rows.count, error);
    if (status != SUMAC_OK)
        return status;
    const uint64_t row_bytes = selection_row_bytes(selection);
    uint8_t *data = sumac_tensor_data(selection->tensor);
    uint64_t covered = 0;
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        struct variable_shard *shard = &variable->shards[i];
        const bool has_rows = overlap(shard, rows, &common);
        if (!has_rows && !selection->every_shard)
            continue;
        struct session_piece *piece = transfer_add_piece(transfer, selection, shard);
        if (piece == NULL)
            return no_memory(selection, error);
        if (!has_rows) {
            piece->based_on = 0; /* nothing was computed from it */
            continue;
        }
        assert(common.first >= shard->first_row);
        covered += common.count;
        if (selection->slot != NULL) {
            piece->kind = WIRE_PIECE_SLOT_VALUE;
            piece->slot = slot;
        }
        piece->offset_bytes = (common.first - shard->first_row) * row_bytes;
        piece->bytes = common.count * row_bytes;
        piece->data = data + (common.first - rows.first) * row_bytes;
    }
    assert(covered == rows.count); /* all of the tensor's bytes, and each once */
    return SUMAC_OK;
}

enum sumac_status selection_set(
    struct transfer *transfer, const struct selection *selection, struct sumac_error *error)
{
    struct sumac_client_variable *variable = selection->variable;
    struct sumac_range rows;
    const enum sumac_status status = check_rows(selection, transfer->client, &rows, error);

    if (status != SUMAC_OK)
        return status;
    const bool has_value = selection->tensor->memory != NULL || selection->tensor->buffer != NULL;
    if (selection->function == 0 || selection->has_rows || selection->indices != NULL || has_value)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER, "push of %s: it sets hyperparameters %s",
            variable->name,
            selection->function == 0 ? "and names no function: give the one that the variable was "
                                       "created with, and what is to change"
            : has_value ? "and has a value: push that as another delta, before or after it"
                        : "of some rows: they are the whole variable's");
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        struct session_piece *piece = transfer_add_piece(transfer, selection, &variable->shards[i]);
        if (piece == NULL)
            return no_memory(selection, error);
        assert(piece->bytes == 0);
        piece->kind = WIRE_PIECE_HYPERPARAMETERS;
    }
    return SUMAC_OK;
}
