/* SPDX-License-Identifier: Apache-2.0 */
/* push.h -- the calls on a push under way that other files of the client make, and its norm. */
#pragma once

#include "sumac/client.h"

/* It is begun, and nobody has waited for it yet: until it has been waited for to its end, or the
 * client is closed, it has a reference of the buffer, so that who gives up waiting leaves it the
 * bytes that it reads. One for each push. */
void push_keep(struct sumac_push *push, struct sumac_buffer *buffer);

/* norm.c */
/* √Σ value² over all of them, which are of float types and on the host, in float64. */
double norm_of(const struct sumac_delta *deltas, size_t count);
