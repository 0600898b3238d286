/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core_check.h -- is all that a ps keeps consistent? For the tests, after any step. */
#pragma once

#include "check.h"
#include "ps_core.h"

/* The first thing that is not goes into the check. Nothing is asked of a ps whose rules are
 * broken. */
void ps_core_check(const struct ps_core *core, struct check *check);
