/* SPDX-License-Identifier: Apache-2.0 */
/* effects.c -- the effects of one step, and their texts.
 *
 * The effects have an array of their own, so that a step whose arena is full still says so. Where
 * the source has no memory for more of them, lines of the log are left out, then the array's
 * reserve is used, the last place of all for EXIT: a ps that cannot say what somebody waits for
 * ends, and they learn of it.
 */
#include "judge_state.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define FIRST_CAPACITY 64u
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
    return reserved_array_init(
        &said->effects, judge->memory, sizeof(struct judge_effect), FIRST_CAPACITY);
}

void judge_effects_deinit(struct judge *judge)
{
    struct judge_said *said = judge->said;

    if (said == NULL)
        return;
    reserved_array_deinit(&said->effects);
    arena_deinit(&said->arena);
    memory_give(judge->memory, said, sizeof *said);
}

void judge_effects_begin(struct judge *judge, bool follows)
{
    struct judge_said *said = judge->said;

    reserved_array_reset(&said->effects);
    said->texts_short = false;
    if (!follows && said->arena.bytes_used > ARENA_KEPT_BYTES_MAX)
        arena_deinit(&said->arena);
    else if (!follows)
        arena_reset(&said->arena);
}

struct judge_effect *judge_effect_add(struct judge *judge, enum judge_effect_kind kind)
{
    const enum reserved_place place = kind == JUDGE_EFFECT_LOG    ? RESERVED_PLACE_NONE
                                      : kind == JUDGE_EFFECT_EXIT ? RESERVED_PLACE_LAST
                                                                  : RESERVED_PLACE_ANY;
    struct judge_effect *const effect = reserved_array_add(&judge->said->effects, place);

    effect->kind = kind;
    return effect;
}

void judge_effects_lose(struct judge *judge) { judge->said->effects.lost = true; }

char *judge_text(const struct judge *judge, const char *format, ...)
{
    static char none[] = "";
    va_list arguments;

    va_start(arguments, format);
    char *const text = text_line_in(&judge->said->arena, format, arguments);
    va_end(arguments);
    judge->said->texts_short |= text == NULL;
    return text == NULL ? none : text;
}

/* Nobody's answer lacks a line of the log. */
void judge_log(struct judge *judge, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *const text =
        log_limit_line(&judge->log_limit, &judge->said->arena, judge->now_us, format, arguments);
    va_end(arguments);
    if (text != NULL)
        judge_effect_add(judge, JUDGE_EFFECT_LOG)->text = text;
}

void judge_answer(
    struct judge *judge, uint64_t call, const wire_message *reply, const struct sumac_error *error)
{
    struct judge_effect *effect =
        judge_effect_add(judge, reply != NULL ? JUDGE_EFFECT_REPLY : JUDGE_EFFECT_FAIL);

    assert(call != 0);
    assert((reply != NULL) == (error->status == SUMAC_OK));
    effect->call = call;
    effect->reply = reply;
    effect->error = *error;
}

void judge_error_memory(struct sumac_error *error)
{
    assert(error->status == SUMAC_OK);
    (void)fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "the ps has no memory for its answer: ask again later");
}

void judge_reply_or_fail(struct judge *judge, uint64_t call, const wire_message *reply)
{
    const bool whole = reply != NULL && !judge->said->texts_short;
    struct sumac_error error = {0};

    if (!whole)
        judge_error_memory(&error);
    if (judge->records)
        judge_hold(judge, call, whole ? reply : NULL, &error);
    else
        judge_answer(judge, call, whole ? reply : NULL, &error);
}

void judge_fail(
    struct judge *judge, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    struct sumac_error error = {.status = status, .reason = reason};
    va_list arguments;

    assert(status != SUMAC_OK);
    va_start(arguments, format);
    (void)text_print_line_values(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    if (judge->records)
        judge_hold(judge, call, NULL, &error);
    else
        judge_answer(judge, call, NULL, &error);
}

/* Somebody would wait in vain for what was lost: they learn it from this ps's end. */
static void end_overflowed(struct judge *judge)
{
    const uint32_t said = judge->said->effects.count;
    struct judge_effect *const end = judge_effect_add(judge, JUDGE_EFFECT_EXIT);

    assert(judge->said->effects.count == said + 1); /* its place is kept */
    (void)fail(
        &end->error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
        "ps %u ends, and its state with it: no memory for what it has to say",
        judge->config->index);
}

void judge_effects_end(struct judge *judge, struct judge_effects *effects)
{
    if (judge->said->effects.lost)
        end_overflowed(judge);
    const void *const items = judge->said->effects.items;
    *effects = (struct judge_effects){.items = items, .count = judge->said->effects.count};
}
