/* SPDX-License-Identifier: Apache-2.0 */
/* job_queue.c -- a queue: a ring of jobs, and the thread that sleeps until there is one. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "pause.h"
#include "text.h"
#include "trace.h"

/* ---- events */

enum sumac_status
device_event_open(struct device *device, struct device_event **event, struct sumac_error *error)
{
    const struct device_ops *ops = device->ops;
    struct device_event *opened = calloc(1, ops->event_bytes);

    assert(ops->event_bytes >= sizeof(struct device_event));
    if (opened == NULL)
        return fail_for_memory(
            error, "no memory for an event of device %s:%u", ops->name, device->index);
    opened->device = device;
    const enum sumac_status status =
        ops->event_begin == NULL ? SUMAC_OK : ops->event_begin(opened, error);
    if (status != SUMAC_OK) {
        free(opened);
        return status;
    }
    pthread_mutex_init(&opened->mutex, NULL);
    pthread_cond_init(&opened->changed, NULL);
    *event = opened;
    return SUMAC_OK;
}

void device_event_close(struct device_event *event)
{
    if (event == NULL || device_is_given_up(event->device))
        return;
    assert(event->passed == event->recorded); /* no queue has it */
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
    if (event->device->ops->event_end != NULL)
        event->device->ops->event_end(event);
    free(event);
}

void device_event_promise(struct device_event *event)
{
    pthread_mutex_lock(&event->mutex);
    assert(event->passed <= event->recorded);
    event->recorded++;
    pthread_mutex_unlock(&event->mutex);
}

void device_event_pass(struct device_event *event)
{
    pthread_mutex_lock(&event->mutex);
    event->passed++;
    assert(event->passed <= event->recorded);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->mutex);
}

void device_event_await(struct device_event *event, uint64_t until)
{
    pthread_mutex_lock(&event->mutex);
    assert(until <= event->recorded);
    while (event->passed < until)
        pthread_cond_wait(&event->changed, &event->mutex);
    pthread_mutex_unlock(&event->mutex);
}

/* ---- the queue's thread */

static _Thread_local struct device_queue *own; /* whose this thread is */

struct device_queue *device_queue_of_thread(void) { return own; }

/* Under the mutex: the first failure is told. */
static void note(struct device_queue *queue, enum sumac_status status)
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
    struct device_queue *queue = argument;
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

static enum sumac_status carry_out_guarded(struct device_queue *queue, const struct device_job *job)
{
    enum sumac_status status = SUMAC_OK;

    pthread_cleanup_push(replace_thread, queue);
    status = queue->device->ops->carry_out(queue, job);
    pthread_cleanup_pop(0);
    return status;
}

static void *serve(void *argument)
{
    struct device_queue *queue = argument;

    own = queue;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        while (queue->done == queue->put && !queue->closing)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        if (queue->done == queue->put)
            break;
        const struct device_job *job = &queue->jobs[queue->done % DEVICE_JOBS_MAX];
        pthread_mutex_unlock(&queue->mutex);
        queue->why[0] = '\0';
        /* Nobody writes the job before it is done. A job of a device that was given up is skipped:
         * its context may be gone. */
        const enum sumac_status status =
            device_is_given_up(queue->device) ? SUMAC_ABORTED : carry_out_guarded(queue, job);
        pthread_mutex_lock(&queue->mutex);
        note(queue, status);
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

static enum sumac_status start_thread(struct device_queue *queue, struct sumac_error *error)
{
    char name[16]; /* a thread's has at most 15 characters */

    assert(queue->put == 0 && queue->done == 0);
    (void)device_name(queue->device, name, sizeof name);
    pthread_mutex_init(&queue->mutex, NULL);
    pause_init(&queue->changed);
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

enum sumac_status
device_queue_open(struct device *device, struct device_queue **queue, struct sumac_error *error)
{
    const struct device_ops *ops = device->ops;
    struct device_queue *opened = calloc(1, ops->queue_bytes);

    assert(ops->queue_bytes >= sizeof(struct device_queue));
    if (opened == NULL)
        return fail_for_memory(
            error, "no memory for a queue of device %s:%u", ops->name, device->index);
    opened->device = device;
    enum sumac_status status =
        ops->queue_begin == NULL ? SUMAC_OK : ops->queue_begin(opened, error);
    const bool has_begun = status == SUMAC_OK;
    if (has_begun)
        status = start_thread(opened, error);
    if (status == SUMAC_OK) {
        *queue = opened;
        return SUMAC_OK;
    }
    if (has_begun && ops->queue_end != NULL)
        ops->queue_end(opened);
    free(opened);
    return status;
}

void device_queue_close(struct device_queue *queue)
{
    if (queue == NULL || device_is_given_up(queue->device))
        return;
    pthread_mutex_lock(&queue->mutex);
    assert(!queue->closing);
    queue->closing = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    (void)pthread_join(queue->thread, NULL);
    assert(queue->done == queue->put); /* what was in it is finished */
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    if (queue->device->ops->queue_end != NULL)
        queue->device->ops->queue_end(queue);
    free(queue);
}

/* ---- what is put into it */

/* By the job that the thread does. */
static void carry_out_within(struct device_queue *queue, const struct device_job *job)
{
    const enum sumac_status status = queue->device->ops->carry_out(queue, job);

    assert(own == queue);
    pthread_mutex_lock(&queue->mutex);
    note(queue, status);
    pthread_mutex_unlock(&queue->mutex);
    queue->why[0] = '\0';
}

static void put(struct device_queue *queue, const struct device_job *job)
{
    if (own == queue) {
        carry_out_within(queue, job);
        return;
    }
    if (device_is_given_up(queue->device))
        return;
    pthread_mutex_lock(&queue->mutex);
    while (queue->put - queue->done == DEVICE_JOBS_MAX)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    assert(!queue->closing);
    queue->jobs[queue->put++ % DEVICE_JOBS_MAX] = *job;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

void device_run(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    put(queue, &(struct device_job){.kind = JOB_WORK, .work = work, .context = context});
}

void device_issue(struct device_queue *queue, device_work *work, void *context)
{
    assert(work != NULL);
    put(queue, &(struct device_job){.kind = JOB_ISSUE, .work = work, .context = context});
}

void device_copy(struct device_queue *queue, const struct sumac_copy *copy)
{
    assert(copy->to_offset <= sumac_buffer_bytes(copy->to));
    assert(copy->bytes <= sumac_buffer_bytes(copy->to) - copy->to_offset);
    assert(copy->from_offset <= sumac_buffer_bytes(copy->from));
    assert(copy->bytes <= sumac_buffer_bytes(copy->from) - copy->from_offset);
    put(queue, &(struct device_job){.kind = JOB_COPY, .copy = *copy});
}

void device_record(struct device_queue *queue, struct device_event *event)
{
    assert(event->device == queue->device);
    device_event_promise(event);
    put(queue, &(struct device_job){.kind = JOB_RECORD, .event = event});
}

void device_await(struct device_queue *queue, struct device_event *event)
{
    assert(event->device->ops == queue->device->ops);
    pthread_mutex_lock(&event->mutex);
    const uint64_t until = event->recorded;
    assert(event->passed <= until);
    pthread_mutex_unlock(&event->mutex);
    if (until > 0)
        put(queue, &(struct device_job){.kind = JOB_AWAIT, .event = event, .until = until});
}

void device_stamp(struct device_queue *queue, uint64_t *ns)
{
    assert(ns != NULL);
    put(queue, &(struct device_job){.kind = JOB_STAMP, .stamp = ns});
}

/* ---- waits */

uint64_t device_until(uint32_t timeout_ms)
{
    return timeout_ms == UINT32_MAX ? DEVICE_NO_LIMIT
                                    : trace_now() + timeout_ms * UINT64_C(1000000);
}

enum sumac_status device_settle(struct device_queue *queue, uint64_t until_ns)
{
    bool in_time = true;

    pthread_mutex_lock(&queue->mutex);
    assert(!queue->closing);
    while (own != queue && queue->done != queue->put && in_time)
        in_time = pause_until(&queue->changed, &queue->mutex, until_ns);
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

enum sumac_status device_complete(struct device_queue *queue, uint64_t until_ns)
{
    assert(queue->device != NULL);
    const struct device_ops *ops = queue->device->ops;
    return ops->complete == NULL ? SUMAC_OK : ops->complete(queue, until_ns);
}

enum sumac_status device_wait_until(struct device_queue *queue, uint64_t until_ns)
{
    const enum sumac_status settled = device_settle(queue, until_ns);
    const enum sumac_status completed = device_complete(queue, until_ns);

    return settled != SUMAC_OK ? settled : completed; /* what was told first counts */
}

enum sumac_status device_wait(struct device_queue *queue)
{
    return device_wait_until(queue, DEVICE_NO_LIMIT);
}

const char *device_why(const struct device_queue *queue) { return queue->told; }
