/* SPDX-License-Identifier: Apache-2.0 */
/* far_device.h -- devices with memory of their own: the CPU's, which say that theirs is a CUDA
 * device's. One file of a program includes it. */
#pragma once

#include "unit.h"
#include "buffer.h"
#include "device.h"

static struct device_ops far_ops;
static uint32_t far_buffers, far_opened; /* devices, queues and events */

static inline enum sumac_status begin_far(struct device *device, struct sumac_error *error)
{
    (void)device;
    (void)error;
    far_opened++;
    return SUMAC_OK;
}

static inline void end_far(struct device *device)
{
    (void)device;
    far_opened--;
}

static inline enum sumac_status
begin_far_queue(struct device_queue *queue, struct sumac_error *error)
{
    (void)queue;
    (void)error;
    far_opened++;
    return SUMAC_OK;
}

static inline void end_far_queue(struct device_queue *queue)
{
    (void)queue;
    far_opened--;
}

static inline enum sumac_status
begin_far_event(struct device_event *event, struct sumac_error *error)
{
    (void)event;
    (void)error;
    far_opened++;
    return SUMAC_OK;
}

static inline void end_far_event(struct device_event *event)
{
    (void)event;
    far_opened--;
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
    struct device *device, uint64_t bytes, enum sumac_place_kind kind, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    const struct sumac_place place = {SUMAC_PLACE_CUDA, device->index};

    if (kind == SUMAC_PLACE_HOST)
        return sumac_buffer_create(bytes, buffer) == SUMAC_OK ? SUMAC_OK : far_is_full(error);
    void *data = calloc(1, bytes);
    if (data == NULL)
        return far_is_full(error);
    far_buffers++;
    if (buffer_own(data, bytes, place, free_far, data, buffer) == SUMAC_OK)
        return SUMAC_OK;
    free_far(data);
    return far_is_full(error);
}

static inline struct device_ops make_far_ops(void)
{
    struct device_ops ops = *device_kind("CPU");

    ops.name = "FAR";
    ops.place = SUMAC_PLACE_CUDA;
    ops.begin = begin_far;
    ops.end = end_far;
    ops.queue_begin = begin_far_queue;
    ops.queue_end = end_far_queue;
    ops.event_begin = begin_far_event;
    ops.event_end = end_far_event;
    ops.buffer_create = create_far_buffer;
    return ops;
}
