/* SPDX-License-Identifier: Apache-2.0 */
/* lane_chunk.c -- chunks that are not the pool's: a part whose middle is lent is applied like any
 * other, and however it ends, what was lent is given back once. */
#include <stdio.h>

#include "assert_number.h"
#include "part_state.h"
#include "peer.h"
#include "lane_talk.h"

#define VARIABLE 5u
#define ELEMENTS 16u
#define LARGE 6u /* its pushes are computed apart */
#define LARGE_ELEMENTS 32u

/* Who lends the middle of a push. What it has back is spoilt at once: whoever reads on is seen. */
struct lender {
    struct chunk_owner owner;
    _Alignas(64) float values[LARGE_ELEMENTS];
    uint32_t lent_bytes, times_given;
};

static void take_back(void *context, uint8_t *data, uint32_t bytes)
{
    struct lender *const lender = context;

    assert_ptr_equal(data, lender->values);
    assert_int_equal(bytes, lender->lent_bytes);
    memset(data, 0xff, bytes);
    lender->times_given++;
}

static struct lender lender;
static float values[LARGE_ELEMENTS];

static uint64_t begin(struct talk *talk, bool records)
{
    struct lane_config config = talk_config();

    config.records = records;
    lender = (struct lender){.owner = {.give = take_back, .context = &lender}};
    for (uint32_t i = 0; i < LARGE_ELEMENTS; i++)
        values[i] = (float)(i + 1);
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, ELEMENTS, UPDATE_ASSIGN_ADD);
    talk_variable(talk, LARGE, LARGE_ELEMENTS, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_recorded(talk);
    talk_forget(talk);
    return stream;
}

static struct talk_part part_of(uint64_t sequence, uint64_t shard)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = sequence - 1,
        .shard = shard,
        .shards = 1,
        .values = values,
        .count = shard == LARGE ? LARGE_ELEMENTS : ELEMENTS};
}

static struct lane_part *receiving(struct talk *talk, uint64_t stream)
{
    return lane_stream_find(talk->lane, stream)->receiving;
}

/* The part that is being received goes on with [at, at + count), in the lender's memory. */
static bool lend(
    struct talk *talk, uint64_t stream, const struct talk_part *pushed, uint32_t at, uint32_t count)
{
    struct lane_part *const part = receiving(talk, stream);
    wire_piece piece = WIRE_PIECE_INIT;

    piece.shard_id = pushed->shard;
    piece.offset_bytes = at * sizeof(float);
    piece.bytes = count * sizeof(float);
    lender.lent_bytes = count * sizeof(float);
    memcpy(lender.values, values + at, lender.lent_bytes);
    lane_piece_mark(talk->lane, part);
    assert_non_null(lane_piece_take(talk->lane, part, &piece));
    const struct chunk chunk = {
        .owner = &lender.owner,
        .data = (uint8_t *)lender.values,
        .bytes = lender.lent_bytes,
        .used = lender.lent_bytes};
    return lane_staging_add(talk->lane, part, &chunk);
}

/* Some of it copied, then eight elements lent, and all but the last four copied again. */
static void push_but_four(
    struct talk *talk, uint64_t stream, const struct talk_part *pushed, uint32_t copied_first)
{
    const uint32_t lent_to = copied_first + 8;

    talk_part_step(talk, stream, pushed, 0, copied_first);
    assert_true(lend(talk, stream, pushed, copied_first, 8));
    if (lent_to < pushed->count - 4)
        talk_part_step(talk, stream, pushed, lent_to, pushed->count - 4 - lent_to);
}

static void
push(struct talk *talk, uint64_t stream, const struct talk_part *pushed, uint32_t copied_first)
{
    push_but_four(talk, stream, pushed, copied_first);
    talk_part_step(talk, stream, pushed, pushed->count - 4, 4);
}

static void expect_values(struct talk *talk, const struct talk_part *pushed)
{
    float held[LARGE_ELEMENTS];

    assert_int_equal(
        lane_peek(talk->lane, pushed->shard, (uint8_t *)held, sizeof held),
        pushed->count * sizeof(float));
    for (uint32_t i = 0; i < pushed->count; i++)
        assert_number_equal(held[i], values[i]);
}

/* ---- applied ---- */

/* In the middle of a run, behind what the pool's chunk has, and at its very beginning. */
STATE_TEST(what_is_lent_is_applied_in_its_place_and_given_back_once, talk_setup, talk_teardown)
{
    const uint32_t copied_first[] = {4, 0, 1};

    for (size_t i = 0; i < sizeof copied_first / sizeof *copied_first; i++) {
        struct talk *const talk = *state;
        const uint64_t stream = begin(talk, false);
        const struct talk_part pushed = part_of(1, VARIABLE);
        push(talk, stream, &pushed, copied_first[i]);
        talk_expect(talk, "staged 1\n");
        assert_int_equal(lender.times_given, 0);

        talk_commit(talk, stream, 1, 0, 0);

        talk_expect(talk, "done 1 [1]\n");
        expect_values(talk, &pushed);
        assert_int_equal(lender.times_given, 1);
        assert_int_equal(talk->lane->parts->chunks.used, 0);
        assert_int_equal(talk_teardown(state), 0);
        assert_int_equal(talk_setup(state), 0);
    }
    (void)begin(*state, false);
}

TALK_TEST(vector_work_has_what_is_lent_until_it_has_run)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part pushed = part_of(1, LARGE);

    push(talk, stream, &pushed, 4);
    talk->holds_compute = true;
    talk_commit(talk, stream, 1, 0, 0);
    talk_expect(talk, "staged 1\n");
    assert_int_equal(lender.times_given, 0);

    talk_compute(talk);

    talk_expect(talk, "done 1 [1]\n");
    expect_values(talk, &pushed);
    assert_int_equal(lender.times_given, 1);
}

/* lane_talk replays what was recorded, at the end: the lent bytes are in it, as they were. */
TALK_TEST(a_record_has_what_is_lent_until_it_is_written)
{
    const uint64_t stream = begin(talk, true);
    struct talk_part pushed = part_of(1, VARIABLE);

    pushed.eager = true; /* staged and applied in one step */
    push(talk, stream, &pushed, 4);
    talk_recorded(talk);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_values(talk, &pushed);
    assert_int_equal(lender.times_given, 1);
}

/* ---- dropped ---- */

TALK_TEST(a_part_that_breaks_off_gives_it_back)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part pushed = part_of(1, VARIABLE);

    push_but_four(talk, stream, &pushed, 4);
    assert_int_equal(lender.times_given, 0);

    talk_hang_up(talk, stream);

    assert_int_equal(lender.times_given, 1);
    assert_int_equal(talk->lane->staged_bytes, 0);
}

TALK_TEST(a_part_that_is_refused_gives_it_back)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part pushed = part_of(1, VARIABLE);

    push_but_four(talk, stream, &pushed, 4);
    values[ELEMENTS - 1] = __builtin_inff();
    talk_part_step(talk, stream, &pushed, ELEMENTS - 4, 4);

    talk_expect(talk, "refused 1 NON_FINITE\n");
    assert_int_equal(lender.times_given, 1);
}

TALK_TEST(a_staged_part_that_is_passed_over_gives_it_back)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part pushed = part_of(1, VARIABLE);

    push(talk, stream, &pushed, 4);
    talk_close(talk, 1);
    assert_int_equal(lender.times_given, 0);

    talk_decide(talk, 1, 0, 0);

    assert_int_equal(lender.times_given, 1);
    assert_int_equal(talk->lane->staged_bytes, 0);
}

STATE_TEST(a_lane_that_ends_gives_it_back, talk_setup, talk_teardown)
{
    for (uint32_t records = 0; records < 2; records++) {
        struct talk *const talk = *state;
        const uint64_t stream = begin(talk, records == 1);
        const struct talk_part pushed = part_of(1, VARIABLE);
        push(talk, stream, &pushed, 4);
        assert_int_equal(lender.times_given, 0);

        assert_int_equal(talk_teardown(state), 0);

        assert_int_equal(lender.times_given, 1);
        assert_int_equal(talk_setup(state), 0);
    }
    (void)begin(*state, false);
}

/* ---- what it costs, and who has it without memory ---- */

TALK_TEST(it_takes_of_the_grant_what_copied_bytes_take)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part lent = part_of(1, VARIABLE), copied = part_of(2, VARIABLE);
    const struct lane_session *const session = lane_stream_find(talk->lane, stream)->session;

    push(talk, stream, &lent, 4);
    talk_part_in_steps(talk, stream, &copied, 4);

    talk_expect(talk, "staged 1\nstaged 2\n");
    assert_int_equal(
        lane_session_part(session, 1)->room_bytes, lane_session_part(session, 2)->room_bytes);
    assert_int_equal(lane_session_part(session, 1)->received, ELEMENTS * sizeof(float));
    talk_hang_up(talk, stream);
}

TALK_TEST(what_there_is_no_chunk_for_is_the_lenders_still)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part pushed = part_of(1, VARIABLE);
    struct pool *const chunks = &talk->lane->parts->chunks;
    void *taken[128];
    uint32_t count = 0;

    talk_part_step(talk, stream, &pushed, 0, 4);
    talk->out_of_memory = true;
    do {
        assert_in_range(count, 0, 127);
        taken[count] = pool_take(chunks);
    } while (taken[count++] != NULL);

    assert_false(lend(talk, stream, &pushed, 4, 8));

    assert_int_equal(lender.times_given, 0);
    assert_int_equal(receiving(talk, stream)->received, 4 * sizeof(float));
    for (uint32_t i = 0; i + 1 < count; i++)
        pool_give(chunks, taken[i]);
    talk->out_of_memory = false;
    (void)lane_part_refuse_memory(talk->lane, receiving(talk, stream)); /* as a lender does then */
    talk_hang_up(talk, stream);
    assert_int_equal(lender.times_given, 0);
}
