/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c -- percentiles read off buckets that double. */

#include "unit.h"
#include "stats.h"

TEST(counts_of_several_ps_add_up)
{
    uint64_t counts[] = {1, 2}; /* given: 0, and two values of 1 */
    wire_histogram counted = WIRE_HISTOGRAM_INIT;

    counted.counts = counts;
    counted.n_counts = 2;
    counted.count = 3;
    counted.sum = 2;
    struct merged_histogram histogram = {0};

    histogram_add(&histogram, &counted); /* when */
    histogram_add(&histogram, &counted);
    histogram_add(&histogram, NULL);

    assert_int_equal(histogram.count, 6); /* then */
    assert_int_equal(histogram.counts[1], 4);
    assert_true(histogram_mean(&histogram) == 4.0 / 6);
}

TEST(every_bucket_is_merged)
{
    struct merged_histogram other = {.count = HISTOGRAM_BUCKETS, .sum = 7}, merged = {0};

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        other.counts[i] = 1;

    histogram_merge(&merged, &other);

    assert_memory_equal(&merged, &other, sizeof merged);
}

TEST(a_percentile_lies_within_its_bucket)
{
    struct merged_histogram histogram = {.counts = {[0] = 50, [4] = 40, [10] = 10}, .count = 100};

    assert_true(histogram_percentile(&histogram, 0.5) == 0);
    assert_true(histogram_percentile(&histogram, 0.7) == 12);   /* half-way through 8 … 16 */
    assert_true(histogram_percentile(&histogram, 0.9) == 16);   /* its end */
    assert_true(histogram_percentile(&histogram, 1.0) == 1024); /* the end of 512 … 1024 */
}

TEST(of_nothing_everything_is_0)
{
    const struct merged_histogram histogram = {0};

    assert_true(histogram_percentile(&histogram, 0.99) == 0);
    assert_true(histogram_mean(&histogram) == 0);
}

TEST(more_buckets_than_there_can_be_are_left_out)
{
    uint64_t counts[HISTOGRAM_BUCKETS + 5] = {0};

    counts[HISTOGRAM_BUCKETS + 4] = 9;
    wire_histogram counted = WIRE_HISTOGRAM_INIT;
    counted.counts = counts;
    counted.n_counts = HISTOGRAM_BUCKETS + 5;
    struct merged_histogram histogram = {0};
    histogram_add(&histogram, &counted);
    assert_int_equal(histogram.counts[HISTOGRAM_BUCKETS - 1], 0);
}
