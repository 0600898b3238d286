/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h -- into how many shards a variable is split, which rows each has, and on which ps it
 * lies.
 *
 * Only the first axis is split. The rules and defaults are those of
 * tf.distribute.experimental.partitioners (tensorflow/python/distribute/sharded_variable.py), the
 * places those of ParameterServerStrategyV2's round-robin (parameter_server_strategy_v2.py,
 * _create_variable_round_robin). Pure arithmetic.
 */
#pragma once

#include <stdint.h>

#include "sumac/status.h"
#include "sumac/tensor.h"
#include "wire.h"

#define PLACEMENT_NO_CAP INT64_MAX
#define PLACEMENT_SHARDS_MAX 4096u /* of one variable: whoever splits one looks at it */

/* A partitioner with every parameter said; those of other kinds are not looked at. */
struct placement_rule {
    uint32_t kind;           /* WIRE_PARTITIONER_… */
    int64_t num_shards;      /* FIXED_SHARDS */
    int64_t min_shard_bytes; /* MIN_SIZE */
    int64_t max_shard_bytes; /* MAX_SIZE */
    int64_t max_shards;      /* MIN_SIZE, MAX_SIZE; PLACEMENT_NO_CAP: none */
};

/* A rule of that kind with the defaults that it has; a parameter without one is 0. */
struct placement_rule placement_rule_of(uint32_t kind);

/* The rule that a message gives, a parameter that was left out (0) being the default; NULL is one
 * shard. Fails  INVALID_ARGUMENT: a kind that is none. */
enum sumac_status placement_rule_read(
    const wire_partitioner *partitioner, struct placement_rule *rule, struct sumac_error *error);

/* Shards that a variable of this shape and type is split into, 1 or more.
 * Fails  INVALID_ARGUMENT: a parameter below 1 (named), a shape that sumac_shape_size refuses. */
enum sumac_status placement_shard_count(
    const struct placement_rule *rule, const struct sumac_shape *shape, enum sumac_dtype dtype,
    uint64_t *shard_count, struct sumac_error *error);

/* The rows of shard `shard` when `rows` are split into `shard_count`: the first rows mod
 * shard_count have one more. */
struct sumac_range placement_rows(uint64_t rows, uint64_t shard_count, uint64_t shard);

/* Which shard a row is in, and which of its rows it is. */
uint64_t placement_find(uint64_t rows, uint64_t shard_count, uint64_t row, uint64_t *offset);

/* The ps of the next shard, variables and shards taking their turns alike; advances *counter. */
uint32_t placement_next_ps(uint64_t *counter, uint32_t ps_count);

/* The ps that has the fewest of `bytes` (ps_count), of several the first. */
uint32_t placement_least_ps(const uint64_t *bytes, uint32_t ps_count);
