/* SPDX-License-Identifier: Apache-2.0 */
/* assigned.c -- which elements of a shard its creator has yet to assign: one bit each, until there
 * are none.
 *
 * The value of an assigned variable may come in any number of pushes and in any order; it is there
 * when every element is.
 */
#include "store.h"

#include <assert.h>

static uint64_t words_of(uint64_t elements) { return (elements + 63) / 64; }

uint64_t store_assignable_bytes(const struct variable *variable, uint64_t shard_bytes)
{
    const bool assigned = definition_is_assigned(&variable->definition);

    assert(sumac_dtype_bytes(variable->definition.dtype) > 0);
    return assigned ? words_of(shard_bytes / sumac_dtype_bytes(variable->definition.dtype)) * 8 : 0;
}

bool store_assignable(struct store *store, struct shard *shard)
{
    const uint64_t elements = shard->bytes / sumac_dtype_bytes(shard->variable->definition.dtype);
    const uint64_t bytes = store_assignable_bytes(shard->variable, shard->bytes);

    assert(shard->unassigned == NULL);
    if (bytes == 0)
        return true;
    shard->unassigned = sized_pool_take(&store->bytes, bytes);
    if (shard->unassigned == NULL)
        return false;
    shard->unassigned_count = elements;
    shard->variable->unassigned_shards++;
    store->state_bytes += bytes;
    return true;
}

/* `count` bits of a word, from `first` on. */
static uint64_t mask_of(uint64_t first, uint64_t count)
{
    assert(first + count <= 64);
    return (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
}

void store_assignable_fill(struct shard *shard, uint64_t offset, uint64_t bytes)
{
    const uint64_t element_bytes = sumac_dtype_bytes(shard->variable->definition.dtype);
    const uint64_t beyond = (offset + bytes) / element_bytes;

    assert(!shard->variable->filled);
    if (shard->unassigned == NULL)
        return;
    for (uint64_t i = offset / element_bytes; i < beyond;) {
        const uint64_t first = i % 64, left = beyond - i;
        const uint64_t count = left < 64 - first ? left : 64 - first;
        uint64_t *word = &shard->unassigned[i / 64];
        *word = (first == 0 ? 0 : *word) | mask_of(first, count);
        i += count;
    }
}

void store_assigned_drop(struct store *store, struct shard *shard)
{
    const uint64_t bytes = store_assignable_bytes(shard->variable, shard->bytes);

    if (shard->unassigned == NULL)
        return;
    sized_pool_give(&store->bytes, shard->unassigned, bytes);
    shard->unassigned = NULL;
    assert(shard->variable->unassigned_shards > 0);
    assert(store->state_bytes >= bytes);
    shard->variable->unassigned_shards--;
    store->state_bytes -= bytes;
}

void store_assigned(struct store *store, struct shard *shard, uint64_t offset, uint64_t bytes)
{
    const uint64_t element_bytes = sumac_dtype_bytes(shard->variable->definition.dtype);
    const uint64_t beyond = (offset + bytes) / element_bytes;

    assert(offset + bytes <= shard->bytes);
    if (shard->unassigned == NULL)
        return;
    for (uint64_t i = offset / element_bytes; i < beyond;) {
        const uint64_t first = i % 64, left = beyond - i;
        const uint64_t count = left < 64 - first ? left : 64 - first;
        const uint64_t mask = mask_of(first, count);
        uint64_t *word = &shard->unassigned[i / 64];
        shard->unassigned_count -= (uint64_t)__builtin_popcountll(*word & mask);
        *word &= ~mask;
        i += count;
    }
    assert(shard->unassigned_count <= shard->bytes / element_bytes);
    if (shard->unassigned_count == 0)
        store_assigned_drop(store, shard);
}
