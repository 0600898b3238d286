/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- pauses that grow with the wait. */
#define _GNU_SOURCE /* sched_yield */
#include "pause.h"

#include <sched.h>
#include <time.h>

#define AWAKE_US UINT64_C(4000) /* without a pause */
#define PART UINT64_C(64)       /* of the wait so far: it ends less than 2 % late */

uint64_t pause_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t pause_us(uint64_t waited_us)
{
    if (waited_us < AWAKE_US)
        return 0;
    return waited_us / PART < PAUSE_US_MAX ? waited_us / PART : PAUSE_US_MAX;
}

void pause_here(uint64_t waited_us)
{
    const uint64_t us = pause_us(waited_us);

    if (us == 0)
        (void)sched_yield();
    else
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}
