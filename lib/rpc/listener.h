/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h -- the sockets that listen on a server's port. Inside lib/rpc only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/status.h"

#define LISTENER_SOCKETS_MAX 8u

struct listener {
    int sockets[LISTENER_SOCKETS_MAX]; /* that do not block */
    unsigned count;
    uint32_t port;
    bool lacks_ipv6; /* all addresses were asked for, and this host has none of IPv6 */
};

/* Listen on every address that `host` is ("[::1]", "0.0.0.0": all there are, IPv6's too); port 0:
 * one that is free.
 *
 * Fails    UNAVAILABLE: another process has the port. INVALID_ARGUMENT: no such address here.
 *          RESOURCE_EXHAUSTED: no
 * descriptor. */
enum sumac_status listener_open(
    const char *host, uint32_t port, struct listener *listener, struct sumac_error *error);
void listener_close(struct listener *listener);
