/* SPDX-License-Identifier: Apache-2.0 */
/* sized_pool.c -- memory of any size from free lists by size.
 *
 *   class   0 … 7            bytes 64, 128, … 512
 *   class   8 + 8 d + i      bytes 512 * 2^d * (9 + i) / 8     d = 0 … 13, i = 0 … 7
 *
 * The last one is 8 MiB. Classes up to 4096 bytes are cut from slabs, whose addresses are multiples
 * of their size:
 *
 *   slab:   | header, 64 bytes | object | object | …
 */
#include "sized_pool.h"

#include <assert.h>
#include <string.h>

#define UNIT_BYTES 64u
#define LINEAR_CLASSES 8u
#define CARVED_BYTES_MAX 4096u /* classes up to this share slabs */
#define CLASS_BYTES_MAX (8u << 20)
#define GIVEN_AT_ONCE_MAX                                                                          \
    8u /* spare pieces beyond their bound that each taker of a fresh one gives back */

struct sized_pool_link {
    struct sized_pool_link *next;
};

struct sized_pool_slab {
    LINKS(struct sized_pool_slab) of_class; /* of those with free objects */
    struct sized_pool_link *free;
    uint32_t used, class;
};

_Static_assert(sizeof(struct sized_pool_slab) <= UNIT_BYTES, "objects are aligned to 64 bytes");

/* The class of a request, and its bytes. */
static uint32_t class_of(size_t bytes, size_t *rounded)
{
    assert(bytes <= CLASS_BYTES_MAX);
    if (bytes <= LINEAR_CLASSES * UNIT_BYTES) {
        const size_t units = bytes == 0 ? 1 : (bytes + UNIT_BYTES - 1) / UNIT_BYTES;
        *rounded = units * UNIT_BYTES;
        return (uint32_t)(units - 1);
    }
    const uint32_t doubling = 63u - (uint32_t)__builtin_clzll(bytes - 1) - 9u;
    const size_t step = (size_t)UNIT_BYTES << doubling;
    const size_t steps = (bytes + step - 1) / step; /* 9 … 16 */
    *rounded = steps * step;
    return LINEAR_CLASSES + doubling * LINEAR_CLASSES + (uint32_t)(steps - 9);
}

/* The bytes of a class beyond the linear ones. */
static size_t bytes_of(uint32_t class)
{
    const uint32_t doubling = (class - LINEAR_CLASSES) / LINEAR_CLASSES;
    const size_t steps = (class - LINEAR_CLASSES) % LINEAR_CLASSES + 9;

    assert(class >= LINEAR_CLASSES);
    return steps * ((size_t)UNIT_BYTES << doubling);
}

size_t sized_pool_bytes(size_t bytes)
{
    size_t rounded = bytes;

    if (bytes <= CLASS_BYTES_MAX)
        (void)class_of(bytes, &rounded);
    assert(rounded >= bytes);
    return rounded;
}

void sized_pool_init(struct sized_pool *pool, const struct memory *memory, uint64_t spare_bytes_max)
{
    *pool = (struct sized_pool){
        .memory = memory, .spare_bytes_max = spare_bytes_max, .held_bytes_max = UINT64_MAX};
}

static void give_to_source(struct sized_pool *pool, void *data, size_t bytes)
{
    if (data == NULL)
        return;
    assert(pool->held_bytes >= bytes);
    pool->held_bytes -= bytes;
    memory_give(pool->memory, data, bytes);
}

static void link_slab(struct sized_pool *pool, struct sized_pool_slab *slab)
{
    LIST_PREPEND(&pool->slabs[slab->class], slab, of_class);
}

static void unlink_slab(struct sized_pool *pool, struct sized_pool_slab *slab)
{
    assert(slab->of_class.prev != NULL || pool->slabs[slab->class].first == slab);
    LIST_REMOVE(&pool->slabs[slab->class], slab, of_class);
}

void sized_pool_trim(struct sized_pool *pool)
{
    for (uint32_t class = 0; class < SIZED_POOL_SLAB_CLASSES; class ++) {
        struct sized_pool_slab *empty = pool->empty[class];
        if (empty == NULL)
            continue;
        pool->empty[class] = NULL;
        unlink_slab(pool, empty);
        give_to_source(pool, empty, MEMORY_SLAB_BYTES);
    }
    for (size_t bytes = CARVED_BYTES_MAX + 1; bytes <= CLASS_BYTES_MAX;) {
        size_t rounded;
        const uint32_t class = class_of(bytes, &rounded);
        struct sized_pool_link *free = pool->free[class];
        while (free != NULL) {
            struct sized_pool_link *next = free->next;
            give_to_source(pool, free, rounded);
            free = next;
        }
        pool->free[class] = NULL;
        bytes = rounded + 1;
    }
    pool->spare_bytes = 0;
}

size_t sized_pool_shrink(struct sized_pool *pool)
{
    uint32_t class = SIZED_POOL_CLASSES;

    while (class -- > SIZED_POOL_SLAB_CLASSES) {
        struct sized_pool_link *free = pool->free[class];
        if (free == NULL)
            continue;
        const size_t bytes = bytes_of(class);
        assert(pool->spare_bytes >= bytes);
        pool->free[class] = free->next;
        pool->spare_bytes -= bytes;
        give_to_source(pool, free, bytes);
        return bytes;
    }
    assert(pool->spare_bytes == 0);
    return 0;
}

void sized_pool_deinit(struct sized_pool *pool) { sized_pool_trim(pool); }

/* ---- from the source ---- */

static bool fits(const struct sized_pool *pool, uint64_t bytes, uint64_t reserve_bytes)
{
    const uint64_t left = UINT64_MAX - pool->held_bytes_max;
    const uint64_t max = pool->held_bytes_max + (reserve_bytes < left ? reserve_bytes : left);

    return pool->held_bytes <= max && bytes <= max - pool->held_bytes;
}

bool sized_pool_is_full(const struct sized_pool *pool) { return !fits(pool, MEMORY_SLAB_BYTES, 0); }

/* Before more is taken of the source, what is spare goes back to it: as much as the new piece wants
 * to fit within the bound; and, where the bound of what is spare was lowered, a few pieces of what
 * is beyond it. */
static void make_room(struct sized_pool *pool, uint64_t bytes, uint64_t reserve_bytes)
{
    uint32_t given = 0;

    while (!fits(pool, bytes, reserve_bytes) ||
           (pool->spare_bytes > pool->spare_bytes_max && given < GIVEN_AT_ONCE_MAX)) {
        if (sized_pool_shrink(pool) == 0)
            break;
        given++;
    }
    if (!fits(pool, bytes, reserve_bytes))
        sized_pool_trim(pool);
}

static void *take_fresh(struct sized_pool *pool, size_t bytes, uint64_t reserve_bytes)
{
    make_room(pool, bytes, reserve_bytes);
    if (!fits(pool, bytes, reserve_bytes))
        return NULL;
    void *data = memory_take(pool->memory, bytes);
    if (data != NULL)
        pool->held_bytes += bytes;
    return data;
}

/* ---- slabs ---- */

/* A new slab, cut into objects of this size. NULL: no memory. */
static struct sized_pool_slab *
carve(struct sized_pool *pool, uint32_t class, size_t rounded, uint64_t reserve_bytes)
{
    uint8_t *data = take_fresh(pool, MEMORY_SLAB_BYTES, reserve_bytes);

    if (data == NULL)
        return NULL;
    assert((uintptr_t)data % MEMORY_SLAB_BYTES == 0);
    struct sized_pool_slab *slab = (struct sized_pool_slab *)(void *)data;
    *slab = (struct sized_pool_slab){.class = class};
    const size_t count = (MEMORY_SLAB_BYTES - UNIT_BYTES) / rounded;
    assert(count > 0);
    for (size_t i = count; i > 0; i--) { /* backwards: they come out in address order */
        struct sized_pool_link *link =
            (struct sized_pool_link *)(void *)(data + UNIT_BYTES + (i - 1) * rounded);
        link->next = slab->free;
        slab->free = link;
    }
    return slab;
}

static void *take_of_slab(struct sized_pool *pool, struct sized_pool_slab *slab)
{
    struct sized_pool_link *taken = slab->free;

    assert(taken != NULL);
    if (slab->used++ == 0) {
        assert(pool->empty[slab->class] == NULL || pool->empty[slab->class] == slab);
        pool->empty[slab->class] = NULL;
    }
    slab->free = taken->next;
    if (slab->free == NULL)
        unlink_slab(pool, slab);
    return taken;
}

/* Not inlined, so that the usual case, which finds a slab, saves no registers. */
__attribute__((noinline)) static void *
take_of_new_slab(struct sized_pool *pool, size_t bytes, uint64_t reserve_bytes)
{
    size_t rounded;
    const uint32_t class = class_of(bytes, &rounded);
    struct sized_pool_slab *slab = carve(pool, class, rounded, reserve_bytes);

    assert(class < SIZED_POOL_SLAB_CLASSES);
    if (slab == NULL)
        return NULL;
    link_slab(pool, slab);
    return take_of_slab(pool, slab);
}

/* One empty slab of each class is kept, where it is: who takes and gives one object again and again
 * links and unlinks none. */
static void give_to_slab(struct sized_pool *pool, void *data)
{
    struct sized_pool_slab *slab =
        (struct sized_pool_slab *)((uint8_t *)data - (uintptr_t)data % MEMORY_SLAB_BYTES);
    struct sized_pool_link *link = data;

    assert(slab->used > 0);
    if (slab->free == NULL)
        link_slab(pool, slab);
    link->next = slab->free;
    slab->free = link;
    if (--slab->used > 0)
        return;
    if (pool->empty[slab->class] == NULL) {
        pool->empty[slab->class] = slab;
        return;
    }
    unlink_slab(pool, slab);
    give_to_source(pool, slab, MEMORY_SLAB_BYTES);
}

/* ---- larger pieces ---- */

static void *take_large(struct sized_pool *pool, size_t bytes, uint64_t reserve_bytes)
{
    size_t rounded;

    assert(bytes > CARVED_BYTES_MAX);
    if (bytes > CLASS_BYTES_MAX)
        return take_fresh(pool, bytes, reserve_bytes);
    const uint32_t class = class_of(bytes, &rounded);
    assert(class < SIZED_POOL_CLASSES);
    struct sized_pool_link *taken = pool->free[class];
    if (taken == NULL)
        return take_fresh(pool, rounded, reserve_bytes);
    pool->free[class] = taken->next;
    assert(pool->spare_bytes >= rounded);
    pool->spare_bytes -= rounded;
    return taken;
}

static void give_large(struct sized_pool *pool, void *data, size_t bytes)
{
    size_t rounded;

    assert(bytes > CARVED_BYTES_MAX);
    if (bytes > CLASS_BYTES_MAX) {
        give_to_source(pool, data, bytes);
        return;
    }
    const uint32_t class = class_of(bytes, &rounded);
    if (pool->spare_bytes + rounded > pool->spare_bytes_max) {
        give_to_source(pool, data, rounded);
        return;
    }
    assert(rounded >= bytes);
    pool->spare_bytes += rounded;
    ((struct sized_pool_link *)data)->next = pool->free[class];
    pool->free[class] = data;
}

/* ---- any size: a small push takes six pieces, nearly always of a slab that is there ---- */

static void *take(struct sized_pool *pool, size_t bytes, uint64_t reserve_bytes)
{
    size_t rounded;

    if (bytes > CARVED_BYTES_MAX)
        return take_large(pool, bytes, reserve_bytes);
    struct sized_pool_slab *slab = pool->slabs[class_of(bytes, &rounded)].first;
    if (slab == NULL)
        return take_of_new_slab(pool, bytes, reserve_bytes);
    return take_of_slab(pool, slab);
}

void *sized_pool_take(struct sized_pool *pool, size_t bytes) { return take(pool, bytes, 0); }

void *sized_pool_take_zeroed(struct sized_pool *pool, size_t bytes)
{
    void *data = sized_pool_take(pool, bytes);

    if (data != NULL)
        memset(data, 0, bytes);
    return data;
}

void *sized_pool_take_reserved(struct sized_pool *pool, size_t bytes)
{
    return take(pool, bytes, pool->reserve_bytes);
}

void sized_pool_give(struct sized_pool *pool, void *data, size_t bytes)
{
    if (data == NULL)
        return;
    if (bytes > CARVED_BYTES_MAX)
        give_large(pool, data, bytes);
    else
        give_to_slab(pool, data);
}
