/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective_waits.c -- what ends each wait for a round of a collective if nothing else
 * happens: a row for each, in which only the ticks come that the lane has asked for. No wait ends
 * before its time. And what a ps that terminates waits for.
 */
#include <stdio.h>

#include "lane_collective.h"

#define ROUND_MS 300u
#define LATER_MS 700u
#define PULL_MS 120000u /* as `ask` says */
#define AGAIN_MS 1000u  /* a proposal */
#define ANSWER_MS 20u   /* as PATIENT_US of pull_waits.c */

/* ps 0 is silent all the time, and is not given up. */
static void begin_patiently(struct world *world, struct talk *talk)
{
    struct lane_config config = talk_config();

    config.ps_lost_ms = config.lease_ms = 4 * PULL_MS;
    begin_with(world, talk, &config);
}

static void come_for(struct world *world, uint8_t session, uint64_t round, uint32_t timeout_ms)
{
    world->collective.round = round;
    world->collective.timeout_ms = timeout_ms;
    come_with(world, session, 1, 2, 3, 4);
    ask(world, session);
}

static void one_comes(struct world *world) { come_for(world, 1, 1, ROUND_MS); }

static void one_comes_for_long_and_the_next_round_is_short(struct world *world)
{
    come_for(world, 1, 1, 2 * PULL_MS);
    come_for(world, 2, 2, ROUND_MS);
}

/* The time of the first is over before. */
static void the_later_of_two_rounds(struct world *world)
{
    come_for(world, 1, 1, ROUND_MS);
    come_for(world, 2, 2, LATER_MS);
}

static void one_comes_for_longer_than_its_pull_waits(struct world *world)
{
    come_for(world, 1, 1, 2 * PULL_MS);
}

static void one_asks_for_what_nobody_comes_to(struct world *world) { ask(world, 1); }

static void the_home_has_proposed(struct world *world)
{
    come_for(world, 1, 1, 2 * PULL_MS);
    world->collective.split = true;
    come_with(world, 2, 3, 4);
    assert_int_equal(talk_times_said(world->talk, "report proposes h 1 STEP_DIFFERS"), 1);
}

/* A contribution that is not committed keeps the ps. */
static void the_home_has_proposed_and_is_told_to_terminate(struct world *world)
{
    the_home_has_proposed(world);
    world->collective.split = false;
    world->collective.round = 2;
    world->waits = true;
    come_with(world, 1, 1, 2, 3, 4);
    talk_step(world->talk, &(struct lane_event){.kind = LANE_EVENT_TERMINATE});
}

/* Whose time is over before the proposal is said again. */
static void the_home_has_proposed_beside_a_short_round(struct world *world)
{
    the_home_has_proposed(world);
    world->collective.split = false;
    come_for(world, 1, 2, ROUND_MS);
}

/* What is said of a contribution waits for its round, but not for long. */
static void one_comes_and_asks_beside(struct world *world)
{
    world->asks_beside = true;
    world->collective.timeout_ms = 2 * PULL_MS;
    come_with(world, 1, 1, 2, 3, 4);
}

static const struct wait {
    const char *name;
    void (*begin)(struct world *world);
    const char *ends_with;
    uint32_t ms;
} waits[] = {
    {"a round", one_comes, "pulled 1 error ROUND_TIMED_OUT", ROUND_MS},
    {"a short round beside a long one", one_comes_for_long_and_the_next_round_is_short,
     "pulled 2 error ROUND_TIMED_OUT", ROUND_MS},
    {"the later of two", the_later_of_two_rounds, "pulled 2 error ROUND_TIMED_OUT", LATER_MS},
    {"a pull of a long round", one_comes_for_longer_than_its_pull_waits, "pulled 1 error TIMED_OUT",
     PULL_MS},
    {"a pull of no round", one_asks_for_what_nobody_comes_to, "pulled 1 error TIMED_OUT", PULL_MS},
    {"a proposal without an order", the_home_has_proposed, "report proposes h 1 STEP_DIFFERS",
     AGAIN_MS},
    {"a proposal of a ps that terminates", the_home_has_proposed_and_is_told_to_terminate,
     "report proposes h 1 STEP_DIFFERS", AGAIN_MS},
    {"a proposal beside a short round", the_home_has_proposed_beside_a_short_round,
     "report proposes h 1 STEP_DIFFERS", AGAIN_MS},
    {"an answer beside a round", one_comes_and_asks_beside, "done 1 []", ANSWER_MS},
    {"a pull beside a contribution", one_comes_and_asks_beside, "beside pulled 1 error TIMED_OUT",
     PULL_MS},
};

STATE_TEST(
    every_wait_for_a_round_ends_in_time_by_the_ticks_that_the_lane_asks_for, talk_setup,
    talk_teardown)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct wait *wait = &waits[i];
        struct world world;

        if (i > 0)
            assert_int_equal(talk_setup(state), 0);
        begin_patiently(&world, *state); /* given */
        wait->begin(&world);
        const uint64_t end_us = world.talk->now_us + 1000 * (uint64_t)wait->ms;
        talk_forget(world.talk);
        const bool ends = talk_says_in_time(world.talk, wait->ends_with, end_us); /* when */

        if (!ends) /* then */
            fail_msg("%s: it goes on after %u ms", wait->name, wait->ms);
        if (world.talk->now_us < end_us)
            fail_msg("%s: it ends after less than %u ms", wait->name, wait->ms);
        if (i + 1 < sizeof waits / sizeof *waits)
            assert_int_equal(talk_teardown(state), 0);
    }
}

/* The round was whole before, and its result is vector work. */
TALK_TEST(a_ps_that_terminates_waits_for_what_it_combines)
{
    struct world world;
    float values[100] = {1};

    begin(&world, talk); /* given */
    world.shape[0] = 100;
    talk->holds_compute = true;
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);
    ask(&world, 1);
    talk_forget(talk);

    talk_step(talk, &(struct lane_event){.kind = LANE_EVENT_TERMINATE}); /* when */
    talk_expect(talk, "");
    talk_compute(talk);

    assert_int_equal(talk->pulled_bytes, sizeof values); /* then */
    assert_non_null(strstr(talk->text, "exit 143 TERMINATED"));
}

/* One message of it is out, and the next waits for its reader. */
TALK_TEST(a_ps_that_terminates_waits_for_a_result_that_is_half_read)
{
    struct world world;
    float values[100] = {1};

    begin(&world, talk); /* given */
    world.shape[0] = 100;
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);
    talk->deaf = world.pull[1];
    ask(&world, 1);
    talk_forget(talk);

    talk_step(talk, &(struct lane_event){.kind = LANE_EVENT_TERMINATE}); /* when */
    talk_expect(talk, "");
    talk->deaf = 0;
    talk_writable(talk, world.pull[1]);

    assert_int_equal(talk->pulled_bytes, sizeof values); /* then */
    assert_non_null(strstr(talk->text, "exit 143 TERMINATED"));
}

/* A round may be large: no step does all of it, also of a ps that terminates. */
TALK_TEST(a_ps_that_terminates_combines_beside_its_steps)
{
    struct world world;
    float values[100] = {1};

    begin(&world, talk); /* given */
    world.shape[0] = 100;
    world.waits = true;
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);
    talk_step(talk, &(struct lane_event){.kind = LANE_EVENT_TERMINATE});
    ask(&world, 1);
    talk_commit(talk, world.push[1], 1, 0, 0);
    talk_forget(talk);

    talk_commit(talk, world.push[2], 1, 0, 0); /* when */

    assert_int_equal(talk->computes, 1); /* then */
    assert_int_equal(talk->pulled_bytes, sizeof values);
    assert_non_null(strstr(talk->text, "exit 143 TERMINATED"));
}

/* The records of both are compared with the lane at the end. The contribution that the round is
 * combined in is the last that comes. */
TALK_TEST(records_of_a_small_round_are_of_what_came)
{
    struct lane_config config = talk_config();
    struct world world;

    config.records = true;
    begin_with(&world, talk, &config);
    come_with(&world, 2, 10, 20, 30, 40);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_recorded(talk);
    talk_tick(talk, 0);
    ask(&world, 1);
    talk_recorded(talk);

    assert_int_equal(talk_times_said(talk, "met 1 float32 [4] 11 22 33 44"), 1);
    struct lane *const again = talk_replayed(talk); /* then */
    const struct round *const round = talk->lane->rounds.over.first;
    const struct round *const made = again->rounds.over.first;
    uint64_t together;
    assert_memory_equal(
        lane_contribution_bytes(round->places[0].contribution, 0, &together),
        lane_contribution_bytes(made->places[0].contribution, 0, &together), 4 * sizeof(float));
    lane_destroy(again);
}

/* The first round's vector work is out, and the second is small enough for a step. */
TALK_TEST(a_small_round_waits_for_the_large_one_before_it)
{
    struct world world;
    float values[100] = {1};

    begin(&world, talk); /* given */
    world.shape[0] = 100;
    talk->holds_compute = true;
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);
    world.shape[0] = 4;
    world.collective.round = 2;
    come_with(&world, 1, 1, 2, 3, 4);
    come_with(&world, 2, 1, 2, 3, 4);
    ask(&world, 1);
    assert_int_equal(talk_times_said(talk, "met"), 0);

    talk_compute(talk); /* when */
    talk_compute(talk);

    assert_int_equal(talk_times_said(talk, "met 1 float32 [4] 2 4 6 8"), 1); /* then */
    talk->holds_compute = false;
}

/* The end is of this ps alone: a ps that starts again reads it in the records. */
TALK_TEST(a_round_that_timed_out_is_over_by_its_records)
{
    struct lane_config config = talk_config();
    struct world world;

    config.records = true;
    begin_with(&world, talk, &config);
    world.collective.timeout_ms = 300;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_tick(talk, 300);
    talk_recorded(talk);
    assert_null(talk->lane->rounds.open.first);

    struct lane *const again = talk_replayed(talk);

    assert_null(again->rounds.open.first);
    lane_destroy(again);
}

/* A contribution to a collective has no update function. */
static void name_a_function(wire_part *header, wire_piece *piece)
{
    (void)header;
    piece->function = 1;
}

TALK_TEST(a_contribution_with_a_function_is_refused)
{
    struct world world;

    begin(&world, talk);
    world.spoil = name_a_function;

    come_with(&world, 1, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "refused 1 MALFORMED"), 1);
    expect_nothing_kept(&world);
}

/* A message of the answer ends within a row of a participant. */
TALK_TEST(long_rows_that_are_gathered_go_on_in_the_next_message)
{
    enum { columns = 20, rows = 2 };
    struct world world;
    float ones[rows * columns], twos[rows * columns], result[2 * rows * columns];

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    world.collective.n_shape = 2;
    world.collective.axis = 1;
    world.shape[0] = rows;
    world.shape[1] = columns;
    for (int i = 0; i < rows * columns; i++) {
        ones[i] = (float)(100 + i);
        twos[i] = (float)(200 + i);
    }
    come(&world, 1, ones, sizeof ones);
    come(&world, 2, twos, sizeof twos);

    ask(&world, 1);

    assert_int_equal(talk->pulled_bytes, sizeof result);
    memcpy(result, talk->pulled, sizeof result);
    for (int row = 0; row < rows; row++) {
        assert_memory_equal(
            &result[2 * row * columns], &ones[row * columns], columns * sizeof *result);
        assert_memory_equal(
            &result[(2 * row + 1) * columns], &twos[row * columns], columns * sizeof *result);
    }
}

/* A pull of a round waits for another participant, and then for the vector work. */
TALK_TEST(the_statistics_say_what_a_pull_of_a_round_waits_for)
{
    struct world world;
    float values[100] = {1};

    begin(&world, talk);
    ask_for(&world, 3, HERE, 7);
    world.shape[0] = 100;
    talk->holds_compute = true;
    come(&world, 1, values, sizeof values);
    ask(&world, 1);
    talk->now_us += 2000000;

    const wire_stats_reply *stats = talk_stats(talk);
    assert_int_equal(stats->n_waits, 2);
    assert_true(stats->memory->collective_bytes >= sizeof values);
    for (size_t i = 0; i < 2; i++) {
        const bool of_7 = strstr(stats->waits[i], "round 7 of") != NULL;
        assert_non_null(strstr(
            stats->waits[i],
            of_7 ? "has contributed on ps 1" : "which waits on ps 1 for worker 2"));
    }

    come(&world, 2, values, sizeof values);
    talk->now_us += 2000000;
    stats = talk_stats(talk);
    assert_int_equal(stats->n_waits, 2);
    assert_true(
        strstr(stats->waits[0], "waits on ps 1 for its result") != NULL ||
        strstr(stats->waits[1], "waits on ps 1 for its result") != NULL);
    talk->holds_compute = false;
    talk_compute(talk);
}

/* Worker 2 may yet join. */
TALK_TEST(that_another_task_has_left_ends_no_round)
{
    const struct lane_config config = talk_config();
    struct world world;

    begin_empty(&world, talk, &config);
    for (uint8_t session = 1; session <= 3; session += 2) {
        talk_open(talk, session);
        world.push[session] = talk_push_stream(talk, session, 1);
        world.pull[session] = talk_pull_stream(talk, session);
    }
    leave(&world, 3);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    talk_tick(talk, 1000);
    assert_int_equal(talk_times_said(talk, "pulled 1 error"), 0);

    talk_open(talk, 2);
    world.push[2] = talk_push_stream(talk, 2, 1);
    come_with(&world, 2, 10, 20, 30, 40);

    assert_int_equal(talk_times_said(talk, "met 1 float32 [4] 11 22 33 44\n"), 1);
}

TALK_TEST(nor_does_one_that_leaves_meanwhile)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);

    leave(&world, 3);

    come_with(&world, 2, 10, 20, 30, 40);
    ask(&world, 1);
    assert_int_equal(talk_times_said(talk, "met 1 float32 [4] 11 22 33 44\n"), 1);
}

/* The round is over with the first of them. */
TALK_TEST(who_comes_after_several_have_left_hears_that_one_is_gone)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    for (uint8_t i = 2; i <= 3; i++)
        leave(&world, i);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_forget(talk);

    ask(&world, 1);

    talk_expect(talk, "pulled 1 error MEMBER_GONE\n");
    assert_non_null(strstr(talk->refused, "worker 2 did not contribute"));
}

TALK_TEST(weights_do_not_matter_for_a_sum)
{
    struct world world;

    begin(&world, talk);
    for (world.collective.round = 1; world.collective.round <= 2; world.collective.round++) {
        world.weight = world.collective.round == 1 ? 0 : 1e-300; /* no mean is divided by these */
        for (uint8_t i = 1; i <= 2; i++)
            come_with(&world, i, 1, 2, 3, 4);
        talk_forget(talk);

        ask(&world, 1);

        talk_expect(talk, "met 1 float32 [4] 2 4 6 8\n");
    }
}

static void allow_any(wire_part *header, wire_piece *piece)
{
    (void)piece;
    header->allow_non_finite = true;
}

TALK_TEST(what_is_not_finite_meets_where_that_is_allowed)
{
    struct world world;

    begin(&world, talk);
    world.spoil = allow_any;
    come_with(&world, 1, __builtin_inff(), 2, 3, 4);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(talk);

    ask(&world, 1);

    talk_expect(talk, "met 1 float32 [4] inf 4 6 8\n");
}

/* A chief has the same index. */
TALK_TEST(a_wait_says_where_a_task_that_has_never_joined_is_expected)
{
    static const char *const jobs[] = {"worker", "worker", "chief"};
    static const uint32_t indices[] = {2, 1, 2};
    static const char *const addresses[] = {"w:2", "w:1", "c:2"};
    struct lane_config config = talk_config();
    struct world world;

    config.members_jobs = jobs;
    config.members_indices = indices;
    config.members_addresses = addresses;
    config.member_count = 3;
    begin_empty(&world, talk, &config);
    talk_open(talk, 1);
    world.push[1] = talk_push_stream(talk, 1, 1);
    world.pull[1] = talk_pull_stream(talk, 1);
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    talk_tick(talk, 2000);

    const wire_stats_reply *const stats = talk_stats(talk);

    assert_int_equal(stats->n_waits, 1);
    assert_non_null(
        strstr(stats->waits[0], "for worker 2 (at w:2, never joined); start each missing task"));
}
