/* SPDX-License-Identifier: Apache-2.0 */
/* call.h -- a call as gRPC's C core sees it; inside lib/rpc only.
 *
 * A call's life in batches, each counted in `batches` from its start to its tag:
 *
 *     server    accepted ─► close (comes last)
 *               ║ receive, again and again
 *               ║ send, one at a time, the last with the status
 *     client    open ─► send … end
 *               ║ receive, again and again
 *               ║ status (comes last)
 *
 * It is over when close or status has come and no batch is under way: then `closed` is told and the
 * memory given back. The other side's answer to a message can come before that message's own
 * completion; so whoever sends asks `writable`.
 */
#pragma once

#include <grpc/grpc.h>

#include "reader.h"
#include "rpc.h"
#include "schema.h"
#include "unread.h"

/* Trailing metadata of an error. */
#define REASON_KEY "sumac-reason"           /* enum Reason in decimal */
#define PS0_ADDRESS_KEY "sumac-ps0-address" /* of REASON_NOT_CONTROLLER: host:port */
#define TRAILING_MAX 2u

/* What gRPC hands back with an event. */
struct tag {
    void (*done)(void *owner, bool ok);
    void *owner;
};

struct rpc_poller {
    grpc_completion_queue *queue;
    struct schema *schema;
    struct pool calls;
    struct arena arena;   /* of the message that is being handled */
    struct reader reader; /* who polls */
    uint32_t live;        /* calls that are not over, and closed channels that still connect */
    /* Calls whose next message is to be asked for; each counts that as a batch. */
    struct rpc_call *asking;
};

/* What this end says; call.c has the table of its moves. The last word is the status, or the
 * client's half-close. */
enum call_says {
    SAYS_NOTHING_YET, /* the client's initial metadata is not out */
    SAYS_WHAT_COMES,  /* a message may be sent */
    SAYS_A_MESSAGE,   /* it is under way */
    SAYS_LAST_SOON,   /* the last word follows what is under way */
    SAYS_LAST,        /* it is on its way */
};

/* What becomes of a message that arrives. */
enum call_hears {
    HEARS_ALL,
    HEARS_LATER,   /* it is kept, until rpc_call_resume */
    HEARS_NOTHING, /* it is dropped: one was malformed, or the call is ended */
};

/* The queue of the server that a call stands in. */
enum call_waits {
    WAITS_FOR_NOTHING,
    WAITS_FOR_REQUEST, /* its client has yet to send it */
    WAITS_FOR_READER,  /* its last word is out */
};

struct rpc_call {
    struct rpc_poller *poller;
    struct rpc_server *server; /* one of these two is NULL */
    struct rpc_channel *channel;
    struct method *method; /* server: in whose bound it counts; NULL: in none, it is refused */
    struct method *asked;  /* server: whose request it has yet to send, while it waits for that */
    struct rpc_call *previous, *next; /* of the server's or the channel's */
    struct rpc_call *older, *newer;   /* server: of the queue that it stands in */
    struct rpc_call *next_asking;
    grpc_call *core;
    const struct rpc_handler *handler;
    void *user;
    const wire_type *incoming; /* NULL: nothing is received */

    /* Beside the three states: what it is from its beginning on (the first two), and what has
     * happened to it, once and for good, in any order: no move of these can be wrong but back, and
     * there is none. */
    bool own;            /* server: of health or reflection, which end with the server's draining */
    bool answers_once;   /* server: the message sent first carries the status OK */
    bool greeted;        /* this end's initial metadata was sent */
    bool welcomed;       /* client: the server's was asked for */
    bool heard;          /* a message has come */
    bool over;           /* close or status has come: it lasts until no batch is under way */
    enum call_says says; /* call_say changes it */
    enum call_hears hears; /* call_hear changes it */
    enum call_waits waits; /* server.c changes it with the queue */
    uint32_t batches;
    uint64_t ending_since_us; /* server: as a tick found it; 0: not yet */
    uint32_t connection;      /* server: the number of its connection, once its last word is out */
    struct unread_key key; /* server: of its connection, once it is looked for; inode 0: not yet */
    uint64_t unread_bytes, unread_ticket; /* server: of the answer that its client has not taken */

    grpc_byte_buffer *outgoing; /* refilled for each message */
    grpc_byte_buffer *arriving; /* where the next message will be */
    grpc_byte_buffer *held;     /* arrived while paused */

    struct tag opened, sent, finished, received, closed;

    int cancelled; /* server */
    /* Client: what was wrong with an answer; counts more than the status. */
    struct sumac_error *refused;
    grpc_status_code status; /* client: received; server: to send */
    enum sumac_reason reason;
    grpc_slice details;
    grpc_slice ps0_address; /* server: to send; empty: none */
    grpc_metadata_array initial, trailing;
};

/* call.c */
/* Its tags are to be filled by its server or channel. NULL: no memory. */
struct rpc_call *call_create(struct rpc_poller *poller, grpc_call *core);
void call_destroy(struct rpc_call *call);
void call_say(struct rpc_call *call, enum call_says to);
void call_hear(struct rpc_call *call, enum call_hears to);
/* One more batch; gRPC refuses only what breaks its rules. */
void call_start(struct rpc_call *call, const grpc_op *ops, size_t count, struct tag *tag);

/* An option of a server or a channel. */
static inline grpc_arg core_integer(const char *key, uint64_t value)
{
    const int bounded = value < INT32_MAX ? (int)value : INT32_MAX;

    return (grpc_arg){
        .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key, .value.integer = bounded};
}

/* So many microseconds of CLOCK_MONOTONIC; UINT64_MAX: never. */
static inline gpr_timespec core_time(uint64_t us)
{
    if (us == UINT64_MAX)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return (gpr_timespec){
        .tv_sec = (int64_t)(us / 1000000),
        .tv_nsec = (int32_t)(us % 1000000 * 1000),
        .clock_type = GPR_CLOCK_MONOTONIC};
}

/* poller.c */
void call_receive(struct rpc_call *call);
/* The same, by rpc_ask. */
static inline void call_receive_soon(struct rpc_call *call)
{
    call->batches++;
    call->next_asking = call->poller->asking;
    call->poller->asking = call;
}

/* channel.c and ending.c: who a call belongs to keeps a list. */
void channel_forget(struct rpc_channel *channel, struct rpc_call *call);
void server_forget(struct rpc_server *server, struct rpc_call *call);
/* The call's answer or status is the last that it says. One of too many is cut. */
void server_note_ending(struct rpc_server *server, struct rpc_call *call);
/* So many bytes of an answer are handed to gRPC. A connection is cut when too many bytes are
 * unread. False: there is no room for them, and they must not be sent. */
bool server_note_unread(struct rpc_server *server, struct rpc_call *call, uint64_t bytes);
/* They have gone out (`taken`), or the call is over. */
void server_end_unread(struct rpc_server *server, struct rpc_call *call, bool taken);

/* over.c */
/* A batch has completed: the last thing every tag's function does. The call may be gone after it.
 */
void call_settle(struct rpc_call *call);

/* send.c */
void call_send_done(void *owner, bool ok);
/* Nothing is under way any more: send the half-close or the status that waits for that, if one
 * does. */
void call_send_ending(struct rpc_call *call);
/* One packed message with its payload, in call->outgoing. */
void call_fill(
    struct rpc_call *call, const wire_message *message, const struct rpc_payload *payload,
    size_t payload_count);

/* receive.c */
void call_receive_done(void *owner, bool ok);
/* Unpack and hand over; takes `buffer`. */
void call_deliver(struct rpc_call *call, grpc_byte_buffer *buffer);

/* A server's calls that wait for the same thing; each stands in one such queue at most. */
struct call_queue {
    struct rpc_call *oldest, *newest;
    uint32_t count;
};

static inline void call_queue_add(struct call_queue *queue, struct rpc_call *call)
{
    call->older = queue->newest;
    call->newer = NULL;
    if (queue->newest != NULL)
        queue->newest->newer = call;
    else
        queue->oldest = call;
    queue->newest = call;
    queue->count++;
}

static inline void call_queue_remove(struct call_queue *queue, struct rpc_call *call)
{
    if (call->older != NULL)
        call->older->newer = call->newer;
    else
        queue->oldest = call->newer;
    if (call->newer != NULL)
        call->newer->older = call->older;
    else
        queue->newest = call->older;
    call->older = call->newer = NULL;
    queue->count--;
}

static inline void calls_link(struct rpc_call **first, struct rpc_call *call)
{
    call->previous = NULL;
    call->next = *first;
    if (*first != NULL)
        (*first)->previous = call;
    *first = call;
}

static inline void calls_unlink(struct rpc_call **first, struct rpc_call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        *first = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
}
