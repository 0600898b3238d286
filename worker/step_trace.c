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

/* The time at which a queue has come to it: a part of a step begins there, or this one ends. */
struct stamp {
    uint64_t ns; /* 0: it was not taken */
    uint32_t of; /* whose: a track of `streams` */
    bool begins;
    struct step_part part;
    uint64_t step;
};

struct step_trace {
    struct trace *trace;
    const struct transfers *transfers; /* their queues, and the replicas' */
    uint32_t replica_count, place_count;
    uint64_t step;        /* that runs … */
    bool computes;        /* … and has been put into the queues */
    struct stamp *stamps; /* (stamps_max), stamp_count of this step; NULL: memory is the host's */
    uint32_t stamp_count, stamps_max;
    uint32_t caller;  /* its track, with the replicas' behind it */
    uint32_t streams; /* the first of theirs; behind the streams are the copies' */
    /* What is under way, where begin_ns is not 0: at most one pull, and a push of each place. */
    struct trace_event pull;
    struct trace_event pushes[SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX + 1];
};

/* ---- the file, and its tracks */

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
        assert(track == traced->caller + STEP_TRACE_REPLICA(i));
    }
    for (uint32_t i = 0; traced->stamps != NULL && i < 2 * replicas->count; i++) {
        (void)device_name(replicas->devices[i % replicas->count], device, sizeof device);
        (void)text_print(
            name, sizeof name, "%s %s", device, i < replicas->count ? "stream" : "copies");
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

/* The file's name. A member that is not alone has its own, "worker 0", before the last dot. */
static enum sumac_status choose_file(
    const struct sumac_worker_options *options, char *path, size_t path_bytes,
    struct sumac_error *error)
{
    struct sumac_client_facts facts = {0};
    const char *file = options->trace, *who = client_who(options->client);
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    const char *dot = name[0] == '\0' ? NULL : strrchr(name + 1, '.');

    sumac_client_describe(options->client, &facts);
    const bool is_alone = facts.member_count == 1;
    if (strlen(file) + (is_alone ? 0 : strlen(who) + 1) >= path_bytes)
        return fail_argument(
            error, "the trace %.100s… has a name of %zu bytes; name a file by fewer than %zu", file,
            strlen(file), path_bytes);
    const size_t stem = is_alone || dot == NULL ? strlen(file) : (size_t)(dot - file);
    size_t used = text_print(path, path_bytes, "%.*s", (int)stem, file);
    if (is_alone)
        return SUMAC_OK;
    assert(who[0] != '\0');
    path[used++] = '.';
    for (const char *c = who; *c != '\0'; c++)
        path[used++] = *c == ' ' || *c == '/' ? '-' : *c;
    (void)text_print(path + used, path_bytes - used, "%s", dot == NULL ? "" : dot);
    return SUMAC_OK;
}

static enum sumac_status make(
    const struct sumac_worker_options *options, const struct transfers *transfers, const char *path,
    struct step_trace *made, struct sumac_error *error)
{
    const struct trace_options file = {
        .path = path,
        .process = client_who(options->client),
        .say = say,
        .context = options->client,
    };

    made->transfers = transfers;
    made->replica_count = transfers->replicas->count;
    made->place_count = options->pushes_in_flight + 1;
    /* In a step each replica's values come in twice at most, its own and the next one's; it
     * computes, reduces, and gives parts of gradients: each begins and ends. */
    made->stamps_max = 2 * (4 * made->replica_count + transfers->part_count);
    if (transfers->queues != NULL) {
        made->stamps = calloc(made->stamps_max, sizeof *made->stamps);
        if (made->stamps == NULL)
            return fail_for_memory(error, "no memory for a trace");
    }
    const enum sumac_status status = trace_open(&file, &made->trace, error);
    if (status == SUMAC_OK)
        make_tracks(made, transfers->replicas);
    return status;
}

enum sumac_status step_trace_open(
    const struct sumac_worker_options *options, const struct transfers *transfers,
    struct step_trace **traced, struct sumac_error *error)
{
    char path[PATH_MAX];

    assert(*traced == NULL);
    if (options->trace == NULL)
        return SUMAC_OK;
    enum sumac_status status = choose_file(options, path, sizeof path, error);
    if (status != SUMAC_OK)
        return status;
    struct step_trace *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fail_for_memory(error, "no memory for a trace");
    status = make(options, transfers, path, made, error);
    if (status == SUMAC_OK)
        *traced = made;
    else
        step_trace_close(made);
    return status;
}

/* What has not ended has no end to be written. */
void step_trace_flush(struct step_trace *traced)
{
    if (traced != NULL)
        trace_flush(traced->trace);
}

void step_trace_close(struct step_trace *traced)
{
    if (traced == NULL)
        return;
    trace_close(traced->trace);
    free(traced->stamps);
    free(traced);
}

/* ---- what has been done */

void step_trace_write(
    const struct step_trace *traced, uint32_t of, enum trace_kind kind, uint64_t begin_ns,
    uint64_t step)
{
    assert(of <= traced->replica_count);
    trace_write(
        traced->trace, &(struct trace_event){
                           .kind = kind,
                           .track = traced->caller + of,
                           .begin_ns = begin_ns,
                           .end_ns = trace_now(),
                           .step = step,
                       });
}

/* ---- what devices have done by themselves */

uint64_t step_trace_step(struct step_trace *traced, uint64_t step)
{
    if (traced == NULL)
        return 0;
    assert(traced->stamp_count == 0);
    traced->step = step;
    traced->computes = false;
    return trace_now();
}

void step_trace_stamp(
    struct step_trace *traced, enum step_queue queue, uint32_t replica,
    const struct step_part *part)
{
    const struct transfers *transfers = traced->transfers;

    assert(replica < traced->replica_count);
    if (traced->stamps == NULL)
        return;
    assert(traced->stamp_count < traced->stamps_max);
    const bool copies = queue == STEP_COPIES;
    struct stamp *stamp = &traced->stamps[traced->stamp_count++];
    *stamp = (struct stamp){
        .of = replica + (copies ? traced->replica_count : 0),
        .begins = part == NULL,
    };
    if (part != NULL) {
        stamp->part = *part;
        stamp->step = traced->step + (part->kind == TRACE_COPY_IN && traced->computes ? 1 : 0);
        traced->computes = traced->computes || part->kind == TRACE_COMPUTE;
    }
    device_stamp((copies ? transfers->queues : transfers->replicas->queues)[replica], &stamp->ns);
}

/* From the stamp before, on the same track, to this one. A device that has failed takes none. */
static void write_part(const struct step_trace *traced, uint32_t end)
{
    const struct stamp *to = &traced->stamps[end], *from = to;

    do {
        assert(from > traced->stamps); /* what ends has begun */
        from--;
    } while (from->of != to->of);
    assert(from->begins);
    if (from->ns == 0 || to->ns == 0)
        return;
    trace_write(
        traced->trace, &(struct trace_event){
                           .kind = to->part.kind,
                           .track = traced->streams + to->of,
                           .begin_ns = from->ns,
                           .end_ns = to->ns,
                           .step = to->step,
                           .bytes = to->part.bytes,
                       });
}

void step_trace_write_parts(struct step_trace *traced, uint64_t begin_ns)
{
    if (traced == NULL || traced->stamps == NULL)
        return;
    step_trace_write(traced, STEP_TRACE_CALLER, TRACE_WAIT_FOR_COPY, begin_ns, traced->step);
    for (uint32_t i = 0; i < traced->stamp_count; i++)
        if (!traced->stamps[i].begins)
            write_part(traced, i);
    traced->stamp_count = 0;
}

/* ---- what is under way */

static void begin(struct trace_event *event, uint64_t step, uint64_t bytes)
{
    assert(event->track > 0);
    event->begin_ns = trace_now();
    event->step = step;
    event->bytes = bytes;
}

static void end(const struct step_trace *traced, struct trace_event *event, enum trace_kind kind)
{
    if (event->begin_ns == 0)
        return;
    assert(event->track != traced->caller);
    event->kind = kind;
    event->end_ns = trace_now();
    trace_write(traced->trace, event);
    event->begin_ns = 0;
}

void step_trace_pull(struct step_trace *traced, uint64_t step, const struct tensors *into)
{
    uint64_t bytes = 0;

    if (traced == NULL)
        return;
    for (uint32_t i = 0; i < into->count; i++)
        bytes += sumac_tensor_bytes(&into->items[i]);
    begin(&traced->pull, step, bytes);
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
