/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c -- `bench/expression [--json] [--megabytes N] [--rounds N]`: how near expressions
 * come to the memory's bandwidth, and to the built-in functions that they are the texts of.
 *
 * Each kernel runs once in each round, in turn, on one thread, over arrays of float32 in slices of
 * 1 MiB; the medians over the rounds are compared with a triad's (a = b + s·c). GB/s is 1e9 bytes
 * touched a second: what the formula reads and writes, 4 bytes each (triad and sgd 12, momentum and
 * lion 20, adam 28). Each slice is planned anew, as a push is.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expression.h"
#include "expression_rows.h"
#include "update.h"

#define SLICE_BYTES ((size_t)1 << 20)
#define ROUNDS_MAX 101u
#define ARRAYS 4u /* θ, g, and two slots */

struct kernel {
    const char *name; /* of an expression, or of a built-in function */
    bool is_expression;
    uint32_t bytes_per_element;
    struct expression expression;
    double gigabytes_per_second[ROUNDS_MAX];
    double median;
};

static struct kernel kernels[] = {
    {.name = "triad", .bytes_per_element = 12},
    {.name = "sgd", .bytes_per_element = 12},
    {.name = "sgd", .bytes_per_element = 12, .is_expression = true},
    {.name = "momentum", .bytes_per_element = 20},
    {.name = "momentum", .bytes_per_element = 20, .is_expression = true},
    {.name = "adam", .bytes_per_element = 28},
    {.name = "adam", .bytes_per_element = 28, .is_expression = true},
    {.name = "lion", .bytes_per_element = 20},
    {.name = "lion", .bytes_per_element = 20, .is_expression = true},
};
#define KERNELS (sizeof kernels / sizeof kernels[0])

static size_t bytes = (size_t)64 << 20;
static uint32_t rounds = 21;
static float *arrays[ARRAYS];

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

static void run_expression(const struct kernel *kernel, size_t first, uint64_t count)
{
    struct expression_plan plan;
    const struct expression_slice slice = {
        .count = count,
        .value_in = arrays[0] + first,
        .value_out = arrays[0] + first,
        .gradient = arrays[1] + first,
        .gradient_dtype = SUMAC_FLOAT32,
        .slot_in = {arrays[2] + first, arrays[3] + first},
        .slot_out = {arrays[2] + first, arrays[3] + first}};

    expression_plan(&kernel->expression, SUMAC_FLOAT32, kernel->expression.defaults, 1000, &plan);
    expression_run(&plan, &slice);
}

static void run_built_in(const struct kernel *kernel, size_t first, uint64_t count)
{
    struct update_hyperparameters hyperparameters;
    struct update_slice slice = {
        .function = update_find_by_name(kernel->name),
        .dtype = SUMAC_FLOAT32,
        .count = count,
        .value_in = arrays[0] + first,
        .value_out = arrays[0] + first,
        .gradient = arrays[1] + first,
        .slot_in = {arrays[2] + first, arrays[3] + first},
        .slot_out = {arrays[2] + first, arrays[3] + first}};

    if (update_hyperparameters_read(slice.function, NULL, NULL, &hyperparameters, NULL) != SUMAC_OK)
        abort();
    update_prepare(slice.function, SUMAC_FLOAT32, &hyperparameters, 1000, &slice);
    update_run(&slice);
}

static void measure(struct kernel *kernel, uint32_t round)
{
    const size_t elements = bytes / sizeof(float), some = SLICE_BYTES / sizeof(float);
    const double start = now_seconds();

    for (size_t first = 0; first < elements; first += some) {
        if (kernel->is_expression)
            run_expression(kernel, first, some);
        else if (update_find_by_name(kernel->name) != NULL)
            run_built_in(kernel, first, some);
        else
            triad(arrays[3] + first, arrays[1] + first, arrays[2] + first, 0.5f, some);
    }
    kernel->gigabytes_per_second[round] =
        (double)elements * kernel->bytes_per_element / (now_seconds() - start) / 1e9;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void read_text(struct kernel *kernel)
{
    const struct expression_row *row = NULL;
    struct sumac_error error;

    for (size_t i = 0; i < EXPRESSION_ROWS; i++)
        if (strcmp(expression_rows[i].name, kernel->name) == 0)
            row = &expression_rows[i];
    if (row == NULL)
        abort();
    if (expression_read(row->text, strlen(row->text), &kernel->expression, &error) != SUMAC_OK) {
        fprintf(stderr, "bench/expression: %s: %s\n", row->name, error.text);
        exit(1);
    }
}

static void begin(void)
{
    wire_initializer draw = WIRE_INITIALIZER_INIT;

    draw.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_UNIFORM;
    draw.a = 0.25;
    draw.b = 1;
    for (uint32_t i = 0; i < ARRAYS; i++) {
        arrays[i] = aligned_alloc(4096, bytes);
        if (arrays[i] == NULL) {
            fprintf(stderr, "bench/expression: no memory for %u arrays of %zu\n", ARRAYS, bytes);
            exit(1);
        }
        draw.seed = i;
        initializer_fill(&draw, SUMAC_FLOAT32, 0, bytes / sizeof(float), arrays[i]);
    }
    for (size_t i = 0; i < KERNELS; i++)
        if (kernels[i].is_expression)
            read_text(&kernels[i]);
}

static bool read_options(int argc, char **argv, bool *json)
{
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--json") == 0) {
            *json = true;
            i--;
            continue;
        }
        if (i + 1 == argc)
            return false;
        const unsigned long number = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--megabytes") == 0 && number >= 1 && number <= 4096)
            bytes = number << 20;
        else if (strcmp(argv[i], "--rounds") == 0 && number >= 1 && number <= ROUNDS_MAX)
            rounds = (uint32_t)number;
        else
            return false;
    }
    return true;
}

static void print(bool json)
{
    printf(
        json ? "{\"megabytes\": %zu, \"rounds\": %u, \"kernels\": [\n"
             : "%zu MiB arrays of float32, medians of %u rounds, one thread\n",
        bytes >> 20, rounds);
    if (!json)
        printf("%-24s %8s %8s\n", "kernel", "GB/s", "ratio");
    for (size_t i = 0; i < KERNELS; i++) {
        struct kernel *const kernel = &kernels[i];
        char name[32];
        qsort(kernel->gigabytes_per_second, rounds, sizeof(double), compare_doubles);
        kernel->median = kernel->gigabytes_per_second[rounds / 2];
        (void)snprintf(
            name, sizeof name, "%s%s", kernel->name, kernel->is_expression ? " expression" : "");
        const double ratio = kernel->median / kernels[0].median;
        if (json)
            printf(
                "  {\"kernel\": \"%s\", \"gigabytes_per_second\": %.3f, \"ratio\": %.3f}%s\n", name,
                kernel->median, ratio, i + 1 < KERNELS ? "," : "");
        else
            printf("%-24s %8.2f %8.2f\n", name, kernel->median, ratio);
    }
    if (json)
        printf("]}\n");
}

int main(int argc, char **argv)
{
    bool json = false;

    if (!read_options(argc, argv, &json)) {
        fprintf(stderr, "usage: bench/expression [--json] [--megabytes N] [--rounds N]\n");
        return 2;
    }
    begin();
    for (uint32_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < KERNELS; i++)
            measure(&kernels[i], round);
    print(json);
    for (uint32_t i = 0; i < ARRAYS; i++)
        free(arrays[i]);
    return 0;
}
