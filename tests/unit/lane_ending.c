/* SPDX-License-Identifier: Apache-2.0 */
/* lane_ending.c -- an operation ends over steps: its shards get their new versions, then they are
 * let go. Nobody sees half of it, whatever else happens meanwhile.
 */
#include <stdio.h>

#include "operation_state.h"
#include "lane_talk.h"

#define VARIABLE 5u
#define SHARDS 3u
#define MANY 12288u        /* shards of one push, … */
#define PER_VARIABLE 4096u /* … of variables that have so many each, as many as a message takes */

static const float ones[MANY] = {1, 1, 1};

/* Three variables of one element, and one shard of an operation's ends in a step. */
static uint64_t begin(struct talk *talk, bool records)
{
    struct lane_config config = talk_config();

    config.ended_per_step_max = 1;
    config.records = records;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_open(talk, 2);
    for (uint64_t i = 0; i < SHARDS; i++)
        talk_variable(talk, VARIABLE + i, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_recorded(talk);
    talk_forget(talk);
    return stream;
}

/* Of all of them: staged, applied, and one has its version. */
static void push(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    const struct talk_part part = {
        .sequence = sequence,
        .previous = sequence - 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = SHARDS,
        .values = ones,
        .count = 1};

    talk_part(talk, stream, &part);
}

/* The lane asks for it, and takes its next step. False: it has nothing to go on with. */
static bool go_on(struct talk *talk)
{
    const bool wanted = talk->wake_us <= talk->now_us;

    talk->wake_us = UINT64_MAX;
    if (wanted)
        talk_tick(talk, 0);
    return wanted;
}

static enum operation_state state_of(const struct talk *talk)
{
    const struct operation *operation = talk->lane->turns->operations.first;

    return operation == NULL ? OPERATION_OVER : operation->state;
}

TALK_TEST(a_pull_sees_all_of_it_or_nothing)
{
    const uint64_t stream = begin(talk, false);
    const uint64_t of_all = talk_pull_stream(talk, 1), of_first = talk_pull_stream(talk, 2);
    const uint64_t of_last = talk_pull_stream(talk, 0);

    talk_forget(talk);
    push(talk, stream, 1);
    talk_expect(talk, "staged 1\n");
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->version, 1);
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE + SHARDS - 1)->version, 0);
    talk_pull(talk, of_all, 1, VARIABLE, SHARDS, 0);
    talk_pull(talk, of_first, 2, VARIABLE, 1, 0);
    talk_pull(talk, of_last, 3, VARIABLE + SHARDS - 1, 1, 0);
    while (state_of(talk) == OPERATION_RAISING)
        assert_true(go_on(talk));
    talk_expect(talk, ""); /* all have their versions, and none is let go */
    assert_true(go_on(talk));
    talk_expect(talk, "pulled 2 [1] 1\n"); /* what is let go may be read */
    assert_true(go_on(talk));
    talk_expect(talk, "");
    assert_true(go_on(talk));
    talk_expect(talk, "done 1 [1 1 1]\npulled 3 [1] 1\npulled 1 [1 1 1] 1 1 1\n");

    assert_int_equal(state_of(talk), OPERATION_OVER);
    for (uint64_t i = 0; i < SHARDS; i++)
        assert_int_equal(store_shard(&talk->lane->store, VARIABLE + i)->users, 0);
    assert_int_equal(talk->lane->counts.pushes, 1);
}

/* What a list says of each, as digits. */
static void list_versions(struct talk *talk, char versions[SHARDS + 1])
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    struct lane_effects effects;
    const struct lane_event event = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us,
        .call = 1,
        .call_kind = LANE_CALL_LIST,
        .request = &request.base};

    ps_core_step(talk->core, &event, &effects);
    assert_int_equal(effects.items[0].kind, LANE_EFFECT_REPLY);
    const wire_list_reply *reply = (const wire_list_reply *)effects.items[0].reply;
    assert_int_equal(reply->n_variables, SHARDS);
    for (size_t i = 0; i < SHARDS; i++)
        versions[i] = (char)('0' + reply->variables[i]->shards[0]->version);
    versions[SHARDS] = '\0';
}

TALK_TEST(a_list_shows_all_of_it_or_nothing)
{
    const uint64_t stream = begin(talk, false);
    char versions[SHARDS + 1];

    push(talk, stream, 1);
    while (state_of(talk) == OPERATION_RAISING) {
        list_versions(talk, versions);
        assert_string_equal(versions, "000");
        assert_true(go_on(talk));
    }
    do {
        list_versions(talk, versions);
        assert_string_equal(versions, "111");
    } while (go_on(talk));
    assert_int_equal(state_of(talk), OPERATION_OVER);
}

/* What is said again of another push that is done has versions of one moment, too. */
TALK_TEST(a_push_that_is_done_is_said_again_with_all_of_it_or_nothing)
{
    const uint64_t stream = begin(talk, false);
    const uint64_t other = talk_push_stream(talk, 2, 1);

    push(talk, other, 1);
    while (go_on(talk)) {
    }
    push(talk, stream, 1); /* given: one of its shards has its version */
    assert_int_equal(state_of(talk), OPERATION_RAISING);
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->version, 2);
    talk_forget(talk);

    push(talk, other, 1);

    assert_non_null(strstr(talk->text, "done 1 [1 1 1]\n"));
}

/* A push of the same shards waits in line, and is the next one. */
TALK_TEST(a_push_that_waits_for_its_shards_goes_on_after_it)
{
    const uint64_t stream = begin(talk, false);
    const uint64_t other = talk_push_stream(talk, 2, 1);
    const struct talk_part part = {
        .sequence = 1,
        .eager = true,
        .shard = VARIABLE + 1,
        .shards = 1,
        .values = ones,
        .count = 1};

    talk_forget(talk);
    push(talk, stream, 1);
    talk_part(talk, other, &part);
    talk_expect(talk, "staged 1\nstaged 1\n");
    while (go_on(talk)) {
    }

    talk_expect(talk, "done 1 [1 1 1]\ndone 1 [2]\n");
    assert_int_equal(talk->lane->store.position, 2);
}

/* Shards that are named without a byte for them get a version, too. */
TALK_TEST(pieces_without_bytes_end_over_steps)
{
    const uint64_t stream = begin(talk, false);
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = SHARDS, .values = ones};

    talk_part(talk, stream, &part);
    assert_int_equal(state_of(talk), OPERATION_RAISING);
    while (go_on(talk)) {
    }

    talk_expect(talk, "staged 1\ndone 1 [1 1 1]\n");
    assert_int_equal(talk->computes, 0);
}

/* The client is gone, and its session decided: that is answered when the push is applied. */
TALK_TEST(a_session_that_is_decided_waits_for_the_end)
{
    const uint64_t stream = begin(talk, false);

    push(talk, stream, 1);
    talk_hang_up(talk, stream);
    talk_close(talk, 1);
    talk_forget(talk);
    talk_decide(talk, 1, 1, 0);
    talk_expect(talk, "");
    while (state_of(talk) != OPERATION_OVER) {
        talk_expect(talk, "");
        assert_true(go_on(talk));
    }

    assert_non_null(strstr(talk->text, "report "));
    assert_int_equal(talk->lane->closed_sessions.first->mark, 1);
    assert_null(talk->lane->closed_sessions.first->parts.first);
}

TALK_TEST(a_part_that_comes_again_is_answered_at_the_end)
{
    const uint64_t stream = begin(talk, false);

    push(talk, stream, 1);
    talk_hang_up(talk, stream);
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);
    push(talk, again, 1);
    while (go_on(talk)) {
    }

    talk_expect(talk, "staged 1\ndone 1 [1 1 1]\n");
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->version, 1);
}

/* Its variables go as they are let go; its client hears the versions that they had. */
TALK_TEST(variables_are_deleted_meanwhile)
{
    const uint64_t stream = begin(talk, false);

    push(talk, stream, 1);
    talk_forget(talk);
    for (uint64_t i = 0; i < SHARDS; i++)
        talk_delete(talk, VARIABLE + i);
    assert_int_equal(talk->lane->store.deleted_count, SHARDS);
    talk_forget(talk);
    while (go_on(talk)) {
    }

    talk_expect(talk, "done 1 [1 1 1]\n");
    assert_int_equal(talk->lane->store.deleted_count, 0);
}

TALK_TEST(sigterm_waits_for_the_end)
{
    static const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    const uint64_t stream = begin(talk, false);

    push(talk, stream, 1);
    talk_forget(talk);
    talk_step(talk, &terminate);
    while (state_of(talk) != OPERATION_OVER) {
        talk_expect(talk, "");
        assert_true(go_on(talk));
    }

    talk_expect(talk, "done 1 [1 1 1]\nexit 143 TERMINATED\n");
}

/* Records say that it is applied before anybody reads a shard of it; and they make a lane that has
 * applied it wherever the end has come to (talk_end_journal). */
TALK_TEST(it_is_recorded_before_it_is_read)
{
    const uint64_t stream = begin(talk, true);
    const uint64_t pull = talk_pull_stream(talk, 2);

    talk_forget(talk);
    push(talk, stream, 1);
    const uint64_t applied = talk->last_record;
    talk_pull(talk, pull, 1, VARIABLE, 1, 0);
    while (go_on(talk)) {
    }
    talk_expect(talk, "");
    talk_recorded_up_to(talk, applied - 1);
    talk_expect(talk, "staged 1\n");
    talk_recorded_up_to(talk, applied);

    talk_expect(talk, "pulled 1 [1] 1\ndone 1 [1 1 1]\n");
    assert_int_equal(talk->last_record, applied);
}

/* It is not over when the lane goes: at each step of its end. */
static void a_lane_goes_at_step(struct talk *talk, uint32_t steps)
{
    const uint64_t stream = begin(talk, true);

    push(talk, stream, 1);
    for (uint32_t i = 0; i < steps; i++)
        assert_true(go_on(talk));
    assert_int_not_equal(state_of(talk), OPERATION_OVER);
}

TALK_TEST(a_lane_goes_as_its_shards_are_raised) { a_lane_goes_at_step(talk, 1); }
TALK_TEST(a_lane_goes_as_its_shards_are_let_go) { a_lane_goes_at_step(talk, 4); }

/* ---- as many shards as some steps have time for ---- */

static void add_many(struct talk *talk, uint64_t id, uint64_t first)
{
    static wire_shard all[PER_VARIABLE];
    static wire_shard *pointers[PER_VARIABLE];
    char name[16];
    uint64_t shape[] = {PER_VARIABLE};
    wire_function function = WIRE_FUNCTION_INIT;
    wire_initializer values = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_publish publish = WIRE_PUBLISH_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    for (uint32_t i = 0; i < PER_VARIABLE; i++) {
        all[i] = (wire_shard)WIRE_SHARD_INIT;
        all[i].shard_id = first + i;
        all[i].ps = 1;
        all[i].first_row = i;
        all[i].rows = 1;
        all[i].bytes = sizeof(float);
        pointers[i] = &all[i];
    }
    (void)snprintf(name, sizeof name, "many%u", (unsigned)id);
    function.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    values.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
    variable.name = name;
    variable.variable_id = id;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.function = &function;
    variable.initializer = &values;
    variable.shards = pointers;
    variable.n_shards = PER_VARIABLE;
    add.variable = &variable;
    order.add_shards = &add;
    talk_order(talk, &order);
    publish.variable_id = id;
    order.add_shards = NULL;
    order.publish = &publish;
    talk_order(talk, &order);
    while (go_on(talk)) { /* it is filled */
    }
    talk_forget(talk);
}

static uint64_t begin_many(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 256u << 20;
    config.inline_bytes = config.block_bytes = 0; /* as a ps has it */
    config.report_ms = 1000000;
    talk_start(talk, &config);
    talk_open(talk, 1);
    for (uint64_t i = 0; i < MANY / PER_VARIABLE; i++)
        add_many(talk, 1 + i, 1 + i * PER_VARIABLE);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

/* A push of so many of them, so many bytes each, in as many messages as that takes. */
static void push_many(struct talk *talk, uint64_t stream, uint32_t shards, uint64_t bytes)
{
    wire_part part = WIRE_PART_INIT;

    part.sequence = 1;
    part.eager = true;
    part.bytes = shards * bytes;
    part.pieces = talk->piece_pointers;
    for (uint32_t sent = 0; sent < shards; sent += (uint32_t)part.n_pieces) {
        part.n_pieces = shards - sent < PER_VARIABLE ? shards - sent : PER_VARIABLE;
        for (uint32_t i = 0; i < part.n_pieces; i++) {
            talk->pieces[i] = (wire_piece)WIRE_PIECE_INIT;
            talk->pieces[i].shard_id = 1 + sent + i;
            talk->pieces[i].bytes = bytes;
            talk->piece_pointers[i] = &talk->pieces[i];
        }
        part.first = sent == 0;
        part.last = sent + part.n_pieces == shards;
        talk_push_part(talk, stream, &part, ones, part.n_pieces * bytes);
    }
}

/* No step does more than a step may, and no more of them are taken than it needs. */
static void a_push_of_many_ends_in_short_steps(struct talk *talk, uint64_t bytes)
{
    const uint64_t stream = begin_many(talk);
    uint32_t raising = 0, freeing = 0;

    talk->most_work = 0;
    push_many(talk, stream, MANY, bytes);
    for (uint32_t i = 0; i < 10000 && go_on(talk); i++) {
        raising += state_of(talk) == OPERATION_RAISING;
        freeing += state_of(talk) == OPERATION_FREEING;
        if (state_of(talk) == OPERATION_RAISING)
            assert_in_range(lane_work(talk->lane, 0), WORK_PER_STEP_MAX, 2 * WORK_PER_STEP_MAX);
    }

    assert_in_range(talk->most_work, 1, WORK_PER_STEP_MAX + WORK_PER_STEP_MAX / 8);
    assert_in_range(raising, 1, 2);
    assert_in_range(freeing, 1, 2);
    assert_non_null(strstr(talk->text, "staged 1\ndone 1 [1 1 1 1 "));
    assert_int_equal(store_shard(&talk->lane->store, MANY)->version, 1);
    assert_int_equal(store_shard(&talk->lane->store, MANY)->users, 0);
}

TALK_TEST(a_push_of_many_shards_ends_in_short_steps)
{
    a_push_of_many_ends_in_short_steps(talk, sizeof(float));
}

TALK_TEST(a_push_of_no_bytes_ends_in_short_steps) { a_push_of_many_ends_in_short_steps(talk, 0); }

/* Its message has taken most of the step. */
TALK_TEST(an_end_has_the_time_that_its_step_has_left)
{
    const uint64_t stream = begin_many(talk);
    const uint32_t shards = PER_VARIABLE * 3 / 4;

    talk->most_work = 0;
    push_many(talk, stream, shards, 0);
    assert_int_equal(state_of(talk), OPERATION_RAISING);
    while (go_on(talk)) {
    }

    assert_in_range(
        talk->most_work, WORK_OF_A_PIECE * shards, WORK_PER_STEP_MAX + WORK_PER_STEP_MAX / 8);
    assert_int_equal(store_shard(&talk->lane->store, shards)->version, 1);
}

/* Every second element of one variable: a slice each, and one shard. */
TALK_TEST(many_runs_of_one_shard_are_given_out)
{
    enum { runs = RUNS_INLINE_MAX + 1 };
    wire_part part = WIRE_PART_INIT;
    struct lane_config config = talk_config();

    config.staging_bytes_max = 256u << 20;
    config.inline_bytes = config.block_bytes = 0;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 2 * runs, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    for (uint32_t i = 0; i < runs; i++) {
        talk->pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        talk->pieces[i].shard_id = VARIABLE;
        talk->pieces[i].offset_bytes = 2 * i * sizeof(float);
        talk->pieces[i].bytes = sizeof(float);
        talk->piece_pointers[i] = &talk->pieces[i];
    }
    part.sequence = 1;
    part.first = part.last = part.eager = true;
    part.bytes = runs * sizeof(float);
    part.pieces = talk->piece_pointers;
    part.n_pieces = runs;
    talk_forget(talk);

    talk_push_part(talk, stream, &part, ones, runs * sizeof(float));
    while (go_on(talk)) {
    }

    assert_in_range(talk->computes, 1, runs);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}
