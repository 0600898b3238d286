/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c -- fnmatch, and names that look like patterns. */
#include "pattern.h"

#include <fnmatch.h>
#include <string.h>

bool pattern_is_one(const char *word) { return strpbrk(word, "*?") != NULL; }

bool pattern_matches(const char *word, const char *name)
{
    if (strcmp(word, name) == 0)
        return true;
    return pattern_is_one(word) && fnmatch(word, name, 0) == 0;
}

size_t pattern_drop_repeated(char **words, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        while (before < kept && strcmp(words[before], words[i]) != 0)
            before++;
        if (before == kept)
            words[kept++] = words[i];
    }
    return kept;
}
