/* SPDX-License-Identifier: Apache-2.0 */
/* session_check.c -- is all that a session keeps consistent? Every list is walked, every counter
 * counted again. */
#include <inttypes.h>
#include "session_check.h"

#include "deeds.h"

/* What is counted on the way. */
struct sums {
    const struct session *session;
    struct check *check;
    uint64_t parts; /* not done, of the pushes in the window */
    uint64_t linked_parts, requests, open_requests, pushes, errors;
};

static const char *link_name(const struct link *link)
{
    static const char *const names[] = {"ps 0", "ps 1", "ps 2", "ps 3"};

    return link->ps < sizeof names / sizeof *names ? names[link->ps] : "a ps";
}

/* ---- pushes ---- */

static void check_push(struct sums *sums, const struct push *push)
{
    uint32_t staged = 0, done = 0;

    sums->pushes++;
    sums->errors += push->error != NULL;
    for (uint32_t i = 0; i < push->part_count; i++) {
        const struct part *part = &push->parts[i];
        if (part->push != push || (i > 0 && part->link <= push->parts[i - 1].link))
            check_object(
                sums->check, "push %" PRIu64 ": its part %u is another's", push->sequence, i);
        if (part->done && !part->staged)
            check_object(
                sums->check, "push %" PRIu64 ": its part for %s is done and not staged",
                push->sequence, link_name(part->link));
        staged += part->staged;
        done += part->done;
    }
    sums->parts += push->part_count - done;
    check_same(sums->check, push->staged_count, staged, "staged parts", "a push");
    check_same(sums->check, push->done_count, done, "done parts", "a push");
    if (done == push->part_count)
        check_object(sums->check, "push %" PRIu64 " is done, and waited for", push->sequence);
}

/* From what its client has heard to the last one; before and after that the window is empty. */
static void check_window(struct sums *sums)
{
    const struct session *session = sums->session;
    uint32_t refused = 0;
    uint64_t finished = session->state.clock;

    for (const struct push *push = session->waiting.first; push != NULL;
         push = push->among_waiting.next)
        finished += push->wanted.finishes_step;
    for (uint64_t n = session->state.acked_through + 1; n <= session->state.last_sequence; n++) {
        const struct window_place *place = &session->window[n % WINDOW];
        finished += place->steps;
        if (place->push == NULL)
            continue;
        if (place->push->sequence != n) {
            check_object(
                sums->check, "push %" PRIu64 " is in the place of push %" PRIu64,
                place->push->sequence, n);
            return;
        }
        if (n <= session->state.commit_through && place->steps != 0)
            check_object(
                sums->check,
                "push %" PRIu64 " is committed, and %u steps that end with it are not counted", n,
                place->steps);
        check_push(sums, place->push);
        refused += place->push->refused;
    }
    check_same(sums->check, session->refused_count, refused, "voided pushes", "the window");
    if (session->phase == PHASE_OPEN)
        check_same(sums->check, session->steps_finished, finished, "finished steps", "the session");
}

static void check_waiting(struct sums *sums)
{
    const struct session *session = sums->session;
    const struct push *last = NULL;
    uint32_t count = 0;

    for (const struct push *push = session->waiting.first;
         push != NULL && count <= session->waiting_count;
         push = push->among_waiting.next, count++) {
        if (push->sequence != 0)
            check_object(sums->check, "push %" PRIu64 " waits for its sequence", push->sequence);
        sums->pushes++;
        last = push;
    }
    if (session->waiting.last != last)
        check_object(sums->check, "the last push that waits is not the last of the list");
    check_same(sums->check, session->waiting_count, count, "pushes that wait", "the session");
    check_same(
        sums->check, session->submitted - session->admitted, count, "pushes that were not admitted",
        "the session");
    check_same(sums->check, session->pushes.used, sums->pushes, "pushes", "the session");
    check_same(
        sums->check, session->errors.used, sums->errors, "reasons of refusals", "the session");
}

/* ---- what is on its way to one ps ---- */

static void check_parts(struct sums *sums, const struct link *link)
{
    const struct part *before = NULL;
    uint64_t counted_bytes = 0;
    uint32_t counted = 0;
    bool cursor = link->cursor == NULL, sending = link->sending == NULL;

    for (const struct part *part = link->parts.first; part != NULL; part = part->in_link.next) {
        if (part->link != link || part->in_link.prev != before || part->done ||
            (before != NULL && part->push->sequence <= before->push->sequence)) {
            check_object(
                sums->check, "%s: push %" PRIu64 " is out of its order", link_name(link),
                part->push->sequence);
            return;
        }
        if (before != NULL && part->previous < before->push->sequence)
            check_object(
                sums->check,
                "%s: push %" PRIu64 " follows push %" PRIu64 ", and push %" PRIu64 " is between",
                link_name(link), part->push->sequence, part->previous, before->push->sequence);
        sums->linked_parts++;
        counted_bytes += part->counted && !part->large ? part->room_bytes : 0;
        counted += part->counted;
        cursor |= part == link->cursor;
        sending |= part == link->sending;
        before = part;
    }
    if (link->parts.last != before || !cursor || !sending)
        check_object(
            sums->check, "%s: the newest part, or the one to be sent, is not of the list",
            link_name(link));
    check_same(
        sums->check, link->counted_bytes, counted_bytes, "bytes of the grant", link_name(link));
    check_same(
        sums->check, link->counted_parts, counted, "parts sent and not done", link_name(link));
    if (counted > 1 && (counted_bytes > link->grant_bytes || counted > link->parts_max))
        check_object(
            sums->check,
            "%s: %u parts of %" PRIu64 " bytes are sent and not done, its grant is %" PRIu64,
            link_name(link), counted, counted_bytes, link->grant_bytes);
}

/* What its large parts ask for, and give back. */
static void check_room(struct sums *sums, const struct link *link)
{
    uint32_t asks = 0, wanted = 0, withdraws = 0;

    for (const struct part *part = link->parts.first; part != NULL; part = part->in_link.next) {
        if (!part->large && (part->asked || part->wanted || part->sent || part->withdraw_due))
            check_object(
                sums->check, "%s: push %" PRIu64 " needs no room, and asks for some",
                link_name(link), part->push->sequence);
        if (part->wanted && part->sent)
            check_object(
                sums->check, "%s: push %" PRIu64 " is sent, and yet to be sent", link_name(link),
                part->push->sequence);
        asks += part->asked;
        wanted += part->wanted;
        withdraws += part->withdraw_due;
    }
    check_same(sums->check, link->open_asks, asks, "parts that ask for room", link_name(link));
    check_same(sums->check, link->wanted_count, wanted, "parts with room", link_name(link));
    check_same(sums->check, link->withdraws_due, withdraws, "withdrawals", link_name(link));
}

/* False: its list cannot be followed. */
static bool check_request(
    struct sums *sums, const struct link *link, const struct request *request,
    const struct request *before)
{
    if (request->link != link || request->in_link.prev != before ||
        request->cancelled != (request->pull == NULL)) {
        check_object(
            sums->check, "%s: request %" PRIu64 " is another's, or of no pull", link_name(link),
            request->number);
        return false;
    }
    if (request->piece > request->piece_count || request->number > sums->session->last_request)
        check_object(
            sums->check, "%s: request %" PRIu64 " is at piece %u of %u", link_name(link),
            request->number, request->piece, request->piece_count);
    sums->requests++;
    sums->open_requests += request->pull != NULL;
    return true;
}

/* Those on the push stream. */
static void check_beside(struct sums *sums, const struct link *link)
{
    const struct request *before = NULL;
    uint32_t count = 0;

    for (const struct request *request = link->beside.first; request != NULL;
         request = request->in_link.next, count++) {
        if (!check_request(sums, link, request, before))
            return;
        if (!request->beside || ((!request->sent || request->cancelled) && !link->beside_due))
            check_object(
                sums->check, "%s: request %" PRIu64 " is beside pushes, and nobody sends it",
                link_name(link), request->number);
        before = request;
    }
    if (count > 0 && !link->streams[SESSION_PUSH_STREAM].greeted &&
        sums->session->phase != PHASE_OVER && !link->gone)
        check_object(sums->check, "%s: requests wait for no push stream", link_name(link));
    check_same(sums->check, link->beside_count, count, "requests beside pushes", link_name(link));
}

static void check_requests(struct sums *sums, const struct link *link)
{
    const struct request *before = NULL;
    uint32_t sent = 0, cancelled = 0;
    bool cursor = link->request_cursor == NULL;

    for (const struct request *request = link->requests.first; request != NULL;
         request = request->in_link.next) {
        if (!check_request(sums, link, request, before))
            return;
        if (request->beside)
            check_object(
                sums->check, "%s: request %" PRIu64 " is in the pull stream's list",
                link_name(link), request->number);
        sent += request->sent;
        cancelled += request->cancelled;
        cursor |= request == link->request_cursor;
        before = request;
    }
    if (link->requests.last != before || !cursor)
        check_object(
            sums->check, "%s: the last request, or the next to be sent, is not of the list",
            link_name(link));
    check_same(sums->check, link->sent_requests, sent, "requests under way", link_name(link));
    check_same(sums->check, link->cancels_due, cancelled, "cancellations", link_name(link));
}

/* ---- streams ---- */

static void check_streams(struct sums *sums, const struct link *link)
{
    const bool reached = link->streams[SESSION_PUSH_STREAM].greeted;

    for (int kind = SESSION_PUSH_STREAM; kind <= SESSION_PULL_STREAM; kind++) {
        const struct stream *stream = &link->streams[kind];
        if ((stream->writable && stream->state != STREAM_OPEN) ||
            (stream->greeted && stream->state < STREAM_OPENING) ||
            (stream->undone && stream->state != STREAM_OPENING))
            check_object(sums->check, "%s: a stream is shut, and used", link_name(link));
    }
    if (sums->session->phase == PHASE_OPEN && !sums->session->config.reader && !link->gone &&
        reached != (link->unreached_us == NEVER))
        check_object(
            sums->check, "%s is %s, since %" PRIu64 " us", link_name(link),
            reached ? "greeted and not reached" : "not greeted and reached", link->unreached_us);
}

/* May the next part go out beside those that are not done? */
static bool has_room(const struct link *link, const struct part *part)
{
    if (part->large)
        return room_may_ask(part) && (part->counted || link->counted_parts < link->parts_max);
    return part->counted || link->counted_parts == 0 ||
           (link->counted_parts < link->parts_max &&
            link->counted_bytes + part->room_bytes <= link->grant_bytes);
}

/* What is to go out, though a push stream has taken all that it was given; NULL: nothing. */
static const char *left_of_pushes(const struct session *session, const struct link *link)
{
    const struct stream *stream = &link->streams[SESSION_PUSH_STREAM];
    const struct part *first = link->parts.first;

    if (!stream->writable)
        return NULL;
    if (!stream->hello_sent)
        return "a hello";
    if (!stream->greeted || session->phase == PHASE_SETTLING)
        return NULL;
    if (link->sending != NULL || link->cut_sequence != 0)
        return "the rest of a part";
    if (link->gauge == 0 &&
        (link->wanted_count > 0 || (link->cursor != NULL && has_room(link, link->cursor))))
        return "a part";
    if (link->commit_due && first != NULL && first->push->sequence <= session->state.commit_through)
        return "a commit";
    if (link->told_clock != session->state.clock)
        return "the clock";
    if (link->beside_due || link->withdraws_due > 0)
        return "a request, or a withdrawal";
    return session->now_us >= link->collective_due_us ? "what is over" : NULL;
}

static const char *left_of_pulls(const struct link *link)
{
    const struct stream *stream = &link->streams[SESSION_PULL_STREAM];
    const struct request *next = link->request_cursor;

    if (!stream->writable)
        return stream->state == STREAM_SHUT && link->requests.first != NULL && !link->gone
                   ? "a stream for pulls"
                   : NULL;
    if (link->cancels_due > 0)
        return "a cancellation";
    return next != NULL && next->pull->after_known &&
                   (link->pulls_max == 0 || link->sent_requests < link->pulls_max)
               ? "a pull"
               : NULL;
}

/* No message could go out and stays, and the part that small ones wait for is not over. */
static void check_idle(struct sums *sums, const struct link *link)
{
    const struct session *session = sums->session;
    const struct part *gauge = link->parts.first;

    while (gauge != NULL && gauge->push->sequence != link->gauge)
        gauge = gauge->in_link.next;
    if ((link->gauge != 0) != (gauge != NULL) || (link->gauge != 0) != (link->small_messages > 0))
        check_object(
            sums->check, "%s: small parts wait for push %" PRIu64 ", which is over",
            link_name(link), link->gauge);
    const char *left = left_of_pushes(session, link);
    if (left == NULL && session->phase == PHASE_OPEN)
        left = left_of_pulls(link);
    if (left != NULL)
        check_object(sums->check, "%s: %s could go out, and does not", link_name(link), left);
}

static void check_links(struct sums *sums)
{
    const struct session *session = sums->session;

    if (session->touched != NULL)
        check_object(sums->check, "what is to be said to %s was left", link_name(session->touched));
    for (uint32_t i = 0; i < session->link_count; i++) {
        const struct link *link = &session->links[i];
        if (link->ps != i || link->touched)
            check_object(
                sums->check, "link %u is of %s, or left to be looked at", i, link_name(link));
        if (link->parts.last != NULL && link->last_sequence < link->parts.last->push->sequence)
            check_object(
                sums->check,
                "%s: the last push there is %" PRIu64 ", and one of %" PRIu64 " is in the list",
                link_name(link), link->last_sequence, link->parts.last->push->sequence);
        if (link->told_commit > session->state.commit_through ||
            link->told_acked > session->state.acked_through)
            check_object(
                sums->check,
                "%s was told of commit %" PRIu64 " and of %" PRIu64 " heard, beyond what there is",
                link_name(link), link->told_commit, link->told_acked);
        check_parts(sums, link);
        check_room(sums, link);
        check_streams(sums, link);
        check_idle(sums, link);
        check_requests(sums, link);
        check_beside(sums, link);
    }
    check_same(sums->check, sums->parts, sums->linked_parts, "parts that are not done", "all ps");
    check_same(sums->check, session->requests.used, sums->requests, "requests", "the session");
}

/* ---- pulls ---- */

static void check_pulls(struct sums *sums)
{
    const struct session *session = sums->session;
    const struct pull *before = NULL;
    uint64_t open = 0;
    uint32_t count = 0;

    for (const struct pull *pull = session->live_pulls.first; pull != NULL;
         pull = pull->in_session.next, count++) {
        uint32_t requests = 0;
        if (pull->in_session.prev != before) {
            check_object(sums->check, "the list of pulls is broken");
            return;
        }
        for (const struct request *request = pull->requests.first;
             request != NULL && requests <= pull->open_requests;
             request = request->of_pull.next, requests++) {
            if (request->pull != pull)
                check_object(
                    sums->check, "request %" PRIu64 " is in another pull's list", request->number);
        }
        check_same(sums->check, pull->open_requests, requests, "requests", "a pull");
        if (requests == 0)
            check_object(sums->check, "a pull waits, and asks nobody");
        open += requests;
        before = pull;
    }
    check_same(sums->check, session->pull_count, count, "pulls", "the session");
    for (const struct pull *pull = session->over_pulls.first; pull != NULL;
         pull = pull->in_session.next)
        count++;
    check_same(sums->check, session->pulls.used, count, "records of pulls", "the session");
    check_same(sums->check, sums->open_requests, open, "requests of pulls", "all ps");
}

/* ---- rounds of collectives */

/* In the order of their pushes; those without a sequence come last. */
static void check_collectives(struct sums *sums)
{
    const struct session *session = sums->session;
    uint64_t after = 0;
    uint32_t count = 0;

    for (const struct session_collective *collective = session->live_collectives.first;
         collective != NULL && count <= session->collectives.used;
         collective = collective->in_session.next, count++) {
        if (collective->sequence > session->state.last_sequence ||
            (after == UINT64_MAX ? collective->sequence != 0
                                 : collective->sequence != 0 && collective->sequence <= after))
            check_object(
                sums->check, "a contribution of push %" PRIu64 " is out of its order",
                collective->sequence);
        after = collective->sequence == 0 ? UINT64_MAX : collective->sequence;
    }
    check_same(sums->check, session->collectives.used, count, "contributions", "the session");
    for (uint32_t i = 0; i < session->link_count; i++) {
        const struct link *link = &session->links[i];
        if (link->last_collective > link->last_sequence ||
            link->told_collectives > session->state.last_sequence ||
            link->told_ended > session->collectives_ended)
            check_object(
                sums->check, "%s was told of rounds through push %" PRIu64 ", beyond what there is",
                link_name(link), link->told_collectives);
    }
}

/* ---- time */

static void check_due(struct sums *sums, const char *what, uint64_t due_us)
{
    if (sums->session->wake_us > due_us)
        check_object(
            sums->check,
            "%s is due at %" PRIu64 " us, and the next tick is asked for at %" PRIu64 " us", what,
            due_us, sums->session->wake_us);
}

static void check_calls(struct sums *sums)
{
    const struct session *session = sums->session;
    uint32_t count = 0, given = 0;

    for (const struct unary *call = session->live_calls.first; call != NULL;
         call = call->links.next, count++) {
        if ((call->number != 0) != (call->due_us == NEVER) || call->number > session->last_call)
            check_object(
                sums->check, "call %" PRIu64 " is neither due nor under way, or both",
                call->number);
        given += call->wanted.token != 0;
        check_due(sums, "a call", call->due_us);
        check_due(sums, "the end of a call", call->until_us);
    }
    check_same(sums->check, session->calls.used, count, "calls", "the session");
    check_same(sums->check, session->given_calls, given, "calls of the caller's", "the session");
}

/* Whatever is to be done at a time has its tick. */
static void check_wake(struct sums *sums)
{
    const struct session *session = sums->session;

    for (uint32_t i = 0; i < session->link_count; i++)
        for (int kind = SESSION_PUSH_STREAM; kind <= SESSION_PULL_STREAM; kind++) {
            const struct stream *stream = &session->links[i].streams[kind];
            if (stream->state == STREAM_DUE)
                check_due(sums, "a stream", stream->due_us);
        }
    for (const struct pull *pull = session->live_pulls.first; pull != NULL;
         pull = pull->in_session.next)
        check_due(sums, "the end of a pull", pull->deadline_us);
    if (session->phase == PHASE_FINDING || session->phase == PHASE_JOINING)
        check_due(sums, "a line about who is missing", session->report_us);
    if (session->phase == PHASE_FINDING)
        check_due(sums, "the end of the wait for the ps", session->patience_until_us);
    for (uint32_t i = 0; i < session->link_count && session->phase == PHASE_OPEN; i++) {
        const struct link *link = &session->links[i];
        if (link->collective_due_us != NEVER && link->collective_due_us > session->now_us)
            check_due(sums, "what is over of rounds", link->collective_due_us);
        if (link->unreached_us != NEVER && !session->config.reader)
            check_due(
                sums, "the end of a ps",
                link->unreached_us + (uint64_t)session->config.ps_lost_ms * 1000);
    }
    if (session->phase == PHASE_SETTLING)
        check_due(
            sums, "the end of a settle",
            session->settling_us + (uint64_t)session->config.ps_lost_ms * 1000);
    if (session->stopping_until_us != 0)
        check_due(sums, "the end of the session", session->stopping_until_us);
    if (session->phase == PHASE_OPEN && !session->config.reader && !session->renewing)
        check_due(
            sums, "a renewal", session->sent_us + (uint64_t)session->state.lease_ms * 1000 / 3);
}

void session_check(const struct session *session, struct check *check)
{
    struct sums sums = {.session = session, .check = check};

    if (session->phase == PHASE_OVER || session->config.broken != 0)
        return;
    if (session->state.acked_through > session->state.commit_through ||
        session->state.commit_through > session->state.last_sequence)
        check_object(
            check,
            "acked through %" PRIu64 ", committed through %" PRIu64 ", and the last is %" PRIu64,
            session->state.acked_through, session->state.commit_through,
            session->state.last_sequence);
    check_window(&sums);
    check_waiting(&sums);
    check_links(&sums);
    check_pulls(&sums);
    check_collectives(&sums);
    check_calls(&sums);
    check_wake(&sums);
}
