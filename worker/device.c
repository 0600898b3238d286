/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the kinds of devices that there are, and the way to each one's functions. */
#include "device.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "text.h"

static const struct device_ops *const kinds[] = {
    &cpu_device_ops,
    &cuda_device_ops,
};

const struct device_ops *device_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

enum sumac_status
device_count(const struct device_ops *ops, uint32_t *count, struct sumac_error *error)
{
    const enum sumac_status status = ops->count(count, error);

    assert(status != SUMAC_OK || *count > 0);
    return status;
}

enum sumac_status device_open(
    const struct device_ops *ops, uint32_t index, struct device **device, struct sumac_error *error)
{
    assert(ops->device_bytes >= sizeof(struct device));
    struct device *opened = calloc(1, ops->device_bytes);

    if (opened == NULL)
        return fail_for_memory(error, "no memory for device %s:%u", ops->name, index);
    opened->ops = ops;
    opened->index = index;
    atomic_init(&opened->references, 1);
    const enum sumac_status status = ops->begin == NULL ? SUMAC_OK : ops->begin(opened, error);
    if (status == SUMAC_OK)
        *device = opened;
    else
        free(opened);
    return status;
}

void device_unref(struct device *device)
{
    const unsigned before = atomic_fetch_sub(&device->references, 1);

    assert(before > 0);
    if (before > 1)
        return;
    if (device->ops->end != NULL)
        device->ops->end(device);
    free(device);
}

void device_close(struct device *device)
{
    if (device != NULL && !device_is_given_up(device))
        device_unref(device);
}

void device_give_up(struct device *device) { atomic_store(&device->is_given_up, true); }

bool device_is_given_up(const struct device *device) { return atomic_load(&device->is_given_up); }

const char *device_name(const struct device *device, char *text, uint32_t text_bytes)
{
    assert(text_bytes > 0);
    (void)text_print(text, text_bytes, "%s:%u", device->ops->name, device->index);
    return text;
}

enum sumac_status device_buffer_create(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const struct device_ops *ops = device->ops;
    struct sumac_error why;
    enum sumac_status status = ops->buffer_create(device, bytes, ops->place, buffer, &why);

    if (status == SUMAC_RESOURCE_EXHAUSTED && device->spare != NULL &&
        device->spare(device->spare_context))
        status = ops->buffer_create(device, bytes, ops->place, buffer, &why);
    if (status != SUMAC_OK && error != NULL)
        *error = why;
    assert(status != SUMAC_OK || sumac_buffer_place(*buffer).kind == ops->place);
    return status;
}

enum sumac_status device_host_buffer_create(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const enum sumac_status status =
        device->ops->buffer_create(device, bytes, SUMAC_PLACE_HOST, buffer, error);

    assert(status != SUMAC_OK || sumac_buffer_place(*buffer).kind == SUMAC_PLACE_HOST);
    return status;
}

enum sumac_status device_buffer_mirror(
    struct device *device, struct sumac_buffer *host, struct sumac_buffer **mirror,
    struct sumac_error *error)
{
    assert(host != NULL);
    if (sumac_buffer_place(host).kind != device->ops->place)
        return device_buffer_create(device, sumac_buffer_bytes(host), mirror, error);
    *mirror = sumac_buffer_ref(host);
    return SUMAC_OK;
}

bool device_has_update(
    const struct device_ops *ops, const struct update_function *function, enum sumac_dtype dtype)
{
    assert((ops->has_update == NULL) == (ops->update == NULL));
    return ops->has_update != NULL && ops->has_update(function, dtype);
}

void device_update(struct device_queue *queue, struct device_update *update)
{
    assert(device_has_update(queue->device->ops, update->slice.function, update->slice.dtype));
    assert(update->slice.rows == NULL && update->slice.sources == NULL);
    queue->device->ops->update(queue, update);
}

/* ---- as a step sees it (sumac/device.h): nothing else is behind the pointer that it has */

struct sumac_device *device_for_step(struct device_queue *queue)
{
    assert(queue->device != NULL);
    return (struct sumac_device *)queue;
}

static struct device_queue *queue_of(struct sumac_device *device)
{
    assert(device != NULL);
    return (struct device_queue *)device;
}

const char *sumac_device_name(const struct sumac_device *device, char *text, uint32_t text_bytes)
{
    if (text == NULL || text_bytes == 0)
        return "";
    text[0] = '\0';
    return device == NULL
               ? text
               : device_name(((const struct device_queue *)device)->device, text, text_bytes);
}

int32_t sumac_device_gpu(const struct sumac_device *device)
{
    const struct device_queue *queue = (const struct device_queue *)device;

    if (queue == NULL || queue->device->ops->place != SUMAC_PLACE_CUDA)
        return -1;
    return (int32_t)queue->device->index;
}

void *sumac_device_stream(const struct sumac_device *device)
{
    const struct device_queue *queue = (const struct device_queue *)device;

    if (queue == NULL || queue->device->ops->stream == NULL)
        return NULL;
    return queue->device->ops->stream(queue);
}

enum sumac_status sumac_device_buffer_create(
    struct sumac_device *device, uint64_t bytes, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    if (device == NULL || buffer == NULL)
        return fail_for_null(
            error, "sumac_device_buffer_create", device == NULL ? "device" : "buffer");
    return device_buffer_create(queue_of(device)->device, bytes, buffer, error);
}

enum sumac_status sumac_device_host_buffer_create(
    struct sumac_device *device, uint64_t bytes, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    if (device == NULL || buffer == NULL)
        return fail_for_null(
            error, "sumac_device_host_buffer_create", device == NULL ? "device" : "buffer");
    return device_host_buffer_create(queue_of(device)->device, bytes, buffer, error);
}

/* Are so many bytes from there on within the buffer, and does the device reach it? */
static enum sumac_status check_end(
    const struct device_queue *queue, const struct sumac_buffer *buffer, uint64_t offset,
    uint64_t bytes, struct sumac_error *error)
{
    const struct sumac_place place = sumac_buffer_place(buffer);
    const uint64_t there = sumac_buffer_bytes(buffer);
    char name[32];

    assert(buffer != NULL);
    if (offset > there || bytes > there - offset)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSPECIFIED,
            "a copy of %" PRIu64 " bytes from byte %" PRIu64 " on is of a buffer of %" PRIu64,
            bytes, offset, there);
    if (place.kind == SUMAC_PLACE_CUDA &&
        (queue->device->ops->place != SUMAC_PLACE_CUDA || place.device != queue->device->index))
        return fail_argument(
            error, "a copy on device %s is of a buffer of GPU:%u: copy it there",
            device_name(queue->device, name, sizeof name), place.device);
    return SUMAC_OK;
}

enum sumac_status sumac_device_copy(
    struct sumac_device *device, const struct sumac_copy *copy, struct sumac_error *error)
{
    const char *null = device == NULL       ? "device"
                       : copy == NULL       ? "copy"
                       : copy->to == NULL   ? "copy->to"
                       : copy->from == NULL ? "copy->from"
                                            : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_device_copy", null);
    struct device_queue *queue = queue_of(device);
    enum sumac_status status = check_end(queue, copy->to, copy->to_offset, copy->bytes, error);
    if (status == SUMAC_OK)
        status = check_end(queue, copy->from, copy->from_offset, copy->bytes, error);
    return status == SUMAC_OK ? queue->device->ops->copy_here(queue, copy, error) : status;
}

enum sumac_status sumac_device_launch(
    struct sumac_device *device, const struct sumac_launch *launch, struct sumac_error *error)
{
    const char *null = device == NULL           ? "device"
                       : launch == NULL         ? "launch"
                       : launch->image == NULL  ? "launch->image"
                       : launch->kernel == NULL ? "launch->kernel"
                                                : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_device_launch", null);
    if (launch->blocks == 0 || launch->threads == 0 ||
        strlen(launch->kernel) >= SUMAC_KERNEL_NAME_BYTES_MAX)
        return fail_argument(
            error,
            "a launch of %.64s has %u blocks of %u threads: each at least 1, and a name below %d "
            "characters",
            launch->kernel, launch->blocks, launch->threads, SUMAC_KERNEL_NAME_BYTES_MAX);
    return queue_of(device)->device->ops->launch_here(queue_of(device), launch, error);
}

enum sumac_status sumac_device_wait(struct sumac_device *device, struct sumac_error *error)
{
    if (device == NULL)
        return fail_for_null(error, "sumac_device_wait", "device");
    struct device_queue *queue = queue_of(device);
    const struct device_ops *ops = queue->device->ops;
    return ops->wait_here == NULL ? SUMAC_OK : ops->wait_here(queue, error);
}
