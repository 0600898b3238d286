/* SPDX-License-Identifier: Apache-2.0 */
/* program_define.h -- a function that clients define, each by one of two texts that do the same. */
#pragma once

#include "process_client.h"

/* At times, until the client knows the function's number. */
void program_define(struct world *world, struct client *client);
/* Is it the answer? */
bool program_defined(
    struct world *world, struct client *client, const struct session_effect *effect);
