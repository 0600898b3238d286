/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h -- what is counted of pushes and pulls, for each session and for a whole ps. */
#pragma once

#include <stdint.h>

#define HISTOGRAM_BUCKETS 48u

/* Counts in buckets that double: bucket 0 holds 0, bucket i values in [2^(i-1), 2^i). */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    double sum;
};

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    uint32_t bucket = value == 0 ? 0 : 64u - (uint32_t)__builtin_clzll(value);

    if (bucket >= HISTOGRAM_BUCKETS)
        bucket = HISTOGRAM_BUCKETS - 1;
    histogram->counts[bucket]++;
    histogram->count++;
    histogram->sum += (double)value;
}

struct session_counts {
    uint64_t collectives; /* of the pushes, those that contributed to a collective */
    uint64_t pushes, push_bytes, pulls, pull_bytes, refused, non_finite, late, duplicates;
    struct histogram staleness, push_us, pull_us;
};
