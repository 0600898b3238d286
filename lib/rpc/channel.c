/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c -- a client's connection to one server: opened, closed, and freed after its last call.
 */
#include "channel.h"

#include <grpc/grpc_security.h>

#define MESSAGE_BYTES_MAX (64 << 20) /* of one answer: a long list; bulk comes in chunks */
#define KEEPALIVE_MS 20000
#define KEEPALIVE_ANSWER_MS_MAX 20000
#define CONNECT_MS_MAX 5000
#define ATTEMPT_MS_MAX 1000 /* for a closed channel to go on connecting */
#define BACKOFF_MS_MIN 100
#define BACKOFF_MS_MAX 2000

enum sumac_status
rpc_channel_open(struct rpc_poller *poller, const char *target, struct rpc_channel **channel)
{
    struct rpc_channel *made = memory_take(&memory_heap, sizeof *made);

    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    grpc_arg args[] = {
        core_integer(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1), /* a connection of its own */
        core_integer(GRPC_ARG_ENABLE_RETRIES, 0),            /* resending is the session's */
        core_integer(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        core_integer(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        /* A ps compresses nothing: what has nothing to do stands in no message's way. */
        core_integer(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1),
        core_integer(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),
        core_integer(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0),
        core_integer(GRPC_ARG_ENABLE_CHANNELZ, 0),
        core_integer(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, MESSAGE_BYTES_MAX),
        core_integer(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
        core_integer(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_ANSWER_MS_MAX),
        core_integer(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        core_integer(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_MS_MAX),
        core_integer(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_MS_MIN),
        core_integer(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MS_MAX),
        core_integer(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000),
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
