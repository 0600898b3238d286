/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c -- who may call a worker. */
#include "entry.h"

#include <assert.h>
#include <unistd.h>

#include "error.h"

void entry_init(struct entry_point *entry)
{
    entry->process = getpid();
    atomic_init(&entry->is_taken, false);
}

bool entry_is_own(const struct entry_point *entry) { return entry->process == getpid(); }

bool entry_is_taken(const struct entry_point *entry) { return atomic_load(&entry->is_taken); }

enum sumac_status
entry_take(struct entry_point *entry, const char *function, struct sumac_error *error)
{
    assert(function != NULL);
    if (!entry_is_own(entry))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "this worker was made by process %ld, and this is its child %ld: fork first, then open "
            "a client and make a worker in each process",
            (long)entry->process, (long)getpid());
    return !atomic_exchange(&entry->is_taken, true)
               ? SUMAC_OK
               : fail(
                     error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
                     "%s: another call of this worker is under way, in another thread or around "
                     "this one; one at a time",
                     function);
}

enum sumac_status entry_leave(struct entry_point *entry, enum sumac_status status)
{
    assert(atomic_load(&entry->is_taken));
    atomic_store(&entry->is_taken, false);
    return status;
}
