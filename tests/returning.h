/* SPDX-License-Identifier: Apache-2.0 */
/* returning.h -- what a test's function returns from a replica, or from an update, in one line: the
 * value that a call made, with the call's status. */
#pragma once

#include "sumac/variable.h"

static inline enum sumac_status return_from_replica(
    struct sumac_replica *replica, enum sumac_status status, struct sumac_value *const *returned)
{
    if (*returned != NULL)
        sumac_replica_return(replica, *returned);
    return status;
}

static inline enum sumac_status return_from_update(
    struct sumac_update_context *update, enum sumac_status status,
    struct sumac_value *const *returned)
{
    if (*returned != NULL)
        sumac_update_return(update, *returned);
    return status;
}
