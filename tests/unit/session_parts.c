/* SPDX-License-Identifier: Apache-2.0 */
/* session_parts.c -- of several pieces, parts and pushes each has its own: version, answer,
 * refusal, commit and chunk. */
#include "room.h"
#include "session_talk.h"

TALK_TEST(each_piece_has_the_version_of_its_own_shard_in_the_callers_order)
{
    talk_open(talk, 2);

    enum { count = 100 };
    static uint8_t data[8];
    struct session_piece pieces[count];
    uint64_t versions[2][count];
    for (uint32_t i = 0; i < count; i++) { /* given: ids at random, turn about on ps 1 and 0 */
        pieces[i] = talk_piece(1 - i % 2, 10 + 7919u * i * i * i, data, sizeof data);
        versions[1 - i % 2][i / 2] = 1000 + i;
    }
    talk_push(talk, 1, pieces, count);

    for (uint32_t ps = 0; ps < 2; ps++) {
        wire_done done = WIRE_DONE_INIT;
        wire_done *list[] = {&done};
        wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
        done.sequence = 1;
        done.n_versions = count / 2;
        done.versions = versions[ps];
        answer.n_done = 1;
        answer.done = list;
        talk_answer(talk, ps, &answer);
    }

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_non_null(pushed);
    assert_int_equal(pushed->version_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pushed->versions[i], 1000 + i);
}

TALK_TEST(a_version_that_its_ps_does_not_say_is_none)
{
    static uint8_t data[8];
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, sizeof data), talk_piece(0, 11, data, sizeof data)};
    uint64_t versions[] = {5, 77}; /* the second lies behind those that are said */
    wire_done done = WIRE_DONE_INIT;
    wire_done *list[] = {&done};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    talk_open(talk, 1); /* given */
    talk_push(talk, 1, pieces, 2);
    done.sequence = 1;
    done.n_versions = 1;
    done.versions = versions;
    answer.n_done = 1;
    answer.done = list;

    talk_answer(talk, 0, &answer); /* when */

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED); /* then */
    assert_int_equal(pushed->version_count, 2);
    assert_int_equal(pushed->versions[0], 5);
    assert_int_equal(pushed->versions[1], 0);
}

/* After a reconnect a ps says again what it has. */
TALK_TEST(one_ps_that_says_staged_twice_is_not_two)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);

    talk_staged(talk, 0, 1);
    talk_staged(talk, 0, 1);
    assert_int_equal(talk_state(talk).commit_through, 0);
    talk_staged(talk, 1, 1);

    assert_int_equal(talk_state(talk).commit_through, 1);
}

TALK_TEST(a_refused_push_voids_none_beside_it)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_writable(talk, 1);
    talk_push_to(talk, 2, 3);
    talk_writable(talk, 1);
    talk_staged(talk, 1, 1);
    talk_staged(talk, 1, 2); /* given: on ps 1 both wait for what ps 0 says */
    talk_refused(talk, 0, 1);

    const wire_push_request *request = talk_request(talk, 1);
    assert_non_null(request);
    assert_int_equal(request->commit->commit_through, 1);
    assert_int_equal(request->commit->n_voided, 1);
    assert_int_equal(request->commit->voided[0], 1);
}

TALK_TEST(what_a_ps_was_told_of_the_commit_is_not_said_again)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_writable(talk, 0);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    assert_int_equal(talk_request(talk, 0)->commit->commit_through, 1); /* given */
    talk_writable(talk, 0);

    talk_push_to(talk, 2, 3);

    assert_int_equal(talk_request(talk, 0)->n_parts, 1);
    assert_null(talk_request(talk, 0)->commit);
    talk_writable(talk, 0); /* nor that its answers were heard */
    talk_done(talk, 0, 1);
    talk_done(talk, 1, 1);
    for (uint64_t token = 3; token <= 4; token++) {
        talk_push_to(talk, token, 3);
        assert_int_equal(talk_request(talk, 0)->commit != NULL, token == 3);
        talk_writable(talk, 0);
    }
}

/* The first has no size that others fit beside. */
TALK_TEST(a_chunk_has_whole_elements_of_each_piece)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 128;
    talk_open_with(talk, &config);
    static uint8_t data[256];
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, 39), talk_piece(0, 11, data, sizeof data)};
    uint64_t bytes = 0;

    talk_push(talk, 1, pieces, 2);
    while (talk_sent(talk, 0) != NULL) {
        const wire_part *part = talk_request(talk, 0)->parts[0];
        for (size_t i = 0; i < part->n_pieces; i++) {
            const wire_piece *piece = part->pieces[i];
            assert_int_equal(piece->bytes % 8, piece->shard_id == 10 ? 39 % 8 : 0);
            bytes += piece->bytes;
        }
        talk_writable(talk, 0);
    }

    assert_int_equal(bytes, 39 + sizeof data);
}

/* ---- what a push by rows takes */

struct rows {
    uint64_t count, row_bytes;
    uint32_t chunk_bytes;
    uint64_t pairs; /* of pieces on the wire */
};

/* How many pieces of the wire the push has with that grant; 0: it is refused as too large. */
static uint64_t send_rows(const struct rows *rows, uint64_t grant)
{
    static int64_t indices[2 * WIRE_PUSH_ROWS_MAX + 1];
    static uint8_t data[2 * WIRE_PUSH_ROWS_MAX + 1];
    struct session_config config = talk_member(1);
    struct session_piece piece = talk_piece(0, 10, data, rows->count * rows->row_bytes);
    struct talk talk;
    uint64_t pieces = 0;

    assert_true(piece.bytes <= sizeof data);
    config.chunk_bytes = rows->chunk_bytes;
    piece.rows = indices;
    piece.row_bytes = rows->row_bytes;
    talk_config(&talk, &config);
    talk_start(&talk);
    talk_joined(&talk, 1);
    talk_hello(&talk, 0);
    talk_greet_as(&talk, 0, 1, 100, grant);
    talk_push(&talk, 1, &piece, 1);
    for (; talk_sent(&talk, 0) != NULL; talk_writable(&talk, 0))
        for (size_t i = 0; i < talk_request(&talk, 0)->n_parts; i++)
            pieces += talk_request(&talk, 0)->parts[i]->n_pieces;
    talk_close(&talk);
    return pieces;
}

/* Two pieces by rows, of 2 rows of 8 bytes and of none, go together: each has its indices first. */
TALK_TEST(rows_go_out_behind_their_indices)
{
    static const int64_t rows[] = {7, 3};
    static uint8_t data[16] = {1, [15] = 9};
    struct session_piece pieces[] = {
        talk_piece(0, 10, data, sizeof data), talk_piece(0, 11, data, sizeof data),
        talk_piece(0, 12, data, 0)};

    for (uint32_t i = 0; i < 3; i++) {
        pieces[i].rows = rows;
        pieces[i].row_bytes = 8;
    }
    talk_open(talk, 1);

    talk_push(talk, 1, pieces, 3);

    const struct session_effect *sent = talk_sent(talk, 0);
    const wire_part *part = sent->push_request->parts[0];
    assert_true(part->last);
    assert_int_equal(part->n_pieces, 6);
    assert_int_equal(sent->payload_count, 4); /* none of the empty one */
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(
            part->pieces[i]->kind, i % 2 == 0 ? SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES
                                              : SUMAC__V1__PIECE__KIND__KIND_VALUES);
        assert_int_equal(part->pieces[i]->shard_id, 10 + i / 2);
        assert_int_equal(part->pieces[i]->bytes, 16);
        assert_int_equal(sent->payload[i].bytes.bytes, 16);
        assert_memory_equal(
            sent->payload[i].bytes.data, i % 2 == 0 ? (const void *)rows : data, 16);
    }
}

/* A pair has as many rows as a message, or as 65 536; either bound may be the smaller one. */
TEST(rows_take_what_all_their_pieces_take)
{
    static const struct rows all[] = {
        {0, 8, 640, 1},
        {40, 8, 640, 1},
        {41, 8, 640, 2},
        {80, 8, 640, 2},
        {WIRE_PUSH_ROWS_MAX, 1, SESSION_CHUNK_BYTES_MAX, 1},
        {WIRE_PUSH_ROWS_MAX + 1, 1, SESSION_CHUNK_BYTES_MAX, 2},
        {2 * WIRE_PUSH_ROWS_MAX + 1, 1, SESSION_CHUNK_BYTES_MAX, 3},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct rows *rows = &all[i];
        const uint64_t cost =
            wire_part_cost(rows->count * (8 + rows->row_bytes), 2 * rows->pairs, 0) +
            wire_rows_cost(rows->count, rows->row_bytes) + wire_list_cost(rows->row_bytes);

        assert_int_equal(send_rows(rows, cost), 2 * rows->pairs);
        assert_int_equal(send_rows(rows, cost - 1), 0);
    }
}

/* ---- rules taken away */

static void finish_step(struct talk *talk, uint64_t token, uint32_t piece_count)
{
    static uint8_t data[8];
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, sizeof data), talk_piece(1, 11, data, sizeof data)};
    const struct session_push push = {
        .token = token, .pieces = pieces, .piece_count = piece_count, .finishes_step = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
}

/* The clock that goes out beside a step's push, with the commit of the push before it. */
static uint64_t clock_before_the_commit(uint64_t broken)
{
    struct talk talk;
    struct session_config config = talk_member(2);

    config.broken = broken;
    talk_open_with(&talk, &config);
    talk_push_out(&talk, 1, 3);
    finish_step(&talk, 2, 2);
    talk_staged(&talk, 0, 1);
    talk_staged(&talk, 1, 1);
    talk_writable(&talk, 0); /* the message of push 2 is out */
    const struct session_effect *sent = talk_sent(&talk, 0);
    assert_non_null(sent);
    assert_non_null(sent->push_request->commit);
    assert_int_equal(sent->push_request->commit->commit_through, 1);
    const uint64_t clock = sent->push_request->commit->clock;
    talk_close(&talk);
    return clock;
}

TEST(without_clock_with_the_commit_it_is_said_before_the_step_is_committed)
{
    assert_int_equal(clock_before_the_commit(0), 0);
    assert_int_equal(clock_before_the_commit(rule_bit(RULE_clock_with_the_commit)), 1);
}

TALK_TEST(without_clock_to_every_ps_one_that_was_not_pushed_to_is_not_told)
{
    struct session_config config = talk_member(2);

    config.broken = rule_bit(RULE_clock_to_every_ps);
    talk_open_with(talk, &config);
    finish_step(talk, 1, 1);

    talk_done(talk, 0, 1);

    assert_int_equal(talk_state(talk).clock, 1);
    assert_null(talk_request(talk, 1));
}

/* Without bytes, in its place among the others. */
TALK_TEST(a_piece_that_sets_hyperparameters_says_so)
{
    talk_open(talk, 1);
    static uint8_t data[8];
    struct session_piece pieces[] = {
        talk_piece(0, 10, data, sizeof data), talk_piece(0, 10, NULL, 0),
        talk_piece(0, 10, data, sizeof data)};

    pieces[1].kind = WIRE_PIECE_HYPERPARAMETERS;
    pieces[1].function = 1;
    talk_push(talk, 1, pieces, 3);

    const wire_part *part = talk_request(talk, 0)->parts[0];
    assert_int_equal(part->n_pieces, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            part->pieces[i]->kind, i == 1 ? WIRE_PIECE_HYPERPARAMETERS : WIRE_PIECE_VALUES);
    assert_int_equal(part->pieces[1]->function, 1);
    assert_int_equal(part->pieces[1]->bytes, 0);
}

TALK_TEST(a_part_says_all_that_its_push_says)
{
    static const int64_t rows[] = {7, 3, 5, 1};
    static uint8_t data[4 * 32];
    wire_function function = WIRE_FUNCTION_INIT, *functions[] = {&function};
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_push_answer greeted = WIRE_PUSH_ANSWER_INIT;
    struct session_config config = talk_member(1);
    struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    const struct session_push push = {
        .token = 1,
        .pieces = &piece,
        .piece_count = 1,
        .weight = 3,
        .scale = 0.5,
        .functions = functions,
        .function_count = 1};

    config.chunk_bytes = 64;
    piece.rows = rows;
    piece.row_bytes = 32;
    piece.layout_epoch = 9;
    talk_config(talk, &config);
    talk_start(talk);
    talk_joined(talk, 1);
    talk_hello(talk, 0);
    greeting.cluster_id = 42;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.membership_epoch = 6;
    greeting.staging_grant_bytes = GRANT;
    greeted.greeting = &greeting;
    talk_answer(talk, 0, &greeted);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});

    const wire_part *part = talk_request(talk, 0)->parts[0];
    assert_true(part->first);
    assert_true(part->weight == 3 && part->scale == 0.5);
    assert_int_equal(part->membership_epoch, 6);
    assert_int_equal(part->n_functions, 1);
    assert_ptr_equal(part->functions[0], &function);
    uint64_t sent = 0, messages = 0;
    for (; talk_sent(talk, 0) != NULL; talk_writable(talk, 0), messages++) {
        part = talk_request(talk, 0)->parts[0];
        assert_int_equal(part->n_pieces, 2);
        assert_int_equal(part->pieces[0]->layout_epoch, 9);
        assert_int_equal(part->pieces[1]->layout_epoch, 9);
        assert_int_equal(part->pieces[0]->offset_bytes, sent / 32 * sizeof *rows);
        assert_int_equal(part->pieces[1]->offset_bytes, sent);
        sent += part->pieces[1]->bytes;
    }
    assert_int_equal(sent, sizeof data);
    assert_true(messages > 1);
}

TALK_TEST(a_chunk_of_less_than_64_bytes_is_one_of_64)
{
    uint8_t data[80];
    struct session_config config = talk_member(1);
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);

    config.chunk_bytes = 1;
    talk_open_with(talk, &config);

    talk_push(talk, 1, &piece, 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->bytes, 64);
}
