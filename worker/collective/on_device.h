/* SPDX-License-Identifier: Apache-2.0 */
/* on_device.h -- what a strategy does on devices whose memory the host does not see: values are
 * brought to the devices, reduced and gathered there.
 *
 *     queue of replica i        | step ………… | all_reduce: come, wait |
 *     the strategy's beside it  |           | await come | NCCL's part |
 *
 * A replica's queue has its function while the function runs. So the strategy has a queue of its
 * own beside it on each device. That queue awaits, by an event, what the function had put into its
 * stream before the call. The results are whole when the call returns.
 */
#pragma once

#include "device_group.h"
#include "strategy.h"

#define ON_DEVICE_KEPT_MAX 1024u
#define ON_DEVICE_KEPT_BYTES_MAX (UINT64_C(1) << 30)

struct on_device {
    struct device_queue *queues[SUMAC_REPLICAS_MAX]; /* beside those that the replicas run in */
    struct device_event *come[SUMAC_REPLICAS_MAX];   /* in its queue when a replica makes a call */
    struct kept *memory[SUMAC_REPLICAS_MAX];
    double weights[SUMAC_REPLICAS_MAX]; /* of a mean: all the same */
    pthread_mutex_t mutex;              /* guards what follows, and who uses the queues */
    struct device_group *group;         /* NULL: nothing was exchanged yet */
    struct sumac_error failed;          /* with which it ended */
};

/* strategy->on_device, where its devices have memory of their own; else nothing.
 * Fails  RESOURCE_EXHAUSTED; as the device. */
enum sumac_status on_device_open(struct sumac_strategy *strategy, struct sumac_error *error);
/* Ends what runs. Nothing of NULL. */
void on_device_close(struct sumac_strategy *strategy);

/* On the replica's thread: what it has put into its stream comes before what the call does. */
void on_device_come(struct sumac_replica *replica);
/* The same of this thread's replica, if it has one, of what a function within the call has put
 * there since. */
void on_device_come_present(const struct sumac_strategy *strategy);
/* Wait for what this thread's replica, if it has one, has in its stream.
 * Fails  as the device. */
enum sumac_status
on_device_wait_present(const struct sumac_strategy *strategy, struct sumac_error *error);
/* Wait, when all functions of a run have returned, for what they have begun. *failed is the replica
 * of which the status is. */
enum sumac_status on_device_complete(struct sumac_strategy *strategy, uint32_t *failed);

/* Have the devices been given up? Fails  with why. */
enum sumac_status on_device_check(struct sumac_strategy *strategy, struct sumac_error *error);
/* Under the mutex. A line of the client's log, or, without a client, of standard error. */
void on_device_say(const struct sumac_strategy *strategy, const char *line);
/* Under the mutex: the devices' work does not end, as `why` says. Every later call fails so. */
void on_device_give_up(struct sumac_strategy *strategy, const struct sumac_error *why);

/* Wait for all that the replicas had in their streams when they came: any thread may read it then.
 * Fails  as the device. */
enum sumac_status on_device_settle(struct sumac_strategy *strategy, struct sumac_error *error);

/* Put one into the queue of each replica that has any (the others' are NULL; NULL: none is put into
 * any), behind what it has in its stream, and wait for all of them: what they write is whole then.
 * Borrows  the updates.
 * Fails    as the device; what they write is anything then. */
enum sumac_status on_device_update(
    struct sumac_strategy *strategy, struct device_update *const *updates,
    struct sumac_error *error);

/* What a queue of a replica's device has failed with: "replica 1 (GPU:1) has failed: …". */
enum sumac_status on_device_fail(
    const struct sumac_strategy *strategy, uint32_t index, const struct device_queue *queue,
    enum sumac_status status, struct sumac_error *error);

/* ---- values */

/* A leaf with its elements on the device of replica `index`: itself, or a copy.
 * Gives *placed. Fails  RESOURCE_EXHAUSTED, naming the device; as the device. */
enum sumac_status on_device_place(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *leaf,
    struct sumac_value **placed, struct sumac_error *error);
/* The same of each leaf of a value that is not distributed; of those alone that are on a device in
 * `like`, of the same nest (NULL: of all). On devices whose memory the host sees it stays as it is.
 */
enum sumac_status on_device_place_like(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *like,
    const struct sumac_value *value, struct sumac_value **placed, struct sumac_error *error);
/* A leaf, on the device of each replica: mirrored. */
enum sumac_status on_device_spread(
    struct sumac_strategy *strategy, const struct sumac_value *leaf, struct sumac_value **spread,
    struct sumac_error *error);
/* What replicas have the same of, once, and here. */
enum sumac_status on_device_take_one(
    const struct sumac_value *value, struct sumac_value **one, struct sumac_error *error);
/* A tensor of the replica's device, not written yet. Gives *made. Fails  RESOURCE_EXHAUSTED. */
enum sumac_status on_device_make(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_tensor *like,
    struct sumac_value **made, struct sumac_error *error);
/* Is what each replica has on its device? */
bool on_device_are(
    const struct sumac_strategy *strategy, const struct sumac_value *const *leaves, uint32_t count);

/* ---- calls of a group, which are begun together */

struct on_device_call {
    enum group_call_kind kind;
    enum sumac_reduce_op op; /* of ALL_REDUCE and REDUCE */
    enum sumac_dtype dtype;  /* filled in, as what follows */
    const void **from;       /* (replicas) … */
    void **to;               /* (replicas) … */
    uint64_t *elements;      /* (replicas), in one piece of memory with the others */
    uint64_t bytes;          /* that a replica gets */
};

struct on_device_calls {
    struct sumac_strategy *strategy;
    struct sumac_communication_options options; /* filled in */
    const char *name;                           /* "all_reduce" */
    struct on_device_call *items;               /* (count) */
    uint32_t count, room;
};

/* Add a call of the replicas' tensors, each on its device (on_device_are); its result has that
 * shape and is whole when on_device_run is over. Fails  RESOURCE_EXHAUSTED. */
enum sumac_status on_device_add(
    struct on_device_calls *calls, const struct on_device_call *kind,
    const struct sumac_tensor *const *tensors, const struct sumac_shape *shape,
    struct sumac_value **result, struct sumac_error *error);
/* Of mirrored rows and indices each replica's slices. Takes  rows, indices. */
enum sumac_status on_device_make_slices(
    struct sumac_value *rows, struct sumac_value *indices, const struct sumac_shape *dense,
    struct sumac_value **slices, struct sumac_error *error);

/* Begin them, up to bytes_per_pack at once, and wait.
 * Fails    DEADLINE_EXCEEDED, naming who has not come; as the devices, and NCCL. All later ones of
 *          the strategy fail as this one then. */
enum sumac_status on_device_run(struct on_device_calls *calls, struct sumac_error *error);
/* Nothing of them is begun any more. */
void on_device_forget(struct on_device_calls *calls);
