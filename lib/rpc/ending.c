/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c -- calls whose last word is out and not read, and the bytes of answers that clients have
 * not read. Some are cut when there are too many. */
#include "server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/support/alloc.h>

#include "connections.h"

#define UNREAD_CUT_BYTES                                                                           \
    (RPC_UNREAD_BYTES_MAX / 4 * 3) /* gRPC gives back later what a connection held that is cut */
#define UNREAD_SMALL_BYTES 4096u   /* an answer for which there is always room: 1024 may be open */

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

/* A client that opens and resets streams without end costs the server more than itself. A
 * connection that gRPC leaves to a thread of its own holds up no reader (acceptor.c), so its
 * cancelled calls are counted. A call that has said a message may have its answer. */
void call_note_cancelled(struct rpc_call *call)
{
    if (call->heard)
        return;
    find_connection(call);
    if (call->key.inode != 0)
        acceptor_note_cancelled(call->server->acceptor, call->key.descriptor, call->key.inode);
}

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

/* Its last word is dropped, and its place is free at once. */
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

bool call_is_lost(struct rpc_call *call)
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

void server_make_place(struct rpc_server *server, const struct method *method)
{
    struct rpc_call *call = server_find_unread(server, method);

    if (call != NULL)
        cut(server, call);
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

/* A draining server cuts no call: each gets a status that says why it ends. */
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
