/* SPDX-License-Identifier: Apache-2.0 */
/* push_pull.c -- `bench/push_pull [--json] [--rounds N] [--only PATH] [--bytes N]`: what a push, a
 * pull and a round trip cost.
 *
 * Every contestant has a server and a client process of its own. In
 * each round every contestant runs once at each size, in turn, so that a slow moment of the machine
 * hits all alike. Medians are over the rounds, percentiles over all operations. GB/s is 1e9 bytes
 * of values a second; CPU seconds are those of client and servers; `interface` is what the loopback
 * interface carried, divided by the values that are claimed (anything else that talks on it counts
 * as well). Every value pushed is checked at the end: the servers' sums must be exact.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"
#include "sumac/client.h"

#define WINDOW_MAX 32
#define WINDOW_BYTES_MAX (64u << 10) /* larger operations are done one by one */

static const struct size {
    uint64_t bytes;
    unsigned count; /* operations in a round, one by one */
} sizes[] = {
    {256, 2000},     {4u << 10, 2000}, {64u << 10, 800},
    {1u << 20, 100}, {16u << 20, 12},  {64u << 20, 4},
};
#define SIZES (sizeof sizes / sizeof *sizes)

static struct path *const paths[] = {
    &raw_path, &bare_echo_path, &bare_stage_path, &sumac_path, &sumac_two_path};
#define PATHS (sizeof paths / sizeof *paths)

struct bench {
    unsigned rounds;
    bool json;
    const char *only;    /* a path's name begins so; NULL: all */
    uint64_t only_bytes; /* 0: all sizes */
    struct row rows[ROWS_MAX];
    unsigned row_count;
    float *values;
};

/* ---- servers */

static void stop_path(struct path *path)
{
    client_stop(path);
    for (unsigned i = 0; i < path->server_count; i++) {
        (void)kill(path->servers[i], SIGTERM);
        (void)waitpid(path->servers[i], NULL, 0);
    }
}

/* ---- rounds */

static double cpu_seconds_of(pid_t process)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* Of a path's client and servers, so far. */
static double cpu_seconds(const struct path *path)
{
    double seconds = cpu_seconds_of(client_pid(path));

    for (unsigned i = 0; i < path->server_count; i++)
        seconds += cpu_seconds_of(path->servers[i]);
    return seconds;
}

/* Bytes that the loopback interface has received. */
static double interface_bytes(void)
{
    FILE *file = fopen("/proc/net/dev", "r");
    char line[512];

    uint64_t bytes = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " lo: %" SCNu64, &bytes) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    return (double)bytes;
}

static bool adds(const struct row *row)
{
    return row->work.op == OP_PUSH ||
           (row->work.op == OP_ROUND_TRIP && row->path->adds_round_trips);
}

static void run_round(struct bench *bench, struct row *row, unsigned round)
{
    struct work work = row->work;

    work.values = bench->values;
    work.latency_ns = row->latency_ns + (size_t)round * work.count;
    const double cpu = cpu_seconds(row->path), bytes = interface_bytes();
    row->seconds[round] = client_run(row->path, &work);
    row->cpu_seconds += cpu_seconds(row->path) - cpu;
    row->interface_bytes += interface_bytes() - bytes;
    row->rounds = round + 1;
    if (adds(row))
        row->path->pushed_sum +=
            work.count * sum_floats(bench->values, (size_t)work.bytes / sizeof(float));
}

/* The same work once, uncounted but for the sums: pages are touched, windows and pools grown. */
static void warm_up(struct bench *bench, struct row *row)
{
    struct work work = row->work;

    work.values = bench->values;
    work.latency_ns = row->latency_ns; /* the first round writes over them */
    work.count = work.count < WINDOW_MAX ? 2 : WINDOW_MAX;
    (void)client_run(row->path, &work);
    if (adds(row))
        row->path->pushed_sum +=
            work.count * sum_floats(bench->values, (size_t)work.bytes / sizeof(float));
}

static void add_row(struct bench *bench, struct path *path, const struct work *work)
{
    if (!path->does(work))
        return;
    if (bench->row_count == ROWS_MAX)
        die("too many rows");
    struct row *row = &bench->rows[bench->row_count++];
    *row = (struct row){.path = path, .work = *work};
    const size_t operations = (size_t)work->count * bench->rounds;
    row->latency_ns = share(sizeof *row->latency_ns * (operations + WINDOW_MAX));
}

static bool is_wanted(const struct bench *bench, const struct path *path)
{
    return bench->only == NULL || strncmp(path->name, bench->only, strlen(bench->only)) == 0;
}

static void add_rows(struct bench *bench)
{
    for (size_t i = 0; i < SIZES; i++) {
        if (bench->only_bytes != 0 && sizes[i].bytes != bench->only_bytes)
            continue;
        for (int op = 0; op < OP_COUNT; op++) {
            for (unsigned window = 1; window <= WINDOW_MAX; window *= WINDOW_MAX) {
                const struct work work = {
                    .op = (enum op)op,
                    .bytes = sizes[i].bytes,
                    .window = window,
                    .count = window > 1 ? sizes[i].count * 2 : sizes[i].count};
                if (window > 1 && (work.bytes > WINDOW_BYTES_MAX || op == OP_PULL))
                    continue;
                for (size_t j = 0; j < PATHS; j++)
                    if (is_wanted(bench, paths[j]))
                        add_row(bench, paths[j], &work);
            }
        }
    }
}

static void check_sums(const struct bench *bench)
{
    for (size_t i = 0; i < PATHS; i++) {
        const struct path *path = paths[i];
        if (!is_wanted(bench, path) || path->sum == NULL)
            continue;
        const double sum = client_sum(paths[i]);
        if (sum < path->pushed_sum || sum > path->pushed_sum)
            die("%s: pushed %.0f, but its servers hold %.0f", path->name, path->pushed_sum, sum);
    }
}

static void run_bench(struct bench *bench)
{
    bench->values = share(VALUES_BYTES_MAX);
    for (size_t i = 0; i < VALUES_BYTES_MAX / sizeof(float); i++)
        bench->values[i] = (float)(i % 5); /* sums stay whole numbers that a float holds */
    add_rows(bench);                       /* their memory is shared with the clients that follow */
    for (size_t i = 0; i < PATHS; i++)
        if (is_wanted(bench, paths[i]))
            paths[i]->start == NULL ? start_server(paths[i]) : paths[i]->start(paths[i]);
    for (size_t i = 0; i < PATHS; i++)
        if (is_wanted(bench, paths[i]))
            client_start(paths[i]);
    for (unsigned i = 0; i < bench->row_count; i++)
        warm_up(bench, &bench->rows[i]);
    for (unsigned round = 0; round < bench->rounds; round++)
        for (unsigned i = 0; i < bench->row_count; i++)
            run_round(bench, &bench->rows[i], round);
    check_sums(bench);
    for (size_t i = 0; i < PATHS; i++)
        if (is_wanted(bench, paths[i]))
            stop_path(paths[i]);
    if (bench->json) {
        report_json(bench->rows, bench->row_count);
    } else {
        report_text(bench->rows, bench->row_count);
        report_asked(bench->rows, bench->row_count);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench = {.rounds = 5};

    sumac_tune_malloc();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--serve-raw") == 0)
            return raw_serve();
        if (strcmp(argv[i], "--serve-echo") == 0 || strcmp(argv[i], "--serve-stage") == 0)
            return bare_serve(strcmp(argv[i], "--serve-echo") == 0);
        if (strcmp(argv[i], "--json") == 0)
            bench.json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            bench.rounds = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            bench.only = argv[++i];
        else if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bench.only_bytes = strtoull(argv[++i], NULL, 10);
        else
            die("usage: push_pull [--json] [--rounds N] [--only PATH] [--bytes N]");
    }
    if (bench.rounds < 1 || bench.rounds > ROUNDS_MAX)
        die("--rounds takes 1 to %d", ROUNDS_MAX);
    run_bench(&bench);
    return 0;
}
