/* SPDX-License-Identifier: Apache-2.0 */
/* lane_check.h -- is all that a lane, and on ps 0 its controller, keeps consistent? For the tests,
 * after any step. */
#pragma once

#include "check.h"
#include "lane.h"

/* The first thing that is not goes into the check. Nothing is asked of a lane whose rules are
 * broken. */
void lane_check(const struct lane *lane, struct check *check);
/* Spans of blocks that were lent and not released. */
uint64_t lane_lent(const struct lane *lane);
/* Rows of which old bytes are kept for readers. */
uint64_t lane_old_rows(const struct lane *lane);
/* Rounds of collectives, open, over or kept; 0 while one is read that would be gone otherwise. */
uint32_t lane_rounds(const struct lane *lane);
/* What the last step did, as lane_has_time counts it, or `most` if that is more. */
uint64_t lane_work(const struct lane *lane, uint64_t most);
