/* SPDX-License-Identifier: Apache-2.0 */
/* store_short.c -- a store of which each take of memory fails once: the caller gets an error, and
 * the store holds what it held before. */
#include <inttypes.h>

#include "each_take.h"
#include "store_fixture.h"

#define SHARDS 3u
#define VARIABLE 5u /* that is there */
#define GUEST 7u    /* that comes and goes */
#define ROW_BYTES 8u

struct held {
    int64_t out;
    uint64_t state, own, controller, views, old_rows, leaving;
    uint64_t variables, shards, deleted, open_views;
};

static struct held look(const struct store *store)
{
    return (struct held){
        .out = each_take_out(),
        .state = store->state_bytes,
        .own = store->own_bytes,
        .controller = store->controller_bytes,
        .views = store->view_bytes,
        .old_rows = store->old_row_count,
        .leaving = store->leaving_bytes,
        .variables = store->variable_count,
        .shards = store->shard_count,
        .deleted = store->deleted_count,
        .open_views = store->view_count};
}

/* The store gives deleted shards and unused old blocks back over steps. */
static void reclaim_all(struct store *store)
{
    while (store_is_leaving(store))
        (void)store_reclaim(store);
}

/* ---- variables ---- */

/* Two of its shards are here. */
static enum sumac_status
add_shards(struct store *store, int initializer, struct variable **added, struct sumac_error *error)
{
    wire_shard shards[SHARDS], *pointers[SHARDS];
    uint64_t shape[] = {SHARDS * ELEMENTS};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer initial = WIRE_INITIALIZER_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;

    for (uint32_t i = 0; i < SHARDS; i++) {
        shards[i] = (wire_shard)WIRE_SHARD_INIT;
        shards[i].shard_id = 10 + i;
        shards[i].ps = i % 2;
        shards[i].first_row = i * ELEMENTS;
        shards[i].rows = ELEMENTS;
        shards[i].bytes = ELEMENTS * sizeof(float);
        pointers[i] = &shards[i];
    }
    own.function = (Sumac__V1__UpdateFunction)UPDATE_MOMENTUM;
    initial.kind = (Sumac__V1__Initializer__Kind)initializer;
    given.name = "w";
    given.variable_id = GUEST;
    given.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.function = &own;
    given.initializer = &initial;
    given.shards = pointers;
    given.n_shards = SHARDS;
    return store_add(store, &given, 0, added, error);
}

/* True: all of it was done. */
static bool come_and_go(struct store *store, int initializer)
{
    struct variable *variable = NULL;
    struct sumac_error error = {.status = SUMAC_OK};
    enum sumac_status status = add_shards(store, initializer, &variable, &error);

    if (status == SUMAC_OK)
        status = fill(store, variable, &error);
    if (status == SUMAC_OK)
        store_publish(store, variable);
    else
        assert_int_equal(error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    if (variable != NULL)
        store_delete(store, variable);
    reclaim_all(store);
    assert_null(store_find(store, GUEST));
    assert_null(store_find_by_name(store, "w"));
    assert_null(store_shard(store, 10));
    return status == SUMAC_OK;
}

static bool add_and_delete(struct store *store)
{
    return come_and_go(store, WIRE_INITIALIZER_ONES);
}

static bool add_assigned_and_delete(struct store *store)
{
    return come_and_go(store, WIRE_INITIALIZER_ASSIGNED);
}

/* ---- views ---- */

/* Every block is written while a view sees the old one and a reader has one on its way. */
static bool write_beside_a_reader(struct store *store)
{
    struct shard *const shard = store_shard(store, VARIABLE);
    struct block *const lent = shard->list[STORE_VALUE][0];
    struct view view;
    bool written = true;

    open_view(store, &view, VIEW_OF_SLOTS_TOO, shard);
    store_block_lend(lent);
    store->position++;
    for (uint32_t list = 0; list < shard->list_count; list++) {
        for (uint32_t i = 0; i < shard->block_count; i++) {
            struct block *const block =
                store_block_write(store, shard->list[list][i], store->position);
            written = written && block != NULL;
            assert_true(block != NULL || i == 0); /* only what is lent needs another one */
        }
    }
    written = written && !view.ended;
    store_block_released(store, lent);
    close_view(store, &view, shard);
    reclaim_all(store);
    return written;
}

/* Rows are written where they are, and their old bytes are kept for a view. */
static bool write_rows_beside_a_view(struct store *store)
{
    struct shard *const shard = store_shard(store, VARIABLE);
    struct view view;
    bool kept = true;

    open_view(store, &view, VIEW_OF_VALUES, shard);
    shard->by_rows = true;
    store->position++;
    for (uint32_t i = 0; i < shard->block_count; i++) {
        struct block *const block = shard->list[STORE_VALUE][i];
        if (!store_block_keeps_rows(store, block, ROW_BYTES, store->position))
            continue;
        kept = store_row_keep(store, block, ROW_BYTES, ROW_BYTES, store->position) && kept;
    }
    kept = kept && !view.ended;
    close_view(store, &view, shard);
    reclaim_all(store);
    return kept;
}

/* ---- each take ---- */

static void expect_held(const struct store *store, const struct held *held, uint64_t failing)
{
    const struct held now = look(store);

    expect_consistent(store);
    if (memcmp(&now, held, sizeof now) == 0)
        return;
    for (size_t i = 0; i < sizeof now / sizeof(uint64_t); i++)
        print_error(
            "%" PRIu64 " of %" PRIu64 "\n", ((const uint64_t *)&now)[i],
            ((const uint64_t *)held)[i]);
    fail_msg("take %" PRIu64 ": the store holds other than before", failing);
}

/* Returns whether there were as many takes. */
static bool
hold_once(bool (*hold)(struct store *), uint64_t failing, uint64_t run, uint32_t *refused)
{
    void *state = NULL;

    each_take_reset();
    assert_int_equal(begin(&state), 0);
    struct store *const store = &((struct fixture *)state)->store;
    store->kept_row_bytes_min = 1;
    (void)add_with(store, VARIABLE, ELEMENTS, UPDATE_MOMENTUM, WIRE_INITIALIZER_ONES);
    const struct held before = look(store);

    each_take_begin_run(failing, run);
    *refused += !hold(store);
    const uint64_t takes = each_take_end();

    expect_held(store, &before, failing);
    assert_true(hold(store));
    expect_held(store, &before, failing);
    assert_int_equal(end(&state), 0);
    return takes >= failing;
}

/* A write tries again when it has given back what is spare, and again with each view that it gives
 * up. */
static void hold_each(bool (*hold)(struct store *))
{
    static const uint64_t runs[] = {1, 2, 3, 100};
    uint32_t refused = 0;

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        uint64_t failing = 1;
        while (hold_once(hold, failing, runs[i], &refused))
            failing++;
        assert_in_range(failing, 4, 1000);
    }
    assert_in_range(refused, 4, 1000);
}

TEST(a_variable_that_there_is_no_memory_for_leaves_nothing_behind) { hold_each(add_and_delete); }

TEST(nor_does_one_that_its_creator_assigns) { hold_each(add_assigned_and_delete); }

TEST(a_write_beside_a_reader_leaves_nothing_behind) { hold_each(write_beside_a_reader); }

TEST(nor_do_rows_that_are_kept_for_a_view) { hold_each(write_rows_beside_a_view); }
