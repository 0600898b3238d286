/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h -- calls and streams over gRPC C core, for one thread at a time.
 *
 * Two nouns: a *poller* is a completion queue, and whoever calls rpc_poll does all the work,
 * handlers included; a *call* is one RPC, unary or streaming, at its server or its client end.
 * Dispatch is data: a service is protobuf-c's descriptor and one handler per method; the streaming
 * flags come from the descriptor set. Method types, sizes and errors are checked here; handlers see
 * unpacked messages only.
 *
 * Nothing queues: of a call at most one message is being sent, and one handled; the next is asked
 * for when its handler has returned (rpc_ask). Flow control does the rest.
 *
 * Threads: all functions on one poller's objects are called by one thread at a time (rpc_poll's
 * handlers included); only `released` callbacks may come on any thread. lib/rpc/ is the one door to
 * gRPC.
 */
#pragma once

#include <stdbool.h>

#include "sumac/status.h"
#include "wire.h"

struct rpc_poller;
struct rpc_server;
struct rpc_channel;
struct rpc_call;

/* Before rpc_init, once for each process. Fails  RESOURCE_EXHAUSTED: gRPC could not start its
 * threads here, and would wait for them without end. */
enum sumac_status rpc_check_threads(struct sumac_error *error);
/* gRPC's init and shutdown, counted. After any fork. */
void rpc_init(void);
void rpc_deinit(void);

enum sumac_status rpc_poller_create(struct rpc_poller **poller);
/* Servers and channels on it must be closed; polls until the last `closed` has been told. NULL is
 * fine. */
void rpc_poller_destroy(struct rpc_poller *poller);

enum rpc_polled { RPC_POLLED_EVENT, RPC_POLLED_NOTHING, RPC_POLLED_SHUTDOWN };

/* Wait for one event, up to `until_us` of CLOCK_MONOTONIC (0: do not wait), and handle it. Not from
 * a handler. */
enum rpc_polled rpc_poll(struct rpc_poller *poller, uint64_t until_us);

/* The same without waiting, and without asking anybody for more: of messages that are there
 * already, one after the other, none comes, so that it is the network that is looked at. It serves
 * one socket at most. Each call has at most one message under way that rpc_poll has asked for. */
enum rpc_polled rpc_listen(struct rpc_poller *poller);

/* rpc_poll in three parts, for callers with a lock. rpc_ask asks for the messages that may come
 * next; rpc_wait touches nothing but the queue, so that one thread may wait while others use the
 * poller's objects; rpc_handle does the rest.
 *
 * Asking for the next message writes to the socket. So it is done late, when a handler's answer or
 * a caller's next message has been sent and takes it along: a write less, of four in a round
 * trip. */
void rpc_ask(struct rpc_poller *poller);
struct rpc_event {
    void *tag;
    bool ok;
};
enum rpc_polled rpc_wait(struct rpc_poller *poller, uint64_t until_us, struct rpc_event *event);
void rpc_handle(struct rpc_poller *poller, const struct rpc_event *event);

/* Below this many bytes a payload is copied in any case: one slice costs less than two. */
#define RPC_COPIED_BYTES_MAX 8192u

/* Bytes to send after a message, as its payload field. `released` NULL: they are copied now. Else
 * they are referred to until released(context, id) is called, once, on whatever thread gRPC
 * chooses; of bytes that were copied, before rpc_call_send returns. */
struct rpc_payload {
    struct span bytes;
    void (*released)(void *context, uint64_t id);
    void *context;
    uint64_t id;
};

/* What happens to a call. `user` is rpc_call_user's. Every pointer is lent until the handler
 * returns. */
struct rpc_handler {
    /* Server: a message arrived; the first one (or, of a stream, opened) makes the call known.
     * Client: likewise. */
    void (*message)(struct rpc_call *call, const struct wire_received *received);
    /* A stream began (server: before its first message; client: the call was sent out). May be
     * NULL. */
    void (*opened)(struct rpc_call *call);
    /* The message sent last is out: another may be sent. May be NULL. */
    void (*writable)(struct rpc_call *call);
    /* The other side will send no more (streams, server side). NULL: the call is finished with OK.
     */
    void (*half_closed)(struct rpc_call *call);
    /* The call is over; it is not valid after this. Client: `error` says how (status OK included;
     * reason from the trailing metadata `sumac-reason`). Server: status CANCELLED when the client
     * went away first. */
    void (*closed)(struct rpc_call *call, const struct sumac_error *error);
    /* Server: calls of this method that may be open at once; one more is refused with
     * RESOURCE_EXHAUSTED, REASON_BUSY. At most the server's / RPC_METHOD_DIVISOR. 0: as many as the
     * server has. */
    uint32_t calls_max;
    /* Server: bytes of a message, which is refused before it is unpacked: RESOURCE_EXHAUSTED,
     * REASON_MESSAGE_TOO_LARGE. 0: as many as the server takes. */
    uint32_t message_bytes_max;
};

/* ---- server */

#define RPC_METHOD_DIVISOR 32u /* of all calls, the most of a method that has a bound */

struct rpc_server_options {
    const char *bind_host;      /* "0.0.0.0", "[::]", "127.0.0.1" */
    uint32_t port;              /* 0: one that is free */
    uint64_t memory_bytes_max;  /* gRPC's resource quota; 0: none */
    uint32_t streams_max;       /* concurrent calls per connection; 0: gRPC's default */
    uint64_t message_bytes_max; /* 0: 4 MiB */
    uint32_t calls_max;         /* open at once, whoever's, from their first frame on; 0: 16 384 */
    uint32_t connections_max;   /* 0: 1 024 */
};

/* Fails    UNAVAILABLE: the port is taken (nothing binds silently beside another); the text names
 * it. INVALID_ARGUMENT: the host is no address of this machine. */
enum sumac_status rpc_server_open(
    struct rpc_poller *poller, const struct rpc_server_options *options, struct rpc_server **server,
    struct sumac_error *error);

/* Register a service before rpc_server_start. handlers[i] serves service->methods[i]; `user` is
 * each new call's user.
 *
 * Borrows  service and handlers, for the server's life.
 * Fails    FAILED_PRECONDITION: the descriptor set does not know a method. RESOURCE_EXHAUSTED: no
 * memory, too many. */
enum sumac_status rpc_server_add(
    struct rpc_server *server, const wire_service *service, const struct rpc_handler *handlers,
    void *user, struct sumac_error *error);

/* Health and reflection (v1 and v1alpha) of all that was added are served from here on, too. */
enum sumac_status rpc_server_start(struct rpc_server *server, struct sumac_error *error);
uint32_t rpc_server_port(const struct rpc_server *server);
/* Its options asked for all addresses, and this host has none of IPv6. */
bool rpc_server_lacks_ipv6(const struct rpc_server *server);
/* Who is connected, and who could not be. */
struct rpc_connections {
    uint32_t open;
    uint64_t refused; /* since the start: there was no place */
    uint64_t cut; /* since the start: what they sent, or reset, kept the ps from everybody else */
    uint64_t unread; /* since the start, cut: of answers that nobody took they had too many bytes */
    uint64_t shortages; /* since the start: times that there was no descriptor or memory for those
                           that waited */
};
/* Of answers of unary calls, of health and of reflection that clients have not taken: all
 * connections', and one's. */
#define RPC_UNREAD_BYTES_MAX 33554432u
#define RPC_UNREAD_CONNECTION_BYTES_MAX 8388608u
struct rpc_connections rpc_server_connections(const struct rpc_server *server);
/* What Check and Watch answer, for "" and every service. */
void rpc_server_set_serving(struct rpc_server *server, bool serving);
/* No new calls; health watchers hear NOT_SERVING, and their streams and reflection's end. Then poll
 * until rpc_server_calls is 0 or patience ends, then close, which cancels the rest (it polls). */
void rpc_server_drain(struct rpc_server *server);
uint32_t rpc_server_calls(const struct rpc_server *server);
/* After rpc_server_drain: every connection has ended by itself, which is a round trip after the
 * last of its calls. Those that closing cuts tell their clients of an internal error. */
bool rpc_server_is_down(const struct rpc_server *server);
/* Every second or so: a call whose answer or status its client has not taken for 5 s is cancelled.
 * `now_us` of CLOCK_MONOTONIC. */
void rpc_server_tick(struct rpc_server *server, uint64_t now_us);
void rpc_server_close(struct rpc_server *server);

/* ---- client */

/* A connection of its own to "host:port" (channels to one target are not shared). Connects with the
 * first call, and again, after 100 ms to 2 s, when the connection is lost; without wait_for_ready a
 * call fails at once meanwhile. */
enum sumac_status
rpc_channel_open(struct rpc_poller *poller, const char *target, struct rpc_channel **channel);
/* Takes    channel. Its calls are cancelled; their `closed` handlers still run, from rpc_poll. NULL
 * is fine. */
void rpc_channel_close(struct rpc_channel *channel);

/* How a call begins. */
struct rpc_start {
    const wire_service *service;
    unsigned method;             /* of service->methods */
    const wire_message *message; /* of a unary method: sent at once; else NULL */
    uint64_t deadline_us;        /* 0: none */
    bool wait_for_ready;         /* until the peer is there, or the deadline */
    const struct rpc_handler *handler;
    void *user;
};

/* Begin a call. *call is valid until `closed`. */
enum sumac_status rpc_channel_call(
    struct rpc_channel *channel, const struct rpc_start *start, struct rpc_call **call);

/* ---- a call, at either end */

void *rpc_call_user(const struct rpc_call *call);
void rpc_call_set_user(struct rpc_call *call, void *user);
/* Hold back further messages until rpc_call_resume, which hands over the one that has arrived
 * meanwhile, if any, before it returns. For who must answer one message before it takes the next.
 */
void rpc_call_pause(struct rpc_call *call);
void rpc_call_resume(struct rpc_call *call);
/* May a message be sent now (opened, none under way, not over)? */
bool rpc_call_writable(const struct rpc_call *call);
/* Send a message; the call must be writable. A unary call at the server is finished with OK by it.
 */
void rpc_call_send(
    struct rpc_call *call, const wire_message *message, const struct rpc_payload *payload,
    size_t payload_count);
/* Server: end the call with a status, after the message under way, if any. The first status counts.
 */
void rpc_call_finish(
    struct rpc_call *call, enum sumac_status status, enum sumac_reason reason, const char *text);
/* Server: send the address of ps 0 with the status, in the trailing metadata `sumac-ps0-address`.
 * Call it at most once, before rpc_call_finish. Metadata carries printable ASCII only: an address
 * with another character is left out. */
void rpc_call_set_ps0_address(struct rpc_call *call, const char *address);
/* Client: no more will be sent, after the message under way, if any. */
void rpc_call_end(struct rpc_call *call);
/* End it at once, from either end; `closed` follows. */
void rpc_call_cancel(struct rpc_call *call);
