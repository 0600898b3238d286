/* SPDX-License-Identifier: Apache-2.0 */
/* lane_room_lines.c -- an ordinary part behind a contribution of its session waits in the line of
 * later ones. No other part gives way to it, not even a younger one. */
#include "lane_pool.h"
#include "part_state.h"

/* Sessions 2 and 3 have staged ordinary parts, which are younger than what session 1 asks for. */
static struct members begin_full(struct talk *talk, uint64_t pool_bytes)
{
    const struct members members = open_three(talk, pool_bytes);

    stage(talk, &members, 2, 10);
    stage(talk, &members, 3, 20);
    return members;
}

static void ask_behind_a_contribution(struct talk *talk, const struct members *members)
{
    const struct talk_part oldest = large(2, 1, 5);

    talk_ask(talk, members->push[1], &oldest);
}

static void without_a_contribution_before_it_the_youngest_gives_way(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, POOL);
    const struct talk_part before = small(1, 0);

    talk_part(talk, members.push[1], &before);
    talk_expect(talk, "staged 1\n");

    ask_behind_a_contribution(talk, &members);

    talk_expect(talk, "give way 1 (round 0)\nroom wait 2\n");
}

static void nobody_gives_way_to_one_behind_a_contribution_that_is_staged(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, POOL);
    const struct talk_part before = contribution(1, ones, 1);

    talk_part(talk, members.push[1], &before);
    talk_expect(talk, "staged 1\n");

    ask_behind_a_contribution(talk, &members);

    talk_expect(talk, "room wait 2\n");
}

static void nobody_gives_way_to_one_behind_a_contribution_that_has_room(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, 3 * ROOM);
    struct talk_part before = large(1, 0, 0);

    before.step = 1;
    talk_ask(talk, members.push[1], &before);
    talk_expect(talk, "resend 1\n");

    ask_behind_a_contribution(talk, &members);

    talk_expect(talk, "room wait 2\n");
}

static void room_that_becomes_free_is_shared_at_once(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, POOL);
    struct talk_part whole = large(1, 0, 1);

    whole.room = 2 * ROOM;
    talk_ask(talk, members.push[3], &whole); /* given */
    talk_part(talk, members.push[3], &whole);
    ask(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    talk_expect(talk, "resend 1\nstaged 1\nroom wait 1\nroom wait 1\n");

    talk_commit(talk, members.push[3], 1, 0, 0); /* when */

    assert_int_equal(talk_times_said(talk, "resend 1\n"), 2); /* then */
    talk_forget(talk);
}

static void one_that_waits_has_no_room_said_on_a_new_stream(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, POOL);

    ask(talk, &members, 1, 30);
    talk_expect(talk, "room wait 1\n");

    (void)talk_push_stream(talk, 1, 2);

    assert_int_equal(talk_times_said(talk, "resend"), 0);
    talk_forget(talk);
}

/* The part between the two asks for room, too. */
static void nobody_gives_way_to_the_second_one_behind_a_contribution(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, POOL);
    const struct talk_part before = contribution(1, ones, 1), second = large(3, 2, 5);

    talk_part(talk, members.push[1], &before);
    ask_behind_a_contribution(talk, &members);
    talk_expect(talk, "staged 1\nroom wait 2\n");

    talk_ask(talk, members.push[1], &second);

    talk_expect(talk, "room wait 3\n");
}

static enum claim_state state_of(struct talk *talk, const struct lane_session *session)
{
    return lane_claim_find(talk->lane, session, 1)->state;
}

/* Every ps gives room in the same order, whichever session asked first. */
static void of_parts_of_one_age_that_of_the_session_with_the_lower_id_comes_first(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, ROOM);
    const struct lane_session *const first = talk->lane->sessions.first;

    stage(talk, &members, 3, 1);
    ask(talk, &members, 2, 10);
    ask(talk, &members, 1, 10);
    talk_expect(talk, "room wait 1\nroom wait 1\n");

    talk_commit(talk, members.push[3], 1, 0, 0);

    assert_int_equal(state_of(talk, first), CLAIM_RESERVED);
    assert_int_equal(state_of(talk, first->in_lane.next), CLAIM_WAITS);
    talk_forget(talk);
}

static void one_that_is_to_give_way_hears_of_which_round(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, ROOM);
    struct talk_part younger = large(1, 0, 20);

    younger.round = 2;
    talk_ask(talk, members.push[2], &younger);
    talk_part(talk, members.push[2], &younger);
    talk_expect(talk, "resend 1\nstaged 1\n");

    ask(talk, &members, 1, 10);

    talk_expect(talk, "give way 1 (round 2)\nroom wait 1\n");
}

static void one_that_is_withdrawn_while_it_waits_has_no_room_said(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, POOL);

    ask(talk, &members, 1, 30);
    talk_expect(talk, "room wait 1\n");

    talk_withdraw(talk, members.push[1], 1, 1);

    talk_expect(talk, "");
}

/* Else the first of the others would wait for ever. */
static void one_behind_a_contribution_takes_no_room_while_another_waits(void **state)
{
    struct talk *const talk = *state;
    const struct members members = begin_full(talk, POOL);
    const uint64_t observer = open_observer(talk);
    const struct talk_part before = contribution(1, ones, 1);
    struct talk_part whole = large(1, 0, 30);

    whole.room = 2 * ROOM;
    talk_ask(talk, observer, &whole); /* given: it waits for all of the pool */
    talk_part(talk, members.push[1], &before);
    ask_behind_a_contribution(talk, &members);
    talk_expect(talk, "room wait 1\nstaged 1\nroom wait 2\n");

    talk_commit(talk, members.push[2], 1, 0, 0); /* when half of it is free */

    talk_expect(talk, "done 1 [1]\n"); /* then */
    talk_commit(talk, members.push[3], 1, 0, 0);
    talk_expect(talk, "resend 1\ndone 1 [2]\n");
}

/* The part before it may yet be voided. */
static void a_contribution_behind_a_part_that_is_not_committed_is_not_due(void **state)
{
    struct talk *const talk = *state;
    const struct members members = open_three(talk, 4 * ROOM);
    const uint64_t observer = open_observer(talk);
    const struct talk_part before = large(2, 1, 20), other = large(1, 0, 30);
    struct talk_part behind = large(3, 2, 0);

    talk_ask(talk, members.push[3], &before); /* given */
    talk_part(talk, members.push[3], &before);
    behind.step = 1;
    talk_ask(talk, members.push[3], &behind);
    talk_expect(talk, "resend 2\nstaged 2\nresend 3\n");

    talk_ask(talk, observer, &other); /* when */

    talk_expect(talk, "resend 1\n"); /* then: no room is kept for a step */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(without_a_contribution_before_it_the_youngest_gives_way),
        talk_test(nobody_gives_way_to_one_behind_a_contribution_that_is_staged),
        talk_test(nobody_gives_way_to_one_behind_a_contribution_that_has_room),
        talk_test(nobody_gives_way_to_the_second_one_behind_a_contribution),
        talk_test(of_parts_of_one_age_that_of_the_session_with_the_lower_id_comes_first),
        talk_test(one_that_is_withdrawn_while_it_waits_has_no_room_said),
        talk_test(a_contribution_behind_a_part_that_is_not_committed_is_not_due),
        talk_test(one_behind_a_contribution_takes_no_room_while_another_waits),
        talk_test(room_that_becomes_free_is_shared_at_once),
        talk_test(one_that_waits_has_no_room_said_on_a_new_stream),
        talk_test(one_that_is_to_give_way_hears_of_which_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
