/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c -- all_reduce of a strategy over several workers beside a round of a collective of the
 * same tensor, in turns: `sumac run --ps 1 --workers 2 -- workers`. The first worker prints the
 * medians, in µs, and their quotient.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/sumac.h"

#define WARM_UP 5u
#define ROUNDS_MAX 400u

struct bench {
    struct sumac_client *client;
    struct sumac_strategy *strategy;
    struct sumac_value *value;
    float *elements;
    uint64_t count;
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static uint64_t meet(struct bench *bench)
{
    const struct sumac_tensor tensor =
        sumac_tensor_over(bench->elements, SUMAC_FLOAT32, SUMAC_SHAPE(bench->count));
    const struct sumac_collective_options options = {.name = "bench"};
    struct sumac_error error;
    const uint64_t began = now_ns();

    sumac_check(
        sumac_client_all_reduce(bench->client, &options, SUMAC_REDUCE_SUM, &tensor, NULL, &error),
        &error);
    return now_ns() - began;
}

/* As many as are to be timed, within one run. */
struct timed {
    struct bench *bench;
    uint64_t *met, *reduced; /* (rounds) */
    uint32_t rounds;
};

static enum sumac_status
run(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct timed *timed = context;

    for (uint32_t i = 0; i < WARM_UP + timed->rounds; i++) {
        struct sumac_value *sum = NULL;
        const uint64_t met = meet(timed->bench), began = now_ns();
        const enum sumac_status status = sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, timed->bench->value, NULL, &sum, error);
        const uint64_t reduced = now_ns() - began;
        sumac_value_unref(sum);
        if (status != SUMAC_OK)
            return status;
        if (i >= WARM_UP) {
            timed->met[i - WARM_UP] = met;
            timed->reduced[i - WARM_UP] = reduced;
        }
    }
    return SUMAC_OK;
}

static void measure(struct bench *bench, uint64_t bytes, uint32_t rounds, bool tells)
{
    uint64_t met[ROUNDS_MAX], reduced[ROUNDS_MAX];
    struct timed timed = {.bench = bench, .met = met, .reduced = reduced, .rounds = rounds};
    const struct sumac_run_options step = {.function = run, .context = &timed};
    struct sumac_error error;

    bench->count = bytes / sizeof *bench->elements;
    bench->elements = calloc(bench->count, sizeof *bench->elements);
    bench->value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(bench->count), bench->elements);
    sumac_check(sumac_strategy_run(bench->strategy, &step, NULL, &error), &error);
    qsort(met, rounds, sizeof *met, compare);
    qsort(reduced, rounds, sizeof *reduced, compare);
    if (tells)
        printf(
            "%10" PRIu64 " bytes   collective %9.1f µs   all_reduce %9.1f µs   %.2f\n", bytes,
            (double)met[rounds / 2] / 1000, (double)reduced[rounds / 2] / 1000,
            (double)met[rounds / 2] / (double)reduced[rounds / 2]);
    (void)fflush(stdout);
    sumac_value_unref(bench->value);
    free(bench->elements);
}

int main(void)
{
    struct bench bench = {.count = 0};
    struct sumac_client_facts facts;
    struct sumac_error error;

    sumac_tune_malloc();
    (void)setenv("SUMAC_STRATEGY", "multi_worker", 1);
    sumac_check(sumac_strategy_from_environment(&bench.strategy, &error), &error);
    bench.client = sumac_strategy_client(bench.strategy);
    sumac_client_describe(bench.client, &facts);
    for (uint64_t bytes = 256; bytes <= UINT64_C(16) << 20; bytes *= 4)
        measure(
            &bench, bytes,
            bytes <= 65536      ? ROUNDS_MAX
            : bytes <= 1u << 20 ? 100
                                : 20,
            facts.member_index == 0);
    sumac_strategy_destroy(bench.strategy);
    return 0;
}
