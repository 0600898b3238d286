/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c -- rounds of rendezvous that are split over several ps: how each ends.
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
 * docs/protocol/PROTOCOL.md, "Rendezvous", rule 6.
 */
#include "meet.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "meeting.h"
#include "text.h"

static struct controller_meeting *
find(const struct controller *controller, const struct meeting *meeting)
{
    struct controller_meeting *known = controller->meetings.first;

    assert(meeting->round > 0);
    while (known != NULL && (known->meeting->round != meeting->round ||
                             strcmp(known->meeting->name, meeting->name) != 0 ||
                             meeting_other_attempt(known->meeting, meeting) != UINT32_MAX))
        known = known->in_controller.next;
    return known;
}

struct controller_meeting *
controller_meeting_by_number(const struct controller *controller, uint64_t number)
{
    struct controller_meeting *known = controller->meetings.first;

    while (known != NULL && known->order.number != number)
        known = known->in_controller.next;
    return known;
}

void controller_meeting_forget(struct controller *controller, struct controller_meeting *meeting)
{
    assert(controller->meeting_count > 0);
    controller->meeting_count--;
    LIST_REMOVE(&controller->meetings, meeting, in_controller);
    memory_give(controller->memory, meeting, meeting->bytes);
}

/* In the step's arena, as if its first participant had said so: it is of no interest who did. */
static enum sumac_status read_meeting(
    struct controller *controller, const wire_meeting_end *end, struct meeting *meeting,
    struct sumac_error *error)
{
    const wire_meeting *said = end->meeting;
    struct meeting_texts *texts = arena_take(&controller->said->arena, sizeof *texts);

    if (texts == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory for the end of a round");
    if (said == NULL || said->n_tasks == 0 || end->status > SUMAC_UNAUTHENTICATED)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "the report names no round, or no participant, or ends it with status %u", end->status);
    const struct meeting_task first = meeting_task_of(said->tasks[0]);
    return meeting_read(said, &first, texts, meeting, error);
}

/* NULL: it is there, or there is no room for it. */
static struct controller_meeting *
add(struct controller *controller, const struct meeting *proposed, const wire_meeting_end *end)
{
    const size_t bytes = sizeof(struct controller_meeting) + meeting_copy_bytes(proposed);

    if (find(controller, proposed) != NULL || controller->meeting_count == CONTROLLER_MEETINGS_MAX)
        return NULL;
    struct controller_meeting *made = memory_take(controller->memory, bytes);
    if (made == NULL)
        return NULL;
    memset(made, 0, sizeof *made);
    made->bytes = bytes;
    made->order.meeting = made;
    made->meeting = meeting_copy(proposed, made + 1);
    made->end.status = (enum sumac_status)end->status;
    made->end.reason = (enum sumac_reason)end->reason;
    (void)text_print_line(made->end.text, sizeof made->end.text, "%s", end->message);
    LIST_APPEND(&controller->meetings, made, in_controller);
    controller->meeting_count++;
    return made;
}

static void propose(struct controller *controller, const wire_meeting_end *end)
{
    struct meeting meeting;
    struct sumac_error error;

    assert(controller->ps_count > 0); /* one has said so */
    if (controller_run_is_over(controller))
        return;
    if (read_meeting(controller, end, &meeting, &error) != SUMAC_OK) {
        controller_log(
            controller, "the end of a round that a ps proposes is not taken: %s", error.text);
        return;
    }
    struct controller_meeting *made = add(controller, &meeting, end);
    if (made == NULL)
        return;
    controller_order_meeting(controller, made);
    controller_row_changed(controller, CONTROLLER_ROW_MEETING, &made->row);
}

void controller_meetings_reported(struct controller *controller, const wire_peer_report *report)
{
    for (size_t i = 0; i < report->n_meets; i++)
        propose(controller, report->meets[i]);
}

struct controller_meeting *controller_meeting_replay(
    struct controller *controller, uint64_t number, const wire_meeting_end *end)
{
    const uint64_t last =
        controller->meetings.last == NULL ? 0 : controller->meetings.last->order.number;
    const bool follows =
        number > last && number >> CONTROLLER_ORDERS_OF_BEGINNING_BITS == controller->beginnings;
    struct meeting meeting;
    struct sumac_error error;

    assert(!controller->records); /* it has yet to begin */
    if (!follows || controller->ps_count == 0 ||
        read_meeting(controller, end, &meeting, &error) != SUMAC_OK)
        return NULL;
    struct controller_meeting *made = add(controller, &meeting, end);
    if (made != NULL)
        made->order.number = number;
    return made;
}

void controller_meetings_begin_again(struct controller *controller)
{
    assert(controller->orders.first == NULL); /* theirs are the smallest numbers */
    for (struct controller_meeting *meeting = controller->meetings.first; meeting != NULL;
         meeting = meeting->in_controller.next)
        controller_order_meeting(controller, meeting);
}

void controller_meeting_complete(struct controller *controller, struct controller_meeting *meeting)
{
    assert(controller_mask_empty(&meeting->order.pending));
    controller_row_gone(controller, CONTROLLER_ROW_MEETING, &meeting->row);
    controller_meeting_forget(controller, meeting);
}

wire_meeting_end *
controller_meeting_message(struct controller *controller, const struct controller_meeting *meeting)
{
    const size_t text_bytes = strlen(meeting->end.text) + 1;
    wire_meeting_end *message = arena_take(&controller->said->arena, sizeof *message);
    char *text = arena_take(&controller->said->arena, text_bytes);

    assert(meeting->meeting != NULL);
    if (message == NULL || text == NULL)
        return NULL;
    memcpy(text, meeting->end.text, text_bytes);
    *message = (wire_meeting_end)WIRE_MEETING_END_INIT;
    message->meeting = meeting_write(meeting->meeting, &controller->said->arena);
    message->status = (uint32_t)meeting->end.status;
    message->reason = (Sumac__V1__Reason)meeting->end.reason;
    message->message = text;
    return message->meeting == NULL ? NULL : message;
}

const char *controller_meeting_text(
    const struct controller *controller, const struct controller_meeting *meeting)
{
    return controller_text(
        controller, "to hear how round %" PRIu64 " of rendezvous %.100s ended",
        meeting->meeting->round, meeting->meeting->name);
}

uint64_t controller_meetings_bytes_max(void)
{
    return CONTROLLER_MEETINGS_MAX * (sizeof(struct controller_meeting) + sizeof(struct meeting) +
                                      sizeof(struct meeting_texts));
}

void controller_meetings_deinit(struct controller *controller)
{
    while (controller->meetings.first != NULL)
        controller_meeting_forget(controller, controller->meetings.first);
    assert(controller->meeting_count == 0);
}
