/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h -- the same program as the workers of some ps, which `sumac run` starts and ends. */
#pragma once

#include <stddef.h>

/* How many cases passed, failed, and were skipped, in all of these. */
struct relay_counts {
    size_t passed, failed, skipped;
};

/* Run this program with these arguments (argv[0] is not looked at) as each of so many workers of so
 * many ps, under the `sumac` that lies beside it, and print what worker 0 prints but for its
 * counts, which are added up; what the ps say goes to stderr. Returns  the program's exit code. */
int relay_run(
    const char *ps, const char *workers, int argc, char **argv, struct relay_counts *counts);
