/* SPDX-License-Identifier: Apache-2.0 */
/* lane_places.c -- streams of one sort never shut out those of another, and nobody stays who says
 * nothing. */
#include "peer_state.h"
#include "lane_talk.h"

#define STREAMS 16u /* 4 strangers, 8 readers, 4 of sessions: 2 for each, which is the least */

static void begin(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.streams_max = STREAMS;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_open(talk, 2);
    talk_forget(talk);
}

TALK_TEST(a_stream_on_which_no_hello_comes_ends_after_five_seconds)
{
    begin(talk);
    talk_stream(talk, LANE_STREAM_PUSH);
    talk_tick(talk, 1000);
    talk_stream(talk, LANE_STREAM_PULL);
    talk_stream(talk, LANE_STREAM_PEER);

    talk_tick(talk, 3999);
    talk_expect(talk, "");
    talk_tick(talk, 1);
    talk_expect(talk, "end of stream TIMED_OUT\n");
    talk_tick(talk, 1000);
    talk_expect(talk, "end of stream TIMED_OUT\nend of stream TIMED_OUT\n");
}

TALK_TEST(a_stream_that_somebody_owns_stays)
{
    begin(talk);
    talk_push_stream(talk, 1, 1);
    talk_pull_stream(talk, 1);
    talk_pull_stream(talk, 0);
    talk_forget(talk);

    for (int i = 0; i < 10; i++)
        talk_tick(talk, 2000);

    assert_null(strstr(talk->text, "end of stream"));
}

TALK_TEST(a_push_stream_of_a_session_that_nobody_knows_ends_after_five_seconds)
{
    begin(talk);
    talk_tick(talk, 1000);
    talk_push_stream(talk, 3, 1);
    talk_expect(talk, "greeting\nrejoin\n");

    talk_tick(talk, 4999);
    talk_expect(talk, "");
    talk_tick(talk, 1);

    talk_expect(talk, "end of stream SESSION_UNKNOWN\n");
}

TALK_TEST(who_was_not_listened_to_has_not_been_silent)
{
    begin(talk);
    talk_stream(talk, LANE_STREAM_PUSH);
    talk_tick(talk, 1000);
    talk_stream(talk, LANE_STREAM_PUSH);

    talk_tick(talk, 60000); /* this process stood still */
    talk_expect(talk, "");
    for (int i = 0; i < 2; i++) { /* the two streams end a second apart */
        talk_tick(talk, i == 0 ? 3999 : 999);
        talk_expect(talk, "");
        talk_tick(talk, 1);
        talk_expect(talk, "end of stream TIMED_OUT\n");
    }
}

TALK_TEST(the_oldest_stranger_gives_way_to_who_says_hello_at_once)
{
    begin(talk);
    for (uint32_t i = 0; i < STREAMS / 4; i++)
        talk_stream(talk, i % 2 == 0 ? LANE_STREAM_PUSH : LANE_STREAM_PEER);
    talk_expect(talk, "");

    talk_push_stream(talk, 1, 1);
    talk_expect(talk, "end of stream BUSY\ngreeting\n");
    talk_stream(talk, LANE_STREAM_PULL); /* in the place that it left */
    talk_expect(talk, "");
    talk_pull_stream(talk, 0);
    talk_expect(talk, "end of stream BUSY\ngreeting\n");
}

TALK_TEST(readers_take_half_of_the_places_at_most)
{
    begin(talk);
    uint64_t reader = 0;
    for (uint32_t i = 0; i < STREAMS / 2; i++)
        reader = talk_pull_stream(talk, 0);
    talk_forget(talk);

    talk_pull_stream(talk, 0);
    talk_expect(talk, "end of stream BUSY\n");
    talk_pull_stream(talk, 1); /* a session's is none of them */
    talk_expect(talk, "greeting\n");

    talk_hang_up(talk, reader);
    talk_pull_stream(talk, 0);
    talk_expect(talk, "greeting\n");
}

TALK_TEST(every_session_has_a_share)
{
    begin(talk);
    talk_push_stream(talk, 1, 1);
    const uint64_t pulls = talk_pull_stream(talk, 1);
    talk_forget(talk);

    talk_pull_stream(talk, 1);
    talk_expect(talk, "end of stream BUSY\n");
    talk_push_stream(talk, 1, 2); /* in the place of the one before */
    talk_expect(talk, "end of stream STREAM_REPLACED\ngreeting\n");
    talk_push_stream(talk, 2, 1);
    talk_expect(talk, "greeting\n");

    talk_hang_up(talk, pulls);
    talk_pull_stream(talk, 1);
    talk_expect(talk, "greeting\n");
}

TALK_TEST(of_a_closed_session_the_push_stream_goes_and_the_readers_stay)
{
    begin(talk);
    for (uint32_t i = 1; i < STREAMS / 2; i++)
        talk_pull_stream(talk, 0);
    talk_push_stream(talk, 1, 1);
    talk_pull_stream(talk, 1);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_forget(talk);

    talk_tick(talk, 4999);
    talk_expect(talk, "");
    talk_tick(talk, 1);

    talk_expect(talk, "end of stream SESSION_UNKNOWN\n");
    talk_pull_stream(talk, 0); /* all readers' places are taken */
    talk_expect(talk, "end of stream BUSY\n");
}

/* Of a ps that was restarted, or of another epoch. */
TALK_TEST(a_reader_of_another_incarnation_takes_no_readers_place)
{
    wire_hello hello = WIRE_HELLO_INIT;
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    begin(talk);
    for (uint32_t i = 0; i < STREAMS / 2; i++)
        talk_pull_stream(talk, 0); /* given: all readers' places are taken */
    talk_forget(talk);
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.epoch = 1;
    hello.ps_incarnation = 0x999;
    request.hello = &hello;
    const struct lane_event stale = {
        .kind = LANE_EVENT_PULL,
        .stream = talk_stream(talk, LANE_STREAM_PULL),
        .pull_request = &request};

    talk_step(talk, &stale);

    talk_expect(talk, "greeting\n"); /* it is told of the present one, and goes */
    talk_tick(talk, 5000);
    talk_expect(talk, "end of stream SESSION_UNKNOWN\n");
}
