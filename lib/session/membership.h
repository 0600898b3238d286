/* SPDX-License-Identifier: Apache-2.0 */
/* membership.h -- unary calls, which ps there are, join, lease, leave and the end. */
#pragma once

#include "state.h"

/* call.c */
/* From now on, until it is answered, fails for good or the time is over. */
void call_begin(
    struct session *session, const struct unary_kind *kind, uint32_t ps, uint64_t until_us);
void call_answered(struct session *session, const struct session_event *event);
void call_failed(struct session *session, const struct session_event *event);
/* The try that the last step asked for was not begun; the next check says what becomes of it. */
void call_undone(struct session *session, uint64_t number);
/* Those that are due are made, those whose time is over fail. */
void calls_check(struct session *session);
/* The session is over: the calls that are not answered yet are cancelled. The caller's end with the
 * session's error (calls_end), or without a word (calls_forget). */
void calls_end(struct session *session);
void calls_forget(struct session *session);
/* Drop the session's own calls of that kind. */
void calls_drop(struct session *session, const struct unary_kind *kind);
/* The call of that kind to that ps, or NULL. */
const struct unary *
call_of_kind(const struct session *session, const struct unary_kind *kind, uint32_t ps);
/* Take a call in, to be tried until then; NULL: no memory. */
struct unary *call_take(struct session *session, const struct unary_kind *kind, uint64_t until_us);
/* Make the next try now. */
void call_try(struct session *session, struct unary *call);
/* Say what became of a call of the caller: a reply, or an error. */
void call_tell(
    struct session *session, const struct session_call *wanted, const wire_message *reply,
    const struct sumac_error *error);
/* May the same call succeed later? The reason decides, or the status if there is no reason. */
bool is_worth_retrying(const struct sumac_error *error);

/* given_call.c */
/* A call of the caller. */
void call_accept(struct session *session, const struct session_call *wanted);

/* find.c */
void find_begin(struct session *session);
/* Says who is missing when that is due, or gives up. */
void find_check(struct session *session);
/* Stop asking. */
void find_end(struct session *session);
/* The first ps whose identity is unknown, and why; false: all are known. */
bool find_missing(const struct session *session, struct sumac_error *error);
/* These are the ps from here on; where the configuration has an address, that counts. False: there
 * is no memory. */
bool links_learn(struct session *session, char *const *addresses, size_t count);

/* join.c */
/* The ps are found. */
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
