/* SPDX-License-Identifier: Apache-2.0 */
/* collective_member.c -- a worker that takes part in rounds of collectives, and computes by itself
 * what each comes to: `collective_member ROUNDS ELEMENTS [MISTAKE]`. Exits with 0 if all are the
 * same; with a MISTAKE (operation, shape, away, dies, stands) worker 1 makes it in round 3 of sums,
 * and each prints what it hears. With `alone` worker 0 is by itself in a round that names no time,
 * of a client whose calls take 7 s at most.
 */
#include <signal.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sumac/client.h"
#include "sumac/collective.h"

static struct sumac_client *client;
static uint32_t own, members;
static uint64_t elements;
static float *value, *into, *expected;

static void fill(uint32_t member, uint64_t round, float *to)
{
    for (uint64_t i = 0; i < elements; i++)
        to[i] = (float)((member * 31 + round * 7 + i) % 1000) - 500 + (float)member / 8;
}

static void differ(const char *name, uint64_t round)
{
    (void)fprintf(stderr, "round %" PRIu64 " of %s is not as expected\n", round, name);
    exit(1);
}

static struct sumac_tensor over(float *memory)
{
    return sumac_tensor_over(memory, SUMAC_FLOAT32, SUMAC_SHAPE(elements));
}

static void give_up(const struct sumac_error *error)
{
    (void)fprintf(stderr, "worker %" PRIu32 ": %s\n", own, error->text);
    exit(sumac_exit_code(error));
}

/* In the order of the members, whoever comes first. */
static void expect(enum sumac_reduce_op op, uint64_t round)
{
    fill(0, round, expected);
    for (uint32_t member = 1; member < members; member++) {
        fill(member, round, value);
        for (uint64_t i = 0; i < elements; i++) {
            const float was = expected[i], is = value[i];
            expected[i] = op == SUMAC_REDUCE_MIN   ? (is < was ? is : was)
                          : op == SUMAC_REDUCE_MAX ? (is > was ? is : was)
                                                   : was + is;
        }
    }
    for (uint64_t i = 0; op == SUMAC_REDUCE_MEAN && i < elements; i++)
        expected[i] /= (float)members;
}

static void compute(const char *name, enum sumac_reduce_op op, uint64_t round)
{
    const struct sumac_tensor sum = over(into), given = over(value);
    const struct sumac_collective_options options = {.name = name, .round = round, .into = &sum};
    struct sumac_error error = {0};

    expect(op, round);
    fill(own, round, value);
    memset(into, 0xff, elements * sizeof *into);
    if (sumac_client_all_reduce(client, &options, op, &given, NULL, &error) != SUMAC_OK)
        give_up(&error);
    if (memcmp(into, expected, elements * sizeof *into) != 0)
        differ(name, round);
}

/* The client counts the rounds. */
static void broadcast(uint64_t round)
{
    const struct sumac_member root = {.job = "worker", .index = (uint32_t)(round % members)};
    const struct sumac_collective_options options = {.name = "broadcast"};
    const struct sumac_tensor given = over(value);
    struct sumac_error error = {0};

    fill(root.index, round, expected);
    fill(own, round, value);
    if (sumac_client_broadcast(client, &options, root, &given, NULL, &error) != SUMAC_OK)
        give_up(&error);
    if (memcmp(value, expected, elements * sizeof *value) != 0)
        differ("broadcast", round);
}

/* Of each as many rows as its index, and one more. */
static void gather(uint64_t round)
{
    static float rows[2 * 64];
    const struct sumac_collective_options options = {.name = "gather"};
    const struct sumac_tensor given =
        sumac_tensor_over(rows, SUMAC_FLOAT32, SUMAC_SHAPE(own + 1, 2));
    struct sumac_error error = {0};
    struct sumac_collective_result result = {.buffer = NULL};

    for (uint32_t i = 0; i < 2 * (own + 1); i++)
        rows[i] = (float)(own * 100 + i + round);
    if (sumac_client_all_gather(client, &options, &given, &result, NULL, &error) != SUMAC_OK)
        give_up(&error);
    const float *at = sumac_tensor_data(&result.value);
    if (result.value.shape.extent[0] != members * (members + 1) / 2 ||
        result.value.shape.extent[1] != 2)
        differ("gather", round);
    for (uint32_t member = 0; member < members; member++)
        for (uint32_t i = 0; i < 2 * (member + 1); i++)
            if (*at++ != (float)(member * 100 + i + round))
                differ("gather", round);
    sumac_buffer_unref(result.buffer);
}

static void concatenate(uint64_t round)
{
    float rows[2] = {(float)own, (float)round};
    int64_t index = own * 3;
    const struct sumac_collective_options options = {.name = "concatenate"};
    const struct sumac_indexed_slices given = {
        .values = sumac_tensor_over(rows, SUMAC_FLOAT32, SUMAC_SHAPE(1, 2)),
        .indices = sumac_tensor_over(&index, SUMAC_INT64, SUMAC_SHAPE(1))};
    struct sumac_error error = {0};
    struct sumac_collective_result result = {.buffer = NULL};

    if (sumac_client_concatenate(client, &options, &given, &result, NULL, &error) != SUMAC_OK)
        give_up(&error);
    const int64_t *indices = sumac_tensor_data(&result.indices);
    const float *values = sumac_tensor_data(&result.value);
    for (uint32_t member = 0; member < members; member++)
        if (indices[member] != member * 3 || values[2 * member] != (float)member ||
            values[2 * member + 1] != (float)round)
            differ("concatenate", round);
    sumac_buffer_unref(result.buffer);
}

/* Two at a time, which others begin in another order. */
static void both_orders(uint64_t round)
{
    static const char *const names[] = {"left", "right"};
    struct sumac_collective *collectives[2];
    float sums[2] = {1, 1};
    struct sumac_error error = {0};

    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t which = (i + own) % 2;
        const struct sumac_collective_options options = {.name = names[which]};
        const struct sumac_tensor given = sumac_tensor_over(&sums[i], SUMAC_FLOAT32, SUMAC_SCALAR);
        if (sumac_client_all_reduce(
                client, &options, SUMAC_REDUCE_SUM, &given, &collectives[i], &error) != SUMAC_OK)
            give_up(&error);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (sumac_collective_wait(collectives[i], 0, &error) != SUMAC_OK)
            give_up(&error);
        if (sums[i] != (float)members)
            differ(names[i], round);
    }
}

/* What each hears of the round that worker 1 makes a mistake in; and the next one works. */
static void err(const char *mistake)
{
    const bool mine = own == 1;
    const bool goes = strcmp(mistake, "dies") == 0 || strcmp(mistake, "stands") == 0;
    struct sumac_tensor given = over(value);
    struct sumac_collective_options options = {
        .name = "sum", .round = 3, .timeout_ms = goes ? 600000 : 2000};
    enum sumac_reduce_op op = SUMAC_REDUCE_SUM;
    struct sumac_error error = {0};

    if (mine && goes)
        (void)raise(strcmp(mistake, "dies") == 0 ? SIGKILL : SIGSTOP);
    if (mine && strcmp(mistake, "operation") == 0)
        op = SUMAC_REDUCE_MAX;
    if (mine && strcmp(mistake, "shape") == 0)
        given.shape.extent[0] = 1;
    if (mine && strcmp(mistake, "away") == 0)
        options.round = 4;
    if (sumac_client_all_reduce(client, &options, op, &given, NULL, &error) == SUMAC_OK)
        differ("sum", 3);
    (void)printf("worker %" PRIu32 " heard: %s\n", own, error.text);
    (void)fflush(stdout);
    if (goes)
        exit(sumac_exit_code(&error));
    compute("sum", SUMAC_REDUCE_SUM, 5);
}

static void be_alone(void)
{
    const struct sumac_collective_options heard = {.name = "heard", .timeout_ms = 60000};
    const struct sumac_collective_options options = {.name = "sum", .round = 3};
    const struct sumac_tensor given = over(value);
    const enum sumac_reduce_op op = SUMAC_REDUCE_SUM;
    struct sumac_error error = {0};

    if (own == 0) {
        if (sumac_client_all_reduce(client, &options, op, &given, NULL, &error) == SUMAC_OK)
            differ("sum", 3);
        (void)printf("worker 0 heard: %s\n", error.text);
        (void)fflush(stdout);
    }
    if (sumac_client_barrier(client, &heard, NULL, &error) != SUMAC_OK)
        give_up(&error);
}

int main(int argc, char **argv)
{
    const bool alone = argc > 3 && strcmp(argv[3], "alone") == 0;
    const struct sumac_client_options options = {.timeout_ms = alone ? 7000 : 0};
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    struct sumac_client_facts facts;
    struct sumac_error error = {0};

    elements = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    value = malloc(elements * sizeof *value);
    into = malloc(elements * sizeof *into);
    expected = malloc(elements * sizeof *expected);
    if (value == NULL || into == NULL || expected == NULL)
        return 1;
    if (sumac_client_open(&options, &client, &error) != SUMAC_OK)
        give_up(&error);
    sumac_client_describe(client, &facts);
    own = facts.member_index;
    members = facts.member_count;
    (void)printf("joined\n");
    (void)fflush(stdout);
    for (uint64_t round = 1; round <= (argc > 3 ? 2 : rounds); round++) {
        compute("sum", SUMAC_REDUCE_SUM, round);
        compute("mean", SUMAC_REDUCE_MEAN, round);
        compute("min", SUMAC_REDUCE_MIN, round);
        compute("max", SUMAC_REDUCE_MAX, round);
        gather(round);
        broadcast(round);
        concatenate(round);
        both_orders(round);
    }
    if (alone)
        be_alone();
    else if (argc > 3)
        err(argv[3]);
    if (sumac_client_leave(client, SUMAC_LEAVING_DONE, &error) != SUMAC_OK)
        give_up(&error);
    sumac_client_close(client);
    free(value);
    free(into);
    free(expected);
    return 0;
}
