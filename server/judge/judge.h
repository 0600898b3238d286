/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h -- the coordinator on ps 0: sessions, leases, membership, the catalogue, the end of the
 * run.
 *
 * The one judge of who is alive. judge_step takes one event and gives effects, as lane_step does.
 * It speaks to every ps, its own included, only by orders and reports (proto: Peer), so a cluster
 * of one runs the same code as a cluster of many: that an order for ps 0 stays in the process is
 * ps_core.h's doing.
 *
 * What the judge expects of every ps's lane:
 * - Each order with a number is answered by a report with that number; orders come in their order.
 *   ps 0 gets a hello of its own too: at the start, and again when it learns addresses. A hello
 *   that expects another incarnation is answered, so that the judge learns of it, and not taken:
 *   the run ends, and that ps belongs to the next one.
 * - `open` is answered with the slowest member's clock; a ps starts the session at the larger of
 *   that and the order's.
 * - `close` is answered with a close_report, also when it is given again; `open` of a session that
 *   is there, and `add_shards`, `publish`, `delete`, `decide` that were obeyed before, do nothing.
 * - `assigned` names a variable once all shards here that have bytes were assigned; a report after
 *   a new hello says it again.
 * - `end` is obeyed by finishing what is in flight, answering, then exiting. ps 0 is given it last.
 *
 * Where the configuration has records, each step that changes what must not be lost ends with one
 * (judge_rows.h): numbered from 1, apart from the lane's. What reveals it – answers, orders, that
 * the run is over – is said once RECORDED has told that it is on disk.
 *
 * Pure like the lane: no clock, socket, lock or malloc. Owns its copies of everything that it is
 * told.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "lane.h"

struct judge;

enum judge_event_kind {
    JUDGE_EVENT_START, /* first of all; random */
    /* call, call_kind, request: join, renew, leave, barrier, create, delete; random */
    JUDGE_EVENT_CALL,
    JUDGE_EVENT_CALL_CANCELLED, /* call */
    JUDGE_EVENT_PEER_UP,   /* ps: the stream to it is writable (each time: the last order is out) */
    JUDGE_EVENT_PEER_DOWN, /* ps, text, reason (of an exit): no stream to it */
    JUDGE_EVENT_REPORT,    /* ps, report */
    JUDGE_EVENT_RECORDED,  /* record: it, and all before it, are on disk */
    JUDGE_EVENT_TICK,      /* cpu_us */
    JUDGE_EVENT_TERMINATE, /* interrupted (by SIGINT): no more joins or creates */
};

struct judge_event {
    enum judge_event_kind kind;
    bool follows;       /* of the same step as the event before: what that one said stays lent */
    uint64_t now_us;    /* monotonic */
    uint64_t random[2]; /* fresh bits */
    uint64_t call;
    enum lane_call_kind call_kind;
    const wire_message *request;
    uint32_t ps;
    const wire_peer_report *report;
    const char *text;
    enum sumac_reason reason;
    uint64_t record;
    uint64_t cpu_us;  /* what the thread has worked since the last tick; 0: not known */
    bool interrupted; /* with TERMINATE: by SIGINT, not SIGTERM */
};

enum judge_effect_kind {
    JUDGE_EFFECT_REPLY,    /* call, reply: finish the call with OK */
    JUDGE_EFFECT_FAIL,     /* call, error */
    JUDGE_EFFECT_DIAL,     /* ps, text: keep a stream open to this ps, at this address */
    JUDGE_EFFECT_ORDER,    /* ps, order: not writable again until PEER_UP */
    JUDGE_EFFECT_RECORD,   /* record, body: journal it, the spans one after the other */
    JUDGE_EFFECT_LOG,      /* text: one line, noun then value */
    JUDGE_EFFECT_RUN_OVER, /* no lease counts any more; the other ps are told to end, then ps 0 */
    JUDGE_EFFECT_EXIT,     /* error: what it has to say was lost, for want of memory */
    JUDGE_EFFECT_WAKE,     /* at_us: a TICK is wanted then (the earliest counts) */
};

/* Lent until the next step that does not follow; orders point into what the judge keeps until they
 * are answered. */
struct judge_effect {
    enum judge_effect_kind kind;
    uint32_t ps;
    uint64_t call, at_us, record;
    const char *text;
    const wire_message *reply;
    const wire_peer_order *order;
    const struct span *body;
    uint32_t body_count;
    struct sumac_error error;
};

struct judge_effects {
    const struct judge_effect *items;
    uint32_t count;
};

/* The config is ps 0's lane's, borrowed for the judge's life. Gives  a judge, or NULL. */
struct judge *judge_create(const struct lane_config *config, const struct memory *memory);
void judge_destroy(struct judge *judge);

/* One event, and its effects, in order: of this event alone. The caller carries out all of them. */
void judge_step(
    struct judge *judge, const struct judge_event *event, struct judge_effects *effects);

/* Before its first step: take over what a record says, whole and in one piece, after those before
 * it. When all have been, it begins with START as any other, and has what was under way done again.
 * Fails  DATA_LOSS: it is none, or does not follow, or there is no memory: not to be used then. */
enum sumac_status
judge_replay(struct judge *judge, const struct span *record, struct sumac_error *error);

/* What is being waited for, in sentences ("join of worker 1 waits for ps 1 at h2:2222, never heard
 * from"). */
struct judge_waits {
    char **items; /* lent until the next step that does not follow (judge_event.follows) */
    uint32_t count;
    uint64_t left_out; /* sentences that there was no room for */
};
/* For Stats; a look between two steps. */
void judge_list_waits(struct judge *judge, uint64_t now_us, struct judge_waits *waits);
/* The most that it keeps of sessions, and of the tasks that are known at present. */
uint64_t judge_sessions_bytes_max(const struct judge *judge);
uint64_t judge_cluster_id(const struct judge *judge);

#endif
