/* SPDX-License-Identifier: Apache-2.0 */
/* store_check.c -- the check of a store's consistency objects to each wrong field. */
#include "corrupt.h"
#include "store_fixture.h"

#define wrong(place, value, words) corrupt(look(store, NULL, &said), place, value, words)
#define ROW_BYTES 8u

/* `deleted`: a deleted variable that is in use, which no list of the store has; or NULL. */
static void look(const struct store *store, const struct variable *deleted, struct check *check)
{
    struct store_sums sums = {0};

    if (deleted != NULL)
        store_check_variable(store, deleted, &sums, check);
    store_check(store, &sums, check);
    store_check_sums(store, &sums, check);
}

static void expect_right(const struct store *store, const struct variable *deleted)
{
    struct check check = {.text = ""};

    look(store, deleted, &check);
    assert_string_equal(check.text, "");
}

STORE_TEST(a_wrong_variable_is_found)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_MOMENTUM), *unfilled;

    store_publish(store, variable);
    assert_int_equal(
        try_add(store, 4, ELEMENTS, UPDATE_SGD, SUMAC__V1__INITIALIZER__KIND__KIND_ONES, &unfilled),
        SUMAC_OK);
    expect_right(store, NULL);

    wrong(variable->deleted, true, "variable v3 is deleted, and in the list");
    wrong(variable->in_store.prev, unfilled, "variable v3: the list is broken before it");
    wrong(variable->name, "w", "variable w is not found by its name");
    wrong(variable->id, 9, "variable v3 is not found by its number");
    wrong(variable->unassigned_shards, 1, "shards to be assigned of v3");
    wrong(variable->fill_at, 0, "variable v3 is filled, at its placement 0 of 1");
    wrong(unfilled->fill_at, 1, "variable v4 is being filled, at its placement 1 of 1");
    wrong(variable->held_count, 2, "shards that are its ps's of v3");
    wrong(variable->made_count, 2, "shards that are made of v3");
    wrong(variable->here_count, 2, "shards that are here of v3");
    wrong(store->variables.last, variable, "the list of variables does not end");
    wrong(store->unfilled.first, NULL, "variables to be filled of the store");
    store->by_id.count = 3;
    wrong(unfilled->in_store.next, NULL, "variables by number of the store");
    store->by_id.count = 2;
    wrong(store->variable_count, 2, "published variables of the store");
    wrong(variable->published, false, "published variables of the store");
    wrong(store->shards.count, 2, "shards by number of the store");
    wrong(store->state_bytes, 1, "bytes of state of the store");
    wrong(unfilled->promised_bytes, 1, "bytes that are promised of v4");
    wrong(store->own_bytes, 1, "bytes beside the state of the store");
    wrong(variable->own_bytes, 1, "bytes beside the state of the store");
    wrong(store->controller_bytes, 1, "bytes of the controller of the store");
    wrong(store->bytes.spare_bytes_max, 1, "bytes that may be spare of the store");
    wrong(store->shard_count, 2, "shards of the store");
    wrong(store->deleted_count, 1, "deleted variables in use of the store");
    expect_right(store, NULL);
}

STORE_TEST(a_wrong_bound_is_found)
{
    struct store *store = &fixture->store;

    (void)add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    store_bound_state(store, 1u << 20);
    expect_right(store, NULL);

    wrong(store->bytes.held_bytes_max, 1, "bytes that may be held of the store");
    wrong(store->bytes.reserve_bytes, 1, "bytes kept for readers of the store");
    wrong(store->sweep_again, true, "the sweep goes on from a block that is not old");
    expect_right(store, NULL);
    store_bound_state(store, 0);
}

STORE_TEST(a_wrong_shard_is_found)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    struct variable *other = add(store, 4, ELEMENTS, UPDATE_SGD);
    struct shard *shard = store_shard(store, 3);

    expect_right(store, NULL);

    wrong(shard->variable, other, "variable v3: its shard 0 is another's");
    wrong(shard->id, 9, "variable v3: its shard 0 is another's");
    shard->id = 9;
    wrong(variable->placements[0].shard_id, 9, "variable v3: shard 9 is not found by its number");
    shard->id = 3;
    wrong(shard->views, 1, "variable v3: 0 users, 1 views");
    wrong(shard->slot_views, 1, "variable v3: 0 users, 0 views of them, and 1");
    wrong(shard->list_count, 1, "lists of blocks of v3");
    wrong(shard->bytes, 164, "bytes in blocks of v3");
    expect_right(store, NULL);
}

STORE_TEST(a_wrong_block_is_found)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    struct shard *shard = store_shard(store, 3);
    struct block *block = shard->list[STORE_VALUE][1];

    (void)add(store, 4, ELEMENTS, UPDATE_SGD);
    expect_right(store, NULL);

    wrong(shard->list[STORE_VALUE][1], NULL, "variable v3 is filled and has no block 1");
    wrong(block->shard, store_shard(store, 4), "variable v3: block 1 is another place's");
    wrong(block->list, 1, "variable v3: block 1 is another place's");
    wrong(block->index, 0, "variable v3: block 1 is another place's");
    wrong(block->bytes, 68, "variable v3: block 1 has 68 bytes");
    wrong(variable->slot_widens, 0, "variable v3: block 0 has 64 bytes");
    wrong(block->bytes, 60, "bytes in blocks of v3");
    wrong(block->died, 1, "variable v3: its present block 1 has died");
    expect_right(store, NULL);
}

/* Of block 0 there are two old ones: of position 0, and of position 1. */
STORE_TEST(a_wrong_old_block_is_found)
{
    struct store *store = &fixture->store;
    struct view early, late;

    (void)add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    struct shard *shard = store_shard(store, 3);
    store->position = 5;
    open_view(store, &early, VIEW_OF_VALUES, shard);
    struct block *newest = NULL;
    for (int i = 0; i < 2; i++) {
        newest = overwrite(store, shard, 0, 7);
        if (i == 0)
            open_view(store, &late, VIEW_OF_VALUES, shard);
    }
    struct block *old = newest->older, *oldest = old->older;
    expect_right(store, NULL);

    wrong(old->shard, NULL, "variable v3: the block before block 0 is another place's");
    wrong(old->list, 1, "variable v3: the block before block 0 is another place's");
    wrong(old->index, 1, "variable v3: the block before block 0 is another place's");
    wrong(old->born, 7, "variable v3: block 0 lived from position 7 to 7");
    wrong(old->born, 9, "variable v3: block 0 lived from position 9 to 7");
    wrong(old->died, 8, "variable v3: block 0 lived from position 6 to 8");
    wrong(newest->older, NULL, "old blocks behind present ones of the store");
    wrong(old->among_old.prev, oldest, "the list of old blocks is broken");
    wrong(
        store->old_blocks.first, newest, "the list of old blocks is broken, or has a present one");
    wrong(store->view_bytes, 1, "bytes of old blocks of the store");
    wrong(store->old_row_count, 1, "old rows of the store");
    wrong(late.position, 5, "an old block of 64 bytes, of positions 6 to 7");
    wrong(late.position, 7, "an old block of 64 bytes, of positions 6 to 7");
    wrong(early.ended, true, "the list of views is broken, or has an ended one");
    wrong(late.in_store.prev, NULL, "the list of views is broken");
    wrong(late.position, 8, "a view of position 8 is out of order");
    wrong(late.position, 4, "a view of position 4 is out of order");
    wrong(store->views.last, &early, "the newest view is not the last of the list");
    wrong(store->view_count, 1, "views of the store");
    expect_right(store, NULL);

    close_view(store, &late, shard);
    close_view(store, &early, shard);
}

STORE_TEST(an_old_block_of_a_slot_that_no_view_of_slots_sees_is_found)
{
    struct store *store = &fixture->store;
    struct view view;

    (void)add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    struct shard *shard = store_shard(store, 3);
    open_view(store, &view, VIEW_OF_SLOTS_TOO, shard);
    store->position++;
    (void)write_list(store, shard, 1, 0, 7);
    expect_right(store, NULL);

    wrong(view.scope, VIEW_OF_VALUES, "an old block of 64 bytes");
    expect_right(store, NULL);

    close_view(store, &view, shard);
}

static void keep_row(struct store *store, struct shard *shard, uint32_t row)
{
    store->position++;
    assert_true(store_row_keep(
        store, shard->list[STORE_VALUE][0], row * ROW_BYTES, ROW_BYTES, store->position));
}

/* Row 2 has two old ones, row 3 has one. */
STORE_TEST(a_wrong_old_row_is_found)
{
    struct store *store = &fixture->store;
    struct view views[2];

    store->kept_row_bytes_min = ROW_BYTES;
    store->view_bytes_max = 1u << 20;
    (void)add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);
    struct block *block = shard->list[STORE_VALUE][0];
    for (uint32_t i = 0; i < 2; i++) {
        open_view(store, &views[i], VIEW_OF_VALUES, shard);
        assert_true(store_block_keeps_rows(store, block, ROW_BYTES, store->position + 1));
        keep_row(store, shard, 2);
    }
    keep_row(store, shard, 3);
    struct block *newer = block->kept[2], *older = newer->older;
    expect_right(store, NULL);

    wrong(older->of, shard->list[STORE_VALUE][1], "an old row of block 0 is another's");
    wrong(older->within, 0, "an old row of block 0 is another's");
    wrong(older->bytes, 4, "an old row of block 0 is another's");
    wrong(older->born, older->died, "an old row of block 0 is out of order");
    wrong(older->died, newer->died, "an old row of block 0 is out of order");
    wrong(block->kept[2], NULL, "an old row of block 0 is not found by its place");
    wrong(block->kept_rows, 2, "old rows of blocks of the store");
    wrong(store->old_row_count, 2, "old rows of the store");
    expect_right(store, NULL);
    (void)overwrite(store, shard, 0, 7); /* an old block with old rows */
    expect_right(store, NULL);

    close_view(store, &views[1], shard);
    close_view(store, &views[0], shard);
}

STORE_TEST(a_wrong_count_of_elements_to_be_assigned_is_found)
{
    struct store *store = &fixture->store;
    struct variable *variable = add_with(store, 1, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    struct shard *shard = variable->placements[0].here;
    struct unassigned *first = shard->unassigned[0];

    expect_right(store, NULL);

    wrong(first->count, 3, "variable v1: block 0 has 16 elements to be assigned, not 3");
    wrong(first->bits[0], 1, "variable v1: block 0 has 1 elements to be assigned, not 16");
    first->count = 0;
    wrong(first->bits[0], 0, "variable v1: block 0 has 0 elements to be assigned, not 0");
    first->count = 16;
    wrong(shard->unassigned_count, 3, "elements to be assigned of v1");
    wrong(shard->unassigned, NULL, "shards to be assigned of v1");
    expect_right(store, NULL);
}

/* Two stores that had the same variable, of which other elements are assigned now. */
STORE_TEST(other_elements_to_be_assigned_are_told_apart)
{
    struct store *store = &fixture->store;
    struct shard *shards[2];

    for (uint64_t i = 0; i < 2; i++)
        shards[i] =
            add_with(store, 1 + i, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED)->placements[0].here;
    assert_true(store_check_same_unassigned(shards[0], shards[1]));

    store_assigned(store, shards[0], 0, 4); /* one element of block 0 */
    assert_false(store_check_same_unassigned(shards[0], shards[1]));
    store_assigned(store, shards[1], 0, 4);
    assert_true(store_check_same_unassigned(shards[0], shards[1]));

    store_assigned(store, shards[0], BLOCK_BYTES, BLOCK_BYTES); /* the whole block 1 */
    assert_false(store_check_same_unassigned(shards[0], shards[1]));
    store_assigned(store, shards[1], BLOCK_BYTES, BLOCK_BYTES);
    assert_true(store_check_same_unassigned(shards[0], shards[1]));

    store_assigned(store, shards[0], 0, 800); /* all of it */
    assert_false(store_check_same_unassigned(shards[0], shards[1]));
    store_assigned(store, shards[1], 0, 800);
    assert_true(store_check_same_unassigned(shards[0], shards[1]));
}

STORE_TEST(a_wrong_deleted_variable_is_found)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_SGD);
    struct shard *shard = store_shard(store, 3);

    store_use(shard);
    store_delete(store, variable);
    expect_right(store, variable);

    corrupt(
        look(store, variable, &said), variable->deleted, false, "v3 is not found by its number");
    corrupt(look(store, NULL, &said), variable->id, 3, "bytes of state of the store");
    corrupt(look(store, variable, &said), store->deleted_count, 2, "deleted variables in use");
    expect_right(store, variable);

    store_let_go(store, shard);
}

STORE_TEST(a_wrong_shard_that_leaves_is_found)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_SGD);
    struct shard *shard = store_shard(store, 3);

    store_delete(store, variable);
    expect_right(store, NULL);

    wrong(shard->users, 1, "variable v3: a shard of it leaves and is used");
    wrong(variable->placements[0].here, shard, "variable v3: a shard of it leaves and is used");
    wrong(shard->list[STORE_VALUE][1]->died, 1, "variable v3: its present block 1 has died");
    wrong(store->leaving_bytes, 1, "bytes that leave of the store");
    wrong(variable->own_bytes, 1, "bytes that leave of the store");
    wrong(shard->unassigned_bytes, 1, "bytes that leave of the store");
    expect_right(store, NULL);
}
