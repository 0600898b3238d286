/* SPDX-License-Identifier: Apache-2.0 */
/* absurd_worker.c -- the calls of sumac/worker.h, with nothing and with what makes no sense. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absurd.h"

static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *unused)
{
    (void)unused;
    sumac_replica_set_weight(replica, *(const double *)context);
    return SUMAC_OK;
}

static enum sumac_status make(struct sumac_worker_options options)
{
    struct sumac_worker *worker;

    options.client = client;
    options.step = step;
    return sumac_worker_create(&options, &worker, error);
}

#define MAKE(what, words, ...)                                                                     \
    REFUSED(                                                                                       \
        sumac_worker_create, what, INVALID_ARGUMENT, words,                                        \
        make((struct sumac_worker_options){__VA_ARGS__}))

void try_making_workers(void)
{
    struct sumac_client_variable *const one[] = {w}, *const none[] = {w, NULL};
    const struct sumac_worker_options options = {.client = client};
    struct sumac_worker *worker = NULL;

    REFUSED(
        sumac_worker_create, "NULL options", INVALID_ARGUMENT, "options is NULL",
        sumac_worker_create(NULL, &worker, error));
    REFUSED(
        sumac_worker_create, "NULL worker", INVALID_ARGUMENT, "worker is NULL",
        sumac_worker_create(&options, NULL, error));
    MAKE("NULL variables", "needs a variable", .variable_count = 1);
    MAKE(
        "a NULL variable", "variable 1 of the worker's 2 is NULL", .variables = none,
        .variable_count = 2);
    MAKE(
        "2^32 - 1 variables", "variable_count is 4294967295", .variables = one,
        .variable_count = UINT32_MAX);
    MAKE(
        "pushed_count 2", "pushed_count is 2", .variables = one, .variable_count = 1,
        .pushed_count = 2);
    MAKE(
        "2^32 - 1 replicas", "4294967295 replicas", .variables = one, .variable_count = 1,
        .replicas = UINT32_MAX);
    MAKE(
        "reduce 77", "reduce is 77", .variables = one, .variable_count = 1,
        .reduce = (enum sumac_reduce_op)77);
    MAKE(
        "unknown devices", "devices are \"tpu\"", .variables = one, .variable_count = 1,
        .devices = "tpu");
    MAKE(
        "2^32 - 1 pushes in flight", "4294967295 pushes in flight", .variables = one,
        .variable_count = 1, .pushes_in_flight = UINT32_MAX);
    REFUSED(
        sumac_worker_step, "NULL", INVALID_ARGUMENT, "worker is NULL",
        sumac_worker_step(NULL, error));
    REFUSED(
        sumac_worker_flush, "NULL", INVALID_ARGUMENT, "worker is NULL",
        sumac_worker_flush(NULL, error));
    REFUSED(
        sumac_worker_pull, "NULL", INVALID_ARGUMENT, "worker is NULL",
        sumac_worker_pull(NULL, error));
    HOLDS(sumac_worker_values, "NULL", sumac_worker_values(NULL) == NULL);
    HOLDS(sumac_worker_steps, "NULL", sumac_worker_steps(NULL) == 0);
    HOLDS(sumac_worker_late, "NULL", sumac_worker_late(NULL) == 0);
    HOLDS(sumac_worker_destroy, "NULL", (sumac_worker_destroy(NULL), true));
}

/* In the child the worker's devices have no threads: nothing may wait for them. */
static bool child_is_refused(struct sumac_worker *worker)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        const enum sumac_status stepped = sumac_worker_step(worker, &why);
        const enum sumac_status flushed = sumac_worker_flush(worker, NULL);
        sumac_worker_destroy(worker);
        _exit(
            stepped == SUMAC_FAILED_PRECONDITION && flushed == stepped &&
                    strstr(why.text, "fork first") != NULL
                ? 0
                : 1);
    }
    int ended = -1;
    return waitpid(child, &ended, 0) == child && ended == 0;
}

void try_workers(void)
{
    double weight = 1;
    struct sumac_client_variable *const ours[] = {w}, *const theirs[] = {others_w};
    struct sumac_worker_options options = {
        .client = client,
        .variables = theirs,
        .variable_count = 1,
        .step = step,
        .context = &weight};
    struct sumac_worker *worker;

    need(sumac_worker_create(&options, &worker, &why));
    REFUSED(
        sumac_worker_step, "another client's variable", INVALID_ARGUMENT, "another client's",
        sumac_worker_step(worker, error));
    sumac_worker_destroy(worker);
    options.variables = ours;
    need(sumac_worker_create(&options, &worker, &why));
    const double weights[] = {NAN, INFINITY, -1};
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        weight = weights[i];
        REFUSED(
            sumac_worker_step, "a weight below 0, or not finite", INVALID_ARGUMENT, "the weight",
            sumac_worker_step(worker, error));
    }
    weight = 0;
    REFUSED(
        sumac_worker_step, "no weight", FAILED_PRECONDITION, "weights of all 1 replicas are 0",
        sumac_worker_step(worker, error));
    weight = 1;
    need(sumac_worker_step(worker, &why));
    HOLDS(sumac_worker_step, "in a child", child_is_refused(worker));
    need(sumac_worker_flush(worker, &why));
    sumac_worker_destroy(worker);
}
