/* SPDX-License-Identifier: Apache-2.0 */
/* session_leave.c -- a session leaves: once its pushes are done, and until it is heard. */
#include "session_talk.h"

TALK_TEST(a_leave_waits_for_pushes_and_is_called_once_they_are_done)
{
    talk_open(talk, 1);

    talk_push_to(talk, 1, 1);

    talk_leave(talk);
    assert_null(talk_find(talk, SESSION_EFFECT_CALL));
    talk_done(talk, 0, 1);

    const wire_message *message = talk_called(talk, WIRE_SESSIONS_LEAVE);
    assert_non_null(message);
    const wire_leave_request *leave = (const wire_leave_request *)message;
    assert_true(leave->done);
    assert_int_equal(leave->last_sequence, 1);
    talk_closed(talk, 0, true, 1, 0); /* the settle that the leave brings about */
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_left(talk);
    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
    assert_non_null(talk_find(talk, SESSION_EFFECT_CLOSE_STREAM));
}

static void close_for(struct talk *talk, uint32_t kind)
{
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    cause.kind = (Sumac__V1__CloseCause__Kind)kind;
    talk_closed_for(talk, 0, true, 0, 0, &cause);
}

TALK_TEST(a_leave_whose_answer_was_lost_is_over_when_its_session_is_closed_for_it)
{
    talk_open(talk, 1);

    talk_leave(talk);
    close_for(talk, WIRE_CLOSE_LEFT);

    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

/* Its lease ran out before it left, and ps 0 may not have heard that its task is done. */
TALK_TEST(of_a_session_that_was_closed_for_something_else_the_leave_is_called_again)
{
    talk_open(talk, 1);

    talk_leave(talk);
    close_for(talk, WIRE_CLOSE_LEASE_OVER);

    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);
    assert_null(talk_find(talk, SESSION_EFFECT_LEFT));
    talk_tick_when_due(talk);

    assert_non_null(talk_called(talk, WIRE_SESSIONS_LEAVE));
    talk_left(talk);
    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

/* ps 0 closes the session on each ps that it reaches, and one may be lost before that. */
TEST(a_leave_that_fails_is_an_error_whatever_the_streams_said)
{
    static const enum sumac_reason reasons[] = {
        SUMAC_REASON_SESSION_CLOSED, SUMAC_REASON_STATE_LOST, SUMAC_REASON_TERMINATED};

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        struct talk talk;
        talk_open(&talk, 1);
        talk_leave(&talk);
        close_for(&talk, WIRE_CLOSE_LEFT);

        talk_call_failed(&talk, WIRE_SESSIONS_LEAVE, SUMAC_FAILED_PRECONDITION, reasons[i]);

        assert_null(talk_find(&talk, SESSION_EFFECT_LEFT));
        assert_int_equal(talk_find(&talk, SESSION_EFFECT_ENDED)->error.reason, reasons[i]);
        talk_close(&talk);
    }
}

/* It was the last one to leave, and the answer to its first call was lost. */
TALK_TEST(a_leave_that_comes_when_the_run_has_ended_well_is_over)
{
    talk_open(talk, 1);

    talk_leave(talk);

    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

/* A stream's end has said so, and then ps 0 was gone. */
TALK_TEST(a_leave_is_over_when_a_stream_has_said_that_the_run_ended_well)
{
    talk_open(talk, 1);
    const struct sumac_error ended = {
        .status = SUMAC_FAILED_PRECONDITION, .reason = SUMAC_REASON_RUN_ENDED, .text = "done"};

    talk_leave(talk);
    talk_ended(talk, 0, SESSION_PUSH_STREAM, &ended);

    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

TALK_TEST(a_leave_that_is_not_answered_ends_with_the_name_of_ps_0)
{
    talk_open(talk, 1);

    talk_leave(talk);
    talk->now_us += (uint64_t)LOST_MS * 1000;

    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_UNSPECIFIED);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_non_null(ended);
    assert_int_equal(ended->error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(ended->error.text, "ps 0 at h0:2222 did not answer the leave"));
}

TALK_TEST(a_push_after_the_leave_is_refused)
{
    talk_open(talk, 1);

    talk_leave(talk);

    talk_push_to(talk, 1, 1);

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_PUSHED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}
