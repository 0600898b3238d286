/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c -- a stream is opened, and its hello says whose it is: its session, and which of that
 * one's streams counts. */
#include "peer_state.h"

#include "error.h"

void lane_stream_opened(struct lane *lane, const struct lane_event *event)
{
    struct lane_stream *stream = pool_take(&lane->peers->streams);

    assert(event->stream != 0);
    assert(lane_stream_find(lane, event->stream) == NULL);
    if (stream == NULL || !id_map_put(&lane->peers->by_id, event->stream, stream)) {
        pool_give(&lane->peers->streams, stream);
        struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_CLOSE_STREAM);
        effect->stream = event->stream;
        (void)fail_for_memory(
            &effect->error, "ps %u has no memory for another stream", lane->index);
        return;
    }
    stream->id = event->stream;
    stream->kind = event->stream_kind;
    LIST_PREPEND(&lane->streams, stream, in_lane);
    lane_place_enter(lane, stream);
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
    if (session->has_generation && stream->generation <= session->generation)
        return lane_stream_fail(
            lane, stream, SUMAC_ABORTED, SUMAC_REASON_STREAM_REPLACED,
            "stream of generation %" PRIu64 ": session %s has had one of generation %" PRIu64
            " on ps %u",
            stream->generation, session->task, session->generation, lane->index);
    if (session->push_stream != NULL)
        (void)lane_stream_fail(
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
    if (hello->protocol_version != WIRE_PROTOCOL_VERSION)
        return lane_stream_fail(
            lane, stream, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_PROTOCOL_VERSION,
            "protocol version %u: ps %u speaks version %u", hello->protocol_version, lane->index,
            WIRE_PROTOCOL_VERSION);
    if (hello->cluster_id != 0 && lane->cluster_id != 0 && hello->cluster_id != lane->cluster_id)
        return lane_stream_fail(
            lane, stream, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "ps %u belongs to cluster %016" PRIx64 ", and this hello is meant for %016" PRIx64
            "; check the addresses of job ps",
            lane->index, lane->cluster_id, hello->cluster_id);
    const bool reader = stream->kind == LANE_STREAM_PULL && hello->session_id.len == 0;
    if (hello->session_id.len != 16 && !reader)
        return lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "hello: a session id has 16 bytes, given %zu", hello->session_id.len);
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
    if (session == NULL)
        return lane_place_take(lane, stream);
    if (stream->kind == LANE_STREAM_PUSH && !take_over(lane, stream, session))
        return false;
    stream->session = session;
    if (!lane_place_take(lane, stream))
        return false;
    lane_session_heard(lane, session);
    if (stream->kind != LANE_STREAM_PUSH)
        return true;
    lane_answers_refused_again(lane, session);
    lane_answers_room_again(lane, session);
    return stream->state != STREAM_ENDED;
}

struct lane_stream *lane_stream_taken(struct lane *lane, uint64_t id, const wire_hello *hello)
{
    struct lane_stream *stream = lane_stream_find(lane, id);

    if (stream == NULL || stream->state == STREAM_ENDED)
        return NULL;
    if ((hello != NULL) != (stream->state == STREAM_SILENT)) {
        (void)lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            hello != NULL ? "a second hello on one stream" : "the first message says no hello");
        return NULL;
    }
    if (hello != NULL && !take_hello(lane, stream, hello))
        return NULL;
    return stream->state == STREAM_STALE ? NULL : stream;
}
