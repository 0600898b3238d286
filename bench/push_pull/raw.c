/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c -- the yardstick: one TCP connection, one thread at each end, the system's congestion
 * control, writes of 256 KiB, and one receive buffer of 256 KiB whose values are added while they
 * are hot. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "path.h"

enum { RAW_SUM = OP_COUNT };
#define ROUND_TRIP_BYTES_MAX (64u << 10)
#define IN_FLIGHT_BYTES_MAX                                                                        \
    (128u << 10) /* both ends block: what is under way must fit into the sockets */

struct request {
    uint64_t op;
    uint64_t bytes;
};

static bool read_all(int connection, void *data, size_t bytes)
{
    for (uint8_t *at = data; bytes > 0;) {
        const ssize_t got = read(connection, at, bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES);
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool write_all(int connection, const void *data, size_t bytes)
{
    for (const uint8_t *at = data; bytes > 0;) {
        const ssize_t put =
            send(connection, at, bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

struct raw_server {
    int connection;
    float *sum;
    uint8_t *chunk;
};

/* Add what a chunk holds; values cut in two by the end of a read are completed first. */
static bool take_push(struct raw_server *server, uint64_t bytes)
{
    float *sum = server->sum;
    size_t held = 0;

    while (bytes > 0) {
        const size_t wanted = bytes < CHUNK_BYTES - held ? (size_t)bytes : CHUNK_BYTES - held;
        const ssize_t got = read(server->connection, server->chunk + held, wanted);
        if (got <= 0)
            return false;
        bytes -= (uint64_t)got;
        held += (size_t)got;
        const size_t whole = held / sizeof(float);
        add_floats(sum, (const float *)(const void *)server->chunk, whole);
        sum += whole;
        memmove(server->chunk, server->chunk + whole * sizeof(float), held % sizeof(float));
        held %= sizeof(float);
    }
    const uint64_t done = 1;
    return write_all(server->connection, &done, sizeof done);
}

static bool serve_one(struct raw_server *server)
{
    struct request request;

    if (!read_all(server->connection, &request, sizeof request))
        return false;
    const size_t bytes = (size_t)request.bytes;
    if (request.op == OP_PUSH)
        return take_push(server, bytes);
    if (request.op == OP_PULL)
        return write_all(server->connection, server->sum, bytes);
    if (request.op == OP_ROUND_TRIP)
        return read_all(server->connection, server->chunk, bytes) &&
               write_all(server->connection, server->chunk, bytes);
    const double sum = sum_floats(server->sum, VALUES_BYTES_MAX / sizeof(float));
    return write_all(server->connection, &sum, sizeof sum);
}

int raw_serve(void)
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        die("raw: cannot listen");
    printf("%u\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    struct raw_server server = {
        .connection = accept(listener, NULL, NULL),
        .sum = calloc(1, VALUES_BYTES_MAX),
        .chunk = malloc(CHUNK_BYTES)};
    const int on = 1;
    (void)setsockopt(server.connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    memset(server.sum, 0, VALUES_BYTES_MAX);
    while (serve_one(&server))
        ;
    return 0;
}

/* ---- the client */

static bool does(const struct work *work)
{
    return work->op != OP_ROUND_TRIP || work->bytes <= ROUND_TRIP_BYTES_MAX;
}

static void *open_raw(const struct path *path)
{
    int *connection = malloc(sizeof *connection);
    const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)path->ports[0]),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(*connection, (struct sockaddr *)&address, sizeof address) != 0)
        die("raw: cannot connect");
    (void)setsockopt(*connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connection;
}

static bool ask(int connection, const struct work *work)
{
    const struct request request = {.op = (uint64_t)work->op, .bytes = work->bytes};
    uint8_t small[sizeof request + 4096];

    if (work->op == OP_PULL)
        return write_all(connection, &request, sizeof request);
    if (work->bytes <= 4096) { /* one write for the request and its bytes */
        memcpy(small, &request, sizeof request);
        memcpy(small + sizeof request, work->values, work->bytes);
        return write_all(connection, small, sizeof request + (size_t)work->bytes);
    }
    return write_all(connection, &request, sizeof request) &&
           write_all(connection, work->values, (size_t)work->bytes);
}

static bool hear(int connection, const struct work *work)
{
    uint64_t done;

    if (work->op == OP_PUSH)
        return read_all(connection, &done, sizeof done);
    return read_all(connection, work->into, (size_t)work->bytes);
}

static void run(void *state, const struct work *work)
{
    const int connection = *(int *)state;
    uint64_t in_flight_max = IN_FLIGHT_BYTES_MAX / work->bytes;

    if (in_flight_max < 1)
        in_flight_max = 1;
    if (in_flight_max > work->window)
        in_flight_max = work->window;
    unsigned asked = 0;
    for (unsigned heard = 0; heard < work->count; heard++) {
        for (; asked < work->count && asked - heard < in_flight_max; asked++) {
            work->latency_ns[asked] = now_ns();
            if (!ask(connection, work))
                die("raw: the server is gone");
        }
        if (!hear(connection, work))
            die("raw: the server is gone");
        work->latency_ns[heard] = now_ns() - work->latency_ns[heard];
    }
}

static double sum(void *state)
{
    const int connection = *(int *)state;
    const struct request request = {.op = RAW_SUM};
    double total = 0;

    if (!write_all(connection, &request, sizeof request) ||
        !read_all(connection, &total, sizeof total))
        die("raw: the server is gone");
    return total;
}

static void close_raw(void *state)
{
    (void)close(*(int *)state);
    free(state);
}

struct path raw_path = {
    .name = "raw TCP",
    .does = does,
    .open = open_raw,
    .run = run,
    .sum = sum,
    .close = close_raw,
    .serve = "--serve-raw",
    .server_count = 1};
