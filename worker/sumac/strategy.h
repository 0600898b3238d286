/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.h -- tf.distribute's strategies for programs in C: a step is run once for each replica,
 * and what the replicas have is reduced, gathered, regrouped.
 *
 *     sumac_strategy_create      default, one device, or mirrored over CPUs or GPUs
 *     sumac_strategy_run         a function in each replica, at once, a thread each
 *       sumac_replica_…          what it asks of its context: which replica it is, all_reduce,
 *                                all_gather, merge_call
 *     sumac_strategy_reduce …    what the replicas have becomes one value
 *     sumac_strategy_destroy
 *
 * R is the number of replicas in sync. Values are those of sumac/value.h. The meaning of each
 * operation is TensorFlow 2's; what is decided otherwise is said with it.
 *
 * No call hangs: a replica that is absent, out of order, or comes with something else is an error
 * to all replicas of the call, by the strategy's timeout at the latest, that names it. A kernel on
 * a GPU has step_timeout_ms. A program's own function on a CPU may take as long as it likes. A
 * child of the process that made the strategy does not have its threads: calls across the replicas
 * fail there with FAILED_PRECONDITION. Make a strategy in the child. A program of several workers
 * makes its calls across replicas from one thread: those of two threads come in another order in
 * each worker, and a call then waits for the other thread's until the time of that call is over.
 *
 * Contexts. Outside of everything one is in the *default replica context*; within a scope, or a
 * merge_call, in the *cross-replica context* of its strategy; within run in a *replica context*.
 * One thread has one at a time. A call from a context where it makes no sense is
 * FAILED_PRECONDITION; so is one of another strategy than the scope's.
 */
#ifndef SUMAC_STRATEGY_H
#define SUMAC_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/replica.h"
#include "sumac/status.h"
#include "sumac/value.h"

#define SUMAC_BYTES_PER_PACK_MAX (UINT64_C(1) << 40)

struct sumac_client;
struct sumac_strategy;

enum sumac_strategy_kind {
    SUMAC_STRATEGY_DEFAULT = 1,    /* tf.distribute.get_strategy() outside of all scopes: R = 1, and
                                      the caller's thread */
    SUMAC_STRATEGY_ONE_DEVICE = 2, /* OneDeviceStrategy: R = 1 */
    SUMAC_STRATEGY_MIRRORED = 3,   /* MirroredStrategy: R devices of this process */
    /* MultiWorkerMirroredStrategy: as many devices of each of several workers. They meet on the ps
     * (collective.h); R are those of all of them, worker after worker */
    SUMAC_STRATEGY_MULTI_WORKER = 4,
    /* ParameterServerStrategy: R devices of this worker, and variables that live on the ps, for all
     * workers, each of which trains on its own batches */
    SUMAC_STRATEGY_PARAMETER_SERVER = 5,
};

/* How replicas exchange: tf.distribute.experimental.CommunicationOptions. Of two, the call's and
 * the strategy's, what the call says counts. */
enum sumac_communication {
    SUMAC_COMMUNICATION_AUTO = 0,
    SUMAC_COMMUNICATION_RING = 1, /* TensorFlow's name; without effect here: as AUTO */
    SUMAC_COMMUNICATION_NCCL = 2, /* between one worker's GPUs; between other devices as AUTO */
};
struct sumac_communication_options {
    uint64_t bytes_per_pack; /* leaves are exchanged together up to so many bytes; 0: all of them */
    uint32_t timeout_ms;     /* of a collective; 0: the strategy's */
    enum sumac_communication implementation;
};

struct sumac_strategy_options {
    enum sumac_strategy_kind kind; /* 0: MIRRORED of several replicas; of one DEFAULT, or, on
                                    * a GPU, ONE_DEVICE */
    /* Devices of this process, at most SUMAC_REPLICAS_MAX; 0: as the environment's SUMAC_REPLICAS
     * says, or as many as `devices` does, or one. Of DEFAULT and ONE_DEVICE 0 or 1. MULTI_WORKER
     * has the same number in each worker. */
    uint32_t replicas;
    /* What they are: "cpu:4", four CPUs; "gpu:0,2", one replica on each of these GPUs; "gpu", on
     * all, or as many as there are replicas; "auto", GPUs if there are and runs_on_gpus, else CPUs.
     * NULL: as the environment's SUMAC_DEVICES says, which `sumac run --devices` sets, or auto. Of
     * DEFAULT none. */
    const char *devices;
    /* The program's functions can run on GPUs: what they read of variables, and get of collectives,
     * lies in a GPU's memory then. `devices` that name GPUs say so, too; the environment does not.
     */
    bool runs_on_gpus;
    /* Of MULTI_WORKER and PARAMETER_SERVER: a member's, that has joined. Borrowed, until the
     * strategy is destroyed; its calls may be used beside it. */
    struct sumac_client *client;
    /* Of MULTI_WORKER: who are its workers, this process's own task among them; none: all members.
     * The same in all of them. */
    const struct sumac_member *workers;
    uint32_t worker_count;
    /* Of MULTI_WORKER: UTF-8, 1 to 200 bytes, the same in all workers, and no other strategy's of
     * this run; NULL: "strategy N", where N counts the strategies of the client. */
    const char *name;
    uint32_t timeout_ms; /* a wait of replicas for each other; 0: 60 000 */
    /* How long a replica's work in its GPU's stream may take, once the replica's function has
     * returned or a call waits for that work. 0: 600000 (ten minutes); 2^32 - 1: no limit. Then a
     * line in the log names the replica. A GPU whose work has not ended after as much time again is
     * given up: every call fails with DEADLINE_EXCEEDED, and only the end of the process frees the
     * GPU. The same holds of a collective, after twice its own timeout. */
    uint32_t step_timeout_ms;
    bool abort_when_stuck; /* true: a GPU that is given up ends the process by SIGABRT */
    struct sumac_communication_options communication;
};

/* Starts the devices' threads. A strategy keeps the memory of released large results for its next
 * results: at most 8 blocks, of 256 MiB together, and on each GPU 1024 blocks, of 1 GiB together.
 * options NULL: as zeroed.
 * Gives    *strategy; destroy with sumac_strategy_destroy.
 * Fails    INVALID_ARGUMENT: an unknown kind, replicas that the kind does not have, unknown
 * devices, or those on which the program's functions do not run; PARAMETER_SERVER where the
 *          environment's SUMAC_SYNCHRONOUS is 1. FAILED_PRECONDITION: there is no
 *          GPU; OUT_OF_RANGE: none of that number. RESOURCE_EXHAUSTED. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_create(
    const struct sumac_strategy_options *options, struct sumac_strategy **strategy,
    struct sumac_error *error);
/* The strategy that the environment says, so that one program runs alone and in a cluster:
 *
 *     TF_CONFIG with a job ps               PARAMETER_SERVER
 *     TF_CONFIG with several workers        MULTI_WORKER
 *     no TF_CONFIG, or one worker           MIRRORED, or DEFAULT with one replica
 *     SUMAC_SYNCHRONOUS=1 with a job ps     MULTI_WORKER; `sumac run --synchronous` sets it
 *     SUMAC_STRATEGY, by name               that one
 *     SUMAC_REPLICAS                        so many devices of this process
 *     SUMAC_DEVICES                         these; one GPU alone is ONE_DEVICE
 *
 * It has a client of its own, and where there is no ps, the chief or the first worker starts one,
 * `sumac ps`, on its own task's address: the program that SUMAC_PROGRAM names, or that beside this
 * one or in PATH. It dies with the thread that made this call. A ps that ends before it listens
 * fails this call at once, and its last line is in the error.
 *
 * Gives    *strategy; sumac_strategy_destroy leaves the cluster, with the work done, and waits for
 *          the ps that was started until the other workers have left, too, for the strategy's
 *          timeout.
 * Fails    as sumac_cluster_from_environment, sumac_client_open, sumac_strategy_create;
 *          INVALID_ARGUMENT: SUMAC_STRATEGY is none, or one that has not the replicas or devices
 *          of SUMAC_REPLICAS or SUMAC_DEVICES, or whose workers are not in step with
 *          SUMAC_SYNCHRONOUS=1, or a started ps that refused its options. NOT_FOUND: no `sumac` to
 *          be started. UNAVAILABLE: the port of the started ps is taken. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_strategy_from_environment(struct sumac_strategy **strategy, struct sumac_error *error);
/* The same with what else the options say: devices, replicas, runs_on_gpus, name, timeout_ms,
 * communication. The kind, the client and the workers are the environment's. options NULL: as
 * zeroed. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_from_environment_with(
    const struct sumac_strategy_options *options, struct sumac_strategy **strategy,
    struct sumac_error *error);
/* End the strategy, its devices' threads and its variables. NULL is fine. In a scope of the calling
 * thread it ends the scope. It waits for the runs and updates of other threads. Within the
 * strategy's own run or update it takes effect when the last run or update of any thread returns.
 * In a child of the process that made the strategy it does nothing.
 * No other thread uses the strategy afterwards, nor is in its scope. */
SUMAC_API void sumac_strategy_destroy(struct sumac_strategy *strategy);
/* The same with a status, for a program that must know whether a strategy from the environment has
 * left its cluster.
 * Fails    FAILED_PRECONDITION, and the strategy is as before: within its own run or its update, or
 *          in a child of the process that made it. As sumac_client_leave, and the strategy is
 *          destroyed nevertheless: a ps is lost, so the ps do not know that this worker is done. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_strategy_close(struct sumac_strategy *strategy, struct sumac_error *error);

/* R: Strategy.num_replicas_in_sync. 0 of NULL. Threads  any. */
SUMAC_API uint32_t sumac_strategy_num_replicas_in_sync(const struct sumac_strategy *strategy);
/* "mirrored". Lends  a constant string. Threads  any. */
SUMAC_API const char *sumac_strategy_name(const struct sumac_strategy *strategy);

/* The client of MULTI_WORKER and PARAMETER_SERVER; else NULL. Lends  it. Threads  any. */
SUMAC_API struct sumac_client *sumac_strategy_client(const struct sumac_strategy *strategy);

/* ---- contexts */

/* Strategy.scope(): this thread is in the strategy's cross-replica context until the same number
 * of leaves. Entered again it counts.
 * Fails    FAILED_PRECONDITION: the thread is in another strategy's scope, or in a replica context;
 *          leave: in none of this strategy. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_strategy_enter(struct sumac_strategy *strategy, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_strategy_leave(struct sumac_strategy *strategy, struct sumac_error *error);

/* tf.distribute.experimental_set_strategy: this thread is in the strategy's cross-replica context
 * from now on, without a scope; NULL: in none, as at first. It is set anew before the strategy is
 * destroyed.
 * Fails    FAILED_PRECONDITION: the thread is in a scope, a replica context, or an update. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_set_strategy(struct sumac_strategy *strategy, struct sumac_error *error);

/* tf.distribute.get_strategy, has_strategy, in_cross_replica_context, get_replica_context, of this
 * thread. Lend  the strategy, the context; NULL: none. */
SUMAC_API struct sumac_strategy *sumac_present_strategy(void);
SUMAC_API bool sumac_in_cross_replica_context(void);
SUMAC_API struct sumac_replica *sumac_present_replica(void);

/* ---- run */

/* What is run in each replica. The function reads its own of args and kwargs by sumac_replica_args
 * and sumac_replica_kwargs. */
struct sumac_run_options {
    sumac_replica_function *function;
    void *context;
    const struct sumac_value *args;   /* a tuple or list; NULL: none. Borrowed */
    const struct sumac_value *kwargs; /* a dict; NULL: none. Borrowed */
};

/* Strategy.run: call `function` once in each replica, all at once. In its arguments each
 * per_replica and mirrored leaf is replaced by the replica's own item; other leaves are the same in
 * all. Its results are regrouped as sumac_value_regroup does it: one object that all replicas
 * return is that object, and all else becomes per_replica, also what a collective or a read of a
 * variable gave each of them.
 *
 * Borrows  the options and what they point to, until it returns.
 * Gives    *result (NULL: not wanted).
 * Fails    INVALID_ARGUMENT: args are no tuple or list, kwargs no dict, or the results' nests
 *          differ. OUT_OF_RANGE: a leaf has no item of a replica. FAILED_PRECONDITION: called
 * within a replica or its merge_call, in another strategy's scope, or in a child of the process.
 *          Else with what a replica's function returned. Its error is what the function wrote, or
 *          names the replica and the status. The collectives of the other replicas in this process
 *          end with the same error. Another worker hears of it in its next collective, which this
 *          worker is then a run ahead of, or when that collective has waited too long. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_run(
    struct sumac_strategy *strategy, const struct sumac_run_options *options,
    struct sumac_value **result, struct sumac_error *error);

/* Strategy.experimental_local_results: a tuple of what each replica of this process has. A nest or
 * a distributed value gives one item for each replica. Another value gives one item, itself.
 * Gives    *results. Fails  as sumac_value_select. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_local_results(
    struct sumac_strategy *strategy, const struct sumac_value *value, struct sumac_value **results,
    struct sumac_error *error);

/* What a value of a replica is made of: tf.distribute.experimental.ValueContext. */
struct sumac_value_context {
    uint32_t replica_id_in_sync_group, num_replicas_in_sync;
};
typedef enum sumac_status sumac_value_function(
    const struct sumac_value_context *replica, void *context, struct sumac_value **value,
    struct sumac_error *error);
/* Strategy.experimental_distribute_values_from_function: call `function` for each replica, one
 * after the other, and make a per_replica value of what it gives, leaf by leaf, of identical leaves
 * too. DEFAULT and ONE_DEVICE give the value itself.
 * Gives    *value. Fails  as the function, or INVALID_ARGUMENT: nests that differ. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_values_from_function(
    struct sumac_strategy *strategy, sumac_value_function *function, void *context,
    struct sumac_value **value, struct sumac_error *error);

/* ---- what a replica asks of its context */

/* ReplicaContext.strategy. NULL: of NULL, and of a worker's step, which has no collectives.
 * Threads  any. */
SUMAC_API struct sumac_strategy *sumac_replica_strategy(const struct sumac_replica *replica);

/* ReplicaContext.all_reduce: every replica calls it, in the same order as its other collectives,
 * with the same nest, types and shapes, and gets Σ or Σ ÷ R of each leaf, in the order of the
 * replicas: the same bits in all, whoever comes first. Slices are concatenated in that order, MEAN
 * ÷ R. Integers wrap; MEAN of integers is of float32 (8 and 16 bits) or float64, summed in that.
 * options (NULL: the strategy's).
 *
 * Gives    *result.
 * Fails    in every replica: INVALID_ARGUMENT: what they come with differs, naming who with whom
 *          and how; a leaf that cannot be reduced; NULL, an unknown reduction or wrong options
 *          in one of them. DEADLINE_EXCEEDED: one has not come, or (MEMBER_GONE)
 *          has returned without it. Of several workers, too: INVALID_ARGUMENT: one makes another
 *          call, or is in another run; UNAVAILABLE (MEMBER_GONE): one is gone; RESOURCE_EXHAUSTED:
 *          what a worker sends the others (slices, small tensors, and in all_gather and gather all
 *          of it) is more than a push may have, 72 MiB by default. Sums go in parts of 8 MiB.
 *          FAILED_PRECONDITION, in this one: it is no thread of the replica's. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_replica_all_reduce(
    struct sumac_replica *replica, enum sumac_reduce_op op, const struct sumac_value *value,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error);

/* ReplicaContext.all_gather: likewise; the replicas' tensors one after the other along `axis`, 0 to
 * the rank - 1, whose extents may differ. Nests are gathered leaf by leaf.
 * Fails    as all_reduce; INVALID_ARGUMENT: scalars, an axis that a leaf does not have, slices. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_replica_all_gather(
    struct sumac_replica *replica, const struct sumac_value *value, int64_t axis,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error);

/* The gradient of these with respect to what this replica came with, given that of the result:
 * Σ or Σ ÷ R of all replicas'; the part of the sum that is this replica's own, whose extent along
 * the axis `local` has (the value that was gathered). Every replica calls it. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_replica_all_reduce_gradient(
    struct sumac_replica *replica, enum sumac_reduce_op op, const struct sumac_value *upstream,
    const struct sumac_communication_options *options, struct sumac_value **gradient,
    struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_replica_all_gather_gradient(
    struct sumac_replica *replica, const struct sumac_value *upstream,
    const struct sumac_value *local, int64_t axis, struct sumac_value **gradient,
    struct sumac_error *error);

/* ReplicaContext.merge_call: once all replicas have called it with the same function, that is
 * called once, in the cross-replica context, with the replicas' args regrouped; each gets its own
 * of the result.
 * args (NULL: none), a tuple or list. Gives  *result (NULL: not wanted).
 * Fails    as all_reduce, in every replica of this process, or as the function. */
typedef enum sumac_status sumac_merge_function(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error);
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_replica_merge_call(
    struct sumac_replica *replica, sumac_merge_function *function, void *context,
    const struct sumac_value *args, struct sumac_value **result, struct sumac_error *error);

/* ---- on devices with memory of their own
 *
 * On GPUs the function of a replica runs on a thread that has its GPU's context current. Values lie
 * where they were made: what it is given where the caller has them, what it makes of its device's
 * memory there (sumac_value_of). A collective of tensors that are on the replicas' own devices is
 * NCCL's, after all that a replica has put into its stream before it, and each replica gets the
 * result on its own device: whole when the call returns. Where one is on the host, or it is what
 * NCCL does not do (means of integers, sums over axes, gathers along another axis than the first,
 * slices' means), it is done on the host, and the result is on all devices all the same, where what
 * one of them came with was. What is across the replicas is on the host, but in their merge_call.
 *
 * Several workers (MULTI_WORKER, be it of one) meet on the ps, by way of the host: none of that is
 * NCCL's. A replica gets its result on its device all the same, where what it came with was; what
 * is across the replicas is on the host there in their merge_call, too, and stays there as what
 * that gives them (sumac_replica_to_device brings it).
 *
 * NCCL's sums of floats are in its order: the same bits in all replicas. */

/* The same value with its elements on the replica's device: itself, where they are. Of a
 * distributed value the replica's own. On CPUs they are the host's: a GPU's come there.
 * Gives    *placed. Fails  RESOURCE_EXHAUSTED: no memory there; as the device.
 * Threads  any; of what the replica's function has made, its own. Counterpart: tf.device. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_replica_to_device(
    struct sumac_replica *replica, const struct sumac_value *value, struct sumac_value **placed,
    struct sumac_error *error);

/* The same of all replicas of this process, across: a per_replica leaf is each one's on its device,
 * any other becomes mirrored. On CPUs it is the value itself, or what of it a GPU has comes here.
 * Gives    *placed. Fails  as sumac_replica_to_device, sumac_value_select; INVALID_ARGUMENT: a leaf
 *          with items of more replicas than there are. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_to_devices(
    struct sumac_strategy *strategy, const struct sumac_value *value, struct sumac_value **placed,
    struct sumac_error *error);

/* ---- cross-replica */

/* The axes of a tensor that each replica sums over first, each of them once. A negative axis counts
 * from the last one. What lies beyond `count` is 0.
 *
 *     NULL                                                    TensorFlow's axis=None
 *     &(struct sumac_axes){.count = 1, .axis = {0}}           axis=0
 *     &(struct sumac_axes){.count = 2, .axis = {0, -1}}       axis=(0, -1)
 *     &(struct sumac_axes){0}                                 axis=(): an empty list
 */
struct sumac_axes {
    uint32_t count;
    int64_t axis[SUMAC_RANK_MAX];
};

/* The reduction of that name, in whatever case: "sum", "MEAN". 0: there is none. Threads  any. */
SUMAC_API enum sumac_reduce_op sumac_reduce_op_parse(const char *name);

/* Calls across the replicas of several workers are made by all workers, in the same order: what
 * differs, or what one of them cannot make the call with (NULL, another type or shape), is an error
 * to all of them, and the next call is the same for all. That holds for reduce, batch_reduce,
 * gather, and for sumac_variable_create and reads of ON_READ variables. A call from a context
 * where it makes no sense is this worker's alone. */

/* Strategy.reduce. Without axes (NULL): Σ, or Σ ÷ R, element by element, of tensors of one shape.
 * Slices are reduced as by all_reduce, and nests leaf by leaf.
 *
 * With axes each replica sums its tensor over them first. SUM is Σ of these sums. MEAN is that Σ ÷
 * the number of elements that all replicas together summed: partial and empty batches count as what
 * they have, and the MEAN of no elements is NaN. Shapes agree outside the axes.
 *
 * A value that is not distributed is that of the one replica where R is 1. Else MEAN is the value
 * itself, whatever its type and the axes, and SUM is INVALID_ARGUMENT. A mirrored value is treated
 * alike, but its SUM is INVALID_ARGUMENT always. (TensorFlow's rules for these two depend on the
 * axes.)
 *
 * Gives    *result.
 * Fails    INVALID_ARGUMENT: shapes or types that differ; an axis that is out of range, named
 *          twice, or not counted; bools. FAILED_PRECONDITION: from within a replica context
 * (merge_call is the way), or another strategy's scope. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, const struct sumac_value *value,
    const struct sumac_axes *axes, struct sumac_value **result, struct sumac_error *error);

/* StrategyExtended.batch_reduce_to: each of a list or tuple, as reduce without axes; a list in the
 * same order. (StrategyExtended.reduce_to is sumac_strategy_reduce_to, sumac/variable.h.) */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_batch_reduce(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, const struct sumac_value *values,
    struct sumac_value **results, struct sumac_error *error);

/* Strategy.gather: the replicas' tensors one after the other along `axis`, as all_gather; nests
 * leaf by leaf. Of one replica it is checked just the same. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_strategy_gather(
    struct sumac_strategy *strategy, const struct sumac_value *value, int64_t axis,
    struct sumac_value **result, struct sumac_error *error);

#endif
