/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.c -- groups of every kind of device: their calls, and what is checked of each. */
#include "device_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "pause.h"
#include "reduce.h"

enum sumac_status device_group_open(
    struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
    struct device_group **group, struct sumac_error *error)
{
    if (replicas == 0)
        return fail_argument(error, "a group has no replicas");
    const struct device_ops *devices = queues[0]->device->ops;
    for (uint32_t i = 1; i < replicas; i++)
        if (queues[i]->device->ops != devices)
            return fail_argument(
                error,
                "replica 0 of a group is on %s:%u and replica %u on %s:%u; give it devices of one "
                "kind",
                devices->name, queues[0]->device->index, i, queues[i]->device->ops->name,
                queues[i]->device->index);
    const struct device_group_ops *ops = devices->group_ops;
    assert(ops != NULL);
    assert(ops->bytes >= sizeof(struct device_group));
    struct device_group *opened = calloc(1, ops->bytes);
    struct group_call *calls = calloc(calls_max, sizeof *calls);
    if (opened == NULL || calls == NULL) {
        free(calls);
        free(opened);
        return fail_for_memory(error, "no memory for a group of %u replicas", replicas);
    }
    opened->ops = ops;
    opened->calls = calls;
    opened->replicas = replicas;
    opened->calls_max = calls_max;
    pthread_mutex_init(&opened->mutex, NULL);
    pause_init(&opened->changed);
    const enum sumac_status status = ops->begin(opened, queues, error);
    if (status == SUMAC_OK)
        *group = opened;
    return status;
}

void device_group_free(struct device_group *group)
{
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    free(group->calls);
    free(group);
}

void device_group_close(struct device_group *group)
{
    if (group != NULL)
        group->ops->close(group);
}

enum sumac_status device_group_add(
    struct device_group *group, enum group_call_kind kind, enum sumac_reduce_op op, uint32_t root,
    const struct device_group_values *values, struct sumac_error *error)
{
    const bool reduces = kind == GROUP_REDUCE || kind == GROUP_ALL_REDUCE;

    if (group->running)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "the group of %u replicas runs: wait for it, then add calls", group->replicas);
    if (group->call_count == group->calls_max)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "%u calls were added to a group that has room for %u: start it", group->call_count,
            group->calls_max);
    if (sumac_dtype_kind(values->dtype) == SUMAC_KIND_NONE)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "values of data type %d, which is not known",
            (int)values->dtype);
    if (root >= group->replicas)
        return fail_argument(
            error, "the root is replica %u of a group of %u: they are 0 to %u", root,
            group->replicas, group->replicas - 1);
    for (uint32_t i = 1; kind != GROUP_ALL_GATHER && i < group->replicas; i++)
        if (values->elements[i] != values->elements[0])
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE,
                "replica %u gives %" PRIu64 " elements, and replica 0 gives %" PRIu64, i,
                values->elements[i], values->elements[0]);
    if (reduces && !reduce_has(op, values->dtype))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s values cannot be reduced by %s",
            sumac_dtype_name(values->dtype), op == SUMAC_REDUCE_MEAN ? "MEAN" : "SUM");
    if (reduces && op == SUMAC_REDUCE_MEAN && values->weights == NULL)
        return fail_argument(
            error, "MEAN wants a weight for each of the %u replicas", group->replicas);
    group->calls[group->call_count++] =
        (struct group_call){.kind = kind, .op = op, .root = root, .values = *values};
    return SUMAC_OK;
}

void device_group_record(struct device_group *group, struct device_event *event)
{
    assert(group->call_count > 0 && !group->running);
    assert(event->device->ops->group_ops == group->ops);
    group->calls[group->call_count - 1].over = event;
}

void device_group_start(struct device_group *group)
{
    assert(!group->running);
    group->running = true;
    group->ops->start(group);
}

enum sumac_status
device_group_wait(struct device_group *group, uint32_t timeout_ms, struct sumac_error *error)
{
    if (!group->running)
        return SUMAC_OK;
    const enum sumac_status status = group->ops->wait(group, timeout_ms, error);
    if (status == SUMAC_DEADLINE_EXCEEDED)
        return status;
    group->running = false;
    group->call_count = 0;
    return status;
}

void device_group_abort(struct device_group *group)
{
    assert(group != NULL);
    group->ops->abort(group);
}

/* ---- for the kinds */

void device_group_promise(struct device_group *group)
{
    assert(group->promised == 0);
    for (uint32_t i = 0; i < group->call_count; i++)
        if (group->calls[i].over != NULL)
            device_event_promise(group->calls[i].over);
    group->promised = group->call_count;
}

void device_group_pass_call(struct group_call *call)
{
    struct device_event *over = call->over;

    call->over = NULL;
    if (over != NULL)
        device_event_pass(over);
}

void device_group_pass(struct device_group *group)
{
    assert(group->promised <= group->calls_max);
    for (uint32_t i = 0; i < group->promised; i++)
        device_group_pass_call(&group->calls[i]);
    group->promised = 0;
}

enum sumac_status
device_group_fail_aborted(const struct device_group *group, struct sumac_error *error)
{
    assert(group->aborted);
    return fail(
        error, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
        "the group of %u replicas was aborted: open another", group->replicas);
}
