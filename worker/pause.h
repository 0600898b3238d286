/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- how a thread waits until a time, and how long a thread that waits for a GPU sleeps
 * between two looks.
 *
 * A thread that sleeps wakes up late by up to one pause, so a pause is a small part of the wait so
 * far. Short waits do not sleep: a wake-up alone takes 50 microseconds and more.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define PAUSE_US_MAX UINT64_C(2000)

/* Make a condition for pause_until. */
void pause_init(pthread_cond_t *changed);
/* Under the mutex: wait for the condition until then, in nanoseconds of trace_now; UINT64_MAX:
 * there is no limit. False: it is too late. */
bool pause_until(pthread_cond_t *changed, pthread_mutex_t *mutex, uint64_t until_ns);

/* trace_now, in microseconds. */
uint64_t pause_now_us(void);
/* The next pause after so long a wait. 0: give the processor to another thread, and look again. */
uint64_t pause_us(uint64_t waited_us);
/* Take it. */
void pause_here(uint64_t waited_us);
