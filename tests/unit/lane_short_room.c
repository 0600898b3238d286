/* SPDX-License-Identifier: Apache-2.0 */
/* lane_short_room.c -- large parts that ask for room, wait and give way, while each take of memory
 * of the lane fails once. */
#include <stdio.h>

#include "claims.h"
#include "lane_scarce.h"
#include "peer.h"
#include "room.h"

#define VARIABLE 5u
#define COUNT 150u /* elements of a large part */
#define ROOM 1891u /* wire_part_cost of them, in one piece */
#define FLOOR 1700u

static const float ones[COUNT] = {1};

/* The pool has room for one of them. */
static void room_for_one(struct talk *talk, struct lane_config *config)
{
    (void)talk;
    assert_int_equal(wire_part_cost(COUNT * sizeof(float), 1, 0), ROOM);
    config->pool_bytes_max = ROOM;
    config->staging_bytes_max = config->sessions_max * FLOOR + ROOM;
}

static void add_one(struct scarce *scarce)
{
    talk_variable(scarce->talk, VARIABLE, COUNT, UPDATE_ASSIGN_ADD);
}

static struct talk_part large(const struct scarce *scarce, uint64_t started, uint32_t round)
{
    return (struct talk_part){
        .sequence = scarce->number,
        .previous = scarce->number - 1,
        .shard = VARIABLE,
        .shards = 1,
        .values = ones,
        .count = COUNT,
        .room = ROOM,
        .resend = round,
        .started = started};
}

/* Its header asks; the elements follow when they are wanted. */
static void ask_and_send(struct scarce *scarce, uint32_t session, uint64_t started, uint32_t round)
{
    const struct talk_part part = large(scarce, started, round);
    const uint64_t stream = scarce_push(scarce, session);

    talk_ask(scarce->talk, stream, &part);
    if (scarce_said(scarce, "resend #\n"))
        talk_part(scarce->talk, stream, &part);
}

static void commit(struct scarce *scarce, uint32_t session)
{
    talk_commit(scarce->talk, scarce_push(scarce, session), scarce->number, 0, scarce->number - 1);
}

/* Session 2 waits until session 1's push is applied. */
static void one_after_the_other(struct scarce *scarce)
{
    ask_and_send(scarce, 1, 10, 0);
    ask_and_send(scarce, 2, 20, 0);
    commit(scarce, 1);
    ask_and_send(scarce, 2, 20, 0);
    commit(scarce, 2);
}

TEST(a_part_that_waits_for_room_comes_when_there_is_some)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = room_for_one,
        .prepare = add_one,
        .say = one_after_the_other,
        .answers =
            {{"resend #\n", {"done # voided\n"}},
             {"room wait #\n", {"done # voided\n", "done # ["}},
             {"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

/* Session 2's is older: what session 1 has staged gives way to it, and comes again. */
static void the_younger_gives_way(struct scarce *scarce)
{
    ask_and_send(scarce, 1, 20, 0);
    ask_and_send(scarce, 2, 10, 0);
    if (scarce_said(scarce, "give way # (resend 0)\n"))
        talk_withdraw(scarce->talk, scarce_push(scarce, 1), scarce->number, 1);
    ask_and_send(scarce, 2, 10, 0);
    commit(scarce, 2);
    ask_and_send(scarce, 1, 20, scarce_said(scarce, "give way # (resend 0)\n") ? 1 : 0);
    commit(scarce, 1);
}

TEST(a_part_that_gives_way_comes_again)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = room_for_one,
        .prepare = add_one,
        .say = the_younger_gives_way,
        .answers =
            {{"give way # (resend 0)\n", {"done # voided\n", "done # ["}},
             {"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

/* ---- beside steps ---- */

/* Session 1 contributes to synchronous steps. Session 2 asks for more than these leave. */
static void almost_room_for_three(struct talk *talk, struct lane_config *config)
{
    talk->step_members = 1;
    config->pool_bytes_max = 3 * ROOM - 1;
    config->staging_bytes_max = config->sessions_max * FLOOR + 3 * ROOM - 1;
}

static void add_sum(struct scarce *scarce)
{
    talk_first_step(scarce->talk, 2, 1000);
    scarce->talk->aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_SUM;
    add_one(scarce);
}

static bool has_room(struct scarce *scarce, uint8_t session)
{
    uint8_t id[16];

    const struct claim *const claim = lane_claim_find(
        scarce->talk->lane, lane_session_find(scarce->talk->lane, talk_id(session, id).data),
        scarce->number);
    return claim != NULL && claim->state == CLAIM_RESERVED;
}

static void ask_beside_a_contribution(struct scarce *scarce)
{
    struct talk *const talk = scarce->talk;
    const uint64_t number = scarce->number;
    struct talk_part due = large(scarce, 10, 0), ordinary = large(scarce, 20, 0);

    due.step = number;
    ordinary.room = 2 * ROOM;
    talk_ask(talk, scarce_push(scarce, 1), &due);
    talk_ask(talk, scarce_push(scarce, 2), &ordinary);
    talk_part(talk, scarce_push(scarce, 1), &due);
    commit(scarce, 1);
    if (has_room(scarce, 2)) /* not refused: the step was over */
        talk_part(talk, scarce_push(scarce, 2), &ordinary);
    talk_commit(talk, scarce_push(scarce, 2), number, number, number - 1);
}

TEST(a_part_that_steps_leave_no_room_for_is_refused)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = almost_room_for_three,
        .prepare = add_sum,
        .say = ask_beside_a_contribution,
        .answers =
            {{"refused # PART_TOO_LARGE\n", {"refused # OUT_OF_MEMORY\n", "staged #\n"}},
             {"done # [", {"done # voided\n"}},
             {"done # voided\n"}},
        .pushes = 1});
}
