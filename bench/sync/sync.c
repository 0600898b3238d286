/* SPDX-License-Identifier: Apache-2.0 */
/* sync.c -- `bench/sync [--json] [--rounds N]`: what a barrier of two processes costs, beside the
 * round trip of a bare gRPC stream (push_pull's, of 256 bytes); a synchronous step of 4 × 16 MB,
 * beside four asynchronous pushes of as many bytes; and its update alone, beside a plain loop.
 *
 * What is compared runs in turn, so that a slow moment of the machine hits both alike. Percentiles
 * are over all operations of all rounds.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync.h"
#include "sumac/client.h"

#define ROUNDS_MAX 64u
#define ECHO_BYTES 256u
#define WARM_UP 100u
#define STEPS_PER_ROUND 8u

/* One contestant, and what its operations took. */
struct row {
    struct path *path;
    struct work work; /* of one round */
    uint64_t *latency_ns;
    double p50_us, p99_us;
};

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static void sum_up(struct row *row, unsigned rounds)
{
    const size_t count = (size_t)row->work.count * rounds;

    qsort(row->latency_ns, count, sizeof *row->latency_ns, compare);
    row->p50_us = (double)row->latency_ns[count / 2] / 1000;
    row->p99_us = (double)row->latency_ns[count / 100 * 99] / 1000;
}

static void measure(struct row *rows, size_t row_count, unsigned rounds)
{
    float *values = share(ECHO_BYTES);

    for (size_t i = 0; i < row_count; i++) {
        rows[i].work.values = values;
        rows[i].latency_ns =
            share((rounds * rows[i].work.count + WARM_UP) * sizeof *rows[i].latency_ns);
    }
    for (size_t i = 0; i < row_count; i++)
        rows[i].path->start == NULL ? start_server(rows[i].path)
                                    : rows[i].path->start(rows[i].path);
    for (size_t i = 0; i < row_count; i++)
        client_start(rows[i].path);
    for (unsigned round = 0; round <= rounds; round++) /* the first is not counted */
        for (size_t i = 0; i < row_count; i++) {
            struct work work = rows[i].work;
            work.count = round == 0 ? WARM_UP : work.count;
            work.latency_ns =
                rows[i].latency_ns + (size_t)(round == 0 ? 0 : round - 1) * work.count;
            (void)client_run(rows[i].path, &work);
        }
    for (size_t i = 0; i < row_count; i++) {
        client_stop(rows[i].path);
        (void)kill(rows[i].path->servers[0], SIGTERM);
        (void)waitpid(rows[i].path->servers[0], NULL, 0);
        sum_up(&rows[i], rounds);
    }
}

/* What is compared, and what with: of both the median. */
struct comparison {
    struct timing beside, ours;
};

static double median_ms(struct timing *timing)
{
    qsort(timing->taken_ns, timing->count, sizeof *timing->taken_ns, compare);
    return (double)timing->taken_ns[timing->count / 2] / 1e6;
}

static void print_text(const struct row *rows, size_t row_count)
{
    printf("%-44s %9s %9s %9s\n", "", "p50 us", "p99 us", "of bare");
    for (size_t i = 0; i < row_count; i++)
        printf(
            "%-44s %9.1f %9.1f %9.2f\n", rows[i].path->name, rows[i].p50_us, rows[i].p99_us,
            rows[i].p50_us / rows[0].p50_us);
}

static void print_json(const struct row *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++)
        printf(
            "{\"name\": \"%s\", \"p50_us\": %.1f, \"p99_us\": %.1f, \"of_bare\": %.3f},\n ",
            rows[i].path->name, rows[i].p50_us, rows[i].p99_us, rows[i].p50_us / rows[0].p50_us);
}

/* How fast ours is, of the other: above 1 it takes less time. */
static void print_comparison(struct comparison *comparison, bool json, bool last)
{
    const double beside = median_ms(&comparison->beside), ours = median_ms(&comparison->ours);

    if (json)
        printf(
            "{\"name\": \"%s\", \"p50_ms\": %.3f},\n {\"name\": \"%s\", \"p50_ms\": %.3f, "
            "\"as_fast_as\": %.3f}%s",
            comparison->beside.name, beside, comparison->ours.name, ours, beside / ours,
            last ? "" : ",\n ");
    else
        printf(
            "\n%-44s %9s %9s\n%-44s %9.2f %9.2f\n%-44s %9.2f %9.2f\n", "", "p50 ms", "speed",
            comparison->beside.name, beside, 1.0, comparison->ours.name, ours, beside / ours);
}

static struct comparison pushes = {
    .beside = {.name = "4 asynchronous pushes of 16 MB, sgd"},
    .ours = {.name = "synchronous step of 4 x 16 MB, sgd"}};
static struct comparison updates = {
    .beside = {.name = "plain loop, 6 streams of 16 MB"}, .ours = {.name = "its update alone"}};

int main(int argc, char **argv)
{
    struct row rows[] = {
        {.path = &bare_echo_path,
         .work = {.op = OP_ROUND_TRIP, .bytes = ECHO_BYTES, .window = 1, .count = 2000}},
        {.path = &barrier_path, .work = {.count = 2000}},
    };
    const size_t row_count = sizeof rows / sizeof rows[0];
    unsigned rounds = 5;
    bool json = false;

    sumac_tune_malloc();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--serve-echo") == 0)
            return bare_serve(true);
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (unsigned)atoi(argv[++i]);
        else
            die("usage: sync [--json] [--rounds N]");
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        die("--rounds takes 1 to %u", ROUNDS_MAX);
    step_measure(&pushes.beside, &pushes.ours, STEPS_PER_ROUND * rounds);
    fused_measure(&updates.beside, &updates.ours, STEPS_PER_ROUND * rounds);
    measure(rows, row_count, rounds);
    if (json)
        printf("[");
    json ? print_json(rows, row_count) : print_text(rows, row_count);
    print_comparison(&pushes, json, false);
    print_comparison(&updates, json, true);
    if (json)
        printf("]\n");
    return 0;
}
