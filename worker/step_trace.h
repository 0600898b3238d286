/* SPDX-License-Identifier: Apache-2.0 */
/* step_trace.h -- what a worker's steps tell a trace (trace.h), and on which tracks:
 *
 *     worker              step, and within it what the thread that calls it waits for
 *     replica 0 (CPU:0)   compute, reduce; one for each replica
 *     GPU:0 stream        copies; one for each replica whose device has memory of its own
 *     pull                pull, of the values that the step of that number computes on
 *     push 0              push; one for each that may be under way at once
 *
 * A push begins when it is made, and ends when the worker has heard that it was applied, or
 * refused. The trace of the only member of a cluster is the file that was asked for; where there
 * are others, or may be, each has its own name in that: "steps.json" of worker 0 is
 * "steps.worker-0.json".
 *
 * NULL is a trace that is off: whatever it is told costs a branch.
 */
#ifndef WORKER_STEP_TRACE_H
#define WORKER_STEP_TRACE_H

#include "replicas.h"
#include "sumac/worker.h"
#include "trace.h"

struct step_trace;

/* Of the options' trace, as worker_options_read has filled it in; NULL: *traced is NULL.
 *
 * Borrows  the options and the replicas. Lends  their client to the trace, which ends before it.
 * Gives    *traced; close with step_trace_close, when no replica runs.
 * Fails    as trace_open. INVALID_ARGUMENT: the file's name is too long. */
enum sumac_status step_trace_open(
    const struct sumac_worker_options *options, const struct replicas *replicas,
    struct step_trace **traced, struct sumac_error *error);
void step_trace_close(struct step_trace *traced);

/* What begins now; 0 where it is off. Threads  any. */
static inline uint64_t step_trace_begin(const struct step_trace *traced)
{
    return traced == NULL ? 0 : trace_now();
}

/* What the thread that calls the step has done since then; what a replica has. Threads  any. */
void step_trace_caller(
    struct step_trace *traced, enum trace_kind kind, uint64_t begin_ns, uint64_t step);
void step_trace_replica(
    struct step_trace *traced, uint32_t replica, enum trace_kind kind, uint64_t begin_ns,
    uint64_t step);
/* The same of all replicas at once. */
void step_trace_replicas(
    struct step_trace *traced, enum trace_kind kind, uint64_t begin_ns, uint64_t step);

/* What that replica's stream has done, as its own events have measured it; the track is filled in.
 * Of a device that works on the host's own memory nothing is written. Threads  any. */
void step_trace_stream(
    struct step_trace *traced, uint32_t replica, const struct trace_event *event);
/* A copy that began then, and is over: of the values to a replica's device; of replica 0's
 * gradients from it, for which the caller has waited. Threads  any. */
void step_trace_copied_in(
    struct step_trace *traced, uint32_t replica, uint64_t begin_ns, uint64_t step);
void step_trace_copied_out(struct step_trace *traced, uint64_t begin_ns, uint64_t step);

/* The pull of that step's values begins; it is over, or failed. One that did not even begin is
 * forgotten with the next. Threads  the caller's of a step. */
void step_trace_pull(struct step_trace *traced, uint64_t step);
void step_trace_pulled(struct step_trace *traced);

/* The push of that step, in that place, begins; it has ended, which may be said more than
 * once. Threads  as a pull's. */
void step_trace_push(
    struct step_trace *traced, uint32_t place, uint64_t step, const struct sumac_delta *deltas,
    uint32_t count);
void step_trace_pushed(struct step_trace *traced, uint32_t place);

#endif
