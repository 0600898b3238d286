/* SPDX-License-Identifier: Apache-2.0 */
/* memory_heap.c -- the process's heap as a source of memory. Apart from pool.c and arena.c, so that
 * the cores, which use those, link without an allocator. */
#include <stdint.h>
#include <stdlib.h>

#include "memory.h"

#define ALIGNMENT_BYTES 64u

static void *take(void *context, size_t bytes)
{
    (void)context;
    if (bytes > SIZE_MAX - ALIGNMENT_BYTES)
        return NULL;
    void *data = NULL;
    const size_t alignment = bytes == MEMORY_SLAB_BYTES ? MEMORY_SLAB_BYTES : ALIGNMENT_BYTES;
    if (posix_memalign(&data, alignment, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    return data;
}

static void give(void *context, void *data, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(data);
}

const struct memory memory_heap = {.take = take, .give = give, .context = NULL};
