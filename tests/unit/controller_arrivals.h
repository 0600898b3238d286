/* SPDX-License-Identifier: Apache-2.0 */
/* controller_arrivals.h -- members that come to barriers, for the controller's unit tests. */
#pragma once

#include "unit.h"
#include "controller_world.h"

#define END UINT32_MAX
#define ALL_MS 60000u

static const uint32_t first_two[] = {0, 1, END};

/* Sessions 1 and 2 are workers 0 and 1, of two that are listed. */
static inline struct world *of_two_joined(void)
{
    struct world *world = world_new(1, 2);

    world_all_up(world);
    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    world_forget(world);
    return world;
}

/* To the barrier of all members. */
static inline uint64_t come(struct world *world, uint32_t session, uint64_t round)
{
    return world_come(
        world, session,
        &(struct world_arrival){.name = "epoch", .round = round, .timeout_ms = ALL_MS});
}

static inline uint64_t come_of(struct world *world, uint32_t session, const uint32_t *workers)
{
    return world_come(world, session, &(struct world_arrival){.name = "some", .workers = workers});
}

/* Every session is heard of. */
static inline void live(struct world *world, uint32_t sessions, uint64_t us)
{
    for (const uint64_t until_us = world->now_us + us; world->now_us < until_us;) {
        world_pass(world, SECOND);
        for (uint32_t session = 1; session <= sessions; session++)
            world_report_renewed(world, 0, session);
    }
}
