/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- the replica step loop against a client that writes down what it is asked. */
#include "far_device.h"
#include "worker_client.h"

#include <errno.h>
#include <math.h>
#include <time.h>

TEST(a_step_runs_each_replica_once_and_pushes_their_weighted_mean_once)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    for (int i = 0; i < 2; i++) { /* then */
        assert_int_equal(fixture.seen.runs[i], 1);
        assert_true(fixture.seen.value[i] == 10);
    }
    assert_int_equal(fixture.client.pushed, 1);
    const float expected = (1 * 11.0f + 2 * 12.0f) / 3;
    assert_true(fixture.client.pushes[0].gradient == expected);
    assert_true(fixture.client.last_weight == 3);
    sumac_worker_destroy(worker);
}

/* ---- devices with memory of their own */

/* Asked to run on what is not its own, a real one would fail. */
static enum sumac_status
far_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct sumac_place values = sumac_buffer_place(sumac_replica_value(replica, 0)->buffer);
    const struct sumac_place gradients =
        sumac_buffer_place(sumac_replica_gradient(replica, 0)->buffer);

    if (values.kind != SUMAC_PLACE_CUDA || values.device != sumac_replica_id(replica) ||
        gradients.kind != SUMAC_PLACE_CUDA || gradients.device != sumac_replica_id(replica))
        return SUMAC_FAILED_PRECONDITION;
    return observed_step(replica, context, error);
}

TEST(on_devices_with_memory_of_their_own_a_step_is_the_same)
{
    struct fixture fixture, far;
    struct sumac_worker *other = NULL;

    far_ops = make_far_ops();
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        prepare(&far, replicas); /* given */
        far.options.step = far_step;
        far.options.pushes_in_flight = 2;
        const struct devices devices = devices_first(&far_ops, replicas);
        assert_int_equal(worker_create(&devices, &far.options, &other, &far.error), SUMAC_OK);
        for (int i = 0; i < 5; i++) /* when */
            assert_int_equal(sumac_worker_step(other, &far.error), SUMAC_OK);
        sumac_worker_destroy(other);

        prepare(&fixture, replicas);
        fixture.options.pushes_in_flight = 2;
        struct sumac_worker *worker = created(&fixture);
        for (int i = 0; i < 5; i++)
            assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        sumac_worker_destroy(worker);

        for (int i = 0; i < 5; i++) /* then */
            assert_true(far.client.pushes[i].gradient == fixture.client.pushes[i].gradient);
        assert_true(far.seen.value[replicas - 1] == fixture.seen.value[replicas - 1]);
        assert_string_equal(far.client.transcript, fixture.client.transcript);
        assert_int_equal(far_buffers, 0);
        assert_int_equal(far_opened, 0);
    }
}

static enum sumac_status lose_copies(struct device_queue *queue, const struct device_job *job)
{
    return job->kind == JOB_COPY ? SUMAC_DATA_LOSS : cpu_device_ops.carry_out(queue, job);
}

TEST(a_copy_that_fails_ends_the_step_with_its_device)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    far_ops = make_far_ops();
    const struct devices devices = devices_first(&far_ops, 1);
    prepare(&far, 1);
    assert_int_equal(worker_create(&devices, &far.options, &worker, &far.error), SUMAC_OK);
    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_OK);
    far_ops.carry_out = lose_copies; /* given */

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_DATA_LOSS);

    assert_non_null(strstr(far.error.text, "FAR:0"));
    assert_int_equal(far.client.pushed, 1);
    sumac_worker_destroy(worker);
}

/* Of variable v the gradient is its value, a tenth for each replica and a hundred for each v.
 * Aligned as wide vectors are read. */
static enum sumac_status
step_of_two(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context, (void)error;
    for (uint32_t v = 0; v < 2; v++) {
        const float *const value = sumac_tensor_data(sumac_replica_value(replica, v));
        float *const gradient = sumac_tensor_data(sumac_replica_gradient(replica, v));
        if ((uintptr_t)value % 64 != 0 || (uintptr_t)gradient % 64 != 0)
            return SUMAC_INTERNAL;
        for (uint32_t row = 0; row < ROWS; row++)
            gradient[row] = value[row] + (float)(100 * v + 10 * sumac_replica_id(replica));
    }
    return SUMAC_OK;
}

TEST(each_variable_has_a_place_of_its_own)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.options.variable_count = 2;
    fixture.options.step = step_of_two;
    fixture.options.reduce = SUMAC_REDUCE_SUM;
    fixture.client.variables[1].dtype = SUMAC_FLOAT32;
    fixture.client.variables[1].value = 3000;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    for (int v = 0; v < 2; v++) /* then */
        assert_ptr_equal(fixture.client.last_variables[v], &fixture.client.variables[v]);
    assert_true(fixture.client.last_values[0] == 10 + 20);
    assert_true(fixture.client.last_values[1] == 3100 + 3110);
    sumac_worker_destroy(worker);
}

TEST(sum_adds_the_replicas_gradients)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 3);
    fixture.options.reduce = SUMAC_REDUCE_SUM;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    assert_true(fixture.client.pushes[0].gradient == 11 + 12 + 13); /* then */
    sumac_worker_destroy(worker);
}

TEST(the_next_steps_pull_runs_before_this_steps_push)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    struct sumac_worker *worker = created(&fixture);

    for (int i = 0; i < 2; i++) /* when */
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

    assert_string_equal(/* then */
                        fixture.client.transcript,
                        "pull pulled pull pulled push pull pulled pushed push ");
    /* Gradients came from the pull before the one that has just been made. */
    assert_true(fixture.client.earlier_pull);
    sumac_worker_destroy(worker);
}

/* Ends when a second pull has begun, which is the next step's. */
static enum sumac_status
step_that_waits_for_a_pull(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120; /* by then it will not come any more */
    (void)replica, (void)context, (void)error;
    while (sem_timedwait(&the_client->next_pull, &until) != 0)
        if (errno != EINTR)
            return SUMAC_DEADLINE_EXCEEDED;
    return SUMAC_OK;
}

TEST(the_next_steps_pull_is_begun_while_the_devices_compute)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.step = step_that_waits_for_a_pull;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when, then */

    sumac_worker_destroy(worker);
}

TEST(sequential_steps_wait_for_each_push_before_the_next_pull)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.sequential = true;
    struct sumac_worker *worker = created(&fixture);

    for (int i = 0; i < 2; i++) /* when */
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

    assert_string_equal(/* then: the second step ran on the first one's result */
                        fixture.client.transcript, "pull pulled push pushed pull pulled push ");
    assert_false(fixture.client.earlier_pull);
    assert_true(fixture.seen.value[0] == 10 + 11);
    sumac_worker_destroy(worker);
}

/* Step n, the (n + 1)th, begins when the slowest has finished n - lag_max, however early its values
 * are asked for. */
TEST(no_step_begins_further_ahead_than_the_lag)
{
    for (uint64_t lag_max = 0; lag_max < 4; lag_max++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.bounded = true;
        fixture.options.lag_max = lag_max;
        struct sumac_worker *worker = created(&fixture);

        for (int i = 0; i < 6; i++) /* when */
            assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

        assert_true(fixture.client.bounded); /* then */
        assert_int_equal(fixture.client.earlier_pull, lag_max > 0);
        for (uint32_t n = 0; n < fixture.client.pulls; n++) {
            const uint32_t early = n - fixture.client.pushed_before[n];
            assert_int_equal(early, n > 0 && lag_max > 0);
            assert_int_equal(fixture.client.lag_max[n] + early, lag_max);
        }
        sumac_worker_destroy(worker);
    }
}

TEST(steps_wait_for_nobody_unless_they_are_told_to)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    assert_false(fixture.client.bounded); /* then */
    sumac_worker_destroy(worker);
}

TEST(no_more_pushes_are_under_way_than_asked_for)
{
    for (uint32_t bound = 1; bound < 4; bound++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.pushes_in_flight = bound;
        struct sumac_worker *worker = created(&fixture);

        for (int i = 0; i < 10; i++) /* when */
            assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        assert_int_equal(fixture.client.under_way_most, bound); /* then */

        assert_int_equal(sumac_worker_flush(worker, NULL), SUMAC_OK); /* when */
        assert_int_equal(fixture.client.waited, 10);                  /* then */
        sumac_worker_destroy(worker);
    }
}

TEST(a_refused_push_is_told_by_the_step_that_waits_for_it_and_steps_go_on)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    fixture.client.push_status = SUMAC_INVALID_ARGUMENT;

    const enum sumac_status refused = sumac_worker_step(worker, &fixture.error); /* when */
    const enum sumac_status next = sumac_worker_step(worker, NULL);

    assert_int_equal(refused, SUMAC_INVALID_ARGUMENT); /* then */
    assert_int_equal(fixture.error.reason, SUMAC_REASON_NON_FINITE);
    assert_int_equal(next, SUMAC_OK);
    assert_int_equal(sumac_worker_steps(worker), 2);
    sumac_worker_destroy(worker);
}

TEST(a_contribution_that_comes_late_is_counted_and_steps_go_on)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.synchronous = true;
    struct sumac_worker *worker = created(&fixture);
    fixture.client.push_status = SUMAC_ABORTED;

    const enum sumac_status late = sumac_worker_step(worker, &fixture.error); /* when */
    const enum sumac_status next = sumac_worker_step(worker, &fixture.error);

    assert_int_equal(late, SUMAC_OK); /* then */
    assert_int_equal(next, SUMAC_OK);
    assert_int_equal(fixture.error.status, SUMAC_OK);
    assert_int_equal(sumac_worker_flush(worker, NULL), SUMAC_OK);
    assert_int_equal(sumac_worker_steps(worker), 2);
    assert_int_equal(sumac_worker_late(worker), 1);
    sumac_worker_destroy(worker);
}

TEST(a_pull_that_fails_ends_the_step_without_a_push_and_is_made_again)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    struct sumac_worker *worker = created(&fixture);
    fixture.client.pull_status = SUMAC_ABORTED;

    const enum sumac_status failed = sumac_worker_step(worker, NULL); /* when */

    assert_int_equal(failed, SUMAC_ABORTED); /* then */
    assert_int_equal(fixture.client.pushed, 0);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    assert_string_equal(fixture.client.transcript, "pull pulled pull pulled pull pulled push ");
    sumac_worker_destroy(worker);
}

TEST(a_replica_that_fails_ends_the_step_by_name_and_nothing_is_pushed)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.seen.status = SUMAC_DATA_LOSS;
    struct sumac_worker *worker = created(&fixture);

    const enum sumac_status status = sumac_worker_step(worker, &fixture.error); /* when */

    assert_int_equal(status, SUMAC_DATA_LOSS); /* then */
    assert_non_null(strstr(fixture.error.text, "replica 1"));
    assert_int_equal(fixture.client.pushed, 0);
    sumac_worker_destroy(worker);
}

/* ---- within itself */

static struct sumac_worker *own_worker;
static enum sumac_status inner_step, inner_flush;
static struct sumac_error inner_error;

static enum sumac_status
step_within(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)replica, (void)context, (void)error;
    inner_step = sumac_worker_step(own_worker, &inner_error);
    inner_flush = sumac_worker_flush(own_worker, NULL);
    return SUMAC_ABORTED;
}

TEST(a_step_within_a_step_is_refused)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.step = step_within;
    own_worker = created(&fixture);

    assert_int_equal(sumac_worker_step(own_worker, &fixture.error), SUMAC_ABORTED); /* when */

    assert_int_equal(inner_step, SUMAC_FAILED_PRECONDITION); /* then */
    assert_int_equal(inner_flush, SUMAC_FAILED_PRECONDITION);
    assert_string_equal(
        inner_error.text,
        "sumac_worker_step: another call of this worker is under way, in another thread or around "
        "this one; one at a time");
    assert_int_equal(sumac_worker_flush(own_worker, &fixture.error), SUMAC_OK);
    sumac_worker_destroy(own_worker);
}

TEST(a_mean_over_no_examples_at_all_is_refused)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.seen.weight = -1;
    struct sumac_worker *worker = created(&fixture);

    const enum sumac_status status = sumac_worker_step(worker, &fixture.error); /* when */

    assert_int_equal(status, SUMAC_FAILED_PRECONDITION); /* then */
    assert_int_equal(fixture.client.pushed, 0);
    sumac_worker_destroy(worker);
}

TEST(a_mean_of_integers_is_refused_at_creation_naming_the_variable)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.options.variable_count = 2;
    struct sumac_worker *worker = NULL;

    /* when */
    const enum sumac_status status = sumac_worker_create(&fixture.options, &worker, &fixture.error);

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
    assert_non_null(strstr(fixture.error.text, "of n cannot"));
    assert_null(worker);
}

/* And it says what to do. One replica's need no mean. */
TEST(integers_and_bools_that_cannot_be_reduced_are_refused_with_a_remedy)
{
    static const struct {
        enum sumac_dtype dtype;
        enum sumac_reduce_op reduce;
        const char *text;
    } cases[] = {
        {SUMAC_INT64, SUMAC_REDUCE_MEAN,
         "the replicas' gradients of w cannot be reduced by MEAN: it is int64; reduce by SUM, or "
         "make it a float"},
        {SUMAC_BOOL, SUMAC_REDUCE_SUM,
         "the replicas' gradients of w cannot be reduced by SUM: it is bool; push it apart from "
         "the worker"},
    };

    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture; /* given */
        struct sumac_worker *worker = NULL;
        prepare(&fixture, 2);
        fixture.client.variables[0].dtype = cases[i].dtype;
        fixture.options.reduce = cases[i].reduce;

        const enum sumac_status status = /* when */
            sumac_worker_create(&fixture.options, &worker, &fixture.error);

        assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
        assert_int_equal(fixture.error.reason, SUMAC_REASON_WRONG_DATA_TYPE);
        assert_string_equal(fixture.error.text, cases[i].text);
        fixture.options.replicas = 1;
        sumac_worker_destroy(created(&fixture));
    }
}

TEST(variables_beyond_pushed_count_are_pulled_only)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.options.variable_count = 2;
    fixture.options.pushed_count = 1;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    assert_int_equal(fixture.client.pull.count, 2); /* then */
    assert_int_equal(fixture.client.last_count, 1);
    assert_int_equal(sumac_worker_values(worker)[1].dtype, SUMAC_INT64);
    sumac_worker_destroy(worker);
}

TEST(replicas_left_out_are_those_of_the_environment)
{
    static const char *const bad[] = {"0", "-1", "257", "two", "2 "};
    struct sumac_worker *worker = NULL;
    struct sumac_error error;
    struct fixture fixture;

    prepare(&fixture, 3);
    fixture.options.replicas = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("SUMAC_REPLICAS", bad[i], 1);
        assert_int_equal(
            sumac_worker_create(&fixture.options, &worker, &error), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, bad[i]));
    }
    setenv("SUMAC_REPLICAS", "3", 1);

    worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    unsetenv("SUMAC_REPLICAS");

    assert_true(fixture.client.last_weight == 1 + 2 + 3); /* replica i weighs i + 1 */
    sumac_worker_destroy(worker);
    setenv("SUMAC_REPLICAS", "256", 1);
    sumac_worker_destroy(created(&fixture));
    setenv("SUMAC_REPLICAS", "", 1);
    worker = created(&fixture);
    unsetenv("SUMAC_REPLICAS");
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    assert_int_equal(fixture.seen.count[0], 1);
    sumac_worker_destroy(worker);
}

TEST(gpus_where_there_are_none_make_no_worker_and_are_told)
{
    static struct fixture fixture; /* the client that stands for all is in it */
    struct sumac_worker *worker = NULL;
    uint32_t there = 0;

    if (device_count(device_kind("GPU"), &there, NULL) == SUMAC_OK)
        skip();
    prepare(&fixture, 2); /* given */
    fixture.options.cuda_step = observed_step;
    static const char *const texts[] = {"gpu", "gpu:0,1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fixture.options.devices = texts[i];

        assert_int_equal(/* when, then */
                         sumac_worker_create(&fixture.options, &worker, &fixture.error),
                         SUMAC_FAILED_PRECONDITION);
        assert_int_equal(fixture.error.reason, SUMAC_REASON_UNSUPPORTED);
        assert_null(worker);
    }
}

TEST(a_synchronous_step_pushes_a_sum_and_waits_for_the_others)
{
    struct fixture fixture;

    for (int by_environment = 0; by_environment < 2; by_environment++) {
        prepare(&fixture, 2); /* given */
        fixture.options.synchronous = by_environment == 0;
        fixture.options.pushes_in_flight = 2;
        setenv("SUMAC_SYNCHRONOUS", by_environment == 1 ? "1" : "0", 1);
        struct sumac_worker *worker = created(&fixture);

        for (int i = 0; i < 2; i++) /* when */
            assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

        assert_true(fixture.client.synchronous); /* then */
        const float mean = (1 * 11.0f + 2 * 12.0f) / 3;
        assert_true(fixture.client.pushes[0].gradient == mean * 3);
        assert_true(fixture.client.last_weight == 3);
        assert_int_equal(fixture.client.under_way_most, 1);
        assert_string_equal(fixture.client.transcript, "pull pulled push pushed pull pulled push ");
        sumac_worker_destroy(worker);
        unsetenv("SUMAC_SYNCHRONOUS");
    }
}

TEST(steps_are_synchronous_where_that_can_be)
{
    struct sumac_worker *worker = NULL;
    struct sumac_error error;
    struct fixture fixture;

    prepare(&fixture, 1);
    setenv("SUMAC_SYNCHRONOUS", "yes", 1);
    assert_int_equal(
        sumac_worker_create(&fixture.options, &worker, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "SUMAC_SYNCHRONOUS is yes; 1 asks for"));
    setenv("SUMAC_SYNCHRONOUS", "1", 1);
    fixture.options.synchronous = SUMAC_SYNCHRONOUS_NO;
    worker = created(&fixture);
    unsetenv("SUMAC_SYNCHRONOUS");
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    assert_false(fixture.client.synchronous);
    sumac_worker_destroy(worker);
}

TEST(options_that_count_only_with_another_are_refused_without_it)
{
    struct sumac_worker *worker = NULL;
    struct sumac_error error;
    struct fixture fixture;

    prepare(&fixture, 1);
    fixture.options.lag_max = 4; /* given */

    assert_int_equal(/* when, then */
                     sumac_worker_create(&fixture.options, &worker, &error),
                     SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "lag_max is 4, which counts only with `bounded`");
    fixture.options.lag_max = 0;
    fixture.options.synchronous = (enum sumac_synchronous)3;
    assert_int_equal(
        sumac_worker_create(&fixture.options, &worker, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "synchronous is 3"));
}

TEST(steps_are_counted_from_0_and_each_replica_is_told_which)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    struct sumac_worker *worker = created(&fixture);
    assert_null(sumac_worker_values(worker));

    for (uint64_t step = 0; step < 3; step++) {
        assert_int_equal(sumac_worker_steps(worker), step);
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */
        assert_int_equal(fixture.seen.step[0], step);                /* then */
        assert_int_equal(fixture.seen.step[1], step);
    }
    assert_non_null(sumac_worker_values(worker));
    sumac_worker_destroy(worker);
}

TEST(a_pull_between_steps_shows_what_the_pushes_made_of_the_values)
{
    struct fixture fixture;

    prepare(&fixture, 1); /* given */
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    const float ran_on = *(float *)sumac_tensor_data(&sumac_worker_values(worker)[0]);

    assert_int_equal(sumac_worker_pull(worker, NULL), SUMAC_OK); /* when */

    const float fresh = *(float *)sumac_tensor_data(&sumac_worker_values(worker)[0]);
    assert_true(fresh != ran_on); /* then */
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);
}

TEST(a_worker_undoes_its_loss_scale_and_clips)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.loss_scale = 1024;
    fixture.options.clip_norm = 1.5;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    assert_true(fixture.client.last_scale == 1 / 1024.0); /* then */
    assert_true(fixture.client.last_clip_norm == 1.5);
    sumac_worker_destroy(worker);
}

TEST(loss_scales_and_norms_that_make_no_sense_are_refused)
{
    static const double odd[] = {-1, NAN, INFINITY};

    for (size_t i = 0; i < 2 * (sizeof odd / sizeof odd[0]); i++) {
        struct fixture fixture; /* given */
        struct sumac_worker *worker = NULL;
        prepare(&fixture, 1);
        *(i % 2 == 0 ? &fixture.options.loss_scale : &fixture.options.clip_norm) = odd[i / 2];

        const enum sumac_status status = /* when */
            sumac_worker_create(&fixture.options, &worker, &fixture.error);

        assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
        assert_non_null(strstr(fixture.error.text, i % 2 == 0 ? "loss_scale" : "clip_norm"));
        assert_null(worker);
    }
}

TEST(a_weight_that_is_no_count_is_refused_by_its_replica)
{
    static const double odd[] = {-1, NAN, INFINITY};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 2);
        fixture.seen.odd_weight = odd[i];
        struct sumac_worker *worker = created(&fixture);

        const enum sumac_status status = sumac_worker_step(worker, &fixture.error); /* when */

        assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
        assert_non_null(strstr(fixture.error.text, "replica 1 gave its step the weight "));
        assert_int_equal(fixture.client.pushed, 0);
        sumac_worker_destroy(worker);
    }
}

TEST(a_sum_needs_no_weight)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.options.reduce = SUMAC_REDUCE_SUM;
    fixture.seen.weight = -1;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

    assert_true(fixture.client.pushes[0].gradient == 11 + 12); /* then */
    sumac_worker_destroy(worker);
}

/* Of one push the ps itself lets the pull wait for the one before it. */
TEST(a_worker_that_runs_ahead_of_several_pushes_waits_for_none_at_the_ps)
{
    for (uint32_t ahead = 1; ahead < 3; ahead++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.pushes_in_flight = ahead;
        struct sumac_worker *worker = created(&fixture);

        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

        assert_int_equal(fixture.client.skip_own_pushes, ahead > 1); /* then */
        sumac_worker_destroy(worker);
    }
}
