/* SPDX-License-Identifier: Apache-2.0 */
/* bind_once.c -- preloaded into a process: the first time that it, or another with the same
 * environment, binds a port of its choice, the port is taken. The file that SUMAC_BIND_ONCE names
 * remembers it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static uint16_t port_of(const struct sockaddr *address)
{
    const void *any = address;

    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)any)->sin_port;
    if (address->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)any)->sin6_port;
    return 0;
}

int bind(int socket, const struct sockaddr *address, socklen_t bytes)
{
    int (*bind_really)(int, const struct sockaddr *, socklen_t);

    *(void **)&bind_really = dlsym(RTLD_NEXT, "bind");
    const char *path = getenv("SUMAC_BIND_ONCE");
    if (path != NULL && port_of(address) != 0) {
        const int first = open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (first >= 0) {
            close(first);
            errno = EADDRINUSE;
            return -1;
        }
    }
    return bind_really(socket, address, bytes);
}
