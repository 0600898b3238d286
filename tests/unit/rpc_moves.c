/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_moves.c -- a call says its last word once, and is deaf for good; any other move ends the
 * process. */

#include "unit.h"
#include "call.h"
#include "moves.h"

static void say(uint32_t from, uint32_t to)
{
    struct rpc_call call = {.says = (enum call_says)from};

    call_say(&call, (enum call_says)to);
}

static void hear(uint32_t from, uint32_t to)
{
    struct rpc_call call = {.hears = (enum call_hears)from};

    call_hear(&call, (enum call_hears)to);
}

TEST(a_call_says_one_message_at_a_time_and_one_last_word)
{
    /* Nothing yet, What comes, a Message, last Soon, Last. */
    static const char *const expected[] = {"WSL", "MSL", "WS", "L", ""};

    expect_moves(say, "NWMSL", expected);
}

TEST(a_call_that_hears_nothing_stays_so)
{
    /* All, Later, Nothing. */
    static const char *const expected[] = {"LN", "AN", "N"};

    expect_moves(hear, "ALN", expected);
}
