/* SPDX-License-Identifier: Apache-2.0 */
/* controller_room.c -- sessions that keep room in a pool and do nothing for it, while others wait.
 */

#include "unit.h"
#include "barrier.h"
#include "controller_state.h"
#include "controller_members.h"
#include "controller_world.h"
#include "controller_collectives.h"

/* That ps waits for one session's elements in vain, and another one for room there; 0: none. The
 * first of each is one that ps 0 does not know. */
static void report_room(struct world *world, uint32_t ps, uint32_t stalled, uint32_t waiting)
{
    wire_peer_report message = WIRE_PEER_REPORT_INIT;
    wire_bytes stalled_ids[] = {world_id(world, WORLD_NOBODY), world_id(world, stalled)};
    wire_bytes waiting_ids[] = {world_id(world, WORLD_NOBODY), world_id(world, waiting)};

    message.stalled = stalled_ids;
    message.n_stalled = 2;
    message.waiting = waiting_ids;
    message.n_waiting = 2;
    world_report(world, ps, &message);
}

TEST(a_session_that_keeps_room_from_another_one_is_closed)
{
    struct world *world = world_of_two(); /* given */
    const uint32_t keeps = world_joined(world, "worker", 0, 1);
    const uint32_t waits = world_joined(world, "worker", 1, 2);

    world_forget(world);
    report_room(world, 1, 0, waits); /* when: on whichever ps */
    world_expect(world, "");
    report_room(world, 0, keeps, 0);
    report_room(world, 1, keeps, 0); /* it is being closed */
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: close 1: it kept staging that other pushes waited for, and for two leases "
               "it neither sent enough of what a ps asked for nor gave way\n"
               "ps 0, 1: decide 1 at 0\n"); /* then */
    assert_true(world_logged(world, "ps 0 closes the session of worker 0: pushes of others wait"));
    world_free(world);
}

TEST(while_no_other_one_waits_it_is_not_closed)
{
    struct world *world = world_of_two(); /* given */
    const uint32_t keeps = world_joined(world, "worker", 0, 1);
    const uint32_t waited = world_joined(world, "worker", 1, 2);

    world_forget(world);
    report_room(world, 0, keeps, keeps); /* when: it waits for itself */
    report_room(world, 1, 0, waited);
    for (uint32_t i = 0; i < 6; i++) {
        world_pass(world, SECOND);
        world_report_renewed(world, 0, keeps);
        world_report_renewed(world, 1, waited);
    }
    report_room(world, 0, keeps, 0); /* the other one has its room since then */
    world_settle_down(world);

    world_expect(world, ""); /* then */
    world_free(world);
}

TEST(while_the_other_one_that_waited_is_closed_it_is_not_closed)
{
    struct world *world = world_of_two(); /* given */
    const uint32_t keeps = world_joined(world, "worker", 0, 1);
    const uint32_t left = world_joined(world, "worker", 1, 2);

    report_room(world, 1, 0, left);
    world_leave(world, left, true);
    world_settle_down(world);
    world_forget(world);

    report_room(world, 0, keeps, 0); /* when */
    world_settle_down(world);

    world_expect(world, ""); /* then */
    world_free(world);
}

/* What ps 0 publishes is the sum of what it keeps for each session, and for each task. */
TEST(the_bound_of_sessions_counts_all_that_is_kept_for_them)
{
    const struct lane_config config = {.sessions_max = 8, .calls_max = 3, .records = true};
    struct controller controller = {.memory = &memory_heap, .config = &config, .ps_count = 2};
    const uint64_t voided = controller_voided_bytes_max(&controller);
    const uint64_t beside = controller_held_bytes_max(&controller) +
                            controller_barriers_bytes_max(&controller) +
                            controller_collectives_bytes_max() + FUNCTIONS_BYTES;

    const uint64_t none = controller_sessions_bytes_max(&controller);
    controller.tasks_pool.used = 1;
    const uint64_t one = controller_sessions_bytes_max(&controller);

    assert_int_equal(
        none, controller_sessions_max(&controller) *
                      (sizeof(struct controller_session) + 2 * (uint64_t)ID_MAP_ENTRY_BYTES_MAX) +
                  9 * voided + beside);
    assert_int_equal(one - none, sizeof(struct controller_task) + ID_MAP_ENTRY_BYTES_MAX + voided);
}
