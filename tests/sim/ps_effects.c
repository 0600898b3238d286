/* SPDX-License-Identifier: Apache-2.0 */
/* ps_effects.c -- the effects of a ps: answers, orders, records that complete late and in bursts,
 * vector work in pieces.
 *
 * One flush of the disk covers all that was recorded when it began.
 */
#include "ps_effects.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "combine.h"
#include "faults.h"
#include "journal.h"

/* A job of the compute pool. */
struct job {
    uint64_t number;
    uint32_t left;
    struct update_slice *slices; /* or … */
    const struct combine_slice *combines;
};

static const wire_message *message_of(const struct lane_effect *effect)
{
    switch (effect->kind) {
    case LANE_EFFECT_ANSWER:
        return &effect->push_answer->base;
    case LANE_EFFECT_PULLED:
        return &effect->pull_answer->base;
    case LANE_EFFECT_REPLY:
        return effect->reply;
    case LANE_EFFECT_ORDER:
        return &effect->order->base;
    case LANE_EFFECT_REPORT:
        return &effect->report->base;
    case LANE_EFFECT_CLOSE_STREAM:
    case LANE_EFFECT_FAIL:
    case LANE_EFFECT_DIAL:
    case LANE_EFFECT_COMPUTE:
    case LANE_EFFECT_RECORD:
    case LANE_EFFECT_LOG:
    case LANE_EFFECT_SERVING:
    case LANE_EFFECT_EXIT:
    case LANE_EFFECT_WAKE:
    case LANE_EFFECT_RUN_OVER:
        break;
    }
    return NULL;
}

/* ---- carried out */

static void finish_call(
    struct world *world, struct ps *ps, const struct lane_effect *effect,
    const wire_message *message)
{
    struct call *call = call_find(world, effect->call);

    assert(call != NULL);
    checker_finished(world, ps, call);
    if (message != NULL) {
        trace_message(
            world, world->processes[ps->index].name,
            call->caller < SIM_PROCESSES ? world->processes[call->caller].name : "the checker",
            "reply", message);
        checker_replied(world, ps, call, message);
        call_reply(world, call, message);
    } else {
        trace_say(
            world, "ps %u fails call %" PRIu64 ": %s %s: %s", ps->index, call->id,
            sumac_status_name(effect->error.status), sumac_reason_name(effect->error.reason),
            effect->error.text);
        call_fail(world, call, &effect->error);
    }
}

static void gone(struct world *world, const struct event *event)
{
    struct ps *ps = world->ps[event->number];

    network_process_gone(world, ps->index, &ps->end);
    ps->exited = true;
    world->processes[ps->index].running = false;
    checker_ps_exited(world, ps);
}

/* What is out still arrives; then the process is gone. */
static void leave(struct world *world, struct ps *ps, const struct lane_effect *effect)
{
    trace_say(
        world, "ps %u exits with %d: %s", ps->index, effect->exit_code,
        effect->text == NULL ? "" : effect->text);
    ps->ending = true;
    ps->exit_code = effect->exit_code;
    ps->end = effect->error;
    ps->ran_out = ps->told_end_us != 0 &&
                  world->now_us >= ps->told_end_us + ps->config.terminate_ms * 1000ull;
    if (effect->exit_code == LANE_EXIT_NO_MEMORY) {
        ps->crashed = true;
        checker_ps_crashed(world);
    }
    world_after(world, 10 * world->delay_us_max, ps->index, gone, ps->index, NULL);
}

static void carry_out_message(
    struct world *world, struct ps *ps, const struct lane_effect *effect,
    const wire_message *message, const struct cargo *cargo, uint32_t cargo_count)
{
    const char *name = world->processes[ps->index].name;
    struct stream *stream = effect->stream == 0 ? NULL : network_find(world, effect->stream);

    if (effect->error.status != SUMAC_OK && effect->error.reason == SUMAC_REASON_UNSPECIFIED)
        checker_violation(world, "an error of a ps has no reason");
    switch (effect->kind) {
    case LANE_EFFECT_ANSWER:
    case LANE_EFFECT_PULLED:
    case LANE_EFFECT_REPORT:
        assert(stream != NULL && stream->ps == ps->index);
        trace_message(world, name, world->processes[stream->caller].name, "says", message);
        network_send(world, stream, WAY_TO_CALLER, message, cargo, cargo_count);
        if (effect->kind == LANE_EFFECT_REPORT)
            faults_after_report(world, stream, effect->report);
        break;
    case LANE_EFFECT_CLOSE_STREAM:
        assert(stream != NULL && stream->ps == ps->index);
        trace_say(world, "%s closes stream %" PRIu64 ": %s", name, stream->id, effect->error.text);
        network_close_at_ps(world, stream, &effect->error);
        break;
    case LANE_EFFECT_ORDER:
        network_send(world, stream, WAY_TO_PS, message, NULL, 0);
        break;
    case LANE_EFFECT_REPLY:
    case LANE_EFFECT_FAIL:
        finish_call(world, ps, effect, message);
        break;
    case LANE_EFFECT_EXIT:
        leave(world, ps, effect);
        break;
    case LANE_EFFECT_DIAL:
    case LANE_EFFECT_COMPUTE:
    case LANE_EFFECT_RECORD:
    case LANE_EFFECT_LOG:
    case LANE_EFFECT_SERVING:
    case LANE_EFFECT_WAKE:
    case LANE_EFFECT_RUN_OVER:
        assert(false); /* they are no messages */
        break;
    }
}

/* ---- the disk */

static void begin_flush(struct world *world, struct ps *ps, enum lane_journal journal);

static void flushed(struct world *world, const struct event *event)
{
    struct ps *ps = world->ps[event->number / LANE_JOURNALS];
    const enum lane_journal which = event->number % LANE_JOURNALS;
    struct journal *journal = &ps->journals[which];

    journal->done = journal->flush_through;
    journal->flush_through = 0;
    trace_say(
        world, "ps %u has records%s up to %" PRIu64 " on disk", ps->index,
        which == LANE_JOURNAL_CONTROLLER ? " of its controller" : "", journal->done);
    begin_flush(world, ps, which);
    struct lane_event recorded = {
        .kind = LANE_EVENT_RECORDED, .journal = which, .record = journal->done};
    ps->hears_disk = which == LANE_JOURNAL_CONTROLLER;
    if (!ps->ending)
        ps_step(world, ps, &recorded);
    ps->hears_disk = false;
}

static void begin_flush(struct world *world, struct ps *ps, enum lane_journal which)
{
    struct journal *journal = &ps->journals[which];

    if (journal->flush_through != 0 || journal->made == journal->done)
        return;
    journal->flush_through = journal->made;
    world_after(
        world, world_delay_us(world) + world_below(world, 3 * world->delay_us_max), ps->index,
        flushed, ps->index * LANE_JOURNALS + which, NULL);
}

static void record(struct world *world, struct ps *ps, const struct lane_effect *effect)
{
    struct journal *journal = &ps->journals[effect->journal];

    if (effect->record <= journal->made)
        checker_violation(world, "a record has the number of an older one");
    journal->made = effect->record;
    journal_add(world, journal, effect);
    if (effect->journal == LANE_JOURNAL_OWN)
        checker_recorded(world, ps, effect);
    begin_flush(world, ps, effect->journal);
}

/* ---- vector work, a slice now and a slice then */

static void slice_due(struct world *world, const struct event *event)
{
    struct ps *ps = world->ps[event->number];
    struct job *job = event->data;

    if (ps->ending)
        return;
    if (job->left > 0) {
        job->left--;
        if (job->slices != NULL)
            update_run(&job->slices[job->left]);
        else
            combine_run(&job->combines[job->left]);
        world_after(world, world_delay_us(world) / 2, ps->index, slice_due, ps->index, job);
        return;
    }
    struct lane_event computed = {.kind = LANE_EVENT_COMPUTED, .job = job->number};
    ps_step(world, ps, &computed);
}

static void compute(struct world *world, struct ps *ps, const struct lane_compute *work)
{
    struct job *job = world_take(world, sizeof *job);

    *job = (struct job){
        .number = work->job,
        .left = work->slice_count,
        .slices = work->slices,
        .combines = work->combines};
    world_after(world, world_delay_us(world) / 2, ps->index, slice_due, ps->index, job);
}

/* ---- ticks and peers */

static void tick(struct world *world, const struct event *event)
{
    struct ps *ps = world->ps[event->number];
    struct process *process = &world->processes[ps->index];

    if (process->wake_us > world->now_us || ps->ending)
        return;
    process->wake_us = UINT64_MAX;
    struct lane_event event_tick = {.kind = LANE_EVENT_TICK};
    ps_step(world, ps, &event_tick);
}

static void wake(struct world *world, struct ps *ps, uint64_t at_us)
{
    struct process *process = &world->processes[ps->index];
    const uint64_t offset_us = ps->clock_offset_us;
    const uint64_t due_us = at_us < world->now_us + offset_us ? world->now_us : at_us - offset_us;

    if (due_us >= process->wake_us)
        return;
    process->wake_us = due_us;
    world_at(world, due_us, ps->index, tick, ps->index, NULL);
}

static void dial(struct world *world, struct ps *ps, uint32_t target)
{
    assert(ps->index == 0 && target != 0 && target < SIM_PS_MAX);
    if (target >= world->ps_count)
        checker_violation(world, "a ps is dialled that is not there");
    else if (ps->peers[target] == NULL)
        ps->peers[target] = network_open(world, 0, target, LANE_STREAM_PEER, 0);
}

/* What is lent until RELEASED is read when it is out; the rest now. */
static struct cargo *cargo_of(struct world *world, const struct lane_effect *effect)
{
    struct cargo *cargo = world_take(world, effect->payload_count * sizeof *cargo);

    for (uint32_t i = 0; i < effect->payload_count; i++) {
        cargo[i] = (struct cargo){effect->payload[i].bytes, effect->payload[i].hold};
        made_if(world, MADE_lent, cargo[i].hold != 0);
        if (cargo[i].hold != 0)
            continue;
        uint8_t *copy = world_take(world, cargo[i].bytes.bytes);
        memcpy(copy, cargo[i].bytes.data, cargo[i].bytes.bytes);
        cargo[i].bytes.data = copy;
    }
    return cargo;
}

void ps_carry_out(struct world *world, struct ps *ps, const struct lane_effect *effect)
{
    switch (effect->kind) {
    case LANE_EFFECT_LOG:
        trace_say(world, "ps %u: %s", ps->index, effect->text);
        return;
    case LANE_EFFECT_WAKE:
        wake(world, ps, effect->at_us);
        return;
    case LANE_EFFECT_SERVING:
        ps->serving = effect->serving;
        return;
    case LANE_EFFECT_DIAL:
        dial(world, ps, effect->ps);
        return;
    case LANE_EFFECT_COMPUTE:
        compute(world, ps, effect->compute);
        return;
    case LANE_EFFECT_RECORD:
        record(world, ps, effect);
        return;
    case LANE_EFFECT_ANSWER:
    case LANE_EFFECT_PULLED:
    case LANE_EFFECT_CLOSE_STREAM:
    case LANE_EFFECT_REPLY:
    case LANE_EFFECT_FAIL:
    case LANE_EFFECT_ORDER:
    case LANE_EFFECT_REPORT:
    case LANE_EFFECT_EXIT:
    case LANE_EFFECT_RUN_OVER:
        break;
    }
    struct lane_effect own = *effect;
    if (effect->kind == LANE_EFFECT_ORDER) {
        if (ps->peers[effect->ps] == NULL) {
            checker_violation(world, "an order is given to a ps that is not connected");
            return;
        }
        own.stream = ps->peers[effect->ps]->id;
    }
    checker_effect(world, ps, network_find(world, own.stream), effect);
    carry_out_message(
        world, ps, &own, message_of(effect), cargo_of(world, effect), effect->payload_count);
}
