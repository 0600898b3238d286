/* SPDX-License-Identifier: Apache-2.0 */
/* update.c -- `bench/update [--json] [--only TEXT] [--megabytes N] [--rounds N] [--threads N]`: how
 * near the update functions come to the memory's bandwidth.
 *
 * Every kernel (with --only, whose name has that text) runs once in each round, in turn, so that a
 * slow moment of the machine hits all alike; the medians over the rounds are compared with a
 * triad's of the same round count, on as many threads. GB/s is 1e9 bytes touched a second. Touched
 * bytes of an element are what the formula reads and writes: g; θ, which all but assign read, and
 * write; each slot, read and written, but delayed_nesterov's momentum, which between two of its
 * moves is read alone. An element of θ and g has 4 bytes, of a half type 2, of a slot 4:
 *
 *   triad       a = b + s·c       reads b, c              writes a           12
 *   assign      θ = g             reads g                 writes θ            8
 *   sgd         θ −= η·g          reads θ, g              writes θ           12, of a half type 6
 *   momentum                      reads θ, g, a           writes θ, a        20, of a half type 14
 *   adam                          reads θ, g, m, v        writes θ, m, v     28, of a half type 22
 *   copy        out = in          reads in                writes out          8
 *
 * In place, the line that is written was read before; into spare blocks, and in the triad, the
 * processor reads it as well (write-allocate: 16 bytes move for a triad's 12), which no column
 * counts. The work is cut into slices of 256 Ki elements, as a ps does it; copy_finite is compared
 * with memcpy, in pieces of 256 KiB, as they arrive.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compute_pool.h"

#define SLICE_ELEMENTS ((size_t)1 << 18)
#define CHUNK_BYTES ((size_t)1 << 18)
#define ROUNDS_MAX 101u
#define THREADS_MAX 64u
#define KERNELS_MAX 256u
#define NAME_BYTES 40u

/* θ, g and the slots, spare ones of θ and the slots but the last, and the half types' θ and g. */
enum { VALUE, GRADIENT, SLOT, SPARE = SLOT + UPDATE_SLOTS_MAX, ARRAYS = SPARE + UPDATE_SLOTS_MAX };
enum { HALF_VALUE, HALF_GRADIENT, HALVES };

enum kind { TRIAD, UPDATE, MEMCPY, COPY_FINITE };

struct kernel {
    char name[NAME_BYTES];
    enum kind kind;
    const struct update_function *function;
    struct update_hyperparameters hyperparameters;
    enum sumac_dtype dtype;
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
    uint16_t *half[2][HALVES]; /* of float16, of bfloat16 */
    struct update_slice *slices;
    uint32_t slice_count;
    struct compute_pool *pool;
};

static struct kernel kernels[KERNELS_MAX];
static size_t kernel_count;

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
        array[SPARE] + share->first, array[VALUE] + share->first, array[GRADIENT] + share->first,
        0.5f, share->count);
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

/* Every kernel begins with the same numbers, so that none is left what another made of them. */
static void fill_again(struct bench *bench)
{
    for (size_t i = 0; i < bench->elements; i++)
        bench->array[VALUE][i] = 0.5f;
    for (uint32_t slot = 0; slot < UPDATE_SLOTS_MAX; slot++)
        for (size_t i = 0; i < bench->elements; i++)
            bench->array[SLOT + slot][i] = 1;
}

static void prepare_slices(struct bench *bench, const struct kernel *kernel)
{
    const struct update_function *const function = kernel->function;
    const bool is_half = sumac_dtype_bytes(kernel->dtype) == 2;
    uint16_t *const *half = bench->half[kernel->dtype == SUMAC_BFLOAT16];
    float *const *array = bench->array;

    for (uint32_t i = 0; i < bench->slice_count; i++) {
        const size_t first = i * SLICE_ELEMENTS;
        struct update_slice *const slice = &bench->slices[i];
        *slice = (struct update_slice){
            .function = function,
            .dtype = kernel->dtype,
            .count = SLICE_ELEMENTS,
            .value_in = array[VALUE] + first,
            .value_out = array[kernel->spare ? SPARE : VALUE] + first,
            .gradient = array[GRADIENT] + first};
        if (is_half) {
            slice->value_in = slice->value_out = half[HALF_VALUE] + first;
            slice->gradient = half[HALF_GRADIENT] + first;
        }
        for (uint32_t s = 0; s < update_slot_count(function, &kernel->hyperparameters); s++) {
            slice->slot_in[s] = array[SLOT + s] + first;
            slice->slot_out[s] = array[kernel->spare ? SPARE + 1 + s : SLOT + s] + first;
        }
        update_prepare(function, kernel->dtype, &kernel->hyperparameters, 1001, slice);
    }
}

static void run_update(struct bench *bench, bool wide)
{
    if (!wide) {
        for (uint32_t i = 0; i < bench->slice_count; i++)
            update_run(&bench->slices[i]);
        return;
    }
    if (!compute_pool_submit(bench->pool, 1, bench->slices, NULL, bench->slice_count))
        abort();
    while (compute_pool_finished(bench->pool) == 0)
        (void)compute_pool_help(bench->pool);
}

static void run_copy(const struct bench *bench, bool finite)
{
    uint8_t *const out = (uint8_t *)bench->array[SPARE];
    const uint8_t *const in = (const uint8_t *)bench->array[GRADIENT];

    for (size_t at = 0; at < bench->bytes; at += CHUNK_BYTES) {
        if (!finite)
            memcpy(out + at, in + at, CHUNK_BYTES);
        else if (!update_copy_finite(SUMAC_FLOAT32, out + at, in + at, CHUNK_BYTES))
            abort();
    }
}

static void measure(struct bench *bench, struct kernel *kernel, uint32_t round)
{
    fill_again(bench);
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

static struct kernel *add(const char *name, enum kind kind, uint32_t bytes, bool wide)
{
    struct kernel *const kernel = &kernels[kernel_count++];

    if (kernel_count > KERNELS_MAX)
        abort();
    *kernel = (struct kernel){.kind = kind, .bytes_per_element = bytes, .wide = wide};
    (void)snprintf(kernel->name, sizeof kernel->name, "%s", name);
    return kernel;
}

static uint32_t touched_bytes(const struct kernel *kernel)
{
    const uint32_t slots = update_slot_count(kernel->function, &kernel->hyperparameters);
    const uint32_t of_value = kernel->function->number == UPDATE_ASSIGN ? 2 : 3;
    const uint32_t not_written = kernel->function->number == UPDATE_DELAYED_NESTEROV;

    return of_value * sumac_dtype_bytes(kernel->dtype) +
           (2 * slots - not_written) * sumac_dtype_bytes(update_slot_dtype(kernel->dtype));
}

/* A function with its defaults, but for one hyperparameter that `with` names (NULL: none). */
static void
add_update(const char *function, enum sumac_dtype dtype, bool wide, const char *with, double value)
{
    struct kernel *const kernel = add(function, UPDATE, 0, wide);

    kernel->function = update_find_by_name(function);
    kernel->dtype = dtype;
    if (update_hyperparameters_read(kernel->function, NULL, NULL, &kernel->hyperparameters, NULL) !=
        SUMAC_OK)
        abort();
    if (with != NULL)
        kernel->hyperparameters.value[update_hyperparameter_find(with)] = value;
    kernel->bytes_per_element = touched_bytes(kernel);
    if (dtype != SUMAC_FLOAT32)
        (void)snprintf(
            kernel->name, sizeof kernel->name, "%s %s", function, sumac_dtype_name(dtype));
    else if (with != NULL)
        (void)snprintf(kernel->name, sizeof kernel->name, "%s %s %g", function, with, value);
}

static void add_spare(const char *function, bool wide)
{
    add_update(function, SUMAC_FLOAT32, wide, NULL, 0);
    struct kernel *const kernel = &kernels[kernel_count - 1];
    kernel->spare = true;
    (void)snprintf(kernel->name, sizeof kernel->name, "%s spare", function);
}

static void add_kernels(bool wide)
{
    const struct update_function *function = NULL;

    (void)add("triad", TRIAD, 12, wide);
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        add_update(function->name, SUMAC_FLOAT32, wide, NULL, 0);
    add_update("momentum", SUMAC_FLOAT32, wide, "nesterov", 1);
    add_update("rmsprop", SUMAC_FLOAT32, wide, "centered", 1);
    add_update("ftrl", SUMAC_FLOAT32, wide, "learning_rate_power", -0.3);
    add_spare("sgd", wide);
    add_spare("momentum", wide);
    add_spare("adam", wide);
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++) {
        add_update(function->name, SUMAC_FLOAT16, wide, NULL, 0);
        add_update(function->name, SUMAC_BFLOAT16, wide, NULL, 0);
    }
    if (wide)
        return;
    (void)add("memcpy", MEMCPY, 8, false);
    (void)add("copy_finite", COPY_FINITE, 8, false);
}

/* Of the kernels, the yardsticks and those whose name has the text. */
static void choose(const char *only)
{
    size_t kept = 0;

    for (size_t i = 0; i < kernel_count; i++)
        if (kernels[i].kind == TRIAD || kernels[i].kind == MEMCPY ||
            strstr(kernels[i].name, only) != NULL)
            kernels[kept++] = kernels[i];
    kernel_count = kept;
}

/* What a kernel is compared with: the triad on as many threads, or memcpy. */
static const struct kernel *yardstick(const struct kernel *kernel)
{
    for (size_t i = 0; i < kernel_count; i++) {
        const enum kind wanted = kernel->kind == COPY_FINITE ? MEMCPY : TRIAD;
        if (kernels[i].kind == wanted && kernels[i].wide == kernel->wide)
            return &kernels[i];
    }
    abort();
}

static void print_text(const struct bench *bench)
{
    printf(
        "%zu Mi elements, medians of %u rounds, %u thread%s beside the owner's\n",
        bench->elements >> 20, bench->rounds, bench->threads, bench->threads == 1 ? "" : "s");
    printf("%-32s %8s %8s %8s\n", "kernel", "threads", "GB/s", "ratio");
    for (size_t i = 0; i < kernel_count; i++)
        printf(
            "%-32s %8u %8.2f %8.2f\n", kernels[i].name, kernels[i].wide ? bench->threads + 1 : 1,
            kernels[i].median, kernels[i].median / yardstick(&kernels[i])->median);
}

static void print_json(const struct bench *bench)
{
    printf(
        "{\"megabytes\": %zu, \"rounds\": %u, \"kernels\": [", bench->bytes >> 20, bench->rounds);
    for (size_t i = 0; i < kernel_count; i++)
        printf(
            "%s\n  {\"kernel\": \"%s\", \"threads\": %u, \"gigabytes_per_second\": %.3f, "
            "\"against\": \"%s\", \"ratio\": %.3f}",
            i == 0 ? "" : ",", kernels[i].name, kernels[i].wide ? bench->threads + 1 : 1,
            kernels[i].median, yardstick(&kernels[i])->name,
            kernels[i].median / yardstick(&kernels[i])->median);
    printf("\n]}\n");
}

static void *make_array(size_t bytes, enum sumac_dtype dtype, size_t elements, uint64_t seed)
{
    void *const array = aligned_alloc(4096, bytes);
    wire_initializer draw = WIRE_INITIALIZER_INIT;

    if (array == NULL) {
        fprintf(stderr, "bench/update: no memory for an array of %zu bytes\n", bytes);
        exit(1);
    }
    draw.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_UNIFORM;
    draw.a = 0.25;
    draw.b = 1;
    draw.seed = seed;
    initializer_fill(&draw, dtype, 0, elements, array);
    return array;
}

static void make_arrays(struct bench *bench)
{
    bench->elements = bench->bytes / sizeof(float);
    bench->slice_count = (uint32_t)(bench->elements / SLICE_ELEMENTS);
    bench->slices = calloc(bench->slice_count, sizeof *bench->slices);
    if (bench->slices == NULL)
        abort();
    for (uint32_t i = 0; i < ARRAYS; i++)
        bench->array[i] = make_array(bench->bytes, SUMAC_FLOAT32, bench->elements, i);
    for (uint32_t i = 0; i < 2 * HALVES; i++)
        bench->half[i / HALVES][i % HALVES] = make_array(
            bench->bytes / 2, i < HALVES ? SUMAC_FLOAT16 : SUMAC_BFLOAT16, bench->elements, i);
}

static void free_arrays(struct bench *bench)
{
    for (uint32_t i = 0; i < ARRAYS; i++)
        free(bench->array[i]);
    for (uint32_t i = 0; i < 2 * HALVES; i++)
        free(bench->half[i / HALVES][i % HALVES]);
    free(bench->slices);
}

static bool read_options(int argc, char **argv, struct bench *bench, bool *json, const char **only)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            *json = true;
            continue;
        }
        if (i + 1 == argc)
            return false;
        if (strcmp(argv[i], "--only") == 0) {
            *only = argv[++i];
            continue;
        }
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
    const char *only = NULL;

    if (!read_options(argc, argv, &bench, &json, &only)) {
        fprintf(
            stderr, "usage: bench/update [--json] [--only TEXT] [--megabytes N] [--rounds N] "
                    "[--threads N]\n");
        return 2;
    }
    add_kernels(false);
    add_kernels(true);
    if (only != NULL)
        choose(only);
    make_arrays(&bench);
    if (!compute_pool_create(bench.threads, &bench.pool)) {
        fprintf(stderr, "bench/update: cannot start %u threads\n", bench.threads);
        return 1;
    }
    for (uint32_t round = 0; round < bench.rounds; round++)
        for (size_t i = 0; i < kernel_count; i++)
            measure(&bench, &kernels[i], round);
    for (size_t i = 0; i < kernel_count; i++)
        find_median(&kernels[i], bench.rounds);
    if (json)
        print_json(&bench);
    else
        print_text(&bench);
    compute_pool_destroy(bench.pool);
    free_arrays(&bench);
    return 0;
}
