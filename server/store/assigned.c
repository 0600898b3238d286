/* SPDX-License-Identifier: Apache-2.0 */
/* assigned.c -- which elements of a shard its creator has yet to assign: one bit each, until there
 * are none.
 *
 * The value of an assigned variable may come in any number of pushes and in any order; it is there
 * when every element is. The bits are kept block by block: those of a block are there from when it
 * is filled until all of it is assigned, so none of it takes longer for a larger shard.
 */
#include "store.h"

#include <assert.h>
#include <string.h>

static uint64_t words_of(uint64_t elements) { return (elements + 63) / 64; }

/* `count` bits of a word, from `first` on. */
static uint64_t mask_of(uint64_t first, uint64_t count)
{
    assert(first + count <= 64);
    return (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
}

/* Of a block of so many bytes. */
static uint64_t bits_bytes(const struct variable *variable, uint64_t block_bytes)
{
    const uint64_t elements = block_bytes / sumac_dtype_bytes(variable->definition.dtype);

    return sizeof(struct unassigned) + words_of(elements) * sizeof(uint64_t);
}

uint64_t store_assignable_bytes(const struct variable *variable, uint64_t shard_bytes)
{
    const uint64_t whole = shard_bytes / variable->block_bytes;
    const uint64_t rest = shard_bytes % variable->block_bytes;

    assert(sumac_dtype_bytes(variable->definition.dtype) > 0);
    if (!definition_is_assigned(&variable->definition))
        return 0;
    return store_blocks_of(variable, shard_bytes) * sizeof(struct unassigned *) +
           whole * bits_bytes(variable, variable->block_bytes) +
           (rest > 0 ? bits_bytes(variable, rest) : 0);
}

static uint64_t bytes_of_block(const struct shard *shard, uint32_t index)
{
    const uint64_t before = (uint64_t)index * shard->variable->block_bytes;

    assert(index < shard->block_count);
    const uint64_t left = shard->bytes - before;
    return left < shard->variable->block_bytes ? left : shard->variable->block_bytes;
}

bool store_assignable(struct store *store, struct shard *shard)
{
    const uint64_t bytes = store_assignable_bytes(shard->variable, shard->bytes);

    assert(shard->unassigned == NULL);
    if (bytes == 0)
        return true;
    const uint64_t array_bytes = shard->block_count * sizeof *shard->unassigned;
    shard->unassigned = sized_pool_take_zeroed(&store->bytes, array_bytes);
    if (shard->unassigned == NULL)
        return false;
    shard->unassigned_bytes = array_bytes;
    shard->unassigned_count = shard->bytes / sumac_dtype_bytes(shard->variable->definition.dtype);
    shard->variable->unassigned_shards++;
    store->state_bytes += bytes;
    return true;
}

bool store_assignable_block(struct store *store, struct shard *shard, uint32_t index)
{
    if (shard->unassigned == NULL)
        return true;
    assert(shard->unassigned[index] == NULL);
    const uint64_t block_bytes = bytes_of_block(shard, index);
    const uint64_t bytes = bits_bytes(shard->variable, block_bytes);
    struct unassigned *of_block = sized_pool_take(&store->bytes, bytes);
    if (of_block == NULL)
        return false;
    of_block->count = block_bytes / sumac_dtype_bytes(shard->variable->definition.dtype);
    const uint64_t words = words_of(of_block->count), rest = of_block->count % 64;
    memset(of_block->bits, 0xff, words * sizeof(uint64_t));
    if (rest > 0)
        of_block->bits[words - 1] = mask_of(0, rest);
    shard->unassigned[index] = of_block;
    shard->unassigned_bytes += bytes;
    return true;
}

uint64_t store_assignable_give(struct store *store, struct shard *shard, uint32_t index)
{
    if (shard->unassigned == NULL || shard->unassigned[index] == NULL)
        return 0;
    const uint64_t bytes = bits_bytes(shard->variable, bytes_of_block(shard, index));
    assert(shard->unassigned_bytes >= bytes);
    sized_pool_give(&store->bytes, shard->unassigned[index], bytes);
    shard->unassigned[index] = NULL;
    shard->unassigned_bytes -= bytes;
    return bytes;
}

uint64_t store_assignable_give_array(struct store *store, struct shard *shard)
{
    const uint64_t bytes = shard->unassigned_bytes;

    if (shard->unassigned == NULL)
        return 0;
    assert(bytes == shard->block_count * sizeof *shard->unassigned);
    sized_pool_give(&store->bytes, shard->unassigned, bytes);
    shard->unassigned = NULL;
    shard->unassigned_bytes = 0;
    return bytes;
}

void store_assigned_over(struct store *store, struct shard *shard)
{
    const uint64_t bytes = store_assignable_bytes(shard->variable, shard->bytes);

    if (shard->unassigned == NULL)
        return;
    assert(shard->variable->unassigned_shards > 0);
    assert(store->state_bytes >= bytes);
    shard->variable->unassigned_shards--;
    store->state_bytes -= bytes;
}

/* Elements `i` to `beyond` of a block are assigned. Returns how many of them were not before. */
static uint64_t clear(struct unassigned *of_block, uint64_t i, uint64_t beyond)
{
    const uint64_t before = of_block->count;

    while (i < beyond) {
        const uint64_t first = i % 64, left = beyond - i;
        const uint64_t count = left < 64 - first ? left : 64 - first;
        const uint64_t mask = mask_of(first, count);
        uint64_t *word = &of_block->bits[i / 64];
        of_block->count -= (uint64_t)__builtin_popcountll(*word & mask);
        *word &= ~mask;
        i += count;
    }
    return before - of_block->count;
}

void store_assigned(struct store *store, struct shard *shard, uint64_t offset, uint64_t bytes)
{
    const uint64_t element_bytes = sumac_dtype_bytes(shard->variable->definition.dtype);

    assert(offset + bytes <= shard->bytes);
    for (uint64_t end = offset + bytes; shard->unassigned != NULL && offset < end;) {
        const struct block_byte at = store_block_byte(shard, STORE_VALUE, offset);
        const uint64_t left = end - offset, here = shard->variable->block_bytes - at.within;
        const uint64_t some = left < here ? left : here;
        struct unassigned *of_block = shard->unassigned[at.index];
        offset += some;
        if (of_block == NULL)
            continue;
        shard->unassigned_count -=
            clear(of_block, at.within / element_bytes, (at.within + some) / element_bytes);
        if (of_block->count == 0)
            (void)store_assignable_give(store, shard, at.index);
    }
    assert(shard->unassigned_count <= shard->bytes / element_bytes);
    if (shard->unassigned_count > 0)
        return;
    store_assigned_over(store, shard);
    (void)store_assignable_give_array(store, shard);
    store_share_bound(store);
}
