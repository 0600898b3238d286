/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c -- partitioners and round-robin placement as arithmetic; see placement.h. */
#include "placement.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"

#define MIN_SHARD_BYTES_DEFAULT 262144

struct placement_rule placement_rule_of(uint32_t kind)
{
    struct placement_rule rule = {.kind = kind};

    if (kind == WIRE_PARTITIONER_MIN_SIZE) {
        rule.min_shard_bytes = MIN_SHARD_BYTES_DEFAULT;
        rule.max_shards = 1;
    }
    if (kind == WIRE_PARTITIONER_MAX_SIZE)
        rule.max_shards = PLACEMENT_NO_CAP;
    return rule;
}

/* A parameter from the wire; one that is negative in its sender's language stays so. */
static void take_given(uint64_t given, int64_t *parameter)
{
    if (given != 0)
        *parameter = (int64_t)given;
}

enum sumac_status placement_rule_read(
    const wire_partitioner *partitioner, struct placement_rule *rule, struct sumac_error *error)
{
    const uint32_t kind = partitioner == NULL ? WIRE_PARTITIONER_NONE : (uint32_t)partitioner->kind;

    if (kind > WIRE_PARTITIONER_MAX_SIZE)
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED,
            "partitioner %u is not known; partitioners are 0 (none), 1 (fixed shards), 2 (min "
            "size), 3 (max size); a client makes fixed shards of 256 (one on each ps)",
            kind);
    struct placement_rule read = placement_rule_of(kind);
    if (kind == WIRE_PARTITIONER_FIXED_SHARDS)
        take_given(partitioner->num_shards, &read.num_shards);
    if (kind == WIRE_PARTITIONER_MIN_SIZE)
        take_given(partitioner->min_shard_bytes, &read.min_shard_bytes);
    if (kind == WIRE_PARTITIONER_MAX_SIZE)
        take_given(partitioner->max_shard_bytes, &read.max_shard_bytes);
    if (kind == WIRE_PARTITIONER_MIN_SIZE || kind == WIRE_PARTITIONER_MAX_SIZE)
        take_given(partitioner->max_shards, &read.max_shards);
    *rule = read;
    return SUMAC_OK;
}

static enum sumac_status
check_at_least_one(const char *parameter, int64_t value, struct sumac_error *error)
{
    if (value >= 1)
        return SUMAC_OK;
    if (value < 0)
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED,
            "partitioner parameter %s is %" PRIu64 " (as a signed number %" PRId64
            "); give 1 to 2^63 - 1",
            parameter, value, value);
    return fail_invalid(
        error, SUMAC_REASON_UNSUPPORTED, "partitioner parameter %s is 0; give 1 or more",
        parameter);
}

static enum sumac_status check_rule(const struct placement_rule *rule, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    if (rule->kind == WIRE_PARTITIONER_FIXED_SHARDS)
        status = check_at_least_one("num_shards", rule->num_shards, error);
    if (rule->kind == WIRE_PARTITIONER_MIN_SIZE)
        status = check_at_least_one("min_shard_bytes", rule->min_shard_bytes, error);
    if (rule->kind == WIRE_PARTITIONER_MAX_SIZE)
        status = check_at_least_one("max_shard_bytes", rule->max_shard_bytes, error);
    if (status == SUMAC_OK &&
        (rule->kind == WIRE_PARTITIONER_MIN_SIZE || rule->kind == WIRE_PARTITIONER_MAX_SIZE))
        status = check_at_least_one("max_shards", rule->max_shards, error);
    return status;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t divide_up(uint64_t dividend, uint64_t divisor)
{
    assert(divisor > 0);
    return dividend / divisor + (dividend % divisor != 0);
}

/* As few shards as keep each within max_shard_bytes; the cap may break that limit. */
static uint64_t max_size_count(const struct placement_rule *rule, uint64_t rows, uint64_t bytes)
{
    assert(rows > 0);
    assert(bytes > 0);
    const uint64_t row_bytes = bytes / rows;
    const uint64_t fitting = (uint64_t)rule->max_shard_bytes / row_bytes;
    const uint64_t shard_rows = fitting > 0 ? fitting : 1;
    return least(divide_up(rows, shard_rows), (uint64_t)rule->max_shards);
}

/* The ceiling lets shards be smaller than the minimum, as TensorFlow's do. */
static uint64_t min_size_count(const struct placement_rule *rule, uint64_t rows, uint64_t bytes)
{
    assert(rule->min_shard_bytes > 0);
    assert(rule->max_shards > 0);
    const uint64_t wanted = divide_up(bytes, (uint64_t)rule->min_shard_bytes);
    const uint64_t count = least(least(rows, (uint64_t)rule->max_shards), wanted);
    return count > 0 ? count : 1;
}

enum sumac_status placement_shard_count(
    const struct placement_rule *rule, const struct sumac_shape *shape, enum sumac_dtype dtype,
    uint64_t *shard_count, struct sumac_error *error)
{
    uint64_t elements = 0;
    uint64_t bytes = 0;
    enum sumac_status status = check_rule(rule, error);

    if (status != SUMAC_OK)
        return status;
    status = sumac_shape_size(shape, dtype, &elements, &bytes);
    if (status != SUMAC_OK)
        return fail(error, status, SUMAC_REASON_BAD_SHAPE, "the shape has too many bytes");

    const uint64_t rows = shape->rank == 0 ? 0 : shape->extent[0];
    *shard_count = 1;
    if (rows == 0) /* a scalar, or nothing to split */
        return SUMAC_OK;
    if (rule->kind == WIRE_PARTITIONER_FIXED_SHARDS)
        *shard_count = least(rows, (uint64_t)rule->num_shards);
    if (rule->kind == WIRE_PARTITIONER_MIN_SIZE)
        *shard_count = min_size_count(rule, rows, bytes);
    if (rule->kind == WIRE_PARTITIONER_MAX_SIZE && bytes > 0)
        *shard_count = max_size_count(rule, rows, bytes);
    assert(*shard_count > 0);
    return SUMAC_OK;
}

struct sumac_range placement_rows(uint64_t rows, uint64_t shard_count, uint64_t shard)
{
    assert(shard_count > 0);
    assert(shard < shard_count);
    const uint64_t each = rows / shard_count;
    const uint64_t larger = rows % shard_count; /* shards with one row more come first */
    return (struct sumac_range){
        .first = shard * each + least(shard, larger),
        .count = each + (shard < larger),
    };
}

uint64_t placement_find(uint64_t rows, uint64_t shard_count, uint64_t row, uint64_t *offset)
{
    const uint64_t each = rows / shard_count, longer = rows % shard_count;
    const uint64_t in_longer = longer * (each + 1);

    assert(row < rows);
    assert(shard_count > 0 && shard_count <= rows);
    const uint64_t shard = row < in_longer ? row / (each + 1) : longer + (row - in_longer) / each;
    *offset = row - placement_rows(rows, shard_count, shard).first;
    return shard;
}

uint32_t placement_next_ps(uint64_t *counter, uint32_t ps_count)
{
    assert(ps_count > 0);
    return (uint32_t)((*counter)++ % ps_count);
}

uint32_t placement_least_ps(const uint64_t *bytes, uint32_t ps_count)
{
    uint32_t least = 0;

    assert(ps_count > 0);
    for (uint32_t ps = 1; ps < ps_count; ps++)
        if (bytes[ps] < bytes[least])
            least = ps;
    return least;
}
