/* SPDX-License-Identifier: Apache-2.0 */
/* lane_moves.c -- parts, streams and operations go from state to state as their tables say, and any
 * other move ends the process. */

#include "unit.h"
#include "operation_state.h"
#include "moves.h"

static void move_part(uint32_t from, uint32_t to)
{
    struct lane_part part = {.state = (enum lane_part_state)from};

    lane_part_move(&part, (enum lane_part_state)to);
}

TEST(a_part_is_over_once_and_for_all)
{
    /* New, Received, dUplicate, Dropped, reFused, Staged, Void, Applied, Over. */
    static const char *const expected[] = {"RUD", "DFSO", "DO", "O", "VO", "AO", "O", "O", ""};

    expect_moves(move_part, "NRUDFSVAO", expected);
}

static void move_stream(uint32_t from, uint32_t to)
{
    struct lane_stream stream = {.state = (enum lane_stream_state)from};

    lane_stream_move(&stream, (enum lane_stream_state)to);
}

TEST(a_stream_is_greeted_once_and_ended_once)
{
    /* Silent, sTale, Greeted, Ended. */
    static const char *const expected[] = {"TGE", "E", "SE", ""};

    expect_moves(move_stream, "STGE", expected);
}

static void move_operation(uint32_t from, uint32_t to)
{
    struct operation operation = {.state = (enum operation_state)from};

    lane_operation_move(&operation, (enum operation_state)to);
}

TEST(an_operation_runs_between_what_it_waits_for)
{
    /* oVer, Running, Out, Stalled. */
    static const char *const expected[] = {"R", "VOS", "VR", "VR"};

    expect_moves(move_operation, "VROS", expected);
}
