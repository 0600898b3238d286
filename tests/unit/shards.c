/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c (test) -- variables that are split: into what, what a part of one is, and what is said
 * of what cannot be. What is read and written of them is the conformance cases'
 * (tests/conformance/sharded.json). */

#include "unit.h"
#include "sumac/variable.h"
#include "../returning.h"

static struct sumac_strategy *strategy_of(enum sumac_strategy_kind kind, uint32_t replicas)
{
    const struct sumac_strategy_options options = {
        .kind = kind, .replicas = replicas, .timeout_ms = 200};
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    return strategy;
}

/* 0, 1, 2, … */
static struct sumac_value *counted(struct sumac_shape shape)
{
    float elements[64];

    for (int i = 0; i < 64; i++)
        elements[i] = (float)i;
    return sumac_value_tensor(SUMAC_FLOAT32, shape, elements);
}

static struct sumac_variable *variable_of(
    struct sumac_strategy *strategy, struct sumac_shape shape,
    struct sumac_variable_options options)
{
    struct sumac_value *initial = counted(shape);
    struct sumac_variable *variable = NULL;

    options.name = "w";
    options.initial = initial;
    assert_int_equal(sumac_variable_create(strategy, &options, &variable, NULL), SUMAC_OK);
    sumac_value_unref(initial);
    return variable;
}

static const struct sumac_variable_options in_two = {
    .partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 2}};

static void expect_printed(struct sumac_value *value, const char *expected)
{
    char text[512];

    (void)sumac_value_print(value, text, sizeof text);
    assert_string_equal(text, expected);
    sumac_value_unref(value);
}

static void expect_shard(struct sumac_variable *variable, uint32_t index, const char *expected)
{
    struct sumac_value *value = NULL;

    assert_int_equal(sumac_variable_shard(variable, index, &value, NULL), SUMAC_OK);
    expect_printed(value, expected);
}

/* ---- into what ---- */

TEST(the_first_shards_have_the_rows_that_are_left_over)
{
    static const enum sumac_strategy_kind kinds[] = {
        SUMAC_STRATEGY_DEFAULT, SUMAC_STRATEGY_ONE_DEVICE, SUMAC_STRATEGY_MIRRORED};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct sumac_strategy *strategy =
            strategy_of(kinds[i], kinds[i] == SUMAC_STRATEGY_MIRRORED ? 2 : 1);
        struct sumac_variable *variable = variable_of(strategy, SUMAC_SHAPE(5), in_two);

        assert_int_equal(sumac_variable_shards(variable), 2);
        expect_shard(variable, 0, "float32[3] 0 1 2");
        expect_shard(variable, 1, "float32[2] 3 4");
        sumac_variable_destroy(variable);
        sumac_strategy_destroy(strategy);
    }
}

TEST(what_has_no_rows_is_not_split)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);
    const struct sumac_shape shapes[] = {SUMAC_SCALAR, SUMAC_SHAPE(0, 3)};
    static const char *const whole[] = {"float32[] 0", "float32[0, 3]"};

    for (int i = 0; i < 2; i++) {
        struct sumac_variable *variable = variable_of(strategy, shapes[i], in_two);
        assert_int_equal(sumac_variable_shards(variable), 1);
        expect_shard(variable, 0, whole[i]);
        sumac_variable_destroy(variable);
    }
    sumac_strategy_destroy(strategy);
}

/* Eight rows of four bytes. */
TEST(a_partitioner_goes_by_all_that_it_is_given)
{
    static const struct {
        struct sumac_partitioner partitioner;
        uint32_t shards;
    } cases[] = {
        {{.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 3}, 3},
        {{.kind = SUMAC_PARTITIONER_MIN_SIZE, .min_shard_bytes = 16, .max_shards = 8}, 2},
        {{.kind = SUMAC_PARTITIONER_MIN_SIZE, .min_shard_bytes = 8, .max_shards = 3}, 3},
        {{.kind = SUMAC_PARTITIONER_MIN_SIZE, .max_shards = 8}, 1},
        {{.kind = SUMAC_PARTITIONER_MAX_SIZE, .max_shard_bytes = 8}, 4},
        {{.kind = SUMAC_PARTITIONER_MAX_SIZE, .max_shard_bytes = 8, .max_shards = 3}, 3},
    };
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_variable *variable = variable_of(
            strategy, SUMAC_SHAPE(8),
            (struct sumac_variable_options){.partitioner = cases[i].partitioner});

        assert_int_equal(sumac_variable_shards(variable), cases[i].shards);
        sumac_variable_destroy(variable);
    }
    sumac_strategy_destroy(strategy);
}

TEST(one_on_each_ps_is_one_where_there_is_none)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);
    struct sumac_variable *variable = variable_of(
        strategy, SUMAC_SHAPE(5),
        (struct sumac_variable_options){.partitioner.kind = SUMAC_PARTITIONER_SHARD_PER_PS});

    assert_int_equal(sumac_variable_shards(variable), 1);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* Shards as no partitioner makes them are read and written as a whole, and by rows read alone. */
TEST(rows_of_each_shard_may_be_said)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);
    const uint64_t odd[] = {1, 2, 1}, even[] = {2, 1, 1};
    struct sumac_variable *of_odd = variable_of(
        strategy, SUMAC_SHAPE(4),
        (struct sumac_variable_options){.shard_rows = odd, .shard_count = 3});
    struct sumac_variable *of_even = variable_of(
        strategy, SUMAC_SHAPE(4),
        (struct sumac_variable_options){.shard_rows = even, .shard_count = 3});
    const int64_t last = 3;
    struct sumac_value *ids = sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), &last);
    struct sumac_value *row = counted(SUMAC_SHAPE(1)), *whole = counted(SUMAC_SHAPE(4));
    struct sumac_value *slices =
        sumac_value_indexed_slices(sumac_value_ref(row), sumac_value_ref(ids), SUMAC_SHAPE(4));
    struct sumac_value *result = NULL;
    struct sumac_error error;

    expect_shard(of_odd, 1, "float32[2] 1 2");
    assert_int_equal(
        sumac_variable_write(of_even, NULL, SUMAC_WRITE_SCATTER_UPDATE, slices, NULL, NULL),
        SUMAC_OK);
    assert_int_equal(
        sumac_variable_write(of_odd, NULL, SUMAC_WRITE_SCATTER_UPDATE, slices, NULL, &error),
        SUMAC_UNIMPLEMENTED);
    assert_non_null(strstr(error.text, "of w: its shards are not those that a partitioner makes"));
    assert_int_equal(sumac_variable_assign_add(of_odd, NULL, whole, NULL, NULL), SUMAC_OK);
    expect_shard(of_odd, 2, "float32[1] 6");
    assert_int_equal(sumac_variable_rows(of_odd, NULL, ids, &result, NULL), SUMAC_OK);
    expect_printed(result, "float32[1] 6");
    expect_shard(of_even, 2, "float32[1] 0");

    sumac_value_unref(ids);
    sumac_value_unref(row);
    sumac_value_unref(whole);
    sumac_value_unref(slices);
    sumac_variable_destroy(of_odd);
    sumac_variable_destroy(of_even);
    sumac_strategy_destroy(strategy);
}

/* Each with the variable's name. */
TEST(what_makes_no_shards_is_refused)
{
    static const uint64_t few[] = {1, 2}, many[] = {3, 3}, none[] = {5, 0},
                          huge[] = {6, UINT64_MAX};

    static const struct {
        struct sumac_variable_options options;
        enum sumac_status status;
        const char *words;
    } tries[] = {
        {{.partitioner.kind = SUMAC_PARTITIONER_FIXED_SHARDS},
         SUMAC_INVALID_ARGUMENT,
         "w: partitioner parameter num_shards is 0"},
        {{.partitioner.kind = SUMAC_PARTITIONER_MAX_SIZE},
         SUMAC_INVALID_ARGUMENT,
         "w: partitioner parameter max_shard_bytes is 0"},
        {{.partitioner = {.kind = SUMAC_PARTITIONER_MIN_SIZE, .max_shards = UINT64_MAX}},
         SUMAC_INVALID_ARGUMENT,
         "w: partitioner parameter max_shards is"},
        {{.partitioner.kind = (enum sumac_partitioner_kind)77},
         SUMAC_INVALID_ARGUMENT,
         "w: partitioner 77 is not known"},
        {{.partitioner.num_shards = 2},
         SUMAC_INVALID_ARGUMENT,
         "w: num_shards is given, which only partitioner FIXED_SHARDS has"},
        {{.partitioner = {.kind = SUMAC_PARTITIONER_MAX_SIZE, .min_shard_bytes = 1}},
         SUMAC_INVALID_ARGUMENT,
         "w: min_shard_bytes is given, which only partitioner MIN_SIZE has"},
        {{.partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS, .max_shards = 1}},
         SUMAC_INVALID_ARGUMENT,
         "w: max_shards is given, which only partitioner MIN_SIZE or MAX_SIZE has"},
        {{.partitioner.max_shard_bytes = 1},
         SUMAC_INVALID_ARGUMENT,
         "w: max_shard_bytes is given, which only partitioner MAX_SIZE has"},
        {{.shard_rows = few, .shard_count = 2}, SUMAC_INVALID_ARGUMENT, "w: shard_rows do not add"},
        {{.shard_rows = many, .shard_count = 2}, SUMAC_INVALID_ARGUMENT, "w: shard_rows do not"},
        {{.shard_rows = none, .shard_count = 2}, SUMAC_INVALID_ARGUMENT, "w: shard_rows do not"},
        {{.shard_rows = huge, .shard_count = 2}, SUMAC_INVALID_ARGUMENT, "w: shard_rows do not"},
        {{.shard_rows = few}, SUMAC_INVALID_ARGUMENT, "w: shard_rows are how many"},
        {{.shard_count = 2}, SUMAC_INVALID_ARGUMENT, "w: shard_rows are how many"},
    };
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);
    struct sumac_value *initial = counted(SUMAC_SHAPE(5));

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct sumac_variable_options options = tries[i].options;
        struct sumac_variable *variable = NULL;
        struct sumac_error error;
        options.name = "w";
        options.initial = initial;
        assert_int_equal(
            sumac_variable_create(strategy, &options, &variable, &error), tries[i].status);
        assert_non_null(strstr(error.text, tries[i].words));
        assert_null(variable);
    }
    sumac_value_unref(initial);
    sumac_strategy_destroy(strategy);
}

/* As many as a ps would make, and no more. */
TEST(there_are_4096_shards_at_most)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);

    for (uint64_t rows = 4096; rows <= 4097; rows++) {
        struct sumac_value *initial = sumac_value_tensor(SUMAC_INT8, SUMAC_SHAPE(rows), NULL);
        const struct sumac_variable_options options = {
            .name = "w",
            .initial = initial,
            .partitioner = {.kind = SUMAC_PARTITIONER_MAX_SIZE, .max_shard_bytes = 1}};
        struct sumac_variable *variable = NULL;
        struct sumac_error error;

        const enum sumac_status status =
            sumac_variable_create(strategy, &options, &variable, &error);

        assert_int_equal(status, rows == 4096 ? SUMAC_OK : SUMAC_RESOURCE_EXHAUSTED);
        if (rows > 4096)
            assert_non_null(strstr(error.text, "w: 4097 shards are asked for, at most 4096"));
        else
            expect_shard(variable, 4095, "int8[1] 0");
        sumac_variable_destroy(variable);
        sumac_value_unref(initial);
    }
    sumac_strategy_destroy(strategy);
}

/* ---- parts ---- */

static const struct sumac_slice second = {.kind = SUMAC_SLICE_INDEX, .index = 1};

static enum sumac_status
add_its_id_and_slice(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const float id = (float)sumac_replica_id(replica), both[] = {id, id};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), both);

    enum sumac_status status = sumac_variable_assign_add(context, replica, value, NULL, error);
    sumac_value_unref(value);
    return return_from_replica(
        replica,
        status == SUMAC_OK ? sumac_variable_slice(context, replica, &second, 1, &returned, error)
                           : status,
        &returned);
}

TEST(parts_are_of_what_the_context_sees)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_MIRRORED, 2); /* given */
    struct sumac_variable_options options = in_two;

    options.synchronization = SUMAC_SYNCHRONIZATION_ON_READ;
    options.aggregation = SUMAC_REDUCE_SUM;
    struct sumac_variable *variable = variable_of(strategy, SUMAC_SHAPE(2), options);
    const struct sumac_run_options step = {.function = add_its_id_and_slice, .context = variable};
    struct sumac_value *own = NULL, *across = NULL;

    assert_int_equal(sumac_strategy_run(strategy, &step, &own, NULL), SUMAC_OK); /* when */
    assert_int_equal(sumac_variable_slice(variable, NULL, &second, 1, &across, NULL), SUMAC_OK);

    expect_printed(own, "per_replica(0: float32[] 1, 1: float32[] 2)"); /* then */
    expect_printed(across, "float32[] 3");
    expect_shard(variable, 0, "float32[1] 1");
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

TEST(a_part_stays_as_it_was)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);
    struct sumac_variable *whole =
        variable_of(strategy, SUMAC_SHAPE(2), (struct sumac_variable_options){0});
    struct sumac_value *once = counted(SUMAC_SHAPE(2)), *part = NULL;

    assert_int_equal(sumac_variable_shard(whole, 0, &part, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_assign_add(whole, NULL, once, NULL, NULL), SUMAC_OK);

    expect_printed(part, "float32[2] 0 1");
    expect_shard(whole, 0, "float32[2] 0 2");
    sumac_value_unref(once);
    sumac_variable_destroy(whole);
    sumac_strategy_destroy(strategy);
}

TEST(what_there_is_not_is_said_of_the_variable)
{
    struct sumac_strategy *strategy = strategy_of(SUMAC_STRATEGY_DEFAULT, 1);
    struct sumac_variable *variable = variable_of(strategy, SUMAC_SHAPE(4, 2), in_two);
    const struct sumac_slice far = {.kind = SUMAC_SLICE_INDEX, .index = 4};
    const int64_t beyond = 4;
    struct sumac_value *ids = sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), &beyond);
    struct sumac_value *bags =
        sumac_value_list((struct sumac_value *const[]){sumac_value_ref(ids)}, 1);
    struct sumac_value *value = NULL;
    struct sumac_error error;

    assert_int_equal(sumac_variable_shard(variable, 2, &value, &error), SUMAC_OUT_OF_RANGE);
    assert_string_equal(error.text, "w has 2 shards, and 2 is none of them");
    assert_int_equal(
        sumac_variable_slice(variable, NULL, &far, 1, &value, &error), SUMAC_OUT_OF_RANGE);
    assert_string_equal(error.text, "w: slice: entry 0 is 4, and its axis has 4 elements");
    assert_int_equal(
        sumac_variable_rows(variable, NULL, ids, &value, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "w: sumac_value_rows: there is no row 4"));
    assert_int_equal(
        sumac_variable_lookup(variable, NULL, bags, SUMAC_REDUCE_MEAN, &value, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "w: sumac_value_lookup: there is no row 4"));
    assert_int_equal(
        sumac_variable_slice(NULL, NULL, &far, 1, &value, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_variable_slice: variable is NULL");
    assert_null(value);

    sumac_value_unref(ids);
    sumac_value_unref(bags);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* Every row of up to 9 rows in every number of shards, beside a count through them. */
TEST(a_row_is_in_the_shard_that_has_it)
{
    for (uint64_t rows = 1; rows <= 9; rows++)
        for (uint32_t shards = 1; shards <= rows; shards++) {
            uint64_t row = 0;
            for (uint32_t i = 0; i < shards; i++)
                for (uint64_t j = 0; j < rows / shards + (i < rows % shards); j++, row++) {
                    uint32_t shard = 77;
                    uint64_t offset = 77;
                    assert_int_equal(
                        sumac_shard_of_row(rows, shards, (int64_t)row, &shard, &offset, NULL),
                        SUMAC_OK);
                    assert_int_equal(shard, i);
                    assert_int_equal(offset, j);
                }
            assert_int_equal(row, rows);
            uint32_t shard = 77;
            uint64_t offset = 77;
            assert_int_equal(
                sumac_shard_of_row(rows, shards, (int64_t)rows, &shard, &offset, NULL),
                SUMAC_INVALID_ARGUMENT);
            assert_int_equal(shard, 77);
            assert_int_equal(offset, 77);
        }
}

TEST(a_row_is_not_looked_for_without_a_place_for_its_shard)
{
    uint32_t shard = 77;
    uint64_t offset = 77;
    struct sumac_error error;

    assert_int_equal(sumac_shard_of_row(9, 3, 0, NULL, &offset, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_shard_of_row: shard is NULL");
    assert_int_equal(sumac_shard_of_row(9, 3, 0, &shard, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_shard_of_row: offset is NULL");
    assert_int_equal(/* a shard without rows */
                     sumac_shard_of_row(2, 3, 0, &shard, &offset, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(shard, 77);
    assert_int_equal(offset, 77);
}
