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
#define RESERVE 16u /* places that are left when the array is to grow */

bool out_init(struct out *out, const struct memory *memory, struct arena *arena)
{
    *out = (struct out){.memory = memory, .arena = arena};
    out->items = memory_take(memory, FIRST_CAPACITY * sizeof *out->items);
    out->capacity = out->items == NULL ? 0 : FIRST_CAPACITY;
    return out->items != NULL;
}

void out_deinit(struct out *out)
{
    assert(out->count <= out->capacity);
    memory_give(out->memory, out->items, out->capacity * sizeof *out->items);
    out->items = NULL;
    out->count = out->capacity = 0;
}

void out_reset(struct out *out)
{
    out->count = 0;
    out->overflowed = out->texts_short = false;
}

static bool grow(struct out *out)
{
    struct lane_effect *items = memory_take(out->memory, 2 * out->capacity * sizeof *items);

    assert(out->capacity > 0);
    if (items == NULL)
        return false;
    memcpy(items, out->items, out->count * sizeof *items);
    memory_give(out->memory, out->items, out->capacity * sizeof *items);
    out->items = items;
    out->capacity *= 2;
    return true;
}

/* The reserve is for what somebody waits for, and its last place for the end. */
static bool has_room(struct out *out, enum lane_effect_kind kind)
{
    assert(out->count <= out->capacity);
    if (out->capacity - out->count > RESERVE || grow(out))
        return true;
    if (kind == LANE_EFFECT_LOG)
        return false;
    return out->capacity - out->count > (kind == LANE_EFFECT_EXIT ? 0u : 1u);
}

struct lane_effect *out_add(struct out *out, enum lane_effect_kind kind)
{
    const bool is_kept = has_room(out, kind);
    struct lane_effect *effect = is_kept ? &out->items[out->count++] : &out->lost;

    assert(out->count <= out->capacity);
    out->overflowed |= !is_kept && kind != LANE_EFFECT_LOG;
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
    return effect;
}

void out_lose(struct out *out) { out->overflowed = true; }

static char no_text[] = "";

/* The sentence, one printable line in the arena; no_text when the arena is full. */
__attribute__((format(printf, 2, 0))) static char *
text_of(struct out *out, const char *format, va_list arguments)
{
    va_list again;

    va_copy(again, arguments);
    const size_t bytes = text_print_bytes(format, again) + 1;
    va_end(again);
    char *text = arena_take(out->arena, bytes);
    if (text == NULL) {
        out->texts_short = true;
        return no_text;
    }
    (void)text_print_line_values(text, bytes, format, arguments);
    return text;
}

char *out_text(struct out *out, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = text_of(out, format, arguments);
    va_end(arguments);
    return text;
}

void out_log(struct out *out, const char *format, ...)
{
    const bool texts_short = out->texts_short; /* nobody's answer lacks a line of the log */
    va_list arguments;

    va_start(arguments, format);
    char *const text = text_of(out, format, arguments);
    va_end(arguments);
    out->texts_short = texts_short;
    if (text != no_text)
        out_add(out, LANE_EFFECT_LOG)->text = text;
}

void out_reply_or_fail(struct out *out, uint64_t call, const wire_message *reply)
{
    const bool whole = reply != NULL && !out->texts_short;
    struct lane_effect *effect = out_add(out, whole ? LANE_EFFECT_REPLY : LANE_EFFECT_FAIL);

    assert(call != 0);
    effect->call = call;
    if (whole) {
        effect->reply = reply;
        return;
    }
    (void)fail(
        &effect->error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "the ps has no memory for its answer: ask again later");
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

void out_wake(struct out *out, uint64_t at_us) { out_add(out, LANE_EFFECT_WAKE)->at_us = at_us; }
