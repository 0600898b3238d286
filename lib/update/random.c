/* SPDX-License-Identifier: Apache-2.0 */
/* random.c -- Philox, and the Box-Muller transform on it without libm, whose last bit differs
 * between machines. */
#include "random.h"

#include <assert.h>
#include <math.h>

#include "arithmetic.h"

struct random_block random_philox(struct random_block counter, uint32_t key_low, uint32_t key_high)
{
    uint32_t *const c = counter.word;

    for (int round = 0; round < 10; round++) {
        const uint64_t product_0 = (uint64_t)0xD2511F53u * c[0];
        const uint64_t product_1 = (uint64_t)0xCD9E8D57u * c[2];
        c[0] = (uint32_t)(product_1 >> 32) ^ c[1] ^ key_low;
        c[1] = (uint32_t)product_1;
        c[2] = (uint32_t)(product_0 >> 32) ^ c[3] ^ key_high;
        c[3] = (uint32_t)product_0;
        key_low += 0x9E3779B9u;
        key_high += 0xBB67AE85u;
    }
    return counter;
}

void random_uniform_pair(uint64_t seed, uint64_t pair, double element[2])
{
    const struct random_block counter = {{(uint32_t)pair, (uint32_t)(pair >> 32), 0, 0}};
    const struct random_block block =
        random_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));

    for (int i = 0; i < 2; i++) {
        const uint64_t bits = (uint64_t)block.word[2 * i] << 32 | block.word[2 * i + 1];
        element[i] = (double)(bits >> 11) * 0x1p-53;
        assert(element[i] < 1);
    }
}

void random_normal_pair(uint64_t seed, uint64_t pair, double element[2])
{
    double uniform[2];

    random_uniform_pair(seed, pair, uniform);
    /* 1 - u is in (0, 1]: its logarithm is finite. */
    const double radius = sqrt(-2 * near_log(1 - uniform[0]));
    double cosine, sine;
    random_turn(uniform[1], &cosine, &sine);
    element[0] = radius * cosine;
    element[1] = radius * sine;
}

/* fdlibm's k_sin.c and k_cos.c on the eighth of a turn that is left beside a number of quarters. */
void random_turn(double u, double *cosine, double *sine)
{
    assert(u >= 0 && u < 1);
    const uint32_t quarters = (uint32_t)(4 * u + 0.5);
    const double x = (u - 0.25 * (double)quarters) * 6.28318530717958647692;
    const double z = x * x;
    const double s =
        x +
        x * z *
            (-1.66666666666666324348e-01 +
             z * (8.33333333332248946124e-03 +
                  z * (-1.98412698298579493134e-04 +
                       z * (2.75573137070700676789e-06 +
                            z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    const double c =
        1 -
        (0.5 * z -
         z * z *
             (4.16666666666666019037e-02 +
              z * (-1.38888888888741095749e-03 +
                   z * (2.48015872894767294178e-05 +
                        z * (-2.75573143513906633035e-07 +
                             z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11))))));
    const double turned_cosine = quarters & 1 ? s : c;
    const double turned_sine = quarters & 1 ? c : s;

    *cosine = (quarters + 1) & 2 ? -turned_cosine : turned_cosine;
    *sine = quarters & 2 ? -turned_sine : turned_sine;
}
