/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.h -- counts in buckets that double: bucket 0 holds 0, bucket i values in [2^(i-1),
 * 2^i). */
#ifndef LANE_HISTOGRAM_H
#define LANE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 48u

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

#endif
