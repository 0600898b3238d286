/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- `sumac run --ps 1 --workers 1 -- scale_worker COUNT…`: does what an operation costs
 * depend on how many variables there are?
 *
 * For each COUNT, ascending: variables of 256 bytes are created in one call until there are so
 * many; then OPERATIONS more creates, look-ups by name (of a client that has not asked for them
 * yet), pushes and pulls of 256 bytes are timed, of variables all over the catalogue, and the
 * creates are deleted again. Prints a line for each COUNT: the one call, in milliseconds, and
 * medians, in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/client.h"

#define ELEMENTS 64u
#define OPERATIONS 2000u
#define COUNT_MAX 100000u

enum { CREATE, FIND, PUSH, PULL, KINDS };

struct scale {
    struct sumac_client *client;
    struct sumac_client_variable *variables[COUNT_MAX];
    struct sumac_tensor tensor;
    unsigned long made;
};

static double samples[KINDS][OPERATIONS];

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "scale: %s\n", error->text);
    exit(sumac_exit_code(error));
}

static struct sumac_client_variable_options options_of(const char *name)
{
    return (struct sumac_client_variable_options){
        .name = name,
        .dtype = SUMAC_FLOAT32,
        .shape = {.rank = 1, .extent = {ELEMENTS}},
        .function = {.name = "assign_add"}};
}

static struct sumac_client_variable *
create(struct sumac_client *client, const char *kind, unsigned long number)
{
    struct sumac_client_variable *variable;
    struct sumac_error error;
    char name[64];

    (void)snprintf(name, sizeof name, "layer_%lu/%s", number, kind);
    const struct sumac_client_variable_options options = options_of(name);
    check(sumac_client_variable_create(client, &options, &variable, &error), &error);
    return variable;
}

/* Of one operation, all over the catalogue: a prime step visits all of it. */
static struct sumac_client_variable *any(const struct scale *scale, unsigned long i)
{
    return scale->variables[i * 7919 % scale->made];
}

static void push(struct scale *scale, struct sumac_client_variable *variable)
{
    const struct sumac_delta delta = {.variable = variable, .value = scale->tensor};
    struct sumac_error error;

    check(sumac_client_push(scale->client, &delta, 1, NULL, NULL, &error), &error);
}

static void pull(struct scale *scale, struct sumac_client_variable *variable)
{
    const struct sumac_fetch fetch = {.variable = variable, .into = scale->tensor};
    struct sumac_error error;

    check(sumac_client_pull(scale->client, &fetch, 1, NULL, NULL, &error), &error);
}

static void time_creates(struct scale *scale)
{
    struct sumac_error error;

    for (unsigned long i = 0; i < OPERATIONS; i++) {
        const double start_us = now_us();
        (void)create(scale->client, "timed", i);
        samples[CREATE][i] = now_us() - start_us;
    }
    for (unsigned long i = 0; i < OPERATIONS; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "layer_%lu/timed", i);
        check(sumac_client_variable_delete(scale->client, name, &error), &error);
    }
}

/* A client that is new knows no variable; of few variables each is asked for by several such. */
static void time_finds(const struct scale *scale)
{
    const struct sumac_client_options options = {.reader = true};
    struct sumac_client *reader = NULL;
    struct sumac_error error;

    for (unsigned long i = 0; i < OPERATIONS; i++) {
        struct sumac_client_variable *found;
        if (i % scale->made == 0) {
            sumac_client_close(reader);
            check(sumac_client_open(&options, &reader, &error), &error);
        }
        const char *name = sumac_client_variable_name(any(scale, i));
        const double start_us = now_us();
        check(sumac_client_variable_find(reader, name, &found, &error), &error);
        samples[FIND][i] = now_us() - start_us;
    }
    sumac_client_close(reader);
}

static void time_values(struct scale *scale)
{
    for (unsigned long i = 0; i < OPERATIONS; i++) {
        const double start_us = now_us();
        push(scale, any(scale, i));
        const double pushed_us = now_us();
        pull(scale, any(scale, i));
        samples[PUSH][i] = pushed_us - start_us;
        samples[PULL][i] = now_us() - pushed_us;
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, OPERATIONS, sizeof *values, compare);
    return values[OPERATIONS / 2];
}

/* In one call. How long it took. */
static double create_until(struct scale *scale, unsigned long count)
{
    static struct sumac_client_variable_options options[COUNT_MAX];
    static char names[COUNT_MAX][32];
    struct sumac_error error;
    const unsigned long more = count > scale->made ? count - scale->made : 0;

    for (unsigned long i = 0; i < more; i++) {
        (void)snprintf(names[i], sizeof names[i], "layer_%lu/kernel", scale->made + i);
        options[i] = options_of(names[i]);
    }
    const double start_us = now_us();
    check(
        sumac_client_variable_create_many(
            scale->client, options, more, scale->variables + scale->made, &error),
        &error);
    scale->made += more;
    return now_us() - start_us;
}

int main(int argc, char **argv)
{
    static struct scale scale;
    struct sumac_error error;
    const struct sumac_client_options options = {0};

    sumac_tune_malloc();
    check(sumac_client_open(&options, &scale.client, &error), &error);
    for (int i = 1; i < argc; i++) {
        const unsigned long count = strtoul(argv[i], NULL, 10);
        if (count == 0 || count > COUNT_MAX) {
            fprintf(stderr, "scale: %s variables; 1 to %u can be asked for\n", argv[i], COUNT_MAX);
            return 2;
        }
        const double made_us = create_until(&scale, count);
        if (scale.tensor.buffer == NULL)
            check(sumac_client_variable_tensor(scale.variables[0], &scale.tensor, &error), &error);
        time_creates(&scale);
        time_finds(&scale);
        time_values(&scale);
        printf(
            "%9lu %9.1f %9.1f %9.1f %9.1f %9.1f\n", count, made_us / 1000, median(samples[CREATE]),
            median(samples[FIND]), median(samples[PUSH]), median(samples[PULL]));
        (void)fflush(stdout);
    }
    check(sumac_client_leave(scale.client, SUMAC_LEAVING_DONE, &error), &error);
    sumac_client_close(scale.client);
    sumac_buffer_unref(scale.tensor.buffer);
    return 0;
}
