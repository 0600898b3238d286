/* SPDX-License-Identifier: Apache-2.0 */
/* log.h -- a client's log, and its name in it, for what is built upon clients, too. */
#pragma once

#include "sumac/client.h"

/* One line, cut and made printable. Threads  any, with the client's lock and without. */
void client_log(struct sumac_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Who it is: "worker 0", "chief 0", "observer", "reader". Lends  until it is closed. Threads  any.
 */
const char *client_who(const struct sumac_client *client);
