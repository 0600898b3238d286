/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c -- may this process start as many threads as gRPC does? Where it may not, gRPC waits
 * for them without end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "error.h"
#include "rpc.h"

/* gRPC 1.51 has a pool of a thread for each core, within these bounds, and some beside it. */
#define POOL_MIN 2
#define POOL_MAX 32
#define BESIDE 8

static void *wait_at(void *gate)
{
    (void)pthread_mutex_lock(gate);
    (void)pthread_mutex_unlock(gate);
    return NULL;
}

static unsigned count_wanted(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned pool = cores < POOL_MIN   ? POOL_MIN
                          : cores > POOL_MAX ? POOL_MAX
                                             : (unsigned)cores;

    return pool + BESIDE;
}

enum sumac_status rpc_check_threads(struct sumac_error *error)
{
    static atomic_bool checked;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[POOL_MAX + BESIDE];
    const unsigned wanted = count_wanted();
    unsigned count = 0;

    if (atomic_load(&checked))
        return SUMAC_OK;
    (void)pthread_mutex_lock(&gate);
    while (count < wanted && pthread_create(&threads[count], NULL, wait_at, &gate) == 0)
        count++;
    (void)pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_mutex_destroy(&gate);
    atomic_store(&checked, count == wanted);
    if (count == wanted)
        return SUMAC_OK;
    return fail_for_memory(
        error,
        "this process may start %u threads more, and needs %u: raise its limit of threads (ulimit "
        "-u, or the container's) or of address space (ulimit -v)",
        count, wanted);
}
