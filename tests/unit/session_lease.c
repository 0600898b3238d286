/* SPDX-License-Identifier: Apache-2.0 */
/* session_lease.c -- how a session keeps its lease. */
#include "session_talk.h"

TALK_TEST(a_silent_session_renews_its_lease_every_third_of_it)
{
    talk_open(talk, 2);

    talk_tick_after(talk, LEASE_MS / 3 - 1);
    assert_null(talk_find(talk, SESSION_EFFECT_CALL));
    talk_tick_after(talk, 1);

    const wire_message *renew = talk_called(talk, WIRE_SESSIONS_RENEW);
    assert_non_null(renew);
    assert_int_equal(((const wire_renew_request *)renew)->session_id.len, 16);
    talk_renewed(talk);
    const struct session_effect *wake = talk_find(talk, SESSION_EFFECT_WAKE);
    assert_true(wake == NULL || wake->at_us > talk->now_us);
    talk_tick_after(talk, LEASE_MS / 3);
    assert_non_null(talk_called(talk, WIRE_SESSIONS_RENEW));
}

/* Two that are lost would be a lost session. */
TALK_TEST(a_renewal_that_failed_is_tried_again_soon)
{
    talk_open(talk, 2);

    talk_tick_after(talk, LEASE_MS / 3);
    assert_non_null(talk_find(talk, SESSION_EFFECT_CALL));

    talk_call_failed(talk, WIRE_SESSIONS_RENEW, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);
    const uint64_t failed_us = talk->now_us;
    talk_tick_when_due(talk);

    assert_in_range(talk->now_us - failed_us, 1, 1000000);
    assert_non_null(talk_called(talk, WIRE_SESSIONS_RENEW));
}

/* Only a ps 0 that does not know the session was restarted. */
TEST(a_renewal_that_is_refused_while_ps_0_is_away_ends_the_session_with_its_reason)
{
    struct talk talk;

    talk_open(&talk, 1);
    talk_lost(&talk, 0, SESSION_PUSH_STREAM);
    talk_tick_after(&talk, LEASE_MS / 3);
    assert_non_null(talk_called(&talk, WIRE_SESSIONS_RENEW));

    talk_call_failed(&talk, WIRE_SESSIONS_RENEW, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED);

    const struct session_effect *ended = talk_find(&talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.reason, SUMAC_REASON_RUN_ENDED);
    talk_close(&talk);
}

/* While it is on its way the ticks are those of the renewal that would follow. */
TALK_TEST(a_renewal_that_was_answered_late_makes_the_next_one_no_later)
{
    talk_open(talk, 1);

    talk_tick_after(talk, LEASE_MS / 3);
    assert_non_null(talk_called(talk, WIRE_SESSIONS_RENEW));
    /* given: the next one was due, and this one is on its way */
    talk_tick_after(talk, LEASE_MS / 3);
    const uint64_t due_us = talk->now_us;

    talk_renewed(talk);
    talk_tick_when_due(talk);

    assert_int_equal(talk->now_us, due_us);
    assert_non_null(talk_called(talk, WIRE_SESSIONS_RENEW));
}

TALK_TEST(a_session_that_pushes_needs_no_renewal)
{
    talk_open(talk, 2);

    talk->now_us += 2000000;
    talk_push_to(talk, 1, 1);
    talk_done(talk, 0, 1);

    talk_tick_after(talk, 1500);

    assert_null(talk_find(talk, SESSION_EFFECT_CALL));
}

TALK_TEST(every_step_that_needs_another_has_asked_for_its_tick)
{
    talk_open(talk, 1);

    for (int i = 0; i < 100; i++) {
        talk_tick_after(talk, LEASE_MS / 3);
        const struct session_effect *wake = talk_find(talk, SESSION_EFFECT_WAKE);
        assert_non_null(wake);
        assert_true(wake->at_us > talk->now_us);
        talk_renewed(talk);
    }
}

/* Nothing else is due before: its lease is the longer one. */
TALK_TEST(a_push_wakes_the_session_when_its_ps_is_lost)
{
    talk_found(talk, 1);

    talk_joined_with(talk, 1, LEASE_MS / 9);
    talk_hello(talk, 0);
    talk_greet(talk, 0);
    talk_tick_after(talk, LEASE_MS / 9);
    talk->now_us += 1000 * LEASE_MS / 18;

    talk_push_to(talk, 1, 1);

    const struct session_effect *wake = talk_find(talk, SESSION_EFFECT_WAKE);
    assert_non_null(wake);
    assert_int_equal(wake->at_us, talk->now_us + 1000 * LEASE_MS / 9);
}

/* The process was suspended for longer than a lease: no ps was silent. */
TEST(time_asleep_is_no_silence)
{
    for (uint32_t beyond = 0; beyond < 2; beyond++) {
        struct talk talk;

        talk_open(&talk, 2);
        talk_tick_after(&talk, LEASE_MS / 3); /* it has lived for longer than it sleeps */
        talk.now_us += (uint64_t)LEASE_MS * 1000 + beyond;
        talk_tick_after(&talk, 0);

        const struct session_effect *log = talk_find(&talk, SESSION_EFFECT_LOG);
        assert_int_equal(
            log != NULL && strstr(log->text, "this process did not run for 9 s") != NULL, beyond);
        talk_close(&talk);
    }
}

TALK_TEST(time_asleep_is_not_said_when_the_session_is_over)
{
    talk_open(talk, 1);

    talk_tick_after(talk, LEASE_MS / 3);
    talk_call_failed(talk, WIRE_SESSIONS_RENEW, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED);
    assert_true(talk_state(talk).ended);
    talk->now_us += (uint64_t)LEASE_MS * 1000 + 1;
    talk_tick_after(talk, 0);

    assert_null(talk_find(talk, SESSION_EFFECT_LOG));
}

/* Each answer comes before the ps would count as lost. */
TALK_TEST(a_ps_that_answers_slowly_is_not_lost)
{
    talk_open(talk, 1);

    for (uint64_t token = 1; token <= 4; token++)
        talk_push_out(talk, token, 1);
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        for (uint32_t ms = 0; ms < LOST_MS / 2; ms += LEASE_MS / 3) {
            talk_tick_after(talk, LEASE_MS / 3);
            if (talk_called(talk, WIRE_SESSIONS_RENEW) != NULL)
                talk_renewed(talk);
        }
        assert_false(talk_state(talk).ended);
        talk_done(talk, 0, sequence);
    }
    assert_int_equal(talk_state(talk).pushes_in_flight, 1);
}
