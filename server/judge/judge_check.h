/* SPDX-License-Identifier: Apache-2.0 */
/* judge_check.h -- is all that a judge keeps consistent? For the tests, after any step. */
#ifndef JUDGE_CHECK_H
#define JUDGE_CHECK_H

#include "check.h"
#include "judge.h"

/* The first thing that is not goes into the check. Nothing is asked of a judge whose rules are
 * broken. */
void judge_check(const struct judge *judge, struct check *check);

#endif
