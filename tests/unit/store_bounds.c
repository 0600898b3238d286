/* SPDX-License-Identifier: Apache-2.0 */
/* store_bounds.c -- what counts against a bound of the store and what does not, shapes at the edge,
 * and variables that leave half assigned.
 */
#include "store_fixture.h"

/* A variable in two shards of equal size: `here` says on which ps each is. */
struct halves {
    uint64_t shape[2];
    wire_shard shards[2], *pointers[2];
    wire_function own;
    wire_initializer initial;
    wire_variable given;
};

static wire_variable *
make_halves(struct halves *halves, uint64_t rows, uint64_t row_elements, int initializer)
{
    *halves = (struct halves){
        .shape = {rows, row_elements},
        .shards = {WIRE_SHARD_INIT, WIRE_SHARD_INIT},
        .own = WIRE_FUNCTION_INIT,
        .initial = WIRE_INITIALIZER_INIT,
        .given = WIRE_VARIABLE_INIT};
    for (uint32_t i = 0; i < 2; i++) {
        wire_shard *shard = halves->pointers[i] = &halves->shards[i];
        shard->shard_id = 1 + i;
        shard->layout_epoch = 5 + i;
        shard->rows = rows / 2;
        shard->first_row = i * shard->rows;
        shard->bytes = shard->rows * row_elements * sizeof(float);
    }
    halves->own.function = (Sumac__V1__UpdateFunction)UPDATE_MOMENTUM;
    halves->initial.kind = (Sumac__V1__Initializer__Kind)initializer;
    halves->given.variable_id = 9;
    halves->given.name = "w";
    halves->given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    halves->given.shape = halves->shape;
    halves->given.n_shape = 2;
    halves->given.function = &halves->own;
    halves->given.initializer = &halves->initial;
    halves->given.shards = halves->pointers;
    halves->given.n_shards = 2;
    return &halves->given;
}

static void delete_wholly(struct store *store, struct variable *variable)
{
    store_delete(store, variable);
    while (store_is_leaving(store))
        (void)store_reclaim(store);
}

/* Its shards are in use, so none of it leaves yet. The maps of ids count against the bound, and may
 * have shrunk. */
STORE_TEST(the_bound_follows_a_variable_that_is_deleted_in_use)
{
    struct store *store = &fixture->store;
    struct shard *used[2];

    store_bound_state(store, 1u << 24);
    for (uint64_t id = 1; id <= 49; id++) /* given: the maps have just grown */
        (void)add(store, id, 1, UPDATE_SGD);
    for (uint64_t i = 0; i < 2; i++) {
        used[i] = store_shard(store, 1 + i);
        store_use(used[i]);
    }

    for (uint64_t i = 0; i < 2; i++) /* when */
        store_delete(store, used[i]->variable);

    const uint64_t bytes_max = store->bytes.held_bytes_max; /* then */
    store_share_bound(store);
    assert_int_equal(bytes_max, store->bytes.held_bytes_max);
    for (uint64_t i = 0; i < 2; i++)
        store_let_go(store, used[i]);
}

/* Those of another ps are of that one's state. */
STORE_TEST(shards_of_another_ps_take_none_of_the_state)
{
    struct store *store = &fixture->store;
    struct halves halves;
    struct variable *added = NULL;
    struct sumac_error error;
    wire_variable *given = make_halves(&halves, 2, 4096, WIRE_INITIALIZER_ASSIGNED);

    halves.shards[1].ps = 1; /* given */
    assert_int_equal(store_add(store, given, 0, &added, &error), SUMAC_OK);
    const uint64_t taken = store->state_bytes + store->own_bytes;
    delete_wholly(store, added);
    halves.shards[1].ps = 0;
    assert_int_equal(store_add(store, given, 0, &added, &error), SUMAC_OK);
    const uint64_t both = store->state_bytes + store->own_bytes;
    delete_wholly(store, added);
    assert_in_range(2 * taken, both, both + 2600); /* what is kept of the variable itself */

    halves.shards[1].ps = 1;
    store->state_bytes_max = taken - 1; /* when */
    assert_int_equal(store_add(store, given, 0, &added, &error), SUMAC_RESOURCE_EXHAUSTED);
    store->state_bytes_max = taken;
    assert_int_equal(store_add(store, given, 0, &added, &error), SUMAC_OK); /* then */
    store->state_bytes_max = taken / 2; /* there is more already */
    struct variable *more = NULL;
    assert_int_equal(
        try_add(store, 30, 4, UPDATE_SGD, WIRE_INITIALIZER_ZEROS, &more), SUMAC_RESOURCE_EXHAUSTED);
    delete_wholly(store, added);
    store_bound_state(store, 0);
}

STORE_TEST(the_largest_bound_is_no_bound)
{
    struct store *store = &fixture->store;

    store_bound_state(store, UINT64_MAX);

    delete_wholly(store, add(store, 3, ELEMENTS, UPDATE_ADAM));
    store_bound_state(store, 0);
}

STORE_TEST(rows_wider_than_a_block_and_rows_of_nothing_have_blocks)
{
    static const struct {
        uint64_t rows, row_elements;
    } cases[] = {{4, 100}, {4, 0}, {0, 4}};
    struct store *store = &fixture->store;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct halves halves;
        struct variable *added = NULL;
        struct sumac_error error;
        const wire_variable *given =
            make_halves(&halves, cases[i].rows, cases[i].row_elements, WIRE_INITIALIZER_ONES);

        assert_int_equal(store_add(store, given, 0, &added, &error), SUMAC_OK);
        assert_int_equal(fill(store, added, &error), SUMAC_OK);

        assert_int_equal(added->block_bytes, BLOCK_BYTES);
        assert_int_equal(
            store_shard(store, 2)->row_bytes,
            cases[i].rows == 0 ? 0 : cases[i].row_elements * sizeof(float));
        expect_consistent(store);
        delete_wholly(store, added);
    }
}

/* Its layout, its hyperparameters and, of random values, the seed. */
STORE_TEST(a_shard_has_what_its_variable_was_given)
{
    struct store *store = &fixture->store;
    struct halves halves;
    float first[2];

    for (uint64_t seed = 0; seed < 2; seed++) {
        struct variable *added = NULL;
        struct sumac_error error;
        wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT, *rates[] = {&rate};
        const wire_variable *given = make_halves(&halves, 4, 4, WIRE_INITIALIZER_UNIFORM);
        halves.initial.b = 1;
        halves.initial.seed = seed;
        rate.name = (Sumac__V1__HyperparameterName)UPDATE_HYPERPARAMETER_LEARNING_RATE;
        rate.value = 0.125;
        halves.own.hyperparameters = rates;
        halves.own.n_hyperparameters = 1;

        assert_int_equal(store_add(store, given, 0, &added, &error), SUMAC_OK);
        assert_int_equal(fill(store, added, &error), SUMAC_OK);

        const struct shard *shard = store_shard(store, 2);
        assert_int_equal(shard->layout_epoch, 6);
        assert_number_equal(
            shard->hyperparameters.value[UPDATE_HYPERPARAMETER_LEARNING_RATE], 0.125);
        first[seed] = first_of(shard->list[STORE_VALUE][0]);
        delete_wholly(store, added);
    }
    assert_true(first[0] < first[1] || first[0] > first[1]);
}

/* A step fills a slice of a large block at most, and few of many shards without rows. */
STORE_TEST(a_step_of_filling_is_short_whatever_the_shards_are)
{
    enum { elements = 1 << 18, count = 1000, step = 10000 };
    struct store store;
    struct variable *added = NULL;
    struct sumac_error error;
    uint64_t done = 0, shape[] = {0};
    static wire_shard shards[count], *pointers[count];
    wire_variable given = WIRE_VARIABLE_INIT;

    store_init(&store, &fixture->memory, 0, 0);
    assert_int_equal(
        try_add(&store, 1, elements, UPDATE_SGD, WIRE_INITIALIZER_ONES, &added), SUMAC_OK);
    for (int i = 0; i < 2; i++) /* the shard, then a slice */
        assert_int_equal(store_fill(&store, added, 1, &done, &error), SUMAC_OK);
    assert_in_range(store_shard(&store, 1)->fill_bytes, 1, elements * sizeof(float) / 2);
    delete_wholly(&store, added);

    for (uint32_t i = 0; i < count; i++) {
        shards[i] = (wire_shard)WIRE_SHARD_INIT;
        shards[i].shard_id = 10 + i;
        pointers[i] = &shards[i];
    }
    given.variable_id = 2;
    given.name = "w";
    given.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    given.shape = shape;
    given.n_shape = 1;
    given.shards = pointers;
    given.n_shards = count;
    assert_int_equal(store_add(&store, &given, 0, &added, &error), SUMAC_OK);
    assert_int_equal(store_fill(&store, added, step, &done, &error), SUMAC_OK);
    assert_in_range(added->made_count, 1, count / 10);
    store_deinit(&store);
}

STORE_TEST(a_shard_leaves_with_the_last_of_its_users)
{
    struct store *store = &fixture->store;
    struct variable *variable = add(store, 3, ELEMENTS, UPDATE_ASSIGN_ADD);
    struct shard *shard = store_shard(store, 3);

    store_use(shard);
    store_use(shard);
    store_delete(store, variable);

    store_let_go(store, shard);

    assert_null(store->leaving.first);
    store_let_go(store, shard);
    assert_ptr_equal(store->leaving.first, shard);
}

/* Of some blocks all elements are assigned, some of them twice, of the others none or some. */
STORE_TEST(what_is_assigned_in_part_in_whole_or_twice_leaves_nothing_behind)
{
    enum { elements = 1000 }; /* blocks of 160, whose bits take several words */
    struct store store;

    store_init(&store, &fixture->memory, 640, 0);
    for (uint64_t assigned = 0; assigned <= elements; assigned += 40) {
        struct variable *variable =
            add_with(&store, 1, elements, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
        struct shard *shard = store_shard(&store, 1);

        if (assigned > 0)
            store_assigned(&store, shard, 0, assigned * sizeof(float));
        if (assigned >= 160) /* once more, over the end of the first block */
            store_assigned(&store, shard, 400, 400);

        assert_int_equal(
            shard->unassigned_count,
            elements - (assigned >= 160 && assigned < 200 ? 200 : assigned));
        assert_int_equal(shard->unassigned == NULL, assigned == elements);
        struct check check = {.text = ""};
        struct store_sums sums = {0};
        store_check(&store, &sums, &check);
        store_check_sums(&store, &sums, &check);
        assert_string_equal(check.text, "");
        delete_wholly(&store, variable);
        assert_int_equal(store.leaving_bytes, 0);
        assert_int_equal(store.state_bytes + store.own_bytes, 0);
    }
    store_deinit(&store);
}
