/* SPDX-License-Identifier: Apache-2.0 */
/* connections.h -- who is connected to a server, and who may connect beside them. Inside lib/rpc
 * only; one thread at a time.
 *
 * A connection is gRPC's once it is handed over, and gRPC tells nobody when it has ended. So its
 * descriptor's number is kept with the inode of its socket: where that number means another file,
 * or none, the connection has ended. A look costs a system call for each connection, and is taken
 * every second and when a new one finds no place.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Whose connection it is: an IPv4 address, the first 64 bits of an IPv6 one (a host has them all),
 * or this very host. */
struct connection_host {
    unsigned char bytes[16];
    bool local;
};

struct connection {
    int descriptor;
    ino_t inode;
    struct connection_host host;
    uint64_t read_bytes; /* when that was noted */
    uint32_t cancelled;  /* of its calls: a leaky bucket, as it was at cancelled_us */
    uint64_t cancelled_us;
    bool ended; /* by one of the functions below */
};

/* A connection may have so many of its calls cancelled before they said anything, and so many more
 * with each second. */
#define CONNECTION_CANCELLED_MAX 4096u
#define CONNECTION_CANCELLED_PER_S 100u

struct connections {
    struct connection *items; /* max of them */
    uint32_t count, max;
};

/* False: no memory. */
bool connections_init(struct connections *connections, uint32_t max);
void connections_deinit(struct connections *connections);

struct connection_host connection_host_of(const struct sockaddr *address);
/* Is there a place for one more of that host?
 *
 * A host may have as many as are left free: alone half of all, beside another a third, and so on,
 * so that whoever has few gets in however many the others want. This host itself, where a whole run
 * may be, may have seven eighths. */
bool connections_admit(const struct connections *connections, const struct connection_host *host);
/* Takes    nothing: the descriptor is gRPC's, which closes it. There must be a place. */
void connections_add(
    struct connections *connections, int descriptor, const struct connection_host *host);
/* The inode of the socket with that descriptor; 0: it is none. */
ino_t connection_inode(int descriptor);
/* Reset it, if it is that socket still: what waits to be read or written is dropped. False: it is
 * gone, or there is no descriptor to hold it with. */
bool connection_reset(int descriptor, ino_t inode);
/* Forget those that have ended. */
void connections_look(struct connections *connections);

/* Note how much has been read from each. */
void connections_note_read(struct connections *connections);
/* End those from which much was read since; returns how many. What they have sent and nobody read
 * is dropped. */
uint32_t connections_end_greedy(struct connections *connections);
/* The same of the connection with that descriptor alone. */
uint32_t connections_end_greedy_one(struct connections *connections, int descriptor);

/* One more of the calls of that connection was cancelled before it said anything. True: too many
 * were within a short time, and it was ended. */
bool connections_note_cancelled(
    struct connections *connections, int descriptor, ino_t inode, uint64_t now_us);
