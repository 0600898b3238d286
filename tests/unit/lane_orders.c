/* SPDX-License-Identifier: Apache-2.0 */
/* lane_orders.c -- what ps 0 orders and is told. */
#include "assert_number.h"
#include "lane_opened.h"

#define SHARDS_MAX 8u

/* What a hello on a new stream says, and what the same message orders besides. */
struct greeting {
    uint64_t controller, secret,
        expected; /* ps 0's incarnation and secret, this ps's incarnation */
    wire_end *end;
    uint64_t incarnations[4]; /* of the ps, as far as ps 0 knows them */
};

static void greet(struct talk *talk, const struct greeting *greeting)
{
    char *addresses[] = {"h0:1", "h1:1"};
    wire_peer_hello said = WIRE_PEER_HELLO_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    said.protocol_version = WIRE_PROTOCOL_VERSION;
    said.cluster_id = 0xC1;
    said.epoch = 1;
    said.controller_incarnation = greeting->controller;
    said.controller_secret = greeting->secret;
    said.index = 1;
    said.ps_addresses = addresses;
    said.n_ps_addresses = 2;
    said.expected_incarnation = greeting->expected;
    said.ps_incarnations = (uint64_t *)(uintptr_t)greeting->incarnations;
    said.n_ps_incarnations = sizeof greeting->incarnations / sizeof *greeting->incarnations;
    order.hello = &said;
    order.end = greeting->end;
    talk_order(talk, &order);
}

/* From this incarnation of ps 0, expecting that one of this ps. */
static void hello(struct talk *talk, uint64_t controller, uint64_t expected)
{
    const struct greeting greeting = {controller, TALK_SECRET, expected, .end = NULL};

    greet(talk, &greeting);
}

TALK_TEST(a_session_that_is_being_settled_is_not_taken_from)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    talk_forget(talk);

    talk_close(talk, 1);
    send(talk, stream, 2, 1);

    talk_expect(talk, "report 5 commit_through 0\nclosing\n");
}

TALK_TEST(without_close_before_settling_it_still_pushes)
{
    struct lane_config config = talk_config();

    config.broken = rule_bit(RULE_close_before_settling);
    const uint64_t stream = begin_with(talk, &config);

    talk_close(talk, 1);
    send(talk, stream, 1, 0);

    talk_expect(talk, "report 5 commit_through 0\nstaged 1\n");
}

TALK_TEST(a_close_reports_commits_and_refusals)
{
    const uint64_t stream = begin(talk);
    struct talk_part bad = part(2, 1);

    bad.offset = 1;
    send(talk, stream, 1, 0);
    talk_part(talk, stream, &bad);
    talk_commit(talk, stream, 1, 0, 0);
    talk_forget(talk);

    talk_close(talk, 1);
    talk_close(talk, 1);

    talk_expect(talk, "report 5 commit_through 1 voided 2\nreport 6 commit_through 1 voided 2\n");
}

TALK_TEST(a_decided_session_is_applied_up_to_its_final)
{
    const uint64_t stream = begin(talk);
    float held[4];

    send(talk, stream, 1, 0);
    send(talk, stream, 2, 1);
    send(talk, stream, 3, 2);
    talk_close(talk, 1);
    talk_forget(talk);

    talk_decide(talk, 1, 2, 1);

    talk_expect(talk, "done 1 voided\ndone 2 [1]\nclosed 2 voided 1\nreport 6\n");
    assert_int_equal(lane_peek(talk->lane, VARIABLE, (uint8_t *)held, sizeof held), 16);
    assert_number_equal(held[0], 1);
    talk_decide(talk, 1, 2, 1);
    talk_expect(talk, "report 7\n");
    wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_STATS, .request = &stats.base};
    talk_step(talk, &call); /* what it left out takes no room */
    talk_expect(
        talk,
        "reply StatsReply pushes 1 pulls 0 refused 0 duplicates 0 staleness 0 of 0 staged 0\n");
}

TALK_TEST(a_client_that_is_closed_hears_the_cause_that_ps_0_has_said)
{
    (void)begin(talk);
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;
    cause.kind = SUMAC__V1__CLOSE_CAUSE__KIND__KIND_LEASE_OVER;
    cause.silent_ms = 10250;
    talk_close_for(talk, 1, &cause);
    talk_forget(talk);

    talk_decide(talk, 1, 0, 0);

    talk_expect(talk, "report 6\nclosed 0 cause 2 10250 0\n");
}

TALK_TEST(without_tell_closed_client_it_is_not_told)
{
    struct lane_config config = talk_config();

    config.broken = rule_bit(RULE_tell_closed_client);
    (void)begin_with(talk, &config);
    talk_close(talk, 1);

    talk_decide(talk, 1, 0, 0);

    talk_expect(talk, "report 5 commit_through 0\nreport 6\n");
}

TALK_TEST(a_client_that_was_settled_meanwhile_is_told_when_it_is_back)
{
    const uint64_t stream = begin(talk);

    talk_hang_up(talk, stream);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_forget(talk);

    (void)talk_push_stream(talk, 1, 2);

    talk_expect(talk, "greeting\nclosed 0\n");
}

TALK_TEST(a_decision_is_answered_when_all_is_applied)
{
    struct lane_config config = talk_config();

    config.inline_bytes = 8;
    const uint64_t stream = begin_with(talk, &config);
    talk->holds_compute = true;
    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0); /* given: vector work is out */
    talk_close(talk, 1);
    talk_forget(talk);

    talk_decide(talk, 1, 1, 0);
    talk_expect(talk, "closed 1\n");
    talk_compute(talk);

    talk_expect(talk, "done 1 [1]\nreport 6\n");
}

/* Session 2's vector work has the shard that the next part of session 1 touches. */
static uint64_t begin_with_a_busy_shard(struct talk *talk)
{
    struct lane_config config = talk_config();
    struct talk_part eager = part(1, 0);

    config.inline_bytes = 8;
    eager.eager = true;
    const uint64_t stream = begin_with(talk, &config);
    talk_open(talk, 2);
    talk->holds_compute = true;
    talk_part(talk, talk_push_stream(talk, 2, 1), &eager);
    return stream;
}

static void expect_held(struct talk *talk, float value)
{
    float held[4];

    assert_int_equal(lane_peek(talk->lane, VARIABLE, (uint8_t *)held, sizeof held), sizeof held);
    assert_number_equal(held[0], value);
}

/* It is committed: on other ps it is applied. */
TALK_TEST(a_decision_waits_for_a_part_that_waits_for_its_shard)
{
    const uint64_t stream = begin_with_a_busy_shard(talk);

    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0);
    talk_close(talk, 1);
    talk_forget(talk);

    talk_decide(talk, 1, 1, 0);
    talk_expect(talk, "closed 1\n");
    talk_compute(talk);
    talk_expect(talk, "done 1 [1]\n"); /* session 2's */
    talk_compute(talk);

    talk_expect(talk, "done 1 [2]\nreport 7\n");
    expect_held(talk, 2);
}

/* The close has not counted its commit: what the shard's release may not do is apply it. */
TALK_TEST(an_eager_part_that_waits_for_its_shard_is_not_applied_after_the_close)
{
    const uint64_t stream = begin_with_a_busy_shard(talk);
    struct talk_part eager = part(1, 0);

    eager.eager = true;
    talk_part(talk, stream, &eager);
    talk_forget(talk);

    talk_close(talk, 1);
    talk_expect(talk, "report 6 commit_through 0\n");
    talk_compute(talk);
    talk_expect(talk, "done 1 [1]\n"); /* session 2's */
    talk_decide(talk, 1, 0, 0);

    talk_expect(talk, "report 7\nclosed 0\n");
    expect_held(talk, 1);
}

/* What its client had said that it knows of is in no list, and whoever reads the list is told
 * so. */
TALK_TEST(a_close_and_its_end_say_from_where_on_the_voided_pushes_are_whole)
{
    struct lane_config config = talk_config();
    const uint64_t stream = begin_with(talk, &config);

    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 1, 0);
    send(talk, stream, 2, 1);
    talk_commit(talk, stream, 2, 2, 1);
    talk_forget(talk);

    talk_close(talk, 1);
    talk_expect(talk, "report 5 commit_through 2 voided 2 acked 1\n");
    talk->decided_acked_through = 1;
    talk_decide(talk, 1, 2, 2);
    talk_expect(talk, "report 6\nclosed 2 voided 2 acked 1\n");
}

TALK_TEST(an_eager_part_that_is_being_applied_counts_in_a_settle)
{
    struct lane_config config = talk_config();

    config.inline_bytes = 8;
    const uint64_t stream = begin_with(talk, &config);
    struct talk_part eager = part(1, 0);
    eager.eager = true;
    talk->holds_compute = true;
    talk_part(talk, stream, &eager);
    talk_forget(talk);

    talk_close(talk, 1);

    talk_expect(talk, "report 5 commit_through 1\n");
    talk_compute(talk);
}

TALK_TEST(a_clock_counts_when_what_was_committed_before_it_is_applied)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 2, 1); /* push 1 is still on its way */
    talk_forget(talk);

    talk_commit_at(talk, stream, 2, 0, 0, 7);
    talk_open(talk, 2);
    talk_expect(talk, "report 5\n");
    send(talk, stream, 1, 0);
    talk_open(talk, 1);

    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 2 [2]\nreport 6\n"); /* worker 2 has clock 0 */
    talk_close(talk, 2);
    talk_decide(talk, 2, 0, 0);
    talk_forget(talk);
    talk_open(talk, 3);
    talk_expect(talk, "report 9 clock 7\n");
}

static void open_observer(struct talk *talk)
{
    uint8_t id[16] = {99};
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    open.session_id = (wire_bytes){.len = sizeof id, .data = id};
    open.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    talk_order_of(talk, open, &open);
}

/* A joiner starts at it: an observer finishes no steps. */
TALK_TEST(the_slowest_clock_is_a_members_and_never_goes_back)
{
    const uint64_t stream = begin(talk);

    talk_commit_at(talk, stream, 0, 0, 0, 5);
    open_observer(talk);
    talk_commit_at(talk, stream, 0, 0, 0, 9);
    talk_commit_at(talk, stream, 0, 0, 0, 7);
    talk_forget(talk);

    talk_open(talk, 2);

    talk_expect(talk, "report 6 clock 9\n");
}

TALK_TEST(pulls_of_a_settled_session_do_not_wait_on)
{
    (void)begin(talk);
    const uint64_t pull = talk_pull_stream(talk, 1);
    talk_pull(talk, pull, 4, VARIABLE, 1, 9);
    talk_close(talk, 1);
    talk_forget(talk);

    talk_decide(talk, 1, 0, 0);

    assert_non_null(strstr(talk->text, "pulled 4 error SESSION_CLOSED\n"));
    assert_non_null(strstr(talk->refused, "was closed on ps 1; start this process again"));
}

TALK_TEST(a_pull_for_a_push_of_a_closed_session_fails_at_once)
{
    (void)begin(talk);
    const uint64_t pull = talk_pull_stream(talk, 1);
    talk_close(talk, 1);
    talk_forget(talk);

    talk_pull(talk, pull, 4, VARIABLE, 1, 9);

    talk_expect(talk, "pulled 4 error SESSION_CLOSED\n");
    assert_non_null(strstr(talk->refused, "is closed on ps 1; start this process again"));
}

/* ---- what ps 0 is told ---- */

TALK_TEST(the_sessions_heard_from_are_reported_now_and_then)
{
    const uint64_t stream = begin(talk);

    talk_tick(talk, 2500);
    talk_expect(talk, "report renewed 1\n");
    talk_commit(talk, stream, 0, 0, 0);

    talk_tick(talk, 100);
    talk_expect(talk, "");
    talk_tick(talk, 2500);

    talk_expect(talk, "report renewed 1\n");
}

TALK_TEST(of_a_session_that_was_silent_for_a_while_ps_0_hears_at_once)
{
    const uint64_t stream = begin(talk);

    talk_tick(talk, 2500);
    talk_tick(talk, 2500);
    talk_tick(talk, 2500);
    talk_forget(talk);

    talk_commit(talk, stream, 0, 0, 0);

    talk_expect(talk, "report renewed 1\n");
}

TALK_TEST(a_variable_is_reported_when_its_creator_has_assigned_it)
{
    const uint64_t stream = begin(talk);

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    struct talk_part half = part(1, 0);
    half.shard = 20;
    half.count = 2;
    half.eager = true;
    half.function = UPDATE_ASSIGN;
    talk_part(talk, stream, &half);
    talk_expect(talk, "report 5\nreport 6\nstaged 1\ndone 1 [1]\n");

    half.offset = 2;
    half.sequence = 2;
    half.previous = 1;
    talk_part(talk, stream, &half);

    talk_expect(talk, "staged 2\ndone 2 [2]\nreport assigned 20\n");
    hello(talk, 0x1000, 0x1001); /* and again on a new stream: the report may be lost */
    talk_expect(talk, "end of stream STREAM_REPLACED\nreport 7\nreport assigned 20\n");
}

/* Some with each report, the next one deleted between two of them. */
TALK_TEST(a_ps_0_that_says_hello_is_told_of_many_variables_over_reports)
{
    enum { first = 20, count = 600, each = 512 };
    const uint64_t stream = begin(talk);
    struct talk_part all = part(1, 0);

    for (uint32_t i = 0; i < count; i++) { /* given */
        talk_add(talk, first + i, 4, 1, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
        all.shard = first + i;
        all.sequence = i + 1;
        all.previous = i;
        all.eager = true;
        all.function = UPDATE_ASSIGN;
        talk_part(talk, stream, &all);
        talk_forget(talk);
    }
    talk->deaf = talk->streams + 1; /* it takes one message at a time */

    hello(talk, 0x1000, 0x1001);                           /* when */
    assert_int_equal(talk_times_said(talk, "report "), 1); /* then: the answer */
    talk_forget(talk);
    talk_writable(talk, talk->controller);
    assert_int_equal(talk_times_said(talk, " assigned "), each);
    talk_forget(talk);
    talk_delete(talk, first + each); /* when */
    talk_expect(talk, "");
    talk_writable(talk, talk->controller);
    assert_int_equal(talk_times_said(talk, " assigned "), count - each - 1); /* then */
    assert_null(strstr(talk->text, " assigned 532"));
    talk_forget(talk);
    talk_writable(talk, talk->controller);
    assert_int_equal(talk_times_said(talk, "report "), 1); /* the answer to the delete */
    assert_int_equal(talk_times_said(talk, " assigned "), 0);
}

/* Its number is easily guessed before its create has been answered. */
TALK_TEST(a_shard_that_is_being_filled_is_not_there_yet)
{
    const uint64_t stream = begin(talk);
    const uint64_t pull = talk_pull_stream(talk, 1);
    const float values[4] = {1, 1, 1, 1};
    const struct talk_part sent = {
        .sequence = 1, .eager = true, .shard = 30, .shards = 1, .values = values, .count = 4};
    const uint64_t rows = 1u << 18; /* a megabyte: more than one step fills */

    talk_forget(talk);

    talk_add(talk, 30, rows, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    /* given: of two orders only the later one, to publish, is answered */
    talk_expect(talk, "report 6\n");
    talk_part(talk, stream, &sent);
    talk_pull(talk, pull, 1, 30, 1, 0);

    talk_expect(talk, "refused 1 UNKNOWN_SHARD\ndone 1 voided\npulled 1 error UNKNOWN_SHARD\n");
}

/* Vectors of `rows` each make up one; the shards' ids follow upon each other. */
static void add_in_shards(struct talk *talk, uint64_t id, uint32_t count, uint64_t rows)
{
    static wire_shard shards[SHARDS_MAX];
    wire_shard *pointers[SHARDS_MAX];
    uint64_t shape[] = {count * rows};
    wire_initializer values = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    for (uint32_t i = 0; i < count; i++) {
        pointers[i] = &shards[i];
        shards[i] = (wire_shard)WIRE_SHARD_INIT;
        shards[i].shard_id = id + i;
        shards[i].ps = 1;
        shards[i].first_row = i * rows;
        shards[i].rows = rows;
        shards[i].bytes = rows * sizeof(float);
    }
    values.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ASSIGNED;
    variable.name = (char *)"many";
    variable.variable_id = publish.variable_id = id;
    variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.initializer = &values;
    variable.shards = pointers;
    variable.n_shards = count;
    add.variable = &variable;
    order.add_shards = &add;
    talk_order(talk, &order);
    order.add_shards = NULL;
    order.publish = &publish;
    talk_order(talk, &order);
    talk_forget(talk);
}

/* In any order, some of them twice, the first of them in two. */
TALK_TEST(a_variable_is_assigned_with_the_last_of_its_shards)
{
    const uint64_t stream = begin(talk);

    add_in_shards(talk, 20, 5, 2); /* given */
    struct talk_part sent = part(1, 0);
    sent.shard = 22;
    sent.shards = 3;
    sent.count = 2;
    sent.eager = true;
    talk_part(talk, stream, &sent);
    talk_expect(talk, "staged 1\ndone 1 [1 1 1]\n");

    sent.shard = 21; /* when: but for the second element of the first shard */
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);
    sent.shard = 20;
    sent.shards = 2;
    sent.count = 1;
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);
    talk_expect(talk, "staged 2\ndone 2 [1 2 2]\nstaged 3\ndone 3 [1 2]\n");
    sent.offset = 1;
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 4\ndone 4 [2 3]\nreport assigned 20\n"); /* then */
}

/* Row by row, from the last to the first; and what only adds to a row assigns nothing. */
TALK_TEST(a_variable_is_assigned_when_every_element_is)
{
    const uint64_t stream = begin(talk);

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    talk_forget(talk);
    struct talk_part sent = part(1, 0);
    sent.shard = 20;
    sent.eager = true;
    sent.function = UPDATE_ASSIGN_ADD;
    talk_part(talk, stream, &sent); /* all of it, by assign_add */
    talk_expect(talk, "staged 1\ndone 1 [1]\n");

    sent.function = UPDATE_ASSIGN;
    sent.count = 2;
    sent.offset = 2;
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent); /* rows 2 and 3 */
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent); /* and once more */
    talk_expect(talk, "staged 2\ndone 2 [2]\nstaged 3\ndone 3 [3]\n");
    sent.offset = 0;
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 4\ndone 4 [4]\nreport assigned 20\n");
}

TALK_TEST(no_more_sessions_are_opened_than_there_are_grants_for)
{
    (void)begin(talk); /* 4 places, one taken */
    talk_open(talk, 2);
    talk_open(talk, 3);
    talk_open(talk, 4);
    talk_forget(talk);

    talk_open(talk, 5);
    talk_expect(talk, "report 8 error TOO_MANY_SESSIONS\n");
    talk_open(talk, 4);
    talk_close(talk, 4);
    talk_decide(talk, 4, 0, 0);
    talk_forget(talk);
    talk_open(talk, 5);

    talk_expect(talk, "report 12\n");
}

/* ps 0 has checked all of it; whoever says that it is ps 0 may not have. */
TALK_TEST(what_no_create_would_make_is_not_made_for_an_order)
{
    (void)begin(talk);

    talk_add(talk, 20, 4, 1, SUMAC_INT32, UPDATE_ASSIGN, SUMAC__V1__INITIALIZER__KIND__KIND_NORMAL);
    talk_add(talk, 21, 4, 1, SUMAC_INT32, UPDATE_ASSIGN, 99);
    talk_add(talk, 22, 4, 1, SUMAC_INT32, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS);

    talk_expect(
        talk, /* add_shards; publish */
        "report 5 error WRONG_DATA_TYPE\nreport 6 error UNKNOWN_VARIABLE\n"
        "report 7 error UNSUPPORTED\nreport 8 error UNKNOWN_VARIABLE\n"
        "report 9 error WRONG_DATA_TYPE\nreport 10 error UNKNOWN_VARIABLE\n");
}

TALK_TEST(an_order_given_twice_does_nothing_more)
{
    (void)begin(talk);

    talk_open(talk, 1);
    talk_add(talk, VARIABLE, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ONES);
    talk_delete(talk, VARIABLE);
    talk_delete(talk, VARIABLE);

    talk_expect(talk, "report 5\nreport 6\nreport 7\nreport 8\nreport 9\n");
}

TALK_TEST(an_order_for_a_view_is_answered_by_what_is_not_made_here)
{
    Sumac__V1__Freeze freeze = SUMAC__V1__FREEZE__INIT;
    Sumac__V1__Cut cut = SUMAC__V1__CUT__INIT;
    Sumac__V1__Rollback rollback = SUMAC__V1__ROLLBACK__INIT;
    wire_peer_order orders[3] = {WIRE_PEER_ORDER_INIT, WIRE_PEER_ORDER_INIT, WIRE_PEER_ORDER_INIT};

    (void)begin(talk);
    orders[0].freeze = &freeze;
    orders[1].cut = &cut;
    orders[2].rollback = &rollback;
    for (int i = 0; i < 3; i++)
        talk_order(talk, &orders[i]);

    talk_expect(
        talk, "report 5 error UNSUPPORTED\nreport 6 error UNSUPPORTED\nreport 7 error "
              "UNSUPPORTED\n");
}

TALK_TEST(a_deleted_variable_stays_for_the_parts_that_name_it)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    talk_delete(talk, VARIABLE);
    talk_forget(talk);

    send(talk, stream, 2, 1);
    talk_commit(talk, stream, 2, 0, 0);

    talk_expect(talk, "refused 2 UNKNOWN_SHARD\ndone 1 [1]\ndone 2 voided\n");
}

TALK_TEST(a_hello_that_comes_late_on_an_older_stream_is_not_taken)
{
    (void)begin(talk);
    hello(talk, 0x1000, 0x1001);
    talk_expect(talk, "end of stream STREAM_REPLACED\nreport 5\n");
    const uint64_t newest = talk->controller;

    talk->orders = 2;
    hello(talk, 0x1000, 0x1001);
    talk_expect(talk, "end of stream STREAM_REPLACED\n");

    talk->orders = 5;
    talk->controller = newest;
    talk_open(talk, 2);
    talk_expect(talk, "report 6\n");
}

/* 0 stands for a ps that ps 0 has not reached yet: nothing is known, or forgotten, of that one. */
TALK_TEST(a_ps_that_came_back_empty_is_found_behind_one_that_is_not_known)
{
    struct greeting greeting = {0x1000, TALK_SECRET, 0x1001, .incarnations = {0, 0, 0x30, 0x40}};

    (void)begin(talk);
    greet(talk, &greeting);
    greeting.incarnations[2] = 0;
    greet(talk, &greeting); /* ps 2 is not known, and ps 3 is the same */
    assert_null(strstr(talk->text, "exit"));
    talk_forget(talk);

    greeting.incarnations[3] = 0x41;
    greet(talk, &greeting);

    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
    assert_non_null(strstr(
        talk->end.text,
        "ps 3 came back without its state; start the whole run again, ps and workers"));
}

TALK_TEST(a_ps_that_was_not_known_for_a_while_is_still_compared)
{
    struct greeting greeting = {0x1000, TALK_SECRET, 0x1001, .incarnations = {0, 0, 0x30, 0}};

    (void)begin(talk);
    greet(talk, &greeting);
    greeting.incarnations[2] = 0;
    greet(talk, &greeting);
    talk_forget(talk);

    greeting.incarnations[2] = 0x31;
    greet(talk, &greeting);

    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
}

/* ---- calls ---- */

/* The controller combines the acknowledgements of all ps. The lane tells its client that value, not
 * its own. */
TALK_TEST(a_closed_client_hears_what_all_ps_know_to_be_acknowledged)
{
    (void)begin(talk);
    talk_close(talk, 1);
    talk_forget(talk);
    talk->decided_acked_through = 7;

    talk_decide(talk, 1, 9, 8);

    talk_expect(talk, "report 6\nclosed 9 voided 8 acked 7\n");
}
