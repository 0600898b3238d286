/* SPDX-License-Identifier: Apache-2.0 */
/* lane_check_collective.c -- the check of a lane's consistency objects to each wrong field of its
 * rounds of collectives. */
#include "corrupt.h"
#include "lane_collective.h"

#define wrong(place, value, words) corrupt(lane_check(lane, &said), place, value, words)
#define LONG 100u /* elements: vector work, and a result in several messages */

static void expect_right(const struct lane *lane)
{
    struct check check = {.text = ""};

    lane_check(lane, &check);
    assert_string_equal(check.text, "");
}

/* Worker 1 has come to round 1. Worker 2 has, too, and its push is not committed. */
TALK_TEST(a_wrong_contribution_is_found)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    world.waits = true;
    come_with(&world, 2, 1, 2, 3, 4);
    struct lane *lane = world.talk->lane;
    struct lane_session *session = lane->sessions.first;
    while (session->contribution_count == 0)
        session = session->in_lane.next;
    struct contribution *contribution = session->contributions.first;
    expect_right(lane);

    wrong(contribution->sequence, 0, "worker 1: a contribution with push 0 is in the list after 0");
    wrong(contribution->sequence, 2, "worker 1: a contribution with push 2 is in the list after 0");
    wrong(
        contribution->waits, false, "worker 1: a contribution with push 1 is in the list after 0");
    wrong(session->contribution_count, 2, "contributions of worker 1");
    wrong(lane->rounds.count, 2, "rounds of a ps");
    wrong(lane->rounds.room_bytes, 1u << 30, "bytes of rounds of the lane");
    wrong(lane->rounds.beside_bytes, 1, "bytes of what is lent of them of the lane");
    wrong(lane->parts->contributions.used, 1, "contributions of the lane");
    wrong(contribution->contributes, false, "contributions of the lane");
    wrong(contribution->holds, 1, "spans that are lent of the lane");
    expect_right(lane);
}

/* Two of three workers differ. Before they acknowledge the end, their contributions have no bytes.
 * After that the end is kept for the third worker. */
TALK_TEST(a_wrong_count_of_rounds_that_failed_is_found)
{
    struct world world;

    begin(&world, talk);
    struct lane *lane = world.talk->lane;
    world.collective.n_tasks = 3;
    come_with(&world, 1, 1, 2, 3, 4);
    world.shape[0] = 2;
    come_with(&world, 2, 1, 2);
    assert_int_equal(lane->parts->contributions.used, 2);
    assert_null(lane->rounds.open.first);
    expect_right(lane);
    wrong(lane->parts->contributions.used, 1, "contributions of the lane");

    acknowledge(&world, 1);
    acknowledge(&world, 2);
    assert_int_equal(lane->rounds.kept_count, 1);
    expect_right(lane);
    wrong(lane->rounds.count, 0, "rounds of a ps");
    expect_right(lane);
}

/* Both workers have acknowledged a result that is long. */
static void acknowledge_long(struct world *world, bool deaf)
{
    static const float values[LONG];

    world->shape[0] = LONG;
    world->talk->holds_released = true;
    world->talk->deaf = deaf ? world->pull[1] : 0;
    come(world, 1, values, sizeof values);
    come(world, 2, values, sizeof values);
    ask(world, 1);
    acknowledge(world, 1);
    acknowledge(world, 2);
}

TALK_TEST(a_wrong_count_of_contributions_that_are_read_is_found)
{
    struct world world;

    begin(&world, talk);
    acknowledge_long(&world, true);
    struct lane *lane = world.talk->lane;
    assert_non_null(lane->parts->put_aside.first);
    expect_right(lane);

    struct contribution other = {.contributes = false};
    wrong(lane->parts->contributions.used, 9, "contributions of the lane");
    wrong(lane->parts->put_aside.first, &other, "contributions of the lane");
    expect_right(lane);

    talk_release(world.talk);
}

TALK_TEST(a_wrong_contribution_whose_bytes_are_lent_is_found)
{
    struct world world;
    struct lane_config config = talk_config();

    config.gathered_bytes_max = 8;
    begin_with(&world, talk, &config);
    acknowledge_long(&world, false);
    struct lane *lane = world.talk->lane;
    struct contribution *contribution = lane->parts->lent.first;
    assert_non_null(contribution);
    expect_right(lane);

    wrong(contribution->room_bytes, 1, "bytes of what is lent of them of the lane");
    wrong(contribution->holds, 99, "spans that are lent of the lane");
    wrong(lane->parts->contributions.used, 9, "contributions of the lane");
    expect_right(lane);

    talk_release(world.talk);
}
