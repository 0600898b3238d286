/* SPDX-License-Identifier: Apache-2.0 */
/* lane_lag.c -- bounded lag: pulls that wait for the slowest member. */
#include <stdio.h>

#include "lane_talk.h"

#define VARIABLE 10u
#define UNBOUNDED (UINT64_MAX - 1)

/* A push and a pull stream of each of the members 1 to 3, and a reader's pull stream. */
struct members {
    uint64_t push[4], pull[4], reader;
};

static struct members begin(struct talk *talk)
{
    struct members members = {.push = {0}};

    talk_start(talk, NULL);
    talk_variable(talk, VARIABLE, 2, UPDATE_ASSIGN_ADD);
    for (uint8_t i = 1; i <= 3; i++) {
        talk_open(talk, i);
        members.push[i] = talk_push_stream(talk, i, 1);
        members.pull[i] = talk_pull_stream(talk, i);
    }
    members.reader = talk_pull_stream(talk, 0);
    talk_forget(talk);
    return members;
}

static void
finish(struct talk *talk, const struct members *members, uint32_t member, uint64_t clock)
{
    talk_commit_at(talk, members->push[member], 0, 0, 0, clock);
}

/* With the clock of whoever asks; UNBOUNDED: which does not count then. */
static void
pull_at(struct talk *talk, uint64_t stream, uint64_t request, uint64_t clock, uint64_t lag_max)
{
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    piece.shard_id = VARIABLE;
    pull.request = request;
    pull.pieces = pieces;
    pull.n_pieces = 1;
    pull.bounded = lag_max != UNBOUNDED;
    pull.lag_max = lag_max;
    pull.clock = clock;
    talk_step(talk, &event);
}

TALK_TEST(nobody_reads_ahead_of_the_slowest_by_more_than_the_lag)
{
    static const uint64_t lags[] = {0, 1, 3};
    struct members members = begin(talk);

    for (uint64_t i = 0; i < 3; i++) { /* given: members 1 and 2 have finished ten steps more */
        const uint64_t clock = 10 * (i + 1), least = clock - lags[i];
        finish(talk, &members, 1, clock);
        finish(talk, &members, 2, clock);

        pull_at(talk, members.pull[1], i + 1, clock, lags[i]); /* when */
        finish(talk, &members, 3, least - 1);
        talk_expect(talk, ""); /* then */
        finish(talk, &members, 3, least);

        char expected[64];
        (void)snprintf(expected, sizeof expected, "pulled %u [0] 0 0\n", (unsigned)(i + 1));
        talk_expect(talk, expected);
    }
}

TALK_TEST(whoever_asks_says_how_far_it_is)
{
    struct members members = begin(talk);

    /* its commit has not come yet, or is not wanted: a reader has none */
    pull_at(talk, members.pull[1], 1, 2, 0);
    pull_at(talk, members.reader, 2, 2, 1);
    pull_at(talk, members.pull[1], 3, 2, 2);
    pull_at(talk, members.pull[1], 4, 2, UINT64_MAX);
    talk_expect(talk, "pulled 3 [0] 0 0\npulled 4 [0] 0 0\n");

    for (uint32_t i = 1; i <= 3; i++)
        finish(talk, &members, i, 1);
    talk_expect(talk, "pulled 2 [0] 0 0\n");
    for (uint32_t i = 1; i <= 3; i++)
        finish(talk, &members, i, 2);
    talk_expect(talk, "pulled 1 [0] 0 0\n");
}

/* The last one behind comes from a step that is earlier than all were waiting for. */
TALK_TEST(who_overtakes_what_is_waited_for_is_waited_for_no_longer)
{
    struct members members = begin(talk);

    finish(talk, &members, 1, 9);
    finish(talk, &members, 2, 9);
    pull_at(talk, members.reader, 1, 5, 1);
    talk_expect(talk, "");

    finish(talk, &members, 3, 7);

    talk_expect(talk, "pulled 1 [0] 0 0\n");
}

TALK_TEST(a_pull_without_a_bound_waits_for_nobody)
{
    struct members members = begin(talk);

    finish(talk, &members, 1, UINT64_MAX);
    pull_at(talk, members.pull[1], 1, UINT64_MAX, UNBOUNDED);

    talk_expect(talk, "pulled 1 [0] 0 0\n");
}

TALK_TEST(a_step_counts_when_what_it_pushed_is_applied)
{
    const float values[] = {1, 2};
    struct members members = begin(talk);

    finish(talk, &members, 1, 1);
    finish(talk, &members, 2, 1);
    pull_at(talk, members.pull[1], 1, 1, 0);
    struct talk_part part = {
        .sequence = 2, .previous = 1, .shard = VARIABLE, .shards = 1, .values = values, .count = 2};
    talk_part(talk, members.push[3], &part); /* push 1 is still on its way */
    talk_commit_at(talk, members.push[3], 2, 0, 0, 1);
    talk_expect(talk, "staged 2\n");
    part.sequence = 1;
    part.previous = 0;

    talk_part(talk, members.push[3], &part);

    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 2 [2]\npulled 1 [2] 2 4\n");
}

TALK_TEST(who_is_settled_or_observes_holds_up_nobody)
{
    uint8_t id[16] = {99};
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    struct members members = begin(talk);

    open.session_id = (wire_bytes){.len = sizeof id, .data = id};
    open.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    talk_order_of(talk, open, &open);
    finish(talk, &members, 1, 4);
    finish(talk, &members, 2, 4);
    pull_at(talk, members.pull[1], 1, 4, 0);
    talk_forget(talk);

    talk_close(talk, 3); /* it may yet be known to have finished more */
    assert_null(strstr(talk->text, "pulled"));
    talk_decide(talk, 3, 0, 0);
    assert_non_null(strstr(talk->text, "pulled 1 [0] 0 0\n"));

    talk_close(talk, 2); /* the last but one, … */
    talk_decide(talk, 2, 0, 0);
    talk_close(talk, 1); /* … and the last */
    talk_decide(talk, 1, 0, 0);
    talk_forget(talk);
    pull_at(talk, members.reader, 2, 1000, 0);
    talk_expect(talk, "pulled 2 [0] 0 0\n");
}

TALK_TEST(who_joins_is_waited_for_like_the_others)
{
    struct members members = begin(talk);

    for (uint32_t i = 1; i <= 3; i++)
        finish(talk, &members, i, 6);
    talk_open(talk, 4); /* at clock 6 */
    const uint64_t stream = talk_push_stream(talk, 4, 1);
    for (uint32_t i = 1; i <= 3; i++)
        finish(talk, &members, i, 8);
    pull_at(talk, members.pull[1], 1, 8, 1);
    talk_forget(talk);

    talk_commit_at(talk, stream, 0, 0, 0, 7);

    talk_expect(talk, "pulled 1 [0] 0 0\n");
}

TALK_TEST(those_of_a_stream_that_are_due_overtake_the_others)
{
    struct members members = begin(talk);

    finish(talk, &members, 1, 9);
    finish(talk, &members, 2, 9);
    pull_at(talk, members.pull[1], 1, 9, 1);
    pull_at(talk, members.pull[1], 2, 9, 5);
    pull_at(talk, members.pull[1], 3, 9, 3);

    finish(talk, &members, 3, 3);
    talk_expect(talk, "");
    finish(talk, &members, 3, 4);
    talk_expect(talk, "pulled 2 [0] 0 0\n");
    finish(talk, &members, 3, 6);
    talk_expect(talk, "pulled 3 [0] 0 0\n");
    finish(talk, &members, 3, 8);
    talk_expect(talk, "pulled 1 [0] 0 0\n");
}

TALK_TEST(who_waits_for_a_clock_is_not_looked_at_for_anything_else)
{
    enum { waiting = 300 };
    const float values[] = {1, 2};
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = values, .count = 2};
    struct members members = begin(talk);

    for (uint64_t i = 1; i <= waiting; i++)
        pull_at(talk, members.pull[1], i, i == waiting ? 1 : 2, 0);
    for (uint32_t i = 1; i <= 3; i++)
        finish(talk, &members, i, 1);
    assert_non_null(strstr(talk->text, "pulled 300 [0] 0 0\n")); /* given: the others wait on */
    talk_forget(talk);

    talk->most_work = 0;
    talk_part(talk, members.push[2], &part); /* when */

    talk_expect(talk, "staged 1\ndone 1 [1]\n"); /* then */
    assert_in_range(talk->most_work, 1, waiting / 2);
}

/* A minute later. */
static void expect_ended(struct talk *talk, const char *expected)
{
    const struct lane_event late = {
        .kind = LANE_EVENT_TICK, .now_us = talk->now_us + 60u * 1000000u};
    struct lane_effects effects;
    const char *text = "no pull ended";

    ps_core_step(talk->core, &late, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind == LANE_EFFECT_PULLED)
            text = effects.items[i].pull_answer->message;
    }
    assert_string_equal(text, expected);
}

TALK_TEST(a_wait_names_who_is_behind_and_how_far)
{
    struct members members = begin(talk);

    finish(talk, &members, 1, 7);
    finish(talk, &members, 2, 5);
    talk_tick(talk, 20000);
    finish(talk, &members, 3, 6);
    pull_at(talk, members.pull[1], 8, 7, 1);

    expect_ended(
        talk, "pull 8 has waited 60 s for step 6 of worker 2, which has finished 5 (no push "
              "or pull on ps 1 for 80 s)");
}

TALK_TEST(a_wait_for_many_names_some_and_counts_the_rest)
{
    struct members members = begin(talk);

    finish(talk, &members, 3, 1);
    talk_open(talk, 4);
    pull_at(talk, members.pull[1], 8, 2, 0);

    expect_ended(
        talk,
        "pull 8 has waited 60 s for step 2 of worker 1, which has finished 0 (no push or "
        "pull on ps 1 for 60 s); worker 2, which has finished 0 (no push or pull on ps 1 for 60 "
        "s); worker 3, which has finished 1 (no push or pull on ps 1 for 60 s); and 1 more");
}

/* The waits in the statistics a second later, one below the other. */
static const char *waits(struct talk *talk)
{
    static char said[1024];
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us + 1000000,
        .call = 1,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base};
    struct lane_effects effects;

    said[0] = '\0';
    ps_core_step(talk->core, &call, &effects);
    const wire_stats_reply *stats = (const wire_stats_reply *)effects.items[0].reply;
    for (size_t i = 0; i < stats->n_waits; i++) {
        strcat(said, stats->waits[i]);
        strcat(said, "\n");
    }
    talk_forget(talk);
    talk->now_us += 1000000;
    return said;
}

TALK_TEST(pulls_that_wait_for_the_same_share_a_sentence)
{
    struct members members = begin(talk);

    finish(talk, &members, 1, 7);
    finish(talk, &members, 2, 5);
    finish(talk, &members, 3, 6);
    pull_at(talk, members.pull[1], 8, 7, 1);
    talk_tick(talk, 1000);
    pull_at(talk, members.pull[3], 8, 6, 0);
    pull_at(talk, members.pull[1], 9, 7, 0);
    pull_at(talk, members.pull[1], 10, 7, 1);

    assert_string_equal(
        waits(talk),
        "3 pulls have waited up to 2 s for step 6 of worker 2, which has finished 5 (no push or "
        "pull on ps 1 for 2 s)\n"
        "pull 9 has waited 1 s for step 7 of worker 2, which has finished 5 (no push or pull on ps "
        "1 for 2 s); worker 3, which has finished 6 (no push or pull on ps 1 for 1 s)\n");
}

/* Member 1 waits for member 2, which has nothing to say. */
static void begin_waiting(struct talk *talk)
{
    struct members members = begin(talk);

    finish(talk, &members, 1, 1);
    finish(talk, &members, 3, 1);
    pull_at(talk, members.pull[1], 8, 1, 0);
}

static void seconds_pass(struct talk *talk, uint32_t seconds, bool ps_0_speaks)
{
    wire_peer_order alive = WIRE_PEER_ORDER_INIT;

    alive.alive = true;
    for (uint32_t i = 0; i < seconds; i++) {
        talk_tick(talk, 1000);
        if (ps_0_speaks)
            talk_order(talk, &alive);
    }
}

/* ps 0 would have closed its session. */
TALK_TEST(a_member_that_is_silent_for_longer_than_its_lease_is_alive)
{
    begin_waiting(talk);
    seconds_pass(talk, 14, true);
    assert_non_null(strstr(waits(talk), "finished 0 (no push or pull on ps 1 for 15 s)\n"));

    assert_non_null(strstr(waits(talk), "finished 0 (alive, no push or pull on ps 1 for 16 s)\n"));

    talk_close(talk, 2);
    assert_non_null(strstr(waits(talk), "finished 0 (no push or pull on ps 1 for 17 s)\n"));
}

TALK_TEST(a_ps_that_does_not_hear_ps_0_calls_no_member_alive)
{
    begin_waiting(talk);

    seconds_pass(talk, 19, false);

    assert_non_null(strstr(waits(talk), "finished 0 (no push or pull on ps 1 for 20 s)\n"));
}

TALK_TEST(a_ps_that_slept_calls_no_member_alive)
{
    begin_waiting(talk);
    talk_tick(talk, 30000);
    seconds_pass(talk, 1, true);
    assert_non_null(strstr(waits(talk), "finished 0 (no push or pull on ps 1 for 32 s)\n"));

    seconds_pass(talk, 14, true);

    assert_non_null(strstr(waits(talk), "finished 0 (alive, no push or pull on ps 1 for 47 s)\n"));
}

/* No pull waits for an observer's clock, and here the observer is the only session. */
TALK_TEST(an_observer_that_leaves_is_not_taken_for_the_slowest)
{
    uint8_t id[16];
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    talk_start(talk, NULL);
    open.session_id = talk_id(4, id);
    open.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    talk_order_of(talk, open, &open);
    talk_forget(talk);

    talk_decide(talk, 4, 0, 0);

    talk_expect(talk, "report 3\n");
}
