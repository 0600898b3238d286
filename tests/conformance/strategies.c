/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.c -- cases of what a strategy does, through the public interface: a strategy is made
 * as the case says, the call is made in the context that it names, and what comes of it compared.
 */
#include "strategies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "one_case.h"
#include "replica_functions.h"
#include "../returning.h"
#include "sumac/variable.h"
#include "variables.h"

#define ABSENT_MAX 16u

static const char *const option_keys[] = {
    "bytes_per_pack", "timeout_seconds", "implementation", NULL};
static const char *const fail_keys[] = {"replica", "code", NULL};
static const char *const expect_keys[] = {"value", "values", "workers", "destination", NULL};

/* ---- what the case gives */

static enum sumac_reduce_op read_op(const struct one_case *one)
{
    return sumac_reduce_op_parse(json_string_value(one_get(one, "reduce_op")));
}

const struct sumac_axes *case_axes_read(json_t *given, struct sumac_axes *axes)
{
    json_t *axis = NULL;
    size_t i = 0;

    *axes = (struct sumac_axes){.count = 0};
    if (given == NULL || json_is_null(given))
        return NULL;

    if (json_is_integer(given)) {
        axes->count = 1;
        axes->axis[0] = json_integer_value(given);
    }
    json_array_foreach(given, i, axis)
    {
        if (axes->count < SUMAC_RANK_MAX)
            axes->axis[axes->count] = json_integer_value(axis);
        axes->count++;
    }
    return axes;
}

static enum sumac_communication read_implementation(const char *name)
{
    static const char *const names[] = {"AUTO", "RING", "NCCL"};

    for (int i = 0; name != NULL && i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum sumac_communication)i;
    return name == NULL ? SUMAC_COMMUNICATION_AUTO : (enum sumac_communication)99;
}

static bool read_options(const struct one_case *one, struct sumac_communication_options *options)
{
    json_t *given = one_get(one, "options");

    *options = (struct sumac_communication_options){
        .bytes_per_pack = (uint64_t)json_integer_value(json_object_get(given, "bytes_per_pack")),
        .timeout_ms =
            (uint32_t)(1000 * json_number_value(json_object_get(given, "timeout_seconds"))),
        .implementation =
            read_implementation(json_string_value(json_object_get(given, "implementation")))};
    return given == NULL || cases_keys_known(one->run, given, "\"options\"", option_keys);
}

static bool is_absent(const struct one_case *one, uint32_t replica)
{
    json_t *absent = NULL;
    size_t i = 0;

    json_array_foreach(
        one_get(one, "absent"), i,
        absent) if ((uint32_t)json_integer_value(absent) == replica) return true;
    return false;
}

/* ---- run */

static const struct sumac_value *operand(
    const struct sumac_value *args, const struct sumac_value *kwargs, uint32_t index,
    const char *name)
{
    const struct sumac_value *positional = sumac_value_item(args, index);

    return positional != NULL ? positional : sumac_value_find(kwargs, name);
}

/* The functions of the cases compute on the host. NULL stays NULL. */
static enum sumac_status
bring_here(const struct sumac_value *value, struct sumac_value **here, struct sumac_error *error)
{
    return value == NULL ? SUMAC_OK : sumac_value_to_host(value, here, error);
}

static enum sumac_status
run_function(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct one_case *one = context;
    json_t *fail = one_get(one, "fail");
    struct sumac_value *x = NULL, *y = NULL, *made = NULL;
    struct replica_operands operands = {
        .id = sumac_replica_id(replica), .count = sumac_replica_count(replica)};

    if (fail != NULL &&
        (uint32_t)json_integer_value(json_object_get(fail, "replica")) == operands.id)
        return return_from_replica(
            replica, one_status_of(json_string_value(json_object_get(fail, "code"))), &returned);
    enum sumac_status status = bring_here(
        operand(sumac_replica_args(replica), sumac_replica_kwargs(replica), 0, "x"), &x, error);
    if (status == SUMAC_OK)
        status = bring_here(
            operand(sumac_replica_args(replica), sumac_replica_kwargs(replica), 1, "y"), &y, error);
    operands.x = x;
    operands.y = y;
    if (status == SUMAC_OK)
        status = replica_function(json_string_value(one_get(one, "fn")), &operands, &made, error);
    if (status == SUMAC_OK)
        status = sumac_replica_to_device(replica, made, &returned, error);
    sumac_value_unref(made);
    sumac_value_unref(x);
    sumac_value_unref(y);
    return return_from_replica(replica, status, &returned);
}

static void do_run(struct one_case *one)
{
    struct sumac_value *args = one_read_args(one), *kwargs = one_read_kwargs(one);
    json_t *fail = one_get(one, "fail");

    one->broken = one->broken || one_get(one, "fn") == NULL ||
                  (fail != NULL && !cases_keys_known(one->run, fail, "\"fail\"", fail_keys));
    if (args != NULL && kwargs != NULL && !one->broken)
        one->status = sumac_strategy_run(
            one->strategy,
            &(struct sumac_run_options){
                .function = run_function, .context = one, .args = args, .kwargs = kwargs},
            &one->result, &one->error);
    sumac_value_unref(args);
    sumac_value_unref(kwargs);
}

static enum sumac_status make_value(
    const struct sumac_value_context *replica, void *context, struct sumac_value **value,
    struct sumac_error *error)
{
    struct one_case *one = context;
    struct replica_operands operands = {
        .id = replica->replica_id_in_sync_group, .count = replica->num_replicas_in_sync};
    struct sumac_value *x =
        one_get(one, "x") == NULL ? NULL : one_read_value(one, one_get(one, "x"));

    operands.x = x;
    const enum sumac_status status =
        replica_function(json_string_value(one_get(one, "fn")), &operands, value, error);
    sumac_value_unref(x);
    return status;
}

static void do_values_from_function(struct one_case *one)
{
    one->status = sumac_strategy_values_from_function(
        one->strategy, make_value, one, &one->result, &one->error);
}

/* ---- a strategy's, and those of its replicas */

/* What is called, in whichever context; `value` is the whole, or the replica's own. */
typedef enum sumac_status called(
    struct one_case *one, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error);

static enum sumac_status call_reduce(
    struct one_case *one, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_axes axes;

    (void)replica;
    if (one_is(one, "op", "reduce_to"))
        return sumac_strategy_reduce_to(
            one->strategy, read_op(one), value, one->destination, result, error);
    return sumac_strategy_reduce(
        one->strategy, read_op(one), value, case_axes_read(one_get(one, "axis"), &axes), result,
        error);
}

static enum sumac_status call_batch_reduce(
    struct one_case *one, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)replica;
    return sumac_strategy_batch_reduce(one->strategy, read_op(one), value, result, error);
}

static enum sumac_status call_gather(
    struct one_case *one, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)replica;
    return sumac_strategy_gather(
        one->strategy, value, json_integer_value(one_get(one, "axis")), result, error);
}

static enum sumac_status call_all_reduce(
    struct one_case *one, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_communication_options options;

    if (!read_options(one, &options))
        return SUMAC_INTERNAL;
    return json_is_true(one_get(one, "gradient"))
               ? sumac_replica_all_reduce_gradient(
                     replica, read_op(one), value, &options, result, error)
               : sumac_replica_all_reduce(replica, read_op(one), value, &options, result, error);
}

/* What a replica has gathered, of which only the shape counts. */
static struct sumac_value *local_operand(struct one_case *one, uint32_t replica)
{
    json_t *shape = json_array_get(one_get(one, "local_shapes"), replica);
    struct sumac_shape local = {.rank = (uint32_t)json_array_size(shape)};

    for (uint32_t i = 0; i < local.rank && i < SUMAC_RANK_MAX; i++)
        local.extent[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    return sumac_value_tensor(SUMAC_FLOAT32, local, NULL);
}

static enum sumac_status call_all_gather(
    struct one_case *one, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    const int64_t axis = json_integer_value(one_get(one, "axis"));

    if (!json_is_true(one_get(one, "gradient")))
        return sumac_replica_all_gather(replica, value, axis, NULL, result, error);
    struct sumac_value *local = local_operand(one, sumac_replica_id(replica));
    const enum sumac_status status =
        sumac_replica_all_gather_gradient(replica, value, local, axis, result, error);
    sumac_value_unref(local);
    return status;
}

struct in_replica {
    struct one_case *one;
    called *call;
};

static enum sumac_status
call_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct in_replica *in = context;

    if (is_absent(in->one, sumac_replica_id(replica)))
        return SUMAC_OK;
    return return_from_replica(
        replica,
        in->call(
            in->one, replica, sumac_value_item(sumac_replica_args(replica), 0), &returned, error),
        &returned);
}

static void do_in_replica(struct one_case *one, called *call, struct sumac_value *value)
{
    struct in_replica in = {.one = one, .call = call};
    struct sumac_value *args = sumac_value_tuple(&value, 1);

    one->status = sumac_strategy_run(
        one->strategy,
        &(struct sumac_run_options){.function = call_in_replica, .context = &in, .args = args},
        &one->result, &one->error);
    sumac_value_unref(args);
}

static void do_in_cross(struct one_case *one, called *call, struct sumac_value *value)
{
    one->status = sumac_strategy_enter(one->strategy, &one->error);
    if (one->status == SUMAC_OK) {
        struct sumac_error left;
        one->status = call(one, sumac_present_replica(), value, &one->result, &one->error);
        if (sumac_strategy_leave(one->strategy, &left) != SUMAC_OK)
            one->broken = true;
    }
    sumac_value_unref(value);
}

static void do_call(struct one_case *one, called *call, bool of_replica)
{
    json_t *list =
        one_get(one, "values") == NULL ? NULL : json_pack("{s:O}", "list", one_get(one, "values"));
    struct sumac_value *value = one_read_value(one, list != NULL ? list : one_get(one, "value"));

    json_decref(list);
    if (value == NULL)
        return;
    value = one_bring(one, value);
    if (one_get(one, "in") != NULL)
        of_replica = one_is(one, "in", "replica");
    if (of_replica)
        do_in_replica(one, call, value);
    else
        do_in_cross(one, call, value);
}

/* ---- a case */

static bool matches_workers(struct one_case *one, json_t *workers)
{
    struct sumac_value *results = NULL;

    if (one->worker >= json_array_size(workers))
        return cases_fail(one->run, "no results of this worker are expected");
    if (sumac_strategy_local_results(one->strategy, one->result, &results, &one->error) != SUMAC_OK)
        return cases_fail(one->run, "no local results: %s", one->error.text);
    json_t *tuple = json_pack("{s:O}", "tuple", json_array_get(workers, one->worker));
    const bool equal = case_value_equal(
        one->run, "the local results", tuple, results, json_is_true(one_get(one, "exact")));
    json_decref(tuple);
    sumac_value_unref(results);
    return equal;
}

static bool matches_result(struct one_case *one, json_t *expect)
{
    json_t *value = json_object_get(expect, "value"), *values = json_object_get(expect, "values");
    const bool exactly = json_is_true(one_get(one, "exact"));

    if (!cases_keys_known(one->run, expect, "\"expect\"", expect_keys))
        return false;
    if (json_object_get(expect, "workers") != NULL)
        return matches_workers(one, json_object_get(expect, "workers"));
    if (values != NULL) {
        json_t *list = json_pack("{s:O}", "list", values);
        const bool equal = case_value_equal(one->run, "the results", list, one->result, exactly);
        json_decref(list);
        return equal;
    }
    if (json_object_get(value, "mirrored") != NULL &&
        sumac_value_kind(one->result) != SUMAC_VALUE_MIRRORED)
        return cases_fail(one->run, "expected a mirrored value");
    return case_value_equal_in_replicas(one->run, value, one->result, &one->replicas, exactly);
}

/* None of this worker's replicas makes the call, which is the others' that must fail. */
static bool is_absent_altogether(const struct one_case *one)
{
    for (uint32_t i = 0; i < one->replicas.count; i++)
        if (!is_absent(one, one->replicas.first + i))
            return false;
    return true;
}

static bool matches(struct one_case *one)
{
    json_t *error = one_get(one, "error");

    if (one->broken)
        return cases_fail(one->run, "the case cannot be expressed");
    if (is_absent_altogether(one))
        return true;
    if (error != NULL)
        return one->status != SUMAC_OK
                   ? cases_error_matches(one->run, error, one->status, one->error.text)
                   : cases_fail(one->run, "expected an error, got a result");
    if (one->status != SUMAC_OK)
        return cases_fail(one->run, "expected a result, got %s", one->error.text);
    return matches_result(one, one_get(one, "expect"));
}

/* A variable is where a result goes, and is not written: what is reduced is a value of the
 * caller's. NULL: the case has none. */
static struct sumac_variable *create_destination(struct one_case *one)
{
    json_t *given = one_get(one, "destination");
    struct sumac_variable *variable = NULL;

    if (given == NULL)
        return NULL;
    struct sumac_value *initial = one_read_value(one, given);
    char name[256];
    const struct sumac_variable_options options = {
        .name = variable_name(one, "destination", name, sizeof name), .initial = initial};
    one->broken =
        sumac_variable_create(one->strategy, &options, &variable, &one->error) != SUMAC_OK;
    sumac_value_unref(initial);
    return variable;
}

static bool destination_is_as_it_was(struct one_case *one, struct sumac_variable *destination)
{
    json_t *expected = json_object_get(one_get(one, "expect"), "destination");
    struct sumac_value *value = NULL;

    if (expected == NULL)
        return true;
    if (sumac_variable_read(destination, NULL, &value, &one->error) != SUMAC_OK)
        return cases_fail(one->run, "the destination cannot be read: %s", one->error.text);
    const bool equal = case_value_equal(one->run, "the destination", expected, value, true);
    sumac_value_unref(value);
    return equal;
}

static bool act_and_match(struct one_case *one, void (*act)(struct one_case *))
{
    one->destination = create_destination(one);
    act(one);
    const bool passed = matches(one) && destination_is_as_it_was(one, one->destination);
    variable_destroy(one, one->destination);
    return passed;
}

static void do_reduce(struct one_case *one) { do_call(one, call_reduce, false); }
static void do_batch_reduce(struct one_case *one) { do_call(one, call_batch_reduce, false); }
static void do_gather(struct one_case *one) { do_call(one, call_gather, false); }
static void do_all_reduce(struct one_case *one) { do_call(one, call_all_reduce, true); }
static void do_all_gather(struct one_case *one) { do_call(one, call_all_gather, true); }

#define RUN_CASE(name)                                                                             \
    static bool act_##name(struct one_case *one) { return act_and_match(one, do_##name); }         \
    static enum cases_result run_##name(struct cases_run *run, json_t *one, void *context)         \
    {                                                                                              \
        (void)context;                                                                             \
        return one_run(run, one, act_##name);                                                      \
    }
RUN_CASE(run)
RUN_CASE(values_from_function)
RUN_CASE(reduce)
RUN_CASE(batch_reduce)
RUN_CASE(gather)
RUN_CASE(all_reduce)
RUN_CASE(all_gather)

static const char *const run_keys[] = {"strategy",      "fn", "args", "kwargs", "fail",
                                       "local_results", NULL};
static const char *const values_keys[] = {"strategy", "fn", "x", NULL};
static const char *const reduce_keys[] = {"strategy", "reduce_op",   "axis", "value",
                                          "in",       "destination", NULL};
static const char *const batch_keys[] = {"strategy", "reduce_op", "values", NULL};
static const char *const all_reduce_keys[] = {"strategy", "reduce_op", "value",    "in",
                                              "options",  "absent",    "gradient", NULL};
static const char *const gather_keys[] = {"strategy", "axis",         "value", "in",
                                          "gradient", "local_shapes", NULL};

const struct cases_operation strategy_operations[] = {
    {.op = "run", .keys = run_keys, .run_case = run_run},
    {.op = "values_from_function", .keys = values_keys, .run_case = run_values_from_function},
    {.op = "reduce", .keys = reduce_keys, .run_case = run_reduce},
    {.op = "reduce_to", .keys = reduce_keys, .run_case = run_reduce},
    {.op = "batch_reduce_to", .keys = batch_keys, .run_case = run_batch_reduce},
    {.op = "all_reduce", .keys = all_reduce_keys, .run_case = run_all_reduce},
    {.op = "gather", .keys = gather_keys, .run_case = run_gather},
    {.op = "all_gather", .keys = gather_keys, .run_case = run_all_gather},
    {.op = NULL}};
