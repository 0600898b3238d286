/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c -- one client, many threads: each pushes ones to two variables at once and reads what
 * it has pushed.
 *
 *     threads THREADS PUSHES        -> "total N", then it leaves as done
 *
 * What is not as promised goes to standard error.
 *
 * The variables are int64, split over all ps. Every thread creates them, or finds them; every other
 * one waits for its pushes a moment at a time, and every third one asks whether it is over before
 * it waits. A thread sees at least its own pushes, and never fewer than it has seen before.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sumac/client.h"

#define ROWS 64
#define VARIABLES 2
#define THREADS_MAX 64

struct hand {
    struct sumac_client *client;
    uint64_t pushes, seen;
    uint32_t index;
    pthread_t thread;
    struct sumac_error error;
    enum sumac_status status;
};

struct set {
    struct sumac_client_variable *variables[VARIABLES];
    struct sumac_tensor tensors[VARIABLES];
};

static enum sumac_status
make(struct sumac_client *client, struct set *set, struct sumac_error *error)
{
    static const char *const names[VARIABLES] = {"a", "b"};
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; i < VARIABLES && status == SUMAC_OK; i++) {
        const struct sumac_client_variable_options options = {
            .name = names[i],
            .dtype = SUMAC_INT64,
            .shape = {.extent = {ROWS}, .rank = 1},
            .partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 2},
            .function = {.name = "assign_add"},
        };
        struct sumac_buffer *buffer = NULL;
        status = sumac_client_variable_create(client, &options, &set->variables[i], error);
        if (status == SUMAC_OK &&
            sumac_client_variable_shards(set->variables[i]) != options.partitioner.num_shards) {
            fprintf(
                stderr, "%s is said to have %" PRIu32 " shards\n", names[i],
                sumac_client_variable_shards(set->variables[i]));
            return SUMAC_DATA_LOSS;
        }
        if (status == SUMAC_OK)
            status = sumac_buffer_create(ROWS * sizeof(int64_t), &buffer);
        if (status == SUMAC_OK)
            status = sumac_tensor_view(buffer, 0, SUMAC_INT64, &options.shape, &set->tensors[i]);
    }
    return status;
}

static void drop(struct set *set)
{
    for (uint32_t i = 0; i < VARIABLES; i++)
        sumac_buffer_unref(set->tensors[i].buffer);
}

static enum sumac_status push(struct hand *hand, struct set *set)
{
    struct sumac_delta deltas[VARIABLES] = {0};
    struct sumac_push *push = NULL;

    for (uint32_t i = 0; i < VARIABLES; i++) {
        int64_t *values = sumac_tensor_data(&set->tensors[i]);
        for (uint32_t row = 0; row < ROWS; row++)
            values[row] = 1;
        deltas[i].variable = set->variables[i];
        deltas[i].value = set->tensors[i];
    }
    enum sumac_status status =
        sumac_client_push(hand->client, deltas, VARIABLES, NULL, &push, &hand->error);
    if (status != SUMAC_OK)
        return status;
    const bool asks = hand->index % 3 == 2;
    while (asks && !sumac_push_done(push))
        ;
    do /* what is over is not waited for, however short the time */
        status = sumac_push_wait(push, hand->index % 2 == 0 && !asks ? 0 : 1, &hand->error);
    while (status == SUMAC_DEADLINE_EXCEEDED && hand->index % 2 != 0 && !asks);
    return status;
}

/* On each ps both variables have the same sum in every row. `least`: what it may not be below. */
static bool believable(const struct set *set, uint64_t least, uint64_t *sum)
{
    const int64_t *a = sumac_tensor_data(&set->tensors[0]);
    const int64_t *b = sumac_tensor_data(&set->tensors[1]);

    *sum = (uint64_t)a[0];
    for (uint32_t row = 0; row < ROWS; row++) {
        const int64_t of_this_ps = a[row < ROWS / 2 ? 0 : ROWS - 1];
        if (a[row] != of_this_ps || b[row] != of_this_ps || (uint64_t)a[row] < least)
            return false;
    }
    return true;
}

static enum sumac_status pull(struct hand *hand, struct set *set, uint64_t least)
{
    struct sumac_fetch fetches[VARIABLES] = {0};
    struct sumac_pull *pull = NULL;

    for (uint32_t i = 0; i < VARIABLES; i++) {
        fetches[i].variable = set->variables[i];
        fetches[i].into = set->tensors[i];
    }
    enum sumac_status status =
        sumac_client_pull(hand->client, fetches, VARIABLES, NULL, &pull, &hand->error);
    while (status == SUMAC_OK && hand->index % 3 == 2 && !sumac_pull_done(pull))
        ;
    if (status == SUMAC_OK)
        status = sumac_pull_wait(pull, hand->index % 3 == 2 ? 1 : 0, &hand->error);
    uint64_t sum = 0;
    if (status == SUMAC_OK && !believable(set, least, &sum)) {
        fprintf(stderr, "thread %" PRIu32 ": torn, or below %" PRIu64 "\n", hand->index, least);
        return SUMAC_DATA_LOSS;
    }
    if (status == SUMAC_OK && sum < hand->seen) {
        fprintf(stderr, "thread %" PRIu32 ": %" PRIu64 " after more\n", hand->index, sum);
        return SUMAC_DATA_LOSS;
    }
    hand->seen = sum;
    return status;
}

static void *work(void *context)
{
    struct hand *hand = context;
    struct set set = {0};

    hand->status = make(hand->client, &set, &hand->error);
    for (uint64_t i = 1; i <= hand->pushes && hand->status == SUMAC_OK; i++) {
        hand->status = push(hand, &set);
        if (hand->status == SUMAC_OK)
            hand->status = pull(hand, &set, i);
    }
    drop(&set);
    return NULL;
}

static bool run(struct sumac_client *client, struct hand *hands, uint32_t count)
{
    bool well = true;

    for (uint32_t i = 0; i < count; i++) {
        hands[i].client = client;
        hands[i].index = i;
        if (pthread_create(&hands[i].thread, NULL, work, &hands[i]) != 0)
            abort();
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(hands[i].thread, NULL);
        if (hands[i].status != SUMAC_OK) {
            fprintf(
                stderr, "thread %" PRIu32 ": %s %s\n", i, sumac_status_name(hands[i].status),
                hands[i].error.text);
            well = false;
        }
    }
    return well;
}

int main(int argc, char **argv)
{
    static struct hand hands[THREADS_MAX];
    const uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    struct sumac_cluster cluster = {0};
    struct sumac_client *client = NULL;
    struct sumac_error error = {0};

    if (count == 0 || count > THREADS_MAX)
        return 2;
    for (uint32_t i = 0; i < count; i++)
        hands[i].pushes = strtoull(argv[2], NULL, 10);
    enum sumac_status status = sumac_cluster_from_environment(NULL, &cluster, &error);
    const struct sumac_client_options options = {.cluster = &cluster};
    if (status == SUMAC_OK)
        status = sumac_client_open(&options, &client, &error);
    bool well = status == SUMAC_OK && run(client, hands, count);
    struct set set = {0};
    struct hand last = {.client = client};
    if (well) {
        status = make(client, &set, &error);
        well = status == SUMAC_OK && pull(&last, &set, 0) == SUMAC_OK;
        printf("total %" PRIu64 "\n", last.seen);
        drop(&set);
    }
    if (well)
        well = sumac_client_leave(client, true, &error) == SUMAC_OK;
    if (error.text[0] != '\0')
        fprintf(stderr, "%s\n", error.text);
    sumac_client_close(client);
    sumac_cluster_deinit(&cluster);
    return well ? 0 : 1;
}
