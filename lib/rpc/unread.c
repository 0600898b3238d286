/* SPDX-License-Identifier: Apache-2.0 */
/* unread.c -- see unread.h. */
#include "unread.h"

#include <stddef.h>

#include "memory.h"

bool unread_init(struct unread *unread, uint32_t max)
{
    *unread = (struct unread){.max = max};
    unread->items = memory_take(&memory_heap, max * sizeof *unread->items);
    return unread->items != NULL;
}

void unread_deinit(struct unread *unread)
{
    memory_give(&memory_heap, unread->items, unread->max * sizeof *unread->items);
    *unread = (struct unread){0};
}

static struct unread_connection *find(const struct unread *unread, const struct unread_key *key)
{
    for (uint32_t i = 0; i < unread->count; i++) {
        struct unread_connection *const at = &unread->items[i];
        if (at->key.descriptor == key->descriptor && at->key.inode == key->inode)
            return at;
    }
    return NULL;
}

static uint64_t bytes_of(const struct unread_connection *connection)
{
    return connection->cut ? 0 : connection->bytes + connection->left_bytes;
}

static void forget(struct unread *unread, struct unread_connection *connection)
{
    unread->bytes -= bytes_of(connection);
    unread->held_bytes -= connection->left_bytes;
    *connection = unread->items[--unread->count];
}

uint64_t unread_add(struct unread *unread, const struct unread_key *key, uint64_t bytes)
{
    struct unread_connection *at = find(unread, key);

    if (at == NULL) {
        if (unread->count == unread->max)
            return 0;
        at = &unread->items[unread->count++];
        *at = (struct unread_connection){.key = *key};
    }
    at->bytes += bytes;
    unread->held_bytes += bytes;
    if (!at->cut)
        unread->bytes += bytes;
    return ++unread->tickets;
}

void unread_end(
    struct unread *unread, const struct unread_key *key, uint64_t ticket, uint64_t bytes,
    bool taken)
{
    struct unread_connection *const at = find(unread, key);

    if (at == NULL) {
        unread->held_bytes -= bytes;
        return;
    }
    const uint64_t before = bytes_of(at);
    at->bytes -= bytes;
    if (taken)
        unread->held_bytes -= bytes;
    if (!taken) {
        at->left_bytes += bytes;
        at->left_at = unread->tickets;
    } else if (ticket > at->left_at) {
        unread->held_bytes -= at->left_bytes;
        at->left_bytes = 0; /* gRPC writes in order: what was cancelled before has gone out, too */
    }
    unread->bytes -= before;
    unread->bytes += bytes_of(at);
    if (!at->cut && bytes_of(at) == 0)
        forget(unread, at);
}

struct unread_connection *
unread_find_greedy(struct unread *unread, uint64_t bytes_max, uint64_t connection_bytes_max)
{
    struct unread_connection *most = NULL;

    for (uint32_t i = 0; i < unread->count; i++) {
        struct unread_connection *const at = &unread->items[i];
        if (bytes_of(at) > (most != NULL ? bytes_of(most) : 0))
            most = at;
    }
    const bool over = unread->bytes > bytes_max;
    return most != NULL && (over || bytes_of(most) > connection_bytes_max) ? most : NULL;
}

void unread_note_cut(struct unread *unread, struct unread_connection *connection)
{
    unread->bytes -= bytes_of(connection);
    connection->cut = true;
}

bool unread_is_cut(const struct unread *unread, const struct unread_key *key)
{
    const struct unread_connection *const at = find(unread, key);

    return at != NULL && at->cut;
}

void unread_look(struct unread *unread, bool (*is_gone)(const struct unread_key *key))
{
    for (uint32_t i = 0; i < unread->count;) {
        if (is_gone(&unread->items[i].key))
            forget(unread, &unread->items[i]);
        else
            i++;
    }
}
