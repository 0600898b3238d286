/* SPDX-License-Identifier: Apache-2.0 */
/* release_queue.c (test) -- ids reach the one consumer, each once and in each producer's order. */
#include <pthread.h>

#include "unit.h"
#include "release_queue.h"

#define PRODUCERS 4u
#define NODES_EACH 20000u

TEST(an_empty_queue_gives_nothing)
{
    struct release_queue queue;

    release_queue_init(&queue);

    assert_null(release_queue_take(&queue));
}

TEST(what_was_pushed_is_taken_oldest_first_and_once)
{
    struct release_queue queue;

    release_queue_init(&queue);
    struct release_node nodes[3] = {{.id = 10}, {.id = 11}, {.id = 12}};
    for (size_t i = 0; i < 3; i++)
        release_queue_push(&queue, &nodes[i]);

    const struct release_node *taken = release_queue_take(&queue);

    for (uint64_t id = 10; id <= 12; id++, taken = taken->next) {
        assert_non_null(taken);
        assert_int_equal(taken->id, id);
    }
    assert_null(taken);
    assert_null(release_queue_take(&queue));
}

TEST(a_node_may_be_pushed_again_once_it_was_taken)
{
    struct release_queue queue;

    release_queue_init(&queue);
    struct release_node node = {.id = 1};
    release_queue_push(&queue, &node);
    assert_ptr_equal(release_queue_take(&queue), &node);

    node.id = 2;
    release_queue_push(&queue, &node);

    assert_ptr_equal(release_queue_take(&queue), &node);
    assert_null(node.next);
}

struct producer {
    struct release_queue *queue;
    struct release_node *nodes;
    uint64_t number;
    pthread_t thread;
};

static void *produce(void *context)
{
    struct producer *const producer = context;

    for (uint64_t i = 0; i < NODES_EACH; i++) {
        producer->nodes[i].id = producer->number << 32 | i;
        release_queue_push(producer->queue, &producer->nodes[i]);
    }
    return NULL;
}

/* Each producer's ids come in its own order, none twice, none missing. */
TEST(many_producers_lose_and_repeat_nothing)
{
    struct release_queue queue;

    release_queue_init(&queue);
    struct producer producers[PRODUCERS];
    for (uint64_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.queue = &queue, .number = i};
        producers[i].nodes = calloc(NODES_EACH, sizeof *producers[i].nodes);
        assert_non_null(producers[i].nodes);
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }

    uint64_t next[PRODUCERS] = {0}, taken_count = 0;
    while (taken_count < (uint64_t)PRODUCERS * NODES_EACH) {
        for (const struct release_node *node = release_queue_take(&queue); node != NULL;
             node = node->next) {
            const uint64_t producer = node->id >> 32;
            assert_int_equal(node->id & 0xffffffffu, next[producer]);
            next[producer]++;
            taken_count++;
        }
    }

    assert_null(release_queue_take(&queue));
    for (size_t i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        assert_int_equal(next[i], NODES_EACH);
        free(producers[i].nodes);
    }
}
