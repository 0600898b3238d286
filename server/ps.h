/* SPDX-License-Identifier: Apache-2.0 */
/* ps.h -- a parameter server as a process: one port, one thread that polls and runs the lane, a few
 * that compute.
 *
 * The driver of server/lane: what arrives becomes events, effects become messages. Everything that
 * the lane may not touch is here: sockets, clock, randomness, signals, threads, standard error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/cluster.h"

struct plugins;

/* Exit codes beside those of the lane (0, 143, …) and 130 after SIGINT. Below 128 a scheduler need
 * not try again, from 128 on it may. */
enum {
    PS_EXIT_MISUSED = 2,      /* the cluster's description or an option must be changed */
    PS_EXIT_NO_MEMORY = 137,  /* as of a process that the system killed for want of memory */
    PS_EXIT_PORT_TAKEN = 226, /* 128 + EADDRINUSE: who has the port now may be gone the next time */
};

#define PS_THREADS_DEFAULT UINT32_MAX /* as many as there are processors to spare, at most 3 */
#define PS_THREADS_MAX 64u
#define PS_STEP_DEADLINE_AUTO UINT32_MAX

#define PS_STAGING_BYTES_MIN (UINT64_C(2304) << 20) /* of the default */

struct ps_options {
    const struct sumac_cluster *cluster; /* names this task, of job ps; borrowed */
    const char *bind_host; /* NULL: 0.0.0.0. An address of this host, IPv6 in brackets or not */
    const struct plugins *plugins; /* functions of plug-ins; borrowed. NULL: none */
    bool port_given;               /* else the port of the task's own address */
    uint32_t port;                 /* 0: one that is free; the line that is logged says which */
    uint32_t threads;              /* of the compute pool, beside the lane's own */
    /* 0: the default, given here. */
    uint32_t lease_ms;         /* 10 000 */
    uint32_t rejoin_ms;        /* 10 000 */
    uint32_t rejoin_first_ms;  /* 60 000 */
    uint32_t ps_lost_ms;       /* 60 000 */
    uint32_t report_ms;        /* 5 000 */
    uint32_t terminate_ms;     /* 5 000 */
    uint32_t members;          /* of synchronous steps: as many as are listed */
    bool loss_fails;           /* a synchronous step that lacks a member which was lost fails */
    bool places_by_bytes;      /* ps 0 puts a shard where the fewest are; else on each ps in turn */
    uint32_t quorum;           /* a synchronous step is taken with so many contributions; 0: all */
    uint32_t step_deadline_ms; /* … so long after its first one; PS_STEP_DEADLINE_AUTO: by what the
                                  last steps took */
    uint32_t sessions_max;     /* the listed chiefs and workers and 8 more, at least 32 */
    uint32_t streams_max;      /* 1 024 calls on one connection */
    uint32_t connections_max;  /* four for each session, at least 1 024; as many as there are
                                  descriptors for */
    uint32_t calls_max; /* 32 for each session, at least 4096, at most 16 384; half are streams' */
    uint64_t staging_bytes_max; /* three eighths of the memory, divided by the ps of this host; at
                                   least 2304 MiB */
    uint64_t view_bytes_max;    /* as much as the variables take */
    uint64_t pulls_bytes_max;   /* 64 MiB */
    uint64_t collective_bytes_max; /* 512 MiB */
    uint64_t state_bytes_max; /* three quarters of the memory, divided by the ps of this host */
    uint64_t grpc_memory_bytes_max; /* 256 MiB */
};

#define PS_OPTIONS_INIT                                                                            \
    {                                                                                              \
        .threads = PS_THREADS_DEFAULT, .step_deadline_ms = PS_STEP_DEADLINE_AUTO                   \
    }

/* Run until the run has ended or SIGTERM or SIGINT has been obeyed; a second signal ends it at
 * once, with 128 + its number. Logs to standard error, a line as it begins to listen: "ps 0 listens
 * on 0.0.0.0:2222".
 *
 * Returns  the exit code of the process. Threads  the process's first, before it has made others:
 * SIGTERM and SIGINT are blocked from here on, in every thread that it makes, and stay so: one that
 * comes after the end changes no exit code. */
int ps_run(const struct ps_options *options);
