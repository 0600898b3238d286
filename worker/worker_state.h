/* SPDX-License-Identifier: Apache-2.0 */
/* worker_state.h -- a worker, for its own files: worker.c has the step, worker_devices.c the part
 * of it that the devices do together. */
#pragma once

#include <sys/types.h>

#include "device_group.h"
#include "devices.h"
#include "replica.h"
#include "replicas.h"
#include "tensors.h"
#include "transfers.h"

struct step_trace;

/* One replica and its device. */
struct runner {
    struct sumac_worker *worker;
    struct sumac_replica replica;
    struct sumac_error error; /* of its step */
    struct tensors values[2]; /* the worker's, where the device reads them */
    struct tensors gradients; /* of replicas 1 and up; replica 0 writes into the step's place */
};

/* Gradients, and the push that reads them. */
struct tensor_place {
    struct tensors gradients;
    struct tensors written;  /* the same, where replica 0's device writes them */
    struct tensors widened;  /* of `halves`: what is pushed of them */
    struct sumac_push *push; /* NULL: the place is free */
};

struct sumac_worker {
    struct sumac_worker_options options; /* defaults filled in; `variables` is our copy */
    struct devices devices;              /* that replicas run on … */
    struct replicas replicas;            /* … and are open */
    struct runner *runners;              /* (options.replicas) */
    struct transfers transfers;          /* between the host and them */
    struct device_group *group;          /* of their queues; NULL: there is one replica */
    struct tensors values[2];            /* of the step that computes, and of the next */
    uint32_t current;                    /* which of them the last step ran on */
    struct tensor_place *places;         /* a ring, (pushes_in_flight + 1) */
    uint64_t pushed, applied;    /* pushes made, and waited for; push i is in place i % places */
    uint64_t late;               /* of them, those that a synchronous step was taken without */
    struct sumac_pull *pull;     /* under way into values[1 - current], or NULL */
    bool pulled;                 /* values[1 - current] is complete */
    struct sumac_fetch *fetches; /* (variable_count) */
    struct sumac_delta *deltas;  /* (pushed_count) */
    /* Gradients of all replicas, for the reduction: (pushed_count, replicas). */
    void **source_data;
    uint64_t *source_elements;
    double *weights; /* (replicas) */
    /* Of those that are pushed in synchronous steps the ones of half types, which contribute
     * float32: (half_count), in their order. */
    struct sumac_client_variable **halves;
    uint32_t half_count;
    uint64_t steps;
    bool has_values;           /* values[current] may be shown */
    struct step_trace *traced; /* NULL: no trace is written */
    bool waited_out;           /* the last wait for a push ended before that push */
    struct sumac_error lost;   /* what ended the group, and each step since; OK: nothing has */
    pid_t process;             /* whose threads the devices are */
    atomic_bool is_taken; /* by a call that is under way, in another thread or around this one */
};

/* The options given, with what SUMAC_DEVICES, SUMAC_REPLICAS, SUMAC_SYNCHRONOUS and SUMAC_TRACE say
 * and the defaults where they say nothing; `step` is that of the devices, and a trace without a
 * name is NULL. *devices, where they have no kind yet, are chosen. Fails  as sumac_worker_create.
 */
enum sumac_status worker_options_read(
    const struct sumac_worker_options *options, struct sumac_worker_options *filled,
    struct devices *devices, struct sumac_error *error);

/* A replica's function, or what it began on its device, has failed. Returns  the status. */
enum sumac_status worker_tell_failed(
    struct sumac_worker *worker, const struct transfers_failure *failure, enum sumac_status status,
    struct sumac_error *error);
/* The worker's devices cannot meet any more, since `lost`. Returns  its status. */
enum sumac_status worker_tell_lost(const struct sumac_worker *worker, struct sumac_error *error);

/* All replicas have written their gradients, or have begun to: begin to add them up, and to bring
 * them to the host. */
enum sumac_status worker_reduce(
    struct sumac_worker *worker, const struct tensor_place *place, double weight,
    struct sumac_error *error);
/* Wait until nothing of the step is under way on any device. `reduced` is what worker_reduce
 * returned; the first failure counts. */
enum sumac_status worker_finish_devices(
    struct sumac_worker *worker, enum sumac_status reduced, struct sumac_error *error);
