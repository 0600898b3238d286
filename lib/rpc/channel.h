/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h -- a client's connection to one server; inside lib/rpc only. */
#pragma once

#include "call.h"

#define CHANNEL_SERVICES_MAX 8u
#define CHANNEL_METHODS_MAX 16u /* of a service */

/* A service that was called once. */
struct known {
    const wire_service *service;
    struct schema_method shapes[CHANNEL_METHODS_MAX];
    void *registered[CHANNEL_METHODS_MAX];
};

struct rpc_channel {
    struct rpc_poller *poller;
    grpc_channel *core; /* NULL: closed, and waiting for its calls' end */
    struct known known[CHANNEL_SERVICES_MAX];
    unsigned known_count;
    struct rpc_call *calls;
    struct tag attempt_over; /* of a closed channel that was connecting */
};
