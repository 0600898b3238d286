/* SPDX-License-Identifier: Apache-2.0 */
/* checked_contribution.h -- a contribution to a round of a collective, checked. Private to
 * lib/client. */
#pragma once

#include "members.h"
#include "client_state.h"

struct checked_contribution {
    const struct sumac_collective_options *options;
    const struct client_contribution *given;
    struct sumac_tensor into;               /* where the result goes, unless it `joins` */
    char label[SUMAC_ERROR_TEXT_BYTES / 2]; /* "collective grads, round 3": begins an error */
    uint64_t round;
    struct numbered_name *counted; /* gets the round when it has begun. NULL: it is not counted */
    enum sumac_dtype dtype;        /* of the result */
    enum sumac_dtype contributed;  /* of the value */
    uint64_t elements;             /* of the value */
    uint64_t *tasks;               /* (task_count), as on the wire; contribution_deinit frees it */
    uint32_t task_count;
    uint32_t root;   /* the root's place among the tasks */
    bool has_bytes;  /* false: a broadcast of another root */
    bool arithmetic; /* all_reduce */
    bool joins;      /* the result's size is not known beforehand */
};

/* With the client's lock. The caller calls contribution_deinit on success and on failure. */
enum sumac_status contribution_check(
    struct sumac_client *client, struct checked_contribution *contribution,
    struct sumac_error *error);
void contribution_deinit(struct checked_contribution *contribution);
enum sumac_status
contribution_no_memory(const struct checked_contribution *contribution, struct sumac_error *error);
