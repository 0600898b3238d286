/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.c -- which kinds of devices have collectives, and what is checked of every call. */
#include "device_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#include "error.h"

bool device_group_has(
    const struct device_group_ops *ops, enum sumac_reduce_op op, enum sumac_dtype dtype)
{
    assert(ops != NULL);
    return ops->has(op, dtype);
}

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
    const enum sumac_status status = ops->open(queues, replicas, calls_max, group, error);
    assert(status != SUMAC_OK || (*group)->replicas == replicas);
    return status;
}

void device_group_close(struct device_group *group)
{
    if (group != NULL)
        group->ops->close(group);
}

/* A call is added if nothing is wrong with it. */
static enum sumac_status
add(struct device_group *group, enum group_call_kind kind, enum sumac_reduce_op op, uint32_t root,
    const struct device_group_values *values, struct sumac_error *error)
{
    const bool reduces = kind == GROUP_REDUCE || kind == GROUP_ALL_REDUCE;

    if (group->running)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "the group of %u replicas runs: wait for it, then add calls", group->replicas);
    if (group->calls == group->calls_max)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "%u calls were added to a group that has room for %u: start it", group->calls,
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
    if (reduces && !group->ops->has(op, values->dtype))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s values cannot be reduced by %s",
            sumac_dtype_name(values->dtype), op == SUMAC_REDUCE_MEAN ? "MEAN" : "SUM");
    if (reduces && op == SUMAC_REDUCE_MEAN && values->weights == NULL)
        return fail_argument(
            error, "MEAN wants a weight for each of the %u replicas", group->replicas);
    group->ops->add(group, kind, op, root, values);
    group->calls++;
    return SUMAC_OK;
}

enum sumac_status device_group_reduce(
    struct device_group *group, enum sumac_reduce_op op, uint32_t root,
    const struct device_group_values *values, struct sumac_error *error)
{
    return add(group, GROUP_REDUCE, op, root, values, error);
}

enum sumac_status device_group_all_reduce(
    struct device_group *group, enum sumac_reduce_op op, const struct device_group_values *values,
    struct sumac_error *error)
{
    return add(group, GROUP_ALL_REDUCE, op, 0, values, error);
}

enum sumac_status device_group_all_gather(
    struct device_group *group, const struct device_group_values *values, struct sumac_error *error)
{
    return add(group, GROUP_ALL_GATHER, 0, 0, values, error);
}

enum sumac_status device_group_broadcast(
    struct device_group *group, uint32_t root, const struct device_group_values *values,
    struct sumac_error *error)
{
    return add(group, GROUP_BROADCAST, 0, root, values, error);
}

void device_group_record(struct device_group *group, struct device_event *event)
{
    assert(group->calls > 0 && !group->running);
    group->ops->record(group, event);
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
    group->calls = 0;
    return status;
}

void device_group_abort(struct device_group *group)
{
    assert(group != NULL);
    group->ops->abort(group);
}
