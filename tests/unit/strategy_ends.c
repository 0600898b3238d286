/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_ends.c (test) -- how runs and calls end, and what they leave: after several failures,
 * after a scope within a merge call, without a value. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "strategy_made.h"
#include "../returning.h"
#include "sumac/variable.h"

static enum sumac_status
run(struct sumac_strategy *strategy, sumac_replica_function *function, void *context,
    struct sumac_error *error)
{
    return sumac_strategy_run(
        strategy, &(struct sumac_run_options){.function = function, .context = context}, NULL,
        error);
}

/* Replica 1 fails, replica 0 hears of that in its call, and fails by something else. */
static enum sumac_status
fail_one_after_the_other(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_error heard;

    (void)context;
    if (sumac_replica_id(replica) == 1)
        return return_from_replica(replica, SUMAC_NOT_FOUND, &returned);
    assert_int_equal(
        sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, sumac_replica_args(replica), NULL, &returned, &heard),
        SUMAC_NOT_FOUND);
    *error = (struct sumac_error){.status = SUMAC_OK};
    return return_from_replica(replica, SUMAC_DATA_LOSS, &returned);
}

TEST(of_replicas_that_fail_one_after_the_other_the_first_is_told)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_error error;

    assert_int_equal(
        run(strategy, fail_one_after_the_other, NULL, &error), SUMAC_NOT_FOUND); /* when */

    assert_string_equal(error.text, "the function of replica 1 returned NOT_FOUND"); /* then */
    assert_int_equal(run(strategy, fail_one_after_the_other, NULL, &error), SUMAC_NOT_FOUND);
    sumac_strategy_destroy(strategy);
}

/* ---- a call that is late, whatever the time of day is */

static enum sumac_status
come_alone(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_communication_options options = {.timeout_ms = 999};
    pthread_barrier_t *over = context;
    enum sumac_status status = SUMAC_OK;

    if (sumac_replica_id(replica) == 0)
        status = sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, sumac_replica_args(replica), &options, &returned, error);
    (void)pthread_barrier_wait(over);
    return return_from_replica(replica, status, &returned);
}

TEST(a_call_is_late_after_its_time)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_error error;
    pthread_barrier_t over;

    assert_int_equal(pthread_barrier_init(&over, NULL, 2), 0); /* given */
    (void)alarm(60);                                           /* one that waits on would hang */

    assert_int_equal(run(strategy, come_alone, &over, &error), SUMAC_DEADLINE_EXCEEDED); /* when */

    (void)alarm(0);
    assert_non_null(strstr(error.text, "has waited 999 ms for replica 1")); /* then */
    pthread_barrier_destroy(&over);
    sumac_strategy_destroy(strategy);
}

/* ---- within a merge call */

static enum sumac_status enter_and_leave(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)args, (void)context, (void)result;
    assert_int_equal(sumac_strategy_enter(strategy, error), SUMAC_OK);
    assert_int_equal(sumac_strategy_leave(strategy, error), SUMAC_OK);
    assert_true(sumac_in_cross_replica_context());
    assert_ptr_equal(sumac_present_strategy(), strategy);
    return SUMAC_OK;
}

static enum sumac_status run_another(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error);

static enum sumac_status
merge_into(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica,
        sumac_replica_merge_call(
            replica, context == NULL ? enter_and_leave : run_another, context, NULL, &returned,
            error),
        &returned);
}

TEST(a_scope_that_is_left_within_a_merge_call_leaves_it_across)
{
    struct sumac_strategy *strategy = mirrored(2);

    assert_int_equal(run(strategy, merge_into, NULL, NULL), SUMAC_OK);
    sumac_strategy_destroy(strategy);
}

/* ---- arguments */

static enum sumac_status
add_arguments(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const float *const one = sumac_value_data(sumac_value_item(sumac_replica_args(replica), 0));
    const float *const other = sumac_value_data(sumac_value_item(sumac_replica_kwargs(replica), 0));

    (void)context, (void)error;
    sumac_replica_return(replica, sumac_value_float32(*one + 10 * *other));
    return SUMAC_OK;
}

TEST(each_replica_is_given_its_own_of_both_kinds_of_arguments)
{
    struct sumac_strategy *strategy = mirrored(3);
    struct sumac_value *ids = of_ids(3), *kwids = of_ids(3), *result = NULL;
    const char *const names[] = {"x"};
    struct sumac_value *const args = sumac_value_list(&ids, 1);
    struct sumac_value *const kwargs = sumac_value_dict(names, &kwids, 1);
    const struct sumac_run_options step = {
        .function = add_arguments, .args = args, .kwargs = kwargs};

    assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);
    expect_printed(result, "per_replica(0: float32[] 0, 1: float32[] 11, 2: float32[] 22)");
    sumac_value_unref(result);
    sumac_value_unref(args);
    sumac_value_unref(kwargs);
    sumac_strategy_destroy(strategy);
}

/* ---- values and results */

static enum sumac_status make_none(
    const struct sumac_value_context *of, void *context, struct sumac_value **value,
    struct sumac_error *error)
{
    (void)context, (void)error;
    *value = of->replica_id_in_sync_group == 0 ? sumac_value_float32(1) : NULL;
    return SUMAC_OK;
}

TEST(a_replica_that_no_value_is_made_for_is_named)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *value = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_values_from_function(strategy, make_none, NULL, &value, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "the function made no value of replica 1");
    assert_null(value);
    sumac_strategy_destroy(strategy);
}

TEST(local_results_of_a_nest_are_each_replicas)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *const items[] = {sumac_value_float32(1), sumac_value_float32(2)};
    struct sumac_value *nest = sumac_value_tuple(items, 2), *results = NULL;

    assert_int_equal(sumac_strategy_local_results(strategy, nest, &results, NULL), SUMAC_OK);
    expect_printed(results, "((float32[] 1, float32[] 2), (float32[] 1, float32[] 2))");
    sumac_value_unref(results);
    sumac_value_unref(nest);
    nest = sumac_value_float32(3);
    assert_int_equal(sumac_strategy_local_results(strategy, nest, &results, NULL), SUMAC_OK);
    expect_printed(results, "(float32[] 3,)");
    sumac_value_unref(results);
    sumac_value_unref(nest);
    sumac_strategy_destroy(strategy);
}

/* ---- options */

TEST(several_replicas_are_mirrored_where_no_kind_is_said)
{
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(
        sumac_strategy_create(&(struct sumac_strategy_options){.replicas = 2}, &strategy, NULL),
        SUMAC_OK);
    assert_string_equal(sumac_strategy_name(strategy), "mirrored");
    sumac_strategy_destroy(strategy);
}

TEST(workers_without_a_client_make_no_strategy)
{
    for (int kind = SUMAC_STRATEGY_MULTI_WORKER; kind <= SUMAC_STRATEGY_PARAMETER_SERVER; kind++) {
        struct sumac_strategy *strategy = NULL;
        struct sumac_error error;

        assert_int_equal(
            sumac_strategy_create(
                &(struct sumac_strategy_options){.kind = (enum sumac_strategy_kind)kind}, &strategy,
                &error),
            SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "strategy without a client"));
        assert_null(strategy);
    }
}

/* The other strategy is idle. */
static enum sumac_status run_another(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)strategy, (void)args, (void)result;
    return run(context, merge_into, NULL, error);
}

TEST(a_run_of_another_strategy_within_a_merge_call_is_in_its_scope)
{
    struct sumac_strategy *strategy = mirrored(2), *other = mirrored(2);
    struct sumac_error error;

    assert_int_equal(run(strategy, merge_into, other, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "in the scope of another strategy"));
    sumac_strategy_destroy(other);
    sumac_strategy_destroy(strategy);
}
