/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.h -- from a number to what it names: open addressing, at most three quarters full, and
 * seldom less than an eighth.
 *
 *   places: | id, value | – | id, value | id, value | …   a power of two; value NULL: empty
 *
 * A change of size is spread over many puts, or removes: each clears a few of the next places
 * before they are needed, and brings a few entries over from the old ones after that. So none of
 * them takes longer because there are a million entries.
 */
#pragma once

#include <stdbool.h>

#include "memory.h"

struct id_map_place {
    uint64_t id;
    void *value;
};

/* For each entry of a map that grows: of eight places five are full when twice as many are taken
 * beside them. */
#define ID_MAP_ENTRY_BYTES_MAX (5 * sizeof(struct id_map_place))

struct id_map {
    const struct memory *memory;
    struct id_map_place *places;
    size_t capacity;
    size_t count;
    struct id_map_place *old; /* as many of the entries are here as have not been brought over; … */
    size_t old_capacity;
    size_t brought;            /* … up to this place there are none left */
    struct id_map_place *next; /* NULL: not wanted yet, or there was no memory for them */
    size_t next_capacity;
    size_t cleared; /* of them, from the first on */
};

/* All that it has taken. */
static inline size_t id_map_bytes(const struct id_map *map)
{
    return (map->capacity + map->old_capacity + map->next_capacity) * sizeof(struct id_map_place);
}

void id_map_init(struct id_map *map, const struct memory *memory);
void id_map_deinit(struct id_map *map);
/* NULL: none of that id. */
void *id_map_get(const struct id_map *map, uint64_t id);
/* Where it is, of so many places, or behind which: Fibonacci hashing (Knuth, TAOCP 6.4) spreads
 * consecutive ids over the table. */
static inline size_t id_map_home(size_t capacity, uint64_t id)
{
    return (size_t)((id * 0x9E3779B97F4A7C15ull) >> 20) & (capacity - 1);
}
/* Put a value, not NULL, in place of what was there. False: no memory, nothing changed. */
bool id_map_put(struct id_map *map, uint64_t id, void *value);
void id_map_remove(struct id_map *map, uint64_t id);
