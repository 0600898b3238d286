/* SPDX-License-Identifier: Apache-2.0 */
/* controller_barrier_ends.c -- how a round of a barrier ends when not all come, and what ps 0 keeps
 * of barriers. */

#include "unit.h"
#include "barrier.h"
#include "controller_arrivals.h"

/* ---- how a round ends otherwise ---- */

TEST(the_first_deadline_ends_the_round_for_all_and_names_who_is_missing)
{
    struct world *world = world_new(1, 3); /* given */

    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    world_forget(world);
    come(world, 1, 0);
    live(world, 2, 3 * SECOND);
    world_come(world, 2, &(struct world_arrival){.name = "epoch", .timeout_ms = 5000});

    live(world, 2, 4 * SECOND);
    world_expect(world, "");
    live(world, 2, 1 * SECOND); /* when */

    world_expect(
        world, "3: round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT round 1 of barrier \"epoch\" has "
               "waited 8 s for worker 2 (never joined); 2 of 3 tasks have come; a task that came "
               "later gave the round 5 s\n"
               "4: round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT round 1 of barrier \"epoch\" has "
               "waited 8 s for worker 2 (never joined); 2 of 3 tasks have come; a task that came "
               "later gave the round 5 s\n"); /* then */
    const uint32_t late = world_joined(world, "worker", 2, 3);
    world_forget(world);
    come(world, late, 1); /* whoever comes to it now hears the same */
    world_expect_answer(world, "round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT …");
    assert_true(world_logged(world, "round 1 of barrier \"epoch\" has waited 8 s"));
    world_free(world);
}

TEST(a_deadline_names_each_task_with_its_state)
{
    struct world *world = world_new(1, 6);

    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 3, 4);
    world_forget(world);
    world_come(world, 1, &(struct world_arrival){.name = "epoch", .timeout_ms = 2000});
    live(world, 2, 2 * SECOND);

    world_expect(
        world,
        "3: round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT round 1 of barrier \"epoch\" has "
        "waited 2 s "
        "for worker 1 (never joined), worker 2 (never joined), worker 3 (last heard from "
        "… ago), worker 4 (never joined), worker 5 (never joined); 1 of 6 tasks have come\n");
    world_free(world);
}

TEST(without_the_rule_barrier_ends_for_all_a_deadline_ends_one_call)
{
    struct world *world = world_prepare(1, 3);

    world->config.broken = rule_bit(RULE_barrier_ends_for_all);
    world_begin(world);
    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    world_forget(world);
    world_come(world, 1, &(struct world_arrival){.name = "epoch", .timeout_ms = 2000});
    come(world, 2, 0);
    live(world, 2, 2 * SECOND);

    world_expect(world, "3: round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT …\n");
    live(world, 2, 60 * SECOND); /* and another one; then none is left */
    world_expect(world, "4: round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT …\n");
    world_free(world);
}

TEST(a_call_without_a_time_waits_a_minute)
{
    struct world *world = of_two_joined();

    world_come(world, 1, &(struct world_arrival){.name = "epoch"});
    live(world, 2, 59 * SECOND);
    world_expect(world, "");
    live(world, 2, 1 * SECOND);

    world_expect(
        world, "3: round 1 ends DEADLINE_EXCEEDED ROUND_TIMED_OUT …has waited 60 s for …\n");
    world_free(world);
}

TEST(a_member_that_leaves_as_done_ends_the_rounds_that_it_has_not_come_to)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    world_leave(world, 2, true);
    world_settle_down(world);

    world_expect(
        world,
        "ps 0: close 2: it has left\n"
        "ps 0: decide 2 at 0 done\n"
        "4: left at 0\n"
        "3: round 1 ends FAILED_PRECONDITION MEMBER_GONE round 1 of barrier \"epoch\" cannot "
        "pass without worker 1 (last heard from 0 µs ago, left as done); "
        "name the tasks that are left, under another name\n");
    come(world, 1, 2); /* and so with each after it, at once */
    world_expect_answer(world, "round 2 ends FAILED_PRECONDITION MEMBER_GONE …");
    world_free(world);
}

TEST(a_member_that_is_lost_ends_the_round_and_its_next_attempt_comes_to_the_next)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    live(world, 1, 11 * SECOND);

    world_expect(
        world, "ps 0: close 2: its lease ran out, no ps had heard from it for …\n"
               "ps 0: decide 2 at 0\n"
               "3: round 1 ends ABORTED MEMBER_GONE round 1 of barrier \"epoch\" cannot pass "
               "without worker 1 "
               "(last heard from … ago, lost); come again when another "
               "attempt of it has joined\n");
    come(world, 1, 2);
    world_expect_answer(world, "round 2 ends ABORTED MEMBER_GONE …");
    const uint32_t again = world_joined(world, "worker", 1, 3);
    world_forget(world);
    come(world, 1, 3);
    come(world, again, 0);
    world_expect(world, "6: round 3 passes\n7: round 3 passes\n");
    world_free(world);
}

TEST(without_the_rule_barrier_without_the_settled_it_waits_for_the_lost)
{
    struct world *world = world_prepare(1, 2);

    world->config.broken = rule_bit(RULE_barrier_without_the_settled);
    world_begin(world);
    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    come(world, 1, 0);
    world_leave(world, 2, false);
    world_settle_down(world);
    world_forget(world);

    live(world, 1, 5 * SECOND);
    come(world, 1, 1);
    world_expect(world, "3: ABORTED TIMED_OUT a retry of this call took its place\n");
    world_free(world);
}

/* Nobody takes part twice, and nobody waits for one who has come. */
TEST(the_next_attempt_of_a_task_takes_its_place_in_the_open_round)
{
    struct world *world = of_two_joined();

    come(world, 2, 0);
    const uint64_t joining = world_join(world, "worker", 1, 3);
    world_expect(
        world, "3: FAILED_PRECONDITION REPLACED the session of worker 1 is closed: another "
               "process has taken this task's place, attempt 2; "
               "end one of the two, or correct its index; if they are of two runs with the same "
               "TF_CONFIG, set SUMAC_RUN "
               "to a different value in each run\n"
               "ps 0: close 2: another process has taken this task's place, attempt 2\n");
    world_settle_down(world);
    assert_non_null(world_answer(world, joining));
    world_forget(world);

    come(world, 3, 0);
    world_expect(world, "");
    come(world, 1, 0);

    world_expect(world, "5: round 1 passes\n6: round 1 passes\n");
    world_free(world);
}

/* What the attempt before it has heard of, it has not. */
TEST(the_next_attempt_of_a_task_that_had_come_comes_to_the_next_round)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    come(world, 2, 0);
    (void)world_joined(world, "worker", 1, 3);
    world_forget(world);

    come(world, 3, 0);
    world_expect(world, "");
    come(world, 1, 2);

    world_expect(world, "6: round 2 passes\n7: round 2 passes\n");
    world_free(world);
}

TEST(an_attempt_that_joins_in_time_is_waited_for)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    (void)world_join(world, "worker", 1, 3);
    world_settle_down(world);
    world_forget(world);

    come(world, 3, 0);

    world_expect(world, "3: round 1 passes\n5: round 1 passes\n");
    world_free(world);
}

TEST(an_arrival_stays_when_its_call_is_cancelled_or_its_session_ends)
{
    static const uint32_t first_three[] = {0, 1, 2, END};
    struct world *world = world_new(1, 3);

    for (uint32_t i = 0; i < 3; i++)
        (void)world_joined(world, "worker", i, i + 1);
    const uint64_t first = come(world, 1, 0);
    world_cancel(world, first);
    come(world, 2, 0);
    world_forget(world);
    come(world, 3, 0);
    world_expect(world, "5: round 1 passes\n6: round 1 passes\n");
    come(world, 1, 1); /* it asks what became of it */
    world_expect_answer(world, "round 1 passes");

    come_of(world, 1, first_three);
    come_of(world, 3, first_three);
    world_leave(world, 1, false);
    world_settle_down(world);
    world_forget(world);
    come_of(world, 2, first_three);
    world_expect(world, "9: round 1 passes\n11: round 1 passes\n");
    world_free(world);
}

/* Else its name would be taken until the time that they named is over. */
TEST(a_round_ends_when_all_who_came_have_left)
{
    struct world *world = world_new(1, 3);

    for (uint32_t i = 0; i < 3; i++)
        (void)world_joined(world, "worker", i, i + 1);
    come(world, 1, 0);
    come(world, 2, 0);
    world_leave(world, 1, false);
    world_settle_down(world);
    assert_false(world_logged(world, "cannot pass"));
    world_leave(world, 2, true);
    world_settle_down(world);

    assert_true(world_logged(
        world,
        "round 1 of barrier \"epoch\" cannot pass: every task that reached it is gone, at last "
        "worker 1 (last heard from 0 µs ago, left as done); come to the next round"));
    world_forget(world);
    come(world, 3, 1);
    world_expect_answer(world, "round 1 ends ABORTED MEMBER_GONE …");
    world_free(world);
}

/* Another attempt of it may say that it has come. */
TEST(a_round_waits_while_one_who_came_joins_anew)
{
    struct world *world = world_new(1, 2);

    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    come(world, 1, 0);
    const uint32_t again = world_joined(world, "worker", 0, 3);
    world_forget(world);
    come(world, again, 0);
    come(world, 2, 0);

    world_expect(world, "5: round 1 passes\n6: round 1 passes\n");
    world_free(world);
}

TEST(a_round_waits_a_day_at_most)
{
    struct world *world = of_two_joined();

    world_come(world, 1, &(struct world_arrival){.name = "epoch", .timeout_ms = UINT32_MAX});

    assert_int_equal(world->controller->barriers.first->until_us - world->now_us, 86400 * SECOND);
    world_free(world);
}

TEST(the_end_of_the_run_ends_every_wait)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    world_terminate(world);
    world_expect(
        world, "3: UNAVAILABLE TERMINATED ps 0 was told to stop and ends every barrier\n"
               "ps 0: end 143 TERMINATED …\n");
    come(world, 2, 0);
    world_expect_answer(world, "UNAVAILABLE TERMINATED the run is over: …");
    world_free(world);
}

TEST(a_ps_that_is_lost_ends_every_wait)
{
    struct world *world = world_of_two();
    const uint32_t zero = world_joined(world, "worker", 0, 1);

    (void)world_joined(world, "worker", 1, 2);
    world_forget(world);
    come(world, zero, 0);
    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "it has no memory");

    world_expect(world, "3: UNAVAILABLE STATE_LOST ps 1 at …\nps 0: end 138 STATE_LOST …\n");
    world_free(world);
}

/* ---- what it waits for, bounds, memory ---- */

TEST(a_wait_says_where_a_task_that_is_missing_waits)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    world_come(world, 2, &(struct world_arrival){.name = "epoch ", .timeout_ms = ALL_MS});

    assert_true(world_waits(
        world, "round 1 of barrier \"epoch\" waits for worker 1 (last heard from 0 µs ago, waiting "
               "at barrier \"epoch \"); 1 of 2 tasks have come"));
    assert_true(world_waits(
        world,
        "round 1 of barrier \"epoch \" waits for worker 0 (last heard from 0 µs ago, waiting "
        "at barrier \"epoch\"); 1 of 2 tasks have come"));
    world_free(world);
}

TEST(a_wait_is_a_sentence_of_the_statistics)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    live(world, 1, 2 * SECOND);
    assert_true(world_waits(
        world,
        "round 1 of barrier \"epoch\" waits for worker 1 (last heard from 2 s ago); 1 of 2 tasks "
        "have come, it gives up in 58 s"));
    come(world, 2, 0);
    assert_false(world_waits(world, "barrier"));
    world_free(world);
}

/* The session before it has yet to be settled. */
TEST(a_wait_says_when_the_newest_attempt_was_heard)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    live(world, 1, 2 * SECOND);
    world->ps[0].mute = true;
    (void)world_join(world, "worker", 1, 3);

    assert_true(world_waits(
        world, "round 1 of barrier \"epoch\" waits for worker 1 (last heard from 0 µs ago); 1 of 2 "
               "tasks have come"));
    world_free(world);
}

TEST(more_tasks_than_may_wait_are_refused_with_both_figures)
{
    uint32_t many[4 + 1] = {0, 1, 2, 3, END};
    struct world *world = world_prepare(1, 4);

    world->config.barrier_tasks_max = 3;
    world_begin(world);
    (void)world_joined(world, "worker", 0, 1);
    world_forget(world);
    come_of(world, 1, many);
    world_expect_answer(
        world,
        "INVALID_ARGUMENT MALFORMED barrier \"some\" names 4 tasks, and 3 are the most (a 32nd of "
        "--calls-max, at most 512)");
    come(world, 1, 0);
    world_expect_answer(
        world,
        "INVALID_ARGUMENT MALFORMED barrier \"epoch\" is of all 4 members, and 3 tasks are the "
        "most (a 32nd of --calls-max, at most 512)");
    many[3] = END;
    come_of(world, 1, many);
    world_expect(world, "");
    world_free(world);
}

TEST(as_many_tasks_as_may_wait_pass_together)
{
    uint32_t all[WIRE_BARRIER_TASKS_MAX + 1];
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = WIRE_BARRIER_TASKS_MAX;
    world_begin(world);
    for (uint32_t i = 0; i < WIRE_BARRIER_TASKS_MAX; i++)
        all[i] = i;
    all[WIRE_BARRIER_TASKS_MAX] = END;
    (void)world_joined(world, "worker", 0, 1);
    world_forget(world);

    come_of(world, 1, all);

    world_expect(world, "");
    assert_true(world_waits(
        world,
        "round 1 of barrier \"some\" waits for worker 1 (never joined), worker 2 (never joined), "
        "worker 3 (never joined), worker 4 (never joined), worker 5 (never joined), worker 6 "
        "(never joined), worker 7 (never joined), worker 8 (never joined), worker 9 (never "
        "joined), … 511 in all; 1 of 512 "
        "tasks have come"));
    world_free(world);
}

/* Or the others could never come: each waits in a call, and so many may be open. */
TEST(who_has_waited_longest_gives_its_place_to_the_next)
{
    struct world *world = world_prepare(1, 8);

    world->config.barrier_tasks_max = 8;
    world_begin(world);
    for (uint32_t i = 0; i < 8; i++)
        (void)world_joined(world, "worker", i, 1 + i);
    world_forget(world);
    for (uint32_t i = 0; i < 6; i++) /* given */
        come(world, 1 + i, 0);
    const uint64_t last = come(world, 7, 0);
    world_expect(world, "");

    world_come(world, 1, &(struct world_arrival){.name = "other", .timeout_ms = ALL_MS}); /* when */

    world_expect(
        world,
        "…: RESOURCE_EXHAUSTED BUSY worker 0 has come to round 1 of barrier "
        "\"epoch\", and counts; 8 calls wait at barriers, of 8 that may be open: ask again in a "
        "while how it ends\n"); /* then */
    world_cancel(world, last);
    come(world, 8, 0); /* all have come, whoever waits */
    assert_true(world_waits(world, "round 1 of barrier \"other\" waits for"));
    assert_false(world_waits(world, "round 1 of barrier \"epoch\""));
    world_forget(world);
    come(world, 1, 1);
    world_expect_answer(world, "round 1 passes");
    world_free(world);
}

TEST(of_many_rounds_that_end_so_one_a_second_is_logged)
{
    struct world *world = of_two_joined();

    for (uint32_t i = 0; i < 30; i++) {
        world_come(
            world, 1, &(struct world_arrival){.name = "short", .round = 1 + i, .timeout_ms = 1});
        world_pass(world, 100000);
        world->answer_count = 0; /* of which there is room for few */
    }

    assert_true(world_logged(world, "round 1 of barrier \"short\" has waited 1 ms"));
    assert_false(world_logged(world, "(and 0 rounds"));
    assert_false(world_logged(world, "round 2 of barrier \"short\""));
    assert_true(world_logged(world, "round 11 of barrier \"short\" has waited 1 ms"));
    assert_true(world_logged(world, "(and 9 rounds of barriers since the last such line)"));
    assert_true(world_logged(world, "round 21 of barrier \"short\" has waited 1 ms"));
    assert_false(
        world_logged(world, "(and 18 rounds")); /* those before the last line count no more */
    world_free(world);
}

static uint64_t come_to_number(struct world *world, uint32_t session, uint32_t number)
{
    char name[32];

    (void)snprintf(name, sizeof name, "barrier %u", number);
    return world_come(world, session, &(struct world_arrival){.name = name, .timeout_ms = ALL_MS});
}

TEST(the_barrier_used_least_lately_gives_way_and_open_ones_do_not)
{
    struct world *world = of_two_joined();

    come_to_number(world, 1, 0); /* stays open */
    for (uint32_t i = 1; i < CONTROLLER_BARRIERS_MAX; i++) {
        world_cancel(world, come_to_number(world, 1, i));
        world_cancel(world, come_to_number(world, 2, i));
        world->answer_count = 0; /* of which there is room for few */
    }
    world_forget(world);
    world_cancel(world, come_to_number(world, 2, CONTROLLER_BARRIERS_MAX));

    assert_non_null(controller_barrier_find(world->controller, "barrier 0"));
    assert_null(controller_barrier_find(world->controller, "barrier 1"));
    assert_non_null(controller_barrier_find(world->controller, "barrier 2"));
    assert_int_equal(world->controller->barriers_by_name.count, CONTROLLER_BARRIERS_MAX);
    world_free(world);
}

TEST(one_task_comes_to_so_many_open_rounds_and_no_more)
{
    struct world *world = of_two_joined();

    for (uint32_t i = 0; i < CONTROLLER_ARRIVALS_OF_TASK_MAX; i++)
        world_cancel(world, come_to_number(world, 1, i));
    come_to_number(world, 1, 77);
    world_expect_answer(
        world,
        "RESOURCE_EXHAUSTED BUSY worker 0 has come to 16 barriers whose rounds are open, which "
        "are the most: come to barrier 77 later");
    assert_null(controller_barrier_find(world->controller, "barrier 77"));
    world_cancel(world, come_to_number(world, 1, 3)); /* it has come to that */
    world_expect(world, "");
    come_to_number(world, 2, 3);
    world_expect_answer(world, "round 1 passes");
    come_to_number(world, 1, 77);
    world_expect(world, "");
    world_free(world);
}

#define CROWD (CONTROLLER_BARRIERS_MAX / CONTROLLER_ARRIVALS_OF_TASK_MAX)

/* So many workers, none of them listed, the last one beside them. */
static struct world *crowd_joined(void)
{
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = CROWD + 1;
    world_begin(world);
    for (uint32_t i = 0; i <= CROWD; i++)
        (void)world_joined(world, "worker", i, i + 1);
    world_forget(world);
    return world;
}

/* Each comes to as many barriers of all of `workers` as one may, under names that are as long as
 * they may be. */
static void come_to_all(struct world *world, const uint32_t *workers)
{
    char name[CONTROLLER_BARRIER_NAME_BYTES_MAX + 1];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (uint32_t i = 0; i < CONTROLLER_BARRIERS_MAX; i++) {
        name[0] = (char)('a' + i / 26);
        name[1] = (char)('a' + i % 26);
        world_cancel(
            world,
            world_come(
                world, 1 + i % CROWD, &(struct world_arrival){.name = name, .workers = workers}));
    }
}

TEST(beyond_so_many_open_rounds_one_is_refused_with_the_figure)
{
    uint32_t all[CROWD + 2];
    struct world *world = crowd_joined();

    for (uint32_t i = 0; i <= CROWD; i++)
        all[i] = i;
    all[CROWD + 1] = END;
    come_to_all(world, all);
    world_expect(world, "");

    world_come(world, CROWD + 1, &(struct world_arrival){.name = "one more", .workers = all});

    world_expect_answer(
        world,
        "RESOURCE_EXHAUSTED BUSY rounds of 256 barriers are open, and 256 are the most: come "
        "to one more later");
    world_free(world);
}

/* What a barrier takes is in the bound of what ps 0 keeps. */
TEST(what_barriers_take_is_within_their_bound)
{
    uint32_t all[WIRE_BARRIER_TASKS_MAX + 1];
    struct world *world = crowd_joined();

    for (uint32_t i = 0; i < WIRE_BARRIER_TASKS_MAX; i++)
        all[i] = i;
    all[WIRE_BARRIER_TASKS_MAX] = END;
    const uint64_t before = world->bytes_taken;

    come_to_all(world, all);

    const uint64_t pools = 1u << 16; /* calls that waited, and what a step says */
    assert_true(world->bytes_taken - before > CONTROLLER_BARRIERS_MAX * sizeof all);
    assert_true(
        world->bytes_taken - before <= controller_barriers_bytes_max(world->controller) + pools);
    world_free(world);
}

/* At whichever request the memory fails: the arrival is not counted, and counts when it is said
 * again. */
TEST(an_arrival_that_there_is_no_memory_for_is_refused_and_leaves_nothing)
{
    for (uint32_t bad = 1; bad <= 4; bad++) {
        struct world *world = of_two_joined();
        world->bad_take = world->takes + bad;
        const uint64_t number = come_of(world, 1, first_two);
        world->bad_take = 0;
        const struct world_answer *answer = world_answer(world, number);
        if (answer != NULL) {
            assert_int_equal(answer->status, SUMAC_RESOURCE_EXHAUSTED);
            assert_int_equal(answer->reason, SUMAC_REASON_OUT_OF_MEMORY);
            assert_null(world->controller->barriers.first);
            come_of(world, 1, first_two);
        }
        world_forget(world);
        come_of(world, 2, first_two);
        world_expect(world, "…: round 1 passes\n…: round 1 passes\n");
        world_free(world);
    }
}

/* The table of names grows with them, and there is no memory for that either. */
TEST(a_barrier_whose_name_there_is_no_memory_for_is_not_kept)
{
    struct world *world = of_two_joined();
    bool is_refused = false;
    uint32_t count = 0;

    for (; count < CONTROLLER_BARRIERS_MAX; count++) {
        const uint64_t number = come_to_number(world, 1, count);
        is_refused = world_answer(world, number) != NULL;
        if (is_refused)
            break;
        world_cancel(world, number);
        world_cancel(world, come_to_number(world, 2, count));
        world->answer_count = 0;    /* of which there is room for few */
        world->out_of_pools = true; /* nor anything else that is large */
    }

    assert_true(is_refused);
    assert_int_equal(world->controller->barriers_by_name.count, count);
    world->out_of_pools = false;
    come_to_number(world, 1, count);
    assert_int_equal(world->controller->barriers_by_name.count, count + 1);
    world_free(world);
}
