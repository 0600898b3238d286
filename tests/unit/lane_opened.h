/* SPDX-License-Identifier: Apache-2.0 */
/* lane_opened.h -- a conversation that is under way: session 1 is open, and pushes to one variable
 * of four elements. */
#pragma once

#include "lane_talk.h"

#define VARIABLE 5u

static const float one[] = {1, 1, 1, 1, 1, 1};

/* Its push stream. */
static inline uint64_t begin_with(struct talk *talk, const struct lane_config *config)
{
    talk_start(talk, config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static inline uint64_t begin(struct talk *talk) { return begin_with(talk, NULL); }

/* One for each element. */
static inline struct talk_part part(uint64_t sequence, uint64_t previous)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = one,
        .count = 4};
}

static inline void send(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous)
{
    const struct talk_part sent = part(sequence, previous);

    talk_part(talk, stream, &sent);
}
