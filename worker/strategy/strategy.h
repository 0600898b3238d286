/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.h (worker/strategy) -- what a strategy is made of, for the files beside it:
 *
 *   strategy.c   create, destroy; which context a thread is in
 *   run.c        a function in each replica, and what comes of it
 *   call.c       a call that all replicas make: each waits for the others, they are compared, and
 *                what it comes to is computed once, by all of them
 *   collect.c    what such calls, and a strategy's own, compute: reductions, what is gathered
 *   axes.c       the arithmetic of sums over axes
 *
 * Variables have a header of their own, distributed.h.
 */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "sumac/strategy.h"
#include "value.h"

/* ---- contexts */

enum context_kind { CONTEXT_DEFAULT, CONTEXT_CROSS_REPLICA, CONTEXT_REPLICA, CONTEXT_UPDATE };

struct context {
    enum context_kind kind;
    struct sumac_strategy *strategy;       /* of all but DEFAULT */
    struct sumac_replica_context *replica; /* of REPLICA */
    struct sumac_component *component;     /* of UPDATE */
    uint32_t depth;                        /* of CROSS_REPLICA: scopes that were entered */
};
/* Of this thread. */
struct context *context_present(void);
/* May this thread make the strategy's cross-replica calls?
 * Fails    FAILED_PRECONDITION: it is in a replica context, an update, or another strategy's scope.
 */
enum sumac_status context_check_cross(
    const struct sumac_strategy *strategy, const char *call, struct sumac_error *error);

/* ---- what a replica calls, and all others with it */

enum call_kind { CALL_ALL_REDUCE, CALL_ALL_GATHER, CALL_MERGE, CALL_WRITE };

struct call {
    enum call_kind kind;
    enum sumac_reduce_op op; /* of ALL_REDUCE */
    int64_t axis;            /* of ALL_GATHER */
    struct sumac_value *value;
    sumac_merge_function *function; /* of MERGE */
    void *context;
    struct sumac_distributed *variable; /* of WRITE, and of an update that is a MERGE */
    int write;                          /* of WRITE: enum sumac_write */
    bool reads;                         /* of WRITE: what it comes to is wanted */
    struct sumac_communication_options options;
};

/* A call under way. */
struct calls {
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    const struct call **made; /* (replicas), NULL: not yet */
    bool *returned;           /* (replicas): the function has */
    uint32_t made_count, returned_count;
    uint32_t left_count;        /* that have heard of the present one */
    uint64_t number;            /* of the present one, from 1 */
    bool over;                  /* … and what it came to: */
    struct sumac_value *result; /* of all replicas the same, or regrouped */
    struct sumac_error error;
    struct sumac_error broken; /* a call was left by some: none of this run comes to anything */
};

struct sumac_replica_context {
    struct sumac_strategy *strategy;
    uint32_t index;             /* among those of this process */
    uint32_t id;                /* in sync group */
    struct device_queue *queue; /* NULL: the caller's thread */
};

/* One run of a function. */
struct run {
    struct sumac_strategy *strategy;
    sumac_replica_function *function;
    void *context;
    struct sumac_value *args, *kwargs;
    struct replica_run *replicas; /* (replicas) */
};
struct replica_run {
    struct run *run;
    struct sumac_replica_context *replica;
    enum sumac_status status;
    struct sumac_error error;
    struct sumac_value *result;
};

struct sumac_strategy {
    struct sumac_strategy_options options; /* filled in */
    uint32_t replicas;                     /* of this process, … */
    uint32_t first, in_sync; /* … the id of the first, and how many there are in all */
    struct device **devices; /* (replicas), of MIRRORED; or NULL */
    struct sumac_replica_context *contexts; /* (replicas) */
    pthread_mutex_t running;                /* one run at a time */
    struct replica_run *runs;               /* (replicas), of that */
    struct calls calls;
};

/* call.c */
/* Fails  INVALID_ARGUMENT. */
enum sumac_status
communication_check(const struct sumac_communication_options *options, struct sumac_error *error);
enum sumac_status reduce_op_check(enum sumac_reduce_op op, struct sumac_error *error);
/* In this replica, with all others. Gives *result: what it came to, one value for all. */
enum sumac_status call_with_others(
    struct sumac_replica_context *replica, const struct call *call, struct sumac_value **result,
    struct sumac_error *error);
bool calls_init(struct sumac_strategy *strategy);
void calls_deinit(struct sumac_strategy *strategy);
/* A run begins; a replica's function has returned. */
void calls_begin(struct sumac_strategy *strategy);
void calls_returned(
    struct sumac_strategy *strategy, uint32_t replica, const struct sumac_error *error);

/* collect.c */
/* All leaves reduced, or gathered, over values of the same nest that have been compared. */
enum sumac_status collect_all_reduce(
    enum sumac_reduce_op op, struct sumac_value *const *values, uint32_t count,
    struct sumac_value **result, struct sumac_error *error);
enum sumac_status collect_all_gather(
    int64_t axis, struct sumac_value *const *values, uint32_t count, struct sumac_value **result,
    struct sumac_error *error);

#endif
