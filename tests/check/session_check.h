/* SPDX-License-Identifier: Apache-2.0 */
/* session_check.h -- is all that a session keeps consistent? For the tests, after any step. */
#pragma once

#include "check.h"
#include "session.h"

/* The first thing that is not goes into the check. Nothing is asked of a session that is over, or
 * whose rules are broken. */
void session_check(const struct session *session, struct check *check);
