/* SPDX-License-Identifier: Apache-2.0 */
/* expression_rows.c (test) -- each built-in update function is what its expression says: the
 * expression is the documentation. */
#include <math.h>

#include "unit.h"
#include "expression.h"
#include "expression_rows.h"
#include "update.h"

#define COUNT 1027u
#define PUSHES 50u

struct state {
    uint64_t value[COUNT], slots[EXPRESSION_SLOTS_MAX][COUNT], gradient[COUNT];
};

static void draw(enum sumac_dtype dtype, uint64_t seed, void *out)
{
    wire_initializer initializer = WIRE_INITIALIZER_INIT;

    initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_NORMAL;
    initializer.b = 1;
    initializer.seed = seed;
    initializer_fill(&initializer, dtype, 0, COUNT, out);
}

/* The built-in function's, by its own names: an expression has them in its own order. */
static void push_built_in(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t step, struct state *state)
{
    struct update_slice slice = {
        .function = function,
        .dtype = dtype,
        .count = COUNT,
        .value_in = state->value,
        .value_out = state->value,
        .gradient = state->gradient};

    for (uint32_t s = 0; s < update_slot_count(function, hyperparameters); s++)
        slice.slot_in[s] = slice.slot_out[s] = state->slots[s];
    update_prepare(function, dtype, hyperparameters, step, &slice);
    update_run(&slice);
}

static void push_expression(
    const struct expression *expression, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t step, struct state *state)
{
    static struct expression_plan plan;
    double values[EXPRESSION_HYPERPARAMETERS_MAX];
    struct expression_slice slice = {
        .count = COUNT,
        .value_in = state->value,
        .value_out = state->value,
        .gradient = state->gradient,
        .gradient_dtype = dtype};

    for (uint32_t i = 0; i < expression->hyperparameter_count; i++)
        values[i] =
            hyperparameters->value[update_hyperparameter_find(expression->hyperparameter_names[i])];
    for (uint32_t s = 0; s < expression->slot_count; s++)
        slice.slot_in[s] = slice.slot_out[s] = state->slots[s];
    expression_plan(expression, dtype, values, step, &plan);
    expression_run(&plan, &slice);
}

static struct expression read_row(const struct expression_row *row)
{
    struct expression expression;
    struct sumac_error error;

    if (expression_read(row->text, strlen(row->text), &expression, &error) != SUMAC_OK)
        fail_msg("%s: %s", row->name, error.text);
    return expression;
}

static double element(enum sumac_dtype dtype, const void *elements, size_t i)
{
    float narrow;
    double number;

    memcpy(&narrow, (const uint8_t *)elements + 4 * i, sizeof narrow);
    if (dtype == SUMAC_FLOAT32)
        return (double)narrow;
    memcpy(&number, (const uint8_t *)elements + 8 * i, sizeof number);
    return number;
}

/* A function that counts its steps has powers of β: the loop's are products, whose last bits stray
 * by as many units as there are factors, and what is divided by, 1 − β^t ≥ 1 − β, has lost the
 * bits that β^t has more than it. That is 2^-52 ÷ (1 − 0.999) ÷ e of the rate, which, once, may
 * round the other way; what it is subtracted from is rounded once or twice more. */
static void check_value(
    const struct update_function *function, enum sumac_dtype dtype, const struct state *before,
    const struct state *one, const struct state *other)
{
    const double unit = dtype == SUMAC_FLOAT32 ? 0x1p-23 : 0x1p-52;
    const double rate = dtype == SUMAC_FLOAT32 ? 2 * unit : 1000 * unit;

    if (!function->counts_steps) {
        assert_memory_equal(one->value, other->value, sizeof one->value);
        return;
    }
    for (size_t i = 0; i < COUNT; i++) {
        const double was = element(dtype, before->value, i), is = element(dtype, one->value, i);
        const double said = element(dtype, other->value, i);
        if (!(fabs(is - said) <= rate * fabs(is - was) + unit * (fabs(is) + fabs(was))))
            fail_msg("%s of %zu: %a and not %a, from %a", function->name, i, is, said, was);
    }
}

static void check_row(
    const struct update_function *function, const struct expression *expression,
    enum sumac_dtype dtype, const struct update_hyperparameters *hyperparameters)
{
    static struct state before, one, other;

    memset(&one, 0, sizeof one);
    draw(dtype, 1, one.value);
    for (uint64_t step = 1; step <= PUSHES; step++) {
        const uint64_t later = step < PUSHES ? step : 100000;
        draw(dtype, step + 1, one.gradient); /* given */
        before = other = one;

        push_built_in(function, dtype, hyperparameters, later, &one); /* when */
        push_expression(expression, dtype, hyperparameters, later, &other);

        check_value(function, dtype, &before, &one, &other); /* then */
        assert_memory_equal(one.slots, other.slots, sizeof one.slots);
    }
}

static struct update_hyperparameters
defaults_of(const struct update_function *function, const struct expression_row *row)
{
    struct update_hyperparameters hyperparameters;

    assert_int_equal(
        update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL), SUMAC_OK);
    if (row->fixed != NULL)
        hyperparameters.value[update_hyperparameter_find(row->fixed)] = row->fixed_to;
    return hyperparameters;
}

/* With each type; of half types, those that are the same to the last bit in float32. */
static void check_types(
    const struct update_function *function, const struct expression *expression,
    const struct update_hyperparameters *hyperparameters)
{
    check_row(function, expression, SUMAC_FLOAT32, hyperparameters);
    check_row(function, expression, SUMAC_FLOAT64, hyperparameters);
    if (function->counts_steps)
        return;
    check_row(function, expression, SUMAC_FLOAT16, hyperparameters);
    check_row(function, expression, SUMAC_BFLOAT16, hyperparameters);
}

/* With its defaults; with each switch the other way; with other numbers than 0. */
TEST(each_row_is_what_its_expression_says)
{
    static const uint32_t switches[] = {
        UPDATE_HYPERPARAMETER_NESTEROV, UPDATE_HYPERPARAMETER_BIAS_CORRECTION};
    static const uint32_t zeros[] = {
        UPDATE_HYPERPARAMETER_MOMENTUM, UPDATE_HYPERPARAMETER_L1, UPDATE_HYPERPARAMETER_L2,
        UPDATE_HYPERPARAMETER_L2_SHRINKAGE, UPDATE_HYPERPARAMETER_WEIGHT_DECAY};

    for (size_t i = 0; i < EXPRESSION_ROWS; i++) {
        const struct expression_row *const row = &expression_rows[i];
        const struct update_function *const function = update_find_by_name(row->name);
        const struct expression expression = read_row(row);
        assert_non_null(function);
        struct update_hyperparameters hyperparameters = defaults_of(function, row);
        check_types(function, &expression, &hyperparameters);
        for (size_t k = 0; k < sizeof switches / sizeof switches[0]; k++)
            hyperparameters.value[switches[k]] = 1 - hyperparameters.value[switches[k]];
        for (size_t k = 0; k < sizeof zeros / sizeof zeros[0]; k++)
            hyperparameters.value[zeros[k]] = 0.25;
        check_types(function, &expression, &hyperparameters);
    }
}

/* A slot starts from 0, or from the hyperparameter that the row names. */
static void check_slots(const struct update_function *function, const struct expression *expression)
{
    for (uint32_t s = 0; s < expression->slot_count; s++) {
        const uint16_t from = expression->slot_initial_from[s];
        assert_true(expression->slot_initial[s] == 0);
        assert_int_equal(
            function->slot_from[s],
            from == EXPRESSION_NONE
                ? 0
                : update_hyperparameter_find(expression->hyperparameter_names[from]));
    }
}

/* Names, defaults, slots and what they start from. What `clip_value` makes of g comes before any
 * rule sees it. */
TEST(each_expression_declares_what_its_row_does)
{
    for (size_t i = 0; i < EXPRESSION_ROWS; i++) {
        const struct expression_row *const row = &expression_rows[i];
        const struct update_function *const function = update_find_by_name(row->name);
        const struct expression expression = read_row(row);
        const struct update_hyperparameters hyperparameters = defaults_of(function, row);
        uint32_t has = row->fixed == NULL ? 0 : 1u << update_hyperparameter_find(row->fixed);
        assert_int_equal(expression.slot_count, update_slot_count(function, &hyperparameters));
        assert_int_equal(expression.counts_steps, function->counts_steps);
        check_slots(function, &expression);
        for (uint32_t h = 0; h < expression.hyperparameter_count; h++) {
            const uint32_t number = update_hyperparameter_find(expression.hyperparameter_names[h]);
            has |= 1u << number;
            assert_true(expression.defaults[h] == function->defaults[number]);
        }
        const uint32_t conditions = 1u << UPDATE_HYPERPARAMETER_CLIP_VALUE;
        assert_int_equal(has, function->hyperparameters & ~conditions);
    }
}

TEST(each_row_of_the_table_has_an_expression)
{
    const struct update_function *function;

    for (uint32_t f = 0; (function = update_at(f)) != NULL; f++) {
        bool found = strcmp(function->name, "delayed_nesterov") == 0;
        for (size_t i = 0; i < EXPRESSION_ROWS; i++)
            found = found || strcmp(expression_rows[i].name, function->name) == 0;
        if (!found)
            fail_msg("%s has no expression in expression_rows.h", function->name);
    }
}

/* docs/EXPRESSIONS.md has these very texts. */
TEST(the_page_says_the_same)
{
    static char page[65536];
    FILE *const file = fopen(EXPRESSIONS_PAGE, "r");

    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < EXPRESSION_ROWS; i++)
        if (strstr(page, expression_rows[i].text) == NULL)
            fail_msg("%s has not:\n%s", EXPRESSIONS_PAGE, expression_rows[i].text);
}
