/* SPDX-License-Identifier: Apache-2.0 */
/* lane_apply.c -- a part is applied in one operation, large ones beside everything else. */
#include <math.h>

#include "assert_number.h"
#include "operation.h"
#include "lane_talk.h"

#define LARGE 5u /* 40 float32: 160 bytes, five blocks of 32, above inline_bytes (64) */
#define SMALL 6u

static uint64_t begin_with(struct talk *talk, const struct lane_config *config)
{
    talk_start(talk, config);
    talk_open(talk, 1);
    talk_open(talk, 2);
    talk_variable(talk, LARGE, 40, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SMALL, 4, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SMALL + 1, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk) { return begin_with(talk, NULL); }

/* 0, 1, 2, … for every element of a shard of `count`. */
static void count_up(float *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = (float)i;
}

static struct talk_part
push_of(uint64_t sequence, uint64_t shard, const float *values, uint32_t count)
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

static void expect_shard(struct talk *talk, uint64_t shard, const float *values, uint32_t count)
{
    float held[64];

    assert_int_equal(
        lane_peek(talk->lane, shard, (uint8_t *)held, sizeof held), count * sizeof(float));
    for (uint32_t i = 0; i < count; i++)
        assert_number_equal(held[i], values[i]);
}

TALK_TEST(a_large_part_is_computed_in_slices)
{
    const uint64_t stream = begin(talk);
    float values[40];

    count_up(values, 40);
    const struct talk_part sent = push_of(1, LARGE, values, 40);

    talk_part_in_steps(talk, stream, &sent, 7);

    assert_int_equal(talk->computes, 1);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_shard(talk, LARGE, values, 40);
}

TALK_TEST(a_busy_shard_can_wait_and_others_go_on)
{
    const uint64_t stream = begin(talk);
    const uint64_t other = talk_push_stream(talk, 2, 1), pull = talk_pull_stream(talk, 2);
    float values[40];

    count_up(values, 40);
    const struct talk_part large = push_of(1, LARGE, values, 40);
    struct talk_part small = push_of(1, SMALL, values, 4);
    talk_forget(talk);
    talk->holds_compute = true;

    talk_part(talk, stream, &large); /* given: vector work on LARGE is out */
    talk_expect(talk, "staged 1\n");

    talk_part(talk, other, &small); /* then: another shard's turn comes */
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    talk_pull(talk, pull, 1, SMALL, 1, 0);
    talk_expect(talk, "pulled 1 [1] 0 1 2 3\n");
    small = push_of(2, LARGE, values, 4); /* and LARGE's waits, to push or to pull */
    talk_part(talk, other, &small);
    talk_expect(talk, "staged 2\n");
    talk_pull(talk, pull, 2, LARGE, 1, 0);
    talk_expect(talk, "");

    talk_compute(talk);

    talk->holds_compute = false;
    talk_expect(
        talk, "done 1 [1]\ndone 2 [2]\npulled 2 [2] ...\n"
              "pulled 2: 0 2 4 6 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 "
              "22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39\n");
}

TALK_TEST(all_that_wait_for_a_shard_have_their_turns_one_after_the_other)
{
    float values[40];
    uint64_t streams[3] = {begin(talk)};

    count_up(values, 40);
    const struct talk_part large = push_of(1, LARGE, values, 40);
    streams[1] = talk_push_stream(talk, 2, 1);
    talk_open(talk, 3);
    streams[2] = talk_push_stream(talk, 3, 1);
    talk->holds_compute = true;
    for (size_t i = 0; i < 3; i++)
        talk_part(talk, streams[i], &large);
    talk_forget(talk);

    talk_compute(talk);
    talk_compute(talk);
    talk_compute(talk);

    talk_expect(talk, "done 1 [1]\ndone 1 [2]\ndone 1 [3]\n");
}

/* Its turn would never come: it would keep its room until the session ends. */
TALK_TEST(a_part_before_the_one_that_is_being_applied_is_not_taken)
{
    const uint64_t stream = begin(talk);
    float values[40];

    count_up(values, 40);
    struct talk_part large = push_of(5, LARGE, values, 40);
    struct talk_part late = push_of(3, SMALL, values, 4);
    large.previous = late.previous = 0;
    talk->holds_compute = true;
    talk_part(talk, stream, &large); /* given: push 5, which follows none, is being applied */
    talk_expect(talk, "staged 5\n");

    talk_part(talk, stream, &late);

    talk_expect(talk, "end of stream MALFORMED\n");
    talk_compute(talk);
}

/* One that comes again says what it said: another predecessor is a client's mistake, at whatever
 * point of its life. */
TALK_TEST(a_part_that_is_being_applied_comes_again_as_it_was)
{
    const uint64_t stream = begin(talk);
    float values[40];

    count_up(values, 40);
    struct talk_part large = push_of(5, LARGE, values, 40);
    large.previous = 0;
    talk->holds_compute = true;
    talk_part(talk, stream, &large); /* given */
    talk_part(talk, stream, &large);
    talk_expect(talk, "staged 5\nstaged 5\n");

    large.previous = 4;
    talk_part(talk, stream, &large);

    talk_expect(talk, "end of stream MALFORMED\n");
    talk_compute(talk);
}

TALK_TEST(pieces_of_one_shard_are_applied_in_their_order)
{
    const uint64_t stream = begin(talk);
    float values[80];
    wire_function assign = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&assign};
    wire_piece pieces[2] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *pointers[] = {&pieces[0], &pieces[1]};
    wire_part header = WIRE_PART_INIT;

    count_up(values, 80);
    assign.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    for (int i = 0; i < 2; i++) { /* given: the whole shard, assigned twice in one part */
        pieces[i].shard_id = LARGE;
        pieces[i].bytes = 160;
        pieces[i].function = 1;
    }
    header.sequence = 1;
    header.first = header.last = header.eager = true;
    header.bytes = 320;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = pointers;
    header.n_pieces = 2;

    talk_push_part(talk, stream, &header, values, 320);

    assert_int_equal(talk->computes, 2); /* slices of one COMPUTE run in any order */
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_shard(talk, LARGE, values + 40, 40);
}

/* One run of 4096 blocks. */
TALK_TEST(a_part_of_many_blocks_is_computed_so_many_slices_at_a_time)
{
    enum { elements = 32768 };
    static float ones[elements];
    struct lane_config config = talk_config();
    uint32_t times = 0;

    config.staging_bytes_max = 4u << 20;
    const uint64_t stream = begin_with(talk, &config);
    talk_variable(talk, SMALL + 2, elements, UPDATE_ASSIGN_ADD);
    while (!store_find(&talk->lane->store, SMALL + 2)->filled)
        talk_tick(talk, 0);
    talk_forget(talk);
    talk->holds_compute = true;
    const struct talk_part part = push_of(1, SMALL + 2, ones, elements);

    talk_part(talk, stream, &part);

    for (; talk->compute.job != 0; times++) {
        assert_in_range(talk->compute.slice_count, 1, SLICES_PER_OPERATION_MAX);
        talk_compute(talk);
    }
    assert_in_range(times, 4, 8);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(a_part_of_two_variables_is_seen_whole_or_not_at_all)
{
    const uint64_t stream = begin(talk), pull = talk_pull_stream(talk, 2);
    const float values[] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct talk_part both = push_of(1, SMALL, values, 4);

    both.shards = 2;
    talk_forget(talk);

    talk_part(talk, stream, &both);
    talk_pull(talk, pull, 1, SMALL, 2, 0);

    talk_expect(talk, "staged 1\ndone 1 [1 1]\npulled 1 [1 1] 1 1 1 1 1 1 1 1\n");
}

TALK_TEST(without_one_operation_a_pull_sees_half_a_part)
{
    struct lane_config config = talk_config();
    float ones[40];

    for (uint32_t i = 0; i < 40; i++)
        ones[i] = 1;
    config.broken = rule_bit(RULE_apply_in_one_operation);
    const uint64_t stream = begin_with(talk, &config), pull = talk_pull_stream(talk, 2);
    const struct talk_part sent = push_of(1, LARGE, ones, 40);
    talk_forget(talk);
    talk->holds_compute = true;

    talk_part(talk, stream, &sent);
    update_run(&talk->compute.slices[0]);
    talk_pull(talk, pull, 1, LARGE, 1, 0);

    assert_non_null(strstr(talk->text, "1 1 1 1 1 1 1 1 0 0 0 0"));
}

/* A constant gradient moves the value by the rate each time, as long as the count is right. No
 * comparison holds of a NaN. */
static void expect_moved(struct talk *talk, float value)
{
    float held[4];

    assert_int_equal(lane_peek(talk->lane, 20, (uint8_t *)held, sizeof held), 16);
    for (int i = 0; i < 4; i++)
        assert_true(fabsf(held[i] - value) <= 1e-6F);
}

TALK_TEST(adams_count_is_the_shards_count_of_its_pushes)
{
    const uint64_t stream = begin(talk);
    const float values[] = {1, 1, 1, 1}, zeros[4] = {0};

    talk_variable(talk, 20, 4, UPDATE_ADAM);
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        const struct talk_part sent = push_of(sequence, 20, values, 4);
        talk_part(talk, stream, &sent);
        expect_moved(talk, -0.001F * (float)sequence);
    }
    struct talk_part other = push_of(4, 20, zeros, 4);
    other.function = UPDATE_ASSIGN_ADD; /* which does not count */
    talk_part(talk, stream, &other);

    other = push_of(5, 20, values, 4);
    talk_part(talk, stream, &other);

    expect_moved(talk, -0.004F);
}

/* Whichever of its pieces counts. */
TALK_TEST(a_push_that_also_adds_counts_for_adam)
{
    const uint64_t stream = begin(talk);
    const float values[] = {1, 1, 1, 1, 0, 0, 0, 0};
    wire_function add = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&add};
    wire_piece pieces[] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *pointers[] = {&pieces[0], &pieces[1]};
    wire_part header = WIRE_PART_INIT;

    talk_variable(talk, 20, 4, UPDATE_ADAM);
    add.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN_ADD;
    for (uint32_t i = 0; i < 2; i++) {
        pieces[i].shard_id = 20;
        pieces[i].bytes = 16;
        pieces[i].function = i;
    }
    header.sequence = 1;
    header.first = header.last = header.eager = true;
    header.bytes = sizeof values;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = pointers;
    header.n_pieces = 2;
    talk_push_part(talk, stream, &header, values, sizeof values);
    const struct talk_part sent = push_of(2, 20, values, 4);

    talk_part(talk, stream, &sent);

    expect_moved(talk, -0.002F);
}

/* Pushes 1, 1, 1, 1 to the shard by sgd with a rate of 0.5, and a second hyperparameter. */
static void push_with_rate(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t shard)
{
    const float values[] = {1, 1, 1, 1};
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT, clip = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *both[] = {&rate, &clip};
    wire_function sgd = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&sgd};
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;

    rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE;
    rate.value = 0.5;
    clip.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_CLIP_VALUE;
    clip.value = 1; /* of which there is no more */
    sgd.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    sgd.hyperparameters = both;
    sgd.n_hyperparameters = 2;
    piece.shard_id = shard;
    piece.bytes = 16;
    piece.function = 1;
    header.sequence = sequence;
    header.previous = sequence - 1;
    header.first = header.last = header.eager = true;
    header.bytes = 16;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = pieces;
    header.n_pieces = 1;

    talk_push_part(talk, stream, &header, values, 16);
}

/* Of the variable's own function, as a schedule of learning rates does, and of another one. */
TALK_TEST(a_push_names_hyperparameters_over_the_variables_own)
{
    const uint64_t stream = begin(talk), shards[] = {SMALL, 20};
    float held[4];

    talk_variable(talk, 20, 4, UPDATE_SGD);

    for (uint64_t i = 0; i < 2; i++) {
        push_with_rate(talk, stream, i + 1, shards[i]);
        assert_int_equal(lane_peek(talk->lane, shards[i], (uint8_t *)held, sizeof held), 16);
        assert_true(held[0] == -0.5F);
    }
}

/* Four floats for SMALL, in spans of so many bytes each, or what is left. */
static void
push_in_spans(struct talk *talk, uint64_t stream, const float values[4], size_t span_bytes)
{
    const uint8_t *bytes = (const uint8_t *)values;
    struct span spans[16];
    uint32_t count = 0;
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    for (size_t at = 0; at < 16; at += span_bytes)
        spans[count++] =
            (struct span){.data = bytes + at, .bytes = 16 - at < span_bytes ? 16 - at : span_bytes};
    piece.shard_id = SMALL;
    piece.bytes = 16;
    header.sequence = 1;
    header.first = header.last = header.eager = true;
    header.bytes = 16;
    header.pieces = pieces;
    header.n_pieces = 1;
    request.parts = parts;
    request.n_parts = 1;
    const struct lane_event event = {
        .kind = LANE_EVENT_PUSH,
        .stream = stream,
        .push_request = &request,
        .payload = spans,
        .payload_spans = count};

    talk_step(talk, &event);
}

TALK_TEST(elements_that_straddle_spans_are_put_together)
{
    const uint64_t stream = begin(talk);
    const float values[] = {1.5F, 2.5F, 3.5F, 4.5F};

    push_in_spans(talk, stream, values, 1);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_shard(talk, SMALL, values, 4);
}

/* Whether it is alone in its spans or others come before and behind it. */
TALK_TEST(an_element_that_straddles_spans_is_checked)
{
    const uint64_t streams[] = {begin(talk), talk_push_stream(talk, 2, 1)};
    const float values[] = {1.5F, INFINITY, 3.5F, 4.5F};
    const size_t span_bytes[] = {1, 6};

    for (size_t i = 0; i < 2; i++) {
        talk_forget(talk);
        push_in_spans(talk, streams[i], values, span_bytes[i]);
        talk_expect(talk, "refused 1 NON_FINITE\ndone 1 voided\n");
    }
}

/* A part in two messages, with another session's part between them, whose shards come in another
 * order: each shard has one version in the answer. */
TALK_TEST(parts_of_two_sessions_may_arrive_between_each_other)
{
    const uint64_t stream = begin(talk), other = talk_push_stream(talk, 2, 1);
    const float values[] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct talk_part both = push_of(1, SMALL, values, 4);
    wire_piece pieces[2] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *pointers[] = {&pieces[0], &pieces[1]};
    wire_part header = WIRE_PART_INIT;

    both.shards = 2;
    for (int i = 0; i < 2; i++) {
        pieces[i].shard_id = SMALL + 1 - (uint64_t)i;
        pieces[i].bytes = 8;
    }
    header.sequence = 1;
    header.first = header.eager = true;
    header.bytes = 32;
    header.pieces = pointers;
    header.n_pieces = 2;
    talk_forget(talk);

    talk_push_part(talk, stream, &header, values, 16);
    talk_part(talk, other, &both);
    header.first = false;
    header.last = true;
    pieces[0].offset_bytes = pieces[1].offset_bytes = 8;
    talk_push_part(talk, stream, &header, values, 16);

    talk_expect(talk, "staged 1\ndone 1 [1 1]\nstaged 1\ndone 1 [2 2]\n");
    const float twos[] = {2, 2, 2, 2};
    expect_shard(talk, SMALL, twos, 4);
    expect_shard(talk, SMALL + 1, twos, 4);
}

TALK_TEST(staleness_is_what_a_shard_gained_since_it_was_pulled)
{
    const uint64_t stream = begin(talk);
    const float values[] = {1, 1, 1, 1};
    wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_STATS, .request = &stats.base};

    for (uint64_t sequence = 1; sequence <= 5; sequence++) {
        struct talk_part sent = push_of(sequence, SMALL, values, 4);
        /* the last from version 1, applied to version 4; the one before from what it is applied to
         */
        sent.based_on = sequence == 5 ? 1 : sequence == 4 ? 3 : 0;
        talk_part(talk, stream, &sent);
    }
    talk_forget(talk);

    talk_step(talk, &call);

    talk_expect(
        talk,
        "reply StatsReply pushes 5 pulls 0 refused 0 duplicates 0 staleness 3 of 2 staged 0\n");
}

TALK_TEST(a_part_of_many_chunks_is_applied_where_it_belongs)
{
    struct lane_config config = talk_config();

    enum { elements = 3u << 18 }; /* 3 MiB: three chunks, three blocks */
    config.staging_bytes_max = 64u << 20;
    config.block_bytes = config.inline_bytes = 0;
    const uint64_t stream = begin_with(talk, &config);
    float *values = test_calloc(elements, sizeof *values),
          *held = test_calloc(elements, sizeof *held);
    count_up(values, elements);
    talk_variable(talk, 30, elements, UPDATE_ASSIGN_ADD);
    for (int i = 0; i < 12; i++)
        talk_tick(talk, 0);
    const struct talk_part sent = push_of(1, 30, values, elements);

    talk_part_in_steps(talk, stream, &sent, 50001);

    assert_int_equal(
        lane_peek(talk->lane, 30, (uint8_t *)held, elements * sizeof *held),
        elements * sizeof *held);
    assert_memory_equal(held, values, elements * sizeof *held);
    test_free(values);
    test_free(held);
}

TALK_TEST(a_thousand_small_variables_are_one_push_and_one_answer)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 8u << 20;
    config.inline_bytes = 0;
    const uint64_t stream = begin_with(talk, &config);
    enum { variables = 1000 };
    float *values = test_calloc(variables, sizeof *values);
    float held;
    count_up(values, variables);
    for (uint32_t i = 0; i < variables; i++)
        talk_variable(talk, 100 + i, 1, UPDATE_ASSIGN_ADD);
    struct talk_part sent = push_of(1, 100, values, 1);
    sent.shards = variables;

    talk_part(talk, stream, &sent);

    for (uint32_t i = 0; i < variables; i++) {
        assert_int_equal(lane_peek(talk->lane, 100 + i, (uint8_t *)&held, sizeof held), 4);
        assert_number_equal(held, values[i]);
    }
    test_free(values);
}

TALK_TEST(a_large_new_variable_is_filled_a_slice_at_a_time)
{
    struct lane_config config = talk_config();

    config.block_bytes = 0;
    (void)begin_with(talk, &config);
    uint64_t shape[] = {1u << 18};
    wire_shard shard = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&shard};
    wire_initializer ones = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    shard.shard_id = variable.variable_id = 50;
    shard.ps = 1;
    shard.rows = shape[0];
    shard.bytes = 1u << 20;
    ones.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ONES;
    variable.name = "new";
    variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.initializer = &ones;
    variable.shards = shards;
    variable.n_shards = 1;
    add.variable = &variable;
    order.add_shards = &add;

    talk_order(talk, &order); /* when: four slices, three of them with ticks */
    talk_tick(talk, 0);
    talk_tick(talk, 0);
    talk_expect(talk, "");
    talk_tick(talk, 0);

    talk_expect(talk, "report 10\n");
}

/* One part that assigns these three runs of bytes of the large shard, one after the other. */
static void assign_three(
    struct talk *talk, uint64_t stream, const uint64_t offsets[3], const uint64_t bytes[3],
    const float *values)
{
    wire_function assign = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&assign};
    wire_piece pieces[3] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *pointers[] = {&pieces[0], &pieces[1], &pieces[2]};
    wire_part header = WIRE_PART_INIT;

    assign.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    for (int i = 0; i < 3; i++) {
        pieces[i].shard_id = LARGE;
        pieces[i].offset_bytes = offsets[i];
        pieces[i].bytes = bytes[i];
        pieces[i].function = 1;
        header.bytes += bytes[i];
    }
    header.sequence = 1;
    header.first = header.last = header.eager = true;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = pointers;
    header.n_pieces = 3;
    talk_push_part(talk, stream, &header, values, header.bytes);
}

/* The third piece overlaps the second: here that lies before the first, below behind it. */
TALK_TEST(a_piece_that_overlaps_an_earlier_one_waits_for_it_wherever_that_is)
{
    const uint64_t stream = begin(talk);
    float values[60], expected[40] = {0};

    count_up(values, 60);
    assign_three(
        talk, stream, (const uint64_t[]){80, 0, 40}, (const uint64_t[]){80, 60, 40}, values);

    memcpy(expected + 20, values, 80); /* as one after the other */
    memcpy(expected, values + 20, 60);
    memcpy(expected + 10, values + 35, 40);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    assert_int_equal(talk->computes, 2);
    expect_shard(talk, LARGE, expected, 40);
}

TALK_TEST(a_piece_waits_for_any_of_those_before_it)
{
    const uint64_t stream = begin(talk);
    float values[60], expected[40] = {0};

    count_up(values, 60);
    assign_three(
        talk, stream, (const uint64_t[]){0, 60, 100}, (const uint64_t[]){40, 60, 40}, values);

    memcpy(expected, values, 40);
    memcpy(expected + 15, values + 10, 60);
    memcpy(expected + 25, values + 25, 40);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    assert_int_equal(talk->computes, 2);
    expect_shard(talk, LARGE, expected, 40);
}
