/* SPDX-License-Identifier: Apache-2.0 */
/* trouble.c -- what a wait for a ps says: why the last stream to it ended, until it accepts
 * something on the next one; and which step it waits with. */
#include "state.h"

#include <assert.h>
#include <string.h>

#include "text.h"

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
    for (const struct push *push = session->waiting.first; push != NULL;
         push = push->among_waiting.next) {
        for (uint32_t i = 0; i < push->part_count; i++) {
            const struct link *link = push->parts[i].link;
            if (!link->knows_grant && link->streams[SESSION_PUSH_STREAM].troubled)
                return link;
        }
        if (push->token == token)
            break;
    }
    return NULL;
}

static const struct push *find_sent(const struct session *session, uint64_t token)
{
    assert(token != 0);
    for (uint64_t n = session->acked_through + 1; n <= session->last_sequence; n++) {
        const struct push *push = session->window[n % WINDOW].push;
        if (push != NULL && push->token == token)
            return push;
    }
    return NULL;
}

static const struct link *find_of_push(const struct session *session, uint64_t token)
{
    const struct push *sent = find_sent(session, token);

    if (sent != NULL)
        return find_among_pushes(session, sent->sequence);
    for (const struct push *push = session->waiting.first; push != NULL;
         push = push->among_waiting.next)
        if (push->token == token)
            return find_among_waiting(session, token);
    return NULL;
}

static const struct link *find_of_pull(const struct pull *pull)
{
    for (const struct request *request = pull->requests.first; request != NULL;
         request = request->of_pull.next)
        if (request->link->streams[SESSION_PULL_STREAM].troubled)
            return request->link;
    return NULL;
}

bool session_find_step(const struct session *session, uint64_t token, uint32_t *ps, uint64_t *step)
{
    const struct push *push = find_sent(session, token);

    if (push == NULL || !push->synchronous || push->sequence > session->commit_through)
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
    const struct pull *pull = session->live_pulls.first;

    while (pull != NULL && pull->token != token)
        pull = pull->in_session.next;
    if (pull != NULL)
        link = find_of_pull(pull);
    if (link == NULL) {
        kind = SESSION_PUSH_STREAM;
        if (pull == NULL)
            link = find_of_push(session, token);
        else if (pull->after_own_pushes)
            link = find_among_pushes(session, session->last_sequence);
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
