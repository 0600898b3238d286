/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.h -- percentiles of what Observe counts in buckets that double
 * (proto/sumac/v1/observe.proto). */
#pragma once

#include <stdint.h>

#include "wire.h"

#define HISTOGRAM_BUCKETS 65 /* bucket 0 holds 0, bucket i values in [2^(i-1), 2^i) */

struct merged_histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    double sum;
};

/* Add what a ps counted; NULL adds nothing. */
void histogram_add(struct merged_histogram *histogram, const wire_histogram *counted);
/* Add what another one has counted. */
void histogram_merge(struct merged_histogram *histogram, const struct merged_histogram *other);

/* The value that `fraction` of all lie below, straight within its bucket; 0 of none. */
double histogram_percentile(const struct merged_histogram *histogram, double fraction);
double histogram_mean(const struct merged_histogram *histogram);
