/* SPDX-License-Identifier: Apache-2.0 */
/* call.c -- what a call holds, says and hears, and the batches that it begins. */
#include "call.h"

#include <assert.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#define TO(state) (1u << (state))

/* What may follow each state. A unary call's last word goes out with its only message. */
static const uint32_t says_moves[] = {
    [SAYS_NOTHING_YET] = TO(SAYS_WHAT_COMES) | TO(SAYS_LAST_SOON) | TO(SAYS_LAST),
    [SAYS_WHAT_COMES] = TO(SAYS_A_MESSAGE) | TO(SAYS_LAST_SOON) | TO(SAYS_LAST),
    [SAYS_A_MESSAGE] = TO(SAYS_WHAT_COMES) | TO(SAYS_LAST_SOON),
    [SAYS_LAST_SOON] = TO(SAYS_LAST),
    [SAYS_LAST] = 0,
};

static const uint32_t hears_moves[] = {
    [HEARS_ALL] = TO(HEARS_LATER) | TO(HEARS_NOTHING),
    [HEARS_LATER] = TO(HEARS_ALL) | TO(HEARS_NOTHING),
    [HEARS_NOTHING] = TO(HEARS_NOTHING), /* it may be ended for several reasons */
};

void call_say(struct rpc_call *call, enum call_says to)
{
    assert((says_moves[call->says] & TO(to)) != 0);
    call->says = to;
}

void call_hear(struct rpc_call *call, enum call_hears to)
{
    assert((hears_moves[call->hears] & TO(to)) != 0);
    call->hears = to;
}

struct rpc_call *call_create(struct rpc_poller *poller, grpc_call *core)
{
    struct rpc_call *call = pool_take(&poller->calls);

    if (call == NULL)
        return NULL;
    call->poller = poller;
    call->core = core;
    call->details = grpc_empty_slice();
    call->ps0_address = grpc_empty_slice();
    call->outgoing = grpc_raw_byte_buffer_create(NULL, 0);
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    poller->live++;
    return call;
}

void call_destroy(struct rpc_call *call)
{
    struct rpc_poller *poller = call->poller;

    grpc_call_unref(call->core);
    grpc_byte_buffer_destroy(call->outgoing);
    if (call->held != NULL)
        grpc_byte_buffer_destroy(call->held);
    grpc_slice_unref(call->details);
    grpc_slice_unref(call->ps0_address);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    memory_give(&memory_heap, call->refused, sizeof *call->refused);
    pool_give(&poller->calls, call);
    poller->live--;
}

void call_start(struct rpc_call *call, const grpc_op *ops, size_t count, struct tag *tag)
{
    call->batches++;
    const grpc_call_error refused = grpc_call_start_batch(call->core, ops, count, tag, NULL);
    assert(refused == GRPC_CALL_OK);
    (void)refused;
}

void *rpc_call_user(const struct rpc_call *call) { return call->user; }

void rpc_call_set_user(struct rpc_call *call, void *user) { call->user = user; }

bool rpc_call_writable(const struct rpc_call *call)
{
    return call->says == SAYS_WHAT_COMES && !call->over;
}

void rpc_call_cancel(struct rpc_call *call)
{
    call_hear(call, HEARS_NOTHING);
    grpc_call_cancel(call->core, NULL);
}
