/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c -- one event in, its effects out: who handles which event, and what is done at the end of
 * every step. */
#include "handlers.h"

#include "error.h"
#include "listing.h"

#define STEP_ARENA_BYTES_MAX                                                                       \
    (512u << 20) /* far above what one step makes: answers end at about 1 MiB */
#define STRINGS_ARENA_BYTES_MAX (8u << 20)
#define FIRST_EPOCH 1u

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void init_pools(struct lane *lane)
{
    const struct memory *memory = lane->memory;

    assert(lane->memory != NULL);
    arena_init(&lane->arena, memory, STEP_ARENA_BYTES_MAX);
    arena_init(&lane->strings, memory, STRINGS_ARENA_BYTES_MAX);
    store_init(&lane->store, memory, lane->config.block_bytes, lane->config.view_bytes_max);
    lane->store.functions = &lane->functions;
    if (lane->config.kept_row_bytes_min != 0)
        lane->store.kept_row_bytes_min = lane->config.kept_row_bytes_min;
    if (lane->config.state_bytes_max != 0)
        store_bound_state(&lane->store, lane->config.state_bytes_max);
    sized_pool_init(&lane->bytes, memory, lane->config.staging_bytes_max);
    lane_session_bound_pool(lane);
}

static bool init_rooms(struct lane *lane)
{
    if (!functions_init(&lane->functions, lane->memory, lane->config.plugins) ||
        !lane_part_init(lane))
        return false;
    lane_contributions_init(lane, lane_collective_end_unwanted);
    return lane_peer_init(lane) && lane_turn_init(lane) && lane_pull_init(lane);
}

static void deinit_all(struct lane *lane)
{
    lane_pull_deinit(lane);
    lane_turn_deinit(lane);
    lane_peer_deinit(lane);
    lane_contributions_deinit(lane);
    lane_part_deinit(lane);
    sized_pool_deinit(&lane->bytes);
    store_deinit(&lane->store);
    functions_deinit(&lane->functions);
    arena_deinit(&lane->strings);
    out_deinit(&lane->out);
    arena_deinit(&lane->arena);
}

/* NULL stays NULL, and becomes it when there is no memory. */
static char *copy_text(struct lane *lane, const char *text)
{
    const size_t bytes = text == NULL ? 0 : strlen(text) + 1;
    char *copy = text == NULL ? NULL : arena_take(&lane->strings, bytes);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

static void fill_in(uint32_t *size, uint32_t otherwise)
{
    if (*size == 0)
        *size = otherwise;
}

/* What the configuration leaves to us. */
static void fill_in_sizes(struct lane_config *config)
{
    fill_in(&config->inline_bytes, LANE_INLINE_BYTES);
    fill_in(&config->copied_pull_bytes_max, LANE_COPIED_PULL_BYTES_MAX);
    fill_in(&config->pull_chunk_bytes, LANE_PULL_CHUNK_BYTES);
    fill_in(&config->gathered_bytes_max, LANE_GATHERED_BYTES_MAX);
    fill_in(&config->streams_max, LANE_STREAMS_MAX);
    fill_in(&config->ended_per_step_max, LANE_ENDED_PER_STEP_MAX);
    fill_in(&config->parts_per_session_max, LANE_PARTS_PER_SESSION_MAX);
    fill_in(&config->voided_per_session_max, LANE_VOIDED_PER_SESSION_MAX);
    fill_in(&config->closed_sessions_max, LANE_CLOSED_SESSIONS_MAX);
    assert(config->voided_per_session_max <= LANE_VOIDED_PER_SESSION_MAX);
    if (config->pulls_bytes_max == 0)
        config->pulls_bytes_max = LANE_PULLS_BYTES_MAX;
    if (config->collective_bytes_max == 0)
        config->collective_bytes_max = LANE_COLLECTIVE_BYTES_MAX;
}

/* The config's arrays and strings, for the lane's life. */
static bool copy_config(struct lane *lane)
{
    struct lane_config *config = &lane->config;
    const uint32_t members = config->member_count;
    const char **jobs = arena_take(&lane->strings, members * sizeof *jobs);
    uint32_t *indices = arena_take(&lane->strings, members * sizeof *indices);
    const char **addresses = arena_take(&lane->strings, config->ps_count * sizeof *addresses);
    const char **theirs = arena_take(&lane->strings, members * sizeof *theirs);

    assert(config->member_count == 0 || config->members_jobs != NULL);
    assert(config->ps_count == 0 || config->ps_addresses != NULL);
    if (jobs == NULL || indices == NULL || addresses == NULL || theirs == NULL)
        return false;
    for (uint32_t i = 0; i < members; i++) {
        jobs[i] = copy_text(lane, config->members_jobs[i]);
        indices[i] = config->members_indices[i];
        theirs[i] =
            config->members_addresses == NULL ? "" : copy_text(lane, config->members_addresses[i]);
        if (jobs[i] == NULL || theirs[i] == NULL)
            return false;
    }
    for (uint32_t i = 0; i < config->ps_count; i++) {
        lane->ps_addresses[i] = copy_text(lane, config->ps_addresses[i]);
        addresses[i] = lane->ps_addresses[i];
        if (addresses[i] == NULL && config->ps_addresses[i] != NULL)
            return false;
    }
    const char *const version = copy_text(lane, config->version);
    if (version == NULL && config->version != NULL)
        return false;
    config->members_jobs = jobs;
    config->members_indices = indices;
    config->members_addresses = theirs;
    config->ps_addresses = addresses;
    config->version = version;
    return true;
}

/* The pool has the remainder of the floors' division, too. */
static void divide_staging(struct lane *lane)
{
    const uint64_t all = lane->config.staging_bytes_max, sessions = lane->config.sessions_max;
    const uint64_t wanted = lane->config.pool_bytes_max;
    const bool none = wanted == LANE_NO_POOL;
    const uint64_t pool = none ? 0 : wanted == 0 ? all - all / 2 : wanted;

    assert(pool <= all);
    lane->grant_bytes = (all - pool) / sessions;
    lane->claims.bytes_max = none ? 0 : all - lane->grant_bytes * sessions;
}

struct lane *lane_create(const struct lane_config *config, const struct memory *memory)
{
    struct lane *lane = memory_take(memory, sizeof *lane);

    assert(config->ps_count <= LANE_PS_MAX && config->index < LANE_PS_MAX);
    assert(config->sessions_max > 0 && config->incarnation != 0);
    assert(config->lease_ms > 0 && config->ps_lost_ms > 0);
    if (lane == NULL)
        return NULL;
    memset(lane, 0, sizeof *lane);
    lane->config = *config;
    fill_in_sizes(&lane->config);
    lane->memory = memory;
    lane->index = config->index;
    lane->ps_count = config->ps_count;
    lane->epoch = FIRST_EPOCH;
    divide_staging(lane);
    lane->patience_us = earlier(config->lease_ms, config->ps_lost_ms) * 1000;
    lane->controller_heard_us = lane->last_step_us = config->started_us;
    lane->report_us = (uint64_t)config->report_ms * 1000;
    lane->report_due_us = config->started_us + lane->report_us;
    init_pools(lane);
    if (init_rooms(lane) && out_init(&lane->out, memory, &lane->arena) && copy_config(lane))
        return lane;
    lane_destroy(lane);
    return NULL;
}

static void closed_stream(struct lane *lane, const struct lane_event *event)
{
    struct lane_stream *stream = lane_stream_find(lane, event->stream);

    if (stream == NULL)
        return;
    lane_pull_drop_all(lane, stream);
    lane_stream_closed(lane, stream);
}

static void empty(struct lane *lane)
{
    lane_operation_drop_all(lane);
    while (lane->streams.first != NULL) {
        const struct lane_event closed = {.stream = lane->streams.first->id};
        closed_stream(lane, &closed);
    }
    lane_pull_reclaim_all(lane);
    lane_session_destroy_all(lane);
    lane_part_free_recorded(lane);
    assert(lane->attended.first == NULL);
    assert(lane->controller == NULL);
}

void lane_destroy(struct lane *lane)
{
    if (lane == NULL)
        return;
    if (lane->pulls != NULL) /* all rooms are there */
        empty(lane);
    deinit_all(lane);
    memory_give(lane->memory, lane, sizeof *lane);
}

/* ---- events ---- */

static void started(struct lane *lane, const struct lane_event *event)
{
    assert(!lane->serving);
    lane->serving = true;
    out_add(&lane->out, LANE_EFFECT_SERVING)->serving = true;
    if (event->cluster_id != 0)
        lane->cluster_id = event->cluster_id;
    lane->records = lane->config.records;
    lane_turn_start(lane);
}

/* Whoever joins at this ps takes it for ps 0. True: because its list of the ps is another one. */
static bool refuse_other_ps(struct lane *lane, const struct lane_event *event)
{
    const char *const *const own = (const char *const *)lane->ps_addresses;
    const wire_join_request *join = (const wire_join_request *)event->request;
    struct listing ours = {0}, theirs = {0};
    struct refused_line line;
    struct sumac_error error;

    assert(lane->ps_count <= LANE_PS_MAX);
    if (event->call_kind != LANE_CALL_JOIN || lane->ps_count == 0 || join->n_ps_addresses <= 1)
        return false;
    const char *const *const said = (const char *const *)join->ps_addresses;
    if (listing_same_ps(own, lane->ps_count, said, join->n_ps_addresses))
        return false;
    listing_add_addresses(&ours, own, lane->ps_count);
    listing_add_addresses(&theirs, said, join->n_ps_addresses);
    (void)fail(
        &error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "this is ps %u, and not ps 0: its configuration has the ps %s, that of ps %u %s; give "
        "every task the same, in the same order",
        lane->index, listing_end(&theirs), lane->index, listing_end(&ours));
    out_fail(
        &lane->out, event->call, error.status, error.reason, "join of %s: %s",
        refused_joins_who(join).text, error.text);
    if (refused_joins_line(
            &lane->refused_joins, lane->now_us, lane->index, join, error.text, &line))
        out_log(&lane->out, "%s", line.text);
    return true;
}

/* A call that ps 0 answers. On ps 0 it goes to the controller, and does not come here. */
static void refuse_call(struct lane *lane, const struct lane_event *event)
{
    const char *address = lane_ps0_address(lane);

    assert(lane->index != 0);
    if (!refuse_other_ps(lane, event))
        out_fail(
            &lane->out, event->call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_NOT_CONTROLLER,
            "this is ps %u: ask ps 0%s%s", lane->index, address == NULL ? "" : " at ",
            address == NULL ? "" : address);
}

/* lane_list_call of List …. On ps 0 no call of the controller reaches the lane. */
#define CALL_OF_LANE(METHOD, method) [LANE_CALL_##METHOD] = lane_##method##_call,
#define CALL_OF_CONTROLLER(METHOD, method) [LANE_CALL_##METHOD] = refuse_call,
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    RPC_IF_CALL(what, CALL_OF_##who(METHOD, method))
static void (*const calls[])(struct lane *lane, const struct lane_event *event) = {RPC_LIST(X)};
#undef X

static void called(struct lane *lane, const struct lane_event *event)
{
    assert(event->call != 0);
    assert(event->request != NULL);
    assert(event->call_kind < sizeof calls / sizeof calls[0]);
    calls[event->call_kind](lane, event);
}

/* What waited for it is said at the end of the step. */
static void recorded(struct lane *lane, const struct lane_event *event)
{
    assert(event->record <= lane->last_record);
    if (event->record <= lane->recorded)
        return;
    lane->recorded = event->record;
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        lane_pull_look_again(lane, stream);
        lane_stream_attend(lane, stream);
    }
}

static void run_over(struct lane *lane, const struct lane_event *event)
{
    (void)event;
    assert(lane->index == 0);
    lane->run_over = true;
}

static void ticked(struct lane *lane, const struct lane_event *event)
{
    (void)event;
    assert(!lane->exited);
    lane_turn_go_on(lane);
    lane_orders_reclaim(lane);
    lane_orders_fill(lane);
    lane_reports_close_again(lane);
    lane_pull_tick(lane);
    lane_place_tick(lane);
    lane_turn_retry_stalled(lane);
    lane_collective_tick(lane);
    lane_room_tick(lane);
    lane_step_watch(lane);
    lane_shutdown_watch(lane);
    lane_reports_renew(lane);
}

static void (*const handlers[])(struct lane *, const struct lane_event *) = {
    [LANE_EVENT_START] = started,
    [LANE_EVENT_STREAM_OPENED] = lane_stream_opened,
    [LANE_EVENT_STREAM_WRITABLE] = lane_stream_writable,
    [LANE_EVENT_STREAM_CLOSED] = closed_stream,
    [LANE_EVENT_PUSH] = lane_push_request,
    [LANE_EVENT_PULL] = lane_pull_request,
    [LANE_EVENT_ORDER] = lane_order_received,
    [LANE_EVENT_CALL] = called,
    [LANE_EVENT_RELEASED] = lane_pulled_released,
    [LANE_EVENT_COMPUTED] = lane_turn_computed,
    [LANE_EVENT_RECORDED] = recorded,
    [LANE_EVENT_TERMINATE] = lane_shutdown_terminate,
    [LANE_EVENT_RUN_OVER] = run_over,
    [LANE_EVENT_PS0_PROBED] = lane_shutdown_probed,
    [LANE_EVENT_TICK] = ticked,
};

/* ---- a step ---- */

/* A process that was suspended takes its own sleep for nobody's silence. Ticks come every quarter
 * of the patience, so half of it without any event is a sleep. */
static void forgive_sleep(struct lane *lane)
{
    const uint64_t jump_us = lane->now_us - lane->last_step_us;

    lane->resumed_us = lane->now_us;
    lane->controller_heard_us += jump_us;
    lane_place_excuse(lane, jump_us);
    lane_pull_excuse(lane, jump_us);
    lane_collective_excuse(lane, jump_us);
}

/* The next tick: soon enough for every deadline, and at once while new variables are being filled,
 * or there is more to say. */
static void wake(struct lane *lane)
{
    uint64_t due = lane->now_us + lane->patience_us / 4;

    due = earlier(earlier(due, lane->pulls_due_us), lane_place_due_us(lane));
    due = earlier(due, lane_turn_due_us(lane));
    if (lane->pulls_leaving.first != NULL || lane->store.unfilled.first != NULL ||
        store_is_leaving(&lane->store) || lane->attended.first != NULL)
        due = lane->now_us;
    if (lane->terminating || lane->ended)
        due = earlier(due, lane->exit_by_us);
    if (lane->wake_us > lane->now_us && lane->wake_us <= due)
        return;
    lane->wake_us = due;
    out_wake(&lane->out, due);
}

static void flush_one(struct lane *lane, struct lane_stream *stream)
{
    assert(!stream->attended);
    if (stream->state == STREAM_ENDED) {
        lane_pull_drop_all(lane, stream);
        return;
    }
    if (!stream->writable)
        return;
    switch (stream->kind) {
    case LANE_STREAM_PUSH:
        lane_pulled_beside_flush(lane, stream);
        return;
    case LANE_STREAM_PULL:
        lane_pulled_flush(lane, stream);
        return;
    case LANE_STREAM_PEER:
        lane_reports_flush(lane, stream);
        return;
    }
}

/* Everything that the writable streams have to say. A step takes so long for that and no longer:
 * thousands of pulls may wait for the same push. */
static void flush(struct lane *lane)
{
    if (lane->turns_taken) { /* what pulls wait for may be there */
        LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
            if (stream->pulls.first != NULL)
                lane_pull_wake(lane, stream);
        }
    }
    lane->turns_taken = false;
    struct lane_stream *left = NULL, *stream; /* the last one that waits for the next step */
    while ((stream = left == NULL ? lane->attended.first : left->among_attended.next) != NULL) {
        assert(stream->attended);
        if (!lane_has_time(lane) && stream->kind != LANE_STREAM_PEER &&
            stream->state != STREAM_ENDED) {
            left = stream;
            continue;
        }
        LIST_REMOVE(&lane->attended, stream, among_attended);
        stream->attended = false;
        lane->work++;
        flush_one(lane, stream);
    }
}

/* Somebody would wait in vain for what was lost: they learn it from this ps's end. */
static void end_overflowed(struct lane *lane)
{
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_EXIT);

    assert(lane->out.effects.lost);
    lane->exited = true;
    effect->exit_code = LANE_EXIT_NO_MEMORY;
    effect->text = "no memory for what this ps has to say: it ends";
    (void)fail(
        &effect->error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
        "ps %u ends, and its state with it: %s", lane->index, effect->text);
}

void lane_step(struct lane *lane, const struct lane_event *event, struct lane_effects *effects)
{
    assert((size_t)event->kind < sizeof handlers / sizeof *handlers);
    assert(handlers[event->kind] != NULL); /* the others are the controller's */
    if (!event->follows && lane->records)
        lane_part_free_recorded(lane);
    if (!event->follows && lane->arena.bytes_used > FLUSHED_BYTES_MAX / 2)
        arena_deinit(&lane->arena); /* seldom as much is needed again */
    else if (!event->follows)
        arena_reset(&lane->arena);
    out_reset(&lane->out);
    lane->out.now_us = event->now_us;
    if (!event->follows) {
        lane->work = 0;
        lane->shows_blocks = false;
    }
    lane->event = event;
    if (event->now_us > lane->now_us)
        lane->now_us = event->now_us;
    assert(lane->last_step_us <= lane->now_us);
    if (lane->now_us - lane->last_step_us > lane->patience_us / 2)
        forgive_sleep(lane);
    lane->last_step_us = lane->now_us;
    if (!lane->exited || event->kind == LANE_EVENT_STREAM_CLOSED ||
        event->kind == LANE_EVENT_RELEASED)
        handlers[event->kind](lane, event);
    if (lane->claims.waiting > 0)
        lane_room_share(lane);
    do
        flush(lane);
    while ((lane->terminating || lane->ended) && lane_shutdown_goes_on(lane));
    if (lane->pulls_leaving.first != NULL)
        lane_pull_reclaim(lane);
    if (store_is_leaving(&lane->store))
        lane_orders_reclaim(lane);
    wake(lane);
    if (lane->out.effects.lost && !lane->exited)
        end_overflowed(lane);
    *effects = out_effects(&lane->out);
    effects->took_us = (uint32_t)(lane_work_done(lane) / WORK_PER_US);
    lane->event = NULL;
}

bool lane_step_is_long(const struct lane *lane) { return !lane_has_time(lane); }

uint64_t lane_cluster_id(const struct lane *lane) { return lane->cluster_id; }

const struct lane_config *lane_config(const struct lane *lane) { return &lane->config; }

uint64_t lane_peek(const struct lane *lane, uint64_t shard_id, uint8_t *out, uint64_t out_bytes)
{
    const struct shard *shard = store_shard(&lane->store, shard_id);
    uint64_t copied = 0;

    if (shard == NULL || is_busy(shard) || !shard->variable->filled || out_bytes < shard->bytes)
        return 0;
    for (uint32_t i = 0; i < shard->block_count; i++) {
        const struct block *block = shard->list[STORE_VALUE][i];
        assert(block->died == 0);
        memcpy(out + copied, block->data, block->bytes);
        copied += block->bytes;
    }
    return copied;
}
