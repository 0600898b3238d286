/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c -- rows of a variable to pieces of its shards. */
#include "client_state.h"
#include "transfer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "plural.h"
#include "update.h"

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
            return fail_for_memory(
                error, "no memory for a %s of %s", selection->verb, variable->name);
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
            return fail_for_memory(
                error, "no memory for a %s of %s", selection->verb, variable->name);
        assert(piece->bytes == 0);
        piece->kind = WIRE_PIECE_HYPERPARAMETERS;
    }
    return SUMAC_OK;
}
