/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_to.c (test) -- StrategyExtended.reduce_to: a result that lies where a variable does. */
#include "distributed_fixture.h"
#include "../returning.h"

static struct sumac_value *of_each(float first, float second)
{
    struct sumac_value *const items[] = {vector(first, second), vector(2 * first, 2 * second)};

    return sumac_value_per_replica(items, 2, 0);
}

TEST(a_result_lies_where_its_destination_does)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_variable *alone =
        variable_of(strategy, (struct sumac_variable_options){.process_local = true});
    struct sumac_value *value = of_each(1, 3), *result = NULL;

    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_SUM, value, variable, &result, NULL),
        SUMAC_OK);
    expect_printed(result, "mirrored(0: float32[2] 3 9, 1: float32[2] 3 9)");
    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_MEAN, value, alone, &result, NULL),
        SUMAC_OK);
    expect_printed(result, "float32[2] 1.5 4.5");
    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_SUM, value, NULL, &result, NULL), SUMAC_OK);
    expect_printed(result, "float32[2] 3 9");

    expect_components(variable, "(float32[2] 1 2, float32[2] 1 2)");
    sumac_value_unref(value);
    sumac_strategy_destroy(strategy);
}

/* The result is mirrored: it can be written, and not reduced by SUM again. */
TEST(a_result_is_written_to_its_destination)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *value = of_each(1, 3), *result = NULL, *again = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_SUM, value, variable, &result, NULL),
        SUMAC_OK);
    assert_int_equal(sumac_variable_assign_add(variable, NULL, result, NULL, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 4 11, float32[2] 4 11)");
    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_SUM, result, variable, &again, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "reduce_to: the value is the same in all replicas"));
    assert_null(again);
    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_MEAN, result, variable, &again, NULL),
        SUMAC_OK);
    expect_printed(again, "mirrored(0: float32[2] 3 9, 1: float32[2] 3 9)");

    sumac_value_unref(result);
    sumac_value_unref(value);
    sumac_strategy_destroy(strategy);
}

TEST(a_nest_and_slices_are_reduced_there_too)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    const int64_t row[] = {1};
    const float one[] = {5};
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(1), one),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), row), SUMAC_SHAPE(2));
    struct sumac_value *const both[] = {sumac_value_ref(slices), slices};
    struct sumac_value *const items[] = {of_each(1, 3), sumac_value_per_replica(both, 2, 0)};
    struct sumac_value *nest = sumac_value_list(items, 2), *result = NULL;

    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_SUM, nest, variable, &result, NULL),
        SUMAC_OK);

    assert_int_equal(sumac_value_kind(sumac_value_item(result, 0)), SUMAC_VALUE_MIRRORED);
    assert_int_equal(sumac_value_kind(sumac_value_item(result, 1)), SUMAC_VALUE_MIRRORED);
    const struct sumac_value *rows = sumac_value_item(sumac_value_item(result, 1), 1);
    assert_int_equal(sumac_value_kind(rows), SUMAC_VALUE_INDEXED_SLICES);
    assert_int_equal(sumac_value_shape(sumac_value_item(rows, 1)).extent[0], 2);
    sumac_value_unref(result);
    sumac_value_unref(nest);
    sumac_strategy_destroy(strategy);
}

TEST(with_one_replica_there_is_one_value)
{
    struct sumac_strategy *strategy = mirrored(1);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *value = vector(1, 3), *result = NULL;

    assert_int_equal(
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_MEAN, value, variable, &result, NULL),
        SUMAC_OK);

    expect_printed(result, "float32[2] 1 3");
    sumac_value_unref(value);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
reduce_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    return return_from_replica(
        replica,
        sumac_strategy_reduce_to(
            sumac_replica_strategy(replica), SUMAC_REDUCE_SUM, in->value, in->variable, &returned,
            error),
        &returned);
}

TEST(what_is_no_destination_is_refused)
{
    struct sumac_strategy *strategy = mirrored(2), *other = mirrored(2);
    struct in_replica in = {
        .variable = variable_of(strategy, (struct sumac_variable_options){0}),
        .value = of_each(1, 3)};
    struct sumac_value *result = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_reduce_to(other, SUMAC_REDUCE_SUM, in.value, in.variable, &result, &error),
        SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "the destination w is a variable of another strategy"));
    assert_int_equal(run_in(strategy, reduce_in_replica, &in, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "sumac_strategy_reduce_to: called within a replica"));
    assert_null(result);
    sumac_value_unref(in.value);
    sumac_strategy_destroy(strategy);
    sumac_strategy_destroy(other);
}
