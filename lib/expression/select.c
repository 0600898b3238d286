/* SPDX-License-Identifier: Apache-2.0 */
/* select.c -- which table of loops this processor runs. */
#include "expression_loops.h"

#if defined(__x86_64__)

static bool has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

const struct expression_loops *expression_loops_select(void)
{
    if (has_avx512())
        return &expression_loops_avx512;
    return has_avx2() ? &expression_loops_avx2 : &expression_loops_plain;
}

const struct expression_loops *expression_loops_at(uint32_t index)
{
    if (index == 0)
        return &expression_loops_plain;
    if (index == 1 && has_avx2())
        return &expression_loops_avx2;
    return index == 2 && has_avx512() ? &expression_loops_avx512 : NULL;
}

#else

const struct expression_loops *expression_loops_select(void) { return &expression_loops_plain; }

const struct expression_loops *expression_loops_at(uint32_t index)
{
    return index == 0 ? &expression_loops_plain : NULL;
}

#endif
