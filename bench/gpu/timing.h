/* SPDX-License-Identifier: Apache-2.0 */
/* timing.h -- the host's clock, and medians of what it said. */
#pragma once

#include <stdint.h>

/* Seconds, monotonic. */
double now_s(void);

/* The upper one of two. values (count) are put in order. */
double median(double *values, uint32_t count);
