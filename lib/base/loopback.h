/* SPDX-License-Identifier: Apache-2.0 */
/* loopback.h -- addresses that lead each host to itself, as "localhost:2222", and what to do about
 * one in a list of other hosts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LOOPBACK_REMEDY                                                                            \
    "localhost and 127.0.0.1 mean each host itself; list the name or address by which all hosts "  \
    "reach that ps"
/* In place of the address of the member that starts the ps, where the configuration names none: the
 * ps has that member's own. No process dials it, and it tells nothing of hosts. */
#define STARTER_ADDRESS "started-the-ps:1"
#define OTHER_PS_REMEDY "correct the index of that ps, or the order of the ps addresses"

struct address_list {
    const char *const *items; /* "host:port"; NULL and "" are unknown */
    size_t count;
};

/* Is the host of this "host:port" localhost, 127.x.x.x or [::1]? False for NULL. */
bool loopback_is(const char *address);

/* What to do about the ps of `address`, at which another process answers, or none: LOOPBACK_REMEDY
 * if that is loopback and not every address of both lists is, else `otherwise`.
 * Lends  a constant, or `otherwise`. */
const char *loopback_remedy(
    const char *address, struct address_list ps, struct address_list members,
    const char *otherwise);
