/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c -- how much of a step's transfers is hidden behind what it computes.
 *
 *     sumac run --ps 1 --ps-options "--sessions-max 3 --staging-max 1G" --workers 1 [--devices D]
 * -- bench/overlap [--parameters 25e6] [--step-ms 100] [--steps 12] [--rounds 3]
 *
 * A worker pulls, and pushes, so many float32 parameters in each step, which computes nothing, and
 * waits for so long without using a core (on a GPU: a kernel that watches the clock). In each round
 * it is timed with the transfers alone, then with both; alone, the step takes what was asked for.
 * The ratio is of the time of a step with both to the longer of the two, the median of the rounds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/worker.h"

#define VARIABLES 25
#define ROUNDS_MAX 99

struct settings {
    uint64_t parameters; /* of all variables together */
    double step_ms;
    uint32_t steps, rounds; /* steps that are timed, of each kind, in a round */
};

struct job {
    struct settings settings;
    double wait_ms; /* of the steps that run now */
    struct sumac_worker *worker;
    bool on_gpu;
};

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const struct job *job = context;
    const uint64_t ns = (uint64_t)(job->wait_ms * 1e6);
    const struct timespec wait = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    (void)replica, (void)error;
    (void)nanosleep(&wait, NULL);
    return SUMAC_OK;
}

#ifdef OVERLAP_IMAGE
__asm__(".section .rodata\n"
        ".balign 64\n"
        ".global spin_image\n"
        ".hidden spin_image\n"
        "spin_image:\n"
        ".incbin \"" OVERLAP_IMAGE "\"\n"
        ".previous\n");
extern const unsigned char spin_image[];

static enum sumac_status
cuda_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct job *job = context;
    uint64_t ns = (uint64_t)(job->wait_ms * 1e6);
    void *const parameters[] = {&ns};
    const struct sumac_launch launch = {
        .image = spin_image, .kernel = "spin", .blocks = 1, .threads = 1, .parameters = parameters};

    job->on_gpu = true; /* there is one replica, or all say the same */
    return ns == 0 ? SUMAC_OK : sumac_device_launch(sumac_replica_device(replica), &launch, error);
}
#else
static sumac_replica_function *const cuda_step = NULL;
#endif

/* Seconds of a step, over `steps`. The first two are not counted: a pull is made ahead. */
static enum sumac_status
time_steps(struct job *job, double wait_ms, double *seconds, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;
    double started = 0;

    job->wait_ms = wait_ms;
    for (uint32_t i = 0; status == SUMAC_OK && i < job->settings.steps + 2; i++) {
        if (i == 2)
            started = now_s();
        status = sumac_worker_step(job->worker, error);
    }
    if (status == SUMAC_OK)
        status = sumac_worker_flush(job->worker, error);
    *seconds = (now_s() - started) / job->settings.steps;
    return status;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static enum sumac_status measure(struct job *job, struct sumac_error *error)
{
    const double step_s = job->settings.step_ms * 1e-3;
    double transfer[ROUNDS_MAX], both[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const uint32_t rounds = job->settings.rounds;
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < rounds; i++) {
        status = time_steps(job, 0, &transfer[i], error);
        if (status == SUMAC_OK)
            status = time_steps(job, job->settings.step_ms, &both[i], error);
        ratio[i] = both[i] / (transfer[i] > step_s ? transfer[i] : step_s);
        if (status == SUMAC_OK)
            printf(
                "round %u: transfers alone %.1f ms, step alone %.1f ms, both %.1f ms, ratio %.3f\n",
                i, transfer[i] * 1e3, job->settings.step_ms, both[i] * 1e3, ratio[i]);
        (void)fflush(stdout);
    }
    if (status != SUMAC_OK)
        return status;
    qsort(ratio, rounds, sizeof *ratio, compare);
    printf(
        "%" PRIu64 " parameters on %s: %.3f of the longer one (median of %u)\n",
        job->settings.parameters, job->on_gpu ? "a GPU" : "a CPU", ratio[rounds / 2], rounds);
    return SUMAC_OK;
}

static enum sumac_status
run(struct job *job, struct sumac_client *client, struct sumac_error *error)
{
    struct sumac_client_variable *variables[VARIABLES];
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < VARIABLES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "v%u", i);
        const struct sumac_client_variable_options options = {
            .name = name,
            .dtype = SUMAC_FLOAT32,
            .shape = SUMAC_SHAPE(job->settings.parameters / VARIABLES),
            .function = {.name = "assign_add"},
            .aggregation = SUMAC_REDUCE_SUM,
        };
        status = sumac_client_variable_create(client, &options, &variables[i], error);
    }
    const struct sumac_worker_options options = {
        .client = client,
        .variables = variables,
        .variable_count = VARIABLES,
        .reduce = SUMAC_REDUCE_SUM,
        .step = step,
        .cuda_step = cuda_step,
        .context = job,
    };
    if (status == SUMAC_OK)
        status = sumac_worker_create(&options, &job->worker, error);
    if (status == SUMAC_OK)
        status = measure(job, error);
    sumac_worker_destroy(job->worker);
    return status == SUMAC_OK ? sumac_client_leave(client, SUMAC_LEAVING_DONE, error) : status;
}

static bool read_settings(int argc, char **argv, struct settings *settings)
{
    *settings = (struct settings){.parameters = 25000000, .step_ms = 100, .steps = 12, .rounds = 3};
    for (int i = 1; i + 1 < argc; i += 2) {
        const double value = strtod(argv[i + 1], NULL);
        if (strcmp(argv[i], "--parameters") == 0)
            settings->parameters = (uint64_t)value;
        else if (strcmp(argv[i], "--step-ms") == 0)
            settings->step_ms = value;
        else if (strcmp(argv[i], "--steps") == 0)
            settings->steps = (uint32_t)value;
        else if (strcmp(argv[i], "--rounds") == 0)
            settings->rounds = (uint32_t)value;
        else
            return false;
    }
    return argc % 2 == 1 && settings->parameters >= VARIABLES && settings->parameters <= 1e10 &&
           settings->step_ms > 0 && settings->step_ms <= 60000 && settings->steps > 0 &&
           settings->rounds > 0 && settings->rounds <= ROUNDS_MAX;
}

int main(int argc, char **argv)
{
    struct job job = {.worker = NULL};
    struct sumac_client *client = NULL;
    struct sumac_error error = {.status = SUMAC_OK};

    sumac_tune_malloc();
    if (!read_settings(argc, argv, &job.settings)) {
        fprintf(
            stderr, "usage: sumac run --ps 1 --workers 1 [--devices D] -- overlap [--parameters N] "
                    "[--step-ms MS] [--steps N] [--rounds N]\n");
        return 2;
    }
    enum sumac_status status = sumac_client_open(NULL, &client, &error);
    if (status == SUMAC_OK)
        status = run(&job, client, &error);
    sumac_client_close(client);
    if (status == SUMAC_OK)
        return 0;
    fprintf(stderr, "overlap: %s\n", error.text);
    return sumac_exit_code(&error);
}
