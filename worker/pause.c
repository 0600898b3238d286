/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- waits until a time, and pauses that grow with the wait. */
#define _GNU_SOURCE /* sched_yield */
#include "pause.h"

#include <sched.h>
#include <time.h>

#include "trace.h"

#define AWAKE_US UINT64_C(4000) /* without a pause */
#define PART UINT64_C(64)       /* of the wait so far: it ends less than 2 % late */

void pause_init(pthread_cond_t *changed)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool pause_until(pthread_cond_t *changed, pthread_mutex_t *mutex, uint64_t until_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};

    if (until_ns == UINT64_MAX)
        return pthread_cond_wait(changed, mutex) == 0;
    return pthread_cond_timedwait(changed, mutex, &until) == 0;
}

uint64_t pause_now_us(void) { return trace_now() / 1000; }

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
