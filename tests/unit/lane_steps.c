/* SPDX-License-Identifier: Apache-2.0 */
/* lane_steps.c (test) -- synchronous steps: the contributions of all members become one update, in
 * worker order. */
#include "half.h"
#include "handlers.h"
#include "lane_members.h"

#define COUNT 100u /* elements: vector work */

/* ---- when a step is whole ---- */

TALK_TEST(a_step_waits_for_the_contribution_of_each_member)
{
    struct members members = begin(talk, 3);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[2], 1, (float[]){2}, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_expect(talk, "staged 1\nstaged 1\n");
    assert_value_is(talk, &members, 0);
    const struct talk_part last = contribution(1, (float[]){4}, 1);
    talk_part(talk, members.push[3], &last); /* it is here, and not committed */
    talk_expect(talk, "staged 1\n");

    talk_commit(talk, members.push[3], 1, 0, 0);

    talk_expect(talk, "done 1 [1]\ndone 1 [1]\ndone 1 [1]\n");
    assert_value_is(talk, &members, 7);
}

/* Another push ends over several steps of the lane, and lets their shard go before it is over. */
TALK_TEST(a_step_is_taken_when_its_shard_is_free)
{
    struct lane_config config = talk_config();
    const struct talk_part wide = {
        .sequence = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 2,
        .values = (float[]){1, 1},
        .count = 1};
    uint8_t id[16];
    wire_first_step first = WIRE_FIRST_STEP_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    config.ended_per_step_max = 1;
    struct members members = begin_as(talk, 2, 2, config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, SUM, 1);
    talk_part(talk, open_observer(talk), &wide);
    for (uint32_t i = 1; i <= 2; i++)
        contribute(talk, members.push[i], 1, (float[]){1}, 1);
    while (is_busy(store_shard(&talk->lane->store, VARIABLE)))
        talk_tick(talk, 0);
    assert_true(lane_operation_is_any(talk->lane)); /* given */
    memset(id, 1, sizeof id);
    first.session_id = (wire_bytes){.len = sizeof id, .data = id};
    first.step = 1; /* it is known: but an order has the steps looked at */
    order.first_step = &first;

    talk_order(talk, &order); /* when */

    while (lane_operation_is_any(talk->lane))
        talk_tick(talk, 0);
    talk_forget(talk);
    assert_int_equal(talk->lane->step_over, 1); /* then */
    assert_value_is(talk, &members, 3);
}

TALK_TEST(steps_are_taken_one_after_the_other)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t step = 1; step <= 3; step++) /* staged ahead; committed one after the other */
        contribute(talk, members.push[1], step, (float[]){1}, 1);
    talk_forget(talk);

    contribute(talk, members.push[2], 1, (float[]){2}, 1);
    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 1 [1]\n");
    assert_value_is(talk, &members, 3);
    contribute(talk, members.push[2], 2, (float[]){2}, 1);
    contribute(talk, members.push[2], 3, (float[]){2}, 1);

    talk_expect(talk, "staged 2\ndone 2 [2]\ndone 2 [2]\nstaged 3\ndone 3 [3]\ndone 3 [3]\n");
    assert_value_is(talk, &members, 9);
}

TALK_TEST(no_step_is_whole_before_all_that_begin_with_it_have_come)
{
    struct members members = begin_with(talk, 1, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_expect(talk, "staged 1\n");
    talk_open(talk, 2);
    members.push[2] = talk_push_stream(talk, 2, 1);
    talk_forget(talk);
    assert_value_is(talk, &members, 0);

    contribute(talk, members.push[2], 1, (float[]){2}, 1);

    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 1 [1]\n");
    assert_value_is(talk, &members, 3);
}

/* It has told ps 0 that it has no memory for the session: that it has come it hears with its end.
 */
TALK_TEST(a_member_that_could_not_be_opened_here_has_come_when_it_is_decided)
{
    struct members members = begin_with(talk, 1, 2);
    uint8_t id[16] = {2}; /* of a session that is not here */
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_forget(talk);
    decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    decide.initial = 2;
    order.decide = &decide;

    talk_order(talk, &order);
    contribute(talk, members.push[1], 2, (float[]){1}, 1);

    assert_non_null(strstr(talk->text, "done 2 [2]"));
    talk_forget(talk);
    assert_value_is(talk, &members, 2);
}

TALK_TEST(a_contribution_waits_for_what_its_member_pushed_before)
{
    struct members members = begin(talk, 2);
    struct talk_part ordinary = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = (float[]){10}, .count = 1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    struct talk_part second = contribution(1, (float[]){2}, 1);
    second.sequence = 2;
    second.previous = 1;
    talk_part(talk, members.push[2], &second);
    talk_commit(talk, members.push[2], 2, 0, 0);
    talk_expect(talk, "staged 1\nstaged 2\n");

    talk_part(talk, members.push[2], &ordinary);

    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 2 [2]\ndone 1 [2]\n");
    assert_value_is(talk, &members, 13);
}

/* ---- what it makes ---- */

static void permute(uint32_t number, uint32_t order[MEMBERS_MAX])
{
    uint32_t left[MEMBERS_MAX] = {1, 2, 3, 4};

    for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
        const uint32_t choices = MEMBERS_MAX - i, chosen = number % choices;
        number /= choices;
        order[i] = left[chosen];
        memmove(&left[chosen], &left[chosen + 1], (choices - chosen - 1) * sizeof *left);
    }
}

/* In another order float32 gives another sum. */
static const float unequal[MEMBERS_MAX + 1] = {0, 1e8f, 3, -1e8f, 0.1f};

/* 24 steps, one for each order of four arrivals. Many elements, in messages of other sizes for each
 * member: vector work is given out, and the contributions lie in other chunks. */
TALK_TEST(every_order_of_arrivals_gives_the_same_bits)
{
    struct members members = begin(talk, MEMBERS_MAX);
    float values[MEMBERS_MAX + 1][COUNT], expected[COUNT], found[COUNT];

    add_variable(talk, VARIABLE, UPDATE_ASSIGN, MEAN, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        for (uint32_t m = 1; m <= MEMBERS_MAX; m++)
            values[m][i] = unequal[m] * (float)(i + 1);
        expected[i] = (((values[1][i] + values[2][i]) + values[3][i]) + values[4][i]) / (float)10;
    }
    for (uint32_t p = 0; p < 24; p++) {
        uint32_t order[MEMBERS_MAX];

        permute(p, order);
        for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
            struct talk_part part = contribution(p + 1, values[order[i]], COUNT);
            part.weight = order[i];
            talk_part_in_steps(talk, members.push[order[i]], &part, 7 * order[i]);
            talk_commit(talk, members.push[order[i]], p + 1, 0, 0);
        }
        read_values(talk, &members, found, COUNT);
        assert_memory_equal(found, expected, sizeof found);
    }
}

/* Chunks of 1 MiB, which end within a slice: the contributions begin within a block. */
TALK_TEST(contributions_go_on_in_their_next_chunks)
{
    enum { ELEMENTS = 300000, FIRST = 4 };
    struct lane_config config = talk_config();
    static float values[ELEMENTS], held[FIRST + ELEMENTS];

    config.staging_bytes_max = 64u << 20;
    config.block_bytes = 4096;
    const struct members members = begin_bare(talk, 2, 2, &config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, FIRST + ELEMENTS);
    for (uint32_t i = 0; i < 12; i++) /* it is filled */
        talk_tick(talk, 0);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        values[i] = (float)i;
    for (uint32_t m = 1; m <= 2; m++) {
        struct talk_part part = contribution(1, values, ELEMENTS);
        part.offset = FIRST;
        talk_part_in_steps(talk, members.push[m], &part, 50001);
        talk_commit(talk, members.push[m], 1, 0, 0);
    }

    assert_int_equal(lane_peek(talk->lane, VARIABLE, (uint8_t *)held, sizeof held), sizeof held);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        assert_true(held[FIRST + i] >= 2 * values[i] && held[FIRST + i] <= 2 * values[i]);
}

TALK_TEST(a_variable_says_how_contributions_become_one)
{
    static const struct {
        uint32_t aggregation;
        float expected;
    } rows[] = {{SUM, 12}, {MEAN, 3}, {FIRST, 50}};
    struct members members = begin(talk, 3);
    static const float values[] = {0, 50, 2, 10};

    for (uint32_t row = 0; row < 3; row++)
        add_variable(talk, VARIABLE + row, UPDATE_ASSIGN, rows[row].aggregation, 1);
    for (uint32_t m = 3; m >= 1; m--) {
        const float same[] = {values[m], values[m], values[m]};
        struct talk_part part = contribution(1, same, 1);
        part.shards = 3;
        part.weight = m == 3 ? 3 : 1;
        part.zero_weight = m == 1; /* it adds nothing, and is still the first */
        if (m == 1)
            part.weight = 0;
        talk_part(talk, members.push[m], &part);
        talk_commit(talk, members.push[m], 1, 0, 0);
    }
    talk_expect(
        talk, "staged 1\nstaged 1\nstaged 1\ndone 1 [1 1 1]\ndone 1 [1 1 1]\ndone 1 [1 1 1]\n");

    for (uint32_t row = 0; row < 3; row++) {
        float value;
        talk_pull(talk, members.pull, 1, VARIABLE + row, 1, 0);
        memcpy(&value, talk->pulled, sizeof value);
        assert_memory_equal(&value, &rows[row].expected, sizeof value);
    }
}

/* adam's t counts steps, and the versions updates: not contributions. */
TALK_TEST(a_step_is_one_update)
{
    struct members members = begin(talk, 2);
    float alone, together;

    add_variable(talk, VARIABLE, UPDATE_ADAM, SUM, 1);
    for (uint64_t step = 1; step <= 2; step++) {
        contribute(talk, members.push[1], step, (float[]){1}, 1);
        contribute(talk, members.push[2], step, (float[]){2}, 1);
    }
    assert_non_null(strstr(talk->text, "done 2 [2]"));
    read_values(talk, &members, &together, 1);

    add_variable(talk, VARIABLE + 1, UPDATE_ADAM, SUM, 1);
    for (uint64_t sequence = 3; sequence <= 4; sequence++) {
        const struct talk_part part = {
            .sequence = sequence,
            .previous = sequence - 1,
            .eager = true,
            .shard = VARIABLE + 1,
            .shards = 1,
            .values = (float[]){3},
            .count = 1};
        talk_part(talk, members.push[1], &part);
    }
    talk_pull(talk, members.pull, 2, VARIABLE + 1, 1, 0);
    memcpy(&alone, talk->pulled, sizeof alone);
    assert_memory_equal(&together, &alone, sizeof together);
}

TALK_TEST(a_contribution_may_be_of_no_pieces)
{
    struct members members = begin(talk, 2);

    for (uint32_t m = 1; m <= 2; m++) {
        struct talk_part part = contribution(1, NULL, 0);
        part.shards = 0;
        talk_part(talk, members.push[m], &part);
        talk_commit(talk, members.push[m], 1, 0, 0);
    }

    talk_expect(talk, "staged 1\nstaged 1\ndone 1 []\ndone 1 []\n");
}

/* 1 + half a unit and a little is the next float16, when all is added up in float32. */
TALK_TEST(half_types_contribute_float32)
{
    enum { COUNT_HALF = 40 }; /* several blocks */
    struct members members = begin(talk, 2);
    uint16_t value;
    float values[COUNT_HALF + 1] = {[0] = 0x1p-11f, [17] = 3, [COUNT_HALF - 1] = 4};
    struct talk_part beyond = contribution(1, values, COUNT_HALF + 1);

    talk->aggregation = SUM;
    talk_add(
        talk, VARIABLE, COUNT_HALF, 1, SUMAC_FLOAT16, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ONES);
    talk_forget(talk);

    const struct talk_part first = contribution(1, values, COUNT_HALF);
    talk_part_in_steps(talk, members.push[1], &first, 7); /* pieces that continue each other */
    talk_commit(talk, members.push[1], 1, 0, 0);
    contribute(talk, members.push[2], 1, (float[COUNT_HALF]){0x1p-22f, 1}, COUNT_HALF);
    talk_expect(talk, "staged 1\nstaged 1\ndone 1 [1]\ndone 1 [1]\n");
    talk_pull(talk, members.pull, 1, VARIABLE, 1, 0);
    memcpy(&value, talk->pulled, sizeof value);
    assert_int_equal(value, float16_of_float32(1 + 0x1p-10f));
    memcpy(&value, talk->pulled + sizeof value, sizeof value);
    assert_int_equal(value, float16_of_float32(2));
    memcpy(&value, talk->pulled + 17 * sizeof value, sizeof value);
    assert_int_equal(value, float16_of_float32(4));
    memcpy(&value, talk->pulled + (COUNT_HALF - 1) * sizeof value, sizeof value);
    assert_int_equal(value, float16_of_float32(5));

    talk_forget(talk);
    beyond.sequence = beyond.step = 2;
    beyond.previous = 1;
    talk_part(talk, members.push[1], &beyond);
    talk_expect(talk, "refused 2 WRONG_SHAPE\n");
    assert_non_null(strstr(talk->refused, "164 bytes at 0 of a shard of 160 bytes of float32"));
}

TALK_TEST(what_is_pushed_in_between_waits_for_a_large_step)
{
    struct members members = begin(talk, 2);
    float values[40];
    struct talk_part other = {
        .sequence = 2,
        .previous = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = 1};

    for (uint32_t i = 0; i < 40; i++)
        values[i] = 1;
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 40);
    talk->holds_compute = true;
    contribute(talk, members.push[1], 1, values, 40);
    contribute(talk, members.push[2], 1, values, 40);
    talk_part(talk, members.push[1], &other);
    talk_pull(talk, members.pull, 1, VARIABLE, 1, 0);
    talk_expect(talk, "staged 1\nstaged 1\nstaged 2\n");

    talk_compute(talk);

    assert_non_null(strstr(talk->text, "done 1 [1]\ndone 1 [1]\ndone 2 [2]\n"));
    talk_forget(talk);
    read_values(talk, &members, values, 40);
    assert_true(values[0] >= 3 && values[0] <= 3 && values[39] >= 2 && values[39] <= 2);
}

TALK_TEST(a_step_waits_for_a_shard_that_is_being_updated)
{
    struct members members = begin(talk, 3);
    float values[40] = {1};
    const struct talk_part large = {
        .sequence = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = 40};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 40);
    talk->holds_compute = true;
    talk_part(talk, open_observer(talk), &large);
    talk_forget(talk);
    for (uint32_t m = 1; m <= 3; m++)
        contribute(talk, members.push[m], 1, (float[]){1}, 1);
    talk_expect(talk, "staged 1\nstaged 1\nstaged 1\n");

    talk->holds_compute = false;
    talk_compute(talk);

    talk_expect(talk, "done 1 [1]\ndone 1 [2]\ndone 1 [2]\ndone 1 [2]\n");
    read_values(talk, &members, values, 40);
    assert_true(values[0] >= 4 && values[0] <= 4);
}

/* All weigh nothing, and the members had pushed more before that was known. */
TALK_TEST(a_step_that_weighs_nothing_lets_its_members_go_on)
{
    struct members members = begin(talk, 2);
    struct talk_part part = contribution(1, (float[]){1}, 1);
    const struct talk_part next = {
        .sequence = 2,
        .previous = 1,
        .shard = VARIABLE + 1,
        .shards = 1,
        .values = (float[]){1},
        .count = 1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, NONE, 1);
    part.zero_weight = true;
    for (uint32_t m = 1; m <= 2; m++) {
        talk_part(talk, members.push[m], &part);
        talk_part(talk, members.push[m], &next);
        talk_commit(talk, members.push[m], m == 1 ? 2 : 1, 0, 0);
    }

    assert_int_equal(talk_times_said(talk, "refused 1 ZERO_WEIGHT\n"), 2);
    assert_int_equal(talk_times_said(talk, "done 2 [1]\n"), 1);
}

TALK_TEST(the_first_contribution_is_taken_with_its_scale)
{
    struct members members = begin(talk, 2);
    struct talk_part part = contribution(1, (float[]){8}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, FIRST, 1);
    part.scale = 0.5;
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);
    contribute(talk, members.push[2], 1, (float[]){3}, 1);
    talk_forget(talk);

    assert_value_is(talk, &members, 4);
}

/* The member pushes asynchronously after its contribution: the push belongs to no step. */
TALK_TEST(a_lost_member_fails_the_steps_behind_its_last_contribution)
{
    struct members members = begin(talk, 2);
    const struct talk_part next = {
        .sequence = 2,
        .previous = 1,
        .shard = VARIABLE + 1,
        .shards = 1,
        .values = (float[]){1},
        .count = 1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, NONE, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_part(talk, members.push[1], &next);
    talk_commit(talk, members.push[1], 2, 0, 0);
    talk_close(talk, 1);
    talk->lost = talk->shows_logs = true;

    talk_decide(talk, 1, 2, 0);

    assert_int_equal(
        talk_times_said(talk, "fails the synchronous steps from 2 on: they lack worker 1"), 1);
    talk->shows_logs = false;
    contribute(talk, members.push[2], 1, (float[]){2}, 1); /* step 1 has all it needs */
    talk_forget(talk);
    assert_value_is(talk, &members, 3);
}

TALK_TEST(a_lost_member_fails_no_step_before_its_first)
{
    (void)begin_with(talk, 2, 1);
    talk_first_step(talk, 2, 5);
    talk_close(talk, 2);
    talk->lost = talk->shows_logs = true;

    talk_decide(talk, 2, 0, 0);

    assert_int_equal(
        talk_times_said(talk, "fails the synchronous steps from 5 on: they lack worker 2"), 1);
}

TALK_TEST(a_member_that_was_lost_before_its_first_step_fails_none)
{
    (void)begin_with(talk, 2, 1); /* the second one waits for its first step */
    talk_close(talk, 2);
    talk->lost = talk->shows_logs = true;

    talk_decide(talk, 2, 0, 0);

    assert_int_equal(talk_times_said(talk, "fails the synchronous steps"), 0);
}

/* The contribution is staged without a commit. */
TALK_TEST(a_lost_member_fails_the_step_that_it_has_not_committed)
{
    const struct members members = begin(talk, 2);
    const struct talk_part part = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk_part(talk, members.push[1], &part);
    talk_close(talk, 1);
    talk->lost = talk->shows_logs = true;

    talk_decide(talk, 1, 0, 0);

    assert_int_equal(
        talk_times_said(talk, "fails the synchronous steps from 1 on: they lack worker 1"), 1);
}

/* Its own contribution to the step that fails waits behind the one that is being applied. */
TALK_TEST(a_step_that_is_applied_while_a_member_is_lost_is_whole)
{
    const struct members members = begin(talk, 2);
    float values[COUNT] = {1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, COUNT);
    talk->holds_compute = true;
    contribute(talk, members.push[1], 1, values, COUNT);
    contribute(talk, members.push[1], 2, values, COUNT);
    contribute(talk, members.push[2], 1, values, COUNT);
    talk_close(talk, 2);
    talk->lost = true;
    talk_decide(talk, 2, 1, 0);
    talk_forget(talk);

    talk_compute(talk);

    assert_int_equal(talk_times_said(talk, "done 1 [1]"), 2);
    assert_int_equal(talk_times_said(talk, "refused 2 MEMBER_LOST"), 1);
    assert_int_equal(talk_times_said(talk, "done 2 voided"), 1);
    talk_forget(talk);
    read_values(talk, &members, values, COUNT);
    assert_true(values[0] >= 2 && values[0] <= 2);
}

TALK_TEST(a_wait_for_a_step_names_some_members_and_counts_all)
{
    struct lane_config config = talk_config();
    char text[512];

    config.sessions_max = 8;
    talk->step_members = 6;
    talk_start(talk, &config);
    for (uint8_t i = 1; i <= 4; i++)
        talk_open(talk, i);
    assert_null(strstr(lane_step_missing(talk->lane, text, sizeof text), "in all"));
    assert_non_null(strstr(text, "worker 4 "));

    talk_open(talk, 5);
    talk_open(talk, 6);

    assert_non_null(strstr(lane_step_missing(talk->lane, text, sizeof text), ", … 6 in all"));
    assert_null(strstr(text, "worker 5 "));
}

/* The contribution is staged, and its client did not commit it yet. */
TALK_TEST(a_contribution_that_is_not_committed_is_missing)
{
    struct members members = begin(talk, 2);
    const struct talk_part part = contribution(1, (float[]){1}, 1);
    char text[512];

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_part(talk, members.push[2], &part);

    assert_non_null(strstr(lane_step_missing(talk->lane, text, sizeof text), "worker 2 "));
    lane_step_describe_wait(talk->lane, text, sizeof text);
    assert_non_null(strstr(text, "1 of 2 have come"));
}

/* Pushes 3 and 2 come first, and push 1 names the step of push 3; so does push 5, before push 4. */
TALK_TEST(a_step_is_contributed_to_once_in_whatever_order_pushes_come)
{
    const struct members members = begin(talk, 2);
    struct talk_part part = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    part.sequence = 3;
    part.previous = 2;
    talk_part(talk, members.push[1], &part);
    part.sequence = 2;
    part.previous = 1;
    part.step = 0; /* asynchronous */
    talk_part(talk, members.push[1], &part);
    talk_expect(talk, "staged 3\nstaged 2\n");
    part.step = 1;

    for (uint64_t sequence = 1; sequence <= 5; sequence += 4) {
        part.sequence = sequence;
        part.previous = sequence - 1;
        expect_refused(talk, members.push[1], &part, "WRONG_STEP", "synchronous step 1");
    }
}

/* The contribution to the second step comes first. */
TALK_TEST(the_largest_step_that_was_contributed_to_is_seen)
{
    const struct members members = begin(talk, 2);
    const struct talk_part second = contribution(2, (float[]){1}, 1);
    const struct talk_part first = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk_part(talk, members.push[1], &second);
    talk_part(talk, members.push[1], &first);
    talk_forget(talk);

    talk_open(talk, 3);

    assert_int_equal(talk_times_said(talk, "seen step 2"), 1);
}

/* No two orders of these have the same sum: the chief's one is lost in the first worker's. */
TALK_TEST(the_contribution_of_a_chief_comes_before_those_of_workers)
{
    struct lane_config config = talk_config();
    struct members members = {.push = {0}};
    const float values[] = {0, 1e8F, -1e8F, 1};

    talk->step_members = 3;
    talk_start(talk, &config);
    for (uint8_t i = 1; i <= 3; i++) {
        talk->job = i == 3 ? "chief" : "worker";
        talk_open(talk, i);
        members.push[i] = talk_push_stream(talk, i, 1);
    }
    members.pull = talk_pull_stream(talk, 0);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);

    for (uint8_t i = 1; i <= 3; i++) /* it comes last, and has the largest index */
        contribute(talk, members.push[i], 1, &values[i], 1);

    talk_forget(talk);
    assert_value_is(talk, &members, (1 + 1e8F) - 1e8F);
}

/* No client is left to hear that its contribution counts for nothing. */
TALK_TEST(what_a_settled_member_has_contributed_to_a_lost_step_is_let_go)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[2], 1, (float[]){1}, 1); /* given: worker 2 leaves */
    talk_close(talk, 2);
    talk_decide(talk, 2, 1, 0);
    assert_true(talk->lane->staged_bytes > 0);

    talk->lost = true; /* when: worker 1 is lost before it has contributed */
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);

    assert_int_equal(talk->lane->staged_bytes, 0); /* then */
}
