/* SPDX-License-Identifier: Apache-2.0 */
/* lane_check.c -- is all that a lane keeps consistent? Every list is walked, every counter counted
 * again. */
#include "lane_check.h"

#include <inttypes.h>
#include <string.h>

#include "claims_check.h"
#include "operation_state.h"
#include "part_state.h"
#include "peer_state.h"
#include "pull_state.h"
#include "reports_check.h"
#include "rounds_check.h"
#include "store_check.h"

#define DELETED_MAX 64u /* deleted variables that are told from each other */

/* What is counted on the way. */
struct sums {
    const struct lane *lane;
    struct check *check;
    struct store_sums store;
    uint64_t staged_bytes, chunks, parts, refusals, reports, sessions, streams, held;
    uint64_t pull_bytes, refused_pull_bytes, reader_pull_bytes, common_pull_bytes;
    uint64_t step_contributions;
    uint64_t contributions, lent_contributions, rounds_bytes, beside_bytes;
    uint64_t operations, applying, running, waiting, strangers, readers, views;
    uint64_t users_mix, views_mix; /* of the shards that parts and pulls name */
    const struct variable *deleted[DELETED_MAX];
    uint32_t deleted_count;
};

/* ---- who names a shard ---- */

/* A deleted variable is in no list: it is found by those that still use it. */
static void collective_deleted(struct sums *sums, const struct variable *variable)
{
    for (uint32_t i = 0; i < sums->deleted_count; i++) {
        if (sums->deleted[i] == variable)
            return;
    }
    if (sums->deleted_count < DELETED_MAX)
        sums->deleted[sums->deleted_count++] = variable;
    store_check_variable(&sums->lane->store, variable, &sums->store, sums->check);
}

static void name_shard(struct sums *sums, const struct shard *shard)
{
    sums->users_mix += store_mix(shard);
    if (shard->variable->deleted && sums->deleted_count < DELETED_MAX)
        collective_deleted(sums, shard->variable);
}

/* ---- parts ---- */

static const char *whose(const struct lane_part *part) { return part->session->task; }

/* Keys ascend, and name rows of the shard. Returns the bytes of the indices. */
static uint64_t check_rows(
    struct sums *sums, const struct lane_part *part, const struct run *run,
    const struct shard *shard)
{
    const uint64_t rows_max = shard->variable->placements[shard->placement].rows;
    uint64_t count = 0;

    for (const struct row_piece *rows = run->list->first; rows != NULL; rows = rows->next) {
        for (uint32_t i = 0; i < rows->count; i++) {
            if (update_row_of(rows->keys[i]) >= rows_max ||
                (i > 0 && rows->keys[i - 1] >= rows->keys[i]))
                check_object(
                    sums->check, "push %" PRIu64 " of %s: rows of %s are not in order",
                    part->sequence, whose(part), shard->variable->name);
        }
        count += rows->count;
        if (rows->next == NULL && rows != run->list->last)
            check_object(
                sums->check, "push %" PRIu64 " of %s: a list of rows ends before its last",
                part->sequence, whose(part));
    }
    check_same(sums->check, run->list->row_count, count, "rows of a list", whose(part));
    return count * sizeof(int64_t);
}

/* What is staged is what the runs name, in chunks that are the part's. */
static void check_runs(struct sums *sums, const struct lane_part *part)
{
    uint64_t bytes = 0;
    bool let_go = false; /* of a shard, whose type is not known any more */

    for (uint32_t i = 0; i < part->run_count; i++) {
        const struct run *run = &part->runs[i];
        if (run->entry >= part->entry_count || run->function > part->function_count) {
            check_object(
                sums->check, "push %" PRIu64 " of %s: run %u names what there is not",
                part->sequence, whose(part), i);
            return;
        }
        const struct shard *shard = part->entries[run->entry].shard;
        let_go = let_go || shard == NULL;
        if (shard == NULL)
            continue;
        bytes += run->bytes * lane_part_widens(part, shard);
        if (run->by_rows)
            bytes += check_rows(sums, part, run, shard);
        else if (run->bytes > shard->bytes || run->offset > shard->bytes - run->bytes)
            check_object(
                sums->check, "push %" PRIu64 " of %s: run %u ends past its shard of %s",
                part->sequence, whose(part), i, shard->variable->name);
    }
    if (!let_go && (part->state == PART_RECEIVING || part->state == PART_STAGED ||
                    part->state == PART_APPLYING))
        check_same(
            sums->check, part->received, bytes, "bytes that a part has received", whose(part));
}

static void
check_part(struct sums *sums, const struct lane_session *session, const struct lane_part *part)
{
    const struct chunk *last = NULL;

    sums->parts++;
    sums->refusals += part->refusal != NULL;
    for (const struct chunk *chunk = part->chunks.first; chunk != NULL;
         chunk = chunk->in_part.next) {
        sums->chunks++;
        if (chunk->used > chunk->bytes)
            check_object(
                sums->check, "push %" PRIu64 " of %s: %u bytes of a chunk of %u are used",
                part->sequence, session->task, chunk->used, chunk->bytes);
        last = chunk;
    }
    if (part->session != session || part->chunks.last != last)
        check_object(
            sums->check, "push %" PRIu64 " of %s: its session or its last chunk is another's",
            part->sequence, session->task);
    const bool refused = part->state == PART_REFUSED || part->state == PART_VOID;
    if (refused && (part->run_count > 0 || part->entry_count > 0 || part->room_bytes > 0)) {
        check_object(
            sums->check, "push %" PRIu64 " of %s is refused and not empty", part->sequence,
            session->task);
        return;
    }
    if ((part->refusal != NULL) != (part->state == PART_REFUSED))
        check_object(
            sums->check, "push %" PRIu64 " of %s has a refusal or not, against its state",
            part->sequence, session->task);
    if (part->contribution != NULL) {
        sums->contributions++;
        sums->rounds_bytes += part->contribution->round->room_bytes;
    } else {
        check_runs(sums, part);
    }
    for (uint32_t i = 0; i < part->entry_count; i++) {
        if (part->entries[i].shard != NULL)
            name_shard(sums, part->entries[i].shard);
        else if (part->state != PART_APPLYING)
            check_object(
                sums->check, "push %" PRIu64 " of %s has let go of a shard", part->sequence,
                session->task);
    }
}

/* ---- rounds of collectives ---- */

static void check_contribution(struct sums *sums, const struct contribution *contribution)
{
    sums->contributions++;
    sums->lent_contributions += contribution->holds;
    for (const struct chunk *chunk = contribution->chunks.first; chunk != NULL;
         chunk = chunk->in_part.next)
        sums->chunks++;
}

/* Those that wait for a round that nothing has come to of theirs have no bytes. */
static void check_contributions(struct sums *sums, const struct lane_session *session)
{
    uint32_t count = 0;
    uint64_t after = 0;

    for (const struct contribution *contribution = session->contributions.first;
         contribution != NULL; contribution = contribution->in_session.next, count++) {
        if (contribution->sequence <= after || contribution->sequence > session->mark ||
            !contribution->waits)
            check_object(
                sums->check,
                "%s: a contribution with push %" PRIu64 " is in the list after %" PRIu64,
                session->task, contribution->sequence, after);
        after = contribution->sequence;
        if (!contribution->contributes)
            check_contribution(sums, contribution);
    }
    check_same(sums->check, session->contribution_count, count, "contributions", session->task);
}

static void check_round_list(struct sums *sums, const struct round *first)
{
    for (const struct round *round = first; round != NULL; round = round->in_list.next) {
        sums->rounds_bytes += round->room_bytes;
        for (uint32_t i = 0; i < round->collective->task_count; i++)
            if (round->places[i].contribution != NULL)
                check_contribution(sums, round->places[i].contribution);
    }
}

static void check_rounds(struct sums *sums)
{
    const struct lane *lane = sums->lane;

    rounds_check(&lane->rounds, sums->check);
    check_round_list(sums, lane->rounds.open.first);
    check_round_list(sums, lane->rounds.over.first);
    check_round_list(sums, lane->rounds.kept.first);
    for (const struct contribution *at = lane->parts->put_aside.first; at != NULL;
         at = at->in_session.next)
        if (!at->contributes)
            check_contribution(sums, at);
    for (const struct contribution *at = lane->parts->lent.first; at != NULL;
         at = at->in_session.next) {
        check_contribution(sums, at);
        sums->beside_bytes += at->room_bytes;
    }
    check_same(
        sums->check, lane->rounds.room_bytes, sums->rounds_bytes, "bytes of rounds", "the lane");
    check_same(
        sums->check, lane->rounds.beside_bytes, sums->beside_bytes, "bytes of what is lent of them",
        "the lane");
    check_same(
        sums->check, lane->parts->contributions.used, sums->contributions, "contributions",
        "the lane");
}

/* ---- sessions ---- */

/* In strict order, each once, all after what is applied. Returns what they take of the grant. */
static uint64_t check_parts(struct sums *sums, const struct lane_session *session)
{
    const struct lane_part *before = NULL, *applying = NULL;
    uint64_t bytes = 0, after = session->mark;
    uint32_t count = 0;
    bool found = session->found == NULL;

    for (const struct lane_part *part = session->parts.first; part != NULL;
         part = part->in_session.next, count++) {
        if (part->sequence <= after || part->in_session.prev != before) {
            check_object(
                sums->check, "%s: push %" PRIu64 " is in the list after push %" PRIu64,
                session->task, part->sequence, after);
            return bytes;
        }
        check_part(sums, session, part);
        if (part->state < PART_STAGED || part->state == PART_OVER ||
            (part->state == PART_APPLYING && before != NULL))
            check_object(
                sums->check, "%s: push %" PRIu64 " is in the list in state %d", session->task,
                part->sequence, (int)part->state);
        if (part->state == PART_APPLYING)
            applying = part;
        sums->step_contributions += part->step != 0 && part->state != PART_VOID;
        found = found || session->found == part;
        bytes += part->room_bytes;
        after = part->sequence;
        before = part;
    }
    if (!found)
        check_object(
            sums->check, "%s: the part that was looked for last is not in the list", session->task);
    if (session->applying != applying)
        check_object(
            sums->check, "%s: the push that is being applied is not known as such", session->task);
    check_same(
        sums->check, session->turn == TURN_RUNNING, applying != NULL, "running parts",
        session->task);
    if (session->parts.last != before)
        check_object(sums->check, "%s: the last part is not the last of the list", session->task);
    check_same(sums->check, session->part_count, count, "parts", session->task);
    return bytes;
}

static void check_voided(struct sums *sums, const struct lane_session *session)
{
    uint64_t after = 0;

    if (session->voided_count > session->voided_capacity)
        check_object(sums->check, "%s: more is voided than there is room for", session->task);
    for (uint32_t i = 0; i < session->voided_count; i++) {
        const struct voided *voided = &session->voided[i];
        if (voided->sequence <= after)
            check_object(
                sums->check, "%s: voided push %" PRIu64 " is in the list after push %" PRIu64,
                session->task, voided->sequence, after);
        sums->refusals += voided->refusal != NULL;
        after = voided->sequence;
    }
}

/* What its streams hold of it. */
static void
check_streams_of(struct sums *sums, const struct lane_session *session, uint64_t part_bytes)
{
    uint64_t answer_bytes = 0, pull_bytes = 0;
    uint32_t places = 0;
    bool push_stream = session->push_stream == NULL;

    for (const struct lane_stream *stream = sums->lane->streams.first; stream != NULL;
         stream = stream->in_lane.next) {
        if (stream->session != session)
            continue;
        places += stream->place == PLACE_SESSION;
        push_stream |= stream == session->push_stream && stream->kind == LANE_STREAM_PUSH &&
                       stream->state != STREAM_ENDED;
        if (stream->receiving != NULL) {
            check_part(sums, session, stream->receiving);
            if (stream->receiving->state == PART_NEW || stream->receiving->state >= PART_STAGED)
                check_object(
                    sums->check, "%s: push %" PRIu64 " is being received in state %d",
                    session->task, stream->receiving->sequence, (int)stream->receiving->state);
            part_bytes += stream->receiving->room_bytes;
        }
        for (const struct answer *answer = stream->answers.first; answer != NULL;
             answer = answer->in_stream.next)
            answer_bytes += answer->pooled ? 0 : answer->room_bytes;
        for (const struct lane_pull *at = stream->pulls.first; at != NULL; at = at->in_stream.next)
            pull_bytes += at->refused_room || session->closed ? 0 : at->room_bytes;
    }
    if (!push_stream)
        check_object(sums->check, "%s: its push stream is gone, or another's", session->task);
    check_same(sums->check, session->stream_count, places, "streams", session->task);
    check_same(sums->check, session->staged_bytes, part_bytes, "staged bytes", session->task);
    check_same(sums->check, session->answer_bytes, answer_bytes, "bytes of answers", session->task);
    check_same(sums->check, session->pull_bytes, pull_bytes, "bytes of pulls", session->task);
    const uint64_t share = sums->lane->pulls->bounds.share_max;
    sums->common_pull_bytes += pull_bytes > share ? pull_bytes - share : 0;
    sums->staged_bytes += part_bytes + answer_bytes;
}

static void check_session(struct sums *sums, const struct lane_session *session, bool closed)
{
    sums->sessions++;
    sums->waiting += session->turn >= TURN_READY;
    sums->running += session->applying != NULL;
    if (session->closed != closed || (closed && !session->closing))
        check_object(
            sums->check, "%s is among the %s sessions and is not", session->task,
            closed ? "closed" : "open");
    if (session->acked_through > session->mark || session->clock > session->clock_said)
        check_object(
            sums->check,
            "%s: acked through %" PRIu64 " at mark %" PRIu64 ", at clock %" PRIu64 " of %" PRIu64
            " said",
            session->task, session->acked_through, session->mark, session->clock,
            session->clock_said);
    for (const struct lane_session *other = session->in_lane.next; other != NULL && !closed;
         other = other->in_lane.next) {
        if (memcmp(other->id, session->id, sizeof session->id) == 0)
            check_object(sums->check, "%s and %s have one id", session->task, other->task);
    }
    const uint64_t bytes = check_parts(sums, session);
    check_voided(sums, session);
    check_contributions(sums, session);
    check_streams_of(sums, session, bytes);
}

/* The clock that pulls wait for, and how many members are at it. */
static void check_slowest(struct sums *sums)
{
    const struct lane *lane = sums->lane;
    uint64_t slowest = UINT64_MAX, count = 0;

    for (const struct lane_session *session = lane->sessions.first; session != NULL;
         session = session->in_lane.next) {
        if ((int)session->role != WIRE_ROLE_MEMBER || session->clock > slowest)
            continue;
        count = session->clock < slowest ? 1 : count + 1;
        slowest = session->clock;
    }
    check_same(sums->check, lane->peers->slowest_clock, slowest, "the slowest clock", "the lane");
    check_same(sums->check, lane->peers->slowest_count, count, "slowest members", "the lane");
}

/* By step, then in worker order; every one that is staged, and no other. */
static uint64_t check_step_place(struct sums *sums, uint32_t place)
{
    const struct lane_part *before = NULL;
    uint64_t listed = 0;

    for (const struct lane_part *part = sums->lane->step_places[place].contributions.first;
         part != NULL && listed <= sums->parts; part = part->among_contributions.next) {
        listed++;
        if (part->step == 0 || part->step % STEP_PLACES != place ||
            part->among_contributions.prev != before ||
            (before != NULL && before->step > part->step) ||
            (part->state != PART_STAGED && part->state != PART_APPLYING))
            check_object(
                sums->check, "push %" PRIu64 " of %s is among the contributions in state %d",
                part->sequence, whose(part), (int)part->state);
        before = part;
    }
    return listed;
}

static void check_step_contributions(struct sums *sums)
{
    uint64_t listed = 0;

    for (uint32_t place = 0; place < STEP_PLACES; place++)
        listed += check_step_place(sums, place);
    check_same(sums->check, listed, sums->step_contributions, "contributions", "the lane");
}

static void check_sessions(struct sums *sums)
{
    const struct lane *lane = sums->lane;
    uint64_t closed = 0, waiting = 0;

    for (const struct lane_session *session = lane->sessions.first;
         session != NULL && sums->sessions <= lane->peers->sessions.used;
         session = session->in_lane.next)
        check_session(sums, session, false);
    for (const struct lane_session *session = lane->closed_sessions.first;
         session != NULL && sums->sessions <= lane->peers->sessions.used;
         session = session->in_lane.next) {
        check_session(sums, session, true);
        closed++;
    }
    for (uint64_t turn = TURN_READY; turn < TURN_STATES; turn++)
        for (const struct lane_session *session = lane->turns->lines[turn].first;
             session != NULL && waiting++ <= sums->sessions; session = session->in_line.next)
            check_same(sums->check, session->turn, turn, "the line", session->task);
    check_slowest(sums);
    check_step_contributions(sums);
    check_same(sums->check, lane->peers->closed_count, closed, "closed sessions", "the lane");
    check_same(sums->check, waiting, sums->waiting, "sessions in line", "the lane");
    check_same(sums->check, lane->peers->sessions.used, sums->sessions, "sessions", "the lane");
}

/* ---- streams ---- */

static bool is_behind(const struct lane_session *first, const struct lane_session *session)
{
    while (first != NULL && first != session)
        first = first->in_lane.next;
    return first != NULL;
}

/* `reader`: the room that it takes is one's without a session. */
static void check_pull(struct sums *sums, const struct lane_pull *pull, bool reader)
{
    sums->pull_bytes += pull->room_bytes;
    sums->refused_pull_bytes += pull->refused_room ? pull->room_bytes : 0;
    sums->reader_pull_bytes += !pull->refused_room && reader ? pull->room_bytes : 0;
    sums->views += pull->active && !pull->view.ended;
    if (pull->piece_count > pull->piece_capacity || pull->next_piece > pull->piece_count)
        check_object(
            sums->check, "pull %" PRIu64 " is at piece %u of %u, of %u at most", pull->request,
            pull->next_piece, pull->piece_count, pull->piece_capacity);
    if (lane_pull_is_being_read(pull) &&
        (pull->kept_count > pull->piece_capacity || pull->active || pull->fixed))
        check_object(
            sums->check, "pull %" PRIu64 " goes on before its %u pieces are read", pull->request,
            pull->kept_count);
    for (uint32_t i = 0; i < pull->piece_count; i++) {
        const struct shard *shard = pull->pieces[i].shard;
        name_shard(sums, shard);
        sums->views_mix += pull->active ? store_mix(shard) : 0;
    }
}

/* Lists of what the stream has to say. */
static void check_stream_lists(struct sums *sums, const struct lane_stream *stream)
{
    const struct answer *last_answer = NULL;
    const struct lane_pull *last_pull = NULL;
    const struct report *last_report = NULL;
    uint32_t answers = 0, patient = 0, pulls = 0, active = 0;
    bool passed = true;

    for (const struct answer *answer = stream->answers.first; answer != NULL;
         last_answer = answer, answer = answer->in_stream.next, answers++)
        patient += answer->patient;
    for (const struct lane_pull *pull = stream->pulls.first; pull != NULL;
         pull = pull->in_stream.next, pulls++) {
        if (pull->in_stream.prev != last_pull || pulls > stream->pull_count)
            break;
        check_pull(sums, pull, stream->session == NULL || stream->session->closed);
        active += pull->active;
        passed = passed && pull != stream->unlooked;
        if (passed && !sums->lane->turns_taken && stream->state != STREAM_ENDED &&
            lane_pull_is_to_be_said(sums->lane, stream, pull))
            check_object(
                sums->check, "pull %" PRIu64 " of stream %" PRIu64 " is to be said, and passed",
                pull->request, stream->id);
        last_pull = pull;
    }
    for (const struct report *report = stream->reports.first; report != NULL;
         report = report->in_stream.next) {
        sums->reports++;
        last_report = report;
    }
    if (stream->answers.last != last_answer || stream->pulls.last != last_pull ||
        stream->reports.last != last_report)
        check_object(
            sums->check,
            "stream %" PRIu64 ": its last answer, pull or report is not the last of the list",
            stream->id);
    check_same(sums->check, stream->answer_count, answers, "answers", "a stream");
    check_same(sums->check, stream->patient_count, patient, "patient answers", "a stream");
    check_same(sums->check, stream->pull_count, pulls, "pulls", "a stream");
    check_same(sums->check, stream->active_pulls, active, "pulls under way", "a stream");
}

static void check_stream(struct sums *sums, const struct lane_stream *stream)
{
    const struct lane *lane = sums->lane;
    const struct lane_session *session = stream->session;
    const bool ended = stream->state == STREAM_ENDED;

    sums->streams++;
    sums->strangers += stream->place == PLACE_STRANGER;
    sums->readers += stream->place == PLACE_READER;
    if (lane_stream_find(lane, stream->id) != stream)
        check_object(sums->check, "stream %" PRIu64 " is not found by its number", stream->id);
    if (ended != (stream->place == PLACE_NONE))
        check_object(
            sums->check, "stream %" PRIu64 " is %s", stream->id,
            ended ? "at its end and has a place" : "open and has no place");
    if (ended && (stream->receiving != NULL || stream->answers.first != NULL ||
                  stream->pulls.first != NULL || stream->reports.first != NULL || stream->due != 0))
        check_object(
            sums->check, "stream %" PRIu64 " is at its end and has something to say", stream->id);
    if (stream->state != STREAM_GREETED && !ended &&
        (session != NULL || stream->receiving != NULL || stream->pulls.first != NULL))
        check_object(
            sums->check, "stream %" PRIu64 " has said no hello that was taken, and is served",
            stream->id);
    const bool tick_due = stream->patient_count > 0 && lane->pulls_due_us <= lane->now_us;
    if ((stream->due != 0 || stream->answers.first != NULL) && stream->writable &&
        !stream->attended && stream->kind != LANE_STREAM_PEER && !tick_due &&
        lane->last_record <= lane->recorded && !lane_pull_holds_answers(lane, stream))
        check_object(
            sums->check, "stream %" PRIu64 " has something to say, and nobody looks after it",
            stream->id);
    if (session != NULL && !is_behind(lane->sessions.first, session) &&
        !is_behind(lane->closed_sessions.first, session))
        check_object(
            sums->check, "stream %" PRIu64 " is of a session that is forgotten", stream->id);
    if (stream->place == PLACE_SESSION && (session == NULL || session->closed))
        check_object(
            sums->check, "stream %" PRIu64 " has a place of a session that is not open",
            stream->id);
    check_stream_lists(sums, stream);
}

/* Those that are to be looked after are streams of the lane, each once. */
static void check_attended(struct sums *sums)
{
    uint64_t marked = 0, listed = 0;

    for (const struct lane_stream *stream = sums->lane->streams.first; stream != NULL;
         stream = stream->in_lane.next)
        marked += stream->attended;
    for (const struct lane_stream *stream = sums->lane->attended.first;
         stream != NULL && listed <= marked; stream = stream->among_attended.next) {
        if (!stream->attended)
            check_object(
                sums->check, "stream %" PRIu64 " is attended and does not say so", stream->id);
        listed++;
    }
    check_same(sums->check, marked, listed, "attended streams", "the lane");
}

static void check_strangers(struct sums *sums)
{
    const struct lane_stream *before = NULL;
    uint64_t count = 0;

    for (const struct lane_stream *stream = sums->lane->peers->strangers.first;
         stream != NULL && count <= sums->strangers; stream = stream->among_strangers.next) {
        if (stream->among_strangers.prev != before || stream->place != PLACE_STRANGER) {
            check_object(sums->check, "the list of streams of strangers is broken");
            return;
        }
        if (before != NULL && before->stranger_since_us > stream->stranger_since_us)
            check_object(sums->check, "the list of streams of strangers is not by age");
        count++;
        before = stream;
    }
    if (sums->lane->peers->strangers.last != before)
        check_object(sums->check, "the last stranger's stream is not the last of the list");
    check_same(
        sums->check, sums->lane->peers->stranger_count, count, "streams of strangers", "the lane");
    check_same(sums->check, sums->strangers, count, "places of strangers", "the lane");
}

static void check_streams(struct sums *sums)
{
    const struct lane *lane = sums->lane;
    const struct lane_stream *before = NULL;
    bool controller = lane->controller == NULL;

    for (const struct lane_stream *stream = lane->streams.first; stream != NULL;
         stream = stream->in_lane.next) {
        if (stream->in_lane.prev != before) {
            check_object(sums->check, "the list of streams is broken");
            return;
        }
        check_stream(sums, stream);
        controller |= stream == lane->controller && stream->place == PLACE_CONTROLLER;
        before = stream;
    }
    if (!controller)
        check_object(sums->check, "the stream that orders come on is gone, or has not its place");
    for (const struct lane_pull *pull = lane->pulls_leaving.first; pull != NULL;
         pull = pull->in_stream.next)
        check_pull(sums, pull, true);
    check_attended(sums);
    check_strangers(sums);
    check_same(
        sums->check, lane->peers->reader_streams, sums->readers, "streams of readers", "the lane");
    check_same(
        sums->check, lane->peers->by_id.count, sums->streams, "streams by number", "the lane");
    check_same(sums->check, lane->peers->streams.used, sums->streams, "streams", "the lane");
}

/* ---- vector work ---- */

static bool has_shard(const struct operation *operation, const struct shard *shard)
{
    for (const struct lane_part *part = operation->parts.first; part != NULL;
         part = part->in_operation.next) {
        for (uint32_t i = 0; i < part->entry_count; i++) {
            if (part->entries[i].shard == shard)
                return true;
        }
    }
    return false;
}

static bool is_ending(const struct operation *operation)
{
    return operation->state == OPERATION_RAISING || operation->state == OPERATION_FREEING;
}

/* Those before the place that it is at have been let go, and no other. */
static void
check_entries(struct sums *sums, const struct operation *operation, const struct lane_part *part)
{
    const bool frees = operation->state == OPERATION_FREEING;
    bool whole = frees && operation->part == NULL; /* all of its shards */

    for (const struct lane_part *at = part->in_operation.next; at != NULL && frees;
         at = at->in_operation.next)
        whole = whole || at == operation->part;

    for (uint32_t i = 0; i < part->entry_count; i++) {
        const struct shard *shard = part->entries[i].shard;
        const bool passed = frees && part == operation->part && i < operation->entry;
        if ((shard == NULL) != (whole || passed))
            check_object(
                sums->check, "%s: a shard of what is being applied was let go, or was not",
                whose(part));
        else if (shard != NULL && work_of(part->entries[i].shard)->busy.operation != operation)
            check_object(
                sums->check, "%s: the shard of %s is being updated and not busy", whose(part),
                shard->variable->name);
    }
}

/* Every shard of it is busy for it. */
static void check_operation(struct sums *sums, const struct operation *operation)
{
    if (operation->state != OPERATION_OUT && operation->state != OPERATION_STALLED &&
        !is_ending(operation))
        check_object(
            sums->check, "operation %" PRIu64 " is in the list in state %d", operation->position,
            (int)operation->state);
    for (const struct lane_part *part = operation->parts.first; part != NULL;
         part = part->in_operation.next) {
        sums->applying++;
        if (part->session->applying != part) /* check_parts compares its state */
            check_object(
                sums->check, "%s: its vector work is not of the push that is being applied",
                whose(part));
        check_entries(sums, operation, part);
    }
}

static void check_operations(struct sums *sums)
{
    const struct lane *lane = sums->lane;
    uint64_t stalled = 0, ending = 0;

    for (const struct operation *operation = lane->turns->operations.first;
         operation != NULL && sums->operations <= sums->sessions;
         operation = operation->in_lane.next) {
        sums->operations++;
        stalled += operation->state == OPERATION_STALLED;
        ending += is_ending(operation);
        sums->held += operation->held_count;
        check_operation(sums, operation);
    }
    check_same(
        sums->check, lane->turns->stalled, stalled, "operations that are stalled", "the lane");
    check_same(sums->check, lane->turns->ending, ending, "operations that are ending", "the lane");
    check_same(
        sums->check, sums->running, sums->applying, "pushes that are being applied", "the lane");
}

/* A shard is busy while vector work is out for it, and no longer. */
static void check_busy(struct sums *sums, const struct shard *shard)
{
    const struct operation *operation = sums->lane->turns->operations.first;

    if (!is_busy(shard))
        return;
    while (operation != NULL && !has_shard(operation, shard))
        operation = operation->in_lane.next;
    if (operation == NULL)
        check_object(
            sums->check, "the shard of %s is busy, and nothing works on it", shard->variable->name);
}

/* ---- all together ---- */

static void check_store(struct sums *sums)
{
    const struct lane *lane = sums->lane;

    store_check(&lane->store, &sums->store, sums->check);
    for (const struct variable *variable = lane->store.variables.first; variable != NULL;
         variable = variable->in_store.next) {
        for (uint32_t i = 0; i < variable->made_count; i++)
            check_busy(sums, &variable->shards[i]);
    }
    check_same(sums->check, sums->store.views, sums->views, "open views of pulls", "the lane");
    if (sums->deleted_count == DELETED_MAX) /* some may have been counted twice, or not at all */
        return;
    store_check_sums(&lane->store, &sums->store, sums->check);
    if (sums->store.users_mix != sums->users_mix)
        check_object(sums->check, "a shard has other users than the parts and pulls that name it");
    if (sums->store.views_mix != sums->views_mix)
        check_object(sums->check, "a shard has other views than the long pulls that read it");
    check_same(
        sums->check, lane->pulls->holds.used + sums->held,
        sums->store.lent + sums->lent_contributions, "spans that are lent", "the lane");
}

static void check_pools(struct sums *sums)
{
    const struct lane *lane = sums->lane;

    claims_check(lane, sums->staged_bytes, sums->check);
    check_same(sums->check, lane->pull_bytes, sums->pull_bytes, "bytes of pulls", "the lane");
    check_same(
        sums->check, lane->pulls->refused_bytes, sums->refused_pull_bytes, "bytes of refused pulls",
        "the lane");
    check_same(
        sums->check, lane->pulls->reader_bytes, sums->reader_pull_bytes, "bytes of readers' pulls",
        "the lane");
    check_same(
        sums->check, lane->pulls->common_bytes, sums->common_pull_bytes,
        "bytes of pulls beyond the shares", "the lane");
    check_same(sums->check, lane->parts->parts.used, sums->parts, "parts", "the lane");
    for (const struct chunk *at = lane->parts->recorded.first; at != NULL; at = at->in_part.next)
        sums->chunks++;
    check_same(sums->check, lane->parts->chunks.used, sums->chunks, "chunks", "the lane");
    check_same(sums->check, lane->parts->refusals.used, sums->refusals, "refusals", "the lane");
    check_same(sums->check, lane->peers->reports.used, sums->reports, "reports", "the lane");
}

void lane_check(const struct lane *lane, struct check *check)
{
    struct sums sums = {.lane = lane, .check = check};

    if (lane->config.broken != 0)
        return;
    check_sessions(&sums);
    check_streams(&sums);
    check_operations(&sums);
    check_rounds(&sums);
    reports_check(lane, check);
    check_store(&sums);
    check_pools(&sums);
}

uint64_t lane_lent(const struct lane *lane) { return lane->pulls->holds.used; }
uint64_t lane_old_rows(const struct lane *lane) { return lane->store.old_row_count; }
uint32_t lane_rounds(const struct lane *lane)
{
    return lane->parts->put_aside.first != NULL ? 0 : lane->rounds.count;
}

uint64_t lane_work(const struct lane *lane, uint64_t most)
{
    const uint64_t work = lane->work + lane->arena.bytes_used / WORK_ARENA_BYTES;

    return work > most ? work : most;
}
