/* SPDX-License-Identifier: Apache-2.0 */
/* step.c -- four workers, a process each, push 16 MB at the same time to one `sumac ps`, whose
 * variable is updated with sgd: one after the other, as they come, or together, as one synchronous
 * step. Timed is from when all may begin until the last knows that its push is applied.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync.h"
#include "sumac/client.h"

#define TF_CONFIG_BYTES 512
#define WARM_UP 3u
#define SECONDS_MAX 300u

/* What this process and the workers see alike. */
struct floor {
    pthread_barrier_t begin, end;
    bool synchronous, over;
};

static void be_task(uint32_t port, const char *type, unsigned index)
{
    char text[TF_CONFIG_BYTES];

    (void)snprintf(
        text, sizeof text,
        "{\"cluster\": {\"ps\": [\"127.0.0.1:%u\"], \"worker\": [\"127.0.0.1:1\", "
        "\"127.0.0.1:2\", \"127.0.0.1:3\", \"127.0.0.1:4\"]}, "
        "\"task\": {\"type\": \"%s\", \"index\": %u}}",
        port, type, index);
    (void)setenv("TF_CONFIG", text, 1);
}

static pid_t start_ps(uint32_t port)
{
    const pid_t child = fork();

    if (child != 0)
        return child;
    end_with_parent();
    be_task(port, "ps", 0);
    execl(
        SYNC_SUMAC, "sumac", "ps", "--bind", "127.0.0.1", "--staging-max", "1G", "--sessions-max",
        "8", (char *)NULL);
    _exit(127);
}

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status != SUMAC_OK)
        die("step: %s: %s", sumac_status_name(status), error->text);
}

static struct sumac_client_variable *variable(struct sumac_client *client)
{
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error;
    const struct sumac_client_variable_options options = {
        .name = "w",
        .dtype = SUMAC_FLOAT32,
        .shape = {.rank = 1, .extent = {SYNC_BYTES / sizeof(float)}},
        .aggregation = SUMAC_REDUCE_MEAN,
        .initializer = SUMAC_INITIALIZER_ZEROS,
        .function = {.name = "sgd"}};

    check(sumac_client_variable_create(client, &options, &variable, &error), &error);
    return variable;
}

static struct sumac_tensor gradient(void)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    const struct sumac_shape shape = {.rank = 1, .extent = {SYNC_BYTES / sizeof(float)}};
    struct sumac_buffer *buffer;
    struct sumac_tensor tensor;
    float *values = malloc(SYNC_BYTES);

    if (values == NULL)
        die("no memory");
    for (size_t i = 0; i < SYNC_BYTES / sizeof(float); i++)
        values[i] = 0.001f;
    if (sumac_buffer_wrap(values, SYNC_BYTES, host, NULL, NULL, &buffer) != SUMAC_OK ||
        sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, &tensor) != SUMAC_OK)
        die("step: no tensor");
    return tensor;
}

static void work(struct floor *floor, uint32_t port, unsigned index)
{
    struct sumac_client *client = NULL;
    struct sumac_error error;

    end_with_parent();
    be_task(port, "worker", index);
    check(sumac_client_open(NULL, &client, &error), &error);
    const struct sumac_delta delta = {.variable = variable(client), .value = gradient()};
    for (;;) {
        (void)pthread_barrier_wait(&floor->begin);
        if (floor->over)
            _exit(0);
        const struct sumac_push_options options = {.synchronous = floor->synchronous};
        struct sumac_push *push = NULL;
        check(sumac_client_push(client, &delta, 1, &options, &push, &error), &error);
        check(sumac_push_wait(push, 60000, &error), &error);
        (void)pthread_barrier_wait(&floor->end);
    }
}

static struct floor *make_floor(void)
{
    struct floor *floor = share(sizeof *floor);
    pthread_barrierattr_t shared;

    (void)pthread_barrierattr_init(&shared);
    (void)pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(&floor->begin, &shared, SYNC_MEMBERS + 1) != 0 ||
        pthread_barrier_init(&floor->end, &shared, SYNC_MEMBERS + 1) != 0)
        die("no barrier");
    return floor;
}

static void push_all(struct floor *floor, bool synchronous, struct timing *timing)
{
    floor->synchronous = synchronous;
    if (timing != NULL)
        timing_begin(timing);
    (void)pthread_barrier_wait(&floor->begin);
    (void)pthread_barrier_wait(&floor->end);
    if (timing != NULL)
        timing_end(timing);
}

void step_measure(struct timing *each, struct timing *together, unsigned rounds)
{
    struct floor *floor = make_floor();
    const uint32_t port = free_port();
    const pid_t ps = start_ps(port);
    pid_t workers[SYNC_MEMBERS];

    (void)alarm(SECONDS_MAX); /* a worker that has died is waited for by all */
    for (unsigned i = 0; i < SYNC_MEMBERS; i++) {
        workers[i] = fork();
        if (workers[i] == 0)
            work(floor, port, i);
    }
    for (unsigned i = 0; i < WARM_UP + rounds; i++) {
        push_all(floor, false, i < WARM_UP ? NULL : each);
        push_all(floor, true, i < WARM_UP ? NULL : together);
    }
    floor->over = true;
    (void)pthread_barrier_wait(&floor->begin);
    for (unsigned i = 0; i < SYNC_MEMBERS; i++)
        (void)waitpid(workers[i], NULL, 0);
    (void)kill(ps, SIGTERM);
    (void)waitpid(ps, NULL, 0);
    (void)alarm(0);
}
