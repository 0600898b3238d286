/* SPDX-License-Identifier: Apache-2.0 */
/* controller_desk.c -- a controller with records; see controller_desk.h. */

#include "unit.h"
#include "controller_check.h"
#include "controller_desk.h"
#include "controller_proposal.h"
#include "controller_replay_check.h"

static void *take(void *context, size_t bytes)
{
    const struct desk *desk = context;

    return desk->out_of_memory ? NULL : memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_give(&memory_heap, data, bytes);
}

/* ---- what it says ---- */

__attribute__((format(printf, 2, 3))) static void say(struct desk *desk, const char *format, ...)
{
    const size_t used = strlen(desk->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(desk->text + used, sizeof desk->text - used, format, arguments);
    va_end(arguments);
}

void desk_expect(struct desk *desk, const char *text)
{
    assert_string_equal(desk->text, text);
    desk->text[0] = '\0';
}

static const char *name_of(const wire_peer_order *order)
{
    const struct {
        const void *is;
        const char *name;
    } names[] = {
        {order->hello, "hello"},     {order->open, "open"},      {order->first_step, "count"},
        {order->close, "close"},     {order->decide, "decide"},  {order->membership, "membership"},
        {order->take, "take"},       {order->define, "define"},  {order->add_shards, "add"},
        {order->publish, "publish"}, {order->delete_, "delete"}, {order->end, "end"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].is != NULL)
            return names[i].name;
    return "alive";
}

/* The number is the one that it had, if a controller before this one has ordered it. */
static void keep_collective(struct desk *desk, uint64_t number, const wire_collective_end *end)
{
    desk->last_collective = number;
    say(desk, "collective %.*s %u %s%s%s\n", (int)end->collective->name.len,
        (const char *)end->collective->name.data, (unsigned)end->collective->round,
        sumac_status_name((enum sumac_status)end->status), end->message[0] == '\0' ? "" : " ",
        end->message);
}

static void keep_order(struct desk *desk, const wire_peer_order *order)
{
    assert_true(desk->order_count < 64);
    desk->orders[desk->order_count] = order->number;
    desk->closes[desk->order_count++] = order->close != NULL;
    if (order->number == 0)
        return;
    if (order->number > desk->last_order)
        desk->last_order = order->number;
    if (order->collective != NULL) {
        keep_collective(desk, order->number, order->collective);
        return;
    }
    assert_true(order->number > desk->orders_before);
    say(desk, "%s\n", name_of(order));
}

static void keep_reply(struct desk *desk, const wire_message *reply)
{
    if (reply->descriptor == &sumac__v1__join_reply__descriptor) {
        const wire_join_reply *joined = (const wire_join_reply *)reply;
        memcpy(desk->session, joined->session_id.data, 16);
        say(desk, "joined %u, before %u voided %u\n", (unsigned)joined->attempt,
            (unsigned)joined->previous_final, (unsigned)joined->n_previous_voided);
    } else if (reply->descriptor == &sumac__v1__create_reply__descriptor) {
        const wire_create_reply *created = (const wire_create_reply *)reply;
        say(desk, "created %u of %u shards%s\n", (unsigned)created->variable->variable_id,
            (unsigned)created->variable->n_shards, created->assign ? ", assign" : "");
    } else if (reply->descriptor == &sumac__v1__barrier_reply__descriptor) {
        const wire_barrier_reply *over = (const wire_barrier_reply *)reply;
        say(desk, "round %u %s\n", (unsigned)over->round,
            sumac_status_name((enum sumac_status)over->status));
    } else if (reply->descriptor == &sumac__v1__leave_reply__descriptor) {
        say(desk, "left at %u\n", (unsigned)((const wire_leave_reply *)reply)->final);
    } else {
        say(desk, "%s\n",
            reply->descriptor == &sumac__v1__renew_reply__descriptor ? "renewed" : "deleted");
    }
}

static void keep(struct desk *desk, const struct lane_effect *effect)
{
    switch (effect->kind) {
    case LANE_EFFECT_REPLY:
        keep_reply(desk, effect->reply);
        break;
    case LANE_EFFECT_FAIL:
        say(desk, "failed %s\n", sumac_reason_name(effect->error.reason));
        break;
    case LANE_EFFECT_ORDER:
        keep_order(desk, effect->order);
        break;
    case LANE_EFFECT_RECORD:
        written_keep(&desk->written, effect);
        say(desk, "record %u\n", (unsigned)effect->record);
        break;
    case LANE_EFFECT_EXIT:
        desk->lost = true;
        say(desk, "exit %s\n", sumac_reason_name(effect->error.reason));
        break;
    case LANE_EFFECT_RUN_OVER:
        say(desk, "over\n");
        break;
    case LANE_EFFECT_DIAL:
    case LANE_EFFECT_LOG:
    case LANE_EFFECT_WAKE:
        break;
    case LANE_EFFECT_ANSWER:
    case LANE_EFFECT_PULLED:
    case LANE_EFFECT_CLOSE_STREAM:
    case LANE_EFFECT_REPORT:
    case LANE_EFFECT_COMPUTE:
    case LANE_EFFECT_SERVING:
        fail_msg("effect %d is the lane's", (int)effect->kind);
    }
}

void desk_step(struct desk *desk, struct lane_event event)
{
    struct lane_effects effects;
    struct check check = {.text = ""};

    event.now_us = ++desk->now_us;
    event.random[0] = ++desk->drawn;
    controller_step(desk->controller, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        keep(desk, &effects.items[i]);
    if (!desk->lost)
        controller_check(desk->controller, &check);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
}

/* ---- the disk, and the ps ---- */

void desk_write_down(struct desk *desk)
{
    desk->on_disk = desk->written.count;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_RECORDED, .record = desk->on_disk});
}

void desk_obey_one(struct desk *desk)
{
    uint64_t voided[] = {3, 5};
    wire_peer_report report = WIRE_PEER_REPORT_INIT;
    wire_close_report close = WIRE_CLOSE_REPORT_INIT;
    const bool closes = desk->closes[0];

    report.ps_incarnation = desk->config.incarnation;
    report.epoch = CONTROLLER_EPOCH;
    report.answers = desk->orders[0];
    close.commit_through = 7;
    close.voided = voided;
    close.n_voided = 2;
    if (closes)
        report.close_report = &close;
    desk->order_count--;
    memmove(desk->orders, desk->orders + 1, desk->order_count * sizeof desk->orders[0]);
    memmove(desk->closes, desk->closes + 1, desk->order_count * sizeof desk->closes[0]);
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_PEER_UP});
    if (report.answers != 0)
        desk_step(desk, (struct lane_event){.kind = LANE_EVENT_REPORT, .report = &report});
}

void desk_obey(struct desk *desk)
{
    assert_true(desk->order_count > 0);
    while (desk->order_count > 0)
        desk_obey_one(desk);
}

void desk_settle_down(struct desk *desk)
{
    while (!desk->lost && (desk->order_count > 0 || desk->on_disk < desk->written.count)) {
        if (desk->on_disk < desk->written.count)
            desk_write_down(desk);
        while (desk->order_count > 0)
            desk_obey_one(desk);
    }
}

/* ---- its life ---- */

int desk_setup(void **state)
{
    static const char *const addresses[] = {"h0:1"};
    struct desk *const desk = calloc(1, sizeof *desk);

    assert_non_null(desk);
    desk->memory = (struct memory){.take = take, .give = give, .context = desk};
    desk->now_us = 100000000;
    desk->config = (struct lane_config){
        .ps_addresses = addresses,
        .ps_count = 1,
        .incarnation = 70,
        .lease_ms = 10000,
        .rejoin_ms = 10000,
        .rejoin_first_ms = 60000,
        .ps_lost_ms = 60000,
        .report_ms = 5000,
        .terminate_ms = 5000,
        .sessions_max = 8,
        .records = true,
    };
    desk->controller = controller_create(&desk->config, &desk->memory);
    assert_non_null(desk->controller);
    *state = desk;
    return 0;
}

struct controller *desk_replayed(const struct desk *desk)
{
    return written_replayed(&desk->written, &desk->config, &desk->memory);
}

void desk_compare(const struct desk *desk)
{
    written_compare(&desk->written, &desk->config, desk->controller);
}

int desk_teardown(void **state)
{
    struct desk *const desk = *state;

    desk->out_of_memory = false;
    if (!desk->lost)
        desk_compare(desk);
    controller_destroy(desk->controller);
    written_forget(&desk->written);
    free(desk);
    return 0;
}

void desk_start(struct desk *desk)
{
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_START, .random = {0, 9}});
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_PEER_UP});
}

void desk_begin(struct desk *desk)
{
    desk_start(desk);
    desk_settle_down(desk);
    desk->text[0] = '\0';
}

void desk_begin_again(struct desk *desk)
{
    struct controller *again = desk_replayed(desk);

    controller_destroy(desk->controller);
    desk->controller = again;
    desk->order_count = 0;
    desk->orders_before = desk->last_order;
    desk_start(desk);
}

static void call(struct desk *desk, enum lane_call_kind kind, const wire_message *request)
{
    desk_step(
        desk,
        (struct lane_event){
            .kind = LANE_EVENT_CALL, .call = ++desk->calls, .call_kind = kind, .request = request});
}

void desk_join(struct desk *desk, uint32_t nonce)
{
    uint8_t bytes[16] = {(uint8_t)nonce, (uint8_t)(nonce >> 8), 1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_identity identity = WIRE_IDENTITY_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = (char *)"worker";
    identity.host = (char *)"node4";
    identity.pid = nonce;
    request.identity = &identity;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof bytes, bytes};
    request.role = nonce < 100 ? SUMAC__V1__ROLE__ROLE_MEMBER : SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.task = nonce < 100 ? &task : NULL;
    call(desk, LANE_CALL_JOIN, &request.base);
}

void desk_joined(struct desk *desk, uint32_t nonce)
{
    desk_join(desk, nonce);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "joined"));
    desk->text[0] = '\0';
}

void desk_join_as(struct desk *desk, uint32_t worker, uint32_t nonce)
{
    uint8_t bytes[16] = {(uint8_t)nonce, 2};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = (char *)"worker";
    task.index = worker;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof bytes, bytes};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &task;
    request.members = (wire_task_name *[]){&task}; /* a whole list: of it alone */
    request.n_members = 1;
    call(desk, LANE_CALL_JOIN, &request.base);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "joined"));
    desk->text[0] = '\0';
}

void desk_renew(struct desk *desk)
{
    wire_renew_request request = WIRE_RENEW_REQUEST_INIT;

    request.session_id = (wire_bytes){16, desk->session};
    call(desk, LANE_CALL_RENEW, &request.base);
}

void desk_leave(struct desk *desk)
{
    wire_leave_request request = WIRE_LEAVE_REQUEST_INIT;

    request.session_id = (wire_bytes){16, desk->session};
    call(desk, LANE_CALL_LEAVE, &request.base);
}

void desk_define(struct desk *desk, const char *name)
{
    wire_define_request request = WIRE_DEFINE_REQUEST_INIT;

    request.session_id = (wire_bytes){16, desk->session};
    request.name = (char *)(uintptr_t)name;
    request.text = (char *)"value = value + g";
    call(desk, LANE_CALL_DEFINE, &request.base);
}

void desk_create(struct desk *desk, const char *name, bool assigned)
{
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_partitioner partitioner = WIRE_PARTITIONER_INIT;
    wire_function function = WIRE_FUNCTION_INIT;
    wire_initializer initializer = WIRE_INITIALIZER_INIT;
    uint64_t shape[] = {4096};

    partitioner.kind = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS;
    partitioner.num_shards = desk->shards == 0 ? 2 : desk->shards;
    function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    initializer.kind = assigned ? SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED
                                : SUMAC__V1__INITIALIZER__KIND__KIND_ZEROS;
    variable.name = (char *)name;
    variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.partitioner = &partitioner;
    variable.function = &function;
    variable.initializer = &initializer;
    request.session_id = (wire_bytes){16, desk->session};
    request.variable = &variable;
    call(desk, LANE_CALL_CREATE, &request.base);
}

void desk_delete(struct desk *desk, const char *name)
{
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;

    request.session_id = (wire_bytes){16, desk->session};
    request.name = (char *)name;
    call(desk, LANE_CALL_DELETE, &request.base);
}

void desk_come(struct desk *desk, const char *name, uint64_t round, uint32_t last)
{
    wire_task_name names[] = {WIRE_TASK_NAME_INIT, WIRE_TASK_NAME_INIT};
    wire_task_name *tasks[] = {&names[0], &names[1]};
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    names[0].job = names[1].job = (char *)"worker";
    names[1].index = last;
    request.session_id = (wire_bytes){16, desk->session};
    request.name = (char *)(uintptr_t)name;
    request.round = round;
    request.tasks = tasks;
    request.n_tasks = last == 0 ? 1 : 2;
    request.timeout_ms = 5000;
    call(desk, LANE_CALL_BARRIER, &request.base);
}

void desk_propose(struct desk *desk, const char *name, uint64_t round, enum sumac_status status)
{
    struct proposal proposal;

    propose(&proposal, name, round, status);
    proposal.report.ps_incarnation = desk->config.incarnation;
    proposal.report.epoch = CONTROLLER_EPOCH;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_REPORT, .report = &proposal.report});
}
