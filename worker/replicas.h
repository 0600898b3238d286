/* SPDX-License-Identifier: Apache-2.0 */
/* replicas.h -- the replicas of this process: a device each, with a queue, and work that runs in
 * all of them at once. A worker's steps and a strategy's runs are made of it. */
#pragma once

#include "devices.h"

struct replicas {
    uint32_t count;
    struct device **devices;      /* (count) */
    struct device_queue **queues; /* (count); NULL: the caller's thread it is */
};

/* Open these devices (NULL: none, one replica, which is the caller's thread).
 * Gives    *replicas; close, also where it fails. Fails  RESOURCE_EXHAUSTED; as device_open. */
enum sumac_status
replicas_open(const struct devices *devices, struct replicas *replicas, struct sumac_error *error);
/* Finish what the queues have, and close them; then the devices. A zeroed one is fine. */
void replicas_close_queues(struct replicas *replicas);
void replicas_close(struct replicas *replicas);

/* Put it into a replica's queue, or run it here. */
void replicas_begin(
    const struct replicas *replicas, uint32_t index, device_work *work, void *context);
/* Wait for the first `count` queues (NULL: no wait) by device_settle or device_complete.
 * *failed (NULL: not wanted) is which one failed, or was not over in time (DEADLINE_EXCEEDED).
 * Fails    as the first that failed. */
typedef enum sumac_status device_wait_for(struct device_queue *queue, uint64_t until_ns);
enum sumac_status queues_wait(
    struct device_queue *const *queues, uint32_t count, device_wait_for *wait, uint64_t until_ns,
    uint32_t *failed);

/* Work on one of the devices does not end, and so may that on the others: device_give_up. */
void replicas_give_up(const struct replicas *replicas);
bool replicas_are_given_up(const struct replicas *replicas);
/* What helps when their work cannot go on: "make another worker", as `anew` says, or, of a GPU that
 * nothing else frees, the end of the process. */
const char *replicas_remedy(const struct replicas *replicas, const char *anew);
