/* SPDX-License-Identifier: Apache-2.0 */
/* sized_pool.h -- memory of any size that comes and goes with every push, from free lists by size.
 *
 * Sizes are rounded up to classes: multiples of 64 bytes up to 512, then eight classes to a
 * doubling, so at most one eighth is lost. What is given back is kept for the next taker, because
 * fresh pages cost more than the copy into them: of the larger classes at most `spare_bytes_max`.
 * Objects of the smaller classes are cut from slabs. A slab goes back to the source when nothing of
 * it is in use, but each class keeps one.
 *
 * A slab serves one class, so little may be in use of what is held, and the bound is on what is
 * held: beyond `held_bytes_max` nobody gets more of the source, except who takes of the reserve,
 * `reserve_bytes` more, because the others must not be in its way.
 */
#pragma once

#include <stdbool.h>

#include "list.h"
#include "memory.h"

#define SIZED_POOL_CLASSES 128u
#define SIZED_POOL_SLAB_CLASSES 32u
/* Slabs without used objects, one for each class, that are kept for the next taker. */
#define SIZED_POOL_EMPTY_BYTES_MAX (SIZED_POOL_SLAB_CLASSES * MEMORY_SLAB_BYTES)

struct sized_pool_slab;

struct sized_pool {
    const struct memory *memory;
    void *free[SIZED_POOL_CLASSES]; /* singly linked through the first word */
    LIST(struct sized_pool_slab) slabs[SIZED_POOL_SLAB_CLASSES]; /* with free objects */
    /* Of `slabs` the one without used objects, or NULL. */
    struct sized_pool_slab *empty[SIZED_POOL_SLAB_CLASSES];
    uint64_t spare_bytes; /* on the free lists of the larger classes */
    uint64_t spare_bytes_max;
    uint64_t held_bytes;     /* of the source: slabs, larger pieces, what is spare */
    uint64_t held_bytes_max; /* UINT64_MAX after init: as much as the source gives */
    uint64_t reserve_bytes;
};

void sized_pool_init(
    struct sized_pool *pool, const struct memory *memory, uint64_t spare_bytes_max);
/* Give what is spare to the source, for others who need it when the source has no more. */
void sized_pool_trim(struct sized_pool *pool);
/* Give one spare piece to the source, of the largest that there are. Returns its bytes; 0: nothing
 * large is spare. */
size_t sized_pool_shrink(struct sized_pool *pool);
/* Everything has been given back. */
void sized_pool_deinit(struct sized_pool *pool);
/* 64-byte aligned, not zeroed; NULL when the source has no more, or the bound is reached. */
void *sized_pool_take(struct sized_pool *pool, size_t bytes);
/* The same, zeroed. */
void *sized_pool_take_zeroed(struct sized_pool *pool, size_t bytes);
/* The same, not zeroed, for who may take of the reserve. */
void *sized_pool_take_reserved(struct sized_pool *pool, size_t bytes);
/* A take has failed: was it for the bound, and not for want of memory? */
bool sized_pool_is_full(const struct sized_pool *pool);
/* `bytes` as it was asked for. NULL is fine. */
void sized_pool_give(struct sized_pool *pool, void *data, size_t bytes);
/* What a request of so many bytes takes up. */
size_t sized_pool_bytes(size_t bytes);
