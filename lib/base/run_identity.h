/* SPDX-License-Identifier: Apache-2.0 */
/* run_identity.h -- which run a process belongs to, and which process it is.
 *
 * Two jobs may have the same addresses. Their names tell them apart. A name is no secret.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RUN_NAME_BYTES_MAX 128
#define RUN_HOST_BYTES_MAX 64
#define RUN_IDENTITY_TEXT_BYTES 192

/* Who named the run; the numbers are those of the wire (Identity.Source). */
enum run_source { RUN_SOURCE_NONE, RUN_SOURCE_ENVIRONMENT, RUN_SOURCE_SLURM };

struct run_identity {
    char run[RUN_NAME_BYTES_MAX + 1]; /* "": the process has no identity */
    uint32_t source;                  /* enum run_source, or a number of a later release */
    char host[RUN_HOST_BYTES_MAX + 1];
    uint32_t pid; /* 0: not said */
};

/* Do both have a name from the same source, and do the names differ? */
bool run_identity_differs(const struct run_identity *a, const struct run_identity *b);

/* " (SLURM_JOB_ID)", behind the name of a run; "": a source of a later release, or none. */
const char *run_source_text(uint32_t source);

/* run "4711" (SLURM_JOB_ID), process 12 on node3. Lends  `text`, of RUN_IDENTITY_TEXT_BYTES. */
const char *run_identity_print(const struct run_identity *identity, char *text);
