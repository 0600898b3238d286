/* SPDX-License-Identifier: Apache-2.0 */
/* select.c -- which table of loops this processor runs.
 *
 * Asked again with every slice: the compiler's builtin reads one word that was filled in at
 * start-up.
 */
#include "loops.h"

#if defined(__x86_64__)

static bool has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

const struct loops *loops_select(void)
{
    if (has_avx512())
        return &loops_avx512;
    return has_avx2() ? &loops_avx2 : &loops_plain;
}

const struct loops *loops_at(uint32_t index)
{
    if (index == 0)
        return &loops_plain;
    if (index == 1 && has_avx2())
        return &loops_avx2;
    return index == 2 && has_avx512() ? &loops_avx512 : NULL;
}

#else

const struct loops *loops_select(void) { return &loops_plain; }

const struct loops *loops_at(uint32_t index) { return index == 0 ? &loops_plain : NULL; }

#endif
