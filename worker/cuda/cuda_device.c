/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.c -- GPUs as devices: a queue is a thread, and a stream that the thread puts copies
 * and events into.
 *
 *     device_run, device_copy, … ──► [ job | job | … ] ──► thread ──► stream ──► GPU
 *
 * What is run is the program's function on the queue's thread, with the device's context current,
 * when all before it is over on the GPU. It is no host function of the stream (cuLaunchHostFunc):
 * these may neither call the driver nor wait for one another, and what replicas run does both.
 *
 * An event is awaited twice: the thread waits until the other queue's has put it into its stream,
 * the stream until it has come to pass there. So a stream only ever waits for what was put into
 * another before, and none can wait in a circle.
 */
#include "cuda_device.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "device_group.h"
#include "error.h"
#include "kernels.h"
#include "pause.h"
#include "trace.h"

#define ZEROED_MS_MAX 600000u /* to fill new memory with zeros */

/* A device's memory, or pinned pages of the host. */
struct cuda_memory {
    struct cuda_device *device;
    CUdeviceptr address;
    bool is_pinned;
};

/* ---- what a job does, on the queue's thread */

static CUresult copy(const struct cuda_driver *driver, const struct sumac_copy *copy, CUstream in)
{
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)sumac_buffer_data(copy->to) + copy->to_offset;
    const CUdeviceptr from =
        (CUdeviceptr)(uintptr_t)sumac_buffer_data(copy->from) + copy->from_offset;

    if (copy->bytes == 0)
        return CUDA_SUCCESS;
    if (sumac_buffer_place(copy->to).kind == SUMAC_PLACE_CUDA ||
        sumac_buffer_place(copy->from).kind == SUMAC_PLACE_CUDA)
        return driver->cuMemcpyAsync(to, from, copy->bytes, in);
    const CUresult before = driver->cuStreamSynchronize(in); /* what it reads may be on its way */
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, copy->bytes);
    return before;
}

/* On a thread of the driver's. Only traces have stamps: what comes after one waits for it. */
static void CUDA_CB stamp(void *ns) { *(uint64_t *)ns = trace_now(); }

/* Also on a device that has failed does the work run, and does the event pass: somebody may be
 * waiting for that. */
static enum sumac_status carry_out(struct device_queue *queue, const struct device_job *job)
{
    const struct cuda_device *device = (const struct cuda_device *)queue->device;
    const struct cuda_driver *driver = device->driver;
    const CUstream stream = ((struct cuda_queue *)queue)->stream;
    const struct cuda_event *event = (const struct cuda_event *)job->event;
    CUresult result = driver->cuCtxSetCurrent(device->context), next = CUDA_SUCCESS;
    enum sumac_status work = SUMAC_OK;

    assert(device->base.ops == &cuda_device_ops);
    assert(stream != NULL);
    switch (job->kind) {
    case JOB_WORK:
        if (result == CUDA_SUCCESS)
            result = driver->cuStreamSynchronize(stream);
        work = job->work(job->context);
        break;
    case JOB_ISSUE:
        work = job->work(job->context);
        break;
    case JOB_COPY:
        next = copy(driver, &job->copy, stream);
        break;
    case JOB_RECORD:
        next = driver->cuEventRecord(event->event, stream);
        device_event_pass(job->event);
        break;
    case JOB_AWAIT:
        device_event_await(job->event, job->until);
        next = driver->cuStreamWaitEvent(stream, event->event, CU_EVENT_WAIT_DEFAULT);
        break;
    case JOB_STAMP:
        next = driver->cuLaunchHostFunc(stream, stamp, job->stamp);
        break;
    }
    result = cuda_device_note(queue->device, result != CUDA_SUCCESS ? result : next);
    if (result == CUDA_SUCCESS)
        return work;
    cuda_words(driver, result, queue->why, sizeof queue->why);
    return cuda_status(result);
}

/* The context is current: until the stream has done what it has. CUDA_ERROR_NOT_READY: it has not
 * by then. The driver's own wait is for as long as a kernel takes. */
static CUresult
wait_for_stream(const struct cuda_driver *driver, CUstream stream, uint64_t until_ns)
{
    const uint64_t begin_us = pause_now_us();
    CUresult result = CUDA_SUCCESS;

    if (until_ns == DEVICE_NO_LIMIT)
        return driver->cuStreamSynchronize(stream);
    while ((result = driver->cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
        if (trace_now() >= until_ns)
            break;
        pause_here(pause_now_us() - begin_us);
    }
    return result;
}

/* ---- devices */

static enum sumac_status
check_index(const struct cuda_driver *driver, uint32_t index, struct sumac_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (index < driver->devices)
        return SUMAC_OK;
    return fail(
        error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSUPPORTED,
        "there is no GPU:%u: the program sees %u, from GPU:0 on%s%s (`sumac devices` lists them)",
        index, driver->devices,
        visible == NULL ? "" : ", by CUDA_VISIBLE_DEVICES=", visible == NULL ? "" : visible);
}

CUresult cuda_device_enter(const struct cuda_device *device)
{
    return device->driver->cuCtxPushCurrent(device->context);
}

void cuda_device_leave(const struct cuda_device *device)
{
    CUcontext popped = NULL;

    (void)device->driver->cuCtxPopCurrent(&popped);
    assert(popped == device->context);
}

static CUresult create_stream(const struct cuda_device *device, CUstream *stream)
{
    CUresult result = cuda_device_enter(device);

    if (result != CUDA_SUCCESS)
        return result;
    result = device->driver->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
    cuda_device_leave(device);
    return result;
}

CUresult cuda_device_create_event(const struct cuda_device *device, CUevent *event)
{
    CUresult result = cuda_device_enter(device);

    if (result != CUDA_SUCCESS)
        return result;
    result = device->driver->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    cuda_device_leave(device);
    return result;
}

void cuda_device_destroy_event(const struct cuda_device *device, CUevent event)
{
    if (event == NULL || cuda_device_enter(device) != CUDA_SUCCESS)
        return;
    (void)device->driver->cuEventDestroy(event);
    cuda_device_leave(device);
}

CUresult cuda_device_note(struct device *device, CUresult result)
{
    if (cuda_is_sticky(result))
        atomic_store(&device->is_broken, true);
    return result;
}

static enum sumac_status begin(struct device *base, struct sumac_error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    enum sumac_status status = cuda_driver_open(&device->driver, error);

    if (status == SUMAC_OK)
        status = check_index(device->driver, base->index, error);
    if (status != SUMAC_OK)
        return status;
    const struct cuda_driver *driver = device->driver;
    CUresult result = driver->cuDeviceGet(&device->number, (int)base->index);
    if (result == CUDA_SUCCESS)
        result = driver->cuDevicePrimaryCtxRetain(&device->context, device->number);
    if (result == CUDA_SUCCESS) {
        result = create_stream(device, &device->zeroing);
        if (result != CUDA_SUCCESS)
            (void)driver->cuDevicePrimaryCtxRelease(device->number);
    }
    if (result != CUDA_SUCCESS)
        return cuda_check(error, driver, result, "GPU:%u cannot be used", base->index);
    pthread_mutex_init(&device->mutex, NULL);
    cuda_host_copy_begin();
    return SUMAC_OK;
}

static void end(struct device *base)
{
    struct cuda_device *device = (struct cuda_device *)base;

    assert(device->context != NULL && device->zeroing != NULL);
    if (cuda_device_enter(device) == CUDA_SUCCESS) {
        cuda_updates_unload(device->driver, &device->updates);
        images_unload(device);
        (void)device->driver->cuStreamDestroy(device->zeroing);
        cuda_device_leave(device);
    }
    pthread_mutex_destroy(&device->mutex);
    (void)device->driver->cuDevicePrimaryCtxRelease(device->number);
}

static enum sumac_status count_devices(uint32_t *count, struct sumac_error *error)
{
    const struct cuda_driver *driver = NULL;
    const enum sumac_status status = cuda_driver_open(&driver, error);

    if (status == SUMAC_OK)
        *count = driver->devices;
    return status;
}

/* ---- memory */

static void free_memory(void *context)
{
    struct cuda_memory *memory = context;
    const struct cuda_driver *driver = memory->device->driver;

    assert(memory->address != 0);
    if (device_is_given_up(&memory->device->base)) {
        free(memory); /* what it describes stays, and so does the device */
        return;
    }
    if (cuda_device_enter(memory->device) == CUDA_SUCCESS) {
        if (memory->is_pinned)
            (void)driver->cuMemFreeHost((void *)(uintptr_t)memory->address);
        else
            (void)driver->cuMemFree(memory->address);
        cuda_device_leave(memory->device);
    }
    device_unref(&memory->device->base);
    free(memory);
}

/* The memory is zero when it is given: whatever queue uses it first need not wait for that. A
 * device that does not come to its end may still write the memory, and is given up. */
static CUresult take_zeroed(struct cuda_device *device, uint64_t taken, CUdeviceptr *address)
{
    const struct cuda_driver *driver = device->driver;
    CUresult result = driver->cuMemAlloc(address, taken);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuMemsetD8Async(*address, 0, taken, device->zeroing);
    if (result == CUDA_SUCCESS)
        result = wait_for_stream(driver, device->zeroing, device_until(ZEROED_MS_MAX));
    if (result == CUDA_ERROR_NOT_READY)
        device_give_up(&device->base);
    else if (result != CUDA_SUCCESS)
        (void)driver->cuMemFree(*address);
    return result;
}

/* Pages that the device reads and writes itself, and every other GPU of the process. */
static CUresult take_pinned(struct cuda_device *device, uint64_t taken, CUdeviceptr *address)
{
    void *host = NULL;
    const CUresult result = device->driver->cuMemHostAlloc(&host, taken, CU_MEMHOSTALLOC_PORTABLE);

    if (result == CUDA_SUCCESS)
        memset(host, 0, taken);
    *address = (CUdeviceptr)(uintptr_t)host;
    assert(*address % 64 == 0);
    return result;
}

static enum sumac_status fail_for_buffer(uint32_t index, uint64_t bytes, struct sumac_error *error)
{
    return fail_for_memory(
        error, "no memory of the host's for a buffer of %" PRIu64 " bytes of device GPU:%u", bytes,
        index);
}

static enum sumac_status create_buffer(
    struct device *base, uint64_t bytes, enum sumac_place_kind kind, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    const bool is_pinned = kind == SUMAC_PLACE_HOST;
    const struct sumac_place place = {kind, is_pinned ? 0 : base->index};
    const uint64_t taken = bytes > 0 ? bytes : 1; /* of nothing there is no address */
    struct cuda_memory *memory = calloc(1, sizeof *memory);

    if (memory == NULL)
        return fail_for_buffer(base->index, bytes, error);
    *memory = (struct cuda_memory){.device = device, .is_pinned = is_pinned};
    CUresult result = cuda_device_enter(device);
    if (result == CUDA_SUCCESS) {
        result = (is_pinned ? take_pinned : take_zeroed)(device, taken, &memory->address);
        cuda_device_leave(device);
    }
    if (result != CUDA_SUCCESS) {
        free(memory);
        return is_pinned
                   ? cuda_check(
                         error, device->driver, result,
                         "the host gives no pinned memory for %" PRIu64 " bytes that GPU:%u reads",
                         bytes, base->index)
                   : cuda_check(
                         error, device->driver, result,
                         "GPU:%u gives no memory for %" PRIu64 " bytes", base->index, bytes);
    }
    (void)atomic_fetch_add(&base->references, 1);
    void *const data = (void *)(uintptr_t)memory->address;
    if (buffer_own(data, bytes, place, free_memory, memory, buffer) == SUMAC_OK)
        return SUMAC_OK;
    free_memory(memory);
    return fail_for_buffer(base->index, bytes, error);
}

/* ---- queues and events */

static enum sumac_status begin_queue(struct device_queue *base, struct sumac_error *error)
{
    const struct cuda_device *device = (const struct cuda_device *)base->device;
    const CUresult result = create_stream(device, &((struct cuda_queue *)base)->stream);

    return cuda_check(error, device->driver, result, "GPU:%u gives no stream", device->base.index);
}

/* The queue's thread has nothing to do: what it would say of a failure is said here. */
static enum sumac_status complete(struct device_queue *base, uint64_t until_ns)
{
    struct cuda_queue *queue = (struct cuda_queue *)base;
    const struct cuda_device *device = (const struct cuda_device *)base->device;
    CUresult result = cuda_device_enter(device);

    if (result == CUDA_SUCCESS) {
        result = wait_for_stream(device->driver, queue->stream, until_ns);
        cuda_device_leave(device);
    }
    if (cuda_device_note(base->device, result) == CUDA_SUCCESS)
        return SUMAC_OK;
    if (result == CUDA_ERROR_NOT_READY)
        return SUMAC_DEADLINE_EXCEEDED;
    if (base->told[0] == '\0')
        cuda_words(device->driver, result, base->told, sizeof base->told);
    return cuda_status(result);
}

static void end_queue(struct device_queue *base)
{
    const struct cuda_device *device = (const struct cuda_device *)base->device;

    assert(((struct cuda_queue *)base)->stream != NULL);
    (void)complete(base, DEVICE_NO_LIMIT); /* its failures are not told any more */
    if (cuda_device_enter(device) != CUDA_SUCCESS)
        return;
    (void)device->driver->cuStreamDestroy(((struct cuda_queue *)base)->stream);
    cuda_device_leave(device);
}

static enum sumac_status begin_event(struct device_event *base, struct sumac_error *error)
{
    const struct cuda_device *device = (const struct cuda_device *)base->device;
    const CUresult result = cuda_device_create_event(device, &((struct cuda_event *)base)->event);

    return cuda_check(error, device->driver, result, "GPU:%u gives no event", device->base.index);
}

static void end_event(struct device_event *base)
{
    cuda_device_destroy_event(
        (const struct cuda_device *)base->device, ((struct cuda_event *)base)->event);
}

/* ---- within a queue's work, with the context current */

static void *stream_of(const struct device_queue *queue)
{
    return ((const struct cuda_queue *)queue)->stream;
}

static enum sumac_status
copy_here(struct device_queue *base, const struct sumac_copy *what, struct sumac_error *error)
{
    const struct cuda_driver *driver = ((const struct cuda_device *)base->device)->driver;

    assert(base->device->ops == &cuda_device_ops);
    return cuda_check(
        error, driver, copy(driver, what, ((struct cuda_queue *)base)->stream),
        "GPU:%u does not copy %" PRIu64 " bytes", base->device->index, what->bytes);
}

static enum sumac_status
launch_here(struct device_queue *base, const struct sumac_launch *launch, struct sumac_error *error)
{
    struct cuda_device *device = (struct cuda_device *)base->device;
    const struct cuda_driver *driver = device->driver;
    CUfunction function = NULL;

    assert(launch->blocks > 0 && launch->threads > 0);
    CUresult result = images_find(device, launch, &function);
    assert((result == CUDA_SUCCESS) == (function != NULL));

    if (result == CUDA_ERROR_NOT_FOUND)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
            "there is no kernel %.64s in the image that is to be launched: declare it extern \"C\" "
            "__global__",
            launch->kernel);
    if (result == CUDA_SUCCESS)
        result = driver->cuLaunchKernel(
            function, launch->blocks, 1, 1, launch->threads, 1, 1, launch->shared_bytes,
            ((struct cuda_queue *)base)->stream, (void **)(uintptr_t)launch->parameters, NULL);
    const enum sumac_status status = cuda_check(
        error, driver, result,
        "GPU:%u does not run kernel %.64s, %u blocks of %u threads with %u bytes of shared memory",
        base->device->index, launch->kernel, launch->blocks, launch->threads, launch->shared_bytes);
    const bool is_callers =
        result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (is_callers && error != NULL)
        error->status = SUMAC_INVALID_ARGUMENT;
    return is_callers ? SUMAC_INVALID_ARGUMENT : status;
}

static enum sumac_status wait_here(struct device_queue *base, struct sumac_error *error)
{
    const struct cuda_driver *driver = ((const struct cuda_device *)base->device)->driver;
    const uint32_t ms_max = base->wait_ms_max;
    const CUresult result = wait_for_stream(
        driver, ((struct cuda_queue *)base)->stream,
        ms_max == 0 ? DEVICE_NO_LIMIT : device_until(ms_max));

    (void)cuda_device_note(base->device, result);
    if (result == CUDA_ERROR_NOT_READY)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "GPU:%u has not done what is in the stream in %u ms", base->device->index, ms_max);
    return cuda_check(error, driver, result, "GPU:%u has failed", base->device->index);
}

const struct device_ops cuda_device_ops = {
    .name = "GPU",
    .place = SUMAC_PLACE_CUDA,
    .group_ops = &cuda_group_ops,
    .device_bytes = sizeof(struct cuda_device),
    .queue_bytes = sizeof(struct cuda_queue),
    .event_bytes = sizeof(struct cuda_event),
    .begin = begin,
    .end = end,
    .queue_begin = begin_queue,
    .queue_end = end_queue,
    .event_begin = begin_event,
    .event_end = end_event,
    .count = count_devices,
    .buffer_create = create_buffer,
    .carry_out = carry_out,
    .has_update = cuda_update_has,
    .update = cuda_update,
    .complete = complete,
    .stream = stream_of,
    .copy_here = copy_here,
    .launch_here = launch_here,
    .wait_here = wait_here,
};
