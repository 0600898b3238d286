/* SPDX-License-Identifier: Apache-2.0 */
/* controller_quorum.c (test) -- synchronous steps of K of N: which contributions each is made of,
 * and when it is taken. */

#include "unit.h"
#include "controller_world.h"

/* Two ps and sessions 1, 2, 3 of three workers. */
static struct world *begin(uint32_t quorum, uint32_t deadline_ms)
{
    struct world *world = world_prepare(2, 3);

    world->config.step_quorum = quorum;
    world->config.step_deadline_ms = deadline_ms;
    world->config.sessions_max = 80; /* with observers */
    world_begin(world);
    world_all_up(world);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(world_joined(world, "worker", i, i + 1), i + 1);
    world_forget(world);
    return world;
}

/* Its contribution to the step has its turn on every ps. */
static void come(struct world *world, uint32_t session, uint64_t step, bool voided)
{
    for (uint32_t ps = 0; ps < 2; ps++)
        world_report_come(world, ps, session, step, voided);
}

static void over(struct world *world, uint64_t step)
{
    for (uint32_t ps = 0; ps < 2; ps++)
        world_report_over(world, ps, step);
    world_settle_down(world);
}

TEST(a_step_is_taken_when_all_have_come_or_enough_and_the_deadline_is_over)
{
    struct world *world = begin(2, 1000);

    assert_int_equal(world_told(world, 1, ORDER_HELLO)->final, 2);
    come(world, 1, 1, false); /* all */
    come(world, 3, 1, false);
    come(world, 2, 1, false);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: take step 1 of 1 2 3\n");
    over(world, 1);

    come(world, 1, 2, false);
    world_pass(world, 3 * SECOND); /* one is not enough, however long it takes */
    come(world, 3, 2, false);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: take step 2 of 1 3\n"); /* the time counts from the first */
    over(world, 2);
    come(world, 2, 2, true);       /* late */
    world_pass(world, 3 * SECOND); /* no time counts before the first */
    come(world, 2, 3, false);
    come(world, 3, 3, false);
    world_settle_down(world);
    world_expect(world, "");

    world_pass(world, 2 * SECOND);

    world_expect(world, "ps 0, 1: take step 3 of 2 3\n");
    world_free(world);
}

/* A tick would take it later than it may be. */
TEST(the_controller_wakes_when_the_deadline_of_a_step_is_over)
{
    struct world *world = begin(2, 10);

    come(world, 1, 1, false); /* given */
    world->wake_us = UINT64_MAX;

    come(world, 3, 1, false); /* when */

    assert_int_equal(world->wake_us, world->now_us + 10000); /* then */
    world_free(world);
}

/* Its client has committed it on one ps alone: the step would wait for it on the other. */
TEST(who_has_come_on_one_ps_has_not_come)
{
    struct world *world = begin(2, 0);

    come(world, 1, 1, false);
    world_report_come(world, 0, 2, 1, false);
    world_report_come(world, 0, 2, 1, false); /* said again */
    world_settle_down(world);
    world_expect(world, "");

    come(world, 3, 1, false);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: take step 1 of 1 3\n");
    world_free(world);
}

TEST(what_counts_for_nothing_is_not_enough)
{
    struct world *world = begin(2, 0);

    come(world, 1, 1, false);
    world_report_come(world, 0, 2, 1, true); /* one ps has voided it */
    world_report_come(world, 1, 2, 1, false);
    world_pass(world, SECOND);
    world_expect(world, "");

    come(world, 3, 1, false);
    world_settle_down(world);

    world_expect(world, "ps 0, 1: take step 1 of 1 2 3\n");
    world_free(world);
}

/* What the others do with it is not known yet: of one step alone they have to remember who is in
 * it. */
TEST(the_next_step_is_taken_when_this_one_is_over_on_every_ps)
{
    struct world *world = begin(1, 0);

    come(world, 1, 1, false);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: take step 1 of 1\n");
    world_report_over(world, 0, 1);
    come(world, 1, 2, false);
    world_settle_down(world);
    world_expect(world, "");

    world_report_over(world, 1, 1);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: take step 2 of 1\n");
    come(world, 1, 3, false);
    world_report_over(world, 1, 2);
    world_settle_down(world);
    world_expect(world, "");

    world_report_over(world, 0, 2);
    world_settle_down(world);

    world_expect(world, "ps 0, 1: take step 3 of 1\n");
    world_free(world);
}

TEST(no_step_is_taken_before_all_that_begin_with_it_have_come)
{
    struct world *world = world_prepare(1, 2);

    world->config.step_quorum = 1;
    world_begin(world);
    const uint32_t first = world_joined(world, "worker", 0, 1);
    come(world, first, 1, false);
    world_settle_down(world);
    assert_null(world_told(world, 0, ORDER_TAKE));

    world_joined(world, "worker", 1, 2);
    world_settle_down(world);

    assert_non_null(world_told(world, 0, ORDER_TAKE));
    world_free(world);
}

TEST(the_deadline_is_twice_what_steps_take_to_the_last_that_is_wanted)
{
    struct world *world = begin(2, LANE_DEADLINE_AUTO);

    for (uint64_t step = 1; step <= 3; step++) { /* a second, ten, a second */
        come(world, 1, step, false);
        world_pass(world, step == 2 ? 10 * SECOND : SECOND);
        come(world, 2, step, false);
        come(world, 3, step, true);
        world_settle_down(world);
        world_report_renewed(world, 0, 1);
        world_report_renewed(world, 0, 2);
        world_report_renewed(world, 0, 3);
        over(world, step);
    }
    world_forget(world);
    come(world, 1, 4, false);
    come(world, 2, 4, false);
    world_pass(world, SECOND + SECOND / 2);
    world_expect(world, "");

    world_pass(world, SECOND);

    world_expect(world, "ps 0, 1: take step 4 of 1 2\n");
    world_free(world);
}

/* As workers do not start together. */
TEST(a_slow_first_step_makes_no_other_wait)
{
    struct world *world = begin(2, LANE_DEADLINE_AUTO);

    come(world, 1, 1, false);
    world_pass(world, 5 * SECOND);
    come(world, 2, 1, false);
    come(world, 3, 1, true);
    world_settle_down(world);
    over(world, 1);
    world_forget(world);

    come(world, 1, 2, false);
    come(world, 2, 2, false);
    world_settle_down(world);

    world_expect(world, "ps 0, 1: take step 2 of 1 2\n");
    world_free(world);
}

TEST(a_settled_session_counts_with_what_it_has_made_and_not_without)
{
    for (uint64_t made = 0; made <= 1; made++) {
        struct world *world = begin(2, 0);

        world->ps[1].commit_through = 4 + made; /* of which no ps has said that it has come */
        world->ps[1].made_step = made;
        world->ps[1].made_sequence = made != 0 ? 5 : 0;
        come(world, 1, 1, false);
        world_leave(world, 2, false);
        come(world, 3, 1, true);
        world_settle_down(world);

        assert_int_equal(world_told(world, 1, ORDER_TAKE)->taken_count, 2 + made);
        world_free(world);
    }
}

TEST(a_settled_session_is_remembered_while_a_step_needs_it)
{
    struct world *world = world_prepare(1, 3);

    world->config.step_quorum = 3;
    world->config.settled_sessions_max = 1;
    world_begin(world);
    for (uint32_t i = 0; i < 3; i++)
        world_joined(world, "worker", i, i + 1);
    world->ps[0].commit_through = world->ps[0].made_sequence = 5;
    world->ps[0].made_step = 1;
    world_leave(world, 2, false);
    world_settle_down(world);
    world->ps[0].made_sequence = world->ps[0].made_step = 0;
    for (uint32_t i = 4; i < 7; i++) /* others are settled since */
        world_leave(world, world_joined(world, NULL, 0, i), false);
    world_settle_down(world);

    come(world, 1, 1, false);
    come(world, 3, 1, false);
    world_settle_down(world);

    assert_int_equal(world_told(world, 0, ORDER_TAKE)->taken_count, 3);
    world_free(world);
}

/* The list is the same, although other sessions have been settled since. */
TEST(a_step_that_a_ps_is_told_again_is_of_the_same_sessions)
{
    struct world *world = world_prepare(2, 3);

    world->config.step_quorum = 3; /* given */
    world->config.settled_sessions_max = 1;
    world_begin(world);
    world_all_up(world);
    for (uint32_t i = 0; i < 3; i++)
        world_joined(world, "worker", i, i + 1);
    world->ps[1].mute = true;
    for (uint32_t i = 1; i <= 3; i++)
        come(world, i, 1, false);
    world_settle_down(world);
    world->ps[1].mute = false;
    world->ps[0].made_step = world->ps[1].made_step = 1;
    world_leave(world, 2, false);
    for (uint32_t i = 4; i < 7; i++)
        world_leave(world, world_joined(world, NULL, 0, i), false);
    world_settle_down(world);
    world_down(world, 1);
    world_forget(world);

    world_up(world, 1); /* when */
    world_settle_down(world);

    world_expect(
        world, "ps 1: hello 71 of 2 ps\n" /* then */
               "ps 1: take step 1 of 1 2 3\n");
    world_free(world);
}

/* Its task's next attempt is told that it counts for nothing. */
TEST(what_a_settled_session_has_made_too_late_is_voided)
{
    struct world *world = begin(1, 0);

    come(world, 1, 1, false);
    world_settle_down(world); /* ps 1 has the other's, too, and has not said so */
    world->ps[0].voided[0] = 3;
    world->ps[0].voided_count = 1;
    world->ps[1].commit_through = 9;
    world->ps[1].made_step = 1;
    world->ps[1].made_sequence = 9;
    world_forget(world);

    world_leave(world, 2, false);
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: close 2: it has left\nps 0, 1: decide 2 at 9 voided 3 9\n4: left at 9\n");
    world_leave(world, 1, false); /* what was taken counts, with the same numbers */
    world_settle_down(world);
    world_expect(
        world, "ps 0, 1: close 1: it has left\nps 0, 1: decide 1 at 9 voided 3\n5: left at 9\n");
    world_free(world);
}

/* Such a report may come from a process that is no ps. */
TEST(a_contribution_of_nobody_or_to_no_step_counts_for_nothing)
{
    struct world *world = begin(1, 0);

    come(world, WORLD_NOBODY, 1, false);
    for (uint32_t i = 1; i <= 3; i++)
        come(world, i, UINT64_MAX / 2, false); /* no run comes so far */
    world_pass(world, SECOND);

    world_expect(world, "");
    world_free(world);
}

/* Those before them took ten times as long. */
TEST(the_deadline_goes_by_the_last_16_steps_alone)
{
    struct world *world = begin(2, LANE_DEADLINE_AUTO);

    for (uint64_t step = 1; step <= 32; step++) {
        come(world, 1, step, false);
        world_pass(world, step <= 16 ? 5 * SECOND : SECOND / 2);
        come(world, 2, step, false);
        come(world, 3, step, true);
        for (uint32_t session = 1; session <= 3; session++)
            world_report_renewed(world, 0, session);
        over(world, step);
    }
    world_forget(world);
    come(world, 1, 33, false);
    come(world, 2, 33, false);
    world_pass(world, SECOND - SECOND / 4);
    world_expect(world, "");

    world_pass(world, SECOND / 2);

    world_expect(world, "ps 0, 1: take step 33 of 1 2\n");
    world_free(world);
}

/* It may turn out to have made a contribution. */
TEST(no_step_is_taken_without_a_member_that_is_being_settled)
{
    struct world *world = begin(1, 0);

    world->ps[1].silent = true;
    world_leave(world, 2, false);
    world_settle_down(world);
    come(world, 1, 1, false);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: close 2: it has left\n");

    world->ps[1].silent = false;
    world_settle_down(world);

    assert_non_null(world_told(world, 0, ORDER_TAKE));
    world_free(world);
}

TEST(a_step_waits_for_no_settle_of_a_member_that_has_come_to_it)
{
    struct world *world = begin(1, 0);

    come(world, 2, 2, false); /* to a later one, with nothing in this one */
    world->ps[1].silent = true;
    world_leave(world, 2, false);
    world_settle_down(world);
    world_forget(world);

    come(world, 1, 1, false);
    world_settle_down(world);

    world_expect(world, "ps 0: take step 1 of 1 2\n");
    world_free(world);
}

/* It may have been refused there, or weigh nothing: the ps say so when it has its turn. */
TEST(what_a_settled_session_has_made_counts_as_enough_once_it_has_come)
{
    struct world *world = begin(2, 0);

    for (uint32_t ps = 0; ps < 2; ps++) {
        world->ps[ps].commit_through = world->ps[ps].made_sequence = 5;
        world->ps[ps].made_step = 1;
    }
    world_leave(world, 2, false);
    world_settle_down(world);
    world_forget(world);
    come(world, 1, 1, false);
    world_pass(world, SECOND);
    world_expect(world, "");

    come(world, 2, 1, false);
    world_settle_down(world);

    world_expect(world, "ps 0, 1: take step 1 of 1 2\n");
    world_free(world);
}

TEST(no_step_is_taken_after_the_run)
{
    struct world *world = begin(1, 0);

    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "its disk is full");
    world_forget(world);

    world_report_come(world, 0, 1, 1, false);
    world_report_come(world, 1, 1, 1, false);
    world_settle_down(world);

    assert_null(world_told(world, 0, ORDER_TAKE));
    world_free(world);
}

/* All left without one; who comes later begins after it. */
TEST(steps_before_a_later_members_first_are_taken_with_nothing)
{
    struct world *world = begin(2, 0);

    world->ps[0].seen_step = 2;
    for (uint32_t i = 1; i <= 3; i++)
        world_leave(world, i, false);
    world_settle_down(world);
    world_forget(world);
    world_joined(world, "worker", 0, 4);
    world_joined(world, "worker", 1, 6);
    world_joined(world, NULL, 0, 5); /* who is no member changes nothing */
    world_settle_down(world);
    assert_non_null(strstr(world->text, "count 4 from step 3 on"));
    assert_int_equal(world_told(world, 1, ORDER_TAKE)->final, 1);
    assert_int_equal(world_told(world, 1, ORDER_TAKE)->taken_count, 0);
    come(world, 4, 3, false); /* one of the two */

    over(world, 1);

    assert_int_equal(world_told(world, 1, ORDER_TAKE)->final, 2);
    assert_int_equal(world_told(world, 1, ORDER_TAKE)->taken_count, 0);
    over(world, 2);
    assert_int_equal(world_told(world, 1, ORDER_TAKE)->final, 2); /* it is waited for */
    world_free(world);
}

/* Without it the members would wait for ever. */
TEST(a_step_whose_order_memory_was_short_for_is_ordered_once_there_is_some)
{
    struct world *world = begin(3, 0);

    world_use_up_orders(world); /* given */
    world_forget(world);
    for (uint32_t i = 1; i <= 3; i++)
        come(world, i, 1, false);
    world_pass(world, SECOND);
    world_expect(world, "");

    world->out_of_pools = false; /* when */
    world_pass(world, SECOND);

    world_expect(world, "ps 0, 1: take step 1 of 1 2 3\n"); /* then */
    world_free(world);
}

TEST(without_a_quorum_nobody_is_told)
{
    struct world *world = begin(0, 0);

    for (uint32_t i = 1; i <= 3; i++)
        come(world, i, 1, false);
    world_pass(world, SECOND);

    world_expect(world, "");
    world_free(world);
}
