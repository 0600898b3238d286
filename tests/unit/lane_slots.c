/* SPDX-License-Identifier: Apache-2.0 */
/* lane_slots.c -- pulls of what an update function keeps beside a value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "assert_number.h"
#include "lane_talk.h"

#define MOMENTUM 7u /* 40 float32; each list is more than one message of 48 bytes */

/* A gradient of ones. */
static void push(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    float values[40];

    for (int i = 0; i < 40; i++)
        values[i] = 1;
    talk_part(
        talk, stream,
        &(struct talk_part){
            .sequence = sequence,
            .previous = sequence - 1,
            .eager = true,
            .shard = MOMENTUM,
            .shards = 1,
            .values = values,
            .count = 40});
}

/* The value of MOMENTUM, and its one slot. */
static void pull_both(struct talk *talk, uint64_t stream)
{
    wire_piece value = WIRE_PIECE_INIT, slot = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&value, &slot};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    value.shard_id = slot.shard_id = MOMENTUM;
    slot.kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    pull.request = 7;
    pull.pieces = pieces;
    pull.n_pieces = 2;
    talk_step(talk, &event);
}

static void a_value_and_its_slot_are_of_one_moment(void **state)
{
    struct talk *const talk = *state;
    const struct lane_config config = talk_config();
    const float *const pulled = (const float *)(const void *)talk->pulled;

    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, MOMENTUM, 40, UPDATE_MOMENTUM);
    const uint64_t stream = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 1);
    push(talk, stream, 1);
    talk->deaf = reader;
    pull_both(talk, reader); /* given: a reader that stops after one message */

    push(talk, stream, 2); /* when others push */
    push(talk, stream, 3);
    talk->deaf = 0;
    talk_writable(talk, reader); /* and it reads on */

    assert_int_equal(talk->pulled_bytes, 80 * sizeof(float)); /* then it has both of version 1 */
    for (uint32_t i = 0; i < 40; i++) {
        assert_number_equal(pulled[i], -0.01F);
        assert_number_equal(pulled[40 + i], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(a_value_and_its_slot_are_of_one_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
