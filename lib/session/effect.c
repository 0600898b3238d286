/* SPDX-License-Identifier: Apache-2.0 */
/* effect.c -- what one step gives: effects in an arena that the next step resets; and what a
 * session keeps: its texts, its id. */
#include "deeds.h"

#include <stdarg.h>
#include <string.h>

void *step_take(struct session *session, size_t bytes)
{
    void *data = arena_take(&session->step, bytes);

    if (data == NULL)
        session->exhausted = true;
    return data;
}

void *session_keep(struct session *session, const void *data, size_t bytes)
{
    assert(bytes == 0 || data != NULL);
    void *copy = arena_take(&session->texts, bytes + 1);
    if (copy == NULL)
        session->exhausted = true;
    else if (bytes > 0)
        memcpy(copy, data, bytes);
    return copy;
}

const char *session_keep_text(struct session *session, const char *text)
{
    return session_keep(session, text == NULL ? "" : text, text == NULL ? 1 : strlen(text) + 1);
}

const char *const *
session_keep_texts(struct session *session, const char *const *texts, uint32_t count)
{
    const char **copies = session_keep(session, texts, count * sizeof *copies);

    for (uint32_t i = 0; copies != NULL && i < count; i++)
        copies[i] = session_keep_text(session, texts[i]);
    return copies;
}

wire_bytes session_id_bytes(const struct session *session)
{
    return (wire_bytes){
        .data = (uint8_t *)(uintptr_t)session->state.session_id,
        .len = sizeof session->state.session_id};
}

struct session_effect *effect_add(struct session *session, enum session_effect_kind kind)
{
    if (session->effect_count == session->effect_capacity) {
        const uint32_t capacity = session->effect_capacity == 0 ? 8 : 2 * session->effect_capacity;
        struct session_effect *items = step_take(session, capacity * sizeof *items);
        if (items == NULL) {
            session->spare = (struct session_effect){.kind = kind};
            return &session->spare;
        }
        if (session->effect_count > 0)
            memcpy(items, session->effects, session->effect_count * sizeof *items);
        session->effects = items;
        session->effect_capacity = capacity;
    }
    assert(session->effect_count < session->effect_capacity);
    struct session_effect *effect = &session->effects[session->effect_count++];
    *effect = (struct session_effect){.kind = kind};
    return effect;
}

struct session_effect *effect_over(
    struct session *session, enum session_effect_kind kind, uint64_t token,
    const struct sumac_error *error)
{
    struct session_effect *effect = effect_add(session, kind);

    assert(token != 0);
    effect->token = token;
    if (error != NULL)
        effect->error = *error;
    return effect;
}

void effect_log(struct session *session, const char *format, ...)
{
    char *text = step_take(session, SUMAC_ERROR_TEXT_BYTES);

    if (text == NULL)
        return;
    va_list values;
    va_start(values, format);
    (void)text_print_line_values(text, SUMAC_ERROR_TEXT_BYTES, format, values);
    va_end(values);
    effect_add(session, SESSION_EFFECT_LOG)->text = text;
}

void effect_wake(struct session *session, uint64_t at_us)
{
    assert(at_us != NEVER);
    if (at_us >= session->wake_us)
        return;
    session->wake_us = at_us;
    effect_add(session, SESSION_EFFECT_WAKE)->at_us = at_us;
}

void link_touch(struct session *session, struct link *link)
{
    assert(link->ps < session->link_count);
    if (link->touched)
        return;
    link->touched = true;
    link->next_touched = session->touched;
    session->touched = link;
}

/* 20 ms, doubled with each failure up to the bound, of which a random half is taken off. */
uint32_t backoff_ms(const struct session *session, uint32_t failures)
{
    assert(session->event != NULL);
    assert(session->config.backoff_ms_max > 0);
    const uint32_t max = session->config.backoff_ms_max;
    const uint32_t doublings = failures < 16 ? failures : 16;
    const uint64_t full = (uint64_t)20 << doublings;
    const uint32_t delay = full < max ? (uint32_t)full : max;
    return delay - (uint32_t)(session->event->random[0] % (delay / 2 + 1));
}
