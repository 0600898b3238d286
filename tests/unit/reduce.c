/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c -- SUM and MEAN over the local replicas, by dtype. */

#include "unit.h"
#include <math.h>

#include "dtype.h"
#include "half.h"
#include "reduce.h"
#include "update.h"

#define MANY                                                                                       \
    5000 /* more than two of the runs that a reduction works in, and not a multiple of one */

static void reduced(
    enum sumac_reduce_op op, enum sumac_dtype dtype, void **gradients, const double *weights,
    uint32_t replicas, uint64_t elements)
{
    const struct reduce_input input = {
        .dtype = dtype,
        .elements = elements,
        .from = (const void *const *)gradients,
        .replicas = replicas,
        .to = gradients, /* replica 0's, in its place */
        .targets = 1,
        .weights = weights,
    };

    reduce_values(op, &input);
}

TEST(sum_adds_every_element_of_every_replica)
{
    static float g[3][MANY]; /* given */

    for (uint32_t i = 0; i < MANY; i++) {
        g[0][i] = (float)i;
        g[1][i] = 2 * (float)i;
        g[2][i] = 0.5f;
    }

    reduced(
        SUMAC_REDUCE_SUM, SUMAC_FLOAT32, (void *[]){g[0], g[1], g[2]}, NULL, 3, MANY); /* when */

    for (uint32_t i = 0; i < MANY; i++) /* then */
        assert_true(g[0][i] == 3 * (float)i + 0.5f);
}

TEST(mean_weighs_each_replica_by_its_examples)
{
    float a[1] = {1}, b[1] = {5}; /* given: 24 examples with the gradient 1, 8 with 5 */

    reduced(SUMAC_REDUCE_MEAN, SUMAC_FLOAT32, (void *[]){a, b}, (double[]){24, 8}, 2, 1); /* when */

    assert_true(a[0] == 2.0f); /* then: (24 · 1 + 8 · 5) / 32 */
}

TEST(a_replica_of_weight_0_adds_nothing_to_a_mean)
{
    double a[2] = {3, 4}, b[2] = {1000, 1000}; /* given */

    reduced(SUMAC_REDUCE_MEAN, SUMAC_FLOAT64, (void *[]){a, b}, (double[]){16, 0}, 2, 2); /* when */

    assert_true(a[0] == 3 && a[1] == 4); /* then */
}

/* The gradients of an empty batch are 0 / 0. */
TEST(nans_of_a_replica_of_weight_0_stay_out_of_a_mean)
{
    for (uint32_t empty = 0; empty < 3; empty++) {
        float g[3][2];
        uint16_t halves[3][2];
        double weights[3] = {1, 1, 1};

        weights[empty] = 0; /* given */
        for (uint32_t i = 0; i < 6; i++) {
            g[i / 2][i % 2] = i / 2 == empty ? NAN : 5;
            halves[i / 2][i % 2] = float16_of_float32(g[i / 2][i % 2]);
        }

        reduced(/* when */
                SUMAC_REDUCE_MEAN, SUMAC_FLOAT32, (void *[]){g[0], g[1], g[2]}, weights, 3, 2);
        reduced(
            SUMAC_REDUCE_MEAN, SUMAC_FLOAT16, (void *[]){halves[0], halves[1], halves[2]}, weights,
            3, 2);

        for (uint32_t i = 0; i < 2; i++) { /* then */
            assert_true(g[0][i] == 5);
            assert_true(float32_of_float16(halves[0][i]) == 5);
        }
    }
}

TEST(the_mean_of_one_replica_is_what_it_gave)
{
    float a[2] = {0.1f, -7}; /* given */

    reduced(SUMAC_REDUCE_MEAN, SUMAC_FLOAT32, (void *[]){a}, (double[]){3}, 1, 2); /* when */

    /* then: 3 · 0.1 / 3 in float32 would be another number */
    assert_true(a[0] == 0.1f && a[1] == -7);
}

/* Float addition is not associative: 1 is lost beside 2^24, unless 2^24 has been taken away before
 * it comes. */
TEST(replicas_are_added_in_their_order)
{
    float a[1] = {0x1p24f}, b[1] = {-0x1p24f}, c[1] = {1}; /* given */

    reduced(SUMAC_REDUCE_SUM, SUMAC_FLOAT32, (void *[]){a, b, c}, NULL, 3, 1); /* when */

    assert_true(a[0] == 1); /* then */
}

TEST(integers_of_every_width_are_summed_and_wrap)
{
    int8_t a8[2] = {100, -3}, b8[2] = {100, 1}; /* given */
    uint16_t a16[1] = {65535}, b16[1] = {2};
    int32_t a32[1] = {-5}, b32[1] = {7};
    int64_t a64[1] = {INT64_MAX}, b64[1] = {1};

    reduced(SUMAC_REDUCE_SUM, SUMAC_INT8, (void *[]){a8, b8}, NULL, 2, 2); /* when */
    reduced(SUMAC_REDUCE_SUM, SUMAC_UINT16, (void *[]){a16, b16}, NULL, 2, 1);
    reduced(SUMAC_REDUCE_SUM, SUMAC_INT32, (void *[]){a32, b32}, NULL, 2, 1);
    reduced(SUMAC_REDUCE_SUM, SUMAC_INT64, (void *[]){a64, b64}, NULL, 2, 1);

    assert_int_equal(a8[0], -56); /* then */
    assert_int_equal(a8[1], -2);
    assert_int_equal(a16[0], 1);
    assert_int_equal(a32[0], 2);
    assert_true(a64[0] == INT64_MIN);
}

/* 2048 + 1 + 1: in float16 each addition would be rounded away; in float32 the sum is exact, and
 * 2050 has a float16. */
TEST(half_types_are_summed_in_float32_and_rounded_once)
{
    uint16_t a[1] = {float16_of_float32(2048)}, b[1] = {float16_of_float32(1)}; /* given */
    uint16_t c[1] = {b[0]};
    uint16_t x[1] = {bfloat16_of_float32(256)}, y[1] = {bfloat16_of_float32(1)}, z[1] = {y[0]};

    reduced(SUMAC_REDUCE_SUM, SUMAC_FLOAT16, (void *[]){a, b, c}, NULL, 3, 1); /* when */
    reduced(SUMAC_REDUCE_SUM, SUMAC_BFLOAT16, (void *[]){x, y, z}, NULL, 3, 1);

    assert_true(float32_of_float16(a[0]) == 2050); /* then */
    assert_true(float32_of_bfloat16(x[0]) == 258);
}

TEST(half_types_have_a_weighted_mean)
{
    uint16_t a[1] = {float16_of_float32(1)}, b[1] = {float16_of_float32(5)}; /* given */

    reduced(SUMAC_REDUCE_MEAN, SUMAC_FLOAT16, (void *[]){a, b}, (double[]){24, 8}, 2, 1); /* when */

    assert_true(float32_of_float16(a[0]) == 2); /* then */
}

TEST(a_sum_is_for_all_but_bool_and_a_mean_for_floats_only)
{
    assert_true(reduce_has(SUMAC_REDUCE_SUM, SUMAC_INT64));
    assert_true(reduce_has(SUMAC_REDUCE_SUM, SUMAC_BFLOAT16));
    assert_true(reduce_has(SUMAC_REDUCE_MEAN, SUMAC_FLOAT16));
    assert_false(reduce_has(SUMAC_REDUCE_MEAN, SUMAC_INT64));
    assert_false(reduce_has(SUMAC_REDUCE_SUM, SUMAC_BOOL));
    assert_false(reduce_has(SUMAC_REDUCE_SUM, (enum sumac_dtype)99));
}

/* 1 + 1 in every dtype that has a sum, and the mean of 1 and 3 in every one that has a mean: no row
 * is missing, and none is another dtype's. Of integers it is so many of a number that has nothing
 * in the lower bytes. */
TEST(every_dtype_has_arithmetic_of_its_own)
{
    for (unsigned number = 1; number <= DTYPES_MAX; number++) {
        const enum sumac_dtype dtype = (enum sumac_dtype)number;
        uint64_t element[4][1]; /* 0, 1, 2, 3 */
        const int bits = 8 * (int)sumac_dtype_bytes(dtype);
        wire_initializer constant = WIRE_INITIALIZER_INIT;
        constant.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_CONSTANT;
        for (int op = SUMAC_REDUCE_SUM; op <= SUMAC_REDUCE_MEAN; op++) {
            if (!reduce_has((enum sumac_reduce_op)op, dtype))
                continue;
            for (int i = 1; i <= 3; i++) { /* given */
                constant.a = sumac_dtype_is_float(dtype) ? i : ldexp(i, bits - 4);
                initializer_fill(&constant, dtype, 0, 1, element[i]);
            }
            uint64_t other = op == SUMAC_REDUCE_SUM ? element[1][0] : element[3][0];

            reduced(/* when */
                    (enum sumac_reduce_op)op, dtype, (void *[]){element[1], &other},
                    (double[]){1, 1}, 2, 1);

            assert_memory_equal(element[1], element[2], sumac_dtype_bytes(dtype)); /* then */
        }
    }
}
