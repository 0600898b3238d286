/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c -- blocks that are overwritten in place, unless a reader still needs what they hold. */
#include "store.h"

#include <assert.h>
#include <string.h>

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

uint64_t store_view_bytes_max(const struct store *store)
{
    return store->view_bytes_max == 0 ? store->state_bytes + store->own_bytes
                                      : store->view_bytes_max;
}

/* Of an old block, whose own struct is many times as much as its bytes where shards are tiny. Those
 * of an old row lie behind its struct. */
static uint64_t taken_by_row(uint32_t bytes)
{
    return sized_pool_bytes(sizeof(struct block) + bytes);
}

static uint64_t taken_by(const struct block *block)
{
    return block->of != NULL ? taken_by_row(block->bytes)
                             : sized_pool_bytes(block->bytes) + sized_pool_bytes(sizeof *block);
}

static size_t kept_bytes(const struct block *block)
{
    return (block->bytes / block->row_bytes + 1) * sizeof(struct block *);
}

/* The maps of ids, and what ps 0's controller keeps. */
static uint64_t bytes_beside_pool(const struct store *store)
{
    return id_map_bytes(&store->shards) + id_map_bytes(&store->by_id) +
           id_map_bytes(&store->names.hashes) + store->controller_bytes;
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

/* ---- rows ---- */

/* The newest old one of the row that begins there, or NULL. */
static struct block *newest_row(const struct block *block, uint32_t within)
{
    assert(within < block->bytes);
    return block->kept == NULL ? NULL : block->kept[within / block->row_bytes];
}

/* Take an old row out of its chain, which may be the last of its block. */
static void unchain_row(struct store *store, const struct block *row)
{
    struct block *const of = row->of, **place = &of->kept[row->within / of->row_bytes];

    assert(of->kept_rows > 0 && store->old_row_count > 0);
    while (*place != row)
        place = &(*place)->older;
    *place = row->older;
    store->old_row_count--;
    if (--of->kept_rows > 0)
        return;
    const size_t bytes = kept_bytes(of);
    store->view_bytes -= sized_pool_bytes(bytes);
    store_share_bound(store);
    sized_pool_give(&store->bytes, of->kept, bytes);
    of->kept = NULL;
}

/* The block goes, and nobody sees it; some of its rows may not have been swept yet. */
static void drop_rows(struct store *store, struct block *block)
{
    assert(block->row_bytes > 0);
    for (uint32_t within = 0; block->kept_rows > 0; within += block->row_bytes) {
        for (struct block *row; (row = newest_row(block, within)) != NULL;) {
            unlink_old(store, row);
            unchain_row(store, row);
            sized_pool_give(&store->bytes, row, sizeof *row + row->bytes);
        }
    }
}

static void give_back(struct store *store, struct block *block)
{
    assert(block->lent == 0);
    assert(block->data != NULL);
    if (block->kept_rows > 0)
        drop_rows(store, block);
    if (block->of != NULL) {
        sized_pool_give(&store->bytes, block, sizeof *block + block->bytes);
        return;
    }
    sized_pool_give(&store->bytes, block->data, block->bytes);
    sized_pool_give(&store->bytes, block, sizeof *block);
}

/* Take an old block out of its place's chain. */
static void unchain(struct store *store, const struct block *block)
{
    if (block->of != NULL) {
        unchain_row(store, block);
        return;
    }
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
    LIST_FOREACH(const struct view, view, &store->views, in_store) {
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
        unchain(store, block);
        give_back(store, block);
    }
    if (store->unswept == NULL && store->sweep_again) {
        store->sweep_again = false;
        store->unswept = store->old_blocks.last;
    }
    return bytes > SWEEP_BYTES ? bytes : SWEEP_BYTES;
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
    assert(store->view_count > 0);
    LIST_REMOVE(&store->views, view, in_store);
    store->view_count--;
    view->ended = true;
    if (store->unswept == NULL)
        store->unswept = store->old_blocks.last;
    else
        store->sweep_again = true;
}

/* Does a view need what has been there since the operation at position `born`? A view of values
 * alone reads no slot's. */
static bool is_viewed(const struct store *store, const struct block *block, uint64_t born)
{
    const struct shard *shard = block->shard;
    const struct view *newest = store->views.last;

    if ((block->list == STORE_VALUE ? shard->views : shard->slot_views) == 0)
        return false;
    while (newest != NULL && !covers(newest, block->list))
        newest = newest->in_store.prev;
    return newest != NULL && newest->position >= born;
}

/* Does a reader need what this present block holds? */
static bool needed(const struct store *store, const struct block *block)
{
    return block->lent > 0 || is_viewed(store, block, block->born);
}

/* What it takes is of the views' bound, not of the state's. */
static struct block *take_for_write(struct store *store, const struct block *beside)
{
    return make(store, beside->shard, beside->list, beside->index, sized_pool_take_reserved);
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
    struct block *fresh = take_for_write(store, block);
    if (fresh == NULL) {
        sized_pool_trim(&store->bytes);
        fresh = take_for_write(store, block);
    }
    /* where there is no memory for it, views are given up, the oldest first */
    while (fresh == NULL && store->views.first != NULL && needed(store, block)) {
        make_room(store);
        if (needed(store, block))
            fresh = take_for_write(store, block);
    }
    if (fresh == NULL)
        return needed(store, block) ? NULL : block;
    fresh->born = position;
    fresh->older = block;
    block->died = position;
    link_old(store, block);
    *place_of(fresh) = fresh;
    return fresh;
}

bool store_block_keeps_rows(
    const struct store *store, const struct block *block, uint32_t row_bytes, uint64_t position)
{
    assert(block->died == 0);
    return block->lent == 0 && row_bytes >= store->kept_row_bytes_min && block->born < position &&
           is_viewed(store, block, block->born);
}

/* Since when has the row had the bytes that it has? */
static uint64_t row_born(const struct block *block, uint32_t within)
{
    const struct block *const newest = newest_row(block, within);

    assert(newest == NULL || newest->died > newest->born);
    return newest == NULL ? block->born : newest->died;
}

/* Does a view need what the row has had since before the operation at `position`? */
static bool is_row_viewed(
    const struct store *store, const struct block *block, uint32_t within, uint64_t position)
{
    const uint64_t born = row_born(block, within);

    return born < position && is_viewed(store, block, born);
}

/* The bytes that a row has are old ones from `position` on. False: no memory. */
static bool keep_row(struct store *store, struct block *block, uint32_t within, uint64_t position)
{
    const uint32_t bytes = block->row_bytes;
    struct block *row = sized_pool_take_reserved(&store->bytes, sizeof *row + bytes);

    if (row == NULL)
        return false;
    if (block->kept == NULL) { /* room for the newest of each row */
        assert(block->kept_rows == 0);
        block->kept = sized_pool_take_reserved(&store->bytes, kept_bytes(block));
        if (block->kept == NULL) {
            sized_pool_give(&store->bytes, row, sizeof *row + bytes);
            return false;
        }
        memset(block->kept, 0, kept_bytes(block));
        store->view_bytes += sized_pool_bytes(kept_bytes(block));
        store_share_bound(store);
    }
    *row = (struct block){
        .data = (uint8_t *)(row + 1),
        .bytes = bytes,
        .list = block->list,
        .born = row_born(block, within),
        .older = newest_row(block, within),
        .died = position,
        .of = block,
        .within = within};
    memcpy(row->data, block->data + within, bytes);
    block->kept[within / bytes] = row;
    block->kept_rows++;
    store->old_row_count++;
    link_old(store, row);
    return true;
}

/* What one more old row takes. */
static uint64_t wanted_by_row(const struct block *block)
{
    return taken_by_row(block->row_bytes) +
           (block->kept == NULL ? sized_pool_bytes(kept_bytes(block)) : 0);
}

bool store_row_keep(
    struct store *store, struct block *block, uint32_t within, uint32_t row_bytes,
    uint64_t position)
{
    bool kept = false;

    assert(block->died == 0 && block->lent == 0);
    assert(within % row_bytes == 0);
    assert(block->kept_rows == 0 || block->row_bytes == row_bytes);
    block->row_bytes = row_bytes;
    while (is_row_viewed(store, block, within, position) &&
           store->view_bytes + wanted_by_row(block) > store_view_bytes_max(store))
        make_room(store);
    if (!is_row_viewed(store, block, within, position))
        return false;
    kept = keep_row(store, block, within, position);
    if (!kept)
        sized_pool_trim(&store->bytes);
    while (!kept && is_row_viewed(store, block, within, position)) {
        kept = keep_row(store, block, within, position);
        if (!kept)
            make_room(store); /* a view is there, so this ends */
    }
    return kept;
}

/* The bytes of one row, or some of them. */
static const uint8_t *row_at(const struct block *block, uint32_t row, uint64_t position)
{
    const struct block *kept = newest_row(block, row);

    while (kept != NULL && kept->born > position)
        kept = kept->older;
    return kept != NULL && position < kept->died ? kept->data : block->data + row;
}

void store_block_read(
    const struct block *block, uint32_t within, size_t bytes, uint64_t position, uint8_t *out)
{
    assert(within + bytes <= block->bytes);
    if (block->kept_rows == 0) {
        memcpy(out, block->data + within, bytes);
        return;
    }
    while (bytes > 0) { /* what is being written now is not read */
        const uint32_t in_row = within % block->row_bytes;
        const size_t left = block->row_bytes - in_row, run = left < bytes ? left : bytes;
        memcpy(out, row_at(block, within - in_row, position) + in_row, run);
        out += run;
        within += (uint32_t)run;
        bytes -= run;
    }
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
    unchain(store, block);
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
