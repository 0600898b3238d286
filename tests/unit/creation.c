/* SPDX-License-Identifier: Apache-2.0 */
/* creation.c (test) -- variables that are created within the replicas' function. */
#include <stdatomic.h>

#include "distributed_fixture.h"
#include "../returning.h"

#define REPLICAS 3u

/* What the replicas do. Each may ask for something else than the first. */
struct creating {
    struct sumac_variable_options options, others; /* others.name NULL: as `options` */
    bool without_context, others_return;
    struct sumac_variable *made[REPLICAS];
    struct sumac_value *initial[REPLICAS]; /* NULL: those of the options */
    enum sumac_status status[REPLICAS];
    struct sumac_error error[REPLICAS];
};

static enum sumac_status
create_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct creating *creating = context;
    const uint32_t id = sumac_replica_id(replica);
    struct sumac_variable_options options =
        id > 0 && creating->others.name != NULL ? creating->others : creating->options;

    (void)error;
    if (id > 0 && creating->others_return)
        return SUMAC_OK;
    if (creating->initial[id] != NULL)
        options.initial = creating->initial[id];
    options.replica = creating->without_context ? NULL : replica;
    creating->status[id] = sumac_variable_create(
        sumac_replica_strategy(replica), &options, &creating->made[id], &creating->error[id]);
    return SUMAC_OK;
}

static void run_creating(struct sumac_strategy *strategy, struct creating *creating)
{
    const struct sumac_run_options step = {.function = create_in_replica, .context = creating};

    assert_int_equal(sumac_strategy_run(strategy, &step, NULL, NULL), SUMAC_OK);
}

/* All have failed so, and nothing was given. */
static void
expect_refused(const struct creating *creating, enum sumac_status status, const char *words)
{
    for (uint32_t i = 0; i < REPLICAS; i++) {
        assert_int_equal(creating->status[i], status);
        assert_non_null(strstr(creating->error[i].text, words));
        assert_null(creating->made[i]);
    }
}

TEST(replicas_that_create_a_variable_get_the_same_one)
{
    struct sumac_strategy *strategy = mirrored(REPLICAS);
    struct creating creating = {
        .options = {.name = "w", .aggregation = SUMAC_REDUCE_SUM},
        .initial = {vector(1, 2), vector(3, 4), vector(5, 6)}};

    run_creating(strategy, &creating);

    for (uint32_t i = 0; i < REPLICAS; i++) {
        assert_int_equal(creating.status[i], SUMAC_OK);
        assert_ptr_equal(creating.made[i], creating.made[0]);
        sumac_value_unref(creating.initial[i]);
    }
    assert_true(sumac_variable_created_in_scope(strategy, creating.made[0]));
    assert_string_equal(sumac_variable_name(creating.made[0]), "w");
    assert_int_equal(sumac_variable_aggregation(creating.made[0]), SUMAC_REDUCE_SUM);
    /* replica 0's proposal */
    expect_components(creating.made[0], "(float32[2] 1 2, float32[2] 1 2, float32[2] 1 2)");
    sumac_variable_destroy(creating.made[0]);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status
create_and_write(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_value *const initial = context;
    struct sumac_variable *first = NULL, *second = NULL;

    enum sumac_status status = sumac_variable_create(
        sumac_replica_strategy(replica),
        &(struct sumac_variable_options){
            .name = "first",
            .initial = initial,
            .aggregation = SUMAC_REDUCE_SUM,
            .replica = replica},
        &first, error);
    if (status == SUMAC_OK)
        status = sumac_variable_create(
            sumac_replica_strategy(replica),
            &(struct sumac_variable_options){
                .name = "second", .initial = initial, .colocate_with = first, .replica = replica},
            &second, error);
    return return_from_replica(
        replica,
        status == SUMAC_OK && second != first
            ? sumac_variable_assign_add(first, replica, initial, &returned, error)
            : status,
        &returned);
}

/* Also of a strategy of one replica, on the caller's thread. */
TEST(a_variable_is_used_as_soon_as_it_is_created)
{
    struct sumac_strategy *one = NULL, *several = mirrored(REPLICAS);
    struct sumac_value *initial = vector(1, 2), *result = NULL;
    const struct sumac_run_options step = {.function = create_and_write, .context = initial};

    assert_int_equal(
        sumac_strategy_create(
            &(struct sumac_strategy_options){.kind = SUMAC_STRATEGY_DEFAULT}, &one, NULL),
        SUMAC_OK);
    assert_int_equal(sumac_strategy_run(one, &step, &result, NULL), SUMAC_OK);
    expect_printed(result, "float32[2] 2 4");
    assert_int_equal(sumac_strategy_run(several, &step, &result, NULL), SUMAC_OK);
    struct sumac_value *own = NULL;
    assert_int_equal(sumac_value_select(result, 2, &own, NULL), SUMAC_OK);
    expect_printed(own, "float32[2] 4 8");

    sumac_value_unref(result);
    sumac_value_unref(initial);
    sumac_strategy_destroy(one);
    sumac_strategy_destroy(several);
}

static void expect_difference(
    struct sumac_strategy *strategy, struct sumac_variable_options one,
    struct sumac_variable_options other, const char *words)
{
    struct sumac_value *initial = vector(1, 2);
    struct creating creating = {.options = one, .others = other};

    creating.options.initial = initial;
    if (other.initial == NULL)
        creating.others.initial = initial;
    run_creating(strategy, &creating);
    expect_refused(&creating, SUMAC_INVALID_ARGUMENT, words);
    sumac_value_unref(initial);
}

/* Every option but the initial elements. */
TEST(replicas_that_ask_for_another_variable_are_told_how_it_differs)
{
    const float three[] = {1, 2, 3};
    const uint64_t rows[] = {1, 1};
    struct sumac_value *longer = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3), three);
    const struct sumac_variable_options w = {.name = "w"};
    struct sumac_strategy *strategy = mirrored(REPLICAS);
    struct sumac_variable *base = NULL;

    assert_int_equal(
        sumac_variable_create(
            strategy, &(struct sumac_variable_options){.name = "base", .initial = longer}, &base,
            NULL),
        SUMAC_OK);
    const struct {
        struct sumac_variable_options other;
        const char *words;
    } cases[] = {
        {{.name = "v"}, "a variable's creation: replica 0 comes with w, float32[2]"},
        {{.name = "w", .initial = longer}, "and replica 1 with w, float32[3]"},
        {{.name = "w", .synchronization = SUMAC_SYNCHRONIZATION_ON_READ},
         "replica 1 with w, float32[2], ON_READ"},
        {{.name = "w", .aggregation = SUMAC_REDUCE_SUM},
         "replica 1 with w, float32[2], ON_WRITE SUM"},
        {{.name = "w", .trainable = SUMAC_TRAINABLE_NO}, "not trainable"},
        {{.name = "w", .function = {.name = "sgd"}}, "sgd"},
        {{.name = "w", .partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 2}},
         "partitioner 1 of 2"},
        {{.name = "w",
          .partitioner =
              {.kind = SUMAC_PARTITIONER_MIN_SIZE, .min_shard_bytes = 4, .max_shards = 3}},
         "partitioner 2 of 0 4 3 0"},
        {{.name = "w", .partitioner = {.kind = SUMAC_PARTITIONER_MAX_SIZE, .max_shard_bytes = 8}},
         "partitioner 3 of 0 0 0 8"},
        {{.name = "w", .shard_rows = rows, .shard_count = 2}, "shards of 1 1"},
        {{.name = "w", .colocate_with = base}, "beside base"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_difference(strategy, w, cases[i].other, cases[i].words);
    sumac_variable_destroy(base);
    sumac_strategy_destroy(strategy);
    sumac_value_unref(longer);
}

TEST(a_replica_that_asks_for_no_variable_fails_all)
{
    struct sumac_strategy *strategy = mirrored(REPLICAS);
    struct sumac_value *initial = vector(1, 2), *none = sumac_value_none();
    struct creating nothing = {
        .options = {.name = "w", .initial = initial}, .others = {.name = "w", .initial = none}};
    struct creating alone = {.options = {.name = "w", .initial = initial, .process_local = true}};
    struct creating known = {
        .options = {.name = "w", .initial = initial, .function = {.name = "no such"}}};

    run_creating(strategy, &nothing);
    expect_refused(&nothing, SUMAC_INVALID_ARGUMENT, "replica 1: variable w: initial is no tensor");
    run_creating(strategy, &alone);
    expect_refused(&alone, SUMAC_FAILED_PRECONDITION, "variable w: it is process_local");
    run_creating(strategy, &known);
    expect_refused(&known, SUMAC_INVALID_ARGUMENT, "no such");
    sumac_value_unref(initial);
    sumac_value_unref(none);
    sumac_strategy_destroy(strategy);
}

TEST(replicas_that_return_without_it_are_named)
{
    struct sumac_strategy *strategy = mirrored(REPLICAS);
    struct sumac_value *initial = vector(1, 2);
    struct creating creating = {
        .options = {.name = "w", .initial = initial}, .others_return = true};

    run_creating(strategy, &creating);

    assert_int_equal(creating.status[0], SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(strstr(creating.error[0].text, "a variable's creation, call 1 of the run: "));
    assert_non_null(strstr(creating.error[0].text, "returned without it"));
    assert_null(creating.made[0]);
    sumac_value_unref(initial);
    sumac_strategy_destroy(strategy);
}

/* Without the context, or with one that is over. */
TEST(a_context_that_is_not_the_replicas_is_refused)
{
    struct sumac_strategy *strategy = mirrored(REPLICAS), *other = mirrored(2);
    struct sumac_value *initial = vector(1, 2);
    struct creating creating = {
        .options = {.name = "w", .initial = initial}, .without_context = true};
    struct sumac_variable *made = NULL;
    struct sumac_error error;

    run_creating(strategy, &creating);
    expect_refused(
        &creating, SUMAC_FAILED_PRECONDITION, "options->replica is NULL; set it to the context");
    const struct sumac_variable_options stolen = {
        .name = "w", .initial = initial, .replica = (struct sumac_replica *)(void *)other};
    assert_int_equal(
        sumac_variable_create(strategy, &stolen, &made, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "options->replica is not the context of this replica"));
    assert_null(made);
    sumac_value_unref(initial);
    sumac_strategy_destroy(strategy);
    sumac_strategy_destroy(other);
}
