/* SPDX-License-Identifier: Apache-2.0 */
/* controller_sleep.c -- a ps 0 that was suspended, or kept busy: it counts no silence of that time.
 */

#include "unit.h"
#include "controller_world.h"

TEST(a_ps_0_that_was_kept_busy_says_so)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world_pass(world, 5 * SECOND);

    world->cpu_us = 50 * SECOND; /* half of it */
    world_sleep(world, 100 * SECOND);
    world->cpu_us = 0;
    world_settle_down(world);

    /* nobody was listened to, either */
    world_expect(world, "");
    assert_true(world_logged(
        world, "ps 0 was kept busy for 100 s (its thread used 50 s of processor time)"));
    assert_false(world_logged(world, "suspended"));
    world_free(world);
}

TEST(a_suspended_ps_0_does_not_take_its_sleep_for_the_silence_of_others)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world_pass(world, 5 * SECOND);

    world_sleep(world, 100 * SECOND);
    world_settle_down(world);
    world_expect(world, "");
    assert_true(world_logged(world, "ps 0 was suspended for 100 s"));

    world_pass(world, 4 * SECOND); /* the lease goes on where it was */
    world_expect(world, "");
    world_pass(world, 2 * SECOND);
    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 0\n");
    world_free(world);
}

TEST(the_jump_counts_also_when_a_message_comes_before_the_tick)
{
    struct world *world = world_of_two();
    const uint32_t awake = world_joined(world, "worker", 0, 1);
    const uint32_t other = world_joined(world, "worker", 1, 2);

    world_forget(world);

    world->now_us += 100 * SECOND;
    world_report_renewed(world, 0, awake);
    world_sleep(world, SECOND);

    world_renew(world, other);
    world_expect(world, "3: renewed\n");
    world_free(world);
}

TEST(without_the_rule_time_jump_a_sleep_expires_everybody)
{
    struct world *world = world_prepare(1, 1);

    world->config.broken = rule_bit(RULE_time_jump);
    world_begin(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_sleep(world, 100 * SECOND);
    world_settle_down(world);

    world_expect(
        world, "ps 0: close 1: its lease ran out, no ps had heard from it for 100 s\n"
               "ps 0: decide 1 at 0\n");
    world_free(world);
}

TEST(a_sleep_is_said_once)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_pass(world, 5 * SECOND);

    world_sleep(world, 100 * SECOND);
    world_sleep(world, SECOND / 4);

    const char *said = strstr(world->log, "was suspended");
    assert_non_null(said);
    assert_null(strstr(said + 1, "was suspended"));
    world_free(world);
}

TEST(two_sleeps_before_a_tick_are_said_together)
{
    struct world *world = world_of_two();

    for (int i = 0; i < 2; i++) {
        world->now_us += 100 * SECOND;
        world_report_renewed(world, 0, world_joined(world, "worker", 0, 1));
    }
    world_sleep(world, SECOND / 4);

    assert_true(world_logged(world, "ps 0 was suspended for 200 s"));
    world_free(world);
}

/* By the clock that its events are said by. */
TEST(after_a_sleep_the_next_tick_is_wanted_within_a_second)
{
    struct world *world = world_of_two();

    world_sleep(world, 100 * SECOND);
    world->wake_us = UINT64_MAX;

    world_sleep(world, SECOND);

    assert_in_range(world->wake_us, world->now_us + 1, world->now_us + SECOND);
    world_free(world);
}

TEST(sigterm_leaves_a_settle_its_time_though_ps_0_has_slept)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_sleep(world, 100 * SECOND);
    world_settle_down(world);
    world->ps[1].mute = true;
    world_leave(world, joined, true);
    world_settle_down(world);
    world_forget(world);

    world_terminate(world);
    world_pass(world, 4 * SECOND);
    world_expect(world, "");
    world_pass(world, 2 * SECOND);

    world_expect(
        world, "2: UNAVAILABLE TERMINATED ps 0 was terminated before the "
               "run ended, and its state goes with it; "
               "to go on, start the whole run again, ps and workers\n"
               "ps 0: end 143 TERMINATED …\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}
