/* SPDX-License-Identifier: Apache-2.0 */
/* part_state.h -- what the files of this room share, and nobody else sees. */
#ifndef LANE_PART_STATE_H
#define LANE_PART_STATE_H

#include "part.h"

#define STAGING_CHUNK_BYTES 1048576u
#define RUN_ALIGNMENT_BYTES 16u /* no smaller than any element */

struct parts {
    struct pool parts, chunks, refusals;
    struct chunk_owner pool_owner; /* of the chunks that bytes are copied to: lane->bytes */
    LIST(struct chunk) recorded;   /* of parts that are over: records of this step lie in them */
    uint64_t last;                 /* number of a part */
    uint64_t marking;              /* number of the part whose marks are on its shards (piece.c) */
};

/* The part that looked up the shard last, by its number, and the place that the shard has in it. */
struct __attribute__((may_alias)) shard_touch {
    uint64_t by;
    uint64_t index;
};

_Static_assert(sizeof(struct shard_touch) <= SHARD_PART_WORDS * sizeof(uint64_t), "it has room");

static inline struct shard_touch *touch_of(struct shard *shard)
{
    return (struct shard_touch *)(void *)&shard->of_user[SHARD_OPERATION_WORDS];
}

/* Make sure that a run of some bytes can begin here, aligned. False: no memory. */
bool lane_staging_align(struct lane *lane, struct lane_part *part, uint64_t bytes);

/* checksum.c */
void *lane_checksum_begin(struct lane *lane);
void lane_checksum_update(void *state, const void *data, size_t bytes);
uint64_t lane_checksum_end(struct lane *lane, void *state);

#endif
