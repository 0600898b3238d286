/* SPDX-License-Identifier: Apache-2.0 */
/* server.h -- a server's services and calls; inside lib/rpc only. */
#pragma once

#include "acceptor.h"
#include "call.h"

#define SERVER_SERVICES_MAX 16u
#define SERVER_METHODS_MAX 64u
#define SERVER_CALLS_MAX 16384u
#define SERVER_OWN_CALLS_MAX 256u /* of each method of health and reflection */
/* Of all calls: the most of those whose request has not come; of those whose last word is out. With
 * the four methods of health and reflection, and eight of a bound beside them, half is left for
 * streams. */
#define SERVER_NEWCOMERS_DIVISOR 16u
#define SERVER_ENDING_DIVISOR 16u
#define SERVER_OWN_MESSAGE_BYTES_MAX 8192u /* of them: a service's name, a symbol's, a file's */
#define SERVER_ENDING_CALLS_MAX 1024u      /* whose last word their clients have not taken */
#define SERVER_ENDING_MS_MAX 5000u
#define SERVER_CONNECTION_SLOTS 1024u
#define SERVER_WATCHERS_MAX SERVER_OWN_CALLS_MAX
#define ACCEPTS_PER_METHOD 8u

struct method;

/* A request for the next call of a method, always outstanding: gRPC leaves a call waiting that
 * nobody asked for. */
struct accept {
    struct tag tag;
    struct rpc_server *server;
    struct method *method; /* NULL: of any method that was not registered */
    grpc_call *core;
    gpr_timespec deadline;
    grpc_metadata_array metadata;
    grpc_call_details details; /* of an unknown method */
};

struct method {
    const ProtobufCMethodDescriptor *descriptor;
    const struct rpc_handler *handler;
    void *user;
    struct schema_method shape;
    bool own; /* health's or reflection's */
    uint32_t calls, calls_max;
    uint32_t message_bytes_max;
    void *registered;
    struct accept accepts[ACCEPTS_PER_METHOD];
};

/* A client that watches a service's health. */
struct watcher {
    struct rpc_call *call; /* NULL: free */
    bool known;            /* the service exists */
    int told;              /* the status sent last; -1: none */
};

struct rpc_server {
    struct rpc_poller *poller;
    grpc_server *core;
    struct acceptor *acceptor;
    const wire_service *services[SERVER_SERVICES_MAX];
    unsigned service_count;
    struct method methods[SERVER_METHODS_MAX];
    unsigned method_count;
    struct accept unknown[ACCEPTS_PER_METHOD];
    struct rpc_call *calls;
    uint32_t call_count, calls_max;
    struct call_queue ending;    /* whose last word is out */
    struct call_queue newcomers; /* whose request has not come */
    uint32_t ending_max, newcomers_max;
    uint32_t ending_of[SERVER_CONNECTION_SLOTS]; /* of them, by the number of their connection */
    struct unread unread;
    uint64_t unread_cut;
    uint32_t accepts; /* outstanding */
    struct tag shut_down;
    bool started, draining, down;
    bool serving;
    wire_service alpha_reflection; /* v1's messages under v1alpha's name */
    struct watcher watchers[SERVER_WATCHERS_MAX];
};

/* ending.c */
/* Which call gives way, of those of `method` (NULL: of any) that were answered and whose clients
 * have not taken the answer: the oldest of the connection that has most. So whoever takes its
 * answers slowly loses none to one that takes none. */
struct rpc_call *server_find_unread(struct rpc_server *server, const struct method *method);
/* All places of this method are taken: a call that is answered and not read gives way, if there is
 * one. */
void server_make_place(struct rpc_server *server, const struct method *method);
/* Its connection is gone, or cut. */
bool call_is_lost(struct rpc_call *call);
void call_note_cancelled(struct rpc_call *call);

/* services.c */
bool server_has_service(const struct rpc_server *server, const char *name);
/* A call of a standard service ends with the server. */
void server_finish_own(struct rpc_call *call);

/* health.c and reflection.c */
/* Add the standard services; after the user's. */
enum sumac_status health_add(struct rpc_server *server, struct sumac_error *error);
enum sumac_status reflection_add(struct rpc_server *server, struct sumac_error *error);
/* The watchers of the server's health hear of a change. */
void health_tell(struct rpc_server *server);
/* Is it a watcher's that is still hearing of another change? It hears of this one after that. */
bool health_owes(const struct rpc_server *server, const struct rpc_call *call);
