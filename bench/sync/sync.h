/* SPDX-License-Identifier: Apache-2.0 */
/* sync.h -- what members wait for when they wait for each other. */
#pragma once

#include "path.h"

#define SYNC_MEMBERS 4u
#define SYNC_BYTES 16777216u
#define TIMINGS_MAX 1024u

/* How long a thing took, each time. */
struct timing {
    const char *name;
    uint64_t taken_ns[TIMINGS_MAX];
    unsigned count;
};

static inline void timing_begin(struct timing *timing)
{
    timing->taken_ns[timing->count] = now_ns();
}

static inline void timing_end(struct timing *timing)
{
    timing->taken_ns[timing->count] = now_ns() - timing->taken_ns[timing->count];
    timing->count++;
}

extern struct path barrier_path;

/* Each as often as there are rounds, in turn. */
void step_measure(struct timing *each, struct timing *together, unsigned rounds);
void fused_measure(struct timing *plain, struct timing *step, unsigned rounds);
