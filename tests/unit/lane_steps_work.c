/* SPDX-License-Identifier: Apache-2.0 */
/* lane_steps_work.c (test) -- synchronous steps: however many contributions a ps holds, no step of
 * the lane is long. */
#include "lane_members.h"

#include "step.h"

#define AHEAD 900u

/* The lane wants to go on at once, and does, until it has done everything. Returns how many steps
 * that took. */
static uint32_t go_on(struct talk *talk)
{
    uint32_t steps = 0;

    while (talk->wake_us <= talk->now_us && steps < 10000) {
        talk->wake_us = UINT64_MAX;
        talk_tick(talk, 0);
        steps++;
    }
    return steps;
}

/* Members with room for so many parts. */
static struct members begin_ample(struct talk *talk, uint32_t count)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 256u << 20;
    return begin_as(talk, count, count, config);
}

static void stage_nothing(struct talk *talk, uint64_t stream, uint64_t step)
{
    struct talk_part part = contribution(step, NULL, 0);

    part.shards = 0;
    talk_part(talk, stream, &part);
}

TALK_TEST(where_a_contribution_lies_is_found_at_once)
{
    struct members members = begin_ample(talk, 4);

    for (uint32_t m = 2; m <= 4; m++) {
        for (uint64_t step = 1; step <= AHEAD; step++)
            stage_nothing(talk, members.push[m], step);
    }
    assert_int_equal(talk_times_said(talk, "staged "), 3 * AHEAD);
    talk_forget(talk);
    talk->most_work = 0;

    stage_nothing(talk, members.push[1], 1);

    talk_expect(talk, "staged 1\n");
    assert_in_range(talk->most_work, 1, AHEAD / 8);
}

TALK_TEST(steps_that_are_whole_at_once_are_taken_over_steps_of_the_lane)
{
    struct members members = begin_ample(talk, 3);

    for (uint32_t m = 1; m <= 3; m++) {
        for (uint64_t step = 1; step <= AHEAD; step++)
            stage_nothing(talk, members.push[m], step);
        if (m > 1)
            talk_commit(talk, members.push[m], AHEAD, 0, 0);
    }
    assert_int_equal(talk_times_said(talk, "staged "), 3 * AHEAD);
    talk_forget(talk);
    talk->most_work = 0;

    talk_commit(talk, members.push[1], AHEAD, 0, 0);
    const uint32_t steps = go_on(talk);

    assert_int_equal(talk_times_said(talk, "done "), 3 * AHEAD);
    assert_in_range(steps, 1, AHEAD / 2);
    assert_in_range(talk->most_work, 1, WORK_PER_STEP_MAX + WORK_PER_STEP_MAX / 8);
}
