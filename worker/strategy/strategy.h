/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.h (worker/strategy) -- what a strategy is made of.
 *
 *   strategy.c         create, destroy.
 *   context.c          which context a thread is in.
 *   run.c              a function in each replica, and its results.
 *   call.c             a call that all replicas make: it waits for them, compares what they bring,
 *                      and computes the result once.
 *   replica_calls.c    the public calls of that kind.
 *   compare.c          do the replicas make the same call, of the same nest, types and shapes?
 *   environment.c      the strategy that the environment says.
 *   surroundings.c     the client of such a strategy, and the ps that it starts without one.
 *
 * worker/collective has what the calls compute:
 *   collect.c          reductions and gathers of nests.
 *   reduce_elements.c  … tensors, element by element.
 *   reduce_across.c    across the replicas; gradient.c: of gradients.
 *   shares.c           … over many bytes, by all threads that wait.
 *   array_pass.c       … in one pass over memory.
 *   spare_memory.c     … into memory that earlier results had.
 *   axes.c             sums over axes.
 *   on_device.c, on_device_calls.c   the same on devices.
 *   peers.c, sums.c    the same calls made by several workers.
 *
 * worker/variable has variables: variable.h.
 */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <sys/types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "replica.h"
#include "replicas.h"
#include "spare_memory.h"
#include "sumac/strategy.h"
#include "value.h"

/* The items, with room for another, perhaps elsewhere. NULL: no memory, and they stay. */
static inline void *array_grow(void *items, uint32_t count, uint32_t *room, size_t bytes)
{
    assert(count <= *room);
    const uint32_t wanted = *room == 0 ? 16 : *room * 2;
    void *grown = count < *room ? items : realloc(items, wanted * bytes);

    if (grown != NULL && count == *room)
        *room = wanted;
    return grown;
}

/* "mirrored"; NULL of no kind. */
const char *strategy_kind_name(enum sumac_strategy_kind kind);

/* ---- context.c: tf.distribute's default, cross-replica and replica context, or the function of an
 * update */

struct sumac_update_context;

enum context_kind { CONTEXT_DEFAULT, CONTEXT_CROSS_REPLICA, CONTEXT_REPLICA, CONTEXT_UPDATE };

struct context {
    enum context_kind kind;
    struct sumac_strategy *strategy;     /* of all but DEFAULT */
    struct sumac_replica *replica;       /* of REPLICA; of the others in a merge_call */
    struct sumac_update_context *update; /* of UPDATE */
    uint32_t depth;                      /* of CROSS_REPLICA: scopes that were entered */
    bool set;                            /* … it is this thread's without one, too */
};
/* Of this thread. */
struct context *context_present(void);
/* Is this a thread of that replica's, in its run? Threads  any; reads nothing of it. */
bool context_is_of(const struct sumac_replica *replica);
/* May this thread make the strategy's cross-replica calls?
 * Fails    FAILED_PRECONDITION: it is in a replica context, an update, or another strategy's scope.
 */
enum sumac_status context_check_cross(
    const struct sumac_strategy *strategy, const char *call, struct sumac_error *error);
/* Fails  FAILED_PRECONDITION. */
enum sumac_status context_fail(const char *call, const char *why, struct sumac_error *error);

/* ---- compare.c: what tells one call from another: a text, of which the beginning is kept to be
 * shown, and of all of it how long it is, and a digest. Texts that differ behind what is kept
 * differ. */

#define LABEL_BYTES_MAX 4096u /* that are kept, with the end */

struct label_sum {
    uint64_t bytes, digest; /* FNV-1a, of 64 bits */
};

struct label {
    char text[LABEL_BYTES_MAX];
    size_t used;
    struct label_sum sum;
};

/* Empty. */
void label_init(struct label *label);
/* Of any length. */
void label_add(struct label *label, const char *text);
/* At most LABEL_PRINT_BYTES_MAX of them at once. */
#define LABEL_PRINT_BYTES_MAX 255u
void label_print(struct label *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- what a replica calls, and all others with it */

enum call_kind {
    CALL_ALL_REDUCE,
    CALL_ALL_GATHER,
    CALL_MERGE,
    CALL_WRITE,
    /* across replicas; several workers make them together */
    CALL_REDUCE,
    CALL_GATHER,
    CALL_CREATE,
    CALL_READ,
    CALL_KINDS
};

struct call {
    enum call_kind kind;
    enum sumac_reduce_op op;       /* of ALL_REDUCE, REDUCE */
    int64_t axis;                  /* of ALL_GATHER, GATHER */
    const struct sumac_axes *axes; /* of REDUCE; NULL: none are given */
    const struct sumac_value *value;
    sumac_merge_function *function; /* of MERGE */
    void *context;
    struct sumac_variable *variable; /* of WRITE, and of an update that is a MERGE, … */
    const char *name; /* … and its name; of CREATE how it is created: as much as is kept … */
    struct label_sum sum;                    /* … and of all of it; zeros: that is all */
    struct sumac_variable *const *variables; /* of an update of several: */
    uint32_t variable_count;                 /* … their number; else 0 */
    const void *by;                   /* of an update what is called, as far as it is told apart */
    const struct sumac_error *failed; /* the replica's arguments are none; NULL: they are */
    bool first_only;                  /* what replica 0 has is what counts */
    int write;                        /* of WRITE: enum sumac_write */
    bool reads;                       /* of WRITE: what it comes to is wanted */
    struct sumac_communication_options options;
};

/* Units that are computed one by one, in any order, by whoever has time. */
struct shares {
    void (*function)(const void *context, uint64_t first, uint64_t count);
    const void *context;
    uint64_t bytes; /* that are read and written, of all units together */
    uint64_t units, units_at_once;
    atomic_uint_fast64_t next; /* that nobody has taken */
};

/* A call under way. */
struct calls {
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed, helped;
    const struct call *made[SUMAC_REPLICAS_MAX]; /* NULL: not yet */
    bool returned[SUMAC_REPLICAS_MAX];           /* the function has */
    uint32_t made_count, returned_count;
    uint64_t number;            /* of the present one, or the next, from 1 */
    bool is_merge;              /* … which other workers have no part in */
    bool ends_run;              /* … with which this run is over */
    uint64_t over;              /* the last that came to something, and that is: */
    struct sumac_value *result; /* of all replicas the same, or regrouped; one reference each */
    struct sumac_error error;
    struct sumac_error broken;    /* a call was left by some: none of this run comes to anything */
    struct shares *shares;        /* of the present one, that who waits may help with; NULL: none */
    uint32_t helping;             /* replicas that do */
    uint64_t over_ns;             /* when the last was over */
    uint32_t sleeps, sleeps_next; /* waits that are to sleep at once; of which the next time */
    atomic_uint_fast64_t changes; /* of what is waited for; written by who has the mutex */
};

/* Of the memory that results had, and the next ones may have. */
#define RESULTS_KEPT_MAX 8u
#define RESULTS_KEPT_BYTES_MAX (UINT64_C(256) << 20)

struct strategy_peers;    /* peers.h */
struct strategy_function; /* own_functions.c */

/* One run of a function. */
struct strategy_run {
    struct sumac_strategy *strategy;
    const struct sumac_run_options *options;
};
struct replica_run {
    struct strategy_run *run;
    struct sumac_replica *replica;
    enum sumac_status status;
    struct sumac_error error;
    struct sumac_value *result;
};

struct sumac_strategy {
    struct sumac_strategy_options options; /* filled in */
    uint32_t replicas;                     /* of this process */
    uint32_t first, in_sync;        /* the id of its first replica; replicas of all processes */
    struct replicas own;            /* their devices; of DEFAULT none */
    struct on_device *on_device;    /* on_device.h; NULL: the host sees their memory */
    struct sumac_replica *contexts; /* (replicas) */
    pid_t process;                  /* that has its threads */
    pthread_mutex_t running;        /* one run at a time */
    pthread_mutex_t ending;         /* guards … */
    pthread_cond_t idle;            /* … no run or update is under way */
    uint32_t under_way;             /* … runs, and updates across the replicas */
    bool is_ending;                 /* … it is destroyed when the last of them returns */
    struct replica_run *runs;       /* (replicas), of that */
    struct strategy_peers *peers;   /* of MULTI_WORKER; else NULL */
    pthread_mutex_t creating;       /* guards … */
    LIST(struct sumac_variable) variables; /* … those that are not destroyed */
    struct strategy_function *functions;   /* that variables have beside the table's */
    struct surroundings *surroundings;     /* what is its own of the cluster; NULL: nothing */
    uint32_t helpers;                      /* threads that may help the one that computes */
    struct kept *results;
    struct calls calls;
};

/* A run, or an update across the replicas, begins. */
void strategy_begins(struct sumac_strategy *strategy);
/* A run or an update that began is over. If the strategy was destroyed within a run or an update,
 * the last of them to return ends the strategy. */
void strategy_returned(struct sumac_strategy *strategy);

/* surroundings.c: the client and the ps that a strategy from the environment has of its own */
struct surroundings {
    struct sumac_client *client;
    pid_t ps; /* that was started; 0: none */
};

/* Join the cluster, which has a ps. */
enum sumac_status surroundings_join(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error);
/* Join a cluster without a ps. The chief or the first worker starts one before that. */
enum sumac_status surroundings_join_without_ps(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error);
/* Leave the cluster, as done or not, and wait for a ps that was started. NULL is fine. */
enum sumac_status surroundings_leave(
    struct surroundings *surroundings, bool done, uint32_t timeout_ms, struct sumac_error *error);

/* call.c, compare.c, replica_calls.c */
/* "all_reduce". */
const char *call_name(enum call_kind kind);
/* Do two replicas make the same call, with values that may meet? Fails  INVALID_ARGUMENT, naming
 * both, and how they differ. */
enum sumac_status call_compare(
    const struct call *one, uint32_t one_replica, const struct call *other, uint32_t other_replica,
    struct sumac_error *error);
/* Fails  INVALID_ARGUMENT. */
enum sumac_status
communication_check(const struct sumac_communication_options *options, struct sumac_error *error);
enum sumac_status reduce_op_check(enum sumac_reduce_op op, struct sumac_error *error);
/* In this replica, with all others. Gives *result: what it came to, one value for all. */
enum sumac_status call_with_others(
    struct sumac_replica *replica, const struct call *call, struct sumac_value **result,
    struct sumac_error *error);
/* The same; gives *result (NULL: not wanted) what this replica has of it. */
enum sumac_status call_for_own(
    struct sumac_replica *replica, const struct call *call, struct sumac_value **result,
    struct sumac_error *error);
/* The replica cannot make the call, for what it was called with: the call has failed for all. */
enum sumac_status call_fail_with_others(
    struct sumac_replica *replica, const struct call *call, const struct sumac_error *failed,
    struct sumac_error *error);
/* The same of a call of which no more is known. Of a replica that has nobody to make it with, the
 * error is as it was.
 * Borrows  failed. Fails  always. */
enum sumac_status call_refuse(
    struct sumac_replica *replica, enum call_kind kind, const struct sumac_error *failed,
    struct sumac_error *error);
/* A call across replicas, which the other workers make as well, and this one cannot, for what it
 * was called with: it has failed for all of them. Without other workers the error is as it was.
 * Borrows  failed. Fails  always. */
enum sumac_status call_refuse_across(
    struct sumac_strategy *strategy, enum call_kind kind, const struct sumac_error *failed,
    struct sumac_error *error);
/* What all replicas in sync have of a call: those of this process, and those of other workers. One
 * that has `failed` here (NULL: none) has failed for all.
 * Gives    all[0 … in_sync - 1], also where it fails; call_forget_all frees it, and ends what
 * workers have under way of the call. Fails  as peers_exchange. */
enum sumac_status call_hear_all(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value *all[SUMAC_REPLICAS_MAX],
    struct sumac_error *error);
void call_forget_all(const struct sumac_strategy *strategy, struct sumac_value *const *all);
void calls_init(struct sumac_strategy *strategy);
void calls_deinit(struct sumac_strategy *strategy);
/* Do all replicas wait for what the present call comes to? */
bool calls_all_made(struct sumac_strategy *strategy);
/* Another worker has given the run up, as the present call comes to: so do later ones of it. */
void calls_end_run(struct sumac_strategy *strategy);
/* A run begins; a replica's function has returned. */
void calls_begin(struct sumac_strategy *strategy);
void calls_returned(
    struct sumac_strategy *strategy, uint32_t replica, const struct sumac_error *error);
/* All units, with the help of replicas that wait for the present call. Threads  whoever computes
 * what it comes to. */
void calls_share(struct sumac_strategy *strategy, struct shares *shares);

/* collect.c */
/* All leaves reduced, or gathered (ALL_GATHER), over what all replicas in sync have: values of the
 * same nest that have been compared. */
enum sumac_status collect_call(
    struct sumac_strategy *strategy, const struct call *call,
    const struct sumac_value *const *values, struct sumac_value **result,
    struct sumac_error *error);

/* What the first replica of all has, of a leaf; where it lies on its device, on each one's. */
enum sumac_status collect_first(
    struct sumac_strategy *strategy, const struct sumac_value *const *values,
    struct sumac_value **result, struct sumac_error *error);

/* Of tensors, one of each replica of this process: their sum, or the one that there is. */
enum sumac_status collect_own_sum(
    struct sumac_strategy *strategy, const struct sumac_value *const *leaves,
    struct sumac_value **sum, struct sumac_error *error);

/* shares.c */
/* How many threads may help another of as many replicas, on this machine. */
uint32_t shares_helpers(uint32_t replicas);
/* Compute units until none is left to be taken. */
void shares_take(struct shares *shares);
/* All units, with whoever can help. Sets `next`. */
void shares_run(struct sumac_strategy *strategy, struct shares *shares);

/* spare_memory.c */
/* NULL: no memory. */
struct kept *results_open(void);
/* As value_make_tensor; `elements` are aligned to 64 bytes. Threads  any. */
struct sumac_value *results_make_tensor(
    struct kept *results, enum sumac_dtype dtype, const struct sumac_shape *shape, void **elements);
