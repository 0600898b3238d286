/* SPDX-License-Identifier: Apache-2.0 */
/* lane_talk_orders.c -- the conversation's half of ps 0, and a call of Stats. */
#include <stdio.h>

#include "lane_talk.h"

void talk_order(struct talk *talk, wire_peer_order *order)
{
    struct lane_event event = {
        .kind = LANE_EVENT_ORDER, .stream = talk->controller, .order = order};

    order->number = ++talk->orders;
    talk_step(talk, &event);
}

/* A session's id is its number, sixteen times. */
wire_bytes talk_id(uint8_t session, uint8_t id[16])
{
    memset(id, session, 16);
    return (wire_bytes){.len = 16, .data = id};
}

void talk_open(struct talk *talk, uint8_t session)
{
    uint8_t id[16];
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    task.job = (char *)(talk->job == NULL ? "worker" : talk->job);
    task.index = session;
    open.session_id = talk_id(session, id);
    open.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    open.task = &task;
    open.attempt = 1;
    if (talk->initials < talk->step_members)
        open.initial = ++talk->initials;
    talk_order_of(talk, open, &open);
}

void talk_first_step(struct talk *talk, uint8_t session, uint64_t step)
{
    uint8_t id[16];
    wire_first_step first = WIRE_FIRST_STEP_INIT;

    first.session_id = talk_id(session, id);
    first.step = step;
    talk_order_of(talk, first_step, &first);
}

void talk_take(struct talk *talk, uint64_t step, const char *sessions)
{
    uint8_t ids[8][16];
    wire_bytes named[8];
    wire_take_step take = WIRE_TAKE_STEP_INIT;

    take.step = step;
    take.session_ids = named;
    for (; sessions[take.n_session_ids] != 0; take.n_session_ids++)
        named[take.n_session_ids] =
            talk_id((uint8_t)(sessions[take.n_session_ids] - '0'), ids[take.n_session_ids]);
    talk_order_of(talk, take, &take);
}

void talk_close(struct talk *talk, uint8_t session) { talk_close_for(talk, session, NULL); }

void talk_close_for(struct talk *talk, uint8_t session, wire_close_cause *cause)
{
    uint8_t id[16];
    wire_close_session close = WIRE_CLOSE_SESSION_INIT;

    close.cause = cause;

    close.session_id = talk_id(session, id);
    talk_order_of(talk, close, &close);
}

void talk_decide(struct talk *talk, uint8_t session, uint64_t final, uint64_t voided)
{
    uint8_t id[16];
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;

    decide.session_id = talk_id(session, id);
    decide.final = final;
    decide.n_voided = voided != 0;
    decide.voided = &voided;
    decide.acked_through = talk->decided_acked_through;
    decide.lost = talk->lost;
    talk_order_of(talk, decide, &decide);
}

void talk_add(
    struct talk *talk, uint64_t id, uint64_t rows, uint64_t columns, enum sumac_dtype dtype,
    uint32_t function, int initializer)
{
    char name[1100];
    uint64_t shape[] = {rows, columns};
    wire_shard shard = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&shard};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer values = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    if (talk->name != NULL)
        (void)snprintf(name, sizeof name, "%s", talk->name);
    else
        (void)snprintf(name, sizeof name, "v%" PRIu64, id);
    shard.shard_id = id;
    shard.ps = 1;
    shard.rows = rows;
    shard.bytes = rows * columns * sumac_dtype_bytes(dtype);
    own.function = (Sumac__V1__UpdateFunction)function;
    values.kind = (Sumac__V1__Initializer__Kind)initializer;
    variable.name = name;
    variable.variable_id = id;
    variable.data_type = (Sumac__V1__DataType)dtype;
    variable.shape = shape;
    variable.n_shape = columns == 1 ? 1 : 2;
    variable.function = &own;
    variable.aggregation = (Sumac__V1__Aggregation)talk->aggregation;
    variable.initializer = &values;
    variable.shards = shards;
    variable.n_shards = 1;
    add.variable = &variable;
    order.add_shards = &add;
    talk_order(talk, &order);
    publish.variable_id = id;
    order.add_shards = NULL;
    order.publish = &publish;
    talk_order(talk, &order);
}

void talk_variable(struct talk *talk, uint64_t id, uint64_t elements, uint32_t function)
{
    talk_add(talk, id, elements, 1, SUMAC_FLOAT32, function, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
}

void talk_delete(struct talk *talk, uint64_t id)
{
    wire_delete_variable deleted = WIRE_DELETE_VARIABLE_INIT;

    deleted.variable_id = id;
    talk_order_of(talk, delete_, &deleted);
}

void talk_cancel(struct talk *talk, uint64_t stream, uint64_t request)
{
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    pull.request = request;
    pull.cancel = true;
    talk_step(talk, &event);
}

static void assert_counts_add_up(const wire_histogram *histogram)
{
    uint64_t count = 0;

    for (size_t i = 0; i < histogram->n_counts; i++)
        count += histogram->counts[i];
    assert_int_equal(histogram->count, count);
}

const wire_stats_reply *talk_stats(struct talk *talk)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us,
        .call = 1,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base};
    struct lane_effects effects;

    ps_core_step(talk->core, &call, &effects);
    assert_int_equal(effects.items[0].kind, LANE_EFFECT_REPLY);
    const wire_stats_reply *const reply = (const wire_stats_reply *)effects.items[0].reply;
    assert_counts_add_up(reply->staleness);
    assert_counts_add_up(reply->push_us);
    assert_counts_add_up(reply->pull_us);
    return reply;
}
