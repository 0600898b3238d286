/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- a worker's steps on GPUs: values are copied there, gradients are added there by NCCL
 * and copied back, and what is pushed is what the same worker on CPUs pushes. */
#include <stdio.h>

#include "../unit/worker_client.h"

#include "driver.h"
#include "gpus.h"

#define BYTES (ROWS * sizeof(float))

static struct gpus gpus; /* a machine may have one only: then there is less to try */

/* Between the host and a device, in a stream of the step's own, on the queue's thread. */
static CUresult copy_now(void *to, const void *from)
{
    const struct cuda_driver *driver = NULL;
    CUstream stream = NULL;

    assert_int_equal(cuda_driver_open(&driver, NULL), SUMAC_OK);
    CUresult result = driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuMemcpyAsync(
        (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, BYTES, stream);
    if (result == CUDA_SUCCESS)
        result = driver->cuStreamSynchronize(stream);
    (void)driver->cuStreamDestroy(stream);
    return result;
}

/* observed_step, which the host computes, of what the device has. */
static enum sumac_status step_there(struct sumac_replica *replica)
{
    struct sumac_replica here = *replica;
    float values[ROWS], gradients[ROWS];
    struct sumac_tensor value = replica->values[0], gradient = replica->gradients[0];
    struct sumac_buffer *buffers[2] = {NULL, NULL};
    const struct sumac_place host = {SUMAC_PLACE_HOST, 0};

    if (sumac_buffer_place(value.buffer).kind != SUMAC_PLACE_CUDA ||
        sumac_buffer_place(value.buffer).device != replica->id)
        return SUMAC_FAILED_PRECONDITION;
    if (copy_now(values, sumac_tensor_data(&value)) != CUDA_SUCCESS)
        return SUMAC_INTERNAL;
    assert_int_equal(sumac_buffer_wrap(values, BYTES, host, NULL, NULL, &buffers[0]), SUMAC_OK);
    assert_int_equal(sumac_buffer_wrap(gradients, BYTES, host, NULL, NULL, &buffers[1]), SUMAC_OK);
    void *const there = sumac_tensor_data(&gradient);
    value.buffer = buffers[0];
    gradient.buffer = buffers[1];
    value.offset_bytes = gradient.offset_bytes = 0;
    here.values = &value;
    here.gradients = &gradient;
    const enum sumac_status status = observed_step(&here);
    replica->weight = here.weight;
    for (int i = 0; i < 2; i++)
        sumac_buffer_unref(buffers[i]);
    return copy_now(there, gradients) != CUDA_SUCCESS ? SUMAC_INTERNAL : status;
}

static void same_on_both(uint32_t replicas, enum sumac_reduce_op reduce, uint32_t in_flight)
{
    struct fixture fixture, far;
    struct sumac_worker *worker = NULL;

    prepare(&far, replicas); /* given */
    far.options.step = step_there;
    far.options.reduce = reduce;
    far.options.pushes_in_flight = in_flight;
    far.seen.weight = 2; /* of each: so a mean of two is of halves */
    if (worker_create(device_kind("GPU"), &far.options, &worker, &far.error) != SUMAC_OK)
        fail_msg("%s", far.error.text);
    for (int i = 0; i < 8; i++) /* when */
        if (sumac_worker_step(worker, &far.error) != SUMAC_OK)
            fail_msg("%s", far.error.text);
    sumac_worker_destroy(worker);

    prepare(&fixture, replicas);
    fixture.options.reduce = reduce;
    fixture.options.pushes_in_flight = in_flight;
    fixture.seen.weight = 2;
    worker = created(&fixture);
    for (int i = 0; i < 8; i++)
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);

    for (int i = 0; i < 8; i++) /* then */
        assert_true(far.client.pushes[i].gradient == fixture.client.pushes[i].gradient);
    assert_true(far.seen.value[replicas - 1] == fixture.seen.value[replicas - 1]);
    assert_string_equal(far.client.transcript, fixture.client.transcript);
}

static void a_step_on_gpus_pushes_what_it_pushes_on_cpus(void **state)
{
    (void)state;
    for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
        for (uint32_t replicas = 1; replicas <= 3 && replicas <= gpus.count; replicas++)
            same_on_both(replicas, SUMAC_REDUCE_SUM, in_flight);
        if (gpus.count >= 2)
            same_on_both(2, SUMAC_REDUCE_MEAN, in_flight);
    }
}

static enum sumac_status step_that_fails_there(struct sumac_replica *replica)
{
    return replica->id == 1 ? SUMAC_ABORTED : step_there(replica);
}

static void a_replica_that_fails_is_named_with_its_gpu(void **state)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    (void)state;
    if (gpus.count < 2)
        skip();
    prepare(&far, 2); /* given */
    far.options.step = step_that_fails_there;
    assert_int_equal(
        worker_create(device_kind("GPU"), &far.options, &worker, &far.error), SUMAC_OK);

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_ABORTED); /* when, then */
    assert_string_equal(far.error.text, "replica 1 (device GPU:1) ended step 0 with ABORTED");
    sumac_worker_destroy(worker);
}

static void more_replicas_than_gpus_make_no_worker(void **state)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    char expected[128];

    (void)state;
    prepare(&far, gpus.count + 1);
    far.options.step = step_there;
    (void)snprintf(
        expected, sizeof expected,
        "there is no GPU:%u: the program sees %u, from GPU:0 on (`sumac devices` lists them)",
        gpus.count, gpus.count);

    assert_int_equal(
        worker_create(device_kind("GPU"), &far.options, &worker, &far.error), SUMAC_OUT_OF_RANGE);
    assert_string_equal(far.error.text, expected);
    assert_null(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_on_gpus_pushes_what_it_pushes_on_cpus),
        cmocka_unit_test(a_replica_that_fails_is_named_with_its_gpu),
        cmocka_unit_test(more_replicas_than_gpus_make_no_worker),
    };

    gpus_find(&gpus);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
