/* SPDX-License-Identifier: Apache-2.0 */
/* judge_replay_check.h -- for tests: did the records of a judge make another one what it was? */
#ifndef JUDGE_REPLAY_CHECK_H
#define JUDGE_REPLAY_CHECK_H

#include "check.h"
#include "judge.h"

/* Keeps the first difference, by name. What the ps are still being asked – the clock that a session
 * starts at, where one ends – the second one will ask again. */
void judge_replay_check(const struct judge *judge, const struct judge *again, struct check *check);

#endif
