/* SPDX-License-Identifier: Apache-2.0 */
/* sumac.c -- the contestant: `sumac ps` processes with their default options, and a client that is
 * the cluster's only worker. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "path.h"
#include "sumac/client.h"

#define VARIABLES_MAX 8
#define WINDOW_MAX 32
#define TWO_PS_BYTES (16u << 20)
#define TF_CONFIG_BYTES 512

struct job {
    struct sumac_client *client;
    struct sumac_cluster cluster;
    uint32_t shards;
    struct sumac_client_variable *variables[VARIABLES_MAX];
    uint64_t bytes[VARIABLES_MAX];
    unsigned variable_count;
};

static void write_tf_config(
    char text[TF_CONFIG_BYTES], const uint32_t *ports, unsigned ps_count, const char *type,
    unsigned index)
{
    char ps[128] = "";

    for (unsigned i = 0; i < ps_count; i++)
        (void)snprintf(
            ps + strlen(ps), sizeof ps - strlen(ps), "%s\"127.0.0.1:%u\"", i == 0 ? "" : ", ",
            ports[i]);
    (void)snprintf(
        text, TF_CONFIG_BYTES,
        "{\"cluster\": {\"ps\": [%s], \"worker\": [\"127.0.0.1:1\"]}, "
        "\"task\": {\"type\": \"%s\", \"index\": %u}}",
        ps, type, index);
}

static pid_t start_ps(const char *tf_config)
{
    const pid_t child = fork();

    if (child != 0)
        return child;
    end_with_parent();
    (void)setenv("TF_CONFIG", tf_config, 1);
    execl(PUSH_PULL_SUMAC, "sumac", "ps", "--bind", "127.0.0.1", (char *)NULL);
    _exit(127);
}

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status != SUMAC_OK)
        die("Sumac: %s: %s", sumac_status_name(status), error->text);
}

static void start(struct path *path)
{
    char tf_config[TF_CONFIG_BYTES];

    for (unsigned i = 0; i < path->server_count; i++)
        path->ports[i] = free_port();
    for (unsigned i = 0; i < path->server_count; i++) {
        write_tf_config(tf_config, path->ports, path->server_count, "ps", i);
        path->servers[i] = start_ps(tf_config);
    }
}

static void *open_job(const struct path *path)
{
    char tf_config[TF_CONFIG_BYTES];
    struct sumac_error error;
    struct job *job = calloc(1, sizeof *job);

    write_tf_config(tf_config, path->ports, path->server_count, "worker", 0);
    check(sumac_cluster_parse(tf_config, NULL, &job->cluster, &error), &error);
    const struct sumac_client_options options = {.cluster = &job->cluster};
    check(sumac_client_open(&options, &job->client, &error), &error);
    job->shards = path->server_count;
    return job;
}

/* The variable of that size: float32, zeros, whose update function adds what is pushed. */
static struct sumac_client_variable *variable_of(struct job *job, uint64_t bytes)
{
    for (unsigned i = 0; i < job->variable_count; i++)
        if (job->bytes[i] == bytes)
            return job->variables[i];
    char name[32];
    struct sumac_error error;
    struct sumac_client_variable **made = &job->variables[job->variable_count];
    (void)snprintf(name, sizeof name, "w%" PRIu64, bytes);
    const struct sumac_client_variable_options options = {
        .name = name,
        .dtype = SUMAC_FLOAT32,
        .shape = {.rank = 1, .extent = {bytes / sizeof(float)}},
        .initializer = SUMAC_INITIALIZER_ZEROS,
        .partitioner =
            {.kind = job->shards > 1 ? SUMAC_PARTITIONER_FIXED_SHARDS : SUMAC_PARTITIONER_NONE,
             .num_shards = job->shards > 1 ? job->shards : 0},
        .function = {.name = "assign_add"}};
    if (job->variable_count == VARIABLES_MAX)
        die("Sumac: too many variables");
    check(sumac_client_variable_create(job->client, &options, made, &error), &error);
    job->bytes[job->variable_count++] = bytes;
    return *made;
}

/* The caller's values as a tensor; the buffer borrows them. */
static struct sumac_tensor tensor_of(float *values, uint64_t bytes)
{
    struct sumac_buffer *buffer;
    struct sumac_tensor tensor;
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    const struct sumac_shape shape = {.rank = 1, .extent = {bytes / sizeof(float)}};

    if (sumac_buffer_wrap(values, bytes, host, NULL, NULL, &buffer) != SUMAC_OK ||
        sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, &tensor) != SUMAC_OK)
        die("Sumac: no tensor");
    return tensor;
}

static void push_all(struct job *job, const struct work *work)
{
    struct sumac_push *pushes[WINDOW_MAX];
    struct sumac_error error;
    const struct sumac_delta delta = {
        .variable = variable_of(job, work->bytes),
        .value = tensor_of((float *)(uintptr_t)work->values, work->bytes)};
    unsigned asked = 0;

    for (unsigned heard = 0; heard < work->count; heard++) {
        for (; asked < work->count && asked - heard < work->window; asked++) {
            work->latency_ns[asked] = now_ns();
            check(
                sumac_client_push(
                    job->client, &delta, 1, NULL, &pushes[asked % WINDOW_MAX], &error),
                &error);
        }
        check(sumac_push_wait(pushes[heard % WINDOW_MAX], 60000, &error), &error);
        work->latency_ns[heard] = now_ns() - work->latency_ns[heard];
    }
    sumac_buffer_unref(delta.value.buffer);
}

static void pull_all(struct job *job, const struct work *work)
{
    struct sumac_error error;
    const struct sumac_fetch fetch = {
        .variable = variable_of(job, work->bytes), .into = tensor_of(work->into, work->bytes)};

    for (unsigned i = 0; i < work->count; i++) {
        struct sumac_pull *pull;
        const uint64_t begin = now_ns();
        check(sumac_client_pull(job->client, &fetch, 1, NULL, &pull, &error), &error);
        check(sumac_pull_wait(pull, 60000, &error), &error);
        work->latency_ns[i] = now_ns() - begin;
    }
    sumac_buffer_unref(fetch.into.buffer);
}

/* A push, and a pull that waits for it on the ps: both are begun before either is waited for. */
static void round_trip_all(struct job *job, const struct work *work)
{
    struct sumac_push *pushes[WINDOW_MAX];
    struct sumac_pull *pulls[WINDOW_MAX];
    struct sumac_error error;
    struct sumac_client_variable *variable = variable_of(job, work->bytes);
    const struct sumac_delta delta = {
        .variable = variable, .value = tensor_of((float *)(uintptr_t)work->values, work->bytes)};
    const struct sumac_fetch fetch = {
        .variable = variable, .into = tensor_of(work->into, work->bytes)};
    unsigned asked = 0;

    for (unsigned heard = 0; heard < work->count; heard++) {
        for (; asked < work->count && asked - heard < work->window; asked++) {
            work->latency_ns[asked] = now_ns();
            check(
                sumac_client_push(
                    job->client, &delta, 1, NULL, &pushes[asked % WINDOW_MAX], &error),
                &error);
            check(
                sumac_client_pull(job->client, &fetch, 1, NULL, &pulls[asked % WINDOW_MAX], &error),
                &error);
        }
        check(sumac_pull_wait(pulls[heard % WINDOW_MAX], 60000, &error), &error);
        check(sumac_push_wait(pushes[heard % WINDOW_MAX], 60000, &error), &error);
        work->latency_ns[heard] = now_ns() - work->latency_ns[heard];
    }
    sumac_buffer_unref(delta.value.buffer);
    sumac_buffer_unref(fetch.into.buffer);
}

static void run(void *state, const struct work *work)
{
    switch (work->op) {
    case OP_PUSH:
        push_all(state, work);
        return;
    case OP_PULL:
        pull_all(state, work);
        return;
    case OP_ROUND_TRIP:
        round_trip_all(state, work);
        return;
    case OP_COUNT:
        return;
    }
}

static bool does(const struct work *work)
{
    (void)work;
    return true;
}

static bool does_two(const struct work *work)
{
    return work->op != OP_ROUND_TRIP && work->bytes == TWO_PS_BYTES;
}

static double sum(void *state)
{
    struct job *job = state;
    double total = 0;

    for (unsigned i = 0; i < job->variable_count; i++) {
        uint64_t latency;
        float *values = malloc(job->bytes[i]);
        const struct work work = {
            .op = OP_PULL,
            .bytes = job->bytes[i],
            .count = 1,
            .into = values,
            .latency_ns = &latency};
        if (values == NULL)
            die("no memory");
        pull_all(job, &work);
        total += sum_floats(values, (size_t)(job->bytes[i] / sizeof(float)));
        free(values);
    }
    return total;
}

static void close_job(void *state)
{
    struct job *job = state;
    struct sumac_error error;

    check(sumac_client_leave(job->client, true, &error), &error);
    sumac_client_close(job->client);
    sumac_cluster_deinit(&job->cluster);
    free(job);
}

struct path sumac_path = {
    .name = "Sumac",
    .does = does,
    .start = start,
    .open = open_job,
    .run = run,
    .sum = sum,
    .close = close_job,
    .adds_round_trips = true,
    .server_count = 1};

struct path sumac_two_path = {
    .name = "Sumac, 2 ps",
    .does = does_two,
    .start = start,
    .open = open_job,
    .run = run,
    .sum = sum,
    .close = close_job,
    .server_count = 2};
