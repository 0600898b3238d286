/* SPDX-License-Identifier: Apache-2.0 */
/* unread.h -- answers that were handed to gRPC and that their clients have not taken, in bytes, by
 * connection. Inside lib/rpc only; one thread at a time.
 *
 * A call that is cancelled leaves its answer in what gRPC is writing to the connection, for as long
 * as the peer reads nothing: a slice is kept whole while a byte of it waits. So those bytes count
 * until a later answer has gone out on the same connection, or the connection is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor's number is used again: with its socket's inode it is one connection's. */
struct unread_key {
    int descriptor; /* negative: none that is known */
    ino_t inode;
};

struct unread_connection {
    struct unread_key key;
    uint64_t bytes;      /* of answers that are on their way */
    uint64_t left_bytes; /* of those that were cancelled */
    uint64_t left_at;    /* the ticket given last when that was */
    bool cut;            /* what it has counts no more, and what it asks is not heard */
};

struct unread {
    struct unread_connection *items; /* max of them */
    uint32_t count, max;
    uint64_t bytes;      /* of those that were not cut */
    uint64_t held_bytes; /* of those that were cut, too, until gRPC has given them back */
    uint64_t tickets;
};

/* False: no memory. */
bool unread_init(struct unread *unread, uint32_t max);
void unread_deinit(struct unread *unread);

/* One more answer. Returns its ticket; 0: there is no room to note it, and it must not be sent. */
uint64_t unread_add(struct unread *unread, const struct unread_key *key, uint64_t bytes);
/* It has gone out whole (`taken`), or it was cancelled. */
void unread_end(
    struct unread *unread, const struct unread_key *key, uint64_t ticket, uint64_t bytes,
    bool taken);
/* The connection that is to be cut: one with more than each may have, or, where all have more than
 * all may, the one that has most. NULL: none. */
struct unread_connection *
unread_find_greedy(struct unread *unread, uint64_t bytes_max, uint64_t connection_bytes_max);
void unread_note_cut(struct unread *unread, struct unread_connection *connection);
bool unread_is_cut(const struct unread *unread, const struct unread_key *key);
/* Forget those for which `is_gone` says so. */
void unread_look(struct unread *unread, bool (*is_gone)(const struct unread_key *key));
