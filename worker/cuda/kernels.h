/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h -- the library's own kernels on a device, of one array or of two. kernels.cu has what
 * they compute; those of update functions are behind cuda_update.h.
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

#include <stdint.h>

#include "driver.h"
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

/* ---- for those who have an image of their own */

/* Enough for every launch to have a thread for each tile, up to some 2^26 elements. */
#define CUDA_BLOCKS_MAX 65536u

/* A function in a stream: with how much of work, how much of it a thread should have, and in how
 * many blocks at most. */
struct cuda_launch {
    CUfunction function;
    const void *argument; /* the kernel's, one */
    uint64_t elements;    /* more than 0 */
    uint32_t elements_per_thread, blocks_max;
};
CUresult
cuda_launch(const struct cuda_driver *driver, const struct cuda_launch *launch, CUstream stream);
