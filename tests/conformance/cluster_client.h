/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_client.h -- the client of the cluster that TF_CONFIG describes, as whose member this
 * program runs: one, for all cases. No thread but one. */
#ifndef CONFORMANCE_CLUSTER_CLIENT_H
#define CONFORMANCE_CLUSTER_CLIENT_H

#include <stdbool.h>

#include "sumac/client.h"

/* Does TF_CONFIG describe one? */
bool cluster_client_is_there(void);
/* Opened when it is asked for first; after that *client is the same, or the error is.
 * Lends  *client, until the close. */
enum sumac_status cluster_client_get(struct sumac_client **client, struct sumac_error *error);
/* Leaves, done, if it was opened. */
void cluster_client_close(void);

#endif
