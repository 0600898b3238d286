/* SPDX-License-Identifier: Apache-2.0 */
/* quorum.h -- what the judge's files ask of quorum.c: synchronous steps of K of N. */
#ifndef JUDGE_QUORUM_H
#define JUDGE_QUORUM_H

#include "judge_state.h"

/* Is it time to take the next step? After whatever may make it so. */
void judge_steps_consider(struct judge *judge);
void judge_steps_tick(struct judge *judge);
/* The judge begins with its records: the ps hear again what was taken. */
void judge_steps_begin_again(struct judge *judge);
void judge_steps_reported(struct judge *judge, uint32_t ps, const wire_peer_report *report);
/* What a ps says of a session that is closed. False: what is voided cannot be kept for want of
 * memory. */
bool judge_steps_close_reported(
    struct judge *judge, struct judge_session *session, const wire_close_report *close);
/* All of them have. */
void judge_steps_closed(struct judge *judge, struct judge_session *session);
/* Does a step need what a settled session has made? */
bool judge_steps_need(const struct judge *judge, const struct judge_session *session);

#endif
