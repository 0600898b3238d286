/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.c -- a leaky bucket for each kind of line in the log; lines for joins that were
 * refused: each once a minute, and a bounded number of different ones. */
#include "log_limit.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "text.h"

static struct log_kind *find(struct log_limit *limit, const char *format)
{
    uint32_t i = 0;

    while (i < LOG_KINDS_MAX - 1 && limit->kinds[i].format != NULL &&
           limit->kinds[i].format != format)
        i++;
    return &limit->kinds[i];
}

static void leak(struct log_kind *kind, uint64_t now_us)
{
    const uint64_t lines = now_us > kind->leaked_us ? (now_us - kind->leaked_us) / LOG_LINE_US : 0;

    assert(kind->format != NULL);
    assert(kind->lines <= LOG_LINES_AT_ONCE_MAX);
    kind->lines = lines < kind->lines ? kind->lines - (uint32_t)lines : 0;
    kind->leaked_us += lines * LOG_LINE_US;
}

char *log_limit_line(
    struct log_limit *limit, struct arena *arena, uint64_t now_us, const char *format,
    va_list values)
{
    struct log_kind *const kind = find(limit, format);

    assert(format != NULL);
    if (kind->format == NULL)
        *kind = (struct log_kind){.format = format, .leaked_us = now_us};
    leak(kind, now_us);
    if (kind->lines >= LOG_LINES_AT_ONCE_MAX) {
        kind->left_out++;
        return NULL;
    }
    char *text = text_line_in(arena, format, values);
    if (text != NULL && kind->left_out > 0) {
        const char *const line = text;
        const size_t bytes = strlen(line) + 64;
        text = arena_take(arena, bytes);
        if (text != NULL)
            (void)text_print(
                text, bytes, "%s (%" PRIu64 " more such lines were left out)", line,
                kind->left_out);
    }
    if (text != NULL) {
        kind->lines++;
        kind->left_out = 0;
    }
    return text;
}

/* ---- joins that were refused ----
 *
 * A supervisor that starts a worker again and again repeats one line; a stranger may make up as
 * many names as it likes. So each line has a place for as long as it is not to be said again, and
 * when all places are taken nothing is said.
 */

struct joiner refused_joins_who(const wire_join_request *request)
{
    const wire_task_name *task = request->task;
    const bool member = request->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    struct joiner who;

    if (task != NULL && task->job[0] != '\0')
        (void)text_print_line(
            who.text, sizeof who.text, "%s %u%s", task->job, task->index,
            member ? "" : " as an observer");
    else if (member)
        (void)text_print(who.text, sizeof who.text, "a member that names no task");
    else
        (void)text_print(who.text, sizeof who.text, "an observer");
    return who;
}

/* FNV-1a (Fowler, Noll, Vo): who makes two texts collide hides a line about itself. */
static uint64_t hash_of(const char *text, uint64_t hash)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return hash;
}

/* NULL: it is not to be said. */
static struct refused_join *
place_of(struct refused_joins *refused, uint64_t text_hash, uint64_t now_us)
{
    struct refused_join *place = NULL;

    for (uint32_t i = 0; i < REFUSED_JOINS_TOLD_MAX; i++) {
        struct refused_join *join = &refused->told[i];
        const bool recent =
            join->told_us != 0 && now_us - join->told_us < (uint64_t)REFUSED_JOINS_APART_MS * 1000u;
        if (recent && join->text_hash == text_hash)
            return NULL;
        if (!recent)
            place = join;
    }
    return place;
}

bool refused_joins_line(
    struct refused_joins *refused, uint64_t now_us, uint32_t ps, const wire_join_request *request,
    const char *why, struct refused_line *line)
{
    const struct joiner who = refused_joins_who(request);
    const uint64_t hash = hash_of(why, hash_of(who.text, UINT64_C(14695981039346656037)));
    struct refused_join *place = place_of(refused, hash, now_us);

    if (place == NULL) {
        refused->untold++;
        return false;
    }
    *place = (struct refused_join){.text_hash = hash, .told_us = now_us};
    if (refused->untold == 0)
        (void)text_print_line(
            line->text, sizeof line->text, "ps %u refused the join of %s: %s", ps, who.text, why);
    else
        (void)text_print_line(
            line->text, sizeof line->text,
            "ps %u refused the join of %s: %s (%" PRIu64 " more joins were refused since the "
            "last such line)",
            ps, who.text, why, refused->untold);
    refused->untold = 0;
    return true;
}
