/* SPDX-License-Identifier: Apache-2.0 */
/* program_push.c -- what a client pushes: its column in some rows, whole or in several runs, now
 * and then with a fault. */
#include <assert.h>
#include <string.h>

#include "process_client.h"
#include "program_transfers.h"
#include "slots.h"

struct session_piece *program_put_piece(
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
        .based_on = push->number % 3, /* counts for the statistics only */
        .data = data,
    };
    push->participants |= (uint8_t)(1u << shard->ps);
    return &push->pieces[push->piece_count - 1];
}

/* Some are committed by then, and count. */
static void cancel(struct world *world, const struct event *event)
{
    struct client *client = event->data;
    struct sim_push *push = checker_find_push(world, event->number);
    struct session_event given_up = {.kind = SESSION_EVENT_CANCEL_PUSH, .token = push->token};
    struct session_state state;

    if (push->fate != FATE_UNDER_WAY || push->session != client->life)
        return;
    push->cancelled = true;
    trace_say(
        world, "%s cancels push %u", world->processes[process_of_client(client->index)].name,
        push->number);
    client_step(world, client, &given_up);
    session_read(client->session, &state);
    if (push->fate != FATE_REFUSED || push->sequence <= state.last_sequence || push->step != 0)
        return;
    /* It had no number yet: the next one of its session gets that. A contribution keeps it. */
    for (uint32_t i = push->number + 1; i < world->checker->push_count; i++)
        if (world->checker->pushes[i]->session == push->session &&
            world->checker->pushes[i]->sequence != 0)
            world->checker->pushes[i]->sequence--;
    push->sequence = 0;
    client->life->sequence--;
}

void program_submit(
    struct world *world, struct client *client, struct sim_push *push,
    wire_function *const *functions, uint32_t function_count)
{
    const struct session_push wanted = {
        .token = push->token,
        .pieces = push->pieces,
        .piece_count = push->piece_count,
        .functions = functions,
        .function_count = function_count,
        .weight = push->step == 0 ? 1 : steps_weight(client->task),
        .synchronous = push->step != 0,
        .step_least = push->step,
        .finishes_step = world_chance(world, 50),
    };
    struct session_event event = {.kind = SESSION_EVENT_PUSH, .push = &wanted};

    push->finishes_step = wanted.finishes_step;
    client->pushes_open++;
    client_step(world, client, &event);
    if (push->fate == FATE_CLOSED) /* at once: its session is over, and counts no more steps */
        push->finishes_step = false;
    if (push->sequence != 0 && push->fate == FATE_REFUSED) { /* at once: it has no number */
        client->life->sequence--;
        if (push->step != 0)
            client->life->last_step = push->step_before;
        push->sequence = 0;
    }
    if (world_has(world, FAULT_CANCEL) && !push->seed && push->fate == FATE_UNDER_WAY &&
        world_chance(world, 40))
        world_after(
            world, world_below(world, 3 * world->delay_us_max), process_of_client(client->index),
            cancel, push->token, client);
}

/* The creator's value, to every shard. */
void program_push_seed(struct world *world, struct client *client)
{
    struct sim_push *push = checker_push(world, client->life);

    if (push == NULL)
        return;
    push->seed = client->seeds = true;
    push->sequence = ++client->life->sequence;
    push->data_bytes = world->ps_count * SEED_COLUMNS * sizeof(int64_t);
    push->data = world_take(world, push->data_bytes);
    for (uint32_t i = 0; i < world->ps_count * SEED_COLUMNS; i++)
        ((int64_t *)(void *)push->data)[i] = SEED_VALUE;
    for (uint32_t i = 0; i < world->checker->variables[SEED].rows; i++)
        program_put_piece(
            push, &world->checker->variables[SEED].shards[i], 0, SEED_COLUMNS * sizeof(int64_t),
            push->data + i * SEED_COLUMNS * sizeof(int64_t));
    trace_say(world, "worker %u assigns the seed: push %u", client->index, push->number);
    program_submit(world, client, push, NULL, 0);
}

/* The last is one that was defined. */
enum named { NAMED_ADAM = 1, NAMED_ASSIGN, NAMED_SUBTRACT, NAMED_SUM, NAMED };

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
    program_put_piece(push, shard, push->wide ? 0 : push->number * element, bytes, data);
    push->data_bytes += bytes;
    (void)world;
    return data + bytes;
}

/* The same 1 in several runs: 3 are added and 2 taken away; or 0 is added to the next column, right
 * behind the 1 that is assigned. */
static uint8_t *
put_runs(struct world *world, struct sim_push *push, const struct sim_shard *shard, uint8_t *data)
{
    const uint64_t at = push->number * sizeof(int64_t);
    const bool is_assigned = world_chance(world, 50) && push->number + 1 < COLUMNS;
    const int64_t first = is_assigned ? 1 : 3, second = is_assigned ? 0 : 2;

    made(world, MADE_in_runs);
    memcpy(data, &first, sizeof first);
    memcpy(data + sizeof first, &second, sizeof second);
    program_put_piece(push, shard, at, sizeof first, data)->function =
        is_assigned ? NAMED_ASSIGN : 0;
    program_put_piece(
        push, shard, is_assigned ? at + sizeof first : at, sizeof second, data + sizeof first)
        ->function = is_assigned ? 0 : NAMED_SUBTRACT;
    push->data_bytes += sizeof first + sizeof second;
    return data + sizeof first + sizeof second;
}

struct session_piece *program_put_rows(
    struct world *world, struct sim_push *push, const struct sim_shard *shard,
    const struct sim_rows *rows)
{
    int64_t *indices = world_take(world, rows->count * sizeof *indices);

    memcpy(indices, rows->indices, rows->count * sizeof *indices);
    struct session_piece *piece =
        program_put_piece(push, shard, 0, rows->count * rows->row_bytes, rows->data);
    piece->kind = WIRE_PIECE_ROW_INDICES;
    piece->rows = indices;
    piece->row_bytes = rows->row_bytes;
    return piece;
}

/* The session's element of `last`: alone, or as a row that is assigned twice, of which the last
 * counts, now and then before a range of the same element, or behind one. */
static uint8_t *put_last(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data)
{
    const struct sim_shard *shard = checker_shard(world, LAST, ps, 0);
    const int64_t row = (int64_t)push->session->number;
    const int64_t right = push->number + 1, wrong = right + 1000;
    const uint64_t at = (uint64_t)row * sizeof right;
    const bool by_rows = world_has(world, FAULT_ROWS) && world_chance(world, 70);
    const bool behind = by_rows && world_chance(world, 25);
    const bool before = by_rows && !behind && world_chance(world, 25);
    const struct sim_rows rows = {
        .indices = (const int64_t[]){row, row}, .count = 2, .row_bytes = sizeof right};

    made_if(world, MADE_by_rows, by_rows);
    made_if(world, MADE_rows_overlap, behind || before);
    if (behind) {
        program_put_piece(push, shard, at, sizeof wrong, data);
        data = put_number(push, data, wrong);
    }
    if (by_rows) {
        program_put_rows(world, push, shard, &rows)->data = data;
        data = put_number(push, put_number(push, data, wrong), before ? wrong : right);
    }
    if (!by_rows || before) {
        program_put_piece(push, shard, at, sizeof right, data);
        data = put_number(push, data, right);
    }
    return data;
}

static uint8_t *put_slotted(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data)
{
    push->ledger[ps] = 1;
    data = put_one(world, push, LEDGER, checker_shard(world, LEDGER, ps, 0), data);
    data = slots_put(world, push, ps, data);
    return put_last(world, push, ps, data);
}

static uint8_t *put_part(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data)
{
    if (push->slotted)
        return put_slotted(world, push, ps, data);
    const bool all = push->defect == DEFECT_TOO_LARGE && push->bad_ps == ps;
    const bool wide = push->wide;
    push->ledger[ps] = (uint8_t)(all ? 3 : world_between(world, 1, 3));
    push->grad[ps] = (uint8_t)(all ? 3 : world_chance(world, 50) ? world_below(world, 4) : 0);
    if (push->defect == DEFECT_NON_FINITE && push->bad_ps == ps)
        push->grad[ps] |= 1;
    for (uint32_t row = 0; row < 2; row++) {
        push->wide = all || (wide && row == 0);
        if ((push->ledger[ps] >> row & 1) != 0 && push->in_runs && row == 0)
            data = put_runs(world, push, checker_shard(world, LEDGER, ps, row), data);
        else if ((push->ledger[ps] >> row & 1) != 0)
            data = put_one(world, push, LEDGER, checker_shard(world, LEDGER, ps, row), data);
        if ((push->grad[ps] >> row & 1) != 0)
            data = put_one(world, push, GRAD, checker_shard(world, GRAD, ps, row), data);
    }
    push->wide = wide;
    return put_last(world, push, ps, data);
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
            piece->function = NAMED_ADAM;
        return;
    }
}

/* It does what the variable's own function does. */
static void apply_by_the_defined(struct world *world, struct sim_push *push)
{
    for (uint32_t i = 0; i < push->piece_count; i++) {
        struct session_piece *piece = &push->pieces[i];
        bool is_grad = false;
        for (uint32_t row = 0; row < 2; row++)
            is_grad |= piece->shard_id == checker_shard(world, GRAD, piece->ps, row)->id;
        if (is_grad)
            piece->function = NAMED_SUM;
        made_if(world, MADE_function_used, is_grad);
    }
}

uint32_t program_some_ps(struct world *world)
{
    uint32_t chosen = 0;

    while (chosen == 0)
        chosen = world_below(world, 1u << world->ps_count);
    return world_chance(world, 30) ? 1u << world_below(world, world->ps_count) : chosen;
}

/* The functions that pieces may name, by number. */
static wire_function *const *name_functions(struct world *world, uint32_t defined)
{
    const uint32_t kinds[NAMED - 1] = {
        SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM,
        SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN,
        SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN_SUB, defined};
    wire_function **functions = world_take(world, (NAMED - 1) * sizeof *functions);

    for (uint32_t i = 0; i < NAMED - 1; i++) {
        functions[i] = world_take(world, sizeof *functions[i]);
        *functions[i] = (wire_function)WIRE_FUNCTION_INIT;
        functions[i]->function = (Sumac__V1__UpdateFunction)kinds[i];
    }
    return functions;
}

/* Those that have ended with a run do not come again, and the next one's steps would wait. And who
 * waits for the seed contributes to none, and it comes behind the step. */
static bool may_contribute(const struct world *world, const struct client *client)
{
    return world_has(world, FAULT_STEPS) && client->member && !world->checker->state_lost &&
           !(client->seeds && world_has(world, FAULT_SHORTAGE));
}

void program_push(struct world *world, struct client *client)
{
    struct sim_push *push = checker_push(world, client->life);

    client->pushes_left--;
    if (push == NULL)
        return;
    if (may_contribute(world, client) && world_chance(world, 60)) {
        program_contribute(world, client, push);
        return;
    }
    const uint32_t chosen = program_some_ps(world);
    push->wide = world_chance(world, 30);
    if (world_has(world, FAULT_REFUSE) && world_chance(world, 30))
        push->defect = (enum defect)world_between(world, 1, DEFECTS - 1);
    if ((push->defect == DEFECT_TOO_LARGE || push->defect == DEFECT_CORRUPTED) &&
        (world_has(world, FAULT_ROWS) || world_has(world, FAULT_FUNCTIONS)))
        push->defect = DEFECT_UNKNOWN_SHARD; /* the grant has room, and nothing has a checksum */
    if (push->defect == DEFECT_TOO_LARGE &&
        (world_has(world, FAULT_RATES) || world_has(world, FAULT_ROOM)))
        push->defect = DEFECT_UNKNOWN_SHARD;
    push->slotted = push->defect == DEFECT_NONE && world->slotted && world_chance(world, 30);
    push->wide = push->wide && !push->slotted;
    push->has_checksum = push->defect == DEFECT_CORRUPTED || world_chance(world, 15);
    push->has_checksum = push->has_checksum && !world_has(world, FAULT_ROWS);
    push->in_runs =
        push->defect == DEFECT_NONE && !push->wide && !push->slotted && world_chance(world, 25);
    do
        push->bad_ps = world_below(world, world->ps_count);
    while ((chosen >> push->bad_ps & 1) == 0);
    wire_function *const *rates = NULL;
    if (push->slotted && world_has(world, FAULT_RATES) && world_chance(world, 60))
        rates = slots_draw_rate(world, push);
    uint8_t *data = push->data = world_take(world, 4096u * world->ps_count);
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        if ((chosen >> ps & 1) != 0)
            data = put_part(world, push, ps, data);
    if (client->defined != 0)
        apply_by_the_defined(world, push);
    put_defect(world, push);
    if (push->defect != DEFECT_TOO_LARGE)
        push->sequence = ++client->life->sequence;
    trace_say(
        world, "%s pushes %u to ps set %x%s",
        world->processes[process_of_client(client->index)].name, push->number, push->participants,
        push->defect == DEFECT_NONE ? "" : ", with a fault that one will refuse");
    program_submit(
        world, client, push, rates != NULL ? rates : name_functions(world, client->defined),
        client->defined != 0                     ? NAMED_SUM
        : push->defect == DEFECT_WRONG_DATA_TYPE ? NAMED_ADAM
        : push->in_runs                          ? NAMED_SUBTRACT
                                                 : rates != NULL);
}
