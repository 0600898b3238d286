/* SPDX-License-Identifier: Apache-2.0 */
/* controller_settle.c -- how a session ends: by leaving, by its lease, by its task's next attempt.
 */

#include "unit.h"
#include "controller_state.h"
#include "controller_members.h"
#include "controller_world.h"

TEST(a_session_ends_at_the_largest_commit_with_all_that_was_voided)
{
    struct world *world = world_of_two(); /* given */
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[0].commit_through = 5;
    world->ps[0].voided[0] = 2;
    world->ps[0].voided_count = 1;
    world->ps[1].commit_through = 7;
    world->ps[1].voided[0] = 6;
    world->ps[1].voided[1] = 2;
    world->ps[1].voided_count = 2;

    world_leave(world, joined, true); /* when */
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 7 voided 2 6 done\n"
               "2: left at 7\n");
    world_free(world);
}

TEST(nothing_is_decided_before_every_ps_has_reported)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world->ps[1].silent = true;

    world_leave(world, joined, true);
    world_settle_down(world);

    world_expect(world, "ps 0, 1: close 1: it has left\n");
    world_free(world);
}

TEST(without_the_rule_carry_refusals_a_settle_says_nothing_of_voided_pushes)
{
    struct world *world = world_prepare(1, 1);

    world->config.broken = rule_bit(RULE_carry_refusals);
    world_begin(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[0].voided[0] = 2;
    world->ps[0].voided_count = 1;

    world_leave(world, joined, true);
    world_settle_down(world);

    world_expect(
        world, "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "2: left at 0\n"
               "ps 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

TEST(a_retried_leave_is_answered_with_the_same_final)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world->ps[1].commit_through = 3;
    world_leave(world, joined, false);
    world_settle_down(world);

    world_leave(world, joined, false);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 3\n"
               "2: left at 3\n"
               "3: left at 3\n");
    world_free(world);
}

/* It has been decided, and one ps has yet to say that it knows. */
TEST(the_next_attempt_waits_for_the_settle_and_is_told_where_the_last_one_ended)
{
    struct world *world = world_of_two(); /* given */

    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world->ps[0].commit_through = 9;
    world->ps[0].voided[0] = 8;
    world->ps[0].voided_count = 1;
    world->ps[1].silent = true;

    world_join(world, "worker", 0, 2); /* when */
    world_settle_down(world);
    world_expect(
        world, "ps 0, 1: close 1: another process has taken this task's place, attempt 2\n");
    world->ps[1].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: decide 1 at 9 voided 8\n"
               "ps 0, 1: open 2\n"
               "ps 0, 1: count 2 from step 1 on\n"
               "2: joined 2 attempt 2 of 2 ps after 9 voided 8 epoch 1\n");
    world_free(world);
}

/* What every ps was told to be known may be in no list any more. */
TEST(the_next_attempt_is_told_from_where_on_the_list_of_voided_pushes_is_whole)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world->ps[0].commit_through = 9;
    world->ps[0].acked_through = 6; /* and who says less later changes nothing */
    world->ps[1].commit_through = 7;
    world->ps[1].acked_through = 4;

    world_joined(world, "worker", 0, 2);

    world_expect(
        world, "ps 0, 1: close 1: another process has taken this task's place, attempt 2\n"
               "ps 0, 1: decide 1 at 9 acked 6\n"
               "ps 0, 1: open 2\n"
               "ps 0, 1: count 2 from step 1 on\n"
               "2: joined 2 attempt 2 of 2 ps after 9 acked 6 epoch 1\n");
    world_free(world);
}

static struct world *world_of_one_member(void)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    return world;
}

TEST(who_leaves_as_done_and_lost_pushes_does_not_count_as_done)
{
    struct world *world = world_of_one_member();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[0].commit_through = 5;

    world_leave_after(world, joined, 7); /* when */
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 5\n"
               "2: FAILED_PRECONDITION SESSION_CLOSED worker 0 leaves as done after "
               "push 7, and its session was settled at push 5, pushes after that were "
               "dropped: it does not count as done; start this process again\n");
    world_pass(world, 12 * SECOND);
    world_expect(
        world, "ps 1, 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left "
               "as done\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}

TEST(who_has_lost_pushes_is_not_done_by_naming_an_earlier_one)
{
    struct world *world = world_of_one_member();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[0].commit_through = 5;
    world_leave_after(world, joined, 7);
    world_settle_down(world);

    world_leave_after(world, joined, 3); /* when */
    world_leave(world, joined, true);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 5\n"
               "2: FAILED_PRECONDITION SESSION_CLOSED worker 0 leaves as done after "
               "push 7, and its session was settled at push 5, pushes after that were "
               "dropped: it does not count as done; start this process again\n"
               "3: FAILED_PRECONDITION SESSION_CLOSED …\n"
               "4: FAILED_PRECONDITION SESSION_CLOSED …\n");
    world_pass(world, 12 * SECOND);
    world_expect(
        world, "ps 1, 0: end 143 TERMINATED no worker has been in the run for 10 s, none has left "
               "as done\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}

static void the_end_of_a_lease(struct world *world, uint64_t commit_through)
{
    world->ps[0].commit_through = commit_through;
    world_pass(world, 11 * SECOND);
    world_settle_down(world);
    assert_non_null(world_told(world, 0, ORDER_DECIDE));
}

TEST(a_session_that_its_lease_has_settled_is_done_when_its_last_push_counts)
{
    struct world *world = world_of_one_member();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    the_end_of_a_lease(world, 5);

    world_leave_after(world, joined, 5);
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 5\n"
               "2: left at 5\n"
               "ps 1, 0: end 0 RUN_ENDED every listed member has left as done\n"
               "exit 0 RUN_ENDED …\n");
    world_settle_down(world);
    world_expect(world, "");
    world_free(world);
}

/* It names none, and some count: it may have made more. */
TEST(a_session_that_its_lease_has_settled_must_name_its_last_push_to_be_done)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    the_end_of_a_lease(world, 5);

    world_leave(world, joined, true);
    world_leave_after(world, joined, 6);
    world_leave(world, joined, false);

    world_expect(
        world,
        "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
        "ps 0, 1: decide 1 at 5\n"
        "2: FAILED_PRECONDITION SESSION_CLOSED worker 0 leaves as done after push 0, and its "
        "session was settled at push 5: it does not count as done; start this process again\n"
        "3: FAILED_PRECONDITION SESSION_CLOSED worker 0 leaves as done after "
        "push 6, and its session was settled at push 5, pushes after that were "
        "dropped: it does not count as done; start this process again\n"
        "4: left at 5\n");
    world_free(world);
}

/* Nor do the ps hear that it is done. */
TEST(a_leave_that_comes_while_the_lease_settles_its_session_must_name_its_last_push)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world->ps[1].out_of_memory = true;
    world->ps[0].commit_through = 5;
    world_pass(world, 11 * SECOND);
    world_settle_down(world);
    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n");

    world_leave(world, joined, true);
    world->ps[1].out_of_memory = false;
    world_pass(world, 2 * SECOND);

    world_expect(
        world,
        "ps 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
        "ps 0, 1: decide 1 at 5\n"
        "2: FAILED_PRECONDITION SESSION_CLOSED worker 0 leaves as done after push 0, and its "
        "session was settled at push 5: it does not count as done; start this process again\n");
    world_free(world);
}

/* ---- when memory is short ---- */

/* What ps 0 does not know to be refused it would have applied. */
TEST(a_refused_push_that_cannot_be_kept_is_not_decided_past)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world->ps[0].commit_through = 9;
    world->ps[1].commit_through = 4;
    world->ps[1].voided[0] = 9;
    world->ps[1].voided[1] = 7;
    world->ps[1].voided_count = 2;
    world->out_of_memory = true;

    world_leave(world, joined, true); /* when */
    world_pass(world, 3 * SECOND);

    world_expect(world, "ps 0, 1, 1, 1: close 1: it has left\n");
    assert_true(world_logged(
        world, "settle of worker 0 waits for memory: the list of refused pushes of ps 1"));
    assert_null(strstr(strstr(world->log, "waits for memory") + 1, "waits for memory")); /* once */
    assert_true(
        world_waits(world, "settle of worker 0 waits for memory for what was refused, as ps 1"));
    world->out_of_memory = false;
    world_pass(world, 2 * SECOND);
    world_expect(
        world, "ps 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 9 voided 7 9 done\n"
               "2: left at 9\n");
    world_free(world);
}

TEST(a_ps_that_has_no_memory_to_close_is_asked_again)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world->ps[1].out_of_memory = true;

    world_leave(world, joined, true);
    world_pass(world, 3 * SECOND);
    /* the other has answered */
    world_expect(world, "ps 0, 1, 1, 1: close 1: it has left\n");
    world->ps[1].out_of_memory = false;
    world_pass(world, 2 * SECOND);
    world_expect(
        world, "ps 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0 done\n"
               "2: left at 0\n");
    world_free(world);
}

TEST(a_ps_that_has_no_memory_for_a_decision_is_told_again)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world->ps[1].silent = true;
    world_leave(world, joined, true);
    const struct world_order *close = &world->ps[1].queue[world->ps[1].queued - 1];
    world_expect(world, "ps 0, 1: close 1: it has left\n");
    world_report_answer(world, 1, close->number); /* given: it was closed before */
    world_up(world, 1);
    world_settle_down(world);
    world->ps[1].out_of_memory = true;
    world->ps[1].silent = false;

    world_pass(world, 3 * SECOND);

    world_expect(world, "ps 0, 1, 1, 1: decide 1 at 0 done\n");
    assert_true(world_logged(world, "the decision of ps 1 cannot be kept"));
    world->ps[1].out_of_memory = false;
    world_pass(world, 2 * SECOND);
    world_expect(
        world, "ps 1: decide 1 at 0 done\n"
               "2: left at 0\n");
    world_free(world);
}

TEST(a_settle_that_had_no_memory_for_its_order_gives_it_later)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    struct pool *orders = &world->controller->orders_pool;
    void *used[256];
    size_t used_count = 0;

    world_forget(world);
    world->out_of_memory = true; /* given: no room for an order */
    world->holds_orders = true;
    while ((used[used_count] = pool_take(orders)) != NULL)
        used_count++;

    world_leave(world, joined, true);
    world_pass(world, SECOND);
    world_expect(world, "");
    while (used_count > 0)
        pool_give(orders, used[--used_count]);
    world->holds_orders = false;
    world->out_of_memory = false;
    world_pass(world, SECOND);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0 done\n"
               "2: left at 0\n");
    world_free(world);
}

TEST(of_two_new_attempts_that_wait_the_older_one_is_refused)
{
    struct world *world = world_new(2, 1);

    world_forget(world);

    world_join(world, "worker", 0, 1);
    world_join(world, "worker", 0, 2);
    world_all_up(world);

    world_expect(
        world, "1: FAILED_PRECONDITION REPLACED the join of worker 0 is over: another "
               "process has taken this task's place, attempt 2; " CLOSE_CAUSE_REPLACED_REMEDY "\n"
               "ps 1: hello 0 of 2 ps\n"
               "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "2: joined 1 attempt 2 of 2 ps epoch 1\n");
    world_free(world);
}

/* Each ps waits for the attempt that it was told of, in rounds of collectives. */
TEST(a_new_attempt_that_gave_up_is_opened_and_ends_with_its_lease)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world->ps[1].mute = true;
    world_forget(world);

    world_cancel(world, world_join(world, "worker", 0, 2));
    world_pass(world, 12 * SECOND);
    world_expect(world, "ps 0, 1: close 1: …\n");
    world->ps[1].mute = false;
    world_down(world, 1);
    world_up(world, 1);
    world_settle_down(world);

    world_expect(
        world, "ps 1: hello …\n"
               "ps 1: close 1: …\n"
               "ps 0, 1: decide 1 at 0\n"
               "ps 0, 1: open 2\n"
               "ps 0, 1: count 2 from step 1 on\n");
    world_pass(world, 12 * SECOND);
    world_expect(
        world, "ps 0, 1: close 2: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 2 at 0\n");
    world_free(world);
}

TEST(a_session_that_is_silent_for_a_lease_is_settled_and_a_line_says_so)
{
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_pass(world, 9 * SECOND);
    world_expect(world, "");
    world_pass(world, 2 * SECOND);

    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 0\n");
    assert_true(world_logged(world, "closes the session of worker 0: last heard from 10."));
    world_free(world);
}

TEST(every_message_of_the_session_renews_its_lease)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world_pass(world, 7 * SECOND);
    world_renew(world, joined);
    world_pass(world, 7 * SECOND);
    world_report_renewed(world, 0, joined);
    world_pass(world, 7 * SECOND);
    world_report_renewed(world, 1, joined);
    world_pass(world, 7 * SECOND);
    world_expect(world, "2: renewed\n");

    world_pass(world, 4 * SECOND);
    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 0\n");
    world_free(world);
}

TEST(a_closed_session_is_told_to_join_again_and_an_unknown_one_that_it_is_unknown)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    world_pass(world, 11 * SECOND);

    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 0\n");
    world_renew(world, joined);
    world_renew(world, WORLD_NOBODY);

    world_expect(
        world, "2: FAILED_PRECONDITION SESSION_CLOSED the session of worker 0 is closed: its "
               "lease ran out, no ps had heard from it for 10.2 s; start this process again\n"
               "3: NOT_FOUND SESSION_UNKNOWN ps 0 knows no such session: it was "
               "restarted since the join and its state is lost, or the session ended "
               "long ago, or no join has given this id; join anew\n");
    world_free(world);
}

TEST(a_session_that_closes_while_it_opens_is_settled_in_order)
{
    struct world *world = world_of_two();

    world_forget(world);

    world->ps[1].silent = true;
    world_join(world, "worker", 0, 1);
    world_join(world, "worker", 0, 2);

    world->ps[1].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: members 2 epoch 1\n"
               "1: FAILED_PRECONDITION REPLACED the join of worker 0 is over: another "
               "process has taken this task's place, attempt 2; " CLOSE_CAUSE_REPLACED_REMEDY "\n"
               "ps 0, 1: open 1\n"
               "ps 0, 1: close 1: another process has taken this task's place, attempt 2\n"
               "ps 0, 1: decide 1 at 0\n"
               "ps 0, 1: open 2\n"
               "ps 0, 1: count 2 from step 1 on\n"
               "2: joined 2 attempt 2 of 2 ps epoch 1\n");
    world_free(world);
}

TEST(sessions_are_forgotten_long_after_their_settle)
{
    struct world *world = world_new(1, 1);
    const uint32_t first = world_joined(world, "worker", 0, 1);
    uint32_t id;

    id = first;

    for (uint32_t i = 0; i < 300; i++) {
        world->answer_count = 0;
        world_joined(world, "worker", 0, i + 2);
        world_forget(world);
        world->ps[0].told_count = 0;
    }

    world_leave(world, id, false);
    world_expect(
        world,
        "302: NOT_FOUND SESSION_UNKNOWN ps 0 knows no such session: there is nothing to leave\n");
    world_free(world);
}

/* Of a member its task's next session is told. */
TEST(what_is_voided_of_an_observer_is_forgotten_with_its_settle)
{
    struct world *world = world_new(1, 1); /* given */

    world_forget(world);

    world_leave(world, world_joined(world, NULL, 0, 1), true);
    world_settle_down(world);
    const uint64_t before = world->bytes_taken;
    world->ps[0].voided[0] = 2;
    world->ps[0].voided_count = 1;

    world_leave(world, world_joined(world, NULL, 0, 2), true); /* when */
    world_settle_down(world);

    world_expect(
        world, "ps 0: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n"
               "ps 0: close 1: it has left\n"
               "ps 0: decide 1 at 0 done\n"
               "2: left at 0\n"
               "ps 0: open 2\n"
               "3: joined 2 attempt 2 of 1 ps epoch 1\n"
               "ps 0: close 2: it has left\n"
               "ps 0: decide 2 at 0 voided 2 done\n"
               "4: left at 0\n");
    assert_int_equal(world->bytes_taken, before);
    world_free(world);
}

/* The next order is on its way, and another one is to follow it. */
TEST(what_there_was_no_memory_for_goes_before_what_was_ordered_later)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world->ps[1].out_of_memory = true; /* given */
    world_leave(world, joined, true);
    world_settle_down(world);
    world->ps[1].out_of_memory = false;
    world->ps[1].silent = true;
    (void)world_join(world, NULL, 0, 2);
    (void)world_join(world, NULL, 0, 3);
    world_settle_down(world);
    world_forget(world);

    world_sleep(world, SECOND); /* when: it is to be asked again */
    world->ps[1].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 1: close 1: it has left\n" /* then: after open 2, which was on its way */
               "3: joined 2 attempt 1 of 2 ps epoch 1\n"
               "ps 1: open 3\n"
               "ps 0, 1: decide 1 at 0 done\n"
               "4: joined 3 attempt 2 of 2 ps epoch 1\n"
               "2: left at 0\n");
    world_free(world);
}

/* As many as all ps remember, in any order, none twice; and no more. */
TEST(the_list_of_voided_pushes_has_room_for_those_of_all_ps)
{
    const struct lane_config config = {0};
    struct controller controller = {
        .memory = &memory_heap, .config = &config, .ps_count = LANE_PS_MAX};
    struct controller_voided *voided = NULL;

    for (uint64_t i = 0; i < CONTROLLER_VOIDED_MAX; i++)
        assert_true(controller_voided_add(&controller, &voided, 2 * (i + 1)));
    assert_true(controller_voided_add(&controller, &voided, 2)); /* it is there */
    assert_false(controller_voided_add(&controller, &voided, UINT64_MAX));

    assert_int_equal(voided->count, CONTROLLER_VOIDED_MAX);
    assert_true(
        controller_voided_bytes_max(&controller) >= CONTROLLER_VOIDED_MAX * sizeof(uint64_t));
    controller_voided_drop(&controller, &voided);
    assert_null(voided);
}

/* Before that its client cannot be heard by any ps. */
TEST(a_lease_begins_when_the_session_is_open)
{
    struct world *world = world_of_two();

    world->ps[1].silent = true;
    (void)world_join(world, "worker", 0, 1);
    world_pass(world, 9 * SECOND);
    world->ps[1].silent = false;
    world_settle_down(world);
    world_forget(world);

    world_pass(world, 9 * SECOND);
    world_expect(world, "");
    world_pass(world, 2 * SECOND);

    world_expect(
        world, "ps 0, 1: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0, 1: decide 1 at 0\n");
    world_free(world);
}

TEST(ps_0_says_which_settle_it_ends_without)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t worker = world_joined(world, "worker", 0, 1);
    world->ps[1].mute = true;
    world_leave(world, worker, false);
    world_terminate(world);
    world_pass(world, 6 * SECOND);

    assert_true(world->exited);
    assert_true(world_logged(world, "ps 0 ends: it has waited 5 s for the settle of worker 0\n"));
    world_free(world);
}

/* It is there, and waits for commits: ps 0 says for whom it has waited, and how long. */
TEST(ps_0_says_whose_answer_it_ends_without)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    (void)world_joined(world, "worker", 0, 1);
    world->ps[1].never_ends = world->ps[2].never_ends = true;
    world_terminate(world);
    world_pass(world, 6 * SECOND);

    assert_true(world->exited);
    assert_true(world_logged(
        world, "ps 0 ends: it has waited 5 s for 2 ps to finish what is in flight: ps 1 at h1:1, "
               "last heard from 500 ms ago, and others\n"));
    world_free(world);
}
