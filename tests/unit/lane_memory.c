/* SPDX-License-Identifier: Apache-2.0 */
/* lane_memory.c -- where memory runs out: readers are given up, parts that were taken are applied,
 * and the run goes on. */
#include <inttypes.h>
#include <stdio.h>

#include "assert_number.h"
#include "operation_state.h"
#include "part_state.h"
#include "pull_state.h"
#include "lane_talk.h"

#define LONG 5u /* eight blocks of 32 KiB */
#define SMALL 6u
#define TWIN 7u     /* two shards' worth of small variables, each a block that is written whole */
#define SLOTTED 20u /* with a slot: three blocks each */
#define SLOTTED_ELEMENTS 24576u
#define ELEMENTS 65536u

struct streams {
    uint64_t push, pull;
};

static float ones[ELEMENTS];

/* inline_bytes decides whether a part is applied here or as vector work. */
static struct streams begin(struct talk *talk, uint32_t inline_bytes, uint64_t view_bytes_max)
{
    struct lane_config config = talk_config();
    struct streams streams;

    config.block_bytes = 32768;
    config.pull_chunk_bytes = 32768;
    config.copied_pull_bytes_max = 64;
    config.staging_bytes_max = 8u << 20;
    config.inline_bytes = inline_bytes;
    config.view_bytes_max = view_bytes_max;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, LONG, ELEMENTS, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SMALL, 4, UPDATE_ASSIGN_ADD);
    talk_variable(talk, TWIN, 8192, UPDATE_ASSIGN_ADD);
    talk_variable(talk, TWIN + 1, 8192, UPDATE_ASSIGN_ADD);
    streams.push = talk_push_stream(talk, 1, 1);
    streams.pull = talk_pull_stream(talk, 1);
    talk_forget(talk);
    return streams;
}

/* Staged while there is memory; it is applied with talk_commit. */
static void
stage(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t shard, uint32_t count)
{
    const struct talk_part part = {
        .sequence = sequence,
        .previous = sequence - 1,
        .shard = shard,
        .shards = shard == TWIN ? 2 : 1,
        .values = ones,
        .count = count};
    char staged[32];

    talk_part(talk, stream, &part);
    (void)snprintf(staged, sizeof staged, "staged %" PRIu64 "\n", sequence);
    talk_expect(talk, staged);
}

static void expect_all(struct talk *talk, uint64_t shard, uint32_t count, float value)
{
    static float held[ELEMENTS];

    assert_int_equal(
        lane_peek(talk->lane, shard, (uint8_t *)held, sizeof held), count * sizeof(float));
    for (uint32_t i = 0; i < count; i++)
        assert_number_equal(held[i], value);
}

static void no_more_memory(struct talk *talk, uint32_t takes_left)
{
    talk->scarce = true;
    talk->takes_left = takes_left;
}

/* ---- views are given up ---- */

static void a_reader_is_given_up(struct talk *talk, uint32_t inline_bytes)
{
    const struct streams streams = begin(talk, inline_bytes, 0);

    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0); /* given: a reader that stops after one message */
    talk_forget(talk);
    stage(talk, streams.push, 1, LONG, ELEMENTS);

    no_more_memory(talk, 0);
    talk_commit(talk, streams.push, 1, 0, 0);

    talk_expect(talk, "done 1 [1]\n");
    expect_all(talk, LONG, ELEMENTS, 1);
    talk->scarce = false;
    talk->deaf = 0;
    talk_writable(talk, streams.pull);
    talk_expect(talk, "pulled 1 error VIEW_ENDED\n");
}

TALK_TEST(where_vector_work_finds_no_memory_readers_are_given_up)
{
    a_reader_is_given_up(talk, 64);
}

TALK_TEST(where_a_part_that_is_applied_at_once_finds_none_they_are_too)
{
    a_reader_is_given_up(talk, 1u << 20);
}

TALK_TEST(the_oldest_reader_is_given_up_first)
{
    const struct streams streams = begin(talk, 64, 0);
    const uint64_t other = talk_pull_stream(talk, 1);

    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_forget(talk);
    stage(talk, streams.push, 1, LONG, ELEMENTS);
    talk_commit(talk, streams.push, 1, 0, 0); /* given: old blocks of the first reader's, … */
    talk_forget(talk);
    stage(talk, streams.push, 2, TWIN, 8192);
    talk->deaf = other;
    talk_pull(talk, other, 2, TWIN, 2, 0); /* … and a second one, of something else */
    talk_forget(talk);

    no_more_memory(talk, 0);
    talk_commit(talk, streams.push, 2, 0, 0);
    talk->scarce = false;
    talk_expect(talk, "done 2 [1 1]\n");

    talk->deaf = 0;
    talk_writable(talk, streams.pull);
    talk_expect(talk, "pulled 1 error VIEW_ENDED\n");
    talk_writable(talk, other); /* what the first one kept was enough */
    assert_int_equal(talk->pulled_bytes, 2 * 8192 * sizeof(float));
    assert_number_equal(*(const float *)(const void *)talk->pulled, 0);
}

/* ---- bytes that are on their way ---- */

static void a_part_waits_for_bytes(struct talk *talk, uint32_t inline_bytes)
{
    const struct streams streams = begin(talk, inline_bytes, 0);

    talk->holds_released = true;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0); /* given: all is read, nothing released */
    assert_int_equal(talk->lent_count, 8);
    talk_forget(talk);
    stage(talk, streams.push, 1, LONG, ELEMENTS);

    no_more_memory(talk, 0);
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_pull(talk, streams.pull, 2, LONG, 1, 0); /* a pull sees all of the part, or nothing */
    talk_expect(talk, "");
    for (uint32_t i = 0; i < talk->lent_count; i++)
        assert_number_equal(*(const float *)(const void *)talk->lent[i].bytes.data, 0);

    stage(talk, streams.push, 2, SMALL, 4); /* others go on, in their order */
    talk_release(talk);

    talk->scarce = false;
    assert_non_null(strstr(talk->text, "done 1 [1]\n"));
    assert_non_null(strstr(talk->text, "pulled 2 [1]"));
    expect_all(talk, LONG, ELEMENTS, 1);
    talk_release(talk);
}

TALK_TEST(vector_work_waits_for_bytes_that_are_on_their_way) { a_part_waits_for_bytes(talk, 64); }

TALK_TEST(so_does_a_part_that_is_applied_at_once) { a_part_waits_for_bytes(talk, 1u << 20); }

/* A row in the first block, and one in the last. */
static void stage_rows(struct talk *talk, uint64_t stream)
{
    const struct {
        int64_t rows[2];
        float values[2];
    } payload = {{0, ELEMENTS - 1}, {1, 1}};
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&indices, &values};
    wire_part part = WIRE_PART_INIT;

    indices.shard_id = values.shard_id = LONG;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.bytes = sizeof payload.rows;
    values.bytes = sizeof payload.values;
    part.sequence = 1;
    part.first = part.last = true;
    part.bytes = sizeof payload;
    part.pieces = pieces;
    part.n_pieces = 2;
    talk_push_part(talk, stream, &part, &payload, sizeof payload);
    talk_expect(talk, "staged 1\n");
}

static void rows_wait_for_bytes(struct talk *talk, uint32_t inline_bytes)
{
    const struct streams streams = begin(talk, inline_bytes, 0);
    static float held[ELEMENTS];

    talk->holds_released = true;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0); /* given: all is read, nothing released */
    talk_forget(talk);
    stage_rows(talk, streams.push);

    no_more_memory(talk, 0);
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_expect(talk, "");
    talk_release(talk);

    talk->scarce = false;
    talk_expect(talk, "done 1 [1]\n");
    assert_int_equal(lane_peek(talk->lane, LONG, (uint8_t *)held, sizeof held), sizeof held);
    assert_number_equal(held[0], 1);
    assert_number_equal(held[1], 0);
    assert_number_equal(held[ELEMENTS - 1], 1);
}

TALK_TEST(rows_that_are_vector_work_wait_for_them) { rows_wait_for_bytes(talk, 8); }

TALK_TEST(so_do_rows_that_are_applied_at_once) { rows_wait_for_bytes(talk, 1u << 20); }

/* Its vector work is out; when bytes are released, it is the one that waits for them that goes on.
 */
TALK_TEST(an_older_part_that_waits_for_nothing_is_left_alone)
{
    const struct streams streams = begin(talk, 64, 0);

    talk_open(talk, 2);
    const uint64_t other = talk_push_stream(talk, 2, 1);
    talk_forget(talk);
    talk->holds_released = talk->holds_compute = true;
    stage(talk, other, 1, TWIN, 8192);
    stage(talk, streams.push, 1, LONG, ELEMENTS);
    talk_commit(talk, other, 1, 0, 0);
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_forget(talk);
    no_more_memory(talk, 0);
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_expect(talk, ""); /* given: the newer one waits */
    assert_int_equal(talk->lane->turns->stalled, 1);

    talk_release(talk);

    talk_expect(talk, "done 1 [1]\n");
    expect_all(talk, LONG, ELEMENTS, 1);
    talk->scarce = false;
    talk_compute(talk);
    talk_expect(talk, "done 1 [1 1]\n");
    expect_all(talk, TWIN, 8192, 1);
}

TALK_TEST(a_ps_that_is_told_to_stop_waits_for_such_a_part)
{
    const struct streams streams = begin(talk, 64, 0);
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    talk->holds_released = true;
    talk_pull(talk, streams.pull, 1, LONG, 1, 0);
    talk_forget(talk);
    stage(talk, streams.push, 1, LONG, ELEMENTS);
    no_more_memory(talk, 0);
    talk_commit(talk, streams.push, 1, 0, 0);

    talk_step(talk, &terminate);
    talk_expect(talk, "");
    talk_release(talk);

    talk->scarce = false;
    talk_expect(talk, "done 1 [1]\nexit 143 TERMINATED\n");
}

/* Whatever is taken last: the part is applied, whole and once, and the ps goes on. */
STATE_TEST(after_any_number_of_blocks_a_part_that_was_taken_is_applied, talk_setup, talk_teardown)
{
    for (uint64_t inline_bytes = 64; inline_bytes <= 1u << 20; inline_bytes <<= 14) {
        for (uint32_t takes = 0; takes < 40; takes++) {
            struct talk *const talk = *state;
            const struct streams streams = begin(talk, (uint32_t)inline_bytes, 0);
            const uint64_t other = talk_pull_stream(talk, 1);
            talk->holds_released = true;
            talk_pull(talk, streams.pull, 1, LONG, 1, 0);
            talk->deaf = other;
            talk_pull(talk, other, 2, LONG, 1, 0);
            talk_forget(talk);
            stage(talk, streams.push, 1, LONG, ELEMENTS);

            no_more_memory(talk, takes);
            talk_commit(talk, streams.push, 1, 0, 0);
            talk->holds_released = false;
            talk_release(talk);

            talk->scarce = false;
            assert_non_null(strstr(talk->text, "done 1 [1]\n"));
            assert_null(strstr(talk->text, "exit"));
            expect_all(talk, LONG, ELEMENTS, 1);
            assert_int_equal(talk_teardown(state), 0);
            assert_int_equal(talk_setup(state), 0);
        }
    }
    begin(*state, 64, 0);
}

/* ---- a view that ends while a part is being cut up ---- */

/* The first variable's block makes place for a fresh one, and the second's ends the view: the first
 * one's old bytes are still to be read. */
TALK_TEST(what_a_part_reads_is_kept_until_it_has_run)
{
    const struct streams streams = begin(talk, 1u << 20, 8192 * sizeof(float)); /* one block */

    stage(talk, streams.push, 1, TWIN, 8192);
    talk_commit(talk, streams.push, 1, 0, 0);
    talk->deaf = streams.pull;
    talk_pull(talk, streams.pull, 1, TWIN, 2, 0);
    talk_pull(talk, streams.pull, 2, LONG, 1, 0);
    talk_forget(talk);
    stage(talk, streams.push, 2, TWIN, 8192);

    talk_commit(talk, streams.push, 2, 0, 0);

    talk_expect(talk, "done 2 [2 2]\n");
    expect_all(talk, TWIN, 8192, 2);
    expect_all(talk, TWIN + 1, 8192, 2);
}

/* The first push, which is done. */
static void stage_again(struct talk *talk, uint64_t stream)
{
    const struct talk_part part = {
        .sequence = 1, .shard = SMALL, .shards = 1, .values = ones, .count = 4};

    talk_part(talk, stream, &part);
}

/* Its client sends again on another stream all that it has no answer to. */
TALK_TEST(an_answer_that_there_is_no_memory_for_ends_its_stream)
{
    const struct streams streams = begin(talk, 1u << 20, 0);

    stage(talk, streams.push, 1, SMALL, 4);
    talk->deaf = streams.push;
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_expect(talk, "done 1 [1]\n");
    no_more_memory(talk, 0); /* given: a reader that has stopped, and no memory */

    for (uint32_t i = 0; i < 2000 && talk->text_used == 0; i++) /* more than a slab has */
        stage_again(talk, streams.push);

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    talk->scarce = false;
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);
    stage_again(talk, again);
    talk_expect(talk, "done 1 [1]\n");
}

/* ps 0 opens another, and gives its orders again. */
TALK_TEST(a_report_that_there_is_no_memory_for_ends_ps_0s_stream)
{
    (void)begin(talk, 1u << 20, 0);
    talk->deaf = talk->controller;
    talk_delete(talk, 999);
    talk_forget(talk);
    no_more_memory(talk, 0);

    for (uint32_t i = 0; i < 200 && talk->text_used == 0; i++)
        talk_delete(talk, 999); /* there is none: nothing is done but to say so */

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    assert_null(talk->lane->controller);
}

/* Its create fails: what had been made of it is given back, and no tick fills on. */
TALK_TEST(a_variable_that_there_is_no_memory_to_fill_is_taken_back)
{
    talk_start(talk, NULL);
    const uint64_t state_bytes = talk->lane->store.state_bytes;
    talk_add(talk, 30, 1u << 18, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    /* given: a megabyte takes more than one step */
    assert_non_null(talk->lane->store.unfilled.first);
    talk_forget(talk);

    talk->out_of_memory = true;
    talk_tick(talk, 1);

    talk_expect(talk, "report 2 error OUT_OF_MEMORY\n");
    assert_null(talk->lane->store.unfilled.first);
    assert_int_equal(talk->lane->store.state_bytes, state_bytes);
    talk->out_of_memory = false;
    talk_tick(talk, 1);
    talk_expect(talk, "");
}

/* Wherever memory ends: what is kept of its elements is taken and given back with each block. */
TALK_TEST(of_a_variable_that_its_creator_assigns_all_is_taken_back)
{
    uint32_t refused = 0;

    talk_start(talk, NULL);
    const uint64_t state_bytes = talk->lane->store.state_bytes;
    for (uint32_t takes = 0; refused == takes; takes++) {
        talk_forget(talk);
        talk_add(
            talk, 40 + takes, 3u << 18, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD,
            WIRE_INITIALIZER_ASSIGNED); /* given: the first of three blocks is begun */
        no_more_memory(talk, takes);
        for (uint32_t i = 0; i < 20; i++)
            talk_tick(talk, 0);
        talk->scarce = false;
        if (strstr(talk->text, "OUT_OF_MEMORY") != NULL)
            refused++;
        else
            talk_delete(talk, 40 + takes);
        while (store_is_leaving(&talk->lane->store))
            talk_tick(talk, 0);
        assert_int_equal(talk->lane->store.state_bytes, state_bytes);
        assert_int_equal(talk->lane->store.leaving_bytes, 0);
    }

    assert_in_range(refused, 4, 100); /* blocks are to come, and the bits of each */
}

/* Many pulls of many variables wait for one push. */
/* ---- slots, whose blocks are kept for views and lent as those of values are ---- */

/* A long pull of it is under way, whose view shows slots, too. */
static const struct lane_pull *
read_slots(struct talk *talk, uint64_t stream, uint64_t request, uint64_t id)
{
    talk->deaf = stream;
    talk_pull(talk, stream, request, id, 1, 0);
    struct lane_pull *pull = lane_pull_under_way(lane_stream_find(talk->lane, stream));
    assert_non_null(pull);
    pull->view.scope = VIEW_OF_SLOTS_TOO;
    store_shard(&talk->lane->store, id)->slot_views++;
    talk_forget(talk);
    return pull;
}

static float first_of(const struct block *block)
{
    return *(const float *)(const void *)block->data;
}

/* a = 0.9 a + g, in a slot. */
static void a_view_of_slots_sees_what_is_overwritten(struct talk *talk, uint32_t inline_bytes)
{
    const struct streams streams = begin(talk, inline_bytes, 0);

    talk_variable(talk, SLOTTED, SLOTTED_ELEMENTS, UPDATE_MOMENTUM);
    talk_forget(talk);
    stage(talk, streams.push, 1, SLOTTED, SLOTTED_ELEMENTS);
    talk_commit(talk, streams.push, 1, 0, 0);
    const struct shard *shard = store_shard(&talk->lane->store, SLOTTED);
    const struct lane_pull *reader = read_slots(talk, streams.pull, 1, SLOTTED); /* given */

    stage(
        talk, streams.push, 2, SLOTTED,
        SLOTTED_ELEMENTS); /* when: all of it, then some of a block */
    talk_commit(talk, streams.push, 2, 0, 0);
    talk_forget(talk);
    stage(talk, streams.push, 3, SLOTTED, 4);
    talk_commit(talk, streams.push, 3, 0, 0);

    for (uint32_t i = 0; i < shard->block_count; i++) { /* then */
        const struct block *seen = store_block_at(shard, 1, i, reader->view.position);
        assert_number_equal(first_of(seen), 1);
        assert_number_equal(first_of(shard->list[1][i]), i == 0 ? 0.9f * 1.9f + 1 : 1.9f);
    }
    assert_number_equal(((const float *)(const void *)shard->list[1][0]->data)[4], 1.9f);
    talk->deaf = 0;
    talk_writable(talk, streams.pull);
    assert_int_equal(talk->pulled_bytes, SLOTTED_ELEMENTS * sizeof(float));
    assert_int_equal(talk->lane->store.view_bytes, 0);
}

TALK_TEST(vector_work_leaves_slots_to_a_view_that_shows_them)
{
    a_view_of_slots_sees_what_is_overwritten(talk, 64);
}

TALK_TEST(so_does_what_is_applied_at_once)
{
    a_view_of_slots_sees_what_is_overwritten(talk, 1u << 20);
}

/* However much memory is left when the value's block has its successor, the slot's, which is on its
 * way to a reader, has none: the part waits, and then all is as if it had not. */
TALK_TEST(a_part_that_waits_for_a_slot_loses_nothing_of_the_value)
{
    const struct streams streams = begin(talk, 1u << 20, 0);
    uint32_t waited = 0;

    talk_variable(talk, SLOTTED, SLOTTED_ELEMENTS, UPDATE_MOMENTUM);
    talk_variable(talk, SLOTTED + 1, SLOTTED_ELEMENTS, UPDATE_MOMENTUM);

    for (uint32_t takes = 0; takes < 8; takes++) {
        const uint64_t sequence = 2 * takes + 1;
        talk_forget(talk);
        (void)read_slots(talk, streams.pull, sequence, SLOTTED); /* given */
        struct shard *shard = store_shard(&talk->lane->store, SLOTTED);
        struct hold *hold = pool_take(&talk->lane->pulls->holds);
        hold->block = shard->list[1][0];
        store_block_lend(hold->block);
        const struct lane_event released = {
            .kind = LANE_EVENT_RELEASED, .hold = (uint64_t)(uintptr_t)hold};
        stage(talk, streams.push, sequence, SLOTTED, SLOTTED_ELEMENTS);

        no_more_memory(talk, takes); /* when */
        talk_commit(talk, streams.push, sequence, 0, 0);
        waited += talk->lane->turns->stalled;
        talk_step(talk, &released);
        talk->scarce = false;
        talk->deaf = 0;
        talk_writable(talk, streams.pull);
        talk_forget(talk);
        stage(talk, streams.push, sequence + 1, SLOTTED + 1, SLOTTED_ELEMENTS);
        talk_commit(talk, streams.push, sequence + 1, 0, 0);

        for (uint32_t list = 0; list < 2; list++) /* then */
            assert_memory_equal(
                shard->list[list][0]->data,
                store_shard(&talk->lane->store, SLOTTED + 1)->list[list][0]->data, 32768);
    }
    assert_in_range(waited, 1, 7);
}

TALK_TEST(what_one_event_makes_be_said_takes_so_much_memory_at_a_time)
{
    enum { pulls = 40, variables = 2000, first = 1000 };
    struct lane_config config = talk_config();
    char pulled[32];
    config.copied_pull_bytes_max = variables * sizeof(float);
    talk_start(talk, &config);
    talk_open(talk, 1);
    for (uint64_t i = 0; i < variables; i++)
        talk_variable(talk, first + i, 1, UPDATE_ASSIGN_ADD);
    const uint64_t push = talk_push_stream(talk, 1, 1);
    for (uint64_t i = 0; i < pulls; i++)
        talk_pull(talk, talk_pull_stream(talk, 1), 100 + i, first, variables, 1);
    talk_forget(talk);
    stage(talk, push, 1, first, 1);
    talk_forget(talk);
    const uint64_t before = talk->most_bytes_taken = talk->bytes_taken;

    talk_commit(talk, push, 1, 0, 0); /* when */
    for (uint32_t i = 0; i < pulls; i++)
        talk_tick(talk, 0);

    for (uint32_t i = 0; i < pulls; i++) { /* then: all of it is said, a part at a time, … */
        (void)snprintf(pulled, sizeof pulled, "pulled %u [1 0 ", 100 + i);
        assert_non_null(strstr(talk->text, pulled));
    }
    assert_in_range(talk->most_bytes_taken - before, FLUSHED_BYTES_MAX / 4, 3 * FLUSHED_BYTES_MAX);
    talk_tick(talk, 0);
    assert_true(talk->bytes_taken < before); /* … and is not kept, nor are the pulls */
}

/* More than pulls may take, and more than may lie between pieces. */
TALK_TEST(parts_take_none_of_the_room_of_pulls)
{
    struct lane_config config = talk_config();

    config.block_bytes = 32768;
    config.staging_bytes_max = 64u << 20;
    config.pulls_bytes_max = SIZED_POOL_EMPTY_BYTES_MAX / 2;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, LONG, ELEMENTS, UPDATE_ASSIGN_ADD);
    talk_variable(talk, SMALL, 1, UPDATE_ASSIGN_ADD);
    const uint64_t push = talk_push_stream(talk, 1, 1), reader = talk_pull_stream(talk, 0);
    talk_forget(talk);
    for (uint64_t sequence = 1; sequence <= 16; sequence++)
        stage(talk, push, sequence, LONG, ELEMENTS);

    talk_pull(talk, reader, 7, SMALL, 1, 0);

    talk_expect(talk, "pulled 7 [0] 0\n");
}
