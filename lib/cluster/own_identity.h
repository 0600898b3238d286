/* SPDX-License-Identifier: Apache-2.0 */
/* own_identity.h -- the identity of this process, from its environment. */
#pragma once

#include "run_identity.h"
#include "sumac/status.h"

/* SUMAC_RUN, where it is set (empty: no identity), else the Slurm job, else none; host and process.
 *
 * Fails    INVALID_ARGUMENT: SUMAC_RUN has more than RUN_NAME_BYTES_MAX bytes, or a control
 *          character.
 * Threads  any, while none sets the environment. */
SUMAC_CHECKED enum sumac_status
own_identity(struct run_identity *identity, struct sumac_error *error);
