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
#ifndef CONTROLLER_BARRIER_H
#define CONTROLLER_BARRIER_H

#include <string.h>

#include "controller_state.h"

#define CONTROLLER_BARRIERS_MAX                                                                    \
    256u /* names at a time; the one that was used least lately gives way                          \
          */
#define CONTROLLER_BARRIER_NAME_BYTES_MAX 256u
#define CONTROLLER_ARRIVALS_OF_TASK_MAX                                                            \
    16u /* to rounds that are open: else one task would have all names */

/* A task of the job chief, or worker: no others are members. */
struct controller_place {
    bool chief;
    uint32_t index;
    uint64_t round;   /* the last that it has come to; 0: none */
    uint64_t attempt; /* of the session that came to it */
};

struct controller_barrier {
    struct controller_row row;
    LINKS(struct controller_barrier) in_controller; /* that was used least lately first */
    struct key_entry by_name;
    LIST(struct controller_waiting) waiting;
    size_t bytes;      /* of this struct, and the name behind it */
    bool of_all;       /* its calls name no tasks: all members */
    bool open;         /* round + 1 is */
    bool end_known;    /* of `round` */
    uint64_t round;    /* the last that is over */
    uint64_t until_us; /* of the open one */
    uint32_t timeout_ms;
    struct sumac_error end; /* of `round`; OK: all had come */
    uint32_t place_count, come_count;
    struct controller_place *places;
    const char *name; /* behind this struct */
};

struct controller_waiting {
    LINKS(struct controller_waiting) in_controller;
    LINKS(struct controller_waiting) of_barrier;
    uint64_t call;
    struct controller_barrier *barrier;
    struct controller_session *session;
};

/* The most tasks of one barrier. */
static inline uint32_t controller_barrier_tasks_max(const struct controller *controller)
{
    const uint32_t given = controller->config->barrier_tasks_max;

    return given != 0 ? given : WIRE_BARRIER_TASKS_MAX;
}

static inline const char *controller_barrier_job(const struct controller_place *place)
{
    return place->chief ? "chief" : "worker";
}

static inline bool controller_barrier_is_job(const char *job, bool chief)
{
    return strcmp(job, chief ? "chief" : "worker") == 0;
}

/* Has it come to the open round? */
static inline bool controller_barrier_has(
    const struct controller_barrier *barrier, const struct controller_place *place)
{
    return barrier->open && place->round == barrier->round + 1;
}

/* NULL: it is none of the barrier's tasks. */
struct controller_place *
controller_barrier_place(const struct controller_barrier *barrier, const char *job, uint32_t index);
/* NULL: ps 0 has never heard of it. */
struct controller_task *
controller_barrier_task(const struct controller *controller, const struct controller_place *place);
/* NULL: there is none of that name. */
struct controller_barrier *
controller_barrier_find(const struct controller *controller, const char *name);
/* With so many places, all of tasks that have never come; NULL: no memory. */
struct controller_barrier *
controller_barrier_add(struct controller *controller, const char *name, uint32_t place_count);
/* It has other places from here on, zeroed, and the caller gives back those before them. False: no
 * memory. */
bool controller_barrier_resize(
    struct controller *controller, struct controller_barrier *barrier, uint32_t place_count);
void controller_barrier_places_give(
    struct controller *controller, const struct controller_barrier *barrier);
/* What its row says has changed. */
void controller_barrier_changed(struct controller *controller, struct controller_barrier *barrier);
void controller_barrier_forget(struct controller *controller, struct controller_barrier *barrier);
void controller_barriers_deinit(struct controller *controller);
/* The most that they take. */
uint64_t controller_barriers_bytes_max(const struct controller *controller);
/* barrier_ends.c */

/* In the step's arena; NULL: no memory. */
const wire_message *controller_barrier_reply(
    struct controller *controller, uint64_t round, const struct sumac_error *end);
void controller_barrier_drop_waiting(
    struct controller *controller, struct controller_waiting *waiting);
/* The open round is over, so. */
void controller_barrier_end(
    struct controller *controller, struct controller_barrier *barrier,
    const struct sumac_error *end);
/* As a round is opened: is somebody gone already? Then it is over. */
void controller_barrier_look_for_gone(
    struct controller *controller, struct controller_barrier *barrier);

/* barrier_text.c */

/* "worker 1, last heard from 2.1 s ago" */
const char *controller_barrier_place_text(
    const struct controller *controller, const struct controller_place *place);
/* "worker 1, last heard from 2.1 s ago, waiting at barrier "b", and worker 2, never heard from" */
const char *controller_barrier_missing_text(
    const struct controller *controller, const struct controller_barrier *barrier);
const char *controller_barrier_tasks_text(
    const struct controller *controller, const struct controller_barrier *barrier);
const char *controller_barrier_wanted_text(
    const struct controller *controller, const wire_barrier_request *request);
/* "round 3 of barrier epoch waits for worker 1, last heard from 2.1 s ago; 1 of 2 tasks have come,
 * it gives up in 12 s" */
const char *controller_barrier_wait(
    const struct controller *controller, const struct controller_barrier *barrier);

#endif
