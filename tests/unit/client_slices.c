/* SPDX-License-Identifier: Apache-2.0 */
/* client_slices.c -- rows by index: what of them each shard gets, and where each pulled row goes.
 */
#include "client_known.h"

#define COLUMNS 4u

/* Rows of "w" by index, in plain memory. */
struct slices {
    float values[8][COLUMNS]; /* row i has 10 i, 10 i + 1, … */
    struct sumac_tensor indices, tensor;
    struct selection selection;
};

static struct slices *
slice(struct slices *slices, const struct known *known, const int64_t *indices, uint64_t count)
{
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t j = 0; j < COLUMNS; j++)
            slices->values[i][j] = (float)(10 * i + j);
    slices->indices =
        sumac_tensor_over((void *)(uintptr_t)indices, SUMAC_INT64, SUMAC_SHAPE(count));
    slices->tensor = sumac_tensor_over(slices->values, SUMAC_FLOAT32, SUMAC_SHAPE(count, COLUMNS));
    slices->selection = (struct selection){
        .variable = known->variable,
        .tensor = &slices->tensor,
        .indices = &slices->indices,
        .verb = "push"};
    return slices;
}

/* A variable of rows 0 to 3, 4, and 5 to 9: the shard of row 5 is behind the one where it would be
 * if all had as many. */
static struct sumac_client_variable *learn_uneven(struct known *known)
{
    static const uint32_t first_rows[] = {0, 4, 5, 10};
    wire_shard shards[3], *list[3];
    uint64_t shape[] = {10, COLUMNS};
    wire_variable wire = WIRE_VARIABLE_INIT;

    for (uint32_t i = 0; i < 3; i++) {
        shards[i] = (wire_shard)WIRE_SHARD_INIT;
        shards[i].shard_id = 10 + i;
        shards[i].first_row = first_rows[i];
        shards[i].rows = first_rows[i + 1] - first_rows[i];
        list[i] = &shards[i];
    }
    wire.name = "uneven";
    wire.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    wire.n_shape = 2;
    wire.shape = shape;
    wire.n_shards = 3;
    wire.shards = list;
    return client_learn(&known->client, &wire);
}

static void assert_piece(
    const struct session_piece *piece, uint64_t shard_id, const int64_t *rows, uint64_t count)
{
    assert_int_equal(piece->shard_id, shard_id);
    assert_int_equal(piece->kind, WIRE_PIECE_ROW_INDICES);
    assert_int_equal(piece->bytes, count * COLUMNS * sizeof(float));
    assert_memory_equal(piece->rows, rows, count * sizeof *rows);
}

/* Rows 0 to 5 are of shard 5, the others of shard 6. */
TEST(rows_of_several_shards_are_copied_in_the_order_of_each)
{
    static const int64_t indices[] = {7, 2, 9, 5, 7};
    struct known known;
    struct slices slices;

    know(&known);
    slice(&slices, &known, indices, 5);

    assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);

    const struct session_piece *pieces = known.transfer->pieces;
    assert_int_equal(known.transfer->piece_count, 2);
    assert_piece(&pieces[0], 5, (const int64_t[]){2, 5}, 2);
    assert_piece(&pieces[1], 6, (const int64_t[]){1, 3, 1}, 3);
    const float(*first)[COLUMNS] = (const void *)pieces[0].data;
    const float(*second)[COLUMNS] = (const void *)pieces[1].data;
    static const int of_first[] = {1, 3}, of_second[] = {0, 2, 4};
    for (int i = 0; i < 2; i++)
        assert_memory_equal(first[i], slices.values[of_first[i]], sizeof first[i]);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(second[i], slices.values[of_second[i]], sizeof second[i]);
    forget(&known);
}

TEST(shards_may_have_any_number_of_rows)
{
    static const int64_t indices[] = {9, 4, 5};
    struct known known;
    struct slices slices;

    know(&known);
    slice(&slices, &known, indices, 3)->selection.variable = learn_uneven(&known);

    assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);

    const struct session_piece *pieces = known.transfer->pieces;
    assert_int_equal(known.transfer->piece_count, 2);
    assert_piece(&pieces[0], 11, (const int64_t[]){0}, 1);
    assert_piece(&pieces[1], 12, (const int64_t[]){4, 0}, 2);
    assert_memory_equal(pieces[0].data, slices.values[1], sizeof slices.values[1]);
    assert_memory_equal(pieces[1].data, slices.values[0], sizeof slices.values[0]);
    forget(&known);
}

TEST(rows_of_one_shard_are_sent_from_where_they_are)
{
    static const int64_t rows[2][3] = {{5, 0, 5}, {9, 6, 6}},
                         in_shard[2][3] = {{5, 0, 5}, {3, 0, 0}};
    struct known known;
    struct slices slices;

    know(&known);
    for (uint32_t shard = 0; shard < 2; shard++) {
        known.transfer->piece_count = 0;
        slice(&slices, &known, rows[shard], 3);

        assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);

        assert_int_equal(known.transfer->piece_count, 1);
        assert_piece(&known.transfer->pieces[0], 5 + shard, in_shard[shard], 3);
        assert_ptr_equal(known.transfer->pieces[0].data, slices.values);
        assert_int_equal(known.transfer->pieces[0].based_on, shard == 0 ? 8 : 0);
    }
    forget(&known);
}

TEST(a_push_of_no_rows_and_a_contribution_name_every_shard)
{
    static const int64_t row = 7;
    struct known known;
    struct slices slices;

    know(&known);
    for (uint32_t count = 0; count < 2; count++) {
        known.transfer->piece_count = 0;
        slice(&slices, &known, &row, count)->selection.synchronous = count > 0;

        assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);

        const struct session_piece *pieces = known.transfer->pieces;
        assert_int_equal(known.transfer->piece_count, 2);
        assert_piece(&pieces[0], 5, NULL, 0);
        assert_piece(&pieces[1], 6, (const int64_t[]){1}, count);
        assert_int_equal(pieces[0].based_on, 0); /* the shard has come to version 8 */
    }
    forget(&known);
}

static void assert_refused(
    struct known *known, const struct selection *selection, enum sumac_reason reason,
    const char *text)
{
    struct sumac_error error = {0};

    assert_int_equal(selection_add(known->transfer, selection, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, reason);
    assert_string_equal(error.text, text);
    assert_int_equal(known->transfer->piece_count, 0);
}

TEST(an_index_that_is_no_row_is_refused_with_those_that_there_are)
{
    static const int64_t beyond[] = {3, 10}, below[] = {-1};
    struct known known;
    struct slices slices;

    know(&known);
    known.client.peer_count = 2;
    for (int pulls = 0; pulls < 2; pulls++) {
        slice(&slices, &known, beyond, 2)->selection.pulls = pulls;
        assert_refused(
            &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
            "push of row 10 of w (index 1 of 2): its rows are 0 to 9");
        slice(&slices, &known, below, 1)->selection.pulls = pulls;
        assert_refused(
            &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
            "push of row -1 of w (index 0 of 1): its rows are 0 to 9");
    }
    forget(&known);
}

TEST(indices_are_a_vector_of_int64_in_place_of_a_range)
{
    static const int64_t row = 3;
    struct known known;
    struct slices slices;

    know(&known);
    slice(&slices, &known, &row, 1)->indices.dtype = SUMAC_INT32;
    for (int pulls = 0; pulls < 2; pulls++) {
        slices.selection.pulls = pulls;
        assert_refused(
            &known, &slices.selection, SUMAC_REASON_WRONG_DATA_TYPE,
            "push of w: indices are int64 of one axis, given int32 of shape [1]");
    }
    slice(&slices, &known, &row, 1)->indices.shape = SUMAC_SHAPE(1, 1);
    assert_refused(
        &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
        "push of w: indices are int64 of one axis, given int64 of shape [1, 1]");
    slice(&slices, &known, &row, 1)->selection.has_rows = true;
    assert_refused(
        &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
        "push of w by index and by range: give one of them");
    slice(&slices, &known, &row, 1)->indices.offset_bytes = 8;
    assert_refused(
        &known, &slices.selection, SUMAC_REASON_UNSPECIFIED,
        "push of w: the tensor is over plain memory, and its offset_bytes is 8; move the pointer, "
        "or use sumac_tensor_slice_rows");
    slice(&slices, &known, &row, 1)->tensor.shape.extent[0] = 2;
    assert_refused(
        &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
        "push of w: expected shape [1, 4], given [2, 4]");
    known.variable->shape.rank = 0;
    slice(&slices, &known, &row, 1);
    assert_refused(
        &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
        "push of w by index, which is a scalar");
    forget(&known);
}

/* A ps keeps rows that come by index in blocks of whole rows. */
TEST(a_row_by_index_has_1_mib_at_most)
{
    static const int64_t row = 3;
    static uint8_t values[1048576];
    struct known known;
    struct slices slices;

    know(&known);
    slice(&slices, &known, &row, 1);
    known.variable->shape.extent[1] = sizeof values / sizeof(float);
    known.variable->row_bytes = sizeof values;
    slices.tensor = sumac_tensor_over(values, SUMAC_FLOAT32, SUMAC_SHAPE(1, 262144));

    assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);

    known.transfer->piece_count = 0;
    known.variable->row_bytes++;
    assert_refused(
        &known, &slices.selection, SUMAC_REASON_WRONG_SHAPE,
        "push of w by index: its rows have 1048577 bytes, and 1048576 are the most; give ranges");
    forget(&known);
}

/* As a double their last row's number is their count: its shard would be one behind the last. */
TEST(the_last_of_very_many_rows_without_bytes_is_of_the_last_shard)
{
    static const int64_t last = (INT64_C(1) << 60) - 1;
    struct known known;
    struct slices slices;

    know(&known);
    slice(&slices, &known, &last, 1);
    known.variable->rows = (uint64_t)last + 1;
    known.variable->row_bytes = 0;
    known.variable->shape = SUMAC_SHAPE((uint64_t)last + 1, 0);
    known.variable->shards[0].rows = known.variable->shards[1].first_row = UINT64_C(1) << 59;
    known.variable->shards[1].rows = UINT64_C(1) << 59;
    slices.tensor.shape = SUMAC_SHAPE(1, 0);

    for (int pulls = 0; pulls < 2; pulls++) {
        slices.selection.pulls = pulls;
        assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);
        assert_int_equal(known.transfer->piece_count, 0);
    }
    forget(&known);
}

/* ---- pulls */

/* What its ps answer, from that piece on: of row i of the variable 100 i, 100 i + 1, … */
static void answer(const struct transfer *transfer, uint32_t first)
{
    for (uint32_t i = first; i < transfer->piece_count; i++) {
        const struct session_piece *piece = &transfer->pieces[i];
        float *into = (void *)(uintptr_t)piece->data;
        for (uint64_t row = 0; row < piece->bytes / piece->row_bytes; row++)
            for (uint32_t j = 0; j < COLUMNS; j++)
                *into++ = (float)(100 * (piece->rows[row] + (piece->shard_id == 6 ? 6 : 0)) + j);
    }
}

static void assert_rows(const struct slices *slices, const int64_t *indices, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < COLUMNS; j++)
            assert_int_equal((int64_t)slices->values[i][j], 100 * indices[i] + j);
}

TEST(each_row_is_pulled_once_and_goes_wherever_its_index_stands)
{
    static const int64_t some[] = {7, 2, 9, 7, 5, 2, 7, 6}, others[] = {8, 0};
    struct known known;
    struct slices first, second, none, whole;
    float all[10][COLUMNS];

    know(&known);
    known.client.peer_count = 2;
    slice(&first, &known, some, 8)->selection.pulls = true;
    slice(&second, &known, others, 2)->selection.pulls = true;
    slice(&none, &known, NULL, 0)->selection.pulls = true;
    slice(&whole, &known, NULL, 0)->selection.pulls = true;
    whole.selection.indices = NULL;
    whole.tensor = sumac_tensor_over(all, SUMAC_FLOAT32, SUMAC_SHAPE(10, COLUMNS));

    assert_int_equal(selection_add(known.transfer, &whole.selection, NULL), SUMAC_OK);
    assert_int_equal(selection_add(known.transfer, &first.selection, NULL), SUMAC_OK);
    assert_int_equal(selection_add(known.transfer, &none.selection, NULL), SUMAC_OK);
    assert_int_equal(selection_add(known.transfer, &second.selection, NULL), SUMAC_OK);

    const struct session_piece *pieces = known.transfer->pieces + 2;
    assert_int_equal(known.transfer->piece_count, 6);
    assert_piece(&pieces[0], 5, (const int64_t[]){2, 5}, 2);
    assert_piece(&pieces[1], 6, (const int64_t[]){1, 3, 0}, 3);
    assert_piece(&pieces[2], 5, (const int64_t[]){0}, 1);
    assert_piece(&pieces[3], 6, (const int64_t[]){2}, 1);
    answer(known.transfer, 2); /* behind those of the whole */
    slices_give(known.transfer);
    assert_rows(&first, some, 8);
    assert_rows(&second, others, 2);
    assert_int_equal((int64_t)second.values[2][0], 20); /* behind the last: as it was */
    forget(&known);
}

/* Some of them may have come. */
TEST(a_pull_that_fails_leaves_the_callers_rows_as_they_were)
{
    static const int64_t some[] = {7, 2};
    const struct sumac_error deleted = {
        .status = SUMAC_NOT_FOUND, .reason = SUMAC_REASON_UNKNOWN_VARIABLE};
    struct known known;
    struct slices slices;

    know(&known);
    client_note_process(&known.client);
    known.client.peer_count = 2;
    slice(&slices, &known, some, 2)->selection.pulls = true;
    assert_int_equal(selection_add(known.transfer, &slices.selection, NULL), SUMAC_OK);
    answer(known.transfer, 0);
    transfer_fail(known.transfer, &deleted);
    client_unlock(&known.client);

    assert_int_equal(transfer_wait(known.transfer, "pull", 1, NULL), SUMAC_NOT_FOUND);

    client_lock(&known.client);
    assert_int_equal((int64_t)slices.values[0][0], 0);
    assert_int_equal((int64_t)slices.values[1][0], 10);
    known.transfer = transfer_take(&known.client);
    forget(&known);
}

/* With every number of bytes until there are enough. */
TEST(rows_for_which_there_is_no_memory_are_refused)
{
    static const int64_t indices[] = {7, 2, 9, 7};
    struct known known;
    struct slices slices;
    struct sumac_error error = {0};

    know(&known);
    known.client.peer_count = 2;
    for (int pulls = 0; pulls < 2; pulls++) {
        enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
        size_t bytes = 0;
        slice(&slices, &known, indices, 4)->selection.pulls = pulls;
        for (; status != SUMAC_OK && bytes < 4096; bytes += 16) {
            arena_reset_to(&known.transfer->arena, bytes);
            known.transfer->piece_count = known.transfer->piece_capacity = 0;
            known.transfer->gathered = NULL;

            status = selection_add(known.transfer, &slices.selection, &error);

            assert_true(status == SUMAC_OK || status == SUMAC_RESOURCE_EXHAUSTED);
            assert_string_equal(error.text, "no memory for a push of w");
        }
        assert_int_equal(status, SUMAC_OK);
        assert_int_equal(known.transfer->piece_count, 2);
        if (!pulls) /* row 2 alone is of the first shard */
            assert_memory_equal(
                known.transfer->pieces[0].data, slices.values[1], sizeof slices.values[1]);
        assert_true(bytes > 256);
    }
    forget(&known);
}
