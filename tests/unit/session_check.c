/* SPDX-License-Identifier: Apache-2.0 */
/* session_check.c -- the check of a session's consistency objects to each wrong field. */
#include "corrupt.h"
#include "session_talk.h"
#include "state.h"

#define wrong(place, value, words) corrupt(session_check(session, &said), place, value, words)
#define NAME "grads"

static void expect_right(const struct session *session)
{
    struct check check = {.text = ""};

    session_check(session, &check);
    assert_string_equal(check.text, "");
}

static struct push *push_of(struct session *session, uint64_t sequence)
{
    return session->window[sequence].push;
}

/* Push 1 is committed and not done, push 2 is staged by ps 0 alone. Ps 0 has refused push 3. Push 4
 * is sent. Push 5 is not sent. */
static struct session *push_five(struct talk *talk)
{
    talk_open(talk, 2);
    for (uint64_t token = 1; token <= 4; token++)
        talk_push_out(talk, token, token < 3 ? 3 : 1);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_staged(talk, 0, 2);
    talk_refused(talk, 0, 3);
    talk_push_to(talk, 5, 1);
    talk_push_to(talk, 6, 1);
    return talk->session;
}

TALK_TEST(a_wrong_push_is_found)
{
    struct session *session = push_five(talk);
    struct push *second = push_of(session, 2), *fourth = push_of(session, 4);

    expect_right(session);

    wrong(session->state.acked_through, 2, "acked through 2, committed through 1");
    wrong(session->state.commit_through, 9, "committed through 9");
    wrong(second->sequence, 9, "push 9 is in the place of push 2");
    wrong(session->window[1].steps, 1, "push 1 is committed, and 1 steps");
    wrong(session->window[2].steps, 1, "finished steps of the session");
    wrong(session->steps_finished, 1, "finished steps of the session");
    wrong(session->state.clock, 1, "finished steps of the session");
    wrong(session->refused_count, 0, "voided pushes of the window");
    wrong(second->refused, true, "voided pushes of the window");
    wrong(second->parts[0].push, fourth, "push 2: its part 0 is another's");
    wrong(second->parts[1].link, &session->links[0], "push 2: its part 1 is another's");
    wrong(second->parts[1].done, true, "push 2: its part for ps 1 is done and not staged");
    wrong(second->staged_count, 2, "staged parts of a push");
    wrong(second->done_count, 1, "done parts of a push");
    wrong(fourth->part_count, 0, "push 4 is done, and waited for");
    wrong(session->pushes.used, 0, "pushes of the session");
    wrong(session->errors.used, 0, "reasons of refusals of the session");
    wrong(second->error, push_of(session, 3)->error, "reasons of refusals of the session");
    expect_right(session);
}

TALK_TEST(a_wrong_push_that_waits_is_found)
{
    talk_join_member(talk, 2);

    talk_push_to(talk, 1, 3);
    struct session *session = talk->session;
    expect_right(session);

    wrong(session->waiting.first->sequence, 1, "push 1 waits for its sequence");
    wrong(session->waiting.last, NULL, "the last push that waits is not the last");
    wrong(session->waiting_count, 2, "pushes that wait of the session");
    wrong(session->submitted, 0, "pushes that were not admitted of the session");
    wrong(session->pushes.used, 0, "pushes of the session");
    expect_right(session);
}

/* The first two of the list change places, or change them back. */
static void swap_first_parts(struct link *link)
{
    struct part *second = link->parts.first, *first = second->in_link.next;

    second->in_link.next = first->in_link.next;
    first->in_link.next->in_link.prev = second;
    second->in_link.prev = first;
    first->in_link.next = second;
    first->in_link.prev = NULL;
    link->parts.first = first;
}

TALK_TEST(a_wrong_part_is_found)
{
    struct session *session = push_five(talk);
    struct link *link = &session->links[0];
    struct part *part = link->parts.first, *other = &push_of(session, 1)->parts[1];

    expect_right(session);

    wrong(
        push_of(session, 4)->parts[0].link, &session->links[1], "ps 0: push 4 is out of its order");
    wrong(part->in_link.next->in_link.prev, NULL, "ps 0: push 2 is out of its order");
    push_of(session, 1)->done_count = 1;
    wrong(part->done, true, "ps 0: push 1 is out of its order");
    push_of(session, 1)->done_count = 0;
    swap_first_parts(link);
    wrong(link->touched, false, "ps 0: push 1 is out of its order");
    swap_first_parts(link);
    wrong(part->in_link.next->previous, 0, "ps 0: push 2 follows push 0, and push 1 is between");
    wrong(link->parts.last, part, "ps 0: the newest part, or the one to be sent");
    wrong(link->cursor, other, "ps 0: the newest part, or the one to be sent");
    wrong(link->sending, other, "ps 0: the newest part, or the one to be sent");
    wrong(link->counted_bytes, 0, "bytes of the grant of ps 0");
    wrong(part->large, true, "bytes of the grant of ps 0");
    wrong(link->counted_parts, 0, "parts sent and not done of ps 0");
    wrong(link->grant_bytes, 1, "its grant is 1");
    wrong(link->parts_max, 1, "ps 0: 4 parts of");
    expect_right(session);
}

TALK_TEST(a_wrong_part_with_room_is_found)
{
    struct session *session = push_five(talk);
    struct link *link = &session->links[0];
    struct part *part = link->parts.first;

    expect_right(session);

    wrong(part->asked, true, "ps 0: push 1 needs no room, and asks for some");
    wrong(part->withdraw_due, true, "ps 0: push 1 needs no room, and asks for some");
    wrong(link->open_asks, 1, "parts that ask for room of ps 0");
    wrong(link->wanted_count, 1, "parts with room of ps 0");
    wrong(link->withdraws_due, 1, "withdrawals of ps 0");
    part->large = part->sent = true;
    link->counted_bytes -= part->room_bytes;
    wrong(part->wanted, true, "ps 0: push 1 is sent, and yet to be sent");
    link->counted_bytes += part->room_bytes;
    part->large = part->sent = false;
    expect_right(session);
}

TALK_TEST(a_wrong_stream_is_found)
{
    struct session *session = push_five(talk);
    struct link *link = &session->links[0];
    struct stream *stream = &link->streams[SESSION_PUSH_STREAM];

    expect_right(session);

    wrong(stream->state, STREAM_SHUT, "ps 0: a stream is shut, and used");
    wrong(stream->undone, true, "ps 0: a stream is shut, and used");
    wrong(link->unreached_us, 1, "ps 0 is greeted and not reached");
    wrong(stream->greeted, false, "ps 0 is not greeted and reached");
    expect_right(session);
}

/* Its only push is committed there, and its stream takes the next message. */
TALK_TEST(what_could_go_out_and_does_not_is_found)
{
    talk_open(talk, 1);

    talk_push_out(talk, 5, 1);
    talk_staged(talk, 0, 1);
    struct session *session = talk->session;
    struct link *link = &session->links[0];
    struct part *part = link->parts.first;
    expect_right(session);

    wrong(link->streams[SESSION_PUSH_STREAM].hello_sent, false, "ps 0: a hello could go out");
    wrong(link->sending, part, "ps 0: the rest of a part could go out");
    wrong(link->cut_sequence, 1, "ps 0: the rest of a part could go out");
    wrong(link->cursor, part, "ps 0: a part could go out");
    wrong(link->commit_due, true, "ps 0: a commit could go out");
    wrong(link->told_clock, 1, "ps 0: the clock could go out");
    wrong(link->beside_due, true, "ps 0: a request, or a withdrawal could go out");
    wrong(link->collective_due_us, 0, "ps 0: what is over could go out");
    wrong(link->gauge, 1, "ps 0: small parts wait for push 1, which is over");
    wrong(link->small_messages, 1, "ps 0: small parts wait for push 0, which is over");
    expect_right(session);
}

TALK_TEST(a_wrong_ps_is_found)
{
    struct session *session = push_five(talk);
    struct link *link = &session->links[0];

    expect_right(session);

    wrong(session->touched, link, "what is to be said to ps 0 was left");
    wrong(link->ps, 1, "link 0 is of ps 1");
    wrong(link->touched, true, "link 0 is of ps 0, or left to be looked at");
    wrong(link->last_sequence, 4, "ps 0: the last push there is 4, and one of 6");
    wrong(link->told_commit, 2, "ps 0 was told of commit 2");
    wrong(link->told_acked, 1, "and of 1 heard, beyond what there is");
    struct part *last = link->parts.last;
    struct part *cursor = link->cursor;
    assert_false(last->counted);
    link->cursor = NULL;
    link->parts.last = last->in_link.prev;
    wrong(last->in_link.prev->in_link.next, NULL, "parts that are not done of all ps");
    link->parts.last = last;
    link->cursor = cursor;
    expect_right(session);
}

/* Ask both ps for 8 bytes each, and write to the streams. */
static struct session *pull_two(struct talk *talk)
{
    static uint8_t into[16];

    talk_open(talk, 2);
    const struct session_piece pieces[] = {
        talk_piece(0, 10, into, 8), talk_piece(1, 11, into + 8, 8)};
    for (uint64_t token = 5; token <= 6; token++)
        talk_step(
            talk, (struct session_event){
                      .kind = SESSION_EVENT_PULL,
                      .pull = &(struct session_pull){
                          .token = token, .pieces = pieces, .piece_count = 2, .timeout_ms = 5000}});
    for (uint32_t ps = 0; ps < 2; ps++)
        talk_pull_writable(talk, ps);
    return talk->session;
}

TALK_TEST(a_wrong_request_is_found)
{
    struct session *session = pull_two(talk);
    struct link *link = &session->links[0];
    struct request *request = link->requests.first, *other = session->links[1].requests.first;

    expect_right(session);

    wrong(request->link, &session->links[1], "ps 0: request 1 is another's");
    wrong(request->in_link.prev, other, "ps 0: request 1 is another's");
    wrong(request->cancelled, true, "ps 0: request 1 is another's, or of no pull");
    wrong(request->piece, 2, "ps 0: request 1 is at piece 2 of 1");
    wrong(request->number, 99, "ps 0: request 99 is at piece 0 of 1");
    wrong(request->beside, true, "ps 0: request 1 is in the pull stream's list");
    wrong(link->requests.last, request, "ps 0: the last request, or the next to be sent");
    wrong(link->request_cursor, other, "ps 0: the last request, or the next to be sent");
    wrong(link->sent_requests, 0, "requests under way of ps 0");
    wrong(link->cancels_due, 1, "cancellations of ps 0");
    wrong(session->requests.used, 0, "requests of the session");
    struct stream *stream = &link->streams[SESSION_PULL_STREAM];
    wrong(stream->state, STREAM_SHUT, "ps 0: a stream for pulls could go out");
    wrong(stream->writable, true, "ps 0: a pull could go out");
    stream->writable = true;
    wrong(link->cancels_due, 1, "ps 0: a cancellation could go out");
    stream->writable = false;
    expect_right(session);
}

TALK_TEST(a_wrong_pull_is_found)
{
    struct session *session = pull_two(talk);
    struct pull *pull = session->live_pulls.first;

    expect_right(session);

    wrong(pull->in_session.prev, pull, "the list of pulls is broken");
    wrong(pull->requests.first->pull, pull->in_session.next, "is in another pull's list");
    wrong(pull->open_requests, 1, "requests of a pull");
    pull->open_requests = 0;
    wrong(pull->requests.first, NULL, "a pull waits");
    pull->open_requests = 2;
    pull->open_requests = 1;
    wrong(pull->requests.first, pull->requests.last, "requests of pulls of all ps");
    pull->open_requests = 2;
    wrong(session->pull_count, 1, "pulls of the session");
    wrong(session->pulls.used, 1, "records of pulls of the session");
    expect_right(session);
}

/* A contribution whose result is asked for on the push stream. */
static struct session *contribute(struct talk *talk)
{
    static float value[2], into[2];
    wire_collective header = WIRE_COLLECTIVE_INIT;
    wire_collective_round round = WIRE_COLLECTIVE_ROUND_INIT;
    const struct session_piece pushed = {.data = (uint8_t *)value, .bytes = sizeof value};
    const struct session_piece pulled = {.data = (uint8_t *)into, .bytes = sizeof into};

    header.name = round.name =
        (wire_bytes){.len = strlen(NAME), .data = (uint8_t *)(uintptr_t)NAME};
    header.round = round.round = 1;
    talk_open(talk, 1);
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_COLLECTIVE,
                  .push =
                      &(struct session_push){
                          .token = 5,
                          .pieces = &pushed,
                          .piece_count = 1,
                          .weight = 1,
                          .collective = &header},
                  .pull = &(struct session_pull){
                      .token = 6,
                      .pieces = &pulled,
                      .piece_count = 1,
                      .collective = &round,
                      .beside = true}});
    return talk->session;
}

TALK_TEST(a_wrong_request_beside_a_push_is_found)
{
    struct session *session = contribute(talk);
    struct link *link = &session->links[0];
    struct request *request = link->beside.first;

    expect_right(session);
    assert_true(request->sent);
    assert_false(link->beside_due);

    wrong(request->link, NULL, "ps 0: request 1 is another's");
    wrong(request->beside, false, "ps 0: request 1 is beside pushes");
    wrong(request->sent, false, "ps 0: request 1 is beside pushes");
    struct pull *pull = request->pull;
    request->pull = NULL;
    wrong(request->cancelled, true, "ps 0: request 1 is beside pushes");
    request->pull = pull;
    link->unreached_us = session->now_us;
    wrong(link->streams[SESSION_PUSH_STREAM].greeted, false, "requests wait for no push stream");
    link->unreached_us = NEVER;
    wrong(link->beside_count, 2, "requests beside pushes of ps 0");
    expect_right(session);
}

TALK_TEST(a_wrong_contribution_is_found)
{
    struct session *session = contribute(talk);
    struct link *link = &session->links[0];

    expect_right(session);

    wrong(
        session->live_collectives.first->sequence, 9,
        "a contribution of push 9 is out of its order");
    wrong(session->collectives.used, 2, "contributions of the session");
    wrong(link->last_collective, 9, "ps 0 was told of rounds");
    wrong(link->told_collectives, 9, "ps 0 was told of rounds through push 9");
    wrong(link->told_ended, 9, "ps 0 was told of rounds");
    expect_right(session);
}

TALK_TEST(a_wrong_call_is_found)
{
    talk_open(talk, 2);
    const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    struct session *session = talk->session;

    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_CALL,
                  .wanted_call = &(struct session_call){
                      .token = 7,
                      .service = WIRE_VARIABLES,
                      .method = WIRE_VARIABLES_LIST,
                      .request = &list.base,
                      .timeout_ms = 10000}});
    struct unary *call = session->live_calls.first;
    expect_right(session);

    wrong(call->number, 0, "call 0 is neither due nor under way");
    wrong(call->due_us, 0, "is neither due nor under way, or both");
    wrong(call->number, 99, "call 99 is neither due nor under way");
    wrong(call->until_us, 1, "the end of a call is due at 1 us");
    call->number = 0;
    wrong(call->due_us, 1, "a call is due at 1 us");
    call->number = session->last_call;
    wrong(session->calls.used, 0, "calls of the session");
    wrong(session->given_calls, 0, "calls of the caller's of the session");
    expect_right(session);
}

TALK_TEST(a_time_without_a_tick_is_found)
{
    struct session *session = pull_two(talk);
    struct stream *stream = &session->links[1].streams[SESSION_PULL_STREAM];

    expect_right(session);

    stream->due_us = 1;
    wrong(stream->state, STREAM_DUE, "a stream is due at 1 us");
    wrong(session->live_pulls.last->deadline_us, 1, "the end of a pull is due at 1 us");
    session->report_us = 1;
    wrong(session->phase, PHASE_FINDING, "a line about who is missing is due at 1 us");
    wrong(session->phase, PHASE_JOINING, "a line about who is missing is due at 1 us");
    session->report_us = NEVER;
    session->patience_until_us = 1;
    wrong(session->phase, PHASE_FINDING, "the end of the wait for the ps is due at 1 us");
    wrong(session->stopping_until_us, 1, "the end of the session is due at 1 us");
    wrong(session->state.lease_ms, 0, "a renewal is due at");
    struct link *link = &session->links[1];
    wrong(link->collective_due_us, session->now_us + 1, "what is over of rounds is due at");
    session->config.ps_lost_ms = 1;
    session->settling_us = 1;
    wrong(session->phase, PHASE_SETTLING, "the end of a settle is due at 1001 us");
    link->streams[SESSION_PUSH_STREAM].greeted = false;
    wrong(link->unreached_us, 1, "the end of a ps is due at 1001 us");
    link->streams[SESSION_PUSH_STREAM].greeted = true;
    session->config.ps_lost_ms = LOST_MS;
    expect_right(session);
}
