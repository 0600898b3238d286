/* SPDX-License-Identifier: Apache-2.0 */
/* run_ports.c -- let the system choose the ports, and hold all of them until the last is chosen: so
 * they differ. */
#include "run_ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "alloc.h"

static int bound_socket(sa_family_t family, uint16_t *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any.sa_family = family};
    socklen_t bytes = family == AF_INET ? sizeof address.v4 : sizeof address.v6;
    const int held = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (held < 0)
        return -1;
    if (family == AF_INET)
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.v6.sin6_addr = in6addr_loopback;
    if (bind(held, &address.any, bytes) != 0 || getsockname(held, &address.any, &bytes) != 0) {
        const int why = errno;
        (void)close(held);
        errno = why;
        return -1;
    }
    *port = ntohs(family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    return held;
}

static bool pick(sa_family_t family, uint16_t *ports, uint32_t count)
{
    int *held = cli_alloc(count, sizeof *held);
    uint32_t picked = 0;

    while (picked < count && (held[picked] = bound_socket(family, &ports[picked])) >= 0)
        picked++;
    const int why = errno;
    for (uint32_t i = 0; i < picked; i++)
        (void)close(held[i]);
    errno = why;
    return picked == count;
}

bool run_ports_pick(uint16_t *ports, uint32_t count, const char **host)
{
    *host = "127.0.0.1";
    if (pick(AF_INET, ports, count))
        return true;
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)
        return false;
    *host = "[::1]";
    return pick(AF_INET6, ports, count);
}
