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
#include "loops.h"

#define BIT(number) (1u << (number))
#define X(NAME, number, bytes, kind, name, numpy) | BIT(number)
#define EVERY_DTYPE (0u SUMAC_DTYPE_LIST(X))
#define FLOAT_BIT(NAME, number, bytes, kind, name, numpy)                                          \
    | (SUMAC_KIND_##kind == SUMAC_KIND_FLOAT ? BIT(number) : 0)
#define WIDE_FLOATS (0u SUMAC_DTYPE_LIST(FLOAT_BIT))
#define HAS(name) BIT(UPDATE_HYPERPARAMETER_##name)

static void prepare_momentum(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double momentum = rounded[UPDATE_HYPERPARAMETER_MOMENTUM];
    const double nesterov = rounded[UPDATE_HYPERPARAMETER_NESTEROV];

    (void)step;
    assert(momentum >= 0 && momentum <= 1);
    assert(nesterov == 0 || nesterov == 1);
    slice->scalar[UPDATE_SCALAR_MOMENTUM] = momentum;
    slice->flag = nesterov != 0;
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

static void prepare_adam(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double beta_1 = rounded[UPDATE_HYPERPARAMETER_BETA_1];
    const double beta_2 = rounded[UPDATE_HYPERPARAMETER_BETA_2];

    assert(beta_1 >= 0 && beta_1 < 1); /* also as they are rounded: nothing is divided by 0 */
    assert(beta_2 >= 0 && beta_2 < 1);
    assert(step > 0);
    slice->scalar[UPDATE_SCALAR_RATE] = rounded[UPDATE_HYPERPARAMETER_LEARNING_RATE] *
                                        sqrt(1 - power(beta_2, step)) / (1 - power(beta_1, step));
    slice->scalar[UPDATE_SCALAR_ONE_LESS_BETA_1] = 1 - beta_1;
    slice->scalar[UPDATE_SCALAR_ONE_LESS_BETA_2] = 1 - beta_2;
    slice->scalar[UPDATE_SCALAR_EPSILON] = rounded[UPDATE_HYPERPARAMETER_EPSILON];
}

/* By number; none has 0. */
static const struct update_function functions[] = {
    [UPDATE_ASSIGN] =
        {.number = UPDATE_ASSIGN, .name = "assign", .rule = "θ = g", .dtypes = EVERY_DTYPE},
    [UPDATE_ASSIGN_ADD] =
        {.number = UPDATE_ASSIGN_ADD,
         .name = "assign_add",
         .rule = "θ += g",
         .dtypes = EVERY_DTYPE & ~BIT(SUMAC_BOOL)},
    [UPDATE_ASSIGN_SUB] =
        {.number = UPDATE_ASSIGN_SUB,
         .name = "assign_sub",
         .rule = "θ −= g",
         .dtypes = EVERY_DTYPE & ~BIT(SUMAC_BOOL)},
    [UPDATE_SGD] =
        {.number = UPDATE_SGD,
         .name = "sgd",
         .rule = "θ −= η·g",
         .dtypes = WIDE_FLOATS,
         .hyperparameters = HAS(LEARNING_RATE),
         .defaults = {[UPDATE_HYPERPARAMETER_LEARNING_RATE] = 0.01}},
    [UPDATE_MOMENTUM] =
        {.number = UPDATE_MOMENTUM,
         .name = "momentum",
         .rule = "a = μ·a + g; θ −= η·a, with nesterov θ −= η·(g + μ·a); a is the slot momentum",
         .slot_count = 1,
         .slot_names = {"momentum"},
         .slot_initial = {0},
         .dtypes = WIDE_FLOATS,
         .hyperparameters = HAS(LEARNING_RATE) | HAS(MOMENTUM) | HAS(NESTEROV),
         .defaults =
             {[UPDATE_HYPERPARAMETER_LEARNING_RATE] = 0.01,
              [UPDATE_HYPERPARAMETER_MOMENTUM] = 0.9,
              [UPDATE_HYPERPARAMETER_NESTEROV] = 0},
         .prepare = prepare_momentum},
    [UPDATE_ADAM] =
        {.number = UPDATE_ADAM,
         .name = "adam",
         .rule = "t += 1; m += (g − m)(1 − β₁); v += (g² − v)(1 − β₂); "
                 "θ −= η·√(1 − β₂ᵗ)/(1 − β₁ᵗ)·m/(√v + ε)",
         .slot_count = 2,
         .slot_names = {"m", "v"},
         .slot_initial = {0, 0},
         .counts_steps = true,
         .dtypes = WIDE_FLOATS,
         .hyperparameters = HAS(LEARNING_RATE) | HAS(BETA_1) | HAS(BETA_2) | HAS(EPSILON),
         .defaults =
             {[UPDATE_HYPERPARAMETER_LEARNING_RATE] = 0.001,
              [UPDATE_HYPERPARAMETER_BETA_1] = 0.9,
              [UPDATE_HYPERPARAMETER_BETA_2] = 0.999,
              [UPDATE_HYPERPARAMETER_EPSILON] = 1e-7},
         .prepare = prepare_adam},
};
_Static_assert(
    sizeof functions / sizeof functions[0] == UPDATE_FUNCTIONS_MAX + 1,
    "a row for each function of UPDATE_FUNCTION_LIST");

const struct update_function *update_find(uint32_t number)
{
    if (number == 0 || number > UPDATE_FUNCTIONS_MAX)
        return NULL;
    assert(functions[number].number == number);
    return &functions[number];
}

const struct update_function *update_at(uint32_t index)
{
    return index < UPDATE_FUNCTIONS_MAX ? &functions[index + 1] : NULL;
}

const struct update_function *update_find_by_name(const char *name)
{
    const struct update_function *function;

    assert(name != NULL);
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

void update_prepare(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t step, struct update_slice *slice)
{
    const double *const value = hyperparameters->value;
    double rounded[UPDATE_HYPERPARAMETERS_MAX + 1];

    for (uint32_t i = 0; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        rounded[i] = dtype == SUMAC_FLOAT64 ? value[i] : (double)(float)value[i];

    assert((function->dtypes & BIT(dtype)) != 0);
    assert(!function->counts_steps || step > 0);
    memset(slice->scalar, 0, sizeof slice->scalar);
    slice->flag = false;
    slice->scalar[UPDATE_SCALAR_RATE] = rounded[UPDATE_HYPERPARAMETER_LEARNING_RATE];
    if (function->prepare != NULL)
        function->prepare(rounded, step, slice);
}

void update_fill_slot(
    const struct update_function *function, uint32_t slot, enum sumac_dtype dtype, uint64_t count,
    void *out)
{
    assert(slot < function->slot_count);
    const double value = function->slot_initial[slot];
    const int kind = value == 0 ? WIRE_INITIALIZER_ZEROS : WIRE_INITIALIZER_CONSTANT;
    wire_initializer constant = WIRE_INITIALIZER_INIT;

    constant.a = value;
    constant.kind = (Sumac__V1__Initializer__Kind)kind;
    initializer_fill(&constant, dtype, 0, count, out);
}

/* Do `bytes` bytes at both places have none in common? */
static bool are_apart(const void *one, const void *other, size_t bytes)
{
    const uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;

    return a >= b ? a - b >= bytes : b - a >= bytes;
}

void update_run(const struct update_slice *slice)
{
    if (slice->sources != NULL) {
        update_run_sum(slice);
        return;
    }
    update_loop *const run = loops_select()->run[slice->function->number][slice->dtype];
    const size_t bytes = slice->count * sumac_dtype_bytes(slice->dtype);

    assert(run != NULL);
    assert(
        slice->value_in == slice->value_out || are_apart(slice->value_in, slice->value_out, bytes));
    assert(are_apart(slice->gradient, slice->value_out, bytes));
    run(slice);
}

bool update_copy_finite(
    enum sumac_dtype dtype, void *restrict out, const void *restrict in, size_t bytes)
{
    update_copy *const copy = loops_select()->copy_finite[dtype];

    assert(sumac_dtype_bytes(dtype) > 0);
    assert(bytes % sumac_dtype_bytes(dtype) == 0);
    if (copy != NULL)
        return copy(out, in, bytes);
    memcpy(out, in, bytes);
    return true;
}

bool update_all_finite(enum sumac_dtype dtype, const void *data, size_t bytes)
{
    update_scan *const scan = loops_select()->all_finite[dtype];

    assert(sumac_dtype_bytes(dtype) > 0);
    assert(bytes % sumac_dtype_bytes(dtype) == 0);
    return scan == NULL || scan(data, bytes);
}
