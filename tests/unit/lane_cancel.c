/* SPDX-License-Identifier: Apache-2.0 */
/* lane_cancel.c -- pushes that their client cancels: before a part is here, while it is, and too
 * late. */
#include "lane_opened.h"

static void cancel(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous)
{
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    header.sequence = sequence;
    header.previous = previous;
    header.first = header.last = header.cancelled = true;
    request.parts = parts;
    request.n_parts = 1;
    talk_push(talk, stream, &request, NULL, 0);
}

TALK_TEST(a_push_that_never_came_is_voided)
{
    const uint64_t stream = begin(talk);

    cancel(talk, stream, 1, 0);
    talk_expect(talk, "refused 1 CANCELLED\n");

    talk_commit(talk, stream, 1, 1, 0);

    talk_expect(talk, "done 1 voided\n");
}

TALK_TEST(a_staged_push_is_voided_and_what_it_held_is_freed)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    talk_expect(talk, "staged 1\n");
    cancel(talk, stream, 1, 0);
    talk_expect(talk, "refused 1 CANCELLED\n");
    cancel(talk, stream, 1, 0); /* said again, it is answered again */
    talk_expect(talk, "refused 1 CANCELLED\n");
    talk_commit(talk, stream, 1, 1, 0);
    talk_expect(talk, "done 1 voided\n");

    send(talk, stream, 2, 1); /* then: the next one has its turn */

    talk_expect(talk, "staged 2\n");
    talk_commit(talk, stream, 2, 0, 0);
    talk_expect(talk, "done 2 [1]\n");
}

TALK_TEST(a_push_that_is_committed_counts)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 2, 1); /* given: it waits for push 1 */
    talk_commit(talk, stream, 2, 0, 0);
    talk_forget(talk);

    cancel(talk, stream, 2, 1);

    talk_expect(talk, "staged 2\n");
    send(talk, stream, 1, 0);
    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 2 [2]\n");
}

TALK_TEST(a_push_that_is_done_stays_done)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");

    cancel(talk, stream, 1, 0);

    assert_non_null(strstr(talk->text, "done 1"));
    assert_null(strstr(talk->text, "voided"));
}

TALK_TEST(a_part_that_is_being_received_is_dropped)
{
    const uint64_t stream = begin(talk);
    const struct talk_part sent = part(1, 0);

    talk_part_step(talk, stream, &sent, 0, 2); /* given: half of it */

    cancel(talk, stream, 1, 0);

    talk_expect(talk, "refused 1 CANCELLED\n");
}
