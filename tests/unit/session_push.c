/* SPDX-License-Identifier: Apache-2.0 */
/* session_push.c -- pushes as conversations: what is sent when, what commits, what is sent
 * again. */
#include "assert_number.h"
#include "session_talk.h"

/* ---- sending */

TALK_TEST(a_small_push_to_one_ps_goes_out_in_the_same_step_with_its_own_commit)
{
    talk_open(talk, 2);
    uint8_t data[8];
    struct session_piece piece = talk_piece(1, 11, data, sizeof data);

    piece.based_on = 5;

    talk_push(talk, 70, &piece, 1);

    const wire_push_request *request = talk_request(talk, 1);
    assert_non_null(request);
    assert_null(talk_sent(talk, 0));
    assert_int_equal(request->n_parts, 1);
    const wire_part *part = request->parts[0];
    assert_int_equal(part->sequence, 1);
    assert_int_equal(part->previous, 0);
    assert_true(part->first && part->last && part->eager);
    assert_int_equal(part->bytes, 8);
    assert_int_equal(part->started_at_us, 1000000 + talk->now_us);
    assert_int_equal(part->n_pieces, 1);
    assert_int_equal(part->pieces[0]->shard_id, 11);
    assert_int_equal(part->pieces[0]->based_on, 5);
    assert_int_equal(part->pieces[0]->bytes, 8);
    assert_int_equal(talk_sent(talk, 1)->payload_count, 1);
    assert_ptr_equal(talk_sent(talk, 1)->payload[0].bytes.data, data);
    assert_int_equal(talk_sent(talk, 1)->payload[0].token, 70);
}

TALK_TEST(a_push_is_over_when_its_ps_is_done_and_has_the_versions_of_its_pieces)
{
    talk_open(talk, 1);
    uint8_t data[8];
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, 4), talk_piece(0, 12, data, 4), talk_piece(0, 10, data + 4, 4)};

    talk_push(talk, 70, pieces, 3); /* given: shard 10 twice */
    uint64_t versions[] = {8, 3};
    wire_done done = WIRE_DONE_INIT;
    done.sequence = 1;
    done.n_versions = 2;
    done.versions = versions;
    wire_done *list[] = {&done};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.n_done = 1;
    answer.done = list;

    talk_answer(talk, 0, &answer);

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_non_null(pushed);
    assert_int_equal(pushed->token, 70);
    assert_int_equal(pushed->error.status, SUMAC_OK);
    assert_int_equal(pushed->version_count, 3);
    assert_int_equal(pushed->versions[0], 8);
    assert_int_equal(pushed->versions[1], 3);
    assert_int_equal(pushed->versions[2], 8);
    assert_int_equal(talk_state(talk).acked_through, 1);
    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH)); /* nothing is left to be said */
}

TALK_TEST(small_pushes_that_wait_for_a_stream_go_out_together)
{
    talk_open(talk, 1);

    talk_push_to(talk, 1, 1); /* given: the stream takes the first */
    talk_push_to(talk, 2, 1);
    assert_null(talk_sent(talk, 0));
    talk_push_out(talk, 3, 1);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2);
    assert_int_equal(request->parts[0]->sequence, 2);
    assert_int_equal(request->parts[0]->previous, 1);
    assert_int_equal(request->parts[1]->sequence, 3);
    assert_int_equal(request->parts[1]->previous, 2);
    assert_true(request->parts[1]->eager);
    assert_int_equal(talk_sent(talk, 0)->payload_count, 2);
}

/* A fifth small message waits until the first one's last part has its answer: what gathers
 * meanwhile goes together. */
TALK_TEST(small_pushes_gather_while_four_messages_of_them_are_under_way)
{
    talk_open(talk, 1);

    for (uint64_t push = 1; push <= 4; push++) { /* given */
        talk_push_to(talk, push, 1);
        assert_int_equal(talk_request(talk, 0)->n_parts, 1);
        talk_writable(talk, 0);
    }
    talk_push_to(talk, 5, 1);
    assert_null(talk_sent(talk, 0));
    talk_push_to(talk, 6, 1);
    assert_null(talk_sent(talk, 0));

    talk_done(talk, 0, 1);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2);
    assert_int_equal(request->parts[0]->sequence, 5);
    assert_int_equal(request->parts[1]->sequence, 6);
}

TALK_TEST(a_large_part_goes_out_in_chunks_of_whole_elements)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 100; /* 64 are whole elements of every type */
    talk_open_with(talk, &config);
    uint8_t data[150];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);

    talk_push(talk, 1, &piece, 1);
    assert_true(talk_request(talk, 0)->parts[0]->first);
    assert_false(talk_request(talk, 0)->parts[0]->last);
    assert_int_equal(talk_request(talk, 0)->parts[0]->bytes, 150);
    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->bytes, 64);
    talk_writable(talk, 0);
    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->offset_bytes, 64);
    assert_false(talk_request(talk, 0)->parts[0]->first);
    talk_writable(talk, 0);

    const wire_part *part = talk_request(talk, 0)->parts[0];
    assert_true(part->last);
    assert_int_equal(part->pieces[0]->offset_bytes, 128);
    assert_int_equal(part->pieces[0]->bytes, 22);
    assert_ptr_equal(talk_sent(talk, 0)->payload[0].bytes.data, data + 128);
}

TALK_TEST(a_message_has_no_more_pieces_than_its_bound)
{
    talk_open(talk, 1);
    static struct session_piece pieces[WIRE_PUSH_PIECES_MAX + 1];
    static uint8_t data[1];

    for (uint32_t i = 0; i <= WIRE_PUSH_PIECES_MAX; i++)
        pieces[i] = talk_piece(0, 10 + i, data, 1);

    talk_push(talk, 1, pieces, WIRE_PUSH_PIECES_MAX + 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->n_pieces, WIRE_PUSH_PIECES_MAX);
    assert_false(talk_request(talk, 0)->parts[0]->last);
    talk_writable(talk, 0);
    assert_int_equal(talk_request(talk, 0)->parts[0]->n_pieces, 1);
    assert_true(talk_request(talk, 0)->parts[0]->last);
}

TALK_TEST(previous_is_the_last_push_with_a_part_on_the_same_ps)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 1); /* given: 1 to ps 0, 2 to ps 1 */
    talk_push_to(talk, 2, 2);
    talk_writable(talk, 0);

    talk_push_to(talk, 3, 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 3);
    assert_int_equal(talk_request(talk, 0)->parts[0]->previous, 1);
}

/* ---- eager pushes and commits */

TALK_TEST(a_push_behind_one_on_another_ps_is_not_eager_until_that_is_committed)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 1); /* given: on ps 0, not answered */

    talk_push_to(talk, 2, 2);
    assert_false(talk_request(talk, 1)->parts[0]->eager);
    talk_done(talk, 0, 1);
    talk_staged(talk, 1, 2);
    talk_writable(talk, 1);
    /* it gets one of its own */
    assert_int_equal(talk_request(talk, 1)->commit->commit_through, 2);
    talk_writable(talk, 1);
    talk_push_to(talk, 3, 2);

    assert_true(talk_request(talk, 1)->parts[0]->eager);
}

TALK_TEST(staged_everywhere_is_not_enough_for_a_later_push_to_be_eager)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 1); /* given: 1 on ps 0 is not staged, 2 on ps 1 is */
    talk_push_to(talk, 2, 2);
    talk_staged(talk, 1, 2);
    talk_writable(talk, 0);

    talk_push_to(talk, 3, 1);

    assert_false(talk_request(talk, 0)->parts[0]->eager);
}

TALK_TEST(a_push_over_two_ps_is_committed_when_both_have_staged_it)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    assert_false(talk_request(talk, 0)->parts[0]->eager);
    assert_null(talk_request(talk, 0)->commit);
    talk_writable(talk, 0);
    talk_writable(talk, 1);

    talk_staged(talk, 0, 1);
    assert_int_equal(talk_state(talk).commit_through, 0);
    assert_null(talk_sent(talk, 0));
    talk_staged(talk, 1, 1);

    assert_int_equal(talk_state(talk).commit_through, 1);
    assert_int_equal(talk_request(talk, 0)->commit->commit_through, 1);
    assert_int_equal(talk_request(talk, 1)->commit->commit_through, 1);
    assert_int_equal(talk_request(talk, 0)->n_parts, 0);
    talk_done(talk, 0, 1);
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    talk_done(talk, 1, 1);
    assert_non_null(talk_find(talk, SESSION_EFFECT_PUSHED));
}

TALK_TEST(a_commit_rides_on_the_next_part)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_push_to(talk, 2, 3); /* given: both streams are busy with push 1 */
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);

    talk_writable(talk, 0);

    assert_int_equal(talk_request(talk, 0)->n_parts, 1);
    assert_int_equal(talk_request(talk, 0)->commit->commit_through, 1);
}

TALK_TEST(the_commit_stops_before_a_push_that_is_not_staged_everywhere)
{
    talk_open(talk, 2);

    talk_push_out(talk, 1, 3);
    talk_push_to(talk, 2, 3);

    talk_staged(talk, 0, 1);
    talk_staged(talk, 0, 2);
    talk_staged(talk, 1, 2);
    assert_int_equal(talk_state(talk).commit_through, 0);
    talk_staged(talk, 1, 1);

    assert_int_equal(talk_state(talk).commit_through, 2);
}

TALK_TEST(the_clock_is_said_to_every_ps_when_the_step_is_committed)
{
    talk_open(talk, 2);
    uint8_t data[8];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    const struct session_push push = {
        .token = 1, .pieces = &piece, .piece_count = 1, .finishes_step = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    assert_int_equal(talk_state(talk).clock, 0);

    talk_done(talk, 0, 1);

    assert_int_equal(talk_state(talk).clock, 1);
    assert_int_equal(talk_request(talk, 1)->commit->clock, 1); /* that the step did not push to */
    talk_writable(talk, 0);
    assert_int_equal(talk_request(talk, 0)->commit->clock, 1);
}

TALK_TEST(a_step_of_two_ps_counts_once_when_both_have_staged_it)
{
    talk_open(talk, 2);
    uint8_t data[16] = {0};
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, 8), talk_piece(1, 11, data + 8, 8)};
    const struct session_push push = {
        .token = 1, .pieces = pieces, .piece_count = 2, .finishes_step = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});

    talk_staged(talk, 0, 1);
    assert_int_equal(talk_state(talk).clock, 0);
    talk_staged(talk, 1, 1);
    assert_int_equal(talk_state(talk).clock, 1);
    talk_done(talk, 0, 1);
    talk_done(talk, 1, 1);

    assert_int_equal(talk_state(talk).clock, 1);
}

TALK_TEST(a_step_without_pieces_counts)
{
    talk_open(talk, 2);
    const struct session_push push = {.token = 1, .finishes_step = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});

    assert_int_equal(talk_state(talk).clock, 1);
}

/* ---- refusals */

TALK_TEST(a_refused_push_is_voided_with_its_commit_and_ends_with_the_refusal)
{
    talk_open(talk, 2);

    talk_push_out(talk, 1, 3);

    talk_refused(talk, 1, 1);
    talk_staged(talk, 0, 1);

    const wire_commit *commit = talk_request(talk, 0)->commit;
    assert_int_equal(commit->commit_through, 1);
    assert_int_equal(commit->n_voided, 1);
    assert_int_equal(commit->voided[0], 1);
    talk_done_with(talk, 0, 1, 0, true);
    talk_done_with(talk, 1, 1, 0, true);
    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(pushed->error.reason, SUMAC_REASON_NON_FINITE);
    assert_string_equal(
        pushed->error.text, "ps 1: W1 is not finite (expected finite values, given nan)");
}

TALK_TEST(a_refusal_that_says_no_status_is_one)
{
    talk_open(talk, 1);
    wire_refused refused = WIRE_REFUSED_INIT;

    talk_push_out(talk, 1, 1);
    refused.sequence = 1;
    refused.message = "W1 is not finite";
    wire_refused *list[] = {&refused};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.n_refused = 1;
    answer.refused = list;

    talk_answer(talk, 0, &answer);
    talk_done_with(talk, 0, 1, 0, true);

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.status, SUMAC_UNKNOWN);
    assert_string_equal(pushed->error.text, "ps 0: W1 is not finite");
}

TALK_TEST(done_says_voided_when_the_refusal_was_lost)
{
    talk_open(talk, 1);

    talk_push_to(talk, 1, 1);

    talk_done_with(talk, 0, 1, 0, true);

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.status, SUMAC_ABORTED);
}

TALK_TEST(voided_pushes_are_named_no_more_once_they_are_done)
{
    talk_open(talk, 1);

    for (uint64_t n = 1; n <= 3000; n++) {
        talk_push_to(talk, n, 1);
        assert_non_null(talk_sent(talk, 0));
        if (talk_request(talk, 0)->commit != NULL) {
            assert_int_equal(talk_request(talk, 0)->commit->n_voided, 0);
            assert_int_equal(talk_request(talk, 0)->commit->acked_through, n - 1);
        }
        talk_refused(talk, 0, n);
        talk_done_with(talk, 0, n, 0, true);
        talk_writable(talk, 0);
    }
}

/* ---- the grant of staging */

TALK_TEST(no_part_is_sent_before_the_greeting)
{
    talk_join_member(talk, 1);

    talk_hello(talk, 0);

    talk_push_to(talk, 1, 1);
    assert_null(talk_sent(talk, 0));
    talk_greet(talk, 0);

    assert_int_equal(talk_request(talk, 0)->n_parts, 1);
}

TALK_TEST(a_part_above_the_grant_is_refused_and_nothing_of_its_push_is_sent)
{
    talk_open(talk, 2);
    static uint8_t data[GRANT + 1];
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, 8), talk_piece(1, 11, data, GRANT + 1)};

    talk_push(talk, 1, pieces, 2);

    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH));
    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(pushed->error.reason, SUMAC_REASON_PART_TOO_LARGE);
    assert_non_null(strstr(pushed->error.text, "1000001 bytes in 1 pieces"));
    assert_non_null(strstr(pushed->error.text, "takes 1126217 bytes of staging"));
    assert_non_null(strstr(pushed->error.text, "1000000"));
    assert_non_null(strstr(pushed->error.text, "ps 1"));
    assert_non_null(strstr(
        pushed->error.text,
        "push less at once, use more ps, or start each ps with a --staging-max of 4M"));
    talk_push_to(talk, 2, 1); /* it has used up no sequence */
    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 1);
}

TALK_TEST(what_a_part_takes_is_told_before_it_is_pushed_once_its_ps_has_greeted)
{
    talk_found(talk, 2);

    assert_false(session_room(talk->session, 0, 8, 1).known);
    talk_joined(talk, 2);
    talk_hello(talk, 1);
    assert_false(session_room(talk->session, 1, 8, 1).known);

    talk_greet(talk, 1);

    const struct session_room room = session_room(talk->session, 1, GRANT + 1, 1);
    assert_true(room.known);
    assert_int_equal(room.cost_bytes, 1126217);
    assert_int_equal(room.grant_bytes, GRANT);
    assert_int_equal(room.part_bytes_max, GRANT); /* it has no pool */
    assert_int_equal(room.staging_max_mib, 4);
    assert_false(session_room(talk->session, 0, 8, 1).known);
    assert_false(session_room(talk->session, 2, 8, 1).known); /* there is no such ps */
}

/* The one ps is greeted, the other not: whether the part for that one is too large is not known
 * yet. */
TALK_TEST(a_push_waits_whole_until_the_grants_of_all_its_ps_are_known)
{
    talk_join_member(talk, 2);

    talk_hello(talk, 0);
    talk_greet(talk, 0);
    static uint8_t data[GRANT + 1];
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, 8), talk_piece(1, 11, data, GRANT + 1)};

    talk_push(talk, 1, pieces, 2);
    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH));
    talk_push_to(talk, 2, 1); /* what comes after it keeps its place */
    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH));
    talk_hello(talk, 1);
    talk_greet(talk, 1);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->token, 1);
    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 1);
}

/* Of thousands of pieces without a byte: as a ps counts them. */
TALK_TEST(what_has_no_bytes_takes_of_the_grant_too)
{
    talk_open(talk, 1);

    enum { many = (GRANT - 1024) / 192 };
    static struct session_piece pieces[many + 1];
    for (uint32_t i = 0; i <= many; i++)
        pieces[i] = talk_piece(0, 10 + i, NULL, 0);

    talk_push(talk, 1, pieces, many + 1);
    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.reason, SUMAC_REASON_PART_TOO_LARGE);

    talk_push(talk, 2, pieces, many);
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    assert_non_null(talk_sent(talk, 0));
    while (!talk_request(talk, 0)->parts[0]->last)
        talk_writable(talk, 0);
    talk_writable(talk, 0);
    talk_push_to(talk, 3, 1); /* and what comes after it waits for it */
    assert_null(talk_sent(talk, 0));
}

TALK_TEST(parts_beyond_the_grant_wait_until_others_are_done)
{
    talk_open(talk, 1);
    static uint8_t data[GRANT];

    /* with what it takes beside: 2000 are left */
    const uint64_t bytes = (GRANT - 1024 - 192 - 2000) / 9 * 8;
    const struct session_piece large = talk_piece(0, 10, data, bytes);
    talk_push(talk, 1, &large, 1);
    while (!talk_request(talk, 0)->parts[0]->last)
        talk_writable(talk, 0);
    talk_writable(talk, 0);
    talk_push_to(talk, 2, 1); /* given: the grant is used up */
    assert_non_null(talk_sent(talk, 0));
    talk_writable(talk, 0);

    talk_push_to(talk, 3, 1);
    assert_null(talk_sent(talk, 0));
    talk_staged(talk, 0, 1);
    assert_null(talk_sent(talk, 0));
    talk_done(talk, 0, 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 3);
}

TALK_TEST(the_next_push_after_a_thousand_in_flight_is_refused)
{
    talk_open(talk, 1);

    for (uint64_t n = 1; n <= SESSION_PUSHES_IN_FLIGHT_MAX; n++) {
        talk_push_to(talk, n, 1);
        assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    }

    talk_push_to(talk, 5000, 1);

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->token, 5000);
    assert_int_equal(pushed->error.status, SUMAC_RESOURCE_EXHAUSTED);
    talk_done(talk, 0, 1);
    talk_push_to(talk, 5001, 1);
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
}

/* ---- room */

TALK_TEST(staged_in_a_round_that_nothing_was_sent_in_does_not_count)
{
    talk_open(talk, 2);
    wire_staged staged = WIRE_STAGED_INIT, *list[] = {&staged};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    talk_push_to(talk, 1, 3);
    talk_staged(talk, 1, 1);
    staged.sequence = 1;
    staged.resend = 1;
    answer.n_staged = 1;
    answer.staged = list;

    talk_answer(talk, 0, &answer);
    assert_int_equal(talk_state(talk).commit_through, 0);
    talk_staged(talk, 0, 1);

    assert_int_equal(talk_state(talk).commit_through, 1);
}

/* ---- rules taken away */

static struct talk open_without(enum rule rule, uint32_t ps_count)
{
    struct talk talk;
    struct session_config config = talk_member(ps_count);

    config.broken = rule_bit(rule);
    talk_open_with(&talk, &config);
    return talk;
}

TEST(without_eager_only_when_alone_any_push_to_one_ps_is_eager)
{
    struct talk talk = open_without(RULE_eager_only_when_alone, 2);

    talk_push_to(&talk, 1, 1);

    talk_push_to(&talk, 2, 2);

    assert_true(talk_request(&talk, 1)->parts[0]->eager);
    talk_close(&talk);
}

TEST(without_commit_when_staged_everywhere_one_ps_is_enough)
{
    struct talk talk = open_without(RULE_commit_when_staged_everywhere, 2);

    talk_push_to(&talk, 1, 3);

    talk_staged(&talk, 1, 1);

    assert_int_equal(talk_state(&talk).commit_through, 1);
    talk_close(&talk);
}

TEST(without_generation_an_older_stream_counts)
{
    struct talk talk = open_without(RULE_generation, 1);

    talk_push_to(&talk, 1, 1);
    const uint64_t old = talk.generation[0][SESSION_PUSH_STREAM];
    talk_broke(&talk, 0, SESSION_PUSH_STREAM);

    talk.generation[0][SESSION_PUSH_STREAM] = old;
    talk_done(&talk, 0, 1);

    assert_non_null(talk_find(&talk, SESSION_EFFECT_PUSHED));
    talk_close(&talk);
}

TEST(without_acked_through_what_was_not_heard_is_said_to_be)
{
    struct talk talk = open_without(RULE_acked_through, 1);

    talk_push_to(&talk, 1, 1);

    assert_int_equal(talk_request(&talk, 0)->commit->acked_through, 1);
    talk_close(&talk);
}

TALK_TEST(a_push_says_what_it_stands_for_and_what_it_may_have)
{
    talk_open(talk, 1);
    uint8_t data[8] = {0};
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    const struct session_push push = {
        .token = 1, .pieces = &piece, .piece_count = 1, .weight = 2.5, .allow_non_finite = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});

    const wire_part *part = talk_request(talk, 0)->parts[0];
    assert_true(part->first);
    assert_number_equal(part->weight, 2.5);
    assert_true(part->allow_non_finite);
}
