/* SPDX-License-Identifier: Apache-2.0 */
/* lane_fields.c -- what a ps says in each field of its messages: each has a value of its own here,
 * so that none can stand for another. */
#include <math.h>

#include "assert_number.h"
#include "lane_opened.h"

#define CLUSTER 0xC1u
#define INCARNATION 0x1001u

/* One event, and the first effect of that kind, lent until the next step. */
static struct lane_effect
said(struct talk *talk, const struct lane_event *given, enum lane_effect_kind kind)
{
    struct lane_event event = *given;
    struct lane_effects effects;
    struct lane_effect first = {.kind = kind};
    bool found = false;

    event.now_us = talk->now_us;
    ps_core_step(talk->core, &event, &effects);
    for (uint32_t i = 0; i < effects.count && !found; i++) {
        found = effects.items[i].kind == kind;
        if (found)
            first = effects.items[i];
    }
    assert_true(found);
    return first;
}

static const wire_message *
answer(struct talk *talk, enum lane_call_kind kind, const wire_message *request)
{
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .call = 1,
        .call_kind = kind,
        .request = request,
        .resident_bytes = 1111,
        .connections = 22,
        .connections_refused = 33};

    return said(talk, &call, LANE_EFFECT_REPLY).reply;
}

TALK_TEST(a_greeting_says_where_the_client_is)
{
    wire_membership membership = WIRE_MEMBERSHIP_INIT;
    uint8_t id[16];
    wire_hello hello = WIRE_HELLO_INIT;
    wire_push_request push = WIRE_PUSH_REQUEST_INIT;
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;

    (void)begin(talk);
    membership.membership_epoch = 77; /* given */
    talk_order_of(talk, membership, &membership);
    talk_open(talk, 2); /* which names an earlier one: they do not go back */
    memset(id, 1, sizeof id);
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = CLUSTER;
    hello.epoch = 1;
    hello.ps_incarnation = INCARNATION;
    hello.session_id = (wire_bytes){.len = sizeof id, .data = id};
    hello.generation = 9;
    push.hello = pull.hello = &hello;
    struct lane_event event = {
        .kind = LANE_EVENT_PUSH,
        .stream = talk_stream(talk, LANE_STREAM_PUSH),
        .push_request = &push};

    const wire_greeting *of_push = said(talk, &event, LANE_EFFECT_ANSWER).push_answer->greeting;

    assert_int_equal(of_push->epoch, 1);
    assert_int_equal(of_push->ps_incarnation, INCARNATION);
    assert_int_equal(of_push->membership_epoch, 77);
    assert_int_equal(of_push->cluster_id, CLUSTER);
    assert_int_equal(of_push->staging_grant_bytes, 8192);

    event.kind = LANE_EVENT_PULL;
    event.stream = talk_stream(talk, LANE_STREAM_PULL);
    event.pull_request = &pull;
    const wire_greeting *of_pull = said(talk, &event, LANE_EFFECT_PULLED).pull_answer->greeting;
    assert_int_equal(of_pull->ps_incarnation, INCARNATION);
    assert_int_equal(of_pull->membership_epoch, 77);
}

TALK_TEST(a_refusal_says_what_came_and_what_was_expected)
{
    const uint64_t stream = begin(talk);
    const float values[] = {NAN, 1, 1, 1};
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct span span = {.data = (const uint8_t *)values, .bytes = sizeof values};

    piece.shard_id = VARIABLE;
    piece.bytes = header.bytes = sizeof values;
    header.sequence = 5;
    header.first = header.last = true;
    header.pieces = pieces;
    request.parts = parts;
    header.n_pieces = request.n_parts = 1;
    const struct lane_event event = {
        .kind = LANE_EVENT_PUSH,
        .stream = stream,
        .push_request = &request,
        .payload = &span,
        .payload_spans = 1};

    const wire_push_answer *said_so = said(talk, &event, LANE_EFFECT_ANSWER).push_answer;

    assert_int_equal(said_so->n_refused, 1);
    const wire_refused *refused = said_so->refused[0];
    assert_int_equal(refused->sequence, 5);
    assert_int_equal(refused->status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(refused->reason, SUMAC_REASON_NON_FINITE);
    assert_non_null(strstr(refused->message, "variable v5 is not finite"));
    assert_string_equal(refused->expected, "finite values");
    assert_string_equal(refused->given, "");
}

TALK_TEST(a_refusal_says_which_bytes_a_shard_does_not_have)
{
    const uint64_t stream = begin(talk);
    struct talk_part beyond = part(1, 0);

    beyond.offset = 3;

    talk_part(talk, stream, &beyond);

    talk_expect(talk, "refused 1 WRONG_SHAPE\n");
    assert_string_equal(talk->expected, "within 16 bytes");
    assert_string_equal(talk->given, "16 bytes at 12");
    assert_int_equal(talk_stats(talk)->refused, 1);
    assert_int_equal(talk_stats(talk)->non_finite, 0);
}

TALK_TEST(a_report_says_whose_it_is)
{
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    wire_delete_variable deleted = WIRE_DELETE_VARIABLE_INIT;

    (void)begin(talk);
    deleted.variable_id = VARIABLE;
    order.delete_ = &deleted;
    order.number = 99;
    const struct lane_event event = {
        .kind = LANE_EVENT_ORDER, .stream = talk->controller, .order = &order};

    const wire_peer_report *report = said(talk, &event, LANE_EFFECT_REPORT).report;

    assert_int_equal(report->answers, 99);
    assert_int_equal(report->ps_incarnation, INCARNATION);
    assert_int_equal(report->epoch, 1);
    assert_int_equal(report->status, SUMAC_OK);
}

TALK_TEST(a_report_of_a_close_says_whose_session_it_is)
{
    uint8_t id[16];
    wire_close_session close = WIRE_CLOSE_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    (void)begin(talk);
    close.session_id = talk_id(1, id);
    order.close = &close;
    order.number = 99;
    const struct lane_event event = {
        .kind = LANE_EVENT_ORDER, .stream = talk->controller, .order = &order};

    const wire_close_report *report = said(talk, &event, LANE_EFFECT_REPORT).report->close_report;

    assert_int_equal(report->session_id.len, sizeof id);
    assert_memory_equal(report->session_id.data, id, sizeof id);
}

/* What its client has said here is less than what all ps have heard, which ps 0 says. */
TALK_TEST(a_close_says_what_was_decided)
{
    const uint64_t stream = begin(talk);
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    uint64_t voided[] = {9};
    uint8_t id[16];

    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 1);
    cause.kind = SUMAC__V1__CLOSE_CAUSE__KIND__KIND_LEASE_OVER;
    cause.silent_ms = 10250;
    talk_close_for(talk, 1, &cause);
    memset(id, 1, sizeof id);
    decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    decide.final = 11;
    decide.voided = voided;
    decide.n_voided = 1;
    decide.acked_through = 8;
    order.decide = &decide;
    order.number = 99;
    const struct lane_event event = {
        .kind = LANE_EVENT_ORDER, .stream = talk->controller, .order = &order};

    const wire_closed *closed = said(talk, &event, LANE_EFFECT_ANSWER).push_answer->closed;

    assert_true(closed->decided);
    assert_int_equal(closed->final, 11);
    assert_int_equal(closed->acked_through, 8);
    assert_int_equal(closed->n_voided, 1);
    assert_int_equal(closed->voided[0], 9);
    assert_int_equal(closed->cause->kind, cause.kind);
    assert_int_equal(closed->cause->silent_ms, 10250);
}

/* Variable 9: rows 0 to 2 are on ps 0, 3 and 4 here. */
static void add_split(struct talk *talk)
{
    wire_shard there = WIRE_SHARD_INIT, here = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&there, &here};
    uint64_t shape[] = {5};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer zeros = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    there.shard_id = 70;
    here.shard_id = 71;
    there.rows = here.first_row = 3;
    here.rows = 2;
    there.bytes = 12;
    here.bytes = 8;
    here.ps = 1;
    there.layout_epoch = here.layout_epoch = 4;
    own.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    zeros.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
    variable.name = "split";
    variable.variable_id = publish.variable_id = 9;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.function = &own;
    variable.initializer = &zeros;
    variable.shards = shards;
    variable.n_shards = 2;
    add.variable = &variable;
    order.add_shards = &add;
    talk_order(talk, &order);
    order = (wire_peer_order)WIRE_PEER_ORDER_INIT;
    order.publish = &publish;
    talk_order(talk, &order);
}

TALK_TEST(a_list_says_which_rows_are_where_and_who_was_last)
{
    const uint64_t stream = begin(talk);
    const wire_list_request request = WIRE_LIST_REQUEST_INIT;

    add_split(talk);
    const struct talk_part push = {
        .sequence = 1,
        .eager = true,
        .shard = 71,
        .shards = 1,
        .values = one,
        .count = 2,
        .layout_epoch = 4};
    talk_part(talk, stream, &push);

    const wire_list_reply *page =
        (const wire_list_reply *)answer(talk, LANE_CALL_LIST, &request.base);

    assert_int_equal(page->cluster_id, CLUSTER);
    assert_int_equal(page->epoch, 1);
    assert_int_equal(page->ps, 1);
    assert_int_equal(page->ps_incarnation, INCARNATION);
    assert_int_equal(page->position, 1);
    assert_string_equal(page->ps_addresses[0], "h0:1");
    assert_string_equal(page->ps_addresses[1], "h1:1");
    const wire_variable *listed = page->variables[1];
    assert_string_equal(listed->name, "split");
    assert_int_equal(listed->variable_id, 9);
    assert_true(listed->published);
    const wire_shard *first = listed->shards[0], *second = listed->shards[1];
    assert_int_equal(first->shard_id, 70);
    assert_int_equal(first->ps, 0);
    assert_int_equal(first->first_row, 0);
    assert_int_equal(first->rows, 3);
    assert_int_equal(first->bytes, 12);
    assert_false(first->held);
    assert_int_equal(second->shard_id, 71);
    assert_int_equal(second->ps, 1);
    assert_int_equal(second->first_row, 3);
    assert_int_equal(second->rows, 2);
    assert_int_equal(second->bytes, 8);
    assert_int_equal(second->layout_epoch, 4);
    assert_true(second->held);
    assert_int_equal(second->version, 1);
    assert_string_equal(second->last_worker, "worker 1");
}

/* Two pushes applied, one refused and one staged; three pulls of 16 bytes; a session that is
 * closing, one that left as done, and one that is lost. */
TALK_TEST(statistics_say_of_each_session_what_it_did)
{
    const uint64_t stream = begin(talk);
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const float values[] = {NAN, 1, 1, 1};
    struct talk_part bad = part(3, 2);
    uint8_t id[16];
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;

    send(talk, stream, 1, 0);
    send(talk, stream, 2, 1);
    bad.values = values;
    talk_part(talk, stream, &bad);
    talk_commit_at(talk, stream, 3, 0, 0, 6);
    send(talk, stream, 4, 3);
    const uint64_t pulls = talk_pull_stream(talk, 1);
    for (uint64_t number = 1; number <= 3; number++)
        talk_pull(talk, pulls, number, VARIABLE, 1, 0);
    for (uint8_t session = 2; session <= 4; session++) {
        talk_open(talk, session);
        talk_close(talk, session);
    }
    talk_decide(talk, 3, 0, 0);
    memset(id, 4, sizeof id);
    decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    decide.done = true;
    talk_order_of(talk, decide, &decide);

    const wire_stats_reply *stats =
        (const wire_stats_reply *)answer(talk, LANE_CALL_STATS, &request.base);

    assert_int_equal(stats->n_sessions, 4);
    const wire_session_stats *session = stats->sessions[0];
    assert_string_equal(session->task, "worker 1");
    assert_int_equal(session->attempt, 1);
    assert_string_equal(session->state, "open");
    assert_int_equal(session->pushes, 2);
    assert_int_equal(session->push_bytes, 2 * 16);
    assert_int_equal(session->pulls, 3);
    assert_int_equal(session->pull_bytes, 3 * 16);
    assert_int_equal(session->refused, 1);
    assert_int_equal(session->non_finite, 1);
    assert_int_equal(session->duplicates, 0);
    assert_int_equal(session->clock, 6);
    assert_int_equal(session->push_us->count, 2);
    assert_int_equal(session->pull_us->count, 3);
    assert_true(session->staged_bytes > 0);
    assert_int_equal(session->staged_bytes, stats->memory->staged_bytes);
    assert_string_equal(stats->sessions[1]->state, "closing");
    assert_int_equal(stats->sessions[1]->last_heard_ms, 0); /* it was opened just now */
    assert_string_equal(stats->sessions[2]->state, "done"); /* the closed, newest first */
    assert_string_equal(stats->sessions[3]->state, "lost");
    assert_int_equal(stats->pushes, 2);
    assert_int_equal(stats->push_bytes, 2 * 16);
    assert_int_equal(stats->pulls, 3);
    assert_int_equal(stats->pull_bytes, 3 * 16);
    assert_int_equal(stats->refused, 1);
    assert_int_equal(stats->non_finite, 1);
    assert_int_equal(stats->push_us->count, 2);
    assert_int_equal(stats->pull_us->count, 3);
}

/* Versions that were applied since the one that the push is based on. */
TALK_TEST(statistics_say_how_stale_a_push_was)
{
    const uint64_t stream = begin(talk);
    struct talk_part stale = part(4, 3);

    for (uint64_t sequence = 1; sequence <= 3; sequence++)
        send(talk, stream, sequence, sequence - 1);
    stale.based_on = 1;
    talk_part(talk, stream, &stale);
    talk_commit(talk, stream, 4, 0, 0);
    talk_forget(talk);

    const wire_stats_reply *const stats = talk_stats(talk);

    assert_int_equal(stats->staleness->count, 1);
    assert_true(stats->staleness->sum == 2);
    assert_true(stats->sessions[0]->staleness->sum == 2);
}

TALK_TEST(statistics_say_what_a_ps_has_and_may_have)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    struct lane_config config = talk_config();

    config.base_bytes = 1001;
    config.view_bytes_max = 1002;
    config.state_bytes_max = 1u << 20;
    config.pulls_bytes_max = 65536;
    config.unread_answers_bytes_max = 1004;
    config.grpc_memory_bytes_max = 1005;
    config.connections_max = 7;
    config.calls_max = 3;
    (void)begin_with(talk, &config);
    const uint64_t pulls = talk_pull_stream(talk, 1);
    talk_pull(talk, pulls, 1, VARIABLE, 1, 1); /* it waits */

    const wire_stats_reply *stats =
        (const wire_stats_reply *)answer(talk, LANE_CALL_STATS, &request.base);

    const wire_memory_stats *memory = stats->memory;
    assert_int_equal(stats->epoch, 1);
    assert_int_equal(stats->ps_incarnation, INCARNATION);
    assert_string_equal(stats->address, "h1:1");
    assert_string_equal(stats->version, "test");
    assert_int_equal(stats->variables, 1);
    assert_int_equal(stats->shards, 1);
    assert_int_equal(stats->connections, 22);
    assert_int_equal(stats->connections_refused, 33);
    assert_int_equal(stats->connections_max, 7);
    assert_int_equal(memory->resident_bytes, 1111);
    assert_int_equal(memory->base_bytes, 1001);
    assert_int_equal(memory->view_bytes, 0);
    assert_int_equal(memory->view_bytes_max, 1002);
    assert_true(memory->state_bytes > 16);
    assert_int_equal(memory->state_bytes_max, 1u << 20);
    assert_int_equal(memory->staging_bytes_max, config.staging_bytes_max);
    assert_true(memory->pull_bytes > 0);
    assert_int_equal(memory->pulls_bytes_max, 65536);
    assert_int_equal(memory->unread_answers_bytes_max, 1004);
    assert_int_equal(memory->grpc_memory_bytes_max, 1005);
    assert_int_equal(memory->connections_bytes_max % 7, 0);
    assert_int_equal(memory->calls_bytes_max % 3, 0);
    assert_true(memory->connections_bytes_max > 0 && memory->calls_bytes_max > 0);
    assert_true(memory->step_bytes_max > WIRE_ARENA_BYTES_MAX);
    assert_true(memory->sessions_bytes_max > 0);
}
