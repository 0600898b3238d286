/* SPDX-License-Identifier: Apache-2.0 */
/* read_add.c -- a worker whose step reads some variables and adds to each: the cost of a step with
 * many small variables.
 *
 *     sumac run --ps 2 --workers 2 -- read_add VARIABLES BYTES SECONDS
 *
 * Every step pulls all variables (its own pushes included) and pushes ones to all of them, without
 * waiting for the push: the next step's pull does. Prints one JSON line: the steps made, the
 * seconds they took, when the first push was applied (seconds since 1970), and whether the sums
 * came out as pushed (checked when it is the only worker).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/client.h"

#define VARIABLES_MAX 10000

struct job {
    uint32_t variables;
    uint64_t elements; /* float32, of each variable */
    double seconds;
    struct sumac_client *client;
    struct sumac_buffer *values, *ones; /* (variables, elements) */
    struct sumac_fetch *fetches;
    struct sumac_delta *deltas;
};

static double now_s(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static enum sumac_status create_variable(struct job *job, uint32_t index, struct sumac_error *error)
{
    char name[32];

    (void)snprintf(name, sizeof name, "v%u", index);
    const struct sumac_shape shape = {.extent = {job->elements}, .rank = 1};
    const struct sumac_client_variable_options options = {
        .name = name,
        .dtype = SUMAC_FLOAT32,
        .shape = shape,
        .aggregation = SUMAC_REDUCE_SUM,
        .function = {.name = "assign_add"},
    };
    struct sumac_client_variable *variable = NULL;
    enum sumac_status status =
        sumac_client_variable_create(job->client, &options, &variable, error);
    if (status != SUMAC_OK)
        return status;
    const uint64_t offset_bytes = index * job->elements * sizeof(float);
    job->fetches[index].variable = variable;
    job->deltas[index].variable = variable;
    status = sumac_tensor_view(
        job->values, offset_bytes, SUMAC_FLOAT32, &shape, &job->fetches[index].into);
    if (status != SUMAC_OK)
        return status;
    return sumac_tensor_view(
        job->ones, offset_bytes, SUMAC_FLOAT32, &shape, &job->deltas[index].value);
}

static enum sumac_status allocate(struct job *job)
{
    const uint64_t bytes = job->variables * job->elements * sizeof(float);

    job->fetches = calloc(job->variables, sizeof *job->fetches);
    job->deltas = calloc(job->variables, sizeof *job->deltas);
    if (job->fetches == NULL || job->deltas == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    enum sumac_status status = sumac_buffer_create(bytes, &job->values);
    if (status == SUMAC_OK)
        status = sumac_buffer_create(bytes, &job->ones);
    if (status != SUMAC_OK)
        return status;
    float *ones = sumac_buffer_data(job->ones);
    for (uint64_t i = 0; i < job->variables * job->elements; i++)
        ones[i] = 1.0f;
    return SUMAC_OK;
}

/* Pull, then push; the push of the step before is waited for once this step's pull is in. */
static enum sumac_status
step(struct job *job, struct sumac_push **under_way, struct sumac_error *error)
{
    struct sumac_pull *pull = NULL;
    enum sumac_status status =
        sumac_client_pull(job->client, job->fetches, job->variables, NULL, &pull, error);

    if (status == SUMAC_OK)
        status = sumac_pull_wait(pull, 0, error);
    if (status == SUMAC_OK && *under_way != NULL) {
        struct sumac_push *push = *under_way;
        *under_way = NULL;
        status = sumac_push_wait(push, 0, error);
    }
    const struct sumac_push_options options = {.finishes_step = true};
    if (status == SUMAC_OK)
        status =
            sumac_client_push(job->client, job->deltas, job->variables, &options, under_way, error);
    return status;
}

static enum sumac_status run(struct job *job, struct sumac_error *error)
{
    struct sumac_push *under_way = NULL;
    enum sumac_status status = step(job, &under_way, error);

    if (status == SUMAC_OK)
        status = sumac_push_wait(under_way, 0, error);
    under_way = NULL;
    if (status != SUMAC_OK)
        return status;
    const double first_applied = now_s(CLOCK_REALTIME);
    const double start = now_s(CLOCK_MONOTONIC);
    uint64_t steps = 0;
    while (status == SUMAC_OK && now_s(CLOCK_MONOTONIC) - start < job->seconds) {
        status = step(job, &under_way, error);
        steps++;
    }
    if (status == SUMAC_OK && under_way != NULL)
        status = sumac_push_wait(under_way, 0, error);
    const double seconds = now_s(CLOCK_MONOTONIC) - start;
    if (status != SUMAC_OK)
        return status;
    const float *values = sumac_buffer_data(job->values);
    printf(
        "{\"steps\": %" PRIu64
        ", \"seconds\": %.6f, \"first_applied\": %.6f, \"last_value\": %.1f}\n",
        steps, seconds, first_applied, (double)values[0]);
    return SUMAC_OK;
}

int main(int argc, char **argv)
{
    sumac_tune_malloc();
    struct job job = {0};
    if (argc == 4) {
        job.variables = (uint32_t)strtoul(argv[1], NULL, 10);
        job.elements = strtoul(argv[2], NULL, 10) / sizeof(float);
        job.seconds = strtod(argv[3], NULL);
    }
    if (job.variables == 0 || job.variables > VARIABLES_MAX || job.elements == 0) {
        fprintf(stderr, "usage: sumac run -- %s VARIABLES BYTES SECONDS\n", argv[0]);
        return 2;
    }
    struct sumac_error error = {.text = "out of memory"};
    struct sumac_cluster cluster;
    enum sumac_status status = sumac_cluster_from_environment(NULL, &cluster, &error);
    const struct sumac_client_options options = {.cluster = &cluster};
    if (status == SUMAC_OK)
        status = sumac_client_open(&options, &job.client, &error);
    if (status == SUMAC_OK)
        status = allocate(&job);
    for (uint32_t i = 0; status == SUMAC_OK && i < job.variables; i++)
        status = create_variable(&job, i, &error);
    if (status == SUMAC_OK)
        status = run(&job, &error);
    if (status == SUMAC_OK)
        status = sumac_client_leave(job.client, true, &error);
    if (status != SUMAC_OK)
        fprintf(stderr, "read_add: %s\n", error.text);
    sumac_client_close(job.client);
    return status == SUMAC_OK ? 0 : sumac_exit_code(&error);
}
