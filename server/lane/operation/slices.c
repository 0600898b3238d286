/* SPDX-License-Identifier: Apache-2.0 */
/* slices.c -- an operation's runs, cut into slices at the ends of blocks and of chunks. */
#include "slices.h"

#include <assert.h>
#include <string.h>

const struct update_function *slices_function(const struct lane_part *part, const struct run *run)
{
    assert(run->entry < part->entry_count);
    assert(run->function <= part->function_count);
    return run->function == 0 ? part->entries[run->entry].shard->variable->definition.function
                              : part->functions[run->function - 1].function;
}

/* The push's hyperparameters over the variable's own, or, of another function, over its
 * defaults. */
static void
merge(const struct lane_part *part, const struct run *run, struct update_hyperparameters *merged)
{
    const struct variable *variable = part->entries[run->entry].shard->variable;

    *merged = variable->definition.hyperparameters;
    if (run->function == 0)
        return;
    const struct part_function *named = &part->functions[run->function - 1];
    if (named->function != variable->definition.function) {
        *merged = named->given; /* given over the defaults already */
        return;
    }
    for (uint32_t i = 0; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((named->given.set >> i & 1u) != 0)
            merged->value[i] = named->given.value[i];
    }
}

/* What all slices of a run share. */
static struct update_slice prepare(const struct lane_part *part, const struct run *run)
{
    const struct shard *shard = part->entries[run->entry].shard;
    struct update_slice slice = {
        .function = slices_function(part, run), .dtype = shard->variable->definition.dtype};
    struct update_hyperparameters merged;

    assert(shard->variable->filled);
    merge(part, run, &merged);
    update_prepare(slice.function, slice.dtype, &merged, shard->step_count + 1, &slice);
    return slice;
}

/* A place in a run's staged bytes. */
struct cursor {
    const struct chunk *chunk;
    uint64_t offset;
};

static struct cursor place_in_chunks(const struct run *run, uint64_t byte)
{
    struct cursor cursor = {.chunk = run->chunk, .offset = run->chunk_offset + byte};

    assert(cursor.chunk != NULL);
    while (cursor.offset >= cursor.chunk->used && cursor.chunk->in_part.next != NULL) {
        cursor.offset -= cursor.chunk->used;
        cursor.chunk = cursor.chunk->in_part.next;
    }
    assert(cursor.offset < cursor.chunk->used);
    return cursor;
}

/* Does the run overlap what an earlier one of this batch writes to? Marks the shard otherwise. */
static bool depends(
    const struct batch *batch, const struct lane_part *part, const struct run *run, uint64_t byte)
{
    const uint64_t first = run->offset + byte, beyond = run->offset + run->bytes;

    assert(byte < run->bytes);
    if (batch->number == 0)
        return false;
    struct shard_work *work = work_of(part->entries[run->entry].shard);
    if (work->batch != batch->number) {
        work->batch = batch->number;
        work->batch_first = first;
        work->batch_beyond = beyond;
        return false;
    }
    if (first < work->batch_beyond && beyond > work->batch_first && byte == 0)
        return true;
    if (first < work->batch_first)
        work->batch_first = first;
    if (beyond > work->batch_beyond)
        work->batch_beyond = beyond;
    return false;
}

/* Make the block writable for bytes first … first + bytes - 1 of it. *from is where to read them.
 * NULL: no memory. */
static struct block *open_block(
    struct lane *lane, struct batch *batch, uint64_t position, struct block *old, bool whole,
    const struct block **from)
{
    struct block *block = store_block_write(&lane->store, old, position);

    *from = old;
    if (block == NULL || block == old)
        return block;
    if (!whole) {
        memcpy(block->data, old->data, block->bytes);
        batch->copied_bytes += block->bytes;
        *from = block;
    } else {
        assert(batch->held_count < batch->capacity);
        store_block_lend(old); /* its view may end before the slice has run */
        batch->held[batch->held_count++] = old;
    }
    return block;
}

/* The slices of one run within one block, from the operation's next byte on. False: no memory. */
static bool cut_block(
    struct lane *lane, struct batch *batch, struct operation *operation,
    const struct update_slice *prepared)
{
    const struct run *run = &operation->part->runs[operation->run];
    struct shard *shard = operation->part->entries[run->entry].shard;
    const uint64_t at = run->offset + operation->byte;
    const uint32_t index = (uint32_t)(at / lane->store.block_bytes);
    uint64_t within = at % lane->store.block_bytes;
    const uint64_t left = run->bytes - operation->byte;
    struct block *old = shard->list[STORE_VALUE][index];
    const uint64_t room = old->bytes - within;
    const uint64_t end = within + (left < room ? left : room);
    const bool whole = within == 0 && end == old->bytes;
    const uint64_t element = sumac_dtype_bytes(prepared->dtype);
    const struct block *from;
    struct block *block = open_block(lane, batch, operation->position, old, whole, &from);

    assert(index < shard->block_count);
    assert(at + left <= shard->bytes);
    if (block == NULL)
        return false;
    struct cursor cursor = place_in_chunks(run, operation->byte);
    while (within < end) {
        uint64_t bytes = end - within;
        if (bytes > SLICE_BYTES)
            bytes = SLICE_BYTES;
        if (bytes > cursor.chunk->used - cursor.offset)
            bytes = cursor.chunk->used - cursor.offset;
        assert(bytes > 0 && batch->count < batch->capacity);
        struct update_slice *slice = &batch->slices[batch->count++];
        *slice = *prepared;
        slice->count = bytes / element;
        slice->value_out = block->data + within;
        slice->value_in = from->data + within;
        slice->gradient = cursor.chunk->data + cursor.offset;
        for (uint32_t i = 0; i < slice->function->slot_count; i++)
            slice->slot_in[i] = slice->slot_out[i] = shard->list[1 + i][index]->data + within;
        within += bytes;
        operation->byte += bytes;
        cursor.offset += bytes;
        if (cursor.offset == cursor.chunk->used && cursor.chunk->in_part.next != NULL)
            cursor = (struct cursor){.chunk = cursor.chunk->in_part.next};
    }
    return true;
}

/* The rest of one part's runs. False: no memory, or no room for more. */
static bool fill_part(struct lane *lane, struct batch *batch, struct operation *operation)
{
    struct lane_part *part = operation->part;

    assert(operation->run <= part->run_count);
    while (operation->run < part->run_count) {
        const struct run *run = &part->runs[operation->run];
        if (depends(batch, part, run, operation->byte))
            return false;
        part->entries[run->entry].counted |= slices_function(part, run)->counts_steps;
        const struct update_slice prepared = prepare(part, run);
        while (operation->byte < run->bytes) {
            if (batch->capacity - batch->count < SLICES_PER_BLOCK_MAX ||
                batch->copied_bytes > COPIED_BYTES_PER_STEP_MAX)
                return false;
            if (!cut_block(lane, batch, operation, &prepared)) {
                batch->lacks_memory = true;
                return false;
            }
        }
        operation->run++;
        operation->byte = 0;
    }
    return true;
}

void slices_fill(struct lane *lane, struct batch *batch, struct operation *operation)
{
    assert(batch->capacity >= SLICES_PER_BLOCK_MAX);
    assert(operation->state == OPERATION_RUNNING);
    while (operation->part != NULL && fill_part(lane, batch, operation)) {
        operation->part = operation->part->in_operation.next;
        operation->run = 0;
    }
}
