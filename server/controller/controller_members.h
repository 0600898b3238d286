/* SPDX-License-Identifier: Apache-2.0 */
/* controller_members.h -- tasks and their sessions: who joins, is settled, counts in synchronous
 * steps, and ends the run. */
#pragma once

#include "controller_state.h"

/* sessions.c: tasks and sessions. */
void controller_tasks_start(struct controller *controller);
/* NULL: no such task is known. */
struct controller_task *
controller_task_find(const struct controller *controller, const wire_task_name *name);
/* Tasks to be spoken of. */
enum controller_tasks {
    CONTROLLER_TASKS_LISTED,
    CONTROLLER_TASKS_NEVER_JOINED, /* though listed */
    CONTROLLER_TASKS_UNFINISHED,   /* that have joined, and did not leave as done */
    CONTROLLER_TASKS_LOST,         /* that have joined, and did not leave */
    CONTROLLER_TASKS_DONE,
};
bool controller_tasks_any(const struct controller *controller, enum controller_tasks which);
uint32_t controller_tasks_count(const struct controller *controller, enum controller_tasks which);
/* "worker 0, worker 1, … 40 in all"; in the step's arena. */
const char *controller_tasks_text(const struct controller *controller, enum controller_tasks which);
/* If the table is full, forgets the task that left longest ago. NULL: no task may be forgotten,
 * the name is too long, or no memory. */
struct controller_task *
controller_task_find_or_add(struct controller *controller, const wire_task_name *name);
/* True if the task is not listed and has no session, and no client will ask how its last session
 * ended. */
bool controller_task_may_be_forgotten(
    struct controller *controller, const struct controller_task *task);
void controller_task_forget(struct controller *controller, struct controller_task *task);
/* The number of tasks that may be forgotten to make room. */
uint32_t controller_tasks_forgettable(struct controller *controller);
struct controller_session *
controller_session_find(const struct controller *controller, const uint8_t *id, size_t bytes);
struct controller_session *
controller_session_find_nonce(const struct controller *controller, const uint8_t *nonce);
/* Is `other` an earlier session of the same task, which is yet to be settled? */
bool controller_session_is_earlier(
    const struct controller_session *other, const struct controller_session *session);
/* NULL: not found. */
const struct controller_session *controller_session_find_earlier(
    const struct controller *controller, const struct controller_session *session);
/* NULL: no memory. */
struct controller_session *
controller_session_add(struct controller *controller, const void *id, const uint8_t *nonce);
void controller_session_forget(struct controller *controller, struct controller_session *session);
/* Since the last sign of life. */
uint32_t
controller_silent_ms(const struct controller *controller, const struct controller_session *session);
void controller_renewed(struct controller *controller, const wire_bytes *id);
/* Fail a call of a session that is closed, with the cause. */
void controller_fail_closed(
    struct controller *controller, uint64_t call, const struct controller_session *session);
/* The open session with this id. Sets the time of its last sign of life. NULL: the call was failed
 * with SESSION_UNKNOWN, SESSION_CLOSED or the reason of the run's end. */
struct controller_session *
controller_session_of_call(struct controller *controller, uint64_t call, const wire_bytes *id);

/* voided.c */
/* False: no memory, or more than CONTROLLER_VOIDED_MAX. */
bool controller_voided_add(
    struct controller *controller, struct controller_voided **set, uint64_t sequence);
bool controller_voided_has(const struct controller_voided *set, uint64_t sequence);
void controller_voided_drop(struct controller *controller, struct controller_voided **set);
/* The size of a set that holds every push that the ps may remember as voided. */
uint64_t controller_voided_bytes_max(const struct controller *controller);

/* The maximum of voided pushes that one ps remembers of one session. */
static inline uint32_t controller_refusals_max(const struct controller *controller)
{
    return controller->config->voided_per_session_max != 0
               ? controller->config->voided_per_session_max
               : LANE_VOIDED_PER_SESSION_MAX;
}

static inline uint32_t controller_settled_max(const struct controller *controller)
{
    return controller->config->settled_sessions_max != 0 ? controller->config->settled_sessions_max
                                                         : CONTROLLER_SETTLED_MAX;
}

/* Open ones, and settled ones that are remembered. */
static inline uint64_t controller_sessions_max(const struct controller *controller)
{
    return (uint64_t)controller->config->sessions_max + controller_settled_max(controller);
}

/* admit.c */
/* Is it a join at all? */
enum sumac_status controller_join_check(
    const struct controller *controller, const wire_join_request *request,
    struct sumac_error *error);
/* May it come in? Changes nothing but marks. */
enum sumac_status controller_join_admit(
    struct controller *controller, const wire_join_request *request, struct sumac_error *error);

/* join.c */
void controller_join_call(struct controller *controller, const struct lane_event *event);
/* Go on with every join that waited for what has happened now. */
void controller_joins_go_on(struct controller *controller);
void controller_joins_fail(struct controller *controller, const struct sumac_error *error);
void controller_join_opened(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report);
void controller_join_complete(struct controller *controller, const struct controller_order *order);
/* SUMAC__V1__ON_LOSS__…, as ps 0 is configured. */
uint32_t controller_on_loss(const struct controller *controller);
/* Fails the joins of observers when a ps does not appear. The run is yet to begin, and goes on. */
void controller_joins_tick(struct controller *controller);

/* settle.c */
/* Its client left it as done, and lacks no push that it has made; when all ps have closed it. */
bool controller_left_as_done(
    const struct controller *controller, const struct controller_session *session);
void controller_settle(
    struct controller *controller, struct controller_session *session,
    const struct close_cause *cause);
/* The session is settled: note whether its task is done, and answer its leave. */
void controller_leave_settled(struct controller *controller, struct controller_session *session);
/* False: what it voids cannot be kept for want of memory, and must not be decided without. */
bool controller_close_reported(
    struct controller *controller, struct controller_session *session,
    const wire_peer_report *report);
void controller_close_complete(struct controller *controller, const struct controller_order *order);
void controller_decide_complete(struct controller *controller, struct controller_session *session);
/* Those that a synchronous step needs still stay, and are forgotten with a later one. */
void controller_sessions_forget_oldest(struct controller *controller);
void controller_leases_tick(struct controller *controller);
void controller_room_reported(
    struct controller *controller, uint32_t ps, const wire_peer_report *report);
void controller_leaves_fail(struct controller *controller, const struct sumac_error *error);

/* leave.c */
void controller_renew_call(struct controller *controller, const struct lane_event *event);
void controller_leave_call(struct controller *controller, const struct lane_event *event);

/* run_end.c */
/* Called at the end of a step. Reports the run's end once, when its record is on disk. */
void controller_run_over_say(struct controller *controller);
/* The controller starts from its records, and the run was already ending. */
void controller_run_end_again(struct controller *controller);
void controller_run_tick(struct controller *controller);
/* A member has left or was settled: is that all? */
void controller_run_check(struct controller *controller);
/* The run fails: STATE_LOST of a ps, PS_MISSING (a ps never appeared), or WRONG_CLUSTER (a ps is
 * reachable, but is configured for another cluster). Waiting calls fail. */
void controller_run_fail(
    struct controller *controller, enum sumac_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A ps that was met has ended by itself, and gave the reason. */
void controller_ps_ended(
    struct controller *controller, uint32_t ps, enum sumac_reason reason, const char *text);
void controller_run_end_now(struct controller *controller);
/* The tasks that may still join before the run ends, and the time left. NULL: a member is in the
 * run, or no member has joined yet. */
const char *controller_run_wait(const struct controller *controller);
/* True while a member is opening, open, or not settled yet. */
bool controller_run_has_members(const struct controller *controller);
void controller_end_complete(struct controller *controller, const struct controller_order *order);

/* waits.c */
void controller_report_waits(struct controller *controller);

/* quorum.c: synchronous steps of K of N */
/* Is it time to take the next step? After whatever may make it so. */
void controller_steps_consider(struct controller *controller);
void controller_steps_tick(struct controller *controller);
/* The controller begins with its records: the ps hear again what was taken. */
void controller_steps_begin_again(struct controller *controller);
void controller_steps_reported(
    struct controller *controller, uint32_t ps, const wire_peer_report *report);
/* A ps reports a closed session. False: no memory to keep the voided pushes. */
bool controller_steps_close_reported(
    struct controller *controller, struct controller_session *session,
    const wire_close_report *close);
/* Every ps has reported the closed session. */
void controller_steps_closed(struct controller *controller, struct controller_session *session);
/* Does a step need what a settled session has made? */
bool controller_steps_need(
    const struct controller *controller, const struct controller_session *session);
