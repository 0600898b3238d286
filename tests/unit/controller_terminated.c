/* SPDX-License-Identifier: Apache-2.0 */
/* controller_terminated.c -- SIGTERM of ps 0 while sessions leave: which settle ps 0 waits for, and
 * the answer to a leave. */

#include "unit.h"
#include "controller_world.h"

TEST(sigterm_lets_a_settle_that_is_decided_be_through)
{
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

/* Whoever watches leaves, too: its settle is under way as the last worker is done. */
TEST(sigterm_ends_a_run_well_whose_last_worker_leaves_as_done)
{
    struct world *world = world_new(2, 1);

    world_all_up(world); /* given */
    const uint32_t worker = world_joined(world, "worker", 0, 1);
    const uint32_t observer = world_joined(world, NULL, 0, 2);
    world->ps[1].mute = true;
    (void)world_leave(world, observer, false);
    (void)world_leave(world, worker, true);
    world_settle_down(world);
    const uint64_t close = world_told(world, 1, ORDER_CLOSE)->number;

    world_terminate(world); /* when */
    world->ps[1].mute = false;
    world_report_answer(world, 1, close);
    world_settle_down(world);

    assert_int_equal(world->exit_error.reason, SUMAC_REASON_RUN_ENDED); /* then */
    world_free(world);
}

TEST(after_sigterm_no_worker_is_waited_for)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t observer = world_joined(world, NULL, 0, 1);
    world_leave(world, world_joined(world, "worker", 0, 2), false);
    world_settle_down(world);
    world->ps[1].mute = true;
    (void)world_leave(world, observer, false);
    world_settle_down(world);
    assert_true(world_waits(world, "no worker is left"));

    world_terminate(world);

    assert_false(world_waits(world, "no worker is left"));
    world_free(world);
}

static void assert_signal_ends_the_run(enum lane_signal number, const char *said, const char *order)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world_signal(world, number);

    assert_true(world_logged(world, said));
    world_expect(world, order);
    world_free(world);
}

#define START_AGAIN                                                                                \
    " before the run ended, and its state goes with it; to go on, start the whole run again, ps "  \
    "and workers\n"

TEST(sigint_of_ps_0_ends_the_run_with_130)
{
    assert_signal_ends_the_run(
        LANE_SIGNAL_INT, "run ends with code 130: ps 0 was interrupted (SIGINT)",
        "ps 1: end 130 TERMINATED ps 0 was interrupted (SIGINT)" START_AGAIN);
}

TEST(sighup_of_ps_0_ends_the_run_with_129)
{
    assert_signal_ends_the_run(
        LANE_SIGNAL_HUP, "run ends with code 129: ps 0 was stopped (SIGHUP)",
        "ps 1: end 129 TERMINATED ps 0 was stopped (SIGHUP)" START_AGAIN);
}

/* No settle is through without it. */
TEST(sigterm_does_not_wait_for_a_settle_when_a_ps_has_ended)
{
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

TEST(a_leave_after_the_end_of_the_run_is_told_how_it_ended)
{
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

/* Neither the code nor the time begins anew. */
TEST(a_second_signal_changes_nothing)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    world->ps[1].mute = true;
    world_leave(world, joined, false);
    world_terminate(world);
    world_pass(world, 4 * SECOND);
    assert_false(world->exited);

    world_signal(world, LANE_SIGNAL_INT);
    world_pass(world, SECOND);

    assert_true(world->exited);
    assert_true(world_logged(world, "run ends with code 143: ps 0 was terminated"));
    world_free(world);
}

/* The settle that ps 0 waited for is through, and then ps 1 does not answer the end. */
TEST(sigterm_has_its_time_from_the_signal_on_and_says_whose_answer_is_missing)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    world->ps[1].mute = true;
    world_leave(world, joined, false);
    world_settle_down(world);
    world_terminate(world);
    world_pass(world, 3 * SECOND);
    world->ps[1].mute = false;
    world->ps[1].never_ends = true;
    world_report_answer(world, 1, world_told(world, 1, ORDER_CLOSE)->number);
    world_settle_down(world);
    assert_non_null(world_told(world, 1, ORDER_END));
    assert_false(world->exited);

    world_pass(world, 2 * SECOND);

    assert_true(world->exited);
    assert_true(world_logged(
        world, "ps 0 ends: it has waited 5 s for 1 ps to finish what is in flight: ps 1 at h1:1"));
    world_free(world);
}

/* It has waited for as long as it may, and no longer. */
TEST(a_bad_end_waits_for_an_answer_for_its_time_and_no_longer)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    (void)world_joined(world, "worker", 0, 1);
    world->ps[2].never_ends = true;
    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "its state was lost");
    world_settle_down(world);

    world_pass(world, 5 * SECOND - SECOND / 4);
    assert_false(world->exited);
    world_pass(world, SECOND / 4);

    assert_true(world->exited);
    assert_true(world_logged(
        world, "ps 0 ends: it has waited 5 s for 1 ps to finish what is in flight: ps 2 at h2:1"));
    world_free(world);
}

/* Worker 5 is on no list, and at work. */
TEST(a_member_that_is_not_listed_holds_up_the_end)
{
    uint8_t nonce[16] = {1, 8};
    wire_task_name self = WIRE_TASK_NAME_INIT;
    wire_task_name *list[] = {&self};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;
    struct world *world = world_new(1, 0);
    const uint32_t other = world_joined(world, "worker", 5, 1), listed = 2;

    self.job = (char *)"worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &self;
    request.members = list;
    request.n_members = 1;
    (void)world_join_as(world, &request);
    world_settle_down(world);
    world_leave(world, listed, true);
    world_settle_down(world);
    world_pass(world, SECOND);
    assert_false(world_logged(world, "run ends"));

    world_leave(world, other, false);
    world_settle_down(world);

    assert_true(world_logged(world, "run ends with code 0: every listed member has left as done"));
    world_free(world);
}

/* The run goes on, and ps 0 waits for that ps to come back. */
TEST(a_ps_that_takes_the_run_for_ended_ends_it_for_nobody_else)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    (void)world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_ended(world, 1, SUMAC_REASON_RUN_ENDED, "every listed member has left as done");
    world_pass(world, SECOND);

    world_expect(world, "");
    assert_false(world_logged(world, "run ends"));
    world_free(world);
}

TEST(who_cancels_a_call_takes_no_answer_from_others)
{
    struct world *world = world_new(2, 3);

    world_all_up(world);
    const uint32_t leaves = world_joined(world, "worker", 0, 1);
    world->ps[1].mute = true;
    const uint64_t leave = world_leave(world, leaves, false);
    const uint64_t join = world_join(world, "worker", 1, 2);
    world_cancel(world, world_join(world, "worker", 2, 3));
    world->ps[1].mute = false;
    world_down(world, 1);
    world_up(world, 1);
    world_settle_down(world);

    assert_non_null(world_answer(world, leave));
    assert_non_null(world_answer(world, join));
    world_free(world);
}
