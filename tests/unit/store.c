/* SPDX-License-Identifier: Apache-2.0 */
/* store.c -- what a ps holds: variables of blocks, within a bound, and what of them is assigned. */
#include <inttypes.h>
#include <stdio.h>

#include "store_fixture.h"

STORE_TEST(a_variable_is_cut_into_blocks)
{
    add(&fixture->store, 3, ELEMENTS, UPDATE_ADAM);

    const struct shard *shard = store_shard(&fixture->store, 3);
    assert_int_equal(shard->block_count, 3);
    assert_int_equal(shard->list[STORE_VALUE][2]->bytes, 32);
    assert_number_equal(first_of(shard->list[STORE_VALUE][2]), 1);
    assert_number_equal(first_of(shard->list[1][2]), 0);
    assert_int_equal(fixture->store.state_bytes, 3 * 160);
}

/* A store has variables of several: what each adds is cut as it said then, and counted so. */
STORE_TEST(the_size_of_blocks_is_a_variables_own)
{
    struct store *store = &fixture->store;

    (void)add(store, 3, ELEMENTS, UPDATE_ADAM);
    store->block_bytes = BLOCK_BYTES / 2; /* given */

    struct variable *finer = add(store, 4, ELEMENTS, UPDATE_ADAM); /* when */

    struct shard *coarse = store_shard(store, 3), *fine = store_shard(store, 4); /* then */
    assert_int_equal(coarse->block_count, 3);
    assert_int_equal(fine->block_count, 5);
    for (uint32_t list = 0; list < fine->list_count; list++) {
        assert_int_equal(coarse->list[list][0]->bytes, BLOCK_BYTES);
        assert_int_equal(fine->list[list][4]->bytes, BLOCK_BYTES / 2);
    }
    assert_int_equal(store_block_byte(coarse, STORE_VALUE, 100).index, 1);
    assert_int_equal(store_block_byte(coarse, STORE_VALUE, 100).within, 36);
    assert_int_equal(store_block_byte(fine, STORE_VALUE, 100).index, 3);
    assert_int_equal(store_block_byte(fine, STORE_VALUE, 100).within, 4);
    assert_true(finer->own_bytes > store_find(store, 3)->own_bytes);
    expect_consistent(store);
}

STORE_TEST(slots_start_from_what_their_function_says)
{
    const struct variable *const given = add(&fixture->store, 3, ELEMENTS, UPDATE_FTRL); /* when */
    const struct shard *shard = store_shard(&fixture->store, 3);

    assert_int_equal(given->slot_count, 2);
    assert_number_equal(first_of(shard->list[STORE_VALUE][2]), 1); /* then */
    assert_number_equal(first_of(shard->list[1][0]), 0.1f);
    assert_number_equal(first_of(shard->list[1][2]), 0.1f);
    assert_number_equal(first_of(shard->list[2][2]), 0);
}

/* The last slot of rmsprop is there with centered alone. */
STORE_TEST(a_slot_that_is_not_asked_for_is_not_kept)
{
    const struct variable *const plain = add(&fixture->store, 3, ELEMENTS, UPDATE_RMSPROP);

    assert_int_equal(plain->slot_count, 2);
    assert_int_equal(store_shard(&fixture->store, 3)->list_count, 3);
    assert_int_equal(fixture->store.state_bytes, 3 * ELEMENTS * sizeof(float));
}

/* 40 elements of bfloat16 are 80 bytes; each block of a slot has the elements of the value's block
 * beside it, in float32. */
STORE_TEST(slots_of_a_half_type_are_float32)
{
    struct store *store = &fixture->store;
    struct sumac_error error;
    struct variable *half = NULL;
    uint64_t done = 0;

    assert_int_equal(
        try_add_of(
            store, SUMAC_BFLOAT16, 3, ELEMENTS, UPDATE_FTRL,
            SUMAC__V1__INITIALIZER__KIND__KIND_ONES, &half, &error),
        SUMAC_OK);
    const uint64_t promised = store->state_bytes;
    while (!half->filled) /* when */
        assert_int_equal(store_fill(store, half, 1, &done, &error), SUMAC_OK);

    const struct shard *shard = store_shard(store, 3);
    assert_int_equal(promised, ELEMENTS * (2 + 4 + 4)); /* then */
    assert_int_equal(store->state_bytes, promised);
    assert_int_equal(shard->block_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(shard->list[STORE_VALUE][i]->bytes, i < 2 ? 32 : 16);
        assert_int_equal(shard->list[1][i]->bytes, i < 2 ? 64 : 32);
        const float *const last =
            (const float *)(const void *)(shard->list[1][i]->data + shard->list[1][i]->bytes) - 1;
        assert_number_equal(*last, 0.1f);
        assert_number_equal(first_of(shard->list[2][i]), 0);
    }
    expect_consistent(store);
    store_delete(store, half);
    while (store_is_leaving(store))
        (void)store_reclaim(store);
    expect_consistent(store);
    assert_int_equal(store->state_bytes + store->own_bytes + store->leaving_bytes, 0);
}

/* Ten rows of four in one shard, or in two of six and four rows: the same random values. */
STORE_TEST(values_do_not_depend_on_the_split)
{
    uint64_t shape[] = {ELEMENTS / 4, 4};
    wire_shard halves[2] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT}, whole = WIRE_SHARD_INIT;
    wire_shard *split[] = {&halves[0], &halves[1]}, *unsplit[] = {&whole};
    wire_initializer uniform = WIRE_INITIALIZER_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *added = NULL;
    struct sumac_error error;

    uniform.kind = SUMAC__V1__INITIALIZER__KIND__KIND_UNIFORM;
    uniform.a = 2;
    uniform.b = 3;
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
    assert_int_equal(fill(&fixture->store, added, &error), SUMAC_OK);
    given.name = "unsplit";
    given.variable_id = 2;
    given.shards = unsplit;
    given.n_shards = 1;
    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_OK);
    assert_int_equal(fill(&fixture->store, added, &error), SUMAC_OK);

    const struct shard *second = store_shard(&fixture->store, 11);
    const struct shard *all = store_shard(&fixture->store, 20);
    assert_true(first_of(second->list[STORE_VALUE][0]) > 2);
    assert_true(first_of(second->list[STORE_VALUE][0]) < 3);
    assert_memory_equal(
        second->list[STORE_VALUE][0]->data, all->list[STORE_VALUE][1]->data + 32, 32);
    assert_memory_equal(
        second->list[STORE_VALUE][0]->data + 32, all->list[STORE_VALUE][2]->data, 32);
}

/* And all that leaves with it is given back. */
static void delete_wholly(struct store *store, struct variable *variable)
{
    store_delete(store, variable);
    while (store_is_leaving(store))
        (void)store_reclaim(store);
}

STORE_TEST(a_small_variable_takes_a_small_block)
{
    struct store store;

    store_init(&store, &fixture->memory, 0, 0);
    const uint64_t before = fixture->bytes_taken;

    add(&store, 1, 64, UPDATE_SGD);

    assert_true(fixture->bytes_taken - before < 400000); /* pools and slabs, and no 1 MiB block */
    store_deinit(&store);
}

STORE_TEST(a_variable_whose_shards_do_not_make_it_up_is_refused)
{
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
STORE_TEST(a_variable_without_room_is_refused_before_it_is_made)
{
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
    assert_non_null(
        strstr(error.text, "its shards have 160, and their slots as much each, and what is kept"));
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

STORE_TEST(what_has_no_room_says_what_its_values_take_alone)
{
    struct variable *added = NULL;
    struct sumac_error error;

    fixture->store.state_bytes_max = 1;

    assert_int_equal(
        try_add_saying(
            &fixture->store, 3, ELEMENTS, UPDATE_SGD, SUMAC__V1__INITIALIZER__KIND__KIND_ONES,
            &added, &error),
        SUMAC_RESOURCE_EXHAUSTED);

    assert_non_null(strstr(error.text, "its shards have 160, and what is kept beside them"));
}

STORE_TEST(a_variable_with_no_shard_here_is_filled_at_once)
{
    uint64_t shape[] = {ELEMENTS};
    wire_shard there = WIRE_SHARD_INIT, *shards[] = {&there};
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *added = NULL;
    struct sumac_error error;

    there.shard_id = 2;
    there.ps = 1;
    there.rows = ELEMENTS;
    there.bytes = ELEMENTS * sizeof(float);
    given.name = "w";
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.shards = shards;
    given.n_shards = 1;

    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_OK);

    assert_true(added->filled);
    assert_null(fixture->store.unfilled.first); /* no step is spent on it */
    store_delete(&fixture->store, added);
}

/* What is kept beside the blocks counts as held, and leaves less for them; old blocks that take
 * more than the views' bound leave none for spare ones. */
STORE_TEST(bounds_that_are_exceeded_leave_nothing)
{
    struct store *store = &fixture->store;
    const uint64_t beside = 1 << 20;

    add(store, 3, ELEMENTS, UPDATE_SGD);
    store->controller_bytes += beside;
    assert_in_range(store_state_bytes(store), beside, beside + 65536);
    store_bound_state(store, beside / 2);
    assert_int_equal(store->bytes.held_bytes_max, SIZED_POOL_EMPTY_BYTES_MAX);
    store->view_bytes_max = 64;
    store->view_bytes = 65;

    store_share_bound(store);

    assert_int_equal(store->bytes.spare_bytes_max, 0);
    store->view_bytes = 0;
    store->controller_bytes -= beside;
    store_bound_state(store, 0);
}

/* ps 0 says it again when it has not heard the answer. */
STORE_TEST(a_variable_that_is_published_again_counts_once)
{
    struct variable *variable = add(&fixture->store, 3, ELEMENTS, UPDATE_ADAM);

    store_publish(&fixture->store, variable);
    store_publish(&fixture->store, variable);

    assert_int_equal(fixture->store.variable_count, 1);
}

/* Thousands of shards without rows: what they take is counted, and given back. */
STORE_TEST(shards_without_rows_take_of_the_state)
{
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
        delete_wholly(&fixture->store, added[i]);

    assert_int_equal(fixture->store.own_bytes, 0);
    assert_true(fixture->bytes_taken - before < taken / 3); /* the map of shards stays */
}

STORE_TEST(a_deleted_variable_is_not_found_and_stays_for_its_users)
{
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

/* A block at a time, from the last one, of the last slot, on; and meanwhile it counts no more. */
STORE_TEST(what_is_deleted_is_given_back_a_block_at_a_time)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_ADAM);
    const uint64_t bytes = store->state_bytes;
    const uint32_t blocks = 3 * variable->shards[0].block_count;
    uint32_t pieces = 0;

    store_delete(store, variable);

    assert_int_equal(store->state_bytes + store->own_bytes, 0);
    assert_true(store->leaving_bytes > bytes);
    for (uint64_t left = bytes; store_is_leaving(store); pieces++) {
        const uint64_t given = store_reclaim(store);
        assert_in_range(given, 1, store->block_bytes);
        left -= given;
    }
    assert_int_equal(pieces, blocks);
    assert_int_equal(store->leaving_bytes, 0);
}

/* As much again finds room at once, though the bound has none for both: what leaves is not of it.
 */
STORE_TEST(what_leaves_is_beside_the_bound_of_the_state)
{
    enum { STATE = 5 << 20, elements = (4 << 20) / sizeof(float) };
    struct store store;

    store_init(&store, &fixture->memory, 0, 1); /* none is kept spare */
    store_bound_state(&store, STATE);
    struct variable *variable = add(&store, 1, elements, UPDATE_SGD); /* given */
    store_delete(&store, variable);
    const uint64_t leaving = store.leaving_bytes;
    assert_true(leaving > elements * sizeof(float));

    add(&store, 2, elements, UPDATE_SGD); /* when */

    assert_int_equal(store.leaving_bytes, leaving); /* then */
    assert_in_range(store_state_bytes(&store), elements * sizeof(float), STATE);
    while (store_is_leaving(&store))
        (void)store_reclaim(&store);
    assert_true(fixture->bytes_taken <= STATE + SIZED_POOL_EMPTY_BYTES_MAX);
    expect_consistent(&store);
    store_deinit(&store);
}

/* Each goes when its last user lets go, and looks at no other. */
STORE_TEST(a_shard_leaves_for_itself)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);

    store_use(shard);
    store_delete(store, variable);
    assert_false(store_is_leaving(store));
    assert_int_equal(store->deleted_count, 1);

    store_let_go(store, shard);

    assert_ptr_equal(store->leaving.first, shard);
    assert_int_equal(store->deleted_count, 0);
}

STORE_TEST(a_shard_that_is_used_keeps_its_variable_when_another_has_left)
{
    struct store *store = &fixture->store;
    uint64_t shape[] = {ELEMENTS};
    wire_shard halves[2] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT};
    wire_shard *shards[] = {&halves[0], &halves[1]};
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *variable = NULL;
    struct sumac_error error;

    for (uint64_t i = 0; i < 2; i++) {
        halves[i].shard_id = 10 + i;
        halves[i].first_row = i * ELEMENTS / 2;
        halves[i].rows = ELEMENTS / 2;
        halves[i].bytes = ELEMENTS / 2 * sizeof(float);
    }
    given.name = "split";
    given.variable_id = 1;
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.shards = shards;
    given.n_shards = 2;
    assert_int_equal(store_add(store, &given, 0, &variable, &error), SUMAC_OK);
    assert_int_equal(fill(store, variable, &error), SUMAC_OK);
    struct shard *used = store_shard(store, 11);
    store_use(used);

    delete_wholly(store, variable);

    assert_ptr_equal(used->variable, variable);
    assert_int_equal(variable->here_count, 1);
    assert_int_equal(store->own_bytes, variable->own_bytes);
    assert_int_equal(store->leaving_bytes, 0);
    store_let_go(store, used);
}

/* The next that are taken of so many bytes have bits everywhere. */
static void leave_ones_behind(struct store *store, size_t bytes)
{
    void *taken[32];

    for (size_t i = 0; i < 32; i++) {
        taken[i] = sized_pool_take(&store->bytes, bytes);
        assert_non_null(taken[i]);
        memset(taken[i], 0xff, bytes);
    }
    for (size_t i = 0; i < 32; i++)
        sized_pool_give(&store->bytes, taken[i], bytes);
}

/* Runs of elements that begin and end anywhere, some of them twice. */
STORE_TEST(a_shard_is_assigned_when_all_its_elements_are)
{
    const struct sumac_range runs[] = {{190, 10}, {64, 1}, {0, 64}, {70, 121}, {60, 9}};

    leave_ones_behind(&fixture->store, sizeof(struct unassigned) + 8);
    struct variable *variable =
        add_with(&fixture->store, 1, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    struct shard *shard = variable->placements[0].here;

    expect_consistent(&fixture->store);
    /* of each of 13 blocks a pointer, a count and a word of bits */
    assert_int_equal(fixture->store.state_bytes, 200 * sizeof(float) + 13 * 24);

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        store_assigned(
            &fixture->store, shard, runs[i].first * sizeof(float), runs[i].count * sizeof(float));

    assert_non_null(shard->unassigned);
    assert_int_equal(shard->unassigned_count, 1); /* 69 */
    store_assigned(&fixture->store, shard, 69 * sizeof(float), sizeof(float));
    assert_null(shard->unassigned);
    assert_int_equal(fixture->store.state_bytes, 200 * sizeof(float));
    (void)add_with(&fixture->store, 2, 32, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED); /* of 2 blocks */
    assert_int_equal(fixture->store.state_bytes, 232 * sizeof(float) + 2 * 24);
}

STORE_TEST(what_is_never_assigned_leaves_nothing_behind)
{
    struct variable *variable =
        add_with(&fixture->store, 1, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);

    store_delete(&fixture->store, variable);

    assert_int_equal(fixture->store.state_bytes, 0);
}

/* Its shards are made as it is filled: those that are not made yet are of the state, too. */
STORE_TEST(what_is_half_made_leaves_nothing_behind)
{
    struct store *store = &fixture->store;
    struct variable *variable = NULL;
    struct sumac_error error;
    uint64_t done, at_first = 0;

    for (uint32_t fills = 0; fills < 4; fills++) {
        assert_int_equal(
            try_add(store, 1 + fills, 200, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED, &variable),
            SUMAC_OK);
        if (fills == 0)
            at_first = store->state_bytes;
        for (uint32_t i = 0; i < fills; i++)
            assert_int_equal(store_fill(store, variable, 1, &done, &error), SUMAC_OK);
        assert_int_equal(variable->made_count, fills > 0); /* given */
        assert_false(variable->filled);
        assert_int_equal(store->state_bytes, at_first);

        delete_wholly(store, variable); /* when */

        assert_int_equal(store->state_bytes, 0); /* then */
        assert_int_equal(store->leaving_bytes, 0);
        expect_consistent(store);
    }
}

/* A bit for each element, until it is: from what a variable with values of its own takes, up. */
STORE_TEST(what_is_to_be_assigned_is_within_the_bound_of_the_state)
{
    enum { elements = 65536 };
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
        else if (fill(store, made[count++], &error) != SUMAC_OK) {
            memcpy(text, error.text, sizeof text);
            delete_wholly(store, made[--count]);
        }
    }
    char in_use[64]; /* by what there is beside the one that was refused */
    (void)snprintf(
        in_use, sizeof in_use, " take %" PRIu64 ":", store->state_bytes + store->own_bytes);
    assert_true(strstr(text, "though") == NULL || strstr(text, in_use) != NULL);
    for (uint64_t i = 0; i < count; i++)
        if (i % apart != 0)
            delete_wholly(store, made[i]);
    return text;
}

STORE_TEST(what_lies_between_small_variables_is_of_the_state)
{
    enum { STATE = 4 << 20 };
    struct store store;
    uint64_t id = 1, in_use = 0, full = 0;
    store_init(&store, &fixture->memory, 0, 0);
    store_bound_state(&store, STATE);

    for (size_t bytes = 512; bytes <= 4096; bytes = sized_pool_bytes(bytes + 1)) {
        /* when */
        const char *text = make_and_delete(&store, id, bytes, (MEMORY_SLAB_BYTES - 64) / bytes);
        id += 4096;
        in_use = store.state_bytes + store.own_bytes;
        full += strstr(text, " bytes for variables (of 4194304, its --state-max), though") != NULL;
        assert_true(fixture->bytes_taken <= STATE + SIZED_POOL_EMPTY_BYTES_MAX); /* then */
        assert_in_range(store_state_bytes(&store), in_use, STATE);
    }

    assert_true(full > 0);
    assert_true(in_use < STATE * 3 / 4);
    while (store.variables.first != NULL)
        delete_wholly(&store, store.variables.first);
    assert_true(fixture->bytes_taken <= SIZED_POOL_EMPTY_BYTES_MAX + 65536); /* and the maps */
    assert_true(store_state_bytes(&store) <= 65536);
    add(&store, id, (3 << 20) / sizeof(float), UPDATE_SGD);
    store_deinit(&store);
}

/* And what is kept of its slots' blocks: not a byte less than they take. */
STORE_TEST(slots_take_of_the_state_as_much_as_values)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 1, 256 * ELEMENTS, UPDATE_ADAM); /* given */
    const uint64_t blocks = store_shard(store, 1)->block_count;
    const uint64_t plain_bytes = add(store, 2, 256 * ELEMENTS, UPDATE_ASSIGN_ADD)->own_bytes;
    const uint64_t taken = 3 * 256 * ELEMENTS * sizeof(float) + variable->own_bytes;

    assert_true(
        variable->own_bytes - plain_bytes >=
        2 * blocks * (sizeof(struct block) + sizeof(struct block *)));

    delete_wholly(store, variable);
    delete_wholly(store, store_find(store, 2));
    store->state_bytes_max = taken - 1; /* when */
    assert_int_equal(
        try_add(store, 3, 256 * ELEMENTS, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS, &variable),
        SUMAC_RESOURCE_EXHAUSTED);
    store->state_bytes_max = taken;
    assert_int_equal(
        try_add(store, 3, 256 * ELEMENTS, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS, &variable),
        SUMAC_OK);
}

STORE_TEST(shards_whose_bytes_wrap_around_are_refused)
{
    uint64_t shape[] = {8};
    wire_shard shards[] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT};
    wire_shard *pointers[] = {&shards[0], &shards[1]};
    wire_variable given = WIRE_VARIABLE_INIT;
    struct variable *added = NULL;
    struct sumac_error error;

    shards[0].shard_id = 1;
    shards[1].shard_id = 2;
    shards[0].ps = shards[1].ps = 1; /* elsewhere: nothing of them is made here */
    shards[0].rows = shards[1].rows = 8;
    shards[0].bytes = UINT64_C(1) << 63;
    shards[1].bytes = (UINT64_C(1) << 63) + 32; /* together 32, as the shape has */
    given.name = "w";
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.shards = pointers;
    given.n_shards = 2;

    assert_int_equal(store_add(&fixture->store, &given, 0, &added, &error), SUMAC_INVALID_ARGUMENT);
    assert_null(added);
}
