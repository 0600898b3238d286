/* SPDX-License-Identifier: Apache-2.0 */
/* function.c -- update functions and hyperparameters by name, as lib/update's table has them, or
 * the text of one that was defined. */
#include "client_state.h"

#include <assert.h>

#include "error.h"
#include "function.h"
#include "update.h"

_Static_assert(
    SUMAC_HYPERPARAMETERS_MAX >= UPDATE_HYPERPARAMETERS_MAX, "a function may give all it has");
_Static_assert(SUMAC_SLOTS_MAX >= UPDATE_SLOTS_MAX, "there is a place for each slot");

static enum sumac_status check_function(
    const struct sumac_client *client, const struct sumac_function *function,
    const struct update_function *row, struct sumac_error *error)
{
    char known[320];

    if (row != NULL)
        return SUMAC_OK;
    (void)client_functions_list(client, known, sizeof known);
    if (function->name == NULL)
        return fail_invalid(
            error, SUMAC_REASON_UNKNOWN_FUNCTION,
            "an update function is given without its name; there are %s", known);
    const struct nearest nearest = client_functions_near(client, function->name);
    if (nearest.count == 0)
        return fail_invalid(
            error, SUMAC_REASON_UNKNOWN_FUNCTION, "there is no update function %.64s; there are %s",
            function->name, known);
    nearest_print(&nearest, known, sizeof known);
    return fail_invalid(
        error, SUMAC_REASON_UNKNOWN_FUNCTION, "there is no update function %.64s; did you mean %s?",
        function->name, known);
}

bool function_has_hyperparameters(const struct sumac_function *function)
{
    bool has = false;

    for (uint32_t i = 0; i < SUMAC_HYPERPARAMETERS_MAX; i++)
        has = has || !function_place_is_free(function, i);
    return has;
}

/* The number of a hyperparameter that the function has. */
static enum sumac_status find_hyperparameter(
    const struct update_function *function, const char *name, uint32_t *number,
    struct sumac_error *error)
{
    char known[256];

    *number = name == NULL ? 0 : update_hyperparameter_find_of(function, name);
    assert(*number <= UPDATE_HYPERPARAMETERS_MAX); /* a bit of the row's */
    if (*number != 0)
        return SUMAC_OK;
    (void)update_hyperparameters_list(function, known, sizeof known);
    if (name == NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "a hyperparameter of %s is given without its name; it has %s", function->name, known);
    return fail_invalid(
        error, SUMAC_REASON_BAD_HYPERPARAMETER, "%s has no hyperparameter %.64s; it has %s",
        function->name, name, known);
}

/* A ps says what is wrong with it. NULL: no memory. */
static wire_schedule *encode_schedule(const struct sumac_schedule *given, struct arena *arena)
{
    wire_schedule *made = arena_take(arena, sizeof *made);

    if (made == NULL)
        return NULL;
    *made = (wire_schedule)WIRE_SCHEDULE_INIT;
    made->kind = (Sumac__V1__Schedule__Kind)given->kind;
    made->decay_steps = given->decay_steps;
    made->decay_rate = given->decay_rate;
    made->staircase = given->staircase;
    made->alpha = given->alpha;
    made->warmup_steps = given->warmup_steps;
    made->warmup_target = given->warmup_target;
    made->first_version = given->first_version;
    return made;
}

enum sumac_status function_encode(
    const struct sumac_client *client, const struct sumac_function *function, struct arena *arena,
    wire_function **wire, struct sumac_error *error)
{
    const struct update_function *row =
        function->name == NULL ? NULL : client_function(client, function->name);
    const enum sumac_status status = check_function(client, function, row, error);

    return status == SUMAC_OK ? function_encode_row(row, function, arena, wire, error) : status;
}

enum sumac_status function_encode_row(
    const struct update_function *row, const struct sumac_function *function, struct arena *arena,
    wire_function **wire, struct sumac_error *error)
{
    enum sumac_status status = check_function(NULL, function, row, error);

    if (status != SUMAC_OK)
        return status;
    wire_function *made = arena_take(arena, sizeof *made);
    wire_hyperparameter *values = arena_take(arena, SUMAC_HYPERPARAMETERS_MAX * sizeof *values);
    wire_hyperparameter **pointers =
        arena_take(arena, SUMAC_HYPERPARAMETERS_MAX * sizeof *pointers);
    size_t count = 0;
    if (made == NULL || values == NULL || pointers == NULL)
        return fail_for_memory(error, "no memory for a function");
    for (uint32_t i = 0; i < SUMAC_HYPERPARAMETERS_MAX; i++) {
        const struct sumac_hyperparameter *given = &function->hyperparameters[i];
        uint32_t name = 0;
        if (function_place_is_free(function, i))
            continue;
        status = find_hyperparameter(row, given->name, &name, error);
        if (status != SUMAC_OK)
            return status;
        values[count] = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        values[count].name = (Sumac__V1__HyperparameterName)name;
        values[count].value = given->value;
        pointers[count] = &values[count];
        count++;
    }
    *made = (wire_function)WIRE_FUNCTION_INIT;
    made->function = (Sumac__V1__UpdateFunction)row->number;
    made->n_hyperparameters = count;
    made->hyperparameters = pointers;
    if (function->schedule != NULL)
        made->schedule = encode_schedule(function->schedule, arena);
    if (function->schedule != NULL && made->schedule == NULL)
        return fail_for_memory(error, "no memory for a function");
    *wire = made;
    return SUMAC_OK;
}
