/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_div.c (test) -- rows are not divided by 0. */
#include "distributed_fixture.h"

static void expect_no_division(
    struct sumac_strategy *strategy, enum sumac_dtype dtype, const void *ones, const void *divisors)
{
    const int64_t rows[] = {1, 1};
    struct sumac_value *initial = sumac_value_tensor(dtype, SUMAC_SHAPE(2), ones);
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(dtype, SUMAC_SHAPE(2), divisors),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2), rows), SUMAC_SHAPE(2));
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.initial = initial});
    struct sumac_value *after = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_write(variable, NULL, SUMAC_WRITE_SCATTER_DIV, slices, NULL, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "scatter_div of w: updates must not contain 0"));
    after = read_of(variable);
    assert_true(sumac_value_equal(after, initial));
    sumac_value_unref(after);
    sumac_value_unref(initial);
    sumac_value_unref(slices);
    sumac_variable_destroy(variable);
}

/* −0.0 is refused, too. The smallest float and an integer with its first bit set are divided by. */
TEST(rows_of_no_type_are_divided_by_zero)
{
    struct sumac_strategy *strategy = mirrored(2);
    const float singles[] = {1, 2}, single[] = {2, -0.0F};
    const double doubles[] = {1, 2}, two[] = {2, 0};
    const uint16_t halves[] = {0x3c00, 0x4000}, half[] = {0x4000, 0x8000};
    const uint8_t bytes[] = {1, 2}, byte[] = {2, 0}, great[] = {1, 0x80};
    const float tiny[] = {1, 1e-45F};
    const int32_t words[] = {1, 2}, each_byte[] = {0x1, 0x100, 0x10000};
    struct sumac_value *const initials[] = {
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), singles),
        sumac_value_tensor(SUMAC_UINT8, SUMAC_SHAPE(2), bytes),
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(2), words)};
    const void *const divisors[] = {tiny, great, each_byte, each_byte + 1};
    const int64_t rows[] = {0, 1};

    expect_no_division(strategy, SUMAC_FLOAT32, singles, single);
    expect_no_division(strategy, SUMAC_FLOAT64, doubles, two);
    expect_no_division(strategy, SUMAC_FLOAT16, halves, half);
    expect_no_division(strategy, SUMAC_BFLOAT16, halves, half);
    expect_no_division(strategy, SUMAC_UINT8, bytes, byte);
    for (int i = 0; i < 4; i++) {
        struct sumac_value *initial = initials[i < 2 ? i : 2];
        const enum sumac_dtype dtype = sumac_value_as_tensor(initial)->dtype;
        struct sumac_variable *variable =
            variable_of(strategy, (struct sumac_variable_options){.initial = initial});
        struct sumac_value *slices = sumac_value_indexed_slices(
            sumac_value_tensor(dtype, SUMAC_SHAPE(2), divisors[i]),
            sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2), rows), SUMAC_SHAPE(2));
        assert_int_equal(
            sumac_variable_write(variable, NULL, SUMAC_WRITE_SCATTER_DIV, slices, NULL, NULL),
            SUMAC_OK);
        sumac_value_unref(slices);
        sumac_variable_destroy(variable);
    }
    for (int i = 0; i < 3; i++)
        sumac_value_unref(initials[i]);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
divide_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct in_replica *in = context;

    return sumac_variable_write(
        in->variable, replica, SUMAC_WRITE_SCATTER_DIV, in->value, NULL, error);
}

/* The smallest number ÷ 2 replicas is 0. */
TEST(a_mean_that_is_zero_divides_no_rows)
{
    struct sumac_strategy *strategy = mirrored(2);
    const float tiny[] = {1e-45F};
    const int64_t rows[] = {1};
    struct in_replica in = {
        .variable = variable_of(
            strategy, (struct sumac_variable_options){.aggregation = SUMAC_REDUCE_MEAN}),
        .value = sumac_value_indexed_slices(
            sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(1), tiny),
            sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), rows), SUMAC_SHAPE(2))};
    struct sumac_error error;

    assert_int_equal(run_in(strategy, divide_in_replica, &in, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "scatter_div of w: updates must not contain 0"));
    expect_components(in.variable, "(float32[2] 1 2, float32[2] 1 2)");
    sumac_value_unref(in.value);
    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}
