/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h -- where a core gets its memory from: a source that it is given, pools and an arena made
 * of it.
 *
 * The cores (lane, session) call no malloc. They are given a `struct memory`, and take big pieces
 * of it rarely; what comes and goes with every push lives in pools (same-sized objects, a free
 * list) or in an arena (reset with each event). None of these locks: one thread, or the caller's
 * lock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MEMORY_SLAB_BYTES 65536u

/* A source. `take` returns at least `bytes`, 64-byte aligned, not zeroed, or NULL. A slab, which is
 * exactly MEMORY_SLAB_BYTES, begins at a multiple of its size, so that the address of an object in
 * it tells where it begins. `give` gets the same size back. */
struct memory {
    void *(*take)(void *context, size_t bytes);
    void (*give)(void *context, void *data, size_t bytes);
    void *context;
};

static inline void *memory_take(const struct memory *memory, size_t bytes)
{
    return memory->take(memory->context, bytes);
}

/* The same, zeroed. */
static inline void *memory_take_zeroed(const struct memory *memory, size_t bytes)
{
    void *const data = memory_take(memory, bytes);

    return data == NULL ? NULL : memset(data, 0, bytes);
}

static inline void memory_give(const struct memory *memory, void *data, size_t bytes)
{
    if (data != NULL)
        memory->give(memory->context, data, bytes);
}

/* The process's own heap as a source; not for the cores to name. */
extern const struct memory memory_heap;

/* Bytes that somebody else owns, and that are only read: of a received message, of a caller's
 * tensor, of a block. */
struct span {
    const uint8_t *data;
    size_t bytes;
};

/* pool -- objects of one size. Chunks of `per_chunk` are taken from the source and kept until
 * deinit. */
struct pool {
    const struct memory *memory;
    size_t object_bytes; /* rounded up to 16 */
    size_t per_chunk;
    void *free;   /* singly linked through the first word */
    void *chunks; /* singly linked through the first word */
    size_t used;  /* objects out */
};

void pool_init(
    struct pool *pool, const struct memory *memory, size_t object_bytes, size_t per_chunk);
void pool_deinit(struct pool *pool);
/* A zeroed object, or NULL when the source has no more. */
void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *object);

/* arena -- memory that is all given up at once. Grows in chunks up to bytes_max; the chunks are
 * kept for the next time. */
struct arena {
    const struct memory *memory;
    size_t bytes_max;
    size_t bytes_used;
    struct arena_chunk *first, *current;
    uint8_t *next; /* the first free byte in `current` */
    size_t room;   /* free bytes from there on, as far as bytes_max allows them */
};

void arena_init(struct arena *arena, const struct memory *memory, size_t bytes_max);
void arena_deinit(struct arena *arena);
/* 16-byte aligned, not zeroed; NULL past bytes_max or when the source has no more. */
void *arena_take(struct arena *arena, size_t bytes);
/* The same, zeroed. */
void *arena_take_zeroed(struct arena *arena, size_t bytes);
/* All that was taken is invalid from here on. */
void arena_reset(struct arena *arena);
/* Likewise, with another bound. */
void arena_reset_to(struct arena *arena, size_t bytes_max);
