/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the kinds of devices that there are, and the way to each one's functions. */
#include "device.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "device_update.h"
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
    const enum sumac_status status = ops->open(index, device, error);

    assert(status != SUMAC_OK || ((*device)->ops == ops && (*device)->index == index));
    return status;
}

void device_close(struct device *device)
{
    if (device != NULL && !device_is_given_up(device))
        device->ops->close(device);
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
    struct sumac_error why;
    enum sumac_status status = device->ops->buffer_create(device, bytes, buffer, &why);

    if (status == SUMAC_RESOURCE_EXHAUSTED && device->spare != NULL &&
        device->spare(device->spare_context))
        status = device->ops->buffer_create(device, bytes, buffer, &why);
    if (status != SUMAC_OK && error != NULL)
        *error = why;
    assert(status != SUMAC_OK || sumac_buffer_place(*buffer).kind == device->ops->place);
    return status;
}

enum sumac_status device_host_buffer_create(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const enum sumac_status status = device->ops->host_buffer_create(device, bytes, buffer, error);

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

enum sumac_status
device_queue_open(struct device *device, struct device_queue **queue, struct sumac_error *error)
{
    const enum sumac_status status = device->ops->queue_open(device, queue, error);

    assert(status != SUMAC_OK || (*queue)->device == device);
    return status;
}

void device_queue_close(struct device_queue *queue)
{
    if (queue != NULL && !device_is_given_up(queue->device))
        queue->device->ops->queue_close(queue);
}

enum sumac_status
device_event_open(struct device *device, struct device_event **event, struct sumac_error *error)
{
    const enum sumac_status status = device->ops->event_open(device, event, error);

    assert(status != SUMAC_OK || (*event)->device == device);
    return status;
}

void device_event_close(struct device_event *event)
{
    if (event != NULL && !device_is_given_up(event->device))
        event->device->ops->event_close(event);
}

void device_run(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    queue->device->ops->run(queue, work, context);
}

void device_issue(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    queue->device->ops->issue(queue, work, context);
}

void device_copy(struct device_queue *queue, const struct sumac_copy *copy)
{
    assert(copy->to_offset <= sumac_buffer_bytes(copy->to));
    assert(copy->bytes <= sumac_buffer_bytes(copy->to) - copy->to_offset);
    assert(copy->from_offset <= sumac_buffer_bytes(copy->from));
    assert(copy->bytes <= sumac_buffer_bytes(copy->from) - copy->from_offset);
    queue->device->ops->copy(queue, copy);
}

void device_record(struct device_queue *queue, struct device_event *event)
{
    assert(event->device == queue->device);
    queue->device->ops->record(queue, event);
}

void device_await(struct device_queue *queue, struct device_event *event)
{
    assert(event->device->ops == queue->device->ops);
    queue->device->ops->await(queue, event);
}

void device_stamp(struct device_queue *queue, uint64_t *ns)
{
    assert(ns != NULL);
    queue->device->ops->stamp(queue, ns);
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

uint64_t device_until(uint32_t timeout_ms)
{
    struct timespec now;

    if (timeout_ms == UINT32_MAX)
        return DEVICE_NO_LIMIT;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 +
           (uint64_t)timeout_ms * 1000;
}

enum sumac_status device_settle(struct device_queue *queue, uint64_t until_us)
{
    assert(queue->device != NULL);
    return queue->device->ops->settle(queue, until_us);
}

enum sumac_status device_complete(struct device_queue *queue, uint64_t until_us)
{
    assert(queue->device != NULL);
    const struct device_ops *ops = queue->device->ops;
    return ops->complete == NULL ? SUMAC_OK : ops->complete(queue, until_us);
}

enum sumac_status device_wait_until(struct device_queue *queue, uint64_t until_us)
{
    const enum sumac_status settled = device_settle(queue, until_us);
    const enum sumac_status completed = device_complete(queue, until_us);

    return settled != SUMAC_OK ? settled : completed; /* what was told first counts */
}

enum sumac_status device_wait(struct device_queue *queue)
{
    return device_wait_until(queue, DEVICE_NO_LIMIT);
}

const char *device_why(const struct device_queue *queue)
{
    const char *why = queue->device->ops->why(queue);

    assert(why != NULL);
    return why;
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
