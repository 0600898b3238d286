/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_host_copy.c -- what lies in a GPU's memory, to the host's and back, at once: lib/base's
 * host_copy.h asks.
 *
 * The thread of a queue of that GPU has it done in its stream, after what is there. Another has a
 * stream for it alone: what it copies has been waited for.
 */
#include "cuda_device.h"

#include <assert.h>
#include <inttypes.h>

#include "host_copy.h"

struct piece {
    struct sumac_place place;
    CUdeviceptr to, from;
    uint64_t bytes;
};

/* The context is current. */
static CUresult
copy_in(const struct cuda_driver *driver, const struct piece *piece, const CUstream stream)
{
    const CUresult result = driver->cuMemcpyAsync(piece->to, piece->from, piece->bytes, stream);
    const CUresult over = driver->cuStreamSynchronize(stream); /* what is not over is not freed */

    return result != CUDA_SUCCESS ? result : over;
}

static CUresult copy_apart(const struct cuda_driver *driver, const struct piece *piece)
{
    CUstream stream = NULL;
    CUresult result = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

    if (result != CUDA_SUCCESS)
        return result;
    result = copy_in(driver, piece, stream);
    (void)driver->cuStreamDestroy(stream);
    return result;
}

/* The stream in which this thread's work on that GPU is; NULL: it has none there. */
static CUstream own_stream(uint32_t device)
{
    const struct device_queue *queue = device_queue_of_thread();

    return queue != NULL && queue->device->ops == &cuda_device_ops && queue->device->index == device
               ? ((const struct cuda_queue *)queue)->stream
               : NULL;
}

static CUresult copy(const struct cuda_driver *driver, const struct piece *piece)
{
    const CUstream own = own_stream(piece->place.device);
    CUcontext context = NULL, popped = NULL;
    CUdevice number = 0;

    assert(piece->bytes > 0);
    CUresult result = driver->cuDeviceGet(&number, (int)piece->place.device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDevicePrimaryCtxRetain(&context, number);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuCtxPushCurrent(context);
    if (result == CUDA_SUCCESS) {
        result = own != NULL ? copy_in(driver, piece, own) : copy_apart(driver, piece);
        (void)driver->cuCtxPopCurrent(&popped);
    }
    (void)driver->cuDevicePrimaryCtxRelease(number);
    return result;
}

static uint64_t address_of(const void *data) { return (uint64_t)(uintptr_t)data; }

static enum sumac_status do_copy(struct piece piece, const char *way, struct sumac_error *error)
{
    const struct cuda_driver *driver = NULL;
    const enum sumac_status status = cuda_driver_open(&driver, error);

    if (status != SUMAC_OK)
        return status;
    return cuda_check(
        error, driver, copy(driver, &piece), "%" PRIu64 " bytes are not copied %s GPU:%u",
        piece.bytes, way, piece.place.device);
}

static enum sumac_status read_there(
    struct sumac_place place, const void *there, void *here, uint64_t bytes,
    struct sumac_error *error)
{
    return do_copy(
        (struct piece){place, address_of(here), address_of(there), bytes}, "from", error);
}

static enum sumac_status write_there(
    struct sumac_place place, void *there, const void *here, uint64_t bytes,
    struct sumac_error *error)
{
    return do_copy((struct piece){place, address_of(there), address_of(here), bytes}, "to", error);
}

void cuda_host_copy_begin(void)
{
    static const struct host_copy of_gpus = {.read = read_there, .write = write_there};

    host_copy_set(&of_gpus);
}
