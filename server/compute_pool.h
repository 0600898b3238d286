/* compute_pool.h -- a few threads that run slices of vector work beside the lane's thread, which takes part itself.
 *
 * Includes no gRPC, so that it runs under the thread sanitizer.
 */
#ifndef SERVER_COMPUTE_POOL_H
#define SERVER_COMPUTE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "update.h"

struct compute_pool;

/* `threads` beside the caller's; 0 is fine. Gives  *pool. Returns false when a thread could not be made. */
bool compute_pool_create(uint32_t threads, struct compute_pool **pool);
/* Ends the threads; no job may be out. */
void compute_pool_destroy(struct compute_pool *pool);

/* Queue a job: its slices stay valid until compute_pool_finished has given it back. Threads  the owner's. */
void compute_pool_submit(struct compute_pool *pool, uint64_t job, struct update_slice *slices,
                         uint32_t slice_count);
/* Run one slice of the oldest job here, if any is left to take. False: nothing to do. Threads  the owner's. */
bool compute_pool_help(struct compute_pool *pool);
/* A job all of whose slices have run, each once; 0: none. Never blocks. Threads  the owner's. */
uint64_t compute_pool_finished(struct compute_pool *pool);
/* Jobs submitted and not given back by compute_pool_finished. Threads  the owner's. */
uint32_t compute_pool_jobs(const struct compute_pool *pool);

#endif
