/* SPDX-License-Identifier: Apache-2.0 */
/* controller_create.c -- creating variables: on all ps or on none, one creator, one definition. */

#include "unit.h"
#include "controller_two.h"

TEST(a_variable_is_added_everywhere_then_published_everywhere_then_answered)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    two.world->ps[1].silent = true;

    world_create(two.world, two.first, &definition.variable, 0); /* when */
    world_settle_down(two.world);
    /* nobody sees half a variable */
    world_expect(two.world, "ps 0, 1: add 1 w\n");
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    world_expect(
        two.world, "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(hyperparameters_that_are_left_out_are_filled_in)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(an_equal_create_is_answered_with_the_variable_that_is_there)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    created(&two, &definition);

    world_create(two.world, two.second, &definition.variable, 0);

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n"
                   "4: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(an_equal_create_waits_while_the_variable_is_being_made)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    world_create(two.world, two.first, &definition.variable, 0);
    world_create(two.world, two.second, &definition.variable, 0);
    world_expect(two.world, "ps 0, 1: add 1 w\n");
    world_settle_down(two.world);

    world_expect(
        two.world, "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n"
                   "4: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(a_differing_create_is_told_the_first_field_that_differs_with_both_values)
{
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
    definition.partitioner.num_shards = UINT64_C(1) << 63;
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS,
        "partitioner fixed_shards(2), this create says fixed_shards(9223372036854775808)");
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

TEST(every_number_of_a_definition_tells_two_creates_apart)
{
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
    world_forget(two.world);
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");

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
    created(&two, &definition);
    world_expect(two.world, "11: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(names_that_are_none_are_refused)
{
    struct two two = two_workers();
    struct definition definition;
    char long_name[1026];

    memset(long_name, 'x', 1025);
    long_name[1025] = '\0';

    define(&definition, "");
    world_forget(two.world);
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
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 xxx…\n"
                   "ps 0, 1: publish 1\n"
                   "8: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    define(&definition, "w/part_x");
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 2 w/part_x\n"
                   "ps 0, 1: publish 2\n"
                   "9: created 2 shard 3 on ps 0 shard 4 on ps 1 rate 0.01 published\n");
    define(&definition, "grün/part_");
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 3 grün/part_\n"
                   "ps 0, 1: publish 3\n"
                   "10: created 3 shard 5 on ps 0 shard 6 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(shapes_that_are_none_are_refused_and_printed)
{
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

TEST(what_a_variable_cannot_be_is_refused)
{
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
    assert_refused(
        &two, &definition, SUMAC_REASON_UNSUPPORTED, "w: partitioner parameter num_shards");
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

TEST(a_create_without_a_session_is_refused)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    world_create(two.world, WORLD_NOBODY, &definition.variable, 0);

    world_expect(
        two.world, "3: NOT_FOUND SESSION_UNKNOWN ps 0 knows no such session: it was "
                   "restarted since the join and its state is lost, or the session ended "
                   "long ago, or no join has given this id; join anew\n");
    world_free(two.world);
}

TEST(a_create_that_fails_on_one_ps_is_taken_back_on_all)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    two.world->ps[1].out_of_memory = true;

    created(&two, &definition); /* when */

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "3: RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 1 at h1:1 "
                   "cannot make its part of w: no memory\n"
                   "ps 0, 1: delete 1\n");
    assert_true(world_logged(two.world, "ps 1 at h1:1 cannot make its part of w: no memory\n"));
    two.world->ps[1].out_of_memory = false;
    created(&two, &definition);
    /* the name is free again */
    world_expect(
        two.world, "ps 0, 1: add 2 w\n"
                   "ps 0, 1: publish 2\n"
                   "4: created 2 shard 3 on ps 0 shard 4 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(only_the_first_creator_of_an_assigned_variable_is_to_assign_it)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;

    const struct world_answer *creator = created(&two, &definition); /* when */
    world_create(two.world, two.second, &definition.variable, 0);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n");
    world_report_assigned(two.world, 0, creator->variable_id);
    /* half of it is assigned */
    world_expect(two.world, "");
    world_report_assigned(two.world, 1, creator->variable_id + 1); /* of which ps 0 knows nothing */
    world_expect(two.world, "");
    world_report_assigned(two.world, 1, creator->variable_id);

    world_expect(two.world, "4: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(a_retried_create_of_the_creator_is_told_again_to_assign)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);

    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n"
                   "4: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n");
    world_free(two.world);
}

TEST(when_the_creator_is_settled_the_one_that_waited_longest_takes_its_place)
{
    struct two two = two_workers(); /* given */
    struct definition definition;

    const uint32_t third = world_joined(two.world, "worker", 2, 3);
    define(&definition, "w");
    world_forget(two.world);
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    world_create(two.world, two.second, &definition.variable, 0);
    world_create(two.world, third, &definition.variable, 0);

    world_leave(two.world, two.first, false); /* when */
    world_settle_down(two.world);

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "4: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n"
                   "ps 0, 1: close 1: it has left\n"
                   "ps 0, 1: decide 1 at 0\n"
                   "7: left at 0\n"
                   "5: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n");
    world_free(two.world);
}

TEST(when_nobody_waits_for_a_settled_creator_the_next_create_takes_its_place)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    world_leave(two.world, two.first, false);
    world_settle_down(two.world);

    world_create(two.world, two.second, &definition.variable, 0);

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n"
                   "ps 0, 1: close 1: it has left\n"
                   "ps 0, 1: decide 1 at 0\n"
                   "4: left at 0\n"
                   "5: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n");
    world_free(two.world);
}

TEST(a_create_that_waits_too_long_says_for_whom)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    world_create(two.world, two.second, &definition.variable, 2000);
    two.world->ps[1].silent = true;
    define(&definition, "v");
    world_create(two.world, two.second, &definition.variable, 2000);

    world_pass(two.world, 3 * SECOND); /* when */

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n"
                   "ps 0, 1: add 2 v\n"
                   "4: DEADLINE_EXCEEDED TIMED_OUT after 2 s create of w waits for "
                   "worker 0 to assign it, last heard from 2 s ago; call again, or allow the call "
                   "more time\n"
                   "5: DEADLINE_EXCEEDED TIMED_OUT after 2 s create of v waits "
                   "for ps 1 at h1:1, last heard from 2 s ago; call again, or allow the call more "
                   "time\n");
    world_free(two.world);
}

/* Before the run ends for it. */
TEST(a_create_that_ends_while_a_ps_is_missing_says_what_to_do_about_the_ps)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition); /* given */

    two.world->ps[1].silent = true;
    world_create(two.world, two.second, &definition.variable, 4000);

    world_pass(two.world, 4 * SECOND); /* when */

    world_expect(/* then */
                 two.world,
                 "ps 0, 1: add 1 w\n"
                 "3: DEADLINE_EXCEEDED TIMED_OUT after 4 s create of w waits for ps 1 at h1:1, "
                 "last heard from 4 s ago; if that ps does not come back, start the whole run "
                 "again, ps and workers\n");
    world_free(two.world);
}

TEST(a_settled_session_waits_for_no_create)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
    created(&two, &definition);
    world_create(two.world, two.second, &definition.variable, 0);

    world_leave(two.world, two.second, false);

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published assign\n"
                   "4: FAILED_PRECONDITION SESSION_CLOSED the session of worker 1 is closed: it "
                   "has left; start this process again\n"
                   "ps 0, 1: close 2: it has left\n");
    world_free(two.world);
}

TEST(a_variable_without_rows_needs_nobody_to_assign_it)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    definition.shape[0] = 0;
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;

    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 rate 0.01 published\n");
    world_free(two.world);
}

TEST(a_variable_whose_rows_have_no_bytes_needs_nobody_either)
{
    uint64_t shape[] = {10, 0};
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    definition.variable.shape = shape;
    definition.variable.n_shape = 2;
    definition.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;

    created(&two, &definition);

    assert_non_null(strstr(two.world->text, "published\n"));
    assert_null(strstr(two.world->text, "assign"));
    world_free(two.world);
}

TEST(a_create_that_there_is_no_memory_to_let_wait_says_so)
{
    struct two two = two_workers(); /* given: no call has waited yet, and no pool grows */
    struct definition definition;

    define(&definition, "v");
    world_forget(two.world);
    two.world->out_of_pools = true;

    world_create(two.world, two.first, &definition.variable, 0); /* when */

    world_expect(
        two.world, "3: RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 0 has no memory to let the "
                   "create of v wait; it goes on without an answer: ask again\n"
                   "ps 0, 1: add 1 v\n");
    world_settle_down(two.world);
    world_create(two.world, two.first, &definition.variable, 0);
    world_expect(
        two.world, "ps 0, 1: publish 1\n"
                   "4: created 1 shard 1 on ps 0 shard 2 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

TEST(one_create_too_many_is_told_how_many_wait)
{
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "v");
    world_forget(two.world);
    two.world->ps[1].mute = true;
    for (uint32_t i = 0; i < 4096; i++)
        (void)world_create(two.world, two.first, &definition.variable, 0);

    world_create(two.world, two.first, &definition.variable, 0);

    world_expect(
        two.world, "ps 0, 1: add 1 v\n"
                   "4099: RESOURCE_EXHAUSTED BUSY 4096 creates, deletes and defines "
                   "wait already, at most 4096 do: the create of v has to be asked for again "
                   "later\n");
    world_free(two.world);
}

TEST(a_create_of_nothing_is_refused)
{
    struct two two = two_workers();

    world_forget(two.world);

    world_create(two.world, two.first, NULL, 0);

    world_expect_answer(two.world, "INVALID_ARGUMENT MALFORMED create names no variable");
    world_free(two.world);
}

/* Whoever waits for others alone is not told. */
TEST(what_a_ps_cannot_make_fails_all_that_wait_for_it_and_nobody_else)
{
    enum { A, B, V, W };
    static const char *const names[] = {"a", "b", "v", "w"};
    struct two two = two_workers();
    struct definition definitions[4];

    for (int i = A; i <= W; i++)
        define(&definitions[i], names[i]);
    wire_variable *others[] = {&definitions[A].variable, &definitions[B].variable};
    wire_variable *bad[] = {&definitions[V].variable, &definitions[W].variable};
    two.world->ps[1].silent = true; /* given: all wait for ps 1 */
    const uint64_t without = world_create_many(two.world, two.second, others, 2);
    const uint64_t alone = world_create(two.world, two.first, &definitions[V].variable, 0);
    const uint64_t with = world_create_many(two.world, two.second, bad, 2);
    const uint64_t itself = world_create(two.world, two.first, &definitions[W].variable, 0);

    two.world->ps[1].bad_add = 4; /* when: it cannot make w */
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    assert_int_equal(world_answer(two.world, without)->status, SUMAC_OK);
    assert_int_equal(world_answer(two.world, alone)->status, SUMAC_OK);
    assert_int_equal(world_answer(two.world, with)->reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_int_equal(world_answer(two.world, itself)->reason, SUMAC_REASON_OUT_OF_MEMORY);
    world_free(two.world);
}

TEST(of_two_ps_that_cannot_make_their_parts_the_first_is_named)
{
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "w");
    two.world->ps[0].out_of_memory = two.world->ps[1].out_of_memory = true;

    world_forget(two.world);
    created(&two, &definition);

    world_expect(
        two.world, "ps 0, 1: add 1 w\n"
                   "3: RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 0 at h0:1 "
                   "cannot make its part of w: no memory\n"
                   "ps 0, 1: delete 1\n");
    world_free(two.world);
}

TEST(waits_that_one_answer_has_no_room_for_are_counted)
{
    struct two two = two_workers();
    struct definition definition;
    struct controller_waits waits;

    define(&definition, "v");
    two.world->ps[1].mute = true;
    for (uint32_t i = 0; i < 300; i++)
        (void)world_create(two.world, two.first, &definition.variable, 0);

    controller_list_waits(two.world->controller, two.world->now_us, &waits);

    assert_int_equal(waits.count, 256);
    assert_int_equal(waits.left_out, 300 - 256);
    world_free(two.world);
}
