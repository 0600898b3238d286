/* SPDX-License-Identifier: Apache-2.0 */
/* session.c -- one event in, its effects out. state.h says which file does what. */
#include "deeds.h"

#include <string.h>

static void keep_config(struct session *session, const struct session_config *config)
{
    struct session_config *kept = &session->config;

    *kept = *config;
    kept->job = session_keep_text(session, config->job);
    kept->members_jobs = session_keep_texts(session, config->members_jobs, config->member_count);
    kept->members_indices = session_keep(
        session, config->members_indices, config->member_count * sizeof *config->members_indices);
    kept->ps_addresses = session_keep_texts(session, config->ps_addresses, config->ps_count);
    if (config->ps_starter != NULL)
        kept->ps_starter = session_keep_text(session, config->ps_starter);
    if (config->members_addresses != NULL)
        kept->members_addresses =
            session_keep_texts(session, config->members_addresses, config->member_count);
    kept->local_replicas = config->local_replicas == 0 ? 1 : config->local_replicas;
    kept->ps_lost_ms = config->ps_lost_ms == 0 ? 60000 : config->ps_lost_ms;
    kept->backoff_ms_max = config->backoff_ms_max == 0 ? 2000 : config->backoff_ms_max;
    const uint32_t chunk = config->chunk_bytes == 0 ? SESSION_CHUNK_BYTES : config->chunk_bytes;
    kept->chunk_bytes = /* whole elements of every type; each stream has a least (stream.c) */
        chunk < SESSION_CHUNK_BYTES_MAX ? chunk / 64 * 64 : SESSION_CHUNK_BYTES_MAX;
}

struct session *session_create(const struct session_config *config, const struct memory *memory)
{
    if (config->ps_count == 0 || config->ps_count > SESSION_PS_MAX)
        return NULL;
    struct session *session = memory_take(memory, sizeof *session);
    if (session == NULL)
        return NULL;
    memset(session, 0, sizeof *session);
    session->memory = *memory;
    arena_init(&session->texts, &session->memory, (size_t)1 << 24);
    arena_init(&session->step, &session->memory, SESSION_STEP_BYTES_MAX);
    sized_pool_init(&session->blocks, &session->memory, SESSION_SPARE_BYTES_MAX);
    pool_init(&session->pushes, &session->memory, sizeof(struct push), 64);
    pool_init(&session->pulls, &session->memory, sizeof(struct pull), 64);
    pool_init(&session->requests, &session->memory, sizeof(struct request), 64);
    pool_init(&session->errors, &session->memory, sizeof(struct sumac_error), 8);
    pool_init(&session->calls, &session->memory, sizeof(struct unary), 8);
    pool_init(&session->collectives, &session->memory, sizeof(struct session_collective), 16);
    session->wake_us = NEVER;
    session->run_ps = UINT32_MAX;
    session->voided_max = WINDOW;
    keep_config(session, config);
    if (session->exhausted) {
        session_destroy(session);
        return NULL;
    }
    return session;
}

void session_destroy(struct session *session)
{
    if (session == NULL)
        return;
    const struct memory memory = session->memory;
    pushes_release(session);
    pulls_release(session);
    memory_give(&memory, session->links, session->link_count * sizeof *session->links);
    pool_deinit(&session->collectives);
    pool_deinit(&session->calls);
    pool_deinit(&session->errors);
    pool_deinit(&session->requests);
    pool_deinit(&session->pulls);
    pool_deinit(&session->pushes);
    sized_pool_deinit(&session->blocks);
    arena_deinit(&session->step);
    arena_deinit(&session->texts);
    memory_give(&memory, session, sizeof *session);
}

static struct link *link_of(struct session *session, uint32_t ps)
{
    return ps < session->link_count ? &session->links[ps] : NULL;
}

/* Is this of the stream that was opened last? One that never was has nothing to say. With the rule
 * `generation` broken, whatever an older one delivers counts. */
static bool is_current(
    const struct session *session, const struct link *link, enum session_stream_kind kind,
    uint64_t generation)
{
    if (session->phase == PHASE_OVER || link == NULL || link->streams[kind].generation == 0)
        return false;
    return link->streams[kind].generation == generation || !holds(session, RULE_generation);
}

static void tick(struct session *session)
{
    if (session->now_us >= session->wake_us)
        session->wake_us = NEVER;
    pulls_check(session);
    calls_check(session);
    collectives_check(session);
    find_check(session);
    streams_check(session);
    lease_check(session);
    links_check(session);
}

static void handle_answer(struct session *session, const struct session_event *event)
{
    struct link *link = link_of(session, event->ps);
    const bool of_push = event->kind == SESSION_EVENT_PUSH_ANSWER;
    const enum session_stream_kind kind = of_push ? SESSION_PUSH_STREAM : SESSION_PULL_STREAM;

    if (!is_current(session, link, kind, event->generation))
        return;
    assert(link != NULL);
    link->heard_us = link->answered_us = session->now_us;
    if (of_push)
        push_answer(session, link, event->push_answer);
    else
        pull_answer(session, link, event);
}

/* The effects of the last step are still there: this one has none of its own yet. */
static void note_undone(struct session *session)
{
    assert(session->event == NULL);
    for (uint32_t i = 0; i < session->effect_count; i++) {
        const struct session_effect *effect = &session->effects[i];
        if (!effect->undone)
            continue;
        assert(effect->kind == SESSION_EFFECT_CALL || effect->kind == SESSION_EFFECT_OPEN_STREAM);
        if (effect->kind == SESSION_EFFECT_CALL)
            call_undone(session, effect->call);
        else
            session->links[effect->ps].streams[effect->stream_kind].undone = true;
    }
}

static void handle(struct session *session, const struct session_event *event)
{
    switch (event->kind) {
    case SESSION_EVENT_START:
        find_begin(session);
        break;
    case SESSION_EVENT_CALL:
        call_accept(session, event->wanted_call);
        break;
    case SESSION_EVENT_CALL_ANSWERED:
        call_answered(session, event);
        if (session->phase == PHASE_FOUND)
            join_begin(session);
        break;
    case SESSION_EVENT_CALL_FAILED:
        call_failed(session, event);
        break;
    case SESSION_EVENT_PUSH:
    case SESSION_EVENT_COLLECTIVE:
        if (push_accept(session, event->push) && event->kind == SESSION_EVENT_COLLECTIVE)
            pull_accept(session, event->pull);
        break;
    case SESSION_EVENT_PULL:
        pull_accept(session, event->pull);
        break;
    case SESSION_EVENT_CANCEL_PULL:
        pull_cancel(session, event->token);
        break;
    case SESSION_EVENT_CANCEL_PUSH:
        push_cancel(session, event->token);
        break;
    case SESSION_EVENT_COLLECTIVE_RESULT:
        collective_end(session, event->token);
        break;
    case SESSION_EVENT_LEAVE:
        session->leave_wanted = true;
        session->leave_done = event->done;
        break;
    case SESSION_EVENT_STREAM_WRITABLE:
        if (is_current(session, link_of(session, event->ps), event->stream_kind, event->generation))
            stream_writable(session, event);
        break;
    case SESSION_EVENT_STREAM_LOST:
        stream_lost(session, event);
        break;
    case SESSION_EVENT_PUSH_ANSWER:
    case SESSION_EVENT_PULL_ANSWER:
        handle_answer(session, event);
        break;
    case SESSION_EVENT_TICK:
    case SESSION_EVENT_UNDONE:
        tick(session);
        break;
    }
}

/* Whatever the event left to be said goes out now, where a stream takes it. */
static void flush(struct session *session)
{
    while (session->touched != NULL) {
        struct link *link = session->touched;
        session->touched = link->next_touched;
        assert(link->touched);
        link->touched = false;
        if (session->phase != PHASE_OVER)
            compose_pushes(session, link);
        if (session->phase != PHASE_OVER)
            compose_pulls(session, link);
    }
}

/* The one effect for which there is always memory. */
static void say_only(struct session *session, struct session_effect effect)
{
    session->spare = effect;
    session->effects = &session->spare;
    session->effect_count = session->effect_capacity = 1;
}

/* There is no memory to say anything with, except this. */
static void end_exhausted(struct session *session)
{
    assert(session->exhausted);
    session->phase = PHASE_OVER;
    session->acknowledging = false;
    calls_forget(session);
    (void)fail_for_memory(
        &session->end,
        "the session has no memory left for one step; pushes under way are lost to it");
    say_only(session, (struct session_effect){.kind = SESSION_EFFECT_ENDED, .error = session->end});
}

/* The session has ended before. That is not said again, but whoever begins something is told of it.
 */
static void refuse_exhausted(struct session *session, const struct session_event *event)
{
    assert(session->phase == PHASE_OVER);
    session->effect_count = 0;
    struct session_effect effect = {.error = session->end};
    if (event->kind == SESSION_EVENT_PUSH || event->kind == SESSION_EVENT_COLLECTIVE) {
        effect.kind = SESSION_EFFECT_PUSHED;
        effect.token = event->push->token;
    } else if (event->kind == SESSION_EVENT_PULL) {
        effect.kind = SESSION_EFFECT_PULLED;
        effect.token = event->pull->token;
    } else if (event->kind == SESSION_EVENT_CALL) {
        effect.kind = SESSION_EFFECT_ANSWERED;
        effect.token = event->wanted_call->token;
    } else {
        return;
    }
    say_only(session, effect);
}

void session_step(
    struct session *session, const struct session_event *event, struct session_effects *effects)
{
    const bool was_over = session->phase == PHASE_OVER && !session->acknowledging;

    if (event->kind == SESSION_EVENT_UNDONE)
        note_undone(session);
    arena_reset(&session->step);
    if (session->over_pulls.first != NULL)
        pulls_forget_over(session);
    session->effects = NULL;
    session->effect_count = session->effect_capacity = 0;
    session->event = event;
    if (session->phase == PHASE_OPEN && session->state.lease_ms > 0 &&
        event->now_us > session->now_us + (uint64_t)session->state.lease_ms * 1000)
        links_excuse(session, event->now_us - session->now_us);
    session->now_us = event->now_us;
    handle(session, event);
    if (session->leave_wanted && !session->leave_called)
        leave_when_done(session);
    if (session->stopping_until_us != 0)
        stopping_check(session);
    flush(session);
    assert(
        session->phase == PHASE_OVER ||
        session->state.acked_through <= session->state.commit_through);
    assert(
        session->state.commit_through <= session->state.last_sequence ||
        session->phase == PHASE_OVER);
    assert(session->state.last_sequence - session->state.acked_through <= WINDOW);
    assert(session->touched == NULL);
    session->event = NULL;
    if (session->exhausted && was_over)
        refuse_exhausted(session, event);
    else if (session->exhausted)
        end_exhausted(session);
    effects->items = session->effects;
    effects->count = session->effect_count;
}

bool session_is_acknowledging(const struct session *session) { return session->acknowledging; }

void session_read(const struct session *session, struct session_state *state)
{
    *state = session->state;
    state->joined = session->phase == PHASE_OPEN || session->phase == PHASE_SETTLING ||
                    session->phase == PHASE_LEAVING;
    state->ended = session->phase == PHASE_OVER;
    state->ps_count = session->config.ps_count;
    state->pushes_in_flight = pushes_in_flight(session);
}
