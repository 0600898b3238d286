/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core_state.h -- what a ps_core holds. Private to it and to its check. */
#pragma once

#include "controller.h"
#include "lane.h"
#include "out.h"
#include "ps_core.h"

/* At once there are at most: an order, or the word that it is out; a report, or the word that it
 * is; the stream's opening (3 messages) or its end (2); the end of the run. */
#define PS_MESSAGES_MAX 8u
#define PS_DELIVERIES_MAX 128u /* of a step: four for each order, with its report */

/* An event of the stream that ps 0 has to itself, or the end of the run. */
struct ps_message {
    bool to_controller; /* else to the lane */
    struct lane_event event;
};

/* Does it point to what is gone with the next step? An order is in what the controller lends until
 * then, a report in what the lane does. */
static inline bool ps_message_is_lent(const struct ps_message *message)
{
    return message->event.order != NULL || message->event.report != NULL;
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
