/* SPDX-License-Identifier: Apache-2.0 */
/* lane_pool.h -- three members, and large parts of theirs that share a pool. */
#pragma once

#include "claims.h"
#include "lane_members.h"
#include "room.h"
#include "step.h"

#define FLOOR 1700u
#define COUNT 150u /* elements of a large part */
#define ROOM 1891u /* wire_part_cost of them, in one piece */
#define POOL 4000u /* two of them, and no third */

static const float ones[2 * COUNT] = {1};

static inline struct lane_config config_of(uint64_t pool_bytes)
{
    struct lane_config config = talk_config();

    config.pool_bytes_max = pool_bytes;
    config.staging_bytes_max = config.sessions_max * FLOOR + pool_bytes;
    return config;
}

/* Three members, and a variable that is as large as a part. */
static inline struct members open_three(struct talk *talk, uint64_t pool_bytes)
{
    assert_int_equal(wire_part_cost(COUNT * sizeof(float), 1, 0), ROOM);
    struct members members = begin_as(talk, 3, 3, config_of(pool_bytes));
    talk->aggregation = SUM;
    talk_variable(talk, VARIABLE, 2 * COUNT, UPDATE_ASSIGN_ADD);
    talk_forget(talk);
    return members;
}

static inline struct talk_part large(uint64_t sequence, uint64_t previous, uint64_t started)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = ones,
        .count = COUNT,
        .room = ROOM,
        .started = started};
}

static inline struct talk_part small(uint64_t sequence, uint64_t previous)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = ones,
        .count = 1};
}

/* Push 1 of that session asks, and is staged. */
static inline void
stage(struct talk *talk, const struct members *members, uint8_t session, uint64_t age)
{
    const struct talk_part part = large(1, 0, age);

    talk_ask(talk, members->push[session], &part);
    talk_part(talk, members->push[session], &part);
    talk_expect(talk, "resend 1\nstaged 1\n");
}

static inline void
ask(struct talk *talk, const struct members *members, uint8_t session, uint64_t age)
{
    const struct talk_part part = large(1, 0, age);

    talk_ask(talk, members->push[session], &part);
}
