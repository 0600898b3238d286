/* SPDX-License-Identifier: Apache-2.0 */
/* communicators.h -- a NCCL without GPUs: communicators whose calls take their time, and what is
 * computed where all ranks have come.
 *
 * Nothing that a communicator that does not block is asked for has begun when the call returns: it
 * begins when somebody has asked ncclCommGetAsyncError for how it is getting on, some times. Its
 * work then waits in the ranks' streams for that of all others, and the last one does it for all.
 *
 *     SUMAC_STANDIN_NCCL_VERSION   that of nccl.h
 *     SUMAC_STANDIN_NCCL           WHAT:RANK:N, the rank's N-th call is no call as others are:
 *                                  "stall", it never ends; "fail", it is an error; "break", it
 *                                  begins, never ends, and is an error for who asks then; "cuda",
 * the rank's GPU has failed; "hold", it is as others are, but the end of the communicator waits for
 * what its streams have
 */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RANKS_MAX 8
#define SCALARS_MAX 64

enum operation_kind { ALL_REDUCE, REDUCE, BROADCAST };

/* What a rank was asked for. */
struct operation {
    struct operation *next;
    struct ncclComm *comm;
    CUstream stream;
    enum operation_kind kind;
    uint64_t from, to, count;
    ncclDataType_t type;
    bool scales;
    double scalar; /* what its values are multiplied by first */
    int root;
    uint64_t number; /* of the rank's calls, from 1 on */
};

/* The ranks of one ncclUniqueId. */
struct club {
    struct club *next;
    uint64_t id;
    int ranks, joined, left;
    pthread_cond_t changed;
    struct operation *come[RANKS_MAX]; /* (ranks), whose turn it is; NULL: not come yet */
    uint64_t done;                     /* calls that all have made */
};

struct ncclComm {
    struct club *club;
    int rank, device;
    ncclResult_t state;                    /* what ncclCommGetAsyncError says */
    unsigned polls;                        /* until it goes on */
    struct operation *asked, **asked_last; /* not begun */
    uint64_t calls;
    int pieces; /* in streams */
    int users;  /* threads that are in a function of it */
    bool aborted, fails, breaks, holds;
    double scalars[SCALARS_MAX];
    bool has_scalar[SCALARS_MAX];
};

/* Of all ranks, into all that are to have it, in the order of the ranks; false: a rank's memory is
 * not where it says. */
bool operation_compute(struct operation *const *come, int ranks);

/* Leave garbage where the rank's result would be; false likewise. */
bool operation_spoil(const struct operation *operation);

/* What a scalar of that type is. */
double operation_scalar(ncclDataType_t type, const void *scalar);
