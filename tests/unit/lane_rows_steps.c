/* SPDX-License-Identifier: Apache-2.0 */
/* lane_rows_steps.c -- synchronous contributions by rows: those of all members are taken together,
 * in worker order, and those of one row are summed. */
#include "lane_members.h"

#include "assert_number.h"
#include "half.h"

#define ROWS 6u
#define COLUMNS 2u

/* What a member pushes for its first step. */
struct rows_of {
    double weight;
    uint32_t count;
    int64_t rows[4];
    float values[4 * COLUMNS];
};

static void contribute_scaled(
    struct talk *talk, uint64_t stream, uint64_t step, const struct rows_of *rows, double scale)
{
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&indices, &values};
    wire_part part = WIRE_PART_INIT;
    uint8_t payload[sizeof rows->rows + sizeof rows->values];

    indices.shard_id = values.shard_id = VARIABLE;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.bytes = rows->count * sizeof *rows->rows;
    values.bytes = rows->count * COLUMNS * sizeof *rows->values;
    memcpy(payload, rows->rows, indices.bytes);
    memcpy(payload + indices.bytes, rows->values, values.bytes);
    part.sequence = step;
    part.previous = step - 1;
    part.first = part.last = part.synchronous = true;
    part.step = step;
    part.weight = rows->weight;
    part.scale = scale;
    part.bytes = indices.bytes + values.bytes;
    part.pieces = pieces;
    part.n_pieces = 2;
    talk_push_part(talk, stream, &part, payload, part.bytes);
    talk_commit(talk, stream, step, 0, 0);
}

static void
contribute_rows(struct talk *talk, uint64_t stream, uint64_t step, const struct rows_of *rows)
{
    contribute_scaled(talk, stream, step, rows, 0);
}

static struct members
begin_table(struct talk *talk, uint32_t members, uint32_t function, uint32_t aggregation)
{
    const struct members made = begin(talk, members);

    talk->aggregation = aggregation;
    talk_add(talk, VARIABLE, ROWS, COLUMNS, SUMAC_FLOAT32, function, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    return made;
}

static void expect_rows(struct talk *talk, const struct members *members, const float *expected)
{
    float value;

    talk_pull(talk, members->pull, 1, VARIABLE, 1, 0);
    assert_int_equal(talk->pulled_bytes, ROWS * COLUMNS * sizeof value);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        memcpy(&value, talk->pulled + i * sizeof value, sizeof value);
        assert_number_equal(value, expected[i]);
    }
    talk_forget(talk);
}

static const float a = 1e8f, b = 1.0f, c = -1e8f; /* no two orders of these have the same sum */

TALK_TEST(rows_of_all_members_are_taken_together_in_worker_order)
{
    const struct members members = begin_table(talk, 3, UPDATE_ASSIGN_ADD, SUM);
    float expected[ROWS * COLUMNS] = {0};

    contribute_rows(talk, members.push[3], 1, &(struct rows_of){1, 2, {4, 1}, {c, b, 7, 7}});
    contribute_rows(talk, members.push[2], 1, &(struct rows_of){1, 2, {4, 4}, {b, a, 0, 0}});
    contribute_rows(talk, members.push[1], 1, &(struct rows_of){1, 1, {4}, {a, c}});

    expected[1 * COLUMNS] = expected[1 * COLUMNS + 1] = 7;
    expected[4 * COLUMNS] = ((a + b) + 0) + c;
    expected[4 * COLUMNS + 1] = ((c + a) + 0) + b;
    expect_rows(talk, &members, expected);
}

TALK_TEST(a_mean_divides_by_all_weights_and_who_weighs_nothing_adds_nothing)
{
    const struct members members = begin_table(talk, 3, UPDATE_ASSIGN_ADD, MEAN);
    float expected[ROWS * COLUMNS] = {0};

    contribute_rows(talk, members.push[1], 1, &(struct rows_of){3, 1, {2}, {6, 8}});
    contribute_rows(talk, members.push[2], 1, &(struct rows_of){0, 1, {2}, {99, 99}});
    contribute_rows(talk, members.push[3], 1, &(struct rows_of){1, 2, {0, 2}, {4, 4, 2, 0}});

    expected[0] = expected[1] = 1;
    expected[2 * COLUMNS] = 2;
    expected[2 * COLUMNS + 1] = 2;
    expect_rows(talk, &members, expected);
}

TALK_TEST(a_member_without_rows_takes_part_all_the_same)
{
    const struct members members = begin_table(talk, 2, UPDATE_ASSIGN_ADD, SUM);
    float expected[ROWS * COLUMNS] = {0};

    contribute_rows(talk, members.push[1], 1, &(struct rows_of){1, 1, {5}, {1, 2}});
    contribute_rows(talk, members.push[2], 1, &(struct rows_of){.weight = 1});
    contribute_rows(talk, members.push[2], 2, &(struct rows_of){1, 1, {5}, {1, 2}});
    contribute_rows(talk, members.push[1], 2, &(struct rows_of){.weight = 1});

    expected[5 * COLUMNS] = 2;
    expected[5 * COLUMNS + 1] = 4;
    expect_rows(talk, &members, expected);
}

TALK_TEST(only_the_first_members_rows_count_where_that_is_asked_for)
{
    const struct members members = begin_table(talk, 2, UPDATE_ASSIGN, FIRST);
    float expected[ROWS * COLUMNS] = {0};

    contribute_rows(talk, members.push[2], 1, &(struct rows_of){1, 1, {3}, {9, 9}});
    contribute_rows(talk, members.push[1], 1, &(struct rows_of){1, 2, {5, 5}, {1, 1, 2, 3}});

    expected[5 * COLUMNS] = 2;
    expected[5 * COLUMNS + 1] = 3;
    expect_rows(talk, &members, expected);
}

TALK_TEST(the_first_members_rows_count_whatever_they_weigh)
{
    const struct members members = begin_table(talk, 2, UPDATE_ASSIGN, FIRST);
    float expected[ROWS * COLUMNS] = {0};

    contribute_rows(talk, members.push[2], 1, &(struct rows_of){1, 1, {3}, {9, 9}});
    contribute_rows(talk, members.push[1], 1, &(struct rows_of){0, 1, {5}, {2, 3}});

    expected[5 * COLUMNS] = 2;
    expected[5 * COLUMNS + 1] = 3;
    expect_rows(talk, &members, expected);
}

/* Before they are added; nobody else's rows are scaled by it. */
TALK_TEST(each_member_has_its_own_scale)
{
    const struct members members = begin_table(talk, 3, UPDATE_ASSIGN_ADD, MEAN);
    const struct rows_of first = {1, 2, {2, 4}, {6, 8, 16, 4}};
    const struct rows_of second = {2, 2, {2, 2}, {1, 2, 3, 4}};
    const struct rows_of third = {1, 2, {2, 0}, {5, 0, 4, 8}};
    float expected[ROWS * COLUMNS] = {0};

    contribute_scaled(talk, members.push[1], 1, &first, 0.5);
    contribute_scaled(talk, members.push[2], 1, &second, -4);
    contribute_rows(talk, members.push[3], 1, &third);

    expected[0] = 1;
    expected[1] = 2;
    expected[2 * COLUMNS] = (3 - 16 + 5) / 4.0f;
    expected[2 * COLUMNS + 1] = (4 - 24 + 0) / 4.0f;
    expected[4 * COLUMNS] = 2;
    expected[4 * COLUMNS + 1] = 0.5f;
    expect_rows(talk, &members, expected);
}

TALK_TEST(rows_beside_a_range_of_another_member_are_refused)
{
    const struct members members = begin_table(talk, 2, UPDATE_ASSIGN_ADD, SUM);
    struct talk_part range = contribution(1, (float[]){1, 1}, 2);

    contribute_rows(talk, members.push[1], 1, &(struct rows_of){1, 1, {0}, {1, 2}});
    talk_forget(talk);
    talk_part(talk, members.push[2], &range);

    talk_expect(talk, "refused 1 STEP_DIFFERS\n");
    assert_non_null(strstr(
        talk->refused, "8 bytes at 0 of shard 10 of variable v10, where that of worker 1 has rows "
                       "by index of shard 10"));
}

TALK_TEST(a_range_beside_rows_of_another_member_is_refused)
{
    const struct members members = begin_table(talk, 2, UPDATE_ASSIGN_ADD, SUM);
    const struct talk_part range = contribution(1, (float[]){1, 1}, 2);
    const struct rows_of rows = {1, 1, {0}, {1, 2}};

    talk_part(talk, members.push[1], &range);
    talk_forget(talk);
    contribute_rows(talk, members.push[2], 1, &rows);

    assert_int_equal(talk_times_said(talk, "refused 1 STEP_DIFFERS"), 1);
    assert_non_null(strstr(talk->refused, "rows by index of shard 10"));
}

/* Members send float32 to a variable of a half type, by rows as well. */
TALK_TEST(rows_of_a_half_type_are_contributed_in_float32)
{
    const struct members members = begin(talk, 2);
    uint16_t values[ROWS * COLUMNS];

    talk->aggregation = SUM;
    talk_add(
        talk, VARIABLE, ROWS, COLUMNS, SUMAC_FLOAT16, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ONES);
    talk_forget(talk);

    contribute_rows(talk, members.push[1], 1, &(struct rows_of){1, 2, {5, 2}, {8, 9, 0x1p-11f, 2}});
    contribute_rows(talk, members.push[2], 1, &(struct rows_of){1, 1, {2}, {0x1p-22f, 4}});

    talk_pull(talk, members.pull, 1, VARIABLE, 1, 0);
    assert_int_equal(talk->pulled_bytes, sizeof values);
    memcpy(values, talk->pulled, sizeof values);
    assert_int_equal(values[2 * COLUMNS], float16_of_float32(1 + 0x1p-10f));
    assert_int_equal(values[2 * COLUMNS + 1], float16_of_float32(7));
    assert_int_equal(values[0], float16_of_float32(1));
    assert_int_equal(values[5 * COLUMNS], float16_of_float32(9));
    assert_int_equal(values[5 * COLUMNS + 1], float16_of_float32(10));
}

TALK_TEST(rows_for_a_variable_that_adds_nothing_up_are_refused)
{
    const struct members members = begin_table(talk, 2, UPDATE_ASSIGN_ADD, NONE);
    const struct rows_of rows = {.weight = 1, .count = 1, .rows = {2}, .values = {1, 2}};

    contribute_rows(talk, members.push[1], 1, &rows);

    assert_int_equal(talk_times_said(talk, "refused 1 "), 1);
}
