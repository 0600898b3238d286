/* SPDX-License-Identifier: Apache-2.0 */
/* met.c -- pulls of rounds of rendezvous: what they wait for, and the runs of bytes that a result
 * lies in.
 *
 *   gather along axis 1:   o = 0: | place 0 ··· | place 1 · |   o = 1: | place 0 ··· | place 1 · |
 *   concatenate:           indices | place 0 · | place 1 |  values | place 0 ··· | place 1 ·· |
 *
 * What is joined is read where it came to; what is computed lies at place 0, as of a broadcast what
 * its root has does.
 */
#include "pull_state.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "text.h"

size_t lane_met_bytes(const wire_meeting_round *asked)
{
    return asked == NULL ? 0 : sizeof(struct met) + asked->name.len + 1;
}

void lane_met_check(
    struct lane *lane, const struct lane_stream *stream, const wire_pull_request *request,
    struct sumac_error *error)
{
    const wire_meeting_round *asked = request->meeting;
    const struct lane_session *session = stream->session;
    struct meeting_task task;

    assert(error->status == SUMAC_OK);
    if (request->n_pieces > 0 || request->at_step > 0 || asked->name.len == 0 ||
        asked->name.len > MEETING_NAME_BYTES_MAX || asked->round == 0 ||
        memchr(asked->name.data, 0, asked->name.len) != NULL)
        (void)fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "pull %" PRIu64 " is of round %" PRIu64
            " of a rendezvous, with a name of %zu bytes and %zu pieces: it names one by 1 to %u "
            "bytes, rounds count from 1, and it has no pieces and is at no step",
            request->request, asked->round, asked->name.len, request->n_pieces,
            MEETING_NAME_BYTES_MAX);
    else if (session == NULL || session->closing || !lane_session_task(session, &task))
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_UNKNOWN,
            "pull %" PRIu64 " is of a round of a rendezvous, and its session is %s: chiefs and "
            "workers that have joined take part",
            request->request,
            session == NULL    ? "not known"
            : session->closing ? "closed"
                               : "no chief's or worker's");
    (void)lane;
}

void lane_met_begin(
    struct met *met, const struct lane_session *session, const wire_meeting_round *asked)
{
    assert(asked->name.len > 0 && asked->name.len <= MEETING_NAME_BYTES_MAX);
    (void)lane_session_task(session, &met->task);
    met->number = asked->round;
    memcpy(met->name, asked->name.data, asked->name.len); /* a zero follows: all of it was zeroed */
}

static struct round *find(const struct lane *lane, const struct met *met)
{
    return rounds_find_for(&lane->rounds, met->name, met->number, &met->task);
}

bool lane_met_is_ready(const struct lane *lane, const struct lane_pull *pull)
{
    assert(pull->met != NULL);
    if (pull->fixed)
        return true;
    const struct round *round = find(lane, pull->met);
    return round != NULL && round->over && (round->end.status != SUMAC_OK || round->ready);
}

/* ---- the result's shape */

static uint64_t product(const struct sumac_shape *shape, uint32_t from, uint32_t beyond)
{
    uint64_t value = 1;

    assert(beyond <= shape->rank);
    for (uint32_t i = from; i < beyond; i++)
        value *= shape->extent[i];
    return value;
}

static bool joins(const struct meeting *meeting)
{
    return meeting->operation == MEETING_GATHER || meeting->operation == MEETING_CONCATENATE;
}

static uint64_t joined_extent(const struct round *round)
{
    uint64_t extent = 0;

    for (uint32_t i = 0; i < round->meeting->task_count; i++)
        extent += round->places[i].extent;
    return extent;
}

/* How the result is laid out: `outer` times each participant's `unit` bytes for each of its extent.
 */
static void lay_out(const struct lane *lane, struct met *met)
{
    const struct meeting *meeting = met->round->meeting;
    const struct sumac_shape *shape = &meeting->shape;
    const size_t element = dtype_bytes(meeting->dtype);

    assert(met->at == 0);
    if (!joins(meeting)) {
        const struct meeting_share share = meeting_share(meeting, lane->index, lane->ps_count);
        const uint64_t came = dtype_bytes(meeting_contribution_dtype(meeting));
        met->place = meeting->operation == MEETING_BROADCAST ? meeting->root : 0;
        met->bytes = meeting->operation == MEETING_BROADCAST ? meeting->elements * element
                                                             : share.bytes / came * element;
        return;
    }
    const uint64_t extent = joined_extent(met->round);
    met->outer = product(shape, 0, meeting->axis);
    met->unit = product(shape, meeting->axis + 1, shape->rank) * element;
    if (meeting->operation == MEETING_CONCATENATE)
        met->index_bytes = extent * dtype_bytes(SUMAC_INT64);
    met->bytes = met->index_bytes + met->outer * extent * met->unit;
}

/* It is of the session's task, too? Then its result stays until it is read. */
void lane_met_fix(struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull)
{
    struct met *met = pull->met;
    struct round *round = find(lane, met);

    assert(round != NULL && round->over);
    pull->fixed = true;
    pull->record = lane->last_record;
    pull->position = lane->store.position;
    if (round->end.status != SUMAC_OK) {
        pull->error = round->end;
        return;
    }
    if (meeting_place(round->meeting, &met->task) == UINT32_MAX) {
        (void)fail(
            &pull->error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "pull %" PRIu64 " is of round %" PRIu64
            " of rendezvous %.100s, and %s is none of those that take part in it",
            pull->request, met->number, met->name, stream->session->task);
        return;
    }
    met->round = round;
    lane_round_use(lane, round);
    lay_out(lane, met);
    pull->bytes = met->bytes;
}

void lane_met_let_go(struct lane *lane, struct lane_pull *pull)
{
    if (pull->met != NULL && pull->met->round != NULL)
        lane_round_let_go(lane, pull->met->round);
}

/* ---- its bytes */

/* Of the region that it begins in, so many bytes of the place's lie together. */
static uint64_t place_bytes(const struct met *met)
{
    const uint64_t extent = met->round->places[met->place].extent;

    assert(met->place < met->round->meeting->task_count);
    return extent * (met->place_begin < met->index_bytes ? dtype_bytes(SUMAC_INT64) : met->unit);
}

/* Where byte `at` of what is joined lies: at this place, there. */
static uint64_t find_joined(struct met *met, uint64_t *together)
{
    while (met->at >= met->place_begin + place_bytes(met)) {
        met->place_begin += place_bytes(met);
        met->place++;
        if (met->place == met->round->meeting->task_count)
            met->place = 0;
    }
    const uint64_t extent = met->round->places[met->place].extent;
    const uint64_t within = met->at - met->place_begin;
    *together = place_bytes(met) - within;
    if (met->at < met->index_bytes)
        return within;
    if (met->index_bytes > 0)
        return extent * dtype_bytes(SUMAC_INT64) + within;
    const uint64_t row_bytes = met->bytes / met->outer; /* of all places */
    return met->at / row_bytes * extent * met->unit + within;
}

struct met_run lane_met_next(struct met *met, uint64_t most)
{
    const struct meeting *meeting = met->round->meeting;
    uint64_t together = met->bytes - met->at, in_chunk;

    assert(met->at < met->bytes);
    assert(most > 0);
    const uint64_t at = joins(meeting) ? find_joined(met, &together) : met->at;
    struct met_run run = {.deposit = met->round->places[met->place].contribution};
    run.data = lane_combined_bytes(met->round, met->place, at, &in_chunk);
    if (together > in_chunk)
        together = in_chunk;
    run.bytes = together < most ? together : most;
    met->at += run.bytes;
    return run;
}

wire_met *lane_met_header(struct lane *lane, const struct lane_pull *pull)
{
    const struct round *round = pull->met->round;
    const struct meeting *meeting = round->meeting;
    const uint32_t rank = meeting->shape.rank;
    wire_met *header = arena_take(&lane->arena, sizeof *header);
    uint64_t *shape = arena_take(&lane->arena, (rank + 1) * sizeof *shape);
    uint64_t *extents = arena_take(&lane->arena, meeting->task_count * sizeof *extents);

    assert(round->ready);
    if (header == NULL || shape == NULL || extents == NULL)
        return NULL;
    *header = (wire_met)WIRE_MET_INIT;
    header->data_type = (Sumac__V1__DataType)meeting->dtype;
    memcpy(shape, meeting->shape.extent, rank * sizeof *shape);
    header->shape = shape;
    header->n_shape = rank;
    if (!joins(meeting))
        return header;
    shape[meeting->axis] = joined_extent(round);
    for (uint32_t i = 0; i < meeting->task_count; i++)
        extents[i] = round->places[i].extent;
    header->extents = extents;
    header->n_extents = meeting->task_count;
    return header;
}

/* ---- for whom it waits */

void lane_met_describe(
    const struct lane *lane, const struct lane_pull *pull, char *text, size_t text_bytes)
{
    const struct met *met = pull->met;
    const struct round *round = find(lane, met);
    char missing[256];

    assert(!pull->fixed);
    if (round == NULL) {
        (void)text_print_line(
            text, text_bytes,
            "round %" PRIu64 " of rendezvous %.100s, to which no task has contributed on ps %u",
            met->number, met->name, lane->index);
        return;
    }
    lane_meet_missing(lane, round, missing, sizeof missing);
    (void)text_print_line(
        text, text_bytes, "round %" PRIu64 " of rendezvous %.100s, which waits on ps %u for %s",
        met->number, met->name, lane->index, *missing == '\0' ? "its result" : missing);
}
