/* SPDX-License-Identifier: Apache-2.0 */
/* compute_pool.h -- a few threads that run slices of vector work beside the lane's thread, which
 * takes part itself.
 *
 * Jobs are taken in the order they were submitted, slice by slice, by whoever is free. A thread
 * with nothing to do sleeps; none ever spins. Signals are blocked in all of them, so that SIGTERM
 * reaches the lane's thread. Includes no gRPC, so that it runs under the thread sanitizer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "combine.h"
#include "update.h"

#define COMPUTE_THREADS_MAX 64u

struct compute_pool;

/* `threads` beside the caller's, at most COMPUTE_THREADS_MAX; 0 is fine. Gives  *pool. Returns
 * false, leaving no thread behind, when one could not be made. */
bool compute_pool_create(uint32_t threads, struct compute_pool **pool);
/* Ends the threads; no job may be out. */
void compute_pool_destroy(struct compute_pool *pool);

/* Queue a job (not 0): its slices, of updates or of a round of a collective, stay valid until
 * compute_pool_finished has given it back. The other array is NULL. False: no memory to queue it
 * in, and none of it is run. Threads  the owner's. */
bool compute_pool_submit(
    struct compute_pool *pool, uint64_t job, struct update_slice *slices,
    const struct combine_slice *combines, uint32_t slice_count);
/* Run one slice of the oldest job here, if any is left to take. False: nothing to do. Threads  the
 * owner's. */
bool compute_pool_help(struct compute_pool *pool);
/* The oldest job, once all its slices have run; 0: none, or not yet. Never blocks. Threads  the
 * owner's. */
uint64_t compute_pool_finished(struct compute_pool *pool);
/* Jobs submitted and not given back by compute_pool_finished. Threads  the owner's. */
uint32_t compute_pool_jobs(const struct compute_pool *pool);
