/* SPDX-License-Identifier: Apache-2.0 */
/* update_rules.c (test) -- every float rule of the table over several pushes, beside the same rule
 * written down for one element, in float64, step by step as docs/ARCHITECTURE.md has it. */
#include <math.h>

#include "unit.h"
#include "half.h"
#include "update.h"

#define COUNT 67u
#define PUSHES 9u
#define GIVEN_MAX 6u

/* One variable's element, as a patient reader of the formula keeps it. */
struct element {
    double value, slot[UPDATE_SLOTS_MAX];
};

struct given {
    const char *name;
    double value;
};

struct rule_case {
    const char *function;
    struct given given[GIVEN_MAX]; /* over the defaults */
    void (*rule)(struct element *e, double g, double t, const double *h);
    double starts[UPDATE_SLOTS_MAX];
};

#define H(name) h[UPDATE_HYPERPARAMETER_##name]

static double sign(double x) { return (x > 0) - (x < 0); }

static void assign(struct element *e, double g, double t, const double *h)
{
    (void)t, (void)h;
    e->value = g;
}

static void multiply(struct element *e, double g, double t, const double *h)
{
    (void)t, (void)h;
    e->value *= g;
}

static void divide(struct element *e, double g, double t, const double *h)
{
    (void)t, (void)h;
    e->value /= g;
}

static void smaller(struct element *e, double g, double t, const double *h)
{
    (void)t, (void)h;
    e->value = fmin(e->value, g);
}

static void larger(struct element *e, double g, double t, const double *h)
{
    (void)t, (void)h;
    e->value = fmax(e->value, g);
}

static void sgd(struct element *e, double g, double t, const double *h)
{
    (void)t;
    e->value -= H(LEARNING_RATE) * g;
}

static void momentum(struct element *e, double g, double t, const double *h)
{
    (void)t;
    e->slot[0] = H(MOMENTUM) * e->slot[0] + g;
    if (H(NESTEROV) > 0)
        e->value -= H(LEARNING_RATE) * (g + H(MOMENTUM) * e->slot[0]);
    else
        e->value -= H(LEARNING_RATE) * e->slot[0];
}

static void adagrad(struct element *e, double g, double t, const double *h)
{
    (void)t;
    e->slot[0] += g * g;
    e->value -= H(LEARNING_RATE) * g / (sqrt(e->slot[0]) + H(EPSILON));
}

static void rmsprop(struct element *e, double g, double t, const double *h)
{
    double d;

    (void)t;
    e->slot[0] = H(RHO) * e->slot[0] + (1 - H(RHO)) * pow(g, 2);
    d = e->slot[0];
    if (H(CENTERED) > 0) {
        e->slot[2] = H(RHO) * e->slot[2] + (1 - H(RHO)) * g;
        d -= pow(e->slot[2], 2);
    }
    e->slot[1] = H(MOMENTUM) * e->slot[1] + H(LEARNING_RATE) * g / sqrt(d + H(EPSILON));
    e->value -= e->slot[1];
}

static void adam(struct element *e, double g, double t, const double *h)
{
    const double first = H(BIAS_CORRECTION) > 0 ? 1 - pow(H(BETA_1), t) : 1;
    const double second = H(BIAS_CORRECTION) > 0 ? 1 - pow(H(BETA_2), t) : 1;

    e->slot[0] += (g - e->slot[0]) * (1 - H(BETA_1));
    e->slot[1] += (g * g - e->slot[1]) * (1 - H(BETA_2));
    e->value -=
        H(LEARNING_RATE) * sqrt(second) / first * e->slot[0] / (sqrt(e->slot[1]) + H(EPSILON));
}

static void adamw(struct element *e, double g, double t, const double *h)
{
    e->value -= H(LEARNING_RATE) * H(WEIGHT_DECAY) * e->value;
    adam(e, g, t, h);
}

static void ftrl(struct element *e, double g, double t, const double *h)
{
    const double p = H(LEARNING_RATE_POWER), rate = H(LEARNING_RATE);
    const double n = e->slot[0] + g * g;
    double *const z = &e->slot[1];

    (void)t;
    *z += g + 2 * H(L2_SHRINKAGE) * e->value - (pow(n, -p) - pow(e->slot[0], -p)) / rate * e->value;
    const double q = pow(n, -p) / rate + 2 * H(L2);
    e->value = fabs(*z) > H(L1) ? (sign(*z) * H(L1) - *z) / q : 0;
    e->slot[0] = n;
}

static void nadam(struct element *e, double g, double t, const double *h)
{
    const double b = H(BETA_1);

    e->slot[0] += (g - e->slot[0]) * (1 - b);
    e->slot[1] += (g * g - e->slot[1]) * (1 - H(BETA_2));
    const double ahead = b * e->slot[0] / (1 - pow(b, t + 1)) + (1 - b) * g / (1 - pow(b, t));
    e->value -=
        H(LEARNING_RATE) * sqrt(1 - pow(H(BETA_2), t)) * ahead / (sqrt(e->slot[1]) + H(EPSILON));
}

static void adamax(struct element *e, double g, double t, const double *h)
{
    e->slot[0] += (g - e->slot[0]) * (1 - H(BETA_1));
    e->slot[1] = fmax(H(BETA_2) * e->slot[1], fabs(g));
    e->value -= H(LEARNING_RATE) / (1 - pow(H(BETA_1), t)) * e->slot[0] / (e->slot[1] + H(EPSILON));
}

static void adadelta(struct element *e, double g, double t, const double *h)
{
    (void)t;
    e->slot[0] = H(RHO) * e->slot[0] + (1 - H(RHO)) * g * g;
    const double u = g * sqrt(e->slot[1] + H(EPSILON)) / sqrt(e->slot[0] + H(EPSILON));
    e->slot[1] = H(RHO) * e->slot[1] + (1 - H(RHO)) * u * u;
    e->value -= H(LEARNING_RATE) * u;
}

static void lion(struct element *e, double g, double t, const double *h)
{
    const double u = sign(H(BETA_1) * e->slot[0] + (1 - H(BETA_1)) * g);

    (void)t;
    e->value -= H(LEARNING_RATE) * (u + H(WEIGHT_DECAY) * e->value);
    e->slot[0] = H(BETA_2) * e->slot[0] + (1 - H(BETA_2)) * g;
}

static void yogi(struct element *e, double g, double t, const double *h)
{
    const double second = H(BIAS_CORRECTION) > 0 ? sqrt(1 - pow(H(BETA_2), t)) : 1;
    const double first = H(BIAS_CORRECTION) > 0 ? 1 - pow(H(BETA_1), t) : 1;

    e->slot[0] += (g - e->slot[0]) * (1 - H(BETA_1));
    e->slot[1] -= (1 - H(BETA_2)) * sign(e->slot[1] - g * g) * g * g;
    e->value -= H(LEARNING_RATE) * second / first * e->slot[0] / (sqrt(e->slot[1]) + H(EPSILON));
}

static void delayed_nesterov(struct element *e, double g, double t, const double *h)
{
    const double n = H(BUFFER_SIZE), c = H(MOMENTUM_ACTIVATION), mu = H(MOMENTUM);
    double activation = c;

    e->slot[1] += g;
    if (fmod(t, n) < 0.5) {
        e->slot[0] = mu * e->slot[0] + e->slot[1] / n;
        e->slot[1] = 0;
        activation = 1 - c * n + c;
    }
    e->value -= H(LEARNING_RATE) * (activation * mu * e->slot[0] + g / n);
}

static const struct rule_case cases[] = {
    {.function = "assign", .rule = assign},
    {.function = "multiply", .rule = multiply},
    {.function = "divide", .rule = divide},
    {.function = "min", .rule = smaller},
    {.function = "max", .rule = larger},
    {.function = "sgd", .rule = sgd},
    {.function = "momentum", .rule = momentum},
    {.function = "momentum", .given = {{"nesterov", 1}, {"learning_rate", 0.3}}, .rule = momentum},
    {.function = "adagrad", .rule = adagrad, .starts = {0.1}},
    {.function = "adagrad",
     .given = {{"initial_accumulator_value", 0.5}, {"learning_rate", 0.2}, {"epsilon", 0.25}},
     .rule = adagrad,
     .starts = {0.5}},
    {.function = "rmsprop", .rule = rmsprop},
    {.function = "rmsprop",
     .given = {{"momentum", 0.7}, {"rho", 0.6}, {"epsilon", 0.05}, {"learning_rate", 0.1}},
     .rule = rmsprop},
    {.function = "rmsprop",
     .given = {{"centered", 1}, {"momentum", 0.4}, {"epsilon", 0.05}, {"learning_rate", 0.1}},
     .rule = rmsprop},
    {.function = "adam", .rule = adam},
    {.function = "adam",
     .given =
         {{"bias_correction", 0},
          {"initial_accumulator_value", 0.25},
          {"learning_rate", 0.1},
          {"epsilon", 0.2}},
     .rule = adam,
     .starts = {0, 0.25}},
    {.function = "adamw", .rule = adamw},
    {.function = "adamw", .given = {{"weight_decay", 0.5}, {"learning_rate", 0.2}}, .rule = adamw},
    {.function = "ftrl", .rule = ftrl, .starts = {0.1}},
    {.function = "ftrl",
     .given = {{"learning_rate", 0.5}, {"l1", 0.4}, {"l2", 0.2}, {"l2_shrinkage", 0.1}},
     .rule = ftrl,
     .starts = {0.1}},
    {.function = "ftrl",
     .given =
         {{"learning_rate", 0.5}, {"learning_rate_power", -0.3}, {"initial_accumulator_value", 0}},
     .rule = ftrl},
    {.function = "ftrl",
     .given = {{"learning_rate", 0.5}, {"learning_rate_power", 0}},
     .rule = ftrl,
     .starts = {0.1}},
    {.function = "nadam", .rule = nadam},
    {.function = "nadam",
     .given = {{"beta_1", 0.5}, {"beta_2", 0.7}, {"learning_rate", 0.2}},
     .rule = nadam},
    {.function = "adamax", .rule = adamax},
    {.function = "adamax",
     .given = {{"beta_2", 0.5}, {"epsilon", 0.3}, {"learning_rate", 0.2}},
     .rule = adamax},
    {.function = "adadelta", .rule = adadelta},
    {.function = "adadelta",
     .given = {{"learning_rate", 1}, {"rho", 0.5}, {"epsilon", 0.01}},
     .rule = adadelta},
    {.function = "lion", .rule = lion},
    {.function = "lion",
     .given = {{"learning_rate", 0.1}, {"weight_decay", 0.3}, {"beta_1", 0.3}, {"beta_2", 0.6}},
     .rule = lion},
    {.function = "yogi", .rule = yogi, .starts = {0, 1e-6}},
    {.function = "yogi",
     .given =
         {{"bias_correction", 0},
          {"initial_accumulator_value", 1},
          {"beta_2", 0.5},
          {"epsilon", 0.1}},
     .rule = yogi,
     .starts = {0, 1}},
    {.function = "delayed_nesterov", .rule = delayed_nesterov},
    {.function = "delayed_nesterov",
     .given = {{"buffer_size", 3}, {"momentum_activation", 0.2}, {"learning_rate", 0.1}},
     .rule = delayed_nesterov},
    {.function = "delayed_nesterov", .given = {{"buffer_size", 1}}, .rule = delayed_nesterov},
};
#define CASES (sizeof cases / sizeof cases[0])

/* Exact in bfloat16, so that every type is given the same; never 0, of both signs. */
static double gradient_of(uint32_t push, uint32_t i)
{
    const double size = (double)(1 + (push * 31 + i * 7) % 64) / 16;

    return (push + i / 3) % 2 == 0 ? size : -size;
}

static double value_of(uint32_t i) { return ((double)(i % 41) - 20) / 8 + 1.0 / 16; }

static double read_element(enum sumac_dtype dtype, const uint8_t *at)
{
    uint16_t half;
    float single;
    double number;

    if (dtype == SUMAC_FLOAT64) {
        memcpy(&number, at, sizeof number);
        return number;
    }
    if (dtype == SUMAC_FLOAT32) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&half, at, sizeof half);
    return (double)(dtype == SUMAC_FLOAT16 ? float32_of_float16(half) : float32_of_bfloat16(half));
}

static void write_element(enum sumac_dtype dtype, double number, uint8_t *at)
{
    const float single = (float)number;
    const uint16_t half =
        dtype == SUMAC_FLOAT16 ? float16_of_float32(single) : bfloat16_of_float32(single);

    if (dtype == SUMAC_FLOAT64)
        memcpy(at, &number, sizeof number);
    else if (dtype == SUMAC_FLOAT32)
        memcpy(at, &single, sizeof single);
    else
        memcpy(at, &half, sizeof half);
}

static struct update_hyperparameters
read_given(const struct update_function *function, const struct rule_case *one)
{
    struct update_hyperparameters read;

    assert_int_equal(update_hyperparameters_read(function, NULL, NULL, &read, NULL), SUMAC_OK);
    for (uint32_t i = 0; i < GIVEN_MAX && one->given[i].name != NULL; i++) {
        const uint32_t number = update_hyperparameter_find(one->given[i].name);
        assert_int_equal(function->hyperparameters >> number & 1u, 1);
        read.value[number] = one->given[i].value;
    }
    return read;
}

/* A ps's arrays of a variable, and the reader's elements of it. */
struct variable {
    enum sumac_dtype dtype;
    double scale;                     /* of what is pushed, by the ps; … */
    double reader_scale, reader_clip; /* … by whoever pushes; 0: not */
    uint8_t value[8 * COUNT], gradient[8 * COUNT], slot[UPDATE_SLOTS_MAX][8 * COUNT];
    struct element element[COUNT];
};

static void begin(
    struct variable *variable, const struct update_function *function,
    const struct update_hyperparameters *read)
{
    const size_t bytes = sumac_dtype_bytes(variable->dtype);

    for (uint32_t i = 0; i < COUNT; i++) {
        write_element(variable->dtype, value_of(i), variable->value + i * bytes);
        variable->element[i] = (struct element){.value = value_of(i)};
    }
    for (uint32_t s = 0; s < update_slot_count(function, read); s++)
        update_fill_slot(function, s, variable->dtype, read, COUNT, variable->slot[s]);
}

static double seen_by(const struct variable *variable, uint32_t step, uint32_t i)
{
    const double g = gradient_of(step, i);

    if (variable->reader_clip <= 0)
        return g;
    const double scaled = g * variable->reader_scale;
    return fmin(fmax(scaled, -variable->reader_clip), variable->reader_clip);
}

static void push(
    struct variable *variable, const struct update_function *function,
    const struct update_hyperparameters *read, uint32_t step)
{
    const size_t bytes = sumac_dtype_bytes(variable->dtype);
    struct update_slice slice = {
        .function = function,
        .dtype = variable->dtype,
        .count = COUNT,
        .value_in = variable->value,
        .value_out = variable->value,
        .gradient = variable->gradient,
    };

    for (uint32_t i = 0; i < COUNT; i++)
        write_element(variable->dtype, seen_by(variable, step, i), variable->gradient + i * bytes);
    for (uint32_t s = 0; s < update_slot_count(function, read); s++)
        slice.slot_in[s] = slice.slot_out[s] = variable->slot[s];
    update_prepare(function, variable->dtype, read, step, &slice);
    slice.scale = variable->scale;
    update_run(&slice);
}

/* What PUSHES roundings of the arithmetic, each amplified by few operations and by quotients of
 * sums that cancel, may add up to; of the half types one of the result, of which each push may make
 * another. */
static double error_max(enum sumac_dtype dtype)
{
    return dtype == SUMAC_FLOAT64   ? 1e-11
           : dtype == SUMAC_FLOAT32 ? 2e-5
           : dtype == SUMAC_FLOAT16 ? 2e-3
                                    : 1.6e-2;
}

static void expect_near(
    const struct rule_case *one, enum sumac_dtype dtype, double expected, double actual, double max)
{
    if (!(fabs(expected - actual) <= max * fmax(1, fabs(expected))))
        fail_msg(
            "%s of %s: %.9g is expected, %.9g was seen", one->function, sumac_dtype_name(dtype),
            expected, actual);
}

static void check_case(const struct rule_case *one, enum sumac_dtype dtype)
{
    static struct variable variable;
    const struct update_function *const function = update_find_by_name(one->function);
    const struct update_hyperparameters read = read_given(function, one);
    const enum sumac_dtype slot_dtype = update_slot_dtype(dtype);
    const bool is_half = slot_dtype != dtype;

    variable = (struct variable){.dtype = dtype};
    begin(&variable, function, &read);
    for (uint32_t i = 0; i < COUNT; i++)
        memcpy(variable.element[i].slot, one->starts, sizeof one->starts);
    for (uint32_t step = 1; step <= PUSHES; step++) {
        push(&variable, function, &read, step);
        for (uint32_t i = 0; i < COUNT; i++) {
            struct element *const e = &variable.element[i];
            const double is = read_element(dtype, variable.value + i * sumac_dtype_bytes(dtype));
            one->rule(e, gradient_of(step, i), step, read.value);
            expect_near(one, dtype, e->value, is, error_max(dtype));
            for (uint32_t s = 0; s < update_slot_count(function, &read); s++)
                expect_near(
                    one, slot_dtype, e->slot[s],
                    read_element(slot_dtype, variable.slot[s] + i * sumac_dtype_bytes(slot_dtype)),
                    is_half ? error_max(dtype) : error_max(slot_dtype));
            if (is_half)
                e->value = is; /* goes on from what it was rounded to */
        }
    }
}

static void check_all(enum sumac_dtype dtype)
{
    for (size_t i = 0; i < CASES; i++)
        check_case(&cases[i], dtype);
}

TEST(rules_of_float64_are_those_of_the_page) { check_all(SUMAC_FLOAT64); }

TEST(rules_of_float32_are_those_of_the_page) { check_all(SUMAC_FLOAT32); }

TEST(rules_of_half_types_are_those_of_the_page)
{
    check_all(SUMAC_FLOAT16);
    check_all(SUMAC_BFLOAT16);
}

/* Half types: the float32 rule on the same numbers, rounded once at the end; slots the same bits.
 */
TEST(a_half_type_is_float32_rounded_once)
{
    static struct variable half, wide;

    for (size_t c = 0; c < CASES; c++) {
        const struct update_function *const function = update_find_by_name(cases[c].function);
        const struct update_hyperparameters read = read_given(function, &cases[c]);
        for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_BFLOAT16; dtype++) {
            half.dtype = (enum sumac_dtype)dtype;
            wide.dtype = SUMAC_FLOAT32;
            begin(&half, function, &read);
            begin(&wide, function, &read);
            for (uint32_t step = 1; step <= PUSHES; step++) {
                push(&half, function, &read, step);
                push(&wide, function, &read, step);
                for (uint32_t i = 0; i < COUNT; i++) {
                    uint8_t rounded[8];
                    write_element(
                        half.dtype, read_element(SUMAC_FLOAT32, wide.value + 4 * i), rounded);
                    assert_memory_equal(half.value + 2 * i, rounded, 2);
                    write_element(
                        SUMAC_FLOAT32, read_element(half.dtype, rounded), wide.value + 4 * i);
                }
                for (uint32_t s = 0; s < update_slot_count(function, &read); s++)
                    assert_memory_equal(half.slot[s], wide.slot[s], 4 * COUNT);
            }
        }
    }
}

/* What a ps scales and clips is, bit by bit, what a worker that does so itself would push: half of
 * a gradient that all types have is exact in each. */
TEST(a_gradient_is_scaled_and_then_clipped)
{
    static struct variable here, there;

    for (size_t c = 0; c < CASES; c++) {
        const struct update_function *const function = update_find_by_name(cases[c].function);
        struct update_hyperparameters read = read_given(function, &cases[c]);
        if ((function->hyperparameters >> UPDATE_HYPERPARAMETER_CLIP_VALUE & 1u) == 0)
            continue;
        for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_FLOAT64; dtype++) {
            there = (struct variable){
                .dtype = (enum sumac_dtype)dtype, .reader_scale = 0.5, .reader_clip = 0.75};
            here = (struct variable){.dtype = there.dtype, .scale = 0.5};
            begin(&there, function, &read);
            begin(&here, function, &read);
            for (uint32_t step = 1; step <= 3; step++) {
                read.value[UPDATE_HYPERPARAMETER_CLIP_VALUE] = 0;
                push(&there, function, &read, step);
                read.value[UPDATE_HYPERPARAMETER_CLIP_VALUE] = 0.75;
                push(&here, function, &read, step);
            }
            assert_memory_equal(here.value, there.value, sizeof here.value);
            assert_memory_equal(here.slot, there.slot, sizeof here.slot);
        }
    }
}

/* Every rule that computes has a case here. */
TEST(no_rule_is_left_out)
{
    for (uint32_t f = 0; update_at(f) != NULL; f++) {
        const char *const name = update_at(f)->name;
        bool found = strcmp(name, "assign_add") == 0 || strcmp(name, "assign_sub") == 0;
        for (size_t i = 0; i < CASES; i++)
            found = found || strcmp(cases[i].function, name) == 0;
        assert_true(found);
    }
}

static void run_integers(uint32_t function, enum sumac_dtype dtype, void *value, const void *g)
{
    const struct update_slice slice = {
        .function = update_find(function),
        .dtype = dtype,
        .count = 2,
        .value_in = value,
        .value_out = value,
        .gradient = g};

    update_run(&slice);
}

/* Decision 22: products wrap around, and the order is that of the type's sign. */
TEST(integers_are_multiplied_and_compared_exactly)
{
    int8_t small[2] = {100, -3};
    uint8_t counts[2] = {200, 3};
    int64_t large[2] = {INT64_MIN, 5};
    uint64_t unsigned_large[2] = {UINT64_MAX, 5};

    run_integers(UPDATE_MULTIPLY, SUMAC_INT8, small, (const int8_t[]){3, -3});
    assert_int_equal(small[0], 44); /* 300 − 256 */
    assert_int_equal(small[1], 9);
    run_integers(UPDATE_MIN, SUMAC_INT8, small, (const int8_t[]){-1, 10});
    assert_int_equal(small[0], -1);
    assert_int_equal(small[1], 9);
    run_integers(UPDATE_MAX, SUMAC_INT8, small, (const int8_t[]){-2, 11});
    assert_int_equal(small[0], -1);
    assert_int_equal(small[1], 11);
    run_integers(UPDATE_MAX, SUMAC_UINT8, counts, (const uint8_t[]){100, 255});
    assert_int_equal(counts[0], 200);
    assert_int_equal(counts[1], 255);
    run_integers(UPDATE_MIN, SUMAC_INT64, large, (const int64_t[]){0, INT64_MIN});
    assert_true(large[0] == INT64_MIN && large[1] == INT64_MIN);
    run_integers(UPDATE_MIN, SUMAC_UINT64, unsigned_large, (const uint64_t[]){7, 1});
    assert_true(unsigned_large[0] == 7 && unsigned_large[1] == 1);
}

/* Zero, what is not finite, and exponents that no rule's default has. */
TEST(ftrls_power_is_right_at_its_ends)
{
    static const double powers[] = {0, -0.25, -1, -2.5, -3};
    const struct update_function *const function = update_find(UPDATE_FTRL);
    struct update_hyperparameters read;

    assert_int_equal(update_hyperparameters_read(function, NULL, NULL, &read, NULL), SUMAC_OK);
    read.value[UPDATE_HYPERPARAMETER_LEARNING_RATE] = 1;
    for (size_t p = 0; p < sizeof powers / sizeof powers[0]; p++) {
        double value[6] = {0}, linear[6], g[6] = {0};
        double n[6] = {0, 0x1p-1070, 1e-20, 0.3, 7, 1e20}; /* given */
        for (int i = 0; i < 6; i++)
            linear[i] = 1;
        struct update_slice slice = {
            .function = function,
            .dtype = SUMAC_FLOAT64,
            .count = 6,
            .value_in = value,
            .value_out = value,
            .gradient = g,
            .slot_in = {n, linear},
            .slot_out = {n, linear}};
        read.value[UPDATE_HYPERPARAMETER_LEARNING_RATE_POWER] = powers[p];
        update_prepare(function, SUMAC_FLOAT64, &read, 1, &slice);

        update_run(&slice); /* when */

        for (int i = 0; i < 6; i++) { /* then */
            const double expected = -1 / pow(n[i], -powers[p]);
            assert_true(
                value[i] == expected || fabs(value[i] - expected) <= 1e-12 * fabs(expected));
        }
    }
}
