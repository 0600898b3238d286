/* SPDX-License-Identifier: Apache-2.0 */
/* controller_run_end.c -- when a run is over, with which code, and that every ps hears of it before
 * ps 0 exits. */

#include "unit.h"
#include "controller_world.h"

static void join_and_leave(struct world *world, const char *job, uint32_t index, bool done)
{
    const uint32_t joined = world_joined(world, job, index, index + 1);

    world_leave(world, joined, done);
    world_settle_down(world);
}

TEST(a_run_ends_as_soon_as_every_listed_member_has_left_as_done)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    world_forget(world);

    join_and_leave(world, "worker", 0, true);
    world_expect(
        world, "ps 0, 1: members 2 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n"
               "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0 done\n"
               "2: left at 0\n");
    join_and_leave(world, "worker", 1, true);

    world_expect(
        world, "ps 0, 1: open 2\n"
               "3: joined 2 attempt 1 of 2 ps epoch 1\n"
               "ps 0, 1: close 2: it has left\n"
               "ps 0, 1: decide 2 at 0 done\n"
               "4: left at 0\n"
               "ps 1, 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    assert_true(world_logged(world, "run ends with code 0: every listed member has left as done"));
    world_free(world);
}

/* Its join was failed with the end; what ps 1 answers later opens nothing. */
TEST(after_the_end_no_session_is_said_to_open_and_no_lease_to_go_on)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t worker = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[1].never_opens = true;
    world_join(world, NULL, 0, 90);
    world_leave(world, worker, true);
    world->ps[1].never_ends = true;
    world_settle_down(world);
    assert_true(world_logged(world, "run ends with code 0"));
    world_expect(
        world, "ps 0, 1: open 2\n"
               "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0 done\n"
               "3: left at 0\n"
               "2: FAILED_PRECONDITION RUN_ENDED every listed member has left as done\n"
               "ps 1: end 0 RUN_ENDED …\n");

    world_report_answer(world, 1, world_told(world, 1, ORDER_OPEN)->number);
    world_sleep(world, 30 * SECOND);

    assert_false(world_logged(world, "opened the session of observer"));
    assert_false(world_logged(world, "suspended"));
    world_free(world);
}

TEST(ps_0_tells_itself_only_when_the_others_have_answered)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    const uint64_t leave = world_leave(world, joined, true);

    world_forget(world);
    while (world_answer(world, leave) == NULL) { /* the settle is through, ... */
        world->ps[1].silent = world_told(world, 1, ORDER_END) != NULL;
        world_settle_down(world);
    }
    world->ps[1].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: decide 1 at 0 done\n"
               "2: left at 0\n"
               "ps 1, 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(a_run_waits_for_a_ps_that_has_not_heard_of_the_end)
{
    struct world *world = world_new(2, 1); /* given */

    world_all_up(world);
    world_forget(world);
    join_and_leave(world, "worker", 0, false);
    world_down(world, 1);

    world_pass(world, 11 * SECOND); /* when */
    assert_false(world_waits(world, "the end of the run"));
    world_down(world, 1); /* another attempt to reach it fails */
    assert_true(world_logged(world, "run ends with code 143"));
    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n"
               "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0\n"
               "2: left at 0\n");
    world_up(world, 1);
    world_settle_down(world);

    world_expect(
        world, "ps 1: hello 71 of 2 ps\n"
               "ps 1, 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left "
               "as done\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}

/* A world whose ps 1 was told of the end, did not answer, and whose stream is gone. */
static struct world *world_of_a_lost_answer(void)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    join_and_leave(world, "worker", 0, false);
    world_pass(world, 9 * SECOND);
    world->ps[1].mute = true;
    world_pass(world, 2 * SECOND);
    assert_non_null(world_told(world, 1, ORDER_END));
    world_down(world, 1);
    world_pass(world, 4 * SECOND);
    assert_false(world->exited);
    return world;
}

TEST(a_ps_whose_stream_is_lost_with_the_end_is_told_again)
{
    struct world *world = world_of_a_lost_answer();

    world_forget(world);

    world->ps[1].mute = false;
    world_up(world, 1);
    world_settle_down(world);

    world_expect(
        world, "ps 1: hello 71 of 2 ps\n"
               "ps 1, 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left "
               "as done\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}

/* It said that it exits for the run's end: its answer was on the way. */
TEST(a_ps_that_ended_with_the_run_is_not_waited_for)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world->ps[1].never_ends = true;
    join_and_leave(world, "worker", 0, true);
    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n"
               "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0 done\n"
               "2: left at 0\n"
               "ps 1: end 0 RUN_ENDED every listed member has left as done\n");

    world_ended(world, 1, SUMAC_REASON_RUN_ENDED, "every listed member has left as done");
    world_settle_down(world);

    world_expect(
        world, "ps 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(a_ps_that_does_not_come_back_after_the_end_is_taken_for_gone)
{
    struct world *world = world_of_a_lost_answer();

    world_forget(world);

    world_pass(world, 2 * SECOND);

    world_expect(
        world,
        "ps 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left as done\n"
        "exit 143 TERMINATED …\n");
    world_free(world);
}

TEST(a_member_that_gave_up_may_come_back_for_a_while)
{
    struct world *world = world_new(1, 1);

    world_forget(world);

    join_and_leave(world, "worker", 0, false);

    world_pass(world, 9 * SECOND);
    world_expect(
        world, "ps 0: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0\n"
               "2: left at 0\n");
    world_joined(world, "worker", 0, 50);
    world_pass(world, 9 * SECOND);

    world_expect(
        world, "ps 0: open 2\n"
               "ps 0: count 2 from step 1 on\n"
               "3: joined 2 attempt 2 of 1 ps epoch 1\n");
    world_free(world);
}

TEST(without_members_for_a_while_a_run_ends_with_143_when_none_was_done)
{
    struct world *world = world_new(1, 1);

    world_forget(world);

    join_and_leave(world, "worker", 0, false);

    world_pass(world, 11 * SECOND);

    world_expect(
        world,
        "ps 0: members 1 epoch 1\n"
        "ps 0: open 1\n"
        "1: joined 1 attempt 1 of 1 ps epoch 1\n"
        "ps 0: close 1: it has left\n"
        "ps 0: decide 1 at 0\n"
        "2: left at 0\n"
        "ps 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left as done\n"
        "exit 143 TERMINATED …\n");
    world_free(world);
}

TEST(while_a_listed_member_has_never_joined_the_wait_is_longer)
{
    struct world *world = world_new(1, 2);

    world_forget(world);

    join_and_leave(world, "worker", 0, true);

    world_pass(world, 58 * SECOND);
    world_expect(
        world, "ps 0: members 2 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "2: left at 0\n");
    world_pass(world, 3 * SECOND);

    /* one left as done */
    world_expect(
        world, "ps 0: end 0 RUN_ENDED no worker has been in the run for 60 s, one "
               "has left as done; never joined: worker 1\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(who_never_joined_is_named_while_the_end_waits_and_in_the_last_line)
{
    struct world *world = world_new(1, 3);
    const char *const waits = "no worker is left; the run ends in 48 s unless one of worker 1, "
                              "worker 2 joins";
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    assert_false(world_waits(world, "no worker is left"));
    world_leave(world, joined, true);
    world_settle_down(world);

    world_pass(world, 12 * SECOND);
    assert_true(world_waits(world, waits));
    assert_false(world_waits(world, "after the first join")); /* once is enough */
    assert_true(world_logged(world, "no worker is left; the run ends in "));
    world_pass(world, 50 * SECOND);

    /* one left as done */
    world_expect(
        world, "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "2: left at 0\n"
               "ps 0: end 0 RUN_ENDED no worker has been in the run for 60 s, one has "
               "left as done; never joined: worker 1, worker 2\n"
               "exit 0 RUN_ENDED …\n");
    assert_true(world_logged(
        world,
        "run ends with code 0: no worker has been in the run for 60 s, one has left as done; "
        "never joined: worker 1, worker 2\n"));
    world_free(world);
}

TEST(who_may_come_back_is_named_while_the_end_waits)
{
    struct world *world = world_new(1, 1);

    join_and_leave(world, "worker", 0, false);

    world_pass(world, 4 * SECOND);

    assert_true(
        world_waits(world, "no worker is left; the run ends in 6 s unless worker 0 joins again"));
    world_free(world);
}

TEST(who_never_joined_is_named_once_while_the_others_train)
{
    struct world *world = world_new(1, 2);
    const char *const line = "worker 1 never joined, 6";
    const uint32_t id = world_joined(world, "worker", 0, 1);

    for (int i = 0; i < 55; i++, world_renew(world, id))
        world_pass(world, SECOND);
    assert_false(world_logged(world, line));

    for (int i = 0; i < 8; i++, world_renew(world, id))
        world_pass(world, SECOND);
    assert_true(world_logged(world, line));
    assert_true(world_logged(
        world, "s after the first join; start each missing task; the first synchronous step waits "
               "until all have joined; asynchronous pushes go on"));
    world->log[0] = '\0';
    world_pass(world, 9 * SECOND);

    assert_false(world_logged(world, "never joined"));
    world_free(world);
}

TEST(without_a_list_a_run_ends_when_no_member_is_open_for_a_while)
{
    struct world *world = world_new(1, 0);

    world_forget(world);

    join_and_leave(world, "worker", 0, true);
    world_expect(
        world, "ps 0: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "2: left at 0\n");

    world_pass(world, 11 * SECOND);

    world_expect(
        world,
        "ps 0: end 0 RUN_ENDED no worker has been in the run for 10 s, one has left as done\n"
        "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(observers_hold_up_no_end_and_begin_no_run)
{
    struct world *world = world_new(1, 1);

    world_joined(world, NULL, 0, 90);
    world_forget(world);
    world_pass(world, 100 * SECOND);
    world_expect(
        world, "ps 0: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0: decide 1 at 0\n");

    world_joined(world, NULL, 0, 91);
    join_and_leave(world, "worker", 0, true);

    world_expect(
        world, "ps 0: open 2\n"
               "2: joined 2 attempt 2 of 1 ps epoch 1\n"
               "ps 0: open 3\n"
               "3: joined 3 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 3: it has left\n"
               "ps 0: decide 3 at 0 done\n"
               "4: left at 0\n"
               "ps 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(a_worker_that_comes_back_after_it_was_done_is_not_done_any_more)
{
    struct world *world = world_new(1, 2);

    world_joined(world, "worker", 1, 60);
    world_forget(world);
    join_and_leave(world, "worker", 0, true);
    const uint32_t again = world_joined(world, "worker", 0, 61);
    world_leave(world, again, false);
    world_settle_down(world);

    join_and_leave(world, "worker", 1, true);

    world_expect(
        world, "ps 0: open 2\n"
               "2: joined 2 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 2: it has left\n"
               "ps 0: decide 2 at 0 done\n"
               "3: left at 0\n"
               "ps 0: open 3\n"
               "ps 0: count 3 from step 1 on\n"
               "4: joined 3 attempt 2 of 1 ps epoch 1\n"
               "ps 0: close 3: it has left\n"
               "ps 0: decide 3 at 0\n"
               "5: left at 0\n"
               "ps 0: close 1: another process has taken this task's place, attempt 2\n"
               "ps 0: decide 1 at 0\n"
               "ps 0: open 4\n"
               "ps 0: count 4 from step 1 on\n"
               "6: joined 4 attempt 2 of 1 ps epoch 1\n"
               "ps 0: close 4: it has left\n"
               "ps 0: decide 4 at 0 done\n"
               "7: left at 0\n");
    world_free(world);
}

/* A task that was told only itself: the members are learnt from those who join. */
TEST(without_a_list_of_ps_0_each_member_that_is_open_holds_up_the_end)
{
    struct world *world = world_new(1, 0);
    const uint32_t late = world_joined(world, "worker", 5, 60);
    uint32_t id;

    world_forget(world);

    id = late;
    join_and_leave(world, "worker", 0, true);
    world_pass(world, 9 * SECOND);
    world_expect(
        world, "ps 0: members 2 epoch 2\n"
               "ps 0: open 2\n"
               "2: joined 2 attempt 1 of 1 ps epoch 2\n"
               "ps 0: close 2: it has left\n"
               "ps 0: decide 2 at 0 done\n"
               "3: left at 0\n");

    world_leave(world, id, true);
    world_settle_down(world);
    world_pass(world, 11 * SECOND);

    world_expect(
        world, "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "4: left at 0\n"
               "ps 0: end 0 RUN_ENDED no worker has been in the run for 10 s, 2 have left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(a_killed_member_counts_once_it_is_settled)
{
    struct world *world = world_new(1, 1);

    world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_pass(world, 19 * SECOND); /* a lease of 10 s, then the wait begins */
    world_expect(
        world, "ps 0: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0: decide 1 at 0\n");
    world_pass(world, 3 * SECOND);

    world_expect(
        world,
        "ps 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left as done; "
        "lost: worker 0\n"
        "exit 143 TERMINATED …\n");
    world_free(world);
}

TEST(a_worker_that_was_settled_and_then_says_done_is_done)
{
    struct world *world = world_new(1, 1);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world_pass(world, 12 * SECOND);

    world_leave(world, joined, true);
    world_settle_down(world);

    world_expect(
        world, "ps 0: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0: decide 1 at 0\n"
               "2: left at 0\n"
               "ps 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

/* Settled for its silence, it is heard again when its successor is at work; and that one dies. */
TEST(the_done_of_an_older_attempt_does_not_make_the_newer_ones_task_done)
{
    struct world *world = world_new(1, 1);

    const uint32_t older = world_joined(world, "worker", 0, 1);
    world_forget(world);
    world_pass(world, 12 * SECOND);
    world_joined(world, "worker", 0, 2);
    world_leave(world, older, true);
    world_settle_down(world);
    world_expect(
        world, "ps 0: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0: decide 1 at 0\n"
               "ps 0: open 2\n"
               "ps 0: count 2 from step 1 on\n"
               "2: joined 2 attempt 2 of 1 ps epoch 1\n"
               "3: left at 0\n");

    world_pass(world, 12 * SECOND);

    /* the next attempt is waited for */
    world_expect(
        world, "ps 0: close 2: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0: decide 2 at 0\n");
    const uint32_t next = world_joined(world, "worker", 0, 3);
    world_leave(world, next, true);
    world_settle_down(world);
    world_expect(
        world, "ps 0: open 3\n"
               "ps 0: count 3 from step 1 on\n"
               "4: joined 3 attempt 3 of 1 ps epoch 1\n"
               "ps 0: close 3: it has left\n"
               "ps 0: decide 3 at 0 done\n"
               "5: left at 0\n"
               "ps 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(a_join_after_the_end_is_told_that_the_run_is_over)
{
    struct world *world = world_new(1, 1);

    world_forget(world);

    join_and_leave(world, "worker", 0, true);

    world_join(world, "worker", 0, 9);

    world_expect(
        world, "ps 0: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "2: left at 0\n"
               "ps 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n"
               "3: FAILED_PRECONDITION RUN_ENDED the run is over: "
               "every listed member has left as done\n");
    world_free(world);
}

TEST(a_run_ends_however_short_memory_is)
{
    struct world *world = world_prepare(3, 1); /* given */

    world->config.sessions_max = 100;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_use_up_orders(world);
    world_forget(world);
    world->out_of_memory = true;

    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "its state was lost"); /* when */
    world_settle_down(world);

    world_expect(
        world, "ps 2, 0: end 138 STATE_LOST ps 1 at h1:1 has ended and "
               "its state with it: its state was lost\n"
               "exit 138 STATE_LOST …\n");
    world_free(world);
}

/* More joins wait than there are places for their answers: those that have one are answered, and
 * the controller says that it ends, in the place that is kept for that. */
TEST(answers_without_a_place_end_the_ps)
{
    struct world *world = world_prepare(2, 1); /* given */

    world->config.sessions_max = 200;
    world->config.records = false; /* which answers would wait for */
    world_begin(world);
    for (uint32_t i = 0; i < 160; i++)
        world_join(world, NULL, 0, 1 + i);
    world->out_of_memory = true;

    world_terminate(world); /* when */

    assert_int_equal(world->lost.reason, SUMAC_REASON_STATE_LOST); /* then */
    assert_string_equal(
        world->lost.text, "ps 0 ends, and its state with it: no memory for what it has to say");
    assert_in_range(world->answer_count, 96, 159);
    world_free(world);
}

static void all_leave_as_done(struct world *world)
{
    join_and_leave(world, "worker", 0, true);
    join_and_leave(world, "worker", 1, true);
}

static void one_is_done_and_one_killed(struct world *world)
{
    world_joined(world, "worker", 1, 60);
    join_and_leave(world, "worker", 0, true);
    world_pass(world, 22 * SECOND);
}

static void all_are_killed(struct world *world)
{
    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world_pass(world, 22 * SECOND);
}

static void all_give_up(struct world *world)
{
    world_joined(world, "worker", 1, 60);
    join_and_leave(world, "worker", 0, false);
    join_and_leave(world, "worker", 1, false);
    world_pass(world, 11 * SECOND);
}

static void ps_1_loses_its_state(struct world *world)
{
    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "its state was lost");
}

static void ps_1_is_not_reached(struct world *world)
{
    world_down(world, 1);
    world_pass(world, 70 * SECOND);
}

static void ps_1_misses_another(struct world *world)
{
    world_ended(world, 1, SUMAC_REASON_PS_MISSING, "it waits for nobody any more");
}

static void ps_1_is_terminated(struct world *world)
{
    world_ended(world, 1, SUMAC_REASON_TERMINATED, "ps 1 was terminated before the run ended");
}

/* Each other code is for a scheduler, which starts the run again. */
TEST(clients_hear_run_ended_where_the_code_is_0_and_nowhere_else)
{
    static const struct {
        void (*end)(struct world *world);
        int exit_code;
        enum sumac_status status;
        enum sumac_reason reason;
    } rows[] = {
        {all_leave_as_done, 0, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED},
        {one_is_done_and_one_killed, 0, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED},
        {all_are_killed, 143, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED},
        {all_give_up, 143, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED},
        {world_terminate, 143, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED},
        {ps_1_is_terminated, 143, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED},
        {ps_1_loses_its_state, 138, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST},
        {ps_1_is_not_reached, 138, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST},
        {ps_1_misses_another, 138, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world *world = world_new(2, 2);
        world_all_up(world);
        world_joined(world, NULL, 0, 90); /* somebody watches */
        rows[i].end(world);
        world_settle_down(world);

        assert_true(world->exited);
        assert_int_equal(world->exit_code, rows[i].exit_code);
        assert_int_equal(world->exit_error.status, rows[i].status);
        assert_int_equal(world->exit_error.reason, rows[i].reason);
        const uint64_t late = world_join(world, NULL, 0, 91);
        assert_int_equal(world_answer(world, late)->reason, rows[i].reason);
        world_free(world);
    }
}

/* The other ps say to their clients what ps 0 tells them. */
TEST(of_a_run_in_which_nobody_was_done_the_other_ps_are_told_the_reason)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    world_forget(world);

    all_are_killed(world);

    world_expect(
        world, "ps 0, 1: members 2 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n"
               "ps 0, 1: open 2\n"
               "2: joined 2 attempt 1 of 2 ps epoch 1\n"
               "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: close 2: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 0\n"
               "ps 0, 1: decide 2 at 0\n"
               "ps 1, 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left "
               "as done; "
               "lost: worker 0, worker 1\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}
