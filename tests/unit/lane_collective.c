/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective.c -- rounds of collectives on one ps: what contributions become, how rounds end,
 * and that nothing stays of them. */
#include <math.h>
#include <stdio.h>

#include "lane_collective.h"

#define AGAIN 4u /* a session */

/* ---- what becomes of contributions ---- */

TALK_TEST(all_hear_the_sum_when_the_last_has_come)
{
    struct world world;

    begin(&world, talk);
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
TALK_TEST(it_is_summed_in_the_order_of_the_participants)
{
    struct world world;
    static const float values[] = {0, 1e8f, 1, -1e8f};

    begin(&world, talk);
    world.collective.n_tasks = 3;
    world.shape[0] = 1;
    for (uint8_t i = 3; i > 0; i--)
        come(&world, i, &values[i], sizeof *values);
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "met 1 float32 [1] 0\n");
}

TALK_TEST(a_mean_goes_by_the_weights)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    come_with(&world, 1, 1, 2, 3, 4); /* 1 example */
    world.weight = 0;
    come_with(&world, 2, 9, 9, 9, 9); /* none */
    world.weight = 3;
    come_with(&world, 3, 3, 6, 9, 12);
    talk_forget(world.talk);

    ask(&world, 2);

    talk_expect(world.talk, "met 2 float32 [4] 1 2 3 4\n");
}

/* The weights of a round are its own. */
TALK_TEST(each_mean_is_divided_by_its_own_weights)
{
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    for (uint64_t round = 1; round <= 3; round++) {
        world.collective.round = round;
        for (uint8_t i = 1; i <= 2; i++)
            come_with(&world, i, 1, 2, 3, 4);
        talk_forget(world.talk);

        ask(&world, 1);

        talk_expect(world.talk, "met 1 float32 [4] 1 2 3 4\n");
    }
}

TALK_TEST(a_mean_of_nothing_is_an_error_for_all)
{
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    world.weight = 0;
    come_with(&world, 1, 1, 2, 3, 4);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);

    ask(&world, 1);
    ask(&world, 2);

    talk_expect(world.talk, "pulled 1 error ZERO_WEIGHT\npulled 2 error ZERO_WEIGHT\n");
}

TALK_TEST(the_least_and_the_largest)
{
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MIN;
    come_with(&world, 1, 1, 5, 3, 7);
    come_with(&world, 2, 2, 4, 3, -8);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MAX;
    world.collective.round = 2;
    come_with(&world, 1, 1, 5, 3, 7);
    come_with(&world, 2, 2, 4, 3, -8);
    talk_forget(world.talk);

    ask_for(&world, 1, HERE, 1);
    ask_for(&world, 2, HERE, 2);

    talk_expect(world.talk, "met 1 float32 [4] 1 4 3 -8\nmet 2 float32 [4] 2 5 3 7\n");
}

/* Rows of other workers lie between its own when they are joined along the second axis. */
TALK_TEST(gathered_along_an_axis)
{
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    world.collective.n_tasks = 3;
    world.collective.n_shape = 2;
    world.collective.axis = 1;
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

TALK_TEST(rows_are_concatenated)
{
    struct world world;
    const struct two two = {{7, 5}, {1, 2, 3, 4}};
    const struct one one = {7, {5, 6}};
    const struct three expected = {{7, 5, 7}, {1, 2, 3, 4, 5, 6}};

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_CONCATENATE;
    world.collective.n_shape = 2;
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

TALK_TEST(broadcast_from_the_root)
{
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_BROADCAST;
    world.collective.root = 1;
    come(&world, 1, NULL, 0);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "met 1 float32 [4] 1 2 3 4\n");
}

/* Told in messages of so many bytes. */
static void sum_halves(struct talk *talk, uint32_t pull_chunk_bytes)
{
    struct world world;
    static float values[200000];

    struct lane_config config = talk_config();
    config.staging_bytes_max = UINT64_C(4) << 22;
    config.inline_bytes = config.copied_pull_bytes_max = 0;
    config.pull_chunk_bytes = pull_chunk_bytes;
    begin_with(&world, talk, &config);
    world.collective.data_type = (Sumac__V1__DataType)SUMAC_FLOAT16;
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

/* What comes of a half type is float32, and the result lies where it lay. */
TALK_TEST(a_half_type_is_summed_as_float32) { sum_halves(talk, 0); }

TALK_TEST(it_is_read_from_the_middle_of_what_was_computed_at_once) { sum_halves(talk, 99999); }

TALK_TEST(a_large_one_is_computed_beside_and_lent)
{
    struct world world;
    float values[100], expected[100];
    struct lane_config config = talk_config();

    config.gathered_bytes_max = 8;
    begin_with(&world, talk, &config);
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

TALK_TEST(what_is_half_read_stays_till_it_is_read)
{
    struct world world;
    float values[100] = {0};

    begin(&world, talk);
    world.shape[0] = 100;
    for (uint8_t i = 1; i <= 2; i++)
        come(&world, i, values, sizeof values);
    world.talk->deaf = world.pull[1];
    ask(&world, 1);
    assert_true(world.talk->pulled_bytes < sizeof values);

    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    assert_int_equal(world.talk->lane->rounds.count, 1);
    world.talk->deaf = 0;
    talk_writable(world.talk, world.pull[1]);

    assert_int_equal(world.talk->pulled_bytes, sizeof values);
    expect_nothing_kept(&world);
}

/* One after the other: each is computed from its begin. */
TALK_TEST(two_large_ones_are_computed_beside)
{
    struct world world;
    float values[100];

    begin(&world, talk);
    world.talk->holds_compute = true;
    world.shape[0] = 100;
    for (uint64_t round = 1; round <= 2; round++) {
        world.collective.round = round;
        for (uint32_t i = 0; i < 100; i++)
            values[i] = (float)(round * i);
        for (uint8_t i = 1; i <= 2; i++)
            come(&world, i, values, sizeof values);
    }
    for (uint32_t i = 0; i < 2; i++)
        talk_compute(world.talk);
    world.talk->holds_compute = false;

    ask(&world, 1);

    assert_int_equal(world.talk->pulled_bytes, sizeof values);
    for (uint32_t i = 0; i < 100; i++)
        values[i] *= 2;
    assert_memory_equal(world.talk->pulled, values, sizeof values);
}

TALK_TEST(a_large_one_is_computed_whole_after_a_small_one)
{
    struct world world;
    float values[100], expected[100];

    begin(&world, talk);
    for (uint8_t i = 1; i <= 2; i++)
        come_with(&world, i, 1, 2, 3, 4);
    world.collective.round = 2;
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

TALK_TEST(contributions_that_differ_are_an_error_for_all)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
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
    expect_ends_kept(&world, 1);
    for (uint8_t i = 1; i <= 3; i++)
        leave(&world, i);
    expect_nothing_kept(&world);
}

TALK_TEST(the_time_of_the_first_is_over_for_all)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    world.collective.timeout_ms = 5000;
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
            world.talk, "log ps 1: round 1 of collective h has waited 5 s on ps 1 for worker 2 "
                        "(no push or pull on ps 1 for 5 s)\n"),
        1);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error ROUND_TIMED_OUT\n"), 1);
    talk_forget(world.talk);
    world.talk->shows_logs = false;
    come_with(&world, 2, 1, 2, 3, 4);
    ask(&world, 2);
    assert_int_equal(talk_times_said(world.talk, "pulled 2 error ROUND_TIMED_OUT\n"), 1);
    world.collective.round = 2; /* the next round works */
    for (uint8_t i = 1; i <= 3; i++)
        come_with(&world, i, 1, 2, 3, 4);
    talk_forget(world.talk);
    ask(&world, 1);
    talk_expect(world.talk, "met 1 float32 [4] 3 6 9 12\n");
}

TALK_TEST(who_is_settled_is_not_waited_for)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    talk_close(world.talk, 2);
    talk_forget(world.talk);

    talk_decide(world.talk, 2, 0, 0);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error MEMBER_GONE"), 1);

    world.collective.round = 2; /* it is known to be gone */
    talk_forget(world.talk);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    talk_expect(world.talk, "staged 2\ndone 2 []\npulled 1 error MEMBER_GONE\n");
    acknowledge(&world, 1);
    expect_ends_kept(&world, 2);
    leave(&world, 1);
    expect_nothing_kept(&world);
}

TALK_TEST(what_it_had_contributed_counts_while_another_waits)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    come_with(&world, 2, 1, 2, 3, 4);
    come_with(&world, 3, 1, 2, 3, 4);
    leave(&world, 2);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);

    talk_expect(world.talk, "staged 1\ndone 1 []\nmet 1 float32 [4] 3 6 9 12\n");
    acknowledge(&world, 1);
    acknowledge(&world, 3); /* the other was settled: nobody else may ask */
    expect_nothing_kept(&world);
}

/* Each contribution would take its room until the round's time is over. */
TALK_TEST(a_round_ends_when_all_who_came_have_left)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    world.collective.timeout_ms = UINT32_MAX;
    for (uint8_t i = 1; i <= 2; i++)
        come_with(&world, i, 1, 2, 3, 4);
    leave(&world, 1);
    assert_int_equal(world.talk->lane->rounds.kept_count, 0);
    world.talk->shows_logs = true;
    talk_forget(world.talk);

    leave(&world, 2);

    assert_int_equal(
        talk_times_said(
            world.talk, "log ps 1: round 1 of collective h has failed: no participant that "
                        "contributed to it is left; the session of worker 2 is over"),
        1);
    expect_ends_kept(&world, 1); /* for the third, … */
    world.talk->shows_logs = false;
    talk_forget(world.talk);
    come_with(&world, 3, 1, 2, 3, 4);
    ask(&world, 3);
    talk_expect(world.talk, "staged 1\ndone 1 []\npulled 3 error MEMBER_GONE\n");
    leave(&world, 3); /* … until it has left, too */
    expect_nothing_kept(&world);
}

TALK_TEST(a_round_waits_a_day_at_most)
{
    struct world world;

    begin(&world, talk);
    world.collective.timeout_ms = UINT32_MAX;

    come_with(&world, 1, 1, 2, 3, 4);

    assert_int_equal(
        world.talk->lane->rounds.open.first->until_us - world.talk->lane->now_us, 86400000000u);
}

/* ---- who is waited for ---- */

/* Another attempt at the task of worker 2. */
static void open_again(struct world *world, uint8_t session)
{
    uint8_t id[16];
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    task.job = (char *)(uintptr_t) "worker";
    task.index = 2;
    open.session_id = talk_id(session, id);
    open.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    open.task = &task;
    open.attempt = 2;
    talk_order_of(world->talk, open, &open);
    world->push[session] = talk_push_stream(world->talk, session, 1);
    world->last[session] = 0;
}

/* The others were told, and asked for it no more. */
TALK_TEST(who_joins_anew_and_comes_late_is_told_how_the_round_failed)
{
    struct world world;

    begin(&world, talk);
    leave(&world, 2);
    come_with(&world, 1, 1, 2, 3, 4);
    acknowledge(&world, 1);
    open_again(&world, AGAIN);
    world.pull[AGAIN] = talk_pull_stream(world.talk, AGAIN);
    talk_forget(world.talk);

    come_with(&world, AGAIN, 1, 2, 3, 4);
    ask(&world, AGAIN);

    talk_expect(world.talk, "staged 1\ndone 1 []\npulled 4 error MEMBER_GONE\n");
    acknowledge(&world, AGAIN);
    leave(&world, AGAIN);
    expect_ends_kept(&world, 1); /* yet another attempt may come */
    leave(&world, 1);
    expect_nothing_kept(&world);
}

TALK_TEST(who_comes_late_to_a_round_that_gave_way_is_told_that_it_is_over)
{
    struct world world;

    begin(&world, talk);
    world.collective.timeout_ms = 1;
    for (uint64_t round = 1; round <= ROUNDS_KEPT_OF_NAME_MAX + 2; round++) {
        world.collective.round = round;
        come_with(&world, 1, 1, 2, 3, 4);
        talk_tick(world.talk, 1);
        acknowledge(&world, 1);
    }
    world.collective.timeout_ms = 60000;
    for (uint64_t round = 1; round <= 3; round++) {
        world.collective.round = round;
        talk_forget(world.talk);
        come_with(&world, 2, 1, 2, 3, 4);
        ask(&world, 2);
        assert_int_equal(talk_times_said(world.talk, "pulled 2 error ROUND_OVER\n"), round <= 2);
        assert_int_equal(
            talk_times_said(world.talk, "pulled 2 error ROUND_TIMED_OUT\n"), round > 2);
    }
}

TALK_TEST(who_has_joined_anew_is_waited_for)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_close(world.talk, 2);
    open_again(&world, AGAIN);
    ask(&world, 1);
    talk_decide(world.talk, 2, 0, 0);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);
    talk_forget(world.talk);

    come_with(&world, AGAIN, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 2 4 6 8"), 1);
}

TALK_TEST(so_is_who_is_about_to)
{
    struct world world;
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    cause.kind = (Sumac__V1__CloseCause__Kind)WIRE_CLOSE_NEWER_ATTEMPT;
    talk_close_for(world.talk, 2, &cause);
    talk_decide(world.talk, 2, 0, 0);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);
    open_again(&world, AGAIN);
    talk_forget(world.talk);

    come_with(&world, AGAIN, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 2 4 6 8"), 1);
}

/* The round has its contribution from the attempt before. */
TALK_TEST(another_attempt_that_comes_again_gets_the_result_after_the_others)
{
    struct world world;
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    begin(&world, talk);
    come_with(&world, 2, 1, 2, 3, 4);
    cause.kind = (Sumac__V1__CloseCause__Kind)WIRE_CLOSE_NEWER_ATTEMPT;
    talk_close_for(world.talk, 2, &cause);
    talk_decide(world.talk, 2, 1, 0);
    open_again(&world, AGAIN);
    world.pull[AGAIN] = talk_pull_stream(world.talk, AGAIN);
    come_with(&world, AGAIN, 9, 9, 9, 9);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    acknowledge(&world, 1);
    talk_forget(world.talk);

    ask(&world, AGAIN);

    assert_int_equal(talk_times_said(world.talk, "met 4 float32 [4] 2 4 6 8"), 1);
    acknowledge(&world, AGAIN);
    expect_nothing_kept(&world);
}

/* Behind a push of the same session, which is still computed. */
TALK_TEST(so_is_a_contribution_that_is_on_its_way)
{
    struct world world;
    float values[100] = {0};

    begin(&world, talk);
    talk_variable(world.talk, 5, 100, UPDATE_ASSIGN_ADD);
    world.talk->holds_compute = true;
    talk_part(
        world.talk, world.push[2],
        &(struct talk_part){
            .sequence = 1, .eager = true, .shard = 5, .shards = 1, .values = values, .count = 100});
    world.last[2] = 1;
    come_with(&world, 2, 1, 2, 3, 4);
    talk_close(world.talk, 2);
    talk_decide(world.talk, 2, 2, 0);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);
    talk_forget(world.talk);

    talk_compute(world.talk);

    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 2 4 6 8"), 1);
}

TALK_TEST(that_the_ps_stood_still_is_nobodys_time)
{
    struct world world;

    begin(&world, talk);
    for (uint8_t i = 1; i <= 2; i++) {
        world.collective.round = i;
        world.collective.timeout_ms = i * 2000;
        come_with(&world, i, 1, 2, 3, 4);
        ask(&world, i);
    }
    talk_tick(world.talk, 70000);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);

    talk_tick(world.talk, 2000);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error ROUND_TIMED_OUT"), 1);
    assert_int_equal(talk_times_said(world.talk, "pulled 2"), 0);

    talk_tick(world.talk, 2000);
    assert_int_equal(talk_times_said(world.talk, "pulled 2 error ROUND_TIMED_OUT"), 1);
}

/* One that is over is what it was; whoever waits for one that is open hears at once that it never
 * will be whole. */
TALK_TEST(another_epoch_ends_the_open_rounds)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    world.collective.round = 2;
    come_with(&world, 2, 1, 2, 3, 4);
    ask(&world, 2);
    talk_forget(world.talk);

    talk_hello_of(world.talk, 2);
    const struct rounds *rounds = &world.talk->lane->rounds;
    assert_int_equal(rounds->count, 2);
    for (const struct round *round = rounds->kept.first; round != NULL; round = round->in_list.next)
        assert_int_equal(round->end.status, SUMAC_ABORTED);

    assert_int_equal(talk_times_said(world.talk, "pulled 1 error STATE_LOST"), 1);
    assert_int_equal(talk_times_said(world.talk, "pulled 2 error STATE_LOST"), 1);
    assert_int_equal(talk_times_said(world.talk, "exit 138 STATE_LOST"), 1);
}

TALK_TEST(many_rounds_leave_nothing)
{
    struct world world;

    begin(&world, talk);
    for (uint64_t round = 1; round <= 2000; round++) {
        world.collective.round = round;
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
