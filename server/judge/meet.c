/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c -- rounds of rendezvous that are split over several ps: how each ends.
 *
 *   a ps proposes ─► the first proposal counts ─► an order to every ps ─► all have answered: it is
 *                                                                          forgotten
 *
 * Who proposes says so again until it is ordered, so what there is no room for here comes again.
 * docs/protocol/PROTOCOL.md, "Rendezvous", rule 6.
 */
#include "meet.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "meeting.h"
#include "text.h"

struct judge_meeting {
    LINKS(struct judge_meeting) in_judge;
    struct sumac_error end; /* status OK: it passed */
    size_t bytes;           /* of this, with what the meeting lies in behind it */
    struct meeting *meeting;
};

static struct judge_meeting *find(const struct judge *judge, const struct meeting *meeting)
{
    struct judge_meeting *known = judge->meetings.first;

    assert(meeting->round > 0);
    while (known != NULL && (known->meeting->round != meeting->round ||
                             strcmp(known->meeting->name, meeting->name) != 0))
        known = known->in_judge.next;
    return known;
}

static void forget(struct judge *judge, struct judge_meeting *meeting)
{
    assert(judge->meeting_count > 0);
    judge->meeting_count--;
    LIST_REMOVE(&judge->meetings, meeting, in_judge);
    memory_give(judge->memory, meeting, meeting->bytes);
}

/* NULL: no memory. */
static struct judge_meeting *
make(struct judge *judge, const struct meeting *proposed, const wire_meeting_end *end)
{
    const size_t bytes = sizeof(struct judge_meeting) + meeting_copy_bytes(proposed);

    assert(judge->meeting_count < JUDGE_MEETINGS_MAX);
    struct judge_meeting *made = memory_take(judge->memory, bytes);
    if (made == NULL)
        return NULL;
    memset(made, 0, sizeof *made);
    made->bytes = bytes;
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
    const wire_meeting *said = end->meeting;
    struct meeting_texts *texts = arena_take(&judge->said->arena, sizeof *texts);
    struct meeting meeting;
    struct sumac_error error;

    if (said == NULL || said->n_tasks == 0 || texts == NULL || judge_run_is_over(judge))
        return;
    const struct meeting_task first = meeting_task_of(said->tasks[0]);
    if (meeting_read(said, &first, texts, &meeting, &error) != SUMAC_OK) {
        judge_log(judge, "a ps proposes the end of a round that there cannot be: %s", error.text);
        return;
    }
    if (find(judge, &meeting) != NULL || judge->meeting_count == JUDGE_MEETINGS_MAX)
        return;
    struct judge_meeting *made = make(judge, &meeting, end);
    if (made != NULL && !judge_order_meeting(judge, made))
        forget(judge, made);
}

void judge_meetings_reported(struct judge *judge, const wire_peer_report *report)
{
    for (size_t i = 0; i < report->n_meets; i++)
        propose(judge, report->meets[i]);
}

void judge_meeting_complete(struct judge *judge, struct judge_meeting *meeting)
{
    assert(meeting != NULL);
    forget(judge, meeting);
}

wire_meeting_end *judge_meeting_message(struct judge *judge, const struct judge_meeting *meeting)
{
    wire_meeting_end *message = arena_take(&judge->said->arena, sizeof *message);

    assert(meeting->meeting != NULL);
    if (message == NULL)
        return NULL;
    *message = (wire_meeting_end)WIRE_MEETING_END_INIT;
    message->meeting = meeting_write(meeting->meeting, &judge->said->arena);
    message->status = (uint32_t)meeting->end.status;
    message->reason = (Sumac__V1__Reason)meeting->end.reason;
    message->message = judge_text(judge, "%s", meeting->end.text);
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
        forget(judge, judge->meetings.first);
    assert(judge->meeting_count == 0);
}
