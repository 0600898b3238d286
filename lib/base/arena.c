/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c -- memory that is all given up at once.
 *
 * Chunks are kept in the order they were taken, and filled in that order after each reset. A new
 * one is as large as all those before it together, up to bytes_max: there are few of them, and
 * together they hold at most three times bytes_max, whatever the pattern of requests.
 *
 * The address sanitizer is told what has not been taken since the last reset.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

#define ALIGNMENT_BYTES 16u
#define HEADER_BYTES 64u
#define FIRST_CHUNK_BYTES 16384u

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes; /* for requests, after the header */
};

_Static_assert(sizeof(struct arena_chunk) <= HEADER_BYTES, "a chunk's header fits its place");

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

void arena_init(struct arena *arena, const struct memory *memory, size_t bytes_max)
{
    assert(bytes_max <= SIZE_MAX / 4);
    *arena = (struct arena){.memory = memory, .bytes_max = aligned(bytes_max)};
}

void arena_deinit(struct arena *arena)
{
    struct arena_chunk *chunk = arena->first;

    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        ASAN_UNPOISON_MEMORY_REGION((uint8_t *)(void *)chunk + HEADER_BYTES, chunk->bytes);
        memory_give(arena->memory, chunk, HEADER_BYTES + chunk->bytes);
        chunk = next;
    }
    *arena = (struct arena){.memory = arena->memory, .bytes_max = arena->bytes_max};
}

/* From here on requests are met from this chunk, which is empty. */
static void enter(struct arena *arena, struct arena_chunk *chunk)
{
    const size_t left = arena->bytes_max - arena->bytes_used;

    ASAN_POISON_MEMORY_REGION((uint8_t *)(void *)chunk + HEADER_BYTES, chunk->bytes);
    assert(chunk->bytes % ALIGNMENT_BYTES == 0);
    arena->current = chunk;
    arena->next = (uint8_t *)(void *)chunk + HEADER_BYTES;
    arena->room = chunk->bytes < left ? chunk->bytes : left;
}

void arena_reset(struct arena *arena)
{
    arena->bytes_used = 0;
    if (arena->first != NULL)
        enter(arena, arena->first);
}

void arena_reset_to(struct arena *arena, size_t bytes_max)
{
    assert(bytes_max <= SIZE_MAX / 4);
    arena->bytes_max = aligned(bytes_max);
    arena_reset(arena);
}

/* A chunk at the end of the list with room for `bytes`. NULL: the source has no more. */
static struct arena_chunk *grow(struct arena *arena, size_t bytes)
{
    size_t held = 0;
    struct arena_chunk **end = &arena->first;

    while (*end != NULL) {
        held += (*end)->bytes;
        end = &(*end)->next;
    }
    size_t size = held > FIRST_CHUNK_BYTES ? held : FIRST_CHUNK_BYTES;
    if (size > arena->bytes_max)
        size = arena->bytes_max;
    if (size < bytes)
        size = bytes;
    struct arena_chunk *chunk = memory_take(arena->memory, HEADER_BYTES + size);
    if (chunk == NULL)
        return NULL;
    *chunk = (struct arena_chunk){.next = NULL, .bytes = size};
    *end = chunk;
    return chunk;
}

/* The next chunk with room for so many bytes, or a new one, becomes the current one. False: nothing
 * changes, and a smaller request may still fit. */
static bool move_on(struct arena *arena, size_t bytes)
{
    if (bytes > arena->bytes_max - arena->bytes_used) /* a multiple of the alignment */
        return false;
    assert((arena->current == NULL) == (arena->first == NULL));
    struct arena_chunk *chunk = arena->current == NULL ? NULL : arena->current->next;
    while (chunk != NULL && bytes > chunk->bytes)
        chunk = chunk->next;
    if (chunk == NULL)
        chunk = grow(arena, aligned(bytes));
    if (chunk == NULL)
        return false;
    enter(arena, chunk);
    return true;
}

static inline void *take_here(struct arena *arena, size_t wanted)
{
    uint8_t *data = arena->next;

    arena->next += wanted;
    arena->room -= wanted;
    arena->bytes_used += wanted;
    ASAN_UNPOISON_MEMORY_REGION(data, wanted);
    return data;
}

/* A small push's message takes memory some two dozen times: what is nearly never needed, another
 * chunk, is in a function of its own. */
__attribute__((noinline)) static void *take_beyond(struct arena *arena, size_t least)
{
    return move_on(arena, least) ? take_here(arena, aligned(least)) : NULL;
}

void *arena_take(struct arena *arena, size_t bytes)
{
    const size_t least = bytes > 0 ? bytes : 1;

    if (least > arena->room) /* a multiple of the alignment, too */
        return take_beyond(arena, least);
    return take_here(arena, aligned(least));
}

void *arena_take_zeroed(struct arena *arena, size_t bytes)
{
    void *data = arena_take(arena, bytes);

    if (data != NULL)
        memset(data, 0, bytes);
    return data;
}
