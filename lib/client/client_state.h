/* SPDX-License-Identifier: Apache-2.0 */
/* client_state.h -- a client from the inside: one session, its channels, and the threads that take
 * turns at them. Private to lib/client.
 *
 *   client.c     open, leave, close          stream.c     the session's effects: streams, calls
 *   configured.c what is configured          unary.c      one call, waited for
 *   lock.c       the lock, the process, time catalogue.c  create, find, delete
 *   poll.c       who polls                   variable.c   what is known of one; is a tensor right?
 *   push.c, pull.c, collective.c  what callers ask for   shards.c   rows to pieces
 *   transfer.c   what all of these have in common    transfer_wait.c   its end
 *   checked_contribution.c   what collectives and barriers are asked for, the rounds of each name
 *   log.c        its lines
 *   too_large.c       is a variable too large for one push?   function.c  functions by name
 *   describe.c   what the ps say of variables, and of themselves
 *
 * One lock guards everything here but what a transfer's `lent` counts. A thread that waits for
 * something polls the network, without the lock while nothing has come; only one thread does, the
 * others that wait sleep until something has happened, or until it is their turn. A thread in the
 * background does it while nobody waits.
 */
#pragma once

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "key_map.h"
#include "list.h"
#include "log.h"
#include "memory.h"
#include "rpc.h"
#include "session.h"
#include "sumac/client.h"
#include "sumac/collective.h"
#include "text.h"

#define REPORT_US 5000000u  /* how often a wait for a ps says so */
#define RELEASE_US 200u     /* gRPC's own threads tell of released bytes; nothing arrives then */
#define ASKING_MS_MIN 1000u /* a shorter wait asks no ps what is missing */
#define TRANSFER_BYTES_MAX ((size_t)1 << 30)
#define NEVER_US UINT64_MAX

/* A stream of the session to one ps: the call that carries it now. */
struct stream_place {
    struct rpc_call *call; /* NULL: none */
    uint64_t generation;
};

struct peer {
    const char *address;             /* the session's; "" when unknown */
    struct rpc_channel *channels[2]; /* for pushes; for pulls, leases and all else. NULL: not yet */
    struct stream_place streams[2];
    uint64_t heard_us; /* 0: never */
};

struct variable_shard {
    uint64_t shard_id;
    uint32_t layout_epoch, ps;
    uint64_t first_row, rows, bytes;
    uint64_t version, earlier_version; /* as last pulled, and by the pull before */
};

struct sumac_client_variable {
    LINKS(struct sumac_client_variable) in_client;
    LINKS(struct sumac_client_variable) among_room_due;
    struct key_entry by_name;          /* in the map, unless it is deleted */
    const struct sumac_client *client; /* whose it is */
    char *name;
    uint64_t variable_id;
    uint32_t function; /* its number */
    enum sumac_dtype dtype;
    struct sumac_shape shape;
    uint64_t row_bytes; /* of a scalar: all of it */
    uint64_t rows;      /* of a scalar: 1 */
    bool deleted;
    bool created;     /* by this client, or so it asked */
    bool every_shard; /* a push of some of its rows names all its shards */
    uint32_t shard_count;
    struct variable_shard shards[];
};

/* What the end of a pull may take beyond its time: who waits for it so long hears why. */
#define END_US 1000000u

/* Rows of a pull by index, in the transfer's memory: each once, those of a shard together. */
struct gathered_values {
    struct gathered_values *next;
    uint8_t *into;          /* (count, row_bytes): the caller's */
    const uint8_t *values;  /* (so many as differ, row_bytes) */
    const uint32_t *places; /* (count), of each in `values` */
    uint64_t count, row_bytes;
};

/* A push or a pull under way. Taken from the client's free list, so that a client in its stride
 * allocates nothing. */
struct transfer {
    struct sumac_client *client;
    struct transfer *next; /* free */
    LINKS(struct transfer) among_live;
    struct arena arena; /* what lives as long as the transfer */
    struct session_piece *pieces;
    struct variable_shard **shards; /* of each piece */
    uint32_t piece_count, piece_capacity;
    struct sumac_buffer *joined;      /* of one of a round of a collective: what was not known */
    struct sumac_shape result_shape;  /* beforehand, and its shape */
    struct gathered_values *gathered; /* of a pull: rows that go to their places when it is over */
    bool synchronous;                 /* of a push: it is a contribution to a step */
    bool over;                        /* the session has said PUSHED or PULLED */
    uint64_t ends_us;                 /* a pull is over by then, its ps has said why; 0: no end */
    /* A reference on the bytes being pushed; NULL: the caller keeps them. */
    struct sumac_buffer *kept;
    atomic_uint lent; /* runs of the caller's bytes that gRPC holds */
    struct sumac_error error;
};

struct sumac_push {
    struct transfer transfer;
};

struct sumac_pull {
    struct transfer transfer;
};

/* A client's count of the rounds of each name. It keeps a name until the close. */
struct numbered_name {
    LINKS(struct numbered_name) among_names;
    struct key_entry by_name;
    uint64_t last; /* of a barrier: the last round whose end is known. 0: none yet */
    bool waits;    /* a thread waits at this barrier */
    char name[];
};

struct round_numbers {
    LIST(struct numbered_name) names;
    struct key_map by_name;
};

struct call_tag;
struct client_function; /* function.c */
struct client_unary;

struct sumac_client {
    pthread_mutex_t lock;
    pthread_t holder; /* of the lock, while it is `locked` */
    bool locked;
    pthread_cond_t happened; /* something was handled, or the poller's place is free */
    pthread_cond_t quiet;    /* the background thread's */
    pthread_t background;
    bool background_runs, closing;
    bool polling;     /* some thread is in rpc_wait */
    uint32_t waiters; /* user threads in client_wait */
    uint64_t used_us; /* when the last of them left */
    struct rpc_poller *poller;
    struct session *session;
    bool acknowledging; /* session_is_acknowledging, after its last step */
    bool stepping;      /* its effects are being carried out, which live until its next step */
    uint64_t wake_us;   /* when the session wants its tick */
    uint64_t random_state;
    bool joined, left, ended;
    struct sumac_error end;
    struct peer peers[SESSION_PS_MAX];
    uint32_t peer_count;
    LIST(struct call_tag) calls;       /* of the session, under way */
    LIST(struct client_unary) unaries; /* that threads wait for */
    LIST(struct sumac_client_variable) variables;
    LIST(struct sumac_client_variable) room_due; /* of them */
    struct key_map variables_by_name;
    struct round_numbers barrier_rounds, collective_rounds;
    LIST(struct sumac_collective) collectives; /* that are not waited for to their end yet */
    LIST(struct client_function) functions;    /* that were defined, as far as it has heard */
    struct transfer *free_transfers;
    LIST(struct transfer) live_transfers;
    struct rpc_payload *payload; /* grown: of the message being sent */
    uint32_t payload_capacity;
    double staleness_mean; /* of the latest pushes; below 0: of none yet */
    uint32_t timeout_ms;
    uint32_t member_index, member_count; /* as in the facts */
    uint64_t own_task;      /* as contributions to collectives say it; UINT64_MAX: of no member */
    uint64_t *member_tasks; /* likewise, all of them; NULL: they are not all known */
    uint32_t member_task_count;
    uint32_t strategies; /* that were made of it */
    unsigned forks;      /* lock.c: what its process's count was, ... */
    int64_t process;     /* ... and its number */
    bool reader;
    char who[128]; /* "worker 0" */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* log.c -- log.h has what others may say */
/* The log of whoever gives none; the context is the client. */
void client_log_to_stderr(void *context, const char *line);
/* Name it as client_who says. */
void client_name(struct sumac_client *client, const struct sumac_client_options *options);

/* too_large.c -- with the lock. Log a line if a push of the whole variable takes more of a ps's
 * staging than a session is granted. While the grant of a ps is unknown, set the variable's
 * `room_due`. */
void client_say_room(struct sumac_client *client, struct sumac_client_variable *variable);
/* For all that are due. */
void client_say_rooms(struct sumac_client *client);

/* lock.c -- the lock of everything in a client, which the thread that holds it takes no second
 * time */
void client_lock(struct sumac_client *client);
void client_unlock(struct sumac_client *client);
/* Sleep on a condition, the lock given up meanwhile. */
void client_sleep(struct sumac_client *client, pthread_cond_t *condition, uint64_t until_us);
/* Does this thread hold it? */
bool client_is_locked(const struct sumac_client *client);

/* Without the lock: is this the process that opened the client? */
void client_note_process(struct sumac_client *client);
bool client_is_here(const struct sumac_client *client);
/* Fails  FAILED_PRECONDITION: this is a child of the process that opened the client. */
enum sumac_status
client_check_process(const struct sumac_client *client, struct sumac_error *error);
/* Take the lock for a call of the program, unless an argument of the function is NULL: `null` is
 * its name, or NULL. Fails  INVALID_ARGUMENT; as client_check_process. */
enum sumac_status client_enter(
    struct sumac_client *client, const char *null, const char *function, struct sumac_error *error);

uint64_t client_now_us(void);
/* "35 s". */
static inline struct text_time client_time_until(uint64_t until_us)
{
    const uint64_t now_us = client_now_us();

    return text_time_left(until_us > now_us ? until_us - now_us : 0);
}

/* How long ps 0 may wait for others: less than the caller does, so that its answer, which says for
 * whom it waited, still comes in time. */
uint32_t client_ps_patience_ms(uint32_t timeout_ms);

/* poll.c -- all with the lock held */
/* Poll until done(context) or the time; true: done. A replaced client waits until ps 0 knows that
 * it lives, too. */
bool client_wait(
    struct sumac_client *client, bool (*done)(void *context), void *context, uint64_t until_us);
/* The same. Every REPORT_US, `say` logs what the wait is for. */
bool client_wait_and_say(
    struct sumac_client *client, bool (*done)(void *context), void (*say)(void *context),
    void *context, uint64_t until_us);
/* Whatever has come, without waiting. */
void client_poll_once(struct sumac_client *client);
bool client_start_background(struct sumac_client *client);
void client_stop_background(struct sumac_client *client);

/* stream.c -- with the lock held */
/* "ps 1 at h:2222, which was last heard from 40 ms ago" */
const char *
client_peer_text(const struct sumac_client *client, uint32_t ps, char *text, size_t text_bytes);
/* One event into the session; its effects are carried out. `now_us` 0: now. */
void client_step(struct sumac_client *client, struct session_event *event);
void client_hang_up(struct sumac_client *client);
/* The session has ended, and says nothing more of the unary calls under way. */
void client_fail_calls(struct sumac_client *client, const struct sumac_error *error);

/* unary.c -- with the lock held */
/* Called with the lock held, for the answer: lent until it returns. */
typedef void client_take(void *context, const wire_message *reply);
/* One unary call to a ps, until it is answered or the client's timeout is over. */
struct client_call {
    bool any_ps; /* any_ps, needs_session, once: as in struct session_call */
    uint32_t ps; /* that is asked, unless any will do */
    const wire_service *service;
    unsigned method;
    const wire_message *request;
    bool needs_session, once;
    uint32_t timeout_ms;    /* 0: the client's */
    bool waits_for_others;  /* it is answered when every ps has done its part */
    bool waits_for_members; /* it is answered when other members have come */
    client_take *take;      /* NULL: the answer says nothing more */
    void *context;
};
/* A call of the service of variables, which may be given more flags. */
struct client_call client_variables_call(
    unsigned method, const wire_message *request, client_take *take, void *context);
/* A call that a thread waits for; on its stack. */
struct client_unary {
    LINKS(struct client_unary) links; /* in the client's list */
    struct sumac_client *client;
    const struct client_call *call;
    uint32_t ps; /* that was asked */
    bool over;
    struct sumac_error error; /* status OK: it was answered */
};
enum sumac_status
client_call(struct sumac_client *client, const struct client_call *call, struct sumac_error *error);

/* client.c -- with the lock held */
/* Wait until the session is open: it says now and then who is missing, and sees to it that this
 * ends. */
enum sumac_status client_join(struct sumac_client *client, struct sumac_error *error);

/* configured.c */
/* The session that these options ask for. Fails  INVALID_ARGUMENT: the configuration has no ps, or
 * not the address of each. */
enum sumac_status client_make_session(
    struct sumac_client *client, const struct sumac_client_options *options,
    struct sumac_error *error);
/* Fails  INVALID_ARGUMENT: what the cluster says of this process is no member's. */
enum sumac_status
client_check_member(const struct sumac_cluster *cluster, struct sumac_error *error);
/* The chief is the first member, the workers come after it. A list that may lack some of them tells
 * no count. */
void client_find_place(struct sumac_client *client, const struct sumac_cluster *cluster);

/* catalogue.c */
/* Learn a variable, or what is new about one. NULL: no memory. */
struct sumac_client_variable *client_learn(struct sumac_client *client, const wire_variable *wire);
void client_forget_variables(struct sumac_client *client);

/* function.c -- with the lock held */
/* Ask ps 0 for the functions that were defined, if this one (NULL: none) is not known yet. Whether
 * it is now, client_function says. Waits. Fails  as a call; FAILED_PRECONDITION (UNSUPPORTED): this
 * release cannot read its text. */
enum sumac_status client_know_function(
    struct sumac_client *client, const struct sumac_function *function, struct sumac_error *error);
/* The function of that number, for which ps 0 may be asked. NULL: *error says why not. */
const struct update_function *
client_know_number(struct sumac_client *client, uint32_t number, struct sumac_error *error);
void client_forget_functions(struct sumac_client *client);

/* checked_contribution.c */
void round_numbers_init(struct round_numbers *numbers);
void round_numbers_deinit(struct round_numbers *numbers);
/* NULL: the name is new. */
struct numbered_name *round_numbers_find(const struct round_numbers *numbers, const char *name);
/* Find the name, or add it with round 0. NULL: no memory. */
struct numbered_name *round_numbers_add(struct round_numbers *numbers, const char *name);

/* Check the name, which has at most `most` bytes. kind: "barrier", for the error. */
enum sumac_status
client_check_name(const char *name, const char *kind, size_t most, struct sumac_error *error);

/* "chief" or "worker". */
const char *collective_task_job(uint64_t code);

/* Encode the options' tasks and sort them.
 *
 * label    begins each error: "barrier \"epoch\"".
 * Gives    *tasks (options->task_count), which the caller frees; NULL on failure.
 * Fails    INVALID_ARGUMENT: too many tasks, another job, a task is listed twice.
 *          RESOURCE_EXHAUSTED. */
enum sumac_status collective_list_tasks(
    const struct sumac_collective_options *options, const char *label, uint64_t **tasks,
    struct sumac_error *error);
enum sumac_status collective_no_task_memory(
    const struct sumac_collective_options *options, const char *label, struct sumac_error *error);

/* collective.c */
void client_forget_collectives(struct sumac_client *client);
