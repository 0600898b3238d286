/* SPDX-License-Identifier: Apache-2.0 */
/* device.h -- what a replica runs on: memory, and queues of work, behind a table of what each kind
 * of device can do.
 *
 *     device ─┬─ buffers     memory of its own
 *             ├─ queue       work, one after the other; queues run at once
 *             └─ event       a place in one queue that another may await
 *
 * CPU:0 … CPU:n-1 exist on every machine, whatever its number of cores, so that everything that
 * concerns several replicas can be tried anywhere (cpu_device.c). GPU:0 … are those that the
 * program sees (cuda/cuda_device.c). Another kind is a file with such a table and a row in
 * device.c.
 *
 * Whatever is put into a queue returns at once, unless DEVICE_JOBS_MAX are waiting there; a failure
 * is told by the next device_wait. What a queue's work reads and writes is lent to it until then.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sumac/buffer.h"
#include "sumac/device.h"
#include "sumac/status.h"
#include "sumac/tensor.h"
#include "update.h"

#define DEVICE_NO_LIMIT UINT64_MAX /* of a wait's end, in nanoseconds of trace_now */
#define DEVICE_JOBS_MAX 64u        /* in a queue, not finished; one more waits for room */
#define DEVICE_WHY_BYTES 160

struct device_group_ops;
struct device_ops;

/* Gives up memory of the device that is kept for later. false: there is none. Threads  any. */
typedef bool device_spare(void *context);

/* Each kind's own struct begins with these. */
struct device {
    const struct device_ops *ops;
    uint32_t index;
    device_spare *spare; /* who is asked when there is no memory; NULL: nobody */
    void *spare_context;
    atomic_uint references;  /* its own, while it is open, and of each memory that may outlive it */
    atomic_bool is_broken;   /* the driver says that nothing works there while the process lives */
    atomic_bool is_given_up; /* device_give_up */
};

/* A place in one queue: how often it was asked to be recorded, and how often that came to pass. */
struct device_event {
    struct device *device;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    uint64_t recorded, passed;
};

/* Runs on the device's behalf; another status than OK is the queue's, until it is waited for. */
typedef enum sumac_status device_work(void *context);

enum device_job_kind {
    JOB_WORK,   /* work(context), when the jobs before are done */
    JOB_ISSUE,  /* work(context), which begins more of what they have begun elsewhere */
    JOB_COPY,   /* copy */
    JOB_RECORD, /* event: device_event_pass */
    JOB_AWAIT,  /* event, until it has passed so often: device_event_await */
    JOB_STAMP,  /* stamp: the time, when what the jobs before have begun elsewhere is over */
};
struct device_job {
    enum device_job_kind kind;
    device_work *work;
    void *context;
    struct sumac_copy copy;
    struct device_event *event;
    uint64_t until;
    uint64_t *stamp;
};

/* A ring of jobs, and the thread that does them one after the other (job_queue.c):
 *
 *     device_run, device_copy, … ──► [ job | job | job |   |   ] ──► thread: carry_out(queue, job)
 *
 * What the thread itself puts into its queue – what is run there does so – is carried out at once:
 * after all that was before the job that it does, and before all that comes after that. */
struct device_queue {
    struct device *device;
    uint32_t wait_ms_max; /* of sumac_device_wait; 0: none */
    pthread_t thread;
    char why[DEVICE_WHY_BYTES];  /* the thread's: of the job that it does, "" before carry_out */
    char told[DEVICE_WHY_BYTES]; /* the waiting thread's: of the failure that was told, or "" */
    pthread_mutex_t mutex;       /* guards what follows */
    pthread_cond_t changed;
    struct device_job jobs[DEVICE_JOBS_MAX]; /* a ring: put … done */
    uint64_t put, done;
    enum sumac_status failure; /* the first since the last wait */
    char failure_why[DEVICE_WHY_BYTES];
    bool closing;
};

/* An update function of arrays in a device's memory: what update_run (lib/update/update.h) does
 * with arrays of the host's, with the same bits. */
struct device_update {
    /* Of addresses in the device's memory. One that is of rows, of several sources or of an
     * expression is not for a device; `scale` and `clip` are. */
    struct update_slice slice;
    bool is_wide;               /* of a half type: the gradient is float32 */
    struct device_queue *queue; /* that it was put into */
};

/* A kind of device. The functions are called by those below, which say what they do. */
struct device_ops {
    const char *name;                         /* "CPU": its devices are CPU:0, CPU:1, … */
    enum sumac_place_kind place;              /* of the memory that its work reads and writes */
    const struct device_group_ops *group_ops; /* what a group of them computes; NULL: nothing */
    uint32_t device_bytes, queue_bytes, event_bytes; /* of the kind's own structs */
    /* Begin and end the kind's own part of a device, a queue and an event; NULL: it has none. */
    enum sumac_status (*begin)(struct device *device, struct sumac_error *error);
    void (*end)(struct device *device);
    enum sumac_status (*queue_begin)(struct device_queue *queue, struct sumac_error *error);
    void (*queue_end)(struct device_queue *queue); /* its thread has ended */
    enum sumac_status (*event_begin)(struct device_event *event, struct sumac_error *error);
    void (*event_end)(struct device_event *event);
    enum sumac_status (*count)(uint32_t *count, struct sumac_error *error);
    /* The place is the kind's, or the host's. */
    enum sumac_status (*buffer_create)(
        struct device *device, uint64_t bytes, enum sumac_place_kind place,
        struct sumac_buffer **buffer, struct sumac_error *error);
    enum sumac_status (*carry_out)(struct device_queue *queue, const struct device_job *job);
    /* NULL: it updates nothing. */
    bool (*has_update)(const struct update_function *function, enum sumac_dtype dtype);
    void (*update)(struct device_queue *queue, struct device_update *update);
    /* NULL: nothing that the work began is elsewhere. */
    enum sumac_status (*complete)(struct device_queue *queue, uint64_t until_ns);
    /* Within the queue's work: sumac/device.h. */
    void *(*stream)(const struct device_queue *queue); /* NULL: it has none */
    enum sumac_status (*copy_here)(
        struct device_queue *queue, const struct sumac_copy *copy, struct sumac_error *error);
    enum sumac_status (*launch_here)(
        struct device_queue *queue, const struct sumac_launch *launch, struct sumac_error *error);
    /* NULL, as of `complete`. */
    enum sumac_status (*wait_here)(struct device_queue *queue, struct sumac_error *error);
};

extern const struct device_ops cpu_device_ops, cuda_device_ops;

/* The kind of that name, "CPU" or "GPU"; NULL: there is none of that name. */
const struct device_ops *device_kind(const char *name);

/* How many devices of the kind there are, one at least.
 * Fails    FAILED_PRECONDITION: the machine, or this build, has none. The sentence has the remedy.
 */
enum sumac_status
device_count(const struct device_ops *ops, uint32_t *count, struct sumac_error *error);

/* Open device `index` of a kind.
 * Gives    *device; close with device_close, after its queues and events; buffers may outlive it.
 *          NULL is fine.
 * Fails    RESOURCE_EXHAUSTED. FAILED_PRECONDITION: the machine, or this build, has none of the
 *          kind; OUT_OF_RANGE: none of that number. The sentence has the remedy. */
enum sumac_status device_open(
    const struct device_ops *ops, uint32_t index, struct device **device,
    struct sumac_error *error);
void device_close(struct device *device);
/* The last reference ends the device. */
void device_unref(struct device *device);

/* "CPU:0" into `text`, cut to fit. Lends  text. */
const char *device_name(const struct device *device, char *text, uint32_t text_bytes);

/* Zeroed memory of the device, aligned to 64 bytes.
 * Gives    *buffer, with one reference.
 * Fails    RESOURCE_EXHAUSTED: the device has no more, nor has who keeps some. As the device. */
enum sumac_status device_buffer_create(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error);

/* Zeroed memory of the host, likewise, that copies to and from the device are quick with: of a GPU
 * it is pinned. */
enum sumac_status device_host_buffer_create(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error);

/* Memory that the device's work reads and writes in place of the host's buffer: that itself, where
 * it is of the place that the device works on; else as many bytes of the device. Gives    *mirror,
 * with one reference. Fails    RESOURCE_EXHAUSTED. */
enum sumac_status device_buffer_mirror(
    struct device *device, struct sumac_buffer *host, struct sumac_buffer **mirror,
    struct sumac_error *error);

/* A queue, or an event that nothing has recorded yet: to await it is no wait.
 * Gives    *queue; close with device_queue_close, which finishes what is in it. *event; close with
 *          device_event_close, when no queue has it. NULL is fine.
 * Fails    RESOURCE_EXHAUSTED: no memory, or no more threads. */
enum sumac_status
device_queue_open(struct device *device, struct device_queue **queue, struct sumac_error *error);
void device_queue_close(struct device_queue *queue);
enum sumac_status
device_event_open(struct device *device, struct device_event **event, struct sumac_error *error);
void device_event_close(struct device_event *event);

/* Put into the queue, after what it has: work(context), when what was put before is done; a copy;
 * that the event, one of its own device's, has come to pass; a wait until all that was recorded
 * before this call has come to pass (of a device of the same kind).
 * What the queue's own thread puts into it, in the work that it runs, is carried out at once, as
 * part of that work.
 * Threads  one at a time for a queue. */
void device_run(struct device_queue *queue, device_work *work, void *context);
/* The same of work that only begins more: what was put before may still be under way on the device.
 */
void device_issue(struct device_queue *queue, device_work *work, void *context);
void device_copy(struct device_queue *queue, const struct sumac_copy *copy);
void device_record(struct device_queue *queue, struct device_event *event);
void device_await(struct device_queue *queue, struct device_event *event);
/* Put into the queue: *ns gets the time, as trace_now has it, when what was put before is over on
 * the device. One that has failed may leave it alone. */
void device_stamp(struct device_queue *queue, uint64_t *ns);

/* Does the kind of device update values of that type by this function? If not, the host does. */
bool device_has_update(
    const struct device_ops *ops, const struct update_function *function, enum sumac_dtype dtype);

/* Put it into the queue, after what it has, of what device_has_update.
 * Borrows  *update, until the queue is waited for.
 * Fails    by the next wait: RESOURCE_EXHAUSTED, the device has no memory for the function's code.
 * Threads  one at a time for a queue. */
void device_update(struct device_queue *queue, struct device_update *update);

/* So many milliseconds from now, for the waits below. UINT32_MAX: DEVICE_NO_LIMIT. */
uint64_t device_until(uint32_t timeout_ms);

/* Wait until all functions that were put into the queue have returned: what they began on the
 * device may still be under way. Fails    as device_wait_until, with what is known by then. */
enum sumac_status device_settle(struct device_queue *queue, uint64_t until_ns);

/* Wait, on this thread, until what they began is over on the device: nothing else wakes it up. */
enum sumac_status device_complete(struct device_queue *queue, uint64_t until_ns);

/* Wait until the queue is empty: both, one after the other; within the queue's own work, until all
 * that it has begun is over. What its work wrote is then visible to the caller.
 * Fails    with the first failure since the last wait. DEADLINE_EXCEEDED: it is not empty by then;
 *          the next wait goes on. device_wait has no limit. */
enum sumac_status device_wait_until(struct device_queue *queue, uint64_t until_ns);
enum sumac_status device_wait(struct device_queue *queue);

/* The device's work does not end. From here on what its threads and its streams may touch is left
 * alone: its queues, events and memory, and the device, are closed by name only and stay, and what
 * is put into a queue is dropped. The caller leaves alone what the work itself reads. */
void device_give_up(struct device *device);
bool device_is_given_up(const struct device *device);

/* What the device itself said of the failure that the last wait told, to come after ": "; "" where
 * the status says it all. Lends  until the next wait. */
const char *device_why(const struct device_queue *queue);

/* The queue as a step sees it, and back. */
struct sumac_device *device_for_step(struct device_queue *queue);

/* ---- for the kinds */

/* The queue whose thread this is; NULL: of none. */
struct device_queue *device_queue_of_thread(void);

/* The event will be passed once more, and later waits are for that. */
void device_event_promise(struct device_event *event);
/* For carry_out: it has come to pass once more; wait until it has so often. */
void device_event_pass(struct device_event *event);
void device_event_await(struct device_event *event, uint64_t until);
