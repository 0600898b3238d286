/* SPDX-License-Identifier: Apache-2.0 */
/* lane_room_lines.c -- an ordinary part behind a contribution of its session waits in the line of
 * later ones. No other part gives way to it, not even a younger one. */
#include "lane_pool.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(without_a_contribution_before_it_the_youngest_gives_way),
        talk_test(nobody_gives_way_to_one_behind_a_contribution_that_is_staged),
        talk_test(nobody_gives_way_to_one_behind_a_contribution_that_has_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
