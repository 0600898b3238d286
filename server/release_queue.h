/* SPDX-License-Identifier: Apache-2.0 */
/* release_queue.h -- ids handed from any thread to the lane's, without a lock: what gRPC's "slice
 * released" callback does.
 *
 * Many producers, one consumer: a lock-free stack of nodes that the consumer takes whole and
 * reverses (Treiber, 1986; no ABA, since only push and take-all exist). Includes no gRPC, so that
 * it runs under the thread sanitizer.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct release_node {
    struct release_node *next;
    uint64_t id;
};

struct release_queue {
    _Atomic(struct release_node *) newest;
};

void release_queue_init(struct release_queue *queue);
/* Threads  any. The node is the queue's until release_queue_take gives it back. */
void release_queue_push(struct release_queue *queue, struct release_node *node);
/* All that was pushed, oldest first, linked through next; NULL: none. Threads  the consumer's. */
struct release_node *release_queue_take(struct release_queue *queue);
