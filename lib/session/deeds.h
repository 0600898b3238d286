/* SPDX-License-Identifier: Apache-2.0 */
/* deeds.h -- the functions that the files of a session call of each other. state.h says which file
 * has which deed.
 */
#pragma once

#include <assert.h>
#include <inttypes.h>

#include "error.h"
#include "state.h"
#include "text.h"

/* ==== unary calls, which ps there are, join, lease, leave and the end */

/* call.c */
/* From now on, until it is answered, fails for good or the time is over. */
void call_begin(
    struct session *session, const struct unary_kind *kind, uint32_t ps, uint64_t until_us);
void call_answered(struct session *session, const struct session_event *event);
void call_failed(struct session *session, const struct session_event *event);
/* The try that the last step asked for was not begun; the next check says what becomes of it. */
void call_undone(struct session *session, uint64_t number);
void calls_check(struct session *session);
/* The session is over: the calls that are not answered yet are cancelled. The caller's end with the
 * session's error (calls_end), or without a word (calls_forget). */
void calls_end(struct session *session);
void calls_forget(struct session *session);
void calls_drop(struct session *session, const struct unary_kind *kind);
const struct unary *
call_of_kind(const struct session *session, const struct unary_kind *kind, uint32_t ps);
/* Take a call in, to be tried until then; NULL: no memory. */
struct unary *call_take(struct session *session, const struct unary_kind *kind, uint64_t until_us);
void call_try(struct session *session, struct unary *call);
/* Say what became of a call of the caller: a reply, or an error. */
void call_tell(
    struct session *session, const struct session_call *wanted, const wire_message *reply,
    const struct sumac_error *error);
/* May the same call succeed later? The reason decides, or the status if there is no reason. */
bool is_worth_retrying(const struct sumac_error *error);

/* given_call.c */
void call_accept(struct session *session, const struct session_call *wanted);

/* find.c */
void find_begin(struct session *session);
void find_check(struct session *session);
void find_end(struct session *session);
/* The first ps whose identity is unknown, and why; false: all are known. */
bool find_missing(const struct session *session, struct sumac_error *error);
/* These are the ps from here on; where the configuration has an address, that counts. False: there
 * is no memory. */
bool links_learn(struct session *session, char *const *addresses, size_t count);

/* join.c */
void join_begin(struct session *session);
void lease_check(struct session *session);
void leave_when_done(struct session *session);

/* settle.c */
/* The request of a leave, or of the call that acknowledges a replacement. */
const wire_message *leave_compose(struct session *session, const struct unary *call);
void session_say_ended(struct session *session);
/* ps 0 learns that the replaced process lives before its program hears of the replacement: the
 * program may exit at once. */
void session_acknowledge(struct session *session);
/* The session is closed for this reason, and it is not decided yet which of its pushes count. */
void session_settle(struct session *session, const struct sumac_error *why);
/* At which push the session ended is said on a push stream; why it ended, this answer has said. */
void session_closed_without_end(struct session *session, const struct sumac_error *error);
/* A call or a pull of this session has failed. It may say first that another process has the task.
 */
void session_heard(struct session *session, const struct sumac_error *error);

/* end.c */
void session_closed(struct session *session, const wire_closed *closed);
/* The session is over: pushes and pulls end with this error, or as `closed` says. */
void session_end(
    struct session *session, const struct sumac_error *error, const wire_closed *closed);

/* ==== the streams to each ps, what is said of them, and why the last one ended */

/* known_ps.c */
/* Where it listens, for a text. Lends  valid with the session. */
const char *ps_address(const struct session *session, uint32_t ps);
/* What to do about that address, at which another process answers, or none. */
const char *ps_remedy(const struct session *session, uint32_t ps, const char *otherwise);
/* A member starts it: its user has listed no ps. */
bool ps_is_started(const struct session *session, uint32_t ps);
/* Has it spoken to the session? A member's ps 0 has: it answered the join. If a ps that has spoken
 * answers for another cluster, it was started again. */
bool link_is_known(const struct session *session, const struct link *link);
/* The identity that a ps reports. */
struct ps_identity {
    uint64_t cluster_id; /* 0: none yet */
    uint64_t epoch, incarnation;
};
/* Is it still the ps that this session's pushes were applied to? False: its state is gone or went
 * back, and the error says so. */
bool link_is_same(
    const struct session *session, const struct link *link, const struct ps_identity *it,
    struct sumac_error *error);
/* This ps was restarted, and its state is lost. */
void fail_restarted(
    const struct session *session, const struct link *link, struct sumac_error *error);
/* At the address of this ps, ps number `ps` answers. */
void fail_another_ps(
    const struct session *session, const struct link *link, uint32_t ps, struct sumac_error *error);

/* stream_open.c */
void stream_open(struct session *session, struct link *link, enum session_stream_kind kind);
void stream_begin(struct session *session, struct link *link, enum session_stream_kind kind);
void stream_shut(struct stream *stream);
void stream_writable(struct session *session, const struct session_event *event);
/* The stream has it now. NULL: no memory. */
wire_hello *stream_hello(struct session *session, struct link *link, enum session_stream_kind kind);
void streams_close(struct session *session);

/* stream.c */
/* Those that are due are opened; those that were not begun are due again later. */
void streams_check(struct session *session);
void stream_lost(struct session *session, const struct session_event *event);
/* False: the session is over by what the greeting says. */
bool stream_greeted(
    struct session *session, struct link *link, enum session_stream_kind kind,
    const wire_greeting *greeting);
/* A ps was terminated: the session ends when the others have answered what is done there. */
void stopping_check(struct session *session);
void links_check(struct session *session);
/* The process was suspended: this time does not count as silence of the ps. */
void links_excuse(struct session *session, uint64_t slept_us);

/* trouble.c */
void trouble_note(
    struct session *session, struct link *link, enum session_stream_kind kind, const char *why);
/* Add the reason why the stream to this ps ended to an error that has none. */
void trouble_tell(
    const struct session *session, const struct link *link, enum session_stream_kind kind,
    struct sumac_error *error);

/* The number of rows that a pair of indices and values has in one message. The last pair may have
 * fewer. */
static inline uint64_t
rows_together(const struct session *session, const struct session_piece *piece)
{
    assert(piece->row_bytes > 0);
    const uint64_t fitting = session->config.chunk_bytes / (sizeof(int64_t) + piece->row_bytes);
    const uint64_t most = fitting < WIRE_PUSH_ROWS_MAX ? fitting : WIRE_PUSH_ROWS_MAX;

    return most == 0 ? 1 : most;
}

/* ==== pushes, pulls and collectives, and the messages that carry them */

/* push.c */
/* False: it was refused at once, and that is said. */
bool push_accept(struct session *session, const struct session_push *wanted);
/* Number what waits, as far as grants are known. */
void pushes_admit(struct session *session);
/* All that is under way, oldest first, ends with `error`, or as the settle decided. */
void pushes_end(struct session *session, const wire_closed *closed);
/* Their memory, and nothing else: the session is destroyed. */
void pushes_release(struct session *session);
void push_over(struct session *session, struct push *push, const struct sumac_error *error);
void push_give(struct session *session, struct push *push);
void part_remove(struct part *part);
uint32_t pushes_in_flight(const struct session *session);

/* cancel.c */
/* It is refused, or cancelled: the next commit says so. */
void push_void(struct session *session, struct push *push);
void push_cancel(struct session *session, uint64_t token);
void push_cancel_parts(struct session *session, struct push *push);

/* answer.c */
void push_answer(struct session *session, struct link *link, const wire_push_answer *answer);

/* large_parts.c */
/* May its header ask for room now? One after the other. */
bool room_may_ask(const struct part *part);
void room_asked(struct part *part);
/* The ps has said what becomes of it. */
void room_answered(struct part *part);
/* The first of the parts that the ps has room for, or NULL. */
struct part *room_next_wanted(const struct link *link);
void room_resend(struct session *session, struct part *part);
void room_give_way(struct session *session, struct part *part, uint32_t resend);
void room_waits(struct link *link, const wire_room_wait *wait);
/* On a new stream all is asked again. */
void room_rewind(struct session *session, struct link *link);
/* False: no memory. */
bool room_compose_withdraws(struct session *session, struct link *link, wire_push_request *request);
void room_remove(struct part *part);

/* compose.c */
void compose_pushes(struct session *session, struct link *link);

/* collective.c */
/* A push with that token contributes to a collective. False: no memory. */
bool collective_begin(struct session *session, uint64_t token);
void collective_admit(struct session *session, const struct push *push);
/* The caller wants nothing more of that round. */
void collective_end(struct session *session, uint64_t token);
bool collectives_are_news(const struct session *session, const struct link *link);
/* Fill collectives_through and waiting. Returns false without memory. */
bool collectives_tell(struct session *session, struct link *link, wire_commit *commit);
void collectives_check(struct session *session);
/* Take the next message of a round's result. Returns UNSPECIFIED, MALFORMED or OUT_OF_MEMORY. */
enum sumac_reason
result_receive(struct session *session, struct request *request, const struct session_event *event);
void result_release(struct session *session, struct pull *pull);

/* pull.c */
void pull_accept(struct session *session, const struct session_pull *wanted);
void pull_cancel(struct session *session, uint64_t token);
void pull_over(struct session *session, struct pull *pull, const struct sumac_error *error);
void pulls_end(struct session *session);
void pulls_forget_over(struct session *session);
/* Their memory, and nothing else: the session is destroyed. */
void pulls_release(struct session *session);
void pulls_check(struct session *session);
/* Pushes have got their sequences: pulls that come after them may be asked for. */
void pulls_admit(struct session *session);
/* The ps ended its pull stream for what was asked there: the pulls that were under way on it fail
 * as it says. Those that were not sent yet are as they were. */
void requests_fail(struct session *session, struct link *link, const struct sumac_error *given);

/* request.c */
/* The push that a pull from there waits for. With the rule after_sequence_per_ps broken, it is the
 * last push on any ps. */
uint64_t request_last_sequence(const struct session *session, const struct link *link);
void request_add(
    struct session *session, struct pull *pull, struct link *link, uint32_t first_piece,
    uint32_t piece_count);
void requests_drop(struct session *session, struct pull *pull);
void request_unsend(struct request *request);
void request_remove(struct session *session, struct request *request);
/* It is asked on the pull stream from now on. */
void request_leave_beside(struct link *link, struct request *request);
void requests_rewind(struct session *session, struct link *link);
/* The push stream is gone: what was asked there is asked on the pull stream. */
void requests_leave_beside(struct session *session, struct link *link);
void compose_pulls(struct session *session, struct link *link);
/* Those that are to go out with the next message of the push stream; it may have none. */
void compose_beside(struct session *session, struct link *link, wire_push_request *request);

/* receive.c */
void pulled_beside(struct session *session, struct link *link, const wire_pull_answer *answer);
void pull_answer(struct session *session, struct link *link, const struct session_event *event);
