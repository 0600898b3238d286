/* SPDX-License-Identifier: Apache-2.0 */
/* worker_ends.c -- what a worker is made of and what it tells, which of several failures counts,
 * and what it leaves behind. */
#include "worker_client.h"

#include <stdatomic.h>

static void options_that_say_too_little_or_too_much_are_refused(void **state)
{
    (void)state;
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
static void what_is_not_over_when_the_worker_ends_keeps_its_memory(void **state)
{
    (void)state;
    for (int of_pull = 0; of_pull < 2; of_pull++) {
        struct fixture fixture; /* given */
        prepare(&fixture, 1);
        fixture.options.timeout_ms = 7;
        struct sumac_worker *worker = created(&fixture);
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        fixture.client.late = true;
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DEADLINE_EXCEEDED);
        struct sumac_buffer *const pushed = fixture.client.pushed_from;
        struct sumac_buffer *const pulled = fixture.client.pulled_into;
        watch(of_pull == 0 ? pushed : pulled);

        sumac_worker_destroy(worker); /* when */

        assert_false(is_freed); /* then */
        assert_int_equal(fixture.client.timeout_ms, 7);
        sumac_buffer_unref(pushed);
        sumac_buffer_unref(pulled);
        assert_true(is_freed);
    }
}

static void what_is_over_when_the_worker_ends_is_given_back(void **state)
{
    (void)state;
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

static void options_that_lack_something_are_refused_by_its_name(void **state)
{
    (void)state;
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

static void a_step_knows_how_many_replicas_there_are_and_weighs_1(void **state)
{
    (void)state;
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

static void the_values_are_those_that_the_last_step_saw(void **state)
{
    (void)state;
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

static enum sumac_status fail_everywhere(struct sumac_replica *replica)
{
    return replica->id == 0 ? SUMAC_DATA_LOSS : SUMAC_INTERNAL;
}

static void of_several_replicas_that_fail_the_first_is_told(void **state)
{
    (void)state;
    struct fixture fixture;

    prepare(&fixture, 3);
    fixture.options.step = fail_everywhere;
    struct sumac_worker *worker = created(&fixture);

    assert_int_equal(sumac_worker_step(worker, &fixture.error), SUMAC_DATA_LOSS);

    assert_string_equal(fixture.error.text, "replica 0 (device CPU:0) ended step 0 with DATA_LOSS");
    sumac_worker_destroy(worker);
}

/* The network's error is told, and not the device's. */
static void a_pull_that_fails_beside_a_replica_is_what_is_told(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_say_too_little_or_too_much_are_refused),
        cmocka_unit_test(what_is_not_over_when_the_worker_ends_keeps_its_memory),
        cmocka_unit_test(what_is_over_when_the_worker_ends_is_given_back),
        cmocka_unit_test(options_that_lack_something_are_refused_by_its_name),
        cmocka_unit_test(a_step_knows_how_many_replicas_there_are_and_weighs_1),
        cmocka_unit_test(the_values_are_those_that_the_last_step_saw),
        cmocka_unit_test(of_several_replicas_that_fail_the_first_is_told),
        cmocka_unit_test(a_pull_that_fails_beside_a_replica_is_what_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
