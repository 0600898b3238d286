/* SPDX-License-Identifier: Apache-2.0 */
/* ps_effects.c -- an event for the lane, and what the lane wants done, done. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ps_state.h"

_Static_assert(
    (int)PS_EXIT_NO_MEMORY == LANE_EXIT_NO_MEMORY, "who has no memory exits the same way");

void ps_exit(struct ps *ps, int exit_code)
{
    if (ps->exiting)
        return;
    ps->exiting = true;
    const bool obeys = exit_code == 128 + SIGTERM && ps->signalled != 0;
    ps->exit_code = obeys ? 128 + ps->signalled : exit_code;
}

/* On any thread: gRPC drops a slice of bytes that the lane lent. */
static void note_released(void *context, uint64_t id)
{
    struct ps_held *const held = context;
    (void)id;

    release_queue_push(held->released, &held->node);
}

/* For bytes that will not be sent. */
static void release_all(struct ps *ps, const struct lane_effect *effect)
{
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        if (effect->payload[i].hold == 0)
            continue;
        struct ps_held *const held = pool_take(&ps->helds);
        if (held == NULL) {
            ps_exit(ps, PS_EXIT_NO_MEMORY);
            return;
        }
        held->node.id = effect->payload[i].hold;
        release_queue_push(&ps->released, &held->node);
    }
}

static bool reserve_payload(struct ps *ps, uint32_t count)
{
    if (count <= ps->payload_capacity)
        return true;
    struct rpc_payload *const grown = realloc(ps->payload, count * sizeof *grown);
    if (grown == NULL)
        return false;
    ps->payload = grown;
    ps->payload_capacity = count;
    return true;
}

/* False: no memory; nothing has been taken. */
static bool lend_payload(struct ps *ps, const struct lane_effect *effect)
{
    if (!reserve_payload(ps, effect->payload_count))
        return false;
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        const struct lane_bytes *const bytes = &effect->payload[i];
        ps->payload[i] = (struct rpc_payload){.bytes = bytes->bytes};
        if (bytes->hold == 0)
            continue;
        struct ps_held *const held = pool_take(&ps->helds);
        if (held == NULL) {
            while (i-- > 0)
                if (ps->payload[i].context != NULL)
                    pool_give(&ps->helds, ps->payload[i].context);
            return false;
        }
        held->node.id = bytes->hold;
        held->released = &ps->released;
        ps->payload[i].released = note_released;
        ps->payload[i].context = held;
    }
    return true;
}

static bool is_bulky(const struct lane_effect *effect)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < effect->payload_count; i++)
        bytes += effect->payload[i].bytes.bytes;
    return bytes > PS_BULK_BYTES;
}

static void send(struct ps *ps, const struct lane_effect *effect, const wire_message *message)
{
    struct ps_link *const link = ps_links_find(&ps->links, effect->stream);

    /* It ended while the lane was at work; STREAM_CLOSED is on its way. */
    if (link == NULL || !rpc_call_writable(link->call)) {
        release_all(ps, effect);
        return;
    }
    if (!lend_payload(ps, effect)) {
        release_all(ps, effect);
        rpc_call_finish(
            link->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "the ps has no memory to send this");
        return;
    }
    if (link->half_closed)
        link->spoke_us = ps_now_us();
    ps_turns_note(&ps->turns, link, is_bulky(effect));
    rpc_call_send(link->call, message, ps->payload, effect->payload_count);
}

/* A client of another program may know one ps only. */
static void name_ps0(const struct ps *ps, struct rpc_call *call)
{
    const char *const address = lane_ps0_address(ps_core_lane(ps->core));

    if (address != NULL)
        rpc_call_set_ps0_address(call, address);
}

static void
finish(struct ps *ps, uint64_t id, const wire_message *reply, const struct sumac_error *error)
{
    struct ps_link *const link = ps_links_find(&ps->links, id);

    if (link == NULL || link->finished)
        return;
    link->finished = true;
    if (reply == NULL && error->reason == SUMAC_REASON_NOT_CONTROLLER && !link->is_stream)
        name_ps0(ps, link->call);
    if (reply == NULL)
        rpc_call_finish(link->call, error->status, error->reason, error->text);
    else if (rpc_call_writable(link->call))
        rpc_call_send(link->call, reply, NULL, 0);
}

static void compute(struct ps *ps, const struct lane_compute *compute)
{
    const bool queued = compute_pool_submit(
        ps->pool, compute->job, compute->slices, compute->combines, compute->slice_count);

    if (!queued) {
        ps_log(ps->index, "ps %u has no memory to queue vector work", ps->index);
        ps_exit(ps, PS_EXIT_NO_MEMORY);
    }
}

void ps_peer_dial(struct ps *ps, uint32_t index, const char *address)
{
    struct ps_peer *const peer = &ps->peers[index];

    if (peer->address != NULL && strcmp(peer->address, address) == 0)
        return;
    rpc_channel_close(peer->channel);
    free(peer->address);
    *peer = (struct ps_peer){.ps = ps, .index = index, .address = strdup(address)};
    if (peer->address == NULL)
        ps_exit(ps, PS_EXIT_NO_MEMORY);
    ps->redial_us = 0;
}

void ps_peer_order(struct ps *ps, uint32_t index, const wire_peer_order *order)
{
    struct ps_peer *const peer = &ps->peers[index];

    /* Lost meanwhile: PEER_DOWN is on its way, and what was not answered is said again. */
    if (peer->call != NULL && rpc_call_writable(peer->call))
        rpc_call_send(peer->call, &order->base, NULL, 0);
}

void ps_carry_out(struct ps *ps, const struct lane_effect *effect)
{
    switch (effect->kind) {
    case LANE_EFFECT_ANSWER:
        send(ps, effect, &effect->push_answer->base);
        break;
    case LANE_EFFECT_PULLED:
        send(ps, effect, &effect->pull_answer->base);
        break;
    case LANE_EFFECT_REPORT:
        send(ps, effect, &effect->report->base);
        break;
    case LANE_EFFECT_CLOSE_STREAM:
        finish(ps, effect->stream, NULL, &effect->error);
        break;
    case LANE_EFFECT_REPLY:
        finish(ps, effect->call, effect->reply, NULL);
        break;
    case LANE_EFFECT_FAIL:
        finish(ps, effect->call, NULL, &effect->error);
        break;
    case LANE_EFFECT_DIAL:
        ps_peer_dial(ps, effect->ps, effect->text);
        break;
    case LANE_EFFECT_ORDER:
        ps_peer_order(ps, effect->ps, effect->order);
        break;
    case LANE_EFFECT_COMPUTE:
        compute(ps, effect->compute);
        break;
    case LANE_EFFECT_RECORD:
    case LANE_EFFECT_RUN_OVER:
        assert(false); /* there is no journal, and the lane was told so; the other is ps_core's */
        break;
    case LANE_EFFECT_LOG:
        ps_log(ps->index, "%s", effect->text);
        break;
    case LANE_EFFECT_SERVING:
        rpc_server_set_serving(ps->server, effect->serving);
        break;
    case LANE_EFFECT_EXIT:
        if (effect->text != NULL && effect->text[0] != '\0')
            ps_log(ps->index, "%s", effect->text);
        ps->end = effect->error;
        ps_exit(ps, effect->exit_code);
        break;
    case LANE_EFFECT_WAKE:
        if (effect->at_us < ps->wake_us)
            ps->wake_us = effect->at_us;
        break;
    }
}

void ps_step(struct ps *ps, struct lane_event *event)
{
    struct lane_effects effects = {0};

    /* Effects are lent until the next step: carrying one out must not make an event at once. */
    assert(!ps->stepping);
    ps->stepping = true;
    event->now_us = ps->stepped_us = ps_now_us();
    if (event->kind == LANE_EVENT_START || event->kind == LANE_EVENT_CALL) {
        event->random[0] = ps_random_bits(&ps->random);
        event->random[1] = ps_random_bits(&ps->random);
    }
    event->resident_bytes = ps->resident_bytes;
    event->connections = ps->connections.open;
    event->connections_refused = ps->connections.refused;
    ps_core_step(ps->core, event, &effects);
    ps->unheard_us += effects.took_us;
    for (uint32_t i = 0; i < effects.count; i++)
        ps_carry_out(ps, &effects.items[i]);
    ps->stepping = false;
}

void ps_take_released(struct ps *ps)
{
    struct release_node *node = release_queue_take(&ps->released);

    while (node != NULL) {
        struct release_node *const next = node->next;
        struct lane_event event = {.kind = LANE_EVENT_RELEASED, .hold = node->id};
        pool_give(&ps->helds, node);
        if (!ps->exiting)
            ps_step(ps, &event);
        node = next;
    }
}
