/* SPDX-License-Identifier: Apache-2.0 */
/* network.c -- streams: messages that are sent, out, under way and there; cuts that lose a suffix
 * of them. */
#include "network.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "checker.h"
#include "error.h"
#include "faults.h"
#include "network_state.h"
#include "process_client.h"
#include "process_ps.h"

#define CALLER_LEARNS_US_MAX 400000u
#define PS_LEARNS_US_MAX 4000000u
#define KEEPALIVE_US 40000000u
#define UNTAKEN_MAX 2u /* messages under way to who takes nothing */

/* A message that was sent and is not out. */
struct parcel {
    struct letter *head; /* without the cargo, until it is out */
    const wire_message *message;
    struct cargo *cargo;
    uint32_t cargo_count;
    bool may_be_overtaken;
    struct letter *behind; /* a commit, or NULL */
};

struct network *network_make(struct world *world)
{
    struct network *network = world_take(world, sizeof *network);

    network->streams = world_take(world, STREAMS_MAX * sizeof *network->streams);
    network->calls = world_take(world, CALLS_MAX * sizeof *network->calls);
    return network;
}

uint32_t network_count(const struct world *world) { return world->network->stream_count; }

struct stream *network_at(struct world *world, uint32_t index)
{
    return world->network->streams[index];
}

struct stream *network_find(struct world *world, uint64_t id)
{
    return id == 0 || id > network_count(world) ? NULL : network_at(world, (uint32_t)id - 1);
}

static uint32_t receiver(const struct stream *stream, enum way way)
{
    return way == WAY_TO_PS ? stream->ps : stream->caller;
}

static bool caller_lives(const struct world *world, const struct stream *stream)
{
    return world_alive(world, stream->caller, stream->caller_life);
}

/* When something sent now arrives: after all before it, and after a stall. */
static uint64_t arrival_us(struct world *world, const struct stream *stream, enum way way)
{
    uint64_t at_us = world->now_us + world_delay_us(world);
    const uint64_t stalled_us = world->network->stalled_until_us[stream->caller][stream->ps];

    if (way == WAY_TO_PS && stream->caller < SIM_PS_MAX)
        at_us += world->orders_late_us;
    if (at_us < stalled_us)
        at_us = stalled_us + world_below(world, 1000);
    const uint64_t clear_us = stream->channels[way].clear_us;
    return at_us < clear_us ? clear_us : at_us;
}

static void
post(struct world *world, struct stream *stream, enum way way, event_handler *handler, void *data)
{
    struct channel *channel = &stream->channels[way];

    channel->clear_us = arrival_us(world, stream, way);
    checker_took(world, stream->caller, channel->clear_us - world->now_us);
    channel->under_way++;
    const uint32_t process = receiver(stream, way);
    if (way == WAY_TO_CALLER && !caller_lives(world, stream))
        return;
    world_at(world, channel->clear_us, process, handler, stream->id, data);
}

/* Does what was under way arrive now? */
static bool arrives(struct world *world, struct channel *channel, const struct event *event)
{
    if (channel->late_until_us > world->now_us) {
        world_at(
            world, channel->late_until_us, event->process, event->handler, event->number,
            event->data);
        return false;
    }
    channel->under_way--;
    if (!channel->cut)
        return true;
    if (channel->spared == 0)
        return false;
    channel->spared--;
    return true;
}

/* ---- opening */

static void told_writable(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    if (stream->at_caller && !stream->over)
        caller_writable(world, stream);
}

static void told_lost(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    if (!stream->at_caller)
        return;
    stream->at_caller = false;
    stream->channels[WAY_TO_CALLER].cut = true;
    stream->channels[WAY_TO_CALLER].spared = 0;
    caller_lost(world, stream);
}

static void opened_at_ps(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    if (!arrives(world, &stream->channels[WAY_TO_PS], event))
        return;
    stream->at_ps = true;
    ps_stream_opened(world, stream);
    if (!stream->over && caller_lives(world, stream))
        world_after(world, world_delay_us(world), stream->caller, told_writable, stream->id, NULL);
}

/* Nobody listens there. */
static void refused(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    if (stream->over)
        return;
    stream->over = true;
    fail(
        &stream->error, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "%s is not there",
        world->processes[stream->ps].name);
    told_lost(world, event);
}

struct stream *network_open(
    struct world *world, uint32_t caller, uint32_t ps, enum lane_stream_kind kind,
    uint64_t generation)
{
    struct network *network = world->network;

    assert(network->stream_count < STREAMS_MAX);
    struct stream *stream = world_take(world, sizeof *stream);
    network->streams[network->stream_count++] = stream;
    stream->id = network->stream_count;
    stream->kind = kind;
    stream->ps = ps;
    stream->caller = caller;
    stream->caller_life = world->processes[caller].life;
    stream->generation = generation;
    stream->at_caller = true;
    if (world->processes[ps].running && !world->processes[ps].hung)
        post(world, stream, WAY_TO_PS, opened_at_ps, NULL);
    else if (world->processes[ps].running)
        world_after(world, KEEPALIVE_US / 2, caller, refused, stream->id, NULL);
    else
        world_after(world, world_delay_us(world), caller, refused, stream->id, NULL);
    return stream;
}

/* ---- sending */

static void released(struct world *world, const struct event *event)
{
    ps_released(world, event->process, event->number);
}

static void release(struct world *world, const struct stream *stream, const struct cargo *cargo)
{
    if (cargo->hold == 0)
        return;
    const uint64_t delay_us = world_chance(world, 20) ? 50u * world_delay_us(world) : 0;
    world_after(world, delay_us, stream->ps, released, cargo->hold, NULL);
}

static void arrived_at_ps(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);
    struct channel *channel = &stream->channels[WAY_TO_PS];

    if (!arrives(world, channel, event))
        return;
    if (stream->at_ps)
        ps_message(world, stream, event->data);
    if (stream->kind == LANE_STREAM_PUSH)
        faults_after_delivery(world, stream);
    letter_spoil(event->data);
}

static void arrived_at_caller(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);
    struct channel *channel = &stream->channels[WAY_TO_CALLER];

    if (!arrives(world, channel, event))
        return;
    if (stream->at_caller)
        caller_message(world, stream, event->data);
    letter_spoil(event->data);
}

static void told_ps_writable(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    stream->channels[WAY_TO_CALLER].busy = false;
    if (stream->at_ps && !stream->over)
        ps_writable(world, stream);
}

static void told_caller_writable(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    stream->channels[WAY_TO_PS].busy = false;
    told_writable(world, event);
}

/* The message has left the process: its bytes are read now, not when it was sent. */
static void go_out(struct world *world, struct stream *stream, enum way way)
{
    struct channel *channel = &stream->channels[way];
    struct parcel *parcel = channel->parcel;

    if (parcel == NULL)
        return;
    channel->parcel = NULL;
    if (!channel->cut) {
        struct letter *letter = world_take(world, sizeof *letter);
        *letter = *parcel->head;
        uint8_t *at = letter->bytes + letter->size;
        for (uint32_t i = 0; i < parcel->cargo_count; i++) {
            memcpy(at, parcel->cargo[i].bytes.data, parcel->cargo[i].bytes.bytes);
            at += parcel->cargo[i].bytes.bytes;
        }
        letter->size = (size_t)(at - letter->bytes);
        if (parcel->may_be_overtaken && world_chance(world, 30)) {
            channel->under_way++;
            world_after(
                world, 6 * world_delay_us(world), stream->ps, arrived_at_ps, stream->id, letter);
        } else {
            post(world, stream, way, way == WAY_TO_PS ? arrived_at_ps : arrived_at_caller, letter);
        }
        if (parcel->behind != NULL)
            post(world, stream, way, arrived_at_ps, parcel->behind);
    }
    for (uint32_t i = 0; i < parcel->cargo_count; i++)
        release(world, stream, &parcel->cargo[i]);
}

/* When the next message may be sent: its receiver takes a few, and the rest when it is awake and
 * reached. */
static uint64_t writable_us(struct world *world, const struct stream *stream, enum way way)
{
    const uint64_t at_us = world->now_us + world_delay_us(world) / 4;
    uint64_t deaf_until_us = world->processes[receiver(stream, way)].suspended_until_us;
    const uint64_t stalled_us = world->network->stalled_until_us[stream->caller][stream->ps];

    if (deaf_until_us < stalled_us)
        deaf_until_us = stalled_us;
    if (deaf_until_us <= at_us || stream->channels[way].under_way <= UNTAKEN_MAX)
        return at_us;
    made(world, MADE_deaf);
    return deaf_until_us;
}

static void out_to_ps(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    go_out(world, stream, WAY_TO_PS);
    if (stream->kind == LANE_STREAM_PUSH)
        faults_after_send(world, stream);
    world_at(
        world, writable_us(world, stream, WAY_TO_PS), stream->caller, told_caller_writable,
        stream->id, NULL);
}

static void out_to_caller(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);

    go_out(world, stream, WAY_TO_CALLER);
    world_at(
        world, writable_us(world, stream, WAY_TO_CALLER), stream->ps, told_ps_writable, stream->id,
        NULL);
}

/* The header packed, with room for the cargo behind it. */
static struct parcel *parcel_make(
    struct world *world, const wire_message *message, const struct cargo *cargo, uint32_t count)
{
    struct parcel *parcel = world_take(world, sizeof *parcel);
    uint64_t payload_bytes = 0;

    parcel->cargo = world_take(world, count * sizeof *parcel->cargo);
    parcel->cargo_count = count;
    for (uint32_t i = 0; i < count; i++) {
        parcel->cargo[i] = cargo[i];
        payload_bytes += cargo[i].bytes.bytes;
    }
    const size_t head_bytes = wire_packed_bytes(message, payload_bytes);
    parcel->head = world_take(world, sizeof *parcel->head);
    parcel->head->type = message->descriptor;
    parcel->head->size = head_bytes;
    parcel->head->bytes = world_take(world, head_bytes + payload_bytes);
    wire_pack(message, payload_bytes, parcel->head->bytes);
    return parcel;
}

/* The push request that goes out, if the network may change its order. */
static const wire_push_request *
shuffled(const struct world *world, const struct stream *stream, const wire_message *message)
{
    if (!world->shuffles || stream->kind != LANE_STREAM_PUSH ||
        message->descriptor != &sumac__v1__push_request__descriptor)
        return NULL;
    const wire_push_request *request = (const wire_push_request *)message;
    bool whole = request->n_parts > 0 && request->hello == NULL;
    for (size_t i = 0; i < request->n_parts; i++)
        whole = whole && request->parts[i]->first && request->parts[i]->last;
    return whole ? request : NULL;
}

/* A client may send its parts in any order; ours does not, so the network does it for it. Parts do
 * not interleave, and what is not a part keeps its place. */
static bool may_be_overtaken(
    const struct world *world, const struct stream *stream, const wire_message *message)
{
    const wire_push_request *request = shuffled(world, stream, message);

    return request != NULL && request->commit == NULL;
}

/* Does the message have a commit that concerns none of its parts? The client might have said it
 * alone, before them. */
static bool has_commit_of_others(
    const struct world *world, const struct stream *stream, const wire_message *message)
{
    const wire_push_request *request = shuffled(world, stream, message);
    bool of_others = request != NULL && request->commit != NULL;

    for (size_t i = 0; of_others && i < request->n_parts; i++)
        of_others = !request->parts[i]->eager &&
                    request->parts[i]->sequence > request->commit->commit_through;
    return of_others;
}

static struct letter *commit_alone(struct world *world, const wire_push_request *request)
{
    wire_push_request alone = WIRE_PUSH_REQUEST_INIT;

    alone.commit = request->commit;
    return letter_make(world, &alone.base, NULL, 0);
}

static void
send_commit_first(struct world *world, struct stream *stream, const wire_push_request *request)
{
    made(world, MADE_commit_first);
    post(world, stream, WAY_TO_PS, arrived_at_ps, commit_alone(world, request));
}

void network_send(
    struct world *world, struct stream *stream, enum way way, const wire_message *message,
    const struct cargo *cargo, uint32_t cargo_count)
{
    struct channel *channel = &stream->channels[way];
    const wire_push_request *request = shuffled(world, stream, message);
    wire_push_request parts_alone;
    struct letter *behind = NULL;

    if (channel->busy && !stream->over)
        checker_violation(world, "a message is sent on a stream that is not writable");
    if (!channel->busy && !channel->cut && !stream->over &&
        has_commit_of_others(world, stream, message) && world_chance(world, 50)) {
        parts_alone = *(const wire_push_request *)message;
        send_commit_first(world, stream, &parts_alone);
        parts_alone.commit = NULL;
        message = &parts_alone.base;
    } else if (request != NULL && request->commit != NULL && world_chance(world, 30)) {
        parts_alone = *request; /* a client may say it apart; what it makes room for comes before */
        behind = commit_alone(world, request);
        parts_alone.commit = NULL;
        message = &parts_alone.base;
    }
    struct parcel *parcel = parcel_make(world, message, cargo, cargo_count);
    parcel->may_be_overtaken = may_be_overtaken(world, stream, message);
    parcel->behind = behind;
    if (channel->busy || channel->cut || stream->over) {
        for (uint32_t i = 0; i < cargo_count; i++)
            release(world, stream, &parcel->cargo[i]);
        return;
    }
    channel->busy = true;
    channel->parcel = parcel;
    const uint32_t sender = way == WAY_TO_PS ? stream->caller : stream->ps;
    const uint64_t delay_us = world_chance(world, 30) ? world_delay_us(world) : 0;
    world_after(
        world, delay_us, sender, way == WAY_TO_PS ? out_to_ps : out_to_caller, stream->id, NULL);
}

/* ---- the end of a stream */

static void told_closed(struct world *world, const struct event *event)
{
    struct stream *stream = network_find(world, event->number);
    struct channel *channel = &stream->channels[WAY_TO_PS];

    channel->cut = true;
    channel->spared = 0;
    if (!stream->at_ps)
        return;
    stream->at_ps = false;
    ps_stream_closed(world, stream);
}

/* Any suffix of what is under way is lost; or all of it arrives, but late: after the next
 * generation has begun. */
static void lose(struct world *world, struct stream *stream, enum way way)
{
    struct channel *channel = &stream->channels[way];

    if (channel->cut)
        return;
    channel->cut = true;
    channel->spared = world_below(world, channel->under_way + 1);
    if (way == WAY_TO_PS && world_chance(world, 40)) {
        channel->spared = channel->under_way;
        channel->late_until_us = world->now_us + world_below(world, PS_LEARNS_US_MAX);
    }
}

static void tell_ps(struct world *world, struct stream *stream)
{
    const struct channel *channel = &stream->channels[WAY_TO_PS];
    uint64_t at_us = world->now_us + world_delay_us(world);

    if (world_chance(world, 30))
        at_us += world_below(world, PS_LEARNS_US_MAX);
    if (at_us < channel->clear_us)
        at_us = channel->clear_us;
    if (at_us <= channel->late_until_us)
        at_us = channel->late_until_us + 1;
    world_at(world, at_us, stream->ps, told_closed, stream->id, NULL);
}

static void tell_caller(struct world *world, struct stream *stream, uint64_t at_us)
{
    if (caller_lives(world, stream))
        world_at(world, at_us, stream->caller, told_lost, stream->id, NULL);
}

void network_cut(struct world *world, struct stream *stream)
{
    if (stream->over)
        return;
    stream->over = true;
    checker_befell(world, stream->caller, world->now_us + PS_LEARNS_US_MAX);
    trace_say(
        world, "the connection of %s to %s breaks (stream %" PRIu64 ")",
        world->processes[stream->caller].name, world->processes[stream->ps].name, stream->id);
    fail(&stream->error, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "connection reset");
    lose(world, stream, WAY_TO_PS);
    lose(world, stream, WAY_TO_CALLER);
    tell_ps(world, stream);
    tell_caller(world, stream, world->now_us + world_below(world, CALLER_LEARNS_US_MAX));
}

void network_close_at_ps(
    struct world *world, struct stream *stream, const struct sumac_error *error)
{
    if (stream->over)
        return;
    go_out(world, stream, WAY_TO_CALLER);
    stream->over = true;
    stream->error = *error;
    lose(world, stream, WAY_TO_PS);
    world_after(world, world_delay_us(world), stream->ps, told_closed, stream->id, NULL);
    tell_caller(world, stream, arrival_us(world, stream, WAY_TO_CALLER));
}

void network_close_at_caller(struct world *world, struct stream *stream)
{
    if (stream->over)
        return;
    stream->over = true;
    fail(&stream->error, SUMAC_CANCELLED, SUMAC_REASON_UNSPECIFIED, "closed");
    lose(world, stream, WAY_TO_PS);
    lose(world, stream, WAY_TO_CALLER);
    tell_ps(world, stream);
    tell_caller(world, stream, world->now_us + world_delay_us(world));
}

/* The other end has not answered a ping. */
static void kept_waiting(struct world *world, const struct event *event)
{
    network_cut(world, network_find(world, event->number));
}

static void gone_caller(struct world *world, struct stream *stream)
{
    if (!stream->over && world_chance(world, 50)) {
        stream->over = true; /* what was written arrives, then the end */
        stream->at_caller = false;
        tell_ps(world, stream);
    } else {
        network_cut(world, stream);
        stream->at_caller = false;
    }
}

void network_process_gone(struct world *world, uint32_t process, const struct sumac_error *why)
{
    const struct sumac_error nothing = {.status = SUMAC_UNAVAILABLE, .text = "connection reset"};

    if (why == NULL)
        why = &nothing;
    for (uint32_t i = 0; i < network_count(world); i++) {
        struct stream *stream = network_at(world, i);
        if (stream->caller == process && stream->at_caller)
            gone_caller(world, stream);
        else if (stream->ps == process)
            network_close_at_ps(world, stream, why);
    }
    calls_process_gone(world, process, why);
}

void network_process_hung(struct world *world, uint32_t process)
{
    for (uint32_t i = 0; i < network_count(world); i++) {
        const struct stream *stream = network_at(world, i);
        if (!stream->over && (stream->caller == process || stream->ps == process))
            world_after(world, KEEPALIVE_US, SIM_NO_PROCESS, kept_waiting, stream->id, NULL);
    }
}

void network_stall(struct world *world, uint32_t caller, uint32_t ps, uint64_t until_us)
{
    world->network->stalled_until_us[caller][ps] = until_us;
    checker_befell(world, caller, until_us);
}

uint64_t network_stalled_until_us(const struct world *world, uint32_t caller, uint32_t ps)
{
    return world->network->stalled_until_us[caller][ps];
}
