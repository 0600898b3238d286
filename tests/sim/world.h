/* SPDX-License-Identifier: Apache-2.0 */
/* world.h -- one simulated cluster: virtual time, one heap of events, one source of randomness, its
 * ps and its clients.
 *
 * Everything that happens is an event: at a time, to a process. One seed draws the sizes, the
 * delays, the programs and the faults, so that a seed is one run, exactly. A process that is
 * suspended gets its events when it wakes; one that was killed, or another life of it, does not get
 * them at all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "rules.h"

#include "made.h"
#include "shortage.h"
#include "source.h"
#include "trace.h"

#define SIM_PS_MAX 3u
#define SIM_CLIENTS_MAX 4u
#define SIM_PROCESSES (SIM_PS_MAX + SIM_CLIENTS_MAX)
#define SIM_NO_PROCESS SIM_PROCESSES
#define SIM_EVENTS_MAX 60000u /* of one run: beyond it, it never comes to rest */
#define SIM_SECONDS_MAX 900u  /* likewise */
#define SIM_LEASE_MS 10000u
#define SIM_BACKOFF_US_MAX 1000000u /* until what a client has tried is tried again */
#define SIM_WAIT_US 60000000u       /* of a client, for a ps or an answer */
/* What would be tried after the wait is not tried any more. */
#define SIM_PATIENCE_US (SIM_WAIT_US - SIM_BACKOFF_US_MAX)
#define SIM_SESSIONS_OPEN_MAX 8u     /* at one time */
#define SIM_GRANT_BYTES 3400u        /* of staging, to each session at each ps: a part or two */
#define SIM_FLOOR_BYTES 1300u        /* the same where they share a pool: less than most take */
#define SIM_LARGE_BYTES 3400u        /* that a part may take then, … */
#define SIM_CONTRIBUTION_BYTES 2300u /* … and a contribution to a step */
#define SIM_ROWS_GRANT_BYTES 16384u  /* the same where they push rows by index, or set rates */
#define WINDOW_MAX 4u                /* pushes of one client at a time */
#define SIM_START_US 5000000000u     /* no clock begins at 0 */

enum fault {
    FAULT_DROP = 1,             /* connections are cut, unary calls lost */
    FAULT_REFUSE = 2,           /* parts that a ps will refuse */
    FAULT_KILL = 4,             /* clients are killed */
    FAULT_SUSPECT = 8,          /* clients are suspended for longer than a lease */
    FAULT_PULLS = 16,           /* many pulls */
    FAULT_SLEEP = 32,           /* ps 0 is suspended for longer than a lease */
    FAULT_JOIN = 64,            /* ps start late, joins and creates are lost and retried */
    FAULT_STALL = 128,          /* a connection delivers nothing for seconds */
    FAULT_CRASH = 256,          /* a ps dies, and may come back without its state */
    FAULT_HANG = 512,           /* a ps neither says nor takes anything from then on */
    FAULT_TERMINATE = 1024,     /* a ps gets SIGTERM */
    FAULT_QUIT = 2048,          /* members leave before their task is done */
    FAULT_SHORTAGE = 4096,      /* a process gets no memory, once or for a while */
    FAULT_BARRIERS = 8192,      /* members wait for each other */
    FAULT_STEPS = 16384,        /* members push synchronously, too */
    FAULT_QUORUM = 32768,       /* and do not wait for all of them */
    FAULT_ROWS = 65536,         /* some pushes and pulls name rows by index */
    FAULT_FUNCTIONS = 131072,   /* clients define a function, and push with it */
    FAULT_RATES = 262144,       /* some pushes set hyperparameters */
    FAULT_COLLECTIVES = 524288, /* members take part in rounds of collectives */
    FAULT_ROOM = 1048576,       /* floors are small: most parts share a pool */
    FAULT_CANCEL = 2097152,     /* clients cancel pushes */
};

struct plan {
    const char *name;
    uint32_t share; /* of the seeds: those whose orders are rarest have more */
    uint32_t faults;
};

extern const struct plan plans[];
extern const uint32_t plan_count;

/* The plan of a seed that is run without naming one. */
const struct plan *plan_of(uint64_t seed);

struct world;
struct event;

typedef void event_handler(struct world *world, const struct event *event);

struct event {
    uint64_t at_us;
    uint64_t order; /* of equal times: as they were made */
    event_handler *handler;
    uint32_t process; /* to whom it happens, or SIM_NO_PROCESS */
    uint32_t life;    /* of that process */
    uint64_t number;  /* what the handler makes of it */
    void *data;
};

struct process {
    const char *name; /* "ps 1", "worker 0" */
    bool running;
    uint32_t life;
    bool hung; /* for ever: what it keeps open breaks when keepalive finds it silent */
    uint64_t suspended_until_us;
    uint64_t wake_us; /* when the core wants a tick; UINT64_MAX: not at all */
};

struct ps;
struct client;
struct network;
struct checker;

struct world {
    uint64_t seed;
    const struct plan *plan;
    uint64_t broken;
    struct source source; /* of the cores' memory */
    struct arena arena;   /* of everything that lives until the end of the run */
    struct arena scratch; /* of one event */
    struct trace trace;
    struct made_counts made; /* of all its runs */

    uint64_t random_state;
    uint64_t now_us;
    uint64_t order;
    struct event *events; /* a binary heap */
    uint32_t event_count, event_capacity;
    uint32_t events_run;

    uint32_t ps_count, client_count;
    uint32_t delay_us_max; /* of an ordinary message */
    uint32_t fault_budget;
    uint32_t fault_rate;   /* one in so many events */
    uint32_t member_count; /* the first clients; the others are observers */
    uint32_t pushes_max;   /* of one client */
    uint32_t chunk_bytes;  /* of the sessions; and of the lanes: */
    uint32_t inline_bytes, copied_pull_bytes_max, pull_chunk_bytes, block_bytes, gathered_bytes_max;
    uint32_t parts_max, voided_max, closed_max,
        settled_max;             /* that a ps keeps; 0: as many as ever */
    uint32_t ended_per_step_max; /* shards, by an operation of its own; likewise */
    bool records;
    bool shuffles;        /* parts overtake each other */
    bool twin_waits;      /* to be started while another attempt is at work */
    bool twin;            /* the last client is another attempt of a member's task */
    bool ps0_told_itself; /* and nobody else: whom there are it learns of those who join */
    bool slotted;         /* there are variables with slots */
    bool loss_fails;      /* synchronous steps that lack a member which was lost */
    uint32_t quorum;      /* of synchronous steps; 0: all members */
    uint32_t step_deadline_ms;
    bool seeded;                   /* there is a variable whose value its creator assigns */
    bool barrier_listed;           /* its tasks are named */
    uint64_t collective_rounds;    /* of each collective, to which all members come */
    uint64_t collective_bytes_max; /* that a ps has for them; 0: more than is wanted */
    uint64_t pool_bytes;           /* of staging, that large parts share; 0: all is floors */
    uint64_t orders_late_us;       /* what ps 0 says takes so much longer */
    bool faults_over;
    uint64_t ps0_slept_us; /* ps 0 was suspended for so long, all in all, */
    uint64_t ps0_may_sleep_us;
    uint64_t ps0_sleeps_us; /* and is since then */
    struct process processes[SIM_PROCESSES];
    struct shortage shortages[SIM_PROCESSES];
    struct ps *ps[SIM_PS_MAX];
    struct client *clients[SIM_CLIENTS_MAX];
    struct network *network;
    struct checker *checker;
};

/* A world's memory is reused by the next run. */
void world_init(struct world *world);
void world_deinit(struct world *world);

/* Run one seed to its end, and check it. Returns the violations found; the first is in
 * world->checker. */
uint32_t world_run(struct world *world, uint64_t seed, const struct plan *plan, uint64_t broken);
/* Drop what a run left behind, so that another may start; for a run that an assertion ended, too.
 */
void world_drop(struct world *world);

bool world_has(const struct world *world, enum fault fault);
/* Of staging, to each session at each ps. */
uint32_t world_grant(const struct world *world);

/* Randomness. */
uint64_t world_bits(struct world *world);
uint32_t world_below(struct world *world, uint32_t bound);                  /* 0 … bound - 1 */
uint32_t world_between(struct world *world, uint32_t first, uint32_t last); /* both included */
bool world_chance(struct world *world, uint32_t percent);
/* What a message takes: mostly little, at times much. */
uint64_t world_delay_us(struct world *world);

/* Something that will happen to a process, unless it dies before. */
void world_at(
    struct world *world, uint64_t at_us, uint32_t process, event_handler *handler, uint64_t number,
    void *data);
void world_after(
    struct world *world, uint64_t delay_us, uint32_t process, event_handler *handler,
    uint64_t number, void *data);

/* Memory of the run, zeroed. Never NULL. */
void *world_take(struct world *world, size_t bytes);

/* Has some core got less memory than it asked for? */
bool world_was_short(const struct world *world);

/* Is this life of the process there, awake or not? */
bool world_alive(const struct world *world, uint32_t process, uint32_t life);
/* The time that ps 0 was awake for. */
uint64_t world_awake_us(const struct world *world);
void world_suspend(struct world *world, uint32_t process, uint64_t until_us);
/* For ever. Its connections stay until keepalive ends them. */
void world_hang(struct world *world, uint32_t process);

static inline uint32_t process_of_client(uint32_t client) { return SIM_PS_MAX + client; }
