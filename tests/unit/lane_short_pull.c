/* SPDX-License-Identifier: Apache-2.0 */
/* lane_short_pull.c -- pulls from a lane of which each take of memory fails once. */
#include <stdio.h>

#include "lane_scarce.h"

#define TABLE 5u
#define ROWS 40u
#define COLUMNS 3u
#define OTHER 6u

static float values[ROWS * COLUMNS];

static void lend_blocks(struct talk *talk, struct lane_config *config)
{
    (void)talk;
    config->copied_pull_bytes_max = 64; /* a long pull lends its blocks, each for itself, … */
    config->gathered_bytes_max = 1;     /* … and runs of them */
    config->block_bytes = 64;
    config->kept_row_bytes_min = 1;
}

static struct talk_part whole_table(uint64_t sequence)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = sequence - 1,
        .eager = true,
        .shard = TABLE,
        .shards = 1,
        .values = values,
        .count = ROWS * COLUMNS};
}

/* A table with a slot, whose elements are pushed once. */
static void add_table(struct scarce *scarce)
{
    const struct talk_part part = whole_table(1);

    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)i;
    talk_add(
        scarce->talk, TABLE, ROWS, COLUMNS, SUMAC_FLOAT32, UPDATE_MOMENTUM, WIRE_INITIALIZER_ZEROS);
    talk_add(scarce->talk, OTHER, 2, 1, SUMAC_FLOAT32, UPDATE_ASSIGN, WIRE_INITIALIZER_ASSIGNED);
    talk_part(scarce->talk, scarce_push(scarce, 1), &part);
    scarce->last[1] = 1;
}

static void pull(struct scarce *scarce, uint32_t digit, wire_piece *pieces, uint32_t count)
{
    static const int64_t rows[] = {39, 0, 7, 7, 12};
    wire_piece *pointers[2] = {pieces, pieces + 1};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct span payload = {(const uint8_t *)rows, sizeof rows};
    const bool by_rows = pieces[0].kind == SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;

    assert_in_range(count, 1, 2);
    pieces[0].bytes = by_rows ? sizeof rows : 0;
    request.request = 10 * scarce->number + digit;
    request.pieces = pointers;
    request.n_pieces = count;
    talk_step(
        scarce->talk, &(struct lane_event){
                          .kind = LANE_EVENT_PULL,
                          .stream = scarce_pull(scarce, digit % 2),
                          .pull_request = &request,
                          .payload = &payload,
                          .payload_spans = by_rows});
}

/* A long one of value and slot, and one by rows; and what is not there. */
static void pull_three(struct scarce *scarce)
{
    wire_piece both[2] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT}, rows = WIRE_PIECE_INIT,
               none = WIRE_PIECE_INIT;

    both[0].shard_id = both[1].shard_id = rows.shard_id = TABLE;
    both[1].kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    rows.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    none.shard_id = 4711;
    pull(scarce, 1, both, 2);
    pull(scarce, 2, &rows, 1);
    pull(scarce, 3, &none, 1);
}

TEST(each_pull_is_answered_and_the_next_ones_are_right)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = lend_blocks,
        .prepare = add_table,
        .say = pull_three,
        .answers = {
            {"pulled #1 [1 1]", {"pulled #1 error OUT_OF_MEMORY\n"}},
            {"pulled #2 [1]", {"pulled #2 error OUT_OF_MEMORY\n"}},
            {"pulled #3 error UNKNOWN_SHARD\n", {"pulled #3 error OUT_OF_MEMORY\n"}}}});
}

/* A row of the table, by its index. */
static void push_a_row(struct scarce *scarce, uint64_t sequence)
{
    struct {
        int64_t row;
        float values[COLUMNS];
    } payload = {.row = 39};
    wire_piece indices = WIRE_PIECE_INIT, deltas = WIRE_PIECE_INIT, *pieces[] = {&indices, &deltas};
    wire_part part = WIRE_PART_INIT, *parts[] = {&part};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    indices.shard_id = deltas.shard_id = TABLE;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.bytes = sizeof payload.row;
    deltas.bytes = sizeof payload.values;
    part.sequence = sequence;
    part.previous = sequence - 1;
    part.first = part.last = part.eager = true;
    part.bytes = indices.bytes + deltas.bytes;
    part.weight = 1;
    part.pieces = pieces;
    part.n_pieces = 2;
    request.parts = parts;
    request.n_parts = 1;
    talk_push(
        scarce->talk, scarce_push(scarce, 1), &request, &payload, indices.bytes + deltas.bytes);
}

/* A reader stops after the first message. Meanwhile a push writes to what it reads. Then it reads
 * on, or its view was ended, and its client pulls again. */
static void pull_beside(struct scarce *scarce, bool by_row)
{
    struct talk *const talk = scarce->talk;
    const uint64_t reader = scarce_pull(scarce, 1), sequence = scarce->number + 1;
    const struct talk_part part = whole_table(sequence);
    wire_piece both[2] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT};

    both[0].shard_id = both[1].shard_id = TABLE;
    both[1].kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    talk->deaf = reader;
    talk->holds_released = true;
    pull(scarce, 1, both, 2);
    if (by_row)
        push_a_row(scarce, sequence);
    else
        talk_part(talk, scarce_push(scarce, 1), &part);
    scarce->last[1] = sequence;
    talk->deaf = 0;
    talk->holds_released = false;
    talk_release(talk);
    talk_writable(talk, reader);
    talk_commit(talk, scarce_push(scarce, 1), sequence, 0, sequence);
}

static void pull_beside_a_push(struct scarce *scarce) { pull_beside(scarce, false); }
static void pull_beside_a_row(struct scarce *scarce) { pull_beside(scarce, true); }

TEST(a_long_pull_beside_a_push_is_answered)
{
    static void (*const said[])(struct scarce *) = {pull_beside_a_push, pull_beside_a_row};

    for (uint32_t i = 0; i < 2; i++)
        scarce_each_take(&(struct scarce_conversation){
            .configure = lend_blocks,
            .prepare = add_table,
            .say = said[i],
            .answers = {
                {"pulled #1 [", {"pulled #1 error "}}, {"\npulled #1: ", {"pulled #1 error "}}}});
}

/* Two pulls of a variable without a value: one runs out of time, the other is cancelled. */
static void wait_and_cancel(struct scarce *scarce)
{
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = scarce_pull(scarce, 1), .pull_request = &request};

    piece.shard_id = OTHER;
    request.pieces = pieces;
    request.n_pieces = 1;
    request.timeout_ms = 500;
    request.request = 10 * scarce->number + 1;
    talk_step(scarce->talk, &event);
    request.request++;
    request.timeout_ms = 60000;
    talk_step(scarce->talk, &event);
    talk_cancel(scarce->talk, scarce_pull(scarce, 1), request.request);
}

TEST(a_pull_that_waits_runs_out_of_time_or_is_cancelled)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = lend_blocks,
        .prepare = add_table,
        .say = wait_and_cancel,
        .answers = {{"pulled #1 error TIMED_OUT\n", {"pulled #1 error OUT_OF_MEMORY\n"}}}});
}
