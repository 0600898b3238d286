/* SPDX-License-Identifier: Apache-2.0 */
/* store_check.c -- is all that a store keeps consistent? */
#include "store_check.h"

#include <inttypes.h>
#include <string.h>

uint64_t store_mix(const struct shard *shard)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)shard >> 4) * 0x9e3779b97f4a7c15u;

    return mixed ^ mixed >> 29;
}

/* What is kept of a block's old rows. */
static void sum_kept(const struct block *block, struct store_sums *sums)
{
    sums->kept_rows += block->kept_rows;
    if (block->kept != NULL)
        sums->kept_bytes +=
            sized_pool_bytes((block->bytes / block->row_bytes + 1) * sizeof *block->kept);
}

/* A present block, and the old ones behind it, each replaced no later than the one before it was
 * made. */
static void check_place(
    const struct shard *shard, const struct block *block, struct store_sums *sums,
    struct check *check)
{
    const char *name = shard->variable->name;

    sum_kept(block, sums);
    if (block->died != 0)
        check_object(check, "variable %s: its present block %u has died", name, block->index);
    for (const struct block *old = block->older, *newer = block; old != NULL; old = old->older) {
        sums->chained++;
        if (old->shard != shard || old->list != block->list || old->index != block->index)
            check_object(
                check, "variable %s: the block before block %u is another place's", name,
                block->index);
        if (old->born >= old->died || old->died > newer->born) {
            check_object(
                check,
                "variable %s: block %u lived from position %" PRIu64 " to %" PRIu64 ", its "
                "successor was made at %" PRIu64,
                name, block->index, old->born, old->died, newer->born);
            return; /* and not round in a circle */
        }
        newer = old;
    }
}

static void
check_list(const struct shard *shard, uint32_t list, struct store_sums *sums, struct check *check)
{
    const struct variable *variable = shard->variable;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < shard->block_count; i++) {
        const struct block *block = shard->list[list][i];
        if (block == NULL && variable->filled)
            check_object(check, "variable %s is filled and has no block %u", variable->name, i);
        if (block == NULL)
            return;
        if (block->shard != shard || block->list != list || block->index != i)
            check_object(check, "variable %s: block %u is another place's", variable->name, i);
        if (block->bytes >
            variable->block_bytes * (list == STORE_VALUE ? 1 : variable->slot_widens))
            check_object(
                check, "variable %s: block %u has %u bytes", variable->name, i, block->bytes);
        check_place(shard, block, sums, check);
        bytes += block->bytes;
        sums->lent += block->lent;
    }
    check_same(check, store_list_bytes(shard, list), bytes, "bytes in blocks", variable->name);
}

/* What is kept of blocks that are not assigned yet. */
static void check_unassigned(const struct shard *shard, struct check *check)
{
    const struct variable *variable = shard->variable;
    uint64_t count = 0;

    for (uint32_t i = 0; i < shard->block_count; i++) {
        const struct unassigned *of_block = shard->unassigned[i];
        const uint64_t elements =
            shard->list[STORE_VALUE][i]->bytes / sumac_dtype_bytes(variable->definition.dtype);
        uint64_t ones = 0;
        for (uint64_t word = 0; of_block != NULL && word < (elements + 63) / 64; word++)
            ones += (uint64_t)__builtin_popcountll(of_block->bits[word]);
        if (of_block != NULL && (of_block->count != ones || ones == 0))
            check_object(
                check,
                "variable %s: block %u has %" PRIu64 " elements to be assigned, not %" PRIu64,
                variable->name, i, ones, of_block->count);
        count += ones;
    }
    check_same(check, shard->unassigned_count, count, "elements to be assigned", variable->name);
}

bool store_check_same_unassigned(const struct shard *a, const struct shard *b)
{
    if (a->unassigned == NULL || b->unassigned == NULL)
        return a->unassigned == b->unassigned;
    for (uint32_t i = 0; i < a->block_count; i++) {
        const struct unassigned *one = a->unassigned[i], *other = b->unassigned[i];
        const uint64_t elements =
            a->list[STORE_VALUE][i]->bytes / sumac_dtype_bytes(a->variable->definition.dtype);
        if ((one == NULL) != (other == NULL))
            return false;
        if (one != NULL && memcmp(one->bits, other->bits, (elements + 63) / 64 * 8) != 0)
            return false;
    }
    return true;
}

static void check_shard(
    const struct store *store, const struct shard *shard, struct store_sums *sums,
    struct check *check)
{
    const struct variable *variable = shard->variable;
    const uint32_t slots =
        update_slot_count(variable->definition.function, &variable->definition.hyperparameters);

    sums->shards++;
    sums->state_bytes += store_lists_bytes(variable, shard->bytes);
    sums->users_mix += store_mix(shard) * shard->users;
    sums->views_mix += store_mix(shard) * shard->views;
    if (shard->slot_views > shard->views || shard->views > shard->users)
        check_object(
            check, "variable %s: %u users, %u views of them, and %u of these of slots",
            variable->name, shard->users, shard->views, shard->slot_views);
    if ((store_shard(store, shard->id) == shard) == variable->deleted)
        check_object(
            check, "variable %s: shard %" PRIu64 " is %s by its number", variable->name, shard->id,
            variable->deleted ? "deleted and found" : "not found");
    check_same(check, shard->list_count, 1 + slots, "lists of blocks", variable->name);
    for (uint32_t i = 0; shard->block_count > 0 && i < shard->list_count; i++)
        check_list(shard, i, sums, check);
    if (shard->unassigned == NULL)
        return;
    sums->state_bytes += store_assignable_bytes(variable, shard->bytes);
    if (variable->filled) /* so are they */
        check_unassigned(shard, check);
}

void store_check_variable(
    const struct store *store, const struct variable *variable, struct store_sums *sums,
    struct check *check)
{
    uint32_t unassigned = 0, here = 0, held = 0;
    uint64_t promised_bytes = 0;

    sums->own_bytes += variable->own_bytes;
    sums->controller_bytes += variable->controller_bytes;
    sums->state_bytes += variable->promised_bytes;
    sums->deleted += variable->deleted;
    if ((store_find(store, variable->id) == variable) == variable->deleted)
        check_object(
            check, "variable %s is %s by its number", variable->name,
            variable->deleted ? "deleted and found" : "not found");
    for (uint32_t i = 0; i < variable->placement_count; i++) {
        const struct placement *placement = &variable->placements[i];
        const struct shard *shard = placement->here;
        held += placement->ps == store->ps;
        if (shard == NULL && placement->ps == store->ps && !variable->deleted)
            promised_bytes += store_lists_bytes(variable, placement->bytes) +
                              store_assignable_bytes(variable, placement->bytes);
        if (shard == NULL)
            continue;
        here++;
        if (shard->variable != variable || shard->id != variable->placements[i].shard_id)
            check_object(check, "variable %s: its shard %u is another's", variable->name, i);
        else
            check_shard(store, shard, sums, check);
        unassigned += shard->unassigned != NULL;
    }
    check_same(check, variable->held_count, held, "shards that are its ps's", variable->name);
    check_same(check, variable->here_count, here, "shards that are here", variable->name);
    check_same(
        check, variable->promised_bytes, promised_bytes, "bytes that are promised", variable->name);
    check_same(
        check, variable->unassigned_shards, unassigned, "shards to be assigned", variable->name);
    if (variable->filled != (variable->fill_at == variable->placement_count))
        check_object(
            check, "variable %s is %s, at its placement %u of %u", variable->name,
            variable->filled ? "filled" : "being filled", variable->fill_at,
            variable->placement_count);
    if (variable->filled)
        check_same(
            check, variable->held_count, variable->made_count, "shards that are made",
            variable->name);
}

static bool is_seen(const struct store *store, const struct block *block)
{
    const struct view *view = store->views.first;

    while (view != NULL && (view->position < block->born || view->position >= block->died ||
                            (block->list != STORE_VALUE && view->scope == VIEW_OF_VALUES)))
        view = view->in_store.next;
    return view != NULL;
}

/* An old row is one of those that are found by its place, and each was overwritten no later than
 * the next one began. */
static void check_row(const struct block *row, struct check *check)
{
    const struct block *const of = row->of;
    const struct block *kept = of->kept == NULL ? NULL : of->kept[row->within / of->row_bytes];
    bool found = false;

    for (; kept != NULL; kept = kept->older) {
        found |= kept == row;
        if (kept->of != of || kept->within != row->within || kept->bytes != of->row_bytes)
            check_object(check, "an old row of block %u is another's", of->index);
        if (kept->born >= kept->died || (kept->older != NULL && kept->older->died > kept->born)) {
            check_object(check, "an old row of block %u is out of order", of->index);
            return; /* and not round in a circle */
        }
    }
    if (!found)
        check_object(check, "an old row of block %u is not found by its place", of->index);
}

/* Old blocks are kept for somebody, and their bytes are counted. */
static void check_old(const struct store *store, struct store_sums *sums, struct check *check)
{
    const struct block *before = NULL;
    bool unswept = store->unswept == NULL;
    uint64_t bytes = 0, chained = 0, rows = 0;

    for (const struct block *block = store->old_blocks.first; block != NULL;
         block = block->among_old.next) {
        if (block->among_old.prev != before || block->died == 0) {
            check_object(check, "the list of old blocks is broken, or has a present one");
            return;
        }
        if (store->unswept == NULL && block->lent == 0 && !is_seen(store, block))
            check_object(
                check,
                "an old block of %u bytes, of positions %" PRIu64 " to %" PRIu64
                ", is kept for nobody",
                block->bytes, block->born, block->died);
        unswept |= block == store->unswept;
        rows += block->of != NULL;
        if (block->of != NULL) {
            bytes += sized_pool_bytes(sizeof *block + block->bytes);
            check_row(block, check);
        } else {
            bytes += sized_pool_bytes(block->bytes) + sized_pool_bytes(sizeof *block);
            sum_kept(block, sums);
        }
        chained += block->shard != NULL;
        sums->lent += block->lent;
        before = block;
    }
    if (!unswept || (store->unswept == NULL && store->sweep_again))
        check_object(check, "the sweep goes on from a block that is not old");
    check_same(
        check, store->view_bytes, bytes + sums->kept_bytes, "bytes of old blocks", "the store");
    check_same(check, rows, sums->kept_rows, "old rows of blocks", "the store");
    check_same(check, rows, store->old_row_count, "old rows", "the store");
    check_same(check, chained, sums->chained, "old blocks behind present ones", "the store");
}

static void check_views(const struct store *store, struct store_sums *sums, struct check *check)
{
    const struct view *before = NULL;

    for (const struct view *view = store->views.first; view != NULL; view = view->in_store.next) {
        if (view->in_store.prev != before || view->ended) {
            check_object(check, "the list of views is broken, or has an ended one");
            return;
        }
        if (view->position > store->position ||
            (before != NULL && view->position < before->position))
            check_object(check, "a view of position %" PRIu64 " is out of order", view->position);
        sums->views++;
        before = view;
    }
    if (store->views.last != before)
        check_object(check, "the newest view is not the last of the list");
    check_same(check, store->view_count, sums->views, "views", "the store");
}

static bool is_first_of_variable(const struct store *store, const struct shard *shard)
{
    const struct shard *first = store->leaving.first;

    while (first->variable != shard->variable)
        first = first->among_leaving.next;
    return first == shard;
}

/* What leaves is nobody's, and its bytes are counted until they are given back. */
static void check_leaving(const struct store *store, struct store_sums *sums, struct check *check)
{
    uint64_t bytes = 0;

    for (const struct shard *shard = store->leaving.first; shard != NULL;
         shard = shard->among_leaving.next) {
        const struct variable *variable = shard->variable;
        if (shard->users > 0 || variable->placements[shard->placement].here != NULL)
            check_object(check, "variable %s: a shard of it leaves and is used", variable->name);
        if (variable->here_count == 0 && is_first_of_variable(store, shard))
            bytes += variable->own_bytes;
        bytes += shard->fill_bytes + shard->unassigned_bytes;
        for (uint64_t at = 0; at < shard->fill_bytes;) {
            const struct list_byte here = store_list_byte(shard, at);
            const struct block *block = shard->list[here.list][here.index];
            check_place(shard, block, sums, check);
            sums->lent += block->lent;
            at += block->bytes;
        }
    }
    check_same(check, store->leaving_bytes, bytes, "bytes that leave", "the store");
}

void store_check(const struct store *store, struct store_sums *sums, struct check *check)
{
    const struct variable *before = NULL;
    uint64_t listed = 0, published = 0, unfilled = 0, awaited = 0;
    const uint64_t deleted_shards = sums->shards;

    for (const struct variable *variable = store->variables.first;
         variable != NULL && listed <= store->by_id.count; variable = variable->in_store.next) {
        if (variable->deleted)
            check_object(check, "variable %s is deleted, and in the list", variable->name);
        if (variable->in_store.prev != before)
            check_object(check, "variable %s: the list is broken before it", variable->name);
        if (store_find_by_name(store, variable->name) == NULL)
            check_object(check, "variable %s is not found by its name", variable->name);
        store_check_variable(store, variable, sums, check);
        published += variable->published;
        awaited += !variable->filled;
        before = variable;
        listed++;
    }
    if (store->variables.last != before)
        check_object(check, "the list of variables does not end where it is added to");
    for (const struct variable *variable = store->unfilled.first;
         variable != NULL && unfilled <= listed; variable = variable->among_unfilled.next)
        unfilled++;
    check_same(check, unfilled, awaited, "variables to be filled", "the store");
    check_same(check, store->by_id.count, listed, "variables by number", "the store");
    check_same(check, store->variable_count, published, "published variables", "the store");
    check_same(
        check, store->shards.count, sums->shards - deleted_shards, "shards by number", "the store");
    check_views(store, sums, check);
    check_leaving(store, sums, check);
    check_old(store, sums, check);
}

/* Readers and new variables may take the rest of the bounds. */
static void check_bounds(const struct store *store, struct check *check)
{
    struct store same = *store;

    store_share_bound(&same);
    check_same(
        check, store->bytes.spare_bytes_max, same.bytes.spare_bytes_max, "bytes that may be spare",
        "the store");
    check_same(
        check, store->bytes.held_bytes_max, same.bytes.held_bytes_max, "bytes that may be held",
        "the store");
    check_same(
        check, store->bytes.reserve_bytes, same.bytes.reserve_bytes, "bytes kept for readers",
        "the store");
}

void store_check_sums(const struct store *store, const struct store_sums *sums, struct check *check)
{
    check_same(check, store->state_bytes, sums->state_bytes, "bytes of state", "the store");
    check_same(check, store->own_bytes, sums->own_bytes, "bytes beside the state", "the store");
    check_same(
        check, store->controller_bytes, sums->controller_bytes, "bytes of the controller",
        "the store");
    check_same(check, store->shard_count, sums->shards, "shards", "the store");
    check_same(check, store->deleted_count, sums->deleted, "deleted variables in use", "the store");
    check_bounds(store, check);
}
