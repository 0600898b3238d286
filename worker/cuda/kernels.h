/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h -- the library's own kernels on a device, of one array or of two. kernels.cu has what
 * they compute; updates.cu has those of update functions.
 *
 * - widen_…, narrow_…: casts. to = from · by, and to = from ÷ by rounded to the nearest. A half
 * type is float32 when it is wide; a 16-bit integer has 32 bits then, and is cut off again: of it
 * `by` is nothing.
 * - scale_…: to = from · by; `to` may be `from`.
 * - accumulate_…: to += by · from, of a half type into float32.
 * - finite_…: 1 into `to`, a uint32_t, where one of `from` is not finite; where all are, `to` is
 * left alone.
 *
 * The product is rounded before what follows, as worker/elements.c has it: all but the payload of
 * a NaN has the CPU's bits.
 */
#pragma once

#include "cuda_device.h"
#include "kernel_arguments.h"

/* X(its enumerator, its name in the image, after "sumac_") */
#define CUDA_KERNEL_LIST(X)                                                                        \
    X(WIDEN_INT16, widen_int16)                                                                    \
    X(NARROW_INT16, narrow_int16)                                                                  \
    X(WIDEN_FLOAT16, widen_float16)                                                                \
    X(NARROW_FLOAT16, narrow_float16)                                                              \
    X(WIDEN_BFLOAT16, widen_bfloat16)                                                              \
    X(NARROW_BFLOAT16, narrow_bfloat16)                                                            \
    X(SCALE_FLOAT16, scale_float16)                                                                \
    X(SCALE_BFLOAT16, scale_bfloat16)                                                              \
    X(SCALE_FLOAT32, scale_float32)                                                                \
    X(SCALE_FLOAT64, scale_float64)                                                                \
    X(ACCUMULATE_FLOAT16, accumulate_float16)                                                      \
    X(ACCUMULATE_BFLOAT16, accumulate_bfloat16)                                                    \
    X(ACCUMULATE_FLOAT32, accumulate_float32)                                                      \
    X(ACCUMULATE_FLOAT64, accumulate_float64)                                                      \
    X(FINITE_FLOAT16, finite_float16)                                                              \
    X(FINITE_BFLOAT16, finite_bfloat16)                                                            \
    X(FINITE_FLOAT32, finite_float32)                                                              \
    X(FINITE_FLOAT64, finite_float64)

enum cuda_kernel {
#define X(NAME, name) CUDA_KERNEL_##NAME,
    CUDA_KERNEL_LIST(X)
#undef X
        CUDA_KERNELS,
};

struct cuda_kernels {
    CUmodule module; /* NULL: not loaded */
    CUfunction functions[CUDA_KERNELS];
    uint32_t blocks_max; /* of a launch; with fewer each thread takes more */
};

/* Load them into the context that is current; give them back in it. */
CUresult cuda_kernels_load(const struct cuda_driver *driver, struct cuda_kernels *kernels);
void cuda_kernels_unload(const struct cuda_driver *driver, struct cuda_kernels *kernels);

/* Put one into a stream of that context. */
CUresult cuda_kernel_launch(
    const struct cuda_driver *driver, const struct cuda_kernels *kernels, enum cuda_kernel kernel,
    const struct cuda_kernel_arguments *arguments, CUstream stream);

/* Enough for every launch to have a thread for each tile, up to some 2^26 elements. */
#define CUDA_BLOCKS_MAX 65536u

/* ---- update functions of arrays in a GPU's memory
 *
 * cuda_update does what update_run (lib/update/update.h) does, with the same slice and the same
 * bits, except the payload of a NaN. The caller asks cuda_update_has first, and prepares the slice
 * by update_prepare. A pointer of the slice is an address of the device: that of sumac_buffer_data,
 * plus an offset of whole elements. An update runs after the copies and reductions that its queue
 * has. Several may be put into a queue before a wait. */

/* Is the function one of the table, and the type a float? Threads  any. */
bool cuda_update_has(const struct update_function *function, enum sumac_dtype dtype);

/* Put it into the queue of a GPU. The first one on a device loads the kernels there.
 * Borrows  *update, until the queue is waited for.
 * Fails    by the next wait, as whatever is put into a queue: RESOURCE_EXHAUSTED, the device has no
 *          memory for the kernels.
 * Threads  one at a time for a queue. */
void cuda_update(struct device_queue *queue, struct device_update *update);

/* Load them into the context that is current; give them back in it. */
CUresult cuda_updates_load(const struct cuda_driver *driver, struct cuda_updates *updates);
void cuda_updates_unload(const struct cuda_driver *driver, struct cuda_updates *updates);

/* Put one into a stream of that context; its queue is not looked at. */
CUresult cuda_update_launch(
    const struct cuda_driver *driver, const struct cuda_updates *updates,
    const struct device_update *update, CUstream stream);
