/* SPDX-License-Identifier: Apache-2.0 */
/* controller_steps.c (test) -- who the members of synchronous steps are, and from which one on. */

#include "unit.h"
#include "controller_world.h"

TEST(the_listed_members_begin_with_step_1)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    assert_int_equal(world_told(world, 1, ORDER_HELLO)->initial, 2);

    world_joined(world, "worker", 1, 1);
    assert_int_equal(world_told(world, 1, ORDER_OPEN)->initial, 1);
    world_forget(world);
    world_joined(world, "worker", 0, 2);

    assert_int_equal(world_told(world, 1, ORDER_OPEN)->initial, 2);
    world_expect(
        world, "ps 0, 1: open 2\n"
               "2: joined 2 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

/* Each ps knows before its client does; the largest that any has seen counts. */
TEST(who_comes_later_counts_after_the_largest_step_that_a_ps_has_seen)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world->ps[0].seen_step = 7;
    world->ps[1].seen_step = 4;
    world_forget(world);

    world_joined(world, "worker", 0, 3); /* its task again */

    world_expect(
        world, "ps 0, 1: close 1: another process has taken this task's place, attempt 2\n"
               "ps 0, 1: decide 1 at 0\n"
               "ps 0, 1: open 3\n"
               "ps 0, 1: count 3 from step 8 on\n"
               "3: joined 3 attempt 2 of 2 ps step 8 epoch 1\n");
    assert_int_equal(world_told(world, 1, ORDER_OPEN)->initial, 0);
    assert_int_equal(world_told(world, 1, ORDER_DECIDE)->initial, 1);
    world_free(world);
}

/* Who takes itself for a ps may say anything. */
TEST(a_step_that_no_run_comes_to_is_not_believed)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world->ps[0].seen_step = 7;
    world->ps[1].seen_step = UINT64_MAX / 2; /* and what is beyond */
    world_forget(world);

    world_joined(world, "worker", 0, 3);

    assert_int_equal(world_told(world, 1, ORDER_FIRST_STEP)->final, 8);
    world_free(world);
}

TEST(without_a_list_as_many_as_ps_0_is_told_begin_with_step_1)
{
    struct world *world = world_prepare(1, 0);

    world->config.step_members = 2;
    world_begin(world);
    world_joined(world, "worker", 5, 1);
    assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 1);
    world_joined(world, "worker", 9, 2);
    assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 2);
    world->ps[0].seen_step = 3;
    world_forget(world);

    world_joined(world, "worker", 7, 3);

    assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 0);
    assert_non_null(strstr(world->text, "count 3 from step 4 on"));
    world_free(world);
}

TEST(a_ps_0_that_is_not_told_counts_nobody)
{
    for (uint32_t partial = 0; partial < 2; partial++) {
        struct world *world = world_prepare(1, partial);

        world->config.members_partial = partial != 0;
        world_begin(world);
        world_forget(world);
        for (uint32_t i = 1; i <= 2; i++) { /* the second time, too */
            world_joined(world, "worker", 0, i);
            assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 0);
        }
        assert_null(strstr(world->text, "count"));
        world_free(world);
    }
}

TEST(observers_are_not_counted)
{
    struct world *world = world_new(1, 1);

    world_joined(world, NULL, 0, 1);
    assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 0);

    world_joined(world, "worker", 0, 2);

    assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 1);
    world_free(world);
}

TEST(who_is_settled_without_having_left_is_lost_where_losses_fail)
{
    static const struct {
        bool fails, leaves, lost;
    } rows[] = {{true, false, true}, {true, true, false}, {false, false, false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world *world = world_prepare(1, 1);

        world->config.loss_fails = rows[i].fails;
        world_begin(world);
        const uint32_t session = world_joined(world, "worker", 0, 1);
        if (rows[i].leaves)
            world_leave(world, session, false);
        else
            world_pass(world, 11 * SECOND);
        world_settle_down(world);

        assert_int_equal(world_told(world, 0, ORDER_CLOSE)->lost, rows[i].lost);
        assert_int_equal(world_told(world, 0, ORDER_DECIDE)->lost, rows[i].lost);
        world_free(world);
    }
}

/* It has no part in a step. */
TEST(an_observer_that_falls_silent_is_not_lost)
{
    struct world *world = world_prepare(1, 1);

    world->config.loss_fails = true;
    world_begin(world);
    (void)world_joined(world, NULL, 0, 1);
    world_pass(world, 11 * SECOND);

    assert_false(world_told(world, 0, ORDER_CLOSE)->lost);
    assert_false(world_told(world, 0, ORDER_DECIDE)->lost);
    world_free(world);
}

/* It has contributed nothing, and a ps that never had it would go on where others fail. */
TEST(who_was_not_opened_at_every_ps_is_not_lost)
{
    struct world *world = world_prepare(2, 1);

    world->config.loss_fails = true;
    world_begin(world);
    world_all_up(world);
    world->ps[1].full = true;

    (void)world_join(world, "worker", 0, 1);
    world_settle_down(world);

    assert_int_equal(world_told(world, 0, ORDER_OPEN)->initial, 1);
    assert_int_equal(world_told(world, 0, ORDER_CLOSE)->lost, false);
    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->lost, false);
    world_free(world);
}
