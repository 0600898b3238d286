/* SPDX-License-Identifier: Apache-2.0 */
/* member_jobs.h -- which jobs of a configuration have the run's members: `chief` and `worker`, and
 * `master`, which is TensorFlow 1's name of the chief. Resolvers return it unchanged. */
#pragma once

#include "sumac/cluster.h"

#define JOBS_BYTES 160 /* of the jobs' names in an error */

/* "chief" or "worker"; NULL: no task of that job is a member. Lends  it. Threads  any. */
const char *cluster_member_job(const char *name);

/* The cluster's job for "chief" or "worker"; NULL: it has none. Lends  it. Threads  any. */
const struct sumac_job *cluster_members(const struct sumac_cluster *cluster, const char *job);

/* May a strategy be made of this description? One of a task that is no member, or that has keys
 * that are not read, would train alone, and its user would believe in a cluster. Without a cluster,
 * with an empty one, and with one member and no task, it is to be alone. Fails  INVALID_ARGUMENT,
 * naming the key. Threads  any. */
enum sumac_status
cluster_check_member(const struct sumac_cluster *cluster, struct sumac_error *error);

/* "ps, worker": as much of the jobs' names as there is room for. Returns `text`. Threads  any. */
char *cluster_print_jobs(const struct sumac_cluster *cluster, char *text, size_t text_bytes);

/* Is TF_CONFIG set, if only to an empty cluster? */
bool cluster_is_configured(void);

/* How many members are listed. */
uint32_t cluster_member_count(const struct sumac_cluster *cluster);
