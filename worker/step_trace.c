/* SPDX-License-Identifier: Apache-2.0 */
/* step_trace.c -- what a worker's steps tell a trace. */
#include "step_trace.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "log.h"
#include "text.h"

/* What has begun, and is to be written when it ends. */
struct begun {
    uint64_t begin_ns, step, bytes;
    uint32_t track;
    bool under_way;
};

struct step_trace {
    struct trace *trace;
    uint32_t replica_count, place_count;
    bool copies;                          /* the devices have memory of their own */
    uint64_t value_bytes, gradient_bytes; /* of all that are pulled; of those that are pushed */
    uint32_t caller;                      /* its track; … */
    uint32_t replicas, streams;           /* … the first of theirs */
    struct begun pull;                    /* at most one is under way */
    struct begun pushes[SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX + 1]; /* by the place that is pushed */
};

/* ---- the file, and its tracks */

static enum sumac_status refuse_name(const char *file, size_t path_bytes, struct sumac_error *error)
{
    assert(path_bytes > 0);
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
        "the trace %.100s… has a name of %zu bytes; name a file by fewer than %zu", file,
        strlen(file), path_bytes);
}

/* "worker 0" within the file's name, before what comes after its last dot. */
static enum sumac_status name_file(
    const char *file, const char *who, char *path, size_t path_bytes, struct sumac_error *error)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    const char *dot = name[0] == '\0' ? NULL : strrchr(name + 1, '.');
    const size_t stem = dot == NULL ? strlen(file) : (size_t)(dot - file);

    if (strlen(file) + strlen(who) + sizeof "." > path_bytes)
        return refuse_name(file, path_bytes, error);
    assert(who[0] != '\0');
    size_t used = text_print(path, path_bytes, "%.*s.", (int)stem, file);
    for (const char *c = who; *c != '\0'; c++)
        path[used++] = *c == ' ' || *c == '/' ? '-' : *c;
    (void)text_print(path + used, path_bytes - used, "%s", dot == NULL ? "" : dot);
    return SUMAC_OK;
}

static void say(void *context, const char *line) { client_log(context, "%s", line); }

static void make_tracks(struct step_trace *traced, const struct replicas *replicas)
{
    struct trace *trace = traced->trace;
    char device[32], name[64];

    traced->caller = trace_track(trace, "worker");
    for (uint32_t i = 0; i < replicas->count; i++) {
        (void)device_name(replicas->devices[i], device, sizeof device);
        (void)text_print(name, sizeof name, "replica %" PRIu32 " (%s)", i, device);
        const uint32_t track = trace_track(trace, name);
        traced->replicas = i == 0 ? track : traced->replicas;
        assert(track == traced->replicas + i);
    }
    for (uint32_t i = 0; traced->copies && i < replicas->count; i++) {
        (void)device_name(replicas->devices[i], device, sizeof device);
        (void)text_print(name, sizeof name, "%s stream", device);
        const uint32_t track = trace_track(trace, name);
        traced->streams = i == 0 ? track : traced->streams;
        assert(track == traced->streams + i);
    }
    traced->pull.track = trace_track(trace, "pull");
    for (uint32_t i = 0; i < traced->place_count; i++) {
        (void)text_print(name, sizeof name, "push %" PRIu32, i);
        traced->pushes[i].track = trace_track(trace, name);
    }
}

/* The file's name, of this member's own where there are others. */
static enum sumac_status choose_file(
    const struct sumac_worker_options *options, char *path, size_t path_bytes,
    struct sumac_error *error)
{
    struct sumac_client_facts facts = {0};

    sumac_client_describe(options->client, &facts);
    if (facts.member_count != 1)
        return name_file(options->trace, client_who(options->client), path, path_bytes, error);
    if (strlen(options->trace) >= path_bytes)
        return refuse_name(options->trace, path_bytes, error);
    (void)text_print(path, path_bytes, "%s", options->trace);
    return SUMAC_OK;
}

/* What a step has of the first so many variables; their shapes were looked at when tensors were
 * made of them. */
static uint64_t bytes_of(const struct sumac_worker_options *options, uint32_t count)
{
    uint64_t total = 0;

    assert(count <= options->variable_count);
    for (uint32_t i = 0; i < count; i++) {
        const struct sumac_shape shape = sumac_variable_shape(options->variables[i]);
        uint64_t elements = 0, bytes = 0;
        if (sumac_shape_size(
                &shape, sumac_variable_dtype(options->variables[i]), &elements, &bytes) == SUMAC_OK)
            total += bytes;
    }
    return total;
}

enum sumac_status step_trace_open(
    const struct sumac_worker_options *options, const struct replicas *replicas,
    struct step_trace **traced, struct sumac_error *error)
{
    char path[PATH_MAX];
    enum sumac_status status = SUMAC_OK;

    assert(*traced == NULL);
    if (options->trace == NULL)
        return SUMAC_OK;
    status = choose_file(options, path, sizeof path, error);
    if (status != SUMAC_OK)
        return status;
    struct step_trace *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for a trace");
    const struct trace_options file = {
        .path = path,
        .process = client_who(options->client),
        .say = say,
        .context = options->client,
    };
    status = trace_open(&file, &made->trace, error);
    if (status != SUMAC_OK) {
        free(made);
        return status;
    }
    made->replica_count = replicas->count;
    made->copies = replicas->devices[0]->ops->place != SUMAC_PLACE_HOST;
    made->value_bytes = bytes_of(options, options->variable_count);
    made->gradient_bytes = bytes_of(options, options->pushed_count);
    assert(made->value_bytes >= made->gradient_bytes);
    made->place_count = options->pushes_in_flight + 1;
    make_tracks(made, replicas);
    *traced = made;
    return SUMAC_OK;
}

/* What has not ended has no end to be written. */
void step_trace_close(struct step_trace *traced)
{
    if (traced == NULL)
        return;
    trace_close(traced->trace);
    free(traced);
}

/* ---- what has been done */

static void since(
    const struct step_trace *traced, uint32_t track, enum trace_kind kind, uint64_t begin_ns,
    uint64_t step)
{
    trace_write(
        traced->trace, &(struct trace_event){
                           .kind = kind,
                           .track = track,
                           .begin_ns = begin_ns,
                           .end_ns = trace_now(),
                           .step = step,
                       });
}

void step_trace_caller(
    struct step_trace *traced, enum trace_kind kind, uint64_t begin_ns, uint64_t step)
{
    if (traced != NULL)
        since(traced, traced->caller, kind, begin_ns, step);
}

void step_trace_replica(
    struct step_trace *traced, uint32_t replica, enum trace_kind kind, uint64_t begin_ns,
    uint64_t step)
{
    if (traced == NULL)
        return;
    assert(replica < traced->replica_count);
    since(traced, traced->replicas + replica, kind, begin_ns, step);
}

void step_trace_replicas(
    struct step_trace *traced, enum trace_kind kind, uint64_t begin_ns, uint64_t step)
{
    for (uint32_t i = 0; traced != NULL && i < traced->replica_count; i++)
        step_trace_replica(traced, i, kind, begin_ns, step);
}

void step_trace_stream(struct step_trace *traced, uint32_t replica, const struct trace_event *event)
{
    if (traced == NULL || !traced->copies)
        return;
    assert(replica < traced->replica_count);
    struct trace_event its = *event;
    its.track = traced->streams + replica;
    trace_write(traced->trace, &its);
}

void step_trace_copied_in(
    struct step_trace *traced, uint32_t replica, uint64_t begin_ns, uint64_t step)
{
    if (traced == NULL || !traced->copies)
        return;
    step_trace_stream(
        traced, replica,
        &(struct trace_event){
            .kind = TRACE_COPY_IN,
            .begin_ns = begin_ns,
            .end_ns = trace_now(),
            .step = step,
            .bytes = traced->value_bytes,
        });
}

void step_trace_copied_out(struct step_trace *traced, uint64_t begin_ns, uint64_t step)
{
    if (traced == NULL || !traced->copies)
        return;
    step_trace_stream(
        traced, 0,
        &(struct trace_event){
            .kind = TRACE_COPY_OUT,
            .begin_ns = begin_ns,
            .end_ns = trace_now(),
            .step = step,
            .bytes = traced->gradient_bytes,
        });
    since(traced, traced->caller, TRACE_WAIT_FOR_COPY, begin_ns, step);
}

/* ---- what is under way */

static void end(const struct step_trace *traced, struct begun *begun, enum trace_kind kind)
{
    if (!begun->under_way)
        return;
    assert(begun->track != traced->caller);
    begun->under_way = false;
    trace_write(
        traced->trace, &(struct trace_event){
                           .kind = kind,
                           .track = begun->track,
                           .begin_ns = begun->begin_ns,
                           .end_ns = trace_now(),
                           .step = begun->step,
                           .bytes = begun->bytes,
                       });
}

static void begin(struct begun *begun, uint64_t step, uint64_t bytes)
{
    assert(begun->track > 0);
    begun->begin_ns = trace_now();
    begun->step = step;
    begun->bytes = bytes;
    begun->under_way = true;
}

void step_trace_pull(struct step_trace *traced, uint64_t step)
{
    if (traced != NULL)
        begin(&traced->pull, step, traced->value_bytes);
}

void step_trace_pulled(struct step_trace *traced)
{
    if (traced != NULL)
        end(traced, &traced->pull, TRACE_PULL);
}

void step_trace_push(
    struct step_trace *traced, uint32_t place, uint64_t step, const struct sumac_delta *deltas,
    uint32_t count)
{
    uint64_t bytes = 0;

    if (traced == NULL)
        return;
    assert(place < traced->place_count);
    for (uint32_t i = 0; i < count; i++)
        bytes += sumac_tensor_bytes(&deltas[i].value);
    begin(&traced->pushes[place], step, bytes);
}

void step_trace_pushed(struct step_trace *traced, uint32_t place)
{
    if (traced == NULL)
        return;
    assert(place < traced->place_count);
    end(traced, &traced->pushes[place], TRACE_PUSH);
}
