/* SPDX-License-Identifier: Apache-2.0 */
/* lane_contributions.c (test) -- synchronous steps: what does not belong to one is refused by name,
 * and members come and go. */
#include "lane_members.h"

TALK_TEST(a_members_steps_are_numbered_one_after_the_other)
{
    struct members members = begin(talk, 2);
    struct talk_part part = contribution(2, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[2], 1, (float[]){1}, 1);
    contribute(talk, members.push[2], 2, (float[]){1}, 1);
    talk_forget(talk);

    part.step = 1;
    expect_refused(
        talk, members.push[1], &part, "WRONG_STEP",
        "push 2 of worker 1 is for synchronous step 1, which it has contributed to already; its "
        "next one is 2");
    assert_string_equal(talk->expected, "2");
    assert_string_equal(talk->given, "1");
    part = contribution(3, (float[]){1}, 1);
    part.step = 4;
    expect_refused(
        talk, members.push[1], &part, "WRONG_STEP",
        "synchronous step 4, which is a later one; its next one is 2");
    part = contribution(4, (float[]){1}, 1);
    part.step = 2; /* the refused ones were for no step */
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 4, 0, 0);
    talk_expect(talk, "staged 4\ndone 2 [2]\ndone 2 voided\ndone 3 voided\ndone 4 [2]\n");
    part = contribution(5, (float[]){1}, 1);
    part.step = 1;
    expect_refused(
        talk, members.push[1], &part, "WRONG_STEP",
        "synchronous step 1, which is an earlier one; its next one is 3");
    part = contribution(2000, (float[]){1}, 1); /* with others on their way: but not so many */
    part.previous = 1999;
    part.step = UINT64_C(1) << 63;
    expect_refused(
        talk, members.push[1], &part, "WRONG_STEP",
        "synchronous step 9223372036854775808, which is a later one; its next one is 3");
    part = contribution(3000, (float[]){1}, 1);
    part.previous = 2999;
    part.step = 1026; /* two are over */
    talk_part(talk, members.push[1], &part);
    talk_expect(talk, "staged 3000\n");
    part = contribution(4000, (float[]){1}, 1);
    part.previous = 3999;
    part.step = 1027;
    expect_refused(
        talk, members.push[1], &part, "WRONG_STEP",
        "synchronous step 1027, which is a later one; its next one is 3");
}

TALK_TEST(the_log_names_a_refused_contribution_once)
{
    struct members members = begin(talk, 2);
    struct talk_part late = contribution(1, (float[]){1}, 1), other = late;

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_forget(talk);
    talk->shows_logs = true;
    late.step = 3;
    other.function = UPDATE_ASSIGN_SUB;

    talk_part(talk, members.push[2], &late);
    other.sequence = 2;
    other.previous = 1;
    talk_part(talk, members.push[2], &other);

    talk_expect(
        talk, "log ps 1 refused push 1 of worker 2: is for synchronous step 3, which is a later "
              "one; its next one is 1: a member's steps are numbered one after the other\n"
              "refused 1 WRONG_STEP\n"
              "log ps 1 refused push 2 of worker 2: its contribution to synchronous step 1, has "
              "function assign_sub for variable v10, where that of worker 1 has function "
              "assign_add for variable v10: all members push the same variables and rows in the "
              "same order, with the same functions and hyperparameters\n"
              "refused 2 STEP_DIFFERS\n");
}

TALK_TEST(an_observer_takes_part_in_no_step)
{
    struct talk_part part = contribution(1, (float[]){1}, 1);
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    const uint64_t stream = open_observer(talk);

    expect_refused(
        talk, stream, &part, "WRONG_STEP",
        "push 1 of observer 3 is for synchronous step 1, and its session takes part in none");

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(a_contribution_carries_no_commit_of_its_own)
{
    struct members members = begin(talk, 1);
    struct talk_part part = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    part.eager = true;

    expect_refused(
        talk, members.push[1], &part, "MALFORMED",
        "push 1 of worker 1 is synchronous and carries its own commit");
    talk_commit(talk, members.push[1], 1, 1, 0);
    talk_expect(talk, "done 1 voided\n");
    contribute(talk, members.push[1], 2, (float[]){1}, 1);
    talk_expect(talk, "staged 2\ndone 2 [1]\n");
}

TALK_TEST(a_weight_is_none_or_one_that_float32_can_divide_by)
{
    static const double weights[] = {-1, 1e-30, 1e30};
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t i = 0; i < 3; i++) {
        struct talk_part part = contribution(i + 1, (float[]){1}, 1);
        part.weight = weights[i];
        expect_refused(talk, members.push[1], &part, "MALFORMED", "has weight");
        assert_string_equal(talk->expected, "0, or 2^-60 to 2^60");
        assert_true(talk->given[0] != '\0');
    }
}

TALK_TEST(aggregation_none_is_for_one_member)
{
    struct members members = begin(talk, 2);
    const struct talk_part part = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, NONE, 1);

    expect_refused(
        talk, members.push[1], &part, "STEP_DIFFERS",
        "variable v10 was created with aggregation NONE, and a synchronous step of 2 members has a "
        "contribution of each: create it with SUM, MEAN or ONLY_FIRST_REPLICA");
}

TALK_TEST(one_member_needs_no_aggregation)
{
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, NONE, 1);

    contribute(talk, members.push[1], 1, (float[]){5}, 1);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    assert_value_is(talk, &members, 5);
}

TALK_TEST(bools_are_not_added_up)
{
    struct members members = begin(talk, 2);
    struct talk_part part = contribution(1, (float[]){0}, 1);

    talk->aggregation = SUM;
    talk_add(talk, VARIABLE, 4, 1, SUMAC_BOOL, UPDATE_ASSIGN, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);

    expect_refused(
        talk, members.push[1], &part, "WRONG_DATA_TYPE",
        "variable v10 of type bool was created with aggregation SUM");
}

/* Each against the contribution that worker 1 has made; refused, it adds nothing, and has come. */
TALK_TEST(a_contribution_that_differs_is_refused_with_both_values)
{
    struct members members = begin(talk, 2);
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT;
    uint64_t step = 0;

    rate.name = (Sumac__V1__HyperparameterName)UPDATE_HYPERPARAMETER_LEARNING_RATE;
    rate.value = 0.5;
    add_variable(talk, VARIABLE, UPDATE_SGD, SUM, 4);
    add_variable(talk, VARIABLE + 1, UPDATE_SGD, SUM, 4);
    struct talk_part usual = contribution(1, (float[]){1, 1, 1, 1}, 4);
    struct talk_part other = usual, shorter = usual, function = usual, hyper = usual, more = usual,
                     none = usual, shifted = usual, half = usual;
    other.shard = VARIABLE + 1;
    shorter.count = 2;
    function.function = UPDATE_ASSIGN_ADD;
    hyper.function = UPDATE_SGD;
    hyper.hyperparameter = &rate;
    more.shards = 2;
    more.values = (float[]){1, 1, 1, 1, 1, 1, 1, 1};
    none.count = 0;
    half.count = shifted.count = 2;
    shifted.offset = 2;
    const struct {
        const struct talk_part *part;
        const char *text;
    } rows[] = {
        {&other, "has 16 bytes at 0 of shard 11 of variable v11, where that of worker 1 has 16 "
                 "bytes at 0 of shard 10 of variable v10"},
        {&shorter, "has 8 bytes at 0 of shard 10 of variable v10, where that of worker 1 has 16 "
                   "bytes"},
        {&function,
         "has function assign_add for variable v10, where that of worker 1 has function sgd for "
         "variable v10: "},
        {&hyper,
         "has learning_rate 0.5 for variable v10, where that of worker 1 has learning_rate 0.01 "
         "for variable v10: "},
        {&more, "has 16 bytes at 0 of shard 11 of variable v11, where that of worker 1 has 1 "
                "piece for ps 1"},
        {&none, "has 0 pieces for ps 1, where that of worker 1 has 16 bytes at 0"},
        {&shifted, "has 8 bytes at 8 of shard 10 of variable v10, where that of worker 1 has 8 "
                   "bytes at 0"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char begins[96], expected[96];

        step++;
        const bool of_half = rows[i].part == &shifted;
        struct talk_part first = of_half ? half : usual, differing = *rows[i].part;
        first.sequence = first.step = differing.sequence = differing.step = step;
        first.previous = differing.previous = step - 1;
        talk_part(talk, members.push[1], &first);
        talk_commit(talk, members.push[1], step, 0, 0);
        talk_forget(talk);

        expect_refused(talk, members.push[2], &differing, "STEP_DIFFERS", rows[i].text);
        (void)snprintf(
            begins, sizeof begins, "push %u of worker 2, its contribution to synchronous step %u",
            (unsigned)step, (unsigned)step);
        assert_memory_equal(talk->refused, begins, strlen(begins));
        talk_commit(talk, members.push[2], step, step, step - 1);
        (void)snprintf(
            expected, sizeof expected, "done %u voided\ndone %u [%u]\n", (unsigned)step,
            (unsigned)step, (unsigned)step);
        talk_expect(talk, expected);
    }
}

TALK_TEST(who_names_a_shard_without_bytes_differs_too)
{
    struct members members = begin(talk, 2);
    struct talk_part named = contribution(1, NULL, 0), none = named;

    add_variable(talk, VARIABLE, UPDATE_SGD, SUM, 4);
    none.shards = 0;
    talk_part(talk, members.push[1], &named);
    talk_forget(talk);

    expect_refused(
        talk, members.push[2], &none, "STEP_DIFFERS",
        "has 0 shards of ps 1, where that of worker 1 has shard 10 of variable v10");
}

/* By another ps: the commit says so. */
TALK_TEST(a_voided_contribution_adds_nothing_and_has_come)
{
    struct members members = begin(talk, 2);
    const struct talk_part part = contribution(1, (float[]){2}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_part(talk, members.push[2], &part);

    talk_commit(talk, members.push[2], 1, 1, 0);

    talk_expect(talk, "staged 1\nstaged 1\ndone 1 voided\ndone 1 [1]\n");
    assert_value_is(talk, &members, 1);
}

TALK_TEST(contributions_that_weigh_nothing_together_are_voided)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, MEAN, 1);
    for (uint32_t m = 1; m <= 2; m++) {
        struct talk_part part = contribution(1, (float[]){1}, 1);
        part.zero_weight = true;
        talk_part(talk, members.push[m], &part);
        talk_commit(talk, members.push[m], 1, 0, 0);
    }

    talk_expect(
        talk, "staged 1\nstaged 1\nrefused 1 ZERO_WEIGHT\ndone 1 voided\nrefused 1 ZERO_WEIGHT\n"
              "done 1 voided\n");
    assert_non_null(strstr(
        talk->refused, "push 1 of worker 1 counts for nothing: all contributions to synchronous "
                       "step 1 weigh 0"));
    assert_value_is(talk, &members, 0);
    for (uint32_t m = 1; m <= 2; m++)
        contribute(talk, members.push[m], 2, (float[]){3}, 1);
    talk_forget(talk);
    assert_value_is(talk, &members, 3);
}

/* Each member has its own scale: 2·1 + 0.5·8 + 1·16, and their mean. */
TALK_TEST(contributions_are_scaled_each_by_its_own)
{
    static const double scales[] = {2, 0.5, 0};
    static const float values[] = {1, 8, 16};
    struct members members = begin(talk, 3);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, MEAN, 1);
    for (uint32_t m = 1; m <= 3; m++) {
        struct talk_part part = contribution(1, &values[m - 1], 1);
        part.scale = scales[m - 1];
        part.weight = 2;
        talk_part(talk, members.push[m], &part);
        talk_commit(talk, members.push[m], 1, 0, 0);
    }
    talk_forget(talk);

    assert_value_is(talk, &members, 22.0f / 6);
}

/* ---- members come and go ---- */

TALK_TEST(who_is_settled_without_a_contribution_is_out_of_the_step)
{
    struct members members = begin(talk, 3);
    const struct talk_part part = contribution(1, (float[]){4}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[2], 1, (float[]){2}, 1);
    talk_part(talk, members.push[3], &part); /* not committed: it is dropped */
    talk_close(talk, 3);
    assert_null(strstr(talk->text, "done"));
    talk_forget(talk);

    talk_decide(talk, 3, 0, 0);

    assert_non_null(strstr(talk->text, "done 1 [1]\n"));
    talk_forget(talk);
    assert_value_is(talk, &members, 3);
}

/* Another ps has said that it is committed. It waits on, and its end has been said already. */
TALK_TEST(what_a_settled_member_has_committed_counts)
{
    struct members members = begin(talk, 2);
    const struct talk_part part = contribution(1, (float[]){2}, 1);
    struct talk_part beyond = contribution(2, (float[]){9}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk_part(talk, members.push[2], &part);
    talk_part(talk, members.push[2], &beyond);
    talk_close(talk, 2);
    talk_forget(talk);
    talk_decide(talk, 2, 1, 0);
    assert_non_null(strstr(talk->text, "report ")); /* decided, though it is not applied */
    talk_forget(talk);
    assert_value_is(talk, &members, 0);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_forget(talk);

    assert_value_is(talk, &members, 3);
    contribute(talk, members.push[1], 2, (float[]){1}, 1);
    talk_expect(talk, "staged 2\ndone 2 [2]\n");
}

/* Before it, it has pushed what is still being computed. */
TALK_TEST(what_a_settled_member_has_committed_waits_for_its_turn)
{
    struct members members = begin(talk, 2);
    float values[40] = {1};
    struct talk_part large = contribution(1, values, 40), part = contribution(1, (float[]){2}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, SUM, 40);
    large.shard = VARIABLE + 1;
    large.step = 0;
    part.sequence = 2;
    part.previous = 1;
    talk->holds_compute = true;
    talk_part(talk, members.push[2], &large);
    talk_part(talk, members.push[2], &part);
    talk_commit(talk, members.push[2], 2, 0, 0);
    talk_close(talk, 2);
    talk_decide(talk, 2, 2, 0);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    assert_value_is(talk, &members, 0);

    talk->holds_compute = false;
    talk_compute(talk);

    assert_value_is(talk, &members, 3);
}

TALK_TEST(a_step_of_settled_members_alone_is_taken)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    for (uint8_t m = 1; m <= 2; m++) {
        talk_close(talk, m);
        talk_decide(talk, m, m == 1, 0);
    }
    talk_forget(talk);

    assert_value_is(talk, &members, 1);
}

static uint64_t join_late(struct talk *talk, uint8_t session, const char *seen)
{
    talk_open(talk, session);
    assert_non_null(strstr(talk->text, seen));
    const uint64_t stream = talk_push_stream(talk, session, 1);
    talk_forget(talk);
    return stream;
}

TALK_TEST(steps_wait_until_ps_0_has_said_where_a_new_member_begins)
{
    struct members members = begin(talk, 1);
    struct talk_part early = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_forget(talk);
    const uint64_t late = join_late(talk, 2, "seen step 1\n");
    expect_refused(talk, late, &early, "WRONG_STEP", "its session takes part in none");
    contribute(talk, members.push[1], 2, (float[]){1}, 1);
    talk_expect(talk, "staged 2\n"); /* ps 0 may count the new one in it */

    talk_first_step(talk, 2, 3);
    assert_non_null(strstr(talk->text, "done 2 [2]\n"));
    talk_forget(talk);

    contribute(talk, members.push[1], 3, (float[]){1}, 1);
    talk_expect(talk, "staged 3\n");
    struct talk_part third = contribution(3, (float[]){5}, 1);
    third.sequence = 2;
    third.previous = 1;
    talk_part(talk, late, &third);
    talk_commit(talk, late, 2, 1, 0);
    talk_forget(talk);
    assert_value_is(talk, &members, 8);
}

TALK_TEST(a_new_member_that_is_settled_holds_up_nobody)
{
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    (void)join_late(talk, 2, "report ");
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_expect(talk, "staged 1\n");

    talk_close(talk, 2);
    talk_decide(talk, 2, 0, 0);

    assert_non_null(strstr(talk->text, "done 1 [1]\n"));
}

/* A step that all its members left without a contribution is over when a later one's first is
 * beyond it. */
TALK_TEST(steps_that_nobody_contributes_to_are_passed_over)
{
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 0);
    talk_forget(talk);
    const uint64_t late = join_late(talk, 2, "seen step 1\n");
    talk_first_step(talk, 2, 4); /* another ps has seen three */
    talk_forget(talk);
    struct talk_part part = contribution(1, (float[]){1}, 1);
    part.step = 4;

    talk_part(talk, late, &part);
    talk_commit(talk, late, 1, 0, 0);

    talk_expect(talk, "staged 1\ndone 1 [2]\n");
}

TALK_TEST(steps_are_passed_over_when_one_before_them_is_computed)
{
    struct members members = begin(talk, 1);
    float values[40] = {1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 40);
    talk->holds_compute = true;
    contribute(talk, members.push[1], 1, values, 40);
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 0);
    talk_forget(talk);
    const uint64_t late = join_late(talk, 2, "seen step 1\n");
    talk_first_step(talk, 2, 4);
    talk_forget(talk);
    struct talk_part part = contribution(1, values, 40);
    part.step = 4;
    talk_part(talk, late, &part);
    talk_commit(talk, late, 1, 0, 0);
    talk_expect(talk, "staged 1\n");

    talk->holds_compute = false;
    talk_compute(talk);

    assert_non_null(strstr(talk->text, "done 1 [2]"));
}

TALK_TEST(a_lost_member_fails_the_steps_that_lack_it)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint32_t m = 1; m <= 2; m++)
        contribute(talk, members.push[m], 1, (float[]){1}, 1);
    contribute(talk, members.push[1], 2, (float[]){1}, 1);
    talk_forget(talk);
    talk->lost = true;
    talk_close(talk, 2);
    assert_null(strstr(talk->text, "refused"));
    talk_forget(talk);

    talk_decide(talk, 2, 1, 0);

    assert_non_null(strstr(talk->text, "refused 2 MEMBER_LOST\ndone 2 voided\n"));
    assert_non_null(strstr(
        talk->refused, "push 2 of worker 1 counts for nothing: synchronous step 2 and those after "
                       "it lack the contribution of worker 2, which was lost"));
    talk_forget(talk);
    contribute(talk, members.push[1], 3, (float[]){1}, 1);
    talk_expect(talk, "staged 3\nrefused 3 MEMBER_LOST\ndone 3 voided\n");
    assert_value_is(talk, &members, 2);
}

TALK_TEST(a_lost_member_does_not_fail_what_it_has_committed)
{
    struct members members = begin(talk, 2);
    const struct talk_part part = contribution(1, (float[]){2}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk_part(talk, members.push[2], &part);
    talk->lost = true;
    talk_close(talk, 2);
    talk_decide(talk, 2, 1, 0);
    talk_forget(talk);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[1], 2, (float[]){1}, 1);

    talk_expect(
        talk, "staged 1\ndone 1 [1]\ndone 1 [1]\nstaged 2\nrefused 2 MEMBER_LOST\ndone 2 voided\n");
    assert_value_is(talk, &members, 3);
}

/* Sent again after its answer was lost. */
TALK_TEST(what_was_voided_here_is_said_again)
{
    struct members members = begin(talk, 1);
    struct talk_part part = contribution(1, (float[]){1}, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    part.zero_weight = true;
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);
    talk_forget(talk);

    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);
    talk_part(talk, again, &part);

    talk_expect(talk, "refused 1 ZERO_WEIGHT\ndone 1 voided\n");
}

/* The waits in the statistics that have this text. */
static uint32_t times_waited(struct talk *talk, const char *text)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event asked = {
        .kind = LANE_EVENT_CALL,
        .call = 1,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base,
        .now_us = talk->now_us};
    struct lane_effects effects;
    uint32_t times = 0;

    ps_core_step(talk->core, &asked, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind != LANE_EFFECT_REPLY)
            continue;
        const wire_stats_reply *stats = (const wire_stats_reply *)effects.items[i].reply;
        for (size_t j = 0; j < stats->n_waits; j++)
            times += strstr(stats->waits[j], text) != NULL;
    }
    return times;
}

static bool is_waited(struct talk *talk, const char *text) { return times_waited(talk, text) > 0; }

TALK_TEST(a_contribution_that_waits_names_whom_it_waits_for)
{
    static const char *const jobs[] = {"worker", "worker", "worker"};
    struct lane_config config = talk_config();

    config.members_jobs = jobs;
    config.members_indices = (uint32_t[]){1, 2, 5};
    config.member_count = 3;
    struct members members = begin_as(talk, 2, 3, config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk->now_us += 3000000;

    assert_true(is_waited(
        talk, "synchronous step 1 has waited 3 s for worker 5 (never joined), worker 2 (no push or "
              "pull on ps 1 for 3 s); 1 of 3 have come"));
}

TALK_TEST(a_ps_that_lists_no_members_counts_those_that_have_not_joined)
{
    struct members members = begin_with(talk, 1, 3);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk->now_us += 3000000;

    assert_true(
        is_waited(talk, "has waited 3 s for 2 of 3 members (never joined); 1 of 3 have come"));
}

TALK_TEST(members_that_wait_for_one_step_share_a_sentence)
{
    struct members members = begin(talk, 4);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint32_t member = 1; member <= 3; member++) {
        contribute(talk, members.push[member], 1, (float[]){1}, 1);
        talk_tick(talk, 1000);
    }
    talk->now_us += 1000000;

    assert_int_equal(times_waited(talk, ""), 1);
    assert_true(is_waited(
        talk, "synchronous step 1 has waited 4 s for worker 4 (no push or pull on ps 1 for 4 s); "
              "3 of 4 have come"));
}

TALK_TEST(who_pushes_without_contributing_is_said_to)
{
    struct members members = begin(talk, 2);
    const float one = 1;
    const struct talk_part alone = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = &one, .count = 1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_part(talk, members.push[2], &alone);
    talk->now_us += 3000000;

    assert_true(is_waited(
        talk, "for worker 2 (its pushes are asynchronous, no push or pull on ps 1 for 3 s)"));
}

TALK_TEST(a_step_that_waits_long_is_told_of)
{
    static const char line[] = "log ps 1: synchronous step 1 has waited ";
    struct lane_config config = talk_config();

    config.report_ms = 2000;
    struct members members = begin_as(talk, 2, 2, config);
    talk->shows_logs = true;
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_tick(talk, 1000);
    talk_tick(talk, 1999);
    assert_int_equal(talk_times_said(talk, line), 0);
    talk_tick(talk, 1);
    assert_non_null(strstr(
        talk->text,
        "synchronous step 1 has waited 3 s for worker 2 (no push or pull on ps 1 for "));
    for (uint32_t i = 0; i < 13; i++)
        talk_tick(talk, 1000);
    assert_int_equal(talk_times_said(talk, line), 3); /* after 2, 4 and 8 s more */

    contribute(talk, members.push[2], 1, (float[]){1}, 1);
    for (uint32_t i = 0; i < 13; i++)
        talk_tick(talk, 1000);
    assert_int_equal(talk_times_said(talk, line), 3);
}

/* Its contribution counts when member 2 has joined, and no client waits for that. */
TALK_TEST(a_step_is_not_told_of_after_its_members_have_gone)
{
    struct members members = begin_with(talk, 1, 2);

    talk->shows_logs = true;
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 0);
    for (uint32_t i = 0; i < 20; i++)
        talk_tick(talk, 1000);

    assert_int_equal(talk_times_said(talk, "synchronous step 1 has waited"), 0);
    assert_false(is_waited(talk, "synchronous step 1"));
}

TALK_TEST(a_first_step_counts_from_1)
{
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_forget(talk);
    (void)join_late(talk, 2, "seen step 1\n");

    talk_first_step(talk, 2, 0);

    assert_non_null(strstr(talk->text, "MALFORMED"));
}
