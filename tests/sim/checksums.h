/* SPDX-License-Identifier: Apache-2.0 */
/* checksums.h -- parts that say what their payload comes to. Our client sends none; others may. */
#pragma once

#include "process_client.h"

/* The message that goes to this ps, its parts with their checksums where they are to have some: a
 * wrong one for what is corrupted on the way.
 *
 * Lent  until the event is over.
 */
const wire_push_request *checksums_add(
    struct world *world, const struct client *client, uint32_t ps,
    const wire_push_request *request);
