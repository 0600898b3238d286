/* SPDX-License-Identifier: Apache-2.0 */
/* transfers.h -- values on their way to the devices, and gradients back, beside what these compute.
 *
 *     replica 0   queue      | step k                      | reduce a | reduce b |
 *                 transfers  | values of k+1 |                        | copy a   | copy b |
 *     replica 1   queue      | step k                      | reduce a | reduce b |
 *                 transfers  | values of k+1 |
 *
 * Each replica's device has a second queue for its copies. Devices that work on the host's memory
 * itself have none, and nothing is copied.
 */
#pragma once

#include "replicas.h"
#include "tensors.h"

/* Copied at once, and more than that by the last variable. */
#define TRANSFERS_PART_BYTES (UINT64_C(16) << 20)

struct step_trace;

/* Gradients, side by side in their buffer, that are copied together. */
struct transfers_part {
    uint32_t end; /* the first behind it */
    uint64_t offset_bytes, bytes;
    struct device_event *written; /* by replica 0's queue: it may be copied */
};

struct transfers {
    const struct replicas *replicas;
    struct device_queue **queues;  /* (replicas); NULL: nothing is copied */
    struct device_event **arrived; /* (replicas): the values of the last transfers_send */
    struct transfers_part *parts;  /* (part_count), all gradients */
    uint32_t part_count;
    struct sumac_buffer *fetch_to; /* of the last transfers_fetch */
    const struct sumac_buffer *fetch_from;
    bool sent;                 /* values that no queue has awaited yet */
    struct step_trace *traced; /* which is told of the copies; NULL: none is */
};

/* For gradients that are laid out as these, which come back in parts of `part_bytes` or a little
 * more.
 * Borrows  the replicas. Gives    *transfers; close, also where it fails. A zeroed one is fine.
 * Fails    RESOURCE_EXHAUSTED. */
enum sumac_status transfers_open(
    const struct replicas *replicas, const struct tensors *gradients, uint64_t part_bytes,
    struct transfers *transfers, struct sumac_error *error);
/* Finish what is under way. */
void transfers_close(struct transfers *transfers);

/* Put values on their way to a replica's device; have its queue await them. */
void transfers_send(
    struct transfers *transfers, uint32_t replica, const struct tensors *to,
    const struct tensors *from);
void transfers_await(struct transfers *transfers, uint32_t replica);

/* To be recorded in replica 0's queue behind the last of a part's gradients; NULL: this is none. */
struct device_event *transfers_written(const struct transfers *transfers, uint32_t gradient);
/* Record in the queue that all gradients are written, where no reduction does. */
void transfers_record_written(struct transfers *transfers);
/* Put the gradients of replica 0's device, each part when it is written, on their way to the host.
 */
void transfers_fetch(
    struct transfers *transfers, const struct tensors *to, const struct tensors *from);

/* What failed, and where it is said why (device_why). */
struct transfers_failure {
    uint32_t replica;
    const struct device_queue *queue; /* the replica's, or its copies' */
};

/* Wait until nothing is under way. Fails  as the first that failed, which is left in *failure.
 * DEADLINE_EXCEEDED: that one is not over by then. */
enum sumac_status
transfers_join(struct transfers *transfers, uint64_t until_ns, struct transfers_failure *failure);
