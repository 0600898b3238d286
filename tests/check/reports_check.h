/* SPDX-License-Identifier: Apache-2.0 */
/* reports_check.h -- for lane_check.c alone. */
#pragma once

#include "check.h"
#include "step.h"

/* Steps and rounds that are due to ps 0, and the reports that say them. */
void reports_check(const struct lane *lane, struct check *check);
