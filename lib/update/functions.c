/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c -- the table of update functions, and which of them may be applied to what.
 *
 * Rules: docs/ARCHITECTURE.md, "Update functions", after TensorFlow's kernels
 * (tensorflow/core/kernels/training_ops.cc).
 */
#include "update.h"

#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "loops.h"
#include "prepare.h"

#define BIT(number) (1u << (number))
#define X(NAME, number, bytes, kind, name, numpy) | BIT(number)
#define EVERY_DTYPE (0u SUMAC_DTYPE_LIST(X))
#define IS_FLOAT_BOOL false
#define IS_FLOAT_INT false
#define IS_FLOAT_UINT false
#define IS_FLOAT_HALF true
#define IS_FLOAT_FLOAT true
#define FLOAT_BIT(NAME, number, bytes, kind, name, numpy) | (IS_FLOAT_##kind ? BIT(number) : 0)
#define FLOATS (0u SUMAC_DTYPE_LIST(FLOAT_BIT))
#define NUMBERS (EVERY_DTYPE & ~BIT(SUMAC_BOOL))
#define HAS(name) BIT(UPDATE_HYPERPARAMETER_##name)
#define DEFAULT(name, value) [UPDATE_HYPERPARAMETER_##name] = (value)

/* What adam and its kin take. */
#define MOMENTS_HAVE                                                                               \
    (HAS(LEARNING_RATE) | HAS(BETA_1) | HAS(BETA_2) | HAS(EPSILON) | HAS(CLIP_VALUE))
#define MOMENTS_DEFAULTS                                                                           \
    DEFAULT(LEARNING_RATE, 0.001), DEFAULT(BETA_1, 0.9), DEFAULT(BETA_2, 0.999),                   \
        DEFAULT(EPSILON, 1e-7)
#define ADAM_HAS (MOMENTS_HAVE | HAS(INITIAL_ACCUMULATOR_VALUE) | HAS(BIAS_CORRECTION))
#define ADAM_DEFAULTS                                                                              \
    MOMENTS_DEFAULTS, DEFAULT(INITIAL_ACCUMULATOR_VALUE, 0), DEFAULT(BIAS_CORRECTION, 1)

/* By number; none has 0. */
static const struct update_function functions[] = {
    [UPDATE_ASSIGN] =
        {.number = UPDATE_ASSIGN,
         .name = "assign",
         .rule = "θ = g",
         .repeats = UPDATE_REPEATS_LAST_WINS,
         .dtypes = EVERY_DTYPE},
    [UPDATE_ASSIGN_ADD] =
        {.number = UPDATE_ASSIGN_ADD, .name = "assign_add", .rule = "θ += g", .dtypes = NUMBERS},
    [UPDATE_ASSIGN_SUB] =
        {.number = UPDATE_ASSIGN_SUB, .name = "assign_sub", .rule = "θ −= g", .dtypes = NUMBERS},
    [UPDATE_SGD] =
        {.number = UPDATE_SGD,
         .name = "sgd",
         .rule = "θ −= η·g",
         .dtypes = FLOATS,
         .hyperparameters = HAS(LEARNING_RATE) | HAS(CLIP_VALUE),
         .defaults = {DEFAULT(LEARNING_RATE, 0.01)}},
    [UPDATE_MOMENTUM] =
        {.number = UPDATE_MOMENTUM,
         .name = "momentum",
         .rule = "a = μ·a + g; θ −= η·a, with nesterov θ −= η·(g + μ·a); a is the slot momentum",
         .slot_count = 1,
         .slot_names = {"momentum"},
         .dtypes = FLOATS,
         .hyperparameters = HAS(CLIP_VALUE) | HAS(LEARNING_RATE) | HAS(MOMENTUM) | HAS(NESTEROV),
         .defaults = {DEFAULT(LEARNING_RATE, 0.01), DEFAULT(MOMENTUM, 0.9), DEFAULT(NESTEROV, 0)},
         .prepare = prepare_momentum},
    [UPDATE_ADAM] =
        {.number = UPDATE_ADAM,
         .name = "adam",
         .rule =
             "t += 1; m += (g − m)(1 − β₁); v += (g² − v)(1 − β₂); "
             "θ −= η·√(1 − β₂ᵗ)/(1 − β₁ᵗ)·m/(√v + ε), without bias_correction θ −= η·m/(√v + ε)",
         .slot_count = 2,
         .slot_names = {"m", "v"},
         .slot_from = {0, UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE},
         .counts_steps = true,
         .dtypes = FLOATS,
         .hyperparameters = ADAM_HAS,
         .defaults = {ADAM_DEFAULTS},
         .prepare = prepare_adam},
    [UPDATE_ADAGRAD] =
        {.number = UPDATE_ADAGRAD,
         .name = "adagrad",
         .rule = "a += g²; θ −= η·g/(√a + ε); a is the slot accumulator",
         .slot_count = 1,
         .slot_names = {"accumulator"},
         .slot_from = {UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE},
         .dtypes = FLOATS,
         .hyperparameters =
             HAS(CLIP_VALUE) | HAS(LEARNING_RATE) | HAS(INITIAL_ACCUMULATOR_VALUE) | HAS(EPSILON),
         .defaults =
             {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(INITIAL_ACCUMULATOR_VALUE, 0.1),
              DEFAULT(EPSILON, 1e-7)},
         .prepare = prepare_adagrad},
    [UPDATE_RMSPROP] =
        {.number = UPDATE_RMSPROP,
         .name = "rmsprop",
         .rule = "s = ρ·s + (1 − ρ)g²; d = s, centered c = ρ·c + (1 − ρ)g and d = s − c²; "
                 "u = μ·u + η·g/√(d + ε); θ −= u; s, u, c are the slots in their order",
         .slot_count = 3,
         .slot_names = {"rms", "momentum", "mean_gradient"},
         .last_slot_if = UPDATE_HYPERPARAMETER_CENTERED,
         .dtypes = FLOATS,
         .hyperparameters = HAS(CLIP_VALUE) | HAS(LEARNING_RATE) | HAS(RHO) | HAS(MOMENTUM) |
                            HAS(EPSILON) | HAS(CENTERED),
         .defaults =
             {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(RHO, 0.9), DEFAULT(MOMENTUM, 0),
              DEFAULT(EPSILON, 1e-7), DEFAULT(CENTERED, 0)},
         .prepare = prepare_rmsprop},
    [UPDATE_ADAMW] =
        {.number = UPDATE_ADAMW,
         .name = "adamw",
         .rule = "θ −= η·λ·θ, then adam",
         .slot_count = 2,
         .slot_names = {"m", "v"},
         .slot_from = {0, UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE},
         .counts_steps = true,
         .dtypes = FLOATS,
         .hyperparameters = ADAM_HAS | HAS(WEIGHT_DECAY),
         .defaults = {ADAM_DEFAULTS, DEFAULT(WEIGHT_DECAY, 0.004)},
         .prepare = prepare_adamw},
    [UPDATE_FTRL] =
        {.number = UPDATE_FTRL,
         .name = "ftrl",
         .rule = "n′ = n + g²; z += g + 2·l2_shrinkage·θ − (n′^−p − n^−p)/η·θ; q = n′^−p/η + 2·l2; "
                 "θ = (sign(z)·l1 − z)/q where |z| > l1, else 0; n = n′; n, z are the slots in "
                 "their order",
         .slot_count = 2,
         .slot_names = {"accumulator", "linear"},
         .slot_from = {UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE},
         .dtypes = FLOATS,
         .hyperparameters = HAS(CLIP_VALUE) | HAS(LEARNING_RATE) | HAS(LEARNING_RATE_POWER) |
                            HAS(INITIAL_ACCUMULATOR_VALUE) | HAS(L1) | HAS(L2) | HAS(L2_SHRINKAGE),
         .above_zero = HAS(LEARNING_RATE),
         .defaults =
             {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(LEARNING_RATE_POWER, -0.5),
              DEFAULT(INITIAL_ACCUMULATOR_VALUE, 0.1), DEFAULT(L1, 0), DEFAULT(L2, 0),
              DEFAULT(L2_SHRINKAGE, 0)},
         .prepare = prepare_ftrl},
    [UPDATE_NADAM] =
        {.number = UPDATE_NADAM,
         .name = "nadam",
         .rule = "t, m, v as adam's; "
                 "θ −= η·√(1 − β₂ᵗ)·(β₁·m/(1 − β₁ᵗ⁺¹) + (1 − β₁)g/(1 − β₁ᵗ))/(√v + ε)",
         .slot_count = 2,
         .slot_names = {"m", "v"},
         .counts_steps = true,
         .dtypes = FLOATS,
         .hyperparameters = MOMENTS_HAVE,
         .defaults = {MOMENTS_DEFAULTS},
         .prepare = prepare_nadam},
    [UPDATE_ADAMAX] =
        {.number = UPDATE_ADAMAX,
         .name = "adamax",
         .rule = "t += 1; m += (g − m)(1 − β₁); v = max(β₂·v, |g|); θ −= η/(1 − β₁ᵗ)·m/(v + ε)",
         .slot_count = 2,
         .slot_names = {"m", "v"},
         .counts_steps = true,
         .dtypes = FLOATS,
         .hyperparameters = MOMENTS_HAVE,
         .defaults = {MOMENTS_DEFAULTS},
         .prepare = prepare_adamax},
    [UPDATE_ADADELTA] =
        {.number = UPDATE_ADADELTA,
         .name = "adadelta",
         .rule = "a = ρ·a + (1 − ρ)g²; u = g·√(d + ε)/√(a + ε); d = ρ·d + (1 − ρ)u²; θ −= η·u; "
                 "a, d are the slots in their order",
         .slot_count = 2,
         .slot_names = {"accumulator", "delta_accumulator"},
         .dtypes = FLOATS,
         .hyperparameters = HAS(CLIP_VALUE) | HAS(LEARNING_RATE) | HAS(RHO) | HAS(EPSILON),
         .defaults = {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(RHO, 0.95), DEFAULT(EPSILON, 1e-7)},
         .prepare = prepare_adadelta},
    [UPDATE_LION] =
        {.number = UPDATE_LION,
         .name = "lion",
         .rule = "u = sign(β₁·m + (1 − β₁)g); θ −= η·(u + λ·θ); m = β₂·m + (1 − β₂)g",
         .slot_count = 1,
         .slot_names = {"m"},
         .dtypes = FLOATS,
         .hyperparameters =
             HAS(CLIP_VALUE) | HAS(LEARNING_RATE) | HAS(BETA_1) | HAS(BETA_2) | HAS(WEIGHT_DECAY),
         .defaults =
             {DEFAULT(LEARNING_RATE, 0.0001), DEFAULT(BETA_1, 0.9), DEFAULT(BETA_2, 0.99),
              DEFAULT(WEIGHT_DECAY, 0)},
         .prepare = prepare_lion},
    [UPDATE_YOGI] =
        {.number = UPDATE_YOGI,
         .name = "yogi",
         .rule = "adam with v −= (1 − β₂)sign(v − g²)·g²",
         .slot_count = 2,
         .slot_names = {"m", "v"},
         .slot_from = {0, UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE},
         .counts_steps = true,
         .dtypes = FLOATS,
         .hyperparameters = ADAM_HAS,
         .defaults =
             {DEFAULT(LEARNING_RATE, 0.01), DEFAULT(BETA_1, 0.9), DEFAULT(BETA_2, 0.999),
              DEFAULT(EPSILON, 0.001), DEFAULT(INITIAL_ACCUMULATOR_VALUE, 1e-6),
              DEFAULT(BIAS_CORRECTION, 1)},
         .prepare = prepare_adam},
    [UPDATE_DELAYED_NESTEROV] =
        {.number = UPDATE_DELAYED_NESTEROV,
         .name = "delayed_nesterov",
         .rule =
             "t += 1; d += g; θ −= η·(c·μ·m + g/N); where N divides t, before θ: m = μ·m + d/N, "
             "d = 0, and θ −= η·((1 − c·N + c)μ·m + g/N); m, d are the slots in their order",
         .slot_count = 2,
         .slot_names = {"momentum", "delayed"},
         .counts_steps = true,
         .dtypes = FLOATS,
         .hyperparameters = HAS(CLIP_VALUE) | HAS(LEARNING_RATE) |
                            HAS(MOMENTUM) | HAS(BUFFER_SIZE) | HAS(MOMENTUM_ACTIVATION),
         .defaults =
             {DEFAULT(LEARNING_RATE, 0.7), DEFAULT(MOMENTUM, 0.9), DEFAULT(BUFFER_SIZE, 4),
              DEFAULT(MOMENTUM_ACTIVATION, 0)},
         .prepare = prepare_delayed_nesterov},
    [UPDATE_MULTIPLY] =
        {.number = UPDATE_MULTIPLY,
         .name = "multiply",
         .rule = "θ *= g",
         .repeats = UPDATE_REPEATS_IN_TURN,
         .dtypes = NUMBERS},
    [UPDATE_DIVIDE] =
        {.number = UPDATE_DIVIDE,
         .name = "divide",
         .rule = "θ /= g",
         .repeats = UPDATE_REPEATS_IN_TURN,
         .dtypes = NUMBERS},
    [UPDATE_MIN] =
        {.number = UPDATE_MIN,
         .name = "min",
         .rule = "θ = min(θ, g)",
         .repeats = UPDATE_REPEATS_IN_TURN,
         .dtypes = NUMBERS},
    [UPDATE_MAX] =
        {.number = UPDATE_MAX,
         .name = "max",
         .rule = "θ = max(θ, g)",
         .repeats = UPDATE_REPEATS_IN_TURN,
         .dtypes = NUMBERS},
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
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s cannot be applied to variable %s of type %s",
            function->name, variable, sumac_dtype_name(dtype));
    if (function->slot_count > 0 && function != own)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MISSING_SLOTS,
            "%s keeps slots that variable %s does not have: it was created with %s; create "
            "it with %s to push with it",
            function->name, variable, own == NULL ? "assign" : own->name, function->name);
    return SUMAC_OK;
}

uint32_t update_slot_count(
    const struct update_function *function, const struct update_hyperparameters *hyperparameters)
{
    const uint32_t chooser = function->last_slot_if;
    const bool without = chooser != 0 && !(hyperparameters->value[chooser] > 0);

    assert(!without || function->slot_count > 0);
    return function->slot_count - without;
}

enum sumac_status update_check_slots(
    const struct update_function *function, const struct update_hyperparameters *own,
    const struct update_hyperparameters *merged, const char *variable, struct sumac_error *error)
{
    const uint32_t count = update_slot_count(function, merged);

    if (count <= update_slot_count(function, own))
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MISSING_SLOTS,
        "%s with %s keeps the slot %s, which variable %s does not have: create it with %s to push "
        "with it",
        function->name, update_hyperparameter_name(function->last_slot_if),
        function->slot_names[count - 1], variable,
        update_hyperparameter_name(function->last_slot_if));
}

void update_prepare(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t step, struct update_slice *slice)
{
    const double *const value = hyperparameters->value;
    double rounded[UPDATE_HYPERPARAMETERS_MAX + 1]; /* of those that it takes, … */

    if (function->runner != NULL) {
        function->runner->prepare(function, dtype, hyperparameters, step, slice);
        return;
    }
    rounded[UPDATE_HYPERPARAMETER_LEARNING_RATE] = 0; /* … and these */
    rounded[UPDATE_HYPERPARAMETER_CLIP_VALUE] = 0;
    for (uint32_t left = function->hyperparameters; left != 0; left &= left - 1) {
        const int i = __builtin_ctz(left);
        rounded[i] = dtype == SUMAC_FLOAT64 ? value[i] : (double)(float)value[i];
    }
    assert((function->dtypes & BIT(dtype)) != 0);
    assert(!function->counts_steps || step > 0);
    memset(slice->scalar, 0, UPDATE_SCALARS_OF_TABLE * sizeof *slice->scalar);
    slice->flag = false;
    slice->clip = rounded[UPDATE_HYPERPARAMETER_CLIP_VALUE];
    slice->scalar[UPDATE_SCALAR_RATE] = rounded[UPDATE_HYPERPARAMETER_LEARNING_RATE];
    if (function->prepare != NULL)
        function->prepare(rounded, step, slice);
}

void update_fill_slot(
    const struct update_function *function, uint32_t slot, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t count, void *out)
{
    assert(slot < update_slot_count(function, hyperparameters));
    const uint32_t from = function->slot_from[slot];
    const double value = from == 0 ? function->slot_initial[slot] : hyperparameters->value[from];
    const bool zeros = value >= 0 && value <= 0;
    const int kind = zeros ? WIRE_INITIALIZER_ZEROS : WIRE_INITIALIZER_CONSTANT;
    wire_initializer constant = WIRE_INITIALIZER_INIT;

    constant.a = value;
    constant.kind = (Sumac__V1__Initializer__Kind)kind;
    initializer_fill(&constant, update_slot_dtype(dtype), 0, count, out);
}

bool update_copy_finite(
    enum sumac_dtype dtype, void *restrict out, const void *restrict in, size_t bytes)
{
    update_copy *const copy = loops_select()->copy_finite[dtype];

    assert(dtype_bytes(dtype) > 0);
    assert(bytes % dtype_bytes(dtype) == 0);
    if (copy != NULL)
        return copy(out, in, bytes);
    memcpy(out, in, bytes);
    return true;
}

bool update_all_finite(enum sumac_dtype dtype, const void *data, size_t bytes)
{
    update_scan *const scan = loops_select()->all_finite[dtype];

    assert(dtype_bytes(dtype) > 0);
    assert(bytes % dtype_bytes(dtype) == 0);
    return scan == NULL || scan(data, bytes);
}
