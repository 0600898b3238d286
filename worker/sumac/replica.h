/* SPDX-License-Identifier: Apache-2.0 */
/* replica.h -- one replica, as the function that runs in it sees it.
 *
 * A worker's step (sumac/worker.h) and a strategy's run (sumac/strategy.h) call a function of one
 * type, once in each replica, all at once. Both tell it the replica's id, the number of replicas
 * and the device. A step adds its number, the variables' values, the gradients to write and the
 * weight. A run adds the arguments, the result and the collectives of sumac/strategy.h.
 *
 * A replica is lent to the function until that returns.
 */
#ifndef SUMAC_REPLICA_H
#define SUMAC_REPLICA_H

#include <stdint.h>

#include "sumac/device.h"
#include "sumac/tensor.h"
#include "sumac/value.h"

#define SUMAC_REPLICAS_MAX 256 /* of one process */

struct sumac_replica;

/* What runs in each replica. `context` is that of the worker's or the run's options. A status other
 * than OK ends the step or the run with it; `error` takes the reason, if the function has one.
 *
 * On a GPU the function puts work into the device's stream (sumac_device_launch,
 * sumac_device_stream) and returns without waiting for it. A later failure on the device
 * ends the step or the run, too. A function that ends its thread (pthread_exit) has failed with
 * ABORTED. Threads  one for each replica, with its GPU's context current. They run at once. */
typedef enum sumac_status
sumac_replica_function(struct sumac_replica *replica, void *context, struct sumac_error *error);

/* ReplicaContext.replica_id_in_sync_group, num_replicas_in_sync: of a run, among the replicas of
 * all workers; of a worker's step, among those of this worker. 0 of NULL. Threads  any. */
SUMAC_API uint32_t sumac_replica_id(const struct sumac_replica *replica);
SUMAC_API uint32_t sumac_replica_count(const struct sumac_replica *replica);

/* The device that it runs on. Lends  it. NULL: of NULL, and of SUMAC_STRATEGY_DEFAULT, whose
 * replica is the caller's thread. */
SUMAC_API struct sumac_device *sumac_replica_device(const struct sumac_replica *replica);

/* ---- of a worker's step */

/* The number of this worker's step, from 0. */
SUMAC_API uint64_t sumac_replica_step(const struct sumac_replica *replica);

/* The value of variable `index`, in the order of the worker's options, in the memory of the
 * replica's device. It is read only. The tensors are an array: those of the next variables follow
 * it. Lends  it. NULL: there is no such variable. */
SUMAC_API const struct sumac_tensor *
sumac_replica_value(const struct sumac_replica *replica, uint32_t index);

/* Where the gradient of variable `index` goes, in the memory of the replica's device: the function
 * writes all of it. They are an array, too. Lends  it. NULL: there is no such variable, or it is
 * not pushed. */
SUMAC_API const struct sumac_tensor *
sumac_replica_gradient(const struct sumac_replica *replica, uint32_t index);

/* How many examples the gradients stand for: finite, at least 0, and 1 unless it is set. With
 * another number the worker's step fails (INVALID_ARGUMENT). A replica of a run has no weight. */
SUMAC_API void sumac_replica_set_weight(struct sumac_replica *replica, double weight);

/* ---- of a run */

/* What is this replica's own of the run's args, a tuple or list, and kwargs, a dict; both are empty
 * where the options have none. Lends  them, until the function returns. NULL: it is not in a run.
 */
SUMAC_API const struct sumac_value *sumac_replica_args(const struct sumac_replica *replica);
SUMAC_API const struct sumac_value *sumac_replica_kwargs(const struct sumac_replica *replica);

/* What the function returns. Without it, the replica's result is the value `none`; a second one
 * replaces the first.
 * Takes    value. NULL, which a constructor gives when there is no memory, fails the run
 *          (RESOURCE_EXHAUSTED), unless the function returns another status than OK. */
SUMAC_API void sumac_replica_return(struct sumac_replica *replica, struct sumac_value *value);

#endif
