/* SPDX-License-Identifier: Apache-2.0 */
/* creation.c -- variables are created: across the replicas, or within the replicas' function. There
 * all replicas stand in one call: their options are compared, and the last replica to come creates
 * the variable across them. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "on_device.h"
#include "text.h"

#define NAME_BYTES_MAX 1024u

/* ---- options */

static enum sumac_status
check_name(const struct sumac_variable_options *options, struct sumac_error *error)
{
    const size_t bytes = options->name == NULL ? 0 : strnlen(options->name, NAME_BYTES_MAX + 1);

    if (bytes > 0 && bytes <= NAME_BYTES_MAX && text_is_utf8(options->name, bytes) &&
        !text_has_control(options->name, bytes))
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_BAD_NAME,
        "a variable's name is %s; it is UTF-8 of 1 to %u bytes, without control characters",
        options->name == NULL    ? "NULL"
        : bytes == 0             ? "empty"
        : bytes > NAME_BYTES_MAX ? "longer"
                                 : "none",
        NAME_BYTES_MAX);
}

static const struct sumac_value *initial_of(const struct sumac_variable_options *options)
{
    const struct sumac_value *initial = options->initial;

    if (initial != NULL && value_is_leaf_of_replicas(initial))
        initial = initial->items[0];
    return initial != NULL && initial->kind == SUMAC_VALUE_TENSOR ? initial : NULL;
}

/* Without a value it begins with zeros, if it is known of what. */
static bool is_zeros(const struct sumac_variable_options *options)
{
    return options->initial == NULL && (options->shape.rank > 0 || (int)options->dtype != 0);
}

static enum sumac_status check_options(
    const struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_error *error)
{
    const struct sumac_value *initial = initial_of(options);

    if (check_name(options, error) != SUMAC_OK)
        return SUMAC_INVALID_ARGUMENT;
    const enum sumac_strategy_kind kind = strategy->options.kind;
    const char *const why =
        initial == NULL && is_zeros(options)
            ? "shape and dtype are those of no tensor, or there is no memory for its zeros"
        : initial == NULL ? "initial is no tensor, nor per_replica tensors"
        : options->colocate_with != NULL &&
                !sumac_variable_created_in_scope(strategy, options->colocate_with)
            ? "colocate_with is a variable that was not created in this strategy's scope"
        : (uint32_t)options->synchronization > SUMAC_SYNCHRONIZATION_ON_READ
            ? "no such synchronization: AUTO, ON_WRITE or ON_READ"
        : options->synchronization == SUMAC_SYNCHRONIZATION_NONE &&
                kind != SUMAC_STRATEGY_DEFAULT && kind != SUMAC_STRATEGY_PARAMETER_SERVER
            ? "synchronization NONE: what replicas have of it would not be one variable; ON_WRITE, "
              "or ON_READ"
        : (uint32_t)options->aggregation > SUMAC_REDUCE_ONLY_FIRST_REPLICA
            ? "no such aggregation: NONE, SUM, MEAN or ONLY_FIRST_REPLICA"
        : (uint32_t)options->trainable > SUMAC_TRAINABLE_YES
            ? "trainable is neither DEFAULT, NO nor YES"
        : options->aggregation != SUMAC_REDUCE_MEAN || update_can_divide(initial->tensor.dtype)
            ? NULL
        : initial->tensor.dtype >= SUMAC_INT8 && initial->tensor.dtype <= SUMAC_UINT64
            ? "aggregation MEAN of integers, which would lose what it rounds; SUM, or a float type"
            : "aggregation MEAN of a type that is not divided";
    return why == NULL ? SUMAC_OK : fail_argument(error, "variable %.200s: %s", options->name, why);
}

/* ---- created */

/* The function that it is created with, and whose slots it has: the table's, or a ps knows it. */
static enum sumac_status make_function(
    struct sumac_variable *variable, const struct sumac_function *given, struct sumac_error *error)
{
    const struct sumac_function assign = {.name = "assign"};
    const struct update_function *function;

    assert(variable->function == NULL);
    const enum sumac_status status = variable_find_function(
        variable, given->name == NULL ? &assign : given, &function, &variable->hyperparameters,
        error);
    if (status == SUMAC_OK)
        variable->function = function;
    return status;
}

static bool is_remote(const struct sumac_variable *variable)
{
    return variable->strategy->options.kind == SUMAC_STRATEGY_PARAMETER_SERVER &&
           !variable->process_local;
}

/* Of devices each gets a storage of its own. */
static enum sumac_status make_components(
    struct sumac_variable *variable, const struct sumac_value *initial, struct sumac_error *error)
{
    struct storage *here = variable->remote == NULL ? storage_create(variable, initial) : NULL;
    enum sumac_status status = SUMAC_OK;

    assert(variable->component_count > 0);
    variable->components = calloc(variable->component_count, sizeof *variable->components);
    if ((here == NULL && variable->remote == NULL) || variable->components == NULL)
        status = value_fail_for_memory(error);
    for (uint32_t i = 0; status == SUMAC_OK && i < variable->component_count; i++) {
        struct component *const component = &variable->components[i];
        *component = (struct component){.variable = variable, .index = i};
        if (variable->is_there) {
            status = storage_on_device_create(variable, i, here, &component->storage, error);
        } else if (here != NULL) {
            component->storage = here;
            here->components++;
        }
    }
    if (here != NULL && here->components == 0)
        storage_destroy(here);
    return status;
}

static void describe(
    struct sumac_variable *variable, const struct sumac_variable_options *options,
    const struct sumac_value *initial)
{
    assert(initial->kind == SUMAC_VALUE_TENSOR);
    assert(options->synchronization <= SUMAC_SYNCHRONIZATION_ON_READ);
    variable->dtype = initial->tensor.dtype;
    variable->shape = initial->tensor.shape;
    variable->asked_for = options->synchronization == SUMAC_SYNCHRONIZATION_AUTO
                              ? SUMAC_SYNCHRONIZATION_ON_WRITE
                              : options->synchronization;
    variable->aggregation = options->aggregation;
    variable->trainable = options->trainable == SUMAC_TRAINABLE_DEFAULT
                              ? variable->asked_for != SUMAC_SYNCHRONIZATION_ON_READ
                              : options->trainable == SUMAC_TRAINABLE_YES;
    variable->process_local = options->process_local;
    /* on the ps it is one for all, whatever was asked for */
    const bool one = options->process_local || is_remote(variable);
    variable->component_count = one ? 1 : variable->strategy->replicas;
    variable->is_there = variable->strategy->on_device != NULL && !one;
    variable->synchronization =
        is_remote(variable) ? SUMAC_SYNCHRONIZATION_ON_WRITE : variable->asked_for;
}

/* What it is described by, without its shards. */
static void label_description(
    const struct sumac_variable *variable, const struct sumac_variable_options *options,
    struct label *label)
{
    static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
    const struct sumac_function assign = {.name = "assign"};
    char shape[96];

    label_init(label);
    label_add(label, options->name);
    label_print(
        label, ", %s%s, %s %s%s, ", sumac_dtype_name(variable->dtype),
        sumac_shape_print(&variable->shape, shape, sizeof shape),
        variable->synchronization == SUMAC_SYNCHRONIZATION_ON_READ ? "ON_READ" : "ON_WRITE",
        aggregations[variable->aggregation], variable->trainable ? "" : ", not trainable");
    variable_label_function(options->function.name != NULL ? &options->function : &assign, label);
}

/* How it is created, which is the same in all workers. */
static void label_creation(
    const struct sumac_variable *variable, const struct sumac_variable_options *options,
    struct label *label)
{
    const uint64_t *const first = variable->shard_first;

    assert(variable->shard_count > 0);
    label_description(variable, options, label);
    if (variable->shard_count == 1)
        return;
    label_print(label, ", %" PRIu32 " shards, of", variable->shard_count);
    for (uint32_t i = 0; i < variable->shard_count; i++)
        label_print(label, " %" PRIu64, first[i + 1] - first[i]);
    label_add(label, " rows");
}

static void label_options(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct label *label)
{
    const struct sumac_partitioner *const rule = &options->partitioner;
    struct sumac_variable described = {.strategy = strategy};

    describe(&described, options, initial_of(options));
    label_description(&described, options, label);
    if (rule->kind != SUMAC_PARTITIONER_NONE)
        label_print(
            label, ", partitioner %d of %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
            (int)rule->kind, rule->num_shards, rule->min_shard_bytes, rule->max_shards,
            rule->max_shard_bytes);
    for (uint32_t i = 0; options->shard_rows != NULL && i < options->shard_count; i++)
        label_print(label, "%s %" PRIu64, i == 0 ? ", shards of" : "", options->shard_rows[i]);
    if (options->colocate_with != NULL) {
        label_add(label, ", beside ");
        label_add(label, options->colocate_with->name);
    }
}

/* Do the other workers create it with this one? */
static bool
is_all_workers(const struct sumac_strategy *strategy, const struct sumac_variable_options *options)
{
    assert(strategy != NULL);
    return strategy->peers != NULL && (options == NULL || !options->process_local);
}

/* What all components begin with: what the first replica of all has. Gives *initial, here. */
static enum sumac_status take_first_initial(
    struct sumac_variable *variable, const struct sumac_variable_options *options,
    struct sumac_value **initial, struct sumac_error *error)
{
    struct sumac_strategy *strategy = variable->strategy;
    const struct sumac_value *own = initial_of(options);
    struct sumac_value *all[SUMAC_REPLICAS_MAX];
    struct label created;
    const struct sumac_value *same[SUMAC_REPLICAS_MAX];
    struct call call = {
        .kind = CALL_CREATE, .value = own, .name = created.text, .first_only = true};

    assert(own != NULL);
    if (!is_all_workers(strategy, options))
        return value_bring_here(own, initial, error);
    label_creation(variable, options, &created);
    call.sum = created.sum;
    for (uint32_t i = 0; i < strategy->replicas; i++)
        same[i] = own;
    const enum sumac_status status = call_hear_all(strategy, &call, same, NULL, all, error);
    if (status == SUMAC_OK)
        *initial = sumac_value_ref(all[0]);
    call_forget_all(strategy, all);
    return status;
}

/* One without components yet, of which there is what can be without the other workers.
 * Gives    *variable, whose destruction is its caller's also where this fails; NULL: no memory. */
static enum sumac_status prepare(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    struct sumac_variable *made = calloc(1, sizeof *made);

    assert(*variable == NULL);
    if (made == NULL)
        return value_fail_for_memory(error);
    *variable = made;
    pthread_mutex_init(&made->mutex, NULL);
    made->strategy = strategy;
    pthread_mutex_lock(&strategy->creating);
    LIST_APPEND(&strategy->variables, made, in_strategy);
    pthread_mutex_unlock(&strategy->creating);
    made->name = strdup(options->name);
    describe(made, options, initial_of(options));
    enum sumac_status status = made->name == NULL ? value_fail_for_memory(error) : SUMAC_OK;
    if (status == SUMAC_OK &&
        (!is_remote(made) || options->shard_count > 0 || options->shard_rows != NULL))
        status = shards_read(made, options, error);
    if (status == SUMAC_OK)
        status = is_remote(made) ? remote_create(made, options, initial_of(options), error)
                                 : make_function(made, &options->function, error);
    return status;
}

/* ---- within the replicas' function */

/* One replica's part of the call, while the replica waits. */
struct creation {
    const struct sumac_variable_options *options;
    struct sumac_variable *made;
};

/* What replica 0 asks for; what the others propose was compared with that. */
static enum sumac_status create_merged(
    struct sumac_strategy *strategy, const struct sumac_value *proposals, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_variable_options options = *((const struct creation *)context)->options;
    struct sumac_variable *made = NULL;

    (void)proposals, (void)result;
    options.replica = NULL;
    const enum sumac_status status = sumac_variable_create(strategy, &options, &made, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++)
        ((struct creation *)strategy->calls.made[i]->context)->made = made;
    return status;
}

static enum sumac_status check_creation(
    const struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    if (variable == NULL)
        return fail_for_null(error, "sumac_variable_create", "variable");
    if (options->process_local)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "variable %.200s: it is process_local, and no variable of the replicas; create it "
            "outside of their function",
            options->name == NULL ? "without a name" : options->name);
    return check_options(strategy, options, error);
}

static enum sumac_status create_in_replica(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    struct sumac_replica *const replica = options->replica;
    struct creation creation = {.options = options};
    struct sumac_error why;
    struct label label;

    if (!context_is_of(replica) || replica->strategy != strategy)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "sumac_variable_create: options->replica is %s; set it to the context that the "
            "replica's function is given, and elsewhere to NULL",
            replica == NULL ? "NULL" : "not the context of this replica of the strategy");
    if (check_creation(strategy, options, variable, &why) != SUMAC_OK)
        return call_refuse(replica, CALL_CREATE, &why, error);
    label_options(strategy, options, &label);
    const struct call call = {
        .kind = CALL_CREATE,
        .value = initial_of(options),
        .function = create_merged,
        .context = &creation,
        .name = label.text,
        .sum = label.sum};
    const enum sumac_status status = call_for_own(replica, &call, NULL, error);
    if (status == SUMAC_OK) {
        assert(creation.made != NULL);
        *variable = creation.made;
    }
    return status;
}

/* ---- across the replicas */

static enum sumac_status create(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    static const char call[] = "sumac_variable_create";
    struct sumac_value *initial = NULL;
    struct sumac_variable *made = NULL;
    struct sumac_error why;

    if (strategy == NULL)
        return fail_for_null(error, call, "strategy");
    if (options != NULL && (options->replica != NULL || context_present()->kind == CONTEXT_REPLICA))
        return create_in_replica(strategy, options, variable, error);
    enum sumac_status status = context_check_cross(strategy, call, error);
    if (status != SUMAC_OK)
        return status;
    if (options == NULL || variable == NULL)
        status = fail_for_null(&why, call, options == NULL ? "options" : "variable");
    if (status == SUMAC_OK)
        status = check_options(strategy, options, &why);
    if (status == SUMAC_OK)
        status = prepare(strategy, options, &made, &why);
    if (status != SUMAC_OK && is_all_workers(strategy, options))
        status = call_refuse_across(strategy, CALL_CREATE, &why, &why);
    else if (status == SUMAC_OK && made->remote == NULL)
        status = take_first_initial(made, options, &initial, &why);
    if (status == SUMAC_OK)
        status = make_components(made, initial, &why);
    sumac_value_unref(initial);
    if (status == SUMAC_OK) {
        *variable = made;
        return SUMAC_OK;
    }
    sumac_variable_destroy(made);
    return fail_again(error, &why);
}

enum sumac_status sumac_variable_create(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    if (options == NULL || !is_zeros(options))
        return create(strategy, options, variable, error);
    struct sumac_variable_options own = *options;
    struct sumac_value *zeros =
        sumac_value_tensor((int)own.dtype == 0 ? SUMAC_FLOAT32 : own.dtype, own.shape, NULL);
    own.initial = zeros;
    const enum sumac_status status = create(strategy, &own, variable, error);
    sumac_value_unref(zeros);
    return status;
}
