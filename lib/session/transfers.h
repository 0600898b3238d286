/* SPDX-License-Identifier: Apache-2.0 */
/* transfers.h -- pushes, pulls and collectives, and the messages that carry them. */
#pragma once

#include "state.h"

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
void part_remove(struct session *session, struct part *part);
uint32_t pushes_in_flight(const struct session *session);

/* cancel.c */
/* It is refused, or cancelled: the next commit says so. */
void push_void(struct session *session, struct push *push);
/* Give a push up that is not committed. */
void push_cancel(struct session *session, uint64_t token);
void push_cancel_parts(struct session *session, struct push *push);

/* answer.c */
void push_answer(struct session *session, struct link *link, const wire_push_answer *answer);
void commit_advance(struct session *session);

/* large_parts.c */
/* The most that a part of the push may take there. */
uint64_t room_largest(const struct link *link, const struct push *push);
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
/* It is over. */
void room_remove(struct part *part);

/* compose.c */
void compose_pushes(struct session *session, struct link *link);

/* collective.c */
/* A push with that token contributes to a collective. False: no memory. */
bool collective_begin(struct session *session, uint64_t token);
/* It has its sequence. */
void collective_admit(struct session *session, const struct push *push);
/* The caller wants nothing more of that round. */
void collective_end(struct session *session, uint64_t token);
/* Is that news for the ps? */
bool collectives_are_news(const struct session *session, const struct link *link);
/* Fill collectives_through and waiting. Returns false without memory. */
bool collectives_tell(struct session *session, struct link *link, wire_commit *commit);
/* It is said when it is due. */
void collectives_check(struct session *session);
/* Take the next message of a round's result. Returns UNSPECIFIED, MALFORMED or OUT_OF_MEMORY. */
enum sumac_reason
result_receive(struct session *session, struct request *request, const struct session_event *event);
/* Free what a pull has of it. */
void result_release(struct session *session, struct pull *pull);

/* pull.c */
void pull_accept(struct session *session, const struct session_pull *wanted);
void pull_cancel(struct session *session, uint64_t token);
void pull_over(struct session *session, struct pull *pull, const struct sumac_error *error);
void pulls_end(struct session *session);
/* Free the pulls that the last step ended. */
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
void request_add(
    struct session *session, struct pull *pull, struct link *link, uint32_t first_piece,
    uint32_t piece_count);
void requests_drop(struct session *session, struct pull *pull);
/* It is on its way no more. */
void request_unsend(struct request *request);
/* Its pull has forgotten it. */
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
