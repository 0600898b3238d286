/* SPDX-License-Identifier: Apache-2.0 */
/* collective_pull.c -- pulls of rounds of collectives: what they wait for, and the runs of bytes
 * that a result lies in.
 *
 *   gather along axis 1:   o = 0: | place 0 ··· | place 1 · |   o = 1: | place 0 ··· | place 1 · |
 *   concatenate:           indices | place 0 · | place 1 |  values | place 0 ··· | place 1 ·· |
 *
 * What is joined is read where it came to; what is computed lies at place 0, as of a broadcast what
 * its root has does.
 */
#include "pull_state.h"

#include "error.h"

void lane_collective_pull_check(
    const struct lane_stream *stream, const wire_pull_request *request, struct sumac_error *error)
{
    const wire_collective_round *asked = request->collective;
    const struct lane_session *session = stream->session;
    struct collective_task task;

    assert(error->status == SUMAC_OK);
    if (request->n_pieces > 0 || request->at_step > 0 || asked->name.len == 0 ||
        asked->name.len > COLLECTIVE_NAME_BYTES_MAX || asked->round == 0 ||
        memchr(asked->name.data, 0, asked->name.len) != NULL)
        (void)fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "pull %" PRIu64 " is of round %" PRIu64
            " of a collective, with a name of %zu bytes and %zu pieces: it names one by 1 to %u "
            "bytes, rounds count from 1, and it has no pieces and is at no step",
            request->request, asked->round, asked->name.len, request->n_pieces,
            COLLECTIVE_NAME_BYTES_MAX);
    else if (session == NULL || session->closing || !lane_session_task(session, &task))
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_UNKNOWN,
            "pull %" PRIu64 " is of a round of a collective, and its session is %s: chiefs and "
            "workers that have joined take part",
            request->request,
            session == NULL    ? "not known"
            : session->closing ? "closed"
                               : "no chief's or worker's");
}

void lane_collective_pull_begin(
    struct collective_pull *wanted, const struct lane_session *session,
    const wire_collective_round *asked)
{
    assert(asked->name.len > 0 && asked->name.len <= COLLECTIVE_NAME_BYTES_MAX);
    (void)lane_session_task(session, &wanted->task);
    wanted->number = asked->round;
    memcpy(
        wanted->name, asked->name.data, asked->name.len); /* a zero follows: all of it was zeroed */
}

static struct round *find(const struct lane *lane, const struct collective_pull *wanted)
{
    return rounds_find_for(&lane->rounds, wanted->name, wanted->number, &wanted->task);
}

bool lane_collective_pull_is_ready(const struct lane *lane, const struct lane_pull *pull)
{
    assert(pull->collective != NULL);
    if (pull->fixed)
        return true;
    const struct round *round = find(lane, pull->collective);
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

static bool joins(const struct collective *collective)
{
    return collective->operation == COLLECTIVE_GATHER ||
           collective->operation == COLLECTIVE_CONCATENATE;
}

static uint64_t joined_extent(const struct round *round)
{
    uint64_t extent = 0;

    for (uint32_t i = 0; i < round->collective->task_count; i++)
        extent += round->places[i].extent;
    return extent;
}

/* How the result is laid out: `outer` times each participant's `unit` bytes for each of its extent.
 */
static void lay_out(const struct lane *lane, struct collective_pull *wanted)
{
    const struct collective *collective = wanted->round->collective;
    const struct sumac_shape *shape = &collective->shape;
    const size_t element = dtype_bytes(collective->dtype);

    assert(wanted->at == 0);
    if (!joins(collective)) {
        const struct collective_share share =
            collective_share(collective, lane->index, lane->ps_count);
        const uint64_t came = dtype_bytes(collective_contribution_dtype(collective));
        wanted->place = collective->operation == COLLECTIVE_BROADCAST ? collective->root : 0;
        wanted->bytes = collective->operation == COLLECTIVE_BROADCAST
                            ? collective->elements * element
                            : share.bytes / came * element;
        return;
    }
    const uint64_t extent = joined_extent(wanted->round);
    wanted->outer = product(shape, 0, collective->axis);
    wanted->unit = product(shape, collective->axis + 1, shape->rank) * element;
    if (collective->operation == COLLECTIVE_CONCATENATE)
        wanted->index_bytes = extent * dtype_bytes(SUMAC_INT64);
    wanted->bytes = wanted->index_bytes + wanted->outer * extent * wanted->unit;
}

/* It is of the session's task, too? Then its result stays until it is read. */
void lane_collective_pull_fix(
    struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull)
{
    struct collective_pull *wanted = pull->collective;
    struct round *round = find(lane, wanted);

    assert(round != NULL && round->over);
    pull->fixed = true;
    pull->record = lane->last_record;
    pull->position = lane->store.position;
    if (round->end.status != SUMAC_OK) {
        pull->error = round->end;
        return;
    }
    if (collective_place(round->collective, &wanted->task) == UINT32_MAX) {
        (void)fail(
            &pull->error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "pull %" PRIu64 " is of round %" PRIu64
            " of collective %.100s, and %s does not take part in it",
            pull->request, wanted->number, wanted->name, stream->session->task);
        return;
    }
    wanted->round = round;
    lane_round_use(lane, round);
    lay_out(lane, wanted);
    pull->bytes = wanted->bytes;
}

/* ---- its bytes */

/* The number of the place's bytes that lie together in the region that they begin in. */
static uint64_t place_bytes(const struct collective_pull *wanted)
{
    const uint64_t extent = wanted->round->places[wanted->place].extent;

    assert(wanted->place < wanted->round->collective->task_count);
    return extent *
           (wanted->place_begin < wanted->index_bytes ? dtype_bytes(SUMAC_INT64) : wanted->unit);
}

/* Where byte `at` of what is joined lies: at this place, there. */
static uint64_t find_joined(struct collective_pull *wanted, uint64_t *together)
{
    while (wanted->at >= wanted->place_begin + place_bytes(wanted)) {
        wanted->place_begin += place_bytes(wanted);
        wanted->place++;
        if (wanted->place == wanted->round->collective->task_count)
            wanted->place = 0;
    }
    const uint64_t extent = wanted->round->places[wanted->place].extent;
    const uint64_t within = wanted->at - wanted->place_begin;
    *together = place_bytes(wanted) - within;
    if (wanted->at < wanted->index_bytes)
        return within;
    if (wanted->index_bytes > 0)
        return extent * dtype_bytes(SUMAC_INT64) + within;
    const uint64_t row_bytes = wanted->bytes / wanted->outer; /* of all places */
    return wanted->at / row_bytes * extent * wanted->unit + within;
}

struct result_run lane_collective_pull_next(struct collective_pull *wanted, uint64_t most)
{
    const struct collective *collective = wanted->round->collective;
    uint64_t together = wanted->bytes - wanted->at, in_chunk;

    assert(wanted->at < wanted->bytes);
    assert(most > 0);
    const uint64_t at = joins(collective) ? find_joined(wanted, &together) : wanted->at;
    struct result_run run = {.contribution = wanted->round->places[wanted->place].contribution};
    run.data = lane_combined_bytes(wanted->round, wanted->place, at, &in_chunk);
    if (together > in_chunk)
        together = in_chunk;
    run.bytes = together < most ? together : most;
    wanted->at += run.bytes;
    return run;
}

wire_collective_result *lane_collective_pull_header(struct lane *lane, const struct lane_pull *pull)
{
    const struct round *round = pull->collective->round;
    const struct collective *collective = round->collective;
    const uint32_t rank = collective->shape.rank;
    wire_collective_result *header = arena_take(&lane->arena, sizeof *header);
    uint64_t *shape = arena_take(&lane->arena, (rank + 1) * sizeof *shape);
    uint64_t *extents = arena_take(&lane->arena, collective->task_count * sizeof *extents);

    assert(round->ready);
    if (header == NULL || shape == NULL || extents == NULL)
        return NULL;
    *header = (wire_collective_result)WIRE_COLLECTIVE_RESULT_INIT;
    header->data_type = (Sumac__V1__DataType)collective->dtype;
    memcpy(shape, collective->shape.extent, rank * sizeof *shape);
    header->shape = shape;
    header->n_shape = rank;
    if (!joins(collective))
        return header;
    shape[collective->axis] = joined_extent(round);
    for (uint32_t i = 0; i < collective->task_count; i++)
        extents[i] = round->places[i].extent;
    header->extents = extents;
    header->n_extents = collective->task_count;
    return header;
}

/* ---- for whom it waits */

void lane_collective_pull_describe(
    const struct lane *lane, const struct lane_pull *pull, char *text, size_t text_bytes)
{
    const struct collective_pull *wanted = pull->collective;
    const struct round *round = find(lane, wanted);
    char missing[384];

    assert(!pull->fixed);
    if (round == NULL) {
        (void)text_print_line(
            text, text_bytes,
            "round %" PRIu64 " of collective %.100s, to which no task has contributed on ps %u",
            wanted->number, wanted->name, lane->index);
        return;
    }
    lane_collective_missing(lane, round, missing, sizeof missing);
    (void)text_print_line(
        text, text_bytes, "round %" PRIu64 " of collective %.100s, which waits on ps %u for %s",
        wanted->number, wanted->name, lane->index, *missing == '\0' ? "its result" : missing);
}
