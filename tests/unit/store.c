/* SPDX-License-Identifier: Apache-2.0 */
/* store.c -- what a ps holds: pools by size, ids, blocks that readers still see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "assert_number.h"
#include "store_check.h"

#define BLOCK_BYTES 64u
#define ELEMENTS 40u /* float32: 160 bytes, blocks of 64, 64 and 32 */

struct fixture {
    struct memory memory;
    uint64_t bytes_taken;
    struct store store;
};

static void *take(void *context, size_t bytes)
{
    struct fixture *fixture = context;

    fixture->bytes_taken += bytes;
    return memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    struct fixture *fixture = context;

    fixture->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

static int begin(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL)
        return 1;
    fixture->memory = (struct memory){.take = take, .give = give, .context = fixture};
    store_init(&fixture->store, &fixture->memory, BLOCK_BYTES, 0);
    *state = fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    store_deinit(&fixture->store);
    const uint64_t kept = fixture->bytes_taken;
    free(fixture);
    return kept != 0;
}

/* A vector of `elements` float32, all here, with the initial value of that kind. */
static enum sumac_status try_add_saying(
    struct store *store, uint64_t id, uint64_t elements, uint32_t function, int initializer,
    struct variable **added, struct sumac_error *error)
{
    uint64_t shape[] = {elements};
    char name[] = "v?";
    wire_shard shard = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&shard};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer initial = WIRE_INITIALIZER_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;

    name[1] = (char)('0' + id % 64);
    shard.shard_id = given.variable_id = id;
    shard.rows = elements;
    shard.bytes = elements * sizeof(float);
    own.function = (Sumac__V1__UpdateFunction)function;
    initial.kind = (Sumac__V1__Initializer__Kind)initializer;
    given.name = name;
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.function = &own;
    given.initializer = &initial;
    given.shards = shards;
    given.n_shards = 1;
    return store_add(store, &given, 0, added, error);
}

static enum sumac_status try_add(
    struct store *store, uint64_t id, uint64_t elements, uint32_t function, int initializer,
    struct variable **added)
{
    struct sumac_error error;

    return try_add_saying(store, id, elements, function, initializer, added, &error);
}

static struct variable *
add_with(struct store *store, uint64_t id, uint64_t elements, uint32_t function, int initializer)
{
    struct variable *added = NULL;
    struct sumac_error error;

    assert_int_equal(try_add(store, id, elements, function, initializer, &added), SUMAC_OK);
    assert_int_equal(store_fill(store, added, UINT64_MAX, &error), SUMAC_OK);
    assert_true(added->filled);
    return added;
}

static struct variable *add(struct store *store, uint64_t id, uint64_t elements, uint32_t function)
{
    return add_with(store, id, elements, function, SUMAC__V1__INITIALIZER__KIND__KIND_ONES);
}

static float first_of(const struct block *block)
{
    return *(const float *)(const void *)block->data;
}

/* Write `value` to every element of a block of that list, as the operation at hand. */
static struct block *
write_list(struct store *store, struct shard *shard, uint32_t list, uint32_t index, float value)
{
    struct block *block = store_block_write(store, shard->list[list][index], store->position);

    assert_non_null(block);
    for (uint32_t i = 0; i < block->bytes / sizeof value; i++)
        memcpy(block->data + i * sizeof value, &value, sizeof value);
    return block;
}

/* The value's, as the next operation. */
static struct block *
overwrite(struct store *store, struct shard *shard, uint32_t index, float value)
{
    store->position++;
    return write_list(store, shard, STORE_VALUE, index, value);
}

static void
open_view(struct store *store, struct view *view, enum view_scope scope, struct shard *shard)
{
    store_view_open(store, view, scope);
    store_use(shard);
    store_view_cover(view, shard);
}

static void close_view(struct store *store, struct view *view, struct shard *shard)
{
    store_view_uncover(view, shard);
    store_view_close(store, view);
    store_let_go(store, shard);
}

static void expect_consistent(const struct store *store)
{
    struct store_sums sums = {0};
    struct check check = {.text = ""};

    store_check(store, &sums, &check);
    store_check_sums(store, &sums, &check);
    assert_string_equal(check.text, "");
}

/* ---- variables ---- */

static void a_variable_is_cut_into_blocks(void **state)
{
    struct fixture *fixture = *state;

    add(&fixture->store, 3, ELEMENTS, UPDATE_ADAM);

    const struct shard *shard = store_shard(&fixture->store, 3);
    assert_int_equal(shard->block_count, 3);
    assert_int_equal(shard->list[STORE_VALUE][2]->bytes, 32);
    assert_number_equal(first_of(shard->list[STORE_VALUE][2]), 1);
    assert_number_equal(first_of(shard->list[1][2]), 0);
    assert_int_equal(fixture->store.state_bytes, 3 * 160);
}

/* No function of the table starts from anything but zeros: a row of the test's own does. */
static void slots_start_from_what_their_function_says(void **state)
{
    struct fixture *fixture = *state;
    const struct update_function *const adam = update_find(UPDATE_ADAM);
    struct update_function ramp = *adam;
    struct variable *added = NULL;
    struct sumac_error error;

    ramp.slot_initial[1] = 0.25;
    assert_int_equal(
        try_add(
            &fixture->store, 3, ELEMENTS, UPDATE_ADAM, SUMAC__V1__INITIALIZER__KIND__KIND_ONES,
            &added),
        SUMAC_OK);
    added->definition.function = &ramp; /* given */

    assert_int_equal(store_fill(&fixture->store, added, UINT64_MAX, &error), SUMAC_OK); /* when */

    added->definition.function = adam;
    const struct shard *shard = store_shard(&fixture->store, 3);
    assert_number_equal(first_of(shard->list[STORE_VALUE][2]), 1); /* then */
    assert_number_equal(first_of(shard->list[1][2]), 0);
    assert_number_equal(first_of(shard->list[2][0]), 0.25);
    assert_number_equal(first_of(shard->list[2][2]), 0.25);
}

/* Ten rows of four in one shard, or in two of six and four rows: the same random values. */
static void values_do_not_depend_on_the_split(void **state)
{
    struct fixture *fixture = *state;
    uint64_t shape[] = {ELEMENTS / 4, 4};
    wire_shard halves[2] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT}, whole = WIRE_SHARD_INIT;
    wire_shard *split[] = {&halves[0], &halves[1]}, *unsplit[] = {&whole};
    wire_initializer uniform = WIRE_INITIALIZER_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *added = NULL;
    struct sumac_error error;

    uniform.kind = SUMAC__V1__INITIALIZER__KIND__KIND_UNIFORM;
    uniform.b = 1;
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 2;
    given.initializer = &uniform;
    for (uint64_t i = 0; i < 2; i++) {
        halves[i].shard_id = 10 + i;
        halves[i].first_row = 6 * i;
        halves[i].rows = i == 0 ? 6 : 4;
        halves[i].bytes = halves[i].rows * 4 * sizeof(float);
    }
    whole.shard_id = 20;
    whole.rows = ELEMENTS / 4;
    whole.bytes = ELEMENTS * sizeof(float);

    given.name = "split";
    given.variable_id = 1;
    given.shards = split;
    given.n_shards = 2;
    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_OK);
    assert_int_equal(store_fill(&fixture->store, added, UINT64_MAX, &error), SUMAC_OK);
    given.name = "unsplit";
    given.variable_id = 2;
    given.shards = unsplit;
    given.n_shards = 1;
    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_OK);
    assert_int_equal(store_fill(&fixture->store, added, UINT64_MAX, &error), SUMAC_OK);

    const struct shard *second = store_shard(&fixture->store, 11);
    const struct shard *all = store_shard(&fixture->store, 20);
    assert_memory_equal(
        second->list[STORE_VALUE][0]->data, all->list[STORE_VALUE][1]->data + 32, 32);
    assert_memory_equal(
        second->list[STORE_VALUE][0]->data + 32, all->list[STORE_VALUE][2]->data, 32);
}

static void a_small_variable_takes_a_small_block(void **state)
{
    struct fixture *fixture = *state;
    struct store store;

    store_init(&store, &fixture->memory, 0, 0);
    const uint64_t before = fixture->bytes_taken;

    add(&store, 1, 64, UPDATE_SGD);

    assert_true(fixture->bytes_taken - before < 300000); /* pools and slabs, and no 1 MiB block */
    store_deinit(&store);
}

static void a_variable_whose_shards_do_not_make_it_up_is_refused(void **state)
{
    struct fixture *fixture = *state;
    uint64_t shape[] = {8};
    wire_shard shard = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&shard};
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *added = NULL;
    struct sumac_error error;

    shard.rows = 7;
    shard.bytes = 28;
    given.name = "w";
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.shards = shards;
    given.n_shards = 1;

    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_INVALID_ARGUMENT);
    assert_null(added);
}

/* 160 bytes with adam's two slots are 480; the catalogue of the other ps may be as large as it
 * likes. */
static void a_variable_without_room_is_refused_before_it_is_made(void **state)
{
    struct fixture *fixture = *state;
    uint64_t shape[] = {2 * ELEMENTS};
    wire_shard here = WIRE_SHARD_INIT, there = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&here, &there};
    wire_function adam = WIRE_FUNCTION_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *added = NULL;
    struct sumac_error error;

    adam.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM;
    here.shard_id = 1;
    there.shard_id = 2;
    there.ps = 1;
    here.rows = there.rows = ELEMENTS;
    here.bytes = there.bytes = ELEMENTS * sizeof(float);
    given.name = "w";
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.function = &adam;
    given.shards = shards;
    given.n_shards = 2;
    const uint64_t room = 3 * ELEMENTS * sizeof(float);
    fixture->store.state_bytes_max = room - 1;

    assert_int_equal(
        store_add(&fixture->store, &given, 0, &added, &error), SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_non_null(strstr(error.text, "variable w: ps 0"));
    assert_null(added);
    assert_int_equal(fixture->store.state_bytes, 0);

    fixture->store.state_bytes_max = room; /* what is kept beside the values counts, too */
    assert_int_equal(
        store_add(&fixture->store, &given, 0, &added, &error), SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(fixture->store.own_bytes, 0);

    fixture->store.state_bytes_max = room + 8192;
    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_OK);
    store_delete(&fixture->store, added);
    assert_int_equal(fixture->store.own_bytes, 0);
}

/* Thousands of shards without rows: what they take is counted, and given back. */
static void shards_without_rows_take_of_the_state(void **state)
{
    struct fixture *fixture = *state;

    enum { count = 4096, variables = 8 };
    static wire_shard shards[count];
    static wire_shard *pointers[count];
    struct variable *added[variables];
    uint64_t shape[] = {0};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;
    struct sumac_error error;
    const uint64_t before = fixture->bytes_taken;
    own.function = (Sumac__V1__UpdateFunction)UPDATE_SGD;
    given.name = "w";
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.function = &own;
    given.shards = pointers;
    given.n_shards = count;

    for (uint64_t id = 1; id <= variables; id++) {
        for (uint32_t i = 0; i < count; i++) {
            shards[i] = (wire_shard)WIRE_SHARD_INIT;
            shards[i].shard_id = id * count + i;
            pointers[i] = &shards[i];
        }
        given.variable_id = id;
        assert_int_equal(store_add(&fixture->store, &given, 0, &added[id - 1], &error), SUMAC_OK);
    }
    const uint64_t taken = fixture->bytes_taken - before;
    assert_true(taken <= fixture->store.own_bytes);
    fixture->store.state_bytes_max = fixture->store.own_bytes + count * 256;
    given.variable_id = variables + 1;
    struct variable *one_more = NULL;
    assert_int_equal(
        store_add(&fixture->store, &given, 0, &one_more, &error), SUMAC_RESOURCE_EXHAUSTED);
    for (uint32_t i = 0; i < variables; i++)
        store_delete(&fixture->store, added[i]);

    assert_int_equal(fixture->store.own_bytes, 0);
    assert_true(fixture->bytes_taken - before < taken / 3); /* the map of shards stays */
}

static void a_deleted_variable_is_not_found_and_stays_for_its_users(void **state)
{
    struct fixture *fixture = *state;
    struct variable *variable = add(&fixture->store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(&fixture->store, 3);

    store_use(shard);

    store_delete(&fixture->store, variable);

    assert_null(store_shard(&fixture->store, 3));
    assert_null(store_find_by_name(&fixture->store, "v3"));
    assert_number_equal(first_of(shard->list[STORE_VALUE][0]), 1);
    assert_int_equal(fixture->store.state_bytes, 160);
    store_let_go(&fixture->store, shard);
    assert_int_equal(fixture->store.state_bytes, 0);
}

/* ---- views ---- */

static void without_a_reader_a_block_is_written_in_place(void **state)
{
    struct fixture *fixture = *state;

    add(&fixture->store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(&fixture->store, 3);
    const struct block *before = shard->list[STORE_VALUE][0];

    assert_ptr_equal(overwrite(&fixture->store, shard, 0, 7), before);
    assert_int_equal(fixture->store.view_bytes, 0);
}

static void a_view_sees_its_position_whatever_is_written(void **state)
{
    struct fixture *fixture = *state;
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
    assert_int_equal(store->view_bytes, 128);
    close_view(store, &late, shard);
    assert_int_equal(store->view_bytes, 64);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, early.position)), 10);
    close_view(store, &early, shard);
    assert_int_equal(store->view_bytes, 0);
}

/* Adam's m and v are lists like the value's: a view of slots sees all three as they were, and one
 * of values has nobody keep slots for it. */
static void a_view_covers_slots_if_it_says_so(void **state)
{
    struct fixture *fixture = *state;
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

    assert_int_equal(store->view_bytes, 3 * BLOCK_BYTES);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, of_slots.position)), 1);
    assert_number_equal(first_of(store_block_at(shard, M, 0, of_slots.position)), 10);
    assert_number_equal(first_of(store_block_at(shard, V, 0, of_slots.position)), 0);
    assert_number_equal(first_of(shard->list[M][0]), 20);
    expect_consistent(store);
    close_view(store, &of_slots, shard);
    assert_int_equal(store->view_bytes, BLOCK_BYTES); /* the value's, for the other view */
    expect_consistent(store);
    close_view(store, &of_values, shard);
    assert_int_equal(store->view_bytes, 0);
}

/* A later view of values does not make a slot's block that an earlier one of slots has seen the
 * last of be kept. */
static void a_slot_is_kept_for_views_of_slots_only(void **state)
{
    struct fixture *fixture = *state;
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

    assert_int_equal(store->view_bytes, BLOCK_BYTES); /* then: what was there at first */
    assert_number_equal(first_of(store_block_at(shard, 1, 0, of_slots.position)), 0);
    expect_consistent(store);
    close_view(store, &of_values, shard);
    close_view(store, &of_slots, shard);
}

static void a_slot_is_kept_for_views_of_its_own_shard_only(void **state)
{
    struct fixture *fixture = *state;
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
static void an_operation_writes_again_to_what_it_has_made(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = &fixture->store;
    struct view early, late;
    (void)add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    (void)add(store, 4, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3), *other = store_shard(store, 4);
    open_view(store, &early, VIEW_OF_VALUES, shard);
    struct block *made = overwrite(store, shard, 0, 10);
    open_view(store, &late, VIEW_OF_VALUES, other); /* given */

    assert_ptr_equal(write_list(store, shard, STORE_VALUE, 0, 20), made);

    assert_int_equal(store->view_bytes, BLOCK_BYTES);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, early.position)), 1);
    expect_consistent(store);
    close_view(store, &late, other);
    close_view(store, &early, shard);
}

/* Old blocks of every list leave their place's chain, wherever in it they are. */
static void old_blocks_of_slots_are_freed_out_of_the_middle(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = &fixture->store;
    struct view views[3];
    (void)add(store, 3, ELEMENTS, UPDATE_ADAM);
    struct shard *shard = store_shard(store, 3);
    store->view_bytes_max = 9 * BLOCK_BYTES;
    for (int i = 0; i < 3; i++) { /* given: three old blocks in each list, seen by one view each */
        open_view(store, &views[i], VIEW_OF_SLOTS_TOO, shard);
        store->position++;
        for (uint32_t list = 0; list < shard->list_count; list++)
            (void)write_list(store, shard, list, 1, (float)(10 * i + 10));
    }
    assert_int_equal(store->view_bytes, 9 * BLOCK_BYTES);

    close_view(store, &views[1], shard); /* when */

    assert_int_equal(store->view_bytes, 6 * BLOCK_BYTES); /* then */
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

static void the_oldest_view_is_ended_beyond_the_bound(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = &fixture->store;
    struct view early, late;

    add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);
    store->view_bytes_max = 128;
    open_view(store, &early, VIEW_OF_VALUES, shard);
    overwrite(store, shard, 0, 10);
    overwrite(store, shard, 1, 10);
    open_view(store, &late, VIEW_OF_VALUES, shard);

    overwrite(store, shard, 0, 20);

    assert_true(early.ended);
    assert_false(late.ended);
    assert_true(store->view_bytes <= 128);
    assert_number_equal(first_of(store_block_at(shard, STORE_VALUE, 0, late.position)), 10);
    close_view(store, &early, shard);
    close_view(store, &late, shard);
}

static void lent_bytes_outlive_their_view_and_their_shard(void **state)
{
    struct fixture *fixture = *state;
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
    assert_number_equal(first_of(lent), 1);
    assert_number_equal(first_of(fresh), 20);

    store_block_released(store, lent);
    store_block_released(store, fresh);
    assert_int_equal(store->view_bytes, 0);
}

/* Runs of elements that begin and end anywhere, some of them twice. */
static void a_shard_is_assigned_when_all_its_elements_are(void **state)
{
    struct fixture *fixture = *state;
    const struct sumac_range runs[] = {{190, 10}, {64, 1}, {0, 64}, {70, 121}, {60, 9}};
    struct variable *variable =
        add_with(&fixture->store, 1, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    struct shard *shard = variable->placements[0].here;

    assert_int_equal(fixture->store.state_bytes, 200 * sizeof(float) + 32); /* a bit for each */

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        store_assigned(
            &fixture->store, shard, runs[i].first * sizeof(float), runs[i].count * sizeof(float));

    assert_non_null(shard->unassigned);
    assert_int_equal(shard->unassigned_count, 1); /* 69 */
    store_assigned(&fixture->store, shard, 69 * sizeof(float), sizeof(float));
    assert_null(shard->unassigned);
    assert_int_equal(fixture->store.state_bytes, 200 * sizeof(float));
}

static void what_is_never_assigned_leaves_nothing_behind(void **state)
{
    struct fixture *fixture = *state;
    struct variable *variable =
        add_with(&fixture->store, 1, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);

    store_delete(&fixture->store, variable);

    assert_int_equal(fixture->store.state_bytes, 0);
}

/* A bit for each element, until it is: from what a variable with values of its own takes, up. */
static void what_is_to_be_assigned_is_within_the_bound_of_the_state(void **state)
{
    enum { elements = 65536 };
    struct fixture *fixture = *state;
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 1, elements, UPDATE_SGD); /* given */
    store->state_bytes_max = store->state_bytes + store->own_bytes;
    store_delete(store, variable);
    uint64_t refusals = 0;

    while (try_add(store, 2, elements, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED, &variable) !=
           SUMAC_OK) { /* when */
        store->state_bytes_max += 64;
        assert_true(++refusals < elements);
    }

    assert_true(store->state_bytes + store->own_bytes <= store->state_bytes_max); /* then */
    assert_true(store->state_bytes + store->own_bytes > store->state_bytes_max - 64);
}

#define store_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* Variables of one vector each until one is refused; every `apart`-th stays. Returns what the
 * refusal said. */
static const char *
make_and_delete(struct store *store, uint64_t first, uint64_t bytes, uint64_t apart)
{
    enum { most = 4096 };
    static struct variable *made[most];
    static char text[SUMAC_ERROR_TEXT_BYTES];
    struct sumac_error error;
    uint64_t count = 0;
    text[0] = '\0';
    while (count < most && text[0] == '\0') {
        if (try_add_saying(
                store, first + count, bytes / 4, UPDATE_SGD,
                SUMAC__V1__INITIALIZER__KIND__KIND_ONES, &made[count], &error) != SUMAC_OK)
            memcpy(text, error.text, sizeof text);
        else if (store_fill(store, made[count++], UINT64_MAX, &error) != SUMAC_OK) {
            memcpy(text, error.text, sizeof text);
            store_delete(store, made[--count]);
        }
    }
    for (uint64_t i = 0; i < count; i++)
        if (i % apart != 0)
            store_delete(store, made[i]);
    return text;
}

static void what_lies_between_small_variables_is_of_the_state(void **state)
{
    enum { STATE = 4 << 20 };
    struct fixture *fixture = *state;
    struct store store;
    uint64_t id = 1, in_use = 0, full = 0;
    store_init(&store, &fixture->memory, 0, 0);
    store_bound_state(&store, STATE);

    for (size_t bytes = 512; bytes <= 4096; bytes = sized_pool_bytes(bytes + 1)) {
        const char *text =
            make_and_delete(&store, id, bytes, (MEMORY_SLAB_BYTES - 64) / bytes); /* when */
        id += 4096;
        in_use = store.state_bytes + store.own_bytes;
        full += strstr(text, " bytes for variables (of 4194304, its --state-max), though") != NULL;
        assert_true(fixture->bytes_taken <= STATE + SIZED_POOL_EMPTY_BYTES_MAX); /* then */
        assert_in_range(store_state_bytes(&store), in_use, STATE);
    }

    assert_true(full > 0);
    assert_true(in_use < STATE * 3 / 4);
    while (store.variables.first != NULL)
        store_delete(&store, store.variables.first);
    assert_true(fixture->bytes_taken <= SIZED_POOL_EMPTY_BYTES_MAX + 65536); /* and the maps */
    assert_true(store_state_bytes(&store) <= 65536);
    add(&store, id, (3 << 20) / sizeof(float), UPDATE_SGD);
    store_deinit(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(a_variable_is_cut_into_blocks),
        store_test(slots_start_from_what_their_function_says),
        store_test(values_do_not_depend_on_the_split),
        store_test(a_small_variable_takes_a_small_block),
        store_test(a_variable_whose_shards_do_not_make_it_up_is_refused),
        store_test(a_variable_without_room_is_refused_before_it_is_made),
        store_test(shards_without_rows_take_of_the_state),
        store_test(what_lies_between_small_variables_is_of_the_state),
        store_test(a_deleted_variable_is_not_found_and_stays_for_its_users),
        store_test(without_a_reader_a_block_is_written_in_place),
        store_test(a_view_sees_its_position_whatever_is_written),
        store_test(a_view_covers_slots_if_it_says_so),
        store_test(a_slot_is_kept_for_views_of_slots_only),
        store_test(a_slot_is_kept_for_views_of_its_own_shard_only),
        store_test(an_operation_writes_again_to_what_it_has_made),
        store_test(old_blocks_of_slots_are_freed_out_of_the_middle),
        store_test(the_oldest_view_is_ended_beyond_the_bound),
        store_test(lent_bytes_outlive_their_view_and_their_shard),
        store_test(a_shard_is_assigned_when_all_its_elements_are),
        store_test(what_is_never_assigned_leaves_nothing_behind),
        store_test(what_is_to_be_assigned_is_within_the_bound_of_the_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
