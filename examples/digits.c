/* SPDX-License-Identifier: Apache-2.0 */
/* digits.c -- a worker that learns handwritten digits with others, asynchronously, until enough
 * held-back rows are right.
 *
 *     sumac run --ps 2 --workers 2 --replicas 2 -- ./digits [--target 0.95] [--steps N] [--seconds
 *     S] [--lag-max N] [--result FILE] [--json]
 *
 * A perceptron of 64-128-10 units lives on the ps, the two weight matrices split over all of them;
 * the ps apply adam. Each worker goes through the training rows in an order of its own, 32 at a
 * step, shared by its replicas. Worker 0 tries the held-back rows now and then; when enough are
 * right it assigns 1 to `done`, which everybody pulls with every step. Worker 0 may be missing, so
 * the others end by themselves, too. With --lag-max no worker begins a step while another is more
 * steps behind. Where the CUDA toolkit was when it was built, and GPUs are, its replicas run on
 * these (sumac run --devices).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "digits_data.h"
#include "perceptron_cuda.h"
#include "sumac/worker.h"

#ifndef DIGITS_DATA
#define DIGITS_DATA "data/digits.csv.gz"
#endif

#define BATCH 32
#define LEARNING_RATE 0.001
#define CONTROLLERD_EVERY 20 /* steps */
#define STEP_MS_MAX 20000    /* of a step on GPUs, which takes less than one */
#define STEPS_MAX 100000     /* of a worker, beyond --steps and --seconds */
#define PATIENCE_S 5         /* after --seconds a worker waits so long for the word of worker 0 */
#define PROGRESS_S 0.1       /* between lines that are written over */
#define LOG_S 1.0            /* between lines that stay */

/* The variables, in the order of the worker's. The first ones are pushed, `done` is only pulled. */
enum { W1, B1, W2, B2, STEPS, DONE, VARIABLES };
enum {
    GOING_ON,
    REACHED,
    GAVE_UP, /* values of `done`, and … */
    ENDED_ALONE
}; /* … what a worker makes of none of them */

struct settings {
    const char *program, *data;
    const char *result;     /* a file that takes the last line as well; NULL: none */
    double target, seconds; /* seconds: train at least so long, since the first step here */
    uint64_t steps;         /* of this worker, at least */
    bool bounded;           /* lag: no step begins while another worker is more than … */
    uint64_t lag_max;       /* … steps behind */
    bool synchronous;       /* each step is one update of all workers together */
    bool json;
};

struct job {
    struct settings settings;
    struct digits_data data;
    struct digits_order order;
    struct sumac_client *client;
    struct sumac_worker *worker;
    struct sumac_client_variable *variables[VARIABLES];
    const struct example *batch[BATCH]; /* of the step that runs */
    double losses[SUMAC_REPLICAS_MAX];  /* of each replica, in the last step, on CPUs, … */
    struct perceptron_cuda cuda[SUMAC_REPLICAS_MAX]; /* … and what it has on GPUs */
    double loss;                                     /* over the last steps */
    bool rewrites;            /* progress lines: on a terminal, or for `sumac run` */
    bool evaluates;           /* this is the worker that tries the held-back rows */
    double started_s, told_s; /* monotonic; `told`: the last progress line */
    double told_steps;        /* of all workers; -1: no step has run here */
    bool told;                /* a progress line */
    uint32_t right;           /* of the held-back rows, at the last trial */
    double reached_s;         /* since 1970: when the target was first reached; 0: not yet */
};

static double now_s(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- the step */

static struct perceptron view(const struct sumac_tensor *tensors)
{
    return (struct perceptron){
        .w1 = sumac_tensor_data(&tensors[W1]),
        .b1 = sumac_tensor_data(&tensors[B1]),
        .w2 = sumac_tensor_data(&tensors[W2]),
        .b2 = sumac_tensor_data(&tensors[B2]),
    };
}

/* This replica's share of the batch. */
static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct job *job = context;
    const uint32_t first = BATCH * sumac_replica_id(replica) / sumac_replica_count(replica);
    const uint32_t end = BATCH * (sumac_replica_id(replica) + 1) / sumac_replica_count(replica);
    const struct perceptron parameters = view(sumac_replica_value(replica, 0));
    const struct perceptron gradient = view(sumac_replica_gradient(replica, 0));

    (void)error;
    job->losses[sumac_replica_id(replica)] =
        perceptron_gradient(&parameters, job->batch + first, end - first, &gradient);
    *(double *)sumac_tensor_data(sumac_replica_gradient(replica, STEPS)) = 1;
    sumac_replica_set_weight(replica, end - first);
    return SUMAC_OK;
}

#ifdef DIGITS_CUDA
/* The same on a GPU: it is over when the worker's step is. */
static enum sumac_status
cuda_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct job *job = context;
    const uint32_t first = BATCH * sumac_replica_id(replica) / sumac_replica_count(replica);
    const uint32_t end = BATCH * (sumac_replica_id(replica) + 1) / sumac_replica_count(replica);

    sumac_replica_set_weight(replica, end - first);
    return perceptron_cuda_step(
        &job->cuda[sumac_replica_id(replica)], replica, job->batch + first, end - first, error);
}

static bool on_gpus(const struct job *job) { return job->cuda[0].count > 0; }

static double last_loss(const struct job *job)
{
    return on_gpus(job) ? perceptron_cuda_loss(&job->cuda[0]) : job->losses[0];
}

static void give_back(struct job *job)
{
    for (int i = 0; i < SUMAC_REPLICAS_MAX; i++)
        perceptron_cuda_deinit(&job->cuda[i]);
}
#else
static sumac_replica_function *const cuda_step = NULL;

static bool on_gpus(const struct job *job)
{
    (void)job;
    return false;
}

static double last_loss(const struct job *job) { return job->losses[0]; }

static void give_back(struct job *job) { (void)job; }
#endif

/* ---- the variables */

static enum sumac_status create_variables(struct job *job, struct sumac_error *error)
{
    const struct sumac_function adam = SUMAC_FUNCTION("adam", {"learning_rate", LEARNING_RATE});
    const struct sumac_shape shapes[VARIABLES] = {
        [W1] = SUMAC_SHAPE(PIXELS, UNITS),
        [B1] = SUMAC_SHAPE(UNITS),
        [W2] = SUMAC_SHAPE(UNITS, CLASSES),
        [B2] = SUMAC_SHAPE(CLASSES)};
    static const char *const names[VARIABLES] = {"W1", "b1", "W2", "b2", "steps", "done"};
    enum sumac_status status = SUMAC_OK;

    for (int i = 0; i < VARIABLES && status == SUMAC_OK; i++) {
        struct sumac_client_variable_options options = {
            .name = names[i], .shape = shapes[i], .dtype = SUMAC_FLOAT32, .function = adam};
        if (i == STEPS || i == DONE) {
            options.dtype = i == STEPS ? SUMAC_FLOAT64 : SUMAC_INT32;
            options.function =
                (struct sumac_function){.name = i == STEPS ? "assign_add" : "assign"};
            options.frozen = true;
        }
        if (i != DONE)
            options.aggregation = SUMAC_REDUCE_MEAN;
        if (i == W1 || i == W2) {
            const double limit = sqrt(6.0 / (double)(shapes[i].extent[0] + shapes[i].extent[1]));
            options.initializer = SUMAC_INITIALIZER_UNIFORM; /* Glorot and Bengio, 2010 */
            options.a = -limit;
            options.b = limit;
            options.seed = (uint64_t)i + 1;
            options.partitioner.kind = SUMAC_PARTITIONER_SHARD_PER_PS;
        }
        status = sumac_client_variable_create(job->client, &options, &job->variables[i], error);
    }
    return status;
}

/* Tell every worker that it is over. */
static enum sumac_status assign_done(struct job *job, int32_t value, struct sumac_error *error)
{
    const struct sumac_delta delta = {
        .variable = job->variables[DONE],
        .value = sumac_tensor_over(&value, SUMAC_INT32, SUMAC_SCALAR)};

    return sumac_client_push(job->client, &delta, 1, NULL, NULL, error);
}

/* ---- evaluating and telling */

static double accuracy(const struct job *job)
{
    return (double)job->right / (double)job->data.testing_count;
}

static void evaluate(struct job *job, const struct sumac_tensor *values)
{
    const struct perceptron parameters = view(values);

    job->right = perceptron_count_right(&parameters, job->data.testing, job->data.testing_count);
}

static void tell_progress(struct job *job)
{
    const double now = now_s(CLOCK_MONOTONIC);

    if (job->settings.json ||
        (job->told && now - job->told_s < (job->rewrites ? PROGRESS_S : LOG_S)))
        return;
    const struct sumac_tensor *values = sumac_worker_values(job->worker);
    const double steps = *(const double *)sumac_tensor_data(&values[STEPS]);
    struct sumac_client_facts facts;
    sumac_client_describe(job->client, &facts);
    printf(
        "step %-6.0f loss %.4f  accuracy %.1f %%  %.0f pushes/s  staleness %.1f%s", steps,
        job->loss, 100 * accuracy(job), (steps - job->told_steps) / (now - job->told_s),
        facts.staleness_mean, job->rewrites ? "\r" : "\n");
    (void)fflush(stdout);
    job->told = true;
    job->told_s = now;
    job->told_steps = steps;
}

/* The ps's values of now, instead of those that the last step ran on. */
static enum sumac_status evaluate_again(struct job *job, struct sumac_error *error)
{
    struct sumac_tensor values[STEPS] = {0};
    struct sumac_fetch fetches[STEPS];
    enum sumac_status status = SUMAC_OK;

    for (int i = 0; i < STEPS && status == SUMAC_OK; i++) {
        status = sumac_client_variable_tensor(job->variables[i], &values[i], error);
        fetches[i] = (struct sumac_fetch){.variable = job->variables[i], .into = values[i]};
    }
    if (status == SUMAC_OK)
        status = sumac_client_pull(job->client, fetches, STEPS, NULL, NULL, error);
    if (status == SUMAC_OK)
        evaluate(job, values);
    for (int i = 0; i < STEPS; i++)
        sumac_buffer_unref(values[i].buffer);
    return status;
}

static bool is_long_enough(const struct job *job, double seconds)
{
    return sumac_worker_steps(job->worker) >= job->settings.steps &&
           now_s(CLOCK_MONOTONIC) - job->started_s >= seconds;
}

/* Is it over? Then say so to all. The values that convinced were some steps old: those of now must
 * convince, too. */
static enum sumac_status consider(struct job *job, int32_t *done, struct sumac_error *error)
{
    const uint64_t steps = sumac_worker_steps(job->worker);

    if (steps % CONTROLLERD_EVERY != 0)
        return SUMAC_OK;
    evaluate(job, sumac_worker_values(job->worker));
    if (job->reached_s == 0 && accuracy(job) >= job->settings.target)
        job->reached_s = now_s(CLOCK_REALTIME);
    enum sumac_status status = SUMAC_OK;
    if (!is_long_enough(job, job->settings.seconds))
        return SUMAC_OK;
    if (accuracy(job) >= job->settings.target) {
        status = evaluate_again(job, error);
        *done = accuracy(job) >= job->settings.target ? REACHED : GOING_ON;
    } else if (steps >= job->settings.steps + STEPS_MAX) {
        *done = GAVE_UP;
    }
    if (status == SUMAC_OK && *done != GOING_ON)
        status = assign_done(job, *done, error);
    return status;
}

/* No word came from worker 0, which may be lost or not started. */
static void consider_alone(const struct job *job, int32_t *done)
{
    const double seconds = job->settings.seconds;

    if (!is_long_enough(job, seconds > 0 ? seconds + PATIENCE_S : 0))
        return;
    if (seconds > 0)
        *done = ENDED_ALONE;
    else if (sumac_worker_steps(job->worker) >= job->settings.steps + STEPS_MAX)
        *done = GAVE_UP;
}

/* ---- training */

static enum sumac_status train(struct job *job, int32_t *done, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    job->started_s = job->told_s = now_s(CLOCK_MONOTONIC);
    job->told_steps = -1;
    while (*done == GOING_ON && status == SUMAC_OK) {
        for (int i = 0; i < BATCH; i++)
            job->batch[i] = &job->data.training[digits_order_next(&job->order)];
        status = sumac_worker_step(job->worker, error);
        if (status != SUMAC_OK)
            break;
        const struct sumac_tensor *values = sumac_worker_values(job->worker);
        if (job->told_steps < 0)
            job->told_steps = *(const double *)sumac_tensor_data(&values[STEPS]);
        job->loss += (last_loss(job) - job->loss) / 16;
        *done = *(const int32_t *)sumac_tensor_data(&values[DONE]);
        if (job->evaluates && *done == GOING_ON) {
            status = consider(job, done, error);
            if (job->right > 0)
                tell_progress(job);
        } else if (*done == GOING_ON) {
            consider_alone(job, done);
        }
    }
    if (job->rewrites && job->told)
        puts(""); /* the last one stays */
    if (status == SUMAC_OK)
        status = sumac_worker_flush(job->worker, error);
    return status;
}

/* `sumac` as this program was started: from the same folder, if it is there. */
static void tell_how_to_look_further(const char *program)
{
    char sumac[4096];
    const char *slash = strrchr(program, '/');

    (void)snprintf(
        sumac, sizeof sumac, "%.*ssumac", slash ? (int)(slash + 1 - program) : 0, program);
    const char *command = slash != NULL && access(sumac, X_OK) == 0 ? sumac : "sumac";
    printf(
        "To look further, let it learn for a minute:\n"
        "  %s run --ps 2 --workers 2 --replicas 2 -- %s --seconds 60\n"
        "and, from another terminal meanwhile:\n"
        "  %s ls\n  %s get W1 --slice 0:4\n  %s stats --watch\n",
        command, program, command, command, command);
}

static bool write_result(const struct job *job, const char *line)
{
    FILE *file = fopen(job->settings.result, "w");
    const bool written = file != NULL && fputs(line, file) >= 0;
    const bool closed = file != NULL && fclose(file) == 0;

    if (!written || !closed)
        perror(job->settings.result);
    return written && closed;
}

/* False: the result could not be written where it was asked for. */
static bool tell_result(const struct job *job, int32_t done)
{
    const double seconds = now_s(CLOCK_MONOTONIC) - job->started_s;
    const uint64_t steps = sumac_worker_steps(job->worker);

    if (job->settings.json) {
        printf("{\"steps\": %" PRIu64 ", \"seconds\": %.6f", steps, seconds);
        if (job->evaluates)
            printf(
                ", \"accuracy\": %.6f, \"reached\": %.6f, \"loss\": %.17g", accuracy(job),
                job->reached_s, job->loss);
        printf("}\n");
        return true;
    }
    printf(
        "%" PRIu64 " steps in %.2f s, %.0f steps/s%s\n", steps, seconds, (double)steps / seconds,
        on_gpus(job) ? ", on GPUs" : "");
    if (done == ENDED_ALONE)
        printf(
            "worker 0 did not end the training within --seconds and %d s more: this worker ends "
            "by itself\n",
            PATIENCE_S);
    if (!job->evaluates)
        return true;
    char line[128];
    (void)snprintf(
        line, sizeof line, "%s: %u of %u held-back rows right, %.1f %%\n",
        done == REACHED ? "done" : "gave up", job->right, job->data.testing_count,
        100 * accuracy(job));
    fputs(line, stdout);
    if (job->settings.seconds == 0)
        tell_how_to_look_further(job->settings.program);
    return job->settings.result == NULL || write_result(job, line);
}

static enum sumac_status work(struct job *job, int32_t *done, struct sumac_error *error)
{
    enum sumac_status status = create_variables(job, error);
    const struct sumac_worker_options options = {
        .client = job->client,
        .variables = job->variables,
        .variable_count = VARIABLES,
        .pushed_count = DONE,
        .reduce = SUMAC_REDUCE_MEAN,
        .step = step,
        .cuda_step = cuda_step,
        .context = job,
        .bounded = job->settings.bounded,
        .lag_max = job->settings.lag_max,
        .synchronous =
            job->settings.synchronous ? SUMAC_SYNCHRONOUS_YES : SUMAC_SYNCHRONOUS_DEFAULT,
        .step_timeout_ms = STEP_MS_MAX,
    };

    if (status == SUMAC_OK)
        status = sumac_worker_create(&options, &job->worker, error);
    if (status == SUMAC_OK)
        status = train(job, done, error);
    if (status == SUMAC_OK && !tell_result(job, *done)) {
        (void)snprintf(
            error->text, sizeof error->text, "the result is not in %s", job->settings.result);
        status = error->status = SUMAC_INVALID_ARGUMENT;
    }
    give_back(job);
    sumac_worker_destroy(job->worker);
    return status == SUMAC_OK ? sumac_client_leave(job->client, SUMAC_LEAVING_DONE, error) : status;
}

static bool read_number(const char *name, const char *text, double max, double *number)
{
    char *end = NULL;

    *number = strtod(text, &end);
    if (end != text && *end == '\0' && *number >= 0 && *number <= max)
        return true;
    fprintf(stderr, "digits: %s wants a number from 0 to %g, not %s\n", name, max, text);
    return false;
}

static bool tell_usage(FILE *file)
{
    fprintf(
        file, "usage: digits [--target 0.95] [--steps N] [--seconds S] [--lag-max N] "
              "[--synchronous] [--data FILE] [--result FILE] [--json]\n"
              "Worker 0 tries the held-back rows, and ends the training of all workers:\n"
              "  --target T   when the share T of these rows is right (0.95)\n"
              "  --seconds S  not before S seconds, since the first step of worker 0 (0)\n"
              "  --steps N    not before N steps of worker 0 (0)\n");
    fprintf(
        file,
        "Worker 0 gives up after %d steps more. If worker 0 does not end the training, another\n"
        "worker ends by itself, %d s after --seconds of its own. Without --seconds, it ends after\n"
        "%d steps more than --steps.\n",
        STEPS_MAX, PATIENCE_S, STEPS_MAX);
    return false;
}

static bool takes_value(const char *option)
{
    static const char *const options[] = {"--data",    "--result", "--target",
                                          "--seconds", "--steps",  "--lag-max"};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(option, options[i]) == 0)
            return true;
    return false;
}

/* False: something is wrong with them, and was said. */
static bool read_settings(int argc, char **argv, struct settings *settings)
{
    *settings = (struct settings){.program = argv[0], .data = DIGITS_DATA, .target = 0.95};
    double steps = 0, lag_max = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            settings->json = true;
            continue;
        }
        if (strcmp(argv[i], "--synchronous") == 0) {
            settings->synchronous = true;
            continue;
        }
        if (!takes_value(argv[i]) || value == NULL) {
            fprintf(
                stderr, "digits: %s %s\n", argv[i],
                takes_value(argv[i]) ? "wants a value" : "is no option of it");
            return tell_usage(stderr);
        }
        bool read = true;
        if (strcmp(argv[i], "--data") == 0)
            settings->data = value;
        else if (strcmp(argv[i], "--result") == 0)
            settings->result = value;
        else if (strcmp(argv[i], "--target") == 0)
            read = read_number(argv[i], value, 1, &settings->target);
        else if (strcmp(argv[i], "--seconds") == 0)
            read = read_number(argv[i], value, 1e9, &settings->seconds);
        else if (strcmp(argv[i], "--steps") == 0)
            read = read_number(argv[i], value, 1e15, &steps);
        else
            read = settings->bounded = read_number(argv[i], value, 1e15, &lag_max);
        if (!read)
            return false;
        i++;
    }
    settings->steps = (uint64_t)steps;
    settings->lag_max = (uint64_t)lag_max;
    return true;
}

int main(int argc, char **argv)
{
    sumac_tune_malloc();
    struct job job = {0};
    struct sumac_error error = {.status = SUMAC_INTERNAL};
    int32_t done = GOING_ON;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)tell_usage(stdout);
        return 0;
    }
    if (!read_settings(argc, argv, &job.settings) ||
        !digits_data_read(job.settings.data, &job.data))
        return 2;
    job.rewrites = isatty(STDOUT_FILENO) == 1 || getenv("SUMAC_PROGRESS") != NULL;
    enum sumac_status status = sumac_client_open(NULL, &job.client, &error);
    struct sumac_client_facts facts;
    sumac_client_describe(job.client, &facts);
    job.evaluates = facts.member_index == 0; /* the chief, or worker 0 without a chief */
    if (status == SUMAC_OK &&
        !digits_order_init(&job.order, job.data.training_count, facts.member_index + 1))
        status = SUMAC_RESOURCE_EXHAUSTED;
    if (status == SUMAC_OK)
        status = work(&job, &done, &error);
    if (status != SUMAC_OK)
        fprintf(stderr, "digits: %s\n", error.text);
    sumac_client_close(job.client);
    digits_data_free(&job.data);
    free(job.order.indices);
    if (status != SUMAC_OK)
        return sumac_exit_code(&error);
    return done == GAVE_UP ? 1 : 0;
}
