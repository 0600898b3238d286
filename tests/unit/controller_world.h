/* SPDX-License-Identifier: Apache-2.0 */
/* controller_world.h -- a conversation with a controller among ps that obey it, as text: calls are
 * its input, and a transcript is its output.
 *
 * The world has a clock that only the test moves. A few ps answer orders when the test lets them.
 * world_settle_down delivers everything that is on its way. The controller's records are on disk at
 * once, and in the end a controller that is made of the records must be the same. Every order
 * becomes a line of the transcript, except signs of life. So do answers, and the exit of ps 0.
 * Calls are numbered in the order in which they were made. Sessions are numbered in the order in
 * which they first appear:
 *
 *     dial ps 1 · ps 1: hello 71 of 2 ps · ps 0, 1: open 1 · 1: joined 1 attempt 1 of 2 ps epoch 1
 *     · ps 0: members 1 epoch 2 · ps 0: add 1 w · ps 0: publish 1 · 2: created 1 shard 1 on ps 0
 *     · ps 1: close 1: it has left · ps 1: decide 1 at 7 voided 2 6 done · 3: left at 7
 *     · ps 0, 1: take step 1 of 1 2
 *     · 3: round 2 passes · 3: round 2 ends DEADLINE_EXCEEDED TIMED_OUT round …
 *     · 4: ABORTED SESSION_CLOSED a newer … · ps 0: end 0 RUN_ENDED every … · exit 0 RUN_ENDED …
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller.h"
#include "controller_written.h"
#include "replaced.h"

#define WORLD_PS_MAX 4
#define WORLD_ORDERS_MAX 64
#define WORLD_ANSWERS_MAX 160
#define WORLD_LOG_BYTES 16384
#define WORLD_TEXT_BYTES 131072
#define WORLD_SESSIONS_MAX 8192
#define WORLD_COMERS_MAX 600u /* tasks that one call names */
#define WORLD_NOBODY 0        /* a session that nobody has heard of */
#define SECOND UINT64_C(1000000)

enum world_order_kind {
    ORDER_HELLO,
    ORDER_ALIVE,
    ORDER_OPEN,
    ORDER_DEFINE, /* its number as variable_id */
    ORDER_ADD_SHARDS,
    ORDER_PUBLISH,
    ORDER_DELETE,
    ORDER_FIRST_STEP,
    ORDER_CLOSE,
    ORDER_DECIDE,
    ORDER_MEMBERSHIP,
    ORDER_TAKE,
    ORDER_COLLECTIVE, /* its round as variable_id, how it ended as text */
    ORDER_END,
};

/* What a ps was told: the fields that its kind has. */
struct world_order {
    enum world_order_kind kind;
    uint64_t number;
    uint8_t session_id[16];
    uint64_t variable_id;
    uint32_t initial;     /* of an open and a decide; of a hello how many there are */
    bool lost;            /* of a close and a decide */
    uint64_t final;       /* or the first step; or the one that is taken, … */
    uint8_t taken[8][16]; /* … with these sessions */
    size_t taken_count;
    uint64_t acked_through;
    uint64_t voided[8];
    size_t voided_count;
    bool done;
    uint64_t membership_epoch; /* also of an open, … */
    uint32_t role;             /* … and these */
    uint64_t attempt;
    size_t members;
    uint64_t expected_incarnation; /* of a hello, and these */
    size_t addresses;
    uint32_t index;
    uint64_t cluster_id, controller_incarnation, controller_secret;
    uint64_t incarnations[WORLD_PS_MAX];
    bool members_partial;
    char host[64];
    size_t plugin_functions; /* of a hello, with the first one's name and plug-in as text, … */
    uint64_t digest;         /* … and this */
    uint32_t exit_code;
    enum sumac_reason reason;
    char text[512];
};

struct world_ps {
    uint64_t incarnation;
    bool up;
    bool silent;             /* takes no orders: they stay on their way */
    bool mute;               /* takes orders and answers none */
    uint64_t commit_through; /* what it reports when a session is closed */
    uint64_t made_step, made_sequence;
    uint64_t acked_through; /* likewise */
    bool connected;         /* likewise */
    uint64_t voided[8];
    size_t voided_count;
    uint64_t clock, seen_step;                  /* what it answers to open */
    bool never_opens;                           /* answers everything but open */
    bool never_ends;                            /* answers everything but end */
    bool never_defines;                         /* answers everything but define */
    bool refuses_functions;                     /* reads no text as ps 0 does */
    const char *refuses;                        /* answers a hello with this; NULL: takes it */
    bool out_of_memory;                         /* cannot make shards, close or decide */
    bool full;                                  /* cannot open a session */
    uint32_t adds, bad_add;                     /* shards asked for; which it cannot make, from 1 */
    struct world_order queue[WORLD_ORDERS_MAX]; /* not answered */
    size_t queued;
    struct world_order told[WORLD_ORDERS_MAX * 4]; /* all it ever got, but signs of life */
    size_t told_count;
    size_t alive;
};

/* How a call ended: its reply's fields, or its error. */
struct world_answer {
    uint64_t call;
    enum sumac_status status;
    enum sumac_reason reason;
    char text[512];
    uint8_t session_id[16];
    uint64_t cluster_id;
    size_t variable_count; /* of a create of several */
    uint64_t variable_id;
};

struct world {
    struct lane_config config;
    struct memory memory;
    uint64_t bytes_taken; /* of it by the controller, not given back */
    bool out_of_memory;   /* the controller gets no more */
    bool holds_orders; /* the test has changed what the controller counts, which is not checked */
    bool out_of_pools; /* nor a chunk for a pool; what is smaller it gets */
    uint64_t takes;    /* of memory by the controller, … */
    uint64_t bad_take; /* … of which this one fails, from 1 */
    struct controller *controller;
    struct written written; /* its records, … */
    uint64_t on_disk;       /* … up to this one on disk: all, after each event */
    uint64_t now_us;
    uint64_t wake_us; /* the earliest tick that the controller has asked for and not had */
    uint64_t cpu_us;  /* that the driver says with each tick */
    uint64_t drawn;   /* random numbers */
    uint64_t calls;
    struct world_ps ps[WORLD_PS_MAX];
    struct world_answer answers[WORLD_ANSWERS_MAX];
    size_t answer_count;
    char log[WORLD_LOG_BYTES];
    char text[WORLD_TEXT_BYTES]; /* the transcript since it was looked at */
    size_t text_used;
    char order_text[1024];                    /* of the last order, … */
    size_t order_end;                         /* … and where its line ends in the transcript */
    uint8_t sessions[WORLD_SESSIONS_MAX][16]; /* number 1 first */
    uint32_t session_count;
    bool dialled[WORLD_PS_MAX];
    bool met_itself; /* ps 0 */
    bool exited;
    int exit_code;
    struct sumac_error exit_error;
    uint64_t replaced_attempt;          /* by the last join that was answered, … */
    char replaced[REPLACED_TEXT_BYTES]; /* … as its client says that */
    uint64_t renewed_membership_epoch;  /* that the last renewal was told */
    const wire_variable *beside;        /* that a create of several names, too */
    struct sumac_error lost;            /* the controller had no memory for what it has to say */
};

/* A world of ps_count ps whose configuration lists `workers` workers; no ps but ps 0 is up. */
struct world *world_new(uint32_t ps_count, uint32_t workers);
/* Of two ps, both up, and two workers. */
struct world *world_of_two(void);
/* As world_new, before the controller is made, for a test that changes world->config first; then
 * world_begin. */
struct world *world_prepare(uint32_t ps_count, uint32_t workers);
void world_begin(struct world *world);
void world_free(struct world *world);

void world_up(struct world *world, uint32_t ps);
void world_all_up(struct world *world);
void world_down(struct world *world, uint32_t ps);
/* It exited, and said why on its stream. */
void world_ended(struct world *world, uint32_t ps, enum sumac_reason reason, const char *why);
/* Let every ps that is up answer all it was told, and what follows from that. */
void world_settle_down(struct world *world);
/* Let time pass in steps of a quarter second, with a tick after each and the ps answering. */
void world_pass(struct world *world, uint64_t us);
/* One tick, this much later, with nothing in between. */
void world_sleep(struct world *world, uint64_t us);
/* One tick, when the controller has asked for it, with nothing in between. False: none by until_us.
 */
bool world_tick_as_asked(struct world *world, uint64_t until_us);
void world_terminate(struct world *world);                       /* SIGTERM */
void world_signal(struct world *world, enum lane_signal number); /* SIGINT */

/* Observers join, and ps 1 answers nothing, until the controller has no order left. From then on
 * its pools get no more memory. The configuration has room for 64 observers. */
void world_use_up_orders(struct world *world);

/* Calls; each gives the number that its answer will have. A session is its number, or
 * WORLD_NOBODY. */
uint64_t world_join(struct world *world, const char *job, uint32_t index, uint32_t nonce);
uint64_t world_ask(struct world *world, enum lane_call_kind kind, const wire_message *request);
uint64_t world_join_as(struct world *world, const wire_join_request *request);
uint64_t world_renew(struct world *world, uint32_t session);
uint64_t world_leave(struct world *world, uint32_t session, bool done);
/* As done, naming the last push. */
uint64_t world_leave_after(struct world *world, uint32_t session, uint64_t last_sequence);
uint64_t world_create(
    struct world *world, uint32_t session, const wire_variable *variable, uint32_t timeout_ms);
uint64_t
world_create_many(struct world *world, uint32_t session, wire_variable **variables, size_t count);
uint64_t
world_define(struct world *world, uint32_t session, const char *name, const char *function);
uint64_t world_functions(struct world *world);
uint64_t world_delete(struct world *world, uint32_t session, const char *name);
/* To that round of a barrier of `workers`, ended by UINT32_MAX; NULL: of all members. */
struct world_arrival {
    const char *name;
    uint64_t round;
    const uint32_t *workers;
    uint32_t timeout_ms;
};
uint64_t world_come(struct world *world, uint32_t session, const struct world_arrival *arrival);
void world_cancel(struct world *world, uint64_t call);

/* From that ps, as it is. */
void world_report(struct world *world, uint32_t ps, wire_peer_report *message);
/* A report that answers nothing: these variables are assigned at that ps. */
void world_report_assigned(struct world *world, uint32_t ps, uint64_t variable_id);
/* A report that answers this order, whether or not it was given. */
void world_report_answer(struct world *world, uint32_t ps, uint64_t number);
void world_report_renewed(struct world *world, uint32_t ps, uint32_t session);
wire_bytes world_id(struct world *world, uint32_t session);
/* That the session has come to a synchronous step there; that a step is over there. */
void world_report_come(
    struct world *world, uint32_t ps, uint32_t session, uint64_t step, bool voided);
void world_report_over(struct world *world, uint32_t ps, uint64_t step);
/* How a round of a collective of worker 0 and worker 1 is to end. */
void world_report_collective(
    struct world *world, uint32_t ps, const char *name, uint64_t round, enum sumac_status status);

/* The transcript since the last time, as expected, where an … stands for any text of its line. */
#define world_expect(world, ...) world_expect_at(world, __FILE__, __LINE__, __VA_ARGS__)
void world_expect_at(struct world *world, const char *file, int line, const char *expected);
/* The last call was answered with this at once, and nothing else was said. */
#define world_expect_answer(world, ...)                                                            \
    world_expect_answer_at(world, __FILE__, __LINE__, __VA_ARGS__)
void world_expect_answer_at(struct world *world, const char *file, int line, const char *expected);
void world_forget(struct world *world);

/* The answer of a call, or NULL while it waits. */
const struct world_answer *world_answer(const struct world *world, uint64_t call);
/* Joined, everything settled: the session. Fails the test otherwise. */
uint32_t world_joined(struct world *world, const char *job, uint32_t index, uint32_t nonce);
/* The last order of that kind that this ps got; NULL: none. */
const struct world_order *
world_told(const struct world *world, uint32_t ps, enum world_order_kind kind);
/* Is one of the sentences of Stats.waits this? */
bool world_waits(struct world *world, const char *text);
bool world_logged(const struct world *world, const char *text);
