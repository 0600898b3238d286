/* SPDX-License-Identifier: Apache-2.0 */
/* lane_check.c -- the check of a lane's consistency objects to each wrong field of its sessions,
 * parts, streams, pulls and operations; and that of a ps to a wrong lane, controller or message. */
#include <math.h>

#include "unit.h"
#include "corrupt.h"
#include "controller_state.h"
#include "lane_talk.h"
#include "operation_state.h"
#include "part_state.h"
#include "peer_state.h"
#include "ps_core_check.h"
#include "ps_core_state.h"
#include "pull_state.h"

#define LARGE 5u /* 40 float32: five blocks, several messages */
#define SMALL 6u
#define TABLE 7u /* 20 rows of 3 float32 */

#define wrong(place, value, words) corrupt(lane_check(lane, &said), place, value, words)

/* A field that may have any value, while others have been made wrong. */
#define found(place, words) wrong(place, place, words)

static void expect_right(const struct lane *lane)
{
    struct check check = {.text = ""};

    lane_check(lane, &check);
    assert_string_equal(check.text, "");
}

static struct talk_part part_of(uint64_t sequence, uint64_t shard, const float *values)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = sequence - 1,
        .shard = shard,
        .shards = 1,
        .values = values,
        .count = shard == LARGE ? 40 : 4};
}

static void push(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t shard, float value)
{
    float values[40];

    for (uint32_t i = 0; i < 40; i++)
        values[i] = value;
    const struct talk_part part = part_of(sequence, shard, values);
    talk_part(talk, stream, &part);
}

/* Rows 2 and 9 of the table. */
static void push_rows(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    const struct {
        int64_t rows[2];
        float values[6];
    } payload = {{2, 9}, {1, 1, 1, 1, 1, 1}};
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&indices, &values};
    wire_part part = WIRE_PART_INIT;
    wire_part *parts[] = {&part};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    indices.shard_id = values.shard_id = TABLE;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.bytes = sizeof payload.rows;
    values.bytes = sizeof payload.values;
    part.sequence = sequence;
    part.previous = sequence - 1;
    part.first = part.last = true;
    part.bytes = sizeof payload;
    part.weight = 1;
    part.pieces = pieces;
    part.n_pieces = 2;
    request.parts = parts;
    request.n_parts = 1;
    talk_push(talk, stream, &request, &payload, sizeof payload);
}

/* Of session 1 pushes 2 and 3 are voided, 4 and 5 are staged, 6 is refused, 7 is received. Session
 * 3 is closed. */
static struct lane *crowd(struct talk *talk)
{
    const struct lane_config config = talk_config();

    talk_start(talk, &config);
    for (uint8_t session = 1; session <= 3; session++)
        talk_open(talk, session);
    talk_variable(talk, LARGE, 40, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SMALL, 4, UPDATE_ASSIGN_ADD);
    talk_add(talk, TABLE, 20, 3, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    (void)talk_push_stream(talk, 3, 1);
    talk_close(talk, 3);
    talk_decide(talk, 3, 0, 0);
    push(talk, stream, 1, SMALL, 1);
    push(talk, stream, 2, SMALL, NAN);
    push(talk, stream, 3, SMALL, NAN);
    for (uint64_t sequence = 1; sequence <= 3; sequence++)
        talk_commit(talk, stream, sequence, sequence == 1 ? 0 : sequence, 0);
    push(talk, stream, 4, SMALL, 1);
    push_rows(talk, stream, 5);
    push(talk, stream, 6, SMALL, NAN);
    const struct talk_part last = part_of(7, SMALL, (float[]){1, 1, 1, 1});
    talk_part_step(talk, stream, &last, 0, 2);
    struct lane_session *session = talk->lane->sessions.first;
    assert_int_equal(session->voided_count, 3);
    assert_int_equal(session->part_count, 3);
    assert_int_equal(talk->lane->peers->closed_count, 1);
    assert_non_null(session->push_stream->receiving);
    return talk->lane;
}

TALK_TEST(a_wrong_run_is_found)
{
    struct lane *lane = crowd(talk);
    struct lane_part *part = lane->sessions.first->parts.first;
    struct row_list *list = part->in_session.next->runs[0].list;

    expect_right(lane);

    wrong(part->runs[0].entry, 1, "push 4 of worker 1: run 0 names what there is not");
    wrong(part->runs[0].function, 1, "push 4 of worker 1: run 0 names what there is not");
    wrong(part->runs[0].bytes, 20, "push 4 of worker 1: run 0 ends past its shard of v6");
    wrong(part->runs[0].offset, 4, "push 4 of worker 1: run 0 ends past its shard of v6");
    wrong(part->received, 1, "bytes that a part has received of worker 1");
    wrong(list->first->keys[1], list->first->keys[0], "push 5 of worker 1: rows of v7 are not in");
    wrong(list->first->keys[1], UINT64_MAX, "push 5 of worker 1: rows of v7 are not in order");
    wrong(list->last, NULL, "push 5 of worker 1: a list of rows ends before its last");
    wrong(list->row_count, 1, "rows of a list of worker 1");
    expect_right(lane);
}

TALK_TEST(a_wrong_part_is_found)
{
    struct lane *lane = crowd(talk);
    struct lane_session *session = lane->sessions.first;
    struct lane_part *part = session->parts.first, *refused = session->parts.last;
    struct shard *shard = part->entries[0].shard;

    expect_right(lane);

    wrong(part->chunks.first->used, 1u << 30, "push 4 of worker 1: 1073741824 bytes of a chunk");
    wrong(
        part->session, session->in_lane.next, "push 4 of worker 1: its session or its last chunk");
    wrong(part->chunks.last, NULL, "push 4 of worker 1: its session or its last chunk");
    wrong(refused->run_count, 1, "push 6 of worker 1 is refused and not empty");
    wrong(refused->entry_count, 1, "push 6 of worker 1 is refused and not empty");
    wrong(refused->room_bytes, 1, "push 6 of worker 1 is refused and not empty");
    wrong(refused->state, PART_REFUSED, "push 6 of worker 1 has a refusal or not");
    wrong(part->refusal, &(struct refusal){0}, "push 4 of worker 1 has a refusal or not");
    wrong(part->entries[0].shard, NULL, "push 4 of worker 1 has let go of a shard");
    wrong(part->state, PART_DUPLICATE, "worker 1: push 4 is in the list in state");
    wrong(part->state, PART_OVER, "worker 1: push 4 is in the list in state");
    wrong(part->in_session.next->state, PART_APPLYING, "worker 1: push 5 is in the list in state");
    wrong(shard->users, 9, "a shard has other users than the parts and pulls that name it");
    expect_right(lane);
}

TALK_TEST(a_wrong_list_of_parts_is_found)
{
    struct lane *lane = crowd(talk);
    struct lane_session *session = lane->sessions.first;
    struct lane_part *part = session->parts.first, *receiving = session->push_stream->receiving;

    expect_right(lane);

    wrong(part->sequence, session->mark, "worker 1: push 3 is in the list after push 3");
    wrong(part->in_session.prev, part, "worker 1: push 4 is in the list after push 3");
    wrong(session->found, receiving, "worker 1: the part that was looked for last is not in");
    wrong(session->applying, part, "worker 1: the push that is being applied is not known");
    wrong(session->parts.last, part, "worker 1: the last part is not the last of the list");
    wrong(session->part_count, 2, "parts of worker 1");
    wrong(receiving->state, PART_NEW, "worker 1: push 7 is being received in state");
    wrong(receiving->state, PART_STAGED, "worker 1: push 7 is being received in state");
    expect_right(lane);
}

TALK_TEST(a_wrong_session_is_found)
{
    struct lane *lane = crowd(talk);
    struct lane_session *session = lane->sessions.first, *other = session->in_lane.next;
    struct lane_session *closed = lane->closed_sessions.first;

    expect_right(lane);

    wrong(session->closed, true, "worker 1 is among the open sessions and is not");
    wrong(closed->closed, false, "worker 3 is among the closed sessions and is not");
    wrong(closed->closing, false, "worker 3 is among the closed sessions and is not");
    wrong(session->acked_through, 4, "worker 1: acked through 4 at mark 3");
    wrong(session->clock, 1, "worker 1: acked through 0 at mark 3, at clock 1 of 0 said");
    memset(other->id, 1, sizeof other->id);
    found(other->index, "worker 1 and worker 2 have one id");
    memset(other->id, 2, sizeof other->id);
    wrong(session->voided_capacity, 1, "worker 1: more is voided than there is room for");
    wrong(session->voided[1].sequence, 2, "worker 1: voided push 2 is in the list after push 2");
    wrong(session->push_stream, lane->streams.last, "worker 1: its push stream is gone");
    wrong(session->push_stream->kind, LANE_STREAM_PULL, "worker 1: its push stream is gone");
    wrong(session->push_stream->state, STREAM_ENDED, "worker 1: its push stream is gone");
    wrong(session->stream_count, 2, "streams of worker 1");
    wrong(session->staged_bytes, 1, "staged bytes of worker 1");
    wrong(session->answer_bytes, 1, "bytes of answers of worker 1");
    wrong(session->pull_bytes, 1, "bytes of pulls of worker 1");
    wrong(lane->peers->slowest_clock, 1, "the slowest clock of the lane");
    wrong(lane->peers->slowest_count, 1, "slowest members of the lane");
    wrong(lane->peers->closed_count, 2, "closed sessions of the lane");
    wrong(session->turn, TURN_READY, "sessions in line of the lane");
    wrong(session->turn, TURN_RUNNING, "running parts of worker 1");
    wrong(lane->turns->lines[TURN_BLOCKED].first, session, "the line of worker 1");
    wrong(lane->peers->sessions.used, 4, "sessions of the lane");
    expect_right(lane);
}

TALK_TEST(a_wrong_sum_is_found)
{
    struct lane *lane = crowd(talk);

    expect_right(lane);

    wrong(lane->pull_bytes, 1, "bytes of pulls of the lane");
    wrong(lane->pulls->refused_bytes, 1, "bytes of refused pulls of the lane");
    wrong(lane->pulls->reader_bytes, 1, "bytes of readers' pulls of the lane");
    wrong(lane->pulls->common_bytes, 1, "bytes of pulls beyond the shares of the lane");
    wrong(lane->parts->parts.used, 1, "parts of the lane");
    wrong(lane->parts->chunks.used, 99, "chunks of the lane");
    wrong(lane->parts->refusals.used, 99, "refusals of the lane");
    wrong(lane->peers->reports.used, 99, "reports of the lane");
    wrong(lane->store.state_bytes, 1, "bytes of state of the store");
    wrong(lane->store.view_count, 1, "views of the store");
    wrong(lane->pulls->holds.used, 1, "spans that are lent of the lane");
    expect_right(lane);
}

TALK_TEST(a_deleted_variable_of_a_part_is_checked)
{
    struct lane *lane = crowd(talk);
    struct variable *variable = lane->sessions.first->parts.first->entries[0].shard->variable;

    talk_delete(talk, SMALL);
    assert_true(variable->deleted);
    expect_right(lane);

    wrong(variable->own_bytes, 1, "bytes beside the state of the store");
    wrong(lane->store.deleted_count, 2, "deleted variables in use of the store");
    expect_right(lane);
}

/* Of ps 0, of session 1 two, of a reader, two of strangers, and that of the closed session 3. */
struct streams {
    struct lane_stream *push, *pull, *reader, *older, *younger, *closed;
};

static struct streams open_streams(struct talk *talk)
{
    struct lane *lane = crowd(talk);
    struct streams made;

    made.push = lane->sessions.first->push_stream;
    made.pull = lane_stream_find(lane, talk_pull_stream(talk, 1));
    made.reader = lane_stream_find(lane, talk_pull_stream(talk, 0));
    made.older = lane_stream_find(lane, talk_stream(talk, LANE_STREAM_PUSH));
    talk->now_us += 1000;
    made.younger = lane_stream_find(lane, talk_stream(talk, LANE_STREAM_PULL));
    made.closed = lane->streams.first;
    while (made.closed->session != lane->closed_sessions.first)
        made.closed = made.closed->in_lane.next;
    return made;
}

TALK_TEST(a_wrong_stream_is_found)
{
    struct streams streams = open_streams(talk);
    struct lane *lane = talk->lane;
    struct lane_session forgotten = *lane->sessions.first;
    struct lane_stream *stranger = streams.younger;

    expect_right(lane);
    assert_int_equal(stranger->state, STREAM_SILENT);

    wrong(stranger->id, 99, "stream 99 is not found by its number");
    wrong(stranger->state, STREAM_ENDED, "is at its end and has a place");
    wrong(stranger->place, PLACE_NONE, "is open and has no place");
    wrong(stranger->session, lane->sessions.first, "has said no hello that was taken");
    wrong(stranger->receiving, streams.push->receiving, "has said no hello that was taken");
    lane->turns_taken = true; /* no pull is looked at */
    wrong(stranger->pulls.first, &(struct lane_pull){0}, "has said no hello that was taken");
    lane->turns_taken = false;
    wrong(streams.reader->session, &forgotten, "is of a session that is forgotten");
    wrong(streams.reader->place, PLACE_SESSION, "has a place of a session that is not open");
    streams.closed->session->stream_count = 1;
    wrong(streams.closed->place, PLACE_SESSION, "has a place of a session that is not open");
    streams.closed->session->stream_count = 0;
    wrong(streams.older->due, DUE_CLOSED, "has something to say");
    wrong(stranger->in_lane.prev, stranger, "the list of streams is broken");
    wrong(lane->controller, &(struct lane_stream){0}, "the stream that orders come on is gone");
    wrong(lane->controller, streams.reader, "the stream that orders come on is gone");
    wrong(lane->peers->reader_streams, 2, "streams of readers of the lane");
    wrong(lane->peers->by_id.count, 2, "streams by number of the lane");
    wrong(lane->peers->streams.used, 2, "streams of the lane");
    wrong(stranger->attended, true, "attended streams of the lane");
    wrong(lane->attended.first, stranger, "is attended and does not say so");
    expect_right(lane);
}

TALK_TEST(an_ended_stream_that_has_something_to_say_is_found)
{
    struct streams streams = open_streams(talk);
    struct lane *lane = talk->lane;
    struct lane_stream *stranger = streams.younger;

    expect_right(lane);

    stranger->place = PLACE_NONE;
    stranger->state = STREAM_ENDED;
    wrong(stranger->receiving, streams.push->receiving, "is at its end and has something to say");
    wrong(stranger->answers.first, &(struct answer){0}, "is at its end and has something to say");
    wrong(stranger->pulls.first, &(struct lane_pull){0}, "is at its end and has something to say");
    wrong(stranger->reports.first, &(struct report){0}, "is at its end and has something to say");
    wrong(stranger->due, DUE_CLOSED, "is at its end and has something to say");
    stranger->place = PLACE_STRANGER;
    stranger->state = STREAM_SILENT;
    expect_right(lane);
}

TALK_TEST(a_wrong_stream_of_a_stranger_is_found)
{
    (void)open_streams(talk);
    struct lane *lane = talk->lane;
    struct peers *peers = lane->peers;
    struct lane_stream *last = peers->strangers.last, *before = last->among_strangers.prev;

    expect_right(lane);

    wrong(last->among_strangers.prev, NULL, "the list of streams of strangers is broken");
    wrong(last->place, PLACE_CONTROLLER, "the list of streams of strangers is broken");
    wrong(last->stranger_since_us, 0, "the list of streams of strangers is not by age");
    wrong(peers->strangers.last, before, "the last stranger's stream is not the last");
    wrong(peers->stranger_count, 1, "streams of strangers of the lane");
    peers->stranger_count--;
    peers->strangers.last = before;
    wrong(before->among_strangers.next, NULL, "places of strangers of the lane");
    peers->strangers.last = last;
    peers->stranger_count++;
    expect_right(lane);
}

/* A long pull is under way, whose reader has stopped. Another one waits for push 9. */
static struct streams pull_long(struct talk *talk)
{
    const struct streams streams = open_streams(talk);

    talk->deaf = streams.pull->id;
    talk_pull(talk, streams.pull->id, 1, LARGE, 1, 0);
    talk_pull(talk, streams.pull->id, 2, SMALL, 1, 9);
    assert_int_equal(streams.pull->active_pulls, 1);
    assert_int_equal(streams.pull->pull_count, 2);
    return streams;
}

TALK_TEST(a_wrong_pull_is_found)
{
    struct streams streams = pull_long(talk);
    struct lane *lane = talk->lane;
    struct lane_pull *first = streams.pull->pulls.first, *second = first->in_stream.next;
    struct shard *shard = first->pieces[0].shard;

    expect_right(lane);

    wrong(first->piece_capacity, 0, "pull 1 is at piece 0 of 1, of 0 at most");
    wrong(first->next_piece, 2, "pull 1 is at piece 2 of 1, of 1 at most");
    wrong(second->kept_count, 2, "pull 2 goes on before its 2 pieces are read");
    second->piece_capacity = 2;
    second->kept_count = 2;
    wrong(second->active, true, "pull 2 goes on before its 2 pieces are read");
    wrong(second->fixed, true, "pull 2 goes on before its 2 pieces are read");
    second->piece_capacity = 1;
    second->kept_count = 0;
    wrong(first->room_bytes, 1, "bytes of pulls of worker 1");
    struct lane_pull leaving = {.next_piece = 1};
    wrong(lane->pulls_leaving.first, &leaving, "pull 0 is at piece 1 of 0, of 0 at most");
    wrong(streams.pull->active_pulls, 0, "pulls under way of a stream");
    wrong(streams.pull->pull_count, 3, "pulls of a stream");
    wrong(streams.pull->pulls.last, first, "its last answer, pull or report");
    wrong(second->in_stream.prev, NULL, "its last answer, pull or report");
    streams.pull->active_pulls = 0;
    wrong(first->active, false, "open views of pulls of the lane");
    streams.pull->active_pulls = 1;
    wrong(shard->views, 0, "a shard has other views than the long pulls that read it");
    expect_right(lane);
}

TALK_TEST(a_pull_that_was_passed_though_it_can_be_answered_is_found)
{
    struct lane *lane = crowd(talk);
    const uint64_t stream = talk_pull_stream(talk, 2);

    talk_pull(talk, stream, 1, SMALL, 1, 9);
    struct lane_pull *waits = lane_stream_find(lane, stream)->pulls.first;
    expect_right(lane);

    wrong(waits->after_sequence, 0, "is to be said, and passed");
    expect_right(lane);
}

TALK_TEST(a_wrong_answer_is_found)
{
    struct streams streams = open_streams(talk);
    struct lane *lane = talk->lane;
    const struct talk_part last = part_of(7, SMALL, (float[]){1, 1, 1, 1});

    talk->deaf = streams.push->id;
    talk_part_step(talk, streams.push->id, &last, 2, 2);
    push(talk, streams.push->id, 8, SMALL, 1);
    assert_true(streams.push->answer_count > 0);
    expect_right(lane);

    wrong(streams.push->answers.last, NULL, "its last answer, pull or report");
    wrong(streams.push->answer_count, 0, "answers of a stream");
    wrong(streams.push->patient_count, 1, "patient answers of a stream");
    wrong(streams.push->writable, true, "has something to say");
    wrong(streams.push->reports.last, &(struct report){0}, "its last answer, pull or report");
    expect_right(lane);
}

TALK_TEST(a_wrong_operation_is_found)
{
    struct lane *lane = crowd(talk);
    struct lane_session *session = lane->sessions.first->in_lane.next;

    talk->holds_compute = true;
    push(talk, talk_push_stream(talk, 2, 1), 1, LARGE, 1);
    talk_commit(talk, session->push_stream->id, 1, 0, 0);
    struct operation *operation = lane->turns->operations.first;
    struct lane_part *part = session->parts.first;
    struct shard *shard = part->entries[0].shard;
    assert_int_equal(operation->state, OPERATION_OUT);
    expect_right(lane);

    wrong(operation->state, OPERATION_RUNNING, "is in the list in state");
    wrong(operation->state, OPERATION_STALLED, "operations that are stalled of the lane");
    wrong(operation->state, OPERATION_RAISING, "operations that are ending of the lane");
    wrong(part->entries[0].shard, NULL, "worker 2: a shard of what is being applied was let go");
    wrong(work_of(shard)->busy.operation, NULL, "worker 2: the shard of v5 is being updated");
    wrong(lane->turns->stalled, 1, "operations that are stalled of the lane");
    wrong(lane->turns->ending, 1, "operations that are ending of the lane");
    struct lane_part *staged = lane->sessions.first->parts.first;
    wrong(operation->parts.first, staged, "worker 1: its vector work is not of the push");
    wrong(operation->parts.first, NULL, "pushes that are being applied of the lane");
    struct shard *idle = lane->sessions.first->parts.first->entries[0].shard;
    wrong(work_of(idle)->busy.operation, operation, "the shard of v6 is busy, and nothing works");
    expect_right(lane);
}

TALK_TEST(a_wrong_ps_is_found)
{
    struct lane_config config = talk_config();
    struct check check = {.text = ""};
    const wire_peer_order order = WIRE_PEER_ORDER_INIT;

    config.index = 0;
    talk_start(talk, &config);
    struct ps_core *core = talk->core;
    ps_core_check(core, &check);
    assert_string_equal(check.text, "");

    core->queue[core->queued] = (struct ps_message){.event.order = &order};
    corrupt(
        ps_core_check(core, &said), core->queued, core->queued + 1, "of the queue is gone with");
    corrupt(ps_core_check(core, &said), core->lane->pull_bytes, 1, "bytes of pulls of the lane");
    corrupt(
        ps_core_check(core, &said), core->controller->variable_count, 1,
        "variables of the controller");
}
