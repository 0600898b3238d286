/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c -- cases of several calls, each of which may take what an earlier one gave. The form
 * of each result is compared: one value, each replica's own, or mirrored.
 */
#include "programs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "one_case.h"
#include "replica_functions.h"
#include "../returning.h"
#include "strategies.h"
#include "variables.h"

#define VARIABLES_MAX 4u
#define RESULTS_MAX 16u
#define ARGS_MAX 4u

static const char *const call_keys[] = {"call",     "as",    "fn",        "args", "x",
                                        "variable", "value", "reduce_op", "axis", "group",
                                        "expect",   "error", NULL};
static const char *const expect_keys[] = {"components", NULL};

struct program {
    struct one_case *one;
    struct sumac_variable *variables[VARIABLES_MAX];
    const char *names[VARIABLES_MAX];
    uint32_t variable_count;
    struct {
        const char *name;
        struct sumac_value *value;
    } results[RESULTS_MAX];
    uint32_t result_count;
};

/* One of its calls. */
struct call {
    struct program *program;
    json_t *given;
    struct sumac_variable *variable; /* NULL: the call names none */
    struct sumac_value *value;       /* NULL: the call has none */
};

static const char *text_of(const struct call *call, const char *key)
{
    const char *text = json_string_value(json_object_get(call->given, key));

    return text != NULL ? text : "";
}

static bool does(const struct call *call, const char *what)
{
    return strcmp(text_of(call, "call"), what) == 0;
}

/* ---- what a call is given */

/* {"result": NAME} is what that call gave. NULL: there is no such value. */
static struct sumac_value *read_value(struct program *program, json_t *given)
{
    const char *name = json_string_value(json_object_get(given, "result"));

    if (name == NULL) {
        struct sumac_value *value = one_read_value(program->one, given);
        return sumac_value_is_distributed(value) ? one_bring(program->one, value) : value;
    }
    for (uint32_t i = 0; i < program->result_count; i++)
        if (strcmp(program->results[i].name, name) == 0)
            return sumac_value_ref(program->results[i].value);
    program->one->broken = !cases_fail(program->one->run, "there is no result %s", name);
    return NULL;
}

static struct sumac_value *read_args(struct program *program, json_t *given)
{
    struct sumac_value *items[ARGS_MAX] = {NULL};
    json_t *item = NULL;
    size_t i = 0;

    if (json_array_size(given) > ARGS_MAX)
        return NULL;
    json_array_foreach(given, i, item) items[i] = read_value(program, item);
    return sumac_value_tuple(items, (uint32_t)json_array_size(given)); /* NULL of NULL */
}

static struct sumac_variable *find_variable(const struct program *program, const char *name)
{
    for (uint32_t i = 0; i < program->variable_count; i++)
        if (strcmp(program->names[i], name) == 0)
            return program->variables[i];
    return NULL;
}

/* ---- in a replica */

/* The functions of `run` that this operation has beside those of replica_functions.h. */
static bool call_replica(
    struct call *call, struct sumac_replica *replica, const struct sumac_value *x,
    struct sumac_value **result, struct sumac_error *error, enum sumac_status *status)
{
    const char *fn = text_of(call, "fn");

    if (strcmp(fn, "same") == 0)
        *status = (*result = sumac_value_ref(x)) == NULL ? SUMAC_INVALID_ARGUMENT : SUMAC_OK;
    else if (strcmp(fn, "all_reduce_sum") == 0)
        *status = sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, x, NULL, result, error);
    else if (strcmp(fn, "all_reduce_mean") == 0)
        *status = sumac_replica_all_reduce(replica, SUMAC_REDUCE_MEAN, x, NULL, result, error);
    else if (strcmp(fn, "all_gather") == 0)
        *status = sumac_replica_all_gather(replica, x, 0, NULL, result, error);
    else if (strcmp(fn, "read") == 0)
        *status = sumac_variable_read(call->variable, replica, result, error);
    else if (strcmp(fn, "assign_add") == 0)
        *status = sumac_variable_assign_add(call->variable, replica, x, result, error);
    else
        return false;
    return true;
}

static enum sumac_status
run_function(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct call *call = context;
    const struct sumac_value *x = sumac_value_item(sumac_replica_args(replica), 0);
    struct sumac_value *here = NULL, *made = NULL;
    enum sumac_status status = SUMAC_OK;

    if (call_replica(call, replica, x, &returned, error, &status))
        return return_from_replica(replica, status, &returned);
    if (x != NULL)
        status = sumac_value_to_host(x, &here, error);
    const struct replica_operands operands = {
        .id = sumac_replica_id(replica), .count = sumac_replica_count(replica), .x = here};
    if (status == SUMAC_OK)
        status = replica_function(text_of(call, "fn"), &operands, &made, error);
    if (status == SUMAC_OK)
        status = sumac_replica_to_device(replica, made, &returned, error);
    sumac_value_unref(here);
    sumac_value_unref(made);
    return return_from_replica(replica, status, &returned);
}

/* ---- in an update */

static enum sumac_status
update_component(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct call *call = context;
    const char *fn = text_of(call, "fn");

    if (strcmp(fn, "none") == 0)
        return SUMAC_OK;
    if (strcmp(fn, "read") == 0)
        return return_from_update(
            component, sumac_update_read(component, &returned, error), &returned);
    if (strcmp(fn, "same") == 0 || strcmp(fn, "component_index") == 0) {
        returned = fn[0] == 's' ? sumac_value_ref(sumac_value_item(sumac_update_args(component), 0))
                                : sumac_value_int32((int32_t)sumac_update_index(component));
        return return_from_update(
            component, returned == NULL ? SUMAC_INVALID_ARGUMENT : SUMAC_OK, &returned);
    }
    return return_from_update(
        component,
        sumac_update_write(
            component, sumac_write_parse(fn), sumac_value_item(sumac_update_args(component), 0),
            &returned, error),
        &returned);
}

/* ---- made */

static enum sumac_status
make_run(struct call *call, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *args = read_args(call->program, json_object_get(call->given, "args"));
    const struct sumac_run_options step = {.function = run_function, .context = call, .args = args};
    const enum sumac_status status =
        args == NULL ? SUMAC_UNKNOWN
                     : sumac_strategy_run(call->program->one->strategy, &step, result, error);

    sumac_value_unref(args);
    return status;
}

static enum sumac_status
make_update(struct call *call, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *args = read_args(call->program, json_object_get(call->given, "args"));
    const struct sumac_update_options update = {
        .function = update_component,
        .context = call,
        .args = args,
        .ungrouped = json_is_false(json_object_get(call->given, "group"))};
    const enum sumac_status status =
        args == NULL ? SUMAC_UNKNOWN
                     : sumac_variable_update(call->variable, NULL, &update, result, error);

    sumac_value_unref(args);
    return status;
}

static enum sumac_status make_value(
    const struct sumac_value_context *replica, void *context, struct sumac_value **value,
    struct sumac_error *error)
{
    const struct call *call = context;
    const struct replica_operands operands = {
        .id = replica->replica_id_in_sync_group,
        .count = replica->num_replicas_in_sync,
        .x = call->value};

    return replica_function(text_of(call, "fn"), &operands, value, error);
}

static enum sumac_status
make_call(struct call *call, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_strategy *strategy = call->program->one->strategy;
    json_t *axis = json_object_get(call->given, "axis");
    const char *name = text_of(call, "call");
    struct sumac_axes axes;

    if (does(call, "run"))
        return make_run(call, result, error);
    if (does(call, "update"))
        return make_update(call, result, error);
    if (does(call, "reduce"))
        return sumac_strategy_reduce(
            strategy, sumac_reduce_op_parse(text_of(call, "reduce_op")), call->value,
            case_axes_read(axis, &axes), result, error);
    if (does(call, "gather"))
        return sumac_strategy_gather(
            strategy, call->value, json_integer_value(axis), result, error);
    if (does(call, "local_results"))
        return sumac_strategy_local_results(strategy, call->value, result, error);
    if (does(call, "values_from_function"))
        return sumac_strategy_values_from_function(strategy, make_value, call, result, error);
    if (does(call, "read"))
        return sumac_variable_read(call->variable, NULL, result, error);
    if ((int)sumac_write_parse(name) != 0)
        return sumac_variable_write(
            call->variable, NULL, sumac_write_parse(name), call->value, result, error);
    call->program->one->broken =
        !cases_fail(call->program->one->run, "there is no call \"%s\"", name);
    return SUMAC_UNKNOWN;
}

/* ---- a case */

/* This worker's own of {"workers": [V, …]}; any other value is every worker's. */
static json_t *expected_here(const struct one_case *one, json_t *expected)
{
    json_t *workers = json_object_get(expected, "workers");

    return workers == NULL ? expected : json_array_get(workers, one->worker);
}

static bool call_matches(
    const struct call *call, const char *what, enum sumac_status status,
    const struct sumac_error *said, const struct sumac_value *result)
{
    struct one_case *one = call->program->one;
    json_t *expected = json_object_get(call->given, "expect");
    json_t *error = json_object_get(call->given, "error");

    if (error != NULL && status == SUMAC_OK)
        return cases_fail(one->run, "%s: expected an error, got a result", what);
    if (error != NULL)
        return cases_error_matches(one->run, error, status, said->text);
    if (status != SUMAC_OK)
        return cases_fail(one->run, "%s: expected a result, got %s", what, said->text);
    return expected == NULL || case_value_equal_in_form(
                                   one->run, what, expected_here(one, expected), result,
                                   &one->replicas, json_is_true(one_get(one, "exact")));
}

static bool keep(struct program *program, const char *name, struct sumac_value *result)
{
    if (name == NULL)
        return true;
    if (program->result_count == RESULTS_MAX)
        return cases_fail(program->one->run, "more than %u results", RESULTS_MAX);
    program->results[program->result_count].name = name;
    program->results[program->result_count++].value = sumac_value_ref(result);
    return true;
}

static bool run_call(struct program *program, json_t *given, uint32_t number)
{
    struct one_case *one = program->one;
    struct call call = {.program = program, .given = given};
    json_t *value = json_object_get(given, json_object_get(given, "x") != NULL ? "x" : "value");
    struct sumac_error said = {.status = SUMAC_OK};
    struct sumac_value *result = NULL;
    char what[40];

    if (!cases_keys_known(one->run, given, "a call", call_keys))
        return false;
    (void)snprintf(what, sizeof what, "call %" PRIu32, number);
    call.variable = find_variable(program, text_of(&call, "variable"));
    if (value != NULL)
        call.value = read_value(program, value);
    const enum sumac_status status = make_call(&call, &result, &said);
    const bool passed = !one->broken && call_matches(&call, what, status, &said, result) &&
                        keep(program, json_string_value(json_object_get(given, "as")), result);
    sumac_value_unref(call.value);
    sumac_value_unref(result);
    return passed;
}

static bool create_all(struct program *program)
{
    struct one_case *one = program->one;
    json_t *create = NULL;
    size_t i = 0;

    json_array_foreach(one_get(one, "create"), i, create)
    {
        const char *name = json_string_value(json_object_get(create, "name"));
        if (name == NULL || i == VARIABLES_MAX)
            return cases_fail(one->run, "a variable without a name, or too many");
        program->variables[i] = variable_create(one, create);
        if (program->variables[i] == NULL)
            return cases_fail(one->run, "no variable %s: %s", name, one->error.text);
        program->names[i] = name;
        program->variable_count++;
    }
    return true;
}

static bool components_match(struct program *program)
{
    struct one_case *one = program->one;
    json_t *expect = one_get(one, "expect"), *components = NULL;
    const char *name = NULL;

    if (!cases_keys_known(one->run, expect, "\"expect\"", expect_keys))
        return false;
    json_object_foreach(json_object_get(expect, "components"), name, components)
    {
        struct sumac_variable *variable = find_variable(program, name);
        if (variable == NULL)
            return cases_fail(one->run, "there is no variable %s", name);
        if (!variable_components_equal(one, variable, components))
            return false;
    }
    return true;
}

static bool run_program(struct one_case *one)
{
    struct program program = {.one = one};
    json_t *call = NULL;
    size_t i = 0;

    bool passed = create_all(&program);
    json_array_foreach(one_get(one, "calls"), i, call) passed =
        passed && run_call(&program, call, (uint32_t)i + 1);
    passed = passed && components_match(&program);
    for (uint32_t j = 0; j < program.result_count; j++)
        sumac_value_unref(program.results[j].value);
    for (uint32_t j = 0; j < program.variable_count; j++)
        variable_destroy(one, program.variables[j]);
    return passed;
}

static enum cases_result run(struct cases_run *run, json_t *given, void *context)
{
    (void)context;
    return one_run(run, given, run_program);
}

static const char *const program_keys[] = {"strategy", "create", "calls", NULL};

const struct cases_operation program_operations[] = {
    {.op = "program", .keys = program_keys, .run_case = run}, {.op = NULL}};
