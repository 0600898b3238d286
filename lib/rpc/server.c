/* SPDX-License-Identifier: Apache-2.0 */
/* server.c -- a port, its services, the calls that arrive, and the order in which all that ends. */
#include "server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>

#include "connections.h"
#include "error.h"
#include "greeting.h"
#include "text.h"

#define PING_INTERVAL_MS_MIN 10000
#define SILENT_CLIENT_MS_MAX 60000
#define KEEPALIVE_ANSWER_MS_MAX 20000
#define IDLE_CONNECTION_MS_MAX 300000 /* without any call */
#define ADDRESS_BYTES 300u
#define UNREAD_CUT_BYTES                                                                           \
    (RPC_UNREAD_BYTES_MAX / 4 * 3) /* gRPC gives back later what a connection held that is cut */
#define UNREAD_SMALL_BYTES 4096u   /* an answer for which there is always room: 1024 may be open */
#define UNREAD_GONE_MAX 64u        /* connections that have ended since the last look at them */

static grpc_arg integer(const char *key, uint64_t value)
{
    const int bounded = value < INT32_MAX ? (int)value : INT32_MAX;

    return (grpc_arg){
        .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key, .value.integer = bounded};
}

static grpc_server *create_core(const struct rpc_server_options *options)
{
    const uint64_t message_bytes_max =
        options->message_bytes_max != 0 ? options->message_bytes_max : WIRE_MESSAGE_BYTES_MAX;
    grpc_arg args[16];
    size_t count = 0;

    /* Only identity: gRPC would inflate before it checks the size. What has nothing to do stands in
     * no message's way. */
    args[count++] = integer(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
    args[count++] = integer(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
    args[count++] = integer(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    args[count++] = integer(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message_bytes_max);
    args[count++] =
        integer(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, PING_INTERVAL_MS_MIN);
    args[count++] = integer(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    args[count++] = integer(GRPC_ARG_KEEPALIVE_TIME_MS, SILENT_CLIENT_MS_MAX);
    args[count++] = integer(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_ANSWER_MS_MAX);
    args[count++] = integer(GRPC_ARG_MAX_CONNECTION_IDLE_MS, IDLE_CONNECTION_MS_MAX);
    args[count++] = integer(GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES_MAX);
    /* it keeps a record of every connection */
    args[count++] = integer(GRPC_ARG_ENABLE_CHANNELZ, 0);
    if (options->streams_max != 0)
        args[count++] = integer(GRPC_ARG_MAX_CONCURRENT_STREAMS, options->streams_max);
    grpc_resource_quota *quota = NULL;
    if (options->memory_bytes_max != 0) {
        quota = grpc_resource_quota_create("server");
        grpc_resource_quota_resize(quota, (size_t)options->memory_bytes_max);
        args[count++] = (grpc_arg){
            .type = GRPC_ARG_POINTER,
            .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
            .value.pointer = {.p = quota, .vtable = grpc_resource_quota_arg_vtable()}};
    }
    assert(count <= sizeof args / sizeof *args);
    const grpc_channel_args all = {.num_args = count, .args = args};
    grpc_server *core = grpc_server_create(&all, NULL);
    if (quota != NULL)
        grpc_resource_quota_unref(quota);
    return core;
}

static uint32_t least(uint32_t one, uint32_t other) { return one < other ? one : other; }

/* A part of all calls that there may be. */
static uint32_t share(const struct rpc_server *server, uint32_t divisor)
{
    const uint32_t part = server->calls_max / divisor;

    return part > 0 ? part : 1;
}

static void note_shut_down(void *owner, bool ok)
{
    struct rpc_server *server = owner;
    (void)ok;

    server->down = true;
}

enum sumac_status rpc_server_open(
    struct rpc_poller *poller, const struct rpc_server_options *options, struct rpc_server **server,
    struct sumac_error *error)
{
    struct rpc_server *made = memory_take(&memory_heap, sizeof *made);

    if (made == NULL)
        return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory");
    memset(made, 0, sizeof *made);
    const enum sumac_status status = acceptor_open(options, &made->acceptor, error);
    if (status != SUMAC_OK) {
        memory_give(&memory_heap, made, sizeof *made);
        return status;
    }
    if (!unread_init(&made->unread, acceptor_connections_max(made->acceptor) + UNREAD_GONE_MAX)) {
        acceptor_close(made->acceptor);
        memory_give(&memory_heap, made, sizeof *made);
        return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory");
    }
    made->poller = poller;
    made->calls_max = options->calls_max != 0 ? options->calls_max : SERVER_CALLS_MAX;
    made->newcomers_max = share(made, SERVER_NEWCOMERS_DIVISOR);
    made->ending_max = least(SERVER_ENDING_CALLS_MAX, share(made, SERVER_ENDING_DIVISOR));
    made->serving = true;
    made->shut_down = (struct tag){.done = note_shut_down, .owner = made};
    made->core = create_core(options);
    grpc_server_register_completion_queue(made->core, poller->queue, NULL);
    *server = made;
    return SUMAC_OK;
}

uint32_t rpc_server_port(const struct rpc_server *server)
{
    return acceptor_port(server->acceptor);
}

bool rpc_server_lacks_ipv6(const struct rpc_server *server)
{
    return acceptor_lacks_ipv6(server->acceptor);
}

static enum sumac_status add_method(
    struct rpc_server *server, const wire_service *service, struct method *method,
    struct sumac_error *error)
{
    const char *name = method->descriptor->name;

    if (!schema_find_method(server->poller->schema, service->name, name, &method->shape))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "the descriptor set has no method %s/%s; build it from the same proto files",
            service->name, name);
    char path[ADDRESS_BYTES];
    (void)text_print(path, sizeof path, "/%s/%s", service->name, name);
    /* gRPC keeps a call for itself while it reads the request: as many as there may be, and nobody
     * counts them. */
    method->registered =
        grpc_server_register_method(server->core, path, NULL, GRPC_SRM_PAYLOAD_NONE, 0);
    if (method->registered == NULL)
        return fail(
            error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_UNSPECIFIED, "%s was registered before",
            path);
    return SUMAC_OK;
}

enum sumac_status rpc_server_add(
    struct rpc_server *server, const wire_service *service, const struct rpc_handler *handlers,
    void *user, struct sumac_error *error)
{
    assert(!server->started);
    if (server->service_count == SERVER_SERVICES_MAX ||
        service->n_methods > SERVER_METHODS_MAX - server->method_count)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "a server has at most %u services and %u methods", SERVER_SERVICES_MAX,
            SERVER_METHODS_MAX);
    for (unsigned i = 0; i < service->n_methods; i++) {
        struct method *method = &server->methods[server->method_count];
        *method = (struct method){
            .descriptor = &service->methods[i],
            .handler = &handlers[i],
            .user = user,
            .calls_max = handlers[i].calls_max != 0
                             ? least(handlers[i].calls_max, share(server, RPC_METHOD_DIVISOR))
                             : UINT32_MAX,
            .message_bytes_max =
                handlers[i].message_bytes_max != 0 ? handlers[i].message_bytes_max : UINT32_MAX};
        const enum sumac_status status = add_method(server, service, method, error);
        if (status != SUMAC_OK)
            return status;
        server->method_count++;
    }
    server->services[server->service_count++] = service;
    return SUMAC_OK;
}

bool server_has_service(const struct rpc_server *server, const char *name)
{
    for (unsigned i = 0; i < server->service_count; i++)
        if (strcmp(server->services[i]->name, name) == 0)
            return true;
    return false;
}

static void arm(struct accept *accept)
{
    struct rpc_server *server = accept->server;
    grpc_call_error refused;

    if (accept->method == NULL) {
        refused = grpc_server_request_call(
            server->core, &accept->core, &accept->details, &accept->metadata, server->poller->queue,
            server->poller->queue, &accept->tag);
    } else {
        refused = grpc_server_request_registered_call(
            server->core, accept->method->registered, &accept->core, &accept->deadline,
            &accept->metadata, NULL, server->poller->queue, server->poller->queue, &accept->tag);
    }
    assert(refused == GRPC_CALL_OK);
    (void)refused;
    server->accepts++;
}

/* gRPC calls a connection that it was handed by its descriptor's number. */
static void find_connection(struct rpc_call *call)
{
    if (call->key.inode != 0)
        return;
    char *const peer = grpc_call_get_peer(call->core);
    call->key.descriptor = strncmp(peer, "fd:", 3) == 0 ? (int)strtol(peer + 3, NULL, 10) : -1;
    call->key.inode = connection_inode(call->key.descriptor);
    gpr_free(peer);
}

/* Streams that are opened and reset without end cost more than whoever sends them. Where gRPC
 * leaves their connection to a thread of its own, nobody is held by it (acceptor.c): their number
 * tells. Whoever has said a message may have its answer. */
static void note_cancelled(struct rpc_call *call)
{
    if (call->heard)
        return;
    find_connection(call);
    if (call->key.inode != 0)
        acceptor_note_cancelled(call->server->acceptor, call->key.descriptor, call->key.inode);
}

static void note_closed(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    (void)ok;

    call->over = true;
    if (call->cancelled != 0)
        note_cancelled(call);
    call_settle(call);
}

/* The new call, listening for its end, in the server's list. NULL: no memory for it, or too many:
 * its client is told. */
static struct rpc_call *enter(struct rpc_server *server, grpc_call *core)
{
    struct rpc_call *call =
        server->call_count < server->calls_max ? call_create(server->poller, core) : NULL;

    if (call == NULL) {
        grpc_call_cancel_with_status(
            core, GRPC_STATUS_RESOURCE_EXHAUSTED, "the server has too many calls open; try later",
            NULL);
        grpc_call_unref(core);
        return NULL;
    }
    call->server = server;
    call_say(call, SAYS_WHAT_COMES);
    calls_link(&server->calls, call);
    server->call_count++;
    call->closed = (struct tag){.done = note_closed, .owner = call};
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &call->cancelled;
    call_start(call, &op, 1, &call->closed);
    return call;
}

static const struct rpc_handler deaf_handler = {0};

/* How many of a connection's calls have said their last word and wait until their client takes it.
 * Connections whose numbers fall together are taken for one. */
static uint32_t *ending_beside(struct rpc_server *server, struct rpc_call *call)
{
    return &server->ending_of[call->connection % SERVER_CONNECTION_SLOTS];
}

static void forget_ending(struct rpc_server *server, struct rpc_call *call)
{
    assert(call->waits == WAITS_FOR_READER);
    call_queue_remove(&server->ending, call);
    call->waits = WAITS_FOR_NOTHING;
    --*ending_beside(server, call);
}

/* What it said last is dropped, and its place is free at once. */
static void cut(struct rpc_server *server, struct rpc_call *call)
{
    forget_ending(server, call);
    if (call->method != NULL)
        call->method->calls--;
    call->method = NULL;
    rpc_call_cancel(call);
}

static uint32_t number_of_connection(grpc_call *core)
{
    char *const peer = grpc_call_get_peer(core);
    uint32_t number = 2166136261u; /* FNV-1a */

    for (const char *at = peer; *at != '\0'; at++)
        number = (number ^ (unsigned char)*at) * 16777619u;
    gpr_free(peer);
    return number;
}

/* Nobody would hear the answer. */
static bool is_lost(struct rpc_call *call)
{
    find_connection(call);
    return call->key.inode == 0 || unread_is_cut(&call->server->unread, &call->key);
}

struct rpc_call *server_find_unread(struct rpc_server *server, const struct method *method)
{
    struct rpc_call *found = NULL;
    uint32_t most = 0;

    for (struct rpc_call *call = server->ending.oldest;
         call != NULL && most * 2 <= server->ending.count; call = call->newer) {
        const uint32_t count = *ending_beside(server, call);
        if (count <= most || (method != NULL && call->method != method))
            continue;
        found = call;
        most = count;
    }
    return found;
}

/* All places of this method are taken: one of its calls whose answer nobody takes gives way, if
 * there is one. */
static void make_place(struct rpc_server *server, const struct method *method)
{
    struct rpc_call *call = server_find_unread(server, method);

    if (call != NULL)
        cut(server, call);
}

/* Every method has places of its own, so that calls of one kind never shut out those of another.
 * False: they are taken, and the client is told. */
static bool take_place(struct rpc_call *call, struct method *method)
{
    char text[ADDRESS_BYTES];

    if (method->calls >= method->calls_max)
        make_place(call->server, method);
    if (method->calls < method->calls_max) {
        method->calls++;
        call->method = method;
        return true;
    }
    (void)text_print(
        text, sizeof text,
        "%u calls of %s are open, the most that are served at a time: try again later",
        method->calls, method->descriptor->name);
    rpc_call_finish(call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY, text);
    return false;
}

static void introduce(struct rpc_call *call, struct method *method)
{
    call->handler = method->handler;
    call->user = method->user;
    call->own = method->own;
    call->incoming = method->descriptor->input;
    call->answers_once = !method->shape.client_streams && !method->shape.server_streams;
}

/* Takes    request. */
static void serve(struct rpc_call *call, struct method *method, grpc_byte_buffer *request)
{
    if (is_lost(call)) {
        rpc_call_cancel(call);
        grpc_byte_buffer_destroy(request);
        return;
    }
    if (!take_place(call, method)) {
        grpc_byte_buffer_destroy(request);
        return;
    }
    introduce(call, method);
    if (method->shape.server_streams && call->handler->opened != NULL)
        call->handler->opened(call);
    call_deliver(call, request);
}

static void leave_newcomers(struct rpc_call *call)
{
    assert(call->waits == WAITS_FOR_REQUEST);
    call_queue_remove(&call->server->newcomers, call);
    call->waits = WAITS_FOR_NOTHING;
    call->asked = NULL;
}

/* The request has come, or never will. */
static void request_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    struct method *const method = call->asked;
    grpc_byte_buffer *const request = call->arriving;
    (void)ok;

    call->arriving = NULL;
    if (method != NULL)
        leave_newcomers(call);
    if (method == NULL || call->over) {
        if (request != NULL)
            grpc_byte_buffer_destroy(request);
    } else if (request == NULL) {
        /* Its client went away in the middle of it. */
        rpc_call_finish(call, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED, "the request was cut short");
    } else {
        serve(call, method, request);
    }
    call_settle(call);
}

/* A request comes with its call, or soon after: whoever holds back theirs shut out nobody. */
static void turn_away_oldest(struct rpc_server *server)
{
    char text[ADDRESS_BYTES];
    struct rpc_call *const oldest = server->newcomers.oldest;

    (void)text_print(
        text, sizeof text,
        "%u calls have not sent their request, the most that are waited for, and this is the "
        "oldest of them: send it at once, or try again later",
        server->newcomers.count);
    leave_newcomers(oldest);
    rpc_call_finish(oldest, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY, text);
}

/* It takes no place of its method before its request has come. */
static void await_request(struct rpc_call *call, struct method *method)
{
    struct rpc_server *const server = call->server;

    if (server->newcomers.count == server->newcomers_max)
        turn_away_oldest(server);
    assert(call->waits == WAITS_FOR_NOTHING);
    call->asked = method;
    call->waits = WAITS_FOR_REQUEST;
    call_queue_add(&server->newcomers, call);
    call->received = (struct tag){.done = request_done, .owner = call};
    call_receive(call);
}

static void begin(struct rpc_server *server, struct method *method, struct accept *accepted)
{
    struct rpc_call *call = enter(server, accepted->core);

    if (call == NULL)
        return;
    call->handler = &deaf_handler;
    if (!method->shape.client_streams) {
        await_request(call, method);
        return;
    }
    if (!take_place(call, method))
        return;
    introduce(call, method);
    call_receive(call);
    if (call->handler->opened != NULL)
        call->handler->opened(call);
}

static void refuse_unknown(struct rpc_server *server, struct accept *accepted)
{
    struct rpc_call *call = enter(server, accepted->core);

    if (call == NULL)
        return;
    char text[ADDRESS_BYTES];
    const size_t bytes = GRPC_SLICE_LENGTH(accepted->details.method);
    (void)text_print(
        text, sizeof text, "no method %.*s here; server reflection lists what there is",
        bytes < 128 ? (int)bytes : 128,
        (const char *)GRPC_SLICE_START_PTR(accepted->details.method));
    call->handler = &deaf_handler;
    rpc_call_finish(call, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED, text);
}

static void accept_done(void *owner, bool ok)
{
    struct accept *accept = owner;
    struct rpc_server *server = accept->server;

    server->accepts--;
    if (!ok)
        return; /* the server is shutting down */
    if (accept->method == NULL) {
        refuse_unknown(server, accept);
        grpc_call_details_destroy(&accept->details);
        grpc_call_details_init(&accept->details);
        arm(accept);
        return;
    }
    struct accept accepted = *accept;
    arm(accept);
    begin(server, accept->method, &accepted);
}

static void prepare(struct rpc_server *server, struct method *method, struct accept *accepts)
{
    for (unsigned i = 0; i < ACCEPTS_PER_METHOD; i++) {
        struct accept *accept = &accepts[i];
        *accept = (struct accept){.server = server, .method = method};
        accept->tag = (struct tag){.done = accept_done, .owner = accept};
        grpc_metadata_array_init(&accept->metadata);
        grpc_call_details_init(&accept->details);
        arm(accept);
    }
}

enum sumac_status rpc_server_start(struct rpc_server *server, struct sumac_error *error)
{
    const unsigned users = server->method_count;
    enum sumac_status status = health_add(server, error);

    if (status == SUMAC_OK)
        status = reflection_add(server, error);
    if (status != SUMAC_OK)
        return status;
    for (unsigned i = users; i < server->method_count; i++) {
        server->methods[i].own = true;
        server->methods[i].calls_max =
            least(SERVER_OWN_CALLS_MAX, share(server, RPC_METHOD_DIVISOR));
        server->methods[i].message_bytes_max = SERVER_OWN_MESSAGE_BYTES_MAX;
    }
    grpc_server_start(server->core);
    server->started = true;
    for (unsigned i = 0; i < server->method_count; i++)
        prepare(server, &server->methods[i], server->methods[i].accepts);
    prepare(server, NULL, server->unknown);
    if (!acceptor_start(server->acceptor, server->core, &server->poller->reader))
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no thread to accept connections with; raise the limit of threads (ulimit -u, or the "
            "container's) or of address space (ulimit -v)");
    return SUMAC_OK;
}

void server_forget(struct rpc_server *server, struct rpc_call *call)
{
    calls_unlink(&server->calls, call);
    server->call_count--;
    if (call->waits == WAITS_FOR_READER)
        forget_ending(server, call);
    if (call->unread_bytes > 0)
        server_end_unread(server, call, false);
    if (call->method != NULL)
        call->method->calls--;
}

static bool is_gone(const struct unread_key *key)
{
    return key->inode == 0 || connection_inode(key->descriptor) != key->inode;
}

/* The connection is reset: cancelling its calls would not free what gRPC is writing to it. */
static void cut_greedy(struct rpc_server *server)
{
    struct unread_connection *greedy;

    if (unread_find_greedy(&server->unread, UNREAD_CUT_BYTES, RPC_UNREAD_CONNECTION_BYTES_MAX) ==
        NULL)
        return;
    unread_look(&server->unread, is_gone);
    while ((greedy = unread_find_greedy(
                &server->unread, UNREAD_CUT_BYTES, RPC_UNREAD_CONNECTION_BYTES_MAX)) != NULL) {
        if (connection_reset(greedy->key.descriptor, greedy->key.inode))
            server->unread_cut++;
        unread_note_cut(&server->unread, greedy);
    }
}

bool server_note_unread(struct rpc_server *server, struct rpc_call *call, uint64_t bytes)
{
    struct unread *const unread = &server->unread;

    find_connection(call);
    if (bytes > UNREAD_SMALL_BYTES && unread->held_bytes + bytes > RPC_UNREAD_BYTES_MAX) {
        unread_look(unread, is_gone);
        if (unread->held_bytes + bytes > RPC_UNREAD_BYTES_MAX)
            return false;
    }
    call->unread_ticket = unread_add(unread, &call->key, bytes);
    if (call->unread_ticket == 0) {
        unread_look(unread, is_gone);
        call->unread_ticket = unread_add(unread, &call->key, bytes);
    }
    call->unread_bytes = call->unread_ticket != 0 ? bytes : 0;
    cut_greedy(server);
    return call->unread_ticket != 0;
}

void server_end_unread(struct rpc_server *server, struct rpc_call *call, bool taken)
{
    unread_end(&server->unread, &call->key, call->unread_ticket, call->unread_bytes, taken);
    call->unread_bytes = 0;
}

/* A server that is draining cuts nobody: each call is told why it ends. */
void server_note_ending(struct rpc_server *server, struct rpc_call *call)
{
    assert(call->says >= SAYS_LAST_SOON);
    assert(call->waits == WAITS_FOR_NOTHING);
    call->waits = WAITS_FOR_READER;
    call_queue_add(&server->ending, call);
    call->connection = number_of_connection(call->core);
    ++*ending_beside(server, call);
    if (server->ending.count > server->ending_max && !server->draining)
        cut(server, server_find_unread(server, NULL));
}

void rpc_server_tick(struct rpc_server *server, uint64_t now_us)
{
    unread_look(&server->unread, is_gone);
    struct rpc_call *next = NULL;
    for (struct rpc_call *call = server->ending.oldest; call != NULL; call = next) {
        next = call->newer;
        if (call->ending_since_us == 0)
            call->ending_since_us = now_us;
        else if (now_us - call->ending_since_us >= (uint64_t)SERVER_ENDING_MS_MAX * 1000u)
            cut(server, call);
    }
}

void rpc_server_set_serving(struct rpc_server *server, bool serving)
{
    server->serving = serving;
    health_tell(server);
}

struct rpc_connections rpc_server_connections(const struct rpc_server *server)
{
    struct rpc_connections connections = acceptor_count(server->acceptor);

    connections.unread = server->unread_cut;
    return connections;
}

uint32_t rpc_server_calls(const struct rpc_server *server) { return server->call_count; }

bool rpc_server_is_down(const struct rpc_server *server) { return server->down; }

void server_finish_own(struct rpc_call *call)
{
    rpc_call_finish(
        call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED, "the server is shutting down");
}

void rpc_server_drain(struct rpc_server *server)
{
    if (server->draining)
        return;
    server->draining = true;
    acceptor_stop(server->acceptor);
    rpc_server_set_serving(server, false);
    for (struct rpc_call *call = server->calls; call != NULL; call = call->next)
        if (call->own && !health_owes(server, call))
            server_finish_own(call);
    while (server->newcomers.oldest != NULL) {
        struct rpc_call *const call = server->newcomers.oldest;
        leave_newcomers(call);
        server_finish_own(call);
    }
    grpc_server_shutdown_and_notify(server->core, server->poller->queue, &server->shut_down);
}

static void forget_accepts(struct accept *accepts)
{
    for (unsigned i = 0; i < ACCEPTS_PER_METHOD; i++) {
        grpc_metadata_array_destroy(&accepts[i].metadata);
        grpc_call_details_destroy(&accepts[i].details);
    }
}

void rpc_server_close(struct rpc_server *server)
{
    if (server == NULL)
        return;
    rpc_server_drain(server);
    grpc_server_cancel_all_calls(server->core);
    while (!server->down || server->accepts > 0 || server->call_count > 0)
        (void)rpc_poll(server->poller, UINT64_MAX);
    grpc_server_destroy(server->core);
    acceptor_close(server->acceptor);
    unread_deinit(&server->unread);
    for (unsigned i = 0; server->started && i < server->method_count; i++)
        forget_accepts(server->methods[i].accepts);
    if (server->started)
        forget_accepts(server->unknown);
    memory_give(&memory_heap, server, sizeof *server);
}
