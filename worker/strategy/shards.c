/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c -- variables that are split along their first axis, and parts of variables. In this
 * process a variable is one tensor however it is split: a shard is a range of its rows. */
#include "shards.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "placement.h"

/* ---- how it is split */

static enum sumac_status
fail_split(const struct sumac_distributed *variable, const char *why, struct sumac_error *error)
{
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED, "variable %s: %s", variable->name,
        why);
}

static bool make_rows(struct sumac_distributed *variable, uint64_t count)
{
    variable->shard_count = (uint32_t)count;
    variable->shard_first = calloc((size_t)count + 1, sizeof *variable->shard_first);
    return variable->shard_first != NULL;
}

/* As the caller says, row by row. */
static enum sumac_status take_rows(
    struct sumac_distributed *variable, const uint64_t *rows, uint32_t count,
    struct sumac_error *error)
{
    const uint64_t all = variable->shape.rank == 0 ? 0 : variable->shape.extent[0];
    uint64_t first = 0;

    if (rows == NULL || variable->shape.rank == 0)
        return fail_split(
            variable, "shard_rows are how many rows each of shard_count shards has", error);
    if (!make_rows(variable, count))
        return value_fail_for_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        const struct sumac_range even = placement_rows(all, count, i);
        if (rows[i] == 0 || rows[i] > all - first)
            return fail_split(
                variable, "shard_rows do not add up to its rows, each with some", error);
        variable->uneven = variable->uneven || rows[i] != even.count;
        first += rows[i];
        variable->shard_first[i + 1] = first;
    }
    return first == all
               ? SUMAC_OK
               : fail_split(
                     variable, "shard_rows do not add up to its rows, each with some", error);
}

/* As the partitioner says. */
static enum sumac_status split(
    struct sumac_distributed *variable, const struct sumac_partitioner *partitioner,
    struct sumac_error *error)
{
    wire_partitioner given = WIRE_PARTITIONER_INIT;
    struct placement_rule rule;
    uint64_t count = 1;

    /* one on each ps: there are none here */
    given.kind = partitioner->kind == SUMAC_PARTITIONER_SHARD_PER_PS
                     ? WIRE_PARTITIONER_NONE
                     : (Sumac__V1__Partitioner__Kind)partitioner->kind;
    given.num_shards = partitioner->num_shards;
    given.min_shard_bytes = partitioner->min_shard_bytes;
    given.max_shards = partitioner->max_shards;
    given.max_shard_bytes = partitioner->max_shard_bytes;
    enum sumac_status status = placement_rule_read(&given, &rule, error);
    if (status == SUMAC_OK)
        status = placement_shard_count(&rule, &variable->shape, variable->dtype, &count, error);
    if (status != SUMAC_OK)
        return status;
    assert(count > 0);
    if (count > UINT32_MAX || !make_rows(variable, count))
        return value_fail_for_memory(error);
    for (uint64_t i = 0; i < count && variable->shape.rank > 0; i++) {
        const struct sumac_range rows = placement_rows(variable->shape.extent[0], count, i);
        variable->shard_first[i + 1] = rows.first + rows.count;
    }
    return SUMAC_OK;
}

enum sumac_status shards_read(
    struct sumac_distributed *variable, const struct sumac_distributed_options *options,
    struct sumac_error *error)
{
    assert(variable->shard_first == NULL);
    if (options->shard_count > 0 || options->shard_rows != NULL)
        return take_rows(variable, options->shard_rows, options->shard_count, error);
    return split(variable, &options->partitioner, error);
}

/* ---- parts of it */

uint32_t sumac_distributed_shards(const struct sumac_distributed *variable)
{
    return variable == NULL           ? 0
           : variable->remote != NULL ? sumac_variable_shards(variable->remote)
                                      : variable->shard_count;
}

enum sumac_status sumac_shard_of_row(
    uint64_t rows, uint32_t shards, int64_t row, uint32_t *shard, uint64_t *offset,
    struct sumac_error *error)
{
    if (shard == NULL || offset == NULL)
        return fail_for_null(error, "sumac_shard_of_row", shard == NULL ? "shard" : "offset");
    if (shards == 0 || shards > rows || row < 0 || (uint64_t)row >= rows)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
            "there is no row %" PRId64 " in %" PRIu32 " shards of %" PRIu64 " rows", row, shards,
            rows);
    *shard = (uint32_t)placement_find(rows, shards, (uint64_t)row, offset);
    return SUMAC_OK;
}

static enum sumac_status read_for(
    struct sumac_distributed *variable, struct sumac_replica_context *replica,
    struct sumac_value **result, struct sumac_value **whole, struct sumac_error *error)
{
    if (variable == NULL || result == NULL)
        return fail_for_null(
            error, "a part of a variable", variable == NULL ? "variable" : "result");
    return sumac_distributed_read(variable, replica, whole, error);
}

enum sumac_status sumac_distributed_shard(
    struct sumac_distributed *variable, uint32_t index, struct sumac_value **value,
    struct sumac_error *error)
{
    const uint32_t count = sumac_distributed_shards(variable);
    struct sumac_value *whole = NULL;
    struct sumac_slice rows = {.kind = SUMAC_SLICE_RANGE, .has_start = true, .has_stop = true};

    if (variable != NULL && index >= count)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNKNOWN_SHARD,
            "%s has %" PRIu32 " shards, and %" PRIu32 " is none of them", variable->name, count,
            index);
    enum sumac_status status = read_for(variable, NULL, value, &whole, error);
    if (status != SUMAC_OK)
        return status;
    if (count == 1 || variable->shape.rank == 0) {
        *value = whole;
        return SUMAC_OK;
    }
    if (variable->remote != NULL) {
        const struct sumac_range range = placement_rows(variable->shape.extent[0], count, index);
        rows.start = (int64_t)range.first;
        rows.stop = (int64_t)(range.first + range.count);
    } else {
        rows.start = (int64_t)variable->shard_first[index];
        rows.stop = (int64_t)variable->shard_first[index + 1];
    }
    status = sumac_value_slice(whole, &rows, 1, value, error);
    sumac_value_unref(whole);
    return status;
}

enum sumac_status sumac_distributed_slice(
    struct sumac_distributed *variable, struct sumac_replica_context *replica,
    const struct sumac_slice *slices, uint32_t count, struct sumac_value **value,
    struct sumac_error *error)
{
    struct sumac_value *whole = NULL;

    enum sumac_status status = read_for(variable, replica, value, &whole, error);
    if (status == SUMAC_OK)
        status = sumac_value_slice(whole, slices, count, value, error);
    sumac_value_unref(whole);
    return status;
}

enum sumac_status sumac_distributed_rows(
    struct sumac_distributed *variable, struct sumac_replica_context *replica,
    const struct sumac_value *ids, struct sumac_value **value, struct sumac_error *error)
{
    struct sumac_value *whole = NULL;

    enum sumac_status status = read_for(variable, replica, value, &whole, error);
    if (status == SUMAC_OK)
        status = sumac_value_rows(whole, ids, value, error);
    sumac_value_unref(whole);
    return status;
}

enum sumac_status sumac_distributed_lookup(
    struct sumac_distributed *variable, struct sumac_replica_context *replica,
    const struct sumac_value *bags, enum sumac_combiner combiner, struct sumac_value **value,
    struct sumac_error *error)
{
    struct sumac_value *whole = NULL;

    enum sumac_status status = read_for(variable, replica, value, &whole, error);
    if (status == SUMAC_OK)
        status = sumac_value_lookup(whole, bags, combiner, value, error);
    sumac_value_unref(whole);
    return status;
}
