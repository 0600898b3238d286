/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- devices through their table: queues run what they are given in order, and at once.
 *
 *     unit_device [KIND [OTHER]]    on devices of that kind, "CPU" or "GPU", 0 and OTHER; "CPU" 1
 */
#define _GNU_SOURCE /* pthread_getname_np */
#include <errno.h>
#include <stdatomic.h>

#include "unit.h"
#include <pthread.h>

#include "device.h"
#include "sumac/worker.h"
#include "trace.h"

static const char *kind = "CPU";
static uint32_t other_index = 1; /* a machine may have one GPU only: then it is that, once more */

/* "CPU:5" */
static const char *named(unsigned index)
{
    static char name[16];

    (void)snprintf(name, sizeof name, "%s:%u", kind, index);
    return name;
}

/* Where and how often a job ran. */
struct job {
    pthread_t thread;
    char thread_name[16];
    int runs;
    pthread_barrier_t *barrier; /* NULL: it does not wait */
};

static enum sumac_status work(void *context)
{
    struct job *job = context;

    job->thread = pthread_self();
    (void)pthread_getname_np(job->thread, job->thread_name, sizeof job->thread_name);
    job->runs++;
    if (job->barrier != NULL)
        pthread_barrier_wait(job->barrier);
    return SUMAC_OK;
}

static enum sumac_status give_up(void *context)
{
    (void)context;
    return SUMAC_FAILED_PRECONDITION;
}

static enum sumac_status end_thread(void *context)
{
    (void)context;
    pthread_exit(NULL);
}

static struct device *opened(uint32_t index)
{
    struct device *device = NULL;

    assert_int_equal(device_open(device_kind(kind), index, &device, NULL), SUMAC_OK);
    return device;
}

static struct device_queue *queue_of(struct device *device)
{
    struct device_queue *queue = NULL;

    assert_int_equal(device_queue_open(device, &queue, NULL), SUMAC_OK);
    return queue;
}

TEST(a_job_runs_on_the_queues_own_thread_and_its_writes_are_seen_after_the_wait)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct job first = {0}, second = {0};

    device_run(queue, work, &first); /* when */
    assert_int_equal(device_wait(queue), SUMAC_OK);
    device_run(queue, work, &second);
    assert_int_equal(device_wait(queue), SUMAC_OK);

    assert_int_equal(first.runs, 1); /* then */
    assert_int_equal(second.runs, 1);
    assert_false(pthread_equal(first.thread, pthread_self()));
    assert_true(pthread_equal(first.thread, second.thread));
    assert_string_equal(first.thread_name, named(0));
    device_queue_close(queue);
    device_close(device);
}

/* Neither job ends unless the other has begun: with one thread for both this would never return. */
TEST(two_devices_run_their_jobs_at_once)
{
    struct device *devices[2] = {opened(0), opened(other_index)}; /* given */
    struct device_queue *queues[2] = {queue_of(devices[0]), queue_of(devices[1])};
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, 2);
    struct job jobs[2] = {{.barrier = &barrier}, {.barrier = &barrier}};

    for (int i = 0; i < 2; i++) /* when */
        device_run(queues[i], work, &jobs[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(device_wait(queues[i]), SUMAC_OK);

    assert_int_equal(jobs[0].runs + jobs[1].runs, 2); /* then */
    for (int i = 0; i < 2; i++) {
        device_queue_close(queues[i]);
        device_close(devices[i]);
    }
    pthread_barrier_destroy(&barrier);
}

/* A number with a digit for each job, the first one's at the front. */
struct digit {
    uint64_t *number;
    unsigned digit;
};

static enum sumac_status append_digit(void *context)
{
    const struct digit *digit = context;

    *digit->number = *digit->number * 10 + digit->digit;
    return SUMAC_OK;
}

TEST(what_is_put_into_a_queue_runs_in_that_order_however_much_it_is)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    uint64_t number = 0;
    struct job many = {0};
    struct digit digits[] = {{&number, 1}, {&number, 2}, {&number, 3}};

    for (int i = 0; i < 3; i++) /* when */
        device_run(queue, append_digit, &digits[i]);
    for (unsigned i = 0; i < 3 * DEVICE_JOBS_MAX; i++)
        device_run(queue, work, &many);

    assert_int_equal(device_wait(queue), SUMAC_OK); /* then */
    assert_int_equal(number, 123);
    assert_int_equal(many.runs, 3 * DEVICE_JOBS_MAX);
    device_queue_close(queue);
    device_close(device);
}

TEST(the_first_failure_is_told_by_the_next_wait_and_only_by_that)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct job after = {0};

    device_run(queue, give_up, NULL); /* when */
    device_run(queue, work, &after);

    assert_int_equal(device_wait(queue), SUMAC_FAILED_PRECONDITION); /* then */
    assert_int_equal(after.runs, 1);
    assert_int_equal(device_wait(queue), SUMAC_OK);
    device_queue_close(queue);
    device_close(device);
}

TEST(a_wait_that_is_well_tells_no_reason_of_the_one_before)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);

    device_run(queue, end_thread, NULL);
    assert_int_equal(device_wait(queue), SUMAC_ABORTED);
    assert_non_null(strstr(device_why(queue), "pthread_exit"));

    assert_int_equal(device_wait(queue), SUMAC_OK); /* when */

    assert_string_equal(device_why(queue), ""); /* then */
    device_queue_close(queue);
    device_close(device);
}

/* Wait for the test. */
static enum sumac_status be_held(void *context)
{
    (void)pthread_barrier_wait(context);
    return SUMAC_OK;
}

TEST(a_wait_that_is_too_short_tells_no_reason_of_the_one_before)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    pthread_barrier_t held;

    assert_int_equal(pthread_barrier_init(&held, NULL, 2), 0);
    device_run(queue, end_thread, NULL);
    assert_int_equal(device_wait(queue), SUMAC_ABORTED);
    device_run(queue, be_held, &held);

    assert_int_equal(device_settle(queue, 0), SUMAC_DEADLINE_EXCEEDED); /* when */

    assert_string_equal(device_why(queue), ""); /* then */
    (void)pthread_barrier_wait(&held);
    assert_int_equal(device_wait(queue), SUMAC_OK);
    pthread_barrier_destroy(&held);
    device_queue_close(queue);
    device_close(device);
}

TEST(closing_a_queue_finishes_what_is_in_it)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct job job = {0};

    device_run(queue, work, &job); /* when */
    device_queue_close(queue);

    assert_int_equal(job.runs, 1); /* then */
    device_close(device);
    device_close(NULL);
    device_queue_close(NULL);
    device_event_close(NULL);
}

TEST(an_empty_queue_need_not_be_waited_for)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);

    assert_int_equal(device_wait(queue), SUMAC_OK); /* when, then: it returns */
    device_queue_close(queue);
    device_close(device);
}

/* The host reads what it has had copied to it: a device's memory may be out of its reach. */
TEST(a_devices_memory_is_zeroed_and_copied_in_the_order_of_the_queue)
{
    struct device *device = opened(other_index); /* given */
    struct device_queue *queue = queue_of(device);
    struct sumac_buffer *buffer = NULL, *other = NULL, *host = NULL, *seen = NULL;

    assert_int_equal(device_buffer_create(device, 16, &buffer, NULL), SUMAC_OK);
    assert_int_equal(device_buffer_create(device, 16, &other, NULL), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(8, &host), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(24, &seen), SUMAC_OK);
    assert_int_equal((uintptr_t)sumac_buffer_data(buffer) % 64, 0);
    memset(sumac_buffer_data(seen), 'x', 24);
    memcpy(sumac_buffer_data(host), "abcdefgh", 8);

    device_copy(/* when: there, on to another place there, and back from where it was put */
                queue,
                &(struct sumac_copy){.to = buffer, .from = host, .to_offset = 8, .bytes = 8});
    device_copy(
        queue, &(struct sumac_copy){.to = other, .from = buffer, .from_offset = 12, .bytes = 4});
    device_copy(queue, &(struct sumac_copy){.to = seen, .from = buffer, .bytes = 16});
    device_copy(
        queue, &(struct sumac_copy){.to = seen, .from = other, .to_offset = 16, .bytes = 8});
    device_copy(queue, &(struct sumac_copy){.to = host, .from = seen, .bytes = 0});
    device_copy(
        queue, &(struct sumac_copy){.to = host, .from = seen, .from_offset = 16, .bytes = 4});
    assert_int_equal(device_wait(queue), SUMAC_OK);

    assert_memory_equal(/* then */
                        sumac_buffer_data(seen), "\0\0\0\0\0\0\0\0abcdefghefgh\0\0\0\0", 24);
    assert_memory_equal(sumac_buffer_data(host), "efghefgh", 8);
    sumac_buffer_unref(seen);
    sumac_buffer_unref(host);
    sumac_buffer_unref(other);
    sumac_buffer_unref(buffer);
    device_queue_close(queue);
    device_close(device);
}

/* It may be another queue's, or the device's own, that makes it so. */
TEST(memory_is_zero_for_whoever_comes_first)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct sumac_buffer *seen = NULL;
    static const char zeros[4096];

    assert_int_equal(sumac_buffer_create(sizeof zeros, &seen), SUMAC_OK);
    for (int round = 0; round < 50; round++) {
        struct sumac_buffer *buffer = NULL;
        memset(sumac_buffer_data(seen), 'x', sizeof zeros);

        assert_int_equal(
            device_buffer_create(device, sizeof zeros, &buffer, NULL), SUMAC_OK); /* when */
        device_copy(queue, &(struct sumac_copy){.to = seen, .from = buffer, .bytes = sizeof zeros});
        assert_int_equal(device_wait(queue), SUMAC_OK);

        assert_memory_equal(sumac_buffer_data(seen), zeros, sizeof zeros); /* then */
        sumac_buffer_unref(buffer);
    }
    sumac_buffer_unref(seen);
    device_queue_close(queue);
    device_close(device);
}

/* The copy that the second queue makes is of what the first one's brings, time after time: without
 * the event it would be of what was there before. */
TEST(a_copy_in_another_queue_awaits_what_it_is_of)
{
    struct device *devices[2] = {opened(0), opened(other_index)}; /* given */
    struct device_queue *queues[2] = {queue_of(devices[0]), queue_of(devices[1])};
    struct device_event *event = NULL;
    struct sumac_buffer *first = NULL, *second = NULL, *host = NULL, *seen = NULL;
    const uint64_t bytes = 1 << 20;

    assert_int_equal(device_event_open(devices[0], &event, NULL), SUMAC_OK);
    assert_int_equal(device_buffer_create(devices[0], bytes, &first, NULL), SUMAC_OK);
    assert_int_equal(device_buffer_create(devices[1], bytes, &second, NULL), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(bytes, &host), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(bytes, &seen), SUMAC_OK);

    for (int round = 1; round <= 20; round++) {
        memset(sumac_buffer_data(host), round, bytes);
        device_copy(/* when */
                    queues[0], &(struct sumac_copy){.to = first, .from = host, .bytes = bytes});
        device_record(queues[0], event);
        device_await(queues[1], event);
        device_copy(queues[1], &(struct sumac_copy){.to = second, .from = first, .bytes = bytes});
        device_copy(queues[1], &(struct sumac_copy){.to = seen, .from = second, .bytes = bytes});
        assert_int_equal(device_wait(queues[1]), SUMAC_OK);

        assert_memory_equal(sumac_buffer_data(seen), sumac_buffer_data(host), bytes); /* then */
        assert_int_equal(device_wait(queues[0]), SUMAC_OK);
    }
    sumac_buffer_unref(seen);
    sumac_buffer_unref(host);
    sumac_buffer_unref(second);
    sumac_buffer_unref(first);
    device_event_close(event);
    for (int i = 0; i < 2; i++) {
        device_queue_close(queues[i]);
        device_close(devices[i]);
    }
}

/* What it reads has been copied to the host before, in the same queue. */
static enum sumac_status compare(void *context)
{
    struct sumac_buffer *const *buffers = context;

    return memcmp(
               sumac_buffer_data(buffers[0]), sumac_buffer_data(buffers[1]),
               sumac_buffer_bytes(buffers[0])) == 0
               ? SUMAC_OK
               : SUMAC_DATA_LOSS;
}

TEST(a_job_sees_what_was_copied_before_it)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct sumac_buffer *there = NULL, *buffers[2] = {NULL, NULL};
    const uint64_t bytes = 1 << 20;

    assert_int_equal(device_buffer_create(device, bytes, &there, NULL), SUMAC_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sumac_buffer_create(bytes, &buffers[i]), SUMAC_OK);

    for (int round = 1; round <= 20; round++) {
        memset(sumac_buffer_data(buffers[0]), round, bytes);
        device_copy(/* when */
                    queue, &(struct sumac_copy){.to = there, .from = buffers[0], .bytes = bytes});
        device_copy(queue, &(struct sumac_copy){.to = buffers[1], .from = there, .bytes = bytes});
        device_run(queue, compare, buffers);

        assert_int_equal(device_wait(queue), SUMAC_OK); /* then */
    }
    sumac_buffer_unref(there);
    for (int i = 0; i < 2; i++)
        sumac_buffer_unref(buffers[i]);
    device_queue_close(queue);
    device_close(device);
}

/* Armed: the next thread of a queue that waits for anything meets the test first. A thread that
 * would itself wait for what it holds up lets that go on. */
static atomic_bool is_armed;
static pthread_barrier_t about_to_wait;
static _Thread_local pthread_barrier_t *held_up; /* NULL: nothing is */

int __real_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex);

int __wrap_pthread_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex)
{
    if (atomic_exchange(&is_armed, false))
        pthread_barrier_wait(&about_to_wait);
    if (held_up != NULL) {
        pthread_mutex_unlock(mutex);
        pthread_barrier_wait(held_up);
        held_up = NULL;
        pthread_mutex_lock(mutex);
        return 0; /* as if it had been woken */
    }
    return __real_pthread_cond_wait(changed, mutex);
}

TEST(a_queue_takes_as_many_jobs_as_it_has_room_for_without_a_wait)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, 2);
    struct job held = {.barrier = &barrier}, others = {0};
    held_up = &barrier;

    device_run(queue, work, &held); /* when */
    for (unsigned i = 1; i < DEVICE_JOBS_MAX; i++)
        device_run(queue, work, &others);
    const bool waited = held_up == NULL;
    device_run(queue, work, &others);

    assert_false(waited); /* then */
    assert_null(held_up);
    assert_int_equal(device_wait(queue), SUMAC_OK);
    assert_int_equal(others.runs, DEVICE_JOBS_MAX);
    pthread_barrier_destroy(&barrier);
    device_queue_close(queue);
    device_close(device);
}

static bool has_no_threads;

int __real_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return has_no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

TEST(a_queue_that_has_no_thread_says_what_to_do)
{
    struct device *device = opened(other_index); /* given */
    struct device_queue *queue = NULL;
    struct sumac_error error = {0};

    has_no_threads = true;
    const enum sumac_status status = device_queue_open(device, &queue, &error); /* when */
    has_no_threads = false;

    assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED); /* then */
    assert_int_equal(error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    char expected[128];
    (void)snprintf(
        expected, sizeof expected,
        "device %s could not start its thread: Resource temporarily unavailable; ask for fewer "
        "replicas",
        named(other_index));
    assert_string_equal(error.text, expected);
    assert_null(queue);
    device_close(device);
}

/* The second queue's job is held up by the first one's, which waits for the test. The event has
 * come to pass once before. */
TEST(a_queue_awaits_what_was_recorded_in_another)
{
    struct device *devices[2] = {opened(0), opened(other_index)}; /* given */
    struct device_queue *queues[2] = {queue_of(devices[0]), queue_of(devices[1])};
    struct device_event *event = NULL;

    assert_int_equal(device_event_open(devices[0], &event, NULL), SUMAC_OK);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    uint64_t number = 0;
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 2);
    pthread_barrier_init(&about_to_wait, NULL, 2);
    struct job held = {.barrier = &barrier}, ready = {.barrier = &together};
    struct digit first = {&number, 1}, second = {&number, 2};
    device_record(queues[0], event);
    assert_int_equal(device_wait(queues[0]), SUMAC_OK);

    device_run(queues[0], work, &held); /* when */
    device_run(queues[0], append_digit, &first);
    device_record(queues[0], event);
    device_run(queues[1], work, &ready);
    device_await(queues[1], event);
    device_run(queues[1], append_digit, &second);
    atomic_store(&is_armed, true);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&about_to_wait); /* the second queue can do nothing more */
    pthread_barrier_wait(&barrier);
    assert_int_equal(device_wait(queues[1]), SUMAC_OK);

    assert_int_equal(number, 12); /* then */
    assert_int_equal(device_wait(queues[0]), SUMAC_OK);
    device_event_close(event);
    for (int i = 0; i < 2; i++) {
        device_queue_close(queues[i]);
        device_close(devices[i]);
    }
    pthread_barrier_destroy(&barrier);
    pthread_barrier_destroy(&together);
    pthread_barrier_destroy(&about_to_wait);
}

/* Each is at its wait before the event comes to pass. */
TEST(all_queues_that_await_an_event_go_on)
{
    struct device *device = opened(0); /* given */
    struct device_queue *recording = queue_of(device), *awaiting[2];
    struct device_event *event = NULL;
    pthread_barrier_t barrier, together;
    struct job held = {.barrier = &barrier}, ready = {.barrier = &together};

    assert_int_equal(device_event_open(device, &event, NULL), SUMAC_OK);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_barrier_init(&together, NULL, 2);
    pthread_barrier_init(&about_to_wait, NULL, 2);
    device_run(recording, work, &held);
    device_record(recording, event);
    for (int i = 0; i < 2; i++) {
        awaiting[i] = queue_of(device);
        device_run(awaiting[i], work, &ready);
        device_await(awaiting[i], event);
        atomic_store(&is_armed, true);
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&about_to_wait);
    }

    pthread_barrier_wait(&barrier); /* when */

    for (int i = 0; i < 2; i++) /* then */
        assert_int_equal(device_wait_until(awaiting[i], device_until(10000)), SUMAC_OK);
    for (int i = 0; i < 2; i++)
        device_queue_close(awaiting[i]);
    assert_int_equal(device_wait(recording), SUMAC_OK);
    device_event_close(event);
    device_queue_close(recording);
    device_close(device);
    pthread_barrier_destroy(&barrier);
    pthread_barrier_destroy(&together);
    pthread_barrier_destroy(&about_to_wait);
}

TEST(an_event_that_nothing_recorded_holds_nobody_up)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct device_event *event = NULL;

    assert_int_equal(device_event_open(device, &event, NULL), SUMAC_OK);

    device_await(queue, event); /* when */

    assert_int_equal(device_wait(queue), SUMAC_OK); /* then */
    device_event_close(event);
    device_queue_close(queue);
    device_close(device);
}

static enum sumac_status note_time(void *context)
{
    *(uint64_t *)context = trace_now();
    return SUMAC_OK;
}

TEST(a_stamp_has_the_time_between_what_is_before_it_and_what_is_behind)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    uint64_t stamps[2] = {0, 0}, ran[2] = {0, 0};
    const uint64_t begin_ns = trace_now();

    for (int i = 0; i < 2; i++) { /* when */
        device_run(queue, note_time, &ran[i]);
        device_stamp(queue, &stamps[i]);
    }
    assert_int_equal(device_wait(queue), SUMAC_OK);

    assert_in_range(ran[0], begin_ns, stamps[0]); /* then */
    assert_in_range(stamps[0], ran[0], ran[1]);
    assert_in_range(stamps[1], ran[1], trace_now());
    device_queue_close(queue);
    device_close(device);
}

TEST(a_device_is_named_by_its_kind_and_number)
{
    char text[16], cut[4];
    struct device *device = opened(other_index);

    assert_string_equal(device_name(device, text, sizeof text), named(other_index));
    struct device_queue *queue = queue_of(device);
    const struct sumac_device *seen = device_for_step(queue);
    assert_string_equal(sumac_device_name(seen, text, sizeof text), named(other_index));
    assert_string_equal(
        sumac_device_name(seen, cut, sizeof cut), strncmp(text, "GPU", 3) == 0 ? "GPU" : "CPU");
    assert_string_equal(sumac_device_name(seen, NULL, sizeof cut), "");
    assert_string_equal(sumac_device_name(seen, cut, 0), "");
    assert_string_equal(sumac_device_name(NULL, cut, sizeof cut), "");
    device_queue_close(queue);
    device_close(device);
    assert_null(device_kind("TPU"));
}

/* ---- within a queue's work, as a step does it */

struct step {
    struct device_queue *queue;
    struct sumac_buffer *from, *there, *to, *pinned; /* of 16 bytes */
    struct sumac_error error;
};

/* There and back, by halves the other way round; what is waited for is on the host then. */
static enum sumac_status go_there_and_back(void *context)
{
    struct step *step = context;
    struct sumac_device *device = device_for_step(step->queue);
    const struct sumac_copy copies[] = {
        {.to = step->there, .from = step->from, .bytes = 16},
        {.to = step->pinned, .from = step->there, .from_offset = 8, .bytes = 8},
        {.to = step->pinned, .from = step->there, .to_offset = 8, .bytes = 8},
    };
    enum sumac_status status = SUMAC_OK;

    for (size_t i = 0; status == SUMAC_OK && i < sizeof copies / sizeof copies[0]; i++)
        status = sumac_device_copy(device, &copies[i], &step->error);
    if (status == SUMAC_OK)
        status = sumac_device_wait(device, &step->error);
    if (status == SUMAC_OK)
        memcpy(sumac_buffer_data(step->to), sumac_buffer_data(step->pinned), 16);
    return status;
}

TEST(a_step_copies_to_its_device_and_back_and_waits_for_that)
{
    struct device *device = opened(0); /* given */
    struct step step = {.queue = queue_of(device)};
    struct sumac_device *seen = device_for_step(step.queue);

    assert_int_equal(sumac_buffer_create(16, &step.from), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(16, &step.to), SUMAC_OK);
    memcpy(sumac_buffer_data(step.from), "first..,second..", 16);
    assert_int_equal(sumac_device_buffer_create(seen, 16, &step.there, NULL), SUMAC_OK);
    assert_int_equal(sumac_device_host_buffer_create(seen, 16, &step.pinned, NULL), SUMAC_OK);
    assert_memory_equal(sumac_buffer_data(step.pinned), (char[16]){0}, 16);

    device_issue(step.queue, go_there_and_back, &step); /* when */
    assert_int_equal(device_settle(step.queue, DEVICE_NO_LIMIT), SUMAC_OK);

    assert_memory_equal(sumac_buffer_data(step.to), "second..first..,", 16); /* then */
    assert_int_equal(sumac_buffer_place(step.pinned).kind, SUMAC_PLACE_HOST);
    assert_int_equal(sumac_buffer_place(step.there).kind, device_kind(kind)->place);
    assert_int_equal(sumac_device_gpu(seen), strcmp(kind, "CPU") == 0 ? -1 : 0);
    assert_int_equal(sumac_device_stream(seen) == NULL, strcmp(kind, "CPU") == 0);
    sumac_buffer_unref(step.from);
    sumac_buffer_unref(step.to);
    sumac_buffer_unref(step.there);
    sumac_buffer_unref(step.pinned);
    device_queue_close(step.queue);
    device_close(device);
}

TEST(a_copy_beyond_its_buffers_or_with_another_devices_is_refused)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct sumac_device *seen = device_for_step(queue);
    const struct sumac_place elsewhere = {SUMAC_PLACE_CUDA, 7};
    struct sumac_buffer *here = NULL, *far = NULL;
    struct sumac_error error = {0};
    char far_bytes[16] = "";

    assert_int_equal(sumac_buffer_create(16, &here), SUMAC_OK);
    assert_int_equal(
        sumac_buffer_wrap(far_bytes, sizeof far_bytes, elsewhere, NULL, NULL, &far), SUMAC_OK);
    const struct sumac_copy long_to = {.to = here, .from = here, .to_offset = 9, .bytes = 8};
    const struct sumac_copy long_from = {
        .to = here, .from = here, .from_offset = UINT64_MAX, .bytes = 8};
    const struct sumac_copy from_afar = {.to = here, .from = far, .bytes = 8};

    assert_int_equal(
        sumac_device_copy(seen, &long_to, &error), SUMAC_OUT_OF_RANGE); /* when, then */
    assert_string_equal(error.text, "a copy of 8 bytes from byte 9 on is of a buffer of 16");
    assert_int_equal(sumac_device_copy(seen, &long_from, &error), SUMAC_OUT_OF_RANGE);
    assert_int_equal(sumac_device_copy(seen, &from_afar, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "GPU:7"));
    if (strcmp(kind, "CPU") == 0) { /* whatever the numbers of the two are */
        sumac_buffer_unref(far);
        assert_int_equal(
            sumac_buffer_wrap(
                far_bytes, sizeof far_bytes, (struct sumac_place){SUMAC_PLACE_CUDA, 0}, NULL, NULL,
                &far),
            SUMAC_OK);
        const struct sumac_copy from_0 = {.to = here, .from = far, .bytes = 8};
        assert_int_equal(sumac_device_copy(seen, &from_0, &error), SUMAC_INVALID_ARGUMENT);
    }
    assert_int_equal(sumac_device_buffer_create(seen, 16, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_device_buffer_create: buffer is NULL");
    assert_int_equal(sumac_device_buffer_create(NULL, 16, &far, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_device_buffer_create: device is NULL");
    assert_int_equal(sumac_device_gpu(NULL), -1);
    assert_null(sumac_device_stream(NULL));
    sumac_buffer_unref(far);
    sumac_buffer_unref(here);
    device_queue_close(queue);
    device_close(device);
}

TEST(a_launch_of_nothing_is_refused)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct sumac_device *seen = device_for_step(queue);
    struct sumac_launch launch = {.image = "", .kernel = "k", .threads = 1};
    struct sumac_error error = {0};

    assert_int_equal(sumac_device_launch(seen, &launch, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "k has 0 blocks of 1 threads"));
    launch = (struct sumac_launch){.image = "", .kernel = "k", .blocks = 1};
    assert_int_equal(sumac_device_launch(seen, &launch, &error), SUMAC_INVALID_ARGUMENT);
    launch.threads = 1;
    if (strcmp(kind, "CPU") == 0) {
        assert_int_equal(sumac_device_launch(seen, &launch, &error), SUMAC_FAILED_PRECONDITION);
        assert_non_null(strstr(error.text, "CPU:0"));
    }
    device_queue_close(queue);
    device_close(device);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kind = argv[1];
    if (argc > 2)
        other_index = (uint32_t)strtoul(argv[2], NULL, 10);
    return unit_run(NULL, NULL);
}
