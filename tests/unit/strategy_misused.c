/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_misused.c -- calls that are made wrongly, or where they would wait for themselves. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "strategy_made.h"
#include "../returning.h"
#include "sumac/variable.h"

/* A list of one tensor, in replica 1 of another type. */
static enum sumac_status
sum_other_leaves(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_value **lists = context;
    struct sumac_value *leaf =
        sumac_replica_id(replica) == 1 ? sumac_value_float64(2) : sumac_value_float32(2);

    lists[sumac_replica_id(replica)] = sumac_value_list(&leaf, 1);
    return return_from_replica(
        replica,
        sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, lists[sumac_replica_id(replica)], NULL, &returned, error),
        &returned);
}

TEST(leaves_that_differ_within_a_nest_stay_their_owners)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *lists[2];
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_run(
            strategy, &(struct sumac_run_options){.function = sum_other_leaves, .context = lists},
            NULL, &error),
        SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "replica 0 has float32[] at [0], and replica 1 float64[]"));
    expect_printed(lists[0], "[float32[] 2]");
    expect_printed(lists[1], "[float64[] 2]");
    sumac_value_unref(lists[0]);
    sumac_value_unref(lists[1]);
    sumac_strategy_destroy(strategy);
}

/* ---- a function that ends its thread ---- */

static enum sumac_status
end_the_thread(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    if (sumac_replica_id(replica) == *(const uint32_t *)context)
        pthread_exit(NULL);
    struct sumac_value *one = sumac_value_float32(1);
    const enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, one, NULL, &returned, error);
    sumac_value_unref(one);
    return return_from_replica(replica, status, &returned);
}

/* The other replicas do not wait for it until their time is over, and the next run is well. */
TEST(a_function_that_ends_its_thread_fails_and_the_next_run_is_well)
{
    struct sumac_strategy *strategy = mirrored(3); /* given */
    uint32_t which = 1;
    const struct sumac_run_options step = {.function = end_the_thread, .context = &which};
    struct sumac_value *result = NULL;
    struct sumac_error error;

    assert_int_equal(sumac_strategy_run(strategy, &step, NULL, &error), SUMAC_ABORTED); /* when */

    assert_non_null(strstr(/* then */
                           error.text, "the function of replica 1 ended its thread (pthread_exit): "
                                       "return instead"));
    which = 3;
    assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

/* ---- across the replicas ---- */

static void expect_no_reduction(
    struct sumac_strategy *strategy, struct sumac_value *first, struct sumac_value *second,
    const char *said)
{
    struct sumac_value *const items[] = {first, second};
    struct sumac_value *value = sumac_value_per_replica(items, 2, 0), *result = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, value, NULL, &result, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, said));
    assert_int_equal(
        sumac_strategy_gather(strategy, value, 0, &result, NULL), SUMAC_INVALID_ARGUMENT);
    sumac_value_unref(value);
}

TEST(items_of_other_kinds_are_named)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *leaf = sumac_value_float32(1);

    expect_no_reduction(
        strategy, sumac_value_list(&leaf, 1), sumac_value_float32(1),
        "reduce: replicas 0 and 1: two nests differ");
    expect_no_reduction(strategy, row_of(4), sumac_value_float32(1), "replica 0 has slices of [4]");
    expect_no_reduction(strategy, sumac_value_float32(1), row_of(4), "and replica 1 slices of [4]");
    sumac_strategy_destroy(strategy);
}

TEST(items_of_more_replicas_than_there_are_are_refused)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *ids = of_ids(3), *result = NULL;

    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, ids, NULL, &result, NULL),
        SUMAC_INVALID_ARGUMENT);
    sumac_value_unref(ids);
    sumac_strategy_destroy(strategy);
}

/* ---- where a run would wait for itself ---- */

static enum sumac_status run_again(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)args, (void)context;
    return sumac_strategy_run(
        strategy, &(struct sumac_run_options){.function = sum_other_leaves}, result, error);
}

static enum sumac_status
merge_a_run(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context;
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica, sumac_replica_merge_call(replica, run_again, NULL, NULL, &returned, error),
        &returned);
}

TEST(a_run_within_a_merge_call_is_refused)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_error error;

    assert_int_equal(
        sumac_strategy_run(
            strategy, &(struct sumac_run_options){.function = merge_a_run}, NULL, &error),
        SUMAC_FAILED_PRECONDITION);

    assert_non_null(strstr(error.text, "called in the function of a merge_call"));
    sumac_strategy_destroy(strategy);
}

/* A bit for each promise that the child finds broken. */
static int call_in_child(struct sumac_strategy *strategy, struct sumac_value *value)
{
    const struct sumac_variable_options options = {.name = "w", .initial = value};
    struct sumac_variable *variable = NULL;
    struct sumac_value *result = NULL;
    int broken = 0;

    alarm(30); /* a thread of the parent's would be waited for until then */
    broken |= sumac_strategy_run(
                  strategy, &(struct sumac_run_options){.function = merge_a_run}, NULL, NULL) !=
              SUMAC_FAILED_PRECONDITION;
    broken |= (sumac_strategy_reduce(strategy, SUMAC_REDUCE_MEAN, value, NULL, &result, NULL) !=
               SUMAC_FAILED_PRECONDITION)
              << 1;
    broken |=
        (sumac_strategy_gather(strategy, value, 0, &result, NULL) != SUMAC_FAILED_PRECONDITION)
        << 2;
    broken |=
        (sumac_strategy_to_devices(strategy, value, &result, NULL) != SUMAC_FAILED_PRECONDITION)
        << 3;
    broken |=
        (sumac_variable_create(strategy, &options, &variable, NULL) != SUMAC_FAILED_PRECONDITION)
        << 4;
    broken |= (sumac_strategy_enter(strategy, NULL) != SUMAC_FAILED_PRECONDITION) << 5;
    return broken;
}

TEST(calls_in_a_child_are_refused)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *value =
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), (const float[]){1, 2});
    int ended;

    const pid_t child = fork();
    if (child == 0)
        _exit(call_in_child(strategy, value));
    assert_int_equal(waitpid(child, &ended, 0), child);
    sumac_value_unref(value);

    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
    sumac_strategy_destroy(strategy);
}

/* ---- closed where it is used ---- */

/* A bit for each promise that the child finds broken. */
static int close_in_child(struct sumac_strategy *strategy)
{
    struct sumac_error error = {0};
    int broken = 0;

    alarm(30); /* a thread of the parent's would be waited for until then */
    broken |= sumac_strategy_close(strategy, &error) != SUMAC_FAILED_PRECONDITION;
    broken |= (strstr(error.text, "called in a child of the process") == NULL) << 1;
    sumac_strategy_destroy(strategy);
    broken |= (sumac_strategy_num_replicas_in_sync(strategy) != 2) << 2;
    return broken;
}

TEST(a_child_of_the_process_closes_nothing)
{
    struct sumac_strategy *strategy = mirrored(2); /* given */
    int ended = 0;

    const pid_t child = fork(); /* when */
    if (child == 0)
        _exit(close_in_child(strategy));
    assert_int_equal(waitpid(child, &ended, 0), child);

    assert_int_equal(ended, 0); /* then */
    assert_int_equal(sumac_strategy_close(strategy, NULL), SUMAC_OK);
}

static enum sumac_status
close_own(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context;
    return sumac_strategy_close(sumac_replica_strategy(replica), error);
}

static enum sumac_status close_merged(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)args, (void)context, (void)result;
    return sumac_strategy_close(strategy, error);
}

static enum sumac_status
close_in_merge(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    return sumac_replica_merge_call(replica, close_merged, context, NULL, NULL, error);
}

static void expect_not_closed(struct sumac_strategy *strategy, sumac_replica_function *function)
{
    const struct sumac_run_options step = {.function = function};
    struct sumac_error error;

    (void)alarm(60); /* a strategy that waits for its own run would hang */
    assert_int_equal(sumac_strategy_run(strategy, &step, NULL, &error), SUMAC_FAILED_PRECONDITION);
    (void)alarm(0);
    assert_non_null(strstr(error.text, "within its own run"));
}

TEST(a_strategy_is_not_closed_within_its_run)
{
    struct sumac_strategy *strategy = mirrored(2);

    expect_not_closed(strategy, close_own);
    expect_not_closed(strategy, close_in_merge);

    assert_int_equal(sumac_strategy_close(strategy, NULL), SUMAC_OK);
}

/* Destroys the strategy, and uses it after that. */
static enum sumac_status
destroy_own(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *const one = sumac_value_float32(1), *sum = NULL;

    (void)context;
    sumac_strategy_destroy(sumac_replica_strategy(replica)); /* by each replica */
    const enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, one, NULL, &sum, error);
    sumac_value_unref(one);
    sumac_replica_return(replica, sum);
    return status;
}

static int threads_of_this_process(void)
{
    DIR *const tasks = opendir("/proc/self/task");
    int count = 0;

    assert_non_null(tasks);
    while (readdir(tasks) != NULL)
        count++;
    assert_int_equal(closedir(tasks), 0);
    return count;
}

TEST(a_strategy_that_is_destroyed_within_its_run_ends_with_it)
{
    const int threads = threads_of_this_process();
    struct sumac_strategy *strategy = mirrored(2); /* given */
    const struct sumac_run_options step = {.function = destroy_own};
    struct sumac_value *result = NULL;

    assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK); /* when */

    const float *sum = sumac_value_data(sumac_value_item(result, 1));
    assert_true(*sum == 2); /* then */
    assert_int_equal(threads_of_this_process(), threads);
    sumac_value_unref(result);
}

static enum sumac_status
destroy_in_update(struct sumac_update_context *update, void *context, struct sumac_error *error)
{
    struct sumac_value *value = NULL;

    sumac_strategy_destroy(context);
    const enum sumac_status status = sumac_update_read(update, &value, error);
    sumac_update_return(update, value);
    return status;
}

TEST(a_strategy_that_is_destroyed_within_an_update_ends_with_it)
{
    struct sumac_strategy *strategy = mirrored(2); /* given */
    struct sumac_value *zero = sumac_value_float32(0), *result = NULL;
    const struct sumac_variable_options options = {.name = "v", .initial = zero};
    const struct sumac_update_options update = {.function = destroy_in_update, .context = strategy};
    struct sumac_variable *variable = NULL;

    assert_int_equal(sumac_variable_create(strategy, &options, &variable, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, &result, NULL), SUMAC_OK); /* when */

    assert_int_equal(sumac_value_kind(result), SUMAC_VALUE_MIRRORED); /* then */
    sumac_value_unref(result);
    sumac_value_unref(zero);
}

struct running {
    struct sumac_strategy *strategy;
    pthread_t thread;
    pthread_barrier_t begun;
    atomic_bool over, was_over;
};

static void *destroy_beside(void *context)
{
    struct running *running = context;

    (void)pthread_barrier_wait(&running->begun);
    sumac_strategy_destroy(running->strategy);
    running->was_over = running->over;
    return NULL;
}

/* A thread that has nothing to do with the run destroys its strategy. */
static enum sumac_status
run_beside(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct running *running = context;

    (void)replica, (void)error;
    assert_int_equal(pthread_create(&running->thread, NULL, destroy_beside, running), 0);
    (void)pthread_barrier_wait(&running->begun);
    for (int i = 0; i < 1000; i++)
        (void)sched_yield(); /* so that the other may begin */
    running->over = true;
    return SUMAC_OK;
}

TEST(a_strategy_is_destroyed_after_the_run_of_another_thread)
{
    const struct sumac_strategy_options options = {.kind = SUMAC_STRATEGY_DEFAULT};
    struct running running = {.over = false};
    const struct sumac_run_options step = {.function = run_beside, .context = &running};

    assert_int_equal(
        sumac_strategy_create(&options, &running.strategy, NULL), SUMAC_OK); /* given */
    assert_int_equal(pthread_barrier_init(&running.begun, NULL, 2), 0);
    assert_int_equal(sumac_strategy_run(running.strategy, &step, NULL, NULL), SUMAC_OK); /* when */
    assert_int_equal(pthread_join(running.thread, NULL), 0);

    assert_true(running.was_over); /* then */
    pthread_barrier_destroy(&running.begun);
}

/* A thread that has nothing to do with the update destroys the strategy. */
static enum sumac_status
update_beside(struct sumac_update_context *update, void *context, struct sumac_error *error)
{
    return sumac_update_index(update) == 0 ? run_beside(NULL, context, error) : SUMAC_OK;
}

TEST(a_strategy_is_destroyed_after_the_update_of_another_thread)
{
    struct running running = {.strategy = mirrored(2)}; /* given */
    struct sumac_value *zero = sumac_value_float32(0);
    const struct sumac_variable_options options = {.name = "v", .initial = zero};
    const struct sumac_update_options update = {.function = update_beside, .context = &running};
    struct sumac_variable *variable = NULL;

    assert_int_equal(sumac_variable_create(running.strategy, &options, &variable, NULL), SUMAC_OK);
    assert_int_equal(pthread_barrier_init(&running.begun, NULL, 2), 0);
    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, NULL, NULL), SUMAC_OK); /* when */
    assert_int_equal(pthread_join(running.thread, NULL), 0);

    assert_true(running.was_over); /* then */
    pthread_barrier_destroy(&running.begun);
    sumac_value_unref(zero);
}

/* A run on a thread of its own, which goes on until an update has destroyed the strategy. */
struct outlived {
    struct sumac_strategy *strategy;
    pthread_t thread;
    pthread_barrier_t begun, destroyed;
    int threads_lost; /* after the run, within the update */
};

static enum sumac_status
wait_for_destroy(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct outlived *outlived = context;

    (void)error;
    if (sumac_replica_id(replica) == 0) {
        (void)pthread_barrier_wait(&outlived->begun);
        (void)pthread_barrier_wait(&outlived->destroyed);
    }
    return SUMAC_OK;
}

static void *run_until_destroyed(void *context)
{
    struct outlived *outlived = context;
    const struct sumac_run_options step = {.function = wait_for_destroy, .context = outlived};

    assert_int_equal(sumac_strategy_run(outlived->strategy, &step, NULL, NULL), SUMAC_OK);
    return NULL;
}

static enum sumac_status
outlive_a_run(struct sumac_update_context *update, void *context, struct sumac_error *error)
{
    struct outlived *outlived = context;

    (void)error;
    if (sumac_update_index(update) != 0)
        return SUMAC_OK;
    assert_int_equal(pthread_create(&outlived->thread, NULL, run_until_destroyed, outlived), 0);
    (void)pthread_barrier_wait(&outlived->begun);
    const int threads = threads_of_this_process() - 1; /* without the one of the run */
    sumac_strategy_destroy(outlived->strategy);
    (void)pthread_barrier_wait(&outlived->destroyed);
    assert_int_equal(pthread_join(outlived->thread, NULL), 0);
    outlived->threads_lost = threads - threads_of_this_process();
    return SUMAC_OK;
}

TEST(a_strategy_that_is_destroyed_within_an_update_outlives_the_runs_of_other_threads)
{
    const int threads = threads_of_this_process();
    struct outlived outlived = {.strategy = mirrored(2)}; /* given */
    struct sumac_value *zero = sumac_value_float32(0);
    const struct sumac_variable_options options = {.name = "v", .initial = zero};
    const struct sumac_update_options update = {.function = outlive_a_run, .context = &outlived};
    struct sumac_variable *variable = NULL;

    assert_int_equal(sumac_variable_create(outlived.strategy, &options, &variable, NULL), SUMAC_OK);
    assert_int_equal(pthread_barrier_init(&outlived.begun, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&outlived.destroyed, NULL, 2), 0);
    (void)alarm(60); /* threads that stay would be waited for */
    assert_int_equal(
        sumac_variable_update(variable, NULL, &update, NULL, NULL), SUMAC_OK); /* when */

    assert_true(outlived.threads_lost <= 0); /* then */
    while (threads_of_this_process() > threads)
        (void)sched_yield(); /* a thread that was joined may be listed a little longer */
    (void)alarm(0);
    pthread_barrier_destroy(&outlived.begun);
    pthread_barrier_destroy(&outlived.destroyed);
    sumac_value_unref(zero);
}

TEST(a_strategy_that_is_destroyed_in_its_scope_ends_the_scope)
{
    struct sumac_strategy *strategy = mirrored(2), *present = mirrored(2);

    assert_int_equal(sumac_strategy_enter(strategy, NULL), SUMAC_OK); /* given */
    assert_int_equal(sumac_strategy_enter(strategy, NULL), SUMAC_OK);
    sumac_strategy_destroy(strategy);      /* when */
    assert_null(sumac_present_strategy()); /* then */
    assert_false(sumac_in_cross_replica_context());

    assert_int_equal(sumac_set_strategy(present, NULL), SUMAC_OK);
    assert_int_equal(sumac_strategy_close(present, NULL), SUMAC_OK);
    assert_null(sumac_present_strategy());
}

/* ---- updates ---- */

/* A variable that is updated, and by what. */
struct updated {
    struct sumac_variable *variable;
    struct sumac_value *value;
};

static enum sumac_status
apply_otherwise(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct updated *in = context;
    const double rate = sumac_replica_id(replica) == 0 ? 0.5 : 0.25;
    const struct sumac_function function = SUMAC_FUNCTION("sgd", {"learning_rate", rate});

    return sumac_variable_apply(in->variable, replica, &function, in->value, error);
}

static enum sumac_status
do_nothing(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    (void)component, (void)context, (void)error;
    return SUMAC_OK;
}

static enum sumac_status
do_nothing_else(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    return do_nothing(component, context, error);
}

static enum sumac_status
update_otherwise(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct updated *in = context;
    const struct sumac_update_options update = {
        .function = sumac_replica_id(replica) == 0 ? do_nothing : do_nothing_else};

    return sumac_variable_update(in->variable, replica, &update, NULL, error);
}

static enum sumac_status
group_otherwise(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct updated *in = context;
    const struct sumac_update_options update = {
        .function = do_nothing, .ungrouped = sumac_replica_id(replica) == 1};

    return sumac_variable_update(in->variable, replica, &update, NULL, error);
}

TEST(replicas_that_update_by_something_else_are_named)
{
    const struct {
        sumac_replica_function *function;
        const char *said;
    } rows[] = {
        {apply_otherwise,
         "replica 0 comes with w by sgd learning_rate 0.5, and replica 1 with w by "
         "sgd learning_rate 0.25"},
        {update_otherwise, "another function"},
        {group_otherwise, "replica 0 comes with w, and replica 1 with w, not grouped"},
    };
    struct sumac_strategy *strategy = mirrored(2);
    struct updated in = {.value = sumac_value_float32(1)};
    const struct sumac_variable_options options = {
        .name = "w", .initial = in.value, .function = {.name = "sgd"}};
    struct sumac_value *value = NULL;

    assert_int_equal(sumac_variable_create(strategy, &options, &in.variable, NULL), SUMAC_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct sumac_run_options step = {.function = rows[i].function, .context = &in};
        struct sumac_error error;
        assert_int_equal(sumac_strategy_run(strategy, &step, NULL, &error), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, rows[i].said));
    }

    assert_int_equal(sumac_variable_read(in.variable, NULL, &value, NULL), SUMAC_OK);
    expect_printed(value, "float32[] 1");
    sumac_value_unref(value);
    sumac_value_unref(in.value);
    sumac_strategy_destroy(strategy);
}

/* ---- what a function says as it fails */

struct said {
    enum sumac_status status; /* that it leaves in the error */
    enum sumac_status returned;
    bool merges; /* it is a merge_call's function that says it */
    bool others_sum;
};

static enum sumac_status say(const struct said *said, struct sumac_error *error)
{
    static const char text[] = "shard \033[31m7\nis \xff torn";

    error->status = said->status;
    memcpy(error->text, text, sizeof text);
    return said->returned;
}

static enum sumac_status merge_and_say(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)strategy, (void)args, (void)result;
    return say(context, error);
}

static enum sumac_status
say_of_the_second(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct said *said = context;

    if (said->merges)
        return return_from_replica(
            replica,
            sumac_replica_merge_call(
                replica, merge_and_say, context, sumac_replica_args(replica), &returned, error),
            &returned);
    if (sumac_replica_id(replica) == 1)
        return return_from_replica(replica, say(said, error), &returned);
    return return_from_replica(
        replica,
        said->others_sum
            ? sumac_replica_all_reduce(
                  replica, SUMAC_REDUCE_SUM, sumac_replica_args(replica), NULL, &returned, error)
            : SUMAC_OK,
        &returned);
}

static void expect_said(struct said said, enum sumac_status status, const char *text)
{
    struct sumac_strategy *strategy = mirrored(2);
    const struct sumac_run_options step = {.function = say_of_the_second, .context = &said};
    struct sumac_error error = {.status = SUMAC_OK};

    assert_int_equal(sumac_strategy_run(strategy, &step, NULL, &error), status);
    assert_string_equal(error.text, text);
    sumac_strategy_destroy(strategy);
}

TEST(what_a_function_says_with_a_status_alone_is_told_behind_whose_it_is)
{
    expect_said(
        (struct said){.returned = SUMAC_DATA_LOSS}, SUMAC_DATA_LOSS,
        "the function of replica 1 returned DATA_LOSS: shard ?[31m7?is ? torn");
    expect_said(
        (struct said){.returned = SUMAC_DATA_LOSS, .merges = true}, SUMAC_DATA_LOSS,
        "the function of merge_call returned DATA_LOSS: shard ?[31m7?is ? torn");
}

TEST(an_error_that_a_function_fills_in_is_told_as_one_line)
{
    for (int merges = 0; merges < 2; merges++)
        expect_said(
            (struct said){
                .status = SUMAC_DATA_LOSS, .returned = SUMAC_DATA_LOSS, .merges = merges != 0},
            SUMAC_DATA_LOSS, "shard ?[31m7?is ? torn");
}

TEST(an_error_that_a_function_has_got_over_is_none)
{
    expect_said((struct said){.status = SUMAC_DATA_LOSS, .merges = true}, SUMAC_OK, "");
    expect_said(
        (struct said){.status = SUMAC_DATA_LOSS, .others_sum = true}, SUMAC_DEADLINE_EXCEEDED,
        "all_reduce, call 1 of the run: replica 1 returned without it, and the others wait for "
        "that");
}
