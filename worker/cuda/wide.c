/* SPDX-License-Identifier: Apache-2.0 */
/* wide.c -- what is made wide, and how it becomes narrow again. */
#include "wide.h"

#include <assert.h>

#define WIDE_BYTES 4u /* of an element */

static bool is_wide(const struct group_call *call)
{
    const enum sumac_dtype dtype = call->values.dtype;

    if (call->kind != GROUP_REDUCE && call->kind != GROUP_ALL_REDUCE)
        return false;
    return dtype == SUMAC_INT16 || dtype == SUMAC_UINT16 ||
           (sumac_dtype_kind(dtype) == SUMAC_KIND_HALF && call->op == SUMAC_REDUCE_MEAN);
}

static bool has_idle(const struct group_call *call, uint32_t replicas)
{
    for (uint32_t i = 0; i < replicas; i++)
        if (nccl_call_is_idle(call, i))
            return true;
    return false;
}

void wide_arrange(struct group_call *calls, uint32_t count, uint32_t replicas)
{
    for (uint32_t i = 0; i < count; i++) {
        struct group_call *call = &calls[i];
        call->is_wide = is_wide(call);
        call->scratch_each = call->is_wide              ? WIDE_BYTES
                             : has_idle(call, replicas) ? sumac_dtype_bytes(call->values.dtype)
                                                        : 0;
    }
}

static enum sumac_status
load_kernels(const struct cuda_device *device, struct wide *wide, struct sumac_error *error)
{
    if (wide->kernels.module != NULL)
        return SUMAC_OK;
    CUresult result = cuda_device_enter(device);
    if (result == CUDA_SUCCESS) {
        result = cuda_kernels_load(device->driver, &wide->kernels);
        cuda_device_leave(device);
    }
    return cuda_check(
        error, device->driver, result, "GPU:%u does not load the library's kernels",
        device->base.index);
}

enum sumac_status wide_reserve(
    struct cuda_device *device, struct wide *wide, uint64_t bytes, struct sumac_error *error)
{
    struct sumac_buffer *made = NULL;

    assert(bytes <= NCCL_SCRATCH_BYTES_MAX);
    enum sumac_status status = bytes == 0 ? SUMAC_OK : load_kernels(device, wide, error);
    if (status != SUMAC_OK || bytes <= sumac_buffer_bytes(wide->scratch))
        return status;
    status = device_buffer_create(&device->base, bytes, &made, error);
    if (status != SUMAC_OK)
        return status;
    sumac_buffer_unref(wide->scratch);
    wide->scratch = made;
    return SUMAC_OK;
}

void wide_deinit(const struct cuda_device *device, struct wide *wide)
{
    sumac_buffer_unref(wide->scratch);
    wide->scratch = NULL;
    if (cuda_device_enter(device) != CUDA_SUCCESS)
        return;
    cuda_kernels_unload(device->driver, &wide->kernels);
    cuda_device_leave(device);
}

/* From the rank's values to its scratch, or back. */
static CUresult launch(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct group_call *call, bool narrows)
{
    static const enum cuda_kernel of_float16[] = {
        CUDA_KERNEL_WIDEN_FLOAT16, CUDA_KERNEL_NARROW_FLOAT16};
    static const enum cuda_kernel of_bfloat16[] = {
        CUDA_KERNEL_WIDEN_BFLOAT16, CUDA_KERNEL_NARROW_BFLOAT16};
    static const enum cuda_kernel of_int16[] = {CUDA_KERNEL_WIDEN_INT16, CUDA_KERNEL_NARROW_INT16};
    const enum sumac_dtype dtype = call->values.dtype;
    const enum cuda_kernel *kernels = dtype == SUMAC_FLOAT16    ? of_float16
                                      : dtype == SUMAC_BFLOAT16 ? of_bfloat16
                                                                : of_int16;
    const bool is_mean = call->op == SUMAC_REDUCE_MEAN;
    const uint64_t scratch = rank->scratch + call->scratch_offset;
    const void *array = narrows ? call->values.to[rank->replica] : call->values.from[rank->replica];
    const uint64_t values = (uint64_t)(uintptr_t)array + call->first * sumac_dtype_bytes(dtype);

    assert(call->is_wide);
    return cuda_kernel_launch(
        driver, &wide->kernels, kernels[narrows],
        &(struct cuda_kernel_arguments){
            .to = narrows ? values : scratch,
            .from = narrows ? scratch : values,
            .count = call->count,
            .by = !is_mean  ? 1
                  : narrows ? nccl_call_weights(call, rank->replicas)
                            : call->values.weights[rank->replica],
        },
        (CUstream)rank->stream);
}

CUresult wide_begin(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct group_call *call)
{
    assert(call->scratch_each > 0);
    assert(wide->scratch != NULL || call->count == 0);
    if (call->count == 0)
        return CUDA_SUCCESS;
    if (nccl_call_is_idle(call, rank->replica))
        return driver->cuMemsetD8Async(
            rank->scratch + call->scratch_offset, 0, call->count * call->scratch_each,
            (CUstream)rank->stream);
    return call->is_wide ? launch(driver, wide, rank, call, false) : CUDA_SUCCESS;
}

CUresult wide_end(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct group_call *call)
{
    assert(wide->scratch != NULL || call->count == 0);
    if (!call->is_wide || (call->kind == GROUP_REDUCE && rank->replica != call->root))
        return CUDA_SUCCESS;
    return launch(driver, wide, rank, call, true);
}
