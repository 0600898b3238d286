/* SPDX-License-Identifier: Apache-2.0 */
/* program_pull.c -- what a client pulls: all that is pushed to on some ps, in one moment of each;
 * it may not wait for it. */
#include <inttypes.h>
#include <string.h>

#include "process_client.h"
#include "program_transfers.h"
#include "slots.h"

#define PULL_TIMEOUT_MS 250000u
#define HURRY_MS_MAX 300u
#define AT_STEP_MS_MAX 3000u
#define READER_TIMEOUT_MS 40000u

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

/* A row, and where its version will be. */
static void want_row(
    struct world *world, struct sim_pull *pull, enum variable variable, uint32_t ps,
    enum sim_row row, struct session_piece *pieces, void *data)
{
    static const uint32_t nth[ROWS] = {[ROW_LEDGER_1] = 1, [ROW_GRAD_1] = 1};

    pull->versions_at[ps][row] = pull->piece_count;
    pull->snapshots[ps].has_version |= 1u << row;
    want(pieces, &pull->piece_count, checker_shard(world, variable, ps, nth[row]), data);
}

/* The same, each row by its index. */
static void by_rows(struct world *world, struct session_piece *piece)
{
    const uint64_t count = piece->bytes / sizeof(int64_t);
    int64_t *indices = world_take(world, count * sizeof *indices);

    made(world, MADE_pulled_rows);
    for (uint64_t i = 0; i < count; i++)
        indices[i] = (int64_t)i;
    piece->kind = WIRE_PIECE_ROW_INDICES;
    piece->rows = indices;
    piece->row_bytes = sizeof *indices;
}

/* The piece that was wanted last, in two ranges. */
static void split(struct world *world, struct sim_pull *pull, struct session_piece *pieces)
{
    struct session_piece *piece = &pieces[pull->piece_count - 1];
    const uint64_t first = world_between(world, 1, COLUMNS - 1) * sizeof(int64_t);

    made(world, MADE_in_ranges);
    pieces[pull->piece_count] = *piece;
    piece->bytes = first;
    piece = &pieces[pull->piece_count++];
    piece->data += first;
    piece->offset_bytes = first;
    piece->bytes -= first;
}

static void
want_ps(struct world *world, struct sim_pull *pull, uint32_t ps, struct session_piece *pieces)
{
    struct snapshot *snapshot = &pull->snapshots[ps];

    pull->asked |= (uint8_t)(1u << ps);
    memset(snapshot, 0xee, sizeof *snapshot);
    snapshot->has_version = 0;
    for (uint32_t row = 0; row < 2; row++) {
        want_row(world, pull, LEDGER, ps, ROW_LEDGER_0 + row, pieces, snapshot->ledger[row]);
        if (world_chance(world, 30))
            split(world, pull, pieces);
    }
    for (uint32_t row = 0; row < 2; row++)
        want_row(world, pull, GRAD, ps, ROW_GRAD_0 + row, pieces, snapshot->grad[row]);
    want_row(world, pull, LAST, ps, ROW_LAST, pieces, snapshot->last);
    if (world_has(world, FAULT_ROWS) && world_chance(world, 50))
        by_rows(world, &pieces[pull->piece_count - 1]);
    snapshot->has_slots = world->slotted && world_chance(world, 60);
    if (snapshot->has_slots) {
        want_row(world, pull, SLOW, ps, ROW_SLOW, pieces, snapshot->slow);
        want_row(world, pull, ADAM, ps, ROW_ADAM, pieces, snapshot->adam);
    }
    snapshot->has_seed = world->checker->seed_assigned;
    if (snapshot->has_seed)
        want_row(world, pull, SEED, ps, ROW_SEED, pieces, snapshot->seed);
}

/* Those who wait for an observer to be through would wait for ever for one that waits for them. */
static void bound_lag(
    struct world *world, const struct client *client, struct sim_pull *pull,
    struct session_pull *wanted)
{
    /* and who waits for a member that has contributed to a step, for one that waits for it */
    if (!client->member || world_has(world, FAULT_STEPS) || !world_chance(world, 40))
        return;
    made(world, MADE_bounded);
    wanted->bounded = true;
    wanted->lag_max = world_below(world, 3);
    const uint64_t finished = checker_steps_finished(world, client->life);
    pull->clock_awaited = finished > wanted->lag_max ? finished - wanted->lag_max : 0;
}

/* A step that may be over, or one that may want something of whoever asks. */
static void ask_at_step(struct world *world, struct sim_pull *pull, struct session_pull *wanted)
{
    const uint64_t last = checker_last_step(world);

    if (!world_has(world, FAULT_STEPS) || last == 0 || !world_chance(world, 50))
        return;
    pull->hurried = true;
    pull->own = false; /* the step says which are in it */
    const uint64_t latest = last > 1 ? 3 : 2;
    pull->at_step = wanted->at_step = last + 2 - latest + world_below(world, (uint32_t)latest);
    wanted->timeout_ms = world_between(world, 1, AT_STEP_MS_MAX);
}

/* Whether it is over by then or not. */
static void cancel(struct world *world, const struct event *event)
{
    struct sim_pull *pull = checker_find_pull(world, event->number);
    struct session_event forget = {.kind = SESSION_EVENT_CANCEL_PULL, .token = pull->token};

    pull->cancelled = true;
    client_step(world, event->data, &forget);
}

/* A reader does not hear which ps are gone. */
static uint32_t
timeout_ms(struct world *world, const struct client *client, const struct sim_pull *pull)
{
    if (client->reader)
        return READER_TIMEOUT_MS;
    return pull->hurried ? world_between(world, 1, HURRY_MS_MAX) : PULL_TIMEOUT_MS;
}

void program_pull(struct world *world, struct client *client)
{
    struct sim_pull *pull = checker_pull(world, client->life);
    struct session_piece pieces[10 * SIM_PS_MAX];

    client->pulls_left--;
    if (pull == NULL)
        return;
    const uint32_t chosen = program_some_ps(world);
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        if ((chosen >> ps & 1) != 0)
            want_ps(world, pull, ps, pieces);
    pull->own = !client->reader && world_chance(world, 75);
    pull->hurried = !client->reader && world_chance(world, 8);
    trace_say(
        world, "%s pulls from ps set %x%s: pull %" PRIu64,
        world->processes[process_of_client(client->index)].name, pull->asked,
        pull->own ? ", its own pushes included" : "", pull->token);
    struct session_pull wanted = {
        .token = pull->token,
        .pieces = pieces,
        .piece_count = pull->piece_count,
        .after_own_pushes = pull->own,
        .timeout_ms = timeout_ms(world, client, pull),
    };
    bound_lag(world, client, pull, &wanted);
    ask_at_step(world, pull, &wanted);
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &wanted};
    client->pulls_open++;
    client_step(world, client, &event);
    if (world_chance(world, 10))
        world_after(
            world, world_below(world, 6 * world->delay_us_max), process_of_client(client->index),
            cancel, pull->token, client);
}
