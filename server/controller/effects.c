/* SPDX-License-Identifier: Apache-2.0 */
/* effects.c -- the effects of one step, and their texts.
 *
 * The effects have an array of their own, so that a step whose arena is full can still report the
 * failure. If there is no memory for more effects, lines of the log are left out, then the array's
 * reserve is used. The last place of the reserve is for EXIT: a ps that cannot send an answer ends,
 * so that the waiting client notices.
 */
#include "controller_state.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define FIRST_CAPACITY 64u
#define ARENA_BYTES_MAX (64u << 20)
#define ARENA_KEPT_BYTES_MAX 1048576u /* what is beyond is given back with the next step */

bool controller_effects_init(struct controller *controller)
{
    struct controller_said *said = memory_take(controller->memory, sizeof *said);

    controller->said = said;
    if (said == NULL)
        return false;
    memset(said, 0, sizeof *said);
    arena_init(&said->arena, controller->memory, ARENA_BYTES_MAX);
    return reserved_array_init(
        &said->effects, controller->memory, sizeof(struct controller_effect), FIRST_CAPACITY);
}

void controller_effects_deinit(struct controller *controller)
{
    struct controller_said *said = controller->said;

    if (said == NULL)
        return;
    reserved_array_deinit(&said->effects);
    arena_deinit(&said->arena);
    memory_give(controller->memory, said, sizeof *said);
}

void controller_effects_begin(struct controller *controller, bool follows)
{
    struct controller_said *said = controller->said;

    reserved_array_reset(&said->effects);
    said->texts_short = false;
    if (!follows && said->arena.bytes_used > ARENA_KEPT_BYTES_MAX)
        arena_deinit(&said->arena);
    else if (!follows)
        arena_reset(&said->arena);
}

struct controller_effect *
controller_effect_add(struct controller *controller, enum controller_effect_kind kind)
{
    const enum reserved_place place = kind == CONTROLLER_EFFECT_LOG    ? RESERVED_PLACE_NONE
                                      : kind == CONTROLLER_EFFECT_EXIT ? RESERVED_PLACE_LAST
                                                                       : RESERVED_PLACE_ANY;
    struct controller_effect *const effect = reserved_array_add(&controller->said->effects, place);

    effect->kind = kind;
    return effect;
}

void controller_effects_lose(struct controller *controller)
{
    controller->said->effects.lost = true;
}

char *controller_text(const struct controller *controller, const char *format, ...)
{
    static char none[] = "";
    va_list arguments;

    va_start(arguments, format);
    char *const text = text_line_in(&controller->said->arena, format, arguments);
    va_end(arguments);
    controller->said->texts_short |= text == NULL;
    return text == NULL ? none : text;
}

/* Nobody's answer lacks a line of the log. */
void controller_log(struct controller *controller, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *const text = log_limit_line(
        &controller->log_limit, &controller->said->arena, controller->now_us, format, arguments);
    va_end(arguments);
    if (text != NULL)
        controller_effect_add(controller, CONTROLLER_EFFECT_LOG)->text = text;
}

void controller_answer(
    struct controller *controller, uint64_t call, const wire_message *reply,
    const struct sumac_error *error)
{
    struct controller_effect *effect = controller_effect_add(
        controller, reply != NULL ? CONTROLLER_EFFECT_REPLY : CONTROLLER_EFFECT_FAIL);

    assert(call != 0);
    assert((reply != NULL) == (error->status == SUMAC_OK));
    effect->call = call;
    effect->reply = reply;
    effect->error = *error;
}

void controller_error_memory(struct sumac_error *error)
{
    assert(error->status == SUMAC_OK);
    (void)fail_for_memory(error, "the ps has no memory for its answer: ask again later");
}

/* Somebody would wait in vain for what was lost: they learn it from this ps's end. */
static void end_overflowed(struct controller *controller)
{
    const uint32_t said = controller->said->effects.count;
    struct controller_effect *const end = controller_effect_add(controller, CONTROLLER_EFFECT_EXIT);

    assert(controller->said->effects.count == said + 1); /* its place is kept */
    (void)fail(
        &end->error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
        "ps %u ends, and its state with it: no memory for what it has to say",
        controller->config->index);
}

void controller_effects_end(struct controller *controller, struct controller_effects *effects)
{
    if (controller->said->effects.lost)
        end_overflowed(controller);
    const void *const items = controller->said->effects.items;
    *effects =
        (struct controller_effects){.items = items, .count = controller->said->effects.count};
}
