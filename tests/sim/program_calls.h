/* SPDX-License-Identifier: Apache-2.0 */
/* program_calls.h -- the calls of a client's program, one at a time. */
#pragma once

#include "process_client.h"

/* The next of the variables that everybody has. */
void program_create(struct world *world, struct client *client);
/* At times: a list, or a variable of its own, created or deleted. */
void program_call(struct world *world, struct client *client);
/* Is it the answer to program_create? */
bool program_answered(
    struct world *world, struct client *client, const struct session_effect *effect);
