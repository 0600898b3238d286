/* SPDX-License-Identifier: Apache-2.0 */
/* controller_disobeyed.c -- a ps that answers an order with an error: a line names both, and what
 * was decided goes on. */
#include "controller_two.h"

#define REPORT_TEXT "that is not what ps 1 has"

/* Orders of that kind are the last that ps 1 has been told. */
static void disobey(struct world *world, enum world_order_kind kind)
{
    wire_peer_report report = WIRE_PEER_REPORT_INIT;

    assert_non_null(world_told(world, 1, kind));
    report.answers = world_told(world, 1, kind)->number;
    report.status = SUMAC_INVALID_ARGUMENT;
    report.reason = (Sumac__V1__Reason)SUMAC_REASON_MALFORMED;
    report.message = REPORT_TEXT;
    world_report(world, 1, &report);
    world_settle_down(world);
}

TEST(a_settle_goes_on_without_the_ps_that_does_not_obey)
{
    struct two two = two_workers();
    struct world *const world = two.world;

    world_forget(world);
    world->ps[0].commit_through = 3;
    world->ps[1].mute = true;
    world_leave(world, two.first, true);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: close 1: it has left\n");

    disobey(world, ORDER_CLOSE);
    assert_true(world_logged(
        world, "ps 1 did not obey the order to close the session of worker 0: " REPORT_TEXT));
    world_expect(world, "ps 0, 1: decide 1 at 3 done\n");
    disobey(world, ORDER_DECIDE);

    assert_true(world_logged(
        world,
        "ps 1 did not obey the order to settle the session of worker 0 at push 3: " REPORT_TEXT));
    world_expect(world, "3: left at 3\n");
    world_free(world);
}

TEST(a_create_and_a_delete_go_on_without_the_ps_that_does_not_obey)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);
    struct world *const world = two.world;

    world->ps[1].mute = true;
    world_create(world, two.first, &definition.variable, 0);
    world_settle_down(world);
    world_report_answer(world, 1, world_told(world, 1, ORDER_ADD_SHARDS)->number);
    world_settle_down(world);
    world_forget(world);

    disobey(world, ORDER_PUBLISH);
    assert_true(world_logged(world, "ps 1 did not obey the order to publish w: " REPORT_TEXT));
    world_expect(world, "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_delete(world, two.first, "w");
    world_settle_down(world);
    disobey(world, ORDER_DELETE);

    assert_true(world_logged(world, "ps 1 did not obey the order to delete w: " REPORT_TEXT));
    world_expect(world, "ps 0, 1: delete 1\n4: DeleteReply\n");
    world_free(world);
}
