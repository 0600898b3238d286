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

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PULL, .pull = &wanted});
}

static void may_ask(struct talk *talk)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_STREAM_WRITABLE,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[0][SESSION_PULL_STREAM]});
}

static const wire_pull_request *asked(const struct talk *talk)
{
    const struct session_effect *effect = talk_find(talk, SESSION_EFFECT_SEND_PULL);

    return effect == NULL ? NULL : effect->pull_request;
}

/* Committed or not: the ps may hear of the pull before the commit. */
static void a_bounded_pull_says_the_steps_that_were_finished_before_it(void **state)
{
    (void)state;
    struct talk talk;

    talk_open(&talk, 2);
    finish_step(&talk, 1, 1);
    talk_done(&talk, 1, 1);
    finish_step(&talk, 2, 1); /* not committed yet */
    assert_int_equal(talk_state(&talk).clock, 1);

    pull(&talk, true, 3);
    finish_step(&talk, 3, 1);
    may_ask(&talk);

    assert_true(asked(&talk)->bounded);
    assert_int_equal(asked(&talk)->lag_max, 3);
    assert_int_equal(asked(&talk)->clock, 2);
    talk_close(&talk);
}

static void it_says_those_too_whose_pushes_have_no_sequence_yet(void **state)
{
    (void)state;
    struct talk talk;

    talk_join_member(&talk, 2);
    talk_hello(&talk, 0);
    talk_greet(&talk, 0);
    finish_step(&talk, 1, 1); /* given: ps 1 has not greeted */
    finish_step(&talk, 2, 1);
    pull(&talk, true, 0);
    finish_step(&talk, 3, 1);
    may_ask(&talk);
    assert_null(asked(&talk));
    talk_hello(&talk, 1);

    talk_greet(&talk, 1);

    assert_int_equal(asked(&talk)->clock, 2);
    talk_close(&talk);
}

static void a_pull_without_a_bound_says_none(void **state)
{
    (void)state;
    struct talk talk;

    talk_open(&talk, 1);
    finish_step(&talk, 1, 0);
    pull(&talk, false, 0);
    may_ask(&talk);

    assert_false(asked(&talk)->bounded);
    assert_int_equal(asked(&talk)->clock, 0);
    talk_close(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bounded_pull_says_the_steps_that_were_finished_before_it),
        cmocka_unit_test(it_says_those_too_whose_pushes_have_no_sequence_yet),
        cmocka_unit_test(a_pull_without_a_bound_says_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
