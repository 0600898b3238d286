/* SPDX-License-Identifier: Apache-2.0 */
/* report.c -- from samples to medians, ratios, a table and JSON. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[OP_COUNT] = {"push", "pull", "round trip"};

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int compare_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_seconds(const struct row *row)
{
    double sorted[ROUNDS_MAX];

    memcpy(sorted, row->seconds, row->rounds * sizeof *sorted);
    qsort(sorted, row->rounds, sizeof *sorted, compare_double);
    return sorted[row->rounds / 2];
}

/* Bytes of values in one round; a round trip's are counted once. */
static double round_bytes(const struct row *row)
{
    return (double)row->work.bytes * row->work.count;
}

static const struct row *raw_twin(const struct row *rows, unsigned row_count, const struct row *row)
{
    for (unsigned i = 0; i < row_count; i++)
        if (rows[i].path == &raw_path && rows[i].work.op == row->work.op &&
            rows[i].work.bytes == row->work.bytes && rows[i].work.window == row->work.window)
            return &rows[i];
    return NULL;
}

void row_figures(const struct row *rows, unsigned row_count, unsigned row, struct figures *figures)
{
    const struct row *of = &rows[row];
    const size_t operations = (size_t)of->rounds * of->work.count;
    uint64_t *sorted = malloc(operations * sizeof *sorted);

    memcpy(sorted, of->latency_ns, operations * sizeof *sorted);
    qsort(sorted, operations, sizeof *sorted, compare_u64);
    const double seconds = median_seconds(of);
    const struct row *raw = raw_twin(rows, row_count, of);
    const double all_bytes = round_bytes(of) * of->rounds;
    *figures = (struct figures){
        .gigabytes_per_s = round_bytes(of) / seconds / 1e9,
        .operations_per_s = of->work.count / seconds,
        .p50_us = (double)sorted[operations / 2] / 1e3,
        .p99_us = (double)sorted[operations * 99 / 100] / 1e3,
        .cpu_s_per_gb = of->cpu_seconds / (all_bytes / 1e9),
        .interface_ratio = of->interface_bytes / all_bytes,
        .of_raw = raw == NULL ? 0 : median_seconds(raw) / seconds};
    free(sorted);
}

static const char *print_bytes(uint64_t bytes, char text[24])
{
    if (bytes >= 1u << 20)
        (void)snprintf(text, 24, "%" PRIu64 " MB", (bytes >> 20));
    else if (bytes >= 1u << 10)
        (void)snprintf(text, 24, "%" PRIu64 " KB", (bytes >> 10));
    else
        (void)snprintf(text, 24, "%" PRIu64 " B", bytes);
    return text;
}

void report_text(const struct row *rows, unsigned row_count)
{
    char bytes[24];

    printf(
        "%-8s %-28s %-10s %9s %9s %10s %10s %10s %8s %9s %6s\n", "bytes", "path", "does",
        "in flight", "GB/s", "ops/s", "p50 us", "p99 us", "CPU s/GB", "interface", "of raw");
    for (unsigned i = 0; i < row_count; i++) {
        struct figures f;
        row_figures(rows, row_count, i, &f);
        if (i > 0 && rows[i].work.bytes != rows[i - 1].work.bytes)
            printf("\n");
        printf(
            "%-8s %-28s %-10s %9u %9.3f %10.0f %10.1f %10.1f %8.2f %9.2f ",
            print_bytes(rows[i].work.bytes, bytes), rows[i].path->name, op_names[rows[i].work.op],
            rows[i].work.window, f.gigabytes_per_s, f.operations_per_s, f.p50_us, f.p99_us,
            f.cpu_s_per_gb, f.interface_ratio);
        if (f.of_raw > 0)
            printf("%6.2f\n", f.of_raw);
        else
            printf("%6s\n", "-");
    }
}

/* False: that was not measured. */
static bool find_figures(
    const struct row *rows, unsigned row_count, const char *path, struct work work,
    struct figures *figures)
{
    for (unsigned i = 0; i < row_count; i++) {
        if (strcmp(rows[i].path->name, path) != 0 || rows[i].work.op != work.op ||
            rows[i].work.bytes != work.bytes || rows[i].work.window != work.window)
            continue;
        row_figures(rows, row_count, i, figures);
        return true;
    }
    return false;
}

static void report_asked_large(const struct row *rows, unsigned row_count)
{
    static const uint64_t megabytes[] = {1, 16, 64};
    double ratios[3];

    for (unsigned i = 0; i < 3; i++) {
        const struct work push = {.op = OP_PUSH, .bytes = megabytes[i] << 20, .window = 1};
        struct figures ours, bare;
        if (!find_figures(rows, row_count, "Sumac", push, &ours) ||
            !find_figures(rows, row_count, "bare stream, stage and add", push, &bare))
            return;
        ratios[i] = ours.gigabytes_per_s / bare.gigabytes_per_s;
    }
    printf(
        "| push with add ≥ 0.9 × a bare gRPC stream that stages and adds: 1, 16, 64 MB | GB/s: "
        "%.2f, %.2f, %.2f × |\n",
        ratios[0], ratios[1], ratios[2]);
}

/* Each ratio is of one statistic on both sides; both statistics are shown. */
static void report_asked_small(
    const struct row *rows, unsigned row_count, const char *asked, enum op op, unsigned window)
{
    const struct work ours_does = {.op = op, .bytes = 256, .window = window};
    const struct work bare_does = {.op = OP_ROUND_TRIP, .bytes = 256, .window = window};
    struct figures ours, bare;

    if (!find_figures(rows, row_count, "Sumac", ours_does, &ours) ||
        !find_figures(rows, row_count, "bare stream, echo", bare_does, &bare))
        return;
    printf(
        "| %s | medians of an operation: %.1f against %.1f µs: %.2f × the time; operations a "
        "second: %.0f against %.0f: %.2f × the rate |\n",
        asked, ours.p50_us, bare.p50_us, ours.p50_us / bare.p50_us, ours.operations_per_s,
        bare.operations_per_s, ours.operations_per_s / bare.operations_per_s);
}

void report_asked(const struct row *rows, unsigned row_count)
{
    printf("\n");
    report_asked_large(rows, row_count);
    report_asked_small(
        rows, row_count,
        "a push of 256 B, one by one, ≤ 1.2 × the bare stream's round trip (medians are meant)",
        OP_PUSH, 1);
    report_asked_small(
        rows, row_count,
        "a push and a pull of 256 B at once, one pair after the other, beside the bare stream's "
        "round trip",
        OP_ROUND_TRIP, 1);
    report_asked_small(
        rows, row_count,
        "a push of 256 B, 32 in flight, ≥ 0.75 × the bare stream's rate (operations a second are "
        "meant)",
        OP_PUSH, 32);
}

void report_json(const struct row *rows, unsigned row_count)
{
    printf("{\"rows\": [");
    for (unsigned i = 0; i < row_count; i++) {
        struct figures f;
        row_figures(rows, row_count, i, &f);
        printf(
            "%s\n  {\"bytes\": %" PRIu64 ", \"path\": \"%s\", \"does\": \"%s\", \"in_flight\": %u, "
            "\"gigabytes_per_s\": %.4f, \"operations_per_s\": %.1f, \"p50_us\": %.2f, "
            "\"p99_us\": %.2f, \"cpu_s_per_gb\": %.4f, \"interface_ratio\": %.3f, "
            "\"of_raw\": %.4f}",
            i == 0 ? "" : ",", rows[i].work.bytes, rows[i].path->name, op_names[rows[i].work.op],
            rows[i].work.window, f.gigabytes_per_s, f.operations_per_s, f.p50_us, f.p99_us,
            f.cpu_s_per_gb, f.interface_ratio, f.of_raw);
    }
    printf("\n]}\n");
}
