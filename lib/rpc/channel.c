/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c -- a client's connection to one server, and the calls that it begins. */
#include "call.h"

#include <assert.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc_security.h>

#include "text.h"

#define SERVICES_MAX 8u
#define METHODS_PER_SERVICE_MAX 16u
#define MESSAGE_BYTES_MAX (64 << 20) /* of one answer: a long list; bulk comes in chunks */
#define KEEPALIVE_MS 20000
#define KEEPALIVE_ANSWER_MS_MAX 20000
#define CONNECT_MS_MAX 5000
#define ATTEMPT_MS_MAX 1000 /* for a closed channel to go on connecting */
#define BACKOFF_MS_MIN 100
#define BACKOFF_MS_MAX 2000
#define PATH_BYTES 300u

/* A service that was called once. */
struct known {
    const wire_service *service;
    struct schema_method shapes[METHODS_PER_SERVICE_MAX];
    void *registered[METHODS_PER_SERVICE_MAX];
};

struct rpc_channel {
    struct rpc_poller *poller;
    grpc_channel *core; /* NULL: closed, and waiting for its calls' end */
    struct known known[SERVICES_MAX];
    unsigned known_count;
    struct rpc_call *calls;
    struct tag attempt_over; /* of a closed channel that was connecting */
};

static grpc_arg integer(const char *key, int value)
{
    return (grpc_arg){
        .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key, .value.integer = value};
}

enum sumac_status
rpc_channel_open(struct rpc_poller *poller, const char *target, struct rpc_channel **channel)
{
    struct rpc_channel *made = memory_take(&memory_heap, sizeof *made);

    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    grpc_arg args[] = {
        integer(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1), /* a connection of its own */
        integer(GRPC_ARG_ENABLE_RETRIES, 0),            /* resending is the session's */
        integer(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        integer(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        /* A ps compresses nothing: what has nothing to do stands in no message's way. */
        integer(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1),
        integer(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),
        integer(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0),
        integer(GRPC_ARG_ENABLE_CHANNELZ, 0),
        integer(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, MESSAGE_BYTES_MAX),
        integer(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
        integer(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_ANSWER_MS_MAX),
        integer(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        integer(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_MS_MAX),
        integer(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_MS_MIN),
        integer(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MS_MAX),
        integer(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000),
    };
    const grpc_channel_args all = {.num_args = sizeof args / sizeof *args, .args = args};
    grpc_channel_credentials *open = grpc_insecure_credentials_create();
    *made = (struct rpc_channel){.poller = poller, .core = grpc_channel_create(target, open, &all)};
    grpc_channel_credentials_release(open);
    *channel = made;
    return SUMAC_OK;
}

static void destroy_if_done(struct rpc_channel *channel)
{
    if (channel->core == NULL && channel->calls == NULL)
        memory_give(&memory_heap, channel, sizeof *channel);
}

static void destroy_core(struct rpc_channel *channel)
{
    grpc_channel_destroy(channel->core);
    channel->core = NULL;
    destroy_if_done(channel);
}

static void end_attempt(void *owner, bool ok)
{
    struct rpc_channel *channel = owner;
    (void)ok;

    channel->poller->live--;
    destroy_core(channel);
}

/* gRPC 1.51 never closes the socket of a channel that is destroyed after its connection was made
 * and before the server's SETTINGS came. So an attempt that is under way ends first. */
void rpc_channel_close(struct rpc_channel *channel)
{
    if (channel == NULL)
        return;
    for (struct rpc_call *call = channel->calls; call != NULL; call = call->next)
        rpc_call_cancel(call);
    if (grpc_channel_check_connectivity_state(channel->core, 0) != GRPC_CHANNEL_CONNECTING) {
        destroy_core(channel);
        return;
    }
    channel->attempt_over = (struct tag){.done = end_attempt, .owner = channel};
    channel->poller->live++;
    grpc_channel_watch_connectivity_state(
        channel->core, GRPC_CHANNEL_CONNECTING,
        gpr_time_add(
            gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ATTEMPT_MS_MAX, GPR_TIMESPAN)),
        channel->poller->queue, &channel->attempt_over);
}

void channel_forget(struct rpc_channel *channel, struct rpc_call *call)
{
    calls_unlink(&channel->calls, call);
    destroy_if_done(channel);
}

/* NULL: a method is not in the descriptor set, or there are too many services. */
static const struct known *know(struct rpc_channel *channel, const wire_service *service)
{
    for (unsigned i = 0; i < channel->known_count; i++)
        if (channel->known[i].service == service)
            return &channel->known[i];
    if (channel->known_count == SERVICES_MAX || service->n_methods > METHODS_PER_SERVICE_MAX)
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

static gpr_timespec deadline_at(uint64_t us)
{
    if (us == 0)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return (gpr_timespec){
        .tv_sec = (int64_t)(us / 1000000),
        .tv_nsec = (int32_t)(us % 1000000 * 1000),
        .clock_type = GPR_CLOCK_MONOTONIC};
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
        known->registered[method], deadline_at(start->deadline_us), NULL);
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
    made->closed = (struct tag){.done = status_done, .owner = made};
    calls_link(&channel->calls, made);
    begin(made, start->message, start->wait_for_ready);
    *call = made;
    return SUMAC_OK;
}
