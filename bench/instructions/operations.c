/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c -- `operations push|pull|step BYTES COUNT`: so many of them, one after the other, as
 * the cluster's only worker. A step is that of two replicas, which do nothing.
 *
 * TF_CONFIG names the cluster. What counts their instructions runs it twice with different counts:
 * the difference is the operations'.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sumac/worker.h"

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "operations: %s: %s\n", sumac_status_name(status), error->text);
    exit(1);
}

static struct sumac_client_variable *make_variable(struct sumac_client *client, uint64_t elements)
{
    struct sumac_client_variable *variable;
    struct sumac_error error;
    const struct sumac_client_variable_options options = {
        .name = "w",
        .dtype = SUMAC_FLOAT32,
        .shape = {.rank = 1, .extent = {elements}},
        .initializer = SUMAC_INITIALIZER_ZEROS,
        .function = {.name = "assign_add"}};

    check(sumac_client_variable_create(client, &options, &variable, &error), &error);
    return variable;
}

static struct sumac_tensor make_tensor(uint64_t elements)
{
    float *values = calloc(elements, sizeof *values);
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    const struct sumac_shape shape = {.rank = 1, .extent = {elements}};
    struct sumac_buffer *buffer;
    struct sumac_tensor tensor;

    if (values == NULL ||
        sumac_buffer_wrap(values, elements * sizeof *values, host, NULL, NULL, &buffer) !=
            SUMAC_OK ||
        sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, &tensor) != SUMAC_OK)
        exit(1);
    return tensor;
}

static void push(
    struct sumac_client *client, struct sumac_client_variable *variable, struct sumac_tensor tensor)
{
    const struct sumac_delta delta = {.variable = variable, .value = tensor};
    struct sumac_push *push;
    struct sumac_error error;

    check(sumac_client_push(client, &delta, 1, NULL, &push, &error), &error);
    check(sumac_push_wait(push, 60000, &error), &error);
}

static void pull(
    struct sumac_client *client, struct sumac_client_variable *variable, struct sumac_tensor tensor)
{
    const struct sumac_fetch fetch = {.variable = variable, .into = tensor};
    struct sumac_pull *pull;
    struct sumac_error error;

    check(sumac_client_pull(client, &fetch, 1, NULL, &pull, &error), &error);
    check(sumac_pull_wait(pull, 60000, &error), &error);
}

static enum sumac_status
do_nothing(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)replica, (void)context, (void)error; /* its gradients are zero as they were made */
    return SUMAC_OK;
}

static void
step(struct sumac_client *client, struct sumac_client_variable *variable, unsigned long count)
{
    struct sumac_worker *worker;
    struct sumac_error error;
    const struct sumac_worker_options options = {
        .client = client,
        .replicas = 2,
        .variables = &variable,
        .variable_count = 1,
        .step = do_nothing,
    };

    check(sumac_worker_create(&options, &worker, &error), &error);
    for (unsigned long i = 0; i < count; i++)
        check(sumac_worker_step(worker, &error), &error);
    check(sumac_worker_flush(worker, &error), &error);
    sumac_worker_destroy(worker);
}

int main(int argc, char **argv)
{
    struct sumac_client *client;
    struct sumac_cluster cluster;
    struct sumac_error error;

    if (argc != 4) {
        fprintf(stderr, "usage: operations push|pull|step BYTES COUNT\n");
        return 2;
    }
    const uint64_t elements = strtoull(argv[2], NULL, 10) / sizeof(float);
    const unsigned long count = strtoul(argv[3], NULL, 10);
    sumac_tune_malloc();
    check(sumac_cluster_from_environment(NULL, &cluster, &error), &error);
    const struct sumac_client_options options = {.cluster = &cluster};
    check(sumac_client_open(&options, &client, &error), &error);
    struct sumac_client_variable *variable = make_variable(client, elements);
    const struct sumac_tensor tensor = make_tensor(elements);
    const bool steps = strcmp(argv[1], "step") == 0;
    if (steps)
        step(client, variable, count);
    for (unsigned long i = 0; i < count && !steps; i++)
        strcmp(argv[1], "push") == 0 ? push(client, variable, tensor)
                                     : pull(client, variable, tensor);
    check(sumac_client_leave(client, SUMAC_LEAVING_DONE, &error), &error);
    sumac_client_close(client);
    sumac_cluster_deinit(&cluster);
    return 0;
}
