/* SPDX-License-Identifier: Apache-2.0 */
/* hazards.c -- a ps hangs for ever, crashes, or hears SIGTERM. */
#include "hazards.h"

#include "checker.h"
#include "process_ps.h"
#include "ps_effects.h"

#define PASSES_MAX 12u            /* takes of memory until one fails */
#define SHORTAGE_US_MAX 10000000u /* nobody gives up within that time */

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
    if (world->ps[index]->told_end_us == 0)
        world->ps[index]->told_end_us = world->now_us;
    ps_step(world, world->ps[index], &event);
}

static void relieve(struct world *world, const struct event *event)
{
    shortage_end(&world->shortages[event->number]);
}

void hazard_shorten_some(struct world *world)
{
    const bool is_ps = world_chance(world, 60);
    const uint32_t index = is_ps ? world_below(world, world->ps_count)
                                 : process_of_client(world_below(world, world->client_count));
    uint32_t fails = 1;

    if (!world->processes[index].running)
        return;
    if (world_chance(world, 50))
        fails = world_between(world, 2, world_chance(world, 10) ? 120 : 40);
    trace_say(world, "%s will get no memory, %u times", world->processes[index].name, fails);
    shortage_begin(&world->shortages[index], world_below(world, PASSES_MAX), fails);
    world_after(world, SHORTAGE_US_MAX, index, relieve, index, NULL);
}

bool hazard_fail_some_take(struct world *world, uint32_t ps)
{
    struct shortage *shortage = &world->shortages[ps];

    if (!world_has(world, FAULT_SHORTAGE) || shortage->fails > 0 || !world_chance(world, 30))
        return false;
    shortage_begin(shortage, world_below(world, 4), 1);
    return true;
}

void hazard_fail_no_more(struct world *world, uint32_t ps)
{
    made_if(world, MADE_pull_step_no_memory, world->shortages[ps].fails == 0);
    shortage_end(&world->shortages[ps]);
}
