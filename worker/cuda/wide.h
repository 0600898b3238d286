/* SPDX-License-Identifier: Apache-2.0 */
/* wide.h -- reductions that go through scratch. 16-bit integers, which NCCL does not know, and
 * means of halves, which it would scale, and round, as halves, become wider values there:
 *
 *     from ──widen, times weight──► wide ──NCCL adds──► wide ──over the weights' sum, narrow──► to
 *
 * A replica whose weight is 0 gives zeros to a mean, and not what it has: 0 × NaN is NaN.
 *
 * Each replica has scratch for one batch of a start (nccl_call.h).
 */
#pragma once

#include "cuda_device.h"
#include "kernels.h"
#include "nccl_call.h"

struct wide {
    struct cuda_kernels kernels;
    struct sumac_buffer *scratch; /* NULL: none */
};

/* Say of each call whether it is wide, and how much scratch it needs. */
void wide_arrange(struct group_call *calls, uint32_t count, uint32_t replicas);

/* So many bytes of scratch, and the kernels, if it is any; nothing of them may be in use.
 * Fails  RESOURCE_EXHAUSTED; as the device. What there was stays. */
enum sumac_status wide_reserve(
    struct cuda_device *device, struct wide *wide, uint64_t bytes, struct sumac_error *error);
void wide_deinit(const struct cuda_device *device, struct wide *wide);

/* Put what a rank of a call does with its scratch before NCCL, and after it, into its stream, with
 * the device's context current. */
typedef CUresult wide_step(
    const struct cuda_driver *driver, const struct wide *wide, const struct nccl_rank *rank,
    const struct group_call *call);
wide_step wide_begin, wide_end;
