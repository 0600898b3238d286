/* SPDX-License-Identifier: Apache-2.0 */
/* effects.c -- the effects of one step, and their texts.
 *
 * The effects have an array of their own, so that a step whose arena is full still says so. It
 * doubles when it is nearly full and is never given back. Where the source has no memory for it,
 * lines of the log are left out, then the places that are kept in reserve are used, the last of all
 * for EXIT: a ps that cannot say what somebody waits for ends, and they learn of it.
 */
#include "judge_state.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define FIRST_CAPACITY 64u
#define RESERVE 16u /* places that are left when the array is to grow */
#define ARENA_BYTES_MAX (64u << 20)
#define ARENA_KEPT_BYTES_MAX 1048576u /* what is beyond is given back with the next step */

bool judge_effects_init(struct judge *judge)
{
    struct judge_said *said = memory_take(judge->memory, sizeof *said);

    judge->said = said;
    if (said == NULL)
        return false;
    memset(said, 0, sizeof *said);
    arena_init(&said->arena, judge->memory, ARENA_BYTES_MAX);
    said->items = memory_take(judge->memory, FIRST_CAPACITY * sizeof *said->items);
    said->capacity = said->items == NULL ? 0 : FIRST_CAPACITY;
    return said->items != NULL;
}

void judge_effects_deinit(struct judge *judge)
{
    struct judge_said *said = judge->said;

    if (said == NULL)
        return;
    assert(said->count <= said->capacity);
    memory_give(judge->memory, said->items, said->capacity * sizeof *said->items);
    arena_deinit(&said->arena);
    memory_give(judge->memory, said, sizeof *said);
}

void judge_effects_begin(struct judge *judge, bool follows)
{
    struct judge_said *said = judge->said;

    said->count = 0;
    said->overflowed = said->texts_short = false;
    if (!follows && said->arena.bytes_used > ARENA_KEPT_BYTES_MAX)
        arena_deinit(&said->arena);
    else if (!follows)
        arena_reset(&said->arena);
}

static bool grow(struct judge *judge)
{
    struct judge_said *said = judge->said;

    assert(said->capacity > 0);
    struct judge_effect *items =
        memory_take(judge->memory, 2 * said->capacity * sizeof *said->items);
    if (items == NULL)
        return false;
    memcpy(items, said->items, said->count * sizeof *items);
    memory_give(judge->memory, said->items, said->capacity * sizeof *said->items);
    said->items = items;
    said->capacity *= 2;
    return true;
}

/* The reserve is for what somebody waits for, and its last place for the end. */
static bool has_room(struct judge *judge, enum judge_effect_kind kind)
{
    const struct judge_said *said = judge->said;

    if (said->capacity - said->count > RESERVE || grow(judge))
        return true;
    if (kind == JUDGE_EFFECT_LOG)
        return false;
    return said->capacity - said->count > (kind == JUDGE_EFFECT_EXIT ? 0u : 1u);
}

struct judge_effect *judge_effect_add(struct judge *judge, enum judge_effect_kind kind)
{
    struct judge_said *said = judge->said;

    if (!has_room(judge, kind)) {
        said->overflowed |= kind != JUDGE_EFFECT_LOG;
        return NULL;
    }
    assert(said->count < said->capacity);
    struct judge_effect *effect = &said->items[said->count++];
    *effect = (struct judge_effect){.kind = kind};
    return effect;
}

/* One printable line in the arena; "" when the arena is full. */
__attribute__((format(printf, 2, 0))) static char *
text_of(const struct judge *judge, const char *format, va_list arguments)
{
    static char none[] = "";
    va_list again;

    va_copy(again, arguments);
    const size_t bytes = text_print_bytes(format, again) + 1;
    va_end(again);
    char *text = arena_take(&judge->said->arena, bytes);
    if (text == NULL) {
        judge->said->texts_short = true;
        return none;
    }
    (void)text_print_line_values(text, bytes, format, arguments);
    return text;
}

char *judge_text(const struct judge *judge, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = text_of(judge, format, arguments);
    va_end(arguments);
    return text;
}

void judge_log(struct judge *judge, const char *format, ...)
{
    struct judge_effect *effect = judge_effect_add(judge, JUDGE_EFFECT_LOG);
    va_list arguments;

    if (effect == NULL)
        return;
    va_start(arguments, format);
    effect->text = text_of(judge, format, arguments);
    va_end(arguments);
}

void judge_reply_or_fail(struct judge *judge, uint64_t call, const wire_message *reply)
{
    const bool whole = reply != NULL && !judge->said->texts_short;
    struct judge_effect *effect =
        judge_effect_add(judge, whole ? JUDGE_EFFECT_REPLY : JUDGE_EFFECT_FAIL);

    assert(call != 0);
    if (effect == NULL)
        return;
    effect->call = call;
    effect->reply = whole ? reply : NULL;
    if (!whole)
        (void)fail(
            &effect->error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "the ps has no memory for its answer: ask again later");
}

void judge_fail(
    struct judge *judge, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    struct judge_effect *effect = judge_effect_add(judge, JUDGE_EFFECT_FAIL);
    va_list arguments;

    assert(call != 0);
    assert(status != SUMAC_OK);
    if (effect == NULL)
        return;
    effect->call = call;
    effect->error.status = status;
    effect->error.reason = reason;
    va_start(arguments, format);
    (void)text_print_line_values(effect->error.text, sizeof effect->error.text, format, arguments);
    va_end(arguments);
}

void judge_effects_end(struct judge *judge, struct judge_effects *effects)
{
    struct judge_said *said = judge->said;

    if (said->overflowed) {
        struct judge_effect *effect = judge_effect_add(judge, JUDGE_EFFECT_EXIT);
        assert(effect != NULL); /* its place is kept */
        (void)fail(
            &effect->error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
            "ps %u ends, and its state with it: no memory for what it has to say",
            judge->config->index);
    }
    *effects = (struct judge_effects){.items = said->items, .count = said->count};
}
