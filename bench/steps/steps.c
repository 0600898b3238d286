/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c -- `bench/steps [--rounds N]`: how long the longest step of a ps is, whatever is asked of
 * it.
 *
 * One lane, as ps 1 of 2, in this process; then ps 0, the only one, with its controller; nothing is
 * sent. Each row is the largest message of its kind, or one with the most that a step could have to
 * do with it. `unpacking` is what it takes to make it of its bytes, before the lane has it;
 * `longest` the longest of the steps that follow; `counted` the most work that one of them counted,
 * of WORK_PER_STEP_MAX. Times are the least of the rounds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ps_core.h"
#include "step.h"
#include "sumac/client.h"

#define CLUSTER_ID 0xC1u
#define INCARNATION 0x1001u
#define SHARDS_PER_VARIABLE 4096u
#define SHARDS (16 * SHARDS_PER_VARIABLE)
#define ROUNDS_MAX 100u

struct bench {
    struct ps_core *core;
    struct lane *lane;
    uint64_t now_us, streams, orders, controller, session_streams;
    uint64_t steps, longest_ns, most_work; /* since `begin` */
    uint8_t *packed;
    size_t packed_bytes;
    uint8_t joined[16]; /* the session that ps 0 has opened */
    uint64_t calls;
};

static uint64_t now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *must(void *memory)
{
    if (memory == NULL) {
        (void)fprintf(stderr, "steps: no memory\n");
        exit(1);
    }
    return memory;
}

/* ---- a lane, and its steps ---- */

#define FOLLOWING_MAX 1024u

/* What follows from a step: streams that can be written to, vector work, bytes that were lent. */
struct following {
    struct lane_event events[FOLLOWING_MAX];
    uint32_t count;
    bool goes_on;
};

static void follow(struct following *following, const struct lane_event *event)
{
    if (following->count == FOLLOWING_MAX) {
        (void)fprintf(stderr, "steps: more follows from a step than there is room for\n");
        exit(1);
    }
    following->events[following->count++] = *event;
}

static void
note_effect(struct bench *bench, const struct lane_effect *effect, struct following *following)
{
    switch (effect->kind) {
    case LANE_EFFECT_ANSWER:
    case LANE_EFFECT_PULLED:
    case LANE_EFFECT_REPORT:
        for (uint32_t i = 0; i < effect->payload_count; i++) {
            if (effect->payload[i].hold != 0)
                follow(
                    following, &(struct lane_event){
                                   .kind = LANE_EVENT_RELEASED, .hold = effect->payload[i].hold});
        }
        follow(
            following,
            &(struct lane_event){.kind = LANE_EVENT_STREAM_WRITABLE, .stream = effect->stream});
        break;
    case LANE_EFFECT_COMPUTE:
        for (uint32_t i = 0; i < effect->compute->slice_count; i++)
            update_run(&effect->compute->slices[i]);
        follow(
            following,
            &(struct lane_event){.kind = LANE_EVENT_COMPUTED, .job = effect->compute->job});
        break;
    case LANE_EFFECT_WAKE:
        following->goes_on = effect->at_us <= bench->now_us;
        break;
    case LANE_EFFECT_REPLY:
        if (effect->reply->descriptor == &sumac__v1__join_reply__descriptor)
            memcpy(
                bench->joined, ((const wire_join_reply *)effect->reply)->session_id.data,
                sizeof bench->joined);
        break;
    case LANE_EFFECT_CLOSE_STREAM:
    case LANE_EFFECT_FAIL:
    case LANE_EFFECT_EXIT:
        (void)fprintf(stderr, "steps: %s\n", effect->error.text);
        break;
    case LANE_EFFECT_DIAL:
    case LANE_EFFECT_ORDER:
    case LANE_EFFECT_RECORD:
    case LANE_EFFECT_LOG:
    case LANE_EFFECT_SERVING:
    case LANE_EFFECT_RUN_OVER:
        break;
    }
}

static void one(struct bench *bench, const struct lane_event *given, struct following *following)
{
    struct lane_event event = *given;
    struct lane_effects effects;

    event.now_us = bench->now_us;
    const uint64_t began = now_ns();
    ps_core_step(bench->core, &event, &effects);
    const uint64_t took = now_ns() - began;
    const uint64_t work = bench->lane->work + bench->lane->arena.bytes_used / WORK_ARENA_BYTES;
    bench->steps++;
    bench->longest_ns = took > bench->longest_ns ? took : bench->longest_ns;
    bench->most_work = work > bench->most_work ? work : bench->most_work;
    for (uint32_t i = 0; i < effects.count; i++)
        note_effect(bench, &effects.items[i], following);
}

/* And all that follows. */
static void step(struct bench *bench, const struct lane_event *event)
{
    static struct following following;
    static const struct lane_event tick = {.kind = LANE_EVENT_TICK};

    following.count = 0;
    following.goes_on = false;
    one(bench, event, &following);
    for (uint32_t i = 0; i < following.count || following.goes_on;) {
        if (i == following.count) {
            i = following.count = 0;
            following.goes_on = false;
            one(bench, &tick, &following);
        } else {
            const struct lane_event next = following.events[i++];
            one(bench, &next, &following);
        }
    }
}

static uint64_t open_stream(struct bench *bench, enum lane_stream_kind kind)
{
    const uint64_t stream = ++bench->streams;

    step(
        bench, &(struct lane_event){
                   .kind = LANE_EVENT_STREAM_OPENED, .stream = stream, .stream_kind = kind});
    step(bench, &(struct lane_event){.kind = LANE_EVENT_STREAM_WRITABLE, .stream = stream});
    return stream;
}

static void close_stream(struct bench *bench, uint64_t stream)
{
    step(bench, &(struct lane_event){.kind = LANE_EVENT_STREAM_CLOSED, .stream = stream});
}

static void keep_most(uint64_t *most, uint64_t value) { *most = value > *most ? value : *most; }

/* ---- messages, as they come ---- */

/* Unpacked again from its bytes, which is what a step is given. Returns the time of that. */
static uint64_t unpack(
    struct bench *bench, const wire_message *message, struct arena *arena,
    struct wire_received *received)
{
    struct sumac_error error;

    bench->packed_bytes = wire_packed_bytes(message, 0);
    bench->packed = must(realloc(bench->packed, bench->packed_bytes + 1));
    wire_pack(message, 0, bench->packed);
    const struct span span = {.data = bench->packed, .bytes = bench->packed_bytes};
    arena_reset(arena);
    const uint64_t began = now_ns();
    if (wire_unpack(message->descriptor, &span, 1, arena, received, &error) != SUMAC_OK) {
        (void)fprintf(stderr, "steps: %s\n", error.text);
        exit(1);
    }
    return now_ns() - began;
}

static void order(struct bench *bench, wire_peer_order *order)
{
    order->number = ++bench->orders;
    step(
        bench, &(struct lane_event){
                   .kind = LANE_EVENT_ORDER, .stream = bench->controller, .order = order});
}

/* As it comes: unpacked of its bytes, then given to the lane; what follows from it is looked at. */
static uint64_t give(
    struct bench *bench, struct lane_event event, const wire_message *message, const void *payload,
    size_t payload_bytes)
{
    const struct span span = {.data = payload, .bytes = payload_bytes};
    struct wire_received received;
    struct arena arena;

    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    (void)unpack(bench, message, &arena, &received); /* its memory is there the second time */
    const uint64_t took = unpack(bench, message, &arena, &received);
    event.payload = &span;
    event.payload_spans = payload_bytes > 0;
    event.push_request = (const wire_push_request *)(const void *)received.message;
    event.pull_request = (const wire_pull_request *)(const void *)received.message;
    event.order = (const wire_peer_order *)(const void *)received.message;
    event.request = received.message;
    bench->steps = bench->longest_ns = bench->most_work = 0;
    step(bench, &event);
    arena_deinit(&arena);
    return took;
}

static uint64_t give_order(struct bench *bench, wire_peer_order *order)
{
    order->number = ++bench->orders;
    return give(
        bench, (struct lane_event){.kind = LANE_EVENT_ORDER, .stream = bench->controller},
        &order->base, NULL, 0);
}

/* ---- what there is ---- */

static void begin(struct bench *bench, uint32_t index, uint32_t ps_count)
{
    static const char *const addresses[] = {"h0:1", "h1:1"};
    const struct lane_config config = {
        .index = index,
        .ps_addresses = addresses,
        .ps_count = ps_count,
        .incarnation = INCARNATION,
        .version = "bench",
        .started_us = 1000000,
        .lease_ms = 10000,
        .rejoin_ms = 10000,
        .rejoin_first_ms = 60000,
        .ps_lost_ms = 60000,
        .report_ms = 5000,
        .terminate_ms = 5000,
        .sessions_max = 32,
        .staging_bytes_max = 2304ull << 20};

    *bench = (struct bench){.now_us = 1000000};
    bench->core = must(ps_core_create(&config, &memory_heap));
    bench->lane = ps_core_lane(bench->core);
    step(bench, &(struct lane_event){.kind = LANE_EVENT_START, .random = {1, 2}});
}

/* Called by ps 0. */
static void begin_other(struct bench *bench)
{
    char *told[] = {"h0:1", "h1:1"};
    wire_peer_hello hello = WIRE_PEER_HELLO_INIT;
    wire_peer_order first = WIRE_PEER_ORDER_INIT;

    begin(bench, 1, 2);
    bench->controller = open_stream(bench, LANE_STREAM_PEER);
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = CLUSTER_ID;
    hello.epoch = 1;
    hello.controller_incarnation = 0x1000;
    hello.index = 1;
    hello.n_ps_addresses = 2;
    hello.ps_addresses = told;
    first.hello = &hello;
    order(bench, &first);
}

static wire_bytes session_id(void)
{
    static uint8_t id[16] = {1};

    return (wire_bytes){.len = sizeof id, .data = id};
}

static void open_session(struct bench *bench)
{
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    wire_peer_order message = WIRE_PEER_ORDER_INIT;

    open.session_id = session_id();
    open.attempt = 1;
    message.open = &open;
    order(bench, &message);
}

static void end(struct bench *bench)
{
    ps_core_destroy(bench->core);
    free(bench->packed);
}

/* A variable of so many shards of one element, all here; the first shard's id is `first`. */
static wire_peer_order *
add_order(uint64_t id, uint64_t first, uint32_t shards, uint64_t bytes, int initializer)
{
    static wire_shard all[SHARDS_PER_VARIABLE];
    static wire_shard *pointers[SHARDS_PER_VARIABLE];
    static uint64_t shape[1];
    static char name[32];
    static wire_function function = WIRE_FUNCTION_INIT;
    static wire_initializer values = WIRE_INITIALIZER_INIT;
    static wire_variable variable;
    static wire_add_shards add;
    static wire_peer_order message;

    (void)snprintf(name, sizeof name, "v%" PRIu64, id);
    for (uint32_t i = 0; i < shards; i++) {
        all[i] = (wire_shard)WIRE_SHARD_INIT;
        all[i].shard_id = first + i;
        all[i].ps = 1;
        all[i].first_row = i;
        all[i].rows = bytes / 4;
        all[i].bytes = bytes;
        pointers[i] = &all[i];
    }
    shape[0] = shards * bytes / 4;
    function.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    values.kind = (Sumac__V1__Initializer__Kind)initializer;
    variable = (wire_variable)WIRE_VARIABLE_INIT;
    variable.name = name;
    variable.variable_id = id;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.function = &function;
    variable.initializer = &values;
    variable.shards = pointers;
    variable.n_shards = shards;
    add = (wire_add_shards)WIRE_ADD_SHARDS_INIT;
    add.variable = &variable;
    message = (wire_peer_order)WIRE_PEER_ORDER_INIT;
    message.add_shards = &add;
    return &message;
}

static void publish(struct bench *bench, uint64_t id)
{
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order message = WIRE_PEER_ORDER_INIT;

    publish.variable_id = id;
    message.publish = &publish;
    order(bench, &message);
}

/* Variables of 4096 shards each, SHARDS together. */
static void add_all(struct bench *bench)
{
    for (uint64_t i = 0; i < SHARDS / SHARDS_PER_VARIABLE; i++) {
        order(
            bench, add_order(
                       1 + i, 1 + i * SHARDS_PER_VARIABLE, SHARDS_PER_VARIABLE, 4,
                       WIRE_INITIALIZER_ZEROS));
        publish(bench, 1 + i);
    }
}

static wire_hello *hello_of(uint64_t generation)
{
    static wire_hello hello;

    hello = (wire_hello)WIRE_HELLO_INIT;
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = CLUSTER_ID;
    hello.epoch = 1;
    hello.ps_incarnation = INCARNATION;
    hello.session_id = session_id();
    hello.generation = generation;
    return &hello;
}

static uint64_t push_stream(struct bench *bench)
{
    const uint64_t stream = open_stream(bench, LANE_STREAM_PUSH);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    request.hello = hello_of(++bench->session_streams);
    step(
        bench,
        &(struct lane_event){.kind = LANE_EVENT_PUSH, .stream = stream, .push_request = &request});
    return stream;
}

static uint64_t pull_stream(struct bench *bench)
{
    const uint64_t stream = open_stream(bench, LANE_STREAM_PULL);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    request.hello = hello_of(1);
    step(
        bench,
        &(struct lane_event){.kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &request});
    return stream;
}

/* Of as many shards, one element each; in no order that memory is in. */
static wire_piece **pieces_of(uint32_t count, uint64_t bytes)
{
    static wire_piece pieces[SHARDS];
    static wire_piece *pointers[SHARDS];

    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = 1 + i * UINT64_C(40503) % SHARDS;
        pieces[i].bytes = bytes;
        pointers[i] = &pieces[i];
    }
    return pointers;
}

/* ---- the rows ---- */

static uint64_t pull(struct bench *bench, uint32_t pieces)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const uint64_t stream = pull_stream(bench);

    request.request = 1;
    request.pieces = pieces_of(pieces, 0);
    request.n_pieces = pieces;
    const uint64_t took = give(
        bench, (struct lane_event){.kind = LANE_EVENT_PULL, .stream = stream}, &request.base, NULL,
        0);
    const struct bench seen = *bench;
    close_stream(bench, stream);
    bench->longest_ns = seen.longest_ns;
    return took;
}

static uint64_t pull_of_all(struct bench *bench) { return pull(bench, WIRE_PULL_PIECES_MAX); }

/* In messages of as many pieces as one takes: the longest step is that of any of them. */
static uint64_t push(struct bench *bench, uint32_t pieces)
{
    static float values[WIRE_PUSH_PIECES_MAX];
    static uint64_t sequence;
    wire_piece **const all = pieces_of(pieces, 4);
    struct bench seen = {.longest_ns = 0};
    uint64_t took = 0;
    wire_part part = WIRE_PART_INIT;
    wire_part *parts[] = {&part};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const uint64_t stream = push_stream(bench);

    if (bench->session_streams == 1)
        sequence = 0;
    part.sequence = sequence + 1;
    part.previous = sequence++;
    part.eager = true;
    part.bytes = (uint64_t)pieces * 4;
    part.weight = 1;
    request.parts = parts;
    request.n_parts = 1;
    for (uint32_t sent = 0; sent < pieces; sent += (uint32_t)part.n_pieces) {
        const uint32_t left = pieces - sent;
        part.n_pieces = left < WIRE_PUSH_PIECES_MAX ? left : WIRE_PUSH_PIECES_MAX;
        part.first = sent == 0;
        part.last = part.n_pieces == left;
        part.pieces = all + sent;
        keep_most(
            &took, give(
                       bench, (struct lane_event){.kind = LANE_EVENT_PUSH, .stream = stream},
                       &request.base, values, part.n_pieces * sizeof *values));
        keep_most(&seen.longest_ns, bench->longest_ns);
        keep_most(&seen.most_work, bench->most_work);
        seen.steps += bench->steps;
    }
    close_stream(bench, stream);
    bench->longest_ns = seen.longest_ns;
    bench->most_work = seen.most_work;
    bench->steps = seen.steps;
    return took;
}

static uint64_t push_of_all(struct bench *bench) { return push(bench, SHARDS); }
static uint64_t push_of_one(struct bench *bench) { return push(bench, WIRE_PUSH_PIECES_MAX); }

/* A session's most parts are staged, and a message has as many headers as it takes, all of the
 * first of them. */
static uint64_t push_again(struct bench *bench)
{
    enum { staged = 1024, count = 2048 };
    static wire_part all[count];
    static wire_part *parts[count];
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    wire_peer_order message = WIRE_PEER_ORDER_INIT;
    static uint8_t id[16] = {2};
    const uint64_t stream = open_stream(bench, LANE_STREAM_PUSH);
    wire_hello *hello = hello_of(1);

    open.session_id = hello->session_id = (wire_bytes){.len = sizeof id, .data = id};
    message.open = &open;
    order(bench, &message);
    request.hello = hello;
    request.parts = parts;
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (wire_part)WIRE_PART_INIT;
        all[i].first = all[i].last = true;
        all[i].sequence = 1 + (i < staged ? i : 512);
        all[i].previous = i < staged ? i : 512;
        parts[i] = &all[i];
    }
    const struct lane_event event = {.kind = LANE_EVENT_PUSH, .stream = stream};
    request.n_parts = staged;
    (void)give(bench, event, &request.base, NULL, 0);
    request.hello = NULL;
    request.parts = parts + staged;
    request.n_parts = count - staged;
    const uint64_t took = give(bench, event, &request.base, NULL, 0);
    const struct bench seen = *bench;
    close_stream(bench, stream);
    bench->longest_ns = seen.longest_ns;
    bench->most_work = seen.most_work;
    return took;
}

/* As many as a session's list takes. */
static uint64_t commit_of_voided(struct bench *bench)
{
    enum { count = LANE_VOIDED_PER_SESSION_MAX };
    static uint64_t voided[count];
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const uint64_t stream = push_stream(bench);

    for (uint32_t i = 0; i < count; i++)
        voided[i] = 20000 + i;
    commit.commit_through = 1000000;
    commit.voided = voided;
    commit.n_voided = count;
    request.commit = &commit;
    const uint64_t took = give(
        bench, (struct lane_event){.kind = LANE_EVENT_PUSH, .stream = stream}, &request.base, NULL,
        0);
    const struct bench seen = *bench;
    close_stream(bench, stream);
    bench->longest_ns = seen.longest_ns;
    bench->most_work = seen.most_work;
    return took;
}

#define ADDED 1000u

static uint64_t delete_added(struct bench *bench)
{
    wire_delete_variable gone = WIRE_DELETE_VARIABLE_INIT;
    wire_peer_order message = WIRE_PEER_ORDER_INIT;

    gone.variable_id = ADDED;
    message.delete_ = &gone;
    return give_order(bench, &message);
}

static void take_away(struct bench *bench)
{
    const struct bench seen = *bench;

    (void)delete_added(bench);
    bench->packed_bytes = seen.packed_bytes;
    bench->steps = seen.steps;
    bench->longest_ns = seen.longest_ns;
    bench->most_work = seen.most_work;
}

static uint64_t add_shards(struct bench *bench)
{
    const uint64_t took = give_order(
        bench, add_order(ADDED, 1 << 20, SHARDS_PER_VARIABLE, 4, WIRE_INITIALIZER_ZEROS));

    take_away(bench);
    return took;
}

static uint64_t add_assigned(struct bench *bench)
{
    const uint64_t took =
        give_order(bench, add_order(ADDED, 1 << 20, 1, 1u << 30, WIRE_INITIALIZER_ASSIGNED));

    take_away(bench);
    return took;
}

static uint64_t list_one(struct bench *bench)
{
    char *names[] = {"v1"};
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    request.names = names;
    request.n_names = 1;
    return give(
        bench, (struct lane_event){.kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST},
        &request.base, NULL, 0);
}

static uint64_t publish_one(struct bench *bench)
{
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order message = WIRE_PEER_ORDER_INIT;

    publish.variable_id = 1;
    message.publish = &publish;
    return give_order(bench, &message);
}

static uint64_t delete_one(struct bench *bench)
{
    order(bench, add_order(ADDED, 1 << 20, SHARDS_PER_VARIABLE, 4, WIRE_INITIALIZER_ZEROS));
    return delete_added(bench);
}

static uint64_t delete_assigned(struct bench *bench)
{
    order(bench, add_order(ADDED, 1 << 20, 1, 1u << 30, WIRE_INITIALIZER_ASSIGNED));
    return delete_added(bench);
}

/* ---- at ps 0 */

static uint64_t call(struct bench *bench, enum lane_call_kind kind, const wire_message *request)
{
    return give(
        bench,
        (struct lane_event){
            .kind = LANE_EVENT_CALL,
            .call = ++bench->calls,
            .call_kind = kind,
            .random = {bench->calls, 4}},
        request, NULL, 0);
}

static uint64_t join(struct bench *bench)
{
    static uint8_t nonce[16];
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    request.protocol_version = WIRE_PROTOCOL_VERSION;
    nonce[0]++;
    request.nonce = (wire_bytes){.data = nonce, .len = sizeof nonce};
    return call(bench, LANE_CALL_JOIN, &request.base);
}

static uint64_t create(struct bench *bench, const char *prefix, uint32_t shards)
{
    static char names[WIRE_CREATE_VARIABLES_MAX][1024];
    static wire_variable all[WIRE_CREATE_VARIABLES_MAX];
    static wire_variable *pointers[WIRE_CREATE_VARIABLES_MAX];
    static wire_initializer zeros = WIRE_INITIALIZER_INIT;
    wire_partitioner partitioner = WIRE_PARTITIONER_INIT;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;
    uint64_t shape[] = {shards};

    partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    partitioner.num_shards = shards;
    for (uint32_t i = 0; i < WIRE_CREATE_VARIABLES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s%01000" PRIu32, prefix, i);
        all[i] = (wire_variable)WIRE_VARIABLE_INIT;
        all[i].name = names[i];
        all[i].data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
        all[i].shape = shape;
        all[i].n_shape = 1;
        all[i].initializer = &zeros;
        if (shards > 1)
            all[i].partitioner = &partitioner;
        pointers[i] = &all[i];
    }
    request.session_id = (wire_bytes){.data = bench->joined, .len = sizeof bench->joined};
    request.variables = pointers;
    request.n_variables = WIRE_CREATE_VARIABLES_MAX;
    return call(bench, LANE_CALL_CREATE, &request.base);
}

static uint64_t create_small(struct bench *bench) { return create(bench, "small", 1); }
static uint64_t create_large(struct bench *bench) { return create(bench, "large", 4096); }

/* As many as one answer takes; a reader goes through all of them so. */
static uint64_t list_all(struct bench *bench)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    return call(bench, LANE_CALL_LIST, &request.base);
}

static uint64_t statistics(struct bench *bench)
{
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;

    return call(bench, LANE_CALL_STATS, &request.base);
}

static const struct row {
    const char *name;
    uint64_t (*run)(struct bench *bench); /* returns how long the unpacking took */
    bool at_ps_0;
} rows[] = {
    {"pull of 16384 pieces", pull_of_all, false},
    {"push of 4096 pieces", push_of_one, false},
    {"push of 65536 pieces in 16 messages", push_of_all, false},
    {"push of 65536 pieces, the second time", push_of_all, false},
    {"push of 1024 parts that came before", push_again, false},
    {"commit with 1024 voided", commit_of_voided, false},
    {"order: add 4096 shards", add_shards, false},
    {"order: add 1 GiB that its creator assigns", add_assigned, false},
    {"order: delete 1 GiB", delete_assigned, false},
    {"order: publish 4096 shards", publish_one, false},
    {"order: delete 4096 shards", delete_one, false},
    {"list of a variable of 4096 shards", list_one, false},
    {"ps 0: join", join, true},
    {"ps 0: create 256", create_small, true},
    {"ps 0: create the same 256", create_small, true},
    {"ps 0: create 256 of 4096 shards", create_large, true},
    {"ps 0: create the same 256 of 4096 shards", create_large, true},
    {"ps 0: join where they are", join, true},
    {"ps 0: list", list_all, true},
    {"ps 0: statistics", statistics, true},
};
#define ROWS (sizeof rows / sizeof *rows)

struct seen {
    uint64_t message_bytes, unpacking_ns, longest_ns, work, steps;
};

static void keep_least(uint64_t *least, uint64_t value)
{
    if (*least == 0 || value < *least)
        *least = value;
}

static void run_rows(struct bench *bench, bool at_ps_0, struct seen seen[ROWS])
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].at_ps_0 != at_ps_0)
            continue;
        keep_least(&seen[i].unpacking_ns, rows[i].run(bench));
        keep_least(&seen[i].longest_ns, bench->longest_ns);
        seen[i].message_bytes = bench->packed_bytes;
        seen[i].work = bench->most_work;
        seen[i].steps = bench->steps;
    }
    end(bench);
}

static void run_round(struct seen seen[ROWS])
{
    struct bench bench;

    begin_other(&bench);
    open_session(&bench);
    add_all(&bench);
    run_rows(&bench, false, seen);
    begin(&bench, 0, 1);
    step(&bench, &(struct lane_event){.kind = LANE_EVENT_TICK});
    run_rows(&bench, true, seen);
}

int main(int argc, char **argv)
{
    struct seen seen[ROWS] = {{0}};
    long rounds = 5;

    if (argc == 3 && strcmp(argv[1], "--rounds") == 0)
        rounds = strtol(argv[2], NULL, 10);
    if (rounds < 1 || rounds > (long)ROUNDS_MAX || (argc != 1 && argc != 3)) {
        (void)fprintf(stderr, "usage: steps [--rounds 1 to %u]\n", ROUNDS_MAX);
        return 2;
    }
    sumac_tune_malloc(); /* as every ps */
    for (long round = 0; round < rounds; round++)
        run_round(seen);
    printf(
        "%-46s %9s %12s %12s %8s %6s\n", "message", "bytes", "unpacking us", "longest us",
        "counted", "steps");
    for (size_t i = 0; i < ROWS; i++)
        printf(
            "%-46s %9" PRIu64 " %12.0f %12.0f %8" PRIu64 " %6" PRIu64 "\n", rows[i].name,
            seen[i].message_bytes, (double)seen[i].unpacking_ns / 1e3,
            (double)seen[i].longest_ns / 1e3, seen[i].work, seen[i].steps);
    return 0;
}
