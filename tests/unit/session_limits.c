/* SPDX-License-Identifier: Apache-2.0 */
/* session_limits.c -- what a session may take: of a ps, as its greeting says, where that is less
 * than its own bounds; and of memory. */
#include "session_talk.h"

/* A stream of the next generation whose greeting says what this ps takes. */
static void greet_with(struct talk *talk, const wire_limits *limits)
{
    talk_broke(talk, 0, SESSION_PUSH_STREAM);
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
        talk_push_out(&talk, token, 1);
    }
    assert_null(talk_sent(&talk, 0)); /* the third waits */
    talk_done(&talk, 0, 1);

    assert_int_equal(talk_request(&talk, 0)->parts[0]->sequence, 3);
    talk_close(&talk);
}

/* Each may be refused, and the ps has to remember it until it hears that we know. */
static void no_more_pushes_are_in_flight_than_the_ps_can_remember_as_refused(void **state)
{
    (void)state;
    struct talk talk;

    talk_open(&talk, 1);
    wire_limits limits = WIRE_LIMITS_INIT;
    limits.voided_max = 2;
    greet_with(&talk, &limits);

    for (uint64_t token = 1; token <= 3; token++) {
        talk_push_out(&talk, token, 1);
    }
    assert_null(talk_sent(&talk, 0)); /* the third waits */
    talk_done(&talk, 0, 1);

    const wire_push_request *request = talk_request(&talk, 0);
    assert_int_equal(request->parts[0]->sequence, 3);
    assert_int_equal(request->commit->acked_through, 1);
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

/* ---- memory */

static size_t budget_bytes;

static void *take_some(void *context, size_t bytes)
{
    (void)context;
    if (bytes > budget_bytes)
        return NULL;
    budget_bytes -= bytes;
    return memory_heap.take(memory_heap.context, bytes);
}

static void give_all(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_heap.give(memory_heap.context, data, bytes);
}

/* Did it end in the last step for want of memory? */
static bool ended_exhausted(const struct talk *talk)
{
    const struct session_effect *end = talk_find(talk, SESSION_EFFECT_ENDED);

    return end != NULL && end->error.reason == SUMAC_REASON_OUT_OF_MEMORY;
}

/* Opened as far as memory goes. True: it has ended on the way. */
static bool open_exhausted(struct talk *talk)
{
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    bool is_over = ended_exhausted(talk);
    talk_known(talk, 0);
    is_over = is_over || ended_exhausted(talk);
    talk_joined(talk, 1);
    is_over = is_over || ended_exhausted(talk);
    talk_writable(talk, 0);
    is_over = is_over || ended_exhausted(talk);
    talk_writable(talk, 0);
    is_over = is_over || ended_exhausted(talk);
    talk_greet(talk, 0);
    return is_over || ended_exhausted(talk);
}

/* That is said once, and whoever pushes later is answered. */
static void a_session_without_memory_ends_and_says_so(void **state)
{
    (void)state;
    const struct memory scarce = {.take = take_some, .give = give_all};
    const struct session_config config = talk_member(1);
    bool ended = false, refused = false, refused_later = false;

    for (size_t budget = 0; budget < 600000; budget += 3001) {
        budget_bytes = budget;
        struct talk talk = {.now_us = 1000};
        talk.session = session_create(&config, &scarce);
        if (talk.session == NULL)
            continue;
        bool is_over = open_exhausted(&talk);
        for (uint64_t n = 1; n < 200; n++) {
            talk_push_to(&talk, n, 1);
            const struct session_effect *pushed = talk_find(&talk, SESSION_EFFECT_PUSHED);
            if (is_over) {
                assert_false(ended_exhausted(&talk));
                assert_non_null(pushed);
                assert_int_equal(pushed->token, n);
                assert_int_equal(pushed->error.reason, SUMAC_REASON_OUT_OF_MEMORY);
                refused_later = true;
            }
            is_over = is_over || ended_exhausted(&talk);
            refused =
                refused || (pushed != NULL && pushed->error.reason == SUMAC_REASON_OUT_OF_MEMORY);
        }
        ended = ended || is_over;
        talk_close(&talk);
    }
    assert_true(ended);
    assert_true(refused);
    assert_true(refused_later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_parts_are_under_way_than_the_ps_takes),
        cmocka_unit_test(no_more_pushes_are_in_flight_than_the_ps_can_remember_as_refused),
        cmocka_unit_test(a_part_is_cut_into_messages_that_the_ps_takes),
        cmocka_unit_test(a_session_without_memory_ends_and_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
