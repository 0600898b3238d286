/* SPDX-License-Identifier: Apache-2.0 */
/* on_device_calls.c -- what replicas have on their devices is reduced and gathered there: calls are
 * added leaf by leaf, and begun together. */
#include <assert.h>
#include <stdlib.h>

#include "dtype.h"
#include "error.h"
#include "on_device.h"
#include "reduce.h"

#define CALLS_AT_ONCE_MAX 256u /* of a start */

/* ---- added */

/* What the first replicas get, `count` of them; the others' are NULL. Gives *items. */
static enum sumac_status make_results(
    struct on_device_calls *calls, const struct sumac_tensor *like, uint32_t count,
    struct sumac_value **items, struct sumac_error *error)
{
    const uint64_t likeness = value_new_likeness();
    enum sumac_status status = SUMAC_OK;
    uint32_t made = 0;

    for (uint32_t i = 0; i < calls->strategy->replicas; i++)
        items[i] = NULL;
    for (; status == SUMAC_OK && made < count; made++) {
        status = on_device_make(calls->strategy, made, like, &items[made], error);
        if (status == SUMAC_OK)
            atomic_store(&items[made]->likeness, likeness);
    }
    if (status != SUMAC_OK)
        value_unref_all(items, made);
    return status;
}

/* Takes  what each replica gets. */
static enum sumac_status
add(struct on_device_calls *calls, const struct on_device_call *kind,
    const struct sumac_tensor *const *tensors, struct sumac_value *const *items,
    struct sumac_error *error)
{
    const uint32_t replicas = calls->strategy->replicas;
    void **arrays = calloc(replicas, 2 * sizeof *arrays + sizeof(uint64_t));

    _Static_assert(sizeof(void *) == sizeof(uint64_t), "the three arrays are one piece");
    struct on_device_call *grown =
        arrays == NULL ? NULL : array_grow(calls->items, calls->count, &calls->room, sizeof *grown);
    if (grown == NULL) {
        free(arrays);
        return value_fail_for_memory(error);
    }
    calls->items = grown;
    struct on_device_call *call = &grown[calls->count++];
    *call = *kind;
    call->from = (const void **)(void *)arrays;
    call->to = arrays + replicas;
    call->elements = (uint64_t *)(void *)(arrays + 2 * (size_t)replicas);
    call->dtype = tensors[0]->dtype;
    call->bytes = sumac_tensor_bytes(&items[0]->tensor);
    for (uint32_t i = 0; i < replicas; i++) {
        const struct sumac_tensor *const tensor = tensors[kind->kind == GROUP_BROADCAST ? 0 : i];
        call->from[i] = sumac_tensor_data(tensor);
        call->to[i] = items[i] == NULL ? NULL : sumac_tensor_data(&items[i]->tensor);
        call->elements[i] = sumac_tensor_bytes(tensor) / dtype_bytes(call->dtype);
    }
    return SUMAC_OK;
}

enum sumac_status on_device_add(
    struct on_device_calls *calls, const struct on_device_call *kind,
    const struct sumac_tensor *const *tensors, const struct sumac_shape *shape,
    struct sumac_value **result, struct sumac_error *error)
{
    const uint32_t replicas = calls->strategy->replicas;
    const bool is_one = kind->kind == GROUP_REDUCE;
    struct sumac_tensor like = *tensors[0];
    struct sumac_value *items[SUMAC_REPLICAS_MAX];

    assert(replicas <= SUMAC_REPLICAS_MAX);
    assert(shape->rank == like.shape.rank);
    assert((int)kind->op == 0 || reduce_has(kind->op, tensors[0]->dtype));
    if (replicas == 1) /* what it gives is what it gets */
        return value_give(sumac_value_of(tensors[0]), result, error);
    like.shape = *shape;
    enum sumac_status status = make_results(calls, &like, is_one ? 1 : replicas, items, error);
    if (status != SUMAC_OK)
        return status;
    status = add(calls, kind, tensors, items, error);
    if (status != SUMAC_OK) {
        value_unref_all(items, replicas);
        return status;
    }
    status = value_give(
        is_one ? items[0] : value_mirrored_each(items, replicas, calls->strategy->first), result,
        error);
    if (status != SUMAC_OK) /* nothing of it is written to */
        free((void *)calls->items[--calls->count].from);
    return status;
}

enum sumac_status on_device_make_slices(
    struct sumac_value *rows, struct sumac_value *indices, const struct sumac_shape *dense,
    struct sumac_value **slices, struct sumac_error *error)
{
    struct sumac_value *items[SUMAC_REPLICAS_MAX];
    const uint64_t likeness = value_new_likeness();

    assert(rows->kind == SUMAC_VALUE_MIRRORED);
    assert(rows->count == indices->count);
    for (uint32_t i = 0; i < rows->count; i++) {
        items[i] = sumac_value_indexed_slices(
            sumac_value_ref(rows->items[i]), sumac_value_ref(indices->items[i]), *dense);
        if (items[i] != NULL)
            atomic_store(&items[i]->likeness, likeness);
    }
    const enum sumac_status status = /* NULL of NULL */
        value_give(value_mirrored_each(items, rows->count, rows->first), slices, error);
    sumac_value_unref(rows);
    sumac_value_unref(indices);
    return status;
}

void on_device_forget(struct on_device_calls *calls)
{
    if (replicas_are_given_up(&calls->strategy->own)) /* their threads may still read it */
        return;
    for (uint32_t i = 0; i < calls->count; i++)
        free((void *)calls->items[i].from);
    free(calls->items);
    calls->items = NULL;
    calls->count = calls->room = 0;
}

/* ---- begun */

/* Under the mutex: no call of the strategy's comes to anything any more. */
static enum sumac_status
give_up(struct on_device_calls *calls, const struct sumac_error *why, struct sumac_error *error)
{
    struct on_device *on_device = calls->strategy->on_device;

    assert(on_device->failed.status == SUMAC_OK || replicas_are_given_up(&calls->strategy->own));
    (void)fail(
        &on_device->failed, why->status, why->reason,
        "%s: %.360s; the strategy takes no more calls: %s", calls->name, why->text,
        replicas_remedy(&calls->strategy->own, "make the strategy anew"));
    return fail_again(error, &on_device->failed);
}

static enum sumac_status add_to_group(
    const struct on_device *on_device, const struct on_device_call *call, struct sumac_error *error)
{
    const struct device_group_values values = {
        .dtype = call->dtype,
        .from = call->from,
        .to = call->to,
        .elements = call->elements,
        .weights = on_device->weights};

    return device_group_add(on_device->group, call->kind, call->op, 0, &values, error);
}

/* Calls of one start: as many as are not more bytes together than are asked for. */
static uint32_t fit(const struct on_device_calls *calls, uint32_t first)
{
    const uint64_t asked = calls->options.bytes_per_pack;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (first + count < calls->count && count < CALLS_AT_ONCE_MAX) {
        bytes += calls->items[first + count].bytes;
        if (count > 0 && asked > 0 && bytes > asked)
            break;
        count++;
    }
    assert(count > 0);
    return count;
}

static enum sumac_status wait_for(struct on_device_calls *calls, struct sumac_error *error)
{
    struct on_device *on_device = calls->strategy->on_device;
    const uint32_t timeout_ms = calls->options.timeout_ms;
    struct sumac_error aborted;

    assert(timeout_ms > 0);
    device_group_start(on_device->group);
    const enum sumac_status status = device_group_wait(on_device->group, timeout_ms, error);
    if (status != SUMAC_DEADLINE_EXCEEDED)
        return status;
    on_device_say(calls->strategy, error->text); /* before what may never end */
    device_group_abort(on_device->group);
    if (device_group_wait(on_device->group, timeout_ms, &aborted) == SUMAC_DEADLINE_EXCEEDED)
        on_device_give_up(calls->strategy, error);
    return status;
}

static enum sumac_status
start(struct on_device_calls *calls, uint32_t first, uint32_t count, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = calls->strategy;
    struct on_device *on_device = strategy->on_device;
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = first; status == SUMAC_OK && i < first + count; i++)
        status = add_to_group(on_device, &calls->items[i], error);
    assert(status == SUMAC_OK); /* they were looked at */
    if (status == SUMAC_OK)
        status = wait_for(calls, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++) {
        /* it may not have awaited who came; its thread has left the start, and is not held up */
        status = device_settle(on_device->queues[i], DEVICE_NO_LIMIT);
        if (status != SUMAC_OK)
            (void)on_device_fail(strategy, i, on_device->queues[i], status, error);
    }
    return status;
}

enum sumac_status on_device_run(struct on_device_calls *calls, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = calls->strategy;
    struct on_device *on_device = strategy->on_device;
    enum sumac_status status = SUMAC_OK;
    struct sumac_error why;

    if (calls->count == 0)
        return SUMAC_OK;
    on_device_come_present(strategy);
    pthread_mutex_lock(&on_device->mutex);
    if (on_device->failed.status != SUMAC_OK) {
        status = fail_again(error, &on_device->failed);
    } else {
        for (uint32_t i = 0; i < strategy->replicas; i++)
            device_await(on_device->queues[i], on_device->come[i]);
        if (on_device->group == NULL)
            status = device_group_open(
                on_device->queues, strategy->replicas, CALLS_AT_ONCE_MAX, &on_device->group, error);
        for (uint32_t i = 0, count; status == SUMAC_OK && i < calls->count; i += count) {
            count = fit(calls, i);
            status = start(calls, i, count, &why);
            if (status != SUMAC_OK)
                status = on_device->group->has_ended || status != SUMAC_RESOURCE_EXHAUSTED
                             ? give_up(calls, &why, error)
                             : fail(error, status, why.reason, "%s: %s", calls->name, why.text);
        }
    }
    pthread_mutex_unlock(&on_device->mutex);
    return status;
}
