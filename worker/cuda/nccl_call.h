/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_call.h -- a call of device_group.h as NCCL's: types, weights, and which calls may be under
 * way at once.
 *
 * NCCL makes one launch of the calls of a group of its own, and these have no order. Those of a
 * start have one: a later call reads what an earlier one wrote. So a start is divided into batches,
 * each of calls that touch nothing of one another.
 */
#pragma once

#include <stdbool.h>

#include "device_group.h"
#include "nccl_library.h"

#define NCCL_BATCH_CALLS_MAX 32u
#define NCCL_BATCH_BYTES (UINT64_C(4) << 20) /* a batch that has so many gets no more calls */
/* Of scratch that a batch has. A call that needs more is alone, and is made in parts. */
#define NCCL_SCRATCH_BYTES_MAX (UINT64_C(32) << 20)

/* A rank of a communicator. */
struct nccl_rank {
    const struct nccl_library *library;
    ncclComm_t comm;
    cudaStream_t stream;
    uint32_t replica, replicas;
    uint64_t scratch; /* the device's address of it; wide.h */
};

/* What a start is of: "(all_reduce)", "(reduce and 3 more)"; into `text`, cut to fit. Lends  text.
 */
const char *
nccl_call_describe(const struct group_call *calls, uint32_t count, char *text, uint32_t text_bytes);

/* Say of each call whether it begins a batch, and where its scratch is: the same on all ranks.
 * Returns the bytes of scratch that the batches need. */
uint64_t nccl_call_divide(struct group_call *calls, uint32_t count, uint32_t replicas);

/* The elements of the call's next part, from `first` on, whose scratch is there. */
uint64_t nccl_call_part(const struct group_call *call, uint64_t first);

/* The sum of a mean's weights. */
double nccl_call_weights(const struct group_call *call, uint32_t replicas);

/* Is the replica's weight 0 in a mean? Nothing of what it gives is read then. */
bool nccl_call_is_idle(const struct group_call *call, uint32_t replica);

/* It was asked for, or will be. */
static inline bool nccl_is_fine(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Ask for the rank's part of a batch, with a reduction for each call. nccl_call_forget gives a
 * reduction back, when the batch has begun. */
ncclResult_t nccl_call_ask(
    const struct nccl_rank *rank, const struct group_call *calls, uint32_t count, ncclRedOp_t *ops);
void nccl_call_forget(const struct nccl_rank *rank, ncclRedOp_t op);
