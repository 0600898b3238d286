/* SPDX-License-Identifier: Apache-2.0 */
/* lane_room_silent.c -- a client keeps room in the pool, and does not do what it is asked to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lane_pool.h"

/* Half a lease at a time, so that it is no sleep of the ps, and with the ticks between. */
static void pass_half_leases(struct talk *talk, uint32_t count)
{
    for (uint32_t i = 0; i < 4 * count; i++)
        talk_tick(talk, talk_config().lease_ms / 8);
}

static void elements_that_do_not_come_end_the_stream_and_are_reported(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, ROOM);

    ask(talk, &members, 1, 10); /* given */
    ask(talk, &members, 2, 20);
    talk_forget(talk);

    pass_half_leases(talk, 3); /* when */
    assert_true(talk_has_ended(talk, members.push[1]));
    assert_int_equal(talk->closed.reason, SUMAC_REASON_BUSY);
    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    assert_true(talk_times_said(talk, "waiting 2\n") > 0);
    pass_half_leases(talk, 2);

    assert_true(talk_times_said(talk, "stalled 1 waiting 2\n") > 0); /* then */
    assert_int_equal(talk_times_said(talk, "end of stream"), 1);
    talk_forget(talk);
}

static void a_staged_part_that_does_not_give_way_is_reported(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 20); /* given */
    ask(talk, &members, 2, 10);
    talk_forget(talk);

    pass_half_leases(talk, 3); /* when */
    assert_true(talk_has_ended(talk, members.push[1]));
    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    pass_half_leases(talk, 2);

    assert_true(talk_times_said(talk, "stalled 1 waiting 2\n") > 0); /* then */
    talk_forget(talk);
}

/* It waits for its other parts, and only younger ones want its room. */
static void an_older_staged_part_is_not_reported(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    talk_forget(talk);

    pass_half_leases(talk, 6);

    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    assert_int_equal(talk_times_said(talk, "end of stream"), 0);
    talk_forget(talk);
}

static void whoever_answers_on_a_new_stream_goes_on(void **state)
{
    struct talk *const talk = *state;
    struct members members = open_three(talk, ROOM);
    const struct talk_part part = large(1, 0, 10);

    ask(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    pass_half_leases(talk, 3);
    talk_forget(talk);

    members.push[1] = talk_push_stream(talk, 1, 2); /* when */
    assert_int_equal(talk_times_said(talk, "resend 1\n"), 1);
    talk_part(talk, members.push[1], &part);
    talk_forget(talk);
    pass_half_leases(talk, 6);

    assert_int_equal(talk_times_said(talk, "stalled"), 0); /* then */
    talk_forget(talk);
}

static void a_contribution_that_is_due_is_not_reported(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, 3 * ROOM);
    struct talk_part part = large(1, 0, 10);

    part.step = 1;
    talk_ask(talk, members.push[1], &part);
    talk_forget(talk);

    pass_half_leases(talk, 6);

    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    assert_int_equal(talk_times_said(talk, "end of stream"), 0);
    talk_forget(talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(elements_that_do_not_come_end_the_stream_and_are_reported),
        talk_test(a_staged_part_that_does_not_give_way_is_reported),
        talk_test(an_older_staged_part_is_not_reported),
        talk_test(whoever_answers_on_a_new_stream_goes_on),
        talk_test(a_contribution_that_is_due_is_not_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
