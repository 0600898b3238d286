/* SPDX-License-Identifier: Apache-2.0 */
/* power.h -- x^y for ftrl's rule, in plain float64 arithmetic: libm's last bit differs between
 * processors.
 *
 * x ≥ 0, y ≥ 0; x^0 is 1, 0^y is 0 otherwise, of an infinity or a NaN likewise itself. Where x^y is
 * between 2^-64 and 2^64 it is right to 2^-46 of it.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* What a function is; of a GPU another thing (worker/cuda/updates.cu). */
#ifndef POWER_LEAF
#define POWER_LEAF static inline
#endif

POWER_LEAF double power_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* fdlibm's e_log.c (Sun Microsystems, 1993), for x that is positive, finite and normal: x = 2^k (1
 * + f), sqrt(1/2) <= 1 + f < sqrt(2), s = f / (2 + f), ln(1 + f) = f - f²/2 + s (f²/2 + R(s²)). */
POWER_LEAF double power_log2(double x)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    const uint64_t shifted = bits - sqrt_half + 0x3ff0000000000000u;
    const double k = (double)((int64_t)(shifted >> 52) - 1023);
    const double f = power_of_bits((shifted & 0x000fffffffffffffu) + sqrt_half) - 1;
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
    return k + (f - (half_square - s * (half_square + r))) * 1.44269504088896340736;
}

/* 2^t, |t| < 1000: 2^n e^(ln2·r), |r| <= 1/2, by its series: 1, 1/2!, 1/3!, … */
POWER_LEAF double power_exp2(double t)
{
    const double n = floor(t + 0.5);
    const double r = (t - n) * 6.93147180559945309417e-01;
    const double high =
        2.48015873015873015658e-05 +
        r * (2.75573192239858925110e-06 +
             r * (2.75573192239858882758e-07 +
                  r * (2.50521083854417202239e-08 +
                       r * (2.08767569878681001866e-09 +
                            r * (1.60590438368216133409e-10 + r * 1.14707455977297245073e-11)))));
    const double low = 0.5 + r * (1.66666666666666657415e-01 +
                                  r * (4.16666666666666643537e-02 +
                                       r * (8.33333333333333321769e-03 +
                                            r * (1.38888888888888894189e-03 +
                                                 r * (1.98412698412698412526e-04 + r * high)))));

    return (1 + r * (1 + r * low)) * power_of_bits((uint64_t)((int64_t)n + 1023) << 52);
}

POWER_LEAF double power_real(double x, double y)
{
    double normal = x, before = 0;

    if (y == 0)
        return 1;
    if (!(x > 0) || x > 0x1.fffffffffffffp1023)
        return x;
    if (x < 0x1p-1022) {
        normal = x * 0x1p54;
        before = -54;
    }
    const double t = y * (power_log2(normal) + before);
    if (t > 1024)
        return HUGE_VAL;
    if (t < -1074)
        return 0;
    if (t < 1000 && t > -1000)
        return power_exp2(t);
    const double root = power_exp2(t / 2); /* 2^n alone would be beyond the type */
    return root * root;
}
