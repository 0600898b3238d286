/* SPDX-License-Identifier: Apache-2.0 */
/* store_rows.c -- rows that are overwritten while views see them: what each view reads, what is
 * kept, and for how long. */
#include "store_fixture.h"

#define ROW_BYTES 8u
#define ROWS (BLOCK_BYTES / ROW_BYTES)
#define FLOATS (BLOCK_BYTES / sizeof(float))
#define VIEWS_MAX 4u

/* Old rows of one block, with all that is kept beside them. */
static uint64_t row_bytes(uint64_t rows)
{
    return rows * sized_pool_bytes(sizeof(struct block) + ROW_BYTES) +
           sized_pool_bytes((ROWS + 1) * sizeof(struct block *));
}

/* A block of ones, of which rows are kept. */
static struct shard *make(struct store *store)
{
    store->kept_row_bytes_min = ROW_BYTES;
    store->view_bytes_max = 1u << 20;
    (void)add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    return store_shard(store, 3);
}

/* As an operation at the store's position does it. True: its old bytes were kept. */
static bool write_row(struct store *store, struct shard *shard, uint32_t row, float value)
{
    struct block *block = shard->list[STORE_VALUE][0];
    bool kept = false;

    if (store_block_keeps_rows(store, block, ROW_BYTES, store->position)) {
        kept = store_row_keep(store, block, row * ROW_BYTES, ROW_BYTES, store->position);
    } else {
        struct block *const fresh = store_block_write(store, block, store->position);
        assert_non_null(fresh);
        if (fresh != block)
            memcpy(fresh->data, block->data, block->bytes);
        block = fresh;
    }
    for (uint32_t i = 0; i < ROW_BYTES / sizeof value; i++)
        memcpy(block->data + row * ROW_BYTES + i * sizeof value, &value, sizeof value);
    return kept;
}

static float read_row(struct shard *shard, uint32_t row, uint64_t at)
{
    const struct block *const block = store_block_at(shard, STORE_VALUE, 0, at);
    float values[2];

    store_block_read(block, row * ROW_BYTES, sizeof values, at, (uint8_t *)values);
    assert_number_equal(values[0], values[1]);
    return values[0];
}

STORE_TEST(a_view_reads_what_a_row_was_and_the_block_is_not_copied)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    struct block *const block = shard->list[STORE_VALUE][0];
    struct view early, late;

    open_view(store, &early, VIEW_OF_VALUES, shard); /* given */

    store->position++; /* when */
    assert_true(write_row(store, shard, 2, 10));
    assert_false(write_row(store, shard, 2, 11)); /* of the same operation */
    store->position++;
    assert_false(write_row(store, shard, 2, 12)); /* which nobody has seen */
    open_view(store, &late, VIEW_OF_VALUES, shard);
    store->position++;
    assert_true(write_row(store, shard, 2, 20));
    assert_true(write_row(store, shard, 3, 21));

    assert_ptr_equal(shard->list[STORE_VALUE][0], block); /* then */
    assert_int_equal(store->view_bytes, row_bytes(3));
    assert_number_equal(read_row(shard, 2, early.position), 1);
    assert_number_equal(read_row(shard, 3, early.position), 1);
    assert_number_equal(read_row(shard, 2, late.position), 12);
    assert_number_equal(read_row(shard, 3, late.position), 1);
    assert_number_equal(read_row(shard, 2, store->position), 20);
    float second = 0; /* of the two that a row has */
    memcpy(block->data + 2 * ROW_BYTES + sizeof second, &second, sizeof second);
    store_block_read(
        block, 2 * ROW_BYTES + sizeof second, sizeof second, store->position, (uint8_t *)&second);
    assert_number_equal(second, 0);
    expect_consistent(store);
    close_view(store, &late, shard);
    assert_int_equal(store->view_bytes, row_bytes(2));
    assert_number_equal(read_row(shard, 2, early.position), 1);
    expect_consistent(store);
    close_view(store, &early, shard);
    assert_int_equal(store->view_bytes, 0);
    expect_consistent(store);
}

/* A view of another variable is as old as the rows, and does not read them. */
STORE_TEST(the_old_rows_of_a_block_go_with_it)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    struct view reader, other;

    (void)add(store, 4, ELEMENTS, UPDATE_ASSIGN_ADD);
    open_view(store, &reader, VIEW_OF_VALUES, shard); /* given */
    open_view(store, &other, VIEW_OF_VALUES, store_shard(store, 4));
    store->position++;
    assert_true(write_row(store, shard, 0, 10));
    assert_true(write_row(store, shard, 2, 10));
    close_view(store, &reader, shard);
    assert_int_equal(store->view_bytes, row_bytes(2));

    store_delete(store, store_find(store, 3)); /* when */
    while (store_is_leaving(store))
        (void)store_reclaim(store);

    assert_int_equal(store->view_bytes, 0); /* then */
    assert_int_equal(store->old_row_count, 0);
    expect_consistent(store);
    close_view(store, &other, store_shard(store, 4));
}

#define HOGS_MAX 2048u

/* All pieces that the pool has left of that size. */
static uint32_t hog(struct sized_pool *pool, size_t bytes, void **hogs)
{
    uint32_t count = 0;

    while (count < HOGS_MAX && (hogs[count] = sized_pool_take(pool, bytes)) != NULL)
        count++;
    assert_true(count < HOGS_MAX);
    return count;
}

/* Whichever take fails, the view is given up, and what was taken before is given back: the fixture
 * counts it at the end. */
STORE_TEST(a_row_that_there_is_no_memory_to_keep_leaves_nothing_behind)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    const size_t table_bytes = (ROWS + 1) * sizeof(struct block *);
    void *hogs[HOGS_MAX];
    struct view view;
    uint32_t failed = 0;

    sized_pool_give(&store->bytes, sized_pool_take(&store->bytes, table_bytes), table_bytes);
    fixture->scarce = true; /* given */
    uint32_t hogged = hog(&store->bytes, table_bytes, hogs);

    for (bool kept = false; !kept; failed += !kept) {
        open_view(store, &view, VIEW_OF_VALUES, shard);
        store->position++;

        kept = write_row(store, shard, 2, 10); /* when */

        assert_int_equal(view.ended, !kept); /* then */
        assert_int_equal(store->view_bytes, kept ? row_bytes(1) : 0);
        expect_consistent(store);
        close_view(store, &view, shard);
        assert_true(hogged > 0); /* with one more piece each time it is kept soon */
        sized_pool_give(&store->bytes, hogs[--hogged], table_bytes);
    }
    assert_true(failed > 0 && failed <= 2);
    while (hogged > 0)
        sized_pool_give(&store->bytes, hogs[--hogged], table_bytes);
}

STORE_TEST(a_block_that_is_lent_or_of_small_rows_is_copied_whole)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    struct block *const block = shard->list[STORE_VALUE][0];
    struct view view;

    open_view(store, &view, VIEW_OF_VALUES, shard); /* given */
    store->position++;
    assert_true(store_block_keeps_rows(store, block, ROW_BYTES, store->position));

    /* when, then */
    assert_false(store_block_keeps_rows(store, block, ROW_BYTES - 1, store->position));
    store_block_lend(block);
    assert_false(store_block_keeps_rows(store, block, ROW_BYTES, store->position));
    assert_false(write_row(store, shard, 1, 5));
    assert_ptr_not_equal(shard->list[STORE_VALUE][0], block);
    store_block_released(store, block);
    assert_number_equal(read_row(shard, 1, view.position), 1);
    expect_consistent(store);
    close_view(store, &view, shard);
    assert_int_equal(store->view_bytes, 0);
}

STORE_TEST(the_oldest_view_is_ended_when_rows_take_too_much)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    struct view early, late;

    store->view_bytes_max = row_bytes(2); /* given */
    open_view(store, &early, VIEW_OF_VALUES, shard);
    store->position++;
    (void)write_row(store, shard, 0, 10);
    (void)write_row(store, shard, 1, 10);
    open_view(store, &late, VIEW_OF_VALUES, shard);
    store->position++;

    (void)write_row(store, shard, 1, 20); /* when */

    assert_true(early.ended); /* then */
    assert_false(late.ended);
    assert_true(store->view_bytes <= row_bytes(2));
    assert_number_equal(read_row(shard, 1, late.position), 10);
    expect_consistent(store);
    close_view(store, &late, shard);
    store_view_uncover(&early, shard);
    store_let_go(store, shard);
}

STORE_TEST(a_view_is_ended_when_the_list_of_the_first_row_takes_too_much)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    struct view view;

    store->view_bytes_max = row_bytes(1) - 1; /* given */
    store_share_bound(store);
    open_view(store, &view, VIEW_OF_VALUES, shard);
    store->position++;

    assert_false(write_row(store, shard, 0, 10)); /* when */

    assert_true(view.ended); /* then */
    assert_int_equal(store->view_bytes, 0);
    expect_consistent(store);
    store_view_uncover(&view, shard);
    store_let_go(store, shard);
}

/* ---- whatever happens ---- */

struct seen {
    struct view view;
    float values[ROWS];
    bool open;
};

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % below;
}

static void expect_views(struct store *store, struct shard *shard, const struct seen *seen)
{
    for (uint32_t v = 0; v < VIEWS_MAX; v++)
        for (uint32_t row = 0; seen[v].open && row < ROWS; row++)
            assert_number_equal(read_row(shard, row, seen[v].view.position), seen[v].values[row]);
    expect_consistent(store);
}

STORE_TEST(every_view_reads_what_was_there)
{
    struct store *store = &fixture->store;
    struct shard *const shard = make(store);
    uint64_t random = 1, kept = 0, whole = 0;
    struct seen seen[VIEWS_MAX] = {{.open = false}};
    float now[ROWS];

    for (uint32_t row = 0; row < ROWS; row++)
        now[row] = 1;
    for (uint32_t i = 0; i < 4000; i++) {
        struct seen *const one = &seen[draw(&random, VIEWS_MAX)];
        const uint32_t choice = draw(&random, 16);
        if (choice < 2 && !one->open) {
            open_view(store, &one->view, VIEW_OF_VALUES, shard);
            memcpy(one->values, now, sizeof now);
            one->open = true;
        } else if (choice < 4 && one->open) {
            close_view(store, &one->view, shard);
            one->open = false;
        } else if (choice == 4) { /* all of the block */
            store->position++;
            struct block *const before = shard->list[STORE_VALUE][0];
            struct block *const block = store_block_write(store, before, store->position);
            whole += block != before;
            for (uint32_t f = 0; f < FLOATS; f++)
                ((float *)(void *)block->data)[f] = now[f / 2] = (float)i;
        } else { /* some rows, one of them twice */
            store->position++;
            const uint32_t row = draw(&random, ROWS), other = draw(&random, ROWS);
            kept += write_row(store, shard, row, (float)i);
            kept += write_row(store, shard, other, (float)i + 0.25F);
            kept += write_row(store, shard, row, now[row] = (float)i + 0.5F);
            if (other != row)
                now[other] = (float)i + 0.25F;
        }
        expect_views(store, shard, seen);
    }
    assert_true(kept > 500 && whole > 50);
    for (uint32_t v = 0; v < VIEWS_MAX; v++)
        if (seen[v].open)
            close_view(store, &seen[v].view, shard);
    assert_int_equal(store->view_bytes, 0);
    expect_consistent(store);
}
