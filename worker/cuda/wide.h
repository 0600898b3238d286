/* SPDX-License-Identifier: Apache-2.0 */
/* wide.h -- reductions that go through wider values: 16-bit integers, which NCCL does not know, and
 * means of halves, which it would scale, and round, as halves.
 *
 *     from ──widen, times weight──► wide ──NCCL adds──► wide ──over the weights' sum, narrow──► to
 *
 * Each replica has memory for all wide values of a start, one call's after the other's.
 */
#ifndef WORKER_CUDA_WIDE_H
#define WORKER_CUDA_WIDE_H

#include "cuda_device.h"
#include "kernels.h"
#include "nccl_call.h"

struct wide {
    struct cuda_kernels kernels;
    CUdeviceptr memory; /* 0: none */
    uint64_t bytes;
};

/* Say of each call whether it is wide, and where its values are then. Returns their bytes. */
uint64_t wide_arrange(struct nccl_call *calls, uint32_t count);

/* Memory for so many bytes, and the kernels; nothing of them may be in use. */
CUresult wide_reserve(const struct cuda_device *device, struct wide *wide, uint64_t bytes);
void wide_deinit(const struct cuda_device *device, struct wide *wide);

/* Put what a rank of a wide call does before NCCL, and after it, into its stream, with the device's
 * context current. */
typedef CUresult wide_step(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct nccl_call *call);
wide_step wide_begin, wide_end;

#endif
