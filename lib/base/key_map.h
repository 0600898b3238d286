/* SPDX-License-Identifier: Apache-2.0 */
/* key_map.h -- from a run of bytes (a name, an identity) to what it names. The entries are in the
 * things that are named, so the map has a place for each and no copy of a key.
 *
 *   struct variable {
 *       struct key_entry by_name;
 *       const char *name;
 *   };
 */
#pragma once

#include "id_map.h"

struct key_entry {
    const void *key; /* borrowed: as long as the entry is in the map */
    size_t key_bytes;
    void *value;
    struct key_entry *next; /* of the same hash */
};

struct key_map {
    struct id_map hashes;
    size_t count; /* entries: of one hash there may be several */
};

void key_map_init(struct key_map *map, const struct memory *memory);
void key_map_deinit(struct key_map *map);
/* NULL: none of that key. */
void *key_map_get(const struct key_map *map, const void *key, size_t key_bytes);
/* An entry whose key and value are given. Of two of one key the one that was put last is found.
 * False: no memory, nothing changed. */
bool key_map_put(struct key_map *map, struct key_entry *entry);
/* An entry that is in the map. */
void key_map_remove(struct key_map *map, struct key_entry *entry);
