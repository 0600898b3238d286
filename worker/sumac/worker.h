/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h -- a worker process: replicas of a step on local devices, reduced to one push per
 * worker.
 *
 * tf.distribute's ParameterServerStrategy seen from a worker: variables live on the ps; the worker
 * pulls them, runs the step once per replica (a device each: CPU:0 … CPU:n-1, one thread each, or
 * GPUs), reduces the replicas' gradients by SUM or MEAN (those of GPUs by NCCL), and pushes the
 * result. The pull for the next step runs while this one computes, as far ahead of the worker's own
 * pushes as the options allow.
 */
#ifndef SUMAC_WORKER_H
#define SUMAC_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/client.h"
#include "sumac/reduce.h"
#include "sumac/replica.h"

#define SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX 64

struct sumac_worker;

/* Whether steps are synchronous. `true` is YES. */
enum sumac_synchronous {
    SUMAC_SYNCHRONOUS_DEFAULT = 0, /* as the environment's SUMAC_SYNCHRONOUS says, which `sumac run
                                      --synchronous` sets to 1; else NO */
    SUMAC_SYNCHRONOUS_YES = 1,
    SUMAC_SYNCHRONOUS_NO = 2, /* whatever the environment says */
};

struct sumac_worker_options {
    struct sumac_client *client; /* borrowed; joined */
    /* "auto": on GPUs, if there are as many as replicas are asked for, and the program has a step
     * for them, else on CPUs; "cpu:4": four replicas on CPUs; "gpu:0,2": one on each of these GPUs;
     * "gpu": on all. NULL: as the environment's SUMAC_DEVICES says, which `sumac run --devices`
     * sets, or auto. */
    const char *devices;
    uint32_t replicas; /* at most SUMAC_REPLICAS_MAX; 0: as the environment's SUMAC_REPLICAS says,
                          which `sumac run --replicas` sets; or as many as there are devices, one
                          of CPUs */
    struct sumac_client_variable *const *variables; /* copied */
    uint32_t variable_count;
    uint32_t pushed_count; /* the first pushed_count are pushed, the others only pulled; 0: all */
    /* SUM, or MEAN (0, too): over the replicas of this worker, in their order. Half types are
     * summed in float32 and rounded once. MEAN is of float dtypes */
    enum sumac_reduce_op reduce;
    sumac_replica_function *step; /* on CPUs. NULL: the program has no step for CPUs */
    sumac_replica_function
        *cuda_step;            /* on GPUs. NULL: it has none for GPUs. One of both is given */
    void *context;             /* what the step is given */
    uint32_t pushes_in_flight; /* 0: 1. How many of its own pushes a step may run ahead of */
    bool sequential;           /* wait for each push before the next pull: no overlap */
    bool bounded; /* no step begins while another member is more than lag_max steps behind, … */
    uint64_t lag_max; /* … so that this one is never more than lag_max + 1 ahead of the slowest.
                         With 0 a pull does not overlap with the step before it */
    /* A step's push is this worker's contribution to a synchronous step: the update is that of all
     * members together, and the next step computes on it. Each waits for its push then, as with
     * `sequential`, and pushes_in_flight is 1. The variables' aggregation (not NONE, where there
     * are others) says how contributions become one. Gradients of half types are of those types as
     * ever; what becomes of them is contributed in float32. A step whose weights are all 0
     * contributes nothing, and the others' is made without it. Where ps 0 has a --quorum, a step
     * that was taken without this worker is no error: it goes on with the newest one
     * (sumac_worker_late counts them). */
    enum sumac_synchronous synchronous;
    uint32_t timeout_ms; /* of each wait for a ps; 0: the client's */
    /* How long the work of a step on GPUs may take, once its functions have returned: the
     * reduction, and then the copies. 0: 600000 (ten minutes); 2^32 - 1: no limit. Then the
     * client's log names the replica, and a reduction is ended on all GPUs: this step and each
     * after it fail. A GPU whose work has not ended after as much time again is given up: the step
     * fails with DEADLINE_EXCEEDED, the worker leaves its threads and memory as they are, and only
     * the end of the process frees the GPU. A call of sumac_device_wait in a step waits as long at
     * most. */
    uint32_t step_timeout_ms;
    bool abort_when_stuck; /* true: a GPU that is given up ends the process by SIGABRT, so that
                              something outside may start it again */
    /* The loss was multiplied by this before the gradients were computed, so that those of half
     * types don't vanish: what is pushed is divided by it on the ps. Finite, above 0; 0: 1. Float
     * variables only. */
    double loss_scale;
    /* The largest norm of what a step pushes, over all variables, after loss_scale; see
     * sumac_push_options. Of a synchronous contribution that of its mean. 0: not clipped. */
    double clip_norm;
    /* Write what the steps do, and when, to this file, in Chrome's trace event format, over one
     * that is there: computing, reducing, copying, pulling, pushing, waiting, a track for each
     * replica. Where the cluster lists more members than this one, each writes a file of its own:
     * worker 0 "steps.worker-0.json" for "steps.json". What ends it early (a full disk; 1 GiB) is
     * said in the client's log, and ends nothing else. "": none. NULL: as the environment's
     * SUMAC_TRACE says, which `sumac run --trace` sets. */
    const char *trace;
};

/* Starts the device threads.
 *
 * Gives    *worker; destroy with sumac_worker_destroy, before its client is closed.
 * Fails    INVALID_ARGUMENT: no client, step or variable, one that is NULL, too many of anything,
 *          lag_max without `bounded`, an unknown `synchronous`, unknown devices, a trace that
 * cannot be written, an unknown reduction, or one that a variable's dtype does not have; the text
 *          names the variable. RESOURCE_EXHAUSTED. FAILED_PRECONDITION: another worker is writing
 * its trace to that file. Of GPUs: FAILED_PRECONDITION, no driver, no GPU, or no NCCL for several;
 * OUT_OF_RANGE: none of that number. The text has the remedy, and sumac_exit_code is 2. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_worker_create(
    const struct sumac_worker_options *options, struct sumac_worker **worker,
    struct sumac_error *error);

/* Run one step: on return its push is under way, and earlier ones beyond pushes_in_flight are
 * applied. Each replica's gradients count with its weight
 * (sumac_replica_set_weight); the push stands for their sum.
 *
 * Fails    with what a replica returned, what a ps refused (an earlier step's push, too: it was
 *          applied nowhere), or what ended the session. FAILED_PRECONDITION: MEAN, and all weights
 *          are 0, where steps are not synchronous; (ZERO_WEIGHT) where they are, and all members'
 *          are. The step's own push is not made then; another step may be tried. Of a child of
 *          the process that made the worker, and from within a step of it: FAILED_PRECONDITION.
 * Threads  one at a time: another is FAILED_PRECONDITION. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_worker_step(struct sumac_worker *worker, struct sumac_error *error);

/* Wait until every push under way is applied. sumac_worker_values still has what the last step ran
 * on: sumac_worker_pull reads what the pushes made of it. Fails  as sumac_worker_step. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_worker_flush(struct sumac_worker *worker, struct sumac_error *error);

/* Wait until every push under way is applied, then read the variables as they are now. Afterwards
 * sumac_worker_values has these values. The next step does not depend on the call, and a `bounded`
 * worker does not wait for others in it.
 * Fails    as sumac_worker_flush, and as sumac_client_pull. The values are then undefined
 *          until the next step or pull.
 * Threads  as sumac_worker_step. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_worker_pull(struct sumac_worker *worker, struct sumac_error *error);

/* The values that the last step ran on, or those that a sumac_worker_pull since has read, in the
 * order of the options. They are older than the last step's own push. NULL before the first step or
 * pull.
 * Lends  valid until the next step or pull. */
SUMAC_API const struct sumac_tensor *sumac_worker_values(const struct sumac_worker *worker);

/* Steps that were finished. */
SUMAC_API uint64_t sumac_worker_steps(const struct sumac_worker *worker);

/* Of them, those whose contribution came late: the synchronous step was taken without it, and it
 * counts nowhere (--quorum of ps 0). Of those that are over; 0 without a quorum. */
SUMAC_API uint64_t sumac_worker_late(const struct sumac_worker *worker);

/* Ends the device threads. Waits for what is under way, at most timeout_ms: the network may
 * still be reading the gradients. No push that a step or a flush has waited for in vain is waited
 * for again. NULL is fine. Nothing is done in a child of the process that made
 * it, nor within a step of the worker, as by a handler of atexit: the client's log says so. */
SUMAC_API void sumac_worker_destroy(struct sumac_worker *worker);

#endif
