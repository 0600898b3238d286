/* SPDX-License-Identifier: Apache-2.0 */
/* voided.c -- the pushes of a session that some ps refused, and why, if it was this one.
 *
 * A part that is refused enters the list with its reason when it takes its place in the order, so
 * that no turn can fail to void it; what other ps refused comes with commits, and with the decision
 * of a settle. Everything up to acked_through is forgotten. The list is ascending, and bounded: a
 * client has only so many pushes under way.
 */
#include "part_state.h"

#include "voided.h"

/* The place of the first voided sequence that is not below `sequence`. */
static uint32_t place_of(const struct lane_session *session, uint64_t sequence)
{
    uint32_t low = 0, high = session->voided_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (session->voided[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct voided *lane_voided_find(const struct lane_session *session, uint64_t sequence)
{
    const uint32_t place = place_of(session, sequence);

    return place < session->voided_count && session->voided[place].sequence == sequence
               ? &session->voided[place]
               : NULL;
}

bool lane_voided_reserve(struct lane *lane, struct lane_session *session, size_t more)
{
    uint32_t capacity =
        session->voided_capacity == 0 ? VOIDED_CAPACITY_MIN : session->voided_capacity;

    if (more > UINT32_MAX / 2 - session->voided_count)
        return false;
    while (capacity < session->voided_count + more)
        capacity *= 2;
    if (capacity == session->voided_capacity)
        return true;
    struct voided *list = sized_pool_take_reserved(&lane->bytes, capacity * sizeof *list);
    if (list == NULL)
        return false;
    if (session->voided_count > 0)
        memcpy(list, session->voided, session->voided_count * sizeof *list);
    sized_pool_give(
        &lane->bytes, session->voided, session->voided_capacity * sizeof *session->voided);
    session->voided = list;
    session->voided_capacity = capacity;
    assert(session->voided_capacity >= session->voided_count + more);
    return true;
}

struct voided *lane_voided_put(struct lane_session *session, uint64_t sequence)
{
    const uint32_t place = place_of(session, sequence);
    struct voided *voided = &session->voided[place];

    if (place < session->voided_count && voided->sequence == sequence)
        return voided;
    assert(session->voided_count < session->voided_capacity);
    memmove(voided + 1, voided, (session->voided_count - place) * sizeof *voided);
    session->voided_count++;
    *voided = (struct voided){.sequence = sequence};
    assert(place == 0 || session->voided[place - 1].sequence < sequence);
    return voided;
}

/* What a commit named although no part of it is here is of no use once the commit covers it: no
 * part will come. */
static void drop_useless(struct lane_session *session)
{
    const struct lane_part *part = session->parts.first;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < session->voided_count; i++) {
        const struct voided voided = session->voided[i];
        while (part != NULL && part->sequence < voided.sequence)
            part = part->in_session.next;
        const bool here =
            (part != NULL && part->sequence == voided.sequence) || voided.refusal != NULL;
        if (here || voided.sequence <= session->mark || voided.sequence > session->commit_through)
            session->voided[kept++] = voided;
    }
    session->voided_count = kept;
    assert(kept <= session->voided_count);
}

enum sumac_reason lane_voided_add(
    struct lane *lane, struct lane_session *session, uint64_t sequence, struct refusal *refusal,
    bool *looked)
{
    struct voided *voided = lane_voided_find(session, sequence);

    assert(sequence > 0);
    if (voided == NULL) {
        if (session->voided_count >= lane->config.voided_per_session_max && !*looked) {
            drop_useless(session);
            assert(session->voided_count <= lane->config.voided_per_session_max);
            *looked = true;
        }
        if (session->voided_count >= lane->config.voided_per_session_max)
            return SUMAC_REASON_TOO_MANY_REFUSED;
        if (!lane_voided_reserve(lane, session, 1))
            return SUMAC_REASON_OUT_OF_MEMORY;
        voided = lane_voided_put(session, sequence);
    }
    if (refusal != NULL) {
        assert(voided->refusal != refusal);
        pool_give(&lane->parts->refusals, voided->refusal);
        voided->refusal = refusal;
    }
    return SUMAC_REASON_UNSPECIFIED;
}

static void drop(struct lane *lane, struct lane_session *session, uint32_t place, uint32_t count)
{
    assert(place + count <= session->voided_count);
    if (count == 0)
        return;
    struct voided *at = &session->voided[place];
    for (uint32_t i = 0; i < count; i++)
        pool_give(&lane->parts->refusals, at[i].refusal);
    session->voided_count -= count;
    memmove(at, at + count, (session->voided_count - place) * sizeof *at);
}

void lane_voided_acked(struct lane *lane, struct lane_session *session, uint64_t acked_through)
{
    const uint64_t through = acked_through < session->mark ? acked_through : session->mark;

    if (through <= session->acked_through ||
        (acked_through > session->mark &&
         !rule_holds(lane->config.broken, RULE_acked_counts_to_the_mark)))
        return;
    session->acked_through = through;
    (void)lane_record_order(lane, RECORD_ACKED, session, through, NULL);
    drop(lane, session, 0, place_of(session, through + 1));
    assert(session->acked_through <= session->mark);
}

void lane_voided_forget(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    struct voided *voided = lane_voided_find(session, sequence);

    if (voided != NULL)
        drop(lane, session, (uint32_t)(voided - session->voided), 1);
}

void lane_voided_drop_reasons(struct lane *lane, struct lane_session *session)
{
    assert(session->closing);
    for (uint32_t i = 0; i < session->voided_count; i++) {
        pool_give(&lane->parts->refusals, session->voided[i].refusal);
        session->voided[i].refusal = NULL;
    }
}

void lane_voided_drop(struct lane *lane, struct lane_session *session)
{
    drop(lane, session, 0, session->voided_count);
    assert(session->voided_count == 0);
    sized_pool_give(
        &lane->bytes, session->voided, session->voided_capacity * sizeof *session->voided);
    session->voided = NULL;
    session->voided_capacity = 0;
}
