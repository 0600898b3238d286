/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c -- cases of a strategy's variables, through the public interface. */
#include "variables.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cluster_client.h"
#include "../returning.h"

#define REPLICAS_MAX 16u

static const char *const create_keys[] = {
    "name", "initial", "synchronization", "aggregation", "trainable", "undistributed", "in", NULL};
static const char *const step_keys[] = {"in",        "do",     "value", "indices",
                                        "reduce_op", "expect", "error", NULL};
static const char *const expect_variable_keys[] = {
    "read", "read_error", "components", "trainable", "synchronization", "aggregation", NULL};
static const char *const expect_update_keys[] = {"result", "components", "read", "calls", NULL};

/* ---- created */

/* Its number, or one that there is none of. */
static int number_of(json_t *given, const char *const *names)
{
    const char *name = json_string_value(given);

    for (int i = 0; name != NULL && names[i] != NULL; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return given == NULL ? 0 : 99;
}

static const char *const synchronizations[] = {"AUTO", "NONE", "ON_WRITE", "ON_READ", NULL};
static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA", NULL};

static bool is_on_ps(const struct one_case *one)
{
    return strcmp(sumac_strategy_name(one->strategy), "parameter_server") == 0;
}

const char *
variable_name(const struct one_case *one, const char *given, char *text, size_t text_bytes)
{
    const bool own = is_on_ps(one);

    (void)snprintf(
        text, text_bytes, "%s%s%s", own ? one->run->case_id : "", own ? "/" : "",
        given != NULL ? given : "v");
    return text;
}

void variable_destroy(struct one_case *one, struct sumac_variable *variable)
{
    const bool on_ps = sumac_variable_created_in_scope(one->strategy, variable) && is_on_ps(one);
    struct sumac_error error;

    if (on_ps && sumac_client_variable_delete(
                     cluster_client(), sumac_variable_name(variable), &error) != SUMAC_OK)
        fprintf(stderr, "%s is left on the ps: %s\n", one->run->case_id, error.text);
    sumac_variable_destroy(variable);
}

/* What the replicas create together. */
struct creation {
    const struct one_case *one;
    const struct sumac_variable_options *options;
    struct sumac_variable *made[REPLICAS_MAX]; /* those of this worker */
};

static enum sumac_status
create_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct creation *creation = context;
    struct sumac_variable_options own = *creation->options;

    own.initial = sumac_value_item(sumac_replica_args(replica), 0);
    own.replica = replica;
    return sumac_variable_create(
        creation->one->strategy, &own,
        &creation->made[sumac_replica_id(replica) - creation->one->replicas.first], error);
}

/* Gives  *variable, which each replica has got. */
static void create_in_replicas(
    struct one_case *one, const struct sumac_variable_options *options,
    struct sumac_variable **variable)
{
    struct creation creation = {.one = one, .options = options};
    struct sumac_value *const initial = sumac_value_ref(options->initial);
    struct sumac_value *args = sumac_value_tuple(&initial, 1);
    const struct sumac_run_options step = {
        .function = create_in_replica, .context = &creation, .args = args};

    one->status = sumac_strategy_run(one->strategy, &step, NULL, &one->error);
    sumac_value_unref(args);
    for (uint32_t i = 1; one->status == SUMAC_OK && i < one->replicas.count; i++)
        if (creation.made[i] != creation.made[0])
            one->broken = !cases_fail(one->run, "replicas have got different variables");
    *variable = creation.made[0];
}

struct sumac_variable *variable_create(struct one_case *one, json_t *create)
{
    json_t *trainable = json_object_get(create, "trainable");
    const char *in = json_string_value(json_object_get(create, "in"));
    struct sumac_variable *variable = NULL;
    struct sumac_value *initial = NULL;

    if (!cases_keys_known(one->run, create, "\"create\"", create_keys)) {
        one->broken = true;
        return NULL;
    }
    initial = one_bring(one, one_read_value(one, json_object_get(create, "initial")));
    if (initial == NULL)
        return NULL;
    char name[256];
    const struct sumac_variable_options options = {
        .name = variable_name(
            one, json_string_value(json_object_get(create, "name")), name, sizeof name),
        .initial = initial,
        .synchronization = (enum sumac_synchronization)number_of(
            json_object_get(create, "synchronization"), synchronizations),
        .aggregation =
            (enum sumac_reduce_op)number_of(json_object_get(create, "aggregation"), aggregations),
        .trainable = trainable == NULL         ? SUMAC_TRAINABLE_DEFAULT
                     : json_is_true(trainable) ? SUMAC_TRAINABLE_YES
                                               : SUMAC_TRAINABLE_NO,
        .process_local = json_is_true(json_object_get(create, "undistributed"))};
    if (in != NULL && strcmp(in, "replica") == 0)
        create_in_replicas(one, &options, &variable);
    else
        one->status = sumac_variable_create(one->strategy, &options, &variable, &one->error);
    sumac_value_unref(initial);
    return one->status == SUMAC_OK ? variable : NULL;
}

/* ---- a step */

enum sumac_write variable_write_of(json_t *step)
{
    return sumac_write_parse(json_string_value(json_object_get(step, "do")));
}

struct sumac_value *variable_operand(
    struct one_case *one, const struct sumac_variable *variable, const struct sumac_value *value,
    const struct sumac_value *indices)
{
    if (value == NULL || sumac_value_kind(indices) == SUMAC_VALUE_NONE)
        return sumac_value_ref(value);
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_ref(value), sumac_value_ref(indices), sumac_variable_shape(variable));
    (void)one;
    return slices;
}

struct step {
    struct one_case *one;
    json_t *given;
    struct sumac_variable *variable;
    struct sumac_value *value, *indices; /* as given; none where there is none */
    struct sumac_value *result;
};

static bool does(const struct step *step, const char *what)
{
    const char *name = json_string_value(json_object_get(step->given, "do"));

    return name != NULL && strcmp(name, what) == 0;
}

static enum sumac_status fail_operand(const struct step *step, struct sumac_error *error)
{
    (void)snprintf(error->text, sizeof error->text, "the library has no such slices");
    error->status = SUMAC_INVALID_ARGUMENT;
    (void)step;
    return SUMAC_INVALID_ARGUMENT;
}

static enum sumac_status write_in(
    struct step *step, struct sumac_replica *replica, const struct sumac_value *value,
    const struct sumac_value *indices, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *operand = variable_operand(step->one, step->variable, value, indices);

    if (operand == NULL)
        return fail_operand(step, error);
    if (replica == NULL)
        operand = one_bring(step->one, operand);
    const enum sumac_status status = sumac_variable_write(
        step->variable, replica, variable_write_of(step->given), operand, result, error);
    sumac_value_unref(operand);
    return status;
}

static enum sumac_status all_reduce_read(
    struct step *step, struct sumac_replica *replica, struct sumac_value **result,
    struct sumac_error *error)
{
    const char *op = json_string_value(json_object_get(step->given, "reduce_op"));
    struct sumac_value *own = NULL;

    enum sumac_status status = sumac_variable_read(step->variable, replica, &own, error);
    if (status == SUMAC_OK)
        status =
            sumac_replica_all_reduce(replica, sumac_reduce_op_parse(op), own, NULL, result, error);
    sumac_value_unref(own);
    return status;
}

static enum sumac_status
do_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct step *step = context;

    if (does(step, "read"))
        return return_from_replica(
            replica, sumac_variable_read(step->variable, replica, &returned, error), &returned);
    if (does(step, "all_reduce"))
        return return_from_replica(
            replica, all_reduce_read(step, replica, &returned, error), &returned);
    return return_from_replica(
        replica,
        write_in(
            step, replica, sumac_value_item(sumac_replica_args(replica), 0),
            sumac_value_item(sumac_replica_args(replica), 1), &returned, error),
        &returned);
}

static struct sumac_value *step_args(const struct step *step)
{
    struct sumac_value *const items[] = {
        sumac_value_ref(step->value), sumac_value_ref(step->indices)};

    return one_bring(step->one, sumac_value_tuple(items, 2));
}

static void step_in_replica(struct step *step)
{
    struct one_case *one = step->one;
    struct sumac_value *args = step_args(step);
    const struct sumac_run_options run = {.function = do_in_replica, .context = step, .args = args};

    one->status = sumac_strategy_run(one->strategy, &run, &step->result, &one->error);
    sumac_value_unref(args);
}

static void step_across(struct step *step)
{
    struct one_case *one = step->one;
    struct sumac_error left;

    one->status = sumac_strategy_enter(one->strategy, &one->error);
    if (one->status != SUMAC_OK)
        return;
    one->status =
        does(step, "read")
            ? sumac_variable_read(step->variable, NULL, &step->result, &one->error)
            : write_in(step, NULL, step->value, step->indices, &step->result, &one->error);
    if (sumac_strategy_leave(one->strategy, &left) != SUMAC_OK)
        one->broken = true;
}

static enum sumac_status
do_in_update(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct step *step = context;

    if (does(step, "read"))
        return return_from_update(
            component, sumac_update_read(component, &returned, error), &returned);
    struct sumac_value *operand = variable_operand(
        step->one, step->variable, sumac_value_item(sumac_update_args(component), 0),
        sumac_value_item(sumac_update_args(component), 1));
    if (operand == NULL)
        return return_from_update(component, fail_operand(step, error), &returned);
    const enum sumac_status status =
        sumac_update_write(component, variable_write_of(step->given), operand, &returned, error);
    sumac_value_unref(operand);
    return return_from_update(component, status, &returned);
}

static void step_in_update(struct step *step)
{
    struct one_case *one = step->one;
    struct sumac_value *args = step_args(step);
    const struct sumac_update_options update = {
        .function = do_in_update, .context = step, .args = args};

    one->status = sumac_variable_update(step->variable, NULL, &update, &step->result, &one->error);
    sumac_value_unref(args);
}

static void do_step(struct step *step)
{
    const char *in = json_string_value(json_object_get(step->given, "in"));
    struct one_case *one = step->one;

    if (!does(step, "read") && !does(step, "all_reduce") &&
        (int)variable_write_of(step->given) == 0)
        one->broken = !cases_fail(one->run, "a step that is none");
    else if (in != NULL && strcmp(in, "replica") == 0)
        step_in_replica(step);
    else if (in != NULL && strcmp(in, "cross") == 0)
        step_across(step);
    else if (in != NULL && strcmp(in, "update") == 0)
        step_in_update(step);
    else
        one->broken = !cases_fail(one->run, "a step in a context that is none");
}

/* What is the same in all is compared once. */
static bool equal_in_each(struct one_case *one, json_t *expected, struct sumac_value *actual)
{
    const struct case_replicas once = {.first = one->replicas.first, .count = 1};

    return case_value_equal_in_replicas(
        one->run, expected, actual, sumac_value_is_distributed(actual) ? &one->replicas : &once,
        json_is_true(one_get(one, "exact")));
}

static bool step_matches(struct step *step, uint32_t number)
{
    struct one_case *one = step->one;
    json_t *expect = json_object_get(step->given, "expect");
    json_t *error = json_object_get(step->given, "error");

    if (one->broken)
        return false;
    if (error != NULL && one->status == SUMAC_OK)
        return cases_fail(one->run, "step %" PRIu32 ": expected an error, got a result", number);
    if (error != NULL)
        return cases_error_matches(one->run, error, one->status, one->error.text);
    if (one->status != SUMAC_OK)
        return cases_fail(
            one->run, "step %" PRIu32 ": expected a result, got %s", number, one->error.text);
    if (expect == NULL)
        return true;
    return equal_in_each(one, expect, step->result);
}

/* None where the step has none. NULL: the library has no such value. */
static struct sumac_value *read_part(struct one_case *one, json_t *step, const char *key)
{
    json_t *given = json_object_get(step, key);

    return given == NULL ? sumac_value_none() : one_read_value(one, given);
}

static bool
run_step(struct one_case *one, struct sumac_variable *variable, json_t *given, uint32_t number)
{
    struct step step = {.one = one, .given = given, .variable = variable};

    if (!cases_keys_known(one->run, given, "a step", step_keys))
        return false;
    one->status = SUMAC_OK;
    step.value = read_part(one, given, "value");
    step.indices = read_part(one, given, "indices");
    if (step.value == NULL || step.indices == NULL)
        one->broken = json_object_get(given, "error") == NULL;
    else
        do_step(&step);
    const bool matched = step_matches(&step, number);
    sumac_value_unref(step.value);
    sumac_value_unref(step.indices);
    sumac_value_unref(step.result);
    return matched;
}

/* ---- what is left */

bool variable_components_equal(
    struct one_case *one, struct sumac_variable *variable, json_t *expected)
{
    struct sumac_value *components = NULL;
    bool equal = true;

    if (sumac_variable_components(variable, &components, &one->error) != SUMAC_OK)
        return cases_fail(one->run, "no components: %s", one->error.text);
    const size_t first =
        json_array_size(expected) == one->replicas.in_sync ? one->replicas.first : 0;
    if (first + sumac_value_count(components) > json_array_size(expected) ||
        (one->replicas.in_sync == one->replicas.count &&
         sumac_value_count(components) != json_array_size(expected)))
        equal = cases_fail(
            one->run, "expected %zu components, got %" PRIu32, json_array_size(expected),
            sumac_value_count(components));
    for (uint32_t i = 0; equal && i < sumac_value_count(components); i++) {
        char what[40];
        (void)snprintf(what, sizeof what, "component %" PRIu32, i);
        equal = case_value_equal(
            one->run, what, json_array_get(expected, first + i), sumac_value_item(components, i),
            json_is_true(one_get(one, "exact")));
    }
    sumac_value_unref(components);
    return equal;
}

static bool read_equals(struct one_case *one, struct sumac_variable *variable, json_t *expected)
{
    struct sumac_value *value = NULL;

    if (sumac_variable_read(variable, NULL, &value, &one->error) != SUMAC_OK)
        return cases_fail(one->run, "expected a value, got %s", one->error.text);
    const bool equal = case_value_equal(
        one->run, "the value", expected, value, json_is_true(one_get(one, "exact")));
    sumac_value_unref(value);
    return equal;
}

static bool read_fails(struct one_case *one, struct sumac_variable *variable, json_t *expected)
{
    struct sumac_value *value = NULL;
    const enum sumac_status status = sumac_variable_read(variable, NULL, &value, &one->error);

    sumac_value_unref(value);
    return status == SUMAC_OK ? cases_fail(one->run, "expected an error of the read, got a value")
                              : cases_error_matches(one->run, expected, status, one->error.text);
}

static bool facts_equal(struct one_case *one, struct sumac_variable *variable, json_t *expect)
{
    json_t *trainable = json_object_get(expect, "trainable");
    json_t *synchronization = json_object_get(expect, "synchronization");
    json_t *aggregation = json_object_get(expect, "aggregation");

    if (trainable != NULL && json_is_true(trainable) != sumac_variable_trainable(variable))
        return cases_fail(one->run, "trainable is not as expected");
    if (synchronization != NULL && number_of(synchronization, synchronizations) !=
                                       (int)sumac_variable_synchronization(variable))
        return cases_fail(one->run, "the synchronization is not as expected");
    if (aggregation != NULL &&
        number_of(aggregation, aggregations) != (int)sumac_variable_aggregation(variable))
        return cases_fail(one->run, "the aggregation is not as expected");
    return true;
}

static bool state_equals(struct one_case *one, struct sumac_variable *variable, json_t *expect)
{
    json_t *read = json_object_get(expect, "read");
    json_t *read_error = json_object_get(expect, "read_error");
    json_t *components = json_object_get(expect, "components");

    return facts_equal(one, variable, expect) &&
           (components == NULL || variable_components_equal(one, variable, components)) &&
           (read == NULL || read_equals(one, variable, read)) &&
           (read_error == NULL || read_fails(one, variable, read_error));
}

/* ---- a case of a variable */

static bool run_steps(struct one_case *one, struct sumac_variable *variable)
{
    json_t *step = NULL;
    size_t i = 0;

    json_array_foreach(one_get(one, "steps"), i, step)
    {
        if (!run_step(one, variable, step, (uint32_t)i + 1))
            return false;
    }
    return true;
}

static bool is_refused(struct one_case *one)
{
    return one->status == SUMAC_OK && !one->broken
               ? cases_fail(one->run, "expected an error, got a variable")
               : !one->broken && cases_error_matches(
                                     one->run, one_get(one, "error"), one->status, one->error.text);
}

static bool run_variable_case(struct one_case *one)
{
    json_t *expect = one_get(one, "expect");
    struct sumac_variable *variable = variable_create(one, one_get(one, "create"));
    bool passed;

    if (one_get(one, "error") != NULL)
        passed = is_refused(one);
    else if (variable == NULL)
        passed = cases_fail(one->run, "expected a variable, got %s", one->error.text);
    else
        passed = cases_keys_known(one->run, expect, "\"expect\"", expect_variable_keys) &&
                 run_steps(one, variable) && state_equals(one, variable, expect);
    variable_destroy(one, variable);
    return passed;
}

/* ---- a case of an update */

struct updating {
    struct one_case *one;
    struct sumac_variable *variable;
    atomic_uint calls;
};

static enum sumac_status
update_component(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct updating *updating = context;
    const struct sumac_value *first = sumac_value_item(sumac_update_args(component), 0);
    const struct sumac_value *operand =
        first != NULL ? first : sumac_value_find(sumac_update_kwargs(component), "value");
    const struct one_case *one = updating->one;

    atomic_fetch_add(&updating->calls, 1);
    if (one_is(one, "fn", "none"))
        return SUMAC_OK;
    if (one_is(one, "fn", "component_index")) {
        returned = sumac_value_int32((int32_t)sumac_update_index(component));
        return return_from_update(
            component, returned == NULL ? SUMAC_RESOURCE_EXHAUSTED : SUMAC_OK, &returned);
    }
    return return_from_update(
        component,
        sumac_update_write(
            component, sumac_write_parse(json_string_value(one_get(one, "fn"))), operand, &returned,
            error),
        &returned);
}

/* What the case gives is whole: each replica takes its own of it, or passes what all have. */
static enum sumac_status
update_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct updating *updating = context;
    const struct sumac_update_options update = {
        .function = update_component,
        .context = updating,
        .args = sumac_replica_args(replica),
        .kwargs = sumac_replica_kwargs(replica),
        .ungrouped = json_is_false(one_get(updating->one, "group"))};

    return return_from_replica(
        replica, sumac_variable_update(updating->variable, replica, &update, &returned, error),
        &returned);
}

static void do_update(struct updating *updating)
{
    struct one_case *one = updating->one;
    struct sumac_value *args = one_read_args(one), *kwargs = one_read_kwargs(one);
    const struct sumac_update_options update = {
        .function = update_component,
        .context = updating,
        .args = args,
        .kwargs = kwargs,
        .ungrouped = json_is_false(one_get(one, "group"))};

    if (args == NULL || kwargs == NULL) {
        one->broken = one_get(one, "error") == NULL;
    } else if (one_is(one, "in", "replica")) {
        const struct sumac_run_options run = {
            .function = update_in_replica, .context = updating, .args = args, .kwargs = kwargs};
        one->status = sumac_strategy_run(one->strategy, &run, &one->result, &one->error);
    } else {
        one->status =
            sumac_variable_update(updating->variable, NULL, &update, &one->result, &one->error);
    }
    sumac_value_unref(args);
    sumac_value_unref(kwargs);
}

/* Those of all workers: each calls it as often as this one; a variable that is not distributed is
 * each worker's own, and counts by itself. */
static json_int_t count_calls(struct updating *updating)
{
    const struct case_replicas *replicas = &updating->one->replicas;
    const json_int_t calls = (json_int_t)atomic_load(&updating->calls);

    return sumac_variable_created_in_scope(updating->one->strategy, updating->variable)
               ? calls * replicas->in_sync / replicas->count
               : calls;
}

static bool update_matches(struct updating *updating)
{
    struct one_case *one = updating->one;
    json_t *expect = one_get(one, "expect");
    json_t *result = json_object_get(expect, "result");
    json_t *calls = json_object_get(expect, "calls");

    if (one->status != SUMAC_OK)
        return cases_fail(one->run, "expected a result, got %s", one->error.text);
    if (!cases_keys_known(one->run, expect, "\"expect\"", expect_update_keys))
        return false;
    if (result != NULL && !equal_in_each(one, result, one->result))
        return false;
    if (calls != NULL && json_integer_value(calls) != count_calls(updating))
        return cases_fail(
            one->run, "expected %" JSON_INTEGER_FORMAT " calls, got %u", json_integer_value(calls),
            atomic_load(&updating->calls));
    return state_equals(one, updating->variable, expect);
}

static bool run_update_case(struct one_case *one)
{
    struct updating updating = {.one = one};
    bool passed;

    updating.variable = variable_create(one, one_get(one, "create"));
    if (updating.variable != NULL)
        do_update(&updating);
    if (one_get(one, "error") != NULL)
        passed = is_refused(one);
    else
        passed = !one->broken && updating.variable != NULL
                     ? update_matches(&updating)
                     : cases_fail(one->run, "no update: %s", one->error.text);
    variable_destroy(one, updating.variable);
    return passed;
}

static enum cases_result run_variable(struct cases_run *run, json_t *given, void *context)
{
    (void)context;
    return one_run(run, given, run_variable_case);
}

static enum cases_result run_update(struct cases_run *run, json_t *given, void *context)
{
    (void)context;
    return one_run(run, given, run_update_case);
}

static const char *const variable_keys[] = {"strategy", "create", "steps", NULL};
static const char *const update_keys[] = {"strategy", "create", "fn", "args",
                                          "kwargs",   "group",  "in", NULL};

const struct cases_operation variable_operations[] = {
    {.op = "variable", .keys = variable_keys, .run_case = run_variable},
    {.op = "update", .keys = update_keys, .run_case = run_update},
    {.op = NULL}};
