/* SPDX-License-Identifier: Apache-2.0 */
/* sharded.c -- cases of variables that are split, through the public interface. */
#include "sharded.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster_client.h"
#include "variables.h"

#define SHARDS_MAX 64u
#define ENTRIES_MAX 16u

static const char *const step_keys[] = {"do",      "value",    "indices", "ids",   "index",
                                        "weights", "combiner", "expect",  "error", NULL};
static const char *const range_keys[] = {"start", "stop", "step", NULL};
static const char *const rule_keys[] = {"kind",       "num_shards",      "min_shard_bytes",
                                        "max_shards", "max_shard_bytes", NULL};

/* ---- created */

static enum sumac_partitioner_kind kind_of(const char *name)
{
    static const char *const names[] = {"none", "fixed_shards", "min_size", "max_size"};

    for (int i = 0; name != NULL && i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum sumac_partitioner_kind)i;
    return SUMAC_PARTITIONER_NONE;
}

static uint64_t number(json_t *given, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(given, key));
}

static struct sumac_variable *create(struct one_case *one)
{
    json_t *rows = one_get(one, "rows"), *rule = one_get(one, "partitioner"), *row = NULL;
    struct sumac_value *initial = one_bring(one, one_read_value(one, one_get(one, "initial")));
    uint64_t shard_rows[SHARDS_MAX];
    char name[256];
    struct sumac_variable *variable = NULL;
    size_t i = 0;

    json_array_foreach(rows, i, row)
    {
        if (i < SHARDS_MAX)
            shard_rows[i] = (uint64_t)json_integer_value(row);
    }
    one->broken = rule != NULL && !cases_keys_known(one->run, rule, "\"partitioner\"", rule_keys);
    struct sumac_variable_options options = {
        .name = variable_name(one, "v", name, sizeof name),
        .initial = initial,
        .shard_rows = rows != NULL ? shard_rows : NULL,
        .shard_count = (uint32_t)json_array_size(rows),
        .partitioner = {
            .kind = kind_of(json_string_value(json_object_get(rule, "kind"))),
            .num_shards = number(rule, "num_shards"),
            .min_shard_bytes = number(rule, "min_shard_bytes"),
            .max_shards = number(rule, "max_shards"),
            .max_shard_bytes = number(rule, "max_shard_bytes")}};
    one->status = sumac_variable_create(one->strategy, &options, &variable, &one->error);
    sumac_value_unref(initial);
    return variable;
}

/* ---- what a step reads */

static bool take_bound(json_t *range, const char *key, int64_t *bound)
{
    json_t *given = json_object_get(range, key);

    *bound = json_integer_value(given);
    return json_is_integer(given);
}

static bool read_slice(struct one_case *one, json_t *entry, struct sumac_slice *slice)
{
    *slice = (struct sumac_slice){.kind = SUMAC_SLICE_RANGE};
    if (json_is_integer(entry)) {
        slice->kind = SUMAC_SLICE_INDEX;
        slice->index = json_integer_value(entry);
        return true;
    }
    if (json_is_string(entry)) {
        slice->kind = SUMAC_SLICE_ELLIPSIS;
        return strcmp(json_string_value(entry), "...") == 0;
    }
    slice->has_start = take_bound(entry, "start", &slice->start);
    slice->has_stop = take_bound(entry, "stop", &slice->stop);
    slice->has_step = take_bound(entry, "step", &slice->step);
    return cases_keys_known(one->run, entry, "a slice", range_keys);
}

static void read_part(
    struct one_case *one, struct sumac_variable *variable, json_t *index,
    struct sumac_value **result)
{
    struct sumac_slice slices[ENTRIES_MAX];
    json_t *entry = NULL;
    size_t i = 0;

    json_array_foreach(index, i, entry)
    {
        if (i >= ENTRIES_MAX || !read_slice(one, entry, &slices[i]))
            one->broken = true;
    }
    if (!one->broken)
        one->status = sumac_variable_slice(
            variable, NULL, slices, (uint32_t)json_array_size(index), result, &one->error);
}

/* A list is a vector of int64. NULL: no memory. */
static struct sumac_value *read_ids(struct one_case *one, json_t *given)
{
    int64_t ids[256];
    json_t *id = NULL;
    size_t i = 0, count = json_array_size(given);

    if (json_is_object(given))
        return one_read_value(one, given);
    if (count > 256)
        return NULL;
    json_array_foreach(given, i, id) ids[i] = json_integer_value(id);
    return sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(count), ids);
}

static void read_rows(
    struct one_case *one, struct sumac_variable *variable, json_t *given,
    struct sumac_value **result)
{
    struct sumac_value *ids = read_ids(one, given);

    one->status = sumac_variable_rows(variable, NULL, ids, result, &one->error);
    sumac_value_unref(ids);
}

static enum sumac_reduce_op combiner_of(const char *name)
{
    static const char *const names[] = {
        [SUMAC_REDUCE_SUM] = "sum", [SUMAC_REDUCE_MEAN] = "mean", [SUMAC_REDUCE_SQRTN] = "sqrtn"};

    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
        if (names[i] != NULL && strcmp(name, names[i]) == 0)
            return (enum sumac_reduce_op)i;
    return SUMAC_REDUCE_NONE;
}

/* The ids of one row of the result, with their weights if there are any. */
static struct sumac_value *read_bag(struct one_case *one, json_t *ids, json_t *weights)
{
    struct sumac_value *bag = read_ids(one, ids);

    if (weights == NULL)
        return bag;
    struct sumac_value *const both[] = {bag, one_read_value(one, weights)};
    return sumac_value_tuple(both, 2);
}

static void look_up(
    struct one_case *one, struct sumac_variable *variable, json_t *step,
    struct sumac_value **result)
{
    json_t *given = json_object_get(step, "ids"), *bag = NULL;
    json_t *weights = json_object_get(step, "weights");
    struct sumac_value *items[SHARDS_MAX];
    size_t i = 0;

    json_array_foreach(given, i, bag)
    {
        if (i < SHARDS_MAX)
            items[i] = read_bag(one, bag, json_array_get(weights, i));
    }
    struct sumac_value *bags = sumac_value_list(items, (uint32_t)json_array_size(given));
    one->status = sumac_variable_lookup(
        variable, NULL, bags, combiner_of(json_string_value(json_object_get(step, "combiner"))),
        result, &one->error);
    sumac_value_unref(bags);
}

/* ---- a step */

static void write_it(struct one_case *one, struct sumac_variable *variable, json_t *step)
{
    json_t *given = json_object_get(step, "indices");
    struct sumac_value *value = one_read_value(one, json_object_get(step, "value"));
    struct sumac_value *indices = given == NULL ? sumac_value_none() : one_read_value(one, given);
    struct sumac_value *operand = one_bring(one, variable_operand(one, variable, value, indices));

    if (operand == NULL) {
        one->status = SUMAC_INVALID_ARGUMENT;
        (void)snprintf(one->error.text, sizeof one->error.text, "the library has no such slices");
    } else {
        one->status = sumac_variable_write(
            variable, NULL, variable_write_of(step), operand, NULL, &one->error);
    }
    sumac_value_unref(value);
    sumac_value_unref(indices);
    sumac_value_unref(operand);
}

static bool run_step(struct one_case *one, struct sumac_variable *variable, json_t *step)
{
    const char *what = json_string_value(json_object_get(step, "do"));
    json_t *expect = json_object_get(step, "expect"), *error = json_object_get(step, "error");
    struct sumac_value *result = NULL;
    bool matched = true;

    if (what == NULL || !cases_keys_known(one->run, step, "a step", step_keys))
        return false;
    if (strcmp(what, "read") == 0)
        one->status = sumac_variable_read(variable, NULL, &result, &one->error);
    else if (strcmp(what, "slice") == 0)
        read_part(one, variable, json_object_get(step, "index"), &result);
    else if (strcmp(what, "rows") == 0)
        read_rows(one, variable, json_object_get(step, "ids"), &result);
    else if (strcmp(what, "lookup") == 0)
        look_up(one, variable, step, &result);
    else
        write_it(one, variable, step);
    if (one->broken)
        matched = cases_fail(one->run, "%s cannot be expressed", what);
    else if (error != NULL)
        matched = one->status != SUMAC_OK
                      ? cases_error_matches(one->run, error, one->status, one->error.text)
                      : cases_fail(one->run, "%s: expected an error, got none", what);
    else if (one->status != SUMAC_OK)
        matched = cases_fail(one->run, "%s: %s", what, one->error.text);
    else if (expect != NULL)
        matched =
            case_value_equal(one->run, what, expect, result, json_is_true(one_get(one, "exact")));
    sumac_value_unref(result);
    return matched;
}

/* ---- a case */

static bool shards_equal(struct one_case *one, struct sumac_variable *variable)
{
    json_t *expected = json_object_get(one_get(one, "expect"), "shards");
    const uint32_t count = sumac_variable_shards(variable);
    bool equal = true;

    if (count != json_array_size(expected))
        return cases_fail(
            one->run, "expected %zu shards, got %" PRIu32, json_array_size(expected), count);
    for (uint32_t i = 0; equal && i < count; i++) {
        struct sumac_value *shard = NULL;
        char what[40];
        (void)snprintf(what, sizeof what, "shard %" PRIu32, i);
        if (sumac_variable_shard(variable, i, &shard, &one->error) != SUMAC_OK)
            return cases_fail(one->run, "%s: %s", what, one->error.text);
        equal = case_value_equal(
            one->run, what, json_array_get(expected, i), shard,
            json_is_true(one_get(one, "exact")));
        sumac_value_unref(shard);
    }
    return equal;
}

static bool act(struct one_case *one)
{
    struct sumac_variable *variable = create(one);
    json_t *step = NULL;
    size_t i = 0;
    bool passed = variable != NULL && !one->broken;

    if (!passed)
        (void)cases_fail(one->run, "expected a variable, got %s", one->error.text);
    json_array_foreach(one_get(one, "steps"), i, step) passed =
        passed && run_step(one, variable, step);
    passed = passed && shards_equal(one, variable);
    variable_destroy(one, variable);
    return passed;
}

/* Where it names no strategy: the default one, on devices one_device, or, through the ps, that of
 * these. */
static enum cases_result run_sharded(struct cases_run *run, json_t *given, void *context)
{
    json_t *one = json_copy(given);

    (void)context;
    const bool on_ps = cluster_client_serves_all();
    if (json_object_get(one, "strategy") == NULL) {
        json_object_set_new(
            one, "strategy",
            json_pack(
                "{s:s}", "kind",
                on_ps               ? "parameter_server"
                : one_has_devices() ? "one_device"
                                    : "default"));
        if (on_ps)
            json_object_set_new(one, "on", json_string("ps"));
    }
    const enum cases_result result = one_run(run, one, act);
    json_decref(one);
    return result;
}

static const char *const sharded_keys[] = {"initial", "rows", "partitioner", "steps", NULL};

const struct cases_operation sharded_operations[] = {
    {.op = "sharded", .keys = sharded_keys, .run_case = run_sharded}, {.op = NULL}};
