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

#include "dtype.h"
#include "error.h"
#include "loops.h"

#define BIT(number) (1u << (number))
#define X(NAME, number, bytes, kind, name, numpy) | BIT(number)
#define EVERY_DTYPE (0u SUMAC_DTYPE_LIST(X))
#define IS_FLOAT(kind) ((kind) == SUMAC_KIND_HALF || (kind) == SUMAC_KIND_FLOAT)
#define FLOAT_BIT(NAME, number, bytes, kind, name, numpy)                                          \
    | (IS_FLOAT(SUMAC_KIND_##kind) ? BIT(number) : 0)
#define FLOATS (0u SUMAC_DTYPE_LIST(FLOAT_BIT))
#define NUMBERS (EVERY_DTYPE & ~BIT(SUMAC_BOOL))
#define HAS(name) BIT(UPDATE_HYPERPARAMETER_##name)
#define DEFAULT(name, value) [UPDATE_HYPERPARAMETER_##name] = (value)

/* The factors that a step computes from the hyperparameters: `rounded` holds the hyperparameters by
 * number, in the type of the arithmetic; `step` is t. */
#define VALUE(name) rounded[UPDATE_HYPERPARAMETER_##name]
#define SCALAR(name) slice->scalar[UPDATE_SCALAR_##name]

/* base^exponent by repeated squaring: no libm, whose last bit differs between processors. */
static double power(double base, uint64_t exponent)
{
    double result = 1;

    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* yogi's, too */
static void prepare_adam(const double *rounded, uint64_t step, struct update_slice *slice)
{
    assert(step > 0);
    if (VALUE(BIAS_CORRECTION) != 0)
        SCALAR(RATE) = VALUE(LEARNING_RATE) * sqrt(1 - power(VALUE(BETA_2), step)) /
                       (1 - power(VALUE(BETA_1), step));
}

static void prepare_adamw(const double *rounded, uint64_t step, struct update_slice *slice)
{
    prepare_adam(rounded, step, slice);
    SCALAR(DECAY) = VALUE(LEARNING_RATE) * VALUE(WEIGHT_DECAY);
}

static void prepare_ftrl(const double *rounded, uint64_t step, struct update_slice *slice)
{
    (void)step;
    assert(VALUE(LEARNING_RATE) > 0);
    assert(VALUE(LEARNING_RATE_POWER) <= 0);
    SCALAR(POWER) = -VALUE(LEARNING_RATE_POWER);
    SCALAR(L1) = VALUE(L1);
    SCALAR(TWICE_L2) = 2 * VALUE(L2);
    SCALAR(TWICE_L2_SHRINKAGE) = 2 * VALUE(L2_SHRINKAGE);
    slice->flag = VALUE(LEARNING_RATE_POWER) == -0.5;
}

static void prepare_nadam(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double beta_1 = VALUE(BETA_1);
    const double rate = VALUE(LEARNING_RATE) * sqrt(1 - power(VALUE(BETA_2), step));

    assert(step > 0);
    SCALAR(RATE) = rate * beta_1 / (1 - power(beta_1, step + 1));
    SCALAR(AHEAD_RATE) = rate * (1 - beta_1) / (1 - power(beta_1, step));
}

static void prepare_adamax(const double *rounded, uint64_t step, struct update_slice *slice)
{
    assert(step > 0);
    SCALAR(RATE) = VALUE(LEARNING_RATE) / (1 - power(VALUE(BETA_1), step));
}

/* Every buffer_size-th update is the one that moves the momentum. */
static void
prepare_delayed_nesterov(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double size = VALUE(BUFFER_SIZE), activation = VALUE(MOMENTUM_ACTIVATION);
    const double rate = VALUE(LEARNING_RATE), momentum = VALUE(MOMENTUM);

    assert(step > 0);
    assert(size >= 1);
    slice->flag = step % (uint64_t)size == 0;
    SCALAR(SHARE) = 1 / size;
    SCALAR(GRADIENT_RATE) = rate / size;
    SCALAR(RATE) =
        rate * momentum * (slice->flag ? 1 - activation * size + activation : activation);
}

#define RATE_HAS (HAS(LEARNING_RATE) | HAS(CLIP_VALUE))
/* The hyperparameters of adam and its relatives. */
#define MOMENTS_HAVE (RATE_HAS | HAS(BETA_1) | HAS(BETA_2) | HAS(EPSILON))
#define MOMENTS_DEFAULTS                                                                           \
    DEFAULT(LEARNING_RATE, 0.001), DEFAULT(BETA_1, 0.9), DEFAULT(BETA_2, 0.999),                   \
        DEFAULT(EPSILON, 1e-7)
#define MOMENTS_SLOTS .slot_count = 2, .slot_names = {"m", "v"}, .counts_steps = true
#define ADAM_HAS (MOMENTS_HAVE | HAS(INITIAL_ACCUMULATOR_VALUE) | HAS(BIAS_CORRECTION))
#define ADAM_DEFAULTS                                                                              \
    MOMENTS_DEFAULTS, DEFAULT(INITIAL_ACCUMULATOR_VALUE, 0), DEFAULT(BIAS_CORRECTION, 1)
#define ADAM_SLOTS MOMENTS_SLOTS, .slot_from = {0, UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE}

#define ROW(NAME, said, what, ...)                                                                 \
    [UPDATE_##NAME] = {.number = UPDATE_##NAME, .name = (said), .rule = (what), __VA_ARGS__}

/* By number; none has 0. */
static const struct update_function functions[] = {
    ROW(ASSIGN, "assign", "θ = g", .repeats = UPDATE_REPEATS_LAST_WINS, .dtypes = EVERY_DTYPE),
    ROW(ASSIGN_ADD, "assign_add", "θ += g", .dtypes = NUMBERS),
    ROW(ASSIGN_SUB, "assign_sub", "θ −= g", .dtypes = NUMBERS),
    ROW(SGD, "sgd", "θ −= η·g", .dtypes = FLOATS, .hyperparameters = RATE_HAS,
        .defaults = {DEFAULT(LEARNING_RATE, 0.01)}),
    ROW(MOMENTUM, "momentum",
        "a = μ·a + g; θ −= η·a, with nesterov θ −= η·(g + μ·a); a is the slot momentum",
        .slot_count = 1, .slot_names = {"momentum"}, .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(MOMENTUM) | HAS(NESTEROV),
        .defaults = {DEFAULT(LEARNING_RATE, 0.01), DEFAULT(MOMENTUM, 0.9), DEFAULT(NESTEROV, 0)}),
    ROW(ADAM, "adam",
        "t += 1; m += (g − m)(1 − β₁); v += (g² − v)(1 − β₂); "
        "θ −= η·√(1 − β₂ᵗ)/(1 − β₁ᵗ)·m/(√v + ε), without bias_correction θ −= η·m/(√v + ε)",
        ADAM_SLOTS, .dtypes = FLOATS, .hyperparameters = ADAM_HAS, .defaults = {ADAM_DEFAULTS},
        .prepare = prepare_adam),
    ROW(ADAGRAD, "adagrad", "a += g²; θ −= η·g/(√a + ε); a is the slot accumulator",
        .slot_count = 1, .slot_names = {"accumulator"},
        .slot_from = {UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE}, .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(INITIAL_ACCUMULATOR_VALUE) | HAS(EPSILON),
        .defaults =
            {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(INITIAL_ACCUMULATOR_VALUE, 0.1),
             DEFAULT(EPSILON, 1e-7)}),
    ROW(RMSPROP, "rmsprop",
        "s = ρ·s + (1 − ρ)g²; d = s, centered c = ρ·c + (1 − ρ)g and d = s − c²; "
        "u = μ·u + η·g/√(d + ε); θ −= u; s, u, c are the slots in their order",
        .slot_count = 3, .slot_names = {"rms", "momentum", "mean_gradient"},
        .last_slot_if = UPDATE_HYPERPARAMETER_CENTERED, .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(RHO) | HAS(MOMENTUM) | HAS(EPSILON) | HAS(CENTERED),
        .defaults =
            {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(RHO, 0.9), DEFAULT(MOMENTUM, 0),
             DEFAULT(EPSILON, 1e-7), DEFAULT(CENTERED, 0)}),
    ROW(ADAMW, "adamw", "θ −= η·λ·θ, then adam", ADAM_SLOTS, .dtypes = FLOATS,
        .hyperparameters = ADAM_HAS | HAS(WEIGHT_DECAY),
        .defaults = {ADAM_DEFAULTS, DEFAULT(WEIGHT_DECAY, 0.004)}, .prepare = prepare_adamw),
    ROW(FTRL, "ftrl",
        "n′ = n + g²; z += g + 2·l2_shrinkage·θ − (n′^−p − n^−p)/η·θ; q = n′^−p/η + 2·l2; "
        "θ = (sign(z)·l1 − z)/q where |z| > l1, else 0; n = n′; n, z are the slots in "
        "their order",
        .slot_count = 2, .slot_names = {"accumulator", "linear"},
        .slot_from = {UPDATE_HYPERPARAMETER_INITIAL_ACCUMULATOR_VALUE}, .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(LEARNING_RATE_POWER) | HAS(INITIAL_ACCUMULATOR_VALUE) |
                           HAS(L1) | HAS(L2) | HAS(L2_SHRINKAGE),
        .above_zero = HAS(LEARNING_RATE),
        .defaults =
            {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(LEARNING_RATE_POWER, -0.5),
             DEFAULT(INITIAL_ACCUMULATOR_VALUE, 0.1), DEFAULT(L1, 0), DEFAULT(L2, 0),
             DEFAULT(L2_SHRINKAGE, 0)},
        .prepare = prepare_ftrl),
    ROW(NADAM, "nadam",
        "t, m, v as adam's; "
        "θ −= η·√(1 − β₂ᵗ)·(β₁·m/(1 − β₁ᵗ⁺¹) + (1 − β₁)g/(1 − β₁ᵗ))/(√v + ε)",
        MOMENTS_SLOTS, .dtypes = FLOATS, .hyperparameters = MOMENTS_HAVE,
        .defaults = {MOMENTS_DEFAULTS}, .prepare = prepare_nadam),
    ROW(ADAMAX, "adamax",
        "t += 1; m += (g − m)(1 − β₁); v = max(β₂·v, |g|); θ −= η/(1 − β₁ᵗ)·m/(v + ε)",
        MOMENTS_SLOTS, .dtypes = FLOATS, .hyperparameters = MOMENTS_HAVE,
        .defaults = {MOMENTS_DEFAULTS}, .prepare = prepare_adamax),
    ROW(ADADELTA, "adadelta",
        "a = ρ·a + (1 − ρ)g²; u = g·√(d + ε)/√(a + ε); d = ρ·d + (1 − ρ)u²; θ −= η·u; "
        "a, d are the slots in their order",
        .slot_count = 2, .slot_names = {"accumulator", "delta_accumulator"}, .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(RHO) | HAS(EPSILON),
        .defaults = {DEFAULT(LEARNING_RATE, 0.001), DEFAULT(RHO, 0.95), DEFAULT(EPSILON, 1e-7)}),
    ROW(LION, "lion", "u = sign(β₁·m + (1 − β₁)g); θ −= η·(u + λ·θ); m = β₂·m + (1 − β₂)g",
        .slot_count = 1, .slot_names = {"m"}, .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(BETA_1) | HAS(BETA_2) | HAS(WEIGHT_DECAY),
        .defaults =
            {DEFAULT(LEARNING_RATE, 0.0001), DEFAULT(BETA_1, 0.9), DEFAULT(BETA_2, 0.99),
             DEFAULT(WEIGHT_DECAY, 0)}),
    ROW(YOGI, "yogi", "adam with v −= (1 − β₂)sign(v − g²)·g²", ADAM_SLOTS, .dtypes = FLOATS,
        .hyperparameters = ADAM_HAS,
        .defaults =
            {DEFAULT(LEARNING_RATE, 0.01), DEFAULT(BETA_1, 0.9), DEFAULT(BETA_2, 0.999),
             DEFAULT(EPSILON, 0.001), DEFAULT(INITIAL_ACCUMULATOR_VALUE, 1e-6),
             DEFAULT(BIAS_CORRECTION, 1)},
        .prepare = prepare_adam),
    ROW(DELAYED_NESTEROV, "delayed_nesterov",
        "t += 1; d += g; θ −= η·(c·μ·m + g/N); where N divides t, before θ: m = μ·m + d/N, "
        "d = 0, and θ −= η·((1 − c·N + c)μ·m + g/N); m, d are the slots in their order",
        .slot_count = 2, .slot_names = {"momentum", "delayed"}, .counts_steps = true,
        .dtypes = FLOATS,
        .hyperparameters = RATE_HAS | HAS(MOMENTUM) | HAS(BUFFER_SIZE) | HAS(MOMENTUM_ACTIVATION),
        .defaults =
            {DEFAULT(LEARNING_RATE, 0.7), DEFAULT(MOMENTUM, 0.9), DEFAULT(BUFFER_SIZE, 4),
             DEFAULT(MOMENTUM_ACTIVATION, 0)},
        .prepare = prepare_delayed_nesterov),
    ROW(MULTIPLY, "multiply", "θ *= g", .repeats = UPDATE_REPEATS_IN_TURN, .dtypes = NUMBERS),
    ROW(DIVIDE, "divide", "θ /= g", .repeats = UPDATE_REPEATS_IN_TURN, .dtypes = NUMBERS),
    ROW(MIN, "min", "θ = min(θ, g)", .repeats = UPDATE_REPEATS_IN_TURN, .dtypes = NUMBERS),
    ROW(MAX, "max", "θ = max(θ, g)", .repeats = UPDATE_REPEATS_IN_TURN, .dtypes = NUMBERS),
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

/* The hyperparameters that have a scalar each. */
static void prepare_scalars(uint32_t has, const double *rounded, struct update_slice *slice)
{
    assert(VALUE(NESTEROV) == 0 || VALUE(NESTEROV) == 1);
    assert(VALUE(CENTERED) == 0 || VALUE(CENTERED) == 1);
    memset(slice->scalar, 0, UPDATE_SCALARS_OF_TABLE * sizeof *slice->scalar);
    slice->clip = VALUE(CLIP_VALUE);
    slice->flag = VALUE(NESTEROV) != 0 || VALUE(CENTERED) != 0;
    SCALAR(RATE) = VALUE(LEARNING_RATE);
    SCALAR(EPSILON) = VALUE(EPSILON);
    SCALAR(DECAY) = VALUE(WEIGHT_DECAY);
    if ((has & HAS(MOMENTUM)) != 0)
        SCALAR(MOMENTUM) = VALUE(MOMENTUM);
    if ((has & HAS(RHO)) != 0) {
        SCALAR(RHO) = VALUE(RHO);
        SCALAR(ONE_LESS_RHO) = 1 - VALUE(RHO);
    }
    if ((has & HAS(BETA_1)) != 0) {
        SCALAR(BETA_1) = VALUE(BETA_1);
        SCALAR(BETA_2) = VALUE(BETA_2);
        SCALAR(ONE_LESS_BETA_1) = 1 - VALUE(BETA_1);
        SCALAR(ONE_LESS_BETA_2) = 1 - VALUE(BETA_2);
    }
}

/* Prepare a function that is not of the table. A text clips by itself, and its plan rounds. */
static void prepare_own(
    const struct update_function *function, enum sumac_dtype dtype, const double *value,
    uint64_t step, struct update_slice *slice)
{
    const bool rounds = dtype != SUMAC_FLOAT64 && function->expression == NULL;
    const bool clips =
        function->expression == NULL && (function->hyperparameters & HAS(CLIP_VALUE));
    const double clip = clips ? value[UPDATE_HYPERPARAMETER_CLIP_VALUE] : 0;

    assert(function->own_count <= UPDATE_SCALARS);
    for (uint32_t i = 0; i < function->own_count; i++) {
        const double own = value[function->own_numbers[i]];
        slice->scalar[i] = rounds ? (double)(float)own : own;
    }
    slice->step = step;
    slice->plan = NULL;
    slice->flag = false;
    slice->clip = rounds ? (double)(float)clip : clip;
}

void update_prepare(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t step, struct update_slice *slice)
{
    const double *const value = hyperparameters->value;
    double rounded[UPDATE_HYPERPARAMETERS_MAX + 1] = {0};

    assert((function->dtypes & BIT(dtype)) != 0);
    assert(!function->counts_steps || step > 0);
    if (function->loop != NULL) {
        prepare_own(function, dtype, value, step, slice);
        return;
    }
    for (uint32_t left = function->hyperparameters; left != 0; left &= left - 1) {
        const int i = __builtin_ctz(left);
        rounded[i] = dtype == SUMAC_FLOAT64 ? value[i] : (double)(float)value[i];
    }
    assert(VALUE(MOMENTUM) >= 0 && VALUE(MOMENTUM) <= 1);
    assert(VALUE(RHO) >= 0 && VALUE(RHO) <= 1);
    assert(VALUE(BETA_1) >= 0 && VALUE(BETA_1) < 1); /* also rounded: nothing is divided by 0 */
    assert(VALUE(BETA_2) >= 0 && VALUE(BETA_2) < 1);
    prepare_scalars(function->hyperparameters, rounded, slice);
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
