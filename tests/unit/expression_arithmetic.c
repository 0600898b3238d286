/* SPDX-License-Identifier: Apache-2.0 */
/* expression_arithmetic.c (test) -- exp, log, pow and tanh are within 2 units in the last place of
 * what they should be, and special where C's are. What they should be is libm's long double,
 * rounded nowhere. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "unit.h"
#include "arithmetic.h"
#include "assert_number.h"

#define ULPS_MAX 2
#define FLOAT32_STRIDE 1021u /* a prime: each bit pattern that is a multiple of it */
#define FLOAT64_SAMPLES 1000000u

/* A bit pattern that nobody could have chosen (Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA'14). */
static uint64_t draw_bits(uint64_t number)
{
    uint64_t z = number * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double between(uint64_t number, double low, double high)
{
    return low + (high - low) * (double)(draw_bits(number) >> 11) * 0x1p-53;
}

/* How many units in the last place of a type with `digits` bits, whose least exponent is `least`,
 * `given` is from `right`. */
static long double ulps(double given, long double right, int digits, int least)
{
    int exponent;

    (void)frexpl(right, &exponent);
    if (exponent < least)
        exponent = least;
    return fabsl(((long double)given - right) / ldexpl(1, exponent - digits));
}

static void
check(const char *function, double x, double y, double given, long double right, int digits)
{
    const bool is_float = digits == FLT_MANT_DIG;
    const double most = is_float ? (double)FLT_MAX : DBL_MAX;
    const int least = is_float ? FLT_MIN_EXP : DBL_MIN_EXP;

    if (isnan(right)) {
        if (!isnan(given))
            fail_msg("%s of %a, %a is %a and should be a NaN", function, x, y, given);
    } else if (fabsl(right) > (long double)most) {
        /* the largest finite number, or infinity, of that sign */
        if (!(fabs(given) >= most * (1 - 0x1p-22) && (given > 0) == (right > 0)))
            fail_msg("%s of %a, %a is %a and should be %La", function, x, y, given, right);
    } else if (!(ulps(given, right, digits, least) < ULPS_MAX)) {
        fail_msg(
            "%s of %a, %a is %a and should be %La: %.3Lf units in the last place", function, x, y,
            given, right, ulps(given, right, digits, least));
    }
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(float32_functions_are_near)
{
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += FLOAT32_STRIDE) { /* given */
        const double x = (double)float_of((uint32_t)bits);

        const float e = (float)near_exp(x), l = (float)near_log(x),
                    t = (float)near_tanh(x); /* when */

        check("exp", x, 0, (double)e, expl((long double)x), FLT_MANT_DIG); /* then */
        check("log", x, 0, (double)l, logl((long double)x), FLT_MANT_DIG);
        check("tanh", x, 0, (double)t, tanhl((long double)x), FLT_MANT_DIG);
    }
}

TEST(float32_powers_are_near)
{
    for (uint64_t i = 0; i < FLOAT64_SAMPLES; i++) {
        /* given: any base, with any exponent or with one that keeps the power within the type */
        const double x = (double)float_of((uint32_t)draw_bits(2 * i));
        const double any = (double)float_of((uint32_t)draw_bits(2 * i + 1));
        const double within = between(i, -90, 90) / fabs((double)logf(fabsf((float)x)));
        const double y = i % 4 == 0 ? any : (double)(float)within;
        const double base = i % 2 == 0 ? x : fabs(x);

        const float power = (float)near_pow_float32(base, y); /* when */

        check("pow", base, y, (double)power, powl((long double)base, (long double)y), FLT_MANT_DIG);
    }
}

TEST(float64_functions_are_near)
{
    for (uint64_t i = 0; i < FLOAT64_SAMPLES; i++) { /* given: any number, and a common one */
        const double any = float64_of_bits(draw_bits(i));
        const double exponent = between(i, -750, 715), small = between(i, -3, 3);
        const double positive = fabs(any), near_one = between(i, 0.5, 2);

        check("exp", any, 0, near_exp(any), expl((long double)any), DBL_MANT_DIG); /* when, then */
        check("exp", exponent, 0, near_exp(exponent), expl((long double)exponent), DBL_MANT_DIG);
        check("exp", small, 0, near_exp(small), expl((long double)small), DBL_MANT_DIG);
        check("log", positive, 0, near_log(positive), logl((long double)positive), DBL_MANT_DIG);
        check("log", near_one, 0, near_log(near_one), logl((long double)near_one), DBL_MANT_DIG);
        check("tanh", any, 0, near_tanh(any), tanhl((long double)any), DBL_MANT_DIG);
        check("tanh", small, 0, near_tanh(small), tanhl((long double)small), DBL_MANT_DIG);
    }
}

TEST(float64_powers_are_near)
{
    for (uint64_t i = 0; i < FLOAT64_SAMPLES; i++) { /* given */
        const double x = float64_of_bits(draw_bits(2 * i) & ~((uint64_t)1 << 63));
        const double any = float64_of_bits(draw_bits(2 * i + 1));
        const double within = between(i, -745, 710) / fabs(log(x));
        const double beta = between(i, 0.5, 1), steps = (double)(1 + draw_bits(i) % 100000);
        const double near_one = 1 + between(i, -0x1p-20, 0x1p-20), large = between(i, -1e8, 1e8);

        check(
            "pow", x, any, near_pow(x, any), powl((long double)x, (long double)any), DBL_MANT_DIG);
        check(
            "pow", x, within, near_pow(x, within), powl((long double)x, (long double)within),
            DBL_MANT_DIG); /* when, then */
        check(
            "pow", beta, steps, near_pow(beta, steps), powl((long double)beta, (long double)steps),
            DBL_MANT_DIG);
        check(
            "pow", near_one, large, near_pow(near_one, large),
            powl((long double)near_one, (long double)large), DBL_MANT_DIG);
    }
}

static const double specials[] = {
    0.0,        -0.0,      1,        -1,        2,           -2,       0.5,    -0.5,   3,
    -3,         0x1p52,    0x1p53,   -0x1p53,   0x1p53 - 1,  1e300,    -1e300, 1e-300, 0x1p-1074,
    -0x1p-1074, 0x1p-1022, HUGE_VAL, -HUGE_VAL, (double)NAN, 0x1p-149, 1.5,    -1.5,   1024,
};
#define SPECIALS (sizeof specials / sizeof specials[0])

/* The same number, with its sign; of a NaN, that it is one. */
static void assert_special(const char *function, double x, double y, double given, double right)
{
    const bool same =
        isnan(right) ? isnan(given) : given == right && !signbit(given) == !signbit(right);

    if (!same)
        fail_msg("%s of %a, %a is %a and should be %a", function, x, y, given, right);
}

/* Signs, zeros, infinities, NaNs and subnormal numbers are as C's Annex F has them. */
TEST(special_values_are_those_of_annex_f)
{
    for (size_t i = 0; i < SPECIALS; i++) {
        const double x = specials[i];
        const bool exact = x == 0 || isinf(x) || isnan(x);
        if (exact) {
            assert_special("exp", x, 0, near_exp(x), exp(x));
            assert_special("tanh", x, 0, near_tanh(x), tanh(x));
        }
        if (exact || x < 0 || x == 1)
            assert_special("log", x, 0, near_log(x), log(x));
        for (size_t j = 0; j < SPECIALS; j++) {
            const double y = specials[j], right = pow(x, y);
            if (right == 0 || isinf(right) || isnan(right) || fabs(right) == 1) {
                assert_special("pow", x, y, near_pow(x, y), right);
                assert_special(
                    "pow of float32", x, y, (double)(float)near_pow_float32(x, y),
                    (double)(float)right);
            }
            check("pow", x, y, near_pow(x, y), powl((long double)x, (long double)y), DBL_MANT_DIG);
        }
    }
}

/* Of a NaN min, max and sign are one, and a zero is its own sign. */
TEST(comparisons_keep_what_is_no_number)
{
    const double nan = (double)NAN;

    assert_true(isnan(NEAR_MIN(nan, 1.0)) && isnan(NEAR_MIN(1.0, nan)));
    assert_true(isnan(NEAR_MAX(nan, 1.0)) && isnan(NEAR_MAX(1.0, nan)));
    assert_true(isnan(NEAR_SIGN(nan)));
    assert_number_equal(NEAR_SIGN(-3.0), -1);
    assert_true(signbit(NEAR_SIGN(-0.0)));
    assert_number_equal(NEAR_MIN(1.0, -2.0), -2);
    assert_number_equal(NEAR_MAX(1.0, -2.0), 1);
}
