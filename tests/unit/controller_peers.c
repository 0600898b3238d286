/* SPDX-License-Identifier: Apache-2.0 */
/* controller_peers.c -- the streams to the ps: greeting, orders in their order, reconnects, and a
 * ps that is lost. */

#include "unit.h"
#include "controller_world.h"

TEST(every_ps_is_dialled_at_the_start)
{
    struct world *world = world_new(3, 1);

    world_expect(
        world, "dial ps 0\n"
               "dial ps 1\n"
               "dial ps 2\n"
               "ps 0: hello 70 of 3 ps\n");
    world_free(world);
}

TEST(a_stream_begins_with_a_hello_and_nothing_follows_before_its_answer)
{
    struct world *world = world_new(2, 1); /* given */

    world_all_up(world);
    world_down(world, 1);
    world_join(world, "worker", 0, 1);
    world_settle_down(world);
    world->ps[1].told_count = 0;

    world->ps[1].mute = true; /* when: the hello is out, and not answered */
    world_up(world, 1);
    world_settle_down(world);
    assert_int_equal(world->ps[1].told_count, 1);
    assert_int_equal(world->ps[1].told[0].kind, ORDER_HELLO);
    assert_int_equal(world->ps[1].told[0].expected_incarnation, 71);
    world_report_answer(world, 1, world->ps[1].told[0].number);
    world->ps[1].mute = false;
    world_settle_down(world);

    assert_int_equal(world->ps[1].told[1].kind, ORDER_MEMBERSHIP); /* then */
    assert_int_equal(world->ps[1].told[2].kind, ORDER_OPEN);
    world_free(world);
}

TEST(a_stream_has_one_order_on_its_way_at_a_time)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    world->ps[1].silent = true;

    world_join(world, "worker", 0, 1);
    world_join(world, "worker", 1, 2);

    assert_int_equal(world->ps[1].queued, 1);
    world_free(world);
}

TEST(what_was_not_answered_is_given_again_after_a_reconnect)
{
    struct world *world = world_new(2, 1); /* given */

    world_all_up(world);
    world_forget(world);
    world->ps[1].mute = true;
    world_join(world, "worker", 0, 1);
    world_settle_down(world);
    world->ps[1].mute = false;

    world_down(world, 1); /* when: the orders are lost with the stream */
    world_up(world, 1);
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "ps 1: hello 71 of 2 ps\n"
               "ps 1: members 1 epoch 1\n"
               "ps 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

/* Whatever numbers a ps answers, an order it was not given yet does not stay its next one once it
 * is gone. */
TEST(an_answer_to_an_order_that_was_not_given_does_no_harm)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world->ps[1].silent = true;
    world_join(world, "worker", 0, 1);
    world_settle_down(world);
    const uint64_t membership = world_told(world, 1, ORDER_MEMBERSHIP)->number;

    for (uint64_t number = membership; number < membership + 9; number++)
        world_report_answer(world, 1, number);
    world->ps[1].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

/* It is said twice, and the order after it has not been answered. */
TEST(nor_does_one_to_an_order_that_was_answered_before)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);
    const uint64_t answered = world_told(world, 1, ORDER_OPEN)->number;
    world->ps[1].mute = true;
    world_join(world, "worker", 1, 2);
    world_settle_down(world);

    world_report_answer(world, 1, answered);
    world_settle_down(world);
    world_expect(world, "ps 0, 1: open 2\n");
    world_report_answer(world, 1, world_told(world, 1, ORDER_OPEN)->number);
    world_settle_down(world);

    world_expect(world, "2: joined 2 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

TEST(orders_that_were_answered_are_not_given_again)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_down(world, 1);
    world_up(world, 1);
    world_settle_down(world);

    world_expect(world, "ps 1: hello 71 of 2 ps\n");
    world_free(world);
}

TEST(a_ps_that_answered_all_again_after_a_reconnect_is_not_lost)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world->ps[1].mute = true;
    world_join(world, "worker", 0, 1);
    world_settle_down(world);
    world->ps[1].mute = false;

    world_down(world, 1);
    world_up(world, 1);
    world_settle_down(world);
    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "ps 1: hello 71 of 2 ps\n"
               "ps 1: members 1 epoch 1\n"
               "ps 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n");

    for (int i = 0; i < 14; i++) {
        world_pass(world, 5 * SECOND);
        world_join(world, "worker", 0, 1); /* the worker lives */
        world_expect_answer(world, "joined 1 attempt 1 of 2 ps epoch 1");
    }
    world_free(world);
}

TEST(each_ps_hears_about_every_second_that_ps_0_lives)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);

    world_pass(world, 10 * SECOND);

    assert_in_range(world->ps[1].alive, 9, 10);
    world_free(world);
}

TEST(another_incarnation_of_a_ps_ends_the_run_and_everybody_hears_which)
{
    struct world *world = world_new(3, 2); /* given */

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world->ps[2].silent = true;
    world_join(world, "worker", 1, 2);
    world_settle_down(world);

    world->ps[2].silent = false; /* when */
    world_down(world, 2);
    world->ps[2].incarnation = 999;
    world_up(world, 2);
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1, 2: open 2\n"
               "ps 2: hello 72 of 3 ps\n"
               "2: DATA_LOSS STATE_LOST ps 2 at h2:1 came back without its state; "
               "start the whole run again, ps and workers\n"
               "ps 1, 0: end 138 STATE_LOST …\n"
               "exit 138 STATE_LOST …\n");
    world_free(world);
}

TEST(a_ps_that_is_not_reached_for_too_long_ends_the_run)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world_pass(world, 2 * SECOND);
    world_down(world, 2);

    for (int i = 0; i < 58; i++) {
        world_pass(world, SECOND);
        world_join(world, "worker", 0, 1); /* the worker lives */
        world_expect_answer(world, "joined 1 attempt 1 of 3 ps epoch 1");
    }
    world_pass(world, 4 * SECOND);

    world_expect(
        world, "ps 1, 0: end 138 STATE_LOST ps 2 at h2:1, last heard from 60 s ago "
               "(connection refused), is lost with its state: not reached for 60 s; "
               "start the whole run again, ps and workers\n"
               "exit 138 STATE_LOST …\n");
    world_free(world);
}

/* Its stream stays, nothing was ordered: only its own signs of life are missing. */
TEST(a_ps_that_is_up_and_silent_is_lost_when_its_time_is_over)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world_pass(world, 5 * SECOND);
    world->ps[2].mute = true;

    for (int i = 0; i < 58; i++) {
        world_pass(world, SECOND);
        world_renew(world, joined);
        world_expect_answer(world, "renewed");
    }
    assert_true(world_logged(world, "ps 0 waits for ps 2 at h2:1, last heard from"));
    world_pass(world, 3 * SECOND); /* and the end does not wait for it once more */

    world_expect(
        world, "ps 1, 0: end 138 STATE_LOST ps 2 at h2:1, last heard from 60 s "
               "ago, is lost with its state: not reached for 60 s; "
               "start the whole run again, ps and workers\n"
               "exit 138 STATE_LOST …\n");
    world_free(world);
}

/* As a suspended host's, whose connection only keepalive finds out about. */
TEST(a_stream_that_breaks_late_does_not_begin_the_wait_anew)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world_pass(world, 5 * SECOND);
    world->ps[1].mute = true;
    for (int i = 0; i < 40; i++) {
        world_pass(world, SECOND);
        world_renew(world, joined);
        world_expect_answer(world, "renewed");
    }

    world_down(world, 1);
    for (int i = 0; i < 21 && !world->exited; i++) {
        world_forget(world);
        world_renew(world, joined);
        world_pass(world, SECOND);
    }

    world_expect(
        world, "61: renewed\n"
               "ps 0: end 138 STATE_LOST ps 1 at h1:1, last heard from 60 s ago "
               "(connection refused), is lost with its state: not reached for 60 s; "
               "start the whole run again, ps and workers\n"
               "exit 138 STATE_LOST …\n");
    world_free(world);
}

/* An order went out in the meantime, and the time since then is no measure of the silence. */
TEST(a_stream_that_breaks_after_an_order_does_not_begin_the_wait_anew)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world->ps[1].mute = true;
    world_pass(world, 20 * SECOND);
    world_join(world, "worker", 0, 1);
    world_pass(world, 20 * SECOND);
    world_down(world, 1);
    world_pass(world, 10 * SECOND);
    assert_true(world_logged(
        world, "ps 0 waits for ps 1 at h1:1, last heard from 50 s ago (connection refused), to "
               "hear who the members are; gives up in 10 s"));
    assert_false(world->exited);

    world_pass(world, 11 * SECOND);

    assert_true(world->exited);
    world_free(world);
}

TEST(a_healthy_ps_is_not_waited_for_however_often_a_line_is_due)
{
    struct world *world = world_prepare(2, 1);

    world->config.report_ms = 250;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world->log[0] = '\0';

    world_pass(world, 8 * SECOND);

    assert_false(world_logged(world, "waits for"));
    world_free(world);
}

TEST(a_ps_that_was_terminated_ends_the_run_at_once)
{
    struct world *world = world_new(3, 1);

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world_leave(world, joined, true);

    world_ended(world, 2, SUMAC_REASON_TERMINATED, "ps 2 was terminated before the run ended");
    world_settle_down(world);

    world_expect(
        world, "ps 0, 1, 2: close 1: it has left\n"
               "2: UNAVAILABLE TERMINATED ps 2 at h2:1 has ended and its state "
               "with it: ps 2 was terminated before the run ended\n"
               "ps 1, 0: end 143 TERMINATED …\n"
               "exit 143 TERMINATED …\n");
    world_free(world);
}

TEST(a_ps_that_refuses_ps_0_is_as_good_as_not_there)
{
    struct world *world = world_new(2, 1);

    world_forget(world);

    world->ps[1].refuses = "it belongs to another cluster";
    world_join(world, "worker", 0, 1);

    for (int i = 0; i < 61 && !world->exited; i++) {
        world_forget(world);
        world_up(world, 1);
        world_pass(world, SECOND / 2);
        world_down(world, 1);
        world->ps[1].told_count = 0;
        world_pass(world, SECOND / 2);
    }

    assert_true(world_logged(world, "ps 1 at h1:1 refuses ps 0: it belongs to another cluster"));
    world_expect(
        world, "ps 1: hello 71 of 2 ps\n"
               "1: UNAVAILABLE PS_MISSING ps 1 at h1:1, last heard from 750 ms ago "
               "(connection refused), did not appear within 60 s; start it, or correct its "
               "address\n"
               "ps 0: end 138 PS_MISSING …\n"
               "exit 138 PS_MISSING …\n");
    world_free(world);
}

/* Of a ps 0 that obeyed another one the wait is over when it is not there any more. */
TEST(a_wait_names_what_keeps_it_waiting_at_present)
{
    struct world *world = world_new(2, 1);

    world_join(world, "worker", 0, 1);
    world_ended(world, 1, SUMAC_REASON_BUSY, "ps 1 belongs to another ps 0");
    assert_true(world_waits(world, "never heard from (ps 1 belongs to another ps 0); "));

    world_down(world, 1);

    assert_true(world_waits(world, "never heard from (connection refused); "));

    world->ps[1].mute = true;
    world_up(world, 1);

    assert_true(world_waits(
        world,
        "never heard from (it is reached, but its answer to the hello of ps 0 is missing); "));
    world_free(world);
}

/* No worker has to ask first, and every ps that is reached hears of it. */
TEST(a_ps_that_refuses_the_configuration_ends_the_run_soon)
{
    struct world *world = world_new(3, 1); /* given: no member has joined */

    world->ps[2].silent = true;
    world_up(world, 2); /* its hello is not answered yet */
    world_forget(world);

    world_ended(world, 1, SUMAC_REASON_WRONG_CLUSTER, "this is ps 0 of h1:1, h0:1");
    world_down(world, 1); /* it has ended */
    assert_true(world_waits(world, "(this is ps 0 of h1:1, h0:1); the run ends for it"));
    world->ps[1].mute = true; /* it is there again, with the same configuration */
    world_up(world, 1);
    assert_true(world_waits(world, "(this is ps 0 of h1:1, h0:1); the run ends for it"));
    world_down(world, 1);
    world_forget(world);
    world_pass(world, 4 * SECOND);
    world_expect(world, "");
    world_pass(world, 2 * SECOND);
    world->ps[2].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 2, 0: end 2 WRONG_CLUSTER ps 1 at h1:1 refuses ps 0: this is ps 0 of h1:1, "
               "h0:1\n"
               "exit 2 WRONG_CLUSTER …\n");
    world_free(world);
}

/* It was met: who has its address now is no matter of the configuration. */
TEST(a_ps_that_was_met_refuses_no_configuration)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_down(world, 1);
    world_forget(world);

    world_ended(world, 1, SUMAC_REASON_WRONG_CLUSTER, "this is ps 0 of h1:1, h0:1");
    world_pass(world, 6 * SECOND);

    world_expect(world, "");
    world_free(world);
}

/* A corrected one was started in its place. */
TEST(a_ps_that_is_corrected_soon_ends_no_run)
{
    struct world *world = world_new(2, 1);

    world_ended(world, 1, SUMAC_REASON_WRONG_CLUSTER, "this is ps 0 of h1:1, h0:1");
    world_pass(world, 2 * SECOND);
    world_up(world, 1);
    world_settle_down(world);
    world_forget(world);

    world_pass(world, 6 * SECOND);

    world_expect(world, "");
    world_free(world);
}

TEST(a_wait_for_a_ps_says_what_it_is_to_do)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world->ps[1].mute = true;
    (void)world_join(world, "worker", 0, 1);

    world_pass(world, 6 * SECOND);

    assert_true(world_waits(
        world, "ps 0 waits for ps 1 at h1:1, last heard from 6 s ago, to hear who the members are; "
               "gives up in 54 s"));
    world_free(world);
}

TEST(a_ps_that_takes_orders_and_answers_none_is_lost_too)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world->ps[1].mute = true;
    world_join(world, "worker", 0, 1);

    world_pass(world, 62 * SECOND);

    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: DATA_LOSS STATE_LOST ps 1 at h1:1, last heard from 60 s ago, "
               "is lost with its state: not reached for 60 s; "
               "start the whole run again, ps and workers\n"
               "ps 0: end 138 STATE_LOST …\n"
               "exit 138 STATE_LOST …\n");
    world_pass(world, 6 * SECOND); /* it does not answer the end either */
    world_expect(world, "");
    world_free(world);
}

TEST(a_ps_that_leaves_one_order_unanswered_is_lost_too)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world->ps[1].never_opens = true;
    world_join(world, "worker", 0, 1);

    world_pass(world, 68 * SECOND);

    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: DATA_LOSS STATE_LOST ps 1 at h1:1, last heard from 750 ms "
               "ago, is lost with its state: not reached for 60 s; "
               "start the whole run again, ps and workers\n"
               "ps 0: end 138 STATE_LOST …\n"
               "exit 138 STATE_LOST …\n");
    world_free(world);
}

TEST(a_sleeping_ps_0_does_not_take_the_others_for_lost)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    world_forget(world);
    world->ps[1].silent = true;
    world_join(world, "worker", 0, 1);

    world_sleep(world, 300 * SECOND);

    world_expect(world, "ps 0, 1: members 1 epoch 1\n");
    world_free(world);
}

TEST(a_session_that_one_ps_does_not_open_is_closed_on_the_others)
{
    struct world *world = world_new(2, 1);
    wire_peer_report refused = WIRE_PEER_REPORT_INIT;

    world_all_up(world);
    world->ps[1].never_opens = true;
    world_join(world, "worker", 0, 1);
    world_settle_down(world);
    world_forget(world);

    refused.answers = world_told(world, 1, ORDER_OPEN)->number;
    refused.ps_incarnation = world->ps[1].incarnation;
    refused.epoch = 1;
    refused.status = SUMAC_RESOURCE_EXHAUSTED;
    refused.reason = (Sumac__V1__Reason)SUMAC_REASON_TOO_MANY_SESSIONS;
    refused.message = "8 are open";
    world_report(world, 1, &refused);
    world_settle_down(world);

    world_expect(
        world, "1: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS ps 1 cannot open the session: 8 are open\n"
               "ps 0, 1: close 1\n"
               "ps 0, 1: decide 1 at 0\n");
    world_free(world);
}

/* How long the controller of this configuration waits for its first tick. */
static uint64_t first_tick_us(const struct lane_config *config)
{
    struct controller *controller = controller_create(config, &memory_heap);
    struct lane_effects effects;
    uint64_t at_us = UINT64_MAX;
    const struct lane_event start = {.kind = LANE_EVENT_START, .now_us = SECOND, .random = {1, 2}};

    controller_step(controller, &start, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == LANE_EFFECT_WAKE && effects.items[i].at_us < at_us)
            at_us = effects.items[i].at_us;
    controller_destroy(controller);
    return at_us - SECOND;
}

TEST(the_controller_looks_four_times_within_each_of_its_times_and_once_a_second)
{
    struct world *world = world_prepare(1, 1);

    world->config.lease_ms = world->config.rejoin_ms = 100000;
    world->config.ps_lost_ms = world->config.report_ms = 100000;

    const uint64_t patient_us = first_tick_us(&world->config);
    world->config.lease_ms = 400;
    const uint64_t hasty_us = first_tick_us(&world->config);

    assert_int_equal(patient_us, SECOND);
    assert_int_equal(hasty_us, SECOND / 10);
    world_free(world);
}

/* Signs of life come four times within it, and it is spoken of after half of it. */
TEST(a_short_time_to_be_lost_in_is_looked_at_more_closely)
{
    struct world *world = world_prepare(2, 1);

    world->config.ps_lost_ms = 2000;
    world->config.report_ms = 250;
    world_begin(world);
    world_all_up(world);
    (void)world_joined(world, "worker", 0, 1);
    const size_t before = world->ps[1].alive;

    world_pass(world, 10 * SECOND);
    assert_in_range(world->ps[1].alive - before, 19, 20);

    world->ps[1].mute = true;
    world->log[0] = '\0';
    world_pass(world, SECOND / 4);
    assert_false(world_waits(world, "ps 0 waits for ps 1"));
    world_pass(world, SECOND);
    assert_true(world_waits(world, "ps 0 waits for ps 1"));
    assert_true(world_logged(world, "ps 0 waits for ps 1"));
    world_free(world);
}

/* By which it knows ps 0 again, and those that came back without their state. */
TEST(a_hello_says_who_ps_0_is_and_which_ps_it_has_met)
{
    struct world *world = world_prepare(3, 2);

    world->config.members_partial = true;
    (void)snprintf(world->config.identity.host, sizeof world->config.identity.host, "node3");
    world_begin(world);
    world_all_up(world);
    world_down(world, 1);
    world_up(world, 1);
    world_settle_down(world);

    const struct world_order *first = world_told(world, 2, ORDER_HELLO);
    const struct world_order *again = world_told(world, 1, ORDER_HELLO);
    assert_int_equal(first->index, 2);
    assert_int_equal(again->index, 1);
    assert_int_equal(again->controller_incarnation, 70);
    assert_true(again->controller_secret != 0);
    assert_int_equal(again->controller_secret, first->controller_secret);
    assert_true(again->cluster_id != 0 && again->cluster_id != again->controller_secret);
    assert_int_equal(again->cluster_id, first->cluster_id);
    assert_int_equal(again->members, 2);
    assert_true(again->members_partial);
    assert_string_equal(again->host, "node3");
    for (uint32_t ps = 0; ps < 3; ps++)
        assert_int_equal(again->incarnations[ps], 70 + ps);
    assert_int_equal(first->incarnations[2], 0); /* not met yet */
    world_free(world);
}

TEST(a_stream_that_comes_and_goes_has_a_line_with_the_cause)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    assert_true(world_logged(world, "ps 0 met ps 1 at h1:1\n"));
    assert_false(world_logged(world, "ps 0 met ps 0"));
    world_down(world, 1);
    assert_true(world_logged(world, "ps 0 lost its stream to ps 1 at h1:1: connection refused\n"));
    world_pass(world, 4 * SECOND);
    assert_true(world_waits(world, "(connection refused); gives up in 56 s")); /* it was met */
    world_up(world, 1);
    world_settle_down(world);
    assert_false(world_waits(world, "ps 1"));

    world_ended(world, 1, SUMAC_REASON_UNSPECIFIED, NULL);

    assert_true(world_logged(world, "ps 0 lost its stream to ps 1 at h1:1: closed\n"));
    world_pass(world, 4 * SECOND);
    assert_true(world_waits(world, "ps 1 at h1:1, last heard from 4 s ago; gives up in 56 s"));
    world_free(world);
}

/* ps 2 has answered none of these yet, so that all of them are kept. */
TEST(a_ps_that_comes_back_is_given_those_orders_alone_that_it_has_not_answered)
{
    struct world *world = world_new(3, 2);

    world_all_up(world);
    world->ps[2].mute = true;
    (void)world_join(world, "worker", 0, 1);
    world_settle_down(world);
    world->ps[1].mute = true;
    (void)world_join(world, "worker", 1, 2);
    world_settle_down(world);
    world->ps[1].mute = false;
    world_forget(world);

    world_down(world, 1);
    world_up(world, 1);
    world_settle_down(world);

    world_expect(world, "ps 1: hello 71 of 3 ps\nps 1: open 2\n");
    world_free(world);
}
