/* SPDX-License-Identifier: Apache-2.0 */
/* controller_state.h -- the controller's state, and the functions of each of its files. Private to
 * this folder.
 *
 *   peers      one per ps: its address, its stream, its incarnation, the next order for it.
 *   orders     one list for all ps, oldest first; an order stays in the list until each of its ps
 *              has answered.
 *   tasks      each chief or worker that is listed or has joined: its attempts, and the end of its
 *              last session.
 *   sessions   from the join until well after the settle, in the order of joining.
 *   variables  the catalogue, in the order of creation.
 *   functions  defined update functions, by their numbers (define.c).
 *   calls      creates, deletes and defines that wait for an answer, oldest first.
 *   collectives   rounds of collectives whose end ps 0 still sends to the ps (meet.h).
 *   barriers   names under which members wait for each other (barrier.h).
 *
 * State that must not be lost has rows in the records (controller_rows.h). There is one row for
 * each cluster, ps, task, session, function, variable, collective and barrier. A function that
 * changes a value in a row marks the row as changed. The step ends with a record of all changed
 * rows. Answers and orders wait until that record is on disk (records.c, held.c).
 *
 * The time of a step is controller->now_us, and the output of a step is controller->said. Tables
 * are bounded. Their objects come from pools, except that each variable is one allocation, as large
 * as its name needs.
 */
#ifndef CONTROLLER_CONTROLLER_STATE_H
#define CONTROLLER_CONTROLLER_STATE_H

#include "controller_objects.h"

struct controller {
    struct controller_row row;
    const struct lane_config *config;
    const struct memory *memory;
    struct functions functions; /* that variables may have; for the defined ones also: */
    struct controller_function defined[UPDATE_DEFINED_MAX];
    struct pool tasks_pool, sessions_pool, orders_pool, calls_pool, waiting_pool;

    /* These belong to the present step. */
    struct controller_said *said;
    struct log_limit log_limit; /* of all steps */
    uint64_t now_us;            /* without the time this process was suspended for */
    uint64_t random[2];
    /* The order that was packed last, and its message. The message is made once for all ps. */
    const struct controller_order *packed_order;
    const wire_peer_order *packed;

    bool records;                   /* the controller makes records, from START on */
    uint64_t last_record, recorded; /* made; on disk */
    uint64_t cluster_record;        /* the last with a row of the cluster or of a ps */
    LIST(struct controller_row) changed[CONTROLLER_ROW_KINDS];
    LIST(struct controller_gone) gone;
    uint32_t row_count;                /* of both */
    LIST(struct controller_held) held; /* by record */
    struct pool held_pool;
    uint64_t held_bytes;
    uint64_t beginnings; /* times that a controller started again with these records */

    uint64_t last_event_us; /* in the time of events */
    uint64_t slept_us;      /* total time that this process was suspended */
    uint64_t sleep_to_tell_us;
    uint64_t tick_us; /* between ticks */
    uint64_t next_report_us;
    uint64_t report_us; /* interval between reports */
    bool absence_told;  /* of listed members, while others train */
    struct refused_joins refused_joins;

    enum controller_phase phase;
    bool terminating;        /* by … */
    enum lane_signal signal; /* … this one */
    uint64_t end_by_us;      /* with terminating: when ps 0 stops waiting for work in flight, in the
                                time of events */
    int exit_code;
    char end_text[SUMAC_ERROR_TEXT_BYTES];
    enum sumac_reason end_reason;
    bool run_over_said;
    bool ends_of_itself;                 /* because no member is left; no ps is lost */
    uint64_t end_began_us, end_until_us; /* the deadline of the others' answers */
    bool some_left_done;
    uint64_t observers;     /* count of joins by observers; numbers their attempts */
    uint64_t first_join_us; /* of a member; 0: none has come */
    bool member_joined;     /* a member has been open */
    uint32_t initials;      /* members that begin with synchronous step 1 and have been opened */
    uint64_t memberless_since_us;

    /* Synchronous steps with a quorum (quorum.c). */
    struct controller_row step_row;
    uint64_t step_taken;     /* the last */
    bool step_without_order; /* there was no memory for its order to take */
    /* The next step: when the first contribution that counts came (0: none yet), and whether a
     * quorum has come. */
    uint64_t step_first_us;
    bool step_enough;
    uint64_t step_times_us[CONTROLLER_STEP_TIMES]; /* from the first contribution to the quorum, of
                                                      the last steps */
    uint32_t step_times;                           /* count of measured steps */

    uint64_t cluster_id;
    uint64_t secret; /* only the ps know it */
    uint64_t membership_epoch;
    uint64_t membership_told;      /* the last epoch that was sent to the ps */
    uint32_t ps_count;             /* 0: not known yet */
    struct controller_peer *peers; /* LANE_PS_MAX of them */
    uint64_t orders_given;         /* the last number */
    LIST(struct controller_order) orders;
    struct controller_order end_order; /* kept here: the end of a run needs no memory */

    bool members_listed; /* by this ps's own configuration, … */
    bool members_whole;  /* … or, all of them, by a join */
    LIST(struct controller_task) tasks;
    struct key_map tasks_by_key;
    uint64_t attempts_forgotten; /* the largest of a forgotten task; a task that joins again
                                    continues above it */
    uint64_t lists_looked_at;
    LIST(struct controller_session) sessions;
    struct key_map sessions_by_id;    /* every message of a session looks here, … */
    struct key_map sessions_by_nonce; /* … and every join here */

    LIST(struct controller_variable) variables;
    struct key_map variables_by_name;
    struct id_map variables_by_id;
    uint32_t variable_count;
    bool variable_without_order; /* a variable waits for memory for its next order */
    uint64_t variables_made, shards_made;
    uint64_t turns;                     /* of the ps: shards that were placed round-robin */
    uint64_t placed_bytes[LANE_PS_MAX]; /* of the shards on each ps: values and slots */
    LIST(struct controller_call) calls;
    LIST(struct controller_collective) collectives; /* whose end some ps is yet to confirm */
    uint32_t collective_count;

    LIST(struct controller_barrier) barriers;
    struct key_map barriers_by_name;
    LIST(struct controller_waiting) waiting; /* calls of all barriers */
    uint64_t end_logged_us, ends_unlogged;   /* of failed rounds of barriers */
};

/* effects.c */
bool controller_effects_init(struct controller *controller);
void controller_effects_deinit(struct controller *controller);
void controller_effects_begin(struct controller *controller, bool follows);
/* A required effect could not be made. The step ends with EXIT. */
void controller_effects_lose(struct controller *controller);
void controller_effects_end(struct controller *controller, struct controller_effects *effects);
/* Append a zeroed effect of that kind; never NULL. If there is no place for the effect, the step
 * ends with EXIT and the effect is discarded. */
struct controller_effect *
controller_effect_add(struct controller *controller, enum controller_effect_kind kind);
/* One line, noun then value: "ps 0 closes the session of worker 7". */
void controller_log(struct controller *controller, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Finish the call now, without waiting for a record. reply NULL: finish with the error. */
void controller_answer(
    struct controller *controller, uint64_t call, const wire_message *reply,
    const struct sumac_error *error);
/* The error of a call whose answer finds no memory. */
void controller_error_memory(struct sumac_error *error);
/* Answer the call with the reply. Fails the call if the reply, or one of its texts, found no
 * memory. */
void controller_reply_or_fail(
    struct controller *controller, uint64_t call, const wire_message *reply);
void controller_fail(
    struct controller *controller, uint64_t call, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Formatted text in the step's arena; never NULL. */
char *controller_text(const struct controller *controller, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* records.c */
/* The row is new, or one of its values has changed. Does nothing without records. */
void controller_row_changed(
    struct controller *controller, enum controller_row_kind kind, struct controller_row *row);
/* The object is about to go. */
void controller_row_gone(
    struct controller *controller, enum controller_row_kind kind, struct controller_row *row);
/* Make the step's record, if any row has changed. False: there is no record, the step ends with
 * EXIT, and its answers and orders must stay unsent. */
bool controller_record_step(struct controller *controller);
bool controller_order_is_recorded(
    const struct controller *controller, const struct controller_order *order);
static inline bool controller_cluster_is_recorded(const struct controller *controller)
{
    return controller->cluster_record <= controller->recorded;
}
static inline void controller_cluster_changed(struct controller *controller)
{
    controller_row_changed(controller, CONTROLLER_ROW_CLUSTER, &controller->row);
}
static inline void controller_peer_changed(struct controller *controller, uint32_t ps)
{
    controller_row_changed(controller, CONTROLLER_ROW_PS, &controller->peers[ps].row);
}
static inline void
controller_task_changed(struct controller *controller, struct controller_task *task)
{
    controller_row_changed(controller, CONTROLLER_ROW_TASK, &task->row);
}
static inline void
controller_session_changed(struct controller *controller, struct controller_session *session)
{
    controller_row_changed(controller, CONTROLLER_ROW_SESSION, &session->row);
}
static inline void
controller_variable_changed(struct controller *controller, struct controller_variable *variable)
{
    controller_row_changed(controller, CONTROLLER_ROW_VARIABLE, &variable->row);
}

/* rows.c */
/* In the step's arena. False: no memory. */
bool controller_row_write(
    struct controller *controller, enum controller_row_kind kind, const struct controller_row *row,
    struct span *out);
bool controller_row_write_gone(
    struct controller *controller, enum controller_row_kind kind, const struct controller_row *row,
    struct span *out);

/* held.c */
/* Answer the call once the step's record is on disk. reply NULL: answer with the error. */
void controller_hold(
    struct controller *controller, uint64_t call, const wire_message *reply,
    const struct sumac_error *error);
/* Called at the end of a step, after its record. Sends the answers whose record is on disk, and
 * keeps the others. */
void controller_held_say(struct controller *controller);
void controller_held_forget(struct controller *controller, uint64_t call);
void controller_held_deinit(struct controller *controller);
/* The maximum that held.c keeps. */
uint64_t controller_held_bytes_max(const struct controller *controller);

/* controller.c */
/* A tick is wanted then, by the controller's time. */
void controller_wake(struct controller *controller, uint64_t at_us);
bool controller_run_is_over(const struct controller *controller);
/* Take note of the time, between two steps. */
void controller_look(struct controller *controller, uint64_t now_us);
uint64_t controller_ms(uint64_t ms); /* in µs */
/* "3.2 s ago", "never" for 0; in the step's arena. */
const char *controller_ago(const struct controller *controller, uint64_t when_us);

/* peers.c: the streams to the ps. */
void controller_peers_start(struct controller *controller);
/* Learn addresses that were checked; dials those that are new. */
void controller_peers_learn(struct controller *controller, const wire_join_request *request);
bool controller_peers_all_met(const struct controller *controller);
/* CollectiveResult, and neither a sign of life nor an answer that was due has come for ps_lost_ms.
 */
bool controller_peer_is_lost(const struct controller *controller, uint32_t ps);
/* Is a sign of life, or an answer, so late that one should speak of it? */
bool controller_peer_is_late(const struct controller *controller, uint32_t ps);
/* The first ps that is not met or not reachable; ps_count: none. */
uint32_t controller_peers_missing(const struct controller *controller);
/* Give every writable stream what is due. */
void controller_peers_give(struct controller *controller);
void controller_peers_tick(struct controller *controller);
/* A stream is there and its last order is out; a first one after it was down (or ever) is a new
 * stream. */
void controller_stream_up(struct controller *controller, uint32_t ps);
/* `reason` of the exit that ended it; UNSPECIFIED: it broke. */
void controller_stream_down(
    struct controller *controller, uint32_t ps, const char *text, enum sumac_reason reason);
void controller_hear_report(
    struct controller *controller, uint32_t ps, const wire_peer_report *report);
/* "ps 1 at h2:2222, never heard from (the name does not resolve)" */
const char *controller_peer_text(const struct controller *controller, uint32_t ps);
/* "; start it": the remedy for a ps that is missing, to print after controller_peer_text. "" where
 * that text names it. */
const char *controller_peer_remedy(const struct controller *controller, uint32_t ps);
/* "ps 0 waits for ps 1 at h2:2222, never heard from; gives up in 35 s" */
const char *controller_peer_wait(const struct controller *controller, uint32_t ps);

/* orders.c: the one list, and what is sent for each. */
struct controller_mask controller_every_ps(const struct controller *controller);
/* Append one order for every ps. If memory is short, logs that; a later tick appends the order. */
void controller_order_session(
    struct controller *controller, enum controller_order_kind kind,
    struct controller_session *session);
/* To open it, after the membership that it counts in. */
void controller_order_open(struct controller *controller, struct controller_session *session);
/* False: there is no memory for it yet. */
bool controller_order_function(struct controller *controller, struct controller_function *function);
bool controller_order_variable(
    struct controller *controller, enum controller_order_kind kind,
    struct controller_variable *variable);
/* To take the synchronous step that was taken last. */
void controller_order_take(struct controller *controller);
/* Append the order to end, for these. It needs no memory. */
void controller_order_end(struct controller *controller, const struct controller_mask *pending);
const wire_peer_order *
controller_order_pack(struct controller *controller, const struct controller_order *order);
struct controller_order *
controller_order_find(const struct controller *controller, uint64_t number);
/* "to add its shards of W1": what an order is for, after the name of a ps. */
const char *
controller_order_text(const struct controller *controller, const struct controller_order *order);
struct controller_order *
controller_order_next(struct controller_order *order, uint32_t ps); /* from `order` on */
/* This ps has answered; the last answer completes the order. report NULL: it never will. */
void controller_order_answered(
    struct controller *controller, struct controller_order *order, uint32_t ps,
    const wire_peer_report *report);
/* Retry everything that failed for lack of memory. */
void controller_orders_tick(struct controller *controller);
/* The controller starts from its records: order again everything that was in progress. */
void controller_orders_begin_again(struct controller *controller);
/* A ps whose answer to an order of this session could not be made, or kept, for lack of memory.
 * ps_count: no such ps. */
uint32_t controller_order_short(
    const struct controller *controller, const struct controller_session *session);

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
/* NULL: no memory. */
struct controller_session *
controller_session_add(struct controller *controller, const void *id, const uint8_t *nonce);
void controller_session_forget(struct controller *controller, struct controller_session *session);
void controller_sessions_forget_oldest(struct controller *controller);
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
    const uint32_t given = controller->config->voided_per_session_max;

    return given != 0 ? given : LANE_VOIDED_PER_SESSION_MAX;
}

static inline uint32_t controller_settled_max(const struct controller *controller)
{
    const uint32_t given = controller->config->settled_sessions_max;

    return given != 0 ? given : CONTROLLER_SETTLED_MAX;
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
void controller_join_call(struct controller *controller, const struct controller_event *event);
/* Go on with every join that waited for what has happened now. */
void controller_joins_go_on(struct controller *controller);
/* Does an earlier session of its task, which the join has closed, have yet to be settled? The ps
 * were told that another attempt comes, so that one comes, if only for a lease. */
bool controller_join_replaces(
    const struct controller *controller, const struct controller_session *session);
void controller_joins_fail(
    struct controller *controller, enum sumac_status status, enum sumac_reason reason,
    const char *text);
/* A ps is connected to its client: the join of the attempt that replaces it will say so. */
void controller_join_replaced_lives(
    struct controller *controller, const struct controller_session *replaced);
void controller_join_opened(
    struct controller *controller, struct controller_session *session, uint32_t ps,
    const wire_peer_report *report);
void controller_join_complete(struct controller *controller, struct controller_session *session);
void controller_first_step_complete(
    struct controller *controller, struct controller_session *session);
/* The number of members that begin with synchronous step 1; 0: unknown. */
uint32_t controller_step_members(const struct controller *controller);
/* SUMAC__V1__ON_LOSS__…, as ps 0 is configured. */
uint32_t controller_on_loss(const struct controller *controller);
/* Fails the joins of observers when a ps does not appear. The run is yet to begin, and goes on. */
void controller_joins_tick(struct controller *controller);

/* settle.c */
/* Its client left it as done, and lacks no push that it has made; when all ps have closed it. */
bool controller_left_as_done(
    const struct controller *controller, const struct controller_session *session);
void controller_renew_call(struct controller *controller, const struct controller_event *event);
void controller_leave_call(struct controller *controller, const struct controller_event *event);
void controller_settle(
    struct controller *controller, struct controller_session *session,
    const struct close_cause *cause);
/* False: what it voids cannot be kept for want of memory, and must not be decided without. */
bool controller_close_reported(
    struct controller *controller, struct controller_session *session,
    const wire_peer_report *report);
void controller_close_complete(struct controller *controller, struct controller_session *session);
void controller_decide_complete(struct controller *controller, struct controller_session *session);
void controller_leases_tick(struct controller *controller);
void controller_room_reported(
    struct controller *controller, uint32_t ps, const wire_peer_report *report);
void controller_leaves_fail(
    struct controller *controller, enum sumac_status status, enum sumac_reason reason,
    const char *text);

/* create_many.c */
void controller_create_many(
    struct controller *controller, const struct controller_event *event,
    struct controller_session *session);
/* Continue a call with a list after its awaited variable was published. True: the call was answered
 * or failed. */
bool controller_list_go_on(struct controller *controller, struct controller_call *call);
/* True if this variable of the list is still awaited. */
bool controller_list_has(const struct controller_list *list, uint64_t id);
void controller_list_give(struct controller *controller, struct controller_list *list);

/* create.c */
/* Find the variable of that name, or make it. */
enum sumac_status controller_find_or_make(
    struct controller *controller, const wire_variable *wanted,
    struct controller_variable **variable, struct sumac_error *error);
/* Keep the call and its list until its variable moves on or the timeout passes, or fail the call.
 * timeout_ms 0: the call named no timeout. */
void controller_wait_call(
    struct controller *controller, struct controller_call wanted, uint32_t timeout_ms);
/* May an order be added? False: the call was failed. */
bool controller_may_change_catalogue(struct controller *controller, uint64_t call);
/* The call was answered, or failed. Returns the one after it. */
struct controller_call *
controller_call_drop(struct controller *controller, struct controller_call *call);
void controller_create_call(struct controller *controller, const struct controller_event *event);
void controller_delete_call(struct controller *controller, const struct controller_event *event);
void controller_add_answered(
    struct controller *controller, struct controller_variable *variable, uint32_t ps,
    const wire_peer_report *report);
void controller_add_complete(struct controller *controller, struct controller_variable *variable);
void controller_publish_complete(
    struct controller *controller, struct controller_variable *variable);
void controller_delete_complete(
    struct controller *controller, struct controller_variable *variable);
void controller_assigned(struct controller *controller, uint32_t ps, uint64_t variable_id);
/* A session takes nothing more: its creates, deletes and defines fail, ... */
void controller_calls_of_session_fail(
    struct controller *controller, const struct controller_session *session);
/* ... and once it is settled, what it was to assign goes to the one that has waited longest. */
void controller_creator_settled(
    struct controller *controller, const struct controller_session *session);
void controller_calls_tick(struct controller *controller);
void controller_calls_fail(
    struct controller *controller, enum sumac_status status, enum sumac_reason reason,
    const char *text);
void controller_call_forget(struct controller *controller, uint64_t call);
const char *
controller_call_wait(const struct controller *controller, const struct controller_call *call);

/* barrier.c */
void controller_barrier_call(struct controller *controller, const struct controller_event *event);
/* The session is closing: its calls fail, and its arrivals still count. */
void controller_barriers_of_session_fail(
    struct controller *controller, const struct controller_session *session);
/* A session of that task is settled. If the task has no other session, ends the rounds that lack
 * the task. */
void controller_barriers_settled(struct controller *controller, const struct controller_task *task);
void controller_barriers_tick(struct controller *controller);
/* The controller starts from its records: every deadline starts again. */
void controller_barriers_begin_again(struct controller *controller);
void controller_barriers_fail(
    struct controller *controller, enum sumac_status status, enum sumac_reason reason,
    const char *text);
void controller_barrier_call_forget(struct controller *controller, uint64_t call);

/* run_end.c */
/* Called at the end of a step. Reports the run's end once, when its record is on disk. */
void controller_run_over_say(struct controller *controller);
/* The controller starts from its records, and the run was already ending. */
void controller_run_end_again(struct controller *controller);
void controller_run_tick(struct controller *controller);
/* A member has left or was settled: is that all? */
void controller_run_check(struct controller *controller);
void controller_state_lost(struct controller *controller, const char *text);
/* A ps never appeared. Fails the waiting calls and ends the run before it began. */
void controller_ps_missing(struct controller *controller, const char *text);
/* A ps is reachable, but is configured for another cluster. */
void controller_ps_misconfigured(struct controller *controller, const char *text);
/* A ps that was met has ended by itself, and gave the reason. */
void controller_ps_ended(
    struct controller *controller, uint32_t ps, enum sumac_reason reason, const char *text);
void controller_run_end_now(struct controller *controller);
/* The tasks that may still join before the run ends, and the time left. NULL: a member is in the
 * run, or no member has joined yet. */
const char *controller_run_wait(const struct controller *controller);
/* True while a member is opening, open, or not settled yet. */
bool controller_run_has_members(const struct controller *controller);
void controller_end_complete(struct controller *controller);

/* waits.c */
/* The next report comes after report_ms. */
void controller_reports_begin(struct controller *controller);
void controller_report_waits(struct controller *controller);

#endif
