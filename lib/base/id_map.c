/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.c -- from a number to what it names. Removal shifts back, so there are no tombstones. */
#include "id_map.h"

#include <assert.h>
#include <string.h>

#define FIRST_CAPACITY 64u

/* Fibonacci hashing (Knuth, TAOCP 6.4): consecutive ids spread over the table. */
static size_t home(const struct id_map *map, uint64_t id)
{
    return (size_t)((id * 0x9E3779B97F4A7C15ull) >> 20) & (map->capacity - 1);
}

void id_map_init(struct id_map *map, const struct memory *memory)
{
    *map = (struct id_map){.memory = memory};
}

void id_map_deinit(struct id_map *map)
{
    memory_give(map->memory, map->slots, map->capacity * sizeof *map->slots);
    *map = (struct id_map){.memory = map->memory};
}

/* Where the id is, or the empty slot where it would go. */
static size_t find(const struct id_map *map, uint64_t id)
{
    size_t i = home(map, id);

    assert(map->capacity > 0);
    assert(map->count < map->capacity);
    while (map->slots[i].value != NULL && map->slots[i].id != id)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

void *id_map_get(const struct id_map *map, uint64_t id)
{
    return map->capacity == 0 ? NULL : map->slots[find(map, id)].value;
}

static bool resize(struct id_map *map, size_t capacity)
{
    struct id_map_slot *slots = memory_take(map->memory, capacity * sizeof *slots);

    assert(capacity > map->count);
    assert((capacity & (capacity - 1)) == 0);
    if (slots == NULL)
        return false;
    memset(slots, 0, capacity * sizeof *slots);
    const struct id_map old = *map;
    map->slots = slots;
    map->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].value != NULL)
            map->slots[find(map, old.slots[i].id)] = old.slots[i];
    }
    memory_give(map->memory, old.slots, old.capacity * sizeof *old.slots);
    return true;
}

bool id_map_put(struct id_map *map, uint64_t id, void *value)
{
    assert(value != NULL);
    const size_t larger = map->capacity == 0 ? FIRST_CAPACITY : 2 * map->capacity;
    if (4 * (map->count + 1) > 3 * map->capacity && !resize(map, larger))
        return false;
    struct id_map_slot *slot = &map->slots[find(map, id)];
    map->count += slot->value == NULL;
    *slot = (struct id_map_slot){.id = id, .value = value};
    assert(map->count < map->capacity);
    return true;
}

void id_map_remove(struct id_map *map, uint64_t id)
{
    if (map->capacity == 0)
        return;
    size_t hole = find(map, id);
    if (map->slots[hole].value == NULL)
        return;
    assert(map->count > 0);
    map->count--;
    for (size_t i = (hole + 1) & (map->capacity - 1); map->slots[i].value != NULL;
         i = (i + 1) & (map->capacity - 1)) {
        const size_t wanted = home(map, map->slots[i].id);
        if (((i - wanted) & (map->capacity - 1)) >= ((i - hole) & (map->capacity - 1))) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].value = NULL;
    if (map->capacity > FIRST_CAPACITY && 8 * map->count < map->capacity)
        (void)resize(map, map->capacity / 2); /* without memory for it, it stays as it is */
}
