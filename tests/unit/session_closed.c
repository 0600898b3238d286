/* SPDX-License-Identifier: Apache-2.0 */
/* session_closed.c -- what a client whose session was closed is told of the cause. */
#include "session_talk.h"

TEST(the_end_of_a_closed_session_has_the_one_cause_that_the_ps_said)
{
    struct {
        wire_close_cause cause;
        const char *text;
    } cases[] = {
        {WIRE_CLOSE_CAUSE_INIT, "ps 0 closed this session at push 0; "
                                "start this process again"},
        {WIRE_CLOSE_CAUSE_INIT, "ps 0 closed this session at push 0: it has left; "
                                "start this process again"},
        {WIRE_CLOSE_CAUSE_INIT, "ps 0 closed this session at push 0: its lease ran out, no ps had "
                                "heard from it for 10.2 s; "
                                "start this process again"},
        {WIRE_CLOSE_CAUSE_INIT,
         "ps 0 closed this session at push 0: process 12 on node3 has "
         "taken this task's place, attempt 5; "
         "end one of the two, or correct its index; if they are of two runs with the same "
         "TF_CONFIG, set SUMAC_RUN to a different value in each run"},
    };
    for (int i = 0; i < 4; i++) {
        cases[i].cause.kind = (Sumac__V1__CloseCause__Kind)i;
        cases[i].cause.silent_ms = 10250;
        cases[i].cause.attempt = 5;
        cases[i].cause.host = "node3";
        cases[i].cause.pid = 12;
        struct talk talk;
        talk_open(&talk, 1);

        talk_closed_for(&talk, 0, false, 0, 0, &cases[i].cause);
        talk_closed_for(&talk, 0, true, 0, 0, &cases[i].cause);
        if (i == 3) /* ps 0 does not answer the leave */
            talk_tick_after(&talk, 1001);

        assert_string_equal(talk_find(&talk, SESSION_EFFECT_ENDED)->error.text, cases[i].text);
        talk_close(&talk);
    }
}

static void replace(struct talk *talk)
{
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    cause.kind = (Sumac__V1__CloseCause__Kind)WIRE_CLOSE_NEWER_ATTEMPT;
    cause.attempt = 2;
    talk_closed_for(talk, 0, true, 0, 0, &cause);
}

/* So ps 0 knows that it lives. */
TALK_TEST(a_replaced_client_leaves_before_it_ends)
{
    wire_leave_reply reply = WIRE_LEAVE_REPLY_INIT;

    talk_open(talk, 1); /* given */

    replace(talk); /* when */

    assert_non_null(talk_find(talk, SESSION_EFFECT_CALL)); /* then */
    assert_int_equal(talk_find(talk, SESSION_EFFECT_CALL)->method, WIRE_SESSIONS_LEAVE);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_called_back(talk, WIRE_SESSIONS_LEAVE, &reply.base);
    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_non_null(ended);
    assert_int_equal(ended->error.status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal(ended->error.reason, SUMAC_REASON_REPLACED);
}

TALK_TEST(a_replaced_client_ends_when_ps_0_does_not_hear_it)
{
    talk_open(talk, 1);

    replace(talk);
    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);

    assert_non_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

/* ps 0 waits for that word before it settles the session. */
TALK_TEST(a_replaced_client_leaves_while_its_session_is_being_settled)
{
    talk_open(talk, 1);
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    cause.kind = (Sumac__V1__CloseCause__Kind)WIRE_CLOSE_NEWER_ATTEMPT;

    talk_closed_for(talk, 0, false, 0, 0, &cause);

    assert_non_null(talk_called(talk, WIRE_SESSIONS_LEAVE));
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

static void call_a_barrier(struct talk *talk)
{
    static const wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;
    const struct session_call call = {
        .token = 5,
        .service = WIRE_SESSIONS,
        .method = WIRE_SESSIONS_BARRIER,
        .request = &request.base,
        .timeout_ms = 60000,
        .needs_session = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &call});
}

/* Its program may exit for the error of that call. */
TALK_TEST(a_replaced_client_whose_call_hears_it_first_leaves_at_once)
{
    wire_leave_reply reply = WIRE_LEAVE_REPLY_INIT;

    talk_open(talk, 1); /* given */
    call_a_barrier(talk);

    talk_call_failed(/* when */
                     talk, WIRE_SESSIONS_BARRIER, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_REPLACED);

    assert_non_null(talk_find(talk, SESSION_EFFECT_ANSWERED)); /* then */
    assert_non_null(talk_called(talk, WIRE_SESSIONS_LEAVE));
    assert_true(session_is_acknowledging(talk->session));
    talk_called_back(talk, WIRE_SESSIONS_LEAVE, &reply.base);
    assert_false(session_is_acknowledging(talk->session));
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED)); /* CLOSED says which pushes count */

    replace(talk);
    talk_called_back(talk, WIRE_SESSIONS_LEAVE, &reply.base);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_REPLACED);
}

TALK_TEST(a_replaced_client_whose_pull_hears_it_first_leaves_at_once)
{
    uint8_t into[4];
    const struct session_piece piece = talk_piece(0, 10, into, 4);
    const struct session_pull wanted = {.token = 5, .pieces = &piece, .piece_count = 1};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    struct session_event event = {.stream_kind = SESSION_PULL_STREAM, .pull_answer = &answer};

    talk_open(talk, 1); /* given */
    talk_pull(talk, &wanted);
    event.generation = talk->generation[0][SESSION_PULL_STREAM];
    event.kind = SESSION_EVENT_STREAM_WRITABLE;
    talk_step(talk, event);

    answer.request = 1; /* when */
    answer.status = SUMAC_FAILED_PRECONDITION;
    answer.reason = (Sumac__V1__Reason)SUMAC_REASON_REPLACED;
    event.kind = SESSION_EVENT_PULL_ANSWER;
    talk_step(talk, event);

    assert_non_null(talk_find(talk, SESSION_EFFECT_PULLED)); /* then */
    assert_non_null(talk_called(talk, WIRE_SESSIONS_LEAVE));
}

/* The first leave may have been lost with its call, so the second one has a second of its own. */
TALK_TEST(a_client_that_is_closed_before_ps_0_answers_leaves_again)
{
    talk_open(talk, 1);

    call_a_barrier(talk);
    talk_call_failed(talk, WIRE_SESSIONS_BARRIER, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_REPLACED);
    replace(talk);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));

    talk_tick_after(talk, 1000);

    assert_non_null(talk_find(talk, SESSION_EFFECT_ENDED));
    assert_false(session_is_acknowledging(talk->session));
}

TALK_TEST(a_renewal_of_a_closed_session_says_the_cause_when_no_stream_does)
{
    talk_open(talk, 1);

    talk_tick_after(talk, LEASE_MS / 3);
    talk_call_failed(
        talk, WIRE_SESSIONS_RENEW, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_CLOSED);

    talk_tick_after(talk, 8000);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_after(talk, LOST_MS);

    assert_string_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.text,
        "the call failed (which of the pushes under way count was not said)");
}
