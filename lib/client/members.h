/* SPDX-License-Identifier: Apache-2.0 */
/* members.h -- what a strategy over several workers asks of its client. */
#ifndef CLIENT_MEMBERS_H
#define CLIENT_MEMBERS_H

#include "sumac/client.h"

/* Of those tasks (none: all members), in the order in which contributions are combined: which one
 * is this process's, from 0, and how many there are.
 * Fails  INVALID_ARGUMENT: it is none of them; as sumac_client_collective says of tasks. */
enum sumac_status client_collective_place(
    struct sumac_client *client, const struct sumac_member *tasks, uint32_t task_count,
    uint32_t *place, uint32_t *count, struct sumac_error *error);

/* sumac_client_collective, for a round that belongs to one attempt of each task.
 * Borrows  `attempts`, one for each task in the order of client_collective_place, 0 where it is not
 *          known; this client's own is there. NULL: any attempt may come. */
enum sumac_status client_collective_of(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const uint64_t *attempts, const struct sumac_contribution *contribution,
    struct sumac_collective **collective, struct sumac_error *error);

/* How many strategies the client has been asked for, this one included. */
uint32_t client_count_strategy(struct sumac_client *client);

#endif
