/* SPDX-License-Identifier: Apache-2.0 */
/* handlers.h -- what takes the events of a lane, above its rooms. */
#pragma once

#include "pull.h"

/* push.c: docs/ARCHITECTURE.md, "Pushing" */
void lane_push_request(struct lane *lane, const struct lane_event *event);
/* What a commit says of its session: `taken` of what it voids, which is all unless there is no
 * room. */
enum sumac_reason lane_push_take_commit(
    struct lane *lane, struct lane_session *session, const wire_commit *given, size_t *taken);
/* A part that took its place before, whole or refused, takes it again. False: it cannot. */
bool lane_push_replay(
    struct lane *lane, struct lane_session *session, const wire_part *header,
    struct payload *payload);
bool lane_push_replay_refused(
    struct lane *lane, struct lane_session *session, const struct record *record);

/* check_lists.c: does ps 0's configuration go with this one's? It is asked until ps 0 has been
 * taken for the first time. Fails  FAILED_PRECONDITION (WRONG_CLUSTER): with both. */
enum sumac_status lane_order_check_lists(
    const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error);
/* The same of the addresses of the ps alone, as ps 0 lists them. */
enum sumac_status lane_check_ps_list(
    const struct lane *lane, const char *const *addresses, size_t count, struct sumac_error *error);

/* ps 0 takes this ps for another one. */
enum sumac_status lane_order_fail_other_index(
    const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error);

/* grants.c: which sessions may stage parts */
/* False: the session has no grant yet. */
bool lane_grant_take(struct lane *lane, struct lane_session *session);
/* The stream ends with BUSY: that push is of a session without a grant. */
void lane_grant_fail(struct lane *lane, struct lane_stream *stream, uint64_t sequence);
/* Closed sessions whose contributions wait for others. */
uint32_t lane_grant_count_closed(const struct lane *lane);

/* place.c: a part takes its place */
/* Whole, or refused: its client hears of it. */
void lane_part_take_place(struct lane *lane, struct lane_session *session, struct lane_part *part);
/* A refused part takes its place: from here on it is voided. False: there is no room for it, and
 * the stream was ended. */
bool lane_part_keep_refusal(struct lane *lane, struct lane_stream *stream, struct lane_part *part);
void lane_part_fail_memory(struct lane *lane, struct lane_stream *stream);

/* large_part_room.c: large parts, and the pool that they share (docs/protocol/PROTOCOL.md, "Room")
 */
/* Does it ask for room in the pool? */
bool lane_room_is_large(const struct lane *lane, const wire_part *header);
/* Its first message asks, and has no elements. */
bool lane_room_is_header_alone(const wire_part *header);
/* False: its elements came before it had ever asked, and the stream was ended. */
bool lane_room_check_asked(struct lane *lane, struct lane_stream *stream, const wire_part *header);
/* False: it asked for room as another part than it is now, and the stream was ended. */
bool lane_room_check_same(struct lane *lane, struct lane_stream *stream, const wire_part *header);
/* Its header alone may always come; its elements, when they were asked for. */
bool lane_room_is_asked(
    const struct lane *lane, const struct lane_session *session, const wire_part *header);
/* The claim of an earlier header is the part's, and goes with it if it is refused. */
void lane_room_take_up(struct lane *lane, struct lane_part *part);
/* It has its claim, or is refused. */
void lane_room_claim(struct lane *lane, struct lane_part *part, const wire_part *header);
/* A header that asks for room is right: it waits. Takes the part. */
void lane_room_asked(struct lane *lane, struct lane_part *part);
/* The client takes STAGED back, if it said so before an earlier resend. */
void lane_room_withdraw(
    struct lane *lane, struct lane_session *session, uint64_t sequence, uint32_t resend);
/* Some wait: give room to those that come first, or ask for it. */
void lane_room_share(struct lane *lane);
/* End the streams of those who do not answer: a new one may go on where the old one hangs. */
void lane_room_tick(struct lane *lane);

/* orders.c: what ps 0 orders */
void lane_order_received(struct lane *lane, const struct lane_event *event);
/* The cluster, as ps 0 says it is in that hello. False: no memory, and nothing but addresses was
 * learned. */
bool lane_order_learn(struct lane *lane, const wire_peer_hello *hello, uint64_t number);
/* New variables get their values a slice at a time. */
void lane_orders_fill(struct lane *lane);
/* What was deleted is given back, as far as the step has time. */
void lane_orders_reclaim(struct lane *lane);

/* list_variables.c, stats.c */
void lane_list_call(struct lane *lane, const struct lane_event *event);
void lane_stats_call(struct lane *lane, const struct lane_event *event);

/* shutdown.c: SIGTERM, the run's end, state that is lost */
/* Its configuration and that of ps 0 contradict each other. */
void lane_shutdown_misconfigured(struct lane *lane, const struct sumac_error *error);
void lane_shutdown_terminate(struct lane *lane, const struct lane_event *event);
/* ps 0 says that the run is over; the order is answered when nothing is in flight any more. */
void lane_shutdown_end(struct lane *lane, uint64_t number, const wire_end *end);
/* Has ps 0 been silent for too long? And the line that says what this ps waits for. */
void lane_shutdown_watch(struct lane *lane);
/* Who answers at ps 0's listed address, if any process does. */
void lane_shutdown_probed(struct lane *lane, const struct lane_event *event);
/* "ps 1 waits for its first call from ps 0 at h0:2222; gives up in 35 s"; NULL: of ps 0, and of one
 * that waits for nothing. In the step's arena. */
char *lane_shutdown_wait(struct lane *lane);
void lane_shutdown_lost(struct lane *lane, enum sumac_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Exit when nothing is in flight any more. True: it has something to say before that. */
bool lane_shutdown_goes_on(struct lane *lane);

/* bounds.c: what a lane keeps at most */
/* The most that sessions keep beside their grants of staging and pulls: refused parts and why,
 * answers that say so again, the slices of vector work, an array of a part as it grows; of closed
 * ones what was voided. */
uint64_t lane_sessions_bytes_max(const struct lane *lane);
/* What lane->bytes may hold: staging and pulls, and beside them what sessions are sure of. Again
 * when the number of ps is known. */
void lane_session_bound_pool(struct lane *lane);
