/* SPDX-License-Identifier: Apache-2.0 */
/* large.c -- a worker whose pushes are large: `large MIB VARIABLES PUSHES [synchronous]`.
 *
 * Each push adds 1 to every element of the variables, which have MIB together. Exits with 0 if the
 * last rows have what was pushed: by this worker at least, and of synchronous pushes by all of a
 * multiple of PUSHES. Says how long the pushes took. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/client.h"

#define COLUMNS 256u
#define VARIABLES_MAX 16u

struct task {
    struct sumac_client *client;
    struct sumac_client_variable *variables[VARIABLES_MAX];
    uint64_t rows;
    uint32_t variable_count, pushes;
    bool synchronous;
    float *ones;
};

static enum sumac_status create(struct task *task, struct sumac_error *error)
{
    struct sumac_client_variable_options options[VARIABLES_MAX] = {{0}};
    char names[VARIABLES_MAX][16];

    for (uint32_t i = 0; i < task->variable_count; i++) {
        (void)snprintf(names[i], sizeof names[i], "w%u", i);
        options[i] = (struct sumac_client_variable_options){
            .name = names[i],
            .dtype = SUMAC_FLOAT32,
            .shape = SUMAC_SHAPE(task->rows, COLUMNS),
            .aggregation = SUMAC_REDUCE_SUM,
            .function = {.name = "assign_add"}};
    }
    return sumac_client_variable_create_many(
        task->client, options, task->variable_count, task->variables, error);
}

static enum sumac_status push(struct task *task, struct sumac_error *error)
{
    const struct sumac_push_options options = {.synchronous = task->synchronous};
    struct sumac_delta deltas[VARIABLES_MAX] = {{0}};

    for (uint32_t i = 0; i < task->variable_count; i++)
        deltas[i] = (struct sumac_delta){
            .variable = task->variables[i],
            .value =
                sumac_tensor_over(task->ones, SUMAC_FLOAT32, SUMAC_SHAPE(task->rows, COLUMNS))};
    return sumac_client_push(task->client, deltas, task->variable_count, &options, NULL, error);
}

static enum sumac_status check(struct task *task, struct sumac_error *error)
{
    float row[COLUMNS] = {0};
    int64_t last = (int64_t)task->rows - 1;
    struct sumac_tensor indices = sumac_tensor_over(&last, SUMAC_INT64, SUMAC_SHAPE(1));
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < task->variable_count; i++) {
        const struct sumac_fetch fetch = {
            .variable = task->variables[i],
            .into = sumac_tensor_over(row, SUMAC_FLOAT32, SUMAC_SHAPE(1, COLUMNS)),
            .indices = &indices};
        status = sumac_client_pull(task->client, &fetch, 1, NULL, NULL, error);
        const uint32_t got = (uint32_t)row[COLUMNS - 1];
        const bool right = got >= task->pushes && (!task->synchronous || got % task->pushes == 0);
        if (status != SUMAC_OK || right)
            continue;
        (void)fprintf(stderr, "w%u has %u after %u pushes\n", i, got, task->pushes);
        exit(1);
    }
    return status;
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct sumac_error error = {0};
    struct task task = {.client = NULL};

    if (argc < 4)
        return 2;
    task.variable_count = (uint32_t)strtoul(argv[2], NULL, 10);
    if (task.variable_count == 0 || task.variable_count > VARIABLES_MAX)
        return 2;
    task.pushes = (uint32_t)strtoul(argv[3], NULL, 10);
    task.synchronous = argc > 4;
    task.rows = (strtoull(argv[1], NULL, 10) << 20) / task.variable_count / COLUMNS / sizeof(float);
    task.ones = malloc(task.rows * COLUMNS * sizeof(float));
    if (task.ones == NULL)
        return 2;
    for (uint64_t i = 0; i < task.rows * COLUMNS; i++)
        task.ones[i] = 1;
    enum sumac_status status = sumac_client_open(NULL, &task.client, &error);
    if (status == SUMAC_OK)
        status = create(&task, &error);
    const double began = now_s();
    for (uint32_t i = 0; status == SUMAC_OK && i < task.pushes; i++)
        status = push(&task, &error);
    if (status == SUMAC_OK)
        printf("%u pushes of %s MiB in %.3f s\n", task.pushes, argv[1], now_s() - began);
    if (status == SUMAC_OK)
        status = check(&task, &error);
    if (status == SUMAC_OK)
        status = sumac_client_leave(task.client, SUMAC_LEAVING_DONE, &error);
    if (status != SUMAC_OK)
        (void)fprintf(stderr, "%s\n", error.text);
    sumac_client_close(task.client);
    free(task.ones);
    return status == SUMAC_OK ? 0 : 1;
}
