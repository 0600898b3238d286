/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c -- the ps's two legs: a push of 16 bytes comes in, is staged, applied and answered in one
 * event; a pull is answered. */

#include "unit.h"
#include "lane_talk.h"
#include "trace.h"

#define VARIABLE 5u

TALK_TEST(a_push_and_a_pull_are_an_event_each)
{
    const struct lane_config config = talk_config();
    const float one[] = {1, 1, 1, 1};

    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    const uint64_t push = talk_push_stream(talk, 1, 1);
    const uint64_t pull = talk_pull_stream(talk, 1);
    struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = one, .count = 4};
    talk_part(talk, push, &part);
    talk_pull(talk, pull, 7, VARIABLE, 1, 0);
    talk_forget(talk);

    part.sequence = 2;
    part.previous = 1;
    trace_next("push in", (void (*)(void))lane_step);
    talk_part(talk, push, &part);
    talk_expect(talk, "staged 2\ndone 2 [2]\n");

    trace_next("pull", (void (*)(void))lane_step);
    talk_pull(talk, pull, 8, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 8 [2] 2 2 2 2\n");
}
