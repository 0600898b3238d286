/* SPDX-License-Identifier: Apache-2.0 */
/* lane_ends.c -- how a ps comes to its end: whose word it takes for it, SIGTERM, and ps 0 that
 * tells the others first. */
#include "lane_opened.h"

/* What a hello on a new stream says, and what the same message orders besides. */
struct greeting {
    uint64_t controller, secret; /* of ps 0 */
    uint64_t expected;           /* the incarnation of this ps */
    wire_end *end;
    bool swapped;    /* the ps are in another order than this one knows */
    bool other_port; /* ps 0 has another port than this one knows */
    bool doubled;    /* ps 1 has the address of ps 0 */
    uint32_t worker; /* the only member that is listed; 0: none is */
    bool two;        /* worker 3 is listed beside it */
    bool partial;    /* that list is not whole */
    bool of_no_cluster, of_no_epoch;
    bool for_ps_0; /* it takes this ps, ps 1, for ps 0 */
};

/* On the stream that there is. */
static void greet_again(struct talk *talk, const struct greeting *greeting)
{
    char *addresses[] = {"h0:1", "h1:1"};
    char *swapped[] = {"h1:1", "h0:1"};
    wire_task_name worker = WIRE_TASK_NAME_INIT;
    wire_task_name second = {.base = worker.base, .job = "worker", .index = 3};
    wire_task_name *members[] = {&worker, &second};
    wire_peer_hello said = WIRE_PEER_HELLO_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    said.protocol_version = WIRE_PROTOCOL_VERSION;
    said.cluster_id = greeting->of_no_cluster ? 0 : 0xC1;
    said.epoch = greeting->of_no_epoch ? 0 : 1;
    said.controller_incarnation = greeting->controller;
    said.controller_secret = greeting->secret;
    said.index = greeting->for_ps_0 ? 0 : 1;
    said.ps_addresses = greeting->swapped ? swapped : addresses;
    said.n_ps_addresses = 2;
    if (greeting->other_port)
        addresses[0] = "h0:2";
    if (greeting->doubled)
        addresses[1] = addresses[0];
    worker.job = "worker";
    worker.index = greeting->worker;
    said.members = members;
    said.n_members = greeting->two ? 2 : greeting->worker != 0;
    said.members_partial = greeting->partial;
    said.expected_incarnation = greeting->expected;
    order.hello = &said;
    order.end = greeting->end;
    talk_order(talk, &order);
}

static void greet(struct talk *talk, const struct greeting *greeting)
{
    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    greet_again(talk, greeting);
}

/* From this incarnation of ps 0, expecting that one of this ps. */
static void hello(struct talk *talk, uint64_t controller, uint64_t expected)
{
    const struct greeting greeting = {controller, TALK_SECRET, expected, .end = NULL};

    greet(talk, &greeting);
}

/* ---- whose word it takes ---- */

/* ps 1 of a cluster of two, whose configuration lists worker 3. */
static void begin_configured(struct talk *talk)
{
    static const char *const jobs[] = {"worker"};
    static const uint32_t indices[] = {3};
    struct lane_config config = talk_config();

    config.members_jobs = jobs;
    config.members_indices = indices;
    config.member_count = 1;
    talk_make(talk, &config);
}

STATE_TEST(
    a_ps_0_whose_ps_contradict_this_configuration_ends_this_ps_with_both, talk_setup, talk_teardown)
{
    static const struct {
        struct greeting other;
        const char *text;
    } rows[] = {
        {{0x1000, TALK_SECRET, 0, .swapped = true, .worker = 3},
         "the configuration of ps 1 has the ps h0:1, h1:1, that of ps 0 h1:1, h0:1; give every "
         "task the same, in the same order"},
        {{0x1000, TALK_SECRET, 0, .other_port = true, .worker = 3},
         "the configuration of ps 1 has ps 0 at h0:1, that of ps 0 at h0:2; give every task the "
         "same"},
        {{0x1000, TALK_SECRET, 0, .for_ps_0 = true, .worker = 3},
         "ps 1 answers at h0:1, which the configuration of ps 0 calls ps 0: correct the index of "
         "that ps, or the order of the ps addresses"},
        {{0x1000, TALK_SECRET, 0, .doubled = true, .worker = 3},
         "the configuration of ps 0 has h0:1 as ps 0 and as ps 1; give each ps its own address"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i > 0) {
            assert_int_equal(talk_teardown(state), 0);
            assert_int_equal(talk_setup(state), 0);
        }
        struct talk *const talk = *state;
        begin_configured(talk);

        greet(talk, &rows[i].other);

        talk_expect(talk, "exit 2 WRONG_CLUSTER\n");
        assert_string_equal(talk->end.text, rows[i].text);
    }
}

TALK_TEST(a_ps_has_the_id_of_the_cluster_from_ps_0s_hello)
{
    const struct greeting first = {0x1000, TALK_SECRET, 0, .worker = 3};

    begin_configured(talk);
    assert_int_equal(lane_cluster_id(talk->lane), 0);

    greet(talk, &first);

    assert_int_equal(lane_cluster_id(talk->lane), 0xC1);
}

/* As when its own configuration has it under another name as ps 1. */
TALK_TEST(a_ps_0_that_is_given_orders_says_that_the_addresses_are_wrong)
{
    struct lane_config config = talk_config();
    const struct greeting other = {0x1000, TALK_SECRET, 0, .end = NULL};

    config.index = 0;
    talk_make(talk, &config);

    greet(talk, &other);

    talk_expect(talk, "end of stream WRONG_CLUSTER\n");
}

#define LISTED "the configuration of ps 1 lists worker 3, that of ps 0 "
#define REMEDY "; give every task the same"
STATE_TEST(a_ps_0_that_lists_other_members_is_a_configuration_to_mend, talk_setup, talk_teardown)
{
    for (int two = 0; two < 2; two++) {
        const struct greeting other = {0x1000, TALK_SECRET, 0, .worker = 2, .two = two};
        assert_int_equal(two ? talk_teardown(state) | talk_setup(state) : 0, 0);
        struct talk *const talk = *state;
        begin_configured(talk);

        greet(talk, &other);

        talk_expect(talk, "exit 2 WRONG_CLUSTER\n");
        assert_string_equal(
            talk->end.text, two ? LISTED "worker 2, worker 3" REMEDY : LISTED "worker 2" REMEDY);
    }
}

/* Whoever dials later cannot end it. */
TALK_TEST(a_ps_that_has_its_ps_0_compares_no_more)
{
    const struct greeting same = {0x1000, TALK_SECRET, 0, .worker = 3};
    const struct greeting other = {0x1000, TALK_SECRET, 0, .swapped = true, .worker = 2};

    begin_configured(talk);
    greet(talk, &same);
    talk_expect(talk, "report 1\n");

    greet(talk, &other);

    assert_null(strstr(talk->text, "exit"));
}

/* That of another run, while the stream of this run's ps 0 is broken. */
TALK_TEST(another_ps_0_that_takes_this_for_another_ps_ends_nobody)
{
    const struct greeting other = {0x2000, TALK_SECRET, 0, .for_ps_0 = true};

    (void)begin(talk);
    talk_hang_up(talk, talk->controller);

    greet(talk, &other);

    talk_expect(talk, "end of stream BUSY\n");
}

/* Its own stream was lost with it. */
TALK_TEST(another_ps_0_means_that_the_state_is_lost)
{
    (void)begin(talk);
    talk_hang_up(talk, talk->controller);

    hello(talk, 0x2000, 0x1001);

    talk_expect(talk, "exit 138 STATE_LOST\n");
    assert_non_null(strstr(
        talk->end.text,
        "ps 0 came back without its state; start the whole run again, ps and workers"));
}

/* Suspended it is silent, and its stream lives. */
TALK_TEST(another_ps_0_is_refused_while_the_stream_of_the_present_one_lives)
{
    (void)begin(talk);
    const uint64_t present = talk->controller;

    hello(talk, 0x2000, 0x1001);
    talk_expect(talk, "end of stream BUSY\n");
    talk->orders = 4;
    talk->controller = present;
    talk_open(talk, 2);
    talk_expect(talk, "report 5\n");

    for (int i = 0; i < 3; i++)
        talk_tick(talk, 1000);
    talk_forget(talk);
    hello(talk, 0x2000, 0x1001);
    talk_expect(talk, "end of stream BUSY\n");

    talk_hang_up(talk, present);
    hello(talk, 0x2000, 0x1001);
    talk_expect(talk, "exit 138 STATE_LOST\n");
}

/* Everybody may ask for the incarnation; the secret is told only to the other ps. */
TALK_TEST(who_does_not_know_the_secret_of_ps_0_is_not_ps_0)
{
    (void)begin(talk);
    const uint64_t present = talk->controller;
    wire_end end = WIRE_END_INIT;
    const struct greeting forged = {0x1000, TALK_SECRET + 1, 0x1001, .end = &end};

    talk->orders = UINT64_C(1) << 62;
    greet(talk, &forged);
    talk_expect(talk, "end of stream NOT_CONTROLLER\n");

    talk->orders = 4;
    talk->controller = present;
    talk_open(talk, 2);
    talk_expect(talk, "report 5\n");
    hello(talk, 0x1000, 0x1001);
    talk_expect(talk, "end of stream STREAM_REPLACED\nreport 6\n");
}

TALK_TEST(a_ps_that_came_back_empty_says_so)
{
    (void)begin(talk);

    hello(talk, 0x1000, 0x999);

    talk_expect(talk, "report 5 error STATE_LOST\n");
}

TALK_TEST(what_comes_with_a_hello_that_is_refused_is_not_obeyed)
{
    (void)begin(talk);
    wire_end end = WIRE_END_INIT;
    end.exit_code = 3;
    const struct greeting old = {0x1000, TALK_SECRET, 0x1001, .end = &end};
    const struct greeting other = {0x1000, TALK_SECRET, 0x999, .end = &end};

    talk->orders = 0;
    greet(talk, &old);
    talk_expect(talk, "end of stream STREAM_REPLACED\n");
    talk->orders = 4;
    greet(talk, &other);
    talk_expect(talk, "report 5 error STATE_LOST\n");

    talk_open(talk, 2); /* nor what comes after it */
    talk_expect(talk, "end of stream MALFORMED\n");
}

TALK_TEST(a_sign_of_life_is_answered_by_one)
{
    (void)begin(talk);
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    order.alive = true;

    talk_order(talk, &order);

    talk_expect(talk, "report\n");
}

TALK_TEST(a_ps_gives_up_when_ps_0_is_silent)
{
    (void)begin(talk);
    for (int i = 0; i < 59; i++)
        talk_tick(talk, 1000);
    talk_forget(talk);
    talk->shows_logs = true;

    talk_tick(talk, 1000);

    talk_expect(talk, "exit 138 STATE_LOST\n");
}

/* However often a line is due: a sign of life comes each second. */
TALK_TEST(a_ps_that_hears_from_ps_0_does_not_say_that_it_waits)
{
    struct lane_config config = talk_config();

    config.report_ms = 1000;
    (void)begin_with(talk, &config);
    wire_peer_order alive = WIRE_PEER_ORDER_INIT;
    alive.alive = true;
    talk->shows_logs = true;

    for (int i = 0; i < 5; i++) {
        talk_tick(talk, 1050);
        talk_order(talk, &alive);
    }
    assert_null(strstr(talk->text, "waits for"));
    for (int i = 0; i < 3; i++)
        talk_tick(talk, 1050);

    assert_non_null(strstr(
        talk->text,
        "log ps 1 waits for ps 0 at h0:1, last heard from 3.15 s ago; gives up in 57 s\n"));
}

TALK_TEST(its_own_sleep_is_not_the_silence_of_ps_0)
{
    (void)begin(talk);

    talk_tick(talk, 300000);
    for (int i = 0; i < 10; i++) /* half a lease, and a little more */
        talk_tick(talk, 6000);

    assert_int_equal(talk_times_said(talk, "report renewed 1\n"), 1);
    assert_null(strstr(talk->text, "exit"));
}

/* Its sleep is shorter than a lease, and longer than it would wait for ps 0. */
TALK_TEST(nor_is_a_sleep_that_is_shorter_than_a_lease)
{
    struct lane_config config = talk_config();

    config.ps_lost_ms = config.lease_ms / 5;
    (void)begin_with(talk, &config);

    talk_tick(talk, config.lease_ms / 2);

    talk_expect(talk, "report renewed 1\n");
}

/* Its client was killed: whoever reads the log need not wait for the lease. */
TALK_TEST(a_session_whose_push_stream_breaks_is_named_at_once)
{
    const uint64_t stream = begin(talk);

    talk->shows_logs = true;

    talk_hang_up(talk, stream);
    talk_expect(
        talk, "log ps 1: the push stream of worker 1, attempt 1, broke; its lease ends in 10 s "
              "unless it is heard from\n");
    for (uint64_t generation = 2; generation <= 64; generation++)
        talk_hang_up(talk, talk_push_stream(talk, 1, generation));
    unsigned lines = 0;
    for (const char *at = talk->text; (at = strstr(at, "broke;")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 3 + 4); /* the first 4, then the 8th, 16th, 32nd, 64th */

    talk_push_stream(talk, 1, 65);
    talk_close(talk, 1);
    talk_forget(talk);
    talk_hang_up(talk, talk->streams);
    assert_null(strstr(talk->text, "broke;"));
}

TALK_TEST(sigterm_finishes_what_is_in_flight)
{
    const uint64_t stream = begin(talk);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    send(talk, stream, 1, 0);
    talk_forget(talk);

    talk_step(talk, &terminate);
    talk_expect(talk, "");
    send(talk, stream, 2, 1); /* neither taken nor answered */
    talk_expect(talk, "");
    talk_commit(talk, stream, 1, 0, 0);

    talk_expect(talk, "done 1 [1]\nexit 143 TERMINATED\n");
    assert_non_null(strstr(
        talk->end.text, "ps 1 was terminated before the run ended; to go on, start the whole run "
                        "again, ps and workers"));
}

TALK_TEST(sigterm_lets_a_part_that_has_begun_to_arrive_be_whole)
{
    const uint64_t stream = begin(talk);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    struct talk_part sent = part(1, 0);

    sent.eager = true;
    talk_part_step(talk, stream, &sent, 0, 2);

    talk_step(talk, &terminate);
    talk_expect(talk, "");
    talk_part_step(talk, stream, &sent, 2, 2);

    talk_expect(talk, "staged 1\ndone 1 [1]\nexit 143 TERMINATED\n");
}

TALK_TEST(sigterm_lets_answers_be_read)
{
    const uint64_t stream = begin(talk);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    struct talk_part sent = part(1, 0);

    talk->deaf = stream;
    sent.eager = true;
    talk_part(talk, stream, &sent);
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);
    talk_forget(talk);

    talk_step(talk, &terminate);
    talk_expect(talk, "");
    talk_writable(talk, stream);

    talk_expect(talk, "staged 2\ndone 2 [2]\nexit 143 TERMINATED\n");
}

TALK_TEST(sigterm_does_not_wait_for_ever)
{
    const uint64_t stream = begin(talk);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    send(talk, stream, 1, 0);
    talk_step(talk, &terminate);
    talk_forget(talk);

    talk_tick(talk, 5000);

    assert_non_null(strstr(talk->text, "exit 143 TERMINATED\n"));
}

/* 0 is what a client says that does not know them yet. */
TALK_TEST(a_hello_of_no_cluster_epoch_or_incarnation_is_refused)
{
    const struct greeting greetings[] = {
        {0x1000, TALK_SECRET, .of_no_cluster = true},
        {0x1000, TALK_SECRET, .of_no_epoch = true},
        {0, TALK_SECRET, .end = NULL}};

    (void)begin(talk);
    talk_hang_up(talk, talk->controller);
    talk_forget(talk);
    for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++)
        greet(talk, &greetings[i]);

    talk_expect(
        talk, "report 5 error MALFORMED\nreport 6 error MALFORMED\nreport 7 error MALFORMED\n");
    hello(talk, 0x1000, 0);
    talk_expect(talk, "report 8\n");
}

TALK_TEST(an_end_with_a_code_that_no_process_has_is_refused)
{
    wire_end end = WIRE_END_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    (void)begin(talk);
    end.exit_code = 256;
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_TERMINATED;
    order.end = &end;

    talk_order(talk, &order);
    talk_expect(talk, "report 5 error MALFORMED\n");
    talk_tick(talk, 5000);
    assert_null(strstr(talk->text, "exit"));

    end.exit_code = 255;
    talk_order(talk, &order);
    talk_tick(talk, 5000);
    assert_non_null(strstr(talk->text, "exit 255 TERMINATED\n"));
}

static void another_ps_was_terminated(struct talk *talk)
{
    wire_end end = WIRE_END_INIT;

    end.exit_code = 143;
    end.message = "ps 1 at h1:1 has ended and its state with it";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_TERMINATED;
    talk_order_of(talk, end, &end);
}

TALK_TEST(sigterm_of_another_ps_finishes_what_is_in_flight_here)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    talk_forget(talk);

    another_ps_was_terminated(talk);
    talk_expect(talk, "");
    send(talk, stream, 2, 1); /* neither taken nor answered */
    talk_expect(talk, "");
    talk_commit(talk, stream, 1, 0, 0);

    assert_non_null(strstr(talk->text, "done 1 [1]\n"));
    assert_non_null(strstr(talk->text, "exit 143 TERMINATED\n"));
}

TALK_TEST(sigterm_of_another_ps_waits_for_no_client_that_has_gone)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    another_ps_was_terminated(talk);
    talk_forget(talk);

    talk_hang_up(talk, stream);

    assert_non_null(strstr(talk->text, "exit 143 TERMINATED\n"));
}

TALK_TEST(the_end_is_answered_before_the_exit)
{
    (void)begin(talk);
    wire_end end = WIRE_END_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    end.message = "every listed member has left as done";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_RUN_ENDED;
    order.end = &end;

    talk_order(talk, &order);

    talk_expect(talk, "report 5\nexit 0 RUN_ENDED\n");
}

/* What is staged and not committed holds the exit up for a while; the signal comes in it. */
TALK_TEST(sigterm_after_the_end_keeps_the_ends_code)
{
    const uint64_t stream = begin(talk);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    wire_end end = WIRE_END_INIT;

    send(talk, stream, 1, 0);
    end.message = "every listed member has left as done";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_RUN_ENDED;
    talk_order_of(talk, end, &end);
    talk_step(talk, &terminate);
    assert_null(strstr(talk->text, "exit"));

    talk_tick(talk, 5000);

    assert_non_null(strstr(talk->text, "exit 0 RUN_ENDED\n"));
}

static void end_as_done(struct talk *talk)
{
    wire_end end = WIRE_END_INIT;

    end.message = "every listed member has left as done";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_RUN_ENDED;
    talk_order_of(talk, end, &end);
}

/* Whoever sent the signal counts from it: the end that comes later begins no new wait. */
TALK_TEST(an_end_after_sigterm_gives_no_more_time)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0); /* given: staged, and its commit does not come */
    talk_step(talk, &terminate);
    talk_tick(talk, 3000);

    end_as_done(talk); /* when */

    talk_tick(talk, 1999); /* then */
    assert_null(strstr(talk->text, "exit"));
    talk_tick(talk, 1);
    assert_non_null(strstr(talk->text, "exit 0 RUN_ENDED\n"));
}

/* Its stream still has a message on its way: what became of the session follows it. */
TALK_TEST(a_client_that_was_closed_hears_so_before_the_exit)
{
    const uint64_t stream = begin(talk);

    talk->deaf = stream;
    send(talk, stream, 1, 0); /* given */
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_forget(talk);

    end_as_done(talk); /* when */

    talk_expect(talk, ""); /* then */
    talk->deaf = 0;
    talk_writable(talk, stream);
    talk_expect(talk, "closed 0\nreport 7\nexit 0 RUN_ENDED\n");
}

TALK_TEST(a_run_whose_state_is_lost_ends_without_the_commits_that_never_come)
{
    const uint64_t stream = begin(talk);
    wire_end end = WIRE_END_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    send(talk, stream, 1, 0);
    talk_writable(talk, stream);
    talk_forget(talk);
    end.exit_code = LANE_EXIT_PS_LOST;
    end.message = "ps 0 is lost with its state";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_STATE_LOST;
    order.end = &end;

    talk_order(talk, &order);

    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
}

/* What is in flight keeps it here for a while, and its clients hear of the end and go. */
TALK_TEST(after_the_end_no_line_speaks_of_a_sessions_lease)
{
    const uint64_t stream = begin(talk);
    wire_end end = WIRE_END_INIT;

    send(talk, stream, 1, 0);
    talk_open(talk, 2);
    const uint64_t other = talk_push_stream(talk, 2, 1);
    end.message = "every listed member has left as done";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_RUN_ENDED;
    talk_order_of(talk, end, &end);
    talk_forget(talk);
    talk->shows_logs = true;

    talk_hang_up(talk, other);

    talk_expect(talk, "");
}

TALK_TEST(a_list_of_members_that_is_not_whole_is_not_compared)
{
    const struct greeting partial = {0x1000, TALK_SECRET, 0, .worker = 2, .partial = true};

    begin_configured(talk);

    greet(talk, &partial);

    talk_expect(talk, "report 1\n");
}

/* One is on its way, and one waits: each would be kept until its reader takes it. */
TALK_TEST(who_takes_no_refusal_is_given_no_third)
{
    const struct greeting lost = {0x1000, TALK_SECRET, 0x999, .end = NULL};

    (void)begin(talk);
    talk->deaf = talk->streams + 1;

    greet(talk, &lost);
    talk_expect(talk, "report 5 error STATE_LOST\n");
    greet_again(talk, &lost);
    talk_expect(talk, "");
    greet_again(talk, &lost);

    talk_expect(talk, "end of stream STATE_LOST\n");
}

/* Its lease may be about to end: the line that ps 0 gets of it waits for no quarter of a lease. */
TALK_TEST(a_session_that_was_silent_is_heard_of_at_once)
{
    const uint64_t stream = begin(talk);

    talk_open(talk, 2);
    const uint64_t other = talk_push_stream(talk, 2, 1);
    talk_forget(talk);
    talk_tick(talk, 3000);
    talk_expect(talk, "report renewed 1 renewed 2\n");
    talk_tick(talk, 2000);
    talk_expect(talk, "");
    send(talk, other, 1, 0); /* given: others are heard of */
    talk_expect(talk, "report renewed 2\nstaged 1\n");
    talk_tick(talk, 100);
    talk_expect(talk, "");

    send(talk, stream, 1, 0); /* when */

    talk_expect(talk, "report renewed 1\nstaged 1\n"); /* then */
    talk_tick(talk, 100);
    send(talk, stream, 2, 1);
    talk_expect(talk, "staged 2\n"); /* and no more of it for a while */
}
