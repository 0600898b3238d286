/* SPDX-License-Identifier: Apache-2.0 */
/* apply.c -- a part's runs, all of them in one operation: a pull sees all of it or nothing.
 *
 * Runs are cut into slices at block and chunk boundaries. A small part's slices run at once. A large one's are given out
 * as COMPUTE effects, and its shards are busy until the last is COMPUTED: applies and pulls of a busy shard wait their
 * turn, everything else goes on. One COMPUTE takes only slices that do not depend on each other; where a run writes to
 * what an earlier one of the same COMPUTE wrote, it is left to the next.
 *
 * Where there is no memory for a block beside one that a reader needs, views end, and the block is written in place. Bytes
 * that are on their way are not written to: then the part is stalled, its shards busy, until some of them are RELEASED.
 */
#include "lane_state.h"

#include <assert.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#define SLICES_PER_BLOCK_MAX                                                                       \
    32u /* a block's cuts at SLICE_BYTES, and at the ends of a few chunks */
#define SLICES_INLINE 64u

/* Slices as they are made, and the old blocks that they read. */
struct batch {
    struct update_slice *slices;
    struct block **held;
    uint32_t count, capacity;
    uint32_t held_count;
    uint64_t copied_bytes;
    uint64_t number; /* marks the shards it writes to; 0: its slices run in order */
};

bool lane_apply_is_blocked(const struct part *part)
{
    for (uint32_t i = 0; i < part->entry_count; i++) {
        if (part->entries[i].shard->busy)
            return true;
    }
    return false;
}

static const struct update_function *function_of(const struct part *part, const struct run *run)
{
    assert(run->entry < part->entry_count);
    assert(run->function <= part->function_count);
    return run->function == 0 ? part->entries[run->entry].shard->variable->function
                              : part->functions[run->function - 1].function;
}

/* The push's hyperparameters over the variable's own, or, of another function, over its defaults. */
static void
merge(const struct part *part, const struct run *run, struct update_hyperparameters *merged)
{
    const struct variable *variable = part->entries[run->entry].shard->variable;

    *merged = variable->hyperparameters;
    if (run->function == 0)
        return;
    const struct part_function *named = &part->functions[run->function - 1];
    if (named->function != variable->function) {
        *merged = named->given; /* given over the defaults already */
        return;
    }
    for (uint32_t i = 0; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((named->given.set >> i & 1u) != 0)
            merged->value[i] = named->given.value[i];
    }
}

/* What all slices of a run share. */
static struct update_slice prepare(const struct part *part, const struct run *run)
{
    const struct shard *shard = part->entries[run->entry].shard;
    struct update_slice slice = {
        .function = function_of(part, run), .dtype = shard->variable->dtype};
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
    while (cursor.offset >= cursor.chunk->used && cursor.chunk->next != NULL) {
        cursor.offset -= cursor.chunk->used;
        cursor.chunk = cursor.chunk->next;
    }
    assert(cursor.offset < cursor.chunk->used);
    return cursor;
}

/* Does the run overlap what an earlier one of this batch writes to? Marks the shard otherwise. */
static bool depends(const struct batch *batch, const struct part *part, uint64_t byte)
{
    const struct run *run = &part->runs[part->next_run];
    struct shard *shard = part->entries[run->entry].shard;
    const uint64_t first = run->offset + byte, beyond = run->offset + run->bytes;

    assert(byte < run->bytes);
    if (batch->number == 0)
        return false;
    if (shard->batch != batch->number) {
        shard->batch = batch->number;
        shard->batch_first = first;
        shard->batch_beyond = beyond;
        return false;
    }
    if (first < shard->batch_beyond && beyond > shard->batch_first && byte == 0)
        return true;
    if (first < shard->batch_first)
        shard->batch_first = first;
    if (beyond > shard->batch_beyond)
        shard->batch_beyond = beyond;
    return false;
}

/* Make the block writable for bytes first … first + bytes - 1 of it. *from is where to read them. NULL: no memory. */
static struct block *open_block(
    struct lane *lane, struct batch *batch, const struct part *part, struct block **place,
    bool whole, const struct block **from)
{
    struct block *block = store_block_write(&lane->store, place, part->position, from);

    if (block == NULL || *from == block)
        return block;
    if (!whole) {
        memcpy(block->data, (*from)->data, block->bytes);
        batch->copied_bytes += block->bytes;
        *from = block;
    } else {
        struct block *old = block->older;
        assert(old == *from);
        assert(batch->held_count < batch->capacity);
        store_block_lend(old); /* its view may end before the slice has run */
        batch->held[batch->held_count++] = old;
    }
    return block;
}

/* The slices of one run within one block, from the part's next byte on. False: no memory. */
static bool cut_block(
    struct lane *lane, struct batch *batch, struct part *part, const struct update_slice *prepared)
{
    const struct run *run = &part->runs[part->next_run];
    struct shard *shard = part->entries[run->entry].shard;
    const uint64_t at = run->offset + part->next_byte;
    const uint32_t index = (uint32_t)(at / lane->store.block_bytes);
    uint64_t within = at % lane->store.block_bytes;
    const uint64_t left = run->bytes - part->next_byte;
    const uint64_t room = shard->value[index]->bytes - within;
    const uint64_t end = within + (left < room ? left : room);
    const bool whole = within == 0 && end == shard->value[index]->bytes;
    const uint64_t element = sumac_dtype_bytes(prepared->dtype);
    const struct block *from;
    struct block *block = open_block(lane, batch, part, &shard->value[index], whole, &from);

    assert(index < shard->block_count);
    assert(at + left <= shard->bytes);
    if (block == NULL)
        return false;
    struct cursor cursor = place_in_chunks(run, part->next_byte);
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
            slice->slot_in[i] = slice->slot_out[i] = shard->slot[i][index]->data + within;
        within += bytes;
        part->next_byte += bytes;
        cursor.offset += bytes;
        if (cursor.offset == cursor.chunk->used && cursor.chunk->next != NULL)
            cursor = (struct cursor){.chunk = cursor.chunk->next};
    }
    return true;
}

/* Fill the batch from where the part is. False: no memory. */
static bool fill(struct lane *lane, struct batch *batch, struct part *part)
{
    while (part->next_run < part->run_count) {
        const struct run *run = &part->runs[part->next_run];
        if (depends(batch, part, part->next_byte))
            return true;
        part->entries[run->entry].counted |= function_of(part, run)->counts_steps;
        const struct update_slice prepared = prepare(part, run);
        while (part->next_byte < run->bytes) {
            if (batch->capacity - batch->count < SLICES_PER_BLOCK_MAX ||
                batch->copied_bytes > COPIED_BYTES_PER_STEP_MAX)
                return true;
            if (!cut_block(lane, batch, part, &prepared))
                return false;
        }
        part->next_run++;
        part->next_byte = 0;
    }
    return true;
}

/* The value of a variable that its creator assigns is there when all of it has been assigned: other functions do not count. */
static void note_assigned(struct lane *lane, const struct part *part, const struct run *run)
{
    struct shard *shard = part->entries[run->entry].shard;
    struct variable *variable = shard->variable;

    assert((int)variable->initializer_kind == WIRE_INITIALIZER_ASSIGNED);
    if (function_of(part, run)->number != UPDATE_ASSIGN)
        return;
    store_assigned(&lane->store, shard, run->offset, run->bytes);
    if (variable->unassigned_shards > 0)
        return;
    variable->assigned = true;
    lane_report_assigned(lane, variable);
}

static void count_push(struct lane *lane, const struct part *part)
{
    struct session *session = part->session;
    const uint64_t took_us = lane->now_us - part->first_us;

    assert(lane->now_us >= part->first_us);
    const double sum = session->weight + part->weight;

    /* A sum that is no number would be read as none. */
    session->weight = sum > DBL_MAX ? DBL_MAX : sum < -DBL_MAX ? -DBL_MAX : sum;
    session->counts.pushes++;
    lane->counts.pushes++;
    session->counts.push_bytes += part->bytes;
    lane->counts.push_bytes += part->bytes;
    histogram_add(&session->counts.push_us, took_us);
    histogram_add(&lane->counts.push_us, took_us);
}

/* All slices have run. */
static void complete(struct lane *lane, struct part *part)
{
    struct session *session = part->session;

    assert(part->next_run == part->run_count);
    assert(part->position > 0);
    assert(part->position <= lane->store.position);
    for (uint32_t i = 0; i < part->run_count; i++) {
        const struct run *run = &part->runs[i];
        const struct variable *variable = part->entries[run->entry].shard->variable;
        if ((int)variable->initializer_kind == WIRE_INITIALIZER_ASSIGNED && !variable->assigned)
            note_assigned(lane, part, run);
    }
    for (uint32_t i = 0; i < part->entry_count; i++) {
        struct shard *shard = part->entries[i].shard;
        const uint64_t based_on = part->entries[i].based_on;
        if (based_on != 0 && based_on <= shard->version) {
            histogram_add(&session->counts.staleness, shard->version - based_on);
            histogram_add(&lane->counts.staleness, shard->version - based_on);
        }
        shard->version++;
        shard->step_count += part->entries[i].counted;
        shard->busy = false;
        memcpy(shard->last_worker, session->task, sizeof shard->last_worker);
    }
    count_push(lane, part);
}

static void release_held(struct lane *lane, struct block **held, uint32_t *held_count)
{
    for (uint32_t i = 0; i < *held_count; i++)
        store_block_released(&lane->store, held[i]);
    *held_count = 0;
}

/* Run the part's slices here, up to its end or to the bound on what is copied. False: it cannot go on yet. */
static bool run_inline(struct lane *lane, struct part *part)
{
    struct update_slice slices[SLICES_INLINE];
    struct block *held[SLICES_INLINE];
    struct batch batch = {.slices = slices, .held = held, .capacity = SLICES_INLINE};
    bool filled;

    assert(part->position <= lane->store.position);
    do {
        batch.count = 0;
        filled = fill(lane, &batch, part);
        for (uint32_t i = 0; i < batch.count; i++)
            update_run(&slices[i]);
        release_held(lane, held, &batch.held_count);
    } while (filled && part->next_run < part->run_count &&
             batch.copied_bytes <= COPIED_BYTES_PER_STEP_MAX);
    return filled;
}

/* Give out the next batch of the job's slices. False: there is none, at an end or for want of memory. */
static bool compute(struct lane *lane, struct job *job)
{
    struct batch batch = {
        .slices = job->compute.slices,
        .held = job->held,
        .capacity = job->capacity,
        .number = ++lane->last_batch};
    struct lane_effect *effect = NULL;

    assert(job->capacity > 0);
    assert(job->held_count == 0);
    while (effect == NULL) {
        batch.count = 0;
        (void)fill(lane, &batch, job->part);
        if (batch.count == 0)
            return false;
        effect = out_add(&lane->out, LANE_EFFECT_COMPUTE);
        if (effect != NULL)
            break;
        for (uint32_t i = 0; i < batch.count; i++) /* no memory to give them out */
            update_run(&batch.slices[i]);
        release_held(lane, batch.held, &batch.held_count);
        batch.number = ++lane->last_batch;
    }
    job->held_count = batch.held_count;
    job->compute.slice_count = batch.count;
    job->compute.job = ++lane->last_job;
    effect->compute = &job->compute;
    return true;
}

static void free_job(struct lane *lane, struct job *job)
{
    struct job **link = &lane->jobs;

    assert(lane->jobs != NULL);
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    release_held(lane, job->held, &job->held_count);
    sized_pool_give(&lane->bytes, job->held, job->capacity * sizeof *job->held);
    sized_pool_give(&lane->bytes, job->compute.slices, job->capacity * sizeof *job->compute.slices);
}

/* The job's next slices, or, when it has no memory for arrays of them, all that are left. True: there are no more. */
static bool advance(struct lane *lane, struct job *job)
{
    struct part *part = job->part;

    assert(part->session->applying == part);
    assert(!job->stalled);
    if (job->capacity > 0 && compute(lane, job))
        return false;
    while (job->capacity == 0 && part->next_run < part->run_count && run_inline(lane, part)) {
    }
    job->stalled = part->next_run < part->run_count;
    lane->stalled_jobs += job->stalled;
    return !job->stalled;
}

/* True: all of it has been done at once. */
static bool start_job(struct lane *lane, struct part *part)
{
    struct job *job = &part->session->job;
    uint64_t wanted = 4 * (part->bytes / SLICE_BYTES) + 2ull * part->run_count +
                      part->bytes / lane->store.block_bytes + 2 * SLICES_PER_BLOCK_MAX;

    assert(part->session->applying == part);
    if (wanted > SLICES_PER_JOB_MAX)
        wanted = SLICES_PER_JOB_MAX;
    *job = (struct job){.next = lane->jobs, .part = part, .capacity = (uint32_t)wanted};
    lane->jobs = job;
    job->compute.slices =
        sized_pool_take_reserved(&lane->bytes, job->capacity * sizeof *job->compute.slices);
    job->held = sized_pool_take_reserved(&lane->bytes, job->capacity * sizeof *job->held);
    if (job->compute.slices == NULL || job->held == NULL) {
        sized_pool_give(
            &lane->bytes, job->compute.slices, job->capacity * sizeof *job->compute.slices);
        sized_pool_give(&lane->bytes, job->held, job->capacity * sizeof *job->held);
        *job = (struct job){.next = job->next, .part = part};
    }
    for (uint32_t i = 0; i < part->entry_count; i++)
        part->entries[i].shard->busy = true;
    if (!advance(lane, job))
        return false;
    free_job(lane, job);
    return true;
}

bool lane_apply_begin(struct lane *lane, struct part *part)
{
    assert(part->state == PART_APPLYING);
    assert(part->next_run == 0);
    assert(!lane_apply_is_blocked(part));
    part->position = ++lane->store.position;
    if (part->bytes <= inline_bytes(lane))
        (void)run_inline(lane, part);
    if ((part->bytes > inline_bytes(lane) || part->next_run < part->run_count) &&
        !start_job(lane, part))
        return false;
    complete(lane, part);
    return true;
}

static void end_job(struct lane *lane, struct job *job)
{
    struct part *part = job->part;
    struct session *session = part->session;

    assert(session->applying == part);
    free_job(lane, job);
    complete(lane, part);
    lane_turn_finish(lane, part);
    lane_pull_attend_all(lane);
    lane_turn_retry_waiting(lane);
    lane_turn_take(lane, session);
}

void lane_apply_computed(struct lane *lane, const struct lane_event *event)
{
    struct job *job = lane->jobs;

    while (job != NULL && (job->stalled || job->compute.job != event->job))
        job = job->next;
    if (job == NULL)
        return;
    assert(job->part->session->applying == job->part);
    release_held(lane, job->held, &job->held_count);
    if (job->part->next_run == job->part->run_count || advance(lane, job))
        end_job(lane, job);
}

void lane_apply_retry(struct lane *lane)
{
    uint32_t tries = lane->stalled_jobs;

    while (tries-- > 0 && lane->stalled_jobs > 0) {
        struct job *job = lane->jobs;
        for (struct job *next = job; next != NULL; next = next->next) {
            if (next->stalled)
                job = next; /* the one that has waited longest */
        }
        assert(job->stalled);
        job->stalled = false;
        lane->stalled_jobs--;
        if (advance(lane, job))
            end_job(lane, job);
    }
}

bool lane_apply_half(struct lane *lane, struct part *part)
{
    const uint32_t run_count = part->run_count;

    assert(part->next_run == 0);
    if (run_count < 2)
        return false;
    part->position = ++lane->store.position;
    part->half_applied = true;
    part->run_count = run_count / 2;
    (void)run_inline(lane, part);
    part->run_count = run_count;
    return true;
}

void lane_apply_other_half(struct lane *lane, struct part *part)
{
    assert(part->half_applied);
    (void)run_inline(lane, part);
    complete(lane, part);
}

void lane_apply_drop_jobs(struct lane *lane)
{
    while (lane->jobs != NULL) {
        struct part *part = lane->jobs->part;
        assert(part->session->applying == part);
        for (uint32_t i = 0; i < part->entry_count; i++)
            part->entries[i].shard->busy = false;
        free_job(lane, lane->jobs);
        lane_session_remove(part->session, part);
        lane_part_destroy(lane, part);
    }
}
