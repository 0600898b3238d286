/* SPDX-License-Identifier: Apache-2.0 */
/* lane_rows_runs.c -- runs by rows beside other runs of one part: each is applied in its turn, and
 * whole. */
#include <stdio.h>

#include "assert_number.h"
#include "lane_talk.h"

#define WIDE 5u   /* rows of two columns */
#define NARROW 6u /* rows of one */
#define ROWS 12u
#define RUNS_MAX 24u
#define SMALL 10u /* the first of some variables of one element, with two slots */

/* Rows of one message of a list, or a range of rows. */
struct run_of {
    uint64_t shard;
    bool by_rows;
    uint32_t columns;
    uint32_t at; /* the range's first row, or the rows of the list before these */
    uint32_t count;
    int64_t rows[ROWS];
    float values[2 * ROWS];
};

static wire_piece piece(int kind, uint64_t shard, uint64_t offset_bytes, uint64_t bytes)
{
    wire_piece made = WIRE_PIECE_INIT;

    made.kind = (Sumac__V1__Piece__Kind)kind;
    made.shard_id = shard;
    made.offset_bytes = offset_bytes;
    made.bytes = bytes;
    return made;
}

/* Its first push, of these runs. */
static void push(struct talk *talk, uint64_t stream, const struct run_of *runs, size_t count)
{
    uint8_t payload[RUNS_MAX * sizeof *runs];
    wire_piece pieces[2 * RUNS_MAX], *pointers[2 * RUNS_MAX];
    wire_part part = WIRE_PART_INIT;

    assert_true(count <= RUNS_MAX);
    for (const struct run_of *run = runs; run < runs + count; run++) {
        const size_t row_bytes = run->columns * sizeof *run->values;
        const size_t indices = run->by_rows ? run->count * sizeof *run->rows : 0;
        if (run->by_rows)
            pieces[part.n_pieces++] =
                piece(WIRE_PIECE_ROW_INDICES, run->shard, run->at * sizeof *run->rows, indices);
        pieces[part.n_pieces++] =
            piece(WIRE_PIECE_VALUES, run->shard, run->at * row_bytes, run->count * row_bytes);
        memcpy(payload + part.bytes, run->rows, indices);
        memcpy(payload + part.bytes + indices, run->values, run->count * row_bytes);
        part.bytes += indices + run->count * row_bytes;
    }
    for (size_t i = 0; i < part.n_pieces; i++)
        pointers[i] = &pieces[i];
    part.sequence = 1;
    part.first = part.last = part.eager = true;
    part.pieces = pointers;
    talk_push_part(talk, stream, &part, payload, part.bytes);
}

static void expect_values(struct talk *talk, uint64_t shard, const float *expected, uint32_t count)
{
    float held[2 * ROWS];

    assert_int_equal(
        lane_peek(talk->lane, shard, (uint8_t *)held, sizeof held), count * sizeof *held);
    for (uint32_t i = 0; i < count; i++)
        assert_number_equal(held[i], expected[i]);
}

static uint64_t begin(struct talk *talk, uint32_t inline_bytes)
{
    struct lane_config config = talk_config();

    config.inline_bytes = inline_bytes;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_add(talk, WIDE, ROWS, 2, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_add(talk, NARROW, ROWS, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

/* A list of no rows, lists of two shards, a range of one of them, a list again. */
static void push_runs_of_each_kind(struct talk *talk, uint32_t inline_bytes)
{
    const uint64_t stream = begin(talk, inline_bytes);
    const struct run_of runs[] = {
        {.shard = WIDE, .by_rows = true, .columns = 2},
        {NARROW, true, 1, 0, 3, {3, 1, 3}, {5, 7, 11}},
        {WIDE, true, 2, 0, 2, {11, 0}, {1, 2, 3, 4}},
        {NARROW, false, 1, 2, 2, {0}, {100, 200}},
        {NARROW, true, 1, 0, 1, {2}, {13}}};
    float wide[2 * ROWS] = {[0] = 3, [1] = 4, [22] = 1, [23] = 2};
    float narrow[ROWS] = {[1] = 7, [2] = 113, [3] = 216};

    push(talk, stream, runs, 5);

    talk_expect(talk, "staged 1\ndone 1 [1 1]\n");
    expect_values(talk, WIDE, wide, 2 * ROWS);
    expect_values(talk, NARROW, narrow, ROWS);
}

TALK_TEST(lists_and_ranges_of_one_part_are_each_applied_whole) { push_runs_of_each_kind(talk, 0); }

TALK_TEST(and_so_are_those_that_are_applied_at_once) { push_runs_of_each_kind(talk, 1u << 20); }

/* A mean is of the contributions to a step. */
TALK_TEST(rows_of_one_worker_are_divided_by_nothing)
{
    talk->aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_MEAN;
    const uint64_t stream = begin(talk, 0);
    const struct run_of run = {NARROW, true, 1, 0, 2, {4, 9}, {8, 6}};
    float narrow[ROWS] = {[4] = 8, [9] = 6};

    push(talk, stream, &run, 1);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_values(talk, NARROW, narrow, ROWS);
}

/* In any order: the second pair has those that are missing. */
TALK_TEST(a_variable_is_assigned_when_a_list_has_had_all_its_rows)
{
    const uint64_t stream = begin(talk, 0), pulls = talk_pull_stream(talk, 0);
    struct run_of runs[] = {
        {7, true, 1, 0, 3, {5, 0, 2}, {5, 10, 2}}, {7, true, 1, 3, 3, {4, 1, 3}, {4, 1, 3}}};

    talk_add(talk, 7, 6, 1, SUMAC_FLOAT32, UPDATE_ASSIGN, WIRE_INITIALIZER_ASSIGNED);
    talk_pull(talk, pulls, 1, 7, 1, 0);
    talk_forget(talk);

    push(talk, stream, runs, 2);

    talk_expect(talk, "staged 1\ndone 1 [1]\nreport assigned 7\npulled 1 [1] 10 1 2 3 4 5\n");
}

/* A reader of values and slots stops after its first message. */
static void read_small(struct talk *talk, uint32_t count)
{
    wire_piece pieces[2 * RUNS_MAX], *pointers[2 * RUNS_MAX];
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = talk_pull_stream(talk, 1), .pull_request = &pull};

    assert_true(count <= RUNS_MAX);
    for (uint32_t i = 0; i < 2 * count; i++) {
        pieces[i] = piece(i % 2 ? WIRE_PIECE_SLOT_VALUE : WIRE_PIECE_VALUES, SMALL + i / 2, 0, 0);
        pointers[i] = &pieces[i];
    }
    pull.request = 1;
    pull.pieces = pointers;
    pull.n_pieces = 2 * count;
    talk->deaf = event.stream;
    talk_step(talk, &event);
}

/* One push writes 20 small variables, rows of a table, and another small variable. The reader still
 * needs three old blocks of each small variable. The rows take places for slices, and none for old
 * blocks. */
static void push_runs_around_rows_while_all_are_read(struct talk *talk, uint32_t inline_bytes)
{
    enum { BEFORE = 20, SMALL_COUNT = BEFORE + 1 };
    const uint64_t stream = begin(talk, inline_bytes);
    struct run_of runs[BEFORE + 4];
    uint32_t count = 0;
    float narrow[ROWS];

    for (uint32_t i = 0; i < SMALL_COUNT; i++)
        talk_variable(talk, SMALL + i, 1, UPDATE_ADAM);
    read_small(talk, SMALL_COUNT);
    talk_forget(talk);
    while (count < BEFORE) {
        runs[count] = (struct run_of){.shard = SMALL + count, .columns = 1, .count = 1};
        count++;
    }
    for (uint32_t at = 0; at < 3 * ROWS; at += ROWS) {
        runs[count] = (struct run_of){NARROW, true, 1, at, ROWS, {0}, {0}};
        for (uint32_t row = 0; row < ROWS; row++) {
            runs[count].rows[row] = row;
            runs[count].values[row] = 1;
            narrow[row] = 3;
        }
        count++;
    }
    runs[count++] = (struct run_of){.shard = SMALL + BEFORE, .columns = 1, .count = 1};

    push(talk, stream, runs, count);

    assert_int_equal(talk_times_said(talk, "done 1 "), 1);
    expect_values(talk, NARROW, narrow, ROWS);
    talk_forget(talk);
}

TALK_TEST(runs_after_rows_keep_the_old_blocks_that_a_reader_needs)
{
    push_runs_around_rows_while_all_are_read(talk, 0);
}

TALK_TEST(and_so_do_those_that_are_applied_at_once)
{
    push_runs_around_rows_while_all_are_read(talk, 1u << 20);
}
