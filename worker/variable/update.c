/* SPDX-License-Identifier: Apache-2.0 */
/* update.c -- a function of each component of a variable: StrategyExtended.update. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "text.h"

/* ---- what the function is given */

static enum sumac_status refuse_per_replica(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct sumac_variable *variable = context;
    char where[160];

    if (leaf->kind == SUMAC_VALUE_PER_REPLICA && !value_is_same_in_replicas(leaf))
        return fail_argument(
            error,
            "update of %s: the argument%s%s is per_replica, and its components would not be the "
            "same; reduce it first",
            variable->name, path == NULL ? "" : " at ",
            value_path_print(path, where, sizeof where));
    (void)mapped;
    return SUMAC_OK;
}

enum sumac_status update_check_argument(
    struct sumac_variable *variable, const struct sumac_value *given, struct sumac_error *error)
{
    return given == NULL ? SUMAC_OK : value_map(given, refuse_per_replica, variable, NULL, error);
}

enum sumac_status update_check_own(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    const char *function, const struct sumac_value *gradient, struct sumac_error *error)
{
    assert(gradient != NULL);
    if (!context_is_of(replica) || variable->strategy != replica->strategy ||
        value_is_leaf_of_replicas(gradient))
        return SUMAC_OK;
    return operand_check(
        variable, function, gradient, gradient->kind == SUMAC_VALUE_INDEXED_SLICES, error);
}

static enum sumac_status check_arguments(
    struct sumac_variable *variable, const struct sumac_update_options *update,
    struct sumac_error *error)
{
    char of[SUMAC_ERROR_TEXT_BYTES];

    (void)text_print(of, sizeof of, "update of %s", variable->name);
    enum sumac_status status = arguments_check(of, update->args, update->kwargs, error);
    if (status == SUMAC_OK)
        status = update_check_argument(variable, update->args, error);
    return status == SUMAC_OK ? update_check_argument(variable, update->kwargs, error) : status;
}

/* ---- called */

static enum sumac_status call_function(
    struct sumac_update_context *update, const struct sumac_update_options *options,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct component *const component = update->component;
    struct context *present = context_present();
    const struct context before = *present;
    struct sumac_error said = {.status = SUMAC_OK};
    char whose[SUMAC_ERROR_TEXT_BYTES];

    assert(before.kind != CONTEXT_UPDATE);
    enum sumac_status status = arguments_select(
        options->args, options->kwargs, component->variable->strategy->first + component->index,
        &update->own, error);
    if (status == SUMAC_OK) {
        *present = (struct context){
            .kind = CONTEXT_UPDATE,
            .strategy = component->variable->strategy,
            .replica = before.replica,
            .update = update};
        status = options->function(update, options->context, &said);
        *present = before;
        (void)text_print(
            whose, sizeof whose, "update of %s: the function of component %" PRIu32,
            component->variable->name, component->index);
        if (status != SUMAC_OK)
            (void)function_failed(&said, status, whose);
        if (status != SUMAC_OK && error != NULL)
            *error = said;
    }
    return arguments_end(&update->own, status, result, error);
}

/* ---- what they returned */

static enum sumac_status tuple_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const uint32_t count = *(const uint32_t *)context;

    (void)path;
    assert(count > 0);
    return value_give(value_hold(SUMAC_VALUE_TUPLE, leaves, count, 0), mapped, error);
}

static enum sumac_status put_together(
    const struct sumac_variable *variable, bool grouped, const struct sumac_value *const *results,
    struct sumac_value **result, struct sumac_error *error)
{
    uint32_t count = variable->component_count;
    struct sumac_error why;

    assert(count > 0);
    if (grouped)
        return value_regroup_as(
            SUMAC_VALUE_MIRRORED, results, count, variable->strategy->first, result, error);
    for (uint32_t i = 1; i < count; i++)
        if (sumac_value_same_nest(results[0], results[i], &why) != SUMAC_OK)
            return fail(
                error, why.status, why.reason,
                "update of %s: components 0 and %" PRIu32 " return other nests: %.380s",
                variable->name, i, why.text);
    return value_zip(results, count, tuple_leaf, &count, result, error);
}

/* ---- what the function asks of its context */

uint32_t sumac_update_index(const struct sumac_update_context *update)
{
    return update == NULL ? 0 : update->component->index;
}

const struct sumac_value *sumac_update_args(const struct sumac_update_context *update)
{
    return update == NULL ? NULL : update->own.args;
}

const struct sumac_value *sumac_update_kwargs(const struct sumac_update_context *update)
{
    return update == NULL ? NULL : update->own.kwargs;
}

void sumac_update_return(struct sumac_update_context *update, struct sumac_value *value)
{
    if (update != NULL)
        arguments_return(&update->own, value);
    else
        sumac_value_unref(value);
}

/* ---- with an update function by its name */

static enum sumac_status
apply(struct sumac_update_context *update, void *context, struct sumac_error *error)
{
    return sumac_update_apply(update, context, sumac_value_item(update->own.args, 0), error);
}

/* May what is applied to the components, each on its device, be applied to all at once? */
static bool
is_for_all(const struct sumac_variable *variable, const struct sumac_update_options *update)
{
    const struct sumac_value *gradient;

    if (update->function != apply || !variable->is_there)
        return false;
    gradient = sumac_value_item(update->args, 0);
    return !value_is_leaf_of_replicas(gradient) || (gradient->first == variable->strategy->first &&
                                                    gradient->count == variable->component_count);
}

static enum sumac_status update_components(
    struct sumac_variable *variable, const struct sumac_update_options *update,
    struct sumac_value **result, struct sumac_error *error)
{
    const uint32_t count = variable->component_count;

    if (is_for_all(variable, update)) {
        const enum sumac_status applied =
            write_apply(variable, NULL, update->context, sumac_value_item(update->args, 0), error);
        return applied != SUMAC_OK || result == NULL
                   ? applied
                   : value_give(sumac_value_none(), result, error);
    }
    struct sumac_update_context *calls = calloc(count, sizeof *calls);
    struct sumac_value *results[SUMAC_REPLICAS_MAX] = {NULL};
    enum sumac_status status = calls == NULL ? value_fail_for_memory(error) : SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++) {
        calls[i].component = &variable->components[i];
        status = call_function(&calls[i], update, &results[i], error);
    }
    if (status == SUMAC_OK && result != NULL)
        status = put_together(variable, !update->ungrouped, value_lend(results), result, error);
    value_unref_all(results, count);
    free(calls);
    return status;
}

/* ---- from within replicas */

struct merged {
    struct sumac_variable *variable;
    const struct sumac_update_options *update;
};

/* All replicas' args, regrouped: a list of args and kwargs. */
static enum sumac_status update_merged(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct merged *merged = context;
    struct sumac_update_options update = *merged->update;

    (void)strategy;
    update.args = sumac_value_item(args, 0);
    update.kwargs = sumac_value_item(args, 1);
    const enum sumac_status status = check_arguments(merged->variable, &update, error);
    return status == SUMAC_OK ? update_components(merged->variable, &update, result, error)
                              : status;
}

static enum sumac_status update_in_replica(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_update_options *update, struct sumac_value **result,
    struct sumac_error *error)
{
    struct merged merged = {.variable = variable, .update = update};
    struct label what;

    assert(replica->strategy == variable->strategy);
    struct sumac_value *const both[] = {
        update->args == NULL ? sumac_value_tuple(NULL, 0) : sumac_value_ref(update->args),
        update->kwargs == NULL ? sumac_value_dict(NULL, NULL, 0) : sumac_value_ref(update->kwargs)};
    struct sumac_value *args = NULL;
    struct sumac_error why;

    if (value_give(sumac_value_tuple(both, 2), &args, &why) != SUMAC_OK)
        return call_refuse(replica, CALL_MERGE, &why, error);
    label_init(&what);
    label_add(&what, variable->name);
    if (update->function == apply && update->context != NULL) {
        label_add(&what, " by ");
        variable_label_function(update->context, &what);
    } else if (update->ungrouped) {
        label_add(&what, ", not grouped");
    }
    const struct call call = {
        .kind = CALL_MERGE,
        .value = args,
        .function = update_merged,
        .context = &merged,
        .variable = variable,
        .name = what.text,
        .sum = what.sum,
        .by = (const void *)(uintptr_t)update->function};
    const enum sumac_status status = call_for_own(replica, &call, result, error);
    sumac_value_unref(args);
    return status;
}

enum sumac_status update_refuse(
    struct sumac_replica *replica, const struct sumac_error *why, struct sumac_error *error)
{
    assert(why->status != SUMAC_OK);
    return context_is_of(replica) ? call_refuse(replica, CALL_MERGE, why, error)
                                  : fail_again(error, why);
}

enum sumac_status sumac_variable_update(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_update_options *options, struct sumac_value **result,
    struct sumac_error *error)
{
    static const char call[] = "sumac_variable_update";
    const char *const null = variable == NULL            ? "variable"
                             : options == NULL           ? "options"
                             : options->function == NULL ? "options->function"
                                                         : NULL;
    struct sumac_error why;

    enum sumac_status status = null != NULL ? fail_for_null(&why, call, null)
                                            : variable_check_context(variable, replica, call, &why);
    if (status == SUMAC_OK)
        status = check_arguments(variable, options, &why);
    if (status != SUMAC_OK)
        return update_refuse(replica, &why, error);
    if (replica != NULL)
        return update_in_replica(variable, replica, options, result, error);
    struct sumac_strategy *const strategy = variable->strategy;
    strategy_begins(strategy);
    status = update_components(variable, options, result, error);
    strategy_returned(strategy);
    return status;
}

enum sumac_status sumac_variable_apply(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_function *function, const struct sumac_value *gradient,
    struct sumac_error *error)
{
    const char *const name = function != NULL && function->name != NULL ? function->name : "apply";
    struct sumac_value *args = NULL;
    struct sumac_error why;

    enum sumac_status status =
        variable == NULL || gradient == NULL
            ? fail_for_null(
                  &why, "sumac_variable_apply", variable == NULL ? "variable" : "gradient")
            : update_check_own(variable, replica, name, gradient, &why);
    if (status == SUMAC_OK)
        status = value_give(value_hold(SUMAC_VALUE_TUPLE, &gradient, 1, 0), &args, &why);
    if (status != SUMAC_OK)
        return update_refuse(replica, &why, error);
    const struct sumac_update_options update = {
        .function = apply, .context = (void *)(uintptr_t)function, .args = args};
    status = sumac_variable_update(variable, replica, &update, NULL, error);
    sumac_value_unref(args);
    return status;
}
