/* SPDX-License-Identifier: Apache-2.0 */
/* expression_run.c (test) -- whatever the text, a plan computes what the text says, bit by bit, by
 * every table of loops, in place and into spare memory, at any alignment. */
#include <math.h>

#include "unit.h"
#include "assert_number.h"
#include "expression_loops.h"
#include "expression_plain.h"
#include "expression_text.h"
#include "half.h"

#define COUNT 1027u /* no multiple of any vector's length, and more than a tile */
#define GUARD 64u
#define BYTES (8 * COUNT + 2 * GUARD)
#define STEP 3u

struct arrays {
    uint8_t gradient[BYTES], results[EXPRESSION_RESULTS_MAX][BYTES];
};

static uint32_t draw(void *context, uint32_t count)
{
    uint64_t *const state = context;

    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % count;
}

static void put(uint8_t *array, bool is_float32, size_t i, double number)
{
    const float narrow = (float)number;

    if (is_float32)
        memcpy(array + 4 * i, &narrow, sizeof narrow);
    else
        memcpy(array + 8 * i, &number, sizeof number);
}

static double get(const uint8_t *array, bool is_float32, size_t i)
{
    float narrow;
    double number;

    memcpy(&narrow, array + 4 * i, sizeof narrow);
    memcpy(&number, array + (is_float32 ? 0 : 8 * i), sizeof number);
    return is_float32 ? (double)narrow : number;
}

/* Finite numbers of both signs, some of them special. */
static void fill(bool is_float32, size_t offset, struct arrays *arrays)
{
    static const double special[] = {0.0, -0.0, 1, -1, 1e30, -1e30, 1e-40, 0.5};
    uint64_t state = 42;

    memset(arrays, 0xa5, sizeof *arrays);
    for (uint32_t r = 0; r <= EXPRESSION_RESULTS_MAX; r++) {
        uint8_t *const array = r == 0 ? arrays->gradient : arrays->results[r - 1];
        for (size_t i = 0; i < COUNT; i++) {
            const double number = (double)draw(&state, 4000001) / 1e6 - 2;
            const bool is_special = draw(&state, 16) == 0;
            put(array + offset, is_float32, i, is_special ? special[draw(&state, 8)] : number);
        }
    }
}

static struct expression_slice
make_slice(enum sumac_dtype dtype, size_t offset, struct arrays *in, struct arrays *out)
{
    struct expression_slice slice = {
        .count = COUNT,
        .value_in = in->results[0] + offset,
        .value_out = out->results[0] + offset,
        .gradient = in->gradient + offset,
        .gradient_dtype = dtype};

    for (uint32_t s = 0; s < EXPRESSION_SLOTS_MAX; s++) {
        slice.slot_in[s] = in->results[1 + s] + offset;
        slice.slot_out[s] = out->results[1 + s] + offset;
    }
    return slice;
}

static bool is_same(double given, double right)
{
    return isnan(right) ? isnan(given) : given == right && !signbit(given) == !signbit(right);
}

static void check_elements(
    const char *text, const struct expression *expression, bool is_float32,
    const struct arrays *before, const struct arrays *after, size_t offset)
{
    for (size_t i = 0; i < COUNT; i++) {
        struct plain_element element = {.gradient = get(before->gradient + offset, is_float32, i)};
        for (uint32_t r = 0; r <= expression->slot_count; r++)
            element.results[r] = get(before->results[r] + offset, is_float32, i);
        plain_run(expression, is_float32, expression->defaults, STEP, &element);
        for (uint32_t r = 0; r <= expression->slot_count; r++) {
            const double given = get(after->results[r] + offset, is_float32, i);
            if (!is_same(given, element.results[r]))
                fail_msg(
                    "result %u of element %zu is %a and should be %a:\n%s", r, i, given,
                    element.results[r], text);
        }
    }
}

static void check_guards(
    const struct expression *expression, bool is_float32, const struct arrays *after, size_t offset)
{
    for (uint32_t r = 0; r <= expression->slot_count; r++) {
        assert_int_equal(after->results[r][offset - 1], 0xa5);
        assert_int_equal(after->results[r][offset + (is_float32 ? 4 : 8) * COUNT], 0xa5);
    }
}

/* By each table: in place when `spare` is false. */
static void check_text(const char *text, enum sumac_dtype dtype, size_t offset, bool spare)
{
    static struct expression expression;
    static struct expression_plan plan;
    static struct arrays before, in, out;
    const bool is_float32 = dtype == SUMAC_FLOAT32;
    const struct expression_loops *loops;
    struct sumac_error error;

    if (expression_read(text, strlen(text), &expression, &error) != SUMAC_OK)
        fail_msg("%s\n%s", error.text, text);
    expression_plan(&expression, dtype, expression.defaults, STEP, &plan);
    fill(is_float32, offset, &before);
    for (uint32_t t = 0; (loops = expression_loops_at(t)) != NULL; t++) {
        in = before;
        memset(&out, 0xa5, sizeof out);
        struct arrays *const after = spare ? &out : &in;
        const struct expression_slice slice = make_slice(dtype, offset, &in, after);

        expression_run_with(loops, &plan, &slice);

        check_elements(text, &expression, is_float32, &before, after, offset);
        check_guards(&expression, is_float32, after, offset);
        if (spare)
            assert_memory_equal(&in, &before, sizeof in);
    }
}

static void check_everywhere(const char *text)
{
    for (size_t offset = GUARD; offset < GUARD + 2; offset++) {
        check_text(text, SUMAC_FLOAT32, offset, false);
        check_text(text, SUMAC_FLOAT32, offset, true);
        check_text(text, SUMAC_FLOAT64, offset, false);
        check_text(text, SUMAC_FLOAT64, offset, true);
    }
}

/* Results that are each other's old values, numbers, the gradient, or the same. */
TEST(results_are_written_when_nothing_reads_what_was_there)
{
    static const char *const texts[] = {
        "value = g",
        "value = 7",
        "value = value",
        "slots: m = 0\nt = value\nvalue = m\nm = t",
        "slots: m = 0, v = 0\nt = value\nvalue = m\nm = v\nv = t",
        "slots: m = 0\nold = m\nm = m * 2 + g\nvalue = value - old",
        "slots: m = 0\nold = m\nm = 1\nvalue = old * g",
        "slots: m = 0\nu = sign(0.9 * m + 0.1 * g)\nvalue = value - u\nm = 0.99 * m + 0.01 * g",
        "slots: m = 0\nt = g + m\nvalue = t\nm = t",
        "slots: m = 0, v = 0\nt = g + m * v\nm = t\nv = t * value\nvalue = t",
        "value = value - g\nvalue = value * 2\nvalue = value + g",
        "slots: m = 0\nvalue = value - m\nm = where(1 < 2, m, g)",
        "slots: m = 0\nold = m\nm = g\nvalue = where(2 < 1, value, old)",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_everywhere(texts[i]);
}

TEST(sums_of_products_are_rounded_twice)
{
    static const char *const texts[] = {
        "value = value + 0.1 * g",
        "value = 0.1 * g + value",
        "value = value - 0.1 * g",
        "value = 0.1 * g - value",
        "value = value + value * g",
        "value = g * value - value",
        "value = value - g * value",
        "value = 0.1 * g + 0.9 * value",
        "value = g * 0.1 - value * 0.9",
        "value = g * value + value * value",
        "value = 3 - g * value",
        "value = g * value - 3",
        "value = 0.1 * g + 3",
        "value = g * 0.1 - 3",
        "value = 3 - 0.1 * g",
        "t = g * value\nvalue = t + t",
        "t = g * value\nvalue = t + value\nvalue = value - t",
        "value = (g * value) * 0.5 + (value * g) * g",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_everywhere(texts[i]);
}

/* "value = 0 * g + …", with the operand wherever the function has an @. */
static void put_operand(const char *function, const char *operand, char *text)
{
    strcpy(text, "value = 0 * g + ");
    for (; *function != '\0'; function++) {
        const char one[2] = {*function, '\0'};
        strcat(text, *function == '@' ? operand : one);
    }
}

TEST(each_function_takes_elements_and_numbers)
{
    static const char *const functions[] = {
        "abs(@)",
        "sign(@)",
        "sqrt(@)",
        "rsqrt(@)",
        "exp(@)",
        "log(@)",
        "tanh(@)",
        "-@",
        "@ + g",
        "g + @",
        "@ - g",
        "g - @",
        "@ * g",
        "@ / g",
        "g / @",
        "min(@, g)",
        "max(g, @)",
        "pow(@, g)",
        "pow(g, @)",
        "max(@, g)",
        "min(g, @)",
        "clip(g, -@, @)",
        "where(g < @, g, 1)",
        "where(@ <= g, 1, g)",
        "where(g == @, value, g)",
        "where(@ != g, 1, 2)",
        "where(g > @, @, g)",
        "where(g >= @, g, @)",
        "where(@ == 3, g, value)"};
    static const char *const operands[] = {"value", "3", "(0 - 2)", "step", "0.5"};

    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        for (size_t o = 0; o < sizeof operands / sizeof operands[0]; o++) {
            char text[200];
            put_operand(functions[f], operands[o], text);
            check_text(text, SUMAC_FLOAT32, GUARD, false);
            check_text(text, SUMAC_FLOAT64, GUARD, false);
        }
    }
}

TEST(whatever_the_text_its_plan_says_the_same)
{
    uint64_t seed = 1;

    for (int i = 0; i < 300; i++) {
        struct text_source source = {.choose = draw, .context = &seed}; /* given */
        text_make(&source);

        check_text(source.text, SUMAC_FLOAT32, GUARD, i % 2 == 0); /* when, then */
        check_text(source.text, SUMAC_FLOAT64, GUARD + 1, i % 4 < 2);
    }
}

/* float16 and bfloat16: float32 arithmetic and slots, rounded once. */
TEST(half_types_are_rounded_once)
{
    static struct expression expression;
    static struct expression_plan plan;
    const char *const text = "slots: m = 0\nm = 0.9 * m + g\nvalue = value - 0.1 * m";
    uint16_t value[COUNT], gradient[COUNT];
    float slot[COUNT];

    assert_int_equal(expression_read(text, strlen(text), &expression, NULL), SUMAC_OK);
    expression_plan(&expression, SUMAC_BFLOAT16, expression.defaults, 1, &plan);
    for (uint32_t i = 0; i < COUNT; i++) { /* given */
        value[i] = bfloat16_of_float32((float)i / 7 - 50);
        gradient[i] = bfloat16_of_float32(3 - (float)i / 100);
        slot[i] = (float)i / 300;
    }
    const struct expression_slice slice = {
        .count = COUNT,
        .value_in = value,
        .value_out = value,
        .gradient = gradient,
        .gradient_dtype = SUMAC_BFLOAT16,
        .slot_in = {slot},
        .slot_out = {slot}};

    expression_run(&plan, &slice); /* when */

    for (uint32_t i = 0; i < COUNT; i++) { /* then */
        const float g = float32_of_bfloat16(bfloat16_of_float32(3 - (float)i / 100));
        const float m = 0.9f * ((float)i / 300) + g;
        const float before = float32_of_bfloat16(bfloat16_of_float32((float)i / 7 - 50));
        assert_number_equal(slot[i], m);
        assert_int_equal(value[i], bfloat16_of_float32(before - 0.1f * m));
    }
}

/* The gradient of several contributions is of float32. */
TEST(half_types_take_a_wide_gradient)
{
    static struct expression expression;
    static struct expression_plan plan;
    const char *const text = "value = value + g";
    uint16_t value[5] = {0, 0x3c00, 0x4000, 0x4200, 0x4400}; /* 0 to 4 */
    const float gradient[5] = {1, 1, 1, 1, 1.001953125f};

    assert_int_equal(expression_read(text, strlen(text), &expression, NULL), SUMAC_OK);
    expression_plan(&expression, SUMAC_FLOAT16, expression.defaults, 1, &plan);
    const struct expression_slice slice = {
        .count = 5,
        .value_in = value,
        .value_out = value,
        .gradient = gradient,
        .gradient_dtype = SUMAC_FLOAT32};

    expression_run(&plan, &slice);

    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(value[i], float16_of_float32((float)i + gradient[i]));
}

/* ---- registers */

#define ALIVE_MAX 40u
#define TEMPORARIES 30u

/* A text with `count` numbers alive at once: temporaries, then operands that wait for the rest. */
static void say_alive(uint32_t count, char *text, size_t text_bytes)
{
    const uint32_t named = count < TEMPORARIES ? count : TEMPORARIES;
    size_t used = (size_t)snprintf(text, text_bytes, "a0 = g\n");

    for (uint32_t i = 1; i < named; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "a%u = a%u + g\n", i, i - 1);
    used += (size_t)snprintf(text + used, text_bytes - used, "value = ");
    for (uint32_t i = named; i < count; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "abs(g - %u) - (", i);
    used += (size_t)snprintf(text + used, text_bytes - used, "value");
    for (uint32_t i = named; i-- > 0;)
        used += (size_t)snprintf(text + used, text_bytes - used, " - a%u", i);
    for (uint32_t i = named; i < count; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, ")");
    assert_true(used < text_bytes);
}

static uint16_t rounded(enum sumac_dtype dtype, float number)
{
    return dtype == SUMAC_FLOAT16 ? float16_of_float32(number) : bfloat16_of_float32(number);
}

static float widened(enum sumac_dtype dtype, uint16_t number)
{
    return dtype == SUMAC_FLOAT16 ? float32_of_float16(number) : float32_of_bfloat16(number);
}

/* Returns the number of registers. */
static uint32_t check_half(const char *text, enum sumac_dtype dtype)
{
    static struct expression expression;
    static struct expression_plan plan;
    uint16_t value[COUNT], gradient[COUNT];
    struct plain_element elements[COUNT];
    struct sumac_error error;

    if (expression_read(text, strlen(text), &expression, &error) != SUMAC_OK)
        fail_msg("%s\n%s", error.text, text);
    expression_plan(&expression, dtype, expression.defaults, STEP, &plan);
    for (uint32_t i = 0; i < COUNT; i++) {
        value[i] = rounded(dtype, (float)i / 8 - 50);
        gradient[i] = rounded(dtype, 3 - (float)i / 128);
        elements[i] = (struct plain_element){
            .gradient = (double)widened(dtype, gradient[i]),
            .results = {(double)widened(dtype, value[i])}};
        plain_run(&expression, true, expression.defaults, STEP, &elements[i]);
    }
    const struct expression_slice slice = {
        .count = COUNT,
        .value_in = value,
        .value_out = value,
        .gradient = gradient,
        .gradient_dtype = dtype};
    expression_run(&plan, &slice);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(value[i], rounded(dtype, (float)elements[i].results[0]));
    return plan.register_count;
}

/* Half types need two tiles more: around 16 and 32, where a tile becomes half as large, all numbers
 * of registers are tried. */
TEST(however_many_registers_there_are_the_tiles_fit)
{
    bool tried[2 * ALIVE_MAX] = {false};
    char text[4000];

    for (uint32_t alive = 1; alive <= ALIVE_MAX; alive++) {
        say_alive(alive, text, sizeof text);
        check_text(text, SUMAC_FLOAT32, GUARD, false);
        check_text(text, SUMAC_FLOAT64, GUARD, false);
        tried[check_half(text, SUMAC_BFLOAT16)] = true;
        tried[check_half(text, SUMAC_FLOAT16)] = true;
    }
    for (uint32_t registers = 12; registers <= 18; registers++) {
        assert_true(tried[registers]);
        assert_true(tried[registers + 16]);
    }
}
