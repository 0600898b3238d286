/* SPDX-License-Identifier: Apache-2.0 */
/* program_barrier.h -- the arrivals of a member's program at the barrier, one at a time. */
#pragma once

#include "process_client.h"

/* At times. */
void program_come(struct world *world, struct client *client);
/* False: it is the answer to another call. */
bool program_came(struct world *world, struct client *client, const struct session_effect *effect);
