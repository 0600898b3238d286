/* SPDX-License-Identifier: Apache-2.0 */
/* context.h -- the context that a thread is in: tf.distribute's default, cross-replica and replica
 * context, or the function of an update. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/status.h"

struct sumac_replica;
struct sumac_strategy;
struct sumac_update_context;

enum context_kind { CONTEXT_DEFAULT, CONTEXT_CROSS_REPLICA, CONTEXT_REPLICA, CONTEXT_UPDATE };

struct context {
    enum context_kind kind;
    struct sumac_strategy *strategy;     /* of all but DEFAULT */
    struct sumac_replica *replica;       /* of REPLICA; of the others in a merge_call */
    struct sumac_update_context *update; /* of UPDATE */
    uint32_t depth;                      /* of CROSS_REPLICA: scopes that were entered */
    bool set;                            /* … it is this thread's without one, too */
};
/* Of this thread. */
struct context *context_present(void);
/* Is this a thread of that replica's, in its run? Threads  any; reads nothing of it. */
bool context_is_of(const struct sumac_replica *replica);
/* May this thread make the strategy's cross-replica calls?
 * Fails    FAILED_PRECONDITION: it is in a replica context, an update, or another strategy's scope.
 */
enum sumac_status context_check_cross(
    const struct sumac_strategy *strategy, const char *call, struct sumac_error *error);
/* Fails  FAILED_PRECONDITION. */
enum sumac_status context_fail(const char *call, const char *why, struct sumac_error *error);
