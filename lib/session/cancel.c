/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.c -- a push that counts nowhere, or that its caller gives up. It keeps its number, and its
 * bytes are sent no more.
 *
 * A committed push counts. The ps decides about a part that carried its own commit. The session
 * voids any other push, as if a ps had refused it.
 */
#include "state.h"
#include "transfers.h"

#include <assert.h>

#include "error.h"

void push_void(struct session *session, struct push *push)
{
    assert(push->sequence > session->acked_through);
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

static bool is_eager(const struct push *push)
{
    return push->part_count == 1 && push->parts[0].eager;
}

/* It is over for its caller, who may be given its memory. It keeps its place among the pushes. */
static void say_cancelled(struct session *session, struct push *push)
{
    struct session_effect *effect = effect_add(session, SESSION_EFFECT_PUSHED);

    effect->token = push->token;
    if (push->error != NULL)
        effect->error = *push->error;
    else
        (void)fail(
            &effect->error, SUMAC_CANCELLED, SUMAC_REASON_CANCELLED,
            "the push was cancelled, and is applied nowhere");
    push->token = 0;
    push->function_count = 0;
    push->functions = NULL;
    push->collective = NULL;
}

void push_cancel_parts(struct session *session, struct push *push)
{
    assert(push->cancelled && push->sequence != 0);
    if (!is_eager(push) && holds(session, RULE_cancelled_is_voided)) {
        push_void(session, push);
        if (push->token != 0)
            say_cancelled(session, push);
    }
    for (uint32_t i = 0; i < push->part_count; i++)
        if (!push->parts[i].done)
            cancel_part(session, &push->parts[i]);
}

void push_cancel(struct session *session, uint64_t token)
{
    assert(token != 0);
    for (struct push *push = session->waiting.first; push != NULL; push = push->among_waiting.next)
        if (push->token == token) {
            push->cancelled = true;
            say_cancelled(session, push);
            return;
        }
    for (uint64_t n = session->commit_through + 1; n <= session->last_sequence; n++) {
        struct push *push = place_of(session, n)->push;
        if (push == NULL || push->token != token || push->cancelled)
            continue;
        push->cancelled = true;
        push_cancel_parts(session, push);
        return;
    }
}
