/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core_state.h -- what a ps_core holds. Private to it and to its check. */
#pragma once

#include "controller.h"
#include "lane.h"
#include "out.h"
#include "ps_core.h"

/* Of the stream that ps 0 has to itself. At once there are at most: an order, or the word that it
 * is out; a report, or the word that it is; the stream's opening (3 messages) or its end (2); the
 * end of the run. */
enum ps_message_kind {
    PS_ORDER,        /* to the lane */
    PS_REPORT,       /* to the controller */
    PS_OWN_OPENED,   /* to the lane … */
    PS_OWN_WRITABLE, /* … the last report is out */
    PS_OWN_CLOSED,
    PS_OWN_UP, /* to the controller: the last order is out */
    PS_OWN_DOWN,
    PS_RUN_OVER, /* to the lane */
};
#define PS_MESSAGES_MAX 8u
#define PS_DELIVERIES_MAX 128u /* of a step: four for each order, with its report */

struct ps_message {
    enum ps_message_kind kind;
    const wire_peer_order *order;   /* in what the controller lends until the next step */
    const wire_peer_report *report; /* in what the lane does */
};

/* Does it point to what is gone with the next step? */
static inline bool ps_message_is_lent(const struct ps_message *message)
{
    return message->order != NULL || message->report != NULL;
}

struct ps_core {
    const struct memory *memory;
    struct lane *lane;
    struct controller *controller; /* NULL but on ps 0 */
    uint32_t index;
    uint64_t now_us;
    struct out out; /* what both say to the driver; on ps 0 only */
    /* As a rule a step is one of the lane, and what it says is handed on as it lies there: `out` is
     * empty then. */
    struct lane_effects said;
    struct ps_message queue[PS_MESSAGES_MAX]; /* the oldest first */
    uint32_t queued;
    uint32_t delivered;                /* of it, in the present step */
    bool lane_began, controller_began; /* of the present step: what follows joins it */
    bool own_lost;                /* ps 0's stream to itself: dialled again with the next tick */
    struct sumac_error own_error; /* why */
    bool exited;
};
