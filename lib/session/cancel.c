/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.c -- a push that its caller gives up. It keeps its number, and its bytes are sent no more.
 *
 * A committed push counts. The ps decides about a part that carried its own commit. The session
 * voids any other push, as if a ps had refused it.
 */
#include "deeds.h"

#include <assert.h>
#include <inttypes.h>

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

static void say_cancelled(struct session *session, struct push *push)
{
    push_void(session, push);
    if (push->error != NULL)
        return;
    push->refused_status = SUMAC_CANCELLED;
    push->refused_reason = SUMAC_REASON_CANCELLED;
    push->error = pool_take(&session->errors);
    if (push->error != NULL)
        (void)fail(
            push->error, SUMAC_CANCELLED, SUMAC_REASON_CANCELLED,
            "push %" PRIu64 " was cancelled, and is applied nowhere", push->sequence);
}

/* One without a sequence is over at once. It keeps its place for the step that it finishes. */
static void cancel_waiting(struct session *session, struct push *push)
{
    struct sumac_error error;

    assert(push->sequence == 0);
    (void)fail(
        &error, SUMAC_CANCELLED, SUMAC_REASON_CANCELLED,
        "the push was cancelled before it was sent, and is applied nowhere");
    (void)effect_over(session, SESSION_EFFECT_PUSHED, push->wanted.token, &error);
    push->wanted.token = 0;
    push->cancelled = true;
}

void push_cancel(struct session *session, uint64_t token)
{
    struct push *push = find_push(session, token);

    assert(token != 0);
    if (push == NULL || push->cancelled)
        return;
    if (push->sequence == 0) {
        cancel_waiting(session, push);
        return;
    }
    if (push->sequence <= session->state.commit_through)
        return;
    push->cancelled = true;
    const bool is_eager = push->part_count == 1 && push->parts[0].eager;
    if (!is_eager && holds(session, RULE_cancelled_is_voided))
        say_cancelled(session, push);
    for (uint32_t i = 0; i < push->part_count; i++)
        if (!push->parts[i].done)
            cancel_part(session, &push->parts[i]);
}
