/* SPDX-License-Identifier: Apache-2.0 */
/* controller_objects.h -- the controller's object for each ps, task, session, variable, function,
 * order and call, and their rows in the records (controller_rows.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "close_cause.h"
#include "end_status.h"
#include "controller.h"
#include "controller_rows.h"
#include "lane.h"
#include "memory.h"
#include "out.h"
#include "definition.h"
#include "functions.h"
#include "id_map.h"
#include "key_map.h"
#include "list.h"
#include "replaced.h"
#include "update.h"
#include "wire.h"

#define CONTROLLER_EPOCH 1u
#define CONTROLLER_ID_BYTES 16
#define CONTROLLER_JOB_BYTES_MAX 64
#define CONTROLLER_ADDRESS_BYTES_MAX 255
#define CONTROLLER_LABEL_BYTES 96
#define CONTROLLER_TASKS_MAX 4096u /* beyond it, those that have left give way (sessions.c) */
/* Members that joins may name, where the configuration lists none. */
#define CONTROLLER_NAMED_MAX 1024u
#define CONTROLLER_SETTLED_MAX 256u /* sessions remembered, for retried leaves and joins */
#define CONTROLLER_VARIABLES_MAX 262144u
#define CONTROLLER_CALLS_MAX 4096u  /* creates, deletes and defines that wait */
#define CONTROLLER_ORDERS_MAX 8192u /* not yet answered; beyond it those are refused */
/* The maximum of voided pushes of one session, at all ps together. */
#define CONTROLLER_VOIDED_MAX (LANE_PS_MAX * LANE_VOIDED_PER_SESSION_MAX)
#define CONTROLLER_HELD_BYTES_MAX (8u << 20)  /* of answers that wait for their record */
#define CONTROLLER_AGAIN_MS 1000u             /* until a retry after memory was short */
#define CONTROLLER_CREATE_MS 60000u           /* timeout of a create or delete that names none */
#define CONTROLLER_ALIVE_MS 1000u             /* longest interval of ps 0's signs of life */
#define CONTROLLER_REFUSED_MS 5000u           /* from the refusal of a ps to the end of the run */
#define CONTROLLER_STEPS_MAX (UINT64_MAX / 2) /* above it a step number is invalid */
#define CONTROLLER_STEP_TIMES 16u             /* last steps that set the next deadline */
#define CONTROLLER_FLAPS_MAX 3u       /* replacements of a task's running processes in … */
#define CONTROLLER_FLAPS_US 60000000u /* … this time; then the present process stays */
#define CONTROLLER_MASK_WORDS (LANE_PS_MAX / 64u)

/* A set of ps. */
struct controller_mask {
    uint64_t word[CONTROLLER_MASK_WORDS];
};

static inline bool controller_mask_has(const struct controller_mask *mask, uint32_t ps)
{
    return (mask->word[ps / 64u] >> (ps % 64u) & 1u) != 0;
}

static inline void controller_mask_add(struct controller_mask *mask, uint32_t ps)
{
    mask->word[ps / 64u] |= UINT64_C(1) << (ps % 64u);
}

static inline void controller_mask_remove(struct controller_mask *mask, uint32_t ps)
{
    mask->word[ps / 64u] &= ~(UINT64_C(1) << (ps % 64u));
}

static inline bool controller_mask_empty(const struct controller_mask *mask)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < CONTROLLER_MASK_WORDS; i++)
        any |= mask->word[i];
    return any == 0;
}

/* An object's state in the records. It is the first member of the object. */
struct controller_row {
    LINKS(struct controller_row) in_changed;
    enum controller_row_kind kind;
    bool changed;    /* since the last step's end: the next record needs its row */
    uint64_t record; /* the last record with its row; 0: none */
};

/* The row of an object that is no more, until the step's end. */
struct controller_gone {
    LINKS(struct controller_gone) in_controller;
    struct span row;
};

/* An answer whose record is not on disk yet. */
struct controller_held {
    LINKS(struct controller_held) in_controller;
    uint64_t call;
    uint64_t record;           /* all up to it; 0: that of the present step */
    bool kept;                 /* it is of an earlier step */
    const wire_message *reply; /* in the step's arena, … */
    const wire_type *type;     /* … and beyond the step these bytes; NULL: the error */
    uint8_t *bytes;
    size_t byte_count;
    struct sumac_error error;
};

struct controller_voided {
    uint32_t count, capacity;
    uint64_t sequence[]; /* ascending */
};

/* The map key of a task: the bytes of this struct up to the end of the job. */
struct controller_task_key {
    uint32_t index;
    char job[CONTROLLER_JOB_BYTES_MAX + 1];
};

struct controller_task {
    struct controller_row row;
    LINKS(struct controller_task) in_controller;
    struct key_entry by_key;
    struct controller_task_key key;
    bool listed; /* in the configuration */
    bool member; /* counts in the membership */
    bool joined; /* has ever been open */
    bool done;   /* its last session left as done */
    bool left;   /* its client has left, and will not ask how the last session ended */
    uint64_t left_us;
    uint64_t named; /* a mark: of the last list that named it, or the last look at all tasks */
    uint64_t attempts;
    const char *address;                       /* as configured; NULL or "": not known */
    uint64_t flapped_us[CONTROLLER_FLAPS_MAX]; /* last signs of life of the replaced; 0: none */
    bool contested;                   /* the present session stays until it ends by itself */
    uint64_t final;                   /* of its last settled session */
    uint64_t acked_through;           /* of that session, too */
    struct controller_voided *voided; /* of that session, too; NULL: none */
};

/* A session goes through these in order; a join that fails while it waits is forgotten. */
enum controller_session_state {
    CONTROLLER_SESSION_WAITING, /* for the ps, or for the task's earlier session to be settled */
    CONTROLLER_SESSION_OPENING, /* ps 0 orders every ps to open it */
    CONTROLLER_SESSION_OPEN,
    CONTROLLER_SESSION_CLOSING,  /* ps 0 asks every ps for the session's last push */
    CONTROLLER_SESSION_DECIDING, /* ps 0 sends every ps the session's end */
    CONTROLLER_SESSION_SETTLED,
};

struct controller_session {
    struct controller_row row;
    LINKS(struct controller_session) in_controller;
    struct key_entry by_id, by_nonce;
    uint8_t id[CONTROLLER_ID_BYTES];
    uint8_t nonce[CONTROLLER_ID_BYTES];
    enum controller_session_state state;
    uint32_t role;
    char job[CONTROLLER_JOB_BYTES_MAX + 1]; /* "" of an observer without a task */
    uint32_t index;
    char label[CONTROLLER_LABEL_BYTES]; /* "worker 3" */
    struct controller_task *task;       /* of a member; NULL of an observer */
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
    struct controller_mask come_on; /* ps that have said so, … */
    uint32_t come_count;            /* … and their count */
    uint64_t taken_step;            /* the last that was taken with what it has */
    uint64_t made_step;     /* settled: the last that it has made a contribution to, and … */
    uint64_t made_sequence; /* … which, where its turn was not over; 0: it was, or it is voided */
    uint64_t join_call, leave_call; /* 0: no call waits */
    bool opened; /* at every ps: its client may know that, and have contributed */
    bool done;
    bool left;              /* its client's leave settled it, … */
    uint64_t last_sequence; /* … which named this push as its last */
    uint64_t final;
    uint64_t acked_through;           /* the largest that a ps has: above it `voided` lacks none */
    struct close_cause cause;         /* from CLOSING on */
    uint64_t settling_us;             /* when CLOSING began */
    struct controller_voided *voided; /* NULL: none */
    uint32_t orders;                  /* in the list that name it */
};

enum controller_order_kind {
    CONTROLLER_ORDER_OPEN,
    CONTROLLER_ORDER_FIRST_STEP,
    CONTROLLER_ORDER_CLOSE,
    CONTROLLER_ORDER_DECIDE,
    CONTROLLER_ORDER_MEMBERSHIP,
    CONTROLLER_ORDER_TAKE,
    CONTROLLER_ORDER_DEFINE,
    CONTROLLER_ORDER_COLLECTIVE,
    CONTROLLER_ORDER_ADD_SHARDS,
    CONTROLLER_ORDER_PUBLISH,
    CONTROLLER_ORDER_DELETE,
    CONTROLLER_ORDER_END,
    CONTROLLER_ORDER_KINDS,
};

struct controller_order {
    LINKS(struct controller_order) in_controller;
    uint64_t number;
    uint64_t record; /* all up to it must be on disk before a ps is given this; 0: not known yet */
    enum controller_order_kind kind;
    struct controller_row *row; /* of the object below, if it has one, … */
    uint32_t *count;            /* … and of the orders that name it; NULL: it counts none */
    struct controller_session *session;       /* of open, first_step, close, decide */
    struct controller_variable *variable;     /* of add_shards, publish, delete */
    struct controller_function *function;     /* of define */
    struct controller_collective *collective; /* of meet */
    struct controller_mask pending;           /* ps whose answer is still missing */
    struct controller_mask again;             /* those of them that need the order again, … */
    uint64_t again_us;                        /* … not before this; memory was short */
};

struct controller_peer {
    struct controller_row row;
    char address[CONTROLLER_ADDRESS_BYTES_MAX + 1]; /* "": not known yet */
    char trouble[SUMAC_ERROR_TEXT_BYTES];           /* why there is no stream, as the driver said */
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
    struct controller_order *next_order;
};

struct controller_call;
struct controller_barrier; /* barrier.h */
struct controller_waiting;

enum controller_variable_state {
    CONTROLLER_VARIABLE_ADDING,
    CONTROLLER_VARIABLE_PUBLISHING,
    CONTROLLER_VARIABLE_PUBLISHED,
    CONTROLLER_VARIABLE_DELETING, /* no longer found by its name */
};

struct controller_variable {
    struct controller_row row;
    LINKS(struct controller_variable) in_controller;
    struct key_entry by_name;
    LIST(struct controller_call) waiting; /* calls that are to be answered when it has moved on */
    size_t bytes;                         /* of this struct, and what lies behind it */
    uint64_t id;
    enum controller_variable_state state;
    struct definition definition;
    struct controller_session *creator; /* the session that is to assign it; NULL: none */
    uint32_t orders;                    /* in the list that name it */
    struct controller_mask unassigned;  /* ps whose shards are not yet assigned */
    struct sumac_error failure;         /* of a ps that could not make its shards; OK: none */
    const char *name;                   /* behind this struct, … */
    uint8_t *places;                    /* (shard_count) … and then the ps of each shard */
    uint64_t shards_before;             /* of the cluster; they say each one's number */
    uint64_t turns;                     /* that were taken when its own were */
    uint32_t shard_count;
};

enum controller_function_state {
    CONTROLLER_FUNCTION_DEFINING,
    CONTROLLER_FUNCTION_DEFINED, /* every ps has it */
    CONTROLLER_FUNCTION_REFUSED, /* some ps reads its text otherwise: it is of another release */
};

/* One that was defined, beside what `functions` has of it at the same place. */
struct controller_function {
    struct controller_row row;
    enum controller_function_state state;
    uint32_t orders; /* in the list that name it */
};

enum controller_call_kind {
    CONTROLLER_CALL_CREATE,
    CONTROLLER_CALL_DELETE,
    CONTROLLER_CALL_DEFINE
};

/* The variables of one create. */
struct controller_list {
    uint32_t count, at; /* those before `at` are published */
    uint64_t ids[];
};

struct controller_call {
    LINKS(struct controller_call) in_controller; /* in the order in which they came */
    LINKS(struct controller_call) of_variable;
    enum controller_call_kind kind;
    uint64_t call;
    struct controller_variable
        *variable; /* of a list the one that is waited for; NULL of a define */
    struct controller_function *function; /* of a define */
    struct controller_list *list;         /* of a create of several; NULL: of one */
    struct controller_session *session;
    uint64_t until_us;
    uint32_t timeout_ms;
};

enum controller_phase {
    CONTROLLER_RUNNING,
    CONTROLLER_ENDING, /* the other ps get the order to end */
    CONTROLLER_ENDED,  /* ps 0 itself gets the order to end */
};
