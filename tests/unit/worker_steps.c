/* SPDX-License-Identifier: Apache-2.0 */
/* worker_steps.c -- what each of several steps computes and pushes, in every type, and what one
 * that failed leaves for the next. */
#include "half.h"
#include "worker_client.h"

/* The gradient is the number of the step, from 1 on, times the number of the variable and of the
 * replica, in the variable's type. Without examples it is NaN, as 0 / 0 is. */
static enum sumac_status
numbered_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct seen *seen = context;

    (void)error;
    sumac_replica_set_weight(replica, seen->weight < 0 ? 0 : seen->weight > 0 ? seen->weight : 1);
    for (uint32_t v = 0; v < 2; v++) {
        const float number = seen->weight < 0
                                 ? __builtin_nanf("")
                                 : (float)(sumac_replica_step(replica) + 1) * (float)(v + 1) *
                                       (float)(sumac_replica_id(replica) + 1);
        void *const gradient = sumac_tensor_data(sumac_replica_gradient(replica, v));
        for (uint32_t row = 0; row < ROWS; row++)
            switch (sumac_replica_gradient(replica, v)->dtype) {
            case SUMAC_FLOAT64:
                ((double *)gradient)[row] = number;
                break;
            case SUMAC_FLOAT16:
                ((uint16_t *)gradient)[row] = float16_of_float32(number);
                break;
            case SUMAC_BFLOAT16:
                ((uint16_t *)gradient)[row] = bfloat16_of_float32(number);
                break;
            default:
                ((float *)gradient)[row] = number;
            }
    }
    return SUMAC_OK;
}

static void prepare_two(
    struct fixture *fixture, uint32_t replicas, enum sumac_dtype first, enum sumac_dtype second)
{
    prepare(fixture, replicas);
    fixture->options.variable_count = 2;
    fixture->options.step = numbered_step;
    fixture->client.variables[0].dtype = first;
    fixture->client.variables[1].dtype = second;
}

TEST(each_push_has_the_gradients_of_its_own_step)
{
    for (uint32_t ahead = 1; ahead <= 3; ahead++)
        for (uint32_t replicas = 1; replicas <= 2; replicas++) {
            struct fixture fixture; /* given */
            prepare_two(&fixture, replicas, SUMAC_FLOAT32, SUMAC_FLOAT64);
            fixture.options.pushes_in_flight = ahead;
            fixture.options.reduce = SUMAC_REDUCE_SUM;
            struct sumac_worker *worker = created(&fixture);
            const float all = replicas == 1 ? 1 : 1 + 2;

            for (uint32_t i = 0; i < 6; i++) { /* when */
                assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

                assert_true(fixture.client.last_values[0] == (float)(i + 1) * all); /* then */
                assert_true(fixture.client.last_values[1] == (float)(i + 1) * 2 * all);
            }
            sumac_worker_destroy(worker);
        }
}

/* A mean over `weight` examples goes out as their sum; of no examples as nothing at all, whatever
 * the step wrote. */
TEST(a_synchronous_contribution_is_a_sum_in_each_type)
{
    static const enum sumac_dtype dtypes[] = {
        SUMAC_FLOAT32, SUMAC_FLOAT64, SUMAC_FLOAT16, SUMAC_BFLOAT16};
    static const double weights[] = {1, 4, 0.5, -1};

    for (size_t i = 0; i < 2 * 4 * 4 * 4; i++) {
        const enum sumac_dtype first = dtypes[i % 4], second = dtypes[i / 4 % 4];
        const double weight = weights[i / 16 % 4];
        const uint32_t replicas = i < 64 ? 1 : 2;
        const float all = replicas == 1 ? 1 : 1 + 2;
        struct fixture fixture; /* given */
        prepare_two(&fixture, replicas, first, second);
        fixture.options.synchronous = SUMAC_SYNCHRONOUS_YES;
        fixture.seen.weight = weight;
        struct sumac_worker *worker = created(&fixture);

        for (uint32_t step = 1; step <= 3; step++) { /* when */
            assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

            const float sum = weight < 0 ? 0 : (float)(step * weight) * all; /* then */
            assert_true(fixture.client.last_values[0] == sum);
            assert_true(fixture.client.last_values[1] == 2 * sum);
            assert_true(fixture.client.last_weight == (weight < 0 ? 0 : weight * replicas));
            assert_int_equal(fixture.client.last_zero_weight, weight < 0);
        }
        assert_string_equal(fixture.client.said, "this worker makes synchronous steps");
        assert_int_equal(
            fixture.client.last_dtypes[0], first == SUMAC_FLOAT64 ? first : SUMAC_FLOAT32);
        assert_int_equal(
            fixture.client.last_dtypes[1], second == SUMAC_FLOAT64 ? second : SUMAC_FLOAT32);
        sumac_worker_destroy(worker);
    }
}

/* The gradient of one without examples may be no number. */
TEST(a_replica_without_examples_has_no_part_in_the_mean)
{
    for (uint32_t idle = 0; idle < 3; idle++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 3);
        fixture.seen.idle = idle + 1;
        struct sumac_worker *worker = created(&fixture);

        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */

        float sum = 0, weight = 0; /* then */
        for (uint32_t i = 0; i < 3; i++)
            if (i != idle) {
                sum += (float)(i + 1) * (float)(11 + i);
                weight += (float)(i + 1);
            }
        assert_true(fixture.client.pushes[0].gradient == sum / weight);
        assert_true(fixture.client.last_weight == (double)weight);
        sumac_worker_destroy(worker);
    }
}

static enum sumac_status
step_for_gpus(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)replica, (void)context, (void)error;
    return SUMAC_INTERNAL;
}

TEST(a_program_that_has_both_steps_runs_that_for_cpus_on_cpus)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 2);
    fixture.options.cuda_step = step_for_gpus;
    fixture.options.devices = "cpu";
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when, then */

    assert_int_equal(fixture.seen.runs[0], 1);
    sumac_worker_destroy(worker);
}

/* ---- between steps */

TEST(values_that_were_pulled_before_the_first_step_are_shown)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.timeout_ms = 7;
    struct sumac_worker *worker = created(&fixture);
    fixture.client.pull_status = SUMAC_ABORTED;
    fixture.client.pull_timeout_ms = 0;

    assert_int_equal(sumac_worker_pull(worker, NULL), SUMAC_ABORTED); /* when */
    assert_null(sumac_worker_values(worker));
    assert_int_equal(sumac_worker_pull(worker, NULL), SUMAC_OK);

    const struct sumac_tensor *const values = sumac_worker_values(worker); /* then */
    assert_non_null(values);
    assert_true(((const float *)sumac_tensor_data(values))[ROWS - 1] == 10);
    assert_int_equal(fixture.client.pull_timeout_ms, 7);
    sumac_worker_destroy(worker);
}

/* The late pull goes on, and the next call waits for its end. */
TEST(a_pull_between_steps_waits_for_what_is_under_way_yet)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    struct sumac_worker *worker = created(&fixture);
    fixture.client.late = true;
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DEADLINE_EXCEEDED);
    fixture.client.late = false;

    assert_int_equal(sumac_worker_pull(worker, NULL), SUMAC_OK); /* when */

    assert_string_equal(fixture.client.transcript, "pull pulled pull pulled "); /* then */
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    assert_int_equal(fixture.client.pushed, 1);
    sumac_worker_destroy(worker);
}

/* Values that were asked for before the push that is too long ago is over would be without it. */
TEST(a_step_sees_all_own_pushes_but_the_last_few)
{
    struct fixture fixture; /* given */

    prepare(&fixture, 1);
    fixture.options.pushes_in_flight = 2;
    struct sumac_worker *worker = created(&fixture);

    for (int i = 0; i < 3; i++) /* when */
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

    assert_string_equal(/* then: the fourth step's values have the first push */
                        fixture.client.transcript,
                        "pull pulled pull pulled push pull pulled push pushed pull pulled push ");
    sumac_worker_destroy(worker);
}
