/* SPDX-License-Identifier: Apache-2.0 */
/* select.c -- which table of loops this processor runs.
 *
 * Asked again with every slice: the compiler's builtin reads one word that was filled in at
 * start-up.
 */
#include "loops.h"

#if defined(__x86_64__)

/* With it comes the conversion of half types, which clang 14's builtin has no name for: no
 * processor has AVX2 without. */
static bool has_avx2(void)
{
#if !defined(__clang__)
    if (__builtin_cpu_supports("f16c") == 0)
        return false;
#endif
    return __builtin_cpu_supports("avx2") != 0;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

static bool has_avx512bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16") != 0;
}

const struct loops *loops_select(void)
{
    if (!has_avx512())
        return has_avx2() ? &loops_avx2 : &loops_plain;
    return __builtin_cpu_supports("avx512bf16") != 0 ? &loops_avx512bf16 : &loops_avx512;
}

const struct loops *loops_at(uint32_t index)
{
    if (index == 0)
        return &loops_plain;
    if (index == 1 && has_avx2())
        return &loops_avx2;
    if (index == 2 && has_avx512())
        return &loops_avx512;
    return index == 3 && has_avx512bf16() ? &loops_avx512bf16 : NULL;
}

#else

const struct loops *loops_select(void) { return &loops_plain; }

const struct loops *loops_at(uint32_t index) { return index == 0 ? &loops_plain : NULL; }

#endif
