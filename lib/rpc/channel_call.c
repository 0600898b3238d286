/* SPDX-License-Identifier: Apache-2.0 */
/* channel_call.c -- a client's call: it begins, is open, and has its status. */
#include "channel.h"

#include <assert.h>

#include "text.h"

#define PATH_BYTES 300u

/* NULL: a method is not in the descriptor set, or there are too many services. */
static const struct known *know(struct rpc_channel *channel, const wire_service *service)
{
    for (unsigned i = 0; i < channel->known_count; i++)
        if (channel->known[i].service == service)
            return &channel->known[i];
    if (channel->known_count == CHANNEL_SERVICES_MAX || service->n_methods > CHANNEL_METHODS_MAX)
        return NULL;
    struct known *known = &channel->known[channel->known_count];
    for (unsigned i = 0; i < service->n_methods; i++) {
        const char *name = service->methods[i].name;
        char path[PATH_BYTES];
        if (!schema_find_method(channel->poller->schema, service->name, name, &known->shapes[i]))
            return NULL;
        (void)text_print(path, sizeof path, "/%s/%s", service->name, name);
        known->registered[i] = grpc_channel_register_call(channel->core, path, NULL, NULL);
    }
    known->service = service;
    channel->known_count++;
    return known;
}

static void open_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;

    if (ok) {
        if (call->says == SAYS_NOTHING_YET)
            call_say(call, SAYS_WHAT_COMES);
        call_send_ending(call);
        if (call->handler->opened != NULL && call->hears != HEARS_NOTHING)
            call->handler->opened(call);
    }
    call_settle(call);
}

static void status_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    (void)ok;

    call->over = true;
    call_settle(call);
}

static grpc_op beginning(bool wait_for_ready)
{
    return (grpc_op){
        .op = GRPC_OP_SEND_INITIAL_METADATA,
        .flags = wait_for_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                                      GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET
                                : 0u};
}

/* The batches of a new call: its status, its first answer, and what it begins with. */
static void begin(struct rpc_call *call, const wire_message *message, bool wait_for_ready)
{
    grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};

    status.data.recv_status_on_client.trailing_metadata = &call->trailing;
    status.data.recv_status_on_client.status = &call->status;
    status.data.recv_status_on_client.status_details = &call->details;
    call_start(call, &status, 1, &call->closed);
    grpc_op ops[3] = {beginning(wait_for_ready)};
    size_t count = 1;
    call->greeted = true;
    if (message != NULL) {
        call_fill(call, message, NULL, 0);
        ops[count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
        ops[count++].data.send_message.send_message = call->outgoing;
        ops[count++] = (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
        call_say(call, SAYS_LAST);
    }
    call_start(call, ops, count, &call->opened);
    call_receive(call);
}

enum sumac_status
rpc_channel_call(struct rpc_channel *channel, const struct rpc_start *start, struct rpc_call **call)
{
    const unsigned method = start->method;
    const struct known *known = know(channel, start->service);

    if (known == NULL || method >= start->service->n_methods)
        return SUMAC_UNIMPLEMENTED;
    assert(known->shapes[method].client_streams == (start->message == NULL));
    grpc_call *core = grpc_channel_create_registered_call(
        channel->core, NULL, GRPC_PROPAGATE_DEFAULTS, channel->poller->queue,
        known->registered[method],
        core_time(start->deadline_us != 0 ? start->deadline_us : UINT64_MAX), NULL);
    struct rpc_call *made = call_create(channel->poller, core);
    if (made == NULL) {
        grpc_call_unref(core);
        return SUMAC_RESOURCE_EXHAUSTED;
    }
    made->channel = channel;
    made->handler = start->handler;
    made->user = start->user;
    made->incoming = start->service->methods[method].output;
    made->opened = (struct tag){.done = open_done, .owner = made};
    made->sent = (struct tag){.done = call_send_done, .owner = made};
    made->received = (struct tag){.done = call_receive_done, .owner = made};
    made->closed = (struct tag){.done = status_done, .owner = made};
    calls_link(&channel->calls, made);
    begin(made, start->message, start->wait_for_ready);
    *call = made;
    return SUMAC_OK;
}
