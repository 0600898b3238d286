/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c -- what a ps says about the pushes it has parts of, and how the commit advances by it.
 */
#include "deeds.h"

/* The part that an answer of this ps is about; NULL: it is done, or never was. */
static struct part *find_part(struct session *session, const struct link *link, uint64_t sequence)
{
    if (sequence <= session->state.acked_through || sequence > session->state.last_sequence)
        return NULL;
    struct push *push = place_of(session, sequence)->push;
    assert(push == NULL || push->sequence == sequence);
    for (uint32_t i = 0; push != NULL && i < push->part_count; i++)
        if (push->parts[i].link == link && !push->parts[i].done)
            return &push->parts[i];
    return NULL;
}

/* A part has its answer. One whose chunks are still going out is ended where it is; one that small
 * parts wait for lets them go. */
static void note_answer(struct session *session, struct part *part)
{
    assert(!part->done);
    struct link *link = part->link;
    if (link->gauge == part->push->sequence) {
        link->gauge = 0;
        link->small_messages = 0;
        link_touch(session, link);
    }
    if (part->large) {
        room_answered(part);
        link_touch(session, link); /* the next one may ask */
    }
    if (link->sending != part)
        return;
    link->sending = NULL;
    if (link->sending_piece > 0 || link->sending_offset > 0) /* some of it is on this stream */
        link->cut_sequence = part->push->sequence;
    link_touch(session, link);
}

static void mark_staged(struct part *part)
{
    if (part->staged)
        return;
    part->staged = true;
    part->push->staged_count++;
    assert(part->push->staged_count <= part->push->part_count);
}

static void on_staged(struct session *session, struct link *link, const wire_staged *staged)
{
    struct part *part = find_part(session, link, staged->sequence);

    if (part == NULL || staged->resend != part->resend) /* it gave way since */
        return;
    note_answer(session, part);
    mark_staged(part);
}

static void on_refused(struct session *session, struct link *link, const wire_refused *refused)
{
    struct part *part = find_part(session, link, refused->sequence);

    if (part == NULL)
        return;
    note_answer(session, part);
    mark_staged(part);
    push_void(session, part->push);
    if (part->push->error != NULL)
        return;
    struct sumac_error *error = pool_take(&session->errors);
    part->push->error = error;
    part->push->refused_status =
        refused->status == 0 ? SUMAC_UNKNOWN : (enum sumac_status)refused->status;
    part->push->refused_reason = (enum sumac_reason)refused->reason;
    if (error == NULL)
        return;
    const bool figures = refused->expected[0] != '\0' && refused->given[0] != '\0';
    (void)fail(
        error, part->push->refused_status, part->push->refused_reason,
        "ps %" PRIu32 ": %s%s%s%s%s%s", link->ps, refused->message, figures ? " (expected " : "",
        figures ? refused->expected : "", figures ? ", given " : "", figures ? refused->given : "",
        figures ? ")" : "");
}

static void complete(struct session *session, struct push *push)
{
    assert(push->done_count == push->part_count);
    assert(place_of(session, push->sequence)->push == push);
    place_of(session, push->sequence)->push = NULL;
    if (!push->refused) {
        push_over(session, push, NULL);
        return;
    }
    assert(session->refused_count > 0);
    session->refused_count--;
    if (push->wanted.token == 0) { /* cancelled: its caller has been told */
        push_give(session, push);
        return;
    }
    struct sumac_error error;
    if (push->error != NULL)
        error = *push->error;
    else if (push->refused_status != SUMAC_OK)
        (void)fail(
            &error, push->refused_status, push->refused_reason,
            "push %" PRIu64 " was refused and is applied nowhere; the client has no memory for "
            "the message of the ps",
            push->sequence);
    else
        (void)fail(
            &error, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
            "push %" PRIu64 " was refused and is applied nowhere; its reason was lost",
            push->sequence);
    push_over(session, push, &error);
}

static void on_done(struct session *session, struct link *link, const wire_done *done)
{
    struct part *part = find_part(session, link, done->sequence);

    if (part == NULL)
        return;
    struct push *push = part->push;
    note_answer(session, part);
    mark_staged(part);
    if (done->voided)
        push_void(session, push);
    for (uint32_t i = part->first_piece; i < part->first_piece + part->piece_count; i++)
        if (push->ordinals[i] < done->n_versions)
            push->versions[push->places[i]] = done->versions[push->ordinals[i]];
    assert(part->first_piece + part->piece_count <= push->wanted.piece_count);
    part_remove(part);
    if (done->open_step > session->state.open_step)
        session->state.open_step = done->open_step;
    part->done = true;
    link_touch(session, link); /* there may be room for the next one */
    push->done_count++;
    assert(push->done_count <= push->part_count);
    if (push->done_count == push->part_count)
        complete(session, push);
}

/* Large parts: who waits, who gives way, and who has room. */
static void share_room(struct session *session, struct link *link, const wire_push_answer *answer)
{
    struct part *part;

    assert(session->phase != PHASE_OVER);
    for (size_t i = 0; i < answer->n_room_waits; i++)
        room_waits(link, answer->room_waits[i]);
    for (size_t i = 0; i < answer->n_give_way; i++)
        if ((part = find_part(session, link, answer->give_way[i]->sequence)) != NULL)
            room_give_way(session, part, answer->give_way[i]->resend);
    for (size_t i = 0; i < answer->n_resend; i++)
        if ((part = find_part(session, link, answer->resend[i])) != NULL)
            room_resend(session, part);
}

/* A contribution that is committed waits for those of the others: what comes after it is not
 * committed before it is done, or its session could be settled past it. */
static bool holds_back(struct session *session)
{
    return !is_over(session, session->held) && holds(session, RULE_no_commit_past_held_step);
}

static bool may_commit(const struct session *session, const struct push *push)
{
    if (push == NULL)
        return true; /* done */
    if (!holds(session, RULE_commit_when_staged_everywhere))
        return push->staged_count > 0;
    return push->staged_count == push->part_count;
}

/* The clock is said to every ps with the commit at a step's end, whether or not the step pushed
 * there. */
static void commit_one(struct session *session, struct window_place *place)
{
    session->state.commit_through++;
    assert(session->state.commit_through <= session->state.last_sequence);
    if (place->push != NULL && place->push->wanted.synchronous)
        session->held = session->state.commit_through;
    assert(place->push == NULL || place->push->sequence == session->state.commit_through);
    for (uint32_t i = 0; place->push != NULL && i < place->push->part_count; i++) {
        struct part *part = &place->push->parts[i];
        if (part->done || part->eager)
            continue; /* its ps knows */
        part->link->commit_due = true;
        link_touch(session, part->link);
    }
    if (place->steps == 0)
        return;
    session->state.clock += place->steps;
    place->steps = 0;
    for (uint32_t i = 0; i < session->link_count; i++) {
        link_touch(session, &session->links[i]);
        if (!holds(session, RULE_clock_to_every_ps))
            session->links[i].told_clock = session->state.clock;
    }
}

static void commit_advance(struct session *session)
{
    const uint64_t acked_before = session->state.acked_through;

    while (session->state.commit_through < session->state.last_sequence && !holds_back(session)) {
        struct window_place *place = place_of(session, session->state.commit_through + 1);
        if (!may_commit(session, place->push))
            break;
        commit_one(session, place);
    }
    while (session->state.acked_through < session->state.commit_through &&
           place_of(session, session->state.acked_through + 1)->push == NULL)
        session->state.acked_through++;
    assert(session->state.acked_through <= session->state.commit_through);
    if (session->state.acked_through > acked_before)
        pushes_admit(session); /* some wait for a sequence */
}

void push_answer(struct session *session, struct link *link, const wire_push_answer *answer)
{
    assert(session->phase != PHASE_OVER);
    if (answer->greeting != NULL &&
        !stream_greeted(session, link, SESSION_PUSH_STREAM, answer->greeting))
        return;
    if (answer->n_staged + answer->n_refused + answer->n_done > 0)
        link->streams[SESSION_PUSH_STREAM].troubled = false;
    for (size_t i = 0; i < answer->n_staged; i++)
        on_staged(session, link, answer->staged[i]);
    for (size_t i = 0; i < answer->n_refused; i++)
        on_refused(session, link, answer->refused[i]);
    for (size_t i = 0; i < answer->n_done; i++)
        on_done(session, link, answer->done[i]);
    if (answer->n_room_waits + answer->n_give_way + answer->n_resend > 0)
        share_room(session, link, answer);
    for (size_t i = 0; i < answer->n_pulled; i++)
        pulled_beside(session, link, answer->pulled[i]);
    commit_advance(session);
    if (answer->closed != NULL)
        session_closed(session, answer->closed);
    /* the leave's answer says what came of it */
    const bool leaves = session->phase == PHASE_LEAVING;
    if (answer->rejoin && !leaves) { /* session_end does nothing to one that is over */
        struct sumac_error error;
        (void)fail(
            &error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_UNKNOWN,
            "ps %" PRIu32 " does not know this session; start this process again", link->ps);
        session_end(session, &error, NULL);
    }
}
