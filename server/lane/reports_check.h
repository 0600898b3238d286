/* SPDX-License-Identifier: Apache-2.0 */
/* reports_check.h -- for lane_check.c alone. */
#ifndef LANE_REPORTS_CHECK_H
#define LANE_REPORTS_CHECK_H

#include "check.h"
#include "step.h"

/* What ps 0 is to be told of sessions and of rounds, and the reports that are to say it. */
void reports_check(const struct lane *lane, struct check *check);

#endif
