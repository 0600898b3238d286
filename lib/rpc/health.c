/* SPDX-License-Identifier: Apache-2.0 */
/* health.c -- the standard health service: Check answers once, Watch at once and at every change.
 */
#include "server.h"

#include "grpc/health/v1/health.pb-c.h"

typedef Grpc__Health__V1__HealthCheckRequest check_request;
typedef Grpc__Health__V1__HealthCheckResponse check_response;

enum {
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
    SERVICE_UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
};

/* "" is the server as a whole. */
static bool knows(const struct rpc_server *server, const struct wire_received *received)
{
    const check_request *request = (const check_request *)(const void *)received->message;
    return request->service[0] == '\0' || server_has_service(server, request->service);
}

static void answer(struct rpc_call *call, int status)
{
    check_response response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    rpc_call_send(call, &response.base, NULL, 0);
}

static void check(struct rpc_call *call, const struct wire_received *received)
{
    const struct rpc_server *server = rpc_call_user(call);

    if (knows(server, received))
        answer(call, server->serving ? SERVING : NOT_SERVING);
    else
        rpc_call_finish(
            call, SUMAC_NOT_FOUND, SUMAC_REASON_UNSUPPORTED,
            "no such service here; server reflection lists what there is");
}

static int status_for(const struct watcher *watcher, bool serving)
{
    return !watcher->known ? SERVICE_UNKNOWN : serving ? SERVING : NOT_SERVING;
}

static void tell(struct watcher *watcher, bool serving)
{
    const int status = status_for(watcher, serving);

    if (watcher->told == status || !rpc_call_writable(watcher->call))
        return;
    watcher->told = status;
    answer(watcher->call, status);
}

/* A watcher's user is the watcher, whose server is the one its call belongs to. */
static void watch(struct rpc_call *call, const struct wire_received *received)
{
    struct rpc_server *server = rpc_call_user(call);

    rpc_call_set_user(call, NULL);
    for (unsigned i = 0; i < SERVER_WATCHERS_MAX; i++) {
        struct watcher *watcher = &server->watchers[i];
        if (watcher->call != NULL)
            continue;
        *watcher = (struct watcher){.call = call, .known = knows(server, received), .told = -1};
        rpc_call_set_user(call, watcher);
        tell(watcher, server->serving);
        return;
    }
    rpc_call_finish(
        call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "too many clients watch this server's health; use Check");
}

static void watch_writable(struct rpc_call *call)
{
    tell(rpc_call_user(call), call->server->serving);
    if (call->server->draining)
        server_finish_own(call);
}

static void watch_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct watcher *watcher = rpc_call_user(call);
    (void)error;

    /* A request that could not be read leaves the server as the user. */
    if (watcher != NULL && (void *)watcher != (void *)call->server)
        watcher->call = NULL;
}

void health_tell(struct rpc_server *server)
{
    for (unsigned i = 0; i < SERVER_WATCHERS_MAX; i++)
        if (server->watchers[i].call != NULL)
            tell(&server->watchers[i], server->serving);
}

bool health_owes(const struct rpc_server *server, const struct rpc_call *call)
{
    for (unsigned i = 0; i < SERVER_WATCHERS_MAX; i++) {
        const struct watcher *watcher = &server->watchers[i];
        if (watcher->call == call)
            return watcher->told != status_for(watcher, server->serving);
    }
    return false;
}

enum sumac_status health_add(struct rpc_server *server, struct sumac_error *error)
{
    static const struct rpc_handler handlers[] = {
        {.message = check,
         .calls_max = SERVER_OWN_CALLS_MAX,
         .message_bytes_max = SERVER_OWN_MESSAGE_BYTES_MAX},
        {.message = watch,
         .writable = watch_writable,
         .closed = watch_closed,
         .calls_max = SERVER_OWN_CALLS_MAX,
         .message_bytes_max = SERVER_OWN_MESSAGE_BYTES_MAX},
    };

    return rpc_server_add(server, &grpc__health__v1__health__descriptor, handlers, server, error);
}
