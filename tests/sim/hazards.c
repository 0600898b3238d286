/* SPDX-License-Identifier: Apache-2.0 */
/* hazards.c -- a ps hangs for ever, crashes, or hears SIGTERM. */
#include "hazards.h"

#include "checker.h"
#include "process_ps.h"
#include "ps_effects.h"

static bool is_up(const struct world *world, uint32_t ps)
{
    const struct process *process = &world->processes[ps];
    return process->running && !world->ps[ps]->ending && !world->ps[ps]->exited &&
           process->suspended_until_us <= world->now_us;
}

/* It keeps its connections, takes nothing from them and says nothing: only its silence tells. */
void hazard_hang_some_ps(struct world *world)
{
    const uint32_t index = world_below(world, world->ps_count);

    if (world->checker->state_lost || !is_up(world, index))
        return;
    made(world, MADE_ps_hung);
    world->ps[index]->crashed = true; /* as good as: nobody hears of its state again */
    checker_ps_crashed(world);
    world_hang(world, index);
}

void hazard_crash_some_ps(struct world *world)
{
    const uint32_t index = world_below(world, world->ps_count);
    const bool second = world->checker->state_lost;

    if (!world->processes[index].running || world->ps[index]->ending ||
        (second && !world_chance(world, 20)))
        return;
    made(world, second ? MADE_second_crash : MADE_ps_crashed);
    ps_crash(world, index, world_chance(world, 70));
}

void hazard_terminate_some_ps(struct world *world)
{
    const uint32_t index = world_below(world, world->ps_count);
    struct lane_event event = {.kind = LANE_EVENT_TERMINATE};

    if (!is_up(world, index))
        return;
    made(world, index == 0 ? MADE_ps0_terminated : MADE_ps_terminated);
    trace_say(world, "%s is told to terminate", world->processes[index].name);
    checker_terminated(world);
    ps_step(world, world->ps[index], &event);
}
