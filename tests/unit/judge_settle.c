/* SPDX-License-Identifier: Apache-2.0 */
/* judge_settle.c -- how a session ends: by leaving, by its lease, by its task's next attempt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "judge_state.h"
#include "judge_world.h"

static struct world *world_of_two(void)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    return world;
}

static void a_session_ends_at_the_largest_commit_with_all_that_was_voided(void **state)
{
    (void)state;
    struct world *world = world_of_two(); /* given */
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[0].commit_through = 5;
    world->ps[0].voided[0] = 2;
    world->ps[0].voided_count = 1;
    world->ps[1].commit_through = 7;
    world->ps[1].voided[0] = 6;
    world->ps[1].voided[1] = 2;
    world->ps[1].voided_count = 2;

    const uint64_t leave = world_leave(world, joined->session_id, true); /* when */
    world_settle_down(world);

    assert_int_equal(world_answer(world, leave)->final, 7); /* then */
    const struct world_order *decide = world_told(world, 1, ORDER_DECIDE);
    assert_memory_equal(decide->session_id, joined->session_id, 16);
    assert_int_equal(decide->final, 7);
    assert_true(decide->done);
    assert_int_equal(decide->voided_count, 2);
    assert_int_equal(decide->voided[0] + decide->voided[1], 8);
    world_free(world);
}

static void nothing_is_decided_before_every_ps_has_reported(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[1].silent = true;

    const uint64_t leave = world_leave(world, joined->session_id, true);
    world_settle_down(world);

    assert_null(world_told(world, 0, ORDER_DECIDE));
    assert_null(world_answer(world, leave));
    world_free(world);
}

static void without_the_rule_carry_refusals_a_settle_says_nothing_of_voided_pushes(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 1);

    world->config.broken = 1u << RULE_carry_refusals;
    world_begin(world);
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);
    world->ps[0].voided[0] = 2;
    world->ps[0].voided_count = 1;

    world_leave(world, joined->session_id, true);
    world_settle_down(world);

    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->voided_count, 0);
    world_free(world);
}

static void a_retried_leave_is_answered_with_the_same_final(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[1].commit_through = 3;
    world_leave(world, joined->session_id, false);
    world_settle_down(world);

    const uint64_t again = world_leave(world, joined->session_id, false);

    assert_int_equal(world_answer(world, again)->final, 3);
    assert_int_equal(world_told_count(world, 1, ORDER_CLOSE), 1);
    world_free(world);
}

/* It has been decided, and one ps has yet to say that it knows. */
static void sigterm_lets_a_settle_that_is_decided_be_through(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);
    world->ps[1].mute = true;
    const uint64_t leave = world_leave(world, joined->session_id, true);
    world_settle_down(world);
    world_report_answer(world, 1, world_told(world, 1, ORDER_CLOSE)->number);
    world_settle_down(world);
    assert_non_null(world_told(world, 1, ORDER_DECIDE)); /* given */

    world_terminate(world);
    assert_null(world_answer(world, leave));
    world_report_answer(world, 1, world_told(world, 1, ORDER_DECIDE)->number);
    world_settle_down(world);

    assert_int_equal(world_answer(world, leave)->status, SUMAC_OK);
    assert_int_equal(world_told(world, 1, ORDER_END)->exit_code, 143);
    world_free(world);
}

static void the_next_attempt_waits_for_the_settle_and_is_told_where_the_last_one_ended(void **state)
{
    (void)state;
    struct world *world = world_of_two(); /* given */

    world_joined(world, "worker", 0, 1);
    world->ps[0].commit_through = 9;
    world->ps[0].voided[0] = 8;
    world->ps[0].voided_count = 1;
    world->ps[1].silent = true;

    const uint64_t join = world_join(world, "worker", 0, 2); /* when */
    world_settle_down(world);
    assert_null(world_answer(world, join));
    world->ps[1].silent = false;
    world_settle_down(world);

    const struct world_answer *joined = world_answer(world, join); /* then */
    assert_int_equal(joined->attempt, 2);
    assert_int_equal(joined->previous_final, 9);
    assert_int_equal(joined->previous_voided, 1);
    world_free(world);
}

/* What every ps was told to be known may be in no list any more. */
static void the_next_attempt_is_told_from_where_on_the_list_of_voided_pushes_is_whole(void **state)
{
    (void)state;
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world->ps[0].commit_through = 9;
    world->ps[0].acked_through = 4;
    world->ps[1].commit_through = 7;
    world->ps[1].acked_through = 6;

    const struct world_answer *joined = world_joined(world, "worker", 0, 2);

    assert_int_equal(joined->previous_acked_through, 6);
    assert_int_equal(world_told(world, 1, ORDER_DECIDE)->acked_through, 6);
    world_free(world);
}

static struct world *world_of_one_member(void)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    return world;
}

static void who_leaves_as_done_and_lost_pushes_does_not_count_as_done(void **state)
{
    (void)state;
    struct world *world = world_of_one_member();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[0].commit_through = 5;

    const uint64_t leave = world_leave_after(world, joined->session_id, 7); /* when */
    world_settle_down(world);

    const struct world_answer *answer = world_answer(world, leave); /* then */
    assert_int_equal(answer->status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal(answer->reason, SUMAC_REASON_SESSION_CLOSED);
    assert_string_equal(
        answer->text, "worker 0 leaves as done after push 7, and its session was settled at push "
                      "5, pushes after that were dropped: it does not count as done; join again");
    assert_false(world_told(world, 0, ORDER_DECIDE)->done);
    world_pass(world, 12 * SECOND);
    assert_int_equal(world->exit_code, 143);
    world_free(world);
}

static void who_has_lost_pushes_is_not_done_by_naming_an_earlier_one(void **state)
{
    (void)state;
    struct world *world = world_of_one_member();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[0].commit_through = 5;
    world_leave_after(world, joined->session_id, 7);
    world_settle_down(world);

    const uint64_t earlier = world_leave_after(world, joined->session_id, 3); /* when */
    const uint64_t unsaid = world_leave(world, joined->session_id, true);

    assert_int_equal(world_answer(world, earlier)->reason, SUMAC_REASON_SESSION_CLOSED); /* then */
    assert_int_equal(world_answer(world, unsaid)->reason, SUMAC_REASON_SESSION_CLOSED);
    world_pass(world, 12 * SECOND);
    assert_int_equal(world->exit_code, 143);
    world_free(world);
}

static void the_end_of_a_lease(struct world *world, uint64_t commit_through)
{
    world->ps[0].commit_through = commit_through;
    world_pass(world, 11 * SECOND);
    world_settle_down(world);
    assert_int_equal(world_told_count(world, 0, ORDER_DECIDE), 1);
}

static void a_session_that_its_lease_has_settled_is_done_when_its_last_push_counts(void **state)
{
    (void)state;
    struct world *world = world_of_one_member();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    the_end_of_a_lease(world, 5);

    const uint64_t leave = world_leave_after(world, joined->session_id, 5);
    world_settle_down(world);

    assert_int_equal(world_answer(world, leave)->final, 5);
    world_settle_down(world);
    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    world_free(world);
}

/* It names none, and some count: it may have made more. */
static void a_session_that_its_lease_has_settled_must_name_its_last_push_to_be_done(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    the_end_of_a_lease(world, 5);

    const uint64_t unsaid = world_leave(world, joined->session_id, true);
    const uint64_t beyond = world_leave_after(world, joined->session_id, 6);
    const uint64_t gives_up = world_leave(world, joined->session_id, false);

    assert_int_equal(world_answer(world, unsaid)->reason, SUMAC_REASON_SESSION_CLOSED);
    assert_int_equal(world_answer(world, beyond)->reason, SUMAC_REASON_SESSION_CLOSED);
    assert_int_equal(world_answer(world, gives_up)->final, 5);
    assert_false(world->exited);
    world_free(world);
}

/* Nor do the ps hear that it is done. */
static void
a_leave_that_comes_while_the_lease_settles_its_session_must_name_its_last_push(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[1].out_of_memory = true;
    world->ps[0].commit_through = 5;
    world_pass(world, 11 * SECOND);
    world_settle_down(world);
    assert_null(world_told(world, 0, ORDER_DECIDE));

    const uint64_t unsaid = world_leave(world, joined->session_id, true);
    world->ps[1].out_of_memory = false;
    world_pass(world, 2 * SECOND);

    assert_int_equal(world_answer(world, unsaid)->reason, SUMAC_REASON_SESSION_CLOSED);
    assert_false(world_told(world, 0, ORDER_DECIDE)->done);
    world_free(world);
}

/* ---- when memory is short ---- */

/* What ps 0 does not know to be refused it would have applied. */
static void a_refused_push_that_cannot_be_kept_is_not_decided_past(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[0].commit_through = 9;
    world->ps[1].commit_through = 4;
    world->ps[1].voided[0] = 9;
    world->ps[1].voided[1] = 7;
    world->ps[1].voided_count = 2;
    world->out_of_memory = true;

    const uint64_t leave = world_leave(world, joined->session_id, true); /* when */
    world_pass(world, 3 * SECOND);

    assert_null(world_told(world, 0, ORDER_DECIDE)); /* then */
    assert_null(world_answer(world, leave));
    assert_true(world_logged(
        world, "settle of worker 0 waits for memory: the list of refused pushes of ps 1"));
    assert_true(
        world_waits(world, "settle of worker 0 waits for memory for what was refused, as ps 1"));
    world->out_of_memory = false;
    world_pass(world, 2 * SECOND);
    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->final, 9);
    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->voided_count, 2);
    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->voided[0], 7);
    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->voided[1], 9);
    assert_int_equal(world_answer(world, leave)->final, 9);
    world_free(world);
}

static void a_ps_that_has_no_memory_to_close_is_asked_again(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[1].out_of_memory = true;

    const uint64_t leave = world_leave(world, joined->session_id, true);
    world_pass(world, 3 * SECOND);
    assert_true(world_told_count(world, 1, ORDER_CLOSE) > 1);
    assert_int_equal(world_told_count(world, 0, ORDER_CLOSE), 1); /* the other has answered */
    assert_null(world_told(world, 0, ORDER_DECIDE));
    assert_null(world_answer(world, leave));
    world->ps[1].out_of_memory = false;
    world_pass(world, 2 * SECOND);
    assert_int_equal(world_answer(world, leave)->status, SUMAC_OK);
    world_free(world);
}

static void a_ps_that_has_no_memory_for_a_decision_is_told_again(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world->ps[1].silent = true;
    const uint64_t leave = world_leave(world, joined->session_id, true);
    const struct world_order *close = &world->ps[1].queue[world->ps[1].queued - 1];
    assert_int_equal(close->kind, ORDER_CLOSE);
    world_report_answer(world, 1, close->number); /* given: it was closed before */
    world_up(world, 1);
    world_settle_down(world);
    world->ps[1].out_of_memory = true;
    world->ps[1].silent = false;

    world_pass(world, 3 * SECOND);

    assert_null(world_answer(world, leave));
    assert_true(world_logged(world, "the decision of ps 1 cannot be kept"));
    world->ps[1].out_of_memory = false;
    world_pass(world, 2 * SECOND);
    assert_int_equal(world_answer(world, leave)->status, SUMAC_OK);
    world_free(world);
}

static void a_settle_that_had_no_memory_for_its_order_gives_it_later(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);
    struct pool *orders = &world->judge->orders_pool;
    void *used[256];
    size_t used_count = 0;

    world->out_of_memory = true; /* given: no room for an order */
    world->holds_orders = true;
    while ((used[used_count] = pool_take(orders)) != NULL)
        used_count++;

    const uint64_t leave = world_leave(world, joined->session_id, true);
    world_pass(world, SECOND);
    assert_null(world_told(world, 0, ORDER_CLOSE));
    while (used_count > 0)
        pool_give(orders, used[--used_count]);
    world->holds_orders = false;
    world_pass(world, SECOND);

    assert_int_equal(world_answer(world, leave)->status, SUMAC_OK);
    world_free(world);
}

static void of_two_new_attempts_that_wait_the_older_one_is_refused(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    const uint64_t older = world_join(world, "worker", 0, 1);
    const uint64_t newer = world_join(world, "worker", 0, 2);
    world_all_up(world);

    assert_int_equal(world_answer(world, older)->status, SUMAC_ABORTED);
    assert_int_equal(world_answer(world, newer)->status, SUMAC_OK);
    assert_int_equal(world_told_count(world, 1, ORDER_OPEN), 1);
    world_free(world);
}

static void a_session_that_is_silent_for_a_lease_is_settled_and_a_line_says_so(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world_pass(world, 9 * SECOND);
    assert_null(world_told(world, 1, ORDER_CLOSE));
    world_pass(world, 2 * SECOND);

    assert_memory_equal(world_told(world, 1, ORDER_DECIDE)->session_id, joined->session_id, 16);
    assert_true(world_logged(world, "closes the session of worker 0: last heard from 10."));
    world_free(world);
}

static void every_message_of_the_session_renews_its_lease(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world_pass(world, 7 * SECOND);
    world_renew(world, joined->session_id);
    world_pass(world, 7 * SECOND);
    world_report_renewed(world, 0, joined->session_id);
    world_pass(world, 7 * SECOND);
    world_report_renewed(world, 1, joined->session_id);
    world_pass(world, 7 * SECOND);
    assert_null(world_told(world, 1, ORDER_CLOSE));

    world_pass(world, 4 * SECOND);
    assert_non_null(world_told(world, 1, ORDER_CLOSE));
    world_free(world);
}

static void a_ps_0_that_was_kept_busy_says_so(void **state)
{
    (void)state;
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_pass(world, 5 * SECOND);

    world->cpu_us = 99 * SECOND;
    world_sleep(world, 100 * SECOND);
    world->cpu_us = 0;
    world_settle_down(world);

    assert_null(world_told(world, 1, ORDER_CLOSE)); /* nobody was listened to, either */
    assert_true(world_logged(
        world, "ps 0 was kept busy for 100 s (its thread used 99 s of processor time)"));
    assert_false(world_logged(world, "suspended"));
    world_free(world);
}

static void a_suspended_ps_0_does_not_take_its_sleep_for_the_silence_of_others(void **state)
{
    (void)state;
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_pass(world, 5 * SECOND);

    world_sleep(world, 100 * SECOND);
    world_settle_down(world);
    assert_null(world_told(world, 1, ORDER_CLOSE));
    assert_true(world_logged(world, "ps 0 was suspended for 100 s"));

    world_pass(world, 6 * SECOND); /* the lease goes on where it was */
    assert_non_null(world_told(world, 1, ORDER_CLOSE));
    world_free(world);
}

static void the_jump_counts_also_when_a_message_comes_before_the_tick(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *awake = world_joined(world, "worker", 0, 1);
    const struct world_answer *other = world_joined(world, "worker", 1, 2);

    world->now_us += 100 * SECOND;
    world_report_renewed(world, 0, awake->session_id);
    world_sleep(world, SECOND);

    assert_null(world_told(world, 1, ORDER_CLOSE));
    assert_int_equal(world_answer(world, world_renew(world, other->session_id))->status, SUMAC_OK);
    world_free(world);
}

static void without_the_rule_time_jump_a_sleep_expires_everybody(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 1);

    world->config.broken = 1u << RULE_time_jump;
    world_begin(world);
    world_joined(world, "worker", 0, 1);

    world_sleep(world, 100 * SECOND);
    world_settle_down(world);

    assert_non_null(world_told(world, 0, ORDER_CLOSE));
    world_free(world);
}

static void
a_closed_session_is_told_to_join_again_and_an_unknown_one_that_it_is_unknown(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const uint8_t nobody[16] = {9};
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world_pass(world, 11 * SECOND);

    assert_string_equal(
        world_told(world, 1, ORDER_CLOSE)->text,
        ": its lease ran out, no ps had heard from it for 10.2 s");
    const uint64_t closed = world_renew(world, joined->session_id);
    const uint64_t unknown = world_renew(world, nobody);

    assert_int_equal(world_answer(world, closed)->reason, SUMAC_REASON_SESSION_CLOSED);
    assert_string_equal(
        world_answer(world, closed)->text, "the session of worker 0 is closed: its lease ran out, "
                                           "no ps had heard from it for 10.2 s; join again");
    assert_int_equal(world_answer(world, unknown)->reason, SUMAC_REASON_SESSION_UNKNOWN);
    assert_string_equal(
        world_answer(world, unknown)->text,
        "ps 0 knows no such session: it was restarted since the join and its state is lost, or the "
        "session ended long ago, or no join has given this id; join anew");
    world_free(world);
}

static void a_session_that_closes_while_it_opens_is_settled_in_order(void **state)
{
    (void)state;
    struct world *world = world_of_two();

    world->ps[1].silent = true;
    world_join(world, "worker", 0, 1);
    const uint64_t newer = world_join(world, "worker", 0, 2);

    world->ps[1].silent = false;
    world_settle_down(world);

    assert_int_equal(world_answer(world, newer)->attempt, 2);
    assert_int_equal(world_told_count(world, 1, ORDER_OPEN), 2);
    assert_int_equal(world_told_count(world, 1, ORDER_DECIDE), 1);
    world_free(world);
}

static void a_cancelled_leave_settles_all_the_same_and_is_not_answered(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    const uint64_t leave = world_leave(world, joined->session_id, false);
    world_cancel(world, leave);
    world_settle_down(world);

    assert_null(world_answer(world, leave));
    assert_non_null(world_told(world, 1, ORDER_DECIDE));
    world_free(world);
}

static void sessions_are_forgotten_long_after_their_settle(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);
    const struct world_answer *first = world_joined(world, "worker", 0, 1);
    uint8_t id[16];

    memcpy(id, first->session_id, 16);

    for (uint32_t i = 0; i < 300; i++) {
        world->answer_count = 0;
        world_joined(world, "worker", 0, i + 2);
        world->ps[0].told_count = 0;
    }

    const uint64_t late = world_leave(world, id, false);
    assert_int_equal(world_answer(world, late)->reason, SUMAC_REASON_SESSION_UNKNOWN);
    world_free(world);
}

/* Of a member its task's next session is told. */
static void what_is_voided_of_an_observer_is_forgotten_with_its_settle(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1); /* given */

    world_leave(world, world_joined(world, NULL, 0, 1)->session_id, true);
    world_settle_down(world);
    const uint64_t before = world->bytes_taken;
    world->ps[0].voided[0] = 2;
    world->ps[0].voided_count = 1;

    world_leave(world, world_joined(world, NULL, 0, 2)->session_id, true); /* when */
    world_settle_down(world);

    assert_int_equal(world_told(world, 0, ORDER_DECIDE)->voided_count, 1); /* then */
    assert_int_equal(world->bytes_taken, before);
    world_free(world);
}

static void a_sleep_is_said_once(void **state)
{
    (void)state;
    struct world *world = world_of_two();

    world_joined(world, "worker", 0, 1);
    world_pass(world, 5 * SECOND);

    world_sleep(world, 100 * SECOND);
    world_sleep(world, SECOND / 4);

    const char *said = strstr(world->log, "was suspended");
    assert_non_null(said);
    assert_null(strstr(said + 1, "was suspended"));
    world_free(world);
}

static void sigterm_leaves_a_settle_its_time_though_ps_0_has_slept(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world_sleep(world, 100 * SECOND);
    world_settle_down(world);
    world->ps[1].mute = true;
    const uint64_t leave = world_leave(world, joined->session_id, true);
    world_settle_down(world);

    world_terminate(world);
    world_pass(world, 4 * SECOND);
    assert_null(world_answer(world, leave));
    world_pass(world, 2 * SECOND);

    assert_int_equal(world_answer(world, leave)->reason, SUMAC_REASON_TERMINATED);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_ends_at_the_largest_commit_with_all_that_was_voided),
        cmocka_unit_test(nothing_is_decided_before_every_ps_has_reported),
        cmocka_unit_test(without_the_rule_carry_refusals_a_settle_says_nothing_of_voided_pushes),
        cmocka_unit_test(a_refused_push_that_cannot_be_kept_is_not_decided_past),
        cmocka_unit_test(a_ps_that_has_no_memory_to_close_is_asked_again),
        cmocka_unit_test(a_ps_that_has_no_memory_for_a_decision_is_told_again),
        cmocka_unit_test(a_settle_that_had_no_memory_for_its_order_gives_it_later),
        cmocka_unit_test(a_retried_leave_is_answered_with_the_same_final),
        cmocka_unit_test(sigterm_lets_a_settle_that_is_decided_be_through),
        cmocka_unit_test(
            the_next_attempt_waits_for_the_settle_and_is_told_where_the_last_one_ended),
        cmocka_unit_test(of_two_new_attempts_that_wait_the_older_one_is_refused),
        cmocka_unit_test(a_session_that_is_silent_for_a_lease_is_settled_and_a_line_says_so),
        cmocka_unit_test(every_message_of_the_session_renews_its_lease),
        cmocka_unit_test(a_ps_0_that_was_kept_busy_says_so),
        cmocka_unit_test(a_suspended_ps_0_does_not_take_its_sleep_for_the_silence_of_others),
        cmocka_unit_test(the_jump_counts_also_when_a_message_comes_before_the_tick),
        cmocka_unit_test(without_the_rule_time_jump_a_sleep_expires_everybody),
        cmocka_unit_test(
            a_closed_session_is_told_to_join_again_and_an_unknown_one_that_it_is_unknown),
        cmocka_unit_test(a_session_that_closes_while_it_opens_is_settled_in_order),
        cmocka_unit_test(the_next_attempt_is_told_from_where_on_the_list_of_voided_pushes_is_whole),
        cmocka_unit_test(who_leaves_as_done_and_lost_pushes_does_not_count_as_done),
        cmocka_unit_test(who_has_lost_pushes_is_not_done_by_naming_an_earlier_one),
        cmocka_unit_test(a_session_that_its_lease_has_settled_is_done_when_its_last_push_counts),
        cmocka_unit_test(a_session_that_its_lease_has_settled_must_name_its_last_push_to_be_done),
        cmocka_unit_test(
            a_leave_that_comes_while_the_lease_settles_its_session_must_name_its_last_push),
        cmocka_unit_test(a_cancelled_leave_settles_all_the_same_and_is_not_answered),
        cmocka_unit_test(sessions_are_forgotten_long_after_their_settle),
        cmocka_unit_test(what_is_voided_of_an_observer_is_forgotten_with_its_settle),
        cmocka_unit_test(a_sleep_is_said_once),
        cmocka_unit_test(sigterm_leaves_a_settle_its_time_though_ps_0_has_slept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
