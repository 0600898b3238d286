/* SPDX-License-Identifier: Apache-2.0 */
/* rounds_check.h -- are the rounds of collectives consistent? For the tests, after any step. */
#pragma once

#include "check.h"
#include "rounds.h"

/* The first thing that is not goes into the check. */
void rounds_check(const struct rounds *rounds, struct check *check);
