/* SPDX-License-Identifier: Apache-2.0 */
/* lane_told.c -- what a ps is told that does not fit it: a hello for another ps, an order about a
 * session that is not here, a pull of a view, and, ps 0, orders of another ps 0. */
#include "lane_opened.h"
#include "part_state.h"
#include "step.h"

static void order_hello(struct talk *talk, wire_peer_hello *hello)
{
    talk_order_of(talk, hello, hello);
}

TALK_TEST(a_close_reports_whether_the_client_is_connected)
{
    const uint64_t stream = begin(talk);

    talk_close(talk, 1);
    assert_true(talk->connected);

    talk_hang_up(talk, stream);
    talk_close(talk, 1);
    assert_false(talk->connected);
}

TALK_TEST(a_hello_for_another_ps_is_refused_and_the_present_ps_0_obeyed)
{
    wire_peer_hello hello = talk_good_hello();

    (void)begin(talk);
    const uint64_t present = talk->controller;
    hello.index = 2;
    talk->controller = talk_stream(talk, LANE_STREAM_PEER);

    order_hello(talk, &hello);

    talk_expect(talk, "report 5 error WRONG_CLUSTER\n");
    talk_open(talk, 2); /* nor is anything else on that stream taken */
    talk_expect(talk, "end of stream MALFORMED\n");
    talk->controller = present;
    talk_open(talk, 2);
    talk_expect(talk, "report 7\n");
}

TALK_TEST(a_second_ps_0_hears_where_the_first_is_and_to_end_one)
{
    wire_peer_hello hello = talk_good_hello();
    wire_identity identity = WIRE_IDENTITY_INIT;

    (void)begin(talk); /* given */
    identity.host = (char *)(uintptr_t) "node1";
    identity.pid = 12;
    hello.identity = &identity;
    order_hello(talk, &hello);
    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    identity.host = (char *)(uintptr_t) "node3";
    identity.pid = 30;
    hello.controller_incarnation = 0x2000;

    order_hello(talk, &hello); /* when */

    assert_string_equal(
        talk->closed.text, /* then */
        "ps 1 belongs to another ps 0: end this ps 0 (process 30 on node3), or the one at h0:1 "
        "(process 12 on node1), heard from 0 µs ago");
}

/* On the stream that orders have come on: from now on it is nobody's. */
TALK_TEST(a_ps_0_that_takes_this_for_another_ps_is_obeyed_no_more)
{
    wire_peer_hello hello = talk_good_hello();

    (void)begin(talk);
    hello.index = 2;

    order_hello(talk, &hello);
    talk_expect(talk, "report 5 error WRONG_CLUSTER\n");
    talk_open(talk, 2);

    talk_expect(talk, "end of stream MALFORMED\n");
    hello.index = 1;
    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    order_hello(talk, &hello);
    talk_open(talk, 2);
    talk_expect(talk, "report 7\nreport 8\n");
}

/* The close was lost to it and the session with it; or it was decided, and forgotten. */
TALK_TEST(a_session_that_is_not_here_cannot_be_closed_and_is_decided)
{
    (void)begin(talk);

    talk_close(talk, 9);
    talk_expect(talk, "report 5 error SESSION_UNKNOWN\n");
    talk_decide(talk, 9, 7, 0);

    talk_expect(talk, "report 6\n");
}

static void open_at(struct talk *talk, uint8_t session, uint64_t membership_epoch)
{
    uint8_t id[16] = {session};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    task.job = (char *)"worker";
    task.index = session;
    open.session_id = (wire_bytes){.len = sizeof id, .data = id};
    open.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    open.task = &task;
    open.attempt = 1;
    open.membership_epoch = membership_epoch;
    talk_order_of(talk, open, &open);
}

TALK_TEST(a_session_that_is_opened_tells_the_membership_when_it_is_newer)
{
    (void)begin(talk);

    open_at(talk, 2, 5);
    assert_int_equal(talk->lane->membership_epoch, 5);
    open_at(talk, 3, 4); /* given again, after a later one */

    assert_int_equal(talk->lane->membership_epoch, 5);
    talk_expect(talk, "report 5\nreport 6\n");
}

TALK_TEST(a_pull_of_a_view_is_of_a_later_release)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    (void)begin(talk);
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = talk_pull_stream(talk, 1), .pull_request = &request};
    talk_forget(talk);
    request.request = 1;
    request.view_id = 7;

    talk_step(talk, &event);

    talk_expect(talk, "pulled 1 error UNSUPPORTED\n");
}

/* It takes its place all the same, and the next push goes on. */
TALK_TEST(a_function_with_a_hyperparameter_that_it_cannot_have_refuses_its_push)
{
    const uint64_t stream = begin(talk);
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *rates[] = {&rate};
    wire_function sgd = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&sgd};
    wire_part header = WIRE_PART_INIT;

    rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_BETA_2; /* it has none */
    rate.value = 0.5;
    sgd.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    sgd.hyperparameters = rates;
    sgd.n_hyperparameters = 1;
    header.sequence = 1;
    header.first = header.last = true;
    header.functions = functions;
    header.n_functions = 1;

    talk_push_part(talk, stream, &header, NULL, 0);
    talk_expect(talk, "refused 1 BAD_HYPERPARAMETER\n");
    send(talk, stream, 2, 1);

    talk_expect(talk, "staged 2\n");
}

/* Part 3 waits behind parts 1, on its way, and 2. Of 4 and 5 no part will come here; there is room
 * for two. */
TALK_TEST(a_push_that_is_to_be_passed_over_is_so_however_many_no_part_comes_of)
{
    struct lane_config config = talk_config();

    config.voided_per_session_max = 2;
    const uint64_t stream = begin_with(talk, &config);
    send(talk, stream, 2, 1);
    send(talk, stream, 3, 2);
    for (uint64_t sequence = 3; sequence <= 5; sequence++)
        talk_commit(talk, stream, sequence, sequence, 0);
    talk_expect(talk, "staged 2\nstaged 3\n"); /* given */

    send(talk, stream, 1, 0);

    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 2 [2]\ndone 3 voided\n");
}

/* What is being computed is not. */
static bool is_there(const struct talk *talk, uint64_t variable)
{
    uint8_t bytes[sizeof one];

    return lane_peek(talk->lane, variable, bytes, sizeof bytes) > 0;
}

/* Two operations are out: the one that began first is computed first. */
TALK_TEST(of_two_operations_each_is_over_when_its_own_work_is_done)
{
    struct lane_config config = talk_config();
    struct talk_part eager = part(1, 0);
    struct lane_compute first;

    config.inline_bytes = 8;
    (void)begin_with(talk, &config);
    talk_open(talk, 2);
    talk_variable(talk, VARIABLE + 1, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 2);
    const uint64_t other = talk_push_stream(talk, 2, 1);
    talk->holds_compute = true;
    eager.eager = true;
    talk_part(talk, stream, &eager);
    first = talk->compute;
    eager.shard = VARIABLE + 1;
    talk_part(talk, other, &eager);
    const struct lane_compute second = talk->compute;
    assert_int_not_equal(first.job, second.job);
    talk_forget(talk);

    talk->compute = first;
    talk_compute(talk);
    assert_true(is_there(talk, VARIABLE));
    assert_false(is_there(talk, VARIABLE + 1));
    talk_expect(talk, "done 1 [1]\n");
    talk->compute = second;
    talk_compute(talk);

    talk_expect(talk, "done 1 [1]\n");
    assert_true(is_there(talk, VARIABLE + 1));
}

/* ---- ps 0 ---- */

TALK_TEST(ps_0_that_another_ps_0_calls_names_both_lists)
{
    static const char *const ours[] = {"h0:1", "h1:1"};
    static char *others[] = {"h1:1", "h0:1"};
    static const char none[] = "this is ps 0, which gives orders and takes none";
    static const char index[] = "ps 0 answers at h1:1, which the configuration of ps 0 calls ps 1: "
                                "correct the index of that ps, or the order of the ps addresses";
    static const char both[] = "this is ps 0 of h0:1, h1:1, called by ps 0 of h1:1, h0:1; give "
                               "every task the same, in the same order";
    struct lane_config config = talk_config();
    wire_peer_hello hello = talk_good_hello();
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    config.index = 0;
    config.ps_addresses = ours;
    config.ps_count = 2;
    talk_start(talk, &config);
    talk_forget(talk);
    for (int i = 0; i < 3; i++) { /* no hello, one of its own list, one of another */
        order.hello = i == 0 ? NULL : &hello;
        order.alive = i == 0;
        hello.ps_addresses = i == 1 ? (char **)(uintptr_t)ours : others;
        talk->controller = talk_stream(talk, LANE_STREAM_PEER);

        talk_order(talk, &order);

        talk_expect(talk, "end of stream WRONG_CLUSTER\n");
        assert_string_equal(talk->closed.text, i == 0 ? none : i == 1 ? index : both);
    }
}

/* The refusal waits for a reader that has stopped. The client still hears why. */
TALK_TEST(who_is_closed_hears_why_a_push_was_refused)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    talk_part(talk, stream, &sent);
    talk->deaf = stream; /* given: one message is out, and its reader has stopped */
    sent = part(2, 1);
    talk_part(talk, stream, &sent);
    sent = part(3, 2);
    sent.shard = 12345;
    talk_part(talk, stream, &sent);
    assert_null(strstr(talk->text, "refused"));
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0); /* when */
    talk_forget(talk);
    talk->deaf = 0;
    talk_writable(talk, stream);

    assert_non_null(strstr(talk->text, "refused 3 UNKNOWN_SHARD\n")); /* then */
    assert_non_null(strstr(talk->refused, "12345"));
}

/* ps 0 counts each report as an answer of its order. */
TALK_TEST(a_close_is_reported_once)
{
    (void)begin(talk);
    talk_close(talk, 1);
    assert_int_equal(talk_times_said(talk, "commit_through 0"), 1);

    for (int i = 0; i < 3; i++)
        talk_tick(talk, 1000);

    assert_int_equal(talk_times_said(talk, "commit_through 0"), 1);
}

/* A ps that has heard nothing from ps 0 yet. Its controller's stream is open. */
static void begin_missed(struct talk *talk, struct lane_config config)
{
    talk_make(talk, &config);
    talk_step(talk, &(struct lane_event){.kind = LANE_EVENT_START, .random = {1, 11}});
    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    talk->shows_logs = true;
    talk_forget(talk);
}

TALK_TEST(a_hello_may_come_again_on_its_stream)
{
    wire_peer_hello hello = talk_good_hello();

    (void)begin(talk);

    order_hello(talk, &hello);
    order_hello(talk, &hello);

    talk_expect(talk, "report 5\nreport 6\n");
}

TALK_TEST(a_hello_without_addresses_is_logged_as_of_an_unknown_address)
{
    wire_peer_hello hello = talk_good_hello();
    struct lane_config config = talk_config();

    config.ps_addresses = NULL;
    config.ps_count = 0;
    begin_missed(talk, config);
    hello.ps_addresses = NULL;
    hello.n_ps_addresses = 0;

    order_hello(talk, &hello);

    assert_int_equal(talk_times_said(talk, "was called by ps 0 at an unknown address"), 1);
}

/* The number of this ps in the list of ps 0 is one beyond the list. */
TALK_TEST(a_hello_with_an_index_beyond_its_list_names_no_address)
{
    char *addresses[] = {"h0:1", "h1:1", "h9:9"};
    wire_peer_hello hello = talk_good_hello();

    begin_missed(talk, talk_config());
    hello.ps_addresses = addresses;
    hello.index = 2;

    order_hello(talk, &hello);

    assert_non_null(strstr(
        talk->end.text,
        "ps 1 answers at an unknown address, which the configuration of ps 0 calls ps 2"));
}

/* The other run may number this ps as it likes: the run is what is wrong. */
TALK_TEST(a_hello_of_another_run_is_refused_for_its_run)
{
    struct lane_config config = talk_config();
    wire_identity identity = SUMAC__V1__IDENTITY__INIT;
    wire_peer_hello hello = talk_good_hello();

    config.identity = (struct run_identity){.run = "ours", .source = RUN_SOURCE_ENVIRONMENT};
    begin_missed(talk, config);
    identity.run = (char *)(uintptr_t) "theirs";
    identity.source = (Sumac__V1__Identity__Source)RUN_SOURCE_ENVIRONMENT;
    hello.identity = &identity;
    hello.index = 2;

    order_hello(talk, &hello);

    assert_non_null(strstr(talk->end.text, "give each run its own addresses"));
    assert_non_null(strstr(talk->end.text, "theirs"));
}

/* A cluster has LANE_PS_MAX ps at most. A ps stores no more incarnations. */
TALK_TEST(a_hello_may_name_as_many_ps_as_a_cluster_has_at_most)
{
    enum { named = LANE_PS_MAX + 4 };
    char *addresses[named];
    uint64_t incarnations[named] = {0x1000};
    wire_peer_hello hello = talk_good_hello();

    (void)begin(talk);
    for (size_t i = 0; i < named; i++) {
        addresses[i] = (char *)(uintptr_t)(i == 0 ? "h0:1" : "h1:1");
        incarnations[i] = i < LANE_PS_MAX ? incarnations[i] : 7;
    }
    hello.ps_addresses = addresses;
    hello.ps_incarnations = incarnations;
    hello.n_ps_incarnations = named;

    hello.n_ps_addresses = LANE_PS_MAX;
    order_hello(talk, &hello);
    assert_int_equal(talk->lane->ps_count, LANE_PS_MAX);
    const size_t kept = talk->lane->strings.bytes_used;
    hello.n_ps_addresses = 2;
    order_hello(talk, &hello);
    assert_int_equal(talk->lane->strings.bytes_used, kept); /* as they are known */
    assert_int_equal(talk->lane->ps_count, 2);
    hello.n_ps_addresses = LANE_PS_MAX + 1;
    order_hello(talk, &hello);
    assert_int_equal(talk->lane->ps_count, 2);

    talk_expect(talk, "report 5\nreport 6\nreport 7\n");
}

/* The bound of what sessions keep is known when the number of ps is. */
TALK_TEST(the_first_hello_bounds_what_is_held_for_sessions)
{
    wire_peer_hello hello = talk_good_hello();
    struct lane_config config = talk_config();

    config.ps_addresses = NULL;
    config.ps_count = 0;
    begin_missed(talk, config);
    const uint64_t before = talk->lane->bytes.reserve_bytes;
    const uint64_t most =
        config.staging_bytes_max + LANE_PULLS_BYTES_MAX + LANE_COLLECTIVE_BYTES_MAX;
    assert_in_range(talk->lane->bytes.held_bytes_max, most, 2 * most);

    order_hello(talk, &hello);

    assert_true(talk->lane->bytes.reserve_bytes > before);
    assert_in_range(talk->lane->bytes.held_bytes_max, most, 2 * most);
}

TALK_TEST(the_first_call_and_the_first_session_of_a_ps_are_logged)
{
    wire_peer_hello hello = talk_good_hello();

    begin_missed(talk, talk_config());
    order_hello(talk, &hello);
    order_hello(talk, &hello); /* which is no other call */

    talk_open(talk, 1);
    talk_open(talk, 2);

    assert_int_equal(talk_times_said(talk, "ps 1 was called by ps 0 at h0:1"), 1);
    assert_int_equal(talk_times_said(talk, "opens its first session"), 1);
    assert_int_equal(talk_times_said(talk, "ps 1 opens its first session, of worker 1\n"), 1);
}

static void define(struct talk *talk, const char *text)
{
    wire_define_function define = WIRE_DEFINE_FUNCTION_INIT;

    define.number = UPDATE_DEFINED_FIRST;
    define.name = (char *)(uintptr_t) "mine";
    define.text = (char *)(uintptr_t)text;
    talk_order_of(talk, define, &define);
}

TALK_TEST(a_function_that_cannot_be_defined_is_refused_and_one_is_recorded_once)
{
    struct lane_config config = talk_config();

    config.records = talk->disk_is_quick = true;
    (void)begin_with(talk, &config);

    define(talk, "value = (");
    assert_int_equal(talk_times_said(talk, "report 5 error"), 1);
    talk_forget(talk);
    define(talk, "value = g");
    const uint64_t recorded = talk->last_record;
    define(talk, "value = g");

    talk_expect(talk, "report 6\nreport 7\n");
    assert_int_equal(talk->last_record, recorded);
    define(talk, "value = g + g"); /* under the same number */
    assert_int_equal(talk_times_said(talk, "report 8 error"), 1);
}

static void decide_with(struct talk *talk, uint8_t session, size_t count)
{
    uint8_t id[16];
    uint64_t voided[] = {1, 2, 3};
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;

    decide.session_id = talk_id(session, id);
    decide.final = 3;
    decide.voided = voided;
    decide.n_voided = count;
    talk_order_of(talk, decide, &decide);
}

/* Two ps remember one of a session each. */
TALK_TEST(a_decision_names_no_more_voided_pushes_than_all_ps_remember)
{
    struct lane_config config = talk_config();

    config.voided_per_session_max = 1;
    (void)begin_with(talk, &config);
    talk_close(talk, 1);
    talk_forget(talk);

    decide_with(talk, 1, 3);
    talk_expect(talk, "report 6 error MALFORMED\n");
    decide_with(talk, 1, 2);

    assert_int_equal(talk_times_said(talk, "report 7\n"), 1);
}

TALK_TEST(a_second_hello_ends_a_push_stream)
{
    const uint64_t stream = begin(talk);
    uint8_t id[16];
    wire_hello again = WIRE_HELLO_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    again.session_id = talk_id(1, id);
    again.epoch = 1;
    again.ps_incarnation = lane_config(talk->lane)->incarnation;
    again.generation = 2;
    request.hello = &again;

    talk_push(talk, stream, &request, NULL, 0);

    talk_expect(talk, "end of stream MALFORMED\n");
    assert_non_null(strstr(talk->closed.text, "a second hello on one stream"));
}

/* The client may have lost the stream before it read the refusal. */
TALK_TEST(a_refusal_is_said_again_on_a_new_stream)
{
    const uint64_t stream = begin(talk);
    struct talk_part unknown = part(1, 0);

    unknown.shard = 4711;
    talk_part(talk, stream, &unknown);
    talk_expect(talk, "refused 1 UNKNOWN_SHARD\n");
    talk_hang_up(talk, stream);

    (void)talk_push_stream(talk, 1, 2);

    talk_expect(talk, "greeting\nrefused 1 UNKNOWN_SHARD\n");
}

/* The push is applied, though the session is being closed. */
TALK_TEST(a_pull_after_a_push_that_is_applied_is_answered_while_its_session_closes)
{
    const uint64_t stream = begin(talk);
    const uint64_t pulls = talk_pull_stream(talk, 1);

    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0);
    talk_close(talk, 1);
    talk_forget(talk);

    talk_pull(talk, pulls, 7, VARIABLE, 1, 1);
    assert_int_equal(talk_times_said(talk, "pulled 7 [1]"), 1);
    talk_pull(talk, pulls, 8, VARIABLE, 1, 2);

    assert_int_equal(talk_times_said(talk, "pulled 8 error"), 1);
    assert_non_null(strstr(talk->refused, "pull 8 waits for push 2 of session worker 1"));
}

TALK_TEST(a_pull_that_waited_for_a_push_hears_of_that_push)
{
    (void)begin(talk);
    talk_pull(talk, talk_pull_stream(talk, 1), 7, VARIABLE, 1, 5);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);

    assert_int_equal(talk_times_said(talk, "pulled 7 error"), 1);
    assert_non_null(strstr(talk->refused, "pull 7 waited for push 5 of session worker 1"));
}
