/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c -- fnmatch; and a search for the variable that an unknown name meant. */
#include "pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "nearest.h"
#include "text.h"

bool pattern_is_one(const char *word) { return strpbrk(word, "*?") != NULL; }

bool pattern_are_some(char *const *words, size_t count)
{
    while (count > 0 && !pattern_is_one(words[count - 1]))
        count--;
    return count > 0;
}

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

/* ---- names that no variable has */

#define NAME_SAID_MAX 150 /* bytes of a name in an error that has several */

/* The name that all names of the catalogue are compared with. */
struct search {
    const char *name;
    size_t base_bytes; /* before "[…]" at its end; 0: no brackets */
    uint64_t variables;
    size_t shard_base_bytes; /* before "/part_3" at its end; 0: no such end */
    const char *beside;      /* another name of the command line, or "NAME" */
    bool found, base_found, shard_base_found;
    struct nearest nearest;
};

/* Bytes before the brackets at the end of "W1[3]"; 0: it has none. */
static size_t base_of(const char *name)
{
    const char *open = strrchr(name, '[');
    const char *close = open != NULL ? strchr(open, ']') : NULL;
    const bool last = close == NULL || close[1] == '\0'; /* it may be forgotten */

    return open != NULL && open > name && last ? (size_t)(open - name) : 0;
}

/* Bytes before "/part_3" at the end of "W1/part_3", a shard as drawings name it; 0: no shard. */
static size_t shard_base_of(const char *name)
{
    static const char part[] = "/part_";
    const char *slash = strrchr(name, '/');

    if (slash == NULL || slash == name || strncmp(slash, part, sizeof part - 1) != 0)
        return 0;
    const char *number = slash + sizeof part - 1;
    return *number != '\0' && number[strspn(number, "0123456789")] == '\0' ? (size_t)(slash - name)
                                                                           : 0;
}

/* Is it what the first `bytes` of `text` are? */
static bool is_start(const char *name, const char *text, size_t bytes)
{
    return bytes > 0 && strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

static void look(struct search *search, const struct catalogue *catalogue)
{
    for (struct catalogue_entry entry = {0}; catalogue_next(catalogue, &entry);) {
        const char *name = entry.variable->name;
        search->variables++;
        search->found = search->found || pattern_matches(search->name, name);
        search->base_found = search->base_found || is_start(name, search->name, search->base_bytes);
        search->shard_base_found =
            search->shard_base_found || is_start(name, search->name, search->shard_base_bytes);
        nearest_try(&search->nearest, search->name, name);
    }
}

/* Only the user can repair the name. */
#define not_found(error, ...)                                                                      \
    ((void)fail(error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED, __VA_ARGS__))

/* "W1[3]" is meant as W1[3:4], "W1[-1]" as W1[-1:]. */
static void say_rows(const struct search *search, struct sumac_error *error)
{
    char *end = NULL;
    const int base = (int)search->base_bytes;
    const char *inside = search->name + base + 1;

    errno = 0;
    const int64_t row = strtoll(inside, &end, 10);
    char rows[48];
    if (end == inside || *end != ']' || errno != 0 || row == INT64_MAX)
        (void)text_print(rows, sizeof rows, "0:4");
    else if (row == -1)
        (void)text_print(rows, sizeof rows, "-1:");
    else
        (void)text_print(rows, sizeof rows, "%" PRId64 ":%" PRId64, row, row + 1);
    not_found(
        error, "no variable is named %.*s; rows are given as FIRST:END, such as %.*s[%s]",
        NAME_SAID_MAX, search->name, base < NAME_SAID_MAX ? base : NAME_SAID_MAX, search->name,
        rows);
}

/* The whole word is cut where a name would be, so that what it is a shard of can be said twice. */
static void say_shard(const struct search *search, struct sumac_error *error)
{
    const size_t bytes = search->shard_base_bytes;
    const int base = bytes < NAME_SAID_MAX ? (int)bytes : NAME_SAID_MAX;

    not_found(
        error, "%.*s is a shard of %.*s: get %.*s, or ls %.*s --shards", NAME_SAID_MAX,
        search->name, base, search->name, base, search->name, base, search->name);
}

static bool is_rows(const char *name)
{
    return name[strspn(name, "[]0123456789:,-")] == '\0' && strpbrk(name, "0123456789:") != NULL;
}

/* "0:4" beside W1 is meant as W1[0:4], and "3" or "3,1" as --rows. */
static void say_apart(const struct search *search, struct sumac_error *error)
{
    const int base = (int)strnlen(search->beside, NAME_SAID_MAX);
    const char *const rows = search->name + (search->name[0] == '[');
    const int bytes = (int)strnlen(rows, NAME_SAID_MAX) - (strchr(rows, ']') != NULL);

    not_found(
        error,
        strchr(rows, ':') != NULL ? "no variable is named %.*s; its rows are %.*s[%.*s]"
                                  : "no variable is named %.*s; its rows are %.*s --rows %.*s",
        NAME_SAID_MAX, search->name, base, search->beside, bytes, rows);
}

static void say(const struct search *search, bool takes_rows, struct sumac_error *error)
{
    char near[NEAREST_MAX * (NAME_SAID_MAX / 2)];
    const char *verb = pattern_is_one(search->name) ? "matches" : "is named";
    const bool one = search->variables == 1;

    nearest_print(&search->nearest, near, sizeof near);
    if (search->name[0] == '\0')
        (void)fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
            "an empty name names no variable; `sumac ls` lists those that there are");
    else if (search->shard_base_found)
        say_shard(search, error);
    else if (search->variables == 0)
        not_found(
            error, "no variable %s %.*s: there are no variables yet", verb, NAME_SAID_MAX,
            search->name);
    else if (takes_rows && search->nearest.count == 0 && is_rows(search->name))
        say_apart(search, error);
    else if (search->base_found && takes_rows)
        say_rows(search, error);
    else if (search->base_found)
        not_found(
            error, "no variable is named %.*s; did you mean %.*s?", NAME_SAID_MAX, search->name,
            (int)search->base_bytes, search->name);
    else if (search->nearest.count > 0)
        not_found(
            error, "no variable %s %.*s; did you mean %s?", verb, NAME_SAID_MAX, search->name,
            near);
    else
        not_found(
            error, "no variable %s %.*s; there %s %" PRIu64 " other%s: `sumac ls` lists %s", verb,
            NAME_SAID_MAX, search->name, one ? "is" : "are", search->variables, one ? "" : "s",
            one ? "it" : "them");
}

void unknown_explain(
    struct roster *roster, char *const *names, size_t count, bool takes_rows,
    struct sumac_error *error)
{
    struct catalogue catalogue = {0};
    struct sumac_error unread = {0};

    if (error->reason != SUMAC_REASON_UNKNOWN_VARIABLE)
        return;
    roster_leave_out_all_but(roster, roster->first);
    if (catalogue_ask(roster, NULL, 0, &catalogue, &unread) != SUMAC_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        struct search search = {
            .name = names[i],
            .beside = count == 1 ? "NAME" : names[i > 0 ? i - 1 : 1],
            .base_bytes = base_of(names[i]),
            .shard_base_bytes = shard_base_of(names[i])};
        look(&search, &catalogue);
        if (search.found)
            continue;
        say(&search, takes_rows, error);
        break;
    }
}
