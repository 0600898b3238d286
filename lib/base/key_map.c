/* SPDX-License-Identifier: Apache-2.0 */
/* key_map.c -- an id_map of hashes; keys of one hash make a chain, the first of which is in the
 * map. */
#include "key_map.h"

#include <assert.h>
#include <string.h>

static uint64_t mix(uint64_t value, uint64_t word)
{
    value = (value ^ word) * 0x9e3779b97f4a7c15ull;
    return value ^ value >> 32;
}

/* As FNV-1a does, but eight bytes at a time, since a name may have a kilobyte; its high half is
 * brought down after each. What is left at the end is one word more, with zeros. */
static uint64_t hash(const void *key, size_t key_bytes)
{
    const uint8_t *bytes = key;
    uint64_t value = 0xcbf29ce484222325ull ^ key_bytes;
    uint64_t word = 0;
    size_t left = key_bytes;

    for (; left >= sizeof word; left -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        value = mix(value, word);
    }
    word = 0;
    memcpy(&word, bytes, left);
    return mix(value, word);
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
