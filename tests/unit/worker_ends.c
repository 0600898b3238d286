/* SPDX-License-Identifier: Apache-2.0 */
/* worker_ends.c -- what a worker is made of and what it tells, which of several failures counts,
 * and what it leaves behind. */
#include "device_group.h"
#include "device.h"
#include "half.h"
#include "worker_client.h"
#include "worker_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(options_that_say_too_little_or_too_much_are_refused)
{
    struct fixture fixture;
    struct sumac_worker *worker = NULL;

    prepare(&fixture, SUMAC_REPLICAS_MAX + 1);
    assert_int_equal(sumac_worker_create(&fixture.options, &worker, NULL), SUMAC_INVALID_ARGUMENT);
    prepare(&fixture, 1);
    fixture.options.step = NULL;
    assert_int_equal(sumac_worker_create(&fixture.options, &worker, NULL), SUMAC_INVALID_ARGUMENT);
    prepare(&fixture, 1);
    fixture.options.pushes_in_flight = SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX + 1;
    assert_int_equal(sumac_worker_create(&fixture.options, &worker, NULL), SUMAC_INVALID_ARGUMENT);
    assert_null(worker);
    sumac_worker_destroy(NULL);
}

TEST(as_many_as_are_the_most_are_taken)
{
    static struct sumac_client_variable *variables[SUMAC_TRANSFER_VARIABLES_MAX + 1];
    struct fixture fixture;
    struct sumac_worker *worker = NULL;

    prepare(&fixture, SUMAC_REPLICAS_MAX);
    fixture.options.pushes_in_flight = SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX;
    sumac_worker_destroy(created(&fixture));
    prepare(&fixture, 1);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        variables[i] = fixture.variables[0];
    fixture.options.variables = variables;
    fixture.options.pushed_count = 1;
    fixture.options.variable_count = SUMAC_TRANSFER_VARIABLES_MAX;
    sumac_worker_destroy(created(&fixture));
    fixture.options.variable_count++;
    assert_int_equal(
        sumac_worker_create(&fixture.options, &worker, &fixture.error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(fixture.error.text, "variable_count is 65537; a worker has at most 65536");
}

static struct sumac_worker *own_worker;

static enum sumac_status
destroy_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    if (sumac_replica_id(replica) == 0)
        sumac_worker_destroy(own_worker);
    return observed_step(replica, context, error);
}

/* As a handler of atexit does when a step calls exit. */
TEST(a_worker_is_not_destroyed_within_its_own_step)
{
    struct fixture fixture;

    prepare(&fixture, 2); /* given */
    fixture.options.step = destroy_step;
    own_worker = created(&fixture);

    assert_int_equal(sumac_worker_step(own_worker, NULL), SUMAC_OK); /* when */

    assert_non_null(
        strstr(fixture.client.said, "destroy it when the step has returned")); /* then */
    assert_int_equal(sumac_worker_step(own_worker, NULL), SUMAC_OK);
    sumac_worker_destroy(own_worker);
}

/* The first time. */
static atomic_bool has_ended;

static enum sumac_status
step_that_ends_its_thread(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    if (sumac_replica_id(replica) == 1 && !atomic_exchange(&has_ended, true))
        pthread_exit(NULL);
    return observed_step(replica, context, error);
}

TEST(a_step_that_ends_its_thread_fails_and_the_next_one_is_well)
{
    struct fixture fixture;

    prepare(&fixture, 2); /* given */
    fixture.options.step = step_that_ends_its_thread;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_ABORTED); /* when */

    assert_string_equal(/* then */
                        fixture.error.text,
                        "replica 1 (device CPU:1) ended step 0 with ABORTED: it ended its thread "
                        "(pthread_exit); return instead");
    (void)alarm(60); /* a queue without a thread would be waited for */
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    (void)alarm(0);
    sumac_worker_destroy(worker);
}

TEST(nothing_is_asked_of_no_worker)
{
    struct fixture fixture;
    struct sumac_worker *worker = NULL;
    struct sumac_error error = {0};

    prepare(&fixture, 1);
    assert_int_equal(sumac_worker_create(NULL, &worker, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_worker_create: options is NULL");
    assert_int_equal(sumac_worker_create(&fixture.options, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_worker_create: worker is NULL");
    assert_int_equal(sumac_worker_step(NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_worker_step: worker is NULL");
    assert_int_equal(sumac_worker_flush(NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_worker_flush: worker is NULL");
    assert_int_equal(sumac_worker_steps(NULL), 0);
    assert_int_equal(sumac_worker_late(NULL), 0);
    assert_null(sumac_worker_values(NULL));
}

/* A bit for each promise that the child finds broken. */
static int use_in_child(struct sumac_worker *worker)
{
    struct sumac_error error = {0};
    int broken = 0;

    alarm(30); /* a thread of the parent's would be waited for until then */
    broken |= sumac_worker_step(worker, &error) != SUMAC_FAILED_PRECONDITION;
    broken |= (strstr(error.text, "fork first") == NULL) << 1;
    broken |= (sumac_worker_flush(worker, &error) != SUMAC_FAILED_PRECONDITION) << 2;
    sumac_worker_destroy(worker); /* its push is the parent's to wait for */
    broken |= (the_client->waited != 0) << 3;
    return broken;
}

TEST(a_child_of_the_process_cannot_use_its_worker_and_may_destroy_it)
{
    struct fixture fixture; /* given */
    int ended = 0;

    prepare(&fixture, 2);
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

    const pid_t child = fork(); /* when */
    if (child == 0)
        _exit(use_in_child(worker));
    assert_int_equal(waitpid(child, &ended, 0), child);

    assert_int_equal(ended, 0); /* then */
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);
}

TEST(a_flush_tells_what_became_of_a_push_within_the_workers_time)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.timeout_ms = 7;
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    fixture.client.push_status = SUMAC_INVALID_ARGUMENT;
    fixture.client.timeout_ms = 0;

    assert_int_equal(sumac_worker_flush(worker, NULL), SUMAC_INVALID_ARGUMENT); /* when */

    assert_int_equal(fixture.client.timeout_ms, 7); /* then */
    assert_int_equal(sumac_worker_flush(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);
}

/* The linker hands this program's free to this one. */

static const void *_Atomic watched;
static atomic_bool is_freed;

void __real_free(void *data);
void __wrap_free(void *data);

void __wrap_free(void *data)
{
    if (data != NULL && data == watched)
        is_freed = true;
    __real_free(data);
}

static void watch(const struct sumac_buffer *buffer)
{
    is_freed = false;
    watched = sumac_buffer_data(buffer);
}

/* The network may still read or write it: its memory would be somebody else's. */
TEST(what_is_not_over_when_the_worker_ends_keeps_its_memory)
{
    enum { OF_PUSH, OF_PULL, OF_WIDENED_PUSH };
    for (int of = OF_PUSH; of <= OF_WIDENED_PUSH; of++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.timeout_ms = 7;
        if (of == OF_WIDENED_PUSH) { /* its values are in memory of their own */
            fixture.client.variables[0].dtype = SUMAC_BFLOAT16;
            fixture.options.synchronous = SUMAC_SYNCHRONOUS_YES;
        }
        struct sumac_worker *worker = created(&fixture);
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        fixture.client.late = true;
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DEADLINE_EXCEEDED);
        struct sumac_buffer *const pushed = fixture.client.pushed_from;
        struct sumac_buffer *const gradients = worker->places[0].gradients.buffer;
        struct sumac_buffer *const pulled = fixture.client.pulled_into;
        watch(of == OF_PULL ? pulled : pushed);

        sumac_worker_destroy(worker); /* when */

        assert_false(is_freed); /* then */
        sumac_buffer_unref(pushed);
        if (of == OF_WIDENED_PUSH) /* which waits for its push before it pulls */
            sumac_buffer_unref(gradients);
        else
            sumac_buffer_unref(pulled);
        assert_true(is_freed);
    }
}

/* The limit that the program was told holds: the end does not begin the wait anew. */
TEST(what_was_waited_for_in_vain_is_not_waited_for_again)
{
    enum { NOT_YET, IN_VAIN, IN_VAIN_AND_HEARD_SINCE };
    for (int waited = NOT_YET; waited <= IN_VAIN_AND_HEARD_SINCE; waited++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.timeout_ms = 7;
        fixture.options.sequential = true;
        struct sumac_worker *worker = created(&fixture);
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        fixture.client.late = true;
        if (waited != NOT_YET)
            assert_int_equal(sumac_worker_flush(worker, NULL), SUMAC_DEADLINE_EXCEEDED);
        if (waited == IN_VAIN_AND_HEARD_SINCE) {
            fixture.client.late = false;
            assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
            fixture.client.late = true;
        }
        struct sumac_buffer *const pushed = fixture.client.pushed_from;

        sumac_worker_destroy(worker); /* when */

        assert_int_equal(fixture.client.timeout_ms, waited == IN_VAIN ? 1 : 7); /* then */
        sumac_buffer_unref(pushed); /* which the network may read still */
    }
}

TEST(what_is_over_when_the_worker_ends_is_given_back)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    watch(fixture.client.pushed_from);

    sumac_worker_destroy(worker); /* when */

    assert_int_equal(fixture.client.waited, 1); /* then */
    assert_true(is_freed);
}

static void assert_refused(const struct fixture *fixture, const char *text)
{
    struct sumac_worker *worker = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        sumac_worker_create(&fixture->options, &worker, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, text);
    assert_null(worker);
}

TEST(options_that_lack_something_are_refused_by_its_name)
{
    struct fixture fixture;

    prepare(&fixture, 1);
    fixture.options.client = NULL;
    assert_refused(&fixture, "a worker needs a client in its options");
    prepare(&fixture, 1);
    fixture.options.step = NULL;
    assert_refused(&fixture, "a worker needs a step function in its options");
    prepare(&fixture, 1);
    fixture.options.variable_count = 0;
    assert_refused(&fixture, "a worker needs a variable in its options");
    prepare(&fixture, 1);
    fixture.options.variable_count = 2;
    fixture.variables[1] = NULL;
    assert_refused(&fixture, "variable 1 of the worker's 2 is NULL");
    prepare(&fixture, 1);
    fixture.options.pushed_count = 2;
    assert_refused(&fixture, "pushed_count is 2, but the worker has 1 variables");
    prepare(&fixture, 1);
    fixture.options.reduce = (enum sumac_reduce_op)99;
    assert_refused(
        &fixture, "reduce is 99, which is neither SUMAC_REDUCE_SUM nor SUMAC_REDUCE_MEAN");
}

/* A step counter of integers, say, is pulled by all and pushed by none of these. */
TEST(what_is_scaled_or_clipped_is_of_a_float_type_and_what_is_only_pulled_of_any)
{
    static const struct {
        double loss_scale, clip_norm;
        const char *text;
    } cases[] = {
        {0x1p127, 0,
         "variable n is of type int64, and the worker is to scale what it pushes, which is of a "
         "float type then; push it apart"},
        {0x1p-127, 1,
         "variable n is of type int64, and the worker is to scale what it pushes, which is of a "
         "float type then; push it apart"},
        {0, 1,
         "variable n is of type int64, and the worker is to clip what it pushes, which is of a "
         "float type then; push it apart"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.variable_count = 2;
        fixture.options.loss_scale = cases[i].loss_scale;
        fixture.options.clip_norm = cases[i].clip_norm;

        assert_refused(&fixture, cases[i].text); /* when, then */
        fixture.options.pushed_count = 1;
        sumac_worker_destroy(created(&fixture));
    }
}

TEST(loss_scales_beyond_those_of_a_float_are_refused)
{
    struct fixture fixture;

    prepare(&fixture, 1);
    fixture.options.loss_scale = 0x1p128;
    assert_refused(
        &fixture, "loss_scale is 3.40282e+38; it is what the loss was multiplied by, from 2^-127 "
                  "to 2^127");
    fixture.options.loss_scale = 0x1p-128;
    assert_refused(
        &fixture, "loss_scale is 2.93874e-39; it is what the loss was multiplied by, from 2^-127 "
                  "to 2^127");
}

TEST(a_step_knows_how_many_replicas_there_are_and_weighs_1)
{
    struct fixture fixture;

    prepare(&fixture, 3);
    fixture.options.timeout_ms = 4321;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

    for (uint32_t replica = 0; replica < 3; replica++) {
        assert_int_equal(fixture.seen.count[replica], 3);
        assert_true(fixture.seen.given_weight[replica] == 1);
    }
    assert_int_equal(fixture.client.pull_timeout_ms, 4321);
    sumac_worker_destroy(worker);
}

TEST(the_values_are_those_that_the_last_step_saw)
{
    struct fixture fixture;

    prepare(&fixture, 1);
    struct sumac_worker *worker = created(&fixture);

    for (int i = 0; i < 4; i++) {
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        const float *const values = sumac_tensor_data(&sumac_worker_values(worker)[0]);
        assert_true(values[0] == fixture.seen.value[0]);
    }
    sumac_worker_destroy(worker);
}

TEST(a_worker_whose_first_step_fails_has_no_values)
{
    struct fixture fixture;

    prepare(&fixture, 2);
    fixture.seen.status = SUMAC_DATA_LOSS;
    struct sumac_worker *worker = created(&fixture);
    assert_null(sumac_worker_values(worker));

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DATA_LOSS);

    assert_null(sumac_worker_values(worker));
    fixture.seen.status = SUMAC_OK;
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    assert_non_null(sumac_worker_values(worker));
    fixture.seen.status = SUMAC_DATA_LOSS;
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DATA_LOSS);
    assert_non_null(sumac_worker_values(worker));
    sumac_worker_destroy(worker);
}

static enum sumac_status
fail_everywhere(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct seen *seen = context;

    (void)error;
    if (seen->status == SUMAC_OK)
        return SUMAC_OK;
    return sumac_replica_id(replica) == 0 ? SUMAC_DATA_LOSS : SUMAC_INTERNAL;
}

TEST(of_several_replicas_that_fail_the_first_is_told)
{
    struct fixture fixture;

    prepare(&fixture, 3);
    fixture.options.step = fail_everywhere;
    fixture.seen.status = SUMAC_INTERNAL;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_DATA_LOSS);

    assert_string_equal(fixture.error.text, "replica 0 (device CPU:0) ended step 0 with DATA_LOSS");
    fixture.seen.status = SUMAC_OK; /* and what the others said is over, too */
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);
}

/* DATA_LOSS in its own words, anything else without any. */
static enum sumac_status
fail_as_asked(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct seen *seen = context;

    (void)replica;
    if (seen->status == SUMAC_DATA_LOSS)
        (void)snprintf(error->text, sizeof error->text, "the first one's words");
    return seen->status;
}

TEST(what_a_step_failed_by_is_not_told_of_the_next)
{
    struct fixture fixture;

    prepare(&fixture, 1);
    fixture.options.step = fail_as_asked;
    fixture.seen.status = SUMAC_DATA_LOSS;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_DATA_LOSS);
    assert_string_equal(
        fixture.error.text,
        "replica 0 (device CPU:0) ended step 0 with DATA_LOSS: the first one's words");

    fixture.seen.status = SUMAC_INTERNAL;
    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_INTERNAL);
    assert_string_equal(fixture.error.text, "replica 0 (device CPU:0) ended step 0 with INTERNAL");
    sumac_worker_destroy(worker);
}

/* The network's error is told, and not the device's. */
TEST(a_pull_that_fails_beside_a_replica_is_what_is_told)
{
    struct fixture fixture;

    prepare(&fixture, 2);
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    fixture.seen.status = SUMAC_DATA_LOSS; /* given */
    fixture.client.pull_status = SUMAC_ABORTED;

    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_ABORTED); /* when */

    assert_string_equal(fixture.error.text, ""); /* then: this client says no more */
    sumac_worker_destroy(worker);
}

/* Of variable 1, a bfloat16: its gradient is 1.5 for replica 0 and 2.5 for
 * replica 1. */
static enum sumac_status
step_of_half(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    uint16_t *const half = sumac_tensor_data(sumac_replica_gradient(replica, 1));

    for (uint32_t row = 0; row < ROWS; row++)
        half[row] = bfloat16_of_float32(1.5f + (float)sumac_replica_id(replica));
    return observed_step(replica, context, error);
}

TEST(a_synchronous_contribution_of_a_half_type_is_float32)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.options.synchronous = SUMAC_SYNCHRONOUS_YES;
    fixture.options.variable_count = 2;
    fixture.options.step = step_of_half;
    fixture.options.reduce = SUMAC_REDUCE_SUM;
    fixture.client.variables[1].dtype = SUMAC_BFLOAT16;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    assert_int_equal(fixture.client.last_dtypes[1], SUMAC_FLOAT32); /* then */
    assert_true(fixture.client.last_values[1] == 4);
    assert_true(fixture.client.last_values[0] == 11 + 12);
    sumac_worker_destroy(worker);
}

/* ---- a group whose devices are late */

static struct device_ops late_ops;
static struct device_group_ops late_group;

static enum sumac_status
wait_in_vain(struct device_group *group, uint32_t timeout_ms, struct sumac_error *error)
{
    const enum sumac_status status = cpu_group_ops.wait(group, DEVICE_GROUP_NO_LIMIT, error);

    if (timeout_ms == DEVICE_GROUP_NO_LIMIT)
        return status;
    *error =
        (struct sumac_error){SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "replica 1 is late"};
    return error->status;
}

TEST(a_worker_whose_devices_were_late_takes_no_more_steps)
{
    struct fixture fixture; /* given */
    struct sumac_worker *worker = NULL;

    late_group = cpu_group_ops;
    late_group.wait = wait_in_vain;
    late_ops = cpu_device_ops;
    late_ops.group_ops = &late_group;
    const struct devices devices = devices_first(&late_ops, 2);
    prepare(&fixture, 2);
    assert_int_equal(worker_create(&devices, &fixture.options, &worker, NULL), SUMAC_OK);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DEADLINE_EXCEEDED); /* when */

    assert_string_equal(fixture.client.said, "replica 1 is late"); /* then */
    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_DEADLINE_EXCEEDED);
    assert_string_equal(
        fixture.error.text,
        "replica 1 is late; the worker takes no more steps: make another worker");
    assert_int_equal(fixture.seen.runs[0], 1);
    assert_int_equal(fixture.client.pushed, 0);
    assert_int_equal(sumac_worker_pull(worker, NULL), SUMAC_DEADLINE_EXCEEDED);
    sumac_worker_destroy(worker);
}
