/* SPDX-License-Identifier: Apache-2.0 */
/* replica_functions.h -- the functions that cases name, which run in replicas: identity, negate,
 * square, add, …: what each makes of its operands, its replica and how many there are. */
#pragma once

#include "sumac/strategy.h"

struct replica_operands {
    struct sumac_value *x, *y; /* NULL: none. Borrowed */
    uint32_t id, count;        /* of the replica, and of all */
};

/* Gives  *result. Fails  INVALID_ARGUMENT: there is no function of that name, or its operands are
 * not those that it takes. */
enum sumac_status replica_function(
    const char *name, const struct replica_operands *operands, struct sumac_value **result,
    struct sumac_error *error);
