/* SPDX-License-Identifier: Apache-2.0 */
/* stepper.c -- a member that makes one synchronous step with the worker's loop, and says what came
 * of it.
 *
 *     stepper DTYPE BITS WEIGHT    a half type; the gradient's bits, in hexadecimal; its weight
 *
 * Two variables that begin with ones have the gradients of both their elements added to them: `sum`
 * has aggregation SUM and `mean` MEAN. Prints their bits after step 1: "sum 3c01 3c01, mean …".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sumac/cluster.h"
#include "sumac/worker.h"

#define ELEMENTS 2

struct task {
    struct sumac_client *client;
    struct sumac_client_variable *variables[2];
    uint16_t gradient;
    double weight;
};

static enum sumac_status
compute(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct task *task = context;

    (void)error;
    for (uint32_t v = 0; v < 2; v++) {
        uint16_t *gradient = sumac_tensor_data(sumac_replica_gradient(replica, v));
        for (uint32_t i = 0; i < ELEMENTS; i++)
            gradient[i] = task->gradient;
    }
    sumac_replica_set_weight(replica, task->weight);
    return SUMAC_OK;
}

static enum sumac_status create(struct task *task, const char *dtype, struct sumac_error *error)
{
    static const char *const names[] = {"sum", "mean"};
    static const enum sumac_reduce_op aggregations[] = {SUMAC_REDUCE_SUM, SUMAC_REDUCE_MEAN};
    enum sumac_status status = SUMAC_OK;

    for (uint32_t v = 0; status == SUMAC_OK && v < 2; v++) {
        const struct sumac_client_variable_options options = {
            .name = names[v],
            .dtype = sumac_dtype_parse(dtype),
            .shape = {.extent = {ELEMENTS}, .rank = 1},
            .aggregation = aggregations[v],
            .initializer = SUMAC_INITIALIZER_ONES,
            .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS},
            .function = {.name = "assign_add"}};
        status = sumac_client_variable_create(task->client, &options, &task->variables[v], error);
    }
    return status;
}

static enum sumac_status step(struct task *task, struct sumac_error *error)
{
    const struct sumac_worker_options options = {
        .client = task->client,
        .variables = task->variables,
        .variable_count = 2,
        .step = compute,
        .context = task,
        .synchronous = true};
    struct sumac_worker *worker = NULL;
    enum sumac_status status = sumac_worker_create(&options, &worker, error);

    if (status == SUMAC_OK)
        status = sumac_worker_step(worker, error);
    if (status == SUMAC_OK)
        status = sumac_worker_flush(worker, error);
    sumac_worker_destroy(worker);
    return status;
}

static enum sumac_status print(const struct task *task, struct sumac_error *error)
{
    const struct sumac_pull_options after = {.at_step = 1};
    struct sumac_fetch fetches[2];
    enum sumac_status status = SUMAC_OK;

    memset(fetches, 0, sizeof fetches);
    for (uint32_t v = 0; status == SUMAC_OK && v < 2; v++) {
        fetches[v].variable = task->variables[v];
        status = sumac_client_variable_tensor(task->variables[v], &fetches[v].into, error);
    }
    if (status == SUMAC_OK)
        status = sumac_client_pull(task->client, fetches, 2, &after, NULL, error);
    for (uint32_t v = 0; v < 2; v++) {
        const uint16_t *bits = status == SUMAC_OK ? sumac_tensor_data(&fetches[v].into) : NULL;
        if (bits != NULL)
            printf(
                "%s %04x %04x%s", v == 0 ? "sum" : "mean", bits[0], bits[1], v == 0 ? ", " : "\n");
        sumac_buffer_unref(fetches[v].into.buffer);
    }
    fflush(stdout);
    return status;
}

int main(int argc, char **argv)
{
    struct sumac_error error = {0};
    struct task task = {.client = NULL};

    if (argc != 4)
        return 2;
    task.gradient = (uint16_t)strtoul(argv[2], NULL, 16);
    task.weight = strtod(argv[3], NULL);
    enum sumac_status status = sumac_client_open(NULL, &task.client, &error);
    if (status == SUMAC_OK)
        status = create(&task, argv[1], &error);
    if (status == SUMAC_OK)
        status = step(&task, &error);
    if (status == SUMAC_OK)
        status = print(&task, &error);
    if (status == SUMAC_OK)
        status = sumac_client_leave(task.client, SUMAC_LEAVING_DONE, &error);
    if (status != SUMAC_OK)
        printf("%s %s\n", sumac_reason_name(error.reason), error.text);
    sumac_client_close(task.client);
    return sumac_exit_code(&error);
}
