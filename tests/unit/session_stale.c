/* SPDX-License-Identifier: Apache-2.0 */
/* session_stale.c -- answers and ends of streams that come late, and what becomes of the pushes and
 * the streams that a session still has when it ends. */
#include "session_talk.h"

/* Push 1025 has the place in the window that push 1 had. */
TALK_TEST(an_answer_about_a_push_that_is_over_counts_for_no_other)
{
    talk_open(talk, 1);

    talk_push_out(talk, 1, 1);
    talk_done(talk, 0, 1);
    talk_writable(talk, 0);
    for (uint64_t n = 2; n <= SESSION_PUSHES_IN_FLIGHT_MAX + 1; n++)
        talk_push_to(talk, n, 1);
    assert_int_equal(talk_state(talk).last_sequence, SESSION_PUSHES_IN_FLIGHT_MAX + 1);

    talk_done(talk, 0, 1);

    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    assert_int_equal(talk_state(talk).pushes_in_flight, SESSION_PUSHES_IN_FLIGHT_MAX);
}

/* ---- streams */

TALK_TEST(the_end_of_an_older_stream_does_not_end_the_open_one)
{
    talk_open(talk, 1);
    const uint64_t old = talk->generation[0][SESSION_PUSH_STREAM];

    talk_reconnect(talk, 0);
    const uint64_t current = talk->generation[0][SESSION_PUSH_STREAM];
    talk->generation[0][SESSION_PUSH_STREAM] = old;

    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    talk->generation[0][SESSION_PUSH_STREAM] = current;
    assert_null(talk_find(talk, SESSION_EFFECT_LOG));
    talk_writable(talk, 0);
    talk_push_to(talk, 1, 1);
    assert_non_null(talk_request(talk, 0));
}

/* Opened again and again, the streams to a ps that is away are one line of the log. */
TEST(a_ps_that_is_away_is_said_once)
{
    for (uint32_t reached = 0; reached < 2; reached++) {
        struct talk talk;
        if (reached) /* given */
            talk_open(&talk, 1);
        else
            talk_join_member(&talk, 1);

        talk_ended(&talk, 0, SESSION_PUSH_STREAM, NULL); /* when */

        assert_string_equal(
            talk_find(&talk, SESSION_EFFECT_LOG)->text,
            "ps 0 at h0:2222: the push stream broke: no reason given");
        while (talk_find(&talk, SESSION_EFFECT_OPEN_STREAM) == NULL)
            talk_tick_when_due(&talk);
        talk_lost(&talk, 0, SESSION_PUSH_STREAM);
        assert_null(talk_find(&talk, SESSION_EFFECT_LOG));
        talk_close(&talk);
    }
}

static uint32_t count_of(const struct talk *talk, enum session_effect_kind kind)
{
    uint32_t count = 0;

    while (talk_nth(talk, kind, count) != NULL)
        count++;
    return count;
}

/* Only a ps that was terminated leaves time for the others; and what was never opened is not
 * closed. */
TALK_TEST(a_ps_that_lost_its_state_ends_the_session_at_once)
{
    talk_open(talk, 2);
    const struct sumac_error lost = {
        .status = SUMAC_DATA_LOSS, .reason = SUMAC_REASON_STATE_LOST, .text = "restarted"};

    talk_push_out(talk, 1, 3);
    talk_staged(talk, 1, 1);
    talk_staged(talk, 0, 1);
    talk_done(talk, 0, 1); /* given: answered by ps 0, and not by ps 1 */

    talk_ended(talk, 0, SESSION_PUSH_STREAM, &lost);

    assert_non_null(talk_find(talk, SESSION_EFFECT_ENDED));
    assert_null(talk_find(talk, SESSION_EFFECT_LOG));
    assert_int_equal(count_of(talk, SESSION_EFFECT_CLOSE_STREAM), 1);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_CLOSE_STREAM)->ps, 1);
}

/* ---- pushes */

TALK_TEST(what_was_refused_does_not_count_when_the_session_ends)
{
    talk_open(talk, 2); /* given */
    for (uint64_t token = 1; token <= 3; token++)
        talk_push_out(talk, token, token == 3 ? 1 : 3);
    talk_refused(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_done_with(talk, 0, 2, 1, true); /* its refusal was lost */
    talk_staged(talk, 1, 2);
    talk_done(talk, 0, 3);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->token, 3);

    talk_closed(talk, 0, true, 3, 0); /* when */

    assert_int_equal(count_of(talk, SESSION_EFFECT_PUSHED), 2); /* then */
    const struct session_effect *first = talk_nth(talk, SESSION_EFFECT_PUSHED, 0);
    assert_int_equal(first->token, 1);
    assert_int_equal(first->error.reason, SUMAC_REASON_NON_FINITE);
    assert_int_equal(talk_nth(talk, SESSION_EFFECT_PUSHED, 1)->error.status, SUMAC_ABORTED);
}

/* The step ends with the push before it. */
TALK_TEST(a_step_without_pieces_counts_when_the_push_before_it_is_committed)
{
    talk_open(talk, 2);
    const struct session_push empty = {.token = 2, .finishes_step = true};

    talk_push_out(talk, 1, 3);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &empty});
    assert_int_equal(talk_state(talk).clock, 0);

    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);

    assert_int_equal(talk_state(talk).clock, 1);
}

/* ---- a leave */

TALK_TEST(a_reader_leaves_without_a_word_once_it_is_open)
{
    const struct session_config config = {
        .role = WIRE_ROLE_OBSERVER, .reader = true, .ps_addresses = talk_addresses, .ps_count = 1};

    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    talk_leave(talk);
    assert_null(talk_find(talk, SESSION_EFFECT_LEFT));

    talk_known(talk, 0);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
    assert_null(talk_find(talk, SESSION_EFFECT_CALL));
    assert_true(talk_state(talk).ended);
}
