/* SPDX-License-Identifier: Apache-2.0 */
/* controller.h -- the controller on ps 0: sessions, leases, membership, the catalogue, the end of
 * the run.
 *
 * The one controller of who is alive. controller_step takes one event and gives effects, as
 * lane_step does. It speaks to every ps, its own included, only by orders and reports (proto:
 * Peer), so a cluster of one runs the same code as a cluster of many: that an order for ps 0 stays
 * in the process is ps_core.h's doing.
 *
 * What the controller expects of every ps's lane:
 * - Each order with a number is answered by a report with that number; orders come in their order.
 *   ps 0 gets a hello of its own too: at the start, and again when it learns addresses. A hello
 *   that expects another incarnation is answered, so that the controller learns of it, and not
 * taken: the run ends, and that ps belongs to the next one.
 * - `open` is answered with the slowest member's clock; a ps starts the session at the larger of
 *   that and the order's.
 * - `close` is answered with a close_report, also when it is given again; `open` of a session that
 *   is there, and `add_shards`, `publish`, `delete`, `decide` that were obeyed before, do nothing.
 * - `assigned` names a variable once all shards here that have bytes were assigned; a report after
 *   a new hello says it again.
 * - `end` is obeyed by finishing what is in flight, answering, then exiting. ps 0 is given it last.
 *
 * Where the configuration has records, each step that changes what must not be lost ends with one
 * (controller_rows.h): numbered from 1, apart from the lane's. What reveals it – answers, orders,
 * that the run is over – is said once RECORDED has told that it is on disk.
 *
 * Pure like the lane: no clock, socket, lock or malloc. Owns its copies of everything that it is
 * told.
 */
#pragma once

#include "lane.h"

struct controller;

enum controller_event_kind {
    CONTROLLER_EVENT_START, /* first of all; random */
    /* call, call_kind, request: join, renew, leave, barrier, create, delete; random */
    CONTROLLER_EVENT_CALL,
    CONTROLLER_EVENT_CALL_CANCELLED, /* call */
    CONTROLLER_EVENT_PEER_UP, /* ps: the stream to it is writable (each time: the last order is out)
                               */
    CONTROLLER_EVENT_PEER_DOWN, /* ps, text, reason (of an exit): no stream to it */
    CONTROLLER_EVENT_REPORT,    /* ps, report */
    CONTROLLER_EVENT_RECORDED,  /* record: it, and all before it, are on disk */
    CONTROLLER_EVENT_TICK,      /* cpu_us */
    CONTROLLER_EVENT_TERMINATE, /* signal: no more joins or creates */
};

struct controller_event {
    enum controller_event_kind kind;
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
    uint64_t cpu_us;         /* what the thread has worked since the last tick; 0: not known */
    enum lane_signal signal; /* with TERMINATE */
};

enum controller_effect_kind {
    CONTROLLER_EFFECT_REPLY,    /* call, reply: finish the call with OK */
    CONTROLLER_EFFECT_FAIL,     /* call, error */
    CONTROLLER_EFFECT_DIAL,     /* ps, text: keep a stream open to this ps, at this address */
    CONTROLLER_EFFECT_ORDER,    /* ps, order: not writable again until PEER_UP */
    CONTROLLER_EFFECT_RECORD,   /* record, body: journal it, the spans one after the other */
    CONTROLLER_EFFECT_LOG,      /* text: one line, noun then value */
    CONTROLLER_EFFECT_RUN_OVER, /* no lease counts any more; ps 0 ends the other ps, then itself */
    CONTROLLER_EFFECT_EXIT,     /* error: what it has to say was lost, for want of memory */
    CONTROLLER_EFFECT_WAKE,     /* at_us: a TICK is wanted then (the earliest counts) */
};

/* Lent until the next step that does not follow; orders point into what the controller keeps until
 * they are answered. */
struct controller_effect {
    enum controller_effect_kind kind;
    uint32_t ps;
    uint64_t call, at_us, record;
    const char *text;
    const wire_message *reply;
    const wire_peer_order *order;
    const struct span *body;
    uint32_t body_count;
    struct sumac_error error;
};

struct controller_effects {
    const struct controller_effect *items;
    uint32_t count;
};

/* The config is ps 0's lane's, borrowed for the controller's life. Gives  a controller, or NULL. */
struct controller *controller_create(const struct lane_config *config, const struct memory *memory);
void controller_destroy(struct controller *controller);

/* One event, and its effects, in order: of this event alone. The caller carries out all of them. */
void controller_step(
    struct controller *controller, const struct controller_event *event,
    struct controller_effects *effects);

/* Before the first step: take over one record, whole and in one piece, after the records before it.
 * After the last record the controller begins with START like any other, and has unfinished work
 * done again.
 * Fails  DATA_LOSS: not a record, out of order, or no memory. The controller is unusable then. */
enum sumac_status controller_replay(
    struct controller *controller, const struct span *record, struct sumac_error *error);

/* What is being waited for, in sentences ("join of worker 1 waits for ps 1 at h2:2222, never heard
 * from"). */
struct controller_waits {
    char **items; /* lent until the next step that does not follow (controller_event.follows) */
    uint32_t count;
    uint64_t left_out; /* sentences that there was no room for */
};
/* For Stats; a look between two steps. */
void controller_list_waits(
    struct controller *controller, uint64_t now_us, struct controller_waits *waits);
/* The most that it keeps of sessions, and of the tasks that are known at present. */
uint64_t controller_sessions_bytes_max(const struct controller *controller);
uint64_t controller_cluster_id(const struct controller *controller);
