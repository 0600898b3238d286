/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core_check.c -- lane and judge, each for itself, and nothing on its way between them. */
#include "ps_core_check.h"

#include "judge_check.h"
#include "lane_check.h"
#include "ps_core_state.h"

void ps_core_check(const struct ps_core *core, struct check *check)
{
    if (lane_config(core->lane)->broken != 0)
        return;
    check_same(check, core->queued, 0, "messages after a step", "the queue");
    lane_check(core->lane, check);
    if (core->judge != NULL)
        judge_check(core->judge, check);
}
