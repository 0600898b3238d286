/* SPDX-License-Identifier: Apache-2.0 */
/* program_meet.h -- a member's program comes to rounds of rendezvous, two at a time. */
#ifndef SIM_PROGRAM_MEET_H
#define SIM_PROGRAM_MEET_H

#include "process_client.h"

/* Another life of the client: at times it comes again to what the one before it came to last. */
void program_meets_begin(struct world *world, const struct client *client);
/* Has its task rounds left to come to? */
bool program_meets_left(const struct world *world, const struct client *client);
/* At times. */
void program_meet(struct world *world, struct client *client);
/* What the session says of a contribution, or of a result. False: it is that of another push or
 * pull. */
bool program_met(struct world *world, struct client *client, const struct session_effect *effect);

#endif
