/* SPDX-License-Identifier: Apache-2.0 */
/* lane_peers.c -- what ps 0, ps 1 and the callers of a lane say. */
#include "lane_peers.h"

#include <math.h>
#include <string.h>

#define DEFINITIONS 8u
#define NAMES_MAX 1500u
#define MEMBERS_MAX 300u

static const char *const names[] = {"v0",       "v1",  "v2",        "v3",
                                    "v4",       "v5",  "v6",        "v7",
                                    "w",        "a/b", "x/part_0",  "\xc3\xa9\xc3\xa9",
                                    "e\x1b[2J", "",    "two\nlines"};
#define NAMES (uint32_t)(sizeof names / sizeof *names)

/* 31 times é after a letter: a text of 40 bytes ends inside one. */
static const char odd_job[] = "x"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
static const char *const jobs[] = {"worker", "chief", odd_job, "ps", "", "two\nlines"};
#define JOBS (uint32_t)(sizeof jobs / sizeof *jobs)

/* ---- variables ---- */

struct definition {
    enum sumac_dtype dtype;
    uint32_t rank;
    uint64_t shape[2];
    uint32_t function;
    int initializer;
    uint32_t shards;
};

static const struct definition definitions[DEFINITIONS] = {
    {SUMAC_FLOAT32, 1, {4}, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS, 1},
    {SUMAC_FLOAT32, 2, {10, 2}, UPDATE_ADAM, WIRE_INITIALIZER_ONES, 2},
    {SUMAC_INT32, 1, {5}, UPDATE_ASSIGN_SUB, WIRE_INITIALIZER_CONSTANT, 1},
    {SUMAC_FLOAT64, 1, {3}, UPDATE_ASSIGN, WIRE_INITIALIZER_ASSIGNED, 3},
    {SUMAC_FLOAT32, 2, {4096, 0}, UPDATE_ASSIGN, WIRE_INITIALIZER_ZEROS, 4096},
    {SUMAC_FLOAT32, 1, {64}, UPDATE_MOMENTUM, WIRE_INITIALIZER_NORMAL, 4},
    {SUMAC_BOOL, 1, {7}, UPDATE_ASSIGN, WIRE_INITIALIZER_ZEROS, 1},
    {SUMAC_INT8, 1, {3}, UPDATE_ASSIGN, WIRE_INITIALIZER_UNIFORM, 1},
};

struct made {
    wire_variable variable;
    wire_function function;
    wire_initializer initializer;
    wire_partitioner partitioner;
    uint64_t shape[2];
};

static void define(struct made *made, const struct definition *definition, const char *name)
{
    made->function = (wire_function)WIRE_FUNCTION_INIT;
    made->function.function = (Sumac__V1__UpdateFunction)definition->function;
    made->initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    made->initializer.kind = (Sumac__V1__Initializer__Kind)definition->initializer;
    made->initializer.a = 2;
    made->initializer.b = 3;
    made->partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    made->partitioner.kind = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS;
    made->partitioner.num_shards = definition->shards;
    memcpy(made->shape, definition->shape, sizeof made->shape);
    made->variable = (wire_variable)WIRE_VARIABLE_INIT;
    made->variable.name = (char *)(uintptr_t)name;
    made->variable.data_type = (Sumac__V1__DataType)definition->dtype;
    made->variable.shape = made->shape;
    made->variable.n_shape = definition->rank;
    made->variable.function = &made->function;
    made->variable.initializer = &made->initializer;
    made->variable.partitioner = &made->partitioner;
}

/* ---- orders, to ps 1 ---- */

static void give_order(struct world *world, struct input *input, wire_peer_order *order)
{
    struct lane_event event = {
        .kind = LANE_EVENT_ORDER, .stream = world->controller, .order = order};

    if (world->controller == 0)
        return;
    order->number = ++world->last_order;
    if (input != NULL && sometimes(input))
        order->number = below(input, 3) * (world->last_order / 2);
    world_step(world, &event);
}

void peers_hello(struct world *world, struct input *input)
{
    static const uint64_t incarnations[] = {WORLD_OTHER_INCARNATION, 77, 0};
    char *addresses[] = {"h0:1", "h1:1"};
    uint64_t met[] = {WORLD_OTHER_INCARNATION, WORLD_INCARNATION};
    wire_peer_hello hello = WIRE_PEER_HELLO_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    wire_end end = WIRE_END_INIT;

    if (world->controller == 0 || (input != NULL && sometimes(input))) {
        const struct world_stream *stream = world_open(world, LANE_STREAM_PEER);
        if (stream == NULL)
            return;
        world->controller = stream->id;
    }
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = 0xC1;
    hello.epoch = 1;
    hello.controller_incarnation = WORLD_OTHER_INCARNATION;
    hello.index = 1;
    hello.n_ps_addresses = hello.n_ps_incarnations = 2;
    hello.ps_addresses = addresses;
    hello.ps_incarnations = met;
    order.hello = &hello;
    if (input != NULL && sometimes(input)) {
        hello.controller_incarnation = one_of(input, incarnations, 3);
        hello.expected_incarnation = one_of(input, incarnations, 3);
        hello.index = below(input, 4);
        hello.n_ps_addresses = below(input, 3);
        order.end = sometimes(input) ? &end : NULL;
    }
    give_order(world, input, &order);
}

wire_bytes peers_session_id(struct world *world, uint32_t session)
{
    return (wire_bytes){.len = 16, .data = world->sessions[session % WORLD_SESSIONS_MAX].id};
}

void peers_open(struct world *world, struct input *input, uint32_t session)
{
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    task.job = (char *)(uintptr_t)jobs[input != NULL ? below(input, JOBS) : 0];
    task.index = session;
    open.session_id = peers_session_id(world, session);
    open.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    open.task = &task;
    open.attempt = 1;
    order.open = &open;
    if (!world->sessions[session % WORLD_SESSIONS_MAX].known) {
        world->sessions[session % WORLD_SESSIONS_MAX].known = true;
        memset(open.session_id.data, (int)session + 1, 16);
    }
    give_order(world, input, &order);
}

static void add_one(
    struct world *world, struct input *input, const struct definition *definition, uint64_t id,
    wire_shard *const *shards, size_t count)
{
    struct made made;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    define(&made, definition, names[id % NAMES]);
    made.variable.variable_id = id;
    made.variable.shards = (wire_shard **)(uintptr_t)shards;
    made.variable.n_shards = count;
    add.variable = &made.variable;
    order.add_shards = &add;
    give_order(world, input, &order);
    if (input != NULL && sometimes(input))
        return;
    world_tick(world, 1000);
    publish.variable_id = id;
    order.add_shards = NULL;
    order.publish = &publish;
    give_order(world, input, &order);
}

/* Variable `id` as definitions[id]; its shards are numbered from 16 × id on, all on ps 1, but for
 * every fourth. */
void peers_add(struct world *world, struct input *input, uint64_t id)
{
    static wire_shard shards[4096];
    static wire_shard *pointers[4096];
    const struct definition *definition = &definitions[id % DEFINITIONS];
    const uint64_t columns = definition->rank == 2 ? definition->shape[1] : 1;
    const uint64_t rows = definition->shape[0] / definition->shards;
    const uint32_t element_bytes = (uint32_t)sumac_dtype_bytes(definition->dtype);

    for (uint32_t i = 0; i < definition->shards; i++) {
        shards[i] = (wire_shard)WIRE_SHARD_INIT;
        shards[i].shard_id = definition->shards > 16 ? 100000 + i : 16 * id + i;
        shards[i].ps = i % 4 != 3;
        shards[i].first_row = i * rows;
        shards[i].rows = rows;
        shards[i].bytes = rows * columns * element_bytes;
        pointers[i] = &shards[i];
        if (i < 4)
            world->shards[world->shard_count++ % WORLD_SHARDS_MAX] = (struct world_shard){
                .id = shards[i].shard_id, .bytes = shards[i].bytes, .element_bytes = element_bytes};
    }
    add_one(world, input, definition, id, pointers, definition->shards);
}

static void order_end(struct world *world, struct input *input, bool decide)
{
    static const uint64_t finals[] = {0, 1, 2, 3, UINT64_MAX};
    wire_close_session close = WIRE_CLOSE_SESSION_INIT;
    wire_decide_session decided = WIRE_DECIDE_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    uint64_t voided[] = {1, 2};

    close.session_id = decided.session_id =
        peers_session_id(world, below(input, WORLD_SESSIONS_MAX));
    decided.final = one_of(input, finals, 5);
    decided.n_voided = below(input, 3);
    decided.voided = voided;
    order.close = decide ? NULL : &close;
    order.decide = decide ? &decided : NULL;
    give_order(world, input, &order);
}

static void order_rest(struct world *world, struct input *input)
{
    wire_delete_variable deleted = WIRE_DELETE_VARIABLE_INIT;
    wire_membership membership = WIRE_MEMBERSHIP_INIT;
    wire_end end = WIRE_END_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    deleted.variable_id = below(input, DEFINITIONS);
    membership.membership_epoch = below(input, 3);
    end.exit_code = below(input, 3);
    switch (below(input, 4)) {
    case 0:
        order.delete_ = &deleted;
        break;
    case 1:
        order.membership = &membership;
        break;
    case 2:
        order.alive = true;
        break;
    default:
        order.end = sometimes(input) ? &end : NULL;
        break;
    }
    give_order(world, input, &order);
}

void peers_order(struct world *world, struct input *input)
{
    switch (below(input, 6)) {
    case 0:
        peers_add(world, input, below(input, DEFINITIONS));
        break;
    case 1:
        peers_open(world, input, below(input, WORLD_SESSIONS_MAX));
        break;
    case 2:
        order_end(world, input, false);
        break;
    case 3:
        order_end(world, input, true);
        break;
    case 4:
        peers_hello(world, input);
        break;
    default:
        order_rest(world, input);
        break;
    }
}

/* ---- calls, and reports of ps 1 ---- */

void peers_join(struct world *world, struct input *input, uint32_t task)
{
    static uint8_t nonce[16];
    static wire_task_name members[MEMBERS_MAX];
    static wire_task_name *pointers[MEMBERS_MAX];
    wire_task_name name = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    memset(nonce, (int)(input != NULL ? below(input, 4) * 16 : 0) + (int)task, sizeof nonce);
    name.job = "worker";
    name.index = task;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){.len = 16, .data = nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &name;
    request.local_replicas = 1;
    if (input != NULL && sometimes(input)) {
        name.job = (char *)(uintptr_t)jobs[below(input, JOBS)];
        request.role = below(input, 2) ? SUMAC__V1__ROLE__ROLE_OBSERVER : request.role;
        request.nonce.len = sometimes(input) ? 3 : 16;
        request.n_members = below(input, 3) * (MEMBERS_MAX / 2);
        request.members = pointers;
        for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
            members[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
            members[i].job = name.job;
            members[i].index = i;
            pointers[i] = &members[i];
        }
    }
    world_call(world, LANE_CALL_JOIN, &request.base);
}

void peers_create(struct world *world, struct input *input, uint32_t session, uint64_t id)
{
    struct made made;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    define(&made, &definitions[id % DEFINITIONS], names[id % NAMES]);
    request.session_id = peers_session_id(world, session);
    request.variable = &made.variable;
    if (input != NULL && sometimes(input)) {
        made.variable.name = (char *)(uintptr_t)names[below(input, NAMES)];
        made.shape[0] <<= below(input, 64);
        made.partitioner.kind = (Sumac__V1__Partitioner__Kind)below(input, 5);
        made.initializer.a = (double)NAN;
    }
    world_call(world, LANE_CALL_CREATE, &request.base);
}

static void list(struct world *world, struct input *input)
{
    static const uint64_t counts[] = {0, 1, 2, 60, NAMES_MAX};
    static char *asked[NAMES_MAX];
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    request.n_names = one_of(input, counts, 5);
    request.names = asked;
    const uint32_t first = below(input, NAMES), of = 1 + below(input, 3);
    for (size_t i = 0; i < request.n_names; i++)
        asked[i] = (char *)(uintptr_t)names[(first + i % of) % NAMES];
    world_call(world, LANE_CALL_LIST, &request.base);
}

/* To a barrier of a few names, of tasks in any order. */
static void come(struct world *world, struct input *input, uint32_t session)
{
    static const uint64_t rounds[] = {0, 1, 2, 3, UINT64_MAX, INT64_MAX};
    wire_task_name tasks[3], *pointers[3];
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    request.session_id = peers_session_id(world, session);
    request.name = (char *)(uintptr_t)names[below(input, NAMES)];
    request.round = one_of(input, rounds, 6);
    request.timeout_ms = below(input, 3) * 1000;
    request.n_tasks = below(input, 4);
    request.tasks = pointers;
    for (uint32_t i = 0; i < 3; i++) {
        tasks[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        tasks[i].job = (char *)(uintptr_t)(sometimes(input) ? jobs[below(input, JOBS)] : "worker");
        tasks[i].index = sometimes(input) ? below(input, 3) : i;
        pointers[i] = &tasks[i];
    }
    world_call(world, LANE_CALL_BARRIER, &request.base);
}

void peers_call(struct world *world, struct input *input)
{
    wire_renew_request renew = WIRE_RENEW_REQUEST_INIT;
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;
    wire_delete_request deleted = WIRE_DELETE_REQUEST_INIT;
    wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    const uint32_t session = below(input, WORLD_SESSIONS_MAX);

    renew.session_id = leave.session_id = deleted.session_id = peers_session_id(world, session);
    leave.done = session == 1;
    switch (below(input, 9)) {
    case 0:
        list(world, input);
        break;
    case 1:
        world_call(world, LANE_CALL_STATS, &stats.base);
        break;
    case 2:
        peers_create(world, input, session, below(input, DEFINITIONS));
        break;
    case 3:
        deleted.name = (char *)(uintptr_t)names[below(input, NAMES)];
        world_call(world, LANE_CALL_DELETE, &deleted.base);
        break;
    case 4:
        peers_join(world, input, below(input, WORLD_SESSIONS_MAX));
        break;
    case 5:
        world_call(world, LANE_CALL_RENEW, &renew.base);
        break;
    case 6:
        world_call(world, LANE_CALL_LEAVE, &leave.base);
        break;
    case 7:
        come(world, input, session);
        break;
    default: {
        const uint64_t given_up = world->last_call - below(input, 8) % (world->last_call + 1);
        struct lane_event event = {.kind = LANE_EVENT_CALL_CANCELLED, .call = given_up};
        world->call_waits[given_up % WORLD_CALLS_MAX] = NULL;
        world_step(world, &event);
        break;
    }
    }
}

void peers_report(struct world *world, struct input *input)
{
    static const uint64_t incarnations[] = {WORLD_OTHER_INCARNATION, 77, 0};
    uint64_t assigned = below(input, 8);
    char *lost[] = {"h0 came back"};
    wire_bytes renewed = peers_session_id(world, below(input, WORLD_SESSIONS_MAX));
    wire_peer_report report = WIRE_PEER_REPORT_INIT;
    struct lane_event event = {.kind = LANE_EVENT_REPORT, .ps = 1, .report = &report};

    report.answers = world->order_count > 0 && below(input, 2) ? world->orders[0].number : 0;
    report.ps_incarnation = sometimes(input) ? one_of(input, incarnations, 3) : incarnations[0];
    report.epoch = 1;
    report.n_assigned = below(input, 2);
    report.assigned = &assigned;
    report.n_renewed = below(input, 2);
    report.renewed = &renewed;
    report.n_lost = sometimes(input) && sometimes(input);
    report.lost = lost;
    report.status = sometimes(input) ? SUMAC_RESOURCE_EXHAUSTED : 0;
    if (report.status != 0) {
        report.reason = SUMAC__V1__REASON__REASON_OUT_OF_MEMORY;
        report.message = "ps 1 has no memory";
    }
    switch (below(input, 8)) {
    case 0:
        world->mute = !world->mute;
        break;
    case 1:
    case 2:
        world_collective(world, !world->peer_up);
        break;
    case 3:
        world_answer_order(world);
        break;
    default:
        if (world->peer_up)
            world_step(world, &event);
        break;
    }
}
