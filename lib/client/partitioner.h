/* SPDX-License-Identifier: Apache-2.0 */
/* partitioner.h -- how a caller says that a variable is split, for what is created on the ps and
 * for what a strategy keeps in its own process. */
#pragma once

#include "sumac/client.h"
#include "wire.h"

/* A member that the kind does not use is a mistake of the caller's.
 * variable  its name, for the text
 * Fails     INVALID_ARGUMENT. */
enum sumac_status partitioner_check(
    const struct sumac_partitioner *partitioner, const char *variable, struct sumac_error *error);

/* As the wire has it. SHARD_PER_PS becomes FIXED_SHARDS of ps_count. */
wire_partitioner partitioner_pack(const struct sumac_partitioner *partitioner, uint32_t ps_count);
