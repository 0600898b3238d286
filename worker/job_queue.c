/* SPDX-License-Identifier: Apache-2.0 */
/* job_queue.c -- a ring of jobs, and the thread that sleeps until there is one. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "job_queue.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "text.h"

/* ---- events */

void job_event_init(struct job_event *event, struct device *device)
{
    assert(event->recorded == 0);
    event->base.device = device;
    pthread_mutex_init(&event->mutex, NULL);
    pthread_cond_init(&event->changed, NULL);
}

void job_event_deinit(struct job_event *event)
{
    assert(event->passed == event->recorded); /* no queue has it */
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
}

void job_event_promise(struct job_event *event)
{
    pthread_mutex_lock(&event->mutex);
    assert(event->passed <= event->recorded);
    event->recorded++;
    pthread_mutex_unlock(&event->mutex);
}

void job_event_pass(struct job_event *event)
{
    pthread_mutex_lock(&event->mutex);
    event->passed++;
    assert(event->passed <= event->recorded);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->mutex);
}

void job_event_await(struct job_event *event, uint64_t until)
{
    pthread_mutex_lock(&event->mutex);
    assert(until <= event->recorded);
    while (event->passed < until)
        pthread_cond_wait(&event->changed, &event->mutex);
    pthread_mutex_unlock(&event->mutex);
}

/* ---- the queue's thread */

static _Thread_local struct job_queue *own; /* whose this thread is */

struct job_queue *job_queue_of_thread(void) { return own; }

/* Under the mutex: the first failure is told. */
static void note(struct job_queue *queue, enum sumac_status status)
{
    if (queue->failure != SUMAC_OK)
        return;
    queue->failure = status;
    memcpy(queue->failure_why, queue->why, sizeof queue->why);
}

static void *serve(void *argument);

/* A function has ended the thread (pthread_exit): it has failed, and another thread goes on.
 * Without one, this thread does so before it ends. */
static void replace_thread(void *argument)
{
    struct job_queue *queue = argument;
    pthread_t successor;

    (void)text_print(
        queue->why, sizeof queue->why, "it ended its thread (pthread_exit); return instead");
    pthread_mutex_lock(&queue->mutex);
    assert(queue->done < queue->put);
    note(queue, SUMAC_ABORTED);
    queue->done++;
    const bool is_replaced = pthread_create(&successor, NULL, serve, queue) == 0;
    if (is_replaced) {
        queue->thread = successor;
        (void)pthread_detach(pthread_self());
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    if (!is_replaced)
        (void)serve(queue);
}

static enum sumac_status carry_out_guarded(struct job_queue *queue, const struct job *job)
{
    enum sumac_status status = SUMAC_OK;

    pthread_cleanup_push(replace_thread, queue);
    status = queue->carry_out(queue, job);
    pthread_cleanup_pop(0);
    return status;
}

static void *serve(void *argument)
{
    struct job_queue *queue = argument;

    own = queue;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        while (queue->done == queue->put && !queue->closing)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        if (queue->done == queue->put)
            break;
        const struct job *job = &queue->jobs[queue->done % DEVICE_JOBS_MAX];
        pthread_mutex_unlock(&queue->mutex);
        queue->why[0] = '\0';
        /* Nobody writes the job before it is done. A job of a device that was given up is skipped:
         * its context may be gone. */
        const enum sumac_status status =
            device_is_given_up(queue->base.device) ? SUMAC_ABORTED : carry_out_guarded(queue, job);
        pthread_mutex_lock(&queue->mutex);
        note(queue, status);
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

enum sumac_status job_queue_init(
    struct job_queue *queue, struct device *device, job_carry_out *carry_out,
    struct sumac_error *error)
{
    char name[16]; /* a thread's has at most 15 characters */

    assert(queue->put == 0 && queue->done == 0);
    (void)device_name(device, name, sizeof name);
    queue->base.device = device;
    queue->carry_out = carry_out;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const int failure = pthread_create(&queue->thread, NULL, serve, queue);
    if (failure != 0) {
        pthread_cond_destroy(&queue->changed);
        pthread_mutex_destroy(&queue->mutex);
        return fail_for_memory(
            error, "device %s could not start its thread: %s; ask for fewer replicas", name,
            strerror(failure));
    }
    (void)pthread_setname_np(queue->thread, name);
    return SUMAC_OK;
}

void job_queue_deinit(struct job_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    assert(!queue->closing);
    queue->closing = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    (void)pthread_join(queue->thread, NULL);
    assert(queue->done == queue->put); /* what was in it is finished */
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
}

/* ---- the table's functions */

/* By the job that the thread does. */
static void carry_out_within(struct job_queue *queue, const struct job *job)
{
    const enum sumac_status status = queue->carry_out(queue, job);

    assert(own == queue);
    pthread_mutex_lock(&queue->mutex);
    note(queue, status);
    pthread_mutex_unlock(&queue->mutex);
    queue->why[0] = '\0';
}

static void put(struct device_queue *base, const struct job *job)
{
    struct job_queue *queue = (struct job_queue *)base;

    if (own == queue) {
        carry_out_within(queue, job);
        return;
    }
    if (device_is_given_up(base->device))
        return;
    pthread_mutex_lock(&queue->mutex);
    while (queue->put - queue->done == DEVICE_JOBS_MAX)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    assert(!queue->closing);
    queue->jobs[queue->put++ % DEVICE_JOBS_MAX] = *job;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

void job_queue_run(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    put(queue, &(struct job){.kind = JOB_WORK, .work = work, .context = context});
}

void job_queue_issue(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    put(queue, &(struct job){.kind = JOB_ISSUE, .work = work, .context = context});
}

void job_queue_copy(struct device_queue *queue, const struct sumac_copy *copy)
{
    assert(copy->to != NULL && copy->from != NULL);
    put(queue, &(struct job){.kind = JOB_COPY, .copy = *copy});
}

void job_queue_record(struct device_queue *queue, struct device_event *base)
{
    struct job_event *event = (struct job_event *)base;

    assert(base->device == queue->device);
    job_event_promise(event);
    put(queue, &(struct job){.kind = JOB_RECORD, .event = event});
}

void job_queue_await(struct device_queue *queue, struct device_event *base)
{
    struct job_event *event = (struct job_event *)base;

    pthread_mutex_lock(&event->mutex);
    const uint64_t until = event->recorded;
    assert(event->passed <= until);
    pthread_mutex_unlock(&event->mutex);
    if (until > 0)
        put(queue, &(struct job){.kind = JOB_AWAIT, .event = event, .until = until});
}

void job_queue_stamp(struct device_queue *queue, uint64_t *ns)
{
    assert(ns != NULL);
    put(queue, &(struct job){.kind = JOB_STAMP, .stamp = ns});
}

/* Under the mutex: until it has changed. False: it is too late. */
static bool await_change(struct job_queue *queue, uint64_t until_us)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_us / 1000000), .tv_nsec = (long)(until_us % 1000000) * 1000};

    if (until_us == DEVICE_NO_LIMIT)
        return pthread_cond_wait(&queue->changed, &queue->mutex) == 0;
    return pthread_cond_timedwait(&queue->changed, &queue->mutex, &until) == 0;
}

enum sumac_status job_queue_settle(struct device_queue *base, uint64_t until_us)
{
    struct job_queue *queue = (struct job_queue *)base;
    bool in_time = true;

    pthread_mutex_lock(&queue->mutex);
    assert(!queue->closing);
    while (own != queue && queue->done != queue->put && in_time)
        in_time = await_change(queue, until_us);
    if (own != queue && queue->done != queue->put) {
        queue->told[0] = '\0';
        pthread_mutex_unlock(&queue->mutex);
        return SUMAC_DEADLINE_EXCEEDED;
    }
    const enum sumac_status failure = queue->failure;
    queue->failure = SUMAC_OK;
    memcpy(queue->told, queue->failure_why, sizeof queue->told);
    queue->failure_why[0] = '\0';
    pthread_mutex_unlock(&queue->mutex);
    return failure;
}

const char *job_queue_why(const struct device_queue *queue)
{
    return ((const struct job_queue *)queue)->told;
}
