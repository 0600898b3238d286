/* SPDX-License-Identifier: Apache-2.0 */
/* variable.h (worker/variable) -- what a strategy's variable is made of.
 *
 * The files:
 *   variable.c            read, describe, destroy.
 *   creation.c            create.
 *   write.c               writes, and how those of replicas are aggregated.
 *   update.c              a function of each component.
 *   all_variables.c       all variables in one call.
 *   storage.c             values and slots in this process, under lib/update's loops.
 *   storage_on_device.c   the same on devices with memory of their own.
 *   shards.c              a variable that is split.
 *   own_functions.c       the update functions of a strategy's variables.
 *   remote.c              a variable on the ps, of SUMAC_STRATEGY_PARAMETER_SERVER.
 */
#pragma once

#include <pthread.h>

#include "strategy.h"
#include "sumac/variable.h"
#include "update.h"

/* ---- storage.c: a value, and the slots beside it */

/* Components that are the same have one together, until one of them alone is written. */
struct storage {
    uint32_t components; /* that have it */
    uint64_t steps;      /* of a function that counts them */
    uint64_t version;    /* how often it was changed: what a schedule goes by */
    uint64_t kin;        /* on devices: those of one number have the same values */
    struct sumac_value *value;
    struct sumac_value *slots[UPDATE_SLOTS_MAX]; /* NULL: that many there are not */
};

struct component {
    struct sumac_variable *variable;
    uint32_t index;
    struct storage *storage; /* NULL: of a variable that is remote */
};

/* One call of an update's function. */
struct sumac_update_context {
    struct component *component;
    struct arguments own;
};

struct sumac_variable {
    struct sumac_strategy *strategy;
    LINKS(struct sumac_variable) in_strategy;
    char *name;
    enum sumac_dtype dtype;
    struct sumac_shape shape;
    enum sumac_synchronization asked_for, synchronization; /* …, and what it is */
    enum sumac_reduce_op aggregation;
    bool trainable, process_local;
    /* What its one component is, on the ps, which have its function, too: one variable, or of
     * uneven shards one for each; lent by the strategy's client. NULL: the components are of this
     * process.
     */
    struct sumac_client_variable **remote; /* (remote_count) */
    uint32_t remote_count;
    const struct update_function *function; /* its own, … */
    struct update_hyperparameters hyperparameters;
    uint32_t shard_count;  /* of one that is not remote, or uneven, … */
    uint64_t *shard_first; /* (shard_count + 1), … the first row of each, */
    bool uneven;           /* … and whether no partitioner makes such */
    uint32_t component_count;
    struct component *components; /* (component_count) */
    bool is_there;                /* … each with a storage of its own on its device */
    uint64_t kins;                /* numbers of these that were given */
    pthread_mutex_t mutex;        /* guards what the components have */
};

/* What is to be done to a value: a tensor of its type and shape is applied, or slices, whose rows
 * there are. */
struct change {
    const struct update_function *function;
    const struct update_hyperparameters *hyperparameters;
    const struct sumac_value *operand;
};

/* Gives  one that no component has yet, with a copy of `initial`, which is here. NULL: no memory.
 */
struct storage *
storage_create(const struct sumac_variable *variable, const struct sumac_value *initial);
void storage_destroy(struct storage *storage);
/* It has no value and no slots any more. */
void storage_release(struct storage *storage);

/* The variable's mutex is held. Do it to all components, or to this one (NULL: to all); nothing at
 * all where that fails.
 * Fails  RESOURCE_EXHAUSTED. */
enum sumac_status storage_change_here(
    struct sumac_variable *variable, struct component *only, const struct change *change,
    struct sumac_error *error);

/* The same to a storage that one component has, and whose values the host sees. `change` has no
 * rows that there are not. false: no memory. */
bool storage_change_alone(
    const struct sumac_variable *variable, struct storage *storage, const struct change *change);

/* What the change, by a tensor, of the storage's values is to lib/update. It writes to the value
 * and slots of `targets`: the storage's own, or new ones that take their place. A slot that is NULL
 * there is left alone, as are those after it. */
void storage_slice(
    const struct sumac_variable *variable, const struct storage *storage,
    const struct change *change, const struct storage *targets, struct update_slice *slice);

/* ---- storage_on_device.c: on the devices of the replicas */

/* A storage of component `index`, with what `here` has.
 * Gives *storage. Fails  RESOURCE_EXHAUSTED; as the device. */
enum sumac_status storage_on_device_create(
    struct sumac_variable *variable, uint32_t index, const struct storage *here,
    struct storage **storage, struct sumac_error *error);
/* As storage_change_here, wherever the variable is. On devices an operand may be mirrored. */
enum sumac_status storage_change(
    struct sumac_variable *variable, struct component *only, const struct change *change,
    struct sumac_error *error);

/* Is the operand a tensor of the variable's type and shape, or slices that fit?
 * Fails  INVALID_ARGUMENT, naming the variable, and what it is and is not. */
enum sumac_status operand_check(
    const struct sumac_variable *variable, const char *call, const struct sumac_value *operand,
    bool by_rows, struct sumac_error *error);

/* ---- remote.c: a value on the ps, and the slots beside it */

/* Create it there, or find it, with the function and the partitioner that are asked for:
 * variable->remote. Fails  as sumac_client_variable_create; as the device that has `initial`. */
enum sumac_status remote_create(
    struct sumac_variable *variable, const struct sumac_variable_options *asked,
    const struct sumac_value *initial, struct sumac_error *error);
/* What it is, with all that this process has changed before.
 * Gives  *value. Fails  as sumac_client_pull. */
enum sumac_status
remote_read(struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error);
/* A tuple of one dict, from the name of each slot to its tensor.
 * Gives  *slots. Fails  as sumac_client_variable_describe, sumac_client_pull. */
enum sumac_status remote_slots(
    struct sumac_variable *variable, struct sumac_value **slots, struct sumac_error *error);
/* Of all that are remote, in one pull; values[i] of the others is left NULL. */
enum sumac_status remote_read_all(
    struct sumac_variable *const *variables, uint32_t count, struct sumac_value **values,
    struct sumac_error *error);
/* Apply the function (NULL: its own) to each operand, as operand_check has them, one after the
 * other: to all of them, or none.
 * Fails  as sumac_client_push. */
enum sumac_status remote_change(
    struct sumac_variable *variable, const struct sumac_function *function,
    const struct sumac_value *const *operands, uint32_t count, struct sumac_error *error);

/* Each one's own function with its operand, of all that are remote, in one push: all, or none. */
enum sumac_status remote_change_all(
    struct sumac_variable *const *variables, const struct sumac_value *const *operands,
    uint32_t count, struct sumac_error *error);

/* ---- own_functions.c */

/* The table's, or the strategy's own. NULL: the name is unknown. */
const struct update_function *
functions_find(const struct sumac_strategy *strategy, const char *name);
/* Nobody has a variable of it any more. */
void functions_forget(struct sumac_strategy *strategy);

/* ---- shards.c */

/* Into shard_count shards, with what rows: variable->shard_first, which the caller frees.
 * Fails  INVALID_ARGUMENT, naming the variable; RESOURCE_EXHAUSTED. */
enum sumac_status shards_read(
    struct sumac_variable *variable, const struct sumac_variable_options *options,
    struct sumac_error *error);

/* ---- update.c */

/* Does what a replica of its own comes with fit the variable? Across the replicas, and of what is
 * distributed, it is looked at later. Fails  as operand_check. */
enum sumac_status update_check_own(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    const char *function, const struct sumac_value *gradient, struct sumac_error *error);
/* An update that cannot be made, for what it was called with: in a replica it is one that all make
 * together, and they all hear of it.
 * replica (NULL: across) Borrows  why. Fails  always. */
enum sumac_status update_refuse(
    struct sumac_replica *replica, const struct sumac_error *why, struct sumac_error *error);
/* No leaf is per_replica, unless it is known that all replicas have the same. Fails
 * INVALID_ARGUMENT, naming the variable and the leaf. */
enum sumac_status update_check_argument(
    struct sumac_variable *variable, const struct sumac_value *given, struct sumac_error *error);

/* ---- write.c */

/* What all replicas in sync write together: aggregated, and done. Gives *result (NULL: not wanted):
 * what each reads then. */
enum sumac_status write_together(
    struct sumac_variable *variable, enum sumac_write write,
    const struct sumac_value *const *values, struct sumac_value **result,
    struct sumac_error *error);

/* Apply the function (NULL: its own) to a component of one that is not remote. NULL: to all, each
 * by its own of the gradient, which is mirrored, or by that itself: it is the same for all. Fails
 * as sumac_update_apply. */
enum sumac_status write_apply(
    struct sumac_variable *variable, struct component *only, const struct sumac_function *function,
    const struct sumac_value *gradient, struct sumac_error *error);

/* ---- variable.c */

/* SUM or MEAN, if its aggregation is one of these; else 0. */
enum sumac_reduce_op aggregation_op(const struct sumac_variable *variable);

/* May this thread use the variable so: as that replica, or across them (NULL)?
 * Fails  FAILED_PRECONDITION. */
enum sumac_status variable_check_context(
    const struct sumac_variable *variable, const struct sumac_replica *replica, const char *call,
    struct sumac_error *error);
/* What tells one function, and what it is given, from another: "sgd learning_rate 0.5". */
void variable_label_function(const struct sumac_function *function, struct label *label);
/* Its first component, or the replica's. */
struct component *
variable_component(struct sumac_variable *variable, const struct sumac_replica *replica);
/* A reference of what the component has. Fails  of a remote one. */
enum sumac_status
component_value(struct component *component, struct sumac_value **value, struct sumac_error *error);
/* As a read across. */
enum sumac_status variable_read_across(
    struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error);
/* Make *value, which was read if `status` is OK, the replica's own, on its device. Across (NULL) it
 * stays as it is. Returns  `status`, or why not. */
enum sumac_status variable_place(
    const struct sumac_variable *variable, const struct sumac_replica *replica,
    enum sumac_status status, struct sumac_value **value, struct sumac_error *error);
/* Across, do all replicas read it together? */
bool variable_reads_together(const struct sumac_variable *variable);
/* A read that cannot be made, for what it was called with (or, of a write, for that): across, of
 * what all workers read together, they all hear of it; else the error is as it was.
 * variable (NULL: it is not known) Borrows  why. Fails  always. */
enum sumac_status variable_refuse_read(
    struct sumac_variable *variable, const struct sumac_replica *replica,
    const struct sumac_error *why, struct sumac_error *error);
/* What each component has, regrouped. */
enum sumac_status variable_regroup(
    struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error);

/* The function and hyperparameters of `given` for the variable.
 * Fails  INVALID_ARGUMENT, FAILED_PRECONDITION (MISSING_SLOTS). */
enum sumac_status variable_find_function(
    const struct sumac_variable *variable, const struct sumac_function *given,
    const struct update_function **function, struct update_hyperparameters *hyperparameters,
    struct sumac_error *error);
