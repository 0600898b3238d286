/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective.h -- rounds of collectives in conversations with a lane: workers that come, ask
 * and acknowledge. */
#pragma once

#include "lane_talk.h"
#include "part_state.h"

#define HERE "h" /* at home on ps 1 of 2 */
#define WORKERS 3u
#define SESSIONS 6u

struct world {
    struct talk *talk;
    /* Streams, by session, of which there may be some more. */
    uint64_t push[SESSIONS + 1], pull[SESSIONS + 1];
    uint64_t last[SESSIONS + 1]; /* sequences */
    wire_collective collective;  /* that the next contributions are to */
    uint64_t tasks[WORKERS], shape[8];
    double weight;
    bool asks_beside;                                    /* the result, with the contribution */
    bool waits;                                          /* for a commit */
    void (*spoil)(wire_part *header, wire_piece *piece); /* NULL: it is as it should be */
};

/* No worker has joined. The next contributions are to a sum of four elements by workers 1 and 2. */
static inline void
begin_empty(struct world *world, struct talk *talk, const struct lane_config *config)
{
    memset(world, 0, sizeof *world);
    world->talk = talk;
    talk_start(talk, config);
    for (uint64_t i = 1; i <= WORKERS; i++)
        world->tasks[i - 1] = 2 * i + 1;
    wire_collective *collective = &world->collective;
    *collective = (wire_collective)WIRE_COLLECTIVE_INIT;
    collective->name = (wire_bytes){.len = strlen(HERE), .data = (uint8_t *)(uintptr_t)HERE};
    collective->round = 1;
    collective->tasks = world->tasks;
    collective->n_tasks = 2;
    collective->operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_SUM;
    collective->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    collective->shape = world->shape;
    collective->n_shape = 1;
    world->shape[0] = 4;
    world->weight = 1;
}

static inline void
begin_with(struct world *world, struct talk *talk, const struct lane_config *config)
{
    begin_empty(world, talk, config);
    for (uint8_t i = 1; i <= WORKERS; i++) {
        talk_open(talk, i);
        world->push[i] = talk_push_stream(talk, i, 1);
        world->pull[i] = talk_pull_stream(talk, i);
    }
    talk_forget(talk);
}

static inline void begin(struct world *world, struct talk *talk)
{
    const struct lane_config config = talk_config();

    begin_with(world, talk, &config);
}

/* Its number is the session's. */
static inline void
ask_beside(const struct world *world, uint8_t session, wire_push_request *request)
{
    static wire_pull_request pull;
    static wire_pull_request *pulls[] = {&pull};
    static wire_collective_round asked;

    pull = (wire_pull_request)WIRE_PULL_REQUEST_INIT;
    asked = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    asked.name = world->collective.name;
    asked.round = world->collective.round;
    pull.request = session;
    pull.collective = &asked;
    pull.timeout_ms = 120000;
    request->pulls = pulls;
    request->n_pulls = world->asks_beside;
}

/* Of that worker, in one piece. */
static inline void come(struct world *world, uint8_t session, const void *data, size_t bytes)
{
    wire_part header = WIRE_PART_INIT;
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    header.previous = world->last[session];
    header.sequence = ++world->last[session];
    header.first = header.last = true;
    header.eager = !world->waits;
    header.bytes = piece.bytes = bytes;
    header.weight = world->weight;
    header.collective = &world->collective;
    header.pieces = pieces;
    header.n_pieces = bytes > 0;
    if (world->spoil != NULL)
        world->spoil(&header, &piece);
    request.parts = parts;
    request.n_parts = 1;
    ask_beside(world, session, &request);
    talk_push(world->talk, world->push[session], &request, data, bytes);
}

#define come_with(world, session, ...)                                                             \
    come(world, session, (const float[]){__VA_ARGS__}, sizeof(const float[]){__VA_ARGS__})

static inline void ask_for(struct world *world, uint8_t session, const char *name, uint64_t round)
{
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    wire_collective_round asked = WIRE_COLLECTIVE_ROUND_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = world->pull[session], .pull_request = &pull};

    asked.name = (wire_bytes){.len = strlen(name), .data = (uint8_t *)(uintptr_t)name};
    asked.round = round;
    pull.request = session;
    pull.collective = &asked;
    pull.timeout_ms = 120000;
    talk_step(world->talk, &event);
}

static inline void ask(struct world *world, uint8_t session)
{
    ask_for(world, session, HERE, world->collective.round);
}

/* It wants no more of any round so far. */
static inline void acknowledge(struct world *world, uint8_t session)
{
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    commit.collectives_through = world->last[session];
    request.commit = &commit;
    talk_push(world->talk, world->push[session], &request, NULL, 0);
}

/* It left, and all of it that counts is applied. */
static inline void leave(struct world *world, uint8_t session)
{
    talk_close(world->talk, session);
    talk_decide(world->talk, session, world->last[session], 0);
}

/* Of contributions nothing is kept; that so many rounds failed is, for who comes late. */
static inline void expect_ends_kept(const struct world *world, uint32_t count)
{
    const struct lane *lane = world->talk->lane;

    assert_int_equal(lane->rounds.count, count);
    assert_int_equal(lane->rounds.kept_count, count);
    assert_int_equal(lane->rounds.beside_bytes, 0);
    assert_int_equal(lane->parts->contributions.used, 0);
    assert_int_equal(lane->parts->chunks.used, 0);
}

static inline void expect_nothing_kept(const struct world *world)
{
    expect_ends_kept(world, 0);
    assert_int_equal(world->talk->lane->rounds.room_bytes, 0);
}
