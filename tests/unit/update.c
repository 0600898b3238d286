/* SPDX-License-Identifier: Apache-2.0 */
/* update.c (test) -- the table of update functions: what each may be applied to, and what its
 * hyperparameters may be.
 *
 * The rules' arithmetic is tested by update_loops.c and by the conformance cases.
 */
#include <ctype.h>
#include <math.h>

#include "unit.h"
#include "update.h"

/* A message's function with up to three hyperparameters. */
struct message {
    wire_function function;
    wire_hyperparameter given[3];
    wire_hyperparameter *pointers[3];
};

static void begin(struct message *message)
{
    const wire_function empty = WIRE_FUNCTION_INIT;

    message->function = empty;
    message->function.hyperparameters = message->pointers;
}

static void give(struct message *message, uint32_t name, double value)
{
    const wire_hyperparameter empty = WIRE_HYPERPARAMETER_INIT;
    const size_t i = message->function.n_hyperparameters++;

    message->given[i] = empty;
    message->given[i].name = (Sumac__V1__HyperparameterName)name;
    message->given[i].value = value;
    message->pointers[i] = &message->given[i];
}

TEST(the_table_has_the_functions_by_number_and_by_name)
{
    static const char *const names[] = {"assign",   "assign_add", "assign_sub", "sgd",
                                        "momentum", "adam",       "adagrad",    "rmsprop",
                                        "adamw",    "ftrl",       "nadam",      "adamax",
                                        "adadelta", "lion",       "yogi",       "delayed_nesterov",
                                        "multiply", "divide",     "min",        "max"};
    const uint32_t count = sizeof names / sizeof names[0];

    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(update_at(i)->name, names[i]);
        assert_ptr_equal(update_find(i + 1), update_at(i));
        assert_ptr_equal(update_find_by_name(names[i]), update_at(i));
    }
    assert_null(update_at(count));
    assert_null(update_find(0));
    assert_null(update_find(count + 1));
    assert_null(update_find_by_name("lamb"));
    assert_null(update_find_by_name(""));
}

/* "adam" of UPDATE_FUNCTION_ADAM. */
static void expect_name(const ProtobufCEnumValue *number, const char *prefix, const char *name)
{
    char wire[64] = "";

    assert_non_null(name);
    assert_int_equal(strncmp(number->name, prefix, strlen(prefix)), 0);
    for (size_t i = 0; name[i] != '\0' && i < sizeof wire - 1; i++)
        wire[i] = (char)toupper((unsigned char)name[i]);
    assert_string_equal(number->name + strlen(prefix), wire);
}

/* Whoever adds a number to the proto adds the row. */
TEST(every_number_of_the_wire_has_a_row_of_its_name)
{
    const ProtobufCEnumDescriptor *const functions = &sumac__v1__update_function__descriptor;
    const ProtobufCEnumDescriptor *const names = &sumac__v1__hyperparameter_name__descriptor;

    assert_int_equal(functions->n_values, UPDATE_FUNCTIONS_MAX + 1);
    assert_int_equal(names->n_values, UPDATE_HYPERPARAMETERS_MAX + 1);
    for (unsigned i = 1; i < functions->n_values; i++) {
        const struct update_function *const row = update_find((uint32_t)functions->values[i].value);
        assert_non_null(row);
        expect_name(&functions->values[i], "UPDATE_FUNCTION_", row->name);
    }
    for (unsigned i = 1; i < names->n_values; i++) {
        const uint32_t number = (uint32_t)names->values[i].value;
        expect_name(&names->values[i], "HYPERPARAMETER_NAME_", update_hyperparameter_name(number));
        assert_non_null(update_hyperparameter_of(update_find(UPDATE_FTRL), number)->symbol);
        assert_non_null(update_hyperparameter_range(update_find(UPDATE_FTRL), number));
    }
}

/* The count is of the variable's own function alone: one with slots is applied to no other
 * variable. */
TEST(a_function_that_counts_its_steps_keeps_slots)
{
    for (uint32_t i = 0; update_at(i) != NULL; i++)
        assert_true(!update_at(i)->counts_steps || update_at(i)->slot_count > 0);
}

TEST(a_slot_starts_from_what_its_row_says)
{
    const struct update_function *const yogi = update_find(UPDATE_YOGI);
    struct update_hyperparameters given;
    struct message create;
    float zeros[300], halves[300];
    double wide[3];

    begin(&create); /* given */
    give(&create, update_hyperparameter_find("initial_accumulator_value"), 0.5);
    assert_int_equal(
        update_hyperparameters_read(yogi, NULL, &create.function, &given, NULL), SUMAC_OK);

    update_fill_slot(yogi, 0, SUMAC_FLOAT32, &given, 300, zeros); /* when */
    update_fill_slot(yogi, 1, SUMAC_BFLOAT16, &given, 300, halves);
    update_fill_slot(yogi, 1, SUMAC_FLOAT64, &given, 3, wide);

    for (int i = 0; i < 300; i++) /* then */
        assert_true(zeros[i] == 0 && halves[i] == 0.5f);
    assert_true(wide[0] == 0.5 && wide[2] == 0.5);
    assert_int_equal(update_slot_dtype(SUMAC_FLOAT16), SUMAC_FLOAT32);
    assert_int_equal(update_slot_dtype(SUMAC_FLOAT64), SUMAC_FLOAT64);
}

/* rmsprop's mean gradient is there with centered alone, so no push can ask for it later. */
TEST(a_slot_that_is_chosen_is_there_from_the_beginning)
{
    const struct update_function *const rmsprop = update_find(UPDATE_RMSPROP);
    struct update_hyperparameters plain, centered;
    struct sumac_error error = {0};
    struct message create;

    begin(&create);
    give(&create, update_hyperparameter_find("centered"), 1);
    assert_int_equal(update_hyperparameters_read(rmsprop, NULL, NULL, &plain, NULL), SUMAC_OK);
    assert_int_equal(
        update_hyperparameters_read(rmsprop, NULL, &create.function, &centered, NULL), SUMAC_OK);

    assert_int_equal(update_slot_count(rmsprop, &plain), 2);
    assert_int_equal(update_slot_count(rmsprop, &centered), 3);
    assert_int_equal(update_slot_count(update_find(UPDATE_ADAM), &plain), 2);

    assert_int_equal(update_check_slots(rmsprop, &plain, &plain, "W", &error), SUMAC_OK);
    assert_int_equal(update_check_slots(rmsprop, &centered, &plain, "W", &error), SUMAC_OK);
    assert_int_equal(
        update_check_slots(rmsprop, &plain, &centered, "W", &error), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_MISSING_SLOTS);
    assert_string_equal(
        error.text, "rmsprop with centered keeps the slot mean_gradient, which variable W does not "
                    "have: create it with centered to push with it");
}

static const struct {
    const char *function, *name;
    double value;
} documented[] = {
    {"sgd", "learning_rate", 0.01},
    {"momentum", "learning_rate", 0.01},
    {"momentum", "momentum", 0.9},
    {"adam", "learning_rate", 0.001},
    {"adam", "beta_1", 0.9},
    {"adam", "beta_2", 0.999},
    {"adam", "epsilon", 1e-7},
    {"adam", "bias_correction", 1},
    {"adagrad", "learning_rate", 0.001},
    {"adagrad", "initial_accumulator_value", 0.1},
    {"adagrad", "epsilon", 1e-7},
    {"rmsprop", "learning_rate", 0.001},
    {"rmsprop", "rho", 0.9},
    {"rmsprop", "epsilon", 1e-7},
    {"adamw", "learning_rate", 0.001},
    {"adamw", "beta_1", 0.9},
    {"adamw", "beta_2", 0.999},
    {"adamw", "epsilon", 1e-7},
    {"adamw", "weight_decay", 0.004},
    {"adamw", "bias_correction", 1},
    {"ftrl", "learning_rate", 0.001},
    {"ftrl", "learning_rate_power", -0.5},
    {"ftrl", "initial_accumulator_value", 0.1},
    {"nadam", "learning_rate", 0.001},
    {"nadam", "beta_1", 0.9},
    {"nadam", "beta_2", 0.999},
    {"nadam", "epsilon", 1e-7},
    {"adamax", "learning_rate", 0.001},
    {"adamax", "beta_1", 0.9},
    {"adamax", "beta_2", 0.999},
    {"adamax", "epsilon", 1e-7},
    {"adadelta", "learning_rate", 0.001},
    {"adadelta", "rho", 0.95},
    {"adadelta", "epsilon", 1e-7},
    {"lion", "learning_rate", 0.0001},
    {"lion", "beta_1", 0.9},
    {"lion", "beta_2", 0.99},
    {"yogi", "learning_rate", 0.01},
    {"yogi", "beta_1", 0.9},
    {"yogi", "beta_2", 0.999},
    {"yogi", "epsilon", 0.001},
    {"yogi", "initial_accumulator_value", 1e-6},
    {"yogi", "bias_correction", 1},
    {"delayed_nesterov", "learning_rate", 0.7},
    {"delayed_nesterov", "momentum", 0.9},
    {"delayed_nesterov", "buffer_size", 4},
};

/* Each as docs/ARCHITECTURE.md has it after TensorFlow, or the function's paper; 0 where none is
 * said. */
TEST(every_default_is_the_documented_one)
{
    const struct update_function *function;

    for (uint32_t f = 0; (function = update_at(f)) != NULL; f++) {
        for (uint32_t number = 1; number <= UPDATE_HYPERPARAMETERS_MAX; number++) {
            double expected = 0;
            for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++)
                if (strcmp(documented[i].function, function->name) == 0 &&
                    update_hyperparameter_find(documented[i].name) == number)
                    expected = documented[i].value;
            assert_true(function->defaults[number] == expected);
        }
    }
}

TEST(hyperparameters_left_out_have_their_defaults)
{
    struct update_hyperparameters merged;

    assert_int_equal(
        update_hyperparameters_read(update_find(UPDATE_ADAM), NULL, NULL, &merged, NULL), SUMAC_OK);

    assert_int_equal(merged.set, update_find(UPDATE_ADAM)->hyperparameters);
    assert_true(merged.value[update_hyperparameter_find("learning_rate")] == 0.001);
    assert_true(merged.value[update_hyperparameter_find("beta_1")] == 0.9);
    assert_true(merged.value[update_hyperparameter_find("beta_2")] == 0.999);
    assert_true(merged.value[update_hyperparameter_find("epsilon")] == 1e-7);
}

TEST(a_push_lays_its_own_over_the_variables)
{
    const struct update_function *const momentum = update_find(UPDATE_MOMENTUM);
    struct update_hyperparameters own, merged;
    struct message create, push;

    begin(&create);
    give(&create, update_hyperparameter_find("learning_rate"), 0.5);
    give(&create, update_hyperparameter_find("nesterov"), 1);
    begin(&push);
    give(&push, update_hyperparameter_find("momentum"), 0.25);
    assert_int_equal(
        update_hyperparameters_read(momentum, NULL, &create.function, &own, NULL), SUMAC_OK);

    assert_int_equal(
        update_hyperparameters_read(momentum, &own, &push.function, &merged, NULL), SUMAC_OK);

    assert_true(merged.value[update_hyperparameter_find("learning_rate")] == 0.5);
    assert_true(merged.value[update_hyperparameter_find("momentum")] == 0.25);
    assert_true(merged.value[update_hyperparameter_find("nesterov")] == 1);
}

/* Of a momentum variable's own, sgd takes the learning rate and nothing else. */
TEST(another_function_takes_only_what_it_knows_of_the_variables)
{
    struct update_hyperparameters own, merged;
    struct message create;

    begin(&create);
    give(&create, update_hyperparameter_find("learning_rate"), 0.5);
    assert_int_equal(
        update_hyperparameters_read(
            update_find(UPDATE_MOMENTUM), NULL, &create.function, &own, NULL),
        SUMAC_OK);

    assert_int_equal(
        update_hyperparameters_read(update_find(UPDATE_SGD), &own, NULL, &merged, NULL), SUMAC_OK);

    assert_int_equal(merged.set, update_find(UPDATE_SGD)->hyperparameters);
    assert_true(merged.value[update_hyperparameter_find("learning_rate")] == 0.5);
}

static const struct {
    uint32_t function;
    const char *name;
    double value;
    bool fine;
} ranges[] = {
    {UPDATE_SGD, "learning_rate", 0, true},
    {UPDATE_SGD, "learning_rate", -0.1, false},
    {UPDATE_SGD, "learning_rate", (double)NAN, false},
    {UPDATE_SGD, "learning_rate", (double)INFINITY, false},
    {UPDATE_SGD, "clip_value", 0.5, true},
    {UPDATE_SGD, "clip_value", -0.5, false},
    {UPDATE_SGD, "clip_value", (double)INFINITY, false},
    {UPDATE_MULTIPLY, "clip_value", 0.5, false},
    {UPDATE_SGD, "momentum", 0.5, false},
    {UPDATE_ASSIGN, "learning_rate", 0.5, false},
    {UPDATE_MOMENTUM, "momentum", 1, true},
    {UPDATE_MOMENTUM, "momentum", 1.1, false},
    {UPDATE_MOMENTUM, "momentum", -0.1, false},
    {UPDATE_MOMENTUM, "nesterov", 0.5, false},
    {UPDATE_MOMENTUM, "nesterov", 1, true},
    {UPDATE_ADAM, "beta_1", 1, false},
    {UPDATE_ADAM, "beta_1", 0, true},
    {UPDATE_ADAM, "beta_2", 1, false},
    {UPDATE_ADAM, "beta_2", -0.1, false},
    {UPDATE_ADAM, "epsilon", -1e-9, false},
    {UPDATE_ADAM, "epsilon", 0, true},
    {UPDATE_ADAM, "bias_correction", 2, false},
    {UPDATE_ADAM, "initial_accumulator_value", -1, false},
    {UPDATE_ADAM, "weight_decay", 0, false},
    {UPDATE_ADAMW, "weight_decay", 0, true},
    {UPDATE_ADAMW, "weight_decay", -0.1, false},
    {UPDATE_ADAGRAD, "learning_rate", 0, true},
    {UPDATE_ADAGRAD, "initial_accumulator_value", 0, true},
    {UPDATE_RMSPROP, "rho", 1, true},
    {UPDATE_RMSPROP, "rho", 1.1, false},
    {UPDATE_RMSPROP, "centered", 0.5, false},
    {UPDATE_FTRL, "learning_rate", 0, false},
    {UPDATE_FTRL, "learning_rate", 1e-9, true},
    {UPDATE_FTRL, "learning_rate_power", 0, true},
    {UPDATE_FTRL, "learning_rate_power", 0.1, false},
    {UPDATE_FTRL, "learning_rate_power", -(double)INFINITY, false},
    {UPDATE_FTRL, "l1", -0.1, false},
    {UPDATE_FTRL, "l2", -0.1, false},
    {UPDATE_FTRL, "l2_shrinkage", -0.1, false},
    {UPDATE_DELAYED_NESTEROV, "buffer_size", 1, true},
    {UPDATE_DELAYED_NESTEROV, "buffer_size", 65536, true},
    {UPDATE_DELAYED_NESTEROV, "buffer_size", 65537, false},
    {UPDATE_DELAYED_NESTEROV, "buffer_size", 0, false},
    {UPDATE_DELAYED_NESTEROV, "buffer_size", 2.5, false},
    {UPDATE_DELAYED_NESTEROV, "momentum_activation", 1.5, false},
};

TEST(a_hyperparameter_out_of_range_is_refused_by_name)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        struct message message;
        begin(&message);
        give(&message, update_hyperparameter_find(ranges[i].name), ranges[i].value);
        struct update_hyperparameters merged = {.set = 77};
        struct sumac_error error = {0};

        const enum sumac_status status = update_hyperparameters_read(
            update_find(ranges[i].function), NULL, &message.function, &merged, &error);

        assert_int_equal(status, ranges[i].fine ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
        if (ranges[i].fine)
            continue;
        assert_int_equal(error.reason, SUMAC_REASON_BAD_HYPERPARAMETER);
        assert_non_null(strstr(error.text, ranges[i].name));
        assert_int_equal(merged.set, 77);
    }
}

TEST(unknown_and_repeated_hyperparameters_are_refused)
{
    struct update_hyperparameters merged;
    struct sumac_error error = {0};
    struct message unknown, twice;

    begin(&unknown);
    give(&unknown, 4711, 1);
    begin(&twice);
    give(&twice, update_hyperparameter_find("learning_rate"), 1);
    give(&twice, update_hyperparameter_find("learning_rate"), 2);

    assert_int_equal(
        update_hyperparameters_read(
            update_find(UPDATE_SGD), NULL, &unknown.function, &merged, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "4711"));

    begin(&unknown);
    give(&unknown, update_hyperparameter_find("momentum"), 1);
    assert_int_equal(
        update_hyperparameters_read(
            update_find(UPDATE_ADAM), NULL, &unknown.function, &merged, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text,
        "adam has no hyperparameter momentum; it has learning_rate, beta_1, beta_2, epsilon, "
        "initial_accumulator_value, bias_correction, clip_value");

    assert_int_equal(
        update_hyperparameters_read(
            update_find(UPDATE_SGD), NULL, &twice.function, &merged, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "twice"));
}

/* 1 - 1e-9 is below 1 in float64, and 1 in float32. */
TEST(a_hyperparameter_must_be_in_range_as_the_type_has_it)
{
    const struct update_function *const adam = update_find(UPDATE_ADAM);
    struct update_hyperparameters merged;
    struct sumac_error error = {0};
    struct message message;

    begin(&message);
    give(&message, update_hyperparameter_find("beta_2"), 1 - 1e-9);
    assert_int_equal(
        update_hyperparameters_read(adam, NULL, &message.function, &merged, NULL), SUMAC_OK);

    assert_int_equal(update_hyperparameters_check(adam, SUMAC_FLOAT64, &merged, NULL), SUMAC_OK);
    assert_int_equal(
        update_hyperparameters_check(adam, SUMAC_FLOAT32, &merged, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "beta_2"));
}

TEST(a_function_with_slots_needs_a_variable_created_with_it)
{
    const struct update_function *const adam = update_find(UPDATE_ADAM);
    const struct update_function *const sgd = update_find(UPDATE_SGD);
    struct sumac_error error = {0};

    assert_int_equal(update_check(adam, adam, SUMAC_FLOAT32, "W", NULL), SUMAC_OK);
    assert_int_equal(update_check(sgd, adam, SUMAC_FLOAT32, "W", NULL), SUMAC_OK);
    assert_int_equal(update_check(sgd, NULL, SUMAC_FLOAT64, "W", NULL), SUMAC_OK);
    assert_int_equal(
        update_check(adam, sgd, SUMAC_FLOAT32, "W", &error), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_MISSING_SLOTS);
    assert_non_null(strstr(error.text, "adam"));
    assert_non_null(strstr(error.text, "W"));
    assert_int_equal(
        update_check(adam, NULL, SUMAC_FLOAT32, "W", &error), SUMAC_FAILED_PRECONDITION);
}

TEST(each_function_has_its_data_types)
{
    struct sumac_error error = {0};

    for (int dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++) {
        for (uint32_t i = 0; update_at(i) != NULL; i++) {
            const struct update_function *const function = update_at(i);
            const uint32_t number = function->number;
            const bool exact = number <= UPDATE_ASSIGN_SUB || number == UPDATE_MULTIPLY ||
                               number == UPDATE_DIVIDE || number == UPDATE_MIN ||
                               number == UPDATE_MAX;
            const bool fine =
                number == UPDATE_ASSIGN || (exact && dtype != SUMAC_BOOL) || dtype >= SUMAC_FLOAT16;

            const enum sumac_status status =
                update_check(function, function, (enum sumac_dtype)dtype, "v", &error);

            assert_int_equal(status, fine ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
        }
    }
    assert_int_equal(
        update_check(update_find(UPDATE_ASSIGN), NULL, (enum sumac_dtype)14, "v", &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        update_check(update_find(UPDATE_ASSIGN), NULL, SUMAC_DTYPE_UNSPECIFIED, "v", &error),
        SUMAC_INVALID_ARGUMENT);
}

/* Nothing that is pushed ends a ps: neither ÷ 0 nor the quotient that no int has. */
TEST(integers_are_divided_towards_zero)
{
    int32_t value[] = {7, -7, 7, 5, INT32_MIN, INT32_MIN};
    const int32_t by[] = {2, 2, -2, 0, -1, 2};
    const int32_t expected[] = {3, -3, -3, 0, INT32_MIN, INT32_MIN / 2};
    struct update_slice slice = {
        .function = update_find(UPDATE_DIVIDE),
        .dtype = SUMAC_INT32,
        .count = 6,
        .value_out = value,
        .value_in = value,
        .gradient = by,
        .divisor = 1};
    uint8_t small[] = {200, 7, 1};
    const uint8_t small_by[] = {7, 255, 0};
    const struct update_hyperparameters none = {.set = 0};

    update_prepare(slice.function, slice.dtype, &none, 0, &slice);
    update_run(&slice);
    assert_memory_equal(value, expected, sizeof expected);

    slice.dtype = SUMAC_UINT8;
    slice.count = 3;
    slice.value_in = slice.value_out = small;
    slice.gradient = small_by;
    update_run(&slice);
    assert_memory_equal(small, ((const uint8_t[]){28, 0, 0}), 3);
}

TEST(an_integer_of_any_type_divided_by_0_is_0)
{
    const struct update_hyperparameters none = {.set = 0};
    const struct update_function *const divide = update_find(UPDATE_DIVIDE);

    for (uint32_t i = 1; i < 32; i++) {
        const enum sumac_dtype dtype = (enum sumac_dtype)i;
        const uint64_t zeros = 0;
        uint64_t value = UINT64_MAX;
        struct update_slice slice = {
            .function = divide,
            .dtype = dtype,
            .value_out = &value,
            .value_in = &value,
            .gradient = &zeros,
            .divisor = 1};
        if (update_check(divide, NULL, dtype, "v", NULL) != SUMAC_OK || sumac_dtype_is_float(dtype))
            continue;
        slice.count = sizeof value / sumac_dtype_bytes(dtype);
        update_prepare(divide, dtype, &none, 0, &slice);
        update_run(&slice);
        assert_true(value == 0);
    }
}

/* As a ps updates a variable that a pull still reads. */
TEST(an_update_to_another_place_has_the_same_bits_there)
{
    enum { COUNT = 40, PLACES = 1 + UPDATE_SLOTS_MAX };
    static float before[PLACES][COUNT], here[PLACES][COUNT], there[PLACES][COUNT];
    static float gradient[COUNT];
    const struct update_function *function;
    wire_initializer uniform = WIRE_INITIALIZER_INIT;

    uniform.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_UNIFORM;
    uniform.a = 0.5;
    uniform.b = 1;
    initializer_fill(&uniform, SUMAC_FLOAT32, 0, PLACES * COUNT, before);
    initializer_fill(&uniform, SUMAC_FLOAT32, 1000, COUNT, gradient);
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        for (uint64_t step = 1; step <= 4; step += 3) { /* delayed_nesterov's fourth moves */
            struct update_hyperparameters defaults;
            struct update_slice slice = {
                .function = function,
                .dtype = SUMAC_FLOAT32,
                .count = COUNT,
                .gradient = gradient,
                .divisor = 1};
            assert_int_equal(
                update_hyperparameters_read(function, NULL, NULL, &defaults, NULL), SUMAC_OK);
            const uint32_t places = 1 + update_slot_count(function, &defaults);
            update_prepare(function, SUMAC_FLOAT32, &defaults, step, &slice);
            memcpy(here, before, sizeof here); /* given */
            memset(there, 0, sizeof there);

            for (int apart = 0; apart < 2; apart++) { /* when */
                float(*const to)[COUNT] = apart == 1 ? there : here;
                slice.value_in = apart == 1 ? before[0] : here[0];
                slice.value_out = to[0];
                for (uint32_t slot = 1; slot < places; slot++) {
                    slice.slot_in[slot - 1] = apart == 1 ? before[slot] : here[slot];
                    slice.slot_out[slot - 1] = to[slot];
                }
                update_run(&slice);
            }

            if (memcmp(here, there, places * sizeof here[0]) != 0) /* then */
                fail_msg("%s: other bits", function->name);
        }
}

/* Where neither the slot nor the gradient points anywhere, nothing moves. */
TEST(lion_stays_where_there_is_no_gradient)
{
    float value[] = {1, 2}, slot[] = {0, 0};
    const float gradient[] = {0, -0.0F};
    struct update_hyperparameters defaults;
    struct update_slice slice = {
        .function = update_find(UPDATE_LION),
        .dtype = SUMAC_FLOAT32,
        .count = 2,
        .value_in = value,
        .value_out = value,
        .slot_in = {slot},
        .slot_out = {slot},
        .gradient = gradient,
        .divisor = 1};

    assert_int_equal(
        update_hyperparameters_read(slice.function, NULL, NULL, &defaults, NULL), SUMAC_OK);
    update_prepare(slice.function, SUMAC_FLOAT32, &defaults, 1, &slice);
    update_run(&slice);
    assert_memory_equal(value, ((const float[]){1, 2}), sizeof value);
}

/* β is rounded to the type of the arithmetic first; of the 10 000th update the correction is all
 * but gone. */
TEST(adams_rate_has_its_bias_correction)
{
    const struct update_function *const adam = update_find(UPDATE_ADAM);
    struct update_hyperparameters defaults;
    struct update_slice slice = {0};

    assert_int_equal(update_hyperparameters_read(adam, NULL, NULL, &defaults, NULL), SUMAC_OK);

    static const uint64_t counts[] = {1, 2, 17, 10000};
    for (size_t i = 0; i < 4; i++) {
        update_prepare(adam, SUMAC_FLOAT64, &defaults, counts[i], &slice);

        const double t = (double)counts[i];
        const double expected = 0.001 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));
        assert_true(fabs(slice.scalar[UPDATE_SCALAR_RATE] - expected) <= 1e-12 * expected);
    }
    update_prepare(adam, SUMAC_FLOAT32, &defaults, 1, &slice);
    assert_true(slice.scalar[UPDATE_SCALAR_ONE_LESS_BETA_2] == 1 - (double)0.999f);
    assert_true(slice.scalar[UPDATE_SCALAR_EPSILON] == (double)1e-7f);
}

TEST(nesterovs_rule_is_chosen_by_its_hyperparameter)
{
    const struct update_function *const momentum = update_find(UPDATE_MOMENTUM);
    wire_hyperparameter nesterov = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *list[] = {&nesterov};
    wire_function given = WIRE_FUNCTION_INIT;
    struct update_hyperparameters read;
    struct update_slice slice = {0};

    nesterov.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_NESTEROV;
    given.hyperparameters = list;
    given.n_hyperparameters = 1;

    for (int chosen = 0; chosen <= 1; chosen++) {
        nesterov.value = chosen;
        assert_int_equal(
            update_hyperparameters_read(momentum, NULL, &given, &read, NULL), SUMAC_OK);
        update_prepare(momentum, SUMAC_FLOAT32, &read, 1, &slice);
        assert_int_equal(slice.flag, chosen);
    }
}
