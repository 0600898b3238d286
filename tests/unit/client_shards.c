/* SPDX-License-Identifier: Apache-2.0 */
/* client_shards.c -- rows of a variable to pieces of its shards, the versions that they are based
 * on, and the layouts that are believed. */
#include "client_known.h"
#include "function.h"
#include "session_talk.h"

/* ---- rows to pieces */

KNOWN_TEST(a_whole_variable_has_a_piece_for_each_shard)
{
    const struct sumac_tensor whole = tensor(known, 10, SUMAC_FLOAT32);

    assert_int_equal(add(known, &whole, NULL, NULL), SUMAC_OK);

    const struct session_piece *pieces = known->transfer->pieces;
    const uint8_t *data = sumac_buffer_data(known->buffer);
    assert_int_equal(known->transfer->piece_count, 2);
    assert_int_equal(pieces[0].ps, 1);
    assert_int_equal(pieces[0].shard_id, 5);
    assert_int_equal(pieces[0].based_on, 8);
    assert_int_equal(pieces[0].layout_epoch, 4);
    assert_int_equal(pieces[0].bytes, 96);
    assert_int_equal(pieces[1].ps, 0);
    assert_int_equal(pieces[1].bytes, 64);
    assert_int_equal(pieces[1].offset_bytes, 0);
    assert_ptr_equal(pieces[1].data, data + 96);
}

KNOWN_TEST(rows_are_split_where_the_shards_meet)
{
    const struct sumac_tensor rows = tensor(known, 3, SUMAC_FLOAT32);

    assert_int_equal(
        add(known, &rows, &(struct sumac_range){.first = 5, .count = 3}, NULL), SUMAC_OK);

    const struct session_piece *pieces = known->transfer->pieces;
    assert_int_equal(known->transfer->piece_count, 2);
    assert_int_equal(pieces[0].offset_bytes, 80); /* row 5 of the first shard */
    assert_int_equal(pieces[0].bytes, 16);
    assert_int_equal(pieces[1].offset_bytes, 0); /* row 6 is row 0 of the second */
    assert_int_equal(pieces[1].bytes, 32);
    assert_ptr_equal(pieces[1].data, (uint8_t *)sumac_buffer_data(known->buffer) + 16);
}

/* One row of the second shard; in `by_range` as rows, else by its index. */
static const struct session_piece *
add_one_row(struct known *known, bool every_shard, bool by_range, uint32_t *piece_count)
{
    static int64_t index = 7;
    const struct sumac_tensor row = tensor(known, 1, SUMAC_FLOAT32);
    const struct sumac_tensor indices = sumac_tensor_over(&index, SUMAC_INT64, SUMAC_SHAPE(1));
    const struct selection selection = {
        .variable = known->variable,
        .tensor = &row,
        .has_rows = by_range,
        .rows = {.first = by_range ? 7 : 0, .count = by_range},
        .indices = by_range ? NULL : &indices,
        .every_shard = every_shard,
        .verb = "push"};
    const uint32_t before = known->transfer->piece_count;

    assert_int_equal(selection_add(known->transfer, &selection, NULL), SUMAC_OK);
    *piece_count = known->transfer->piece_count - before;
    return known->transfer->pieces + before;
}

KNOWN_TEST(some_rows_name_their_shards_alone)
{
    uint32_t count;

    for (int by_range = 0; by_range < 2; by_range++) {
        const struct session_piece *pieces = add_one_row(known, false, by_range, &count);

        assert_int_equal(count, 1);
        assert_int_equal(pieces[0].shard_id, 6);
        assert_int_equal(pieces[0].bytes, 16);
    }
}

KNOWN_TEST(some_rows_of_a_variable_that_counts_name_every_shard)
{
    uint32_t count;

    for (int by_range = 0; by_range < 2; by_range++) {
        const struct session_piece *pieces = add_one_row(known, true, by_range, &count);

        assert_int_equal(count, 2);
        assert_int_equal(pieces[0].shard_id, 5);
        assert_int_equal(pieces[0].bytes, 0);
        assert_int_equal(pieces[0].offset_bytes, 0);
        assert_int_equal(pieces[0].based_on, 0); /* the shard has come to version 8 */
        assert_int_equal(pieces[0].kind, by_range ? WIRE_PIECE_VALUES : WIRE_PIECE_ROW_INDICES);
        assert_int_equal(pieces[1].shard_id, 6);
        assert_int_equal(pieces[1].offset_bytes, by_range ? 16 : 0);
        assert_int_equal(pieces[1].bytes, 16);
    }
}

KNOWN_TEST(a_tensor_of_another_type_is_refused_by_the_variables_name)
{
    struct sumac_error error;

    const struct sumac_tensor wrong = tensor(known, 10, SUMAC_INT32);

    assert_int_equal(add(known, &wrong, NULL, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_WRONG_DATA_TYPE);
    assert_string_equal(error.text, "push of w: expected float32, given int32");
}

KNOWN_TEST(a_half_type_contributes_float32)
{
    struct sumac_error error;

    const struct sumac_tensor wide = tensor(known, 10, SUMAC_FLOAT32);
    const struct sumac_tensor half = tensor(known, 10, SUMAC_BFLOAT16);
    known->variable->dtype = SUMAC_BFLOAT16;
    known->variable->row_bytes = 8;
    assert_int_equal(add(known, &wide, NULL, NULL), SUMAC_INVALID_ARGUMENT);
    known->synchronous = true;

    assert_int_equal(add(known, &half, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(add(known, &wide, NULL, NULL), SUMAC_OK);

    assert_string_equal(
        error.text, "push of w: expected float32, given bfloat16; a synchronous push of a half "
                    "type is float32");
    assert_int_equal(known->transfer->piece_count, 2);
    assert_int_equal(known->transfer->pieces[0].bytes, 96); /* six rows of float32 */
}

KNOWN_TEST(a_tensor_of_another_shape_is_refused_by_the_variables_name)
{
    struct sumac_error error;

    const struct sumac_tensor wrong = tensor(known, 9, SUMAC_FLOAT32);

    assert_int_equal(add(known, &wrong, NULL, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_WRONG_SHAPE);
    assert_string_equal(error.text, "push of w: expected shape [10, 4], given [9, 4]");
}

KNOWN_TEST(rows_past_the_end_are_refused)
{
    struct sumac_error error;

    const struct sumac_tensor rows = tensor(known, 3, SUMAC_FLOAT32);

    assert_int_equal(
        add(known, &rows, &(struct sumac_range){.first = 8, .count = 3}, &error),
        SUMAC_OUT_OF_RANGE);
    assert_int_equal(
        add(known, &rows, &(struct sumac_range){.first = UINT64_MAX, .count = 3}, &error),
        SUMAC_OUT_OF_RANGE);

    assert_int_equal(known->transfer->piece_count, 0);
}

KNOWN_TEST(a_tensor_that_ends_past_its_buffer_is_refused)
{
    struct sumac_error error = {0};
    struct sumac_tensor values = tensor(known, 10, SUMAC_FLOAT32);

    values.offset_bytes = 16;

    assert_int_equal(add(known, &values, NULL, &error), SUMAC_OUT_OF_RANGE);

    assert_non_null(strstr(error.text, "160 bytes begin at byte 16 of a buffer of 160"));
}

KNOWN_TEST(pulled_versions_are_what_the_next_push_is_based_on)
{
    const uint64_t versions[] = {9, 4};

    const struct sumac_tensor whole = tensor(known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(known, &whole, NULL, NULL), SUMAC_OK);

    transfer_note_pulled(known->transfer, versions, 2);
    known->transfer->piece_count = 0;
    assert_int_equal(add(known, &whole, NULL, NULL), SUMAC_OK);

    assert_int_equal(known->transfer->pieces[0].based_on, 9);
    assert_int_equal(known->transfer->pieces[1].based_on, 4);
}

KNOWN_TEST(staleness_is_what_others_pushed_between_a_pull_and_a_push)
{
    const uint64_t versions[] = {11, 21};

    struct sumac_error error;
    const struct sumac_tensor values = tensor(known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(known, &values, NULL, &error), SUMAC_OK);
    known->client.staleness_mean = -1;
    known->transfer->pieces[0].based_on = 8;  /* 9 and 10 are others', 11 is this push */
    known->transfer->pieces[1].based_on = 20; /* of this push alone */

    transfer_note_pushed(known->transfer, versions, 2);

    assert_true(known->client.staleness_mean == 1);
}

/* ---- versions, functions */

KNOWN_TEST(a_push_may_be_based_on_the_pull_before_the_last)
{
    const uint64_t first[] = {9, 4}, second[] = {12, 5};

    const struct sumac_tensor whole = tensor(known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(known, &whole, NULL, NULL), SUMAC_OK);
    transfer_note_pulled(known->transfer, first, 2);
    transfer_note_pulled(known->transfer, second, 2);
    known->transfer->piece_count = 0;

    const struct selection earlier = {
        .variable = known->variable, .tensor = &whole, .verb = "push", .earlier_pull = true};
    assert_int_equal(selection_add(known->transfer, &earlier, NULL), SUMAC_OK);

    assert_int_equal(known->transfer->pieces[0].based_on, 9);
    assert_int_equal(known->transfer->pieces[1].based_on, 4);
}

static void drop_line(void *context, const char *line) { (void)context, (void)line; }

/* A ps takes 256 of them with a part; a worker has more variables than that. */
KNOWN_TEST(a_function_of_several_deltas_is_named_once)
{
    struct talk talk;
    struct sumac_push *push = NULL;
    static const struct sumac_function add_it = {.name = "assign_add"},
                                       take = {.name = "assign_sub"};

    client_note_process(&known->client);
    talk_open(&talk, 2);
    known->client.session = talk.session;
    known->client.peer_count = 2;
    known->client.wake_us = NEVER_US;
    known->client.log = drop_line;
    const struct sumac_tensor whole = tensor(known, 10, SUMAC_FLOAT32);
    struct sumac_delta deltas[5];
    const struct sumac_function *const functions[5] = {&add_it, &add_it, NULL, &add_it, &take};
    for (int i = 0; i < 5; i++)
        deltas[i] = (struct sumac_delta){
            .variable = known->variable, .value = whole, .function = functions[i]};

    client_unlock(&known->client);
    assert_int_equal(sumac_client_push(&known->client, deltas, 5, NULL, &push, NULL), SUMAC_OK);
    client_lock(&known->client);

    static const uint32_t expected[5] = {1, 1, 0, 1, 2}; /* 0: the variable's own */
    struct transfer *const transfer = (struct transfer *)(void *)push;
    assert_int_equal(transfer->piece_count, 10);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(transfer->pieces[2 * i].function, expected[i]);
        assert_int_equal(transfer->pieces[2 * i + 1].function, expected[i]);
    }
    known->client.session = NULL;
    talk_close(&talk);
    transfer_give(transfer);
    arena_deinit(&transfer->arena);
    free(transfer);
}

/* A piece without bytes for each shard, whatever is pushed beside it; a norm is of values. */
KNOWN_TEST(what_sets_hyperparameters_is_of_all_shards)
{
    struct talk talk;
    struct sumac_push *push = NULL;
    struct sumac_error error = {0};
    const struct sumac_schedule decay = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 7, .decay_rate = 0.5};
    const struct sumac_function sgd = {.name = "sgd", .schedule = &decay};
    const struct sumac_push_options clipped = {.clip_norm = 1};

    client_note_process(&known->client);
    talk_open(&talk, 2);
    known->client.session = talk.session;
    known->client.peer_count = 2;
    known->client.wake_us = NEVER_US;
    known->client.log = drop_line;
    const struct sumac_tensor whole = tensor(known, 10, SUMAC_FLOAT32);
    struct sumac_delta deltas[] = {
        {.variable = known->variable, .function = &sgd, .sets_hyperparameters = true},
        {.variable = known->variable, .value = whole}};

    client_unlock(&known->client);
    assert_int_equal(sumac_client_push(&known->client, deltas, 2, &clipped, &push, NULL), SUMAC_OK);
    deltas[0].value = whole;
    struct sumac_push *none = NULL;
    assert_int_equal(
        sumac_client_push(&known->client, deltas, 2, NULL, &none, &error), SUMAC_INVALID_ARGUMENT);
    client_lock(&known->client);

    assert_non_null(strstr(error.text, "and has a value"));
    assert_true(known->variable->every_shard); /* whatever its rows, each push counts */
    struct transfer *const transfer = (struct transfer *)(void *)push;
    assert_int_equal(transfer->piece_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct session_piece *piece = &transfer->pieces[i];
        assert_int_equal(piece->kind, i < 2 ? WIRE_PIECE_HYPERPARAMETERS : WIRE_PIECE_VALUES);
        assert_int_equal(piece->bytes == 0, i < 2);
        assert_int_equal(piece->function, i < 2);
    }
    wire_function *encoded = NULL;
    assert_int_equal(
        function_encode(&known->client, &sgd, &transfer->arena, &encoded, NULL), SUMAC_OK);
    assert_int_equal(encoded->schedule->decay_steps, 7);
    known->client.session = NULL;
    talk_close(&talk);
    transfer_give(transfer);
    for (struct transfer *one; (one = known->client.free_transfers) != NULL;) {
        known->client.free_transfers = one->next; /* that of the refused push, too */
        arena_deinit(&one->arena);
        free(one);
    }
}

/* ---- rows that are pulled by index */

/* Pull rows of "w" beside other rows of each ps. */
static enum sumac_status
pull_rows_beside(uint64_t of_ps_0, uint64_t of_ps_1, const int64_t *rows, uint64_t count)
{
    static const int64_t some[1];
    struct known known;
    struct sumac_buffer *buffer;
    const uint64_t others[] = {of_ps_0, of_ps_1};

    know(&known);
    known.client.peer_count = 2;
    const struct sumac_tensor whole = tensor(&known, count, SUMAC_FLOAT32);
    assert_int_equal(sumac_buffer_create(count * sizeof *rows, &buffer), SUMAC_OK);
    memcpy(sumac_buffer_data(buffer), rows, count * sizeof *rows);
    const struct sumac_tensor indices = {
        .buffer = buffer, .dtype = SUMAC_INT64, .shape = SUMAC_SHAPE(count)};
    const struct selection selection = {
        .variable = known.variable,
        .tensor = &whole,
        .indices = &indices,
        .pulls = true,
        .verb = "pull"};
    for (uint32_t ps = 0; ps < 2; ps++)
        *transfer_add_piece(known.transfer, &selection, &known.variable->shards[0]) =
            (struct session_piece){.ps = ps, .rows = some, .row_bytes = 1, .bytes = others[ps]};
    const enum sumac_status status = slices_ask(known.transfer, &selection, NULL);
    sumac_buffer_unref(buffer);
    forget(&known);
    return status;
}

/* Rows 0 to 5 are on ps 1, the others on ps 0. */
TEST(each_ps_is_asked_for_as_many_rows_as_it_takes_of_one_pull)
{
    const uint64_t most = WIRE_PULL_ROWS_MAX;
    static const int64_t rows[] = {1, 7, 8, 4, 9};

    assert_int_equal(pull_rows_beside(most - 3, most - 2, rows, 5), SUMAC_OK);
    assert_int_equal(pull_rows_beside(most - 2, 0, rows, 5), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(pull_rows_beside(0, most - 1, rows, 5), SUMAC_INVALID_ARGUMENT);
}

/* ---- layouts */

/* Of a vector of ten, whose rows are split like that. */
static void assert_not_believed(const wire_shard *shards, size_t count)
{
    struct sumac_client client = {0};
    wire_shard *list[4];
    uint64_t shape[] = {10};
    wire_variable wire = WIRE_VARIABLE_INIT;

    for (size_t i = 0; i < count; i++)
        list[i] = (wire_shard *)(uintptr_t)&shards[i];
    wire.name = "w";
    wire.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    wire.n_shape = 1;
    wire.shape = shape;
    wire.n_shards = count;
    wire.shards = list;
    client_lock(&client);

    assert_null(client_learn(&client, &wire));

    client_unlock(&client);
}

/* More than there can be, as of a ps of another release: nothing is written behind the shape. */
TEST(a_shape_of_very_many_axes_is_not_believed)
{
    static uint64_t extents[4096];
    struct sumac_client client = {0};
    wire_shard shard = WIRE_SHARD_INIT, *shards[] = {&shard};
    wire_variable wire = WIRE_VARIABLE_INIT;

    shard.rows = extents[0] = 1;
    wire.name = "w";
    wire.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    wire.n_shape = sizeof extents / sizeof extents[0];
    wire.shape = extents;
    wire.n_shards = 1;
    wire.shards = shards;
    client_lock(&client);

    assert_null(client_learn(&client, &wire));

    client_unlock(&client);
}

TEST(a_layout_with_a_gap_is_not_believed)
{
    wire_shard shard = WIRE_SHARD_INIT;

    shard.rows = 9;
    assert_not_believed(&shard, 1);
}

/* The second shard ends before it begins, and the third has all rows again: the sum of all is
 * right. */
TEST(a_layout_that_wraps_around_is_not_believed)
{
    wire_shard shards[3] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT, WIRE_SHARD_INIT};

    shards[0].rows = 2;
    shards[1].first_row = 2;
    shards[1].rows = UINT64_MAX - 1;
    shards[2].rows = 10;
    assert_not_believed(shards, 3);
}

/* Its bytes would wrap around: memory for it, and what is pulled into that, would be too small. */
TEST(a_shape_of_more_bytes_than_there_are_is_not_believed)
{
    struct sumac_client client = {0};
    uint64_t extents[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    wire_shard shard = WIRE_SHARD_INIT;

    shard.rows = extents[0];
    wire_shard *shards[] = {&shard};
    wire_variable wire = WIRE_VARIABLE_INIT;
    wire.name = "w";
    wire.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    wire.n_shape = 2;
    wire.shape = extents;
    wire.n_shards = 1;
    wire.shards = shards;

    client_lock(&client);
    assert_null(client_learn(&client, &wire));
    client_unlock(&client);
    client_forget_variables(&client);
}

/* Two rows, and then those from the fourth on: there are as many as there should be. */
TEST(a_layout_that_leaves_a_row_out_is_not_believed)
{
    wire_shard shards[2] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT};

    shards[0].rows = 2;
    shards[1].first_row = 3;
    shards[1].rows = 8;
    assert_not_believed(shards, 2);
    shards[1].first_row = 1; /* and one that has a row twice */
    assert_not_believed(shards, 2);
    shards[1].first_row = 2;
    shards[1].ps = SESSION_PS_MAX; /* and one on a ps that there cannot be */
    assert_not_believed(shards, 2);
}

KNOWN_TEST(a_variable_that_was_made_again_is_another)
{
    wire_shard shard = WIRE_SHARD_INIT, *shards[] = {&shard};
    wire_variable wire = WIRE_VARIABLE_INIT;

    shard.rows = 1;
    wire.name = "w";
    wire.variable_id = 4;
    wire.data_type = (Sumac__V1__DataType)SUMAC_INT8;
    wire.n_shards = 1;
    wire.shards = shards;

    struct sumac_client_variable *const again = client_learn(&known->client, &wire);

    assert_ptr_not_equal(again, known->variable);
    assert_true(known->variable->deleted);
    assert_int_equal(again->dtype, SUMAC_INT8);
    assert_int_equal(again->row_bytes, 1); /* of a scalar: all of it */
    assert_ptr_equal(client_learn(&known->client, &wire), again);
    wire.every_shard = true; /* it has a schedule by now, which an older answer does not know */
    assert_true(client_learn(&known->client, &wire)->every_shard);
    wire.every_shard = false;
    assert_true(client_learn(&known->client, &wire)->every_shard);
}

/* ---- what is refused */

static void assert_refused(struct known *known, const struct selection *selection, const char *text)
{
    struct sumac_error error = {0};

    assert_int_equal(selection_add(known->transfer, selection, &error), SUMAC_INVALID_ARGUMENT);
    if (strstr(error.text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
    assert_int_equal(known->transfer->piece_count, 0);
}

KNOWN_TEST(memory_that_cannot_be_read_is_refused)
{
    struct sumac_buffer *far = NULL;
    static float memory[40];

    struct sumac_tensor values = tensor(known, 10, SUMAC_FLOAT32);
    const struct selection selection = {
        .variable = known->variable, .tensor = &values, .verb = "push"};
    values.buffer = NULL;
    assert_refused(known, &selection, "push of w: the tensor has no memory");
    values.memory = memory;
    values.offset_bytes = 4;
    assert_refused(known, &selection, "over plain memory, and its offset_bytes is 4");
    assert_int_equal(
        sumac_buffer_wrap(
            memory, sizeof memory, (struct sumac_place){SUMAC_PLACE_CUDA, 0}, NULL, NULL, &far),
        SUMAC_OK);
    values = tensor(known, 10, SUMAC_FLOAT32);
    values.buffer = far;
    assert_refused(known, &selection, "in a device's memory; copy it to the host first");
    sumac_buffer_unref(far);
    values = tensor(known, 10, SUMAC_FLOAT32);
    values.offset_bytes = 1000; /* behind the buffer's end */
    assert_int_equal(selection_add(known->transfer, &selection, NULL), SUMAC_OUT_OF_RANGE);

    values = (struct sumac_tensor){
        .memory = memory, .dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(10, 4)};
    assert_int_equal(selection_add(known->transfer, &selection, NULL), SUMAC_OK);
    assert_ptr_equal(known->transfer->pieces[1].data, &memory[24]);
}

KNOWN_TEST(a_variable_that_is_none_or_anothers_or_has_no_rows_is_refused)
{
    const struct sumac_tensor values = tensor(known, 10, SUMAC_FLOAT32);
    struct selection selection = {.index = 3, .tensor = &values, .verb = "pull"};

    assert_refused(known, &selection, "pull: item 3 has no variable");
    struct sumac_client_variable *const w = known->variable;
    selection.variable = w;
    struct sumac_client other = {0};
    w->client = &other;
    assert_refused(known, &selection, "pull of w: the variable is another client's");
    w->client = &known->client;
    selection.has_rows = true;
    selection.rows = (struct sumac_range){.first = 0, .count = 1};
    w->shape.rank = 0;
    assert_refused(known, &selection, "pull of rows of w, which is a scalar");
}

/* ---- many pieces, many pushes */

KNOWN_TEST(pieces_and_their_shards_are_kept_when_there_are_many)
{
    uint64_t versions[40];

    const struct sumac_tensor row = tensor(known, 1, SUMAC_FLOAT32);
    for (uint64_t i = 0; i < 40; i++) { /* rows 0 … 9, four times */
        const struct sumac_range rows = {.first = i % 10, .count = 1};
        assert_int_equal(add(known, &row, &rows, NULL), SUMAC_OK);
        versions[i] = 100 + i;
    }

    for (uint64_t i = 0; i < 40; i++) {
        assert_int_equal(known->transfer->pieces[i].ps, i % 10 < 6);
        assert_int_equal(
            known->transfer->pieces[i].offset_bytes, 16 * (i % 10 - (i % 10 < 6 ? 0 : 6)));
    }
    transfer_note_pulled(known->transfer, versions, 40);
    assert_int_equal(known->variable->shards[0].version, 135);
    assert_int_equal(known->variable->shards[1].version, 139);
}

KNOWN_TEST(a_mean_staleness_forgets_slowly_and_leaves_out_what_was_not_pulled)
{
    const struct sumac_tensor values = tensor(known, 10, SUMAC_FLOAT32);

    assert_int_equal(add(known, &values, NULL, NULL), SUMAC_OK);
    known->client.staleness_mean = 1;
    known->transfer->pieces[0].based_on = 10;
    known->transfer->pieces[1].based_on = 0; /* it was never pulled */

    transfer_note_pushed(known->transfer, (const uint64_t[]){44, 999}, 2); /* 33 others' */
    assert_true(known->client.staleness_mean == 2);

    known->transfer->pieces[0].based_on = 0;
    transfer_note_pushed(known->transfer, (const uint64_t[]){45, 1000}, 2);
    assert_true(known->client.staleness_mean == 2);
}

/* ---- transfers that are taken again */

/* A pull that had gathered rows, an end and an error gives its place to a push. */
KNOWN_TEST(a_transfer_that_is_taken_again_is_as_a_new_one)
{
    struct gathered_values rows;
    const struct sumac_error late = {.status = SUMAC_DEADLINE_EXCEEDED};

    const struct sumac_tensor values = tensor(known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(known, &values, NULL, NULL), SUMAC_OK); /* given */
    struct transfer *const used = known->transfer;
    used->gathered = &rows;
    used->ends_us = 1;
    used->synchronous = true;
    assert_int_equal(sumac_buffer_create(1, &used->kept), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(1, &used->joined), SUMAC_OK);
    transfer_fail(used, &late);
    transfer_give(used);

    known->transfer = transfer_take(&known->client); /* when */

    assert_ptr_equal(known->transfer, used); /* then */
    assert_int_equal(used->piece_count + used->piece_capacity, 0);
    assert_null(used->pieces);
    assert_null(used->gathered);
    assert_null(used->kept);
    assert_null(used->joined);
    assert_false(used->over || used->synchronous);
    assert_int_equal(used->ends_us, 0);
    assert_int_equal(used->error.status, SUMAC_OK);
}
