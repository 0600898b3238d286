/* SPDX-License-Identifier: Apache-2.0 */
/* controller_delete.c -- deleting variables, and creating them when memory is short. */

#include "unit.h"
#include "controller_two.h"

TEST(a_deleted_variable_is_gone_on_every_ps_and_its_name_is_free)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    created(&two, &definition);
    two.world->ps[1].silent = true;

    world_delete(two.world, two.second, "w"); /* when */
    world_settle_down(two.world);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n"
                   "ps 0, 1: delete 1\n");
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    world_expect(two.world, "4: DeleteReply\n");
    definition.shape[0] = 8;
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 2 w\n"
                   "ps 0, 1: publish 2\n"
                   "5: created 2 shard 3 on ps 0 shard 4 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

/* A worker that has not heard of the delete pushes to the shards that it knows. */
TEST(the_numbers_of_a_deleted_variable_are_never_given_again)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    created(&two, &definition);
    world_delete(two.world, two.first, "w");
    world_settle_down(two.world);

    created(&two, &definition);

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n"
                   "ps 0, 1: delete 1\n"
                   "4: DeleteReply\n"
                   "ps 0, 1: add 2 w\n"
                   "ps 0, 1: publish 2\n"
                   "5: created 2 shard 3 on ps 0 shard 4 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(deleting_what_is_not_there_names_it)
{
    struct two two = two_workers();

    world_forget(two.world);

    world_delete(two.world, two.first, "w");

    world_expect(two.world, "3: NOT_FOUND UNKNOWN_VARIABLE there is no variable w to delete\n");
    world_delete(two.world, two.first, "");
    world_expect(two.world, "4: NOT_FOUND UNKNOWN_VARIABLE there is no variable \"\" to delete\n");
    world_free(two.world);
}

TEST(what_is_being_created_is_not_deleted_yet)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    two.world->ps[1].silent = true;
    world_create(two.world, two.first, &definition.variable, 0);

    world_delete(two.world, two.second, "w");
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "4: FAILED_PRECONDITION UNKNOWN_VARIABLE w is being "
                   "created: delete it when its create was answered\n");
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    world_expect(
        two.world, "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(while_ps_0_ends_it_says_so_to_a_create_and_a_delete)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    two.world->ps[1].silent = true; /* a settle is under way, which ps 0 waits for */
    world_leave(two.world, two.second, true);
    world_terminate(two.world);

    world_create(two.world, two.first, &definition.variable, 0); /* when */
    world_delete(two.world, two.first, "w");

    world_expect(
        two.world, "ps 0, 1: close 2: it has left\n"
                   "5: UNAVAILABLE TERMINATED ps 0 was told to stop "
                   "and changes the catalogue no more\n"
                   "6: UNAVAILABLE TERMINATED …\n");
    world_free(two.world);
}

/* Two workers, the variable w, and memory for no order more. */
static struct two two_workers_without_orders(void)
{
    struct definition definition;
    struct two two = {.world = world_prepare(2, 3)};

    two.world->config.sessions_max = 100;
    world_begin(two.world);
    world_all_up(two.world);
    two.first = world_joined(two.world, "worker", 0, 1);
    two.second = world_joined(two.world, "worker", 1, 2);
    define(&definition, "w");
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    world_use_up_orders(two.world);
    world_forget(two.world);
    return two;
}

TEST(a_delete_that_memory_is_short_for_is_done_when_there_is_some)
{
    struct two two = two_workers_without_orders(); /* given */

    world_delete(two.world, two.first, "w"); /* when */
    world_pass(two.world, SECOND);

    world_expect(two.world, "");
    assert_true(
        world_waits(two.world, "delete of w waits: ps 0 has no memory for its order to the ps"));
    two.world->out_of_pools = false;
    world_pass(two.world, SECOND);
    world_expect(
        two.world, "ps 0, 1: delete 1\n"
                   "68: DeleteReply\n");
    world_free(two.world);
}

TEST(a_create_that_memory_is_short_for_is_done_when_there_is_some)
{
    struct two two = two_workers_without_orders(); /* given */
    struct definition definition;

    define(&definition, "v");

    world_create(two.world, two.first, &definition.variable, 0); /* when */
    world_pass(two.world, SECOND);

    world_expect(two.world, "");
    two.world->out_of_pools = false;
    world_pass(two.world, SECOND);
    world_expect(
        two.world, "ps 0, 1: add 2 v\n"
                   "ps 0, 1: publish 2\n"
                   "68: created 2 shard 3 on ps 0 shard 4 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}
