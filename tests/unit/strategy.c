/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c (test) -- contexts, what a run makes of its replicas, and calls that all of them make.
 * The arithmetic is the conformance cases' (tests/conformance). */
#include <pthread.h>

#include "unit.h"
#include "strategy_made.h"
#include "../returning.h"
#include "sumac/variable.h"
#include "sumac/strategy.h"

/* ---- contexts ---- */

TEST(a_scope_is_of_its_thread_and_counts)
{
    struct sumac_strategy *strategy = mirrored(2);

    assert_null(sumac_present_strategy());
    assert_int_equal(sumac_strategy_enter(strategy, NULL), SUMAC_OK);
    assert_int_equal(sumac_strategy_enter(strategy, NULL), SUMAC_OK);
    assert_int_equal(sumac_strategy_leave(strategy, NULL), SUMAC_OK);
    assert_ptr_equal(sumac_present_strategy(), strategy);
    assert_true(sumac_in_cross_replica_context());

    assert_int_equal(sumac_strategy_leave(strategy, NULL), SUMAC_OK);
    assert_null(sumac_present_strategy());
    assert_int_equal(sumac_strategy_leave(strategy, NULL), SUMAC_FAILED_PRECONDITION);
    sumac_strategy_destroy(strategy);
}

TEST(a_strategy_may_be_set_without_a_scope)
{
    struct sumac_strategy *strategy = mirrored(2), *other = mirrored(2);
    struct sumac_error error;

    assert_int_equal(sumac_set_strategy(strategy, NULL), SUMAC_OK);
    assert_ptr_equal(sumac_present_strategy(), strategy);
    assert_true(sumac_in_cross_replica_context());
    assert_int_equal(sumac_strategy_leave(strategy, NULL), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(sumac_strategy_enter(other, NULL), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(sumac_strategy_enter(strategy, NULL), SUMAC_OK);
    assert_int_equal(sumac_set_strategy(other, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "called in a scope"));
    assert_int_equal(sumac_strategy_leave(strategy, NULL), SUMAC_OK);

    assert_ptr_equal(sumac_present_strategy(), strategy);
    assert_int_equal(sumac_set_strategy(other, NULL), SUMAC_OK);
    assert_ptr_equal(sumac_present_strategy(), other);
    assert_int_equal(sumac_set_strategy(NULL, NULL), SUMAC_OK);
    assert_null(sumac_present_strategy());
    sumac_strategy_destroy(strategy);
    sumac_strategy_destroy(other);
}

TEST(strategies_do_not_mix)
{
    struct sumac_strategy *one = mirrored(1), *other = mirrored(1);
    struct sumac_value *value = sumac_value_float32(1), *result = NULL;
    struct sumac_error error;

    assert_int_equal(sumac_strategy_enter(one, NULL), SUMAC_OK);

    assert_int_equal(sumac_strategy_enter(other, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "strategies do not mix"));
    assert_int_equal(
        sumac_strategy_reduce(other, SUMAC_REDUCE_MEAN, value, NULL, &result, NULL),
        SUMAC_FAILED_PRECONDITION);
    assert_int_equal(sumac_strategy_leave(one, NULL), SUMAC_OK);
    sumac_value_unref(value);
    sumac_strategy_destroy(one);
    sumac_strategy_destroy(other);
}

static enum sumac_status
look_around(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *reduced = NULL;

    (void)context;
    (void)error;
    struct sumac_strategy *strategy = sumac_replica_strategy(replica);
    const bool is_in = sumac_present_replica() == replica && !sumac_in_cross_replica_context() &&
                       sumac_present_strategy() == strategy;
    const bool refused = sumac_strategy_reduce(
                             strategy, SUMAC_REDUCE_SUM, sumac_replica_args(replica), NULL,
                             &reduced, NULL) == SUMAC_FAILED_PRECONDITION &&
                         sumac_strategy_run(
                             strategy, &(struct sumac_run_options){.function = look_around}, NULL,
                             NULL) == SUMAC_FAILED_PRECONDITION;
    sumac_replica_return(replica, sumac_value_int32(is_in && refused));
    return SUMAC_OK;
}

TEST(a_replica_is_in_a_context_of_its_own)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *result = NULL;

    assert_int_equal(
        sumac_strategy_run(
            strategy, &(struct sumac_run_options){.function = look_around}, &result, NULL),
        SUMAC_OK);

    expect_printed(result, "per_replica(0: int32[] 1, 1: int32[] 1)");
    assert_null(sumac_present_replica());
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

/* ---- run ---- */

static enum sumac_status
return_nothing(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)replica;
    (void)error;
    (*(uint32_t *)context)++;
    return SUMAC_OK;
}

TEST(nothing_is_returned_as_nothing)
{
    const struct sumac_strategy_options options = {.kind = SUMAC_STRATEGY_DEFAULT};
    struct sumac_strategy *strategy = NULL;
    struct sumac_value *result = NULL;
    uint32_t calls = 0;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_strategy_run(
            strategy, &(struct sumac_run_options){.function = return_nothing, .context = &calls},
            &result, NULL),
        SUMAC_OK);

    expect_printed(result, "none");
    assert_int_equal(calls, 1);
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

TEST(what_is_no_argument_list_is_refused)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *one = sumac_value_float32(1);
    uint32_t calls = 0;
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_run(
            strategy,
            &(struct sumac_run_options){.function = return_nothing, .context = &calls, .args = one},
            NULL, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "args is a tensor"));
    assert_int_equal(
        sumac_strategy_run(
            strategy,
            &(struct sumac_run_options){
                .function = return_nothing, .context = &calls, .kwargs = one},
            NULL, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "kwargs is a tensor"));
    assert_int_equal(calls, 0);
    sumac_value_unref(one);
    sumac_strategy_destroy(strategy);
}

/* ---- calls of all replicas ---- */

enum deed {
    SUM,
    GATHER,
    NOTHING,
    FAIL,
    OTHER_SHAPE,
    OTHER_REDUCTION,
    OTHER_AXIS,
    SUM_OF_NONE,
    SUM_OF_FLOAT64,
    SUM_OF_ROWS,
    SUM_OF_OTHER_ROWS,
    MERGE,
    OTHER_MERGE
};

/* What each replica does; args[0] is its number. */
struct deeds {
    enum deed of[4];
    struct sumac_communication_options options;
};

static enum sumac_status sum_up(
    struct sumac_replica *replica, struct sumac_value *value, const struct deeds *deeds,
    struct sumac_value **result, struct sumac_error *error)
{
    const enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, value, &deeds->options, result, error);

    sumac_value_unref(value);
    return status;
}

/* One row of as many. */
static enum sumac_status return_none(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)strategy, (void)args, (void)context, (void)result, (void)error;
    return SUMAC_OK;
}

static enum sumac_status return_none_otherwise(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    return return_none(strategy, args, context, result, error);
}

static enum sumac_status
do_deed(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct deeds *deeds = context;
    const struct sumac_value *own = sumac_value_item(sumac_replica_args(replica), 0);
    enum sumac_status status = SUMAC_OK;

    switch (deeds->of[sumac_replica_id(replica)]) {
    case SUM:
        status = sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, own, &deeds->options, &returned, error);
        break;
    case GATHER:
        status = sumac_replica_all_gather(replica, own, 0, &deeds->options, &returned, error);
        break;
    case OTHER_REDUCTION:
        status = sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_MEAN, own, &deeds->options, &returned, error);
        break;
    case OTHER_SHAPE:
        status = sum_up(
            replica, sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), NULL), deeds, &returned,
            error);
        break;
    case OTHER_AXIS:
        status = sumac_replica_all_gather(replica, own, 1, &deeds->options, &returned, error);
        break;
    case SUM_OF_NONE:
        status = sum_up(replica, sumac_value_none(), deeds, &returned, error);
        break;
    case SUM_OF_FLOAT64:
        status = sum_up(
            replica, sumac_value_tensor(SUMAC_FLOAT64, SUMAC_SCALAR, NULL), deeds, &returned,
            error);
        break;
    case SUM_OF_ROWS:
        status = sum_up(replica, row_of(4), deeds, &returned, error);
        break;
    case SUM_OF_OTHER_ROWS:
        status = sum_up(replica, row_of(5), deeds, &returned, error);
        break;
    case MERGE:
        status = sumac_replica_merge_call(
            replica, return_none, NULL, sumac_replica_args(replica), &returned, error);
        break;
    case OTHER_MERGE:
        status = sumac_replica_merge_call(
            replica, return_none_otherwise, NULL, sumac_replica_args(replica), &returned, error);
        break;
    case FAIL:
        status = SUMAC_NOT_FOUND;
        break;
    case NOTHING:
        break;
    }
    return return_from_replica(replica, status, &returned);
}

static enum sumac_status run_deeds(const struct deeds *deeds, struct sumac_error *error)
{
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_value *ids = of_ids(3), *result = NULL;
    struct sumac_value *args = sumac_value_tuple(&ids, 1);

    const enum sumac_status status = sumac_strategy_run(
        strategy,
        &(struct sumac_run_options){
            .function = do_deed, .context = (void *)(uintptr_t)deeds, .args = args},
        &result, error);
    if (status == SUMAC_OK)
        expect_printed(result, "per_replica(0: float32[] 3, 1: float32[] 3, 2: float32[] 3)");
    sumac_value_unref(result);
    sumac_value_unref(args);
    sumac_strategy_destroy(strategy);
    return status;
}

TEST(all_have_the_sum)
{
    assert_int_equal(run_deeds(&(struct deeds){.of = {SUM, SUM, SUM}}, NULL), SUMAC_OK);
}

static void expect_error(const struct deeds *deeds, enum sumac_status status, const char *words)
{
    struct sumac_error error = {0};

    assert_int_equal(run_deeds(deeds, &error), status);
    if (strstr(error.text, words) == NULL)
        fail_msg("expected %s in: %s", words, error.text);
}

TEST(who_comes_with_something_else_is_named)
{
    expect_error(
        &(struct deeds){.of = {SUM, OTHER_SHAPE, SUM}}, SUMAC_INVALID_ARGUMENT,
        "all_reduce: replica 0 has float32[], and replica 1 float32[2]");
    expect_error(
        &(struct deeds){.of = {SUM, SUM, GATHER}}, SUMAC_INVALID_ARGUMENT,
        "replica 0 calls all_reduce, and replica 2 all_gather");
    expect_error(
        &(struct deeds){.of = {SUM, OTHER_REDUCTION, SUM}}, SUMAC_INVALID_ARGUMENT,
        "replica 0 and replica 1 come with another reduction: SUM and MEAN");
    expect_error(
        &(struct deeds){.of = {GATHER, GATHER, OTHER_AXIS}}, SUMAC_INVALID_ARGUMENT,
        "replica 0 and replica 2 come with another axis");
    expect_error(
        &(struct deeds){.of = {MERGE, OTHER_MERGE, MERGE}}, SUMAC_INVALID_ARGUMENT,
        "merge_call: replica 0 and replica 1 come with another function");
    expect_error(
        &(struct deeds){.of = {SUM, SUM, SUM_OF_NONE}}, SUMAC_INVALID_ARGUMENT,
        "replica 0 has float32[], and replica 2 none");
    expect_error(
        &(struct deeds){.of = {SUM_OF_ROWS, SUM, SUM}}, SUMAC_INVALID_ARGUMENT,
        "replica 0 has slices of [4], indices int64, rows float32[1], and replica 1 float32[]");
    expect_error(
        &(struct deeds){.of = {SUM, SUM_OF_FLOAT64, SUM}}, SUMAC_INVALID_ARGUMENT,
        "replica 0 has float32[], and replica 1 float64[]");
    expect_error(
        &(struct deeds){.of = {SUM_OF_ROWS, SUM_OF_ROWS, SUM_OF_OTHER_ROWS}},
        SUMAC_INVALID_ARGUMENT,
        "replica 0 has slices of [4], indices int64, rows float32[1], and replica 2 slices of "
        "[5], ");
}

TEST(who_returns_without_the_call_is_named_at_once)
{
    expect_error(
        &(struct deeds){.of = {SUM, NOTHING, SUM}}, SUMAC_DEADLINE_EXCEEDED,
        "all_reduce, call 1 of the run: replica 1 returned without it");
}

TEST(who_fails_ends_the_others_calls_with_its_error)
{
    expect_error(
        &(struct deeds){.of = {SUM, FAIL, SUM}}, SUMAC_NOT_FOUND,
        "the function of replica 1 returned NOT_FOUND");
}

/* ---- and go on ---- */

static enum sumac_status
differ_once(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_communication_options *options = context;
    struct sumac_value *value = sumac_value_float32(1);
    enum sumac_status status = SUMAC_OK;
    struct sumac_error why = {0};

    if (sumac_replica_id(replica) == 0)
        status =
            sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, value, options, &returned, &why);
    else
        status = sumac_replica_all_gather(replica, value, 0, options, &returned, &why);
    if (status == SUMAC_INVALID_ARGUMENT) /* and the next one works */
        status =
            sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, value, options, &returned, error);
    sumac_value_unref(value);
    return return_from_replica(replica, status, &returned);
}

TEST(calls_that_differ_fail_for_both_and_the_run_goes_on)
{
    struct sumac_strategy *strategy = mirrored(2);
    const struct sumac_communication_options options = {.timeout_ms = 60000};
    struct sumac_value *result = NULL;

    assert_int_equal(
        sumac_strategy_run(
            strategy,
            &(struct sumac_run_options){
                .function = differ_once, .context = (void *)(uintptr_t)&options},
            &result, NULL),
        SUMAC_OK);

    expect_printed(result, "per_replica(0: float32[] 2, 1: float32[] 2)");
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

/* What replica 2 calls with. */
struct wrong {
    enum sumac_reduce_op op;
    bool is_null;
    struct sumac_communication_options options;
    const char *said;
};

static enum sumac_status
call_with_nothing(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_value *const own = sumac_value_item(sumac_replica_args(replica), 0);
    const struct wrong *const wrong = context;
    const bool errs = sumac_replica_id(replica) == 2;

    if (sumac_replica_all_reduce(
            replica, errs ? wrong->op : SUMAC_REDUCE_SUM, errs && wrong->is_null ? NULL : own,
            errs ? &wrong->options : NULL, &returned, error) != SUMAC_INVALID_ARGUMENT)
        return return_from_replica(replica, SUMAC_UNKNOWN, &returned);
    if (strstr(error->text, wrong->said) == NULL)
        return return_from_replica(replica, SUMAC_DATA_LOSS, &returned);
    return return_from_replica(
        replica, sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, own, NULL, &returned, error),
        &returned);
}

TEST(a_call_with_what_is_none_is_told_to_all_and_the_next_works)
{
    const struct wrong rows[] = {
        {.op = SUMAC_REDUCE_SUM, .is_null = true, .said = "all_reduce: replica 2: "},
        {.op = (enum sumac_reduce_op)7, .said = "all_reduce: replica 2: a reduction 7"},
        {.op = SUMAC_REDUCE_SUM,
         .options = {.bytes_per_pack = UINT64_MAX},
         .said = "all_reduce: replica 2: bytes_per_pack"},
    };
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_value *ids = of_ids(3);
    struct sumac_value *args = sumac_value_tuple(&ids, 1);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct sumac_run_options step = {
            .function = call_with_nothing, .args = args, .context = (void *)(uintptr_t)&rows[i]};
        struct sumac_value *result = NULL;
        assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);
        expect_printed(result, "per_replica(0: float32[] 3, 1: float32[] 3, 2: float32[] 3)");
        sumac_value_unref(result);
    }
    sumac_value_unref(args);
    sumac_strategy_destroy(strategy);
}

/* One that never comes, as it waits for what comes only when the others have given up. */
struct late {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool given_up;
};

static enum sumac_status
come_late(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_communication_options options = {.timeout_ms = 1};
    struct late *late = context;

    pthread_mutex_lock(&late->mutex);
    while (sumac_replica_id(replica) == 1 && !late->given_up)
        pthread_cond_wait(&late->changed, &late->mutex);
    pthread_mutex_unlock(&late->mutex);
    const enum sumac_status status = sumac_replica_all_reduce(
        replica, SUMAC_REDUCE_SUM, sumac_value_item(sumac_replica_args(replica), 0), &options,
        &returned, error);
    pthread_mutex_lock(&late->mutex);
    late->given_up = true;
    pthread_cond_broadcast(&late->changed);
    pthread_mutex_unlock(&late->mutex);
    return return_from_replica(replica, status, &returned);
}

TEST(who_is_late_is_named_and_hears_so_too)
{
    struct late late = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *ids = of_ids(2), *result = NULL;
    struct sumac_value *args = sumac_value_tuple(&ids, 1);
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_run(
            strategy,
            &(struct sumac_run_options){.function = come_late, .context = &late, .args = args},
            &result, &error),
        SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(strstr(error.text, "has waited 1 ms for replica 1"));

    sumac_strategy_destroy(strategy);
    sumac_value_unref(args);
}

/* ---- merge_call ---- */

static enum sumac_status merge(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *sum = NULL;

    (*(uint32_t *)context)++;
    assert_true(sumac_in_cross_replica_context());
    const enum sumac_status status = sumac_strategy_reduce(
        strategy, SUMAC_REDUCE_SUM, sumac_value_item(args, 0), NULL, &sum, error);
    if (status != SUMAC_OK)
        return status;
    struct sumac_value *const items[] = {sum, sumac_value_ref(sumac_value_item(args, 0))};
    *result = sumac_value_tuple(items, 2);
    return SUMAC_OK;
}

static enum sumac_status
call_merge(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica,
        sumac_replica_merge_call(
            replica, merge, context, sumac_replica_args(replica), &returned, error),
        &returned);
}

TEST(a_merge_call_runs_once_in_the_cross_replica_context)
{
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_value *ids = of_ids(3), *result = NULL;
    struct sumac_value *args = sumac_value_tuple(&ids, 1);
    uint32_t calls = 0;

    assert_int_equal(
        sumac_strategy_run(
            strategy,
            &(struct sumac_run_options){.function = call_merge, .context = &calls, .args = args},
            &result, NULL),
        SUMAC_OK);

    assert_int_equal(calls, 1);
    expect_printed(
        result, "(float32[] 3, per_replica(0: float32[] 0, 1: float32[] 1, 2: float32[] 2))");
    sumac_value_unref(result);
    sumac_value_unref(args);
    sumac_strategy_destroy(strategy);
}

static enum sumac_status refuse(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)strategy;
    (void)args;
    (void)context;
    (void)error;
    *result = sumac_value_none(); /* which nobody gets */
    return SUMAC_NOT_FOUND;
}

static enum sumac_status
merge_in_vain(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context;
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica,
        sumac_replica_merge_call(
            replica, refuse, NULL, sumac_replica_args(replica), &returned, error),
        &returned);
}

TEST(a_merge_call_that_fails_without_a_word_fails)
{
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_run(
            strategy, &(struct sumac_run_options){.function = merge_in_vain}, NULL, &error),
        SUMAC_NOT_FOUND);

    assert_string_equal(error.text, "the function of merge_call returned NOT_FOUND");
    sumac_strategy_destroy(strategy);
}

/* ---- made ---- */

TEST(options_that_are_none_are_refused)
{
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_create(
            &(struct sumac_strategy_options){.kind = (enum sumac_strategy_kind)9}, &strategy,
            &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_strategy_create(
            &(struct sumac_strategy_options){
                .kind = SUMAC_STRATEGY_MIRRORED, .replicas = SUMAC_REPLICAS_MAX + 1},
            &strategy, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_strategy_create(
            &(struct sumac_strategy_options){.kind = SUMAC_STRATEGY_ONE_DEVICE, .replicas = 2},
            &strategy, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "2 replicas of a one_device strategy"));
    assert_null(strategy);
}

/* sumac run --synchronous sets the variable for programs that make their strategy themselves, too.
 */
TEST(a_strategy_on_the_ps_refuses_to_be_synchronous)
{
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error;
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_PARAMETER_SERVER,
        .client = (struct sumac_client *)&strategy}; /* nobody calls it */

    setenv("SUMAC_SYNCHRONOUS", "1", 1);
    const enum sumac_status status = sumac_strategy_create(&options, &strategy, &error);
    unsetenv("SUMAC_SYNCHRONOUS");

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "make a multi_worker strategy, or unset SUMAC_SYNCHRONOUS"));
    assert_null(strategy);
}

TEST(an_absent_time_is_the_strategys)
{
    const struct sumac_strategy_options options = {.replicas = 1};
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    assert_string_equal(sumac_strategy_name(strategy), "default");
    assert_int_equal(sumac_strategy_num_replicas_in_sync(strategy), 1);
    sumac_strategy_destroy(strategy);
}

/* Each struct that says how is optional: NULL is the struct of zeros. */
TEST(options_that_are_null_are_the_defaults)
{
    struct sumac_strategy *alone = NULL, *from_environment = NULL, *two = mirrored(2);
    struct sumac_value *ids = of_ids(2), *sum = NULL, *sum_to = NULL;

    assert_int_equal(unsetenv("TF_CONFIG"), 0); /* given */

    assert_int_equal(sumac_strategy_create(NULL, &alone, NULL), SUMAC_OK); /* when */
    assert_int_equal(sumac_strategy_from_environment_with(NULL, &from_environment, NULL), SUMAC_OK);
    assert_int_equal(sumac_strategy_reduce(two, SUMAC_REDUCE_SUM, ids, NULL, &sum, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_strategy_reduce_to(two, SUMAC_REDUCE_SUM, ids, NULL, &sum_to, NULL), SUMAC_OK);

    assert_string_equal(sumac_strategy_name(alone), "default"); /* then */
    assert_string_equal(sumac_strategy_name(from_environment), "default");
    assert_int_equal(*(const float *)sumac_value_data(sum), 1);
    assert_true(sumac_value_equal(sum, sum_to));
    sumac_value_unref(ids);
    sumac_value_unref(sum);
    sumac_value_unref(sum_to);
    sumac_strategy_destroy(alone);
    sumac_strategy_destroy(from_environment);
    sumac_strategy_destroy(two);
}

#define TASK ",\"task\":{\"type\":\"worker\",\"index\":0}}"
#define ALONE "{\"cluster\":{\"worker\":[\"h0:1\"]}" TASK
#define TWO "{\"cluster\":{\"worker\":[\"h0:1\",\"h1:1\"]}" TASK
#define NO_PS "/nowhere/sumac cannot be started"

/* `name`: of the strategy; NULL: it fails as `error` says. A strategy of two workers fails here,
 * as there is no program to start its ps with. */
static const struct environment {
    const char *config, *strategy, *synchronous, *replicas, *devices, *name, *error;
} environments[] = {
    {ALONE, "", "", "", "", "default", NULL},
    {ALONE, "mirrored", "1", "2", "", "mirrored", NULL},
    {TWO, "", "", "", "", NULL, NO_PS},
    {TWO, "multi_worker", "1", "", "", NULL, NO_PS},
    {TWO, "mirrored", "1", "", "", NULL, "a mirrored strategy trains in its own process alone"},
    {TWO, "mirrored", "", "2", "", "mirrored", NULL},
    {"", "default", "", "1", "cpu", "default", NULL},
    {"", "default", "", "", "cpu:2", NULL, "SUMAC_DEVICES is cpu:2"},
    {"", "one_device", "", "", "cpu", "one_device", NULL},
    {"", "one_device", "", "2", "", NULL, "SUMAC_REPLICAS is 2"},
};

TEST(the_environment_says_which_strategy_it_is)
{
    static const char *const names[] = {
        "TF_CONFIG", "SUMAC_STRATEGY", "SUMAC_SYNCHRONOUS", "SUMAC_REPLICAS", "SUMAC_DEVICES"};

    setenv("SUMAC_PROGRAM", "/nowhere/sumac", 1);
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        const struct environment *given = &environments[i];
        const char *const values[] = {
            given->config, given->strategy, given->synchronous, given->replicas, given->devices};
        struct sumac_strategy *strategy = NULL;
        struct sumac_error error = {.status = SUMAC_OK};
        for (size_t at = 0; at < sizeof names / sizeof *names; at++)
            setenv(names[at], values[at], 1);

        const enum sumac_status status = sumac_strategy_from_environment(&strategy, &error);

        assert_int_equal(status == SUMAC_OK, given->name != NULL);
        const char *name = strategy == NULL ? "" : sumac_strategy_name(strategy);
        if (strcmp(name, given->name == NULL ? "" : given->name) != 0 ||
            (given->error != NULL && strstr(error.text, given->error) == NULL))
            fail_msg("environment %zu: %s strategy, %s", i, name, error.text);
        sumac_strategy_destroy(strategy);
    }
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        unsetenv(names[at]);
    unsetenv("SUMAC_PROGRAM");
}
