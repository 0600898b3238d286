/* SPDX-License-Identifier: Apache-2.0 */
/* lane_told.c -- what a ps is told that does not fit it: a hello for another ps, an order about a
 * session that is not here, a pull of a view, and, ps 0, orders of another ps 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lane_opened.h"
#include "step.h"

/* The hello that ps 0 said in talk_start. */
static wire_peer_hello good_hello(void)
{
    static char *addresses[] = {"h0:1", "h1:1"};
    static uint64_t incarnations[] = {0x1000, 0};
    wire_peer_hello hello = WIRE_PEER_HELLO_INIT;

    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = 0xC1;
    hello.epoch = 1;
    hello.coordinator_incarnation = 0x1000;
    hello.coordinator_secret = TALK_SECRET;
    hello.index = 1;
    hello.n_ps_addresses = hello.n_ps_incarnations = 2;
    hello.ps_addresses = addresses;
    hello.ps_incarnations = incarnations;
    return hello;
}

static void order_hello(struct talk *talk, wire_peer_hello *hello)
{
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    order.hello = hello;
    talk_order(talk, &order);
}

static void a_hello_for_another_ps_is_refused_and_the_present_ps_0_obeyed(void **state)
{
    struct talk *const talk = *state;
    wire_peer_hello hello = good_hello();

    (void)begin(talk);
    const uint64_t present = talk->coordinator;
    hello.index = 2;
    talk->coordinator = talk_stream(talk, LANE_STREAM_PEER);

    order_hello(talk, &hello);

    talk_expect(talk, "report 5 error WRONG_CLUSTER\n");
    talk_open(talk, 2); /* nor is anything else on that stream taken */
    talk_expect(talk, "end of stream MALFORMED\n");
    talk->coordinator = present;
    talk_open(talk, 2);
    talk_expect(talk, "report 7\n");
}

static void a_second_ps_0_hears_where_the_first_is_and_to_end_one(void **state)
{
    struct talk *const talk = *state;
    wire_peer_hello hello = good_hello();
    wire_identity identity = WIRE_IDENTITY_INIT;

    (void)begin(talk); /* given */
    identity.host = (char *)(uintptr_t) "node1";
    identity.pid = 12;
    hello.identity = &identity;
    order_hello(talk, &hello);
    talk->coordinator = talk_stream(talk, LANE_STREAM_PEER);
    identity.host = (char *)(uintptr_t) "node3";
    identity.pid = 30;
    hello.coordinator_incarnation = 0x2000;

    order_hello(talk, &hello); /* when */

    assert_string_equal(
        talk->closed.text, /* then */
        "ps 1 belongs to another ps 0: end this ps 0 (process 30 on node3), or the one at h0:1 "
        "(process 12 on node1), heard from 0 µs ago");
}

/* On the stream that orders have come on: from now on it is nobody's. */
static void a_ps_0_that_takes_this_for_another_ps_is_obeyed_no_more(void **state)
{
    struct talk *const talk = *state;
    wire_peer_hello hello = good_hello();

    (void)begin(talk);
    hello.index = 2;

    order_hello(talk, &hello);
    talk_expect(talk, "report 5 error WRONG_CLUSTER\n");
    talk_open(talk, 2);

    talk_expect(talk, "end of stream MALFORMED\n");
    hello.index = 1;
    talk->coordinator = talk_stream(talk, LANE_STREAM_PEER);
    order_hello(talk, &hello);
    talk_open(talk, 2);
    talk_expect(talk, "report 7\nreport 8\n");
}

/* The close was lost to it and the session with it; or it was decided, and forgotten. */
static void a_session_that_is_not_here_cannot_be_closed_and_is_decided(void **state)
{
    struct talk *const talk = *state;

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
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    task.job = (char *)"worker";
    task.index = session;
    open.session_id = (wire_bytes){.len = sizeof id, .data = id};
    open.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    open.task = &task;
    open.attempt = 1;
    open.membership_epoch = membership_epoch;
    order.open = &open;
    talk_order(talk, &order);
}

static void a_session_that_is_opened_tells_the_membership_when_it_is_newer(void **state)
{
    struct talk *const talk = *state;

    (void)begin(talk);

    open_at(talk, 2, 5);
    assert_int_equal(talk->lane->membership_epoch, 5);
    open_at(talk, 3, 4); /* given again, after a later one */

    assert_int_equal(talk->lane->membership_epoch, 5);
    talk_expect(talk, "report 5\nreport 6\n");
}

static void a_pull_of_a_view_is_of_a_later_release(void **state)
{
    struct talk *const talk = *state;
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
static void a_function_with_a_hyperparameter_that_it_cannot_have_refuses_its_push(void **state)
{
    struct talk *const talk = *state;
    const uint64_t stream = begin(talk);
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *rates[] = {&rate};
    wire_function sgd = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&sgd};
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_BETA_2; /* it has none */
    rate.value = 0.5;
    sgd.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    sgd.hyperparameters = rates;
    sgd.n_hyperparameters = 1;
    header.sequence = 1;
    header.first = header.last = true;
    header.functions = functions;
    header.n_functions = 1;
    request.parts = parts;
    request.n_parts = 1;

    talk_push(talk, stream, &request, NULL, 0);
    talk_expect(talk, "refused 1 BAD_HYPERPARAMETER\n");
    send(talk, stream, 2, 1);

    talk_expect(talk, "staged 2\n");
}

/* Part 3 waits behind parts 1, on its way, and 2. Of 4 and 5 no part will come here; there is room
 * for two. */
static void a_push_that_is_to_be_passed_over_is_so_however_many_no_part_comes_of(void **state)
{
    struct talk *const talk = *state;
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
static void of_two_operations_each_is_over_when_its_own_work_is_done(void **state)
{
    struct talk *const talk = *state;
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

static void ps_0_that_another_ps_0_calls_names_both_lists(void **state)
{
    struct talk *const talk = *state;
    static const char *const ours[] = {"h0:1", "h1:1"};
    static char *others[] = {"h1:1", "h0:1"};
    static const char none[] = "this is ps 0, which gives orders and takes none";
    static const char index[] = "ps 0 answers at h1:1, which the configuration of ps 0 calls ps 1: "
                                "correct the index of that ps, or the order of the ps addresses";
    static const char both[] = "this is ps 0 of h0:1, h1:1, called by ps 0 of h1:1, h0:1; give "
                               "every task the same, in the same order";
    struct lane_config config = talk_config();
    wire_peer_hello hello = good_hello();
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
        talk->coordinator = talk_stream(talk, LANE_STREAM_PEER);

        talk_order(talk, &order);

        talk_expect(talk, "end of stream WRONG_CLUSTER\n");
        assert_string_equal(talk->closed.text, i == 0 ? none : i == 1 ? index : both);
    }
}

/* The refusal waits for a reader that has stopped. The client still hears why. */
static void who_is_closed_hears_why_a_push_was_refused(void **state)
{
    struct talk *const talk = *state;
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
static void a_close_is_reported_once(void **state)
{
    struct talk *const talk = *state;

    (void)begin(talk);
    talk_close(talk, 1);
    assert_int_equal(talk_times_said(talk, "commit_through 0"), 1);

    for (int i = 0; i < 3; i++)
        talk_tick(talk, 1000);

    assert_int_equal(talk_times_said(talk, "commit_through 0"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(who_is_closed_hears_why_a_push_was_refused),
        talk_test(a_close_is_reported_once),
        talk_test(a_hello_for_another_ps_is_refused_and_the_present_ps_0_obeyed),
        talk_test(a_second_ps_0_hears_where_the_first_is_and_to_end_one),
        talk_test(a_ps_0_that_takes_this_for_another_ps_is_obeyed_no_more),
        talk_test(a_session_that_is_not_here_cannot_be_closed_and_is_decided),
        talk_test(a_session_that_is_opened_tells_the_membership_when_it_is_newer),
        talk_test(a_pull_of_a_view_is_of_a_later_release),
        talk_test(a_function_with_a_hyperparameter_that_it_cannot_have_refuses_its_push),
        talk_test(a_push_that_is_to_be_passed_over_is_so_however_many_no_part_comes_of),
        talk_test(of_two_operations_each_is_over_when_its_own_work_is_done),
        talk_test(ps_0_that_another_ps_0_calls_names_both_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
