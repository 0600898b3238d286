/* SPDX-License-Identifier: Apache-2.0 */
/* meet.h -- rounds of rendezvous that ps 0 decides, since several ps have a part of each. */
#ifndef CONTROLLER_MEET_H
#define CONTROLLER_MEET_H

#include "controller_state.h"

/* Ends that wait for the answer of a ps. A ps proposes further ends again. */
#define CONTROLLER_MEETINGS_MAX 256u

struct controller_meeting {
    struct controller_row row;
    LINKS(struct controller_meeting) in_controller;
    struct controller_order
        order;              /* that says so: it keeps its number for as long as this is there */
    struct sumac_error end; /* status OK: it passed */
    size_t bytes;           /* of this, with what the meeting lies in behind it */
    struct meeting *meeting;
};

/* What the ps proposes. */
void controller_meetings_reported(struct controller *controller, const wire_peer_report *report);
/* The meeting of a row. NULL: the row does not follow the rows before it, or there is no memory. */
struct controller_meeting *controller_meeting_replay(
    struct controller *controller, uint64_t number, const wire_meeting_end *end);
/* NULL: not found. */
struct controller_meeting *
controller_meeting_by_number(const struct controller *controller, uint64_t number);
void controller_meeting_forget(struct controller *controller, struct controller_meeting *meeting);
/* The controller begins with its records: each is ordered once more. */
void controller_meetings_begin_again(struct controller *controller);
/* orders.c: order the end at every ps. Needs no memory. */
void controller_order_meeting(struct controller *controller, struct controller_meeting *meeting);
/* Every ps has answered the order. */
void controller_meeting_complete(struct controller *controller, struct controller_meeting *meeting);
/* In the step's arena. NULL: it is full. */
wire_meeting_end *
controller_meeting_message(struct controller *controller, const struct controller_meeting *meeting);
/* "to hear how round 3 of rendezvous grads ended", in the step's arena. */
const char *controller_meeting_text(
    const struct controller *controller, const struct controller_meeting *meeting);
/* The most that they take. */
uint64_t controller_meetings_bytes_max(void);
void controller_meetings_deinit(struct controller *controller);

#endif
