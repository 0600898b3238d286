/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core_check.c -- lane and controller, each for itself, and what is on its way between them. */
#include "ps_core_check.h"

#include "controller_check.h"
#include "lane_check.h"
#include "ps_core_state.h"

void ps_core_check(const struct ps_core *core, struct check *check)
{
    if (lane_config(core->lane)->broken != 0)
        return;
    for (uint32_t i = 0; i < core->queued; i++) {
        if (ps_message_is_lent(&core->queue[i]))
            check_object(check, "message %u of the queue is gone with its step", i);
    }
    lane_check(core->lane, check);
    if (core->controller != NULL)
        controller_check(core->controller, check);
}
