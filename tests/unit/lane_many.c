/* SPDX-License-Identifier: Apache-2.0 */
/* lane_many.c -- the most that one message may name: pieces of a push, shards of a variable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lane_talk.h"
#include "step.h"

#define VARIABLE 5u

/* Of all its parts together. */
static void more_pieces_than_a_message_may_have_end_the_stream(void **state)
{
    enum { first = 100 };
    struct talk *const talk = *state;
    const struct lane_config config = talk_config();
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    wire_part headers[2] = {WIRE_PART_INIT, WIRE_PART_INIT};
    wire_part *parts[] = {&headers[0], &headers[1]};

    talk_start(talk, &config);
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

/* The most that a variable may have, an element each: they are made, then filled over steps. */
static void a_variable_of_many_shards_is_made(void **state)
{
    enum { shards = 4096 };
    struct talk *const talk = *state;
    const struct lane_config config = talk_config();
    static wire_shard all[shards];
    static wire_shard *pointers[shards];
    uint64_t shape[] = {shards};
    wire_function function = WIRE_FUNCTION_INIT;
    wire_initializer zeros = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    char name[] = "many";
    uint32_t steps;

    for (uint32_t i = 0; i < shards; i++) {
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
    variable.n_shards = shards;
    add.variable = &variable;
    order.add_shards = &add;
    talk_start(talk, &config);
    talk_forget(talk);

    talk_order(talk, &order);
    const struct variable *made = store_find(&talk->lane->store, VARIABLE);
    const uint32_t first = made->made_count;
    assert_in_range(first, 64, 512); /* some are made, with their values, … */
    assert_int_equal(made->shards[first - 2].fill_bytes, 4);
    assert_int_equal(talk->lane->store.state_bytes, 4 * shards); /* … the others promised, … */
    talk->wake_us = UINT64_MAX;
    talk_tick(talk, 0);
    assert_in_range(made->made_count, 2 * first - 1, 2 * first + 1); /* … then as many more are */
    talk_expect(talk, "");
    for (steps = 2; !made->filled && steps < 100; steps++)
        talk_tick(talk, 0);
    assert_in_range(steps, shards / 512, shards / 64);

    assert_true(made->filled);
    talk_expect(talk, "report 2\n");
}

static void more_pieces_than_a_pull_may_have_are_refused(void **state)
{
    static wire_piece piece;
    static wire_piece *pieces[WIRE_PULL_PIECES_MAX + 1];
    struct talk *const talk = *state;
    const struct lane_config config = talk_config();
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    talk_start(talk, &config);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(more_pieces_than_a_message_may_have_end_the_stream),
        talk_test(more_pieces_than_a_pull_may_have_are_refused),
        talk_test(a_variable_of_many_shards_is_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
