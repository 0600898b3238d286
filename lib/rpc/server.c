/* SPDX-License-Identifier: Apache-2.0 */
/* server.c -- the calls that arrive at a server, and the order in which all of it ends. */
#include "server.h"

#include <assert.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "error.h"
#include "text.h"

#define REFUSAL_BYTES 300u

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

static void note_closed(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    (void)ok;

    call->over = true;
    if (call->cancelled != 0)
        call_note_cancelled(call);
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
    call->sent = (struct tag){.done = call_send_done, .owner = call};
    call->received = (struct tag){.done = call_receive_done, .owner = call};
    call->closed = (struct tag){.done = note_closed, .owner = call};
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &call->cancelled;
    call_start(call, &op, 1, &call->closed);
    return call;
}

static const struct rpc_handler deaf_handler = {0};

/* Every method has places of its own, so that calls of one kind never shut out those of another.
 * False: they are taken, and the client is told. */
static bool take_place(struct rpc_call *call, struct method *method)
{
    char text[REFUSAL_BYTES];

    if (method->calls >= method->calls_max)
        server_make_place(call->server, method);
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
    if (call_is_lost(call)) {
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
    char text[REFUSAL_BYTES];
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
    char text[REFUSAL_BYTES];
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
    for (unsigned i = users; i < server->method_count; i++)
        server->methods[i].own = true;
    grpc_server_start(server->core);
    server->started = true;
    for (unsigned i = 0; i < server->method_count; i++)
        prepare(server, &server->methods[i], server->methods[i].accepts);
    prepare(server, NULL, server->unknown);
    if (!acceptor_start(server->acceptor, server->core, &server->poller->reader))
        return fail_for_memory(
            error,
            "no thread to accept connections with; raise the limit of threads (ulimit -u, or the "
            "container's) or of address space (ulimit -v)");
    return SUMAC_OK;
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
