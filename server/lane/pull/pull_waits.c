/* SPDX-License-Identifier: Apache-2.0 */
/* pull_waits.c -- what a pull waits for, whom, and how long.
 *
 * A pull waits for the session's mark to reach its after_sequence, for members more steps behind
 * than its lag_max, and for its synchronous step. It also waits for shards that are busy, or have
 * yet to be assigned by their creator.
 */
#include "pull_state.h"

#include "error.h"

#define SLOW_NAMED_MAX 3u /* members that a wait is for */
/* The answer to a contribution waits so long for its round: both go out together. Its client may
 * need the room that it has taken, so it waits no longer. */
#define PATIENT_US 20000u

bool lane_pull_is_long(const struct lane *lane, const struct lane_pull *pull)
{
    return pull->bytes > lane->config.copied_pull_bytes_max ||
           pull->piece_count > PIECES_PER_ANSWER_MAX || pull->index_count > ROWS_PER_ANSWER_MAX;
}

/* Without the rule apply_in_one_operation: in the middle of one, too. */
static bool is_readable(const struct lane *lane, const struct shard *shard)
{
    if (is_busy(shard) && rule_holds(lane->config.broken, RULE_apply_in_one_operation))
        return false;
    return shard->unassigned == NULL;
}

/* A shard that cannot be read yet: it is being updated, or its creator has not assigned it. NULL:
 * none. */
static const struct shard *find_unready(struct lane *lane, struct lane_pull *pull)
{
    if (pull->unready_piece < pull->piece_count) { /* most often it is that one still */
        const struct shard *shard = pull->pieces[pull->unready_piece].shard;
        if (!is_readable(lane, shard))
            return shard;
    }
    uint32_t i = 0;
    while (i < pull->piece_count && is_readable(lane, pull->pieces[i].shard))
        lane_pull_fetch_ahead(pull, i++);
    lane->work += i / PIECES_PER_WORK;
    if (i == pull->piece_count)
        return NULL;
    pull->unready_piece = i;
    return pull->pieces[i].shard;
}

/* A session that has been forgotten was closed, and its waiting pulls were answered then. */
static bool waits_for_push(const struct lane_stream *stream, const struct lane_pull *pull)
{
    assert(pull->request != 0);
    return stream->session != NULL && stream->session->mark < pull->after_sequence;
}

/* Bounded lag. */
static bool waits_for_clock(const struct lane *lane, const struct lane_pull *pull)
{
    return pull->clock_awaited > lane_session_slowest_clock(lane, UINT64_MAX) &&
           rule_holds(lane->config.broken, RULE_lag_is_bounded);
}

static bool is_late(const struct lane *lane, const struct lane_pull *pull)
{
    return pull->at_step != 0 && pull->at_step < lane->step_over &&
           rule_holds(lane->config.broken, RULE_at_step_is_exact);
}

/* For the end of a step. */
static bool waits_for_step(const struct lane *lane, const struct lane_pull *pull)
{
    if (pull->at_step == 0 || pull->at_step < lane->step_over)
        return false;
    return !lane_step_is_newest(lane, pull->at_step);
}

bool lane_pull_is_late(
    const struct lane *lane, const struct lane_pull *pull, struct sumac_error *error)
{
    assert(!pull->fixed); /* what it reads is of its step */
    if (!is_late(lane, pull))
        return false;
    (void)fail(
        error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_STEP_OVER,
        "pull %" PRIu64 " is at synchronous step %" PRIu64 ", and step %" PRIu64
        " is over on ps %u, which keeps no older state: pull at that one, or a later one",
        pull->request, pull->at_step, lane->step_over, lane->index);
    return true;
}

static void note_least(uint64_t *least, uint64_t awaited)
{
    assert(awaited > 0);
    if (*least == 0 || awaited < *least)
        *least = awaited;
}

void lane_pull_await(
    const struct lane *lane, struct lane_stream *stream, const struct lane_pull *pull)
{
    const uint64_t last = lane->step_over;

    assert(pull->error.status == SUMAC_OK || pull->fixed); /* an end whose record is under way */
    if (waits_for_clock(lane, pull))
        note_least(&stream->clock_awaited, pull->clock_awaited);
    if (pull->at_step != 0 && !pull->fixed) /* or it is late then, whatever else it waits for */
        note_least(&stream->step_awaited, pull->at_step > last ? pull->at_step : last + 1);
}

bool lane_pull_is_ready(struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull)
{
    if (pull->error.status != SUMAC_OK || pull->active)
        return true;
    if (lane_pull_is_being_read(pull) ||
        (pull->collective != NULL && !lane_collective_pull_is_ready(lane, pull)))
        return false;
    if (pull->at_step != 0 && is_late(lane, pull))
        return true;
    return !waits_for_push(stream, pull) &&
           (pull->clock_awaited == 0 || !waits_for_clock(lane, pull)) &&
           (pull->at_step == 0 || !waits_for_step(lane, pull)) && find_unready(lane, pull) == NULL;
}

bool lane_pull_is_put_off(
    const struct lane *lane, const struct lane_stream *stream, const struct lane_pull *pull)
{
    return stream->active_pulls > 0 && !pull->fixed && pull->error.status == SUMAC_OK &&
           lane_pull_is_long(lane, pull);
}

bool lane_pull_is_to_be_said(
    const struct lane *lane, const struct lane_stream *stream, const struct lane_pull *pull)
{
    uint32_t i = 0;

    if (pull->collective != NULL && pull->fixed)
        return pull->record <= lane->recorded;
    if (pull->error.status != SUMAC_OK || lane_pull_is_being_read(pull))
        return true;
    if (pull->collective != NULL && !lane_collective_pull_is_ready(lane, pull))
        return false;
    if (lane_pull_is_put_off(lane, stream, pull))
        return false;
    if (pull->fixed)
        return pull->record <= lane->recorded;
    if (is_late(lane, pull))
        return true;
    while (i < pull->piece_count && is_readable(lane, pull->pieces[i].shard))
        i++;
    return i == pull->piece_count && !waits_for_push(stream, pull) &&
           !waits_for_clock(lane, pull) && !waits_for_step(lane, pull);
}

/* Who is missing from the step that is next. */
static void
describe_step(const struct lane *lane, const struct lane_pull *pull, char *text, size_t text_bytes)
{
    const uint64_t next = lane->step_over + 1;
    char missing[384];

    assert(pull->at_step >= next - 1);
    (void)lane_step_missing(lane, missing, sizeof missing);
    const char *const who = *missing == 0 ? "its turn" : missing;
    if (pull->at_step == next)
        (void)text_print_line(
            text, text_bytes, "synchronous step %" PRIu64 ", which waits on ps %u for %s", next,
            lane->index, who);
    else
        (void)text_print_line(
            text, text_bytes,
            "synchronous step %" PRIu64 "; step %" PRIu64 " waits on ps %u for %s", pull->at_step,
            next, lane->index, who);
}

/* Who is behind, how far, and whether each is alive. */
static void
describe_slow(struct lane *lane, const struct lane_pull *pull, char *text, size_t text_bytes)
{
    uint32_t named = 0, others = 0;
    size_t used = text_print(text, text_bytes, "step %" PRIu64 " of", pull->clock_awaited);

    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane) {
        lane->work++;
        if (!lane_session_is_behind(lane, session, pull->clock_awaited))
            continue;
        if (named == SLOW_NAMED_MAX) {
            others++;
            continue;
        }
        used += text_print_line(
            text + used, text_bytes - used, "%s %s, which has finished %" PRIu64 " (%s)",
            (named++ == 0 ? "" : ";"), session->task, session->clock,
            lane_session_silence(lane, session).text);
    }
    if (others > 0)
        (void)text_print(text + used, text_bytes - used, "; and %u more", others);
}

/* ---- what it waits for */

enum cause_kind { CAUSE_PUSH, CAUSE_ROUND, CAUSE_CLOCK, CAUSE_STEP, CAUSE_READER, CAUSE_SHARD };

struct cause {
    enum cause_kind kind;
    uint64_t number;
    const char *name;
    const struct shard *shard;
};

static struct cause
find_cause(struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull)
{
    if (waits_for_push(stream, pull))
        return (struct cause){
            .kind = CAUSE_PUSH, .number = pull->after_sequence, .name = stream->session->task};
    if (pull->collective != NULL)
        return (struct cause){
            .kind = CAUSE_ROUND,
            .number = pull->collective->number,
            .name = pull->collective->name};
    if (waits_for_clock(lane, pull))
        return (struct cause){.kind = CAUSE_CLOCK, .number = pull->clock_awaited, .name = ""};
    if (waits_for_step(lane, pull))
        return (struct cause){.kind = CAUSE_STEP, .number = pull->at_step, .name = ""};
    const struct shard *shard = find_unready(lane, pull);
    if (shard == NULL)
        return (struct cause){.kind = CAUSE_READER, .number = stream->id, .name = ""};
    return (struct cause){
        .kind = CAUSE_SHARD,
        .number = is_busy(shard),
        .name = shard->variable->name,
        .shard = shard};
}

/* Only ps 0 knows who creates a variable. */
static void
describe_shard(const struct lane *lane, const struct shard *shard, char *text, size_t text_bytes)
{
    if (is_busy(shard))
        (void)text_print_line(
            text, text_bytes, "variable %s, whose shard on ps %u is being updated",
            shard->variable->name, lane->index);
    else
        (void)text_print_line(
            text, text_bytes,
            "variable %s on ps %u: its creator has not assigned it yet; ps 0 names the creator to "
            "a "
            "waiting create of the same variable",
            shard->variable->name, lane->index);
}

static void describe(
    struct lane *lane, const struct lane_stream *stream, const struct lane_pull *pull,
    const struct cause *cause, char *text, size_t text_bytes)
{
    const struct lane_session *session = stream->session;

    switch (cause->kind) {
    case CAUSE_PUSH:
        (void)text_print_line(
            text, text_bytes,
            "push %" PRIu64 " of %s: on ps %u push %" PRIu64
            " %s, and the last push applied is %" PRIu64 "; %s",
            pull->after_sequence, session->task, lane->index, pull->after_sequence,
            lane_turn_whereabouts(session, pull->after_sequence), session->mark,
            lane_session_silence(lane, session).text);
        break;
    case CAUSE_ROUND:
        lane_collective_pull_describe(lane, pull, text, text_bytes);
        break;
    case CAUSE_CLOCK:
        describe_slow(lane, pull, text, text_bytes);
        break;
    case CAUSE_STEP:
        describe_step(lane, pull, text, text_bytes);
        break;
    case CAUSE_READER:
        (void)text_print_line(text, text_bytes, "the stream's reader");
        break;
    case CAUSE_SHARD:
        describe_shard(lane, cause->shard, text, text_bytes);
        break;
    }
}

/* ---- how long: pulls wait, and for their readers; answers to pushes wait for pulls */

static void expire(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    const struct cause cause = find_cause(lane, stream, pull);
    char wait[SUMAC_ERROR_TEXT_BYTES];

    assert(pull->error.status == SUMAC_OK);
    assert(!pull->active);
    describe(lane, stream, pull, &cause, wait, sizeof wait);
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

/* ---- in the statistics: pulls by what they wait for */

struct wait {
    struct cause cause;
    const struct lane_stream *stream;
    const struct lane_pull *first;
    uint32_t pulls;
    uint64_t longest_us;
};

struct waits {
    struct wait items[PULL_WAITS_MAX];
    uint32_t count;
};

/* False: there is no room for one more cause. */
static bool
add_wait(struct lane *lane, struct waits *waits, struct lane_stream *stream, struct lane_pull *pull)
{
    const struct cause cause = find_cause(lane, stream, pull);
    const uint64_t waited_us = lane->now_us - pull->started_us;
    struct wait *wait = waits->items;

    while (wait < waits->items + waits->count &&
           (wait->cause.kind != cause.kind || wait->cause.number != cause.number ||
            strcmp(wait->cause.name, cause.name) != 0))
        wait++;
    if (wait == waits->items + PULL_WAITS_MAX)
        return false;
    if (wait == waits->items + waits->count) {
        *wait = (struct wait){.cause = cause, .stream = stream, .first = pull};
        waits->count++;
    }
    wait->pulls++;
    if (waited_us > wait->longest_us)
        wait->longest_us = waited_us;
    assert(waits->count <= PULL_WAITS_MAX);
    return true;
}

static char *print_wait(struct lane *lane, const struct wait *wait)
{
    const struct text_time longest = text_time_us(wait->longest_us);
    char text[SUMAC_ERROR_TEXT_BYTES];

    describe(lane, wait->stream, wait->first, &wait->cause, text, sizeof text);
    if (wait->pulls == 1)
        return out_text(
            &lane->out, "pull %" PRIu64 " has waited %s for %s", wait->first->request, longest.text,
            text);
    return out_text(
        &lane->out, "%u pulls have waited up to %s for %s", wait->pulls, longest.text, text);
}

void lane_pull_say_waits(struct lane *lane, wire_stats_reply *reply)
{
    struct waits waits = {.count = 0};

    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        if (!lane_has_time(lane)) {
            reply->waits_left_out += stream->pull_count;
            continue;
        }
        LIST_FOREACH(struct lane_pull, pull, &stream->pulls, in_stream) {
            lane->work++;
            if (!lane_pull_is_ready(lane, stream, pull) &&
                lane->now_us >= pull->started_us + WAIT_SAID_US_MIN &&
                !add_wait(lane, &waits, stream, pull))
                reply->waits_left_out++;
        }
    }
    for (uint32_t i = 0; i < waits.count; i++)
        reply->waits[reply->n_waits++] = print_wait(lane, &waits.items[i]);
}
