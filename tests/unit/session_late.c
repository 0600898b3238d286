/* SPDX-License-Identifier: Apache-2.0 */
/* session_late.c -- what comes late, twice or never: answers, ends of streams, silence; and what is
 * under way when a session leaves, is replaced or ends.
 */
#include "session_talk.h"

static uint8_t data[64], into[8];

static void pull(struct talk *talk, uint64_t token)
{
    const struct session_piece piece = talk_piece(0, 10, into, sizeof into);
    const struct session_pull wanted = {.token = token, .pieces = &piece, .piece_count = 1};

    talk_pull(talk, &wanted);
}

/* ps 0's pull stream takes a message. Returns the number of the request in it. */
static const wire_pull_request *pull_message(struct talk *talk)
{
    talk_pull_writable(talk, 0);
    const struct session_effect *sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
    assert_non_null(sent);
    return sent->pull_request;
}

/* So many bytes of the only piece, from its beginning on. */
static void
answer_pull(struct talk *talk, uint64_t request, uint64_t bytes, const uint64_t *version, bool last)
{
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    const struct span payload = {.data = data, .bytes = bytes};

    piece.shard_id = 10;
    piece.bytes = bytes;
    answer.request = request;
    answer.n_pieces = 1;
    answer.pieces = pieces;
    answer.n_versions = version != NULL;
    answer.versions = (uint64_t *)(uintptr_t)version;
    answer.last = last;
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PULL_ANSWER,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[0][SESSION_PULL_STREAM],
                  .pull_answer = &answer,
                  .payload = &payload,
                  .payload_spans = 1});
}

static void fail_pull(struct talk *talk, uint64_t request, enum sumac_reason reason)
{
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    answer.request = request;
    answer.status = SUMAC_FAILED_PRECONDITION;
    answer.reason = (Sumac__V1__Reason)reason;
    answer.message = "it is so";
    talk_pull_answer(talk, 0, &answer);
}

/* In ticks that are no sleep. Returns whether the session has ended then. */
static bool pass(struct talk *talk, uint64_t ms)
{
    for (uint64_t passed_ms = 0; passed_ms < ms; passed_ms += 100) {
        talk_tick_after(talk, 100);
        if (talk_find(talk, SESSION_EFFECT_ENDED) != NULL)
            return true;
        if (talk_called(talk, WIRE_SESSIONS_RENEW) != NULL)
            talk_renewed(talk);
    }
    return false;
}

static void close_as_replaced(struct talk *talk, bool decided)
{
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    cause.kind = (Sumac__V1__CloseCause__Kind)WIRE_CLOSE_NEWER_ATTEMPT;
    cause.attempt = 2;
    talk_closed_for(talk, 0, decided, 0, 0, &cause);
}

/* ---- said twice, or of nothing */

TALK_TEST(a_stream_that_greets_twice_gets_nothing_twice)
{
    talk_open(talk, 1);

    assert_null(talk_find(talk, SESSION_EFFECT_LOG)); /* it is reached for the first time */
    talk_push_out(talk, 7, 1);

    talk_greet(talk, 0);

    assert_null(talk_request(talk, 0));
}

TALK_TEST(an_answer_to_a_push_that_there_is_not_changes_nothing)
{
    talk_open(talk, 2);

    talk_push_out(talk, 7, 3);
    for (uint32_t ps = 0; ps < 2; ps++)
        talk_staged(talk, ps, 1 + SESSION_PUSHES_IN_FLIGHT_MAX); /* it has the same place */

    assert_int_equal(talk_state(talk).commit_through, 0);
}

TALK_TEST(a_version_that_is_not_said_is_0_whatever_was_said_before)
{
    talk_open(talk, 1);
    wire_done done = WIRE_DONE_INIT, *list[] = {&done};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    const uint64_t version = 9;

    talk_push_out(talk, 1, 1);
    talk_done_with(talk, 0, 1, version, false);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->versions[0], version);
    talk_push_out(talk, 2, 1);
    done.sequence = 2;
    answer.done = list;
    answer.n_done = 1;
    talk_answer(talk, 0, &answer);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->versions[0], 0);

    for (uint64_t token = 3; token <= 4; token++) {
        pull(talk, token);
        answer_pull(
            talk, pull_message(talk)->request, sizeof into, token == 3 ? &version : NULL, true);
        assert_int_equal(
            talk_find(talk, SESSION_EFFECT_PULLED)->versions[0], token == 3 ? version : 0);
    }
}

TALK_TEST(a_pull_whose_stream_breaks_in_a_piece_begins_the_piece_again)
{
    talk_open(talk, 1);

    pull(talk, 5);
    answer_pull(talk, pull_message(talk)->request, 4, NULL, false);
    talk_broke(talk, 0, SESSION_PULL_STREAM);

    answer_pull(talk, pull_message(talk)->request, sizeof into, NULL, true);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.status, SUMAC_OK);
}

/* Of its own quarter of a second it says nothing, and never 0, which is no bound. */
TALK_TEST(a_pull_that_goes_out_at_its_end_is_bounded_by_a_millisecond)
{
    talk_open(talk, 1);
    const struct session_piece piece = talk_piece(0, 10, into, sizeof into);
    const struct session_pull wanted = {
        .token = 5, .pieces = &piece, .piece_count = 1, .timeout_ms = 500};

    talk_pull(talk, &wanted);
    talk->now_us += 600000;

    assert_int_equal(pull_message(talk)->timeout_ms, 1);
}

/* ---- under way at the end */

TALK_TEST(what_is_under_way_when_the_session_has_left_is_answered)
{
    const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const struct session_call call = {
        .token = 6,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = 10000};

    talk_join_member(talk, 2); /* its streams are being opened */
    pull(talk, 5);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &call});
    talk_leave(talk);

    talk_left(talk);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_PULLED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ANSWERED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
    for (uint32_t i = 0; i < 3; i++) /* two for pushes, one for the pull */
        assert_non_null(talk_nth(talk, SESSION_EFFECT_CLOSE_STREAM, i));
    assert_false(pass(talk, 10000));
    assert_null(talk_find(talk, SESSION_EFFECT_WAKE)); /* nothing is due any more */
}

TALK_TEST(a_push_without_a_sequence_is_in_flight_and_a_leave_waits_for_it)
{
    talk_join_member(talk, 1);

    for (uint64_t token = 1; token <= SESSION_PUSHES_IN_FLIGHT_MAX; token++)
        talk_push_to(talk, token, 1);
    assert_int_equal(talk_state(talk).pushes_in_flight, SESSION_PUSHES_IN_FLIGHT_MAX);
    talk_push_to(talk, 2000, 1);
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_PUSHED)->error.status, SUMAC_RESOURCE_EXHAUSTED);

    talk_leave(talk);

    assert_null(talk_called(talk, WIRE_SESSIONS_LEAVE));
    talk_push_to(talk, 2001, 1); /* nor is another one taken */
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_PUSHED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}

/* It lives, and is not done. */
TALK_TEST(a_replaced_client_that_wanted_to_leave_as_done_does_not_say_done)
{
    talk_open(talk, 1);

    talk_push_out(talk, 7, 1);
    talk_leave(talk);
    assert_null(talk_called(talk, WIRE_SESSIONS_LEAVE));

    close_as_replaced(talk, true);

    const wire_leave_request *leave =
        (const wire_leave_request *)talk_called(talk, WIRE_SESSIONS_LEAVE);
    assert_non_null(leave);
    assert_false(leave->done);
}

/* The call that says that it lives is under way. */
TALK_TEST(a_replaced_client_whose_ps_lost_its_state_ends_at_once)
{
    talk_open(talk, 2);
    const struct sumac_error lost = {
        .status = SUMAC_DATA_LOSS, .reason = SUMAC_REASON_STATE_LOST, .text = "started again"};

    close_as_replaced(talk, false);
    assert_true(session_is_acknowledging(talk->session));

    talk_ended(talk, 1, SESSION_PUSH_STREAM, &lost);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_STATE_LOST);
    assert_false(session_is_acknowledging(talk->session));
}

TALK_TEST(a_settle_goes_on_whatever_a_pull_or_a_renewal_hears)
{
    talk_open(talk, 1);

    pull(talk, 5);
    const uint64_t request = pull_message(talk)->request;
    talk_tick_after(talk, LEASE_MS / 3);
    assert_non_null(talk_called(talk, WIRE_SESSIONS_RENEW));
    talk_closed(talk, 0, false, 0, 0);

    fail_pull(talk, request, SUMAC_REASON_REPLACED);
    assert_non_null(talk_find(talk, SESSION_EFFECT_PULLED));
    talk_call_failed(talk, WIRE_SESSIONS_RENEW, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN);

    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_closed(talk, 0, true, 0, 0);
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}

/* ---- silence */

TALK_TEST(a_reader_gives_no_ps_up)
{
    const struct session_config config = {
        .reader = true, .ps_addresses = talk_addresses, .ps_count = 2};

    talk_config(talk, &config);
    talk_start(talk);
    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));

    assert_false(pass(talk, 2 * LOST_MS));
}

TALK_TEST(a_ps_that_has_all_that_it_needs_to_apply_a_part_and_is_silent_is_lost)
{
    talk_open(talk, 1);

    talk_push_out(talk, 7, 1); /* it carries its own commit */
    talk_staged(talk, 0, 1);

    assert_false(pass(talk, LOST_MS - 1000));
    assert_true(pass(talk, 2000));

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_PS_MISSING);
}

/* Its silence counts from what it was sent last. */
TALK_TEST(a_ps_that_was_not_asked_for_long_has_its_time_once_it_is)
{
    talk_open(talk, 1);

    assert_false(pass(talk, LOST_MS - 1000));
    talk_push_to(talk, 7, 1);

    assert_false(pass(talk, LOST_MS - 1000));
    assert_true(pass(talk, 2000));
}

TALK_TEST(a_process_that_slept_while_a_ps_owed_an_answer_does_not_blame_it)
{
    talk_open(talk, 1);

    talk_push_out(talk, 7, 1);

    talk_tick_after(talk, 2 * LOST_MS);

    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

/* The clocks of processes begin anywhere. */
TALK_TEST(a_session_that_begins_late_gives_its_ps_as_much_time)
{
    const struct session_config config = talk_member(1);

    talk_config(talk, &config);
    talk->now_us = UINT64_C(1) << 50;
    talk_start(talk);
    talk_joined(talk, 1);

    assert_false(pass(talk, LOST_MS - 1000));
    assert_true(pass(talk, 2000));
}

/* The first end of its stream is no sign of it. */
TALK_TEST(a_ps_that_never_greeted_is_given_up_from_the_join_on)
{
    talk_join_member(talk, 1);

    assert_false(pass(talk, LOST_MS / 2));
    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    assert_true(pass(talk, LOST_MS / 2 + 1000));
}

TEST(a_renewal_says_the_clock)
{
    struct talk talk;

    talk.first_clock = 0;
    talk_join_member(&talk, 1);
    talk_close(&talk);
    const struct session_config config = talk_member(1);
    talk_config(&talk, &config);
    talk_start(&talk);
    talk.first_clock = 6;
    talk_joined(&talk, 1);

    talk_tick_after(&talk, LEASE_MS / 3);

    const wire_renew_request *renew =
        (const wire_renew_request *)talk_called(&talk, WIRE_SESSIONS_RENEW);
    assert_non_null(renew);
    assert_int_equal(renew->clock, 6);
    talk_close(&talk);
}
