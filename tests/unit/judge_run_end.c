/* SPDX-License-Identifier: Apache-2.0 */
/* judge_run_end.c -- when a run is over, with which code, and that every ps hears of it before ps 0
 * exits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "judge_world.h"

static void join_and_leave(struct world *world, const char *job, uint32_t index, bool done)
{
    const struct world_answer *joined = world_joined(world, job, index, index + 1);

    world_leave(world, joined->session_id, done);
    world_settle_down(world);
}

static void a_run_ends_as_soon_as_every_listed_member_has_left_as_done(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);

    join_and_leave(world, "worker", 0, true);
    assert_false(world->exited);
    join_and_leave(world, "worker", 1, true);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    assert_int_equal(world_told(world, 1, ORDER_END)->exit_code, 0);
    assert_true(world_logged(world, "run ends with code 0: every listed member has left as done"));
    world_free(world);
}

/* Its join was failed with the end; what ps 1 answers later opens nothing. */
static void after_the_end_no_session_is_said_to_open_and_no_lease_to_go_on(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const struct world_answer *worker = world_joined(world, "worker", 0, 1);
    world->ps[1].never_opens = true;
    const uint64_t observer = world_join(world, NULL, 0, 90);
    world_leave(world, worker->session_id, true);
    world->ps[1].never_ends = true;
    world_settle_down(world);
    assert_true(world_logged(world, "run ends with code 0"));
    assert_int_equal(world_answer(world, observer)->reason, SUMAC_REASON_RUN_ENDED);

    world_report_answer(world, 1, world_told(world, 1, ORDER_OPEN)->number);
    world_sleep(world, 30 * SECOND);

    assert_false(world_logged(world, "opened the session of observer"));
    assert_false(world_logged(world, "suspended"));
    world_free(world);
}

static void ps_0_tells_itself_only_when_the_others_have_answered(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);
    const uint64_t leave = world_leave(world, joined->session_id, true);
    while (world_answer(world, leave) == NULL) { /* the settle is through, ... */
        world->ps[1].silent = world_told(world, 1, ORDER_END) != NULL;
        world_settle_down(world);
    }
    world->ps[1].silent = false;
    world_settle_down(world);

    assert_int_equal(world_told_count(world, 0, ORDER_END), 1);
    assert_int_equal(world_told_count(world, 1, ORDER_END), 1);
    world_free(world);
}

static void a_run_waits_for_a_ps_that_has_not_heard_of_the_end(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1); /* given */

    world_all_up(world);
    join_and_leave(world, "worker", 0, false);
    world_down(world, 1);

    world_pass(world, 11 * SECOND); /* when */
    world_down(world, 1);           /* another attempt to reach it fails */
    assert_true(world_logged(world, "run ends with code 143"));
    assert_false(world->exited);
    world_up(world, 1);
    world_settle_down(world);

    assert_true(world->exited); /* then */
    assert_int_equal(world_told(world, 1, ORDER_END)->exit_code, 143);
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

static void a_ps_whose_stream_is_lost_with_the_end_is_told_again(void **state)
{
    (void)state;
    struct world *world = world_of_a_lost_answer();

    world->ps[1].mute = false;
    world_up(world, 1);
    world_settle_down(world);

    assert_int_equal(world_told_count(world, 1, ORDER_END), 2);
    assert_true(world->exited);
    world_free(world);
}

/* It said that it exits for the run's end: its answer was on the way. */
static void a_ps_that_ended_with_the_run_is_not_waited_for(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world->ps[1].never_ends = true;
    join_and_leave(world, "worker", 0, true);
    assert_non_null(world_told(world, 1, ORDER_END));
    assert_false(world->exited);

    world_ended(world, 1, SUMAC_REASON_RUN_ENDED, "every listed member has left as done");
    world_settle_down(world);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    assert_int_equal(world->exit_error.status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal(world->exit_error.reason, SUMAC_REASON_RUN_ENDED);
    world_free(world);
}

static void a_ps_that_does_not_come_back_after_the_end_is_taken_for_gone(void **state)
{
    (void)state;
    struct world *world = world_of_a_lost_answer();

    world_pass(world, 2 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 143);
    world_free(world);
}

static void a_member_that_gave_up_may_come_back_for_a_while(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    join_and_leave(world, "worker", 0, false);

    world_pass(world, 9 * SECOND);
    assert_false(world->exited);
    world_joined(world, "worker", 0, 50);
    world_pass(world, 9 * SECOND);

    assert_false(world->exited);
    world_free(world);
}

static void without_members_for_a_while_a_run_ends_with_143_when_none_was_done(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    join_and_leave(world, "worker", 0, false);

    world_pass(world, 11 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 143);
    world_free(world);
}

static void while_a_listed_member_has_never_joined_the_wait_is_longer(void **state)
{
    (void)state;
    struct world *world = world_new(1, 2);

    join_and_leave(world, "worker", 0, true);

    world_pass(world, 58 * SECOND);
    assert_false(world->exited);
    world_pass(world, 3 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0); /* one left as done */
    world_free(world);
}

static void who_never_joined_is_named_while_the_end_waits_and_in_the_last_line(void **state)
{
    (void)state;
    struct world *world = world_new(1, 3);
    const char *const waits = "the end of the run waits for worker 1, worker 2, never joined; no "
                              "member is open, it gives up in 48 s";
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    assert_false(world_waits(world, "the end of the run"));
    world_leave(world, joined->session_id, true);
    world_settle_down(world);

    world_pass(world, 12 * SECOND);
    assert_true(world_waits(world, waits));
    assert_true(
        world_logged(world, "the end of the run waits for worker 1, worker 2, never joined"));
    world_pass(world, 50 * SECOND);

    assert_int_equal(world->exit_code, 0); /* one left as done */
    assert_true(world_logged(
        world, "run ends with code 0: no member has been open for 60 s, one has left as done; "
               "never joined: worker 1, worker 2\n"));
    world_free(world);
}

static void who_may_come_back_is_named_while_the_end_waits(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    join_and_leave(world, "worker", 0, false);

    world_pass(world, 4 * SECOND);

    assert_true(world_waits(
        world, "the end of the run waits for worker 0 to come back; no member is open, it gives up "
               "in 6 s"));
    world_free(world);
}

static void who_never_joined_is_named_once_while_the_others_train(void **state)
{
    (void)state;
    struct world *world = world_new(1, 2);
    const char *const line = "worker 1 never joined, 6";
    const uint8_t *id = world_joined(world, "worker", 0, 1)->session_id;

    for (int i = 0; i < 55; i++, world_renew(world, id))
        world_pass(world, SECOND);
    assert_false(world_logged(world, line));

    for (int i = 0; i < 8; i++, world_renew(world, id))
        world_pass(world, SECOND);
    assert_true(world_logged(world, line));
    world->log[0] = '\0';
    world_pass(world, 9 * SECOND);

    assert_false(world_logged(world, "never joined"));
    world_free(world);
}

static void without_a_list_a_run_ends_when_no_member_is_open_for_a_while(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    join_and_leave(world, "worker", 0, true);
    assert_false(world->exited);

    world_pass(world, 11 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    world_free(world);
}

static void observers_hold_up_no_end_and_begin_no_run(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    world_joined(world, NULL, 0, 90);
    world_pass(world, 100 * SECOND);
    assert_false(world->exited);

    world_joined(world, NULL, 0, 91);
    join_and_leave(world, "worker", 0, true);

    assert_true(world->exited);
    world_free(world);
}

static void a_worker_that_comes_back_after_it_was_done_is_not_done_any_more(void **state)
{
    (void)state;
    struct world *world = world_new(1, 2);

    world_joined(world, "worker", 1, 60);
    join_and_leave(world, "worker", 0, true);
    const struct world_answer *again = world_joined(world, "worker", 0, 61);
    world_leave(world, again->session_id, false);
    world_settle_down(world);

    join_and_leave(world, "worker", 1, true);

    assert_false(world->exited);
    world_free(world);
}

/* A task that was told only itself: the members are learnt from those who join. */
static void without_a_list_of_ps_0_each_member_that_is_open_holds_up_the_end(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);
    const struct world_answer *late = world_joined(world, "worker", 5, 60);
    uint8_t id[16];

    memcpy(id, late->session_id, 16);
    join_and_leave(world, "worker", 0, true);
    world_pass(world, 9 * SECOND);
    assert_false(world->exited);

    world_leave(world, id, true);
    world_settle_down(world);
    world_pass(world, 11 * SECOND);

    assert_true(world->exited);
    world_free(world);
}

static void a_killed_member_counts_once_it_is_settled(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    world_joined(world, "worker", 0, 1);

    world_pass(world, 19 * SECOND); /* a lease of 10 s, then the wait begins */
    assert_false(world->exited);
    world_pass(world, 3 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 143);
    world_free(world);
}

static void a_worker_that_was_settled_and_then_says_done_is_done(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);
    const struct world_answer *joined = world_joined(world, "worker", 0, 1);

    world_pass(world, 12 * SECOND);

    const uint64_t leave = world_leave(world, joined->session_id, true);
    world_settle_down(world);

    assert_int_equal(world_answer(world, leave)->status, SUMAC_OK);
    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    world_free(world);
}

/* Settled for its silence, it is heard again when its successor is at work; and that one dies. */
static void the_done_of_an_older_attempt_does_not_make_the_newer_ones_task_done(void **state)
{
    (void)state;
    uint8_t older[16];
    struct world *world = world_new(1, 1);

    memcpy(older, world_joined(world, "worker", 0, 1)->session_id, sizeof older);
    world_pass(world, 12 * SECOND);
    world_joined(world, "worker", 0, 2);
    const uint64_t leave = world_leave(world, older, true);
    world_settle_down(world);
    assert_int_equal(world_answer(world, leave)->status, SUMAC_OK);

    world_pass(world, 12 * SECOND);

    assert_false(world->exited); /* the next attempt is waited for */
    const struct world_answer *next = world_joined(world, "worker", 0, 3);
    world_leave(world, next->session_id, true);
    world_settle_down(world);
    assert_true(world->exited);
    world_free(world);
}

static void a_join_after_the_end_is_told_that_the_run_is_over(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    join_and_leave(world, "worker", 0, true);

    const uint64_t late = world_join(world, "worker", 0, 9);

    assert_int_equal(world_answer(world, late)->reason, SUMAC_REASON_RUN_ENDED);
    world_free(world);
}

static void a_run_ends_however_short_memory_is(void **state)
{
    (void)state;
    struct world *world = world_prepare(3, 1); /* given */

    world->config.sessions_max = 100;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_use_up_orders(world);
    world->out_of_memory = true;

    world_ended(world, 1, SUMAC_REASON_STATE_LOST, "its state was lost"); /* when */
    world_settle_down(world);

    assert_non_null(world_told(world, 2, ORDER_END)); /* then */
    assert_true(world->exited);
    world_free(world);
}

/* More joins wait than there are places for their answers: those that have one are answered, and
 * the judge says that it ends, in the place that is kept for that. */
static void answers_without_a_place_end_the_ps(void **state)
{
    (void)state;
    struct world *world = world_prepare(2, 1); /* given */

    world->config.sessions_max = 100;
    world_begin(world);
    for (uint32_t i = 0; i < 80; i++)
        world_join(world, NULL, 0, 1 + i);
    world->out_of_memory = true;

    world_terminate(world); /* when */

    assert_int_equal(world->lost.reason, SUMAC_REASON_STATE_LOST); /* then */
    assert_string_equal(
        world->lost.text, "ps 0 ends, and its state with it: no memory for what it has to say");
    assert_in_range(world->answer_count, 32, 79);
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
static void clients_hear_run_ended_where_the_code_is_0_and_nowhere_else(void **state)
{
    (void)state;
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
static void of_a_run_in_which_nobody_was_done_the_other_ps_are_told_the_reason(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);

    all_are_killed(world);

    assert_int_equal(world_told(world, 1, ORDER_END)->exit_code, 143);
    assert_int_equal(world_told(world, 1, ORDER_END)->reason, SUMAC_REASON_TERMINATED);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_ends_as_soon_as_every_listed_member_has_left_as_done),
        cmocka_unit_test(after_the_end_no_session_is_said_to_open_and_no_lease_to_go_on),
        cmocka_unit_test(ps_0_tells_itself_only_when_the_others_have_answered),
        cmocka_unit_test(a_run_waits_for_a_ps_that_has_not_heard_of_the_end),
        cmocka_unit_test(a_ps_whose_stream_is_lost_with_the_end_is_told_again),
        cmocka_unit_test(a_ps_that_ended_with_the_run_is_not_waited_for),
        cmocka_unit_test(a_ps_that_does_not_come_back_after_the_end_is_taken_for_gone),
        cmocka_unit_test(a_member_that_gave_up_may_come_back_for_a_while),
        cmocka_unit_test(without_members_for_a_while_a_run_ends_with_143_when_none_was_done),
        cmocka_unit_test(while_a_listed_member_has_never_joined_the_wait_is_longer),
        cmocka_unit_test(who_never_joined_is_named_while_the_end_waits_and_in_the_last_line),
        cmocka_unit_test(who_may_come_back_is_named_while_the_end_waits),
        cmocka_unit_test(who_never_joined_is_named_once_while_the_others_train),
        cmocka_unit_test(without_a_list_a_run_ends_when_no_member_is_open_for_a_while),
        cmocka_unit_test(observers_hold_up_no_end_and_begin_no_run),
        cmocka_unit_test(a_worker_that_comes_back_after_it_was_done_is_not_done_any_more),
        cmocka_unit_test(without_a_list_of_ps_0_each_member_that_is_open_holds_up_the_end),
        cmocka_unit_test(a_killed_member_counts_once_it_is_settled),
        cmocka_unit_test(a_worker_that_was_settled_and_then_says_done_is_done),
        cmocka_unit_test(the_done_of_an_older_attempt_does_not_make_the_newer_ones_task_done),
        cmocka_unit_test(a_join_after_the_end_is_told_that_the_run_is_over),
        cmocka_unit_test(a_run_ends_however_short_memory_is),
        cmocka_unit_test(answers_without_a_place_end_the_ps),
        cmocka_unit_test(clients_hear_run_ended_where_the_code_is_0_and_nowhere_else),
        cmocka_unit_test(of_a_run_in_which_nobody_was_done_the_other_ps_are_told_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
