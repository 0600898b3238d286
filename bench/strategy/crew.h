/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h -- threads that are woken for a piece of work and waited for, as one writes them by hand:
 * a mutex, a condition that they sleep by, and one that the caller does. And how times are taken.
 */
#pragma once

#include <stdint.h>

#define CREW_MAX 64u
#define SAMPLES_MAX 8192u

typedef void crew_work(void *context, uint32_t thread);

struct crew;
struct crew *crew_open(uint32_t threads);
/* Wake all, have work(context, 0 … threads - 1) done at once, and wait for the last. */
void crew_run(struct crew *crew, crew_work *work, void *context);
void crew_close(struct crew *crew);

/* What one thing took, each time. */
struct samples {
    double taken_us[SAMPLES_MAX];
    uint32_t count;
};
double now_us(void);
void samples_add(struct samples *samples, double taken_us);
/* 0 of none. Sorts them. */
double samples_median(struct samples *samples);

_Noreturn void die(const char *what);
