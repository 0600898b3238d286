/* SPDX-License-Identifier: Apache-2.0 */
/* release_queue.c -- see release_queue.h. */
#include "release_queue.h"

#include <stddef.h>

void release_queue_init(struct release_queue *queue) { atomic_init(&queue->newest, NULL); }

void release_queue_push(struct release_queue *queue, struct release_node *node)
{
    struct release_node *newest = atomic_load_explicit(&queue->newest, memory_order_relaxed);

    do {
        node->next = newest;
        /* Release: who takes the node sees its id, and all that this thread did with the bytes it
         * stands for. */
    } while (!atomic_compare_exchange_weak_explicit(
        &queue->newest, &newest, node, memory_order_release, memory_order_relaxed));
}

struct release_node *release_queue_take(struct release_queue *queue)
{
    /* Looking first keeps the common case, nothing there, free of a locked instruction. */
    if (atomic_load_explicit(&queue->newest, memory_order_relaxed) == NULL)
        return NULL;
    struct release_node *newest =
        atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
    struct release_node *oldest = NULL;
    while (newest != NULL) {
        struct release_node *const next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}
