/* SPDX-License-Identifier: Apache-2.0 */
/* session_several.c -- the second of several: parts, pulls, ps and words of one answer, each of
 * which counts like the first.
 */
#include "session_talk.h"

#define LARGE_BYTES 4096u
#define FLOOR_BYTES 4000u

static uint8_t data[LARGE_BYTES], into[64];

static void greet_saying(struct talk *talk, uint32_t ps, uint64_t floor, uint32_t voided_max)
{
    wire_limits limits = WIRE_LIMITS_INIT;
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    limits.voided_max = voided_max;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100 + ps;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = floor;
    greeting.part_bytes_max = 10 * LARGE_BYTES;
    greeting.limits = &limits;
    answer.greeting = &greeting;
    talk_answer(talk, ps, &answer);
}

/* Both ps have greeted so. */
static void open_saying(struct talk *talk, uint64_t floor, uint32_t voided_max)
{
    talk_join_member(talk, 2);
    for (uint32_t ps = 0; ps < 2; ps++) {
        talk_hello(talk, ps);
        greet_saying(talk, ps, floor, voided_max);
    }
}

static void pull(struct talk *talk, uint64_t token, bool after_own_pushes)
{
    const struct session_piece piece = talk_piece(0, 10, into, 8);
    const struct session_pull wanted = {
        .token = token, .pieces = &piece, .piece_count = 1, .after_own_pushes = after_own_pushes};

    talk_pull(talk, &wanted);
}

/* ps 0's pull stream takes a message. Returns what it says; NULL: nothing. */
static const wire_pull_request *pull_message(struct talk *talk)
{
    talk_pull_writable(talk, 0);
    const struct session_effect *sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
    return sent == NULL ? NULL : sent->pull_request;
}

/* ---- in one answer */

/* Each push has a large part for ps 0, and 8 bytes for ps 1. Ps 1 stages none of them. */
static void stage_two_large_ones(struct talk *talk)
{
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, LARGE_BYTES), talk_piece(1, 11, data, 8)};
    struct said said;

    open_saying(talk, FLOOR_BYTES, 0);
    for (uint64_t token = 1; token <= 2; token++) {
        talk_push(talk, token, pieces, 2);
        talk_writable(talk, 0);
        talk_answer(talk, 0, say_resend(&said, token));
        talk_writable(talk, 0);
        talk_staged(talk, 0, token);
    }
}

TALK_TEST(each_part_that_is_to_give_way_does_and_comes_again)
{
    wire_give_way ways[2] = {WIRE_GIVE_WAY_INIT, WIRE_GIVE_WAY_INIT};
    wire_give_way *list[] = {&ways[0], &ways[1]};
    uint64_t wanted[] = {1, 2};
    wire_push_answer give_way = WIRE_PUSH_ANSWER_INIT, resend = WIRE_PUSH_ANSWER_INIT;

    stage_two_large_ones(talk);
    ways[0].sequence = 1;
    ways[1].sequence = 2;
    give_way.give_way = list;
    give_way.n_give_way = 2;
    talk_answer(talk, 0, &give_way);
    assert_int_equal(talk_request(talk, 0)->n_withdraws, 2);
    talk_writable(talk, 0);

    resend.resend = wanted;
    resend.n_resend = 2;
    talk_answer(talk, 0, &resend);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2);
    assert_int_equal(request->parts[0]->sequence, 1);
    assert_int_equal(request->parts[1]->sequence, 2);
}

TEST(the_end_of_a_session_knows_each_push_that_was_voided_and_those_never_numbered)
{
    static const enum sumac_status statuses[] = {
        SUMAC_ABORTED, SUMAC_ABORTED, SUMAC_OK, SUMAC_ABORTED};
    struct talk talk;
    uint64_t voided[] = {1, 2};
    wire_closed closed = WIRE_CLOSED_INIT;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    open_saying(&talk, GRANT, 3);
    for (uint64_t token = 1; token <= 4; token++)
        talk_push_out(&talk, token, 3); /* the fourth waits for its sequence */
    assert_int_equal(talk_state(&talk).last_sequence, 3);

    closed.decided = true;
    closed.final = 3;
    closed.voided = voided;
    closed.n_voided = 2;
    answer.closed = &closed;
    talk_answer(&talk, 0, &answer);

    for (uint32_t i = 0; i < 4; i++) {
        const struct session_effect *pushed = talk_nth(&talk, SESSION_EFFECT_PUSHED, i);
        assert_int_equal(pushed->token, i + 1);
        assert_int_equal(pushed->error.status, statuses[i]);
    }
    assert_int_equal(talk_state(&talk).pushes_in_flight, 0);
    talk_close(&talk);
}

/* ---- pushes */

TALK_TEST(a_commit_names_a_voided_push_behind_one_that_is_not)
{
    talk_open(talk, 2);

    talk_push_out(talk, 1, 3);
    talk_push_out(talk, 2, 3);
    talk_refused(talk, 0, 2);
    talk_staged(talk, 1, 2);
    talk_staged(talk, 0, 1);

    talk_staged(talk, 1, 1);

    const wire_commit *commit = talk_request(talk, 1)->commit;
    assert_int_equal(commit->commit_through, 2);
    assert_int_equal(commit->n_voided, 1);
    assert_int_equal(commit->voided[0], 2);
}

TALK_TEST(parts_that_gather_in_a_message_keep_the_bytes_of_each)
{
    struct session_piece pieces[3][3];

    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 3; k++)
            pieces[i][k] = talk_piece(0, 10 + k, data + 8 * (3 * i + k), 8);
    talk_open(talk, 1);
    for (uint32_t i = 0; i < 3; i++)
        talk_push(talk, i + 1, pieces[i], 3); /* the first goes out alone */

    talk_writable(talk, 0);

    const struct session_effect *sent = talk_sent(talk, 0);
    assert_int_equal(sent->push_request->n_parts, 2);
    assert_int_equal(sent->payload_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_ptr_equal(sent->payload[i].bytes.data, data + 8 * (3 + i));
        assert_int_equal(sent->payload[i].token, i < 3 ? 2 : 3);
    }
}

TALK_TEST(a_message_has_no_more_parts_than_its_bound)
{
    talk_open(talk, 1);
    size_t sent = 0;

    talk_push_to(talk, 1, 1);
    for (uint64_t token = 2; token <= 600; token++)
        talk_push_to(talk, token, 1);
    for (uint32_t i = 0; i < 4; i++) {
        talk_writable(talk, 0);
        const wire_push_request *request = talk_request(talk, 0);
        const size_t parts = request == NULL ? 0 : request->n_parts;
        assert_true(parts <= 256);
        sent += parts;
    }

    assert_int_equal(sent, 599);
}

/* No push after the second one is committed before that is done. */
TALK_TEST(the_second_synchronous_push_holds_others_back_like_the_first)
{
    talk_open(talk, 1);
    const struct session_piece piece = talk_piece(0, 10, data, 8);

    for (uint64_t token = 1; token <= 2; token++) {
        const struct session_push push = {
            .token = token, .pieces = &piece, .piece_count = 1, .weight = 1, .synchronous = true};
        talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
        talk_writable(talk, 0);
        talk_staged(talk, 0, token);
        if (token == 1)
            talk_done(talk, 0, token);
    }
    talk_push_out(talk, 3, 1);

    talk_staged(talk, 0, 3);

    assert_int_equal(talk_state(talk).commit_through, 2);
    talk_done(talk, 0, 2);
    assert_int_equal(talk_state(talk).commit_through, 3);
}

/* The newest step counts, whichever ps says it. */
TALK_TEST(a_part_that_is_done_twice_and_an_older_step_change_nothing)
{
    talk_open(talk, 2);

    talk_push_out(talk, 7, 3);
    talk->open_step = 5;
    talk_done(talk, 0, 1);

    talk->open_step = 3;
    talk_done(talk, 0, 1);

    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    talk_done(talk, 1, 1);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->token, 7);
    assert_int_equal(talk_state(talk).open_step, 5);
}

TALK_TEST(a_push_that_waits_for_room_on_the_second_ps_knows_it)
{
    const struct session_piece piece = talk_piece(1, 11, data, LARGE_BYTES);
    wire_room_wait wait = WIRE_ROOM_WAIT_INIT, *list[] = {&wait};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    open_saying(talk, FLOOR_BYTES, 0);
    talk_push(talk, 7, &piece, 1);
    wait.sequence = 1;
    wait.message = "worker 4 has it";
    answer.room_waits = list;
    answer.n_room_waits = 1;
    talk_answer(talk, 1, &answer);

    assert_string_equal(session_find_room_wait(talk->session, 7), "worker 4 has it");
    assert_null(session_find_room_wait(talk->session, 8));
}

/* ---- ps */

TALK_TEST(a_terminated_ps_that_has_a_later_part_is_not_waited_for)
{
    talk_open(talk, 2);
    const struct sumac_error error = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "it ends"};

    talk_push_out(talk, 7, 3);
    talk_staged(talk, 0, 1);

    talk_ended(talk, 1, SESSION_PUSH_STREAM, &error);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
}

/* Push 1 is never committed, so ps 0 never applies push 2, which follows it there. */
TALK_TEST(after_a_ps_was_terminated_no_push_behind_one_that_fails_is_waited_for)
{
    talk_open(talk, 2);
    const struct sumac_error error = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "it ends"};

    talk_push_out(talk, 7, 3); /* given */
    talk_push_out(talk, 8, 1);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 0, 2);

    talk_ended(talk, 1, SESSION_PUSH_STREAM, &error); /* when */

    assert_int_equal(/* then */
                     talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_TERMINATED);
}

TALK_TEST(each_ps_of_another_cluster_than_ps_0_is_asked_again)
{
    const struct session_config config = talk_member(3);
    wire_list_reply old = WIRE_LIST_REPLY_INIT;

    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    talk_known(talk, 1);
    old.cluster_id = 41;
    old.epoch = 1;
    old.ps = 2;
    old.ps_incarnation = 7;
    talk_said(talk, 2, &old);
    const uint64_t asked = talk->finds[2];

    talk_known(talk, 0);

    assert_true(talk->finds[2] > asked);
}

TALK_TEST(the_ps_that_has_the_contribution_hears_that_its_round_is_over)
{
    wire_collective header = WIRE_COLLECTIVE_INIT;
    const struct session_piece piece = {.ps = 1, .data = data, .bytes = 8};
    const struct session_push push = {
        .token = 5, .pieces = &piece, .piece_count = 1, .weight = 1, .collective = &header};

    header.name = (wire_bytes){.len = 1, .data = (uint8_t *)(uintptr_t) "g"};
    header.round = 1;
    talk_open(talk, 2);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_writable(talk, 1);
    talk_done(talk, 1, 1);
    talk_writable(talk, 1);

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = 5});
    talk_tick_after(talk, 50);

    assert_int_equal(talk_request(talk, 1)->commit->collectives_through, 1);
}

/* ---- pulls */

TALK_TEST(the_second_of_two_pulls_is_cancelled_and_the_first_goes_on)
{
    talk_open(talk, 1);
    uint64_t numbers[2];

    for (uint64_t i = 0; i < 2; i++) {
        pull(talk, 5 + i, false);
        numbers[i] = pull_message(talk)->request;
    }

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = 6});

    const wire_pull_request *said = pull_message(talk);
    assert_true(said->cancel);
    assert_int_equal(said->request, numbers[1]);
    pull(talk, 7, false); /* it has a place of its own */
    assert_true(pull_message(talk) == NULL || !talk_find(talk, SESSION_EFFECT_PULLED));
}

TALK_TEST(each_pull_of_a_stream_that_ends_for_what_was_said_fails)
{
    talk_open(talk, 1);
    const struct sumac_error error = {
        .status = SUMAC_INVALID_ARGUMENT, .reason = SUMAC_REASON_MALFORMED, .text = "no"};

    for (uint64_t token = 5; token <= 6; token++) {
        pull(talk, token, false);
        assert_non_null(pull_message(talk));
    }

    talk_ended(talk, 0, SESSION_PULL_STREAM, &error);

    for (uint32_t i = 0; i < 2; i++) {
        const struct session_effect *pulled = talk_nth(talk, SESSION_EFFECT_PULLED, i);
        assert_non_null(pulled);
        assert_int_equal(pulled->error.reason, SUMAC_REASON_MALFORMED);
    }
}

/* The first waits for a push that has no sequence yet. */
TALK_TEST(a_pull_behind_one_that_is_cancelled_goes_out)
{
    talk_join_member(talk, 1);
    const struct session_wait wait = {.at_step = 4};
    const struct session_pull asks = {.token = 6, .asks = &wait};

    talk_push_to(talk, 1, 1);
    pull(talk, 5, true);
    talk_pull(talk, &asks);
    assert_null(pull_message(talk));

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = 5});

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_SEND_PULL)->pull_request->at_step, wait.at_step);
}

/* Each pull that comes after own pushes waits for those before it, and no other one does. */
TALK_TEST(each_pull_knows_the_pushes_before_it_once_they_are_numbered)
{
    talk_join_member(talk, 1);

    talk_push_to(talk, 1, 1);
    pull(talk, 5, true);
    talk_push_to(talk, 2, 1);
    pull(talk, 6, true);
    pull(talk, 7, false);
    assert_null(pull_message(talk)); /* the pushes have no sequence */

    talk_hello(talk, 0);
    greet_saying(talk, 0, GRANT, 1); /* one push has it */
    const struct session_effect *sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
    assert_int_equal(sent->pull_request->after_sequence, 1);
    assert_null(pull_message(talk));
    talk_writable(talk, 0);
    talk_done(talk, 0, 1);

    sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
    assert_int_equal(sent->pull_request->after_sequence, 2);
    assert_int_equal(pull_message(talk)->after_sequence, 0);
}
