/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c -- memory that is all given up at once.
 *
 * Chunks are kept in the order they were taken, and filled in that order after each reset. A new
 * one is as large as all those before it together, up to bytes_max: there are few of them, and
 * together they hold at most three times bytes_max, whatever the pattern of requests.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

#define ALIGNMENT_BYTES 16u
#define HEADER_BYTES 64u
#define FIRST_CHUNK_BYTES 16384u

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes; /* for requests, after the header */
};

_Static_assert(sizeof(struct arena_chunk) <= HEADER_BYTES, "a chunk's header fits its place");

void arena_init(struct arena *arena, const struct memory *memory, size_t bytes_max)
{
    assert(bytes_max <= SIZE_MAX / 4);
    *arena = (struct arena){
        .memory = memory,
        .bytes_max = (bytes_max + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES};
}

void arena_deinit(struct arena *arena)
{
    struct arena_chunk *chunk = arena->first;
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        memory_give(arena->memory, chunk, HEADER_BYTES + chunk->bytes);
        chunk = next;
    }
    arena->first = NULL;
    arena_reset(arena);
}

void arena_reset(struct arena *arena)
{
    arena->current = arena->first;
    arena->used_of_current = 0;
    arena->bytes_used = 0;
}

/* A chunk at the end of the list with room for `bytes`, as the current one. False: the source has
 * no more. */
static bool grow(struct arena *arena, size_t bytes)
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
        return false;
    *chunk = (struct arena_chunk){.next = NULL, .bytes = size};
    *end = chunk;
    arena->current = chunk;
    arena->used_of_current = 0;
    return true;
}

/* The next chunk with room for `wanted` bytes, or a new one, becomes the current one. */
static bool move_on(struct arena *arena, size_t wanted)
{
    struct arena_chunk *const current = arena->current;
    const size_t used_of_current = arena->used_of_current;
    while (arena->current != NULL && wanted > arena->current->bytes - arena->used_of_current) {
        arena->current = arena->current->next;
        arena->used_of_current = 0;
    }
    if (arena->current != NULL || grow(arena, wanted))
        return true;
    arena->current = current; /* a smaller request may still fit */
    arena->used_of_current = used_of_current;
    return false;
}

/* A message of a small push takes two dozen times: what is not needed nearly always is elsewhere. */
void *arena_take(struct arena *arena, size_t bytes)
{
    const size_t least = bytes > 0 ? bytes : 1;
    if (least > arena->bytes_max - arena->bytes_used) /* a multiple of the alignment */
        return NULL;
    const size_t wanted = (least + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    const struct arena_chunk *chunk = arena->current;
    if ((chunk == NULL || wanted > chunk->bytes - arena->used_of_current) &&
        !move_on(arena, wanted))
        return NULL;
    uint8_t *data = (uint8_t *)(void *)arena->current + HEADER_BYTES + arena->used_of_current;
    arena->used_of_current += wanted;
    arena->bytes_used += wanted;
    return data;
}

void *arena_take_zeroed(struct arena *arena, size_t bytes)
{
    void *data = arena_take(arena, bytes);
    if (data != NULL)
        memset(data, 0, bytes);
    return data;
}
