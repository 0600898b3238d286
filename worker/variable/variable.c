/* SPDX-License-Identifier: Apache-2.0 */
/* variable.c -- variables of a strategy: described, read, destroyed. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "function.h"
#include "on_device.h"

#define FUNCTION_BYTES_MAX 65536u /* of what is encoded of one, while it is read */

/* ---- contexts */

enum sumac_status variable_check_context(
    const struct sumac_variable *variable, const struct sumac_replica *replica, const char *call,
    struct sumac_error *error)
{
    assert(variable != NULL);
    if (replica == NULL)
        return context_check_cross(variable->strategy, call, error);
    if (!context_is_of(replica))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "%s of %s: called with the context of replica %" PRIu32
            ", outside of that replica's function",
            call, variable->name, replica->id);
    if (replica->strategy != variable->strategy)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "%s of %s: it is a variable of another strategy; strategies do not mix", call,
            variable->name);
    return SUMAC_OK;
}

struct component *
variable_component(struct sumac_variable *variable, const struct sumac_replica *replica)
{
    const uint32_t index = replica == NULL || variable->component_count == 1 ? 0 : replica->index;

    return &variable->components[index];
}

/* ---- functions */

enum sumac_status variable_find_function(
    const struct sumac_variable *variable, const struct sumac_function *given,
    const struct update_function **function, struct update_hyperparameters *hyperparameters,
    struct sumac_error *error)
{
    struct arena arena;
    wire_function *wire = NULL;

    arena_init(&arena, &memory_heap, FUNCTION_BYTES_MAX);
    *function = given->name == NULL ? NULL : functions_find(variable->strategy, given->name);
    enum sumac_status status = function_encode_row(*function, given, &arena, &wire, error);
    assert(status != SUMAC_OK || *function != NULL);
    const bool own = *function == variable->function;
    if (status == SUMAC_OK)
        status = update_check(
            *function, variable->function != NULL ? variable->function : *function, variable->dtype,
            variable->name, error);
    if (status == SUMAC_OK)
        status = update_hyperparameters_read(
            *function, own ? &variable->hyperparameters : NULL, wire, hyperparameters, error);
    if (status == SUMAC_OK)
        status = update_hyperparameters_check(*function, variable->dtype, hyperparameters, error);
    if (status == SUMAC_OK && own)
        status = update_check_slots(
            *function, &variable->hyperparameters, hyperparameters, variable->name, error);
    arena_deinit(&arena);
    return status;
}

void variable_label_function(const struct sumac_function *function, struct label *label)
{
    const struct sumac_schedule *schedule = function->schedule;

    label_add(label, function->name == NULL ? "its own" : function->name);
    for (uint32_t i = 0; i < SUMAC_HYPERPARAMETERS_MAX; i++) {
        const struct sumac_hyperparameter *given = &function->hyperparameters[i];
        if (function_place_is_free(function, i))
            continue;
        label_add(label, " ");
        label_add(label, given->name == NULL ? "" : given->name);
        label_print(label, " %.17g", given->value);
    }
    if (schedule != NULL)
        label_print(
            label, " schedule %d %" PRIu64 " %.17g %d %.17g %" PRIu64 " %.17g %" PRIu64,
            (int)schedule->kind, schedule->decay_steps, schedule->decay_rate, schedule->staircase,
            schedule->alpha, schedule->warmup_steps, schedule->warmup_target,
            schedule->first_version);
}

void sumac_variable_destroy(struct sumac_variable *variable)
{
    if (variable == NULL)
        return;
    for (uint32_t i = 0; variable->components != NULL && i < variable->component_count; i++) {
        struct storage *storage = variable->components[i].storage;
        assert(storage == NULL || storage->components > 0);
        if (storage != NULL && --storage->components == 0)
            storage_destroy(storage);
    }
    pthread_mutex_lock(&variable->strategy->creating);
    LIST_REMOVE(&variable->strategy->variables, variable, in_strategy);
    pthread_mutex_unlock(&variable->strategy->creating);
    free(variable->components);
    free(variable->remote);
    free(variable->shard_first);
    free(variable->name);
    pthread_mutex_destroy(&variable->mutex);
    free(variable);
}

/* ---- described */

const char *sumac_variable_name(const struct sumac_variable *variable)
{
    return variable == NULL ? NULL : variable->name;
}

enum sumac_dtype sumac_variable_dtype(const struct sumac_variable *variable)
{
    return variable == NULL ? SUMAC_DTYPE_UNSPECIFIED : variable->dtype;
}

struct sumac_shape sumac_variable_shape(const struct sumac_variable *variable)
{
    return variable == NULL ? (struct sumac_shape){.rank = 0} : variable->shape;
}

bool sumac_variable_trainable(const struct sumac_variable *variable)
{
    return variable != NULL && variable->trainable;
}

enum sumac_synchronization sumac_variable_synchronization(const struct sumac_variable *variable)
{
    return variable == NULL ? SUMAC_SYNCHRONIZATION_AUTO : variable->asked_for;
}

enum sumac_reduce_op sumac_variable_aggregation(const struct sumac_variable *variable)
{
    return variable == NULL ? SUMAC_REDUCE_NONE : variable->aggregation;
}

bool sumac_variable_created_in_scope(
    const struct sumac_strategy *strategy, const struct sumac_variable *variable)
{
    return strategy != NULL && variable != NULL && variable->strategy == strategy &&
           !variable->process_local;
}

/* ---- read */

enum sumac_status
component_value(struct component *component, struct sumac_value **value, struct sumac_error *error)
{
    if (component->variable->remote != NULL)
        return remote_read(component->variable, value, error);
    pthread_mutex_lock(&component->variable->mutex);
    *value = sumac_value_ref(component->storage->value);
    pthread_mutex_unlock(&component->variable->mutex);
    return SUMAC_OK;
}

/* A reference of each component's. */
static enum sumac_status component_values(
    struct sumac_variable *variable, struct sumac_value *values[SUMAC_REPLICAS_MAX],
    struct sumac_error *error)
{
    assert(variable->component_count <= SUMAC_REPLICAS_MAX);
    if (variable->remote != NULL)
        return remote_read(variable, &values[0], error);
    pthread_mutex_lock(&variable->mutex);
    for (uint32_t i = 0; i < variable->component_count; i++)
        values[i] = sumac_value_ref(variable->components[i].storage->value);
    pthread_mutex_unlock(&variable->mutex);
    return SUMAC_OK;
}

enum sumac_reduce_op aggregation_op(const struct sumac_variable *variable)
{
    return variable->aggregation == SUMAC_REDUCE_SUM    ? SUMAC_REDUCE_SUM
           : variable->aggregation == SUMAC_REDUCE_MEAN ? SUMAC_REDUCE_MEAN
                                                        : (enum sumac_reduce_op)0;
}

/* The components of all replicas in sync. */
static enum sumac_status
aggregate(struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error)
{
    struct sumac_value *own[SUMAC_REPLICAS_MAX], *all[SUMAC_REPLICAS_MAX];
    struct call call = {
        .kind = CALL_READ,
        .op = aggregation_op(variable),
        .variable = variable,
        .name = variable->name,
        .first_only = variable->aggregation == SUMAC_REDUCE_ONLY_FIRST_REPLICA};

    assert(variable->aggregation != SUMAC_REDUCE_NONE);
    assert(!variable->process_local);
    struct sumac_error why;
    enum sumac_status status = component_values(variable, own, &why);
    if (status != SUMAC_OK)
        return call_refuse_across(variable->strategy, CALL_READ, &why, error);
    call.value = own[0];
    status = call_hear_all(variable->strategy, &call, value_lend(own), NULL, all, error);
    if (status == SUMAC_OK && call.first_only)
        *value = sumac_value_ref(all[0]);
    else if (status == SUMAC_OK)
        status = collect_call(variable->strategy, &call, value_lend(all), value, error);
    call_forget_all(variable->strategy, all);
    value_unref_all(own, variable->component_count);
    return status;
}

/* Is it read across by what all components have? */
static bool is_aggregated(const struct sumac_variable *variable)
{
    assert(variable->synchronization != SUMAC_SYNCHRONIZATION_AUTO);
    return variable->synchronization == SUMAC_SYNCHRONIZATION_ON_READ && !variable->process_local &&
           variable->strategy->options.kind != SUMAC_STRATEGY_DEFAULT;
}

bool variable_reads_together(const struct sumac_variable *variable)
{
    return is_aggregated(variable) && variable->aggregation != SUMAC_REDUCE_NONE;
}

enum sumac_status variable_refuse_read(
    struct sumac_variable *variable, const struct sumac_replica *replica,
    const struct sumac_error *why, struct sumac_error *error)
{
    assert(why->status != SUMAC_OK);
    if (variable != NULL && replica == NULL && variable_reads_together(variable) &&
        context_check_cross(variable->strategy, "", NULL) == SUMAC_OK)
        return call_refuse_across(variable->strategy, CALL_READ, why, error);
    return fail_again(error, why);
}

enum sumac_status variable_read_across(
    struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error)
{
    const bool on_read = is_aggregated(variable);

    if (on_read && variable->aggregation == SUMAC_REDUCE_NONE)
        return fail_argument(
            error,
            "%s is ON_READ without an aggregation, and is read by replicas alone; create it with "
            "SUM, MEAN or ONLY_FIRST_REPLICA",
            variable->name);
    struct sumac_value *read = NULL;
    enum sumac_status status = on_read ? aggregate(variable, &read, error)
                                       : component_value(&variable->components[0], &read, error);
    if (status == SUMAC_OK)
        status = on_device_take_one(read, value, error); /* across, it is the host's */
    sumac_value_unref(read);
    return status;
}

enum sumac_status variable_place(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    enum sumac_status status, struct sumac_value **value, struct sumac_error *error)
{
    struct sumac_value *read = status == SUMAC_OK && value != NULL ? *value : NULL, *own = NULL;

    if (read == NULL || replica == NULL)
        return status;
    *value = NULL;
    enum sumac_status placed = value_own(read, &own, error);
    sumac_value_unref(read);
    if (placed == SUMAC_OK)
        placed = on_device_place_like(variable->strategy, replica->index, NULL, own, value, error);
    sumac_value_unref(own);
    return placed;
}

enum sumac_status sumac_variable_read(
    struct sumac_variable *variable, struct sumac_replica *replica, struct sumac_value **value,
    struct sumac_error *error)
{
    static const char call[] = "sumac_variable_read";

    struct sumac_error why;

    if (variable == NULL || value == NULL) {
        (void)fail_for_null(&why, call, variable == NULL ? "variable" : "value");
        return variable_refuse_read(variable, replica, &why, error);
    }
    const enum sumac_status status = variable_check_context(variable, replica, call, error);
    if (status != SUMAC_OK)
        return status;
    if (replica == NULL)
        return variable_read_across(variable, value, error);
    return variable_place(
        variable, replica, component_value(variable_component(variable, replica), value, error),
        value, error);
}

enum sumac_status variable_regroup(
    struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error)
{
    struct sumac_value *values[SUMAC_REPLICAS_MAX];

    enum sumac_status status = component_values(variable, values, error);
    if (status != SUMAC_OK)
        return status;
    status = value_regroup_as(
        SUMAC_VALUE_PER_REPLICA, value_lend(values), variable->component_count,
        variable->strategy->first, value, error);
    value_unref_all(values, variable->component_count);
    return status;
}

enum sumac_status sumac_variable_components(
    struct sumac_variable *variable, struct sumac_value **components, struct sumac_error *error)
{
    static const char call[] = "sumac_variable_components";

    if (variable == NULL || components == NULL)
        return fail_for_null(error, call, variable == NULL ? "variable" : "components");
    struct sumac_value *values[SUMAC_REPLICAS_MAX];
    const enum sumac_status status = component_values(variable, values, error);
    if (status != SUMAC_OK)
        return status;
    /* takes them */
    return value_give(sumac_value_tuple(values, variable->component_count), components, error);
}

/* ---- its slots */

/* Of names and tensors a dict, which takes the tensors. */
static struct sumac_value *component_slots(const struct component *component)
{
    const struct update_function *const function = component->variable->function;
    struct sumac_value **const slots = component->storage->slots;
    struct sumac_value *items[UPDATE_SLOTS_MAX];
    uint32_t count = 0;

    for (; count < UPDATE_SLOTS_MAX && slots[count] != NULL; count++)
        items[count] = sumac_value_ref(slots[count]);
    assert(count <= function->slot_count);
    return sumac_value_dict(function->slot_names, items, count);
}

enum sumac_status sumac_variable_slots(
    struct sumac_variable *variable, struct sumac_value **slots, struct sumac_error *error)
{
    static const char call[] = "sumac_variable_slots";

    if (variable == NULL || slots == NULL)
        return fail_for_null(error, call, variable == NULL ? "variable" : "slots");
    if (variable->remote != NULL)
        return remote_slots(variable, slots, error);
    struct sumac_value *dicts[SUMAC_REPLICAS_MAX];
    assert(variable->component_count <= SUMAC_REPLICAS_MAX);
    pthread_mutex_lock(&variable->mutex);
    for (uint32_t i = 0; i < variable->component_count; i++)
        dicts[i] = component_slots(&variable->components[i]);
    pthread_mutex_unlock(&variable->mutex);
    /* takes them */
    return value_give(sumac_value_tuple(dicts, variable->component_count), slots, error);
}
