/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_call.h -- a call of collective.h as NCCL's: types, weights, and which calls may be under way
 * at once.
 *
 * NCCL makes one launch of the calls of a group of its own, and these have no order. Those of a
 * start have one: a later call reads what an earlier one wrote. So a start is divided into batches,
 * each of calls that touch nothing of one another.
 */
#ifndef WORKER_CUDA_NCCL_CALL_H
#define WORKER_CUDA_NCCL_CALL_H

#include <stdbool.h>

#include "collective.h"
#include "nccl_library.h"

#define NCCL_BATCH_CALLS_MAX 32u
#define NCCL_BATCH_BYTES (UINT64_C(4) << 20) /* a batch that has so many gets no more calls */

enum nccl_call_kind {
    NCCL_CALL_REDUCE,
    NCCL_CALL_ALL_REDUCE,
    NCCL_CALL_ALL_GATHER,
    NCCL_CALL_BROADCAST,
};

struct nccl_call {
    enum nccl_call_kind kind;
    enum sumac_reduce_op op;
    uint32_t root;
    struct collective_values values;
    bool begins;  /* a batch */
    bool is_wide; /* NCCL adds wider values (wide.h) */
    uint64_t wide_offset;
    struct device_event *over; /* NULL: nobody awaits this call alone */
};

/* A rank of a communicator. */
struct nccl_rank {
    const struct nccl_library *library;
    ncclComm_t comm;
    cudaStream_t stream;
    uint32_t replica, replicas;
    uint64_t wide; /* where the device has the wide values of a start */
};

/* What a start is of: "(all_reduce)", "(reduce and 3 more)"; into `text`, cut to fit. Lends  text.
 */
const char *
nccl_call_describe(const struct nccl_call *calls, uint32_t count, char *text, uint32_t text_bytes);

/* Say of each call whether it begins a batch: the same on all ranks. */
void nccl_call_divide(struct nccl_call *calls, uint32_t count, uint32_t replicas);

/* The reduction of a call on this rank, which scales where it is a mean; and back again, when the
 * call has begun. */
ncclResult_t
nccl_call_prepare(const struct nccl_rank *rank, const struct nccl_call *call, ncclRedOp_t *op);
void nccl_call_forget(const struct nccl_rank *rank, ncclRedOp_t op);

/* Ask for the rank's part of it, within a group of NCCL's. */
ncclResult_t
nccl_call_issue(const struct nccl_rank *rank, const struct nccl_call *call, ncclRedOp_t op);

#endif
