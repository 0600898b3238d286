/* SPDX-License-Identifier: Apache-2.0 */
/* device.h -- the device that a step, or a strategy's replica, runs on, as that sees it: on a GPU
 * its stream, its memory, and launches of the program's own kernels. No header of CUDA's is needed
 * to compile it.
 *
 * On a GPU a step puts work into the device's stream and returns; what follows it – the reduction
 * over the replicas, the copy to the host – comes behind that in the same stream. The device's
 * primary context is current on the thread that the step runs on, so the CUDA runtime, cuBLAS and
 * others work there as they are, with `sumac_device_stream` as their stream. On a CPU the same
 * functions do their work before they return, and there is no stream, and nothing to launch.
 *
 * Work that a program puts elsewhere is its own to order:
 * - The step's stream waits for nothing on the default stream, which `<<<>>>` and a handle of
 * cuBLAS use when they are given no stream.
 * - What the program puts into other streams is awaited by the step's stream, with an event, before
 *   the step returns. Memory that another stream still uses is not given up before that.
 * - A CUDA graph is captured in THREAD_LOCAL mode: another replica may allocate meanwhile. A
 * capture has no call of sumac_device_wait and no collective.
 * - Another communicator of NCCL on the same GPUs (another strategy's, torch's) can deadlock with
 *   this one: a kernel of NCCL occupies its GPU until all ranks have begun theirs. Wait for the end
 *   of one communicator's collectives before the other's begin.
 * - An exception of C++ that leaves a step ends the process.
 *
 * A device is lent to a step until that returns. Threads  that of the step, but for the name.
 */
#ifndef SUMAC_DEVICE_H
#define SUMAC_DEVICE_H

#include <stdint.h>

#include "sumac/buffer.h"
#include "sumac/status.h"

#define SUMAC_KERNEL_NAME_BYTES_MAX 256 /* with its end */

struct sumac_device;

/* "GPU:0", "CPU:3", into `text` (cut to fit, always terminated). Lends  text. Threads  any. */
SUMAC_API const char *
sumac_device_name(const struct sumac_device *device, char *text, uint32_t text_bytes);

/* The GPU's number, as the CUDA runtime of this process counts them (CUDA_VISIBLE_DEVICES hides
 * and orders them); -1: it is a CPU. */
SUMAC_API int32_t sumac_device_gpu(const struct sumac_device *device);

/* The stream that the step's work belongs into: a CUstream, which is a cudaStream_t, too. It is
 * none that waits for the default stream. NULL: it is a CPU. */
SUMAC_API void *sumac_device_stream(const struct sumac_device *device);

/* Zeroed memory of the device, aligned to 64 bytes; on a CPU that is the host's.
 * Gives    *buffer, with one reference; the device stays open as long as it is there.
 * Fails    RESOURCE_EXHAUSTED: the device is full. INVALID_ARGUMENT: something is NULL. What the
 *          driver says. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_device_buffer_create(
    struct sumac_device *device, uint64_t bytes, struct sumac_buffer **buffer,
    struct sumac_error *error);

/* Memory of the host that GPUs read and write directly, so that copies to and from it run beside
 * everything else: pinned. On a CPU it is memory as all other. Otherwise as above. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_device_host_buffer_create(
    struct sumac_device *device, uint64_t bytes, struct sumac_buffer **buffer,
    struct sumac_error *error);

/* Bytes of a copy within two buffers, each the host's or this device's. */
struct sumac_copy {
    struct sumac_buffer *to;
    const struct sumac_buffer *from;
    uint64_t to_offset, from_offset, bytes;
};

/* Put a copy into the stream. Both buffers are lent until the stream has come so far
 * (sumac_device_wait, or the end of the worker's step).
 * Fails    OUT_OF_RANGE: more bytes than a buffer has. INVALID_ARGUMENT. What the driver says. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_device_copy(
    struct sumac_device *device, const struct sumac_copy *copy, struct sumac_error *error);

/* One launch of a kernel of the program's own. */
struct sumac_launch {
    /* What nvcc made (-fatbin, -cubin, -ptx), in memory: loaded into the device once, at its first
     * launch, and kept until the worker is destroyed. The same address is the same image. */
    const void *image;
    const char *kernel;      /* its name: extern "C" __global__ */
    uint32_t blocks;         /* of the grid, at least 1 */
    uint32_t threads;        /* of a block, at least 1 */
    uint32_t shared_bytes;   /* of dynamic shared memory, also above 48 KiB, up to the device's
                                limit for a block */
    void *const *parameters; /* where each of its parameters lies, in their order; copied */
};

/* Put a launch into the stream.
 * Fails    FAILED_PRECONDITION: it is a CPU, or the image has nothing for this GPU. NOT_FOUND: the
 *          image has no kernel of that name. INVALID_ARGUMENT: something is NULL or 0, or the GPU
 *          has fewer threads, registers or bytes of shared memory for a block. What the driver
 *          says of it. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_device_launch(
    struct sumac_device *device, const struct sumac_launch *launch, struct sumac_error *error);

/* Wait until the stream has done what was put into it; a step seldom needs to.
 * Fails    with what went wrong on the device. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_device_wait(struct sumac_device *device, struct sumac_error *error);

#endif
