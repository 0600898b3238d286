/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c -- unary calls: requests and replies that are lost, callers that give up while
 * theirs is on its way. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "checker.h"
#include "error.h"
#include "network_state.h"
#include "process_client.h"
#include "process_ps.h"

#define GIVES_UP_US_MAX 2500000u
#define AGAIN_US_MAX 8000000u
#define DEADLINE_US 60000000u

/* A reply, or why there is none. */
struct outcome {
    struct letter *letter;
    struct sumac_error error;
};

struct call *call_find(struct world *world, uint64_t id)
{
    struct network *network = world->network;

    return id == 0 || id > network->call_count ? NULL : network->calls[id - 1];
}

static struct call *call_add(struct world *world, uint32_t caller, enum lane_call_kind kind)
{
    struct network *network = world->network;

    assert(network->call_count < CALLS_MAX);
    struct call *call = world_take(world, sizeof *call);
    network->calls[network->call_count++] = call;
    call->id = network->call_count;
    call->kind = kind;
    call->caller = caller;
    call->caller_life = caller < SIM_PROCESSES ? world->processes[caller].life : 0;
    return call;
}

struct call *call_make_local(struct world *world, enum lane_call_kind kind)
{
    struct call *call = call_add(world, SIM_NO_PROCESS, kind);

    call->at_ps = true;
    return call;
}

/* ---- at the ps */

static void request_arrived(struct world *world, const struct event *event)
{
    struct call *call = call_find(world, event->number);

    call->at_ps = true;
    ps_call(world, call->ps, call, event->data);
    letter_spoil(event->data);
}

static void told_cancelled(struct world *world, const struct event *event)
{
    struct call *call = call_find(world, event->number);

    if (!call->at_ps || call->over_at_ps)
        return;
    call->over_at_ps = true;
    ps_call_cancelled(world, call->ps, call);
}

/* ---- at the caller */

static void answered(struct world *world, const struct event *event)
{
    struct call *call = call_find(world, event->number);
    struct outcome *outcome = event->data;

    if (call->over_at_caller)
        return;
    call->over_at_caller = true;
    client_call_over(world, call, outcome->letter, &outcome->error);
    if (outcome->letter != NULL)
        letter_spoil(outcome->letter);
}

static void finish(struct world *world, struct call *call, struct outcome *outcome, uint64_t at_us)
{
    if (call->caller < SIM_PROCESSES && world_alive(world, call->caller, call->caller_life))
        world_at(world, at_us, call->caller, answered, call->id, outcome);
}

static uint64_t passage_us(struct world *world, const struct call *call)
{
    const uint64_t at_us = world->now_us + world_delay_us(world);
    const uint64_t stalled_us = network_stalled_until_us(world, call->caller, call->ps);

    checker_took(world, call->caller, at_us - world->now_us);
    return at_us < stalled_us ? stalled_us : at_us;
}

void call_reply(struct world *world, struct call *call, const wire_message *message)
{
    call->over_at_ps = true;
    if (call->caller == SIM_NO_PROCESS)
        return;
    struct outcome *outcome = world_take(world, sizeof *outcome);
    outcome->letter = letter_make(world, message, NULL, 0);
    finish(world, call, outcome, passage_us(world, call));
}

void call_fail(struct world *world, struct call *call, const struct sumac_error *error)
{
    call->over_at_ps = true;
    if (call->caller == SIM_NO_PROCESS)
        return;
    struct outcome *outcome = world_take(world, sizeof *outcome);
    outcome->error = *error;
    finish(world, call, outcome, passage_us(world, call));
}

/* The caller hears nothing more of it; the ps, if it has it, that the caller is gone. */
static void cancel(struct world *world, struct call *call)
{
    assert(!call->over_at_caller);
    call->over_at_caller = true;
    call->cancelled = true;
    world_after(world, 4 * world_delay_us(world), call->ps, told_cancelled, call->id, NULL);
}

void call_cancel(struct world *world, uint32_t caller, uint64_t token)
{
    struct network *network = world->network;

    for (uint32_t i = 0; i < network->call_count; i++) {
        struct call *call = network->calls[i];
        if (call->caller == caller && call->caller_life == world->processes[caller].life &&
            call->token == token && !call->over_at_caller)
            cancel(world, call);
    }
}

static void abandon(struct world *world, struct call *call, const struct sumac_error *why)
{
    checker_befell(world, call->caller, world->now_us);
    trace_say(
        world, "%s loses its call %" PRIu64 ": %s", world->processes[call->caller].name, call->id,
        why->text);
    cancel(world, call);
    client_call_over(world, call, NULL, why);
}

static void give_up(struct world *world, const struct event *event)
{
    struct call *call = call_find(world, event->number);
    struct sumac_error error = {0};

    if (call->over_at_caller)
        return;
    fail(&error, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "connection reset");
    abandon(world, call, &error);
}

static void run_out(struct world *world, const struct event *event)
{
    struct call *call = call_find(world, event->number);
    struct sumac_error error = {0};

    if (call->over_at_caller)
        return;
    made(world, MADE_call_timed_out);
    fail(&error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_UNSPECIFIED, "no answer in time");
    abandon(world, call, &error);
}

static void unanswerable(struct world *world, struct call *call, const struct sumac_error *why)
{
    struct outcome *outcome = world_take(world, sizeof *outcome);

    outcome->error = *why;
    finish(world, call, outcome, world->now_us + world_delay_us(world));
}

static void note_nonce(struct call *call, const wire_message *message)
{
    if (call->kind != LANE_CALL_JOIN)
        return;
    const wire_join_request *join = (const wire_join_request *)message;
    assert(join->nonce.len == sizeof call->key);
    memcpy(call->key, join->nonce.data, sizeof call->key);
}

/* The same request, from a connection that its caller has given up: it comes at any time, and
 * nobody hears the answer. */
static void come_again(struct world *world, const struct call *call, const wire_message *message)
{
    struct call *again = call_add(world, call->caller, call->kind);

    again->ps = call->ps;
    again->over_at_caller = again->cancelled = true;
    note_nonce(again, message);
    made(world, MADE_duplicate);
    world_at(
        world, passage_us(world, again) + world_below(world, AGAIN_US_MAX), again->ps,
        request_arrived, again->id, letter_make(world, message, NULL, 0));
}

/* It says that its work is done, with pushes under way, and waits for nothing. */
void call_leave_behind(
    struct world *world, uint32_t caller, const uint8_t *session_id, uint64_t last_sequence)
{
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;
    struct call *call = call_add(world, caller, LANE_CALL_LEAVE);

    leave.session_id = (wire_bytes){.data = (uint8_t *)(uintptr_t)session_id, .len = 16};
    leave.done = true;
    leave.last_sequence = last_sequence;
    call->over_at_caller = call->cancelled = true;
    made(world, MADE_leave_behind);
    world_at(
        world, passage_us(world, call), 0, request_arrived, call->id,
        letter_make(world, &leave.base, NULL, 0));
}

struct call *call_make(struct world *world, const struct call_wanted *wanted)
{
    const wire_message *message = wanted->message;
    struct call *call = call_add(world, wanted->caller, wanted->kind);

    call->ps = wanted->ps;
    call->token = wanted->token;
    note_nonce(call, message);
    if (!world->processes[wanted->ps].running) {
        const struct sumac_error nobody = {
            .status = SUMAC_UNAVAILABLE, .text = "Connection refused"};
        unanswerable(world, call, &nobody);
        return call;
    }
    world_after(world, DEADLINE_US, call->caller, run_out, call->id, NULL);
    const bool lossy =
        !world->faults_over && (world_has(world, FAULT_DROP) || world_has(world, FAULT_JOIN));
    if (!lossy || world_chance(world, 90))
        world_at(
            world, passage_us(world, call), call->ps, request_arrived, call->id,
            letter_make(world, message, NULL, 0));
    else
        world_after(
            world, world_below(world, GIVES_UP_US_MAX), call->caller, give_up, call->id, NULL);
    if (lossy && world_chance(world, call->kind == LANE_CALL_JOIN ? 35 : 15))
        world_after(
            world, world_below(world, GIVES_UP_US_MAX), call->caller, give_up, call->id, NULL);
    if (lossy && world_chance(world, 6))
        come_again(world, call, message);
    return call;
}

void calls_process_gone(struct world *world, uint32_t process, const struct sumac_error *why)
{
    struct network *network = world->network;

    for (uint32_t i = 0; i < network->call_count; i++) {
        struct call *call = network->calls[i];
        if (process == call->ps && !call->over_at_ps && call->caller < SIM_PROCESSES) {
            call->over_at_ps = true;
            unanswerable(world, call, why);
        } else if (call->caller == process && !call->over_at_caller) {
            call->over_at_caller = true;
            world_after(world, world_delay_us(world), call->ps, told_cancelled, call->id, NULL);
        }
    }
}
