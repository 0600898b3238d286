/* SPDX-License-Identifier: Apache-2.0 */
/* described.h -- a function's row as a message (KnownFunction), and back. */
#pragma once

#include "memory.h"
#include "plugged.h"
#include "wire.h"

/* What the row says, but for a text and a loop: its texts are those of the row.
 *
 * Returns  the message in the arena; NULL: there is no room. Threads  any that owns the arena. */
wire_known_function *update_describe(const struct update_function *function, struct arena *arena);

/* A number of all that. */
uint64_t update_digest(const struct update_function *function);

/* Make the row of a plug-in's function out of what was said of it. It has no loop.
 *
 * Fails    INVALID_ARGUMENT: nothing of that kind. FAILED_PRECONDITION: another release numbers
 *          its hyperparameters otherwise. */
enum sumac_status update_read_described(
    const wire_known_function *said, struct update_plugged *plugged, struct sumac_error *error);

/* Has the row the hyperparameters that were said of it, by the same numbers? A message that says
 * none, as an earlier release's, is as good. Fails  FAILED_PRECONDITION. */
enum sumac_status update_check_described(
    const struct update_function *function, const wire_known_function *said,
    struct sumac_error *error);
