/* SPDX-License-Identifier: Apache-2.0 */
/* controller_desk.h -- a controller with records, for its unit tests. Its effects are a transcript.
 * The disk writes, and the only ps, ps 0, obeys, when the test says so. At the end of a
 * conversation the records must make another controller with the same state.
 *
 * Records and orders:
 *
 *     record 4 · add · meet grads 3 OK
 *
 * Answers, and the end:
 *
 *     created 1 of 2 shards, assign · joined 2, before 7 voided 2 · left at 7 · round 2 OK
 *     · failed TIMED_OUT · exit STATE_LOST
 */
#pragma once

#include "controller_state.h"
#include "controller_written.h"

struct desk {
    struct lane_config config;
    struct memory memory;
    bool out_of_memory, lost;
    struct controller *controller;
    uint64_t now_us, calls, drawn;
    struct written written; /* the records, … */
    uint64_t on_disk;       /* … up to this one on disk */
    uint64_t orders[64];    /* numbers of those that are not obeyed yet */
    bool closes[64];        /* they ask where a session stands */
    uint32_t order_count;
    uint64_t last_order,
        orders_before;        /* the largest, by this controller and by the one before it */
    uint64_t last_collective; /* number of the last that ended a round */
    uint8_t session[16];      /* of the last join */
    uint32_t shards;          /* of what is created; 0: 2 */
    char text[16384];
};

/* The transcript since the last time. */
void desk_expect(struct desk *desk, const char *text);
void desk_step(struct desk *desk, struct lane_event event);

/* First of all: START, and the stream to ps 0 is there. */
void desk_start(struct desk *desk);
/* And all that follows is on disk and obeyed. */
void desk_begin(struct desk *desk);
/* The process ends, and another one begins with what it has recorded. */
void desk_begin_again(struct desk *desk);
struct controller *desk_replayed(const struct desk *desk);
void desk_compare(const struct desk *desk);

/* The disk has written all records. */
void desk_write_down(struct desk *desk);
/* ps 0 obeys the oldest order; of a session every push counts up to 7, but for 3 and 5. */
void desk_obey_one(struct desk *desk);
void desk_obey(struct desk *desk);
void desk_settle_down(struct desk *desk);

/* Worker 0; nonce 100 and above: an observer. The process of that number on a host. */
void desk_join(struct desk *desk, uint32_t nonce);
/* It is answered, too. */
void desk_joined(struct desk *desk, uint32_t nonce);
/* Any worker; it is answered. */
void desk_join_as(struct desk *desk, uint32_t worker, uint32_t nonce);
/* Of the session that joined last. */
void desk_renew(struct desk *desk);
void desk_leave(struct desk *desk);
void desk_define(struct desk *desk, const char *name);
void desk_create(struct desk *desk, const char *name, bool assigned);
void desk_delete(struct desk *desk, const char *name);
/* It comes to a barrier of worker 0 and, if that is another one, of worker `last`. */
void desk_come(struct desk *desk, const char *name, uint64_t round, uint32_t last);

/* ps 0 proposes that the round ends so. */
void desk_propose(struct desk *desk, const char *name, uint64_t round, enum sumac_status status);

int desk_setup(void **state);
int desk_teardown(void **state);
#define DESK_TEST(name) FIXTURE_TEST(name, struct desk *const desk, desk_setup, desk_teardown)
