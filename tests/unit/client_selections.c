/* SPDX-License-Identifier: Apache-2.0 */
/* client_selections.c -- what a push or a pull selects of a variable besides rows: slots,
 * hyperparameters, all shards; and the versions that an answer says. */
#include "client_known.h"
#include "push.h"
#include "session_talk.h"
#include "update.h"

static void assert_refused(
    struct known *known, const struct selection *selection, enum sumac_reason reason,
    const char *text)
{
    struct sumac_error error = {0};
    const enum sumac_status status = selection->pulls || selection->function == 0
                                         ? selection_add(known->transfer, selection, &error)
                                         : selection_set(known->transfer, selection, &error);

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, reason);
    assert_string_equal(error.text, text);
    assert_int_equal(known->transfer->piece_count, 0);
}

/* ---- slots */

/* A slot of a half type is float32, too. */
TEST(a_slot_is_pulled_by_its_name)
{
    static const char *const slots[] = {"m", "v"};
    struct known known;

    know(&known);
    known.variable->function = UPDATE_ADAM;
    known.variable->dtype = SUMAC_BFLOAT16;
    known.variable->row_bytes = 8;
    const struct sumac_tensor whole = tensor(&known, 10, SUMAC_FLOAT32);
    for (uint32_t slot = 0; slot < 2; slot++) {
        const struct selection selection = {
            .variable = known.variable,
            .tensor = &whole,
            .pulls = true,
            .slot = slots[slot],
            .verb = "pull"};
        known.transfer->piece_count = 0;

        assert_int_equal(selection_add(known.transfer, &selection, NULL), SUMAC_OK);

        assert_int_equal(known.transfer->piece_count, 2);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(known.transfer->pieces[i].kind, WIRE_PIECE_SLOT_VALUE);
            assert_int_equal(known.transfer->pieces[i].slot, slot);
            assert_int_equal(known.transfer->pieces[i].bytes, i == 0 ? 96 : 64);
        }
    }
    forget(&known);
}

TEST(a_slot_that_the_function_does_not_have_is_refused)
{
    static int64_t row = 3;
    struct known known;

    know(&known);
    known.variable->function = UPDATE_ADAM;
    const struct sumac_tensor whole = tensor(&known, 10, SUMAC_FLOAT32);
    const struct sumac_tensor indices = sumac_tensor_over(&row, SUMAC_INT64, SUMAC_SHAPE(1));
    struct selection selection = {
        .variable = known.variable, .tensor = &whole, .pulls = true, .slot = "w", .verb = "pull"};

    assert_refused(
        &known, &selection, SUMAC_REASON_MISSING_SLOTS,
        "pull of slot w of w: its function adam has no such slot; sumac_client_variable_describe "
        "lists "
        "the slots");
    selection.slot = "m";
    selection.indices = &indices;
    assert_refused(
        &known, &selection, SUMAC_REASON_UNSPECIFIED,
        "pull of a slot of w by indices; give has_rows and rows, or pull all of it");
    const struct sumac_tensor half = tensor(&known, 10, SUMAC_BFLOAT16);
    known.variable->dtype = SUMAC_BFLOAT16;
    selection.indices = NULL;
    selection.tensor = &half;
    assert_refused(
        &known, &selection, SUMAC_REASON_WRONG_DATA_TYPE,
        "pull of w: expected float32, given bfloat16; a slot of a half type is float32");
    forget(&known);
}

/* ---- hyperparameters */

TEST(what_sets_hyperparameters_has_a_function_and_nothing_else)
{
    static int64_t row = 3;
    static float value[40];
    struct known known;
    struct sumac_error error = {0};
    const struct sumac_tensor none = {.memory = NULL};
    const struct sumac_tensor plain = {.memory = value};
    const struct sumac_tensor indices = sumac_tensor_over(&row, SUMAC_INT64, SUMAC_SHAPE(1));

    know(&known);
    const struct selection good = {
        .variable = known.variable, .tensor = &none, .function = 1, .verb = "push"};
    struct selection wrong = good;
    wrong.tensor = &plain;
    assert_refused(
        &known, &wrong, SUMAC_REASON_BAD_HYPERPARAMETER,
        "push of w: it sets hyperparameters and has a value: push that as another delta, before or "
        "after it");
    wrong = good;
    wrong.has_rows = true;
    wrong.rows.count = 1;
    assert_refused(
        &known, &wrong, SUMAC_REASON_BAD_HYPERPARAMETER,
        "push of w: it sets hyperparameters of some rows: they are the whole variable's");
    wrong = good;
    wrong.indices = &indices;
    assert_refused(
        &known, &wrong, SUMAC_REASON_BAD_HYPERPARAMETER,
        "push of w: it sets hyperparameters of some rows: they are the whole variable's");
    wrong = good;
    wrong.function = 0;
    assert_int_equal(selection_set(known.transfer, &wrong, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "it sets hyperparameters and names no function: give the"));

    assert_int_equal(selection_set(known.transfer, &good, NULL), SUMAC_OK);

    assert_int_equal(known.transfer->piece_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(known.transfer->pieces[i].shard_id, 5 + i);
        assert_int_equal(known.transfer->pieces[i].kind, WIRE_PIECE_HYPERPARAMETERS);
        assert_int_equal(known.transfer->pieces[i].function, 1);
    }
    forget(&known);
}

static void drop_line(void *context, const char *line) { (void)context, (void)line; }

/* t and a schedule count the pushes to each shard, and are to be the same on all. */
TEST(a_push_of_some_rows_that_is_counted_names_every_shard)
{
    static const struct sumac_schedule decay = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 7, .decay_rate = 0.5};
    static const struct sumac_function plain = {.name = "sgd"};
    static const struct sumac_function counts = {.name = "adam"};
    static const struct sumac_function decays = {.name = "sgd", .schedule = &decay};

    static const struct {
        const struct sumac_function *function;
        uint32_t pieces;
    } rows[] = {{NULL, 1}, {&plain, 1}, {&counts, 2}, {&decays, 2}};
    struct known known;
    struct talk talk;

    know(&known);
    client_note_process(&known.client);
    talk_open(&talk, 2);
    known.client.session = talk.session;
    known.client.peer_count = 2;
    known.client.wake_us = NEVER_US;
    known.client.log = drop_line;
    static int64_t index = 7;
    const struct sumac_tensor row = tensor(&known, 1, SUMAC_FLOAT32);
    const struct sumac_tensor indices = sumac_tensor_over(&index, SUMAC_INT64, SUMAC_SHAPE(1));
    client_unlock(&known.client);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        struct sumac_push *push = NULL;
        const bool by_range = i % 2 == 0;
        const struct sumac_delta delta = {
            .variable = known.variable,
            .value = row,
            .has_rows = by_range,
            .rows = {.first = 7, .count = 1},
            .indices = by_range ? NULL : &indices,
            .function = rows[i / 2].function};

        assert_int_equal(sumac_client_push(&known.client, &delta, 1, NULL, &push, NULL), SUMAC_OK);

        assert_int_equal(((struct transfer *)(void *)push)->piece_count, rows[i / 2].pieces);
    }
    client_lock(&known.client);
    known.client.session = NULL;
    talk_close(&talk);
    while (known.client.live_transfers.first != known.transfer)
        transfer_give(known.client.live_transfers.first);
    for (struct transfer *one; (one = known.client.free_transfers) != NULL;) {
        known.client.free_transfers = one->next;
        arena_deinit(&one->arena);
        free(one);
    }
    forget(&known);
}

/* ---- room */

static void count_line(void *context, const char *line)
{
    (void)line;
    ++*(uint32_t *)context;
}

/* It is said once, of one byte more. */
TEST(a_variable_that_takes_the_largest_part_is_not_too_large)
{
    struct known known;
    struct talk talk;
    uint32_t lines = 0;
    uint64_t *bytes;

    know(&known);
    bytes = &known.variable->shards[0].bytes;
    talk_open(&talk, 2);
    known.client.session = talk.session;
    known.client.log = count_line;
    known.client.log_context = &lines;
    struct session_room room = session_room(talk.session, 1, *bytes, 1);
    while (room.cost_bytes <= room.part_bytes_max)
        room = session_room(talk.session, 1, ++*bytes, 1);

    --*bytes;
    client_say_room(&known.client, known.variable);
    assert_int_equal(lines, 0);
    ++*bytes;
    client_say_room(&known.client, known.variable);
    assert_int_equal(lines, 1);
    client_say_rooms(&known.client);
    assert_int_equal(lines, 1);
    known.client.session = NULL;
    talk_close(&talk);
    forget(&known);
}

/* ---- types */

TEST(only_half_types_are_contributed_as_float32)
{
    static int32_t value[40];
    struct known known;

    know(&known);
    known.synchronous = true;
    known.variable->dtype = SUMAC_INT32;
    const struct sumac_tensor whole = sumac_tensor_over(value, SUMAC_INT32, SUMAC_SHAPE(10, 4));

    assert_int_equal(add(&known, &whole, NULL, NULL), SUMAC_OK);

    forget(&known);
}

TEST(only_floats_are_scaled)
{
    static int32_t value[40];
    struct known known;
    struct sumac_push *push = NULL;
    struct sumac_error error = {0};
    const struct sumac_push_options options = {.scale = 0.5};

    know(&known);
    client_note_process(&known.client);
    known.variable->dtype = SUMAC_INT32;
    const struct sumac_delta delta = {
        .variable = known.variable,
        .value = sumac_tensor_over(value, SUMAC_INT32, SUMAC_SHAPE(10, 4))};
    client_unlock(&known.client);

    assert_int_equal(
        sumac_client_push(&known.client, &delta, 1, &options, &push, &error),
        SUMAC_INVALID_ARGUMENT);

    client_lock(&known.client);
    assert_int_equal(error.reason, SUMAC_REASON_WRONG_DATA_TYPE);
    assert_string_equal(
        error.text, "push of w: it is of type int32, and what is scaled, or clipped by its norm, "
                    "is of a float type; push it apart");
    struct transfer *const dropped = known.client.free_transfers;
    arena_deinit(&dropped->arena);
    free(dropped);
    known.client.free_transfers = NULL;
    forget(&known);
}

TEST(the_norm_of_no_elements_is_zero)
{
    static float three = 3;
    const struct sumac_delta deltas[] = {
        {.value = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(0, 4)}},
        {.value = {.memory = &three, .dtype = SUMAC_FLOAT32}}};

    assert_true(norm_of(deltas, 1) <= 0);
    assert_true(norm_of(deltas, 2) >= 3 && norm_of(deltas, 2) <= 3);
}

/* ---- versions */

/* A ps may say fewer versions than there are pieces, and a wrong one more. */
TEST(each_version_is_that_of_its_piece)
{
    static const uint64_t versions[] = {19, 14, 77};
    struct known known;

    know(&known);
    const struct sumac_tensor whole = tensor(&known, 10, SUMAC_FLOAT32);
    const struct sumac_tensor row = tensor(&known, 1, SUMAC_FLOAT32);
    assert_int_equal(add(&known, &whole, NULL, NULL), SUMAC_OK);
    assert_int_equal(add(&known, &row, &(struct sumac_range){.first = 0, .count = 1}, NULL), 0);
    known.transfer->piece_count = 2;

    transfer_note_pulled(known.transfer, versions, 1);
    assert_int_equal(known.variable->shards[0].version, 19);
    assert_int_equal(known.variable->shards[1].version, 0);

    transfer_note_pulled(known.transfer, versions, 3);
    assert_int_equal(known.variable->shards[0].version, 19);
    assert_int_equal(known.variable->shards[1].version, 14);

    known.transfer->pieces[0].kind = WIRE_PIECE_SLOT_VALUE; /* no gradient is computed from it */
    transfer_note_pulled(known.transfer, (const uint64_t[]){21, 22}, 2);
    assert_int_equal(known.variable->shards[0].version, 19);
    assert_int_equal(known.variable->shards[1].version, 22);
    assert_int_equal(known.variable->shards[1].earlier_version, 14);
    forget(&known);
}

/* As after an epoch that began with fewer. */
TEST(a_version_that_is_not_above_the_pulled_one_is_no_staleness)
{
    struct known known;

    know(&known);
    const struct sumac_tensor whole = tensor(&known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(&known, &whole, NULL, NULL), SUMAC_OK);
    known.client.staleness_mean = -1;
    known.transfer->pieces[0].based_on = 8;
    known.transfer->pieces[1].based_on = 20;

    transfer_note_pushed(known.transfer, (const uint64_t[]){8, 19}, 2);
    assert_true(known.client.staleness_mean < 0);

    transfer_note_pushed(known.transfer, (const uint64_t[]){12, 99}, 1);
    assert_true(known.client.staleness_mean >= 3 && known.client.staleness_mean <= 3);
    forget(&known);
}
