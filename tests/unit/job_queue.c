/* SPDX-License-Identifier: Apache-2.0 */
/* job_queue.c -- a queue whose thread is ended by what it runs: another thread takes over, and
 * neither is lost. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
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

static void the_thread_that_takes_over_is_joined_and_the_one_that_ended_is_let_go(void **state)
{
    (void)state;
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

static void where_no_thread_can_take_over_the_one_that_is_ended_goes_on(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thread_that_takes_over_is_joined_and_the_one_that_ended_is_let_go),
        cmocka_unit_test(where_no_thread_can_take_over_the_one_that_is_ended_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
