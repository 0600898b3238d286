/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_device.c -- the CPU as devices: what a queue has to do, its thread does itself. */
#include "device_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "job_queue.h"
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

static enum sumac_status carry_out(struct job_queue *queue, const struct job *job)
{
    switch (job->kind) {
    case JOB_WORK:
    case JOB_ISSUE: /* nothing of what is before is elsewhere */
        return job->work(job->context);
    case JOB_COPY:
        return copy_here(&queue->base, &job->copy, NULL);
    case JOB_RECORD:
        job_event_pass(job->event);
        return SUMAC_OK;
    case JOB_AWAIT:
        job_event_await(job->event, job->until);
        return SUMAC_OK;
    case JOB_STAMP:
        *job->stamp = trace_now();
        return SUMAC_OK;
    }
    return SUMAC_INTERNAL;
}

static enum sumac_status
open_device(uint32_t index, struct device **device, struct sumac_error *error)
{
    struct device *opened = calloc(1, sizeof *opened);

    if (opened == NULL)
        return fail_for_memory(error, "no memory for device CPU:%u", index);
    *opened = (struct device){.ops = &cpu_device_ops, .index = index};
    *device = opened;
    return SUMAC_OK;
}

static void close_device(struct device *device) { free(device); }

static enum sumac_status count_devices(uint32_t *count, struct sumac_error *error)
{
    (void)error;
    *count = SUMAC_REPLICAS_MAX; /* whatever cores there are */
    return SUMAC_OK;
}

static enum sumac_status create_buffer(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const enum sumac_status status = sumac_buffer_create(bytes, buffer);

    return status == SUMAC_OK
               ? SUMAC_OK
               : fail(
                     error, status, SUMAC_REASON_OUT_OF_MEMORY,
                     "no memory for %" PRIu64 " bytes of device CPU:%u", bytes, device->index);
}

static enum sumac_status
open_queue(struct device *device, struct device_queue **queue, struct sumac_error *error)
{
    struct job_queue *opened = calloc(1, sizeof *opened);

    if (opened == NULL)
        return fail_for_memory(error, "no memory for a queue of device CPU:%u", device->index);
    const enum sumac_status status = job_queue_init(opened, device, carry_out, error);
    if (status != SUMAC_OK) {
        free(opened);
        return status;
    }
    *queue = &opened->base;
    return SUMAC_OK;
}

static void close_queue(struct device_queue *queue)
{
    job_queue_deinit((struct job_queue *)queue);
    free(queue);
}

static enum sumac_status
open_event(struct device *device, struct device_event **event, struct sumac_error *error)
{
    struct job_event *opened = calloc(1, sizeof *opened);

    if (opened == NULL)
        return fail_for_memory(error, "no memory for an event of device CPU:%u", device->index);
    job_event_init(opened, device);
    *event = &opened->base;
    return SUMAC_OK;
}

static void close_event(struct device_event *event)
{
    job_event_deinit((struct job_event *)event);
    free(event);
}

/* ---- within a queue's work */

static enum sumac_status launch_here(
    struct device_queue *queue, const struct sumac_launch *launch, struct sumac_error *error)
{
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
        "kernel %.64s is launched on CPU:%u, which runs none: give the program a step for CPUs",
        launch->kernel, queue->device->index);
}

const struct device_ops cpu_device_ops = {
    .name = "CPU",
    .place = SUMAC_PLACE_HOST,
    .group_ops = &cpu_group_ops,
    .open = open_device,
    .close = close_device,
    .count = count_devices,
    .buffer_create = create_buffer,
    .host_buffer_create = create_buffer,
    .queue_open = open_queue,
    .queue_close = close_queue,
    .event_open = open_event,
    .event_close = close_event,
    .run = job_queue_run,
    .issue = job_queue_issue,
    .copy = job_queue_copy,
    .record = job_queue_record,
    .await = job_queue_await,
    .stamp = job_queue_stamp,
    .settle = job_queue_settle,
    .why = job_queue_why,
    .copy_here = copy_here,
    .launch_here = launch_here,
};
