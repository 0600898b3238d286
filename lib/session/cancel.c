/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.c -- a push that counts nowhere, or that its caller gives up. It keeps its number, and its
 * bytes are sent no more.
 *
 * A committed push counts. The ps decides about a part that carried its own commit. The session
 * voids any other push, as if a ps had refused it.
 */
#include "deeds.h"

void push_void(struct session *session, struct push *push)
{
    assert(push->sequence > session->state.acked_through);
    if (push->refused)
        return;
    push->refused = true;
    session->refused_count++;
}

/* Only its header goes out from now on. The ps frees its bytes when that is there, so they count
 * against the grant until the ps answers. */
static void cancel_part(struct session *session, struct part *part)
{
    struct link *link = part->link;
    const struct part *unsent = link->cursor;

    assert(!part->done);
    if (part->large) {
        room_remove(part);
        part->large = part->sent = false;
        part->room_bytes = 0;
        part->resend = 0;
    }
    part->cancelled = true;
    if (link->sending == part) {
        link->sending_ask = true; /* its header comes next, and ends what is on this stream of it */
    } else if (part->counted && (unsent == NULL || part->push->sequence < unsent->push->sequence)) {
        part->cancel_due = true;
        link->cancelled_due++;
    }
    link_touch(session, link);
}

/* It is over for its caller, who may be given its memory. It keeps its place among the pushes. */
static void say_cancelled(struct session *session, struct push *push)
{
    struct sumac_error error;

    (void)fail(
        &error, SUMAC_CANCELLED, SUMAC_REASON_CANCELLED,
        "the push was cancelled, and is applied nowhere");
    (void)effect_over(
        session, SESSION_EFFECT_PUSHED, push->wanted.token,
        push->error != NULL ? push->error : &error);
    push->wanted.token = 0;
    push->wanted.function_count = 0;
    push->wanted.functions = NULL;
    push->wanted.collective = NULL;
}

void push_cancel_parts(struct session *session, struct push *push)
{
    const bool is_eager = push->part_count == 1 && push->parts[0].eager;

    assert(push->cancelled && push->sequence != 0);
    if (!is_eager && holds(session, RULE_cancelled_is_voided)) {
        push_void(session, push);
        if (push->wanted.token != 0)
            say_cancelled(session, push);
    }
    for (uint32_t i = 0; i < push->part_count; i++)
        if (!push->parts[i].done)
            cancel_part(session, &push->parts[i]);
}

void push_cancel(struct session *session, uint64_t token)
{
    struct push *push = find_push(session, token);

    assert(token != 0);
    if (push == NULL || push->cancelled)
        return;
    if (push->sequence != 0 && push->sequence <= session->state.commit_through)
        return;
    push->cancelled = true;
    if (push->sequence == 0)
        say_cancelled(session, push);
    else
        push_cancel_parts(session, push);
}
