/* SPDX-License-Identifier: Apache-2.0 */
/* hold_answers.c -- answers, which wait for their record. They are made in the memory of a step,
 * and are kept as the bytes that they will be sent as. */
#include "controller_state.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "text.h"

/* The error of a call whose answer finds no memory. */
static void fail_answer(struct sumac_error *error)
{
    assert(error->status == SUMAC_OK);
    (void)fail_for_memory(error, "the ps has no memory for its answer: ask again later");
}

/* Finish the call now, without waiting for a record. reply NULL: finish with the error. */
static void answer(
    struct controller *controller, uint64_t call, const wire_message *reply,
    const struct sumac_error *error)
{
    struct lane_effect *effect =
        out_add(controller->out, reply != NULL ? LANE_EFFECT_REPLY : LANE_EFFECT_FAIL);

    assert(call != 0);
    assert((reply != NULL) == (error->status == SUMAC_OK));
    effect->call = call;
    effect->reply = reply;
    effect->error = *error;
}

static void give(struct controller *controller, struct controller_held *held)
{
    assert(held->byte_count <= controller->held_bytes);
    controller->held_bytes -= held->byte_count;
    memory_give(controller->memory, held->bytes, held->byte_count);
    LIST_REMOVE(&controller->held, held, in_controller);
    pool_give(&controller->held_pool, held);
}

void controller_held_deinit(struct controller *controller)
{
    while (controller->held.first != NULL)
        give(controller, controller->held.first);
    assert(controller->held_bytes == 0);
    pool_deinit(&controller->held_pool);
}

/* Beyond the step that it was made in. */
static void keep(struct controller *controller, struct controller_held *held)
{
    const wire_message *reply = held->reply;

    assert(held->bytes == NULL);
    held->kept = true;
    held->reply = NULL;
    if (reply == NULL)
        return;
    const size_t count = wire_packed_bytes(reply, 0) + 1; /* of some messages 0 are sent */
    if (count <= CONTROLLER_HELD_BYTES_MAX - controller->held_bytes)
        held->bytes = memory_take(controller->memory, count);
    if (held->bytes == NULL) {
        fail_answer(&held->error);
        return;
    }
    wire_pack(reply, 0, held->bytes);
    held->type = reply->descriptor;
    held->byte_count = count;
    controller->held_bytes += held->byte_count;
    assert(controller->held_bytes <= CONTROLLER_HELD_BYTES_MAX);
}

/* What was kept, as a message in the step's arena. */
static void reopen(struct controller *controller, struct controller_held *held)
{
    struct wire_received received;
    struct sumac_error error;

    assert(held->reply == NULL);
    if (held->bytes == NULL)
        return;
    const size_t count = held->byte_count - 1;
    uint8_t *copy = arena_take(controller->out->arena, held->byte_count);
    const struct span span = {.data = copy, .bytes = count};
    if (copy != NULL)
        memcpy(copy, held->bytes, count);
    if (copy == NULL ||
        wire_unpack(held->type, &span, count > 0, controller->out->arena, &received, &error) !=
            SUMAC_OK)
        fail_answer(&held->error);
    else
        held->reply = received.message;
}

void controller_held_say(struct controller *controller)
{
    assert(controller->recorded <= controller->last_record);
    for (struct controller_held *held = controller->held.last; held != NULL && held->record == 0;
         held = held->in_controller.prev)
        held->record = controller->last_record;
    while (controller->held.first != NULL &&
           controller->held.first->record <= controller->recorded) {
        struct controller_held *held = controller->held.first;
        if (held->reply == NULL)
            reopen(controller, held);
        answer(controller, held->call, held->reply, &held->error);
        give(controller, held);
    }
    for (struct controller_held *held = controller->held.last; held != NULL && !held->kept;
         held = held->in_controller.prev)
        keep(controller, held);
}

void controller_held_forget(struct controller *controller, uint64_t call)
{
    LIST_FOREACH_SAFE(struct controller_held, held, &controller->held, in_controller) {
        assert(held->call != 0); /* none has number 0 */
        if (held->call == call)
            give(controller, held);
    }
}

uint64_t controller_held_bytes_max(const struct controller *controller)
{
    if (!controller->config->records)
        return 0;
    return CONTROLLER_HELD_BYTES_MAX +
           (uint64_t)controller->config->calls_max * sizeof(struct controller_held);
}

/* The caller learns it from this ps's end, if there is no memory even for this. */
static void answer_or_hold(
    struct controller *controller, uint64_t call, const wire_message *reply,
    const struct sumac_error *error)
{
    assert(call != 0);
    if (!controller->records) {
        answer(controller, call, reply, error);
        return;
    }
    struct controller_held *held = pool_take(&controller->held_pool);
    if (held == NULL) {
        out_lose(controller->out);
        return;
    }
    held->call = call;
    held->reply = reply;
    held->error = *error;
    LIST_APPEND(&controller->held, held, in_controller);
}

void controller_reply_or_fail(
    struct controller *controller, uint64_t call, const wire_message *reply)
{
    const bool whole = reply != NULL && !controller->out->is_short;
    struct sumac_error error = {0};

    if (!whole)
        fail_answer(&error);
    answer_or_hold(controller, call, whole ? reply : NULL, &error);
}

void controller_fail_with(
    struct controller *controller, uint64_t call, const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    answer_or_hold(controller, call, NULL, error);
}

void controller_fail_over(struct controller *controller, uint64_t call)
{
    assert(controller->phase != CONTROLLER_RUNNING);
    controller_fail(
        controller, call, status_of_end(controller->end_reason), controller->end_reason,
        "the run is over: %s", controller->end_text);
}

void controller_fail(
    struct controller *controller, uint64_t call, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...)
{
    struct sumac_error error = {.status = status, .reason = reason};
    va_list arguments;

    assert(status != SUMAC_OK);
    va_start(arguments, format);
    (void)text_print_line_values(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    answer_or_hold(controller, call, NULL, &error);
}
