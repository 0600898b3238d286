/* SPDX-License-Identifier: Apache-2.0 */
/* path.h -- a way for bytes to get from one process to another and back: what every contestant of
 * the bench offers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define VALUES_BYTES_MAX (64u << 20)
#define CHUNK_BYTES (256u << 10)
#define SERVERS_MAX 2

enum op {
    OP_PUSH,       /* bytes there, float-added to an array, answered when they are in it */
    OP_PULL,       /* a small request there, bytes back */
    OP_ROUND_TRIP, /* bytes there and as many bytes back */
    OP_COUNT
};

/* One batch of equal operations, at most `window` of them under way at once. */
struct work {
    enum op op;
    uint64_t bytes;
    unsigned window;
    unsigned count;
    const float *values;  /* bytes of pushes and round trips */
    float *into;          /* bytes of pulls and round trips */
    uint64_t *latency_ns; /* [count], written */
};

struct path {
    const char *name;
    bool (*does)(const struct work *work);
    /* Start the servers, before any gRPC is in this process; NULL: it is this program with
     * `serve`. */
    void (*start)(struct path *path);
    /* The rest happens in a process of the path's own: gRPC's threads of one must not poll for
     * another. */
    void *(*open)(const struct path *path);
    void (*run)(void *state, const struct work *work);
    /* Of all the values that the servers hold; what was pushed must be there. */
    double (*sum)(void *state);
    void (*close)(void *state);
    /* The argument that makes this program the path's server; NULL: `sumac ps`. */
    const char *serve;
    bool adds_round_trips; /* what a round trip brings there is added like a push */
    unsigned server_count;
    pid_t servers[SERVERS_MAX];
    uint32_t ports[SERVERS_MAX];
    struct client *client;
    double pushed_sum;
};

extern struct path raw_path, bare_echo_path, bare_stage_path, sumac_path, sumac_two_path;

/* client.c: the process that is a path's client. `run` returns the seconds that the work took. */
void client_start(struct path *path);
double client_run(struct path *path, const struct work *work);
double client_sum(struct path *path);
void client_stop(struct path *path);
pid_t client_pid(const struct path *path);
/* Memory that this process and its clients see alike. */
void *share(size_t bytes);

/* Servers: listen on a port of 127.0.0.1 that is free, print it, serve until the standard input
 * ends. */
int raw_serve(void);
int bare_serve(bool echo);

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The loop that every server's push ends in. */
static inline void add_floats(float *restrict sum, const float *restrict values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += values[i];
}

static inline double sum_floats(const float *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    return sum;
}

/* In a child: when the bench ends, however it does, so does this process. */
void end_with_parent(void);
/* Start this program as the path's server; its port is the line it prints. It ends when this
 * process does. */
void start_server(struct path *path);
/* That is free now; whoever it is for takes it a moment later. */
uint32_t free_port(void);

/* Says what went wrong and ends the bench. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
