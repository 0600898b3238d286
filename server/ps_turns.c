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
    LIST_APPEND(&turns->waiting, link, in_turns);
    return true;
}

static void leave(struct ps_turns *turns, struct ps_link *link)
{
    assert(link->waits);
    LIST_REMOVE(&turns->waiting, link, in_turns);
    link->waits = false;
}

struct ps_link *ps_turns_take(struct ps_turns *turns)
{
    struct ps_link *const link = turns->waiting.first;

    if (link != NULL)
        leave(turns, link);
    return link;
}

void ps_turns_forget(struct ps_turns *turns, struct ps_link *link)
{
    ps_turns_note(turns, link, false);
    if (link->waits)
        leave(turns, link);
}
