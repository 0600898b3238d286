/* SPDX-License-Identifier: Apache-2.0 */
/* lane_check_room.c -- the check of a lane's consistency objects to each wrong field of its claims
 * on the pool, and of its contributions to synchronous steps. */
#include <math.h>

#include "corrupt.h"
#include "lane_pool.h"
#include "part_state.h"
#include "peer_state.h"

#define wrong(place, value, words) corrupt(lane_check(lane, &said), place, value, words)

static void expect_right(const struct lane *lane)
{
    struct check check = {.text = ""};

    lane_check(lane, &check);
    assert_string_equal(check.text, "");
}

/* The claim of push 1 of session 1 is held, that of session 2 is reserved, that of session 3 waits.
 */
TALK_TEST(a_wrong_claim_is_found)
{
    const struct members members = open_three(talk, POOL);
    struct lane *lane = talk->lane;

    stage(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    ask(talk, &members, 3, 30);
    struct claim *held = lane->claims.all.first, *reserved = held->in_lane.next;
    struct claim *waits = lane->claims.all.last;
    assert_int_equal(held->state, CLAIM_HELD);
    assert_int_equal(reserved->state, CLAIM_RESERVED);
    assert_int_equal(waits->state, CLAIM_WAITS);
    expect_right(lane);

    wrong(held->state, CLAIM_RESERVED, "the claim of push 1 of worker 1 is in state");
    wrong(held->part->claim, reserved, "the claim of push 1 of worker 1 is in state");
    wrong(held->sequence, 2, "the claim of push 2 of worker 1 is in state");
    wrong(reserved->used_bytes, 5000, "the claim of push 1 of worker 2 is in state");
    wrong(waits->session->closing, true, "push 1 of worker 3 waits for room after the end");
    wrong(lane->claims.waiting, 2, "claims that wait of the lane");
    wrong(lane->claims.bytes, 1, "bytes of the pool of the lane");
    wrong(lane->parts->claims.used, 1, "claims of the lane");
    wrong(lane->claims.bytes_max, 1, "3782 bytes are taken of the pool");
    wrong(lane->staged_bytes, 1, "staged bytes of the lane");
    wrong(lane->bytes.spare_bytes_max, 1, "bytes of staging that may be spare of the lane");
    expect_right(lane);
}

TALK_TEST(answers_of_the_pool_are_counted)
{
    const struct members members = open_three(talk, POOL);
    struct lane *lane = talk->lane;
    struct lane_stream *stream = lane_stream_find(lane, members.push[1]);
    const struct talk_part part = large(1, 0, 10);

    talk_ask(talk, members.push[1], &part);
    talk->deaf = members.push[1];
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);
    assert_non_null(stream->answers.first);
    assert_true(stream->answers.first->pooled);
    expect_right(lane);

    wrong(stream->answers.first->pooled, false, "bytes of answers of worker 1");
    wrong(lane->claims.bytes, 0, "bytes of the pool of the lane");
    expect_right(lane);
}

/* Session 1 contributes to steps 1 and 2, and has another push. A push of session 2 is refused. */
TALK_TEST(a_wrong_contribution_to_a_step_is_found)
{
    struct members members = begin(talk, 2);
    struct lane *lane = talk->lane;

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t step = 1; step <= 2; step++)
        contribute(talk, members.push[1], step, (float[]){1}, 1);
    struct talk_part ordinary = small(3, 2);
    talk_part(talk, members.push[1], &ordinary);
    const struct talk_part bad = contribution(1, (float[]){NAN}, 1);
    talk_part(talk, members.push[2], &bad);
    struct lane_part *first = lane->step_places[1].contributions.first;
    struct lane_part *second = lane->step_places[2].contributions.first;
    struct lane_part *refused = lane_stream_find(lane, members.push[2])->session->parts.first;
    assert_int_equal(refused->state, PART_VOID);
    expect_right(lane);

    wrong(first->step, 2, "push 1 of worker 1 is among the contributions in state");
    wrong(
        lane->step_places[0].contributions.first, first->session->parts.last,
        "push 3 of worker 1 is among the contributions in state");
    wrong(first->among_contributions.prev, first, "push 1 of worker 1 is among the contributions");
    wrong(lane->step_places[1].contributions.first, NULL, "contributions of the lane");
    const uint64_t step = refused->step;
    refused->step = 1;
    wrong(
        lane->step_places[1].contributions.first, refused,
        "push 1 of worker 2 is among the contributions in state");
    refused->step = step;
    lane->step_places[2].contributions.first = NULL;
    second->step = 1;
    second->among_contributions.prev = first;
    first->among_contributions.next = second;
    wrong(first->step, 1 + STEP_PLACES, "push 2 of worker 1 is among the contributions in state");
    expect_right(lane);
    first->among_contributions.next = second->among_contributions.prev = NULL;
    second->step = 2;
    lane->step_places[2].contributions.first = second;
}
