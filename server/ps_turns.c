/* SPDX-License-Identifier: Apache-2.0 */
/* ps_turns.c -- long pulls take turns with everything else.
 *
 * A message of a long pull takes the lane's thread as long as a hundred small pushes: gRPC copies
 * it to the socket at once. Two hundred streams that may all go on would hold up a push for all of
 * that. So such a stream is told that it is writable only when its turn comes: one after each round
 * of what is at hand.
 */
#include <assert.h>

#include "ps_state.h"

void ps_turns_note(struct ps_turns *turns, struct ps_link *link, bool bulky)
{
    if (bulky && !link->bulky)
        turns->bulky++;
    if (!bulky && link->bulky)
        turns->bulky--;
    link->bulky = bulky;
}

/* One alone holds up a push for no longer than its one message. */
bool ps_turns_wait(struct ps_turns *turns, struct ps_link *link)
{
    assert(!link->waits);
    if (!link->bulky || turns->bulky == 1)
        return false;
    link->waits = true;
    link->next_waiting = NULL;
    if (turns->last != NULL)
        turns->last->next_waiting = link;
    else
        turns->first = link;
    turns->last = link;
    return true;
}

struct ps_link *ps_turns_take(struct ps_turns *turns)
{
    struct ps_link *const link = turns->first;

    if (link == NULL)
        return NULL;
    turns->first = link->next_waiting;
    if (turns->first == NULL)
        turns->last = NULL;
    link->waits = false;
    return link;
}

void ps_turns_forget(struct ps_turns *turns, struct ps_link *link)
{
    ps_turns_note(turns, link, false);
    if (!link->waits)
        return;
    struct ps_link *before = NULL;
    for (struct ps_link *at = turns->first; at != link; at = at->next_waiting)
        before = at;
    if (before != NULL)
        before->next_waiting = link->next_waiting;
    else
        turns->first = link->next_waiting;
    if (turns->last == link)
        turns->last = before;
    link->waits = false;
}
