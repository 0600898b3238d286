/* SPDX-License-Identifier: Apache-2.0 */
/* partitioner.c -- a caller's partitioner, checked and packed. */
#include "partitioner.h"

#include <assert.h>

#include "error.h"

enum sumac_status partitioner_check(
    const struct sumac_partitioner *partitioner, const char *variable, struct sumac_error *error)
{
    const enum sumac_partitioner_kind kind = partitioner->kind;
    const bool bounded = kind == SUMAC_PARTITIONER_MIN_SIZE || kind == SUMAC_PARTITIONER_MAX_SIZE;

    const struct {
        const char *name, *kinds;
        bool given, used;
    } members[] = {
        {"num_shards", "FIXED_SHARDS", partitioner->num_shards != 0,
         kind == SUMAC_PARTITIONER_FIXED_SHARDS},
        {"min_shard_bytes", "MIN_SIZE", partitioner->min_shard_bytes != 0,
         kind == SUMAC_PARTITIONER_MIN_SIZE},
        {"max_shards", "MIN_SIZE or MAX_SIZE", partitioner->max_shards != 0, bounded},
        {"max_shard_bytes", "MAX_SIZE", partitioner->max_shard_bytes != 0,
         kind == SUMAC_PARTITIONER_MAX_SIZE},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (members[i].given && !members[i].used)
            return fail_argument(
                error, "%.200s: %s is given, which only partitioner %s has", variable,
                members[i].name, members[i].kinds);
    return SUMAC_OK;
}

wire_partitioner partitioner_pack(const struct sumac_partitioner *partitioner, uint32_t ps_count)
{
    wire_partitioner packed = WIRE_PARTITIONER_INIT;

    assert(ps_count > 0);
    packed.kind = (Sumac__V1__Partitioner__Kind)partitioner->kind;
    packed.num_shards = partitioner->num_shards;
    if (partitioner->kind == SUMAC_PARTITIONER_SHARD_PER_PS) {
        packed.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
        packed.num_shards = ps_count;
    }
    packed.min_shard_bytes = partitioner->min_shard_bytes;
    packed.max_shards = partitioner->max_shards;
    packed.max_shard_bytes = partitioner->max_shard_bytes;
    return packed;
}
