/* SPDX-License-Identifier: Apache-2.0 */
/* judge_terminated.c -- SIGTERM of ps 0 while sessions leave: which settle is waited for, and what
 * who leaves is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "judge_world.h"

static void sigterm_lets_a_settle_that_is_decided_be_through(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[1].mute = true;
    world_leave(world, joined, true);
    world_settle_down(world);
    world_report_answer(world, 1, world_told(world, 1, ORDER_CLOSE)->number);
    world_settle_down(world);
    /* given */
    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0 done\n");

    world_terminate(world);
    world_expect(world, "");
    world_report_answer(world, 1, world_told(world, 1, ORDER_DECIDE)->number);
    world_settle_down(world);

    world_expect(
        world, "2: left at 0\n"
               "ps 1: end 143 TERMINATED ps 0 was terminated before the "
               "run ended, and its state goes with it; "
               "to go on, start the whole run again, ps and workers\n");
    world_free(world);
}

static void sigint_of_ps_0_ends_the_run_with_130(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world_interrupt(world);

    assert_true(world_logged(world, "run ends with code 130: ps 0 was interrupted (SIGINT)"));
    world_expect(
        world, "ps 1: end 130 TERMINATED ps 0 was interrupted (SIGINT) before the run ended, and "
               "its state goes with it; "
               "to go on, start the whole run again, ps and workers\n");
    world_free(world);
}

/* No settle is through without it. */
static void sigterm_does_not_wait_for_a_settle_when_a_ps_has_ended(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world->ps[1].mute = true; /* given */
    world_leave(world, joined, true);
    world_settle_down(world);
    world_terminate(world);
    world_forget(world);

    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "its state was lost");
    world_settle_down(world);

    world_expect(
        world, "2: UNAVAILABLE TERMINATED ps 0 was terminated before the run ended, and its state "
               "goes with it; "
               "to go on, start the whole run again, ps and workers\n"
               "ps 0: end 143 TERMINATED …\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}

static void a_leave_after_the_end_of_the_run_is_told_how_it_ended(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world->ps[1].never_ends = true; /* given: ps 0 has not exited */
    world_terminate(world);
    world_settle_down(world);
    world_forget(world);

    world_leave(world, joined, true);

    world_expect_answer(
        world, "UNAVAILABLE TERMINATED the run is over: ps 0 was terminated before the run ended, "
               "and its state goes with it; "
               "to go on, start the whole run again, ps and workers");
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigterm_lets_a_settle_that_is_decided_be_through),
        cmocka_unit_test(sigint_of_ps_0_ends_the_run_with_130),
        cmocka_unit_test(sigterm_does_not_wait_for_a_settle_when_a_ps_has_ended),
        cmocka_unit_test(a_leave_after_the_end_of_the_run_is_told_how_it_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
