/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c -- a stream's life and its end. What hangs on it goes with it, at once: its place, its
 * answers and reports, the part that it was bringing. So the other files of this room may end one,
 * and this one needs none of them. */
#include "peer_state.h"

#include "error.h"
#include "voided.h"

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

/* ---- what hangs on it ---- */

void lane_answer_remove(struct lane *lane, struct lane_stream *stream, struct answer *answer)
{
    assert(answer->pooled || stream->session->answer_bytes >= answer->room_bytes);
    assert(lane->staged_bytes >= answer->room_bytes);
    assert(stream->answer_count > 0);
    LIST_REMOVE(&stream->answers, answer, in_stream);
    stream->answer_count--;
    stream->patient_count -= answer->patient;
    if (answer->pooled) {
        lane_claims_set_bytes(lane, lane->claims.bytes - answer->room_bytes);
    } else {
        stream->session->answer_bytes -= answer->room_bytes;
        lane_staging_count(lane, lane->staged_bytes - answer->room_bytes);
    }
    if (answer->version_count > 1)
        sized_pool_give(
            &lane->bytes, answer->versions, answer->version_count * sizeof *answer->versions);
    sized_pool_give(&lane->bytes, answer, sizeof *answer);
}

void lane_answers_drop(struct lane *lane, struct lane_stream *stream)
{
    while (stream->answers.first != NULL)
        lane_answer_remove(lane, stream, stream->answers.first);
    assert(stream->answer_count == 0);
}

void lane_come_forget(struct lane *lane, struct lane_session *session)
{
    if (session->says_come)
        LIST_REMOVE(&lane->peers->come, session, in_come);
    session->says_come = false;
}

void lane_report_remove(struct lane *lane, struct lane_stream *stream, struct report *report)
{
    if (lane->peers->gathering[report->kind] == report)
        lane->peers->gathering[report->kind] = NULL;
    LIST_REMOVE(&stream->reports, report, in_stream);
    pool_give(&lane->peers->reports, report);
}

void lane_place_leave(struct lane *lane, struct lane_stream *stream)
{
    switch (stream->place) {
    case PLACE_NONE:
    case PLACE_CONTROLLER:
        break;
    case PLACE_STRANGER:
        assert(lane->peers->stranger_count > 0);
        LIST_REMOVE(&lane->peers->strangers, stream, among_strangers);
        lane->peers->stranger_count--;
        break;
    case PLACE_READER:
        assert(lane->peers->reader_streams > 0);
        lane->peers->reader_streams--;
        break;
    case PLACE_SESSION:
        assert(stream->session->stream_count > 0);
        stream->session->stream_count--;
        break;
    }
    stream->place = PLACE_NONE;
}

/* ---- its end ---- */

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
    if (lane->controller == stream)
        lane->controller = NULL;
    if (stream->pulls.first != NULL) /* they are dropped when it is looked after */
        lane_stream_attend(lane, stream);
    lane_answers_drop(lane, stream);
    while (stream->reports.first != NULL)
        lane_report_remove(lane, stream, stream->reports.first);
    assert(stream->place == PLACE_NONE);
    assert(stream->answer_count == 0);
    assert(stream->session == NULL || stream->session->push_stream != stream);
}

/* A line when the push stream of an open session breaks, at once, and not when its lease is over:
 * its client was killed, or cannot be reached. */
static void tell_broken(struct lane *lane, const struct lane_stream *stream)
{
    struct lane_session *session = stream->session;

    if (stream->state == STREAM_ENDED || session == NULL || session->closing ||
        session->push_stream != stream || lane_run_is_over(lane))
        return;
    const uint32_t nth = ++session->broken_streams;
    if (nth > BREAKS_LOGGED && (nth & (nth - 1)) != 0)
        return;
    out_log(
        &lane->out,
        "ps %u: the push stream of %s, attempt %" PRIu64
        ", broke; its lease ends in %s unless it is heard from",
        lane->index, session->task, session->attempt, text_time_ms(lane->config.lease_ms).text);
}

void lane_stream_closed(struct lane *lane, struct lane_stream *stream)
{
    tell_broken(lane, stream);
    lane_stream_end(lane, stream);
    assert(stream->state == STREAM_ENDED);
    assert(stream != lane->controller);
    assert(stream->reports.first == NULL);
    assert(stream->pull_count == 0);
    if (stream->attended)
        LIST_REMOVE(&lane->attended, stream, among_attended);
    LIST_REMOVE(&lane->streams, stream, in_lane);
    id_map_remove(&lane->peers->by_id, stream->id);
    pool_give(&lane->peers->streams, stream);
}

bool lane_stream_fail(
    struct lane *lane, struct lane_stream *stream, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...)
{
    assert(status != SUMAC_OK);
    assert(reason != SUMAC_REASON_UNSPECIFIED);
    if (stream->state == STREAM_ENDED)
        return false;
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_CLOSE_STREAM);
    va_list arguments;
    effect->stream = stream->id;
    effect->error.status = status;
    effect->error.reason = reason;
    va_start(arguments, format);
    (void)text_print_line_values(effect->error.text, sizeof effect->error.text, format, arguments);
    va_end(arguments);
    lane_stream_end(lane, stream);
    return false;
}
