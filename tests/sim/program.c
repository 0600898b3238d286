/* SPDX-License-Identifier: Apache-2.0 */
/* program.c -- what a client does with its session: creates the variables, pushes and pulls at
 * random, leaves. */
#include <assert.h>
#include <string.h>

#include "process_client.h"
#include "program_barrier.h"
#include "program_define.h"
#include "program_calls.h"
#include "program_collective.h"
#include "program_transfers.h"
#include "slots.h"

#define CREATE_RETRY_US 200000u
#define SEED_RETRY_US 2000000u
#define DRAIN_POLL_US 300000u
#define LOOK_US 500000u
#define LOOKS 60u

static uint32_t process_number(const struct client *client)
{
    return process_of_client(client->index);
}

static void act(struct world *world, const struct event *event);

/* Mostly at once, at times after a while, rarely after so long that the lease has to be renewed. */
static void act_later(struct world *world, struct client *client)
{
    uint64_t pause_us = world_below(world, 2 * world->delay_us_max);

    if (world_chance(world, 3))
        pause_us += world_below(world, 6000000);
    world_after(world, pause_us, process_number(client), act, client->index, NULL);
}

/* ---- creating */

/* The next variable, or the work. */
static void create_next(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];

    if (client->phase != PHASE_CREATING)
        return;
    if (client->assigns)
        program_push_seed(world, client);
    client->assigns = false;
    if (client->variable == SLOW && !world->slotted)
        client->variable = SEED;
    if (client->variable == SEED && !world->seeded)
        client->variable = MIX;
    if (client->variable == MIX && !world_has(world, FAULT_STEPS))
        client->variable = VARIABLES;
    if (client->variable < VARIABLES) {
        program_create(world, client);
        return;
    }
    client->phase = PHASE_WORKING;
    act_later(world, client);
}

/* The session takes its next event when its effects are carried out. */
static void create_after(struct world *world, struct client *client, uint64_t delay_us)
{
    assert(client->phase == PHASE_CREATING);
    world_after(world, delay_us, process_number(client), create_next, client->index, NULL);
}

static void created(struct world *world, struct client *client, const struct session_effect *effect)
{
    const wire_create_reply *reply = (const wire_create_reply *)effect->reply;

    if (client->phase != PHASE_CREATING)
        return;
    if (effect->error.status != SUMAC_OK) {
        if (effect->error.reason >= SUMAC_REASON_SESSION_UNKNOWN)
            return; /* the session says so, too */
        const bool is_short =
            world_was_short(world) && effect->error.reason == SUMAC_REASON_OUT_OF_MEMORY;
        made_if(world, MADE_create_no_memory, is_short);
        if (!is_short && effect->error.status != SUMAC_UNAVAILABLE &&
            effect->error.status != SUMAC_DEADLINE_EXCEEDED)
            checker_violation(world, "a create fails");
        create_after(world, client, is_short ? CREATE_RETRY_US : 0);
        return;
    }
    checker_created(world, (enum variable)client->variable, reply->variable);
    client->variable++;
    client->assigns = reply->assign;
    if (!reply->assign && client->variable == SEED + 1)
        world->checker->seed_assigned = true;
    create_after(world, client, 0);
}

/* ---- reading, without a session */

static bool all_known(const struct world *world)
{
    const struct sim_variable *variables = world->checker->variables;
    bool known = true;

    for (uint32_t i = 0; i < SEED; i++)
        known = known && (variables[i].known || (i >= SLOW && !world->slotted));
    return known;
}

/* What it is to read may never be created. */
static void look(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];

    if (client->phase != PHASE_CREATING)
        return;
    if (!all_known(world) && client->looks_left-- > 0) {
        world_after(world, LOOK_US, process_number(client), look, client->index, NULL);
        return;
    }
    if (!all_known(world))
        client->pulls_left = 0;
    client->phase = PHASE_WORKING;
    act_later(world, client);
}

static void begin_to_read(struct world *world, struct client *client)
{
    made(world, MADE_reader);
    client->phase = PHASE_CREATING;
    client->pushes_left = 0;
    client->looks_left = LOOKS;
    world_after(world, 0, process_number(client), look, client->index, NULL);
}

/* ---- what it does next */

static bool observers_work(const struct world *world)
{
    for (uint32_t i = world->member_count; i < world->client_count; i++)
        if (!world->clients[i]->member && world->clients[i]->phase != PHASE_GONE &&
            !world->clients[i]->hung)
            return true;
    return false;
}

static void leave(struct world *world, struct client *client, bool done)
{
    trace_say(
        world, "%s leaves%s", world->processes[process_number(client)].name,
        done ? "" : ", its task not done");
    client->phase = PHASE_LEAVING;
    client->leaves_done = done;
    struct session_event event = {.kind = SESSION_EVENT_LEAVE, .done = done};
    client_step(world, client, &event);
}

/* Its host is wanted for something else; what it has pushed is waited for. */
static bool quits(struct world *world, const struct client *client)
{
    return world_has(world, FAULT_QUIT) && client->member && world_chance(world, 4);
}

static void act(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];

    if (client->phase == PHASE_WORKING && client->pushes_left + client->pulls_left == 0 &&
        !program_collectives_left(world, client))
        client->phase = PHASE_DRAINING;
    if (client->phase == PHASE_WORKING && quits(world, client)) {
        made(world, MADE_left_undone);
        leave(world, client, false);
    } else if (client->phase == PHASE_WORKING) {
        const bool may_push = client->pushes_left > 0 && client->pushes_open < client->window;
        const bool may_pull = client->pulls_left > 0 && client->pulls_open < 3;
        if (may_push && (!may_pull || world_chance(world, 60)))
            program_push(world, client);
        else if (may_pull)
            program_pull(world, client);
        program_call(world, client);
        program_come(world, client);
        program_collective(world, client);
        program_define(world, client);
        act_later(world, client);
    } else if (client->phase == PHASE_DRAINING) {
        const bool open = client->pushes_open + client->pulls_open > 0 || client->calling != 0 ||
                          client->coming != 0 || client->defining != 0 ||
                          client->collectives_open > 0;
        if (!open && !(client->member && observers_work(world)))
            leave(world, client, true);
        else
            world_after(world, DRAIN_POLL_US, process_number(client), act, client->index, NULL);
    }
}

void program_begin(struct world *world, struct client *client)
{
    client->phase = PHASE_STARTING;
    client->variable = 0;
    client->assigns = client->seeds = false;
    client->scratches = 0;
    client->calling = 0;
    client->coming = client->heard_round = client->defining = 0;
    client->defined = 0;
    client->pushes_open = client->pulls_open = client->collectives_open = 0;
    program_collectives_begin(world, client);
}

/* ---- what the session says */

/* The process ends; another life may begin. */
static void over(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    const bool left = client->life->left_done;
    const bool back = !left && !world->twin && !world->checker->state_lost &&
                      client->life->joined && !world->checker->ps_exited && world_chance(world, 80);

    /* Of two that are one task, one: else they end each other's joins for ever. */
    const bool is_twin = world->twin && client->index == world->client_count - 1;
    const bool awaited =
        checker_is_awaited(world, client) && !world->checker->ps_exited && !is_twin;
    client_die(world, client, back || awaited);
}

static void end(struct world *world, struct client *client)
{
    client->phase = PHASE_LEAVING;
    world_after(world, 0, process_number(client), over, client->index, NULL);
}

/* Others wait for it. */
static void seed_again(struct world *world, const struct event *event)
{
    program_push_seed(world, world->clients[event->number]);
}

static void seeded(struct world *world, struct client *client, const struct sim_push *push)
{
    client->seeds = push->defect == DEFECT_NO_MEMORY;
    if (client->seeds)
        world_after(world, SEED_RETRY_US, process_number(client), seed_again, client->index, NULL);
}

void program_effect(struct world *world, struct client *client, const struct session_effect *effect)
{
    struct session_state state;

    switch (effect->kind) {
    case SESSION_EFFECT_JOINED:
        if (client->reader) {
            begin_to_read(world, client);
            break;
        }
        session_read(client->session, &state);
        checker_joined(world, client->life, &state);
        client->phase = PHASE_CREATING;
        create_after(world, client, 0);
        break;
    case SESSION_EFFECT_ANSWERED:
        if (!program_came(world, client, effect) && !program_defined(world, client, effect) &&
            program_answered(world, client, effect))
            created(world, client, effect);
        break;
    case SESSION_EFFECT_PUSHED:
        client->pushes_open--;
        if (program_result(world, client, effect))
            break;
        session_read(client->session, &state);
        checker_pushed(world, checker_find_push(world, effect->token), effect, state.ended);
        if (checker_find_push(world, effect->token)->seed)
            seeded(world, client, checker_find_push(world, effect->token));
        break;
    case SESSION_EFFECT_PULLED:
        client->pulls_open--;
        if (program_result(world, client, effect))
            break;
        checker_pulled(world, checker_find_pull(world, effect->token), effect);
        break;
    case SESSION_EFFECT_LEFT:
        client->life->left = true;
        client->life->left_us = world->now_us;
        client->life->left_done = client->leaves_done;
        checker_has_left(world, client->life);
        end(world, client);
        break;
    case SESSION_EFFECT_ENDED:
        trace_say(
            world, "%s: its session ends: %s", world->processes[process_number(client)].name,
            effect->error.text);
        checker_ended(world, client->life, &effect->error);
        end(world, client);
        break;
    case SESSION_EFFECT_ADDRESSES:
    case SESSION_EFFECT_CALL:
    case SESSION_EFFECT_CANCEL_CALL:
    case SESSION_EFFECT_OPEN_STREAM:
    case SESSION_EFFECT_CLOSE_STREAM:
    case SESSION_EFFECT_SEND_PUSH:
    case SESSION_EFFECT_SEND_PULL:
    case SESSION_EFFECT_LOG:
    case SESSION_EFFECT_WAKE:
        assert(false); /* the process carries these out */
        break;
    }
}

void program_check_waits(struct world *world, struct client *client)
{
    static const char *const waits[] = {
        [PHASE_STARTING] = "a join is never answered",
        [PHASE_CREATING] = "a create is never answered",
        [PHASE_WORKING] = "a client never comes to its end",
        [PHASE_DRAINING] = "a push or a pull is never answered",
        [PHASE_LEAVING] = "a leave is never answered",
    };

    if (client->phase != PHASE_GONE && !client->hung)
        checker_violation(world, waits[client->phase]);
}
