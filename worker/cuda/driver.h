/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h -- the one door to CUDA: the functions of the driver that is on this machine, if one is.
 *
 * The driver's library is opened by the program that runs; none is linked, so the same program runs
 * where there is no GPU. CUDA_FUNCTION_LIST has what is used and nothing more. A name in it is
 * cuda.h's, which has the version in it that the headers speak of: driver->cuMemAlloc is the
 * symbol cuMemAlloc_v2. Those whose newest version only the newest drivers have are not used.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/status.h"

/* Drivers run what any toolkit of their own major release, or of an earlier one, made. */
#define CUDA_DRIVER_VERSION_MIN (CUDA_VERSION / 1000 * 1000)

#define CUDA_FUNCTION_LIST(X)                                                                      \
    X(cuInit)                                                                                      \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxPushCurrent)                                                                            \
    X(cuCtxPopCurrent)                                                                             \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemsetD8Async)                                                                             \
    X(cuMemcpyAsync)                                                                               \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamQuery)                                                                               \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuFuncSetAttribute)                                                                          \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchHostFunc)

struct cuda_driver {
#define X(function) __typeof__(function) *function;
    CUDA_FUNCTION_LIST(X)
#undef X
    int version; /* of CUDA, the latest that it knows: 13000 is 13.0 */
    uint32_t devices;
};

/* The driver, opened once for the process, with one device at least.
 * Lends    *driver, for good.
 * Fails    FAILED_PRECONDITION: there is no driver; it is too old; it does not start; there is no
 *          device, or CUDA_VISIBLE_DEVICES hides every one. The sentence has the remedy.
 * Threads  any. */
enum sumac_status cuda_driver_open(const struct cuda_driver **driver, struct sumac_error *error);

/* The latest CUDA that the driver of this machine knows, though it may be too old, or have no
 * device; 0: no driver. Threads  any. */
int cuda_driver_version(void);

/* What a result of the driver's is as a status. */
enum sumac_status cuda_status(CUresult result);

/* Does every later call of the device's context fail with it, until the process ends? */
bool cuda_is_sticky(CUresult result);

/* The driver's name for it, and its words: "CUDA_ERROR_OUT_OF_MEMORY (out of memory)". */
void cuda_words(const struct cuda_driver *driver, CUresult result, char *text, size_t text_bytes);

/* The result as a status. Unless that is OK, the error has the sentence with the driver's name for
 * it and its words: "GPU:1 could not …: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". */
enum sumac_status cuda_check(
    struct sumac_error *error, const struct cuda_driver *driver, CUresult result,
    const char *format, ...) __attribute__((format(printf, 4, 5)));
