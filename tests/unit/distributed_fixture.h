/* SPDX-License-Identifier: Apache-2.0 */
/* distributed_fixture.h -- variables of a strategy of several replicas, and what they are. */
#pragma once

#include "unit.h"
#include "sumac/variable.h"

static inline struct sumac_strategy *mirrored(uint32_t replicas)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .replicas = replicas, .timeout_ms = 200};
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    return strategy;
}

static inline struct sumac_value *vector(float first, float second)
{
    const float elements[] = {first, second};

    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), elements);
}

static inline struct sumac_variable *
variable_of(struct sumac_strategy *strategy, struct sumac_variable_options options)
{
    struct sumac_value *initial = options.initial == NULL ? vector(1, 2) : NULL;
    struct sumac_variable *variable = NULL;

    if (options.initial == NULL)
        options.initial = initial;
    if (options.name == NULL)
        options.name = "w";
    assert_int_equal(sumac_variable_create(strategy, &options, &variable, NULL), SUMAC_OK);
    sumac_value_unref(initial);
    return variable;
}

static inline void expect_printed(struct sumac_value *value, const char *expected)
{
    char text[512];

    (void)sumac_value_print(value, text, sizeof text);
    assert_string_equal(text, expected);
    sumac_value_unref(value);
}

static inline void expect_components(struct sumac_variable *variable, const char *expected)
{
    struct sumac_value *components = NULL;

    assert_int_equal(sumac_variable_components(variable, &components, NULL), SUMAC_OK);
    expect_printed(components, expected);
}

static inline struct sumac_value *read_of(struct sumac_variable *variable)
{
    struct sumac_value *value = NULL;

    assert_int_equal(sumac_variable_read(variable, NULL, &value, NULL), SUMAC_OK);
    return value;
}

/* What a replica does, for the tests that run something in each. */
struct in_replica {
    struct sumac_variable *variable, *other;
    struct sumac_replica *stolen;
    struct sumac_update_context *component;
    struct sumac_value *value;
};

static inline enum sumac_status run_in(
    struct sumac_strategy *strategy, sumac_replica_function *function, struct in_replica *in,
    struct sumac_error *error)
{
    const struct sumac_run_options step = {.function = function, .context = in};

    return sumac_strategy_run(strategy, &step, NULL, error);
}
