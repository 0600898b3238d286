/* SPDX-License-Identifier: Apache-2.0 */
/* lane_streams.c -- streams that come early, late or for a reader alone, and what a ps keeps of
 * sessions that are over. */
#include "lane_opened.h"
#include "part_state.h"
#include "peer_state.h"

static const struct lane_session *session_of_closed(const struct talk *talk)
{
    return talk->lane->closed_sessions.last;
}

/* The push stream has said the refusal. */
TALK_TEST(of_refusals_nothing_is_said_again_because_a_reader_comes)
{
    const uint64_t stream = begin(talk);
    struct talk_part unknown = part(1, 0);

    unknown.shard = 4711;
    talk_part(talk, stream, &unknown);
    talk_expect(talk, "refused 1 UNKNOWN_SHARD\n");
    assert_string_equal(talk->given, "4711");

    (void)talk_pull_stream(talk, 1);

    assert_int_equal(talk_times_said(talk, "refused"), 0);
}

/* It says neither which epoch it knows nor which start of the ps. */
TALK_TEST(a_reader_may_leave_out_what_it_does_not_know)
{
    wire_hello hello = WIRE_HELLO_INIT;
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    (void)begin(talk);
    const uint64_t stream = talk_stream(talk, LANE_STREAM_PULL);
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    request.hello = &hello;
    talk_step(
        talk,
        &(struct lane_event){.kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &request});
    talk_forget(talk);

    talk_pull(talk, stream, 7, VARIABLE, 1, 0);

    talk_expect(talk, "pulled 7 [0] 0 0 0 0\n");
}

/* Else the pushes of another run, or from before a restart, would count. */
TALK_TEST(a_push_stream_says_which_start_of_the_ps_it_is_for)
{
    (void)begin(talk);
    for (uint32_t i = 0; i < 2; i++) {
        wire_hello hello = WIRE_HELLO_INIT;
        wire_push_request request = WIRE_PUSH_REQUEST_INIT;
        uint8_t id[16];
        const uint64_t stream = talk_stream(talk, LANE_STREAM_PUSH);
        hello.protocol_version = WIRE_PROTOCOL_VERSION;
        hello.session_id = talk_id(1, id);
        hello.generation = 7 + i;
        hello.epoch = i == 0 ? 0 : talk->lane->epoch;
        hello.ps_incarnation = i == 0 ? talk->lane->config.incarnation : 0;
        request.hello = &hello;

        talk_push(talk, stream, &request, NULL, 0);

        talk_expect(talk, "greeting\n");
        assert_null(lane_stream_find(talk->lane, stream)->session);
    }
}

/* One session more than are remembered is closed, and the other one has a part that is not applied
 * yet. */
TALK_TEST(the_session_that_was_closed_last_is_remembered_whatever_others_keep)
{
    struct lane_config config = talk_config();
    struct talk_part sent = part(1, 0);

    config.closed_sessions_max = 1;
    config.inline_bytes = 1;
    const uint64_t first = begin_with(talk, &config);
    talk_open(talk, 2);
    talk->holds_compute = true; /* given: the variable is being written to */
    sent.eager = true;
    talk_part(talk, first, &sent);
    sent.sequence = 2;
    sent.previous = 1;
    talk_part(talk, first, &sent);
    talk_decide(talk, 1, 2, 0);
    assert_non_null(session_of_closed(talk)->parts.first);
    talk_close(talk, 2);

    talk_decide(talk, 2, 0, 0); /* when */

    talk_forget(talk); /* then */
    (void)talk_push_stream(talk, 2, 1);
    talk_expect(talk, "greeting\nclosed 0\n");
    talk->holds_compute = false;
    talk_compute(talk);
}

/* Texts of refusals take memory. A session needs none of them once its client was told its end. */
TALK_TEST(what_was_said_to_who_is_closed_is_not_kept)
{
    const uint64_t stream = begin(talk);
    struct talk_part unknown = part(1, 0);

    unknown.shard = 4711;
    talk_part(talk, stream, &unknown);
    assert_int_equal(talk->lane->parts->refusals.used, 1);

    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 1);

    assert_int_equal(talk_times_said(talk, "closed 0 voided 1"), 1);
    assert_int_equal(talk->lane->parts->refusals.used, 0);
}

/* Its stream takes no report at present. */
TALK_TEST(who_is_alive_is_told_when_ps_0_reads_on)
{
    const uint64_t stream = begin(talk);

    talk->deaf = talk->controller;
    talk_delete(talk, 4711); /* given: its answer is on its way */
    send(talk, stream, 1, 0);
    talk_forget(talk);

    talk_tick(talk, talk_config().lease_ms / 4); /* when */
    assert_int_equal(talk_times_said(talk, "renewed"), 0);
    talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "renewed 1"), 1); /* then */
}

/* The client knows its cluster from another ps. */
TALK_TEST(who_comes_before_ps_0_is_not_told_that_the_cluster_is_wrong)
{
    const struct lane_config config = talk_config();

    talk_make(talk, &config);
    talk_step(talk, &(struct lane_event){.kind = LANE_EVENT_START, .random = {1, 11}});
    talk_forget(talk);

    (void)talk_push_stream(talk, 1, 1);

    talk_expect(talk, "greeting\nrejoin\n");
}

TALK_TEST(the_first_stream_of_a_session_may_have_any_generation)
{
    (void)begin(talk);
    talk_open(talk, 2);
    talk_forget(talk);

    (void)talk_push_stream(talk, 2, 0);

    talk_expect(talk, "greeting\n");
}

/* The report waits for its stream, and meanwhile one more session is closed than is remembered. */
TALK_TEST(a_close_of_a_session_that_is_forgotten_is_reported)
{
    struct lane_config config = talk_config();

    config.closed_sessions_max = 1;
    (void)begin_with(talk, &config);
    talk_open(talk, 2);
    talk->deaf = talk->controller;
    talk_delete(talk, 4711); /* given */
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_decide(talk, 2, 0, 0);
    talk_forget(talk);

    for (uint32_t i = 0; i < 8; i++) /* when ps 0 reads on */
        talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "commit_through 0\n"), 1); /* then */
}

TALK_TEST(of_a_session_that_is_being_closed_no_broken_stream_is_logged)
{
    const uint64_t stream = begin(talk);

    talk->shows_logs = true;
    talk_close(talk, 1);

    talk_hang_up(talk, stream);

    assert_int_equal(talk_times_said(talk, "broke"), 0);
}
