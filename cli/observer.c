/* SPDX-License-Identifier: Apache-2.0 */
/* observer.c -- a session for a command that changes something in a run. */
#include "observer.h"

static void say_nothing(void *context, const char *line)
{
    (void)context;
    (void)line;
}

enum sumac_status observer_join(
    const struct roster *roster, uint32_t timeout_ms, struct sumac_client **client,
    struct sumac_error *error)
{
    const char *address = roster->ps[roster->first].address;
    const struct sumac_client_options options = {
        .ps_addresses = &address,
        .ps_count = 1,
        .observer = true,
        .timeout_ms = timeout_ms,
        .log = say_nothing};

    return sumac_client_open(&options, client, error);
}

/* What it did is done: a session that does not end in time ends with its lease. */
void observer_leave(struct sumac_client *client)
{
    if (client != NULL && sumac_client_leave(client, SUMAC_LEAVING_DONE, NULL) != SUMAC_OK) {
        sumac_client_close(client);
        return;
    }
    sumac_client_close(client);
}
