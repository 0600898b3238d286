/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.c -- what replicas compute together, through the table of their devices. */
#include <errno.h>
#include <time.h>

#include "unit.h"
#include <pthread.h>

#include "device_group.h"
#include "half.h"
#include "reduce.h"

#define REPLICAS 3u
#define MANY 5000u /* of which no replica's share is as long as another's */
#define CALLS_MAX 4u

/* A group of three replicas on devices of their own. */
struct world {
    struct device *devices[REPLICAS];
    struct device_queue *queues[REPLICAS];
    struct device_group *group;
};

static int begin(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    if (world == NULL)
        return 1;
    for (uint32_t i = 0; i < REPLICAS; i++) {
        assert_int_equal(device_open(device_kind("CPU"), i, &world->devices[i], NULL), SUMAC_OK);
        assert_int_equal(device_queue_open(world->devices[i], &world->queues[i], NULL), SUMAC_OK);
    }
    assert_int_equal(
        device_group_open(world->queues, REPLICAS, CALLS_MAX, &world->group, NULL), SUMAC_OK);
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;

    device_group_close(world->group);
    for (uint32_t i = 0; i < REPLICAS; i++) {
        device_queue_close(world->queues[i]);
        device_close(world->devices[i]);
    }
    free(world);
    return 0;
}

static const uint64_t every_one_many[REPLICAS] = {MANY, MANY, MANY};
static const uint64_t ones[REPLICAS] = {1, 1, 1};

static void finish(struct world *world)
{
    device_group_start(world->group);
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);
}

#define DEVICE_GROUP_TEST(name) FIXTURE_TEST(name, struct world *world, begin, end)

DEVICE_GROUP_TEST(a_reduction_gives_the_root_the_sum_of_every_element)
{
    static float g[REPLICAS][MANY], sum[MANY]; /* given */

    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t r = 0; r < REPLICAS; r++)
            g[r][i] = (float)((r + 1) * i);
    void *to[REPLICAS] = {NULL, sum, NULL};
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *[]){g[0], g[1], g[2]}, to, every_one_many, NULL};

    assert_int_equal(/* when */
                     device_group_add(
                         world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, 1, &values, NULL),
                     SUMAC_OK);
    finish(world);

    for (uint32_t i = 0; i < MANY; i++) { /* then */
        assert_true(sum[i] == (float)(6 * i));
        assert_true(g[2][i] == (float)(3 * i));
    }
}

/* 2^24 + 1 is 2^24 in float32: only -2^24 first, and 1 after it, gives 1. */
DEVICE_GROUP_TEST(replicas_are_added_in_their_order_whoever_the_root_is)
{
    for (uint32_t root = 0; root < REPLICAS; root++) {
        float a[1] = {0x1p24f}, b[1] = {-0x1p24f}, c[1] = {1}, sum[1] = {0}; /* given */
        void *to[REPLICAS] = {sum, sum, sum};
        const struct device_group_values values = {
            SUMAC_FLOAT32, (const void *[]){a, b, c}, to, ones, NULL};

        assert_int_equal(/* when */
                         device_group_add(
                             world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, root, &values, NULL),
                         SUMAC_OK);
        finish(world);

        assert_true(sum[0] == 1); /* then */
    }
}

DEVICE_GROUP_TEST(all_reduce_in_its_place_gives_everybody_the_same_bits)
{
    static float g[REPLICAS][MANY], alone[MANY]; /* given */
    static uint16_t half[REPLICAS][MANY];

    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t r = 0; r < REPLICAS; r++) {
            g[r][i] = 1.0f / (float)(i + r + 1);
            half[r][i] = bfloat16_of_float32((float)(r + 1));
        }
    for (uint32_t i = 0; i < MANY; i++)
        alone[i] = (g[0][i] + g[1][i]) + g[2][i];
    void *places[REPLICAS] = {g[0], g[1], g[2]};
    void *halves[REPLICAS] = {half[0], half[1], half[2]};
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)places, places, every_one_many, NULL};
    const struct device_group_values means = {
        SUMAC_BFLOAT16, (const void *const *)halves, halves, every_one_many, (double[]){1, 1, 2}};

    assert_int_equal(/* when: two calls in one start */
                     device_group_add(
                         world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
                     SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &means, NULL),
        SUMAC_OK);
    finish(world);

    for (uint32_t r = 0; r < REPLICAS; r++) { /* then */
        assert_memory_equal(g[r], alone, sizeof alone);
        for (uint32_t i = 0; i < MANY; i++)
            assert_true(float32_of_bfloat16(half[r][i]) == 2.25f);
    }
}

/* First axes of 2, 0 and 3 rows of two columns. */
DEVICE_GROUP_TEST(all_gather_puts_uneven_rows_one_after_the_other)
{
    const int32_t a[] = {1, 2, 3, 4}, c[] = {5, 6, 7, 8, 9, 10}; /* given */
    int32_t all[REPLICAS][10] = {{0}};
    const struct device_group_values values = {
        SUMAC_INT32, (const void *[]){a, NULL, c}, (void *[]){all[0], all[1], all[2]},
        (const uint64_t[]){4, 0, 6}, NULL};

    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_GATHER, 0, 0, &values, NULL), SUMAC_OK); /* when */
    finish(world);

    for (uint32_t r = 0; r < REPLICAS; r++) /* then */
        for (int32_t i = 0; i < 10; i++)
            assert_int_equal(all[r][i], i + 1);
}

/* A later call reads what an earlier one of the same start wrote, also on another device. */
DEVICE_GROUP_TEST(calls_of_one_start_run_one_after_the_other)
{
    bool flags[REPLICAS][MANY] = {{false}}; /* given */
    static int64_t g[REPLICAS][MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        flags[2][i] = i % 2 == 1;
        g[0][i] = g[1][i] = g[2][i] = i;
    }
    const void *sources[REPLICAS] = {NULL, NULL, flags[2]};
    void *places[REPLICAS] = {g[0], g[1], g[2]};
    const struct device_group_values told = {
        SUMAC_BOOL, sources, (void *[]){flags[0], flags[1], flags[2]}, every_one_many, NULL};
    const struct device_group_values values = {
        SUMAC_INT64, (const void *const *)places, places, every_one_many, NULL};

    assert_int_equal(
        device_group_add(world->group, GROUP_BROADCAST, 0, 2, &told, NULL), SUMAC_OK); /* when */
    assert_int_equal(
        device_group_add(world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL), SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, NULL), SUMAC_OK);
    finish(world);

    for (uint32_t i = 0; i < MANY; i++) /* then */
        for (uint32_t r = 0; r < REPLICAS; r++) {
            assert_int_equal(flags[r][i], i % 2 == 1);
            assert_int_equal(g[r][i], 3 * i);
        }
}

static enum sumac_status meet_test(void *context)
{
    pthread_barrier_wait(context);
    return SUMAC_OK;
}

/* Replica 1's device is busy for as long as the test wants. */
DEVICE_GROUP_TEST(a_wait_that_ends_too_early_names_who_has_not_come)
{
    float g[REPLICAS][1] = {{1}, {2}, {3}}; /* given */
    void *places[REPLICAS] = {g[0], g[1], g[2]};
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)places, places, ones, NULL};
    struct sumac_error error = {0};
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, 2);
    device_run(world->queues[1], meet_test, &meeting);
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
        SUMAC_OK);

    device_group_start(world->group); /* when */
    enum sumac_status status = SUMAC_OK;
    do /* until the others have come */
        status = device_group_wait(world->group, 1, &error);
    while (strchr(error.text, ',') != NULL);

    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_string_equal(error.text, "a group of 3 replicas waited 1 ms for replica 1 (CPU:1)");
    assert_int_equal(/* nothing can be added meanwhile, … */
                     device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, &error),
                     SUMAC_FAILED_PRECONDITION);
    pthread_barrier_wait(&meeting); /* … and once it comes, the call ends well */
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);
    assert_true(g[0][0] == 6 && g[1][0] == 6 && g[2][0] == 6);
    pthread_barrier_destroy(&meeting);
}

static void *abort_it(void *group)
{
    device_group_abort(group);
    return NULL;
}

DEVICE_GROUP_TEST(an_abort_ends_the_wait_and_touches_nothing_more)
{
    float g[REPLICAS][1] = {{1}, {2}, {3}}; /* given */
    void *places[REPLICAS] = {g[0], g[1], g[2]};
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)places, places, ones, NULL};
    struct sumac_error error = {0};
    pthread_barrier_t meeting;
    pthread_t thread;

    pthread_barrier_init(&meeting, NULL, 2);
    device_run(world->queues[1], meet_test, &meeting);
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
        SUMAC_OK);
    device_group_start(world->group);
    do /* until the others wait for it */
        assert_int_equal(device_group_wait(world->group, 1, &error), SUMAC_DEADLINE_EXCEEDED);
    while (strchr(error.text, ',') != NULL);

    assert_int_equal(pthread_create(&thread, NULL, abort_it, world->group), 0); /* when */
    const enum sumac_status status = device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error);

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(error.text, "the group of 3 replicas was aborted: open another");
    pthread_join(thread, NULL);
    pthread_barrier_wait(&meeting); /* the one that is late finds it so */
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    assert_true(g[0][0] == 1 && g[1][0] == 2 && g[2][0] == 3);
    assert_int_equal(
        device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, NULL), SUMAC_OK);
    device_group_start(world->group); /* a later call fails again */
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_ABORTED);
    assert_true(g[1][0] == 2);
    pthread_barrier_destroy(&meeting);
}

DEVICE_GROUP_TEST(a_call_that_cannot_be_is_refused_with_the_remedy)
{
    float g[1] = {1}; /* given */
    void *places[REPLICAS] = {g, g, g};
    struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)places, places, ones, NULL};
    struct sumac_error error = {0};

    assert_int_equal(/* when, then */
                     device_group_add(
                         world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, 3, &values, &error),
                     SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "the root is replica 3 of a group of 3: they are 0 to 2");
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "MEAN wants a weight for each of the 3 replicas");
    values.elements = (const uint64_t[]){1, 1, 2};
    assert_int_equal(
        device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "replica 2 gives 2 elements, and replica 0 gives 1");
    values.elements = ones;
    values.dtype = SUMAC_INT32;
    values.weights = (const double[]){1, 1, 1};
    assert_int_equal(
        device_group_add(world->group, GROUP_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "int32 values cannot be reduced by MEAN");
    values.dtype = (enum sumac_dtype)99;
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_GATHER, 0, 0, &values, &error),
        SUMAC_INVALID_ARGUMENT);
    values.dtype = SUMAC_FLOAT32;
    for (uint32_t i = 0; i < CALLS_MAX; i++)
        assert_int_equal(
            device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, NULL), SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, &error),
        SUMAC_RESOURCE_EXHAUSTED);
    assert_string_equal(error.text, "4 calls were added to a group that has room for 4: start it");
    finish(world);
    assert_int_equal(device_group_open(NULL, 0, 1, &world->group, &error), SUMAC_INVALID_ARGUMENT);
}

DEVICE_GROUP_TEST(a_group_that_does_not_run_need_not_be_waited_for)
{
    assert_int_equal(device_group_wait(world->group, 0, NULL), SUMAC_OK); /* when, then */
    finish(world);                                                        /* of no call */
    assert_true(reduce_has(SUMAC_REDUCE_SUM, SUMAC_INT8));
    assert_false(reduce_has(SUMAC_REDUCE_MEAN, SUMAC_INT8));
    device_group_close(NULL);
}

DEVICE_GROUP_TEST(when_nobody_has_come_all_are_named)
{
    struct sumac_error error = {0};
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, REPLICAS + 1); /* given */
    for (uint32_t i = 0; i < REPLICAS; i++)
        device_run(world->queues[i], meet_test, &meeting);

    device_group_start(world->group); /* when */
    const enum sumac_status status = device_group_wait(world->group, 1, &error);

    pthread_barrier_wait(&meeting); /* whatever it says, the devices go on */
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);
    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_string_equal(
        error.text,
        "a group of 3 replicas waited 1 ms for replica 0 (CPU:0), 1 (CPU:1), 2 (CPU:2)");
    pthread_barrier_destroy(&meeting);
}

/* ---- until when a wait lasts: the linker hands its waits to these */

static struct timespec *limit; /* where a timed wait writes its end, and is over; NULL: nowhere */
static pthread_barrier_t *released; /* who is held up in a share goes on when the test waits */

int __real_pthread_cond_timedwait(
    pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(
    pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until);
int __real_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex);
void __real_reduce_values(enum sumac_reduce_op op, const struct reduce_input *input);
void __wrap_reduce_values(enum sumac_reduce_op op, const struct reduce_input *input);

int __wrap_pthread_cond_timedwait(
    pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until)
{
    if (limit == NULL)
        return __real_pthread_cond_timedwait(changed, mutex, until);
    *limit = *until;
    return ETIMEDOUT;
}

static pthread_t tester;

int __wrap_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex)
{
    if (released != NULL && pthread_equal(tester, pthread_self())) {
        pthread_mutex_unlock(mutex);
        pthread_barrier_wait(released);
        released = NULL;
        pthread_mutex_lock(mutex);
        return 0; /* as if it had been woken */
    }
    return __real_pthread_cond_wait(changed, mutex);
}

static pthread_barrier_t *in_a_share; /* replica 0 meets the test there, twice */

void __wrap_reduce_values(enum sumac_reduce_op op, const struct reduce_input *input)
{
    if (in_a_share != NULL && input->first == 0) {
        pthread_barrier_wait(in_a_share);
        pthread_barrier_wait(in_a_share);
    }
    __real_reduce_values(op, input);
}

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

DEVICE_GROUP_TEST(a_wait_lasts_as_long_as_it_was_told_to)
{
    static const uint32_t times_ms[] = {0, 1, 999, 1999, 61001};
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, 2); /* given */
    device_run(world->queues[0], meet_test, &meeting);
    device_group_start(world->group);
    for (size_t i = 0; i < sizeof times_ms / sizeof times_ms[0]; i++) {
        const int64_t ns = (int64_t)times_ms[i] * 1000000;
        struct timespec before, until = {0}, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        limit = &until;
        const enum sumac_status status =
            device_group_wait(world->group, times_ms[i], NULL); /* when */
        limit = NULL;
        clock_gettime(CLOCK_MONOTONIC, &after);

        assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
        assert_in_range(ns_of(&until), ns_of(&before) + ns, ns_of(&after) + ns);
        assert_in_range(until.tv_nsec, 0, 999999999);
    }
    pthread_barrier_wait(&meeting);
    struct timespec none = {0};
    limit = &none;
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);
    limit = NULL;
    pthread_barrier_destroy(&meeting);
}

/* Replica 0 is in the midst of its share when the group is aborted. */
DEVICE_GROUP_TEST(an_aborted_wait_lasts_until_nobody_touches_the_values)
{
    float g[REPLICAS][1] = {{1}, {2}, {3}}; /* given */
    void *places[REPLICAS] = {g[0], g[1], g[2]};
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)places, places, ones, NULL};
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, 2);
    in_a_share = &meeting;
    assert_int_equal(
        device_group_add(world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL), SUMAC_OK);
    device_group_start(world->group);
    pthread_barrier_wait(&meeting);
    device_group_abort(world->group);
    assert_int_equal(device_group_wait(world->group, 1, NULL), SUMAC_DEADLINE_EXCEEDED);

    tester = pthread_self(); /* when */
    released = &meeting;
    const enum sumac_status status = device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL);
    const float then = g[0][0];
    if (released != NULL)
        pthread_barrier_wait(&meeting);
    in_a_share = released = NULL;

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_true(then == 6);
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
    pthread_barrier_destroy(&meeting);
}

/* A late replica still reads the group, which was aborted. */
DEVICE_GROUP_TEST(a_group_that_is_closed_waits_for_who_is_late)
{
    pthread_barrier_t meeting;

    pthread_barrier_init(&meeting, NULL, 2); /* given */
    device_run(world->queues[1], meet_test, &meeting);
    device_group_start(world->group);
    device_group_abort(world->group);
    assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_ABORTED);

    tester = pthread_self(); /* when: it goes on when the test would wait */
    released = &meeting;
    device_group_close(world->group);
    const bool waited = released == NULL;
    released = NULL;

    assert_true(waited); /* then */
    pthread_barrier_destroy(&meeting);
    world->group = NULL;
}

DEVICE_GROUP_TEST(devices_of_several_kinds_make_no_group)
{
    struct device_ops ops = *device_kind("CPU"); /* given */

    ops.name = "FAR";
    struct device far = {.ops = &ops, .index = 7};
    struct device_queue queue = {.device = &far};
    struct device_queue *queues[REPLICAS] = {world->queues[0], world->queues[1], &queue};
    struct device_group *group = NULL;
    struct sumac_error error = {0};

    const enum sumac_status status = /* when */
        device_group_open(queues, REPLICAS, 1, &group, &error);

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
    assert_string_equal(
        error.text, "replica 0 of a group is on CPU:0 and replica 2 on FAR:7; give it devices of "
                    "one kind");
    assert_null(group);
}
