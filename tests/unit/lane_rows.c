/* SPDX-License-Identifier: Apache-2.0 */
/* lane_rows.c -- pushes by rows: any order, repeated, in as many messages as one likes; what is
 * wrong with them is refused, and nothing changes. */
#include <stdio.h>
#include <stdlib.h>

#include "assert_number.h"
#include "lane_talk.h"

#define TABLE 5u
#define OTHER 6u
#define ROWS 20u
#define COLUMNS 3u
#define MESSAGES_MAX 8u
#define PUSHED_MAX 8192u

/* A push by rows of one table, or of two. */
struct rows_push {
    uint64_t sequence, table, columns, step;
    double weight, scale;
    double clip;       /* the function's clip_value; 0: none */
    uint32_t function; /* 0: the table's own */
    const int64_t *rows;
    const float *values; /* (count, columns) */
    uint32_t count;
    uint32_t together; /* rows of a message; 0: all */
};

static uint64_t begin_with(struct talk *talk, uint32_t function, struct lane_config config)
{
    config.staging_bytes_max = 4u << 22;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_add(talk, TABLE, ROWS, COLUMNS, SUMAC_FLOAT32, (uint32_t)function, WIRE_INITIALIZER_ZEROS);
    talk_add(talk, OTHER, ROWS, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk, uint32_t function)
{
    return begin_with(talk, function, talk_config());
}

/* Indices, then values, of rows first … first + count - 1 of the push, in one message. */
static void send_some(
    struct talk *talk, uint64_t stream, const struct rows_push *push, uint32_t first,
    uint32_t count)
{
    static uint8_t payload[PUSHED_MAX * (sizeof(int64_t) + COLUMNS * sizeof(float))];
    const size_t row_bytes = push->columns * sizeof(float);
    wire_function named = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&named};
    wire_hyperparameter clip = WIRE_HYPERPARAMETER_INIT, *clips[] = {&clip};
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&indices, &values};
    wire_part part = WIRE_PART_INIT;

    clip.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_CLIP_VALUE;
    clip.value = push->clip;
    named.hyperparameters = clips;
    named.n_hyperparameters = push->clip > 0;
    named.function = (Sumac__V1__UpdateFunction)push->function;
    indices.shard_id = values.shard_id = push->table;
    indices.function = values.function = push->function != 0;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.offset_bytes = first * sizeof(int64_t);
    indices.bytes = count * sizeof(int64_t);
    values.offset_bytes = first * row_bytes;
    values.bytes = count * row_bytes;
    part.sequence = push->sequence;
    part.first = first == 0;
    part.last = first + count == push->count;
    if (part.first) {
        part.previous = push->sequence - 1;
        part.eager = push->step == 0;
        part.bytes = push->count * (sizeof(int64_t) + row_bytes);
        part.synchronous = push->step != 0;
        part.step = push->step;
        part.weight = push->weight;
        part.scale = push->scale;
        part.functions = functions;
        part.n_functions = push->function != 0;
    }
    part.pieces = pieces;
    part.n_pieces = 2;
    memcpy(payload, push->rows + first, indices.bytes);
    memcpy(payload + indices.bytes, push->values + first * push->columns, values.bytes);
    talk_push_part(talk, stream, &part, payload, indices.bytes + values.bytes);
}

static void send(struct talk *talk, uint64_t stream, const struct rows_push *push)
{
    const uint32_t together = push->together == 0 ? push->count : push->together;
    uint32_t first = 0;

    do {
        const uint32_t left = push->count - first;
        send_some(talk, stream, push, first, left < together ? left : together);
        first += together;
    } while (first < push->count);
}

static void expect_values(struct talk *talk, uint64_t table, const float *expected, uint32_t count)
{
    const uint64_t stream = talk_pull_stream(talk, 0);
    float value;

    talk_forget(talk);
    talk_pull(talk, stream, 99, table, 1, 0);
    assert_int_equal(talk->pulled_bytes, count * sizeof(float));
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&value, talk->pulled + i * sizeof value, sizeof value);
        assert_number_equal(value, expected[i]);
    }
    talk_hang_up(talk, stream);
    talk_forget(talk);
}

TALK_TEST(rows_come_in_any_order_and_the_others_stay)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_SUB);
    float expected[ROWS * COLUMNS] = {0};

    send(
        talk, stream,
        &(struct rows_push){
            .sequence = 1,
            .table = TABLE,
            .columns = COLUMNS,
            .count = 3,
            .rows = (int64_t[]){7, 2, 19},
            .values = (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}});

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    for (uint32_t i = 0; i < COLUMNS; i++) {
        expected[7 * COLUMNS + i] = -(float)(1 + i);
        expected[2 * COLUMNS + i] = -(float)(4 + i);
        expected[19 * COLUMNS + i] = -(float)(7 + i);
    }
    expect_values(talk, TABLE, expected, ROWS * COLUMNS);
}

/* What momentum makes of one gradient. */
static void apply_momentum(float *value, float *slot, float gradient)
{
    *slot = 0.9f * *slot + gradient;
    *value = *value - 0.01f * *slot;
}

TALK_TEST(repeated_rows_are_summed_in_their_order_before_the_function_sees_them)
{
    const uint64_t stream = begin(talk, UPDATE_MOMENTUM);
    const float a = 1e8f, b = 1.0f, c = -1e8f; /* no two orders of these have the same sum */
    float expected[ROWS * COLUMNS] = {0}, slots[ROWS * COLUMNS] = {0};
    const float sums[] = {(a + b) + c, (c + a) + b, (a + c) + b};

    for (uint32_t together = 1; together <= 4; together++)
        send(
            talk, stream,
            &(struct rows_push){
                .sequence = together,
                .table = TABLE,
                .columns = COLUMNS,
                .count = 4,
                .together = together,
                .rows = (int64_t[]){4, 9, 4, 4},
                .values = (float[]){a, c, a, 1, 1, 1, b, a, c, c, b, b}});

    talk_expect(
        talk, "staged 1\ndone 1 [1]\nstaged 2\ndone 2 [2]\nstaged 3\ndone 3 [3]\nstaged 4\n"
              "done 4 [4]\n");
    for (uint32_t push = 0; push < 4; push++) {
        for (uint32_t i = 0; i < COLUMNS; i++) {
            apply_momentum(&expected[4 * COLUMNS + i], &slots[4 * COLUMNS + i], sums[i]);
            apply_momentum(&expected[9 * COLUMNS + i], &slots[9 * COLUMNS + i], 1);
        }
    }
    expect_values(talk, TABLE, expected, ROWS * COLUMNS);
}

/* Row 4 occurs twice, and what is clipped is its sum; row 9 occurs once. */
TALK_TEST(what_rows_sum_up_to_is_scaled_then_clipped)
{
    const uint64_t stream = begin(talk, UPDATE_MOMENTUM);
    float expected[ROWS * COLUMNS] = {0}, slots[ROWS * COLUMNS] = {0};

    for (uint32_t together = 1; together <= 3; together++)
        send(
            talk, stream,
            &(struct rows_push){
                .sequence = together,
                .table = TABLE,
                .columns = COLUMNS,
                .function = UPDATE_MOMENTUM,
                .scale = -0.5,
                .clip = 2,
                .count = 3,
                .together = together,
                .rows = (int64_t[]){4, 9, 4},
                .values = (float[]){3, 8, -1, 1, 9, -9, -1, 8, -1}});
    send(
        talk, stream, /* neither */
        &(struct rows_push){
            .sequence = 4,
            .table = TABLE,
            .columns = COLUMNS,
            .count = 1,
            .rows = (int64_t[]){9},
            .values = (float[]){1, 9, -9}});

    for (uint32_t push = 0; push < 3; push++) {
        for (uint32_t i = 0; i < COLUMNS; i++) {
            apply_momentum(
                &expected[4 * COLUMNS + i], &slots[4 * COLUMNS + i], (float[]){-1, -2, 1}[i]);
            apply_momentum(
                &expected[9 * COLUMNS + i], &slots[9 * COLUMNS + i], (float[]){-0.5f, -2, 2}[i]);
        }
    }
    for (uint32_t i = 0; i < COLUMNS; i++)
        apply_momentum(&expected[9 * COLUMNS + i], &slots[9 * COLUMNS + i], (float[]){1, 9, -9}[i]);
    expect_values(talk, TABLE, expected, ROWS * COLUMNS);
}

TALK_TEST(of_several_assigned_to_one_row_the_last_wins)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN);
    float expected[ROWS * COLUMNS] = {0};

    for (uint32_t together = 1; together <= 4; together++)
        send(
            talk, stream,
            &(struct rows_push){
                .sequence = together,
                .table = TABLE,
                .columns = COLUMNS,
                .count = 4,
                .together = together,
                .rows = (int64_t[]){4, 9, 4, 9},
                .values = (float[]){1, 1, 1, 2, 2, 2, 3, 3, (float)together, 4, 4, 4}});

    for (uint32_t i = 0; i < COLUMNS; i++) {
        expected[4 * COLUMNS + i] = i == 2 ? 4 : 3;
        expected[9 * COLUMNS + i] = 4;
    }
    expect_values(talk, TABLE, expected, ROWS * COLUMNS);
}

/* Its second moment would shrink each time. */
TALK_TEST(adam_leaves_the_slots_of_other_rows_alone_and_counts_pushes)
{
    const uint64_t stream = begin(talk, UPDATE_ADAM);
    float lazily[ROWS * COLUMNS], value;

    send(
        talk, stream, /* t = 1 */
        &(struct rows_push){
            .sequence = 1,
            .table = TABLE,
            .columns = COLUMNS,
            .count = 1,
            .rows = (int64_t[]){0},
            .values = (float[]){1, 1, 1}});
    for (uint64_t sequence = 2; sequence <= 4; sequence++)
        send(
            talk, stream,
            &(struct rows_push){
                .sequence = sequence,
                .table = TABLE,
                .columns = COLUMNS,
                .count = 1,
                .rows = (int64_t[]){1},
                .values = (float[]){1, 1, 1}});
    const uint64_t pulls = talk_pull_stream(talk, 0);
    talk_pull(talk, pulls, 1, TABLE, 1, 0);
    memcpy(lazily, talk->pulled, sizeof lazily);
    send(
        talk, stream, /* t = 5, and row 0 has m and v as after t = 1 */
        &(struct rows_push){
            .sequence = 5,
            .table = TABLE,
            .columns = COLUMNS,
            .count = 1,
            .rows = (int64_t[]){0},
            .values = (float[]){0, 0, 0}});
    talk_pull(talk, pulls, 2, TABLE, 1, 0);

    const double m = 0.1 * 0.9, v = 0.001 * 0.999, beta_1 = (double)0.9f, beta_2 = (double)0.999f;
    double beta_1_t = 1, beta_2_t = 1;
    for (uint32_t t = 0; t < 5; t++) {
        beta_1_t *= beta_1;
        beta_2_t *= beta_2;
    }
    const double step =
        0.001 * __builtin_sqrt(1 - beta_2_t) / (1 - beta_1_t) * m / (__builtin_sqrt(v) + 1e-7);
    memcpy(&value, talk->pulled, sizeof value);
    /* a few roundings of float32 */
    assert_true(value < lazily[0]);
    assert_true(__builtin_fabs((double)(lazily[0] - value) - step) < 1e-5 * step + 1e-9);
    memcpy(&value, talk->pulled + COLUMNS * sizeof value, sizeof value);
    assert_number_equal(value, lazily[COLUMNS]);
}

/* The plain loop: sums, then adds. */
static void apply_plainly(float *table, const struct rows_push *push)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t column = 0; column < push->columns; column++) {
            float sum = 0;
            bool occurs = false;
            for (uint32_t i = 0; i < push->count; i++) {
                if (push->rows[i] != row)
                    continue;
                const float value = push->values[i * push->columns + column];
                sum = occurs ? sum + value : value;
                occurs = true;
            }
            if (occurs)
                table[row * push->columns + column] += sum;
        }
    }
}

/* Random pushes, in messages of any size, beside readers that hold what was there, are what a plain
 * loop makes of them. */
static void push_at_random(struct talk *talk, uint32_t inline_bytes)
{
    struct lane_config config = talk_config();
    static int64_t rows[PUSHED_MAX];
    static float values[PUSHED_MAX * COLUMNS];
    float expected[ROWS * COLUMNS] = {0};
    uint32_t random = 1;

    config.records = true;
    config.inline_bytes = inline_bytes;
    const uint64_t stream = begin_with(talk, UPDATE_ASSIGN_ADD, config);
    talk->disk_is_quick = true;
    const uint64_t reader = talk_pull_stream(talk, 0);
    for (uint64_t sequence = 1; sequence <= 60; sequence++) {
        random = random * 1664525u + 1013904223u;
        struct rows_push push = {
            .sequence = sequence,
            .table = TABLE,
            .columns = COLUMNS,
            .rows = rows,
            .values = values};
        push.count = sequence % 10 == 0 ? 600 : (random >> 8) % 50;
        push.together = 1 + (random >> 16) % 20;
        for (uint32_t i = 0; i < push.count; i++) {
            random = random * 1664525u + 1013904223u;
            rows[i] = (random >> 10) % ROWS;
            for (uint32_t column = 0; column < COLUMNS; column++) {
                random = random * 1664525u + 1013904223u;
                values[i * COLUMNS + column] = (float)(int32_t)random / 65536.0f;
            }
        }
        talk->deaf = sequence % 3 == 0 ? reader : 0; /* its view stays open */
        talk_pull(talk, reader, sequence, TABLE, 1, 0);
        send(talk, stream, &push);
        apply_plainly(expected, &push);
        if (talk->deaf != 0)
            talk_writable(talk, reader);
        talk->deaf = 0;
        talk_forget(talk);
    }
    talk_hang_up(talk, reader);
    expect_values(talk, TABLE, expected, ROWS * COLUMNS);
}

TALK_TEST(any_pushes_are_what_a_plain_loop_makes_of_them)
{
    push_at_random(talk, 64); /* vector work is given out */
}

TALK_TEST(and_so_are_those_that_are_applied_at_once) { push_at_random(talk, 1u << 20); }

/* More of one row than one batch of slices takes: its sum is carried from one to the next. */
TALK_TEST(a_row_may_be_repeated_thousands_of_times)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);
    static int64_t rows[PUSHED_MAX];
    static float values[PUSHED_MAX];
    float expected[ROWS] = {0};

    for (uint32_t i = 0; i < PUSHED_MAX; i++) {
        rows[i] = i % 16 == 0 ? 3 : 11;
        values[i] = 1.0f / (float)(1 + i);
    }
    const struct rows_push push = {
        .sequence = 1,
        .table = OTHER,
        .columns = 1,
        .count = PUSHED_MAX,
        .rows = rows,
        .values = values,
        .together = 5000};

    send(talk, stream, &push);

    apply_plainly(expected, &push);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_values(talk, OTHER, expected, ROWS);
}

/* A part is staged in chunks of 1 MiB. The indices of the last message begin in the first chunk. */
TALK_TEST(indices_go_on_in_the_next_chunk)
{
    enum { TOGETHER = 7300, COUNT = 8 * TOGETHER };
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);
    static int64_t rows[COUNT];
    static float values[COUNT * COLUMNS];
    float expected[ROWS * COLUMNS] = {0};

    for (uint32_t i = 0; i < COUNT; i++) {
        rows[i] = i / (COUNT / ROWS);
        values[i * COLUMNS] = 1;
        expected[rows[i] * COLUMNS]++;
    }

    send(
        talk, stream,
        &(struct rows_push){
            .sequence = 1,
            .table = TABLE,
            .columns = COLUMNS,
            .count = COUNT,
            .rows = rows,
            .values = values,
            .together = TOGETHER});

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_values(talk, TABLE, expected, ROWS * COLUMNS);
}

/* ---- refused ---- */

static void expect_refused(
    struct talk *talk, uint64_t stream, const struct rows_push *push, const char *reason,
    const char *text)
{
    char said[128];

    talk_forget(talk);
    send(talk, stream, push);

    (void)snprintf(
        said, sizeof said, "refused %u %s\ndone %u voided\n", (unsigned)push->sequence, reason,
        (unsigned)push->sequence);
    talk_expect(talk, said);
    if (strstr(talk->refused, text) == NULL)
        print_error("refused: %s\n", talk->refused);
    assert_non_null(strstr(talk->refused, text));
}

TALK_TEST(a_row_outside_is_refused_with_both_values_and_nothing_changes)
{
    const uint64_t stream = begin(talk, UPDATE_MOMENTUM);
    const float nothing[ROWS * COLUMNS] = {0};
    const int64_t outside[] = {ROWS, -1, INT64_MAX, INT64_MIN};
    const char *const said[] = {
        "row 20 of shard 5 of variable v5, which has 20 rows", "row -1 of shard 5",
        "row 9223372036854775807 of", "row -9223372036854775808 of"};

    for (uint32_t i = 0; i < 4; i++)
        expect_refused(
            talk, stream,
            &(struct rows_push){
                .sequence = 1 + i,
                .table = TABLE,
                .columns = COLUMNS,
                .count = 2,
                .together = 1,
                .rows = (int64_t[]){1, outside[i]},
                .values = (float[]){1, 1, 1, 1, 1, 1}},
            "WRONG_SHAPE", said[i]);
    assert_string_equal(talk->expected, "0 to 19");
    assert_string_equal(talk->given, "-9223372036854775808");

    expect_values(talk, TABLE, nothing, ROWS * COLUMNS);
}

TALK_TEST(values_of_other_rows_than_were_named_are_refused)
{
    const uint64_t stream = begin(talk, UPDATE_MOMENTUM);
    const float nothing[ROWS * COLUMNS] = {0};

    expect_refused(/* rows of two columns */
                   talk, stream,
                   &(struct rows_push){
                       .sequence = 1,
                       .table = TABLE,
                       .columns = 2,
                       .count = 3,
                       .rows = (int64_t[]){1, 2, 3},
                       .values = (float[]){1, 1, 1, 1, 1, 1}},
                   "WRONG_SHAPE",
                   "3 row indices, and 24 bytes of values at 0: they are to be 36 at 0");

    expect_values(talk, TABLE, nothing, ROWS * COLUMNS);
}

TALK_TEST(scaled_rows_of_integers_are_refused)
{
    const uint64_t stream = begin(talk, UPDATE_MOMENTUM);

    talk_add(talk, 9, ROWS, 1, SUMAC_INT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);

    expect_refused(
        talk, stream,
        &(struct rows_push){
            .sequence = 1,
            .table = 9,
            .columns = 1,
            .scale = 2,
            .count = 1,
            .rows = (int64_t[]){1},
            .values = (float[]){1}},
        "WRONG_DATA_TYPE", "push 1 has scale 2, and variable v9 is of type int32");
}

TALK_TEST(what_is_not_finite_is_refused)
{
    const uint64_t stream = begin(talk, UPDATE_MOMENTUM);
    const float nothing[ROWS * COLUMNS] = {0};

    expect_refused(
        talk, stream,
        &(struct rows_push){
            .sequence = 1,
            .table = TABLE,
            .columns = COLUMNS,
            .count = 2,
            .rows = (int64_t[]){1, 2},
            .values = (float[]){1, 1, 1, 1, __builtin_inff(), 1}},
        "NON_FINITE", "is not finite");

    expect_values(talk, TABLE, nothing, ROWS * COLUMNS);
}

/* Pieces as they should not come: each a part of its own. */
static void send_odd(
    struct talk *talk, uint64_t stream, uint64_t sequence, const wire_piece *given, size_t count)
{
    static const uint8_t payload[256];
    wire_piece copies[4], *pieces[4];
    wire_part part = WIRE_PART_INIT;

    part.sequence = sequence;
    part.previous = sequence - 1;
    part.first = part.last = part.eager = true;
    for (size_t i = 0; i < count; i++) {
        copies[i] = given[i];
        pieces[i] = &copies[i];
        part.bytes += given[i].bytes;
    }
    part.pieces = pieces;
    part.n_pieces = count;
    talk_push_part(talk, stream, &part, payload, part.bytes);
}

static wire_piece piece(int kind, uint64_t shard, uint64_t offset_bytes, uint64_t bytes)
{
    wire_piece made = WIRE_PIECE_INIT;

    made.kind = (Sumac__V1__Piece__Kind)kind;
    made.shard_id = shard;
    made.offset_bytes = offset_bytes;
    made.bytes = bytes;
    return made;
}

TALK_TEST(pieces_that_are_no_pairs_are_refused)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);
    const int indices = WIRE_PIECE_ROW_INDICES, values = WIRE_PIECE_VALUES;

    const struct {
        wire_piece pieces[3];
        size_t count;
        const char *reason, *text;
    } odd[] = {
        {{piece(indices, TABLE, 0, 16)}, 1, "MALFORMED", "2 row indices without their values"},
        {{piece(indices, TABLE, 0, 8), piece(indices, TABLE, 8, 8)},
         2,
         "MALFORMED",
         "1 row indices without their values"},
        {{piece(indices, TABLE, 0, 12), piece(values, TABLE, 0, 12)},
         2,
         "WRONG_SHAPE",
         "12 bytes of row indices: an index is an int64"},
        {{piece(indices, TABLE, 0, 0)}, 1, "MALFORMED", "0 row indices without their values"},
        {{piece(values, TABLE, 0, 12), piece(indices, TABLE, 8, 8)},
         2,
         "WRONG_SHAPE",
         "row indices at 8 of their list, and those before end at 0"},
        {{piece(indices, TABLE, 8, 8), piece(values, TABLE, 12, 12)},
         2,
         "WRONG_SHAPE",
         "row indices at 8 of their list, and those before end at 0"},
        {{piece(indices, TABLE, 0, 8), piece(values, OTHER, 0, 4)},
         2,
         "MALFORMED",
         "row indices for shard 5, function 0, and next to them values for shard 6"},
        {{piece(indices, TABLE, 0, 8), piece(values, TABLE, 12, 12)},
         2,
         "WRONG_SHAPE",
         "12 bytes of values at 12: they are to be 12 at 0"},
        {{piece(indices, 77, 0, 8), piece(values, 77, 0, 12)}, 2, "UNKNOWN_SHARD", "no shard 77"},
    };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char said[128];
        send_odd(talk, stream, 1 + i, odd[i].pieces, odd[i].count);
        (void)snprintf(
            said, sizeof said, "refused %zu %s\ndone %zu voided\n", 1 + i, odd[i].reason, 1 + i);
        talk_expect(talk, said);
        if (strstr(talk->refused, odd[i].text) == NULL)
            print_error("refused: %s\n", talk->refused);
        assert_non_null(strstr(talk->refused, odd[i].text));
    }
}

/* They would begin a list of their own. */
TALK_TEST(indices_that_go_on_for_another_function_are_refused)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);
    struct rows_push push = {
        .sequence = 1,
        .table = TABLE,
        .columns = COLUMNS,
        .count = 2,
        .rows = (int64_t[]){1, 2},
        .values = (float[2 * COLUMNS]){1},
        .function = UPDATE_ASSIGN_SUB};

    send_some(talk, stream, &push, 0, 1);
    push.function = 0; /* the table's own */
    send_some(talk, stream, &push, 1, 1);

    talk_expect(talk, "refused 1 WRONG_SHAPE\ndone 1 voided\n");
    assert_non_null(strstr(talk->refused, "row indices at 8 of their list, and those before end"));
}

/* `count` rows in one message: a list of two pairs, the first of `first` rows. */
static void
send_pairs(struct talk *talk, uint64_t stream, uint64_t sequence, uint32_t count, uint32_t first)
{
    const uint32_t rest = count - first;
    wire_piece pieces[] = {
        piece(WIRE_PIECE_ROW_INDICES, OTHER, 0, first * sizeof(int64_t)),
        piece(WIRE_PIECE_VALUES, OTHER, 0, first * sizeof(float)),
        piece(WIRE_PIECE_ROW_INDICES, OTHER, first * sizeof(int64_t), rest * sizeof(int64_t)),
        piece(WIRE_PIECE_VALUES, OTHER, first * sizeof(float), rest * sizeof(float))};
    wire_piece *pointers[] = {&pieces[0], &pieces[1], &pieces[2], &pieces[3]};
    wire_part part = WIRE_PART_INIT;
    uint8_t *payload = calloc(count, sizeof(int64_t) + sizeof(float));

    part.sequence = sequence;
    part.previous = sequence - 1;
    part.first = part.last = part.eager = true;
    part.bytes = count * (sizeof(int64_t) + sizeof(float));
    part.pieces = pointers;
    part.n_pieces = rest == 0 ? 2 : 4;
    talk_push_part(talk, stream, &part, payload, part.bytes);
    free(payload);
}

/* More than a step can put in order, at once or together. */
TALK_TEST(a_message_has_so_many_rows_at_most)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);
    const uint32_t count = UPDATE_ROWS_TOGETHER_MAX + 1;

    send_pairs(talk, stream, 1, count, count);
    talk_expect(talk, "refused 1 TOO_MANY_PIECES\ndone 1 voided\n");
    send_pairs(talk, stream, 2, count, count / 2);
    talk_expect(talk, "refused 2 TOO_MANY_PIECES\ndone 2 voided\n");
}

TALK_TEST(a_row_wider_than_a_block_is_refused)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);

    talk_add(talk, 9, 4, 9, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    send_odd(
        talk, stream, 1,
        (wire_piece[]){piece(WIRE_PIECE_ROW_INDICES, 9, 0, 8), piece(WIRE_PIECE_VALUES, 9, 0, 36)},
        2);

    talk_expect(talk, "refused 1 WRONG_SHAPE\ndone 1 voided\n");
    assert_non_null(strstr(talk->refused, "has rows of 36 bytes, and those of at most 32"));
    talk_add(talk, 10, 4, 8, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    send_odd(
        talk, stream, 2,
        (wire_piece[]){
            piece(WIRE_PIECE_ROW_INDICES, 10, 0, 8), piece(WIRE_PIECE_VALUES, 10, 0, 32)},
        2);
    talk_expect(talk, "staged 2\ndone 2 [1]\n"); /* as wide as a block is allowed */
}

TALK_TEST(a_table_without_columns_has_rows_all_the_same)
{
    const uint64_t stream = begin(talk, UPDATE_ASSIGN_ADD);

    talk_add(talk, 9, 4, 0, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    send_odd(
        talk, stream, 1,
        (wire_piece[]){piece(WIRE_PIECE_ROW_INDICES, 9, 0, 8), piece(WIRE_PIECE_VALUES, 9, 0, 0)},
        2);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}
