/* SPDX-License-Identifier: Apache-2.0 */
/* lane_meet_waits.c -- what ends each wait for a round of a rendezvous if nothing else happens: a
 * row for each, in which only the ticks come that the lane has asked for. No wait ends before its
 * time. And what a ps that terminates waits for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lane_meeting.h"

#define ROUND_MS 300u
#define LATER_MS 700u
#define PULL_MS 120000u /* as `ask` says */
#define AGAIN_MS 1000u  /* a proposal */
#define ANSWER_MS 20u   /* as PATIENT_US of pull_time.c */

/* ps 0 is silent all the time, and is not given up. */
static void begin_patiently(struct world *world, struct talk *talk)
{
    struct lane_config config = talk_config();

    config.ps_lost_ms = config.lease_ms = 4 * PULL_MS;
    begin_with(world, talk, &config);
}

static void come_for(struct world *world, uint8_t session, uint64_t round, uint32_t timeout_ms)
{
    world->meeting.round = round;
    world->meeting.timeout_ms = timeout_ms;
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
    world->meeting.split = true;
    come_with(world, 2, 3, 4);
    assert_int_equal(talk_times_said(world->talk, "report proposes h 1 STEP_DIFFERS"), 1);
}

/* A contribution that is not committed keeps the ps. */
static void the_home_has_proposed_and_is_told_to_terminate(struct world *world)
{
    the_home_has_proposed(world);
    world->meeting.split = false;
    world->meeting.round = 2;
    world->waits = true;
    come_with(world, 1, 1, 2, 3, 4);
    talk_step(world->talk, &(struct lane_event){.kind = LANE_EVENT_TERMINATE});
}

/* Whose time is over before the proposal is said again. */
static void the_home_has_proposed_beside_a_short_round(struct world *world)
{
    the_home_has_proposed(world);
    world->meeting.split = false;
    come_for(world, 1, 2, ROUND_MS);
}

/* What is said of a contribution waits for its round, but not for long. */
static void one_comes_and_asks_beside(struct world *world)
{
    world->asks_beside = true;
    world->meeting.timeout_ms = 2 * PULL_MS;
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

static void every_wait_for_a_round_ends_in_time_by_the_ticks_that_the_lane_asks_for(void **state)
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
static void a_ps_that_terminates_waits_for_what_it_combines(void **state)
{
    struct world world;
    struct talk *const talk = *state;
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
static void a_ps_that_terminates_waits_for_a_result_that_is_half_read(void **state)
{
    struct world world;
    struct talk *const talk = *state;
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
static void a_ps_that_terminates_combines_beside_its_steps(void **state)
{
    struct world world;
    struct talk *const talk = *state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(every_wait_for_a_round_ends_in_time_by_the_ticks_that_the_lane_asks_for),
        talk_test(a_ps_that_terminates_waits_for_what_it_combines),
        talk_test(a_ps_that_terminates_waits_for_a_result_that_is_half_read),
        talk_test(a_ps_that_terminates_combines_beside_its_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
