/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c -- blocks that are overwritten in place, unless a reader still needs what they hold. */
#include "store.h"

#include <assert.h>

/* A sweep looks at so many pairs of an old block and a view at most, and then at one more block; or
 * frees so much. It counts as freeing that. */
#define SWEEP_LOOKS_MAX 256u
#define SWEEP_BYTES 8192u

typedef void *taker(struct sized_pool *pool, size_t bytes);

/* Where the present block of a place is entered. */
static struct block **place_of(const struct block *block)
{
    assert(block->list < block->shard->list_count);
    assert(block->index < block->shard->block_count);
    return &block->shard->list[block->list][block->index];
}

static struct block *
make(struct store *store, struct shard *shard, uint32_t list, uint32_t index, taker *take_bytes)
{
    const uint32_t widens = list == STORE_VALUE ? 1 : shard->variable->slot_widens;
    const uint32_t block_bytes = shard->variable->block_bytes;
    const uint64_t offset = (uint64_t)index * block_bytes;
    const uint64_t left = shard->bytes - offset;
    const uint32_t bytes = (left < block_bytes ? (uint32_t)left : block_bytes) * widens;
    struct block *block = take_bytes(&store->bytes, sizeof *block);

    assert(offset < shard->bytes);
    if (block == NULL)
        return NULL;
    uint8_t *data = take_bytes(&store->bytes, bytes);
    if (data == NULL) {
        sized_pool_give(&store->bytes, block, sizeof *block);
        return NULL;
    }
    *block =
        (struct block){.shard = shard, .data = data, .list = list, .index = index, .bytes = bytes};
    return block;
}

struct block *
store_block_make(struct store *store, struct shard *shard, uint32_t list, uint32_t index)
{
    struct block *block = make(store, shard, list, index, sized_pool_take);

    if (block == NULL)
        return NULL;
    assert(*place_of(block) == NULL);
    block->born = store->position;
    *place_of(block) = block;
    return block;
}

static void give_back(struct store *store, struct block *block)
{
    assert(block->lent == 0);
    assert(block->data != NULL);
    sized_pool_give(&store->bytes, block->data, block->bytes);
    sized_pool_give(&store->bytes, block, sizeof *block);
}

uint64_t store_view_bytes_max(const struct store *store)
{
    return store->view_bytes_max == 0 ? store->state_bytes + store->own_bytes
                                      : store->view_bytes_max;
}

/* Of an old block, whose own struct is many times as much as its bytes where shards are tiny. */
static uint64_t taken_by(const struct block *block)
{
    return sized_pool_bytes(block->bytes) + sized_pool_bytes(sizeof *block);
}

/* The maps of ids, and what ps 0's judge keeps. */
static uint64_t bytes_beside_pool(const struct store *store)
{
    return id_map_bytes(&store->shards) + id_map_bytes(&store->by_id) +
           id_map_bytes(&store->names.hashes) + store->judge_bytes;
}

/* Old blocks and the spare ones that come of them share one bound. What new variables find beside
 * them is the state's. */
void store_share_bound(struct store *store)
{
    const uint64_t max = store_view_bytes_max(store);
    struct sized_pool *pool = &store->bytes;

    pool->spare_bytes_max = max > store->view_bytes ? max - store->view_bytes : 0;
    if (store->state_bytes_max == 0)
        return;
    const uint64_t beside = bytes_beside_pool(store);
    const uint64_t left = store->state_bytes_max > beside ? store->state_bytes_max - beside : 0;
    pool->held_bytes_max =
        left + SIZED_POOL_EMPTY_BYTES_MAX + store->view_bytes + store->leaving_bytes;
    pool->reserve_bytes = pool->spare_bytes_max;
}

void store_bound_state(struct store *store, uint64_t state_bytes_max)
{
    const uint64_t most = UINT64_MAX / 4; /* sums of it don't wrap around */

    store->state_bytes_max = state_bytes_max < most ? state_bytes_max : most;
    store_share_bound(store);
}

uint64_t store_state_bytes(const struct store *store)
{
    const struct sized_pool *pool = &store->bytes;
    const uint64_t used = store->state_bytes + store->own_bytes;
    const uint64_t other =
        pool->spare_bytes + store->view_bytes + store->leaving_bytes + SIZED_POOL_EMPTY_BYTES_MAX;
    const uint64_t beside = bytes_beside_pool(store);
    const uint64_t held = beside + (pool->held_bytes > other ? pool->held_bytes - other : 0);

    return held > used ? held : used;
}

static void unlink_old(struct store *store, struct block *block)
{
    assert(store->view_bytes >= taken_by(block));
    assert(block->died != 0);
    if (store->unswept == block)
        store->unswept = block->among_old.prev;
    LIST_REMOVE(&store->old_blocks, block, among_old);
    store->view_bytes -= taken_by(block);
    store_share_bound(store);
}

static void link_old(struct store *store, struct block *block)
{
    assert(block->died != 0);
    LIST_PREPEND(&store->old_blocks, block, among_old);
    store->view_bytes += taken_by(block);
    store_share_bound(store);
}

/* Take an old block out of its place's chain. */
static void unchain(const struct block *block)
{
    if (block->shard == NULL)
        return;
    struct block *newer = *place_of(block);
    while (newer != NULL && newer->older != block)
        newer = newer->older;
    if (newer != NULL)
        newer->older = block->older;
}

static bool covers(const struct view *view, uint32_t list)
{
    return list == STORE_VALUE || view->scope == VIEW_OF_SLOTS_TOO;
}

static bool seen(const struct store *store, const struct block *block)
{
    for (const struct view *view = store->views.first; view != NULL; view = view->in_store.next) {
        if (view->position >= block->born && view->position < block->died &&
            covers(view, block->list))
            return true;
    }
    return false;
}

uint64_t store_sweep(struct store *store)
{
    const uint32_t blocks_max = SWEEP_LOOKS_MAX / (1 + store->view_count);
    uint64_t bytes = 0;

    assert(store->unswept != NULL);
    for (uint32_t i = 0; store->unswept != NULL && i <= blocks_max && bytes < SWEEP_BYTES; i++) {
        struct block *block = store->unswept;
        if (block->lent > 0 || seen(store, block)) {
            store->unswept = block->among_old.prev;
            continue;
        }
        bytes += block->bytes;
        unlink_old(store, block);
        unchain(block);
        give_back(store, block);
    }
    if (store->unswept == NULL && store->sweep_again) {
        store->sweep_again = false;
        store->unswept = store->old_blocks.last;
    }
    return bytes > SWEEP_BYTES ? bytes : SWEEP_BYTES;
}

static void unlink_view(struct store *store, struct view *view)
{
    assert(!view->ended);
    assert(store->view_count > 0);
    LIST_REMOVE(&store->views, view, in_store);
    store->view_count--;
}

/* What readers do not need any more is freed, some of it; where there is nothing of that, the
 * oldest view is given up. */
static void make_room(struct store *store)
{
    struct view *view = store->views.first;

    if (store->unswept != NULL) {
        (void)store_sweep(store);
        return;
    }
    assert(view != NULL);
    store_view_close(store, view);
}

void store_view_open(struct store *store, struct view *view, enum view_scope scope)
{
    assert(store->views.last == NULL || store->views.last->position <= store->position);
    *view = (struct view){.position = store->position, .scope = scope};
    LIST_APPEND(&store->views, view, in_store);
    store->view_count++;
}

void store_view_cover(const struct view *view, struct shard *shard)
{
    assert(shard->views < shard->users);
    shard->views++;
    shard->slot_views += view->scope == VIEW_OF_SLOTS_TOO;
}

void store_view_uncover(const struct view *view, struct shard *shard)
{
    assert(shard->views > 0);
    shard->views--;
    shard->slot_views -= view->scope == VIEW_OF_SLOTS_TOO;
    assert(shard->slot_views <= shard->views);
}

void store_view_close(struct store *store, struct view *view)
{
    if (view->ended)
        return;
    unlink_view(store, view);
    view->ended = true;
    if (store->unswept == NULL)
        store->unswept = store->old_blocks.last;
    else
        store->sweep_again = true;
}

/* The newest view that reads this list, or NULL. A view of values alone reads no slot's. */
static const struct view *newest_view(const struct store *store, uint32_t list)
{
    const struct view *view = store->views.last;

    while (view != NULL && !covers(view, list))
        view = view->in_store.prev;
    return view;
}

/* Does a reader need what this present block holds? */
static bool needed(const struct store *store, const struct block *block)
{
    const struct shard *shard = block->shard;

    if (block->lent > 0)
        return true;
    if ((block->list == STORE_VALUE ? shard->views : shard->slot_views) == 0)
        return false;
    const struct view *newest = newest_view(store, block->list);
    return newest != NULL && newest->position >= block->born;
}

/* What it takes is of the views' bound, not of the state's. */
static struct block *take_for_write(struct store *store, const struct block *beside)
{
    return make(store, beside->shard, beside->list, beside->index, sized_pool_take_reserved);
}

/* A block beside one that readers need. Where there is no memory for it, views are given up, the
 * oldest first. */
static struct block *take_beside(struct store *store, const struct block *block)
{
    struct block *fresh = take_for_write(store, block);

    assert(needed(store, block));
    if (fresh == NULL) {
        sized_pool_trim(&store->bytes);
        fresh = take_for_write(store, block);
    }
    while (fresh == NULL && store->views.first != NULL && needed(store, block)) {
        make_room(store);
        if (needed(store, block))
            fresh = take_for_write(store, block);
    }
    return fresh;
}

struct block *store_block_write(struct store *store, struct block *block, uint64_t position)
{
    assert(block->died == 0);
    assert(*place_of(block) == block);
    assert(position >= block->born);
    if (block->born == position && block->lent == 0)
        return block; /* of this operation: a view as late as that is of other shards */
    while (store->views.first != NULL && needed(store, block) &&
           store->view_bytes + taken_by(block) > store_view_bytes_max(store))
        make_room(store);
    if (!needed(store, block))
        return block;
    struct block *fresh = take_beside(store, block);
    if (fresh == NULL)
        return needed(store, block) ? NULL : block;
    fresh->born = position;
    fresh->older = block;
    block->died = position;
    link_old(store, block);
    *place_of(fresh) = fresh;
    return fresh;
}

struct block *
store_block_at(const struct shard *shard, uint32_t list, uint32_t index, uint64_t position)
{
    struct block *block = shard->list[list][index];

    assert(list < shard->list_count);
    assert(index < shard->block_count);
    while (block->born > position) {
        block = block->older;
        assert(block != NULL);
    }
    return block;
}

void store_block_released(struct store *store, struct block *block)
{
    assert(block->lent > 0);
    block->lent--;
    if (block->lent > 0 || block->died == 0 || seen(store, block))
        return;
    unlink_old(store, block);
    unchain(block);
    give_back(store, block);
}

void store_block_drop(struct store *store, struct block *block)
{
    assert(block->died == 0);
    if (block->lent == 0) {
        give_back(store, block);
        return;
    }
    block->shard = NULL; /* its shard goes; the reader's spans keep the bytes */
    block->died = block->born + 1;
    link_old(store, block);
}
