/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_group_ends.c -- what becomes of a group of GPUs when a rank does not come, when NCCL or
 * the driver fails, when it is aborted; and who makes no group. */
#define _GNU_SOURCE /* sched_yield, pthread_timedjoin_np */

#include "unit.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "gpu_world.h"
#include "kernels.h"
#include "reduce.h"

#define MANY 5000u

/* ---- who does not come, and what fails */

static enum sumac_status meet_test(void *context)
{
    pthread_barrier_wait(context);
    return SUMAC_OK;
}

/* Of one float each: 1, 2, 3. It is there when this returns, and may be taken away at any time. */
static struct gpu_held three(struct gpu_world *world)
{
    struct gpu_held held = gpu_world_hold(world, 4);

    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        *(float *)sumac_buffer_data(held.host[i]) = (float)(i + 1);
    gpu_world_send(world, &held);
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    return held;
}

static void add_three(struct gpu_world *world, const struct gpu_held *held)
{
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)held->at, (void *const *)held->at, gpu_world_ones,
        NULL};

    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
        SUMAC_OK);
}

static void assert_three(struct gpu_world *world, struct gpu_held *held, float a, float b, float c)
{
    gpu_world_fetch(world, held);
    assert_true(*(float *)sumac_buffer_data(held->host[0]) == a);
    assert_true(*(float *)sumac_buffer_data(held->host[1]) == b);
    assert_true(*(float *)sumac_buffer_data(held->host[2]) == c);
}

#define GROUP_TEST(name) FIXTURE_TEST(name, struct gpu_world *world, gpu_world_begin, gpu_world_end)

/* Replica 1's device is busy for as long as the test wants. */
GROUP_TEST(a_wait_that_ends_too_early_names_who_has_not_come)
{
    struct gpu_held held = three(world); /* given */
    struct sumac_error error = {0};
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, 2);
    device_run(world->queues[1], meet_test, &meeting);
    add_three(world, &held);

    device_group_start(world->group); /* when */
    enum sumac_status status = SUMAC_OK;
    do /* until the others have come */
        status = device_group_wait(world->group, 1, &error);
    while (strchr(error.text, ',') != NULL);

    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_string_equal(
        error.text,
        "start 1 (all_reduce) of a group of 3 replicas waited 1 ms for replica 1 (GPU:1)");
    pthread_barrier_wait(&meeting); /* once it comes, the call ends well */
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);
    assert_three(world, &held, 6, 6, 6);
    pthread_barrier_destroy(&meeting);
    gpu_world_drop(&held);
}

static void *abort_it(void *group)
{
    device_group_abort(group);
    return NULL;
}

/* Who awaits a call of a start that comes to nothing goes on. */
GROUP_TEST(an_event_of_an_aborted_start_holds_nobody_up)
{
    struct gpu_held held = three(world); /* given */
    struct device_queue *other = NULL;
    struct device_event *event = NULL;

    assert_int_equal(device_queue_open(world->devices[0], &other, NULL), SUMAC_OK);
    assert_int_equal(device_event_open(world->devices[0], &event, NULL), SUMAC_OK);
    device_group_abort(world->group);
    add_three(world, &held);
    device_group_record(world->group, event);

    device_group_start(world->group); /* when */
    device_await(other, event);
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_ABORTED);

    assert_int_equal(device_wait(other), SUMAC_OK); /* then */
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    device_queue_close(other);
    device_event_close(event);
    gpu_world_drop(&held);
}

/* What the values are then is not known: they are taken away at once. */
GROUP_TEST(an_abort_ends_the_wait_and_touches_nothing_more)
{
    struct gpu_held held = three(world); /* given */
    struct sumac_error error = {0};
    pthread_barrier_t meeting;
    pthread_t thread;

    pthread_barrier_init(&meeting, NULL, 2);
    device_run(world->queues[1], meet_test, &meeting);
    add_three(world, &held);
    device_group_start(world->group);

    assert_int_equal(pthread_create(&thread, NULL, abort_it, world->group), 0); /* when */
    const enum sumac_status status = device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error);

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(error.text, "the group of 3 replicas was aborted: open another");
    gpu_world_drop(&held);
    pthread_join(thread, NULL);
    pthread_barrier_wait(&meeting); /* the one that is late finds it so */
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    held = three(world);
    add_three(world, &held);
    device_group_start(world->group); /* a later call fails again */
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_ABORTED);
    assert_three(world, &held, 1, 2, 3);
    pthread_barrier_destroy(&meeting);
    gpu_world_drop(&held);
}

/* Whatever the threads of the queues are doing just then. */
GROUP_TEST(an_abort_at_any_time_ends_it)
{
    for (unsigned round = 0; round < 50; round++) {
        struct gpu_held held = three(world); /* given */
        pthread_t thread;

        add_three(world, &held);
        device_group_start(world->group);
        for (unsigned i = 0; i < 4 * round; i++)
            (void)sched_yield();

        assert_int_equal(pthread_create(&thread, NULL, abort_it, world->group), 0); /* when */
        const enum sumac_status status =
            device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL);

        assert_true(status == SUMAC_OK || status == SUMAC_ABORTED); /* then */
        pthread_join(thread, NULL);
        gpu_world_drop(&held);
        for (uint32_t i = 0; i < GPU_REPLICAS; i++)
            assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
        device_group_close(world->group);
        assert_int_equal(
            device_group_open(world->queues, GPU_REPLICAS, GPU_CALLS_MAX, &world->group, NULL),
            SUMAC_OK);
    }
}

#define ABORT_S_MAX 10 /* far beyond what it takes */

struct blocked {
    struct device_group *group;
    pthread_t thread;
    bool is_aborted; /* before the call went on */
};

/* Within a call of the driver or of NCCL, which goes on when another thread has aborted the group.
 */
static void abort_meanwhile(void *context)
{
    struct blocked *blocked = context;
    struct timespec until;

    assert_int_equal(pthread_create(&blocked->thread, NULL, abort_it, blocked->group), 0);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_S_MAX;
    blocked->is_aborted = pthread_timedjoin_np(blocked->thread, NULL, &until) == 0;
}

static const struct {
    const char *name;
    bool waits; /* the thread that waits for the group calls it, not a queue's */
} blocking[] = {
    {"ncclAllReduce", false}, {"ncclCommGetAsyncError", false}, {"cuEventRecord", false},
    {"cuEventQuery", true},   {"ncclCommGetAsyncError", true},
};

GROUP_TEST(a_call_that_blocks_holds_up_nobody_who_aborts_the_group)
{
    for (size_t i = 0; i < sizeof blocking / sizeof blocking[0]; i++) {
        struct gpu_held held = three(world); /* given */
        struct blocked blocked = {.group = world->group};

        add_three(world, &held);
        if (!blocking[i].waits)
            gpu_world_call_at(blocking[i].name, 1, abort_meanwhile, &blocked);
        device_group_start(world->group); /* when */
        for (uint32_t j = 0; j < GPU_REPLICAS; j++)
            assert_int_equal(device_wait(world->queues[j]), SUMAC_OK);
        if (blocking[i].waits)
            gpu_world_call_at(blocking[i].name, 1, abort_meanwhile, &blocked);
        const enum sumac_status status =
            device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL);

        gpu_world_fail_at("", 0, 0);
        if (!blocked.is_aborted) {
            (void)pthread_join(blocked.thread, NULL);
            fail_msg("%s was called with the group's mutex", blocking[i].name); /* then */
        }
        assert_int_equal(status, SUMAC_ABORTED);
        gpu_world_drop(&held);
        device_group_close(world->group);
        assert_int_equal(
            device_group_open(world->queues, GPU_REPLICAS, GPU_CALLS_MAX, &world->group, NULL),
            SUMAC_OK);
    }
}

/* All have come, and one rank's part never begins: the deadline is told, and an abort frees the
 * streams. Another group of the same devices works. */
GROUP_TEST(a_rank_that_stalls_is_waited_for_until_the_deadline_and_aborted)
{
    struct gpu_held held = three(world); /* given */
    struct sumac_error error = {0};

    gpu_world_nccl_fault("stall", 2, 1);
    add_three(world, &held);
    device_group_start(world->group);

    const enum sumac_status status = device_group_wait(world->group, 30, &error); /* when */
    device_group_abort(world->group);

    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_string_equal(
        error.text, "start 1 (all_reduce) of a group of 3 replicas waited 30 ms for replica 0 "
                    "(GPU:0), 1 (GPU:1), 2 (GPU:2)");
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_ABORTED);
    gpu_world_drop(&held);
    device_group_close(world->group);
    gpu_world_nccl_fault("", 0, 0);
    assert_int_equal(
        device_group_open(world->queues, GPU_REPLICAS, GPU_CALLS_MAX, &world->group, NULL),
        SUMAC_OK);
    held = three(world);
    add_three(world, &held);
    gpu_world_finish(world);
    assert_three(world, &held, 6, 6, 6);
    gpu_world_drop(&held);
}

/* NCCL tells of it in one rank only, when it is asked. */
static void fail_in_one(struct gpu_world *world, const char *how)
{
    struct gpu_held held = three(world); /* given */
    struct sumac_error error = {0};

    add_three(world, &held);
    gpu_world_finish(world);
    gpu_world_nccl_fault(how, 1, 2);
    add_three(world, &held);

    device_group_start(world->group); /* when */
    const enum sumac_status status = device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error);

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(
        error.text,
        "start 2 (all_reduce) of a group of 3 replicas failed at replica 1 (GPU:1): NCCL says: "
        "remote process exited or there was a network error");
    add_three(world, &held);
    device_group_start(world->group);
    error.text[0] = '\0';
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error), SUMAC_ABORTED);
    assert_non_null(strstr(error.text, "failed at replica 1 (GPU:1)")); /* and so for ever */
    gpu_world_drop(&held);
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
}

GROUP_TEST(a_rank_that_fails_ends_the_group_with_its_name) { fail_in_one(world, "fail"); }

GROUP_TEST(a_rank_that_fails_when_all_have_begun_does_so_too) { fail_in_one(world, "break"); }

/* Whichever of the streams it is that meets with it, before or behind the ranks' meeting. */
STATE_TEST(a_gpu_that_fails_ends_the_group_with_its_name, gpu_world_begin, gpu_world_end)
{
    struct gpu_world *world = *state;

    for (uint64_t nth = 1; nth <= 6; nth++) {
        struct gpu_held held = three(world); /* given */
        struct sumac_error error = {0};

        add_three(world, &held);
        gpu_world_fail_at("stream", nth, 700);
        device_group_start(world->group); /* when */
        const enum sumac_status status =
            device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error);

        assert_int_equal(status, SUMAC_ABORTED); /* then */
        assert_non_null(strstr(
            error.text, "start 1 (all_reduce) of a group of 3 replicas was aborted: replica"));
        assert_non_null(
            strstr(error.text, "has failed: CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants it)"));
        gpu_world_drop(&held);
        assert_int_equal(gpu_world_end(state), 0); /* other contexts, for a device that is well */
        gpu_world_fail_at("", 0, 0);
        assert_int_equal(gpu_world_begin(state), 0);
        world = *state;
    }
}

static void close_while_one_fails(struct gpu_world *world, const char *how)
{
    struct gpu_held held = three(world); /* given */

    gpu_world_nccl_fault(how, 0, 1);
    add_three(world, &held);
    device_group_start(world->group);

    device_group_close(world->group); /* when, then: it returns */
    world->group = NULL;
    gpu_world_drop(&held);
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
}

GROUP_TEST(a_group_is_closed_while_a_rank_fails) { close_while_one_fails(world, "fail"); }

GROUP_TEST(a_group_is_closed_while_a_rank_has_begun_and_fails)
{
    close_while_one_fails(world, "break");
}

/* ---- opening */

GROUP_TEST(replicas_on_one_gpu_make_no_group)
{
    struct device_queue *queues[GPU_REPLICAS] = {
        world->queues[0], world->queues[1], world->queues[0]};
    struct device_group *group = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        device_group_open(queues, GPU_REPLICAS, 1, &group, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "replicas 0 and 2 of a group are both on GPU:0, which NCCL does not do: give "
                    "each a GPU of its own");
    assert_null(group);
}

GROUP_TEST(one_replica_alone_has_what_it_gives)
{
    struct gpu_held from = three(world), to = gpu_world_hold(world, 4); /* given */
    struct device_group *group = NULL;
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)from.at, to.at, gpu_world_ones, (const double[]){0.25}};

    assert_int_equal(device_group_open(world->queues, 1, 3, &group, NULL), SUMAC_OK);

    assert_int_equal(
        device_group_add(group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, NULL), SUMAC_OK);
    device_group_start(group); /* when */
    assert_int_equal(device_group_wait(group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);

    gpu_world_fetch(world, &to); /* then */
    assert_true(*(float *)sumac_buffer_data(to.host[0]) == 1);
    *(float *)sumac_buffer_data(to.host[0]) = 7; /* and when the group is aborted, no more */
    gpu_world_send(world, &to);
    device_group_abort(group);
    assert_int_equal(
        device_group_add(group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, NULL), SUMAC_OK);
    device_group_start(group);
    assert_int_equal(device_wait(world->queues[0]), SUMAC_OK);
    assert_int_equal(device_group_wait(group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_ABORTED);
    gpu_world_fetch(world, &to);
    assert_true(*(float *)sumac_buffer_data(to.host[0]) == 7);
    device_group_close(group);
    gpu_world_drop(&from);
    gpu_world_drop(&to);
}

GROUP_TEST(a_group_that_gets_no_event_is_told_so)
{
    struct device_group *group = NULL;
    struct sumac_error error = {0};

    for (uint64_t nth = 1; nth <= GPU_REPLICAS; nth++) {
        gpu_world_fail_at("cuEventCreate", nth, 2);
        assert_int_equal(
            device_group_open(world->queues, GPU_REPLICAS, 1, &group, &error),
            SUMAC_RESOURCE_EXHAUSTED);
        assert_string_equal(
            error.text, "a group of 3 replicas gets no events: CUDA_ERROR_OUT_OF_MEMORY (out of "
                        "memory)");
    }
    gpu_world_fail_at("", 0, 0);
    assert_null(group);
}

static const struct refused {
    const char *name;
    uint64_t nth;
} refused[] = {
    {"cuMemAlloc_v2", 2}, {"cuModuleLoadData", 2}, {"cuModuleGetFunction", CUDA_KERNELS + 1}};

/* The scratch for wide values, and the kernels: the second device has no memory for them. */
GROUP_TEST(a_device_that_is_full_refuses_a_start_and_the_next_one_is_well)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct gpu_held held = gpu_world_hold(world, MANY * 2); /* given */
        struct sumac_error error = {0};
        static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};
        const struct device_group_values values = {
            SUMAC_INT16, (const void *const *)held.at, held.at, elements, NULL};

        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
            SUMAC_OK);
        gpu_world_fail_at(refused[i].name, refused[i].nth, 2);
        device_group_start(world->group); /* when */
        const enum sumac_status status =
            device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error);

        assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED); /* then */
        assert_non_null(strstr(
            error.text,
            "start 1 (all_reduce) of a group of 3 replicas has no scratch on replica 1: GPU:1 "));
        assert_non_null(strstr(error.text, ": CUDA_ERROR_OUT_OF_MEMORY (out of memory)"));
        assert_false(world->group->has_ended);
        gpu_world_fail_at("", 0, 0);
        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
            SUMAC_OK);
        gpu_world_finish(world);
        device_group_close(world->group);
        assert_int_equal(
            device_group_open(world->queues, GPU_REPLICAS, GPU_CALLS_MAX, &world->group, NULL),
            SUMAC_OK);
        gpu_world_drop(&held);
    }
}

/* What a strategy keeps of the device's memory. */
static bool give_back(void *context)
{
    gpu_world_fail_at("", 0, 0);
    ++*(int *)context;
    return true;
}

GROUP_TEST(memory_that_is_kept_elsewhere_is_scratch_when_there_is_no_other)
{
    struct gpu_held held = gpu_world_hold(world, MANY * 2); /* given */
    static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};
    const struct device_group_values values = {
        SUMAC_INT16, (const void *const *)held.at, held.at, elements, NULL};
    int asked = 0;

    world->devices[1]->spare = give_back;
    world->devices[1]->spare_context = &asked;
    gpu_world_fail_at("cuMemAlloc_v2", 2, 2);
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
        SUMAC_OK);

    gpu_world_finish(world); /* when, then */

    assert_int_equal(asked, 1);
    world->devices[1]->spare = NULL;
    gpu_world_drop(&held);
}

/* NCCL has one word for all of the driver's errors, and the driver has its own. */
GROUP_TEST(a_gpu_that_nccl_finds_failed_is_told_in_the_drivers_words)
{
    struct gpu_held held = three(world); /* given */
    struct sumac_error error = {0};

    gpu_world_nccl_fault("cuda", 1, 1);
    add_three(world, &held);
    device_group_start(world->group); /* when */
    const enum sumac_status status = device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error);

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(
        error.text,
        "start 1 (all_reduce) of a group of 3 replicas failed at replica 1 (GPU:1): NCCL says: "
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details) (Cuda failure 700); the "
        "driver says: CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants it)");
    assert_true(atomic_load(&world->devices[1]->is_broken));
    assert_false(atomic_load(&world->devices[0]->is_broken));
    assert_true(world->group->has_ended);
    gpu_world_drop(&held);
}

GROUP_TEST(a_group_that_does_not_run_need_not_be_waited_for)
{
    assert_int_equal(device_group_wait(world->group, 0, NULL), SUMAC_OK); /* when, then */
    gpu_world_finish(world);                                              /* of no call */
    assert_true(reduce_has(SUMAC_REDUCE_SUM, SUMAC_INT8));
    assert_false(reduce_has(SUMAC_REDUCE_MEAN, SUMAC_INT8));
    assert_false(reduce_has(SUMAC_REDUCE_SUM, SUMAC_BOOL));
}

int main(void)
{
    if (!gpu_world_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
