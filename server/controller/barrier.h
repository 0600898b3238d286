/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.h -- barriers: members that wait for each other under a name, round after round. Private
 * to this folder.
 *
 *   barrier    a name, its tasks in one order, the last finished round and its result
 *     places   one per task: the last round that the task arrived at, and the attempt that arrived
 *     waiting  calls to answer when the open round ends. An arrival outlives its call.
 *
 * `round` is the last finished round. The round after it opens when its first task arrives.
 */
#pragma once

#include <string.h>

#include "controller_state.h"

/* Names at a time; a new name replaces the least recently used one. */
#define CONTROLLER_BARRIERS_MAX 256u
#define CONTROLLER_BARRIER_NAME_BYTES_MAX 256u
/* At open rounds; without a limit one task could take all names. */
#define CONTROLLER_ARRIVALS_OF_TASK_MAX 16u

/* A task of the job chief or worker. Tasks of other jobs are not members. */
struct controller_place {
    bool chief;
    uint32_t index;
    uint64_t round;   /* the last that the task arrived at; 0: none */
    uint64_t attempt; /* of the session that arrived */
};

struct controller_barrier {
    struct controller_row row;
    LINKS(struct controller_barrier) in_controller; /* least recently used first */
    struct key_entry by_name;
    LIST(struct controller_waiting) waiting;
    size_t bytes;                 /* of this struct and the name behind it */
    bool of_all;                  /* its calls name no tasks: it waits for all members */
    bool open;                    /* round + 1 is open */
    bool end_known;               /* of `round` */
    uint64_t round;               /* the last finished round */
    uint64_t opened_us, until_us; /* the open round's begin and deadline, … */
    uint32_t timeout_ms;          /* … and the timeout that gave it */
    struct sumac_error end;       /* of `round`; OK: every task arrived */
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
    return controller->config->barrier_tasks_max != 0 ? controller->config->barrier_tasks_max
                                                      : WIRE_BARRIER_TASKS_MAX;
}

static inline const char *controller_barrier_job(const struct controller_place *place)
{
    return place->chief ? "chief" : "worker";
}

static inline bool controller_barrier_is_job(const char *job, bool chief)
{
    return strcmp(job, chief ? "chief" : "worker") == 0;
}

/* Has this task arrived at the open round? */
static inline bool controller_barrier_has(
    const struct controller_barrier *barrier, const struct controller_place *place)
{
    return barrier->open && place->round == barrier->round + 1;
}

/* NULL: the barrier does not have this task. */
struct controller_place *
controller_barrier_place(const struct controller_barrier *barrier, const char *job, uint32_t index);
/* NULL: ps 0 does not know the task. */
struct controller_task *
controller_barrier_task(const struct controller *controller, const struct controller_place *place);
/* NULL: no barrier has that name. */
struct controller_barrier *
controller_barrier_find(const struct controller *controller, const char *name);
/* Add a barrier with place_count zeroed places. NULL: no memory. */
struct controller_barrier *
controller_barrier_add(struct controller *controller, const char *name, uint32_t place_count);
/* Give the barrier new, zeroed places. The caller frees the old places. False: no memory. */
bool controller_barrier_resize(
    struct controller *controller, struct controller_barrier *barrier, uint32_t place_count);
void controller_barrier_places_give(
    struct controller *controller, const struct controller_barrier *barrier);
/* A value in the barrier's row has changed. */
void controller_barrier_changed(struct controller *controller, struct controller_barrier *barrier);
void controller_barrier_forget(struct controller *controller, struct controller_barrier *barrier);
void controller_barriers_deinit(struct controller *controller);
/* The maximum memory of all barriers. */
uint64_t controller_barriers_bytes_max(const struct controller *controller);
/* barrier_ends.c */

/* In the step's arena. */
const wire_message *controller_barrier_reply(
    struct controller *controller, uint64_t round, const struct sumac_error *end);
void controller_barrier_drop_waiting(
    struct controller *controller, struct controller_waiting *waiting);
/* End the open round with this result. */
void controller_barrier_end(
    struct controller *controller, struct controller_barrier *barrier,
    const struct sumac_error *end);
/* Called when a round opens. Ends the round if one of its tasks is gone already. */
void controller_barrier_look_for_gone(
    struct controller *controller, struct controller_barrier *barrier);
/* "round 3 of barrier epoch waits for worker 1 (last heard from 2.1 s ago); 1 of 2 tasks have come,
 * it gives up in 12 s" */
const char *controller_barrier_wait(
    const struct controller *controller, const struct controller_barrier *barrier);

/* ---- for the other files of the controller */
void controller_barrier_call(struct controller *controller, const struct lane_event *event);
/* The session is closing: its calls fail, and its arrivals still count. */
void controller_barriers_of_session_fail(
    struct controller *controller, const struct controller_session *session);
/* A session of that task is settled. If the task has no other session, ends the rounds that lack
 * the task. */
void controller_barriers_settled(struct controller *controller, const struct controller_task *task);
void controller_barriers_tick(struct controller *controller);
/* The controller starts from its records: every deadline starts again. */
void controller_barriers_begin_again(struct controller *controller);
void controller_barriers_fail(struct controller *controller, const struct sumac_error *error);
void controller_barrier_call_forget(struct controller *controller, uint64_t call);
