/* SPDX-License-Identifier: Apache-2.0 */
/* slices.h -- an operation's runs, cut into slices: what one COMPUTE, or one round of work in
 * place, has to do. */
#ifndef LANE_SLICES_H
#define LANE_SLICES_H

#include "operation_state.h"

#define SLICES_PER_BLOCK_MAX                                                                       \
    32u /* a block's cuts at SLICE_BYTES, and at the ends of a few chunks */

/* Slices as they are made, and the old blocks that they read. */
struct batch {
    struct update_slice *slices;
    struct block **held;
    uint32_t count, capacity;
    uint32_t held_count;
    uint64_t copied_bytes;
    uint64_t number;   /* marks the shards it writes to; 0: its slices run in order */
    bool lacks_memory; /* for a block beside one that a reader needs */
};

const struct update_function *slices_function(const struct lane_part *part, const struct run *run);
/* Fill the batch from where the operation is, up to its end, to what depends on a slice of this
 * batch, to the room for slices, to the bound on what is copied, or to a block that there is no
 * memory for. */
void slices_fill(struct lane *lane, struct batch *batch, struct operation *operation);

#endif
