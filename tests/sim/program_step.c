/* SPDX-License-Identifier: Apache-2.0 */
/* program_step.c -- what a member contributes to its next synchronous step: 1 in its column of a
 * whole row of the ledger, and its values for `mix`, on the ps that have variables in that step. */
#include <string.h>

#include "process_client.h"
#include "program_transfers.h"

#define PART_BYTES_MAX ((2 * COLUMNS + 2 * MIX_COLUMNS) * 8u)

/* A contribution has the whole row: all members' cover the same elements. */
static uint8_t *
put_column(struct world *world, struct sim_push *push, uint32_t ps, uint32_t row, uint8_t *data)
{
    const struct sim_shard *shard = checker_shard(world, LEDGER, ps, row);

    ((int64_t *)(void *)data)[push->number] = 1;
    program_put_piece(push, shard, 0, shard->bytes, data);
    push->ledger[ps] |= (uint8_t)(1u << row);
    return data + shard->bytes;
}

static uint8_t *put_values(
    struct world *world, const struct client *client, struct sim_push *push, uint32_t ps,
    uint8_t *data)
{
    const struct sim_shard *shard = checker_shard(world, MIX, ps, 0);
    float *const values = (float *)(void *)data;

    if (world_has(world, FAULT_ROWS) && push->step % 2 == 0) {
        /* backwards, and each once more, with nothing to add */
        int64_t indices[2 * MIX_COLUMNS];
        for (uint32_t i = 0; i < 2 * MIX_COLUMNS; i++) {
            indices[i] = MIX_COLUMNS - 1 - i % MIX_COLUMNS;
            values[i] =
                i < MIX_COLUMNS ? steps_value(client->task, push->step, (uint32_t)indices[i]) : 0;
        }
        made(world, MADE_step_by_rows);
        program_put_rows(
            world, push, shard,
            &(struct sim_rows){
                .indices = indices,
                .count = 2 * MIX_COLUMNS,
                .row_bytes = sizeof *values,
                .data = data});
        return data + 2 * shard->bytes;
    }
    for (uint32_t i = 0; i < MIX_COLUMNS; i++)
        values[i] = steps_value(client->task, push->step, i);
    program_put_piece(push, shard, 0, shard->bytes, data);
    return data + shard->bytes;
}

/* On one of its ps: a shard that is none, another layout, or more than the others have. */
static void spoil(struct world *world, struct sim_push *push)
{
    const uint32_t chosen = world_below(world, push->piece_count);

    push->bad_ps = push->pieces[chosen].ps;
    if (world_chance(world, 50)) {
        push->defect = DEFECT_UNKNOWN_SHARD;
        push->pieces[chosen].shard_id += 1000;
    } else {
        push->defect = DEFECT_STALE_LAYOUT;
        push->pieces[chosen].layout_epoch += 1;
    }
}

/* Those that are over, as it has heard, are left out. */
static uint64_t next_step(const struct client *client)
{
    struct session_state state;

    session_read(client->session, &state);
    return state.open_step > client->life->last_step ? state.open_step
                                                     : client->life->last_step + 1;
}

void program_contribute(struct world *world, struct client *client, struct sim_push *push)
{
    push->step_before = client->life->last_step;
    push->step = next_step(client);
    client->life->last_step = push->step;
    push->sequence = ++client->life->sequence;
    push->differs = world_has(world, FAULT_REFUSE) && world_chance(world, 15);
    const uint32_t chosen = steps_participants(world, push->step);
    push->data_bytes = PART_BYTES_MAX * world->ps_count;
    uint8_t *data = push->data = world_take(world, push->data_bytes);
    for (uint32_t ps = 0; ps < world->ps_count; ps++) {
        if ((chosen >> ps & 1) == 0)
            continue;
        data = put_column(world, push, ps, 0, data);
        if (push->differs)
            data = put_column(world, push, ps, 1, data);
        data = put_values(world, client, push, ps, data);
    }
    if (world_has(world, FAULT_REFUSE) && world_chance(world, 15))
        spoil(world, push);
    trace_say(
        world, "%s pushes %u for step %u to ps set %x%s%s",
        world->processes[process_of_client(client->index)].name, push->number, (unsigned)push->step,
        push->participants, push->differs ? ", more than others" : "",
        push->defect == DEFECT_NONE ? "" : ", with a fault that one will refuse");
    program_submit(world, client, push, NULL, 0);
}
