/* SPDX-License-Identifier: Apache-2.0 */
/* replay_check.h -- for tests: did the records of a lane make another one what it was? */
#pragma once

#include "check.h"
#include "lane.h"

/* Keeps the first difference, by name. What is under way in the first – vector work that is out,
 * new variables that are being filled – the second one has not begun, or has behind it. */
void lane_replay_check(const struct lane *lane, const struct lane *again, struct check *check);
