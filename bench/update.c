/* SPDX-License-Identifier: Apache-2.0 */
/* update.c -- `bench/update [--json] [--megabytes N] [--rounds N] [--threads N]`: how near the
 * update functions come to the memory's bandwidth.
 *
 * Every kernel runs once in each round, in turn, so that a slow moment of the machine hits all
 * alike; the medians over the rounds are compared with a triad's of the same round count, on as
 * many threads. GB/s is 1e9 bytes touched a second. Touched bytes of a float32 element are what the
 * formula reads and writes, 4 bytes each:
 *
 *   triad       a = b + s·c       reads b, c              writes a           12
 *   assign      θ = g             reads g                 writes θ            8
 *   assign_add  θ += g            reads θ, g              writes θ           12
 *   sgd         θ −= η·g          reads θ, g              writes θ           12
 *   momentum                      reads θ, g, a           writes θ, a        20
 *   adam                          reads θ, g, m, v        writes θ, m, v     28
 *   copy        out = in          reads in                writes out          8
 *
 * In place, the line that is written was read before; into spare blocks, and in the triad, the
 * processor reads it as well (write-allocate: 16 bytes move for a triad's 12), which no column
 * counts. The work is cut into slices of 1 MiB, as a ps does it; copy_finite is compared with
 * memcpy, in pieces of 256 KiB, as they arrive.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compute_pool.h"

#define SLICE_BYTES ((size_t)1 << 20)
#define CHUNK_BYTES ((size_t)1 << 18)
#define ROUNDS_MAX 101u
#define THREADS_MAX 64u
#define ARRAYS 7u /* θ, g, m, v, and spare ones for θ, m, v */

enum kind { TRIAD, UPDATE, MEMCPY, COPY_FINITE };

struct kernel {
    const char *name;
    enum kind kind;
    uint32_t function;
    bool spare;
    uint32_t bytes_per_element;
    bool wide; /* on all threads */
    double gigabytes_per_second[ROUNDS_MAX];
    double median;
};

struct bench {
    size_t bytes, elements;
    uint32_t rounds, threads;
    float *array[ARRAYS];
    struct update_slice *slices;
    uint32_t slice_count;
    struct compute_pool *pool;
};

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The yardstick may use what the loops may. */
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
triad(float *restrict a, const float *restrict b, const float *restrict c, float s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        a[i] = b[i] + s * c[i];
}

struct share {
    const struct bench *bench;
    size_t first, count;
    pthread_t thread;
};

static void *run_share(void *context)
{
    const struct share *const share = context;

    float *const *const array = share->bench->array;
    triad(
        array[4] + share->first, array[0] + share->first, array[1] + share->first, 0.5f,
        share->count);
    return NULL;
}

static void run_triad(const struct bench *bench, uint32_t threads)
{
    struct share shares[THREADS_MAX] = {{0}};
    const size_t each = bench->elements / threads;

    for (uint32_t i = 0; i < threads; i++) {
        shares[i] = (struct share){.bench = bench, .first = i * each, .count = each};
        if (i > 0 && pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) != 0)
            abort();
    }
    (void)run_share(&shares[0]);
    for (uint32_t i = 1; i < threads; i++)
        (void)pthread_join(shares[i].thread, NULL);
}

static void prepare_slices(struct bench *bench, const struct kernel *kernel)
{
    const struct update_function *const function = update_find(kernel->function);
    struct update_hyperparameters hyperparameters;

    if (update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL) != SUMAC_OK)
        abort();
    float *const *const array = bench->array;
    for (uint32_t i = 0; i < bench->slice_count; i++) {
        const size_t first = i * (SLICE_BYTES / sizeof(float));
        const size_t out = kernel->spare ? 4 : 0, slot_out = kernel->spare ? 5 : 2;
        bench->slices[i] = (struct update_slice){
            .function = function,
            .dtype = SUMAC_FLOAT32,
            .count = SLICE_BYTES / sizeof(float),
            .value_in = array[0] + first,
            .value_out = array[out] + first,
            .gradient = array[1] + first,
            .slot_in = {array[2] + first, array[3] + first},
            .slot_out = {array[slot_out] + first, array[slot_out + 1] + first},
        };
        update_prepare(function, SUMAC_FLOAT32, &hyperparameters, 1000, &bench->slices[i]);
    }
}

static void run_update(struct bench *bench, bool wide)
{
    if (!wide) {
        for (uint32_t i = 0; i < bench->slice_count; i++)
            update_run(&bench->slices[i]);
        return;
    }
    if (!compute_pool_submit(bench->pool, 1, bench->slices, bench->slice_count))
        abort();
    while (compute_pool_finished(bench->pool) == 0)
        (void)compute_pool_help(bench->pool);
}

static void run_copy(const struct bench *bench, bool finite)
{
    uint8_t *const out = (uint8_t *)bench->array[4];
    const uint8_t *const in = (const uint8_t *)bench->array[1];

    for (size_t at = 0; at < bench->bytes; at += CHUNK_BYTES) {
        if (!finite)
            memcpy(out + at, in + at, CHUNK_BYTES);
        else if (!update_copy_finite(SUMAC_FLOAT32, out + at, in + at, CHUNK_BYTES))
            abort();
    }
}

static void measure(struct bench *bench, struct kernel *kernel, uint32_t round)
{
    if (kernel->kind == UPDATE)
        prepare_slices(bench, kernel);
    const double start = now_seconds();
    switch (kernel->kind) {
    case TRIAD:
        run_triad(bench, kernel->wide ? bench->threads + 1 : 1);
        break;
    case UPDATE:
        run_update(bench, kernel->wide);
        break;
    case MEMCPY:
    case COPY_FINITE:
        run_copy(bench, kernel->kind == COPY_FINITE);
        break;
    }
    const double seconds = now_seconds() - start;
    kernel->gigabytes_per_second[round] =
        (double)bench->elements * kernel->bytes_per_element / seconds / 1e9;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void find_median(struct kernel *kernel, uint32_t rounds)
{
    qsort(kernel->gigabytes_per_second, rounds, sizeof(double), compare_doubles);
    kernel->median = kernel->gigabytes_per_second[rounds / 2];
}

#define ON(threads_wide)                                                                           \
    {"triad", TRIAD, 0, false, 12, threads_wide, {0}, 0},                                          \
        {"assign", UPDATE, UPDATE_ASSIGN, false, 8, threads_wide, {0}, 0},                         \
        {"assign_add", UPDATE, UPDATE_ASSIGN_ADD, false, 12, threads_wide, {0}, 0},                \
        {"sgd", UPDATE, UPDATE_SGD, false, 12, threads_wide, {0}, 0},                              \
        {"momentum", UPDATE, UPDATE_MOMENTUM, false, 20, threads_wide, {0}, 0},                    \
        {"adam", UPDATE, UPDATE_ADAM, false, 28, threads_wide, {0}, 0},                            \
        {"sgd spare", UPDATE, UPDATE_SGD, true, 12, threads_wide, {0}, 0},                         \
        {"momentum spare", UPDATE, UPDATE_MOMENTUM, true, 20, threads_wide, {0}, 0},               \
    {                                                                                              \
        "adam spare", UPDATE, UPDATE_ADAM, true, 28, threads_wide, {0}, 0                          \
    }

static struct kernel kernels[] = {
    ON(false),
    {"memcpy", MEMCPY, 0, false, 8, false, {0}, 0},
    {"copy_finite", COPY_FINITE, 0, false, 8, false, {0}, 0},
    ON(true),
};
#define KERNELS (sizeof kernels / sizeof kernels[0])

/* What a kernel is compared with: the triad on as many threads, or memcpy. */
static const struct kernel *yardstick(const struct kernel *kernel)
{
    for (size_t i = 0; i < KERNELS; i++) {
        const enum kind wanted = kernel->kind == COPY_FINITE ? MEMCPY : TRIAD;
        if (kernels[i].kind == wanted && kernels[i].wide == kernel->wide)
            return &kernels[i];
    }
    abort();
}

static void print_text(const struct bench *bench)
{
    printf(
        "%zu MiB arrays of float32, medians of %u rounds, %u thread%s beside the owner's\n",
        bench->bytes >> 20, bench->rounds, bench->threads, bench->threads == 1 ? "" : "s");
    printf("%-16s %8s %8s %8s\n", "kernel", "threads", "GB/s", "ratio");
    for (size_t i = 0; i < KERNELS; i++)
        printf(
            "%-16s %8u %8.2f %8.2f\n", kernels[i].name, kernels[i].wide ? bench->threads + 1 : 1,
            kernels[i].median, kernels[i].median / yardstick(&kernels[i])->median);
}

static void print_json(const struct bench *bench)
{
    printf(
        "{\"megabytes\": %zu, \"rounds\": %u, \"kernels\": [", bench->bytes >> 20, bench->rounds);
    for (size_t i = 0; i < KERNELS; i++)
        printf(
            "%s\n  {\"kernel\": \"%s\", \"threads\": %u, \"gigabytes_per_second\": %.3f, "
            "\"against\": \"%s\", \"ratio\": %.3f}",
            i == 0 ? "" : ",", kernels[i].name, kernels[i].wide ? bench->threads + 1 : 1,
            kernels[i].median, yardstick(&kernels[i])->name,
            kernels[i].median / yardstick(&kernels[i])->median);
    printf("\n]}\n");
}

static void make_arrays(struct bench *bench)
{
    bench->elements = bench->bytes / sizeof(float);
    bench->slice_count = (uint32_t)(bench->bytes / SLICE_BYTES);
    bench->slices = calloc(bench->slice_count, sizeof *bench->slices);
    wire_initializer draw = WIRE_INITIALIZER_INIT;
    draw.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_UNIFORM;
    draw.a = 0.25;
    draw.b = 1;
    for (uint32_t i = 0; i < ARRAYS; i++) {
        bench->array[i] = aligned_alloc(4096, bench->bytes);
        if (bench->array[i] == NULL || bench->slices == NULL) {
            fprintf(
                stderr, "bench/update: no memory for %u arrays of %zu bytes\n", ARRAYS,
                bench->bytes);
            exit(1);
        }
        draw.seed = i;
        initializer_fill(&draw, SUMAC_FLOAT32, 0, bench->elements, bench->array[i]);
    }
}

static bool read_options(int argc, char **argv, struct bench *bench, bool *json)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            *json = true;
            continue;
        }
        if (i + 1 == argc)
            return false;
        const unsigned long number = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--megabytes") == 0 && number >= 1 && number <= 4096)
            bench->bytes = number << 20;
        else if (strcmp(argv[i], "--rounds") == 0 && number >= 1 && number <= ROUNDS_MAX)
            bench->rounds = (uint32_t)number;
        else if (strcmp(argv[i], "--threads") == 0 && number < THREADS_MAX)
            bench->threads = (uint32_t)number;
        else
            return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct bench bench = {
        .bytes = (size_t)64 << 20,
        .rounds = 21,
        .threads = cores < 2   ? 0
                   : cores > 4 ? 3
                               : (uint32_t)(cores - 1),
    };
    bool json = false;

    if (!read_options(argc, argv, &bench, &json)) {
        fprintf(
            stderr, "usage: bench/update [--json] [--megabytes N] [--rounds N] [--threads N]\n");
        return 2;
    }
    make_arrays(&bench);
    if (!compute_pool_create(bench.threads, &bench.pool)) {
        fprintf(stderr, "bench/update: cannot start %u threads\n", bench.threads);
        return 1;
    }
    for (uint32_t round = 0; round < bench.rounds; round++)
        for (size_t i = 0; i < KERNELS; i++)
            measure(&bench, &kernels[i], round);
    for (size_t i = 0; i < KERNELS; i++)
        find_median(&kernels[i], bench.rounds);
    if (json)
        print_json(&bench);
    else
        print_text(&bench);
    compute_pool_destroy(bench.pool);
    for (uint32_t i = 0; i < ARRAYS; i++)
        free(bench.array[i]);
    free(bench.slices);
    return 0;
}
