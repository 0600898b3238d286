/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the kinds of devices that there are, and the way to each one's functions. */
#include "device.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "sumac/worker.h"
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

const struct device_ops *device_kind_of_replicas(void) { return kinds[0]; }

enum sumac_status device_open(
    const struct device_ops *ops, uint32_t index, struct device **device, struct sumac_error *error)
{
    const enum sumac_status status = ops->open(index, device, error);

    assert(status != SUMAC_OK || ((*device)->ops == ops && (*device)->index == index));
    return status;
}

void device_close(struct device *device)
{
    if (device != NULL)
        device->ops->close(device);
}

static const char *
print_name(const struct device_ops *ops, uint32_t index, char *text, uint32_t text_bytes)
{
    (void)text_print(text, text_bytes, "%s:%u", ops->name, index);
    return text;
}

const char *device_name(const struct device *device, char *text, uint32_t text_bytes)
{
    assert(text_bytes > 0);
    return print_name(device->ops, device->index, text, text_bytes);
}

const char *sumac_device_name(uint32_t index, char *text, uint32_t text_bytes)
{
    if (text == NULL || text_bytes == 0)
        return "";
    return print_name(device_kind_of_replicas(), index, text, text_bytes);
}

enum sumac_status
device_buffer_create(struct device *device, uint64_t bytes, struct sumac_buffer **buffer)
{
    const enum sumac_status status = device->ops->buffer_create(device, bytes, buffer);

    assert(status != SUMAC_OK || sumac_buffer_place(*buffer).kind == device->ops->place);
    return status;
}

enum sumac_status
device_buffer_mirror(struct device *device, struct sumac_buffer *host, struct sumac_buffer **mirror)
{
    assert(host != NULL);
    if (sumac_buffer_place(host).kind != device->ops->place)
        return device_buffer_create(device, sumac_buffer_bytes(host), mirror);
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
    if (queue != NULL)
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
    if (event != NULL)
        event->device->ops->event_close(event);
}

void device_run(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    queue->device->ops->run(queue, work, context);
}

void device_copy(struct device_queue *queue, const struct device_copy *copy)
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

enum sumac_status device_wait(struct device_queue *queue)
{
    assert(queue->device != NULL);
    return queue->device->ops->wait(queue);
}

const char *device_why(const struct device_queue *queue)
{
    const char *why = queue->device->ops->why(queue);

    assert(why != NULL);
    return why;
}
