/* SPDX-License-Identifier: Apache-2.0 */
/* strays.c -- hellos that are refused, each for its reason. */
#include "strays.h"

enum stray { STRAY_VERSION, STRAY_CLUSTER, STRAY_NO_ID, STRAY_GENERATION, STRAYS };

static const enum sumac_reason reasons[STRAYS] = {
    [STRAY_VERSION] = SUMAC_REASON_PROTOCOL_VERSION,
    [STRAY_CLUSTER] = SUMAC_REASON_WRONG_CLUSTER,
    [STRAY_NO_ID] = SUMAC_REASON_MALFORMED,
    [STRAY_GENERATION] = SUMAC_REASON_STREAM_REPLACED,
};

static const enum made refused[STRAYS] = {
    [STRAY_VERSION] = MADE_stray_version,
    [STRAY_CLUSTER] = MADE_stray_cluster,
    [STRAY_NO_ID] = MADE_stray_no_id,
    [STRAY_GENERATION] = MADE_stray_generation,
};

/* As the client's own, but for what is wrong with it. */
static wire_hello
hello_of(const struct world *world, const struct client *client, uint32_t ps, enum stray stray)
{
    wire_hello hello = WIRE_HELLO_INIT;
    struct session_state state;

    session_read(client->session, &state);
    hello.protocol_version = WIRE_PROTOCOL_VERSION + (stray == STRAY_VERSION);
    hello.cluster_id = state.cluster_id ^ (stray == STRAY_CLUSTER);
    hello.epoch = state.epoch;
    hello.ps_incarnation = world->ps[ps]->config.incarnation;
    hello.session_id.data = client->life->id;
    hello.session_id.len = sizeof client->life->id - (stray == STRAY_NO_ID);
    hello.generation = world->checker->newest[ps][client->index].generation;
    return hello;
}

void stray_open(struct world *world, const struct client *client, uint32_t ps)
{
    const struct newest *newest = &world->checker->newest[ps][client->index];
    const enum stray stray = (enum stray)world_below(world, STRAYS);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    if (!client->life->joined || newest->life != client->life->process_life)
        return; /* a stream of its session has been greeted there */
    wire_hello hello = hello_of(world, client, ps, stray);
    struct stream *stream = network_open(
        world, process_of_client(client->index), ps, LANE_STREAM_PUSH, hello.generation);
    stream->at_caller = false;
    stream->refused_for = reasons[stray];
    stream->counts_as = refused[stray];
    request.hello = &hello;
    network_send(world, stream, WAY_TO_PS, &request.base, NULL, 0);
}

/* A ps that has forgotten the session does not know which stream of it was the newest. */
static bool is_forgotten(
    const struct world *world, const struct stream *stream, const struct lane_effect *effect)
{
    return stream->refused_for == SUMAC_REASON_STREAM_REPLACED && world->closed_max != 0 &&
           effect->kind == LANE_EFFECT_ANSWER && effect->push_answer->rejoin;
}

void stray_effect(
    struct world *world, const struct stream *stream, const struct lane_effect *effect)
{
    if (world->checker->state_lost || world_was_short(world))
        return;
    if (is_forgotten(world, stream, effect))
        return;
    if (effect->kind != LANE_EFFECT_CLOSE_STREAM)
        checker_violation(world, "a hello that must be refused is answered");
    else if (effect->error.reason == stream->refused_for)
        made(world, stream->counts_as);
    else if (effect->error.reason < SUMAC_REASON_PS_MISSING)
        checker_violation(world, "a hello is refused for another reason than it has given");
}
