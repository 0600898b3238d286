/* SPDX-License-Identifier: Apache-2.0 */
/* ps_peers.c -- ps 0's ends of its streams to the other ps: dialled, lost, dialled again. */
#include <stdlib.h>

#include "ps_state.h"

/* 20 ms, doubled with each failure up to 1 s, and up to a quarter more, so that many do not come at
 * once. */
static uint64_t backoff_us(struct ps_peer *peer)
{
    uint64_t ms = PS_REDIAL_MS_MIN;

    for (uint32_t i = 1; i < peer->failures && ms < PS_REDIAL_MS_MAX; i++)
        ms *= 2;
    ms = ms < PS_REDIAL_MS_MAX ? ms : PS_REDIAL_MS_MAX;
    return ms * 1000 + ps_random_bits(&peer->ps->random) % (ms * 250);
}

static void redial_later(struct ps_peer *peer, uint64_t now_us)
{
    peer->failures++;
    peer->redial_us = now_us + backoff_us(peer);
    if (peer->redial_us < peer->ps->redial_us)
        peer->ps->redial_us = peer->redial_us;
}

static void tell_up(struct ps_peer *peer)
{
    struct lane_event event = {.kind = LANE_EVENT_PEER_UP, .ps = peer->index};

    peer->up = true;
    peer->failures = 0;
    ps_step(peer->ps, &event);
}

static bool is_current(const struct ps_peer *peer, const struct rpc_call *call)
{
    return peer->call == call && !peer->ps->exiting;
}

static void writable(struct rpc_call *call)
{
    struct ps_peer *const peer = rpc_call_user(call);

    if (is_current(peer, call))
        tell_up(peer);
}

static void opened(struct rpc_call *call)
{
    if (rpc_call_writable(call))
        writable(call);
}

static void message(struct rpc_call *call, const struct wire_received *received)
{
    struct ps_peer *const peer = rpc_call_user(call);

    if (!is_current(peer, call))
        return;
    struct lane_event event = {
        .kind = LANE_EVENT_REPORT,
        .ps = peer->index,
        .report = (const wire_peer_report *)received->message,
    };
    ps_step(peer->ps, &event);
}

/* The lane hears of each failure to get through: why it waits may change. */
static void closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct ps_peer *const peer = rpc_call_user(call);

    if (peer->call != call)
        return;
    peer->call = NULL;
    redial_later(peer, ps_now_us());
    peer->up = false;
    if (peer->ps->exiting)
        return;
    struct lane_event event = {
        .kind = LANE_EVENT_PEER_DOWN,
        .ps = peer->index,
        .text = error->status == SUMAC_OK ? "it ended the stream" : error->text,
        .reason = error->reason,
    };
    ps_step(peer->ps, &event);
}

static const struct rpc_handler handler = {
    .message = message, .opened = opened, .writable = writable, .closed = closed};

static void dial_now(struct ps_peer *peer, uint64_t now_us)
{
    /* A new channel connects at once; one that has failed before waits as long as gRPC pleases. */
    rpc_channel_close(peer->channel);
    peer->channel = NULL;
    enum sumac_status status = rpc_channel_open(peer->ps->poller, peer->address, &peer->channel);
    if (status == SUMAC_OK)
        status = rpc_channel_call(
            peer->channel,
            &(struct rpc_start){
                .service = WIRE_PEER,
                .method = WIRE_PEER_ATTEND,
                .handler = &handler,
                .user = peer},
            &peer->call);
    if (status == SUMAC_OK)
        return;
    peer->call = NULL;
    redial_later(peer, now_us);
}

void ps_peers_tick(struct ps *ps, uint64_t now_us)
{
    ps->redial_us = UINT64_MAX;
    for (uint32_t i = 0; i < LANE_PS_MAX; i++) {
        struct ps_peer *const peer = &ps->peers[i];
        if (peer->address == NULL || peer->call != NULL)
            continue;
        if (peer->redial_us <= now_us)
            dial_now(peer, now_us);
        if (peer->call == NULL && peer->redial_us < ps->redial_us)
            ps->redial_us = peer->redial_us;
    }
}

uint32_t ps_peers_end(struct ps *ps)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < LANE_PS_MAX; i++) {
        if (ps->peers[i].call == NULL)
            continue;
        if (ps->peers[i].up)
            rpc_call_end(ps->peers[i].call);
        else
            rpc_call_cancel(ps->peers[i].call);
        open++;
    }
    return open;
}

void ps_peers_close(struct ps *ps)
{
    for (uint32_t i = 0; i < LANE_PS_MAX; i++) {
        rpc_channel_close(ps->peers[i].channel);
        free(ps->peers[i].address);
        ps->peers[i].channel = NULL;
        ps->peers[i].address = NULL;
    }
}
