/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h -- the GPUs that this process sees, and what is missing, with the remedy: what `sumac
 * devices` prints. cuda/gpus.c looks; of a build without GPUs, cuda/absent.c says so. */
#pragma once

#include <stdint.h>

#include "sumac/status.h"

#define GPUS_MAX 64u /* of more the first are listed: a bit each in `reaches` */

struct gpu {
    char name[96];
    uint64_t memory_bytes;
    uint32_t capability_major, capability_minor;
    uint64_t reaches; /* bit j: it reads and writes the memory of GPU:j */
};

struct gpus {
    uint32_t count;
    struct gpu items[GPUS_MAX];
    char driver[32]; /* the release, "580.65.06"; "" where the system does not tell */
    uint32_t cuda_major, cuda_minor; /* the latest that the driver knows; 0.0: there is none */
    uint32_t nccl_major, nccl_minor, nccl_patch;
    struct sumac_error missing;      /* why there are no GPUs; its status is OK where there are */
    struct sumac_error nccl_missing; /* of NCCL, which two GPUs or more need */
};

/* Fill in *gpus. Threads  any. */
void gpus_find(struct gpus *gpus);
