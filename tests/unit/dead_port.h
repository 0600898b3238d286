/* SPDX-License-Identifier: Apache-2.0 */
/* dead_port.h -- an address that refuses every connection. */
#pragma once

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* A port without a listener while the socket is kept. */
static inline int take_dead_port(char address[32])
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t length = sizeof any;
    const int taken = socket(AF_INET, SOCK_STREAM, 0);

    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(taken, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&any, &length), 0);
    (void)snprintf(address, 32, "127.0.0.1:%d", ntohs(any.sin_port));
    return taken;
}
