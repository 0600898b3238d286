/* SPDX-License-Identifier: Apache-2.0 */
/* target_ps.c -- parameter servers, as a worker of the cluster that TF_CONFIG describes: `sumac run
 * -- PROGRAM FILE`.
 *
 * Every variable with rows is split in two, so that a function is seen to be the same over shards.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster_client.h"
#include "error.h"
#include "sumac/client.h"
#include "target.h"

static struct {
    struct sumac_client *client;
    const struct target_variable *definition;
    struct sumac_client_variable *variable;
} now;

static enum sumac_status open_target(struct sumac_error *error)
{
    now.client = cluster_client();
    return now.client != NULL ? SUMAC_OK
                              : fail(
                                    error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
                                    "--rpc is of a cluster, and TF_CONFIG describes none");
}

static void close_target(void) { now.client = NULL; }

/* A tensor over the bytes of a case's. Release its buffer with sumac_buffer_unref. */
static enum sumac_status wrap(
    const struct case_tensor *shape, void *data, struct sumac_tensor *tensor,
    struct sumac_error *error)
{
    struct sumac_buffer *buffer = NULL;
    const struct sumac_place place = {.kind = SUMAC_PLACE_HOST};
    enum sumac_status status = sumac_buffer_wrap(data, shape->bytes, place, NULL, NULL, &buffer);

    if (status == SUMAC_OK)
        status = sumac_tensor_view(buffer, 0, shape->dtype, &shape->shape, tensor);
    if (status == SUMAC_OK)
        return SUMAC_OK;
    sumac_buffer_unref(buffer);
    return fail(error, status, SUMAC_REASON_UNSPECIFIED, "no tensor over a case's bytes");
}

static enum sumac_status create(const struct target_variable *variable, struct sumac_error *error)
{
    struct sumac_function function = {.name = variable->function};
    const size_t count = variable->hyperparameter_count;

    now.definition = variable;
    for (size_t i = 0; i < count && i < SUMAC_HYPERPARAMETERS_MAX; i++)
        function.hyperparameters[i] = (struct sumac_hyperparameter){
            .name = variable->hyperparameters[i].name, .value = variable->hyperparameters[i].value};
    struct sumac_tensor initial;
    enum sumac_status status = wrap(variable->initial, variable->initial->data, &initial, error);
    if (status != SUMAC_OK)
        return status;
    const bool splits = variable->initial->shape.rank > 0;
    const struct sumac_client_variable_options options = {
        .name = variable->name,
        .dtype = variable->initial->dtype,
        .shape = variable->initial->shape,
        .initializer = SUMAC_INITIALIZER_ASSIGNED,
        .initial_value = &initial,
        .partitioner =
            {.kind = splits ? SUMAC_PARTITIONER_FIXED_SHARDS : SUMAC_PARTITIONER_NONE,
             .num_shards = splits ? 2 : 0},
        .function = function};
    status = sumac_client_variable_create(now.client, &options, &now.variable, error);
    sumac_buffer_unref(initial.buffer);
    return status;
}

static void delete_variable(void)
{
    struct sumac_error error = {0};

    if (now.variable != NULL &&
        sumac_client_variable_delete(now.client, now.definition->name, &error) != SUMAC_OK)
        fprintf(stderr, "%s\n", error.text);
    now.variable = NULL;
}

static enum sumac_status
push(const struct case_tensor *gradient, const struct sumac_tensor *rows, struct sumac_error *error)
{
    struct sumac_delta delta = {.variable = now.variable, .indices = rows};
    enum sumac_status status = wrap(gradient, gradient->data, &delta.value, error);

    if (status != SUMAC_OK)
        return status;
    const struct sumac_push_options options = {.allow_non_finite = true};
    status = sumac_client_push(now.client, &delta, 1, &options, NULL, error);
    sumac_buffer_unref(delta.value.buffer);
    return status;
}

static enum sumac_status push_dense(const struct case_tensor *gradient, struct sumac_error *error)
{
    return push(gradient, NULL, error);
}

static enum sumac_status push_rows(
    const struct case_tensor *values, const struct case_tensor *indices, struct sumac_error *error)
{
    const struct sumac_tensor rows =
        sumac_tensor_over(indices->data, indices->dtype, indices->shape);

    return push(values, &rows, error);
}

static enum sumac_status read_value(void *value, struct sumac_error *error)
{
    struct sumac_fetch fetch = {.variable = now.variable};
    enum sumac_status status = wrap(now.definition->initial, value, &fetch.into, error);

    if (status != SUMAC_OK)
        return status;
    struct sumac_pull *pull = NULL;
    status = sumac_client_pull(now.client, &fetch, 1, NULL, &pull, error);
    if (status == SUMAC_OK)
        status = sumac_pull_wait(pull, 60000, error);
    sumac_buffer_unref(fetch.into.buffer);
    return status;
}

const struct target target_ps = {
    .open = open_target,
    .close = close_target,
    .create = create,
    .delete = delete_variable,
    .push = push_dense,
    .push_rows = push_rows,
    .read = read_value};
