/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c -- the `partition`, `placement` and `row_lookup` cases: how many shards, which rows,
 * on which ps.
 *
 *   {"partitioner": {"kind", …} or null, "shape": [N, …], "dtype": NAME,
 *    "expect": {"counts": [N, …], "rows": [N, …]}}
 *   {"ps": N, "partitioner": …, "creates": [{"name", "shape", "dtype", "colocate_with"}, …],
 *    "expect": {"shards": [{"name", "ps", "rows"}, …]}}
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "partition.h"
#include "cluster_client.h"
#include "placement.h"
#include "sumac/variable.h"

#define SHARDS_MAX 256

static const char *const partition_keys[] = {"partitioner", "shape", "dtype", NULL};
static const char *const placement_keys[] = {"ps", "partitioner", "creates", NULL};
static const char *const create_keys[] = {"name", "shape", "dtype", "colocate_with", NULL};
static const char *const rule_keys[] = {"kind",       "num_shards",      "min_shard_bytes",
                                        "max_shards", "max_shard_bytes", NULL};

static void take_given(json_t *given, const char *name, int64_t *parameter)
{
    if (json_object_get(given, name) != NULL)
        *parameter = json_integer_value(json_object_get(given, name));
}

static bool read_rule(struct cases_run *run, json_t *given, struct placement_rule *rule)
{
    *rule = placement_rule_of(WIRE_PARTITIONER_NONE);
    if (!json_is_object(given))
        return true;
    const char *kind = json_string_value(json_object_get(given, "kind"));
    if (!cases_keys_known(run, given, "\"partitioner\"", rule_keys) || kind == NULL)
        return false;
    if (strcmp(kind, "fixed_shards") == 0)
        *rule = placement_rule_of(WIRE_PARTITIONER_FIXED_SHARDS);
    else if (strcmp(kind, "min_size") == 0)
        *rule = placement_rule_of(WIRE_PARTITIONER_MIN_SIZE);
    else if (strcmp(kind, "max_size") == 0)
        *rule = placement_rule_of(WIRE_PARTITIONER_MAX_SIZE);
    else
        return cases_fail(run, "partitioner kind %s", kind);
    take_given(given, "num_shards", &rule->num_shards);
    take_given(given, "min_shard_bytes", &rule->min_shard_bytes);
    take_given(given, "max_shards", &rule->max_shards);
    take_given(given, "max_shard_bytes", &rule->max_shard_bytes);
    return true;
}

static void read_shape(json_t *given, struct sumac_shape *shape)
{
    *shape = (struct sumac_shape){.rank = (uint32_t)json_array_size(given)};
    for (uint32_t axis = 0; axis < shape->rank && axis < SUMAC_RANK_MAX; axis++)
        shape->extent[axis] = (uint64_t)json_integer_value(json_array_get(given, axis));
}

static enum sumac_dtype read_dtype(json_t *one)
{
    return sumac_dtype_parse(json_string_value(json_object_get(one, "dtype")));
}

/* ---- asked of ps ---- */

/* Do the ps split and place a variable of this case, and is this the worker that asks them? */
static bool asks_ps(void)
{
    return cluster_client_serves_all() && cluster_client() != NULL && cluster_client_index() == 0;
}

static const enum sumac_partitioner_kind kinds[] = {
    [WIRE_PARTITIONER_NONE] = SUMAC_PARTITIONER_NONE,
    [WIRE_PARTITIONER_FIXED_SHARDS] = SUMAC_PARTITIONER_FIXED_SHARDS,
    [WIRE_PARTITIONER_MIN_SIZE] = SUMAC_PARTITIONER_MIN_SIZE,
    [WIRE_PARTITIONER_MAX_SIZE] = SUMAC_PARTITIONER_MAX_SIZE};

/* What the rule leaves to its defaults a ps has them of, too. Its name is the case's own, so that
 * no other case has it. */
static struct sumac_client_variable *create_on_ps(
    struct cases_run *run, const char *name, json_t *given, const struct placement_rule *rule,
    const char *beside)
{
    const bool split = beside == NULL;
    const bool bounded =
        rule->kind == WIRE_PARTITIONER_MIN_SIZE || rule->kind == WIRE_PARTITIONER_MAX_SIZE;
    char own[256], other[256];
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error;

    (void)snprintf(own, sizeof own, "%s/%s", run->case_id, name);
    (void)snprintf(other, sizeof other, "%s/%s", run->case_id, split ? "" : beside);
    struct sumac_client_variable_options options = {
        .name = own,
        .dtype = read_dtype(given),
        .partitioner = {.kind = split ? kinds[rule->kind] : SUMAC_PARTITIONER_NONE},
        .colocate_with = split ? NULL : other};
    read_shape(json_object_get(given, "shape"), &options.shape);
    if (split && rule->kind == WIRE_PARTITIONER_FIXED_SHARDS)
        options.partitioner.num_shards = (uint64_t)rule->num_shards;
    if (split && rule->kind == WIRE_PARTITIONER_MIN_SIZE)
        options.partitioner.min_shard_bytes = (uint64_t)rule->min_shard_bytes;
    if (split && rule->kind == WIRE_PARTITIONER_MAX_SIZE)
        options.partitioner.max_shard_bytes = (uint64_t)rule->max_shard_bytes;
    if (split && bounded && rule->max_shards != PLACEMENT_NO_CAP)
        options.partitioner.max_shards = (uint64_t)rule->max_shards;
    if (sumac_client_variable_create(cluster_client(), &options, &variable, &error) != SUMAC_OK)
        (void)cases_fail(run, "on the ps: %s", error.text);
    return variable;
}

static void delete_on_ps(struct sumac_client_variable *variable)
{
    struct sumac_error error;

    if (sumac_client_variable_delete(
            cluster_client(), sumac_client_variable_name(variable), &error) != SUMAC_OK)
        fprintf(stderr, "sumac-conformance: %s\n", error.text);
}

/* The rows of its shards, as a ps has split it. */
static bool ps_split_matches(struct cases_run *run, json_t *one, const struct placement_rule *rule)
{
    struct sumac_client_variable *variable = create_on_ps(run, "v", one, rule, NULL);
    json_t *expected = json_object_get(json_object_get(one, "expect"), "rows");
    bool good = variable != NULL;

    if (good && sumac_client_variable_shards(variable) != json_array_size(expected))
        good = cases_fail(
            run, "a ps makes %" PRIu32 " shards of it, expected %zu",
            sumac_client_variable_shards(variable), json_array_size(expected));
    for (uint32_t i = 0; good && i < sumac_client_variable_shards(variable); i++) {
        const uint64_t rows = sumac_client_variable_shard(variable, i).rows.count;
        if (rows != (uint64_t)json_integer_value(json_array_get(expected, i)))
            good = cases_fail(
                run, "shard %" PRIu32 " has %" PRIu64 " rows on the ps, expected %" PRId64, i, rows,
                (int64_t)json_integer_value(json_array_get(expected, i)));
    }
    if (variable != NULL)
        delete_on_ps(variable);
    return good;
}

/* ---- partition ---- */

static bool counts_match(struct cases_run *run, json_t *expected, uint64_t shard_count)
{
    for (size_t axis = 0; axis < json_array_size(expected); axis++) {
        const uint64_t count = axis == 0 ? shard_count : 1;
        const json_int_t wanted = json_integer_value(json_array_get(expected, axis));
        if (count != (uint64_t)wanted)
            return cases_fail(
                run, "axis %zu is split into %" PRIu64 ", expected %" PRId64, axis, count,
                (int64_t)wanted);
    }
    return true;
}

static bool rows_match(struct cases_run *run, json_t *expected, uint64_t rows, uint64_t shard_count)
{
    uint64_t first = 0;

    if (shard_count != json_array_size(expected))
        return cases_fail(
            run, "%" PRIu64 " shards, expected %zu", shard_count, json_array_size(expected));
    for (uint64_t shard = 0; shard < shard_count; shard++) {
        const struct sumac_range range = placement_rows(rows, shard_count, shard);
        const json_int_t wanted = json_integer_value(json_array_get(expected, shard));
        if (range.count != (uint64_t)wanted || range.first != first)
            return cases_fail(
                run,
                "shard %" PRIu64 " has rows %" PRIu64 " + %" PRIu64 ", expected %" PRIu64
                " + %" PRId64,
                shard, range.first, range.count, first, (int64_t)wanted);
        first += range.count;
    }
    return first == rows || cases_fail(run, "the shards do not make up all rows");
}

static enum cases_result run_partition(struct cases_run *run, json_t *one, void *context)
{
    (void)context;
    struct placement_rule rule;
    struct sumac_shape shape;
    struct sumac_error error = {0};
    uint64_t shard_count = 0;

    if (!read_rule(run, json_object_get(one, "partitioner"), &rule))
        return CASES_FAILED;
    read_shape(json_object_get(one, "shape"), &shape);
    const enum sumac_status status =
        placement_shard_count(&rule, &shape, read_dtype(one), &shard_count, &error);
    json_t *refusal = json_object_get(one, "error");
    if (refusal != NULL)
        return cases_error_matches(run, refusal, status, error.text) ? CASES_PASSED : CASES_FAILED;
    if (status != SUMAC_OK) {
        cases_fail(run, "%s", error.text);
        return CASES_FAILED;
    }
    json_t *expect = json_object_get(one, "expect");
    const bool good =
        counts_match(run, json_object_get(expect, "counts"), shard_count) &&
        rows_match(run, json_object_get(expect, "rows"), shape.extent[0], shard_count) &&
        (!asks_ps() || ps_split_matches(run, one, &rule));
    return good ? CASES_PASSED : CASES_FAILED;
}

/* ---- placement ---- */

struct placed {
    char name[64];
    uint32_t ps;
    uint64_t rows;
};

struct placed_list {
    struct placed items[SHARDS_MAX];
    size_t count;
};

static const struct placed *find_placed(const struct placed_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static bool place(
    struct cases_run *run, json_t *create, const struct placement_rule *rule, uint32_t ps_count,
    uint64_t *counter, struct placed_list *list)
{
    struct sumac_shape shape;
    uint64_t shard_count = 1;
    const char *name = json_string_value(json_object_get(create, "name"));
    const char *beside = json_string_value(json_object_get(create, "colocate_with"));

    read_shape(json_object_get(create, "shape"), &shape);
    if (!cases_keys_known(run, create, "a create", create_keys))
        return false;
    const uint64_t rows = shape.rank == 0 ? 1 : shape.extent[0];
    if (beside == NULL &&
        placement_shard_count(rule, &shape, read_dtype(create), &shard_count, NULL) != SUMAC_OK)
        return cases_fail(run, "%s is refused", name);
    for (uint64_t shard = 0; shard < shard_count && list->count < SHARDS_MAX; shard++) {
        const struct placed *other = beside == NULL ? NULL : find_placed(list, beside);
        struct placed *placed = &list->items[list->count++];
        if (shard_count > 1)
            snprintf(placed->name, sizeof placed->name, "%s/part_%" PRIu64, name, shard);
        else
            snprintf(placed->name, sizeof placed->name, "%s", name);
        placed->ps = other != NULL ? other->ps : placement_next_ps(counter, ps_count);
        placed->rows = placement_rows(rows, shard_count, shard).count;
    }
    return true;
}

static bool shards_match(struct cases_run *run, json_t *expected, const struct placed_list *list)
{
    if (list->count != json_array_size(expected))
        return cases_fail(run, "%zu shards, expected %zu", list->count, json_array_size(expected));
    for (size_t i = 0; i < list->count; i++) {
        json_t *wanted = json_array_get(expected, i);
        const struct placed *placed = &list->items[i];
        const char *name = json_string_value(json_object_get(wanted, "name"));
        const json_int_t ps = json_integer_value(json_object_get(wanted, "ps"));
        const json_int_t rows = json_integer_value(json_object_get(wanted, "rows"));
        if (name == NULL || strcmp(name, placed->name) != 0 || ps != placed->ps ||
            (uint64_t)rows != placed->rows)
            return cases_fail(
                run,
                "%s is on ps %u with %" PRIu64 " rows, expected %s on %" PRId64 " with %" PRId64,
                placed->name, placed->ps, placed->rows, name == NULL ? "?" : name, (int64_t)ps,
                (int64_t)rows);
    }
    return true;
}

/* Other variables took turns before: the first shard of all says whose it was. */
static bool ps_place(
    struct cases_run *run, json_t *one, const struct placement_rule *rule, struct placed_list *list)
{
    struct sumac_client_variable *made[SHARDS_MAX] = {NULL};
    json_t *creates = json_object_get(one, "creates"), *create = NULL;
    uint32_t first = 0, ps_count = cluster_client_ps_count();
    bool good = true;
    size_t i = 0;

    list->count = 0;
    json_array_foreach(creates, i, create)
    {
        const char *name = json_string_value(json_object_get(create, "name"));
        const char *beside = json_string_value(json_object_get(create, "colocate_with"));
        good = good && i < SHARDS_MAX &&
               (made[i] = create_on_ps(run, name, create, rule, beside)) != NULL;
        for (uint32_t j = 0; good && j < sumac_client_variable_shards(made[i]); j++) {
            const struct sumac_shard shard = sumac_client_variable_shard(made[i], j);
            first = i == 0 && j == 0 ? shard.ps : first;
            struct placed *placed = &list->items[list->count++];
            if (sumac_client_variable_shards(made[i]) > 1)
                (void)snprintf(placed->name, sizeof placed->name, "%s/part_%" PRIu32, name, j);
            else
                (void)snprintf(placed->name, sizeof placed->name, "%s", name);
            placed->ps = (shard.ps + ps_count - first) % ps_count;
            placed->rows = shard.rows.count;
        }
    }
    for (i = 0; i < SHARDS_MAX; i++)
        if (made[i] != NULL)
            delete_on_ps(made[i]);
    return good;
}

static enum cases_result run_placement(struct cases_run *run, json_t *one, void *context)
{
    (void)context;
    struct placement_rule rule;
    struct placed_list list = {.count = 0};
    uint64_t counter = 0;
    size_t i = 0;
    json_t *create = NULL;
    const uint32_t ps_count = (uint32_t)json_integer_value(json_object_get(one, "ps"));

    if (!read_rule(run, json_object_get(one, "partitioner"), &rule))
        return CASES_FAILED;
    json_array_foreach(
        json_object_get(one, "creates"), i,
        create) if (!place(run, create, &rule, ps_count, &counter, &list)) return CASES_FAILED;
    json_t *expected = json_object_get(json_object_get(one, "expect"), "shards");
    bool good = shards_match(run, expected, &list);
    if (good && asks_ps() && ps_count == cluster_client_ps_count())
        good = ps_place(run, one, &rule, &list) && shards_match(run, expected, &list);
    return good ? CASES_PASSED : CASES_FAILED;
}

/* ---- row_lookup ---- */

static enum cases_result run_row_lookup(struct cases_run *run, json_t *one, void *context)
{
    const uint64_t rows = (uint64_t)json_integer_value(json_object_get(one, "rows"));
    const uint32_t shards = (uint32_t)json_integer_value(json_object_get(one, "shards"));
    json_t *expect = json_object_get(one, "expect"), *refusal = json_object_get(one, "error");
    json_t *ids = json_object_get(one, "ids");
    struct sumac_error error = {0};
    enum sumac_status status = SUMAC_OK;
    bool good = true;

    (void)context;
    for (size_t i = 0; good && status == SUMAC_OK && i < json_array_size(ids); i++) {
        uint32_t shard;
        uint64_t offset;
        json_t *wanted = json_array_get(json_object_get(expect, "shard"), i);
        json_t *at = json_array_get(json_object_get(expect, "offset"), i);
        status = sumac_shard_of_row(
            rows, shards, json_integer_value(json_array_get(ids, i)), &shard, &offset, &error);
        if (status == SUMAC_OK && refusal == NULL &&
            (shard != (uint64_t)json_integer_value(wanted) ||
             offset != (uint64_t)json_integer_value(at)))
            good = cases_fail(run, "id %zu is row %" PRIu64 " of shard %" PRIu32, i, offset, shard);
    }
    if (refusal != NULL)
        good = cases_error_matches(run, refusal, status, error.text);
    else if (status != SUMAC_OK)
        good = cases_fail(run, "%s", error.text);
    return good ? CASES_PASSED : CASES_FAILED;
}

static const char *const row_lookup_keys[] = {"rows", "shards", "ids", NULL};

const struct cases_operation partition_operations[] = {
    {.op = "partition", .keys = partition_keys, .run_case = run_partition},
    {.op = "placement", .keys = placement_keys, .run_case = run_placement},
    {.op = "row_lookup", .keys = row_lookup_keys, .run_case = run_row_lookup},
    {.op = NULL}};
