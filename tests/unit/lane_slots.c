/* SPDX-License-Identifier: Apache-2.0 */
/* lane_slots.c -- pulls of what an update function keeps beside a value. */
#include "assert_number.h"
#include "lane_talk.h"

#define MOMENTUM 7u /* 40 float32; each list is more than one message of 48 bytes */
#define TABLE 8u    /* 40 rows of 4 bfloat16, whose slot is float32 */
#define ROW 37u

/* A gradient of ones. */
static void push(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    float values[40];

    for (int i = 0; i < 40; i++)
        values[i] = 1;
    talk_part(
        talk, stream,
        &(struct talk_part){
            .sequence = sequence,
            .previous = sequence - 1,
            .eager = true,
            .shard = MOMENTUM,
            .shards = 1,
            .values = values,
            .count = 40});
}

/* A value, and its one slot. */
static void pull_both_of(struct talk *talk, uint64_t stream, uint64_t shard)
{
    wire_piece value = WIRE_PIECE_INIT, slot = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&value, &slot};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    value.shard_id = slot.shard_id = shard;
    slot.kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    pull.request = 7;
    pull.pieces = pieces;
    pull.n_pieces = 2;
    talk_step(talk, &event);
}

TALK_TEST(a_value_and_its_slot_are_of_one_moment)
{
    const float *const pulled = (const float *)(const void *)talk->pulled;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, MOMENTUM, 40, UPDATE_MOMENTUM);
    const uint64_t stream = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 1);
    push(talk, stream, 1);
    talk->deaf = reader;
    pull_both_of(talk, reader, MOMENTUM); /* given: a reader that stops after one message */

    push(talk, stream, 2); /* when others push */
    push(talk, stream, 3);
    talk->deaf = 0;
    talk_writable(talk, reader); /* and it reads on */

    assert_int_equal(talk->pulled_bytes, 80 * sizeof(float)); /* then it has both of version 1 */
    for (uint32_t i = 0; i < 40; i++) {
        assert_number_equal(pulled[i], -0.01F);
        assert_number_equal(pulled[40 + i], 1);
    }
}

/* A gradient for one row of the table. */
static void push_row(struct talk *talk, uint64_t stream)
{
    const struct {
        int64_t row;
        uint16_t values[4];
    } payload = {ROW, {0x3f80, 0x3f80, 0x3f80, 0x3f80}}; /* 1 */
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&indices, &values};
    wire_part part = WIRE_PART_INIT;

    indices.shard_id = values.shard_id = TABLE;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.bytes = sizeof payload.row;
    values.bytes = sizeof payload.values;
    part.sequence = 1;
    part.first = part.last = part.eager = true;
    part.bytes = sizeof payload;
    part.weight = 1;
    part.pieces = pieces;
    part.n_pieces = 2;
    talk_push_part(talk, stream, &part, &payload, sizeof payload);
}

/* The table has zeros until the row is pushed. `both`: the reader reads the slot, too. */
static void read_while_a_row_is_written(struct talk *talk, bool both)
{
    struct lane_config config = talk_config();
    uint32_t others = 0;

    config.kept_row_bytes_min = 1;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_add(talk, TABLE, 40, 4, SUMAC_BFLOAT16, UPDATE_MOMENTUM, WIRE_INITIALIZER_ZEROS);
    const uint64_t stream = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 1);
    talk->deaf = reader;
    if (both)
        pull_both_of(talk, reader, TABLE);
    else
        talk_pull(talk, reader, 7, TABLE, 1, 0);

    push_row(talk, stream);
    assert_non_null(strstr(talk->text, "done 1 [1]"));
    talk->deaf = 0;
    talk_writable(talk, reader);

    assert_int_equal(talk->pulled_bytes, 40 * 4 * (both ? 2 + 4 : 2));
    for (size_t i = 0; i < talk->pulled_bytes; i++)
        others += talk->pulled[i] != 0;
    assert_int_equal(others, 0);
}

TALK_TEST(a_row_is_read_as_it_was) { read_while_a_row_is_written(talk, false); }

TALK_TEST(the_slot_of_a_row_is_read_as_it_was) { read_while_a_row_is_written(talk, true); }

static void pull_slot(struct talk *talk, uint64_t stream, uint32_t slot)
{
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    piece.shard_id = MOMENTUM;
    piece.kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    piece.slot = slot;
    pull.request = 7;
    pull.pieces = pieces;
    pull.n_pieces = 1;
    talk_step(talk, &event);
}

/* After a gradient of one they are a tenth and a thousandth of it. */
TALK_TEST(each_slot_is_read_by_its_number)
{
    const float *const pulled = (const float *)(const void *)talk->pulled;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, MOMENTUM, 40, UPDATE_ADAM);
    const uint64_t stream = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 1);
    push(talk, stream, 1);

    pull_slot(talk, reader, 0);
    assert_true(pulled[0] > 0.09F && pulled[0] < 0.11F);
    pull_slot(talk, reader, 1);
    assert_true(pulled[0] > 0.0009F && pulled[0] < 0.0011F);

    talk_forget(talk);
    pull_slot(talk, reader, 2); /* which the function does not have */
    assert_int_equal(talk_times_said(talk, "pulled 7 error"), 1);
}

/* The elements of a slot are float32, those of the value two bytes. */
TALK_TEST(a_slot_is_read_by_whole_elements_of_its_own_type)
{
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;

    talk_start(talk, NULL);
    talk_add(talk, TABLE, 40, 4, SUMAC_BFLOAT16, UPDATE_MOMENTUM, WIRE_INITIALIZER_ZEROS);
    const uint64_t reader = talk_pull_stream(talk, 0);
    piece.shard_id = TABLE;
    piece.kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    piece.offset_bytes = 2;
    piece.bytes = 4;
    pull.request = 7;
    pull.pieces = pieces;
    pull.n_pieces = 1;
    talk_forget(talk);

    talk_step(
        talk,
        &(struct lane_event){.kind = LANE_EVENT_PULL, .stream = reader, .pull_request = &pull});

    talk_expect(talk, "pulled 7 error WRONG_SHAPE\n");
}

/* More pieces than one step looks at. */
TALK_TEST(slots_of_many_pieces_are_each_read_by_its_number)
{
    enum { count = 1200 };
    static wire_piece pieces[count];
    static wire_piece *pointers[count];
    const float *const pulled = (const float *)(const void *)talk->pulled;
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, MOMENTUM, 40, UPDATE_ADAM);
    const uint64_t stream = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 1);
    push(talk, stream, 1);
    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = MOMENTUM;
        pieces[i].kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
        pieces[i].slot = i % 2;
        pieces[i].offset_bytes = 8;
        pieces[i].bytes = 4;
        pointers[i] = &pieces[i];
    }
    pull.request = 7;
    pull.pieces = pointers;
    pull.n_pieces = count;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = reader, .pull_request = &pull};
    talk_step(talk, &event);
    assert_true(talk_says_in_time(talk, "pulled 7 [1", talk->now_us));
    assert_int_equal(talk->pulled_bytes, count * sizeof(float));
    for (uint32_t i = 0; i < count; i += 2) {
        assert_true(pulled[i] > 0.09F && pulled[i] < 0.11F);
        assert_true(pulled[i + 1] > 0.0009F && pulled[i + 1] < 0.0011F);
    }

    const struct {
        uint32_t slot;
        uint64_t offset_bytes;
        const char *said;
    } wrong[] = {
        {9, 8, "pulled 7 error MISSING_SLOTS"},
        {0, UINT64_C(1) << 63 | 8, "pulled 7 error WRONG_SHAPE"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) { /* the last of them */
        pieces[count - 1].slot = wrong[i].slot;
        pieces[count - 1].offset_bytes = wrong[i].offset_bytes;
        talk_forget(talk);
        talk_step(talk, &event);
        assert_true(talk_says_in_time(talk, wrong[i].said, talk->now_us));
    }
}

/* Two lists of versions lie side by side: the old one until its reader is done. */
TALK_TEST(a_push_to_the_end_of_a_block_that_is_read_keeps_its_begin)
{
    enum { elements = 8, half = 4 }; /* one block */
    struct lane_config config = talk_config();
    const float *const pulled = (const float *)(const void *)talk->pulled;
    const float values[half] = {1, 1, 1, 1};
    const struct talk_part part = {
        .sequence = 1,
        .eager = true,
        .shard = MOMENTUM,
        .shards = 1,
        .offset = half,
        .values = values,
        .count = half};

    config.copied_pull_bytes_max = config.gathered_bytes_max = 1;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_add(talk, MOMENTUM, elements, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ONES);
    const uint64_t stream = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 1);
    talk->holds_released = true;
    talk_pull(talk, reader, 1, MOMENTUM, 1, 0);
    assert_true(talk->pulled_lent > 0); /* given */

    talk_part(talk, stream, &part); /* when */

    talk_pull(talk, reader, 2, MOMENTUM, 1, 0); /* then */
    assert_int_equal(talk->pulled_bytes, elements * sizeof(float));
    for (uint32_t i = 0; i < elements; i++)
        assert_number_equal(pulled[i], i < half ? 1 : 2);
    talk->holds_released = false;
    talk_release(talk);
}
