/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c -- the table of update functions, and which of them may be applied to what.
 *
 * Rules: docs/ARCHITECTURE.md, "Update functions", after TensorFlow's kernels
 * (tensorflow/core/kernels/training_ops.cc).
 */
#include "update.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error.h"
#include "hyperparameters.h"
#include "loops.h"

#define BIT(number) (1u << (number))
#define X(name, number, bytes, text, numpy) | BIT(number)
#define EVERY_DTYPE (0u SUMAC_DTYPE_LIST(X))
#define WIDE_FLOATS (BIT(SUMAC_FLOAT32) | BIT(SUMAC_FLOAT64))
#define LEARNING_RATE SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE
#define MOMENTUM SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_MOMENTUM
#define NESTEROV SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_NESTEROV
#define BETA_1 SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_BETA_1
#define BETA_2 SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_BETA_2
#define EPSILON SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_EPSILON

static const struct update_function functions[] = {
    {.number = UPDATE_ASSIGN, .name = "assign", .rule = "θ = g", .dtypes = EVERY_DTYPE},
    {.number = UPDATE_ASSIGN_ADD,
     .name = "assign_add",
     .rule = "θ += g",
     .dtypes = EVERY_DTYPE & ~BIT(SUMAC_BOOL)},
    {.number = UPDATE_ASSIGN_SUB,
     .name = "assign_sub",
     .rule = "θ −= g",
     .dtypes = EVERY_DTYPE & ~BIT(SUMAC_BOOL)},
    {.number = UPDATE_SGD,
     .name = "sgd",
     .rule = "θ −= η·g",
     .dtypes = WIDE_FLOATS,
     .hyperparameters = WIRE_HYPERPARAMETERS_OF_SGD,
     .defaults = {[LEARNING_RATE] = 0.01}},
    {.number = UPDATE_MOMENTUM,
     .name = "momentum",
     .rule = "a = μ·a + g; θ −= η·a, with nesterov θ −= η·(g + μ·a); a is the slot momentum",
     .slot_count = 1,
     .slot_names = {"momentum"},
     .dtypes = WIDE_FLOATS,
     .hyperparameters = WIRE_HYPERPARAMETERS_OF_MOMENTUM,
     .defaults = {[LEARNING_RATE] = 0.01, [MOMENTUM] = 0.9, [NESTEROV] = 0}},
    {.number = UPDATE_ADAM,
     .name = "adam",
     .rule = "t += 1; m += (g − m)(1 − β₁); v += (g² − v)(1 − β₂); "
             "θ −= η·√(1 − β₂ᵗ)/(1 − β₁ᵗ)·m/(√v + ε)",
     .slot_count = 2,
     .slot_names = {"m", "v"},
     .dtypes = WIDE_FLOATS,
     .hyperparameters = WIRE_HYPERPARAMETERS_OF_ADAM,
     .defaults = {[LEARNING_RATE] = 0.001, [BETA_1] = 0.9, [BETA_2] = 0.999, [EPSILON] = 1e-7}},
};

const struct update_function *update_at(uint32_t index)
{
    return index < sizeof functions / sizeof functions[0] ? &functions[index] : NULL;
}

const struct update_function *update_find(uint32_t number)
{
    const struct update_function *function;
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        if (function->number == number)
            return function;
    return NULL;
}

const struct update_function *update_find_by_name(const char *name)
{
    const struct update_function *function;
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        if (strcmp(function->name, name) == 0)
            return function;
    return NULL;
}

enum sumac_status update_check(
    const struct update_function *function, const struct update_function *own,
    enum sumac_dtype dtype, const char *variable, struct sumac_error *error)
{
    if ((uint32_t)dtype >= LOOPS_DTYPES || (function->dtypes & BIT(dtype)) == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s cannot be applied to variable %s of type %s", function->name, variable,
            sumac_dtype_name(dtype));
    if (function->slot_count > 0 && function != own)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MISSING_SLOTS,
            "%s keeps slots that variable %s does not have: it was created with %s; create "
            "it with %s to push with it",
            function->name, variable, own == NULL ? "assign" : own->name, function->name);
    return SUMAC_OK;
}

/* base^exponent by repeated squaring: no libm, whose last bit differs between processors. */
static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

void update_prepare(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t count,
    struct update_slice *slice)
{
    const double *const value = hyperparameters->value;
    double rounded[UPDATE_HYPERPARAMETERS_MAX + 1];
    for (uint32_t i = 0; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        rounded[i] = dtype == SUMAC_FLOAT64 ? value[i] : (double)(float)value[i];

    memset(slice->scalar, 0, sizeof slice->scalar);
    slice->flag = false;
    slice->scalar[UPDATE_SCALAR_RATE] = rounded[LEARNING_RATE];
    switch (function->number) {
    case UPDATE_MOMENTUM:
        slice->scalar[UPDATE_SCALAR_MOMENTUM] = rounded[MOMENTUM];
        slice->flag = rounded[NESTEROV] != 0;
        break;
    case UPDATE_ADAM:
        slice->scalar[UPDATE_SCALAR_RATE] = rounded[LEARNING_RATE] *
                                            sqrt(1 - power(rounded[BETA_2], count)) /
                                            (1 - power(rounded[BETA_1], count));
        slice->scalar[UPDATE_SCALAR_ONE_LESS_BETA_1] = 1 - rounded[BETA_1];
        slice->scalar[UPDATE_SCALAR_ONE_LESS_BETA_2] = 1 - rounded[BETA_2];
        slice->scalar[UPDATE_SCALAR_EPSILON] = rounded[EPSILON];
        break;
    default:
        break;
    }
}

void update_run(const struct update_slice *slice)
{
    update_loop *const run = loops_select()->run[slice->function->number][slice->dtype];
    assert(run != NULL);
    run(slice);
}

bool update_copy_finite(
    enum sumac_dtype dtype, void *restrict out, const void *restrict in, size_t bytes)
{
    update_copy *const copy = loops_select()->copy_finite[dtype];
    if (copy != NULL)
        return copy(out, in, bytes);
    memcpy(out, in, bytes);
    return true;
}

bool update_all_finite(enum sumac_dtype dtype, const void *data, size_t bytes)
{
    update_scan *const scan = loops_select()->all_finite[dtype];
    return scan == NULL || scan(data, bytes);
}
