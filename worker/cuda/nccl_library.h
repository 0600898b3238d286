/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_library.h -- the one door to NCCL, which computes over several GPUs: opened like the driver,
 * by the program that runs, where it is there.
 *
 * It is libnccl.so.2, as the linker finds it, or the file that SUMAC_NCCL_LIBRARY names (that of a
 * Python installation, nvidia/nccl/lib/libnccl.so.2).
 */
#pragma once

#include <nccl.h>
#include <stdint.h>

#include "sumac/status.h"

/* The first release that counts the threads that join one of its own. Earlier ones have faults
 * where communicators do not block: up to 2.25  several threads join the same thread up to 2.22  a
 * launch may hold up its caller up to 2.18  an abort does not end what another thread began */
#define NCCL_LIBRARY_VERSION_MIN NCCL_VERSION(2, 27, 3)

#define NCCL_FUNCTION_LIST(X)                                                                      \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommAbort)                                                                               \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclReduce)                                                                                  \
    X(ncclBroadcast)                                                                               \
    X(ncclRedOpCreatePreMulSum)                                                                    \
    X(ncclRedOpDestroy)

struct nccl_library {
#define X(function) __typeof__(function) *function;
    NCCL_FUNCTION_LIST(X)
#undef X
    int version; /* 22809 is 2.28.9 */
};

/* NCCL, opened once for the process.
 * Lends    *library, for good.
 * Fails    FAILED_PRECONDITION: it is not there; it is too old; NCCL_COMM_BLOCKING makes its
 *          communicators block. The sentence has the remedy.
 * Threads  any. */
enum sumac_status nccl_library_open(const struct nccl_library **library, struct sumac_error *error);

/* Of the one that is there, though it may be too old; 0.0.0: there is none. Threads  any. */
void nccl_library_version(uint32_t *major, uint32_t *minor, uint32_t *patch);
