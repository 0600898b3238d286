/* SPDX-License-Identifier: Apache-2.0 */
/* call.c -- a call's life: what it holds, when it is over, how it is told. */
#include "call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>

#include "core_text.h"
#include "error.h"

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
    call->sent = (struct tag){.done = call_send_done, .owner = call};
    call->received = (struct tag){.done = call_receive_done, .owner = call};
    poller->live++;
    return call;
}

static void destroy(struct rpc_call *call)
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

static enum sumac_reason read_reason(const grpc_metadata_array *trailing)
{
    for (size_t i = 0; i < trailing->count; i++) {
        if (grpc_slice_str_cmp(trailing->metadata[i].key, REASON_KEY) != 0)
            continue;
        char text[16] = {0};
        const grpc_slice value = trailing->metadata[i].value;
        if (GRPC_SLICE_LENGTH(value) < sizeof text)
            memcpy(text, GRPC_SLICE_START_PTR(value), GRPC_SLICE_LENGTH(value));
        return (enum sumac_reason)strtoul(text, NULL, 10);
    }
    return SUMAC_REASON_UNSPECIFIED;
}

static void tell_closed(struct rpc_call *call)
{
    struct sumac_error error = {.status = SUMAC_OK};

    if (call->server != NULL) {
        if (call->cancelled != 0)
            (void)fail(
                &error, SUMAC_CANCELLED, SUMAC_REASON_UNSPECIFIED,
                "the call was cancelled, ran out of time, or its connection was lost");
    } else if (call->refused != NULL) {
        error = *call->refused;
    } else if (call->status != GRPC_STATUS_OK) {
        const size_t bytes = GRPC_SLICE_LENGTH(call->details);
        const int shown = bytes < sizeof error.text ? (int)bytes : (int)sizeof error.text;
        (void)fail(
            &error, (enum sumac_status)call->status, read_reason(&call->trailing), "%.*s", shown,
            (const char *)GRPC_SLICE_START_PTR(call->details));
        core_text_make_plain(&error);
    }
    if (call->handler->closed != NULL)
        call->handler->closed(call, &error);
}

void call_settle(struct rpc_call *call)
{
    assert(call->batches > 0);
    call->batches--;
    if (!call->over || call->batches > 0)
        return;
    assert(call->waits != WAITS_FOR_REQUEST);
    tell_closed(call);
    if (call->server != NULL)
        server_forget(call->server, call);
    else
        channel_forget(call->channel, call);
    destroy(call);
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
