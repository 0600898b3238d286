/* SPDX-License-Identifier: Apache-2.0 */
/* claims_check.h -- for lane_check.c alone. */
#pragma once

#include "check.h"
#include "step.h"

/* The pool, and all of staging: `floors_bytes` are what parts and answers take of the floors. */
void claims_check(const struct lane *lane, uint64_t floors_bytes, struct check *check);
