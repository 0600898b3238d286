/* SPDX-License-Identifier: Apache-2.0 */
/* lane_ends_members.c -- a ps that is to end waits for no contribution and no room that cannot come
 * any more. */
#include "lane_pool.h"

static const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

static void end_as_terminated(struct talk *talk)
{
    wire_end end = WIRE_END_INIT;

    end.exit_code = 143;
    end.message = "ps 0 was terminated";
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_TERMINATED;
    talk_order_of(talk, end, &end);
}

static struct members begin_with_variable(struct talk *talk)
{
    const struct members members = begin(talk, 2);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    return members;
}

TALK_TEST(sigterm_waits_for_no_contribution_that_has_not_begun_to_arrive)
{
    const struct members members = begin_with_variable(talk);

    contribute(talk, members.push[1], 1, ones, 1); /* given */
    talk_forget(talk);

    talk_step(talk, &terminate); /* when */

    talk_expect(talk, "exit 143 TERMINATED\n"); /* then */
}

TALK_TEST(sigterm_waits_for_the_commit_that_makes_a_step_whole)
{
    const struct members members = begin_with_variable(talk);
    const struct talk_part part = contribution(1, ones, 1);

    contribute(talk, members.push[1], 1, ones, 1); /* given */
    talk_part(talk, members.push[2], &part);
    talk_forget(talk);
    talk_step(talk, &terminate);
    talk_expect(talk, "");

    talk_commit(talk, members.push[2], 1, 0, 0); /* when */

    talk_expect(talk, "done 1 [1]\ndone 1 [1]\nexit 143 TERMINATED\n"); /* then */
}

/* ps 0 did not take worker 1's contribution, and told worker 1 that the run has ended. */
TALK_TEST(an_end_does_not_wait_for_the_members_of_a_step_that_one_has_left)
{
    const struct members members = begin_with_variable(talk);
    const struct talk_part part = contribution(1, ones, 1);

    contribute(talk, members.push[1], 1, ones, 1); /* given */
    talk_part(talk, members.push[2], &part);
    end_as_terminated(talk);
    talk_forget(talk);

    talk_hang_up(talk, members.push[2]); /* when */

    assert_non_null(strstr(talk->text, "exit 143 TERMINATED\n")); /* then */
}

/* Its elements would not be taken. */
TALK_TEST(after_sigterm_a_client_that_waits_for_room_hears_of_the_end)
{
    const struct members members = open_three(talk, POOL);

    stage(talk, &members, 1, 10); /* given: the pool is full, and both have yet to be committed */
    stage(talk, &members, 2, 11);
    ask(talk, &members, 3, 12);
    talk_forget(talk);

    talk_step(talk, &terminate); /* when */

    talk_expect(talk, "end of stream TERMINATED\n"); /* then */
}
