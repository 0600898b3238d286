/* SPDX-License-Identifier: Apache-2.0 */
/* session_lag.c -- bounded lag: what a pull says of the steps that were finished before it. */
#include "session_talk.h"

static uint8_t bytes[8];

/* A push to one ps, the last of a step. */
static void finish_step(struct talk *talk, uint64_t token, uint32_t ps)
{
    const struct session_piece piece = talk_piece(ps, 10 + ps, bytes, sizeof bytes);
    const struct session_push push = {
        .token = token, .pieces = &piece, .piece_count = 1, .finishes_step = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
}

/* From ps 0. */
static void pull(struct talk *talk, bool bounded, uint64_t lag_max)
{
    const struct session_piece piece = talk_piece(0, 10, bytes, sizeof bytes);
    const struct session_pull wanted = {
        .token = 99, .pieces = &piece, .piece_count = 1, .bounded = bounded, .lag_max = lag_max};

    talk_pull(talk, &wanted);
}

static void may_ask(struct talk *talk) { talk_pull_writable(talk, 0); }

static const wire_pull_request *asked(const struct talk *talk)
{
    const struct session_effect *effect = talk_find(talk, SESSION_EFFECT_SEND_PULL);

    return effect == NULL ? NULL : effect->pull_request;
}

/* Committed or not: the ps may hear of the pull before the commit. */
TALK_TEST(a_bounded_pull_says_the_steps_that_were_finished_before_it)
{
    talk_open(talk, 2);

    finish_step(talk, 1, 1);
    talk_done(talk, 1, 1);
    finish_step(talk, 2, 1); /* not committed yet */
    assert_int_equal(talk_state(talk).clock, 1);

    pull(talk, true, 3);
    finish_step(talk, 3, 1);
    may_ask(talk);

    assert_true(asked(talk)->bounded);
    assert_int_equal(asked(talk)->lag_max, 3);
    assert_int_equal(asked(talk)->clock, 2);
}

TALK_TEST(it_says_those_too_whose_pushes_have_no_sequence_yet)
{
    talk_join_member(talk, 2);

    talk_hello(talk, 0);
    talk_greet(talk, 0);
    finish_step(talk, 1, 1); /* given: ps 1 is yet to greet */
    finish_step(talk, 2, 1);
    pull(talk, true, 0);
    finish_step(talk, 3, 1);
    may_ask(talk);
    assert_null(asked(talk));
    talk_hello(talk, 1);

    talk_greet(talk, 1);

    assert_int_equal(asked(talk)->clock, 2);
}

TALK_TEST(a_pull_without_a_bound_says_none)
{
    talk_open(talk, 1);

    finish_step(talk, 1, 0);
    pull(talk, false, 0);
    may_ask(talk);

    assert_false(asked(talk)->bounded);
    assert_int_equal(asked(talk)->clock, 0);
}

static void answer_pulls(struct talk *talk, wire_pull_answer *answer)
{
    talk_pull_answer(talk, 0, answer);
}

static void greet_pulls(struct talk *talk)
{
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    answer.greeting = &greeting;
    answer_pulls(talk, &answer);
}

/* A pull of no bytes, for the same steps, whatever was finished since. */
TALK_TEST(a_ps_that_has_the_pull_is_asked_what_it_waits_for)
{
    talk_open(talk, 1);
    struct session_wait wait;
    const struct session_pull asks = {.token = 98, .asks = &wait, .timeout_ms = 500};

    finish_step(talk, 1, 0);
    pull(talk, true, 3);
    assert_false(session_find_wait(talk->session, 99, &wait)); /* it is yet to go out */
    may_ask(talk);
    assert_false(session_find_wait(talk->session, 99, &wait)); /* its ps is yet to greet */
    greet_pulls(talk);
    finish_step(talk, 2, 0);

    assert_true(session_find_wait(talk->session, 99, &wait));
    assert_int_equal(wait.ps, 0);
    assert_true(wait.of_pieces);
    talk_pull(talk, &asks);
    may_ask(talk);

    assert_int_equal(asked(talk)->n_pieces, 0);
    assert_true(asked(talk)->bounded);
    assert_int_equal(asked(talk)->lag_max, 3);
    assert_int_equal(asked(talk)->clock, 1);
}

/* It waits for its bytes, or for a stream that its ps ends again and again: no condition explains
 * that. */
TEST(no_condition_explains_a_pull_that_is_under_way_or_in_trouble)
{
    for (int in_trouble = 0; in_trouble < 2; in_trouble++) {
        struct talk talk;
        struct session_wait wait;
        wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
        wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
        talk_open(&talk, 1);
        pull(&talk, true, 3);
        may_ask(&talk);
        answer.request = asked(&talk)->request;
        greet_pulls(&talk);
        assert_true(session_find_wait(talk.session, 99, &wait));
        assert_true(wait.of_pieces);

        if (in_trouble) {
            talk_broke(&talk, 0, SESSION_PULL_STREAM);
            may_ask(&talk);
            greet_pulls(&talk);
        } else {
            const struct span payload = {.data = bytes, .bytes = 4};
            piece.shard_id = 10;
            piece.bytes = payload.bytes;
            answer.pieces = pieces;
            answer.n_pieces = 1;
            talk_step(
                &talk, (struct session_event){
                           .kind = SESSION_EVENT_PULL_ANSWER,
                           .stream_kind = SESSION_PULL_STREAM,
                           .generation = talk.generation[0][SESSION_PULL_STREAM],
                           .pull_answer = &answer,
                           .payload = &payload,
                           .payload_spans = 1});
        }

        assert_false(session_find_wait(talk.session, 99, &wait));
        talk_close(&talk);
    }
}

/* The push before it, which the ps has yet to apply; a round has no pieces to wait for. */
TALK_TEST(a_wait_names_the_push_and_the_round_that_it_is_for)
{
    talk_open(talk, 1);
    struct session_wait wait;
    const wire_collective_round round = WIRE_COLLECTIVE_ROUND_INIT;
    const struct session_piece piece = talk_piece(0, 10, bytes, sizeof bytes);
    const struct session_pull pulls[] = {
        {.token = 98, .pieces = &piece, .piece_count = 1, .after_own_pushes = true},
        {.token = 99, .pieces = &piece, .piece_count = 1, .collective = &round},
    };

    talk_push_out(talk, 1, 1);
    for (size_t i = 0; i < sizeof pulls / sizeof *pulls; i++) {
        talk_pull(talk, &pulls[i]);
        may_ask(talk);
        greet_pulls(talk);

        assert_true(session_find_wait(talk->session, pulls[i].token, &wait));

        assert_int_equal(wait.after_sequence, i == 0 ? 1 : 0);
        assert_ptr_equal(wait.collective, pulls[i].collective);
        assert_int_equal(wait.of_pieces, i == 0);
    }
}

/* Each condition is the one of the wait, also while pushes of the session have no sequence. */
TALK_TEST(a_question_names_every_condition_of_the_wait)
{
    talk_join_member(talk, 1);
    const wire_collective_round round = WIRE_COLLECTIVE_ROUND_INIT;
    const struct session_wait waits[] = {
        {.after_sequence = 7, .at_step = 4},
        {.collective = &round},
    };

    talk_push_to(talk, 1, 1);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct session_pull asks = {.token = 90 + i, .asks = &waits[i], .timeout_ms = 500};
        talk_pull(talk, &asks);
        may_ask(talk);

        assert_int_equal(asked(talk)->after_sequence, waits[i].after_sequence);
        assert_int_equal(asked(talk)->at_step, waits[i].at_step);
        assert_ptr_equal(asked(talk)->collective, waits[i].collective);
    }
}

/* It says that the wait is over: nothing was read. */
TALK_TEST(an_answer_to_a_question_is_no_value)
{
    talk_open(talk, 1);
    const struct session_wait wait = {.ps = 0, .of_pieces = true};
    const struct session_piece empty = talk_piece(0, 10, NULL, 0);
    const struct session_pull asks = {
        .token = 98, .pieces = &empty, .piece_count = 1, .asks = &wait, .timeout_ms = 500};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    uint64_t version = 7;

    talk_pull(talk, &asks);
    may_ask(talk);
    answer.request = asked(talk)->request;
    greet_pulls(talk);
    answer.versions = &version;
    answer.n_versions = 1;
    answer.last = true;
    answer_pulls(talk, &answer);

    const struct session_effect *const over = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_int_equal(over->error.status, SUMAC_OK);
    assert_int_equal(over->version_count, 0);
}

TEST(a_push_is_owed_by_the_ps_that_has_yet_to_stage_it_then_by_the_one_that_is_not_done)
{
    struct talk talk;
    uint32_t ps = 7;
    const struct session_piece pieces[] = {
        talk_piece(0, 10, bytes, sizeof bytes), talk_piece(1, 11, bytes, sizeof bytes)};
    const struct session_push push = {.token = 1, .pieces = pieces, .piece_count = 2};

    const struct session_config config = talk_member(2);
    talk_config(&talk, &config);
    talk_start(&talk);
    talk_joined(&talk, 2);
    talk_step(&talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    assert_true(session_find_owing(talk.session, 1, &ps)); /* it has no sequence yet */
    for (ps = 0; ps < 2; ps++) {
        talk_tick_after(&talk, 1000);
        talk_hello(&talk, ps);
        talk_greet(&talk, ps);
    }
    assert_true(session_find_owing(talk.session, 1, &ps));
    assert_int_equal(ps, 0); /* the one heard from longest ago */

    talk_tick_after(&talk, 1000);
    talk_staged(&talk, 0, 1);
    talk_staged(&talk, 1, 1);
    assert_true(session_find_owing(talk.session, 1, &ps));
    assert_int_equal(ps, 0);
    talk_done(&talk, 0, 1);
    assert_true(session_find_owing(talk.session, 1, &ps));
    assert_int_equal(ps, 1);
    talk_done(&talk, 1, 1);
    assert_false(session_find_owing(talk.session, 1, &ps));
    talk_close(&talk);
}

TEST(a_part_that_is_not_staged_is_owed_by_its_ps_though_another_is_silent_for_longer)
{
    struct talk talk;
    uint32_t ps = 7;
    const struct session_piece pieces[] = {
        talk_piece(0, 10, bytes, sizeof bytes), talk_piece(1, 11, bytes, sizeof bytes)};
    const struct session_push push = {.token = 1, .pieces = pieces, .piece_count = 2};

    talk_open(&talk, 2);
    talk_step(&talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_staged(&talk, 0, 1);
    talk_tick_after(&talk, 1000);
    talk_greet(&talk, 1); /* heard from later, and it has nothing staged */

    assert_true(session_find_owing(talk.session, 1, &ps));

    assert_int_equal(ps, 1);
    talk_close(&talk);
}

TALK_TEST(a_pull_is_owed_by_the_ps_that_was_heard_from_longest_ago)
{
    talk_open(talk, 2);
    uint32_t ps = 7;
    const struct session_piece pieces[] = {
        talk_piece(0, 10, bytes, sizeof bytes), talk_piece(1, 11, bytes, sizeof bytes)};
    const struct session_pull pull = {.token = 5, .pieces = pieces, .piece_count = 2};
    const struct session_push push = {.token = 1, .pieces = pieces, .piece_count = 1};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_pull(talk, &pull);
    talk_tick_after(talk, 1000);
    talk_staged(talk, 0, 1);

    assert_true(session_find_owing(talk->session, 5, &ps));

    assert_int_equal(ps, 1);
}

/* Its parts wait for their turn. Before that it waits for a ps. */
TALK_TEST(a_push_that_every_ps_has_staged_asks_one_of_them)
{
    talk_open(talk, 2);
    struct session_wait wait;
    const struct session_piece pieces[] = {
        talk_piece(0, 10, bytes, sizeof bytes), talk_piece(1, 11, bytes, sizeof bytes)};
    const struct session_push push = {.token = 1, .pieces = pieces, .piece_count = 2};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_staged(talk, 0, 1);
    assert_false(session_find_wait(talk->session, 1, &wait)); /* ps 1 is yet to stage it */
    talk_staged(talk, 1, 1);
    talk_done(talk, 1, 1);

    assert_true(session_find_wait(talk->session, 1, &wait));
    assert_int_equal(wait.ps, 0);
    assert_int_equal(wait.after_sequence, 1);
    assert_false(wait.of_pieces);
    talk_done(talk, 0, 1);
    assert_false(session_find_wait(talk->session, 1, &wait));
}
