/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h -- the library's own kernels on a device. kernels.cu has what they compute. */
#ifndef WORKER_CUDA_KERNELS_H
#define WORKER_CUDA_KERNELS_H

#include <stdint.h>

#include "driver.h"

/* X(its enumerator, its name in the image) */
#define CUDA_KERNEL_LIST(X)                                                                        \
    X(WIDEN_INT16, "sumac_widen_int16")                                                            \
    X(NARROW_INT16, "sumac_narrow_int16")                                                          \
    X(WIDEN_FLOAT16, "sumac_widen_float16")                                                        \
    X(NARROW_FLOAT16, "sumac_narrow_float16")                                                      \
    X(WIDEN_BFLOAT16, "sumac_widen_bfloat16")                                                      \
    X(NARROW_BFLOAT16, "sumac_narrow_bfloat16")

enum cuda_kernel {
#define X(NAME, name) CUDA_KERNEL_##NAME,
    CUDA_KERNEL_LIST(X)
#undef X
        CUDA_KERNELS,
};

struct cuda_kernels {
    CUmodule module; /* NULL: not loaded */
    CUfunction functions[CUDA_KERNELS];
};

/* What a kernel is given. */
struct cuda_kernel_arguments {
    CUdeviceptr to, from; /* (count), of the types that its name says */
    uint64_t count;
    float
        by; /* what is widened is multiplied by it, what is narrowed divided; of integers nothing */
};

/* Load them into the context that is current; give them back in it. */
CUresult cuda_kernels_load(const struct cuda_driver *driver, struct cuda_kernels *kernels);
void cuda_kernels_unload(const struct cuda_driver *driver, struct cuda_kernels *kernels);

/* Put one into a stream of that context. */
CUresult cuda_kernel_launch(
    const struct cuda_driver *driver, const struct cuda_kernels *kernels, enum cuda_kernel kernel,
    const struct cuda_kernel_arguments *arguments, CUstream stream);

#endif
