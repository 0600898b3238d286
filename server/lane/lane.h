/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h -- the whole behaviour of a ps: one ordered log of operations over rows of bytes, run by
 * one thread.
 *
 * lane_step takes one event and gives effects: no socket, file, clock, lock, thread or malloc
 * inside. The ps (server/ps.c) and the simulator (tests/sim) run the same objects. Time and
 * randomness are fields of events. One event seldom works much longer than a millisecond: vector
 * work above LANE_INLINE_BYTES is an effect, COMPUTE, that the driver runs in slices while it keeps
 * delivering events; long pulls go out a message at a time, and lists of variables a page at a
 * time; and what a step does is counted (lane_has_time, step.h), so that the rest goes on with the
 * next event, for which a WAKE asks at once. What is left is bounded by what one message may name:
 * docs/ARCHITECTURE.md says which, and for how long.
 *
 * Its neighbour on ps 0 is the controller (controller.h). A lane hears of it by orders and tells it
 * by reports, on a stream as any other: that of ps 0's own lane stays in the process (ps_core.h).
 * Events and effects are those of a whole ps, so that a driver has one kind of each; those marked *
 * are the controller's, and no lane's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "rules.h"
#include "rpcs.h"
#include "run_identity.h"
#include "update.h"
#include "wire.h"

#define LANE_PS_MAX 256
#define LANE_INLINE_BYTES 262144u
#define LANE_COPIED_PULL_BYTES_MAX 262144u
#define LANE_PULL_CHUNK_BYTES 262144u
#define LANE_GATHERED_BYTES_MAX 16384u /* a run of a pull that is copied rather than lent */
#define LANE_PIECES_PER_PART_MAX 65536u
#define LANE_ENDED_PER_STEP_MAX 8192u
#define LANE_PARTS_PER_SESSION_MAX 1024u /* staged or refused, not done */
#define LANE_CLOSED_SESSIONS_MAX 1024u   /* remembered, so that their clients can be told */
#define LANE_VOIDED_PER_SESSION_MAX                                                                \
    1024u /* remembered by a ps until acked_through: as many may be under way */
#define LANE_EXIT_NO_MEMORY 137 /* as of a process that the system killed for want of memory */
#define LANE_DEADLINE_AUTO                                                                         \
    UINT32_MAX /* of a step with a quorum: by what the last ones took (controller/quorum.c) */
#define LANE_QUIET_MS 3000u /* a sign of life comes each second: by then one is really late */
#define LANE_REPORTS_APART_MAX 12u /* report_ms between lines of a wait that has no limit */
#define LANE_PULLS_BYTES_MAX 67108864u
#define LANE_COLLECTIVE_BYTES_MAX 536870912u
#define LANE_STREAMS_MAX 8192u
#define LANE_NO_POOL UINT64_MAX
#define LANE_HELLO_MS_MAX 5000u
#define LANE_EXIT_MISCONFIGURED                                                                    \
    2 /* the cluster's descriptions disagree: starting again is no use */
#define LANE_STREAM_OWN                                                                            \
    UINT64_MAX /* on ps 0, the number of the stream that its controller's orders come on */
#define LANE_EXIT_PS_LOST                                                                          \
    138 /* a ps, or its state, is lost: a scheduler may start the whole run again */

struct combine_slice;
struct plugins;

struct lane_config {
    uint32_t index;                  /* of this task of job ps */
    const char *const *ps_addresses; /* as configured; NULL entries where unknown */
    uint32_t ps_count;               /* 0: told only itself, waits to be told */
    const char *const *members_jobs; /* the chiefs and workers of the configuration, parallel
                                        arrays; may be none */
    const uint32_t *members_indices;
    uint32_t member_count;
    bool members_partial; /* there may be others beside them: a map from index to address */
    const char *const *members_addresses; /* theirs; NULL: not known */
    struct run_identity identity;         /* of this process */
    uint32_t user;                        /* its effective user id, for Stats */
    /* Of ps 0: how many members begin with synchronous step 1; 0: the listed ones, if that list is
     * whole. Do steps fail that lack a member which was lost? */
    uint32_t step_members;
    /* Of ps 0: a synchronous step is taken with so many contributions, or more; 0: with all. */
    uint32_t step_quorum;
    uint32_t step_deadline_ms; /* after its first one, or LANE_DEADLINE_AUTO */
    bool loss_fails;
    bool places_by_bytes;     /* of ps 0: a shard is on the ps that has the fewest; else in turn */
    uint64_t incarnation;     /* random, not 0 */
    const char *version;      /* of the program, for Stats */
    uint64_t started_us;      /* now_us at the start */
    uint32_t lease_ms;        /* 10 000 */
    uint32_t rejoin_ms;       /* 10 000: no member open for so long ends the run */
    uint32_t rejoin_first_ms; /* 60 000: the same while a listed member has never joined */
    uint32_t ps_lost_ms;      /* 60 000 */
    /* 5 000: how often a wait says so; one without a limit less and less often. */
    uint32_t report_ms;
    uint32_t terminate_ms;      /* 5 000: how long SIGTERM waits for what is in flight */
    uint32_t sessions_max;      /* 32 */
    uint32_t streams_max;       /* that are open; 0: LANE_STREAMS_MAX, shared out (places.c) */
    uint64_t staging_bytes_max; /* half is floors: a session's grant is this / 2 / sessions_max */
    uint64_t pool_bytes_max;    /* of it, for large parts; 0: half; LANE_NO_POOL: all is floors */
    uint64_t view_bytes_max;    /* 0: as much as the variables take */
    uint64_t pulls_bytes_max;   /* of pulls that wait or are under way; 0: LANE_PULLS_BYTES_MAX */
    uint64_t collective_bytes_max; /* of rounds of collectives; 0: LANE_COLLECTIVE_BYTES_MAX */
    uint64_t state_bytes_max; /* values and slots, and what is kept beside them; 0: as much as the
                                 memory gives */
    /* Terms of the published formula, for Stats. */
    uint64_t base_bytes, grpc_memory_bytes_max, unread_answers_bytes_max;
    uint32_t connections_max, calls_max; /* likewise */
    bool records; /* emit RECORD, and answer when RECORDED has come (durability journal) */
    /* 0: the constants above. The simulator's are a few bytes, so that tiny variables take every
     * path of large ones. */
    uint32_t inline_bytes, copied_pull_bytes_max, pull_chunk_bytes, block_bytes, gathered_bytes_max;
    uint32_t kept_row_bytes_min;
    /* 0: LANE_PARTS_PER_SESSION_MAX and so on. The simulator's are a few, and are reached. */
    uint32_t parts_per_session_max, voided_per_session_max, closed_sessions_max;
    uint32_t ended_per_step_max;   /* shards of an operation, as far as the step has time for them;
                                      0: LANE_ENDED_PER_STEP_MAX. The simulator's is a few, too */
    uint32_t settled_sessions_max; /* of the controller; 0: CONTROLLER_SETTLED_MAX */
    /* Of one barrier: each may wait by a call, which is one of its method. 0:
     * WIRE_BARRIER_TASKS_MAX */
    uint32_t barrier_tasks_max;
    /* Of the functions that the ps was started with; lent for the lane's life. NULL: none. */
    const struct plugins *plugins;
    uint64_t broken; /* 0; tests/sim --break sets a rule of lib/session/rules.h */
};

enum lane_event_kind {
    LANE_EVENT_START,           /* first of all; cluster_id */
    LANE_EVENT_STREAM_OPENED,   /* stream, stream_kind */
    LANE_EVENT_STREAM_WRITABLE, /* stream: opened for answers, or the last one is out */
    LANE_EVENT_STREAM_CLOSED,   /* stream: gone, from either side */
    LANE_EVENT_PUSH,            /* stream, push_request, payload */
    LANE_EVENT_PULL,            /* stream, pull_request, payload */
    LANE_EVENT_ORDER,           /* stream, order: from ps 0 */
    LANE_EVENT_REPORT,          /* * ps, report: to ps 0, from that ps */
    LANE_EVENT_PEER_UP, /* * ps: the stream to it is writable (each time: the last order is out) */
    LANE_EVENT_PEER_DOWN, /* * ps, text, reason (of an exit): no stream to it; the driver goes on
                             trying, and says each failure */
    LANE_EVENT_CALL,      /* call, call_kind, request: an unary call */
    LANE_EVENT_CALL_CANCELLED, /* * call: its client is gone */
    LANE_EVENT_RELEASED,       /* hold: gRPC has let go of bytes that were lent */
    LANE_EVENT_COMPUTED,       /* job */
    LANE_EVENT_RECORDED,       /* journal, record: it, and all before it, are on disk */
    LANE_EVENT_TERMINATE,      /* signal */
    LANE_EVENT_RUN_OVER,       /* ps_core's, on ps 0: the other ps are being told to end */
    LANE_EVENT_PS0_PROBED,     /* text; NULL: request, a ListReply: who answers at ps 0's address */
    LANE_EVENT_TICK,
};

/* Records are numbered for each by itself. */
/* What ends a ps from outside. */
enum lane_signal {
    LANE_SIGNAL_TERM,
    LANE_SIGNAL_INT,
    LANE_SIGNAL_HUP,
};

enum lane_journal { LANE_JOURNAL_OWN, LANE_JOURNAL_CONTROLLER, LANE_JOURNALS };

enum lane_stream_kind { LANE_STREAM_PUSH, LANE_STREAM_PULL, LANE_STREAM_PEER };

struct lane_event {
    enum lane_event_kind kind;
    bool follows;       /* of the same step as the event before: what that one said stays lent */
    uint64_t now_us;    /* monotonic */
    uint64_t random[2]; /* with START and CALL: fresh bits */
    uint64_t stream;    /* the driver's number for it, not 0, never used again */
    enum lane_stream_kind stream_kind;
    enum lane_journal journal;
    uint64_t call; /* the driver's number for it, not 0, never used again */
    enum lane_call_kind call_kind;
    uint32_t ps;
    uint64_t hold, job, record;
    uint64_t cpu_us; /* with TICK: what the thread has worked since the last one; 0: not known */
    uint64_t resident_bytes;                   /* with TICK and CALL_STATS, for Stats */
    uint64_t connections, connections_refused; /* likewise */
    enum lane_signal signal;                   /* with TERMINATE: what came */
    const char *text;
    enum sumac_reason reason;
    const wire_message *request; /* of a call: wire_join_request … */
    const wire_push_request *push_request;
    const wire_pull_request *pull_request;
    const wire_peer_order *order;
    const wire_peer_report *report;
    const struct span *payload;
    size_t payload_spans;
    /* ps_core's, on ps 0. */
    uint64_t cluster_id;          /* with START: as its controller has minted it */
    const struct lane_told *told; /* with CALL_STATS: what its controller adds */
};

/* Of ps 0's controller, for Stats. */
struct lane_told {
    char *const *waits; /* sentences: what it waits for */
    uint32_t wait_count;
    uint64_t waits_left_out;
    uint64_t sessions_bytes_max; /* that it keeps of sessions */
};

enum lane_effect_kind {
    LANE_EFFECT_ANSWER,       /* stream, push_answer: not writable again until told */
    LANE_EFFECT_PULLED,       /* stream, pull_answer, payload: likewise */
    LANE_EFFECT_CLOSE_STREAM, /* stream, error */
    LANE_EFFECT_REPLY,        /* call, reply: finish the call with OK */
    LANE_EFFECT_FAIL,         /* call, error */
    LANE_EFFECT_DIAL,         /* * ps, text: keep a peer stream open to this address */
    LANE_EFFECT_ORDER,        /* * ps, order: not writable again until PEER_UP */
    LANE_EFFECT_REPORT,       /* stream, report: to ps 0, on the stream it opened here */
    LANE_EFFECT_COMPUTE,      /* compute: run every slice, then COMPUTED(job) */
    LANE_EFFECT_RECORD,       /* journal, record, body: write it, the spans one after the other */
    LANE_EFFECT_LOG,          /* text: one line, noun then value */
    LANE_EFFECT_SERVING,      /* serving: what health says */
    LANE_EFFECT_EXIT, /* exit_code, text, error: flush what is out, end what is open with the error,
                         exit */
    LANE_EFFECT_WAKE, /* at_us: a TICK is wanted then (the earliest counts) */
    LANE_EFFECT_RUN_OVER, /* * for ps_core: no lease counts any more; ps 0 ends the run */
};

/* Bytes to send. hold 0: copied by the driver at once; else lent until RELEASED(hold), one RELEASED
 * for each. */
struct lane_bytes {
    struct span bytes;
    uint64_t hold;
};

/* Vector work in independent slices, each at most about a millisecond. Slices may run at once, on
 * any thread; they touch nothing but the memory that they name. Valid until COMPUTED. */
struct lane_compute {
    uint64_t job;
    uint32_t slice_count;
    struct update_slice *slices;          /* of updates; or … */
    const struct combine_slice *combines; /* … of a round of a collective */
};

/* Lent until the next lane_step. What reveals a record is said once RECORDED has told that it is on
 * disk. */
struct lane_effect {
    enum lane_effect_kind kind;
    uint64_t stream, call, record;
    enum lane_journal journal;
    uint32_t ps;
    uint64_t at_us;
    int exit_code;
    bool serving;
    const char *text;
    const wire_push_answer *push_answer;
    const wire_pull_answer *pull_answer;
    const struct lane_bytes *payload;
    uint32_t payload_count;
    const wire_message *reply;
    const wire_peer_order *order;
    const wire_peer_report *report;
    const struct lane_compute *compute;
    const struct span *body;
    uint32_t body_count;
    struct sumac_error error; /* its text is not cleared beyond its end */
};

struct lane_effects {
    struct lane_effect *items;
    uint32_t count;
    uint32_t took_us; /* of the lane, about, as its work was counted */
};

struct lane;

/* Gives  a lane, or NULL when the source has no memory. Copies the config's strings. */
struct lane *lane_create(const struct lane_config *config, const struct memory *memory);
void lane_destroy(struct lane *lane);

/* One event. The effects, in order, are lent until the next step; the caller carries out all of
 * them. */
void lane_step(struct lane *lane, const struct lane_event *event, struct lane_effects *effects);

/* Has the last step, with what followed it, done as much as a step should? */
bool lane_step_is_long(const struct lane *lane);

/* Before its first step: take over what a record says, whole and in one piece, after those before
 * it. When all have been, it begins with START as any other. Fails  DATA_LOSS: it is none, or does
 * not follow. RESOURCE_EXHAUSTED. */
enum sumac_status
lane_replay(struct lane *lane, const struct span *record, struct sumac_error *error);

/* 0: ps 0, which mints it, has not called yet. */
uint64_t lane_cluster_id(const struct lane *lane);
/* Is a PS0_PROBED wanted: does this ps wait for ps 0, or for the first join, and who answers at ps
 * 0's address is not known to be the ps 0 that called? */
bool lane_seeks_ps0(const struct lane *lane);
/* host:port; NULL: this ps does not know the address. Lent until the next step. */
const char *lane_ps0_address(const struct lane *lane);
/* Lent for the lane's life, with the strings. */
const struct lane_config *lane_config(const struct lane *lane);

/* Has the stream pulls that are neither answered nor cancelled? */
bool lane_stream_has_pulls(const struct lane *lane, uint64_t stream);

/* For the simulator's checker: a shard's present value, copied out. Returns its bytes, or 0: not
 * held here, or busy. */
uint64_t lane_peek(const struct lane *lane, uint64_t shard_id, uint8_t *out, uint64_t out_bytes);
