/* SPDX-License-Identifier: Apache-2.0 */
/* step_trace.h -- what a worker's steps tell a trace (trace.h), and on which tracks:
 *
 *     worker              step, and within it what the thread that calls it waits for
 *     replica 0 (CPU:0)   compute, reduce; one for each replica
 *     GPU:0 stream        the same as the device itself has come to them
 *     GPU:0 copies        copy in, copy out; these two where devices have memory of their own
 *     pull                pull, of the values that the step of that number computes on
 *     push 0              push; one for each that may be under way at once
 *
 * The track of a replica on a GPU says how long its function took to begin what the device does.
 * A push begins when it is made, and ends when the worker has heard that it was applied, or
 * refused. The trace of the only member of a cluster is the file that was asked for; where there
 * are others, or may be, each has its own name in that: "steps.json" of worker 0 is
 * "steps.worker-0.json".
 *
 * NULL is a trace that is off: whatever it is told costs a branch.
 */
#pragma once

#include "sumac/worker.h"
#include "trace.h"
#include "transfers.h"

struct step_trace;

/* Of the options' trace, as worker_options_read has filled it in; NULL: *traced is NULL.
 *
 * Borrows  the options. Lends  their client, and the transfers with their replicas, to the trace,
 *          which ends before these.
 * Gives    *traced; close with step_trace_close, when no replica runs.
 * Fails    as trace_open. INVALID_ARGUMENT: the file's name is too long. */
enum sumac_status step_trace_open(
    const struct sumac_worker_options *options, const struct transfers *transfers,
    struct step_trace **traced, struct sumac_error *error);
void step_trace_close(struct step_trace *traced);
/* A step has failed, and the program may end: what there is goes to the file. */
void step_trace_flush(struct step_trace *traced);

/* What begins now; 0 where it is off. Threads  any. */
static inline uint64_t step_trace_begin(const struct step_trace *traced)
{
    return traced == NULL ? 0 : trace_now();
}

/* The same of a step. Threads  the caller's of a step. */
uint64_t step_trace_step(struct step_trace *traced, uint64_t step);

/* The thread that calls the step (STEP_TRACE_CALLER), or a replica, has done this since then.
 * step_trace_write is for a trace that is there. Threads  any. */
#define STEP_TRACE_CALLER 0u
#define STEP_TRACE_REPLICA(replica) (1 + (replica))
void step_trace_write(
    const struct step_trace *traced, uint32_t of, enum trace_kind kind, uint64_t begin_ns,
    uint64_t step);
static inline void step_trace_done(
    const struct step_trace *traced, uint32_t of, enum trace_kind kind, uint64_t begin_ns,
    uint64_t step)
{
    if (traced != NULL)
        step_trace_write(traced, of, kind, begin_ns, step);
}

/* Where a device has memory of its own, what is put into a queue goes on by itself: the queue takes
 * the time (device_stamp) where a part of the step begins, and where it ends. Values that come in
 * when the step computes are the next one's. Where memory is the host's there is nothing to be
 * done. Threads  the caller's of a step. */
enum step_queue { STEP_COMPUTES, STEP_COPIES }; /* a replica's, and that of its transfers */
struct step_part {
    enum trace_kind kind;
    uint64_t bytes; /* 0: is not said */
};
void step_trace_stamp(
    struct step_trace *traced, enum step_queue queue, uint32_t replica,
    const struct step_part *part);
static inline void
step_trace_begins(struct step_trace *traced, enum step_queue queue, uint32_t replica)
{
    if (traced != NULL)
        step_trace_stamp(traced, queue, replica, NULL);
}
static inline void step_trace_ends(
    struct step_trace *traced, enum step_queue queue, uint32_t replica, struct step_part part)
{
    if (traced != NULL)
        step_trace_stamp(traced, queue, replica, &part);
}
/* The queues are empty, for which the caller has waited since then: their parts are written. */
void step_trace_write_parts(struct step_trace *traced, uint64_t begin_ns);

/* The pull of that step's values begins; it is over, or failed. One that did not even begin is
 * forgotten with the next. Threads  the caller's of a step. */
void step_trace_pull(struct step_trace *traced, uint64_t step, const struct tensors *into);
void step_trace_pulled(struct step_trace *traced);

/* The push of that step, in that place, begins; it has ended, which may be said more than once.
 * Threads  the caller's of a step. */
void step_trace_push(
    struct step_trace *traced, uint32_t place, uint64_t step, const struct sumac_delta *deltas,
    uint32_t count);
void step_trace_pushed(struct step_trace *traced, uint32_t place);
