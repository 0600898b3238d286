/* worker.h -- a worker process: replicas of a step on local devices, reduced to one push per worker.
 *
 * tf.distribute's ParameterServerStrategy seen from a worker: variables live on the ps; the worker pulls them, runs the
 * step once per replica (a device each: CPU:0 … CPU:n-1, one thread each), reduces the replicas' gradients by SUM or MEAN,
 * and pushes the result. Pulls for the next step run while this one computes, as far as the staleness asked for allows.
 */
#ifndef SUMAC_WORKER_H
#define SUMAC_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/client.h"

struct sumac_worker;

enum sumac_reduce_op { SUMAC_REDUCE_SUM = 1, SUMAC_REDUCE_MEAN = 2 };

/* What a replica sees of one step. */
struct sumac_replica {
    uint32_t id;                     /* 0 … count - 1 in this worker */
    uint32_t count;                  /* replicas of this worker */
    uint64_t step;                   /* this worker's, from 0 */
    const struct sumac_tensor *values;    /* the variables, in the order of the options; read only */
    const struct sumac_tensor *gradients; /* to be written whole: this replica's, same shapes */
    double weight;                   /* out: examples it stands for; preset to 1 */
    void *user;
};

/* The replica step. Another status than OK ends the run with it. Threads  one per device; replicas of a step run at once. */
typedef enum sumac_status sumac_step_function(struct sumac_replica *replica);

struct sumac_worker_options {
    struct sumac_client *client;     /* borrowed; joined */
    uint32_t replicas;               /* 0: one */
    struct sumac_variable *const *variables;
    uint32_t variable_count;
    enum sumac_reduce_op reduce;     /* over the replicas of this worker; 0: MEAN */
    sumac_step_function *step;
    void *user;
    uint32_t pushes_in_flight;       /* 0: 1. How many of its own pushes a step may run ahead of */
    bool sequential;                 /* wait for each push and pull before the next step: no overlap */
};

/* Gives  *worker; destroy with sumac_worker_destroy. Starts the device threads. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_worker_create(const struct sumac_worker_options *options, struct sumac_worker **worker,
                    struct sumac_error *error);

/* Run one step: on return its push is under way, and earlier ones beyond pushes_in_flight are applied.
 * Threads  one at a time. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_worker_step(struct sumac_worker *worker,
                                                            struct sumac_error *error);

/* Wait until every push under way is applied. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_worker_flush(struct sumac_worker *worker,
                                                             struct sumac_error *error);

/* The values that the last step ran on. Lends  valid until the next step. */
SUMAC_API const struct sumac_tensor *sumac_worker_values(const struct sumac_worker *worker);

/* Flushes nothing; NULL is fine. */
SUMAC_API void sumac_worker_destroy(struct sumac_worker *worker);

/* The `index`-th device's name, "CPU:0", into text. Threads  any. */
SUMAC_API const char *sumac_device_name(uint32_t index, char *text, uint32_t text_bytes);

#endif
