/* SPDX-License-Identifier: Apache-2.0 */
/* places.c -- how many streams there may be of each sort, and how long one may stay without saying
 * whose it is.
 *
 *   strangers   a quarter: no hello yet, or one that serves nobody. The oldest gives way to a new
 *               one, and none stays longer than LANE_HELLO_MS_MAX: whoever says hello at once gets
 *               in, however many do not
 *   readers     half: pulls without a session that is open
 *   sessions    a quarter, in equal shares
 *
 * ps 0's stream is one, and has its place. So nobody's streams shut out those of another sort.
 */
#include "peer_state.h"

/* A push stream and a pull stream at least. A newer push stream ends the older one and has its
 * place at once. A pull stream does not: a session may have several, and nothing says which of them
 * its client has given up. So where there are two places, a client that is back after a silent
 * partition may be told BUSY for its pulls, until keepalive has found the old stream's connection
 * dead (80 s). */
uint32_t lane_place_share(const struct lane *lane)
{
    assert(lane->config.sessions_max > 0);
    const uint32_t share = lane->config.streams_max / 4 / lane->config.sessions_max;
    return share < 2 ? 2 : share;
}

/* Nobody is served on it: it is told what it has to know, and gives way. */
static void link_stranger(struct lane *lane, struct lane_stream *stream)
{
    assert(stream->place == PLACE_NONE);
    assert(stream->state != STREAM_ENDED);
    assert(
        lane->peers->strangers.last == NULL ||
        lane->peers->strangers.last->stranger_since_us <= lane->now_us);
    stream->place = PLACE_STRANGER;
    stream->stranger_since_us = lane->now_us;
    LIST_APPEND(&lane->peers->strangers, stream, among_strangers);
    lane->peers->stranger_count++;
}

void lane_place_enter(struct lane *lane, struct lane_stream *stream)
{
    const uint32_t strangers_max = lane->config.streams_max / 4;

    assert(stream->place == PLACE_NONE);
    if (lane->peers->stranger_count >= strangers_max)
        (void)lane_stream_fail(
            lane, lane->peers->strangers.first, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%u streams have not said whose they are on ps %u, the most that are kept, and this is "
            "the oldest of them: say hello at once, or try again later",
            lane->peers->stranger_count, lane->index);
    link_stranger(lane, stream);
}

static bool take_reader(struct lane *lane, struct lane_stream *stream)
{
    const uint32_t readers_max = lane->config.streams_max / 2;

    assert(stream->kind == LANE_STREAM_PULL);
    if (lane->peers->reader_streams >= readers_max)
        return lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%u streams of readers without a session are open on ps %u, the most that are served: "
            "try again later",
            lane->peers->reader_streams, lane->index);
    lane_place_leave(lane, stream);
    stream->place = PLACE_READER;
    lane->peers->reader_streams++;
    return true;
}

void lane_place_estrange(struct lane *lane, struct lane_stream *stream)
{
    assert(stream->state != STREAM_ENDED);
    if (stream->kind == LANE_STREAM_PULL && stream->state != STREAM_STALE) {
        (void)take_reader(lane, stream); /* it may read on, as anybody */
        return;
    }
    lane_place_leave(lane, stream);
    link_stranger(lane, stream);
}

static bool take_session(struct lane *lane, struct lane_stream *stream)
{
    struct lane_session *session = stream->session;

    assert(session != NULL);
    assert(!session->closed);
    if (session->stream_count >= lane_place_share(lane))
        return lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "session %s has %u streams open on ps %u, the most that it may have: close some, or "
            "try again later",
            session->task, session->stream_count, lane->index);
    lane_place_leave(lane, stream);
    stream->place = PLACE_SESSION;
    session->stream_count++;
    return true;
}

bool lane_place_take(struct lane *lane, struct lane_stream *stream)
{
    assert(stream->place == PLACE_STRANGER);
    assert(stream->state == STREAM_GREETED || stream->state == STREAM_STALE);
    if (stream->kind == LANE_STREAM_PEER) {
        lane_place_leave(lane, stream);
        stream->place = PLACE_CONTROLLER;
        return true;
    }
    if (stream->session != NULL && !stream->session->closed)
        return take_session(lane, stream);
    lane_place_estrange(lane, stream);
    return stream->state != STREAM_ENDED;
}

void lane_place_tick(struct lane *lane)
{
    while (lane->peers->strangers.first != NULL && lane->now_us >= lane_place_due_us(lane) &&
           lane_has_time(lane)) {
        struct lane_stream *stream = lane->peers->strangers.first;
        lane->work += WORK_OF_AN_ERROR;
        assert(stream->place == PLACE_STRANGER);
        if (stream->state == STREAM_SILENT)
            (void)lane_stream_fail(
                lane, stream, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
                "no hello on this stream for %s: it is what a client says first",
                text_time_ms(LANE_HELLO_MS_MAX).text);
        else
            (void)lane_stream_fail(
                lane, stream, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_UNKNOWN,
                "this stream is of no session that is open on ps %u: join again", lane->index);
    }
}

uint64_t lane_place_due_us(const struct lane *lane)
{
    return lane->peers->strangers.first == NULL ? UINT64_MAX
                                                : lane->peers->strangers.first->stranger_since_us +
                                                      (uint64_t)LANE_HELLO_MS_MAX * 1000;
}

void lane_place_excuse(struct lane *lane, uint64_t slept_us)
{
    LIST_FOREACH(struct lane_stream, at, &lane->peers->strangers, among_strangers)
        at->stranger_since_us += slept_us;
}
