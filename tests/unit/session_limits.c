/* SPDX-License-Identifier: Apache-2.0 */
/* session_limits.c -- what a greeting says that the ps takes binds the session, where it is less than its own bounds. */
#include "session_talk.h"

/* A stream of the next generation whose greeting says what this ps takes. */
static void greet_with(struct talk *talk, const wire_limits *limits)
{
    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    talk_hello(talk, 0);
    wire_greeting greeting = WIRE_GREETING_INIT;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = GRANT;
    greeting.limits = (wire_limits *)limits;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.greeting = &greeting;
    talk_answer(talk, 0, &answer);
}

static void no_more_parts_are_under_way_than_the_ps_takes(void **state)
{
    (void)state;
    struct talk talk;
    talk_open(&talk, 1);
    wire_limits limits = WIRE_LIMITS_INIT;
    limits.parts_in_flight_max = 2;
    greet_with(&talk, &limits);

    for (uint64_t token = 1; token <= 3; token++) {
        talk_push_to(&talk, token, 1);
        talk_writable(&talk, 0);
    }
    assert_null(talk_sent(&talk, 0)); /* the third waits */
    talk_done(&talk, 0, 1);

    assert_int_equal(talk_request(&talk, 0)->parts[0]->sequence, 3);
    talk_close(&talk);
}

static void a_part_is_cut_into_messages_that_the_ps_takes(void **state)
{
    (void)state;
    struct talk talk;
    talk_open(&talk, 1);
    wire_limits limits = WIRE_LIMITS_INIT;
    limits.message_bytes_max = 512;
    greet_with(&talk, &limits);
    static uint8_t data[1000];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);

    talk_push(&talk, 1, &piece, 1);

    assert_int_equal(talk_request(&talk, 0)->parts[0]->pieces[0]->bytes, 256);
    assert_false(talk_request(&talk, 0)->parts[0]->last);
    talk_close(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_parts_are_under_way_than_the_ps_takes),
        cmocka_unit_test(a_part_is_cut_into_messages_that_the_ps_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
