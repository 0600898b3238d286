/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.c -- `bench/device_group [--json] [--only TEXT] [--rounds N]`: all_reduce and
 * all_gather in the replicas of a strategy, and reduce of their values, all of float32. Beside them
 * run one pass over the same memory, and as many threads that only wait for each other.
 *
 *   all_reduce   Each replica calls it, again and again. A time lasts from one result of replica 0
 *   all_gather   to its next one, and includes making and dropping the result.
 *   reduce       The caller's thread calls it, outside of runs.
 *   pass         A loop as written by hand, over arrays that exist and were written before. The
 *                best by its median counts: of one thread, of one per core, and of one per core
 *                with stores that bypass the caches (passes.c).
 *   meet         One thread per replica: they wait for each other by a mutex and a condition, and
 *                compute nothing.
 *
 * Bytes are those of one replica. all_gather makes that many for each replica. All contestants of a
 * row run in turn, a burst of each in a round. Percentiles are medians over all rounds.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"
#include "passes.h"
#include "sumac/strategy.h"

#define BYTES_MAX ((uint64_t)64 << 20)
#define BURST_BYTES ((uint64_t)32 << 20) /* of a replica, in a burst; at least three of each */
#define BURST_MAX 200u
#define ROUNDS_MAX (SAMPLES_MAX / BURST_MAX)

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE, KINDS };
static const char *const names[KINDS] = {"all_reduce", "all_gather", "reduce"};

struct row {
    enum kind kind;
    uint32_t replicas;
    uint64_t bytes;
    double taken_us, pass_us, meet_us;
};

struct bench {
    uint32_t threads; /* of a pass */
    unsigned long rounds;
    struct sumac_value *values[PASS_REPLICAS_MAX]; /* of the row's bytes, one of each replica */
    float *to;                                     /* what a pass writes */
    struct crew *crew;
};

/* Where as many threads wait for each other. */
struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t all;
    uint32_t members, there;
    uint64_t number;
};

/* One burst: all replicas, or all threads, have it. */
struct burst {
    const struct bench *bench;
    const struct row *row;
    struct meeting *meeting;
    uint32_t count;
    struct samples *samples;
};

static struct samples taken, passes[PASS_WAYS], meets;

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status != SUMAC_OK)
        die(error->text);
}

static uint32_t burst_of(uint64_t bytes)
{
    const uint64_t count = BURST_BYTES / bytes;

    return count < 3 ? 3 : count > BURST_MAX ? BURST_MAX : (uint32_t)count;
}

/* ---- the strategy's */

static enum sumac_status
call_often(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct burst *burst = context;
    const uint32_t id = sumac_replica_id(replica);
    struct sumac_value *own = burst->bench->values[id], *all = NULL;
    enum sumac_status status = SUMAC_OK;
    double before_us = 0;

    for (uint32_t i = 0; i <= burst->count && status == SUMAC_OK; i++) {
        if (burst->row->kind == ALL_REDUCE)
            status = sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, own, NULL, &all, error);
        else
            status = sumac_replica_all_gather(replica, own, 0, NULL, &all, error);
        sumac_value_unref(all);
        all = NULL;
        if (id != 0)
            continue;
        const double now = now_us();
        if (i > 0)
            samples_add(burst->samples, now - before_us);
        before_us = now;
    }
    return status;
}

static void reduce_often(struct sumac_strategy *strategy, const struct burst *burst)
{
    struct sumac_value *items[PASS_REPLICAS_MAX], *all = NULL;
    struct sumac_error error;

    for (uint32_t i = 0; i < burst->row->replicas; i++)
        items[i] = sumac_value_ref(burst->bench->values[i]);
    struct sumac_value *value = sumac_value_per_replica(items, burst->row->replicas, 0);
    for (uint32_t i = 0; i <= burst->count; i++) {
        const double before_us = now_us();
        check(sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, value, NULL, &all, &error), &error);
        sumac_value_unref(all);
        if (i > 0)
            samples_add(burst->samples, now_us() - before_us);
    }
    sumac_value_unref(value);
}

static void run_burst(struct sumac_strategy *strategy, struct burst *burst)
{
    const struct sumac_run_options step = {.function = call_often, .context = burst};
    struct sumac_error error;

    burst->samples = &taken;
    if (burst->row->kind == REDUCE)
        reduce_often(strategy, burst);
    else
        check(sumac_strategy_run(strategy, &step, NULL, &error), &error);
}

/* ---- by hand */

static void pass_often(const struct burst *burst, uint32_t way)
{
    const struct bench *bench = burst->bench;
    struct pass pass = {
        .to = bench->to,
        .elements = burst->row->bytes / sizeof(float),
        .replicas = burst->row->replicas};

    for (uint32_t i = 0; i < pass.replicas; i++)
        pass.from[i] = sumac_value_data(bench->values[i]);
    for (uint32_t i = 0; i <= burst->count; i++) {
        const double before_us = now_us();
        if (burst->row->kind == ALL_GATHER)
            by_hand_gather(&pass, way, bench->crew, bench->threads);
        else
            by_hand_sum(&pass, way, bench->crew, bench->threads);
        if (i > 0)
            samples_add(&passes[way], now_us() - before_us);
    }
}

static void meet(struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->mutex);
    const uint64_t number = meeting->number;
    if (++meeting->there == meeting->members) {
        meeting->there = 0;
        meeting->number++;
        pthread_cond_broadcast(&meeting->all);
    } else {
        while (meeting->number == number)
            pthread_cond_wait(&meeting->all, &meeting->mutex);
    }
    pthread_mutex_unlock(&meeting->mutex);
}

static void meet_often(void *context, uint32_t thread)
{
    const struct burst *burst = context;
    double before_us = 0;

    for (uint32_t i = 0; i <= burst->count; i++) {
        meet(burst->meeting);
        if (thread != 0)
            continue;
        const double now = now_us();
        if (i > 0)
            samples_add(burst->samples, now - before_us);
        before_us = now;
    }
}

/* ---- a row */

static struct sumac_value *make_value(uint64_t bytes, uint32_t replica)
{
    struct sumac_value *value =
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(bytes / sizeof(float)), NULL);

    if (value == NULL)
        die("no memory for a value");
    float *elements = sumac_buffer_data(sumac_value_as_tensor(value)->buffer);
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        elements[i] = (float)(i % 1024) + (float)replica;
    return value;
}

static void measure(struct bench *bench, struct row *row)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .replicas = row->replicas};
    struct meeting meeting = {
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .members = row->replicas};
    struct burst burst = {
        .bench = bench, .row = row, .meeting = &meeting, .count = burst_of(row->bytes)};
    struct crew *crew = crew_open(row->replicas);
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error;

    check(sumac_strategy_create(&options, &strategy, &error), &error);
    for (uint32_t i = 0; i < row->replicas; i++)
        bench->values[i] = make_value(row->bytes, i);
    taken.count = meets.count = 0;
    for (uint32_t way = 0; way < PASS_WAYS; way++)
        passes[way].count = 0;
    for (unsigned long round = 0; round < bench->rounds; round++) {
        run_burst(strategy, &burst);
        for (uint32_t way = 0; way < PASS_WAYS; way++)
            pass_often(&burst, way);
        burst.samples = &meets;
        crew_run(crew, meet_often, &burst);
    }
    row->taken_us = samples_median(&taken);
    row->meet_us = samples_median(&meets);
    for (uint32_t way = 0; way < PASS_WAYS; way++) {
        const double pass_us = samples_median(&passes[way]);
        row->pass_us = way == 0 || pass_us < row->pass_us ? pass_us : row->pass_us;
    }
    for (uint32_t i = 0; i < row->replicas; i++)
        sumac_value_unref(bench->values[i]);
    sumac_strategy_destroy(strategy);
    crew_close(crew);
}

static void print(const struct row *row, bool json, bool first)
{
    const double meet_us = row->kind == REDUCE ? 0 : row->meet_us;

    printf(
        json ? "%s\n  {\"call\": \"%s\", \"replicas\": %u, \"bytes\": %" PRIu64
               ", \"us\": %.2f, \"pass_us\": %.2f, \"meet_us\": %.2f, "
               "\"pass_over_call\": %.3f, \"pass_and_meet_over_call\": %.3f}"
             : "%s%-10s %8u %10" PRIu64 "  %11.2f  %11.2f  %9.2f  %9.3f  %9.3f\n",
        json && !first ? "," : "", names[row->kind], row->replicas, row->bytes, row->taken_us,
        row->pass_us, meet_us, row->pass_us / row->taken_us,
        (row->pass_us + meet_us) / row->taken_us);
    (void)fflush(stdout);
}

static void measure_all(struct bench *bench, const char *only, bool json)
{
    bool first = true;

    printf(
        json ? "["
             : "call       replicas      bytes           µs      pass µs    meet µs   pass/µs  "
               "p+meet/µs\n");
    for (int kind = 0; kind < KINDS; kind++)
        for (uint32_t replicas = 2; replicas <= PASS_REPLICAS_MAX; replicas += 2)
            for (uint64_t bytes = 256; bytes <= BYTES_MAX; bytes *= 8) {
                struct row row = {.kind = (enum kind)kind, .replicas = replicas, .bytes = bytes};
                if (only != NULL && strstr(names[kind], only) == NULL)
                    continue;
                measure(bench, &row);
                print(&row, json, first);
                first = false;
            }
    printf(json ? "\n]\n" : "");
}

int main(int argc, char **argv)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct bench bench = {.rounds = 9, .threads = cores < 1 ? 1 : cores > 8 ? 8 : (uint32_t)cores};
    const char *only = NULL;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            bench.rounds = strtoul(argv[++i], NULL, 10);
        else
            bench.rounds = 0;
    }
    if (bench.rounds < 1 || bench.rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench/device_group [--json] [--only TEXT] [--rounds N]\n");
        return 2;
    }
    bench.crew = crew_open(bench.threads);
    bench.to = aligned_alloc(4096, BYTES_MAX * PASS_REPLICAS_MAX);
    if (bench.to == NULL)
        die("no memory");
    memset(bench.to, 0, BYTES_MAX * PASS_REPLICAS_MAX);
    measure_all(&bench, only, json);
    free(bench.to);
    crew_close(bench.crew);
    return 0;
}
