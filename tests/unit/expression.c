/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c (test) -- what an expression's text may say, and how it is told what it may not. */

#include "unit.h"
#include "assert_number.h"
#include "expression.h"

static struct expression expression;

static void assert_read(const char *text)
{
    struct sumac_error error = {.text = ""};

    if (expression_read(text, strlen(text), &expression, &error) != SUMAC_OK)
        fail_msg("%s\nis refused: %s", text, error.text);
}

/* With that sentence; one that goes on is given by its begin. */
static void assert_refused(const char *text, const char *sentence)
{
    struct sumac_error error = {.text = ""};

    const enum sumac_status status = expression_read(text, strlen(text), &expression, &error);
    if (status != SUMAC_INVALID_ARGUMENT || strncmp(error.text, sentence, strlen(sentence)) != 0)
        fail_msg("%s\nis told \"%s\" and not \"%s\"", text, error.text, sentence);
    assert_int_equal(error.status, SUMAC_INVALID_ARGUMENT);
}

/* One element of float64, by a plan with the text's own defaults. */
static double run_one(const char *text, double value, double gradient)
{
    static struct expression_plan plan;
    double slots[EXPRESSION_SLOTS_MAX];
    struct expression_slice slice = {
        .count = 1,
        .value_in = &value,
        .value_out = &value,
        .gradient = &gradient,
        .gradient_dtype = SUMAC_FLOAT64};

    assert_read(text);
    for (uint32_t s = 0; s < expression.slot_count; s++) {
        slots[s] = expression.slot_initial[s];
        slice.slot_in[s] = slice.slot_out[s] = &slots[s];
    }
    expression_plan(&expression, SUMAC_FLOAT64, expression.defaults, 1, &plan);
    expression_run(&plan, &slice);
    return value;
}

TEST(hyperparameters_and_slots_are_declared_with_what_they_start_from)
{
    assert_read("hyperparameters: learning_rate = 1e-4, power = -0.5, initial = 2\n"
                "slots: m = 0.125, n = initial, w = -1\n"
                "m = m + g\nn = n + m\nw = w + power\nvalue = value - learning_rate * n * w\n");

    assert_int_equal(expression.hyperparameter_count, 3);
    assert_string_equal(expression.hyperparameter_names[1], "power");
    assert_number_equal(expression.defaults[0], 1e-4);
    assert_number_equal(expression.defaults[1], -0.5);
    assert_int_equal(expression.slot_count, 3);
    assert_string_equal(expression.slot_names[0], "m");
    assert_number_equal(expression.slot_initial[0], 0.125);
    assert_int_equal(expression.slot_initial_from[0], EXPRESSION_NONE);
    assert_int_equal(expression.slot_initial_from[1], 2);
    assert_number_equal(expression.slot_initial[2], -1);
    assert_false(expression.counts_steps);
}

TEST(who_reads_step_counts_steps)
{
    assert_read("value = value - g / step");
    assert_true(expression.counts_steps);
}

TEST(lines_may_be_empty_and_have_comments)
{
    assert_read("\n# η is the rate\n\nhyperparameters: rate = 1 # always\r\n\n\tvalue = value - "
                "rate * g # θ\n# the end");
    assert_read("value = value - (g + # a line goes on\n  1)\n");
    assert_read("value = g");
}

TEST(operators_bind_as_in_arithmetic)
{
    assert_number_equal(run_one("value = 2 + 3 * g", 0, 4), 14);
    assert_number_equal(run_one("value = 20 - 3 - g", 0, 4), 13);
    assert_number_equal(run_one("value = 24 / g / 2", 0, 4), 3);
    assert_number_equal(run_one("value = -g * 2", 0, 4), -8);
    assert_number_equal(run_one("value = 3 - -g", 0, 4), 7);
    assert_number_equal(run_one("value = (2 + 3) * g", 0, 4), 20);
    assert_number_equal(run_one("value = where(1 + g > 2 * 2, 1, 2) + 0 * g", 0, 4), 1);
    assert_number_equal(run_one("value = clip(g, -1, 3)", 0, 4), 3);
    assert_number_equal(run_one("value = clip(-g, -1, 3)", 0, 4), -1);
}

/* What stands above has happened, and what stands below has not. */
TEST(assignments_are_made_in_their_order)
{
    assert_number_equal(run_one("slots: m = 5\nvalue = m\nm = g", 0, 4), 5);
    assert_number_equal(run_one("slots: m = 5\nm = g + m\nvalue = m", 0, 4), 9);
    assert_number_equal(run_one("value = value * 2\nvalue = value + g", 1, 4), 6);
    assert_number_equal(run_one("t = g\nu = t + 1\nt = u * 2\nvalue = t", 0, 4), 10);
    assert_number_equal(run_one("old = value\nvalue = g\nu = value - old\nvalue = u", 1, 4), 3);
}

TEST(what_is_wrong_is_told_with_line_column_and_word)
{
    assert_refused("value = value - rat * g", "line 1, column 17: rat: nothing has this name here");
    assert_refused(
        "t = 1\n  value = t + # θ\n", "line 2, column 18: the end of the line: expected");
    assert_refused("value = (g +\n  2 @ g)", "line 2, column 5: @: expected");
    assert_refused("value = (g + 1", "line 1, column 15: the end of the text: expected ) here");
    assert_refused("value = g )", "line 1, column 11: ): expected an operator, or the end");
    assert_refused("value = g g", "line 1, column 11: g: expected an operator, or the end");
    assert_refused("value g", "line 1, column 7: g: expected = after what is assigned");
    assert_refused("= g", "line 1, column 1: =: expected an assignment");
    assert_refused("value = é", "line 1, column 9: é: expected a number, a name");
    assert_refused("value = g @ 2", "line 1, column 11: @: expected an operator");
    assert_refused("value = 1x", "line 1, column 9: 1x: no number, or one beyond 19 digits");
    assert_refused(
        "value = 1e999 * g",
        "line 1, column 9: 1e999: no number, or one beyond 19 digits or 1.8e308");
    assert_refused("value = g\x01", "line 1, column 10: ?: expected an operator");
    assert_refused("value = \xff", "the text is not UTF-8");
}

TEST(a_nul_is_a_byte_like_any_other)
{
    static const char text[] = "value = g\0 + 1";
    struct sumac_error error;

    assert_int_equal(
        expression_read(text, sizeof text - 1, &expression, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "line 1, column 10"));
}

TEST(value_is_assigned)
{
    assert_refused("", "line 1, column 1: the end of the text: value is never assigned");
    assert_refused("slots: m = 0\nm = m + g\n", "line 3, column 1: the end of the text: value is");
}

TEST(what_nobody_reads_is_refused)
{
    assert_refused(
        "hyperparameters: rate = 1\nvalue = g", "line 1, column 18: rate: nothing reads this");
    assert_refused("vlaue = value - g\nvalue = g", "line 1, column 1: vlaue: nothing reads what");
    assert_refused("value = value - g\nvalue = g", "line 1, column 1: value: nothing reads what");
    assert_refused("t = g\nt = 1\nvalue = t", "line 1, column 1: t: nothing reads what");
    assert_refused(
        "slots: m = 0\nvalue = g + m", "line 1, column 8: m: the slot is never assigned");
    assert_refused(
        "slots: a = 0, m = 0\na = a + g\nm = g\nvalue = a + m",
        "line 3, column 1: m: nothing reads what the slot holds");
    assert_refused(
        "slots: m = 0\nm = g\nvalue = m", "line 2, column 1: m: nothing reads what the slot holds");
}

TEST(names_are_used_for_one_thing)
{
    assert_refused("exp = g", "line 1, column 1: exp: it is a word of the language");
    assert_refused("g = 1", "line 1, column 1: g: it is a word of the language");
    assert_refused("step = 1", "line 1, column 1: step: it is a word of the language");
    assert_refused("slots: value = 0", "line 1, column 8: value: it is a word of the language");
    assert_refused("hyperparameters: slots = 0", "line 1, column 18: slots: it is a word");
    assert_refused(
        "hyperparameters: a = 0\nslots: a = 0",
        "line 2, column 8: a: it is there already, in line 1");
    assert_refused(
        "hyperparameters: a = 0\na = g\nvalue = a", "line 2, column 1: a: a hyperparameter is not");
    assert_refused("u = u + g\nvalue = u", "line 1, column 5: u: nothing has this name here");
}

TEST(declarations_come_first)
{
    assert_refused(
        "value = g\nslots: m = 0", "line 2, column 1: slots: what is declared comes first");
    assert_refused(
        "slots: m = 0\nhyperparameters: a = 0", "line 2, column 1: hyperparameters: what is");
    assert_refused("slots m = 0", "line 1, column 7: m: expected : after the title");
    assert_refused("slots: m", "line 1, column 9: the end of the text: expected = and the number");
    assert_refused("slots: a = 1, b = a", "line 1, column 19: a: expected a number of at most 19");
    assert_refused("slots: m = g", "line 1, column 12: g: expected a number of at most 19 digits");
    assert_refused("slots: m = 0,", "line 1, column 14: the end of the text: expected a name");
    assert_refused(
        "hyperparameters: a = 1, b = a", "line 1, column 29: a: expected a number of at most");
}

TEST(comparisons_are_for_where)
{
    assert_refused("value = g > 0", "line 1, column 1: value: it is a number, and is assigned a");
    assert_refused("value = where(g, 1, 2)", "line 1, column 9: where: its first argument is a");
    assert_refused("value = (g > 0) * 2", "line 1, column 17: *: it takes numbers");
    assert_refused("value = exp(g > 0)", "line 1, column 9: exp: it takes numbers");
    assert_refused("value = where(g > 0, g < 1, 2)", "line 1, column 9: where: it takes numbers");
    assert_refused("value = where(0 < g < 1, 1, 2)", "line 1, column 21: <: a comparison is not");
    assert_number_equal(run_one("large = g > 3\nvalue = where(large, 3, g)", 0, 4), 3);
}

/* Of a smaller, an equal and a larger right side. */
static void assert_compares(const char *text, double smaller, double equal, double larger)
{
    assert_number_equal(run_one(text, 3, 4), smaller);
    assert_number_equal(run_one(text, 4, 4), equal);
    assert_number_equal(run_one(text, 5, 4), larger);
}

TEST(comparisons_compare_the_left_side_with_the_right_one)
{
    assert_compares("value = where(g < value, 1, 0)", 0, 0, 1);
    assert_compares("value = where(g <= value, 1, 0)", 0, 1, 1);
    assert_compares("value = where(g > value, 1, 0)", 1, 0, 0);
    assert_compares("value = where(g >= value, 1, 0)", 1, 1, 0);
    assert_compares("value = where(g == value, 1, 0)", 0, 1, 0);
    assert_compares("value = where(g != value, 1, 0)", 1, 0, 1);
}

TEST(functions_have_their_arguments)
{
    assert_refused("value = exp", "line 1, column 12: the end of the text: expected ( and what");
    assert_refused("value = exp(g, 1)", "line 1, column 14: ,: exp takes 1, and this is one more");
    assert_refused("value = pow(g)", "line 1, column 14: ): pow takes 2, and there are 1");
    assert_refused("value = clip(g, 1)", "line 1, column 18: ): clip takes 3, and there are 2");
    assert_refused("value = exp()", "line 1, column 13: ): expected a number, a name");
}

static void fill(char *text, const char *piece, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        strcat(text, piece);
}

TEST(each_bound_is_reached_and_told)
{
    static char text[20000];

    strcpy(text, "value = g"); /* bytes */
    fill(text, "\n", EXPRESSION_TEXT_BYTES_MAX - 9);
    assert_read(text);
    fill(text, "\n", 1);
    assert_refused(text, "the text has 4097 bytes; an expression has at most 4096");

    strcpy(text, "value = "); /* depth */
    fill(text, "(-", EXPRESSION_DEPTH_MAX / 2);
    strcat(text, "g");
    fill(text, ")", EXPRESSION_DEPTH_MAX / 2);
    assert_read(text);
    strcpy(text, "value = ");
    fill(text, "-", EXPRESSION_DEPTH_MAX + 1);
    assert_refused(text, "line 1, column 41: -: more than 32 parentheses");
    strcpy(text, "value = ");
    fill(text, "exp(", 1000);
    assert_refused(text, "line 1, column 140: (: more than 32 parentheses");

    strcpy(text, "value = g"); /* nodes: g, and each difference */
    fill(text, " - g", EXPRESSION_NODES_MAX - 1);
    assert_read(text);
    assert_int_equal(expression.node_count, EXPRESSION_NODES_MAX);
    fill(text, " - g", 1);
    assert_refused(text, "line 1, column 519: -: the text has more than 128 different operations");
    strcpy(text, "value = g"); /* assignments */
    fill(text, "\nvalue = value + 1", EXPRESSION_ASSIGNMENTS_MAX - 1);
    assert_read(text);
    fill(text, "\nvalue = value + 1", 1);
    assert_refused(text, "line 65, column 1: value: there are at most 64 assignments");
}

static void say_many(char *text, const char *title, const char *name, uint32_t count)
{
    strcpy(text, title);
    for (uint32_t i = 0; i < count; i++)
        sprintf(text + strlen(text), "%s%s%u = 0", i > 0 ? ", " : " ", name, i);
}

TEST(as_many_names_as_there_may_be)
{
    static char text[20000];

    say_many(text, "hyperparameters:", "h", EXPRESSION_HYPERPARAMETERS_MAX + 1);
    assert_refused(text, "line 1, column 152: h16: there are at most 16 hyperparameters");
    say_many(text, "slots:", "s", EXPRESSION_SLOTS_MAX + 1);
    assert_refused(text, "line 1, column 32: s3: there are at most 3 slots");
    strcpy(text, "t0 = g\n");
    for (uint32_t i = 1; i <= EXPRESSION_TEMPORARIES_MAX; i++)
        sprintf(text + strlen(text), "t%u = t%u + g\n", i, i - 1);
    assert_refused(text, "line 33, column 1: t32: there are at most 32 temporaries");
    strcpy(text, "");
    fill(text, "n", EXPRESSION_NAME_BYTES_MAX);
    strcat(text, " = g\nvalue = ");
    fill(text, "n", EXPRESSION_NAME_BYTES_MAX);
    assert_read(text);
    strcpy(text, "");
    fill(text, "n", EXPRESSION_NAME_BYTES_MAX + 1);
    strcat(text, " = g");
    assert_refused(text, "line 1, column 1: nnnnnnnn");
    strcpy(text, "value = g");
    for (uint32_t i = 0; i < 200; i++)
        sprintf(text + strlen(text), " + %u", i + 2);
    assert_refused(text, "line 1, column ");
    struct sumac_error error;
    (void)expression_read(text, strlen(text), &expression, &error);
    assert_non_null(strstr(error.text, "more than 128 different operations"));
}

/* As many values as there can be at a time: the tiles become smaller. */
TEST(many_values_at_a_time)
{
    static char text[4096];
    static float values[5000], gradients[5000];
    static struct expression_plan plan;

    strcpy(text, "t0 = g * value\n");
    for (uint32_t i = 1; i < 30; i++)
        sprintf(text + strlen(text), "t%u = t%u * g\n", i, i - 1);
    strcat(text, "value = t0");
    for (uint32_t i = 1; i < 30; i++)
        sprintf(text + strlen(text), " + t%u", i);
    assert_read(text);
    expression_plan(&expression, SUMAC_FLOAT32, expression.defaults, 1, &plan);
    assert_true(plan.register_count > 16);
    for (uint32_t i = 0; i < 5000; i++) {
        values[i] = (float)(i % 7);
        gradients[i] = 1;
    }
    const struct expression_slice slice = {
        .count = 5000,
        .value_in = values,
        .value_out = values,
        .gradient = gradients,
        .gradient_dtype = SUMAC_FLOAT32};

    expression_run(&plan, &slice);

    for (uint32_t i = 0; i < 5000; i++)
        assert_number_equal(values[i], 30 * (i % 7));
}

/* What is the same for every element is computed once, in float64, from rounded numbers. */
TEST(numbers_are_folded)
{
    static struct expression_plan plan;

    assert_read("hyperparameters: beta = 0.9\nvalue = value - (1 - pow(beta, step)) * g");
    expression_plan(&expression, SUMAC_FLOAT32, expression.defaults, 1, &plan);
    assert_int_equal(plan.instruction_count, 1);
    assert_int_equal(plan.register_count, 0);
    assert_number_equal(plan.instructions[0].scalar[0], 1 - (double)0.9f);
    expression_plan(&expression, SUMAC_FLOAT64, expression.defaults, 1, &plan);
    assert_number_equal(plan.instructions[0].scalar[0], 1 - 0.9);
}

/* A where whose comparison is the same for every element is the side that it takes. */
TEST(known_conditions_cost_nothing)
{
    static struct expression_plan plan;
    const double nesterov = 1;

    assert_read("hyperparameters: nesterov = 0\nvalue = value - where(nesterov == 1, exp(g), g)");
    expression_plan(&expression, SUMAC_FLOAT32, expression.defaults, 1, &plan);
    assert_int_equal(plan.instruction_count, 1);
    expression_plan(&expression, SUMAC_FLOAT32, &nesterov, 1, &plan);
    assert_int_equal(plan.instruction_count, 2);
}

TEST(floats_take_expressions_and_others_do_not)
{
    assert_true(expression_takes(SUMAC_FLOAT32) && expression_takes(SUMAC_FLOAT64));
    assert_true(expression_takes(SUMAC_FLOAT16) && expression_takes(SUMAC_BFLOAT16));
    assert_false(expression_takes(SUMAC_INT32) || expression_takes(SUMAC_BOOL));
}

/* An editor may end lines with CR LF, and write exponents with an E. */
TEST(a_text_is_read_whatever_editor_wrote_it)
{
    assert_read("slots: m = 0\r\nm = m + g\r\nvalue = value - (m +\r\n  1E-4 * m)\r\n");
    assert_true(expression.constants[0] == 1e-4);
}
