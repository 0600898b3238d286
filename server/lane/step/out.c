/* SPDX-License-Identifier: Apache-2.0 */
/* out.c -- the effects that one step collects. */
#include "out.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "end_status.h"
#include "error.h"
#include "text.h"

#define FIRST_CAPACITY 128u

bool out_init(struct out *out, const struct memory *memory, struct arena *arena)
{
    *out = (struct out){.arena = arena};
    if (!reserved_array_init(&out->effects, memory, sizeof(struct lane_effect), FIRST_CAPACITY))
        return false;
    out->effects.zeroed_bytes = offsetof(struct lane_effect, error.text) + 1;
    return true;
}

void out_deinit(struct out *out) { reserved_array_deinit(&out->effects); }

void out_reset(struct out *out)
{
    reserved_array_reset(&out->effects);
    out->is_short = false;
}

struct lane_effects out_effects(const struct out *out)
{
    void *const items = out->effects.items;

    return (struct lane_effects){.items = items, .count = out->effects.count};
}

struct lane_effect *out_add(struct out *out, enum lane_effect_kind kind)
{
    const enum reserved_place place = kind == LANE_EFFECT_LOG    ? RESERVED_PLACE_NONE
                                      : kind == LANE_EFFECT_EXIT ? RESERVED_PLACE_LAST
                                                                 : RESERVED_PLACE_ANY;
    struct lane_effect *const effect = reserved_array_add(&out->effects, place);

    effect->kind = kind;
    return effect;
}

void out_lose(struct out *out) { out->effects.lost = true; }

char *out_text(struct out *out, const char *format, ...)
{
    static char none[] = "";
    va_list arguments;

    va_start(arguments, format);
    char *const text = text_line_in(out->arena, format, arguments);
    va_end(arguments);
    out->is_short |= text == NULL;
    return text == NULL ? none : text;
}

void *out_take(struct out *out, size_t bytes)
{
    void *const data = out->is_short ? NULL : arena_take(out->arena, bytes);

    out->is_short |= data == NULL;
    return data;
}

void *out_copy(struct out *out, const void *data, size_t bytes)
{
    void *const copy = out_take(out, bytes);

    return copy == NULL ? NULL : memcpy(copy, data, bytes);
}

void *out_message(struct out *out, const wire_type *type)
{
    void *const taken = out_take(out, type->sizeof_message);
    void *const message = taken == NULL ? out->spare : taken;

    assert(type->sizeof_message <= sizeof out->spare);
    type->message_init(message);
    return message;
}

/* Nobody's answer lacks a line of the log. */
void out_log(struct out *out, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *const text = log_limit_line(&out->log_limit, out->arena, out->now_us, format, arguments);
    va_end(arguments);
    if (text != NULL)
        out_add(out, LANE_EFFECT_LOG)->text = text;
}

void out_reply_or_fail(struct out *out, uint64_t call, const wire_message *reply)
{
    const bool whole = reply != NULL && !out->is_short;
    struct lane_effect *effect = out_add(out, whole ? LANE_EFFECT_REPLY : LANE_EFFECT_FAIL);

    assert(call != 0);
    effect->call = call;
    if (whole) {
        effect->reply = reply;
        return;
    }
    (void)fail_for_memory(&effect->error, "the ps has no memory for its answer: ask again later");
}

void out_fail(
    struct out *out, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    struct lane_effect *effect = out_add(out, LANE_EFFECT_FAIL);
    va_list arguments;

    assert(call != 0);
    assert(status != SUMAC_OK);
    effect->call = call;
    effect->error.status = status;
    effect->error.reason = reason;
    va_start(arguments, format);
    (void)text_print_line_values(effect->error.text, sizeof effect->error.text, format, arguments);
    va_end(arguments);
}

void out_exit(
    struct out *out, int exit_code, enum sumac_reason reason, const char *why, const char *line)
{
    struct lane_effect *effect = out_add(out, LANE_EFFECT_EXIT);

    effect->exit_code = exit_code;
    (void)fail(&effect->error, status_of_end(reason), reason, "%s", why);
    (void)text_print_line(out->exit_line, sizeof out->exit_line, "%s", line);
    effect->text = out->exit_line;
}

/* Somebody would wait in vain for what was lost: they learn it from this ps's end. */
void out_end_lost(struct out *out, uint32_t ps)
{
    struct lane_effect *const effect = out_add(out, LANE_EFFECT_EXIT);

    assert(out->effects.lost);
    effect->exit_code = LANE_EXIT_NO_MEMORY;
    (void)fail(
        &effect->error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
        "ps %u ends, and its state with it: no memory for what it has to say", ps);
    effect->text = effect->error.text;
}

void out_wake(struct out *out, uint64_t at_us) { out_add(out, LANE_EFFECT_WAKE)->at_us = at_us; }
