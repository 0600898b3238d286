/* apply.c -- a part's runs, all of them in one operation: a pull sees all of it or nothing.
 *
 * Runs are cut into slices at block and chunk boundaries. A small part's slices run at once. A large one's are given out
 * as COMPUTE effects, and its shards are busy until the last is COMPUTED: applies and pulls of a busy shard wait their
 * turn, everything else goes on. One COMPUTE takes only slices that do not depend on each other; where a run writes to
 * what an earlier one of the same COMPUTE wrote, it is left to the next.
 */
#include "lane_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SLICES_PER_BLOCK_MAX                                                                       \
    32u /* a block's cuts at SLICE_BYTES, and at the ends of a few chunks */
#define SLICES_INLINE 64u

/* Slices as they are made, and the old blocks that they read. */
struct batch {
    struct update_slice *slices;
    struct block **held; /* NULL: they run at once, nothing can take a block away */
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

    merge(part, run, &merged);
    update_prepare(slice.function, slice.dtype, &merged, shard->adam_count + 1, &slice);
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

    while (cursor.offset >= cursor.chunk->used && cursor.chunk->next != NULL) {
        cursor.offset -= cursor.chunk->used;
        cursor.chunk = cursor.chunk->next;
    }
    return cursor;
}

/* Does the run overlap what an earlier one of this batch writes to? Marks the shard otherwise. */
static bool depends(const struct batch *batch, const struct part *part, uint64_t byte)
{
    const struct run *run = &part->runs[part->next_run];
    struct shard *shard = part->entries[run->entry].shard;
    const uint64_t first = run->offset + byte, beyond = run->offset + run->bytes;

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
    } else if (batch->held != NULL) {
        struct block *old = block->older;
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
        part->entries[run->entry].adam |=
            function_of(part, run)->number == SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM;
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

    if (function_of(part, run)->number != UPDATE_ASSIGN)
        return;
    store_assigned(&lane->store, shard, run->offset, run->bytes);
    for (uint32_t i = 0; i < variable->placement_count; i++) {
        const struct shard *here = variable->placements[i].here;
        if (here != NULL && here->unassigned != NULL)
            return;
    }
    variable->assigned = true;
    lane_report_assigned(lane, variable);
}

static void count_push(struct lane *lane, const struct part *part)
{
    struct session *session = part->session;
    const uint64_t took_us = lane->now_us - part->first_us;

    session->weight += part->weight;
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
        shard->adam_count += part->entries[i].adam;
        shard->busy = false;
        memcpy(shard->last_worker, session->task, sizeof shard->last_worker);
    }
    count_push(lane, part);
}

static void no_memory(struct lane *lane)
{
    lane_shutdown_lost(
        lane, SUMAC_REASON_STATE_LOST, "ps %u has no memory for a block that a reader still needs",
        lane->index);
}

/* Run the part's slices here, up to its end or to the bound on what is copied. False: no memory. */
static bool run_inline(struct lane *lane, struct part *part)
{
    struct update_slice slices[SLICES_INLINE];
    struct batch batch = {.slices = slices, .capacity = SLICES_INLINE};

    do {
        batch.count = 0;
        if (!fill(lane, &batch, part))
            return false;
        for (uint32_t i = 0; i < batch.count; i++)
            update_run(&slices[i]);
    } while (part->next_run < part->run_count && batch.copied_bytes <= COPIED_BYTES_PER_STEP_MAX);
    return true;
}

/* Give out the next batch of the job's slices. False: no memory. */
static bool compute(struct lane *lane, struct job *job)
{
    struct batch batch = {
        .slices = job->compute.slices,
        .held = job->held,
        .capacity = job->capacity,
        .number = ++lane->last_batch};
    const bool filled = fill(lane, &batch, job->part);

    job->held_count = batch.held_count;
    job->compute.slice_count = batch.count;
    struct lane_effect *effect = filled ? out_add(&lane->out, LANE_EFFECT_COMPUTE) : NULL;
    if (effect != NULL)
        effect->compute = &job->compute;
    return effect != NULL;
}

static void free_job(struct lane *lane, struct job *job)
{
    for (uint32_t i = 0; i < job->held_count; i++)
        store_block_released(&lane->store, job->held[i]);
    sized_pool_give(&lane->bytes, job->held, job->capacity * sizeof *job->held);
    sized_pool_give(&lane->bytes, job->compute.slices, job->capacity * sizeof *job->compute.slices);
    pool_give(&lane->jobs_pool, job);
}

static bool start_job(struct lane *lane, struct part *part)
{
    struct job *job = pool_take(&lane->jobs_pool);
    if (job == NULL)
        return false;
    uint64_t wanted = 4 * (part->bytes / SLICE_BYTES) + 2ull * part->run_count +
                      part->bytes / lane->store.block_bytes + 2 * SLICES_PER_BLOCK_MAX;
    if (wanted > SLICES_PER_JOB_MAX)
        wanted = SLICES_PER_JOB_MAX;
    job->capacity = (uint32_t)wanted;
    job->part = part;
    job->compute.job = ++lane->last_job;
    job->compute.slices =
        sized_pool_take(&lane->bytes, job->capacity * sizeof *job->compute.slices);
    job->held = sized_pool_take(&lane->bytes, job->capacity * sizeof *job->held);
    for (uint32_t i = 0; i < part->entry_count; i++)
        part->entries[i].shard->busy = true;
    job->next = lane->jobs;
    lane->jobs = job;
    return job->compute.slices != NULL && job->held != NULL && compute(lane, job);
}

bool lane_apply_begin(struct lane *lane, struct part *part)
{
    part->position = ++lane->store.position;
    if (part->bytes <= inline_bytes(lane)) {
        if (!run_inline(lane, part)) {
            no_memory(lane);
            return false;
        }
        if (part->next_run == part->run_count) {
            complete(lane, part);
            return true;
        }
    }
    if (!start_job(lane, part))
        no_memory(lane);
    return false;
}

void lane_apply_computed(struct lane *lane, const struct lane_event *event)
{
    struct job **link = &lane->jobs;

    while (*link != NULL && (*link)->compute.job != event->job)
        link = &(*link)->next;
    struct job *job = *link;
    if (job == NULL)
        return;
    struct part *part = job->part;
    struct session *session = part->session;
    for (uint32_t i = 0; i < job->held_count; i++)
        store_block_released(&lane->store, job->held[i]);
    job->held_count = 0;
    if (part->next_run < part->run_count) {
        job->compute.job = ++lane->last_job;
        if (!compute(lane, job))
            no_memory(lane);
        return;
    }
    *link = job->next;
    free_job(lane, job);
    complete(lane, part);
    session->applying = NULL;
    lane_turn_finish(lane, part);
    lane_pull_attend_all(lane);
    lane_turn_retry_waiting(lane);
    lane_turn_take(lane, session);
}

bool lane_apply_half(struct lane *lane, struct part *part)
{
    const uint32_t run_count = part->run_count;

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
    (void)run_inline(lane, part);
    complete(lane, part);
}

void lane_apply_drop_jobs(struct lane *lane)
{
    while (lane->jobs != NULL) {
        struct job *job = lane->jobs;
        lane->jobs = job->next;
        for (uint32_t i = 0; i < job->part->entry_count; i++)
            job->part->entries[i].shard->busy = false;
        job->part->session->applying = NULL;
        lane_part_destroy(lane, job->part);
        free_job(lane, job);
    }
}
