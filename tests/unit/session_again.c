/* SPDX-License-Identifier: Apache-2.0 */
/* session_again.c -- what a ps was told on a stream that broke it is told again: nobody knows whether it had heard it. */
#include "session_talk.h"

/* Whether the ps has it nobody knows: its answer may have been lost, or the commit itself. */
static void after_a_reconnect_a_commit_that_was_said_is_said_again(void **state)
{
    (void)state;
    struct talk talk;
    talk_open(&talk, 2);
    talk_push_to(&talk, 1, 3);
    talk_writable(&talk, 0);
    talk_staged(&talk, 0, 1);
    talk_staged(&talk, 1, 1);
    assert_int_equal(talk_request(&talk, 0)->commit->commit_through, 1); /* given */

    talk_lost(&talk, 0, SESSION_PUSH_STREAM);
    talk_hello(&talk, 0);
    talk_greet(&talk, 0);

    assert_int_equal(talk_request(&talk, 0)->parts[0]->sequence, 1);
    assert_non_null(talk_request(&talk, 0)->commit);
    assert_int_equal(talk_request(&talk, 0)->commit->commit_through, 1);
    talk_close(&talk);
}

/* A message that was sent may not have come. */
static void after_a_reconnect_the_clock_is_said_again(void **state)
{
    (void)state;
    struct talk talk;
    talk_open(&talk, 2);
    uint8_t data[8];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof(data));
    const struct session_push push = {
        .token = 1, .pieces = &piece, .piece_count = 1, .finishes_step = true};
    talk_step(&talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_done(&talk, 0, 1);
    assert_int_equal(talk_request(&talk, 1)->commit->clock, 1); /* given */

    talk_lost(&talk, 1, SESSION_PUSH_STREAM);
    talk_hello(&talk, 1);
    talk_greet(&talk, 1);

    assert_non_null(talk_request(&talk, 1));
    assert_int_equal(talk_request(&talk, 1)->commit->clock, 1);
    talk_close(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_reconnect_a_commit_that_was_said_is_said_again),
        cmocka_unit_test(after_a_reconnect_the_clock_is_said_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
