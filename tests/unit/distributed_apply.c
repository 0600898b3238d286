/* SPDX-License-Identifier: Apache-2.0 */
/* distributed_apply.c (test) -- variables of a strategy and update functions by their names: slots,
 * schedules, texts and plug-ins. What each function computes is the conformance cases'
 * (tests/conformance). */
#include "distributed_fixture.h"
#include "../returning.h"
#include "strategy.h"
#include "sumac/plugin.h"

static enum sumac_status
apply_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct in_replica *in = context;
    struct sumac_value *sum = NULL;

    enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_MEAN, in->value, NULL, &sum, error);
    if (status == SUMAC_OK)
        status = sumac_variable_apply(in->variable, replica, NULL, sum, error);
    sumac_value_unref(sum);
    return status;
}

/* momentum 0.5, η 1: a = g, θ −= a; then a = 0.5·g + g. */
TEST(each_component_has_its_slots)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct in_replica in = {
        .variable = variable_of(
            strategy,
            (struct sumac_variable_options){
                .function = SUMAC_FUNCTION("momentum", {"learning_rate", 1}, {"momentum", 0.5})}),
        .value = vector(2, 4)};

    assert_int_equal(run_in(strategy, apply_in_replica, &in, NULL), SUMAC_OK);
    expect_components(in.variable, "(float32[2] -1 -2, float32[2] -1 -2)");
    assert_int_equal(run_in(strategy, apply_in_replica, &in, NULL), SUMAC_OK);
    expect_components(in.variable, "(float32[2] -4 -8, float32[2] -4 -8)");
    assert_int_equal(sumac_variable_apply(in.variable, NULL, NULL, in.value, NULL), SUMAC_OK);
    expect_components(in.variable, "(float32[2] -7.5 -15, float32[2] -7.5 -15)");

    sumac_value_unref(in.value);
    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}

static void expect_slots(struct sumac_variable *variable, const char *expected)
{
    struct sumac_value *slots = NULL;

    assert_int_equal(sumac_variable_slots(variable, &slots, NULL), SUMAC_OK);
    expect_printed(slots, expected);
}

static enum sumac_status
apply_to_second(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    (void)context;
    return sumac_update_index(component) == 1
               ? sumac_update_apply(
                     component, NULL, sumac_value_item(sumac_update_args(component), 0), error)
               : SUMAC_OK;
}

/* By name, of each component; what was read stays as it was. */
TEST(slots_are_read_of_each_component)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *gradient = vector(2, 4), *before = NULL;
    struct sumac_value *const one[] = {sumac_value_ref(gradient)};
    struct sumac_value *args = sumac_value_tuple(one, 1);
    struct sumac_variable *plain = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .function = SUMAC_FUNCTION("adam", {"beta_1", 0.5}, {"beta_2", 0.75})});
    const struct sumac_update_options update = {.function = apply_to_second, .args = args};

    assert_int_equal(sumac_variable_slots(variable, &before, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_update(variable, NULL, &update, NULL, NULL), SUMAC_OK);

    expect_slots(
        variable, "({\"m\": float32[2] 0 0, \"v\": float32[2] 0 0}, "
                  "{\"m\": float32[2] 1 2, \"v\": float32[2] 1 4})");
    expect_printed(
        before, "({\"m\": float32[2] 0 0, \"v\": float32[2] 0 0}, "
                "{\"m\": float32[2] 0 0, \"v\": float32[2] 0 0})");
    expect_slots(plain, "({}, {})");
    sumac_value_unref(gradient);
    sumac_value_unref(args);
    sumac_strategy_destroy(strategy);
}

TEST(an_assignment_leaves_slots_that_somebody_else_has)
{
    struct sumac_strategy *strategy = mirrored(1); /* given */
    struct sumac_value *gradient = vector(2, 4), *assigned = vector(5, 6), *before = NULL;
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){.function = SUMAC_FUNCTION("momentum")});

    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_slots(variable, &before, NULL), SUMAC_OK);

    assert_int_equal(/* when */
                     sumac_variable_assign(variable, NULL, assigned, NULL, NULL), SUMAC_OK);

    expect_slots(variable, "({\"momentum\": float32[2] 2 4},)"); /* then */
    expect_printed(before, "({\"momentum\": float32[2] 2 4},)");
    sumac_value_unref(gradient);
    sumac_value_unref(assigned);
    sumac_strategy_destroy(strategy);
}

/* rmsprop has a third slot where it is centered; slots of half types are float32. */
TEST(slots_are_those_that_the_variable_has)
{
    struct sumac_strategy *strategy = mirrored(1);
    const uint16_t halves[] = {0x3c00};
    struct sumac_value *half = sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(1), halves);
    struct sumac_variable *plain = variable_of(
        strategy, (struct sumac_variable_options){
                      .initial = half, .function = SUMAC_FUNCTION("rmsprop", {"rho", 0.5})});
    struct sumac_variable *centered = variable_of(
        strategy, (struct sumac_variable_options){
                      .initial = half, .function = SUMAC_FUNCTION("rmsprop", {"centered", 1})});

    expect_slots(plain, "({\"momentum\": float32[1] 0, \"rms\": float32[1] 0},)");
    expect_slots(
        centered, "({\"mean_gradient\": float32[1] 0, \"momentum\": float32[1] 0, "
                  "\"rms\": float32[1] 0},)");
    sumac_value_unref(half);
    sumac_strategy_destroy(strategy);
}

/* ftrl, η 1, n 9, z 0, g 4: n′ = 25, z = 4 − (5 − 3)·θ, θ = −z ÷ 5. */
TEST(each_slot_begins_as_its_function_says)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *initial = vector(7, -3), *gradient = vector(4, 4);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .initial = initial,
                      .function = SUMAC_FUNCTION(
                          "ftrl", {"learning_rate", 1}, {"initial_accumulator_value", 9})});

    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);

    expect_components(variable, "(float32[2] 2 -2, float32[2] 2 -2)");
    sumac_value_unref(initial);
    sumac_value_unref(gradient);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

TEST(functions_are_those_of_the_variable)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *gradient = vector(1, 1);
    struct sumac_value *const items[] = {sumac_value_ref(gradient), vector(2, 2)};
    struct sumac_value *per_replica = sumac_value_per_replica(items, 2, 0);
    const struct sumac_function adam = {.name = "adam"}, none = {.name = "adams"};
    const struct sumac_function sgd = SUMAC_FUNCTION("sgd", {"learning_rate", 0.5});
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_apply(variable, NULL, &adam, gradient, &error), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_MISSING_SLOTS);
    assert_int_equal(
        sumac_variable_apply(variable, NULL, &none, gradient, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "there is no update function adams"));
    assert_int_equal(
        sumac_variable_apply(variable, NULL, &sgd, per_replica, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "update of w: the argument at [0] is per_replica"));
    expect_components(variable, "(float32[2] 1 2, float32[2] 1 2)");
    assert_int_equal(sumac_variable_apply(variable, NULL, &sgd, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 0.5 1.5, float32[2] 0.5 1.5)");

    sumac_value_unref(gradient);
    sumac_value_unref(per_replica);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* momentum 0.5 and η 2, of which an apply may say another. */
TEST(hyperparameters_that_are_not_given_are_the_variables)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(
        strategy,
        (struct sumac_variable_options){
            .function = SUMAC_FUNCTION("momentum", {"learning_rate", 2}, {"momentum", 0.5})});
    const struct sumac_function slower = SUMAC_FUNCTION("momentum", {"learning_rate", 1});
    struct sumac_value *gradient = vector(2, 2);

    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] -3 -2, float32[2] -3 -2)");
    assert_int_equal(sumac_variable_apply(variable, NULL, &slower, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] -6 -5, float32[2] -6 -5)");

    sumac_value_unref(gradient);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

TEST(a_slot_that_it_was_not_created_with_is_missed)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.function = {.name = "rmsprop"}});
    const struct sumac_function centered = SUMAC_FUNCTION("rmsprop", {"centered", 1});
    struct sumac_value *gradient = vector(2, 2);
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_apply(variable, NULL, &centered, gradient, &error),
        SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_MISSING_SLOTS);
    assert_non_null(strstr(error.text, "the slot mean_gradient, which variable w does not have"));

    sumac_value_unref(gradient);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* Rows that occur twice are summed before a rule sees them; others, and their slots, stay. */
TEST(rows_are_applied_by_the_same_loops)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .function = SUMAC_FUNCTION(
                          "adagrad", {"learning_rate", 1}, {"initial_accumulator_value", 0},
                          {"epsilon", 0})});
    const float values[] = {1, 2};
    const int32_t rows[] = {1, 1};
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), values),
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(2), rows), SUMAC_SHAPE(2));

    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, slices, NULL), SUMAC_OK);

    expect_components(variable, "(float32[2] 1 1, float32[2] 1 1)"); /* 2 − 3 ÷ √9 */
    sumac_value_unref(slices);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* Twice as far with each step, from its own first one on. */
TEST(a_learning_rate_goes_by_its_schedule)
{
    struct sumac_strategy *strategy = mirrored(2);
    const struct sumac_schedule doubling = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 1, .decay_rate = 2};
    struct sumac_function sgd = SUMAC_FUNCTION("sgd", {"learning_rate", 1});
    struct sumac_value *gradient = vector(1, 1);

    sgd.schedule = &doubling;
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.function = sgd});
    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 0 1, float32[2] 0 1)");
    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] -2 -1, float32[2] -2 -1)");

    sumac_value_unref(gradient);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* An assignment before the components part is a step of the schedule, as it is on a ps. */
TEST(a_schedule_counts_each_change)
{
    struct sumac_strategy *strategy = mirrored(2);
    const struct sumac_schedule doubling = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 1, .decay_rate = 2};
    struct sumac_function sgd = SUMAC_FUNCTION("sgd", {"learning_rate", 1});
    struct sumac_value *once = vector(1, 1);

    sgd.schedule = &doubling;
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.function = sgd});
    assert_int_equal(sumac_variable_assign(variable, NULL, once, NULL, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, once, NULL), SUMAC_OK);

    expect_components(variable, "(float32[2] -1 -1, float32[2] -1 -1)");
    sumac_value_unref(once);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

TEST(a_text_becomes_an_update_function)
{
    struct sumac_strategy *strategy = mirrored(2);
    static const char text[] = "value = value - rate * g * g", other[] = "value = g";
    struct sumac_value *gradient = vector(2, 3);
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_define(strategy, "sgd", text, strlen(text), &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_NAME);
    assert_int_equal(
        sumac_strategy_define(strategy, "squares", "value = = g", 11, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_EXPRESSION);
    const enum sumac_status status =
        sumac_strategy_define(strategy, "squares", other, strlen(other), &error);
    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(
        sumac_strategy_define(strategy, "squares", other, strlen(other), NULL), SUMAC_OK);
    assert_int_equal(
        sumac_strategy_define(strategy, "squares", text, strlen(text), &error),
        SUMAC_ALREADY_EXISTS);
    assert_int_equal(/* of two texts one is the other's beginning */
                     sumac_strategy_define(strategy, "squares", "value = g * g", 13, NULL),
                     SUMAC_ALREADY_EXISTS);
    assert_int_equal(
        sumac_strategy_define(strategy, "squares", "value = ", 8, NULL), SUMAC_ALREADY_EXISTS);
    assert_int_equal(/* as long, and another */
                     sumac_strategy_define(strategy, "squares", "value = v", 9, NULL),
                     SUMAC_ALREADY_EXISTS);

    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.function = {.name = "squares"}});
    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 2 3, float32[2] 2 3)");
    sumac_value_unref(gradient);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

static void take_half(const struct sumac_plugin_tile *tile)
{
    const float *value = tile->value_in, *gradient = tile->gradient;
    float *out = tile->value_out;

    for (uint64_t i = 0; i < tile->count; i++)
        out[i] = value[i] - gradient[i] / 2;
}

TEST(functions_of_a_plugin_are_applied_by_their_names)
{
    const struct sumac_plugin_function function = {
        .name = "half",
        .rule = "θ −= g/2",
        .dtypes = SUMAC_PLUGIN_DTYPE(SUMAC_FLOAT32),
        .loop = take_half};
    struct sumac_plugin plugin = {
        .abi_version = SUMAC_PLUGIN_ABI_VERSION,
        .name = "mine",
        .version = "1.0",
        .functions = &function,
        .function_count = 1};
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *gradient = vector(2, 4);
    const struct sumac_function half = {.name = "half"};

    assert_int_equal(sumac_strategy_plug(strategy, &plugin, NULL), SUMAC_OK);
    assert_int_equal(sumac_strategy_plug(strategy, &plugin, NULL), SUMAC_ALREADY_EXISTS);
    assert_int_equal(
        sumac_strategy_define(strategy, "half", "value = g", 9, NULL), SUMAC_ALREADY_EXISTS);
    assert_int_equal(sumac_strategy_define(strategy, "half", "", 0, NULL), SUMAC_ALREADY_EXISTS);
    plugin.abi_version++;
    assert_int_equal(sumac_strategy_plug(strategy, &plugin, NULL), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(sumac_variable_apply(variable, NULL, &half, gradient, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 0 0, float32[2] 0 0)");

    sumac_value_unref(gradient);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
change_nothing(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    (void)component, (void)context, (void)error;
    return SUMAC_OK;
}

/* By its number as an argument; as one with a name where there is a variable beside. */
static enum sumac_status
update_by_number(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct in_replica *in = context;
    struct sumac_value *number = sumac_value_float32((float)sumac_replica_id(replica));
    struct sumac_value *own = in->other == NULL
                                  ? sumac_value_tuple(&number, 1)
                                  : sumac_value_dict((const char *const[]){"by"}, &number, 1);
    const struct sumac_update_options update = {
        .function = change_nothing,
        .args = in->other == NULL ? own : NULL,
        .kwargs = in->other == NULL ? NULL : own};

    const enum sumac_status status =
        sumac_variable_update(in->variable, replica, &update, &returned, error);
    sumac_value_unref(own);
    return return_from_replica(replica, status, &returned);
}

TEST(replicas_that_update_by_their_own_arguments_are_refused)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct in_replica in = {.variable = variable_of(strategy, (struct sumac_variable_options){0})};
    struct sumac_error error;

    for (int named = 0; named < 2; named++) {
        in.other = named != 0 ? in.variable : NULL;
        assert_int_equal(run_in(strategy, update_by_number, &in, &error), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "is per_replica"));
    }
    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}

TEST(a_plugin_for_the_ps_is_theirs_to_load)
{
    struct sumac_strategy *strategy = mirrored(1);
    const struct sumac_plugin plugin = {.abi_version = SUMAC_PLUGIN_ABI_VERSION};
    struct sumac_error error;

    strategy->options.kind = SUMAC_STRATEGY_PARAMETER_SERVER;
    assert_int_equal(sumac_strategy_plug(strategy, &plugin, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "sumac ps --plugin FILE"));
    strategy->options.kind = SUMAC_STRATEGY_MIRRORED;
    assert_string_equal(sumac_strategy_name(NULL), "");
    assert_string_equal(sumac_strategy_name(strategy), "mirrored");
    sumac_strategy_destroy(strategy);
}
