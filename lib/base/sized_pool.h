/* SPDX-License-Identifier: Apache-2.0 */
/* sized_pool.h -- memory of any size that comes and goes with every push, from free lists by size.
 *
 * Sizes are rounded up to classes: multiples of 64 bytes up to 512, then eight classes to a
 * doubling, so at most one eighth is lost. What is given back is kept for the next taker, because
 * fresh pages cost more than the copy into them: of the larger classes no more than
 * `spare_bytes_max`. The smaller ones share slabs, which go back when nothing of them is in use,
 * but one for each class.
 *
 * A slab serves one class, so what is in use can be little of what is held. It is what is held that
 * is bounded: whoever wants more of the source than `held_bytes_max` gets nothing, and some, who
 * must not be hindered by the others, `reserve_bytes` more.
 */
#ifndef BASE_SIZED_POOL_H
#define BASE_SIZED_POOL_H

#include <stdbool.h>

#include "list.h"
#include "memory.h"

#define SIZED_POOL_CLASSES 128u
#define SIZED_POOL_SLAB_CLASSES 32u
#define SIZED_POOL_EMPTY_BYTES_MAX                                                                 \
    (SIZED_POOL_SLAB_CLASSES * MEMORY_SLAB_BYTES) /* kept for the next taker */

struct sized_pool_slab;

struct sized_pool {
    const struct memory *memory;
    void *free[SIZED_POOL_CLASSES]; /* singly linked through the first word */
    LIST(struct sized_pool_slab) slabs[SIZED_POOL_SLAB_CLASSES]; /* with free objects */
    struct sized_pool_slab
        *empty[SIZED_POOL_SLAB_CLASSES]; /* of `slabs` the one without used objects, or NULL */
    uint64_t spare_bytes;                /* on the free lists of the larger classes */
    uint64_t spare_bytes_max;
    uint64_t held_bytes;     /* of the source: slabs, larger pieces, what is spare */
    uint64_t held_bytes_max; /* UINT64_MAX after init: as much as the source gives */
    uint64_t reserve_bytes;
};

void sized_pool_init(
    struct sized_pool *pool, const struct memory *memory, uint64_t spare_bytes_max);
/* Give what is spare to the source: when it had no more, others need it too. */
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
/* Not zeroed, for those who may take of the reserve. */
void *sized_pool_take_reserved(struct sized_pool *pool, size_t bytes);
/* Would it refuse a slab, for its bound? What is spare has been given back then. */
bool sized_pool_is_full(const struct sized_pool *pool);
/* `bytes` as it was asked for. NULL is fine. */
void sized_pool_give(struct sized_pool *pool, void *data, size_t bytes);
/* What a request of so many bytes takes up. */
size_t sized_pool_bytes(size_t bytes);

#endif
