/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c -- percentiles read off buckets that double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "histogram.h"

static void counts_of_several_ps_add_up(void **state)
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

static void every_bucket_is_merged(void **state)
{
    struct merged_histogram other = {.count = HISTOGRAM_BUCKETS, .sum = 7}, merged = {0};

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        other.counts[i] = 1;

    histogram_merge(&merged, &other);

    assert_memory_equal(&merged, &other, sizeof merged);
}

static void a_percentile_lies_within_its_bucket(void **state)
{
    struct merged_histogram histogram = {.counts = {[0] = 50, [4] = 40, [10] = 10}, .count = 100};

    assert_true(histogram_percentile(&histogram, 0.5) == 0);
    assert_true(histogram_percentile(&histogram, 0.7) == 12);   /* half-way through 8 … 16 */
    assert_true(histogram_percentile(&histogram, 0.9) == 16);   /* its end */
    assert_true(histogram_percentile(&histogram, 1.0) == 1024); /* the end of 512 … 1024 */
}

static void of_nothing_everything_is_0(void **state)
{
    const struct merged_histogram histogram = {0};

    assert_true(histogram_percentile(&histogram, 0.99) == 0);
    assert_true(histogram_mean(&histogram) == 0);
}

static void more_buckets_than_there_can_be_are_left_out(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_several_ps_add_up),
        cmocka_unit_test(every_bucket_is_merged),
        cmocka_unit_test(a_percentile_lies_within_its_bucket),
        cmocka_unit_test(of_nothing_everything_is_0),
        cmocka_unit_test(more_buckets_than_there_can_be_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
