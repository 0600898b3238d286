/* SPDX-License-Identifier: Apache-2.0 */
/* judge_create.c -- creating and deleting variables: on all ps or on none, one creator, one
 * definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "assert_number.h"
#include "judge_world.h"

/* A world of two ps in which workers 0 and 1 have joined. */
struct two {
    struct world *world;
    uint8_t first[16], second[16];
};

static struct two two_workers(void)
{
    struct two two = {.world = world_new(2, 3)};

    world_all_up(two.world);
    memcpy(two.first, world_joined(two.world, "worker", 0, 1)->session_id, 16);
    memcpy(two.second, world_joined(two.world, "worker", 1, 2)->session_id, 16);
    return two;
}

/* A matrix of 4 × 3 float32, split over two shards. */
struct definition {
    wire_variable variable;
    wire_partitioner partitioner;
    wire_initializer initializer;
    wire_function function;
    wire_hyperparameter rate;
    wire_hyperparameter *rates[1];
    uint64_t shape[SUMAC_RANK_MAX + 1];
};

static void define(struct definition *definition, const char *name)
{
    *definition = (struct definition){
        .variable = WIRE_VARIABLE_INIT,
        .partitioner = WIRE_PARTITIONER_INIT,
        .initializer = WIRE_INITIALIZER_INIT,
        .function = WIRE_FUNCTION_INIT,
        .rate = WIRE_HYPERPARAMETER_INIT,
        .shape = {4, 3},
    };
    definition->variable.name = (char *)name;
    definition->variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    definition->variable.shape = definition->shape;
    definition->variable.n_shape = 2;
    definition->variable.partitioner = &definition->partitioner;
    definition->variable.initializer = &definition->initializer;
    definition->variable.function = &definition->function;
    definition->partitioner.kind = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS;
    definition->partitioner.num_shards = 2;
    definition->function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    definition->rates[0] = &definition->rate;
    definition->rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE;
    definition->function.hyperparameters = definition->rates;
}

static const struct world_answer *created(struct two *two, const struct definition *definition)
{
    const uint64_t call = world_create(two->world, two->first, &definition->variable, 0);

    world_settle_down(two->world);
    assert_non_null(world_answer(two->world, call));
    return world_answer(two->world, call);
}

/* The create is refused at once, and no ps hears of it. */
static void assert_refused(
    struct two *two, const struct definition *definition, enum sumac_reason reason,
    const char *text)
{
    const size_t told = world_told_count(two->world, 0, ORDER_ADD_SHARDS);
    const struct world_answer *answer = created(two, definition);

    assert_int_equal(answer->reason, reason);
    assert_non_null(strstr(answer->text, text));
    assert_int_equal(world_told_count(two->world, 0, ORDER_ADD_SHARDS), told);
}

static void a_variable_is_added_everywhere_then_published_everywhere_then_answered(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    two.world->ps[1].silent = true;

    const uint64_t call = world_create(two.world, two.first, &definition.variable, 0); /* when */
    world_settle_down(two.world);
    assert_null(world_told(two.world, 0, ORDER_PUBLISH)); /* nobody sees half a variable */
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    const struct world_answer *answer = world_answer(two.world, call); /* then */
    assert_int_equal(answer->status, SUMAC_OK);
    assert_false(answer->assign);
    assert_int_equal(answer->shard_count, 2);
    assert_int_equal(answer->shard_ps[0], 0);
    assert_int_equal(answer->shard_ps[1], 1);
    assert_int_equal(world_told(two.world, 1, ORDER_PUBLISH)->variable_id, answer->variable_id);
    world_free(two.world);
}

static void shards_are_placed_round_robin_over_all_variables(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "a");
    definition.variable.partitioner = NULL;
    assert_int_equal(created(&two, &definition)->shard_ps[0], 0);

    define(&definition, "b");
    const struct world_answer *split = created(&two, &definition);

    assert_int_equal(split->shard_ps[0], 1);
    assert_int_equal(split->shard_ps[1], 0);
    world_free(two.world);
}

static void hyperparameters_that_are_left_out_are_filled_in(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");

    assert_number_equal(created(&two, &definition)->learning_rate, 0.01);
    world_free(two.world);
}

static void an_equal_create_is_answered_with_the_variable_that_is_there(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    const uint64_t id = created(&two, &definition)->variable_id;

    const uint64_t call = world_create(two.world, two.second, &definition.variable, 0);

    assert_int_equal(world_answer(two.world, call)->variable_id, id);
    assert_int_equal(world_told_count(two.world, 1, ORDER_ADD_SHARDS), 1);
    world_free(two.world);
}

static void an_equal_create_waits_while_the_variable_is_being_made(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");

    const uint64_t one = world_create(two.world, two.first, &definition.variable, 0);
    const uint64_t other = world_create(two.world, two.second, &definition.variable, 0);
    assert_null(world_answer(two.world, other));
    world_settle_down(two.world);

    assert_int_equal(
        world_answer(two.world, one)->variable_id, world_answer(two.world, other)->variable_id);
    assert_int_equal(world_told_count(two.world, 1, ORDER_ADD_SHARDS), 1);
    world_free(two.world);
}

static void a_differing_create_is_told_the_first_field_that_differs_with_both_values(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    created(&two, &definition);

    definition.shape[0] = 5; /* when, then */
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS, "shape [4, 3], this create says [5, 3]");
    define(&definition, "w");
    definition.variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS,
        "data_type float32, this create says float64");
    define(&definition, "w");
    definition.variable.trainable = true;
    assert_refused(&two, &definition, SUMAC_REASON_ALREADY_EXISTS, "trainable false");
    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ONES;
    assert_refused(&two, &definition, SUMAC_REASON_ALREADY_EXISTS, "initializer zeros");
    define(&definition, "w");
    definition.partitioner.num_shards = 3;
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS,
        "partitioner fixed_shards(2), this create says fixed_shards(3)");
    define(&definition, "w");
    definition.function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_MOMENTUM;
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS, "function sgd, this create says momentum");
    define(&definition, "w");
    definition.rate.value = 0.5;
    definition.function.n_hyperparameters = 1;
    assert_refused(&two, &definition, SUMAC_REASON_ALREADY_EXISTS, "this create says 0.5");
    world_free(two.world);
}

/* Random values of two shards or three. */
struct numbers {
    double a, b;
    uint64_t seed, min_shard_bytes, max_shards;
};

static void define_random(struct definition *definition, const struct numbers *numbers)
{
    define(definition, "w");
    definition->initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_UNIFORM;
    definition->initializer.a = numbers->a;
    definition->initializer.b = numbers->b;
    definition->initializer.seed = numbers->seed;
    definition->partitioner.kind = SUMAC__V1__PARTITIONER__KIND__KIND_MIN_SIZE;
    definition->partitioner.min_shard_bytes = numbers->min_shard_bytes;
    definition->partitioner.max_shards = numbers->max_shards;
}

static void every_number_of_a_definition_tells_two_creates_apart(void **state)
{
    (void)state;
    static const struct numbers first = {-1, 1, 7, 16, 2};

    static const struct {
        struct numbers numbers;
        const char *said;
    } others[] = {
        {{-2, 1, 7, 16, 2},
         "initializer uniform(-1, 1, seed 7), this create says uniform(-2, 1, seed 7)"},
        {{-1, 2, 7, 16, 2}, "this create says uniform(-1, 2, seed 7)"},
        {{-1, 1, 8, 16, 2}, "this create says uniform(-1, 1, seed 8)"},
        {{-1, 1, 7, 12, 2},
         "partitioner min_size(16 bytes, at most 2), this create says min_size(12 bytes, at most "
         "2)"},
        {{-1, 1, 7, 16, 3}, "this create says min_size(16 bytes, at most 3)"},
    };
    struct two two = two_workers();
    struct definition definition;
    define_random(&definition, &first);
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        define_random(&definition, &others[i].numbers);
        assert_refused(&two, &definition, SUMAC_REASON_ALREADY_EXISTS, others[i].said);
    }
    define_random(&definition, &first);
    definition.variable.aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_SUM;
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS, "aggregation NONE, this create says SUM");
    define_random(&definition, &first);
    definition.variable.synchronization = SUMAC__V1__SYNCHRONIZATION__SYNCHRONIZATION_ON_WRITE;
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS,
        "synchronization AUTO, this create says ON_WRITE");
    define_random(&definition, &first);
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    world_free(two.world);
}

static void names_that_are_none_are_refused(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;
    char long_name[1026];

    memset(long_name, 'x', 1025);
    long_name[1025] = '\0';

    define(&definition, "");
    assert_refused(&two, &definition, SUMAC_REASON_BAD_NAME, "empty");
    define(&definition, long_name);
    assert_refused(&two, &definition, SUMAC_REASON_BAD_NAME, "1025 bytes");
    define(&definition, "w\xff");
    assert_refused(&two, &definition, SUMAC_REASON_BAD_NAME, "not UTF-8");
    define(&definition, "w\n\x1b[2J\xc2\x9b");
    assert_refused(
        &two, &definition, SUMAC_REASON_BAD_NAME, "a control character, shown here as ?: w??[2J??");
    define(&definition, "w/part_12");
    assert_refused(&two, &definition, SUMAC_REASON_BAD_NAME, "w/part_12");

    define(&definition, long_name + 1);
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    define(&definition, "w/part_x");
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    define(&definition, "grün/part_");
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    world_free(two.world);
}

static void shapes_that_are_none_are_refused_and_printed(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    definition.shape[1] = (uint64_t)-3;
    assert_refused(
        &two, &definition, SUMAC_REASON_BAD_SHAPE,
        "w: shape [4, 18446744073709551613] has an extent above 2^63 - 1 (as a signed number it is "
        "-3)");
    define(&definition, "w");
    definition.shape[0] = UINT64_C(1) << 62;
    assert_refused(&two, &definition, SUMAC_REASON_BAD_SHAPE, "[4611686018427387904, 3]");
    define(&definition, "w");
    definition.variable.n_shape = 9;
    assert_refused(&two, &definition, SUMAC_REASON_BAD_SHAPE, "9 axes");
    world_free(two.world);
}

static void what_a_variable_cannot_be_is_refused(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    definition.variable.data_type = (Sumac__V1__DataType)0;
    assert_refused(&two, &definition, SUMAC_REASON_WRONG_DATA_TYPE, "data type (dtype) is not set");
    define(&definition, "w");
    definition.variable.data_type = (Sumac__V1__DataType)99;
    assert_refused(
        &two, &definition, SUMAC_REASON_WRONG_DATA_TYPE, "data type 99 is not known; types are ");
    define(&definition, "w");
    definition.variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_INT32;
    definition.variable.function = NULL;
    definition.variable.aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_MEAN;
    assert_refused(&two, &definition, SUMAC_REASON_WRONG_DATA_TYPE, "MEAN");
    define(&definition, "w");
    definition.function.function = (Sumac__V1__UpdateFunction)99;
    assert_refused(&two, &definition, SUMAC_REASON_UNKNOWN_FUNCTION, "99");
    define(&definition, "w");
    definition.rate.value = -1;
    definition.function.n_hyperparameters = 1;
    assert_refused(&two, &definition, SUMAC_REASON_BAD_HYPERPARAMETER, "learning_rate");
    define(&definition, "w");
    definition.partitioner.num_shards = 0;
    assert_refused(&two, &definition, SUMAC_REASON_UNSUPPORTED, "num_shards");
    define(&definition, "w");
    definition.partitioner.num_shards = UINT64_MAX;
    assert_refused(
        &two, &definition, SUMAC_REASON_UNSUPPORTED, "num_shards is 18446744073709551615");
    define(&definition, "w");
    definition.shape[0] = 5000;
    definition.partitioner.num_shards = 5000;
    assert_refused(&two, &definition, SUMAC_REASON_UNSUPPORTED, "at most 4096");
    world_free(two.world);
}

static void a_create_without_a_session_is_refused(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;
    const uint8_t nobody[16] = {0};

    define(&definition, "w");

    const uint64_t call = world_create(two.world, nobody, &definition.variable, 0);

    assert_int_equal(world_answer(two.world, call)->reason, SUMAC_REASON_SESSION_UNKNOWN);
    world_free(two.world);
}

static void a_create_that_fails_on_one_ps_is_taken_back_on_all(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    two.world->ps[1].out_of_memory = true;

    const struct world_answer *failed = created(&two, &definition); /* when */

    assert_int_equal(failed->reason, SUMAC_REASON_OUT_OF_MEMORY); /* then */
    assert_non_null(strstr(failed->text, "ps 1 at h1:1"));
    assert_null(world_told(two.world, 0, ORDER_PUBLISH));
    assert_non_null(world_told(two.world, 0, ORDER_DELETE));
    two.world->ps[1].out_of_memory = false;
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK); /* the name is free again */
    world_free(two.world);
}

static void only_the_first_creator_of_an_assigned_variable_is_to_assign_it(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;

    const struct world_answer *creator = created(&two, &definition); /* when */
    const uint64_t later = world_create(two.world, two.second, &definition.variable, 0);
    assert_true(creator->assign);
    world_report_assigned(two.world, 0, creator->variable_id);
    assert_null(world_answer(two.world, later)); /* half of it is assigned */
    world_report_assigned(two.world, 1, creator->variable_id);

    assert_non_null(world_answer(two.world, later)); /* then */
    assert_false(world_answer(two.world, later)->assign);
    world_free(two.world);
}

static void a_retried_create_of_the_creator_is_told_again_to_assign(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);

    assert_true(created(&two, &definition)->assign);
    world_free(two.world);
}

static void when_the_creator_is_settled_the_one_that_waited_longest_takes_its_place(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;
    uint8_t third[16];

    memcpy(third, world_joined(two.world, "worker", 2, 3)->session_id, 16);
    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    const uint64_t longest = world_create(two.world, two.second, &definition.variable, 0);
    const uint64_t shortest = world_create(two.world, third, &definition.variable, 0);

    world_leave(two.world, two.first, false); /* when */
    world_settle_down(two.world);

    assert_true(world_answer(two.world, longest)->assign); /* then */
    assert_null(world_answer(two.world, shortest));
    world_free(two.world);
}

static void when_nobody_waits_for_a_settled_creator_the_next_create_takes_its_place(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    world_leave(two.world, two.first, false);
    world_settle_down(two.world);

    const uint64_t next = world_create(two.world, two.second, &definition.variable, 0);

    assert_true(world_answer(two.world, next)->assign);
    world_free(two.world);
}

static void a_create_that_waits_too_long_says_for_whom(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    const uint64_t assigning = world_create(two.world, two.second, &definition.variable, 2000);
    two.world->ps[1].silent = true;
    define(&definition, "v");
    const uint64_t adding = world_create(two.world, two.second, &definition.variable, 2000);

    world_pass(two.world, 3 * SECOND); /* when */

    assert_int_equal(world_answer(two.world, assigning)->status, SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(strstr(
        world_answer(two.world, assigning)->text,
        "create of w waits for worker 0 to assign it, last heard from 2 s ago"));
    assert_int_equal(world_answer(two.world, adding)->status, SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(strstr(
        world_answer(two.world, adding)->text,
        "create of v waits for ps 1 at h1:1, last heard from 2 s ago"));
    world_free(two.world);
}

static void a_settled_session_waits_for_no_create(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    const uint64_t waiting = world_create(two.world, two.second, &definition.variable, 0);

    world_leave(two.world, two.second, false);

    assert_int_equal(world_answer(two.world, waiting)->reason, SUMAC_REASON_SESSION_CLOSED);
    world_free(two.world);
}

static void a_deleted_variable_is_gone_on_every_ps_and_its_name_is_free(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    const uint64_t id = created(&two, &definition)->variable_id;
    two.world->ps[1].silent = true;

    const uint64_t deleted = world_delete(two.world, two.second, "w"); /* when */
    world_settle_down(two.world);
    assert_null(world_answer(two.world, deleted));
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    assert_int_equal(world_answer(two.world, deleted)->status, SUMAC_OK); /* then */
    assert_int_equal(world_told(two.world, 1, ORDER_DELETE)->variable_id, id);
    definition.shape[0] = 8;
    assert_int_not_equal(created(&two, &definition)->variable_id, id);
    world_free(two.world);
}

/* A worker that has not heard of the delete pushes to the shards that it knows. */
static void the_numbers_of_a_deleted_variable_are_never_given_again(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    const struct world_answer before = *created(&two, &definition);
    world_delete(two.world, two.first, "w");
    world_settle_down(two.world);

    const struct world_answer *after = created(&two, &definition);

    assert_true(after->variable_id > before.variable_id);
    assert_true(before.shard_id[1] > before.shard_id[0]);
    assert_true(after->shard_id[0] > before.shard_id[1]);
    world_free(two.world);
}

static void deleting_what_is_not_there_names_it(void **state)
{
    (void)state;
    struct two two = two_workers();

    const uint64_t call = world_delete(two.world, two.first, "w");

    assert_int_equal(world_answer(two.world, call)->status, SUMAC_NOT_FOUND);
    assert_non_null(strstr(world_answer(two.world, call)->text, "variable w"));
    world_free(two.world);
}

static void what_is_being_created_is_not_deleted_yet(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    two.world->ps[1].silent = true;
    const uint64_t create = world_create(two.world, two.first, &definition.variable, 0);

    const uint64_t early = world_delete(two.world, two.second, "w");
    assert_int_equal(world_answer(two.world, early)->status, SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(world_answer(two.world, early)->text, "w is being created"));
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    assert_int_equal(world_answer(two.world, create)->status, SUMAC_OK);
    world_free(two.world);
}

static void while_ps_0_ends_it_says_so_to_a_create_and_a_delete(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given */
    struct definition definition;

    define(&definition, "w");
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    two.world->ps[1].silent = true; /* a settle is under way, which ps 0 waits for */
    world_leave(two.world, two.second, true);
    world_terminate(two.world);

    const uint64_t create = world_create(two.world, two.first, &definition.variable, 0); /* when */
    const uint64_t deletion = world_delete(two.world, two.first, "w");

    assert_int_equal(world_answer(two.world, create)->reason, SUMAC_REASON_TERMINATED); /* then */
    assert_int_equal(world_answer(two.world, deletion)->reason, SUMAC_REASON_TERMINATED);
    world_free(two.world);
}

static void a_variable_without_rows_needs_nobody_to_assign_it(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    definition.shape[0] = 0;
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;

    assert_false(created(&two, &definition)->assign);
    world_free(two.world);
}

/* Two workers, the variable w, and memory for no order more. */
static struct two two_workers_without_orders(void)
{
    struct definition definition;
    struct two two = {.world = world_prepare(2, 3)};

    two.world->config.sessions_max = 100;
    world_begin(two.world);
    world_all_up(two.world);
    memcpy(two.first, world_joined(two.world, "worker", 0, 1)->session_id, 16);
    memcpy(two.second, world_joined(two.world, "worker", 1, 2)->session_id, 16);
    define(&definition, "w");
    assert_int_equal(created(&two, &definition)->status, SUMAC_OK);
    world_use_up_orders(two.world);
    return two;
}

static void a_delete_that_memory_is_short_for_is_done_when_there_is_some(void **state)
{
    (void)state;
    struct two two = two_workers_without_orders(); /* given */

    const uint64_t call = world_delete(two.world, two.first, "w"); /* when */
    world_pass(two.world, SECOND);

    assert_null(world_told(two.world, 0, ORDER_DELETE)); /* then */
    assert_true(
        world_waits(two.world, "delete of w waits: ps 0 has no memory for its order to the ps"));
    two.world->out_of_pools = false;
    world_pass(two.world, SECOND);
    assert_int_equal(world_told_count(two.world, 0, ORDER_DELETE), 1);
    assert_int_equal(world_told_count(two.world, 1, ORDER_DELETE), 1);
    assert_int_equal(world_answer(two.world, call)->status, SUMAC_OK);
    world_free(two.world);
}

static void a_create_that_memory_is_short_for_is_done_when_there_is_some(void **state)
{
    (void)state;
    struct two two = two_workers_without_orders(); /* given */
    struct definition definition;

    define(&definition, "v");

    const uint64_t call = world_create(two.world, two.first, &definition.variable, 0); /* when */
    world_pass(two.world, SECOND);

    assert_int_equal(world_told_count(two.world, 0, ORDER_ADD_SHARDS), 1); /* then */
    assert_null(world_answer(two.world, call));
    two.world->out_of_pools = false;
    world_pass(two.world, SECOND);
    assert_int_equal(world_told_count(two.world, 0, ORDER_ADD_SHARDS), 2);
    assert_int_equal(world_answer(two.world, call)->status, SUMAC_OK);
    world_free(two.world);
}

static void a_create_that_there_is_no_memory_to_let_wait_says_so(void **state)
{
    (void)state;
    struct two two = two_workers(); /* given: no call has waited yet, and no pool grows */
    struct definition definition;

    define(&definition, "v");
    two.world->out_of_pools = true;

    const uint64_t call = world_create(two.world, two.first, &definition.variable, 0); /* when */

    const struct world_answer *answer = world_answer(two.world, call); /* then */
    assert_non_null(answer);
    assert_int_equal(answer->reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_string_equal(
        answer->text,
        "ps 0 has no memory to let the create of v wait; it goes on without an answer: ask again");
    world_settle_down(two.world);
    const uint64_t again = world_create(two.world, two.first, &definition.variable, 0);
    assert_int_equal(world_answer(two.world, again)->status, SUMAC_OK);
    world_free(two.world);
}

static void one_create_too_many_is_told_how_many_wait(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "v");
    two.world->ps[1].mute = true;
    for (uint32_t i = 0; i < 4096; i++)
        (void)world_create(two.world, two.first, &definition.variable, 0);

    const uint64_t call = world_create(two.world, two.first, &definition.variable, 0);

    assert_non_null(world_answer(two.world, call));
    assert_string_equal(
        world_answer(two.world, call)->text,
        "4096 creates and deletes wait already, at most 4096 do: create v again later");
    world_free(two.world);
}

static void of_two_ps_that_cannot_make_their_parts_the_first_is_named(void **state)
{
    (void)state;
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    two.world->ps[0].out_of_memory = two.world->ps[1].out_of_memory = true;

    const struct world_answer *failed = created(&two, &definition);

    assert_int_equal(failed->reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_non_null(strstr(failed->text, "ps 0 at h0:1"));
    world_free(two.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_is_added_everywhere_then_published_everywhere_then_answered),
        cmocka_unit_test(shards_are_placed_round_robin_over_all_variables),
        cmocka_unit_test(hyperparameters_that_are_left_out_are_filled_in),
        cmocka_unit_test(an_equal_create_is_answered_with_the_variable_that_is_there),
        cmocka_unit_test(an_equal_create_waits_while_the_variable_is_being_made),
        cmocka_unit_test(a_differing_create_is_told_the_first_field_that_differs_with_both_values),
        cmocka_unit_test(every_number_of_a_definition_tells_two_creates_apart),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(shapes_that_are_none_are_refused_and_printed),
        cmocka_unit_test(what_a_variable_cannot_be_is_refused),
        cmocka_unit_test(a_create_without_a_session_is_refused),
        cmocka_unit_test(a_create_that_fails_on_one_ps_is_taken_back_on_all),
        cmocka_unit_test(only_the_first_creator_of_an_assigned_variable_is_to_assign_it),
        cmocka_unit_test(a_retried_create_of_the_creator_is_told_again_to_assign),
        cmocka_unit_test(when_the_creator_is_settled_the_one_that_waited_longest_takes_its_place),
        cmocka_unit_test(when_nobody_waits_for_a_settled_creator_the_next_create_takes_its_place),
        cmocka_unit_test(a_create_that_waits_too_long_says_for_whom),
        cmocka_unit_test(a_settled_session_waits_for_no_create),
        cmocka_unit_test(a_deleted_variable_is_gone_on_every_ps_and_its_name_is_free),
        cmocka_unit_test(the_numbers_of_a_deleted_variable_are_never_given_again),
        cmocka_unit_test(deleting_what_is_not_there_names_it),
        cmocka_unit_test(what_is_being_created_is_not_deleted_yet),
        cmocka_unit_test(a_variable_without_rows_needs_nobody_to_assign_it),
        cmocka_unit_test(while_ps_0_ends_it_says_so_to_a_create_and_a_delete),
        cmocka_unit_test(a_delete_that_memory_is_short_for_is_done_when_there_is_some),
        cmocka_unit_test(a_create_that_memory_is_short_for_is_done_when_there_is_some),
        cmocka_unit_test(a_create_that_there_is_no_memory_to_let_wait_says_so),
        cmocka_unit_test(one_create_too_many_is_told_how_many_wait),
        cmocka_unit_test(of_two_ps_that_cannot_make_their_parts_the_first_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
