/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c -- how long something took, and how long it takes. */
#include "timing.h"

#include <stdlib.h>
#include <time.h>

double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}
