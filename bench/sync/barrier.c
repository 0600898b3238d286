/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c -- the contestant: a `sumac ps` with its default options, and two workers that come to
 * a barrier, one after the other, as fast as they can. The calls of the first are timed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "path.h"
#include "sync.h"
#include "sumac/client.h"
#include "sumac/collective.h"

#define TF_CONFIG_BYTES 512
#define LONG_MS 600000u /* the second worker waits while others are timed */

struct job {
    struct sumac_client *client;
    pid_t second;
};

static void be_task(uint32_t port, const char *type, unsigned index)
{
    char text[TF_CONFIG_BYTES];

    (void)snprintf(
        text, sizeof text,
        "{\"cluster\": {\"ps\": [\"127.0.0.1:%u\"], \"worker\": [\"127.0.0.1:1\", "
        "\"127.0.0.1:2\"]}, \"task\": {\"type\": \"%s\", \"index\": %u}}",
        port, type, index);
    (void)setenv("TF_CONFIG", text, 1);
}

static void start(struct path *path)
{
    path->ports[0] = free_port();
    const pid_t child = fork();
    if (child == 0) {
        end_with_parent();
        be_task(path->ports[0], "ps", 0);
        execl(SYNC_SUMAC, "sumac", "ps", "--bind", "127.0.0.1", (char *)NULL);
        _exit(127);
    }
    path->servers[0] = child;
}

static struct sumac_client *join(uint32_t port, unsigned index)
{
    struct sumac_client *client = NULL;
    struct sumac_error error;

    be_task(port, "worker", index);
    if (sumac_client_open(NULL, &client, &error) != SUMAC_OK)
        die("barrier: %s", error.text);
    return client;
}

static void come(struct sumac_client *client)
{
    const struct sumac_collective_options options = {.name = "bench", .timeout_ms = LONG_MS};
    struct sumac_error error;

    if (sumac_client_barrier(client, &options, NULL, &error) != SUMAC_OK)
        die("barrier: %s", error.text);
}

static void *open_job(const struct path *path)
{
    struct job *job = calloc(1, sizeof *job);

    if (job == NULL)
        die("no memory");
    job->second = fork();
    if (job->second == 0) {
        end_with_parent();
        struct sumac_client *second = join(path->ports[0], 1);
        for (;;)
            come(second);
    }
    job->client = join(path->ports[0], 0);
    come(job->client);
    return job;
}

static void run(void *state, const struct work *work)
{
    struct job *job = state;

    for (unsigned i = 0; i < work->count; i++) {
        work->latency_ns[i] = now_ns();
        come(job->client);
        work->latency_ns[i] = now_ns() - work->latency_ns[i];
    }
}

static void close_job(void *state)
{
    struct job *job = state;

    (void)kill(job->second, SIGKILL);
    (void)waitpid(job->second, NULL, 0);
    sumac_client_close(job->client);
    free(job);
}

struct path barrier_path = {
    .name = "barrier of 2 processes",
    .start = start,
    .open = open_job,
    .run = run,
    .close = close_job,
    .server_count = 1};
