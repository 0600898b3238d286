/* SPDX-License-Identifier: Apache-2.0 */
/* connections.c -- see connections.h. */
#include "connections.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define GREEDY_BYTES_MIN 4096u

bool connections_init(struct connections *connections, uint32_t max)
{
    *connections = (struct connections){.max = max};
    connections->items = memory_take(&memory_heap, max * sizeof *connections->items);
    return connections->items != NULL;
}

void connections_deinit(struct connections *connections)
{
    memory_give(&memory_heap, connections->items, connections->max * sizeof *connections->items);
    *connections = (struct connections){0};
}

static struct connection_host host_of_v4(uint32_t address)
{
    struct connection_host host = {.local = ntohl(address) >> 24 == IN_LOOPBACKNET};

    memcpy(host.bytes + 12, &address, sizeof address);
    return host;
}

struct connection_host connection_host_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return host_of_v4(v4.sin_addr.s_addr);
    }
    struct connection_host host = {.local = true};
    if (address->sa_family != AF_INET6)
        return host;
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
        uint32_t v4;
        memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof v4);
        return host_of_v4(v4);
    }
    host.local = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    memcpy(host.bytes, v6.sin6_addr.s6_addr, 8);
    return host;
}

static uint32_t count_of(const struct connections *connections, const struct connection_host *host)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < connections->count; i++)
        count += memcmp(connections->items[i].host.bytes, host->bytes, sizeof host->bytes) == 0;
    return count;
}

bool connections_admit(const struct connections *connections, const struct connection_host *host)
{
    const uint32_t left = connections->max - connections->count;

    if (host->local)
        return left > connections->max / 8;
    return count_of(connections, host) < left;
}

void connections_add(
    struct connections *connections, int descriptor, const struct connection_host *host)
{
    struct stat file;

    assert(connections->count < connections->max);
    if (fstat(descriptor, &file) != 0)
        return;
    connections->items[connections->count++] =
        (struct connection){.descriptor = descriptor, .inode = file.st_ino, .host = *host};
}

ino_t connection_inode(int descriptor)
{
    struct stat file;

    return fstat(descriptor, &file) == 0 && S_ISSOCK(file.st_mode) ? file.st_ino : 0;
}

static bool is_file(int descriptor, ino_t inode) { return connection_inode(descriptor) == inode; }

void connections_look(struct connections *connections)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < connections->count; i++) {
        const struct connection *at = &connections->items[i];
        if (is_file(at->descriptor, at->inode))
            connections->items[kept++] = *at;
    }
    connections->count = kept;
}

/* Received, and read by gRPC. */
static uint64_t read_bytes(int descriptor)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    int unread = 0;

    if (ioctl(descriptor, FIONREAD, &unread) != 0 ||
        getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || unread < 0)
        return 0;
    const uint64_t received = info.tcpi_bytes_received, waiting = (uint64_t)unread;
    return received > waiting ? received - waiting : 0;
}

void connections_note_read(struct connections *connections)
{
    for (uint32_t i = 0; i < connections->count; i++)
        connections->items[i].read_bytes = read_bytes(connections->items[i].descriptor);
}

/* connect(2) with AF_UNSPEC resets the connection and empties its queues; after shutdown(2) gRPC
 * would read what waits. */
static bool reset(int descriptor)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    return connect(descriptor, &nobody, sizeof nobody) == 0;
}

bool connection_reset(int descriptor, ino_t inode)
{
    const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);

    if (own < 0)
        return false;
    const bool ended = is_file(own, inode) && reset(own);
    (void)close(own);
    return ended;
}

static bool end_greedy(struct connection *connection)
{
    if (connection->ended)
        return false;
    const int own = fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return false;
    const bool greedy = is_file(own, connection->inode) &&
                        read_bytes(own) >= connection->read_bytes + GREEDY_BYTES_MIN;
    connection->ended = greedy && reset(own);
    (void)close(own);
    return connection->ended;
}

uint32_t connections_end_greedy(struct connections *connections)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < connections->count; i++)
        count += end_greedy(&connections->items[i]) ? 1 : 0;
    return count;
}

uint32_t connections_end_greedy_one(struct connections *connections, int descriptor)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < connections->count; i++)
        if (connections->items[i].descriptor == descriptor)
            count += end_greedy(&connections->items[i]) ? 1 : 0;
    return count;
}

static struct connection *find(const struct connections *connections, int descriptor, ino_t inode)
{
    for (uint32_t i = 0; i < connections->count; i++) {
        struct connection *const at = &connections->items[i];
        if (at->descriptor == descriptor && at->inode == inode)
            return at;
    }
    return NULL;
}

/* The bucket leaks one every so often. */
static void leak(struct connection *connection, uint64_t now_us)
{
    const uint64_t each_us = 1000000u / CONNECTION_CANCELLED_PER_S;
    const uint64_t count = (now_us - connection->cancelled_us) / each_us;

    connection->cancelled =
        count < connection->cancelled ? connection->cancelled - (uint32_t)count : 0;
    connection->cancelled_us += count * each_us;
}

bool connections_note_cancelled(
    struct connections *connections, int descriptor, ino_t inode, uint64_t now_us)
{
    struct connection *const at = find(connections, descriptor, inode);

    if (at == NULL || at->ended)
        return false;
    leak(at, now_us);
    if (++at->cancelled <= CONNECTION_CANCELLED_MAX)
        return false;
    at->ended = connection_reset(descriptor, inode);
    return at->ended;
}
