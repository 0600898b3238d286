/* SPDX-License-Identifier: Apache-2.0 */
/* lane_many.c -- the most that one message may name: pieces of a push, shards of a variable. */
#include <stdint.h>

#include "lane_talk.h"
#include "step.h"

#define VARIABLE 5u
#define SHARDS 4096u

/* Of all its parts together. */
TALK_TEST(more_pieces_than_a_message_may_have_end_the_stream)
{
    enum { first = 100 };
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    wire_part headers[2] = {WIRE_PART_INIT, WIRE_PART_INIT};
    wire_part *parts[] = {&headers[0], &headers[1]};

    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    for (uint32_t i = 0; i < WIRE_PUSH_PIECES_MAX; i++) {
        talk->pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        talk->pieces[i].shard_id = VARIABLE;
        talk->piece_pointers[i] = &talk->pieces[i];
    }
    for (uint64_t i = 0; i < 2; i++) {
        headers[i].first = headers[i].last = true;
        headers[i].sequence = 1 + i;
        headers[i].previous = i;
        headers[i].pieces = talk->piece_pointers;
    }
    headers[0].n_pieces = first;
    headers[1].n_pieces = WIRE_PUSH_PIECES_MAX - first;
    request.parts = parts;
    request.n_parts = 2;
    talk_push(talk, stream, &request, NULL, 0);
    talk_tick(talk, 0); /* the step was long enough */
    talk_expect(talk, "staged 1\nstaged 2\n");

    headers[0].n_pieces++;
    talk_push(talk, stream, &request, NULL, 0);

    talk_expect(talk, "end of stream TOO_MANY_PIECES\n");
    assert_string_equal(
        talk->closed.text,
        "a message with 4097 pieces, at most 4096 are taken: send them in several "
        "messages");
}

/* The most that a variable may have, an element each. */
static void order_many_shards(struct talk *talk)
{
    static wire_shard all[SHARDS];
    static wire_shard *pointers[SHARDS];
    uint64_t shape[] = {SHARDS};
    wire_function function = WIRE_FUNCTION_INIT;
    wire_initializer zeros = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    char name[] = "many";

    for (uint32_t i = 0; i < SHARDS; i++) {
        all[i] = (wire_shard)WIRE_SHARD_INIT;
        all[i].shard_id = VARIABLE + i;
        all[i].ps = 1;
        all[i].first_row = i;
        all[i].rows = 1;
        all[i].bytes = 4;
        pointers[i] = &all[i];
    }
    function.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    zeros.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
    variable.name = name;
    variable.variable_id = VARIABLE;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.function = &function;
    variable.initializer = &zeros;
    variable.shards = pointers;
    variable.n_shards = SHARDS;
    add.variable = &variable;
    talk_order_of(talk, add_shards, &add);
}

/* They are made, then filled over steps. */
TALK_TEST(a_variable_of_many_shards_is_made)
{
    uint32_t steps;

    talk_start(talk, NULL);
    talk_forget(talk);

    order_many_shards(talk);
    const struct variable *made = store_find(&talk->lane->store, VARIABLE);
    const uint32_t first = made->made_count;
    assert_in_range(first, 64, 512); /* some are made, with their values, … */
    assert_int_equal(made->shards[first - 2].fill_bytes, 4);
    assert_int_equal(talk->lane->store.state_bytes, 4 * SHARDS); /* … the others promised, … */
    talk->wake_us = UINT64_MAX;
    talk_tick(talk, 0);
    assert_in_range(made->made_count, 2 * first - 1, 2 * first + 1); /* … then as many more are */
    talk_expect(talk, "");
    for (steps = 2; !made->filled && steps < 100; steps++)
        talk_tick(talk, 0);
    assert_in_range(steps, SHARDS / 512, SHARDS / 64);

    assert_true(made->filled);
    talk_expect(talk, "report 2\n");
}

static void begin_with_many_shards(struct talk *talk)
{
    wire_publish publish = WIRE_PUBLISH_INIT;

    talk_start(talk, NULL);
    order_many_shards(talk);
    while (!store_find(&talk->lane->store, VARIABLE)->filled)
        talk_tick(talk, 0);
    publish.variable_id = VARIABLE;
    talk_order_of(talk, publish, &publish);
    talk_forget(talk);
}

/* A client would take an answer without the variable for a complete list. */
TALK_TEST(a_list_whose_first_variable_finds_no_memory_fails)
{
    const wire_list_request request = WIRE_LIST_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST, .request = &request.base};

    begin_with_many_shards(talk);
    talk->out_of_memory = true;

    talk_step(talk, &call);

    talk->out_of_memory = false;
    talk_expect(talk, "failed OUT_OF_MEMORY\n");
}

/* Tens of thousands of blocks. */
TALK_TEST(what_is_deleted_is_given_back_by_ticks_that_follow_at_once)
{
    uint32_t steps = 0;

    talk_start(talk, NULL);
    talk_variable(talk, VARIABLE, 1u << 18, UPDATE_ASSIGN_ADD);
    while (!store_find(&talk->lane->store, VARIABLE)->filled)
        talk_tick(talk, 0);
    talk_delete(talk, VARIABLE);
    assert_true(store_is_leaving(&talk->lane->store));

    for (; store_is_leaving(&talk->lane->store) && steps < SHARDS; steps++) {
        assert_int_equal(talk->wake_us, talk->now_us);
        talk->wake_us = UINT64_MAX;
        talk_tick(talk, 0);
    }

    assert_in_range(steps, 1, SHARDS / 64);
}

TALK_TEST(more_pieces_than_a_pull_may_have_are_refused)
{
    static wire_piece piece;
    static wire_piece *pieces[WIRE_PULL_PIECES_MAX + 1];
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = talk_pull_stream(talk, 1), .pull_request = &request};
    piece = (wire_piece)WIRE_PIECE_INIT;
    piece.shard_id = VARIABLE;
    for (uint32_t i = 0; i <= WIRE_PULL_PIECES_MAX; i++)
        pieces[i] = &piece;
    request.request = 1;
    request.pieces = pieces;
    request.n_pieces = WIRE_PULL_PIECES_MAX + 1;
    talk_forget(talk);

    talk_step(talk, &event);

    talk_expect(talk, "pulled 1 error TOO_MANY_PIECES\n");
}
