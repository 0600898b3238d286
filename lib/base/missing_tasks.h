/* SPDX-License-Identifier: Apache-2.0 */
/* missing_tasks.h -- the tasks that a barrier, a round of a collective or a synchronous step waits
 * for, in the same words on every ps and in the controller; a client shows what a ps has said:
 *
 *   worker 1 (at h1:2222, never joined). worker 2 (alive, no push or pull on ps 0 for 3 s).
 *   worker 3 (last heard from 2 s ago, left), worker 4 (lost), … 9 in all
 */
#pragma once

#include "listing.h"

/* Stands behind the name of a task. */
#define MISSING_OWN_PACE "its pushes are asynchronous"
/* What to do when some workers push synchronously, and others do not. */
#define MISSING_SAME_PACE "; start all workers with the same SUMAC_SYNCHRONOUS"

enum missing_state {
    MISSING_PRESENT, /* the task has a session */
    MISSING_NEVER_JOINED,
    MISSING_LEFT,
    MISSING_DONE,   /* the task left as done */
    MISSING_LOST,   /* the last session of the task ended, and its client did not leave */
    MISSING_ABSENT, /* the task has joined, and has no session here */
};

struct missing_task {
    const char *name; /* "worker 1" */
    enum missing_state state;
    const char *address; /* NULL or "": not known */
    const char *silence; /* "last heard from 2 s ago"; NULL: not known */
    const char *barrier; /* the name of another barrier that the task waits at; NULL: none */
    bool own_pace;       /* the pushes of the task are asynchronous */
};

/* Begins zeroed. */
struct missing_tasks {
    struct listing listing;
    bool never_joined, own_pace; /* at least one of the tasks */
};

void missing_tasks_add(struct missing_tasks *missing, const struct missing_task *task);
/* Is there no room for one more name? The others need only be counted. */
static inline bool missing_tasks_is_full(const struct missing_tasks *missing)
{
    return missing->listing.shown < missing->listing.count;
}
static inline void missing_tasks_count(struct missing_tasks *missing) { missing->listing.count++; }
/* Lends  the text, as listing_end. "" if no task was added. */
const char *missing_tasks_end(struct missing_tasks *missing);
/* What to do, to print after the text: "; start each missing task", … `otherwise` if the states of
 * the tasks say nothing about the remedy. */
const char *missing_tasks_remedy(const struct missing_tasks *missing, const char *otherwise);
