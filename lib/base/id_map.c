/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.c -- from a number to what it names. Removal shifts back, so there are no tombstones. */
#include "id_map.h"

#include <assert.h>
#include <string.h>

#define FIRST_CAPACITY 64u

void id_map_init(struct id_map *map, const struct memory *memory)
{
    *map = (struct id_map){.memory = memory};
}

void id_map_deinit(struct id_map *map)
{
    memory_give(map->memory, map->places, map->capacity * sizeof *map->places);
    *map = (struct id_map){.memory = map->memory};
}

/* Where the id is, or the empty place where it would go. */
static size_t find(const struct id_map *map, uint64_t id)
{
    size_t i = id_map_home(map, id);

    assert(map->capacity > 0);
    assert(map->count < map->capacity);
    while (map->places[i].value != NULL && map->places[i].id != id)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

void *id_map_get(const struct id_map *map, uint64_t id)
{
    return map->capacity == 0 ? NULL : map->places[find(map, id)].value;
}

static bool resize(struct id_map *map, size_t capacity)
{
    struct id_map_place *places = memory_take(map->memory, capacity * sizeof *places);

    assert(capacity > map->count);
    assert((capacity & (capacity - 1)) == 0);
    if (places == NULL)
        return false;
    memset(places, 0, capacity * sizeof *places);
    const struct id_map old = *map;
    map->places = places;
    map->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.places[i].value != NULL)
            map->places[find(map, old.places[i].id)] = old.places[i];
    }
    memory_give(map->memory, old.places, old.capacity * sizeof *old.places);
    return true;
}

bool id_map_put(struct id_map *map, uint64_t id, void *value)
{
    assert(value != NULL);
    const size_t larger = map->capacity == 0 ? FIRST_CAPACITY : 2 * map->capacity;
    if (4 * (map->count + 1) > 3 * map->capacity && !resize(map, larger))
        return false;
    struct id_map_place *place = &map->places[find(map, id)];
    map->count += place->value == NULL;
    *place = (struct id_map_place){.id = id, .value = value};
    assert(map->count < map->capacity);
    return true;
}

void id_map_remove(struct id_map *map, uint64_t id)
{
    if (map->capacity == 0)
        return;
    size_t hole = find(map, id);
    if (map->places[hole].value == NULL)
        return;
    assert(map->count > 0);
    map->count--;
    for (size_t i = (hole + 1) & (map->capacity - 1); map->places[i].value != NULL;
         i = (i + 1) & (map->capacity - 1)) {
        const size_t wanted = id_map_home(map, map->places[i].id);
        if (((i - wanted) & (map->capacity - 1)) >= ((i - hole) & (map->capacity - 1))) {
            map->places[hole] = map->places[i];
            hole = i;
        }
    }
    map->places[hole].value = NULL;
    if (map->capacity > FIRST_CAPACITY && 8 * map->count < map->capacity)
        (void)resize(map, map->capacity / 2); /* without memory for it, it stays as it is */
}
