/* SPDX-License-Identifier: Apache-2.0 */
/* meet.h -- rounds of rendezvous that ps 0 judges, since several ps have a part of each. */
#ifndef JUDGE_MEET_H
#define JUDGE_MEET_H

#include "judge_state.h"

#define JUDGE_MEETINGS_MAX                                                                         \
    256u /* whose end some ps has not answered; others are proposed again                          \
          */

struct judge_meeting {
    struct judge_row row;
    LINKS(struct judge_meeting) in_judge;
    struct judge_order order; /* that says so: it keeps its number for as long as this is there */
    struct sumac_error end;   /* status OK: it passed */
    size_t bytes;             /* of this, with what the meeting lies in behind it */
    struct meeting *meeting;
};

/* What the ps proposes. */
void judge_meetings_reported(struct judge *judge, const wire_peer_report *report);
/* The one that a row is about. NULL: it does not follow from those before it, or there is no
 * memory. */
struct judge_meeting *
judge_meeting_replay(struct judge *judge, uint64_t number, const wire_meeting_end *end);
/* NULL: there is none. */
struct judge_meeting *judge_meeting_by_number(const struct judge *judge, uint64_t number);
void judge_meeting_forget(struct judge *judge, struct judge_meeting *meeting);
/* The judge begins with its records: each is ordered once more. */
void judge_meetings_begin_again(struct judge *judge);
/* orders.c: every ps is told. It needs no memory. */
void judge_order_meeting(struct judge *judge, struct judge_meeting *meeting);
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
