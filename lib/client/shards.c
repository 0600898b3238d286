/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c -- rows of a variable to pieces of its shards; and transfers, which carry them. */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "plural.h"
#include "text.h"
#include "update.h"

#define WAITED_FOR_BYTES 448u
#define RELEASE_US 200u /* gRPC's own threads tell of released bytes; nothing arrives then */

struct transfer *transfer_take(struct sumac_client *client)
{
    assert(client_is_locked(client));
    struct transfer *transfer = client->free_transfers;
    if (transfer != NULL) {
        assert(transfer->client == client);
        client->free_transfers = transfer->next;
        arena_reset(&transfer->arena);
    } else {
        transfer = calloc(1, sizeof *transfer);
        if (transfer == NULL)
            return NULL;
        arena_init(&transfer->arena, &memory_heap, TRANSFER_BYTES_MAX);
    }
    transfer->client = client;
    transfer->piece_count = transfer->piece_capacity = 0;
    transfer->pieces = NULL;
    transfer->gathered = NULL;
    transfer->over = transfer->synchronous = false;
    transfer->ends_us = 0;
    transfer->error.status = SUMAC_OK;
    atomic_store_explicit(&transfer->lent, 0, memory_order_relaxed);
    LIST_PREPEND(&client->live_transfers, transfer, among_live);
    return transfer;
}

void transfer_give(struct transfer *transfer)
{
    struct sumac_client *client = transfer->client;

    assert(atomic_load_explicit(&transfer->lent, memory_order_acquire) == 0);
    sumac_buffer_unref(transfer->kept);
    sumac_buffer_unref(transfer->joined);
    transfer->kept = transfer->joined = NULL;
    /* it is given away once */
    assert(transfer->among_live.prev != NULL || client->live_transfers.first == transfer);
    LIST_REMOVE(&client->live_transfers, transfer, among_live);
    transfer->next = client->free_transfers;
    client->free_transfers = transfer;
}

static bool is_given_back(void *transfer)
{
    return atomic_load_explicit(&((struct transfer *)transfer)->lent, memory_order_acquire) == 0;
}

void transfer_drop(struct transfer *transfer)
{
    struct sumac_client *client = transfer->client;

    while (!is_given_back(transfer))
        (void)client_wait(client, is_given_back, transfer, client_now_us() + RELEASE_US);
    transfer_give(transfer);
}

static bool reserve(struct transfer *transfer)
{
    if (transfer->piece_count < transfer->piece_capacity)
        return true;
    const uint32_t capacity = transfer->piece_capacity == 0 ? 8 : 2 * transfer->piece_capacity;
    struct session_piece *pieces = arena_take(&transfer->arena, capacity * sizeof *pieces);
    struct variable_shard **shards = arena_take(&transfer->arena, capacity * sizeof *shards);
    if (pieces == NULL || shards == NULL)
        return false;
    if (transfer->piece_count > 0) {
        memcpy(pieces, transfer->pieces, transfer->piece_count * sizeof *pieces);
        memcpy(shards, transfer->shards, transfer->piece_count * sizeof *shards);
    }
    transfer->pieces = pieces;
    transfer->shards = shards;
    transfer->piece_capacity = capacity;
    assert(transfer->piece_count < transfer->piece_capacity);
    return true;
}

/* The variable is there, is of this client, and has these rows. */
static enum sumac_status check_rows(
    const struct selection *selection, const struct sumac_client *client, struct sumac_range *rows,
    struct sumac_error *error)
{
    const struct sumac_variable *variable = selection->variable;

    if (variable == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED, "%s: item %zu has no variable",
            selection->verb, selection->index);
    if (variable->client != client)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNKNOWN_VARIABLE,
            "%s of %s: the variable is another client's; find it by its name with this one",
            selection->verb, variable->name);
    *rows = (struct sumac_range){.first = 0, .count = variable->rows};
    if (!selection->has_rows)
        return SUMAC_OK;
    *rows = selection->rows;
    if (variable->shape.rank == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "%s of rows of %s, which is a scalar", selection->verb, variable->name);
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

struct session_piece *transfer_add_piece(
    struct transfer *transfer, const struct selection *selection, struct variable_shard *shard)
{
    assert(client_is_locked(transfer->client));
    if (!reserve(transfer))
        return NULL;
    transfer->shards[transfer->piece_count] = shard;
    struct session_piece *piece = &transfer->pieces[transfer->piece_count++];
    *piece = (struct session_piece){
        .ps = shard->ps,
        .shard_id = shard->shard_id,
        .layout_epoch = shard->layout_epoch,
        .kind = WIRE_PIECE_VALUES,
        .function = selection->function,
        .based_on = selection->earlier_pull ? shard->earlier_version : shard->version};
    return piece;
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
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "pull of a slot of %s by indices; give has_rows and rows, or pull all of it", name);
    const struct update_function *row =
        client_know_number(client, selection->variable->function, &why);
    if (row == NULL)
        return fail(error, why.status, why.reason, "pull of a slot of %s: %s", name, why.text);
    for (*slot = 0; *slot < row->slot_count; ++*slot)
        if (strcmp(row->slot_names[*slot], selection->slot) == 0)
            return SUMAC_OK;
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MISSING_SLOTS,
        "pull of slot %.64s of %s: its function %s has no such slot; sumac_variable_describe lists "
        "the slots",
        selection->slot, name, row->name);
}

enum sumac_status selection_add(
    struct transfer *transfer, const struct selection *selection, struct sumac_error *error)
{
    struct sumac_variable *variable = selection->variable;
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
            return fail(
                error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
                "no memory for a %s of %s", selection->verb, variable->name);
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
    struct sumac_variable *variable = selection->variable;
    struct sumac_range rows;
    const enum sumac_status status = check_rows(selection, transfer->client, &rows, error);

    if (status != SUMAC_OK)
        return status;
    const bool has_value = selection->tensor->memory != NULL || selection->tensor->buffer != NULL;
    if (selection->function == 0 || selection->has_rows || selection->indices != NULL || has_value)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
            "push of %s: it sets hyperparameters %s", variable->name,
            selection->function == 0 ? "and names no function: give the one that the variable was "
                                       "created with, and what is to change"
            : has_value ? "and has a value: push that as another delta, before or after it"
                        : "of some rows: they are the whole variable's");
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        struct session_piece *piece = transfer_add_piece(transfer, selection, &variable->shards[i]);
        if (piece == NULL)
            return fail(
                error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
                "no memory for a %s of %s", selection->verb, variable->name);
        assert(piece->bytes == 0);
        piece->kind = WIRE_PIECE_HYPERPARAMETERS;
    }
    return SUMAC_OK;
}

void transfer_note_pulled(
    struct transfer *transfer, const uint64_t *versions, uint32_t version_count)
{
    for (uint32_t i = 0; i < version_count && i < transfer->piece_count; i++) {
        if (transfer->pieces[i].kind == WIRE_PIECE_SLOT_VALUE)
            continue; /* no gradient is computed from it */
        transfer->shards[i]->earlier_version = transfer->shards[i]->version;
        transfer->shards[i]->version = versions[i];
    }
}

/* A push's staleness: the versions that its shards gained, in the mean, between the pull and the
 * push. The mean over pushes forgets: each counts for a thirty-second of it. */
void transfer_note_pushed(
    struct transfer *transfer, const uint64_t *versions, uint32_t version_count)
{
    double gained = 0;
    uint32_t counted = 0;

    for (uint32_t i = 0; i < version_count && i < transfer->piece_count; i++) {
        const uint64_t based_on = transfer->pieces[i].based_on;
        if (based_on == 0 || versions[i] <= based_on)
            continue;
        gained += (double)(versions[i] - 1 - based_on);
        counted++;
    }
    if (counted == 0)
        return;
    double *mean = &transfer->client->staleness_mean;
    assert(gained >= 0);
    *mean = *mean < 0 ? gained / counted : *mean + (gained / counted - *mean) / 32;
}

void transfer_fail(struct transfer *transfer, const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    transfer->error = *error;
    if (error->status == SUMAC_DEADLINE_EXCEEDED)
        transfer->error.status = SUMAC_UNAVAILABLE;
    transfer->over = true;
}

bool transfer_is_done(void *transfer)
{
    const struct transfer *done = transfer;

    assert(client_is_locked(done->client));
    return done->over && atomic_load_explicit(&done->lent, memory_order_acquire) == 0;
}

static bool is_over(void *transfer) { return ((const struct transfer *)transfer)->over; }

void transfer_released(void *transfer, uint64_t id)
{
    (void)id;
    const unsigned before =
        atomic_fetch_sub_explicit(&((struct transfer *)transfer)->lent, 1, memory_order_release);

    assert(before > 0); /* each run of bytes is given back once */
}

/* A ps that ends its stream again and again is heard from, and takes nothing: it is named before
 * one that is silent, with its reason. */
static const char *waited_for_text(const struct transfer *transfer, char *text, size_t text_bytes)
{
    const struct sumac_client *client = transfer->client;
    const uint64_t token = (uint64_t)(uintptr_t)transfer;
    struct session_trouble trouble;
    uint32_t ps = 0;

    assert(text_bytes > 0);
    if (client->session != NULL)
        (void)session_find_owing(client->session, token, &ps);
    const char *const room =
        client->session == NULL ? NULL : session_find_room_wait(client->session, token);
    if (room != NULL) {
        (void)text_print(text, text_bytes, "room (%s)", room);
        return text;
    }
    if (client->session == NULL || !session_find_trouble(client->session, token, &trouble))
        return client_peer_text(client, ps, text, text_bytes);
    const size_t said = strlen(client_peer_text(client, trouble.ps, text, text_bytes));
    (void)text_print(
        text + said, text_bytes - said, "; its %s stream ended %s ago: %s",
        trouble.stream_kind == SESSION_PUSH_STREAM ? "push" : "pull",
        text_time_us(client_now_us() - trouble.ended_us).text, trouble.text);
    return text;
}

/* The ps that a pull waits for give it up earlier, unless they do not speak. */
static uint64_t given_up_at(const struct transfer *transfer, uint64_t given_up_us)
{
    if (transfer->ends_us == 0)
        return given_up_us;
    assert(transfer->ends_us > END_US);
    const uint64_t by_ps_us = transfer->ends_us - END_US;
    return by_ps_us < given_up_us && client_now_us() < by_ps_us ? by_ps_us : given_up_us;
}

/* For whom it waits, and how much longer until it is given up. */
static void say_wait(struct transfer *transfer, const char *noun, uint64_t given_up_us)
{
    char missing[SUMAC_ERROR_TEXT_BYTES], peer[WAITED_FOR_BYTES];

    client_ask_missing(transfer, ASKING_MS_MIN, missing, sizeof missing);
    if (transfer->over)
        return;
    const bool known = *missing != '\0';
    client_log(
        transfer->client, "a %s %s%s; gives up in %s", noun, known ? "is not over; " : "waits for ",
        known ? missing : waited_for_text(transfer, peer, sizeof peer),
        client_time_until(given_up_at(transfer, given_up_us)).text);
}

/* Until it is over or the time is, with a line now and then. */
static bool
wait_and_say(struct transfer *transfer, const char *noun, uint64_t until_us, uint64_t given_up_us)
{
    struct sumac_client *client = transfer->client;

    for (;;) {
        const uint64_t report_us = client_now_us() + REPORT_US;
        if (client_wait(client, is_over, transfer, report_us < until_us ? report_us : until_us))
            return true;
        if (client_now_us() >= until_us)
            return false;
        say_wait(transfer, noun, given_up_us);
    }
}

enum sumac_status transfer_wait(
    struct transfer *transfer, const char *noun, uint32_t timeout_ms, struct sumac_error *error)
{
    struct sumac_client *client = transfer->client;

    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    client_lock(client);
    if (timeout_ms == 0)
        timeout_ms = client->timeout_ms;
    const uint64_t given_up_us = client_now_us() + (uint64_t)timeout_ms * 1000;
    uint64_t until_us = given_up_us;
    if (until_us < transfer->ends_us && transfer->ends_us - until_us <= END_US)
        until_us = transfer->ends_us;
    char missing[SUMAC_ERROR_TEXT_BYTES] = "";
    const bool asks = timeout_ms >= ASKING_MS_MIN;
    const uint32_t patience_ms = asks ? timeout_ms - client_ps_patience_ms(timeout_ms) : 0;
    bool done = wait_and_say(transfer, noun, until_us - (uint64_t)patience_ms * 1000, given_up_us);
    if (!done && asks)
        client_ask_missing(transfer, patience_ms, missing, sizeof missing);
    done = done || wait_and_say(transfer, noun, until_us, given_up_us);
    while (done && !transfer_is_done(transfer) && client_now_us() < until_us)
        (void)client_wait(client, transfer_is_done, transfer, client_now_us() + RELEASE_US);
    done = transfer_is_done(transfer);
    enum sumac_status status = SUMAC_OK;
    if (!done) {
        char peer[WAITED_FOR_BYTES];
        const char *const waits = *missing != '\0' ? missing : "it waits for ";
        status = fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "the %s was not over within %s; %s%s", noun, text_time_ms(timeout_ms).text, waits,
            *missing != '\0' ? "" : waited_for_text(transfer, peer, sizeof peer));
    } else {
        assert(transfer->over);
        status = transfer->error.status;
        if (status == SUMAC_OK)
            slices_give(transfer);
        if (status != SUMAC_OK && error != NULL)
            *error = transfer->error;
        transfer_give(transfer);
    }
    client_unlock(client);
    return status;
}

bool transfer_poll(struct transfer *transfer)
{
    struct sumac_client *client = transfer->client;

    if (!client_is_here(client))
        return true; /* the wait says why */
    client_lock(client);
    if (!transfer_is_done(transfer))
        client_poll_once(client);
    const bool done = transfer_is_done(transfer);
    client_unlock(client);
    return done;
}
