/* SPDX-License-Identifier: Apache-2.0 */
/* world.c -- the scheduler: a heap of events, virtual time, randomness from one seed. */
#include "world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "faults.h"
#include "network.h"
#include "process_client.h"
#include "process_ps.h"

#define WORLD_BYTES_MAX (64u << 20)
#define FOR_EVER_US 100000000000ull

void world_init(struct world *world)
{
    *world = (struct world){0};
    source_init(&world->source);
    arena_init(&world->arena, &memory_heap, WORLD_BYTES_MAX);
    arena_init(&world->scratch, &memory_heap, WORLD_BYTES_MAX);
}

void world_deinit(struct world *world)
{
    arena_deinit(&world->scratch);
    arena_deinit(&world->arena);
    source_deinit(&world->source);
    free(world->events);
}

void world_drop(struct world *world)
{
    source_drop(&world->source);
    arena_reset(&world->scratch);
    arena_reset(&world->arena);
    world->event_count = 0;
}

bool world_has(const struct world *world, enum fault fault)
{
    return (world->plan->faults & (uint32_t)fault) != 0;
}

uint32_t world_grant(const struct world *world)
{
    if (world_has(world, FAULT_ROOM))
        return SIM_FLOOR_BYTES;
    return world_has(world, FAULT_ROWS) || world_has(world, FAULT_RATES) ||
                   world_has(world, FAULT_FUNCTIONS)
               ? SIM_ROWS_GRANT_BYTES
               : SIM_GRANT_BYTES;
}

void *world_take(struct world *world, size_t bytes)
{
    void *data = arena_take_zeroed(&world->arena, bytes == 0 ? 1 : bytes);

    if (data == NULL) {
        fprintf(
            stderr, "sim: seed %" PRIu64 " takes more than %u bytes\n", world->seed,
            WORLD_BYTES_MAX);
        exit(2);
    }
    return data;
}

/* ---- randomness: splitmix64 (Steele, Lea, Flood, OOPSLA'14) */

uint64_t world_bits(struct world *world)
{
    uint64_t z = world->random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t world_below(struct world *world, uint32_t bound)
{
    assert(bound > 0);
    return (uint32_t)((world_bits(world) >> 32) * bound >> 32);
}

uint32_t world_between(struct world *world, uint32_t first, uint32_t last)
{
    assert(first <= last);
    return first + world_below(world, last - first + 1);
}

bool world_chance(struct world *world, uint32_t percent)
{
    return world_below(world, 100) < percent;
}

uint64_t world_delay_us(struct world *world)
{
    const uint32_t delay_us = world_between(world, 20, world->delay_us_max);

    return world_chance(world, 5) ? (uint64_t)delay_us * world_between(world, 10, 100) : delay_us;
}

/* ---- events */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void heap_add(struct world *world, const struct event *event)
{
    if (world->event_count == world->event_capacity) {
        world->event_capacity = world->event_capacity == 0 ? 256 : 2 * world->event_capacity;
        world->events = realloc(world->events, world->event_capacity * sizeof *world->events);
        if (world->events == NULL)
            abort();
    }
    uint32_t i = world->event_count++;
    while (i > 0 && before(event, &world->events[(i - 1) / 2])) {
        world->events[i] = world->events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    world->events[i] = *event;
}

static struct event heap_take(struct world *world)
{
    const struct event first = world->events[0];
    const struct event last = world->events[--world->event_count];
    const uint32_t count = world->event_count;
    uint32_t i = 0;

    for (uint32_t child = 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && before(&world->events[child + 1], &world->events[child]))
            child++;
        if (!before(&world->events[child], &last))
            break;
        world->events[i] = world->events[child];
        i = child;
    }
    world->events[i] = last;
    return first;
}

void world_at(
    struct world *world, uint64_t at_us, uint32_t process, event_handler *handler, uint64_t number,
    void *data)
{
    const struct event event = {
        .at_us = at_us < world->now_us ? world->now_us : at_us,
        .order = world->order++,
        .handler = handler,
        .process = process,
        .life = process < SIM_PROCESSES ? world->processes[process].life : 0,
        .number = number,
        .data = data,
    };

    heap_add(world, &event);
}

void world_after(
    struct world *world, uint64_t delay_us, uint32_t process, event_handler *handler,
    uint64_t number, void *data)
{
    world_at(world, world->now_us + delay_us, process, handler, number, data);
}

bool world_was_short(const struct world *world)
{
    uint64_t failed = 0;

    for (uint32_t i = 0; i < SIM_PROCESSES; i++)
        failed += world->shortages[i].failed;
    return failed > 0;
}

bool world_alive(const struct world *world, uint32_t process, uint32_t life)
{
    return world->processes[process].running && world->processes[process].life == life;
}

uint64_t world_awake_us(const struct world *world)
{
    const bool sleeps = world->processes[0].suspended_until_us > world->now_us;

    return sleeps ? world->ps0_sleeps_us : world->now_us - world->ps0_slept_us;
}

void world_suspend(struct world *world, uint32_t process, uint64_t until_us)
{
    struct process *sleeper = &world->processes[process];

    trace_say(
        world, "%s is suspended for %" PRIu64 " ms", sleeper->name,
        ((until_us - world->now_us) / 1000));
    if (process == 0) {
        world->ps0_sleeps_us = world_awake_us(world);
        world->ps0_slept_us += until_us - world->now_us;
    }
    checker_sleeps(world, process, until_us);
    sleeper->suspended_until_us = until_us;
}

void world_hang(struct world *world, uint32_t process)
{
    world->processes[process].hung = true;
    world_suspend(world, process, world->now_us + FOR_EVER_US);
    network_process_hung(world, process);
}

/* An event of a process that sleeps comes when it wakes, after those that came before it. */
static void dispatch(struct world *world, struct event event)
{
    if (event.process < SIM_PROCESSES) {
        const struct process *process = &world->processes[event.process];
        if (!world_alive(world, event.process, event.life))
            return;
        if (process->suspended_until_us > world->now_us) {
            event.at_us = process->suspended_until_us;
            heap_add(world, &event);
            return;
        }
    }
    event.handler(world, &event);
    arena_reset(&world->scratch);
}

/* ---- a run */

static void begin(struct world *world, uint64_t seed, const struct plan *plan, uint64_t broken)
{
    world_drop(world);
    world->seed = seed;
    world->plan = plan;
    world->broken = broken;
    world->random_state = seed * 0x2545f4914f6cdd1du + (uint64_t)(plan - plans);
    world->now_us = SIM_START_US;
    world->order = 0;
    world->events_run = 0;
    world->trace.lines = 0;
    world->faults_over = false;
    world->ps0_slept_us = world->ps0_sleeps_us = world->ps0_may_sleep_us = 0;
    memset(world->processes, 0, sizeof world->processes);
    for (uint32_t i = 0; i < SIM_PROCESSES; i++)
        shortage_init(&world->shortages[i], &world->source.memory);
    faults_draw(world);
    world->checker = checker_make(world);
    world->network = network_make(world);
    for (uint32_t i = 0; i < world->ps_count; i++)
        world->ps[i] = ps_make(world, i);
    for (uint32_t i = 0; i < world->client_count; i++)
        world->clients[i] = client_make(world, i);
}

uint32_t world_run(struct world *world, uint64_t seed, const struct plan *plan, uint64_t broken)
{
    begin(world, seed, plan, broken);
    const uint64_t end_us = SIM_START_US + SIM_SECONDS_MAX * 1000000ull;
    while (world->event_count > 0 && !checker_over(world)) {
        const struct event event = heap_take(world);
        if (event.at_us > end_us) { /* nothing but what happens to one that hangs may be left */
            world->now_us = end_us;
            world->checker->unrested = !checker_over(world);
            break;
        }
        if (++world->events_run > SIM_EVENTS_MAX) {
            world->checker->unrested = true;
            break;
        }
        world->now_us = event.at_us;
        dispatch(world, event);
        faults_maybe(world);
    }
    checker_at_rest(world);
    for (uint32_t i = 0; i < world->client_count; i++)
        client_drop(world, i);
    for (uint32_t i = 0; i < world->ps_count; i++)
        ps_drop(world, i);
    checker_memory(world);
    return checker_violations(world);
}
