/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective_split.c -- split rounds of collectives over two ps, on the one that is not ps
 * 0, which says how they end. */
#include <stdio.h>

#include "lane_collective.h"

static void order_end(struct world *world, enum sumac_status status)
{
    wire_collective_end end = WIRE_COLLECTIVE_END_INIT;

    end.collective = &world->collective;
    end.status = (uint32_t)status;
    end.reason = status == SUMAC_OK ? SUMAC__V1__REASON__REASON_UNSPECIFIED
                                    : (Sumac__V1__Reason)SUMAC_REASON_ROUND_TIMED_OUT;
    end.message = (char *)(uintptr_t) "it is so";
    talk_order_of(world->talk, collective, &end);
}

TALK_TEST(a_split_round_passes_when_it_is_ordered_and_whole_here)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true; /* of four elements the last two are here */
    ask(&world, 1);
    come_with(&world, 1, 3, 4);
    come_with(&world, 2, 30, 40);
    talk_tick(world.talk, 70000); /* its time is ps 0's to decide */
    assert_null(strstr(world.talk->text, "met"));
    talk_forget(world.talk);

    order_end(&world, SUMAC_OK);
    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 33 44\n"), 1);

    world.collective.round = 2; /* ps 0 knows that all have come before they have their turn here */
    order_end(&world, SUMAC_OK);
    come_with(&world, 1, 3, 4);
    ask(&world, 1);
    talk_forget(world.talk);
    come_with(&world, 2, 30, 40);
    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 33 44\n"), 1);
    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    expect_nothing_kept(&world);
}

TALK_TEST(what_is_ordered_to_fail_fails_for_who_comes_later_too)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    order_end(&world, SUMAC_DEADLINE_EXCEEDED);
    talk_forget(world.talk);

    come_with(&world, 1, 3, 4);
    ask(&world, 1);

    talk_expect(world.talk, "staged 1\ndone 1 []\npulled 1 error ROUND_TIMED_OUT\n");
    order_end(&world, SUMAC_OK); /* an end that is said again is none */
    talk_forget(world.talk);
    come_with(&world, 2, 30, 40);
    ask(&world, 2);
    talk_expect(world.talk, "staged 1\ndone 1 []\npulled 2 error ROUND_TIMED_OUT\n");
    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    expect_ends_kept(&world, 1);
}

/* It passes, though it is not whole here. */
TALK_TEST(the_first_order_of_a_round_counts)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    order_end(&world, SUMAC_OK);
    order_end(&world, SUMAC_DEADLINE_EXCEEDED);
    come_with(&world, 1, 3, 4);
    ask(&world, 1);
    talk_forget(world.talk);

    come_with(&world, 2, 30, 40);

    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 33 44\n"), 1);
}

/* As by a ps 0 that begins again and does not know that this ps has answered: those who came have
 * heard of the round, and nothing says any more that it has been. */
TALK_TEST(an_end_with_the_number_of_one_that_was_obeyed_begins_no_round)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    come_with(&world, 1, 3, 4);
    come_with(&world, 2, 30, 40);
    order_end(&world, SUMAC_OK);
    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    expect_nothing_kept(&world);

    world.talk->orders--;
    order_end(&world, SUMAC_OK);

    expect_nothing_kept(&world);
}

/* By its name at home here, it is this ps that sees one that is not split beside one that is. */
TALK_TEST(the_home_proposes_where_one_is_split_and_another_is_not)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    world.collective.split = true;
    talk_forget(world.talk);

    come_with(&world, 2, 30, 40);

    assert_int_equal(talk_times_said(world.talk, "report proposes h 1 STEP_DIFFERS"), 1);
    talk_forget(world.talk);
    talk_tick(world.talk, 1000); /* until it is ordered */
    assert_int_equal(talk_times_said(world.talk, "report proposes h 1 STEP_DIFFERS"), 1);
    order_end(&world, SUMAC_FAILED_PRECONDITION);
    talk_forget(world.talk);
    talk_tick(world.talk, 2000);
    assert_int_equal(talk_times_said(world.talk, "proposes"), 0);
}

/* Two tasks come to each round, and one of them takes it for split. */
static void propose_rounds(struct world *world, uint32_t rounds)
{
    for (uint32_t round = 1; round <= rounds; round++) {
        world->collective.round = round;
        world->collective.split = false;
        come_with(world, 1, 1, 2, 3, 4);
        world->collective.split = true;
        come_with(world, 2, 30, 40);
    }
}

/* A report has at most eight rounds. */
TALK_TEST(what_the_home_proposes_of_many_rounds_goes_on_in_the_next_report)
{
    const uint32_t rounds = 10;
    struct world world;

    begin(&world, talk);
    talk->deaf = talk->controller;
    propose_rounds(&world, rounds); /* the first is said at once */
    assert_int_equal(talk_times_said(talk, "proposes h"), 1);
    talk_forget(talk);

    talk_writable(talk, talk->controller); /* when */
    assert_int_equal(talk_times_said(talk, "proposes h"), 8);
    talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "proposes h"), 9); /* then */
    assert_int_equal(talk_times_said(talk, "report"), 2);
}

/* The report of the second round is still to be said when the stream breaks. */
TALK_TEST(what_the_home_proposes_is_said_on_the_next_stream_of_ps_0)
{
    struct world world;

    begin(&world, talk);
    talk->deaf = talk->controller;
    propose_rounds(&world, 2);
    assert_int_equal(talk_times_said(talk, "proposes h"), 1);

    talk_hang_up(talk, talk->controller); /* when */
    talk_hello(talk);
    talk_forget(talk);
    talk_tick(talk, 1000);

    assert_int_equal(talk_times_said(talk, "proposes h"), 2); /* then */
}

/* The round is over here for all before ps 0 knows it. */
TALK_TEST(what_all_have_left_is_not_proposed_any_more)
{
    struct world world;

    begin(&world, talk);
    talk->deaf = talk->controller;
    propose_rounds(&world, 2);
    for (uint8_t i = 1; i <= 2; i++)
        leave(&world, i);
    talk_forget(talk);

    for (uint32_t i = 0; i < 9; i++) /* all that was to be said */
        talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "proposes"), 0);
    talk_forget(talk);
    expect_nothing_kept(&world);
}

TALK_TEST(what_ps_0_has_ordered_is_not_proposed_any_more)
{
    struct world world;

    begin(&world, talk);
    talk->deaf = talk->controller;
    propose_rounds(&world, 2);
    order_end(&world, SUMAC_FAILED_PRECONDITION); /* of the second */
    talk_forget(talk);

    for (uint32_t i = 0; i < 3; i++)
        talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "proposes"), 0);
}

TALK_TEST(who_asks_before_anybody_comes_hears_what_ps_0_orders)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    ask(&world, 1);
    talk_forget(world.talk);

    order_end(&world, SUMAC_DEADLINE_EXCEEDED);

    assert_int_equal(talk_times_said(world.talk, "pulled 1 error"), 1);
}

TALK_TEST(what_the_home_proposes_waits_for_the_records_of_all_that_it_says)
{
    struct lane_config config = talk_config();
    struct world world;
    uint64_t of_the_first = 0;

    config.records = true;
    begin_with(&world, talk, &config);
    talk_recorded(world.talk);
    for (uint32_t round = 1; round <= 2; round++) {
        world.collective.round = round;
        world.collective.split = false;
        come_with(&world, 1, 1, 2, 3, 4);
        world.collective.split = true;
        come_with(&world, 2, 30, 40);
        of_the_first = round == 1 ? world.talk->last_record : of_the_first;
    }

    talk_recorded_up_to(world.talk, of_the_first); /* when */

    assert_int_equal(talk_times_said(world.talk, "proposes"), 0); /* then */
    talk_recorded(world.talk);
    assert_int_equal(talk_times_said(world.talk, "proposes"), 2);
}

/* A third takes part, and leaves. The records are compared with the lane at the end. */
TALK_TEST(what_the_home_has_proposed_it_does_not_controller_by_its_records_either)
{
    struct lane_config config = talk_config();
    struct world world;

    config.records = true;
    begin_with(&world, talk, &config);
    world.collective.n_tasks = 3;
    come_with(&world, 1, 1, 2, 3, 4);
    world.collective.split = true;
    come_with(&world, 2, 30, 40);
    talk_recorded(world.talk);

    talk_close(world.talk, 3);
    talk_decide(world.talk, 3, 0, 0);

    talk_recorded(world.talk);
    assert_int_equal(world.talk->lane->rounds.count, 1);
    assert_false(world.talk->lane->rounds.open.first->over);
}

/* It has contributed something else here than to ps 0, for which its round passed. */
TALK_TEST(who_contributes_something_else_here_than_elsewhere_fails_the_round_here)
{
    struct world world;

    begin(&world, talk);
    for (uint64_t round = 1; round <= 2; round++) { /* before the order, and after it */
        world.collective.round = round;
        world.collective.split = true;
        if (round == 2)
            order_end(&world, SUMAC_OK);
        come_with(&world, 1, 3, 4);
        world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MAX;
        come_with(&world, 2, 30, 40);
        world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_SUM;
        if (round == 1)
            order_end(&world, SUMAC_OK);
        talk_forget(world.talk);

        for (uint8_t i = 1; i <= 2; i++)
            ask(&world, i);

        talk_expect(world.talk, "pulled 1 error STEP_DIFFERS\npulled 2 error STEP_DIFFERS\n");
    }
    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    expect_ends_kept(&world, 2);
}

/* It names itself and worker 1. */
TALK_TEST(a_stranger_ends_nothing_that_passes)
{
    struct world world;
    uint64_t others[] = {2 * 1 + 1, 2 * 3 + 1};

    begin(&world, talk);
    world.collective.split = true;
    come_with(&world, 1, 3, 4);
    order_end(&world, SUMAC_OK);
    world.collective.tasks = others;
    come_with(&world, 3, 5, 6);
    world.collective.tasks = world.tasks;
    ask(&world, 1);
    talk_forget(world.talk);

    come_with(&world, 2, 30, 40);

    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4] 33 44\n"), 1);
}

TALK_TEST(so_does_who_gives_a_mean_another_weight_here)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    world.weight = 0;
    come_with(&world, 1, 3, 4);
    come_with(&world, 2, 30, 40);
    order_end(&world, SUMAC_OK); /* there one had some */
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "pulled 1 error ZERO_WEIGHT\n");
    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    expect_ends_kept(&world, 1);
}

/* It had contributed to ps 0 alone. */
TALK_TEST(what_passed_elsewhere_does_not_wait_here_for_who_is_settled)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    come_with(&world, 1, 3, 4);
    order_end(&world, SUMAC_OK);
    ask(&world, 1);
    talk_close(world.talk, 2);
    talk_forget(world.talk);

    talk_decide(world.talk, 2, 0, 0);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error MEMBER_GONE"), 1);

    world.collective.round = 2; /* it is known to be gone */
    come_with(&world, 1, 3, 4);
    talk_forget(world.talk);
    order_end(&world, SUMAC_OK);
    ask(&world, 1);
    assert_int_equal(talk_times_said(world.talk, "pulled 1 error MEMBER_GONE"), 1);
    acknowledge(&world, 1);
    expect_ends_kept(&world, 2);
}

TALK_TEST(what_nobody_wants_any_more_is_gone_when_it_passes)
{
    struct world world;

    begin(&world, talk);
    world.collective.split = true;
    for (uint64_t round = 1; round <= 2; round++) {
        world.collective.round = round;
        for (uint8_t i = 1; i <= 2; i++) {
            come_with(&world, i, 3, 4);
            acknowledge(&world, i);
        }
        order_end(&world, round == 1 ? SUMAC_OK : SUMAC_DEADLINE_EXCEEDED);
        expect_ends_kept(&world, round == 1 ? 0 : 1);
    }
}

/* It has been proposed to ps 0 how it ends, and nobody else says so. */
TALK_TEST(what_the_home_has_proposed_waits_for_its_order)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    come_with(&world, 1, 1, 2, 3, 4);
    world.collective.split = true;
    come_with(&world, 2, 30, 40);
    world.collective.split = false;
    come_with(&world, 3, 1, 2, 3, 4); /* the last one */
    talk_close(world.talk, 3);
    talk_decide(world.talk, 3, 1, 0);
    talk_tick(world.talk, 70000);
    ask(&world, 1);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);

    order_end(&world, SUMAC_FAILED_PRECONDITION);

    assert_int_equal(talk_times_said(world.talk, "pulled 1 error ROUND_TIMED_OUT\n"), 1);
    for (uint8_t i = 1; i <= 2; i++)
        acknowledge(&world, i);
    expect_ends_kept(&world, 1);
}

TALK_TEST(nor_does_it_end_without_who_is_settled)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 3;
    come_with(&world, 1, 1, 2, 3, 4);
    world.collective.split = true;
    come_with(&world, 2, 30, 40);
    talk_close(world.talk, 3);
    talk_decide(world.talk, 3, 0, 0);
    talk_forget(world.talk);
    ask(&world, 1);
    talk_expect(world.talk, "");

    order_end(&world, SUMAC_FAILED_PRECONDITION);

    assert_int_equal(talk_times_said(world.talk, "pulled 1 error ROUND_TIMED_OUT\n"), 1);
}
