/* SPDX-License-Identifier: Apache-2.0 */
/* write.c -- variables are written: by replicas together, by one of them, across them, or component
 * by component. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "axes.h"
#include "dtype.h"
#include "error.h"
#include "on_device.h"

/* ---- what there is */

static const struct {
    const char *name;
    const char *function; /* of lib/update's table */
    bool by_rows;
    bool is_linear; /* what replicas write can be added up first */
} writes[] = {
    [SUMAC_WRITE_ASSIGN] = {"assign", "assign", false, true},
    [SUMAC_WRITE_ASSIGN_ADD] = {"assign_add", "assign_add", false, true},
    [SUMAC_WRITE_ASSIGN_SUB] = {"assign_sub", "assign_sub", false, true},
    [SUMAC_WRITE_SCATTER_ADD] = {"scatter_add", "assign_add", true, true},
    [SUMAC_WRITE_SCATTER_SUB] = {"scatter_sub", "assign_sub", true, true},
    [SUMAC_WRITE_SCATTER_MUL] = {"scatter_mul", "multiply", true, true},
    [SUMAC_WRITE_SCATTER_DIV] = {"scatter_div", "divide", true, true},
    [SUMAC_WRITE_SCATTER_MIN] = {"scatter_min", "min", true, false},
    [SUMAC_WRITE_SCATTER_MAX] = {"scatter_max", "max", true, false},
    [SUMAC_WRITE_SCATTER_UPDATE] = {"scatter_update", "assign", true, false},
};
#define WRITES (sizeof writes / sizeof writes[0])

static bool is_write(enum sumac_write write)
{
    return (uint32_t)write < WRITES && writes[write].name != NULL;
}

const char *sumac_write_name(enum sumac_write write)
{
    return is_write(write) ? writes[write].name : NULL;
}

enum sumac_write sumac_write_parse(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < WRITES; i++)
        if (writes[i].name != NULL && strcmp(writes[i].name, name) == 0)
            return (enum sumac_write)i;
    return (enum sumac_write)0;
}

/* ---- done */

static const struct update_hyperparameters no_hyperparameters;

/* On the ps, one operand after the other; *result is what it then is. */
static enum sumac_status change_remote(
    struct sumac_variable *variable, enum sumac_write write,
    const struct sumac_value *const *operands, uint32_t count, struct sumac_value **result,
    struct sumac_error *error)
{
    const struct sumac_function function = {.name = writes[write].function};

    assert(variable->remote != NULL);
    const enum sumac_status status = remote_change(variable, &function, operands, count, error);
    return status == SUMAC_OK && result != NULL ? remote_read(variable, result, error) : status;
}

/* To all components, or to this one; *result is what `only`, or the first, then has. What the
 * replica has in its stream is waited for before the others have to wait, too. */
static enum sumac_status change_storage(
    struct sumac_variable *variable, struct component *only, const struct change *change,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct component *read = only != NULL ? only : &variable->components[0];
    enum sumac_status status = only != NULL && variable->strategy->on_device != NULL
                                   ? on_device_wait_present(variable->strategy, error)
                                   : SUMAC_OK;

    assert(variable->remote == NULL);
    if (status != SUMAC_OK)
        return status;
    pthread_mutex_lock(&variable->mutex);
    status = storage_change(variable, only, change, error);
    if (status == SUMAC_OK && result != NULL)
        *result = sumac_value_ref(read->storage->value);
    pthread_mutex_unlock(&variable->mutex);
    return status;
}

static enum sumac_status change(
    struct sumac_variable *variable, struct component *only, enum sumac_write write,
    const struct sumac_value *operand, struct sumac_value **result, struct sumac_error *error)
{
    const struct change change = {
        .function = update_find_by_name(writes[write].function),
        .hyperparameters = &no_hyperparameters,
        .operand = operand};

    assert(is_write(write));
    const enum sumac_status status =
        update_check(change.function, variable->function, variable->dtype, variable->name, error);
    if (status != SUMAC_OK)
        return status;
    return variable->remote != NULL ? change_remote(variable, write, &operand, 1, result, error)
                                    : change_storage(variable, only, &change, result, error);
}

/* ---- what the context allows */

/* Of one device, or of none: the components are one, and there is nothing to aggregate. */
static bool is_plain(const struct sumac_variable *variable)
{
    return variable->process_local || variable->strategy->options.kind == SUMAC_STRATEGY_DEFAULT ||
           variable->strategy->options.kind == SUMAC_STRATEGY_ONE_DEVICE;
}

static bool is_on_read(const struct sumac_variable *variable)
{
    return variable->synchronization == SUMAC_SYNCHRONIZATION_ON_READ;
}

static enum sumac_status fail_write(
    const struct sumac_variable *variable, enum sumac_write write, enum sumac_status status,
    const char *why, struct sumac_error *error)
{
    return fail(
        error, status, SUMAC_REASON_UNSUPPORTED, "%s of %s: %s", writes[write].name, variable->name,
        why);
}

/* Is an element 0, of whichever sign? The host sees them. */
static bool has_zero(const struct sumac_tensor *tensor)
{
    const uint8_t *const elements = sumac_tensor_data(tensor);
    const uint64_t bytes = sumac_tensor_bytes(tensor);
    const uint32_t each = dtype_bytes(tensor->dtype);
    const uint8_t sign = sumac_dtype_is_float(tensor->dtype) ? 0x80 : 0; /* of the last byte */

    assert(each > 0);
    for (uint64_t at = 0; at < bytes; at += each) {
        uint8_t bits = elements[at + each - 1] & (uint8_t)~sign;
        for (uint32_t i = 0; i + 1 < each; i++)
            bits |= elements[at + i];
        if (bits == 0)
            return true;
    }
    return false;
}

/* TensorFlow refuses to divide rows by 0, whatever their type. operand_check has passed. */
static enum sumac_status check_divisors(
    const struct sumac_variable *variable, enum sumac_write write,
    const struct sumac_value *operand, struct sumac_error *error)
{
    struct sumac_value *rows = NULL;

    if (write != SUMAC_WRITE_SCATTER_DIV)
        return SUMAC_OK;
    if (value_is_leaf_of_replicas(operand)) /* each replica's copy */
        operand = operand->items[0];
    assert(operand->kind == SUMAC_VALUE_INDEXED_SLICES);
    enum sumac_status status = value_bring_here(operand->items[0], &rows, error);
    if (status == SUMAC_OK && has_zero(&rows->tensor))
        status = fail_write(
            variable, write, SUMAC_INVALID_ARGUMENT,
            "updates must not contain 0; leave out the rows that are not to be divided", error);
    sumac_value_unref(rows);
    return status;
}

/* A ps is given the rows that each replica writes, one replica after the other. */
static bool is_handed_on(const struct sumac_variable *variable, enum sumac_write write)
{
    return variable->remote != NULL && writes[write].by_rows;
}

/* What the replicas write by rows, if that is not the ps' matter. */
static const char *refusal_of_rows(const struct sumac_variable *variable, enum sumac_write write)
{
    if (!writes[write].by_rows || is_handed_on(variable, write))
        return NULL;
    if (is_on_read(variable))
        return "an ON_READ variable is not written by rows, but in an update";
    return writes[write].is_linear || (int)aggregation_op(variable) == 0
               ? NULL
               : "what replicas write so has no sum and no mean; create it with aggregation NONE "
                 "or ONLY_FIRST_REPLICA";
}

static enum sumac_status check_replicas_write(
    const struct sumac_variable *variable, enum sumac_write write, struct sumac_error *error)
{
    if (is_on_read(variable) || is_handed_on(variable, write) ||
        variable->aggregation != SUMAC_REDUCE_NONE || variable->strategy->in_sync == 1)
        return SUMAC_OK;
    return fail_write(
        variable, write, SUMAC_FAILED_PRECONDITION,
        variable->remote != NULL
            ? "replicas write it without an aggregation, and it is one; create it with SUM, "
              "MEAN or ONLY_FIRST_REPLICA"
            : "replicas write it without an aggregation, and what each has would not be one "
              "variable; create it with SUM, MEAN or ONLY_FIRST_REPLICA, or with ON_READ",
        error);
}

static enum sumac_status check_across(
    const struct sumac_variable *variable, enum sumac_write write, bool reads,
    struct sumac_error *error)
{
    if (!is_on_read(variable))
        return SUMAC_OK;
    if (variable->aggregation == SUMAC_REDUCE_SUM && write != SUMAC_WRITE_ASSIGN)
        return fail_write(
            variable, write, SUMAC_INVALID_ARGUMENT,
            "the sum of an ON_READ variable is not changed across replicas but by assign", error);
    if (variable->aggregation == SUMAC_REDUCE_NONE && reads)
        return fail_write(
            variable, write, SUMAC_INVALID_ARGUMENT,
            "it is ON_READ without an aggregation, and is not read across replicas: pass no result",
            error);
    return SUMAC_OK;
}

/* ---- across */

/* Whole numbers ÷ R. false: one leaves a rest. A type too small for R has no multiple of it but 0.
 */
static bool divide_integers(const struct sumac_tensor *whole, uint32_t replicas, uint8_t *to)
{
    const enum sumac_dtype_kind kind = sumac_dtype_kind(whole->dtype);
    const uint8_t *const from = sumac_tensor_data(whole);
    const uint64_t bytes = sumac_tensor_bytes(whole);
    const uint32_t each = dtype_bytes(whole->dtype);
    const uint64_t sign = kind == SUMAC_KIND_INT ? UINT64_C(1) << (8 * each - 1) : 0;

    assert(replicas > 1);
    assert(replicas <= SUMAC_REPLICAS_MAX);
    if (kind != SUMAC_KIND_INT && kind != SUMAC_KIND_UINT)
        return false;
    for (uint64_t at = 0; at < bytes; at += each) {
        uint64_t number = 0;
        memcpy(&number, from + at, each); /* little-endian, as every machine that this runs on */
        const bool negative = (number & sign) != 0;
        const uint64_t size = negative ? sign - (number ^ sign) : number;
        if (size % replicas != 0)
            return false;
        number = negative ? -(size / replicas) : size / replicas;
        memcpy(to + at, &number, each);
    }
    return true;
}

/* What each component of a SUM is given, so that they add up to the operand, wherever that is. */
static enum sumac_status divide(
    const struct sumac_variable *variable, const struct sumac_value *operand,
    struct sumac_value **divided, struct sumac_error *error)
{
    const uint32_t replicas = variable->strategy->in_sync;
    const struct axes_reduction reduction = {.op = SUMAC_REDUCE_MEAN, .divisor = replicas};
    struct sumac_value *here = NULL, *made = NULL;
    void *elements;

    enum sumac_status status = on_device_take_one(operand, &here, error);
    if (status != SUMAC_OK)
        return status;
    const struct sumac_tensor *const whole = &here->tensor;
    if (update_can_divide(whole->dtype))
        status = axes_reduce(&reduction, &whole, 1, &made, error);
    else
        status =
            value_give(value_make_tensor(whole->dtype, &whole->shape, &elements), &made, error);
    if (status == SUMAC_OK && !update_can_divide(whole->dtype) &&
        !divide_integers(whole, replicas, elements))
        status = fail_argument(
            error,
            "assign of %s: the components of an ON_READ SUM of integers are the value ÷ %" PRIu32
            ", which leaves a rest",
            variable->name, replicas);
    sumac_value_unref(here);
    if (status == SUMAC_OK)
        *divided = made;
    else
        sumac_value_unref(made);
    return status;
}

static enum sumac_status write_across(
    struct sumac_variable *variable, enum sumac_write write, const struct sumac_value *operand,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *share = NULL;
    struct sumac_error why;
    enum sumac_status status = SUMAC_OK;

    if (!is_plain(variable) && is_on_read(variable) && variable->aggregation == SUMAC_REDUCE_SUM &&
        variable->strategy->in_sync > 1)
        status = divide(variable, operand, &share, &why);
    if (status == SUMAC_OK)
        status = change(variable, NULL, write, share != NULL ? share : operand, NULL, &why);
    sumac_value_unref(share);
    if (status == SUMAC_OK)
        return result != NULL ? variable_read_across(variable, result, error) : SUMAC_OK;
    return result != NULL ? variable_refuse_read(variable, NULL, &why, error)
                          : fail_again(error, &why);
}

/* ---- by replicas */

/* What is written for all: their sum or mean, or what the first has. */
static enum sumac_status aggregate(
    const struct sumac_variable *variable, enum sumac_write write,
    const struct sumac_value *const *values, struct sumac_value **operand,
    struct sumac_error *error)
{
    const struct call call = {.kind = CALL_WRITE, .op = aggregation_op(variable)};

    if ((int)call.op != 0)
        return collect_call(variable->strategy, &call, values, operand, error);
    if (write == SUMAC_WRITE_ASSIGN) /* each component may keep what it is given */
        return collect_first(variable->strategy, values, operand, error);
    *operand = sumac_value_ref(values[0]);
    return SUMAC_OK;
}

enum sumac_status write_together(
    struct sumac_variable *variable, enum sumac_write write,
    const struct sumac_value *const *values, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *operand = NULL;

    assert(!is_on_read(variable));
    enum sumac_status status =
        is_handed_on(variable, write)
            ? change_remote(variable, write, values, variable->strategy->replicas, NULL, error)
            : aggregate(variable, write, values, &operand, error);
    if (status == SUMAC_OK && operand != NULL) /* a small number ÷ R may be 0 */
        status = check_divisors(variable, write, operand, error);
    if (status == SUMAC_OK && operand != NULL)
        status = change(variable, NULL, write, operand, NULL, error);
    sumac_value_unref(operand);
    return status == SUMAC_OK && result != NULL ? variable_regroup(variable, result, error)
                                                : status;
}

static enum sumac_status write_with_others(
    struct sumac_variable *variable, struct sumac_replica *replica, enum sumac_write write,
    const struct sumac_value *operand, struct sumac_value **result, struct sumac_error *error)
{
    const struct call call = {
        .kind = CALL_WRITE,
        .value = operand,
        .op = aggregation_op(variable),
        .variable = variable,
        .name = variable->name,
        .write = (int)write,
        .reads = result != NULL,
        .first_only = variable->aggregation == SUMAC_REDUCE_ONLY_FIRST_REPLICA};

    return call_for_own(replica, &call, result, error);
}

/* Do all replicas write it together? */
static bool is_together(const struct sumac_variable *variable)
{
    assert(variable->strategy->in_sync > 0);
    return !is_plain(variable) && !is_on_read(variable) && variable->strategy->in_sync > 1;
}

/* ---- public */

static enum sumac_status check_allowed(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    enum sumac_write write, bool reads, struct sumac_error *error)
{
    const char *const why =
        variable->uneven && writes[write].by_rows
            ? "its shards are not those that a partitioner makes; write it as a whole"
        : is_plain(variable) ? NULL
                             : refusal_of_rows(variable, write);

    if (why != NULL)
        return fail_write(variable, write, SUMAC_UNIMPLEMENTED, why, error);
    if (is_plain(variable))
        return SUMAC_OK;
    return replica == NULL ? check_across(variable, write, reads, error)
                           : check_replicas_write(variable, write, error);
}

static enum sumac_status check_operand(
    const struct sumac_variable *variable, enum sumac_write write,
    const struct sumac_value *operand, struct sumac_error *error)
{
    const enum sumac_status status =
        operand_check(variable, writes[write].name, operand, writes[write].by_rows, error);

    return status == SUMAC_OK ? check_divisors(variable, write, operand, error) : status;
}

/* Has each component a copy of its own of the operand, on its device? */
static bool is_each_ones(const struct sumac_variable *variable, const struct sumac_value *value)
{
    return variable->is_there && value_is_leaf_of_replicas(value) &&
           value_are_alike(value_lend(value->items), value->count) &&
           value->count == variable->component_count;
}

/* Across, a value that is the same in all replicas is what the first has; lent. */
static enum sumac_status read_operand(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    enum sumac_write write, const struct sumac_value *value, const struct sumac_value **operand,
    struct sumac_error *error)
{
    const bool across = replica == NULL;
    const bool same = across && value_is_same_in_replicas(value);
    const struct sumac_value *one = same ? value->items[0] : value;

    assert(is_write(write));
    *operand = is_each_ones(variable, value) ? value : one;
    if (value->kind == SUMAC_VALUE_PER_REPLICA && !same)
        return fail_write(
            variable, write, SUMAC_INVALID_ARGUMENT,
            across ? "a per_replica value is not written across replicas, for what each has would "
                     "not be one variable; reduce it, or write in the replicas"
                   : "a per_replica value, in a replica; pass it to the run, which gives each "
                     "replica its own",
            error);
    return check_operand(variable, write, one, error);
}

static enum sumac_status check_write(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    enum sumac_write write, const struct sumac_value *value, bool reads, struct sumac_error *error)
{
    static const char call[] = "sumac_variable_write";

    if (variable == NULL || value == NULL)
        return fail_for_null(error, call, variable == NULL ? "variable" : "value");
    if (!is_write(write))
        return fail_argument(
            error, "%s: %d is no way to write; there are 1 (assign) to %d (scatter_update)", call,
            (int)write, (int)WRITES - 1);
    const enum sumac_status status = variable_check_context(variable, replica, call, error);
    return status == SUMAC_OK ? check_allowed(variable, replica, write, reads, error) : status;
}

/* A replica that cannot make it: of a variable that all write together they all hear of it, and of
 * what is none of this strategy's, which may have been to be one. Workers that cannot write across
 * do not read what comes of it. */
static enum sumac_status refuse_write(
    struct sumac_variable *variable, struct sumac_replica *replica, bool reads,
    const struct sumac_error *why, struct sumac_error *error)
{
    assert(why->status != SUMAC_OK);
    if (replica == NULL && reads)
        return variable_refuse_read(variable, NULL, why, error);
    if (context_is_of(replica) &&
        (variable == NULL || variable->strategy != replica->strategy || is_together(variable)))
        return call_refuse(replica, CALL_WRITE, why, error);
    return fail_again(error, why);
}

enum sumac_status sumac_variable_write(
    struct sumac_variable *variable, struct sumac_replica *replica, enum sumac_write write,
    const struct sumac_value *value, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_value *operand;
    struct sumac_error why;

    enum sumac_status status = check_write(variable, replica, write, value, result != NULL, &why);
    if (status == SUMAC_OK)
        status = read_operand(variable, replica, write, value, &operand, &why);
    if (status != SUMAC_OK)
        return refuse_write(variable, replica, result != NULL, &why, error);
    if (replica == NULL)
        return write_across(variable, write, operand, result, error);
    struct component *const own = variable_component(variable, replica);
    status = is_together(variable)
                 ? write_with_others(variable, replica, write, operand, result, error)
                 : change(variable, own, write, operand, result, error);
    return variable_place(variable, replica, status, result, error);
}

enum sumac_status sumac_variable_assign(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_write(variable, replica, SUMAC_WRITE_ASSIGN, value, result, error);
}

enum sumac_status sumac_variable_assign_add(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_write(variable, replica, SUMAC_WRITE_ASSIGN_ADD, value, result, error);
}

enum sumac_status sumac_variable_assign_sub(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_write(variable, replica, SUMAC_WRITE_ASSIGN_SUB, value, result, error);
}

/* ---- in an update */

static enum sumac_status check_update(
    const struct sumac_update_context *update, const char *call, const char *given,
    const void *value, struct sumac_error *error)
{
    const struct context *present = context_present();

    if (update == NULL || value == NULL)
        return fail_for_null(error, call, update == NULL ? "update" : given);
    if (present->kind == CONTEXT_UPDATE && present->update == update)
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "%s: called outside of this update; sumac_variable_update lends it to its function, until "
        "that returns",
        call);
}

/* Components that are the same are one value, of which each is given a copy. Takes  value. */
static enum sumac_status give_own(
    enum sumac_status status, struct sumac_value *value, struct sumac_value **own,
    struct sumac_error *error)
{
    if (status == SUMAC_OK)
        status = value_own(value, own, error);
    sumac_value_unref(value);
    return status;
}

enum sumac_status sumac_update_read(
    struct sumac_update_context *update, struct sumac_value **value, struct sumac_error *error)
{
    struct sumac_value *read = NULL;
    enum sumac_status status = check_update(update, "sumac_update_read", "value", value, error);

    if (status == SUMAC_OK)
        status = component_value(update->component, &read, error);
    return give_own(status, read, value, error);
}

enum sumac_status sumac_update_write(
    struct sumac_update_context *update, enum sumac_write write, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    static const char call[] = "sumac_update_write";

    enum sumac_status status = check_update(update, call, "value", value, error);
    if (status == SUMAC_OK && !is_write(write))
        return fail_argument(error, "%s: no such way to write: %d", call, (int)write);
    if (status == SUMAC_OK)
        status = check_operand(update->component->variable, write, value, error);
    struct sumac_value *changed = NULL;
    if (status == SUMAC_OK)
        status = change(
            update->component->variable, update->component, write, value,
            result == NULL ? NULL : &changed, error);
    return result == NULL ? status : give_own(status, changed, result, error);
}

/* Which functions there are, and what they take, the ps knows. */
static enum sumac_status apply_remote(
    struct sumac_variable *variable, const struct sumac_function *function,
    const struct sumac_value *gradient, struct sumac_error *error)
{
    const char *const name = function != NULL && function->name != NULL ? function->name : "apply";

    const enum sumac_status status = operand_check(
        variable, name, gradient, gradient->kind == SUMAC_VALUE_INDEXED_SLICES, error);
    return status == SUMAC_OK ? remote_change(variable, function, &gradient, 1, error) : status;
}

/* Of a mirrored one each item is looked at. */
static enum sumac_status check_gradient(
    const struct sumac_variable *variable, const char *call, const struct sumac_value *gradient,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    if (!value_is_leaf_of_replicas(gradient))
        return operand_check(
            variable, call, gradient, gradient->kind == SUMAC_VALUE_INDEXED_SLICES, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < gradient->count; i++)
        status = check_gradient(variable, call, gradient->items[i], error);
    return status;
}

enum sumac_status write_apply(
    struct sumac_variable *variable, struct component *only, const struct sumac_function *function,
    const struct sumac_value *gradient, struct sumac_error *error)
{
    struct update_hyperparameters hyperparameters = variable->hyperparameters;
    struct change change = {
        .function = variable->function, .hyperparameters = &hyperparameters, .operand = gradient};
    enum sumac_status status = SUMAC_OK;

    assert(variable->remote == NULL);
    if (function != NULL)
        status =
            variable_find_function(variable, function, &change.function, &hyperparameters, error);
    if (status == SUMAC_OK)
        status = check_gradient(variable, change.function->name, gradient, error);
    return status == SUMAC_OK ? change_storage(variable, only, &change, NULL, error) : status;
}

enum sumac_status sumac_update_apply(
    struct sumac_update_context *update, const struct sumac_function *function,
    const struct sumac_value *gradient, struct sumac_error *error)
{
    const enum sumac_status status =
        check_update(update, "sumac_update_apply", "gradient", gradient, error);

    if (status != SUMAC_OK)
        return status;
    struct component *const component = update->component;
    return component->variable->remote != NULL
               ? apply_remote(component->variable, function, gradient, error)
               : write_apply(component->variable, component, function, gradient, error);
}
