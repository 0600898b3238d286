/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.c -- what is a GPU's own: its memory, its numbers, and a driver that fails, which the
 * stand-in does where it is told to. What it has in common with the CPU, tests/unit/device.c asks
 * of both. */
#include <time.h>

#include "unit.h"
#include <cuda.h>
#include <dlfcn.h>
#include <semaphore.h>

#include "device.h"
#include "driver.h"
#include "gpus.h"
#include "kernel_arguments.h"
#include "trace.h"

#define BYTES UINT64_C(4096)

/* The stand-in's own functions (standins/standin.h); NULL with a driver, which cannot be told. */
static void (*fail_at)(const char *function, uint64_t nth, int result);
static uint64_t (*calls)(void);

static int find_standin(void **state)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    (void)state;
    if (library == NULL)
        return 1;
    *(void **)&fail_at = dlsym(library, "standin_fail_at");
    *(void **)&calls = dlsym(library, "standin_calls");
    return 0;
}

static void needs_the_standin(void)
{
    if (fail_at == NULL)
        skip();
}

static struct device *opened(uint32_t index)
{
    struct device *device = NULL;

    assert_int_equal(device_open(device_kind("GPU"), index, &device, NULL), SUMAC_OK);
    return device;
}

static struct device_queue *queue_of(struct device *device)
{
    struct device_queue *queue = NULL;

    assert_int_equal(device_queue_open(device, &queue, NULL), SUMAC_OK);
    return queue;
}

TEST(memory_is_of_the_device_and_its_place_says_which)
{
    struct device *device = opened(0); /* given */
    struct sumac_buffer *host = NULL, *mirror = NULL, *nothing = NULL;

    assert_int_equal(sumac_buffer_create(BYTES, &host), SUMAC_OK);

    assert_int_equal(device_buffer_mirror(device, host, &mirror, NULL), SUMAC_OK); /* when */
    assert_int_equal(device_buffer_create(device, 0, &nothing, NULL), SUMAC_OK);

    assert_int_equal(sumac_buffer_place(mirror).kind, SUMAC_PLACE_CUDA); /* then */
    assert_int_equal(sumac_buffer_place(mirror).device, 0);
    assert_int_equal(sumac_buffer_bytes(mirror), BYTES);
    assert_int_equal(sumac_buffer_bytes(nothing), 0);
    sumac_buffer_unref(nothing);
    sumac_buffer_unref(mirror);
    sumac_buffer_unref(host);
    device_close(device);
}

TEST(a_number_that_is_not_there_is_told_with_those_that_are)
{
    struct device *device = NULL;
    struct sumac_error error = {0};

    struct gpus gpus;
    char expected[128];

    gpus_find(&gpus);
    (void)snprintf(
        expected, sizeof expected,
        "there is no GPU:%u: the program sees %u, from GPU:0 on (`sumac devices` lists them)",
        gpus.count, gpus.count);

    const enum sumac_status status = device_open(device_kind("GPU"), gpus.count, &device, &error);

    assert_int_equal(status, SUMAC_OUT_OF_RANGE);
    assert_int_equal(error.reason, SUMAC_REASON_UNSUPPORTED); /* so the program exits with 2 */
    assert_string_equal(error.text, expected);
    assert_null(device);
}

TEST(a_device_that_cannot_be_used_is_told_in_the_drivers_words)
{
    struct device *device = NULL;
    struct sumac_error error = {0};

    needs_the_standin();
    fail_at("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_OUT_OF_MEMORY); /* given */

    const enum sumac_status status = device_open(device_kind("GPU"), 0, &device, &error); /* when */

    assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED); /* then */
    assert_string_equal(
        error.text, "GPU:0 cannot be used: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

/* Open everything, use everything, close everything; the first failure that is told. */
static enum sumac_status live_a_life(void)
{
    struct device *device = NULL;
    struct device_queue *queue = NULL;
    struct device_event *event = NULL;
    struct sumac_buffer *buffer = NULL, *host = NULL;
    enum sumac_status status = device_open(device_kind("GPU"), 0, &device, NULL);

    if (status == SUMAC_OK)
        status = device_queue_open(device, &queue, NULL);
    if (status == SUMAC_OK)
        status = device_event_open(device, &event, NULL);
    if (status == SUMAC_OK)
        status = device_buffer_create(device, BYTES, &buffer, NULL);
    if (status == SUMAC_OK)
        status = sumac_buffer_create(BYTES, &host);
    if (status == SUMAC_OK) {
        device_copy(queue, &(struct sumac_copy){.to = buffer, .from = host, .bytes = BYTES});
        device_record(queue, event);
        device_await(queue, event);
        device_copy(queue, &(struct sumac_copy){.to = host, .from = buffer, .bytes = BYTES});
        status = device_wait(queue);
    }
    device_queue_close(queue);
    device_event_close(event);
    sumac_buffer_unref(buffer);
    sumac_buffer_unref(host);
    device_close(device);
    return status;
}

/* The stand-in ends the program if anything were left of a life in which nothing failed. */
TEST(whatever_the_driver_refuses_is_told_and_the_next_life_is_a_whole_one)
{
    static const char *const functions[] = {
        "cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuEventCreate", "cuMemAlloc_v2",
        "cuMemsetD8Async",          "cuMemcpyAsync",  "cuEventRecord", "cuStreamWaitEvent",
    };

    needs_the_standin();
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        uint64_t nth = 0;
        enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
        while (status != SUMAC_OK) {
            fail_at(functions[i], ++nth, CUDA_ERROR_OUT_OF_MEMORY); /* given */

            status = live_a_life(); /* when */

            if (status != SUMAC_OK) /* then */
                assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
        }
        assert_true(nth > 1);
        assert_true(calls() < nth); /* it was the first that had less to do */
        fail_at("", 0, 0);
        assert_int_equal(live_a_life(), SUMAC_OK);
    }
}

/* What has failed on the GPU, and all that came after it, is told by the wait; who opens the device
 * again has a new context. */
TEST(what_fails_later_is_told_by_the_wait_until_the_device_is_opened_again)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct sumac_buffer *buffer = NULL, *host = NULL;

    needs_the_standin();
    assert_int_equal(device_buffer_create(device, BYTES, &buffer, NULL), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(BYTES, &host), SUMAC_OK);
    const struct sumac_copy copy = {.to = buffer, .from = host, .bytes = BYTES};
    fail_at("stream", 1, CUDA_ERROR_ILLEGAL_ADDRESS);

    device_copy(queue, &copy); /* when */

    assert_int_equal(device_wait(queue), SUMAC_ABORTED); /* then */
    assert_string_equal(device_why(queue), "CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants it)");
    device_copy(queue, &copy);
    assert_int_equal(device_wait(queue), SUMAC_ABORTED);
    sumac_buffer_unref(buffer);
    sumac_buffer_unref(host);
    device_queue_close(queue);
    device_close(device);
    fail_at("", 0, 0);
    assert_int_equal(live_a_life(), SUMAC_OK);
}

static enum sumac_status give_up(void *context)
{
    (void)context;
    return SUMAC_FAILED_PRECONDITION;
}

/* The program's own failure is not the driver's; one that it has no name for is its number. */
TEST(why_is_said_of_what_the_driver_refused_alone)
{
    struct device *device = opened(0); /* given */
    struct device_queue *queue = queue_of(device);
    struct device_event *event = NULL;

    needs_the_standin();
    assert_int_equal(device_event_open(device, &event, NULL), SUMAC_OK);
    device_run(queue, give_up, NULL);
    assert_int_equal(device_wait(queue), SUMAC_FAILED_PRECONDITION); /* when, then */
    assert_string_equal(device_why(queue), "");

    fail_at("cuEventRecord", 1, 4711);
    device_record(queue, event);
    device_run(queue, give_up, NULL);
    assert_int_equal(device_wait(queue), SUMAC_INTERNAL);
    assert_string_equal(device_why(queue), "error 4711, which the driver has no name for");
    assert_int_equal(device_wait(queue), SUMAC_OK);
    assert_string_equal(device_why(queue), "");
    fail_at("", 0, 0);
    device_event_close(event);
    device_queue_close(queue);
    device_close(device);
}

/* The clock of the process: each reading is that much later than the last. */
static uint64_t leap_s;

int leaping_clock(clockid_t clock, struct timespec *now) __asm__("clock_gettime");

int leaping_clock(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t clock, struct timespec * now);
    static time_t ahead_s;

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    ahead_s += (time_t)leap_s;
    const int failed = real(clock, now);
    now->tv_sec += ahead_s;
    return failed;
}

TEST(memory_that_is_not_zeroed_within_ten_minutes_is_not_given)
{
    static struct device *device; /* which the GPU may still use: no leak */
    struct sumac_buffer *buffer = NULL;
    struct sumac_error error;

    needs_the_standin();
    device = opened(0);
    fail_at("cuStreamQuery", 1, CUDA_ERROR_NOT_READY); /* given */
    leap_s = 601;

    const enum sumac_status status =
        device_buffer_create(device, BYTES, &buffer, &error); /* when */

    leap_s = 0;
    fail_at("", 0, 0);
    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED); /* then */
    assert_non_null(strstr(error.text, "GPU:0 gives no memory for 4096 bytes"));
    assert_null(buffer);
    assert_true(device_is_given_up(device));
    device_close(device);
}

TEST(a_device_that_is_full_says_so)
{
    struct device *device = opened(0); /* given */
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(/* when, then */
                     device_buffer_create(device, UINT64_C(1) << 40, &buffer, NULL),
                     SUMAC_RESOURCE_EXHAUSTED);
    assert_null(buffer);
    device_close(device);
}

TEST(gpus_are_found_with_what_they_are_and_whom_they_reach)
{
    struct gpus gpus;

    needs_the_standin();
    if (getenv("SUMAC_STANDIN_DEVICES") != NULL)
        skip(); /* it has two where it is not told another number */
    gpus_find(&gpus);

    assert_int_equal(gpus.missing.status, SUMAC_OK);
    assert_int_equal(gpus.count, 2);
    assert_string_equal(gpus.items[1].name, "Stand-in 1");
    assert_int_equal(gpus.items[1].capability_major, 9);
    assert_int_equal(gpus.items[1].memory_bytes, UINT64_C(4) << 30);
    assert_int_equal(gpus.items[0].reaches, 2);
    assert_int_equal(gpus.items[1].reaches, 1);
    assert_int_equal(gpus.cuda_major, CUDA_VERSION / 1000);
}

/* Who must act: who set the machine up, who has data that is lost, or who runs the process. */
TEST(what_the_driver_says_is_a_status_that_tells_who_must_act)
{
    static const struct {
        CUresult result;
        enum sumac_status status;
        bool is_sticky;
    } cases[] = {
        {CUDA_ERROR_NO_BINARY_FOR_GPU, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_MPS_CONNECTION_FAILED, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_MPS_SERVER_NOT_READY, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, SUMAC_FAILED_PRECONDITION, false},
        {CUDA_ERROR_NVLINK_UNCORRECTABLE, SUMAC_DATA_LOSS, true},
        {CUDA_ERROR_CONTAINED, SUMAC_ABORTED, true},
        {CUDA_ERROR_INVALID_ADDRESS_SPACE, SUMAC_ABORTED, true},
        {CUDA_ERROR_INVALID_PC, SUMAC_ABORTED, true},
        {CUDA_ERROR_MPS_RPC_FAILURE, SUMAC_ABORTED, true},
        {CUDA_ERROR_MPS_CLIENT_TERMINATED, SUMAC_ABORTED, true},
        {CUDA_ERROR_NOT_READY, SUMAC_DEADLINE_EXCEEDED, false},
        {CUDA_ERROR_OUT_OF_MEMORY, SUMAC_RESOURCE_EXHAUSTED, false},
        {CUDA_ERROR_INVALID_VALUE, SUMAC_INTERNAL, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(cuda_status(cases[i].result), cases[i].status);
        assert_int_equal(cuda_is_sticky(cases[i].result), cases[i].is_sticky);
    }
}

/* A kernel of the library's own, as the program's: it scales 16 floats. */
struct scaling {
    struct device_queue *queue;
    struct cuda_kernel_arguments arguments;
    uint32_t shared_bytes;
    const void *image;
    const char *kernel;
    struct sumac_error error;
};

static const char an_image[] = "the stand-in takes any", another_image[] = "and any other";

static enum sumac_status launch_scaling(void *context)
{
    struct scaling *scaling = context;
    void *parameters[] = {&scaling->arguments};

    return sumac_device_launch(
        device_for_step(scaling->queue),
        &(struct sumac_launch){
            .image = scaling->image,
            .kernel = scaling->kernel,
            .blocks = 1,
            .threads = 32,
            .shared_bytes = scaling->shared_bytes,
            .parameters = parameters},
        &scaling->error);
}

/* The larger one of two sizes stays allowed: another queue may be about to use it. */
TEST(a_launch_may_have_all_the_shared_memory_that_a_block_has)
{
    static const uint32_t sizes[] = {0, 200 * 1024, 100 * 1024, 200 * 1024};
    struct sumac_buffer *buffer = NULL;

    needs_the_standin();
    struct device *device = opened(0); /* given */
    struct scaling scaling = {
        .queue = queue_of(device), .image = an_image, .kernel = "sumac_scale_float32"};
    assert_int_equal(device_buffer_create(device, BYTES, &buffer, NULL), SUMAC_OK);
    scaling.arguments.to = scaling.arguments.from = (uint64_t)(uintptr_t)sumac_buffer_data(buffer);
    scaling.arguments.count = 16;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (i == 3)
            fail_at("cuFuncSetAttribute", 1, CUDA_ERROR_UNKNOWN); /* it is not asked for again */
        scaling.shared_bytes = sizes[i];
        device_run(scaling.queue, launch_scaling, &scaling);    /* when */
        assert_int_equal(device_wait(scaling.queue), SUMAC_OK); /* then */
    }
    fail_at("", 0, 0);
    scaling.shared_bytes = 300 * 1024;
    device_run(scaling.queue, launch_scaling, &scaling);
    assert_int_equal(device_wait(scaling.queue), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        scaling.error.text, "GPU:0 does not run kernel sumac_scale_float32, 1 blocks of 32 threads "
                            "with 307200 bytes of "
                            "shared memory: CUDA_ERROR_INVALID_VALUE (as the test wants it)");
    assert_int_equal(scaling.error.status, SUMAC_INVALID_ARGUMENT);
    device_queue_close(scaling.queue);
    sumac_buffer_unref(buffer);
    device_close(device);
}

/* Each is looked for once, where it was not found before: the stand-in fails when it is asked. */
TEST(a_launch_is_of_the_kernel_of_its_name_in_its_image)
{
    static const struct {
        const char *kernel, *image, *fails;
        enum sumac_status status;
    } launches[] = {
        {"sumac_scale_float32", an_image, "", SUMAC_OK},
        {"sumac_scale_float32", an_image, "cuModuleLoadData", SUMAC_OK},
        {"sumac_scale_float32", an_image, "cuModuleGetFunction", SUMAC_OK},
        {"sumac_scale_float64", an_image, "cuModuleGetFunction", SUMAC_INTERNAL},
        {"sumac_scale_float32", another_image, "cuModuleLoadData", SUMAC_INTERNAL},
        {"sumac_scale_float32", another_image, "cuModuleGetFunction", SUMAC_INTERNAL},
        {"sumac_scale_float32", another_image, "", SUMAC_OK},
        {"none_such", another_image, "", SUMAC_NOT_FOUND},
        {"sumac_scale_float32", an_image, "cuModuleGetFunction", SUMAC_OK},
    };
    struct sumac_buffer *buffer = NULL;

    needs_the_standin();
    struct device *device = opened(0); /* given */
    struct scaling scaling = {.queue = queue_of(device)};
    assert_int_equal(device_buffer_create(device, BYTES, &buffer, NULL), SUMAC_OK);
    scaling.arguments.to = scaling.arguments.from = (uint64_t)(uintptr_t)sumac_buffer_data(buffer);
    scaling.arguments.count = 16;

    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        scaling.kernel = launches[i].kernel;
        scaling.image = launches[i].image;
        fail_at(launches[i].fails, launches[i].fails[0] != '\0', CUDA_ERROR_UNKNOWN);
        device_run(scaling.queue, launch_scaling, &scaling);              /* when */
        assert_int_equal(device_wait(scaling.queue), launches[i].status); /* then */
        fail_at("", 0, 0);
        if (launches[i].status == SUMAC_NOT_FOUND)
            assert_string_equal(
                scaling.error.text, "there is no kernel none_such in the image that is to be "
                                    "launched: declare it extern \"C\" __global__");
    }
    device_queue_close(scaling.queue);
    sumac_buffer_unref(buffer);
    device_close(device);
}

/* What the stream waits for. */
struct held {
    struct device_queue *queue;
    sem_t go;
};

static void CUDA_CB wait_for_it(void *context)
{
    struct held *held = context;

    while (sem_wait(&held->go) != 0)
        ;
}

static enum sumac_status hold_the_stream(void *context)
{
    struct held *held = context;
    const struct cuda_driver *driver = NULL;
    const CUstream stream = sumac_device_stream(device_for_step(held->queue));

    if (cuda_driver_open(&driver, NULL) != SUMAC_OK)
        return SUMAC_INTERNAL;
    return cuda_status(driver->cuLaunchHostFunc(stream, wait_for_it, held));
}

TEST(a_stamp_is_taken_when_the_stream_has_come_to_it_and_not_its_thread)
{
    struct device *device = opened(0); /* given */
    struct held held = {.queue = queue_of(device)};
    uint64_t stamp_ns = 0;

    sem_init(&held.go, 0, 0);
    device_issue(held.queue, hold_the_stream, &held);
    device_stamp(held.queue, &stamp_ns);
    assert_int_equal(
        device_settle(held.queue, DEVICE_NO_LIMIT), SUMAC_OK); /* the thread has come by */
    const uint64_t held_until_ns = trace_now();
    sem_post(&held.go); /* when */
    assert_int_equal(device_wait(held.queue), SUMAC_OK);

    assert_in_range(stamp_ns, held_until_ns, trace_now()); /* then */
    device_queue_close(held.queue);
    device_close(device);
    sem_destroy(&held.go);
}

int main(void) { return unit_run(find_standin, NULL); }
