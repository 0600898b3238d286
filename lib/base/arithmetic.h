/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.h -- exp, log, pow and tanh without libm, whose last bit differs between machines, and
 * without a branch, so that loops over them vectorise. In float64; float32 is rounded from it.
 *
 * Within 2 units in the last place (tests/unit/expression_arithmetic.c). Only operations that IEEE
 * 754 rounds in one way are used, in the order that is written, so every compiler gives the same
 * bits. What is special is as in C's Annex F, but for the sign of a NaN.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A loop that calls is not vectorised. */
#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t bits_of_float64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

INLINE double float64_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#define LOW_BITS 0xffffffffu
/* x without its low half: products of two such are exact. */
INLINE double high_of(double x)
{
    return float64_of_bits(bits_of_float64(x) & ~(uint64_t)LOW_BITS);
}

/* Added to a number below 2^51, it leaves that number rounded to an integer in the low bits. */
#define ROUNDER 0x1.8p52

INLINE double round_to_integer(double x) { return (x + ROUNDER) - ROUNDER; }

/* y·2^k for an integer k of at most 2100 either way: in two steps, so that a subnormal result is
 * rounded once. */
INLINE double scale(double y, double k)
{
    const double half = round_to_integer(k * 0.5);
    const double rest = k - half;
    const uint64_t half_bits = (bits_of_float64(half + ROUNDER) + 1023) << 52;
    const uint64_t rest_bits = (bits_of_float64(rest + ROUNDER) + 1023) << 52;

    return y * float64_of_bits(half_bits) * float64_of_bits(rest_bits);
}

/* fdlibm's e_exp.c (Sun Microsystems, 1993): x = k·ln 2 + r, exp(r) = 1 + 2r/(2 − c) …, c a
 * minimax polynomial. */
INLINE double near_exp(double x)
{
    const double least = -746, most = 710; /* 0 and infinity from there on */
    const double above = x < least ? least : x;
    const double within = above > most ? most : above;
    const double k = round_to_integer(within * 1.44269504088896338700e+00);
    const double high = within - k * 6.93147180369123816490e-01;
    const double low = k * 1.90821492927058770002e-10;
    const double r = high - low;
    const double t = r * r;
    const double c =
        r - t * (1.66666666666666019037e-01 +
                 t * (-2.77777777770155933842e-03 +
                      t * (6.61375632143793436117e-05 +
                           t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));

    return scale(1 - ((low - (r * c) / (2 - c)) - high), k);
}

/* x = 2^k·m with sqrt(1/2) <= m < sqrt(2), of a positive number. */
INLINE double take_exponent(double x, double *k)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    const double subnormal = x < 0x1p-1022 ? 54 : 0;
    const double normal = x < 0x1p-1022 ? x * 0x1p54 : x;
    const uint64_t shifted = bits_of_float64(normal) - sqrt_half + 0x3ff0000000000000u;
    const double biased = float64_of_bits((shifted >> 52) | 0x4330000000000000u) - 0x1p52;

    *k = biased - 1023 - subnormal;
    return float64_of_bits((shifted & 0x000fffffffffffffu) + sqrt_half);
}

/* fdlibm's e_log.c: s = f / (2 + f), ln(1 + f) = f - f²/2 + s (f²/2 + R(s²)). */
INLINE double near_log(double x)
{
    double k;
    const double f = take_exponent(x, &k) - 1;
    const double s = f / (2 + f);
    const double z = s * s;
    const double r =
        z * (6.666666666666735130e-01 +
             z * (3.999999999940941908e-01 +
                  z * (2.857142874366239149e-01 +
                       z * (2.222219843214978396e-01 +
                            z * (1.818357216161805012e-01 +
                                 z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01))))));
    const double half_square = 0.5 * f * f;
    const double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const double finite =
        k * ln2_high - ((half_square - (s * (half_square + r) + k * ln2_low)) - f);
    const double beyond = x > 0 ? x : (double)NAN; /* infinity, or no number at all */
    const double positive = x > 0 && x < HUGE_VAL ? finite : beyond;

    return x == 0 ? -HUGE_VAL : positive;
}

/* Cephes' tanh.c (Moshier, 1984): a rational function near 0, and 1 − 2/(exp(2x) + 1) from 5/8 on.
 */
INLINE double near_tanh(double x)
{
    const double magnitude = fabs(x);
    const double z = x * x;
    const double p = -1.61468768441708447952e+03 +
                     z * (-9.92877231001918586564e+01 + z * -9.64399179425052238628e-01);
    const double q = 4.84406305325125486048e+03 +
                     z * (2.23548839060100448583e+03 + z * (1.12811678491632931402e+02 + z));
    const double small = magnitude + magnitude * z * (p / q);
    const double large = 1 - 2 / (near_exp(2 * magnitude) + 1);
    const double result = magnitude < 0.625 ? small : large;
    const uint64_t sign = (uint64_t)1 << 63;

    return float64_of_bits(bits_of_float64(result) | (bits_of_float64(x) & sign));
}

/* `a` where `condition` is 1, and `b` where it is 0: by their bits, or a compiler may make a branch
 * of what it takes to be costly. */
INLINE double pick(int condition, double a, double b)
{
    const uint64_t mask = (uint64_t)0 - (uint64_t)condition;

    return float64_of_bits((bits_of_float64(a) & mask) | (bits_of_float64(b) & ~mask));
}

/* 1: an integer. One of 2^52 and above always is. */
INLINE int is_whole(double y)
{
    const double magnitude = fabs(y);
    const double bounded = pick(magnitude < 0x1p52, magnitude, 0);

    return (bounded + 0x1p52) - 0x1p52 == bounded;
}

/* What pow is beside |x|^y: signs, 0, infinity, and no numbers. `finite` is |x|^y where |x| is
 * neither 0 nor infinity. */
INLINE double special_pow(double x, double y, double finite)
{
    const double base = fabs(x);
    const double nothing = pick(y < 0, HUGE_VAL, 0), everything = pick(y < 0, 0, HUGE_VAL);
    const double bounded = pick(base == HUGE_VAL, everything, finite);
    const double magnitude = pick(base == 0, nothing, bounded);
    const int is_negative = (int)(bits_of_float64(x) >> 63);
    const int is_integer = is_whole(y);
    const int is_odd = is_integer & !is_whole(0.5 * y);
    const double power = pick(is_negative & is_odd, -magnitude, magnitude);
    const int is_root = (x < 0) & (base < HUGE_VAL) & !is_integer;
    const double real = pick(is_root, (double)NAN, power);
    const double number = pick((x != x) | (y != y), x + y, real);

    return pick((y == 0) | (x == 1), 1, number);
}

/* Beyond 2^66 every base but 1 gives 0 or infinity. */
INLINE double bound_exponent(double y)
{
    const double above = y < -0x1p66 ? -0x1p66 : y;

    return above > 0x1p66 ? 0x1p66 : above;
}

/* Enough for float32: its error is that of y·ln|x|, 2^-53·104 at most. */
INLINE double near_pow_float32(double x, double y)
{
    const double base = fabs(x);

    return special_pow(x, y, near_exp(bound_exponent(y) * near_log(base)));
}

/* fdlibm's e_pow.c: log2 of a positive number with more than 70 bits, in a half that is returned
 * and a rest. */
INLINE double near_log2(double x, double *log2_low)
{
    double n;

    /* m is in [sqrt(1/2), sqrt(2)): log2(m) around 1, or, of what fdlibm has doubled, around 3/2 */
    const double taken = take_exponent(x, &n);
    const int low_side = taken < 0.86602540378443864676;
    const double m = low_side ? 2 * taken : taken;
    const double k = low_side ? n - 1 : n;
    const int around_three_halves = m > 1.22474487139158904910;
    const double centre = around_three_halves ? 1.5 : 1;
    const double log_high = around_three_halves ? 5.84962487220764160156e-01 : 0;
    const double log_low = around_three_halves ? 1.35003920212974897128e-08 : 0;

    /* s = (m − centre)/(m + centre), as s_high + s_low */
    const double u = m - centre;
    const double v = 1 / (m + centre);
    const double s = u * v;
    const double s_high = high_of(s);
    const double sum_high = high_of(m + centre);
    const double sum_low = m - (sum_high - centre);
    const double s_low = v * ((u - s_high * sum_high) - s_high * sum_low);
    /* ln m = 2s + 2/3·s³ + … */
    const double square = s * s;
    const double r =
        square * square *
            (5.99999999999994648725e-01 +
             square * (4.28571428578550184252e-01 +
                       square * (3.33333329818377432918e-01 +
                                 square * (2.72728123808534006489e-01 +
                                           square * (2.30660745775561754067e-01 +
                                                     square * 2.06975017800338417784e-01))))) +
        s_low * (s_high + s);
    const double square_high = s_high * s_high;
    const double t_high = high_of(3 + square_high + r);
    const double t_low = r - ((t_high - 3) - square_high);
    const double product = s_high * t_high;
    const double product_low = s_low * t_high + t_low * s;
    const double p_high = high_of(product + product_low);
    const double p_low = product_low - (p_high - product);
    const double z_high = 9.61796700954437255859e-01 * p_high; /* times 2/(3 ln 2) */
    const double z_low =
        -7.02846165095275826516e-09 * p_high + p_low * 9.61796693925975554329e-01 + log_low;
    const double high = high_of(((z_high + z_low) + log_high) + k);

    *log2_low = z_low - (((high - k) - log_high) - z_high);
    return high;
}

/* As in e_pow.c: y·log2|x| = n + y' in two halves, and 2^n·2^y'. */
INLINE double near_pow(double x, double y)
{
    const double exponent = bound_exponent(y);
    double log2_low;
    const double log2_high = near_log2(fabs(x), &log2_low);

    const double y_high = high_of(exponent);
    const double low = (exponent - y_high) * log2_high + exponent * log2_low;
    const double high = y_high * log2_high;
    const double whole = low + high;
    const double most = 1100;
    const int overflows = whole > most, underflows = whole < -most;
    const double h = pick(overflows, most, pick(underflows, -most, high));
    const double l = pick(overflows | underflows, 0, low);
    const double power = round_to_integer(l + h);
    /* 2^(h + l − power) */
    const double rest = h - power;
    const double e_high = high_of(l + rest);
    const double e_low =
        (l - (e_high - rest)) * 6.93147180559945286227e-01 + e_high * -1.90465429995776804525e-09;
    const double e_product = e_high * 6.93147182464599609375e-01;
    const double z = e_product + e_low;
    const double w = e_low - (z - e_product);
    const double t = z * z;
    const double c =
        z - t * (1.66666666666666019037e-01 +
                 t * (-2.77777777770155933842e-03 +
                      t * (6.61375632143793436117e-05 +
                           t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    const double residue = (z * c) / (c - 2) - (w + z * w);

    return special_pow(x, y, scale(1 - (residue - z), power));
}

/* Of a NaN, and of two, the first one. Of equal ones the second. */
#define NEAR_MIN(a, b) ((a) < (b) ? (a) : (a) != (a) ? (a) : (b))
#define NEAR_MAX(a, b) ((a) > (b) ? (a) : (a) != (a) ? (a) : (b))
/* A zero, and a NaN, is its own sign. */
#define NEAR_SIGN(a) ((a) > 0 ? 1 : (a) < 0 ? -1 : (a))
