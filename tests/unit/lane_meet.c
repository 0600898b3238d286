/* SPDX-License-Identifier: Apache-2.0 */
/* lane_meet.c -- rounds of rendezvous on one ps: what contributions become, how rounds end, and
 * that nothing stays of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lane_meeting.h"

/* ---- what becomes of contributions ---- */

static void all_hear_the_sum_when_the_last_has_come(void **state)
{
    struct world world;

    begin(&world, *state);
    ask(&world, 2); /* before anybody has contributed */
    come_with(&world, 2, 1, 2, 3, 4);
    talk_expect(world.talk, "staged 1\ndone 1 []\n");

    come_with(&world, 1, 10, 20, 30, 40);
    ask(&world, 1);

    talk_expect(
        world.talk,
        "staged 1\ndone 1 []\nmet 2 float32 [4] 11 22 33 44\nmet 1 float32 [4] 11 22 33 44\n");
    acknowledge(&world, 1);
    assert_int_equal(world.talk->lane->rounds.count, 1);
    ask(&world, 2); /* again: it was not acknowledged */
    talk_expect(world.talk, "met 2 float32 [4] 11 22 33 44\n");
    acknowledge(&world, 2);
    expect_nothing_kept(&world);
}

/* In order, float32 has 1e8 + 1 - 1e8 = 0, and 1e8 - 1e8 + 1 = 1. */
static void it_is_summed_in_the_order_of_the_participants(void **state)
{
    struct world world;
    static const float values[] = {0, 1e8f, 1, -1e8f};

    begin(&world, *state);
    world.meeting.n_tasks = 3;
    world.shape[0] = 1;
    for (uint8_t i = 3; i > 0; i--)
        come(&world, i, &values[i], sizeof *values);
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "met 1 float32 [1] 0\n");
}

static void a_mean_goes_by_the_weights(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.n_tasks = 3;
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_MEAN;
    come_with(&world, 1, 1, 2, 3, 4); /* 1 example */
    world.weight = 0;
    come_with(&world, 2, 9, 9, 9, 9); /* none */
    world.weight = 3;
    come_with(&world, 3, 3, 6, 9, 12);
    talk_forget(world.talk);

    ask(&world, 2);

    talk_expect(world.talk, "met 2 float32 [4] 1 2 3 4\n");
}

static void a_mean_of_nothing_is_an_error_for_all(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_MEAN;
    world.weight = 0;
    come_with(&world, 1, 1, 2, 3, 4);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);

    ask(&world, 1);
    ask(&world, 2);

    talk_expect(world.talk, "pulled 1 error ZERO_WEIGHT\npulled 2 error ZERO_WEIGHT\n");
}

static void the_least_and_the_largest(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_MIN;
    come_with(&world, 1, 1, 5, 3, 7);
    come_with(&world, 2, 2, 4, 3, -8);
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_MAX;
    world.meeting.round = 2;
    come_with(&world, 1, 1, 5, 3, 7);
    come_with(&world, 2, 2, 4, 3, -8);
    talk_forget(world.talk);

    ask_for(&world, 1, HERE, 1);
    ask_for(&world, 2, HERE, 2);

    talk_expect(world.talk, "met 1 float32 [4] 1 4 3 -8\nmet 2 float32 [4] 2 5 3 7\n");
}

/* Rows of other workers lie between its own when they are joined along the second axis. */
static void gathered_along_an_axis(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_GATHER;
    world.meeting.n_tasks = 3;
    world.meeting.n_shape = 2;
    world.meeting.axis = 1;
    world.shape[0] = 2;
    world.shape[1] = 2;
    come_with(&world, 1, 1, 2, 3, 4);
    world.shape[1] = 0;
    come(&world, 2, NULL, 0);
    world.shape[1] = 3;
    come_with(&world, 3, 5, 6, 7, 8, 9, 10);
    talk_forget(world.talk);

    ask(&world, 2);

    talk_expect(world.talk, "met 2 float32 [2 5] [2 0 3] 1 2 5 6 7 3 4 8 9 10\n");
}

/* Rows by index: indices, then values. */
struct one {
    int64_t index;
    float values[2];
};
struct two {
    int64_t indices[2];
    float values[4];
};
struct three {
    int64_t indices[3];
    float values[6];
};

static void rows_are_concatenated(void **state)
{
    struct world world;
    const struct two two = {{7, 5}, {1, 2, 3, 4}};
    const struct one one = {7, {5, 6}};
    const struct three expected = {{7, 5, 7}, {1, 2, 3, 4, 5, 6}};

    begin(&world, *state);
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_CONCATENATE;
    world.meeting.n_shape = 2;
    world.shape[1] = 2;
    world.shape[0] = 1;
    come(&world, 2, &one, sizeof one);
    world.shape[0] = 2;
    come(&world, 1, &two, sizeof two);
    talk_forget(world.talk);

    ask(&world, 1);

    assert_int_equal(world.talk->pulled_bytes, 3 * (8 + 8));
    assert_memory_equal(world.talk->pulled, &expected, sizeof expected);
}

static void broadcast_from_the_root(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_BROADCAST;
    world.meeting.root = 1;
    come(&world, 1, NULL, 0);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "met 1 float32 [4] 1 2 3 4\n");
}

/* What comes of a half type is float32, and the result lies where it lay. */
static void a_half_type_is_summed_as_float32(void **state)
{
    struct world world;
    static float values[200000];

    struct lane_config config = talk_config();
    config.staging_bytes_max = UINT64_C(4) << 22;
    config.inline_bytes = config.copied_pull_bytes_max = 0;
    config.pull_chunk_bytes = 0;
    begin_with(&world, *state, &config);
    world.meeting.data_type = (Sumac__V1__DataType)SUMAC_FLOAT16;
    world.shape[0] = 200000;
    for (uint32_t i = 0; i < 200000; i++)
        values[i] = (float)(i % 1000);
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);

    ask(&world, 1);

    talk_release(world.talk);
    assert_int_equal(world.talk->pulled_bytes, 2 * 200000);
    for (uint32_t i = 0; i < 200000; i++) {
        _Float16 value;
        memcpy(&value, world.talk->pulled + 2 * i, 2);
        assert_true((float)value == (float)(2 * (i % 1000)));
    }
}

static void a_large_one_is_computed_beside_and_lent(void **state)
{
    struct world world;
    float values[100], expected[100];
    struct lane_config config = talk_config();

    config.gathered_bytes_max = 8;
    begin_with(&world, *state, &config);
    world.shape[0] = 100;
    for (uint32_t i = 0; i < 100; i++) {
        values[i] = (float)i;
        expected[i] = 2 * values[i];
    }
    world.talk->holds_compute = world.talk->holds_released = true;
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);
    ask(&world, 1);
    talk_expect(world.talk, "staged 1\ndone 1 []\nstaged 1\ndone 1 []\n");

    talk_compute(world.talk);

    assert_int_equal(world.talk->pulled_bytes, sizeof expected);
    assert_true(world.talk->pulled_lent > 0);
    assert_memory_equal(world.talk->pulled, expected, sizeof expected);
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    assert_true(world.talk->lane->rounds.beside_bytes >= sizeof expected);
    assert_int_equal(world.talk->lane->rounds.count, 0);
    talk_release(world.talk);
    expect_nothing_kept(&world);
}

static void a_large_one_is_computed_whole_after_a_small_one(void **state)
{
    struct world world;
    float values[100], expected[100];

    begin(&world, *state);
    for (uint8_t i = 1; i <= 2; i++)
        come_with(&world, i, 1, 2, 3, 4);
    world.meeting.round = 2;
    world.shape[0] = 100;
    for (uint32_t i = 0; i < 100; i++) {
        values[i] = (float)i;
        expected[i] = 2 * values[i];
    }
    for (uint8_t i = 1; i <= 2; i++)
        come(&world, i, values, sizeof values);

    ask(&world, 1);

    assert_int_equal(world.talk->pulled_bytes, sizeof expected);
    assert_memory_equal(world.talk->pulled, expected, sizeof expected);
}

/* ---- how rounds end ---- */

static void contributions_that_differ_are_an_error_for_all(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.n_tasks = 3;
    ask(&world, 3);
    come_with(&world, 1, 1, 2, 3, 4);
    world.shape[0] = 2;
    come_with(&world, 2, 1, 2);
    talk_expect(
        world.talk, "staged 1\ndone 1 []\nstaged 1\ndone 1 []\npulled 3 error STEP_DIFFERS\n");

    ask(&world, 1);
    ask(&world, 2);
    world.shape[0] = 4;
    come_with(&world, 3, 1, 2, 3, 4);
    ask(&world, 3);

    talk_expect(
        world.talk,
        "pulled 1 error STEP_DIFFERS\npulled 2 error STEP_DIFFERS\nstaged 1\ndone 1 []\n"
        "pulled 3 error STEP_DIFFERS\n");
    for (uint8_t i = 1; i <= 3; i++)
        acknowledge(&world, i);
    expect_nothing_kept(&world);
}

static void the_time_of_the_first_is_over_for_all(void **state)
{
    struct world world;

    begin(&world, *state);
    world.meeting.n_tasks = 3;
    world.meeting.timeout_ms = 5000;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_tick(world.talk, 3000);
    come_with(&world, 3, 1, 2, 3, 4);
    ask(&world, 1);
    talk_forget(world.talk);
    talk_tick(world.talk, 1999);
    talk_expect(world.talk, "");

    world.talk->shows_logs = true;
    talk_tick(world.talk, 1);

    assert_int_equal(
        talk_times_said(
            world.talk, "log ps 1: round 1 of rendezvous h has waited 5 s on ps 1 for worker 2 "
                        "(last heard from 5 s ago)\n"),
        1);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error TIMED_OUT\n"), 1);
    talk_forget(world.talk);
    world.talk->shows_logs = false;
    come_with(&world, 2, 1, 2, 3, 4);
    ask(&world, 2);
    assert_int_equal(talk_times_said(world.talk, "pulled 2 error TIMED_OUT\n"), 1);
    world.meeting.round = 2; /* the next round works */
    for (uint8_t i = 1; i <= 3; i++)
        come_with(&world, i, 1, 2, 3, 4);
    talk_forget(world.talk);
    ask(&world, 1);
    talk_expect(world.talk, "met 1 float32 [4] 3 6 9 12\n");
}

static void who_is_settled_is_not_waited_for(void **state)
{
    struct world world;

    begin(&world, *state);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    talk_close(world.talk, 2);
    talk_forget(world.talk);

    talk_decide(world.talk, 2, 0, 0);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error MEMBER_GONE"), 1);

    world.meeting.round = 2; /* it is known to be gone */
    talk_forget(world.talk);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    talk_expect(world.talk, "staged 2\ndone 2 []\npulled 1 error MEMBER_GONE\n");
    acknowledge(&world, 1);
    expect_nothing_kept(&world);
}

static void what_it_had_contributed_counts(void **state)
{
    struct world world;

    begin(&world, *state);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_close(world.talk, 2);
    talk_decide(world.talk, 2, 1, 0);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);

    talk_expect(world.talk, "staged 1\ndone 1 []\nmet 1 float32 [4] 2 4 6 8\n");
    acknowledge(&world, 1); /* the other was settled: nobody else may ask */
    expect_nothing_kept(&world);
}

/* ---- what is refused ---- */

static void expect_refused(struct world *world, const char *reason, const char *words)
{
    char line[96];

    const unsigned sequence = (unsigned)world->last[1];
    (void)snprintf(
        line, sizeof line, "refused %u %s\ndone %u voided\n", sequence, reason, sequence);
    talk_expect(world->talk, line);
    if (strstr(world->talk->refused, words) == NULL)
        fail_msg("%s: %s", words, world->talk->refused);
    talk_forget(world->talk);
}

static void what_is_wrong_with_it_refuses_the_part(void **state)
{
    struct world world;
    static const float four[] = {1, 2, 3, 4}, odd[] = {1, NAN, 3, 4};

    begin(&world, *state);
    come(&world, 1, four, 12);
    expect_refused(&world, "MALFORMED", "declares 12 bytes for round 1 of rendezvous h");
    come(&world, 1, odd, sizeof odd);
    expect_refused(&world, "NON_FINITE", "is not finite");
    world.meeting.name = (wire_bytes){.len = 1, .data = (uint8_t *)(uintptr_t) "g"};
    come(&world, 1, four, sizeof four);
    expect_refused(&world, "MALFORMED", "by its name it is at home on ps 0");
    world.meeting.name.data = (uint8_t *)(uintptr_t)HERE;
    world.meeting.tasks = &world.tasks[1];
    come(&world, 1, four, sizeof four);
    expect_refused(&world, "MALFORMED", "is none of the 2 tasks");
    world.meeting.tasks = world.tasks;
    world.meeting.operation = SUMAC__V1__MEETING__OPERATION__OPERATION_MEAN;
    world.weight = -1;
    come(&world, 1, four, sizeof four);
    expect_refused(&world, "MALFORMED", "has weight -1");
    expect_nothing_kept(&world);
}

static void a_task_contributes_once(void **state)
{
    struct world world;

    begin(&world, *state);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);

    expect_refused(&world, "ALREADY_EXISTS", "push 1 has done so");
}

/* They have their room, and their rounds are entered when their turn comes. */
static void of_one_name_a_session_has_so_many_that_wait_for_their_turn(void **state)
{
    struct world world;
    struct lane_config config = talk_config();

    config.staging_bytes_max = UINT64_C(4) << 22;
    begin_with(&world, *state, &config);
    world.waits = true;
    for (world.meeting.round = 1; world.meeting.round <= ROUNDS_OF_NAME_MAX; world.meeting.round++)
        come_with(&world, 1, 1, 2, 3, 4);
    assert_int_equal(talk_times_said(world.talk, "refused"), 0);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "refused 65 BUSY"), 1);
    assert_non_null(strstr(world.talk->refused, "64 of its contributions are to rounds"));
    world.meeting.name = (wire_bytes){.len = 1, .data = (uint8_t *)(uintptr_t) "j"};
    talk_forget(world.talk);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_expect(world.talk, "staged 66\n");
}

static void what_finds_no_room_is_refused(void **state)
{
    struct world world;
    struct lane_config config = talk_config();

    config.meet_bytes_max = 4096;
    begin_with(&world, *state, &config);
    come_with(&world, 1, 1, 2, 3, 4);
    world.meeting.round = 2;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_forget(world.talk);
    world.meeting.round = 3;

    come_with(&world, 1, 1, 2, 3, 4);

    expect_refused(&world, "OUT_OF_MEMORY", "of at most 4096 (--meet-max)");
    acknowledge(&world, 1); /* they are open: nothing is given back yet */
    assert_int_equal(world.talk->lane->rounds.count, 2);
}

static void a_stranger_hears_nothing(void **state)
{
    struct world world;

    begin(&world, *state);
    come_with(&world, 1, 1, 2, 3, 4);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);

    ask(&world, 3);

    talk_expect(world.talk, "pulled 3 error MALFORMED\n");
}

static void many_rounds_leave_nothing(void **state)
{
    struct world world;

    begin(&world, *state);
    for (uint64_t round = 1; round <= 2000; round++) {
        world.meeting.round = round;
        for (uint8_t i = 1; i <= 2; i++)
            come_with(&world, i, 1, 2, 3, 4);
        for (uint8_t i = 1; i <= 2; i++) {
            ask(&world, i);
            acknowledge(&world, i);
        }
        assert_int_equal(talk_times_said(world.talk, "met 2 float32 [4] 2 4 6 8"), 1);
        talk_forget(world.talk);
    }
    expect_nothing_kept(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(all_hear_the_sum_when_the_last_has_come),
        talk_test(it_is_summed_in_the_order_of_the_participants),
        talk_test(a_mean_goes_by_the_weights),
        talk_test(a_mean_of_nothing_is_an_error_for_all),
        talk_test(the_least_and_the_largest),
        talk_test(gathered_along_an_axis),
        talk_test(rows_are_concatenated),
        talk_test(broadcast_from_the_root),
        talk_test(a_half_type_is_summed_as_float32),
        talk_test(a_large_one_is_computed_beside_and_lent),
        talk_test(a_large_one_is_computed_whole_after_a_small_one),
        talk_test(contributions_that_differ_are_an_error_for_all),
        talk_test(the_time_of_the_first_is_over_for_all),
        talk_test(who_is_settled_is_not_waited_for),
        talk_test(what_it_had_contributed_counts),
        talk_test(what_is_wrong_with_it_refuses_the_part),
        talk_test(a_task_contributes_once),
        talk_test(of_one_name_a_session_has_so_many_that_wait_for_their_turn),
        talk_test(what_finds_no_room_is_refused),
        talk_test(a_stranger_hears_nothing),
        talk_test(many_rounds_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
