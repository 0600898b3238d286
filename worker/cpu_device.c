/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_device.c -- the CPU as devices: each queue is a thread that sleeps until it has work. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "collective.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

/* A place in one queue: how often it was asked to be recorded, and how often that came to pass. */
struct cpu_event {
    struct device_event base;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    uint64_t recorded, passed;
};

struct job {
    device_work *work; /* NULL: the copy, or the event's */
    void *context;
    struct device_copy copy;
    struct cpu_event *event; /* NULL: none */
    uint64_t until;          /* it is awaited until it has passed so often; 0: it passes here */
};

struct cpu_queue {
    struct device_queue base;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    struct job jobs[DEVICE_JOBS_MAX]; /* a ring: put … done */
    uint64_t put, done;
    enum sumac_status failure; /* the first since the last wait */
    bool closing;
};

/* ---- what a job does, on the queue's thread */

static void pass(struct cpu_event *event)
{
    pthread_mutex_lock(&event->mutex);
    event->passed++;
    assert(event->passed <= event->recorded);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->mutex);
}

static void await_passing(struct cpu_event *event, uint64_t until)
{
    pthread_mutex_lock(&event->mutex);
    assert(until <= event->recorded);
    while (event->passed < until)
        pthread_cond_wait(&event->changed, &event->mutex);
    pthread_mutex_unlock(&event->mutex);
}

static enum sumac_status carry_out(const struct job *job)
{
    if (job->work != NULL)
        return job->work(job->context);
    if (job->event == NULL)
        memmove(
            (char *)sumac_buffer_data(job->copy.to) + job->copy.to_offset,
            (const char *)sumac_buffer_data(job->copy.from) + job->copy.from_offset,
            job->copy.bytes);
    else if (job->until > 0)
        await_passing(job->event, job->until);
    else
        pass(job->event);
    return SUMAC_OK;
}

static void *serve(void *argument)
{
    struct cpu_queue *queue = argument;

    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        while (queue->done == queue->put && !queue->closing)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        if (queue->done == queue->put)
            break;
        const struct job *job = &queue->jobs[queue->done % DEVICE_JOBS_MAX];
        pthread_mutex_unlock(&queue->mutex);
        const enum sumac_status status = carry_out(job); /* nobody writes it before it is done */
        pthread_mutex_lock(&queue->mutex);
        if (queue->failure == SUMAC_OK)
            queue->failure = status;
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

/* ---- the table's functions */

static enum sumac_status
open_device(uint32_t index, struct device **device, struct sumac_error *error)
{
    struct device *opened = calloc(1, sizeof *opened);

    if (opened == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for device CPU:%u", index);
    *opened = (struct device){.ops = &cpu_device_ops, .index = index};
    *device = opened;
    return SUMAC_OK;
}

static void close_device(struct device *device) { free(device); }

static enum sumac_status
create_buffer(struct device *device, uint64_t bytes, struct sumac_buffer **buffer)
{
    assert(device->ops->place == SUMAC_PLACE_HOST);
    return sumac_buffer_create(bytes, buffer);
}

static enum sumac_status
open_queue(struct device *device, struct device_queue **queue, struct sumac_error *error)
{
    char name[16]; /* what the kernel keeps of a thread's name */

    (void)device_name(device, name, sizeof name);
    struct cpu_queue *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for a queue of device %s", name);
    opened->base.device = device;
    pthread_mutex_init(&opened->mutex, NULL);
    pthread_cond_init(&opened->changed, NULL);
    const int failure = pthread_create(&opened->thread, NULL, serve, opened);
    if (failure != 0) {
        pthread_cond_destroy(&opened->changed);
        pthread_mutex_destroy(&opened->mutex);
        free(opened);
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "device %s could not start its thread: %s; ask for fewer replicas", name,
            strerror(failure));
    }
    (void)pthread_setname_np(opened->thread, name);
    *queue = &opened->base;
    return SUMAC_OK;
}

static void close_queue(struct device_queue *base)
{
    struct cpu_queue *queue = (struct cpu_queue *)base;

    pthread_mutex_lock(&queue->mutex);
    assert(!queue->closing);
    queue->closing = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    (void)pthread_join(queue->thread, NULL);
    assert(queue->done == queue->put); /* what was in it is finished */
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

static enum sumac_status
open_event(struct device *device, struct device_event **event, struct sumac_error *error)
{
    struct cpu_event *opened = calloc(1, sizeof *opened);

    if (opened == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for an event of device CPU:%u", device->index);
    opened->base.device = device;
    pthread_mutex_init(&opened->mutex, NULL);
    pthread_cond_init(&opened->changed, NULL);
    *event = &opened->base;
    return SUMAC_OK;
}

static void close_event(struct device_event *base)
{
    struct cpu_event *event = (struct cpu_event *)base;

    assert(event->passed == event->recorded); /* no queue has it */
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
    free(event);
}

static void put(struct device_queue *base, const struct job *job)
{
    struct cpu_queue *queue = (struct cpu_queue *)base;

    pthread_mutex_lock(&queue->mutex);
    while (queue->put - queue->done == DEVICE_JOBS_MAX)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    assert(!queue->closing);
    queue->jobs[queue->put++ % DEVICE_JOBS_MAX] = *job;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

static void put_work(struct device_queue *queue, device_work *work, void *context)
{
    put(queue, &(struct job){.work = work, .context = context});
}

static void put_copy(struct device_queue *queue, const struct device_copy *copy)
{
    put(queue, &(struct job){.copy = *copy});
}

static void put_record(struct device_queue *queue, struct device_event *base)
{
    struct cpu_event *event = (struct cpu_event *)base;

    pthread_mutex_lock(&event->mutex);
    event->recorded++;
    pthread_mutex_unlock(&event->mutex);
    put(queue, &(struct job){.event = event});
}

static void put_await(struct device_queue *queue, struct device_event *base)
{
    struct cpu_event *event = (struct cpu_event *)base;

    pthread_mutex_lock(&event->mutex);
    const uint64_t until = event->recorded;
    pthread_mutex_unlock(&event->mutex);
    if (until > 0)
        put(queue, &(struct job){.event = event, .until = until});
}

static enum sumac_status wait_for(struct device_queue *base)
{
    struct cpu_queue *queue = (struct cpu_queue *)base;

    pthread_mutex_lock(&queue->mutex);
    while (queue->done != queue->put)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    const enum sumac_status failure = queue->failure;
    queue->failure = SUMAC_OK;
    pthread_mutex_unlock(&queue->mutex);
    return failure;
}

const struct device_ops cpu_device_ops = {
    .name = "CPU",
    .place = SUMAC_PLACE_HOST,
    .collectives = &cpu_collective_ops,
    .open = open_device,
    .close = close_device,
    .buffer_create = create_buffer,
    .queue_open = open_queue,
    .queue_close = close_queue,
    .event_open = open_event,
    .event_close = close_event,
    .run = put_work,
    .copy = put_copy,
    .record = put_record,
    .await = put_await,
    .wait = wait_for,
};
