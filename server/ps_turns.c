/* SPDX-License-Identifier: Apache-2.0 */
/* ps_turns.c -- pulls take turns with everything else.
 *
 * A message of a long pull takes the lane's thread as long as a hundred small pushes: gRPC copies
 * it to the socket at once. Two hundred streams that may all go on would hold up a push for all of
 * that. So such a stream is told that it is writable only when its turn comes: one after each round
 * of what is at hand.
 *
 * A short answer is out at once, and that it is out is an event before gRPC looks at any socket.
 * Thousands of pulls that have waited may all be answered so, and nothing else be heard meanwhile.
 * So after so many answers that nobody has just asked for, the next ones wait for that look, too.
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
    const bool is_long = link->bulky && turns->bulky > 1;
    const bool is_short = link->is_stream && link->stream_kind == LANE_STREAM_PULL && !link->bulky;
    const bool is_unheard = is_short && ++turns->unasked > PS_UNASKED_PER_TURN_MAX;
    if (!is_long && !is_unheard)
        return false;
    link->waits = true;
    LIST_APPEND(&turns->waiting, link, in_turns);
    return true;
}

void ps_turns_asked(struct ps_turns *turns)
{
    if (turns->unasked > 0)
        turns->unasked--;
}

void ps_turns_looked(struct ps_turns *turns) { turns->unasked = 0; }

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
