/* SPDX-License-Identifier: Apache-2.0 */
/* lane_scale.c (test) -- what of a push is computed in another type, or with other numbers, than it
 * came in: scaled parts, half types with slots of float32. */
#include <math.h>

#include "assert_number.h"
#include "half.h"
#include "lane_talk.h"

#define VARIABLE 5u /* 40 float32: 160 bytes, five blocks of 32, above inline_bytes (64) */

static uint64_t begin(struct talk *talk)
{
    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 40, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static struct talk_part
part_of(uint64_t sequence, uint64_t shard, const float *values, uint32_t count)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = sequence - 1,
        .eager = true,
        .shard = shard,
        .shards = 1,
        .values = values,
        .count = count};
}

/* Four elements, which are committed by nobody. */
static struct talk_part small(uint64_t sequence, uint64_t previous)
{
    static const float values[] = {1, 2, 3, 4};
    struct talk_part part = part_of(sequence, VARIABLE, values, 4);

    part.previous = previous;
    part.eager = false;
    return part;
}

static void expect_values(struct talk *talk, const float *values)
{
    float held[40];

    assert_int_equal(lane_peek(talk->lane, VARIABLE, (uint8_t *)held, sizeof held), sizeof held);
    for (uint32_t i = 0; i < 40; i++)
        assert_number_equal(held[i], values[i]);
}

/* What is pushed is multiplied before the function sees it, in every slice; the next push has its
 * own scale. */
TALK_TEST(a_part_is_applied_scaled)
{
    const uint64_t stream = begin(talk);
    float values[40], expected[40];

    for (uint32_t i = 0; i < 40; i++)
        values[i] = (float)i;
    struct talk_part sent = part_of(1, VARIABLE, values, 40);
    sent.scale = -0.5;
    talk_part_in_steps(talk, stream, &sent, 7);
    for (uint32_t i = 0; i < 40; i++)
        expected[i] = -0.5f * (float)i;
    expect_values(talk, expected);

    sent = part_of(2, VARIABLE, values, 40);
    talk_part(talk, stream, &sent);

    for (uint32_t i = 0; i < 40; i++)
        expected[i] = 0.5f * (float)i;
    expect_values(talk, expected);
}

/* Blocks of a slot hold the elements of the value's blocks, in twice the bytes: 40 bfloat16 lie in
 * five blocks of 16 bytes, a slot's in five of 32. The gradient is 1, in messages of six; of the
 * second push it begins within a block, with element 6. */
TALK_TEST(slots_of_a_half_type_go_with_their_elements)
{
    const uint64_t stream = begin(talk);
    uint16_t ones[40], held[40];
    double sum = 0.1, value[2] = {0};

    talk_add(
        talk, 20, 40, 1, SUMAC_BFLOAT16, UPDATE_ADAGRAD, SUMAC__V1__INITIALIZER__KIND__KIND_ZEROS);
    talk_forget(talk);
    for (uint32_t i = 0; i < 40; i++)
        ones[i] = 0x3f80;
    for (uint64_t sequence = 1; sequence <= 3; sequence++) { /* when */
        /* two of them in the place of a float32 */
        struct talk_part sent = part_of(sequence, 20, (const float *)(const void *)ones, 20);
        sent.offset = sequence == 2 ? 3 : 0;
        sent.count -= (uint32_t)sent.offset;
        talk_part_in_steps(talk, stream, &sent, 3);
        sum += 1;
        value[1] -= 0.001 / (sqrt(sum) + 1e-7);
    }
    value[0] = -0.001 / (sqrt(1.1) + 1e-7) - 0.001 / (sqrt(2.1) + 1e-7);

    assert_int_equal(lane_peek(talk->lane, 20, (uint8_t *)held, sizeof held), sizeof held);
    for (uint32_t i = 0; i < 40; i++) { /* then */
        const double expected = value[i >= 6];
        assert_int_equal(held[i], held[i < 6 ? 0 : 6]);
        /* rounded three times, to eight bits each */
        assert_true(
            fabs((double)float32_of_bfloat16(held[i]) - expected) < 3.0 / 512 * fabs(expected));
    }
}

/* Values are multiplied by it, in float32, too: 2^128 is beyond that. */
TALK_TEST(a_scale_that_is_not_finite_is_refused)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0x1p128};
    const uint64_t stream = begin(talk);

    for (uint64_t i = 0; i < 4; i++) {
        struct talk_part sent = small(i + 1, i);
        sent.scale = odd[i];
        talk_part(talk, stream, &sent);
    }
    struct talk_part sent = small(5, 4);
    sent.scale = -0x1p127;
    talk_part(talk, stream, &sent);

    talk_expect(
        talk, "refused 1 MALFORMED\nrefused 2 MALFORMED\nrefused 3 MALFORMED\n"
              "refused 4 MALFORMED\nstaged 5\n");
}

TALK_TEST(integers_are_not_scaled)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = small(1, 0);

    talk_add(
        talk, 30, 4, 1, SUMAC_INT32, UPDATE_ASSIGN_ADD, SUMAC__V1__INITIALIZER__KIND__KIND_ZEROS);
    talk_forget(talk);
    sent.shard = 30;
    sent.scale = 2;
    talk_part(talk, stream, &sent);
    talk_expect(talk, "refused 1 WRONG_DATA_TYPE\n");
    assert_non_null(strstr(
        talk->refused, "push 1 has scale 2, and variable v30 is of type int32: what is scaled is "
                       "of a float type"));

    sent = small(2, 1);
    sent.shard = 30;
    sent.scale = 1;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 2\n");
}

/* The mean gradient is there from the beginning, or never. */
TALK_TEST(a_push_cannot_ask_for_a_slot_that_is_not_kept)
{
    const uint64_t stream = begin(talk);
    wire_hyperparameter centered = WIRE_HYPERPARAMETER_INIT;
    struct talk_part sent = small(1, 0);

    talk_variable(talk, 20, 4, UPDATE_RMSPROP);
    talk_forget(talk);
    centered.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_CENTERED;
    centered.value = 1;
    sent.shard = 20;
    sent.function = UPDATE_RMSPROP;
    sent.hyperparameter = &centered;
    talk_part(talk, stream, &sent);
    talk_expect(talk, "refused 1 MISSING_SLOTS\n");

    centered.value = 0;
    sent.sequence = 2;
    sent.previous = 1;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 2\n");
}
