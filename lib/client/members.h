/* SPDX-License-Identifier: Apache-2.0 */
/* members.h -- what a strategy over several workers asks of its client. */
#pragma once

#include "collective_places.h"
#include "sumac/client.h"
#include "sumac/collective.h"

/* Find this process among the tasks (task_count 0: all members), in the order in which
 * contributions are combined.
 * Gives  *place, from 0; *count: the number of tasks.
 * Fails  INVALID_ARGUMENT: this process is not among the tasks; as sumac_client_all_reduce. */
enum sumac_status client_collective_place(
    struct sumac_client *client, const struct sumac_member *tasks, uint32_t task_count,
    uint32_t *place, uint32_t *count, struct sumac_error *error);

/* A contribution to a round, of any operation. */
struct client_contribution {
    enum collective_operation operation;
    struct sumac_member root;    /* COLLECTIVE_BROADCAST */
    struct sumac_tensor value;   /* also where the result goes, unless options->into says so */
    struct sumac_tensor indices; /* COLLECTIVE_CONCATENATE */
    /* The round belongs to these attempts of the tasks, in the order of client_collective_place.
     * This client's own is there; 0 is an attempt that is not known. NULL: any attempt may come. */
    const uint64_t *attempts;
    struct sumac_collective_result *result; /* NULL: discarded */
};

/* What sumac_client_all_reduce and the others do, with a handle. A round with attempts needs a
 * number, and is not counted.
 * Borrows  contribution and options, until it returns. */
enum sumac_status client_contribute(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct client_contribution *contribution, struct sumac_collective **collective,
    struct sumac_error *error);

/* Count this strategy, and return the number of strategies so far. */
uint32_t client_count_strategy(struct sumac_client *client);
