/* SPDX-License-Identifier: Apache-2.0 */
/* replay_pair.c -- how a difference between a core and its records is said. */
#include "replay_pair.h"

#include <inttypes.h>
#include <string.h>

void differ(const struct pair *pair, const char *what, const char *of_whom)
{
    check_object(pair->check, "%s do not say the %s of %.200s", pair->records, what, of_whom);
}

void same(const struct pair *pair, uint64_t was, uint64_t is, const char *what, const char *of_whom)
{
    if (was != is)
        check_object(
            pair->check, "%s of %.200s was %" PRIu64 ", and by %s is %" PRIu64, what, of_whom, was,
            pair->records, is);
}

void same_text(
    const struct pair *pair, const char *was, const char *is, const char *what, const char *of_whom)
{
    if (strcmp(was == NULL ? "" : was, is == NULL ? "" : is) != 0)
        differ(pair, what, of_whom);
}

bool one_only(const struct pair *pair, const void *was, const void *is, const char *of_whom)
{
    if ((was == NULL) == (is == NULL))
        return false;
    check_object(
        pair->check, is == NULL ? "%s lack %.200s" : "%s have %.200s, which there is not",
        pair->records, of_whom);
    return true;
}
