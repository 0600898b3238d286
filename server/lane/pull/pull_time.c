/* SPDX-License-Identifier: Apache-2.0 */
/* pull_time.c -- how long pulls wait, and for their readers; and how long answers to pushes wait
 * for pulls.
 */
#include "pull_state.h"

#include "error.h"

#define UNREAD_US_MAX 60000000u /* a message may wait so long for its reader */
/* What is said of a contribution waits so long for its round, so that both go out together. No
 * longer, since its client may need the room that it has taken. */
#define PATIENT_US 20000u

static void expire(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    char wait[SUMAC_ERROR_TEXT_BYTES];

    assert(pull->error.status == SUMAC_OK);
    assert(!pull->active);
    lane_pull_describe_wait(lane, stream, pull, wait, sizeof wait);
    if (pull->bytes == 0) /* it reads nothing: it asks who is missing */
        (void)fail(
            &pull->error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "it waits for %s%s",
            wait, pull->at_step != 0 ? lane_step_remedy(lane) : "");
    else
        (void)fail(
            &pull->error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "pull %" PRIu64 " has waited %s for %s", pull->request,
            text_time_ms(pull->timeout_ms).text, wait);
    lane_pull_note_failed(lane, stream, pull);
}

void lane_pull_said(struct lane *lane, struct lane_stream *stream)
{
    const uint64_t due_us = lane->now_us + UNREAD_US_MAX;

    assert(stream->kind == LANE_STREAM_PULL);
    stream->said_us = lane->now_us;
    lane_pull_note_due(lane, due_us);
}

void lane_pull_excuse(struct lane *lane, uint64_t slept_us)
{
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        if (stream->said_us != 0)
            stream->said_us += slept_us;
    }
}

/* A reader that takes nothing keeps blocks, also those of variables that were deleted. When its
 * time is over its stream ends, and with it what gRPC has of them. */
static void give_up_unread(struct lane *lane, struct lane_stream *stream)
{
    if (stream->kind != LANE_STREAM_PULL || stream->state == STREAM_ENDED || stream->writable ||
        stream->said_us == 0)
        return;
    const uint64_t due_us = stream->said_us + UNREAD_US_MAX;
    if (lane->now_us < due_us) {
        lane_pull_note_due(lane, due_us);
        return;
    }
    lane->work += WORK_OF_AN_ERROR;
    (void)lane_stream_fail(
        lane, stream, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED,
        "the stream's reader has taken nothing for %s, and ps %u keeps values for it at most "
        "%s: pull again, and read on without a stop",
        text_time_us(lane->now_us - stream->said_us).text, lane->index,
        text_time_us(UNREAD_US_MAX).text);
}

/* End the pulls whose time is over, and note when that of the others is. False: the step is long
 * enough, and some have not been looked at. */
static bool look_at(struct lane *lane, struct lane_stream *stream)
{
    if (stream->state == STREAM_ENDED)
        return true;
    if (lane_pull_holds_answers(lane, stream))
        lane_pull_hold_answers(lane, stream);
    else if (stream->patient_count > 0)
        lane_stream_attend(lane, stream);
    LIST_FOREACH_SAFE(struct lane_pull, pull, &stream->pulls, in_stream) {
        lane->work++;
        if (lane_pull_is_ready(lane, stream, pull))
            continue;
        if (lane->now_us < pull->deadline_us) {
            lane_pull_note_due(lane, pull->deadline_us);
            continue;
        }
        lane->work += WORK_OF_AN_ERROR;
        expire(lane, stream, pull);
        if (!lane_has_time(lane))
            return false;
    }
    return true;
}

/* A look at all of them may take several steps: it goes on at the stream where it was left, or, if
 * that is gone, from the first. */
void lane_pull_tick(struct lane *lane)
{
    if (lane->now_us < lane->pulls_due_us)
        return;
    struct lane_stream *stream =
        lane->pulls->look == 0 ? NULL : lane_stream_find(lane, lane->pulls->look);
    if (stream == NULL) {
        lane->pulls->due_next_us = UINT64_MAX;
        stream = lane->streams.first;
    }
    while (stream != NULL && lane_has_time(lane)) {
        give_up_unread(lane, stream);
        if (!look_at(lane, stream))
            break;
        stream = stream->in_lane.next;
    }
    lane->pulls->look = stream == NULL ? 0 : stream->id;
    lane->pulls_due_us = stream == NULL ? lane->pulls->due_next_us : lane->now_us;
}

bool lane_pull_holds_answers(const struct lane *lane, const struct lane_stream *stream)
{
    assert(stream->patient_count <= stream->answer_count);
    return stream->patient_count > 0 && stream->patient_count == stream->answer_count &&
           stream->due == 0 && stream->pulls.first != NULL &&
           lane->now_us < stream->patient_since_us + PATIENT_US;
}

void lane_pull_hold_answers(struct lane *lane, const struct lane_stream *stream)
{
    assert(lane_pull_holds_answers(lane, stream));
    lane_pull_note_due(lane, stream->patient_since_us + PATIENT_US);
}
