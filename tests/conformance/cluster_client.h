/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_client.h -- this program as a member of a cluster: a worker that `sumac run` started
 * (relay.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/client.h"
#include "sumac/collective.h"

/* Worker 0 runs the cases of one worker alone, and the others wait for it at their next one. With
 * the stand-ins of GPUs that takes minutes on a busy machine. */
#define CLUSTER_CLIENT_TIMEOUT_MS 300000u

/* Join the cluster that TF_CONFIG describes; without one nothing is done. */
enum sumac_status cluster_client_open(struct sumac_error *error);
/* Leave it. */
void cluster_client_close(void);

/* NULL: there is no cluster. Lends  until the close. */
struct sumac_client *cluster_client(void);
/* How many ps there are; 0 without a cluster. */
uint32_t cluster_client_ps_count(void);
/* Which worker this is, and how many there are; 0 and 1 without a cluster. */
uint32_t cluster_client_index(void);
uint32_t cluster_client_count(void);

/* Do cases that name no strategy go through the ps, too (--rpc)? */
void cluster_client_serve_all(bool all);
bool cluster_client_serves_all(void);

/* Hear from the first `workers` workers what became of a case in each: `why` is "" where it passed,
 * and becomes what the first one says in which it did not. False: some could not be heard. */
bool cluster_client_agree(const char *case_id, uint32_t workers, char *why, size_t why_bytes);
