/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_stats.h -- calls of the one method that the tests of lib/rpc make as a unary call: Stats. */
#pragma once

#include "unit.h"
#include "rpc.h"

/* `start` has the rest, and the message if it is not the plain one. */
static inline struct rpc_call *begin_stats_on(struct rpc_channel *channel, struct rpc_start start)
{
    const wire_stats_request plain = WIRE_STATS_REQUEST_INIT;
    struct rpc_call *call;

    start.service = WIRE_OBSERVE;
    start.method = WIRE_OBSERVE_STATS;
    if (start.message == NULL)
        start.message = &plain.base;
    assert_int_equal(rpc_channel_call(channel, &start, &call), SUMAC_OK);
    return call;
}
