/* SPDX-License-Identifier: Apache-2.0 */
/* defined.c -- a text made a row of a function, and how its slices are run. */
#include "defined.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "error.h"
#include "loops.h"

#define BIT(number) (1u << (unsigned)(number))

/* ---- the row ---- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool may_follow(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || (c != '\0' && strchr("_-./", c) != NULL);
}

bool update_is_name(const char *text)
{
    size_t bytes = 0;

    assert(text != NULL);
    if (!is_letter(text[0]))
        return false;
    while (bytes <= EXPRESSION_NAME_BYTES_MAX && may_follow(text[bytes]))
        bytes++;
    return bytes <= EXPRESSION_NAME_BYTES_MAX && text[bytes] == '\0';
}

enum sumac_status update_defined_name_check(const char *name, struct sumac_error *error)
{
    if (!update_is_name(name))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "a function's name is a letter, then letters, digits, _, -, . and /, %u at most",
            EXPRESSION_NAME_BYTES_MAX);
    if (update_find_by_name(name) != NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "%s is a function that every ps has: define yours under another name", name);
    return SUMAC_OK;
}

static void number_hyperparameters(struct update_defined *defined)
{
    const struct expression *const expression = &defined->expression;
    struct update_function *const function = &defined->function;

    assert(expression->hyperparameter_count <= EXPRESSION_HYPERPARAMETERS_MAX);
    function->hyperparameters = update_hyperparameters_number(
        expression->hyperparameter_names, expression->hyperparameter_count, defined->numbers);
    for (uint32_t i = 0; i < expression->hyperparameter_count; i++) {
        const uint32_t number = defined->numbers[i];
        function->defaults[number] = expression->defaults[i];
        defined->own[number] = (struct update_hyperparameter){
            .name = expression->hyperparameter_names[i],
            .least = -DBL_MAX,
            .most = DBL_MAX,
            .range = "finite",
            .symbol = ""};
    }
}

static void name_slots(struct update_defined *defined)
{
    const struct expression *const expression = &defined->expression;
    struct update_function *const function = &defined->function;

    function->slot_count = expression->slot_count;
    for (uint32_t i = 0; i < expression->slot_count; i++) {
        const uint32_t from = expression->slot_initial_from[i];
        function->slot_names[i] = expression->slot_names[i];
        function->slot_initial[i] = expression->slot_initial[i];
        function->slot_from[i] = from == EXPRESSION_NONE ? 0 : defined->numbers[from];
    }
}

static uint32_t dtypes_of_expressions(void)
{
    uint32_t dtypes = 0;

    for (uint32_t dtype = 1; dtype <= DTYPES_MAX; dtype++)
        dtypes |= expression_takes((enum sumac_dtype)dtype) ? BIT(dtype) : 0;
    return dtypes;
}

/* ---- its slices ---- */

static void run(const struct update_slice *slice)
{
    struct expression_slice run = {
        .count = slice->count,
        .value_out = slice->value_out,
        .value_in = slice->value_in,
        .gradient = slice->gradient,
        .gradient_dtype = slice->wide ? update_contribution_dtype(slice->dtype) : slice->dtype};

    assert(slice->plan != NULL);
    for (uint32_t i = 0; i < slice->function->slot_count; i++) {
        run.slot_out[i] = slice->slot_out[i];
        run.slot_in[i] = slice->slot_in[i];
    }
    expression_run(slice->plan, &run);
}

/* ---- the function ---- */

enum sumac_status update_define(
    uint32_t number, const char *name, const char *text, size_t bytes,
    struct update_defined *defined, struct sumac_error *error)
{
    enum sumac_status status = update_defined_name_check(name, error);

    assert(number >= UPDATE_DEFINED_FIRST);
    if (status == SUMAC_OK)
        status = expression_read(text, bytes, &defined->expression, error);
    if (status != SUMAC_OK)
        return status;
    memcpy(defined->name, name, strlen(name) + 1);
    memset(defined->own, 0, sizeof defined->own);
    memset(defined->numbers, 0, sizeof defined->numbers);
    defined->function = (struct update_function){
        .number = number,
        .name = defined->name,
        .counts_steps = defined->expression.counts_steps,
        .repeats = UPDATE_REPEATS_SUM,
        .dtypes = dtypes_of_expressions(),
        .own = defined->own,
        .own_numbers = defined->numbers,
        .own_count = defined->expression.hyperparameter_count,
        .loop = run,
        .expression = &defined->expression};
    number_hyperparameters(defined);
    name_slots(defined);
    return SUMAC_OK;
}
