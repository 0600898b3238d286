/* out.c -- the effects that one step collects.
 *
 * The array doubles within the step's arena; what it leaves behind there goes with the rest at the
 * next step.
 */
#include "out.h"

#include <stdarg.h>
#include <string.h>

#include "text.h"

#define FIRST_CAPACITY 16u

void out_reset(struct out *out, struct arena *arena) { *out = (struct out){.arena = arena}; }

static bool grow(struct out *out)
{
    const uint32_t capacity = out->capacity == 0 ? FIRST_CAPACITY : 2 * out->capacity;
    struct lane_effect *items = arena_take(out->arena, capacity * sizeof *items);

    if (items == NULL)
        return false;
    if (out->count > 0)
        memcpy(items, out->items, out->count * sizeof *items);
    out->items = items;
    out->capacity = capacity;
    return true;
}

struct lane_effect *out_add(struct out *out, enum lane_effect_kind kind)
{
    if (out->count == out->capacity && !grow(out)) {
        out->overflowed = true;
        return NULL;
    }
    struct lane_effect *effect = &out->items[out->count++];
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
    return effect;
}

/* The sentence, one printable line in the arena; "" when the arena is full. */
__attribute__((format(printf, 2, 0))) static char *
text_of(struct out *out, const char *format, va_list arguments)
{
    static char none[] = "";
    va_list again;

    va_copy(again, arguments);
    const size_t bytes = text_print_bytes(format, again) + 1;
    va_end(again);
    char *text = arena_take(out->arena, bytes);
    if (text == NULL)
        return none;
    text_print_line_values(text, bytes, format, arguments);
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
    struct lane_effect *effect = out_add(out, LANE_EFFECT_LOG);
    va_list arguments;

    if (effect == NULL)
        return;
    va_start(arguments, format);
    effect->text = text_of(out, format, arguments);
    va_end(arguments);
}

void out_reply(struct out *out, uint64_t call, const wire_message *reply)
{
    struct lane_effect *effect = out_add(out, LANE_EFFECT_REPLY);

    if (effect == NULL)
        return;
    effect->call = call;
    effect->reply = reply;
}

void out_fail(
    struct out *out, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    struct lane_effect *effect = out_add(out, LANE_EFFECT_FAIL);
    va_list arguments;

    if (effect == NULL)
        return;
    effect->call = call;
    effect->error.status = status;
    effect->error.reason = reason;
    va_start(arguments, format);
    text_print_line_values(effect->error.text, sizeof effect->error.text, format, arguments);
    va_end(arguments);
}

void out_exit(struct out *out, int exit_code, const char *format, ...)
{
    struct lane_effect *effect = out_add(out, LANE_EFFECT_EXIT);
    va_list arguments;

    if (effect == NULL)
        return;
    effect->exit_code = exit_code;
    va_start(arguments, format);
    effect->text = text_of(out, format, arguments);
    va_end(arguments);
}

void out_wake(struct out *out, uint64_t at_us)
{
    struct lane_effect *effect = out_add(out, LANE_EFFECT_WAKE);

    if (effect != NULL)
        effect->at_us = at_us;
}
