/* SPDX-License-Identifier: Apache-2.0 */
/* strays.h -- streams whose hello a ps must refuse: of another release, of another cluster, of a
 * connection that was given up. Nobody hears what becomes of them; no session may feel them.
 */
#pragma once

#include "process_client.h"

/* Open one to that ps, in the name of a client that has joined. */
void stray_open(struct world *world, const struct client *client, uint32_t ps);
/* What a ps says on one. */
void stray_effect(
    struct world *world, const struct stream *stream, const struct lane_effect *effect);
