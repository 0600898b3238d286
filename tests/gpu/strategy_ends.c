/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_ends.c -- what becomes of a strategy on GPUs when a replica does not come, when NCCL
 * fails, when there is no memory; and which options make none. */

#include "unit.h"
#include <semaphore.h>

#include "gpu_world.h"
#include "strategy_pair.h"

#define NTH_MAX 500u

/* ---- it does not hang */

static void assert_fails(
    struct sumac_strategy *strategy, const struct step *step, enum sumac_status expected,
    const char *mentions)
{
    struct sumac_value *value = placed(strategy, each(SUMAC_FLOAT32, SUMAC_SHAPE(7), 0));
    struct sumac_value *result = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        run_with(strategy, call_step, (void *)(uintptr_t)step, value, &result, &error), expected);
    if (strstr(error.text, mentions) == NULL)
        fail_msg("\"%s\" does not mention \"%s\"", error.text, mentions);
    sumac_value_unref(value);
}

PAIR_TEST(a_replica_that_makes_no_call_is_named_and_the_next_run_is_well)
{
    const struct step gone = {
        .op = SUMAC_REDUCE_SUM, .absent = replicas - 1, .failing = REPLICAS_MAX};
    const struct step failing = {.op = SUMAC_REDUCE_SUM, .absent = REPLICAS_MAX, .failing = 0};
    const struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};

    enough(2);
    assert_fails(pair->gpus, &gone, SUMAC_DEADLINE_EXCEEDED, "returned without it");
    assert_fails(pair->gpus, &failing, SUMAC_DATA_LOSS, "the function of replica 0");
    same_on_both(pair, &step, each(SUMAC_FLOAT32, SUMAC_SHAPE(7), 0));
}

/* The time is what ends it: it need only be over before the test's is. */
TEST(a_rank_that_stalls_ends_this_call_and_all_that_follow)
{
    const struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};

    enough(3);
    gpu_world_nccl_fault("stall", 1, 1); /* given */
    struct sumac_strategy *strategy = on("gpu", 1000);
    assert_fails(
        strategy, &step, SUMAC_DEADLINE_EXCEEDED,
        "all_reduce: start 1 (all_reduce) of a group of 3 replicas");
    gpu_world_nccl_forget();
    assert_fails(strategy, &step, SUMAC_DEADLINE_EXCEEDED, "make the strategy anew");
    sumac_strategy_destroy(strategy);
}

TEST(a_nccl_that_fails_ends_this_call_and_all_that_follow)
{
    static const char *const how[] = {"fail", "break"};
    const struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};

    enough(3);
    for (size_t i = 0; i < 2; i++) {
        gpu_world_nccl_fault(how[i], 2, 1);
        struct sumac_strategy *strategy = on("gpu", 0);
        assert_fails(strategy, &step, SUMAC_ABORTED, "replica 2 (GPU:2)");
        gpu_world_nccl_forget();
        assert_fails(strategy, &step, SUMAC_ABORTED, "make the strategy anew");
        sumac_strategy_destroy(strategy);
    }
}

TEST(the_remedy_for_a_gpu_that_nccl_finds_failed_is_the_end_of_the_process)
{
    const struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};

    enough(3);
    gpu_world_nccl_fault("cuda", 2, 1); /* given */
    struct sumac_strategy *strategy = on("gpu", 0);
    assert_fails(
        strategy, &step, SUMAC_ABORTED,
        "the strategy takes no more calls: end the process, which alone frees the GPU");
    gpu_world_nccl_forget();
    sumac_strategy_destroy(strategy);
}

/* What the function leaves in its stream fails when it has returned. */
static enum sumac_status
leave_a_copy(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_buffer *const *buffers = context;
    const struct sumac_copy copy = {.to = buffers[1], .from = buffers[0], .bytes = 64};

    return sumac_replica_id(replica) == 0
               ? sumac_device_copy(sumac_replica_device(replica), &copy, error)
               : SUMAC_OK;
}

TEST(what_fails_behind_a_function_is_the_runs_error)
{
    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    struct sumac_strategy *strategy = on("gpu", 0);
    struct sumac_value *there = placed(strategy, tensor(SUMAC_UINT8, SUMAC_SHAPE(64), 0));
    struct sumac_value *own = NULL;
    struct sumac_buffer *buffers[2] = {NULL};
    struct sumac_error error = {0};

    assert_int_equal(sumac_value_select(there, 0, &own, NULL), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(64, &buffers[0]), SUMAC_OK);
    buffers[1] = sumac_value_as_tensor(own)->buffer;
    gpu_world_fail_at("stream", 1, 700); /* given */

    const enum sumac_status status =
        run_with(strategy, leave_a_copy, buffers, NULL, NULL, &error); /* when */

    assert_int_equal(status, SUMAC_ABORTED); /* then */
    assert_string_equal(
        error.text,
        "replica 0 (GPU:0) has failed: CUDA_ERROR_ILLEGAL_ADDRESS (as the test wants it)");
    sumac_value_unref(own);
    sumac_value_unref(there);
    sumac_buffer_unref(buffers[0]);
    sumac_strategy_destroy(strategy);
    gpu_world_fail_at("", 0, 0);
    sumac_strategy_destroy(on("gpu", 0)); /* the next one is well */
}

/* A kernel that never ends, as far as the strategy is concerned. */
struct endless {
    sem_t released;
    bool is_awaited; /* within the function, too */
};

static void wait_for_release(void *context)
{
    struct endless *endless = context;

    while (sem_wait(&endless->released) != 0)
        ;
}

static enum sumac_status
leave_what_never_ends(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_device *device = sumac_replica_device(replica);
    const struct endless *endless = context;

    if (sumac_replica_id(replica) != 0)
        return SUMAC_OK;
    gpu_world_put(sumac_device_stream(device), wait_for_release, context);
    return endless->is_awaited ? sumac_device_wait(device, error) : SUMAC_OK;
}

static struct sumac_strategy *impatient(void)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED,
        .replicas = replicas,
        .devices = "gpu",
        .step_timeout_ms = 20};
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    return strategy;
}

/* Of the leak sanitizer, where there is one. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Each allocation fails in its turn: that is told, nothing else has changed, and the next is well.
 */
PAIR_TEST(memory_that_is_not_given_is_an_error_and_no_more)
{
    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    struct sumac_variable *variable =
        variable_of(pair->gpus, "adam", SUMAC_SYNCHRONIZATION_ON_WRITE);
    struct sumac_value *value = placed(pair->gpus, each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0));
    struct sumac_value *before = NULL, *after = NULL, *result = NULL;
    struct sumac_error error = {0};
    enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
    uint32_t refused = 0;

    assert_int_equal(sumac_variable_read(variable, NULL, &before, NULL), SUMAC_OK);
    for (uint64_t nth = 1; status != SUMAC_OK && nth < NTH_MAX; nth++) {
        gpu_world_fail_at("cuMemAlloc_v2", nth, 2); /* CUDA_ERROR_OUT_OF_MEMORY */
        status = run_with(pair->gpus, apply_sum, variable, value, &result, &error);
        gpu_world_fail_at("", 0, 0);
        assert_int_equal(sumac_variable_read(variable, NULL, &after, NULL), SUMAC_OK);
        if (status == SUMAC_OK)
            break;
        assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(error.text, "gives no memory"));
        refused++;
        sumac_value_unref(after);
        after = NULL;
    }
    assert_true(refused >= replicas);
    assert_false(sumac_value_equal(before, after));
    sumac_value_unref(result);
    sumac_value_unref(before);
    sumac_value_unref(after);
    sumac_value_unref(value);
}

/* Which call of the driver's it may be that fails: it is told, and nobody waits for ever. */
TEST(a_driver_that_fails_is_an_error_and_the_next_strategy_is_well)
{
    static const char *const functions[] = {
        "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent",
        "cuMemcpyAsync",  "cuMemAlloc_v2", "stream"};
    const struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};

    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct sumac_strategy_options options = {
            .kind = SUMAC_STRATEGY_MIRRORED, .replicas = replicas, .devices = "gpu"};
        uint32_t failed = 0;
        bool over = false;
        for (uint64_t nth = 1; !over && nth < NTH_MAX; nth++) {
            struct sumac_strategy *strategy = NULL;
            struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(7), 0), *there = NULL;
            struct sumac_value *result = NULL, *one = NULL;
            struct sumac_error error = {0};
            const bool lasts = strcmp(functions[i], "stream") == 0; /* of a context, for good */
            gpu_world_fail_at(functions[i], nth, lasts ? 700 : 2);  /* given */

            enum sumac_status status =
                sumac_strategy_create(&options, &strategy, &error); /* when */
            if (status == SUMAC_OK)
                status = sumac_strategy_to_devices(strategy, value, &there, &error);
            if (status == SUMAC_OK)
                status =
                    run_with(strategy, call_step, (void *)(uintptr_t)&step, there, &result, &error);
            if (status == SUMAC_OK)
                status = sumac_value_to_host(result, &one, &error);

            over = status == SUMAC_OK; /* then */
            failed += !over;
            if (!over && error.text[0] == '\0')
                fail_msg("%s, call %u: no word of it", functions[i], (unsigned)nth);
            if (!lasts) /* and nothing is left behind */
                gpu_world_fail_at("", 0, 0);
            sumac_value_unref(one);
            sumac_value_unref(result);
            sumac_value_unref(there);
            sumac_value_unref(value);
            sumac_strategy_destroy(strategy);
            gpu_world_fail_at("", 0, 0);
        }
        assert_true(over); /* some time none fails any more */
        if (failed == 0)
            fail_msg("%s is not called", functions[i]);
    }
}

/* ---- options */

static void assert_refused(
    const struct sumac_strategy_options *options, enum sumac_status status, const char *mentions)
{
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_strategy_create(options, &strategy, &error), status);
    if (strstr(error.text, mentions) == NULL)
        fail_msg("\"%s\" does not mention \"%s\"", error.text, mentions);
    assert_null(strategy);
}

TEST(devices_that_make_no_sense_are_refused_with_what_to_do)
{
    assert_refused(
        &(struct sumac_strategy_options){.kind = SUMAC_STRATEGY_DEFAULT, .devices = "gpu"},
        SUMAC_INVALID_ARGUMENT, "make a one_device strategy");
    assert_refused(
        &(struct sumac_strategy_options){.devices = "gpu:77"}, SUMAC_OUT_OF_RANGE,
        "there is no GPU:77");
    assert_refused(
        &(struct sumac_strategy_options){.devices = "tpu"}, SUMAC_INVALID_ARGUMENT, "gpu:0,1");
    assert_int_equal(setenv("SUMAC_DEVICES", "gpu", 1), 0);
    assert_refused(
        &(struct sumac_strategy_options){.kind = SUMAC_STRATEGY_MIRRORED}, SUMAC_INVALID_ARGUMENT,
        "runs_on_gpus");
    struct sumac_strategy *strategy = NULL;
    const struct sumac_strategy_options options = {.runs_on_gpus = true};
    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    assert_true(sumac_strategy_num_replicas_in_sync(strategy) >= replicas);
    sumac_strategy_destroy(strategy);
    assert_int_equal(sumac_strategy_from_environment_with(&options, &strategy, NULL), SUMAC_OK);
    assert_int_equal(unsetenv("SUMAC_DEVICES"), 0);
    assert_true(sumac_strategy_num_replicas_in_sync(strategy) >= replicas);
    sumac_strategy_destroy(strategy);
}

static void assert_says_why(const char *text)
{
    const size_t length = strlen(text);

    if (length == 0 || text[length - 1] == ' ' || text[length - 1] == ':')
        fail_msg("\"%s\" does not say why", text);
}

/* Whichever event it is, of a replica's, of a group's or of an update's. */
TEST(an_event_that_is_not_recorded_is_said_with_why)
{
    bool over = false;
    uint32_t failures = 0;

    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    for (uint64_t nth = 1; !over && nth < NTH_MAX; nth++) {
        struct sumac_strategy *strategy = on("gpu", 0);
        struct sumac_variable *variable = variable_of(strategy, "adam", SUMAC_SYNCHRONIZATION_AUTO);
        struct sumac_value *value = placed(strategy, each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0));
        gpu_world_fail_at("cuEventRecord", nth, 700); /* given */

        struct sumac_value *result = NULL, *gradient = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
        struct sumac_error error = {0};
        over =
            run_with(strategy, apply_sum, variable, value, &result, &error) == SUMAC_OK; /* when */
        if (!over)
            assert_says_why(error.text); /* then */
        failures += !over;
        error = (struct sumac_error){.status = SUMAC_OK};
        if (sumac_variable_apply(variable, NULL, NULL, gradient, &error) != SUMAC_OK)
            assert_says_why(error.text);
        sumac_value_unref(gradient);
        sumac_value_unref(result);
        sumac_value_unref(value);
        sumac_strategy_destroy(strategy);
        gpu_world_fail_at("", 0, 0);
    }
    assert_true(over && failures > 0);
}

/* The last case: its contexts stay. Nothing frees such a GPU but the end of the process. The
 * program that uses the strategy goes on, and what the GPU may still use is left behind. */
TEST(a_kernel_that_never_ends_ends_the_strategy_and_not_the_program)
{
    static struct endless endless[2] = {{.is_awaited = false}, {.is_awaited = true}};

    gpu_world_fail_at("", 0, 0); /* a driver that ignores this is no stand-in */
    if (__lsan_disable != NULL)
        __lsan_disable();
    for (int round = 0; round < 2; round++) {
        struct sumac_strategy *strategy = impatient(); /* given */
        struct sumac_variable *variable = variable_of(strategy, "adam", SUMAC_SYNCHRONIZATION_AUTO);
        struct sumac_value *gradient = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
        struct sumac_error error = {0};

        assert_int_equal(sem_init(&endless[round].released, 0, 0), 0);
        assert_int_equal(/* when */
                         run_with(
                             strategy, leave_what_never_ends, &endless[round], NULL, NULL, &error),
                         SUMAC_DEADLINE_EXCEEDED);

        if (strstr(/* then */
                   error.text,
                   round == 0 ? "replica 0 (GPU:0) has not done what is in its stream in 20 ms; "
                                "end the process, which alone frees the GPU"
                              : "GPU:0 has not done what is in the stream in 20 ms") == NULL)
            fail_msg("%s", error.text);
        assert_int_equal(
            run_with(strategy, leave_what_never_ends, &endless[round], NULL, NULL, &error),
            SUMAC_DEADLINE_EXCEEDED);
        assert_int_equal(
            sumac_variable_apply(variable, NULL, NULL, gradient, &error), SUMAC_DEADLINE_EXCEEDED);
        sumac_value_unref(gradient);
        assert_int_equal(sumac_strategy_close(strategy, &error), SUMAC_OK); /* it returns */
        assert_int_equal(sem_post(&endless[round].released), 0);
    }
    if (__lsan_enable != NULL)
        __lsan_enable();
}

int main(void)
{
    if (!pair_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
