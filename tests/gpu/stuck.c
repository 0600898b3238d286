/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.c -- what becomes of a worker when a kernel of its step never ends. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/worker_client.h"

#include "driver.h"

#define TEST_S_MAX 60 /* of one that hangs */

static sem_t released[3];             /* of each worker */
static uint32_t which;                /* of them it is */
static uint32_t held;                 /* the replica whose stream is held up */
static bool waits;                    /* does its function wait for that? */
static struct sumac_worker *left[3];  /* which a kernel may still use: no leak */
static struct sumac_buffer *gradient; /* the held replica's, of the step */

static void CUDA_CB wait_for_release(void *context)
{
    while (sem_wait(context) != 0)
        ;
}

static enum sumac_status
step_that_never_ends(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct cuda_driver *driver = NULL;

    (void)context;
    if (sumac_replica_id(replica) != held)
        return SUMAC_OK;
    gradient = sumac_buffer_ref(sumac_replica_gradient(replica, 0)->buffer);
    if (cuda_driver_open(&driver, NULL) != SUMAC_OK ||
        driver->cuLaunchHostFunc(
            sumac_device_stream(sumac_replica_device(replica)), wait_for_release,
            &released[which]) != CUDA_SUCCESS)
        return SUMAC_INTERNAL;
    return waits ? sumac_device_wait(sumac_replica_device(replica), error) : SUMAC_OK;
}

static struct sumac_worker *begun(struct fixture *far, uint32_t replicas)
{
    struct sumac_worker *worker = NULL;

    prepare(far, replicas);
    far->options.cuda_step = step_that_never_ends;
    far->options.step_timeout_ms = 50;
    if (sumac_worker_create(&far->options, &worker, &far->error) != SUMAC_OK)
        fail_msg("%s", far->error.text);
    return worker;
}

/* The kernel ends after that, and may have written the gradient until then. */
static void assert_destroying_keeps_memory(struct sumac_worker *worker)
{
    sumac_worker_destroy(worker);

    assert_false(sumac_buffer_is_unique(gradient)); /* the worker has it, too */
    sumac_buffer_unref(gradient);
    assert_int_equal(sem_post(&released[which]), 0);
}

/* The step, and each after it; whoever destroys the worker goes on. */
static void assert_given_up(struct sumac_worker *worker, struct fixture *far, const char *why)
{
    assert_int_equal(sumac_worker_step(worker, &far->error), SUMAC_DEADLINE_EXCEEDED); /* when */

    if (strstr(far->error.text, why) == NULL ||
        strstr(far->error.text, "end the process, which alone frees the GPU") == NULL)
        fail_msg("%s", far->error.text); /* then */
    assert_non_null(strstr(far->client.said, "the worker gives its devices up"));
    const struct sumac_error first = far->error;
    assert_int_equal(sumac_worker_step(worker, &far->error), SUMAC_DEADLINE_EXCEEDED);
    assert_string_equal(far->error.text, first.text);
    assert_int_equal(far->client.pushed, 0);
    assert_destroying_keeps_memory(worker);
}

/* The first case: a process that has used the driver cannot use it after a fork. */
TEST(a_program_may_have_the_process_end_then)
{
    struct fixture far;
    int ended = 0;

    held = 0;
    const pid_t child = fork(); /* given */
    if (child == 0) {
        (void)alarm(TEST_S_MAX);
        prepare(&far, 1);
        far.options.cuda_step = step_that_never_ends;
        far.options.step_timeout_ms = 50;
        far.options.abort_when_stuck = true;
        struct sumac_worker *worker = NULL;
        (void)!sumac_worker_create(&far.options, &worker, NULL);
        (void)!sumac_worker_step(worker, NULL); /* when */
        _exit(0);
    }

    assert_int_equal(waitpid(child, &ended, 0), child); /* then */
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
}

TEST(a_kernel_that_never_ends_on_one_gpu_ends_the_step)
{
    struct fixture far;

    (void)alarm(TEST_S_MAX);
    held = 0;
    which = 0;
    left[which] = begun(&far, 1); /* given */
    assert_given_up(
        left[which], &far,
        "step 0 waits for what replica 0 (device GPU:0) has begun for more than 50 ms");
    (void)alarm(0);
}

/* NCCL ends a communicator when its kernels have left, and these come behind the program's. */
TEST(a_kernel_that_holds_up_nccls_end_is_told_before_that)
{
    void (*fault)(const char *what, int rank, uint64_t number) = NULL;
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    struct fixture far;

    if (library != NULL)
        *(void **)&fault = dlsym(library, "standin_nccl_fault");
    if (fault == NULL)
        skip();
    (void)alarm(TEST_S_MAX);
    held = 1;
    which = 1;
    left[which] = begun(&far, 2); /* given */
    fault("hold", 1, 1);
    assert_given_up(
        left[which], &far, "start 1 (reduce) of a group of 2 replicas waited 50 ms for replica");
    fault("", 0, 0);
    (void)alarm(0);
}

TEST(a_step_that_waits_in_its_stream_waits_as_long_as_a_step_may_take)
{
    struct fixture far;

    (void)alarm(TEST_S_MAX);
    held = 0;
    waits = true;
    which = 2;
    left[which] = begun(&far, 1); /* given */

    assert_int_equal(
        sumac_worker_step(left[which], &far.error), SUMAC_DEADLINE_EXCEEDED); /* when */

    if (strstr(far.error.text, "GPU:0 has not done what is in the stream in 50 ms") == NULL &&
        strstr(far.error.text, "has begun for more than 50 ms") == NULL)
        fail_msg("%s", far.error.text); /* then */
    assert_destroying_keeps_memory(left[which]);
    waits = false;
    (void)alarm(0);
}

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (library == NULL || dlsym(library, "standin_fail_at") == NULL) {
        printf("skipped: a GPU that is given up stays so until the process ends\n");
        return 77;
    }
    for (int i = 0; i < 3; i++)
        (void)sem_init(&released[i], 0, 0);
    return unit_run(NULL, NULL);
}
