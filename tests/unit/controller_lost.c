/* SPDX-License-Identifier: Apache-2.0 */
/* controller_lost.c -- since when a ps is missing, lost, or refuses ps 0, whatever happens
 * meanwhile; and what is said of it. */

#include "unit.h"
#include "controller_world.h"

static uint32_t times_logged(const struct world *world, const char *text)
{
    uint32_t count = 0;

    for (const char *at = world->log; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

TEST(a_ps_that_never_came_is_missed_since_the_first_join_not_the_last)
{
    struct world *world = world_new(2, 2);

    (void)world_join(world, "worker", 0, 1);
    world_pass(world, 40 * SECOND);
    (void)world_join(world, "worker", 1, 2);
    assert_true(world_waits(world, "gives up in 20 s"));

    world_pass(world, 21 * SECOND);

    assert_int_equal(world->exit_error.reason, SUMAC_REASON_PS_MISSING);
    world_free(world);
}

TEST(an_observer_that_asks_again_waits_for_a_ps_from_then_on)
{
    struct world *world = world_new(2, 0);

    (void)world_join(world, NULL, 0, 1);
    world_pass(world, 40 * SECOND);
    const uint64_t again = world_join(world, NULL, 0, 1);
    world_pass(world, 40 * SECOND);
    assert_null(world_answer(world, again));

    world_pass(world, 21 * SECOND);

    assert_int_equal(world_answer(world, again)->reason, SUMAC_REASON_PS_MISSING);
    world_free(world);
}

/* It is given one now and then. */
TEST(a_ps_that_answers_no_order_is_lost_since_the_first_of_them)
{
    struct world *world = world_new(2, 0);

    world_all_up(world);
    world->ps[1].mute = true;
    for (uint32_t i = 0; i < 3; i++) {
        (void)world_join(world, NULL, 0, i + 1);
        world_settle_down(world);
        world_pass(world, 20 * SECOND);
    }
    world_pass(world, SECOND);

    assert_int_equal(world->exit_error.reason, SUMAC_REASON_STATE_LOST);
    world_free(world);
}

/* The refusal ends the run, and says what to correct. */
TEST(a_ps_that_refuses_the_configuration_late_is_not_said_to_be_missing)
{
    struct world *world = world_new(2, 1);

    (void)world_join(world, "worker", 0, 1);
    world_pass(world, 58 * SECOND);
    world_ended(world, 1, SUMAC_REASON_WRONG_CLUSTER, "this is ps 0 of h1:1, h0:1");
    world_pass(world, 3 * SECOND);
    world_ended(world, 1, SUMAC_REASON_WRONG_CLUSTER, "this is ps 0 of h1:1, h0:1"); /* again */
    world_pass(world, 3 * SECOND);

    assert_int_equal(world->exit_error.reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_int_equal(times_logged(world, "refuses ps 0, which ends the run"), 1);
    world_free(world);
}

TEST(a_ps_that_refuses_ps_0_again_and_again_is_logged_once)
{
    struct world *world = world_new(2, 1);

    world->ps[1].refuses = "it speaks another protocol";
    for (int i = 0; i < 3; i++) {
        world_up(world, 1);
        world_settle_down(world);
        world->ps[1].up = false;
    }

    assert_int_equal(times_logged(world, "refuses ps 0: it speaks another protocol"), 1);
    world_free(world);
}

TEST(a_stream_that_there_was_not_or_that_the_end_closes_is_not_lost)
{
    struct world *world = world_new(2, 1);

    world_down(world, 1);
    world_down(world, 1);
    world_all_up(world);
    world_leave(world, world_joined(world, "worker", 0, 1), true);
    world_settle_down(world);
    world_down(world, 1);

    assert_false(world_logged(world, "lost its stream"));
    world_free(world);
}

/* As one of another run, whose address it has now. */
TEST(a_report_before_the_hello_greets_nobody)
{
    struct world *world = world_new(2, 1);
    wire_peer_report message = WIRE_PEER_REPORT_INIT;

    world_report(world, 1, &message);

    assert_false(world_logged(world, "ps 0 met ps 1"));
    world_free(world);
}

/* It was told that its run is over, and is of this one. */
TEST(a_ps_that_ended_and_came_back_is_waited_for_at_the_end)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_ended(world, 1, SUMAC_REASON_RUN_ENDED, "every listed member has left as done");
    world_up(world, 1);
    world_settle_down(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    world->ps[1].never_ends = true;
    world_leave(world, joined, true);
    world_settle_down(world);
    world_pass(world, SECOND);
    assert_false(world->exited);

    world_report_answer(world, 1, world_told(world, 1, ORDER_END)->number);
    world_settle_down(world);

    assert_true(world->exited);
    world_free(world);
}

/* However often it is not reached meanwhile. */
TEST(a_ps_that_was_told_the_end_and_is_gone_is_waited_for_since_its_stream_broke)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    world->ps[1].never_ends = true;
    world_leave(world, joined, true);
    world_settle_down(world);
    for (int i = 0; i < 6; i++) {
        world_down(world, 1);
        world_pass(world, SECOND);
    }

    assert_true(world->exited);
    world_free(world);
}

/* It has most likely ended, too. */
TEST(where_a_ps_is_lost_one_whose_stream_breaks_is_not_waited_for)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    world->ps[1].never_ends = true;
    world_ended(world, 2, SUMAC_REASON_STATE_LOST, NULL); /* it did not say why */
    world_settle_down(world);
    assert_false(world->exited);

    world_down(world, 1);
    world_pass(world, SECOND);

    assert_true(world->exited);
    assert_string_equal(
        world->exit_error.text,
        "ps 2 at h2:1 has ended and its state with it: it did not say why; start the whole run "
        "again, ps and workers");
    world_free(world);
}

TEST(every_ps_that_is_missing_is_named)
{
    struct world *world = world_new(3, 1);

    (void)world_join(world, "worker", 0, 1);
    world_pass(world, 6 * SECOND);

    assert_true(world_waits(world, "ps 0 waits for ps 1 at h1:1"));
    assert_true(world_waits(world, "ps 0 waits for ps 2 at h2:1"));
    assert_true(world_logged(world, "ps 0 waits for ps 1 at h1:1"));
    assert_true(world_logged(world, "ps 0 waits for ps 2 at h2:1"));
    world_free(world);
}
