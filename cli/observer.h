/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h -- a session for a command that changes something in a run, and holds nothing up. */
#pragma once

#include "roster.h"
#include "sumac/client.h"

/* Join the run of the roster, without a word.
 *
 * Gives    *client; ends with observer_leave.
 * Fails    as sumac_client_open. */
enum sumac_status observer_join(
    const struct roster *roster, uint32_t timeout_ms, struct sumac_client **client,
    struct sumac_error *error);

/* Takes  client; NULL is fine. */
void observer_leave(struct sumac_client *client);
