/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h -- the time that waits are measured by. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Microseconds of CLOCK_MONOTONIC. */
static inline uint64_t clock_now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}
