/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.h -- from a number to what it names: open addressing, at most three quarters full, and
 * seldom less than an eighth.
 *
 *   places: | id, value | – | id, value | id, value | …   a power of two; value NULL: empty
 */
#ifndef BASE_ID_MAP_H
#define BASE_ID_MAP_H

#include <stdbool.h>

#include "memory.h"

struct id_map_place {
    uint64_t id;
    void *value;
};

/* For each entry of a map that grows: the places are at least three eighths full. */
#define ID_MAP_ENTRY_BYTES_MAX (3 * sizeof(struct id_map_place))

struct id_map {
    const struct memory *memory;
    struct id_map_place *places;
    size_t capacity;
    size_t count;
};

void id_map_init(struct id_map *map, const struct memory *memory);
void id_map_deinit(struct id_map *map);
/* NULL: none of that id. */
void *id_map_get(const struct id_map *map, uint64_t id);
/* Where it is, or behind which: Fibonacci hashing (Knuth, TAOCP 6.4) spreads consecutive ids over
 * the table. */
static inline size_t id_map_home(const struct id_map *map, uint64_t id)
{
    return (size_t)((id * 0x9E3779B97F4A7C15ull) >> 20) & (map->capacity - 1);
}
/* Put a value, not NULL, in place of what was there. False: no memory, nothing changed. */
bool id_map_put(struct id_map *map, uint64_t id, void *value);
void id_map_remove(struct id_map *map, uint64_t id);

#endif
