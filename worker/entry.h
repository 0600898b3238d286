/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h -- who may call a worker: the process that made it, one call at a time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "sumac/status.h"

struct entry_point {
    pid_t process; /* whose threads the devices are */
    atomic_bool is_taken;
};

void entry_init(struct entry_point *entry);

/* Is this the process that made it? The devices' threads are not in a child, and its client is of
 * no use there. */
bool entry_is_own(const struct entry_point *entry);

/* Is a call under way, in another thread or around this one? */
bool entry_is_taken(const struct entry_point *entry);

/* Nobody else is in, until entry_leave, which returns the status that it is given.
 * Fails  FAILED_PRECONDITION: of another process; another call is under way, in another thread or
 *        around this one. */
enum sumac_status
entry_take(struct entry_point *entry, const char *function, struct sumac_error *error);
enum sumac_status entry_leave(struct entry_point *entry, enum sumac_status status);
