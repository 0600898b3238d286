/* SPDX-License-Identifier: Apache-2.0 */
/* place.c -- a part takes its place among those of its session, whole or refused. */
#include "handlers.h"

#include "voided.h"

void lane_part_fail_memory(struct lane *lane, struct lane_stream *stream)
{
    (void)lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "ps %u has no memory for a part", lane->index);
}

bool lane_part_keep_refusal(struct lane *lane, struct lane_stream *stream, struct lane_part *part)
{
    const struct lane_session *session = stream->session;
    bool looked = false;

    assert(part->state == PART_REFUSED);
    assert(part->refusal != NULL);
    assert(part->sequence > 0);
    const enum sumac_reason reason =
        lane_voided_add(lane, stream->session, part->sequence, part->refusal, &looked);
    if (reason == SUMAC_REASON_UNSPECIFIED) {
        lane_part_refused(lane, part, part->refusal);
        part->refusal = NULL;
        return true;
    }
    if (reason == SUMAC_REASON_OUT_OF_MEMORY)
        lane_part_fail_memory(lane, stream);
    else
        (void)lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, reason,
            "push %" PRIu64
            " of session %s is refused, and ps %u keeps the numbers of %u refused pushes of that "
            "session, the most that it keeps: say with acked_through, which is %" PRIu64
            ", up to where the client has heard the answers, then send it again",
            part->sequence, session->task, lane->index, session->voided_count,
            session->acked_through);
    lane_part_destroy(lane, part);
    return false;
}

void lane_part_take_place(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    const bool refused = part->state == PART_REFUSED;

    assert(part->refusal == NULL);
    lane_part_move(part, refused ? PART_VOID : PART_STAGED);
    if (part->claim != NULL)
        lane_claim_hold(lane, part->claim, part);
    lane_session_insert(lane, session, part);
    if (lane->records)
        part->record = refused ? lane_record_refused(
                                     lane, part, lane_voided_find(session, part->sequence)->refusal)
                               : lane_record_part(lane, part);
    if (refused)
        lane_answer_refused(lane, session, part->sequence);
    else
        lane_answer_staged(lane, session, part);
}
