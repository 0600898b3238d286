/* SPDX-License-Identifier: Apache-2.0 */
/* lane_at_step.c (test) -- pulls at a synchronous step: they wait for it, and have all of it and
 * nothing of the next; and pulls at none, which have whole steps. */
#include "lane_members.h"

#define LARGE 40u /* elements: vector work, and an answer of several messages */

struct asked {
    uint64_t request, at_step, shard, after_sequence;
    uint64_t clock; /* of everybody; 0: the pull is not bounded */
    bool of_nothing;
};

static wire_pull_request *fill(struct talk *talk, const struct asked *asked)
{
    static wire_pull_request pull;
    static wire_piece *pieces[1];

    pull = (wire_pull_request)WIRE_PULL_REQUEST_INIT;
    pieces[0] = &talk->pieces[0];
    talk->pieces[0] = (wire_piece)WIRE_PIECE_INIT;
    talk->pieces[0].shard_id = asked->shard == 0 ? VARIABLE : asked->shard;
    pull.request = asked->request;
    pull.at_step = asked->at_step;
    pull.after_sequence = asked->after_sequence;
    pull.bounded = asked->clock > 0;
    pull.clock = asked->clock;
    pull.pieces = pieces;
    pull.n_pieces = asked->of_nothing ? 0 : 1;
    return &pull;
}

static void pull_at(struct talk *talk, uint64_t stream, uint64_t request, uint64_t at_step)
{
    const struct asked asked = {.request = request, .at_step = at_step};
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = fill(talk, &asked)};

    talk_step(talk, &event);
}

/* All members contribute to the step, and nothing is said of it. */
static void take(struct talk *talk, const struct members *members, uint32_t count, uint64_t step)
{
    for (uint32_t m = 1; m <= count; m++)
        contribute(talk, members->push[m], step, (float[]){1}, 1);
}

/* What the only pull is answered in that step. */
static const wire_pull_answer *answer_to(struct talk *talk, const struct lane_event *event)
{
    struct lane_effects effects;
    const wire_pull_answer *answer = NULL;

    ps_core_step(talk->core, event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind == LANE_EFFECT_PULLED)
            answer = effects.items[i].pull_answer;
    }
    assert_non_null(answer);
    return answer;
}

static const wire_pull_answer *
answer_at(struct talk *talk, const struct members *members, uint64_t at_step)
{
    const struct asked asked = {.request = 8, .at_step = at_step};
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL,
        .stream = members->pull,
        .now_us = talk->now_us,
        .pull_request = fill(talk, &asked)};

    return answer_to(talk, &event);
}

TALK_TEST(a_pull_waits_for_its_step_and_has_nothing_of_the_next)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    pull_at(talk, members.pull, 1, 1);
    pull_at(talk, members.pull, 3, 3);
    pull_at(talk, members.pull, 2, 2);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[1], 2, (float[]){10}, 1); /* it is ahead */
    talk_expect(talk, "staged 1\nstaged 2\n");

    contribute(talk, members.push[2], 1, (float[]){2}, 1);
    talk_expect(talk, "staged 1\npulled 1 [1] 3\ndone 1 [1]\ndone 1 [1]\n");
    contribute(talk, members.push[2], 2, (float[]){20}, 1);
    talk_expect(talk, "staged 2\npulled 2 [2] 33\ndone 2 [2]\ndone 2 [2]\n");
    pull_at(talk, members.pull, 4, 2); /* it is the newest still */
    talk_expect(talk, "pulled 4 [2] 33\n");
    take(talk, &members, 2, 3);

    assert_non_null(strstr(talk->text, "pulled 3 [3] 35\n"));
}

TALK_TEST(who_comes_too_late_is_told_the_newest_step)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t step = 1; step <= 3; step++)
        take(talk, &members, 2, step);
    talk_forget(talk);

    const wire_pull_answer *answer = answer_at(talk, &members, 1);

    assert_int_equal(answer->status, SUMAC_OUT_OF_RANGE);
    assert_int_equal((int)answer->reason, SUMAC_REASON_STEP_OVER);
    assert_int_equal(answer->step, 3);
    assert_true(answer->last);
    assert_string_equal(
        answer->message,
        "pull 8 is at synchronous step 1, and step 3 is over on ps 1, which keeps no older state: "
        "pull at that one, or a later one");
}

TALK_TEST(an_answer_says_its_step)
{
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    take(talk, &members, 1, 1);
    take(talk, &members, 1, 2);

    const wire_pull_answer *answer = answer_at(talk, &members, 2);

    assert_int_equal(answer->status, SUMAC_OK);
    assert_int_equal(answer->step, 2);
}

/* It is not the step's end that it waits for, then. */
TALK_TEST(who_waits_for_something_else_is_told_that_it_is_too_late)
{
    struct members members = begin(talk, 2);
    struct asked asked = {.request = 1, .at_step = 1, .after_sequence = 9};
    struct lane_event event = {.kind = LANE_EVENT_PULL, .stream = talk_pull_stream(talk, 1)};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    take(talk, &members, 2, 1);
    event.pull_request = fill(talk, &asked);
    talk_step(talk, &event);
    asked = (struct asked){.request = 2, .at_step = 1, .clock = 5}; /* nobody says that clock */
    event.stream = members.pull;
    event.pull_request = fill(talk, &asked);
    talk_step(talk, &event);
    assert_null(strstr(talk->text, "pulled"));

    take(talk, &members, 2, 2);

    assert_non_null(strstr(talk->text, "pulled 1 error STEP_OVER\n"));
    assert_non_null(strstr(talk->text, "pulled 2 error STEP_OVER\n"));
}

/* Both are whole at once, in one step of the lane. */
TALK_TEST(who_waits_for_the_first_of_two_hears_that_the_second_is_over_too)
{
    const struct lane_config config = talk_config(); /* without records, for which all look */
    struct members members = begin_bare(talk, 2, 2, &config);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t step = 1; step <= 2; step++) {
        const struct talk_part held = contribution(step, (float[]){1}, 1);
        contribute(talk, members.push[1], step, (float[]){1}, 1);
        talk_part(talk, members.push[2], &held);
    }
    pull_at(talk, members.pull, 1, 1);
    talk_forget(talk);

    talk_commit(talk, members.push[2], 2, 0, 0);

    assert_int_equal(talk_times_said(talk, "pulled 1 error STEP_OVER"), 1);
}

TALK_TEST(all_messages_of_an_answer_are_of_that_step)
{
    struct members members = begin(talk, 1);
    float values[LARGE], found[LARGE];

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, LARGE);
    for (uint32_t i = 0; i < LARGE; i++)
        values[i] = 1;
    talk->deaf = members.pull;
    pull_at(talk, members.pull, 1, 1);
    contribute(talk, members.push[1], 1, values, LARGE);
    talk_expect(talk, "staged 1\npulled 1 [1] ...\ndone 1 [1]\n"); /* given: one message is out */

    contribute(talk, members.push[1], 2, values, LARGE); /* when */
    talk->deaf = 0;
    talk_writable(talk, members.pull);

    assert_in_range(talk->pulled_messages, 2, UINT32_MAX); /* then */
    assert_int_equal(talk->pulled_bytes, sizeof found);
    memcpy(found, talk->pulled, sizeof found);
    assert_memory_equal(found, values, sizeof found);
}

/* Its shards become free one after the other, before it is over. */
TALK_TEST(while_the_next_step_is_applied_nothing_is_of_the_one_before)
{
    struct members members = begin(talk, 1);
    float values[LARGE] = {1};
    const struct asked other = {.request = 2, .at_step = 1, .shard = VARIABLE + 1};
    struct lane_event event = {.kind = LANE_EVENT_PULL, .stream = members.pull};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, LARGE);
    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, values, LARGE);
    talk->holds_compute = true;
    contribute(talk, members.push[1], 2, values, LARGE);
    talk_forget(talk);

    pull_at(talk, members.pull, 1, 1);
    event.pull_request = fill(talk, &other);
    talk_step(talk, &event);
    talk_expect(talk, "");
    talk_compute(talk);

    talk_expect(talk, "pulled 1 error STEP_OVER\npulled 2 error STEP_OVER\ndone 2 [2]\n");
}

TALK_TEST(a_pull_at_no_step_has_whole_steps)
{
    struct members members = begin(talk, 2);
    float values[2 * LARGE], found[2 * LARGE];
    struct talk_part part = contribution(1, values, LARGE);

    for (uint32_t i = 0; i < 2 * LARGE; i++)
        values[i] = 1;
    part.shards = 2;
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, LARGE);
    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, SUM, LARGE);
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);
    talk_part(talk, members.push[2], &part);
    talk_pull(talk, members.pull, 1, VARIABLE, 2, 0); /* one is committed, and one is here */
    assert_non_null(strstr(talk->text, "pulled 1 [0 0]"));
    talk_forget(talk);

    talk->holds_compute = true;
    talk_commit(talk, members.push[2], 1, 0, 0);
    talk_pull(talk, members.pull, 2, VARIABLE, 2, 0); /* it is being applied */
    talk_expect(talk, "");
    talk_compute(talk);

    for (uint32_t i = 0; i < 2 * LARGE; i++)
        found[i] = 2;
    assert_int_equal(talk->pulled_bytes, sizeof found);
    assert_memory_equal(talk->pulled, found, sizeof found);
}

/* ---- steps that never come */

TALK_TEST(a_ps_that_takes_no_steps_says_how_it_would)
{
    struct members members = begin_with(talk, 1, 0);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);

    const wire_pull_answer *answer = answer_at(talk, &members, 2);

    assert_int_equal(answer->status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal((int)answer->reason, SUMAC_REASON_UNSUPPORTED);
    assert_int_equal(answer->step, 0);
    assert_string_equal(
        answer->message,
        "pull 8 is at synchronous step 2, and ps 1 does not know how many members a step has: list "
        "them in the cluster configuration of ps 0, or start it with --members");
}

TALK_TEST(steps_that_lack_a_lost_member_are_waited_for_no_longer)
{
    struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    pull_at(talk, members.pull, 1, 1);
    pull_at(talk, members.pull, 2, 2);
    pull_at(talk, members.pull, 3, UINT64_MAX);
    const uint64_t beside = talk_pull_stream(talk, 1);
    talk_pull(talk, beside, 5, VARIABLE, 1, 9); /* at no step: it waits on */
    const struct talk_part last = contribution(1, (float[]){2}, 1);
    talk_part(talk, members.push[2], &last);
    talk->lost = true;
    talk_forget(talk);

    talk_close(talk, 2);
    assert_null(strstr(talk->text, "pulled"));
    talk_decide(talk, 2, 1, 0); /* its contribution to the first counts */

    assert_int_equal(talk_times_said(talk, "error MEMBER_LOST\n"), 2);
    assert_non_null(strstr(talk->text, "pulled 1 [1] 3\n"));
    talk_forget(talk);
    pull_at(talk, members.pull, 4, 1); /* that is the newest for good */
    talk_expect(talk, "pulled 4 [1] 3\n");
    const wire_pull_answer *answer = answer_at(talk, &members, 2);
    assert_int_equal(answer->status, SUMAC_ABORTED);
    assert_string_equal(
        answer->message,
        "pull 8 is at synchronous step 2, which is never over: it lacks the contribution of worker "
        "2, which was lost; start the run again, or start ps 0 with --on-loss continue");
}

TALK_TEST(a_reader_hears_at_once_of_a_step_that_is_lost)
{
    const struct lane_config config = talk_config(); /* without records, for which all look */
    const struct members members = begin_bare(talk, 2, 2, &config);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    pull_at(talk, members.pull, 1, 2);
    talk->lost = true;
    talk_close(talk, 2);
    talk_forget(talk);

    talk_decide(talk, 2, 0, 0);

    assert_int_equal(talk_times_said(talk, "pulled 1 error MEMBER_LOST"), 1);
}

/* ---- waiting */

/* The first one had contributed to none, the second one to two. */
static void lose_two(struct talk *talk, bool later_first)
{
    struct members members = begin(talk, 3);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[3], 1, (float[]){1}, 1);
    contribute(talk, members.push[3], 2, (float[]){1}, 1);
    talk->lost = true;
    for (uint8_t i = 0; i < 2; i++) {
        const uint8_t member = (i == 0) == later_first ? 3 : 2;
        talk_close(talk, member);
        talk_decide(talk, member, member == 3 ? 2 : 0, 0);
    }
    talk_forget(talk);

    pull_at(talk, members.pull, 1, 1);

    talk_expect(talk, "pulled 1 error MEMBER_LOST\n");
    assert_non_null(strstr(talk->refused, "it lacks the contribution of worker 2"));
}

TALK_TEST(of_two_lost_members_the_first_step_that_lacks_one_counts) { lose_two(talk, false); }

TALK_TEST(so_it_does_when_that_one_is_lost_later) { lose_two(talk, true); }

TALK_TEST(the_largest_step_that_there_is_is_waited_for_as_any)
{
    struct members members = begin(talk, 1);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    take(talk, &members, 1, 1);
    pull_at(talk, members.pull, 8, UINT64_MAX);
    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 60u * 1000000u};

    const wire_pull_answer *answer = answer_to(talk, &late);

    assert_int_equal((int)answer->reason, SUMAC_REASON_TIMED_OUT);
}

TALK_TEST(a_wait_names_who_is_missing)
{
    struct members members = begin(talk, 3);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_tick(talk, 20000);
    contribute(talk, members.push[3], 1, (float[]){1}, 1);
    pull_at(talk, members.pull, 8, 4);
    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 60u * 1000000u};

    const wire_pull_answer *answer = answer_to(talk, &late);

    assert_int_equal((int)answer->reason, SUMAC_REASON_TIMED_OUT);
    assert_int_equal(answer->step, 0);
    assert_string_equal(
        answer->message, "pull 8 has waited 60 s for synchronous step 4; step 1 waits on ps 1 for "
                         "worker 2 (no push or pull on ps 1 for 80 s)");
}

/* All have come, and their variable is being written to. */
TALK_TEST(a_wait_for_which_none_is_missing_says_so)
{
    static const float values[LARGE];
    struct members members = begin(talk, 2);
    const uint64_t observer = open_observer(talk);
    struct talk_part part = contribution(1, values, LARGE);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, LARGE);
    talk->holds_compute = true;
    part.step = 0;
    part.eager = true;
    talk_part(talk, observer, &part);
    for (uint32_t m = 1; m <= 2; m++)
        contribute(talk, members.push[m], 1, values, LARGE);
    pull_at(talk, members.pull, 8, 1);
    talk_tick(talk, 2000);

    const wire_stats_reply *const stats = talk_stats(talk);

    assert_true(stats->n_waits > 0);
    assert_string_equal(
        stats->waits[0],
        "pull 8 has waited 2 s for synchronous step 1, which waits on ps 1 for its turn");
    talk->holds_compute = false;
    talk_compute(talk);
}

TALK_TEST(who_asks_for_nothing_asks_who_is_missing)
{
    struct members members = begin(talk, 3);
    const struct asked asked = {.request = 1, .at_step = 2, .of_nothing = true};
    struct lane_event event = {.kind = LANE_EVENT_PULL, .stream = members.pull};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    take(talk, &members, 3, 1);
    contribute(talk, members.push[3], 2, (float[]){1}, 1);
    event.pull_request = fill(talk, &asked);
    talk_step(talk, &event);
    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 60u * 1000000u};

    const wire_pull_answer *answer = answer_to(talk, &late);

    assert_int_equal((int)answer->reason, SUMAC_REASON_TIMED_OUT);
    assert_string_equal(
        answer->message, "it waits for synchronous step 2, which waits on ps 1 for worker 1 (no "
                         "push or pull on ps 1 for 60 s), worker 2 (no push or pull on ps 1 for "
                         "60 s); see the log of each missing task");
}

TALK_TEST(who_asks_for_nothing_at_a_step_that_is_over_hears_that)
{
    struct members members = begin(talk, 1);
    const struct asked asked = {.request = 8, .at_step = 1, .of_nothing = true};
    struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = members.pull, .now_us = talk->now_us};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    take(talk, &members, 1, 1);
    event.pull_request = fill(talk, &asked);

    const wire_pull_answer *answer = answer_to(talk, &event);

    assert_true(answer->last);
    assert_int_equal(answer->status, SUMAC_OK);
}

TALK_TEST(who_waits_for_a_step_is_not_looked_at_for_anything_else)
{
    enum { waiting = 300 };
    const struct lane_config config =
        talk_config(); /* without records, for which all are looked at */
    struct members members = begin_bare(talk, 2, 2, &config);
    const struct talk_part part = {
        .sequence = 2,
        .previous = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = (float[]){1},
        .count = 1};

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t i = 1; i <= waiting; i++)
        pull_at(talk, members.pull, i, i == waiting ? 1 : 2);
    take(talk, &members, 2, 1);
    assert_non_null(strstr(talk->text, "pulled 300 [1] 2\n")); /* given: the others wait on */
    talk_forget(talk);

    talk->most_work = 0;
    talk_part(talk, members.push[1], &part); /* when */

    talk_expect(talk, "staged 2\ndone 2 [2]\n"); /* then */
    assert_in_range(talk->most_work, 1, waiting / 2);
}
