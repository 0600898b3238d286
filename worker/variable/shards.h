/* SPDX-License-Identifier: Apache-2.0 */
/* shards.h -- how a strategy's variable is split. */
#pragma once

#include "variable.h"

/* Into shard_count shards, with what rows: variable->shard_first, which the caller frees.
 * Fails  INVALID_ARGUMENT, naming the variable; RESOURCE_EXHAUSTED. */
enum sumac_status shards_read(
    struct sumac_variable *variable, const struct sumac_variable_options *options,
    struct sumac_error *error);
