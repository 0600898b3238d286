/* SPDX-License-Identifier: Apache-2.0 */
/* lane_scarce.h -- one conversation with a lane, held as often as the lane takes memory in it: each
 * time another take fails.
 *
 * The clients do as clients should: when a stream ends, they open another one and say all of it
 * again. After that the same conversation, with the next number, must succeed without a refusal.
 * Then the sessions leave. The lane must hold what it holds when no take fails.
 */
#pragma once

#include "each_take.h"
#include "lane_talk.h"

#define SCARCE_SESSIONS 2u
#define SCARCE_ANSWERS_MAX 8u

struct scarce {
    struct talk *talk;
    uint64_t run;         /* of takes that fail */
    uint64_t number;      /* of what is said: pushes, steps and rounds have it */
    uint64_t generations; /* of push streams, so far */
    uint64_t push[SCARCE_SESSIONS + 1], pull[SCARCE_SESSIONS + 1]; /* by session; 0: a reader's */
    /* Sequences, where the conversation counts them: the last of each session, of that number. */
    uint64_t last[SCARCE_SESSIONS + 1], of[SCARCE_SESSIONS + 1];
};

/* What is said in answer; '#' is the number. */
struct scarce_answer {
    const char *good;
    const char *otherwise[2]; /* that are right where a take has failed */
};

struct scarce_conversation {
    void (*configure)(struct talk *talk, struct lane_config *config); /* NULL: as it is */
    void (*prepare)(struct scarce *scarce); /* before memory is short; NULL: nothing */
    void (*say)(struct scarce *scarce);
    struct scarce_answer answers[SCARCE_ANSWERS_MAX];
    uint32_t pushes; /* of each session for each number; 0: none */
};

/* Without records, and with them. Another lane replays the records, and each take of it fails once.
 */
void scarce_each_take(const struct scarce_conversation *conversation);

/* The part of that number for one shard, with its own commit. */
static inline struct talk_part
scarce_part(const struct scarce *scarce, uint64_t shard, const float *values, uint32_t count)
{
    return (struct talk_part){
        .sequence = scarce->number,
        .previous = scarce->number - 1,
        .eager = true,
        .shard = shard,
        .shards = 1,
        .values = values,
        .count = count};
}
/* Streams that are there, or are opened. */
uint64_t scarce_push(struct scarce *scarce, uint32_t session);
uint64_t scarce_pull(struct scarce *scarce, uint32_t session);
/* Was that said since the number is this one? */
bool scarce_said(const struct scarce *scarce, const char *what);
/* ps 0 gives an order, and again if its stream breaks or the ps has no memory for it. */
void scarce_order(struct scarce *scarce, void (*order)(struct scarce *scarce));
