/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective_long.c -- rounds of collectives whose contributions and results take several
 * chunks of memory, and a while. */
#include <stdlib.h>

#include "lane_collective.h"

#define ELEMENTS 600000u /* of float32: more than two chunks of 1 MiB */
#define VARIABLE 10u

static float values[ELEMENTS];

static struct lane_config roomy(void)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = UINT64_C(4) << 23;
    config.pull_chunk_bytes = 99996;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        values[i] = (float)(i % 1000);
    return config;
}

/* Each participant's bytes, one behind the other. */
static void gather(struct world *world)
{
    world->collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    world->shape[0] = ELEMENTS;
}

/* Messages begin within a chunk and end in the next one. */
TALK_TEST(a_result_of_several_chunks_is_read_across_them)
{
    const struct lane_config config = roomy();
    struct world world;

    begin_with(&world, talk, &config);
    gather(&world);
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);

    ask(&world, 1);

    assert_int_equal(talk->pulled_bytes, 2 * sizeof values);
    assert_memory_equal(talk->pulled, values, sizeof values);
    assert_memory_equal(talk->pulled + sizeof values, values, sizeof values);
}

/* Rows of just the size up to which they are copied. */
TALK_TEST(short_rows_of_a_long_result_are_copied)
{
    enum { rows = 8, columns = 4 };
    struct lane_config config = talk_config();
    struct world world;

    config.gathered_bytes_max = columns * sizeof(float);
    begin_with(&world, talk, &config);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    world.collective.n_shape = 2;
    world.collective.axis = 1;
    world.shape[0] = rows;
    world.shape[1] = columns;
    come(&world, 1, values, rows * columns * sizeof *values);
    come(&world, 2, values, rows * columns * sizeof *values);

    ask(&world, 1);

    assert_int_equal(talk->pulled_bytes, 2 * rows * columns * sizeof *values);
    assert_int_equal(talk->pulled_lent, 0);
}

/* The session is closed when what its pull reads has been chosen, and is not on disk yet. */
TALK_TEST(a_result_that_waits_for_its_record_is_said_though_its_session_is_closed)
{
    struct lane_config config = talk_config();
    struct world world;

    config.records = true;
    begin_with(&world, talk, &config);
    talk_recorded(world.talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    come_with(&world, 1, 1, 2, 3, 4);
    ask(&world, 1);
    come_with(&world, 2, 10, 20, 30, 40);
    assert_int_equal(talk_times_said(world.talk, "met 1"), 0);

    leave(&world, 1); /* when */
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error"), 0);
    talk_recorded(world.talk);

    assert_int_equal(
        talk_times_said(world.talk, "met 1 float32 [8] [4 4] 1 2 3 4 10 20 30 40\n"), 1); /* then */
}

static void read_to_its_end(struct talk *talk, uint64_t stream, const char *words)
{
    for (uint32_t i = 0; i < 100 && talk_times_said(talk, words) == 0; i++)
        talk_writable(talk, stream);
    assert_int_equal(talk_times_said(talk, words), 1);
}

/* Two results are being read when all have said that they want no more of them. */
TALK_TEST(a_result_that_is_being_read_stays_when_another_has_been_read)
{
    enum { elements = 40, rounds = 2 };
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    world.shape[0] = elements;
    for (uint32_t i = 1; i <= rounds; i++) {
        world.collective.round = i;
        come(&world, 1, values, elements * sizeof *values);
        come(&world, 2, values, elements * sizeof *values);
        talk->deaf = world.pull[i];
        ask(&world, (uint8_t)i);
    }
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    talk_forget(talk);

    read_to_its_end(talk, world.pull[1], "\n"); /* when */
    talk_forget(talk);
    read_to_its_end(talk, world.pull[2], "\n"); /* then */

    expect_nothing_kept(&world);
}

/* One message has a contribution, whose piece names that shard, and a push to a variable. */
static void come_beside_a_push(struct world *world, uint64_t shard, const float *pushed)
{
    wire_part first = WIRE_PART_INIT, second = WIRE_PART_INIT;
    wire_piece of_round = WIRE_PIECE_INIT, of_variable = WIRE_PIECE_INIT;
    wire_piece *first_pieces[] = {&of_round}, *second_pieces[] = {&of_variable};
    wire_part *parts[] = {&first, &second};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const size_t bytes = sizeof values + sizeof *pushed;
    uint8_t *const payload = malloc(bytes);

    assert_non_null(payload);
    memcpy(payload, values, sizeof values);
    memcpy(payload + sizeof values, pushed, sizeof *pushed);
    first.previous = world->last[1];
    first.sequence = second.previous = ++world->last[1];
    second.sequence = ++world->last[1];
    first.first = first.last = first.eager = second.first = second.last = second.eager = true;
    first.bytes = of_round.bytes = sizeof values;
    second.bytes = of_variable.bytes = sizeof *pushed;
    first.weight = second.weight = 1;
    first.collective = &world->collective;
    of_round.shard_id = shard;
    of_variable.shard_id = VARIABLE;
    first.pieces = first_pieces;
    second.pieces = second_pieces;
    first.n_pieces = second.n_pieces = 1;
    request.parts = parts;
    request.n_parts = 2;
    talk_push(world->talk, world->push[1], &request, payload, bytes);
    free(payload);
}

TALK_TEST(what_follows_one_that_is_refused_is_read_from_its_place)
{
    const struct lane_config config = roomy();
    const float pushed = 7;
    struct world world;

    begin_with(&world, talk, &config);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    gather(&world);
    talk_forget(talk);

    come_beside_a_push(&world, VARIABLE, &pushed); /* a contribution names none */

    talk_expect(talk, "staged 2\nrefused 1 MALFORMED\ndone 1 voided\ndone 2 [1]\n");
    talk_pull(talk, world.pull[1], 9, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 9 [1] 7\n");
}

TALK_TEST(what_follows_one_that_there_is_no_memory_for_is_read_from_its_place)
{
    const struct lane_config config = roomy();
    const float pushed = 7;
    struct world world;

    begin_with(&world, talk, &config);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    come_with(&world, 1, 1, 2, 3, 4); /* given: what all rounds take is there */
    come_with(&world, 2, 1, 2, 3, 4);
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    world.collective.round = 2;
    come_with(&world, 1, 1, 2, 3); /* and what refusals take */
    assert_int_equal(talk_times_said(talk, "refused 2 MALFORMED"), 1);
    gather(&world);
    talk_forget(talk);
    talk->scarce = true;
    talk->takes_left = 1; /* a chunk, and no other */

    come_beside_a_push(&world, 0, &pushed); /* when */

    talk->scarce = false;
    talk_expect(talk, "staged 4\nrefused 3 OUT_OF_MEMORY\ndone 3 voided\ndone 4 [1]\n"); /* then */
    talk_pull(talk, world.pull[1], 9, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 9 [1] 7\n");
}
