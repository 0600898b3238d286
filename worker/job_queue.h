/* SPDX-License-Identifier: Apache-2.0 */
/* job_queue.h -- a ring of jobs, and the thread that does them one after the other: what the queues
 * of every kind of device are made of.
 *
 *     device_run, device_copy, … ──► [ job | job | job |   |   ] ──► thread: carry_out(queue, job)
 *
 * What the thread itself puts into its queue – what is run there does so – is carried out at once:
 * after all that was before the job that it does, and before all that comes after that.
 *
 * What a job comes to is the kind's matter (`carry_out`), and so is what else a queue or an event
 * has: its struct begins with one of these. The functions that take a device_queue stand in the
 * kind's table as they are (device.h says what they do).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"

#define JOB_WHY_BYTES 160

/* A place in one queue: how often it was asked to be recorded, and how often that came to pass. */
struct job_event {
    struct device_event base;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    uint64_t recorded, passed;
};

enum job_kind {
    JOB_WORK,   /* work(context), when the jobs before are done */
    JOB_ISSUE,  /* work(context), which begins more of what they have begun elsewhere */
    JOB_COPY,   /* copy */
    JOB_RECORD, /* event: job_event_pass */
    JOB_AWAIT,  /* event, until it has passed so often: job_event_await */
    JOB_STAMP,  /* stamp: the time, when what the jobs before have begun elsewhere is over */
};

struct job {
    enum job_kind kind;
    device_work *work;
    void *context;
    struct sumac_copy copy;
    struct job_event *event;
    uint64_t until;
    uint64_t *stamp;
};

struct job_queue;
typedef enum sumac_status job_carry_out(struct job_queue *queue, const struct job *job);

struct job_queue {
    struct device_queue base;
    job_carry_out *carry_out;
    pthread_t thread;
    char why[JOB_WHY_BYTES];  /* the thread's: of the job that it does, "" before carry_out */
    char told[JOB_WHY_BYTES]; /* whoever waits has it: of the failure that was told, or "" */
    pthread_mutex_t mutex;    /* guards what follows */
    pthread_cond_t changed;
    struct job jobs[DEVICE_JOBS_MAX]; /* a ring: put … done */
    uint64_t put, done;
    enum sumac_status failure; /* the first since the last wait */
    char failure_why[JOB_WHY_BYTES];
    bool closing;
};

/* Start the thread of a zeroed queue, which has the device's name.
 * Fails  RESOURCE_EXHAUSTED: no more threads. */
enum sumac_status job_queue_init(
    struct job_queue *queue, struct device *device, job_carry_out *carry_out,
    struct sumac_error *error);
/* Finish what is in it, and end the thread. */
void job_queue_deinit(struct job_queue *queue);

/* Of the table: run, issue, copy, record, await, stamp, settle, why. */
void job_queue_run(struct device_queue *queue, device_work *work, void *context);
void job_queue_issue(struct device_queue *queue, device_work *work, void *context);
void job_queue_copy(struct device_queue *queue, const struct sumac_copy *copy);
void job_queue_record(struct device_queue *queue, struct device_event *event);
void job_queue_await(struct device_queue *queue, struct device_event *event);
void job_queue_stamp(struct device_queue *queue, uint64_t *ns);
enum sumac_status job_queue_settle(struct device_queue *queue, uint64_t until_us);
const char *job_queue_why(const struct device_queue *queue);
/* The queue whose thread this is; NULL: of none. */
struct job_queue *job_queue_of_thread(void);

/* A zeroed event; no queue has one that is deinited. */
void job_event_init(struct job_event *event, struct device *device);
void job_event_deinit(struct job_event *event);
/* It will be passed once more: whoever awaits it from here on waits for that. */
void job_event_promise(struct job_event *event);
/* For carry_out: it has come to pass once more; wait until it has so often. */
void job_event_pass(struct job_event *event);
void job_event_await(struct job_event *event, uint64_t until);
