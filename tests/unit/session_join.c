/* SPDX-License-Identifier: Apache-2.0 */
/* session_join.c -- how a session begins and ends. */
#include "session_talk.h"

static void start(struct talk *talk, const struct session_config *config)
{
    talk_config(talk, config);
    talk_start(talk);
}

/* ---- join */

TALK_TEST(a_member_joins_with_its_task_and_all_it_knows)
{
    const char *jobs[] = {"chief", "worker"};
    const uint32_t indices[] = {0, 3};
    struct session_config config = talk_member(2);

    config.members_jobs = jobs;
    config.members_indices = indices;
    config.member_count = 2;

    start(talk, &config);

    const wire_join_request *join = talk_join(talk);
    assert_non_null(join);
    assert_int_equal(join->protocol_version, WIRE_PROTOCOL_VERSION);
    assert_int_equal(join->nonce.len, 16);
    assert_string_equal(join->task->job, "worker");
    assert_int_equal(join->task->index, 3);
    assert_int_equal(join->local_replicas, 1);
    assert_int_equal(join->n_ps_addresses, 2);
    assert_string_equal(join->ps_addresses[1], "h1:2222");
    assert_int_equal(join->n_members, 2);
    assert_string_equal(join->members[0]->job, "chief");
}

TALK_TEST(a_join_is_tried_again_with_the_same_nonce)
{
    talk_found(talk, 1);
    uint8_t nonce[16];

    memcpy(nonce, talk_join(talk)->nonce.data, 16);

    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);

    assert_null(talk_join(talk));
    const uint64_t failed_us = talk->now_us;
    talk_tick_when_due(talk);

    assert_non_null(talk_join(talk));
    assert_memory_equal(talk_join(talk)->nonce.data, nonce, 16);
    assert_in_range(talk->now_us - failed_us, 1000, 20000);
}

TALK_TEST(a_join_that_there_was_no_memory_for_is_made_later)
{
    talk_found(talk, 1);

    talk_undone(talk, SESSION_EFFECT_CALL);
    assert_null(talk_join(talk));
    talk_tick_when_due(talk);

    assert_non_null(talk_join(talk));
}

/* gRPC says so of a ps that is short of memory, or has too many calls. */
TALK_TEST(a_join_that_a_ps_has_no_room_for_is_tried_again)
{
    talk_found(talk, 1);

    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED);
    talk_tick_when_due(talk);

    assert_non_null(talk_join(talk));
}

/* Whoever carries out the calls may forget one. */
TALK_TEST(a_join_that_is_never_answered_ends_with_its_time)
{
    talk_found(talk, 1);

    talk_tick_after(talk, LOST_MS - 1);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_after(talk, 1);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_PS_MISSING);
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, talk->calls[WIRE_SESSIONS_JOIN]);
}

TALK_TEST(without_join_nonce_a_retried_join_has_another)
{
    struct session_config config = talk_member(1);

    config.broken = rule_bit(RULE_join_nonce);
    start(talk, &config);
    uint8_t nonce[16];
    memcpy(nonce, talk_join(talk)->nonce.data, 16);

    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);
    talk_tick_when_due(talk);

    assert_memory_not_equal(talk_join(talk)->nonce.data, nonce, 16);
}

TALK_TEST(a_join_that_another_try_will_not_mend_ends_the_session)
{
    talk_found(talk, 1);

    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED);

    assert_null(talk_find(talk, SESSION_EFFECT_CALL));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_RUN_ENDED);
    assert_true(talk_state(talk).ended);
}

TALK_TEST(a_join_is_given_up_after_the_time_a_ps_may_be_away)
{
    talk_found(talk, 1);

    talk->now_us += (uint64_t)LOST_MS * 1000;

    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_UNSPECIFIED);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_non_null(ended);
    assert_int_equal(ended->error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(ended->error.text, "ps 0 at h0:2222 did not open a session"));
}

TALK_TEST(a_join_opens_a_push_stream_to_every_ps_of_the_answer)
{
    talk_found(talk, 1); /* given: one ps is configured */

    talk_joined(talk, 3);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_int_equal(talk_nth(talk, SESSION_EFFECT_OPEN_STREAM, 2)->ps, 2);
    assert_int_equal(
        talk_nth(talk, SESSION_EFFECT_OPEN_STREAM, 2)->stream_kind, SESSION_PUSH_STREAM);
    const struct session_state facts = talk_state(talk);
    assert_true(facts.joined);
    assert_int_equal(facts.cluster_id, 42);
    assert_int_equal(facts.ps_count, 3);
    assert_int_equal(facts.lease_ms, LEASE_MS);
}

TALK_TEST(the_hello_says_who_is_meant_and_who_speaks)
{
    talk_found(talk, 2);

    talk_joined(talk, 2);

    talk_writable(talk, 1);

    const wire_hello *hello = talk_request(talk, 1)->hello;
    assert_int_equal(hello->protocol_version, WIRE_PROTOCOL_VERSION);
    assert_int_equal(hello->cluster_id, 42);
    assert_int_equal(hello->epoch, 1);
    assert_int_equal(hello->ps_incarnation, 101);
    assert_int_equal(hello->session_id.len, 16);
    assert_int_equal(hello->session_id.data[0], 7);
    assert_int_equal(hello->generation, 1);
}

/* ---- the end */

TALK_TEST(a_closed_session_knows_the_fate_of_each_push)
{
    talk_open(talk, 2);

    for (uint64_t n = 1; n <= 4; n++)
        talk_push_to(talk, n, 3);

    talk_closed(talk, 0, true, 3, 2); /* up to 3, without 2 */

    assert_int_equal(talk_nth(talk, SESSION_EFFECT_PUSHED, 0)->error.status, SUMAC_OK);
    assert_int_equal(talk_nth(talk, SESSION_EFFECT_PUSHED, 1)->error.status, SUMAC_ABORTED);
    assert_int_equal(talk_nth(talk, SESSION_EFFECT_PUSHED, 2)->error.status, SUMAC_OK);
    assert_int_equal(talk_nth(talk, SESSION_EFFECT_PUSHED, 3)->error.status, SUMAC_ABORTED);
    assert_int_equal(
        talk_nth(talk, SESSION_EFFECT_PUSHED, 3)->error.reason, SUMAC_REASON_SESSION_CLOSED);
    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.reason, SUMAC_REASON_SESSION_CLOSED);
    assert_non_null(strstr(ended->error.text, "push 3"));
}

TALK_TEST(a_session_being_settled_says_nothing_until_it_is_decided)
{
    talk_open(talk, 2);

    talk_push_out(talk, 1, 3);

    talk_closed(talk, 0, false, 0, 0);
    assert_false(session_is_acknowledging(talk->session)); /* no other process took the place */
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH)); /* no commit any more */
    talk_closed(talk, 1, true, 0, 0);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.status, SUMAC_ABORTED);
    assert_non_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

TALK_TEST(a_settle_that_is_never_decided_is_not_waited_for)
{
    talk_open(talk, 1);

    talk_push_to(talk, 1, 1);
    talk_closed(talk, 0, false, 0, 0);

    talk_tick_after(talk, 8000);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_after(talk, LOST_MS);

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}

TALK_TEST(a_ps_that_does_not_know_the_session_ends_it)
{
    talk_open(talk, 1);
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    answer.rejoin = true;

    talk_answer(talk, 0, &answer);

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_SESSION_UNKNOWN);
}

/* A ps may have closed and forgotten the session before the others have, and the leave is answered
 * when all have closed it. */
TALK_TEST(a_ps_that_has_forgotten_a_session_that_leaves_does_not_end_it)
{
    talk_open(talk, 1);

    talk_leave(talk);
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.rejoin = true;

    talk_answer(talk, 0, &answer);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_left(talk);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

/* It is another ps 0 then: the stream of the one that was joined at is gone. */
TALK_TEST(a_ps_0_that_forgot_the_session_and_whose_stream_broke_was_restarted)
{
    talk_open(talk, 1);

    talk_tick_after(talk, LEASE_MS / 3);
    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    talk_call_failed(talk, WIRE_SESSIONS_RENEW, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.reason, SUMAC_REASON_STATE_LOST);
    assert_non_null(strstr(
        ended->error.text, "ps 0 at h0:2222 was restarted and its state is lost; start the run"));
}

TALK_TEST(a_ps_0_that_forgot_the_session_on_an_open_stream_was_not_restarted)
{
    talk_open(talk, 1);

    talk_tick_after(talk, LEASE_MS / 3);

    talk_call_failed(talk, WIRE_SESSIONS_RENEW, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN);

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_SESSION_UNKNOWN);
}

TALK_TEST(a_ps_that_was_never_reached_has_lost_no_state)
{
    static const char *const addresses[] = {"h0:2222", "proxy:7"};
    struct session_config config = talk_member(2);

    config.ps_addresses = addresses; /* ps 0 has another name for the host of ps 1 */
    talk_config(talk, &config);
    talk_start(talk);
    talk_joined(talk, 2);
    talk_hello(talk, 0);
    talk_greet(talk, 0);

    const struct session_effect *ended = NULL;
    for (uint32_t ms = 0; ms < LOST_MS + LEASE_MS && ended == NULL; ms += 3000) {
        talk_tick_after(talk, 3000);
        ended = talk_find(talk, SESSION_EFFECT_ENDED);
    }

    assert_int_equal(ended->error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(
        ended->error.text, "ps 1 at proxy:7 (at h1:2222 for ps 0) never answered this session's "
                           "pushes, for 60 s"));
}

TALK_TEST(another_incarnation_ends_the_session_and_names_the_ps)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_broke(talk, 1, SESSION_PUSH_STREAM);
    talk_hello(talk, 1);

    talk_greet_as(talk, 1, 1, 999, GRANT);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.reason, SUMAC_REASON_STATE_LOST);
    assert_non_null(strstr(ended->error.text, "ps 1 at h1:2222"));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.reason, SUMAC_REASON_STATE_LOST);
    talk_push_to(talk, 2, 1);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.reason, SUMAC_REASON_STATE_LOST);
}

TALK_TEST(a_stream_to_another_ps_than_the_address_is_of_is_a_configuration_to_mend)
{
    talk_join_member(talk, 2);

    talk_writable(talk, 1);
    talk_greet_as(talk, 1, 1, 100, GRANT); /* the incarnation of ps 0 */

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_non_null(strstr(
        ended->error.text, "ps 0 answers at h1:2222, which this configuration calls ps 1: "));
}

static void lost_with(struct talk *talk, enum sumac_reason reason)
{
    const struct sumac_error error = {
        .status = SUMAC_FAILED_PRECONDITION, .reason = reason, .text = "the run has ended"};

    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_STREAM_LOST,
                  .generation = talk->generation[0][SESSION_PUSH_STREAM],
                  .error = &error});
}

TALK_TEST(a_ps_that_comes_back_in_another_cluster_has_lost_its_state)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_broke(talk, 0, SESSION_PUSH_STREAM);

    lost_with(talk, SUMAC_REASON_WRONG_CLUSTER);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.status, SUMAC_DATA_LOSS);
    assert_int_equal(ended->error.reason, SUMAC_REASON_STATE_LOST);
    assert_non_null(strstr(ended->error.text, "ps 0 at h0:2222"));
    assert_non_null(strstr(ended->error.text, "state is lost"));
}

TALK_TEST(another_epoch_ends_the_session)
{
    talk_open(talk, 1);

    talk_broke(talk, 0, SESSION_PUSH_STREAM);
    talk_hello(talk, 0);

    talk_greet_as(talk, 0, 2, 100, GRANT);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_STATE_LOST);
}

TALK_TEST(a_ps_not_reached_for_too_long_ends_the_session_and_is_named)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 2);
    talk_lost(talk, 1, SESSION_PUSH_STREAM);

    for (uint32_t ms = 0; ms < LOST_MS - 3000; ms += 3000)
        talk_tick_after(talk, 3000);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_after(talk, 3000);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.status, SUMAC_UNAVAILABLE);
    assert_int_equal(ended->error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(ended->error.text, "ps 1 at h1:2222 was not reached for 60 s"));
}

/* Sooner than the lease would ask for the next tick. */
TALK_TEST(a_lost_stream_asks_for_the_tick_at_which_its_ps_is_given_up)
{
    talk_found(talk, 1);

    talk_joined_with(talk, 1, LEASE_MS / 9);
    talk_hello(talk, 0);
    talk_greet(talk, 0);

    talk_tick_after(talk, 500);
    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    const uint64_t lost_us = talk->now_us + 1000 * (LEASE_MS / 9);

    /* The tick that the join asked for finds that there is time left, and asks for the next, before
     * the lease's. */
    talk_tick_after(talk, LEASE_MS / 9 - 500);
    const struct session_effect *wake = talk_nth(talk, SESSION_EFFECT_WAKE, 1);
    assert_non_null(wake);
    assert_int_equal(wake->at_us, lost_us);
    talk_tick_after(talk, 500);

    assert_non_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

TEST(of_two_silent_ps_the_one_that_fell_silent_first_is_named)
{
    static const char *const named[] = {"ps 0 at h0:2222", "ps 1 at h1:2222"};

    for (uint32_t first = 0; first < 2; first++) {
        struct talk talk;
        talk_open(&talk, 2);
        talk_lost(&talk, first, SESSION_PUSH_STREAM);
        talk_tick_after(&talk, 1000);
        talk_lost(&talk, 1 - first, SESSION_PUSH_STREAM);

        for (uint32_t ms = 0; ms < LOST_MS + 3000; ms += 3000)
            if (talk_find(&talk, SESSION_EFFECT_ENDED) == NULL)
                talk_tick_after(&talk, 3000);

        const struct session_effect *ended = talk_find(&talk, SESSION_EFFECT_ENDED);
        assert_non_null(strstr(ended->error.text, named[first]));
        talk_close(&talk);
    }
}

TALK_TEST(a_ps_that_takes_a_part_and_never_answers_is_lost_too)
{
    talk_open(talk, 2);

    talk_push_out(talk, 1, 2);

    for (uint32_t ms = 0; ms < LOST_MS; ms += 3000)
        talk_tick_after(talk, 3000);

    assert_non_null(talk_find(talk, SESSION_EFFECT_ENDED));
    assert_non_null(strstr(talk_find(talk, SESSION_EFFECT_ENDED)->error.text, "ps 1"));
}

TALK_TEST(a_ps_that_owes_nothing_may_be_silent)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3); /* given: ps 0 has staged its part, ps 1 works on and on */
    talk_writable(talk, 0);
    talk_staged(talk, 0, 1);

    for (uint32_t ms = 0; ms < 2 * LOST_MS; ms += 3000) {
        talk_tick_after(talk, 3000);
        assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
        talk_writable(talk, 1);
    }
}

TALK_TEST(a_stream_ended_with_a_reason_to_stop_ends_the_session)
{
    talk_open(talk, 1);

    lost_with(talk, SUMAC_REASON_RUN_ENDED);

    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    assert_int_equal(ended->error.reason, SUMAC_REASON_RUN_ENDED);
    assert_string_equal(ended->error.text, "ps 0 at h0:2222: the run has ended");
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
}

TALK_TEST(a_ps_that_exits_for_want_of_another_ends_the_session)
{
    talk_open(talk, 1);

    lost_with(talk, SUMAC_REASON_PS_MISSING);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_PS_MISSING);
}

TALK_TEST(a_ps_that_was_terminated_leaves_time_for_what_the_others_still_answer)
{
    talk_open(talk, 2);

    talk_push_out(talk, 7, 3);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_done(talk, 0, 1);

    lost_with(talk, SUMAC_REASON_TERMINATED);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
    talk_push_to(talk, 8, 2);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.reason, SUMAC_REASON_TERMINATED);
    talk_done(talk, 1, 1);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.status, SUMAC_OK);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
}

TALK_TEST(a_ps_that_was_terminated_is_not_waited_for_by_what_it_has_not_answered)
{
    talk_open(talk, 2);

    talk_push_out(talk, 7, 3);
    talk_staged(talk, 1, 1);

    lost_with(talk, SUMAC_REASON_TERMINATED);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
}

TEST(others_that_do_not_answer_after_a_ps_was_terminated_are_not_waited_for_long)
{
    struct talk talk;

    talk_open(&talk, 2);
    talk_push_out(&talk, 7, 3);
    talk_staged(&talk, 0, 1);
    talk_staged(&talk, 1, 1);
    talk_done(&talk, 0, 1);
    lost_with(&talk, SUMAC_REASON_TERMINATED);

    talk_tick_after(&talk, 2000);

    assert_int_equal(talk_find(&talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
    talk_close(&talk);
}

/* What becomes of the run, the answer to the leave says. */
TALK_TEST(a_ps_that_was_terminated_does_not_make_a_leave_good)
{
    talk_open(talk, 1);

    talk_leave(talk);

    lost_with(talk, SUMAC_REASON_TERMINATED);
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_call_failed(talk, WIRE_SESSIONS_LEAVE, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED);

    assert_null(talk_find(talk, SESSION_EFFECT_LEFT));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
}

TALK_TEST(a_run_that_ends_with_the_leave_is_no_error)
{
    talk_open(talk, 1);

    talk_leave(talk);

    lost_with(talk, SUMAC_REASON_RUN_ENDED);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_left(talk);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

/* Suspended for longer than a ps may be away: the silence was our own. */
TALK_TEST(a_process_that_slept_holds_it_against_no_ps)
{
    talk_open(talk, 1);

    talk_push_to(talk, 1, 1);
    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    talk_tick_after(talk, 2 * LOST_MS);

    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    assert_string_equal(
        talk_find(talk, SESSION_EFFECT_LOG)->text,
        "this process did not run for 120 s: it was suspended, or had too little of the "
        "processor; the ps are not blamed for that time");
}

TALK_TEST(a_settle_that_is_said_again_is_waited_for_no_longer)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_closed(talk, 0, false, 0, 0);
    talk_tick_after(talk, LOST_MS / 2);
    talk_closed(talk, 1, false, 0, 0);

    talk_tick_after(talk, LOST_MS / 2);

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}

TALK_TEST(a_second_ps_that_was_terminated_leaves_no_more_time_than_the_first)
{
    talk_open(talk, 3);
    const struct sumac_error terminated = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "it was told to"};

    talk_push_out(talk, 7, 7);
    for (uint32_t ps = 0; ps < 3; ps++)
        talk_staged(talk, ps, 1);
    talk_done(talk, 0, 1);
    talk_done(talk, 1, 1);
    talk_ended(talk, 0, SESSION_PUSH_STREAM, &terminated);
    talk_tick_after(talk, 1000);
    talk_ended(talk, 1, SESSION_PUSH_STREAM, &terminated);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED)); /* given: ps 2 may still answer */

    talk_tick_after(talk, 1000);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
}
