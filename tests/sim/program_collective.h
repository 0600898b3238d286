/* SPDX-License-Identifier: Apache-2.0 */
/* program_collective.h -- a member's program comes to rounds of collectives, two at a time. */
#pragma once

#include "process_client.h"

/* Another life of the client: at times it comes again to what the one before it came to last. */
void program_collectives_begin(struct world *world, const struct client *client);
/* Has its task rounds left to come to? */
bool program_collectives_left(const struct world *world, const struct client *client);
/* At times. */
void program_collective(struct world *world, struct client *client);
/* The session tells of a contribution or a result. False: it belongs to another push or pull. */
bool program_result(
    struct world *world, struct client *client, const struct session_effect *effect);
