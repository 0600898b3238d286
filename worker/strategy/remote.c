/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c -- variables of a strategy that live on the ps, one for all workers: created or found
 * there, pushed to, pulled.
 *
 * What is pushed is waited for, so that a pull after it has it, from whichever thread. A push that
 * is not over when the client's time is goes on without its waiter, and keeps what it reads.
 */
#include <assert.h>
#include <stdlib.h>

#include "distributed.h"
#include "error.h"
#include "push.h"

static struct sumac_client *client_of(const struct sumac_distributed *variable)
{
    assert(variable->strategy->options.client != NULL);
    return variable->strategy->options.client;
}

/* ---- created */

enum sumac_status remote_create(
    struct sumac_distributed *variable, const struct sumac_distributed_options *asked,
    const struct sumac_value *initial, struct sumac_error *error)
{
    assert(initial->kind == SUMAC_VALUE_TENSOR);
    assert(variable->remote == NULL);
    /* its own bytes: a create that is not over in time goes on, and keeps them */
    struct sumac_value *own = sumac_value_copy(&initial->tensor);
    if (own == NULL)
        return value_fail_for_memory(error);
    /* what replicas push is aggregated here, so of aggregation and synchronization a ps knows
     * nothing */
    const struct sumac_variable_options options = {
        .name = variable->name,
        .dtype = variable->dtype,
        .shape = variable->shape,
        .not_trainable = !variable->trainable,
        .initializer = SUMAC_INITIALIZER_ASSIGNED,
        .initial_value = &own->tensor,
        .partitioner = asked->partitioner.kind,
        .num_shards = asked->partitioner.num_shards,
        .min_shard_bytes = asked->partitioner.min_shard_bytes,
        .max_shards = asked->partitioner.max_shards,
        .max_shard_bytes = asked->partitioner.max_shard_bytes,
        .function = asked->function,
        .colocate_with = asked->colocate_with == NULL ? NULL : asked->colocate_with->name};
    const enum sumac_status status =
        sumac_client_create(client_of(variable), &options, &variable->remote, error);
    sumac_value_unref(own);
    return status;
}

/* ---- read */

enum sumac_status remote_read(
    const struct sumac_distributed *variable, struct sumac_value **value, struct sumac_error *error)
{
    void *elements;
    struct sumac_value *read = value_make_tensor(variable->dtype, &variable->shape, &elements);

    assert(variable->remote != NULL);
    if (read == NULL)
        return value_fail_for_memory(error);
    const struct sumac_fetch fetch = {.variable = variable->remote, .into = read->tensor};
    const enum sumac_status status =
        sumac_client_pull_and_wait(client_of(variable), &fetch, 1, NULL, error);
    if (status == SUMAC_OK)
        *value = read;
    else
        sumac_value_unref(read);
    return status;
}

/* ---- changed */

/* A ps takes indices of one type. NULL: no memory. */
static struct sumac_value *wide_indices(const struct sumac_value *slices)
{
    struct sumac_value *given = slices->items[1];
    const int32_t *from = sumac_tensor_data(&given->tensor);
    void *elements;

    assert(given->tensor.shape.rank == 1);
    if (given->tensor.dtype == SUMAC_INT64)
        return sumac_value_ref(given);
    assert(given->tensor.dtype == SUMAC_INT32);
    struct sumac_value *wide = value_make_tensor(SUMAC_INT64, &given->tensor.shape, &elements);
    for (uint64_t i = 0; wide != NULL && i < given->tensor.shape.extent[0]; i++)
        ((int64_t *)elements)[i] = from[i];
    return wide;
}

/* Makes the operand's delta; *indices, of slices, are what it points to. false: no memory. */
static bool make_delta(
    const struct sumac_distributed *variable, const struct sumac_value *operand,
    struct sumac_delta *delta, struct sumac_value **indices)
{
    delta->variable = variable->remote;
    if (operand->kind != SUMAC_VALUE_SLICES) {
        delta->value = operand->tensor;
        return true;
    }
    *indices = wide_indices(operand);
    if (*indices == NULL)
        return false;
    delta->value = operand->items[0]->tensor;
    delta->indices = &(*indices)->tensor;
    return true;
}

static void let_go(void *operands) { sumac_value_unref(operands); }

/* A buffer of no bytes that has a reference of each. NULL: no memory. */
static struct sumac_buffer *hold(struct sumac_value *const *operands, uint32_t count)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    struct sumac_buffer *held = NULL;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++)
        (void)sumac_value_ref(operands[i]);
    struct sumac_value *all = sumac_value_list(operands, count);
    if (all != NULL && sumac_buffer_wrap(NULL, 0, host, let_go, all, &held) != SUMAC_OK)
        sumac_value_unref(all);
    return held;
}

static enum sumac_status push(
    const struct sumac_distributed *variable, const struct sumac_delta *deltas, uint32_t count,
    struct sumac_buffer *held, struct sumac_error *error)
{
    /* an assignment may be of what is no number, as to one that is not remote */
    const struct sumac_push_options options = {.non_finite_allowed = true};
    struct sumac_push *begun;

    assert(held != NULL);
    const enum sumac_status status =
        sumac_client_push(client_of(variable), deltas, count, &options, &begun, error);
    if (status != SUMAC_OK)
        return status;
    push_keep(begun, held);
    struct sumac_error why = {.status = SUMAC_OK};
    const enum sumac_status ended = sumac_push_wait(begun, 0, &why);
    if (ended == SUMAC_DEADLINE_EXCEEDED)
        return fail(
            error, ended, why.reason, "%.200s: %.250s; it goes on, and may be applied yet",
            variable->name, why.text);
    if (ended != SUMAC_OK && error != NULL)
        *error = why;
    return ended;
}

enum sumac_status remote_change(
    const struct sumac_distributed *variable, const struct sumac_function *function,
    struct sumac_value *const *operands, uint32_t count, struct sumac_error *error)
{
    struct sumac_delta *deltas = calloc(count, sizeof *deltas);
    struct sumac_value **indices = calloc(count, sizeof *indices);
    struct sumac_buffer *held = hold(operands, count);
    bool complete = deltas != NULL && indices != NULL && held != NULL;

    assert(variable->remote != NULL);
    for (uint32_t i = 0; complete && i < count; i++) {
        deltas[i].function = function;
        complete = make_delta(variable, operands[i], &deltas[i], &indices[i]);
    }
    const enum sumac_status status =
        complete ? push(variable, deltas, count, held, error) : value_fail_for_memory(error);
    for (uint32_t i = 0; indices != NULL && i < count; i++)
        sumac_value_unref(indices[i]);
    sumac_buffer_unref(held);
    free(indices);
    free(deltas);
    return status;
}
