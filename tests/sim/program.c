/* SPDX-License-Identifier: Apache-2.0 */
/* program.c -- what a client does with its session: creates the variables, pushes and pulls at
 * random, leaves. */
#include <assert.h>
#include <string.h>

#include "process_client.h"

#define PULL_TIMEOUT_MS 250000u
#define CREATE_RETRY_US 200000u
#define DRAIN_POLL_US 300000u

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

static void create(struct world *world, struct client *client)
{
    static const char *const names[VARIABLES] = {"ledger", "last", "grad", "seed"};
    static const uint64_t columns[VARIABLES] = {COLUMNS, LIVES_MAX, COLUMNS, SEED_COLUMNS};
    const enum variable which = (enum variable)client->variable;
    const uint64_t rows = which == SEED ? world->ps_count : 2 * world->ps_count;
    uint64_t shape[2] = {rows, columns[which]};
    struct session_state state;
    session_read(client->session, &state);
    wire_initializer initializer = WIRE_INITIALIZER_INIT;
    wire_partitioner partitioner = WIRE_PARTITIONER_INIT;
    wire_function function = WIRE_FUNCTION_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;
    initializer.kind =
        (Sumac__V1__Initializer__Kind)(which == SEED ? WIRE_INITIALIZER_ASSIGNED : WIRE_INITIALIZER_ZEROS);
    partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    partitioner.num_shards = rows;
    function.function = which == LEDGER || which == GRAD
                            ? SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN_ADD
                            : SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    variable.name = (char *)(uintptr_t)names[which];
    variable.data_type = (Sumac__V1__DataType)(which == GRAD ? SUMAC_FLOAT32 : SUMAC_INT64);
    variable.n_shape = 2;
    variable.shape = shape;
    variable.trainable = true;
    variable.initializer = &initializer;
    variable.partitioner = &partitioner;
    variable.function = &function;
    request.session_id = (wire_bytes){.data = state.session_id, .len = sizeof state.session_id};
    request.variable = &variable;
    client->creating = true;
    call_make(world, process_number(client), LANE_CALL_CREATE, UINT64_MAX, &request.base);
}

static void create_again(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    if (client->phase == PHASE_CREATING)
        create(world, client);
}

static void create_next(struct world *world, struct client *client)
{
    const uint32_t count = world->seeded ? VARIABLES : SEED;
    if (client->variable < count) {
        create(world, client);
        return;
    }
    client->phase = PHASE_WORKING;
    act_later(world, client);
}

static void put_piece(
    struct sim_push *push, const struct sim_shard *shard, uint64_t offset_bytes, uint64_t bytes,
    uint8_t *data)
{
    assert(push->piece_count < PIECES_MAX);
    push->pieces[push->piece_count++] = (struct session_piece){
        .ps = shard->ps,
        .shard_id = shard->id,
        .layout_epoch = shard->layout_epoch,
        .kind = WIRE_PIECE_VALUES,
        .offset_bytes = offset_bytes,
        .bytes = bytes,
        .data = data,
    };
    push->participants |= (uint8_t)(1u << shard->ps);
}

static void submit(
    struct world *world, struct client *client, struct sim_push *push,
    wire_function *const *functions, uint32_t function_count)
{
    const struct session_push wanted = {
        .token = push->token,
        .pieces = push->pieces,
        .piece_count = push->piece_count,
        .functions = functions,
        .function_count = function_count,
        .weight = 1,
        .finishes_step = world_chance(world, 50),
    };
    struct session_event event = {.kind = SESSION_EVENT_PUSH, .push = &wanted};
    client->pushes_open++;
    client_step(world, client, &event);
}

/* The creator's value, to every shard. */
static void push_seed(struct world *world, struct client *client)
{
    struct sim_push *push = checker_push(world, client->life);
    if (push == NULL)
        return;
    push->seed = true;
    push->sequence = ++client->life->sequence;
    push->data_bytes = world->ps_count * SEED_COLUMNS * sizeof(int64_t);
    push->data = world_take(world, push->data_bytes);
    for (uint32_t i = 0; i < world->ps_count * SEED_COLUMNS; i++)
        ((int64_t *)(void *)push->data)[i] = SEED_VALUE;
    for (uint32_t i = 0; i < world->checker->variables[SEED].rows; i++)
        put_piece(
            push, &world->checker->variables[SEED].shards[i], 0, SEED_COLUMNS * sizeof(int64_t),
            push->data + i * SEED_COLUMNS * sizeof(int64_t));
    trace_say(world, "worker %u assigns the seed: push %u", client->index, push->number);
    submit(world, client, push, NULL, 0);
}

void program_created(
    struct world *world, struct client *client, const wire_create_reply *reply,
    const struct sumac_error *error)
{
    if (client->phase != PHASE_CREATING)
        return;
    client->creating = false;
    if (reply == NULL) {
        if (error->reason >= SUMAC_REASON_SESSION_UNKNOWN)
            return; /* the session says so, too */
        if (error->status != SUMAC_UNAVAILABLE && error->status != SUMAC_DEADLINE_EXCEEDED)
            checker_violation(world, "a create fails");
        world_after(
            world, CREATE_RETRY_US, process_number(client), create_again, client->index, NULL);
        return;
    }
    checker_created(world, (enum variable)client->variable, reply->variable);
    client->variable++;
    if (reply->assign)
        push_seed(world, client);
    else if (client->variable == VARIABLES)
        world->checker->seed_assigned = true;
    create_next(world, client);
}

/* ---- pushing */

static uint8_t *put_number(struct sim_push *push, uint8_t *data, int64_t number)
{
    memcpy(data, &number, sizeof number);
    push->data_bytes += sizeof number;
    return data + sizeof number;
}

/* 1 in its column: the element alone, or in a whole row of zeros. Returns where its data ends. */
static uint8_t *put_one(
    struct world *world, struct sim_push *push, enum variable variable,
    const struct sim_shard *shard, uint8_t *data)
{
    const bool real = variable == GRAD;
    const size_t element = real ? sizeof(float) : sizeof(int64_t);
    const size_t bytes = push->wide ? COLUMNS * element : element;
    uint8_t *at = push->wide ? data + push->number * element : data;
    const float one_real =
        push->defect == DEFECT_NON_FINITE && push->bad_ps == shard->ps ? 1e30f * 1e30f : 1.0f;
    const int64_t one_whole = 1;
    memset(data, 0, bytes);
    memcpy(at, real ? (const void *)&one_real : (const void *)&one_whole, element);
    put_piece(push, shard, push->wide ? 0 : push->number * element, bytes, data);
    push->data_bytes += bytes;
    (void)world;
    return data + bytes;
}

static uint8_t *put_part(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data)
{
    const bool all = push->defect == DEFECT_TOO_LARGE && push->bad_ps == ps;
    const bool wide = push->wide;
    push->ledger[ps] = (uint8_t)(all ? 3 : world_between(world, 1, 3));
    push->grad[ps] = (uint8_t)(all ? 3 : world_chance(world, 50) ? world_below(world, 4) : 0);
    if (push->defect == DEFECT_NON_FINITE && push->bad_ps == ps)
        push->grad[ps] |= 1;
    for (uint32_t row = 0; row < 2; row++) {
        push->wide = all || (wide && row == 0);
        if ((push->ledger[ps] >> row & 1) != 0)
            data = put_one(world, push, LEDGER, checker_shard(world, LEDGER, ps, row), data);
        if ((push->grad[ps] >> row & 1) != 0)
            data = put_one(world, push, GRAD, checker_shard(world, GRAD, ps, row), data);
    }
    push->wide = wide;
    put_piece(
        push, checker_shard(world, LAST, ps, 0), push->session->number * sizeof(int64_t),
        sizeof(int64_t), data);
    return put_number(push, data, push->number + 1);
}

/* Spoil one piece on the ps that is to refuse. */
static void put_defect(struct world *world, struct sim_push *push)
{
    for (uint32_t i = 0; i < push->piece_count; i++) {
        struct session_piece *piece = &push->pieces[i];
        if (piece->ps != push->bad_ps || piece->bytes == 0)
            continue;
        if (push->defect == DEFECT_UNKNOWN_SHARD)
            piece->shard_id += 1000;
        else if (push->defect == DEFECT_STALE_LAYOUT)
            piece->layout_epoch += 1;
        else if (push->defect == DEFECT_BEYOND_THE_END)
            piece->offset_bytes = checker_shard(world, LEDGER, piece->ps, 0)->bytes;
        else if (push->defect == DEFECT_WRONG_DATA_TYPE)
            piece->function = 1;
        return;
    }
}

static uint32_t some_ps(struct world *world)
{
    uint32_t chosen = 0;
    while (chosen == 0)
        chosen = world_below(world, 1u << world->ps_count);
    return world_chance(world, 30) ? 1u << world_below(world, world->ps_count) : chosen;
}

static void push(struct world *world, struct client *client)
{
    static wire_hyperparameter *no_hyperparameters[1];
    struct sim_push *push = checker_push(world, client->life);
    client->pushes_left--;
    if (push == NULL)
        return;
    const uint32_t chosen = some_ps(world);
    push->wide = world_chance(world, 30);
    if (world_has(world, FAULT_REFUSE) && world_chance(world, 30))
        push->defect = (enum defect)world_between(world, 1, DEFECTS - 1);
    do
        push->bad_ps = world_below(world, world->ps_count);
    while ((chosen >> push->bad_ps & 1) == 0);
    uint8_t *data = push->data = world_take(world, 4096u * world->ps_count);
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        if ((chosen >> ps & 1) != 0)
            data = put_part(world, push, ps, data);
    put_defect(world, push);
    if (push->defect != DEFECT_TOO_LARGE)
        push->sequence = ++client->life->sequence;
    trace_say(
        world, "%s pushes %u to ps set %x%s", world->processes[process_number(client)].name,
        push->number, push->participants,
        push->defect == DEFECT_NONE ? "" : ", with a fault that one will refuse");
    wire_function *adam = world_take(world, sizeof *adam);
    wire_function **functions = world_take(world, sizeof *functions);
    *adam = (wire_function)WIRE_FUNCTION_INIT;
    adam->function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM;
    adam->hyperparameters = no_hyperparameters;
    functions[0] = adam;
    submit(world, client, push, functions, push->defect == DEFECT_WRONG_DATA_TYPE ? 1 : 0);
}

/* ---- pulling */

static void
want(struct session_piece *pieces, uint32_t *count, const struct sim_shard *shard, void *data)
{
    pieces[(*count)++] = (struct session_piece){
        .ps = shard->ps,
        .shard_id = shard->id,
        .layout_epoch = shard->layout_epoch,
        .kind = WIRE_PIECE_VALUES,
        .bytes = shard->bytes,
        .data = data,
    };
}

static void
want_ps(struct world *world, struct sim_pull *pull, uint32_t ps, struct session_piece *pieces)
{
    struct snapshot *snapshot = &pull->snapshots[ps];
    pull->asked |= (uint8_t)(1u << ps);
    pull->versions_at[ps] = pull->piece_count;
    memset(snapshot, 0xee, sizeof *snapshot);
    for (uint32_t row = 0; row < 2; row++)
        want(
            pieces, &pull->piece_count, checker_shard(world, LEDGER, ps, row),
            snapshot->ledger[row]);
    for (uint32_t row = 0; row < 2; row++)
        want(pieces, &pull->piece_count, checker_shard(world, GRAD, ps, row), snapshot->grad[row]);
    want(pieces, &pull->piece_count, checker_shard(world, LAST, ps, 0), snapshot->last);
    snapshot->has_seed = world->checker->seed_assigned;
    if (snapshot->has_seed)
        want(pieces, &pull->piece_count, checker_shard(world, SEED, ps, 0), snapshot->seed);
}

static void pull(struct world *world, struct client *client)
{
    struct sim_pull *pull = checker_pull(world, client->life);
    struct session_piece pieces[6 * SIM_PS_MAX];
    client->pulls_left--;
    if (pull == NULL)
        return;
    const uint32_t chosen = some_ps(world);
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        if ((chosen >> ps & 1) != 0)
            want_ps(world, pull, ps, pieces);
    pull->own = world_chance(world, 75);
    trace_say(
        world, "%s pulls from ps set %x%s: pull %llu",
        world->processes[process_number(client)].name, pull->asked,
        pull->own ? ", its own pushes included" : "", (unsigned long long)pull->token);
    const struct session_pull wanted = {
        .token = pull->token,
        .pieces = pieces,
        .piece_count = pull->piece_count,
        .after_own_pushes = pull->own,
        .timeout_ms = PULL_TIMEOUT_MS,
    };
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &wanted};
    client->pulls_open++;
    client_step(world, client, &event);
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
    if (client->phase == PHASE_WORKING && client->pushes_left + client->pulls_left == 0)
        client->phase = PHASE_DRAINING;
    if (client->phase == PHASE_WORKING && quits(world, client)) {
        made(world, MADE_left_undone);
        leave(world, client, false);
    } else if (client->phase == PHASE_WORKING) {
        const bool may_push = client->pushes_left > 0 && client->pushes_open < client->window;
        const bool may_pull = client->pulls_left > 0 && client->pulls_open < 3;
        if (may_push && (!may_pull || world_chance(world, 60)))
            push(world, client);
        else if (may_pull)
            pull(world, client);
        act_later(world, client);
    } else if (client->phase == PHASE_DRAINING) {
        const bool open = client->pushes_open + client->pulls_open > 0;
        if (!open && !(client->member && observers_work(world)))
            leave(world, client, true);
        else
            world_after(world, DRAIN_POLL_US, process_number(client), act, client->index, NULL);
    }
}

void program_begin(struct world *world, struct client *client)
{
    (void)world;
    client->phase = PHASE_STARTING;
    client->variable = 0;
    client->creating = false;
    client->pushes_open = client->pulls_open = 0;
}

/* ---- what the session says */

/* The process ends; another life may begin. */
static void over(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    const bool left = client->life->left_done;
    const bool back = !left && !world->twin && !world->checker->state_lost &&
                      client->life->joined && !world->checker->ps_exited && world_chance(world, 80);
    client_die(world, client, back);
}

static void end(struct world *world, struct client *client)
{
    client->phase = PHASE_LEAVING;
    world_after(world, 0, process_number(client), over, client->index, NULL);
}

void program_effect(struct world *world, struct client *client, const struct session_effect *effect)
{
    struct session_state state;
    switch (effect->kind) {
    case SESSION_EFFECT_JOINED:
        session_read(client->session, &state);
        checker_joined(world, client->life, &state);
        client->phase = PHASE_CREATING;
        create_next(world, client);
        break;
    case SESSION_EFFECT_PUSHED:
        client->pushes_open--;
        session_read(client->session, &state);
        checker_pushed(world, checker_find_push(world, effect->token), effect, state.ended);
        break;
    case SESSION_EFFECT_PULLED:
        client->pulls_open--;
        checker_pulled(world, checker_find_pull(world, effect->token), effect);
        break;
    case SESSION_EFFECT_LEFT:
        client->life->left = true;
        client->life->left_done = client->leaves_done;
        end(world, client);
        break;
    case SESSION_EFFECT_ENDED:
        trace_say(
            world, "%s: its session ends: %s", world->processes[process_number(client)].name,
            effect->error.text);
        checker_ended(world, client->life, &effect->error);
        end(world, client);
        break;
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
