/* SPDX-License-Identifier: Apache-2.0 */
/* operation.c -- what runs at one position, from its first slice to its last: a pull sees all of it
 * or nothing.
 *
 * Its runs are cut into slices at block and chunk boundaries (cut_slices.c). A small operation's
 * slices run at once. A large one's are given out as COMPUTE effects, and its shards are busy until
 * the last is COMPUTED: operations and pulls of a busy shard wait their turn, everything else goes
 * on. One COMPUTE takes only slices that do not depend on each other; where a run writes to what an
 * earlier one of the same COMPUTE wrote, it is left to the next.
 *
 * Where there is no memory for a block beside one that a reader needs, views end, and the block is
 * written in place. Bytes that are on their way are not written to: then the operation is stalled,
 * its shards busy, until some of them are RELEASED.
 *
 * When all is written, the operation is recorded, and every shard gets its new version; only then
 * they are let go, and whoever waited for one of them reads it. Of thousands both go on over steps.
 */
#include <float.h>

#include "operation_state.h"

#define SLICES_INLINE 64u
#define ASSIGNED_AT_ONCE_BYTES 16384u /* of a run: as long as a shard's new version takes */
#define ROWS_INLINE_MAX 4096u         /* by index */
#define TO(state) (1u << (state))

static const uint32_t moves[] = {
    [OPERATION_OVER] = TO(OPERATION_RUNNING),
    [OPERATION_RUNNING] =
        TO(OPERATION_OUT) | TO(OPERATION_STALLED) | TO(OPERATION_RAISING) | TO(OPERATION_OVER),
    [OPERATION_OUT] = TO(OPERATION_RUNNING) | TO(OPERATION_OVER),
    [OPERATION_STALLED] = TO(OPERATION_RUNNING) | TO(OPERATION_OVER),
    [OPERATION_RAISING] = TO(OPERATION_FREEING) | TO(OPERATION_OVER),
    [OPERATION_FREEING] = TO(OPERATION_OVER),
};

void lane_operation_move(struct operation *operation, enum operation_state to)
{
    assert((size_t)operation->state < sizeof moves / sizeof *moves);
    assert((moves[operation->state] & TO(to)) != 0);
    operation->state = to;
}

bool lane_operation_is_any(const struct lane *lane)
{
    return lane->turns->operations.first != NULL;
}

const struct shard *lane_operation_blocking(const struct lane *lane, const struct lane_part *part)
{
    for (uint32_t i = 0; i < part->entry_count && lane_operation_is_any(lane); i++) {
        fetch_work_ahead(part, i);
        if (is_busy(part->entries[i].shard))
            return part->entries[i].shard;
    }
    return NULL;
}

/* The value of a variable that its creator assigns is there when all of it has been assigned. From
 * `byte` of the run on; of one by rows the row that this byte of its rows is of. */
static void
note_assigned(struct lane *lane, struct shard *shard, const struct run *run, uint64_t byte)
{
    struct variable *variable = shard->variable;
    const uint64_t left = run->bytes - byte;

    assert(definition_is_assigned(&variable->definition));
    if (run->by_rows) {
        const struct row_piece *piece = run->list->first;
        uint64_t row = byte / shard->row_bytes;
        for (; row >= piece->count; piece = piece->next)
            row -= piece->count;
        store_assigned(
            &lane->store, shard, update_row_of(piece->keys[row]) * shard->row_bytes,
            shard->row_bytes);
    } else {
        store_assigned(
            &lane->store, shard, run->offset + byte,
            left < ASSIGNED_AT_ONCE_BYTES ? left : ASSIGNED_AT_ONCE_BYTES);
    }
    if (shard->unassigned == NULL)
        lane->readable++;
    if (variable->unassigned_shards > 0)
        return;
    variable->assigned = true;
    lane_report_assigned(lane, variable);
}

/* ---- its end: every shard gets its new version, then they are let go ---- */

static void
count_staleness(struct lane *lane, struct lane_session *session, const struct entry *entry)
{
    const struct shard *shard = entry->shard;
    const uint64_t based_on = entry->based_on;

    if (based_on != 0 && based_on <= shard->version) {
        histogram_add(&session->counts.staleness, shard->version - based_on);
        histogram_add(&lane->counts.staleness, shard->version - based_on);
    }
}

/* All of its shards have their versions. */
void operation_count_part(struct lane *lane, const struct lane_part *part)
{
    struct lane_session *session = part->session;
    const uint64_t took_us = lane->now_us - part->first_us;
    const double sum = session->weight + part->weight;

    assert(part->state == PART_APPLYING);
    assert(lane->now_us >= part->first_us);
    /* JSON has no infinity: a sum beyond a double would be read as none. */
    session->weight = sum > DBL_MAX ? DBL_MAX : sum;
    session->counts.pushes++;
    session->counts.collectives += part->contribution != NULL;
    lane->counts.pushes++;
    session->counts.push_bytes += part->bytes;
    lane->counts.push_bytes += part->bytes;
    histogram_add(&session->counts.push_us, took_us);
    histogram_add(&lane->counts.push_us, took_us);
}

/* Of contributions the last has the shards of all: it is cut into slices for them, its shards get
 * their version, and are busy no more when the others have let go of them. */
static bool is_for_all(const struct operation *operation, const struct lane_part *part)
{
    assert(operation->sum == NULL || part->step != 0);
    return operation->sum == NULL || part == operation->parts.last;
}

/* From the first part on: to cut them into slices, to give them their versions, to let them go. */
static void rewind_to_first(struct operation *operation)
{
    operation->part = operation->parts.first;
    operation->run = operation->entry = 0;
    operation->byte = 0;
    operation->assigns = false;
    rows_rewind(operation);
}

static void take_next_part(struct operation *operation)
{
    operation->part = operation->part->in_operation.next;
    operation->run = operation->entry = 0;
    operation->assigns = false;
}

/* So many shards and runs as are left for this step; each of them is one. */
static bool take_one(uint64_t *left)
{
    if (*left == 0)
        return false;
    --*left;
    return true;
}

/* What its creator has assigned by this run, from where the operation has come to; other functions
 * do not count. True: all of it is noted. */
static bool
note_run(struct lane *lane, struct operation *operation, const struct run *run, uint64_t *left)
{
    struct shard *shard = operation->part->entries[run->entry].shard;

    do {
        if (!take_one(left))
            return false;
        if (shard->unassigned == NULL ||
            lane_run_function(operation->part, run)->number != UPDATE_ASSIGN)
            break;
        if (run->bytes == 0)
            break;
        note_assigned(lane, shard, run, operation->byte);
        operation->byte += run->by_rows ? shard->row_bytes : ASSIGNED_AT_ONCE_BYTES;
    } while (operation->byte < run->bytes);
    operation->byte = 0;
    return true;
}

/* `counts`: whether the versions do yet. NULL: they do at once. True: all shards have theirs. */
static bool
raise_on(struct lane *lane, struct operation *operation, const bool *counts, uint64_t *left)
{
    for (; operation->part != NULL; take_next_part(operation)) {
        struct lane_part *part = operation->part;
        for (; operation->entry < part->entry_count; operation->entry++) {
            if (!take_one(left))
                return false;
            lane_part_fetch_ahead(part, operation->entry);
            const struct entry *entry = &part->entries[operation->entry];
            count_staleness(lane, part->session, entry);
            if (!is_for_all(operation, part))
                continue;
            struct shard *const shard = entry->shard;
            shard->version++;
            shard->counts = counts;
            shard->step_count += entry->counted;
            memcpy(shard->last_worker, part->session->task, sizeof shard->last_worker);
            operation->assigns |= shard->unassigned != NULL;
        }
        for (; operation->assigns && operation->run < part->run_count; operation->run++) {
            const struct run *run = &part->runs[operation->run];
            lane_part_fetch_ahead(part, run->entry);
            if (!note_run(lane, operation, run, left))
                return false;
        }
        operation_count_part(lane, part);
    }
    return true;
}

/* All of it is written: from here on it is applied, and what others read of it is said after this.
 */
static void record(struct lane *lane, const struct operation *operation)
{
    assert(operation->part == NULL);
    assert(operation->position > 0 && operation->position <= lane->store.position);
    if (operation->sum != NULL && lane->records) {
        const struct lane_part *first = operation->parts.first;
        (void)lane_record_step(lane, first->step, first, operation->position);
        return;
    }
    for (const struct lane_part *part = operation->parts.first; part != NULL && lane->records;
         part = part->in_operation.next)
        (void)lane_record_applied(lane, part, operation->position);
}

/* True: none of its shards is busy any more. */
static bool free_on(struct lane *lane, struct operation *operation, uint64_t *left)
{
    lane->readable++;
    lane->turns_taken = true;
    for (; operation->part != NULL; take_next_part(operation)) {
        struct lane_part *part = operation->part;
        for (; operation->entry < part->entry_count; operation->entry++) {
            if (!take_one(left))
                return false;
            lane_part_fetch_ahead(part, operation->entry);
            struct shard *shard = part->entries[operation->entry].shard;
            if (is_for_all(operation, part)) {
                work_of(shard)->busy.operation = NULL;
                shard->counts = NULL;
            }
            lane_part_let_go(lane, part, operation->entry);
        }
    }
    return true;
}

/* All slices have run, and nobody has seen it busy: its end is of this step. */
static void complete(struct lane *lane, struct operation *operation)
{
    uint64_t left = UINT64_MAX;

    record(lane, operation);
    rewind_to_first(operation);
    (void)raise_on(lane, operation, NULL, &left);
    lane->work += UINT64_MAX - left;
    lane_operation_move(operation, OPERATION_OVER);
}

static void release_held(struct lane *lane, struct block **held, uint32_t *held_count)
{
    for (uint32_t i = 0; i < *held_count; i++)
        store_block_released(&lane->store, held[i]);
    *held_count = 0;
}

/* Run the operation's slices here, up to its end or to the bound on what is copied. False: it
 * cannot go on yet. */
static bool run_inline(struct lane *lane, struct operation *operation)
{
    struct update_slice slices[SLICES_INLINE];
    struct block *held[SLICES_INLINE];
    struct batch batch = {.slices = slices, .held = held, .held_capacity = SLICES_INLINE};

    assert(operation->state == OPERATION_RUNNING);
    do {
        batch.count = 0;
        batch.capacity = SLICES_INLINE; /* rows have taken places at its end */
        slices_fill(lane, &batch, operation);
        for (uint32_t i = 0; i < batch.count; i++)
            update_run(&slices[i]);
        release_held(lane, held, &batch.held_count);
    } while (!batch.lacks_memory && operation->part != NULL &&
             batch.copied_bytes <= COPIED_BYTES_PER_STEP_MAX);
    return !batch.lacks_memory;
}

/* Give out the operation's next slices. False: there are none, at an end or for want of memory. */
static bool give_out(struct lane *lane, struct operation *operation)
{
    struct batch batch = {
        .slices = operation->compute.slices,
        .held = operation->held,
        .capacity = operation->capacity,
        .held_capacity = operation->capacity,
        .number = ++lane->turns->last_batch};

    assert(operation->capacity > 0);
    assert(operation->held_count == 0);
    slices_fill(lane, &batch, operation);
    if (batch.count == 0)
        return false;
    operation->held_count = batch.held_count;
    operation->compute.slice_count = batch.count;
    operation->compute.job = ++lane->turns->last_job;
    out_add(&lane->out, LANE_EFFECT_COMPUTE)->compute = &operation->compute;
    return true;
}

/* The operation's next slices, or, when it has no memory for arrays of them, all that are left.
 * True: there are no more. */
static bool advance(struct lane *lane, struct operation *operation)
{
    assert(operation->state == OPERATION_RUNNING);
    if (operation->capacity > 0 && give_out(lane, operation)) {
        lane_operation_move(operation, OPERATION_OUT);
        return false;
    }
    while (operation->capacity == 0 && operation->part != NULL && run_inline(lane, operation)) {
    }
    if (operation->part == NULL)
        return true;
    lane_operation_move(operation, OPERATION_STALLED);
    lane->turns->stalled++;
    return false;
}

static uint32_t slices_wanted(const struct operation *operation)
{
    uint64_t wanted = 2 * SLICES_PER_BLOCK_MAX;

    assert(operation->parts.first != NULL);
    LIST_FOREACH(const struct lane_part, part, &operation->parts, in_operation) {
        wanted += 4 * (part->bytes / SLICE_BYTES);
        for (uint32_t i = 0; i < part->run_count && wanted < SLICES_PER_OPERATION_MAX; i++) {
            const struct shard *shard = part->entries[part->runs[i].entry].shard;
            if (part->runs[i].by_rows)
                wanted += rows_places(part->runs[i].list->row_count);
            wanted += store_blocks_of(shard->variable, part->runs[i].bytes) + 1;
        }
    }
    return wanted < SLICES_PER_OPERATION_MAX ? (uint32_t)wanted : SLICES_PER_OPERATION_MAX;
}

static void give_arrays_back(struct lane *lane, struct operation *operation)
{
    assert(operation->held_count == 0);
    sized_pool_give(&lane->bytes, operation->held, operation->capacity * sizeof *operation->held);
    sized_pool_give(
        &lane->bytes, operation->compute.slices,
        operation->capacity * sizeof *operation->compute.slices);
    operation->compute.slices = NULL;
    operation->held = NULL;
    operation->capacity = 0;
}

static void take_arrays(struct lane *lane, struct operation *operation)
{
    const uint32_t capacity = slices_wanted(operation);

    assert(capacity >= SLICES_PER_BLOCK_MAX);
    operation->compute.slices =
        sized_pool_take_reserved(&lane->bytes, capacity * sizeof *operation->compute.slices);
    operation->held = sized_pool_take_reserved(&lane->bytes, capacity * sizeof *operation->held);
    operation->capacity = capacity;
    operation->held_count = 0;
    if (operation->compute.slices == NULL || operation->held == NULL)
        give_arrays_back(lane, operation);
}

/* What others find of an operation that lasts longer than a step. Its shards become busy at once,
 * or others could come between. */
static void enlist(struct lane *lane, struct operation *operation)
{
    LIST_PREPEND(&lane->turns->operations, operation, in_lane);
    LIST_FOREACH(struct lane_part, part, &operation->parts, in_operation) {
        lane->work += part->entry_count / BUSY_PER_WORK;
        for (uint32_t i = 0; i < part->entry_count; i++) {
            fetch_work_ahead(part, i);
            struct shard_work *work = work_of(part->entries[i].shard);
            assert(work->busy.operation == NULL || work->busy.operation == operation);
            work->busy.operation = operation;
        }
    }
}

/* Nothing of it is out. */
static void leave_slices(struct lane *lane, struct operation *operation)
{
    release_held(lane, operation->held, &operation->held_count);
    give_arrays_back(lane, operation);
}

/* Its end goes on, as far as the step has time. True: it is over. */
static bool end_on(struct lane *lane, struct operation *operation)
{
    const uint64_t most = lane->config.ended_per_step_max, time = lane_work_left(lane);
    const uint64_t bound = time < most ? time : most;
    uint64_t left = bound;

    if (operation->state == OPERATION_RAISING &&
        raise_on(lane, operation, &operation->counts, &left)) {
        operation->counts = true;
        rewind_to_first(operation);
        lane_operation_move(operation, OPERATION_FREEING);
    }
    const bool over = operation->state == OPERATION_FREEING && free_on(lane, operation, &left);
    lane->work += bound - left;
    if (!over)
        return false;
    assert(lane->turns->ending > 0);
    lane->turns->ending--;
    LIST_REMOVE(&lane->turns->operations, operation, in_lane);
    lane_operation_move(operation, OPERATION_OVER);
    return true;
}

/* All slices have run: its end begins. True: it is over with that. */
static bool end(struct lane *lane, struct operation *operation)
{
    leave_slices(lane, operation);
    record(lane, operation);
    rewind_to_first(operation);
    lane_operation_move(operation, OPERATION_RAISING);
    operation->counts = false;
    lane->turns->ending++;
    return end_on(lane, operation);
}

void lane_operation_add(struct operation *operation, struct lane_part *part)
{
    assert(operation->state == OPERATION_OVER);
    assert(part->state == PART_APPLYING);
    LIST_APPEND(&operation->parts, part, in_operation);
}

void lane_operation_remove(struct operation *operation, struct lane_part *part)
{
    assert(operation->state == OPERATION_OVER);
    assert(operation->parts.first != NULL);
    LIST_REMOVE(&operation->parts, part, in_operation);
    if (operation->parts.first == NULL)
        operation->sum = NULL;
}

/* Is it done here, in this step? Then that takes its time. */
static bool is_small(struct lane *lane, const struct operation *operation)
{
    uint64_t bytes = 0, runs = 0, entries = 0, rows = 0;

    LIST_FOREACH(const struct lane_part, part, &operation->parts, in_operation) {
        bytes += part->bytes;
        runs += part->run_count;
        entries += part->entry_count;
        rows += part->row_count;
    }
    if (bytes > lane->config.inline_bytes || rows > ROWS_INLINE_MAX || runs > RUNS_INLINE_MAX ||
        entries > RUNS_INLINE_MAX || entries > lane->config.ended_per_step_max)
        return false;
    lane->work += bytes / WORK_VECTOR_BYTES + WORK_OF_A_RUN * runs + rows;
    return true;
}

/* It has a position, and nothing of it is done. */
static void start(struct operation *operation, uint64_t position)
{
    lane_operation_move(operation, OPERATION_RUNNING);
    operation->position = position;
    rewind_to_first(operation);
    if (operation->sum != NULL)
        operation->part = operation->parts.last;
}

bool lane_operation_begin(struct lane *lane, struct operation *operation)
{
    const bool small = is_small(lane, operation);

    start(operation, ++lane->store.position);
    if (small)
        (void)run_inline(lane, operation);
    if (!small || operation->part != NULL) {
        take_arrays(lane, operation);
        enlist(lane, operation);
        return advance(lane, operation) && end(lane, operation);
    }
    complete(lane, operation);
    return true;
}

bool lane_operation_replay(struct lane *lane, struct operation *operation, uint64_t position)
{
    assert(lane->store.views.first == NULL); /* every block is written in place */
    if (lane->store.position < position)
        lane->store.position = position;
    start(operation, position);
    while (operation->part != NULL) {
        if (!run_inline(lane, operation))
            return false;
    }
    complete(lane, operation);
    return true;
}

/* NULL: it is not over. */
static struct operation *go_on(struct lane *lane, struct operation *operation)
{
    assert(operation->held_count == 0);
    lane_operation_move(operation, OPERATION_RUNNING);
    if (operation->part != NULL && !advance(lane, operation))
        return NULL;
    return end(lane, operation) ? operation : NULL;
}

struct operation *lane_operation_computed(struct lane *lane, uint64_t job)
{
    struct operation *operation = lane->turns->operations.first;

    while (operation != NULL &&
           (operation->state != OPERATION_OUT || operation->compute.job != job))
        operation = operation->in_lane.next;
    if (operation == NULL)
        return NULL;
    assert(operation->compute.slice_count > 0);
    release_held(lane, operation->held, &operation->held_count);
    return go_on(lane, operation);
}

struct operation *lane_operation_retry(struct lane *lane)
{
    struct operation *oldest = lane->turns->operations.last;

    assert(lane->turns->stalled > 0);
    while (oldest->state != OPERATION_STALLED)
        oldest = oldest->in_lane.prev;
    lane->turns->stalled--;
    return go_on(lane, oldest);
}

struct operation *lane_operation_end_on(struct lane *lane)
{
    struct operation *oldest = lane->turns->operations.last;

    assert(lane->turns->ending > 0);
    while (oldest->state != OPERATION_RAISING && oldest->state != OPERATION_FREEING)
        oldest = oldest->in_lane.prev;
    return end_on(lane, oldest) ? oldest : NULL;
}

/* Whatever it was at: its shards are not busy any more. */
static void drop(struct lane *lane, struct operation *operation)
{
    LIST_REMOVE(&lane->turns->operations, operation, in_lane);
    leave_slices(lane, operation);
    for (struct lane_part *part; (part = operation->parts.first) != NULL;) {
        for (uint32_t i = 0; i < part->entry_count; i++) {
            struct shard *shard = part->entries[i].shard;
            if (shard == NULL)
                continue;
            work_of(shard)->busy.operation = NULL;
            shard->counts = NULL;
        }
        LIST_REMOVE(&operation->parts, part, in_operation);
        part->session->applying = NULL;
        lane_session_remove(lane, part->session, part);
        lane_part_destroy(lane, part);
    }
    lane_operation_move(operation, OPERATION_OVER);
}

void lane_operation_drop_all(struct lane *lane)
{
    while (lane->turns->operations.first != NULL)
        drop(lane, lane->turns->operations.first);
    combining_drop_all(lane);
}
