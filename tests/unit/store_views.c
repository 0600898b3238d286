/* SPDX-License-Identifier: Apache-2.0 */
/* store_views.c -- blocks that readers still see: what a view shows, what it keeps, and for how
 * long. */
#include "store_fixture.h"

STORE_TEST(without_a_reader_a_block_is_written_in_place)
{
    add(&fixture->store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(&fixture->store, 3);
    const struct block *before = shard->list[STORE_VALUE][0];

    assert_ptr_equal(overwrite(&fixture->store, shard, 0, 7), before);
    assert_int_equal(fixture->store.view_bytes, 0);
}

STORE_TEST(a_view_sees_its_position_whatever_is_written)
{
    struct store *store = &fixture->store;
    struct view early, late;

    add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);
    overwrite(store, shard, 0, 10);

    open_view(store, &early, VIEW_OF_VALUES, shard);
    overwrite(store, shard, 0, 20);
    overwrite(store, shard, 0, 21); /* nobody saw 20: in place */
    open_view(store, &late, VIEW_OF_VALUES, shard);
    overwrite(store, shard, 0, 30);

    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, early.position)), 10);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, late.position)), 21);
    assert_number_equal(first_of(shard->list[STORE_VALUE][0]), 30);
    assert_int_equal(store->view_bytes, old_bytes(2));
    close_view(store, &late, shard);
    assert_int_equal(store->view_bytes, old_bytes(1));
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, early.position)), 10);
    close_view(store, &early, shard);
    assert_int_equal(store->view_bytes, 0);
}

/* Adam's m and v are lists like the value's: a view of slots sees all three as they were, and one
 * of values has nobody keep slots for it. */
STORE_TEST(a_view_covers_slots_if_it_says_so)
{
    struct store *store = &fixture->store;
    struct view of_values, of_slots;

    (void)add(store, 3, ELEMENTS, UPDATE_ADAM);
    struct shard *shard = store_shard(store, 3);
    enum { M = 1, V = 2 };
    open_view(store, &of_values, VIEW_OF_VALUES, shard); /* given */

    store->position++; /* when */
    (void)write_list(store, shard, M, 0, 10);
    assert_int_equal(store->view_bytes, 0); /* then */
    open_view(store, &of_slots, VIEW_OF_SLOTS_TOO, shard);
    store->position++;
    for (uint32_t list = 0; list < shard->list_count; list++)
        (void)write_list(store, shard, list, 0, 20);

    assert_int_equal(store->view_bytes, old_bytes(3));
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, of_slots.position)), 1);
    assert_number_equal(first_of(store_block_at(shard, M, 0, of_slots.position)), 10);
    assert_number_equal(first_of(store_block_at(shard, V, 0, of_slots.position)), 0);
    assert_number_equal(first_of(shard->list[M][0]), 20);
    expect_consistent(store);
    close_view(store, &of_slots, shard);
    assert_int_equal(store->view_bytes, old_bytes(1)); /* the value's, for the other view */
    expect_consistent(store);
    close_view(store, &of_values, shard);
    assert_int_equal(store->view_bytes, 0);
}

/* A later view of values does not make a slot's block that an earlier one of slots has seen the
 * last of be kept. */
STORE_TEST(a_slot_is_kept_for_views_of_slots_only)
{
    struct store *store = &fixture->store;
    struct view of_slots, of_values;

    (void)add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    struct shard *shard = store_shard(store, 3);
    open_view(store, &of_slots, VIEW_OF_SLOTS_TOO, shard);
    store->position++;
    (void)write_list(store, shard, 1, 0, 10);
    open_view(store, &of_values, VIEW_OF_VALUES, shard); /* given: at 10's position */
    store->position++;

    (void)write_list(store, shard, 1, 0, 20); /* when */

    assert_int_equal(store->view_bytes, old_bytes(1)); /* then: what was there at first */
    assert_number_equal(first_of(store_block_at(shard, 1, 0, of_slots.position)), 0);
    expect_consistent(store);
    close_view(store, &of_values, shard);
    close_view(store, &of_slots, shard);
}

STORE_TEST(a_slot_is_kept_for_views_of_its_own_shard_only)
{
    struct store *store = &fixture->store;
    struct view of_values, of_slots;

    (void)add(store, 3, ELEMENTS, UPDATE_MOMENTUM);
    (void)add(store, 4, ELEMENTS, UPDATE_MOMENTUM);
    struct shard *shard = store_shard(store, 3), *other = store_shard(store, 4);
    open_view(store, &of_values, VIEW_OF_VALUES, shard); /* given */
    open_view(store, &of_slots, VIEW_OF_SLOTS_TOO, other);
    store->position++;

    (void)write_list(store, shard, 1, 0, 10); /* when */

    assert_int_equal(store->view_bytes, 0); /* then */
    close_view(store, &of_slots, other);
    close_view(store, &of_values, shard);
}

/* What comes in several pieces may be written while other shards are read at later positions. */
STORE_TEST(an_operation_writes_again_to_what_it_has_made)
{
    struct store *store = &fixture->store;
    struct view early, late;

    (void)add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    (void)add(store, 4, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3), *other = store_shard(store, 4);
    open_view(store, &early, VIEW_OF_VALUES, shard);
    struct block *made = overwrite(store, shard, 0, 10);
    open_view(store, &late, VIEW_OF_VALUES, other); /* given */

    assert_ptr_equal(write_list(store, shard, STORE_VALUE, 0, 20), made);

    assert_int_equal(store->view_bytes, old_bytes(1));
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, early.position)), 1);
    expect_consistent(store);
    close_view(store, &late, other);
    close_view(store, &early, shard);
}

/* Old blocks of every list leave their place's chain, wherever in it they are. */
STORE_TEST(old_blocks_of_slots_are_freed_out_of_the_middle)
{
    struct store *store = &fixture->store;
    struct view views[3];

    (void)add(store, 3, ELEMENTS, UPDATE_ADAM);
    struct shard *shard = store_shard(store, 3);
    store->view_bytes_max = old_bytes(9);
    for (int i = 0; i < 3; i++) { /* given: three old blocks in each list, seen by one view each */
        open_view(store, &views[i], VIEW_OF_SLOTS_TOO, shard);
        store->position++;
        for (uint32_t list = 0; list < shard->list_count; list++)
            (void)write_list(store, shard, list, 1, (float)(10 * i + 10));
    }
    assert_int_equal(store->view_bytes, old_bytes(9));

    close_view(store, &views[1], shard); /* when */

    assert_int_equal(store->view_bytes, old_bytes(6)); /* then */
    expect_consistent(store);
    for (uint32_t list = 0; list < shard->list_count; list++) {
        const float first = list == STORE_VALUE ? 1 : 0;
        assert_number_equal(first_of(store_block_at(shard, list, 1, views[0].position)), first);
        assert_number_equal(first_of(store_block_at(shard, list, 1, views[2].position)), 20);
    }
    close_view(store, &views[0], shard);
    close_view(store, &views[2], shard);
    assert_int_equal(store->view_bytes, 0);
    expect_consistent(store);
}

STORE_TEST(the_oldest_view_is_ended_beyond_the_bound)
{
    struct store *store = &fixture->store;
    struct view early, late;

    add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);
    store->view_bytes_max = old_bytes(2);
    open_view(store, &early, VIEW_OF_VALUES, shard);
    overwrite(store, shard, 0, 10);
    overwrite(store, shard, 1, 10);
    open_view(store, &late, VIEW_OF_VALUES, shard);

    overwrite(store, shard, 0, 20);

    assert_true(early.ended);
    assert_false(late.ended);
    assert_true(store->view_bytes <= old_bytes(2));
    assert_int_equal(store->view_bytes, old_bytes(1));
    assert_int_equal(store->bytes.spare_bytes_max, old_bytes(1)); /* what is spare is beside them */
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, late.position)), 10);
    close_view(store, &early, shard);
    close_view(store, &late, shard);
}

STORE_TEST(lent_bytes_outlive_their_view_and_their_shard)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);
    struct block *lent = shard->list[STORE_VALUE][0];

    store_block_lend(lent);

    struct block *fresh = overwrite(store, shard, 0, 20);
    assert_ptr_not_equal(fresh, lent);
    assert_number_equal(first_of(lent), 1);
    store_block_lend(fresh);
    store_delete(store, variable);
    while (store_is_leaving(store))
        (void)store_reclaim(store);
    assert_number_equal(first_of(lent), 1);
    assert_number_equal(first_of(fresh), 20);

    store_block_released(store, lent);
    store_block_released(store, fresh);
    assert_int_equal(store->view_bytes, 0);
}

/* The reader may have begun with the operation that is still writing. */
STORE_TEST(what_is_lent_is_not_overwritten_by_the_operation_that_made_it)
{
    struct store *store = &fixture->store;
    struct shard *shard;

    (void)add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    shard = store_shard(store, 3);
    struct block *const old = shard->list[STORE_VALUE][0];
    store_block_lend(old);
    struct block *lent = overwrite(store, shard, 0, 20);
    assert_int_equal(lent->born, store->position);
    store_block_lend(lent);

    struct block *fresh = write_list(store, shard, STORE_VALUE, 0, 30);

    assert_ptr_not_equal(fresh, lent);
    assert_number_equal(first_of(lent), 20);
    store_block_released(store, lent);
    store_block_released(store, old);
    assert_int_equal(store->view_bytes, 0);
}

/* A view keeps a small variable's small blocks beside a large one's large ones. */
STORE_TEST(blocks_of_several_sizes_are_kept_and_freed)
{
    struct store *store = &fixture->store;
    struct view view;

    (void)add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    store->block_bytes = BLOCK_BYTES / 2;
    struct variable *finer = add(store, 4, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *coarse = store_shard(store, 3), *fine = store_shard(store, 4);
    open_view(store, &view, VIEW_OF_VALUES, fine);
    store_use(coarse);
    store_view_cover(&view, coarse); /* given */

    (void)overwrite(store, coarse, 2, 10); /* when */
    (void)overwrite(store, fine, 4, 10);
    store_delete(store, finer);

    assert_int_equal(store->view_bytes, old_bytes(2)); /* then */
    assert_number_equal(first_of(store_block_at(fine, STORE_VALUE, 4, view.position)), 1);
    store_view_uncover(&view, coarse);
    store_let_go(store, coarse);
    close_view(store, &view, fine);
    assert_int_equal(store->view_bytes, 0);
    assert_int_equal(store->state_bytes, 160);
    expect_consistent(store);
}

/* ---- what a view leaves behind is looked at over steps ---- */

enum { MANY = 300 }; /* blocks */

/* A variable of many blocks, each overwritten while the view is open: as many old ones. */
static struct shard *overwrite_many(struct store *store, struct view *view)
{
    (void)add(store, 5, MANY * BLOCK_BYTES / sizeof(float), UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 5);
    open_view(store, view, VIEW_OF_VALUES, shard);
    for (uint32_t i = 0; i < MANY; i++)
        (void)overwrite(store, shard, i, 10);
    assert_int_equal(store->view_bytes, old_bytes(MANY));
    return shard;
}

STORE_TEST(old_blocks_of_a_view_are_freed_over_steps)
{
    struct store *store = &fixture->store;
    struct view view;
    struct shard *shard = overwrite_many(store, &view);
    uint32_t sweeps = 0;

    end_view(store, &view, shard); /* when */

    assert_int_equal(store->view_bytes, old_bytes(MANY)); /* then */
    for (; store_is_leaving(store) && store->view_bytes > 0; sweeps++) {
        const uint64_t before = store->view_bytes;
        assert_in_range(store_reclaim(store), 1, STORE_BLOCK_BYTES);
        assert_in_range(before - store->view_bytes, 0, old_bytes(128));
        expect_consistent(store);
    }
    assert_in_range(sweeps, 3, MANY);
    assert_int_equal(store->view_bytes, 0);
}

STORE_TEST(blocks_of_a_view_that_ends_during_a_sweep_are_freed)
{
    struct store *store = &fixture->store;
    struct view first, second;
    struct shard *shard = overwrite_many(store, &first);

    open_view(store, &second, VIEW_OF_VALUES, shard);
    for (uint32_t i = 0; i < MANY; i++)
        (void)overwrite(store, shard, i, 20);
    end_view(store, &first, shard); /* given */
    while (store->view_bytes > old_bytes(MANY))
        (void)store_sweep(store);
    (void)store_sweep(store);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 7, second.position)), 10);
    assert_non_null(store->unswept);

    close_view(store, &second, shard); /* when */

    assert_int_equal(store->view_bytes, 0); /* then */
}

/* What it was to look at next goes by itself. */
STORE_TEST(a_lent_block_is_released_during_a_sweep)
{
    struct store *store = &fixture->store;
    struct view view;
    struct shard *shard = overwrite_many(store, &view);
    struct block *oldest = store->old_blocks.last;

    store_block_lend(oldest);
    end_view(store, &view, shard);
    (void)store_sweep(store);
    assert_ptr_equal(store->old_blocks.last, oldest); /* given */
    struct block *next = store->unswept;
    assert_non_null(next);
    store_block_lend(next);

    store_block_released(store, next); /* when */
    store_block_released(store, oldest);

    while (store->unswept != NULL) /* then */
        (void)store_sweep(store);
    assert_int_equal(store->view_bytes, 0);
}

STORE_TEST(no_view_is_ended_as_long_as_a_sweep_makes_room)
{
    struct store *store = &fixture->store;
    struct view early, late;
    struct shard *shard = overwrite_many(store, &early);

    open_view(store, &late, VIEW_OF_VALUES, shard);
    store->view_bytes_max = store->view_bytes;
    end_view(store, &early, shard); /* given */

    (void)overwrite(store, shard, 0, 20); /* when */

    assert_false(late.ended); /* then */
    assert_true(store->view_bytes <= store->view_bytes_max);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, late.position)), 10);
    close_view(store, &late, shard);
}

/* A sweep is over when it has looked at all old blocks, also when it has freed none. Who runs a
 * lane sweeps until then. */
STORE_TEST(a_sweep_that_frees_nothing_ends)
{
    struct store *store = &fixture->store;
    struct view early, middle, late;

    add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);
    open_view(store, &early, VIEW_OF_VALUES, shard); /* given: three views need one old block */
    open_view(store, &middle, VIEW_OF_VALUES, shard);
    open_view(store, &late, VIEW_OF_VALUES, shard);
    overwrite(store, shard, 0, 10);
    end_view(store, &late, shard);
    end_view(store, &middle, shard); /* while a sweep goes on */
    assert_non_null(store->unswept);

    for (int sweeps = 0; sweeps < 4; sweeps++) { /* when */
        if (store->unswept != NULL)
            (void)store_sweep(store);
    }

    assert_null(store->unswept); /* then */
    assert_int_equal(store->view_bytes, old_bytes(1));
    close_view(store, &early, shard);
}
