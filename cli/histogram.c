/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c -- add up buckets and read percentiles off them. */
#include "histogram.h"

#include <math.h>

#include "total.h"

void histogram_add(struct merged_histogram *histogram, const wire_histogram *counted)
{
    if (counted == NULL)
        return;
    for (size_t i = 0; i < counted->n_counts && i < HISTOGRAM_BUCKETS; i++)
        total_add(&histogram->counts[i], counted->counts[i]);
    total_add(&histogram->count, counted->count);
    histogram->sum += counted->sum;
}

void histogram_merge(struct merged_histogram *histogram, const struct merged_histogram *other)
{
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        total_add(&histogram->counts[i], other->counts[i]);
    total_add(&histogram->count, other->count);
    histogram->sum += other->sum;
}

double histogram_percentile(const struct merged_histogram *histogram, double fraction)
{
    const double wanted = fraction * (double)histogram->count;
    double below = 0;

    if (histogram->count == 0)
        return 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const double here = (double)histogram->counts[i];
        if (here > 0 && below + here >= wanted) {
            if (i == 0)
                return 0;
            const double low = ldexp(1, i - 1);
            return low + low * (wanted - below) / here;
        }
        below += here;
    }
    return ldexp(1, HISTOGRAM_BUCKETS - 1);
}

double histogram_mean(const struct merged_histogram *histogram)
{
    return histogram->count > 0 ? histogram->sum / (double)histogram->count : 0;
}
