/* sized_pool.c -- memory of any size from free lists by size.
 *
 *   class   0 … 7            bytes 64, 128, … 512
 *   class   8 + 8 d + i      bytes 512 * 2^d * (9 + i) / 8     d = 0 … 13, i = 0 … 7; the last is 8
 * MiB
 */
#include "sized_pool.h"

#include <assert.h>

#define UNIT_BYTES 64u
#define LINEAR_CLASSES 8u
#define CARVED_BYTES_MAX 4096u /* classes up to this share slabs */
#define SLAB_BYTES 65536u
#define CLASS_BYTES_MAX (8u << 20)

struct link {
    struct link *next;
};

/* The class of a request, and its bytes. */
static uint32_t class_of(size_t bytes, size_t *rounded)
{
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

size_t sized_pool_bytes(size_t bytes)
{
    size_t rounded = bytes;

    if (bytes <= CLASS_BYTES_MAX)
        (void)class_of(bytes, &rounded);
    return rounded;
}

void sized_pool_init(struct sized_pool *pool, const struct memory *memory, uint64_t spare_bytes_max)
{
    *pool = (struct sized_pool){.memory = memory, .spare_bytes_max = spare_bytes_max};
}

void sized_pool_trim(struct sized_pool *pool)
{
    for (size_t bytes = CARVED_BYTES_MAX + 1; bytes <= CLASS_BYTES_MAX;) {
        size_t rounded;
        const uint32_t class = class_of(bytes, &rounded);
        struct link *free = pool->free[class];
        while (free != NULL) {
            struct link *next = free->next;
            memory_give(pool->memory, free, rounded);
            free = next;
        }
        pool->free[class] = NULL;
        bytes = rounded + 1;
    }
    pool->spare_bytes = 0;
}

void sized_pool_deinit(struct sized_pool *pool)
{
    sized_pool_trim(pool);
    struct link *slab = pool->slabs;
    while (slab != NULL) {
        struct link *next = slab->next;
        memory_give(pool->memory, slab, SLAB_BYTES);
        slab = next;
    }
}

static void put_free(struct sized_pool *pool, uint32_t class, void *data)
{
    struct link *link = data;

    link->next = pool->free[class];
    pool->free[class] = link;
}

/* Cut a new slab into objects of this class. */
static void carve(struct sized_pool *pool, uint32_t class, size_t rounded)
{
    uint8_t *slab = memory_take(pool->memory, SLAB_BYTES);

    if (slab == NULL)
        return;
    struct link *link = (struct link *)(void *)slab;
    link->next = pool->slabs;
    pool->slabs = link;
    const size_t count = (SLAB_BYTES - UNIT_BYTES) / rounded;
    for (size_t i = count; i > 0; i--) /* backwards: they come out in address order */
        put_free(pool, class, slab + UNIT_BYTES + (i - 1) * rounded);
}

void *sized_pool_take(struct sized_pool *pool, size_t bytes)
{
    size_t rounded;

    if (bytes > CLASS_BYTES_MAX)
        return memory_take(pool->memory, bytes);
    const uint32_t class = class_of(bytes, &rounded);
    assert(class < SIZED_POOL_CLASSES);
    if (pool->free[class] == NULL && rounded <= CARVED_BYTES_MAX)
        carve(pool, class, rounded);
    struct link *taken = pool->free[class];
    if (taken == NULL)
        return rounded <= CARVED_BYTES_MAX ? NULL : memory_take(pool->memory, rounded);
    pool->free[class] = taken->next;
    if (rounded > CARVED_BYTES_MAX)
        pool->spare_bytes -= rounded;
    return taken;
}

void sized_pool_give(struct sized_pool *pool, void *data, size_t bytes)
{
    size_t rounded;

    if (data == NULL)
        return;
    if (bytes > CLASS_BYTES_MAX) {
        memory_give(pool->memory, data, bytes);
        return;
    }
    const uint32_t class = class_of(bytes, &rounded);
    if (rounded > CARVED_BYTES_MAX) {
        if (pool->spare_bytes + rounded > pool->spare_bytes_max) {
            memory_give(pool->memory, data, rounded);
            return;
        }
        pool->spare_bytes += rounded;
    }
    put_free(pool, class, data);
}
