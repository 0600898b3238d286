/* SPDX-License-Identifier: Apache-2.0 */
/* lane_short_push.c -- pushes to a lane of which each take of memory fails once. */
#include <stdio.h>

#include "lane_scarce.h"

#define VARIABLE 5u
#define ELEMENTS 40u /* more than a block: vector work apart */

static const float values[ELEMENTS] = {1};

static void add_one(struct scarce *scarce)
{
    talk_variable(scarce->talk, VARIABLE, ELEMENTS, UPDATE_ASSIGN_ADD);
}

static void push_and_commit(struct scarce *scarce)
{
    struct talk *const talk = scarce->talk;
    const uint64_t stream = scarce_push(scarce, 1);
    struct talk_part part = scarce_part(scarce, VARIABLE, values, ELEMENTS);

    part.eager = false;
    part.function = UPDATE_ASSIGN_SUB;
    talk_part(talk, stream, &part);
    talk_commit(talk, stream, scarce->number, 0, scarce->number - 1);
}

TEST(a_push_is_applied_or_refused_and_the_next_one_is_applied)
{
    scarce_each_take(&(struct scarce_conversation){
        .prepare = add_one,
        .say = push_and_commit,
        .answers = {{"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

/* ---- of many shards ---- */

#define SHARDS 12u
#define SHARD_ELEMENTS 9u /* each begins aligned, so one of them lies in two chunks */

static const float many[SHARDS * SHARD_ELEMENTS] = {1};

static void add_many(struct scarce *scarce)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        talk_variable(scarce->talk, VARIABLE + i, SHARD_ELEMENTS, UPDATE_ASSIGN_ADD);
}

static void push_many(struct scarce *scarce)
{
    struct talk_part part = scarce_part(scarce, VARIABLE, many, SHARD_ELEMENTS);

    part.shards = SHARDS;
    talk_part(scarce->talk, scarce_push(scarce, 1), &part);
}

TEST(a_push_of_many_shards_is_applied_or_refused_and_the_next_one_is_applied)
{
    scarce_each_take(&(struct scarce_conversation){
        .prepare = add_many,
        .say = push_many,
        .answers = {{"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

/* ---- that shares its message ---- */

#define BEHIND 30u

/* Push 1 names many shards, and push 2 one more. */
static void push_both(struct talk *talk, uint64_t stream)
{
    static const float behind[] = {1, 2, 3, 4};
    wire_part parts[] = {WIRE_PART_INIT, WIRE_PART_INIT}, *both[] = {&parts[0], &parts[1]};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    uint8_t payload[sizeof many + sizeof behind];

    for (uint32_t i = 0; i <= SHARDS; i++) {
        talk->pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        talk->pieces[i].shard_id = i < SHARDS ? VARIABLE + i : BEHIND;
        talk->pieces[i].bytes = i < SHARDS ? sizeof many / SHARDS : sizeof behind;
        talk->piece_pointers[i] = &talk->pieces[i];
    }
    for (uint32_t i = 0; i < 2; i++) {
        parts[i].first = parts[i].last = true;
        parts[i].sequence = 1 + i;
        parts[i].previous = i;
        parts[i].weight = 1;
        parts[i].pieces = i == 0 ? talk->piece_pointers : talk->piece_pointers + SHARDS;
        parts[i].n_pieces = i == 0 ? SHARDS : 1;
        parts[i].bytes = i == 0 ? sizeof many : sizeof behind;
    }
    memcpy(payload, many, sizeof many);
    memcpy(payload + sizeof many, behind, sizeof behind);
    request.parts = both;
    request.n_parts = 2;
    talk_push(talk, stream, &request, payload, sizeof payload);
}

/* Push 2 is applied whatever becomes of push 1. Returns the takes. */
static uint64_t push_both_scarcely(uint64_t failing, bool *refused)
{
    static const float expected[] = {1, 2, 3, 4};
    float held[4];
    void *state;

    assert_int_equal(talk_setup(&state), 0);
    struct talk *const talk = state;
    talk_start(talk, NULL);
    talk_open(talk, 1);
    add_many(&(struct scarce){.talk = talk});
    talk_variable(talk, BEHIND, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    each_take_begin(failing);
    push_both(talk, stream);
    const uint64_t takes = each_take_end();
    *refused = talk_times_said(talk, "refused 1 OUT_OF_MEMORY\n") > 0;
    assert_true(*refused || talk_times_said(talk, "refused 1 ") == 0);
    if (*refused && talk_times_said(talk, "staged 2\n") > 0) {
        talk_commit(talk, stream, 2, 1, 0);
        assert_int_equal(lane_peek(talk->lane, BEHIND, (uint8_t *)held, sizeof held), sizeof held);
        assert_memory_equal(held, expected, sizeof held);
    }
    assert_int_equal(talk_teardown(&state), 0);
    return takes;
}

TEST(a_push_behind_one_that_there_is_no_memory_for_has_its_own_bytes)
{
    uint32_t refused_times = 0;
    uint64_t failing = 0, takes;
    bool refused;

    do {
        each_take_reset();
        takes = push_both_scarcely(++failing, &refused);
        refused_times += refused;
    } while (failing <= takes);

    assert_true(refused_times > 2);
}

/* ---- that is refused ---- */

static void push_with_another_checksum(struct scarce *scarce)
{
    struct talk_part part = scarce_part(scarce, VARIABLE, values, ELEMENTS);

    part.checksum = 1;
    talk_part(scarce->talk, scarce_push(scarce, 1), &part);
}

TEST(a_push_that_is_refused_is_refused_with_any_memory)
{
    scarce_each_take(&(struct scarce_conversation){
        .prepare = add_one,
        .say = push_with_another_checksum,
        .answers = {{"refused # MALFORMED\n", {"refused # OUT_OF_MEMORY\n"}}, {"done # voided\n"}},
        .pushes = 1});
}

/* ---- by rows ---- */

#define ROWS 30u
#define COLUMNS 3u
#define PUSHED 9u

static void add_table(struct scarce *scarce)
{
    talk_add(
        scarce->talk, VARIABLE, ROWS, COLUMNS, SUMAC_FLOAT32, UPDATE_ASSIGN_SUB,
        WIRE_INITIALIZER_ZEROS);
}

/* Rows first … first + count - 1 of the push, by a function with a setting. */
static void push_some_rows(struct scarce *scarce, uint32_t first, uint32_t count)
{
    static const int64_t rows[PUSHED] = {29, 3, 3, 0, 17, 5, 29, 1, 2};
    uint8_t payload[PUSHED * (sizeof(int64_t) + COLUMNS * sizeof(float))];
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT, *rates[] = {&rate};
    wire_function named = WIRE_FUNCTION_INIT, *functions[] = {&named};
    wire_piece indices = WIRE_PIECE_INIT, deltas = WIRE_PIECE_INIT, *pieces[] = {&indices, &deltas};
    wire_part part = WIRE_PART_INIT, *parts[] = {&part};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE;
    rate.value = 0.5;
    named.function = (Sumac__V1__UpdateFunction)UPDATE_SGD;
    named.hyperparameters = rates;
    named.n_hyperparameters = 1;
    indices.shard_id = deltas.shard_id = VARIABLE;
    indices.function = deltas.function = 1;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.offset_bytes = first * sizeof(int64_t);
    indices.bytes = count * sizeof(int64_t);
    deltas.offset_bytes = (uint64_t)first * COLUMNS * sizeof(float);
    deltas.bytes = (uint64_t)count * COLUMNS * sizeof(float);
    part.sequence = scarce->number;
    part.first = first == 0;
    part.last = first + count == PUSHED;
    if (part.first) {
        part.previous = scarce->number - 1;
        part.bytes = sizeof payload;
        part.weight = 1;
        part.functions = functions;
        part.n_functions = 1;
    }
    part.pieces = pieces;
    part.n_pieces = 2;
    request.parts = parts;
    request.n_parts = 1;
    memcpy(payload, rows + first, indices.bytes);
    memcpy(payload + indices.bytes, values, deltas.bytes);
    talk_push(
        scarce->talk, scarce_push(scarce, 1), &request, payload, indices.bytes + deltas.bytes);
}

/* In two messages. */
static void push_rows(struct scarce *scarce)
{
    push_some_rows(scarce, 0, PUSHED / 2);
    push_some_rows(scarce, PUSHED / 2, PUSHED - PUSHED / 2);
    talk_commit(scarce->talk, scarce_push(scarce, 1), scarce->number, 0, scarce->number - 1);
}

TEST(a_push_by_rows_is_applied_or_refused_and_the_next_one_is_applied)
{
    scarce_each_take(&(struct scarce_conversation){
        .prepare = add_table,
        .say = push_rows,
        .answers = {{"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

/* ---- synchronous steps ---- */

static void two_members(struct talk *talk, struct lane_config *config)
{
    (void)config;
    talk->step_members = 2;
}

static void one_of_two(struct talk *talk, struct lane_config *config)
{
    (void)config;
    talk->step_members = 2;
    talk->quorum = 1;
}

static void add_mean(struct scarce *scarce)
{
    scarce->talk->aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_MEAN;
    talk_variable(scarce->talk, VARIABLE, ELEMENTS, UPDATE_ASSIGN_ADD);
}

static void contribute(struct scarce *scarce, uint32_t session)
{
    const uint64_t stream = scarce_push(scarce, session);
    struct talk_part part = scarce_part(scarce, VARIABLE, values, ELEMENTS);

    part.eager = false;
    part.step = scarce->number;
    talk_part(scarce->talk, stream, &part);
    talk_commit(scarce->talk, stream, scarce->number, 0, scarce->number - 1);
}

static void contribute_both(struct scarce *scarce)
{
    contribute(scarce, 1);
    contribute(scarce, 2);
}

TEST(a_step_is_over_though_a_contribution_is_refused)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = two_members,
        .prepare = add_mean,
        .say = contribute_both,
        .answers = {{"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

static void take_the_first(struct scarce *scarce) { talk_take(scarce->talk, scarce->number, "1"); }

/* ps 0 knows that session 1 has come, and takes the step with it alone. */
static void contribute_early_and_late(struct scarce *scarce)
{
    contribute(scarce, 1);
    scarce_order(scarce, take_the_first);
    contribute(scarce, 2);
}

TEST(a_step_of_a_quorum_is_over_and_who_comes_late_is_told)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = one_of_two,
        .prepare = add_mean,
        .say = contribute_early_and_late,
        .answers =
            {{"done # [", {"done # voided\n"}},
             {"refused # STEP_LATE\n", {"refused # OUT_OF_MEMORY\n"}},
             {"done # voided\n"}},
        .pushes = 1});
}
