/* SPDX-License-Identifier: Apache-2.0 */
/* lane_rows_pull.c -- pulls of rows by index: answered in the order asked for, in as many messages
 * as it takes, and refused where there is no such row. */
#include <stdio.h>

#include "assert_number.h"
#include "pull_state.h"
#include "lane_talk.h"

#define TABLE 5u
#define ROWS 40u
#define COLUMNS 3u
#define INDICES_MAX 256u

static float table[ROWS * COLUMNS];

/* A table whose element i is i. */
static uint64_t begin_with(struct talk *talk, struct lane_config config)
{
    config.staging_bytes_max = 4u << 20;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        table[i] = (float)i;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_add(talk, TABLE, ROWS, COLUMNS, SUMAC_FLOAT32, UPDATE_ASSIGN, WIRE_INITIALIZER_ZEROS);
    const struct talk_part part = {
        .sequence = 1,
        .eager = true,
        .shard = TABLE,
        .shards = 1,
        .values = table,
        .count = ROWS * COLUMNS};
    talk_part(talk, talk_push_stream(talk, 1, 1), &part);
    const uint64_t stream = talk_pull_stream(talk, 0);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk) { return begin_with(talk, talk_config()); }

static void pull_rows_as(
    struct talk *talk, uint64_t stream, const int64_t *indices, uint32_t count, uint64_t bytes)
{
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const uint8_t *data = (const uint8_t *)indices;
    const size_t payload = count * sizeof *indices, first = payload / 3;
    const struct span spans[] = {{data, first}, {data + first, payload - first}}; /* torn */
    struct lane_event event = {.kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &request};

    piece.shard_id = TABLE;
    piece.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    piece.bytes = bytes;
    request.request = 7;
    request.pieces = pieces;
    request.n_pieces = 1;
    event.payload = spans;
    event.payload_spans = count == 0 ? 0 : 2;
    talk_step(talk, &event);
}

static void pull_rows(struct talk *talk, uint64_t stream, const int64_t *indices, uint32_t count)
{
    pull_rows_as(talk, stream, indices, count, count * sizeof *indices);
}

static void expect_rows(const struct talk *talk, const int64_t *indices, uint32_t count)
{
    assert_int_equal(talk->pulled_bytes, count * COLUMNS * sizeof(float));
    for (uint32_t i = 0; i < count; i++)
        assert_memory_equal(
            talk->pulled + i * COLUMNS * sizeof(float), table + indices[i] * COLUMNS,
            COLUMNS * sizeof(float));
}

TALK_TEST(rows_come_in_the_order_asked_for)
{
    const uint64_t stream = begin(talk);
    const int64_t indices[] = {39, 0, 7, 7};

    pull_rows(talk, stream, indices, 4);

    talk_expect(talk, "pulled 7 [1] 117 118 119 0 1 2 21 22 23 21 22 23\n");
    expect_rows(talk, indices, 4);
}

static void pull_many(struct talk *talk, uint64_t stream, uint32_t count)
{
    int64_t indices[INDICES_MAX];

    for (uint32_t i = 0; i < count; i++)
        indices[i] = (i * 17 + 3) % ROWS;
    pull_rows(talk, stream, indices, count);
    assert_true(talk->pulled_messages >= count / 5);
    expect_rows(talk, indices, count);
    talk_forget(talk);
}

TALK_TEST(many_rows_come_in_several_messages) { pull_many(talk, begin(talk), INDICES_MAX); }

TALK_TEST(rows_too_large_to_be_copied_are_lent_one_by_one)
{
    struct lane_config config = talk_config();

    config.gathered_bytes_max = 8;
    pull_many(talk, begin_with(talk, config), 40);

    assert_int_not_equal(talk->pulled_lent, 0);
}

TALK_TEST(a_message_may_end_within_a_row)
{
    struct lane_config config = talk_config();

    config.pull_chunk_bytes = 40; /* three rows and a third */
    pull_many(talk, begin_with(talk, config), 50);
}

static void expect_refused(struct talk *talk, const char *reason)
{
    char said[64];

    (void)snprintf(said, sizeof said, "pulled 7 error %s\n", reason);
    talk_expect(talk, said);
    assert_int_equal(store_shard(&talk->lane->store, TABLE)->users, 0);
}

TALK_TEST(indices_take_room_while_their_pull_waits)
{
    const uint64_t stream = begin(talk);
    int64_t indices[INDICES_MAX] = {0};

    talk->deaf = stream;
    pull_rows(talk, stream, indices, INDICES_MAX);
    const uint64_t first = talk->lane->pull_bytes;
    pull_rows(talk, stream, indices, 1);
    const uint64_t second = talk->lane->pull_bytes - first;

    assert_true(first >= sizeof indices);
    assert_true(first - second >= sizeof indices - 64);
}

TALK_TEST(what_is_no_row_of_the_shard_is_refused)
{
    const uint64_t stream = begin(talk);

    pull_rows(talk, stream, (int64_t[]){1, ROWS}, 2);
    expect_refused(talk, "WRONG_SHAPE");
    pull_rows(talk, stream, (int64_t[]){-1}, 1);
    expect_refused(talk, "WRONG_SHAPE");
    pull_rows_as(talk, stream, (int64_t[]){1, 2}, 2, 12); /* one and a half */
    expect_refused(talk, "MALFORMED");
    pull_rows_as(talk, stream, (int64_t[]){1, 2}, 2, 24); /* three */
    expect_refused(talk, "MALFORMED");
    pull_rows_as(talk, stream, (int64_t[]){1, 2}, 2, UINT64_MAX);
    expect_refused(talk, "MALFORMED");
}

TALK_TEST(a_pull_names_so_many_rows_at_most)
{
    struct lane_config config = talk_config();
    static int64_t indices[WIRE_PULL_ROWS_MAX + 1];

    config.pull_chunk_bytes = 0; /* as a ps has it */
    const uint64_t stream = begin_with(talk, config);
    pull_rows(talk, stream, indices, WIRE_PULL_ROWS_MAX);
    assert_true(talk_says_in_time(talk, "pulled 7 [1]", talk->now_us));
    expect_rows(talk, indices, WIRE_PULL_ROWS_MAX);
    talk_forget(talk);

    pull_rows(talk, stream, indices, WIRE_PULL_ROWS_MAX + 1);

    expect_refused(talk, "TOO_MANY_PIECES");
}

/* However small: each lies anywhere. */
TALK_TEST(an_answer_has_so_many_rows_at_most)
{
    struct lane_config config = talk_config();
    static int64_t indices[ROWS_PER_ANSWER_MAX + 1];

    config.pull_chunk_bytes = 0;
    const uint64_t stream = begin_with(talk, config);
    pull_rows(talk, stream, indices, ROWS_PER_ANSWER_MAX);
    assert_true(talk_says_in_time(talk, "pulled 7 [1]", talk->now_us));
    assert_int_equal(talk->pulled_messages, 1);
    talk_forget(talk);

    pull_rows(talk, stream, indices, ROWS_PER_ANSWER_MAX + 1);

    assert_true(talk_says_in_time(talk, "pulled 7 [1]", talk->now_us));
    assert_int_equal(talk->pulled_messages, 2);
    expect_rows(talk, indices, ROWS_PER_ANSWER_MAX + 1);
}

/* Of 12 bytes, in blocks of 8. */
TALK_TEST(each_row_may_be_lent_in_two_runs)
{
    struct lane_config config = talk_config();
    const int64_t indices[] = {2, 5, 10, 13, 18, 21, 26, 29};

    config.block_bytes = 8;
    config.gathered_bytes_max = 1;
    talk->holds_released = true;
    pull_rows(talk, begin_with(talk, config), indices, 8);

    assert_int_equal(talk->pulled_lent, 16);
    expect_rows(talk, indices, 8);
    talk_release(talk);
}

TALK_TEST(a_pull_of_no_rows_is_answered)
{
    const uint64_t stream = begin(talk);

    pull_rows(talk, stream, NULL, 0);

    talk_expect(talk, "pulled 7 [1]\n");
}

/* The first of two pieces is wrong; both have as many indices as the payload. */
TALK_TEST(a_list_of_rows_is_of_whole_indices_from_the_first_on)
{
    static const struct {
        uint64_t offset_bytes, bytes;
    } wrong[] = {{0, 12}, {8, 8}};
    const uint64_t stream = begin(talk);
    const int64_t rows[] = {3, 4};
    const struct span span = {(const uint8_t *)rows, sizeof rows};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wire_piece first = WIRE_PIECE_INIT, second, *pieces[] = {&first, &second};
        wire_pull_request request = WIRE_PULL_REQUEST_INIT;
        first.shard_id = TABLE;
        first.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
        second = first;
        first.offset_bytes = wrong[i].offset_bytes;
        first.bytes = wrong[i].bytes;
        second.bytes = sizeof rows - first.bytes;
        request.request = 7;
        request.pieces = pieces;
        request.n_pieces = 2;
        talk_step(
            talk, &(struct lane_event){
                      .kind = LANE_EVENT_PULL,
                      .stream = stream,
                      .pull_request = &request,
                      .payload = &span,
                      .payload_spans = 1});

        talk_expect(talk, "pulled 7 error WRONG_SHAPE\n");
        assert_non_null(strstr(talk->refused, "a list comes whole, from 0 on"));
    }
}

TALK_TEST(rows_of_a_table_without_columns_are_answered)
{
    const uint64_t stream = begin(talk);
    const int64_t row = 3;
    const struct span span = {(const uint8_t *)&row, sizeof row};
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    talk_add(talk, 9, 4, 0, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    piece.shard_id = 9;
    piece.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    piece.bytes = sizeof row;
    request.request = 7;
    request.pieces = pieces;
    request.n_pieces = 1;
    talk_step(
        talk, &(struct lane_event){
                  .kind = LANE_EVENT_PULL,
                  .stream = stream,
                  .pull_request = &request,
                  .payload = &span,
                  .payload_spans = 1});

    talk_expect(talk, "pulled 7 [0]\n");
}

/* The first piece has more rows than an answer takes. */
TALK_TEST(a_piece_that_goes_on_in_the_next_message_is_the_last_of_its_own)
{
    enum { count = ROWS_PER_ANSWER_MAX + 100 };
    static int64_t indices[count];
    struct lane_config config = talk_config();
    wire_piece rows = WIRE_PIECE_INIT, rest = WIRE_PIECE_INIT, *pieces[] = {&rows, &rest};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct span span = {(const uint8_t *)indices, sizeof indices};
    struct lane_effects effects;

    config.pull_chunk_bytes = 1u << 20;
    const uint64_t stream = begin_with(talk, config);
    rows.shard_id = rest.shard_id = TABLE;
    rows.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    rows.bytes = sizeof indices;
    request.request = 7;
    request.pieces = pieces;
    request.n_pieces = 2;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL,
        .stream = stream,
        .pull_request = &request,
        .now_us = talk->now_us,
        .payload = &span,
        .payload_spans = 1};

    ps_core_step(talk->core, &event, &effects); /* when */

    assert_int_equal(effects.items[0].kind, LANE_EFFECT_PULLED); /* then */
    const wire_pull_answer *const answer = effects.items[0].pull_answer;
    assert_int_equal(answer->n_pieces, 1);
    const uint64_t said = ROWS_PER_ANSWER_MAX * COLUMNS * sizeof(float);
    assert_int_equal(answer->pieces[0]->bytes, said);
    const struct lane_event writable = {
        .kind = LANE_EVENT_STREAM_WRITABLE, .stream = stream, .now_us = talk->now_us};
    ps_core_step(talk->core, &writable, &effects);
    const wire_pull_answer *const next = effects.items[0].pull_answer;
    assert_int_equal(next->n_pieces, 2);
    assert_int_equal(next->pieces[0]->offset_bytes, said);
    assert_int_equal(next->pieces[1]->offset_bytes, 0);
    assert_true(next->last);
}

TALK_TEST(each_piece_has_its_own_rows)
{
    static const int64_t indices[] = {4, 39, 7};
    const uint64_t stream = begin(talk);
    wire_piece one = WIRE_PIECE_INIT, two = WIRE_PIECE_INIT, *pieces[] = {&one, &two};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct span span = {(const uint8_t *)indices, sizeof indices};
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL,
        .now_us = talk->now_us,
        .stream = stream,
        .pull_request = &request,
        .payload = &span,
        .payload_spans = 1};

    one.shard_id = two.shard_id = TABLE;
    one.kind = two.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    one.bytes = sizeof *indices;
    two.bytes = 2 * sizeof *indices;
    request.request = 7;
    request.pieces = pieces;
    request.n_pieces = 2;

    talk_step(talk, &event);

    expect_rows(talk, indices, 3);
    talk_forget(talk);
    struct lane_effects effects;
    ps_core_step(talk->core, &event, &effects); /* and says where its values are among them */
    const wire_pull_answer *const answer = effects.items[0].pull_answer;
    assert_int_equal(answer->n_pieces, 2);
    assert_int_equal(answer->pieces[0]->offset_bytes, 0);
    assert_int_equal(answer->pieces[1]->offset_bytes, 0);
}

/* So many pieces are looked up over several steps. */
TALK_TEST(each_of_many_pieces_has_its_own_rows)
{
    enum { count = 2048 };
    static int64_t indices[count];
    static wire_piece all[count];
    static wire_piece *pieces[count];
    const uint64_t stream = begin(talk);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct span span = {(const uint8_t *)indices, sizeof indices};
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL,
        .stream = stream,
        .pull_request = &request,
        .payload = &span,
        .payload_spans = 1};

    for (uint32_t i = 0; i < count; i++) {
        indices[i] = (i * 17 + 3) % ROWS;
        all[i] = (wire_piece)WIRE_PIECE_INIT;
        all[i].shard_id = TABLE;
        all[i].kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
        all[i].bytes = sizeof *indices;
        pieces[i] = &all[i];
    }
    request.request = 7;
    request.pieces = pieces;
    request.n_pieces = count;

    talk_step(talk, &event);
    for (uint32_t i = 0; i < 100 && talk->pulled_bytes < count * COLUMNS * sizeof(float); i++)
        talk_tick(talk, 0);

    expect_rows(talk, indices, count);
}

static void push_rows_of_none(struct talk *talk, uint64_t stream)
{
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT, *pieces[] = {&indices, &values};
    wire_function assign = WIRE_FUNCTION_INIT, *functions[] = {&assign};
    wire_part part = WIRE_PART_INIT;

    assign.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN;
    indices.shard_id = values.shard_id = TABLE + 1;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.function = values.function = 1;
    part.sequence = 2;
    part.previous = 1;
    part.first = part.last = part.eager = true;
    part.functions = functions;
    part.pieces = pieces;
    part.n_functions = 1;
    part.n_pieces = 2;
    talk_push_part(talk, stream, &part, NULL, 0);
}

TALK_TEST(rows_of_none_assign_nothing)
{
    (void)begin(talk);
    talk_add(talk, TABLE + 1, ROWS, 1, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    const uint64_t stream = talk_push_stream(talk, 1, 2);
    talk_forget(talk);

    push_rows_of_none(talk, stream);

    talk_expect(talk, "staged 2\ndone 2 [1]\n");
    talk_pull(talk, talk_pull_stream(talk, 0), 9, TABLE + 1, 1, 0);
    assert_int_equal(talk_times_said(talk, "pulled 9"), 0);
}
