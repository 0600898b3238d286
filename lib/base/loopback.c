/* SPDX-License-Identifier: Apache-2.0 */
/* loopback.c -- addresses that lead each host to itself. */
#include "loopback.h"

#include <string.h>

bool loopback_is(const char *address)
{
    const char *const colon = address == NULL ? NULL : strrchr(address, ':');
    const size_t bytes = colon == NULL ? 0 : (size_t)(colon - address);

    return (bytes == strlen("localhost") && memcmp(address, "localhost", bytes) == 0) ||
           (bytes == strlen("[::1]") && memcmp(address, "[::1]", bytes) == 0) ||
           (bytes > strlen("127.") && memcmp(address, "127.", strlen("127.")) == 0);
}

static bool is_other(const char *address)
{
    return address != NULL && address[0] != '\0' && strcmp(address, STARTER_ADDRESS) != 0 &&
           !loopback_is(address);
}

static bool has_other(struct address_list list)
{
    for (size_t i = 0; list.items != NULL && i < list.count; i++)
        if (is_other(list.items[i]))
            return true;
    return false;
}

const char *loopback_remedy(
    const char *address, struct address_list ps, struct address_list members, const char *otherwise)
{
    return loopback_is(address) && (has_other(ps) || has_other(members)) ? LOOPBACK_REMEDY
                                                                         : otherwise;
}
