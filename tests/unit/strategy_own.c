/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves a strategy: each replica's own, mirrored, or one value. */
#include "distributed_fixture.h"

#include "../returning.h"
#include "sumac/strategy.h"

/* ---- given: what replicas return */

/* {Σ of [id, 1], the ids, all rows of slices} */
static enum sumac_status
collect(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const int64_t row = 1;
    struct sumac_value *own = vector((float)sumac_replica_id(replica), 1);
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(1), NULL),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), &row), SUMAC_SHAPE(4));
    struct sumac_value *both = sumac_value_list((struct sumac_value *const[]){own, slices}, 2);
    struct sumac_value *items[2] = {NULL};

    (void)context;
    enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, both, NULL, &items[0], error);
    if (status == SUMAC_OK)
        status = sumac_replica_all_gather(replica, own, 0, NULL, &items[1], error);
    sumac_value_unref(both);
    sumac_replica_return(replica, sumac_value_tuple(items, 2));
    return status;
}

static enum sumac_status
sum(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_value *own = vector((float)sumac_replica_id(replica), 1);

    (void)context;
    const enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, own, NULL, &returned, error);
    sumac_value_unref(own);
    return return_from_replica(replica, status, &returned);
}

/* The gradient of a gather of vectors of two elements; `context` is its number of rows. */
static enum sumac_status
take_gradient(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const uint64_t *rows = context;
    struct sumac_value *own = vector((float)sumac_replica_id(replica), 1);
    struct sumac_value *upstream = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(*rows), NULL);

    const enum sumac_status status =
        sumac_replica_all_gather_gradient(replica, upstream, own, 0, &returned, error);
    sumac_value_unref(upstream);
    sumac_value_unref(own);
    return return_from_replica(replica, status, &returned);
}

static enum sumac_status
read_or_add(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct in_replica *in = context;

    return return_from_replica(
        replica,
        in->value == NULL
            ? sumac_variable_read(in->variable, replica, &returned, error)
            : sumac_variable_assign_add(in->variable, replica, in->value, &returned, error),
        &returned);
}

static enum sumac_status
give_back(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context;
    (void)error;
    sumac_replica_return(
        replica, sumac_value_ref(sumac_value_item(sumac_replica_args(replica), 0)));
    return SUMAC_OK;
}

static struct sumac_value *run_of(
    struct sumac_strategy *strategy, sumac_replica_function *function, void *context,
    struct sumac_value *args)
{
    struct sumac_value *result = NULL;
    const struct sumac_run_options step = {.function = function, .context = context, .args = args};

    assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);
    return result;
}

static struct sumac_value *args_of(struct sumac_value *value)
{
    return sumac_value_tuple(&value, 1);
}

/* ---- given: what is done to a component */

static enum sumac_status
add(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    (void)context;

    return return_from_update(
        component,
        sumac_update_write(
            component, SUMAC_WRITE_ASSIGN_ADD, sumac_value_item(sumac_update_args(component), 0),
            &returned, error),
        &returned);
}

static enum sumac_status
tell(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *items[] = {
        NULL, sumac_value_int32((int32_t)sumac_update_index(component)),
        sumac_value_ref(sumac_value_item(sumac_update_args(component), 0)), sumac_value_none()};

    (void)context;
    const enum sumac_status status = sumac_update_read(component, &items[0], error);
    sumac_update_return(component, sumac_value_list(items, 4));
    return status;
}

static enum sumac_status update_of(
    struct sumac_variable *variable, sumac_update_function *function, struct sumac_value *argument,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *args = args_of(sumac_value_ref(argument));
    const struct sumac_update_options update = {.function = function, .args = args};
    const enum sumac_status status = sumac_variable_update(variable, NULL, &update, result, error);

    sumac_value_unref(args);
    return status;
}

/* ---- what a collective gave */

TEST(what_a_collective_gave_leaves_run_as_each_replicas_own)
{
    struct sumac_strategy *strategy = mirrored(2);

    struct sumac_value *result = run_of(strategy, collect, NULL, NULL); /* when */

    struct sumac_value *locals = NULL; /* then */
    assert_int_equal(sumac_strategy_local_results(strategy, result, &locals, NULL), SUMAC_OK);
    expect_printed(
        result, "([per_replica(0: float32[2] 1 2, 1: float32[2] 1 2), per_replica("
                "0: slices of [4](float32[2] 0 0, int64[2] 1 1), "
                "1: slices of [4](float32[2] 0 0, int64[2] 1 1))], "
                "per_replica(0: float32[4] 0 1 1 1, 1: float32[4] 0 1 1 1))");
    assert_int_equal(sumac_value_count(locals), 2);
    assert_true(sumac_value_equal(sumac_value_item(locals, 0), sumac_value_item(locals, 1)));
    sumac_value_unref(locals);
    sumac_strategy_destroy(strategy);
}

TEST(what_a_collective_gave_is_reduced_as_each_replicas_own)
{
    static const struct {
        enum sumac_reduce_op op;
        bool over_axis;
        const char *printed;
    } rows[] = {
        {SUMAC_REDUCE_SUM, false, "float32[2] 2 4"},
        {SUMAC_REDUCE_MEAN, false, "float32[2] 1 2"},
        {SUMAC_REDUCE_SUM, true, "float32[] 6"},
        {SUMAC_REDUCE_MEAN, true, "float32[] 1.5"},
    };
    const struct sumac_axes first = {.count = 1};
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *result = run_of(strategy, sum, NULL, NULL);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sumac_value *reduced = NULL;
        assert_int_equal(
            sumac_strategy_reduce(
                strategy, rows[i].op, result, rows[i].over_axis ? &first : NULL, &reduced, NULL),
            SUMAC_OK);
        expect_printed(reduced, rows[i].printed);
    }
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

/* It is per_replica, but all have the same. */
TEST(what_a_collective_gave_may_be_assigned_and_applied_across)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){.name = "v", .function = {.name = "assign_add"}});
    struct sumac_value *result = run_of(strategy, sum, NULL, NULL);

    assert_int_equal(sumac_variable_assign(variable, NULL, result, NULL, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 1 2, float32[2] 1 2)");
    assert_int_equal(update_of(variable, add, result, NULL, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 2 4, float32[2] 2 4)");
    assert_int_equal(sumac_variable_apply(variable, NULL, NULL, result, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 3 6, float32[2] 3 6)");
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

/* Replica r has gathered 2 + r of 5 along the axis that `context` is. */
static enum sumac_status
take_part_of_gradient(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    static const float elements[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int64_t axis = *(const int64_t *)context;
    const uint64_t own = 2 + sumac_replica_id(replica);
    struct sumac_value *upstream = sumac_value_tensor(
        SUMAC_FLOAT32, axis == 0 ? SUMAC_SHAPE(5, 2) : SUMAC_SHAPE(2, 5), elements);
    struct sumac_value *local = sumac_value_tensor(
        SUMAC_FLOAT32, axis == 0 ? SUMAC_SHAPE(own, 2) : SUMAC_SHAPE(2, own), NULL);

    const enum sumac_status status =
        sumac_replica_all_gather_gradient(replica, upstream, local, axis, &returned, error);
    sumac_value_unref(upstream);
    sumac_value_unref(local);
    return return_from_replica(replica, status, &returned);
}

TEST(a_gradient_is_the_replicas_own_part_of_the_sum)
{
    static const char *const parts[2] = {
        "per_replica(0: float32[2, 2] 0 2 4 6, 1: float32[3, 2] 8 10 12 14 16 18)",
        "per_replica(0: float32[2, 2] 0 2 10 12, 1: float32[2, 3] 4 6 8 14 16 18)"};
    struct sumac_strategy *strategy = mirrored(2);

    for (int64_t axis = 0; axis < 2; axis++) {
        struct sumac_value *result = NULL;
        const struct sumac_run_options step = {.function = take_part_of_gradient, .context = &axis};
        char text[256];

        assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);

        (void)sumac_value_print(result, text, sizeof text);
        assert_string_equal(text, parts[axis]);
        sumac_value_unref(result);
    }
    sumac_strategy_destroy(strategy);
}

TEST(a_gradient_has_as_many_rows_as_were_gathered)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_error error;

    for (uint64_t rows = 3; rows <= 5; rows++) {
        struct sumac_value *result = NULL;
        const struct sumac_run_options step = {.function = take_gradient, .context = &rows};

        const enum sumac_status status = sumac_strategy_run(strategy, &step, &result, &error);

        assert_int_equal(status, rows == 4 ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
        if (rows != 4)
            assert_non_null(strstr(error.text, "is no gradient of what the replicas have"));
        sumac_value_unref(result);
    }
    sumac_strategy_destroy(strategy);
}

TEST(equal_values_of_replicas_are_not_known_to_be_the_same)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    struct sumac_value *const items[] = {vector(1, 2), vector(1, 2)};
    struct sumac_value *equal = sumac_value_per_replica(items, 2, 0);
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_assign(variable, NULL, equal, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(update_of(variable, add, equal, NULL, &error), SUMAC_INVALID_ARGUMENT);
    expect_components(variable, "(float32[2] 1 2, float32[2] 1 2)");
    sumac_value_unref(equal);
    sumac_strategy_destroy(strategy);
}

/* A replica's write ends what is known of the copies that the others have read. */
TEST(what_replicas_read_is_each_ones_own)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .name = "v", .synchronization = SUMAC_SYNCHRONIZATION_ON_READ});
    struct in_replica in = {.variable = variable};

    expect_printed(
        run_of(strategy, read_or_add, &in, NULL),
        "per_replica(0: float32[2] 1 2, 1: float32[2] 1 2)");
    in.value = vector(1, 1);
    struct sumac_value *added = run_of(strategy, read_or_add, &in, NULL);
    assert_int_equal(
        sumac_variable_assign(variable, NULL, added, NULL, NULL), SUMAC_INVALID_ARGUMENT);
    expect_printed(added, "per_replica(0: float32[2] 2 3, 1: float32[2] 2 3)");
    sumac_value_unref(in.value);
    sumac_strategy_destroy(strategy);
}

TEST(what_all_replicas_return_is_that_value)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *args = args_of(vector(3, 4));

    expect_printed(run_of(strategy, give_back, NULL, args), "float32[2] 3 4");
    sumac_value_unref(args);
    sumac_strategy_destroy(strategy);
}

/* ---- what an update returns */

TEST(what_an_update_returns_is_mirrored)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    struct sumac_value *argument = vector(3, 4), *result = NULL;

    assert_int_equal(update_of(variable, tell, argument, &result, NULL), SUMAC_OK);

    /* the component, its index, what all were given, nothing */
    expect_printed(
        result, "[mirrored(0: float32[2] 1 2, 1: float32[2] 1 2), "
                "mirrored(0: int32[] 0, 1: int32[] 1), float32[2] 3 4, none]");
    sumac_value_unref(argument);
    sumac_strategy_destroy(strategy);
}

TEST(what_an_update_returns_is_the_argument_of_others)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *first =
        variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    struct sumac_variable *second =
        variable_of(strategy, (struct sumac_variable_options){.name = "w"});
    struct sumac_value *one = vector(1, 1), *result = NULL;

    assert_int_equal(update_of(first, add, one, &result, NULL), SUMAC_OK);

    assert_int_equal(update_of(second, add, result, NULL, NULL), SUMAC_OK);
    expect_components(second, "(float32[2] 3 5, float32[2] 3 5)");
    assert_int_equal(sumac_variable_assign(second, NULL, result, NULL, NULL), SUMAC_OK);
    expect_components(second, "(float32[2] 2 3, float32[2] 2 3)");
    expect_printed(result, "mirrored(0: float32[2] 2 3, 1: float32[2] 2 3)");
    sumac_value_unref(one);
    sumac_strategy_destroy(strategy);
}

TEST(what_an_update_returns_has_no_sum)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    struct sumac_value *one = vector(1, 1), *result = NULL, *reduced = NULL;
    struct sumac_error error;

    assert_int_equal(update_of(variable, add, one, &result, NULL), SUMAC_OK);

    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, result, NULL, &reduced, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "is the same in all replicas"));
    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_MEAN, result, NULL, &reduced, NULL), SUMAC_OK);
    expect_printed(reduced, "float32[2] 2 3");
    sumac_value_unref(result);
    sumac_value_unref(one);
    sumac_strategy_destroy(strategy);
}

/* ---- what a function makes for each replica */

static enum sumac_status make_id(
    const struct sumac_value_context *replica, void *context, struct sumac_value **value,
    struct sumac_error *error)
{
    (void)context;
    (void)error;
    *value = sumac_value_int32((int32_t)replica->replica_id_in_sync_group);
    return SUMAC_OK;
}

TEST(on_one_device_what_a_function_makes_is_the_value)
{
    static const struct {
        enum sumac_strategy_kind kind;
        const char *printed;
    } rows[] = {
        {SUMAC_STRATEGY_DEFAULT, "int32[] 0"},
        {SUMAC_STRATEGY_ONE_DEVICE, "int32[] 0"},
        {SUMAC_STRATEGY_MIRRORED, "per_replica(0: int32[] 0)"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct sumac_strategy_options options = {.kind = rows[i].kind};
        struct sumac_strategy *strategy = NULL;
        struct sumac_value *value = NULL;
        assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
        assert_int_equal(
            sumac_strategy_values_from_function(strategy, make_id, NULL, &value, NULL), SUMAC_OK);
        expect_printed(value, rows[i].printed);
        sumac_strategy_destroy(strategy);
    }
}
