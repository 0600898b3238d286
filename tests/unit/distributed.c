/* SPDX-License-Identifier: Apache-2.0 */
/* distributed.c (test) -- variables of a strategy: who may use one where, what is kept apart, and
 * what a call that fails leaves behind. What each context reads and writes is the conformance
 * cases' (tests/conformance). */
#include "buffer.h"
#include "distributed_fixture.h"
#include "../returning.h"

/* ---- created ---- */

struct refused {
    struct sumac_variable_options options;
    const char *said;
};

TEST(what_is_no_variable_is_refused_by_its_name)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *floats = vector(1, 2), *none = sumac_value_none();
    struct sumac_value *integer = sumac_value_int32(3);
    struct sumac_variable *variable = NULL;
    char long_name[1026] = "";

    memset(long_name, 'w', 1025);
    const struct refused cases[] = {
        {{.initial = floats}, "name is NULL"},
        {{.name = "", .initial = floats}, "name is empty"},
        {{.name = "a\nb", .initial = floats}, "without control characters"},
        {{.name = "\xff", .initial = floats}, "it is UTF-8 of 1 to 1024 bytes"},
        {{.name = long_name, .initial = floats}, "it is UTF-8 of 1 to 1024 bytes"},
        {{.name = "w"}, "w: initial is no tensor"},
        {{.name = "w", .initial = none}, "w: initial is no tensor"},
        {{.name = "w", .initial = none, .shape = SUMAC_SHAPE(2)}, "w: initial is no tensor"},
        {{.name = "w", .dtype = (enum sumac_dtype)77}, "w: shape and dtype are those of no tensor"},
        {{.name = "w", .shape = {.rank = SUMAC_RANK_MAX + 1}}, "are those of no tensor"},
        {{.name = "w", .dtype = SUMAC_INT32, .aggregation = SUMAC_REDUCE_MEAN},
         "w: aggregation MEAN of integers"},
        {{.name = "w", .initial = integer, .aggregation = SUMAC_REDUCE_MEAN},
         "w: aggregation MEAN of integers"},
        {{.name = "w", .initial = floats, .synchronization = SUMAC_SYNCHRONIZATION_NONE},
         "w: synchronization NONE"},
        {{.name = "w", .initial = floats, .function = {.name = "adamant"}},
         "no update function adamant"},
        {{.name = "w", .initial = integer, .function = {.name = "adam"}}, "variable w"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_error error = {0};

        assert_int_equal(
            sumac_variable_create(strategy, &cases[i].options, &variable, &error),
            SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, cases[i].said));
        assert_null(variable);
    }
    long_name[1024] = '\0'; /* and one less is a name */
    const struct sumac_variable_options longest = {.name = long_name, .initial = floats};
    assert_int_equal(sumac_variable_create(strategy, &longest, &variable, NULL), SUMAC_OK);
    sumac_value_unref(floats);
    sumac_value_unref(none);
    sumac_value_unref(integer);
    sumac_strategy_destroy(strategy);
}

TEST(without_a_value_it_begins_with_zeros_of_its_shape_and_type)
{
    static const struct {
        struct sumac_variable_options options;
        const char *components;
    } cases[] = {
        {{.name = "w", .shape = SUMAC_SHAPE(2)}, "(float32[2] 0 0, float32[2] 0 0)"},
        {{.name = "w", .dtype = SUMAC_INT32}, "(int32[] 0, int32[] 0)"},
        {{.name = "w", .shape = SUMAC_SHAPE(1, 2), .dtype = SUMAC_UINT8},
         "(uint8[1, 2] 0 0, uint8[1, 2] 0 0)"},
    };
    struct sumac_strategy *strategy = mirrored(2);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_variable *variable;
        struct sumac_value *components;

        assert_int_equal(
            sumac_variable_create(strategy, &cases[i].options, &variable, NULL), SUMAC_OK);
        assert_int_equal(sumac_variable_components(variable, &components, NULL), SUMAC_OK);
        expect_printed(components, cases[i].components);
        sumac_variable_destroy(variable);
    }
    sumac_strategy_destroy(strategy);
}

TEST(it_is_of_the_scope_that_it_was_created_in)
{
    struct sumac_strategy *strategy = mirrored(2), *other = mirrored(2);
    struct sumac_variable *own = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_variable *outside =
        variable_of(strategy, (struct sumac_variable_options){.process_local = true});

    assert_true(sumac_variable_created_in_scope(strategy, own));
    assert_false(sumac_variable_created_in_scope(other, own));
    assert_false(sumac_variable_created_in_scope(strategy, outside));
    assert_false(sumac_variable_created_in_scope(strategy, NULL));
    struct sumac_value *initial = vector(1, 2);
    struct sumac_variable_options beside = {
        .name = "beside", .initial = initial, .colocate_with = own};
    struct sumac_variable *variable = NULL;
    assert_int_equal(
        sumac_variable_create(other, &beside, &variable, NULL), SUMAC_INVALID_ARGUMENT);
    beside.colocate_with = outside;
    assert_int_equal(
        sumac_variable_create(strategy, &beside, &variable, NULL), SUMAC_INVALID_ARGUMENT);
    beside.colocate_with = own;
    assert_int_equal(sumac_variable_create(strategy, &beside, &variable, NULL), SUMAC_OK);
    sumac_variable_destroy(variable);
    sumac_value_unref(initial);

    sumac_variable_destroy(own);
    sumac_variable_destroy(outside);
    sumac_strategy_destroy(strategy);
    sumac_strategy_destroy(other);
}

/* ---- contexts ---- */

static enum sumac_status
use_across(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    return return_from_replica(
        replica, sumac_variable_read(in->variable, NULL, &returned, error), &returned);
}

static enum sumac_status
use_another_strategys(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    if (sumac_replica_id(replica) == 0)
        in->stolen = replica;
    return return_from_replica(
        replica, sumac_variable_read(in->other, replica, &returned, error), &returned);
}

static enum sumac_status
use_the_stolen(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    return return_from_replica(
        replica, sumac_variable_read(in->variable, in->stolen, &returned, error), &returned);
}

TEST(it_is_used_in_its_own_context_alone)
{
    struct sumac_strategy *strategy = mirrored(2), *other = mirrored(2);
    struct in_replica in = {
        .variable = variable_of(strategy, (struct sumac_variable_options){0}),
        .other = variable_of(other, (struct sumac_variable_options){.name = "theirs"})};
    struct sumac_value *value = NULL;
    struct sumac_error error;

    assert_int_equal(run_in(strategy, use_across, &in, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "called within a replica"));
    assert_int_equal(
        run_in(strategy, use_another_strategys, &in, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "theirs: it is a variable of another strategy"));
    assert_int_equal(
        sumac_variable_read(in.variable, in.stolen, &value, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "outside of that replica's function"));
    assert_int_equal(run_in(strategy, use_the_stolen, &in, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "with the context of replica 0, outside of that"));
    assert_int_equal(sumac_strategy_enter(other, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_variable_read(in.variable, NULL, &value, &error), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(sumac_strategy_leave(other, NULL), SUMAC_OK);

    sumac_variable_destroy(in.variable);
    sumac_variable_destroy(in.other);
    sumac_strategy_destroy(strategy);
    sumac_strategy_destroy(other);
}

static enum sumac_status use_within_an_update(
    struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    in->component = component;
    return return_from_update(
        component, sumac_variable_read(in->variable, NULL, &returned, error), &returned);
}

TEST(a_component_is_lent_to_its_update_alone)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct in_replica in = {.variable = variable_of(strategy, (struct sumac_variable_options){0})};
    const struct sumac_update_options update = {.function = use_within_an_update, .context = &in};
    struct sumac_value *value = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_update(in.variable, NULL, &update, NULL, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "within the function of an update"));
    assert_int_equal(sumac_update_read(in.component, &value, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "outside of this update"));
    assert_null(sumac_present_strategy());

    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
use_the_one_before(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;
    struct sumac_update_context *before = in->component;

    in->component = component;
    return return_from_update(
        component, before == NULL ? SUMAC_OK : sumac_update_read(before, &returned, error),
        &returned);
}

TEST(a_component_is_not_lent_to_the_next_ones_update)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct in_replica in = {.variable = variable_of(strategy, (struct sumac_variable_options){0})};
    const struct sumac_update_options update = {.function = use_the_one_before, .context = &in};
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_update(in.variable, NULL, &update, NULL, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "outside of this update"));

    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}

/* ---- kept apart ---- */

/* A value does not change once somebody has it. */
TEST(what_was_read_stays_as_it_was)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *before = read_of(variable), *add = vector(10, 10);

    assert_int_equal(sumac_variable_assign_add(variable, NULL, add, NULL, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_assign_add(variable, NULL, add, NULL, NULL), SUMAC_OK);

    expect_printed(before, "float32[2] 1 2");
    expect_printed(read_of(variable), "float32[2] 21 22");
    sumac_value_unref(add);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

TEST(what_was_assigned_stays_as_it_was)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *given = vector(5, 6), *add = vector(10, 10);

    assert_int_equal(sumac_variable_assign(variable, NULL, given, NULL, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_assign_add(variable, NULL, add, NULL, NULL), SUMAC_OK);

    expect_printed(given, "float32[2] 5 6");
    expect_printed(read_of(variable), "float32[2] 15 16");
    sumac_value_unref(add);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* The caller's buffer, which is written again for the next batch. */
TEST(a_buffer_that_was_assigned_is_the_callers_again)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(2)};

    assert_int_equal(sumac_buffer_create(8, &tensor.buffer), SUMAC_OK);
    struct sumac_value *given = sumac_value_of(&tensor);
    assert_int_equal(sumac_variable_assign(variable, NULL, given, NULL, NULL), SUMAC_OK);
    sumac_value_unref(given);
    ((float *)sumac_buffer_data(tensor.buffer))[0] = 7;

    expect_printed(read_of(variable), "float32[2] 0 0");
    sumac_buffer_unref(tensor.buffer);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
add_index(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const bool empty = sumac_value_kind(sumac_update_args(component)) == SUMAC_VALUE_TUPLE &&
                       sumac_value_kind(sumac_update_kwargs(component)) == SUMAC_VALUE_DICT;
    const float index = (float)sumac_update_index(component);
    struct sumac_value *add = vector(index, index);

    (void)context;
    const enum sumac_status status =
        sumac_update_write(component, SUMAC_WRITE_ASSIGN_ADD, add, &returned, error);
    sumac_value_unref(add);
    return return_from_update(
        component, empty ? status : SUMAC_INTERNAL, &returned); /* none were given */
}

TEST(an_update_changes_its_component_alone)
{
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    const struct sumac_update_options update = {.function = add_index, .ungrouped = true};
    struct sumac_value *result = NULL, *add = vector(100, 100);

    assert_int_equal(sumac_variable_update(variable, NULL, &update, &result, NULL), SUMAC_OK);
    expect_printed(result, "(float32[2] 1 2, float32[2] 2 3, float32[2] 3 4)");
    assert_int_equal(sumac_variable_assign_add(variable, NULL, add, NULL, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 101 102, float32[2] 102 103, float32[2] 103 104)");
    assert_int_equal(sumac_variable_assign(variable, NULL, add, NULL, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 100 100, float32[2] 100 100, float32[2] 100 100)");

    sumac_value_unref(add);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
update_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_update_options update = {.function = add_index};
    struct in_replica *in = context;

    return return_from_replica(
        replica, sumac_variable_update(in->variable, replica, &update, &returned, error),
        &returned);
}

TEST(each_replica_has_what_its_component_came_to)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct in_replica in = {.variable = variable_of(strategy, (struct sumac_variable_options){0})};
    const struct sumac_run_options step = {.function = update_in_replica, .context = &in};
    struct sumac_value *result = NULL;

    assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);

    expect_printed(result, "per_replica(0: float32[2] 1 2, 1: float32[2] 2 3)");
    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}

/* ---- given back ---- */

static void count(void *context) { ++*(int *)context; }

/* A value whose memory counts in *released when nobody has it any more. */
static struct sumac_value *watched(float *elements, int *released)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(2)};

    assert_int_equal(buffer_own(elements, 8, host, count, released, &tensor.buffer), SUMAC_OK);
    struct sumac_value *value = sumac_value_of(&tensor);
    sumac_buffer_unref(tensor.buffer);
    return value;
}

static enum sumac_status
add_to_the_first(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    if (sumac_update_index(component) != 0)
        return SUMAC_OK;
    return return_from_update(
        component, sumac_update_write(component, SUMAC_WRITE_ASSIGN_ADD, context, &returned, error),
        &returned);
}

/* Of components that have it together, and of each that has its own. */
TEST(what_no_component_has_any_more_is_given_back)
{
    struct sumac_strategy *strategy = mirrored(2); /* given */
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_value *once = vector(1, 1);
    const struct sumac_update_options update = {.function = add_to_the_first, .context = once};
    float elements[2][2] = {{5, 6}, {7, 8}};
    int released[2] = {0, 0};

    for (int i = 0; i < 2; i++) { /* when */
        struct sumac_value *given = watched(elements[i], &released[i]);
        assert_int_equal(sumac_variable_assign(variable, NULL, given, NULL, NULL), SUMAC_OK);
        sumac_value_unref(given);
    }
    assert_int_equal(released[0], 1); /* then */
    assert_int_equal(sumac_variable_update(variable, NULL, &update, NULL, NULL), SUMAC_OK);
    expect_components(variable, "(float32[2] 8 9, float32[2] 7 8)");
    assert_int_equal(released[1], 0);
    sumac_variable_destroy(variable);
    assert_int_equal(released[1], 1);
    sumac_value_unref(once);
    sumac_strategy_destroy(strategy);
}

/* A program's array stays as it is, and what the program writes to it later changes no variable. */
TEST(memory_that_a_program_wrapped_is_read_and_never_kept)
{
    struct sumac_strategy *strategy = mirrored(1); /* given */
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(2)};
    struct sumac_value *once = vector(1, 1);
    float array[2] = {5, 6};

    assert_int_equal(
        sumac_buffer_wrap(array, 8, (struct sumac_place){0}, NULL, NULL, &tensor.buffer), SUMAC_OK);
    struct sumac_value *wrapped = sumac_value_of(&tensor);
    sumac_buffer_unref(tensor.buffer);

    assert_int_equal(sumac_variable_assign(variable, NULL, wrapped, NULL, NULL), SUMAC_OK);
    sumac_value_unref(wrapped); /* when: nobody else has the value, and it is changed in place */
    assert_int_equal(sumac_variable_assign_add(variable, NULL, once, NULL, NULL), SUMAC_OK);

    assert_true(array[0] == 5 && array[1] == 6); /* then */
    array[0] = 77;
    expect_components(variable, "(float32[2] 6 7,)");
    sumac_value_unref(once);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* ---- written by replicas together ---- */

static enum sumac_status
write_another(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;
    const bool first = sumac_replica_id(replica) == 0;

    return return_from_replica(
        replica,
        sumac_variable_assign_add(
            first ? in->variable : in->other, replica, in->value, &returned, error),
        &returned);
}

static enum sumac_status
write_otherwise(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;
    const enum sumac_write write =
        sumac_replica_id(replica) == 0 ? SUMAC_WRITE_ASSIGN_ADD : SUMAC_WRITE_ASSIGN_SUB;

    return return_from_replica(
        replica, sumac_variable_write(in->variable, replica, write, in->value, &returned, error),
        &returned);
}

static enum sumac_status
write_in_the_first_alone(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    return return_from_replica(
        replica,
        sumac_replica_id(replica) != 0
            ? SUMAC_OK
            : sumac_variable_assign(in->variable, replica, in->value, &returned, error),
        &returned);
}

TEST(replicas_that_write_something_else_are_named)
{
    struct sumac_strategy *strategy = mirrored(2);
    const struct sumac_variable_options sum = {.aggregation = SUMAC_REDUCE_SUM};
    struct in_replica in = {.variable = variable_of(strategy, sum), .value = vector(1, 1)};
    struct sumac_error error;

    in.other = variable_of(
        strategy, (struct sumac_variable_options){.name = "b", .aggregation = SUMAC_REDUCE_SUM});
    assert_int_equal(run_in(strategy, write_another, &in, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "replica 0 comes with w, and replica 1 with b"));
    assert_int_equal(run_in(strategy, write_otherwise, &in, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "another way to write: "));
    assert_int_equal(
        run_in(strategy, write_in_the_first_alone, &in, &error), SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(strstr(error.text, "replica 1 returned without it"));

    expect_components(in.variable, "(float32[2] 1 2, float32[2] 1 2)");
    expect_components(in.other, "(float32[2] 1 2, float32[2] 1 2)");
    sumac_variable_destroy(in.other);
    in.other = variable_of(strategy, sum); /* of the same name */
    assert_int_equal(run_in(strategy, write_another, &in, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "replica 0 comes with w, and replica 1 with another w"));
    sumac_value_unref(in.value);
    sumac_variable_destroy(in.variable);
    sumac_variable_destroy(in.other);
    sumac_strategy_destroy(strategy);
}

/* ---- what fails changes nothing ---- */

TEST(operands_that_do_not_fit_say_what_would)
{
    struct sumac_strategy *strategy = mirrored(2);
    const int32_t whole[] = {6, 9};
    struct sumac_value *initial = sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(2), whole);
    struct sumac_variable *variable =
        variable_of(strategy, (struct sumac_variable_options){.initial = initial});
    struct sumac_value *floats = vector(1, 2), *none = sumac_value_none();
    const int64_t rows[] = {1, 1};
    const int32_t zero[] = {3, 0};
    struct sumac_value *by_zero = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(2), zero),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2), rows), SUMAC_SHAPE(2));
    const int64_t behind[] = {2};
    struct sumac_value *beyond = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(1), zero),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), behind), SUMAC_SHAPE(2));
    struct sumac_value *of_three = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(1), zero),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), rows), SUMAC_SHAPE(3));
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_assign(variable, NULL, floats, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "assign of w, which is int32[2]: the value is float32[2]"));
    assert_int_equal(
        sumac_variable_assign(variable, NULL, none, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_variable_write(variable, NULL, SUMAC_WRITE_SCATTER_DIV, by_zero, NULL, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "updates must not contain 0"));
    assert_int_equal(
        sumac_variable_write(variable, NULL, SUMAC_WRITE_SCATTER_ADD, beyond, NULL, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "of w: there is no row 2; it has 2 rows, from 0 on"));
    assert_int_equal(
        sumac_variable_write(variable, NULL, SUMAC_WRITE_SCATTER_ADD, of_three, NULL, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "int32[2]: the value is slices of [3] with rows int32[1]"));
    assert_int_equal(
        sumac_variable_assign(variable, NULL, by_zero, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_variable_write(variable, NULL, (enum sumac_write)11, by_zero, NULL, &error),
        SUMAC_INVALID_ARGUMENT);

    expect_components(variable, "(int32[2] 6 9, int32[2] 6 9)");
    sumac_value_unref(initial);
    sumac_value_unref(floats);
    sumac_value_unref(none);
    sumac_value_unref(by_zero);
    sumac_value_unref(beyond);
    sumac_value_unref(of_three);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
assign_what_all_have(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct in_replica *in = context;

    return return_from_replica(
        replica, sumac_variable_assign(in->variable, replica, in->value, &returned, error),
        &returned);
}

TEST(values_of_replicas_are_written_where_they_are_one)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *const each[] = {vector(7, 8), vector(9, 10)};
    struct sumac_value *mirror = sumac_value_mirrored(vector(5, 6), 2, 0);
    struct in_replica in = {
        .variable =
            variable_of(strategy, (struct sumac_variable_options){.aggregation = SUMAC_REDUCE_SUM}),
        .value = sumac_value_per_replica(each, 2, 0)};
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_assign(in.variable, NULL, in.value, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "reduce it, or write in the replicas"));
    assert_int_equal(run_in(strategy, assign_what_all_have, &in, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "pass it to the run"));
    assert_int_equal(sumac_variable_assign(in.variable, NULL, mirror, NULL, NULL), SUMAC_OK);

    expect_components(in.variable, "(float32[2] 5 6, float32[2] 5 6)");
    sumac_value_unref(in.value);
    sumac_value_unref(mirror);
    sumac_variable_destroy(in.variable);
    sumac_strategy_destroy(strategy);
}

/* ---- shares ---- */

/* Two of that type, from their low bytes. */
static struct sumac_value *integers(enum sumac_dtype dtype, int64_t first, int64_t second)
{
    const uint32_t bytes = sumac_dtype_bytes(dtype);
    uint8_t elements[16];

    memcpy(elements, &first, bytes);
    memcpy(elements + bytes, &second, bytes);
    return sumac_value_tensor(dtype, SUMAC_SHAPE(2), elements);
}

static enum sumac_status
assign_integers(struct sumac_variable *variable, int64_t second, struct sumac_error *error)
{
    struct sumac_value *value = integers(sumac_variable_dtype(variable), 0, second);
    const enum sumac_status status = sumac_variable_assign(variable, NULL, value, NULL, error);

    sumac_value_unref(value);
    return status;
}

static struct sumac_variable *on_read_sum(struct sumac_strategy *strategy, enum sumac_dtype dtype)
{
    struct sumac_value *initial = integers(dtype, 0, 0);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .initial = initial,
                      .synchronization = SUMAC_SYNCHRONIZATION_ON_READ,
                      .aggregation = SUMAC_REDUCE_SUM});

    sumac_value_unref(initial);
    return variable;
}

TEST(shares_of_integers_leave_no_rest)
{
    struct sumac_strategy *strategy = mirrored(2);

    for (int i = SUMAC_INT8; i <= SUMAC_UINT64; i++) {
        const char *const name = sumac_dtype_name((enum sumac_dtype)i);
        const bool has_sign = sumac_dtype_kind((enum sumac_dtype)i) == SUMAC_KIND_INT;
        struct sumac_variable *variable = on_read_sum(strategy, (enum sumac_dtype)i);
        struct sumac_error error;
        char expected[128];

        assert_int_equal(assign_integers(variable, 5, &error), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "the value ÷ 2, which leaves a rest"));
        assert_int_equal(assign_integers(variable, has_sign ? -6 : 6, NULL), SUMAC_OK);
        (void)snprintf(
            expected, sizeof expected, "(%s[2] 0 %d, %s[2] 0 %d)", name, has_sign ? -3 : 3, name,
            has_sign ? -3 : 3);
        expect_components(variable, expected);
        sumac_variable_destroy(variable);
    }
    sumac_strategy_destroy(strategy);
}

/* 256 has no multiple among bytes but 0. */
TEST(more_replicas_than_a_byte_has_numbers_share_nothing_but_zero)
{
    struct sumac_strategy *strategy = mirrored(SUMAC_REPLICAS_MAX);
    struct sumac_variable *variable = on_read_sum(strategy, SUMAC_UINT8);

    assert_int_equal(assign_integers(variable, 128, NULL), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(assign_integers(variable, 0, NULL), SUMAC_OK);

    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* ---- updates that fail ---- */

static enum sumac_status
fail_in_the_second(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    return sumac_update_index(component) == 1 ? SUMAC_DATA_LOSS
                                              : add_index(component, context, error);
}

TEST(an_update_ends_with_the_component_that_failed)
{
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    const struct sumac_update_options update = {.function = fail_in_the_second};
    struct sumac_error error;

    assert_int_equal(sumac_variable_update(variable, NULL, &update, NULL, &error), SUMAC_DATA_LOSS);
    assert_non_null(strstr(error.text, "update of w: the function of component 1 returned"));
    expect_components(variable, "(float32[2] 1 2, float32[2] 1 2, float32[2] 1 2)");
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
return_other_nests(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    (void)context, (void)error;
    sumac_update_return(
        component, sumac_update_index(component) == 0 ? sumac_value_list(NULL, 0)
                                                      : sumac_value_tuple(NULL, 0));
    return SUMAC_OK;
}

TEST(what_is_no_argument_or_result_of_an_update_is_refused)
{
    static const char *const key = "by";
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *const each[] = {vector(1, 1), vector(2, 2)};
    struct sumac_value *const per_replica = sumac_value_per_replica(each, 2, 0);
    struct sumac_variable *variable = variable_of(strategy, (struct sumac_variable_options){0});
    struct sumac_update_options update = {.function = return_other_nests, .ungrouped = true};
    struct sumac_value *const dict = sumac_value_dict(NULL, NULL, 0);
    struct sumac_value *const tuple = sumac_value_tuple(NULL, 0);
    struct sumac_value *const by = sumac_value_dict(&key, &per_replica, 1);
    struct sumac_value *result = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "components 0 and 1"));
    update.args = dict;
    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "args is a dict"));
    update = (struct sumac_update_options){.function = add_index, .kwargs = tuple};
    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "update of w: kwargs is a tuple"));
    update.kwargs = by;
    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "per_replica, and its components would not be the same"));
    assert_null(result);
    sumac_value_unref(by);
    sumac_value_unref(tuple);
    sumac_value_unref(dict);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
}

/* ---- by another name ---- */

TEST(ways_to_write_have_names)
{
    for (int write = SUMAC_WRITE_ASSIGN; write <= SUMAC_WRITE_SCATTER_UPDATE; write++)
        assert_int_equal(sumac_write_parse(sumac_write_name((enum sumac_write)write)), write);
    assert_null(sumac_write_name((enum sumac_write)0));
    assert_null(sumac_write_name((enum sumac_write)11));
    assert_int_equal(sumac_write_parse("scatter"), 0);
    assert_int_equal(sumac_write_parse(NULL), 0);
}
