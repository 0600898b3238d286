/* SPDX-License-Identifier: Apache-2.0 */
/* controller_replay_check.h -- for tests: did the records of a controller make another one what it
 * was? */
#pragma once

#include "check.h"
#include "controller.h"

/* Keeps the first difference, by name. Questions to the ps that are open are not compared, since
 * the second controller asks them again: the clock that a session starts at, or where a session
 * ends. */
void controller_replay_check(
    const struct controller *controller, const struct controller *again, struct check *check);
