/* SPDX-License-Identifier: Apache-2.0 */
/* cut_slices.c -- an operation's runs, cut into slices at the ends of blocks and of chunks. */
#include "operation_state.h"

/* What each slice has of its own is left as it is: thousands of runs have one slice each. */
static struct prepared prepare(
    const struct lane_part *part, const struct run *run, const struct update_function *function,
    struct update_slice *slice)
{
    const struct shard *shard = part->entries[run->entry].shard;
    const enum sumac_dtype dtype = shard->variable->definition.dtype;
    struct update_hyperparameters merged;
    const struct update_hyperparameters *how = lane_run_hyperparameters(part, run, &merged);

    assert(shard->variable->filled);
    assert(!run->sets);
    if (update_schedule_is_any(&how->schedule)) {
        merged = *how;
        merged.value[UPDATE_HYPERPARAMETER_LEARNING_RATE] =
            update_learning_rate(function, how, shard->version);
        how = &merged;
    }
    slice->function = function;
    slice->dtype = dtype;
    slice->scale = part->scale;
    slice->wide = false;
    slice->sources = NULL;
    slice->rows = NULL;
    update_prepare(function, dtype, how, shard->step_count + 1, slice);
    return (struct prepared){.slice = slice, .list_count = 1 + update_slot_count(function, how)};
}

static struct cursor place_in_chunks(const struct run *run, uint64_t byte)
{
    return staged_place(run->chunk, run->chunk_offset + byte);
}

/* Those that weigh nothing are not counted. */
static const struct lane_part *contributor(const struct operation *operation, uint32_t source)
{
    const struct lane_part *part = operation->parts.first;

    while (part->weight <= 0 || source-- > 0)
        part = part->in_operation.next;
    return part;
}

static const uint8_t *bytes_of(
    const struct lane_part *part, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    assert(slice->source_run < part->run_count);
    const struct cursor cursor = place_in_chunks(&part->runs[slice->source_run], at);
    *together_bytes = cursor.chunk->used - cursor.offset;
    return cursor.chunk->data + cursor.offset;
}

/* Where byte `at` of a contribution to the slice's run lies. */
static const uint8_t *contribution(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const struct operation *operation = context;

    assert(operation->sum != NULL);
    return bytes_of(contributor(operation, source), slice, at, together_bytes);
}

/* That of the lowest member, whatever it weighs: of a value that is taken as it is there is no
 * weight. */
static const uint8_t *first_contribution(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const struct operation *operation = context;

    assert(source == 0);
    return bytes_of(operation->parts.first, slice, at, together_bytes);
}

static double first_scale(const void *context, uint32_t source)
{
    const struct operation *operation = context;

    assert(source == 0);
    return operation->parts.first->scale;
}

static double scale_of(const void *context, uint32_t source)
{
    const struct operation *operation = context;

    return contributor(operation, source)->scale;
}

void step_sum(struct lane *lane)
{
    struct contributions *sum = &lane->turns->contributions;
    struct operation *operation = &lane->turns->step;

    assert(operation->state == OPERATION_OVER);
    assert(operation->parts.first != NULL);
    sum->weight = 0;
    sum->all = (struct update_sources){.context = operation, .find = contribution};
    LIST_FOREACH(const struct lane_part, part, &operation->parts, in_operation) {
        sum->all.count += part->weight > 0;
        sum->weight += part->weight;
        if (part->weight > 0 && part->scale != 1)
            sum->all.scale_of = scale_of;
    }
    sum->first =
        (struct update_sources){.context = operation, .find = first_contribution, .count = 1};
    if (operation->parts.first->scale != 1)
        sum->first.scale_of = first_scale;
    operation->sum = sum;
}

/* A slice's gradient is what all contributions, or the first, make of it. */
static void sum_up(const struct operation *operation, uint64_t byte, struct update_slice *slice)
{
    const struct run *run = &operation->part->runs[operation->run];
    const struct shard *shard = operation->part->entries[run->entry].shard;
    const uint32_t aggregation = shard->variable->definition.aggregation;
    const bool first = aggregation == SUMAC__V1__AGGREGATION__AGGREGATION_ONLY_FIRST_REPLICA;

    assert(operation->sum->weight > 0);
    slice->scale = 1; /* each source has its own */
    slice->sources = first ? &operation->sum->first : &operation->sum->all;
    slice->source_run = operation->run;
    slice->source_at = byte * lane_part_widens(operation->part, shard);
    slice->divisor =
        aggregation == SUMAC__V1__AGGREGATION__AGGREGATION_MEAN ? operation->sum->weight : 1;
}

/* Does the run overlap what an earlier one of this batch writes to? Marks the shard otherwise. */
static bool depends(
    const struct batch *batch, const struct lane_part *part, const struct run *run, uint64_t byte)
{
    struct shard *shard = part->entries[run->entry].shard;
    const uint64_t first = run->by_rows ? 0 : run->offset + byte;
    const uint64_t beyond = run->by_rows ? shard->bytes : run->offset + run->bytes;

    assert(run->by_rows || byte < run->bytes);
    assert(batch->number != 0);
    struct shard_work *work = work_of(shard);
    if (work->batch != batch->number) {
        work->batch = batch->number;
        work->batch_first = first;
        work->batch_beyond = beyond;
        return false;
    }
    if (first < work->batch_beyond && beyond > work->batch_first)
        return true;
    if (first < work->batch_first)
        work->batch_first = first;
    if (beyond > work->batch_beyond)
        work->batch_beyond = beyond;
    return false;
}

/* The blocks at one index of a shard that a run writes to: the value's, and those of the slots that
 * its function keeps. */
struct target {
    struct shard *shard;
    uint32_t index, list_count;
    bool whole;                         /* every byte of them is written */
    struct block *out[STORE_LISTS_MAX]; /* where to write, … */
    struct block *in[STORE_LISTS_MAX];  /* … and where to read: the same, or the old one */
};

static void copy_old(struct batch *batch, struct target *target, uint32_t list)
{
    struct block *block = target->out[list];

    memcpy(block->data, target->in[list]->data, block->bytes);
    batch->copied_bytes += block->bytes;
    target->in[list] = block;
}

/* False: no memory. */
static bool open_block(
    struct lane *lane, struct batch *batch, uint64_t position, struct target *target, uint32_t list)
{
    struct block *old = target->shard->list[list][target->index];
    struct block *block = store_block_write(&lane->store, old, position);

    target->in[list] = old;
    target->out[list] = block;
    if (block == NULL || block == old)
        return block != NULL;
    if (!target->whole) {
        copy_old(batch, target, list);
        return true;
    }
    assert(batch->held_count < batch->held_capacity);
    store_block_lend(old); /* its view may end before the slice has run */
    batch->held[batch->held_count++] = old;
    return true;
}

/* False: no memory for one of them, and what the others held is in their place. */
static bool
open_target(struct lane *lane, struct batch *batch, uint64_t position, struct target *target)
{
    assert(target->list_count <= target->shard->list_count);
    for (uint32_t list = 0; list < target->list_count; list++) {
        if (open_block(lane, batch, position, target, list))
            continue;
        while (list-- > 0) {
            if (target->out[list] != target->in[list])
                copy_old(batch, target, list);
        }
        return false;
    }
    return true;
}

/* What a slice reads and writes, from byte `within` of the target's blocks on. */
static void aim(struct update_slice *slice, const struct target *target, uint64_t within)
{
    slice->value_out = target->out[STORE_VALUE]->data + within;
    slice->value_in = target->in[STORE_VALUE]->data + within;
    assert(target->list_count <= 1 + target->shard->variable->slot_count);
    const uint64_t in_slot = within * target->shard->variable->slot_widens;
    for (uint32_t i = 0; i + 1 < target->list_count; i++) {
        slice->slot_out[i] = target->out[1 + i]->data + in_slot;
        slice->slot_in[i] = target->in[1 + i]->data + in_slot;
    }
}

/* The slices of one run within one block, from the operation's next byte on. False: no memory. */
static bool cut_block(
    struct lane *lane, struct batch *batch, struct operation *operation,
    const struct prepared *prepared)
{
    const struct run *run = &operation->part->runs[operation->run];
    struct shard *shard = operation->part->entries[run->entry].shard;
    const uint64_t at = run->offset + operation->byte;
    const struct block_byte first = store_block_byte(shard, STORE_VALUE, at);
    const uint64_t left = run->bytes - operation->byte;
    const uint32_t block_bytes = shard->list[STORE_VALUE][first.index]->bytes;
    uint64_t within = first.within;
    const uint64_t room = block_bytes - within;
    const uint64_t end = within + (left < room ? left : room);
    const uint64_t element = dtype_bytes(prepared->slice->dtype);
    struct target target = {
        .shard = shard,
        .index = first.index,
        .list_count = prepared->list_count,
        .whole = within == 0 && end == block_bytes};

    assert(first.index < shard->block_count);
    assert(at + left <= shard->bytes);
    if (!open_target(lane, batch, operation->position, &target))
        return false;
    struct cursor cursor = {.chunk = NULL};
    if (operation->sum == NULL)
        cursor = place_in_chunks(run, operation->byte);
    while (within < end) {
        uint64_t bytes = end - within;
        if (bytes > SLICE_BYTES)
            bytes = SLICE_BYTES;
        if (cursor.chunk != NULL && bytes > cursor.chunk->used - cursor.offset)
            bytes = cursor.chunk->used - cursor.offset;
        assert(bytes > 0 && batch->count < batch->capacity);
        struct update_slice *slice = &batch->slices[batch->count++];
        if (slice != prepared->slice)
            *slice = *prepared->slice;
        slice->count = bytes / element;
        aim(slice, &target, within);
        if (cursor.chunk != NULL)
            slice->gradient = cursor.chunk->data + cursor.offset;
        else
            sum_up(operation, operation->byte, slice);
        within += bytes;
        operation->byte += bytes;
        if (cursor.chunk == NULL)
            continue;
        cursor.offset += bytes;
        if (cursor.offset == cursor.chunk->used && cursor.chunk->in_part.next != NULL)
            cursor = (struct cursor){.chunk = cursor.chunk->in_part.next};
    }
    return true;
}

/* For what a block is cut into. */
static bool has_room(const struct batch *batch)
{
    return batch->capacity - batch->count >= SLICES_PER_BLOCK_MAX &&
           batch->held_capacity - batch->held_count >= STORE_LISTS_MAX &&
           batch->copied_bytes <= COPIED_BYTES_PER_STEP_MAX;
}

static struct shard *shard_of(const struct lane_part *part, uint32_t run)
{
    return part->entries[part->runs[run].entry].shard;
}

/* Shards of thousands of runs, and their blocks, lie anywhere: the shards of those far ahead come,
 * the lists of those nearer, the blocks of the nearest. */
STORE_FETCHES
static inline void fetch_ahead(const struct lane_part *part, uint32_t run)
{
    if (part->run_count - run <= 3 * STORE_BLOCKS_AHEAD)
        return;
    store_shard_soon(shard_of(part, run + 3 * STORE_BLOCKS_AHEAD));
    store_list_comes(shard_of(part, run + 2 * STORE_BLOCKS_AHEAD));
    store_block_comes(shard_of(part, run + STORE_BLOCKS_AHEAD));
}

void slices_fill(struct lane *lane, struct batch *batch, struct operation *operation)
{
    assert(batch->capacity >= SLICES_PER_BLOCK_MAX);
    assert(operation->state == OPERATION_RUNNING);
    while (operation->part != NULL) {
        struct lane_part *part = operation->part;
        assert(operation->run <= part->run_count);
        if (operation->run == part->run_count) {
            operation->part = part->in_operation.next;
            operation->run = 0;
            continue;
        }
        const struct run *run = &part->runs[operation->run];
        if (run->sets) { /* the runs before it are prepared, and those after it are not */
            struct update_hyperparameters merged;
            part->entries[run->entry].shard->hyperparameters =
                *lane_run_hyperparameters(part, run, &merged);
            lane->work++;
            operation->run++;
            continue;
        }
        if (batch->number != 0 && (depends(batch, part, run, operation->byte) ||
                                   (!lane_has_time(lane) && batch->count > 0)))
            return;
        fetch_ahead(part, operation->run);
        if (!has_room(batch))
            return;
        if (batch->number != 0)
            lane->work += WORK_OF_A_RUN;
        const struct update_function *function = lane_run_function(part, run);
        part->entries[run->entry].counted |= function->counts_steps;
        const struct prepared prepared = prepare(part, run, function, &batch->slices[batch->count]);
        if (run->by_rows) {
            if (!rows_fill(lane, batch, operation, &prepared))
                return;
            operation->run++;
            operation->byte = 0;
            continue;
        }
        do {
            if (!cut_block(lane, batch, operation, &prepared)) {
                batch->lacks_memory = true;
                return;
            }
        } while (operation->byte < run->bytes && has_room(batch));
        if (operation->byte < run->bytes)
            return;
        operation->run++;
        operation->byte = 0;
    }
}
