/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- a device runs one job at a time on a thread of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "device.h"
#include "sumac/worker.h"

/* Where and how often a job ran. */
struct job {
    pthread_t thread;
    int runs;
    pthread_barrier_t *meeting; /* NULL: nobody to meet */
};

static void work(void *context)
{
    struct job *job = context;
    job->thread = pthread_self();
    job->runs++;
    if (job->meeting != NULL)
        pthread_barrier_wait(job->meeting);
}

static struct device *opened(uint32_t index)
{
    struct device *device = NULL;
    assert_int_equal(device_open(index, &device, NULL), SUMAC_OK);
    return device;
}

static void
a_job_runs_on_the_devices_own_thread_and_its_writes_are_seen_after_the_wait(void **state)
{
    (void)state;
    struct device *device = opened(0); /* given */
    struct job job = {0};

    device_start(device, work, &job); /* when */
    device_wait(device);

    assert_int_equal(job.runs, 1); /* then */
    assert_false(pthread_equal(job.thread, pthread_self()));
    device_close(device);
}

static void every_job_of_a_device_runs_on_the_same_thread(void **state)
{
    (void)state;
    struct device *device = opened(0); /* given */
    struct job first = {0}, second = {0};

    device_start(device, work, &first); /* when */
    device_wait(device);
    device_start(device, work, &second);
    device_wait(device);

    assert_true(pthread_equal(first.thread, second.thread)); /* then */
    device_close(device);
}

/* Neither job ends unless the other has begun: with one thread for both this would never return. */
static void two_devices_run_their_jobs_at_once(void **state)
{
    (void)state;
    struct device *devices[2] = {opened(0), opened(1)}; /* given */
    pthread_barrier_t meeting;
    pthread_barrier_init(&meeting, NULL, 2);
    struct job jobs[2] = {{.meeting = &meeting}, {.meeting = &meeting}};

    for (int i = 0; i < 2; i++) /* when */
        device_start(devices[i], work, &jobs[i]);
    for (int i = 0; i < 2; i++)
        device_wait(devices[i]);

    assert_int_equal(jobs[0].runs + jobs[1].runs, 2); /* then */
    for (int i = 0; i < 2; i++)
        device_close(devices[i]);
    pthread_barrier_destroy(&meeting);
}

static void closing_a_device_finishes_the_job_that_runs(void **state)
{
    (void)state;
    struct device *device = opened(0); /* given */
    struct job job = {0};

    device_start(device, work, &job); /* when */
    device_close(device);

    assert_int_equal(job.runs, 1); /* then */
}

static void an_idle_device_need_not_be_waited_for(void **state)
{
    (void)state;
    struct device *device = opened(0); /* given */
    device_wait(device);               /* when, then: it returns */
    device_close(device);
    device_close(NULL);
}

static void a_device_is_named_by_its_kind_and_number(void **state)
{
    (void)state;
    char text[16], cut[4];
    assert_string_equal(sumac_device_name(0, text, sizeof text), "CPU:0");
    assert_string_equal(sumac_device_name(12, text, sizeof text), "CPU:12");
    assert_string_equal(sumac_device_name(12, cut, sizeof cut), "CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_job_runs_on_the_devices_own_thread_and_its_writes_are_seen_after_the_wait),
        cmocka_unit_test(every_job_of_a_device_runs_on_the_same_thread),
        cmocka_unit_test(two_devices_run_their_jobs_at_once),
        cmocka_unit_test(closing_a_device_finishes_the_job_that_runs),
        cmocka_unit_test(an_idle_device_need_not_be_waited_for),
        cmocka_unit_test(a_device_is_named_by_its_kind_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
