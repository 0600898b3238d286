/* SPDX-License-Identifier: Apache-2.0 */
/* rpcs.h -- the RPCs of a ps, a row each.
 *
 * X(SERVICE, METHOD, method, what it is, bytes of a request at most, who answers)
 *
 * A CALL is unary: LANE_CALL_METHOD of the events, and a function of whoever answers it,
 * controller_method_call (ps 0's; another ps tells the client where ps 0 is) or lane_method_call. A
 * stream has events of its own. The messages are those that proto/ names; what is
 * larger than the bound is refused before it is unpacked; 0: the connection's bound.
 */
#pragma once

#include "wire.h"

#define RPC_SMALL_BYTES_MAX 8192u                        /* a session's id, a name, a text */
#define RPC_JOIN_BYTES_MAX 524288u                       /* 256 addresses and 4096 members */
#define RPC_BARRIER_BYTES_MAX 16384u                     /* 512 tasks of the job worker */
#define RPC_LIST_BYTES_MAX (WIRE_LIST_NAMES_MAX * 1200u) /* a name has at most 1024 bytes */

#define RPC_LIST(X)                                                                                \
    X(SESSIONS, JOIN, join, CALL, RPC_JOIN_BYTES_MAX, CONTROLLER)                                  \
    X(SESSIONS, RENEW, renew, CALL, RPC_SMALL_BYTES_MAX, CONTROLLER)                               \
    X(SESSIONS, LEAVE, leave, CALL, RPC_SMALL_BYTES_MAX, CONTROLLER)                               \
    X(SESSIONS, BARRIER, barrier, CALL, RPC_BARRIER_BYTES_MAX, CONTROLLER)                         \
    X(VARIABLES, CREATE, create, CALL, WIRE_CREATE_BYTES_MAX, CONTROLLER)                          \
    X(VARIABLES, DELETE, delete, CALL, RPC_SMALL_BYTES_MAX, CONTROLLER)                            \
    X(VARIABLES, LIST, list, CALL, RPC_LIST_BYTES_MAX, LANE)                                       \
    X(VARIABLES, DEFINE, define, CALL, RPC_SMALL_BYTES_MAX, CONTROLLER)                            \
    X(VARIABLES, FUNCTIONS, functions, CALL, RPC_SMALL_BYTES_MAX, CONTROLLER)                      \
    X(TRANSFER, PUSH, push, PUSH_STREAM, 0, LANE)                                                  \
    X(TRANSFER, PULL, pull, PULL_STREAM, WIRE_PULL_BYTES_MAX, LANE)                                \
    X(OBSERVE, STATS, stats, CALL, RPC_SMALL_BYTES_MAX, LANE)                                      \
    X(PEER, ATTEND, attend, PEER_STREAM, 0, LANE)

/* RPC_IF_CALL(what, text): the text, of a row that is a CALL. */
#define RPC_IF_CALL(what, ...) RPC_IF_CALL_##what(__VA_ARGS__)
#define RPC_IF_CALL_CALL(...) __VA_ARGS__
#define RPC_IF_CALL_PUSH_STREAM(...)
#define RPC_IF_CALL_PULL_STREAM(...)
#define RPC_IF_CALL_PEER_STREAM(...)

#define X(SERVICE, METHOD, method, what, bytes_max, who) RPC_IF_CALL(what, LANE_CALL_##METHOD, )
enum lane_call_kind { RPC_LIST(X) };
#undef X

/* Does the controller answer it? */
static inline bool rpc_is_the_controllers(enum lane_call_kind kind)
{
    enum { CONTROLLER, LANE };
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    RPC_IF_CALL(what, case LANE_CALL_##METHOD : return who == CONTROLLER;)
    switch (kind) {
        RPC_LIST(X)
    }
#undef X
    return false;
}

/* Every method of proto/ has its row. */
#define X(SERVICE, METHOD, method, what, bytes_max, who) +1
_Static_assert(0 RPC_LIST(X) == WIRE_METHODS, "a row for each method of proto/sumac/v1");
#undef X
