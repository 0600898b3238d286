/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_collective.c -- what replicas on GPUs compute together, beside what the CPU makes of the
 * same values; and what becomes of a group when a rank does not come, or NCCL fails. */
#define _GNU_SOURCE /* sched_yield */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include "collective.h"
#include "half.h"
#include "reduce.h"

#define REPLICAS 3u
#define MANY 5000u
#define CALLS_MAX 80u

/* Of the stand-ins. */
static void (*nccl_fault)(const char *what, int rank, uint64_t number);
static void (*fail_at)(const char *function, uint64_t nth, int result);

static int find_standins(void **state)
{
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW), *driver = dlopen("libcuda.so.1", RTLD_NOW);

    (void)state;
    if (nccl == NULL || driver == NULL)
        return 1;
    *(void **)&nccl_fault = dlsym(nccl, "standin_nccl_fault");
    *(void **)&fail_at = dlsym(driver, "standin_fail_at");
    return nccl_fault == NULL || fail_at == NULL;
}

/* A group of three replicas on GPUs of their own. */
struct world {
    struct device *devices[REPLICAS];
    struct device_queue *queues[REPLICAS];
    struct collective_group *group;
};

static int begin(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    if (world == NULL)
        return 1;
    for (uint32_t i = 0; i < REPLICAS; i++) {
        assert_int_equal(device_open(device_kind("GPU"), i, &world->devices[i], NULL), SUMAC_OK);
        assert_int_equal(device_queue_open(world->devices[i], &world->queues[i], NULL), SUMAC_OK);
    }
    assert_int_equal(
        collective_open(world->queues, REPLICAS, CALLS_MAX, &world->group, NULL), SUMAC_OK);
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;

    nccl_fault("", 0, 0);
    collective_close(world->group);
    for (uint32_t i = 0; i < REPLICAS; i++) {
        device_queue_close(world->queues[i]);
        device_close(world->devices[i]);
    }
    free(world);
    return 0;
}

static void finish(struct world *world)
{
    struct sumac_error error = {0};

    collective_start(world->group);
    if (collective_wait(world->group, COLLECTIVE_NO_LIMIT, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
}

/* What each replica has: on the host, and in its device's memory. */
struct held {
    struct sumac_buffer *host[REPLICAS], *there[REPLICAS];
    void *at[REPLICAS]; /* there */
};

static struct held hold(struct world *world, uint64_t bytes)
{
    struct held held;

    for (uint32_t i = 0; i < REPLICAS; i++) {
        assert_int_equal(sumac_buffer_create(bytes, &held.host[i]), SUMAC_OK);
        assert_int_equal(device_buffer_create(world->devices[i], bytes, &held.there[i]), SUMAC_OK);
        held.at[i] = sumac_buffer_data(held.there[i]);
    }
    return held;
}

static void drop(struct held *held)
{
    for (uint32_t i = 0; i < REPLICAS; i++) {
        sumac_buffer_unref(held->host[i]);
        sumac_buffer_unref(held->there[i]);
    }
}

/* In the queues: nobody waits for it. */
static void send(struct world *world, const struct held *held)
{
    for (uint32_t i = 0; i < REPLICAS; i++)
        device_copy(
            world->queues[i], &(struct device_copy){
                                  .to = held->there[i],
                                  .from = held->host[i],
                                  .bytes = sumac_buffer_bytes(held->host[i]),
                              });
}

static void fetch(struct world *world, const struct held *held)
{
    for (uint32_t i = 0; i < REPLICAS; i++)
        device_copy(
            world->queues[i], &(struct device_copy){
                                  .to = held->host[i],
                                  .from = held->there[i],
                                  .bytes = sumac_buffer_bytes(held->host[i]),
                              });
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
}

static const uint64_t ones[REPLICAS] = {1, 1, 1};

/* Small whole numbers, in multiples of four: every type has them, their sums and the means below.
 */
static void fill(enum sumac_dtype dtype, void *values, uint64_t count, uint32_t replica)
{
    for (uint64_t i = 0; i < count; i++) {
        const unsigned number = 4 * (unsigned)((i + replica) % 7);
        const float real = (float)number;
        const double wide = number;
        char *at = (char *)values + i * sumac_dtype_bytes(dtype);
        const uint64_t integer = number;
        const uint16_t half =
            dtype == SUMAC_FLOAT16 ? float16_of_float32(real) : bfloat16_of_float32(real);
        if (sumac_dtype_kind(dtype) == SUMAC_KIND_HALF)
            memcpy(at, &half, 2);
        else if (dtype == SUMAC_FLOAT32)
            memcpy(at, &real, 4);
        else if (dtype == SUMAC_FLOAT64)
            memcpy(at, &wide, 8);
        else
            memcpy(at, &integer, sumac_dtype_bytes(dtype));
    }
}

/* The CPU's, of the same values. */
static void reduce_here(
    enum sumac_reduce_op op, enum sumac_dtype dtype, const struct held *held, uint64_t count,
    void *result)
{
    const void *from[REPLICAS];

    for (uint32_t i = 0; i < REPLICAS; i++)
        from[i] = sumac_buffer_data(held->host[i]);
    reduce_values(
        op, &(struct reduce_input){
                .dtype = dtype,
                .elements = count,
                .from = from,
                .replicas = REPLICAS,
                .to = &result,
                .targets = 1,
                .weights = (double[]){1, 1, 2},
            });
}

static void
reduce_there(struct world *world, enum sumac_reduce_op op, enum sumac_dtype dtype, uint64_t count)
{
    const uint64_t bytes = count * sumac_dtype_bytes(dtype);
    struct held from = hold(world, bytes), to = hold(world, bytes); /* given */
    char *expected = malloc(bytes + 1);

    assert_non_null(expected);
    for (uint32_t i = 0; i < REPLICAS; i++) {
        fill(dtype, sumac_buffer_data(from.host[i]), count, i);
        memset(sumac_buffer_data(to.host[i]), 0x77, bytes);
    }
    reduce_here(op, dtype, &from, count, expected);
    const struct collective_values values = {
        dtype, (const void *const *)from.at, to.at, (const uint64_t[]){count, count, count},
        (const double[]){1, 1, 2}};

    send(world, &from); /* when: to everybody, then to the root alone, in its place */
    send(world, &to);
    assert_int_equal(collective_all_reduce(world->group, op, &values, NULL), SUMAC_OK);
    finish(world);
    fetch(world, &to);
    const struct collective_values in_place = {
        dtype, (const void *const *)from.at, from.at, values.elements, values.weights};
    assert_int_equal(collective_reduce(world->group, op, 1, &in_place, NULL), SUMAC_OK);
    finish(world);
    fetch(world, &from);

    for (uint32_t i = 0; i < REPLICAS; i++) /* then */
        assert_memory_equal(sumac_buffer_data(to.host[i]), expected, bytes);
    assert_memory_equal(sumac_buffer_data(from.host[1]), expected, bytes);
    fill(dtype, expected, count, 2);
    assert_memory_equal(sumac_buffer_data(from.host[2]), expected, bytes);
    free(expected);
    drop(&from);
    drop(&to);
}

static void what_is_reduced_is_the_cpus_for_every_type_and_size(void **state)
{
    static const uint64_t counts[] = {0, 1, 7, MANY};

    for (unsigned dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (unsigned op = SUMAC_REDUCE_SUM; op <= SUMAC_REDUCE_MEAN; op++)
                if (collective_has(
                        device_kind("GPU")->collectives, (enum sumac_reduce_op)op,
                        (enum sumac_dtype)dtype))
                    reduce_there(
                        *state, (enum sumac_reduce_op)op, (enum sumac_dtype)dtype, counts[i]);
}

/* A mean of n float32 is at most n + 2 roundings off: a product each, n - 1 sums, the weight, the
 * CPU's quotient. Each is half a unit in the last place of at most the largest value, 1. */
static void a_mean_by_uneven_weights_is_the_cpus_to_rounding(void **state)
{
    struct world *world = *state;
    struct held held = hold(world, MANY * 4); /* given */
    static const uint64_t elements[REPLICAS] = {MANY, MANY, MANY};
    static const double weights[REPLICAS] = {1, 5, 3};

    for (uint32_t r = 0; r < REPLICAS; r++)
        for (uint32_t i = 0; i < MANY; i++)
            ((float *)sumac_buffer_data(held.host[r]))[i] = 1.0f / (float)(i + r + 1);
    const struct collective_values values = {
        SUMAC_FLOAT32, (const void *const *)held.at, held.at, elements, weights};

    send(world, &held); /* when */
    assert_int_equal(
        collective_all_reduce(world->group, SUMAC_REDUCE_MEAN, &values, NULL), SUMAC_OK);
    finish(world);
    fetch(world, &held);

    for (uint32_t i = 0; i < MANY; i++) { /* then */
        double mean = 0;
        for (uint32_t r = 0; r < REPLICAS; r++)
            mean += weights[r] / 9 * (double)(1.0f / (float)(i + r + 1));
        const double off = (double)((float *)sumac_buffer_data(held.host[2]))[i] - mean;
        assert_true(off < 5 * 0x1p-25 && off > -5 * 0x1p-25);
    }
    drop(&held);
}

/* First axes of 2, 0 and 3 rows of two columns. */
static void all_gather_puts_uneven_rows_one_after_the_other(void **state)
{
    struct world *world = *state;
    struct held from = hold(world, 24), to = hold(world, 40); /* given */
    const int32_t a[] = {1, 2, 3, 4}, c[] = {5, 6, 7, 8, 9, 10};

    memcpy(sumac_buffer_data(from.host[0]), a, sizeof a);
    memcpy(sumac_buffer_data(from.host[2]), c, sizeof c);
    from.at[1] = NULL;
    const struct collective_values values = {
        SUMAC_INT32, (const void *const *)from.at, to.at, (const uint64_t[]){4, 0, 6}, NULL};

    send(world, &from); /* when */
    assert_int_equal(collective_all_gather(world->group, &values, NULL), SUMAC_OK);
    finish(world);
    fetch(world, &to);

    for (uint32_t r = 0; r < REPLICAS; r++) /* then */
        for (int32_t i = 0; i < 10; i++)
            assert_int_equal(((int32_t *)sumac_buffer_data(to.host[r]))[i], i + 1);
    drop(&from);
    drop(&to);
}

/* NCCL's groups have no order: only calls that touch nothing of one another may be in one. */
static void calls_of_one_start_run_one_after_the_other(void **state)
{
    struct world *world = *state;
    struct held flags = hold(world, MANY), g = hold(world, MANY * 8); /* given */
    static const uint64_t elements[REPLICAS] = {MANY, MANY, MANY};

    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t r = 0; r < REPLICAS; r++) {
            ((bool *)sumac_buffer_data(flags.host[r]))[i] = r == 2 && i % 2 == 1;
            ((int64_t *)sumac_buffer_data(g.host[r]))[i] = i;
        }
    const struct collective_values told = {
        SUMAC_BOOL, (const void *const *)flags.at, flags.at, elements, NULL};
    const struct collective_values values = {
        SUMAC_INT64, (const void *const *)g.at, g.at, elements, NULL};

    send(world, &flags); /* when */
    send(world, &g);
    assert_int_equal(collective_broadcast(world->group, 2, &told, NULL), SUMAC_OK);
    assert_int_equal(collective_reduce(world->group, SUMAC_REDUCE_SUM, 0, &values, NULL), SUMAC_OK);
    assert_int_equal(collective_broadcast(world->group, 0, &values, NULL), SUMAC_OK);
    assert_int_equal(
        collective_all_reduce(world->group, SUMAC_REDUCE_SUM, &values, NULL), SUMAC_OK);
    finish(world);
    fetch(world, &flags);
    fetch(world, &g);

    for (uint32_t i = 0; i < MANY; i++) /* then */
        for (uint32_t r = 0; r < REPLICAS; r++) {
            assert_int_equal(((bool *)sumac_buffer_data(flags.host[r]))[i], i % 2 == 1);
            assert_int_equal(((int64_t *)sumac_buffer_data(g.host[r]))[i], 9 * i);
        }
    drop(&flags);
    drop(&g);
}

static void many_calls_are_one_start(void **state)
{
    struct world *world = *state;
    struct held held = hold(world, CALLS_MAX * 4); /* given */
    void *at[CALLS_MAX][REPLICAS];

    for (uint32_t r = 0; r < REPLICAS; r++)
        for (uint32_t i = 0; i < CALLS_MAX; i++) {
            ((int32_t *)sumac_buffer_data(held.host[r]))[i] = (int32_t)(i + r);
            at[i][r] = (char *)held.at[r] + 4 * i;
        }
    send(world, &held); /* when */
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        const struct collective_values values = {
            SUMAC_INT32, (const void *const *)at[i], at[i], ones, NULL};
        assert_int_equal(
            collective_all_reduce(world->group, SUMAC_REDUCE_SUM, &values, NULL), SUMAC_OK);
    }
    finish(world);
    fetch(world, &held);

    for (uint32_t r = 0; r < REPLICAS; r++) /* then */
        for (uint32_t i = 0; i < CALLS_MAX; i++)
            assert_int_equal(((int32_t *)sumac_buffer_data(held.host[r]))[i], 3 * i + 3);
    drop(&held);
}

static void what_is_put_into_a_queue_before_and_after_is_before_and_after(void **state)
{
    struct world *world = *state;
    struct held held = hold(world, MANY * 4); /* given */
    static const uint64_t elements[REPLICAS] = {MANY, MANY, MANY};
    const struct collective_values values = {
        SUMAC_UINT32, (const void *const *)held.at, held.at, elements, NULL};

    for (uint32_t round = 1; round <= 10; round++) {
        for (uint32_t r = 0; r < REPLICAS; r++)
            for (uint32_t i = 0; i < MANY; i++)
                ((uint32_t *)sumac_buffer_data(held.host[r]))[i] = round;

        send(world, &held); /* when: nobody waits between */
        assert_int_equal(
            collective_all_reduce(world->group, SUMAC_REDUCE_SUM, &values, NULL), SUMAC_OK);
        collective_start(world->group);
        fetch(world, &held);

        for (uint32_t r = 0; r < REPLICAS; r++) /* then */
            for (uint32_t i = 0; i < MANY; i++)
                assert_int_equal(((uint32_t *)sumac_buffer_data(held.host[r]))[i], 3 * round);
        assert_int_equal(collective_wait(world->group, COLLECTIVE_NO_LIMIT, NULL), SUMAC_OK);
    }
    drop(&held);
}

/* ---- who does not come, and what fails */

static enum sumac_status meet_test(void *context)
{
    pthread_barrier_wait(context);
    return SUMAC_OK;
}

/* Of one float each: 1, 2, 3. It is there when this returns, and may be taken away at any time. */
static struct held three(struct world *world)
{
    struct held held = hold(world, 4);

    for (uint32_t i = 0; i < REPLICAS; i++)
        *(float *)sumac_buffer_data(held.host[i]) = (float)(i + 1);
    send(world, &held);
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    return held;
}

static void add_three(struct world *world, const struct held *held)
{
    const struct collective_values values = {
        SUMAC_FLOAT32, (const void *const *)held->at, (void *const *)held->at, ones, NULL};

    assert_int_equal(
        collective_all_reduce(world->group, SUMAC_REDUCE_SUM, &values, NULL), SUMAC_OK);
}

static void assert_three(struct world *world, struct held *held, float a, float b, float c)
{
    fetch(world, held);
    assert_true(*(float *)sumac_buffer_data(held->host[0]) == a);
    assert_true(*(float *)sumac_buffer_data(held->host[1]) == b);
    assert_true(*(float *)sumac_buffer_data(held->host[2]) == c);
}

/* Replica 1's device is busy for as long as the test wants. */
static void a_wait_that_ends_too_early_names_who_has_not_come(void **state)
{
    struct world *world = *state;
    struct held held = three(world); /* given */
    struct sumac_error error = {0};
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, 2);
    device_run(world->queues[1], meet_test, &meeting);
    add_three(world, &held);

    collective_start(world->group); /* when */
    enum sumac_status status = SUMAC_OK;
    do /* until the others have come */
        status = collective_wait(world->group, 1, &error);
    while (strchr(error.text, ',') != NULL);

    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_string_equal(error.text, "a group of 3 replicas waited 1 ms for replica 1 (GPU:1)");
    pthread_barrier_wait(&meeting); /* once it comes, the call ends well */
    assert_int_equal(collective_wait(world->group, COLLECTIVE_NO_LIMIT, NULL), SUMAC_OK);
    assert_three(world, &held, 6, 6, 6);
    pthread_barrier_destroy(&meeting);
    drop(&held);
}

static void *abort_it(void *group)
{
    collective_abort(group);
    return NULL;
}

/* What the values are then is not known: they are taken away at once. */
static void an_abort_ends_the_wait_and_touches_nothing_more(void **state)
{
    struct world *world = *state;
    struct held held = three(world); /* given */
    struct sumac_error error = {0};
    pthread_barrier_t meeting;
    pthread_t thread;

    pthread_barrier_init(&meeting, NULL, 2);
    device_run(world->queues[1], meet_test, &meeting);
    add_three(world, &held);
    collective_start(world->group);

    assert_int_equal(pthread_create(&thread, NULL, abort_it, world->group), 0); /* when */
    const enum sumac_status status = collective_wait(world->group, COLLECTIVE_NO_LIMIT, &error);

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(error.text, "the group of 3 replicas was aborted: open another");
    drop(&held);
    pthread_join(thread, NULL);
    pthread_barrier_wait(&meeting); /* the one that is late finds it so */
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    held = three(world);
    add_three(world, &held);
    collective_start(world->group); /* whoever goes on is told so again */
    assert_int_equal(collective_wait(world->group, COLLECTIVE_NO_LIMIT, NULL), SUMAC_ABORTED);
    assert_three(world, &held, 1, 2, 3);
    pthread_barrier_destroy(&meeting);
    drop(&held);
}

/* Whatever the threads of the queues are doing just then. */
static void an_abort_at_any_time_ends_it(void **state)
{
    struct world *world = *state;

    for (unsigned round = 0; round < 50; round++) {
        struct held held = three(world); /* given */
        pthread_t thread;

        add_three(world, &held);
        collective_start(world->group);
        for (unsigned i = 0; i < 4 * round; i++)
            (void)sched_yield();

        assert_int_equal(pthread_create(&thread, NULL, abort_it, world->group), 0); /* when */
        const enum sumac_status status = collective_wait(world->group, COLLECTIVE_NO_LIMIT, NULL);

        assert_true(status == SUMAC_OK || status == SUMAC_ABORTED); /* then */
        pthread_join(thread, NULL);
        drop(&held);
        for (uint32_t i = 0; i < REPLICAS; i++)
            assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
        collective_close(world->group);
        assert_int_equal(
            collective_open(world->queues, REPLICAS, CALLS_MAX, &world->group, NULL), SUMAC_OK);
    }
}

/* All have come, and one rank's part never begins: the deadline is told, and an abort frees the
 * streams. Another group of the same devices works. */
static void a_rank_that_stalls_is_waited_for_until_the_deadline_and_aborted(void **state)
{
    struct world *world = *state;
    struct held held = three(world); /* given */
    struct sumac_error error = {0};

    nccl_fault("stall", 2, 1);
    add_three(world, &held);
    collective_start(world->group);

    const enum sumac_status status = collective_wait(world->group, 30, &error); /* when */
    collective_abort(world->group);

    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_string_equal(
        error.text,
        "a group of 3 replicas waited 30 ms for replica 0 (GPU:0), 1 (GPU:1), 2 (GPU:2)");
    assert_int_equal(collective_wait(world->group, COLLECTIVE_NO_LIMIT, NULL), SUMAC_ABORTED);
    drop(&held);
    collective_close(world->group);
    nccl_fault("", 0, 0);
    assert_int_equal(
        collective_open(world->queues, REPLICAS, CALLS_MAX, &world->group, NULL), SUMAC_OK);
    held = three(world);
    add_three(world, &held);
    finish(world);
    assert_three(world, &held, 6, 6, 6);
    drop(&held);
}

/* NCCL tells of it in one rank only, when it is asked. */
static void fail_in_one(struct world *world, const char *how)
{
    struct held held = three(world); /* given */
    struct sumac_error error = {0};

    add_three(world, &held);
    finish(world);
    nccl_fault(how, 1, 2);
    add_three(world, &held);

    collective_start(world->group); /* when */
    const enum sumac_status status = collective_wait(world->group, COLLECTIVE_NO_LIMIT, &error);

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(
        error.text, "start 2 of a group of 3 replicas failed at replica 1 (GPU:1): NCCL says: "
                    "remote process exited or there was a network error; the group was aborted: "
                    "open another");
    add_three(world, &held);
    collective_start(world->group);
    error.text[0] = '\0';
    assert_int_equal(collective_wait(world->group, COLLECTIVE_NO_LIMIT, &error), SUMAC_ABORTED);
    assert_non_null(strstr(error.text, "failed at replica 1 (GPU:1)")); /* and so for ever */
    drop(&held);
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
}

static void a_rank_that_fails_ends_the_group_with_its_name(void **state)
{
    fail_in_one(*state, "fail");
}

static void a_rank_that_fails_when_all_have_begun_does_so_too(void **state)
{
    fail_in_one(*state, "break");
}

static void close_while_one_fails(struct world *world, const char *how)
{
    struct held held = three(world); /* given */

    nccl_fault(how, 0, 1);
    add_three(world, &held);
    collective_start(world->group);

    collective_close(world->group); /* when, then: it returns */
    world->group = NULL;
    drop(&held);
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
}

static void a_group_is_closed_while_a_rank_fails(void **state)
{
    close_while_one_fails(*state, "fail");
}

static void a_group_is_closed_while_a_rank_has_begun_and_fails(void **state)
{
    close_while_one_fails(*state, "break");
}

/* ---- opening */

static void replicas_on_one_gpu_make_no_group(void **state)
{
    struct world *world = *state;
    struct device_queue *queues[REPLICAS] = {world->queues[0], world->queues[1], world->queues[0]};
    struct collective_group *group = NULL;
    struct sumac_error error = {0};

    assert_int_equal(collective_open(queues, REPLICAS, 1, &group, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "replicas 0 and 2 of a group are both on GPU:0, which NCCL does not do: give "
                    "each a GPU of its own");
    assert_null(group);
}

static void one_replica_alone_has_what_it_gives(void **state)
{
    struct world *world = *state;
    struct held from = three(world), to = hold(world, 4); /* given */
    struct collective_group *group = NULL;
    const struct collective_values values = {
        SUMAC_FLOAT32, (const void *const *)from.at, to.at, ones, (const double[]){0.25}};

    assert_int_equal(collective_open(world->queues, 1, 3, &group, NULL), SUMAC_OK);

    assert_int_equal(collective_all_reduce(group, SUMAC_REDUCE_MEAN, &values, NULL), SUMAC_OK);
    collective_start(group); /* when */
    assert_int_equal(collective_wait(group, COLLECTIVE_NO_LIMIT, NULL), SUMAC_OK);

    fetch(world, &to); /* then */
    assert_true(*(float *)sumac_buffer_data(to.host[0]) == 1);
    *(float *)sumac_buffer_data(to.host[0]) = 7; /* and when the group is aborted, no more */
    send(world, &to);
    collective_abort(group);
    assert_int_equal(collective_all_reduce(group, SUMAC_REDUCE_MEAN, &values, NULL), SUMAC_OK);
    collective_start(group);
    assert_int_equal(device_wait(world->queues[0]), SUMAC_OK);
    assert_int_equal(collective_wait(group, COLLECTIVE_NO_LIMIT, NULL), SUMAC_ABORTED);
    fetch(world, &to);
    assert_true(*(float *)sumac_buffer_data(to.host[0]) == 7);
    collective_close(group);
    drop(&from);
    drop(&to);
}

static void a_group_that_gets_no_event_is_told_so(void **state)
{
    struct world *world = *state;
    struct collective_group *group = NULL;
    struct sumac_error error = {0};

    for (uint64_t nth = 1; nth <= REPLICAS; nth++) {
        fail_at("cuEventCreate", nth, 2);
        assert_int_equal(
            collective_open(world->queues, REPLICAS, 1, &group, &error), SUMAC_RESOURCE_EXHAUSTED);
        assert_string_equal(
            error.text, "a group of 3 replicas gets no events: CUDA_ERROR_OUT_OF_MEMORY (out of "
                        "memory)");
    }
    fail_at("", 0, 0);
    assert_null(group);
}

static void a_group_that_does_not_run_need_not_be_waited_for(void **state)
{
    struct world *world = *state;

    assert_int_equal(collective_wait(world->group, 0, NULL), SUMAC_OK); /* when, then */
    finish(world);                                                      /* of no call */
    assert_true(collective_has(device_kind("GPU")->collectives, SUMAC_REDUCE_SUM, SUMAC_INT8));
    assert_false(collective_has(device_kind("GPU")->collectives, SUMAC_REDUCE_MEAN, SUMAC_INT8));
    assert_false(collective_has(device_kind("GPU")->collectives, SUMAC_REDUCE_SUM, SUMAC_BOOL));
}

#define group_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        group_test(what_is_reduced_is_the_cpus_for_every_type_and_size),
        group_test(a_mean_by_uneven_weights_is_the_cpus_to_rounding),
        group_test(all_gather_puts_uneven_rows_one_after_the_other),
        group_test(calls_of_one_start_run_one_after_the_other),
        group_test(many_calls_are_one_start),
        group_test(what_is_put_into_a_queue_before_and_after_is_before_and_after),
        group_test(a_wait_that_ends_too_early_names_who_has_not_come),
        group_test(an_abort_ends_the_wait_and_touches_nothing_more),
        group_test(an_abort_at_any_time_ends_it),
        group_test(a_rank_that_stalls_is_waited_for_until_the_deadline_and_aborted),
        group_test(a_rank_that_fails_ends_the_group_with_its_name),
        group_test(a_rank_that_fails_when_all_have_begun_does_so_too),
        group_test(a_group_is_closed_while_a_rank_fails),
        group_test(a_group_is_closed_while_a_rank_has_begun_and_fails),
        group_test(replicas_on_one_gpu_make_no_group),
        group_test(one_replica_alone_has_what_it_gives),
        group_test(a_group_that_gets_no_event_is_told_so),
        group_test(a_group_that_does_not_run_need_not_be_waited_for),
    };

    return cmocka_run_group_tests(tests, find_standins, NULL);
}
