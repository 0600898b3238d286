/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c -- the sizes of a run and its faults: cuts, kills, suspended processes, connections that
 * stall. */
#include <inttypes.h>
#include "faults.h"

#include "checker.h"
#include "hazards.h"
#include "network.h"
#include "process_client.h"

#define SECOND_US 1000000ull

const struct plan plans[] = {
    {"calm", 1, 0},
    {"pulls", 1, FAULT_PULLS | FAULT_REFUSE},
    {"streams", 2, FAULT_DROP | FAULT_REFUSE | FAULT_STALL},
    {"kill", 2, FAULT_KILL | FAULT_DROP | FAULT_REFUSE | FAULT_QUIT},
    {"suspect", 2, FAULT_KILL | FAULT_DROP | FAULT_SUSPECT | FAULT_REFUSE},
    {"pulls2", 3,
     FAULT_PULLS | FAULT_KILL | FAULT_DROP | FAULT_REFUSE | FAULT_SUSPECT | FAULT_STALL},
    {"join", 2, FAULT_JOIN | FAULT_KILL | FAULT_DROP},
    {"sleep", 2, FAULT_SLEEP | FAULT_DROP | FAULT_PULLS},
    {"crash", 1, FAULT_CRASH | FAULT_DROP | FAULT_PULLS},
    {"hang", 1, FAULT_HANG | FAULT_CRASH | FAULT_DROP | FAULT_PULLS},
    {"terminate", 1, FAULT_TERMINATE | FAULT_DROP | FAULT_PULLS | FAULT_QUIT},
    {"short", 1, FAULT_SHORTAGE | FAULT_DROP | FAULT_PULLS | FAULT_REFUSE | FAULT_KILL},
    {"storm", 2,
     FAULT_DROP | FAULT_REFUSE | FAULT_KILL | FAULT_SUSPECT | FAULT_PULLS | FAULT_STALL},
    {"storm2", 3,
     FAULT_DROP | FAULT_REFUSE | FAULT_KILL | FAULT_SUSPECT | FAULT_PULLS | FAULT_STALL |
         FAULT_JOIN | FAULT_SLEEP | FAULT_QUIT},
    {"barriers", 2, FAULT_BARRIERS | FAULT_DROP | FAULT_QUIT},
    {"barriers2", 3,
     FAULT_BARRIERS | FAULT_DROP | FAULT_KILL | FAULT_SUSPECT | FAULT_STALL | FAULT_JOIN |
         FAULT_SLEEP | FAULT_QUIT},
    {"barriers3", 1, FAULT_BARRIERS | FAULT_DROP | FAULT_CRASH | FAULT_TERMINATE | FAULT_SHORTAGE},
    {"steps", 2, FAULT_STEPS | FAULT_DROP | FAULT_REFUSE | FAULT_STALL},
    {"steps2", 3, FAULT_STEPS | FAULT_KILL | FAULT_DROP | FAULT_REFUSE | FAULT_STALL | FAULT_QUIT},
    {"steps3", 3,
     FAULT_STEPS | FAULT_KILL | FAULT_DROP | FAULT_SUSPECT | FAULT_SLEEP | FAULT_JOIN |
         FAULT_PULLS},
    {"quorum", 2, FAULT_STEPS | FAULT_QUORUM | FAULT_DROP | FAULT_REFUSE | FAULT_STALL},
    {"quorum2", 3,
     FAULT_STEPS | FAULT_QUORUM | FAULT_KILL | FAULT_DROP | FAULT_REFUSE | FAULT_STALL |
         FAULT_QUIT},
    {"quorum3", 3,
     FAULT_STEPS | FAULT_QUORUM | FAULT_KILL | FAULT_DROP | FAULT_SUSPECT | FAULT_SLEEP |
         FAULT_JOIN | FAULT_PULLS},
    {"loss", 0, FAULT_STEPS | FAULT_SUSPECT | FAULT_STALL}, /* for one that asks for it by name */
    {"steps4", 1, FAULT_STEPS | FAULT_DROP | FAULT_CRASH | FAULT_TERMINATE | FAULT_SHORTAGE},
    {"quorum4", 1,
     FAULT_STEPS | FAULT_QUORUM | FAULT_DROP | FAULT_CRASH | FAULT_TERMINATE | FAULT_SHORTAGE},
    {"rows", 2, FAULT_ROWS | FAULT_DROP | FAULT_REFUSE | FAULT_STALL | FAULT_PULLS},
    {"rows2", 2, FAULT_ROWS | FAULT_STEPS | FAULT_DROP | FAULT_REFUSE | FAULT_KILL | FAULT_PULLS},
    {"rows3", 1, FAULT_ROWS | FAULT_SHORTAGE | FAULT_CRASH | FAULT_DROP | FAULT_PULLS},
    {"rates", 2, FAULT_RATES | FAULT_DROP | FAULT_REFUSE | FAULT_STALL | FAULT_PULLS},
    {"rates2", 1,
     FAULT_RATES | FAULT_DROP | FAULT_KILL | FAULT_SUSPECT | FAULT_CRASH | FAULT_SHORTAGE},
    {"functions", 1,
     FAULT_FUNCTIONS | FAULT_DROP | FAULT_KILL | FAULT_STALL | FAULT_JOIN | FAULT_SUSPECT |
         FAULT_PULLS},
    {"collectives", 2, FAULT_COLLECTIVES | FAULT_DROP | FAULT_REFUSE | FAULT_STALL | FAULT_QUIT},
    {"collectives0", 1, FAULT_COLLECTIVES | FAULT_DROP},
    {"collectives2", 3,
     FAULT_COLLECTIVES | FAULT_DROP | FAULT_REFUSE | FAULT_KILL | FAULT_SUSPECT | FAULT_SLEEP |
         FAULT_JOIN | FAULT_STALL},
    {"collectives3", 1,
     FAULT_COLLECTIVES | FAULT_DROP | FAULT_KILL | FAULT_CRASH | FAULT_TERMINATE | FAULT_SHORTAGE},
    {"room", 3, FAULT_ROOM | FAULT_DROP | FAULT_REFUSE | FAULT_STALL},
    {"room2", 3,
     FAULT_ROOM | FAULT_KILL | FAULT_DROP | FAULT_REFUSE | FAULT_SUSPECT | FAULT_STALL |
         FAULT_PULLS | FAULT_QUIT},
    {"room3", 3, FAULT_ROOM | FAULT_STEPS | FAULT_DROP | FAULT_REFUSE | FAULT_KILL | FAULT_STALL},
    {"room4", 2,
     FAULT_ROOM | FAULT_STEPS | FAULT_QUORUM | FAULT_DROP | FAULT_SUSPECT | FAULT_JOIN |
         FAULT_SLEEP},
    {"room5", 1, FAULT_ROOM | FAULT_DROP | FAULT_CRASH | FAULT_TERMINATE | FAULT_SHORTAGE},
    {"cancel", 2, FAULT_CANCEL | FAULT_DROP | FAULT_REFUSE | FAULT_STALL | FAULT_PULLS},
    {"cancel2", 2,
     FAULT_CANCEL | FAULT_KILL | FAULT_DROP | FAULT_SUSPECT | FAULT_STALL | FAULT_QUIT},
    {"cancel3", 2,
     FAULT_CANCEL | FAULT_ROOM | FAULT_DROP | FAULT_REFUSE | FAULT_KILL | FAULT_STALL},
    {"cancel4", 1, FAULT_CANCEL | FAULT_STEPS | FAULT_ROWS | FAULT_DROP | FAULT_REFUSE},
    {"cancel5", 1, FAULT_CANCEL | FAULT_ROOM | FAULT_DROP | FAULT_CRASH | FAULT_SHORTAGE},
    {"cancel6", 1,
     FAULT_CANCEL | FAULT_STEPS | FAULT_QUORUM | FAULT_ROOM | FAULT_DROP | FAULT_KILL |
         FAULT_STALL | FAULT_SUSPECT},
};

const uint32_t plan_count = sizeof plans / sizeof plans[0];

const struct plan *plan_of(uint64_t seed)
{
    uint32_t shares = 0, plan = 0;

    for (uint32_t i = 0; i < plan_count; i++)
        shares += plans[i].share;
    for (uint64_t at = seed % shares; at >= plans[plan].share; plan++)
        at -= plans[plan].share;
    return &plans[plan];
}

static uint32_t one_of(struct world *world, const uint32_t *values, uint32_t count)
{
    return values[world_below(world, count)];
}

/* Steps that lack somebody are what it is for. */
static void draw_quorum(struct world *world)
{
    static const uint32_t deadlines_ms[] = {0, LANE_DEADLINE_AUTO, 50, 2000};

    world->loss_fails = false;
    world->quorum = world_between(world, 1, world->member_count);
    world->step_deadline_ms = one_of(world, deadlines_ms, 4);
}

static void draw_collectives(struct world *world, bool small)
{
    world->collective_rounds = world_between(world, 1, small ? 2 : 5);
    world->collective_bytes_max = world_chance(world, 10) ? world_between(world, 1000, 8000) : 0;
}

/* Room for a part or two; and, where members contribute, for one of each and an ordinary one. */
static uint64_t draw_pool(struct world *world)
{
    const uint32_t members = world->client_count;

    if (!world_has(world, FAULT_ROOM))
        return 0;
    if (world_has(world, FAULT_STEPS))
        return (uint64_t)members * SIM_CONTRIBUTION_BYTES + SIM_LARGE_BYTES;
    return world_between(world, SIM_LARGE_BYTES, 2 * SIM_LARGE_BYTES);
}

void faults_draw(struct world *world)
{
    static const uint32_t delays_us[] = {200, 3000, 40000};
    static const uint32_t chunks[] = {0, 64, 130};
    static const uint32_t inlines[] = {0, 1, 64};
    static const uint32_t copied[] = {0, 1, 512};
    static const uint32_t pull_chunks[] = {0, 16, 96};
    static const uint32_t blocks[] = {0, 64};
    static const uint32_t gathered[] = {0, 1, 64};
    static const uint32_t parts[] = {0, 1, 3};
    static const uint32_t voided[] = {0, 1, 2};
    static const uint32_t closed[] = {0, 1, 2};
    static const uint32_t settled[] = {0, 1, 2};
    static const uint32_t ended[] = {0, 1, 2};
    const bool storm = world->plan->name[0] == 's' && world->plan->name[2] == 'o';
    const bool small = !storm && world_chance(world, 50);

    /* Small worlds have short traces, large ones rare orders. */
    world->ps_count = small ? world_between(world, 1, SIM_PS_MAX) : SIM_PS_MAX;
    world->member_count = small ? world_between(world, 1, 2) : world_between(world, 2, 3);
    world->client_count = world->member_count + (world_chance(world, 40) ? 1 : 0);
    world->twin = world_has(world, FAULT_SUSPECT) && world_chance(world, 50) &&
                  world->client_count < SIM_CLIENTS_MAX;
    if (world->twin)
        world->client_count++;
    world->twin_waits = world->twin;
    world->ps0_told_itself = world_has(world, FAULT_JOIN) && world_chance(world, 25);
    if (world->ps0_told_itself)
        made(world, MADE_ps0_told_itself);
    world->pushes_max = small ? 4 : 14;
    world->fault_budget = world_between(world, 1, small ? 3 : storm ? 30 : 12);
    world->fault_rate = world_between(world, 5, 80);
    world->delay_us_max = one_of(world, delays_us, 3);
    world->records = world_chance(world, 50);
    world->seeded = world_chance(world, 30);
    world->chunk_bytes = one_of(world, chunks, 3);
    world->shuffles = world->chunk_bytes == 0 && world_has(world, FAULT_DROP);
    world->inline_bytes = one_of(world, inlines, 3);
    world->copied_pull_bytes_max = one_of(world, copied, 3);
    world->pull_chunk_bytes = one_of(world, pull_chunks, 3);
    world->block_bytes = one_of(world, blocks, 2);
    world->gathered_bytes_max = one_of(world, gathered, 3);
    world->slotted = world_chance(world, 50) || world_has(world, FAULT_RATES);
    world->parts_max = one_of(world, parts, 3);
    world->voided_max = one_of(world, voided, 3);
    world->closed_max = one_of(world, closed, 3);
    world->settled_max = one_of(world, settled, 3);
    world->ended_per_step_max = one_of(world, ended, 3);
    world->barrier_listed = world_has(world, FAULT_BARRIERS) && world_chance(world, 50);
    world->loss_fails = world_has(world, FAULT_STEPS) && world_chance(world, 50);
    world->orders_late_us = world_has(world, FAULT_STEPS) && world_chance(world, 50)
                                ? world_below(world, 60) * world->delay_us_max
                                : 0;
    world->quorum = 0;
    if (world_has(world, FAULT_QUORUM))
        draw_quorum(world);
    world->collective_rounds = world->collective_bytes_max = 0;
    if (world_has(world, FAULT_COLLECTIVES))
        draw_collectives(world, small);
    world->pool_bytes = draw_pool(world);
}

/* ---- faults */

static void cut_some_stream(struct world *world)
{
    const uint32_t count = network_count(world);

    for (uint32_t tries = 0; count > 0 && tries < 8; tries++) {
        struct stream *stream = network_at(world, world_below(world, count));
        if (!stream->over) {
            network_cut(world, stream);
            return;
        }
    }
}

static bool is_there(const struct world *world, const struct client *client)
{
    const struct process *process = &world->processes[process_of_client(client->index)];

    return process->running && !client->hung && client->phase != PHASE_GONE &&
           !client->life->ended && !client->life->left &&
           process->suspended_until_us <= world->now_us;
}

/* A client that is there, or NULL. */
static struct client *some_client(struct world *world)
{
    struct client *client = world->clients[world_below(world, world->client_count)];

    return is_there(world, client) ? client : NULL;
}

static void kill_client(struct world *world, struct client *client)
{
    trace_say(world, "%s is killed", world->processes[process_of_client(client->index)].name);
    if (client->life->joined && world->processes[0].running && world_chance(world, 25))
        call_leave_behind(
            world, process_of_client(client->index), client->life->id, client->life->sequence);
    const bool back = world_chance(world, 60);
    client_die(world, client, back || checker_is_awaited(world, client));
}

static void suspend_client(struct world *world, struct client *client)
{
    const bool for_ever = world_chance(world, 20) && !checker_is_awaited(world, client);
    const uint64_t us = SECOND_US * world_between(world, 9, 30);

    client->hung = for_ever;
    if (for_ever) {
        made(world, MADE_client_hung);
        checker_died(world, client->life);
        world_hang(world, process_of_client(client->index));
    } else {
        world_suspend(world, process_of_client(client->index), world->now_us + us);
    }
}

/* Alive, and heard by nobody: what it says arrives when it has been given up. */
static void isolate_client(struct world *world, struct client *client)
{
    const uint32_t process = process_of_client(client->index);

    trace_say(world, "nothing passes between %s and any ps", world->processes[process].name);
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        network_stall(world, process, ps, world->now_us + SECOND_US * world_between(world, 9, 14));
}

static void suspend_ps(struct world *world, uint32_t ps, uint64_t us)
{
    const struct process *process = &world->processes[ps];

    if (process->running && process->suspended_until_us <= world->now_us)
        world_suspend(world, ps, world->now_us + us);
}

/* Short enough that the lease, renewed each third of it, holds. */
static void stall_some(struct world *world)
{
    const uint32_t client = world_below(world, world->client_count);
    const uint32_t ps = world_below(world, world->ps_count);
    const uint64_t us = world_below(world, 4000000);

    trace_say(
        world, "nothing passes between %s and %s for %" PRIu64 " ms",
        world->processes[process_of_client(client)].name, world->processes[ps].name, (us / 1000));
    network_stall(world, process_of_client(client), ps, world->now_us + us);
}

static void go_wrong(struct world *world, enum fault fault, struct client *client)
{
    switch (fault) {
    case FAULT_DROP:
        cut_some_stream(world);
        break;
    case FAULT_KILL:
        if (client != NULL)
            kill_client(world, client);
        break;
    case FAULT_SUSPECT:
        if (client != NULL && world_chance(world, 50))
            suspend_client(world, client);
        else if (client != NULL)
            isolate_client(world, client);
        break;
    case FAULT_CRASH:
        hazard_crash_some_ps(world);
        break;
    case FAULT_HANG:
        hazard_hang_some_ps(world);
        break;
    case FAULT_SHORTAGE:
        hazard_shorten_some(world);
        break;
    case FAULT_TERMINATE:
        hazard_terminate_some_ps(world);
        break;
    case FAULT_SLEEP:
        if (world->now_us > world->ps0_may_sleep_us) {
            const uint64_t us = SECOND_US * world_between(world, 11, 40);
            /* or the others give up */
            world->ps0_may_sleep_us = world->now_us + us + 25 * SECOND_US;
            suspend_ps(world, 0, us);
        }
        break;
    case FAULT_STALL:
        if (world_chance(world, 50))
            stall_some(world);
        else
            suspend_ps(world, world_below(world, world->ps_count), world_below(world, 2000000));
        break;
    case FAULT_REFUSE: /* what clients do, not what befalls them */
    case FAULT_PULLS:
    case FAULT_JOIN:
    case FAULT_QUIT:
    case FAULT_BARRIERS:
    case FAULT_STEPS:
    case FAULT_QUORUM:
    case FAULT_ROWS:
    case FAULT_FUNCTIONS:
    case FAULT_RATES:
    case FAULT_COLLECTIVES:
    case FAULT_ROOM:
    case FAULT_CANCEL:
        break;
    }
}

void faults_maybe(struct world *world)
{
    static const enum fault kinds[] = {FAULT_DROP,      FAULT_DROP,    FAULT_KILL,  FAULT_SUSPECT,
                                       FAULT_SLEEP,     FAULT_STALL,   FAULT_CRASH, FAULT_HANG,
                                       FAULT_TERMINATE, FAULT_SHORTAGE};

    if (world->fault_budget == 0 || world_below(world, world->fault_rate) != 0)
        return;
    const enum fault fault = kinds[world_below(world, sizeof kinds / sizeof kinds[0])];
    if (!world_has(world, fault))
        return;
    world->fault_budget--;
    go_wrong(world, fault, some_client(world));
}

static bool trapped(struct world *world, enum fault fault, uint32_t percent)
{
    if (world->fault_budget == 0 || !world_has(world, fault) || !world_chance(world, percent))
        return false;
    world->fault_budget--;
    return true;
}

void faults_after_send(struct world *world, struct stream *stream)
{
    if (trapped(world, FAULT_DROP, 3))
        network_cut(world, stream);
}

/* What comes of synchronous steps is said once, and again on a new stream alone. */
void faults_after_report(struct world *world, struct stream *stream, const wire_peer_report *report)
{
    const bool says_it = report->n_contributed > 0 || report->step_over > 0;

    if (says_it && world_has(world, FAULT_QUORUM) && trapped(world, FAULT_DROP, 12))
        network_cut(world, stream);
}

void faults_after_delivery(struct world *world, struct stream *stream)
{
    struct client *client = world->clients[stream->caller - SIM_PS_MAX];

    if (!world_alive(world, stream->caller, stream->caller_life))
        return;
    if (trapped(world, FAULT_DROP, 3))
        network_cut(world, stream);
    if (!is_there(world, client))
        return;
    if (trapped(world, FAULT_KILL, 3))
        kill_client(world, client);
    else if (trapped(world, FAULT_SUSPECT, 2))
        go_wrong(world, FAULT_SUSPECT, client);
    else if (world->twin_waits && world_chance(world, 5))
        client_start_twin(world);
}
