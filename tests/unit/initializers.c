/* SPDX-License-Identifier: Apache-2.0 */
/* initializers.c (test) -- random numbers against published vectors and libm, and values that no
 * split changes. */
#include <math.h>

#include "unit.h"
#include "arithmetic.h"
#include "half.h"
#include "random.h"
#include "update.h"

static wire_initializer initializer(int kind, double a, double b, uint64_t seed)
{
    wire_initializer made = WIRE_INITIALIZER_INIT;

    made.kind = (Sumac__V1__Initializer__Kind)kind;
    made.a = a;
    made.b = b;
    made.seed = seed;
    return made;
}

/* The known-answer tests of Random123 (Salmon et al., kat_vectors: philox4x32 10). */
TEST(philox_gives_the_published_answers)
{
    static const struct {
        struct random_block counter;
        uint32_t key[2];
        struct random_block answer;
    } known[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {0xffffffff, 0xffffffff},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xa4093822, 0x299f31d0},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct random_block block =
            random_philox(known[i].counter, known[i].key[0], known[i].key[1]);

        assert_memory_equal(&block, &known[i].answer, sizeof block);
    }
}

/* Two units in the last place of the result, and of 1 where the result is near 0. */
static void assert_near(double value, double expected)
{
    const double bound = 2 * 0x1p-52 * fmax(fabs(expected), 0x1p-3);

    if (!(fabs(value - expected) <= bound))
        fail_msg("%.17g is not %.17g", value, expected);
}

TEST(logarithm_and_turn_are_those_of_libm)
{
    for (uint64_t i = 0; i < 100000; i++) {
        double u[2], cosine, sine;
        random_uniform_pair(42, i, u);

        assert_near(near_log(1 - u[0]), log(1 - u[0]));
        random_turn(u[1], &cosine, &sine);

        const double angle = 2 * acos(-1) * u[1];
        /* The angle itself is rounded: half a unit of up to 2π. */
        assert_true(fabs(cosine - cos(angle)) < 1e-15 && fabs(sine - sin(angle)) < 1e-15);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        double u[2], normal[2];
        random_uniform_pair(42, i, u);
        random_normal_pair(42, i, normal);
        const double radius = sqrt(-2 * log(1 - u[0])), angle = 2 * acos(-1) * u[1];
        assert_true(fabs(normal[0] - radius * cos(angle)) < 1e-13); /* a radius is below 9 */
        assert_true(fabs(normal[1] - radius * sin(angle)) < 1e-13);
    }
    assert_near(near_log(1), 0);
    assert_near(near_log(0x1p-53), log(0x1p-53));
}

/* A variable may have more than 2^33 elements: both words of a pair's number count. */
TEST(pairs_2_to_the_32_apart_have_values_of_their_own)
{
    double near[2], far[2];

    random_uniform_pair(42, 7, near);
    random_uniform_pair(42, 7 + (UINT64_C(1) << 32), far);

    assert_memory_not_equal(near, far, sizeof near);
}

static const enum sumac_dtype float_types[] = {
    SUMAC_FLOAT16, SUMAC_BFLOAT16, SUMAC_FLOAT32, SUMAC_FLOAT64};

/* Runs of every length from 1 to 400 that begin anywhere give what one run gives. */
TEST(every_split_gives_the_same_values)
{
    enum { ELEMENTS = 1500 };
    static const int kinds[] = {WIRE_INITIALIZER_UNIFORM, WIRE_INITIALIZER_NORMAL};
    for (size_t k = 0; k < 2; k++) {
        for (size_t t = 0; t < 4; t++) {
            const size_t bytes = sumac_dtype_bytes(float_types[t]);
            const wire_initializer made = initializer(kinds[k], -1, 2, 0x123456789abcdef0u);
            uint8_t whole[8 * ELEMENTS], split[8 * ELEMENTS];
            initializer_fill(&made, float_types[t], 0, ELEMENTS, whole);

            uint64_t first = 0;
            for (uint64_t length = 1; first < ELEMENTS; length = length * 7 % 401) {
                const uint64_t count = length < ELEMENTS - first ? length : ELEMENTS - first;
                initializer_fill(&made, float_types[t], first, count, split + first * bytes);
                first += count;
            }

            assert_memory_equal(split, whole, ELEMENTS * bytes);
        }
    }
}

TEST(an_element_beyond_two_to_the_33_has_its_own_value)
{
    const wire_initializer made = initializer(WIRE_INITIALIZER_UNIFORM, 0, 1, 1);
    double low, high;

    initializer_fill(&made, SUMAC_FLOAT64, 4, 1, &low);
    initializer_fill(&made, SUMAC_FLOAT64, (UINT64_C(1) << 34) + 4, 1, &high);

    assert_true(low != high);
}

TEST(another_seed_gives_other_values)
{
    const wire_initializer one = initializer(WIRE_INITIALIZER_NORMAL, 0, 1, 1);
    const wire_initializer other =
        initializer(WIRE_INITIALIZER_NORMAL, 0, 1, UINT64_C(1) << 40 | 1);
    double a[4], b[4];

    initializer_fill(&one, SUMAC_FLOAT64, 0, 4, a);
    initializer_fill(&other, SUMAC_FLOAT64, 0, 4, b);

    for (size_t i = 0; i < 4; i++)
        assert_true(a[i] != b[i]);
}

/* Bounds: five standard errors of n = 200000 independent draws. */
TEST(uniform_and_normal_have_their_moments)
{
    enum { N = 200000 };
    double *const values = malloc(N * sizeof *values);
    assert_non_null(values);
    const wire_initializer uniform = initializer(WIRE_INITIALIZER_UNIFORM, -1, 3, 7);
    const wire_initializer normal = initializer(WIRE_INITIALIZER_NORMAL, 10, 2, 7);

    initializer_fill(&uniform, SUMAC_FLOAT64, 0, N, values);
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        assert_true(values[i] >= -1 && values[i] < 3);
        sum += values[i];
    }
    assert_true(fabs(sum / N - 1) < 5 * (4 / sqrt(12)) / sqrt(N));

    initializer_fill(&normal, SUMAC_FLOAT64, 0, N, values);
    double square = 0, lag = 0;
    sum = 0;
    for (size_t i = 0; i < N; i++) {
        sum += values[i];
        square += (values[i] - 10) * (values[i] - 10);
        lag += i == 0 ? 0 : (values[i] - 10) * (values[i - 1] - 10);
    }
    assert_true(fabs(sum / N - 10) < 5 * 2 / sqrt(N));
    assert_true(fabs(square / N - 4) < 5 * 4 * sqrt(2) / sqrt(N));
    assert_true(fabs(lag / N) < 5 * 4 / sqrt(N));
    free(values);
}

/* float16 has 1024 steps between 1 and 2: one draw in 2048 would round up to 2. */
TEST(uniform_never_reaches_its_end_in_a_narrow_type)
{
    enum { N = 100000 };
    uint16_t *const halves = malloc(N * sizeof *halves);
    assert_non_null(halves);
    const wire_initializer made = initializer(WIRE_INITIALIZER_UNIFORM, 1, 2, 3);

    initializer_fill(&made, SUMAC_FLOAT16, 0, N, halves);

    for (size_t i = 0; i < N; i++) {
        const float value = float32_of_float16(halves[i]);
        assert_true(value >= 1 && value < 2);
    }
    free(halves);
}

TEST(ones_and_constants_are_of_the_variables_type)
{
    const wire_initializer ones = initializer(WIRE_INITIALIZER_ONES, 0, 0, 0);
    const wire_initializer minus_three = initializer(WIRE_INITIALIZER_CONSTANT, -3, 0, 0);
    bool bools[3] = {false, false, false};
    int64_t longs[600];
    uint16_t halves[2];

    initializer_fill(&ones, SUMAC_BOOL, 0, 3, bools);
    initializer_fill(&minus_three, SUMAC_INT64, 17, 600, longs);
    initializer_fill(&minus_three, SUMAC_BFLOAT16, 0, 2, halves);

    assert_true(bools[0] && bools[1] && bools[2]);
    for (size_t i = 0; i < 600; i++)
        assert_int_equal(longs[i], -3);
    assert_int_equal(halves[1], 0xc040);
}

/* The first byte of an element has the number, and no byte beyond the last element is written. */
TEST(a_constant_is_an_integer_of_each_width)
{
    const wire_initializer seven = initializer(WIRE_INITIALIZER_CONSTANT, 7, 0, 0);

    for (int dtype = SUMAC_INT8; dtype <= SUMAC_UINT64; dtype++) {
        const size_t bytes = sumac_dtype_bytes((enum sumac_dtype)dtype);
        uint8_t out[3 * sizeof(uint64_t)];
        memset(out, 0xee, sizeof out);

        initializer_fill(&seven, (enum sumac_dtype)dtype, 0, 2, out);

        for (size_t i = 0; i < sizeof out; i++)
            assert_int_equal(out[i], i >= 2 * bytes ? 0xee : (i % bytes == 0 ? 7 : 0));
    }
}

TEST(assigned_and_zeros_fill_with_zeros)
{
    const wire_initializer zeros = initializer(WIRE_INITIALIZER_ZEROS, 5, 5, 5);
    const wire_initializer assigned = initializer(WIRE_INITIALIZER_ASSIGNED, 5, 5, 5);
    float values[2] = {1, 1};

    initializer_fill(&zeros, SUMAC_FLOAT32, 0, 1, &values[0]);
    initializer_fill(&assigned, SUMAC_FLOAT32, 0, 1, &values[1]);

    assert_true(values[0] == 0 && values[1] == 0);
}

TEST(what_does_not_fit_is_refused)
{
    static const struct {
        int kind;
        double a, b;
        enum sumac_dtype dtype;
        bool fine;
    } cases[] = {
        {WIRE_INITIALIZER_CONSTANT, 127, 0, SUMAC_INT8, true},
        {WIRE_INITIALIZER_CONSTANT, 128, 0, SUMAC_INT8, false},
        {WIRE_INITIALIZER_CONSTANT, -128, 0, SUMAC_INT8, true},
        {WIRE_INITIALIZER_CONSTANT, -1, 0, SUMAC_UINT64, false},
        {WIRE_INITIALIZER_CONSTANT, 0x1p63, 0, SUMAC_UINT64, true},
        {WIRE_INITIALIZER_CONSTANT, 0x1p64, 0, SUMAC_UINT64, false},
        {WIRE_INITIALIZER_CONSTANT, -0x1p63, 0, SUMAC_INT64, true},
        {WIRE_INITIALIZER_CONSTANT, 0x1p63, 0, SUMAC_INT64, false},
        {WIRE_INITIALIZER_CONSTANT, 2.5, 0, SUMAC_INT32, false},
        {WIRE_INITIALIZER_CONSTANT, 2.5, 0, SUMAC_FLOAT16, true},
        {WIRE_INITIALIZER_CONSTANT, 65504, 0, SUMAC_FLOAT16, true},
        {WIRE_INITIALIZER_CONSTANT, 65536, 0, SUMAC_FLOAT16, false},
        {WIRE_INITIALIZER_CONSTANT, 1e39, 0, SUMAC_FLOAT32, false},
        {WIRE_INITIALIZER_CONSTANT, 1e39, 0, SUMAC_FLOAT64, true},
        {WIRE_INITIALIZER_CONSTANT, (double)NAN, 0, SUMAC_FLOAT32, false},
        {WIRE_INITIALIZER_CONSTANT, 2, 0, SUMAC_BOOL, false},
        {WIRE_INITIALIZER_CONSTANT, 1, 0, SUMAC_BOOL, true},
        {WIRE_INITIALIZER_UNIFORM, 0, 1, SUMAC_INT32, false},
        {WIRE_INITIALIZER_UNIFORM, 1, 0, SUMAC_FLOAT32, false},
        {WIRE_INITIALIZER_UNIFORM, 1, 1, SUMAC_FLOAT32, false},
        {WIRE_INITIALIZER_UNIFORM, -1.7e308, 1.7e308, SUMAC_FLOAT64, false},
        {WIRE_INITIALIZER_UNIFORM, 0, (double)INFINITY, SUMAC_FLOAT64, false},
        {WIRE_INITIALIZER_NORMAL, 0, -1, SUMAC_FLOAT32, false},
        {WIRE_INITIALIZER_NORMAL, 0, 0, SUMAC_FLOAT32, false},
        {WIRE_INITIALIZER_NORMAL, 0, 1, SUMAC_BOOL, false},
        {WIRE_INITIALIZER_NORMAL, 0, 1, SUMAC_BFLOAT16, true},
        {99, 0, 0, SUMAC_FLOAT32, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const wire_initializer made = initializer(cases[i].kind, cases[i].a, cases[i].b, 0);
        struct sumac_error error = {0};

        const enum sumac_status status = initializer_check(&made, cases[i].dtype, &error);

        if ((status == SUMAC_OK) != cases[i].fine)
            fail_msg("case %zu: %s", i, error.text);
        assert_int_equal(status, cases[i].fine ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
    }
}
