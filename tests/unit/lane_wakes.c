/* SPDX-License-Identifier: Apache-2.0 */
/* lane_wakes.c -- what ends each wait of a lane if nothing else happens: a row for each, in which
 * only the ticks come that the lane has asked for. No wait ends before its time.
 * lane_collective_waits.c has the waits for rounds of a collective.
 */
#include "lane_members.h"

#define PATIENCE_MS 480000u /* a lane without a shorter wait asks for a tick each quarter */
#define LATE_MS 2500u       /* a quarter of the lease that talk_config says */
#define SHORT_MS 300u
#define LATER_MS 700u
#define TERMINATE_MS 3000u
#define UNREAD_MS 60000u
#define LONG 11u /* an answer of several messages */
#define LONG_ELEMENTS 40u
#define REPORTS_OF_A_SLAB 16u

static const float ones[LONG_ELEMENTS] = {1, 1, 1, 1};

/* Two sessions, no synchronous steps; ps 0 is silent all the time, and is not given up. */
static struct members begin_patiently(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.ps_lost_ms = config.lease_ms = config.report_ms = PATIENCE_MS;
    config.terminate_ms = TERMINATE_MS;
    const struct members members = begin_bare(talk, 2, 0, &config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, NONE, 1);
    add_variable(talk, LONG, UPDATE_ASSIGN_ADD, NONE, LONG_ELEMENTS);
    talk_tick(talk, LANE_HELLO_MS_MAX); /* asked for before the hellos came */
    return members;
}

/* The same with synchronous steps of both. */
static struct members begin_with_steps(struct talk *talk, uint32_t report_ms)
{
    struct lane_config config = talk_config();

    config.ps_lost_ms = PATIENCE_MS;
    config.report_ms = report_ms;
    const struct members members = begin_bare(talk, 2, 2, &config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk_forget(talk);
    return members;
}

static void push_eagerly(struct talk *talk, uint64_t stream, uint64_t shard, uint32_t count)
{
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = shard, .shards = 1, .values = ones, .count = count};

    talk_part(talk, stream, &part);
}

/* ---- streams */

static void no_hello_on_a_push_stream(struct talk *talk)
{
    (void)begin_patiently(talk);
    (void)talk_stream(talk, LANE_STREAM_PUSH);
}

static void no_hello_on_a_pull_stream(struct talk *talk)
{
    (void)begin_patiently(talk);
    (void)talk_stream(talk, LANE_STREAM_PULL);
}

static void no_hello_on_a_stream_of_ps_0(struct talk *talk)
{
    (void)begin_patiently(talk);
    (void)talk_stream(talk, LANE_STREAM_PEER);
}

static void a_push_stream_of_an_unknown_session(struct talk *talk)
{
    (void)begin_patiently(talk);
    (void)talk_push_stream(talk, OBSERVER, 1);
}

static void a_push_stream_of_a_session_that_is_closed(struct talk *talk)
{
    (void)begin_patiently(talk);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
}

/* ---- pulls */

/* Its number is 1 and its time short, unless it says otherwise. */
static void pull(struct talk *talk, uint64_t stream, wire_pull_request *request, uint64_t shard)
{
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = request};

    piece.shard_id = shard;
    request->request = request->request == 0 ? 1 : request->request;
    request->timeout_ms = request->timeout_ms == 0 ? SHORT_MS : request->timeout_ms;
    request->pieces = pieces;
    request->n_pieces = shard != 0;
    talk_step(talk, &event);
}

static void a_reader_that_takes_nothing(struct talk *talk)
{
    const struct members members = begin_patiently(talk);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    talk->deaf = members.pull;
    request.timeout_ms = 120000; /* longer than a reader may take nothing, which is to end it */
    pull(talk, members.pull, &request, LONG);
}

static void a_pull_after_a_push(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    (void)begin_patiently(talk);
    request.after_sequence = 1;
    pull(talk, talk_pull_stream(talk, 1), &request, VARIABLE);
}

/* The time of the first is over before. */
static void the_later_of_two_pulls(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    a_pull_after_a_push(talk);
    request.request = 2;
    request.after_sequence = 1;
    request.timeout_ms = LATER_MS;
    pull(talk, talk->streams, &request, VARIABLE);
}

static void a_reader_that_takes_nothing_beside_a_short_pull(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    a_reader_that_takes_nothing(talk);
    request.after_sequence = 1;
    pull(talk, talk_pull_stream(talk, 1), &request, VARIABLE);
}

static void a_pull_of_what_is_not_assigned(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct members members = begin_patiently(talk);

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    pull(talk, members.pull, &request, 20);
}

static void a_pull_of_what_is_being_written(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct members members = begin_patiently(talk);

    talk->holds_compute = true;
    push_eagerly(talk, members.push[1], LONG, LONG_ELEMENTS);
    pull(talk, members.pull, &request, LONG);
}

static void a_pull_of_bounded_lag(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    (void)begin_patiently(talk);
    request.bounded = true;
    request.clock = 5;
    pull(talk, talk_pull_stream(talk, 1), &request, VARIABLE);
}

static void a_pull_at_a_step(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct members members = begin_with_steps(talk, PATIENCE_MS);

    request.at_step = 1;
    pull(talk, members.pull, &request, VARIABLE);
}

static void a_pull_of_nothing_at_a_step(struct talk *talk)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct members members = begin_with_steps(talk, PATIENCE_MS);

    request.at_step = 1;
    pull(talk, members.pull, &request, 0);
}

/* ---- the end */

static void a_part_that_is_not_committed_keeps_a_ps_that_is_told_to_terminate(struct talk *talk)
{
    const struct members members = begin_patiently(talk);
    const struct talk_part part = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = ones, .count = 1};

    talk_part(talk, members.push[1], &part);
    talk_step(talk, &(struct lane_event){.kind = LANE_EVENT_TERMINATE});
}

static void a_part_that_is_not_committed_keeps_a_run_that_ends(struct talk *talk)
{
    const struct members members = begin_patiently(talk);
    const struct talk_part part = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = ones, .count = 1};
    wire_end end = WIRE_END_INIT;

    talk_part(talk, members.push[1], &part);
    end.message = "every listed member has left as done";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_RUN_ENDED;
    talk_order_of(talk, end, &end);
}

/* ---- ps 0 */

static void ps_0_is_silent(struct talk *talk)
{
    const struct lane_config config = talk_config();

    (void)begin_bare(talk, 1, 0, &config);
    talk->shows_logs = true;
}

/* By anybody: it was told of two ps. */
static void ps_0_never_calls(struct talk *talk)
{
    const struct lane_config config = talk_config();

    talk_make(talk, &config);
    talk->shows_logs = true;
}

/* ---- what is said */

static void a_member_does_not_contribute(struct talk *talk)
{
    const struct members members = begin_with_steps(talk, SHORT_MS);

    contribute(talk, members.push[1], 1, ones, 1);
    talk->shows_logs = true;
}

/* A session that was heard from lately, and ps 0 was told so. */
static void a_session_is_heard_from_again(struct talk *talk)
{
    const struct lane_config config = talk_config();
    const struct members members = begin_bare(talk, 1, 0, &config);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, NONE, 1);
    talk_tick(talk, LATE_MS); /* says so */
    push_eagerly(talk, members.push[1], VARIABLE, 1);
}

/* So many reports are in line that the next one has to be taken from the source, which has none. */
static void a_close_is_not_reported_for_want_of_memory(struct talk *talk)
{
    const struct lane_config config = talk_config();

    (void)begin_bare(talk, 1, 0, &config);
    talk->deaf = talk->controller;
    for (uint32_t i = 0; i <= REPORTS_OF_A_SLAB; i++)
        talk_decide(talk, OBSERVER, 0, 0);
    talk->out_of_memory = true;
    talk_close(talk, 1);
    talk->out_of_memory = false;
    talk->deaf = 0;
    talk_writable(talk, talk->controller);
}

static const struct wait {
    const char *name;
    void (*begin)(struct talk *talk);
    const char *ends_with;
    uint32_t ms, late_ms;
} waits[] = {
    {"a hello of a push stream", no_hello_on_a_push_stream, "end of stream TIMED_OUT",
     LANE_HELLO_MS_MAX, 0},
    {"a hello of a pull stream", no_hello_on_a_pull_stream, "end of stream TIMED_OUT",
     LANE_HELLO_MS_MAX, 0},
    {"a hello of ps 0", no_hello_on_a_stream_of_ps_0, "end of stream TIMED_OUT", LANE_HELLO_MS_MAX,
     0},
    {"a stream of no session", a_push_stream_of_an_unknown_session, "end of stream SESSION_UNKNOWN",
     LANE_HELLO_MS_MAX, 0},
    {"a stream of a closed session", a_push_stream_of_a_session_that_is_closed,
     "end of stream SESSION_UNKNOWN", LANE_HELLO_MS_MAX, 0},
    {"a reader", a_reader_that_takes_nothing, "end of stream VIEW_ENDED", UNREAD_MS, 0},
    {"a reader beside a short pull", a_reader_that_takes_nothing_beside_a_short_pull,
     "end of stream VIEW_ENDED", UNREAD_MS, 0},
    {"the later of two pulls", the_later_of_two_pulls, "pulled 2 error TIMED_OUT", LATER_MS, 0},
    {"a pull after a push", a_pull_after_a_push, "pulled 1 error TIMED_OUT", SHORT_MS, 0},
    {"a pull before its variable is assigned", a_pull_of_what_is_not_assigned,
     "pulled 1 error TIMED_OUT", SHORT_MS, 0},
    {"a pull of a busy variable", a_pull_of_what_is_being_written, "pulled 1 error TIMED_OUT",
     SHORT_MS, 0},
    {"a pull of bounded lag", a_pull_of_bounded_lag, "pulled 1 error TIMED_OUT", SHORT_MS, 0},
    {"a pull at a step", a_pull_at_a_step, "pulled 1 error TIMED_OUT", SHORT_MS, 0},
    {"a pull of nothing at a step", a_pull_of_nothing_at_a_step, "pulled 1 error TIMED_OUT",
     SHORT_MS, 0},
    {"SIGTERM", a_part_that_is_not_committed_keeps_a_ps_that_is_told_to_terminate,
     "exit 143 TERMINATED", TERMINATE_MS, 0},
    {"the end of the run", a_part_that_is_not_committed_keeps_a_run_that_ends, "exit 0 RUN_ENDED",
     TERMINATE_MS, 0},
    {"a ps 0 that is silent", ps_0_is_silent, "exit 138 STATE_LOST", 60000, LATE_MS},
    {"a line about a silent ps 0", ps_0_is_silent,
     "log ps 1 waits for ps 0 at h0:1, last heard from", 5000, LATE_MS},
    {"a first call of ps 0", ps_0_never_calls, "exit 138 PS_MISSING", 60000, LATE_MS},
    {"a line about a first call", ps_0_never_calls, "log ps 1 waits for its first call", 5000,
     LATE_MS},
    {"a line about a step", a_member_does_not_contribute, "log ps 1: synchronous step 1 has waited",
     SHORT_MS, 2 * LATE_MS},
    {"a sign of life of a session", a_session_is_heard_from_again, "report renewed 1", LATE_MS,
     LATE_MS},
    {"memory for a report", a_close_is_not_reported_for_want_of_memory, "commit_through 0", 0,
     LATE_MS},
};

STATE_TEST(
    every_wait_of_a_lane_ends_in_time_by_the_ticks_that_it_asks_for, talk_setup, talk_teardown)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct wait *wait = &waits[i];

        if (i > 0)
            assert_int_equal(talk_setup(state), 0);
        struct talk *const talk = *state;
        wait->begin(talk); /* given */
        const uint64_t end_us = talk->now_us + 1000 * (uint64_t)wait->ms;
        talk_forget(talk);

        const bool ends = talk_says_in_time(
            talk, wait->ends_with, end_us + 1000 * (uint64_t)wait->late_ms); /* when */

        if (!ends) /* then */
            fail_msg("%s: it goes on after %u ms", wait->name, wait->ms + wait->late_ms);
        if (talk->now_us < end_us)
            fail_msg("%s: it ends after less than %u ms", wait->name, wait->ms);
        talk->holds_compute = false;
        if (talk->compute.job != 0)
            talk_compute(talk);
        if (i + 1 < sizeof waits / sizeof *waits)
            assert_int_equal(talk_teardown(state), 0);
    }
}
