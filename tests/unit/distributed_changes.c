/* SPDX-License-Identifier: Apache-2.0 */
/* distributed_changes.c (test) -- what a change makes of a variable: for who asks, by whose
 * hyperparameters, in which order of its rows. */
#include <math.h>

#include "distributed_fixture.h"

/* ---- who is given the result */

struct asking {
    struct sumac_variable *variable;
    struct sumac_value *value;
    uint32_t who; /* asks for the result */
    struct sumac_value *result;
};

static enum sumac_status
add_and_ask(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct asking *asking = context;
    const bool asks = sumac_replica_id(replica) == asking->who;

    return sumac_variable_assign_add(
        asking->variable, replica, asking->value, asks ? &asking->result : NULL, error);
}

TEST(the_replica_that_asks_for_a_result_alone_gets_it)
{
    struct sumac_strategy *strategy = mirrored(3);

    for (uint32_t who = 0; who < 3; who++) {
        struct asking asking = {
            /* given */
            .variable = variable_of(
                strategy, (struct sumac_variable_options){.aggregation = SUMAC_REDUCE_SUM}),
            .value = vector(1, 2),
            .who = who};
        const struct sumac_run_options step = {.function = add_and_ask, .context = &asking};

        assert_int_equal(sumac_strategy_run(strategy, &step, NULL, NULL), SUMAC_OK); /* when */

        expect_printed(asking.result, "float32[2] 4 8"); /* then */
        sumac_value_unref(asking.value);
        sumac_variable_destroy(asking.variable);
    }
    sumac_strategy_destroy(strategy);
}

/* ---- by whose hyperparameters */

TEST(another_function_does_not_go_by_the_variables_hyperparameters)
{
    struct sumac_strategy *strategy = mirrored(2); /* given */
    struct sumac_value *gradient = vector(100, 100);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .function = SUMAC_FUNCTION("momentum", {"learning_rate", 2})});
    const struct sumac_function sgd = {.name = "sgd"};

    assert_int_equal(/* when */
                     sumac_variable_apply(variable, NULL, &sgd, gradient, NULL), SUMAC_OK);

    expect_printed(read_of(variable), "float32[2] 0 1"); /* then: by the table's 0.01 */
    sumac_value_unref(gradient);
    sumac_strategy_destroy(strategy);
}

/* float32 rounds 1 − 2^-40 to 1, and beta_1 is below 1. */
TEST(a_hyperparameter_that_the_type_rounds_to_none_is_refused)
{
    struct sumac_strategy *strategy = mirrored(2); /* given */
    struct sumac_value *gradient = vector(1, 1);
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.function = {.name = "adam"}});
    const struct sumac_function odd[] = {
        SUMAC_FUNCTION("sgd", {"learning_rate", NAN}),
        SUMAC_FUNCTION("adam", {"beta_1", 1 - 0x1p-40})};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_int_equal(/* when, then */
                         sumac_variable_apply(variable, NULL, &odd[i], gradient, NULL),
                         SUMAC_INVALID_ARGUMENT);
    expect_printed(read_of(variable), "float32[2] 1 2");
    sumac_value_unref(gradient);
    sumac_strategy_destroy(strategy);
}

/* ---- rows */

TEST(of_a_row_that_is_written_twice_the_last_counts)
{
    struct sumac_strategy *strategy = mirrored(1); /* given */
    const float rows[] = {5, 6, 7, 8};
    const int32_t indices[] = {1, 0, 1, 1};
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4), rows),
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(4), indices), SUMAC_SHAPE(2));
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});

    assert_int_equal(/* when */
                     sumac_variable_write(
                         variable, NULL, SUMAC_WRITE_SCATTER_UPDATE, slices, NULL, NULL),
                     SUMAC_OK);

    expect_printed(read_of(variable), "float32[2] 6 8"); /* then */
    sumac_value_unref(slices);
    sumac_strategy_destroy(strategy);
}

TEST(what_is_written_by_rows_is_slices)
{
    struct sumac_strategy *strategy = mirrored(1); /* given */
    struct sumac_value *whole = vector(5, 6);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});

    for (int write = SUMAC_WRITE_SCATTER_ADD; write <= SUMAC_WRITE_SCATTER_UPDATE; write++)
        assert_int_equal(/* when, then */
                         sumac_variable_write(
                             variable, NULL, (enum sumac_write)write, whole, NULL, NULL),
                         SUMAC_INVALID_ARGUMENT);
    expect_printed(read_of(variable), "float32[2] 1 2");
    sumac_value_unref(whole);
    sumac_strategy_destroy(strategy);
}

/* Slots are float32 beside a variable of halves. */
TEST(a_row_of_halves_has_its_own_row_of_slots)
{
    struct sumac_strategy *strategy = mirrored(1); /* given */
    const uint16_t halves[] = {0x3c00, 0x3c00, 0x3c00};
    const int64_t last = 2;
    struct sumac_value *initial = sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(3), halves);
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(1), halves),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), &last), SUMAC_SHAPE(3));
    struct sumac_variable *variable = variable_of(
        strategy,
        (struct sumac_variable_options){
            .initial = initial, .function = SUMAC_FUNCTION("momentum", {"learning_rate", 0.5})});
    struct sumac_value *slots = NULL;

    assert_int_equal(/* when */
                     sumac_variable_apply(variable, NULL, NULL, slices, NULL), SUMAC_OK);

    assert_int_equal(sumac_variable_slots(variable, &slots, NULL), SUMAC_OK); /* then */
    expect_printed(slots, "({\"momentum\": float32[3] 0 0 1},)");
    expect_printed(read_of(variable), "float16[3] 1 1 0.5");
    sumac_value_unref(initial);
    sumac_value_unref(slices);
    sumac_strategy_destroy(strategy);
}

TEST(what_is_subtracted_is_taken_away)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *value = vector(3, 5);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});

    assert_int_equal(sumac_variable_assign_sub(variable, NULL, value, NULL, NULL), SUMAC_OK);
    expect_printed(read_of(variable), "float32[2] -2 -3");
    sumac_value_unref(value);
    sumac_strategy_destroy(strategy);
}
