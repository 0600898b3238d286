/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_functions.h -- the update functions that somebody has defined in a run, as ps 0 tells. */
#ifndef CLI_CLUSTER_FUNCTIONS_H
#define CLI_CLUSTER_FUNCTIONS_H

#include "ask.h"
#include "defined.h"

struct cluster_function {
    uint32_t number;
    const char *name, *text;   /* of the answer */
    bool readable;             /* else it is of another release, and its row is of no use */
    struct update_defined row; /* as every ps reads it */
};

struct cluster_functions {
    uint32_t count;
    struct cluster_function *items; /* (count), owned, in the order of their numbers */
    struct answers answers;         /* what the texts are of */
};

/* Ask ps 0 of the roster.
 *
 * Gives    *functions; release with cluster_functions_deinit.
 * Fails    as ask; RESOURCE_EXHAUSTED. */
enum sumac_status cluster_functions_ask(
    struct roster *roster, struct cluster_functions *functions, struct sumac_error *error);
void cluster_functions_deinit(struct cluster_functions *functions);

/* NULL: there is none of that number, or name. */
const struct cluster_function *
cluster_functions_find(const struct cluster_functions *functions, uint32_t number);
const struct cluster_function *
cluster_functions_find_by_name(const struct cluster_functions *functions, const char *name);

#endif
