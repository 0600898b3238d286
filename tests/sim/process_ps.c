/* SPDX-License-Identifier: Apache-2.0 */
/* process_ps.c -- events of a ps to its core, and its effects carried out. */
#include "process_ps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "hazards.h"
#include "lane_check.h"
#include "journal.h"
#include "ps_core_check.h"
#include "process_client.h"
#include "ps_effects.h"

static struct ps *alive(struct world *world, uint32_t index)
{
    struct ps *ps = world->ps[index];

    return ps->exited || ps->ending || ps->core == NULL ? NULL : ps;
}

void ps_step(struct world *world, struct ps *ps, struct lane_event *event)
{
    struct lane_effects effects = {0};
    struct check check = {.text = ""};

    event->now_us = world->now_us + ps->clock_offset_us;
    event->random[0] = world_bits(world);
    event->random[1] = world_bits(world);
    ps_core_step(ps->core, event, &effects);
    ps_core_check(ps->core, &check);
    checker_state(world, world->processes[ps->index].name, &check);
    for (uint32_t i = 0; i < effects.count; i++)
        ps_carry_out(world, ps, &effects.items[i]);
    made_if(world, MADE_old_row, lane_old_rows(ps_core_lane(ps->core)) > 0);
    if (lane_lent(ps_core_lane(ps->core)) != world->checker->lent[ps->index])
        checker_violation(world, "other bytes are lent than are on their way");
    checker_ps_stepped(world, ps);
    journal_look(world, ps);
}

/* ---- life */

static void started(struct world *world, const struct event *event)
{
    struct ps *ps = world->ps[event->number];
    struct process *process = &world->processes[ps->index];

    process->running = true;
    ps->config.started_us = world->now_us + ps->clock_offset_us;
    ps->core = ps_core_create(&ps->config, &world->shortages[ps->index].memory);
    assert(ps->core != NULL);
    trace_say(world, "%s starts", process->name);
    checker_ps_started(world, ps->index);
    struct lane_event start = {.kind = LANE_EVENT_START};
    ps_step(world, ps, &start);
}

static void configure(struct world *world, struct ps *ps)
{
    static const char *const addresses[SIM_PS_MAX] = {"h0:2000", "h1:2001", "h2:2002"};
    static const char *const jobs[SIM_CLIENTS_MAX] = {"worker", "worker", "worker", "worker"};
    static const uint32_t indices[SIM_CLIENTS_MAX] = {0, 1, 2, 3};
    const bool told = ps->index == 0 ? !world->ps0_told_itself
                                     : !world_has(world, FAULT_JOIN) || world_chance(world, 60);

    ps->config = (struct lane_config){
        .index = ps->index,
        .ps_addresses = addresses,
        .ps_count = told ? world->ps_count : 0,
        .members_jobs = jobs,
        .members_indices = indices,
        .member_count = world->member_count,
        .incarnation = world_bits(world) | 1,
        .version = "sim",
        .lease_ms = SIM_LEASE_MS,
        .rejoin_ms = 10000,
        .rejoin_first_ms = 60000,
        .ps_lost_ms = 60000,
        .report_ms = 5000,
        .terminate_ms = 5000,
        .sessions_max = SIM_SESSIONS_OPEN_MAX,
        .staging_bytes_max =
            (uint64_t)world_grant(world) * SIM_SESSIONS_OPEN_MAX + world->pool_bytes,
        .pool_bytes_max = world->pool_bytes == 0 ? LANE_NO_POOL : world->pool_bytes,
        .records = world->records,
        .loss_fails = world->loss_fails,
        .places_by_bytes = world->seed % 3 == 0,
        .step_quorum = world->quorum,
        .step_deadline_ms = world->step_deadline_ms,
        .inline_bytes = world->inline_bytes,
        .copied_pull_bytes_max = world->copied_pull_bytes_max,
        .pull_chunk_bytes = world->pull_chunk_bytes,
        .block_bytes = world->block_bytes,
        .gathered_bytes_max = world->gathered_bytes_max,
        .kept_row_bytes_min = world->fault_rate % 4 != 0, /* else as large as no row is */
        .parts_per_session_max = world->parts_max,
        .voided_per_session_max = world->voided_max,
        .closed_sessions_max = world->closed_max,
        .settled_sessions_max = world->settled_max,
        .ended_per_step_max = world->ended_per_step_max,
        .collective_bytes_max = world->collective_bytes_max,
        .broken = world->broken,
    };
}

struct ps *ps_make(struct world *world, uint32_t index)
{
    static const char *const names[SIM_PS_MAX] = {"ps 0", "ps 1", "ps 2"};
    struct ps *ps = world_take(world, sizeof *ps);

    ps->index = index;
    ps->clock_offset_us = world_bits(world) >> 24;
    world->processes[index] = (struct process){.name = names[index], .wake_us = UINT64_MAX};
    configure(world, ps);
    const uint64_t late_us = world_has(world, FAULT_JOIN) ? world_below(world, 20000000) : 0;
    world_after(world, late_us, SIM_NO_PROCESS, started, index, NULL);
    return ps;
}

void ps_drop(struct world *world, uint32_t index)
{
    struct ps *ps = world->ps[index];

    journal_check(world, ps);
    ps_core_destroy(ps->core);
    ps->core = NULL;
}

void ps_crash(struct world *world, uint32_t index, bool back)
{
    struct ps *ps = world->ps[index];
    struct process *process = &world->processes[index];

    trace_say(world, "%s crashes%s", process->name, back ? ", and will come back" : "");
    network_process_gone(world, index, NULL);
    process->running = false;
    process->life++;
    process->wake_us = UINT64_MAX;
    process->suspended_until_us = 0;
    process->hung = false;
    shortage_end(&world->shortages[index]);
    world->checker->lent[index] = 0;
    ps_drop(world, index);
    const struct lane_config config = ps->config;
    *ps = (struct ps){.index = index, .clock_offset_us = ps->clock_offset_us, .config = config};
    ps->config.incarnation = world_bits(world) | 1;
    ps->crashed = true;
    checker_ps_crashed(world);
    if (back)
        world_after(
            world, 100000 + world_below(world, 5000000), SIM_NO_PROCESS, started, index, NULL);
}

/* ---- what reaches it */

void ps_stream_opened(struct world *world, struct stream *stream)
{
    struct ps *ps = alive(world, stream->ps);

    if (ps == NULL)
        return;
    struct lane_event event = {
        .kind = LANE_EVENT_STREAM_OPENED, .stream = stream->id, .stream_kind = stream->kind};
    ps_step(world, ps, &event);
    ps_writable(world, stream);
}

static void
step_for(struct world *world, struct ps *ps, const struct stream *stream, struct lane_event *event)
{
    const bool fails = stream->kind == LANE_STREAM_PULL && hazard_fail_some_take(world, ps->index);

    ps_step(world, ps, event);
    if (fails)
        hazard_fail_no_more(world, ps->index);
}

void ps_writable(struct world *world, struct stream *stream)
{
    struct ps *ps = alive(world, stream->ps);

    if (ps == NULL || stream->channels[WAY_TO_CALLER].busy)
        return;
    struct lane_event event = {
        .kind = LANE_EVENT_STREAM_WRITABLE, .stream = stream->id, .stream_kind = stream->kind};
    step_for(world, ps, stream, &event);
}

void ps_stream_closed(struct world *world, struct stream *stream)
{
    struct ps *ps = alive(world, stream->ps);

    if (ps == NULL)
        return;
    struct lane_event event = {
        .kind = LANE_EVENT_STREAM_CLOSED, .stream = stream->id, .stream_kind = stream->kind};
    ps_step(world, ps, &event);
}

void ps_message(struct world *world, struct stream *stream, struct letter *letter)
{
    static const char *const names[] = {"push", "pull", "order"};
    static const enum lane_event_kind kinds[] = {
        LANE_EVENT_PUSH, LANE_EVENT_PULL, LANE_EVENT_ORDER};
    struct ps *ps = alive(world, stream->ps);
    const struct wire_received *received = ps == NULL ? NULL : letter_open(world, letter);

    if (received == NULL)
        return;
    trace_message(
        world, world->processes[stream->caller].name, world->processes[stream->ps].name,
        names[stream->kind], received->message);
    struct lane_event event = {
        .kind = kinds[stream->kind],
        .stream = stream->id,
        .stream_kind = stream->kind,
        .payload = received->payload,
        .payload_spans = received->payload_spans,
    };
    if (stream->kind == LANE_STREAM_PUSH)
        event.push_request = (const wire_push_request *)received->message;
    else if (stream->kind == LANE_STREAM_PULL)
        event.pull_request = (const wire_pull_request *)received->message;
    else
        event.order = (const wire_peer_order *)received->message;
    if (stream->kind == LANE_STREAM_PUSH)
        checker_parts_came(
            world, ps, stream, event.push_request, ps->journals[LANE_JOURNAL_OWN].made);
    const uint64_t made_before = ps->journals[LANE_JOURNAL_OWN].made;
    struct order_seen *order = NULL;
    if (event.order != NULL && event.order->end != NULL && ps->told_end_us == 0)
        ps->told_end_us = world->now_us;
    if (event.order != NULL && event.order->number != 0) {
        order = &ps->orders[event.order->number % (sizeof ps->orders / sizeof ps->orders[0])];
        if (order->number == event.order->number && order->made_after > order->made_before)
            order = NULL; /* given again: what it recorded it has recorded */
        else
            *order = (struct order_seen){
                event.order->number, ps->journals[LANE_JOURNAL_OWN].made, UINT64_MAX};
    }
    const bool greets =
        event.push_request != NULL && event.push_request->hello != NULL && !stream->over;
    step_for(world, ps, stream, &event);
    checker_heard_stream(world, stream);
    if (event.order != NULL)
        checker_told_to_close(world, ps->index, event.order);
    if (event.push_request != NULL)
        checker_heard_acked(world, stream, event.push_request);
    if (stream->kind == LANE_STREAM_PUSH)
        checker_parts_taken(world, ps, stream, greets, made_before);
    if (order != NULL)
        order->made_after = ps->journals[LANE_JOURNAL_OWN].made;
}

void ps_released(struct world *world, uint32_t index, uint64_t hold)
{
    struct ps *ps = alive(world, index);
    struct lane_event event = {.kind = LANE_EVENT_RELEASED, .hold = hold};

    checker_released(world, index);
    if (ps != NULL)
        ps_step(world, ps, &event);
}

void ps_call(struct world *world, uint32_t index, struct call *call, struct letter *letter)
{
    struct ps *ps = alive(world, index);
    const struct wire_received *received = ps == NULL ? NULL : letter_open(world, letter);

    if (received == NULL)
        return;
    trace_message(
        world, world->processes[call->caller].name, world->processes[index].name, "call",
        received->message);
    checker_heard_call(world, call, received->message);
    struct lane_event event = {
        .kind = LANE_EVENT_CALL,
        .call = call->id,
        .call_kind = call->kind,
        .request = received->message,
    };
    ps_step(world, ps, &event);
}

void ps_call_cancelled(struct world *world, uint32_t index, struct call *call)
{
    struct ps *ps = alive(world, index);
    struct lane_event event = {
        .kind = LANE_EVENT_CALL_CANCELLED, .call = call->id, .call_kind = call->kind};

    if (ps != NULL)
        ps_step(world, ps, &event);
}

/* ---- ps 0's ends of its streams to the others */

void peer_writable(struct world *world, struct stream *stream)
{
    struct ps *ps = alive(world, 0);
    struct lane_event event = {.kind = LANE_EVENT_PEER_UP, .ps = stream->ps};

    if (ps != NULL && ps->peers[stream->ps] == stream)
        ps_step(world, ps, &event);
}

void peer_message(struct world *world, struct stream *stream, struct letter *letter)
{
    struct ps *ps = alive(world, 0);
    const struct wire_received *received =
        ps == NULL || ps->peers[stream->ps] != stream ? NULL : letter_open(world, letter);

    if (received == NULL)
        return;
    trace_message(world, world->processes[stream->ps].name, "ps 0", "report", received->message);
    struct lane_event event = {
        .kind = LANE_EVENT_REPORT,
        .ps = stream->ps,
        .report = (const wire_peer_report *)received->message,
    };
    checker_heard_report(world, event.report);
    ps_step(world, ps, &event);
}

static void redial(struct world *world, const struct event *event)
{
    struct ps *ps = alive(world, 0);
    const uint32_t target = (uint32_t)event->number;

    if (ps != NULL && ps->peers[target] == NULL)
        ps->peers[target] = network_open(world, 0, target, LANE_STREAM_PEER, 0);
}

void peer_lost(struct world *world, struct stream *stream)
{
    struct ps *ps = alive(world, 0);

    if (ps == NULL || ps->peers[stream->ps] != stream)
        return;
    ps->peers[stream->ps] = NULL;
    world_after(world, 50000 + world_below(world, 1000000), 0, redial, stream->ps, NULL);
    struct lane_event event = {
        .kind = LANE_EVENT_PEER_DOWN,
        .ps = stream->ps,
        .text = stream->error.text,
        .reason = stream->error.reason};
    ps_step(world, ps, &event);
}
