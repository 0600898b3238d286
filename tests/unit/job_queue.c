/* SPDX-License-Identifier: Apache-2.0 */
/* job_queue.c -- queues in trouble: a thread is ended by what it runs, and another takes over; what
 * failures say; what a device that was given up has yet to do. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "unit.h"
#include <pthread.h>

#include "device.h"

/* The linker hands this program's calls to these. */
static atomic_bool has_no_threads;
static atomic_int detached;
static pthread_t joined;

int __real_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __real_pthread_detach(pthread_t thread);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_join(pthread_t thread, void **result);

int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return has_no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* A thread gives itself up. */
int __wrap_pthread_detach(pthread_t thread)
{
    detached += pthread_equal(thread, pthread_self()) != 0;
    return __real_pthread_detach(thread);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    joined = thread;
    return __real_pthread_join(thread, result);
}

static enum sumac_status end_thread(void *context)
{
    (void)context;
    pthread_exit(NULL);
}

static enum sumac_status note_thread(void *context)
{
    *(pthread_t *)context = pthread_self();
    return SUMAC_OK;
}

static struct device_queue *opened(void)
{
    struct device *device = NULL;
    struct device_queue *queue = NULL;

    assert_int_equal(device_open(device_kind("CPU"), 0, &device, NULL), SUMAC_OK);
    assert_int_equal(device_queue_open(device, &queue, NULL), SUMAC_OK);
    detached = 0;
    return queue;
}

static void close_both(struct device_queue *queue)
{
    struct device *const device = queue->device;

    device_queue_close(queue);
    device_close(device);
}

TEST(the_thread_that_takes_over_is_joined_and_the_one_that_ended_is_let_go)
{
    struct device_queue *queue = opened(); /* given */
    pthread_t second;

    device_run(queue, end_thread, NULL);
    assert_int_equal(device_wait(queue), SUMAC_ABORTED);
    device_run(queue, note_thread, &second);
    assert_int_equal(device_wait(queue), SUMAC_OK);

    close_both(queue); /* when */

    assert_true(pthread_equal(joined, second)); /* then */
    assert_int_equal(detached, 1);
}

TEST(where_no_thread_can_take_over_the_one_that_is_ended_goes_on)
{
    struct device_queue *queue = opened(); /* given */
    pthread_t first, second;

    device_run(queue, note_thread, &first);
    assert_int_equal(device_wait(queue), SUMAC_OK);
    has_no_threads = true;

    device_run(queue, end_thread, NULL); /* when */
    assert_int_equal(device_wait(queue), SUMAC_ABORTED);
    device_run(queue, note_thread, &second);
    assert_int_equal(device_wait(queue), SUMAC_OK);
    has_no_threads = false;

    assert_true(pthread_equal(first, second)); /* then */
    close_both(queue);
    assert_true(pthread_equal(joined, second));
    assert_int_equal(detached, 0);
}

static enum sumac_status fail_without_words(void *context)
{
    (void)context;
    return SUMAC_DATA_LOSS;
}

TEST(what_one_failure_says_is_not_said_of_the_next)
{
    struct device_queue *queue = opened(); /* given */

    device_run(queue, end_thread, NULL);
    assert_int_equal(device_wait(queue), SUMAC_ABORTED);

    device_run(queue, fail_without_words, NULL); /* when */
    assert_int_equal(device_wait(queue), SUMAC_DATA_LOSS);

    assert_string_equal(device_why(queue), ""); /* then */
    close_both(queue);
}

static enum sumac_status wait_for_test(void *context)
{
    (void)pthread_barrier_wait(context); /* it has begun */
    (void)pthread_barrier_wait(context);
    return SUMAC_OK;
}

/* The context of a job may be gone. */
TEST(nothing_that_a_given_up_device_has_to_do_yet_is_done)
{
    struct device_queue *queue = opened(); /* given */
    struct device_event *event = NULL;
    pthread_barrier_t held;
    pthread_t waited = 0, dropped = 0;

    assert_int_equal(device_event_open(queue->device, &event, NULL), SUMAC_OK);
    assert_int_equal(pthread_barrier_init(&held, NULL, 2), 0);
    device_run(queue, wait_for_test, &held);
    device_run(queue, note_thread, &waited);
    (void)pthread_barrier_wait(&held);

    (void)alarm(60); /* a queue that is full would be waited for */

    device_give_up(queue->device);                  /* when */
    for (uint32_t i = 0; i <= DEVICE_JOBS_MAX; i++) /* a full queue is no wait */
        device_run(queue, note_thread, &dropped);
    (void)pthread_barrier_wait(&held);

    assert_int_equal(device_wait(queue), SUMAC_ABORTED); /* then */
    assert_true(waited == 0 && dropped == 0);
    (void)alarm(0);
    device_queue_close(queue); /* by name only: all of it is there yet */
    device_event_close(event);
    device_close(queue->device);
    atomic_store(&queue->device->is_given_up, false); /* so that it may be closed */
    pthread_barrier_destroy(&held);
    device_event_close(event);
    close_both(queue);
}

TEST(a_wait_of_the_longest_time_has_no_limit)
{
    assert_true(device_until(UINT32_MAX) == DEVICE_NO_LIMIT);
    assert_true(device_until(UINT32_MAX - 1) < DEVICE_NO_LIMIT);
}
