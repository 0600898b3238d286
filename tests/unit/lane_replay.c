/* SPDX-License-Identifier: Apache-2.0 */
/* lane_replay.c -- what a lane writes down makes another lane what it is: compared at the end of
 * each conversation by lane_talk, and of every simulated run by tests/sim. Here is what those
 * seldom meet, and what is refused. */

#include "unit.h"
#include "part_state.h"
#include "lane_talk.h"
#include "little_endian.h"
#include "records.h"
#include "replay_check.h"

#define VARIABLE 5u
#define LARGE 6u /* its pushes are computed apart */
#define MOMENTUM 7u

static const float values[32] = {1, 2, 3, 4};

/* One session, three variables, and a disk that keeps up. */
static uint64_t begin(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.records = true;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    talk_variable(talk, LARGE, 32, UPDATE_ASSIGN_ADD);
    talk_variable(talk, MOMENTUM, 4, UPDATE_MOMENTUM);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_recorded(talk);
    talk_forget(talk);
    return stream;
}

static struct talk_part part(uint64_t sequence, uint64_t shard, uint32_t count)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = sequence - 1,
        .shard = shard,
        .shards = 1,
        .values = values,
        .count = count};
}

/* ---- what a part is ---- */

TALK_TEST(a_staged_part_is_recorded_with_all_that_its_turn_will_need)
{
    const uint64_t stream = begin(talk);
    struct talk_part staged = part(1, VARIABLE, 4);
    struct talk_part with_slots = part(2, MOMENTUM, 4);

    staged.weight = 2.5;
    staged.function = UPDATE_ASSIGN_SUB;
    staged.based_on = 3;
    staged.allow_non_finite = true;
    talk_part(talk, stream, &staged);
    with_slots.shards = 1;
    talk_part(talk, stream, &with_slots);

    talk_recorded(talk);

    talk_expect(talk, "staged 1\nstaged 2\n");
}

/* In several messages, with bytes that don't end where a chunk does. */
TALK_TEST(a_part_that_came_in_pieces_is_one_record)
{
    const uint64_t stream = begin(talk);
    const struct talk_part staged = part(1, LARGE, 32);
    const uint64_t before = talk->last_record;

    talk_part_in_steps(talk, stream, &staged, 3);

    assert_int_equal(talk->last_record, before + 1);
    talk_recorded(talk);
    talk_expect(talk, "staged 1\n");
}

/* Those that the push names, over the variable's own. */
TALK_TEST(a_function_is_recorded_with_its_hyperparameters)
{
    const uint64_t stream = begin(talk);
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *rates[] = {&rate};
    wire_function function = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&function};
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    rate.name = (Sumac__V1__HyperparameterName)UPDATE_HYPERPARAMETER_LEARNING_RATE;
    rate.value = 0.5;
    function.function = (Sumac__V1__UpdateFunction)UPDATE_MOMENTUM;
    function.hyperparameters = rates;
    function.n_hyperparameters = 1;
    piece.shard_id = MOMENTUM;
    piece.function = 1;
    piece.bytes = header.bytes = 16;
    header.first = header.last = true;
    header.sequence = 1;
    header.functions = functions;
    header.pieces = pieces;
    header.n_functions = header.n_pieces = 1;
    request.parts = parts;
    request.n_parts = 1;

    talk_push(talk, stream, &request, values, 16);

    talk_recorded(talk);
    talk_expect(talk, "staged 1\n");
}

/* And what names it, which is a contradiction without. Told again, it is there already. */
TALK_TEST(a_function_that_was_defined_is_recorded_before_what_names_it)
{
    wire_define_function define = WIRE_DEFINE_FUNCTION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    (void)begin(talk);
    define.number = 64;
    define.name = (char *)"mine";
    define.text = (char *)"slots: m = 0\nm = m + g\nvalue = value - m\n";
    order.define = &define;

    talk_order(talk, &order); /* when */
    talk_order(talk, &order);
    talk_variable(talk, 17, 4, 64);

    talk_recorded(talk); /* then */
    talk_expect(talk, "report 9\nreport 10\nreport 11\nreport 12\n");
}

/* Shards without bytes are named, too: the versions in the answer are theirs. */
TALK_TEST(a_shard_that_a_part_only_names_keeps_its_place)
{
    const uint64_t stream = begin(talk);
    wire_piece pieces[4] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT, WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *pointers[4];
    const uint64_t shards[] = {LARGE, VARIABLE, MOMENTUM, LARGE}, bytes[] = {0, 16, 0, 8};
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    for (size_t i = 0; i < 4; i++) {
        pieces[i].shard_id = shards[i];
        pieces[i].bytes = bytes[i];
        pointers[i] = &pieces[i];
    }
    header.first = header.last = true;
    header.sequence = 1;
    header.bytes = 24;
    header.pieces = pointers;
    header.n_pieces = 4;
    request.parts = parts;
    request.n_parts = 1;

    talk_push(talk, stream, &request, values, 24);

    talk_recorded(talk);
    talk_expect(talk, "staged 1\n");
}

/* It is over before its record is written: its bytes stay for as long as that takes. */
TALK_TEST(a_part_that_is_applied_at_once_is_recorded_with_its_bytes)
{
    const uint64_t stream = begin(talk);
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pointers[] = {&piece};
    wire_part headers[2] = {WIRE_PART_INIT, WIRE_PART_INIT};
    wire_part *parts[] = {&headers[0], &headers[1]};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    piece.shard_id = VARIABLE;
    piece.bytes = 16;
    for (uint32_t i = 0; i < 2; i++) {
        headers[i].first = headers[i].last = headers[i].eager = true;
        headers[i].sequence = i + 1;
        headers[i].previous = i;
        headers[i].bytes = 16;
        headers[i].pieces = pointers;
        headers[i].n_pieces = 1;
    }
    request.parts = parts;
    request.n_parts = 2;
    const float two[] = {1, 2, 3, 4, 50, 60, 70, 80};

    talk_push(talk, stream, &request, two, sizeof two);

    talk_recorded(talk);
    assert_int_equal(talk->lane->parts->chunks.used, 0);
    talk_expect(talk, "staged 1\nstaged 2\ndone 1 [1]\ndone 2 [2]\n");
}

/* ---- what becomes of it ---- */

TALK_TEST(a_part_that_carries_its_own_commit_is_committed_while_it_is_computed)
{
    const uint64_t stream = begin(talk);
    struct talk_part eager = part(1, LARGE, 32);

    eager.eager = true;
    talk->holds_compute = true;

    talk_part(talk, stream, &eager);

    talk_recorded(talk);
    talk_expect(talk, "staged 1\n");
}

/* What was committed before it was said is applied, and the part beside it commits itself. */
TALK_TEST(a_clock_does_not_wait_for_the_eager_part_that_it_came_with)
{
    const uint64_t stream = begin(talk);
    struct talk_part eager = part(1, LARGE, 32);
    wire_commit commit = WIRE_COMMIT_INIT;

    commit.clock = 7;
    eager.eager = true;
    eager.commit = &commit;
    talk->holds_compute = true;

    talk_part(talk, stream, &eager);

    talk_recorded(talk);
    talk_expect(talk, "staged 1\n");
    assert_int_equal(talk->lane->sessions.first->clock, 7);
}

TALK_TEST(who_joins_late_is_recorded_with_the_clock_that_it_starts_at)
{
    const uint64_t stream = begin(talk);

    talk_commit_at(talk, stream, 0, 0, 0, 9);
    talk_open(talk, 2);

    talk_recorded(talk);

    assert_int_equal(talk->lane->sessions.last->clock, 9);
    talk_expect(talk, "report 9 clock 9\n");
}

TALK_TEST(refusals_voids_and_clocks_are_recorded_and_so_is_what_is_forgotten)
{
    const uint64_t stream = begin(talk);
    struct talk_part bad = part(1, VARIABLE, 4);
    const struct talk_part voided = part(2, VARIABLE, 4);
    struct talk_part refused = part(3, VARIABLE, 4);

    bad.offset = 1;
    talk_part(talk, stream, &bad);
    talk_part(talk, stream, &voided);
    talk_commit_at(talk, stream, 2, 2, 0, 7);
    talk_commit(talk, stream, 2, 0, 1);
    refused.offset = 2;
    talk_part(talk, stream, &refused);

    talk_recorded(talk);

    talk_expect(talk, "staged 2\nrefused 3 WRONG_SHAPE\ndone 1 voided\ndone 2 voided\n");
}

TALK_TEST(a_settle_is_recorded_with_what_it_drops)
{
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        const struct talk_part staged = part(sequence, VARIABLE, 4);
        talk_part(talk, stream, &staged);
    }
    talk_close(talk, 1);
    talk_decide(talk, 1, 2, 1);

    talk_recorded(talk);

    assert_non_null(strstr(talk->text, "closed 2 voided 1\n"));
    assert_int_equal(talk->lane->closed_sessions.first->mark, 2);
}

TALK_TEST(a_variable_that_goes_while_a_part_names_it_is_recorded)
{
    const uint64_t stream = begin(talk);
    const struct talk_part staged = part(1, VARIABLE, 4);

    talk_part(talk, stream, &staged);
    talk_delete(talk, VARIABLE);
    talk_recorded(talk);

    talk_commit(talk, stream, 1, 0, 0);

    talk_recorded(talk);
    assert_non_null(strstr(talk->text, "done 1 [1]\n"));
}

/* The disk says again that it has the first one. */
TALK_TEST(an_earlier_record_takes_nothing_back)
{
    const uint64_t stream = begin(talk);
    const struct talk_part staged = part(1, VARIABLE, 4);

    talk_part(talk, stream, &staged);
    talk_recorded(talk);
    talk_expect(talk, "staged 1\n");

    talk_recorded_up_to(talk, 1); /* when */
    talk_part(talk, stream, &staged);

    talk_expect(talk, "staged 1\n"); /* then */
}

/* ---- a journal that ends where its ps did ---- */

/* The records but for the last `left_out`, in another lane. */
static struct lane *replay_but(const struct talk *talk, uint64_t left_out)
{
    struct lane *again = lane_create(lane_config(talk->lane), &memory_heap);
    size_t at = 0;

    for (uint64_t i = left_out; i < talk->last_record; i++) {
        struct span record = {.data = talk->journal + at + sizeof record.bytes};
        struct sumac_error error;
        memcpy(&record.bytes, talk->journal + at, sizeof record.bytes);
        at += sizeof record.bytes + record.bytes;
        assert_int_equal(lane_replay(again, &record, &error), SUMAC_OK);
    }
    return again;
}

TALK_TEST(a_lane_that_starts_again_goes_on_where_its_records_end)
{
    const uint64_t stream = begin(talk);
    const struct talk_part staged = part(1, VARIABLE, 4);
    const struct lane_event start = {.kind = LANE_EVENT_START, .now_us = talk->now_us};
    struct lane_effects effects;
    float value[4] = {0};

    talk_part(talk, stream, &staged);
    talk_commit(talk, stream, 1, 0, 0);
    struct lane *again = replay_but(talk, 1); /* what is left out: that it was applied */
    assert_int_equal(again->sessions.first->mark, 0);

    lane_step(again, &start, &effects);

    assert_int_equal(again->sessions.first->mark, 1);
    assert_int_equal(lane_cluster_id(again), lane_cluster_id(talk->lane));
    assert_int_not_equal(lane_cluster_id(again), 0);
    assert_int_equal(lane_peek(again, VARIABLE, (uint8_t *)value, sizeof value), sizeof value);
    assert_memory_equal(value, values, sizeof value);
    assert_int_equal(effects.items[1].kind, LANE_EFFECT_RECORD);
    assert_int_equal(effects.items[1].record, talk->last_record);
    lane_destroy(again);
}

TALK_TEST(of_two_sessions_each_goes_on_where_the_records_end)
{
    uint64_t streams[2] = {begin(talk)};
    const struct talk_part staged = part(1, LARGE, 32);
    const struct lane_event start = {.kind = LANE_EVENT_START, .now_us = talk->now_us};
    struct lane_effects effects;

    talk->holds_compute = true; /* given: both are committed, and neither is applied */
    talk_open(talk, 2);
    streams[1] = talk_push_stream(talk, 2, 1);
    for (size_t i = 0; i < 2; i++) {
        talk_part(talk, streams[i], &staged);
        talk_commit(talk, streams[i], 1, 0, 0);
    }
    struct lane *const again = replay_but(talk, 0);

    lane_step(again, &start, &effects); /* when */

    assert_non_null(again->sessions.first->applying); /* then */
    assert_int_equal(again->sessions.first->in_lane.next->turn, TURN_BLOCKED);
    lane_destroy(again);
    talk_compute(talk);
    talk_compute(talk);
    talk_forget(talk);
}

/* This ps knows where the variable is, and has none of it. */
TALK_TEST(a_variable_that_is_elsewhere_is_recorded)
{
    char name[] = "elsewhere";
    uint64_t shape[] = {4};
    wire_shard shard = WIRE_SHARD_INIT, *shards[] = {&shard};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer zeros = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    (void)begin(talk);
    shard.shard_id = variable.variable_id = 44;
    shard.rows = 4;
    shard.bytes = 16;
    own.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    zeros.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
    variable.name = name;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.function = &own;
    variable.initializer = &zeros;
    variable.shards = shards;
    variable.n_shape = variable.n_shards = 1;
    add.variable = &variable;
    order.add_shards = &add;
    talk_order(talk, &order);

    struct lane *const again = talk_replayed(talk);

    assert_non_null(store_find(&again->store, 44));
    lane_destroy(again);
    talk_recorded(talk);
    talk_forget(talk);
}

/* ---- what is no record ---- */

static void expect_refused(struct lane *again, const uint8_t *bytes, size_t count)
{
    const struct span record = {.data = bytes, .bytes = count};
    struct sumac_error error;

    assert_int_not_equal(lane_replay(again, &record, &error), SUMAC_OK);
    assert_int_not_equal(error.reason, SUMAC_REASON_UNSPECIFIED);
}

TALK_TEST(what_no_lane_wrote_and_what_does_not_follow_is_refused)
{
    uint8_t record[RECORD_HEAD_BYTES + 1] = {0};

    (void)begin(talk);
    struct lane *again = replay_but(talk, 0);

    expect_refused(again, record, RECORD_HEAD_BYTES - 1);
    expect_refused(again, record, RECORD_HEAD_BYTES); /* of no kind */
    record[0] = RECORD_KINDS;
    expect_refused(again, record, RECORD_HEAD_BYTES);
    record[0] = RECORD_MEMBERSHIP;
    expect_refused(again, record, RECORD_HEAD_BYTES + 1); /* longer than it says */
    for (uint8_t kind = 1; kind < RECORD_KINDS; kind++) { /* of a session that is not known */
        record[0] = kind;
        memset(record + 32, 0xee, 16);
        if (kind != RECORD_HELLO && kind != RECORD_MEMBERSHIP)
            expect_refused(again, record, RECORD_HEAD_BYTES);
    }
    assert_int_equal(again->last_record, talk->last_record);
    lane_destroy(again);
}

/* A record of session 1, with nothing but its head. */
static void make_head(uint8_t record[RECORD_HEAD_BYTES], enum record_kind kind, uint64_t first)
{
    memset(record, 0, RECORD_HEAD_BYTES);
    record[0] = (uint8_t)kind;
    little_endian_put(record + 16, 8, first);
    (void)talk_id(1, record + 32);
}

TALK_TEST(what_contradicts_the_records_before_it_is_refused)
{
    const uint64_t stream = begin(talk);
    const struct talk_part first = part(1, VARIABLE, 4);
    struct talk_part refused = part(2, VARIABLE, 4);
    uint8_t record[RECORD_HEAD_BYTES];

    refused.offset = 1;
    talk_part(talk, stream, &first);
    talk_commit(talk, stream, 1, 0, 0);
    talk_commit(talk, stream, 1, 0, 1);
    talk_part(talk, stream, &refused);
    struct lane *again = replay_but(talk, 0);
    assert_int_equal(again->sessions.first->acked_through, 1);

    make_head(record, RECORD_APPLIED, 3); /* no part has come with that number */
    expect_refused(again, record, sizeof record);
    make_head(record, RECORD_WITHDRAWN, 2); /* it was refused */
    expect_refused(again, record, sizeof record);
    make_head(record, RECORD_ACKED, 0); /* before what was acknowledged */
    expect_refused(again, record, sizeof record);
    make_head(record, RECORD_ACKED, 2); /* beyond what is applied */
    expect_refused(again, record, sizeof record);
    make_head(record, RECORD_DROPPED, 1); /* of a session that is open */
    expect_refused(again, record, sizeof record);
    make_head(record, RECORD_MEMBERSHIP, 1); /* which is of no session */
    expect_refused(again, record, sizeof record);
    make_head(record, RECORD_ACKED, 1);
    little_endian_put(record + 4, 4, 16); /* a message that ends beyond the record … */
    little_endian_put(record + 8, 8, UINT64_MAX - 15); /* … so that the sum is right */
    expect_refused(again, record, sizeof record);
    lane_destroy(again);
}

/* These say what happens once. */
static bool is_of_once(enum record_kind kind)
{
    return kind == RECORD_OPEN || kind == RECORD_ADD || kind == RECORD_PART ||
           kind == RECORD_REFUSED || kind == RECORD_APPLIED || kind == RECORD_DECIDE;
}

TALK_TEST(what_has_happened_by_the_records_does_not_happen_again)
{
    const uint64_t stream = begin(talk);
    const struct talk_part applied = part(1, VARIABLE, 4), staged = part(3, VARIABLE, 4);
    struct talk_part refused = part(2, VARIABLE, 4);
    struct check check = {.text = ""};
    uint32_t tried = 0;

    refused.offset = 1; /* given */
    talk_part(talk, stream, &applied);
    talk_commit(talk, stream, 1, 0, 0);
    talk_part(talk, stream, &refused);
    talk_part(talk, stream, &staged);
    talk_open(talk, 2);
    talk_decide(talk, 2, 0, 0);
    struct lane *const again = replay_but(talk, 0);

    for (size_t at = 0; at < talk->journal_bytes;) { /* when */
        uint64_t bytes;
        memcpy(&bytes, talk->journal + at, sizeof bytes);
        const uint8_t *const record = talk->journal + at + sizeof bytes;
        at += sizeof bytes + bytes;
        if (!is_of_once((enum record_kind)record[0]))
            continue;
        expect_refused(again, record, bytes); /* then */
        tried++;
    }

    assert_int_equal(tried, 10);
    lane_replay_check(talk->lane, again, &check);
    assert_string_equal(check.text, "");
    lane_destroy(again);
    talk_recorded(talk);
    talk_forget(talk);
}

TALK_TEST(a_part_with_more_bytes_than_its_pieces_is_refused)
{
    const uint64_t stream = begin(talk);
    const struct talk_part staged = part(1, VARIABLE, 4);
    uint8_t record[1024] = {0};
    size_t bytes;

    const size_t at = talk->journal_bytes;
    talk_part(talk, stream, &staged);
    struct lane *again = replay_but(talk, 1);
    memcpy(&bytes, talk->journal + at, sizeof bytes);
    assert_in_range(bytes, RECORD_HEAD_BYTES, sizeof record - 4);
    memcpy(record, talk->journal + at + sizeof bytes, bytes);
    assert_int_equal(record[0], RECORD_PART);

    little_endian_put(record + 8, 8, little_endian_get(record + 8, 8) + 4);
    expect_refused(again, record, bytes + 4);

    lane_destroy(again);
}

/* ---- without memory ---- */

/* Nobody is told what could not be written down, and nothing is written behind it. */
TALK_TEST(a_record_that_cannot_be_made_ends_the_ps_before_it_says_what_it_reveals)
{
    const uint64_t stream = begin(talk);
    struct talk_part eager = part(1, VARIABLE, 4);
    const uint64_t before = talk->last_record;

    eager.eager = true;
    talk->lane->arena.bytes_max = 160; /* enough for a record of APPLIED alone */

    talk_part(talk, stream, &eager);

    assert_int_equal(talk->last_record, before);
    talk_expect(talk, "exit 137 STATE_LOST\n");
    talk_recorded(talk);
    talk_expect(talk, "");
}

/* It waits for a shard that is being updated. */
TALK_TEST(an_eager_part_that_waits_is_eager_by_its_record)
{
    const uint64_t stream = begin(talk);
    struct talk_part first = part(1, LARGE, 32), second = part(2, LARGE, 32);

    talk->holds_compute = true;
    first.eager = second.eager = true;
    talk_part(talk, stream, &first);
    talk_part(talk, stream, &second);
    talk_recorded(talk);
    struct lane *again = talk_replayed(talk); /* when */

    const struct lane_part *const made = again->sessions.first->parts.last; /* then */
    assert_int_equal(made->sequence, 2);
    assert_true(made->eager);
    lane_destroy(again);
    talk->holds_compute = false;
    talk_compute(talk);
    talk_recorded(talk);
    talk_forget(talk);
}

/* The client says on its next stream, too, that the part carries its own commit. */
TALK_TEST(a_staged_part_that_comes_again_as_an_eager_one_needs_no_record)
{
    const uint64_t stream = begin(talk);
    struct talk_part second = part(2, VARIABLE, 4);

    talk_part(talk, stream, &second); /* the part before it is missing */
    second.eager = true;

    talk_part(talk, stream, &second);

    talk_recorded(talk);
    talk_expect(talk, "staged 2\nstaged 2\n");
}

/* The part is for the middle of its shard. */
TALK_TEST(the_place_of_a_staged_part_is_in_its_record)
{
    const uint64_t stream = begin(talk);
    struct talk_part staged = part(1, VARIABLE, 2);

    staged.offset = 2;
    talk_part(talk, stream, &staged);
    talk_recorded(talk);
    struct lane *again = talk_replayed(talk); /* when */

    const struct lane_part *const made = again->sessions.first->parts.last; /* then */
    assert_int_equal(made->run_count, 1);
    assert_int_equal(made->runs[0].offset, 2 * sizeof(float));
    lane_destroy(again);
    talk_forget(talk);
}
