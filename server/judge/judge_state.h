/* SPDX-License-Identifier: Apache-2.0 */
/* judge_state.h -- what the judge knows, and how its files share the work. Private to this folder.
 *
 *   peers      one per ps: its address, its stream, its incarnation, the next order for it
 *   orders     one list for all ps, oldest first; an order leaves it when every ps it is for has
 *              answered
 *   tasks      each chief or worker that is listed or has joined: attempts, where its last session
 *              ended
 *   sessions   from the join until well after the settle, in the order of joining
 *   variables  the catalogue, in the order of creation
 *   functions  update functions that were defined, by their numbers (define.c)
 *   calls      creates, deletes and defines that wait for an answer, oldest first
 *   meetings   rounds of rendezvous whose end the ps are told (meet.h)
 *   barriers   names under which members wait for each other (barrier.h)
 *
 * What must not be lost of these has rows in the records (judge_rows.h), one for each cluster, ps,
 * task, session, function, variable, meeting and barrier: whoever changes what a row says marks it
 * as changed, and the step ends with a record of all that were. Answers and orders wait until it is
 * on disk (records.c, held.c).
 *
 * All of one step's work happens at judge->now_us and is said in judge->said. Tables are
 * bounded; all but the variables (one piece each, as large as the name needs) come
 * from pools.
 */
#ifndef JUDGE_JUDGE_STATE_H
#define JUDGE_JUDGE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "close_cause.h"
#include "end_status.h"
#include "judge.h"
#include "judge_rows.h"
#include "lane.h"
#include "memory.h"
#include "definition.h"
#include "functions.h"
#include "id_map.h"
#include "key_map.h"
#include "list.h"
#include "log_limit.h"
#include "refused_joins.h"
#include "replaced.h"
#include "reserved_array.h"
#include "sumac/tensor.h"
#include "update.h"
#include "wire.h"

#define JUDGE_EPOCH 1u
#define JUDGE_ID_BYTES 16
#define JUDGE_JOB_BYTES_MAX 64
#define JUDGE_ADDRESS_BYTES_MAX 255
#define JUDGE_LABEL_BYTES 96
#define JUDGE_TASKS_MAX 4096u /* beyond it, those that have left give way (sessions.c) */
/* Members that joins may name, where the configuration lists none. */
#define JUDGE_NAMED_MAX 1024u
#define JUDGE_SETTLED_MAX 256u /* sessions remembered, for retried leaves and joins */
#define JUDGE_VARIABLES_MAX 262144u
#define JUDGE_CALLS_MAX 4096u  /* creates, deletes and defines that wait */
#define JUDGE_ORDERS_MAX 8192u /* not yet answered; beyond it those are refused */
/* What all ps void of one session. */
#define JUDGE_VOIDED_MAX (LANE_PS_MAX * LANE_VOIDED_PER_SESSION_MAX)
#define JUDGE_HELD_BYTES_MAX (8u << 20) /* of answers that wait for their record */
#define JUDGE_AGAIN_MS 1000u   /* what there was no memory for is tried again so much later */
#define JUDGE_CREATE_MS 60000u /* of a create or delete that names none */
#define JUDGE_ALIVE_MS 1000u   /* each ps hears from ps 0 at least so often */
#define JUDGE_REFUSED_MS 5000u /* from the refusal of a ps to the end of the run */
#define JUDGE_STEPS_MAX (UINT64_MAX / 2) /* no run comes so far: what says so is no step */
#define JUDGE_STEP_TIMES 16u     /* of the last steps, by which the next one's deadline goes */
#define JUDGE_FLAPS_MAX 3u       /* replacements of a task's living processes in … */
#define JUDGE_FLAPS_US 60000000u /* … so long, and the present one is kept */
#define JUDGE_MASK_WORDS (LANE_PS_MAX / 64u)

/* A set of ps. */
struct judge_mask {
    uint64_t word[JUDGE_MASK_WORDS];
};

static inline bool judge_mask_has(const struct judge_mask *mask, uint32_t ps)
{
    return (mask->word[ps / 64u] >> (ps % 64u) & 1u) != 0;
}

static inline void judge_mask_add(struct judge_mask *mask, uint32_t ps)
{
    mask->word[ps / 64u] |= UINT64_C(1) << (ps % 64u);
}

static inline void judge_mask_remove(struct judge_mask *mask, uint32_t ps)
{
    mask->word[ps / 64u] &= ~(UINT64_C(1) << (ps % 64u));
}

static inline bool judge_mask_empty(const struct judge_mask *mask)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < JUDGE_MASK_WORDS; i++)
        any |= mask->word[i];
    return any == 0;
}

/* What records say of the object that it begins. */
struct judge_row {
    LINKS(struct judge_row) in_changed;
    bool changed;    /* since the last step's end: there is to be a row of it */
    uint64_t record; /* the last that has one; 0: none */
};

/* The row of an object that is no more, until the step's end. */
struct judge_gone {
    LINKS(struct judge_gone) in_judge;
    struct span row;
};

/* An answer whose record is not on disk yet. */
struct judge_held {
    LINKS(struct judge_held) in_judge;
    uint64_t call;
    uint64_t record;           /* all up to it; 0: that of the present step */
    bool kept;                 /* it is of an earlier step */
    const wire_message *reply; /* in the step's arena, … */
    const wire_type *type;     /* … and beyond the step these bytes; NULL: the error */
    uint8_t *bytes;
    size_t byte_count;
    struct sumac_error error;
};

struct judge_voided {
    uint32_t count, capacity;
    uint64_t sequence[]; /* ascending */
};

/* What a task is found by: its bytes up to the end of the job. */
struct judge_task_key {
    uint32_t index;
    char job[JUDGE_JOB_BYTES_MAX + 1];
};

struct judge_task {
    struct judge_row row;
    LINKS(struct judge_task) in_judge;
    struct key_entry by_key;
    struct judge_task_key key;
    char job[JUDGE_JOB_BYTES_MAX + 1];
    uint32_t index;
    bool listed; /* in the configuration */
    bool member; /* counts in the membership */
    bool joined; /* has ever been open */
    bool done;   /* its last session left as done */
    bool left; /* its client has said that it leaves: nobody will ask how its last session ended */
    uint64_t left_us;
    uint64_t named; /* a mark: of the last list that named it, or the last look at all tasks */
    uint64_t attempts;
    const char *address;                  /* as configured; NULL or "": not known */
    uint64_t flapped_us[JUDGE_FLAPS_MAX]; /* last signs of life of the replaced; 0: none */
    bool contested;                       /* the present session stays until it ends by itself */
    uint64_t final;                       /* of its last settled session */
    uint64_t acked_through;               /* likewise */
    struct judge_voided *voided;          /* likewise; NULL: none */
};

/* A session goes through these in order; a join that fails while it waits is forgotten. */
enum judge_session_state {
    JUDGE_SESSION_WAITING, /* for the ps, or for the task's earlier session to be settled */
    JUDGE_SESSION_OPENING, /* every ps is told */
    JUDGE_SESSION_OPEN,
    JUDGE_SESSION_CLOSING,  /* every ps is asked where it stands */
    JUDGE_SESSION_DECIDING, /* every ps is told where it ended */
    JUDGE_SESSION_SETTLED,
};

struct judge_session {
    struct judge_row row;
    LINKS(struct judge_session) in_judge;
    struct key_entry by_id, by_nonce;
    uint8_t id[JUDGE_ID_BYTES];
    uint8_t nonce[JUDGE_ID_BYTES];
    enum judge_session_state state;
    uint32_t role;
    char job[JUDGE_JOB_BYTES_MAX + 1]; /* "" of an observer without a task */
    uint32_t index;
    char label[JUDGE_LABEL_BYTES]; /* "worker 3" */
    struct judge_task *task;       /* of a member; NULL of an observer */
    uint64_t attempt;
    char host[RUN_HOST_BYTES_MAX + 1]; /* of its client, as that said; "": it did not, … */
    uint32_t pid;                      /* … and the client's process; 0 */
    struct replaced replaced;          /* whose place its join has taken */
    uint64_t joined_us;
    bool acknowledged; /* replaced, and its client has said that it knows */
    uint64_t heard_us;
    uint64_t room_wait_us; /* when a ps last said that a large part of it waits for room; 0: none */
    uint64_t start_clock;  /* the largest of what the ps answered to `open` */
    uint32_t initial;      /* of the members that begin with synchronous step 1 the i-th; 0: none */
    uint64_t seen_step;    /* the largest of what the ps answered to `open` */
    uint64_t first_step;   /* the first that it is a member of; 0: no step, or not known yet */
    /* With a quorum. */
    uint64_t come_step; /* the last that it has come to, as far as some ps has said, and … */
    bool come_voided;   /* … whether with nothing that counts */
    struct judge_mask come_on; /* ps that have said so, … */
    uint32_t come_count;       /* … so many */
    uint64_t taken_step;       /* the last that was taken with what it has */
    uint64_t made_step;        /* settled: the last that it has made a contribution to, and … */
    uint64_t made_sequence; /* … which, where its turn was not over; 0: it was, or it is voided */
    uint64_t join_call, leave_call; /* 0: nobody waits */
    bool opened; /* at every ps: its client may know that, and have contributed */
    bool done;
    bool left;              /* its client's leave settled it, … */
    uint64_t last_sequence; /* … which named this push as its last */
    uint64_t final;
    uint64_t acked_through;      /* the largest that a ps has: above it `voided` lacks none */
    struct close_cause cause;    /* from CLOSING on */
    uint64_t settling_us;        /* when CLOSING began */
    struct judge_voided *voided; /* NULL: none */
    uint32_t orders;             /* in the list that name it */
};

enum judge_order_kind {
    JUDGE_ORDER_OPEN,
    JUDGE_ORDER_FIRST_STEP,
    JUDGE_ORDER_CLOSE,
    JUDGE_ORDER_DECIDE,
    JUDGE_ORDER_MEMBERSHIP,
    JUDGE_ORDER_TAKE,
    JUDGE_ORDER_DEFINE,
    JUDGE_ORDER_MEET,
    JUDGE_ORDER_ADD_SHARDS,
    JUDGE_ORDER_PUBLISH,
    JUDGE_ORDER_DELETE,
    JUDGE_ORDER_END,
    JUDGE_ORDER_KINDS,
};

struct judge_order {
    LINKS(struct judge_order) in_judge;
    uint64_t number;
    uint64_t record; /* all up to it must be on disk before a ps is given this; 0: not known yet */
    enum judge_order_kind kind;
    struct judge_session *session;   /* of open, first_step, close, decide */
    struct judge_variable *variable; /* of add_shards, publish, delete */
    struct judge_function *function; /* of define */
    struct judge_meeting *meeting;   /* of meet */
    struct judge_mask pending;       /* ps that have not answered */
    struct judge_mask again;         /* of them, those that this is to be given to again, … */
    uint64_t again_us;               /* … not before this; memory was short */
};

struct judge_peer {
    struct judge_row row;
    char address[JUDGE_ADDRESS_BYTES_MAX + 1]; /* "": not known yet */
    char trouble[SUMAC_ERROR_TEXT_BYTES];      /* why there is no stream, as the driver said */
    enum sumac_reason trouble_reason;
    uint64_t refused_us; /* since when it refuses this configuration; 0: it does not */
    bool dialled;
    bool up;        /* a stream is open */
    bool writable;  /* and its last order is out */
    bool greeted;   /* the stream's hello was answered */
    bool met;       /* some stream's hello was */
    uint64_t hello; /* number of the stream's hello; 0: not given yet */
    uint64_t incarnation;
    uint64_t heard_us;   /* the last report */
    uint64_t alive_us;   /* the last sign of life that it was given */
    uint64_t down_us;    /* when the last stream was lost */
    uint64_t silent_us;  /* since when an answer, or a stream, is missing; 0: nothing is */
    uint32_t unanswered; /* orders given on this stream, hello included */
    bool ended;          /* it ended its last stream as it exited */
    uint64_t step_over;  /* with a quorum: the last synchronous step that is over there */
    struct judge_order *next_order;
};

struct judge_call;
struct judge_barrier; /* barrier.h */
struct judge_waiting;

enum judge_variable_state {
    JUDGE_VARIABLE_ADDING,
    JUDGE_VARIABLE_PUBLISHING,
    JUDGE_VARIABLE_PUBLISHED,
    JUDGE_VARIABLE_DELETING, /* no longer found by its name */
};

struct judge_variable {
    struct judge_row row;
    LINKS(struct judge_variable) in_judge;
    struct key_entry by_name;
    LIST(struct judge_call) waiting; /* calls that are to be answered when it has moved on */
    size_t bytes;                    /* of this struct, and what lies behind it */
    uint64_t id;
    enum judge_variable_state state;
    struct definition definition;
    struct judge_session *creator; /* the session that is to assign it; NULL: none */
    uint32_t orders;               /* in the list that name it */
    struct judge_mask unassigned;  /* ps that have not reported its shards as assigned */
    struct sumac_error failure;    /* of a ps that could not make its shards; OK: none */
    const char *name;              /* behind this struct, … */
    uint8_t *places;               /* (shard_count) … and then the ps of each shard */
    uint64_t shards_before;        /* of the cluster; they say each one's number */
    uint64_t turns;                /* that were taken when its own were */
    uint32_t shard_count;
};

enum judge_function_state {
    JUDGE_FUNCTION_DEFINING,
    JUDGE_FUNCTION_DEFINED, /* every ps has it */
    JUDGE_FUNCTION_REFUSED, /* some ps reads its text otherwise: it is of another release */
};

/* One that was defined, beside what `functions` has of it at the same place. */
struct judge_function {
    struct judge_row row;
    enum judge_function_state state;
    uint32_t orders; /* in the list that name it */
};

enum judge_call_kind { JUDGE_CALL_CREATE, JUDGE_CALL_DELETE, JUDGE_CALL_DEFINE };

/* The variables of one create. */
struct judge_list {
    uint32_t count, at; /* those before `at` are published */
    uint64_t ids[];
};

struct judge_call {
    LINKS(struct judge_call) in_judge; /* in the order in which they came */
    LINKS(struct judge_call) of_variable;
    enum judge_call_kind kind;
    uint64_t call;
    struct judge_variable *variable; /* of a list the one that is waited for; NULL of a define */
    struct judge_function *function; /* of a define */
    struct judge_list *list;         /* of a create of several; NULL: of one */
    struct judge_session *session;
    uint64_t until_us;
    uint32_t timeout_ms;
};

enum judge_phase {
    JUDGE_RUNNING,
    JUDGE_ENDING, /* the others are told */
    JUDGE_ENDED,  /* ps 0 itself is told */
};

/* What one step says. */
struct judge_said {
    struct arena arena; /* texts and messages, also of the steps that this one follows */
    struct reserved_array effects;
    bool texts_short; /* the arena had no room for a text */
};

struct judge {
    struct judge_row row;
    const struct lane_config *config;
    const struct memory *memory;
    struct functions functions; /* that variables may have; of those that were defined also this: */
    struct judge_function defined[UPDATE_DEFINED_MAX];
    struct pool tasks_pool, sessions_pool, orders_pool, calls_pool, waiting_pool;

    /* Of the present step. */
    struct judge_said *said;
    struct log_limit log_limit; /* of all steps */
    uint64_t now_us;            /* without the time this process was suspended for */
    uint64_t random[2];
    /* The order that was packed last, and its message: made once for all ps. */
    const struct judge_order *packed_order;
    const wire_peer_order *packed;

    bool records;                   /* they are made, from START on */
    uint64_t last_record, recorded; /* made; on disk */
    uint64_t cluster_record;        /* the last that says something of the cluster, or of a ps */
    LIST(struct judge_row) changed[JUDGE_ROW_KINDS];
    LIST(struct judge_gone) gone;
    uint32_t row_count;           /* of both */
    LIST(struct judge_held) held; /* by record */
    struct pool held_pool;
    uint64_t held_bytes;
    uint64_t beginnings; /* how often a judge has begun with these records, but for the first */

    uint64_t last_event_us; /* as events say it */
    uint64_t slept_us;      /* how long this process was suspended, all in all */
    uint64_t sleep_to_tell_us;
    uint64_t tick_us; /* between ticks */
    uint64_t next_report_us;
    uint64_t report_us; /* until the report after the next one */
    bool absence_told;  /* of listed members, while others train */
    struct refused_joins refused_joins;

    enum judge_phase phase;
    bool terminating, interrupted; /* by SIGTERM; by SIGINT */
    uint64_t end_by_us; /* with terminating: ps 0 waits no longer for what is in flight; as events
                           say it */
    int exit_code;
    char end_text[SUMAC_ERROR_TEXT_BYTES];
    enum sumac_reason end_reason;
    bool run_over_said;
    bool ends_of_itself;                 /* for want of members; no ps is lost */
    uint64_t end_began_us, end_until_us; /* how long the others may take to answer */
    bool some_left_done;
    uint64_t observers;     /* how many have joined: the attempt of each */
    uint64_t first_join_us; /* of a member; 0: none has come */
    bool member_joined;     /* a member has been open */
    uint32_t initials;      /* members that begin with synchronous step 1 and have been opened */
    uint64_t memberless_since_us;

    /* With a quorum, of synchronous steps (quorum.c). */
    struct judge_row step_row;
    uint64_t step_taken;     /* the last */
    bool step_without_order; /* there was no memory for the order that says so */
    /* Of the next one: since when something that counts has come (0: it has not), and whether that
     * is enough. */
    uint64_t step_first_us;
    bool step_enough;
    uint64_t step_times_us[JUDGE_STEP_TIMES]; /* from the one to the other, of the last steps */
    uint32_t step_times;                      /* how many there were */

    uint64_t cluster_id;
    uint64_t secret; /* told the other ps alone */
    uint64_t membership_epoch;
    uint64_t membership_told; /* the last epoch that the ps were told */
    uint32_t ps_count;        /* 0: not known yet */
    struct judge_peer *peers; /* LANE_PS_MAX of them */
    uint64_t orders_given;    /* the last number */
    LIST(struct judge_order) orders;
    struct judge_order end_order; /* kept here: a run ends however short memory is */

    bool members_listed; /* by this ps's own configuration, … */
    bool members_whole;  /* … or, all of them, by a join */
    LIST(struct judge_task) tasks;
    struct key_map tasks_by_key;
    uint64_t attempts_forgotten; /* the largest of a task that was forgotten: one that comes back
                                    goes on above it */
    uint64_t lists_looked_at;
    LIST(struct judge_session) sessions;
    struct key_map sessions_by_id;    /* every message of a session looks here, … */
    struct key_map sessions_by_nonce; /* … and every join here */

    LIST(struct judge_variable) variables;
    struct key_map variables_by_name;
    struct id_map variables_by_id;
    uint32_t variable_count;
    bool variable_without_order; /* some waits for memory for the order that moves it on */
    uint64_t variables_made, shards_made;
    uint64_t turns;                     /* of the ps: shards that were placed round-robin */
    uint64_t placed_bytes[LANE_PS_MAX]; /* of the shards on each ps: values and slots */
    LIST(struct judge_call) calls;
    LIST(struct judge_meeting) meetings; /* whose end some ps has not heard */
    uint32_t meeting_count;

    LIST(struct judge_barrier) barriers;
    struct key_map barriers_by_name;
    LIST(struct judge_waiting) waiting;    /* calls of all barriers */
    uint64_t end_logged_us, ends_unlogged; /* of rounds of barriers that have not passed */
};

/* effects.c */
bool judge_effects_init(struct judge *judge);
void judge_effects_deinit(struct judge *judge);
void judge_effects_begin(struct judge *judge, bool follows);
/* Something that had to be said could not be made: the step ends with EXIT. */
void judge_effects_lose(struct judge *judge);
void judge_effects_end(struct judge *judge, struct judge_effects *effects);
/* A zeroed effect of that kind at the end; never NULL. Without a place for it the step ends with
 * EXIT, and what is filled in is not said. */
struct judge_effect *judge_effect_add(struct judge *judge, enum judge_effect_kind kind);
/* One line, noun then value: "ps 0 closes the session of worker 7". */
void judge_log(struct judge *judge, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The call is finished: with the reply, NULL: with the error. Now, whatever waits for records. */
void judge_answer(
    struct judge *judge, uint64_t call, const wire_message *reply, const struct sumac_error *error);
/* There is no memory for an answer. */
void judge_error_memory(struct sumac_error *error);
/* NULL, or with a text that there was no memory for: the call is failed. */
void judge_reply_or_fail(struct judge *judge, uint64_t call, const wire_message *reply);
void judge_fail(
    struct judge *judge, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Formatted text in the step's arena; never NULL. */
char *judge_text(const struct judge *judge, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* records.c */
/* What its row says has changed, or is new. Without records nothing is done. */
void judge_row_changed(struct judge *judge, enum judge_row_kind kind, struct judge_row *row);
/* The object is about to go. */
void judge_row_gone(struct judge *judge, enum judge_row_kind kind, struct judge_row *row);
/* The step's record, if any row has changed. False: it could not be made, the step ends with EXIT,
 * and nothing that it reveals may be said. */
bool judge_record_step(struct judge *judge);
bool judge_order_is_recorded(const struct judge *judge, const struct judge_order *order);
static inline bool judge_cluster_is_recorded(const struct judge *judge)
{
    return judge->cluster_record <= judge->recorded;
}
static inline void judge_cluster_changed(struct judge *judge)
{
    judge_row_changed(judge, JUDGE_ROW_CLUSTER, &judge->row);
}
static inline void judge_peer_changed(struct judge *judge, uint32_t ps)
{
    judge_row_changed(judge, JUDGE_ROW_PS, &judge->peers[ps].row);
}
static inline void judge_task_changed(struct judge *judge, struct judge_task *task)
{
    judge_row_changed(judge, JUDGE_ROW_TASK, &task->row);
}
static inline void judge_session_changed(struct judge *judge, struct judge_session *session)
{
    judge_row_changed(judge, JUDGE_ROW_SESSION, &session->row);
}
static inline void judge_variable_changed(struct judge *judge, struct judge_variable *variable)
{
    judge_row_changed(judge, JUDGE_ROW_VARIABLE, &variable->row);
}

/* rows.c */
/* In the step's arena. False: no memory. */
bool judge_row_write(
    struct judge *judge, enum judge_row_kind kind, const struct judge_row *row, struct span *out);
bool judge_row_write_gone(
    struct judge *judge, enum judge_row_kind kind, const struct judge_row *row, struct span *out);

/* held.c */
/* The call is answered so, `reply` NULL: with the error, once the step's record is on disk. */
void judge_hold(
    struct judge *judge, uint64_t call, const wire_message *reply, const struct sumac_error *error);
/* At the end of a step, after its record: says what may be said, and keeps the rest. */
void judge_held_say(struct judge *judge);
void judge_held_forget(struct judge *judge, uint64_t call);
void judge_held_deinit(struct judge *judge);
/* The most that it keeps. */
uint64_t judge_held_bytes_max(const struct judge *judge);

/* judge.c */
/* A tick is wanted then, by the judge's time. */
void judge_wake(struct judge *judge, uint64_t at_us);
bool judge_run_is_over(const struct judge *judge);
/* Take note of the time, between two steps. */
void judge_look(struct judge *judge, uint64_t now_us);
uint64_t judge_ms(uint64_t ms); /* in µs */
/* "3.2 s ago", "never" for 0; in the step's arena. */
const char *judge_ago(const struct judge *judge, uint64_t when_us);

/* peers.c: the streams to the ps. */
void judge_peers_start(struct judge *judge);
/* Learn addresses that were checked; dials those that are new. */
void judge_peers_learn(struct judge *judge, const wire_join_request *request);
bool judge_peers_all_met(const struct judge *judge);
/* Met, and neither a sign of life nor an answer that was due has come for ps_lost_ms. */
bool judge_peer_is_lost(const struct judge *judge, uint32_t ps);
/* Is a sign of life, or an answer, so late that one should speak of it? */
bool judge_peer_is_late(const struct judge *judge, uint32_t ps);
/* The first ps that is not met or not reachable; ps_count: none. */
uint32_t judge_peers_missing(const struct judge *judge);
/* Give every writable stream what is due. */
void judge_peers_give(struct judge *judge);
void judge_peers_tick(struct judge *judge);
/* A stream is there and its last order is out; a first one after it was down (or ever) is a new
 * stream. */
void judge_stream_up(struct judge *judge, uint32_t ps);
/* `reason` of the exit that ended it; UNSPECIFIED: it broke. */
void judge_stream_down(
    struct judge *judge, uint32_t ps, const char *text, enum sumac_reason reason);
void judge_hear_report(struct judge *judge, uint32_t ps, const wire_peer_report *report);
/* "ps 1 at h2:2222, never heard from (the name does not resolve)" */
const char *judge_peer_text(const struct judge *judge, uint32_t ps);
/* The remedy for a ps that is missing. */
const char *judge_peer_remedy(const struct judge *judge, uint32_t ps);
/* "ps 0 waits for ps 1 at h2:2222, never heard from; gives up in 35 s" */
const char *judge_peer_wait(const struct judge *judge, uint32_t ps);

/* orders.c: the one list, and what is sent for each. */
struct judge_mask judge_every_ps(const struct judge *judge);
/* Append one for every ps. What there is no memory for is logged, and made by a later tick. */
void judge_order_session(
    struct judge *judge, enum judge_order_kind kind, struct judge_session *session);
/* To open it, after the membership that it counts in. */
void judge_order_open(struct judge *judge, struct judge_session *session);
/* False: there is no memory for it yet. */
bool judge_order_function(struct judge *judge, struct judge_function *function);
bool judge_order_variable(
    struct judge *judge, enum judge_order_kind kind, struct judge_variable *variable);
/* To take the synchronous step that was taken last. */
void judge_order_take(struct judge *judge);
/* Append the order to end, for these. It needs no memory. */
void judge_order_end(struct judge *judge, const struct judge_mask *pending);
const wire_peer_order *judge_order_pack(struct judge *judge, const struct judge_order *order);
struct judge_order *judge_order_find(const struct judge *judge, uint64_t number);
/* "to add its shards of W1": what an order is for, after the name of a ps. */
const char *judge_order_text(const struct judge *judge, const struct judge_order *order);
struct judge_order *judge_order_next(struct judge_order *order, uint32_t ps); /* from `order` on */
/* This ps has answered; the last answer completes the order. report NULL: it never will. */
void judge_order_answered(
    struct judge *judge, struct judge_order *order, uint32_t ps, const wire_peer_report *report);
/* What there was no memory for is done again. */
void judge_orders_tick(struct judge *judge);
/* The judge begins with its records: what was under way is ordered again. */
void judge_orders_begin_again(struct judge *judge);
/* A ps whose answer to an order of this session could not be made, or kept, for want of memory;
 * ps_count: none. */
uint32_t judge_order_short(const struct judge *judge, const struct judge_session *session);

/* sessions.c: tasks and sessions. */
void judge_tasks_start(struct judge *judge);
/* NULL: no such task is known. */
struct judge_task *judge_task_find(const struct judge *judge, const wire_task_name *name);
/* Tasks to be spoken of. */
enum judge_tasks {
    JUDGE_TASKS_LISTED,
    JUDGE_TASKS_NEVER_JOINED, /* though listed */
    JUDGE_TASKS_UNFINISHED,   /* that have joined, and did not leave as done */
    JUDGE_TASKS_LOST,         /* that have joined, and did not leave */
    JUDGE_TASKS_DONE,
};
bool judge_tasks_any(const struct judge *judge, enum judge_tasks which);
uint32_t judge_tasks_count(const struct judge *judge, enum judge_tasks which);
/* "worker 0, worker 1, … 40 in all"; in the step's arena. */
const char *judge_tasks_text(const struct judge *judge, enum judge_tasks which);
/* Where there is no place for it, the task that left longest ago is forgotten. NULL: none may be,
 * the name is too long, or no memory. */
struct judge_task *judge_task_find_or_add(struct judge *judge, const wire_task_name *name);
/* No session is of it, it is not listed, and nobody will ask how its last session ended. */
bool judge_task_may_be_forgotten(struct judge *judge, const struct judge_task *task);
void judge_task_forget(struct judge *judge, struct judge_task *task);
/* How many tasks may be forgotten to make room. */
uint32_t judge_tasks_forgettable(struct judge *judge);
struct judge_session *
judge_session_find(const struct judge *judge, const uint8_t *id, size_t bytes);
struct judge_session *judge_session_find_nonce(const struct judge *judge, const uint8_t *nonce);
/* NULL: no memory. */
struct judge_session *judge_session_add(struct judge *judge, const void *id, const uint8_t *nonce);
void judge_session_forget(struct judge *judge, struct judge_session *session);
void judge_sessions_forget_oldest(struct judge *judge);
void judge_renewed(struct judge *judge, const wire_bytes *id);
/* Fail a call of a session that is closed, with the cause. */
void judge_fail_closed(struct judge *judge, uint64_t call, const struct judge_session *session);
/* An open session, heard of now; else the call fails with SESSION_UNKNOWN, SESSION_CLOSED or
 * RUN_ENDED. */
struct judge_session *
judge_session_of_call(struct judge *judge, uint64_t call, const wire_bytes *id);

/* voided.c */
/* False: no memory, or more than JUDGE_VOIDED_MAX. */
bool judge_voided_add(struct judge *judge, struct judge_voided **set, uint64_t sequence);
bool judge_voided_has(const struct judge_voided *set, uint64_t sequence);
void judge_voided_drop(struct judge *judge, struct judge_voided **set);
/* Of one that holds what every ps may remember. */
uint64_t judge_voided_bytes_max(const struct judge *judge);

/* That one ps remembers of one session. */
static inline uint32_t judge_refusals_max(const struct judge *judge)
{
    const uint32_t given = judge->config->voided_per_session_max;

    return given != 0 ? given : LANE_VOIDED_PER_SESSION_MAX;
}

static inline uint32_t judge_settled_max(const struct judge *judge)
{
    const uint32_t given = judge->config->settled_sessions_max;

    return given != 0 ? given : JUDGE_SETTLED_MAX;
}

/* Open ones, and settled ones that are remembered. */
static inline uint64_t judge_sessions_max(const struct judge *judge)
{
    return (uint64_t)judge->config->sessions_max + judge_settled_max(judge);
}

/* admit.c */
/* Is it a join at all? */
enum sumac_status judge_join_check(
    const struct judge *judge, const wire_join_request *request, struct sumac_error *error);
/* May it come in? Changes nothing but marks. */
enum sumac_status
judge_join_admit(struct judge *judge, const wire_join_request *request, struct sumac_error *error);

/* join.c */
void judge_join_call(struct judge *judge, const struct judge_event *event);
/* Go on with every join that waited for what has happened now. */
void judge_joins_go_on(struct judge *judge);
/* Does an earlier session of its task, which the join has closed, have yet to be settled? The ps
 * were told that another attempt comes, so that one comes, if only for a lease. */
bool judge_join_replaces(const struct judge *judge, const struct judge_session *session);
void judge_joins_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text);
/* A ps is connected to its client: the join of the attempt that replaces it will say so. */
void judge_join_replaced_lives(struct judge *judge, const struct judge_session *replaced);
void judge_join_opened(
    struct judge *judge, struct judge_session *session, uint32_t ps,
    const wire_peer_report *report);
void judge_join_complete(struct judge *judge, struct judge_session *session);
void judge_first_step_complete(struct judge *judge, struct judge_session *session);
/* The members that begin with synchronous step 1; 0: it is not known how many. */
uint32_t judge_step_members(const struct judge *judge);
/* SUMAC__V1__ON_LOSS__…, as ps 0 was told. */
uint32_t judge_on_loss(const struct judge *judge);
/* Joins of observers end when a ps does not appear: the run, which has not begun, does not. */
void judge_joins_tick(struct judge *judge);

/* settle.c */
/* Its client left it as done, and lacks no push that it has made; when all ps have closed it. */
bool judge_left_as_done(const struct judge *judge, const struct judge_session *session);
void judge_renew_call(struct judge *judge, const struct judge_event *event);
void judge_leave_call(struct judge *judge, const struct judge_event *event);
void judge_settle(
    struct judge *judge, struct judge_session *session, const struct close_cause *cause);
/* False: what it voids cannot be kept for want of memory, and must not be decided without. */
bool judge_close_reported(
    struct judge *judge, struct judge_session *session, const wire_peer_report *report);
void judge_close_complete(struct judge *judge, struct judge_session *session);
void judge_decide_complete(struct judge *judge, struct judge_session *session);
void judge_leases_tick(struct judge *judge);
void judge_room_reported(struct judge *judge, uint32_t ps, const wire_peer_report *report);
void judge_leaves_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text);

/* create_many.c */
void judge_create_many(
    struct judge *judge, const struct judge_event *event, struct judge_session *session);
/* What a call with a list waited for is published. True: the call was answered, or failed. */
bool judge_list_go_on(struct judge *judge, struct judge_call *call);
/* Of those that are waited for. */
bool judge_list_has(const struct judge_list *list, uint64_t id);
void judge_list_give(struct judge *judge, struct judge_list *list);

/* create.c */
/* The variable of that name, made if there is none. */
enum sumac_status judge_find_or_make(
    struct judge *judge, const wire_variable *wanted, struct judge_variable **variable,
    struct sumac_error *error);
/* Keep it, with its list, or fail it. It waits for its variable, for as long as it named; 0: it
 * named no time. */
void judge_wait_call(struct judge *judge, struct judge_call wanted, uint32_t timeout_ms);
/* May an order be added? False: the call was failed. */
bool judge_may_change_catalogue(struct judge *judge, uint64_t call);
/* The call was answered, or failed. Returns the one after it. */
struct judge_call *judge_call_drop(struct judge *judge, struct judge_call *call);
void judge_create_call(struct judge *judge, const struct judge_event *event);
void judge_delete_call(struct judge *judge, const struct judge_event *event);
void judge_add_answered(
    struct judge *judge, struct judge_variable *variable, uint32_t ps,
    const wire_peer_report *report);
void judge_add_complete(struct judge *judge, struct judge_variable *variable);
void judge_publish_complete(struct judge *judge, struct judge_variable *variable);
void judge_delete_complete(struct judge *judge, struct judge_variable *variable);
void judge_assigned(struct judge *judge, uint32_t ps, uint64_t variable_id);
/* A session takes nothing more: its creates, deletes and defines fail, ... */
void judge_calls_of_session_fail(struct judge *judge, const struct judge_session *session);
/* ... and once it is settled, what it was to assign goes to the one that has waited longest. */
void judge_creator_settled(struct judge *judge, const struct judge_session *session);
void judge_calls_tick(struct judge *judge);
void judge_calls_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text);
void judge_call_forget(struct judge *judge, uint64_t call);
const char *judge_call_wait(const struct judge *judge, const struct judge_call *call);

/* barrier.c */
void judge_barrier_call(struct judge *judge, const struct judge_event *event);
/* The session takes nothing more: its calls fail, and what it has come to counts. */
void judge_barriers_of_session_fail(struct judge *judge, const struct judge_session *session);
/* A session of that task is settled: rounds that lack it end, where it has no other session. */
void judge_barriers_settled(struct judge *judge, const struct judge_task *task);
void judge_barriers_tick(struct judge *judge);
/* The judge begins with its records: deadlines begin anew. */
void judge_barriers_begin_again(struct judge *judge);
void judge_barriers_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text);
void judge_barrier_call_forget(struct judge *judge, uint64_t call);

/* run_end.c */
/* At the end of a step: once, when it is on disk that it ends. */
void judge_run_over_say(struct judge *judge);
/* The judge begins with its records, and the run was being ended. */
void judge_run_end_again(struct judge *judge);
void judge_run_tick(struct judge *judge);
/* A member has left or was settled: is that all? */
void judge_run_check(struct judge *judge);
void judge_state_lost(struct judge *judge, const char *text);
/* A ps never appeared: those who wait are told, and the run is over before it began. */
void judge_ps_missing(struct judge *judge, const char *text);
/* It is there, and was configured for another cluster. */
void judge_ps_misconfigured(struct judge *judge, const char *text);
/* A ps that had been met has ended of its own, and said why. */
void judge_ps_ended(struct judge *judge, uint32_t ps, enum sumac_reason reason, const char *text);
void judge_run_end_now(struct judge *judge);
/* Who may still come before the run ends, and until when; NULL: some member is there, or none has
 * been yet. */
const char *judge_run_wait(const struct judge *judge);
/* Members that are open, or about to be, or not settled yet? */
bool judge_run_has_members(const struct judge *judge);
void judge_end_complete(struct judge *judge);

/* waits.c */
/* The next report comes after report_ms. */
void judge_reports_begin(struct judge *judge);
void judge_report_waits(struct judge *judge);

#endif
