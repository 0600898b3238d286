/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c -- see listener.h. */
#include "listener.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

#define HOST_BYTES 300u

static void set(int socket, int level, int option, int value)
{
    (void)setsockopt(socket, level, option, &value, sizeof value);
}

/* A socket that listens there. Negative: errno says why not. */
static int listen_at(const struct sockaddr *address, socklen_t bytes)
{
    const int made =
        socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

    if (made < 0)
        return -1;
    set(made, SOL_SOCKET, SO_REUSEADDR,
        1); /* connections of a ps that has ended are no hindrance */
    if (address->sa_family == AF_INET6)
        set(made, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(made, address, bytes) == 0 && listen(made, SOMAXCONN) == 0)
        return made;
    const int why = errno;
    (void)close(made);
    errno = why;
    return -1;
}

static uint32_t port_of(int socket)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t bytes = sizeof address;
    (void)getsockname(socket, &address.any, &bytes);
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* The first decides the port, if it was not said. */
static bool add(struct listener *listener, struct addrinfo *at)
{
    const in_port_t port = htons((uint16_t)listener->port);

    if (at->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)at->ai_addr)->sin6_port = port;
    else if (at->ai_family == AF_INET)
        ((struct sockaddr_in *)(void *)at->ai_addr)->sin_port = port;
    else
        return false;
    const int made = listen_at(at->ai_addr, at->ai_addrlen);
    if (made < 0)
        return false;
    listener->sockets[listener->count++] = made;
    listener->port = port_of(made);
    return true;
}

/* errno: why there is no socket at all; 0: the host has no address. */
static int add_all(struct listener *listener, const char *host)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int why = 0;

    if (getaddrinfo(host, NULL, &wanted, &found) != 0)
        return 0;
    for (struct addrinfo *at = found; at != NULL && listener->count < LISTENER_SOCKETS_MAX;
         at = at->ai_next)
        if (!add(listener, at) && why == 0)
            why = errno;
    freeaddrinfo(found);
    return why;
}

/* IPv6's address of all of them is IPv4's, too. */
static bool add_any(struct listener *listener)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct addrinfo at = {
        .ai_family = AF_INET6,
        .ai_addr = (struct sockaddr *)(void *)&any,
        .ai_addrlen = sizeof any};

    return add(listener, &at);
}

/* The socket for all addresses opens on such a host, too, unless its kernel has no IPv6. */
static bool has_ipv6_address(void)
{
    struct ifaddrs *addresses = NULL;

    if (getifaddrs(&addresses) != 0)
        return true; /* not known */
    const struct ifaddrs *at = addresses;
    while (at != NULL && (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET6))
        at = at->ifa_next;
    freeifaddrs(addresses);
    return at != NULL;
}

static enum sumac_status
fail_to_listen(const char *host, uint32_t port, int why, struct sumac_error *error)
{
    switch (why) {
    case 0:
    case EADDRNOTAVAIL:
        return fail_argument(
            error, "cannot listen on %s:%u: %s is no address of this host", host, port, host);
    case EADDRINUSE:
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED,
            "cannot listen on %s:%u: another process has the port; end that process, or choose "
            "another port",
            host, port);
    case EACCES:
        return fail_argument(
            error, "cannot listen on %s:%u: only the superuser may have that port; choose another",
            host, port);
    default:
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED, "cannot listen on %s:%u: %s",
            host, port, strerror(why));
    }
}

enum sumac_status
listener_open(const char *host, uint32_t port, struct listener *listener, struct sumac_error *error)
{
    char bare[HOST_BYTES];
    const size_t length = strlen(host);
    const bool bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';

    if (length >= sizeof bare || port > 65535)
        return fail_argument(error, "%s:%u is no address to listen on", host, port);
    (void)text_print(
        bare, sizeof bare, "%.*s", (int)(bracketed ? length - 2 : length),
        bracketed ? host + 1 : host);
    *listener = (struct listener){.port = port};
    const bool all = strcmp(bare, "0.0.0.0") == 0 || strcmp(bare, "::") == 0;
    int why = 0;
    if (!all || (!add_any(listener) && errno != EADDRINUSE))
        why = add_all(listener, bare);
    else if (listener->count == 0) /* IPv4's alone would be half of what was asked for */
        why = EADDRINUSE;
    if (listener->count == 0)
        return fail_to_listen(host, port, why, error);
    listener->lacks_ipv6 = all && !has_ipv6_address();
    return SUMAC_OK;
}

void listener_close(struct listener *listener)
{
    for (unsigned i = 0; i < listener->count; i++)
        (void)close(listener->sockets[i]);
    listener->count = 0;
}
