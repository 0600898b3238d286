/* SPDX-License-Identifier: Apache-2.0 */
/* over.c -- a call is over when its last batch has completed: its handler hears of it, its owner
 * forgets it, and its memory is given back. */
#include "server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/slice.h>

#include "core_text.h"
#include "error.h"

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
    call_destroy(call);
}
