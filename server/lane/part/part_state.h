/* SPDX-License-Identifier: Apache-2.0 */
/* part_state.h -- what the files of this room share, and nobody else sees. */
#pragma once

#include "contribution.h"

#define STAGING_CHUNK_BYTES 1048576u
#define RUN_ALIGNMENT_BYTES 16u /* no smaller than any element */

struct parts {
    struct pool parts, chunks, refusals, contributions, claims;
    LIST(struct contribution) put_aside; /* that wait no more, of rounds that are used */
    LIST(struct contribution) lent;      /* of no round any more: bytes of theirs are */
    struct chunk_owner pool_owner;       /* of the chunks that bytes are copied to: lane->bytes */
    struct chunks recorded; /* of parts that are over: records of this step lie in them */
    uint64_t round_uses;    /* of all rounds */
    uint64_t last;          /* number of a part */
    uint64_t marking;       /* number of the part whose marks are on its shards (piece.c) */
    uint64_t rows_left;     /* of those that a message may bring */
};

static inline size_t row_piece_bytes(uint32_t count)
{
    return sizeof(struct row_piece) + count * sizeof(uint64_t);
}

/* May a mean be divided by the sum of such weights? Else the part is refused. */
bool lane_part_check_weight(struct lane *lane, struct lane_part *part);

/* piece.c: what take_rows.c needs of it, too */
/* What can be said of a piece without its shard. */
bool lane_piece_check(struct lane *lane, struct lane_part *part, const wire_piece *piece);
/* Its shard, with all that is to be right of it and the function; NULL: the part is refused. */
struct shard *
lane_piece_check_shard(struct lane *lane, struct lane_part *part, const wire_piece *piece);
/* A new run of the shard, empty yet. NULL: the part is refused. */
struct run *lane_piece_add_run(
    struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece);

/* Make sure that a run of some bytes can begin here, aligned, the first `unit` of them together.
 * False: no memory. */
bool lane_staging_align(struct lane *lane, struct lane_part *part, uint64_t bytes, uint64_t unit);

/* checksum.c */
void *lane_checksum_begin(struct lane *lane);
void lane_checksum_update(void *state, const void *data, size_t bytes);
uint64_t lane_checksum_end(struct lane *lane, void *state);
