/* SPDX-License-Identifier: Apache-2.0 */
/* key_map.c -- an id_map of hashes; keys of one hash make a chain, the first of which is in the
 * map. */
#include "key_map.h"

#include <assert.h>
#include <string.h>

/* FNV-1a, 64 bits. */
static uint64_t hash(const void *key, size_t key_bytes)
{
    const uint8_t *bytes = key;
    uint64_t value = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < key_bytes; i++)
        value = (value ^ bytes[i]) * 0x100000001b3ull;
    return value;
}

void key_map_init(struct key_map *map, const struct memory *memory)
{
    map->count = 0;
    id_map_init(&map->hashes, memory);
}

void key_map_deinit(struct key_map *map) { id_map_deinit(&map->hashes); }

void *key_map_get(const struct key_map *map, const void *key, size_t key_bytes)
{
    const struct key_entry *entry = id_map_get(&map->hashes, hash(key, key_bytes));

    while (entry != NULL &&
           (entry->key_bytes != key_bytes || memcmp(entry->key, key, key_bytes) != 0))
        entry = entry->next;
    return entry == NULL ? NULL : entry->value;
}

bool key_map_put(struct key_map *map, struct key_entry *entry)
{
    assert(entry->value != NULL);
    const uint64_t hashed = hash(entry->key, entry->key_bytes);
    entry->next = id_map_get(&map->hashes, hashed);
    if (!id_map_put(&map->hashes, hashed, entry))
        return false;
    map->count++;
    return true;
}

void key_map_remove(struct key_map *map, struct key_entry *entry)
{
    const uint64_t hashed = hash(entry->key, entry->key_bytes);
    struct key_entry *before = id_map_get(&map->hashes, hashed);

    assert(before != NULL);
    assert(map->count > 0);
    map->count--;
    if (before == entry) {
        if (entry->next == NULL)
            id_map_remove(&map->hashes, hashed);
        else
            (void)id_map_put(&map->hashes, hashed, entry->next); /* in its place: needs no memory */
        return;
    }
    while (before->next != entry)
        before = before->next;
    before->next = entry->next;
}
