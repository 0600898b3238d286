/* SPDX-License-Identifier: Apache-2.0 */
/* far_device.h -- devices with memory of their own: the CPU's, which say that theirs is a CUDA
 * device's. One file of a program includes it. */
#pragma once

#include "unit.h"
#include "buffer.h"
#include "device.h"

static struct device_ops far_ops;
static uint32_t far_buffers, far_opened; /* devices, queues and events */

static inline enum sumac_status
open_far(uint32_t index, struct device **device, struct sumac_error *error)
{
    const enum sumac_status status = device_kind("CPU")->open(index, device, error);

    if (status == SUMAC_OK) {
        (*device)->ops = &far_ops;
        far_opened++;
    }
    return status;
}

static inline void close_far(struct device *device)
{
    far_opened--;
    device_kind("CPU")->close(device);
}

static inline enum sumac_status
open_far_queue(struct device *device, struct device_queue **queue, struct sumac_error *error)
{
    const enum sumac_status status = device_kind("CPU")->queue_open(device, queue, error);

    far_opened += status == SUMAC_OK;
    return status;
}

static inline void close_far_queue(struct device_queue *queue)
{
    far_opened--;
    device_kind("CPU")->queue_close(queue);
}

static inline enum sumac_status
open_far_event(struct device *device, struct device_event **event, struct sumac_error *error)
{
    const enum sumac_status status = device_kind("CPU")->event_open(device, event, error);

    far_opened += status == SUMAC_OK;
    return status;
}

static inline void close_far_event(struct device_event *event)
{
    far_opened--;
    device_kind("CPU")->event_close(event);
}

static inline void free_far(void *data)
{
    far_buffers--;
    free(data);
}

static inline enum sumac_status far_is_full(struct sumac_error *error)
{
    if (error != NULL)
        *error = (struct sumac_error){
            SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory there"};
    return SUMAC_RESOURCE_EXHAUSTED;
}

static inline enum sumac_status create_far_buffer(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const struct sumac_place place = {SUMAC_PLACE_CUDA, device->index};
    void *data = calloc(1, bytes);

    if (data == NULL)
        return far_is_full(error);
    far_buffers++;
    if (buffer_own(data, bytes, place, free_far, data, buffer) == SUMAC_OK)
        return SUMAC_OK;
    free_far(data);
    return far_is_full(error);
}

static inline enum sumac_status create_near_buffer(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    (void)device;
    return sumac_buffer_create(bytes, buffer) == SUMAC_OK ? SUMAC_OK : far_is_full(error);
}

static inline struct device_ops make_far_ops(void)
{
    struct device_ops ops = *device_kind("CPU");

    ops.name = "FAR";
    ops.place = SUMAC_PLACE_CUDA;
    ops.open = open_far;
    ops.close = close_far;
    ops.queue_open = open_far_queue;
    ops.queue_close = close_far_queue;
    ops.event_open = open_far_event;
    ops.event_close = close_far_event;
    ops.buffer_create = create_far_buffer;
    ops.host_buffer_create = create_near_buffer;
    return ops;
}
