/* SPDX-License-Identifier: Apache-2.0 */
/* client.c -- a process for each path's client, told what to do over a pipe; values and latencies
 * lie in shared memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "path.h"

enum order_kind { ORDER_RUN, ORDER_SUM, ORDER_STOP };

struct order {
    enum order_kind kind;
    struct work work;
};

struct client {
    pid_t process;
    int orders;  /* written here, read by the process */
    int answers; /* a double each */
};

void *share(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (data == MAP_FAILED)
        die("no memory");
    return data;
}

static void obey(const struct path *path, int orders, int answers)
{
    void *state = path->open(path);
    float *into = malloc(VALUES_BYTES_MAX);
    double answer = 0; /* to the opening: it is ready */
    struct order order;

    memset(into, 0, VALUES_BYTES_MAX);
    while (write(answers, &answer, sizeof answer) == sizeof answer &&
           read(orders, &order, sizeof order) == sizeof order && order.kind != ORDER_STOP) {
        if (order.kind == ORDER_SUM) {
            answer = path->sum(state);
            continue;
        }
        order.work.into = into;
        const uint64_t begin = now_ns();
        path->run(state, &order.work);
        answer = (double)(now_ns() - begin) * 1e-9;
    }
    path->close(state);
    free(into);
}

static double hear(const struct path *path)
{
    double answer;

    if (read(path->client->answers, &answer, sizeof answer) != sizeof answer)
        die("%s: its client ended", path->name);
    return answer;
}

void client_start(struct path *path)
{
    int orders[2], answers[2];

    path->client = malloc(sizeof *path->client);
    if (path->client == NULL || pipe(orders) != 0 || pipe(answers) != 0)
        die("no pipe");
    const pid_t child = fork();
    if (child < 0)
        die("no process");
    if (child == 0) {
        end_with_parent();
        obey(path, orders[0], answers[1]);
        exit(0);
    }
    (void)close(orders[0]);
    (void)close(answers[1]);
    *path->client = (struct client){.process = child, .orders = orders[1], .answers = answers[0]};
    (void)hear(path);
}

static double tell(struct path *path, const struct order *order)
{
    if (write(path->client->orders, order, sizeof *order) != sizeof *order)
        die("%s: its client ended", path->name);
    return hear(path);
}

double client_run(struct path *path, const struct work *work)
{
    const struct order order = {.kind = ORDER_RUN, .work = *work};

    return tell(path, &order);
}

double client_sum(struct path *path)
{
    const struct order order = {.kind = ORDER_SUM};

    return tell(path, &order);
}

void client_stop(struct path *path)
{
    const struct order order = {.kind = ORDER_STOP};

    if (write(path->client->orders, &order, sizeof order) != sizeof order)
        die("%s: its client ended", path->name);
    (void)waitpid(path->client->process, NULL, 0);
    (void)close(path->client->orders);
    (void)close(path->client->answers);
    free(path->client);
}

pid_t client_pid(const struct path *path) { return path->client->process; }
