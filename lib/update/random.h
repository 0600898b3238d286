/* SPDX-License-Identifier: Apache-2.0 */
/* random.h -- random numbers that depend on a seed and a place only, with the same bits on every
 * machine.
 *
 * Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
 */
#pragma once

#include <stdint.h>

struct random_block {
    uint32_t word[4];
};

/* Ten rounds. */
struct random_block random_philox(struct random_block counter, uint32_t key_low, uint32_t key_high);

/* The two elements that pair number `pair` of a variable seeded with `seed` has: uniform in [0, 1),
 * multiples of 2^-53; or of the standard normal distribution (Box and Muller, 1958). */
void random_uniform_pair(uint64_t seed, uint64_t pair, double element[2]);
void random_normal_pair(uint64_t seed, uint64_t pair, double element[2]);

/* cos and sin of 2πu for u in [0, 1): within 2 units in the last place, without libm. */
void random_turn(double u, double *cosine, double *sine);
