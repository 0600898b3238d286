/* SPDX-License-Identifier: Apache-2.0 */
/* variable.h -- variables of a strategy: tf.distribute.DistributedVariable.
 *
 *     sumac_variable_create     a variable, in each replica a component of it
 *     sumac_variable_read …     what it is, as the context sees it
 *     sumac_variable_assign …   written: by all replicas together, or across them
 *     sumac_variable_update     a function of each component: StrategyExtended.update
 *       sumac_update_…             what that function asks of its context
 *     sumac_variable_destroy
 *
 * What a call means depends on where it is made. In a replica's function it is given the replica's
 * context; NULL means across the replicas, as in a scope or a merge_call.
 *
 *                     synchronization ON_WRITE              synchronization ON_READ
 *     replica reads   its component                         its component
 *     replica writes  with all others: what they write is   its component
 *                     aggregated, and is every component's
 *     across, reads   the first component                   the components, aggregated
 *     across, writes  every component, the same             assign: every component, with SUM ÷ R
 *     update          component by component                component by component
 *
 * Of PARAMETER_SERVER it is one variable on the ps, for all workers, whatever the synchronization:
 * as ON_WRITE with one component. Aggregation is of this worker's replicas, whose rows are handed
 * on as they are, one replica after the other. A read pulls, a write is a push that is waited for:
 * others may write before it is read again. Whoever creates it first assigns it.
 *
 * Aggregation of what replicas write, or read across: SUM and MEAN, as all_reduce; that of replica
 * 0, ONLY_FIRST_REPLICA; or NONE. With NONE, several replicas cannot write together
 * (FAILED_PRECONDITION), and an ON_READ variable cannot be read across (INVALID_ARGUMENT). It is
 * the operands that are aggregated: assign_add with MEAN adds their mean, once. By rows (scatter)
 * SUM and MEAN have add, sub, mul and div, of the rows of all replicas one after the other, MEAN ÷
 * R; the others are UNIMPLEMENTED. ON_READ has no scatter (UNIMPLEMENTED) but in an update.
 *
 * A call that fails has changed nothing. One exception: a push that ends with DEADLINE_EXCEEDED,
 * because a ps is lost or silent, goes on, and later reads see its result.
 *
 * Threads  any: each call is atomic to each component.
 */
#ifndef SUMAC_VARIABLE_H
#define SUMAC_VARIABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/client.h"
#include "sumac/strategy.h"
#include "sumac/value.h"

struct sumac_variable;
struct sumac_update_context; /* one call of an update's function, for one component */

enum sumac_trainable {
    SUMAC_TRAINABLE_DEFAULT = 0, /* unless ON_READ */
    SUMAC_TRAINABLE_NO = 1,
    SUMAC_TRAINABLE_YES = 2,
};

struct sumac_variable_options {
    /* UTF-8, 1 to 1024 bytes, no control characters; on the ps not ending in /part_ and digits */
    const char *name;
    /* A tensor; or per_replica, what each replica proposes: that of the first is every component's.
     * Borrowed. NULL: zeros of `shape` and `dtype`, which count only then; one of both is set */
    const struct sumac_value *initial;
    struct sumac_shape shape;                   /* zeroed: a scalar */
    enum sumac_dtype dtype;                     /* 0: float32 */
    enum sumac_synchronization synchronization; /* AUTO is ON_WRITE; NONE is refused */
    enum sumac_reduce_op aggregation; /* NONE (the default), SUM, MEAN or ONLY_FIRST_REPLICA */
    enum sumac_trainable trainable;
    /* The update function, which sumac_update_apply takes where it is given none; each component
     * keeps its slots. name NULL: "assign". Copied */
    struct sumac_function function;
    /* Along its first axis it is split, under every strategy; it is read and written as a whole all
     * the same. `shard_rows`, how many rows each of shard_count shards has, is instead of the
     * partitioner; where these are other rows than a partitioner gives as many shards, there is no
     * scatter (UNIMPLEMENTED), and on ps it is a variable for each, NAME/rows_FIRST, whose first
     * creator assigns it. Copied */
    struct sumac_partitioner partitioner;
    const uint64_t *shard_rows;
    uint32_t shard_count;
    /* StrategyExtended.colocate_vars_with: where that variable of the strategy is; NULL: anywhere.
     * What replicas have is on their devices, so beside it; of PARAMETER_SERVER it is on the ps of
     * that one's first shard. */
    const struct sumac_variable *colocate_with;
    /* Not the strategy's, but one value of this process, as one that is created outside of all
     * scopes: written and read as it is, updated once. */
    bool process_local;
    /* The context of a replica, to create the variable within that replica's function. All replicas
     * make the call, in the same order as their collectives and with the same options, and each
     * gets the same variable. `initial` is the replica's own proposal. NULL: across the replicas.
     * Borrowed */
    struct sumac_replica *replica;
};

/* Variable(initial_value, trainable, name, synchronization, aggregation) in the strategy's scope,
 * or in a replica's function (options->replica).
 *
 * Gives    *variable; destroy with sumac_variable_destroy, once, or with its strategy.
 * Fails    INVALID_ARGUMENT, naming the variable: no name, no tensor, no shape or
 *          dtype, an unknown synchronization, aggregation or function, MEAN of integers.
 *          FAILED_PRECONDITION: within a replica without its context, with the context of another
 *          replica or strategy, or in another strategy's scope. RESOURCE_EXHAUSTED. As the device
 *          that has the initial value, or gets it. PARAMETER_SERVER: as
 * sumac_client_variable_create (ALREADY_EXISTS: another shape, …). In replicas also as
 * sumac_replica_all_reduce, in all of them: INVALID_ARGUMENT if they come with different options.
 */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_create(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error);
/* NULL is fine. Nobody uses it any more, and its strategy is there. What is on the ps stays there:
 * sumac_client_variable_delete. */
SUMAC_API void sumac_variable_destroy(struct sumac_variable *variable);

/* What it was created with; AUTO is ON_WRITE. The name is lent. Of NULL: NULL, zeros, false.
 * Threads  any. */
SUMAC_API const char *sumac_variable_name(const struct sumac_variable *variable);
SUMAC_API enum sumac_dtype sumac_variable_dtype(const struct sumac_variable *variable);
SUMAC_API struct sumac_shape sumac_variable_shape(const struct sumac_variable *variable);
SUMAC_API bool sumac_variable_trainable(const struct sumac_variable *variable);
SUMAC_API enum sumac_synchronization
sumac_variable_synchronization(const struct sumac_variable *variable);
SUMAC_API enum sumac_reduce_op sumac_variable_aggregation(const struct sumac_variable *variable);
/* StrategyExtended.variable_created_in_scope: is it the strategy's, and distributed? */
SUMAC_API bool sumac_variable_created_in_scope(
    const struct sumac_strategy *strategy, const struct sumac_variable *variable);

/* read_value: as the context sees it. It costs no copy: what is written later makes one.
 * replica (NULL: across)
 * Gives    *value, a tensor.
 * Fails    INVALID_ARGUMENT: across, ON_READ without an aggregation. FAILED_PRECONDITION: a context
 *          that is not this thread's, or of another strategy. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_read(
    struct sumac_variable *variable, struct sumac_replica *replica, struct sumac_value **value,
    struct sumac_error *error);

/* All variables of a model at once, of one strategy: a list of what sumac_variable_read gives of
 * each. Of PARAMETER_SERVER they are one pull, so that what is on one ps is of one moment.
 * variables (count), replica (NULL: across)
 * Gives    *values. Fails  as a read; INVALID_ARGUMENT: more than SUMAC_VALUE_ITEMS_MAX, or on ps
 *          than SUMAC_TRANSFER_VARIABLES_MAX; FAILED_PRECONDITION: of two strategies. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_read_all(
    struct sumac_variable *const *variables, uint32_t count, struct sumac_replica *replica,
    struct sumac_value **values, struct sumac_error *error);

/* What each component of this process has: a tuple. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_components(
    struct sumac_variable *variable, struct sumac_value **components, struct sumac_error *error);

/* What the update function keeps beside each component of this process (an optimizer's slot
 * variables): a tuple with one dict for each component, from the slot's name ("m", "v") to a tensor
 * of the variable's shape. Slots of half types are float32. A function without slots has empty
 * dicts. Of PARAMETER_SERVER one dict, which is pulled from the ps.
 * Gives    *slots. Fails  PARAMETER_SERVER: as sumac_client_pull.
 * Threads  any. Counterpart: tf.keras.optimizers.Optimizer.variables. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_slots(
    struct sumac_variable *variable, struct sumac_value **slots, struct sumac_error *error);

/* How many shards it has. The rows of one, as a read across has them; its name is
 * "NAME/part_INDEX", or of one that is alone the variable's.
 * Fails    OUT_OF_RANGE: there is no such shard. Else as a read. */
SUMAC_API uint32_t sumac_variable_shards(const struct sumac_variable *variable);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_shard(
    struct sumac_variable *variable, uint32_t index, struct sumac_value **value,
    struct sumac_error *error);

/* Of `rows` rows that a partitioner has split into so many shards: which shard has a row, and which
 * of its rows it is.
 * Fails    INVALID_ARGUMENT: there is no such row, no shard, or more of them than rows.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_shard_of_row(
    uint64_t rows, uint32_t shards, int64_t row, uint32_t *shard, uint64_t *offset,
    struct sumac_error *error);

/* Part of what a read in that context gives: sumac_value_slice, sumac_value_rows, in the order
 * asked for, and sumac_value_lookup, with weights or without (ShardedVariable.__getitem__,
 * sparse_read, embedding_lookup_sparse). Gives    *value. Fails  as a read, and as these. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_slice(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_slice *slices, uint32_t count, struct sumac_value **value,
    struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_rows(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *ids,
    struct sumac_value **value, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_lookup(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *bags,
    enum sumac_reduce_op combiner, struct sumac_value **value, struct sumac_error *error);

/* How a variable is written; the SCATTER ones by rows of the first axis: IndexedSlices. */
enum sumac_write {
    SUMAC_WRITE_ASSIGN = 1,
    SUMAC_WRITE_ASSIGN_ADD = 2,
    SUMAC_WRITE_ASSIGN_SUB = 3,
    SUMAC_WRITE_SCATTER_ADD = 4, /* rows that occur several times: each counts, in their order … */
    SUMAC_WRITE_SCATTER_SUB = 5,
    SUMAC_WRITE_SCATTER_MUL = 6,
    SUMAC_WRITE_SCATTER_DIV = 7,
    SUMAC_WRITE_SCATTER_MIN = 8,
    SUMAC_WRITE_SCATTER_MAX = 9,
    SUMAC_WRITE_SCATTER_UPDATE = 10, /* … but of this the last */
};
/* "scatter_add"; NULL: none. SUMAC_WRITE_… of a name; 0: none. Threads  any. */
SUMAC_API const char *sumac_write_name(enum sumac_write write);
SUMAC_API enum sumac_write sumac_write_parse(const char *name);

/* Write. `value` is a tensor of the variable's dtype and shape; of a SCATTER slices of that dense
 * shape.
 *
 * Gives    *result, what the context then reads (NULL: not wanted, and not read).
 * Fails    INVALID_ARGUMENT: another dtype or shape, a row that there is not, a per_replica value
 *          across (unless all replicas are known to have the same, as for an update), a 0 that
 * SCATTER_DIV would divide by; as the table above says; as sumac_replica_all_reduce, where replicas
 * write together: what one of them cannot write, be it NULL, of another strategy or shape, or no
 * way to write, has failed in all of them. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_write(
    struct sumac_variable *variable, struct sumac_replica *replica, enum sumac_write write,
    const struct sumac_value *value, struct sumac_value **result, struct sumac_error *error);
/* Variable.assign, assign_add, assign_sub: the same. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_assign(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_assign_add(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_assign_sub(
    struct sumac_variable *variable, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error);

/* StrategyExtended.reduce_to: sumac_strategy_reduce without axes, with the result where
 * `destination` lies: mirrored, each replica's part on its device, ready for an update or an
 * assignment of that variable. The destination is not written. If the variable is process_local or
 * on the ps, or is NULL, the result is on the host, as that of sumac_strategy_reduce.
 * Fails    as sumac_strategy_reduce; FAILED_PRECONDITION: a variable of another strategy. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_reduce_to(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, const struct sumac_value *value,
    const struct sumac_variable *destination, struct sumac_value **result,
    struct sumac_error *error);

/* ---- update functions beside the table's */

/* Make a text an update function of the strategy's variables (docs/EXPRESSIONS.md), by its name
 * from then on: in sumac_variable_options, and to be applied. Of PARAMETER_SERVER it is the
 * cluster's: sumac_client_define. The same text under the same name is the same function.
 *
 * Borrows  name and text.
 * Fails    INVALID_ARGUMENT: BAD_NAME; BAD_EXPRESSION, with line and column. ALREADY_EXISTS: the
 *          name has another text.
 * Threads  one at a time, and beside no other call of the strategy and its variables. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_define(
    struct sumac_strategy *strategy, const char *name, const char *text, size_t text_bytes,
    struct sumac_error *error);

/* Make the functions of a plug-in (sumac/plugin.h) those of the strategy's variables. The library,
 * or the program that it is part of, stays loaded until the strategy is destroyed.
 * Fails    INVALID_ARGUMENT: what is wrong with the table. FAILED_PRECONDITION: another ABI
 * version; of PARAMETER_SERVER, whose ps load them. ALREADY_EXISTS: a function of that name.
 * Threads  as sumac_strategy_define. */
struct sumac_plugin;
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_plug(
    struct sumac_strategy *strategy, const struct sumac_plugin *plugin, struct sumac_error *error);

/* ---- update */

/* What is called for each component. `context` is that of the options. A status other than OK ends
 * the update; `error` takes the reason, if the function has one. `update` is lent to the function
 * until that returns. */
typedef enum sumac_status sumac_update_function(
    struct sumac_update_context *update, void *context, struct sumac_error *error);

struct sumac_update_options {
    sumac_update_function *function;
    void *context;
    const struct sumac_value *args;   /* a tuple or list; NULL: none. Borrowed */
    const struct sumac_value *kwargs; /* a dict; NULL: none. Borrowed */
    bool ungrouped;                   /* group=False */
};

/* StrategyExtended.update: call `function` once for each component, in their order; for a variable
 * that is not distributed, once. In a replica's function all replicas make the call, and each gets
 * its own of the results. A function that fails ends the update; the components before it keep what
 * it has changed.
 *
 * replica (NULL: across)
 * Borrows  the options and what they point to.
 * Gives    *result (NULL: not wanted): what the functions returned, leaf by leaf. A leaf is
 *          mirrored, or the object itself if all returned the same one. With ungrouped, it is a
 *          tuple with one item for each component.
 * Fails    INVALID_ARGUMENT: args are no tuple or list, kwargs no dict, the results' nests differ,
 *          or a leaf is per_replica. (A per_replica leaf is taken if all replicas are known to have
 *          the same: a collective or a write gave it to them, or a read of a variable in this
 *          process that no update has changed since its last write.) FAILED_PRECONDITION: in
 *          another strategy's scope, or with a replica of another thread. Else as the function.
 * Within replicas, a failure is that of all replicas of the process, as for
 *          sumac_replica_all_reduce. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_update(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_update_options *options, struct sumac_value **result,
    struct sumac_error *error);

/* The same with an update function by its name as what is called: each component's value and slots
 * become what `function` (NULL: the variable's own) makes of them and `gradient`, a tensor of the
 * variable's dtype and shape, or slices of it.
 * Fails    as update. INVALID_ARGUMENT: an unknown function or hyperparameter, another dtype or
 *          shape, a gradient that is per_replica. FAILED_PRECONDITION (MISSING_SLOTS). */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_apply(
    struct sumac_variable *variable, struct sumac_replica *replica,
    const struct sumac_function *function, const struct sumac_value *gradient,
    struct sumac_error *error);

/* All variables of a model at once, of one strategy, each by its own function: an optimizer's
 * apply_gradients. `gradients` is a list or tuple, of what sumac_variable_apply takes for each.
 * All are looked at before any is applied; of PARAMETER_SERVER they are one push, which is applied
 * to all of them or to none.
 *
 * variables (count), replica (NULL: across)
 * Fails    as sumac_variable_apply. INVALID_ARGUMENT: not one gradient for each.
 *          FAILED_PRECONDITION: of two strategies. RESOURCE_EXHAUSTED: of variables that live in
 *          this process, the first ones may have changed; (PART_TOO_LARGE) of those on ps, together
 *          more for one ps than a session is granted of its staging (72 MiB by default), and none
 *          has: apply them in several calls. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_variable_apply_all(
    struct sumac_variable *const *variables, uint32_t count, struct sumac_replica *replica,
    const struct sumac_value *gradients, struct sumac_error *error);

/* ---- what an update's function asks of its context */

/* The component's number among those of this process, from 0. Threads  any. */
SUMAC_API uint32_t sumac_update_index(const struct sumac_update_context *update);

/* The component's own of the options' args and kwargs; empty where they have none. Lends  them,
 * until the function returns. */
SUMAC_API const struct sumac_value *sumac_update_args(const struct sumac_update_context *update);
SUMAC_API const struct sumac_value *sumac_update_kwargs(const struct sumac_update_context *update);

/* What the function returns: as sumac_replica_return. Takes  value. */
SUMAC_API void sumac_update_return(struct sumac_update_context *update, struct sumac_value *value);

/* Read, write, or apply an update function to this component alone, whatever the synchronization
 * and the aggregation of its variable.
 * Fails    as the calls for a variable. FAILED_PRECONDITION: called outside of the function that
 *          was lent this context. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_update_read(
    struct sumac_update_context *update, struct sumac_value **value, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_update_write(
    struct sumac_update_context *update, enum sumac_write write, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_update_apply(
    struct sumac_update_context *update, const struct sumac_function *function,
    const struct sumac_value *gradient, struct sumac_error *error);

#endif
