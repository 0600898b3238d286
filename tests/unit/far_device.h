/* SPDX-License-Identifier: Apache-2.0 */
/* far_device.h -- devices with memory of their own: the CPU's, which say that theirs is a CUDA
 * device's. One file of a program includes it. */
#ifndef FAR_DEVICE_H
#define FAR_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "buffer.h"
#include "device.h"

static struct device_ops far_ops;
static uint32_t far_buffers;

static inline enum sumac_status
open_far(uint32_t index, struct device **device, struct sumac_error *error)
{
    const enum sumac_status status = device_kind("CPU")->open(index, device, error);

    if (status == SUMAC_OK)
        (*device)->ops = &far_ops;
    return status;
}

static inline void free_far(void *data)
{
    far_buffers--;
    free(data);
}

static inline enum sumac_status create_far_buffer(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const struct sumac_place place = {SUMAC_PLACE_CUDA, device->index};
    void *data = calloc(1, bytes);

    (void)error;
    assert_non_null(data);
    far_buffers++;
    return buffer_own(data, bytes, place, free_far, data, buffer);
}

static inline enum sumac_status create_near_buffer(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    (void)device;
    (void)error;
    return sumac_buffer_create(bytes, buffer);
}

static inline struct device_ops make_far_ops(void)
{
    struct device_ops ops = *device_kind("CPU");

    ops.name = "FAR";
    ops.place = SUMAC_PLACE_CUDA;
    ops.open = open_far;
    ops.buffer_create = create_far_buffer;
    ops.host_buffer_create = create_near_buffer;
    return ops;
}

#endif
