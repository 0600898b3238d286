/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- `sumac run --ps 1 --workers 2 -- beside_worker SECONDS`: worker 0 makes 64 MB adam
 * pushes, worker 1 times pulls of 256 bytes of another variable, both for so long. Worker 1 prints
 * a JSON line: pulls, p50, p99 and the largest, in ms, without the pushes beside them (the first
 * second) and with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/client.h"

#define LARGE_BYTES (UINT64_C(64) << 20)
#define SMALL_BYTES UINT64_C(256)
#define PULLS_MAX 4000000u
#define ALONE_SECONDS 1.0

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "beside: %s\n", error->text);
    exit(sumac_exit_code(error));
}

/* A float32 variable of so many bytes, and a tensor of that shape in memory of its own. */
static struct sumac_client_variable *
make(struct sumac_client *client, const char *function, uint64_t bytes, struct sumac_tensor *tensor)
{
    struct sumac_error error = {.text = "no memory"};
    struct sumac_client_variable *variable;
    struct sumac_buffer *buffer;
    const struct sumac_shape shape = {.rank = 1, .extent = {bytes / sizeof(float)}};
    const struct sumac_client_variable_options options = {
        .name = function,
        .dtype = SUMAC_FLOAT32,
        .shape = shape,
        .function = {.name = function},
    };

    check(sumac_client_variable_create(client, &options, &variable, &error), &error);
    check(sumac_buffer_create(bytes, &buffer), &error);
    check(sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, tensor), &error);
    float *const values = sumac_tensor_data(tensor);
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        values[i] = 1e-3f;
    return variable;
}

static void push_for(struct sumac_client *client, double seconds)
{
    struct sumac_error error;
    struct sumac_delta delta = {0};

    delta.variable = make(client, "adam", LARGE_BYTES, &delta.value);
    const struct timespec alone = {.tv_sec = (time_t)ALONE_SECONDS};
    (void)nanosleep(&alone, NULL);
    unsigned pushes = 0;
    const double start = now_s();
    while (now_s() < start + seconds) {
        struct sumac_push *push;
        const struct sumac_push_options options = {.weight = 1};
        check(sumac_client_push(client, &delta, 1, &options, &push, &error), &error);
        check(sumac_push_wait(push, 0, &error), &error);
        pushes++;
    }
    fprintf(
        stderr, "%u pushes, %.2f GB/s\n", pushes,
        pushes * (double)LARGE_BYTES / (now_s() - start) / 1e9);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
pull_for(struct sumac_client *client, struct sumac_fetch *fetch, double seconds, const char *what)
{
    struct sumac_error error;
    double *const took = calloc(PULLS_MAX, sizeof *took);
    size_t pulls = 0;
    const double start = now_s();

    for (double now = start; now < start + seconds && pulls < PULLS_MAX;) {
        struct sumac_pull *pull;
        const struct sumac_pull_options options = {0};
        check(sumac_client_pull(client, fetch, 1, &options, &pull, &error), &error);
        check(sumac_pull_wait(pull, 0, &error), &error);
        const double then = now_s();
        took[pulls++] = (then - now) * 1e3;
        now = then;
    }
    qsort(took, pulls, sizeof *took, compare);
    printf(
        "\"%s\": {\"pulls\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}", what,
        pulls, took[pulls / 2], took[pulls * 99 / 100], took[pulls - 1]);
    free(took);
}

int main(int argc, char **argv)
{
    sumac_tune_malloc();
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    struct sumac_error error;
    struct sumac_cluster cluster;
    struct sumac_client *client;
    check(sumac_cluster_from_environment(NULL, &cluster, &error), &error);
    const struct sumac_client_options options = {.cluster = &cluster};
    check(sumac_client_open(&options, &client, &error), &error);
    if (cluster.task_index == 0) {
        push_for(client, seconds);
    } else {
        struct sumac_fetch fetch = {0};
        fetch.variable = make(client, "sgd", SMALL_BYTES, &fetch.into);
        printf("{");
        pull_for(client, &fetch, ALONE_SECONDS / 2, "alone");
        printf(", ");
        const struct timespec begun = {.tv_sec = (time_t)ALONE_SECONDS};
        (void)nanosleep(&begun, NULL);
        pull_for(client, &fetch, seconds - 2 * ALONE_SECONDS, "beside");
        printf("}\n");
    }
    check(sumac_client_leave(client, true, &error), &error);
    sumac_client_close(client);
    sumac_cluster_deinit(&cluster);
    return 0;
}
