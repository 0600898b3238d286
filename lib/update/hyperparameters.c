/* SPDX-License-Identifier: Apache-2.0 */
/* hyperparameters.c -- their names, their ranges, and how a message's are laid over a variable's
 * own and the defaults. */
#include "update.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define BUFFER_SIZE_MAX 65536
#define DIVISOR_MIN 0x1p-64 /* a decayed rate by which something is divided */

#define AT_LEAST_ZERO 0, HUGE_VAL, false, true, false, "finite and at least 0"
#define ONE_OR_ZERO 0, 1, false, false, true, "0 or 1"
#define UP_TO_ONE 0, 1, false, false, false, "in [0, 1]"
#define BELOW_ONE 0, 1, false, true, false, "in [0, 1)"

/* By HyperparameterName's number. */
static const struct update_hyperparameter ranges[] = {
    [UPDATE_HYPERPARAMETER_LEARNING_RATE] = {"learning_rate", AT_LEAST_ZERO, "η"},
    [UPDATE_HYPERPARAMETER_MOMENTUM] = {"momentum", UP_TO_ONE, "μ"},
    [UPDATE_HYPERPARAMETER_NESTEROV] = {"nesterov", ONE_OR_ZERO, ""},
    [UPDATE_HYPERPARAMETER_BETA_1] = {"beta_1", BELOW_ONE, "β₁"},
    [UPDATE_HYPERPARAMETER_BETA_2] = {"beta_2", BELOW_ONE, "β₂"},
    [UPDATE_HYPERPARAMETER_EPSILON] = {"epsilon", AT_LEAST_ZERO, "ε"},
    [UPDATE_HYPERPARAMETER_RHO] = {"rho", UP_TO_ONE, "ρ"},
    [UPDATE_HYPERPARAMETER_CENTERED] = {"centered", ONE_OR_ZERO, ""},
    [UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE] =
        {"initial_accumulator_value", AT_LEAST_ZERO, ""},
    [UPDATE_HYPERPARAMETER_WEIGHT_DECAY] = {"weight_decay", AT_LEAST_ZERO, "λ"},
    [UPDATE_HYPERPARAMETER_LEARNING_RATE_POWER] =
        {"learning_rate_power", -DBL_MAX, 0, false, false, false, "finite and at most 0", "p"},
    [UPDATE_HYPERPARAMETER_L1] = {"l1", AT_LEAST_ZERO, ""},
    [UPDATE_HYPERPARAMETER_L2] = {"l2", AT_LEAST_ZERO, ""},
    [UPDATE_HYPERPARAMETER_L2_SHRINKAGE] = {"l2_shrinkage", AT_LEAST_ZERO, ""},
    [UPDATE_HYPERPARAMETER_BIAS_CORRECTION] = {"bias_correction", ONE_OR_ZERO, ""},
    [UPDATE_HYPERPARAMETER_BUFFER_SIZE] =
        {"buffer_size", 1, BUFFER_SIZE_MAX, false, false, true, "whole and in [1, 65536]", "N"},
    [UPDATE_HYPERPARAMETER_MOMENTUM_ACTIVATION] = {"momentum_activation", UP_TO_ONE, "c"},
    [UPDATE_HYPERPARAMETER_CLIP_VALUE] = {"clip_value", AT_LEAST_ZERO, ""},
};
_Static_assert(
    sizeof ranges / sizeof ranges[0] == UPDATE_HYPERPARAMETERS_MAX + 1,
    "a row for each hyperparameter of UPDATE_HYPERPARAMETER_LIST");

const char *update_hyperparameter_name(uint32_t number)
{
    return number <= UPDATE_HYPERPARAMETERS_MAX ? ranges[number].name : NULL;
}

const struct update_hyperparameter *
update_hyperparameter_of(const struct update_function *function, uint32_t number)
{
    assert(number > 0 && number <= UPDATE_HYPERPARAMETERS_MAX);
    const bool of_table = function->own == NULL || function->own[number].name == NULL;
    return of_table ? &ranges[number] : &function->own[number];
}

const char *update_hyperparameter_range(const struct update_function *function, uint32_t number)
{
    const struct update_hyperparameter *const row = update_hyperparameter_of(function, number);

    if ((function->above_zero >> number & 1u) == 0)
        return row->range;
    assert(row->most > DBL_MAX);
    return "finite and above 0";
}

uint32_t update_hyperparameter_find(const char *name)
{
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        if (strcmp(ranges[i].name, name) == 0)
            return i;
    return 0;
}

uint32_t update_hyperparameters_number(
    const char (*names)[EXPRESSION_NAME_BYTES_MAX + 1], uint32_t count, uint8_t *numbers)
{
    uint32_t left = UPDATE_HYPERPARAMETER_CLIP_VALUE - 1, taken = 0;

    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = (uint8_t)update_hyperparameter_find(names[i]);
        taken |= numbers[i] == 0 ? 0 : 1u << numbers[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        while (numbers[i] == 0 && (taken >> left & 1u) != 0)
            left--;
        assert(left > 0);
        if (numbers[i] == 0)
            numbers[i] = (uint8_t)left;
        taken |= 1u << numbers[i];
    }
    return taken;
}

uint32_t update_hyperparameter_find_of(const struct update_function *function, const char *name)
{
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((function->hyperparameters >> i & 1u) != 0 &&
            strcmp(update_hyperparameter_of(function, i)->name, name) == 0)
            return i;
    }
    return 0;
}

/* NaN is in no range. */
static bool in_range(const struct update_function *function, uint32_t number, double value)
{
    const struct update_hyperparameter *const range = update_hyperparameter_of(function, number);

    assert(range->least < range->most);
    if ((function->above_zero >> number & 1u) != 0 && value == 0)
        return false;
    if (!(value >= range->least && value <= range->most))
        return false;
    if ((range->most_excluded && value == range->most) ||
        (range->least_excluded && value == range->least))
        return false;
    return !range->whole || value == floor(value);
}

/* What a slot begins with is a number of its type, which a text's, or a plug-in's, may not be. */
static enum sumac_status check_slots_begin(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *merged, struct sumac_error *error)
{
    wire_initializer constant = WIRE_INITIALIZER_INIT;

    constant.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_CONSTANT;
    for (uint32_t i = 0; i < function->slot_count; i++) {
        const uint32_t from = function->slot_from[i];
        constant.a = from == 0 ? function->slot_initial[i] : merged->value[from];
        if (initializer_check(&constant, update_slot_dtype(dtype), NULL) == SUMAC_OK)
            continue;
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "slot %s of %s starts from %s, which is no number in the arithmetic of a %s "
            "variable",
            function->slot_names[i], function->name, text_double(constant.a).text,
            sumac_dtype_name(dtype));
    }
    return SUMAC_OK;
}

enum sumac_status update_hyperparameters_check(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *merged, struct sumac_error *error)
{
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((function->hyperparameters >> i & 1u) == 0)
            continue;
        const double value = merged->value[i];
        const double rounded = dtype == SUMAC_FLOAT64 ? value : (double)(float)value;
        if (!in_range(function, i, rounded))
            return fail_invalid(
                error, SUMAC_REASON_BAD_HYPERPARAMETER,
                "hyperparameter %s of %s is %s, which is %.9g in the arithmetic of a %s "
                "variable; it must be %s",
                update_hyperparameter_of(function, i)->name, function->name,
                text_double(value).text, rounded, sumac_dtype_name(dtype),
                update_hyperparameter_range(function, i));
    }
    return check_slots_begin(function, dtype, merged, error);
}

/* What `function` starts from: the variable's own values where it takes them too, else its
 * defaults. */
static struct update_hyperparameters
inherit(const struct update_function *function, const struct update_hyperparameters *base)
{
    struct update_hyperparameters inherited = {.set = function->hyperparameters};
    const uint32_t from_base = base == NULL ? 0 : base->set;

    assert(from_base >> UPDATE_HYPERPARAMETERS_MAX <= 1); /* there is no larger number */
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        if ((function->hyperparameters >> i & 1u) != 0)
            inherited.value[i] =
                (from_base >> i & 1u) != 0 ? base->value[i] : function->defaults[i];
    if ((inherited.set & from_base) >> UPDATE_HYPERPARAMETER_LEARNING_RATE & 1u)
        inherited.schedule = base->schedule;
    return inherited;
}

const char *
update_hyperparameters_list(const struct update_function *function, char *text, size_t text_bytes)
{
    size_t used = text_print(text, text_bytes, "%s", function->hyperparameters == 0 ? "none" : "");

    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        if ((function->hyperparameters >> i & 1u) != 0)
            used += text_print(
                text + used, text_bytes - used, "%s%s", used == 0 ? "" : ", ",
                update_hyperparameter_of(function, i)->name);
    assert(used < text_bytes);
    return text;
}

void update_hyperparameters_lay(
    struct update_hyperparameters *own, const struct update_hyperparameters *given)
{
    const uint32_t rate = 1u << UPDATE_HYPERPARAMETER_LEARNING_RATE;

    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        if ((given->set >> i & 1u) != 0)
            own->value[i] = given->value[i];
    if ((given->set & (rate | UPDATE_SCHEDULE_SET)) != 0)
        own->schedule = given->schedule;
}

double update_learning_rate(
    const struct update_function *function, const struct update_hyperparameters *hyperparameters,
    uint64_t version)
{
    const double own = hyperparameters->value[UPDATE_HYPERPARAMETER_LEARNING_RATE];
    const bool divides = (function->above_zero >> UPDATE_HYPERPARAMETER_LEARNING_RATE & 1u) != 0;

    assert(own >= 0 || function->own != NULL);
    if (!update_schedule_is_any(&hyperparameters->schedule))
        return own;
    const double rate = update_schedule_rate(&hyperparameters->schedule, own, version);
    return divides && rate < DIVISOR_MIN ? DIVISOR_MIN : rate;
}

static enum sumac_status read_schedule(
    const struct update_function *function, const wire_schedule *given,
    struct update_hyperparameters *read, struct sumac_error *error)
{
    if ((function->hyperparameters >> UPDATE_HYPERPARAMETER_LEARNING_RATE & 1u) == 0)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "%s has no learning_rate, which a schedule is of", function->name);
    read->set |= UPDATE_SCHEDULE_SET;
    return update_schedule_read(given, &read->schedule, error);
}

static enum sumac_status read_one(
    const struct update_function *function, const wire_hyperparameter *given, uint32_t *seen,
    double *value, struct sumac_error *error)
{
    const uint32_t number = (uint32_t)given->name;
    char known[256];

    if (update_hyperparameter_name(number) == NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "hyperparameter number %u of %s is not known here", number, function->name);
    const bool has = (function->hyperparameters >> number & 1u) != 0;
    if (!has && function->own != NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "%s has no hyperparameter with number %u; it has %s", function->name, number,
            update_hyperparameters_list(function, known, sizeof known));
    const char *const name = update_hyperparameter_of(function, number)->name;
    if (!has)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER, "%s has no hyperparameter %s; it has %s",
            function->name, name, update_hyperparameters_list(function, known, sizeof known));
    if ((*seen >> number & 1u) != 0)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER, "hyperparameter %s of %s is given twice", name,
            function->name);
    if (!in_range(function, number, given->value))
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "hyperparameter %s of %s is %.9g; it must be %s", name, function->name, given->value,
            update_hyperparameter_range(function, number));
    *seen |= 1u << number;
    value[number] = given->value;
    return SUMAC_OK;
}

enum sumac_status update_hyperparameters_read(
    const struct update_function *function, const struct update_hyperparameters *base,
    const wire_function *given, struct update_hyperparameters *merged, struct sumac_error *error)
{
    struct update_hyperparameters result = inherit(function, base);
    uint32_t seen = 0;

    for (size_t i = 0; given != NULL && i < given->n_hyperparameters; i++) {
        const enum sumac_status status =
            read_one(function, given->hyperparameters[i], &seen, result.value, error);
        if (status != SUMAC_OK)
            return status;
    }
    assert((seen & ~function->hyperparameters) == 0);
    if ((seen >> UPDATE_HYPERPARAMETER_LEARNING_RATE & 1u) != 0)
        result.schedule = (struct update_schedule){0};
    if (given != NULL && given->schedule != NULL) {
        const enum sumac_status status = read_schedule(function, given->schedule, &result, error);
        if (status != SUMAC_OK)
            return status;
    }
    *merged = result;
    return SUMAC_OK;
}
