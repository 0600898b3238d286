/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c -- a push or a pull under way: its pieces, and its result. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

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

void transfer_note_result(struct transfer *transfer, const struct session_effect *effect)
{
    const wire_collective_result *result = effect->result;
    struct sumac_error error;

    assert(result->n_shape <= SUMAC_RANK_MAX);
    if (effect->joined.data == NULL)
        return;
    transfer->result_shape.rank = (uint32_t)result->n_shape;
    for (uint32_t i = 0; i < transfer->result_shape.rank; i++)
        transfer->result_shape.extent[i] = result->shape[i];
    if (sumac_buffer_create(effect->joined.bytes, &transfer->joined) != SUMAC_OK) {
        (void)fail_for_memory(
            &error, "no memory for the %zu bytes that a round of a collective came to",
            effect->joined.bytes);
        transfer_fail(transfer, &error);
        return;
    }
    if (effect->joined.bytes > 0)
        memcpy(sumac_buffer_data(transfer->joined), effect->joined.data, effect->joined.bytes);
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

void transfer_released(void *transfer, uint64_t id)
{
    (void)id;
    const unsigned before =
        atomic_fetch_sub_explicit(&((struct transfer *)transfer)->lent, 1, memory_order_release);

    assert(before > 0); /* each run of bytes is given back once */
}
