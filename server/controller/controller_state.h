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
 *   collectives  rounds whose end ps 0 still sends to the ps (controller_collectives.h).
 *   barriers   names under which members wait for each other (barrier.h).
 *
 * State that must not be lost has rows in the records (controller_rows.h). There is one row for
 * each cluster, ps, task, session, function, variable, collective and barrier. A function that
 * changes a value in a row marks the row as changed. The step ends with a record of all changed
 * rows. Answers and orders wait until that record is on disk (records.c, hold_answers.c).
 *
 * The time of a step is controller->now_us, and the output of a step is controller->out. Tables
 * are bounded. Their objects come from pools, except that each variable is one allocation, as large
 * as its name needs.
 */
#pragma once

#include "controller_objects.h"

struct row_functions;

struct controller {
    struct controller_row row;
    const struct lane_config *config;
    const struct memory *memory;
    struct functions functions; /* that variables may have; for the defined ones also: */
    struct controller_function defined[UPDATE_DEFINED_MAX];
    struct pool tasks_pool, sessions_pool, orders_pool, calls_pool, waiting_pool;

    /* These belong to the present step. */
    struct arena arena; /* texts and messages, also of the steps that this step follows */
    struct out effects;
    struct out *out; /* these; functions that change nothing of the controller make texts, too */
    uint64_t now_us; /* without the time this process was suspended for */
    /* The order that was packed last, and its message. The message is made once for all ps. */
    const struct controller_order *packed_order;
    const wire_peer_order *packed;

    const struct row_functions *row_functions; /* by the kind of row */
    bool records;                              /* the controller makes records, from START on */
    uint64_t last_record, recorded;            /* made; on disk */
    uint64_t cluster_record;                   /* the last with a row of the cluster or of a ps */
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

/* records.c */
/* The row is new, or one of its values has changed. Does nothing without records. */
void controller_row_changed(struct controller *controller, struct controller_row *row);
/* The object is about to go. */
void controller_row_gone(struct controller *controller, struct controller_row *row);
/* Make the step's record, if any row has changed. False: there is no record, the step ends with
 * EXIT, and its answers and orders must stay unsent. */
bool controller_record_step(struct controller *controller);
bool controller_order_is_recorded(
    const struct controller *controller, const struct controller_order *order);
static inline bool controller_cluster_is_recorded(const struct controller *controller)
{
    return controller->cluster_record <= controller->recorded;
}

/* hold_answers.c */
/* Answer the call with the reply. Fails the call if the reply, or one of its texts, found no
 * memory. */
void controller_reply_or_fail(
    struct controller *controller, uint64_t call, const wire_message *reply);
void controller_fail(
    struct controller *controller, uint64_t call, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...) __attribute__((format(printf, 5, 6)));
void controller_fail_with(
    struct controller *controller, uint64_t call, const struct sumac_error *error);
/* The run is over, …. */
void controller_fail_over(struct controller *controller, uint64_t call);
/* Called at the end of a step, after its record. Sends the answers whose record is on disk, and
 * keeps the others. */
void controller_held_say(struct controller *controller);
void controller_held_forget(struct controller *controller, uint64_t call);
void controller_held_deinit(struct controller *controller);
/* The maximum that hold_answers.c keeps. */
uint64_t controller_held_bytes_max(const struct controller *controller);

static inline bool controller_peer_is_self(const struct controller *controller, uint32_t ps)
{
    return ps == controller->config->index;
}

/* The number of members that begin with synchronous step 1; 0: unknown. */
static inline uint32_t controller_step_members(const struct controller *controller)
{
    const struct lane_config *config = controller->config;

    if (config->step_members != 0)
        return config->step_members;
    return config->members_partial ? 0 : config->member_count;
}

/* clock.c */
/* Called first in a step: what was said before is given up, unless the step follows that. */
void controller_begin(struct controller *controller, bool follows);
static inline uint64_t controller_ms(uint64_t ms) { return ms * 1000u; } /* in µs */
/* Take the time of an event, and extend all deadlines by a suspension before it. */
void controller_notice_time(struct controller *controller, uint64_t event_us);
/* A tick is wanted then, by the controller's time. */
void controller_wake(struct controller *controller, uint64_t at_us);
/* "3.2 s ago", "never" for 0; in the step's arena. */
const char *controller_ago(const struct controller *controller, uint64_t when_us);
/* The next report comes after report_ms. */
void controller_reports_begin(struct controller *controller);
