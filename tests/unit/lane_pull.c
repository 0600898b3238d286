/* SPDX-License-Identifier: Apache-2.0 */
/* lane_pull.c -- pulls: what they wait for, what they see, and readers that stop. */
#include <stdio.h>

#include "assert_number.h"
#include "pull_state.h"
#include "lane_talk.h"

#define LONG 5u /* 40 float32: five blocks of 32 bytes; more than one message of 48 bytes */
#define SHORT 6u

struct streams {
    uint64_t push, pull;
};

static struct streams begin_with(struct talk *talk, const struct lane_config *config)
{
    struct streams streams;

    talk_start(talk, config);
    talk_open(talk, 1);
    talk_variable(talk, LONG, 40, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SHORT, 4, UPDATE_ASSIGN_ADD);
    streams.push = talk_push_stream(talk, 1, 1);
    streams.pull = talk_pull_stream(talk, 1);
    talk_forget(talk);
    return streams;
}

static struct streams begin(struct talk *talk) { return begin_with(talk, NULL); }

/* Adds `step` to every element. */
static void push(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t shard, float step)
{
    float values[40];

    for (int i = 0; i < 40; i++)
        values[i] = step;
    const struct talk_part part = {
        .sequence = sequence,
        .previous = sequence - 1,
        .eager = true,
        .shard = shard,
        .shards = 1,
        .values = values,
        .count = shard == LONG ? 40 : 4};

    talk_part(talk, stream, &part);
}

static void expect_pulled(const struct talk *talk, uint32_t count, float value)
{
    const float *values = (const float *)(const void *)talk->pulled;

    assert_int_equal(talk->pulled_bytes, count * sizeof(float));
    for (uint32_t i = 0; i < count; i++)
        assert_number_equal(values[i], value);
}

TALK_TEST(one_reads_ones_own_pushes)
{
    const struct streams streams = begin(talk);

    talk_pull(talk, streams.pull, 1, SHORT, 1, 1);
    talk_expect(talk, "");
    push(talk, streams.push, 1, SHORT, 2);

    talk_expect(talk, "staged 1\ndone 1 [1]\npulled 1 [1] 2 2 2 2\n");
    assert_int_equal(talk->pulled_position, talk->lane->store.position);
    assert_int_equal(talk->pulled_position, 1);
}

TALK_TEST(a_pull_that_waits_holds_up_no_other)
{
    const struct streams streams = begin(talk);

    talk_pull(talk, streams.pull, 1, SHORT, 1, 1);

    talk_pull(talk, streams.pull, 2, SHORT, 1, 0);

    talk_expect(talk, "pulled 2 [0] 0 0 0 0\n");
}

TALK_TEST(without_the_rule_a_pull_that_waits_holds_up_pushes)
{
    struct lane_config config = talk_config();

    config.broken = rule_bit(RULE_pulls_hold_up_nothing);
    const struct streams streams = begin_with(talk, &config);
    talk_pull(talk, streams.pull, 1, SHORT, 1, 1);

    push(talk, streams.push, 1, SHORT, 2);

    talk_expect(talk, "");
}

TALK_TEST(a_pull_that_waits_too_long_names_what_is_missing)
{
    const struct streams streams = begin(talk);
    struct lane_effects effects;

    talk_pull(talk, streams.pull, 1, SHORT, 1, 12);
    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 60u * 1000000u};

    ps_core_step(talk->core, &late, &effects);

    const wire_pull_answer *answer = NULL;
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind == LANE_EFFECT_PULLED)
            answer = effects.items[i].pull_answer;
    }
    assert_non_null(answer);
    assert_int_equal(answer->status, SUMAC_DEADLINE_EXCEEDED);
    assert_string_equal(
        answer->message,
        "pull 1 has waited 60 s for push 12 of worker 1: on ps 1 push 12 is missing, "
        "and the last push applied is 0; no push or pull on ps 1 for 60 s");
}

/* Before the time that its stream's reader has. */
TALK_TEST(a_pull_that_wants_less_time_ends_when_that_is_over)
{
    const struct streams streams = begin(talk);
    const uint64_t deadline_us = talk->now_us + 1000000u;
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = streams.pull, .pull_request = &pull};

    piece.shard_id = SHORT;
    pull.request = 1;
    pull.n_pieces = 1;
    pull.pieces = pieces;
    pull.after_sequence = 12;
    pull.timeout_ms = 1000;

    talk_step(talk, &event);

    assert_true(talk->wake_us <= deadline_us);
    talk_tick(talk, 999);
    assert_null(strstr(talk->text, "pulled"));
    talk_tick(talk, 1);
    assert_non_null(strstr(talk->text, "pulled"));
}

/* The text of the pull that the clock ends in this step. */
static const char *ended_by(const struct talk *talk, const struct lane_event *late)
{
    struct lane_effects effects;

    ps_core_step(talk->core, late, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind == LANE_EFFECT_PULLED)
            return effects.items[i].pull_answer->message;
    }
    return "no pull ended";
}

/* A reader gets the value that the creator gives, never the zeros before it. */
TALK_TEST(a_pull_waits_until_the_variable_is_assigned)
{
    const struct streams streams = begin(talk);
    const uint64_t reader = talk_pull_stream(talk, 0);
    const float values[] = {1, 2, 3, 4};

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    talk_forget(talk);
    struct talk_part sent = {
        .sequence = 1,
        .eager = true,
        .shard = 20,
        .shards = 1,
        .values = values,
        .count = 2,
        .offset = 2,
        .function = UPDATE_ASSIGN};

    talk_pull(talk, reader, 7, 20, 1, 0);
    talk_part(talk, streams.push, &sent);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    sent.sequence = 2;
    sent.previous = 1;
    sent.offset = 0;
    talk_part(talk, streams.push, &sent);

    talk_expect(talk, "staged 2\ndone 2 [2]\nreport assigned 20\npulled 7 [2] 1 2 1 2\n");
}

TALK_TEST(a_pull_of_what_is_never_assigned_says_so)
{
    const struct streams streams = begin(talk);

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    talk_pull(talk, streams.pull, 7, 20, 1, 0);
    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 60u * 1000000u};

    assert_string_equal(
        ended_by(talk, &late), "pull 7 has waited 60 s for variable v20 on ps 1: its creator has "
                               "not assigned it yet; ps 0 "
                               "names the creator to a waiting create of the same variable");
}

/* The piece begins at the shard's end. */
TALK_TEST(a_pull_that_reads_nothing_asks_what_it_waits_for)
{
    const struct streams streams = begin(talk);
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event asks = {
        .kind = LANE_EVENT_PULL, .stream = streams.pull, .pull_request = &pull};

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    piece.shard_id = 20;
    piece.offset_bytes = 4 * sizeof(float);
    pull.request = 7;
    pull.n_pieces = 1;
    pull.pieces = pieces;
    pull.timeout_ms = 1000;

    talk_step(talk, &asks);

    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 1000u * 1000u};
    static const char said[] = "it waits for variable v20 on ps 1: ";
    assert_memory_equal(ended_by(talk, &late), said, sizeof said - 1);
}

TALK_TEST(a_pull_of_what_is_deleted_before_it_is_assigned_waits_no_longer)
{
    const struct streams streams = begin(talk);
    const uint64_t reader = talk_pull_stream(talk, 0);

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    talk_add(talk, 21, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    talk_pull(talk, streams.pull, 1, SHORT, 1, 12);
    talk_pull(talk, streams.pull, 2, 20, 1, 0);
    talk_pull(talk, reader, 3, 20, 2, 0);
    talk_pull(talk, reader, 4, 21, 1, 0);
    talk_forget(talk);

    talk_delete(talk, 20);

    assert_non_null(strstr(talk->text, "pulled 2 error UNKNOWN_SHARD\n"));
    assert_non_null(strstr(talk->text, "pulled 3 error UNKNOWN_SHARD\n"));
    assert_null(strstr(talk->text, "pulled 1"));
    assert_null(strstr(talk->text, "pulled 4"));
    assert_int_equal(talk->lane->store.deleted_count, 0); /* nobody keeps it */
}

TALK_TEST(a_pull_can_be_cancelled)
{
    const struct streams streams = begin(talk);

    talk_pull(talk, streams.pull, 1, SHORT, 1, 1);

    assert_true(lane_stream_has_pulls(talk->lane, streams.pull));

    talk_cancel(talk, streams.pull, 1);
    assert_false(lane_stream_has_pulls(talk->lane, streams.pull)); /* nothing more is owed on it */
    push(talk, streams.push, 1, SHORT, 2);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(a_reader_needs_no_session)
{
    (void)begin(talk);

    const uint64_t reader = talk_pull_stream(talk, 0);
    talk_pull(talk, reader, 1, SHORT, 1, 0);

    talk_expect(talk, "greeting\npulled 1 [0] 0 0 0 0\n");
}

TALK_TEST(a_reader_without_a_session_waits_for_no_push)
{
    (void)begin(talk);
    const uint64_t reader = talk_pull_stream(talk, 0);
    talk_forget(talk);

    talk_pull(talk, reader, 1, SHORT, 1, 4);

    talk_expect(talk, "pulled 1 error SESSION_UNKNOWN\n");
}

TALK_TEST(an_unknown_shard_is_an_error_of_that_pull)
{
    const struct streams streams = begin(talk);

    talk_pull(talk, streams.pull, 1, 99, 1, 0);
    talk_pull(talk, streams.pull, 2, SHORT, 1, 0);

    talk_expect(talk, "pulled 1 error UNKNOWN_SHARD\npulled 2 [0] 0 0 0 0\n");
}

static void pull_bytes(
    struct talk *talk, uint64_t stream, uint64_t request, uint64_t offset_bytes, uint64_t bytes)
{
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    piece.shard_id = SHORT;
    piece.offset_bytes = offset_bytes;
    piece.bytes = bytes;
    pull.request = request;
    pull.pieces = pieces;
    pull.n_pieces = 1;
    talk_step(talk, &event);
}

TALK_TEST(a_range_is_read_within_its_shard_and_in_whole_elements)
{
    const struct streams streams = begin(talk);

    push(talk, streams.push, 1, SHORT, 2);
    talk_forget(talk);

    pull_bytes(talk, streams.pull, 1, 12, 4); /* the last of four elements */
    pull_bytes(talk, streams.pull, 2, 8, 0);  /* from the third on */
    pull_bytes(talk, streams.pull, 3, 16, 0); /* none */
    talk_expect(talk, "pulled 1 [1] 2\npulled 2 [1] 2 2\npulled 3 [1]\n");

    pull_bytes(talk, streams.pull, 4, 0, 20); /* one too many, … */
    pull_bytes(talk, streams.pull, 5, 12, 8);
    pull_bytes(talk, streams.pull, 6, 20, 0); /* … past the end, … */
    pull_bytes(talk, streams.pull, 7, 20, 4);
    pull_bytes(talk, streams.pull, 8, 4, UINT64_MAX - 3);
    pull_bytes(talk, streams.pull, 9, UINT64_MAX - 3, 8);
    pull_bytes(talk, streams.pull, 10, 2, 4); /* … and within an element */
    pull_bytes(talk, streams.pull, 11, 4, 2);
    for (uint32_t request = 4; request <= 11; request++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "pulled %u error WRONG_SHAPE\n", request);
        assert_non_null(strstr(talk->text, expected));
    }
}

/* ---- long pulls ---- */

TALK_TEST(a_long_pull_comes_in_messages)
{
    const struct streams streams = begin(talk);

    push(talk, streams.push, 1, LONG, 3);

    talk_pull(talk, streams.pull, 1, LONG, 1, 0);

    assert_int_equal(talk->pulled_messages, 4); /* 160 bytes, 48 in each */
    expect_pulled(talk, 40, 3);
}

TALK_TEST(what_is_written_meanwhile_is_not_seen)
{
    const struct streams streams = begin(talk);

    push(talk, streams.push, 1, LONG, 1);
    talk_forget(talk);
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 7, LONG, 1, 0); /* given: a reader that stops after one message */
    talk_expect(talk, "pulled 7 [1] ...\n");
    const uint64_t position = talk->pulled_position;

    push(talk, streams.push, 2, LONG, 10); /* when others push */
    talk_expect(talk, "staged 2\ndone 2 [2]\n");
    push(talk, streams.push, 3, LONG, 10);
    talk->deaf = 0;
    talk_writable(talk, streams.pull); /* and it reads on */

    expect_pulled(talk, 40, 1); /* then it has what version 1 was, and each message says so */
    assert_int_equal(talk->pulled_messages, 4);
    assert_int_equal(talk->pulled_position, position);
    talk_pull(talk, streams.pull, 8, LONG, 1, 0);
    expect_pulled(talk, 40, 21);
    assert_int_equal(talk->pulled_position, position + 2);
}

TALK_TEST(a_reader_that_keeps_too_much_is_ended)
{
    struct lane_config config = talk_config();

    config.view_bytes_max = 64; /* two blocks of the five */
    const struct streams streams = begin_with(talk, &config);
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 7, LONG, 1, 0);
    talk_forget(talk);

    push(talk, streams.push, 1, LONG, 10);
    talk_expect(talk, "staged 1\ndone 1 [1]\n"); /* the writer does not wait */
    talk->deaf = 0;
    talk_writable(talk, streams.pull);

    talk_expect(talk, "pulled 7 error VIEW_ENDED\n");
}

TALK_TEST(a_short_pull_overtakes_a_long_one)
{
    const struct streams streams = begin(talk);

    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_pull(talk, streams.pull, 2, SHORT, 1, 0);
    talk_forget(talk);

    talk->deaf = 0;
    talk_writable(talk, streams.pull);

    assert_int_equal(strncmp(talk->text, "pulled 2 [0] 0 0 0 0\npulled 1:", 30), 0);
}

/* Each has a view: of a stream one at a time. */
TALK_TEST(a_long_pull_waits_for_the_one_before_it)
{
    const struct streams streams = begin(talk);

    talk->deaf = streams.pull;

    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_pull(talk, streams.pull, 2, LONG, 1, 0);
    for (int i = 0; i < 10; i++)
        talk_writable(talk, streams.pull);

    const char *const end = strstr(talk->text, "pulled 1:");
    const char *const next = strstr(talk->text, "pulled 2 [");
    assert_non_null(end);
    assert_non_null(next);
    assert_true(end < next);
}

TALK_TEST(sigterm_lets_a_long_pull_behind_one_that_waits_go_on)
{
    const struct streams streams = begin(talk);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    talk_pull(talk, streams.pull, 1, SHORT, 1, 12); /* given: one that waits, … */
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 2, LONG, 1, 0); /* … and one whose answer has begun */

    talk_step(talk, &terminate);
    assert_null(strstr(talk->text, "exit"));
    talk->deaf = 0;
    talk_writable(talk, streams.pull);

    expect_pulled(talk, 40, 0);
    assert_non_null(strstr(talk->text, "exit 143 TERMINATED\n"));
}

TALK_TEST(a_reader_that_hangs_up_leaves_nothing_behind)
{
    const struct streams streams = begin(talk);

    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    push(talk, streams.push, 1, LONG, 10);

    talk_hang_up(talk, streams.pull);

    const uint64_t again = talk_pull_stream(talk, 1);
    talk->deaf = 0;
    talk_pull(talk, again, 2, LONG, 1, 0);
    expect_pulled(talk, 40, 10);
}

/* Vector work reads an old block for as long as it is out, though its reader has gone. */
TALK_TEST(what_vector_work_reads_is_not_given_away)
{
    const struct streams streams = begin(talk);

    push(talk, streams.push, 1, LONG, 1);
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk->holds_compute = true;
    push(talk, streams.push, 2, LONG, 10); /* given: LONG's old blocks, read by vector work */

    talk_hang_up(talk, streams.pull); /* when their only reader goes, and blocks are wanted */
    talk_add(talk, 9, 40, 1, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ZEROS);
    talk_compute(talk);

    const uint64_t again = talk_pull_stream(talk, 1);
    talk->deaf = 0;
    talk_pull(talk, again, 2, LONG, 1, 0);
    expect_pulled(talk, 40, 11);
}

TALK_TEST(a_block_that_is_written_in_part_keeps_the_rest)
{
    const struct streams streams = begin(talk);
    const float values[] = {5, 5, 5};
    const struct talk_part part = {
        .sequence = 2,
        .previous = 1,
        .eager = true,
        .shard = LONG,
        .shards = 1,
        .offset = 3,
        .values = values,
        .count = 3};

    push(talk, streams.push, 1, LONG, 1);
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);

    talk_part(talk, streams.push, &part); /* three of a block's eight elements */

    float held[40];
    assert_int_equal(lane_peek(talk->lane, LONG, (uint8_t *)held, sizeof held), sizeof held);
    for (int i = 0; i < 40; i++)
        assert_number_equal(held[i], i >= 3 && i < 6 ? 6 : 1);
    talk->deaf = 0;
    talk_writable(talk, streams.pull);
    expect_pulled(talk, 40, 1);
}

/* Blocks of 32 KiB, so that spans are lent and not gathered. */
static struct streams begin_lending(struct talk *talk)
{
    struct lane_config config = talk_config();
    struct streams streams;

    config.block_bytes = 32768;
    config.pull_chunk_bytes = 65536;
    config.staging_bytes_max = 4u << 20;
    config.copied_pull_bytes_max = 65536;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, LONG, 65536, UPDATE_ASSIGN_ADD); /* 256 KiB: eight blocks */
    streams.push = talk_push_stream(talk, 1, 1);
    streams.pull = talk_pull_stream(talk, 1);
    talk_forget(talk);
    return streams;
}

TALK_TEST(bytes_that_are_on_their_way_are_not_written_to)
{
    const struct streams streams = begin_lending(talk);
    float *ones = test_calloc(65536, sizeof *ones);

    for (int i = 0; i < 65536; i++)
        ones[i] = 1;
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = LONG, .shards = 1, .values = ones, .count = 65536};
    talk->holds_released = true;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0); /* given: all is read, nothing released */
    assert_int_equal(talk->lent_count, 8);

    talk_part(talk, streams.push, &part); /* when it is written to */

    for (uint32_t i = 0; i < talk->lent_count;
         i++) /* then the bytes on their way are the old ones */
        assert_number_equal(*(const float *)(const void *)talk->lent[i].bytes.data, 0);
    talk_release(talk);
    talk_pull(talk, streams.pull, 2, LONG, 1, 0);
    expect_pulled(talk, 65536, 1);
    talk_release(talk);
    test_free(ones);
}

TALK_TEST(a_deleted_variable_is_read_to_its_end)
{
    const struct streams streams = begin_lending(talk);

    talk->holds_released = true;
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_forget(talk);

    talk_delete(talk, LONG);
    talk_pull(talk, streams.pull, 2, LONG, 1, 0);
    talk->deaf = 0;
    talk_writable(talk, streams.pull);

    expect_pulled(talk, 65536, 0);
    assert_non_null(strstr(talk->text, "pulled 2 error UNKNOWN_SHARD\n"));
    talk_release(talk);
}

/* A short answer is not copied before the step is over, and by then nobody uses the variable any
 * more. */
TALK_TEST(the_last_short_pull_of_a_deleted_variable_lends_its_blocks)
{
    const struct streams streams = begin_lending(talk);
    float *ones = test_calloc(16384, sizeof *ones);

    for (int i = 0; i < 16384; i++)
        ones[i] = 1;
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = 7, .shards = 1, .values = ones, .count = 16384};
    talk->lane->store.view_bytes_max = 1;             /* what is not used goes back to the source */
    talk_variable(talk, 7, 16384, UPDATE_ASSIGN_ADD); /* 64 KiB: two blocks, one message */
    talk_part(talk, streams.push, &part);
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, 7, 1, 0);
    assert_int_equal(talk->pulled_lent, 0);
    talk_pull(talk, streams.pull, 2, 7, 1, 0); /* given: one that waits for its turn */
    const uint64_t before = talk->bytes_taken;

    talk_delete(talk, 7);
    talk->deaf = 0;
    talk_writable(talk, streams.pull);

    assert_int_equal(talk->pulled_lent, 2);
    expect_pulled(talk, 16384, 1);
    assert_int_equal(talk->lane->store.deleted_count, 0);
    assert_true(talk->bytes_taken < before); /* released, they are gone */
    test_free(ones);
}

/* Time in which this process is awake, and hears from ps 0. */
static void pass(struct talk *talk, uint64_t ms)
{
    while (ms > 0) {
        const uint64_t step_ms = ms < 1000 ? ms : 1000;
        talk_delete(talk, 999);
        talk_tick(talk, step_ms);
        ms -= step_ms;
    }
}

/* Whoever takes nothing for a minute holds no values back: neither of the living nor of the
 * deleted. */
TALK_TEST(a_reader_that_takes_nothing_is_given_up)
{
    const struct streams streams = begin_lending(talk);
    const uint64_t reader = talk_pull_stream(talk, 1);

    talk->holds_released = true;
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_delete(talk, LONG);
    talk_forget(talk);
    const uint64_t before = talk->bytes_taken;

    pass(talk, 59999);
    assert_null(strstr(talk->text, "end of stream"));
    pass(talk, 1);
    assert_non_null(strstr(talk->text, "end of stream VIEW_ENDED\n"));
    talk_release(talk); /* gRPC drops what it has of an ended stream */
    talk_forget(talk);

    assert_true(talk->bytes_taken + 6 * 32768 <= before); /* of eight blocks, two may be spare */
    talk_pull(talk, reader, 1, LONG, 1, 0); /* one that has taken what it was given stays */
    talk_expect(
        talk, "report renewed 1\n"
              "pulled 1 error UNKNOWN_SHARD\n");
}

/* What it has not taken in a sleep of this process, nobody could tell it to take. */
TALK_TEST(a_sleep_of_the_ps_is_not_its_readers)
{
    const struct streams streams = begin(talk);

    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_forget(talk);
    pass(talk, 30000);

    talk_tick(talk, 70000); /* this process stood still */
    pass(talk, 29999);
    assert_null(strstr(talk->text, "end of stream"));
    pass(talk, 1);

    assert_non_null(strstr(talk->text, "end of stream VIEW_ENDED\n"));
}

TALK_TEST(many_small_pieces_are_one_run_of_bytes)
{
    struct lane_config config = talk_config();

    config.copied_pull_bytes_max = 65536;
    const struct streams streams = begin_with(talk, &config);
    for (uint32_t i = 0; i < 1000; i++)
        talk_variable(talk, 100 + i, 4, UPDATE_ASSIGN_ADD);

    talk_pull(talk, streams.pull, 1, 100, 1000, 0);

    assert_int_equal(talk->pulled_messages, 1);
    assert_int_equal(talk->pulled_spans, 1);
    expect_pulled(talk, 4000, 0);
}
