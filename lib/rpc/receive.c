/* SPDX-License-Identifier: Apache-2.0 */
/* receive.c -- messages on their way in: unpacked in place, checked, handed over. */
#include <inttypes.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "call.h"
#include "error.h"
#include "server.h"

/* Where the buffer's slices lie, as spans in the poller's arena. NULL: no memory. */
static const struct span *
spans_of(struct arena *arena, const grpc_byte_buffer *buffer, size_t *count)
{
    const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
    struct span *spans = arena_take(arena, slices->count * sizeof *spans);

    *count = slices->count;
    for (size_t i = 0; spans != NULL && i < slices->count; i++)
        spans[i] = (struct span){
            .data = GRPC_SLICE_START_PTR(slices->slices[i]),
            .bytes = GRPC_SLICE_LENGTH(slices->slices[i])};
    return spans;
}

/* The message is no good: its sender is told, and the call ends. */
static void refuse(struct rpc_call *call, const struct sumac_error *error)
{
    call_hear(call, HEARS_NOTHING);
    if (call->server != NULL) {
        rpc_call_finish(call, error->status, error->reason, error->text);
        return;
    }
    call->refused = memory_take(&memory_heap, sizeof *call->refused);
    if (call->refused != NULL) {
        *call->refused = *error;
        call->refused->status = SUMAC_INTERNAL; /* nothing that the caller could mend */
    }
    grpc_call_cancel(call->core, NULL);
}

/* Unpacking takes far longer than receiving: what the method's messages never have is not
 * unpacked. */
static enum sumac_status check_bytes(
    const struct rpc_call *call, const struct span *spans, size_t count, struct sumac_error *error)
{
    const uint64_t max = call->method != NULL ? call->method->message_bytes_max : UINT64_MAX;
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += spans[i].bytes;
    if (bytes <= max)
        return SUMAC_OK;
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_MESSAGE_TOO_LARGE,
        "a %s of %" PRIu64 " bytes: %s takes at most %" PRIu64, call->incoming->short_name, bytes,
        call->method->descriptor->name, max);
}

void call_deliver(struct rpc_call *call, grpc_byte_buffer *buffer)
{
    struct arena *arena = &call->poller->arena;
    struct wire_received received;
    struct sumac_error error;
    size_t count;

    call->heard = true;
    arena_reset_to(
        arena, call->server != NULL ? WIRE_REQUEST_ARENA_BYTES_MAX : WIRE_ARENA_BYTES_MAX);
    const struct span *spans = spans_of(arena, buffer, &count);
    enum sumac_status status =
        spans == NULL ? fail_for_memory(&error, "no memory to receive a %s", call->incoming->name)
                      : check_bytes(call, spans, count, &error);
    if (status == SUMAC_OK)
        status = wire_unpack(call->incoming, spans, count, arena, &received, &error);
    if (status != SUMAC_OK)
        refuse(call, &error);
    else if (call->handler->message != NULL)
        call->handler->message(call, &received);
    grpc_byte_buffer_destroy(buffer);
}

/* No message, but the end: of what the client sends, or, at the client, of the call, whose status
 * follows. */
static void end_of_messages(struct rpc_call *call)
{
    if (call->server == NULL || call->hears == HEARS_NOTHING ||
        grpc_call_failed_before_recv_message(call->core))
        return;
    if (call->handler->half_closed != NULL)
        call->handler->half_closed(call);
    else
        rpc_call_finish(call, SUMAC_OK, SUMAC_REASON_UNSPECIFIED, NULL);
}

static void take(struct rpc_call *call, grpc_byte_buffer *buffer)
{
    if (call->hears == HEARS_NOTHING)
        grpc_byte_buffer_destroy(buffer);
    else
        call_deliver(call, buffer);
    call_receive_soon(call);
}

void call_receive_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    grpc_byte_buffer *buffer = call->arriving;

    call->arriving = NULL;
    if (buffer == NULL) {
        if (ok)
            end_of_messages(call);
    } else if (call->hears == HEARS_LATER) {
        call->held = buffer;
    } else {
        take(call, buffer);
    }
    call_settle(call);
}

void rpc_call_pause(struct rpc_call *call)
{
    if (call->hears == HEARS_ALL)
        call_hear(call, HEARS_LATER);
}

void rpc_call_resume(struct rpc_call *call)
{
    if (call->hears == HEARS_LATER)
        call_hear(call, HEARS_ALL);
    grpc_byte_buffer *buffer = call->held;
    call->held = NULL;
    if (buffer == NULL)
        return;
    take(call, buffer);
}
