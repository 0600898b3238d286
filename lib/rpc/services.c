/* SPDX-License-Identifier: Apache-2.0 */
/* services.c -- a server: its port, opened, and its services, added. */
#include "server.h"

#include <assert.h>
#include <string.h>

#include "error.h"
#include "greeting.h"
#include "text.h"

#define PING_INTERVAL_MS_MIN 10000
#define SILENT_CLIENT_MS_MAX 60000
#define KEEPALIVE_ANSWER_MS_MAX 20000
#define IDLE_CONNECTION_MS_MAX 300000 /* without any call */
#define PATH_BYTES 300u
#define UNREAD_GONE_MAX 64u /* connections that have ended since the last look at them */

static grpc_server *create_core(const struct rpc_server_options *options)
{
    const uint64_t message_bytes_max =
        options->message_bytes_max != 0 ? options->message_bytes_max : WIRE_MESSAGE_BYTES_MAX;
    grpc_arg args[16];
    size_t count = 0;

    /* Only identity: gRPC would inflate before it checks the size. What has nothing to do stands in
     * no message's way. */
    args[count++] = core_integer(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
    args[count++] = core_integer(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
    args[count++] = core_integer(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    args[count++] = core_integer(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message_bytes_max);
    args[count++] =
        core_integer(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, PING_INTERVAL_MS_MIN);
    args[count++] = core_integer(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    args[count++] = core_integer(GRPC_ARG_KEEPALIVE_TIME_MS, SILENT_CLIENT_MS_MAX);
    args[count++] = core_integer(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_ANSWER_MS_MAX);
    args[count++] = core_integer(GRPC_ARG_MAX_CONNECTION_IDLE_MS, IDLE_CONNECTION_MS_MAX);
    args[count++] = core_integer(GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES_MAX);
    /* it keeps a record of every connection */
    args[count++] = core_integer(GRPC_ARG_ENABLE_CHANNELZ, 0);
    if (options->streams_max != 0)
        args[count++] = core_integer(GRPC_ARG_MAX_CONCURRENT_STREAMS, options->streams_max);
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
        return fail_for_memory(error, "no memory");
    memset(made, 0, sizeof *made);
    const enum sumac_status status = acceptor_open(options, &made->acceptor, error);
    if (status != SUMAC_OK) {
        memory_give(&memory_heap, made, sizeof *made);
        return status;
    }
    if (!unread_init(&made->unread, acceptor_connections_max(made->acceptor) + UNREAD_GONE_MAX)) {
        acceptor_close(made->acceptor);
        memory_give(&memory_heap, made, sizeof *made);
        return fail_for_memory(error, "no memory");
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
    char path[PATH_BYTES];
    (void)text_print(path, sizeof path, "/%s/%s", service->name, name);
    /* gRPC would keep a call to itself while it reads the request, and no bound counts it.
     */
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

void server_finish_own(struct rpc_call *call)
{
    rpc_call_finish(
        call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED, "the server is shutting down");
}
