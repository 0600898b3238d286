/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h -- what is asked of this ps: pulls, what they wait for, and their answers. */
#pragma once

#include "operation.h"

/* False: no memory. */
bool lane_pull_init(struct lane *lane);
void lane_pull_deinit(struct lane *lane);

/* pull.c, pulled.c */
void lane_pull_request(struct lane *lane, const struct lane_event *event);
/* One of a stream that has said hello; on a push stream it is of a round of a collective. */
void lane_pull_take(
    struct lane *lane, struct lane_stream *stream, const wire_pull_request *request);
/* The stream has ended. */
void lane_pull_drop_all(struct lane *lane, struct lane_stream *stream);
void lane_pull_end_session(struct lane *lane, struct lane_session *session);
/* It is deleted: what its creator has not assigned yet nobody waits for. */
void lane_pull_end_variable(struct lane *lane, const struct variable *variable);
/* A member may be lost, and steps with it that pulls wait for. */
void lane_pull_end_lost(struct lane *lane);
void lane_pull_tick(struct lane *lane);
/* What its pulls wait for may be there. */
void lane_pull_wake(struct lane *lane, struct lane_stream *stream);
/* Each of its pulls may be ready. */
void lane_pull_look_again(const struct lane *lane, struct lane_stream *stream);
/* For lane_check: would it be said if it were looked at? */
bool lane_pull_is_to_be_said(
    const struct lane *lane, const struct lane_stream *stream, const struct lane_pull *pull);
/* Nobody was told for so long that it may go on. */
void lane_pull_excuse(struct lane *lane, uint64_t slept_us);
/* The long one whose answer has begun, or NULL. */
struct lane_pull *lane_pull_under_way(const struct lane_stream *stream);
bool lane_pull_waits(const struct lane *lane, const struct lane_session *session);
/* The session is closed: its pulls are those of a reader without one, and streams whose pulls find
 * no room as such end. */
void lane_pull_disown(struct lane *lane, struct lane_session *session);
/* Those that are over and hold pieces yet, as far as the step has time. */
void lane_pull_reclaim(struct lane *lane);
void lane_pull_reclaim_all(struct lane *lane);
void lane_pulled_flush(struct lane *lane, struct lane_stream *stream);
/* Of a push stream: with its answers to pushes. */
void lane_pulled_beside_flush(struct lane *lane, struct lane_stream *stream);
void lane_pulled_released(struct lane *lane, const struct lane_event *event);
/* Is there nothing to be said on a push stream but what may wait for its pulls, for a while? */
bool lane_pull_holds_answers(const struct lane *lane, const struct lane_stream *stream);
#define PULL_WAITS_MAX 64u
/* Add at most PULL_WAITS_MAX sentences about pulls that have waited for a while. Pulls that wait
 * for the same share a sentence. The others are counted as left out.
 */
void lane_pull_say_waits(struct lane *lane, wire_stats_reply *reply);
