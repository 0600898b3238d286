/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core.c -- a lane, ps 0's controller, and the queue between them. */
#include "ps_core_state.h"

#include <assert.h>
#include <string.h>

/* ---- its life ---- */

static bool add_controller(struct ps_core *core)
{
    if (!out_init(&core->out, core->memory, NULL))
        return false;
    core->controller = controller_create(lane_config(core->lane), core->memory);
    return core->controller != NULL;
}

struct ps_core *ps_core_create(const struct lane_config *config, const struct memory *memory)
{
    struct ps_core *core = memory_take_zeroed(memory, sizeof *core);

    if (core == NULL)
        return NULL;
    core->memory = memory;
    core->index = config->index;
    core->lane = lane_create(config, memory);
    if (core->lane != NULL && (config->index != 0 || add_controller(core)))
        return core;
    ps_core_destroy(core);
    return NULL;
}

void ps_core_destroy(struct ps_core *core)
{
    if (core == NULL)
        return;
    if (core->controller != NULL)
        controller_destroy(core->controller);
    out_deinit(&core->out);
    lane_destroy(core->lane);
    memory_give(core->memory, core, sizeof *core);
}

struct lane *ps_core_lane(const struct ps_core *core) { return core->lane; }

struct controller *ps_core_controller(const struct ps_core *core) { return core->controller; }

/* ---- the queue ---- */

/* The event that the lane has of its stream, at the end. */
static struct lane_event *tell_lane(struct ps_core *core, enum lane_event_kind kind)
{
    assert(core->queued < PS_MESSAGES_MAX);
    struct ps_message *const message = &core->queue[core->queued++];
    *message = (struct ps_message){
        .event = {.kind = kind, .stream = LANE_STREAM_OWN, .stream_kind = LANE_STREAM_PEER}};
    return &message->event;
}

/* The event that the controller has of its stream to this ps. */
static struct lane_event *tell_controller(struct ps_core *core, enum lane_event_kind kind)
{
    assert(core->queued < PS_MESSAGES_MAX);
    struct ps_message *const message = &core->queue[core->queued++];
    *message = (struct ps_message){
        .to_controller = true,
        .event = {
            .kind = kind,
            .ps = core->index,
            .text = core->own_error.text,
            .reason = core->own_error.reason}};
    return &message->event;
}

/* The first one, or, when the step is long enough, the first that cannot wait for the next, because
 * it points to memory of this one. Thousands of creates may wait, each for an order: a step brings
 * so many on, and one at least. False: there is none. */
static bool take(struct ps_core *core, struct ps_message *message)
{
    const bool only_lent = core->delivered > 0 &&
                           (core->delivered >= PS_DELIVERIES_MAX || lane_step_is_long(core->lane));
    uint32_t i = 0;

    while (i < core->queued && only_lent && !ps_message_is_lent(&core->queue[i]))
        i++;
    if (i == core->queued)
        return false;
    *message = core->queue[i];
    core->queued--;
    memmove(&core->queue[i], &core->queue[i + 1], (core->queued - i) * sizeof *core->queue);
    return true;
}

/* ---- what they say: to each other into the queue, the rest to the driver ---- */

/* More is said than the lane's one step: what lies there takes its place before it. */
static void take_over(struct ps_core *core)
{
    for (uint32_t i = 0; i < core->said.count; i++)
        *out_add(&core->out, core->said.items[i].kind) = core->said.items[i];
    core->said.count = 0;
}

static struct lane_effect *add(struct ps_core *core, enum lane_effect_kind kind)
{
    take_over(core);
    core->exited |= kind == LANE_EFFECT_EXIT;
    return out_add(&core->out, kind);
}

/* The lane has ended ps 0's stream to itself. */
static void lose_own(struct ps_core *core, const struct sumac_error *error)
{
    core->own_lost = true;
    core->own_error = *error;
    (void)tell_lane(core, LANE_EVENT_STREAM_CLOSED);
    (void)tell_controller(core, LANE_EVENT_PEER_DOWN);
}

static void say_lane(struct ps_core *core, const struct lane_effects *effects)
{
    bool is_for_driver = core->out.effects.count == 0;

    assert(core->said.count == 0);
    for (uint32_t i = 0; i < effects->count; i++) {
        core->exited |= effects->items[i].kind == LANE_EFFECT_EXIT;
        is_for_driver &= effects->items[i].stream != LANE_STREAM_OWN;
    }
    if (is_for_driver) {
        core->said = *effects;
        return;
    }
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct lane_effect *effect = &effects->items[i];
        const bool own = effect->stream == LANE_STREAM_OWN;
        if (own && effect->kind == LANE_EFFECT_CLOSE_STREAM) {
            lose_own(core, &effect->error);
        } else if (own) {
            assert(effect->kind == LANE_EFFECT_REPORT);
            tell_controller(core, LANE_EVENT_REPORT)->report = effect->report;
        } else {
            *add(core, effect->kind) = *effect;
        }
    }
}

static void dial_own(struct ps_core *core)
{
    core->own_lost = false;
    (void)tell_lane(core, LANE_EVENT_STREAM_OPENED);
    (void)tell_lane(core, LANE_EVENT_STREAM_WRITABLE);
    (void)tell_controller(core, LANE_EVENT_PEER_UP);
}

static void say_controller(struct ps_core *core, const struct lane_effects *effects)
{
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct lane_effect *effect = &effects->items[i];
        const bool to_own = effect->ps == core->index;
        if (effect->kind == LANE_EFFECT_RUN_OVER)
            (void)tell_lane(core, LANE_EVENT_RUN_OVER);
        else if (effect->kind == LANE_EFFECT_DIAL && to_own)
            dial_own(core);
        else if (effect->kind == LANE_EFFECT_ORDER && to_own)
            tell_lane(core, LANE_EVENT_ORDER)->order = effect->order;
        else
            *add(core, effect->kind) = *effect;
    }
}

/* ---- giving ---- */

static void give_lane(struct ps_core *core, const struct lane_event *given)
{
    struct lane_event event;
    struct lane_effects effects;

    if (core->lane_began || given->now_us != core->now_us) { /* the driver's own is as it must be */
        event = *given;
        event.now_us = core->now_us;
        event.follows = core->lane_began;
        given = &event;
    }
    core->lane_began = true;
    take_over(core);
    lane_step(core->lane, given, &effects);
    say_lane(core, &effects);
}

static void give_controller(struct ps_core *core, const struct lane_event *given)
{
    struct lane_event event = *given;
    struct lane_effects effects;

    if (core->exited)
        return;
    event.now_us = core->now_us;
    event.follows = core->controller_began;
    core->controller_began = true;
    controller_step(core->controller, &event, &effects);
    say_controller(core, &effects);
}

/* One message, to whom it is addressed. An order, or a report, is out as soon as it is there. */
static void deliver(struct ps_core *core, const struct ps_message *message)
{
    const enum lane_event_kind kind = message->event.kind;

    if (!message->to_controller)
        give_lane(core, &message->event);
    else if (kind != LANE_EVENT_PEER_UP || !core->own_lost)
        give_controller(core, &message->event);
    if (kind == LANE_EVENT_ORDER && !core->own_lost)
        (void)tell_controller(core, LANE_EVENT_PEER_UP);
    if (kind == LANE_EVENT_REPORT)
        (void)tell_lane(core, LANE_EVENT_STREAM_WRITABLE);
}

static void drain(struct ps_core *core)
{
    struct ps_message message;

    while (take(core, &message)) {
        core->delivered++;
        deliver(core, &message);
    }
}

/* ---- events ---- */

static void give_stats(struct ps_core *core, const struct lane_event *event)
{
    struct lane_event told = *event;
    struct controller_waits waits;

    assert(!core->controller_began);
    controller_list_waits(core->controller, core->now_us, &waits);
    core->controller_began = true; /* what it says from here on leaves the sentences as they are */
    const struct lane_told own = {
        .waits = waits.items,
        .wait_count = waits.count,
        .waits_left_out = waits.left_out,
        .sessions_bytes_max = controller_sessions_bytes_max(core->controller)};
    told.told = &own;
    give_lane(core, &told);
}

static void give_call(struct ps_core *core, const struct lane_event *event)
{
    if (event->call_kind == LANE_CALL_STATS)
        give_stats(core, event);
    else if (!rpc_is_the_controllers(event->call_kind))
        give_lane(core, event);
    else
        give_controller(core, event);
}

/* The controller mints the cluster before its lane begins, … */
static void start(struct ps_core *core, const struct lane_event *event)
{
    struct lane_event started = *event;

    give_controller(core, event);
    started.cluster_id = controller_cluster_id(core->controller);
    give_lane(core, &started);
}

/* … and hears of a tick before it: the lane then knows whether the run has ended. */
static void tick(struct ps_core *core, const struct lane_event *event)
{
    if (core->own_lost && core->queued == 0)
        dial_own(core);
    give_controller(core, event);
    drain(core);
    give_lane(core, event);
}

static void give(struct ps_core *core, const struct lane_event *event)
{
    switch (event->kind) {
    case LANE_EVENT_START:
        start(core, event);
        break;
    case LANE_EVENT_CALL:
        give_call(core, event);
        break;
    case LANE_EVENT_CALL_CANCELLED:
        give_controller(core, event);
        break;
    case LANE_EVENT_REPORT:
    case LANE_EVENT_PEER_UP:
    case LANE_EVENT_PEER_DOWN:
        if (event->ps != core->index) /* its own stream is no driver's */
            give_controller(core, event);
        break;
    case LANE_EVENT_TICK:
        tick(core, event);
        break;
    case LANE_EVENT_TERMINATE:
        give_lane(core, event);
        give_controller(core, event);
        break;
    case LANE_EVENT_RECORDED:
        if (event->journal == LANE_JOURNAL_OWN)
            give_lane(core, event);
        else
            give_controller(core, event);
        break;
    case LANE_EVENT_STREAM_OPENED:
    case LANE_EVENT_STREAM_WRITABLE:
    case LANE_EVENT_STREAM_CLOSED:
    case LANE_EVENT_PUSH:
    case LANE_EVENT_PULL:
    case LANE_EVENT_ORDER:
    case LANE_EVENT_RELEASED:
    case LANE_EVENT_COMPUTED:
    case LANE_EVENT_RUN_OVER:
    case LANE_EVENT_PS0_PROBED:
        give_lane(core, event);
        break;
    }
}

/* Events for the controller only. */
static bool is_for_controller(enum lane_event_kind kind)
{
    return kind == LANE_EVENT_CALL_CANCELLED || kind == LANE_EVENT_REPORT ||
           kind == LANE_EVENT_PEER_UP || kind == LANE_EVENT_PEER_DOWN;
}

void ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects)
{
    if (core->controller == NULL) {
        *effects = (struct lane_effects){0};
        if (!is_for_controller(event->kind))
            lane_step(core->lane, event, effects);
        return;
    }
    if (event->now_us > core->now_us)
        core->now_us = event->now_us;
    core->lane_began = core->controller_began = false;
    core->delivered = 0;
    core->said.count = 0;
    out_reset(&core->out);
    give(core, event);
    drain(core);
    if (core->queued > 0 && !core->exited)
        add(core, LANE_EFFECT_WAKE)->at_us = core->now_us;
    if (core->out.effects.lost && !core->exited) {
        core->exited = true;
        out_end_lost(&core->out, core->index);
    }
    *effects = core->said.count > 0 ? core->said : out_effects(&core->out);
}
