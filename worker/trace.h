/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h -- a file of what ran when, in Chrome's trace event format, which Perfetto and
 * chrome://tracing show.
 *
 *     [
 *     {"ph":"M","name":"process_name","pid":71,"tid":0,"args":{"name":"worker 0"}},
 *     {"ph":"M","name":"thread_name","pid":71,"tid":1,"args":{"name":"replica 0 (CPU:0)"}},
 *     {"ph":"X","name":"compute","cat":"compute","ts":81.250,"dur":7.104,"pid":71,"tid":1,
 *      "args":{"step":3}}, …
 *
 * Events are gathered in a buffer, and written when it is full, or when the oldest has lain there
 * for a second. What is written ends at a whole event, so what a killed process leaves can be
 * shown: the format lets the closing bracket be missing. Times are the host's monotonic clock, and
 * process numbers the host's: files of one host may be looked at together.
 *
 * A trace never fails what it is a trace of: when a write fails, or the file has
 * TRACE_FILE_BYTES_MAX, it says so, once, and is over.
 */
#pragma once

#include <stdint.h>

#include "sumac/status.h"

#define TRACE_FILE_BYTES_MAX (UINT64_C(1) << 30) /* what viewers can hold */
#define TRACE_BUFFER_BYTES_MAX 65536u
#define TRACE_HELD_NS_MAX UINT64_C(1000000000)
#define TRACE_NAME_BYTES_MAX 256u /* of a process, a track, a variable; longer ones are cut */

struct trace;

/* What is done, and for what one waits. The name of each says it. */
#define TRACE_KIND_LIST(X)                                                                         \
    X(STEP, "step", "step")                                                                        \
    X(COMPUTE, "compute", "compute")                                                               \
    X(REDUCE, "reduce", "reduce")                                                                  \
    X(COPY_IN, "copy in", "copy")                                                                  \
    X(COPY_OUT, "copy out", "copy")                                                                \
    X(PUSH, "push", "push")                                                                        \
    X(PULL, "pull", "pull")                                                                        \
    X(WAIT_FOR_PULL, "wait for pull", "wait")                                                      \
    X(WAIT_FOR_PUSH, "wait for push", "wait")                                                      \
    X(WAIT_FOR_REPLICAS, "wait for replicas", "wait")                                              \
    X(WAIT_FOR_REDUCTION, "wait for reduction", "wait")                                            \
    X(WAIT_FOR_COPY, "wait for copy", "wait")
enum trace_kind {
#define X(NAME, name, category) TRACE_##NAME,
    TRACE_KIND_LIST(X)
#undef X
};

struct trace_event {
    enum trace_kind kind;
    uint32_t track;            /* as trace_track gave it */
    uint64_t begin_ns, end_ns; /* as trace_now says; an end before the begin is the begin */
    uint64_t step;
    uint64_t bytes;       /* 0: is not said */
    const char *variable; /* NULL: of all, or of none */
};

struct trace_options {
    const char *path;
    const char *process; /* its name: "worker 0" */
    uint64_t bytes_max;  /* of the file; 0: TRACE_FILE_BYTES_MAX */
    /* Gets the line that says how the trace ended before its time, on any thread. */
    void (*say)(void *context, const char *line);
    void *context;
};

/* Begin a file, or write over one that is there.
 *
 * Borrows  the options; Lends  say and its context to the trace, until it is closed.
 * Gives    *trace; close with trace_close.
 * Fails    INVALID_ARGUMENT: it cannot be written, or is a pipe. FAILED_PRECONDITION: another trace
 *          is being written to it. RESOURCE_EXHAUSTED. */
enum sumac_status
trace_open(const struct trace_options *options, struct trace **trace, struct sumac_error *error);
/* Write what there is still, and end the file. Nobody adds to it any more. NULL is fine. */
void trace_close(struct trace *trace);

/* Write what there is into the file. NULL is fine. */
void trace_flush(struct trace *trace);

/* A row of its own for events that follow one another, or lie within one another; they are shown in
 * the order in which they were asked for. Of NULL it is 0. Threads  any. */
uint32_t trace_track(struct trace *trace, const char *name);

/* Nanoseconds of the clock that events are in. Threads  any. */
uint64_t trace_now(void);

/* Its begin and end are what the caller, or a device's own events, have measured. NULL is fine.
 * Threads  any. */
void trace_write(struct trace *trace, const struct trace_event *event);
