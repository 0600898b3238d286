/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.h -- what the replicas of this worker compute together: reduce, all_reduce,
 * all_gather, broadcast. Each kind of device implements a table of them.
 *
 *     device_group_open      makes a group of one queue for each replica, in their order.
 *     device_group_add       adds calls; nothing runs yet.
 *     device_group_start     begins all added calls on every device, behind its queue's work.
 *     device_group_wait      waits until they are over.
 *
 * The devices of a group meet within its calls. No device reads another's values before that device
 * has come to the same call. So a device's groups are started in the same order on all its peers.
 *
 * cpu_group.c has the table of the CPU, and cuda/cuda_group.c that of GPUs. A further kind
 * needs a file with such a table, which the kind's own table names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "sumac/tensor.h"
#include "sumac/worker.h"

#define DEVICE_GROUP_NO_LIMIT UINT32_MAX /* of a wait's milliseconds */

/* What is exchanged. All arrays, and what they point to, are lent until the wait is over. */
struct device_group_values {
    enum sumac_dtype dtype;
    const void *const *from;  /* (replicas), what each gives; in its device's memory */
    void *const *to;          /* (replicas), what each gets: whole, or, in place, from[i] */
    const uint64_t *elements; /* (replicas) that each gives; the same of all, but in all_gather */
    const double *weights;    /* (replicas), finite, not all 0: of MEAN only */
};

enum group_call_kind {
    GROUP_REDUCE,
    GROUP_ALL_REDUCE,
    GROUP_ALL_GATHER,
    GROUP_BROADCAST,
};

/* One that was added. */
struct group_call {
    enum group_call_kind kind;
    enum sumac_reduce_op op;
    uint32_t root;
    struct device_group_values values;
    struct device_event *over; /* NULL: this call alone is not awaited */
    /* Of NCCL's alone (cuda/nccl_call.h). */
    bool begins;             /* a batch */
    bool is_wide;            /* NCCL adds wider values (cuda/wide.h) */
    uint32_t scratch_each;   /* bytes of scratch for each element; 0: it needs none */
    uint64_t scratch_offset; /* where its scratch begins */
    uint64_t first, count;   /* the elements that are asked for now: all, or what scratch is for */
};

/* Each kind's own struct begins with this. */
struct device_group {
    const struct device_group_ops *ops;
    struct group_call *calls; /* (calls_max), call_count since the last start */
    uint32_t replicas, calls_max, call_count;
    bool running;          /* started, and not waited for */
    bool has_ended;        /* as the last wait found it: nothing is begun any more */
    pthread_mutex_t mutex; /* guards what follows, and the kind's part */
    pthread_cond_t changed;
    uint32_t promised; /* of the calls, whose events are awaited until they pass */
    bool aborted;      /* told to end */
};

/* A kind of device's collectives. The functions are called by those below, which check first. */
struct device_group_ops {
    size_t bytes; /* of the kind's own struct */
    /* Fill in the kind's part, which is zeroed. A group that fails here is freed by the kind. */
    enum sumac_status (*begin)(
        struct device_group *group, struct device_queue *const *queues, struct sumac_error *error);
    /* Its last deed is device_group_free. */
    void (*close)(struct device_group *group);
    void (*start)(struct device_group *group);
    enum sumac_status (*wait)(
        struct device_group *group, uint32_t timeout_ms, struct sumac_error *error);
    void (*abort)(struct device_group *group);
};

extern const struct device_group_ops cpu_group_ops, cuda_group_ops;

/* A group of replicas.
 * Borrows  the queues, until the group is closed.
 * Gives    *group; close it with device_group_close, which takes NULL and waits for running calls.
 *          Abort the group first if these may never end.
 * Fails    INVALID_ARGUMENT: no replica, or devices of several kinds. RESOURCE_EXHAUSTED. */
enum sumac_status device_group_open(
    struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
    struct device_group **group, struct sumac_error *error);
void device_group_close(struct device_group *group);

/* Add a call: to[root] gets Σ g or Σ weight · g ÷ Σ weight of the replicas, in their order
 * (worker.h: SUMAC_REDUCE_…); every to[i] gets it; every to[i] gets all values, one replica's after
 * the other's, along their first axis; every to[i] gets from[root]. Of `op` and `root` those count
 * that the kind of call has.
 * Fails    INVALID_ARGUMENT: a reduction that the dtype does not have, a dtype or root that is
 *          none, values of unequal size (but all_gather's), MEAN without weights.
 *          FAILED_PRECONDITION: the group runs. RESOURCE_EXHAUSTED: calls_max. */
enum sumac_status device_group_add(
    struct device_group *group, enum group_call_kind kind, enum sumac_reduce_op op, uint32_t root,
    const struct device_group_values *values, struct sumac_error *error);

/* Record the event of a replica's device in its queue, behind the calls that were added so far,
 * even if these fail. It is awaited after the start. */
void device_group_record(struct device_group *group, struct device_event *event);

/* Begin the calls that were added. */
void device_group_start(struct device_group *group);

/* Wait until the calls are over. Returns at once if the group does not run.
 * Fails    DEADLINE_EXCEEDED, naming the missing replicas: the calls are still under way.
 *          ABORTED: the group touches no memory any more, and the values are undefined.
 *          RESOURCE_EXHAUSTED: a device has no memory for the calls. No call began, and others may
 *          be started, unless the group has ended (`has_ended`). */
enum sumac_status
device_group_wait(struct device_group *group, uint32_t timeout_ms, struct sumac_error *error);

/* End the running calls, and the group. A waiting thread and later calls get ABORTED.
 * Threads  any. */
void device_group_abort(struct device_group *group);

/* ---- for the kinds */

/* Under the mutex: promise the events of all calls; pass a call's, and those that are left. */
void device_group_promise(struct device_group *group);
void device_group_pass_call(struct group_call *call);
void device_group_pass(struct device_group *group);
/* ABORTED: the group was aborted. */
enum sumac_status
device_group_fail_aborted(const struct device_group *group, struct sumac_error *error);
void device_group_free(struct device_group *group);
