/* SPDX-License-Identifier: Apache-2.0 */
/* controller_collectives.c -- how rounds end that are split over several ps.
 *
 *   a ps proposes ─► the first proposal counts ─► its record ─► an order to every ps ─► all have
 *                                                                 answered: it is forgotten
 *
 * A ps repeats its proposal until ps 0 orders the end, so ps 0 may drop a proposal that it has no
 * room for.
 *
 * A controller that begins again with its records does not know which ps have answered an end. It
 * orders each end again at every ps, under its old number and before any other order. A ps obeys
 * ends in the order of their numbers, and treats an end as obeyed by its number alone. It cannot
 * ask for the round: it may have forgotten the round once all participants know the end. Under a
 * new number the ps would begin the round anew, without participants.
 * docs/protocol/PROTOCOL.md, "Collectives", rule 6.
 */
#include "controller_collectives.h"

#include <assert.h>
#include <string.h>

#include "error.h"
#include "collective.h"
#include "text.h"

static struct controller_collective *
find(const struct controller *controller, const struct collective *collective)
{
    assert(collective->round > 0);
    LIST_FOREACH(struct controller_collective, known, &controller->collectives, in_controller)
        if (known->collective->round == collective->round &&
            strcmp(known->collective->name, collective->name) == 0 &&
            collective_other_attempt(known->collective, collective) == UINT32_MAX)
            return known;
    return NULL;
}

struct controller_collective *
controller_collective_by_number(const struct controller *controller, uint64_t number)
{
    LIST_FOREACH(struct controller_collective, known, &controller->collectives, in_controller)
        if (known->order.number == number)
            return known;
    return NULL;
}

void controller_collective_forget(
    struct controller *controller, struct controller_collective *collective)
{
    assert(controller->collective_count > 0);
    controller->collective_count--;
    LIST_REMOVE(&controller->collectives, collective, in_controller);
    memory_give(controller->memory, collective, collective->bytes);
}

/* In the step's arena, as if its first participant had said so: it is of no interest who did. */
static enum sumac_status read_collective(
    struct controller *controller, const wire_collective_end *end, struct collective *collective,
    struct sumac_error *error)
{
    const wire_collective *said = end->collective;
    struct collective_texts *texts = arena_take(controller->out->arena, sizeof *texts);

    if (texts == NULL)
        return fail_for_memory(error, "ps 0 has no memory for the end of a round");
    if (said == NULL || said->n_tasks == 0 || end->status > SUMAC_UNAUTHENTICATED)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "the report names no round, or no participant, or ends it with status %u", end->status);
    const struct collective_task first = collective_task_of(said->tasks[0]);
    return collective_read(said, &first, texts, collective, error);
}

/* NULL: it is there, or there is no room for it. */
static struct controller_collective *
add(struct controller *controller, const struct collective *proposed,
    const wire_collective_end *end)
{
    const size_t bytes = sizeof(struct controller_collective) + collective_copy_bytes(proposed);

    if (find(controller, proposed) != NULL ||
        controller->collective_count == CONTROLLER_COLLECTIVES_MAX)
        return NULL;
    struct controller_collective *made = memory_take_zeroed(controller->memory, bytes);
    if (made == NULL)
        return NULL;
    made->row.kind = CONTROLLER_ROW_COLLECTIVE;
    made->bytes = bytes;
    made->order.collective = made;
    made->collective = collective_copy(proposed, made + 1);
    made->end.status = (enum sumac_status)end->status;
    made->end.reason = (enum sumac_reason)end->reason;
    (void)text_print_line(made->end.text, sizeof made->end.text, "%s", end->message);
    LIST_APPEND(&controller->collectives, made, in_controller);
    controller->collective_count++;
    return made;
}

static void propose(struct controller *controller, const wire_collective_end *end)
{
    struct collective collective;
    struct sumac_error error;

    assert(controller->ps_count > 0); /* one has said so */
    if (controller->phase != CONTROLLER_RUNNING)
        return;
    if (read_collective(controller, end, &collective, &error) != SUMAC_OK) {
        out_log(
            controller->out, "the end of a round that a ps proposes is not taken: %s", error.text);
        return;
    }
    struct controller_collective *made = add(controller, &collective, end);
    if (made == NULL)
        return;
    controller_order_collective(controller, made);
    controller_row_changed(controller, &made->row);
}

void controller_collectives_reported(struct controller *controller, const wire_peer_report *report)
{
    for (size_t i = 0; i < report->n_collectives; i++)
        propose(controller, report->collectives[i]);
}

struct controller_collective *controller_collective_replay(
    struct controller *controller, uint64_t number, const wire_collective_end *end)
{
    const uint64_t last =
        controller->collectives.last == NULL ? 0 : controller->collectives.last->order.number;
    const bool follows =
        number > last && number >> CONTROLLER_ORDERS_OF_BEGINNING_BITS == controller->beginnings;
    struct collective collective;
    struct sumac_error error;

    assert(!controller->records); /* it has yet to begin */
    if (!follows || controller->ps_count == 0 ||
        read_collective(controller, end, &collective, &error) != SUMAC_OK)
        return NULL;
    struct controller_collective *made = add(controller, &collective, end);
    if (made != NULL)
        made->order.number = number;
    return made;
}

void controller_collectives_begin_again(struct controller *controller)
{
    assert(controller->orders.first == NULL); /* theirs are the smallest numbers */
    LIST_FOREACH(struct controller_collective, collective, &controller->collectives, in_controller)
        controller_order_collective(controller, collective);
}

void controller_collective_complete(
    struct controller *controller, const struct controller_order *order)
{
    struct controller_collective *collective = order->collective;

    assert(controller_mask_empty(&collective->order.pending));
    controller_row_gone(controller, &collective->row);
    controller_collective_forget(controller, collective);
}

wire_collective_end *controller_collective_message(
    struct controller *controller, const struct controller_collective *collective)
{
    const size_t text_bytes = strlen(collective->end.text) + 1;
    wire_collective_end *message = arena_take(controller->out->arena, sizeof *message);
    char *text = arena_take(controller->out->arena, text_bytes);

    assert(collective->collective != NULL);
    if (message == NULL || text == NULL)
        return NULL;
    memcpy(text, collective->end.text, text_bytes);
    *message = (wire_collective_end)WIRE_COLLECTIVE_END_INIT;
    message->collective = collective_write(collective->collective, controller->out->arena);
    message->status = (uint32_t)collective->end.status;
    message->reason = (Sumac__V1__Reason)collective->end.reason;
    message->message = text;
    return message->collective == NULL ? NULL : message;
}

uint64_t controller_collectives_bytes_max(void)
{
    return CONTROLLER_COLLECTIVES_MAX *
           (sizeof(struct controller_collective) + sizeof(struct collective) +
            sizeof(struct collective_texts));
}

void controller_collectives_deinit(struct controller *controller)
{
    while (controller->collectives.first != NULL)
        controller_collective_forget(controller, controller->collectives.first);
    assert(controller->collective_count == 0);
}
