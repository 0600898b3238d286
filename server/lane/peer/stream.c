/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c -- streams: what is said on them first, which of a session's counts, and their end. */
#include "peer_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>

#include "error.h"
#include "text.h"

#define BREAKS_LOGGED 4u /* of one session; then only each that is a power of two */
#define TO(state) (1u << (state))

/* What may follow each state. ps 0 says hello again on the stream that it has, and a hello of
 * another configuration unsays it. */
static const uint32_t moves[] = {
    [STREAM_SILENT] = TO(STREAM_STALE) | TO(STREAM_GREETED) | TO(STREAM_ENDED),
    [STREAM_STALE] = TO(STREAM_ENDED),
    [STREAM_GREETED] = TO(STREAM_SILENT) | TO(STREAM_ENDED),
    [STREAM_ENDED] = 0,
};

void lane_stream_move(struct lane_stream *stream, enum lane_stream_state to)
{
    assert((size_t)stream->state < sizeof moves / sizeof *moves);
    assert((moves[stream->state] & TO(to)) != 0);
    stream->state = to;
}

struct lane_stream *lane_stream_find(const struct lane *lane, uint64_t id)
{
    return id_map_get(&lane->peers->by_id, id);
}

bool lane_stream_has_pulls(const struct lane *lane, uint64_t id)
{
    const struct lane_stream *stream = lane_stream_find(lane, id);

    return stream != NULL && stream->pulls.first != NULL;
}

void lane_stream_opened(struct lane *lane, const struct lane_event *event)
{
    struct lane_stream *stream = pool_take(&lane->peers->streams);

    assert(event->stream != 0);
    assert(lane_stream_find(lane, event->stream) == NULL);
    if (stream == NULL || !id_map_put(&lane->peers->by_id, event->stream, stream)) {
        pool_give(&lane->peers->streams, stream);
        struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_CLOSE_STREAM);
        effect->stream = event->stream;
        (void)fail(
            &effect->error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps %u has no memory for another stream", lane->index);
        return;
    }
    stream->id = event->stream;
    stream->kind = event->stream_kind;
    LIST_PREPEND(&lane->streams, stream, in_lane);
    lane_place_enter(lane, stream);
}

void lane_stream_attend(struct lane *lane, struct lane_stream *stream)
{
    assert(stream->id != 0);
    if (stream->attended)
        return;
    stream->attended = true;
    LIST_APPEND(&lane->attended, stream, among_attended);
}

void lane_stream_owe(struct lane *lane, struct lane_stream *stream, enum stream_due due)
{
    assert(stream->state != STREAM_ENDED);
    stream->due |= (uint32_t)due;
    lane_stream_attend(lane, stream);
}

void lane_stream_writable(struct lane *lane, const struct lane_event *event)
{
    struct lane_stream *stream = lane_stream_find(lane, event->stream);

    if (stream == NULL)
        return;
    stream->writable = true;
    lane_stream_attend(lane, stream);
}

void lane_stream_end(struct lane *lane, struct lane_stream *stream)
{
    if (stream->state == STREAM_ENDED)
        return;
    lane_stream_move(stream, STREAM_ENDED);
    stream->due = 0;
    lane_place_leave(lane, stream);
    if (stream->receiving != NULL)
        lane_part_destroy(lane, stream->receiving);
    stream->receiving = NULL;
    if (stream->kind == LANE_STREAM_PUSH && stream->session != NULL &&
        stream->session->push_stream == stream) {
        stream->session->push_stream = NULL;
        if (stream->session->closed)
            lane_voided_drop_reasons(lane, stream->session);
    }
    if (lane->coordinator == stream)
        lane->coordinator = NULL;
    if (stream->pulls.first != NULL) /* they are dropped when it is looked after */
        lane_stream_attend(lane, stream);
    lane_answers_drop(lane, stream);
    lane_reports_drop(lane, stream);
    assert(stream->place == PLACE_NONE);
    assert(stream->answer_count == 0);
    assert(stream->session == NULL || stream->session->push_stream != stream);
}

/* A line when the push stream of an open session breaks, at once, and not when its lease is over:
 * its client was killed, or cannot be reached. */
static void tell_broken(struct lane *lane, const struct lane_stream *stream)
{
    struct lane_session *session = stream->session;

    if (stream->kind != LANE_STREAM_PUSH || stream->state == STREAM_ENDED || session == NULL ||
        session->closing || session->push_stream != stream || lane_run_is_over(lane))
        return;
    const uint32_t nth = ++session->broken_streams;
    if (nth > BREAKS_LOGGED && (nth & (nth - 1)) != 0)
        return;
    out_log(
        &lane->out,
        "ps %u: the push stream of %s, attempt %" PRIu64
        ", broke; its lease ends in %s unless it is "
        "heard from",
        lane->index, session->task, session->attempt, text_time_ms(lane->config.lease_ms).text);
}

void lane_stream_closed(struct lane *lane, struct lane_stream *stream)
{
    tell_broken(lane, stream);
    lane_stream_end(lane, stream);
    assert(stream->state == STREAM_ENDED);
    assert(stream != lane->coordinator);
    assert(stream->reports.first == NULL);
    assert(stream->pull_count == 0);
    if (stream->attended)
        LIST_REMOVE(&lane->attended, stream, among_attended);
    LIST_REMOVE(&lane->streams, stream, in_lane);
    id_map_remove(&lane->peers->by_id, stream->id);
    pool_give(&lane->peers->streams, stream);
}

void lane_stream_fail(
    struct lane *lane, struct lane_stream *stream, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...)
{
    assert(status != SUMAC_OK);
    assert(reason != SUMAC_REASON_UNSPECIFIED);
    if (stream->state == STREAM_ENDED)
        return;
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_CLOSE_STREAM);
    va_list arguments;
    effect->stream = stream->id;
    effect->error.status = status;
    effect->error.reason = reason;
    va_start(arguments, format);
    (void)text_print_line_values(effect->error.text, sizeof effect->error.text, format, arguments);
    va_end(arguments);
    lane_stream_end(lane, stream);
}

/* What clients go by. NULL: no memory. */
static wire_limits *make_limits(struct lane *lane)
{
    wire_limits *limits = arena_take(&lane->arena, sizeof *limits);

    assert(lane->config.sessions_max > 0);
    if (limits == NULL)
        return NULL;
    *limits = (wire_limits)WIRE_LIMITS_INIT;
    limits->parts_in_flight_max = lane->config.parts_per_session_max;
    limits->voided_max = lane->config.voided_per_session_max;
    limits->pieces_per_part_max = LANE_PIECES_PER_PART_MAX;
    limits->functions_per_part_max = FUNCTIONS_PER_PART_MAX;
    limits->pulls_per_stream_max = PULLS_PER_STREAM_MAX;
    limits->pieces_per_pull_max = LANE_PIECES_PER_PART_MAX;
    limits->message_bytes_max = WIRE_MESSAGE_BYTES_MAX;
    limits->header_bytes_max = WIRE_HEADER_BYTES_MAX;
    limits->pull_request_bytes_max = WIRE_PULL_BYTES_MAX;
    limits->streams_per_session_max = lane_place_share(lane);
    return limits;
}

wire_greeting *lane_stream_greeting(struct lane *lane, const struct lane_stream *stream)
{
    wire_greeting *greeting = arena_take(&lane->arena, sizeof *greeting);

    assert(stream->state == STREAM_GREETED || stream->state == STREAM_STALE);
    if (greeting == NULL)
        return NULL;
    *greeting = (wire_greeting)WIRE_GREETING_INIT;
    greeting->epoch = lane->epoch;
    greeting->ps_incarnation = lane->config.incarnation;
    greeting->membership_epoch = lane->membership_epoch;
    greeting->cluster_id = lane->cluster_id;
    if (stream->kind == LANE_STREAM_PUSH)
        greeting->staging_grant_bytes = lane->grant_bytes;
    greeting->limits = make_limits(lane);
    return greeting->limits == NULL ? NULL
                                    : greeting; /* mark 0, nothing voided: the epoch began empty */
}

/* Of a session's push streams the one of the largest generation counts. False: this is not the
 * one. */
static bool take_over(struct lane *lane, struct lane_stream *stream, struct lane_session *session)
{
    assert(stream->kind == LANE_STREAM_PUSH);
    assert(stream->state == STREAM_GREETED);
    if (!rule_holds(lane->config.broken, RULE_generation)) {
        session->push_stream = stream;
        return true;
    }
    if (session->has_generation && stream->generation <= session->generation) {
        lane_stream_fail(
            lane, stream, SUMAC_ABORTED, SUMAC_REASON_STREAM_REPLACED,
            "stream of generation %" PRIu64 ": session %s has had one of generation %" PRIu64
            " on ps %u",
            stream->generation, session->task, session->generation, lane->index);
        return false;
    }
    if (session->push_stream != NULL)
        lane_stream_fail(
            lane, session->push_stream, SUMAC_ABORTED, SUMAC_REASON_STREAM_REPLACED,
            "stream of generation %" PRIu64 ": one of generation %" PRIu64 " has taken its place",
            session->generation, stream->generation);
    session->push_stream = stream;
    session->has_generation = true;
    session->generation = stream->generation;
    return true;
}

static bool check_hello(struct lane *lane, struct lane_stream *stream, const wire_hello *hello)
{
    if (hello->protocol_version != WIRE_PROTOCOL_VERSION) {
        lane_stream_fail(
            lane, stream, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_PROTOCOL_VERSION,
            "protocol version %u: ps %u speaks version %u", hello->protocol_version, lane->index,
            WIRE_PROTOCOL_VERSION);
        return false;
    }
    if (hello->cluster_id != 0 && lane->cluster_id != 0 && hello->cluster_id != lane->cluster_id) {
        lane_stream_fail(
            lane, stream, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "ps %u belongs to cluster %016" PRIx64 ", and this hello is meant for %016" PRIx64
            "; check the addresses of job ps",
            lane->index, lane->cluster_id, hello->cluster_id);
        return false;
    }
    const bool reader = stream->kind == LANE_STREAM_PULL && hello->session_id.len == 0;
    if (hello->session_id.len != 16 && !reader) {
        lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "hello: a session id has 16 bytes, given %zu", hello->session_id.len);
        return false;
    }
    return true;
}

/* A reader may leave out what it does not know. */
static bool
is_stale(const struct lane *lane, const struct lane_stream *stream, const wire_hello *hello)
{
    const bool lax = stream->kind == LANE_STREAM_PULL;

    if (hello->epoch != lane->epoch && !(lax && hello->epoch == 0))
        return true;
    return hello->ps_incarnation != lane->config.incarnation &&
           !(lax && hello->ps_incarnation == 0);
}

/* hello's commit_through is not acted on: without the voided ones it would apply what must not be.
 * The commit follows. */
static bool take_hello(struct lane *lane, struct lane_stream *stream, const wire_hello *hello)
{
    assert(stream->state == STREAM_SILENT);
    if (!check_hello(lane, stream, hello))
        return false;
    const bool stale = is_stale(lane, stream, hello);
    lane_stream_move(stream, stale ? STREAM_STALE : STREAM_GREETED);
    lane_stream_owe(lane, stream, DUE_GREETING);
    stream->generation = hello->generation;
    if (stale || hello->session_id.len == 0)
        return lane_place_take(lane, stream);
    struct lane_session *session = lane_session_find(lane, hello->session_id.data);
    if (session == NULL) {
        if (stream->kind == LANE_STREAM_PUSH)
            lane_stream_owe(lane, stream, DUE_REJOIN);
        return lane_place_take(lane, stream);
    }
    if (stream->kind == LANE_STREAM_PUSH && !take_over(lane, stream, session))
        return false;
    stream->session = session;
    if (!lane_place_take(lane, stream))
        return false;
    lane_session_heard(lane, session);
    if (stream->kind != LANE_STREAM_PUSH)
        return true;
    lane_answers_refused_again(lane, session);
    if (stream->state != STREAM_ENDED && session->closing)
        lane_stream_owe(lane, stream, DUE_CLOSED);
    return stream->state != STREAM_ENDED;
}

bool lane_stream_greeted(struct lane *lane, struct lane_stream *stream, const wire_hello *hello)
{
    const bool silent = stream->state == STREAM_SILENT;

    assert(stream->state != STREAM_ENDED);
    if (hello != NULL && silent)
        return take_hello(lane, stream, hello);
    if (hello != NULL || silent) {
        lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            hello != NULL ? "a second hello on one stream" : "the first message says no hello");
        return false;
    }
    return true;
}
