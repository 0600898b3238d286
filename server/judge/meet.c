/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c -- rounds of rendezvous that are split over several ps: how each ends.
 *
 *   a ps proposes ─► the first proposal counts ─► its record ─► an order to every ps ─► all have
 *                                                                 answered: it is forgotten
 *
 * Who proposes says so again until it is ordered, so what there is no room for here comes again.
 *
 * A judge that begins again with its records does not know who has answered, and asks all. The
 * order has the number that it had: a ps obeys ends in the order of their numbers, and takes one
 * for obeyed by its number alone, since all who came may have heard of the round by then, and it
 * has forgotten that. Under a new number it would begin the round anew, for nobody. So they come
 * before whatever else the judge orders from then on.
 * docs/protocol/PROTOCOL.md, "Rendezvous", rule 6.
 */
#include "meet.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "meeting.h"
#include "text.h"

static struct judge_meeting *find(const struct judge *judge, const struct meeting *meeting)
{
    struct judge_meeting *known = judge->meetings.first;

    assert(meeting->round > 0);
    while (known != NULL && (known->meeting->round != meeting->round ||
                             strcmp(known->meeting->name, meeting->name) != 0 ||
                             meeting_other_attempt(known->meeting, meeting) != UINT32_MAX))
        known = known->in_judge.next;
    return known;
}

struct judge_meeting *judge_meeting_by_number(const struct judge *judge, uint64_t number)
{
    struct judge_meeting *known = judge->meetings.first;

    while (known != NULL && known->order.number != number)
        known = known->in_judge.next;
    return known;
}

void judge_meeting_forget(struct judge *judge, struct judge_meeting *meeting)
{
    assert(judge->meeting_count > 0);
    judge->meeting_count--;
    LIST_REMOVE(&judge->meetings, meeting, in_judge);
    memory_give(judge->memory, meeting, meeting->bytes);
}

/* In the step's arena, as if its first participant had said so: it is of no interest who did. */
static enum sumac_status read_meeting(
    struct judge *judge, const wire_meeting_end *end, struct meeting *meeting,
    struct sumac_error *error)
{
    const wire_meeting *said = end->meeting;
    struct meeting_texts *texts = arena_take(&judge->said->arena, sizeof *texts);

    if (texts == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory for the end of a round");
    if (said == NULL || said->n_tasks == 0 || end->status > SUMAC_UNAUTHENTICATED)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "no round is named, or nobody who takes part, or it is to end with status %u",
            end->status);
    const struct meeting_task first = meeting_task_of(said->tasks[0]);
    return meeting_read(said, &first, texts, meeting, error);
}

/* NULL: it is there, or there is no room for it. */
static struct judge_meeting *
add(struct judge *judge, const struct meeting *proposed, const wire_meeting_end *end)
{
    const size_t bytes = sizeof(struct judge_meeting) + meeting_copy_bytes(proposed);

    if (find(judge, proposed) != NULL || judge->meeting_count == JUDGE_MEETINGS_MAX)
        return NULL;
    struct judge_meeting *made = memory_take(judge->memory, bytes);
    if (made == NULL)
        return NULL;
    memset(made, 0, sizeof *made);
    made->bytes = bytes;
    made->order.meeting = made;
    made->meeting = meeting_copy(proposed, made + 1);
    made->end.status = (enum sumac_status)end->status;
    made->end.reason = (enum sumac_reason)end->reason;
    (void)text_print_line(made->end.text, sizeof made->end.text, "%s", end->message);
    LIST_APPEND(&judge->meetings, made, in_judge);
    judge->meeting_count++;
    return made;
}

static void propose(struct judge *judge, const wire_meeting_end *end)
{
    struct meeting meeting;
    struct sumac_error error;

    assert(judge->ps_count > 0); /* one has said so */
    if (judge_run_is_over(judge))
        return;
    if (read_meeting(judge, end, &meeting, &error) != SUMAC_OK) {
        judge_log(judge, "the end of a round that a ps proposes is not taken: %s", error.text);
        return;
    }
    struct judge_meeting *made = add(judge, &meeting, end);
    if (made == NULL)
        return;
    judge_order_meeting(judge, made);
    judge_row_changed(judge, JUDGE_ROW_MEETING, &made->row);
}

void judge_meetings_reported(struct judge *judge, const wire_peer_report *report)
{
    for (size_t i = 0; i < report->n_meets; i++)
        propose(judge, report->meets[i]);
}

struct judge_meeting *
judge_meeting_replay(struct judge *judge, uint64_t number, const wire_meeting_end *end)
{
    const uint64_t last = judge->meetings.last == NULL ? 0 : judge->meetings.last->order.number;
    const bool follows =
        number > last && number >> JUDGE_ORDERS_OF_BEGINNING_BITS == judge->beginnings;
    struct meeting meeting;
    struct sumac_error error;

    assert(!judge->records); /* it has yet to begin */
    if (!follows || judge->ps_count == 0 || read_meeting(judge, end, &meeting, &error) != SUMAC_OK)
        return NULL;
    struct judge_meeting *made = add(judge, &meeting, end);
    if (made != NULL)
        made->order.number = number;
    return made;
}

void judge_meetings_begin_again(struct judge *judge)
{
    assert(judge->orders.first == NULL); /* theirs are the smallest numbers */
    for (struct judge_meeting *meeting = judge->meetings.first; meeting != NULL;
         meeting = meeting->in_judge.next)
        judge_order_meeting(judge, meeting);
}

void judge_meeting_complete(struct judge *judge, struct judge_meeting *meeting)
{
    assert(judge_mask_empty(&meeting->order.pending));
    judge_row_gone(judge, JUDGE_ROW_MEETING, &meeting->row);
    judge_meeting_forget(judge, meeting);
}

wire_meeting_end *judge_meeting_message(struct judge *judge, const struct judge_meeting *meeting)
{
    const size_t text_bytes = strlen(meeting->end.text) + 1;
    wire_meeting_end *message = arena_take(&judge->said->arena, sizeof *message);
    char *text = arena_take(&judge->said->arena, text_bytes);

    assert(meeting->meeting != NULL);
    if (message == NULL || text == NULL)
        return NULL;
    memcpy(text, meeting->end.text, text_bytes);
    *message = (wire_meeting_end)WIRE_MEETING_END_INIT;
    message->meeting = meeting_write(meeting->meeting, &judge->said->arena);
    message->status = (uint32_t)meeting->end.status;
    message->reason = (Sumac__V1__Reason)meeting->end.reason;
    message->message = text;
    return message->meeting == NULL ? NULL : message;
}

const char *judge_meeting_text(const struct judge *judge, const struct judge_meeting *meeting)
{
    return judge_text(
        judge, "to hear how round %" PRIu64 " of rendezvous %.100s ended", meeting->meeting->round,
        meeting->meeting->name);
}

uint64_t judge_meetings_bytes_max(void)
{
    return JUDGE_MEETINGS_MAX *
           (sizeof(struct judge_meeting) + sizeof(struct meeting) + sizeof(struct meeting_texts));
}

void judge_meetings_deinit(struct judge *judge)
{
    while (judge->meetings.first != NULL)
        judge_meeting_forget(judge, judge->meetings.first);
    assert(judge->meeting_count == 0);
}
