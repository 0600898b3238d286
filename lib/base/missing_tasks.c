/* SPDX-License-Identifier: Apache-2.0 */
/* missing_tasks.c -- words for the tasks that others wait for. */
#include "missing_tasks.h"

#include <assert.h>
#include <string.h>

#include "text.h"

#define START_EACH "; start each missing task"

static const char *const words[] = {
    [MISSING_PRESENT] = "",  [MISSING_NEVER_JOINED] = "never joined",
    [MISSING_LEFT] = "left", [MISSING_DONE] = "left as done",
    [MISSING_LOST] = "lost", [MISSING_ABSENT] = "no session",
};

struct facts {
    char text[192]; /* with a name before it, it fits into a long listing */
    size_t used;
};

/* NULL and "" are no fact. */
static void add_fact(struct facts *facts, const char *before, const char *fact)
{
    if (fact != NULL && fact[0] != '\0')
        facts->used += text_print_line(
            facts->text + facts->used, sizeof facts->text - facts->used, "%s%s%s",
            facts->used == 0 ? " (" : ", ", before, fact);
}

void missing_tasks_add(struct missing_tasks *missing, const struct missing_task *task)
{
    char line[LISTING_LONG_BYTES], barrier[64] = "";
    struct facts facts = {.text = ""};

    assert(task->name != NULL);
    assert(task->state <= MISSING_ABSENT);
    if (task->barrier != NULL)
        (void)text_print_line(barrier, sizeof barrier, "\"%.40s\"", task->barrier);
    add_fact(&facts, "at ", task->address);
    add_fact(&facts, "", task->own_pace ? MISSING_OWN_PACE : NULL);
    add_fact(&facts, "", task->silence);
    add_fact(&facts, "waiting at barrier ", barrier);
    add_fact(&facts, "", words[task->state]);
    (void)text_print_line(
        line, sizeof line, "%s%s%s", task->name, facts.text, facts.used == 0 ? "" : ")");
    missing->listing.is_long = true;
    listing_add(&missing->listing, line);
    missing->never_joined |= task->state == MISSING_NEVER_JOINED;
    missing->own_pace |= task->own_pace;
}

const char *missing_tasks_end(struct missing_tasks *missing)
{
    return listing_end(&missing->listing);
}

const char *missing_tasks_remedy(const struct missing_tasks *missing, const char *otherwise)
{
    if (missing->never_joined)
        return missing->own_pace ? START_EACH MISSING_SAME_PACE : START_EACH;
    return missing->own_pace ? MISSING_SAME_PACE : otherwise;
}
