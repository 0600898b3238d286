/* SPDX-License-Identifier: Apache-2.0 */
/* large_parts.c -- parts that take more than the session's floor: they ask for room, one after the
 * other, send their elements when the ps wants them, and give their room back when it asks for
 * that.
 *
 *   header alone ──► resend ──► the whole part ──► staged
 *                      ▲                             │
 *                      └──── withdraw ◄── give_way ──┘  with the next round
 *
 * docs/protocol/PROTOCOL.md, "Room".
 */
#include "deeds.h"

void room_answered(struct part *part)
{
    assert(part->large || (!part->asked && !part->wanted));
    assert(!part->asked || part->link->open_asks > 0);
    assert(!part->wanted || part->link->wanted_count > 0);
    part->link->open_asks -= part->asked;
    part->link->wanted_count -= part->wanted;
    part->asked = part->wanted = false;
}

bool room_may_ask(const struct part *part)
{
    assert(part->large);
    return part->staged || part->asked || part->link->open_asks == 0;
}

void room_asked(struct part *part)
{
    if (part->staged || part->asked)
        return; /* the ps has it, and says so again */
    assert(part->large);
    part->asked = true;
    part->link->open_asks++;
}

struct part *room_next_wanted(const struct link *link)
{
    struct part *part = link->parts.first;

    assert(link->wanted_count > 0);
    while (!part->wanted)
        part = part->in_link.next;
    return part;
}

void room_resend(struct session *session, struct part *part)
{
    if (!part->large || part->wanted || part->sent || part->link->sending == part)
        return;
    part->wanted = true;
    part->link->wanted_count++;
    if (part->link->room_wait_sequence == part->push->sequence)
        part->link->room_wait_sequence = 0;
    link_touch(session, part->link);
}

static void withdraw(struct session *session, struct part *part)
{
    assert(part->large && part->resend > 0);
    if (part->withdraw_due)
        return;
    part->withdraw_due = true;
    part->link->withdraws_due++;
    link_touch(session, part->link);
}

/* Committed parts never give way: they leave the staging soon. */
void room_give_way(struct session *session, struct part *part, uint32_t resend)
{
    if (!part->large || !part->staged || part->resend != resend ||
        part->push->sequence <= session->state.commit_through)
        return;
    assert(part->push->staged_count > 0);
    part->staged = false;
    part->push->staged_count--;
    part->resend++;
    part->sent = false;
    part->asked = true;
    part->link->open_asks++;
    withdraw(session, part);
}

void room_rewind(struct session *session, struct link *link)
{
    link->room_wait_sequence = 0;
    LIST_FOREACH(struct part, part, &link->parts, in_link) {
        room_answered(part);
        part->sent = false;
        if (part->resend > 0 && !part->staged)
            withdraw(session, part);
    }
    assert(link->open_asks == 0);
    assert(link->wanted_count == 0);
}

bool room_compose_withdraws(struct session *session, struct link *link, wire_push_request *request)
{
    assert(link->withdraws_due > 0);
    wire_withdraw *withdraws = step_take(session, link->withdraws_due * sizeof *withdraws);
    wire_withdraw **pointers = step_take(session, link->withdraws_due * sizeof *pointers);
    if (withdraws == NULL || pointers == NULL)
        return false;
    LIST_FOREACH(struct part, part, &link->parts, in_link) {
        if (!part->withdraw_due)
            continue;
        assert(request->n_withdraws < link->withdraws_due);
        wire_withdraw *wire = &withdraws[request->n_withdraws];
        *wire = (wire_withdraw)WIRE_WITHDRAW_INIT;
        wire->sequence = part->push->sequence;
        wire->resend = part->resend;
        pointers[request->n_withdraws++] = wire;
        part->withdraw_due = false;
    }
    request->withdraws = pointers;
    link->withdraws_due = 0;
    return true;
}

void room_remove(struct part *part)
{
    room_answered(part);
    if (part->withdraw_due) {
        part->withdraw_due = false;
        part->link->withdraws_due--;
    }
}

void room_waits(struct link *link, const wire_room_wait *wait)
{
    assert(wait->message != NULL);
    link->room_wait_sequence = wait->sequence;
    (void)text_print_line(link->room_wait, sizeof link->room_wait, "%s", wait->message);
}
