/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c -- any text as an update function: refused in one sentence of UTF-8 that names the
 * place, or planned and run over guarded memory with what the text says as the result.
 *
 * Where the first byte is even, the rest is the text; where it is odd, the rest are choices of
 * which a text is made that is never refused.
 */
#include <math.h>
#include <string.h>

#include "expression_loops.h"
#include "expression_plain.h"
#include "expression_text.h"
#include "fuzz.h"
#include "input.h"
#include "text.h"

#define COUNT 37u
#define GUARD 0x5a5a5a5a5a5a5a5au

struct elements {
    uint64_t before;
    double numbers[COUNT];
    uint64_t after;
};

static void check_refusal(const struct sumac_error *error)
{
    const bool of_a_place = strncmp(error->text, "line ", 5) == 0;

    MUST(error->status == SUMAC_INVALID_ARGUMENT);
    MUST(of_a_place || strncmp(error->text, "the text ", 9) == 0);
    MUST(text_is_utf8(error->text, strlen(error->text)));
}

static void check_expression(const struct expression *expression)
{
    MUST(expression->node_count > 0 && expression->node_count <= EXPRESSION_NODES_MAX);
    MUST(expression->hyperparameter_count <= EXPRESSION_HYPERPARAMETERS_MAX);
    MUST(expression->slot_count <= EXPRESSION_SLOTS_MAX);
    for (uint32_t i = 0; i < expression->hyperparameter_count; i++)
        MUST(isfinite(expression->defaults[i]) && expression->hyperparameter_names[i][0] != '\0');
    for (uint32_t r = 0; r <= expression->slot_count; r++)
        MUST(expression->results[r] < expression->node_count);
}

static void fill(struct elements *elements, struct input *input)
{
    static const double letters[] = {0,    1,     -1,    0.5,      -0.0, 1e300,
                                     3e38, 1e-40, -1e-5, HUGE_VAL, -7,   (double)NAN};

    elements->before = elements->after = GUARD;
    for (uint32_t i = 0; i < COUNT; i++)
        elements->numbers[i] = letters[below(input, sizeof letters / sizeof letters[0])];
}

static void check_result(double given, double right)
{
    MUST(isnan(right) ? isnan(given) : given == right);
}

/* In float64, in place; element by element it is what the text says. */
static void run(const struct expression *expression, struct input *input)
{
    static struct expression_plan plan;
    struct elements gradient, results[EXPRESSION_RESULTS_MAX], before[EXPRESSION_RESULTS_MAX];
    const uint64_t step = 1 + below(input, 200);

    fill(&gradient, input);
    for (uint32_t r = 0; r < EXPRESSION_RESULTS_MAX; r++)
        fill(&results[r], input);
    memcpy(before, results, sizeof before);
    struct expression_slice slice = {
        .count = COUNT,
        .value_in = results[0].numbers,
        .value_out = results[0].numbers,
        .gradient = gradient.numbers,
        .gradient_dtype = SUMAC_FLOAT64};
    for (uint32_t s = 0; s < EXPRESSION_SLOTS_MAX; s++)
        slice.slot_in[s] = slice.slot_out[s] = results[1 + s].numbers;
    expression_plan(expression, SUMAC_FLOAT64, expression->defaults, step, &plan);
    expression_run(&plan, &slice);
    for (uint32_t r = 0; r < EXPRESSION_RESULTS_MAX; r++)
        MUST(results[r].before == GUARD && results[r].after == GUARD);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct plain_element element = {.gradient = gradient.numbers[i]};
        for (uint32_t r = 0; r <= expression->slot_count; r++)
            element.results[r] = before[r].numbers[i];
        plain_run(expression, false, expression->defaults, step, &element);
        for (uint32_t r = 0; r <= expression->slot_count; r++)
            check_result(results[r].numbers[i], element.results[r]);
    }
}

static uint32_t choose(void *context, uint32_t count) { return below(context, count); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct expression expression;
    struct sumac_error error = {.text = ""};
    struct input input = {data, bytes};
    const bool is_made = next(&input) % 2 == 1;
    struct text_source source = {.choose = choose, .context = &input};

    if (is_made)
        text_make(&source);
    const char *const text = is_made ? source.text : (const char *)input.data;
    const size_t text_bytes = is_made ? source.used : input.left;
    if (text_bytes > 0 && expression_read(text, text_bytes, &expression, &error) != SUMAC_OK) {
        check_refusal(&error);
        return 0;
    }
    if (text_bytes > 0) {
        check_expression(&expression);
        run(&expression, &input);
    }
    return 0;
}
