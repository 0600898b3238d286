/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.h -- the client and the ps that a strategy from the environment has of its own. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "sumac/client.h"

struct surroundings {
    struct sumac_client *client;
    pid_t ps; /* that was started; 0: none */
};

/* Join the cluster, which has a ps. */
enum sumac_status surroundings_join(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error);
/* Join a cluster without a ps. The chief or the first worker starts one before that. */
enum sumac_status surroundings_join_without_ps(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error);
/* Leave the cluster, as done or not, and wait for a ps that was started. NULL is fine. */
enum sumac_status surroundings_leave(
    struct surroundings *surroundings, bool done, uint32_t timeout_ms, struct sumac_error *error);
