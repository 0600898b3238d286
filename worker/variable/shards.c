/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c -- variables that are split along their first axis, and parts of variables. In this
 * process a variable is one tensor however it is split: a shard is a range of its rows. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "partitioner.h"
#include "placement.h"

/* ---- how it is split */

static enum sumac_status
fail_split(const struct sumac_variable *variable, const char *why, struct sumac_error *error)
{
    return fail_argument(error, "variable %s: %s", variable->name, why);
}

/* Why something in it is refused, after its name. */
static enum sumac_status fail_for(
    const struct sumac_variable *variable, const struct sumac_error *cause,
    struct sumac_error *error)
{
    assert(cause->status != SUMAC_OK);
    return fail(error, cause->status, cause->reason, "%.200s: %s", variable->name, cause->text);
}

static enum sumac_status
make_rows(struct sumac_variable *variable, uint64_t count, struct sumac_error *error)
{
    if (count > PLACEMENT_SHARDS_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSUPPORTED,
            "%.200s: %" PRIu64 " shards are asked for, at most %u may be", variable->name, count,
            PLACEMENT_SHARDS_MAX);
    variable->shard_count = (uint32_t)count;
    variable->shard_first = calloc((size_t)count + 1, sizeof *variable->shard_first);
    return variable->shard_first != NULL ? SUMAC_OK : value_fail_for_memory(error);
}

/* As the caller says, row by row. */
static enum sumac_status take_rows(
    struct sumac_variable *variable, const uint64_t *rows, uint32_t count,
    struct sumac_error *error)
{
    const uint64_t all = variable->shape.rank == 0 ? 0 : variable->shape.extent[0];
    uint64_t first = 0;
    uint32_t i = 0;

    if (rows == NULL || count == 0 || variable->shape.rank == 0)
        return fail_split(
            variable, "shard_rows are how many rows each of shard_count shards has", error);
    const enum sumac_status status = make_rows(variable, count, error);
    if (status != SUMAC_OK)
        return status;
    for (; i < count && rows[i] > 0 && rows[i] <= all - first; i++) {
        variable->uneven = variable->uneven || rows[i] != placement_rows(all, count, i).count;
        first += rows[i];
        variable->shard_first[i + 1] = first;
    }
    return i == count && first == all
               ? SUMAC_OK
               : fail_split(
                     variable, "shard_rows do not add up to its rows, each with some", error);
}

/* As the partitioner says. */
static enum sumac_status split(
    struct sumac_variable *variable, const struct sumac_partitioner *partitioner,
    struct sumac_error *error)
{
    /* a process without ps has one shard */
    const wire_partitioner given = partitioner_pack(partitioner, 1);
    struct placement_rule rule;
    struct sumac_error cause;
    uint64_t count = 1;

    if (placement_rule_read(&given, &rule, &cause) != SUMAC_OK ||
        placement_shard_count(&rule, &variable->shape, variable->dtype, &count, &cause) != SUMAC_OK)
        return fail_for(variable, &cause, error);
    assert(count > 0);
    const enum sumac_status status = make_rows(variable, count, error);
    if (status != SUMAC_OK)
        return status;
    for (uint64_t i = 0; i < count && variable->shape.rank > 0; i++) {
        const struct sumac_range rows = placement_rows(variable->shape.extent[0], count, i);
        variable->shard_first[i + 1] = rows.first + rows.count;
    }
    return SUMAC_OK;
}

enum sumac_status shards_read(
    struct sumac_variable *variable, const struct sumac_variable_options *options,
    struct sumac_error *error)
{
    assert(variable->shard_first == NULL);
    if (options->shard_count > 0 || options->shard_rows != NULL)
        return take_rows(variable, options->shard_rows, options->shard_count, error);
    const enum sumac_status status =
        partitioner_check(&options->partitioner, variable->name, error);
    return status == SUMAC_OK ? split(variable, &options->partitioner, error) : status;
}

/* ---- parts of it */

uint32_t sumac_variable_shards(const struct sumac_variable *variable)
{
    if (variable == NULL)
        return 0;
    return variable->remote != NULL && !variable->uneven
               ? sumac_client_variable_shards(variable->remote[0])
               : variable->shard_count;
}

enum sumac_status sumac_shard_of_row(
    uint64_t rows, uint32_t shards, int64_t row, uint32_t *shard, uint64_t *offset,
    struct sumac_error *error)
{
    if (shard == NULL || offset == NULL)
        return fail_for_null(error, "sumac_shard_of_row", shard == NULL ? "shard" : "offset");
    if (shards == 0 || shards > rows || row < 0 || (uint64_t)row >= rows)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE,
            "there is no row %" PRId64 " in %" PRIu32 " shards of %" PRIu64 " rows", row, shards,
            rows);
    *shard = (uint32_t)placement_find(rows, shards, (uint64_t)row, offset);
    return SUMAC_OK;
}

/* A part of what a read in that context gives. */
struct variable_part {
    struct sumac_variable *variable;
    struct sumac_replica *replica;
    struct sumac_value *whole;
    struct sumac_error cause; /* if it cannot be taken */
};

static enum sumac_status read_whole(
    struct variable_part *part, const char *call, struct sumac_value **result,
    struct sumac_error *error)
{
    if (part->variable != NULL && result != NULL)
        return sumac_variable_read(part->variable, part->replica, &part->whole, error);
    (void)fail_for_null(&part->cause, call, part->variable == NULL ? "variable" : "value");
    return variable_refuse_read(part->variable, part->replica, &part->cause, error);
}

/* A part has been taken of the whole, or why not. */
static enum sumac_status give_part(
    struct variable_part *part, enum sumac_status status, struct sumac_value **value,
    struct sumac_error *error)
{
    sumac_value_unref(part->whole);
    return status == SUMAC_OK
               ? variable_place(part->variable, part->replica, SUMAC_OK, value, error)
               : fail_for(part->variable, &part->cause, error);
}

static struct sumac_range rows_of(const struct sumac_variable *variable, uint32_t shard)
{
    const uint64_t *const first = variable->shard_first;

    assert(variable->shape.rank > 0);
    if (variable->remote != NULL && !variable->uneven)
        return placement_rows(
            variable->shape.extent[0], sumac_client_variable_shards(variable->remote[0]), shard);
    return (struct sumac_range){.first = first[shard], .count = first[shard + 1] - first[shard]};
}

enum sumac_status sumac_variable_shard(
    struct sumac_variable *variable, uint32_t index, struct sumac_value **value,
    struct sumac_error *error)
{
    const uint32_t count = sumac_variable_shards(variable);
    struct variable_part part = {.variable = variable};

    if (variable != NULL && index >= count) {
        (void)fail(
            &part.cause, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNKNOWN_SHARD,
            "%.200s has %" PRIu32 " shards, and %" PRIu32 " is none of them", variable->name, count,
            index);
        return variable_refuse_read(variable, NULL, &part.cause, error);
    }
    const enum sumac_status status = read_whole(&part, "sumac_variable_shard", value, error);
    if (status != SUMAC_OK)
        return status;
    if (count == 1) {
        *value = part.whole;
        return SUMAC_OK;
    }
    const struct sumac_range rows = rows_of(variable, index);
    const struct sumac_slice slice = {
        .kind = SUMAC_SLICE_RANGE,
        .start = (int64_t)rows.first,
        .stop = (int64_t)(rows.first + rows.count),
        .has_start = true,
        .has_stop = true};
    return give_part(
        &part, sumac_value_slice(part.whole, &slice, 1, value, &part.cause), value, error);
}

enum sumac_status sumac_variable_slice(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_slice *slices, uint32_t count, struct sumac_value **value,
    struct sumac_error *error)
{
    struct variable_part part = {.variable = variable, .replica = replica};
    const enum sumac_status status = read_whole(&part, "sumac_variable_slice", value, error);

    return status == SUMAC_OK
               ? give_part(
                     &part, sumac_value_slice(part.whole, slices, count, value, &part.cause), value,
                     error)
               : status;
}

enum sumac_status sumac_variable_rows(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *ids,
    struct sumac_value **value, struct sumac_error *error)
{
    struct variable_part part = {.variable = variable, .replica = replica};
    const enum sumac_status status = read_whole(&part, "sumac_variable_rows", value, error);

    return status == SUMAC_OK
               ? give_part(
                     &part, sumac_value_rows(part.whole, ids, value, &part.cause), value, error)
               : status;
}

enum sumac_status sumac_variable_lookup(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *bags,
    enum sumac_reduce_op combiner, struct sumac_value **value, struct sumac_error *error)
{
    struct variable_part part = {.variable = variable, .replica = replica};
    const enum sumac_status status = read_whole(&part, "sumac_variable_lookup", value, error);

    return status == SUMAC_OK
               ? give_part(
                     &part, sumac_value_lookup(part.whole, bags, combiner, value, &part.cause),
                     value, error)
               : status;
}
