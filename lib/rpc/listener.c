/* listener.c -- does the server still accept connections?
 *
 * gRPC 1.51 never accepts again once it had no descriptor for a connection, and tells nobody. So the descriptors of its
 * listening sockets are noted as the server is opened, and how many connections wait there is looked at, which needs no
 * descriptor: gRPC takes all that wait at once, so a number that never falls is of a socket that nobody looks after. Where
 * descriptors have run out that is believed soon; else it may be a flood, which fills the queue as fast as it is emptied.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

#define DESCRIPTORS_SEARCHED 4096 /* the lowest; a server is opened early in a process's life */
#define STUCK_LOOKS_MAX 5u
#define STUCK_LOOKS_FLOODED_MAX 60u

/* Is it a socket that listens on this port? */
static bool listens(int descriptor, uint32_t port)
{
    int accepts = 0;
    socklen_t bytes = sizeof accepts;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t address_bytes = sizeof address;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &bytes) != 0 || accepts == 0 ||
        getsockname(descriptor, &address.any, &address_bytes) != 0)
        return false;
    const bool v6 = address.any.sa_family == AF_INET6;
    return ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port) == port;
}

void listener_note(struct rpc_server *server)
{
    for (int i = 0; i < DESCRIPTORS_SEARCHED && server->listener_count < SERVER_LISTENERS_MAX; i++)
        if (listens(i, server->port))
            server->listeners[server->listener_count++] = i;
}

/* Connections that wait to be accepted. */
static uint64_t waiting(const struct rpc_server *server)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < server->listener_count; i++) {
        struct tcp_info info = {0};
        socklen_t bytes = sizeof info;
        if (getsockopt(server->listeners[i], IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
            count += info.tcpi_unacked; /* tcp(7) does not say so, but of a listener it is this */
    }
    return count;
}

static bool has_descriptor_left(const struct rpc_server *server)
{
    if (server->listener_count == 0)
        return true;
    const int spare = fcntl(server->listeners[0], F_DUPFD_CLOEXEC, 0);
    if (spare >= 0)
        close(spare);
    return spare >= 0;
}

bool rpc_server_accepts(struct rpc_server *server)
{
    const uint64_t count = waiting(server);
    server->stuck_looks = count > 0 && count >= server->waiting ? server->stuck_looks + 1 : 0;
    server->waiting = count;
    if (server->stuck_looks == 0)
        server->exhausted = false;
    if (!has_descriptor_left(server))
        server->exhausted = true;
    return server->draining ||
           server->stuck_looks < (server->exhausted ? STUCK_LOOKS_MAX : STUCK_LOOKS_FLOODED_MAX);
}
