/* SPDX-License-Identifier: Apache-2.0 */
/* meet.h -- rounds of rendezvous that ps 0 judges, since several ps have a part of each. */
#ifndef JUDGE_MEET_H
#define JUDGE_MEET_H

#include "judge_state.h"

#define JUDGE_MEETINGS_MAX 256u /* whose end some ps has not answered; others are proposed again   \
                                 */

struct judge_meeting;

/* What the ps proposes. */
void judge_meetings_reported(struct judge *judge, const wire_peer_report *report);
/* orders.c: every ps is told. False: there is no memory for it. */
bool judge_order_meeting(struct judge *judge, struct judge_meeting *meeting);
/* Every ps has heard how it ended. */
void judge_meeting_complete(struct judge *judge, struct judge_meeting *meeting);
/* In the step's arena. NULL: it is full. */
wire_meeting_end *judge_meeting_message(struct judge *judge, const struct judge_meeting *meeting);
/* "to hear how round 3 of rendezvous grads ended"; likewise. */
const char *judge_meeting_text(const struct judge *judge, const struct judge_meeting *meeting);
/* The most that they take. */
uint64_t judge_meetings_bytes_max(void);
void judge_meetings_deinit(struct judge *judge);

#endif
