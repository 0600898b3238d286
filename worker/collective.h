/* SPDX-License-Identifier: Apache-2.0 */
/* collective.h -- what the replicas of this worker compute together: reduce, all_reduce,
 * all_gather, broadcast, behind a table that each kind of device implements.
 *
 *     collective_open     a group: a queue of each replica's device, in the order of the replicas
 *     collective_reduce … calls are added, and nothing runs
 *     collective_start    all that were added begin at once, on every device, after what its queue
 *                         has
 *     collective_wait     they are over
 *
 * A group meets within its calls: no device reads another's values before that one has come so far.
 * So a device's groups are started in the same order on all of its peers. cpu_collective.c is the
 * CPU's, cuda/cuda_collective.c that of GPUs; another kind's is a file with such a table, which the
 * kind's own table names.
 */
#ifndef WORKER_COLLECTIVE_H
#define WORKER_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "sumac/tensor.h"
#include "sumac/worker.h"

#define COLLECTIVE_NO_LIMIT UINT32_MAX /* of a wait's milliseconds */

struct collective_ops;

/* Each kind's own struct begins with this. */
struct collective_group {
    const struct collective_ops *ops;
    uint32_t replicas;
    uint32_t calls_max; /* to be added before a start */
    uint32_t calls;     /* added since the last start */
    bool running;       /* started, and not waited for */
    bool has_ended;     /* as the last wait found it: nothing is begun any more */
};

/* What is exchanged. All arrays, and what they point to, are lent until the wait is over. */
struct collective_values {
    enum sumac_dtype dtype;
    const void *const *from;  /* (replicas), what each gives; in its device's memory */
    void *const *to;          /* (replicas), what each gets: whole, or, in place, from[i] */
    const uint64_t *elements; /* (replicas) that each gives; the same of all, but in all_gather */
    const double *weights;    /* (replicas), finite, not all 0: of MEAN only */
};

/* A kind of device's collectives. The functions are called by those below, which check first. */
struct collective_ops {
    bool (*has)(enum sumac_reduce_op op, enum sumac_dtype dtype);
    enum sumac_status (*open)(
        struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
        struct collective_group **group, struct sumac_error *error);
    void (*close)(struct collective_group *group);
    void (*reduce)(
        struct collective_group *group, enum sumac_reduce_op op, uint32_t root,
        const struct collective_values *values);
    void (*all_reduce)(
        struct collective_group *group, enum sumac_reduce_op op,
        const struct collective_values *values);
    void (*all_gather)(struct collective_group *group, const struct collective_values *values);
    void (*broadcast)(
        struct collective_group *group, uint32_t root, const struct collective_values *values);
    void (*record)(struct collective_group *group, struct device_event *event);
    void (*start)(struct collective_group *group);
    enum sumac_status (*wait)(
        struct collective_group *group, uint32_t timeout_ms, struct sumac_error *error);
    void (*abort)(struct collective_group *group);
};

extern const struct collective_ops cpu_collective_ops, cuda_collective_ops;

/* May values of that dtype be reduced so? */
bool collective_has(
    const struct collective_ops *ops, enum sumac_reduce_op op, enum sumac_dtype dtype);

/* A group of replicas.
 * Borrows  the queues, until the group is closed.
 * Gives    *group; close with collective_close, which waits for what runs (abort it first if it may
 *          never end). NULL is fine.
 * Fails    INVALID_ARGUMENT: no replica, or devices of several kinds. RESOURCE_EXHAUSTED. */
enum sumac_status collective_open(
    struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
    struct collective_group **group, struct sumac_error *error);
void collective_close(struct collective_group *group);

/* Add a call: to[root] gets Σ g or Σ weight · g ÷ Σ weight of the replicas, in their order
 * (worker.h: SUMAC_REDUCE_…); every to[i] gets it; every to[i] gets all values, one replica's after
 * the other's, along their first axis; every to[i] gets from[root].
 * Fails    INVALID_ARGUMENT: a reduction that the dtype does not have, a dtype or root that is
 *          none, values of unequal size (but all_gather's), MEAN without weights.
 *          FAILED_PRECONDITION: the group runs. RESOURCE_EXHAUSTED: calls_max. */
enum sumac_status collective_reduce(
    struct collective_group *group, enum sumac_reduce_op op, uint32_t root,
    const struct collective_values *values, struct sumac_error *error);
enum sumac_status collective_all_reduce(
    struct collective_group *group, enum sumac_reduce_op op, const struct collective_values *values,
    struct sumac_error *error);
enum sumac_status collective_all_gather(
    struct collective_group *group, const struct collective_values *values,
    struct sumac_error *error);
enum sumac_status collective_broadcast(
    struct collective_group *group, uint32_t root, const struct collective_values *values,
    struct sumac_error *error);

/* Have the event, of one of the replicas' devices, recorded in its queue behind the call that was
 * added last, and those before that; also where that comes to nothing. It is awaited after the
 * start. */
void collective_record(struct collective_group *group, struct device_event *event);

/* Begin the calls that were added. */
void collective_start(struct collective_group *group);

/* Wait until they are over; of a group that does not run, no time at all.
 * Fails    DEADLINE_EXCEEDED, naming the replicas that have not come: the calls are still under
 *          way. ABORTED: nothing is touched any more, and what the values are is not known.
 *          RESOURCE_EXHAUSTED: a device has no memory for the calls. None of them began, and others
 *          may be started, unless the group has ended (`has_ended`). */
enum sumac_status
collective_wait(struct collective_group *group, uint32_t timeout_ms, struct sumac_error *error);

/* End what runs, and the group: whoever waits is told, and later calls are.
 * Threads  any. */
void collective_abort(struct collective_group *group);

#endif
