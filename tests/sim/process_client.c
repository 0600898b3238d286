/* SPDX-License-Identifier: Apache-2.0 */
/* process_client.c -- events of a client to session_step, and its effects carried out. */
#include "process_client.h"

#include <assert.h>
#include <string.h>

#include "checksums.h"
#include "network_state.h"
#include "process_ps.h"
#include "session_check.h"
#include "strays.h"

static struct client *client_of(struct world *world, uint32_t process)
{
    return world->clients[process - SIM_PS_MAX];
}

static uint32_t process_number(const struct client *client)
{
    return process_of_client(client->index);
}

static const char *name_of(const struct world *world, const struct client *client)
{
    return world->processes[process_number(client)].name;
}

/* ---- carried out */

static void tick(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    struct process *process = &world->processes[process_number(client)];

    if (process->wake_us > world->now_us)
        return;
    process->wake_us = UINT64_MAX;
    struct session_event due = {.kind = SESSION_EVENT_TICK};
    client_step(world, client, &due);
}

static void wake(struct world *world, struct client *client, uint64_t at_us)
{
    struct process *process = &world->processes[process_number(client)];
    const uint64_t offset_us = client->clock_offset_us;
    const uint64_t due_us = at_us < world->now_us + offset_us ? world->now_us : at_us - offset_us;

    if (due_us >= process->wake_us)
        return;
    process->wake_us = due_us;
    world_at(world, due_us, process_number(client), tick, client->index, NULL);
}

static enum lane_call_kind kind_of(const struct session_effect *effect)
{
    static const struct {
        const wire_service *service;
        unsigned method;
        enum lane_call_kind kind;
    } calls[] = {
#define X(SERVICE, METHOD, method_, what, bytes_max, who)                                          \
    RPC_IF_CALL(what, {WIRE_##SERVICE, WIRE_##SERVICE##_##METHOD, LANE_CALL_##METHOD}, )
        RPC_LIST(X)
#undef X
    };
    size_t i = 0;

    while (calls[i].service != effect->service || calls[i].method != effect->method)
        assert(++i < sizeof calls / sizeof *calls);
    return calls[i].kind;
}

static void
make_call(struct world *world, struct client *client, const struct session_effect *effect)
{
    const struct call_wanted wanted = {
        .caller = process_number(client),
        .ps = effect->ps,
        .kind = kind_of(effect),
        .token = effect->call,
        .message = effect->request};

    checker_calls(world, call_make(world, &wanted), effect->at_us);
}

static void
open_stream(struct world *world, struct client *client, const struct session_effect *effect)
{
    assert(effect->ps < world->ps_count);
    struct stream *stream = network_open(
        world, process_number(client), effect->ps,
        effect->stream_kind == SESSION_PUSH_STREAM ? LANE_STREAM_PUSH : LANE_STREAM_PULL,
        effect->generation);
    client->streams[effect->ps][effect->stream_kind] = stream;
    checker_opens(world, stream);
    if (world_has(world, FAULT_DROP) && world_chance(world, 8))
        stray_open(world, client, effect->ps);
}

static struct stream *stream_of(struct client *client, const struct session_effect *effect)
{
    struct stream *stream = client->streams[effect->ps][effect->stream_kind];

    return stream != NULL && stream->generation == effect->generation ? stream : NULL;
}

/* What a caller lent is read when the message is out; what is the session's own, now. */
static void send(struct world *world, struct client *client, const struct session_effect *effect)
{
    struct stream *stream = stream_of(client, effect);
    struct cargo *cargo = world_take(world, effect->payload_count * sizeof *cargo);

    if (stream == NULL) {
        checker_violation(world, "a message is sent on a stream that is not there");
        return;
    }
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        cargo[i].bytes = effect->payload[i].bytes;
        if (effect->payload[i].token != 0)
            continue;
        uint8_t *copy = world_take(world, cargo[i].bytes.bytes);
        memcpy(copy, cargo[i].bytes.data, cargo[i].bytes.bytes);
        cargo[i].bytes.data = copy;
    }
    const wire_message *message =
        effect->kind == SESSION_EFFECT_SEND_PUSH
            ? &checksums_add(world, client, effect->ps, effect->push_request)->base
            : &effect->pull_request->base;
    network_send(world, stream, WAY_TO_PS, message, cargo, effect->payload_count);
}

static void
carry_out(struct world *world, struct client *client, const struct session_effect *effect)
{
    struct stream *stream;

    switch (effect->kind) {
    case SESSION_EFFECT_ADDRESSES:
        break; /* each ps stays where it is */
    case SESSION_EFFECT_CALL:
        make_call(world, client, effect);
        break;
    case SESSION_EFFECT_CANCEL_CALL:
        call_cancel(world, process_number(client), effect->call);
        break;
    case SESSION_EFFECT_OPEN_STREAM:
        open_stream(world, client, effect);
        break;
    case SESSION_EFFECT_CLOSE_STREAM:
        stream = stream_of(client, effect);
        if (stream != NULL)
            network_close_at_caller(world, stream);
        break;
    case SESSION_EFFECT_SEND_PUSH:
        send(world, client, effect);
        break;
    case SESSION_EFFECT_SEND_PULL:
        send(world, client, effect);
        break;
    case SESSION_EFFECT_LOG:
        trace_say(world, "%s: %s", name_of(world, client), effect->text);
        break;
    case SESSION_EFFECT_WAKE:
        wake(world, client, effect->at_us);
        break;
    case SESSION_EFFECT_JOINED:
    case SESSION_EFFECT_PUSHED:
    case SESSION_EFFECT_PULLED:
    case SESSION_EFFECT_ANSWERED:
    case SESSION_EFFECT_LEFT:
    case SESSION_EFFECT_ENDED:
        program_effect(world, client, effect);
        break;
    }
}

void client_step(struct world *world, struct client *client, struct session_event *event)
{
    struct session_effects effects = {0};
    struct check check = {.text = ""};

    if (client->session == NULL)
        return;
    checker_client_wakes(world, client);
    event->now_us = world->now_us + client->clock_offset_us;
    event->wall_us = world->now_us + 1700000000000000u;
    event->random[0] = world_bits(world);
    event->random[1] = world_bits(world);
    session_step(client->session, event, &effects);
    session_check(client->session, &check);
    checker_state(world, world->processes[SIM_PS_MAX + client->index].name, &check);
    uint32_t joined = 0;
    for (uint32_t i = 0; i < effects.count; i++) {
        checker_client_says(world, client, &effects.items[i]);
        carry_out(world, client, &effects.items[i]);
        joined += effects.items[i].joined.data != NULL;
    }
    made_if(world, MADE_collective_together, joined > 1);
}

/* ---- life */

static void started(struct world *world, const struct event *event)
{
    static const char *const addresses[SIM_PS_MAX] = {"h0:2000", "h1:2001", "h2:2002"};
    static const char *const jobs[SIM_CLIENTS_MAX] = {"worker", "worker", "worker", "worker"};
    static const uint32_t indices[SIM_CLIENTS_MAX] = {0, 1, 2, 3};
    struct client *client = world->clients[event->number];
    struct process *process = &world->processes[process_number(client)];
    const struct session_config config = {
        .reader = client->reader,
        .role = client->member ? WIRE_ROLE_MEMBER : WIRE_ROLE_OBSERVER,
        .job = client->member ? "worker" : "",
        .task = client->member ? client->task : 0,
        .local_replicas = 1,
        .members_jobs = jobs,
        .members_indices = indices,
        .member_count = world->member_count,
        .ps_addresses = addresses,
        .ps_count = world->ps_count,
        .ps_lost_ms = 60000,
        .chunk_bytes = world->chunk_bytes,
        .backoff_ms_max = SIM_BACKOFF_US_MAX / 1000,
        .broken = world->broken,
    };

    process->running = true;
    process->life++;
    process->wake_us = UINT64_MAX;
    client->clock_offset_us = world_bits(world) >> 24;
    client->session = session_create(&config, &world->shortages[process_number(client)].memory);
    assert(client->session != NULL);
    client->life = checker_life(world, client->index);
    memset(client->streams, 0, sizeof client->streams);
    trace_say(world, "%s starts", process->name);
    program_begin(world, client);
    struct session_event start = {.kind = SESSION_EVENT_START};
    client_step(world, client, &start);
}

void client_start_twin(struct world *world)
{
    if (world->twin_waits)
        world_after(world, 0, SIM_NO_PROCESS, started, world->client_count - 1, NULL);
    world->twin_waits = false;
}

static void twin_due(struct world *world, const struct event *event)
{
    (void)event;
    client_start_twin(world);
}

struct client *client_make(struct world *world, uint32_t index)
{
    static const char *const names[SIM_CLIENTS_MAX] = {
        "worker 0", "worker 1", "worker 2", "worker 3"};
    struct client *client = world_take(world, sizeof *client);

    client->index = index;
    const bool twin = world->twin && index + 1 == world->client_count;
    client->member = index < world->member_count || twin;
    client->reader = !client->member && world_chance(world, 40);
    client->task = twin ? world_below(world, world->member_count) : index;
    client->pushes_left = world_between(world, 1, world->pushes_max);
    client->pulls_left = world_has(world, FAULT_PULLS) ? 4 : world_below(world, 2);
    client->pulls_left += client->reader ? 2 : 0;
    client->window = world_between(world, 1, WINDOW_MAX);
    world->processes[process_of_client(index)] = (struct process){
        .name = twin             ? "twin"
                : client->member ? names[index]
                : client->reader ? "reader"
                                 : "observer",
        .wake_us = UINT64_MAX};
    uint64_t late_us = world_chance(world, 30) ? world_below(world, 20 * world->delay_us_max) : 0;
    if (twin) /* at the latest */
        late_us = 30000000;
    world_after(world, late_us, SIM_NO_PROCESS, twin ? twin_due : started, index, NULL);
    return client;
}

void client_drop(struct world *world, uint32_t index)
{
    struct client *client = world->clients[index];

    if (client->session != NULL)
        session_destroy(client->session);
    client->session = NULL;
}

void client_die(struct world *world, struct client *client, bool back)
{
    struct process *process = &world->processes[process_number(client)];

    network_process_gone(world, process_number(client), NULL);
    process->running = false;
    process->suspended_until_us = 0;
    shortage_end(&world->shortages[process_number(client)]);
    client_drop(world, client->index);
    checker_died(world, client->life);
    client->pushes_open = client->pulls_open = client->collectives_open = 0;
    client->phase = back ? PHASE_STARTING : PHASE_GONE;
    if (back)
        world_after(
            world, world_below(world, 9000000), SIM_NO_PROCESS, started, client->index, NULL);
}

/* ---- what reaches it */

static enum session_stream_kind stream_kind_of(const struct stream *stream)
{
    return stream->kind == LANE_STREAM_PUSH ? SESSION_PUSH_STREAM : SESSION_PULL_STREAM;
}

void client_writable(struct world *world, struct stream *stream)
{
    struct session_event event = {
        .kind = SESSION_EVENT_STREAM_WRITABLE,
        .ps = stream->ps,
        .stream_kind = stream_kind_of(stream),
        .generation = stream->generation,
    };

    client_step(world, client_of(world, stream->caller), &event);
}

/* What an older stream of it still delivers is nothing to a session. */
static bool is_current(struct world *world, const struct stream *stream)
{
    return client_of(world, stream->caller)->streams[stream->ps][stream_kind_of(stream)] == stream;
}

void client_message(struct world *world, struct stream *stream, struct letter *letter)
{
    const struct wire_received *received = letter_open(world, letter);

    if (received == NULL)
        return;
    const bool push = stream->kind == LANE_STREAM_PUSH;
    trace_message(
        world, world->processes[stream->ps].name, world->processes[stream->caller].name, "hears",
        received->message);
    struct session_event event = {
        .kind = push ? SESSION_EVENT_PUSH_ANSWER : SESSION_EVENT_PULL_ANSWER,
        .ps = stream->ps,
        .stream_kind = stream_kind_of(stream),
        .generation = stream->generation,
        .payload = received->payload,
        .payload_spans = received->payload_spans,
    };
    if (push)
        event.push_answer = (const wire_push_answer *)received->message;
    else
        event.pull_answer = (const wire_pull_answer *)received->message;
    if (is_current(world, stream) &&
        (push ? event.push_answer->greeting : event.pull_answer->greeting) != NULL)
        checker_greeted(world, stream);
    client_step(world, client_of(world, stream->caller), &event);
}

void client_lost(struct world *world, struct stream *stream)
{
    struct session_event event = {
        .kind = SESSION_EVENT_STREAM_LOST,
        .ps = stream->ps,
        .stream_kind = stream_kind_of(stream),
        .generation = stream->generation,
        .error = &stream->error,
    };

    if (is_current(world, stream))
        checker_lost(world, stream);
    client_step(world, client_of(world, stream->caller), &event);
}

void client_call_over(
    struct world *world, struct call *call, struct letter *letter, const struct sumac_error *error)
{
    struct client *client = client_of(world, call->caller);
    const struct wire_received *received = letter == NULL ? NULL : letter_open(world, letter);
    const wire_message *reply = received == NULL ? NULL : received->message;
    struct session_event event = {
        .kind = reply == NULL ? SESSION_EVENT_CALL_FAILED : SESSION_EVENT_CALL_ANSWERED,
        .call = call->token,
        .reply = reply,
        .error = error};

    if (call->kind == LANE_CALL_RENEW)
        checker_client_renewed(world, client, reply == NULL ? error : NULL);
    checker_call_over(world, call, reply != NULL);
    client_step(world, client, &event);
}

/* ---- the caller's end of any stream */

void caller_writable(struct world *world, struct stream *stream)
{
    if (stream->kind == LANE_STREAM_PEER)
        peer_writable(world, stream);
    else
        client_writable(world, stream);
}

void caller_message(struct world *world, struct stream *stream, struct letter *letter)
{
    if (stream->kind == LANE_STREAM_PEER)
        peer_message(world, stream, letter);
    else
        client_message(world, stream, letter);
}

void caller_lost(struct world *world, struct stream *stream)
{
    if (stream->kind == LANE_STREAM_PEER)
        peer_lost(world, stream);
    else
        client_lost(world, stream);
}
