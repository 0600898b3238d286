/* SPDX-License-Identifier: Apache-2.0 */
/* controller_check.h -- is all that a controller keeps consistent? For the tests, after any step.
 */
#pragma once

#include "check.h"
#include "controller.h"

/* The first thing that is not goes into the check. Nothing is asked of a controller whose rules are
 * broken. */
void controller_check(const struct controller *controller, struct check *check);
