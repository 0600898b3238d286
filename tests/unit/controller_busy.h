/* SPDX-License-Identifier: Apache-2.0 */
/* controller_busy.h -- a controller that has something of everything, for the tests of its checks.
 */
#pragma once

#include "unit.h"
#include "barrier.h"
#include "catalogue.h"
#include "corrupt.h"
#include "controller_desk.h"
#include "controller_collectives.h"

/* Sessions: worker 0, settled; worker 0, open; an observer that ps 0 opens. Variables: w, which is
 * deleted; v, which worker 0 is to assign; u, which ps 0 adds. Worker 0 waits at a barrier. Two
 * rounds of collectives end. The last records are not on disk. */
static inline struct controller *busy(struct desk *desk)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_leave(desk);
    desk_settle_down(desk);
    desk_joined(desk, 2);
    desk_create(desk, "w", false);
    desk_settle_down(desk);
    desk_create(desk, "v", true);
    desk_settle_down(desk);
    desk_define(desk, "mine");
    desk_create(desk, "u", false);
    desk_delete(desk, "w");
    desk_come(desk, "both", 0, 5);
    desk_propose(desk, "grads", 3, SUMAC_OK);
    desk_propose(desk, "grads", 4, SUMAC_ABORTED);
    desk_write_down(desk);
    desk_join(desk, 100);
    desk_create(desk, "v", true);
    return desk->controller;
}
