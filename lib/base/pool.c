/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c -- objects of one size, from chunks that are kept.
 *
 *   chunk: | link to the next chunk, 64 bytes | object | object | …
 *   free:  the first word of a free object links to the next one
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

#define HEADER_BYTES 64u
#define OBJECT_ALIGNMENT_BYTES 16u

struct pool_link {
    struct pool_link *next;
};

static size_t chunk_bytes(const struct pool *pool)
{
    return HEADER_BYTES + pool->per_chunk * pool->object_bytes;
}

void pool_init(
    struct pool *pool, const struct memory *memory, size_t object_bytes, size_t per_chunk)
{
    assert(object_bytes > 0);
    assert(per_chunk > 0);
    assert(object_bytes <= (SIZE_MAX - HEADER_BYTES) / per_chunk - OBJECT_ALIGNMENT_BYTES);
    const size_t rounded = (object_bytes + OBJECT_ALIGNMENT_BYTES - 1) / OBJECT_ALIGNMENT_BYTES *
                           OBJECT_ALIGNMENT_BYTES;
    *pool = (struct pool){.memory = memory, .object_bytes = rounded, .per_chunk = per_chunk};
}

void pool_deinit(struct pool *pool)
{
    struct pool_link *chunk = pool->chunks;

    while (chunk != NULL) {
        struct pool_link *next = chunk->next;
        memory_give(pool->memory, chunk, chunk_bytes(pool));
        chunk = next;
    }
    pool->chunks = NULL;
    pool->free = NULL;
    pool->used = 0;
}

static void grow(struct pool *pool)
{
    uint8_t *data = memory_take(pool->memory, chunk_bytes(pool));

    if (data == NULL)
        return;
    struct pool_link *chunk = (struct pool_link *)(void *)data;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    for (size_t i = pool->per_chunk; i > 0;
         i--) { /* backwards: objects come out in address order */
        struct pool_link *link =
            (struct pool_link *)(void *)(data + HEADER_BYTES + (i - 1) * pool->object_bytes);
        link->next = pool->free;
        pool->free = link;
    }
}

void *pool_take(struct pool *pool)
{
    if (pool->free == NULL)
        grow(pool);
    struct pool_link *object = pool->free;
    if (object == NULL)
        return NULL;
    pool->free = object->next;
    pool->used++;
    memset(object, 0, pool->object_bytes);
    return object;
}

void pool_give(struct pool *pool, void *object)
{
    struct pool_link *link = object;

    if (object == NULL)
        return;
    assert(pool->used > 0);
    pool->used--;
    link->next = pool->free;
    pool->free = link;
}
