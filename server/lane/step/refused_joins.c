/* SPDX-License-Identifier: Apache-2.0 */
/* refused_joins.c -- lines for joins that were refused: each once a minute, and a bounded number of
 * different ones.
 *
 * A supervisor that starts a worker again and again repeats one line; a stranger may make up as
 * many names as it likes. So each line has a place for as long as it is not to be said again, and
 * when all places are taken nothing is said.
 */
#include <inttypes.h>
#include "refused_joins.h"

#include "text.h"

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
