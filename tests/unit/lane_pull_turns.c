/* SPDX-License-Identifier: Apache-2.0 */
/* lane_pull_turns.c -- the pulls of one stream take turns, and one that leaves costs the others
 * nothing. */
#include <stdio.h>

#include "lane_talk.h"

#define LONG 5u /* 40 float32: four messages of 48 bytes, the last of which is not full */
#define SHORT 6u
#define UNKNOWN 99u

/* A reader's stream, on which nothing is written unless the test says so. */
static uint64_t begin_deaf(struct talk *talk)
{
    talk_start(talk, NULL);
    talk_variable(talk, LONG, 40, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SHORT, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_pull_stream(talk, 0);
    talk_forget(talk);
    talk->deaf = stream;
    return stream;
}

TALK_TEST(one_that_comes_before_the_last_message_of_another_is_answered_behind_it)
{
    const uint64_t stream = begin_deaf(talk);

    talk_pull(talk, stream, 1, LONG, 1, 0);
    talk_writable(talk, stream);
    talk_writable(talk, stream); /* given: three of four messages */
    talk_forget(talk);
    talk_pull(talk, stream, 2, SHORT, 1, 0);
    talk_expect(talk, "");

    talk_writable(talk, stream); /* when the last one goes out */
    talk_forget(talk);
    talk_writable(talk, stream);

    talk_expect(talk, "pulled 2 [0] 0 0 0 0\n"); /* then */
}

TALK_TEST(one_before_another_that_is_cancelled_is_answered)
{
    const uint64_t stream = begin_deaf(talk);

    talk_pull(talk, stream, 1, SHORT, 1, 0);
    talk_pull(talk, stream, 2, SHORT, 1, 0);
    talk_pull(talk, stream, 3, SHORT, 1, 0);
    talk_cancel(talk, stream, 3); /* before the lane has looked at the second */
    talk_forget(talk);

    talk_writable(talk, stream);

    talk_expect(talk, "pulled 2 [0] 0 0 0 0\n");
}

/* After pushes that never come; the first may wait longer. */
TALK_TEST(each_of_a_stream_has_its_own_time)
{
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk_forget(talk);
    for (pull.request = 1; pull.request <= 3; pull.request++) {
        pull.timeout_ms = 4000 - 1000 * (uint32_t)pull.request;
        pull.after_sequence = 9;
        talk_step(
            talk,
            &(struct lane_event){.kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull});
    }

    for (uint32_t request = 3; request >= 1; request--) {
        char expected[64];
        talk_forget(talk);
        talk_tick(talk, 1000);
        (void)snprintf(expected, sizeof expected, "pulled %u error TIMED_OUT\n", request);
        assert_int_equal(talk_times_said(talk, expected), 1);
        assert_int_equal(talk_times_said(talk, "pulled"), 1);
    }
}

/* The reader takes the answer after the end of the session. */
TALK_TEST(one_that_ran_out_of_time_says_so_after_its_session)
{
    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, SHORT, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk->deaf = stream;
    talk_pull(talk, stream, 1, SHORT, 1, 0); /* its answer is not taken */
    talk_pull(talk, stream, 2, SHORT, 1, 9);
    talk_tick(talk, 60000);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_forget(talk);

    talk->deaf = 0;
    talk_writable(talk, stream);

    talk_expect(talk, "pulled 2 error TIMED_OUT\n");
}

TALK_TEST(a_piece_says_which_bytes_of_its_shard_it_has)
{
    const uint64_t stream = begin_deaf(talk);
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .now_us = talk->now_us, .stream = stream, .pull_request = &pull};
    struct lane_effects effects;

    piece.shard_id = SHORT;
    piece.offset_bytes = 4;
    piece.bytes = 8;
    pull.request = 1;
    pull.pieces = pieces;
    pull.n_pieces = 1;

    ps_core_step(talk->core, &event, &effects);

    assert_int_equal(effects.items[0].kind, LANE_EFFECT_PULLED);
    assert_int_equal(effects.items[0].pull_answer->pieces[0]->offset_bytes, 4);
    assert_int_equal(effects.items[0].pull_answer->pieces[0]->bytes, 8);
}

/* The second piece is shorter than what has been said of the first. */
TALK_TEST(pieces_of_a_long_one_begin_at_their_first_byte)
{
    const uint64_t stream = begin_deaf(talk);

    talk->deaf = 0;
    talk_pull(talk, stream, 1, LONG, 2, 0);

    assert_int_equal(talk->pulled_messages, 4);
    assert_int_equal(talk->pulled_bytes, 44 * sizeof(float));
}

/* Its pieces are looked up over several steps. `codec` is that of the last one. */
static void pull_many_pieces(struct talk *talk, uint64_t stream, uint64_t request, int codec)
{
    static wire_piece pieces[WIRE_PULL_PIECES_MAX];
    static wire_piece *pointers[WIRE_PULL_PIECES_MAX];
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    for (uint32_t i = 0; i < WIRE_PULL_PIECES_MAX; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = SHORT;
        pointers[i] = &pieces[i];
    }
    pieces[WIRE_PULL_PIECES_MAX - 1].codec = (Sumac__V1__Piece__Codec)codec;
    pull.request = request;
    pull.pieces = pointers;
    pull.n_pieces = WIRE_PULL_PIECES_MAX;
    talk_step(talk, &event);
}

TALK_TEST(one_that_a_step_has_no_time_for_keeps_its_turn)
{
    const uint64_t stream = begin_deaf(talk);

    talk_pull(talk, stream, 1, LONG, 1, 0);
    pull_many_pieces(talk, stream, 2, 0);
    talk_pull(talk, stream, 3, LONG, 1, 0);
    talk_writable(talk, stream); /* given: the first has its second message, and is the last */
    talk_writable(talk, stream); /* when */

    for (uint32_t i = 0; i < 20000 && talk_times_said(talk, "pulled 3:") == 0; i++) {
        talk_tick(talk, 0);
        talk_writable(talk, stream);
    }

    assert_int_equal(talk_times_said(talk, "pulled 1:"), 1); /* then */
    assert_int_equal(talk_times_said(talk, "pulled 2:"), 1);
    assert_int_equal(talk_times_said(talk, "pulled 3:"), 1);
}

TALK_TEST(one_that_fails_is_not_among_those_that_were_answered)
{
    const uint64_t stream = begin_deaf(talk);

    talk->deaf = 0;
    talk_pull(talk, stream, 1, UNKNOWN, 1, 0);
    talk_pull(talk, stream, 2, SHORT, 1, 0);
    talk_expect(talk, "pulled 1 error UNKNOWN_SHARD\npulled 2 [0] 0 0 0 0\n");

    const wire_stats_reply *const stats = talk_stats(talk);

    assert_int_equal(stats->pulls, 1);
    assert_int_equal(stats->pull_us->count, 1);
}

/* The last of many pieces says how. */
TALK_TEST(one_that_takes_several_steps_is_refused_for_how_it_wants_its_bytes)
{
    const uint64_t stream = begin_deaf(talk);

    talk->deaf = 0;
    pull_many_pieces(talk, stream, 2, 9);
    for (uint32_t i = 0; i < 100 && talk_times_said(talk, "pulled 2") == 0; i++)
        talk_tick(talk, 0);

    assert_int_equal(talk_times_said(talk, "pulled 2 error UNSUPPORTED\n"), 1);
    assert_non_null(strstr(talk->refused, "codec 9"));
}

/* A slow reader keeps old values. */
TALK_TEST(statistics_say_what_is_kept_for_one_that_is_under_way)
{
    const uint64_t stream = begin_deaf(talk);
    static const float ones[40] = {1};
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = LONG, .shards = 1, .values = ones, .count = 40};

    talk_open(talk, 1);
    const uint64_t push = talk_push_stream(talk, 1, 1);
    talk_pull(talk, stream, 1, LONG, 1, 0); /* given: it has read 48 of 160 bytes */
    talk_part(talk, push, &part);

    const wire_stats_reply *const stats = talk_stats(talk);

    assert_true(stats->memory->view_bytes >= (40 - 12) * sizeof(float));
}
