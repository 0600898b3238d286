/* SPDX-License-Identifier: Apache-2.0 */
/* controller_late.c -- answers and calls that come late, or out of their order: no call is answered
 * twice, and no order is given again in vain. */

#include "unit.h"
#include "controller_state.h"
#include "controller_world.h"

/* On a stream that is gone by then. The other ps has answered neither. */
TEST(answers_that_come_in_another_order_after_a_new_stream_count)
{
    struct world *world = world_of_two(); /* given */

    world->ps[0].never_opens = true;
    world->ps[1].mute = true;
    (void)world_join(world, NULL, 0, 3);
    world_settle_down(world);
    world_report_answer(world, 1, world_told(world, 1, ORDER_MEMBERSHIP)->number);
    const uint64_t first = world_told(world, 1, ORDER_OPEN)->number;
    (void)world_join(world, NULL, 0, 4);
    world_settle_down(world);
    const uint64_t second = world_told(world, 1, ORDER_OPEN)->number;
    world->ps[1].mute = false;
    world_down(world, 1);
    world_up(world, 1);
    world_forget(world);

    world_report_answer(world, 1, second); /* when */
    world_report_answer(world, 1, first);
    world_settle_down(world);

    world_expect(world, ""); /* then: neither is given again */
    world_free(world);
}

/* The other one that wants its place has been told so. */
TEST(a_ps_that_cannot_open_what_is_being_closed_refuses_nobody)
{
    struct world *world = world_of_two(); /* given */

    world->ps[1].mute = true;
    (void)world_join(world, "worker", 0, 1);
    world_settle_down(world);
    world_report_answer(world, 1, world_told(world, 1, ORDER_MEMBERSHIP)->number);
    const uint64_t join = world_join(world, "worker", 0, 2);
    world_settle_down(world);
    wire_peer_report refusal = WIRE_PEER_REPORT_INIT;
    refusal.answers = world_told(world, 1, ORDER_OPEN)->number;
    refusal.status = SUMAC_RESOURCE_EXHAUSTED;
    refusal.message = (char[]){"no memory"};

    world_report(world, 1, &refusal); /* when */
    world_report_answer(world, 1, world_told(world, 1, ORDER_CLOSE)->number);
    world->ps[1].mute = false;
    world_settle_down(world);

    assert_int_equal(world_answer(world, join)->status, SUMAC_OK); /* then */
    world_free(world);
}

/* Two observers leave as the run ends: one ps has closed their sessions by then. */
TEST(a_settle_that_outlasts_the_run_answers_nobody_again)
{
    struct world *world = world_new(2, 1); /* given */
    uint64_t leaves[2], closes[2];

    world_all_up(world);
    const uint32_t worker = world_joined(world, "worker", 0, 1);
    const uint32_t observers[] = {world_joined(world, NULL, 0, 2), world_joined(world, NULL, 0, 3)};
    world->ps[1].mute = true;
    for (size_t i = 0; i < 2; i++) {
        leaves[i] = world_leave(world, observers[i], false);
        world_settle_down(world);
        closes[i] = world_told(world, 1, ORDER_CLOSE)->number;
    }
    world->ps[1].mute = false;
    world->ps[1].never_ends = true;
    world_leave(world, worker, true);
    world_settle_down(world);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(world_answer(world, leaves[i])->reason, SUMAC_REASON_RUN_ENDED);

    for (size_t i = 0; i < 2; i++) /* when: it is to be decided, … */
        world_report_answer(world, 1, closes[i]);
    world_report_answer(
        world, 1, world_told(world, 1, ORDER_END)->number); /* … and the END is answered */
    world_settle_down(world);

    assert_true(world->exited); /* then */
    assert_int_equal(world->exit_code, 0);
    world_free(world);
}

TEST(a_leave_said_again_after_the_run_is_answered_as_before)
{
    struct world *world = world_new(1, 1);
    const uint32_t worker = world_joined(world, "worker", 0, 1);

    world_leave(world, worker, true);
    world_settle_down(world);
    assert_true(world->exited);
    world_forget(world);

    world_leave(world, worker, true);

    world_expect(world, "3: left at 0\n");
    world_free(world);
}

/* It has no session yet: the caller has guessed its id. */
TEST(a_session_that_waits_for_a_ps_is_not_left)
{
    struct world *world = world_new(2, 1);
    const uint64_t join = world_join(world, "worker", 0, 1);
    wire_leave_request request = WIRE_LEAVE_REQUEST_INIT;

    request.session_id = (wire_bytes){16, world->controller->sessions.first->id};
    const uint64_t leave = world_ask(world, LANE_CALL_LEAVE, &request.base);
    assert_int_equal(world_answer(world, leave)->reason, SUMAC_REASON_SESSION_UNKNOWN);

    world_all_up(world);
    assert_int_equal(world_answer(world, join)->status, SUMAC_OK);
    world_free(world);
}

TEST(a_worker_that_often_leaves_is_nobody_who_was_replaced)
{
    struct world *world = world_new(1, 1);

    for (uint32_t i = 1; i <= 5; i++) {
        world_leave(world, world_joined(world, "worker", 0, i), false);
        world_settle_down(world);
    }

    world_joined(world, "worker", 0, 6);
    assert_false(world_logged(world, "keeps the present process"));
    world_free(world);
}

/* Three of a task come before a ps is there. The first has a session that this ps was told of. */
TEST(a_replaced_join_is_said_to_live_if_its_client_waits_and_else_not)
{
    for (int waits = 0; waits <= 1; waits++) {
        struct world *world = world_of_two();

        world->ps[0].connected = world->ps[1].connected = true; /* given */
        world_joined(world, "worker", 0, 1);
        world->ps[1].silent = true;
        const uint64_t second = world_join(world, "worker", 0, 2);
        if (!waits)
            world_cancel(world, second);

        const uint64_t third = world_join(world, "worker", 0, 3); /* when */
        world->ps[1].silent = false;
        world_settle_down(world);

        assert_int_equal(world_answer(world, third)->status, SUMAC_OK); /* then */
        assert_int_equal(world->replaced_attempt, 2);
        assert_int_equal(strstr(world->replaced, "alive") != NULL, waits);
        world_free(world);
    }
}

/* The ps have yet to forget it. */
TEST(a_session_that_is_being_closed_has_its_place_until_it_is_settled)
{
    struct world *world = world_prepare(2, 0);

    world->config.sessions_max = 2; /* given */
    world_begin(world);
    world_all_up(world);
    (void)world_joined(world, "worker", 0, 1);
    const uint32_t leaves = world_joined(world, "worker", 1, 2);
    world->ps[1].mute = true;
    (void)world_leave(world, leaves, false);
    world_settle_down(world);

    const uint64_t third = world_join(world, "worker", 2, 3); /* when */

    assert_int_equal(world_answer(world, third)->reason, SUMAC_REASON_TOO_MANY_SESSIONS); /* then */
    world_free(world);
}

/* Its records are of the same number of observers, whichever of them is written last. */
TEST(observers_are_counted_on_though_an_earlier_one_leaves_later)
{
    struct world *world = world_of_two();
    const uint32_t first = world_joined(world, NULL, 0, 1);

    (void)world_joined(world, NULL, 0, 2);
    world_leave(world, first, false);
    world_settle_down(world);

    world_free(world);
}

TEST(a_cancelled_leave_settles_all_the_same_and_is_not_answered)
{
    struct world *world = world_of_two();
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);

    const uint64_t leave = world_leave(world, joined, false);
    world_cancel(world, leave);
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "ps 0, 1: decide 1 at 0\n");
    world_free(world);
}
