/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c -- `bench/rows [--rows N] [--pushes N]`: what a push by rows costs beside a bare loop.
 *
 * A table of float32 rows of 64 with adagrad, in huge pages, as a ps has it (server/huge_pages.h);
 * each push has 4096 rows, drawn from the first 10⁶ of them (or from all, of a smaller table). The
 * bare loop goes through them as they come, reads a row, its slot and its gradient, and writes
 * both: it neither knows of repeated rows nor checks any. A push is put in the order of its rows,
 * and then applied as a ps does it, in slices of 256 KiB. Both run in turn on the same tables,
 * whose sizes differ by ten; medians over the pushes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "update.h"

#define COLUMNS 64u
#define ROW_BYTES (COLUMNS * sizeof(float))
#define ROWS_PER_PUSH 4096u
#define ROWS_PER_SLICE 1024u
#define DRAWN_FROM_MAX 1000000u
#define PUSHES_MAX 1001u
#define HUGE_PAGE_BYTES 2097152u

struct bench {
    uint64_t rows; /* of the table at hand */
    float *values, *slots, *gradients;
    int64_t *indices;
    uint64_t *keys;
    struct update_row *row;
    struct update_slice slice;
    uint64_t state;
};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* The yardstick may use what the loops may. */
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
run_bare(const struct bench *bench, float rate, float epsilon)
{
    for (uint32_t i = 0; i < ROWS_PER_PUSH; i++) {
        float *restrict value = bench->values + (uint64_t)bench->indices[i] * COLUMNS;
        float *restrict slot = bench->slots + (uint64_t)bench->indices[i] * COLUMNS;
        const float *restrict gradient = bench->gradients + i * COLUMNS;
        for (uint32_t j = 0; j < COLUMNS; j++) {
            const float a = slot[j] + gradient[j] * gradient[j];
            slot[j] = a;
            value[j] -= rate * gradient[j] / (sqrtf(a) + epsilon);
        }
    }
}

static void run_push(struct bench *bench)
{
    for (uint32_t i = 0; i < ROWS_PER_PUSH; i++)
        bench->keys[i] = update_row_key((uint64_t)bench->indices[i], i);
    update_rows_order(bench->keys, bench->keys + ROWS_PER_PUSH, ROWS_PER_PUSH);
    for (uint32_t i = 0; i < ROWS_PER_PUSH; i++) {
        const uint64_t row = update_row_of(bench->keys[i]);
        bench->row[i].at[0] = (uint8_t *)(bench->values + row * COLUMNS);
        bench->row[i].at[1] = (uint8_t *)(bench->slots + row * COLUMNS);
        bench->row[i].gradient =
            (const uint8_t *)(bench->gradients + update_place_of(bench->keys[i]) * COLUMNS);
    }
    for (uint32_t first = 0, end; first < ROWS_PER_PUSH; first = end) {
        end = first + ROWS_PER_SLICE;
        while (end < ROWS_PER_PUSH && bench->row[end].at[0] == bench->row[end - 1].at[0])
            end++; /* a row's occurrences stay together */
        if (end > ROWS_PER_PUSH)
            end = ROWS_PER_PUSH;
        bench->slice.rows = bench->row + first;
        bench->slice.row_count = end - first;
        update_run(&bench->slice);
    }
}

static void draw(struct bench *bench)
{
    const uint64_t from = bench->rows < DRAWN_FROM_MAX ? bench->rows : DRAWN_FROM_MAX;
    const uint64_t apart = bench->rows / from; /* anywhere in the table */

    for (uint32_t i = 0; i < ROWS_PER_PUSH; i++) {
        bench->state = bench->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bench->indices[i] = (int64_t)((bench->state >> 33) % from * apart);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(struct bench *bench, uint32_t pushes)
{
    static double bare_us[PUSHES_MAX], push_us[PUSHES_MAX];

    for (uint32_t i = 0; i < pushes; i++) {
        draw(bench);
        const double start = now_us();
        run_bare(bench, 0.001f, 1e-7f);
        bare_us[i] = now_us() - start;
        draw(bench);
        const double again = now_us();
        run_push(bench);
        push_us[i] = now_us() - again;
    }
    qsort(bare_us, pushes, sizeof *bare_us, compare_doubles);
    qsort(push_us, pushes, sizeof *push_us, compare_doubles);
    const double bare = bare_us[pushes / 2], push = push_us[pushes / 2];
    printf(
        "%10" PRIu64
        " rows: bare %7.1f us, push %7.1f us, %5.1f M rows/s, %.2f x the bare loop's speed\n",
        bench->rows, bare, push, ROWS_PER_PUSH / push, bare / push);
}

/* In huge pages, as the blocks of a variable are. NULL: no memory. */
static void *take_table(uint64_t bytes)
{
    const uint64_t whole = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    void *table = aligned_alloc(HUGE_PAGE_BYTES, whole);

    if (table != NULL)
        (void)madvise(table, whole, MADV_HUGEPAGE);
    return table;
}

static void make(struct bench *bench, uint64_t rows_max)
{
    struct update_hyperparameters hyperparameters;
    const struct update_function *function = update_find(UPDATE_ADAGRAD);

    bench->values = take_table(rows_max * ROW_BYTES);
    bench->slots = take_table(rows_max * ROW_BYTES);
    bench->gradients = aligned_alloc(4096, ROWS_PER_PUSH * ROW_BYTES);
    bench->indices = calloc(ROWS_PER_PUSH, sizeof *bench->indices);
    bench->keys = calloc(2 * ROWS_PER_PUSH, sizeof *bench->keys);
    bench->row = calloc(ROWS_PER_PUSH, sizeof *bench->row);
    if (bench->values == NULL || bench->slots == NULL || bench->gradients == NULL ||
        bench->indices == NULL || bench->keys == NULL || bench->row == NULL ||
        update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL) != SUMAC_OK) {
        (void)fprintf(stderr, "bench/rows: no memory\n");
        exit(1);
    }
    memset(bench->values, 0, rows_max * ROW_BYTES);
    for (uint64_t i = 0; i < rows_max * COLUMNS; i++)
        bench->slots[i] = 0.1f;
    for (uint32_t i = 0; i < ROWS_PER_PUSH * COLUMNS; i++)
        bench->gradients[i] = (float)i / ROWS_PER_PUSH - 8;
    bench->slice = (struct update_slice){
        .function = function, .dtype = SUMAC_FLOAT32, .count = COLUMNS, .divisor = 1};
    update_prepare(function, SUMAC_FLOAT32, &hyperparameters, 1, &bench->slice);
}

int main(int argc, char **argv)
{
    struct bench bench = {.state = 1};
    uint64_t rows_max = 10000000;
    uint32_t pushes = 301;

    for (int i = 1; i + 1 < argc; i += 2) {
        const unsigned long number = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--rows") == 0 && number >= ROWS_PER_PUSH)
            rows_max = number;
        else if (strcmp(argv[i], "--pushes") == 0 && number >= 1 && number <= PUSHES_MAX)
            pushes = (uint32_t)number;
    }
    make(&bench, rows_max);
    for (uint64_t rows = rows_max / 100; rows <= rows_max; rows *= 10) {
        bench.rows = rows;
        measure(&bench, pushes);
    }
    free(bench.values);
    free(bench.slots);
    free(bench.gradients);
    free(bench.indices);
    free(bench.keys);
    free(bench.row);
    return 0;
}
