/* SPDX-License-Identifier: Apache-2.0 */
/* all_variables.c (test) -- all variables of a strategy in one call: read, changed, and destroyed.
 * On the ps, tests/process/test_replicas.py. */

#include "unit.h"
#include "sumac/variable.h"

struct model {
    struct sumac_strategy *strategy;
    struct sumac_variable *variables[2]; /* w (2) and b () */
    struct sumac_variable *turned[2];    /* b and w */
};

static struct sumac_value *vector(float first, float second)
{
    const float elements[] = {first, second};

    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), elements);
}

static struct sumac_value *pair(struct sumac_value *first, struct sumac_value *second)
{
    struct sumac_value *const both[] = {first, second};

    return sumac_value_list(both, 2);
}

static struct sumac_variable *
create(struct sumac_strategy *strategy, const char *name, struct sumac_value *initial)
{
    const struct sumac_variable_options options = {
        .name = name, .initial = initial, .function = {.name = "assign_add"}};
    struct sumac_variable *variable = NULL;

    assert_int_equal(sumac_variable_create(strategy, &options, &variable, NULL), SUMAC_OK);
    sumac_value_unref(initial);
    return variable;
}

static struct model begin(uint32_t replicas)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .replicas = replicas, .timeout_ms = 200};
    struct model model = {.strategy = NULL};

    assert_int_equal(sumac_strategy_create(&options, &model.strategy, NULL), SUMAC_OK);
    model.variables[0] = model.turned[1] = create(model.strategy, "w", vector(1, 2));
    model.variables[1] = model.turned[0] = create(model.strategy, "b", sumac_value_float32(3));
    return model;
}

/* Which takes its variables with it. */
static void end(const struct model *model) { sumac_strategy_destroy(model->strategy); }

static void expect_all(const struct model *model, const char *expected)
{
    struct sumac_value *values = NULL;
    char text[256];

    assert_int_equal(sumac_variable_read_all(model->variables, 2, NULL, &values, NULL), SUMAC_OK);
    (void)sumac_value_print(values, text, sizeof text);
    assert_string_equal(text, expected);
    sumac_value_unref(values);
}

static void expect_refused(
    const struct model *model, struct sumac_value *gradients, enum sumac_status status,
    const char *said)
{
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_apply_all(model->variables, 2, NULL, gradients, &error), status);
    assert_non_null(strstr(error.text, said));
    sumac_value_unref(gradients);
    expect_all(model, "[float32[2] 1 2, float32[] 3]");
}

/* ---- across the replicas */

TEST(each_gets_its_own_gradient_and_all_are_read)
{
    const struct model model = begin(2);
    struct sumac_value *gradients = pair(vector(10, 20), sumac_value_float32(30));

    assert_int_equal(sumac_variable_apply_all(model.variables, 2, NULL, gradients, NULL), SUMAC_OK);

    expect_all(&model, "[float32[2] 11 22, float32[] 33]");
    sumac_value_unref(gradients);
    end(&model);
}

TEST(a_tuple_of_gradients_is_as_good_as_a_list)
{
    const struct model model = begin(1);
    struct sumac_value *const both[] = {vector(10, 20), sumac_value_float32(30)};
    struct sumac_value *gradients = sumac_value_tuple(both, 2);

    assert_int_equal(sumac_variable_apply_all(model.variables, 2, NULL, gradients, NULL), SUMAC_OK);

    expect_all(&model, "[float32[2] 11 22, float32[] 33]");
    sumac_value_unref(gradients);
    end(&model);
}

TEST(of_no_variables_there_is_nothing)
{
    struct sumac_value *none = sumac_value_list(NULL, 0), *values = NULL;

    assert_int_equal(sumac_variable_apply_all(NULL, 0, NULL, none, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_read_all(NULL, 0, NULL, &values, NULL), SUMAC_OK);

    assert_int_equal(sumac_value_count(values), 0);
    sumac_value_unref(values);
    sumac_value_unref(none);
}

static enum sumac_status
lend_out(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)error;
    if (sumac_replica_id(replica) == 0)
        *(struct sumac_replica **)context = replica;
    return SUMAC_OK;
}

/* No other replica comes any more. */
TEST(of_no_variables_nobody_is_waited_for_after_the_run)
{
    const struct model model = begin(2);
    struct sumac_value *none = sumac_value_list(NULL, 0);
    struct sumac_replica *replica = NULL;
    const struct sumac_run_options lend = {.function = lend_out, .context = &replica};

    assert_int_equal(sumac_strategy_run(model.strategy, &lend, NULL, NULL), SUMAC_OK);

    assert_int_equal(sumac_variable_apply_all(NULL, 0, replica, none, NULL), SUMAC_OK);
    sumac_value_unref(none);
    end(&model);
}

TEST(gradients_that_do_not_fit_change_none)
{
    const struct model model = begin(2);

    expect_refused(
        &model, vector(1, 1), SUMAC_INVALID_ARGUMENT, "gradients is a tensor of 0; it is a list");
    expect_refused(
        &model, sumac_value_list(NULL, 0), SUMAC_INVALID_ARGUMENT,
        "gradients is a list of 0; it is a list or tuple of one for each of 2 variables");
    expect_refused(&model, pair(vector(1, 1), vector(1, 1)), SUMAC_INVALID_ARGUMENT, "b");
    struct sumac_value *const each[] = {sumac_value_float32(1), sumac_value_float32(2)};
    expect_refused(
        &model, pair(vector(1, 1), sumac_value_per_replica(each, 2, 0)), SUMAC_INVALID_ARGUMENT,
        "update of b: the argument is per_replica");
    end(&model);
}

TEST(variables_of_two_strategies_or_none_are_refused)
{
    const struct model model = begin(1), other = begin(1);
    struct sumac_variable *const mixed[] = {model.variables[0], other.variables[1]};
    struct sumac_variable *const last[] = {
        model.variables[0], model.variables[1], other.variables[1]};
    struct sumac_variable *const missing[] = {model.variables[0], NULL};
    struct sumac_variable **many = calloc(SUMAC_VALUE_ITEMS_MAX + 1, sizeof *many);
    struct sumac_value *values = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_read_all(mixed, 2, NULL, &values, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "w and b are of two strategies"));
    assert_int_equal(
        sumac_variable_read_all(last, 3, NULL, &values, &error), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(
        sumac_variable_read_all(missing, 2, NULL, &values, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "variables[1] is NULL"));
    assert_int_equal(
        sumac_variable_read_all(many, SUMAC_VALUE_ITEMS_MAX + 1, NULL, &values, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "1048577 variables, and a list has 1048576 items at most"));
    assert_int_equal(
        sumac_variable_read_all(many, SUMAC_VALUE_ITEMS_MAX, NULL, &values, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "variables[0] is NULL"));
    assert_int_equal(
        sumac_variable_read_all(NULL, 2, NULL, &values, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_variable_read_all: variables is NULL");
    free(many);
    assert_int_equal(sumac_variable_read_all(mixed, 2, NULL, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_variable_read_all: values is NULL");
    assert_int_equal(
        sumac_variable_apply_all(mixed, 2, NULL, NULL, &error), SUMAC_INVALID_ARGUMENT);
    end(&model);
    end(&other);
}

/* ---- in the replicas */

static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct model *model = context;
    struct sumac_value *values = NULL, *sums = NULL;
    const float own = (float)(sumac_replica_id(replica) + 1);

    struct sumac_value *gradients = pair(vector(own, own), sumac_value_float32(own));
    enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, gradients, NULL, &sums, error);
    if (status == SUMAC_OK)
        status = sumac_variable_apply_all(model->variables, 2, replica, sums, error);
    if (status == SUMAC_OK)
        status = sumac_variable_read_all(model->variables, 2, replica, &values, error);
    sumac_value_unref(gradients);
    sumac_value_unref(sums);
    sumac_replica_return(replica, values);
    return status;
}

TEST(in_replicas_all_apply_what_they_have_together)
{
    const struct model model = begin(2);
    const struct sumac_run_options each = {.function = step, .context = (void *)(uintptr_t)&model};
    struct sumac_value *results = NULL;
    char text[512];

    assert_int_equal(sumac_strategy_run(model.strategy, &each, &results, NULL), SUMAC_OK);

    struct sumac_value *first = NULL;
    assert_int_equal(sumac_value_select(results, 1, &first, NULL), SUMAC_OK);
    (void)sumac_value_print(first, text, sizeof text);
    assert_string_equal(text, "[float32[2] 4 5, float32[] 6]");
    expect_all(&model, "[float32[2] 4 5, float32[] 6]");
    sumac_value_unref(first);
    sumac_value_unref(results);
    end(&model);
}

/* Replica 1 has them the other way round. */
static enum sumac_status
turn(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct model *model = context;
    const bool turned = sumac_replica_id(replica) == 1;
    struct sumac_value *gradients = turned ? pair(sumac_value_float32(1), vector(1, 1))
                                           : pair(vector(1, 1), sumac_value_float32(1));

    const enum sumac_status status = sumac_variable_apply_all(
        turned ? model->turned : model->variables, 2, replica, gradients, error);
    sumac_value_unref(gradients);
    return status;
}

/* Names of 63 bytes, of which 4 KiB do not show all. */
#define MANY 70u

/* Replica 1 has the last two the other way round. */
static enum sumac_status
turn_the_last_of_many(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_variable *const *const many = context;
    struct sumac_variable *own[MANY];
    struct sumac_value *gradients[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        own[i] = many[i];
        gradients[i] = sumac_value_float32(1);
    }
    if (sumac_replica_id(replica) == 1) {
        own[MANY - 2] = many[MANY - 1];
        own[MANY - 1] = many[MANY - 2];
    }
    struct sumac_value *all = sumac_value_list(gradients, MANY);
    const enum sumac_status status = sumac_variable_apply_all(own, MANY, replica, all, error);
    sumac_value_unref(all);
    return status;
}

TEST(what_differs_in_a_long_list_is_told)
{
    const struct model model = begin(2);
    struct sumac_variable *many[MANY];
    char name[64];

    for (uint32_t i = 0; i < MANY; i++) {
        (void)snprintf(
            name, sizeof name, "model/layer_%02u/attention/query/kernel_of_a_transformer_block__",
            i);
        many[i] = create(model.strategy, name, sumac_value_float32(0));
    }
    const struct sumac_run_options each = {.function = turn_the_last_of_many, .context = many};
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_run(model.strategy, &each, NULL, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "replica 0 comes with model/layer_68/"));
    assert_non_null(strstr(error.text, "as variables[68], and replica 1 with model/layer_69/"));
    end(&model);
}

/* Each its own, which no other has. */
static enum sumac_status
differ(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct model *model = context;
    const float own = (float)sumac_replica_id(replica);
    struct sumac_value *gradients = pair(vector(1, 1), sumac_value_float32(own));

    const enum sumac_status status =
        sumac_variable_apply_all(model->variables, 2, replica, gradients, error);
    sumac_value_unref(gradients);
    return status;
}

TEST(replicas_that_differ_are_told_and_nothing_is_applied)
{
    const struct {
        sumac_replica_function *function;
        const char *said;
    } rows[] = {
        {turn, "replica 0 comes with w as variables[0], and replica 1 with b"},
        {differ, "is per_replica"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct model model = begin(2);
        const struct sumac_run_options each = {
            .function = rows[i].function, .context = (void *)(uintptr_t)&model};
        struct sumac_error error;

        assert_int_equal(
            sumac_strategy_run(model.strategy, &each, NULL, &error), SUMAC_INVALID_ARGUMENT);

        assert_non_null(strstr(error.text, rows[i].said));
        expect_all(&model, "[float32[2] 1 2, float32[] 3]");
        end(&model);
    }
}
