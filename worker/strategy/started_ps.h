/* SPDX-License-Identifier: Apache-2.0 */
/* started_ps.h -- a ps for workers whose cluster has none: the first of them starts it, on its own
 * task's address, where the others find it. */
#ifndef STRATEGY_STARTED_PS_H
#define STRATEGY_STARTED_PS_H

#include <sys/types.h>

#include "sumac/cluster.h"

/* The cluster as it is with that ps, which each of the workers makes of its own alike. `with` has
 * the same task as `cluster`.
 * Gives    *with; release with sumac_cluster_deinit.
 * Fails    INVALID_ARGUMENT: the task is neither chief nor worker, or knows only itself.
 *          RESOURCE_EXHAUSTED. */
enum sumac_status started_ps_cluster(
    const struct sumac_cluster *cluster, struct sumac_cluster *with, struct sumac_error *error);

/* Is this process's task the one that starts it: the chief, or the first worker without one? */
bool started_ps_is_ours(const struct sumac_cluster *cluster);

/* Start `sumac ps`: the program that SUMAC_PROGRAM names, or that beside this one, or in PATH. It
 * dies with the thread that calls this. Returns when the ps listens, or has ended.
 * Gives    *ps.
 * Fails    NOT_FOUND: there is no such program. RESOURCE_EXHAUSTED. INVALID_ARGUMENT, or
 *          UNAVAILABLE for an exit code of 128 or more: the ps ended before it listened, and its
 *          last line is in the error. DEADLINE_EXCEEDED: it did not listen within 60 s. */
enum sumac_status
started_ps_start(const struct sumac_cluster *cluster, pid_t *ps, struct sumac_error *error);

/* It ends when all workers have left. Waits for that, so long at most; then it is ended. */
void started_ps_wait(pid_t ps, uint32_t timeout_ms);

#endif
