/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.h -- barriers: members that wait for each other under a name, round after round. Private
 * to this folder.
 *
 *   barrier    a name, its tasks in one order, the last round that is over and how it ended
 *     places   one per task: the last round that it has come to, and by which attempt
 *     waiting  calls that are to be answered at the end of the open round; an arrival outlives its
 *              call
 *
 * A round is open when a task has come to it: round + 1, where `round` is the last that is over.
 */
#ifndef JUDGE_BARRIER_H
#define JUDGE_BARRIER_H

#include <string.h>

#include "judge_state.h"

#define JUDGE_BARRIERS_MAX                                                                         \
    256u /* names at a time; the one that was used least lately gives way                          \
          */
#define JUDGE_BARRIER_NAME_BYTES_MAX 256u
#define JUDGE_ARRIVALS_OF_TASK_MAX                                                                 \
    16u /* to rounds that are open: else one task would have all names */

/* A task of the job chief, or worker: no others are members. */
struct judge_place {
    bool chief;
    uint32_t index;
    uint64_t round;   /* the last that it has come to; 0: none */
    uint64_t attempt; /* of the session that came to it */
};

struct judge_barrier {
    struct judge_row row;
    LINKS(struct judge_barrier) in_judge; /* that was used least lately first */
    struct key_entry by_name;
    LIST(struct judge_waiting) waiting;
    size_t bytes;      /* of this struct, and the name behind it */
    bool of_all;       /* its calls name no tasks: all members */
    bool open;         /* round + 1 is */
    bool end_known;    /* of `round` */
    uint64_t round;    /* the last that is over */
    uint64_t until_us; /* of the open one */
    uint32_t timeout_ms;
    struct sumac_error end; /* of `round`; OK: all had come */
    uint32_t place_count, come_count;
    struct judge_place *places;
    const char *name; /* behind this struct */
};

struct judge_waiting {
    LINKS(struct judge_waiting) in_judge;
    LINKS(struct judge_waiting) of_barrier;
    uint64_t call;
    struct judge_barrier *barrier;
    struct judge_session *session;
};

/* The most tasks of one barrier. */
static inline uint32_t judge_barrier_tasks_max(const struct judge *judge)
{
    const uint32_t given = judge->config->barrier_tasks_max;

    return given != 0 ? given : WIRE_BARRIER_TASKS_MAX;
}

static inline const char *judge_barrier_job(const struct judge_place *place)
{
    return place->chief ? "chief" : "worker";
}

static inline bool judge_barrier_is_job(const char *job, bool chief)
{
    return strcmp(job, chief ? "chief" : "worker") == 0;
}

/* Has it come to the open round? */
static inline bool
judge_barrier_has(const struct judge_barrier *barrier, const struct judge_place *place)
{
    return barrier->open && place->round == barrier->round + 1;
}

/* NULL: it is none of the barrier's tasks. */
struct judge_place *
judge_barrier_place(const struct judge_barrier *barrier, const char *job, uint32_t index);
/* NULL: ps 0 has never heard of it. */
struct judge_task *judge_barrier_task(const struct judge *judge, const struct judge_place *place);
/* NULL: there is none of that name. */
struct judge_barrier *judge_barrier_find(const struct judge *judge, const char *name);
/* With so many places, all of tasks that have never come; NULL: no memory. */
struct judge_barrier *
judge_barrier_add(struct judge *judge, const char *name, uint32_t place_count);
/* It has other places from here on, zeroed, and the caller gives back those before them. False: no
 * memory. */
bool judge_barrier_resize(struct judge *judge, struct judge_barrier *barrier, uint32_t place_count);
void judge_barrier_places_give(struct judge *judge, const struct judge_barrier *barrier);
/* What its row says has changed. */
void judge_barrier_changed(struct judge *judge, struct judge_barrier *barrier);
void judge_barrier_forget(struct judge *judge, struct judge_barrier *barrier);
void judge_barriers_deinit(struct judge *judge);
/* The most that they take. */
uint64_t judge_barriers_bytes_max(const struct judge *judge);
/* barrier_ends.c */

/* In the step's arena; NULL: no memory. */
const wire_message *
judge_barrier_reply(struct judge *judge, uint64_t round, const struct sumac_error *end);
void judge_barrier_drop_waiting(struct judge *judge, struct judge_waiting *waiting);
/* The open round is over, so. */
void judge_barrier_end(
    struct judge *judge, struct judge_barrier *barrier, const struct sumac_error *end);
/* As a round is opened: is somebody gone already? Then it is over. */
void judge_barrier_look_for_gone(struct judge *judge, struct judge_barrier *barrier);

/* barrier_text.c */

/* "worker 1, last heard from 2.1 s ago" */
const char *judge_barrier_place_text(const struct judge *judge, const struct judge_place *place);
/* "worker 1, last heard from 2.1 s ago, waiting at barrier "b", and worker 2, never heard from" */
const char *
judge_barrier_missing_text(const struct judge *judge, const struct judge_barrier *barrier);
const char *
judge_barrier_tasks_text(const struct judge *judge, const struct judge_barrier *barrier);
const char *
judge_barrier_wanted_text(const struct judge *judge, const wire_barrier_request *request);
/* "round 3 of barrier epoch waits for worker 1, last heard from 2.1 s ago; 1 of 2 tasks have come,
 * it gives up in 12 s" */
const char *judge_barrier_wait(const struct judge *judge, const struct judge_barrier *barrier);

#endif
