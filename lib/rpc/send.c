/* SPDX-License-Identifier: Apache-2.0 */
/* send.c -- messages, statuses and half-closes on their way out: one at a time, bulk by reference.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/slice_buffer.h>

#include "call.h"
#include "text.h"

/* Lent bytes, told back when gRPC drops its slice. From the heap: a slice outlives its call, and
 * any thread may drop it. */
struct lent {
    void (*released)(void *context, uint64_t id);
    void *context;
    uint64_t id;
};

static void give_back(void *data)
{
    const struct lent *lent = data;

    lent->released(lent->context, lent->id);
    free(data);
}

static grpc_slice copied(struct span bytes)
{
    return grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.bytes);
}

/* A slice that refers to the payload's bytes; a copy when there is no memory to note whose they
 * are. */
static grpc_slice referred(const struct rpc_payload *payload)
{
    struct lent *lent = malloc(sizeof *lent);

    if (lent == NULL) {
        const grpc_slice slice = copied(payload->bytes);
        payload->released(payload->context, payload->id);
        return slice;
    }
    *lent = (struct lent){
        .released = payload->released, .context = payload->context, .id = payload->id};
    /* gRPC only reads what it sends. */
    return grpc_slice_new_with_user_data(
        (void *)(uintptr_t)payload->bytes.data, payload->bytes.bytes, give_back, lent);
}

static bool is_copied(const struct rpc_payload *payload)
{
    return payload->released == NULL || payload->bytes.bytes <= RPC_COPIED_BYTES_MAX;
}

/* Copy a run of payloads behind one another and tell their owners. */
static void copy_run(const struct rpc_payload *payload, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        if (payload[i].bytes.bytes > 0)
            memcpy(out, payload[i].bytes.data, payload[i].bytes.bytes);
        out += payload[i].bytes.bytes;
        if (payload[i].released != NULL)
            payload[i].released(payload[i].context, payload[i].id);
    }
}

void call_fill(
    struct rpc_call *call, const wire_message *message, const struct rpc_payload *payload,
    size_t payload_count)
{
    grpc_slice_buffer *slices = &call->outgoing->data.raw.slice_buffer;

    grpc_slice_buffer_reset_and_unref(slices);
    uint64_t payload_bytes = 0;
    for (size_t i = 0; i < payload_count; i++)
        payload_bytes += payload[i].bytes.bytes;
    size_t header_bytes = wire_packed_bytes(message, payload_bytes);
    size_t done = 0;
    do {
        size_t run = 0, run_bytes = 0;
        for (; done + run < payload_count && is_copied(&payload[done + run]); run++)
            run_bytes += payload[done + run].bytes.bytes;
        grpc_slice slice = grpc_slice_malloc(header_bytes + run_bytes);
        if (header_bytes > 0 && done == 0)
            wire_pack(message, payload_bytes, GRPC_SLICE_START_PTR(slice));
        copy_run(&payload[done], run, GRPC_SLICE_START_PTR(slice) + header_bytes);
        grpc_slice_buffer_add(slices, slice);
        header_bytes = 0;
        for (done += run; done < payload_count && !is_copied(&payload[done]); done++)
            grpc_slice_buffer_add(slices, referred(&payload[done]));
    } while (done < payload_count);
}

static grpc_op greeting(void) { return (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA}; }

/* The status, with its reason and the address of ps 0 when there are; `trailing` has TRAILING_MAX
 * places and must live until the batch has started. */
static grpc_op status_op(struct rpc_call *call, grpc_metadata *trailing)
{
    grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
    size_t count = 0;

    op.data.send_status_from_server.status = call->status;
    op.data.send_status_from_server.status_details = &call->details;
    if (call->reason != SUMAC_REASON_UNSPECIFIED) {
        char number[16];
        (void)text_print(number, sizeof number, "%d", (int)call->reason);
        trailing[count++] = (grpc_metadata){
            .key = grpc_slice_from_static_string(REASON_KEY),
            .value = grpc_slice_from_copied_string(number)}; /* so short a slice owns no memory */
    }
    if (GRPC_SLICE_LENGTH(call->ps0_address) > 0)
        trailing[count++] = (grpc_metadata){
            .key = grpc_slice_from_static_string(PS0_ADDRESS_KEY), .value = call->ps0_address};
    op.data.send_status_from_server.trailing_metadata = trailing;
    op.data.send_status_from_server.trailing_metadata_count = count;
    return op;
}

/* Instead of an answer there is no room for. */
static void refuse_answer(struct rpc_call *call)
{
    char text[160];

    (void)text_print(
        text, sizeof text,
        "clients that do not read hold %u bytes of answers, the most that there may be: try again "
        "later",
        RPC_UNREAD_BYTES_MAX);
    grpc_slice_buffer_reset_and_unref(&call->outgoing->data.raw.slice_buffer);
    rpc_call_finish(call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY, text);
}

void rpc_call_send(
    struct rpc_call *call, const wire_message *message, const struct rpc_payload *payload,
    size_t payload_count)
{
    assert(rpc_call_writable(call));
    grpc_op ops[3];
    size_t count = 0;
    grpc_metadata trailing[TRAILING_MAX];
    call_fill(call, message, payload, payload_count);
    if ((call->answers_once || call->own) &&
        !server_note_unread(call->server, call, grpc_byte_buffer_length(call->outgoing))) {
        refuse_answer(call);
        return;
    }
    if (!call->greeted)
        ops[count++] = greeting();
    ops[count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
    ops[count++].data.send_message.send_message = call->outgoing;
    call_say(call, call->answers_once ? SAYS_LAST : SAYS_A_MESSAGE);
    if (call->answers_once) {
        call_hear(call, HEARS_NOTHING);
        server_note_ending(call->server, call);
        ops[count++] = status_op(call, trailing);
    }
    call->greeted = true;
    call_start(call, ops, count, &call->sent);
    rpc_ask(call->poller);
}

void call_send_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;

    if (call->says == SAYS_A_MESSAGE)
        call_say(call, SAYS_WHAT_COMES);
    if (call->unread_bytes > 0)
        server_end_unread(call->server, call, ok);
    call_send_ending(call);
    if (ok && rpc_call_writable(call) && call->handler->writable != NULL)
        call->handler->writable(call);
    call_settle(call);
}

static void finish_done(void *owner, bool ok)
{
    (void)ok;
    call_settle(owner);
}

void call_send_ending(struct rpc_call *call)
{
    if (call->says != SAYS_LAST_SOON || call->over)
        return;
    grpc_op ops[2];
    size_t count = 0;
    grpc_metadata trailing[TRAILING_MAX];
    call_say(call, SAYS_LAST);
    call->finished = (struct tag){.done = finish_done, .owner = call};
    if (call->server == NULL) {
        ops[count++] = (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    } else {
        if (!call->greeted)
            ops[count++] = greeting();
        call->greeted = true;
        ops[count++] = status_op(call, trailing);
    }
    call_start(call, ops, count, &call->finished);
}

void rpc_call_finish(
    struct rpc_call *call, enum sumac_status status, enum sumac_reason reason, const char *text)
{
    const bool nothing_before = call->says == SAYS_WHAT_COMES;

    assert(call->server != NULL);
    if (call->says >= SAYS_LAST_SOON)
        return;
    call_say(call, SAYS_LAST_SOON);
    call_hear(call, HEARS_NOTHING);
    server_note_ending(call->server, call);
    call->status = (grpc_status_code)status;
    call->reason = reason;
    if (text != NULL && status != SUMAC_OK)
        call->details = grpc_slice_from_copied_string(text);
    if (nothing_before)
        call_send_ending(call);
}

void rpc_call_set_ps0_address(struct rpc_call *call, const char *address)
{
    const grpc_slice value = grpc_slice_from_copied_string(address);

    assert(call->server != NULL && GRPC_SLICE_LENGTH(call->ps0_address) == 0);
    if (grpc_header_nonbin_value_is_legal(value))
        call->ps0_address = value;
    else
        grpc_slice_unref(value);
}

void rpc_call_end(struct rpc_call *call)
{
    const bool nothing_before = call->says == SAYS_WHAT_COMES;

    assert(call->server == NULL);
    if (call->says >= SAYS_LAST_SOON)
        return;
    call_say(call, SAYS_LAST_SOON);
    if (nothing_before)
        call_send_ending(call);
}
