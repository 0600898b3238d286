/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_device.c -- the CPU as devices: what a queue has to do, its thread does itself. */
#include "device_group.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "trace.h"

static enum sumac_status
copy_here(struct device_queue *queue, const struct sumac_copy *copy, struct sumac_error *error)
{
    (void)queue;
    (void)error;
    if (copy->bytes > 0)
        memmove(
            (char *)sumac_buffer_data(copy->to) + copy->to_offset,
            (const char *)sumac_buffer_data(copy->from) + copy->from_offset, copy->bytes);
    return SUMAC_OK;
}

static enum sumac_status carry_out(struct device_queue *queue, const struct device_job *job)
{
    switch (job->kind) {
    case JOB_WORK:
    case JOB_ISSUE: /* nothing of what is before is elsewhere */
        return job->work(job->context);
    case JOB_COPY:
        return copy_here(queue, &job->copy, NULL);
    case JOB_RECORD:
        device_event_pass(job->event);
        return SUMAC_OK;
    case JOB_AWAIT:
        device_event_await(job->event, job->until);
        return SUMAC_OK;
    case JOB_STAMP:
        *job->stamp = trace_now();
        return SUMAC_OK;
    }
    return SUMAC_INTERNAL;
}

static enum sumac_status count_devices(uint32_t *count, struct sumac_error *error)
{
    (void)error;
    *count = SUMAC_REPLICAS_MAX; /* whatever cores there are */
    return SUMAC_OK;
}

static enum sumac_status create_buffer(
    struct device *device, uint64_t bytes, enum sumac_place_kind place,
    struct sumac_buffer **buffer, struct sumac_error *error)
{
    assert(place == SUMAC_PLACE_HOST);
    (void)place;
    const enum sumac_status status = sumac_buffer_create(bytes, buffer);

    return status == SUMAC_OK
               ? SUMAC_OK
               : fail(
                     error, status, SUMAC_REASON_OUT_OF_MEMORY,
                     "no memory for %" PRIu64 " bytes of device CPU:%u", bytes, device->index);
}

static enum sumac_status launch_here(
    struct device_queue *queue, const struct sumac_launch *launch, struct sumac_error *error)
{
    return fail_unsupported(
        error,
        "kernel %.64s is launched on CPU:%u, which runs none: give the program a step for CPUs",
        launch->kernel, queue->device->index);
}

const struct device_ops cpu_device_ops = {
    .name = "CPU",
    .place = SUMAC_PLACE_HOST,
    .group_ops = &cpu_group_ops,
    .device_bytes = sizeof(struct device),
    .queue_bytes = sizeof(struct device_queue),
    .event_bytes = sizeof(struct device_event),
    .count = count_devices,
    .buffer_create = create_buffer,
    .carry_out = carry_out,
    .copy_here = copy_here,
    .launch_here = launch_here,
};
