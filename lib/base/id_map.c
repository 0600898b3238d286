/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.c -- from a number to what it names. Removal shifts back, so there are no tombstones. */
#include "id_map.h"

#include <assert.h>
#include <string.h>

#define FIRST_CAPACITY 64u
/* Old places with each put and each remove. A map that has grown can take three quarters as many
 * entries as it had old places before it grows again; one that has shrunk loses a sixteenth of them
 * before it shrinks again. */
#define BROUGHT_BY_PUT 8u
#define BROUGHT_BY_REMOVE 32u
/* Next places: an eighth as many puts as there are places clear twice as many, … and a sixteenth as
 * many removes half as many. */
#define CLEARED_AT_ONCE 16u

static char gone; /* the value of an old place whose entry is not there any more */

void id_map_init(struct id_map *map, const struct memory *memory)
{
    *map = (struct id_map){.memory = memory};
}

void id_map_deinit(struct id_map *map)
{
    memory_give(map->memory, map->next, map->next_capacity * sizeof *map->next);
    memory_give(map->memory, map->old, map->old_capacity * sizeof *map->old);
    memory_give(map->memory, map->places, map->capacity * sizeof *map->places);
    *map = (struct id_map){.memory = map->memory};
}

/* Where the id is, or the empty place where it would go. */
static size_t find(const struct id_map *map, uint64_t id)
{
    size_t i = id_map_home(map->capacity, id);

    assert(map->capacity > 0);
    assert(map->count < map->capacity);
    while (map->places[i].value != NULL && map->places[i].id != id)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

/* Its old place; NULL: it is not there, or has been brought over. */
static struct id_map_place *find_old(const struct id_map *map, uint64_t id)
{
    if (map->old == NULL)
        return NULL;
    size_t i = id_map_home(map->old_capacity, id);
    while (map->old[i].value != NULL && map->old[i].id != id)
        i = (i + 1) & (map->old_capacity - 1);
    return map->old[i].value == NULL || map->old[i].value == &gone ? NULL : &map->old[i];
}

static void bring_over(struct id_map *map, size_t places)
{
    if (map->old == NULL)
        return;
    const size_t left = map->old_capacity - map->brought;
    const size_t end = map->brought + (places < left ? places : left);
    for (; map->brought < end; map->brought++) {
        struct id_map_place *const place = &map->old[map->brought];
        if (place->value == NULL || place->value == &gone)
            continue;
        map->places[find(map, place->id)] = *place;
        place->value = &gone;
    }
    if (end < map->old_capacity)
        return;
    memory_give(map->memory, map->old, map->old_capacity * sizeof *map->old);
    map->old = NULL;
    map->old_capacity = map->brought = 0;
}

/* A few more of the next places are there. False: no memory for them. */
static bool prepare(struct id_map *map, size_t capacity, size_t places)
{
    assert((capacity & (capacity - 1)) == 0);
    if (map->next_capacity != capacity) {
        memory_give(map->memory, map->next, map->next_capacity * sizeof *map->next);
        map->next = memory_take(map->memory, capacity * sizeof *map->next);
        map->next_capacity = map->next == NULL ? 0 : capacity;
        map->cleared = 0;
    }
    const size_t left = map->next_capacity - map->cleared;
    const size_t now = places < left ? places : left;
    if (now > 0)
        memset(map->next + map->cleared, 0, now * sizeof *map->next);
    map->cleared += now;
    return map->next != NULL;
}

static bool resize(struct id_map *map, size_t capacity)
{
    assert(map->old == NULL);
    assert(capacity > map->count);
    if (!prepare(map, capacity, capacity))
        return false;
    map->old = map->places;
    map->old_capacity = map->capacity;
    map->places = map->next;
    map->capacity = capacity;
    map->next = NULL;
    map->next_capacity = map->cleared = 0;
    return true;
}

/* The place that the id has; NULL: none. */
static struct id_map_place *place_of(const struct id_map *map, uint64_t id)
{
    if (map->capacity == 0)
        return NULL;
    struct id_map_place *const place = &map->places[find(map, id)];
    return place->value != NULL ? place : find_old(map, id);
}

void *id_map_get(const struct id_map *map, uint64_t id)
{
    const struct id_map_place *const place = place_of(map, id);

    return place == NULL ? NULL : place->value;
}

bool id_map_put(struct id_map *map, uint64_t id, void *value)
{
    struct id_map_place *const place = place_of(map, id);
    const size_t larger = map->capacity == 0 ? FIRST_CAPACITY : 2 * map->capacity;

    assert(value != NULL);
    if (place != NULL) {
        place->value = value;
        return true;
    }
    if (8 * (map->count + 1) > 5 * map->capacity)
        (void)prepare(map, larger, CLEARED_AT_ONCE);
    if (4 * (map->count + 1) > 3 * map->capacity && !resize(map, larger))
        return false;
    bring_over(map, BROUGHT_BY_PUT);
    map->places[find(map, id)] = (struct id_map_place){.id = id, .value = value};
    map->count++;
    assert(map->count < map->capacity);
    return true;
}

/* False: it is not in the new places. */
static bool remove_new(struct id_map *map, uint64_t id)
{
    size_t hole = find(map, id);

    if (map->places[hole].value == NULL)
        return false;
    for (size_t i = (hole + 1) & (map->capacity - 1); map->places[i].value != NULL;
         i = (i + 1) & (map->capacity - 1)) {
        const size_t wanted = id_map_home(map->capacity, map->places[i].id);
        if (((i - wanted) & (map->capacity - 1)) >= ((i - hole) & (map->capacity - 1))) {
            map->places[hole] = map->places[i];
            hole = i;
        }
    }
    map->places[hole].value = NULL;
    return true;
}

void id_map_remove(struct id_map *map, uint64_t id)
{
    struct id_map_place *const old = find_old(map, id);

    if (old != NULL)
        old->value = &gone;
    else if (map->capacity == 0 || !remove_new(map, id))
        return;
    assert(map->count > 0);
    map->count--;
    bring_over(map, BROUGHT_BY_REMOVE);
    if (map->capacity == FIRST_CAPACITY)
        return;
    if (16 * map->count < 3 * map->capacity)
        (void)prepare(map, map->capacity / 2, CLEARED_AT_ONCE);
    if (8 * map->count < map->capacity)
        (void)resize(map, map->capacity / 2); /* without memory for it, it stays as it is */
}
