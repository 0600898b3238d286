/* SPDX-License-Identifier: Apache-2.0 */
/* trouble.c -- what a wait says: why the last stream to its ps ended, until that ps accepts
 * something on the next one; which step it waits with; and what else it waits for at a ps that is
 * well. */
#include "deeds.h"

#include <string.h>

void trouble_note(
    struct session *session, struct link *link, enum session_stream_kind kind, const char *why)
{
    struct trouble *trouble = &link->troubles[kind];

    assert(link->streams[kind].state == STREAM_SHUT);
    link->streams[kind].troubled = true;
    trouble->ended_us = session->now_us;
    (void)text_print_line(trouble->text, sizeof trouble->text, "%s", why);
}

void trouble_tell(
    const struct session *session, const struct link *link, enum session_stream_kind kind,
    struct sumac_error *error)
{
    const struct trouble *trouble = &link->troubles[kind];
    const size_t said = strlen(error->text);

    assert(said < sizeof error->text);
    if (!link->streams[kind].troubled)
        return;
    (void)text_print(
        error->text + said, sizeof error->text - said, "; its %s stream ended %s ago: %s",
        kind == SESSION_PUSH_STREAM ? "push" : "pull",
        text_time_us(session->now_us - trouble->ended_us).text, trouble->text);
}

/* Whose push stream holds up the pushes up to that sequence; NULL: nobody's. */
static const struct link *find_among_pushes(const struct session *session, uint64_t sequence)
{
    for (uint32_t i = 0; i < session->link_count; i++) {
        const struct link *link = &session->links[i];
        const struct part *part = link->parts.first;
        if (link->streams[SESSION_PUSH_STREAM].troubled && part != NULL &&
            part->push->sequence <= sequence)
            return link;
    }
    return NULL;
}

/* Whose grant is not known yet, of those that the pushes without a sequence wait for. */
static const struct link *find_among_waiting(const struct session *session, uint64_t token)
{
    LIST_FOREACH(const struct push, push, &session->waiting, among_waiting) {
        for (uint32_t i = 0; i < push->part_count; i++) {
            const struct link *link = push->parts[i].link;
            if (!link->knows_grant && link->streams[SESSION_PUSH_STREAM].troubled)
                return link;
        }
        if (push->wanted.token == token)
            break;
    }
    return NULL;
}

static const struct link *find_of_push(const struct session *session, uint64_t token)
{
    const struct push *push = find_push(session, token);

    assert(token != 0);
    if (push == NULL)
        return NULL;
    return push->sequence != 0 ? find_among_pushes(session, push->sequence)
                               : find_among_waiting(session, token);
}

/* What is not staged holds up the others. */
static bool is_owed_longer(const struct part *part, const struct part *than)
{
    assert(!part->done && !than->done);
    return part->staged != than->staged ? than->staged
                                        : part->link->answered_us < than->link->answered_us;
}

static const struct link *find_owing_push(const struct push *push)
{
    const struct part *found = NULL;

    for (uint32_t i = 0; i < push->part_count; i++) {
        const struct part *part = &push->parts[i];
        if (!part->done && (found == NULL || is_owed_longer(part, found)))
            found = part;
    }
    return found == NULL ? NULL : found->link;
}

static const struct link *find_owing_pull(const struct pull *pull)
{
    const struct link *found = NULL;

    LIST_FOREACH(const struct request, request, &pull->requests, of_pull) {
        if (found == NULL || request->link->answered_us < found->answered_us)
            found = request->link;
    }
    return found;
}

bool session_find_owing(const struct session *session, uint64_t token, uint32_t *ps)
{
    const struct pull *const pull = find_pull(session, token);
    const struct push *const push = pull != NULL ? NULL : find_push(session, token);
    const struct link *const link = pull != NULL   ? find_owing_pull(pull)
                                    : push != NULL ? find_owing_push(push)
                                                   : NULL;

    if (link != NULL)
        *ps = link->ps;
    return link != NULL;
}

static const struct link *find_of_pull(const struct pull *pull)
{
    LIST_FOREACH(const struct request, request, &pull->requests, of_pull)
        if (request->link->streams[SESSION_PULL_STREAM].troubled)
            return request->link;
    return NULL;
}

bool session_find_step(const struct session *session, uint64_t token, uint32_t *ps, uint64_t *step)
{
    const struct push *push = find_push(session, token);

    if (push == NULL || !push->wanted.synchronous || push->sequence == 0 ||
        push->sequence > session->state.commit_through)
        return false;
    for (uint32_t i = 0; i < push->part_count; i++) {
        if (push->parts[i].done)
            continue;
        *ps = push->parts[i].link->ps;
        *step = push->step;
        return true;
    }
    return false;
}

bool session_find_trouble(
    const struct session *session, uint64_t token, struct session_trouble *trouble)
{
    enum session_stream_kind kind = SESSION_PULL_STREAM;
    const struct link *link = NULL;
    const struct pull *const pull = find_pull(session, token);

    if (pull != NULL)
        link = find_of_pull(pull);
    if (link == NULL) {
        kind = SESSION_PUSH_STREAM;
        if (pull == NULL)
            link = find_of_push(session, token);
        else if (pull->wanted.after_own_pushes)
            link = find_among_pushes(session, session->state.last_sequence);
    }
    if (link == NULL)
        return false;
    assert(link->streams[kind].troubled);
    *trouble = (struct session_trouble){
        .ps = link->ps,
        .stream_kind = kind,
        .ended_us = link->troubles[kind].ended_us,
        .text = link->troubles[kind].text};
    return true;
}

const char *session_find_room_wait(const struct session *session, uint64_t token)
{
    const struct push *push = find_push(session, token);

    for (uint32_t i = 0; push != NULL && push->sequence != 0 && i < session->link_count; i++)
        if (session->links[i].room_wait_sequence == push->sequence)
            return session->links[i].room_wait;
    return NULL;
}

/* A part that was staged, and is not done: it waits for its turn. NULL: a ps has yet to stage one,
 * or the push waits for its sequence. */
static const struct part *find_staged(const struct push *push)
{
    const struct part *found = NULL;

    for (uint32_t i = 0; i < push->part_count; i++) {
        const struct part *part = &push->parts[i];
        assert(!part->staged || push->sequence != 0);
        if (!part->done && !part->staged)
            return NULL;
        if (!part->done)
            found = part;
    }
    return found;
}

/* A request that its ps has, and has answered nothing to. */
static const struct request *find_unanswered(const struct pull *pull)
{
    const struct request *request = pull->requests.first;

    assert(pull->wanted.token != 0);
    while (request != NULL &&
           (!request->sent || request->piece > 0 || request->offset > 0 ||
            !request->link->streams[request->beside ? SESSION_PUSH_STREAM : SESSION_PULL_STREAM]
                 .greeted))
        request = request->of_pull.next;
    return request;
}

bool session_find_wait(const struct session *session, uint64_t token, struct session_wait *wait)
{
    const struct pull *const pull = find_pull(session, token);
    const struct push *const push = pull != NULL ? NULL : find_push(session, token);
    const struct part *const part = push != NULL ? find_staged(push) : NULL;
    const struct request *const request = pull != NULL ? find_unanswered(pull) : NULL;
    struct session_trouble trouble;

    *wait = (struct session_wait){.ps = 0};
    if (push != NULL && session_find_step(session, token, &wait->ps, &wait->at_step))
        return true;
    if ((part == NULL && request == NULL) || session_find_trouble(session, token, &trouble) ||
        session_find_room_wait(session, token) != NULL)
        return false;
    wait->ps = part != NULL ? part->link->ps : request->link->ps;
    assert(wait->ps < session->link_count);
    if (part != NULL) {
        wait->after_sequence = push->sequence;
        return true;
    }
    wait->of_pieces = pull->wanted.collective == NULL;
    wait->bounded = pull->wanted.bounded;
    wait->lag_max = pull->wanted.lag_max;
    wait->clock = pull->clock;
    wait->after_sequence = request->after_sequence;
    wait->at_step = pull->wanted.at_step;
    wait->collective = pull->wanted.collective;
    return true;
}
