/* SPDX-License-Identifier: Apache-2.0 */
/* wide.c -- what is made wide, where that lies, and how it becomes narrow again. */
#include "wide.h"

#include <assert.h>

#define ALIGNED UINT64_C(256) /* where each call's values begin */

static bool is_wide(const struct nccl_call *call)
{
    const enum sumac_dtype dtype = call->values.dtype;

    if (call->kind != NCCL_CALL_REDUCE && call->kind != NCCL_CALL_ALL_REDUCE)
        return false;
    return dtype == SUMAC_INT16 || dtype == SUMAC_UINT16 ||
           (sumac_dtype_kind(dtype) == SUMAC_KIND_HALF && call->op == SUMAC_REDUCE_MEAN);
}

uint64_t wide_arrange(struct nccl_call *calls, uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        calls[i].is_wide = is_wide(&calls[i]);
        calls[i].wide_offset = bytes;
        if (calls[i].is_wide)
            bytes += (calls[i].values.elements[0] * 4 + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    return bytes;
}

CUresult wide_reserve(const struct cuda_device *device, struct wide *wide, uint64_t bytes)
{
    const struct cuda_driver *driver = device->driver;
    CUcontext popped = NULL;

    if (bytes <= wide->bytes)
        return CUDA_SUCCESS;
    CUresult result = driver->cuCtxPushCurrent(device->context);
    if (result != CUDA_SUCCESS)
        return result;
    if (wide->kernels.module == NULL)
        result = cuda_kernels_load(driver, &wide->kernels);
    if (wide->memory != 0)
        (void)driver->cuMemFree(wide->memory);
    wide->memory = 0;
    wide->bytes = 0;
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAlloc(&wide->memory, bytes);
    if (result == CUDA_SUCCESS)
        wide->bytes = bytes;
    else
        wide->memory = 0;
    (void)driver->cuCtxPopCurrent(&popped);
    return result;
}

void wide_deinit(const struct cuda_device *device, struct wide *wide)
{
    const struct cuda_driver *driver = device->driver;
    CUcontext popped = NULL;

    if (driver->cuCtxPushCurrent(device->context) != CUDA_SUCCESS)
        return;
    cuda_kernels_unload(driver, &wide->kernels);
    if (wide->memory != 0)
        (void)driver->cuMemFree(wide->memory);
    wide->memory = 0;
    (void)driver->cuCtxPopCurrent(&popped);
}

/* Those of integers have no weights. */
static double total_of(const struct nccl_rank *rank, const struct nccl_call *call)
{
    double total = 0;

    for (uint32_t i = 0; call->op == SUMAC_REDUCE_MEAN && i < rank->replicas; i++)
        total += call->values.weights[i];
    return total;
}

static enum cuda_kernel widening(enum sumac_dtype dtype)
{
    if (dtype == SUMAC_FLOAT16)
        return CUDA_KERNEL_WIDEN_FLOAT16;
    return dtype == SUMAC_BFLOAT16 ? CUDA_KERNEL_WIDEN_BFLOAT16 : CUDA_KERNEL_WIDEN_INT16;
}

static enum cuda_kernel narrowing(enum sumac_dtype dtype)
{
    if (dtype == SUMAC_FLOAT16)
        return CUDA_KERNEL_NARROW_FLOAT16;
    return dtype == SUMAC_BFLOAT16 ? CUDA_KERNEL_NARROW_BFLOAT16 : CUDA_KERNEL_NARROW_INT16;
}

CUresult wide_begin(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct nccl_call *call)
{
    const bool is_mean = call->op == SUMAC_REDUCE_MEAN;

    assert(call->is_wide);
    assert(wide->memory != 0 || call->values.elements[0] == 0);
    return cuda_kernel_launch(
        driver, &wide->kernels, widening(call->values.dtype),
        &(struct cuda_kernel_arguments){
            .to = wide->memory + call->wide_offset,
            .from = (uint64_t)(uintptr_t)call->values.from[rank->replica],
            .count = call->values.elements[rank->replica],
            .by = is_mean ? call->values.weights[rank->replica] : 1,
        },
        (CUstream)rank->stream);
}

CUresult wide_end(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct nccl_call *call)
{
    assert(call->is_wide);
    assert(wide->memory != 0 || call->values.elements[0] == 0);
    if (call->kind == NCCL_CALL_REDUCE && rank->replica != call->root)
        return CUDA_SUCCESS;
    return cuda_kernel_launch(
        driver, &wide->kernels, narrowing(call->values.dtype),
        &(struct cuda_kernel_arguments){
            .to = (uint64_t)(uintptr_t)call->values.to[rank->replica],
            .from = wide->memory + call->wide_offset,
            .count = call->values.elements[rank->replica],
            .by = total_of(rank, call),
        },
        (CUstream)rank->stream);
}
