/* SPDX-License-Identifier: Apache-2.0 */
/* leaving.c -- what was deleted is given back a block at a time.
 *
 * To give a block of 1 MiB back to the system takes a tenth of a millisecond, and a variable may
 * have millions of them. So what is deleted, and used by nobody, counts no more at once, and its
 * blocks go with the steps that follow, from the last one made to the first. What they hold until
 * then is beside the bound of the state, and new variables wait for it before they are filled: so
 * no more is held than was before.
 */
#include "store.h"

#include <assert.h>
#include <string.h>

/* It is in nobody's use: of all that is known of it, its memory alone is left. */
static void leave_variable(struct store *store, struct variable *variable)
{
    assert(variable->here_count == 0);
    assert(store->own_bytes >= variable->own_bytes);
    assert(store->deleted_count >= variable->deleted);
    assert(variable->promised_bytes == 0);
    store->own_bytes -= variable->own_bytes;
    store->leaving_bytes += variable->own_bytes;
    store->controller_bytes -= variable->controller_bytes;
    store->deleted_count -= variable->deleted;
}

static void free_variable(struct store *store, struct variable *variable)
{
    assert(variable->here_count == 0);
    assert(variable->leaving_count == 0);
    assert(store->leaving_bytes >= variable->own_bytes);
    store->leaving_bytes -= variable->own_bytes;
    sized_pool_give(
        &store->bytes, variable->shards, variable->held_count * sizeof *variable->shards);
    sized_pool_give(
        &store->bytes, variable->placements,
        variable->placement_count * sizeof *variable->placements);
    if (variable->name != NULL)
        sized_pool_give(&store->bytes, variable->name, strlen(variable->name) + 1);
    sized_pool_give(&store->bytes, variable, sizeof *variable);
}

void store_leave_shard(struct store *store, struct shard *shard)
{
    struct variable *variable = shard->variable;

    assert(shard->users == 0 && shard->views == 0);
    assert(variable->placements[shard->placement].here == shard);
    assert(store->state_bytes >= store_lists_bytes(variable, shard->bytes));
    assert(store->shard_count > 0);
    store_assigned_over(store, shard);
    store->state_bytes -= store_lists_bytes(variable, shard->bytes);
    store->leaving_bytes += shard->fill_bytes + shard->unassigned_bytes;
    store->shard_count--;
    variable->placements[shard->placement].here = NULL;
    LIST_APPEND(&store->leaving, shard, among_leaving);
    variable->leaving_count++;
    if (--variable->here_count == 0)
        leave_variable(store, variable);
    store_share_bound(store);
}

void store_leave(struct store *store, struct variable *variable)
{
    assert(store->state_bytes >= variable->promised_bytes);
    store->state_bytes -= variable->promised_bytes;
    variable->promised_bytes = 0;
    if (variable->here_count == 0) {
        leave_variable(store, variable);
        free_variable(store, variable);
        store_share_bound(store);
        return;
    }
    for (uint32_t i = 0, left = variable->here_count; left > 0; i++) {
        struct shard *here = variable->placements[i].here;
        left -= here != NULL;
        if (here != NULL && here->users == 0)
            store_leave_shard(store, here);
    }
}

static void free_shard(struct store *store, struct shard *shard)
{
    struct variable *variable = shard->variable;

    assert(shard->fill_bytes == 0);
    assert(variable->leaving_count > 0);
    store->leaving_bytes -= store_assignable_give_array(store, shard);
    for (uint32_t i = 0; i < shard->list_count; i++)
        sized_pool_give(&store->bytes, shard->list[i], shard->block_count * sizeof *shard->list[i]);
    LIST_REMOVE(&store->leaving, shard, among_leaving);
    if (--variable->leaving_count == 0 && variable->here_count == 0)
        free_variable(store, variable);
}

/* The block that was made last, with what is kept of it. The old ones behind it go when their
 * readers let go. */
static uint64_t free_block(struct store *store, struct shard *shard)
{
    const struct list_byte last = store_list_byte(shard, shard->fill_bytes - 1);
    uint64_t bytes = shard->fill_bytes - last.before_block;

    assert(last.list < shard->list_count && last.index < shard->block_count);
    if (last.list == STORE_VALUE)
        bytes += store_assignable_give(store, shard, last.index);
    assert(store->leaving_bytes >= bytes);
    struct block **place = &shard->list[last.list][last.index];
    for (struct block *block = *place, *older; block != NULL; block = older) {
        assert(block->shard == shard);
        older = block->older;
        block->older = NULL;
        if (block->died == 0)
            store_block_drop(store, block);
        else
            block->shard = NULL;
    }
    *place = NULL;
    shard->fill_bytes = last.before_block;
    store->leaving_bytes -= bytes;
    return bytes;
}

uint64_t store_reclaim(struct store *store)
{
    struct shard *shard = store->leaving.first;
    uint64_t bytes = 0;

    assert(store_is_leaving(store));
    if (store->bytes.spare_bytes > store->bytes.spare_bytes_max)
        return sized_pool_shrink(&store->bytes);
    if (store->unswept != NULL)
        return store_sweep(store);
    if (shard->fill_bytes > 0)
        bytes = free_block(store, shard);
    if (shard->fill_bytes == 0)
        free_shard(store, shard);
    store_share_bound(store);
    return bytes;
}
