/* SPDX-License-Identifier: Apache-2.0 */
/* controller_waits.c -- what ends each wait of the controller if nothing else happens: a row for
 * each, in which only the ticks come that the controller has asked for, and what the ps answer. No
 * wait ends before its time.
 */
#include <string.h>

#include "controller_two.h"

/* The controller asks for a tick each second, and notices a time that is over up to a second late.
 * For what ends sooner it asks for a tick of its own. */
#define TICK_MS 1000u
#define SHORT_MS 300u
#define TICKS_MAX 1000u /* of one wait: a controller that asks for more of them spins */

static struct world *have_two(void)
{
    struct two two = two_workers();

    return two.world;
}

/* Nobody answers from here on. */
static struct world *let_all_be_mute(struct world *world)
{
    for (uint32_t ps = 0; ps < WORLD_PS_MAX; ps++)
        world->ps[ps].mute = true;
    return world;
}

static struct world *wait_for_the_first_join(void) { return world_new(2, 2); }

static struct world *join_without_a_ps(void)
{
    struct world *world = world_new(2, 2);

    world_join(world, "worker", 0, 1);
    return world;
}

static struct world *observe_without_a_ps(void)
{
    struct world *world = world_new(2, 0);

    world_join(world, NULL, 0, 1);
    return world;
}

static struct world *be_refused_by_a_ps(void)
{
    struct world *world = world_new(2, 2);

    world->ps[1].refuses = "another cluster";
    world_all_up(world);
    world_join(world, "worker", 0, 1);
    return world;
}

static struct world *lose_a_stream(void)
{
    struct world *world = have_two();

    world_down(world, 1);
    return world;
}

static struct world *have_orders_unanswered(void)
{
    struct world *world = let_all_be_mute(have_two());

    world_leave(world, 1, false);
    world_settle_down(world);
    return world;
}

static struct world *join_one_of_two(void)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    return world;
}

/* Its lease is longer than the wait. */
static struct world *stay_without_the_other(void)
{
    struct world *world = world_prepare(2, 2);

    world->config.lease_ms = 300000;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    return world;
}

static struct world *all_leave_undone(void)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    for (uint32_t session = 1; session <= 2; session++)
        world_leave(world, session, false);
    world_settle_down(world);
    return world;
}

static struct world *one_leaves_undone(void)
{
    struct world *world = join_one_of_two();

    world_leave(world, 1, false);
    world_settle_down(world);
    return world;
}

static struct world *come_to_a_barrier(void)
{
    struct world *world = have_two();

    world_come(
        world, 1,
        &(struct world_arrival){
            .name = "epoch",
            .workers = (const uint32_t[]){0, 1, UINT32_MAX},
            .timeout_ms = SHORT_MS});
    return world;
}

/* The time is longer than the lease of other rows. */
static struct world *come_to_a_barrier_without_a_time(void)
{
    struct world *world = stay_without_the_other();
    const uint32_t both[] = {0, 1, UINT32_MAX};

    world_come(world, 1, &(struct world_arrival){.name = "epoch", .workers = both});
    return world;
}

static struct world *create(void)
{
    struct world *world = let_all_be_mute(have_two());
    struct definition definition;

    define(&definition, "w");
    world_create(world, 1, &definition.variable, SHORT_MS);
    return world;
}

static struct world *define_a_function(void)
{
    struct world *world = let_all_be_mute(have_two());

    world_define(world, 1, "half", "value = value / 2");
    return world;
}

static struct world *delete_what_is_there(void)
{
    struct world *world = have_two();
    struct two two = {.world = world, .first = 1};
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;
    struct definition definition;

    define(&definition, "w");
    created(&two, &definition);
    world_report_assigned(world, 0, 1);
    let_all_be_mute(world);
    request.session_id = (wire_bytes){16, world->sessions[0]};
    request.name = (char *)(uintptr_t) "w";
    request.timeout_ms = SHORT_MS;
    world_ask(world, LANE_CALL_DELETE, &request.base);
    return world;
}

/* Worker 0 has come to step 1, and makes a quorum without worker 1. */
static struct world *have_a_quorum(void)
{
    struct world *world = world_prepare(2, 2);

    world->config.step_quorum = 1;
    world->config.step_deadline_ms = SHORT_MS;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    for (uint32_t ps = 0; ps < 2; ps++)
        world_report_come(world, ps, 1, 1, false);
    return world;
}

/* It answers again, but there is no memory: it is asked once more. */
static struct world *have_no_memory_to_close(void)
{
    struct world *world = have_two();

    world->ps[1].out_of_memory = true;
    world_leave(world, 1, false);
    world_settle_down(world);
    world->ps[1].out_of_memory = false;
    return world;
}

static struct world *terminate_while_one_leaves(void)
{
    struct world *world = have_orders_unanswered();

    world_terminate(world);
    return world;
}

/* All are done, and ps 1 does not say that it has ended. */
static struct world *end_without_an_answer(void)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world->ps[1].never_ends = true;
    world_leave(world, 1, true);
    world_settle_down(world);
    return world;
}

/* ps 1 is lost, and ps 2 does not say that it has ended. */
static struct world *end_badly_without_an_answer(void)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    world->ps[2].never_ends = true;
    world_joined(world, "worker", 0, 1);
    world_ended(world, 1, SUMAC_REASON_PS_MISSING, "its disk is full");
    world_settle_down(world);
    return world;
}

static const struct wait {
    const char *name;
    struct world *(*begin)(void);
    const char *ends_with; /* in the transcript or the log */
    uint32_t ms;
} waits[] = {
    {"a line for the first join", wait_for_the_first_join, "waits for the first join", 5000},
    {"a member's join without a ps", join_without_a_ps, "did not appear within 60 s", 60000},
    {"an observer's join without a ps", observe_without_a_ps, "UNAVAILABLE PS_MISSING", 60000},
    {"a ps that refuses its hello", be_refused_by_a_ps, "did not appear within 60 s", 60000},
    {"a stream that is gone", lose_a_stream, "is lost with its state", 60000},
    {"orders without an answer", have_orders_unanswered, "is lost with its state", 60000},
    {"a member's lease", join_one_of_two, "close 1: its lease ran out", 10000},
    {"a member that never joins", stay_without_the_other, "worker 1 never joined", 60000},
    {"members that come back", all_leave_undone, "no worker has been in the run for 10 s", 10000},
    {"a first join of another", one_leaves_undone, "no worker has been in the run for 60 s", 60000},
    {"a round of a barrier", come_to_a_barrier, "DEADLINE_EXCEEDED ROUND_TIMED_OUT", SHORT_MS},
    {"a round that names no time", come_to_a_barrier_without_a_time, "ROUND_TIMED_OUT", 60000},
    {"a create", create, "DEADLINE_EXCEEDED", SHORT_MS},
    {"a define", define_a_function, "DEADLINE_EXCEEDED", 5000},
    {"a delete", delete_what_is_there, "DEADLINE_EXCEEDED", SHORT_MS},
    {"a step's deadline", have_a_quorum, "take step 1", SHORT_MS},
    {"a ps without memory", have_no_memory_to_close, "ps 1: close 1", 0},
    {"a settle at SIGTERM", terminate_while_one_leaves, "UNAVAILABLE TERMINATED", 5000},
    {"an end that one does not answer", end_without_an_answer, "ps 0: end 0 RUN_ENDED", 60000},
    {"a bad end that one does not answer", end_badly_without_an_answer, "ps 0: end 138", 5000},
};

static bool has_ended(const struct world *world, const struct wait *wait)
{
    return strstr(world->text, wait->ends_with) != NULL ||
           strstr(world->log, wait->ends_with) != NULL;
}

TEST(every_wait_ends_in_time_by_the_ticks_that_the_controller_asks_for)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct wait *wait = &waits[i];
        struct world *world = wait->begin(); /* given */
        const uint32_t most_ms = wait->ms == SHORT_MS ? wait->ms : wait->ms + TICK_MS;
        const uint64_t begun_us = world->now_us;
        bool ticks = true;
        uint32_t tick_count = 0;

        world->log[0] = '\0';
        world_forget(world);
        while (ticks && tick_count++ < TICKS_MAX && !has_ended(world, wait)) { /* when */
            ticks = world_tick_as_asked(world, begun_us + 1000 * (uint64_t)most_ms);
            world_settle_down(world);
        }

        if (!has_ended(world, wait)) /* then */
            fail_msg("%s: it goes on after %u ms", wait->name, most_ms);
        if (world->now_us < begun_us + 1000 * (uint64_t)wait->ms)
            fail_msg("%s: it ends after less than %u ms", wait->name, wait->ms);
        world_free(world);
    }
}

TEST(a_tick_is_a_quarter_of_the_smallest_bound_and_a_second_at_most)
{
    static const struct {
        uint32_t bound_ms, tick_ms;
    } cases[] = {{3, 1}, {400, 100}, {3996, 999}, {4004, 1000}, {60000, 1000}};
    static const size_t bounds[] = {
        offsetof(struct lane_config, lease_ms), offsetof(struct lane_config, rejoin_ms),
        offsetof(struct lane_config, ps_lost_ms), offsetof(struct lane_config, report_ms)};

    for (size_t bound = 0; bound < sizeof bounds / sizeof *bounds; bound++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct world *world = world_prepare(1, 1);
            uint8_t *const config = (uint8_t *)&world->config;

            memcpy(config + bounds[bound], &cases[i].bound_ms, sizeof cases[i].bound_ms);
            world_begin(world);

            assert_int_equal(world->wake_us - world->now_us, 1000 * cases[i].tick_ms);
            world_free(world);
        }
}

TEST(a_ps_is_late_after_half_of_the_time_to_be_lost_in_and_three_seconds_at_most)
{
    static const struct {
        uint32_t lost_ms, late_ms;
    } cases[] = {{2000, 1000}, {5800, 2900}, {6200, 3000}, {60000, 3000}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *world = world_prepare(2, 1);

        world->config.ps_lost_ms = cases[i].lost_ms;
        world_begin(world);
        world_all_up(world);

        world_sleep(world, 1000 * (uint64_t)(cases[i].late_ms - 1));
        assert_false(world_waits(world, "ps 0 waits for ps 1"));
        world_sleep(world, 1000);

        assert_true(world_waits(world, "ps 0 waits for ps 1"));
        world_free(world);
    }
}

/* Synchronous steps begin with both, or with as many members as ps 0 was told: one alone. */
TEST(who_never_joined_is_named_with_what_waits_for_it)
{
    for (uint32_t told = 0; told < 2; told++) {
        struct world *world = world_prepare(2, 2);

        world->config.lease_ms = 300000;
        world->config.step_members = told;
        world_begin(world);
        world_all_up(world);
        world_joined(world, "worker", 0, 1);
        world_pass(world, 2 * SECOND);
        assert_true(world_waits(world, "worker 1 never joined, 2 s after the first join; "));
        assert_int_equal(world_waits(world, "the first synchronous step waits"), told == 0);

        world_pass(world, 60 * SECOND);

        assert_true(world_logged(world, "after the first join; start each missing task; "));
        assert_int_equal(world_logged(world, "the first synchronous step waits"), told == 0);
        world_free(world);
    }
}

TEST(of_a_run_that_all_have_joined_nobody_is_said_to_be_missing)
{
    struct world *world = world_prepare(2, 1);

    world->config.lease_ms = 300000;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);

    world_pass(world, 100 * SECOND);

    assert_false(world_logged(world, "never joined"));
    assert_false(world_waits(world, "never joined"));
    world_free(world);
}
