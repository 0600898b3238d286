/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- a worker's steps on GPUs: values are copied there, gradients are added there by NCCL
 * and copied back, and what is pushed is what the same worker on CPUs pushes. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "replica.h"
#include "../unit/trace_read.h"
#include "../unit/worker_client.h"

#include "gpus.h"

#define BYTES (ROWS * sizeof(float))

static struct gpus gpus;               /* a machine may have one only: then there is less to try */
static struct sumac_buffer *staged[3]; /* of each replica: what is on its way to its device */

/* observed_step, which the host computes, of what the device has: fetched in the device's stream,
 * behind what comes in there, and sent back, which nobody waits for. */
static enum sumac_status
step_there(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_replica here = *replica;
    struct sumac_tensor value = *sumac_replica_value(replica, 0),
                        gradient = *sumac_replica_gradient(replica, 0);
    struct sumac_buffer *fetched = NULL, **stage = &staged[sumac_replica_id(replica)];

    if (sumac_buffer_place(value.buffer).kind != SUMAC_PLACE_CUDA ||
        sumac_buffer_place(value.buffer).device != sumac_replica_id(replica) ||
        sumac_device_gpu(sumac_replica_device(replica)) != (int32_t)sumac_replica_id(replica))
        return SUMAC_FAILED_PRECONDITION;
    if (*stage == NULL)
        assert_int_equal(
            sumac_device_host_buffer_create(sumac_replica_device(replica), BYTES, stage, NULL),
            SUMAC_OK);
    assert_int_equal(sumac_buffer_create(BYTES, &fetched), SUMAC_OK);
    const struct sumac_copy fetch = {
        .to = fetched, .from = value.buffer, .from_offset = value.offset_bytes, .bytes = BYTES};
    const struct sumac_copy send = {
        .to = gradient.buffer, .from = *stage, .to_offset = gradient.offset_bytes, .bytes = BYTES};
    enum sumac_status status = sumac_device_copy(sumac_replica_device(replica), &fetch, NULL);
    if (status == SUMAC_OK)
        status = sumac_device_wait(
            sumac_replica_device(replica), NULL); /* `staged` is free again, too */
    value.buffer = fetched;
    gradient.buffer = *stage;
    value.offset_bytes = gradient.offset_bytes = 0;
    here.values = &value;
    here.gradients = &gradient;
    if (status == SUMAC_OK)
        status = observed_step(&here, context, error);
    sumac_replica_set_weight(replica, here.weight);
    sumac_buffer_unref(fetched);
    return status == SUMAC_OK ? sumac_device_copy(sumac_replica_device(replica), &send, NULL)
                              : status;
}

static void give_staged_back(void)
{
    for (size_t i = 0; i < sizeof staged / sizeof staged[0]; i++) {
        sumac_buffer_unref(staged[i]);
        staged[i] = NULL;
    }
}

static void same_on_both(uint32_t replicas, enum sumac_reduce_op reduce, uint32_t in_flight)
{
    struct fixture fixture, far;
    struct sumac_worker *worker = NULL;

    prepare(&far, replicas); /* given */
    far.options.cuda_step = step_there;
    far.options.reduce = reduce;
    far.options.pushes_in_flight = in_flight;
    far.seen.weight = 2; /* of each: so a mean of two is of halves */
    const struct devices devices = devices_first(device_kind("GPU"), replicas);
    if (worker_create(&devices, &far.options, &worker, &far.error) != SUMAC_OK)
        fail_msg("%s", far.error.text);
    for (int i = 0; i < 8; i++) /* when */
        if (sumac_worker_step(worker, &far.error) != SUMAC_OK)
            fail_msg("%s", far.error.text);
    give_staged_back();
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

TEST(a_step_on_gpus_pushes_what_it_pushes_on_cpus)
{
    for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
        for (uint32_t replicas = 1; replicas <= 3 && replicas <= gpus.count; replicas++)
            same_on_both(replicas, SUMAC_REDUCE_SUM, in_flight);
        if (gpus.count >= 2)
            same_on_both(2, SUMAC_REDUCE_MEAN, in_flight);
    }
}

/* In turn on each device, and replica 0's after the reduction: its copy is what is pushed. */
TEST(what_devices_do_is_traced_by_their_own_time)
{
    char path[] = "/tmp/trace-XXXXXX", stream[32], copies[32], replica[32];
    const uint32_t replicas = gpus.count < 2 ? gpus.count : 2;
    struct fixture far;
    struct sumac_worker *worker = NULL;

    close(mkstemp(path));
    prepare(&far, replicas); /* given */
    far.client.member_count = 1;
    far.options.cuda_step = step_there;
    far.options.trace = path;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);
    for (int i = 0; i < 3; i++) /* when */
        assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_OK);
    give_staged_back();
    sumac_worker_destroy(worker);

    json_t *events = trace_read(path); /* then */
    for (uint32_t i = 0; i < 3 * replicas; i++) {
        const uint64_t step = i / replicas;
        (void)snprintf(stream, sizeof stream, "GPU:%u stream", i % replicas);
        (void)snprintf(copies, sizeof copies, "GPU:%u copies", i % replicas);
        (void)snprintf(replica, sizeof replica, "replica %u (GPU:%u)", i % replicas, i % replicas);
        const json_t *last = event_of(events, stream, "compute", step);
        assert_in_turn(event_of(events, copies, "copy in", step), last);
        assert_true(end_of(event_of(events, replica, "compute", step)) <= end_of(last) + 0.002);
        if (replicas > 1)
            assert_in_turn(last, event_of(events, stream, "reduce", step));
        if (i % replicas == 0)
            assert_in_turn(last, event_of(events, copies, "copy out", step));
    }
    json_decref(events);
    unlink(path);
}

static enum sumac_status
step_that_fails_there(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    return sumac_replica_id(replica) == 1 ? SUMAC_ABORTED : step_there(replica, context, error);
}

TEST(a_replica_that_fails_is_named_with_its_gpu)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    if (gpus.count < 2)
        skip();
    prepare(&far, 2); /* given */
    far.options.cuda_step = step_that_fails_there;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_ABORTED); /* when, then */
    assert_string_equal(far.error.text, "replica 1 (device GPU:1) ended step 0 with ABORTED");
    give_staged_back();
    sumac_worker_destroy(worker);
}

/* Leave the function's pointer at `function`. The test is skipped if the library has none of that
 * name: it is no stand-in then. */
static void find(const char *library, const char *name, void *function)
{
    void *opened = dlopen(library, RTLD_NOW), *symbol = opened == NULL ? NULL : dlsym(opened, name);

    if (symbol == NULL)
        skip();
    memcpy(function, &symbol, sizeof symbol);
}

/* A rank that stalls ends the reduction on all, when the step's time is over, and each step after
 * that; what the devices have is not pushed. */
TEST(a_reduction_that_takes_too_long_is_ended_and_told)
{
    void (*fault)(const char *what, int rank, uint64_t number) = NULL;
    struct fixture far;
    struct sumac_worker *worker = NULL;

    find("libnccl.so.2", "standin_nccl_fault", &fault);
    if (gpus.count < 2)
        skip();
    prepare(&far, 2); /* given */
    far.options.cuda_step = step_there;
    far.options.step_timeout_ms = 1000;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);
    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_OK);
    fault("stall", 1, 2);

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_DEADLINE_EXCEEDED); /* when */

    assert_non_null(strstr(
        far.error.text,
        "start 2 (reduce) of a group of 2 replicas waited 1000 ms for replica")); /* then */
    assert_int_equal(far.client.pushed, 1);
    const struct sumac_error first = far.error;
    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_DEADLINE_EXCEEDED);
    assert_string_equal(far.error.text, first.text);
    fault("", 0, 0);
    give_staged_back();
    sumac_worker_destroy(worker);
}

/* ---- a GPU that has failed */

#define ILLEGAL_ADDRESS "CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants it)"
#define ILLEGAL_ADDRESS_NUMBER 700
#define OUT_OF_MEMORY_NUMBER 2

static void (*fail_at)(const char *function, uint64_t nth, int result);

/* The copy is still under way when the function returns. */
static enum sumac_status
step_whose_copy_fails(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct sumac_copy copy = {
        .to = sumac_replica_gradient(replica, 0)->buffer,
        .from = sumac_replica_value(replica, 0)->buffer,
        .bytes = BYTES};

    (void)context, (void)error;
    fail_at("stream", 1, ILLEGAL_ADDRESS_NUMBER);
    sumac_replica_set_weight(replica, 1);
    return sumac_device_copy(sumac_replica_device(replica), &copy, NULL);
}

TEST(the_end_of_the_process_is_the_remedy_for_a_gpu_that_has_failed)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    find("libcuda.so.1", "standin_fail_at", &fail_at);
    prepare(&far, 1); /* given */
    far.options.cuda_step = step_whose_copy_fails;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_ABORTED); /* when */

    assert_string_equal(
        far.error.text, "replica 0 (device GPU:0) ended step 0 with ABORTED: " ILLEGAL_ADDRESS
                        "; end the process, which alone frees the GPU"); /* then */
    fail_at("", 0, 0);
    sumac_worker_destroy(worker);
}

static enum sumac_status
step_that_leaves_zeros(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context, (void)error;
    sumac_replica_set_weight(replica, 1);
    return SUMAC_OK;
}

/* NCCL blames replica 1. The driver says at the end of the step alone that GPU:0 has failed. */
TEST(the_failed_gpu_of_another_replica_is_told_beside_nccls_error)
{
    void (*fault)(const char *what, int rank, uint64_t number) = NULL;
    struct fixture far;
    struct sumac_worker *worker = NULL;

    find("libcuda.so.1", "standin_fail_at", &fail_at);
    find("libnccl.so.2", "standin_nccl_fault", &fault);
    if (gpus.count < 2)
        skip();
    prepare(&far, 2); /* given */
    far.options.cuda_step = step_that_leaves_zeros;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);
    fault("fail", 1, 1);
    fail_at("cuStreamQuery", 1, ILLEGAL_ADDRESS_NUMBER); /* which asks for a step's end alone */

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_ABORTED); /* when */

    assert_string_equal(
        far.error.text,
        "start 1 (reduce) of a group of 2 replicas failed at replica 1 (GPU:1): NCCL says: remote "
        "process exited or there was a network error; replica 0 (GPU:0) has "
        "failed: " ILLEGAL_ADDRESS
        "; the worker takes no more steps: end the process, which alone frees the "
        "GPU"); /* then */
    const struct sumac_error first = far.error;
    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_ABORTED);
    assert_string_equal(far.error.text, first.text);
    fault("", 0, 0);
    fail_at("", 0, 0);
    sumac_worker_destroy(worker);
}

/* Replica 1 has no examples, so that their mean takes scratch. */
static enum sumac_status
step_with_an_idle_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context, (void)error;
    sumac_replica_set_weight(replica, sumac_replica_id(replica) == 1 ? 0 : 1);
    return SUMAC_OK;
}

TEST(a_reduction_that_there_is_no_memory_for_fails_its_step_alone)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    find("libcuda.so.1", "standin_fail_at", &fail_at);
    if (gpus.count < 2)
        skip();
    prepare(&far, 2); /* given */
    far.options.cuda_step = step_with_an_idle_replica;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);
    fail_at("cuMemAlloc_v2", 1, OUT_OF_MEMORY_NUMBER);

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_RESOURCE_EXHAUSTED); /* when */
    fail_at("", 0, 0);

    assert_non_null(strstr(far.error.text, "has no scratch on replica 0")); /* then */
    assert_int_equal(far.error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_OK);
    assert_int_equal(far.client.pushed, 1);
    sumac_worker_destroy(worker);
}

static enum sumac_status
step_that_says_why(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)replica, (void)context;
    (void)snprintf(error->text, sizeof error->text, "there is no data left");
    return SUMAC_OUT_OF_RANGE;
}

TEST(what_a_step_says_of_its_failure_is_told)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;

    prepare(&far, 1); /* given */
    far.options.cuda_step = step_that_says_why;
    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OK);

    assert_int_equal(sumac_worker_step(worker, &far.error), SUMAC_OUT_OF_RANGE); /* when */

    assert_string_equal(/* then */
                        far.error.text, "replica 0 (device GPU:0) ended step 0 with OUT_OF_RANGE: "
                                        "there is no data left");
    sumac_worker_destroy(worker);
}

TEST(a_gpu_that_is_not_there_makes_no_worker)
{
    struct fixture far;
    struct sumac_worker *worker = NULL;
    char expected[128], named[16];

    prepare(&far, gpus.count + 1);
    far.options.cuda_step = step_there;
    far.options.replicas = 1;
    (void)snprintf(named, sizeof named, "gpu:%u", gpus.count);
    far.options.devices = named;
    (void)snprintf(
        expected, sizeof expected,
        "there is no GPU:%u: the program sees %u, from GPU:0 on (`sumac devices` lists them)",
        gpus.count, gpus.count);

    assert_int_equal(sumac_worker_create(&far.options, &worker, &far.error), SUMAC_OUT_OF_RANGE);
    assert_string_equal(far.error.text, expected);
    assert_null(worker);
}

int main(void)
{
    gpus_find(&gpus);
    return unit_run(NULL, NULL);
}
