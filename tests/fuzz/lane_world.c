/* SPDX-License-Identifier: Apache-2.0 */
/* lane_world.c -- a lane, and a driver around it; see lane_world.h. */
#include "lane_world.h"

#include <inttypes.h>
#include <string.h>

#include "fuzz.h"
#include "text.h"

#define START_US UINT64_C(1000000)
#define MESSAGE_BYTES_MAX (4u << 20) /* gRPC's own bound */
#define FOLLOWING_STEPS_MAX 100000u
#define UNPACKED_BYTES_MAX (256u << 20)

/* ---- memory ---- */

static void *take(void *context, size_t bytes)
{
    struct world *world = context;

    if (world->takes_left == 0 || bytes > WORLD_MEMORY_BYTES_MAX - world->bytes_taken)
        return NULL;
    if (world->takes_left != UINT64_MAX)
        world->takes_left--;
    world->bytes_taken += bytes;
    return memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    struct world *world = context;

    MUST(world->bytes_taken >= bytes);
    world->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

/* ---- what the lane says ---- */

static struct world_stream *find_stream(struct world *world, uint64_t id)
{
    for (uint32_t i = 0; i < WORLD_STREAMS_MAX; i++)
        if (world->streams[i].id == id && id != 0)
            return &world->streams[i];
    return NULL;
}

/* A message that goes out is one that its receiver can read. */
static void check_message(struct world *world, const wire_message *message, uint64_t payload_bytes)
{
    const size_t bytes = wire_packed_bytes(message, payload_bytes);
    uint8_t *packed = malloc(bytes + 1);
    struct wire_received received;
    struct sumac_error error = {.status = SUMAC_OK};

    MUST(packed != NULL);
    MUST(bytes + payload_bytes <= MESSAGE_BYTES_MAX);
    wire_pack(message, 0, packed);
    const struct span span = {.data = packed, .bytes = wire_packed_bytes(message, 0)};
    if (wire_unpack(message->descriptor, &span, 1, &world->arena, &received, &error) != SUMAC_OK) {
        fprintf(stderr, "%s: %s\n", message->descriptor->name, error.text);
        MUST(error.status == SUMAC_OK);
    }
    arena_reset(&world->arena);
    free(packed);
}

static void check_error(const struct sumac_error *error)
{
    MUST(error->status != SUMAC_OK);
    MUST(error->text[0] != '\0');
    MUST(error->reason != SUMAC_REASON_UNSPECIFIED);
    MUST(text_is_utf8(error->text, strlen(error->text)));
}

static uint64_t sum_of(struct span bytes)
{
    uint64_t sum = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bytes.bytes; i++)
        sum = (sum ^ bytes.data[i]) * UINT64_C(1099511628211);
    return sum;
}

static void lend(struct world *world, const struct lane_bytes *bytes)
{
    if (bytes->hold == 0)
        return;
    MUST(world->lent_count < WORLD_LENT_MAX);
    world->lent[world->lent_count++] = (struct world_lent){
        .bytes = bytes->bytes, .hold = bytes->hold, .sum = sum_of(bytes->bytes)};
}

static void say(struct world *world, const struct lane_effect *effect, const wire_message *message)
{
    struct world_stream *stream = find_stream(world, effect->stream);
    uint64_t payload_bytes = 0;

    MUST(stream != NULL && !stream->out); /* one message at a time */
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        payload_bytes += effect->payload[i].bytes.bytes;
        lend(world, &effect->payload[i]);
    }
    check_message(world, message, payload_bytes);
    stream->out = true;
    MUST(world->writable_count < WORLD_PENDING_MAX);
    if (!stream->deaf)
        world->writable[world->writable_count++] = stream->id;
}

static void say_pulled(struct world *world, const struct lane_effect *effect)
{
    const wire_pull_answer *answer = effect->pull_answer;
    struct world_stream *stream = find_stream(world, effect->stream);
    uint64_t named = 0, came = 0;

    for (size_t i = 0; i < answer->n_pieces; i++)
        named += answer->pieces[i]->bytes;
    for (uint32_t i = 0; i < effect->payload_count; i++)
        came += effect->payload[i].bytes.bytes;
    MUST(named == came);
    say(world, effect, &answer->base);
    if (answer->request != 0 && (answer->last || answer->status != 0))
        stream->answered++;
    MUST(stream->answered <= stream->asked);
}

static void note_session(struct world *world, const uint8_t id[16])
{
    for (uint32_t i = 0; i < WORLD_SESSIONS_MAX; i++)
        if (memcmp(world->sessions[i].id, id, 16) == 0)
            return;
    struct world_session *session = &world->sessions[world->joined++ % WORLD_SESSIONS_MAX];
    *session = (struct world_session){.known = true};
    memcpy(session->id, id, 16);
}

static void note_reply(struct world *world, const wire_message *reply)
{
    if (reply->descriptor == &sumac__v1__join_reply__descriptor) {
        const wire_join_reply *joined = (const wire_join_reply *)reply;
        MUST(joined->session_id.len == 16);
        note_session(world, joined->session_id.data);
    }
    if (reply->descriptor != &sumac__v1__create_reply__descriptor)
        return;
    const wire_variable *variable = ((const wire_create_reply *)reply)->variable;
    for (size_t i = 0; i < variable->n_shards && i < 4; i++) {
        const uint32_t at = world->shard_count++ % WORLD_SHARDS_MAX;
        world->shards[at] = (struct world_shard){
            .id = variable->shards[i]->shard_id,
            .bytes = variable->shards[i]->bytes,
            .rows = variable->shards[i]->rows,
            .element_bytes = (uint32_t)sumac_dtype_bytes((enum sumac_dtype)variable->data_type)};
    }
}

static void finish_call(struct world *world, const struct lane_effect *effect)
{
    MUST(effect->call > 0 && effect->call <= world->last_call);
    MUST(world->call_waits[effect->call % WORLD_CALLS_MAX]); /* once */
    world->call_waits[effect->call % WORLD_CALLS_MAX] = NULL;
    if (effect->kind == LANE_EFFECT_FAIL) {
        check_error(&effect->error);
        return;
    }
    check_message(world, effect->reply, 0);
    note_reply(world, effect->reply);
}

static void close_stream(struct world *world, const struct lane_effect *effect)
{
    struct world_stream *stream = find_stream(world, effect->stream);

    MUST(stream != NULL);
    check_error(&effect->error);
    stream->cancelled = stream->asked; /* nothing more is owed on it */
}

static void note_order(struct world *world, const struct lane_effect *effect)
{
    const wire_peer_order *order = effect->order;
    struct world_order *kept = &world->orders[world->order_count];

    MUST(effect->ps == 1);
    check_message(world, &order->base, 0);
    world->peer_writable = true;
    if (order->alive || order->number == 0)
        return;
    MUST(world->order_count < WORLD_ORDERS_MAX);
    world->order_count++;
    *kept = (struct world_order){.number = order->number, .is_close = order->close != NULL};
    if (kept->is_close)
        memcpy(kept->session_id, order->close->session_id.data, 16);
}

static void carry_out(struct world *world, const struct lane_effect *effect)
{
    switch (effect->kind) {
    case LANE_EFFECT_ANSWER:
        say(world, effect, &effect->push_answer->base);
        break;
    case LANE_EFFECT_PULLED:
        say_pulled(world, effect);
        break;
    case LANE_EFFECT_REPORT:
        say(world, effect, &effect->report->base);
        break;
    case LANE_EFFECT_CLOSE_STREAM:
        close_stream(world, effect);
        break;
    case LANE_EFFECT_REPLY:
    case LANE_EFFECT_FAIL:
        finish_call(world, effect);
        break;
    case LANE_EFFECT_ORDER:
        note_order(world, effect);
        break;
    case LANE_EFFECT_COMPUTE:
        MUST(world->job_count < WORLD_JOBS_MAX);
        world->jobs[world->job_count++] = effect->compute;
        break;
    case LANE_EFFECT_LOG:
        MUST(effect->text != NULL);
        break;
    case LANE_EFFECT_EXIT:
        world->exited = true;
        break;
    case LANE_EFFECT_DIAL:
    case LANE_EFFECT_RECORD:
    case LANE_EFFECT_SERVING:
    case LANE_EFFECT_WAKE:
    case LANE_EFFECT_RUN_OVER:
        break;
    }
}

static void step(struct world *world, struct lane_event *event)
{
    struct lane_effects effects;

    event->now_us = world->now_us;
    event->random[0] = ++world->drawn;
    event->random[1] = ++world->drawn << 32;
    ps_core_step(world->core, event, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        carry_out(world, &effects.items[i]);
}

/* ---- what follows ---- */

void world_compute(struct world *world)
{
    while (world->job_count > 0) {
        const struct lane_compute *compute = world->jobs[--world->job_count];
        struct lane_event computed = {.kind = LANE_EVENT_COMPUTED, .job = compute->job};
        for (uint32_t i = compute->slice_count; i > 0; i--)
            update_run(&compute->slices[i - 1]);
        step(world, &computed);
    }
}

void world_release(struct world *world)
{
    while (world->lent_count > 0) {
        const struct world_lent lent = world->lent[--world->lent_count];
        struct lane_event released = {.kind = LANE_EVENT_RELEASED, .hold = lent.hold};
        MUST(sum_of(lent.bytes) == lent.sum); /* nobody wrote into what a reader holds */
        step(world, &released);
    }
}

static void tell_writable(struct world *world, uint64_t id)
{
    struct world_stream *stream = find_stream(world, id);
    struct lane_event writable = {.kind = LANE_EVENT_STREAM_WRITABLE, .stream = id};

    if (stream == NULL || !stream->out)
        return;
    stream->out = false;
    step(world, &writable);
}

void world_answer_order(struct world *world)
{
    if (world->order_count == 0 || !world->peer_up)
        return;
    struct world_order order = world->orders[0];
    wire_peer_report report = WIRE_PEER_REPORT_INIT;
    wire_close_report close = WIRE_CLOSE_REPORT_INIT;
    struct lane_event event = {.kind = LANE_EVENT_REPORT, .ps = 1, .report = &report};

    world->order_count--;
    memmove(world->orders, world->orders + 1, world->order_count * sizeof *world->orders);
    report.answers = order.number;
    report.ps_incarnation = WORLD_OTHER_INCARNATION;
    report.epoch = 1;
    close.session_id = (wire_bytes){.len = 16, .data = order.session_id};
    if (order.is_close)
        report.close_report = &close;
    step(world, &event);
}

static bool follow_one(struct world *world)
{
    if (world->writable_count > 0) {
        tell_writable(world, world->writable[--world->writable_count]);
        return true;
    }
    if (world->peer_writable) {
        struct lane_event up = {.kind = LANE_EVENT_PEER_UP, .ps = 1};
        world->peer_writable = false;
        step(world, &up);
        return true;
    }
    if (world->job_count > 0 && !world->holds_compute) {
        world_compute(world);
        return true;
    }
    if (world->lent_count > 0 && !world->holds_released) {
        world_release(world);
        return true;
    }
    if (world->order_count > 0 && world->peer_up && !world->mute) {
        world_answer_order(world);
        return true;
    }
    return false;
}

void world_collective(struct world *world, bool up)
{
    struct lane_event event = {.ps = 1, .text = "reset"};

    if (world->peer_up == up)
        return;
    event.kind = up ? LANE_EVENT_PEER_UP : LANE_EVENT_PEER_DOWN;
    world->peer_up = up;
    world->peer_writable = false;
    world->order_count = 0; /* what it has not answered is said to it again */
    world_step(world, &event);
}

void world_step(struct world *world, struct lane_event *event)
{
    uint32_t steps = 0;

    step(world, event);
    if (world->lent_count > WORLD_LENT_MAX / 2)
        world_release(world);
    while (follow_one(world))
        MUST(++steps < FOLLOWING_STEPS_MAX);
}

void world_tick(struct world *world, uint64_t later_us)
{
    struct lane_event tick = {.kind = LANE_EVENT_TICK};

    world->now_us += later_us;
    world_step(world, &tick);
}

void world_hear(struct world *world, struct world_stream *stream)
{
    struct lane_event writable = {.kind = LANE_EVENT_STREAM_WRITABLE, .stream = stream->id};

    stream->deaf = false;
    if (!stream->out)
        return;
    stream->out = false;
    world_step(world, &writable);
}

struct world_stream *world_open(struct world *world, enum lane_stream_kind kind)
{
    struct world_stream *stream = world->streams;

    while (stream < world->streams + WORLD_STREAMS_MAX && stream->id != 0)
        stream++;
    if (stream == world->streams + WORLD_STREAMS_MAX)
        return NULL;
    *stream = (struct world_stream){.id = ++world->last_stream, .kind = kind, .out = true};
    struct lane_event opened = {
        .kind = LANE_EVENT_STREAM_OPENED, .stream = stream->id, .stream_kind = kind};
    world_step(world, &opened);
    tell_writable(world, stream->id);
    return stream;
}

void world_close(struct world *world, struct world_stream *stream)
{
    struct lane_event closed = {.kind = LANE_EVENT_STREAM_CLOSED, .stream = stream->id};

    if (world->controller == stream->id)
        world->controller = 0;
    *stream = (struct world_stream){.id = 0};
    world_step(world, &closed);
}

void world_call(struct world *world, enum lane_call_kind kind, const wire_message *request)
{
    struct lane_event event = {.kind = LANE_EVENT_CALL, .call_kind = kind, .request = request};

    if (world->last_call + 1 >= WORLD_CALLS_MAX)
        return;
    event.call = ++world->last_call;
    world->call_waits[event.call] = request->descriptor;
    world_step(world, &event);
}

/* ---- its life ---- */

void world_begin(struct world *world, uint32_t index, uint32_t ps_count)
{
    static const char *const addresses[] = {"h0:1", "h1:1"};
    static const char *const jobs[] = {"worker", "worker"};
    static const uint32_t indices[] = {0, 1};
    struct lane_event start = {.kind = LANE_EVENT_START};

    memset(world, 0, sizeof *world);
    world->memory = (struct memory){.take = take, .give = give, .context = world};
    world->takes_left = UINT64_MAX;
    world->now_us = START_US;
    arena_init(&world->arena, &memory_heap, UNPACKED_BYTES_MAX);
    world->config = (struct lane_config){
        .index = index,
        .ps_addresses = addresses,
        .ps_count = ps_count,
        .members_jobs = jobs,
        .members_indices = indices,
        .member_count = 2,
        .incarnation = WORLD_INCARNATION,
        .version = "fuzzed",
        .started_us = START_US,
        .lease_ms = 10000,
        .rejoin_ms = 10000,
        .rejoin_first_ms = 60000,
        .ps_lost_ms = 60000,
        .report_ms = 5000,
        .terminate_ms = 5000,
        .sessions_max = 4,
        .staging_bytes_max = 16384 + WORLD_POOL_BYTES,
        .pool_bytes_max = WORLD_POOL_BYTES,
        .view_bytes_max = 256,
        .state_bytes_max = 1u << 20,
        .inline_bytes = 64,
        .copied_pull_bytes_max = 64,
        .pull_chunk_bytes = 48,
        .block_bytes = 32};
    world->core = ps_core_create(&world->config, &world->memory);
    MUST(world->core != NULL);
    world_step(world, &start);
}

static void must_be_answered(const struct world *world, uint64_t call)
{
    if (world->call_waits[call] == NULL)
        return;
    fprintf(stderr, "call %" PRIu64 ": %s\n", call, world->call_waits[call]->name);
    MUST(world->call_waits[call] == NULL);
}

static void check_answered(const struct world *world)
{
    for (uint64_t call = 1; call <= world->last_call; call++)
        must_be_answered(world, call);
    for (uint32_t i = 0; i < WORLD_STREAMS_MAX; i++) {
        const struct world_stream *stream = &world->streams[i];
        MUST(stream->id == 0 || stream->asked <= stream->answered + stream->cancelled);
    }
}

void world_end(struct world *world)
{
    world->takes_left = UINT64_MAX;
    world->holds_compute = world->holds_released = world->mute = false;
    for (uint32_t i = 0; i < WORLD_STREAMS_MAX; i++)
        if (world->streams[i].id != 0)
            world_hear(world, &world->streams[i]);
    if (world->config.index == 0)
        world_collective(world, true);
    for (int i = 0; i < 40 && !world->exited; i++)
        world_tick(world, 2000000);
    if (!world->exited)
        check_answered(world);
    world_release(world);
    ps_core_destroy(world->core);
    MUST(world->bytes_taken == 0);
    arena_deinit(&world->arena);
}
