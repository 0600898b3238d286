/* SPDX-License-Identifier: Apache-2.0 */
/* report.h -- what the rounds of one row came to, and how it is printed. */
#pragma once

#include "path.h"

#define ROUNDS_MAX 64
#define ROWS_MAX 128

/* One contestant doing one thing at one size. */
struct row {
    struct path *path;
    struct work work;     /* of one round; values, into and latency_ns are filled in by the round */
    uint64_t *latency_ns; /* [rounds × count], all rounds behind one another */
    double seconds[ROUNDS_MAX];
    double cpu_seconds; /* of all processes, over all rounds */
    double interface_bytes;
    unsigned rounds;
};

/* Medians over the rounds; percentiles over all operations. */
struct figures {
    double gigabytes_per_s, operations_per_s, p50_us, p99_us, cpu_s_per_gb, interface_ratio;
    double of_raw; /* GB/s ÷ raw's; 0: raw does not do this */
};

void row_figures(const struct row *rows, unsigned row_count, unsigned row, struct figures *figures);
void report_text(const struct row *rows, unsigned row_count);
/* The rows of "What is asked, and what came out" in bench/README.md that can be told from these,
 * ready to be pasted. */
void report_asked(const struct row *rows, unsigned row_count);
void report_json(const struct row *rows, unsigned row_count);
